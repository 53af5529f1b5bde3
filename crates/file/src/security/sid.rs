//! Security identifiers: the names of users and groups in a descriptor.
//!
//! A SID is an authority of 48 bits and up to 15 sub-authorities, written `S-1-5-32-544`; the `1` is its revision, and no other exists.

use std::fmt;

use super::{number, without_hex_prefix};

/// A limit of the format: Windows refuses a longer SID.
pub const SUB_AUTHORITIES_MAX: usize = 15;

const REVISION: u8 = 1;
const AUTHORITY_MAX: u64 = (1 << 48) - 1;
/// Revision, count and authority, in front of the sub-authorities.
const HEADER_BYTES: usize = 8;

/// A user, a group or another holder of rights.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sid {
    authority: u64,
    count: u8,
    /// Zero from `count` on, so that equal SIDs are equal values.
    sub_authorities: [u32; SUB_AUTHORITIES_MAX],
}

impl Sid {
    pub const SYSTEM: Sid = Sid::of(5, &[18]);
    pub const ADMINISTRATORS: Sid = Sid::of(5, &[32, 544]);
    pub const USERS: Sid = Sid::of(5, &[32, 545]);
    pub const AUTHENTICATED_USERS: Sid = Sid::of(5, &[11]);
    /// In an inheritable ACE: whoever owns the new file.
    pub const CREATOR_OWNER: Sid = Sid::of(3, &[0]);
    /// In an inheritable ACE: the group of the new file.
    pub const CREATOR_GROUP: Sid = Sid::of(3, &[1]);

    /// `None` for an authority of more than 48 bits or more than 15 sub-authorities.
    pub const fn new(authority: u64, sub_authorities: &[u32]) -> Option<Sid> {
        if authority > AUTHORITY_MAX || sub_authorities.len() > SUB_AUTHORITIES_MAX {
            return None;
        }
        let mut all = [0; SUB_AUTHORITIES_MAX];
        let (used, _) = all.split_at_mut(sub_authorities.len());
        used.copy_from_slice(sub_authorities);
        Some(Sid { authority, count: sub_authorities.len() as u8, sub_authorities: all })
    }

    /// For the SIDs in this source, which fit.
    pub(super) const fn of(authority: u64, sub_authorities: &[u32]) -> Sid {
        Sid::new(authority, sub_authorities).expect("a SID in the source fits")
    }

    pub fn authority(&self) -> u64 {
        self.authority
    }

    pub fn sub_authorities(&self) -> &[u32] {
        &self.sub_authorities[..usize::from(self.count)]
    }

    /// Reads `S-1-5-32-544`. Windows also takes hexadecimal numbers, and so do we.
    pub fn parse(text: &str) -> Option<Sid> {
        let numbers = text.strip_prefix("S-1-").or_else(|| text.strip_prefix("s-1-"))?;
        let mut numbers = numbers.split('-').map(sid_number);
        let authority = numbers.next()??;
        let (mut sub_authorities, mut count) = ([0; SUB_AUTHORITIES_MAX], 0);
        for number in numbers {
            *sub_authorities.get_mut(count)? = u32::try_from(number?).ok()?;
            count += 1;
        }
        Sid::new(authority, &sub_authorities[..count])
    }

    /// Reads the SID at the start of `bytes`. What follows it is not looked at.
    pub fn decode(bytes: &[u8]) -> Option<Sid> {
        let (&[revision, count, a, b, c, d, e, f], rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        if revision != REVISION {
            return None;
        }
        let (numbers, _) = rest.get(..usize::from(count) * 4)?.as_chunks::<4>();
        let mut sub_authorities = [0; SUB_AUTHORITIES_MAX];
        for (number, place) in numbers.iter().zip(sub_authorities.get_mut(..usize::from(count))?) {
            *place = u32::from_le_bytes(*number);
        }
        Some(Sid { authority: u64::from_be_bytes([0, 0, a, b, c, d, e, f]), count, sub_authorities })
    }

    pub fn encode_into(&self, bytes: &mut Vec<u8>) {
        bytes.extend([REVISION, self.count]);
        bytes.extend(&self.authority.to_be_bytes()[2..]);
        bytes.extend(self.sub_authorities().iter().flat_map(|number| number.to_le_bytes()));
    }

    pub fn encoded_len(&self) -> usize {
        HEADER_BYTES + 4 * usize::from(self.count)
    }
}

/// Windows prints an authority that needs more than 32 bits in hexadecimal.
impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u32::try_from(self.authority) {
            Ok(authority) => write!(f, "S-1-{authority}")?,
            Err(_) => write!(f, "S-1-0x{:X}", self.authority)?,
        }
        self.sub_authorities().iter().try_for_each(|number| write!(f, "-{number}"))
    }
}

impl fmt::Debug for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn sid_number(text: &str) -> Option<u64> {
    match without_hex_prefix(text) {
        Some(digits) => number(digits, 16),
        None => number(text, 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(sid: &Sid) -> Vec<u8> {
        let mut bytes = Vec::new();
        sid.encode_into(&mut bytes);
        bytes
    }

    #[test]
    fn text_and_bytes_of_one_sid() {
        for (text, bytes) in [
            ("S-1-5-18", &[1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0][..]),
            ("S-1-5-32-544", &[1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0]),
            ("S-1-1-0", &[1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]),
            ("S-1-5", &[1, 0, 0, 0, 0, 0, 0, 5]),
            ("S-1-4294967295-1", &[1, 1, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 1, 0, 0, 0]),
            ("S-1-0x100000000-1", &[1, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0]),
            ("S-1-0xFFFFFFFFFFFF-4294967295", &[1, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]),
        ] {
            let sid = Sid::parse(text).expect(text);
            assert_eq!(sid.to_string(), text);
            assert_eq!(encoded(&sid), bytes, "{text}");
            assert_eq!(sid.encoded_len(), bytes.len());
            assert_eq!(Sid::decode(bytes), Some(sid));
        }
    }

    #[test]
    fn several_spellings_are_one_sid() {
        for (text, printed) in [
            ("s-1-5-18", "S-1-5-18"),
            ("S-1-0x5-0x12", "S-1-5-18"),
            ("S-1-0X5-18", "S-1-5-18"),
            ("S-1-5-0018", "S-1-5-18"),
            ("S-1-21474836480-32-579", "S-1-0x500000000-32-579"),
            ("S-1-0x12a05f200-30", "S-1-0x12A05F200-30"),
        ] {
            assert_eq!(Sid::parse(text).map(|sid| sid.to_string()).as_deref(), Some(printed), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_sid() {
        let too_many = format!("S-1-5{}", "-1".repeat(16));
        for text in [
            "",
            "S",
            "S-1",
            "S-1-",
            "S-2-5-18",
            "S-1-5-",
            "S-1--5",
            "S-1-5-18-",
            "S-1-5-+18",
            "S-1-5--18",
            "S-1-5-4294967296",
            "S-1-281474976710656-1",
            "S-1-0x1000000000000-1",
            "S-1-0x-1",
            "S-1-5-1 8",
            "S-1-5-18 ",
            "S-1-5-٣",
            "S-1-5-99999999999999999999",
            "SY",
            &too_many,
        ] {
            assert_eq!(Sid::parse(text), None, "{text}");
        }
        assert!(Sid::parse(&format!("S-1-5{}", "-1".repeat(15))).is_some());
    }

    #[test]
    fn damaged_bytes_are_no_sid() {
        let whole = encoded(&Sid::ADMINISTRATORS);
        for length in 0..whole.len() {
            assert_eq!(Sid::decode(&whole[..length]), None, "{length} bytes");
        }
        assert_eq!(Sid::decode(&[&whole[..], &[7; 9]].concat()), Some(Sid::ADMINISTRATORS), "followed by other bytes");
        for revision in [0, 2, 255] {
            assert_eq!(Sid::decode(&[&[revision], &whole[1..]].concat()), None, "revision {revision}");
        }
        for count in [16, 17, 255] {
            assert_eq!(Sid::decode(&[&[1, count][..], &[0; 2000]].concat()), None, "{count} sub-authorities");
        }
        assert!(Sid::decode(&[&[1, 15][..], &[0; 66]].concat()).is_some());
    }

    #[test]
    fn a_sid_has_limits() {
        assert_eq!(Sid::new(1 << 48, &[]), None);
        assert_eq!(Sid::new(5, &[0; 16]), None);
        assert!(Sid::new(AUTHORITY_MAX, &[u32::MAX; 15]).is_some());
    }
}
