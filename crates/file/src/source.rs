//! The source of a copy: a file of this server, a blob of this server, or something elsewhere.
//!
//! Which of them a URL is, and whether the caller may read it, is for [`service::sources`] to say: it is judged as any read of the
//! same URL would be.

use std::sync::Arc;

use auth::Service;
use concurrency::Timestamp;
use concurrency::range_lock::Transfer;
use concurrency::share_mode::RestAccess;
use content::map::{ByteSpan, FileView};
use content::pieces::Piece;
use content::source::{
    CopySourceFault, Extent, Fetched, LocalPlace, LocalSource, PieceBody, ReadGuard, SourceBytes, SourceReader,
    announced_length, open_local, span_of,
};
use engine::{BoxFuture, Engine, NotCommitted, Rows, Stop, Unread};
use service::sources::{Located, Manner, Wish, without_signature};
use std::collections::VecDeque;
use tokio::time::Instant;
use wire::dates;
use wire::file_path::{FilePath, PathKind, TrailingDots};
use wire::http::{Body, ErrorReply, Head, HeaderMap, HeaderName, HeaderValue, header};
use wire::names::ShareName;
use wire::ranges::RangeHeader;

use crate::entering::{self, Admission, NodeRead};
use crate::error::FileError;
use crate::model::{Halt, Node, refuse};
use crate::opens::{self, Opens, Refusal};
use crate::ops::Call;
use crate::owner::{FencedEngine, Ownership, Protected, RestPort};
use crate::request::{CACHES_PATIENCE_MAX, required, text};
use crate::tree::{self, Spot, Target};
use crate::{Failure, request};

pub const COPY_SOURCE: &str = "x-ms-copy-source";
const AUTHORIZATION: &str = "x-ms-copy-source-authorization";
pub const SOURCE_RANGE: &str = "x-ms-source-range";
const INTENT: &str = "x-ms-file-request-intent";

/// From the REST reference.
const URL_BYTES_MAX: usize = 2 * 1024;
/// The version that sources elsewhere are asked with.
const VERSION: &str = "2023-11-03";

/// A source as a request describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    pub wish: Wish,
    pub range: RangeHeader,
    /// What becomes of dots at the end of the names in its URL.
    dots: TrailingDots,
    /// A token for a file must say that the file is read whatever its permission says.
    is_for_backup: bool,
}

/// Where a source is.
#[derive(Clone, Debug)]
pub enum Place {
    File(FilePlace),
    Blob(LocalPlace, Arc<dyn SourceReader>),
    Elsewhere,
}

/// A file of this server that is copied from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePlace {
    pub account: u64,
    pub target: Target,
}

/// A source whose bytes can be read.
pub struct OpenedSource {
    pub length: u64,
    pub body: Box<dyn Body>,
}

impl Source {
    pub fn parse(head: &Head, manner: Manner) -> Result<Source, FileError> {
        let url = required(head, COPY_SOURCE)?;
        if url.len() > URL_BYTES_MAX {
            return Err(FileError::header(COPY_SOURCE, without_signature(url)));
        }
        let range = match text(head, SOURCE_RANGE)? {
            None => RangeHeader::None,
            Some(text) => match RangeHeader::parse(Some(text)) {
                range @ RangeHeader::Span { .. } => range,
                RangeHeader::None | RangeHeader::Ignored => return Err(FileError::header(SOURCE_RANGE, text)),
            },
        };
        let authorization = match text(head, AUTHORIZATION)? {
            None => None,
            Some(text) if text.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer ")) => {
                Some(text.to_owned())
            }
            // Not repeated: whatever it is, it was meant as a secret.
            Some(_) => return Err(FileError::header(AUTHORIZATION, "")),
        };
        Ok(Source {
            wish: Wish { url: url.to_owned(), authorization, reads_tags: false, manner },
            range,
            dots: request::source_trailing_dots(head)?,
            is_for_backup: head.has_header(INTENT),
        })
    }

    /// Finds out what the URL names.
    pub async fn find(&self, call: Call<'_>) -> Result<Place, Failure> {
        match call.asker.sources.locate(&self.wish).await? {
            Located::There => Ok(Place::Elsewhere),
            Located::Unclear => Err(FileError::header(COPY_SOURCE, without_signature(&self.wish.url)).into()),
            Located::Refused(refusal) => Err(refused(&refusal).into()),
            Located::Here { service: Service::Queue | Service::Table, .. } => Err(not_copied().into()),
            Located::Here { service: Service::File, account, head } => {
                let target = self.target(&head).map_err(|error| refused(&error.into()))?;
                Ok(Place::File(FilePlace { account, target }))
            }
            Located::Here { service: Service::Blob, account, head } => {
                let blobs = call.copier.neighbour.as_ref().ok_or_else(not_copied)?;
                let place = blobs.place(account, &head).map_err(|refusal| refused(&refusal))?;
                Ok(Place::Blob(place, Arc::clone(blobs)))
            }
        }
    }

    fn target(&self, head: &Head) -> Result<Target, FileError> {
        let share = head.first_segment().ok_or(service::RequestError::InvalidResourceName)?;
        let path = FilePath::parse(head.rest().unwrap_or_default(), PathKind::File, self.dots)?;
        Ok(Target { share: ShareName::parse(share)?, path, snapshot: request::snapshot(head)? })
    }

    /// Asks for the source elsewhere. What comes back is its head, and a body to be read.
    pub async fn fetch(&self, call: Call<'_>) -> Result<Fetched, FileError> {
        let only_here = || CopySourceFault::unanswered("This server copies only from itself.");
        let outside = call.copier.outside.as_deref().ok_or_else(only_here)?;
        let fetched = outside.fetch(&self.wish.url, self.headers()).await;
        let fetched = fetched.map_err(|error| CopySourceFault::unanswered(&error.message))?;
        match (fetched.status, self.range) {
            (206, RangeHeader::Span { .. }) | (200, RangeHeader::None | RangeHeader::Ignored) => Ok(fetched),
            _ => {
                let otherwise = "The copy source did not answer with what was asked for.";
                Err(CopySourceFault::refused_elsewhere(fetched, otherwise).await.into())
            }
        }
    }

    /// What a request for the source carries.
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut set = |name, text: String| {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(name, value);
            }
        };
        if let RangeHeader::Span { first, last } = self.range {
            set(header::RANGE, format!("bytes={first}-{}", last.map(|last| last.to_string()).unwrap_or_default()));
        }
        if let Some(authorization) = &self.wish.authorization {
            // A token needs one.
            set(HeaderName::from_static("x-ms-version"), VERSION.to_owned());
            set(header::AUTHORIZATION, authorization.clone());
        }
        if self.is_for_backup {
            set(HeaderName::from_static(INTENT), "backup".to_owned());
        }
        headers
    }

    /// Opens the bytes that are meant, wherever they are.
    pub async fn open(&self, call: Call<'_>) -> Result<OpenedSource, Failure> {
        match self.find(call).await? {
            Place::File(place) => {
                let of_source = Call { base: service::Call { account: place.account, ..*call }, ..call };
                let read = ReadSource { range: self.range };
                let (pieces, length) = entering::read(of_source, &place.target, read).await.map_err(at_source)?;
                Ok(OpenedSource { length, body: Box::new(PieceBody::new(pieces, length)) })
            }
            Place::Blob(place, blobs) => {
                let opened = open_local(call.engine, &blobs, &place, self.range).await.map_err(not_opened)?;
                Ok(OpenedSource { length: opened.length, body: opened.body })
            }
            Place::Elsewhere => {
                let fetched = self.fetch(call).await?;
                let length = announced_length(&fetched).map_err(FileError::from)?;
                Ok(OpenedSource { length, body: fetched.body })
            }
        }
    }
}

/// A read that the source refuses.
pub fn refused(refusal: &ErrorReply) -> FileError {
    CopySourceFault::refused(refusal).into()
}

fn not_copied() -> FileError {
    CopySourceFault::unanswered("The copy source is neither a file, nor a blob, nor elsewhere.").into()
}

/// It is the source that refuses.
pub fn at_source(failure: Failure) -> Failure {
    match failure {
        Failure::Refused(error) => refused(&error.into()).into(),
        other => other,
    }
}

/// The same of a decision that looks at the source.
pub fn halt_at_source(halt: Halt) -> Halt {
    match halt {
        Stop::Refused(error) => refuse(refused(&error.into())),
        other => other,
    }
}

fn not_opened(error: NotCommitted<ErrorReply>) -> Failure {
    match error {
        NotCommitted::Refused(refusal) => refused(&refusal).into(),
        NotCommitted::Failed(error) => error.into(),
    }
}

/// It is the source that did not send its bytes, not the client.
pub fn broken(failure: Failure) -> Failure {
    match failure {
        Failure::Body(_) => FileError::from(CopySourceFault::broken_off()).into(),
        other => other,
    }
}

/// A read of bytes that are copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ReadSource {
    range: RangeHeader,
}

impl NodeRead for ReadSource {
    type Outcome = (VecDeque<Piece>, u64);

    fn admission(&self, spot: &Spot) -> Admission {
        let length = spot.node.as_ref().map_or(0, Node::length);
        let span = span_of(self.range, length).ok().filter(|span| span.length() > 0);
        let read = |span: ByteSpan| opens::Span { offset: span.start, length: span.length(), transfer: Transfer::Read };
        Admission::of(RestAccess::Read).at(span.map(read))
    }

    fn read(&self, spot: &Spot, rows: &dyn Rows, now: Timestamp) -> Result<Self::Outcome, Halt> {
        let state = copied_file(spot, now).map_err(refuse)?.as_read_file().map_err(refuse)?;
        let span = span_of(self.range, state.length);
        let span = span.map_err(|_| refuse(FileError::InvalidRange { length: state.length }))?;
        Ok((state.view.open(rows, span.start, span.end)?, span.length()))
    }
}

/// The file that is copied from. One that waits for a copy itself has not all of its bytes.
pub fn copied_file(spot: &Spot, now: Timestamp) -> Result<&Node, FileError> {
    let node = spot.existing()?;
    node.as_read_file()?.check_no_copy(now)?;
    Ok(node)
}

/// How the Blob service copies from files.
#[derive(Debug)]
pub struct FileReader {
    opens: Arc<Opens>,
    /// On a node of many.
    fenced: Option<FencedEngine>,
}

impl FileReader {
    pub fn new(opens: Arc<Opens>) -> FileReader {
        FileReader { opens, fenced: None }
    }

    /// As a node of many, one of which serves SMB.
    #[must_use]
    pub fn among(self, engine: Arc<dyn Engine>, ownership: Arc<Ownership>) -> FileReader {
        let fenced = FencedEngine::new(engine, ownership, Protected::Rest(RestPort::Blob));
        FileReader { fenced: Some(fenced), ..self }
    }
}

/// The file that a place names.
fn target_of(place: &LocalPlace) -> Result<Target, FileError> {
    let path = FilePath::parse(&place.name, PathKind::File, TrailingDots::Strip)?;
    let time = |text: &String| dates::parse_iso_ticks(text).ok_or(FileError::ShareNotFound);
    let snapshot = place.snapshot.as_ref().map(time).transpose()?;
    Ok(Target { share: ShareName::parse(&place.container)?, path, snapshot })
}

fn find(place: &LocalPlace, rows: &dyn Rows) -> Result<Spot, Stop<ErrorReply>> {
    let target = target_of(place).map_err(|error| Stop::Refused(error.into()))?;
    tree::find(rows, place.account, &target).map_err(|halt| match halt {
        Stop::Refused(error) => Stop::Refused(error.into()),
        Stop::Unread(unread) => Stop::Unread(unread),
    })
}

impl SourceReader for FileReader {
    fn place(&self, account: u64, head: &Head) -> Result<LocalPlace, ErrorReply> {
        let Target { share, .. } = request::file(head)?;
        let snapshot = request::snapshot(head)?.map(|time| dates::iso_ticks(time).as_str().to_owned());
        let name = head.rest().unwrap_or_default().to_owned();
        Ok(LocalPlace { account, container: share.as_str().to_owned(), name, snapshot, version: None })
    }

    fn look(&self, place: &LocalPlace, rows: &dyn Rows, now: Timestamp) -> Result<LocalSource, Stop<ErrorReply>> {
        let spot = find(place, rows)?;
        let refused = |error: FileError| Stop::Refused(error.into());
        let node = copied_file(&spot, now).map_err(refused)?;
        let state = node.as_read_file().map_err(refused)?;
        Ok(LocalSource {
            length: state.length,
            stamp: node.stamp,
            headers: state.headers.clone(),
            metadata: node.metadata.clone(),
            bytes: Arc::new(FileBytes(state.view)),
        })
    }

    fn enter<'a>(
        &'a self,
        engine: &'a dyn Engine,
        place: &'a LocalPlace,
    ) -> BoxFuture<'a, Result<ReadGuard, NotCommitted<ErrorReply>>> {
        Box::pin(async move {
            let engine = self.fenced.as_ref().map_or(engine, |fenced| fenced as &dyn Engine);
            let until = Instant::now() + CACHES_PATIENCE_MAX;
            loop {
                let wanted = place.clone();
                let spot = engine::read(engine, move |rows, _| find(&wanted, rows)).await?;
                let file = entering::file_id(&spot).filter(|_| spot.at.is_none());
                let Some(file) = file else { return Ok(ReadGuard::default()) };
                let refused = |error: FileError| NotCommitted::Refused(error.into());
                match self.opens.enter(file, RestAccess::Read, None).await {
                    Ok(entry) => return Ok(ReadGuard(Some(Box::new(entry)))),
                    Err(Refusal::Breaking(wait)) => {
                        let ended = tokio::time::timeout_at(until, self.opens.breaks_ended(wait)).await;
                        ended.map_err(|_| refused(FileError::ClientCacheFlushDelay))?;
                    }
                    Err(refusal) => return Err(refused(refusal.into())),
                }
            }
        })
    }
}

#[derive(Debug)]
struct FileBytes(FileView);

impl SourceBytes for FileBytes {
    fn open(&self, rows: &dyn Rows, span: ByteSpan) -> Result<VecDeque<Piece>, Unread> {
        self.0.open(rows, span.start, span.end)
    }

    fn extents(&self, rows: &dyn Rows, span: ByteSpan, most: usize) -> Result<Option<Vec<Extent>>, Unread> {
        self.0.extents(rows, span, most)
    }
}
