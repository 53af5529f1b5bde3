//! SDDL: a security descriptor as text (MS-DTYP 2.5.1), `O:BAG:SYD:AI(A;OICI;FA;;;SY)S:NO_ACCESS_CONTROL`.
//!
//! The parser takes what Windows takes, except white space and the forms for conditional ACEs and resource attributes: letters of either
//! case inside a part, rights as names or numbers, parts in any order. The printer writes what Windows prints, and so what the service
//! prints: parts in the order above, rights by name where all bits have one, SIDs by alias.

mod rights;

use std::fmt::Write;

use super::{
    Ace, AceBody, AceFlags, AceKind, Acl, AclFlags, DESCRIPTOR_BYTES_MAX, Descriptor, Guid, ObjectTypes,
    PermissionError, Rule, Sid,
};

/// Longer than the text of any descriptor within its limit: the shortest ACE has 16 bytes, and its longest text has 75.
pub const SDDL_BYTES_MAX: usize = 5 * DESCRIPTOR_BYTES_MAX;

const NULL_ACL: &str = "NO_ACCESS_CONTROL";

const ACE_KINDS: [(&str, AceKind); 7] = [
    ("A", AceKind::Allow),
    ("D", AceKind::Deny),
    ("AU", AceKind::Audit),
    ("OA", AceKind::AllowObject),
    ("OD", AceKind::DenyObject),
    ("OU", AceKind::AuditObject),
    ("ML", AceKind::MandatoryLabel),
];

const ACE_FLAGS: [(&str, AceFlags); 7] = [
    ("OI", AceFlags::OBJECT_INHERIT),
    ("CI", AceFlags::CONTAINER_INHERIT),
    ("NP", AceFlags::NO_PROPAGATE),
    ("IO", AceFlags::INHERIT_ONLY),
    ("ID", AceFlags::INHERITED),
    ("SA", AceFlags::AUDIT_SUCCESS),
    ("FA", AceFlags::AUDIT_FAILURE),
];

/// Which of the two lists an ACE stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Dacl,
    Sacl,
}

impl List {
    fn takes(self, kind: AceKind) -> bool {
        kind.is_for_dacl() == (self == List::Dacl)
    }
}

pub(super) fn parse(text: &str) -> Result<Descriptor, PermissionError> {
    if text.len() > SDDL_BYTES_MAX {
        return Err(PermissionError::TooLarge);
    }
    let mut descriptor = Descriptor::default();
    // Every part may be missing, and so may all of them.
    if text.is_empty() {
        return Ok(descriptor);
    }
    let (mut letter, mut rest) = text.split_once(':').ok_or(PermissionError::Syntax)?;
    loop {
        let (part, next) = match rest.split_once(':') {
            Some((part, after)) => {
                let (part, letter) = split_last_letter(part).ok_or(PermissionError::Syntax)?;
                (part, Some((letter, after)))
            }
            None => (rest, None),
        };
        parse_part(letter, part, &mut descriptor)?;
        match next {
            Some(next) => (letter, rest) = next,
            None => return Ok(descriptor),
        }
    }
}

/// A part ends where the letter of the next one stands: `SY` and `G` in `O:SYG:SY`. The colon finds it; looking at the text of a SID from
/// its front would not, as `D` is also a digit.
fn split_last_letter(text: &str) -> Option<(&str, &str)> {
    text.split_at_checked(text.len().checked_sub(1)?)
}

/// Each part comes at most once.
fn parse_part(letter: &str, part: &str, descriptor: &mut Descriptor) -> Result<(), PermissionError> {
    let is_first = match letter {
        "O" => descriptor.owner.replace(Sid::parse_sddl(part)?).is_none(),
        "G" => descriptor.group.replace(Sid::parse_sddl(part)?).is_none(),
        "D" => descriptor.dacl.replace(parse_acl(part, List::Dacl)?).is_none(),
        "S" => descriptor.sacl.replace(parse_acl(part, List::Sacl)?).is_none(),
        _ => false,
    };
    if is_first { Ok(()) } else { Err(PermissionError::Syntax) }
}

fn parse_acl(text: &str, list: List) -> Result<Acl, PermissionError> {
    let (flags, mut rest) = text.split_at(text.find('(').unwrap_or(text.len()));
    let (flags, is_null) = parse_acl_flags(flags).ok_or(PermissionError::Syntax)?;
    if is_null {
        return if rest.is_empty() { Ok(Acl { flags, aces: None }) } else { Err(PermissionError::Syntax) };
    }
    let mut aces = Vec::new();
    while !rest.is_empty() {
        let inside = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let (ace, after) = inside.ok_or(PermissionError::Syntax)?;
        aces.push(parse_ace(ace, list)?);
        rest = after;
    }
    Ok(Acl { flags, aces: Some(aces) })
}

/// The flags, and whether the list is the null list.
fn parse_acl_flags(mut text: &str) -> Option<(AclFlags, bool)> {
    let (mut flags, mut is_null) = (AclFlags::default(), false);
    while !text.is_empty() {
        let known = [
            ("P", &mut flags.protected),
            ("AR", &mut flags.inherit_required),
            ("AI", &mut flags.auto_inherited),
            (NULL_ACL, &mut is_null),
        ];
        let (rest, flag) = known.into_iter().find_map(|(name, flag)| Some((text.strip_prefix(name)?, flag)))?;
        *flag = true;
        text = rest;
    }
    Some((flags, is_null))
}

fn parse_ace(text: &str, list: List) -> Result<Ace, PermissionError> {
    let mut fields = text.splitn(6, ';');
    let mut field = || fields.next().ok_or(PermissionError::Syntax);
    let (kind, flags, mask) = (field()?, field()?, field()?);
    let (object, inherited, sid) = (field()?, field()?, field()?);
    let kind = parse_kind(kind).filter(|kind| list.takes(*kind)).ok_or(PermissionError::Syntax)?;
    let flags = parse_flags(flags).ok_or(PermissionError::Syntax)?;
    let mask = rights::parse(mask, kind).ok_or(PermissionError::Syntax)?;
    let objects = parse_objects(object, inherited, kind).ok_or(PermissionError::Syntax)?;
    Ok(Ace { flags, body: AceBody::Rule(Rule { kind, mask, sid: Sid::parse_sddl(sid)?, objects }) })
}

fn parse_kind(text: &str) -> Option<AceKind> {
    ACE_KINDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, kind)| *kind)
}

fn parse_flags(text: &str) -> Option<AceFlags> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let named = |pair: &[u8; 2]| ACE_FLAGS.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(pair));
    let flags = pairs.iter().try_fold(AceFlags::NONE, |flags, pair| Some(flags.and(named(pair)?.1)));
    flags.filter(|_| rest.is_empty())
}

/// Only an object ACE has GUIDs, and it may do without.
fn parse_objects(object: &str, inherited: &str, kind: AceKind) -> Option<ObjectTypes> {
    let guid = |text: &str| if text.is_empty() { Some(None) } else { Guid::parse(text).map(Some) };
    let objects = ObjectTypes { object: guid(object)?, inherited: guid(inherited)? };
    (kind.has_objects() || objects == ObjectTypes::default()).then_some(objects)
}

pub(super) fn print(descriptor: &Descriptor) -> Result<String, PermissionError> {
    let mut text = String::new();
    for (letter, sid) in [("O:", descriptor.owner), ("G:", descriptor.group)] {
        if let Some(sid) = sid {
            text.push_str(letter);
            push(&mut text, &sid.sddl());
        }
    }
    for (letter, acl, list) in [("D:", &descriptor.dacl, List::Dacl), ("S:", &descriptor.sacl, List::Sacl)] {
        if let Some(acl) = acl {
            text.push_str(letter);
            print_acl(acl, list, &mut text)?;
        }
    }
    Ok(text)
}

fn print_acl(acl: &Acl, list: List, text: &mut String) -> Result<(), PermissionError> {
    let AclFlags { protected, inherit_required, auto_inherited } = acl.flags;
    let flags = [(protected, "P"), (inherit_required, "AR"), (auto_inherited, "AI"), (acl.aces.is_none(), NULL_ACL)];
    text.extend(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name));
    acl.aces.iter().flatten().try_for_each(|ace| print_ace(ace, list, text))
}

/// An ACE of a type or with a flag that has no name, or one that stands in the wrong list, cannot be read back: it is not printed.
fn print_ace(ace: &Ace, list: List, text: &mut String) -> Result<(), PermissionError> {
    let AceBody::Rule(Rule { kind, mask, sid, objects }) = &ace.body else { return Err(PermissionError::CustomAce) };
    let kind_name = ACE_KINDS.iter().find(|(_, known)| known == kind).filter(|_| list.takes(*kind));
    let (kind_name, _) = kind_name.ok_or(PermissionError::CustomAce)?;
    let flags = ACE_FLAGS.iter().filter(|(_, flag)| ace.flags.contains(*flag));
    if flags.clone().fold(AceFlags::NONE, |all, (_, flag)| all.and(*flag)) != ace.flags {
        return Err(PermissionError::CustomAce);
    }
    text.extend(["(", kind_name, ";"]);
    text.extend(flags.map(|(name, _)| *name));
    text.push(';');
    rights::print(*mask, *kind, text);
    for guid in [objects.object, objects.inherited] {
        text.push(';');
        guid.iter().for_each(|guid| push(text, guid));
    }
    text.push(';');
    push(text, &sid.sddl());
    text.push(')');
    Ok(())
}

fn push(text: &mut String, value: &dyn std::fmt::Display) {
    write!(text, "{value}").expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::tests::{EXAMPLES, numbers};

    fn printed(text: &str) -> Result<String, PermissionError> {
        Descriptor::parse_sddl(text)?.to_sddl()
    }

    #[test]
    fn realistic_descriptors_come_back_to_the_letter() {
        for text in EXAMPLES {
            assert_eq!(printed(text).as_deref(), Ok(text));
            let bytes = Descriptor::parse_sddl(text).expect(text).encode().expect("small enough");
            assert_eq!(Descriptor::decode(&bytes).and_then(|found| found.to_sddl()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn other_spellings_are_printed_in_the_usual_one() {
        for (text, usual) in [
            ("S:D:P", "D:PS:"),
            ("D:G:SYO:BA", "O:BAG:SYD:"),
            ("O:S-1-5-32-544G:S-1-5-18D:", "O:BAG:SYD:"),
            ("O:baG:sYD:(a;oici;ga;;;wd)", "O:BAG:SYD:(A;OICI;GA;;;WD)"),
            ("D:ARPAI(A;;GA;;;SY)", "D:PARAI(A;;GA;;;SY)"),
            ("D:PPPP", "D:P"),
            ("D:AINO_ACCESS_CONTROLP", "D:PAINO_ACCESS_CONTROL"),
            ("D:(A;IOIDCIOI;GRGX;;;BU)", "D:(A;OICIIOID;GXGR;;;BU)"),
            ("D:(A;OIOI;0x1f01ff;;;BU)", "D:(A;OI;FA;;;BU)"),
            ("D:(A;;FRFX;;;BU)", "D:(A;;0x1200a9;;;BU)"),
            ("S:(AU;FASA;17;;;WD)", "S:(AU;SAFA;CCRP;;;WD)"),
            (
                "D:(OA;;RP;BF967ABA-0DE6-11D0-A285-00AA003049E2;;RU)",
                "D:(OA;;RP;bf967aba-0de6-11d0-a285-00aa003049e2;;RU)",
            ),
            // The last letter belongs to the next part, although it is a hexadecimal digit.
            ("O:S-1-2-0x200D:", "O:S-1-2-512D:"),
            ("O:S-1-0x10000000ABCD:", "O:S-1-0x10000000ABCD:"),
        ] {
            assert_eq!(printed(text).as_deref(), Ok(usual), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_sddl() {
        for text in [
            " ",
            "invalidPermission",
            ":",
            "O:",
            "D",
            "Z:(A;;GA;;;SY)",
            "d:(A;;GA;;;SY)",
            "D:Z:",
            "D:P:S:",
            "D:D:",
            "O:BAO:BA",
            "O:BAG:SYD:G:SY",
            "O:BA ",
            " O:BA",
            "O:BAG:",
            "O:BAX",
            "D:X",
            "D:PX(A;;GA;;;SY)",
            "D:(A;;GA;;;SY",
            "D:A;;GA;;;SY)",
            "D:((A;;GA;;;SY))",
            "D:(A;;GA;;;SY)P",
            "D:(A;;GA;;;SY) (A;;GA;;;SY)",
            "D:()",
            "D:(A)",
            "D:(A;;GA;;)",
            "D:(A;;GA;;;)",
            "D:(A;;GA;;;SY;)",
            "D:(A;;GA;;;SY;(Member_of {SID(BA)}))",
            "D:(;;GA;;;SY)",
            "D:(B;;GA;;;SY)",
            "D:(XA;;GA;;;SY;(@User.a==1))",
            "D:(A;XX;GA;;;SY)",
            "D:(A;O;GA;;;SY)",
            "D:(A;OIC;GA;;;SY)",
            "D:(A;;ZZ;;;SY)",
            "D:(A;;0x1ffffffff;;;SY)",
            "D:(A;;GA;bf967aba-0de6-11d0-a285-00aa003049e2;;SY)",
            "D:(OA;;GA;bf967aba;;SY)",
            "D:(A;;GA;;;S-1-5-)",
            "D:(A;;GA;;;ZZ)",
            "D:(AU;SA;GA;;;SY)",
            "D:(ML;;NW;;;LW)",
            "S:(A;;GA;;;SY)",
            "S:(ML;;GA;;;LW)",
            "S:(RA;;;;;WD;(\"a\",TI,0,1))",
            "D:NO_ACCESS_CONTROL(A;;GA;;;SY)",
            "D:NO_ACCESS",
            "O:BAG:SYÄ:",
            "Ä:BA",
            "D:(Ä;;GA;;;SY)",
        ] {
            assert_eq!(printed(text), Err(PermissionError::Syntax), "{text:?}");
        }
    }

    #[test]
    fn an_account_of_a_domain_needs_its_sid() {
        for text in ["O:DAG:SYD:", "O:BAG:DUD:", "O:BAG:SYD:(A;;FA;;;DA)", "O:BAG:SYD:S:(AU;SA;FA;;;EA)", "O:LA"] {
            assert_eq!(printed(text), Err(PermissionError::DomainAlias), "{text}");
        }
    }

    #[test]
    fn a_share_wants_owner_group_and_dacl() {
        for (text, refusal) in [
            ("G:SYD:", PermissionError::OwnerMissing),
            ("O:BAD:", PermissionError::GroupMissing),
            ("O:BAG:SY", PermissionError::DaclMissing),
            ("O:BAG:SYS:", PermissionError::DaclMissing),
            ("D:", PermissionError::OwnerMissing),
            ("", PermissionError::OwnerMissing),
            ("O:BAG:DUD:", PermissionError::DomainAlias),
            ("O:BAG:SYD", PermissionError::Syntax),
            // Of two faults the one in the text is told.
            ("D:(A;;ZZ;;;SY)", PermissionError::Syntax),
        ] {
            assert_eq!(Descriptor::for_share(text), Err(refusal), "{text}");
            assert_eq!(refusal.code(), "FileInvalidPermission");
        }
        for text in ["O:BAG:SYD:", "O:BAG:SYD:NO_ACCESS_CONTROL", "O:BAG:SYD:P(A;;FA;;;AU)S:NO_ACCESS_CONTROL"] {
            assert_eq!(Descriptor::for_share(text).and_then(|found| found.to_sddl()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn some_aces_have_no_text() {
        let opaque = |kind: u8| Ace { flags: AceFlags::NONE, body: AceBody::Opaque { kind, bytes: [0; 16].into() } };
        let label = Ace::rule(AceKind::MandatoryLabel, AceFlags::NONE, 1, Sid::SYSTEM);
        let allow = Ace::rule(AceKind::Allow, AceFlags::NONE, 1, Sid::SYSTEM);
        let critical = Ace { flags: AceFlags::from_bits(0x20), ..allow.clone() };
        let list = |ace: &Ace| Some(Acl { flags: AclFlags::default(), aces: Some(vec![ace.clone()]) });
        // A conditional ACE, a flag without a name, and one of a SACL.
        for ace in [opaque(9), critical, label] {
            let descriptor = Descriptor { dacl: list(&ace), ..Descriptor::default() };
            assert_eq!(descriptor.to_sddl(), Err(PermissionError::CustomAce), "{ace:?}");
        }
        // A resource attribute, a scoped policy, and one of a DACL.
        for ace in [opaque(0x12), opaque(0x13), allow] {
            let descriptor = Descriptor { sacl: list(&ace), ..Descriptor::default() };
            assert_eq!(descriptor.to_sddl(), Err(PermissionError::CustomAce), "{ace:?}");
        }
        assert_eq!(PermissionError::CustomAce.code(), "CannotConvertToSddlDueToCustomAce");
    }

    #[test]
    fn a_text_has_limits() {
        let aces = |count: usize| format!("O:BAG:SYD:{}", "(A;;FA;;;S-1-5-21-1001-1001-1001-1)".repeat(count));
        assert!(Descriptor::for_share(&aces(240)).is_ok(), "more than the 8 KiB of a header");
        assert_eq!(Descriptor::for_share(&aces(2_000)), Err(PermissionError::TooLarge), "in its binary form");
        assert_eq!(Descriptor::for_share(&aces(100_000)), Err(PermissionError::TooLarge), "as a text");
        assert_eq!(Descriptor::for_share(&"D:".repeat(100_000)), Err(PermissionError::Syntax));
        assert_eq!(Descriptor::for_share(&format!("D:{}", "(".repeat(100_000))), Err(PermissionError::Syntax));
        // The longest text of an ACE for its length in bytes: the limit of the text leaves room for it.
        let longest = "(AU;OICINPIOIDSAFA;CCDCLCSWRPWPDTLOCRSDRCWDWOGAGXGWGR;;;S-1-0xFFFFFFFFFFFF)";
        let largest = format!("S:{}", longest.repeat((DESCRIPTOR_BYTES_MAX - 28) / 16));
        assert_eq!(printed(&largest), Ok(largest));
    }

    #[test]
    fn a_changed_text_is_refused_or_read_back() {
        const LETTERS: &[u8] = b"OGDSABUYIPC:;()-0159xR \xC3";
        let mut parsed = 0;
        for (example, text) in EXAMPLES.iter().enumerate() {
            for seed in 0..400 {
                let mut random = numbers(seed + 1000 * example as u64);
                let mut bytes = text.as_bytes().to_vec();
                for _ in 0..=random(2) {
                    let place = random(bytes.len() as u64) as usize;
                    bytes[place] = LETTERS[random(LETTERS.len() as u64) as usize];
                }
                let changed = String::from_utf8_lossy(&bytes);
                let Ok(descriptor) = Descriptor::parse_sddl(&changed) else { continue };
                parsed += 1;
                let text = descriptor.to_sddl().expect("what was read has a text");
                assert_eq!(Descriptor::parse_sddl(&text), Ok(descriptor), "{changed}");
            }
        }
        assert!(parsed > 100, "only {parsed} were SDDL");
    }
}
