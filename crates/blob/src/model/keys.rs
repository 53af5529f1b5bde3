//! The keys of the service's rows, and of the due rows that it writes.

use concurrency::Timestamp;
use engine::{Key, KeyReader, Unread, due};
use service::{Deletion, codec, space};
use wire::names::{BlobName, ContainerName};

use super::blob::VersionId;

pub fn container_key(account: u64, name: &ContainerName) -> Key {
    Key::new(space::CONTAINER).number(account).text(name.as_str())
}

/// Of one name there can be several that are deleted; the stamp of the deletion tells them apart.
pub fn deleted_container_key(account: u64, name: &ContainerName, version: u64) -> Key {
    Key::new(space::CONTAINER_DELETED).number(account).text(name.as_str()).number(version)
}

/// The row that says under which name a container was restored, if that is not the one it had. What only knows a generation
/// and an old name finds it by this.
pub fn moved_key(generation: u64) -> Key {
    Key::new(space::CONTAINER_MOVED).number(generation)
}

/// The due row at which a container that was not restored is purged.
pub fn deleted_container_due(key: &Key, mark: Deletion) -> Key {
    due::key(mark.until, space::CONTAINER_DELETED, key.as_bytes())
}

/// The due row that removes the blobs of a container that is gone.
pub fn purge_due(generation: u64, now: Timestamp) -> Key {
    due::key(now, space::CONTAINER, &generation.to_be_bytes())
}

pub fn blob_key(generation: u64, name: &BlobName) -> Key {
    Key::new(space::BLOB).number(generation).text(name.as_str())
}

pub fn snapshot_key(uid: u64, stamp: Timestamp) -> Key {
    Key::new(space::SNAPSHOT).number(uid).number(stamp.0)
}

pub fn snapshots_of(uid: u64) -> Key {
    Key::new(space::SNAPSHOT).number(uid)
}

pub fn version_key(uid: u64, id: VersionId) -> Key {
    versions_of(uid).number(id.0.0)
}

pub fn versions_of(uid: u64) -> Key {
    Key::new(space::VERSION).number(uid)
}

pub fn block_key(staging: u64, id: &[u8]) -> Key {
    blocks_of(staging).text(id)
}

pub fn blocks_of(staging: u64) -> Key {
    Key::new(space::BLOCK).number(staging)
}

/// A chunk is found by the offset of the byte after its last: the first key above an offset is the chunk that holds it.
pub fn chunk_key(list: u64, end: u64) -> Key {
    list_rows(list).number(end)
}

pub fn list_rows(list: u64) -> Key {
    Key::new(space::BLOCK_LIST).number(list)
}

/// The due row that removes all snapshots of a blob that is gone (or that has taken another uid).
pub fn snapshots_due(uid: u64, now: Timestamp) -> Key {
    due::key(now, space::SNAPSHOT, &uid.to_be_bytes())
}

/// The due row that removes all versions of a blob that is gone.
pub fn versions_due(uid: u64, now: Timestamp) -> Key {
    due::key(now, space::VERSION, &uid.to_be_bytes())
}

/// Engines take partitions in turn; a blob's is known before its container has been read.
pub fn blob_partition(account: u64, container: &ContainerName, blob: &BlobName) -> Key {
    container_key(account, container).text(blob.as_str())
}

/// The time in the key of a snapshot or version.
pub fn state_time(key: &[u8]) -> Result<Timestamp, Unread> {
    let mut reader = KeyReader::new(key);
    let time = reader.number().and_then(|_| reader.number());
    time.map(Timestamp).ok_or_else(|| codec::corrupt("the key of a snapshot or version"))
}
