//! The way into the engine for tasks beside its own threads: uploads, and reads that wait for the disk.
//!
//! A task that works in the folder has a [`Guest`], which holds the engine. A task that waits (for a client, for a sync) has only
//! the [`Door`]. An engine that closes lets no guest in any more and waits until all are gone. After that only its owner holds it,
//! so the folder is free as soon as the owner drops it.

use std::ops::Deref;
use std::sync::{Arc, PoisonError, Weak};

use engine::EngineError;

use crate::Inner;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// How many guests there are.
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

    /// Lets no guest in any more, and waits until all are gone.
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

    /// Goes in, unless the engine is closed. A guest waits for nothing but the disk.
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

/// A task at work in the folder. An engine that closes waits for this to be dropped.
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
        // First the engine: the thread that closes goes on once no guest is left, and must then be the last to hold it.
        drop(self.inner.take());
        self.guests.lock().inside -= 1;
        self.guests.left.notify_all();
    }
}
