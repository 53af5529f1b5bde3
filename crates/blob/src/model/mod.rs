//! What is stored: the rows of the Blob service and what becomes of them.
//!
//! - A container is one row by account and name. Its `generation` names everything inside it, so deleting a container
//!   removes one row and its blobs are out of reach at once.
//! - A blob is one head row by generation and name; a listing walks these rows and needs no others.
//! - Contents and block lists are shared by reference. The owner of a reference is the id of one committed version
//!   (`Committed::version`), which every base blob and snapshot has for itself.
//! - Uncommitted blocks hang on a staging id. When Put Block List commits them, the staging id becomes the id of the list,
//!   so the references of the blocks stay as they are.
//! - An append blob is a list of blocks, too, in which every append adds one row. A snapshot refers to the same list and
//!   sees it up to its own length; what is appended later stands beyond that. Who replaces the blob begins a new list.
//! - A page blob is a map of pages, which has a module of its own.

pub mod blocks;
pub mod codec;
pub mod tags;
pub mod target;

use bytes::Bytes;
use concurrency::{ETag, Lease, LeaseId, Timestamp, Version};
use engine::due::{self, Kind};
use engine::{Changes, ContentId, Key, KeyReader, Rows, Stop, Tick, Unread, space};
use minicbor::{Decode, Encode};
pub use service::{Pairs, StoredPolicy};
use wire::names::{BlobName, ContainerName};

use crate::error::BlobError;
use crate::model::blocks::UNCOMMITTED_SECONDS;
use crate::model::tags::Tagged;
use crate::pages::View;
use crate::request::Which;
use crate::rules::copy::CopyState;
use crate::rules::encryption::Encryption;
use crate::rules::immutability::{self, Protection};
use crate::rules::tier::{Rehydration, TierSet};

/// What a function over rows ends with when it has no result.
pub type Halt = Stop<BlobError>;

pub fn refuse(error: BlobError) -> Halt {
    Stop::Refused(error)
}

const SECONDS_PER_DAY: u64 = 24 * 3600;

#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Container {
    /// Names what is inside; a container made again under the same name has another.
    #[n(0)]
    pub generation: u64,
    /// ETag and Last-Modified are both made of it.
    #[cbor(n(1), with = "codec::time")]
    pub stamp: Timestamp,
    #[cbor(n(2), with = "codec::lease")]
    pub lease: Lease,
    #[n(3)]
    pub metadata: Pairs,
    #[n(4)]
    pub public: PublicAccess,
    #[n(5)]
    pub policies: Vec<StoredPolicy>,
    /// The encryption scope of blobs that name none.
    #[n(10)]
    pub default_scope: Option<String>,
    /// No blob may have another.
    #[cbor(n(11), default)]
    pub denies_other_scopes: bool,
}

/// A container that is deleted and can come back. What it holds stays under its generation.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct DeletedContainer {
    #[n(0)]
    pub container: Container,
    #[n(1)]
    pub mark: Deletion,
}

/// The same row, for those who only need to know that the container is there.
#[derive(Decode)]
#[cbor(map)]
pub struct ContainerGuard {
    #[n(0)]
    generation: u64,
    #[n(10)]
    pub default_scope: Option<String>,
    #[cbor(n(11), default)]
    pub denies_other_scopes: bool,
}

/// What anybody may read without a credential.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Encode, Decode)]
#[cbor(index_only)]
pub enum PublicAccess {
    #[default]
    #[n(0)]
    None,
    /// The blobs, if one knows their names.
    #[n(1)]
    Blob,
    /// The blobs, their list and the container's properties.
    #[n(2)]
    Container,
}

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

/// The mark of a state that is deleted and can come back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Deletion {
    #[cbor(n(0), with = "codec::time")]
    pub at: Timestamp,
    /// From then on it is gone.
    #[cbor(n(1), with = "codec::time")]
    pub until: Timestamp,
    /// Tells it apart from undeletions of the same time.
    #[cbor(n(2), with = "codec::time")]
    pub stamp: Timestamp,
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
    Pages(#[n(0)] View),
    /// The rows of a list that belongs to another append blob, as far as the length of this one goes. Who appends to this
    /// one begins a list of its own.
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
            BlobType::Page { .. } => crate::request::PAGE_BLOB_BYTES_MAX,
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

/// What a client wants to be told when it reads the blob.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub struct HttpHeaders {
    #[n(0)]
    pub content_type: Option<String>,
    #[n(1)]
    pub content_encoding: Option<String>,
    #[n(2)]
    pub content_language: Option<String>,
    #[n(3)]
    pub content_disposition: Option<String>,
    #[n(4)]
    pub cache_control: Option<String>,
    /// What the client says it is; only Put Blob checks it.
    #[cbor(n(5), with = "minicbor::bytes")]
    pub content_md5: Option<Vec<u8>>,
}

/// The uncommitted blocks of a blob.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Staging {
    #[n(0)]
    pub id: u64,
    /// Of every block id, decoded.
    #[n(1)]
    pub id_length: u8,
    #[n(2)]
    pub count: u32,
    /// When the last block came; a week later all of them go.
    #[cbor(n(3), with = "codec::time")]
    pub last_put: Timestamp,
    /// The due row that looks after them stands at this time.
    #[cbor(n(4), with = "codec::time")]
    pub due: Timestamp,
    /// Rises with every block that comes, so that equal values mean equal blocks.
    #[n(5)]
    pub revision: u64,
}

/// One uncommitted block.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Block {
    #[n(0)]
    pub content: u64,
    #[n(1)]
    pub size: u64,
    #[n(2)]
    pub encryption: Option<Encryption>,
    /// It refers to a content that it did not bring; other blocks may refer to the same one.
    #[cbor(n(3), default)]
    pub is_shared: bool,
}

/// A run of a committed block list, or one block of an append blob.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub struct ListChunk {
    /// The offset of its first byte in the blob.
    #[n(0)]
    pub start: u64,
    #[n(1)]
    pub entries: Vec<ListEntry>,
}

#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct ListEntry {
    /// Empty in an append blob, whose blocks have none.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub id: Vec<u8>,
    #[n(1)]
    pub content: u64,
    #[n(2)]
    pub size: u64,
}

impl Container {
    pub fn version(&self) -> Version<'_> {
        version(self.stamp, &[])
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

    /// Whether somebody who names this lease may write, and the lease as it is afterwards. Every write asks here: while a
    /// copy into the blob is under way nothing else changes it, and an incremental copy is only ever copied to.
    pub fn check_write(&self, lease: Option<LeaseId>, now: Timestamp) -> Result<Lease, BlobError> {
        let lease = self.check_free(lease, now)?;
        match &self.committed {
            Some(state) if state.is_incremental_copy() => Err(BlobError::OperationNotAllowedOnIncrementalCopyBlob),
            _ => Ok(lease),
        }
    }

    /// The same for what may be done to an incremental copy, too: another copy, and its end.
    pub fn check_free(&self, lease: Option<LeaseId>, now: Timestamp) -> Result<Lease, BlobError> {
        let lease = self.lease.check_write(lease, now).map_err(BlobError::lease_on_blob)?;
        self.check_no_copy(now)?;
        Ok(lease)
    }

    /// A copy under way stands against everything but reads and its own end.
    pub fn check_no_copy(&self, now: Timestamp) -> Result<(), BlobError> {
        self.committed.as_ref().map_or(Ok(()), |state| state.check_no_copy(now))
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

impl Deletion {
    /// Made now, for some days.
    pub fn new(days: u16, tick: Tick) -> Deletion {
        let until = tick.now.plus_seconds(u64::from(days) * SECONDS_PER_DAY);
        Deletion { at: tick.now, until, stamp: tick.stamp }
    }

    /// Whether what it marks can still come back.
    pub fn is_kept(&self, now: Timestamp) -> bool {
        now < self.until
    }
}

/// [`Blob::check_write`] for a blob that need not be there.
pub fn check_write(found: Option<&Blob>, lease: Option<LeaseId>, now: Timestamp) -> Result<Lease, BlobError> {
    match found {
        Some(blob) => blob.check_write(lease, now),
        None => Lease::Available.check_write(lease, now).map_err(BlobError::lease_on_blob),
    }
}

/// [`Blob::check_free`] for a blob that need not be there.
pub fn check_free(found: Option<&Blob>, lease: Option<LeaseId>, now: Timestamp) -> Result<Lease, BlobError> {
    match found {
        Some(blob) => blob.check_free(lease, now),
        None => Lease::Available.check_write(lease, now).map_err(BlobError::lease_on_blob),
    }
}

impl Committed {
    /// Whether no copy into it is under way.
    pub fn check_no_copy(&self, now: Timestamp) -> Result<(), BlobError> {
        match &self.copy {
            Some(copy) if copy.is_pending(now) => Err(BlobError::PendingCopyOperation),
            Some(_) | None => Ok(()),
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
        immutability::project(self.protection.as_ref(), None, self.version, changes);
        self.let_content_go(changes, now);
    }

    /// Takes back the references to its content only: the version stays, with other content and all that protects it.
    pub fn let_content_go(&self, changes: &mut Changes, now: Timestamp) {
        match self.content {
            ContentRef::Empty => {}
            ContentRef::Whole(id) => _ = changes.unrefer(Kind::Content, id, self.version, now),
            ContentRef::Blocks(list) | ContentRef::Shared(list) => {
                changes.unrefer(Kind::BlockList, list, self.version, now);
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

impl Staging {
    /// When all of them go, unless another block comes.
    pub fn end(&self) -> Timestamp {
        self.last_put.plus_seconds(UNCOMMITTED_SECONDS)
    }

    /// The blocks are committed or unwanted: their rows go later, the blob's own row no longer names them.
    pub fn leave(&self, blob: &Key, changes: &mut Changes, now: Timestamp) {
        changes.delete(due::key(self.due, Kind::UncommittedBlocks, blob.as_bytes()));
        changes.put(due::key(now, Kind::Staging, &self.id.to_be_bytes()), Bytes::new());
    }
}

fn version(stamp: Timestamp, tags: &[(String, String)]) -> Version<'_> {
    Version { etag: ETag::new(stamp), last_modified: stamp, tags }
}

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

/// The name that a container of this generation has, if it is there; `name` is one that it had.
pub fn name_of_generation(
    rows: &dyn Rows,
    account: u64,
    generation: u64,
    name: &ContainerName,
) -> Result<Option<ContainerName>, Unread> {
    let is_there = |name: &ContainerName| {
        let found = find_container(rows, account, name)?;
        Ok::<_, Unread>(found.is_some_and(|container| container.generation == generation))
    };
    if is_there(name)? {
        return Ok(Some(name.clone()));
    }
    let Some(row) = rows.get(&moved_key(generation))? else { return Ok(None) };
    let text = std::str::from_utf8(&row).map_err(|_| codec::corrupt("the name of a container"))?;
    let name = ContainerName::parse(text).map_err(|_| codec::corrupt("the name of a container"))?;
    Ok(is_there(&name)?.then_some(name))
}

/// The due row at which a container that was not restored is purged.
pub fn deleted_container_due(key: &Key, mark: Deletion) -> Key {
    let owner = [&[DELETED_CONTAINER_OWNER][..], key.as_bytes()].concat();
    due::key(mark.until, Kind::Other, &owner)
}

pub const DELETED_CONTAINER_OWNER: u8 = space::CONTAINER_DELETED;

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
    states_due(SNAPSHOTS_OWNER, uid, now)
}

/// The due row that removes all versions of a blob that is gone.
pub fn versions_due(uid: u64, now: Timestamp) -> Key {
    states_due(VERSIONS_OWNER, uid, now)
}

fn states_due(owner: u8, uid: u64, now: Timestamp) -> Key {
    let owner = [&[owner][..], &uid.to_be_bytes()].concat();
    due::key(now, Kind::Other, &owner)
}

/// The first bytes of the owners of such rows, beside which other services may have their own.
pub const SNAPSHOTS_OWNER: u8 = space::SNAPSHOT;
pub const VERSIONS_OWNER: u8 = space::VERSION;

/// Engines take partitions in turn; a blob's is known before its container has been read.
pub fn blob_partition(account: u64, container: &ContainerName, blob: &BlobName) -> Key {
    container_key(account, container).text(blob.as_str())
}

pub fn find_container(rows: &dyn Rows, account: u64, name: &ContainerName) -> Result<Option<Container>, Unread> {
    rows.get(&container_key(account, name))?.map(|row| codec::decode(&row)).transpose()
}

/// The guard of everything inside a container: it must be there, in the same state of the store.
pub fn generation(rows: &dyn Rows, account: u64, name: &ContainerName) -> Result<u64, Halt> {
    Ok(guard(rows, account, name)?.generation)
}

/// The same, with what the container demands of what is written into it.
pub fn guard(rows: &dyn Rows, account: u64, name: &ContainerName) -> Result<ContainerGuard, Halt> {
    let row = rows.get(&container_key(account, name))?.ok_or(refuse(BlobError::ContainerNotFound))?;
    Ok(codec::decode(&row)?)
}

pub fn find_blob(rows: &dyn Rows, key: &Key) -> Result<Option<Blob>, Unread> {
    rows.get(key)?.map(|row| codec::decode(&row)).transpose()
}

pub fn content(rows: &dyn Rows, id: u64) -> Result<engine::Content, Unread> {
    rows.content(ContentId(id))
}

/// The time in the key of a snapshot or version.
pub fn state_time(key: &[u8]) -> Result<Timestamp, Unread> {
    let mut reader = KeyReader::new(key);
    let time = reader.number().and_then(|_| reader.number());
    time.map(Timestamp).ok_or_else(|| codec::corrupt("the key of a snapshot or version"))
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
