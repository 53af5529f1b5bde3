//! The keys of the rows.

use concurrency::Timestamp;
use engine::{Key, KeyReader, due};
use service::{Deletion, space};
use wire::file_path::FoldedName;
use wire::names::ShareName;

use super::NodePlace;
use crate::security::PermissionKey;

/// The row of a live share, and the partition of everything in it: renames, opens, quota and snapshots of a share must agree.
pub fn share_key(account: u64, name: &ShareName) -> Key {
    Key::new(space::SHARE).number(account).text(name.as_str())
}

pub fn shares_of(account: u64) -> Key {
    Key::new(space::SHARE).number(account)
}

pub fn all_deleted_shares_of(account: u64) -> Key {
    Key::new(space::SHARE_DELETED).number(account)
}

/// A share that was deleted. `version` tells it apart from others that had its name.
pub fn deleted_share_key(account: u64, name: &ShareName, version: u64) -> Key {
    deleted_shares_named(account, name).number(version)
}

/// The deleted shares that had a name.
pub fn deleted_shares_named(account: u64, name: &ShareName) -> Key {
    all_deleted_shares_of(account).text(name.as_str())
}

/// The due row that ends the time in which the deleted share at `key` can come back.
pub fn deleted_share_due(key: &Key, mark: Deletion) -> Key {
    due::key(mark.until, space::SHARE_DELETED, key.as_bytes())
}

/// The due row that removes everything in a share that is gone.
pub fn purge_due(generation: u64, now: Timestamp) -> Key {
    due::key(now, space::SHARE, &generation.to_be_bytes())
}

/// A snapshot of a share, by the time that names it.
pub fn snapshot_key(generation: u64, time: Timestamp) -> Key {
    snapshots_of(generation).number(time.0)
}

pub fn snapshots_of(generation: u64) -> Key {
    Key::new(space::SHARE_SNAPSHOT).number(generation)
}

/// The due row that lets go of what only a snapshot saw that is gone.
pub fn dropped_snapshot_due(share: &Key, generation: u64, epoch: u64, now: Timestamp) -> Key {
    due::key(now, space::SHARE_SNAPSHOT, share.clone().number(generation).number(epoch).as_bytes())
}

/// The directory entry of a file or directory: its head row.
pub fn entry_key(generation: u64, directory: u64, name: &FoldedName) -> Key {
    entries_of(generation, directory).text(name.as_str())
}

/// The generation and the place that the key of an entry tells.
pub fn place_of_entry(key: &[u8]) -> Option<(u64, NodePlace)> {
    let mut reader = KeyReader::new(key);
    let generation = reader.number()?;
    Some((generation, NodePlace { directory: reader.number()?, name: reader.text()? }))
}

/// The entry at a place.
pub fn entry_key_at(generation: u64, place: &NodePlace) -> Key {
    entries_of(generation, place.directory).text(&place.name)
}

/// All entries of a directory. Those of a share's root begin with the row of the root itself, whose name is empty.
pub fn entries_of(generation: u64, directory: u64) -> Key {
    all_entries_of(generation).number(directory)
}

/// The entries of all directories of a share.
pub fn all_entries_of(generation: u64) -> Key {
    Key::new(space::ENTRY).number(generation)
}

/// The row of the root directory of a share: its own id and no name.
pub fn root_key(generation: u64) -> Key {
    entries_of(generation, generation).text("")
}

/// What stood at a name until the snapshot of the epoch `until` was taken, or longer, and was changed before the next one.
pub fn past_key(generation: u64, directory: u64, name: &str, until: u64) -> Key {
    past_of(generation, directory, name).number(until)
}

/// All that stood at a name.
pub fn past_of(generation: u64, directory: u64, name: &str) -> Key {
    past_entries_of(generation, directory).text(name)
}

pub fn past_entries_of(generation: u64, directory: u64) -> Key {
    all_past_of(generation).number(directory)
}

pub fn all_past_of(generation: u64) -> Key {
    Key::new(space::PAST_ENTRY).number(generation)
}

/// That the past entry at a name goes with the snapshot of the epoch `until`.
pub fn kept_key(generation: u64, until: u64, directory: u64, name: &str) -> Key {
    kept_by(generation, until).number(directory).text(name)
}

pub fn kept_by(generation: u64, until: u64) -> Key {
    all_kept_of(generation).number(until)
}

pub fn all_kept_of(generation: u64) -> Key {
    Key::new(space::KEPT_ENTRY).number(generation)
}

/// Where the file or directory of an id is.
pub fn place_key(generation: u64, id: u64) -> Key {
    places_of(generation).number(id)
}

pub fn places_of(generation: u64) -> Key {
    Key::new(space::PLACE).number(generation)
}

/// A file that has several names.
pub fn linked_key(generation: u64, id: u64) -> Key {
    linked_files_of(generation).number(id)
}

pub fn linked_files_of(generation: u64) -> Key {
    Key::new(space::LINKED_FILE).number(generation)
}

pub fn usage_key(generation: u64) -> Key {
    Key::new(space::SHARE_USAGE).number(generation)
}

pub fn permission_key(generation: u64, key: PermissionKey) -> Key {
    permissions_of(generation).text(key.to_bytes())
}

pub fn permissions_of(generation: u64) -> Key {
    Key::new(space::PERMISSION).number(generation)
}
