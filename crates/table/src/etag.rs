//! ETags of entities, and what `If-Match` demands of them.
//!
//! An ETag is the entity's timestamp in the weak form: `W/"datetime'2021-06-18T21%3A43%3A46.7026499Z'"`. Timestamps
//! rise with every write and never repeat, so neither do ETags, not even when an entity is deleted and inserted again.

use concurrency::Timestamp;
use wire::{dates, percent};

use crate::error::TableError;

/// The length of every ETag.
const LENGTH: usize = 46;

/// The ETag of an entity that was last written at `stamp`.
pub fn of(stamp: Timestamp) -> String {
    let mut text = Vec::with_capacity(LENGTH);
    text.extend_from_slice(b"W/\"");
    push_inner(&mut text, stamp);
    text.push(b'"');
    String::from_utf8(text).expect("all of it is ASCII")
}

/// Writes what stands between the quotes of an ETag.
pub fn push_inner(text: &mut Vec<u8>, stamp: Timestamp) {
    let time = dates::iso_ticks(stamp);
    let time = time.as_str().as_bytes();
    let (hours, minutes, seconds) = (&time[..13], &time[14..16], &time[17..]);
    for part in [b"datetime'", hours, b"%3A", minutes, b"%3A", seconds, b"'"] {
        text.extend_from_slice(part);
    }
}

/// What `If-Match` demands of the entity that a request changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IfMatch {
    /// `*`: the entity must exist.
    Any,
    Version(Timestamp),
    /// An ETag that no entity can have.
    Unknown,
}

impl IfMatch {
    /// Parses a header value: `*`, or one weak ETag.
    pub fn parse(text: &str) -> Result<IfMatch, TableError> {
        let text = text.trim();
        match text {
            "*" => return Ok(IfMatch::Any),
            "" => return Ok(IfMatch::Unknown),
            _ => {}
        }
        let weak = text.strip_prefix(['W', 'w']).and_then(|mark| mark.strip_prefix("/\""));
        let mark = weak.and_then(|mark| mark.strip_suffix('"'));
        let mark = mark.filter(|mark| !mark.contains('"'));
        let mark = mark.ok_or_else(|| TableError::InvalidETag { value: text.to_owned() })?;
        Ok(version(mark).map_or(IfMatch::Unknown, IfMatch::Version))
    }

    /// Checks the condition against the entity's timestamp.
    pub fn check(self, found: Timestamp) -> Result<(), TableError> {
        let is_met = match self {
            IfMatch::Any => true,
            IfMatch::Version(stamp) => stamp == found,
            IfMatch::Unknown => false,
        };
        is_met.then_some(()).ok_or(TableError::UpdateConditionNotSatisfied)
    }
}

fn version(mark: &str) -> Option<Timestamp> {
    let time = mark.strip_prefix("datetime'")?.strip_suffix('\'')?;
    dates::parse_iso(&percent::decode_path(time).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Timestamp = Timestamp(637_596_494_267_026_499);
    const MARK: &str = "W/\"datetime'2021-06-18T21%3A43%3A46.7026499Z'\"";

    #[test]
    fn a_mark_is_the_timestamp() {
        assert_eq!(of(STAMP), MARK);
        assert_eq!(of(STAMP).len(), LENGTH);
        assert_eq!(IfMatch::parse(MARK), Ok(IfMatch::Version(STAMP)));
        assert_eq!(IfMatch::Version(STAMP).check(STAMP), Ok(()));
        let missed = Err(TableError::UpdateConditionNotSatisfied);
        assert_eq!(IfMatch::Version(STAMP).check(STAMP.plus_ticks(1)), missed);
    }

    #[test]
    fn what_if_match_may_say() {
        let as_small = "W/\"datetime'2021-06-18T21%3a43%3a46.7026499Z'\"";
        for (text, expected) in [
            ("*", IfMatch::Any),
            (" * ", IfMatch::Any),
            ("", IfMatch::Unknown),
            ("W/\"\"", IfMatch::Unknown),
            ("W/\"mine\"", IfMatch::Unknown),
            ("W/\"datetime'now'\"", IfMatch::Unknown),
            (as_small, IfMatch::Version(STAMP)),
            (&MARK.replace('W', "w"), IfMatch::Version(STAMP)),
        ] {
            assert_eq!(IfMatch::parse(text), Ok(expected), "{text}");
        }
        for text in ["\"0x8D\"", "0x8D", "W/", "W/\"", "W/\"a", "W/\"a\", W/\"b\"", "\"*\""] {
            assert_eq!(IfMatch::parse(text), Err(TableError::InvalidETag { value: text.into() }), "{text}");
        }
        assert_eq!(IfMatch::Any.check(STAMP), Ok(()));
        assert_eq!(IfMatch::Unknown.check(STAMP), Err(TableError::UpdateConditionNotSatisfied));
    }
}
