//! A point in time, counted in ticks of 100 ns since the first day of the year 1, as Azure Storage counts it.
//!
//! Arithmetic saturates at both ends, so no input can overflow or panic.

/// 100 ns units since 0001-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    pub const TICKS_PER_SECOND: u64 = 10_000_000;

    /// 1970-01-01T00:00:00Z.
    pub const UNIX_EPOCH: Timestamp = Timestamp(UNIX_EPOCH_SECONDS as u64 * Self::TICKS_PER_SECOND);

    /// A moment before the year 1 becomes the first tick of that year.
    pub fn from_unix_seconds(seconds: i64) -> Timestamp {
        let since_year_one = seconds.saturating_add(UNIX_EPOCH_SECONDS).max(0).unsigned_abs();
        Timestamp(since_year_one.saturating_mul(Self::TICKS_PER_SECOND))
    }

    /// Whole seconds since 1970, rounded down (also before 1970).
    pub fn unix_seconds(self) -> i64 {
        // At most 2^64 / 10^7, far below the limit of i64.
        (self.0 / Self::TICKS_PER_SECOND) as i64 - UNIX_EPOCH_SECONDS
    }

    pub fn plus_seconds(self, seconds: u64) -> Timestamp {
        self.plus_ticks(seconds.saturating_mul(Self::TICKS_PER_SECOND))
    }

    pub fn plus_ticks(self, ticks: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(ticks))
    }

    /// The same time without its fraction of a second: what a date header can say.
    pub fn whole_seconds(self) -> Timestamp {
        Timestamp(self.0 - self.0 % Self::TICKS_PER_SECOND)
    }

    pub fn ticks(self) -> u64 {
        self.0
    }

    /// Seconds from here to `later`, rounded up; 0 if `later` is not ahead.
    pub fn seconds_until(self, later: Timestamp) -> u64 {
        later.0.saturating_sub(self.0).div_ceil(Self::TICKS_PER_SECOND)
    }
}

/// Seconds from the year 1 to the year 1970: 719 162 days.
const UNIX_EPOCH_SECONDS: i64 = 719_162 * 86_400;

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn the_unix_epoch_is_the_known_tick_count() {
        assert_eq!(Timestamp::UNIX_EPOCH, Timestamp(621_355_968_000_000_000));
        assert_eq!(Timestamp::from_unix_seconds(0), Timestamp::UNIX_EPOCH);
        assert_eq!(Timestamp::UNIX_EPOCH.unix_seconds(), 0);
    }

    #[test]
    fn unix_seconds_survive_the_way_there_and_back() {
        for seconds in [-62_135_596_800, -1, 0, 1, 1_700_000_000, 253_402_300_799] {
            assert_eq!(Timestamp::from_unix_seconds(seconds).unix_seconds(), seconds);
        }
    }

    #[test]
    fn unix_seconds_are_rounded_down() {
        let (epoch, almost_a_second) = (Timestamp::UNIX_EPOCH, Timestamp::TICKS_PER_SECOND - 1);
        assert_eq!(epoch.plus_ticks(almost_a_second).unix_seconds(), 0);
        assert_eq!(Timestamp(epoch.ticks() - 1).unix_seconds(), -1);
    }

    #[test]
    fn both_ends_saturate() {
        assert_eq!(Timestamp::from_unix_seconds(i64::MIN), Timestamp(0));
        assert_eq!(Timestamp::from_unix_seconds(-62_135_596_801), Timestamp(0));
        assert_eq!(Timestamp::from_unix_seconds(i64::MAX), Timestamp(u64::MAX));
        assert_eq!(Timestamp::UNIX_EPOCH.plus_seconds(u64::MAX), Timestamp(u64::MAX));
        assert_eq!(Timestamp(u64::MAX).plus_ticks(1), Timestamp(u64::MAX));
        assert_eq!(Timestamp(u64::MAX).unix_seconds(), 1_782_538_810_570);
    }

    #[test]
    fn whole_seconds_cut_the_fraction_off() {
        let second = Timestamp::from_unix_seconds(1_700_000_000);
        assert_eq!(second.whole_seconds(), second);
        assert_eq!(second.plus_ticks(1).whole_seconds(), second);
        assert_eq!(second.plus_ticks(9_999_999).whole_seconds(), second);
        assert_eq!(second.plus_ticks(10_000_000).whole_seconds(), second.plus_seconds(1));
    }

    #[test]
    fn seconds_until_are_rounded_up_and_never_negative() {
        let now = Timestamp::from_unix_seconds(1_700_000_000);
        for (ticks_ahead, seconds) in [(0, 0), (1, 1), (9_999_999, 1), (10_000_000, 1), (10_000_001, 2)] {
            assert_eq!(now.seconds_until(now.plus_ticks(ticks_ahead)), seconds, "{ticks_ahead} ticks ahead");
        }
        assert_eq!(now.plus_seconds(5).seconds_until(now), 0);
    }
}
