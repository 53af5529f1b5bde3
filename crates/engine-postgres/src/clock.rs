//! The time of all nodes: the database's clock, as each node hears it.
//!
//! What a node hears was so at some moment between its question and the answer, and nothing more is known: an answer that
//! waited for a standby is old when it arrives. So every sample is a span, and the clock is moved only into it. Between
//! samples it runs with the machine's monotonic clock. What it has shown it never takes back. See `docs/adr/0007`.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use engine::Timestamp;

/// By how much the clock may stand still, waiting for the database's. A database that is farther behind has a new server
/// whose clock is wrong; then all nodes stay together at the later time.
pub const SLACK: Duration = Duration::from_millis(20);
const SLACK_TICKS: i64 = 20 * 10_000;
/// The clock has not been set.
const UNKNOWN: i64 = i64::MIN;

/// What was heard of the database's clock. `sent` and `received` are of the machine's clock. All in ticks.
#[derive(Clone, Copy, Debug)]
struct Sample {
    sent: i64,
    heard: i64,
    received: i64,
}

/// A clock as the difference between the database's and the machine's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ClockJudgement {
    /// It fits the sample, perhaps after it was moved.
    Is(i64),
    /// The database shows less than it has shown before.
    Disputed,
}

/// The difference after a sample. The span of a slow answer is long, so it moves nothing that is right.
fn judge(difference: Option<i64>, sample: Sample) -> ClockJudgement {
    let (least, most) = (sample.heard - sample.received, sample.heard - sample.sent);
    match difference {
        None => ClockJudgement::Is(least),
        Some(difference) if difference > most + SLACK_TICKS => ClockJudgement::Disputed,
        Some(difference) => ClockJudgement::Is(difference.clamp(least, most)),
    }
}

#[derive(Debug)]
pub struct DatabaseClock {
    started: Instant,
    difference: AtomicI64,
    /// The latest time it has shown.
    shown: AtomicI64,
    disputed: AtomicBool,
    pub offset_seconds: AtomicU64,
}

impl DatabaseClock {
    pub fn new() -> DatabaseClock {
        DatabaseClock {
            started: Instant::now(),
            difference: AtomicI64::new(UNKNOWN),
            shown: AtomicI64::new(Timestamp::UNIX_EPOCH.0.cast_signed()),
            disputed: AtomicBool::new(false),
            offset_seconds: AtomicU64::new(0),
        }
    }

    /// The machine's clock: what a question notes before it is sent.
    pub fn run(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_nanos() / 100).unwrap_or(i64::MAX / 4)
    }

    pub fn is_known(&self) -> bool {
        self.difference.load(Ordering::Acquire) != UNKNOWN
    }

    /// Changes by more than [`SLACK`] when the clock has leapt ahead.
    pub fn difference(&self) -> i64 {
        self.difference.load(Ordering::Acquire)
    }

    /// Whether the clock has leapt ahead since the difference was this.
    pub fn has_leapt_since(&self, difference: i64) -> bool {
        self.difference() > difference.saturating_add(SLACK_TICKS)
    }

    /// Whether the database shows less than this clock, so that it must be told.
    pub fn is_disputed(&self) -> bool {
        self.disputed.load(Ordering::Acquire)
    }

    fn ticks(&self) -> i64 {
        let difference = self.difference();
        if difference == UNKNOWN {
            return self.shown.load(Ordering::Acquire);
        }
        let ticks = difference + self.run();
        self.shown.fetch_max(ticks, Ordering::AcqRel).max(ticks)
    }

    pub fn now(&self) -> Timestamp {
        let ticks = u64::try_from(self.ticks()).unwrap_or(0);
        Timestamp(ticks + self.offset_seconds.load(Ordering::Acquire) * Timestamp::TICKS_PER_SECOND)
    }

    /// Without the offset, which is ours and not the database's.
    pub fn database_time(&self) -> SystemTime {
        let since_epoch = u64::try_from(self.ticks()).unwrap_or(0).saturating_sub(Timestamp::UNIX_EPOCH.0);
        SystemTime::UNIX_EPOCH + Duration::from_micros(since_epoch / 10)
    }

    /// The database has answered a question that was sent at `sent`; its clock showed so many microseconds since 1970.
    pub fn hear(&self, sent: i64, microseconds: i64) {
        let heard = Timestamp::UNIX_EPOCH.0.cast_signed().saturating_add(microseconds.saturating_mul(10));
        self.take(Sample { sent, heard, received: self.run() });
    }

    fn take(&self, sample: Sample) {
        let mut disputed = false;
        let _ = self.difference.fetch_update(Ordering::AcqRel, Ordering::Acquire, |difference| {
            let judged = judge((difference != UNKNOWN).then_some(difference), sample);
            disputed = judged == ClockJudgement::Disputed;
            match judged {
                ClockJudgement::Is(difference) => Some(difference),
                ClockJudgement::Disputed => None,
            }
        });
        self.disputed.store(disputed, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 10_000_000;
    const MS: i64 = 10_000;

    /// The sample of a question at `sent` whose answer was made `there` later and took `back` to arrive, when the
    /// database's clock is ahead of the machine's by `ahead`.
    fn sample(ahead: i64, sent: i64, there: i64, back: i64) -> Sample {
        Sample { sent, heard: sent + there + ahead, received: sent + there + back }
    }

    #[test]
    fn a_slow_answer_moves_no_clock() {
        let right = 1_000 * SECOND;
        // The answer waits for a standby, after the time was taken; or for a lock, before.
        for (there, back) in [(MS, 8 * SECOND), (8 * SECOND, MS), (4 * SECOND, 4 * SECOND)] {
            assert_eq!(judge(Some(right), sample(right, 50 * SECOND, there, back)), ClockJudgement::Is(right));
        }
    }

    #[test]
    fn a_quick_answer_sets_the_clock_within_its_own_time() {
        let (right, quick) = (1_000 * SECOND, sample(1_000 * SECOND, 7 * SECOND, MS, 3 * MS));
        assert_eq!(judge(None, quick), ClockJudgement::Is(right - 3 * MS), "never ahead");
        assert_eq!(judge(Some(right - 8 * SECOND), quick), ClockJudgement::Is(right - 3 * MS), "a machine that slept");
        assert_eq!(judge(Some(right - 2 * MS), quick), ClockJudgement::Is(right - 2 * MS), "near enough");
        assert_eq!(
            judge(Some(right + 5 * MS), quick),
            ClockJudgement::Is(right + MS),
            "a machine whose clock is too fast"
        );
    }

    #[test]
    fn a_database_that_is_behind_is_not_followed() {
        let (right, quick) = (1_000 * SECOND, sample(990 * SECOND, 7 * SECOND, MS, 3 * MS));
        assert_eq!(judge(Some(right), quick), ClockJudgement::Disputed);
        let almost = sample(right - SLACK_TICKS - MS, 7 * SECOND, MS, 3 * MS);
        assert_eq!(judge(Some(right), almost), ClockJudgement::Is(right - SLACK_TICKS));
    }

    #[test]
    fn what_was_shown_is_never_taken_back() {
        let clock = DatabaseClock::new();
        assert!(!clock.is_known());
        clock.take(sample(1_000 * SECOND, clock.run(), 0, 0));
        let mut before = clock.now();
        for ahead in [1_000 * SECOND - 15 * MS, 990 * SECOND, 1_001 * SECOND, 1_001 * SECOND - 19 * MS] {
            clock.take(sample(ahead, clock.run(), 0, 0));
            let now = clock.now();
            assert!(now >= before, "{ahead}");
            before = now;
        }
    }

    #[test]
    fn a_database_that_has_been_told_is_no_longer_in_dispute() {
        let clock = DatabaseClock::new();
        clock.take(sample(1_000 * SECOND, clock.run(), 0, 0));
        let before = clock.difference();
        clock.take(sample(990 * SECOND, clock.run(), 0, 0));
        assert!(clock.is_disputed() && !clock.has_leapt_since(before));
        clock.take(sample(1_000 * SECOND, clock.run(), MS, 0));
        assert!(!clock.is_disputed());
        clock.take(sample(1_002 * SECOND, clock.run(), 0, 0));
        assert!(clock.has_leapt_since(before), "a decision at an old time must look again");
    }
}
