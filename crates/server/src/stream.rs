//! A socket that does not wait for ever.
//!
//! hyper reads and writes through it. It knows whether a request is running, so that it can hold a client to three
//! different patiences: between requests, within the head of one, and while an answer goes out. (The body of a request
//! has its own, in `body.rs`, where the reader knows that it is waiting.) One timer serves all of them and is armed
//! about once per waiting period, not once per request.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::limits::{LINGER_BYTES_MAX, Limits};

/// What the socket and the requests on it tell each other. One task runs both, so the atomics cost nothing.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// Requests begun and answers ended: equal means nothing is running.
    begun: AtomicU64,
    ended: AtomicU64,
    /// The answer went out before the request's body was read.
    linger: AtomicBool,
}

impl Traffic {
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn linger(&self) {
        self.linger.store(true, Ordering::Relaxed);
    }

    /// Nothing has been asked on this connection yet.
    pub(crate) fn is_new(&self) -> bool {
        self.begun.load(Ordering::Relaxed) == 0
    }

    /// How many requests there have been, unless one is running.
    fn between_requests(&self) -> Option<u64> {
        let begun = self.begun.load(Ordering::Relaxed);
        (begun == self.ended.load(Ordering::Relaxed)).then_some(begun)
    }
}

/// What a silent client is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// The next request, after so many.
    Request(u64),
    /// The rest of the head of the next request, after so many.
    Head(u64),
}

pub(crate) struct TimedStream {
    tcp: TcpStream,
    traffic: Arc<Traffic>,
    limits: Limits,
    timer: Pin<Box<Sleep>>,
    reading: (Waiting, Instant),
    write_blocked_since: Option<Instant>,
    lingering: Option<(Instant, u64)>,
}

impl TimedStream {
    pub(crate) fn new(tcp: TcpStream, traffic: Arc<Traffic>, limits: Limits) -> TimedStream {
        let now = Instant::now();
        TimedStream {
            tcp,
            traffic,
            limits,
            timer: Box::pin(sleep_until(now + limits.idle)),
            reading: (Waiting::Request(0), now),
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
        let Some(count) = self.traffic.between_requests() else { return Poll::Pending };
        if !matches!(self.reading.0, Waiting::Request(n) | Waiting::Head(n) if n == count) {
            self.reading = (Waiting::Request(count), Instant::now());
        }
        let (waiting, since) = self.reading;
        let patience = match waiting {
            Waiting::Request(_) => self.limits.idle,
            Waiting::Head(_) => self.limits.head,
        };
        self.wait(cx, since, patience).map(Err)
    }

    /// Bytes that come while nothing runs begin a head.
    fn note_read(&mut self) {
        let Some(count) = self.traffic.between_requests() else { return };
        if self.reading.0 != Waiting::Head(count) {
            self.reading = (Waiting::Head(count), Instant::now());
        }
    }

    fn waited_write(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
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
            match Pin::new(&mut self.tcp).poll_read(cx, &mut buffer) {
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

impl AsyncRead for TimedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        match Pin::new(&mut this.tcp).poll_read(cx, buffer) {
            Poll::Pending => this.waited_read(cx),
            Poll::Ready(read) => {
                this.note_read();
                Poll::Ready(read)
            }
        }
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tcp).poll_write(cx, bytes);
        self.waited_write(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tcp).poll_write_vectored(cx, slices);
        self.waited_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.tcp).poll_shutdown(cx))?;
        if self.traffic.linger.load(Ordering::Relaxed) {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}
