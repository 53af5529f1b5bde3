//! Throttles lines of the log: what happens a thousand times in a second is one line of the log.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Counts what happens, and says when it is time for a line.
#[derive(Debug, Default)]
pub(crate) struct LogThrottle(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    last: Option<Instant>,
    unsaid: u64,
}

impl LogThrottle {
    pub(crate) const fn new() -> LogThrottle {
        LogThrottle(Mutex::new(Said { last: None, unsaid: 0 }))
    }

    /// `Some`: say it, and that it has happened so many times since it was said last. `None`: not yet.
    pub(crate) fn due(&self, pause: Duration) -> Option<u64> {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.unsaid += 1;
        if said.last.is_some_and(|last| last.elapsed() < pause) {
            return None;
        }
        said.last = Some(Instant::now());
        Some(std::mem::take(&mut said.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_in_a_while_with_a_count() {
        let throttle = LogThrottle::new();
        let hour = Duration::from_secs(3600);
        assert_eq!(throttle.due(hour), Some(1));
        assert_eq!((throttle.due(hour), throttle.due(hour)), (None, None));
        assert_eq!(throttle.due(Duration::ZERO), Some(3));
    }
}
