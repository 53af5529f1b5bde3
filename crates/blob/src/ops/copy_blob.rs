//! Copy Blob: make a blob what another blob is.
//!
//! A source in this server is copied in the request, by reference. One elsewhere is fetched beside the requests, and the
//! blob is `pending` and empty until all of it is there; see [`crate::background_copy`].
//!
//! Copy Blob From URL and Put Blob From URL make a blob of a whole source, too, and share what is here.

mod whole_copy;

use std::sync::Arc;

use auth::{Kind, Settings};
use concurrency::Timestamp;
use content::copy_state::CopyStatus;
use content::map::{PAGE_BYTES, PageView};
use content::source::{Fetched, LocalPlace, LocalSource, SourceReader, answered_properties};
use content::upload::{Received, Wanted};
use service::RequestError;
use service::sources::Manner;
use wire::http::{Body, Head, HeaderMap, HeaderValue, Reply, StatusCode, header};
use wire::ranges::RangeHeader;

use super::Call;
use crate::encryption_headers;
use crate::error::BlobError;
use crate::model::BlobType;
use crate::model::tags::Tagged;
use crate::rules::copy_source::{self, SourceBlob, SourceUrl};
use crate::rules::encryption;
use crate::rules::soft_delete::Keeping;
use crate::source::{self, Opened, Origin, Source};
use crate::{Failure, Reach, reply, request};

pub use whole_copy::{
    BeginCopy, CopiedBlob, CopyBlob, CopyKind, CopyOutcome, CopyReceived, SourceProperties, WholeCopy,
};

/// A request for a copy of a whole source.
#[derive(Clone)]
pub(super) struct CopyRequest {
    copy: WholeCopy,
    source: Source,
}

pub(super) fn parse(call: &Call<'_>, kind: CopyKind) -> Result<CopyRequest, BlobError> {
    read_head(call.head, call.account, call.reach, call.asker.settings, kind)
}

fn read_head(
    head: &Head,
    account: u64,
    reach: Reach,
    settings: &Settings,
    kind: CopyKind,
) -> Result<CopyRequest, BlobError> {
    let (container, name) = request::blob(head)?;
    request::only_base(head)?;
    request::no_expiry(head)?;
    // Of these only a new blob can be sealed, or come from one that is: so the service has it.
    let mut source = match kind {
        CopyKind::Copy => Source::parse(head, Manner::Copy)?,
        CopyKind::CopyInRequest => Source::parse(head, Manner::FromUrl)?,
        CopyKind::BlockBlob => Source::parse_with_key(head)?,
    };
    // These copy a source whole: the header with a range of the source is not one of theirs.
    source.range = RangeHeader::None;
    match kind {
        CopyKind::Copy | CopyKind::CopyInRequest => encryption_headers::no_customer_key(head)?,
        CopyKind::BlockBlob => {}
    }
    let conditions = request::conditions(head)?;
    conditions.check_write_combination()?;
    let copy = WholeCopy {
        container,
        name,
        conditions,
        lease: request::lease_id(head)?,
        kind,
        source_url: SourceUrl(source.wish.url.clone()),
        metadata: request::metadata(head)?,
        headers: request::blob_headers(head)?,
        takes_properties: request::flag(head, "x-ms-copy-source-blob-properties")?.unwrap_or(true),
        options: request::creation_options_unchecked(head, settings.kind == Kind::Premium)?,
        takes_tags: request::takes_tags(head)?,
        seal: request::flag(head, "x-ms-seal-blob")?,
        priority: request::rehydrate_priority(head)?,
        encryption: None,
        keeping: Keeping::new(account, settings),
        reach,
    };
    Ok(CopyRequest { copy, source })
}

impl SourceProperties {
    /// By the head of an answer.
    fn of_answer(headers: &HeaderMap, length: u64) -> SourceProperties {
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
        SourceProperties { length, kind, headers, metadata, tags: None, is_archived: false }
    }
}

impl CopyRequest {
    /// Runs the whole of it.
    pub(super) async fn run(self, call: Call<'_>) -> Result<Reply, Failure> {
        call.read(&Arc::new(self.copy.clone())).await?;
        match (self.source.find(call.sources()).await?, self.copy.kind) {
            (Origin::Blob(place), _) => self.copy_here(call, place).await,
            (Origin::File(place, files), _) => self.copy_file(call, place, files).await,
            (Origin::Elsewhere, CopyKind::Copy) => self.copy_later(call).await,
            (Origin::Elsewhere, CopyKind::CopyInRequest | CopyKind::BlockBlob) => self.take_in(call).await,
        }
    }

    /// A source in this server: by reference, unless its type does not fit.
    async fn copy_here(mut self, call: Call<'_>, place: SourceBlob) -> Result<Reply, Failure> {
        let asked = call.encryption()?;
        self.copy.encryption = asked.encryption;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let opened = self.source.open(call.sources(), u64::MAX).await?;
            let state = opened.state.clone().ok_or(BlobError::BlobNotFound)?;
            self.check_length(state.length)?;
            let is_plain = asked.key.is_none() && !encryption::is_sealed(state.encryption.as_ref());
            if self.copy.kind == CopyKind::BlockBlob && !(is_plain && state.kind == BlobType::Block) {
                return self.take(call, opened, SourceProperties::of_blob(&state)).await;
            }
            let sums = self.source.sums;
            let is_checked = sums != request::BodySums::default();
            let is_told = self.copy.kind != CopyKind::Copy
                && state.length <= source::SUMMED_BYTES_MAX
                && attempts <= SUM_ATTEMPTS_MAX;
            let mut received = Received::nothing(state.length);
            if is_checked || is_told {
                received = opened.sum(Wanted { md5: true, crc64: true }, &sums).await?;
            }
            // What was summed must be what is copied.
            let stamp = (is_checked || is_told).then_some(state.stamp);
            match self.share(call, &place, stamp).await? {
                Some(copied) => return Ok(self.answer(call, copied, &received)),
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
        stamp: Option<Timestamp>,
    ) -> Result<Option<CopiedBlob>, Failure> {
        let op = Arc::new(CopyBlob {
            copy: self.copy.clone(),
            source: place.clone(),
            source_conditions: self.source.conditions.clone(),
            source_stamp: stamp,
        });
        loop {
            match call.commit(&op).await? {
                CopyOutcome::Copied(copied) => return Ok(Some(copied)),
                CopyOutcome::SourceChanged => return Ok(None),
                CopyOutcome::AfterSettling(map) => PageView::settle(call.engine, map).await?,
            }
        }
    }

    /// The tags of a source elsewhere, if they are to be copied.
    async fn tags_elsewhere(&self, call: Call<'_>) -> Result<Option<Tagged>, BlobError> {
        if !self.copy.takes_tags {
            return Ok(None);
        }
        let tags = self.source.fetch_tags(call.outside).await?;
        Ok(Tagged::new(call.account, &self.copy.container, &tags))
    }

    /// A source elsewhere, within the request.
    async fn take_in(self, call: Call<'_>) -> Result<Reply, Failure> {
        let tags = self.tags_elsewhere(call).await?;
        let fetched = self.source.fetch(call.outside).await?;
        let length = source::length(&fetched)?;
        let described = SourceProperties { tags, ..SourceProperties::of_answer(&fetched.headers, length) };
        self.check_length(length)?;
        self.take(call, Opened::fetched(length, fetched.body), SourceProperties { kind: BlobType::Block, ..described })
            .await
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
        let described =
            SourceProperties { length, kind: BlobType::Block, headers, metadata, tags: None, is_archived: false };
        if self.copy.kind == CopyKind::Copy && length > COPY_BYTES_MAX {
            return self.begin(call, described, (Some(etag), Some(place)), None).await;
        }
        self.take(call, opened, described).await
    }

    /// Whether so many bytes are copied within a request, wherever the source is.
    fn check_length(&self, length: u64) -> Result<(), BlobError> {
        let most = match self.copy.kind {
            CopyKind::BlockBlob => PUT_BYTES_MAX,
            CopyKind::CopyInRequest => COPY_BYTES_MAX,
            CopyKind::Copy => return Ok(()),
        };
        if length > most { Err(BlobError::Request(RequestError::RequestBodyTooLarge { most })) } else { Ok(()) }
    }

    /// Reads the bytes and makes them a block blob.
    async fn take(mut self, call: Call<'_>, opened: Opened, mut described: SourceProperties) -> Result<Reply, Failure> {
        let mut asked = call.encryption()?;
        let wanted = Wanted { md5: true, crc64: true };
        let sums = &self.source.sums;
        let received = opened.unshared().receive(call.engine, wanted, sums, asked.key.as_ref()).await?;
        // With a key, what is said of the bytes is sealed like them.
        let mut md5 = received.md5;
        asked.seal_md5(&mut md5)?;
        described.headers.content_md5 = md5.map(Vec::from);
        let taken = std::mem::take(&mut described.metadata);
        if self.copy.metadata.is_empty() && self.copy.takes_properties {
            self.copy.metadata = taken;
        }
        asked.seal_metadata(&mut self.copy.metadata)?;
        self.copy.encryption = asked.encryption;
        let op = CopyReceived { copy: self.copy.clone(), source: described, body: received.clone() };
        let copied = call.commit(&Arc::new(op)).await?;
        Ok(self.answer(call, copied, &received))
    }

    /// A source elsewhere, beside the requests: the blob becomes an empty one that says what it is waiting for.
    async fn copy_later(self, call: Call<'_>) -> Result<Reply, Failure> {
        let tags = self.tags_elsewhere(call).await?;
        let fetched = self.source.fetch(call.outside).await?;
        let length = source::length(&fetched)?;
        let described = SourceProperties { tags, ..SourceProperties::of_answer(&fetched.headers, length) };
        if length > described.kind.bytes_max() {
            return Err(copy_source::nowhere("The copy source is larger than a blob of its type may be.").into());
        }
        let etag = fetched.headers.get(header::ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        self.begin(call, described, (etag, None), Some(fetched)).await
    }

    /// Begins a copy that goes on after the answer. `begun`: the answer of the source is already there.
    async fn begin(
        mut self,
        call: Call<'_>,
        described: SourceProperties,
        (etag, local): (Option<String>, Option<LocalPlace>),
        begun: Option<Fetched>,
    ) -> Result<Reply, Failure> {
        let length = described.length;
        self.copy.encryption = call.encryption()?.encryption;
        let op = BeginCopy { copy: self.copy.clone(), source: described, source_etag: etag, local };
        let (copied, job) = call.commit(&Arc::new(op)).await?;
        call.service.copier.pursue(job, begun);
        Ok(self.answer(call, copied, &Received::nothing(length)))
    }

    fn answer(&self, call: Call<'_>, copied: CopiedBlob, received: &Received) -> Reply {
        let status = match self.copy.kind {
            CopyKind::Copy | CopyKind::CopyInRequest => StatusCode::ACCEPTED,
            CopyKind::BlockBlob => StatusCode::CREATED,
        };
        let mut answer = reply::reply(status);
        reply::set_written(&mut answer.headers, copied.written);
        if let Some(copy) = &copied.copy {
            tell_copy(&mut answer, &copy.id, copy.status);
        }
        if self.copy.kind != CopyKind::Copy && call.head.since("2019-02-02") {
            // Copy Blob From URL repeats the MD5 that it was given, and tells none of its own.
            let is_told = self.copy.kind == CopyKind::BlockBlob || self.source.sums.md5.is_some();
            if let Some(md5) = received.md5.as_ref().filter(|_| is_told) {
                reply::set_md5(&mut answer.headers, &reply::CONTENT_MD5, md5);
            }
            if let Some(crc64) = received.crc64 {
                reply::set_crc64(&mut answer.headers, crc64);
            }
        }
        if self.copy.kind == CopyKind::BlockBlob {
            reply::set_encrypted(&mut answer.headers, copied.encryption.as_ref());
        }
        answer
    }
}

/// The largest sources that are copied within a request; from the REST reference.
const COPY_BYTES_MAX: u64 = 256 * 1024 * 1024;
const PUT_BYTES_MAX: u64 = 5_000 * 1024 * 1024;

/// How often the bytes of a source that keeps changing are read for the sums of an answer; after that it has none.
const SUM_ATTEMPTS_MAX: u32 = 16;

pub(super) fn tell_copy(answer: &mut Reply, id: &str, status: CopyStatus) {
    answer.headers.insert("x-ms-copy-id", reply::value(id.to_owned()));
    answer.headers.insert("x-ms-copy-status", HeaderValue::from_static(status.name()));
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    request::no_body(body)?;
    // Neither yes, which is another operation, nor no.
    request::flag(call.head, "x-ms-requires-sync")?;
    parse(&call, CopyKind::Copy)?.run(call).await
}

#[cfg(test)]
mod tests;
