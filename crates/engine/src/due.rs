//! Due rows: the only timer. A due row says when its handler must look at something, and nothing more.
//!
//! A due row belongs to a space, and each space has one handler ([`crate::collector::Handler`]). What
//! clients see is computed from the tick, so a sweep that comes late changes nothing they can notice. A handler is an
//! ordinary, idempotent decision; it removes its row in its own commit.
//!
//! The key is: the time, one byte, and a text. The byte is 255 and the text begins with the space; or the byte is 1 and the space is
//! that of contents. Earlier versions gave numbers of their own to some things (2 to 5 and 32) and wrote them in place of the
//! 255, with no space in the text. Such a number is read as if it were the space; the service that once wrote it knows what it means.

use crate::{EngineError, Key, KeyReader, Timestamp, space};

/// The text begins with the space.
const SPACE_FOLLOWS: u8 = 255;
/// The space is that of contents.
const CONTENT: u8 = 1;

/// One thing to look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Due {
    pub at: Timestamp,
    /// The space that it belongs to.
    pub space: u8,
    /// What is to be looked at, in the words of the space's owner.
    pub owner: Vec<u8>,
    /// As it is stored: earlier versions wrote the same in other ways.
    row: Key,
}

impl Due {
    #[must_use]
    pub fn new(at: Timestamp, space: u8, owner: &[u8]) -> Due {
        Due { at, space, owner: owner.to_vec(), row: key(at, space, owner) }
    }

    /// The row itself, for the commit that removes it.
    #[must_use]
    pub fn key(&self) -> Key {
        self.row.clone()
    }

    /// The owner as an id, if it is one.
    #[must_use]
    pub fn owner_id(&self) -> Option<u64> {
        Some(u64::from_be_bytes(self.owner.as_slice().try_into().ok()?))
    }

    #[must_use]
    pub fn from_key(key: &[u8]) -> Option<Due> {
        let mut reader = KeyReader::new(key);
        let at = Timestamp(reader.number()?);
        let (byte, mut owner) = (reader.byte()?, reader.bytes()?);
        let space = match byte {
            SPACE_FOLLOWS if owner.is_empty() => return None,
            SPACE_FOLLOWS => owner.remove(0),
            CONTENT => space::CONTENT,
            number => number,
        };
        Some(Due { at, space, owner, row: Key::from_bytes(key) })
    }

    /// What a handler answers that cannot make sense of a row in its space: a later version may have written it.
    #[must_use]
    pub fn unknown(&self) -> EngineError {
        no_handler()
    }
}

pub(crate) fn no_handler() -> EngineError {
    EngineError::Unavailable("no handler knows this due row".into())
}

/// The row that asks the owner of `space` to look at `owner` at `at`.
#[must_use]
pub fn key(at: Timestamp, space: u8, owner: &[u8]) -> Key {
    let key = Key::new(space::DUE).number(at.0);
    match space {
        space::CONTENT => key.byte(CONTENT).text(owner),
        space => key.byte(SPACE_FOLLOWS).text_prefix([space]).text(owner),
    }
}

/// The rows that are due at `now`: from, to.
#[must_use]
pub fn range(now: Timestamp) -> (Key, Key) {
    (Key::new(space::DUE), Key::new(space::DUE).number(now.0.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_due_row_says_all_there_is_to_know() {
        for space in [space::CONTENT, 0x20, 0x70, 0] {
            let due = Due::new(Timestamp(77), space, &5_u64.to_be_bytes());
            assert_eq!(Due::from_key(due.key().as_bytes()), Some(due.clone()));
            assert_eq!((due.space, due.owner_id()), (space, Some(5)));
            let (from, to) = range(Timestamp(77));
            assert!(from <= due.key() && due.key() < to);
            assert!(due.key() >= range(Timestamp(76)).1);
        }
    }

    /// The bytes of a row: 77, one byte, a text in which zeroes are escaped.
    fn stored(byte: u8, text: &[u8]) -> Vec<u8> {
        [&[0xE2, 0, 0, 0, 0, 0, 0, 0, 77, byte][..], text, &[0, 1]].concat()
    }

    #[test]
    fn rows_that_name_their_space_are_written_as_ever() {
        let row = stored(255, &[0x14, 7, 8]);
        assert_eq!(key(Timestamp(77), 0x14, &[7, 8]).as_bytes(), row);
        let due = Due::from_key(&row).unwrap();
        assert_eq!((due.at, due.space, due.owner.as_slice()), (Timestamp(77), 0x14, &[7, 8][..]));
        let content = stored(1, &[7, 0, 0xFF, 8]);
        assert_eq!(key(Timestamp(77), space::CONTENT, &[7, 0, 8]).as_bytes(), content);
        assert_eq!(Due::from_key(&content).map(|due| due.space), Some(space::CONTENT));
    }

    #[test]
    fn a_row_of_an_earlier_version_is_found_by_its_number_and_removed_by_its_own_key() {
        for number in [2, 3, 4, 5, 32] {
            let row = stored(number, b"owner");
            let due = Due::from_key(&row).unwrap();
            assert_eq!((due.space, due.owner.as_slice()), (number, &b"owner"[..]));
            assert_eq!(due.key().as_bytes(), row);
        }
    }

    #[test]
    fn a_row_without_a_space_is_none() {
        assert_eq!(Due::from_key(&stored(255, b"")), None);
        assert_eq!(Due::from_key(&[0xE2, 0, 0]), None);
    }
}
