//! The decider and the committer.
//!
//! The decider takes what waits, partition by partition in turn, and fills a batch. The committer appends the batch,
//! syncs, publishes and answers everybody in it. While one batch syncs the next is decided; as soon as the sync returns
//! the next goes. So one sync serves everything that waited, and a hot partition is batched, not limited by the disk.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use engine::{
    Changes, Content, ContentId, Decision, EngineError, Key, Part, Rows, Tick, Timestamp, Unread, Verdict, Visit,
};
use tokio::sync::oneshot;

use crate::background::EndedLog;
use crate::batch::BatchBuilder;
use crate::manifest::{Manifest, Place, content_key, is_content_key, segment_key};
use crate::segment::{PAGE, Segment, page_up};
use crate::sync::{self, Condvar, Instant, JoinHandle, Mutex, MutexGuard};
use crate::tree::NEWEST;
use crate::{Durability, Inner, Snapshot, contents};

/// A batch is closed at this size, so that no sync grows without bound.
const BATCH_BYTES: usize = 4 << 20;
/// How many decisions are taken from the queue at a time.
const TAKE: usize = 64;
/// In relaxed durability the log is synced this often.
const RELAXED_SYNC: Duration = Duration::from_millis(100);
/// A decision that looks at more rows than this in its turn is run outside, on a snapshot, and only checked in its turn.
const ROWS_IN_TURN_MAX: usize = 1_000;
/// After so many tries outside that others overtook, a decision is run in its turn however long it takes.
const TRIES_OUTSIDE: u32 = 3;
/// Growing writes leave this much of the log to deletes when no new log can be made.
const LOG_ROOM_FOR_DELETES: u64 = 1 << 20;

type Answer = Result<(), EngineError>;

struct Request {
    decision: Box<dyn Decision>,
    answer: oneshot::Sender<Answer>,
    /// How often it was run outside.
    tries: u32,
    /// What it decided outside.
    prepared: Option<Prepared>,
}

/// A decision that was run on a snapshot. It holds if nothing it looked at has changed since.
struct Prepared {
    verdict: Verdict,
    stamp: Timestamp,
    at: u64,
    keys: Vec<Key>,
}

/// What waits, and who works on it.
#[derive(Debug, Default)]
pub struct Pipeline {
    state: Mutex<State>,
    decider: Condvar,
    committer: Condvar,
    outside: Condvar,
}

#[derive(Default)]
struct State {
    /// Decisions to be run outside, and how many are there or being run.
    heavy: VecDeque<Request>,
    heavy_count: usize,
    waiting: Waiting,
    /// Decided and ready to be written.
    handed_over: Option<Closed>,
    committer_idle: bool,
    closing: bool,
    broken: bool,
    decider_done: bool,
    /// The log, where it ends, and the number of the batch that would come next, once the decider is done.
    log_end: (Option<Arc<Segment>>, u64, u64),
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("waiting", &self.waiting.count).field("closing", &self.closing).finish()
    }
}

/// Requests by partition, served in turn: one partition's crowd does not hold the others up.
#[derive(Default)]
struct Waiting {
    by_partition: HashMap<Key, VecDeque<Request>>,
    turns: VecDeque<Key>,
    count: usize,
}

impl Waiting {
    fn push(&mut self, request: Request) {
        self.count += 1;
        let partition = request.decision.partition().clone();
        let line = self.by_partition.entry(partition.clone()).or_default();
        if line.is_empty() {
            self.turns.push_back(partition);
        }
        line.push_back(request);
    }

    fn pop(&mut self) -> Option<Request> {
        let partition = self.turns.pop_front()?;
        let line = self.by_partition.get_mut(&partition)?;
        let request = line.pop_front()?;
        if line.is_empty() {
            self.by_partition.remove(&partition);
        } else {
            self.turns.push_back(partition);
        }
        self.count -= 1;
        Some(request)
    }
}

impl Pipeline {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics under this lock")
    }

    pub fn submit(&self, decision: Box<dyn Decision>, most: usize) -> Result<oneshot::Receiver<Answer>, EngineError> {
        let (answer, waiting) = oneshot::channel();
        let mut state = self.lock();
        if state.closing || state.broken {
            return Err(EngineError::Closed);
        }
        if state.waiting.count >= most {
            return Err(EngineError::Busy);
        }
        state.waiting.push(Request { decision, answer, tries: 0, prepared: None });
        drop(state);
        self.decider.notify_one();
        Ok(waiting)
    }

    /// Takes no more, finishes what waits.
    pub fn close(&self) {
        self.lock().closing = true;
        self.decider.notify_one();
        self.committer.notify_one();
    }

    pub fn is_broken(&self) -> bool {
        self.lock().broken
    }

    /// The last log, where it ends, and the number of the batch that would come next. Only after an orderly stop.
    pub fn log_end(&self) -> (Option<Arc<Segment>>, u64, u64) {
        self.lock().log_end.clone()
    }

    /// Takes no more and answers nobody: what is undecided is unknown.
    pub fn break_down(&self) {
        let mut state = self.lock();
        state.broken = true;
        state.waiting = Waiting::default();
        state.heavy.clear();
        drop(state);
        self.decider.notify_one();
        self.committer.notify_one();
        self.outside.notify_one();
    }
}

/// A batch that is complete.
struct Closed {
    segment: Arc<Segment>,
    builder: BatchBuilder,
    answers: Vec<(oneshot::Sender<Answer>, Answer)>,
    /// Nothing to write: the answers only wait for what came before.
    is_empty: bool,
    /// The log segment ends with this batch.
    ends_segment: bool,
}

pub fn start(inner: &Arc<Inner>) -> io::Result<Vec<JoinHandle<()>>> {
    let (for_decider, for_committer, for_outside) = (Arc::clone(inner), Arc::clone(inner), Arc::clone(inner));
    let log = inner.background.take_first_log();
    let decider = sync::spawn("decider", move || Decider::new(for_decider, log.0, log.1).run())?;
    let number = log.1;
    let committer = Committer { inner: for_committer, synced_through: number - 1, unsynced: None };
    let committer = sync::spawn("committer", move || committer.run())?;
    let outside = sync::spawn("outside", move || run_outside(&for_outside))?;
    Ok(vec![decider, committer, outside])
}

/// Runs decisions that look at many rows, so that nobody waits for them.
fn run_outside(inner: &Arc<Inner>) {
    while let Some(mut request) = next_heavy(inner) {
        let now = inner.clock.now();
        let mut bytes = [0; 16];
        let entropy = sync::fill_random(&mut bytes).map_or(0, |()| u128::from_le_bytes(bytes));
        let tick = Tick { now, stamp: inner.stamps.next(now), entropy };
        let rows = Outside { snapshot: Snapshot { inner, pin: inner.tree.pin() }, keys: RefCell::default() };
        let verdict = run(&mut request.decision, &rows, tick);
        request.tries += 1;
        request.prepared =
            Some(Prepared { verdict, stamp: tick.stamp, at: rows.snapshot.pin.at, keys: rows.keys.into_inner() });
        let mut state = inner.pipeline.lock();
        state.heavy_count -= 1;
        if !state.broken {
            state.waiting.push(request);
        }
        drop(state);
        inner.pipeline.decider.notify_one();
    }
}

fn next_heavy(inner: &Inner) -> Option<Request> {
    let mut state = inner.pipeline.lock();
    loop {
        if state.broken {
            return None;
        }
        if let Some(request) = state.heavy.pop_front() {
            return Some(request);
        }
        if state.decider_done {
            return None;
        }
        state = inner.pipeline.outside.wait(state).expect("nothing panics under this lock");
    }
}

/// A decision that panics is a fault of the service; it must not take everybody's engine with it.
fn run(decision: &mut Box<dyn Decision>, rows: &dyn Rows, tick: Tick) -> Verdict {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| decision.decide(rows, tick)))
        .unwrap_or_else(|_| Verdict::Unread(Unread::Failed(EngineError::Unavailable("a decision panicked".into()))))
}

/// Runs decisions in order and fills batches.
struct Decider {
    inner: Arc<Inner>,
    log: Arc<Segment>,
    /// Where the next batch will stand.
    offset: u64,
    /// Up to here the log was written out ahead; beyond it syncs cost more.
    log_limit: u64,
    number: u64,
    open: Option<Open>,
    entropy: Entropy,
}

/// The batch being filled.
struct Open {
    builder: BatchBuilder,
    answers: Vec<(oneshot::Sender<Answer>, Answer)>,
    /// Segments whose live bytes this batch changes.
    touched: Vec<u64>,
    is_empty: bool,
}

impl Decider {
    fn new(inner: Arc<Inner>, log: Arc<Segment>, number: u64) -> Decider {
        let log_limit = log.len().unwrap_or(0).max(PAGE);
        Decider { inner, log, offset: PAGE, log_limit, number, open: None, entropy: Entropy::default() }
    }

    fn run(mut self) {
        while self.step() {}
        let mut state = self.inner.pipeline.lock();
        state.decider_done = true;
        state.log_end = (Some(Arc::clone(&self.log)), self.offset, self.number);
        self.inner.pipeline.outside.notify_one();
        self.inner.pipeline.committer.notify_one();
    }

    /// Hands over, takes, or waits. `false`: all done.
    fn step(&mut self) -> bool {
        let inner = Arc::clone(&self.inner);
        let mut state = inner.pipeline.lock();
        loop {
            if state.broken {
                return false;
            }
            if state.committer_idle && self.open.is_some() {
                state.committer_idle = false;
                drop(state);
                self.hand_over();
                return true;
            }
            let has_room = self.open.as_ref().is_none_or(|open| open.builder.len() < BATCH_BYTES);
            if state.waiting.count > 0 && has_room {
                let taken: Vec<Request> = std::iter::from_fn(|| state.waiting.pop()).take(TAKE).collect();
                drop(state);
                taken.into_iter().for_each(|request| self.decide(request));
                return true;
            }
            if state.closing && state.waiting.count == 0 && state.heavy_count == 0 && self.open.is_none() {
                return false;
            }
            state = inner.pipeline.decider.wait(state).expect("nothing panics under this lock");
        }
    }

    /// The committer is free: gives it the batch.
    fn hand_over(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        self.note_live_bytes(&mut open);
        let is_empty = open.is_empty;
        let seq = open.builder.seq;
        if !is_empty {
            self.offset = page_up(self.offset + open.builder.len() as u64);
            self.number += 1;
        }
        let next_log = if is_empty { None } else { self.next_log() };
        let closed = Closed {
            segment: Arc::clone(&self.log),
            builder: open.builder,
            answers: open.answers,
            is_empty,
            ends_segment: next_log.is_some(),
        };
        self.inner.pipeline.lock().handed_over = Some(closed);
        self.inner.pipeline.committer.notify_one();
        if let Some(next) = next_log {
            self.turn_over(next, seq);
        }
    }

    /// A fresh log, if the present one or the memtable is full and there is a fresh one.
    fn next_log(&self) -> Option<Arc<Segment>> {
        let options = &self.inner.options;
        let full = self.offset >= self.log_limit || self.inner.tree.memtable_bytes() >= options.memtable_bytes;
        if full { self.inner.background.take_spare() } else { None }
    }

    /// Ends the log and the memtable together, at a moment when all they hold is durable.
    fn turn_over(&mut self, next: Arc<Segment>, last_seq: u64) {
        let inner = Arc::clone(&self.inner);
        let mut state = inner.pipeline.lock();
        while !state.committer_idle && !state.broken {
            state = inner.pipeline.decider.wait(state).expect("nothing panics under this lock");
        }
        drop(state);
        while inner.tree.is_behind() && !inner.pipeline.lock().broken {
            inner.background.wake_all();
            sync::sleep(Duration::from_millis(2));
        }
        inner.tree.rotate();
        let old = std::mem::replace(&mut self.log, next);
        inner.background.log_ended(EndedLog {
            log: old,
            length: self.offset,
            next_log: self.log.id,
            next_batch: self.number,
            last_seq,
            stamp: inner.stamps.last().0,
        });
        self.offset = PAGE;
        self.log_limit = self.log.len().unwrap_or(0).max(PAGE);
    }

    fn open_batch(&mut self) -> &mut Open {
        let (log, offset, number) = (self.log.id, self.offset, self.number);
        let inner = &self.inner;
        self.open.get_or_insert_with(|| Open {
            builder: BatchBuilder::new(log, offset, number, inner.tree.next_seq()),
            answers: Vec::new(),
            touched: Vec::new(),
            is_empty: true,
        })
    }

    fn decide(&mut self, mut request: Request) {
        let (verdict, stamp) = match request.prepared.take() {
            Some(prepared) if self.still_holds(&request, &prepared) => (prepared.verdict, prepared.stamp),
            _ => {
                let now = self.inner.clock.now();
                let tick = Tick { now, stamp: self.inner.stamps.next(now), entropy: self.entropy.next() };
                let inner = Arc::clone(&self.inner);
                let budget = if request.tries < TRIES_OUTSIDE { ROWS_IN_TURN_MAX } else { usize::MAX };
                let rows = Newest { inner: &inner, left: Cell::new(budget) };
                let verdict = run(&mut request.decision, &rows, tick);
                if matches!(verdict, Verdict::Unread(Unread::NotYet)) && rows.left.get() == 0 {
                    return self.send_outside(request);
                }
                (verdict, tick.stamp)
            }
        };
        let partition = self.inner.cache.slot_of(request.decision.partition().as_bytes());
        let answer = match verdict {
            Verdict::Commit(changes) => self.apply(changes, stamp, partition),
            Verdict::Refuse => {
                self.inner.counters.refusals.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Verdict::Unread(Unread::Failed(error)) => Err(error),
            Verdict::Unread(Unread::NotYet) => Err(EngineError::Unavailable("a row was not at hand".into())),
        };
        // A refusal is an answer too: it goes out with the batch whose writes it may have been decided on.
        self.open_batch().answers.push((request.answer, answer));
    }

    fn send_outside(&self, request: Request) {
        let mut state = self.inner.pipeline.lock();
        state.heavy_count += 1;
        state.heavy.push_back(request);
        drop(state);
        self.inner.pipeline.outside.notify_one();
    }

    /// Whether nobody has written to the partition, or to a row it looked at, since the decision was run outside.
    fn still_holds(&self, request: &Request, prepared: &Prepared) -> bool {
        let cache = &self.inner.cache;
        let partition =
            self.inner.partitions[cache.slot_of(request.decision.partition().as_bytes())].load(Ordering::Acquire);
        partition < prepared.at && prepared.keys.iter().all(|key| cache.last_written(key.as_bytes()) < prepared.at)
    }

    /// Everything that can fail is done before the first row is written: a decision is in the batch whole or not at all.
    fn apply(&mut self, changes: Changes, stamp: Timestamp, partition: usize) -> Answer {
        changes.validate()?;
        if changes.is_empty() {
            return Ok(());
        }
        if !changes.frees_space && self.is_full() {
            return Err(EngineError::Full);
        }
        let dropped = self.dropped_rows(&changes)?;
        let mut writes = stored_rows(&changes);
        writes.extend(changes.rows);
        writes.extend(dropped.into_iter().map(|key| (key, None)));
        let mut live = Vec::new();
        for (key, value) in writes.iter().filter(|(key, _)| is_content_key(key.as_bytes())) {
            let old = self.inner.get(key.as_bytes(), NEWEST)?;
            note_places(old.as_ref(), -1, &mut live)?;
            note_places(value.as_ref(), 1, &mut live)?;
        }
        let open = self.open_batch();
        open.builder.stamp = open.builder.stamp.max(stamp.0);
        let seq = open.builder.seq;
        self.inner.partitions[partition].store(seq, Ordering::Release);
        for staged in &changes.contents {
            if let Part::Inline(bytes) = staged.part() {
                let manifest = self.place_inline(staged.id(), bytes);
                live.extend(manifest.places.iter().map(|place| (place.segment, i64::from(place.length))));
                self.write(content_key(staged.id(), 0).as_bytes(), Some(manifest.encode()));
            }
        }
        for (key, value) in writes {
            self.write(key.as_bytes(), value);
        }
        self.count_live(&live);
        self.open_batch().is_empty = false;
        self.inner.counters.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Below the reserve, or no new log could be made and this one must last for the deletes.
    fn is_full(&self) -> bool {
        let log_is_short = self.offset + LOG_ROOM_FOR_DELETES > self.inner.options.log_bytes.max(8 << 20) * 2;
        self.inner.disk_full.load(Ordering::Acquire) || log_is_short
    }

    fn dropped_rows(&self, changes: &Changes) -> Result<Vec<Key>, EngineError> {
        let mut keys = Vec::new();
        for id in &changes.dropped {
            let Some(first) = self.inner.get(content_key(*id, 0).as_bytes(), NEWEST)? else { continue };
            let rows = Manifest::decode(&first)?.rows;
            keys.extend((0..rows).map(|row| content_key(*id, row)));
        }
        Ok(keys)
    }

    fn place_inline(&mut self, id: ContentId, bytes: &Bytes) -> Manifest {
        let segment = self.log.id;
        let crc = crc32c::crc32c(bytes);
        let offset = self.open_batch().builder.add_content(id.0, bytes, crc);
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let place = Place { segment, offset, length, sums: Place::sums_of(bytes) };
        let places = if bytes.is_empty() { vec![] } else { vec![place] };
        Manifest { length: bytes.len() as u64, rows: 1, places }
    }

    /// One row into the batch, the cache and the tree.
    fn write(&mut self, key: &[u8], value: Option<Bytes>) {
        let inner = Arc::clone(&self.inner);
        let open = self.open_batch();
        open.builder.add_row(key, value.as_deref());
        let seq = open.builder.seq;
        inner.cache.written(key, value.as_ref(), seq);
        inner.tree.insert(key, value, seq);
    }

    fn count_live(&mut self, changes: &[(u64, i64)]) {
        let inner = Arc::clone(&self.inner);
        let mut live = inner.live.lock().expect("nothing panics under this lock");
        for (segment, change) in changes {
            let bytes = live.entry(*segment).or_default();
            *bytes = bytes.saturating_add_signed(*change);
            let touched = &mut self.open_batch().touched;
            if !touched.contains(segment) {
                touched.push(*segment);
            }
        }
    }

    /// The live bytes of the segments this batch touched become rows of the same batch.
    fn note_live_bytes(&self, open: &mut Open) {
        let live = self.inner.live.lock().expect("nothing panics under this lock");
        for segment in std::mem::take(&mut open.touched) {
            let bytes = Bytes::copy_from_slice(&live.get(&segment).copied().unwrap_or(0).to_be_bytes());
            let key = segment_key(segment);
            open.builder.add_row(key.as_bytes(), Some(&bytes));
            self.inner.cache.written(key.as_bytes(), Some(&bytes), open.builder.seq);
            self.inner.tree.insert(key.as_bytes(), Some(bytes), open.builder.seq);
        }
    }
}

/// The rows of contents that are in the byte store already.
fn stored_rows(changes: &Changes) -> Vec<(Key, Option<Bytes>)> {
    let mut writes = Vec::with_capacity(changes.rows.len() + 2);
    for staged in &changes.contents {
        if let Part::Placed { rows, .. } = staged.part() {
            let numbered = (0_u32..).zip(rows.iter());
            writes.extend(numbered.map(|(number, row)| (content_key(staged.id(), number), Some(row.clone()))));
        }
    }
    writes
}

/// How a row that holds places changes the live bytes of their segments.
fn note_places(row: Option<&Bytes>, sign: i64, live: &mut Vec<(u64, i64)>) -> Answer {
    if let Some(row) = row {
        let places = Manifest::decode(row)?.places;
        live.extend(places.iter().map(|place| (place.segment, sign * i64::from(place.length))));
    }
    Ok(())
}

/// What the decider sees: everything decided so far, durable or not; as many rows as one may look at in one's turn.
struct Newest<'a> {
    inner: &'a Arc<Inner>,
    left: Cell<usize>,
}

impl Newest<'_> {
    fn look(&self) -> Result<(), Unread> {
        self.left.set(self.left.get().saturating_sub(1));
        if self.left.get() == 0 { Err(Unread::NotYet) } else { Ok(()) }
    }
}

impl Rows for Newest<'_> {
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Unread> {
        self.look()?;
        Ok(self.inner.get(key.as_bytes(), NEWEST)?)
    }

    fn scan(
        &self,
        from: &Key,
        to: &Key,
        _about: usize,
        visit: &mut dyn FnMut(&[u8], &Bytes) -> Visit,
    ) -> Result<(), Unread> {
        self.look()?;
        let mut looked = Ok(());
        self.inner.tree.scan(from.as_bytes(), to.as_bytes(), NEWEST, &mut |key, value| {
            looked = self.look();
            if looked.is_ok() { visit(key, value) } else { Visit::Stop }
        })?;
        looked
    }

    fn content(&self, id: ContentId) -> Result<Content, Unread> {
        self.look()?;
        Ok(contents::open(self.inner, id, NEWEST)?)
    }
}

/// What a decision sees that is run outside: the newest durable state. What it looks at is noted.
struct Outside<'a> {
    snapshot: Snapshot<'a>,
    keys: RefCell<Vec<Key>>,
}

impl Rows for Outside<'_> {
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Unread> {
        self.keys.borrow_mut().push(key.clone());
        self.snapshot.get(key)
    }

    fn scan(
        &self,
        from: &Key,
        to: &Key,
        about: usize,
        visit: &mut dyn FnMut(&[u8], &Bytes) -> Visit,
    ) -> Result<(), Unread> {
        self.snapshot.scan(from, to, about, visit)
    }

    fn content(&self, id: ContentId) -> Result<Content, Unread> {
        self.snapshot.content(id)
    }
}

/// What the committer does next.
enum Step {
    Commit(Box<Closed>),
    /// What was acknowledged before it was durable has waited long enough.
    Sync,
}

/// Makes batches durable.
struct Committer {
    inner: Arc<Inner>,
    synced_through: u64,
    /// In relaxed durability: the log that is written but not synced, its last batch, and since when.
    unsynced: Option<(Arc<Segment>, u64, Instant)>,
}

impl Committer {
    fn run(mut self) {
        while let Some(step) = self.next() {
            let done = match step {
                Step::Commit(closed) => self.commit(*closed),
                Step::Sync => self.sync_rest(),
            };
            if let Err(error) = done {
                return self.inner.fatal(&format!("the log cannot be written: {error}"));
            }
        }
        if let Err(error) = self.sync_rest() {
            self.inner.fatal(&format!("the log cannot be synced: {error}"));
        }
    }

    /// What to do next; `None` at the end.
    fn next(&self) -> Option<Step> {
        let pipeline = &self.inner.pipeline;
        let mut state = pipeline.lock();
        loop {
            if state.broken {
                return None;
            }
            let patience = self.unsynced.as_ref().map(|(_, _, since)| RELAXED_SYNC.saturating_sub(since.elapsed()));
            if patience.is_some_and(|patience| patience.is_zero()) {
                return Some(Step::Sync);
            }
            if let Some(closed) = state.handed_over.take() {
                return Some(Step::Commit(Box::new(closed)));
            }
            if state.decider_done {
                return None;
            }
            if !state.committer_idle {
                state.committer_idle = true;
                pipeline.decider.notify_one();
            }
            let waited = match patience {
                Some(patience) => pipeline.committer.wait_timeout(state, patience).map(|(state, _)| state).ok(),
                None => pipeline.committer.wait(state).ok(),
            };
            state = waited.expect("nothing panics under this lock");
        }
    }

    fn commit(&mut self, closed: Closed) -> io::Result<()> {
        if closed.is_empty {
            answer(closed.answers);
            return Ok(());
        }
        let (seq, number, offset) = (closed.builder.seq, closed.builder.number, closed.builder.offset);
        let record = closed.builder.finish(self.synced_through);
        closed.segment.write_at(&record, offset)?;
        let full = self.inner.options.durability == Durability::Full;
        if full || closed.ends_segment {
            closed.segment.sync_now()?;
            self.inner.counters.syncs.fetch_add(1, Ordering::Relaxed);
            self.synced_through = number;
            self.unsynced = None;
        } else {
            let since = self.unsynced.take().map_or_else(Instant::now, |(_, _, since)| since);
            self.unsynced = Some((Arc::clone(&closed.segment), number, since));
        }
        self.inner.counters.batches.fetch_add(1, Ordering::Relaxed);
        self.inner.counters.log_bytes.fetch_add(record.len() as u64, Ordering::Relaxed);
        if self.unsynced.is_none() {
            self.inner.durable.store(seq + 1, Ordering::Release);
        }
        self.inner.tree.publish(seq);
        answer(closed.answers);
        if closed.ends_segment {
            self.inner.background.wake_all();
        }
        Ok(())
    }

    fn sync_rest(&mut self) -> io::Result<()> {
        let Some((segment, number, _)) = self.unsynced.take() else { return Ok(()) };
        // Nobody else publishes: this is all that has been written.
        let written = self.inner.tree.published();
        segment.sync_now()?;
        self.inner.durable.store(written, Ordering::Release);
        self.inner.counters.syncs.fetch_add(1, Ordering::Relaxed);
        self.synced_through = number;
        Ok(())
    }
}

fn answer(answers: Vec<(oneshot::Sender<Answer>, Answer)>) {
    for (waiting, answer) in answers {
        let _ = waiting.send(answer);
    }
}

/// Randomness from the system, a page at a time.
struct Entropy {
    pool: [u8; 4096],
    used: usize,
}

impl Default for Entropy {
    fn default() -> Entropy {
        Entropy { pool: [0; 4096], used: 4096 }
    }
}

impl Entropy {
    fn next(&mut self) -> u128 {
        if self.used == self.pool.len() {
            // Without randomness ids would repeat; there is nothing sensible to go on with.
            sync::fill_random(&mut self.pool).expect("the system gives randomness");
            self.used = 0;
        }
        let bytes = self.pool[self.used..self.used + 16].try_into().expect("sixteen bytes");
        self.used += 16;
        u128::from_le_bytes(bytes)
    }
}
