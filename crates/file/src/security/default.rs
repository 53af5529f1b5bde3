//! The descriptor that the root directory of a new share has.

use super::{Ace, AceFlags, AceKind, Acl, AclFlags, Descriptor, Sid};

const FULL: u32 = 0x001F_01FF;
const MODIFY: u32 = 0x0013_01BF;
const READ_AND_EXECUTE: u32 = 0x0012_00A9;
const GENERIC_READ_AND_EXECUTE: u32 = 0xA000_0000;
const GENERIC_ALL: u32 = 0x1000_0000;

/// The documented default of the service. The list has no flags, so what inherits from it has none either, as the service's answers show.
///
/// The documentation does not name the owner. Files that were made over REST without a permission belonged to Administrators or to SYSTEM,
/// and to the group SYSTEM; as new files take both from their parent, the root belongs to Administrators and SYSTEM.
pub fn root_directory() -> Descriptor {
    let inherit = AceFlags::OBJECT_INHERIT.and(AceFlags::CONTAINER_INHERIT);
    let inherit_only = inherit.and(AceFlags::INHERIT_ONLY);
    let allow = |flags: AceFlags, mask: u32, sid: Sid| Ace::rule(AceKind::Allow, flags, mask, sid);
    let aces = vec![
        allow(inherit, FULL, Sid::ADMINISTRATORS),
        allow(inherit, FULL, Sid::SYSTEM),
        allow(AceFlags::NONE, READ_AND_EXECUTE, Sid::USERS),
        allow(inherit_only, GENERIC_READ_AND_EXECUTE, Sid::USERS),
        allow(inherit, MODIFY, Sid::AUTHENTICATED_USERS),
        allow(inherit_only, GENERIC_ALL, Sid::CREATOR_OWNER),
    ];
    Descriptor {
        owner: Some(Sid::ADMINISTRATORS),
        group: Some(Sid::SYSTEM),
        dacl: Some(Acl { flags: AclFlags::default(), aces: Some(aces) }),
        sacl: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_as_sddl() {
        let text = "O:BAG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;;0x1200a9;;;BU)(A;OICIIO;GXGR;;;BU)(A;OICI;0x1301bf;;;AU)(A;OICIIO;GA;;;CO)";
        assert_eq!(root_directory().to_sddl().as_deref(), Ok(text));
        assert_eq!(Descriptor::for_share(text), Ok(root_directory()));
    }
}
