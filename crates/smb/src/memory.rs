//! Memory for requests at work and for their answers, over all connections.
//!
//! A frame of requests is given as many bytes as its credits pay for, before it is run, and its answers keep them until they are sent. So
//! clients that ask for much and read nothing fill [`WORK_BYTES_MAX`] and no more. While a frame waits for memory the connections whose
//! clients take their answers too slowly are ended ([`MemoryPool::is_short`]), and small frames of connections that hold nothing are served
//! out of [`RESERVE_BYTES`].
//!
//! The bytes of the requests come on top: each connection reads one frame at most, and that has come before it is known what it costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::credits::{CREDIT_BYTES, CREDITS_MAX};

/// Bytes of requests at work and of answers that were not sent, over all connections, by what their credits pay for. More wait for
/// their turn.
pub const WORK_BYTES_MAX: usize = 512 << 20;

/// Bytes beyond [`WORK_BYTES_MAX`] for small frames of connections that have nothing else at work and no answer to be sent.
pub const RESERVE_BYTES: usize = 64 << 20;

/// What a frame may take of the reserve.
pub const RESERVE_BYTES_PER_FRAME_MAX: usize = 128 << 10;

/// What there is for all connections.
#[derive(Debug)]
pub struct MemoryPool {
    credits: Arc<Semaphore>,
    reserve: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// The share of one frame: of what its connection may have, and of what all may have. Given back when it is dropped.
#[derive(Debug)]
pub struct Memory(#[expect(dead_code, reason = "held, not read")] [OwnedSemaphorePermit; 2]);

impl Default for MemoryPool {
    fn default() -> MemoryPool {
        let credits = |bytes: usize| Arc::new(Semaphore::new(bytes / CREDIT_BYTES as usize));
        MemoryPool { credits: credits(WORK_BYTES_MAX), reserve: credits(RESERVE_BYTES), waiting: AtomicUsize::new(0) }
    }
}

/// One that waits for memory, for as long as this lives.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl MemoryPool {
    /// Bytes that are left, without the reserve.
    #[cfg(test)]
    pub(crate) fn available(&self) -> usize {
        self.credits.available_permits() * CREDIT_BYTES as usize
    }

    /// Whether a frame waits for memory.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Waits for the memory of a frame of so many credits: first for that of its connection, of which there is room for
    /// [`CREDITS_MAX`].
    pub(crate) async fn take(&self, of_connection: &Arc<Semaphore>, credits: usize) -> Memory {
        let count = credits.min(CREDITS_MAX);
        let credits = u32::try_from(count).unwrap_or(u32::MAX);
        let own = taken(of_connection, credits).await;
        if let Ok(of_all) = Arc::clone(&self.credits).try_acquire_many_owned(credits) {
            return Memory([own, of_all]);
        }
        let is_small = count <= RESERVE_BYTES_PER_FRAME_MAX / CREDIT_BYTES as usize;
        let is_alone = of_connection.available_permits() + count >= CREDITS_MAX;
        if is_small
            && is_alone
            && let Ok(reserved) = Arc::clone(&self.reserve).try_acquire_many_owned(credits)
        {
            return Memory([own, reserved]);
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        Memory([own, taken(&self.credits, credits).await])
    }
}

async fn taken(semaphore: &Arc<Semaphore>, count: u32) -> OwnedSemaphorePermit {
    Arc::clone(semaphore).acquire_many_owned(count).await.expect("the semaphore is never closed")
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;
    use crate::conversation::poll_once;

    fn connection() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(CREDITS_MAX))
    }

    #[tokio::test]
    async fn all_connections_together_have_a_limit_and_small_frames_a_reserve() {
        let pool = MemoryPool::default();
        let mut held = Vec::new();
        for _ in 0..WORK_BYTES_MAX / CREDIT_BYTES as usize / CREDITS_MAX {
            held.push(pool.take(&connection(), CREDITS_MAX).await);
        }
        assert!(!pool.is_short());
        let other = connection();
        let mut large = pin!(pool.take(&other, CREDITS_MAX));
        assert!(poll_once(large.as_mut()).await.is_none());
        assert!(pool.is_short());
        let third = connection();
        let small = pool.take(&third, 1).await;
        let mut owing = pin!(pool.take(&third, 1));
        assert!(poll_once(owing.as_mut()).await.is_none(), "who holds some of the reserve gets no more of it");
        held.pop();
        drop(large.await);
        drop(owing.await);
        assert!(!pool.is_short());
        drop(small);
    }

    #[tokio::test]
    async fn a_connection_has_a_limit_of_its_own() {
        let (pool, own) = (MemoryPool::default(), connection());
        let first = pool.take(&own, 10 * CREDITS_MAX).await;
        let mut second = pin!(pool.take(&own, 1));
        assert!(poll_once(second.as_mut()).await.is_none());
        assert!(!pool.is_short(), "it waits for itself");
        drop(first);
        second.await;
    }
}
