//! A socket that does not wait for ever.
//!
//! hyper reads and writes through it. It knows whether a request is running, so that it can hold a client to three
//! different patiences: between requests, within the head of one, and while an answer goes out. (The body of a request
//! has its own, in `body.rs`, where the reader knows that it is waiting.) One timer serves all of them and is armed
//! about once per waiting period, not once per request.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use http::HeaderMap;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::activity::Activity;
use crate::limits::{LINGER_BYTES_MAX, Limits, STRANGER_READ_BYTES, UNFINISHED_HEAD_BYTES_FREE};
use crate::metadata_case::{AskedNames, Reader, Spelling};
use crate::socket::Socket;

/// What the socket and the requests on it tell each other. One task runs both, so the atomics cost nothing.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// What the listener knows of this connection.
    pub(crate) activity: Arc<Activity>,
    since: Instant,
    /// Requests begun and answers ended: equal means nothing is running.
    begun: AtomicU64,
    ended: AtomicU64,
    /// When the last answer ended, in microseconds after `since`.
    last_end: AtomicU64,
    /// The answer went out before the request's body was read.
    linger: AtomicBool,
    /// How requests spelled their metadata, and how the answer should.
    asked: AskedNames,
    pub(crate) answered: Spelling,
    /// How many answers have left this process, and the task that waits for that.
    flushed: AtomicU64,
    flush_waker: Mutex<Option<Waker>>,
}

impl Traffic {
    pub(crate) fn new(activity: Arc<Activity>) -> Traffic {
        Traffic {
            activity,
            since: Instant::now(),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            last_end: AtomicU64::new(0),
            linger: AtomicBool::new(false),
            asked: AskedNames::default(),
            answered: Spelling::default(),
            flushed: AtomicU64::new(0),
            flush_waker: Mutex::default(),
        }
    }

    pub(crate) fn begin(&self) {
        self.activity.begin();
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        let now = Instant::now();
        let micros = u64::try_from((now - self.since).as_micros()).unwrap_or(u64::MAX);
        self.last_end.store(micros, Ordering::Relaxed);
        self.ended.fetch_add(1, Ordering::Relaxed);
        self.activity.end(now);
    }

    fn last_end(&self) -> Instant {
        self.since + Duration::from_micros(self.last_end.load(Ordering::Relaxed))
    }

    pub(crate) fn linger(&self) {
        self.linger.store(true, Ordering::Relaxed);
    }

    /// Tells a service how the client spelled the names of metadata in the request that was begun last.
    pub(crate) fn tell_names(&self, headers: &mut HeaderMap) {
        self.asked.tell(self.begun.load(Ordering::Relaxed), headers);
    }

    /// Resolves when nothing of earlier answers is left to write. A client that sends requests before it reads answers can
    /// have two of them wait in one buffer, and then nobody could tell where the head of the second begins.
    pub(crate) fn earlier_answers_flushed(&self) -> impl Future<Output = ()> + '_ {
        std::future::poll_fn(|cx| {
            if self.flushed.load(Ordering::Relaxed) >= self.ended.load(Ordering::Relaxed) {
                return Poll::Ready(());
            }
            *self.flush_waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
            Poll::Pending
        })
    }

    fn has_flushed(&self) {
        let ended = self.ended.load(Ordering::Relaxed);
        if self.flushed.swap(ended, Ordering::Relaxed) != ended
            && let Some(waker) = self.flush_waker.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            waker.wake();
        }
    }

    /// How many requests there have been, unless one is running.
    fn between_requests(&self) -> Option<u64> {
        let begun = self.begun.load(Ordering::Relaxed);
        (begun == self.ended.load(Ordering::Relaxed)).then_some(begun)
    }
}

/// How many bytes of heads wait for their end, on all connections together.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedHeads(AtomicUsize);

impl UnfinishedHeads {
    /// A head that had `before` bytes has `now`. Returns how many all of them have.
    fn note(&self, before: usize, now: usize) -> usize {
        match now.checked_sub(before) {
            Some(more) => self.0.fetch_add(more, Ordering::Relaxed) + more,
            None => self.0.fetch_sub(before - now, Ordering::Relaxed) - (before - now),
        }
    }
}

pub(crate) struct TimedStream<'a> {
    socket: &'a mut Socket,
    traffic: Arc<Traffic>,
    unfinished_heads: Arc<UnfinishedHeads>,
    /// How many of those bytes came on this connection.
    unfinished: usize,
    limits: Limits,
    timer: Pin<Box<Sleep>>,
    /// When the first byte of a head came, and after how many requests.
    head: Option<(u64, Instant)>,
    names: Reader,
    write_blocked_since: Option<Instant>,
    lingering: Option<(Instant, u64)>,
}

impl<'a> TimedStream<'a> {
    pub(crate) fn new(
        socket: &'a mut Socket,
        traffic: Arc<Traffic>,
        unfinished_heads: Arc<UnfinishedHeads>,
        limits: Limits,
    ) -> TimedStream<'a> {
        let timer = Box::pin(sleep_until(traffic.since + limits.idle));
        TimedStream {
            socket,
            traffic,
            unfinished_heads,
            unfinished: 0,
            limits,
            timer,
            head: None,
            names: Reader::default(),
            write_blocked_since: None,
            lingering: None,
        }
    }

    /// Pending until the deadline, then an error.
    fn wait(&mut self, cx: &mut Context<'_>, since: Instant, patience: Duration) -> Poll<io::Error> {
        let deadline = since + patience;
        loop {
            if Instant::now() >= deadline {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            // A timer that rings too early only makes us look again; one that would ring too late is set anew.
            if self.timer.is_elapsed() || self.timer.deadline() > deadline {
                self.timer.as_mut().reset(deadline);
            }
            ready!(self.timer.as_mut().poll(cx));
        }
    }

    fn waited_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(count) = self.traffic.between_requests() else {
            // Nobody reads again when the answer has gone out: hyper knows already that nothing is there. So the timer
            // must run, to have us looked at then.
            if self.timer.is_elapsed() {
                self.timer.as_mut().reset(Instant::now() + self.limits.idle);
            }
            let _ = self.timer.as_mut().poll(cx);
            return Poll::Pending;
        };
        match self.head {
            Some((before, began)) if before == count => self.wait(cx, began, self.limits.head).map(Err),
            // Nothing was begun: as if the client had closed, so that our side closes in good order.
            _ => self.wait(cx, self.traffic.last_end(), self.limits.idle).map(|_| Ok(())),
        }
    }

    /// Bytes that come while nothing runs begin a head.
    fn note_read(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.names.read(bytes, &self.traffic.asked);
        self.count_unfinished(self.names.unfinished())?;
        if let Some(count) = self.traffic.between_requests().filter(|count| !self.is_in_head(*count)) {
            self.head = Some((count, Instant::now()));
        }
        Ok(())
    }

    /// A head without end is refused when others have sent many of them.
    fn count_unfinished(&mut self, now: usize) -> io::Result<()> {
        let before = std::mem::replace(&mut self.unfinished, now);
        if before == now {
            return Ok(());
        }
        let all = self.unfinished_heads.note(before, now);
        if now > UNFINISHED_HEAD_BYTES_FREE.max(before) && all > self.limits.unfinished_heads {
            return Err(io::Error::other("too many heads of requests have no end"));
        }
        Ok(())
    }

    /// Reads at most [`STRANGER_READ_BYTES`].
    fn poll_read_a_little(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let most = buffer.remaining().min(STRANGER_READ_BYTES);
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
        ready!(Pin::new(&mut *self.socket).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }

    fn is_in_head(&self, count: u64) -> bool {
        self.head.is_some_and(|(before, _)| before == count)
    }

    /// Whether the peer may still be sending what nobody will read: a refused body, or a head that is none.
    fn must_linger(&self) -> bool {
        let unfinished = self.traffic.between_requests().is_some_and(|count| self.is_in_head(count));
        unfinished || self.traffic.linger.load(Ordering::Relaxed)
    }

    fn waited_write<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.write_blocked_since = None;
            return written;
        }
        let since = *self.write_blocked_since.get_or_insert_with(Instant::now);
        self.wait(cx, since, self.limits.write_pause).map(Err)
    }

    /// Reads and forgets what a refused client still sends, so that the answer reaches it before the socket closes.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (since, mut left) = *self.lingering.get_or_insert_with(|| (Instant::now(), LINGER_BYTES_MAX));
        let mut scratch = [0; 16 * 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(self.socket.tcp()).poll_read(cx, &mut buffer) {
                Poll::Pending => break,
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) => {
                    let read = buffer.filled().len() as u64;
                    if read == 0 || read > left {
                        return Poll::Ready(());
                    }
                    left -= read;
                }
            }
        }
        self.lingering = Some((since, left));
        self.wait(cx, since, self.limits.linger).map(|_| ())
    }
}

impl AsyncRead for TimedStream<'_> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = match self.traffic.activity.may_stay() {
            true => Pin::new(&mut *self.socket).poll_read(cx, buffer),
            false => self.poll_read_a_little(cx, buffer),
        };
        match read {
            Poll::Pending => self.waited_read(cx),
            Poll::Ready(read) => {
                if let Some(bytes @ [_, ..]) = buffer.filled().get(before..) {
                    self.note_read(bytes)?;
                }
                Poll::Ready(read)
            }
        }
    }
}

impl Drop for TimedStream<'_> {
    fn drop(&mut self) {
        self.unfinished_heads.note(self.unfinished, 0);
    }
}

impl AsyncWrite for TimedStream<'_> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let spelled = self.traffic.answered.spelled(bytes);
        let written = Pin::new(&mut *self.socket).poll_write(cx, spelled.as_deref().unwrap_or(bytes));
        if let (Some(spelled), Poll::Ready(Ok(count))) = (&spelled, &written) {
            self.traffic.answered.written(spelled, *count);
        }
        self.waited_write(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.traffic.answered.is_any() {
            // The head is in the first piece; the others have their turn after it.
            let first = slices.iter().find(|slice| !slice.is_empty());
            return self.poll_write(cx, first.map_or(&[], |slice| slice));
        }
        let written = Pin::new(&mut *self.socket).poll_write_vectored(cx, slices);
        self.waited_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // TLS keeps what it could not write.
        let flushed = Pin::new(&mut *self.socket).poll_flush(cx);
        if flushed.is_ready() {
            self.traffic.has_flushed();
        }
        self.waited_write(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            let shut = Pin::new(&mut *self.socket).poll_shutdown(cx);
            ready!(self.waited_write(cx, shut))?;
        }
        if self.must_linger() {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn little_is_read_at_once_from_a_client_that_was_not_let_in() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let mut socket = Socket::Plain(listener.accept().await.unwrap().0);
        let activity = Arc::new(Activity::new(Instant::now()));
        let traffic = Arc::new(Traffic::new(Arc::clone(&activity)));
        let mut stream = TimedStream::new(&mut socket, traffic, Arc::default(), Limits::default());
        client.write_all(&[b'a'; 8 * STRANGER_READ_BYTES]).await.unwrap();
        let mut buffer = vec![0; 8 * STRANGER_READ_BYTES];
        assert!(stream.read(&mut buffer).await.unwrap() <= STRANGER_READ_BYTES);
        activity.let_stay();
        assert!(stream.read(&mut buffer).await.unwrap() > STRANGER_READ_BYTES);
    }
}
