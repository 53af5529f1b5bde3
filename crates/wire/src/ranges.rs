//! The byte range of a read, from `x-ms-range` or `Range`.

/// The value of a range header. `bytes=a-` and `bytes=a-b` are supported; several ranges or a suffix are not. A header
/// that is not supported is ignored, as RFC 9110 allows and Azure does for `Range`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeHeader {
    /// No header.
    None,
    /// From `first` to `last`, both included; without `last` to the end.
    Span { first: u64, last: Option<u64> },
    /// The header is not supported, and ignored.
    Ignored,
}

/// Bytes `first` to `last`, both included, of a content that has at least `last + 1` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub first: u64,
    pub last: u64,
}

impl Span {
    /// The number of bytes; never zero.
    pub fn count(&self) -> u64 {
        self.last - self.first + 1
    }
}

/// The range begins at or after the end: 416, with `Content-Range: bytes */length`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsatisfiable;

impl RangeHeader {
    pub fn parse(header: Option<&str>) -> RangeHeader {
        let Some(text) = header else { return RangeHeader::None };
        span(text.trim_ascii()).unwrap_or(RangeHeader::Ignored)
    }

    /// The bytes to read of a content of `length` bytes: `None` for all of them, otherwise a range that ends at the
    /// content's end at the latest.
    pub fn resolve(self, length: u64) -> Result<Option<Span>, Unsatisfiable> {
        match self {
            RangeHeader::None | RangeHeader::Ignored => Ok(None),
            RangeHeader::Span { first, .. } if first >= length => Err(Unsatisfiable),
            RangeHeader::Span { first, last } => {
                let end = length - 1;
                Ok(Some(Span { first, last: last.map_or(end, |last| last.min(end)) }))
            }
        }
    }
}

fn span(text: &str) -> Option<RangeHeader> {
    let (unit, range) = text.split_once('=')?;
    let (first, last) = range.split_once('-')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let first = number(first)?;
    let last = if last.is_empty() { None } else { Some(number(last)?) };
    last.is_none_or(|last| first <= last).then_some(RangeHeader::Span { first, last })
}

/// Digits only: `u64::from_str` would also take a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span_of(first: u64, last: u64) -> Result<Option<Span>, Unsatisfiable> {
        Ok(Some(Span { first, last }))
    }

    #[test]
    fn one_range_is_understood() {
        let span = |first, last| RangeHeader::Span { first, last };
        assert_eq!(RangeHeader::parse(None), RangeHeader::None);
        assert_eq!(RangeHeader::parse(Some("bytes=0-")), span(0, None));
        assert_eq!(RangeHeader::parse(Some("bytes=5-9")), span(5, Some(9)));
        assert_eq!(RangeHeader::parse(Some(" Bytes=5-5 ")), span(5, Some(5)));
        assert_eq!(RangeHeader::parse(Some("bytes=0-18446744073709551615")), span(0, Some(u64::MAX)));
    }

    #[test]
    fn anything_else_is_ignored() {
        for text in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=-5",
            "bytes=9-5",
            "bytes=0-1,3-4",
            "bytes=+1-2",
            "bytes=1-+2",
            "bytes=1 -2",
            "bytes=a-b",
            "lines=1-2",
            "bytes=18446744073709551616-",
            "bytes=0-1-2",
        ] {
            assert_eq!(RangeHeader::parse(Some(text)), RangeHeader::Ignored, "{text:?}");
        }
    }

    #[test]
    fn a_span_is_cut_at_the_end() {
        assert_eq!(RangeHeader::parse(Some("bytes=2-")).resolve(10), span_of(2, 9));
        assert_eq!(RangeHeader::parse(Some("bytes=2-100")).resolve(10), span_of(2, 9));
        assert_eq!(RangeHeader::parse(Some("bytes=9-9")).resolve(10), span_of(9, 9));
        assert_eq!(RangeHeader::Ignored.resolve(10), Ok(None));
        assert_eq!(RangeHeader::None.resolve(0), Ok(None));
        assert_eq!(Span { first: 2, last: 9 }.count(), 8);
    }

    #[test]
    fn a_span_that_begins_past_the_end_cannot_be_served() {
        assert_eq!(RangeHeader::parse(Some("bytes=10-")).resolve(10), Err(Unsatisfiable));
        assert_eq!(RangeHeader::parse(Some("bytes=0-")).resolve(0), Err(Unsatisfiable));
        assert_eq!(RangeHeader::parse(Some("bytes=0-0")).resolve(0), Err(Unsatisfiable));
    }
}
