//! Bytes of a resource on their way out.
//!
//! All contents of a range are opened in the same read that found the resource, so a download ends with the bytes it began
//! with even if the resource is overwritten or deleted meanwhile.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use engine::{BoxFuture, Content, EngineError};
use service::reply;
use service::request::RangeSum;
use wire::checksum::{Crc64, Md5};
use wire::http::{ByteStream, HeaderMap, HeaderValue, ReplyBody};
use wire::structured::Encoder;

use crate::sealing::{self, Opener, Secret};

/// Bodies up to this size are sent in one piece if they are at hand; larger ones go in pieces of it.
const PIECE_BYTES: usize = 256 * 1024;

/// A part of an open content, or of nothing.
#[derive(Clone, Debug)]
pub struct Piece {
    source: Source,
    offset: u64,
    length: u64,
}

/// Where the bytes of a piece come from.
#[derive(Clone, Debug)]
enum Source {
    /// Stored nowhere.
    Zeros,
    Content {
        id: u64,
        content: Content,
    },
    /// A content that is opened with a client's key as it is read.
    Sealed(Arc<SealedContent>),
}

#[derive(Debug)]
struct SealedContent {
    id: u64,
    content: Content,
    secret: Secret,
    opener: OnceLock<Opener>,
}

impl SealedContent {
    /// The bytes from `offset` to the end of the chunk that it is in, but at most so many.
    async fn read(&self, offset: u64, most: usize) -> Result<Bytes, EngineError> {
        let Some(place) = sealing::place(offset, self.content.length()) else { return Ok(Bytes::new()) };
        let opener = match self.opener.get() {
            Some(opener) => opener,
            None => {
                let start = self.read_exactly(0, sealing::SALT).await?;
                let salt = sealing::salt(&start).ok_or_else(broken)?;
                self.opener.get_or_init(|| Opener::new(&self.secret, salt, self.id))
            }
        };
        let chunk = self.read_exactly(place.offset, place.length).await?;
        let bytes = opener.open(place, chunk).map_err(|sealing::Forged| broken())?;
        Ok(bytes.slice(..bytes.len().min(most)))
    }

    async fn read_exactly(&self, offset: u64, length: usize) -> Result<Vec<u8>, EngineError> {
        let mut found = Vec::with_capacity(length);
        while found.len() < length {
            let bytes = self.content.read(offset + found.len() as u64, length - found.len()).await?;
            if bytes.is_empty() {
                return Err(broken());
            }
            found.extend_from_slice(&bytes);
        }
        Ok(found)
    }
}

fn broken() -> EngineError {
    EngineError::Corrupt("a content is not what was sealed with its key".into())
}

static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

impl Piece {
    /// A part of the content `id`.
    pub fn new(id: u64, content: Content, offset: u64, length: u64) -> Piece {
        Piece { source: Source::Content { id, content }, offset, length }
    }

    pub fn zeros(length: u64) -> Piece {
        Piece { source: Source::Zeros, offset: 0, length }
    }

    fn read_now(&self, most: usize) -> Option<Result<Bytes, EngineError>> {
        match &self.source {
            Source::Zeros => Some(Ok(Bytes::from_static(&ZEROS).slice(..most.min(PIECE_BYTES)))),
            Source::Content { content, .. } => content.read_now(self.offset, most),
            Source::Sealed(_) => None,
        }
    }

    async fn read(&self, most: usize) -> Result<Bytes, EngineError> {
        match &self.source {
            Source::Zeros => Ok(Bytes::from_static(&ZEROS).slice(..most.min(PIECE_BYTES))),
            Source::Content { content, .. } => content.read(self.offset, most).await,
            Source::Sealed(sealed) => sealed.read(self.offset, most).await,
        }
    }
}

/// The same pieces, opened with the customer-provided key that the contents were sealed with.
pub fn unlocked(pieces: VecDeque<Piece>, secret: Option<&Secret>) -> VecDeque<Piece> {
    let Some(secret) = secret else { return pieces };
    let mut known: HashMap<u64, Arc<SealedContent>> = HashMap::new();
    let unlock = |piece: Piece| match piece.source {
        Source::Zeros | Source::Sealed(_) => piece,
        Source::Content { id, content } => {
            let sealed = known.entry(id).or_insert_with(|| {
                Arc::new(SealedContent { id, content, secret: secret.clone(), opener: OnceLock::new() })
            });
            Piece { source: Source::Sealed(Arc::clone(sealed)), ..piece }
        }
    };
    pieces.into_iter().map(unlock).collect()
}

/// The body of an answer: at once if it is small and at hand, otherwise as a stream whose first piece is there. What cannot be
/// read is refused while that can still be said; afterwards the answer can only be cut off.
pub async fn body(mut pieces: VecDeque<Piece>) -> Result<ReplyBody, EngineError> {
    let length = pieces.iter().map(|piece| piece.length).sum();
    if let [piece] = pieces.as_slices().0
        && pieces.len() == 1
        && length <= PIECE_BYTES as u64
        && let Some(bytes) = piece.read_now(length as usize)
    {
        let bytes = bytes?;
        if bytes.len() as u64 == length {
            return Ok(ReplyBody::Bytes(bytes));
        }
    }
    if length == 0 {
        return Ok(ReplyBody::Empty);
    }
    match next(&mut pieces).await? {
        None => Ok(ReplyBody::Empty),
        Some(bytes) if bytes.len() as u64 == length => Ok(ReplyBody::Bytes(bytes)),
        first => Ok(ReplyBody::Stream { length, stream: Box::new(Pieces { first, rest: pieces }) }),
    }
}

/// The body of an answer with what a client may ask for beside the bytes: the sum of the range, and the form of a structured
/// body. The headers that belong to both are set.
pub async fn reply_body(
    headers: &mut HeaderMap,
    pieces: VecDeque<Piece>,
    sum: Option<RangeSum>,
    is_structured: bool,
) -> Result<ReplyBody, EngineError> {
    let body = match sum {
        None => body(pieces).await?,
        Some(sum) => {
            let bytes = whole(pieces).await?;
            match sum {
                RangeSum::Md5 => reply::set_md5(headers, &reply::CONTENT_MD5, &Md5::of(&bytes)),
                RangeSum::Crc64 => reply::set_crc64(headers, Crc64::of(&bytes)),
            }
            ReplyBody::Bytes(bytes)
        }
    };
    if !is_structured {
        return Ok(body);
    }
    headers.insert(&reply::STRUCTURED_BODY, HeaderValue::from_static(wire::structured::VALUE));
    headers.insert(&reply::STRUCTURED_CONTENT_LENGTH, HeaderValue::from(body.length()));
    Ok(structured(body))
}

/// The same body as a structured one.
pub fn structured(body: ReplyBody) -> ReplyBody {
    let mut encoder = Encoder::new(body.length());
    match body {
        ReplyBody::Empty => ReplyBody::Bytes(encoder.next(Bytes::new()).concat().into()),
        ReplyBody::Bytes(bytes) => ReplyBody::Bytes(encoder.next(bytes).concat().into()),
        // Nothing that is read has an unknown length.
        ReplyBody::Open(stream) => ReplyBody::Open(stream),
        ReplyBody::Stream { stream, .. } => {
            let length = encoder.message_length();
            ReplyBody::Stream { length, stream: Box::new(Structured { stream, encoder, ready: VecDeque::new() }) }
        }
    }
}

struct Structured {
    stream: Box<dyn ByteStream>,
    encoder: Encoder,
    ready: VecDeque<Bytes>,
}

impl ByteStream for Structured {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
        Box::pin(async {
            while self.ready.is_empty() {
                match self.stream.next().await? {
                    Ok(bytes) => self.ready.extend(self.encoder.next(bytes)),
                    Err(error) => return Some(Err(error)),
                }
            }
            self.ready.pop_front().map(Ok)
        })
    }
}

/// Reads a short range whole, for its checksum.
pub async fn whole(mut pieces: VecDeque<Piece>) -> Result<Bytes, EngineError> {
    let length: u64 = pieces.iter().map(|piece| piece.length).sum();
    let Some(first) = next(&mut pieces).await? else { return Ok(Bytes::new()) };
    if first.len() as u64 == length {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(usize::try_from(length).unwrap_or(0));
    whole.extend_from_slice(&first);
    while let Some(bytes) = next(&mut pieces).await? {
        whole.extend_from_slice(&bytes);
    }
    Ok(whole.freeze())
}

struct Pieces {
    first: Option<Bytes>,
    rest: VecDeque<Piece>,
}

impl ByteStream for Pieces {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
        Box::pin(async {
            match self.first.take() {
                Some(bytes) => Some(Ok(bytes)),
                None => next(&mut self.rest).await.map_err(|error| error.to_string()).transpose(),
            }
        })
    }
}

/// The next bytes, taken off the pieces. `None`: there are no more.
pub async fn next(pieces: &mut VecDeque<Piece>) -> Result<Option<Bytes>, EngineError> {
    let Some(piece) = pieces.front_mut() else { return Ok(None) };
    let most = piece.length.min(PIECE_BYTES as u64) as usize;
    let bytes = piece.read(most).await?;
    if bytes.is_empty() {
        return Err(EngineError::Corrupt("a content is shorter than its resource says".into()));
    }
    piece.offset += bytes.len() as u64;
    piece.length -= bytes.len() as u64;
    if piece.length == 0 {
        pieces.pop_front();
    }
    Ok(Some(bytes))
}
