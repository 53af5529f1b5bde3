//! Points in time as the protocols write them.
//!
//! Headers use RFC 1123 (`Sun, 15 Nov 2026 18:00:00 GMT`); snapshots, versions and error bodies use ISO 8601 with seven
//! fraction digits (`2026-11-15T18:00:00.0000000Z`); shared access signatures and stored policies allow shorter ISO forms.
//! Every response carries a date, so formatting fills a fixed buffer and never goes through `fmt`.

use std::fmt;

use concurrency::Timestamp;

const TICKS_PER_SECOND: u64 = 10_000_000;
const SECONDS_PER_DAY: u64 = 86_400;
const TICKS_PER_DAY: u64 = SECONDS_PER_DAY * TICKS_PER_SECOND;

/// The last tick that a four-digit year can express: 9999-12-31T23:59:59.9999999Z. Later times are written as this one.
pub const LAST: Timestamp = Timestamp(days_before(10_000, 1, 1) * TICKS_PER_DAY - 1);

/// `Sun, 15 Nov 2026 18:00:00 GMT`. Fractions of a second are cut off.
pub fn http_date(at: Timestamp) -> HttpDate {
    let civil = Civil::of(at);
    let mut text = *b"Sun, 00 Jan 0000 00:00:00 GMT";
    text[0..3]
        .copy_from_slice(WEEKDAYS[civil.weekday].as_bytes().first_chunk::<3>().expect("a weekday has three letters"));
    two_digits(&mut text[5..7], civil.day);
    text[8..11].copy_from_slice(MONTHS[civil.month as usize - 1].as_bytes());
    four_digits(&mut text[12..16], civil.year);
    civil.write_clock(&mut text[17..25]);
    Text(text)
}

/// `2026-11-15T18:00:00.0000000Z`: the form of snapshots, versions and error bodies, exact to the tick.
pub fn iso_ticks(at: Timestamp) -> IsoTicks {
    let civil = Civil::of(at);
    let mut text = *b"0000-00-00T00:00:00.0000000Z";
    civil.write_date(&mut text[0..10]);
    civil.write_clock(&mut text[11..19]);
    let mut fraction = civil.fraction;
    for digit in text[20..27].iter_mut().rev() {
        *digit = b'0' + (fraction % 10) as u8;
        fraction /= 10;
    }
    Text(text)
}

/// `2026-11-15T18:00:00Z`. Fractions of a second are cut off.
pub fn iso_seconds(at: Timestamp) -> IsoSeconds {
    let civil = Civil::of(at);
    let mut text = *b"0000-00-00T00:00:00Z";
    civil.write_date(&mut text[0..10]);
    civil.write_clock(&mut text[11..19]);
    Text(text)
}

/// Reads a header date: RFC 1123, RFC 850 or asctime. The weekday must be a weekday but need not be the right one.
pub fn parse_http_date(text: &str) -> Option<Timestamp> {
    let text = text.trim_ascii();
    match text.as_bytes().get(3)? {
        b',' => parse_rfc1123(text),
        b' ' => parse_asctime(text),
        _ => parse_rfc850(text),
    }
}

/// Reads any ISO form that signatures and stored policies may use: `YYYY-MM-DD`, or that with `Thh:mm`, `Thh:mm:ss` or
/// `Thh:mm:ss.f` (one to seven digits), the last three followed by `Z` or `±hh:mm`.
pub fn parse_iso(text: &str) -> Option<Timestamp> {
    let mut rest = Cursor(text.as_bytes());
    let year = rest.number(4)?;
    rest.expect(b'-')?;
    let month = rest.number(2)?;
    rest.expect(b'-')?;
    let day = rest.number(2)?;
    if rest.0.is_empty() {
        return stamp(year, month, day, 0, 0, 0);
    }
    rest.expect(b'T')?;
    let hour = rest.number(2)?;
    rest.expect(b':')?;
    let minute = rest.number(2)?;
    let mut second = 0;
    let mut ticks = 0;
    if rest.take(b':') {
        second = rest.number(2)?;
        if rest.take(b'.') {
            ticks = rest.fraction()?;
        }
    }
    let local = stamp(year, month, day, hour, minute, second)?.0 + ticks;
    let utc = match rest.zone()? {
        Zone::Ahead(ticks) => local.checked_sub(ticks)?,
        Zone::Behind(ticks) => local.checked_add(ticks)?,
    };
    (rest.0.is_empty() && utc <= LAST.0).then_some(Timestamp(utc))
}

/// Reads exactly what [`iso_ticks`] writes, the only form of a snapshot or version id.
pub fn parse_iso_ticks(text: &str) -> Option<Timestamp> {
    (text.len() == 28 && text.ends_with('Z')).then(|| parse_iso(text)).flatten()
}

/// A date written into a fixed buffer; always ASCII.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize>([u8; N]);
pub type HttpDate = Text<29>;
pub type IsoTicks = Text<28>;
pub type IsoSeconds = Text<20>;

impl<const N: usize> Text<N> {
    pub fn as_bytes(&self) -> &[u8; N] {
        &self.0
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("dates are written in ASCII")
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

// 0001-01-01 was a Monday.
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A timestamp taken apart along the proleptic Gregorian calendar, UTC.
struct Civil {
    year: u32,
    month: u32,
    day: u32,
    weekday: usize,
    second_of_day: u32,
    fraction: u32,
}

impl Civil {
    fn of(at: Timestamp) -> Civil {
        let ticks = at.0.min(LAST.0);
        let days = ticks / TICKS_PER_DAY;
        let within = ticks % TICKS_PER_DAY;
        let (year, month, day) = civil_date(days as u32);
        Civil {
            year,
            month,
            day,
            weekday: (days % 7) as usize,
            second_of_day: (within / TICKS_PER_SECOND) as u32,
            fraction: (within % TICKS_PER_SECOND) as u32,
        }
    }

    fn write_date(&self, out: &mut [u8]) {
        four_digits(&mut out[0..4], self.year);
        two_digits(&mut out[5..7], self.month);
        two_digits(&mut out[8..10], self.day);
    }

    fn write_clock(&self, out: &mut [u8]) {
        two_digits(&mut out[0..2], self.second_of_day / 3600);
        two_digits(&mut out[3..5], self.second_of_day / 60 % 60);
        two_digits(&mut out[6..8], self.second_of_day % 60);
    }
}

/// Days from 0000-03-01 to 0001-01-01. Counting years from March puts the leap day last, so months need no table.
const MARCH_OFFSET: u32 = 306;
const DAYS_PER_400_YEARS: u32 = 146_097;

/// Year, month, day of the day that many days after 0001-01-01.
fn civil_date(days: u32) -> (u32, u32, u32) {
    let shifted = days + MARCH_OFFSET;
    let era = shifted / DAYS_PER_400_YEARS;
    let day_of_era = shifted % DAYS_PER_400_YEARS;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, carry) = if month_from_march < 10 { (month_from_march + 3, 0) } else { (month_from_march - 9, 1) };
    (era * 400 + year_of_era + carry, month, day)
}

/// Days from 0001-01-01 to the given date, which must be valid and not before it.
const fn days_before(year: u32, month: u32, day: u32) -> u64 {
    let (year, month_from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    (365 * year + year / 4 - year / 100 + year / 400 + day_of_year - MARCH_OFFSET) as u64
}

fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn stamp(year: u32, month: u32, day: u32, hour: u32, minute: u32, second: u32) -> Option<Timestamp> {
    let date =
        (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    if !date || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = u64::from(hour * 3600 + minute * 60 + second);
    Some(Timestamp((days_before(year, month, day) * SECONDS_PER_DAY + seconds) * TICKS_PER_SECOND))
}

fn two_digits(out: &mut [u8], value: u32) {
    out[0] = b'0' + (value / 10 % 10) as u8;
    out[1] = b'0' + (value % 10) as u8;
}

fn four_digits(out: &mut [u8], value: u32) {
    two_digits(&mut out[0..2], value / 100);
    two_digits(&mut out[2..4], value % 100);
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn parse_rfc1123(text: &str) -> Option<Timestamp> {
    let mut rest = Cursor(text.as_bytes());
    rest.weekday(3)?;
    rest.literal(b", ")?;
    let day = rest.number(2)?;
    rest.expect(b' ')?;
    let month = rest.month()?;
    rest.expect(b' ')?;
    let year = rest.number(4)?;
    rest.expect(b' ')?;
    let (hour, minute, second) = rest.clock()?;
    rest.literal(b" GMT")?;
    rest.0.is_empty().then(|| stamp(year, month, day, hour, minute, second)).flatten()
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn parse_rfc850(text: &str) -> Option<Timestamp> {
    let name = text.find(',')?;
    let mut rest = Cursor(text.as_bytes());
    rest.weekday(name)?;
    rest.literal(b", ")?;
    let day = rest.number(2)?;
    rest.expect(b'-')?;
    let month = rest.month()?;
    rest.expect(b'-')?;
    let short = rest.number(2)?;
    rest.expect(b' ')?;
    let (hour, minute, second) = rest.clock()?;
    rest.literal(b" GMT")?;
    // Two digits do not say which century: 00 to 69 are taken for 20xx, because Azure Storage began in 2008, and the
    // others for 19xx.
    let year = if short < 70 { 2000 + short } else { 1900 + short };
    rest.0.is_empty().then(|| stamp(year, month, day, hour, minute, second)).flatten()
}

/// `Sun Nov  6 08:49:37 1994`
fn parse_asctime(text: &str) -> Option<Timestamp> {
    let mut rest = Cursor(text.as_bytes());
    rest.weekday(3)?;
    rest.expect(b' ')?;
    let month = rest.month()?;
    rest.expect(b' ')?;
    let day = if rest.take(b' ') { rest.number(1)? } else { rest.number(2)? };
    rest.expect(b' ')?;
    let (hour, minute, second) = rest.clock()?;
    rest.expect(b' ')?;
    let year = rest.number(4)?;
    rest.0.is_empty().then(|| stamp(year, month, day, hour, minute, second)).flatten()
}

/// How far local time is from UTC, in ticks.
enum Zone {
    Ahead(u64),
    Behind(u64),
}

/// What is left of a date being read.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take(&mut self, byte: u8) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    fn literal(&mut self, bytes: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(bytes)?;
        Some(())
    }

    fn number(&mut self, digits: usize) -> Option<u32> {
        let (head, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        head.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u32::from(byte - b'0')))
    }

    fn fraction(&mut self) -> Option<u64> {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=7).contains(&digits) {
            return None;
        }
        Some(u64::from(self.number(digits)?) * 10_u64.pow(7 - digits as u32))
    }

    fn clock(&mut self) -> Option<(u32, u32, u32)> {
        let hour = self.number(2)?;
        self.expect(b':')?;
        let minute = self.number(2)?;
        self.expect(b':')?;
        Some((hour, minute, self.number(2)?))
    }

    fn weekday(&mut self, letters: usize) -> Option<()> {
        let (head, rest) = self.0.split_at_checked(letters)?;
        self.0 = rest;
        let known = |day: &str| if letters == 3 { &day.as_bytes()[..3] == head } else { day.as_bytes() == head };
        WEEKDAYS.iter().any(|day| known(day)).then_some(())
    }

    fn month(&mut self) -> Option<u32> {
        let (head, rest) = self.0.split_at_checked(3)?;
        self.0 = rest;
        Some(MONTHS.iter().position(|month| month.as_bytes() == head)? as u32 + 1)
    }

    fn zone(&mut self) -> Option<Zone> {
        if self.take(b'Z') {
            return Some(Zone::Ahead(0));
        }
        let ahead = self.take(b'+');
        if !ahead {
            self.expect(b'-')?;
        }
        let hours = self.number(2)?;
        self.expect(b':')?;
        let minutes = self.number(2)?;
        if hours > 14 || minutes > 59 {
            return None;
        }
        let ticks = u64::from(hours * 3600 + minutes * 60) * TICKS_PER_SECOND;
        Some(if ahead { Zone::Ahead(ticks) } else { Zone::Behind(ticks) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        parse_iso(text).expect("a valid date")
    }

    #[test]
    fn the_unix_epoch_is_where_it_should_be() {
        assert_eq!(at("1970-01-01"), Timestamp::UNIX_EPOCH);
        assert_eq!(at("0001-01-01"), Timestamp(0));
    }

    #[test]
    fn formats() {
        let stamp = at("2026-11-15T18:04:05.6789012Z");
        assert_eq!(http_date(stamp).as_str(), "Sun, 15 Nov 2026 18:04:05 GMT");
        assert_eq!(iso_ticks(stamp).as_str(), "2026-11-15T18:04:05.6789012Z");
        assert_eq!(iso_seconds(stamp).as_str(), "2026-11-15T18:04:05Z");
        assert_eq!(iso_ticks(Timestamp(0)).as_str(), "0001-01-01T00:00:00.0000000Z");
        assert_eq!(http_date(Timestamp(0)).as_str(), "Mon, 01 Jan 0001 00:00:00 GMT");
    }

    #[test]
    fn stamps_past_the_year_9999_are_written_as_its_last_tick() {
        for stamp in [LAST, Timestamp(LAST.0 + 1), Timestamp(u64::MAX)] {
            assert_eq!(iso_ticks(stamp).as_str(), "9999-12-31T23:59:59.9999999Z");
            assert_eq!(http_date(stamp).as_str(), "Fri, 31 Dec 9999 23:59:59 GMT");
        }
    }

    #[test]
    fn every_day_reads_back_and_follows_the_day_before() {
        let (mut year, mut month, mut day) = (1, 1, 1);
        for days in 0..days_before(10_000, 1, 1) {
            assert_eq!(civil_date(days as u32), (year, month, day));
            assert_eq!(days_before(year, month, day), days);
            day += 1;
            if day > days_in_month(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }

    #[test]
    fn the_three_header_forms_name_the_same_instant() {
        let expected = Some(at("1994-11-06T08:49:37Z"));
        assert_eq!(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), expected);
        assert_eq!(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT"), expected);
        assert_eq!(parse_http_date("Sun Nov  6 08:49:37 1994"), expected);
        assert_eq!(parse_http_date(" Sun, 06 Nov 1994 08:49:37 GMT "), expected);
    }

    #[test]
    fn malformed_header_dates_are_refused() {
        for text in [
            "",
            "Sun",
            "Sun,",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 GMT+1",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:49:60 GMT",
            "Xyz, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 0000 08:49:37 GMT",
            "Söndag, 06-Nov-94 08:49:37 GMT",
            "1994-11-06T08:49:37Z",
        ] {
            assert_eq!(parse_http_date(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_iso_forms_of_signatures() {
        let noon = at("2026-01-02T12:00:00Z");
        for text in [
            "2026-01-02T12:00Z",
            "2026-01-02T12:00:00.0Z",
            "2026-01-02T12:00:00.0000000Z",
            "2026-01-02T13:30+01:30",
            "2026-01-02T04:00:00-08:00",
        ] {
            assert_eq!(parse_iso(text), Some(noon), "{text}");
        }
        assert_eq!(at("2026-01-02T12:00:00.5Z").0 - noon.0, TICKS_PER_SECOND / 2);
        assert_eq!(at("2026-01-02T12:00:00.0000001Z").0 - noon.0, 1);
        assert_eq!(at("2026-01-03").0 - at("2026-01-02").0, TICKS_PER_DAY);
        assert!(parse_iso("2024-02-29").is_some() && parse_iso("2000-02-29").is_some());
    }

    #[test]
    fn malformed_iso_dates_are_refused() {
        for text in [
            "",
            "2026",
            "2026-1-2",
            "2026-13-01",
            "2026-00-01",
            "2023-02-29",
            "1900-02-29",
            "2026-01-02T",
            "2026-01-02T12Z",
            "2026-01-02T12:00",
            "2026-01-02 12:00:00Z",
            "2026-01-02T12:00:00",
            "2026-01-02T12:00:00.Z",
            "2026-01-02T12:00:00.00000000Z",
            "2026-01-02T12:00:00z",
            "2026-01-02T12:00:00Zx",
            "2026-01-02T12:00:00+0100",
            "2026-01-02T12:00:00+15:00",
            "2026-01-02T12:00:00+01:60",
            "2026-01-02T25:00:00Z",
            "0001-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59-01:00",
            "２026-01-02",
        ] {
            assert_eq!(parse_iso(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_snapshot_id_has_one_form_only() {
        assert!(parse_iso_ticks("2026-01-02T03:04:05.6789012Z").is_some());
        assert_eq!(parse_iso_ticks("2026-01-02T03:04:05Z"), None);
        assert_eq!(parse_iso_ticks("2026-01-02T03:04:05.67+01:00Z"), None);
        assert_eq!(parse_iso_ticks("2026-01-02T03:04:05.6+01:00"), None);
    }
}
