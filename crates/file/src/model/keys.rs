//! The keys of the rows.

use concurrency::Timestamp;
use engine::{Key, due};
use service::{Deletion, space};
use wire::file_path::FoldedName;
use wire::names::ShareName;

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

/// The directory entry of a file or directory: its head row.
pub fn entry_key(generation: u64, directory: u64, name: &FoldedName) -> Key {
    entries_of(generation, directory).text(name.as_str())
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

/// Where the file or directory of an id is.
pub fn place_key(generation: u64, id: u64) -> Key {
    places_of(generation).number(id)
}

pub fn places_of(generation: u64) -> Key {
    Key::new(space::PLACE).number(generation)
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
