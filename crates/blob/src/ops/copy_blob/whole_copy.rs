//! The copy of a whole source as values, one for each way its bytes are here: in a blob of this server, read, or still to come.

use concurrency::{Conditions, DurationKind, Lease, LeaseId, Timestamp};
use content::background_copy::{Job, JobSource};
use content::copy_state::CopyState;
use content::map::PageView;
use content::source::LocalPlace;
use content::upload::Received;
use engine::{Changes, Key, Rows, Tick};
use service::{Operation, ReadOperation, RequestError};
use wire::names::{BlobName, ContainerName};

use crate::background_copy::BlobDestination;
use crate::error::BlobError;
use crate::model::encryption::Encryption;
use crate::model::tags::Tagged;
use crate::model::tier::{Priority, Tier};
use crate::model::{
    self, Blob, BlobType, Committed, ContainerGuard, ContentRef, Halt, HttpHeaders, Pairs, blob_key, refuse,
};
use crate::reply;
use crate::rules::copy;
use crate::rules::copy_source::{SourceBlob, SourceUrl};
use crate::rules::creation_options::CreationOptions;
use crate::rules::encryption;
use crate::rules::soft_delete::{self, Keeping, Written};
use crate::rules::writable::{self, Reach};

/// The destination of a copy: what the copy makes of it, whatever the source is. As a [`ReadOperation`] it says whether the
/// destination may be replaced, before the source is looked at.
#[derive(Clone, Debug)]
pub struct WholeCopy {
    pub container: ContainerName,
    pub name: BlobName,
    pub conditions: Conditions,
    pub lease: Option<LeaseId>,
    pub kind: CopyKind,
    pub source_url: SourceUrl,
    /// None: that of the source.
    pub metadata: Pairs,
    /// What the request says of the new blob itself.
    pub headers: HttpHeaders,
    /// Whether the rest is said by the source.
    pub takes_properties: bool,
    pub options: CreationOptions,
    /// The tags are those of the source.
    pub takes_tags: bool,
    pub seal: Option<bool>,
    /// How much of a hurry there is with a source that is archived.
    pub priority: Option<Priority>,
    /// What the client names as encryption; else that of the container holds.
    pub encryption: Option<Encryption>,
    pub keeping: Keeping,
    pub reach: Reach,
}

/// Which operation copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyKind {
    /// A blob of the source's type, which knows where it came from: Copy Blob.
    Copy,
    /// The same for a block blob, within the request: Copy Blob From URL.
    CopyInRequest,
    /// A new block blob: Put Blob From URL.
    BlockBlob,
}

/// What is known of a source, wherever it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceProperties {
    pub length: u64,
    pub kind: BlobType,
    pub headers: HttpHeaders,
    pub metadata: Pairs,
    pub tags: Option<Tagged>,
    pub is_archived: bool,
}

impl SourceProperties {
    pub fn of_blob(state: &Committed) -> SourceProperties {
        let Committed { length, kind, headers, metadata, tags, .. } = state.clone();
        SourceProperties { length, kind, headers, metadata, tags, is_archived: false }
    }
}

/// What is told of a blob that was copied, or is going to be.
#[derive(Clone, Debug)]
pub struct CopiedBlob {
    pub written: Written,
    pub copy: Option<Box<CopyState>>,
    pub encryption: Option<Encryption>,
}

impl WholeCopy {
    /// Whether the copy may happen, and the lease as it is afterwards. The order is the service's.
    pub(super) fn judge(&self, found: Option<&Blob>, now: Timestamp) -> Result<Lease, BlobError> {
        self.options.check(now)?;
        let version = found.and_then(Blob::version);
        if self.reach == Reach::CreateOnly && version.is_some() {
            return Err(BlobError::UnauthorizedBlobOverwrite);
        }
        self.conditions.check_write(version.as_ref())?;
        let before = found.map_or(Lease::Available, |blob| blob.lease);
        let lease = match self.kind {
            CopyKind::Copy | CopyKind::CopyInRequest => writable::check_free(found, self.lease, now)?,
            CopyKind::BlockBlob => writable::check_write(found, self.lease, now)?,
        };
        // A copy may take long, and a lease must not end meanwhile.
        if self.kind == CopyKind::Copy && before.duration_kind(now) == Some(DurationKind::Fixed) {
            return Err(BlobError::InfiniteLeaseDurationRequired);
        }
        self.conditions.check_create_only(version.is_some(), before.is_held_by(self.lease, now))?;
        let is_incremental = |blob: &Blob| blob.committed.as_ref().is_some_and(Committed::is_incremental_copy);
        if found.is_some_and(is_incremental) {
            return Err(BlobError::OperationNotAllowedOnIncrementalCopyBlob);
        }
        found.map_or(Ok(()), |blob| blob.check_replace(self.keeping.versioning(), now))?;
        Ok(lease)
    }

    /// The type that the blob gets. One that is there keeps its own.
    pub(super) fn blob_type(&self, found: Option<&Blob>, source: BlobType) -> Result<BlobType, BlobError> {
        let kind = match (self.kind, source) {
            (CopyKind::BlockBlob, _) => return Ok(BlobType::Block),
            (CopyKind::CopyInRequest, BlobType::Append { .. } | BlobType::Page { .. }) => {
                return Err(BlobError::InvalidSourceBlobType);
            }
            (_, BlobType::Append { blocks, sealed }) => {
                BlobType::Append { blocks, sealed: self.seal.unwrap_or(sealed) }
            }
            (_, kind @ (BlobType::Block | BlobType::Page { .. })) => kind,
        };
        let before = found.and_then(|blob| blob.committed.as_ref()).map(|state| state.kind.name());
        if before.is_some_and(|before| before != kind.name()) {
            return Err(BlobError::InvalidBlobType);
        }
        Ok(kind)
    }

    fn headers(&self, source: &HttpHeaders) -> HttpHeaders {
        let own = &self.headers;
        let taken = match (self.kind, self.takes_properties) {
            (CopyKind::Copy | CopyKind::CopyInRequest, _) => return source.clone(),
            (CopyKind::BlockBlob, true) => source.clone(),
            // The bytes are the same, whatever else is said of them.
            (CopyKind::BlockBlob, false) => {
                let content_type = Some(reply::CONTENT_TYPE_DEFAULT.to_owned());
                HttpHeaders { content_type, content_md5: source.content_md5.clone(), ..HttpHeaders::default() }
            }
        };
        HttpHeaders {
            content_type: own.content_type.clone().or(taken.content_type),
            content_encoding: own.content_encoding.clone().or(taken.content_encoding),
            content_language: own.content_language.clone().or(taken.content_language),
            content_disposition: own.content_disposition.clone().or(taken.content_disposition),
            cache_control: own.cache_control.clone().or(taken.cache_control),
            content_md5: own.content_md5.clone().or(taken.content_md5),
        }
    }

    /// The blob as it becomes; its content comes beside it. Lease and snapshots stay.
    fn decide(
        &self,
        found: Option<&Blob>,
        source: &SourceProperties,
        account: u64,
        tick: Tick,
    ) -> Result<(Lease, Committed), BlobError> {
        let lease = self.judge(found, tick.now)?;
        let kind = self.blob_type(found, source.kind)?;
        let before = found.and_then(|blob| blob.committed.as_ref());
        // A copy stays where the blob was, unless it is told where to go.
        let kept = before.and_then(|state| state.tier_set_at(tick.now)).filter(|_| self.kind == CopyKind::Copy);
        if let Some(tier) = self.options.tier {
            tier.check(kind, source.length, self.options.is_premium)?;
        }
        let takes_metadata = self.metadata.is_empty() && self.takes_properties;
        let copy = match self.kind {
            CopyKind::Copy | CopyKind::CopyInRequest => {
                Some(Box::new(CopyState::success(&self.source_url.0, source.length, tick)))
            }
            CopyKind::BlockBlob => None,
        };
        let committed = Committed {
            headers: self.headers(&source.headers),
            metadata: if takes_metadata { source.metadata.clone() } else { self.metadata.clone() },
            copy,
            ..Committed::new(kind, ContentRef::Empty, source.length, tick)
        };
        let mut state = self.options.to(committed, &self.container, account, tick);
        state.tier = state.tier.or(kept.filter(|_| kind == BlobType::Block));
        if self.takes_tags {
            state.tags = source.tags.as_ref().map(|tags| tags.copied_to(account, &self.container));
        }
        if source.is_archived {
            state = self.rehydrate(state, tick)?;
        }
        Ok((lease, state))
    }

    /// What is copied from the archive must be told where to go, and is on its way there until it is rehydrated.
    fn rehydrate(&self, state: Committed, tick: Tick) -> Result<Committed, BlobError> {
        let to = self.options.tier.filter(|tier| *tier != Tier::Archive).ok_or(BlobError::BlobArchived)?;
        let mut state = state.rehydrating(to, self.priority, tick.now);
        if let (Some(copy), Some(back)) = (state.copy.take(), state.rehydration) {
            state.copy = Some(Box::new(copy.waiting(back.end)));
        }
        Ok(state)
    }

    fn partition(&self, account: u64) -> Key {
        model::blob_partition(account, &self.container, &self.name)
    }

    /// The destination as it is.
    fn load(&self, rows: &dyn Rows, account: u64) -> Result<Destination, Halt> {
        self.keeping.prefetch(rows);
        let container = model::guard(rows, account, &self.container)?;
        let key = blob_key(container.generation, &self.name);
        let found = model::find_blob(rows, &key)?;
        Ok(Destination { container, key, found })
    }

    /// Makes `state` that of the destination.
    fn store(
        &self,
        rows: &dyn Rows,
        destination: Destination,
        (lease, mut state): (Lease, Committed),
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<CopiedBlob, Halt> {
        let Destination { container, key, found } = destination;
        state.encryption = encryption::effective(&container, self.encryption.as_ref())?;
        let (copy, encryption) = (state.copy.clone(), state.encryption.clone());
        let written = soft_delete::replace(rows, key, found, (lease, state), self.keeping, tick, changes)?;
        Ok(CopiedBlob { written, copy, encryption })
    }
}

/// The blob that is copied to, and the container that it is in.
struct Destination {
    container: ContainerGuard,
    key: Key,
    found: Option<Blob>,
}

impl Destination {
    fn there(&self, now: Timestamp) -> Option<&Blob> {
        self.found.as_ref().filter(|blob| blob.is_there(now))
    }
}

/// Whether the copy may happen.
impl ReadOperation for WholeCopy {
    type Outcome = ();
    type Refusal = BlobError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<(), Halt> {
        let generation = model::generation(rows, account, &self.container)?;
        let found = model::find_blob(rows, &blob_key(generation, &self.name))?;
        self.judge(found.as_ref().filter(|blob| blob.is_there(now)), now).map_err(refuse)?;
        Ok(())
    }
}

/// The copy of a blob of this server, by reference.
#[derive(Clone, Debug)]
pub struct CopyBlob {
    pub copy: WholeCopy,
    pub source: SourceBlob,
    pub source_conditions: Conditions,
    /// When the source was last changed, if it must still be that one: a sum was computed of its bytes.
    pub source_stamp: Option<Timestamp>,
}

/// What has become of a copy by reference.
#[derive(Clone, Debug)]
pub enum CopyOutcome {
    Copied(CopiedBlob),
    /// Nothing: the source has changed since it was looked at.
    SourceChanged,
    /// Nothing: too many page maps stand behind this one, and it must be settled first ([`content::map::PageView::settle`]).
    AfterSettling(u64),
}

impl Operation for CopyBlob {
    type Outcome = CopyOutcome;
    type Refusal = BlobError;

    fn partition(&self, account: u64) -> Key {
        self.copy.partition(account)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<CopyOutcome, Halt> {
        let destination = self.copy.load(rows, account)?;
        let source = self.source.look(rows, &self.source_conditions, tick.now)?.state;
        if self.source_stamp.is_some_and(|stamp| stamp != source.stamp) {
            return Ok(CopyOutcome::SourceChanged);
        }
        // What is sealed on either side must be read, and sealed anew.
        if encryption::is_sealed(source.encryption.as_ref()) || encryption::is_sealed(self.copy.encryption.as_ref()) {
            return Err(refuse(BlobError::SourceConditionNotMet));
        }
        // The pages or appended blocks of a blob are no content of a block blob: they must be read.
        if self.copy.kind == CopyKind::BlockBlob && source.kind != BlobType::Block {
            return Ok(CopyOutcome::SourceChanged);
        }
        let is_archived = source.is_archived(tick.now);
        let properties = SourceProperties { is_archived, ..SourceProperties::of_blob(&source) };
        let decided = self.copy.decide(destination.there(tick.now), &properties, account, tick);
        let (lease, mut state) = decided.map_err(refuse)?;
        state.content = match copy::share(rows, &self.source, &source, &destination.key, tick, changes)? {
            copy::Shared::By(content) => content,
            copy::Shared::AfterSettling(map) => return Ok(CopyOutcome::AfterSettling(map)),
        };
        Ok(CopyOutcome::Copied(self.copy.store(rows, destination, (lease, state), tick, changes)?))
    }
}

/// A copy whose bytes have been read. It becomes a block blob.
#[derive(Clone, Debug)]
pub struct CopyReceived {
    pub copy: WholeCopy,
    /// Of a block blob, with the length of the body.
    pub source: SourceProperties,
    /// The bytes, which are durable by now.
    pub body: Received,
}

impl Operation for CopyReceived {
    type Outcome = CopiedBlob;
    type Refusal = BlobError;

    fn partition(&self, account: u64) -> Key {
        self.copy.partition(account)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<CopiedBlob, Halt> {
        let destination = self.copy.load(rows, account)?;
        let decided = self.copy.decide(destination.there(tick.now), &self.source, account, tick);
        let (lease, mut state) = decided.map_err(refuse)?;
        if state.kind != BlobType::Block {
            return Err(refuse(BlobError::InvalidSourceBlobType));
        }
        if self.source.length != self.body.length {
            return Err(refuse(BlobError::Request(RequestError::OutOfRangeInput)));
        }
        let content = self.body.keep(rows, tick.id(1), changes, BlobError::SourceConditionNotMet)?;
        state.content = content.map_or(ContentRef::Empty, ContentRef::Whole);
        self.copy.store(rows, destination, (lease, state), tick, changes)
    }
}

/// The beginning of a copy that goes on after its answer. The blob is empty and says what it is waiting for.
#[derive(Clone, Debug)]
pub struct BeginCopy {
    pub copy: WholeCopy,
    pub source: SourceProperties,
    /// What the source must still be when its bytes are read.
    pub source_etag: Option<String>,
    /// Where the source is, if that is in this server.
    pub local: Option<LocalPlace>,
}

impl Operation for BeginCopy {
    /// The blob that waits, and the job that fetches its bytes.
    type Outcome = (CopiedBlob, Job);
    type Refusal = BlobError;

    fn partition(&self, account: u64) -> Key {
        self.copy.partition(account)
    }

    fn apply(
        &self,
        rows: &dyn Rows,
        account: u64,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(CopiedBlob, Job), Halt> {
        let destination = self.copy.load(rows, account)?;
        let decided = self.copy.decide(destination.there(tick.now), &self.source, account, tick);
        let (lease, mut state) = decided.map_err(refuse)?;
        let SourceUrl(url) = &self.copy.source_url;
        let source = JobSource {
            url: url.clone(),
            etag: self.source_etag.clone(),
            content_md5: state.headers.content_md5.take(),
            local: self.local.clone(),
        };
        let job = Job::new(source, &BlobDestination(destination.key.clone()), tick);
        let copy = CopyState::pending(url, self.source.length, tick);
        state.copy = Some(Box::new(CopyState { job: Some(job.id), ..copy }));
        match state.kind {
            BlobType::Block | BlobType::Append { .. } => state.length = 0,
            BlobType::Page { .. } => {
                let view = PageView::new(tick.id(2));
                view.create(changes);
                state.content = ContentRef::Pages(view);
            }
        }
        job.begin::<BlobDestination>(changes);
        Ok((self.copy.store(rows, destination, (lease, state), tick, changes)?, job))
    }
}
