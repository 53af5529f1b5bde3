//! Rows to values and back: a format byte, then CBOR with numbered fields.
//!
//! A field keeps its number and its meaning; a new field gets a new number and a default. So rows that an older version
//! wrote stay readable. The format byte would change only with another encoding.

use bytes::Bytes;
use concurrency::Timestamp;
use engine::{EngineError, Unread};
use minicbor::decode::{Decode, Decoder, Error as DecodeError};
use minicbor::encode::{Encode, Encoder, Error as EncodeError, Write};

const FORMAT: u8 = 1;

pub fn encode<T: Encode<()>>(value: &T) -> Bytes {
    let mut row = Vec::with_capacity(192);
    row.push(FORMAT);
    minicbor::encode(value, &mut row).expect("a vector takes every byte");
    row.into()
}

pub fn decode<'b, T: Decode<'b, ()>>(row: &'b [u8]) -> Result<T, Unread> {
    match row.split_first() {
        Some((&FORMAT, value)) => minicbor::decode(value).map_err(|error| corrupt(&error.to_string())),
        Some((other, _)) => Err(corrupt(&format!("a row has the unknown format {other}"))),
        None => Err(corrupt("a row is empty")),
    }
}

pub fn corrupt(what: &str) -> Unread {
    EngineError::Corrupt(what.to_owned()).into()
}

/// Encodes a time as its ticks.
pub mod time {
    use super::*;

    pub fn encode<C, W: Write>(time: &Timestamp, e: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
        e.u64(time.0)?;
        Ok(())
    }

    pub fn decode<'b, C>(d: &mut Decoder<'b>, _: &mut C) -> Result<Timestamp, DecodeError> {
        Ok(Timestamp(d.u64()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minicbor::{Decode, Encode};

    #[derive(Encode, Decode, PartialEq, Debug)]
    #[cbor(map)]
    struct Row {
        #[cbor(n(0), with = "time")]
        time: Timestamp,
    }

    #[test]
    fn there_and_back() {
        let row = Row { time: Timestamp(5) };
        assert_eq!(decode::<Row>(&encode(&row)), Ok(row));
    }

    #[test]
    fn what_is_not_a_row_of_ours_is_corrupt_and_no_panic() {
        for row in [&b""[..], b"\x02\xa0", b"\x01", b"\x01\xa0", b"\x01\xa1\x00\x81\x09", b"\x01\xff\xff"] {
            assert!(matches!(decode::<Row>(row), Err(Unread::Failed(EngineError::Corrupt(_)))), "{row:?}");
        }
    }
}
