//! Blobs: the head row, the states that hang on it, and what each refers to.

use bytes::Bytes;
use concurrency::{ETag, Lease, Timestamp, Version};
use content::copy_state::CopyState;
use content::map::PageView;
use engine::{Changes, ContentId, Key, Rows, Tick, Unread};
use minicbor::{Decode, Encode};
use service::{Deletion, HttpHeaders, Pairs, codec, space};
use wire::names::BlobName;

use super::blocks::Staging;
use super::encryption::Encryption;
use super::keys::{blob_key, snapshot_key, snapshots_due, version_key, versions_due};
use super::protection::{self, Protection};
use super::tags::{self, Tagged};
use super::tier::{Rehydration, TierSet};

/// The longest page blob: 8 TiB.
pub const PAGE_BLOB_BYTES_MAX: u64 = 8 << 40;

/// The head row of a blob.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub struct Blob {
    /// Names its snapshots.
    #[n(0)]
    pub uid: u64,
    #[cbor(n(1), with = "codec::lease")]
    pub lease: Lease,
    /// `None`: there are only uncommitted blocks, and for reads and conditions the blob is missing.
    #[n(2)]
    pub committed: Option<Committed>,
    #[n(3)]
    pub staging: Option<Staging>,
    /// How many of them there are that are not deleted.
    #[n(4)]
    pub snapshots: u32,
    /// What is kept of what it was, beside its snapshots.
    #[n(5)]
    pub past: Option<Box<Past>>,
}

/// What an account with versions or soft delete keeps of a blob.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub struct Past {
    /// Names the previous versions. It stays when the blob takes another uid.
    #[n(0)]
    pub uid: u64,
    /// How many previous versions there are that are not deleted.
    #[n(1)]
    pub versions: u32,
    /// How many versions and snapshots wait for their end. Those whose time is over count until they are swept.
    #[n(2)]
    pub deleted_versions: u32,
    #[n(3)]
    pub deleted_snapshots: u32,
    /// The blob itself, if it is deleted and can come back.
    #[n(4)]
    pub deleted: Option<Committed>,
    /// Marks that were made before this do not count.
    #[n(5)]
    pub undeleted: Option<Undeletion>,
    /// The type of the previous versions, which all have one; the rest of it is of one of them.
    #[cbor(n(6), default)]
    pub kind: Option<BlobType>,
}

/// When everything that was deleted came back. So that takes one row, however much it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Undeletion {
    #[cbor(n(0), with = "codec::time")]
    pub at: Timestamp,
    #[cbor(n(1), with = "codec::time")]
    pub stamp: Timestamp,
}

/// The id of a version: the time of the write that made it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Encode, Decode)]
pub struct VersionId(#[cbor(n(0), with = "codec::time")] pub Timestamp);

/// One committed state of a blob: the base, a snapshot, or a previous version.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Committed {
    /// The owner of the references to its content.
    #[n(0)]
    pub version: u64,
    /// ETag and Last-Modified are both made of it.
    #[cbor(n(1), with = "codec::time")]
    pub stamp: Timestamp,
    #[cbor(n(2), with = "codec::time")]
    pub created: Timestamp,
    #[n(3)]
    pub length: u64,
    #[n(4)]
    pub content: ContentRef,
    #[n(5)]
    pub headers: HttpHeaders,
    #[n(6)]
    pub metadata: Pairs,
    #[n(7)]
    pub tier: Option<TierSet>,
    #[cbor(n(8), default)]
    pub kind: BlobType,
    #[n(9)]
    pub tags: Option<Tagged>,
    #[n(11)]
    pub protection: Option<Protection>,
    /// Only of what is archived.
    #[n(17)]
    pub rehydration: Option<Rehydration>,
    /// Boxed: most blobs were never copied to.
    #[n(10)]
    pub copy: Option<Box<CopyState>>,
    /// `None`: it was written when the account kept no versions.
    #[n(15)]
    pub version_id: Option<VersionId>,
    #[n(16)]
    pub deleted: Option<Deletion>,
    /// `None`: by the account, as everything.
    #[n(13)]
    pub encryption: Option<Encryption>,
}

/// What a blob is, with what only its kind has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Encode, Decode)]
pub enum BlobType {
    #[default]
    #[n(0)]
    Block,
    #[n(1)]
    Append {
        /// How many blocks were appended.
        #[n(0)]
        blocks: u32,
        /// Nothing can be appended any more.
        #[n(1)]
        sealed: bool,
    },
    #[n(2)]
    Page {
        /// The client's own count, which conditions of page writes are about.
        #[n(0)]
        sequence: u64,
    },
}

/// Where the bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub enum ContentRef {
    #[n(0)]
    Empty,
    #[n(1)]
    Whole(#[n(0)] u64),
    /// The rows of a list, as far as the length of the blob goes.
    #[n(2)]
    Blocks(#[n(0)] u64),
    /// A page map, at one epoch.
    #[n(3)]
    Pages(#[n(0)] PageView),
    /// The rows of a list that belongs to another append blob, as far as the length of this one goes. An append to
    /// this one begins a list of its own.
    #[n(4)]
    Shared(#[n(0)] u64),
}

impl BlobType {
    /// How long a blob of this type may be; from the REST reference.
    pub fn bytes_max(self) -> u64 {
        const MIB: u64 = 1024 * 1024;
        match self {
            BlobType::Block => 50_000 * 4_000 * MIB,
            BlobType::Append { .. } => 50_000 * 100 * MIB,
            BlobType::Page { .. } => PAGE_BLOB_BYTES_MAX,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            BlobType::Block => "BlockBlob",
            BlobType::Append { .. } => "AppendBlob",
            BlobType::Page { .. } => "PageBlob",
        }
    }
}

impl Blob {
    /// The state that conditions are judged by.
    pub fn version(&self) -> Option<Version<'_>> {
        self.committed.as_ref().map(Committed::version)
    }

    /// Whether it has, or will have, blocks that Put Block List puts in order. What is only staged will.
    pub fn is_block_blob(&self) -> bool {
        self.committed.as_ref().is_none_or(|state| state.kind == BlobType::Block)
    }

    /// The blocks that wait at `now`. A week after the last of them came there are none, though their rows go later.
    pub fn waiting(&self, now: Timestamp) -> Option<&Staging> {
        self.staging.as_ref().filter(|staging| now < staging.end())
    }

    /// Whether there is more left of it than blocks that waited too long.
    pub fn is_there(&self, now: Timestamp) -> bool {
        self.committed.is_some() || self.waiting(now).is_some()
    }

    /// Takes back what this blob refers to, and asks for its snapshots and versions to go. Its row at `key` must not be
    /// stored any longer.
    pub fn let_go(&self, key: &Key, changes: &mut Changes, now: Timestamp) {
        if let Some(committed) = &self.committed {
            tags::reindex(committed.tags.as_ref(), None, key, changes);
            committed.let_go(changes, now);
        }
        if let Some(staging) = &self.staging {
            staging.leave(key, changes, now);
        }
        let past = self.past.as_deref();
        if self.snapshots > 0 || past.is_some_and(|past| past.deleted_snapshots > 0) {
            changes.put(snapshots_due(self.uid, now), Bytes::new());
        }
        if let Some(past) = past {
            if let Some(deleted) = &past.deleted {
                deleted.let_go(changes, now);
            }
            if past.has_versions() {
                changes.put(versions_due(past.uid, now), Bytes::new());
            }
        }
    }

    /// Whether its row can go.
    pub fn is_nothing(&self) -> bool {
        self.committed.is_none() && self.staging.is_none() && self.snapshots == 0 && self.past.is_none()
    }

    /// Stores its row, or removes it if there is nothing left to tell.
    pub fn store(mut self, key: Key, changes: &mut Changes) {
        let has_snapshots = self.snapshots > 0;
        self.past = self.past.filter(|past| !past.is_nothing() || has_snapshots && past.undeleted.is_some());
        if self.is_nothing() {
            changes.delete(key);
        } else {
            changes.put(key, codec::encode(&self));
        }
    }

    /// The snapshot of that time, unless it is deleted.
    pub fn snapshot(&self, rows: &dyn Rows, at: Timestamp) -> Result<Option<Committed>, Unread> {
        let found = find_state(rows, &snapshot_key(self.uid, at))?;
        Ok(found.filter(|state| self.deletion_of(state).is_none()))
    }

    /// The previous version of that id, unless it is deleted.
    pub fn previous_version(&self, rows: &dyn Rows, id: VersionId) -> Result<Option<Committed>, Unread> {
        let Some(past) = self.past.as_deref().filter(|past| past.has_versions()) else { return Ok(None) };
        let found = find_state(rows, &version_key(past.uid, id))?;
        Ok(found.filter(|state| self.deletion_of(state).is_none()))
    }

    /// The mark of one of its snapshots or versions, if it counts.
    pub fn deletion_of(&self, state: &Committed) -> Option<Deletion> {
        let undeleted = self.past.as_ref().and_then(|past| past.undeleted);
        // What was over already did not come back.
        let is_void = |mark: &Deletion| undeleted.is_some_and(|by| mark.stamp < by.stamp && by.at < mark.until);
        state.deleted.filter(|mark| !is_void(mark))
    }
}

impl Past {
    pub fn has_versions(&self) -> bool {
        self.versions > 0 || self.deleted_versions > 0
    }

    fn is_nothing(&self) -> bool {
        !self.has_versions() && self.deleted_snapshots == 0 && self.deleted.is_none()
    }
}

impl Committed {
    /// What a write at `tick` makes of a blob. The operation sets the other fields that it knows.
    pub fn new(kind: BlobType, content: ContentRef, length: u64, tick: Tick) -> Committed {
        Committed {
            version: tick.id(1),
            stamp: tick.stamp,
            created: tick.stamp,
            length,
            content,
            headers: HttpHeaders::default(),
            metadata: Pairs::new(),
            tier: None,
            kind,
            tags: None,
            protection: None,
            rehydration: None,
            copy: None,
            version_id: None,
            deleted: None,
            encryption: None,
        }
    }

    pub fn is_incremental_copy(&self) -> bool {
        self.copy.as_ref().is_some_and(|copy| copy.incremental.is_some())
    }

    pub fn version(&self) -> Version<'_> {
        version(self.stamp, self.tags())
    }

    pub fn tags(&self) -> &[(String, String)] {
        self.tags.as_ref().map_or(&[], Tagged::pairs)
    }

    /// Takes back what this version refers to. The version must not be stored any longer.
    pub fn let_go(&self, changes: &mut Changes, now: Timestamp) {
        protection::project(self.protection.as_ref(), None, self.version, changes);
        self.let_content_go(changes, now);
    }

    /// Takes back the references to its content only: the version stays, with other content and all that protects it.
    pub fn let_content_go(&self, changes: &mut Changes, now: Timestamp) {
        match self.content {
            ContentRef::Empty => {}
            ContentRef::Whole(id) => _ = changes.unrefer(space::CONTENT, id, self.version, now),
            ContentRef::Blocks(list) | ContentRef::Shared(list) => {
                changes.unrefer(space::BLOCK_LIST, list, self.version, now);
            }
            ContentRef::Pages(view) => view.let_go(changes, now),
        }
    }

    /// Refers to the same content once more, for a snapshot of this version that is called `version`. Pages it refers to
    /// instead of the blob, which goes on in the next epoch.
    pub fn kept_as(&mut self, version: u64, changes: &mut Changes) -> Committed {
        // What protects the one does not protect the other.
        let kept = Committed { version, protection: None, ..self.clone() };
        match self.content {
            ContentRef::Empty => {}
            ContentRef::Whole(thing) | ContentRef::Blocks(thing) | ContentRef::Shared(thing) => {
                changes.refer(thing, version);
            }
            ContentRef::Pages(view) => {
                view.next().refer(changes);
                self.content = ContentRef::Pages(view.next());
            }
        }
        kept
    }
}

pub(super) fn version(stamp: Timestamp, tags: &[(String, String)]) -> Version<'_> {
    Version { etag: ETag::new(stamp), last_modified: stamp, tags }
}

pub fn find_blob(rows: &dyn Rows, key: &Key) -> Result<Option<Blob>, Unread> {
    rows.get(key)?.map(|row| codec::decode(&row)).transpose()
}

pub fn content(rows: &dyn Rows, id: u64) -> Result<engine::Content, Unread> {
    rows.content(ContentId(id))
}

/// A snapshot or version as it is stored, deleted or not.
pub fn find_state(rows: &dyn Rows, key: &Key) -> Result<Option<Committed>, Unread> {
    rows.get(key)?.map(|row| codec::decode(&row)).transpose()
}

/// What a read sees: the base with its lease, or a snapshot or previous version, which has none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    pub state: Committed,
    pub lease: Option<Lease>,
}

impl Seen {
    /// Only the base has a lease.
    pub fn base(state: Committed, lease: Lease) -> Seen {
        Seen { state, lease: Some(lease) }
    }

    pub fn earlier(state: Committed) -> Seen {
        Seen { state, lease: None }
    }
}

pub fn see(rows: &dyn Rows, generation: u64, name: &BlobName, which: Which) -> Result<Option<Seen>, Unread> {
    let Some(mut blob) = find_blob(rows, &blob_key(generation, name))? else { return Ok(None) };
    match which {
        Which::Base => Ok(blob.committed.map(|state| Seen::base(state, blob.lease))),
        Which::Snapshot(at) => Ok(blob.snapshot(rows, at)?.map(Seen::earlier)),
        Which::Version(id) => match blob.committed.take_if(|state| state.version_id == Some(id)) {
            Some(current) => Ok(Some(Seen::base(current, blob.lease))),
            None => Ok(blob.previous_version(rows, id)?.map(Seen::earlier)),
        },
    }
}

/// Which state of a blob a read means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    Base,
    Snapshot(Timestamp),
    Version(VersionId),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HELD, committed};

    /// A page blob as the first released version stored it, byte by byte: rows from before are read as they were meant.
    #[test]
    fn stored_page_blobs_stay_as_they_are() {
        let row = "01a400030184015001010101010101010101010101010101001bffffffffffffffff02a90004011b08ddfffffffffc18\
                   021b08ddfffffffff8300319100004820381821b8de00000000000640305a60063612f620164677a697002626465\
                   0366696e6c696e6504686e6f2d63616368650550010101010101010101010101010101010680088202810510830102030400";
        let digits = |at: usize| u8::from_str_radix(&row[at..at + 2], 16).unwrap();
        let row: Vec<u8> = (0..row.len()).step_by(2).map(digits).collect();
        let headers = HttpHeaders {
            content_type: Some("a/b".into()),
            content_encoding: Some("gzip".into()),
            content_language: Some("de".into()),
            content_disposition: Some("inline".into()),
            cache_control: Some("no-cache".into()),
            content_md5: Some(vec![1; 16]),
        };
        let state = Committed {
            length: 4096,
            kind: BlobType::Page { sequence: 5 },
            content: ContentRef::Pages(PageView { map: 0x8DE0_0000_0000_0064, epoch: 3 }),
            headers,
            deleted: Some(Deletion { at: Timestamp(1), until: Timestamp(2), stamp: Timestamp(3) }),
            ..committed()
        };
        let blob = Blob { uid: 3, lease: HELD, committed: Some(state), ..Blob::default() };
        assert_eq!(codec::encode(&blob), row);
        assert_eq!(codec::decode::<Blob>(&row), Ok(blob));
    }
}
