//! Keys: bytes that sort as the service sorts.
//!
//! A key is a space (one byte: the owner of the row, and what the row is) and parts. Numbers are big-endian; texts are escaped and
//! terminated, so that a text never runs into the next part and a shorter one sorts before its extensions.

use bytes::Bytes;

/// The spaces of the engines' own rows. The others belong to the services: each is written by one owner only.
pub mod space {
    /// The numbers of accounts by name.
    pub const ACCOUNT: u8 = 0x01;
    /// Where the bytes of contents are.
    pub const CONTENT: u8 = 0xE0;
    /// References: a thing, and an owner that refers to it.
    pub const REF: u8 = 0xE1;
    /// Due rows, by time.
    pub const DUE: u8 = 0xE2;
    /// How many bytes of a segment are alive.
    pub const SEGMENT: u8 = 0xE3;
    pub const CLOCK: u8 = 0xE4;
}

const TERMINATOR: [u8; 2] = [0x00, 0x01];
const ESCAPED_ZERO: [u8; 2] = [0x00, 0xFF];

/// A key, built part by part: `Key::new(space::BLOB).number(generation).text(name)`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Vec<u8>);

impl Key {
    #[must_use]
    pub fn new(space: u8) -> Key {
        let mut bytes = Vec::with_capacity(48);
        bytes.push(space);
        Key(bytes)
    }

    /// A key from bytes that a scan returned.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Key {
        Key(bytes.to_vec())
    }

    #[must_use]
    pub fn number(mut self, value: u64) -> Key {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    #[must_use]
    pub fn byte(mut self, value: u8) -> Key {
        self.0.push(value);
        self
    }

    /// A whole text (or bytes): escaped and terminated.
    #[must_use]
    pub fn text(self, text: impl AsRef<[u8]>) -> Key {
        let mut key = self.text_prefix(text);
        key.0.extend_from_slice(&TERMINATOR);
        key
    }

    /// The start of a text, for ranges: every key whose text begins so is at or after this.
    #[must_use]
    pub fn text_prefix(mut self, text: impl AsRef<[u8]>) -> Key {
        for &byte in text.as_ref() {
            if byte == 0 { self.0.extend_from_slice(&ESCAPED_ZERO) } else { self.0.push(byte) }
        }
        self
    }

    /// The first key after all keys that begin with this one.
    #[must_use]
    pub fn after_all(&self) -> Key {
        Key(prefix_end(&self.0))
    }

    /// The first key after this one.
    #[must_use]
    pub fn next(&self) -> Key {
        let mut bytes = self.0.clone();
        bytes.push(0);
        Key(bytes)
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        Bytes::from(self.0)
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", self.0.escape_ascii())
    }
}

/// The first byte string after all that begin with `prefix`. An all-0xFF prefix has none; no space is 0xFF.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xFF {
            end.push(last + 1);
            return end;
        }
    }
    vec![0xFF; 16]
}

/// Takes a key apart again, in the order it was built. `None` where the bytes do not fit.
#[derive(Debug)]
pub struct KeyReader<'a>(&'a [u8]);

impl<'a> KeyReader<'a> {
    /// Starts after the space byte.
    #[must_use]
    pub fn new(key: &'a [u8]) -> KeyReader<'a> {
        KeyReader(key.get(1..).unwrap_or_default())
    }

    pub fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_be_bytes(*number))
    }

    pub fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    pub fn bytes(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(self.0.len());
        let mut at = 0;
        loop {
            match (*self.0.get(at)?, self.0.get(at + 1)) {
                (0, Some(0x01)) => {
                    self.0 = &self.0[at + 2..];
                    return Some(out);
                }
                (0, Some(0xFF)) => {
                    out.push(0);
                    at += 2;
                }
                (0, _) => return None,
                (byte, _) => {
                    out.push(byte);
                    at += 1;
                }
            }
        }
    }

    pub fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    /// What is left.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_sort_as_their_bytes_do() {
        let mut names = ["a", "a\0", "a\0b", "a\u{1}", "a/b", "ab", "b", "é", "\u{10FFFF}", "A"];
        names.sort_unstable();
        let keys: Vec<Key> = names.iter().map(|name| Key::new(7).number(3).text(name)).collect();
        assert!(keys.is_sorted());
    }

    #[test]
    fn a_text_never_runs_into_the_next_part() {
        let short = Key::new(7).text("a").text("z");
        let long = Key::new(7).text("az").text("");
        assert_ne!(short, long);
        assert!(short < long);
    }

    #[test]
    fn a_key_comes_apart_as_it_was_built() {
        let key = Key::new(7).number(u64::MAX).text("x\0y").byte(9).text("");
        let mut reader = KeyReader::new(key.as_bytes());
        assert_eq!(reader.number(), Some(u64::MAX));
        assert_eq!(reader.text().as_deref(), Some("x\0y"));
        assert_eq!(reader.byte(), Some(9));
        assert_eq!(reader.text().as_deref(), Some(""));
        assert!(reader.rest().is_empty());
        assert_eq!(reader.number(), None);
    }

    #[test]
    fn after_all_is_past_every_extension() {
        let prefix = Key::new(7).number(u64::MAX);
        assert!(prefix.clone().text("\u{10FFFF}") < prefix.after_all());
        assert!(prefix.after_all() < Key::new(8).number(0));
    }
}
