//! One entry of an access control list, and its binary form (MS-DTYP 2.4.4).

use std::fmt;

use super::Sid;

/// Type, flags and length.
const HEADER_BYTES: usize = 4;
const OBJECT_TYPE_PRESENT: u32 = 1;
const INHERITED_OBJECT_TYPE_PRESENT: u32 = 2;

/// An access control entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ace {
    pub flags: AceFlags,
    pub body: AceBody,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AceBody {
    Rule(Rule),
    /// An ACE of another type: conditional, resource attribute, or unknown. Kept byte for byte, so that it comes back as it came;
    /// SDDL cannot express it.
    Opaque {
        kind: u8,
        bytes: Box<[u8]>,
    },
}

/// One SID and what it is allowed, denied or watched for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    pub kind: AceKind,
    /// The rights, one bit for each.
    pub mask: u32,
    pub sid: Sid,
    /// Empty unless the kind is one of the object kinds.
    pub objects: ObjectTypes,
}

/// The types that are understood. The object kinds come from directory services; a file keeps them without a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AceKind {
    Allow,
    Deny,
    Audit,
    AllowObject,
    DenyObject,
    AuditObject,
    /// The integrity level, in a SACL.
    MandatoryLabel,
}

/// Which kind of objects, properties or children an object ACE is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ObjectTypes {
    pub object: Option<Guid>,
    pub inherited: Option<Guid>,
}

/// In the byte order of the binary form.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Guid(pub [u8; 16]);

impl Ace {
    pub fn rule(kind: AceKind, flags: AceFlags, mask: u32, sid: Sid) -> Ace {
        Ace { flags, body: AceBody::Rule(Rule { kind, mask, sid, objects: ObjectTypes::default() }) }
    }

    /// Reads the ACE at the start of `bytes` and tells its length.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Ace, usize)> {
        let &[kind, flags, low, high] = bytes.first_chunk::<HEADER_BYTES>()?;
        let length = usize::from(u16::from_le_bytes([low, high]));
        let body = bytes.get(HEADER_BYTES..length).filter(|_| length.is_multiple_of(4))?;
        Some((Ace { flags: AceFlags(flags), body: AceBody::decode(kind, body)? }, length))
    }

    /// The caller has checked that the whole descriptor fits, so the length fits its 16 bits.
    pub(super) fn encode_into(&self, bytes: &mut Vec<u8>) {
        bytes.extend([self.body.type_byte(), self.flags.0]);
        bytes.extend((self.encoded_len() as u16).to_le_bytes());
        match &self.body {
            AceBody::Rule(rule) => rule.encode_into(bytes),
            AceBody::Opaque { bytes: body, .. } => bytes.extend(body),
        }
    }

    pub(super) fn encoded_len(&self) -> usize {
        HEADER_BYTES
            + match &self.body {
                AceBody::Rule(rule) => rule.encoded_len(),
                AceBody::Opaque { bytes, .. } => bytes.len(),
            }
    }

    /// Object ACEs, and the opaque types that have GUIDs like them, need a newer revision of the list.
    pub(super) fn is_of_revision_4(&self) -> bool {
        matches!(self.body.type_byte(), 5..=8 | 11 | 12 | 15 | 16)
    }
}

impl AceBody {
    fn decode(kind: u8, bytes: &[u8]) -> Option<AceBody> {
        match AceKind::EVERY.into_iter().find(|known| known.type_byte() == kind) {
            Some(kind) => Some(AceBody::Rule(Rule::decode(kind, bytes)?)),
            None => Some(AceBody::Opaque { kind, bytes: bytes.into() }),
        }
    }

    fn type_byte(&self) -> u8 {
        match self {
            AceBody::Rule(rule) => rule.kind.type_byte(),
            AceBody::Opaque { kind, .. } => *kind,
        }
    }
}

impl Rule {
    /// Bytes behind the SID mean nothing in these types and are dropped.
    fn decode(kind: AceKind, bytes: &[u8]) -> Option<Rule> {
        let (mask, mut rest) = bytes.split_first_chunk()?;
        let mut objects = ObjectTypes::default();
        if kind.has_objects() {
            (objects, rest) = ObjectTypes::decode(rest)?;
        }
        Some(Rule { kind, mask: u32::from_le_bytes(*mask), sid: Sid::decode(rest)?, objects })
    }

    fn encode_into(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.mask.to_le_bytes());
        if self.kind.has_objects() {
            self.objects.encode_into(bytes);
        }
        self.sid.encode_into(bytes);
    }

    fn encoded_len(&self) -> usize {
        let objects = if self.kind.has_objects() { self.objects.encoded_len() } else { 0 };
        size_of::<u32>() + objects + self.sid.encoded_len()
    }
}

impl AceKind {
    pub const EVERY: [AceKind; 7] = [
        AceKind::Allow,
        AceKind::Deny,
        AceKind::Audit,
        AceKind::AllowObject,
        AceKind::DenyObject,
        AceKind::AuditObject,
        AceKind::MandatoryLabel,
    ];

    fn type_byte(self) -> u8 {
        match self {
            AceKind::Allow => 0,
            AceKind::Deny => 1,
            AceKind::Audit => 2,
            AceKind::AllowObject => 5,
            AceKind::DenyObject => 6,
            AceKind::AuditObject => 7,
            AceKind::MandatoryLabel => 0x11,
        }
    }

    pub fn has_objects(self) -> bool {
        matches!(self, AceKind::AllowObject | AceKind::DenyObject | AceKind::AuditObject)
    }

    /// Whether ACEs of this kind belong in a DACL; the others belong in a SACL.
    pub fn is_for_dacl(self) -> bool {
        matches!(self, AceKind::Allow | AceKind::Deny | AceKind::AllowObject | AceKind::DenyObject)
    }
}

impl ObjectTypes {
    /// What is there, and what follows it.
    fn decode(bytes: &[u8]) -> Option<(ObjectTypes, &[u8])> {
        let (present, mut rest) = bytes.split_first_chunk()?;
        let present = u32::from_le_bytes(*present);
        let mut guid = |bit: u32| -> Option<Option<Guid>> {
            if present & bit == 0 {
                return Some(None);
            }
            let (guid, after) = rest.split_first_chunk()?;
            rest = after;
            Some(Some(Guid(*guid)))
        };
        let objects =
            ObjectTypes { object: guid(OBJECT_TYPE_PRESENT)?, inherited: guid(INHERITED_OBJECT_TYPE_PRESENT)? };
        Some((objects, rest))
    }

    fn encode_into(&self, bytes: &mut Vec<u8>) {
        let present = |guid: Option<Guid>, bit: u32| guid.map_or(0, |_| bit);
        let present =
            present(self.object, OBJECT_TYPE_PRESENT) | present(self.inherited, INHERITED_OBJECT_TYPE_PRESENT);
        bytes.extend(present.to_le_bytes());
        bytes.extend(self.guids().flat_map(|guid| guid.0));
    }

    fn encoded_len(&self) -> usize {
        size_of::<u32>() + size_of::<Guid>() * self.guids().count()
    }

    fn guids(&self) -> impl Iterator<Item = Guid> {
        self.object.into_iter().chain(self.inherited)
    }
}

impl Guid {
    /// Reads `bf967aba-0de6-11d0-a285-00aa003049e2`. The first three numbers are stored least significant byte first.
    pub fn parse(text: &str) -> Option<Guid> {
        let lengths_fit = text.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
        let digits = text.replace('-', "");
        let number = u128::from_str_radix(&digits, 16).ok().filter(|_| lengths_fit && !digits.starts_with('+'))?;
        Some(Guid(Guid::swapped(number.to_be_bytes())))
    }

    /// From the order of the text to that of the binary form, or back.
    fn swapped(mut bytes: [u8; 16]) -> [u8; 16] {
        bytes[..4].reverse();
        bytes[4..6].reverse();
        bytes[6..8].reverse();
        bytes
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", u128::from_be_bytes(Guid::swapped(self.0)));
        write!(f, "{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How an ACE is passed on to new files and directories, and which outcome an audit ACE is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct AceFlags(u8);

impl AceFlags {
    pub const NONE: AceFlags = AceFlags(0);
    /// `OI`: new files inherit it.
    pub const OBJECT_INHERIT: AceFlags = AceFlags(0x01);
    /// `CI`: new directories inherit it.
    pub const CONTAINER_INHERIT: AceFlags = AceFlags(0x02);
    /// `NP`: what inherits it does not pass it on.
    pub const NO_PROPAGATE: AceFlags = AceFlags(0x04);
    /// `IO`: it does not count for the directory that has it.
    pub const INHERIT_ONLY: AceFlags = AceFlags(0x08);
    /// `ID`: it came from the parent.
    pub const INHERITED: AceFlags = AceFlags(0x10);
    /// `SA`.
    pub const AUDIT_SUCCESS: AceFlags = AceFlags(0x40);
    /// `FA`.
    pub const AUDIT_FAILURE: AceFlags = AceFlags(0x80);

    pub fn from_bits(bits: u8) -> AceFlags {
        AceFlags(bits)
    }

    #[must_use]
    pub const fn and(self, other: AceFlags) -> AceFlags {
        AceFlags(self.0 | other.0)
    }

    #[must_use]
    pub const fn without(self, other: AceFlags) -> AceFlags {
        AceFlags(self.0 & !other.0)
    }

    /// Those that are in both sets.
    #[must_use]
    pub const fn common(self, other: AceFlags) -> AceFlags {
        AceFlags(self.0 & other.0)
    }

    pub fn contains(self, other: AceFlags) -> bool {
        other.without(self).is_none()
    }

    pub fn is_none(self) -> bool {
        self == AceFlags::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUID: &str = "bf967aba-0de6-11d0-a285-00aa003049e2";

    fn encoded(ace: &Ace) -> Vec<u8> {
        let mut bytes = Vec::new();
        ace.encode_into(&mut bytes);
        assert_eq!(bytes.len(), ace.encoded_len());
        bytes
    }

    fn object_ace(object: bool, inherited: bool) -> Ace {
        let guid = Guid::parse(GUID);
        let objects = ObjectTypes { object: guid.filter(|_| object), inherited: guid.filter(|_| inherited) };
        let rule = Rule { kind: AceKind::AllowObject, mask: 0x10, sid: Sid::SYSTEM, objects };
        Ace { flags: AceFlags::NONE, body: AceBody::Rule(rule) }
    }

    #[test]
    fn an_ace_written_out() {
        let flags = AceFlags::OBJECT_INHERIT.and(AceFlags::CONTAINER_INHERIT);
        let ace = Ace::rule(AceKind::Deny, flags, 0x001F_01FF, Sid::SYSTEM);
        let bytes = [1, 3, 20, 0, 0xFF, 1, 0x1F, 0, 1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
        assert_eq!(encoded(&ace), bytes);
        assert_eq!(Ace::decode(&bytes), Some((ace, 20)));
    }

    #[test]
    fn every_kind_comes_back() {
        for kind in AceKind::EVERY {
            let ace = Ace::rule(kind, AceFlags::INHERITED, 0x1234, Sid::ADMINISTRATORS);
            assert_eq!(Ace::decode(&encoded(&ace)), Some((ace.clone(), ace.encoded_len())));
        }
        for (object, inherited) in [(false, false), (false, true), (true, false), (true, true)] {
            let ace = object_ace(object, inherited);
            assert_eq!(Ace::decode(&encoded(&ace)).map(|(ace, _)| ace), Some(ace));
        }
    }

    #[test]
    fn other_types_are_kept_byte_for_byte() {
        for kind in [3, 4, 8, 9, 0x12, 0x13, 0x14, 0xFF] {
            let bytes = [kind, 0x10, 12, 0, 1, 2, 3, 4, 5, 6, 7, 8];
            let (ace, length) = Ace::decode(&bytes).expect("an opaque ACE");
            assert!(matches!(ace.body, AceBody::Opaque { kind: kept, .. } if kept == kind));
            assert_eq!((encoded(&ace), length), (bytes.to_vec(), 12));
        }
        assert!(Ace::decode(&[9, 0, 4, 0]).is_some(), "with nothing in it");
    }

    #[test]
    fn bytes_behind_the_sid_are_dropped() {
        let plain = encoded(&Ace::rule(AceKind::Allow, AceFlags::NONE, 1, Sid::SYSTEM));
        let mut longer = plain.clone();
        longer.extend([0xAB; 8]);
        longer[2] += 8;
        let (ace, length) = Ace::decode(&longer).expect("an ACE");
        assert_eq!((encoded(&ace), length), (plain, 28));
    }

    #[test]
    fn damaged_bytes_are_no_ace() {
        let whole = encoded(&object_ace(true, true));
        for length in 0..whole.len() {
            assert_eq!(Ace::decode(&whole[..length]), None, "{length} of its bytes");
            let mut shorter = whole.clone();
            shorter[2] = length as u8;
            assert_eq!(Ace::decode(&shorter), None, "said to have {length} bytes");
        }
        for (length, why) in [(0, "no header"), (3, "less than the header"), (6, "no multiple of four")] {
            assert_eq!(Ace::decode(&[9, 0, length, 0, 0, 0, 0, 0]), None, "{why}");
        }
    }

    #[test]
    fn text_and_bytes_of_a_guid() {
        let bytes = [0xBA, 0x7A, 0x96, 0xBF, 0xE6, 0x0D, 0xD0, 0x11, 0xA2, 0x85, 0, 0xAA, 0, 0x30, 0x49, 0xE2];
        assert_eq!(Guid::parse(GUID), Some(Guid(bytes)));
        assert_eq!(Guid::parse(&GUID.to_uppercase()), Some(Guid(bytes)));
        assert_eq!(Guid(bytes).to_string(), GUID);
        for text in [
            "",
            "bf967aba",
            "bf967aba0de611d0a28500aa003049e2",
            "bf967aba-0de6-11d0-a285-00aa003049e",
            "bf967aba-0de6-11d0-a285-00aa003049e22",
            "+f967aba-0de6-11d0-a285-00aa003049e2",
            "bf967aba-0de6-11d0-a285-00aa003049eg",
            "{bf967aba-0de6-11d0-a285-00aa003049e2}",
            "bf967ab-a0de6-11d0-a285-00aa003049e2",
            "bf967aba-0de6-11d0-a285-00aa003049é",
        ] {
            assert_eq!(Guid::parse(text), None, "{text}");
        }
    }
}
