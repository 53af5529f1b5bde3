//! The rows that say where a content's bytes are: places, lengths and sums.
//!
//! Row `content/<id>/<chunk>` lists up to [`PLACES_PER_ROW`] extents. It is the one row that holds their places, so the
//! collector moves an extent by one guarded row change.

use bytes::Bytes;
use engine::{ContentId, EngineError, Key, space};

use crate::segment::CRC_CHUNK;

/// Extents per row; with 8 MiB extents a row describes 4 GiB and stays under 300 KiB.
pub const PLACES_PER_ROW: usize = 512;
const FORMAT: u8 = 1;

/// Where one extent lies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtentPlace {
    pub segment: u64,
    /// Of the bytes themselves.
    pub offset: u64,
    pub length: u32,
    /// One CRC32C for each [`CRC_CHUNK`] bytes.
    pub sums: Vec<u32>,
}

impl ExtentPlace {
    pub fn sums_of(bytes: &[u8]) -> Vec<u32> {
        bytes.chunks(CRC_CHUNK).map(crc32c::crc32c).collect()
    }
}

/// One row of a manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// Of the whole content.
    pub length: u64,
    /// How many rows there are.
    pub rows: u32,
    pub places: Vec<ExtentPlace>,
}

pub fn content_key(id: ContentId, row: u32) -> Key {
    Key::new(space::CONTENT).number(id.0).number(u64::from(row))
}

pub fn is_content_key(key: &[u8]) -> bool {
    key.first() == Some(&space::CONTENT)
}

pub fn segment_key(id: u64) -> Key {
    Key::new(space::SEGMENT).number(id)
}

impl Manifest {
    /// All rows for these places.
    pub fn rows_for(length: u64, places: &[ExtentPlace]) -> Vec<Manifest> {
        let rows = u32::try_from(places.len().div_ceil(PLACES_PER_ROW).max(1)).unwrap_or(u32::MAX);
        if places.is_empty() {
            return vec![Manifest { length, rows, places: Vec::new() }];
        }
        places.chunks(PLACES_PER_ROW).map(|some| Manifest { length, rows, places: some.to_vec() }).collect()
    }

    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(24 + self.places.iter().map(|place| 24 + place.sums.len() * 4).sum::<usize>());
        out.push(FORMAT);
        out.extend_from_slice(&self.length.to_le_bytes());
        out.extend_from_slice(&self.rows.to_le_bytes());
        for place in &self.places {
            out.extend_from_slice(&place.segment.to_le_bytes());
            out.extend_from_slice(&place.offset.to_le_bytes());
            out.extend_from_slice(&place.length.to_le_bytes());
            for sum in &place.sums {
                out.extend_from_slice(&sum.to_le_bytes());
            }
        }
        Bytes::from(out)
    }

    pub fn decode(row: &[u8]) -> Result<Manifest, EngineError> {
        Manifest::take_apart(row).ok_or_else(|| EngineError::Corrupt("a content row cannot be read".into()))
    }

    fn take_apart(row: &[u8]) -> Option<Manifest> {
        let (&[FORMAT], rest) = row.split_first_chunk::<1>()? else { return None };
        let (length, rest) = take_u64(rest)?;
        let (rows, mut rest) = take_u32(rest)?;
        let mut places = Vec::with_capacity(1);
        while !rest.is_empty() {
            let (segment, after) = take_u64(rest)?;
            let (offset, after) = take_u64(after)?;
            let (length, mut after) = take_u32(after)?;
            let count = (length as usize).div_ceil(CRC_CHUNK);
            let mut sums = Vec::with_capacity(count.min(256));
            for _ in 0..count {
                let (sum, left) = take_u32(after)?;
                sums.push(sum);
                after = left;
            }
            places.push(ExtentPlace { segment, offset, length, sums });
            rest = after;
        }
        Some(Manifest { length, rows, places })
    }
}

fn take_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*number), rest))
}

fn take_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_reads_back_as_written() {
        let long = ExtentPlace { segment: 9, offset: 4160, length: 200_000, sums: vec![1, 2, 3, 4] };
        let short = ExtentPlace { segment: u64::MAX, offset: 7, length: 1, sums: vec![u32::MAX] };
        for manifest in Manifest::rows_for(200_001, &[long, short]) {
            assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
        }
    }

    #[test]
    fn a_cut_row_is_corrupt_not_shorter() {
        let place = ExtentPlace { segment: 9, offset: 4160, length: 10, sums: vec![5] };
        let row = Manifest { length: 10, rows: 1, places: vec![place] }.encode();
        for cut in 1..row.len() {
            let read = Manifest::decode(&row[..cut]);
            assert!(
                read.is_err() || read.is_ok_and(|manifest| manifest.places.is_empty() && cut == 13),
                "cut at {cut}"
            );
        }
    }
}
