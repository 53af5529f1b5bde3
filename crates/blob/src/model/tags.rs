//! Index tags: what a blob is found by.
//!
//! The index is a projection of the head rows. Each tag of a blob as it is now has one row, by account, key, value and
//! blob, written by [`reindex`] in the commit that gives a head row another current state. Snapshots and earlier versions
//! keep their tags but are not found by them, and what is deleted is not found until it comes back.
//!
//! Rows of a container that was deleted are left until it is purged; a search passes over them, because the container
//! under the name they have is not of their generation.

use engine::{Changes, Key, KeyReader, Unread};
use minicbor::{Decode, Encode};
use service::{codec, space};
use wire::names::ContainerName;
use wire::tags::Tags;

use super::Pairs;

/// The tags of one state of a blob, with all that their rows in the index need: whoever removes a blob may know nothing but
/// its key. A state without tags has none of these.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Tagged {
    #[n(0)]
    account: u64,
    #[n(1)]
    pairs: Pairs,
    #[n(2)]
    container: String,
}

impl Tagged {
    /// The tags of a blob in this container; `None` if there are none.
    pub fn new(account: u64, container: &ContainerName, tags: &Tags) -> Option<Tagged> {
        let pairs = || tags.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        (!tags.is_empty()).then(|| Tagged { account, pairs: pairs(), container: container.as_str().to_owned() })
    }

    /// The same tags for a copy in this container.
    pub fn copied_to(&self, account: u64, container: &ContainerName) -> Tagged {
        Tagged { account, pairs: self.pairs.clone(), container: container.as_str().to_owned() }
    }

    pub fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }
}

/// What stands in a row of the index.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Indexed {
    /// The name of the container, of which the key has only the generation.
    #[n(0)]
    pub container: String,
}

/// What the key of a row of the index says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagIndexKey {
    pub account: u64,
    pub key: String,
    pub value: String,
    pub generation: u64,
    pub name: String,
}

impl TagIndexKey {
    pub fn of(row: &[u8]) -> Option<TagIndexKey> {
        let mut reader = KeyReader::new(row);
        Some(TagIndexKey {
            account: reader.number()?,
            key: reader.text()?,
            value: reader.text()?,
            generation: reader.number()?,
            name: reader.text()?,
        })
    }

    pub fn read(row: &[u8]) -> Result<TagIndexKey, Unread> {
        TagIndexKey::of(row).ok_or_else(|| codec::corrupt("the key of a tag"))
    }
}

/// All rows of one tag key.
pub fn rows_of(account: u64, key: &str) -> Key {
    Key::new(space::TAG).number(account).text(key)
}

/// The current state of the blob at `key` becomes another, or goes, or comes: the tags that it had and has.
pub fn reindex(before: Option<&Tagged>, after: Option<&Tagged>, key: &Key, changes: &mut Changes) {
    if before == after {
        return;
    }
    for place in places(before, key) {
        changes.delete(place);
    }
    if let Some(tags) = after {
        let row = codec::encode(&Indexed { container: tags.container.clone() });
        for place in places(after, key) {
            changes.put(place, row.clone());
        }
    }
}

/// The rows of the index that these tags of the blob at `blob` have.
pub fn places(tags: Option<&Tagged>, blob: &Key) -> Vec<Key> {
    let mut reader = KeyReader::new(blob.as_bytes());
    let (Some(tags), Some(generation), Some(name)) = (tags, reader.number(), reader.text()) else { return Vec::new() };
    let place = |(key, value): &(String, String)| rows_of(tags.account, key).text(value).number(generation).text(&name);
    tags.pairs.iter().map(place).collect()
}
