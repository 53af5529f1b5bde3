//! Copy Blob: make a blob what another blob is.
//!
//! A source in this server is copied in the request, by reference. One elsewhere is fetched beside the requests, and the
//! blob is `pending` and empty until all of it is there; see [`crate::background_copy`].
//!
//! Copy Blob From URL and Put Blob From URL make a blob of a whole source, too, and share what is here.

use std::sync::Arc;

use auth::{Kind, Settings};
use concurrency::{Conditions, DurationKind, Lease, LeaseId, Timestamp};
use content::background_copy::{Job, JobSource};
use content::copy_state::{CopyState, CopyStatus};
use content::map::{PAGE_BYTES, PageView};
use content::source::{Fetched, LocalPlace, LocalSource, SourceReader, answered_properties};
use content::upload::{Received, Wanted};
use engine::{Changes, Commit, Tick, commit, read};
use service::RequestError;
use service::sources::Manner;
use wire::http::{Body, Head, HeaderMap, HeaderValue, Reply, StatusCode, header};
use wire::names::{BlobName, ContainerName};

use super::Call;
use crate::background_copy::BlobDestination;
use crate::encryption_headers;
use crate::error::BlobError;
use crate::model::encryption::Encryption;
use crate::model::tags::Tagged;
use crate::model::tier::{Priority, Tier};
use crate::model::{self, Blob, BlobType, Committed, ContentRef, HttpHeaders, Pairs, blob_key, refuse};
use crate::rules::copy;
use crate::rules::copy_source::{self, SourceBlob};
use crate::rules::creation_options::CreationOptions;
use crate::rules::encryption::{self, WriteEncryption};
use crate::rules::soft_delete::{self, Written};
use crate::rules::writable;
use crate::source::{self, Opened, Origin, Source};
use crate::{Failure, Reach, reply, request};

/// A copy of a whole source.
#[derive(Clone)]
pub(super) struct WholeCopy {
    pub container: ContainerName,
    pub name: BlobName,
    conditions: Conditions,
    lease: Option<LeaseId>,
    source: Source,
    result: Makes,
    /// None: that of the source.
    metadata: Pairs,
    /// What the request says of the new blob itself.
    headers: HttpHeaders,
    /// Whether the rest is said by the source.
    takes_properties: bool,
    options: CreationOptions,
    /// The tags are those of the source.
    takes_tags: bool,
    account: u64,
    versioning: bool,
    seal: Option<bool>,
    /// How much of a hurry there is with a source that is archived.
    priority: Option<Priority>,
    reach: Reach,
}

/// What comes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Makes {
    /// A blob of the source's type, which knows where it came from: Copy Blob.
    Copy,
    /// The same for a block blob, within the request: Copy Blob From URL.
    CopyInRequest,
    /// A new block blob: Put Blob From URL.
    BlockBlob,
}

pub(super) fn parse(call: &Call<'_>, result: Makes) -> Result<WholeCopy, BlobError> {
    read_head(call.head, call.account, call.reach, call.asker.settings, result)
}

fn read_head(
    head: &Head,
    account: u64,
    reach: Reach,
    settings: &Settings,
    result: Makes,
) -> Result<WholeCopy, BlobError> {
    let (container, name) = request::blob(head)?;
    request::only_base(head)?;
    request::no_expiry(head)?;
    // Of these only a new blob can be sealed, or come from one that is: so the service has it.
    let source = match result {
        Makes::Copy => Source::parse(head, Manner::Copy)?,
        Makes::CopyInRequest => Source::parse(head, Manner::FromUrl)?,
        Makes::BlockBlob => Source::parse_with_key(head)?,
    };
    match result {
        Makes::Copy | Makes::CopyInRequest => encryption_headers::no_customer_key(head)?,
        Makes::BlockBlob => {}
    }
    let conditions = request::conditions(head)?;
    conditions.check_write_combination()?;
    Ok(WholeCopy {
        container,
        name,
        conditions,
        lease: request::lease_id(head)?,
        source,
        result,
        metadata: request::metadata(head)?,
        headers: request::blob_headers(head)?,
        takes_properties: request::flag(head, "x-ms-copy-source-blob-properties")?.unwrap_or(true),
        options: request::creation_options_unchecked(head, settings.kind == Kind::Premium)?,
        versioning: settings.versioning,
        takes_tags: request::takes_tags(head)?,
        account,
        seal: request::flag(head, "x-ms-seal-blob")?,
        priority: request::rehydrate_priority(head)?,
        reach,
    })
}

/// What is known of a source, wherever it is.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Described {
    length: u64,
    kind: BlobType,
    headers: HttpHeaders,
    metadata: Pairs,
    tags: Option<Tagged>,
    is_archived: bool,
}

impl Described {
    fn blob(state: &Committed) -> Described {
        let Committed { length, kind, headers, metadata, tags, .. } = state.clone();
        Described { length, kind, headers, metadata, tags, is_archived: false }
    }

    /// By the head of an answer.
    fn answer(headers: &HeaderMap, length: u64) -> Described {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let number = |name: &str| text(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        let kind = match text("x-ms-blob-type").as_deref() {
            Some("PageBlob") if length.is_multiple_of(PAGE_BYTES) => {
                BlobType::Page { sequence: number("x-ms-blob-sequence-number") }
            }
            Some("AppendBlob") => {
                BlobType::Append { blocks: 0, sealed: text("x-ms-blob-sealed").as_deref() == Some("true") }
            }
            _ => BlobType::Block,
        };
        let (headers, metadata) = answered_properties(headers);
        Described { length, kind, headers, metadata, tags: None, is_archived: false }
    }
}

impl WholeCopy {
    /// Whether the copy may happen, and the lease as it is afterwards. The order is the service's.
    fn judge(&self, found: Option<&Blob>, now: Timestamp) -> Result<Lease, BlobError> {
        self.options.check(now)?;
        let version = found.and_then(Blob::version);
        if self.reach == Reach::CreateOnly && version.is_some() {
            return Err(BlobError::UnauthorizedBlobOverwrite);
        }
        self.conditions.check_write(version.as_ref())?;
        let before = found.map_or(Lease::Available, |blob| blob.lease);
        let lease = match self.result {
            Makes::Copy | Makes::CopyInRequest => writable::check_free(found, self.lease, now)?,
            Makes::BlockBlob => writable::check_write(found, self.lease, now)?,
        };
        // A copy may take long, and a lease must not end meanwhile.
        if self.result == Makes::Copy && before.duration_kind(now) == Some(DurationKind::Fixed) {
            return Err(BlobError::InfiniteLeaseDurationRequired);
        }
        self.conditions.check_create_only(version.is_some(), before.is_held_by(self.lease, now))?;
        let is_incremental = |blob: &Blob| blob.committed.as_ref().is_some_and(Committed::is_incremental_copy);
        if found.is_some_and(is_incremental) {
            return Err(BlobError::OperationNotAllowedOnIncrementalCopyBlob);
        }
        found.map_or(Ok(()), |blob| blob.check_replace(self.versioning, now))?;
        Ok(lease)
    }

    /// The type that the blob gets. One that is there keeps its own.
    fn kind(&self, found: Option<&Blob>, source: BlobType) -> Result<BlobType, BlobError> {
        let kind = match (self.result, source) {
            (Makes::BlockBlob, _) => return Ok(BlobType::Block),
            (Makes::CopyInRequest, BlobType::Append { .. } | BlobType::Page { .. }) => {
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
        let taken = match (self.result, self.takes_properties) {
            (Makes::Copy | Makes::CopyInRequest, _) => return source.clone(),
            (Makes::BlockBlob, true) => source.clone(),
            // The bytes are the same, whatever else is said of them.
            (Makes::BlockBlob, false) => {
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
    fn decide(&self, found: Option<&Blob>, source: &Described, tick: Tick) -> Result<(Lease, Committed), BlobError> {
        let lease = self.judge(found, tick.now)?;
        let kind = self.kind(found, source.kind)?;
        let before = found.and_then(|blob| blob.committed.as_ref());
        // A copy stays where the blob was, unless it is told where to go.
        let kept = before.and_then(|state| state.tier_set_at(tick.now)).filter(|_| self.result == Makes::Copy);
        if let Some(tier) = self.options.tier {
            tier.check(kind, source.length, self.options.is_premium)?;
        }
        let takes_metadata = self.metadata.is_empty() && self.takes_properties;
        let copy = match self.result {
            Makes::Copy | Makes::CopyInRequest => {
                Some(Box::new(CopyState::success(&self.source.wish.url, source.length, tick)))
            }
            Makes::BlockBlob => None,
        };
        let committed = Committed {
            headers: self.headers(&source.headers),
            metadata: if takes_metadata { source.metadata.clone() } else { self.metadata.clone() },
            copy,
            ..Committed::new(kind, ContentRef::Empty, source.length, tick)
        };
        let mut state = self.options.to(committed, &self.container, self.account, tick);
        state.tier = state.tier.or(kept.filter(|_| kind == BlobType::Block));
        if self.takes_tags {
            state.tags = source.tags.as_ref().map(|tags| tags.copied_to(self.account, &self.container));
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

    /// Whether the copy may happen, before the source is looked at.
    async fn may(&self, call: Call<'_>) -> Result<(), Failure> {
        let (op, account) = (self.clone(), call.account);
        let judged = read(call.engine, move |rows, now| {
            let generation = model::generation(rows, account, &op.container)?;
            let found = model::find_blob(rows, &blob_key(generation, &op.name))?;
            op.judge(found.as_ref().filter(|blob| blob.is_there(now)), now).map_err(refuse)
        });
        judged.await?;
        Ok(())
    }

    /// Runs the whole of it.
    pub(super) async fn run(self, call: Call<'_>) -> Result<Reply, Failure> {
        self.may(call).await?;
        match (self.source.find(call.sources()).await?, self.result) {
            (Origin::Blob(place), _) => self.copy_here(call, place).await,
            (Origin::File(place, files), _) => self.copy_file(call, place, files).await,
            (Origin::Elsewhere, Makes::Copy) => self.copy_later(call).await,
            (Origin::Elsewhere, Makes::CopyInRequest | Makes::BlockBlob) => self.take_in(call).await,
        }
    }

    /// A source in this server: by reference, unless its type does not fit.
    async fn copy_here(self, call: Call<'_>, place: SourceBlob) -> Result<Reply, Failure> {
        let asked = call.encryption()?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let opened = self.source.open(call.sources(), u64::MAX).await?;
            let state = opened.state.clone().ok_or(BlobError::BlobNotFound)?;
            self.check_length(state.length)?;
            let is_plain = asked.key.is_none() && !encryption::is_sealed(state.encryption.as_ref());
            if self.result == Makes::BlockBlob && !(is_plain && state.kind == BlobType::Block) {
                return self.take(call, opened, Described::blob(&state)).await;
            }
            let sums = self.source.sums;
            let is_checked = sums != request::BodySums::default();
            let is_told =
                self.result != Makes::Copy && state.length <= source::SUMMED_BYTES_MAX && attempts <= SUM_ATTEMPTS_MAX;
            let mut received = Received::nothing(state.length);
            if is_checked || is_told {
                received = opened.sum(Wanted { md5: true, crc64: true }, &sums).await?;
            }
            // What was summed must be what is copied.
            let stamp = (is_checked || is_told).then_some(state.stamp);
            match self.share(call, &place, &asked, stamp).await? {
                Some(done) => return Ok(self.answer(call, done, &received)),
                // The client's sum is of a source that is no longer there.
                None if is_checked => return Err(BlobError::SourceConditionNotMet.into()),
                None => {}
            }
        }
    }

    /// Commits the copy of a source in this server. `None`: it is no longer the one of `stamp`.
    async fn share(
        &self,
        call: Call<'_>,
        place: &SourceBlob,
        asked: &WriteEncryption,
        stamp: Option<Timestamp>,
    ) -> Result<Option<Done>, Failure> {
        loop {
            let (op, place, account, keeping) = (self.clone(), place.clone(), call.account, call.keeping());
            let asked = asked.encryption.clone();
            let partition = model::blob_partition(account, &op.container, &op.name);
            let outcome = commit(call.engine, partition, move |rows, tick| {
                keeping.prefetch(rows);
                let container = model::guard(rows, account, &op.container)?;
                let key = blob_key(container.generation, &op.name);
                let found = model::find_blob(rows, &key)?;
                let there = found.as_ref().filter(|blob| blob.is_there(tick.now));
                let source = place.look(rows, &op.source.conditions, tick.now)?.state;
                if stamp.is_some_and(|stamp| stamp != source.stamp) {
                    return Ok(Commit::unchanged(Outcome::Other));
                }
                // Sealed meanwhile, it could be opened, but not shared.
                if encryption::is_sealed(source.encryption.as_ref()) {
                    return Err(refuse(BlobError::SourceConditionNotMet));
                }
                let described = Described { is_archived: source.is_archived(tick.now), ..Described::blob(&source) };
                let (lease, mut state) = op.decide(there, &described, tick).map_err(refuse)?;
                let mut changes = Changes::none();
                let content = match copy::share(rows, &place, &source, &key, tick, &mut changes)? {
                    copy::Shared::By(content) => content,
                    copy::Shared::AfterSettling(map) => return Ok(Commit::unchanged(Outcome::Settle(map))),
                };
                state.content = content;
                state.encryption = encryption::effective(&container, asked.as_ref())?;
                let (copy, encryption) = (state.copy.clone(), state.encryption.clone());
                let written = soft_delete::replace(rows, key, found, (lease, state), keeping, tick, &mut changes)?;
                Ok(Commit { changes, outcome: Outcome::Done(Done { written, copy, encryption }) })
            });
            match outcome.await? {
                Outcome::Done(done) => return Ok(Some(done)),
                Outcome::Other => return Ok(None),
                Outcome::Settle(map) => PageView::settle(call.engine, map).await?,
            }
        }
    }

    /// The tags of a source elsewhere, if they are to be copied.
    async fn tags_elsewhere(&self, call: Call<'_>) -> Result<Option<Tagged>, BlobError> {
        if !self.takes_tags {
            return Ok(None);
        }
        let tags = self.source.fetch_tags(call.outside).await?;
        Ok(Tagged::new(self.account, &self.container, &tags))
    }

    /// A source elsewhere, within the request.
    async fn take_in(self, call: Call<'_>) -> Result<Reply, Failure> {
        let tags = self.tags_elsewhere(call).await?;
        let fetched = self.source.fetch(call.outside).await?;
        let length = source::length(&fetched)?;
        let described = Described { tags, ..Described::answer(&fetched.headers, length) };
        self.check_length(length)?;
        self.take(call, Opened::fetched(length, fetched.body), Described { kind: BlobType::Block, ..described }).await
    }

    /// A file of this server. It becomes a block blob, whose contents cannot be those of a map, so its bytes are read: in the request,
    /// or, if they are many, beside the requests.
    async fn copy_file(
        self,
        call: Call<'_>,
        place: LocalPlace,
        files: Arc<dyn SourceReader>,
    ) -> Result<Reply, Failure> {
        let (opened, file) = self.source.open_file(call.sources(), &place, &files).await?;
        self.check_length(file.length)?;
        let (length, etag) = (file.length, file.etag());
        let LocalSource { headers, metadata, .. } = file;
        let described = Described { length, kind: BlobType::Block, headers, metadata, tags: None, is_archived: false };
        if self.result == Makes::Copy && length > COPY_BYTES_MAX {
            return self.begin(call, described, (Some(etag), Some(place)), None).await;
        }
        self.take(call, opened, described).await
    }

    /// Whether so many bytes are copied within a request, wherever the source is.
    fn check_length(&self, length: u64) -> Result<(), BlobError> {
        let most = match self.result {
            Makes::BlockBlob => PUT_BYTES_MAX,
            Makes::CopyInRequest => COPY_BYTES_MAX,
            Makes::Copy => return Ok(()),
        };
        if length > most { Err(BlobError::Request(RequestError::RequestBodyTooLarge { most })) } else { Ok(()) }
    }

    /// Reads the bytes and makes them a block blob.
    async fn take(mut self, call: Call<'_>, opened: Opened, mut described: Described) -> Result<Reply, Failure> {
        let mut asked = call.encryption()?;
        let wanted = Wanted { md5: true, crc64: true };
        let sums = &self.source.sums;
        let received = opened.unshared().receive(call.engine, wanted, sums, asked.key.as_ref()).await?;
        // With a key, what is said of the bytes is sealed like them.
        let mut md5 = received.md5;
        asked.seal_md5(&mut md5)?;
        described.headers.content_md5 = md5.map(Vec::from);
        let taken = std::mem::take(&mut described.metadata);
        if self.metadata.is_empty() && self.takes_properties {
            self.metadata = taken;
        }
        asked.seal_metadata(&mut self.metadata)?;
        let (op, account, bytes, keeping) = (self.clone(), call.account, received.clone(), call.keeping());
        let partition = model::blob_partition(account, &op.container, &op.name);
        let done = commit(call.engine, partition, move |rows, tick| {
            keeping.prefetch(rows);
            let container = model::guard(rows, account, &op.container)?;
            let key = blob_key(container.generation, &op.name);
            let found = model::find_blob(rows, &key)?;
            let there = found.as_ref().filter(|blob| blob.is_there(tick.now));
            let (lease, mut state) = op.decide(there, &described, tick).map_err(refuse)?;
            let mut changes = Changes::none();
            let content = bytes.keep(rows, tick.id(1), &mut changes, BlobError::SourceConditionNotMet)?;
            state.content = content.map_or(ContentRef::Empty, ContentRef::Whole);
            state.encryption = encryption::effective(&container, asked.encryption.as_ref())?;
            let (copy, encryption) = (state.copy.clone(), state.encryption.clone());
            let written = soft_delete::replace(rows, key, found, (lease, state), keeping, tick, &mut changes)?;
            Ok(Commit { changes, outcome: Done { written, copy, encryption } })
        });
        let done = done.await?;
        Ok(self.answer(call, done, &received))
    }

    /// A source elsewhere, beside the requests: the blob becomes an empty one that says what it is waiting for.
    async fn copy_later(self, call: Call<'_>) -> Result<Reply, Failure> {
        let tags = self.tags_elsewhere(call).await?;
        let fetched = self.source.fetch(call.outside).await?;
        let length = source::length(&fetched)?;
        let described = Described { tags, ..Described::answer(&fetched.headers, length) };
        if length > described.kind.bytes_max() {
            return Err(copy_source::nowhere("The copy source is larger than a blob of its type may be.").into());
        }
        let etag = fetched.headers.get(header::ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        self.begin(call, described, (etag, None), Some(fetched)).await
    }

    /// Begins a copy that goes on after the answer. `begun`: the answer of the source is already there.
    async fn begin(
        self,
        call: Call<'_>,
        described: Described,
        (etag, local): (Option<String>, Option<LocalPlace>),
        begun: Option<Fetched>,
    ) -> Result<Reply, Failure> {
        let length = described.length;
        let asked = call.encryption()?;
        let (op, account, keeping) = (self.clone(), call.account, call.keeping());
        let partition = model::blob_partition(account, &op.container, &op.name);
        let (done, job) = commit(call.engine, partition, move |rows, tick| {
            keeping.prefetch(rows);
            let container = model::guard(rows, account, &op.container)?;
            let key = blob_key(container.generation, &op.name);
            let found = model::find_blob(rows, &key)?;
            let there = found.as_ref().filter(|blob| blob.is_there(tick.now));
            let (lease, mut state) = op.decide(there, &described, tick).map_err(refuse)?;
            let mut changes = Changes::none();
            let md5 = state.headers.content_md5.take();
            let url = op.source.wish.url.clone();
            let source = JobSource { url, etag: etag.clone(), content_md5: md5, local: local.clone() };
            let job = Job::new(source, &BlobDestination(key.clone()), tick);
            let copy = CopyState::pending(&op.source.wish.url, length, tick);
            let copy = Some(Box::new(CopyState { job: Some(job.id), ..copy }));
            state.copy = copy.clone();
            match state.kind {
                BlobType::Block | BlobType::Append { .. } => state.length = 0,
                BlobType::Page { .. } => {
                    let view = PageView::new(tick.id(2));
                    view.create(&mut changes);
                    state.content = ContentRef::Pages(view);
                }
            }
            job.begin::<BlobDestination>(&mut changes);
            state.encryption = encryption::effective(&container, asked.encryption.as_ref())?;
            let encryption = state.encryption.clone();
            let written = soft_delete::replace(rows, key, found, (lease, state), keeping, tick, &mut changes)?;
            Ok(Commit { changes, outcome: (Done { written, copy, encryption }, job) })
        })
        .await?;
        call.service.copier.pursue(job, begun);
        Ok(self.answer(call, done, &Received::nothing(length)))
    }

    fn answer(&self, call: Call<'_>, done: Done, received: &Received) -> Reply {
        let status = match self.result {
            Makes::Copy | Makes::CopyInRequest => StatusCode::ACCEPTED,
            Makes::BlockBlob => StatusCode::CREATED,
        };
        let mut answer = reply::reply(status);
        reply::set_written(&mut answer.headers, done.written);
        if let Some(copy) = &done.copy {
            tell_copy(&mut answer, &copy.id, copy.status);
        }
        if self.result != Makes::Copy && call.head.since("2019-02-02") {
            // Copy Blob From URL repeats the MD5 that it was given, and tells none of its own.
            let is_told = self.result == Makes::BlockBlob || self.source.sums.md5.is_some();
            if let Some(md5) = received.md5.as_ref().filter(|_| is_told) {
                reply::set_md5(&mut answer.headers, &reply::CONTENT_MD5, md5);
            }
            if let Some(crc64) = received.crc64 {
                reply::set_crc64(&mut answer.headers, crc64);
            }
        }
        if self.result == Makes::BlockBlob {
            reply::set_encrypted(&mut answer.headers, done.encryption.as_ref());
        }
        answer
    }
}

/// The largest sources that are copied within a request; from the REST reference.
const COPY_BYTES_MAX: u64 = 256 * 1024 * 1024;
const PUT_BYTES_MAX: u64 = 5_000 * 1024 * 1024;

/// How often the bytes of a source that keeps changing are read for the sums of an answer; after that it has none.
const SUM_ATTEMPTS_MAX: u32 = 16;

enum Outcome {
    Done(Done),
    /// The source has changed since it was read.
    Other,
    /// Too many maps stand behind this one.
    Settle(u64),
}

/// What the answer tells.
struct Done {
    written: Written,
    copy: Option<Box<CopyState>>,
    encryption: Option<Encryption>,
}

pub(super) fn tell_copy(answer: &mut Reply, id: &str, status: CopyStatus) {
    answer.headers.insert("x-ms-copy-id", reply::value(id.to_owned()));
    answer.headers.insert("x-ms-copy-status", HeaderValue::from_static(status.name()));
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    request::no_body(body)?;
    // Neither yes, which is another operation, nor no.
    request::flag(call.head, "x-ms-requires-sync")?;
    parse(&call, Makes::Copy)?.run(call).await
}

#[cfg(test)]
mod tests;
