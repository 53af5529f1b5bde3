//! Rows at hand. An entry proves itself: it says up to which state it is known to be right.
//!
//! Absences are kept as well, also those that the filters in memory would give again: while a memtable is being written out
//! the filters cannot answer, and rows that most accounts do not have (service properties) are asked for by every request.
//! Absences that are asked for once, as for the name of a new blob, push out no row in use: the cache tells the two apart.
//!
//! Each key belongs to a slot, and each slot remembers the last batch that wrote to any of its keys. An entry made from
//! the state `at` is right for every state from `at` on as long as no batch numbered `at` or later wrote to its slot.
//! So readers and the decider share one cache without a lock between them, and nothing has to be taken out in time.

use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::Ordering;

use bytes::Bytes;
use engine::space;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, Weighter};

use crate::sync::{AtomicU64, RandomState};

/// A simulation has few slots: unrelated keys then share one now and then, and its many runs begin sooner.
const SLOTS: usize = if cfg!(feature = "simulation") { 64 } else { 1 << 16 };
/// Larger rows would push out too many small ones.
const ROW_BYTES_MAX: usize = 16 * 1024;

pub struct RowCache {
    entries: Cache<CachedKey, Entry, ByBytes, BuildHasherDefault<HashAsGiven>>,
    written: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl std::fmt::Debug for RowCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowCache").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

/// The hash of a key. It is computed once for all that goes by hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyHash(pub u64);

impl KeyHash {
    pub fn new(hasher: &RandomState, key: &[u8]) -> KeyHash {
        let mut hasher = hasher.build_hasher();
        hasher.write(key);
        KeyHash(hasher.finish())
    }
}

/// A key in the cache, with its hash.
#[derive(Clone, PartialEq, Eq)]
struct CachedKey {
    hash: KeyHash,
    bytes: Box<[u8]>,
}

impl Hash for CachedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash.0);
    }
}

/// A key that is looked for.
struct SoughtKey<'a> {
    hash: KeyHash,
    bytes: &'a [u8],
}

impl Hash for SoughtKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash.0);
    }
}

impl Equivalent<CachedKey> for SoughtKey<'_> {
    fn equivalent(&self, key: &CachedKey) -> bool {
        *self.bytes == *key.bytes
    }
}

/// Takes a number that is a hash as it is.
#[derive(Default)]
pub struct HashAsGiven(u64);

impl Hasher for HashAsGiven {
    fn finish(&self) -> u64 {
        self.0
    }

    /// Keys write their hash as a number; this is for completeness.
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[derive(Clone)]
struct Entry {
    value: Option<Bytes>,
    at: u64,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<CachedKey, Entry> for ByBytes {
    fn weight(&self, key: &CachedKey, entry: &Entry) -> u64 {
        (key.bytes.len() + entry.value.as_ref().map_or(0, Bytes::len) + 128) as u64
    }
}

impl RowCache {
    pub fn new(bytes: u64) -> RowCache {
        let written = (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
        let about = usize::try_from(bytes / 512).unwrap_or(1024).max(16);
        let entries = Cache::with(about, bytes, ByBytes, BuildHasherDefault::default(), DefaultLifecycle::default());
        RowCache { entries, written, hasher: RandomState::default() }
    }

    pub fn hash(&self, key: &[u8]) -> KeyHash {
        KeyHash::new(&self.hasher, key)
    }

    fn slot(&self, hash: KeyHash) -> &AtomicU64 {
        &self.written[usize::try_from(hash.0).unwrap_or(0) % SLOTS]
    }

    /// What a reader of state `at` finds: `Some(row or absence)` if it is known.
    pub fn get(&self, key: &[u8], hash: KeyHash, at: u64) -> Option<Option<Bytes>> {
        let entry = self.entries.get(&SoughtKey { hash, bytes: key })?;
        (entry.at <= at && self.slot(hash).load(Ordering::Acquire) < entry.at).then_some(entry.value)
    }

    /// A reader found this in state `at`.
    pub fn learned(&self, key: &[u8], hash: KeyHash, value: Option<&Bytes>, at: u64) {
        if value.is_none_or(|value| value.len() <= ROW_BYTES_MAX) && self.slot(hash).load(Ordering::Acquire) < at {
            let value = value.map(|value| Bytes::copy_from_slice(value));
            self.entries.insert(CachedKey { hash, bytes: key.into() }, Entry { value, at });
        }
    }

    /// Batch `seq` writes this. Only the decider calls it, before the tree has the row.
    pub fn written(&self, key: &[u8], hash: KeyHash, value: Option<&Bytes>, seq: u64) {
        self.slot(hash).store(seq, Ordering::Release);
        if is_only_scanned(key) {
            return;
        }
        if value.map_or(!is_gone_for_ever(key), |value| value.len() <= ROW_BYTES_MAX) {
            // Known from the state that this batch makes: readers see it once that is published.
            let entry = Entry { value: value.cloned(), at: seq + 1 };
            self.entries.insert(CachedKey { hash, bytes: key.into() }, entry);
        } else {
            self.entries.remove(&SoughtKey { hash, bytes: key });
        }
    }
}

/// Rows that are found by scans, never by their keys, would only push others out. An entry that a reader may have made all the
/// same is void by its slot.
fn is_only_scanned(key: &[u8]) -> bool {
    matches!(key.first(), Some(&(space::REF | space::DUE)))
}

/// The row of a content that is dropped is not asked for again: ids are unique.
fn is_gone_for_ever(key: &[u8]) -> bool {
    key.first() == Some(&space::CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn get(cache: &RowCache, at: u64) -> Option<Option<Bytes>> {
        cache.get(b"k", cache.hash(b"k"), at)
    }

    fn learned(cache: &RowCache, value: Option<&Bytes>, at: u64) {
        cache.learned(b"k", cache.hash(b"k"), value, at);
    }

    fn written(cache: &RowCache, value: Option<&Bytes>, seq: u64) {
        cache.written(b"k", cache.hash(b"k"), value, seq);
    }

    #[test]
    fn a_written_row_is_seen_from_its_own_state_on() {
        let cache = RowCache::new(1 << 20);
        written(&cache, Some(&text("new")), 10);
        assert_eq!(get(&cache, 10), None);
        assert_eq!(get(&cache, 11), Some(Some(text("new"))));
    }

    #[test]
    fn what_was_learned_is_void_once_the_key_is_written() {
        let cache = RowCache::new(1 << 20);
        learned(&cache, Some(&text("old")), 10);
        assert_eq!(get(&cache, 12), Some(Some(text("old"))));
        written(&cache, None, 12);
        assert_eq!(get(&cache, 12), None);
        assert_eq!(get(&cache, 13), Some(None));
    }

    #[test]
    fn a_late_reader_cannot_bring_an_old_row_back() {
        let cache = RowCache::new(1 << 20);
        written(&cache, Some(&text("new")), 10);
        learned(&cache, Some(&text("old")), 10);
        assert_eq!(get(&cache, 11), Some(Some(text("new"))));
    }

    #[test]
    fn two_writes_in_one_batch_leave_the_later() {
        let cache = RowCache::new(1 << 20);
        written(&cache, Some(&text("first")), 10);
        written(&cache, Some(&text("second")), 10);
        assert_eq!(get(&cache, 11), Some(Some(text("second"))));
    }

    #[test]
    fn references_take_no_room_and_are_never_wrong() {
        let cache = RowCache::new(1 << 20);
        let key = engine::collector::ref_key(7, 1);
        let (key, hash) = (key.as_bytes(), cache.hash(key.as_bytes()));
        cache.written(key, hash, Some(&text("")), 10);
        assert_eq!((cache.get(key, hash, 11), cache.entries.len()), (None, 0));
        cache.learned(key, hash, Some(&text("")), 11);
        assert_eq!(cache.get(key, hash, 11), Some(Some(text(""))));
        cache.written(key, hash, None, 11);
        assert_eq!(cache.get(key, hash, 12), None, "what was learned is void");
    }

    #[test]
    fn a_content_that_is_dropped_takes_no_room() {
        let cache = RowCache::new(1 << 20);
        let key = [space::CONTENT, 7];
        let hash = cache.hash(&key);
        cache.written(&key, hash, Some(&text("place")), 10);
        assert_eq!(cache.get(&key, hash, 11), Some(Some(text("place"))));
        cache.written(&key, hash, None, 11);
        assert_eq!((cache.get(&key, hash, 12), cache.entries.len()), (None, 0));
    }

    #[test]
    fn two_keys_of_one_hash_are_two_keys() {
        let cache = RowCache::new(1 << 20);
        let hash = KeyHash(42);
        cache.learned(b"one", hash, Some(&text("1")), 10);
        cache.learned(b"two", hash, Some(&text("2")), 10);
        assert_eq!(cache.get(b"one", hash, 10), Some(Some(text("1"))));
        assert_eq!(cache.get(b"two", hash, 10), Some(Some(text("2"))));
        assert_eq!(cache.get(b"three", hash, 10), None);
    }
}
