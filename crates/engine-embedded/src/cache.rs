//! Rows at hand. An entry proves itself: it says up to which state it is known to be right.
//!
//! Absences are kept as well, also those that the filters in memory would give again: while a memtable is being written out
//! the filters cannot answer, and rows that most accounts do not have (service properties) are asked for by every request.
//! Absences that are asked for once, as for the name of a new blob, push out no row in use: the cache tells the two apart.
//!
//! Each key belongs to a slot, and each slot remembers the last batch that wrote to any of its keys. An entry made from
//! the state `at` is right for every state from `at` on as long as no batch numbered `at` or later wrote to its slot.
//! So readers and the decider share one cache without a lock between them, and nothing has to be taken out in time.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::Ordering;

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use crate::sync::{AtomicU64, RandomState};

/// A simulation has few slots: unrelated keys then share one now and then, and its many runs begin sooner.
const SLOTS: usize = if cfg!(feature = "simulation") { 64 } else { 1 << 16 };
/// Larger rows would push out too many small ones.
const ROW_BYTES_MAX: usize = 16 * 1024;

pub struct RowCache {
    entries: Cache<Vec<u8>, Entry, ByBytes, RandomState>,
    written: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl std::fmt::Debug for RowCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowCache").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct Entry {
    value: Option<Bytes>,
    at: u64,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<Vec<u8>, Entry> for ByBytes {
    fn weight(&self, key: &Vec<u8>, entry: &Entry) -> u64 {
        (key.len() + entry.value.as_ref().map_or(0, Bytes::len) + 128) as u64
    }
}

impl RowCache {
    pub fn new(bytes: u64) -> RowCache {
        let written = (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
        let about = usize::try_from(bytes / 512).unwrap_or(1024).max(16);
        let hasher = RandomState::default();
        let entries = Cache::with(about, bytes, ByBytes, hasher.clone(), DefaultLifecycle::default());
        RowCache { entries, written, hasher }
    }

    fn slot(&self, key: &[u8]) -> &AtomicU64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        &self.written[usize::try_from(hasher.finish()).unwrap_or(0) % SLOTS]
    }

    /// What a reader of state `at` finds: `Some(row or absence)` if it is known.
    pub fn get(&self, key: &[u8], at: u64) -> Option<Option<Bytes>> {
        let entry = self.entries.get(key)?;
        (entry.at <= at && self.slot(key).load(Ordering::Acquire) < entry.at).then_some(entry.value)
    }

    /// A reader found this in state `at`.
    pub fn learned(&self, key: &[u8], value: Option<&Bytes>, at: u64) {
        if value.is_none_or(|value| value.len() <= ROW_BYTES_MAX) && self.slot(key).load(Ordering::Acquire) < at {
            let value = value.map(|value| Bytes::copy_from_slice(value));
            self.entries.insert(key.to_vec(), Entry { value, at });
        }
    }

    /// Batch `seq` writes this. Only the decider calls it, before the tree has the row.
    pub fn written(&self, key: &[u8], value: Option<&Bytes>, seq: u64) {
        self.slot(key).store(seq, Ordering::Release);
        if value.is_none_or(|value| value.len() <= ROW_BYTES_MAX) {
            // Known from the state that this batch makes: readers see it once that is published.
            self.entries.insert(key.to_vec(), Entry { value: value.cloned(), at: seq + 1 });
        } else {
            self.entries.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn a_written_row_is_seen_from_its_own_state_on() {
        let cache = RowCache::new(1 << 20);
        cache.written(b"k", Some(&text("new")), 10);
        assert_eq!(cache.get(b"k", 10), None);
        assert_eq!(cache.get(b"k", 11), Some(Some(text("new"))));
    }

    #[test]
    fn what_was_learned_is_void_once_the_key_is_written() {
        let cache = RowCache::new(1 << 20);
        cache.learned(b"k", Some(&text("old")), 10);
        assert_eq!(cache.get(b"k", 12), Some(Some(text("old"))));
        cache.written(b"k", None, 12);
        assert_eq!(cache.get(b"k", 12), None);
        assert_eq!(cache.get(b"k", 13), Some(None));
    }

    #[test]
    fn a_late_reader_cannot_bring_an_old_row_back() {
        let cache = RowCache::new(1 << 20);
        cache.written(b"k", Some(&text("new")), 10);
        cache.learned(b"k", Some(&text("old")), 10);
        assert_eq!(cache.get(b"k", 11), Some(Some(text("new"))));
    }

    #[test]
    fn two_writes_in_one_batch_leave_the_later() {
        let cache = RowCache::new(1 << 20);
        cache.written(b"k", Some(&text("first")), 10);
        cache.written(b"k", Some(&text("second")), 10);
        assert_eq!(cache.get(b"k", 11), Some(Some(text("second"))));
    }
}
