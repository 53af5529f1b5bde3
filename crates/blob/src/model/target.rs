//! One state of a blob that is changed where it stands: the current one, a snapshot or a previous version.
//!
//! Tags, tier, policy and hold are said of a state, and to say them makes neither a new ETag nor a new version.

use concurrency::Lease;
use engine::{Changes, Key, Rows, Unread};
use service::codec;
use wire::names::BlobName;

use super::blob::{Blob, Committed, Which, find_blob};
use super::keys::{blob_key, snapshot_key, version_key};
use super::{protection, tags};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    pub state: Committed,
    /// Only the current state has one.
    pub lease: Lease,
    place: StoredAt,
}

/// Where the state is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
enum StoredAt {
    /// In the row of its blob, which is given without it.
    Head(Key, Box<Blob>),
    Row(Key),
}

impl Target {
    pub fn find(rows: &dyn Rows, generation: u64, name: &BlobName, which: Which) -> Result<Option<Target>, Unread> {
        let key = blob_key(generation, name);
        let Some(mut blob) = find_blob(rows, &key)? else { return Ok(None) };
        let is_meant = |state: &mut Committed| match which {
            Which::Base => true,
            Which::Version(id) => state.version_id == Some(id),
            Which::Snapshot(_) => false,
        };
        if let Some(state) = blob.committed.take_if(is_meant) {
            return Ok(Some(Target { state, lease: blob.lease, place: StoredAt::Head(key, Box::new(blob)) }));
        }
        let uid_of_versions = blob.past.as_ref().map_or(blob.uid, |past| past.uid);
        let (found, row) = match which {
            Which::Base => return Ok(None),
            Which::Snapshot(at) => (blob.snapshot(rows, at)?, snapshot_key(blob.uid, at)),
            Which::Version(id) => (blob.previous_version(rows, id)?, version_key(uid_of_versions, id)),
        };
        Ok(found.map(|state| Target { state, lease: Lease::Available, place: StoredAt::Row(row) }))
    }

    /// Stores the state as it becomes.
    pub fn store(self, after: Committed, changes: &mut Changes) {
        let protections = (self.state.protection.as_ref(), after.protection.as_ref());
        protection::project(protections.0, protections.1, after.version, changes);
        match self.place {
            StoredAt::Row(row) => _ = changes.put(row, codec::encode(&after)),
            StoredAt::Head(key, blob) => {
                tags::reindex(self.state.tags.as_ref(), after.tags.as_ref(), &key, changes);
                Blob { committed: Some(after), ..*blob }.store(key, changes);
            }
        }
    }
}

#[cfg(test)]
impl Target {
    /// The current state of some blob.
    pub fn current(lease: Lease) -> Target {
        let blob = Blob { uid: 3, lease, ..Blob::default() };
        let place = StoredAt::Head(Key::new(service::space::BLOB), Box::new(blob));
        Target { state: crate::testing::committed(), lease, place }
    }
}
