//! Entities as rows: the format byte of all rows, then a CBOR map. Field 0 is the timestamp. Field 1, always the last,
//! holds the properties one after another as name, kind and value, so that a scan decodes no more than it needs.

use std::borrow::Cow;

use bytes::Bytes;
use concurrency::Timestamp;
use engine::{EngineError, Unread};
use minicbor::decode::Error as DecodeError;
use minicbor::{Decoder, Encoder};

use super::value::Value;
use super::{Entity, Property};

const FORMAT: u8 = 1;
const STAMP: u32 = 0;
const PROPERTIES: u32 = 1;

const STRING: u8 = 1;
const INT32: u8 = 2;
const INT64: u8 = 3;
const DOUBLE: u8 = 4;
const BOOLEAN: u8 = 5;
const DATE_TIME: u8 = 6;
const GUID: u8 = 7;
const BINARY: u8 = 8;
/// A text stored as UTF-16, because that is shorter than UTF-8. So no row is larger than the limit for entities allows.
const STRING_UTF16: u8 = 9;

impl Entity<'_> {
    pub fn to_row(&self) -> Bytes {
        let guess = self.properties.iter().map(|(name, value)| name.len() + value.size() + 8).sum::<usize>();
        let mut row = Vec::with_capacity(16 + guess);
        row.push(FORMAT);
        let mut encoder = Encoder::new(&mut row);
        self.write(&mut encoder).expect("a vector takes every byte");
        row.into()
    }

    fn write(&self, e: &mut Encoder<&mut Vec<u8>>) -> Result<(), minicbor::encode::Error<std::convert::Infallible>> {
        e.map(2)?.u32(STAMP)?.u64(self.stamp.0)?.u32(PROPERTIES)?.array(self.properties.len() as u64 * 3)?;
        for (name, value) in &self.properties {
            e.str(name)?;
            match value {
                Value::String(text) => match as_utf16(text) {
                    None => e.u8(STRING)?.str(text)?,
                    Some(bytes) => e.u8(STRING_UTF16)?.bytes(&bytes)?,
                },
                Value::Int32(value) => e.u8(INT32)?.i32(*value)?,
                Value::Int64(value) => e.u8(INT64)?.i64(*value)?,
                Value::Double(value) => e.u8(DOUBLE)?.f64(*value)?,
                Value::Boolean(value) => e.u8(BOOLEAN)?.bool(*value)?,
                Value::DateTime(value) => e.u8(DATE_TIME)?.u64(value.0)?,
                Value::Guid(value) => e.u8(GUID)?.bytes(value)?,
                Value::Binary(value) => e.u8(BINARY)?.bytes(value)?,
            };
        }
        Ok(())
    }
}

fn as_utf16(text: &str) -> Option<Vec<u8>> {
    if text.is_ascii() || text.len() <= text.encode_utf16().count() * 2 {
        return None;
    }
    Some(text.encode_utf16().flat_map(u16::to_be_bytes).collect())
}

/// A row whose properties are not decoded yet.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    pub stamp: Timestamp,
    properties: Decoder<'a>,
    count: u64,
}

impl<'a> Row<'a> {
    pub fn open(row: &'a [u8]) -> Result<Row<'a>, Unread> {
        match row.split_first() {
            Some((&FORMAT, rest)) => Row::head(rest).map_err(|error| corrupt(&error)),
            _ => Err(EngineError::Corrupt("an entity's row has an unknown format".into()).into()),
        }
    }

    fn head(rest: &'a [u8]) -> Result<Row<'a>, DecodeError> {
        let mut d = Decoder::new(rest);
        let fields = d.map()?.ok_or_else(|| DecodeError::message("a map of unknown length"))?;
        let mut stamp = None;
        for _ in 0..fields {
            match d.u32()? {
                STAMP => stamp = Some(Timestamp(d.u64()?)),
                PROPERTIES => {
                    let items = d.array()?.ok_or_else(|| DecodeError::message("an array of unknown length"))?;
                    let stamp = stamp.ok_or_else(|| DecodeError::message("no timestamp"))?;
                    return Ok(Row { stamp, properties: d, count: items / 3 });
                }
                _ => d.skip()?,
            }
        }
        Err(DecodeError::message("no properties"))
    }

    /// The properties in their order.
    pub fn properties(&self) -> impl Iterator<Item = Result<(&'a str, Value<'a>), Unread>> + use<'a> {
        let mut d = self.properties.clone();
        (0..self.count).map(move |_| property(&mut d).map_err(|error| corrupt(&error)))
    }

    /// The properties, when they are only written out. Their texts are not checked for valid UTF-8 again: they were
    /// valid when they were stored, and the engine detects damaged rows.
    pub fn shown(&self) -> impl Iterator<Item = Result<(&'a [u8], UncheckedValue<'a>), Unread>> + use<'a> {
        let mut d = self.properties.clone();
        (0..self.count).map(move |_| shown(&mut d).map_err(|error| corrupt(&error)))
    }

    /// The property of this name, if the entity has it.
    pub fn property(&self, wanted: &str) -> Result<Option<Value<'a>>, Unread> {
        let mut d = self.properties.clone();
        for _ in 0..self.count {
            let found = d.str().and_then(|name| if name == wanted { value(&mut d).map(Some) } else { pass(&mut d) });
            if let Some(found) = found.map_err(|error| corrupt(&error))? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The entity with all its properties.
    pub fn entity(&self) -> Result<Entity<'a>, Unread> {
        let own = |property: Result<(&'a str, Value<'a>), Unread>| {
            property.map(|(name, value)| (Cow::Borrowed(name), value) as Property<'a>)
        };
        Ok(Entity { stamp: self.stamp, properties: self.properties().map(own).collect::<Result<_, _>>()? })
    }
}

/// A value that is only written out.
#[derive(Clone, Debug)]
pub enum UncheckedValue<'a> {
    /// UTF-8.
    Text(&'a [u8]),
    Other(Value<'a>),
}

fn shown<'a>(d: &mut Decoder<'a>) -> Result<(&'a [u8], UncheckedValue<'a>), DecodeError> {
    let name = text(d)?;
    Ok((
        name,
        match d.u8()? {
            STRING => UncheckedValue::Text(text(d)?),
            kind => UncheckedValue::Other(value_of(kind, d)?),
        },
    ))
}

/// The bytes of a text, not checked.
fn text<'a>(d: &mut Decoder<'a>) -> Result<&'a [u8], DecodeError> {
    let rest = &d.input()[d.position()..];
    let (head, length) = match *rest {
        [byte @ 0x60..=0x77, ..] => (1, usize::from(byte - 0x60)),
        [0x78, length, ..] => (2, usize::from(length)),
        [0x79, a, b, ..] => (3, usize::from(u16::from_be_bytes([a, b]))),
        [0x7a, a, b, c, d, ..] => (5, u32::from_be_bytes([a, b, c, d]) as usize),
        _ => return Err(DecodeError::message("no text where one should be")),
    };
    let text = rest.get(head..head + length).ok_or_else(DecodeError::end_of_input)?;
    d.set_position(d.position() + head + length);
    Ok(text)
}

fn property<'a>(d: &mut Decoder<'a>) -> Result<(&'a str, Value<'a>), DecodeError> {
    Ok((d.str()?, value(d)?))
}

fn pass<'a>(d: &mut Decoder<'a>) -> Result<Option<Value<'a>>, DecodeError> {
    d.u8()?;
    d.skip()?;
    Ok(None)
}

fn value<'a>(d: &mut Decoder<'a>) -> Result<Value<'a>, DecodeError> {
    let kind = d.u8()?;
    value_of(kind, d)
}

fn value_of<'a>(kind: u8, d: &mut Decoder<'a>) -> Result<Value<'a>, DecodeError> {
    Ok(match kind {
        STRING => Value::String(Cow::Borrowed(d.str()?)),
        STRING_UTF16 => Value::String(Cow::Owned(from_utf16(d.bytes()?)?)),
        INT32 => Value::Int32(d.i32()?),
        INT64 => Value::Int64(d.i64()?),
        DOUBLE => Value::Double(d.f64()?),
        BOOLEAN => Value::Boolean(d.bool()?),
        DATE_TIME => Value::DateTime(Timestamp(d.u64()?)),
        GUID => Value::Guid(d.bytes()?.try_into().map_err(|_| DecodeError::message("a GUID is not 16 bytes"))?),
        BINARY => Value::Binary(Cow::Borrowed(d.bytes()?)),
        _ => return Err(DecodeError::message("an unknown kind of value")),
    })
}

fn from_utf16(bytes: &[u8]) -> Result<String, DecodeError> {
    let units = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.map_err(|_| DecodeError::message("a text is not UTF-16"))
}

fn corrupt(error: &DecodeError) -> Unread {
    EngineError::Corrupt(format!("table service: an entity: {error}")).into()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Values of every type, at the limits of their ranges.
    pub fn one_of_each() -> Vec<Property<'static>> {
        let values = [
            Value::String("".into()),
            Value::String("it's \"ä\" \u{1f600}\n\u{1}".into()),
            Value::String("日本語".into()),
            Value::Int32(i32::MIN),
            Value::Int32(i32::MAX),
            Value::Int64(i64::MIN),
            Value::Int64(i64::MAX),
            Value::Double(0.1),
            Value::Double(-0.0),
            Value::Double(5.0),
            Value::Double(1e300),
            Value::Double(f64::MIN_POSITIVE / 2.0),
            Value::Double(f64::INFINITY),
            Value::Double(f64::NEG_INFINITY),
            Value::Boolean(true),
            Value::Boolean(false),
            Value::DateTime(super::super::value::FIRST_TIME),
            Value::DateTime(Timestamp(637_596_494_267_026_499)),
            Value::Guid([0xAB; 16]),
            Value::Binary(vec![].into()),
            Value::Binary((0..=255).collect::<Vec<u8>>().into()),
        ];
        values.into_iter().enumerate().map(|(n, value)| (Cow::Owned(format!("p{n}")), value)).collect()
    }

    #[test]
    fn every_value_survives_the_way_there_and_back() {
        let entity = Entity { stamp: Timestamp(77), properties: one_of_each() };
        let bytes = entity.to_row();
        let row = Row::open(&bytes).unwrap();
        assert_eq!(row.stamp, Timestamp(77));
        assert_eq!(row.entity().unwrap(), entity);
        assert_eq!(row.property("p3"), Ok(Some(Value::Int32(i32::MIN))));
        for (shown, (name, value)) in row.shown().zip(&entity.properties) {
            let (shown_name, shown) = shown.unwrap();
            let shown = match shown {
                UncheckedValue::Text(text) => Value::String(std::str::from_utf8(text).unwrap().into()),
                UncheckedValue::Other(value) => value,
            };
            assert_eq!((shown_name, &shown), (name.as_bytes(), value));
        }
        assert_eq!(row.property("p99"), Ok(None));
        let zero = row.property("p8").unwrap().unwrap();
        assert!(matches!(zero, Value::Double(value) if value.is_sign_negative()));
        let not_a_number = Entity { stamp: Timestamp(1), properties: vec![("n".into(), Value::Double(f64::NAN))] };
        let bytes = not_a_number.to_row();
        let row = Row::open(&bytes).unwrap();
        assert!(matches!(row.property("n"), Ok(Some(Value::Double(value))) if value.is_nan()));
    }

    #[test]
    fn texts_of_every_length_are_passed_on_as_they_are() {
        for length in [0, 1, 23, 24, 255, 256, 32 * 1024, 65_535, 65_536] {
            let text = "x".repeat(length);
            let properties = vec![("a".into(), Value::String((&text).into())), ("b".into(), Value::Int32(1))];
            let row = Entity { stamp: Timestamp(1), properties }.to_row();
            let shown: Vec<_> = Row::open(&row).unwrap().shown().map(Result::unwrap).collect();
            assert!(matches!(shown[0], (b"a", UncheckedValue::Text(shown)) if shown == text.as_bytes()), "{length}");
            assert!(matches!(shown[1], (b"b", UncheckedValue::Other(Value::Int32(1)))), "{length}");
            for end in (row.len() - length.min(40) - 6)..row.len() {
                let cut = Row::open(&row[..end]).unwrap();
                assert!(cut.shown().any(|shown| shown.is_err()), "{length}, cut at {end}");
            }
        }
    }

    #[test]
    fn no_row_takes_more_space_than_its_size() {
        let text = "語".repeat(32 * 1024);
        let properties = vec![("a".into(), Value::String(text.into()))];
        let entity = Entity { stamp: Timestamp(1), properties };
        let bytes = entity.to_row();
        assert!(bytes.len() <= 64 * 1024 + 32, "{}", bytes.len());
        assert_eq!(Row::open(&bytes).unwrap().entity().unwrap(), entity);
    }

    #[test]
    fn what_is_not_a_row_of_ours_is_corrupt_and_no_panic() {
        let good = Entity { stamp: Timestamp(1), properties: one_of_each() }.to_row();
        for length in 0..good.len() {
            let read = Row::open(&good[..length]).and_then(|row| row.entity().map(|_| ()));
            assert!(matches!(read, Err(Unread::Failed(EngineError::Corrupt(_)))), "{length}");
        }
        for at in 0..good.len() {
            let mut bad = good.to_vec();
            bad[at] ^= 0x55;
            let _ = Row::open(&bad).and_then(|row| row.entity().map(|_| ()));
        }
    }
}
