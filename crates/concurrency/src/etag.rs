//! ETags, and what `If-Match` and `If-None-Match` demand of them.
//!
//! An ETag is made from the stamp of the commit that wrote the resource. Stamps rise strictly and never repeat, so
//! neither do ETags, not even when a resource is deleted and created again. All ETags are strong.

use std::fmt;

use crate::time::Timestamp;

/// The ETag of one state of a resource.
///
/// `Display` writes it without quotes, as listings do; [`ETag::quoted`] writes it as headers do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ETag(Timestamp);

impl ETag {
    pub fn new(stamp: Timestamp) -> ETag {
        ETag(stamp)
    }

    /// The stamp of the commit that this ETag was made from.
    pub fn stamp(self) -> Timestamp {
        self.0
    }

    /// The header form, in double quotes.
    pub fn quoted(self) -> String {
        format!("\"{self}\"")
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:015X}", self.0.ticks())
    }
}

/// The value of `If-Match` or `If-None-Match`: any ETag, or one of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ETagMatch {
    Any,
    /// ETags without their quotes. A weak one keeps its `W/`, and so equals no ETag of ours.
    OneOf(Vec<String>),
}

impl ETagMatch {
    /// Parses a header value: `*`, or one or more ETags between commas, each with or without quotes.
    ///
    /// An open quote, an empty element, or a bare `*` among others is invalid.
    pub fn parse(text: &str) -> Option<ETagMatch> {
        match text.trim() {
            "*" => Some(ETagMatch::Any),
            list => parse_list(list).map(ETagMatch::OneOf),
        }
    }

    pub fn matches(&self, etag: &ETag) -> bool {
        match self {
            ETagMatch::Any => true,
            ETagMatch::OneOf(texts) => {
                let current = etag.to_string();
                texts.contains(&current)
            }
        }
    }

    /// Whether the header names more than one ETag.
    pub fn is_list(&self) -> bool {
        match self {
            ETagMatch::Any => false,
            ETagMatch::OneOf(texts) => texts.len() > 1,
        }
    }
}

const WEAK_PREFIX: &str = "W/";

fn parse_list(text: &str) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    let mut rest = text;
    loop {
        let (text, after) = split_first(rest.trim_start())?;
        texts.push(text);
        match after.trim_start() {
            "" => return Some(texts),
            more => rest = more.strip_prefix(',')?,
        }
    }
}

/// The first ETag of a list, and the rest of the list.
fn split_first(list: &str) -> Option<(String, &str)> {
    let (weak, mark) = match list.strip_prefix(WEAK_PREFIX) {
        Some(mark) => (WEAK_PREFIX, mark),
        None => ("", list),
    };
    let (text, rest) = match mark.strip_prefix('"') {
        Some(opened) => opened.split_once('"')?,
        None => split_bare(mark)?,
    };
    Some((format!("{weak}{text}"), rest))
}

fn split_bare(mark: &str) -> Option<(&str, &str)> {
    let (text, rest) = mark.split_at(mark.find(',').unwrap_or(mark.len()));
    let text = text.trim_end();
    let is_mark = !text.is_empty() && text != "*" && !text.contains('"');
    is_mark.then_some((text, rest))
}

#[cfg(test)]
mod tests {
    use super::{ETag, ETagMatch};
    use crate::time::Timestamp;

    const STAMP: Timestamp = Timestamp(0x8DE_2474_AC0F_E0F3);

    fn one_of(texts: &[&str]) -> Option<ETagMatch> {
        Some(ETagMatch::OneOf(texts.iter().map(|text| text.to_string()).collect()))
    }

    #[test]
    fn a_mark_is_upper_case_hex_of_at_least_fifteen_digits() {
        assert_eq!(ETag::new(STAMP).to_string(), "0x8DE2474AC0FE0F3");
        assert_eq!(ETag::new(STAMP).quoted(), "\"0x8DE2474AC0FE0F3\"");
        assert_eq!(ETag::new(Timestamp(0xA)).to_string(), "0x00000000000000A");
        assert_eq!(ETag::new(Timestamp(u64::MAX)).to_string(), "0xFFFFFFFFFFFFFFFF");
        assert_eq!(ETag::new(STAMP).stamp(), STAMP);
    }

    #[test]
    fn header_values_that_are_read() {
        let table: &[(&str, Option<ETagMatch>)] = &[
            ("*", Some(ETagMatch::Any)),
            (" * ", Some(ETagMatch::Any)),
            (r#""0x8DE""#, one_of(&["0x8DE"])),
            ("0x8DE", one_of(&["0x8DE"])),
            ("  0x8DE  ", one_of(&["0x8DE"])),
            (r#""0x1","0x2""#, one_of(&["0x1", "0x2"])),
            (r#""0x1" , 0x2,W/"0x3" "#, one_of(&["0x1", "0x2", "W/0x3"])),
            (r#"W/"0x8DE""#, one_of(&["W/0x8DE"])),
            (r#""a, b""#, one_of(&["a, b"])),
            (r#""""#, one_of(&[""])),
            (r#""*""#, one_of(&["*"])),
        ];
        for (text, read) in table {
            assert_eq!(&ETagMatch::parse(text), read, "{text}");
        }
    }

    #[test]
    fn header_values_that_are_refused() {
        for text in
            ["", "  ", ",", "0x1,", ",0x1", "0x1,,0x2", "\"0x1", "0x1\"", "\"0x1\"0x2", "*, 0x1", "0x1, *", "W/"]
        {
            assert_eq!(ETagMatch::parse(text), None, "{text}");
        }
    }

    #[test]
    fn matching() {
        let table: &[(&str, bool)] = &[
            ("*", true),
            (r#""0x8DE2474AC0FE0F3""#, true),
            ("0x8DE2474AC0FE0F3", true),
            (r#""0x1","0x8DE2474AC0FE0F3""#, true),
            (r#""0x1","0x2""#, false),
            (r#""0x8DE2474AC0FE0F4""#, false),
            (r#""0x8de2474ac0fe0f3""#, false),
            (r#"W/"0x8DE2474AC0FE0F3""#, false),
            (r#""""#, false),
        ];
        for (text, expected) in table {
            let named = ETagMatch::parse(text).expect(text);
            assert_eq!(named.matches(&ETag::new(STAMP)), *expected, "{text}");
        }
    }

    #[test]
    fn only_two_or_more_marks_are_a_list() {
        for (text, expected) in [("*", false), ("0x1", false), ("W/\"0x1\"", false), ("0x1,0x2", true)] {
            assert_eq!(ETagMatch::parse(text).expect(text).is_list(), expected, "{text}");
        }
    }
}
