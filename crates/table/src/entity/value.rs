//! The types of properties and their values; no conversion loses anything.

use std::borrow::Cow;
use std::cmp::Ordering;

use concurrency::Timestamp;
use wire::{base64, dates};

/// The largest value, 64 KiB: of bytes, or of text in UTF-16.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;

/// A typed value. Texts and bytes are borrowed from a row where possible.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    String(Cow<'a, str>),
    Int32(i32),
    Int64(i64),
    Double(f64),
    Boolean(bool),
    /// From the year 1601 to the end of 9999, in steps of 100 ns.
    DateTime(Timestamp),
    /// The bytes in the order in which a GUID is written.
    Guid([u8; 16]),
    Binary(Cow<'a, [u8]>),
}

/// 1601-01-01T00:00:00Z, the earliest time that the service can store.
pub const FIRST_TIME: Timestamp = Timestamp(504_911_232_000_000_000);

impl Value<'_> {
    /// The type as annotations name it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::String(_) => "Edm.String",
            Value::Int32(_) => "Edm.Int32",
            Value::Int64(_) => "Edm.Int64",
            Value::Double(_) => "Edm.Double",
            Value::Boolean(_) => "Edm.Boolean",
            Value::DateTime(_) => "Edm.DateTime",
            Value::Guid(_) => "Edm.Guid",
            Value::Binary(_) => "Edm.Binary",
        }
    }

    /// How much the value adds to the size of an entity.
    pub fn size(&self) -> usize {
        match self {
            Value::String(text) => crate::key::units(text) * 2 + 4,
            Value::Binary(bytes) => bytes.len() + 4,
            Value::Guid(_) => 16,
            Value::Int64(_) | Value::Double(_) | Value::DateTime(_) => 8,
            Value::Int32(_) => 4,
            Value::Boolean(_) => 1,
        }
    }

    /// Whether a text or bytes are longer than a value may be.
    pub fn is_too_large(&self) -> bool {
        match self {
            // A text has at least as many bytes as UTF-16 units.
            Value::String(text) => text.len() > VALUE_BYTES_MAX / 2 && crate::key::units(text) > VALUE_BYTES_MAX / 2,
            Value::Binary(bytes) => bytes.len() > VALUE_BYTES_MAX,
            _ => false,
        }
    }

    /// The same value, borrowed.
    pub fn view(&self) -> Value<'_> {
        match self {
            Value::String(text) => Value::String(Cow::Borrowed(text)),
            Value::Binary(bytes) => Value::Binary(Cow::Borrowed(bytes)),
            Value::Int32(value) => Value::Int32(*value),
            Value::Int64(value) => Value::Int64(*value),
            Value::Double(value) => Value::Double(*value),
            Value::Boolean(value) => Value::Boolean(*value),
            Value::DateTime(value) => Value::DateTime(*value),
            Value::Guid(value) => Value::Guid(*value),
        }
    }
}

/// How a stored value compares with a constant of a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    Ordered(Ordering),
    /// One of them is NaN: neither less, greater nor equal.
    Unordered,
    /// They have different types: every comparison is false, `ne` too.
    Incomparable,
}

impl Value<'_> {
    /// Texts compare by UTF-16 code units, with case; times as instants; GUIDs as they are written. A 32-bit integer
    /// compares with a double; otherwise numbers must have the same type.
    pub fn compare(&self, constant: &Value<'_>) -> Comparison {
        let ordering = match (self, constant) {
            (Value::String(one), Value::String(other)) => compare_texts(one, other),
            (Value::Int32(one), Value::Int32(other)) => one.cmp(other),
            (Value::Int64(one), Value::Int64(other)) => one.cmp(other),
            (Value::Boolean(one), Value::Boolean(other)) => one.cmp(other),
            (Value::DateTime(one), Value::DateTime(other)) => one.cmp(other),
            (Value::Guid(one), Value::Guid(other)) => one.cmp(other),
            (Value::Binary(one), Value::Binary(other)) => one.cmp(other),
            (Value::Double(one), Value::Double(other)) => return numbers(*one, *other),
            (Value::Double(one), Value::Int32(other)) => return numbers(*one, f64::from(*other)),
            _ => return Comparison::Incomparable,
        };
        Comparison::Ordered(ordering)
    }
}

fn numbers(one: f64, other: f64) -> Comparison {
    one.partial_cmp(&other).map_or(Comparison::Unordered, Comparison::Ordered)
}

pub fn compare_texts(one: &str, other: &str) -> Ordering {
    crate::key::ordered(one).cmp(&crate::key::ordered(other))
}

/// A time that can be stored: ISO 8601, with a zone or in UTC.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    parse_instant(text).filter(|time| *time >= FIRST_TIME)
}

/// A time from the year 1 on, cut to 100 ns.
pub fn parse_instant(text: &str) -> Option<Timestamp> {
    let text = cut_fraction(text);
    dates::parse_iso(&text).or_else(|| dates::parse_iso(&format!("{text}Z")))
}

/// The text with the fraction of a second cut to seven digits.
fn cut_fraction(text: &str) -> Cow<'_, str> {
    const DIGITS_MAX: usize = 7;
    let Some((whole, rest)) = text.split_once('.') else { return text.into() };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits <= DIGITS_MAX {
        return text.into();
    }
    format!("{whole}.{}{}", &rest[..DIGITS_MAX], &rest[digits..]).into()
}

/// A time as answers show it: the fraction without trailing zeros, or no fraction at all.
pub fn time_text(time: Timestamp) -> String {
    let exact = dates::iso_ticks(time);
    let text = exact.as_str();
    let text = text.strip_suffix('Z').unwrap_or(text).trim_end_matches('0');
    // Now it ends with a digit of the fraction, or with its point.
    format!("{}Z", text.strip_suffix('.').unwrap_or(text))
}

/// `c9da6455-213d-42c9-9a79-3e9149a57833`, with or without dashes or braces.
pub fn parse_guid(text: &str) -> Option<[u8; 16]> {
    let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let dashed = text.len() == 36 && [8, 13, 18, 23].iter().all(|at| text.as_bytes()[*at] == b'-');
    let digits = if dashed { text.replace('-', "") } else { text.to_owned() };
    parse_hex(&digits)?.try_into().ok()
}

pub fn guid_text(guid: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (n, byte) in guid.iter().enumerate() {
        if matches!(n, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    text
}

/// Hexadecimal bytes, as filters write them.
pub fn parse_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    text.as_bytes().chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// The value of a JSON string that is annotated with a type. `None`: there is no such type, or the text is not one of
/// its values.
pub fn parse_typed<'a>(type_name: &str, text: Cow<'a, str>) -> Option<Value<'a>> {
    Some(match type_name {
        "Edm.String" => Value::String(text),
        "Edm.Int32" => Value::Int32(text.trim().parse().ok()?),
        "Edm.Int64" => Value::Int64(text.trim().parse().ok()?),
        "Edm.Double" => Value::Double(parse_double(&text)?),
        "Edm.Boolean" if text.eq_ignore_ascii_case("true") => Value::Boolean(true),
        "Edm.Boolean" if text.eq_ignore_ascii_case("false") => Value::Boolean(false),
        "Edm.DateTime" => Value::DateTime(parse_time(&text)?),
        "Edm.Guid" => Value::Guid(parse_guid(&text)?),
        "Edm.Binary" => Value::Binary(Cow::Owned(base64::decode(&text)?)),
        _ => return None,
    })
}

fn parse_double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" | "INF" => Some(f64::INFINITY),
        "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
        _ if text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) => {
            text.parse().ok().filter(|value: &f64| value.is_finite())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        parse_time(text).expect(text)
    }

    #[test]
    fn times() {
        assert_eq!(time("1601-01-01T00:00:00Z"), FIRST_TIME);
        for (text, shown) in [
            ("2008-07-10T00:00:00Z", "2008-07-10T00:00:00Z"),
            ("2008-07-10T00:00:00", "2008-07-10T00:00:00Z"),
            ("2008-07-10T02:00:00+02:00", "2008-07-10T00:00:00Z"),
            ("2008-07-10T10:20:30.1234567Z", "2008-07-10T10:20:30.1234567Z"),
            ("2008-07-10T10:20:30.120Z", "2008-07-10T10:20:30.12Z"),
            ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
            ("2000-01-01T00:00:00.0000001Z", "2000-01-01T00:00:00.0000001Z"),
            // Go and Java write nanoseconds; they are cut to 100 ns.
            ("2000-01-01T00:00:00.123456789Z", "2000-01-01T00:00:00.1234567Z"),
            ("2000-01-01T00:00:00.999999999", "2000-01-01T00:00:00.9999999Z"),
            ("2000-01-01T02:00:00.123456789+02:00", "2000-01-01T00:00:00.1234567Z"),
        ] {
            assert_eq!(time_text(time(text)), shown, "{text}");
        }
        for text in [
            "1600-12-31T23:59:59.9999999Z",
            "",
            "today",
            "2008-13-01T00:00:00Z",
            "2008-07-10T10:20:30.Z",
            "2008-07-10T10:20:30.12345678xZ",
            "2008-07-10T10:20.12345678:30Z",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn guids() {
        let text = "c9da6455-213d-42c9-9a79-3e9149a57833";
        let guid = parse_guid(text).unwrap();
        assert_eq!(guid_text(&guid), text);
        for other in [text.to_uppercase(), text.replace('-', ""), format!("{{{text}}}")] {
            assert_eq!(parse_guid(&other), Some(guid), "{other}");
        }
        for bad in
            ["", "c9da6455", "c9da6455-213d-42c9-9a79-3e9149a5783g", "c9da64552-13d-42c9-9a79-3e9149a57833", "ääääääää"]
        {
            assert_eq!(parse_guid(bad), None, "{bad}");
        }
    }

    #[test]
    fn typed_texts() {
        let read = |kind: &str, text: &'static str| parse_typed(kind, text.into());
        assert_eq!(read("Edm.Int64", "9223372036854775807"), Some(Value::Int64(i64::MAX)));
        assert_eq!(read("Edm.Int64", "-9223372036854775808"), Some(Value::Int64(i64::MIN)));
        assert_eq!(read("Edm.Int64", "9223372036854775808"), None);
        assert_eq!(read("Edm.Double", "-Infinity"), Some(Value::Double(f64::NEG_INFINITY)));
        assert!(matches!(read("Edm.Double", "NaN"), Some(Value::Double(value)) if value.is_nan()));
        assert_eq!(read("Edm.Double", "1e400"), None);
        assert_eq!(read("Edm.Double", "infinity"), None);
        assert_eq!(read("Edm.Binary", "AAEC"), Some(Value::Binary(vec![0, 1, 2].into())));
        assert_eq!(read("Edm.Binary", "AAE"), None);
        assert_eq!(read("Edm.Boolean", "True"), Some(Value::Boolean(true)));
        assert_eq!(read("Edm.Boolean", "1"), None);
        assert_eq!(read("Edm.Decimal", "1"), None);
    }

    #[test]
    fn only_like_is_compared_with_like() {
        use Comparison::{Incomparable, Ordered, Unordered};
        let text = |text: &'static str| Value::String(text.into());
        let table = [
            (text("a"), text("B"), Ordered(Ordering::Greater)),
            (text("\u{10000}"), text("\u{ffff}"), Ordered(Ordering::Less)),
            (Value::Int32(7), Value::Int32(8), Ordered(Ordering::Less)),
            (Value::Int64(7), Value::Int32(7), Incomparable),
            (Value::Int32(7), Value::Int64(7), Incomparable),
            (Value::Double(7.0), Value::Int32(7), Ordered(Ordering::Equal)),
            (Value::Int32(7), Value::Double(7.0), Incomparable),
            (Value::Double(f64::NAN), Value::Double(f64::NAN), Unordered),
            (text("7"), Value::Int32(7), Incomparable),
        ];
        for (one, other, expected) in table {
            assert_eq!(one.compare(&other), expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn how_large_a_value_may_be() {
        let text = |text: String| Value::String(text.into());
        assert!(!text("x".repeat(32 * 1024)).is_too_large());
        assert!(text("x".repeat(32 * 1024 + 1)).is_too_large());
        assert!(!text("語".repeat(32 * 1024)).is_too_large());
        assert!(text("😀".repeat(16 * 1024 + 1)).is_too_large());
        assert!(!Value::Binary(vec![0; 64 * 1024].into()).is_too_large());
        assert!(Value::Binary(vec![0; 64 * 1024 + 1].into()).is_too_large());
    }
}
