//! A batch: everything one sync makes durable. Small contents first, then the rows of all its decisions.
//!
//! ```text
//! header (96) | content bytes ... | table of contents | rows | zeroes to the end of the page
//! ```

use bytes::Bytes;

use crate::segment::{PAGE, page_up};

const MAGIC: u32 = 0x3154_4142;
pub const HEADER: usize = 96;
const TABLE_ENTRY: usize = 24;
const TOMBSTONE: u32 = u32::MAX;
/// No batch is longer; a header that claims more is damage.
const BATCH_BYTES_MAX: u64 = 1 << 30;

/// A batch being filled.
#[derive(Debug)]
pub struct BatchBuilder {
    pub segment: u64,
    /// Where in the segment it will stand.
    pub offset: u64,
    pub number: u64,
    pub seq: u64,
    pub stamp: u64,
    buffer: Vec<u8>,
    table: Vec<u8>,
    rows: Vec<u8>,
}

impl BatchBuilder {
    pub fn new(segment: u64, offset: u64, number: u64, seq: u64) -> BatchBuilder {
        let buffer = vec![0; HEADER];
        BatchBuilder { segment, offset, number, seq, stamp: 0, buffer, table: Vec::new(), rows: Vec::new() }
    }

    /// Takes a small content in and says where in the segment its bytes will be.
    pub fn add_content(&mut self, id: u64, bytes: &[u8], crc: u32) -> u64 {
        let offset = self.offset + self.buffer.len() as u64;
        self.buffer.extend_from_slice(bytes);
        self.table.extend_from_slice(&id.to_le_bytes());
        self.table.extend_from_slice(&offset.to_le_bytes());
        self.table.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.table.extend_from_slice(&crc.to_le_bytes());
        offset
    }

    pub fn add_row(&mut self, key: &[u8], value: Option<&[u8]>) {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(TOMBSTONE - 1).to_le_bytes();
        self.rows.extend_from_slice(&length(key));
        self.rows.extend_from_slice(&value.map_or(TOMBSTONE.to_le_bytes(), length));
        self.rows.extend_from_slice(key);
        self.rows.extend_from_slice(value.unwrap_or_default());
    }

    /// Rows as they would stand in the record, right or wrong. For fuzzing.
    #[cfg(feature = "testing")]
    pub fn add_raw_rows(&mut self, bytes: &[u8]) {
        self.rows.extend_from_slice(bytes);
    }

    pub fn len(&self) -> usize {
        self.buffer.len() + self.table.len() + self.rows.len()
    }

    /// The whole record, padded to a page. `synced_through` is the last batch known to be durable now.
    pub fn finish(mut self, synced_through: u64) -> Vec<u8> {
        let contents_end = self.buffer.len();
        self.buffer.extend_from_slice(&self.table);
        self.buffer.extend_from_slice(&self.rows);
        let meta_crc = crc32c::crc32c(&self.buffer[contents_end..]);
        let header = BatchHeader {
            segment: self.segment,
            offset: self.offset,
            number: self.number,
            seq: self.seq,
            stamp: self.stamp,
            synced_through,
            length: self.buffer.len() as u64,
            contents_end: contents_end as u64,
            contents: (self.table.len() / TABLE_ENTRY) as u64,
            meta_crc,
        };
        self.buffer[..HEADER].copy_from_slice(&header.encode());
        let padded = usize::try_from(page_up(self.buffer.len() as u64)).unwrap_or(self.buffer.len());
        self.buffer.resize(padded, 0);
        self.buffer
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchHeader {
    pub segment: u64,
    pub offset: u64,
    pub number: u64,
    pub seq: u64,
    pub stamp: u64,
    pub synced_through: u64,
    /// Without the padding.
    pub length: u64,
    contents_end: u64,
    contents: u64,
    meta_crc: u32,
}

impl BatchHeader {
    fn encode(&self) -> [u8; HEADER] {
        let mut out = [0_u8; HEADER];
        let numbers = [
            self.segment,
            self.offset,
            self.number,
            self.seq,
            self.stamp,
            self.synced_through,
            self.length,
            self.contents_end,
            self.contents,
        ];
        out[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[4..8].copy_from_slice(&self.meta_crc.to_le_bytes());
        for (slot, number) in out[8..80].chunks_exact_mut(8).zip(numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        let crc = crc32c::crc32c(&out[..80]);
        out[80..84].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// The header at this place, if a sound one for this place stands there.
    pub fn decode(bytes: &[u8], segment: u64, offset: u64) -> Option<BatchHeader> {
        let bytes = bytes.get(..HEADER)?;
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let number = |n: usize| u64::from_le_bytes(bytes[8 + n * 8..16 + n * 8].try_into().expect("eight bytes"));
        let header = BatchHeader {
            segment: number(0),
            offset: number(1),
            number: number(2),
            seq: number(3),
            stamp: number(4),
            synced_through: number(5),
            length: number(6),
            contents_end: number(7),
            contents: number(8),
            meta_crc: u32_at(4),
        };
        let sound = u32_at(0) == MAGIC
            && u32_at(80) == crc32c::crc32c(&bytes[..80])
            && header.segment == segment
            && header.offset == offset
            && header.length <= BATCH_BYTES_MAX
            && header.contents_end >= HEADER as u64
            && header.contents_end <= header.length;
        sound.then_some(header)
    }

    pub fn end(&self) -> u64 {
        page_up(self.offset + self.length)
    }
}

/// A content inside a batch: its id, and where its bytes are in the segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchContent {
    pub id: u64,
    pub offset: u64,
    pub length: u32,
    pub crc: u32,
}

/// A whole batch as read back, every sum checked.
#[derive(Debug)]
pub struct Batch {
    pub header: BatchHeader,
    body: Bytes,
}

impl Batch {
    /// `record` begins at the header. `None`: something in it is damaged.
    pub fn decode(record: Bytes, header: BatchHeader) -> Option<Batch> {
        let length = usize::try_from(header.length).ok()?;
        if record.len() < length {
            return None;
        }
        let batch = Batch { header, body: record.slice(..length) };
        let meta = batch.body.get(batch.contents_end()..)?;
        if crc32c::crc32c(meta) != header.meta_crc {
            return None;
        }
        let contents_sound = batch
            .contents()
            .all(|content| batch.content_bytes(&content).is_some_and(|bytes| crc32c::crc32c(bytes) == content.crc));
        contents_sound.then_some(batch)
    }

    fn contents_end(&self) -> usize {
        usize::try_from(self.header.contents_end).unwrap_or(usize::MAX)
    }

    fn content_bytes(&self, content: &BatchContent) -> Option<&[u8]> {
        let start = usize::try_from(content.offset.checked_sub(self.header.offset)?).ok()?;
        self.body.get(start..start.checked_add(content.length as usize)?)
    }

    pub fn contents(&self) -> impl Iterator<Item = BatchContent> + '_ {
        let count = usize::try_from(self.header.contents).unwrap_or(0);
        let table = self.body.get(self.contents_end()..).unwrap_or_default();
        table.chunks_exact(TABLE_ENTRY).take(count).map(|entry| BatchContent {
            id: u64::from_le_bytes(entry[0..8].try_into().expect("eight bytes")),
            offset: u64::from_le_bytes(entry[8..16].try_into().expect("eight bytes")),
            length: u32::from_le_bytes(entry[16..20].try_into().expect("four bytes")),
            crc: u32::from_le_bytes(entry[20..24].try_into().expect("four bytes")),
        })
    }

    /// The rows in the order they were written. `None` where one does not fit; the sums make that unlikely.
    pub fn rows(&self) -> Option<Vec<(Bytes, Option<Bytes>)>> {
        let table = usize::try_from(self.header.contents).ok()?.checked_mul(TABLE_ENTRY)?;
        let mut at = self.contents_end().checked_add(table)?;
        let mut rows = Vec::new();
        while at < self.body.len() {
            let u32_at = |at: usize| Some(u32::from_le_bytes(self.body.get(at..at.checked_add(4)?)?.try_into().ok()?));
            let (key, value) = (u32_at(at)? as usize, u32_at(at + 4)?);
            let value_length = if value == TOMBSTONE { 0 } else { value as usize };
            let value_at = (at + 8).checked_add(key)?;
            let end = value_at.checked_add(value_length)?;
            if end > self.body.len() {
                return None;
            }
            let value = (value != TOMBSTONE).then(|| self.body.slice(value_at..end));
            rows.push((self.body.slice(at + 8..value_at), value));
            at = end;
        }
        Some(rows)
    }
}

/// Where batches may begin after `offset`.
pub fn pages_from(offset: u64, end: u64) -> impl Iterator<Item = u64> {
    (0..).map(move |n| page_up(offset) + n * PAGE).take_while(move |at| *at + HEADER as u64 <= end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut builder = BatchBuilder::new(3, 8192, 17, 40);
        builder.stamp = 99;
        let bytes = vec![7_u8; 5000];
        assert_eq!(builder.add_content(5, &bytes, crc32c::crc32c(&bytes)), 8192 + HEADER as u64);
        builder.add_row(b"key", Some(b"value"));
        builder.add_row(b"gone", None);
        builder.finish(16)
    }

    #[test]
    fn a_batch_reads_back_as_written() {
        let record = sample();
        assert_eq!(record.len() % PAGE as usize, 0);
        let header = BatchHeader::decode(&record, 3, 8192).expect("a sound header");
        assert_eq!((header.number, header.seq, header.stamp, header.synced_through), (17, 40, 99, 16));
        let batch = Batch::decode(Bytes::from(record), header).expect("a sound batch");
        let contents: Vec<BatchContent> = batch.contents().collect();
        assert_eq!(contents.len(), 1);
        assert_eq!((contents[0].id, contents[0].length), (5, 5000));
        let rows = batch.rows().expect("rows");
        assert_eq!(rows[0], (Bytes::from_static(b"key"), Some(Bytes::from_static(b"value"))));
        assert_eq!(rows[1], (Bytes::from_static(b"gone"), None));
    }

    #[test]
    fn any_flipped_byte_is_noticed() {
        let record = sample();
        let length = usize::try_from(BatchHeader::decode(&record, 3, 8192).expect("sound").length).expect("fits");
        for at in (0..length).filter(|at| !(84..HEADER).contains(at)) {
            let mut damaged = record.clone();
            damaged[at] ^= 0x40;
            let read = BatchHeader::decode(&damaged, 3, 8192)
                .and_then(|header| Batch::decode(Bytes::from(damaged.clone()), header));
            assert!(read.is_none(), "byte {at}");
        }
    }

    #[test]
    fn a_batch_of_another_place_is_none() {
        let record = sample();
        assert!(BatchHeader::decode(&record, 4, 8192).is_none());
        assert!(BatchHeader::decode(&record, 3, 4096).is_none());
    }
}
