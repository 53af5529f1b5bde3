//! Where the bytes of a copy come from: a resource of this server, whichever service it belongs to, or an answer of another
//! server.
//!
//! A service reads its own resources itself. Those of another service it reads through that service's [`SourceReader`], in its own
//! reads and decisions: so a copy is judged on rows of one state, and bytes can be shared by reference. Nothing here knows a
//! socket; [`Outside`] is implemented by the server.

use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::sync::Arc;

use bytes::Bytes;
use concurrency::{ETag, Timestamp};
use engine::{BoxFuture, Engine, EngineError, NotCommitted, Rows, Stop, Unread};
use minicbor::{Decode, Encode};
use service::reply::CONTENT_TYPE_DEFAULT;
use service::{HttpHeaders, Pairs};
use wire::http::{Body, BodyError, ErrorReply, Head, HeaderMap, header};
use wire::ranges::RangeHeader;

use crate::map::ByteSpan;
use crate::pieces::{self, Piece};

/// The longest document in which a source elsewhere says why it refuses.
const ERROR_BYTES_MAX: usize = 16 * 1024;

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
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// A service of this server, as the other service copies from it.
pub trait SourceReader: Debug + Send + Sync {
    /// Which resource a request reads.
    fn place(&self, account: u64, head: &Head) -> Result<LocalPlace, ErrorReply>;

    /// The resource, if it is there and can be copied. A refusal is what a read of it would get.
    fn look(&self, place: &LocalPlace, rows: &dyn Rows, now: Timestamp) -> Result<LocalSource, Stop<ErrorReply>>;

    /// Keeps out what excludes a read of the resource, for as long as the result lives.
    fn enter<'a>(
        &'a self,
        engine: &'a dyn Engine,
        place: &'a LocalPlace,
    ) -> BoxFuture<'a, Result<ReadGuard, NotCommitted<ErrorReply>>> {
        let _ = (engine, place);
        Box::pin(async { Ok(ReadGuard::default()) })
    }
}

/// While it lives nothing is opened that excludes a read of a source.
#[derive(Default)]
pub struct ReadGuard(pub Option<Box<dyn Send + Sync>>);

impl Debug for ReadGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadGuard({})", self.0.is_some())
    }
}

/// Where a resource of another service of this server is.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct LocalPlace {
    #[n(0)]
    pub account: u64,
    /// The name of its container or share.
    #[n(1)]
    pub container: String,
    /// The name of the blob, or the path of the file.
    #[n(2)]
    pub name: String,
    /// The snapshot of it, as the URL has it.
    #[n(3)]
    pub snapshot: Option<String>,
    /// The version of it, as the URL has it.
    #[n(4)]
    pub version: Option<String>,
}

/// A resource of another service of this server, as it is copied.
#[derive(Clone, Debug)]
pub struct LocalSource {
    pub length: u64,
    /// Another one means that its bytes may be others.
    pub stamp: Timestamp,
    pub headers: HttpHeaders,
    pub metadata: Pairs,
    pub bytes: Arc<dyn SourceBytes>,
}

impl LocalSource {
    pub fn etag(&self) -> String {
        ETag::new(self.stamp).quoted()
    }
}

/// Where the bytes of a resource are.
pub trait SourceBytes: Debug + Send + Sync {
    /// Opens the bytes of `span`.
    fn open(&self, rows: &dyn Rows, span: ByteSpan) -> Result<VecDeque<Piece>, Unread>;

    /// Which contents hold the bytes of `span`, in order. Bytes that none of them holds are zeros. `None`: there are more than
    /// `most`, or they cannot be told.
    fn extents(&self, rows: &dyn Rows, span: ByteSpan, most: usize) -> Result<Option<Vec<Extent>>, Unread> {
        let _ = (rows, span, most);
        Ok(None)
    }
}

/// Bytes of a resource that follow each other in one content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    pub span: ByteSpan,
    pub content: u64,
    /// The byte of the content that this begins with.
    pub skip: u64,
}

/// Bytes of this server, as if a client had sent them.
pub struct PieceBody {
    pieces: VecDeque<Piece>,
    length: u64,
}

impl Debug for PieceBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PieceBody({})", self.length)
    }
}

impl PieceBody {
    pub fn new(pieces: VecDeque<Piece>, length: u64) -> PieceBody {
        PieceBody { pieces, length }
    }
}

impl Body for PieceBody {
    fn length(&self) -> Option<u64> {
        Some(self.length)
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, BodyError>>> {
        Box::pin(async { pieces::next(&mut self.pieces).await.map_err(|_| BodyError::Incomplete).transpose() })
    }
}

/// What the source of a copy answered, or why it did not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopySourceFault {
    /// Of the answer to the copy.
    pub status: u16,
    /// Of the answer of the source, if there was one.
    pub source_status: Option<u16>,
    pub source_code: Option<String>,
    pub message: String,
}

impl CopySourceFault {
    /// An answer of the source that is not its bytes.
    pub fn answered(status: u16, code: Option<&str>, message: &str) -> CopySourceFault {
        CopySourceFault {
            // A read may be told that nothing has changed; a write that was not done has failed.
            status: if (400..500).contains(&status) { status } else { 412 },
            source_status: Some(status),
            source_code: code.map(str::to_owned),
            message: message.to_owned(),
        }
    }

    /// A read that the source refuses.
    pub fn refused(refusal: &ErrorReply) -> CopySourceFault {
        CopySourceFault::answered(refusal.status, Some(refusal.code), &refusal.message)
    }

    /// The same of a source elsewhere: with its own message, or `otherwise` if it gives none.
    pub async fn refused_elsewhere(mut fetched: Fetched, otherwise: &str) -> CopySourceFault {
        let document = wire::http::collect(&mut *fetched.body, ERROR_BYTES_MAX).await.unwrap_or_default();
        let message = wire::xml::parse_error_message(&document);
        let code = fetched.headers.get("x-ms-error-code").and_then(|code| code.to_str().ok());
        CopySourceFault::answered(fetched.status, code, message.as_deref().unwrap_or(otherwise))
    }

    /// No answer of the source.
    pub fn unanswered(message: &str) -> CopySourceFault {
        CopySourceFault { status: 400, source_status: None, source_code: None, message: message.to_owned() }
    }

    /// The source did not send all of its bytes.
    pub fn broken_off() -> CopySourceFault {
        CopySourceFault { status: 500, ..CopySourceFault::unanswered("The copy source ended before its end.") }
    }

    /// The answer to the copy.
    pub fn to_reply(&self, code: &'static str) -> ErrorReply {
        let mut reply = ErrorReply::new(self.status, code, &*self.message);
        if let Some(status) = self.source_status {
            let status = status.to_string();
            reply = reply.header("x-ms-copy-source-status-code", &*status).detail("CopySourceStatusCode", status);
        }
        if let Some(code) = &self.source_code {
            reply = reply.header("x-ms-copy-source-error-code", code).detail("CopySourceErrorCode", code);
            reply = reply.detail("CopySourceErrorMessage", &*self.message);
        }
        reply
    }
}

/// The length that an answer announces. Without one nobody could tell a whole answer from a cut one.
pub fn announced_length(fetched: &Fetched) -> Result<u64, CopySourceFault> {
    let unclear = || CopySourceFault::unanswered("The copy source does not say how long it is.");
    fetched.body.length().ok_or_else(unclear)
}

/// The HTTP headers and the metadata that an answer tells of its resource. What is no metadata of ours is left behind.
pub fn answered_properties(headers: &HeaderMap) -> (HttpHeaders, Pairs) {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let pairs = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let metadata = wire::metadata::Metadata::parse(pairs).map(|metadata| metadata.into_pairs()).unwrap_or_default();
    let headers = HttpHeaders {
        content_type: text(header::CONTENT_TYPE.as_str()).or(Some(CONTENT_TYPE_DEFAULT.to_owned())),
        content_encoding: text(header::CONTENT_ENCODING.as_str()),
        content_language: text(header::CONTENT_LANGUAGE.as_str()),
        content_disposition: text(header::CONTENT_DISPOSITION.as_str()),
        cache_control: text(header::CACHE_CONTROL.as_str()),
        content_md5: text("content-md5").and_then(|text| wire::base64::decode(&text)),
    };
    (headers, metadata)
}

/// A source in this server that is open.
pub struct OpenedSource {
    pub source: LocalSource,
    /// The bytes that are meant, and how many they are.
    pub body: Box<dyn Body>,
    pub length: u64,
}

impl Debug for OpenedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedSource").field("source", &self.source).field("length", &self.length).finish()
    }
}

/// Opens a resource of another service of this server, or a range of it.
pub async fn open_local(
    engine: &dyn Engine,
    reader: &Arc<dyn SourceReader>,
    place: &LocalPlace,
    range: RangeHeader,
) -> Result<OpenedSource, NotCommitted<ErrorReply>> {
    let _guard = reader.enter(engine, place).await?;
    open_by_rows(engine, reader, place, range).await
}

/// The same for a copy in the background.
pub async fn open_local_in_background(
    engine: &dyn Engine,
    reader: &Arc<dyn SourceReader>,
    place: &LocalPlace,
) -> Result<OpenedSource, NotCommitted<ErrorReply>> {
    let _guard = enter_in_background(engine, reader, place).await?;
    open_by_rows(engine, reader, place, RangeHeader::None).await
}

/// Enters a resource for a copy in the background. Such a copy runs on any node: if another one has the table of opens, the copy goes by
/// the rows alone.
pub async fn enter_in_background(
    engine: &dyn Engine,
    reader: &Arc<dyn SourceReader>,
    place: &LocalPlace,
) -> Result<ReadGuard, NotCommitted<ErrorReply>> {
    match reader.enter(engine, place).await {
        Err(NotCommitted::Failed(EngineError::Elsewhere { .. })) => Ok(ReadGuard::default()),
        entered => entered,
    }
}

async fn open_by_rows(
    engine: &dyn Engine,
    reader: &Arc<dyn SourceReader>,
    place: &LocalPlace,
    range: RangeHeader,
) -> Result<OpenedSource, NotCommitted<ErrorReply>> {
    let (reader, place) = (Arc::clone(reader), place.clone());
    let opened = engine::read(engine, move |rows, now| {
        let source = reader.look(&place, rows, now)?;
        let span = span_of(range, source.length).map_err(Stop::Refused)?;
        let pieces = source.bytes.open(rows, span)?;
        Ok((source, pieces, span.length()))
    });
    let (source, pieces, length) = opened.await?;
    Ok(OpenedSource { source, body: Box::new(PieceBody::new(pieces, length)), length })
}

/// The bytes that a range means, of a source of `length` bytes.
pub fn span_of(range: RangeHeader, length: u64) -> Result<ByteSpan, ErrorReply> {
    let outside = |_| ErrorReply::new(416, "InvalidRange", "The range is not within the copy source.");
    let span = range.resolve(length).map_err(outside)?;
    Ok(span.map_or(ByteSpan { start: 0, end: length }, |span| ByteSpan { start: span.first, end: span.last + 1 }))
}
