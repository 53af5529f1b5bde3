//! Frames on their way to a client.
//!
//! Commands push frames and never wait. The connection reads no further request while more than [`OUTBOX_BYTES_MAX`] bytes wait (or
//! [`OUTBOX_BYTES_MAX_BEFORE_LOGON`]), so a
//! client that does not read its answers stops its own requests, and the time limit of writing ends its connection. A frame keeps the
//! memory that its requests were given until it is sent, so the answers of all connections together have a limit, too:
//! [`crate::memory`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::memory::Memory;

/// Bytes of answers that may wait before no more requests are read.
pub const OUTBOX_BYTES_MAX: usize = 32 << 20;

/// The same while nobody is logged on.
pub const OUTBOX_BYTES_MAX_BEFORE_LOGON: usize = 64 << 10;

/// What a frame in the queue costs beside its bytes, and more: else small ones would cost nearly nothing by their count.
pub const FRAME_COST_BYTES: usize = 512;

/// A frame in its parts, which are sent one after the other.
pub type Frame = Vec<Bytes>;

/// A frame in the queue.
#[derive(Debug)]
pub struct Queued {
    pub parts: Frame,
    /// Given back when the frame is sent.
    _memory: Option<Memory>,
}

/// The queue. A clone is the same queue.
#[derive(Clone, Debug, Default)]
pub struct Outbox(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    /// A frame was pushed, or the queue was closed.
    pushed: Notify,
    /// A frame was sent, or the queue was closed.
    sent: Notify,
}

#[derive(Debug, Default)]
struct State {
    frames: VecDeque<Queued>,
    /// Of the frames in the queue, with [`FRAME_COST_BYTES`] for each, and of the one that is being sent.
    bytes: usize,
    is_closed: bool,
}

fn length(frame: &[Bytes]) -> usize {
    frame.iter().map(Bytes::len).sum()
}

impl Outbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a frame. After [`Outbox::close`] it goes nowhere.
    pub fn push(&self, frame: Frame) {
        self.push_paid(frame, None);
    }

    /// The same with the memory of its requests.
    pub fn push_paid(&self, frame: Frame, memory: Option<Memory>) {
        let mut state = self.state();
        if state.is_closed {
            return;
        }
        state.bytes += length(&frame) + FRAME_COST_BYTES;
        state.frames.push_back(Queued { parts: frame, _memory: memory });
        drop(state);
        self.0.pushed.notify_one();
    }

    /// Takes no more frames. Those in the queue can still be taken.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.0.pushed.notify_one();
        self.0.sent.notify_one();
    }

    /// Closes, and forgets what is in the queue: nobody takes it any more.
    pub fn abandon(&self) {
        let frames = std::mem::take(&mut self.state().frames);
        self.close();
        // Memory wakes those that wait for it: not under the mutex.
        drop(frames);
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// The next frame; none after the end. One task calls this.
    pub async fn next(&self) -> Option<Queued> {
        loop {
            {
                let mut state = self.state();
                if let Some(frame) = state.frames.pop_front() {
                    state.bytes = state.bytes.saturating_sub(FRAME_COST_BYTES);
                    return Some(frame);
                }
                if state.is_closed {
                    return None;
                }
            }
            self.0.pushed.notified().await;
        }
    }

    /// So many bytes of a frame that was taken have been sent.
    pub fn sent(&self, bytes: usize) {
        let mut state = self.state();
        state.bytes = state.bytes.saturating_sub(bytes);
        drop(state);
        self.0.sent.notify_one();
    }

    /// Waits until no more than `max` bytes wait, or the queue is closed. One task calls this.
    pub async fn has_room(&self, max: usize) {
        loop {
            {
                let state = self.state();
                if state.is_closed || state.bytes <= max {
                    return;
                }
            }
            self.0.sent.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_leave_in_order_and_none_after_the_end() {
        let outbox = Outbox::default();
        outbox.push(vec![Bytes::from_static(b"a")]);
        outbox.push(vec![Bytes::from_static(b"b")]);
        outbox.close();
        outbox.push(vec![Bytes::from_static(b"c")]);
        assert_eq!(outbox.next().await.map(|frame| frame.parts), Some(vec![Bytes::from_static(b"a")]));
        assert_eq!(outbox.next().await.map(|frame| frame.parts), Some(vec![Bytes::from_static(b"b")]));
        assert!(outbox.next().await.is_none());
    }

    #[tokio::test]
    async fn there_is_no_room_until_enough_was_sent() {
        let outbox = Outbox::default();
        outbox.has_room(1000).await;
        outbox.push(vec![Bytes::from(vec![0; 1000]), Bytes::from_static(b"x")]);
        let mut waiting = std::pin::pin!(outbox.has_room(1000));
        assert!(crate::conversation::poll_once(waiting.as_mut()).await.is_none());
        outbox.next().await;
        assert!(crate::conversation::poll_once(waiting.as_mut()).await.is_none());
        outbox.sent(1);
        waiting.await;
    }

    #[tokio::test]
    async fn small_frames_count_for_what_they_cost() {
        let outbox = Outbox::default();
        for _ in 0..OUTBOX_BYTES_MAX_BEFORE_LOGON / FRAME_COST_BYTES {
            outbox.push(vec![Bytes::from_static(b"x")]);
        }
        let mut waiting = std::pin::pin!(outbox.has_room(OUTBOX_BYTES_MAX_BEFORE_LOGON));
        assert!(crate::conversation::poll_once(waiting.as_mut()).await.is_none());
        outbox.abandon();
        waiting.await;
        assert!(outbox.next().await.is_none(), "what nobody takes is forgotten");
    }
}
