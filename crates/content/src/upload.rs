//! A request body on its way into a content.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use engine::collector::is_referred;
use engine::{Changes, ContentWriter, Engine, EngineError, Rows, Staged, Stop};
use service::request::{self, BodySums};
use service::{Failure, RequestError, reply};
use wire::checksum::{Crc64, Md5};
use wire::http::{Body, BodyError, Head, HeaderMap, HeaderValue};
use wire::structured::{self, Decoder};

use crate::sealing::{self, Salt, Sealer, Secret};

/// Since this version an answer carries the MD5 only if the request did, and a CRC64 otherwise.
const CRC64_SINCE: &str = "2019-02-02";

/// Which sums to compute while the bytes pass.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub md5: bool,
    pub crc64: bool,
}

/// A body that has arrived whole and is what the client said it is.
#[derive(Clone, Debug)]
pub struct Received {
    /// `None` if there were no bytes, or none that were not here already.
    pub staged: Option<Staged>,
    /// The content that has these bytes already.
    pub shared: Option<u64>,
    pub length: u64,
    pub md5: Option<[u8; 16]>,
    pub crc64: Option<u64>,
}

impl Received {
    /// No bytes yet, of so many.
    pub fn nothing(length: u64) -> Received {
        Received { staged: None, shared: None, length, md5: None, crc64: None }
    }

    /// Stores the bytes for `owner`, or refers to where they are; `gone` is the refusal if they are there no longer. `None`:
    /// there are none.
    pub fn keep<R>(&self, rows: &dyn Rows, owner: u64, changes: &mut Changes, gone: R) -> Result<Option<u64>, Stop<R>> {
        match (&self.staged, self.shared) {
            (Some(staged), _) => {
                changes.store(staged, owner);
                Ok(Some(staged.id().0))
            }
            // The source may have dropped the content meanwhile. It is there as long as anything refers to it.
            (None, Some(content)) if is_referred(rows, content)? => {
                changes.refer(content, owner);
                Ok(Some(content))
            }
            (None, Some(_)) => Err(Stop::Refused(gone)),
            (None, None) => Ok(None),
        }
    }
}

impl Wanted {
    /// Put Block and Append Block answer the CRC64 to a client that checks by MD5, too; its tests ask for it. Put Page
    /// does as they do.
    pub fn of_block(head: &Head, sums: &BodySums) -> Wanted {
        let plain = Wanted::by(head, sums);
        Wanted { crc64: plain.crc64 || head.since(CRC64_SINCE), ..plain }
    }

    /// What must be checked or answered. An MD5 to store is asked for apart.
    pub fn by(head: &Head, sums: &BodySums) -> Wanted {
        let by_crc64 = head.since(CRC64_SINCE);
        Wanted { md5: sums.md5.is_some() || !by_crc64, crc64: sums.crc64.is_some() || (by_crc64 && sums.md5.is_none()) }
    }
}

/// What the client says will come: so many bytes of content, and whether they come in a structured body.
#[derive(Clone, Debug)]
pub struct Announced {
    pub length: u64,
    framing: Option<Decoder>,
    secret: Option<Secret>,
    /// Bytes that are stored with the body, before and after it.
    before: Bytes,
    after: Bytes,
}

impl From<u64> for Announced {
    fn from(length: u64) -> Announced {
        Announced { length, framing: None, secret: None, before: Bytes::new(), after: Bytes::new() }
    }
}

impl Announced {
    /// To be sealed with the customer-provided key, if there is one.
    pub fn sealed_with(self, secret: Option<&Secret>) -> Announced {
        Announced { secret: secret.cloned(), ..self }
    }

    /// To be stored as one content with what lies before and after it. Neither counts in the sums.
    pub fn between(self, before: Bytes, after: Bytes) -> Announced {
        Announced { before, after, ..self }
    }
}

/// Takes the length that the client must announce, and refuses what is over `most` before any byte is asked for.
pub fn announced(head: &Head, body: &dyn Body, most: u64) -> Result<Announced, RequestError> {
    let sent = body.length().ok_or(RequestError::MissingContentLengthHeader)?;
    let announced = match request::structured_body(head)? {
        false => Announced::from(sent),
        true => {
            let length = request::structured_content_length(head)?;
            Announced { framing: Some(Decoder::new(sent, length)), ..Announced::from(length) }
        }
    };
    if announced.length > most { Err(RequestError::RequestBodyTooLarge { most }) } else { Ok(announced) }
}

/// Reads what was announced into a content. Nothing is stored until a commit says so; on an error nothing is left. The
/// sums are those of the content, not of the frame that it came in.
pub async fn receive<E: From<RequestError>>(
    engine: &dyn Engine,
    body: &mut dyn Body,
    announced: impl Into<Announced>,
    wanted: Wanted,
) -> Result<Received, Failure<E>> {
    let Announced { length, mut framing, secret, before, after } = announced.into();
    let mut md5 = wanted.md5.then(Md5::new);
    let mut crc64 = wanted.crc64.then(Crc64::new);
    let whole = before.len() as u64 + length + after.len() as u64;
    let mut store = Store::new(engine, whole, secret.as_ref())?;
    store.write(before).await?;
    let mut arrived = 0_u64;
    while let Some(bytes) = body.next().await {
        let mut rest = bytes?;
        while let Some(bytes) = content(&mut rest, framing.as_mut())? {
            arrived += bytes.len() as u64;
            if arrived > length {
                return Err(BodyError::Incomplete.into());
            }
            if let Some(sum) = &mut md5 {
                sum.update(&bytes);
            }
            if let Some(sum) = &mut crc64 {
                sum.update(&bytes);
            }
            store.write(bytes).await?;
        }
    }
    if let Some(decoder) = &framing {
        decoder.finish().map_err(RequestError::from)?;
    }
    if arrived != length {
        return Err(BodyError::Incomplete.into());
    }
    store.write(after).await?;
    let staged = store.finish().await?;
    Ok(Received { staged, shared: None, length, md5: md5.map(Md5::finish), crc64: crc64.map(Crc64::finish) })
}

/// Which sums to compute while the bytes pass, and those that the client has given.
#[derive(Clone, Copy, Debug)]
pub struct Sums<'a> {
    pub wanted: Wanted,
    pub given: &'a BodySums,
}

/// Takes a body in for an operation whose commit judges everything, if `look`, which judges it before, has nothing against it.
///
/// A large body is asked for only after the look. A small one mostly came with its head: then the commit is the only look at the
/// rows. While a body must be waited for, and before a bad one is refused, `look` is run: what is wrong with the resource is told
/// at once, and before what is wrong with the body.
pub async fn receive_judged<E: From<RequestError>>(
    engine: &dyn Engine,
    head: &Head,
    body: &mut dyn Body,
    announced: Announced,
    sums: Sums<'_>,
    look: impl Future<Output = Result<(), Failure<E>>>,
) -> Result<Received, Failure<E>> {
    let is_small = announced.length <= engine::INLINE_MAX as u64 && !head.has_header("expect");
    let mut receiving = pin!(receive(engine, body, announced, sums.wanted));
    let at_once = match is_small {
        true => poll_fn(|context| Poll::Ready(receiving.as_mut().poll(context))).await,
        false => Poll::Pending,
    };
    let verified = |received: Result<Received, Failure<E>>| {
        let received = received?;
        verify(sums.given, received.md5, received.crc64)?;
        Ok(received)
    };
    if let Poll::Ready(received) = at_once {
        let received = verified(received);
        if received.is_err() {
            look.await?;
        }
        return received;
    }
    look.await?;
    verified(receiving.await)
}

/// A content on its way in, sealed if there is a key. One without bytes is not stored at all.
struct Store {
    writer: Option<Box<dyn ContentWriter>>,
    /// Boxed: its key is large, and the future of every upload would be, too.
    sealer: Option<Box<Sealer>>,
}

impl Store {
    fn new(engine: &dyn Engine, length: u64, secret: Option<&Secret>) -> Result<Store, EngineError> {
        let stored = if secret.is_some() { sealing::sealed_length(length) } else { length };
        let writer = (length > 0).then(|| engine.writer(Some(stored)));
        let sealer = match (secret, &writer) {
            (Some(secret), Some(writer)) => Some(Box::new(Sealer::new(secret, Salt::random()?, writer.id().0, length))),
            _ => None,
        };
        Ok(Store { writer, sealer })
    }

    async fn write(&mut self, bytes: Bytes) -> Result<(), EngineError> {
        let Some(writer) = self.writer.as_mut().filter(|_| !bytes.is_empty()) else { return Ok(()) };
        let Some(sealer) = &mut self.sealer else { return writer.write(bytes).await };
        for piece in sealer.next(bytes) {
            writer.write(piece).await?;
        }
        Ok(())
    }

    async fn finish(self) -> Result<Option<Staged>, EngineError> {
        match self.writer {
            Some(writer) => Ok(Some(writer.finish().await?)),
            None => Ok(None),
        }
    }
}

/// Reads `length` bytes that are stored already, for their sums alone.
pub async fn sum(body: &mut dyn Body, length: u64, wanted: Wanted) -> Result<Received, BodyError> {
    let mut md5 = wanted.md5.then(Md5::new);
    let mut crc64 = wanted.crc64.then(Crc64::new);
    while let Some(bytes) = body.next().await {
        let bytes = bytes?;
        if let Some(sum) = &mut md5 {
            sum.update(&bytes);
        }
        if let Some(sum) = &mut crc64 {
            sum.update(&bytes);
        }
    }
    Ok(Received { md5: md5.map(Md5::finish), crc64: crc64.map(Crc64::finish), ..Received::nothing(length) })
}

/// The next bytes of content in what has come.
fn content(rest: &mut Bytes, framing: Option<&mut Decoder>) -> Result<Option<Bytes>, RequestError> {
    match framing {
        Some(decoder) => Ok(decoder.next(rest)?),
        None => Ok(Some(std::mem::take(rest)).filter(|bytes| !bytes.is_empty())),
    }
}

/// Compares what was announced with what arrived.
pub fn verify(
    given: &BodySums,
    computed_md5: Option<[u8; 16]>,
    computed_crc64: Option<u64>,
) -> Result<(), RequestError> {
    match (given.md5, computed_md5) {
        (Some(given), Some(computed)) if given != computed => {
            return Err(RequestError::Md5Mismatch { given, computed });
        }
        _ => {}
    }
    match (given.crc64, computed_crc64) {
        (Some(given), Some(computed)) if given != computed => Err(RequestError::Crc64Mismatch { given, computed }),
        _ => Ok(()),
    }
}

/// Tells the client what arrived: the MD5 if that is how it checks, and the CRC64 if that was computed.
pub fn answer_sums(headers: &mut HeaderMap, head: &Head, sums: &BodySums, md5: Option<[u8; 16]>, crc64: Option<u64>) {
    let by_md5 = sums.md5.is_some() || !head.since(CRC64_SINCE);
    if let Some(md5) = md5.filter(|_| by_md5) {
        reply::set_md5(headers, &reply::CONTENT_MD5, &md5);
    }
    if let Some(crc64) = crc64 {
        reply::set_crc64(headers, crc64);
    }
    if head.has_header(request::STRUCTURED_BODY) {
        headers.insert(&reply::STRUCTURED_BODY, HeaderValue::from_static(structured::VALUE));
    }
}
