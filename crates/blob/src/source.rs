//! Where the bytes of a copy come from: a blob of this server, which is read by reference or through the engine, or a URL
//! elsewhere, which is fetched.
//!
//! Which of the two a URL is, and whether the caller may read it, is for [`service::sources`] to say: it is judged as any read of
//! the same URL would be. Nothing here knows a socket.

use std::collections::VecDeque;
use std::fmt::Debug;

use auth::Service;
use bytes::Bytes;
use concurrency::Conditions;
use content::pieces::{self, Piece};
use content::upload::{self, Announced, Received, Wanted};
use engine::{BoxFuture, Engine, Rows, read};
use service::RequestError;
use service::sources::{Located, Manner, Sources, Wish, without_signature};
use wire::http::{Body, BodyError, Head, HeaderMap, HeaderValue, header};
use wire::ranges::{RangeHeader, Span};
use wire::tags::Tags;

use crate::encryption_headers::{self, OF_SOURCE};
use crate::error::{BlobError, CopySourceFault, Failure};
use crate::model::blocks::for_each_chunk;
use crate::model::{Committed, ContentRef, refuse};
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
/// The longest document in which a source elsewhere says why it refuses.
const ERROR_BYTES_MAX: usize = 16 * 1024;
/// Bytes that are shared by reference are read for their checksum only up to this size.
pub const SUMMED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What is elsewhere.
pub trait Outside: Debug + Send + Sync {
    /// Asks for a URL. An answer with an error status is an answer.
    fn fetch<'a>(&'a self, url: &'a str, headers: HeaderMap) -> BoxFuture<'a, Result<Fetched, Unreached>>;

    /// Runs something beside the requests. What it returns ends it when it is dropped.
    fn spawn(&self, work: BoxFuture<'static, ()>) -> Box<dyn Running>;
}

/// Something that runs beside the requests, until this is dropped.
pub trait Running: Debug + Send + Sync {}

/// What came from elsewhere.
pub struct Fetched {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Box<dyn Body>,
}

impl Debug for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fetched({})", self.status)
    }
}

/// Nothing did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreached {
    /// We may not go there, and trying again does not help.
    pub is_forbidden: bool,
    pub message: String,
}

/// Where the sources of copies are found.
#[derive(Clone, Copy, Debug)]
pub struct CopySources<'a> {
    pub engine: &'a dyn Engine,
    /// What a URL names, judged with the caller's permissions.
    pub sources: &'a dyn Sources,
    /// `None`: this server copies only from itself.
    pub outside: Option<&'a dyn Outside>,
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

    /// Finds out what the URL names; `None`: something elsewhere.
    pub async fn find(&self, from: CopySources<'_>) -> Result<Option<SourceBlob>, Failure> {
        match from.sources.locate(&self.wish).await? {
            Located::There => Ok(None),
            Located::Unclear => Err(BlobError::header("x-ms-copy-source", without_signature(&self.wish.url)).into()),
            Located::Refused(refusal) => Err(refused(refusal).into()),
            Located::Here { service: Service::Queue | Service::Table | Service::File, .. } => {
                Err(nowhere("The copy source is neither a blob nor elsewhere.").into())
            }
            Located::Here { service: Service::Blob, account, head } => {
                let blob = self.blob(account, &head).map_err(|error| refused(error.to_reply()))?;
                Ok(Some(blob))
            }
        }
    }

    /// The blob of this server that a request for the source names.
    fn blob(&self, account: u64, head: &Head) -> Result<SourceBlob, BlobError> {
        let ((container, name), which) = (request::blob(head)?, request::which(head)?);
        Ok(SourceBlob { account, container, name, which, manner: self.wish.manner, key: self.key.clone() })
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
            Some(blob) => {
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
                    let body = PieceBody { pieces, length };
                    let sealed_with = source.key.as_ref().map(|key| key.sha256);
                    Ok(Opened { length, share, sealed_with, body: Box::new(body), state: Some(state) })
                })
                .await?
            }
            None => {
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

    /// The bytes that are meant, of a source of `length` bytes; `None` for all of them.
    fn span(&self, length: u64) -> Result<Option<Span>, BlobError> {
        let outside = |_| fault(416, Some("InvalidRange"), "The range is not within the copy source.");
        self.range.resolve(length).map_err(outside)
    }
}

/// The length that an answer announces. Without one a whole answer cannot be told from a cut one.
pub fn length(fetched: &Fetched) -> Result<u64, BlobError> {
    fetched.body.length().ok_or_else(|| nowhere("The copy source does not say how long it is."))
}

/// The same of a source elsewhere: with its own message, or `otherwise` if it gives none.
async fn refused_elsewhere(mut fetched: Fetched, otherwise: &str) -> BlobError {
    let document = wire::http::collect(&mut *fetched.body, ERROR_BYTES_MAX).await.unwrap_or_default();
    let message = wire::xml::parse_error_message(&document);
    let code = fetched.headers.get("x-ms-error-code").and_then(|code| code.to_str().ok());
    fault(fetched.status, code, message.as_deref().unwrap_or(otherwise))
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
        Failure::Body(_) => BlobError::CannotVerifyCopySource(Box::new(CopySourceFault {
            status: 500,
            source_status: None,
            source_code: None,
            message: "The copy source ended before its end.".to_owned(),
        }))
        .into(),
        other => other,
    }
}

/// The bytes of a blob of this server, as if a client had sent them.
struct PieceBody {
    pieces: VecDeque<Piece>,
    length: u64,
}

impl Body for PieceBody {
    fn length(&self) -> Option<u64> {
        Some(self.length)
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, BodyError>>> {
        Box::pin(async { pieces::next(&mut self.pieces).await.map_err(|_| BodyError::Incomplete).transpose() })
    }
}
