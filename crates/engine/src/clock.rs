//! Time: `now` for expiry, `stamp` for order. They are two things.
//!
//! `now` is the wall clock at start plus monotonic time (plus the test offset), so a clock that jumps while we run moves
//! no lease. `stamp` never goes back, not even when the wall clock did between two runs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::{IDS_PER_TICK, Timestamp};

/// The time by which things expire.
#[derive(Debug)]
pub struct Clock {
    wall_at_start: u64,
    run: Run,
    offset_seconds: AtomicU64,
}

/// How long the clock has run.
#[derive(Debug)]
enum Run {
    Since(Instant),
    /// A function says it. A simulation has a time of its own.
    Driven(fn() -> Duration),
}

impl Clock {
    /// Starts at the wall clock, `offset_seconds` ahead.
    #[must_use]
    pub fn new(offset_seconds: u64) -> Clock {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ticks = u64::try_from(since_epoch.as_nanos() / 100).unwrap_or(u64::MAX / 2);
        Clock {
            wall_at_start: Timestamp::UNIX_EPOCH.0 + ticks,
            run: Run::Since(Instant::now()),
            offset_seconds: AtomicU64::new(offset_seconds),
        }
    }

    /// A clock that shows `wall_at_start`, `offset_seconds` ahead, plus what `run` returns, which must never go back.
    #[must_use]
    pub fn driven(wall_at_start: Timestamp, offset_seconds: u64, run: fn() -> Duration) -> Clock {
        let offset_seconds = AtomicU64::new(offset_seconds);
        Clock { wall_at_start: wall_at_start.0, run: Run::Driven(run), offset_seconds }
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        let run = match self.run {
            Run::Since(started) => started.elapsed(),
            Run::Driven(run) => run(),
        };
        let run = u64::try_from(run.as_nanos() / 100).unwrap_or(u64::MAX / 4);
        let offset = self.offset_seconds() * Timestamp::TICKS_PER_SECOND;
        Timestamp(self.wall_at_start + run + offset)
    }

    #[must_use]
    pub fn offset_seconds(&self) -> u64 {
        self.offset_seconds.load(Ordering::Acquire)
    }

    /// The offset only grows.
    pub fn raise_offset(&self, seconds: u64) {
        self.offset_seconds.fetch_max(seconds, Ordering::AcqRel);
    }
}

/// Hands out stamps: the time, or one step above the last, whichever is later.
#[derive(Debug)]
pub struct StampSource(AtomicU64);

impl StampSource {
    /// Every stamp will be above `floor`.
    #[must_use]
    pub fn above(floor: Timestamp) -> StampSource {
        StampSource(AtomicU64::new(floor.0))
    }

    /// The next stamp. [`IDS_PER_TICK`] ids from it on belong to the caller.
    pub fn next(&self, now: Timestamp) -> Timestamp {
        let take = |last: u64| Some(now.0.max(last + IDS_PER_TICK));
        let last = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).expect("take always gives a stamp");
        Timestamp(now.0.max(last + IDS_PER_TICK))
    }

    /// The last one handed out.
    #[must_use]
    pub fn last(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_rise_when_the_clock_does_not() {
        let stamps = StampSource::above(Timestamp(1_000));
        assert_eq!(stamps.next(Timestamp(5)), Timestamp(1_000 + IDS_PER_TICK));
        assert_eq!(stamps.next(Timestamp(5)), Timestamp(1_000 + 2 * IDS_PER_TICK));
        assert_eq!(stamps.next(Timestamp(9_999)), Timestamp(9_999));
        assert_eq!(stamps.last(), Timestamp(9_999));
    }

    #[test]
    fn a_driven_clock_shows_what_it_is_told() {
        let clock = Clock::driven(Timestamp(1_000), 2, || Duration::from_micros(1));
        assert_eq!(clock.now(), Timestamp(1_000 + 10 + 2 * Timestamp::TICKS_PER_SECOND));
    }

    #[test]
    fn the_offset_only_grows() {
        let clock = Clock::new(10);
        clock.raise_offset(5);
        assert_eq!(clock.offset_seconds(), 10);
        clock.raise_offset(60);
        assert_eq!(clock.offset_seconds(), 60);
    }
}
