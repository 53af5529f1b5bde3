//! `due`: the only timer. A row that says when somebody must look at something, and nothing more.
//!
//! What clients see is computed from the tick, so a sweep that comes late changes nothing they can notice. A handler is an
//! ordinary, idempotent decision; it removes its row in its own commit.

use crate::{Key, KeyReader, Timestamp, space};

/// What is to be done: who handles it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A content lost a reference: drop it if that was the last. The owner is its id.
    Content = 1,
    /// A block list lost a reference. The owner is its id.
    BlockList = 2,
    /// A staging area was committed or discarded: remove what is left of it. The owner is its id.
    Staging = 3,
    /// Uncommitted blocks grow old: discard them if they did. The owner is the blob's key.
    UncommittedBlocks = 4,
    /// A deleted container's blobs are to be removed. The owner is its generation.
    ContainerPurge = 5,
    /// A deleted table's entities are to be removed. The owner is its generation.
    TablePurge = 32,
    /// A snapshot's or blob's other belongings; reserved for the services to come.
    Other = 255,
}

impl Kind {
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Kind> {
        Some(match byte {
            1 => Kind::Content,
            2 => Kind::BlockList,
            3 => Kind::Staging,
            4 => Kind::UncommittedBlocks,
            5 => Kind::ContainerPurge,
            32 => Kind::TablePurge,
            255 => Kind::Other,
            _ => return None,
        })
    }
}

/// One thing to look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Due {
    pub at: Timestamp,
    pub kind: Kind,
    pub owner: Vec<u8>,
}

impl Due {
    /// The row itself, for the commit that removes it.
    #[must_use]
    pub fn key(&self) -> Key {
        key(self.at, self.kind, &self.owner)
    }

    /// The owner as an id, for the kinds whose owner is one.
    #[must_use]
    pub fn owner_id(&self) -> Option<u64> {
        Some(u64::from_be_bytes(self.owner.as_slice().try_into().ok()?))
    }

    #[must_use]
    pub fn from_key(key: &[u8]) -> Option<Due> {
        let mut reader = KeyReader::new(key);
        let at = Timestamp(reader.number()?);
        let kind = Kind::from_byte(reader.byte()?)?;
        Some(Due { at, kind, owner: reader.bytes()? })
    }
}

/// The row that asks for `kind` to be done for `owner` at `at`.
#[must_use]
pub fn key(at: Timestamp, kind: Kind, owner: &[u8]) -> Key {
    Key::new(space::DUE).number(at.0).byte(kind as u8).text(owner)
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
        let due = Due { at: Timestamp(77), kind: Kind::BlockList, owner: 5_u64.to_be_bytes().to_vec() };
        assert_eq!(Due::from_key(due.key().as_bytes()), Some(due.clone()));
        assert_eq!(due.owner_id(), Some(5));
        let (from, to) = range(Timestamp(77));
        assert!(from <= due.key() && due.key() < to);
        assert!(due.key() >= range(Timestamp(76)).1);
    }
}
