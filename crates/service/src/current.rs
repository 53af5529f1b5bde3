//! A value that many read and somebody may replace while they do.

use std::sync::{Arc, PoisonError, RwLock};

use engine::{BoxFuture, EngineError};

/// Readers take the value as it is and keep it for as long as they need it; whoever asks after [`Shared::set`] gets the
/// new one.
#[derive(Debug, Default)]
pub struct Shared<T>(RwLock<Arc<T>>);

impl<T> Shared<T> {
    pub fn new(value: T) -> Shared<T> {
        Shared(RwLock::new(Arc::new(value)))
    }

    pub fn get(&self) -> Arc<T> {
        // Nothing can panic while the lock is held: it only ever guards a pointer.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set(&self, value: T) {
        let value = Arc::new(value);
        let before = std::mem::replace(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner), value);
        // Dropped after the lock: it may be the last, and large.
        drop(before);
    }
}

/// A value as it is now, whoever keeps it up to date.
pub trait Current<T>: Send + Sync {
    fn get(&self) -> Arc<T>;

    /// Where it is kept elsewhere: makes sure that [`Current::get`] gives nothing older than this call.
    fn refresh(&self) -> Option<BoxFuture<'_, Result<(), EngineError>>> {
        None
    }
}

impl<T: Send + Sync> Current<T> for Shared<T> {
    fn get(&self) -> Arc<T> {
        Shared::get(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_old_value_keeps_it() {
        let shared = Shared::new(1);
        let before = shared.get();
        shared.set(2);
        assert_eq!((*before, *shared.get()), (1, 2));
    }
}
