//! Block ids and block lists, as far as more than one operation knows them.

use bytes::Bytes;
use engine::{KeyReader, Rows, Unread, Visit};
use wire::base64;

use crate::download::for_each_chunk;
use crate::model::codec;
use crate::model::{Block, Committed, ContentRef, ListChunk, ListEntry, Staging, blocks_of};

/// A block id has at most this many bytes before it is encoded.
pub const BLOCK_ID_BYTES_MAX: usize = 64;
/// How many blocks a blob may have waiting.
pub const UNCOMMITTED_BLOCKS_MAX: u32 = 100_000;
/// Uncommitted blocks are dropped this long after the last of them came: a week.
pub const UNCOMMITTED_SECONDS: u64 = 7 * 24 * 60 * 60;
/// How many entries of a committed list share a row. Their ids and numbers take about 90 bytes each at most.
const ENTRIES_PER_CHUNK: usize = 1_000;

/// Reads a block id as the wire has it. `None`: not base64, or empty.
pub fn decode_id(text: &str) -> Option<Vec<u8>> {
    base64::decode(text).filter(|id| !id.is_empty())
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
