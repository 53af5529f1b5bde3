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

/// A time that there may be none of.
pub mod optional_time {
    use super::*;

    pub fn encode<C, W: Write>(
        time: &Option<Timestamp>,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        match time {
            Some(time) => e.u64(time.0)?,
            None => e.null()?,
        };
        Ok(())
    }

    pub fn decode<'b, C>(d: &mut Decoder<'b>, _: &mut C) -> Result<Option<Timestamp>, DecodeError> {
        if d.datatype()? == minicbor::data::Type::Null {
            d.skip()?;
            return Ok(None);
        }
        Ok(Some(Timestamp(d.u64()?)))
    }
}

/// A lease: an array that begins with the number of its state.
pub mod lease {
    use super::*;
    use concurrency::{Lease, LeaseDuration, LeaseId, Until};

    const AVAILABLE: u8 = 0;
    const LEASED: u8 = 1;
    const BREAKING: u8 = 2;
    const BROKEN: u8 = 3;
    /// Stands for an infinite duration; a fixed one is never 0.
    const INFINITE: u8 = 0;

    pub fn encode<C, W: Write>(lease: &Lease, e: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
        match lease {
            Lease::Available => e.array(1)?.u8(AVAILABLE)?,
            Lease::Leased { id, duration, until } => {
                let seconds = match duration {
                    LeaseDuration::Infinite => INFINITE,
                    LeaseDuration::Seconds(seconds) => *seconds,
                };
                let end = match until {
                    Until::Forever => u64::MAX,
                    Until::At(end) => end.0,
                };
                e.array(4)?.u8(LEASED)?.bytes(&id.0)?.u8(seconds)?.u64(end)?
            }
            Lease::Breaking { id, until } => e.array(3)?.u8(BREAKING)?.bytes(&id.0)?.u64(until.0)?,
            Lease::Broken { id } => e.array(2)?.u8(BROKEN)?.bytes(&id.0)?,
        };
        Ok(())
    }

    pub fn decode<'b, C>(d: &mut Decoder<'b>, _: &mut C) -> Result<Lease, DecodeError> {
        d.array()?;
        match d.u8()? {
            AVAILABLE => Ok(Lease::Available),
            LEASED => {
                let id = id(d)?;
                let duration = match d.u8()? {
                    INFINITE => LeaseDuration::Infinite,
                    seconds => LeaseDuration::Seconds(seconds),
                };
                let until = match d.u64()? {
                    u64::MAX => Until::Forever,
                    end => Until::At(Timestamp(end)),
                };
                Ok(Lease::Leased { id, duration, until })
            }
            BREAKING => Ok(Lease::Breaking { id: id(d)?, until: Timestamp(d.u64()?) }),
            BROKEN => Ok(Lease::Broken { id: id(d)? }),
            _ => Err(DecodeError::message("an unknown lease state")),
        }
    }

    fn id(d: &mut Decoder<'_>) -> Result<LeaseId, DecodeError> {
        let bytes = d.bytes()?.try_into().map_err(|_| DecodeError::message("a lease id is not 16 bytes"))?;
        Ok(LeaseId(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use concurrency::{Lease, LeaseDuration, LeaseId, Until};
    use minicbor::{Decode, Encode};

    #[derive(Encode, Decode, PartialEq, Debug)]
    #[cbor(map)]
    struct Row {
        #[cbor(n(0), with = "lease")]
        lease: Lease,
        #[cbor(n(1), with = "time")]
        time: Timestamp,
    }

    #[test]
    fn every_lease_survives_the_way_there_and_back() {
        let (id, end) = (LeaseId([7; 16]), Timestamp(5));
        let leases = [
            Lease::Available,
            Lease::Leased { id, duration: LeaseDuration::Infinite, until: Until::Forever },
            Lease::Leased { id, duration: LeaseDuration::Seconds(15), until: Until::At(end) },
            Lease::Breaking { id, until: end },
            Lease::Broken { id },
        ];
        for lease in leases {
            let row = Row { lease, time: end };
            assert_eq!(decode::<Row>(&encode(&row)), Ok(row));
        }
    }

    #[test]
    fn what_is_not_a_row_of_ours_is_corrupt_and_no_panic() {
        for row in [&b""[..], b"\x02\xa0", b"\x01", b"\x01\xa0", b"\x01\xa1\x00\x81\x09", b"\x01\xff\xff"] {
            assert!(matches!(decode::<Row>(row), Err(Unread::Failed(EngineError::Corrupt(_)))), "{row:?}");
        }
    }
}
