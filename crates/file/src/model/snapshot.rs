//! Share snapshots: their rows.

use concurrency::Timestamp;
use engine::{Key, KeyReader, Rows, Unread, Visit};
use minicbor::{Decode, Encode};
use service::codec;

use super::keys::{snapshot_key, snapshots_of};
use super::{Halt, Share, refuse};
use crate::error::FileError;

/// The most snapshots of a share. From the REST reference.
pub const SNAPSHOTS_MAX: u32 = 200;

/// A snapshot of a share. It costs this row, however much the share holds.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct ShareSnapshot {
    /// The epoch that it ended: it sees what has stood there since this epoch or an earlier one.
    #[n(0)]
    pub epoch: u64,
    /// The stamp of its commit. What is cleared in a file later has a later one.
    #[cbor(n(1), with = "codec::time")]
    pub taken: Timestamp,
    /// The share as it was then, with the metadata and the lease of the snapshot, and without policies.
    #[n(2)]
    pub share: Share,
}

/// The snapshot that a request names by its time, which must be there.
pub fn existing_snapshot(rows: &dyn Rows, generation: u64, time: Timestamp) -> Result<ShareSnapshot, Halt> {
    let row = rows.get(&snapshot_key(generation, time))?;
    let found = row.map(|row| codec::decode(&row)).transpose()?;
    found.ok_or(refuse(FileError::ShareNotFound))
}

/// The rows of a share's snapshots.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SnapshotRows {
    /// The snapshots with their times, oldest first.
    pub readable: Vec<(Timestamp, ShareSnapshot)>,
    /// The keys of the rows that cannot be read.
    pub damaged: Vec<Key>,
}

/// Reads the snapshots of a share as far as they can be read.
pub fn snapshot_rows(rows: &dyn Rows, generation: u64) -> Result<SnapshotRows, Unread> {
    let all = snapshots_of(generation);
    let mut found = SnapshotRows::default();
    rows.scan(&all, &all.after_all(), SNAPSHOTS_MAX as usize, &mut |key, row| {
        let mut reader = KeyReader::new(key);
        let time = reader.number().and_then(|_| reader.number()).map(Timestamp);
        match (time, codec::decode(row)) {
            (Some(time), Ok(snapshot)) => found.readable.push((time, snapshot)),
            _ => found.damaged.push(Key::from_bytes(key)),
        }
        Visit::Next
    })?;
    Ok(found)
}

/// The snapshots of a share with their times, oldest first. If one cannot be read, the error names its row.
pub fn snapshots(rows: &dyn Rows, generation: u64) -> Result<Vec<(Timestamp, ShareSnapshot)>, Unread> {
    let SnapshotRows { readable, damaged } = snapshot_rows(rows, generation)?;
    match damaged.first() {
        None => Ok(readable),
        Some(key) => Err(codec::corrupt(&format!("the row of a share snapshot cannot be read: {key:?}"))),
    }
}
