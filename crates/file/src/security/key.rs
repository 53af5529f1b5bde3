//! Permission keys: the name by which clients refer to a permission of a share (`x-ms-file-permission-key`).

use std::fmt;

use ring::digest::{SHA256, digest};

use super::{PermissionError, number};

/// The first half of the SHA-256 of a canonical descriptor. The same descriptor has the same key however it came into the share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PermissionKey([u8; 16]);

impl PermissionKey {
    /// Takes the canonical form: another form of the same descriptor has another hash.
    pub(super) fn of_canonical(descriptor: &[u8]) -> PermissionKey {
        let hash = digest(&SHA256, descriptor);
        PermissionKey(*hash.as_ref().first_chunk().expect("SHA-256 has 32 bytes"))
    }

    /// Reads two decimal numbers with `*` between them. A form that would not print the same is refused.
    pub fn parse(text: &str) -> Result<PermissionKey, PermissionError> {
        let half = |text: &str| number(text, 10).map(u64::to_be_bytes);
        let halves = text.split_once('*').and_then(|(first, second)| Some([half(first)?, half(second)?]));
        let key = halves.and_then(|halves| halves.as_flattened().try_into().ok()).map(PermissionKey);
        key.filter(|key| key.to_string() == text).ok_or(PermissionError::Key)
    }

    pub fn from_bytes(bytes: [u8; 16]) -> PermissionKey {
        PermissionKey(bytes)
    }

    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

/// Each half as a number, most significant byte first.
impl fmt::Display for PermissionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = u128::from_be_bytes(self.0);
        write!(f, "{}*{}", (number >> 64) as u64, number as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_both_ways() {
        for text in ["1459396823544571282*13609941760923454748", "0*0", "18446744073709551615*1"] {
            assert_eq!(PermissionKey::parse(text).map(|key| key.to_string()).as_deref(), Ok(text));
        }
        let key = PermissionKey::from_bytes([0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(key.to_string(), "258*3");
        assert_eq!(PermissionKey::parse("258*3").map(PermissionKey::to_bytes), Ok(key.to_bytes()));
    }

    #[test]
    fn other_texts_are_no_keys() {
        for text in [
            "",
            "*",
            "1",
            "1*",
            "*1",
            "1*2*3",
            "01*2",
            "1*+2",
            "-1*2",
            " 1*2",
            "1*2 ",
            "0x1*2",
            "18446744073709551616*1",
            "1*99999999999999999999999",
            "1*٣",
        ] {
            assert_eq!(PermissionKey::parse(text), Err(PermissionError::Key), "{text:?}");
        }
        assert_eq!(PermissionError::Key.code(), "FileInvalidPermissionKey");
    }

    /// Stored rows have these keys: another hash or another order of its bytes would lose them.
    #[test]
    fn the_key_of_known_bytes() {
        assert_eq!(PermissionKey::of_canonical(b"").to_string(), "16406829232824261652*11167788843400149284");
    }
}
