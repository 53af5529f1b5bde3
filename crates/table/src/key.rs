//! The keys of entities: which texts are allowed, how they sort, and under which key of the engine an entity is stored.
//!
//! The service sorts texts by UTF-16 code units. That is the order of their UTF-8 bytes, with one exception: characters
//! beyond U+FFFF come before U+E000. So the first bytes of the characters concerned are exchanged ([`ordered`]), and
//! the resulting bytes sort as the service does.

use std::borrow::Cow;

use engine::Key;
use service::space;

use crate::error::TableError;

/// 1 KiB in UTF-16.
pub const KEY_UNITS_MAX: usize = 512;

/// The key of an entity inside its table.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EntityKey {
    pub partition: String,
    pub row: String,
}

impl EntityKey {
    pub fn new(partition: impl Into<String>, row: impl Into<String>) -> Result<EntityKey, TableError> {
        let key = EntityKey { partition: partition.into(), row: row.into() };
        check(&key.partition, "PartitionKey")?;
        check(&key.row, "RowKey")?;
        Ok(key)
    }

    pub fn view(&self) -> KeyView<'_> {
        KeyView { partition: &self.partition, row: &self.row }
    }

    /// Where the entity is stored.
    pub fn in_table(&self, generation: u64) -> Key {
        entities(generation).text(ordered(&self.partition)).text(ordered(&self.row))
    }
}

/// A borrowed [`EntityKey`].
#[derive(Clone, Copy, Debug)]
pub struct KeyView<'a> {
    pub partition: &'a str,
    pub row: &'a str,
}

/// Partition key and row key as they are stored in the key of a row, each with its terminator.
pub fn split(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let texts = key.get(ENTITIES_BYTES..)?;
    // No key contains a zero byte, so the first one belongs to the terminator.
    let end = texts.iter().position(|byte| *byte == 0)? + 2;
    texts.split_at_checked(end)
}

/// The text of a stored partition key or row key.
pub fn text_of(stored: &[u8]) -> Option<Cow<'_, str>> {
    let bytes = stored.strip_suffix(&[0, 1])?;
    match unexchanged(bytes) {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}

/// The length of the prefix of all keys of a table: the space and the generation.
const ENTITIES_BYTES: usize = 9;

/// The prefix of the keys of all entities of a table.
pub fn entities(generation: u64) -> Key {
    Key::new(space::ENTITY).number(generation)
}

fn check(text: &str, name: &'static str) -> Result<(), TableError> {
    if units(text) > KEY_UNITS_MAX {
        return Err(TableError::KeyValueTooLarge);
    }
    match text.chars().all(is_allowed) {
        true => Ok(()),
        false => Err(TableError::OutOfRangeInput { name, value: text.to_owned() }),
    }
}

fn is_allowed(char: char) -> bool {
    !matches!(char, '/' | '\\' | '#' | '?' | '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

/// The length of a text in UTF-16 code units, as the service counts it.
pub fn units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// Bytes that sort as the service sorts the text.
pub fn ordered(text: &str) -> Cow<'_, [u8]> {
    exchanged(text.as_bytes(), |byte| match byte {
        0xEE | 0xEF => byte + 5,
        0xF0..=0xF4 => byte - 2,
        _ => byte,
    })
}

/// The inverse of [`ordered`].
fn unexchanged(bytes: &[u8]) -> Cow<'_, [u8]> {
    exchanged(bytes, |byte| match byte {
        0xF3 | 0xF4 => byte - 5,
        0xEE..=0xF2 => byte + 2,
        _ => byte,
    })
}

/// Only bytes from 0xEE on, which begin a character, are exchanged; most texts have none.
fn exchanged(bytes: &[u8], exchange: impl Fn(u8) -> u8) -> Cow<'_, [u8]> {
    if bytes.iter().all(|byte| *byte < 0xEE) {
        return Cow::Borrowed(bytes);
    }
    Cow::Owned(bytes.iter().map(|byte| exchange(*byte)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 14] = [
        "",
        "\0",
        "a",
        "a\0",
        "aa",
        "b",
        "\u{7ff}",
        "\u{d7ff}",
        "\u{10000}",
        "\u{10000}a",
        "\u{10ffff}",
        "\u{e000}",
        "\u{ffff}",
        "\u{ffff}a",
    ];

    #[test]
    fn keys_sort_by_utf_16_code_units() {
        for one in TEXTS {
            for other in TEXTS {
                let expected = one.encode_utf16().cmp(other.encode_utf16());
                assert_eq!(ordered(one).cmp(&ordered(other)), expected, "{one:?} {other:?}");
                let key = |text: &str| EntityKey { partition: text.into(), row: "x".into() }.in_table(1);
                assert_eq!(key(one).cmp(&key(other)), expected, "{one:?} {other:?}");
            }
            assert_eq!(*unexchanged(&ordered(one)), *one.as_bytes());
        }
        assert!(TEXTS.is_sorted_by(|one, other| one.encode_utf16().le(other.encode_utf16())));
    }

    #[test]
    fn every_character_survives() {
        for char in (0..=0x10ffff).step_by(13).filter_map(char::from_u32) {
            let text = char.to_string();
            assert_eq!(*unexchanged(&ordered(&text)), *text.as_bytes());
        }
    }

    #[test]
    fn a_row_tells_its_key() {
        for partition in TEXTS.into_iter().filter(|text| !text.contains('\0')) {
            let key = EntityKey { partition: partition.into(), row: "\u{1f600} r".into() }.in_table(7);
            let (found, row) = split(key.as_bytes()).unwrap();
            assert_eq!((text_of(found).as_deref(), text_of(row).as_deref()), (Some(partition), Some("\u{1f600} r")));
        }
        assert_eq!(split(b"\x21abc"), None);
        assert_eq!(split(&[0x21; 40]), None);
        assert_eq!(text_of(b"\xff\0\x01"), None);
        assert_eq!(text_of(b"a"), None);
    }

    #[test]
    fn what_a_key_may_be() {
        assert!(EntityKey::new("", "").is_ok());
        assert!(EntityKey::new("it's ä 😀 %", "(a=b)&c+d").is_ok());
        assert!(EntityKey::new("x".repeat(512), "😀".repeat(256)).is_ok());
        assert_eq!(EntityKey::new("x".repeat(513), ""), Err(TableError::KeyValueTooLarge));
        assert_eq!(EntityKey::new("", "😀".repeat(257)), Err(TableError::KeyValueTooLarge));
        for bad in ["a/b", "a\\b", "#", "?", "\t", "\u{7f}", "\u{9f}"] {
            let refused = TableError::OutOfRangeInput { name: "RowKey", value: bad.into() };
            assert_eq!(EntityKey::new("a", bad), Err(refused));
        }
    }
}
