//! Block ids and block lists, as far as more than one operation knows them.

use bytes::Bytes;
use concurrency::Timestamp;
use engine::{Changes, Key, KeyReader, Rows, Unread, Visit, due};
use minicbor::{Decode, Encode};
use service::{codec, space};
use wire::base64;

use super::blob::{Committed, ContentRef};
use super::encryption::Encryption;
use super::keys::{blocks_of, chunk_key, list_rows};

/// A block id has at most this many bytes before it is encoded.
pub const BLOCK_ID_BYTES_MAX: usize = 64;
/// How many blocks a blob may have waiting.
pub const UNCOMMITTED_BLOCKS_MAX: u32 = 100_000;
/// Uncommitted blocks are dropped this long after the last of them came: a week.
pub const UNCOMMITTED_SECONDS: u64 = 7 * 24 * 60 * 60;
/// How many entries of a committed list share a row. Their ids and numbers take about 90 bytes each at most.
const ENTRIES_PER_CHUNK: usize = 1_000;

/// The uncommitted blocks of a blob.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Staging {
    #[n(0)]
    pub id: u64,
    /// Of every block id, decoded.
    #[n(1)]
    pub id_length: u8,
    #[n(2)]
    pub count: u32,
    /// When the last block came; a week later all of them go.
    #[cbor(n(3), with = "codec::time")]
    pub last_put: Timestamp,
    /// The due row that looks after them stands at this time.
    #[cbor(n(4), with = "codec::time")]
    pub due: Timestamp,
    /// Rises with every block that comes, so that equal values mean equal blocks.
    #[n(5)]
    pub revision: u64,
}

/// One uncommitted block.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Block {
    #[n(0)]
    pub content: u64,
    #[n(1)]
    pub size: u64,
    #[n(2)]
    pub encryption: Option<Encryption>,
    /// It refers to a content that it did not bring; other blocks may refer to the same one.
    #[cbor(n(3), default)]
    pub is_shared: bool,
}

/// A run of a committed block list, or one block of an append blob.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub struct ListChunk {
    /// The offset of its first byte in the blob.
    #[n(0)]
    pub start: u64,
    #[n(1)]
    pub entries: Vec<ListEntry>,
}

#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct ListEntry {
    /// Empty in an append blob, whose blocks have none.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub id: Vec<u8>,
    #[n(1)]
    pub content: u64,
    #[n(2)]
    pub size: u64,
}

impl Staging {
    /// When all of them go, unless another block comes.
    pub fn end(&self) -> Timestamp {
        self.last_put.plus_seconds(UNCOMMITTED_SECONDS)
    }

    /// The blocks are committed or unwanted: their rows go later, the blob's own row no longer names them.
    pub fn leave(&self, blob: &Key, changes: &mut Changes, now: Timestamp) {
        changes.delete(self.due_key(blob));
        changes.put(due::key(now, space::BLOCK, &self.id.to_be_bytes()), Bytes::new());
    }

    /// The due row at which blocks that nobody committed are discarded. Its owner is the blob's key, which is longer than the id that
    /// owns the row of blocks to be removed.
    pub fn due_key(&self, blob: &Key) -> Key {
        due::key(self.due, space::BLOCK, blob.as_bytes())
    }
}

/// The id of a block: one byte at least, and [`BLOCK_ID_BYTES_MAX`] at most.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BlockId(Vec<u8>);

impl BlockId {
    /// Takes the bytes of an id, decoded.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<BlockId, BadBlockId> {
        let bytes = bytes.into();
        match bytes.len() {
            0 => Err(BadBlockId::Unreadable),
            1..=BLOCK_ID_BYTES_MAX => Ok(BlockId(bytes)),
            _ => Err(BadBlockId::TooLong),
        }
    }

    /// Reads an id as the wire has it.
    pub fn parse(text: &str) -> Result<BlockId, BadBlockId> {
        BlockId::new(base64::decode(text).ok_or(BadBlockId::Unreadable)?)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Why something is no block id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadBlockId {
    /// Not base64, or empty.
    Unreadable,
    TooLong,
}

/// The uncommitted blocks, in the order of their ids.
pub fn uncommitted(rows: &dyn Rows, staging: &Staging) -> Result<Vec<(Vec<u8>, Block)>, Unread> {
    let all = blocks_of(staging.id);
    let mut found = Vec::with_capacity(staging.count as usize);
    let mut failed = None;
    rows.scan(&all, &all.after_all(), staging.count as usize, &mut |key, row| {
        match block(key, row) {
            Ok(block) => found.push(block),
            Err(error) => failed = Some(error),
        }
        if failed.is_some() { Visit::Stop } else { Visit::Next }
    })?;
    failed.map_or(Ok(found), Err)
}

pub fn block(key: &[u8], row: &[u8]) -> Result<(Vec<u8>, Block), Unread> {
    let mut reader = KeyReader::new(key);
    let id = reader.number().and_then(|_| reader.bytes()).ok_or_else(|| codec::corrupt("the key of a block"))?;
    Ok((id, codec::decode(row)?))
}

/// The committed blocks, in the order of the content. A blob that was put whole has none.
pub fn committed(rows: &dyn Rows, state: &Committed) -> Result<Vec<ListEntry>, Unread> {
    let ContentRef::Blocks(list) = state.content else { return Ok(Vec::new()) };
    let mut entries = Vec::new();
    for_each_chunk(rows, list, 0, |chunk| {
        entries.extend_from_slice(&chunk.entries);
        true
    })?;
    Ok(entries)
}

/// The rows of a committed list: the offset at which each ends, and what stands in it. Every block has at least one
/// byte, so no two end at the same offset.
pub fn list_chunks(entries: &[ListEntry]) -> Vec<(u64, Bytes)> {
    let mut start = 0;
    let chunks = entries.chunks(ENTRIES_PER_CHUNK).map(|entries| {
        let end = start + entries.iter().map(|entry| entry.size).sum::<u64>();
        let row = codec::encode(&ListChunk { start, entries: entries.to_vec() });
        start = end;
        (end, row)
    });
    chunks.collect()
}

/// Visits the chunks of a block list from the one that holds `offset` on, until `each` says that it has enough.
pub fn for_each_chunk(
    rows: &dyn Rows,
    list: u64,
    offset: u64,
    mut each: impl FnMut(&ListChunk) -> bool,
) -> Result<(), Unread> {
    let mut failed = None;
    rows.scan(&chunk_key(list, offset + 1), &list_rows(list).after_all(), 1, &mut |_, row| match codec::decode::<
        ListChunk,
    >(row)
    {
        Ok(chunk) if each(&chunk) => Visit::Next,
        Ok(_) => Visit::Stop,
        Err(error) => {
            failed = Some(error);
            Visit::Stop
        }
    })?;
    failed.map_or(Ok(()), Err)
}
