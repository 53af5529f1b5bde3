//! The way in for those who work in the folder beside the engine's own threads: uploads, and reads that wait for the disk.
//!
//! Who works is a [`Guest`] and holds the engine; who waits (for a client, for a sync) has only the [`Door`]. An engine that
//! closes lets nobody in any more and waits until all are out. After that nobody but its owner holds it, so the folder is
//! free as soon as the owner lets go.

use std::ops::Deref;
use std::sync::{Arc, PoisonError, Weak};

use engine::EngineError;

use crate::Inner;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Who is inside.
#[derive(Debug, Default)]
pub struct Guests {
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    inside: usize,
    closed: bool,
}

impl Guests {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets nobody in any more, and waits until all are out.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        while state.inside > 0 {
            state = self.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Leads to an engine without holding it.
#[derive(Clone, Debug)]
pub struct Door {
    inner: Weak<Inner>,
    guests: Arc<Guests>,
}

impl Door {
    pub(crate) fn to(inner: &Arc<Inner>) -> Door {
        Door { inner: Arc::downgrade(inner), guests: Arc::clone(&inner.guests) }
    }

    /// Goes in, unless the engine is closed. Nobody waits for anything but the disk while inside.
    pub(crate) fn enter(&self) -> Result<Guest, EngineError> {
        let mut state = self.guests.lock();
        if state.closed {
            return Err(EngineError::Closed);
        }
        let inner = self.inner.upgrade().ok_or(EngineError::Closed)?;
        state.inside += 1;
        Ok(Guest { inner: Some(inner), guests: Arc::clone(&self.guests) })
    }
}

/// Somebody at work. The engine that closes waits for this to be dropped.
#[derive(Debug)]
pub(crate) struct Guest {
    /// Taken only when this is dropped.
    inner: Option<Arc<Inner>>,
    guests: Arc<Guests>,
}

impl Deref for Guest {
    type Target = Arc<Inner>;

    fn deref(&self) -> &Arc<Inner> {
        self.inner.as_ref().expect("a guest holds the engine as long as it is there")
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // First the engine: who hears that all are out may be the last who holds it.
        drop(self.inner.take());
        self.guests.lock().inside -= 1;
        self.guests.left.notify_all();
    }
}
