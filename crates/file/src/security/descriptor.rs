//! Security descriptors and their self-relative binary form (MS-DTYP 2.4.6).
//!
//! A descriptor has many binary forms: its parts may lie in any order, share bytes or have gaps between them. All are read; one is
//! written, the canonical form: SACL, DACL, owner, group, without gaps, as the service itself lays them out. Equal descriptors have equal
//! canonical forms. Bits that say how a part came about (defaulted, trusted, resource manager) are read and forgotten: SDDL cannot
//! express them, and a stored descriptor has no use for them.

use super::{Ace, PermissionError, Sid, sddl};

/// The limit of NTFS. It keeps every length of the binary form within its 16 bits.
pub const DESCRIPTOR_BYTES_MAX: usize = 64 * 1024;

const HEADER_BYTES: usize = 20;
const ACL_HEADER_BYTES: usize = 8;
const REVISION: u8 = 1;
const ACL_REVISION: u8 = 2;
/// For lists with object ACEs.
const ACL_REVISION_DS: u8 = 4;

const SELF_RELATIVE: u16 = 0x8000;

/// Who owns a file and who may do what with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Descriptor {
    pub owner: Option<Sid>,
    pub group: Option<Sid>,
    /// Who may do what. Absent is not the same as present and null, and null is not the same as empty.
    pub dacl: Option<Acl>,
    /// What is audited, and the integrity level.
    pub sacl: Option<Acl>,
}

/// An access control list that is present.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Acl {
    pub flags: AclFlags,
    /// `None` is the null list: as a DACL, it allows everything to everyone. An empty DACL allows nothing.
    pub aces: Option<Vec<Ace>>,
}

/// How a list takes part in inheritance. The binary form has these in the control bits of the descriptor, once for each list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct AclFlags {
    /// `P`: inherits nothing.
    pub protected: bool,
    /// `AR`: a request to the receiver of the descriptor.
    pub inherit_required: bool,
    /// `AI`: passes its ACEs on in the way of Windows 2000 and later, which marks inherited ACEs.
    pub auto_inherited: bool,
}

/// The control bits of one of the two lists.
struct ControlBits {
    present: u16,
    inherit_required: u16,
    auto_inherited: u16,
    protected: u16,
}

const DACL: ControlBits =
    ControlBits { present: 0x0004, inherit_required: 0x0100, auto_inherited: 0x0400, protected: 0x1000 };
const SACL: ControlBits =
    ControlBits { present: 0x0010, inherit_required: 0x0200, auto_inherited: 0x0800, protected: 0x2000 };

impl Descriptor {
    /// Reads any self-relative form. Parts may overlap, as Windows allows.
    pub fn decode(bytes: &[u8]) -> Result<Descriptor, PermissionError> {
        if bytes.len() > DESCRIPTOR_BYTES_MAX {
            return Err(PermissionError::TooLarge);
        }
        // Overlapping parts count more than once in the canonical form.
        Descriptor::decode_parts(bytes).ok_or(PermissionError::Malformed)?.within_limit()
    }

    fn decode_parts(bytes: &[u8]) -> Option<Descriptor> {
        let &[revision, _, low, high] = bytes.first_chunk()?;
        let control = u16::from_le_bytes([low, high]);
        if revision != REVISION || control & SELF_RELATIVE == 0 {
            return None;
        }
        let (offsets, _) = bytes.get(4..HEADER_BYTES)?.as_chunks::<4>();
        let [owner, group, sacl, dacl] = offsets.first_chunk()?.map(u32::from_le_bytes);
        Some(Descriptor {
            owner: decode_sid(bytes, owner)?,
            group: decode_sid(bytes, group)?,
            dacl: decode_acl(bytes, dacl, control, &DACL)?,
            sacl: decode_acl(bytes, sacl, control, &SACL)?,
        })
    }

    /// The canonical form.
    pub fn encode(&self) -> Result<Vec<u8>, PermissionError> {
        let length = self.encoded_len();
        if length > DESCRIPTOR_BYTES_MAX {
            return Err(PermissionError::TooLarge);
        }
        let (mut body, mut offsets) = (Vec::with_capacity(length), [0_u32; 4]);
        let [owner, group, sacl, dacl] = &mut offsets;
        for (acl, offset) in [(&self.sacl, sacl), (&self.dacl, dacl)] {
            if let Some(aces) = acl.as_ref().and_then(|acl| acl.aces.as_deref()) {
                *offset = (HEADER_BYTES + body.len()) as u32;
                encode_acl(aces, &mut body);
            }
        }
        for (sid, offset) in [(&self.owner, owner), (&self.group, group)] {
            if let Some(sid) = sid {
                *offset = (HEADER_BYTES + body.len()) as u32;
                sid.encode_into(&mut body);
            }
        }
        let control = SELF_RELATIVE | DACL.of(self.dacl.as_ref()) | SACL.of(self.sacl.as_ref());
        let mut bytes = Vec::with_capacity(length);
        bytes.extend([REVISION, 0]);
        bytes.extend(control.to_le_bytes());
        bytes.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
        bytes.extend(body);
        Ok(bytes)
    }

    /// Reads SDDL. Each part may be missing.
    pub fn parse_sddl(text: &str) -> Result<Descriptor, PermissionError> {
        sddl::parse(text)?.within_limit()
    }

    /// Reads SDDL as a share takes it from a client: with owner, group and DACL.
    pub fn for_share(text: &str) -> Result<Descriptor, PermissionError> {
        Descriptor::parse_sddl(text)?.complete()
    }

    /// The text that the service prints.
    pub fn to_sddl(&self) -> Result<String, PermissionError> {
        sddl::print(self)
    }

    /// Refuses a descriptor that lacks what a file must have. The owner is told first.
    pub fn complete(self) -> Result<Descriptor, PermissionError> {
        match self {
            Descriptor { owner: None, .. } => Err(PermissionError::OwnerMissing),
            Descriptor { group: None, .. } => Err(PermissionError::GroupMissing),
            Descriptor { dacl: None, .. } => Err(PermissionError::DaclMissing),
            Descriptor { .. } => Ok(self),
        }
    }

    fn within_limit(self) -> Result<Descriptor, PermissionError> {
        if self.encoded_len() > DESCRIPTOR_BYTES_MAX { Err(PermissionError::TooLarge) } else { Ok(self) }
    }

    fn encoded_len(&self) -> usize {
        let acls = [&self.dacl, &self.sacl].into_iter().flatten().filter_map(|acl| acl.aces.as_deref());
        let sids = [&self.owner, &self.group].into_iter().flatten();
        HEADER_BYTES + acls.map(acl_len).sum::<usize>() + sids.map(Sid::encoded_len).sum::<usize>()
    }
}

impl ControlBits {
    fn of(&self, acl: Option<&Acl>) -> u16 {
        let Some(Acl { flags, .. }) = acl else { return 0 };
        let bit = |is_set: bool, bit: u16| if is_set { bit } else { 0 };
        self.present
            | bit(flags.inherit_required, self.inherit_required)
            | bit(flags.auto_inherited, self.auto_inherited)
            | bit(flags.protected, self.protected)
    }

    fn flags(&self, control: u16) -> AclFlags {
        AclFlags {
            protected: control & self.protected != 0,
            inherit_required: control & self.inherit_required != 0,
            auto_inherited: control & self.auto_inherited != 0,
        }
    }
}

/// The bytes from `offset` on. No part lies in the header.
fn part(bytes: &[u8], offset: u32) -> Option<&[u8]> {
    let offset = usize::try_from(offset).ok().filter(|offset| *offset >= HEADER_BYTES)?;
    bytes.get(offset..)
}

fn decode_sid(bytes: &[u8], offset: u32) -> Option<Option<Sid>> {
    if offset == 0 {
        return Some(None);
    }
    Sid::decode(part(bytes, offset)?).map(Some)
}

/// An offset without the bit that says the list is present means nothing.
fn decode_acl(bytes: &[u8], offset: u32, control: u16, bits: &ControlBits) -> Option<Option<Acl>> {
    if control & bits.present == 0 {
        return Some(None);
    }
    let aces = if offset == 0 { None } else { Some(decode_aces(part(bytes, offset)?)?) };
    Some(Some(Acl { flags: bits.flags(control), aces }))
}

/// Every ACE takes at least four bytes of the list, so a count that lies ends soon.
fn decode_aces(bytes: &[u8]) -> Option<Vec<Ace>> {
    let &[revision, _, length_low, length_high, count_low, count_high, _, _] =
        bytes.first_chunk::<ACL_HEADER_BYTES>()?;
    if !(ACL_REVISION..=ACL_REVISION_DS).contains(&revision) {
        return None;
    }
    let length = usize::from(u16::from_le_bytes([length_low, length_high]));
    let mut rest = bytes.get(ACL_HEADER_BYTES..length)?;
    let mut aces = Vec::new();
    for _ in 0..u16::from_le_bytes([count_low, count_high]) {
        let (ace, length) = Ace::decode(rest)?;
        rest = &rest[length..];
        aces.push(ace);
    }
    Some(aces)
}

fn encode_acl(aces: &[Ace], bytes: &mut Vec<u8>) {
    let revision = if aces.iter().any(Ace::is_of_revision_4) { ACL_REVISION_DS } else { ACL_REVISION };
    bytes.extend([revision, 0]);
    bytes.extend((acl_len(aces) as u16).to_le_bytes());
    bytes.extend((aces.len() as u16).to_le_bytes());
    bytes.extend([0, 0]);
    aces.iter().for_each(|ace| ace.encode_into(bytes));
}

fn acl_len(aces: &[Ace]) -> usize {
    ACL_HEADER_BYTES + aces.iter().map(Ace::encoded_len).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::tests::{EXAMPLES, numbers};
    use crate::security::{AceFlags, AceKind};

    fn allow(mask: u32, sid: Sid) -> Ace {
        Ace::rule(AceKind::Allow, AceFlags::NONE, mask, sid)
    }

    fn list(aces: Vec<Ace>) -> Option<Acl> {
        Some(Acl { flags: AclFlags::default(), aces: Some(aces) })
    }

    fn small() -> Descriptor {
        let dacl = list(vec![allow(0x1F_01FF, Sid::SYSTEM)]);
        Descriptor { owner: Some(Sid::ADMINISTRATORS), group: Some(Sid::SYSTEM), dacl, sacl: None }
    }

    #[rustfmt::skip]
    const SMALL: [u8; 76] = [
        // Revision, control, offsets of owner, group, SACL and DACL.
        1, 0, 0x04, 0x80, 48, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0,
        // The DACL and its only ACE.
        2, 0, 28, 0, 1, 0, 0, 0,
        0, 0, 20, 0, 0xFF, 0x01, 0x1F, 0, 1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0,
        // Owner and group.
        1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0,
        1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0,
    ];

    fn changed(change: impl Fn(&mut [u8; 76])) -> Result<Descriptor, PermissionError> {
        let mut bytes = SMALL;
        change(&mut bytes);
        Descriptor::decode(&bytes)
    }

    #[test]
    fn a_descriptor_written_out() {
        assert_eq!(small().encode().as_deref(), Ok(&SMALL[..]));
        assert_eq!(Descriptor::decode(&SMALL), Ok(small()));
        let nothing = [1, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Descriptor::default().encode().as_deref(), Ok(&nothing[..]));
        assert_eq!(Descriptor::decode(&nothing), Ok(Descriptor::default()));
    }

    #[test]
    fn absent_null_and_empty_lists_differ() {
        let lists = [None, Some(Acl::default()), list(vec![])];
        for dacl in &lists {
            for sacl in &lists {
                let descriptor = Descriptor { dacl: dacl.clone(), sacl: sacl.clone(), ..small() };
                let bytes = descriptor.encode().expect("small enough");
                assert_eq!(Descriptor::decode(&bytes), Ok(descriptor));
            }
        }
    }

    #[test]
    fn each_list_has_its_control_bits() {
        let flags = |bits: u8| AclFlags {
            protected: bits & 1 != 0,
            inherit_required: bits & 2 != 0,
            auto_inherited: bits & 4 != 0,
        };
        for (dacl, sacl) in (0..64).map(|bits| (flags(bits & 7), flags(bits >> 3))) {
            let acl = |flags: AclFlags| Some(Acl { flags, aces: None });
            let descriptor = Descriptor { dacl: acl(dacl), sacl: acl(sacl), ..small() };
            assert_eq!(Descriptor::decode(&descriptor.encode().expect("small enough")), Ok(descriptor));
        }
        let protected = changed(|bytes| bytes[3] |= 0x14).map(|descriptor| descriptor.dacl.map(|dacl| dacl.flags));
        assert_eq!(protected, Ok(Some(AclFlags { protected: true, inherit_required: false, auto_inherited: true })));
    }

    #[test]
    fn bits_without_a_meaning_are_forgotten() {
        // Defaulted, trusted, resource manager; the byte of the resource manager; the reserved bytes of the list.
        let found = changed(|bytes| {
            bytes[1] = 0xAB;
            bytes[2] |= 0x01 | 0x02 | 0x08 | 0x20 | 0x40 | 0x80;
            bytes[3] |= 0x40;
            (bytes[21], bytes[26]) = (7, 7);
        });
        assert_eq!(found, Ok(small()));
        assert_eq!(changed(|bytes| bytes[2] = 0), Ok(Descriptor { dacl: None, ..small() }), "not said to be present");
        assert_eq!(changed(|bytes| bytes[20] = 4), Ok(small()), "a revision that the list does not need");
    }

    #[test]
    fn parts_may_share_bytes_and_have_gaps() {
        let one_sid = changed(|bytes| bytes[8] = 48);
        assert_eq!(one_sid, Ok(Descriptor { group: Some(Sid::ADMINISTRATORS), ..small() }));
        let two_lists = changed(|bytes| (bytes[2], bytes[12]) = (0x14, 20));
        assert_eq!(two_lists, Ok(Descriptor { sacl: small().dacl, ..small() }));
        let with_gaps = [&SMALL[..], &[0xEE; 9]].concat();
        assert_eq!(Descriptor::decode(&with_gaps), Ok(small()));
        for found in [one_sid, two_lists] {
            let found = found.expect("a descriptor");
            assert_eq!(Descriptor::decode(&found.encode().expect("small enough")), Ok(found));
        }
    }

    #[test]
    fn damaged_descriptors_are_refused() {
        for (why, found) in [
            ("revision", changed(|bytes| bytes[0] = 2)),
            ("absolute form", changed(|bytes| bytes[3] = 0)),
            ("owner in the header", changed(|bytes| bytes[4] = 4)),
            ("owner behind the end", changed(|bytes| bytes[4] = 76)),
            ("owner far behind the end", changed(|bytes| bytes[7] = 0xFF)),
            ("group cut off", changed(|bytes| bytes[8] = 72)),
            ("owner of another revision", changed(|bytes| bytes[48] = 2)),
            ("DACL in the header", changed(|bytes| bytes[16] = 19)),
            ("DACL behind the end", changed(|bytes| bytes[19] = 0x80)),
            ("revision of the list", changed(|bytes| bytes[20] = 1)),
            ("later revision of the list", changed(|bytes| bytes[20] = 5)),
            ("list shorter than its header", changed(|bytes| bytes[22] = 7)),
            ("list without room for its ACE", changed(|bytes| bytes[22] = 24)),
            ("list longer than the descriptor", changed(|bytes| bytes[23] = 1)),
            ("more ACEs than there are", changed(|bytes| bytes[24] = 2)),
            ("very many ACEs", changed(|bytes| bytes[25] = 0xFF)),
            ("empty ACE", changed(|bytes| bytes[30] = 0)),
            ("ACE longer than the list", changed(|bytes| bytes[31] = 1)),
            ("SID of the ACE", changed(|bytes| bytes[37] = 2)),
        ] {
            assert_eq!(found, Err(PermissionError::Malformed), "{why}");
        }
    }

    #[test]
    fn a_descriptor_has_at_most_64_kib() {
        let with_aces = |count: usize| Descriptor { dacl: list(vec![allow(1, Sid::SYSTEM); count]), ..small() };
        let most = (DESCRIPTOR_BYTES_MAX - 56) / 20;
        let largest = with_aces(most);
        assert_eq!(Descriptor::decode(&largest.encode().expect("fits")), Ok(largest));
        assert_eq!(with_aces(most + 1).encode(), Err(PermissionError::TooLarge));
        assert_eq!(Descriptor::decode(&[0; DESCRIPTOR_BYTES_MAX + 1]), Err(PermissionError::TooLarge));
        // Both lists at one place: 64 KiB that would become 128.
        let mut twice = with_aces(most).encode().expect("fits");
        (twice[2], twice[12]) = (0x14, 20);
        assert_eq!(Descriptor::decode(&twice), Err(PermissionError::TooLarge));
    }

    #[test]
    fn what_a_share_must_have() {
        assert_eq!(small().complete(), Ok(small()));
        let without = |take: fn(&mut Descriptor)| {
            let mut descriptor = small();
            take(&mut descriptor);
            descriptor.complete()
        };
        assert_eq!(without(|descriptor| descriptor.owner = None), Err(PermissionError::OwnerMissing));
        assert_eq!(without(|descriptor| descriptor.group = None), Err(PermissionError::GroupMissing));
        assert_eq!(without(|descriptor| descriptor.dacl = None), Err(PermissionError::DaclMissing));
        assert_eq!(Descriptor::default().complete(), Err(PermissionError::OwnerMissing), "of several the owner");
    }

    fn every_example() -> impl Iterator<Item = Vec<u8>> {
        let parsed = EXAMPLES.iter().map(|text| Descriptor::parse_sddl(text).expect(text));
        parsed.map(|descriptor| descriptor.encode().expect("small enough"))
    }

    #[test]
    fn a_cut_descriptor_is_refused() {
        for bytes in every_example() {
            for length in 0..bytes.len() {
                assert!(Descriptor::decode(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
            }
        }
    }

    /// Whatever decodes also encodes, and what was encoded stays as it is.
    #[test]
    fn a_changed_descriptor_is_refused_or_canonical() {
        let mut decoded = 0;
        for (example, bytes) in every_example().enumerate() {
            for seed in 0..400 {
                let mut random = numbers(seed + 1000 * example as u64);
                let mut bytes = bytes.clone();
                for _ in 0..=random(4) {
                    let place = random(bytes.len() as u64) as usize;
                    bytes[place] = random(256) as u8;
                }
                let Ok(descriptor) = Descriptor::decode(&bytes) else { continue };
                decoded += 1;
                let canonical = descriptor.encode().expect("within the limit");
                assert_eq!(Descriptor::decode(&canonical).as_ref(), Ok(&descriptor), "seed {seed}");
                if let Ok(text) = descriptor.to_sddl() {
                    assert_eq!(Descriptor::parse_sddl(&text), Ok(descriptor), "{text}");
                }
            }
        }
        assert!(decoded > 500, "only {decoded} were descriptors");
    }
}
