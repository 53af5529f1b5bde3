//! Bodies between hyper and the services, both ways. Nothing here holds more than one piece at a time.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wire::http::{Body, BodyError, BoxFuture, ByteStream, ReplyBody};

use crate::limits::{DRAIN_BYTES_MAX, DRAIN_TIME_MAX, KEPT_BODY_BYTES_MAX, Limits, PUBLIC_ANSWER_BYTES_FREE};
use crate::metrics::{Metrics, RequestKind};
use crate::stream::Traffic;

/// A request body on its way in.
#[derive(Debug)]
pub(crate) struct RequestBody {
    incoming: Incoming,
    length: Option<u64>,
    pause: Duration,
    /// The client waits for `100 Continue` before it sends.
    expects_continue: bool,
    begun: bool,
    state: State,
    received: u64,
    kept: Kept,
    /// What is given once more before the rest.
    again: VecDeque<Bytes>,
}

/// What a body that may have to go elsewhere keeps of what was read.
#[derive(Debug)]
enum Kept {
    /// Nothing: it was not asked to, or it was too much.
    No,
    Pieces(VecDeque<Bytes>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    More,
    Ended,
    Broken,
}

/// What is left on the connection when the answer is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Nothing: the connection can take the next request.
    Read,
    /// Bytes that will not be read: the connection must close.
    Unread,
}

impl RequestBody {
    pub(crate) fn new(incoming: Incoming, headers: &HeaderMap, pause: Duration) -> RequestBody {
        use http_body::Body as _;
        let length = incoming.size_hint().exact();
        // hyper reports a body that is not there as one of length 0; a client that sent no length said nothing.
        let says_length = headers.contains_key(header::CONTENT_LENGTH);
        let state = if incoming.is_end_stream() { State::Ended } else { State::More };
        RequestBody {
            incoming,
            length: length.filter(|_| says_length),
            pause,
            expects_continue: headers.contains_key(header::EXPECT),
            begun: false,
            state,
            received: 0,
            kept: Kept::No,
            again: VecDeque::new(),
        }
    }

    /// The same body, which can be read again from its start while no more than [`KEPT_BODY_BYTES_MAX`] of it were read.
    pub(crate) fn keeping(self) -> RequestBody {
        RequestBody { kept: Kept::Pieces(VecDeque::new()), ..self }
    }

    /// Goes back to the start. Whether that can be done.
    pub(crate) fn rewind(&mut self) -> bool {
        match std::mem::replace(&mut self.kept, Kept::No) {
            Kept::Pieces(pieces) => self.again = pieces,
            Kept::No if self.received > 0 => return false,
            Kept::No => {}
        }
        true
    }

    fn keep(&mut self, piece: &Bytes) {
        let Kept::Pieces(pieces) = &mut self.kept else { return };
        if self.received <= KEPT_BODY_BYTES_MAX {
            pieces.push_back(piece.clone());
        } else {
            self.kept = Kept::No;
        }
    }

    /// How long the body is, if that is known; 0 if there is none.
    pub(crate) fn exact_length(&self) -> Option<u64> {
        if self.state == State::Ended && self.again.is_empty() { Some(0) } else { self.length }
    }

    /// How many bytes have come so far.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// What is left, without waiting for any of it.
    pub(crate) fn rest(&self) -> Rest {
        if self.state == State::Ended { Rest::Read } else { Rest::Unread }
    }

    /// Reads a little of what a refused client still sends, so that its connection lives on.
    pub(crate) async fn drain(&mut self) -> Rest {
        let asks_first = self.expects_continue && !self.begun;
        let too_long = self.length.is_some_and(|length| length > DRAIN_BYTES_MAX);
        if self.state == State::Ended {
            return Rest::Read;
        }
        if self.state == State::Broken || asks_first || too_long {
            return Rest::Unread;
        }
        tokio::time::timeout(DRAIN_TIME_MAX, self.read_a_little()).await.unwrap_or(Rest::Unread)
    }

    async fn read_a_little(&mut self) -> Rest {
        let mut left = DRAIN_BYTES_MAX;
        loop {
            match self.read().await {
                None => return Rest::Read,
                Some(Ok(bytes)) if bytes.len() as u64 <= left => left -= bytes.len() as u64,
                Some(_) => return Rest::Unread,
            }
        }
    }

    async fn read(&mut self) -> Option<Result<Bytes, BodyError>> {
        self.begun = true;
        if let Some(piece) = self.again.pop_front() {
            return Some(Ok(piece));
        }
        while self.state == State::More {
            let frame = std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut self.incoming), cx));
            match tokio::time::timeout(self.pause, frame).await {
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => {
                        self.received += bytes.len() as u64;
                        self.keep(&bytes);
                        return Some(Ok(bytes));
                    }
                    Err(_trailers) => continue,
                },
                Ok(None) => self.state = State::Ended,
                Ok(Some(Err(_))) => {
                    self.state = State::Broken;
                    return Some(Err(BodyError::Incomplete));
                }
                Err(_) => {
                    self.state = State::Broken;
                    return Some(Err(BodyError::TimedOut));
                }
            }
        }
        None
    }
}

impl Body for RequestBody {
    fn length(&self) -> Option<u64> {
        self.length
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, BodyError>>> {
        Box::pin(self.read())
    }
}

/// An answer's body on its way out. When it is dropped the answer has ended.
pub(crate) struct AnswerBody {
    rest: Remaining,
    traffic: Arc<Traffic>,
    sent: u64,
    counted: Option<(Arc<Metrics>, RequestKind)>,
}

enum Remaining {
    Nothing,
    Bytes(Bytes),
    Stream {
        left: u64,
        pending: Option<Pending>,
    },
    /// It ends when it ends.
    Open(Pending),
    /// The stream is being asked, or has ended.
    Taken,
}

/// The stream travels into the future that reads it and comes back with the piece: no reference into ourselves.
type Pending = Pin<Box<dyn Future<Output = (Box<dyn ByteStream>, Option<Result<Bytes, String>>)> + Send>>;

impl AnswerBody {
    pub(crate) fn new(body: ReplyBody, traffic: Arc<Traffic>) -> AnswerBody {
        let rest = match body {
            ReplyBody::Empty => Remaining::Nothing,
            ReplyBody::Bytes(bytes) if bytes.is_empty() => Remaining::Nothing,
            ReplyBody::Bytes(bytes) => Remaining::Bytes(bytes),
            ReplyBody::Stream { length: 0, .. } => Remaining::Nothing,
            ReplyBody::Open(stream) => Remaining::Open(ask(stream)),
            ReplyBody::Stream { length, stream } => Remaining::Stream { left: length, pending: Some(ask(stream)) },
        };
        AnswerBody { rest, traffic, sent: 0, counted: None }
    }

    /// Has its bytes counted for what was asked.
    pub(crate) fn count_for(&mut self, metrics: &Arc<Metrics>, asked: RequestKind) {
        if !matches!(self.rest, Remaining::Nothing) {
            self.counted = Some((Arc::clone(metrics), asked));
        }
    }
}

/// How many bytes of answers to clients without a credential may wait to be taken; see [`Limits::public_answers`].
#[derive(Debug)]
pub(crate) struct PublicAnswers(Arc<Semaphore>);

/// An answer that is counted until the last of its bytes was written.
struct CountedAnswer {
    bytes: Bytes,
    _counted: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for CountedAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Too many bytes wait already.
#[derive(Debug)]
pub(crate) struct TooManyBytes;

impl PublicAnswers {
    pub(crate) fn new(limits: &Limits) -> PublicAnswers {
        PublicAnswers(Arc::new(Semaphore::new(limits.public_answers)))
    }

    /// Counts an answer that is in memory as a whole. A stream holds one piece at a time.
    pub(crate) fn count(&self, body: ReplyBody) -> Result<ReplyBody, TooManyBytes> {
        let ReplyBody::Bytes(bytes) = body else { return Ok(body) };
        if bytes.len() <= PUBLIC_ANSWER_BYTES_FREE {
            return Ok(ReplyBody::Bytes(bytes));
        }
        let count = u32::try_from(bytes.len()).map_err(|_| TooManyBytes)?;
        let counted = Arc::clone(&self.0).try_acquire_many_owned(count).map_err(|_| TooManyBytes)?;
        Ok(ReplyBody::Bytes(Bytes::from_owner(CountedAnswer { bytes, _counted: counted })))
    }
}

fn ask(mut stream: Box<dyn ByteStream>) -> Pending {
    Box::pin(async move {
        let piece = stream.next().await;
        (stream, piece)
    })
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.traffic.end();
        if let Some((metrics, asked)) = &self.counted {
            metrics.sent(*asked, self.sent);
        }
    }
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = String;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, String>>> {
        match std::mem::replace(&mut self.rest, Remaining::Taken) {
            Remaining::Nothing | Remaining::Taken => Poll::Ready(None),
            Remaining::Bytes(bytes) => {
                self.sent += bytes.len() as u64;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Remaining::Open(mut pending) => {
                let Poll::Ready((stream, piece)) = pending.as_mut().poll(cx) else {
                    self.rest = Remaining::Open(pending);
                    return Poll::Pending;
                };
                match piece {
                    None => Poll::Ready(None),
                    Some(Err(error)) => Poll::Ready(Some(Err(error))),
                    Some(Ok(bytes)) => {
                        self.sent += bytes.len() as u64;
                        self.rest = Remaining::Open(ask(stream));
                        Poll::Ready(Some(Ok(Frame::data(bytes))))
                    }
                }
            }
            Remaining::Stream { pending: None, .. } => Poll::Ready(None),
            Remaining::Stream { left, pending: Some(mut pending) } => {
                let Poll::Ready((stream, piece)) = pending.as_mut().poll(cx) else {
                    self.rest = Remaining::Stream { left, pending: Some(pending) };
                    return Poll::Pending;
                };
                match piece {
                    Some(Ok(bytes)) if bytes.len() as u64 <= left => {
                        let left = left - bytes.len() as u64;
                        self.sent += bytes.len() as u64;
                        // Asked only when hyper wants more: nothing is read ahead of a slow client.
                        let pending = (left > 0).then(|| ask(stream));
                        self.rest = Remaining::Stream { left, pending };
                        Poll::Ready(Some(Ok(Frame::data(bytes))))
                    }
                    Some(Ok(_)) => Poll::Ready(Some(Err("the content is longer than announced".into()))),
                    Some(Err(error)) => Poll::Ready(Some(Err(error))),
                    None => Poll::Ready(Some(Err("the content is shorter than announced".into()))),
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.rest {
            Remaining::Nothing | Remaining::Taken => true,
            Remaining::Bytes(_) | Remaining::Open(_) => false,
            Remaining::Stream { left, .. } => *left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.rest {
            Remaining::Nothing | Remaining::Taken => SizeHint::with_exact(0),
            Remaining::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Remaining::Stream { left, .. } => SizeHint::with_exact(*left),
            Remaining::Open(_) => SizeHint::new(),
        }
    }
}
