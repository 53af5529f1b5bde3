//! The embedded engine, the default: rows in an LSM tree under our own commit log, contents in segments.
//!
//! What always holds:
//!
//! - A commit is acknowledged when its batch is in the log and the log is synced (`Durability::Full`).
//! - Readers see only published batches, and a batch is published after its sync.
//! - A row never points at bytes that are not on disk: contents come before, or together with, the rows that name them.
//! - After a crash the log is replayed up to its last whole batch. A hole in what was known durable refuses to open.
//!
//! `decider` runs decisions in order, `committer` makes batches durable, `background` flushes, compacts and collects.

mod background;
mod batch;
mod cache;
mod check;
mod collect;
mod contents;
#[doc(hidden)]
pub mod disk;
mod door;
mod entropy;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod faults;
mod folder;
mod free_space;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod fuzzing;
mod manifest;
mod often_written;
mod outside;
mod pipeline;
#[doc(hidden)]
pub mod probe;
mod recovery;
mod segment;
mod segment_files;
mod small_contents;
mod sole_owners;
mod sync;
mod tree;

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Counter, Ordering};

use bytes::Bytes;
use engine::{
    BoxFuture, Changes, Clock, Commit, Content, ContentId, ContentWriter, Decision, Engine, EngineError, Key, Query,
    Rows, StampSource, Timestamp, Unread, Visit, space,
};

#[cfg(feature = "testing")]
#[doc(hidden)]
pub use check::check_on;
pub use check::{Progress, Report, check, check_with};
pub use folder::OpenError;
#[cfg(feature = "simulation")]
pub use sync::time as virtual_time;

use cache::RowCache;
use collect::{Collector, Pace};
use contents::{Lanes, Writer};
use disk::{Disk, RealDisk};
use door::{Door, Guests};
use folder::Folder;
use free_space::Space;
use pipeline::Pipeline;
use probe::{Moment, Probe};
use segment::Segments;
use small_contents::SmallContents;
use sync::{AtomicBool, AtomicU64, JoinHandle, Mutex};
use tree::{Pin, Tree};

/// How many rows in memory the scans of a query may visit on a worker of the runtime, whose other tasks wait meanwhile: a page of
/// entities, and the one after it. That takes less than a millisecond; a change of threads costs more than most scans do.
const ROWS_ON_A_WORKER: usize = 1_001;
/// And how many bytes: rows may be large.
const ROW_BYTES_ON_A_WORKER: usize = 1 << 20;

/// When a write is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// When it is synced.
    #[default]
    Full,
    /// When it is written; synced a moment later. A power cut takes the newest writes, in order, never half of one.
    Relaxed,
}

/// What to do when the log cannot be trusted any more. The default ends the process: a restart recovers.
#[derive(Clone)]
pub struct OnFatal(pub Arc<dyn Fn(&str) + Send + Sync>);

impl std::fmt::Debug for OnFatal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnFatal")
    }
}

impl Default for OnFatal {
    fn default() -> OnFatal {
        OnFatal(Arc::new(|why| {
            eprintln!("lazurite: {why}; stopping, a restart will recover");
            std::process::abort();
        }))
    }
}

/// Budgets and switches. The defaults suit a small machine.
#[derive(Clone, Debug)]
pub struct Options {
    pub durability: Durability,
    /// Rows kept decoded-ready in memory.
    pub row_cache_bytes: u64,
    /// Small contents kept in memory.
    pub content_cache_bytes: u64,
    /// Blocks of the tree kept in memory.
    pub block_cache_bytes: u64,
    /// A memtable is written out at this size.
    pub memtable_bytes: u64,
    /// A log segment is closed at this size.
    pub log_bytes: u64,
    /// A data segment is closed at this size.
    pub segment_bytes: u64,
    /// Growing writes are refused when less than this, or a quarter of the disk, is free, and sooner when compaction is behind
    /// and needs more. Deletes, flushes, compaction and collection go on below it.
    pub reserve_bytes: u64,
    /// How many decisions may wait.
    pub waiting_max: usize,
    /// How many bytes of small contents may wait in memory for the commit that they travel with.
    pub waiting_bytes_max: u64,
    /// Whether segments are collected in the background. A check must not have the places change under it.
    pub collects: bool,
    /// How many files may stay open to be read again: a third for the tree, the rest for segments. Those that are being
    /// written to come on top, some ten.
    pub files_max: usize,
    /// Where everything is read from and written to.
    pub disk: Arc<dyn Disk>,
    /// For tests.
    pub probe: Probe,
    pub on_fatal: OnFatal,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            durability: Durability::Full,
            row_cache_bytes: 32 << 20,
            content_cache_bytes: 16 << 20,
            block_cache_bytes: 48 << 20,
            memtable_bytes: 16 << 20,
            log_bytes: 64 << 20,
            segment_bytes: 256 << 20,
            reserve_bytes: 512 << 20,
            waiting_max: 16 * 1024,
            waiting_bytes_max: 128 << 20,
            collects: true,
            files_max: 384,
            disk: Arc::new(RealDisk),
            probe: Probe::default(),
            on_fatal: OnFatal::default(),
        }
    }
}

impl Options {
    /// Of the files that may stay open, those of the tree.
    fn tree_files_max(&self) -> usize {
        (self.files_max / 3).max(1)
    }

    /// And those of segments.
    fn segment_files_max(&self) -> u64 {
        (self.files_max - self.files_max / 3).max(1) as u64
    }
}

/// The embedded engine over one data folder.
#[derive(Debug)]
pub struct EmbeddedEngine {
    inner: Arc<Inner>,
    threads: Mutex<Option<Threads>>,
}

/// In the order in which they end.
#[derive(Debug, Default)]
struct Threads {
    /// The decider, the committer, the one for decisions outside, and the collector.
    deciding: Vec<JoinHandle<()>>,
    /// The flusher and the compactor, which the others may wait for.
    tidying: Vec<JoinHandle<()>>,
}

/// What all threads share.
#[derive(Debug)]
struct Inner {
    folder: Folder,
    options: Options,
    tree: Tree,
    cache: RowCache,
    small_contents: Arc<SmallContents>,
    segments: Segments,
    lanes: Lanes,
    pipeline: Pipeline,
    /// Uploads and reads at work.
    guests: Arc<Guests>,
    clock: Clock,
    stamps: StampSource,
    next_segment: AtomicU64,
    /// Live bytes by segment, as of the newest decision. The decider counts; the collector takes dropped segments out.
    live: Mutex<HashMap<u64, u64>>,
    /// Batches below this number are synced. In relaxed durability it follows what is published.
    durable: AtomicU64,
    space: Space,
    /// The data folder was removed or moved while the engine runs.
    folder_gone: AtomicBool,
    /// Nothing new is begun: the collector ends.
    closing: AtomicBool,
    /// Everything is decided and written: the flusher and the compactor end.
    stopping: AtomicBool,
    background: background::Signals,
    collector: Mutex<Collector>,
    /// Bytes of small contents that wait for their commits.
    waiting_bytes: Arc<Counter>,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    commits: Counter,
    refusals: Counter,
    batches: Counter,
    syncs: Counter,
    log_bytes: Counter,
    segments_collected: Counter,
    bytes_moved: Counter,
    collection_failures: Counter,
    segments_failing: Counter,
    paused_micros: Counter,
}

impl EmbeddedEngine {
    /// Opens the folder, recovers what the log holds, and starts.
    pub fn open(path: &Path, options: Options) -> Result<Arc<EmbeddedEngine>, OpenError> {
        let inner = Arc::new(recovery::open(path, options)?);
        let engine = Arc::new(EmbeddedEngine { inner, threads: Mutex::new(Some(Threads::default())) });
        match engine.start() {
            Ok(()) => Ok(engine),
            Err(error) => {
                // Those that run end with the engine.
                engine.inner.pipeline.break_down();
                Err(folder::io_error("cannot start a thread")(error))
            }
        }
    }

    fn start(&self) -> std::io::Result<()> {
        let mut threads = self.threads.lock().expect("nothing panics under this lock");
        let threads = threads.get_or_insert_default();
        threads.tidying = background::start(&self.inner)?;
        threads.deciding = pipeline::start(&self.inner)?;
        threads.deciding.push(background::start_collector(&self.inner)?);
        Ok(())
    }

    /// Stops all threads in good order. Idempotent.
    fn stop(&self) -> Result<(), EngineError> {
        let Some(threads) = self.threads.lock().expect("nothing panics under this lock").take() else { return Ok(()) };
        let inner = &self.inner;
        inner.pipeline.close();
        inner.guests.close();
        for (ends, threads) in [(&inner.closing, threads.deciding), (&inner.stopping, threads.tidying)] {
            ends.store(true, Ordering::Release);
            inner.background.wake_all();
            for thread in threads {
                // A thread that panicked has said so.
                let _ = thread.join();
            }
        }
        // A round that another call has asked for ends first.
        let mut collector = collect::lock(inner);
        if !inner.pipeline.is_broken() {
            collect::unlink_dropped(inner, &mut collector);
        }
        background::finish(inner).map_err(|error| EngineError::Unavailable(format!("closing: {error}")))
    }

    /// Runs one round of the collector. For tests.
    pub fn collect_now(&self) -> Result<(), EngineError> {
        collect::run(&self.inner, Pace::Everything);
        if self.inner.pipeline.is_broken() { Err(EngineError::Closed) } else { Ok(()) }
    }
}

impl Drop for EmbeddedEngine {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

impl Engine for EmbeddedEngine {
    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        let in_place = self.inner.refuse_without_folder();
        let waiting = in_place.and_then(|()| self.inner.pipeline.submit(decision, self.inner.options.waiting_max));
        Box::pin(async move { waiting?.await.unwrap_or(Err(EngineError::Closed)) })
    }

    fn query(&self, mut query: Box<dyn Query>) -> BoxFuture<'_, Result<(), EngineError>> {
        let answer = match self.inner.run(&mut *query, Patience::OnlyAtHand) {
            Err(Unread::NotYet) => None,
            answer => Some(answer),
        };
        let door = Door::to(&self.inner);
        Box::pin(async move {
            let answer = match answer {
                Some(answer) => answer,
                None => sync::beside_the_runtime(move || door.enter()?.run(&mut *query, Patience::Waits)).await?,
            };
            answer.map_err(|unread| match unread {
                Unread::Failed(error) => error,
                Unread::NotYet => EngineError::Unavailable("a row was not at hand".into()),
            })
        })
    }

    fn writer(&self, length: Option<u64>) -> Box<dyn ContentWriter> {
        Box::new(Writer::new(&self.inner, length))
    }

    fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    fn advance_clock(&self, seconds: u64) -> BoxFuture<'_, Result<u64, EngineError>> {
        Box::pin(async move {
            let key = Key::new(space::CLOCK).text("offset");
            let moved = engine::commit::<u64, std::convert::Infallible, _>(self, key.clone(), move |rows, _| {
                let offset = stored_number(rows.get(&key)?).saturating_add(seconds);
                let mut changes = Changes::none();
                changes.put(key.clone(), Bytes::copy_from_slice(&offset.to_be_bytes()));
                Ok(Commit { changes, outcome: offset })
            });
            match moved.await {
                Ok(offset) => {
                    self.inner.clock.raise_offset(offset);
                    Ok(offset)
                }
                Err(engine::NotCommitted::Failed(error)) => Err(error),
                Err(engine::NotCommitted::Refused(never)) => match never {},
            }
        })
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let counters = &self.inner.counters;
        let load = |counter: &Counter| counter.load(Ordering::Relaxed);
        let live = self.inner.live.lock().expect("nothing panics under this lock").values().sum();
        let mut figures = vec![
            ("commits", load(&counters.commits)),
            ("refusals", load(&counters.refusals)),
            ("batches", load(&counters.batches)),
            ("syncs", load(&counters.syncs)),
            ("log_bytes_written", load(&counters.log_bytes)),
            ("segments", self.inner.segments.all().len() as u64),
            ("small_contents_bytes", self.inner.small_contents.bytes()),
            ("segment_files_open", self.inner.folder.segment_files().open()),
            ("segments_collected", load(&counters.segments_collected)),
            ("bytes_moved", load(&counters.bytes_moved)),
            ("collection_failures", load(&counters.collection_failures)),
            ("segments_failing", load(&counters.segments_failing)),
            ("paused_microseconds", load(&counters.paused_micros)),
            ("content_bytes", live),
            ("waiting_bytes", load(&self.inner.waiting_bytes)),
            ("disk_full", u64::from(self.inner.space.is_full())),
            ("folder_gone", u64::from(self.inner.folder_gone.load(Ordering::Relaxed))),
        ];
        figures.extend(self.inner.tree.figures());
        figures
    }

    fn close(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        let answer = self.stop();
        Box::pin(async move { answer })
    }
}

/// A row that holds one number; absent counts as zero.
fn stored_number(row: Option<Bytes>) -> u64 {
    row.and_then(|row| row.as_ref().try_into().ok().map(u64::from_be_bytes)).unwrap_or(0)
}

/// Whether a reader may wait for the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Patience {
    Waits,
    /// It is on a worker of the runtime, whose other tasks would wait with it. What is not in memory is `NotYet`.
    OnlyAtHand,
}

/// One durable state, for a reader.
struct Snapshot<'a> {
    inner: &'a Arc<Inner>,
    pin: Pin<'a>,
    patience: Patience,
    /// How many rows scans may still visit, and of how many bytes.
    left: Cell<usize>,
    left_bytes: Cell<usize>,
}

impl<'a> Snapshot<'a> {
    fn new(inner: &'a Arc<Inner>, patience: Patience) -> Snapshot<'a> {
        let (rows, bytes) = match patience {
            Patience::Waits => (usize::MAX, usize::MAX),
            Patience::OnlyAtHand => (ROWS_ON_A_WORKER, ROW_BYTES_ON_A_WORKER),
        };
        Snapshot { inner, pin: inner.tree.pin(), patience, left: Cell::new(rows), left_bytes: Cell::new(bytes) }
    }

    /// Counts a row that a scan visits. `None`: it is one too many.
    fn look(&self, bytes: usize) -> Option<()> {
        self.left.set(self.left.get().checked_sub(1)?);
        self.left_bytes.set(self.left_bytes.get().checked_sub(bytes)?);
        Some(())
    }

    fn row(&self, key: &[u8]) -> Result<Option<Bytes>, Unread> {
        match self.patience {
            Patience::Waits => Ok(self.inner.get(key, self.pin.at)?),
            Patience::OnlyAtHand => self.inner.get_at_hand(key, self.pin.at).ok_or(Unread::NotYet),
        }
    }
}

impl Rows for Snapshot<'_> {
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Unread> {
        self.row(key.as_bytes())
    }

    fn scan(
        &self,
        from: &Key,
        to: &Key,
        about: usize,
        visit: &mut dyn FnMut(&[u8], &Bytes) -> Visit,
    ) -> Result<(), Unread> {
        let (from, to) = (from.as_bytes(), to.as_bytes());
        let tree = &self.inner.tree;
        // Most due rows in memory have been removed: a scan walks over many of them and visits few.
        let is_long = about > self.left.get() || from.first() == Some(&space::DUE);
        if self.patience == Patience::OnlyAtHand && (is_long || tree.is_on_disk(from, to)) {
            return Err(Unread::NotYet);
        }
        // However few it expects: a filter that matches nothing looks at every row there is.
        let mut is_over = false;
        tree.scan(from, to, self.pin.at, &mut |key, value| match self.look(key.len() + value.len()) {
            Some(()) => visit(key, value),
            None => {
                is_over = true;
                Visit::Stop
            }
        })?;
        if is_over { Err(Unread::NotYet) } else { Ok(()) }
    }

    fn content(&self, id: ContentId) -> Result<Content, Unread> {
        contents::open(self.inner, id, |key| self.row(key))
    }
}

impl Inner {
    /// Runs a query on the newest durable state.
    fn run(self: &Arc<Self>, query: &mut dyn Query, patience: Patience) -> Result<(), Unread> {
        query.run(&Snapshot::new(self, patience), self.clock.now())
    }

    /// A row as of state `at`, from the cache if it is there.
    fn get(&self, key: &[u8], at: u64) -> Result<Option<Bytes>, EngineError> {
        let hash = self.cache.hash(key);
        if let Some(known) = self.cache.get(key, hash, at) {
            return Ok(known);
        }
        let value = self.tree.get(key, at)?;
        if at != tree::NEWEST {
            self.cache.learned(key, hash, value.as_ref(), at);
        }
        Ok(value)
    }

    /// The same, if that is known without the disk: `Some(row or absence)`.
    fn get_at_hand(&self, key: &[u8], at: u64) -> Option<Option<Bytes>> {
        let hash = self.cache.hash(key);
        if let Some(known) = self.cache.get(key, hash, at) {
            return Some(known);
        }
        let value = self.tree.get_at_hand(key, at)?;
        self.cache.learned(key, hash, value.as_ref(), at);
        Some(value)
    }

    /// Looks at the disk. Returns how much can be written, the reserve included; if that is not known, there is no limit.
    fn look_at_space(&self) -> u64 {
        self.space.look(&self.folder, self.tree.unwritten_bytes()).unwrap_or(u64::MAX)
    }

    /// Whether so much can be written, the reserve included.
    fn has_room_for(&self, bytes: u64) -> bool {
        self.look_at_space() > bytes
    }

    /// Whether a growing write of so many bytes may be made.
    fn takes(&self, bytes: u64) -> bool {
        self.space.takes(&self.folder, bytes, || self.tree.unwritten_bytes())
    }

    /// Whether the collector may copy so much: it leaves a part of the reserve to logs, flushes and STATE.
    fn has_room_to_move(&self, bytes: u64) -> bool {
        self.has_room_for(bytes.saturating_add(self.space.kept_from_the_collector()))
    }

    /// Nothing is acknowledged that would go with the last open file.
    fn refuse_without_folder(&self) -> Result<(), EngineError> {
        if self.folder_gone.load(Ordering::Acquire) {
            let why = format!("the data folder {} was removed or moved", self.folder.path().display());
            return Err(EngineError::Unavailable(why));
        }
        Ok(())
    }

    fn fatal(&self, why: &str) {
        tracing::error!(why, "the engine cannot go on");
        self.pipeline.break_down();
        (self.options.on_fatal.0)(why);
    }
}

/// Starts a thread that the engine cannot do without: if it panics, the engine breaks down in sight.
fn supervise(
    inner: &Arc<Inner>,
    name: &'static str,
    work: impl FnOnce(&Arc<Inner>) + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let inner = Arc::clone(inner);
    sync::spawn(name, move || {
        if let Err(why) = sync::caught(|| work(&inner)) {
            inner.fatal(&format!("the {name} panicked: {why}"));
        }
    })
}

fn fill_random(bytes: &mut [u8], probe: &Probe) -> Result<(), EngineError> {
    let filled = probe.at(Moment::Entropy).and_then(|()| sync::fill_random(bytes));
    filled.map_err(|error| EngineError::Unavailable(format!("the system gives no randomness: {error}")))
}
