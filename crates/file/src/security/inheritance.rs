//! Inheritance: the descriptor of a new file or directory, from what its creator gives and from its parent's descriptor.
//!
//! The rules are those of Windows (MS-DTYP 2.5.3.4), and recorded answers of the service agree with them:
//!
//! - An ACE of the parent is inherited by files if it has `OI`, by directories if it has `CI`. A directory also takes an ACE with `OI`
//!   alone, to pass it on (`IO`). `NP` ends the passing on.
//! - In an ACE that counts for the new file, Creator Owner and Creator Group become its owner and group, and generic rights become rights
//!   of files. A directory that passes the ACE on keeps it a second time as it was, with `IO`.
//! - Inherited ACEs get `ID`, and the list `AI`, if the list of the parent has `AI`. A list without it works as before Windows 2000: it
//!   marks nothing. The default of a share's root is such a list.
//! - A list that the creator gives is used instead of an inherited one. If the parent's has `AI` and the given one has no `P`, the
//!   inherited ACEs follow those that were given; given ACEs with `ID` are left out, as they came from another parent.
//! - Without any ACE in reach, the owner and SYSTEM may do everything (`FA`). A token of Windows says the same.
//!
//! This is what `x-ms-file-property-semantics: New` means for a permission. With `Restore`, and in operations on files that exist, the
//! given descriptor is stored as it is and nothing here is asked.

use super::{Ace, AceBody, AceFlags, AceKind, Acl, AclFlags, Descriptor, Rule, Sid};

const FILE_ALL: u32 = 0x001F_01FF;

/// What each generic right stands for on files and directories.
const GENERIC_RIGHTS: [(u32, u32); 4] =
    [(0x1000_0000, FILE_ALL), (0x2000_0000, 0x0012_00A0), (0x4000_0000, 0x0012_0116), (0x8000_0000, 0x0012_0089)];

const PASSED_ON: AceFlags = AceFlags::OBJECT_INHERIT.and(AceFlags::CONTAINER_INHERIT);
/// The flags that are about inheritance. The others stay with the ACE wherever it goes.
const INHERITANCE: AceFlags =
    PASSED_ON.and(AceFlags::NO_PROPAGATE).and(AceFlags::INHERIT_ONLY).and(AceFlags::INHERITED);

/// What the new descriptor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildKind {
    File,
    Directory,
}

/// The descriptor of a new file or directory in a directory with the descriptor `parent`.
///
/// `given` is what the creator asks for, and may lack any part; `Descriptor::default()` asks for nothing. Owner and group come from the
/// parent if they are not given: callers of REST have no SID. The result may be larger than a descriptor can be; [`super::Permission`]
/// refuses it then.
pub fn new_child(parent: &Descriptor, given: &Descriptor, kind: ChildKind) -> Descriptor {
    let heir = Heir { kind, owner: given.owner.or(parent.owner), group: given.group.or(parent.group) };
    let dacl = heir.acl(parent.dacl.as_ref(), given.dacl.as_ref());
    // A null SACL says no more than none: the service drops it from a new file.
    let sacl = heir.acl(parent.sacl.as_ref(), given.sacl.as_ref()).filter(|sacl| sacl.aces.is_some());
    Descriptor { owner: heir.owner, group: heir.group, dacl: dacl.or_else(|| Some(heir.default_dacl())), sacl }
}

/// Replaces generic rights by the rights of files that they stand for.
pub fn without_generic_rights(mask: u32) -> u32 {
    GENERIC_RIGHTS.iter().fold(mask, |mask, (generic, rights)| match mask & generic {
        0 => mask,
        _ => mask & !generic | rights,
    })
}

/// The new file or directory, as far as ACEs depend on it.
struct Heir {
    kind: ChildKind,
    owner: Option<Sid>,
    group: Option<Sid>,
}

impl Heir {
    /// One of the two lists; `None` if nothing is given and nothing is inherited.
    fn acl(&self, parent: Option<&Acl>, given: Option<&Acl>) -> Option<Acl> {
        let marks = parent.is_some_and(|acl| acl.flags.auto_inherited);
        let inherited = || self.inherited(parent, marks);
        match given {
            None => {
                let aces = inherited();
                let flags = AclFlags { auto_inherited: marks, ..AclFlags::default() };
                (!aces.is_empty()).then_some(Acl { flags, aces: Some(aces) })
            }
            Some(Acl { flags, aces }) => {
                let merges = marks && !flags.protected && aces.is_some();
                let flags = AclFlags { auto_inherited: merges, protected: flags.protected, inherit_required: false };
                let mut aces = aces.as_ref().map(|aces| self.given(aces, merges));
                aces.iter_mut().filter(|_| merges).for_each(|aces| aces.extend(inherited()));
                Some(Acl { flags, aces })
            }
        }
    }

    fn inherited(&self, parent: Option<&Acl>, marks: bool) -> Vec<Ace> {
        let mark = if marks { AceFlags::INHERITED } else { AceFlags::NONE };
        let aces = parent.and_then(|acl| acl.aces.as_deref()).unwrap_or_default();
        let inherited = aces.iter().filter_map(|ace| Some((ace, inherited_flags(ace.flags, self.kind)?.and(mark))));
        inherited.flat_map(|(ace, flags)| self.settled(&ace.body, flags)).collect()
    }

    /// The ACEs that the creator gives. If others are inherited, those that an earlier parent left there do not stay.
    fn given(&self, aces: &[Ace], merges: bool) -> Vec<Ace> {
        let kept = aces.iter().filter(|ace| !(merges && ace.flags.contains(AceFlags::INHERITED)));
        kept.flat_map(|ace| self.settled(&ace.body, ace.flags)).collect()
    }

    /// An ACE as it counts here, and again as it is passed on, if the two differ.
    fn settled(&self, body: &AceBody, flags: AceFlags) -> impl Iterator<Item = Ace> {
        let as_it_is = Ace { flags, body: body.clone() };
        let resolved = self.resolved(body);
        if flags.contains(AceFlags::INHERIT_ONLY) || resolved == *body {
            return [Some(as_it_is), None].into_iter().flatten();
        }
        let is_passed_on = self.kind == ChildKind::Directory && !flags.common(PASSED_ON).is_none();
        let own_flags = if is_passed_on { flags.without(PASSED_ON.and(AceFlags::NO_PROPAGATE)) } else { flags };
        let passed_on = Ace { flags: flags.and(AceFlags::INHERIT_ONLY), ..as_it_is };
        [Some(Ace { flags: own_flags, body: resolved }), Some(passed_on).filter(|_| is_passed_on)].into_iter().flatten()
    }

    /// What the ACE means for this file. An opaque ACE is not looked into.
    fn resolved(&self, body: &AceBody) -> AceBody {
        let AceBody::Rule(rule) = body else { return body.clone() };
        let sid = match rule.sid {
            Sid::CREATOR_OWNER => self.owner,
            Sid::CREATOR_GROUP => self.group,
            _ => None,
        };
        let mask = if rule.kind == AceKind::MandatoryLabel { rule.mask } else { without_generic_rights(rule.mask) };
        AceBody::Rule(Rule { mask, sid: sid.unwrap_or(rule.sid), ..rule.clone() })
    }

    fn default_dacl(&self) -> Acl {
        let sids = self.owner.into_iter().filter(|owner| *owner != Sid::SYSTEM).chain([Sid::SYSTEM]);
        let aces = sids.map(|sid| Ace::rule(AceKind::Allow, AceFlags::NONE, FILE_ALL, sid));
        Acl { flags: AclFlags::default(), aces: Some(aces.collect()) }
    }
}

/// The flags that an ACE of the parent has in the child; `None` if the child does not inherit it.
fn inherited_flags(flags: AceFlags, kind: ChildKind) -> Option<AceFlags> {
    let rest = flags.without(INHERITANCE);
    let (for_files, for_directories) =
        (flags.contains(AceFlags::OBJECT_INHERIT), flags.contains(AceFlags::CONTAINER_INHERIT));
    let passes_on = !flags.contains(AceFlags::NO_PROPAGATE);
    match kind {
        ChildKind::File => for_files.then_some(rest),
        ChildKind::Directory if for_directories && passes_on => Some(rest.and(flags.common(PASSED_ON))),
        ChildKind::Directory if for_directories => Some(rest),
        ChildKind::Directory if for_files && passes_on => {
            Some(rest.and(AceFlags::OBJECT_INHERIT).and(AceFlags::INHERIT_ONLY))
        }
        ChildKind::Directory => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::root_directory;

    fn parsed(text: &str) -> Descriptor {
        Descriptor::parse_sddl(text).expect(text)
    }

    fn child(parent: &str, given: &str, kind: ChildKind) -> String {
        let given = if given.is_empty() { Descriptor::default() } else { parsed(given) };
        new_child(&parsed(parent), &given, kind).to_sddl().expect("it has a text")
    }

    fn file(parent: &str, given: &str) -> String {
        child(parent, given, ChildKind::File)
    }

    fn directory(parent: &str, given: &str) -> String {
        child(parent, given, ChildKind::Directory)
    }

    /// Every set of flags on one ACE of the parent: what a file has of it, and what a directory has.
    #[test]
    fn the_table_of_flags() {
        let nothing = "(A;;FA;;;BA)(A;;FA;;;SY)";
        let plain = "(A;;FR;;;AU)";
        for (flags, in_file, in_directory) in [
            ("", nothing, nothing),
            ("OI", plain, "(A;OIIO;FR;;;AU)"),
            ("CI", nothing, "(A;CI;FR;;;AU)"),
            ("OICI", plain, "(A;OICI;FR;;;AU)"),
            ("NP", nothing, nothing),
            ("OINP", plain, nothing),
            ("CINP", nothing, plain),
            ("OICINP", plain, plain),
            ("IO", nothing, nothing),
            ("OIIO", plain, "(A;OIIO;FR;;;AU)"),
            ("CIIO", nothing, "(A;CI;FR;;;AU)"),
            ("OICIIO", plain, "(A;OICI;FR;;;AU)"),
            ("NPIO", nothing, nothing),
            ("OINPIO", plain, nothing),
            ("CINPIO", nothing, plain),
            ("OICINPIO", plain, plain),
        ] {
            for mark in ["", "ID"] {
                let parent = format!("O:BAG:SYD:(A;{flags}{mark};FR;;;AU)");
                assert_eq!(file(&parent, ""), format!("O:BAG:SYD:{in_file}"), "{flags}{mark}");
                assert_eq!(directory(&parent, ""), format!("O:BAG:SYD:{in_directory}"), "{flags}{mark}");
            }
        }
    }

    /// The same for an ACE that is for the creator of each file.
    #[test]
    fn the_table_of_flags_for_the_creator() {
        let default = "(A;;FA;;;BA)(A;;FA;;;SY)";
        let owner = "(A;;FR;;;BA)";
        for (flags, in_file, in_directory) in [
            ("", default, default),
            ("OI", owner, "(A;OIIO;FR;;;CO)"),
            ("CI", default, "(A;;FR;;;BA)(A;CIIO;FR;;;CO)"),
            ("OICI", owner, "(A;;FR;;;BA)(A;OICIIO;FR;;;CO)"),
            ("OINP", owner, default),
            ("CINP", default, owner),
            ("OICINP", owner, owner),
            ("OIIO", owner, "(A;OIIO;FR;;;CO)"),
            ("CIIO", default, "(A;;FR;;;BA)(A;CIIO;FR;;;CO)"),
            ("OICIIO", owner, "(A;;FR;;;BA)(A;OICIIO;FR;;;CO)"),
            ("OICINPIO", owner, owner),
        ] {
            let parent = format!("O:BAG:SYD:(A;{flags};FR;;;CO)");
            assert_eq!(file(&parent, ""), format!("O:BAG:SYD:{in_file}"), "{flags}");
            assert_eq!(directory(&parent, ""), format!("O:BAG:SYD:{in_directory}"), "{flags}");
        }
    }

    /// The answers of the service for a share as it is made, except that its root belonged to SYSTEM.
    #[test]
    fn what_inherits_from_the_default_of_a_root() {
        let root = Descriptor { owner: Some(Sid::SYSTEM), ..root_directory() };
        let inherits = |kind| new_child(&root, &Descriptor::default(), kind).to_sddl();
        let file = "O:SYG:SYD:(A;;FA;;;BA)(A;;FA;;;SY)(A;;0x1200a9;;;BU)(A;;0x1301bf;;;AU)(A;;FA;;;SY)";
        let directory = "O:SYG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;;0x1200a9;;;BU)(A;OICIIO;GXGR;;;BU)(A;OICI;0x1301bf;;;AU)(A;;FA;;;SY)(A;OICIIO;GA;;;CO)";
        assert_eq!(inherits(ChildKind::File).as_deref(), Ok(file));
        assert_eq!(inherits(ChildKind::Directory).as_deref(), Ok(directory));
        let belongs_to_administrators = directory.replace("O:SY", "O:BA").replace("(A;;FA;;;SY)", "(A;;FA;;;BA)");
        let of_ours = new_child(&root_directory(), &Descriptor::default(), ChildKind::Directory);
        assert_eq!(of_ours.to_sddl(), Ok(belongs_to_administrators));
    }

    /// A directory and the directories in it inherit alike.
    #[test]
    fn a_directory_inherits_what_its_parent_inherited() {
        let first = new_child(&root_directory(), &Descriptor::default(), ChildKind::Directory);
        let second = new_child(&first, &Descriptor::default(), ChildKind::Directory);
        assert_eq!(second, first);
    }

    #[test]
    fn owner_and_group_are_given_or_the_parents() {
        let parent = "O:BAG:SYD:(A;OICI;FA;;;CO)(A;OICI;FR;;;CG)";
        for (given, expected) in [
            ("", "O:BAG:SYD:(A;;FA;;;BA)(A;;FR;;;SY)"),
            ("O:BU", "O:BUG:SYD:(A;;FA;;;BU)(A;;FR;;;SY)"),
            ("G:BU", "O:BAG:BUD:(A;;FA;;;BA)(A;;FR;;;BU)"),
            ("O:AUG:BU", "O:AUG:BUD:(A;;FA;;;AU)(A;;FR;;;BU)"),
        ] {
            assert_eq!(file(parent, given), expected, "{given}");
        }
        let nobody = new_child(&parsed("D:(A;OI;FA;;;CO)"), &Descriptor::default(), ChildKind::File);
        assert_eq!(nobody.to_sddl().as_deref(), Ok("D:(A;;FA;;;CO)"));
    }

    #[test]
    fn a_list_with_ai_marks_what_is_inherited() {
        let parent = "O:BAG:SYD:AI(A;OICI;FA;;;BA)(A;OICIIO;GA;;;CO)(A;;FR;;;BU)(A;OICIID;FR;;;AU)";
        assert_eq!(file(parent, ""), "O:BAG:SYD:AI(A;ID;FA;;;BA)(A;ID;FA;;;BA)(A;ID;FR;;;AU)");
        assert_eq!(
            directory(parent, ""),
            "O:BAG:SYD:AI(A;OICIID;FA;;;BA)(A;ID;FA;;;BA)(A;OICIIOID;GA;;;CO)(A;OICIID;FR;;;AU)"
        );
        let protected = parent.replace("D:AI", "D:PAI");
        assert_eq!(file(&protected, ""), file(parent, ""), "the parent's own P does not matter");
    }

    #[test]
    fn a_given_list_stands_alone_or_is_followed_by_what_is_inherited() {
        let silent = "O:BAG:SYD:(A;OICI;FA;;;SY)";
        let marking = "O:BAG:SYD:AI(A;OICI;FA;;;SY)";
        for (given, below_silent, below_marking) in [
            ("D:(A;;FR;;;AU)", "D:(A;;FR;;;AU)", "D:AI(A;;FR;;;AU)(A;ID;FA;;;SY)"),
            ("D:AI(A;;FR;;;AU)", "D:(A;;FR;;;AU)", "D:AI(A;;FR;;;AU)(A;ID;FA;;;SY)"),
            ("D:ARAI(A;;FR;;;AU)", "D:(A;;FR;;;AU)", "D:AI(A;;FR;;;AU)(A;ID;FA;;;SY)"),
            ("D:AI(A;;FR;;;AU)(A;ID;FW;;;BU)", "D:(A;;FR;;;AU)(A;ID;FW;;;BU)", "D:AI(A;;FR;;;AU)(A;ID;FA;;;SY)"),
            ("D:P(A;;FR;;;AU)", "D:P(A;;FR;;;AU)", "D:P(A;;FR;;;AU)"),
            ("D:PAI(A;ID;FR;;;AU)", "D:P(A;ID;FR;;;AU)", "D:P(A;ID;FR;;;AU)"),
            ("D:", "D:", "D:AI(A;ID;FA;;;SY)"),
            ("D:P", "D:P", "D:P"),
            ("D:NO_ACCESS_CONTROL", "D:NO_ACCESS_CONTROL", "D:NO_ACCESS_CONTROL"),
        ] {
            assert_eq!(file(silent, given), format!("O:BAG:SY{below_silent}"), "{given}");
            assert_eq!(file(marking, given), format!("O:BAG:SY{below_marking}"), "{given}");
        }
    }

    /// The service was asked to create a file in the root with the first and showed the second.
    #[test]
    fn a_given_permission_in_the_root_loses_the_flags_of_its_lists() {
        let given = crate::security::tests::EXAMPLES[1];
        let shown = given.replace("D:AI", "D:").replace("S:NO_ACCESS_CONTROL", "");
        assert_eq!(new_child(&root_directory(), &parsed(given), ChildKind::File).to_sddl(), Ok(shown));
    }

    #[test]
    fn a_given_ace_counts_for_the_new_file() {
        let parent = "O:BAG:SYD:";
        for (given, in_file, in_directory) in [
            ("(A;;GA;;;CO)", "(A;;FA;;;BA)", "(A;;FA;;;BA)"),
            ("(A;;GXGR;;;CG)", "(A;;0x1200a9;;;SY)", "(A;;0x1200a9;;;SY)"),
            ("(A;;GW;;;AU)", "(A;;FW;;;AU)", "(A;;FW;;;AU)"),
            ("(A;OICI;GA;;;AU)", "(A;OICI;FA;;;AU)", "(A;;FA;;;AU)(A;OICIIO;GA;;;AU)"),
            ("(A;CINP;GA;;;AU)", "(A;CINP;FA;;;AU)", "(A;;FA;;;AU)(A;CINPIO;GA;;;AU)"),
            ("(A;OICIIO;GA;;;CO)", "(A;OICIIO;GA;;;CO)", "(A;OICIIO;GA;;;CO)"),
            ("(A;OICI;FA;;;AU)", "(A;OICI;FA;;;AU)", "(A;OICI;FA;;;AU)"),
            ("(A;;FA;;;OW)", "(A;;FA;;;OW)", "(A;;FA;;;OW)"),
        ] {
            let text = format!("D:{given}");
            assert_eq!(file(parent, &text), format!("O:BAG:SYD:{in_file}"), "{given}");
            assert_eq!(directory(parent, &text), format!("O:BAG:SYD:{in_directory}"), "{given}");
        }
    }

    #[test]
    fn without_an_ace_the_owner_and_system_may_do_everything() {
        for parent in ["O:BAG:SYD:", "O:BAG:SYD:AI(A;;FA;;;AU)", "O:BAG:SYD:NO_ACCESS_CONTROL", "O:BAG:SY"] {
            assert_eq!(file(parent, ""), "O:BAG:SYD:(A;;FA;;;BA)(A;;FA;;;SY)", "{parent}");
        }
        assert_eq!(file("O:SYG:SYD:", ""), "O:SYG:SYD:(A;;FA;;;SY)");
    }

    #[test]
    fn a_sacl_is_inherited_like_a_dacl() {
        let parent = "O:BAG:SYD:(A;OI;FA;;;SY)S:AI(AU;OISA;GA;;;CO)(AU;CIFA;FW;;;WD)(ML;OICI;NWNR;;;LW)";
        assert_eq!(file(parent, ""), "O:BAG:SYD:(A;;FA;;;SY)S:AI(AU;IDSA;FA;;;BA)(ML;ID;NWNR;;;LW)");
        assert_eq!(
            directory(parent, "D:P"),
            "O:BAG:SYD:PS:AI(AU;OIIOIDSA;GA;;;CO)(AU;CIIDFA;FW;;;WD)(ML;OICIID;NWNR;;;LW)"
        );
        for (given, expected) in [
            ("S:(AU;SA;FR;;;WD)", "S:AI(AU;SA;FR;;;WD)(AU;IDSA;FA;;;BA)(ML;ID;NWNR;;;LW)"),
            ("S:P(AU;SA;FR;;;WD)", "S:P(AU;SA;FR;;;WD)"),
            ("S:P", "S:P"),
            ("S:NO_ACCESS_CONTROL", ""),
        ] {
            assert_eq!(file(parent, given), format!("O:BAG:SYD:(A;;FA;;;SY){expected}"), "{given}");
        }
        assert_eq!(file("O:BAG:SYD:(A;OI;FA;;;SY)", "S:"), "O:BAG:SYD:(A;;FA;;;SY)S:");
    }

    #[test]
    fn aces_that_are_not_understood_are_inherited_as_they_are() {
        let conditional = Ace {
            flags: AceFlags::OBJECT_INHERIT,
            body: AceBody::Opaque { kind: 9, bytes: [0, 0, 0, 0x10, 1, 2, 3, 4].into() },
        };
        let dacl = Some(Acl { flags: AclFlags::default(), aces: Some(vec![conditional.clone()]) });
        let parent = Descriptor { dacl, ..parsed("O:BAG:SY") };
        let of = |kind| new_child(&parent, &Descriptor::default(), kind).dacl.and_then(|dacl| dacl.aces);
        let in_directory = AceFlags::OBJECT_INHERIT.and(AceFlags::INHERIT_ONLY);
        assert_eq!(of(ChildKind::File), Some(vec![Ace { flags: AceFlags::NONE, ..conditional.clone() }]));
        assert_eq!(of(ChildKind::Directory), Some(vec![Ace { flags: in_directory, ..conditional }]));
    }

    #[test]
    fn generic_rights_stand_for_rights_of_files() {
        for (mask, rights) in [
            (0, 0),
            (0x1000_0000, 0x1F_01FF),
            (0x2000_0000, 0x12_00A0),
            (0x4000_0000, 0x12_0116),
            (0x8000_0000, 0x12_0089),
            (0xA000_0000, 0x12_00A9),
            (0xE001_0000, 0x13_01BF),
            (0x8000_0004, 0x12_008D),
            (0x0013_01BF, 0x13_01BF),
        ] {
            assert_eq!(without_generic_rights(mask), rights, "{mask:#x}");
        }
    }
}
