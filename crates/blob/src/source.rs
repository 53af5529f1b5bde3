//! Where the bytes of a copy come from: a blob of this server, which is read by reference or through the engine, or a URL
//! elsewhere, which is fetched.
//!
//! Which of the two a URL is, and whether the caller may read it, is for [`service::sources`] to say: it is judged as any read of
//! the same URL would be. Nothing here knows a socket.

use std::collections::VecDeque;
use std::sync::Arc;

use auth::Service;
use concurrency::{Conditions, ETag, Timestamp, Unmet, Version};
use content::map::ByteSpan;
use content::pieces::{self, Piece};
use content::source::{
    self, CopySourceFault, Extent, Fetched, LocalPlace, LocalSource, Outside, PieceBody, SourceBytes, SourceReader,
};
use content::upload::{self, Announced, Received, Wanted};
use engine::{Engine, NotCommitted, Rows, Stop, Unread, read};
use service::RequestError;
use service::sources::{Located, Manner, Sources, Wish, without_signature};
use wire::dates;
use wire::http::{Body, ErrorReply, Head, HeaderMap, HeaderValue, header};
use wire::names::{BlobName, ContainerName};
use wire::ranges::{RangeHeader, Span};
use wire::tags::Tags;

use crate::encryption_headers::{self, OF_SOURCE};
use crate::error::{BlobError, Failure};
use crate::model::blocks::for_each_chunk;
use crate::model::{self, Committed, ContentRef, Halt, VersionId, Which, refuse};
use crate::request::BodySums;
use crate::rules::copy_source::{SourceBlob, fault, nowhere, refused};
use crate::rules::encryption::{self, CustomerKey};
use crate::{download, request};

/// From the REST reference.
const URL_BYTES_MAX: usize = 2 * 1024;
/// The version that sources elsewhere are asked with.
const VERSION: &str = "2023-11-03";
/// Ten tags of the longest kind, with every character escaped.
const TAGS_BYTES_MAX: usize = 32 * 1024;
/// Bytes that are shared by reference are read for their checksum only up to this size.
pub const SUMMED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Where the sources of copies are found.
#[derive(Clone, Copy, Debug)]
pub struct CopySources<'a> {
    pub engine: &'a dyn Engine,
    /// What a URL names, judged with the caller's permissions.
    pub sources: &'a dyn Sources,
    /// `None`: this server copies only from itself.
    pub outside: Option<&'a dyn Outside>,
    /// The files of this server.
    pub files: Option<&'a Arc<dyn SourceReader>>,
}

/// A source as a request describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    pub wish: Wish,
    pub conditions: Conditions,
    /// What is asked of its tags, as it was written.
    if_tags: Option<String>,
    pub range: RangeHeader,
    pub sums: BodySums,
    /// What opens it, if it is sealed. Copies that know where they came from take none.
    key: Option<CustomerKey>,
    /// It may be a file, which wants to know why it is read; blobs do not.
    is_for_backup: bool,
}

impl Source {
    /// With the key of a source that is sealed.
    pub fn parse_with_key(head: &Head) -> Result<Source, BlobError> {
        let key = encryption_headers::customer_key(head, &OF_SOURCE)?;
        Ok(Source { key, ..Source::read(head, Manner::FromUrl)? })
    }

    pub fn parse(head: &Head, manner: Manner) -> Result<Source, BlobError> {
        encryption_headers::no_source_key(head)?;
        Source::read(head, manner)
    }

    fn read(head: &Head, manner: Manner) -> Result<Source, BlobError> {
        const URL: &str = "x-ms-copy-source";
        const AUTHORIZATION: &str = "x-ms-copy-source-authorization";
        const RANGE: &str = "x-ms-source-range";
        let url = request::required(head, URL)?;
        if url.len() > URL_BYTES_MAX {
            return Err(BlobError::header(URL, without_signature(url)));
        }
        let range = match request::text(head, RANGE)? {
            None => RangeHeader::None,
            Some(text) => match RangeHeader::parse(Some(text)) {
                range @ RangeHeader::Span { .. } => range,
                RangeHeader::None | RangeHeader::Ignored => return Err(BlobError::header(RANGE, text)),
            },
        };
        let authorization = match request::text(head, AUTHORIZATION)? {
            None => None,
            Some(text) if text.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer ")) => {
                Some(text.to_owned())
            }
            // Not repeated: whatever it is, it was meant as a secret.
            Some(_) => return Err(BlobError::header(AUTHORIZATION, "")),
        };
        let conditions = request::source_conditions(head)?;
        let reads_tags = conditions.if_tags.is_some() || request::takes_tags(head)?;
        Ok(Source {
            wish: Wish { url: url.to_owned(), authorization, reads_tags, manner },
            if_tags: request::text(head, request::SOURCE_IF_TAGS)?.map(str::to_owned),
            conditions,
            range,
            sums: request::source_sums(head)?,
            key: None,
            is_for_backup: request::file_intent(head)?,
        })
    }

    /// Finds out which blob the URL names; `None`: something elsewhere.
    pub async fn find_blob(&self, from: CopySources<'_>) -> Result<Option<SourceBlob>, Failure> {
        match self.find(from).await? {
            Origin::Blob(blob) => Ok(Some(blob)),
            Origin::Elsewhere => Ok(None),
            Origin::File(..) => Err(not_copied().into()),
        }
    }

    /// Finds out what the URL names.
    pub async fn find(&self, from: CopySources<'_>) -> Result<Origin, Failure> {
        let manner = self.wish.manner;
        match from.sources.locate(&self.wish).await? {
            Located::There => Ok(Origin::Elsewhere),
            Located::Unclear => Err(BlobError::header("x-ms-copy-source", without_signature(&self.wish.url)).into()),
            Located::Refused(refusal) => Err(refused(refusal).into()),
            Located::Here { service: Service::Queue | Service::Table, .. } => Err(not_copied().into()),
            Located::Here { service: Service::File, account, head } => {
                let files = from.files.ok_or_else(not_copied)?;
                let place = files.place(account, &head).map_err(refused)?;
                Ok(Origin::File(place, Arc::clone(files)))
            }
            Located::Here { service: Service::Blob, account, head } => {
                let parsed = request::blob(&head).and_then(|names| Ok((names, request::which(&head)?)));
                let ((container, name), which) = parsed.map_err(|error| refused(error.to_reply()))?;
                let key = self.key.clone();
                Ok(Origin::Blob(SourceBlob { account, container, name, which, manner, key }))
            }
        }
    }

    /// Asks for the source elsewhere, or for `span` of it. What comes back is its head, and a body to be read.
    pub async fn fetch(&self, outside: Option<&dyn Outside>) -> Result<Fetched, BlobError> {
        let outside = outside.ok_or_else(|| nowhere("This server copies only from itself."))?;
        let fetched = outside.fetch(&self.wish.url, self.headers()).await.map_err(|error| nowhere(&error.message))?;
        match (fetched.status, self.range) {
            (206, RangeHeader::Span { .. }) | (200, RangeHeader::None | RangeHeader::Ignored) => Ok(fetched),
            (304 | 412, _) if self.wish.manner == Manner::Copy => Err(BlobError::SourceConditionNotMet),
            _ => Err(refused_elsewhere(fetched, "The copy source did not answer with what was asked for.").await),
        }
    }

    /// Asks for the tags of the source elsewhere.
    pub async fn fetch_tags(&self, outside: Option<&dyn Outside>) -> Result<Tags, BlobError> {
        let outside = outside.ok_or_else(|| nowhere("This server copies only from itself."))?;
        let joint = if self.wish.url.contains('?') { '&' } else { '?' };
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-version", HeaderValue::from_static(VERSION));
        if let Some(token) = self.wish.authorization.as_ref().and_then(|text| HeaderValue::try_from(text).ok()) {
            headers.insert(header::AUTHORIZATION, token);
        }
        let url = format!("{}{joint}comp=tags", self.wish.url);
        let mut fetched = outside.fetch(&url, headers).await.map_err(|error| nowhere(&error.message))?;
        let unclear = || nowhere("The copy source does not say what its tags are.");
        match fetched.status {
            200 => {
                let document = wire::http::collect(&mut *fetched.body, TAGS_BYTES_MAX).await.map_err(|_| unclear())?;
                Tags::parse_xml(&document).map_err(|_| unclear())
            }
            _ => Err(refused_elsewhere(fetched, "The copy source did not answer with its tags.").await),
        }
    }

    /// What a request for the source carries.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut set = |name, text: String| {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(name, value);
            }
        };
        if let RangeHeader::Span { first, last } = self.range {
            set(header::RANGE, format!("bytes={first}-{}", last.map(|last| last.to_string()).unwrap_or_default()));
        }
        if self.wish.authorization.is_some() || self.key.is_some() {
            // Tokens and keys need one.
            set(wire::http::HeaderName::from_static("x-ms-version"), VERSION.to_owned());
        }
        if let Some(authorization) = &self.wish.authorization {
            set(header::AUTHORIZATION, authorization.clone());
        }
        if self.is_for_backup {
            set(wire::http::HeaderName::from_static(request::FILE_INTENT), "backup".to_owned());
        }
        for (name, text) in self.key.iter().flat_map(encryption_headers::of_key) {
            set(wire::http::HeaderName::from_static(name), text);
        }
        let quoted = |tags: &concurrency::ETagMatch| match tags {
            concurrency::ETagMatch::Any => "*".to_owned(),
            concurrency::ETagMatch::OneOf(tags) => {
                tags.iter().map(|tag| format!("\"{tag}\"")).collect::<Vec<_>>().join(", ")
            }
        };
        let Conditions { if_match, if_none_match, if_modified_since, if_unmodified_since, if_tags: _ } =
            &self.conditions;
        if let Some(text) = &self.if_tags {
            set(wire::http::HeaderName::from_static("x-ms-if-tags"), text.clone());
        }
        if let Some(tags) = if_match {
            set(header::IF_MATCH, quoted(tags));
        }
        if let Some(tags) = if_none_match {
            set(header::IF_NONE_MATCH, quoted(tags));
        }
        if let Some(at) = if_modified_since {
            set(header::IF_MODIFIED_SINCE, wire::dates::http_date(*at).as_str().to_owned());
        }
        if let Some(at) = if_unmodified_since {
            set(header::IF_UNMODIFIED_SINCE, wire::dates::http_date(*at).as_str().to_owned());
        }
        headers
    }

    /// Opens the bytes that are meant, wherever they are.
    pub async fn open(&self, from: CopySources<'_>, most: u64) -> Result<Opened, Failure> {
        let opened = match self.find(from).await? {
            Origin::File(place, files) => self.open_file(from, &place, &files).await?.0,
            Origin::Blob(blob) => {
                let source = self.clone();
                read(from.engine, move |rows, now| {
                    let mut state = blob.look(rows, &source.conditions, now)?.state;
                    let span = source.span(state.length).map_err(refuse)?;
                    let share = shared(rows, &state, span)?;
                    let pieces = pieces::unlocked(
                        download::open(rows, &state, span)?,
                        source.key.as_ref().map(|key| &key.secret),
                    );
                    encryption::reveal(&mut state, source.key.as_ref())?;
                    let length = span.map_or(state.length, |span| span.count());
                    let body = PieceBody::new(pieces, length);
                    let sealed_with = source.key.as_ref().map(|key| key.sha256);
                    Ok(Opened { length, share, sealed_with, body: Box::new(body), state: Some(state) })
                })
                .await?
            }
            Origin::Elsewhere => {
                let fetched = self.fetch(from.outside).await?;
                let length = length(&fetched)?;
                Opened::fetched(length, fetched.body)
            }
        };
        if opened.length > most {
            return Err(BlobError::Request(RequestError::RequestBodyTooLarge { most }).into());
        }
        Ok(opened)
    }

    /// Opens a file of this server, or the range of it that is meant, if it is as the conditions want it. Files have no tags.
    pub async fn open_file(
        &self,
        from: CopySources<'_>,
        place: &LocalPlace,
        files: &Arc<dyn SourceReader>,
    ) -> Result<(Opened, LocalSource), Failure> {
        let opened = source::open_local(from.engine, files, place, self.range).await;
        let opened = opened.map_err(|error| match error {
            NotCommitted::Refused(refusal) => Failure::Refused(refused(refusal)),
            NotCommitted::Failed(error) => Failure::Failed(error),
        })?;
        let stamp = opened.source.stamp;
        let version = Version { etag: ETag::new(stamp), last_modified: stamp, tags: &[] };
        self.conditions.check_read(&version).map_err(|unmet| self.unmet(unmet, &version))?;
        Ok((Opened::fetched(opened.length, opened.body), opened.source))
    }

    /// A condition that a source in this server does not meet.
    fn unmet(&self, unmet: Unmet, version: &Version<'_>) -> BlobError {
        match self.wish.manner {
            // Only the tags are not as they should be: the service has no code of its own for a source's.
            Manner::Copy if self.conditions.without_tags().check_read(version).is_ok() => unmet.into(),
            Manner::Copy => BlobError::SourceConditionNotMet,
            Manner::FromUrl => refused(BlobError::from(unmet).to_reply()),
        }
    }

    /// The bytes that are meant, of a source of `length` bytes; `None` for all of them.
    fn span(&self, length: u64) -> Result<Option<Span>, BlobError> {
        let outside = |_| fault(416, Some("InvalidRange"), "The range is not within the copy source.");
        self.range.resolve(length).map_err(outside)
    }
}

/// The length that an answer announces.
pub fn length(fetched: &Fetched) -> Result<u64, BlobError> {
    Ok(source::announced_length(fetched)?)
}

/// A source elsewhere that refuses: with its own message, or `otherwise` if it gives none.
async fn refused_elsewhere(fetched: Fetched, otherwise: &str) -> BlobError {
    CopySourceFault::refused_elsewhere(fetched, otherwise).await.into()
}

fn not_copied() -> BlobError {
    nowhere("The copy source is neither a blob, nor a file, nor elsewhere.")
}

/// Where a source is.
#[derive(Clone, Debug)]
pub enum Origin {
    Blob(SourceBlob),
    File(LocalPlace, Arc<dyn SourceReader>),
    Elsewhere,
}

/// The content that holds exactly these bytes, if there is one.
fn shared(rows: &dyn Rows, state: &Committed, span: Option<Span>) -> Result<Option<u64>, engine::Unread> {
    let (first, end) = span.map_or((0, state.length), |span| (span.first, span.first + span.count()));
    match state.content {
        ContentRef::Whole(content) => Ok((first == 0 && end == state.length).then_some(content)),
        ContentRef::Blocks(list) | ContentRef::Shared(list) if first < end => {
            let mut found = None;
            for_each_chunk(rows, list, first, |chunk| {
                let mut start = chunk.start;
                for entry in &chunk.entries {
                    if start == first && start + entry.size == end {
                        found = Some(entry.content);
                    }
                    start += entry.size;
                }
                false
            })?;
            Ok(found)
        }
        ContentRef::Blocks(_) | ContentRef::Shared(_) | ContentRef::Empty | ContentRef::Pages(_) => Ok(None),
    }
}

/// A source whose bytes can be read.
pub struct Opened {
    pub length: u64,
    /// The content that holds exactly these bytes.
    share: Option<u64>,
    /// The key that they are sealed with there, by its sum.
    sealed_with: Option<[u8; 32]>,
    body: Box<dyn Body>,
    /// What the source is, if it is a blob of this server.
    pub state: Option<Committed>,
}

impl Opened {
    /// What has begun to come from elsewhere.
    pub fn fetched(length: u64, body: Box<dyn Body>) -> Opened {
        Opened { length, share: None, sealed_with: None, body, state: None }
    }

    /// Reads the bytes for their sums, which are held against what the client says.
    pub async fn sum(mut self, wanted: Wanted, sums: &BodySums) -> Result<Received, Failure> {
        let summed = upload::sum(&mut *self.body, self.length, wanted).await.map_err(|error| broken(error.into()))?;
        upload::verify(sums, summed.md5, summed.crc64)?;
        Ok(summed)
    }

    /// Its bytes are to be read in any case.
    pub fn unshared(self) -> Opened {
        Opened { share: None, ..self }
    }

    /// Takes the bytes in: by reference if they are a content of their own, else by reading them. The sums are held against
    /// what the client says.
    pub async fn receive(
        mut self,
        engine: &dyn Engine,
        wanted: Wanted,
        sums: &BodySums,
        key: Option<&CustomerKey>,
    ) -> Result<Received, Failure> {
        let is_checked = sums.md5.is_some() || sums.crc64.is_some();
        // What is sealed with one key must be sealed anew for another.
        let is_as_stored = key.map(|key| key.sha256) == self.sealed_with;
        let received = match self.share.filter(|_| is_as_stored) {
            Some(content) if !is_checked && self.length > SUMMED_BYTES_MAX => {
                Received { shared: Some(content), ..Received::nothing(self.length) }
            }
            Some(content) => {
                let summed =
                    upload::sum(&mut *self.body, self.length, wanted).await.map_err(|error| broken(error.into()))?;
                Received { shared: Some(content), ..summed }
            }
            None => {
                let announced = Announced::from(self.length).sealed_with(key.map(|key| &key.secret));
                upload::receive(engine, &mut *self.body, announced, wanted).await.map_err(broken)?
            }
        };
        upload::verify(sums, received.md5, received.crc64)?;
        Ok(received)
    }
}

/// It is the source that did not send its bytes, not the client.
fn broken(failure: Failure) -> Failure {
    match failure {
        Failure::Body(_) => BlobError::from(CopySourceFault::broken_off()).into(),
        other => other,
    }
}

/// How the File service copies from blobs.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlobReader;

impl SourceReader for BlobReader {
    fn place(&self, account: u64, head: &Head) -> Result<LocalPlace, ErrorReply> {
        let (container, name) = request::blob(head).map_err(|error| error.to_reply())?;
        request::which(head).map_err(|error| error.to_reply())?;
        let text = |name| head.query.get(name).map(str::to_owned);
        Ok(LocalPlace {
            account,
            container: container.as_str().to_owned(),
            name: name.as_str().to_owned(),
            snapshot: text("snapshot"),
            version: text("versionid"),
        })
    }

    fn look(&self, place: &LocalPlace, rows: &dyn Rows, now: Timestamp) -> Result<LocalSource, Stop<ErrorReply>> {
        let state = found(place, rows, now).map_err(|halt| match halt {
            Stop::Refused(error) => Stop::Refused(error.to_reply()),
            Stop::Unread(unread) => Stop::Unread(unread),
        })?;
        Ok(LocalSource {
            length: state.length,
            stamp: state.stamp,
            headers: state.headers.clone(),
            metadata: state.metadata.clone(),
            bytes: Arc::new(BlobBytes(state)),
        })
    }
}

/// The blob that a place names, if it can be copied: a sealed one cannot without its key, and neither can an archived one.
fn found(place: &LocalPlace, rows: &dyn Rows, now: Timestamp) -> Result<Committed, Halt> {
    let (container, name) = (ContainerName::parse(&place.container), BlobName::parse(&place.name));
    let (container, name) =
        (container.map_err(|error| refuse(error.into()))?, name.map_err(|error| refuse(error.into()))?);
    let at = |text: &Option<String>| text.as_deref().and_then(dates::parse_iso_ticks);
    let which = match (at(&place.snapshot), at(&place.version)) {
        (Some(snapshot), _) => Which::Snapshot(snapshot),
        (None, Some(version)) => Which::Version(VersionId(version)),
        (None, None) => Which::Base,
    };
    let generation = model::generation(rows, place.account, &container)?;
    let seen = model::see(rows, generation, &name, which)?.ok_or(refuse(BlobError::BlobNotFound))?;
    encryption::check_read(seen.state.encryption.as_ref(), None).map_err(refuse)?;
    seen.state.check_no_copy(now).map_err(refuse)?;
    seen.state.check_not_archived(now).map_err(refuse)?;
    Ok(seen.state)
}

#[derive(Debug)]
struct BlobBytes(Committed);

impl SourceBytes for BlobBytes {
    fn open(&self, rows: &dyn Rows, span: ByteSpan) -> Result<VecDeque<Piece>, Unread> {
        if span.start >= span.end {
            return Ok(VecDeque::new());
        }
        download::open(rows, &self.0, Some(Span { first: span.start, last: span.end - 1 }))
    }

    fn extents(&self, rows: &dyn Rows, span: ByteSpan, most: usize) -> Result<Option<Vec<Extent>>, Unread> {
        match self.0.content {
            ContentRef::Empty => Ok(Some(Vec::new())),
            ContentRef::Whole(content) => Ok(Some(vec![Extent { span, content, skip: span.start }])),
            ContentRef::Blocks(list) | ContentRef::Shared(list) => block_extents(rows, list, span, most),
            ContentRef::Pages(view) => view.extents(rows, span, most),
        }
    }
}

fn block_extents(rows: &dyn Rows, list: u64, span: ByteSpan, most: usize) -> Result<Option<Vec<Extent>>, Unread> {
    let mut extents = Vec::new();
    for_each_chunk(rows, list, span.start, |chunk| {
        let mut start = chunk.start;
        for entry in &chunk.entries {
            let part = ByteSpan { start: start.max(span.start), end: (start + entry.size).min(span.end) };
            if part.start < part.end {
                extents.push(Extent { span: part, content: entry.content, skip: part.start - start });
            }
            start += entry.size;
        }
        start < span.end && extents.len() <= most
    })?;
    Ok(Some(extents).filter(|extents| extents.len() <= most))
}
