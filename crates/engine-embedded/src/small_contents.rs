//! Small contents in memory, by their ids.
//!
//! An id names the same bytes for ever, so an entry is never wrong, wherever the collector has moved the bytes to on the disk. Whether
//! a content is there at all is not said here: a reader finds its row first.

use std::hash::{BuildHasherDefault, Hash, Hasher};

use bytes::Bytes;
use engine::{BoxFuture, ContentId, ContentReader, EngineError};
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use crate::cache::HashAsGiven;

/// Longer contents would push out too many others.
const CONTENT_BYTES_MAX: u64 = 16 * 1024;
/// About what an entry takes beside its bytes.
const ENTRY_BYTES: u64 = 128;

pub struct SmallContents(Cache<CachedId, Bytes, ByBytes, BuildHasherDefault<HashAsGiven>>);

impl std::fmt::Debug for SmallContents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SmallContents").field("entries", &self.0.len()).finish_non_exhaustive()
    }
}

/// An id in the cache. Ids are stamps, in even steps most of the time: the product spreads them.
#[derive(Clone, PartialEq, Eq)]
struct CachedId(u64);

impl Hash for CachedId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let product = self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        state.write_u64(product ^ product >> 32);
    }
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<CachedId, Bytes> for ByBytes {
    fn weight(&self, _: &CachedId, bytes: &Bytes) -> u64 {
        bytes.len() as u64 + ENTRY_BYTES
    }
}

impl SmallContents {
    /// Room for so many bytes.
    pub fn new(bytes: u64) -> SmallContents {
        let about = usize::try_from(bytes / 4096).unwrap_or(1024).max(16);
        SmallContents(Cache::with(about, bytes, ByBytes, BuildHasherDefault::default(), DefaultLifecycle::default()))
    }

    /// A content of this length is kept when it was read as a whole.
    pub fn takes(length: u64) -> bool {
        length <= CONTENT_BYTES_MAX
    }

    pub fn get(&self, id: ContentId) -> Option<SmallContent> {
        self.0.get(&CachedId(id.0)).map(SmallContent)
    }

    /// What the contents in memory take.
    pub fn bytes(&self) -> u64 {
        self.0.weight()
    }

    /// These are all bytes of a content, and they match their sums.
    pub fn read(&self, id: ContentId, bytes: &Bytes) {
        debug_assert!(SmallContents::takes(bytes.len() as u64));
        self.0.insert(CachedId(id.0), bytes.clone());
    }
}

/// A content that is in memory.
#[derive(Debug)]
pub struct SmallContent(Bytes);

impl SmallContent {
    fn part(&self, offset: u64, most: usize) -> Bytes {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        self.0.slice(from..from.saturating_add(most).min(self.0.len()))
    }
}

impl ContentReader for SmallContent {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, offset: u64, most: usize) -> BoxFuture<'_, Result<Bytes, EngineError>> {
        let part = self.part(offset, most);
        Box::pin(async move { Ok(part) })
    }

    fn read_now(&self, offset: u64, most: usize) -> Option<Result<Bytes, EngineError>> {
        Some(Ok(self.part(offset, most)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_with_the_content() {
        let contents = SmallContents::new(1 << 20);
        contents.read(ContentId(7), &Bytes::from_static(b"0123456789"));
        assert!(contents.get(ContentId(8)).is_none());
        let content = contents.get(ContentId(7)).expect("it was read");
        assert_eq!(content.length(), 10);
        for (offset, most, expected) in
            [(0, 10, "0123456789"), (3, 2, "34"), (8, 100, "89"), (10, 1, ""), (u64::MAX, usize::MAX, "")]
        {
            let part = content.read_now(offset, most).expect("in memory").expect("read");
            assert_eq!(part, expected, "{most} from {offset}");
        }
    }

    #[test]
    fn many_contents_take_no_more_than_their_room() {
        let contents = SmallContents::new(1 << 20);
        for id in 0..1_000 {
            contents.read(ContentId(id), &Bytes::from(vec![0; 4096]));
        }
        assert!(contents.bytes() <= 1 << 20, "{}", contents.bytes());
        assert!(contents.0.len() > 100, "{}", contents.0.len());
    }
}
