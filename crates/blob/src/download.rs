//! The bytes of a blob on their way out.
//!
//! All contents of the range are opened in the same read that found the blob, so a download ends with the bytes it began
//! with even if the blob is overwritten or deleted meanwhile. A block list has at most 50,000 entries, which bounds what a
//! download of a whole blob holds open; a range opens only the blocks it touches.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use engine::{BoxFuture, Content, EngineError, Rows, Unread, Visit};
use wire::http::{ByteStream, ReplyBody};
use wire::ranges::Span;
use wire::structured::Encoder;

use crate::codec;
use crate::model::{self, Committed, ContentRef, ListChunk, chunk_key, list_rows};

/// Bodies up to this size are sent in one piece if they are at hand; larger ones go in pieces of it.
const PIECE_BYTES: usize = 256 * 1024;

/// A part of an open content, or of nothing.
#[derive(Clone, Debug)]
pub struct Piece {
    /// `None`: zeros, which are stored nowhere.
    content: Option<Content>,
    offset: u64,
    length: u64,
}

static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

impl Piece {
    pub fn new(content: Content, offset: u64, length: u64) -> Piece {
        Piece { content: Some(content), offset, length }
    }

    pub fn zeros(length: u64) -> Piece {
        Piece { content: None, offset: 0, length }
    }

    fn read_now(&self, most: usize) -> Option<Result<Bytes, EngineError>> {
        match &self.content {
            Some(content) => content.read_now(self.offset, most),
            None => Some(Ok(Bytes::from_static(&ZEROS).slice(..most.min(PIECE_BYTES)))),
        }
    }

    async fn read(&self, most: usize) -> Result<Bytes, EngineError> {
        match &self.content {
            Some(content) => content.read(self.offset, most).await,
            None => Ok(Bytes::from_static(&ZEROS).slice(..most.min(PIECE_BYTES))),
        }
    }
}

/// Opens what `span` of the blob is made of.
pub fn open(rows: &dyn Rows, blob: &Committed, span: Option<Span>) -> Result<VecDeque<Piece>, Unread> {
    let (offset, length) = match span {
        Some(span) => (span.first, span.count()),
        None => (0, blob.length),
    };
    match blob.content {
        ContentRef::Empty => Ok(VecDeque::new()),
        ContentRef::Whole(id) => Ok(VecDeque::from([Piece::new(model::content(rows, id)?, offset, length)])),
        ContentRef::Blocks(list) => open_blocks(rows, list, offset, length),
        ContentRef::Pages(view) => view.open(rows, offset, offset + length),
    }
}

fn open_blocks(rows: &dyn Rows, list: u64, offset: u64, length: u64) -> Result<VecDeque<Piece>, Unread> {
    let end = offset + length;
    let mut wanted = Vec::new();
    for_each_chunk(rows, list, offset, |chunk| {
        let mut start = chunk.start;
        for entry in &chunk.entries {
            let (first, last) = (start.max(offset), (start + entry.size).min(end));
            if first < last {
                wanted.push((entry.content, first - start, last - first));
            }
            start += entry.size;
        }
        start < end
    })?;
    let open = |(id, offset, length)| Ok(Piece::new(model::content(rows, id)?, offset, length));
    wanted.into_iter().map(open).collect()
}

/// Visits the chunks of a block list from the one that holds `offset` on, until `each` says that it has enough.
pub fn for_each_chunk(
    rows: &dyn Rows,
    list: u64,
    offset: u64,
    mut each: impl FnMut(&ListChunk) -> bool,
) -> Result<(), Unread> {
    let mut failed = None;
    rows.scan(&chunk_key(list, offset + 1), &list_rows(list).after_all(), 1, &mut |_, row| match codec::decode::<
        ListChunk,
    >(row)
    {
        Ok(chunk) if each(&chunk) => Visit::Next,
        Ok(_) => Visit::Stop,
        Err(error) => {
            failed = Some(error);
            Visit::Stop
        }
    })?;
    failed.map_or(Ok(()), Err)
}

/// The body of an answer: at once if it is small and at hand, otherwise as a stream.
pub fn body(pieces: VecDeque<Piece>) -> Result<ReplyBody, EngineError> {
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
    match length {
        0 => Ok(ReplyBody::Empty),
        _ => Ok(ReplyBody::Stream { length, stream: Box::new(Pieces(pieces)) }),
    }
}

/// The same body as a structured one.
pub fn structured(body: ReplyBody) -> ReplyBody {
    let mut encoder = Encoder::new(body.length());
    match body {
        ReplyBody::Empty => ReplyBody::Bytes(encoder.next(Bytes::new()).concat().into()),
        ReplyBody::Bytes(bytes) => ReplyBody::Bytes(encoder.next(bytes).concat().into()),
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
    let mut whole = BytesMut::new();
    while let Some(bytes) = next(&mut pieces).await? {
        whole.extend_from_slice(&bytes);
    }
    Ok(whole.freeze())
}

struct Pieces(VecDeque<Piece>);

impl ByteStream for Pieces {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
        Box::pin(async { next(&mut self.0).await.map_err(|error| error.to_string()).transpose() })
    }
}

async fn next(pieces: &mut VecDeque<Piece>) -> Result<Option<Bytes>, EngineError> {
    let Some(piece) = pieces.front_mut() else { return Ok(None) };
    let most = piece.length.min(PIECE_BYTES as u64) as usize;
    let bytes = piece.read(most).await?;
    if bytes.is_empty() {
        return Err(EngineError::Corrupt("a content is shorter than its blob says".into()));
    }
    piece.offset += bytes.len() as u64;
    piece.length -= bytes.len() as u64;
    if piece.length == 0 {
        pieces.pop_front();
    }
    Ok(Some(bytes))
}
