//! Where records are kept: bounded, a shard for each thread that writes, in chunks of which the oldest goes.
//!
//! A shard's mutex is wanted by one thread alone, and now and then by somebody who reads; they take filled chunks by
//! reference and copy one that is being filled. Memory is taken as it fills.

use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::codec;
use crate::record::{Read, Record, Service};

/// The bytes of a chunk.
const CHUNK_BYTES: usize = 64 * 1024;
/// A shard has at least so many chunks, so that losing the oldest does not lose all.
const CHUNKS_MIN: usize = 4;
/// More threads than this share shards.
const SHARDS_MAX: usize = 64;
/// No less than this is a history.
pub const LIMIT_BYTES_MIN: usize = 64 * 1024;
/// The usual limit.
pub const LIMIT_BYTES_USUAL: usize = 16 * 1024 * 1024;

/// The history of a server. Clones are the same history.
#[derive(Clone, Debug)]
pub struct History(Option<Arc<Rings>>);

#[derive(Debug)]
struct Rings {
    shards: Box<[Shard]>,
    /// What one shard may hold of each kind.
    changes_bytes: usize,
    reads_bytes: usize,
    seq: AtomicU64,
    hashes: RandomState,
}

#[derive(Debug, Default)]
struct Shard {
    changes: Mutex<Chunks<u8>>,
    reads: Mutex<Chunks<Read>>,
}

#[derive(Debug)]
struct Chunks<T> {
    full: VecDeque<Arc<Vec<T>>>,
    filling: Vec<T>,
    /// Elements in the full chunks, by their capacity.
    held: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Chunks<T> {
        Chunks { full: VecDeque::new(), filling: Vec::new(), held: 0 }
    }
}

impl<T: Clone> Chunks<T> {
    /// Has `write` append up to `largest` elements. `most`: elements of the whole ring. A chunk that has no room for another
    /// is full, so that none ever grows.
    fn append(&mut self, most: usize, chunk: usize, largest: usize, write: impl FnOnce(&mut Vec<T>)) {
        if self.filling.capacity() == 0 {
            self.filling.reserve_exact(chunk);
        }
        write(&mut self.filling);
        if self.filling.len() + largest > chunk {
            let full = std::mem::take(&mut self.filling);
            self.held += full.capacity();
            self.full.push_back(Arc::new(full));
            // The chunk that is filled next counts too.
            while self.held + chunk > most {
                let Some(oldest) = self.full.pop_front() else { break };
                self.held -= oldest.capacity();
            }
        }
    }

    fn all(&self) -> Vec<Arc<Vec<T>>> {
        let mut all: Vec<_> = self.full.iter().cloned().collect();
        if !self.filling.is_empty() {
            all.push(Arc::new(self.filling.clone()));
        }
        all
    }
}

thread_local! {
    /// The number of this thread, from the first time that it writes.
    static THREAD: Cell<Option<usize>> = const { Cell::new(None) };
}
static THREADS: AtomicUsize = AtomicUsize::new(0);

impl History {
    /// A history of at most `limit_bytes`: three quarters for changes and refusals, a quarter for plain reads.
    #[must_use]
    pub fn new(limit_bytes: usize) -> History {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        History::with_shards(limit_bytes, threads)
    }

    #[must_use]
    pub fn with_shards(limit_bytes: usize, shards: usize) -> History {
        let limit = limit_bytes.max(LIMIT_BYTES_MIN);
        // With little room, fewer shards: each needs some chunks.
        let shards = shards.clamp(1, SHARDS_MAX).min((limit / LIMIT_BYTES_MIN).max(1));
        let (changes_bytes, reads_bytes) = (limit / 4 * 3 / shards, limit / 4 / shards);
        let shards = (0..shards).map(|_| Shard::default()).collect();
        let seq = AtomicU64::new(1);
        History(Some(Arc::new(Rings { shards, changes_bytes, reads_bytes, seq, hashes: RandomState::new() })))
    }

    /// A history that keeps nothing.
    #[must_use]
    pub fn off() -> History {
        History(None)
    }

    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Keeps a change, a refusal or a conditional read. Gives it its number, which is 0 if nothing is kept.
    pub fn note<S: AsRef<str>>(&self, mut record: Record<S>) -> u64 {
        let Some(rings) = &self.0 else { return 0 };
        record.seq = rings.seq.fetch_add(1, Ordering::Relaxed);
        let most = rings.changes_bytes;
        let chunk = CHUNK_BYTES.min(most / CHUNKS_MIN);
        lock(&rings.shard().changes).append(most, chunk, codec::RECORD_BYTES_MAX, |bytes| codec::put(bytes, &record));
        record.seq
    }

    /// Keeps a plain read.
    pub fn note_read(&self, mut read: Read) {
        let Some(rings) = &self.0 else { return };
        read.seq = rings.seq.fetch_add(1, Ordering::Relaxed);
        let most = rings.reads_bytes / size_of::<Read>();
        let chunk = (CHUNK_BYTES / size_of::<Read>()).min(most / CHUNKS_MIN).max(1);
        lock(&rings.shard().reads).append(most, chunk, 1, |reads| reads.push(read));
    }

    /// What stands for an object in a [`Read`].
    #[must_use]
    pub fn object_hash(&self, service: Service, account: &str, path: &str) -> u64 {
        self.0.as_ref().map_or(0, |rings| rings.hashes.hash_one((service, account, path)))
    }

    /// What stands for an ETag in a [`Read`].
    #[must_use]
    pub fn etag_hash(&self, etag: Option<&str>) -> u64 {
        let (Some(rings), Some(etag)) = (&self.0, etag) else { return 0 };
        rings.hashes.hash_one(etag).max(1)
    }

    /// All that is kept and wanted, in the order of its numbers.
    pub(crate) fn records(&self, wanted: impl Fn(&Record) -> bool) -> Vec<Record> {
        let shards = self.0.iter().flat_map(|rings| &rings.shards);
        // Decoded when the lock is free again.
        let chunks: Vec<_> = shards.flat_map(|shard| lock(&shard.changes).all()).collect();
        let mut records: Vec<_> = chunks.iter().flat_map(|chunk| codec::records(chunk)).filter(wanted).collect();
        records.sort_unstable_by_key(|record| record.seq);
        records
    }

    /// The same of plain reads.
    pub(crate) fn reads(&self, wanted: impl Fn(&Read) -> bool) -> Vec<Read> {
        let shards = self.0.iter().flat_map(|rings| &rings.shards);
        let chunks: Vec<_> = shards.flat_map(|shard| lock(&shard.reads).all()).collect();
        let mut reads: Vec<_> =
            chunks.iter().flat_map(|chunk| chunk.iter().copied()).filter(|read| wanted(read)).collect();
        reads.sort_unstable_by_key(|read| read.seq);
        reads
    }

    /// The bytes that are taken now.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let Some(rings) = &self.0 else { return 0 };
        let of = |shard: &Shard| {
            let changes = lock(&shard.changes);
            let reads = lock(&shard.reads);
            let of_changes = changes.held + changes.filling.capacity();
            of_changes + (reads.held + reads.filling.capacity()) * size_of::<Read>()
        };
        rings.shards.iter().map(of).sum()
    }
}

impl Rings {
    fn shard(&self) -> &Shard {
        let mine = THREAD.with(|thread| {
            thread.get().unwrap_or_else(|| {
                let number = THREADS.fetch_add(1, Ordering::Relaxed);
                thread.set(Some(number));
                number
            })
        });
        &self.shards[mine % self.shards.len()]
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
