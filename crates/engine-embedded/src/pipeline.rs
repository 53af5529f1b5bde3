//! The decider and the committer.
//!
//! The decider takes what waits, partition by partition in turn, and fills a batch. The committer appends the batch,
//! syncs, publishes and answers all decisions in it. While one batch syncs the next is decided; as soon as the sync returns
//! the next goes. So one sync serves everything that waited, and a hot partition is batched, not limited by the disk.

mod newest;

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use engine::{
    Changes, ContentId, Decision, EngineError, Key, Part, Partitions, Rows, Tick, Timestamp, Unread, Verdict,
};
use newest::Newest;
use tokio::sync::oneshot;

use crate::background::{EndedLog, is_full, unavailable};
use crate::batch::{BatchBuilder, HEADER};
use crate::entropy::Entropy;
use crate::manifest::{ExtentPlace, Manifest, content_key, is_content_key, segment_key};
use crate::outside::{Footprint, RecentWrites, run_outside};
use crate::probe::Moment;
use crate::segment::{PAGE, Segment, page_up};
use crate::sole_owners::SoleOwners;
use crate::sync::{self, Condvar, Instant, JoinHandle, Mutex, MutexGuard};
use crate::tree::{NEWEST, Pressure};
use crate::{Durability, Inner, supervise};

/// A batch is closed at this size, so that no sync grows without bound.
const BATCH_BYTES: usize = 4 << 20;
/// While the decider pauses after its batches they are smaller, so that answers still go out at short intervals.
const BATCH_BYTES_UNDER_PRESSURE: usize = 256 << 10;
/// How much a log presses back that is about to outgrow its limit while the next one is not ready.
const PRESSURE_OF_THE_LOG_MAX: u64 = 60;
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

/// On a full disk a memtable is written out at this share of its size.
const MEMTABLE_SHARE_WHEN_FULL: u64 = 16;
/// A row is written to the log, written out, and compacted before the first of these copies goes.
const WRITTEN_TIMES: u64 = 3;

/// A log that has outgrown its length grows in such steps, if the disk has the room.
const LOG_STEP: u64 = 1 << 20;
/// A row of live bytes comes with a batch for each segment that it touches.
const LIVE_ROW_BYTES: u64 = 32;

type Answer = Result<(), EngineError>;

/// An answer that waits for its batch to be durable. The decision is kept as long: its service may hold something for it, and the
/// asker may be gone.
struct DueAnswer {
    decision: Box<dyn Decision>,
    waiting: oneshot::Sender<Answer>,
    answer: Answer,
}

pub struct Request {
    pub decision: Box<dyn Decision>,
    answer: oneshot::Sender<Answer>,
    /// How often it was run outside.
    pub tries: u32,
    /// A snapshot for it must hold this batch.
    pub after: u64,
    /// What it decided outside.
    pub prepared: Option<Prepared>,
}

/// A decision that was run on a snapshot. It holds if nothing it looked at has changed since.
pub struct Prepared {
    pub verdict: Verdict,
    pub stamp: Timestamp,
    pub at: u64,
    pub footprint: Footprint,
}

/// The decisions that wait, and the threads that work on them.
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
    /// Decisions that the decider has taken and neither decided nor sent outside. They count as waiting.
    taken: usize,
    waiting: Waiting,
    slot: Slot,
    /// The decider waits for the slot to be idle: without that the committer need not wake it.
    awaits_slot: bool,
    closing: bool,
    broken: bool,
    decider_done: bool,
    /// The log, where it ends, and the number of the batch that would come next, once the decider is done.
    log_end: (Option<Arc<Segment>>, u64, u64),
}

/// The one place through which a batch goes from the decider to the committer. The committer makes it `Idle` and takes
/// what is in it; the decider alone fills it, and only when it is `Idle`.
#[derive(Default)]
enum Slot {
    /// The committer works on the batch before.
    #[default]
    Busy,
    /// The committer waits for a batch, and all it was given is durable (in relaxed durability: written).
    Idle,
    /// A batch that the committer has not taken yet.
    Full(Box<Closed>),
}

impl Slot {
    fn is_idle(&self) -> bool {
        matches!(self, Slot::Idle)
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("waiting", &self.waiting.count).field("closing", &self.closing).finish()
    }
}

/// Requests by their partitions, served in turn: one partition's crowd does not hold the others up.
#[derive(Default)]
struct Waiting {
    by_partitions: HashMap<Partitions, VecDeque<Request>>,
    turns: VecDeque<Partitions>,
    count: usize,
}

impl Waiting {
    fn push(&mut self, request: Request) {
        self.count += 1;
        let partitions = request.decision.partitions().clone();
        let line = self.by_partitions.entry(partitions.clone()).or_default();
        if line.is_empty() {
            self.turns.push_back(partitions);
        }
        line.push_back(request);
    }

    fn pop(&mut self) -> Option<Request> {
        let partitions = self.turns.pop_front()?;
        let line = self.by_partitions.get_mut(&partitions)?;
        let request = line.pop_front()?;
        if line.is_empty() {
            self.by_partitions.remove(&partitions);
        } else {
            self.turns.push_back(partitions);
        }
        self.count -= 1;
        Some(request)
    }
}

impl Pipeline {
    /// A thread that panicked with this lock has broken the engine down, which is seen by `broken`.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(condition: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        condition.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    pub fn submit(&self, decision: Box<dyn Decision>, most: usize) -> Result<oneshot::Receiver<Answer>, EngineError> {
        let (answer, waiting) = oneshot::channel();
        let mut state = self.lock();
        if state.closing || state.broken {
            return Err(EngineError::Closed);
        }
        if state.waiting.count + state.taken + state.heavy_count >= most {
            return Err(EngineError::Busy);
        }
        state.waiting.push(Request { decision, answer, tries: 0, after: 0, prepared: None });
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

    /// Takes no more decisions and answers none: what has become of them is not known.
    pub fn break_down(&self) {
        let mut state = self.lock();
        state.broken = true;
        let dropped =
            (std::mem::take(&mut state.waiting), std::mem::take(&mut state.heavy), std::mem::take(&mut state.slot));
        drop(state);
        drop(dropped);
        self.decider.notify_one();
        self.committer.notify_one();
        self.outside.notify_one();
    }

    /// The next decision to be run outside; `None` at the end.
    pub fn next_heavy(&self) -> Option<Request> {
        let mut state = self.lock();
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
            state = Pipeline::wait(&self.outside, state);
        }
    }

    /// A decision was run outside and waits for its turn again.
    pub fn came_back(&self, request: Request) {
        let mut state = self.lock();
        state.heavy_count -= 1;
        if !state.broken {
            state.waiting.push(request);
        }
        drop(state);
        self.decider.notify_one();
    }

    /// Gives the committer a batch. It must be idle: whatever lay in the slot would be lost.
    fn hand_over(&self, closed: Closed) {
        let mut state = self.lock();
        if state.broken {
            return;
        }
        assert!(state.slot.is_idle(), "a batch was handed over before the committer was ready for it");
        state.slot = Slot::Full(Box::new(closed));
        drop(state);
        self.committer.notify_one();
    }

    /// Waits until all that was handed over is durable. `false`: it never will be.
    fn wait_until_idle(&self) -> bool {
        let mut state = self.lock();
        while !state.slot.is_idle() && !state.broken {
            state.awaits_slot = true;
            state = Pipeline::wait(&self.decider, state);
        }
        !state.broken
    }
}

/// A batch that is complete.
struct Closed {
    segment: Arc<Segment>,
    builder: BatchBuilder,
    answers: Vec<DueAnswer>,
    /// Nothing to write: the answers only wait for what came before.
    is_empty: bool,
    /// The log segment ends with this batch.
    ends_segment: bool,
}

pub fn start(inner: &Arc<Inner>) -> io::Result<Vec<JoinHandle<()>>> {
    let (log, number) = inner.background.take_first_log();
    let decider = supervise(inner, "decider", move |inner| Decider::new(Arc::clone(inner), log, number).run())?;
    let committer = supervise(inner, "committer", move |inner| {
        Committer { inner: Arc::clone(inner), synced_through: number - 1, unsynced: None }.run();
    })?;
    let outside = supervise(inner, "outside", run_outside)?;
    Ok(vec![decider, committer, outside])
}

/// A decision that panics is a fault of the service; the engine must go on for all others.
pub fn run(decision: &mut Box<dyn Decision>, rows: &dyn Rows, tick: Tick) -> Verdict {
    sync::caught(|| decision.decide(rows, tick)).unwrap_or_else(|why| {
        tracing::error!(why, "a decision panicked");
        Verdict::Unread(Unread::Failed(EngineError::Unavailable("a decision panicked".into())))
    })
}

/// Runs decisions in order and fills batches.
struct Decider {
    inner: Arc<Inner>,
    log: Arc<Segment>,
    /// Where the next batch will stand.
    offset: u64,
    /// Up to here the log was written out ahead; beyond it syncs cost more.
    log_limit: u64,
    /// Up to here the file has room; at least `log_limit`.
    log_room: u64,
    number: u64,
    open: Option<Open>,
    entropy: Entropy,
    /// The last batch that a row was written to.
    last_written: u64,
    recent: RecentWrites,
    sole_owners: SoleOwners,
    pressure: Pressure,
}

/// The batch being filled.
struct Open {
    builder: BatchBuilder,
    answers: Vec<DueAnswer>,
    /// Segments whose live bytes this batch changes.
    touched: BTreeSet<u64>,
    is_empty: bool,
}

impl Decider {
    fn new(inner: Arc<Inner>, log: Arc<Segment>, number: u64) -> Decider {
        let log_limit = log.len().unwrap_or(0).max(PAGE);
        let last_written = inner.tree.published().saturating_sub(1);
        Decider {
            inner,
            log,
            offset: PAGE,
            log_limit,
            log_room: log_limit,
            number,
            open: None,
            entropy: Entropy::default(),
            last_written,
            recent: RecentWrites::default(),
            sole_owners: SoleOwners::default(),
            pressure: Pressure::default(),
        }
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
        state.taken = 0;
        loop {
            if state.broken {
                return false;
            }
            if state.slot.is_idle() && self.open.is_some() {
                drop(state);
                return self.hand_over();
            }
            if state.waiting.count > 0 && self.takes_more() {
                let taken: Vec<Request> = std::iter::from_fn(|| state.waiting.pop()).take(TAKE).collect();
                state.taken = taken.len();
                drop(state);
                let _ = inner.options.probe.at(Moment::Decider);
                return taken.into_iter().all(|request| self.decide_in_room(request));
            }
            if state.closing && state.waiting.count == 0 && state.heavy_count == 0 && self.open.is_none() {
                return false;
            }
            state.awaits_slot = self.open.is_some();
            state = Pipeline::wait(&inner.pipeline.decider, state);
        }
    }

    /// Whether the batch takes more decisions.
    fn takes_more(&self) -> bool {
        let most = if self.pressure.is_zero() { BATCH_BYTES } else { BATCH_BYTES_UNDER_PRESSURE };
        self.open.as_ref().is_none_or(|open| open.builder.len() < most)
    }

    /// Decides, in the next batch if this one is full. `false`: the engine broke down.
    fn decide_in_room(&mut self, request: Request) -> bool {
        let has_room = self.takes_more() || (self.inner.pipeline.wait_until_idle() && self.hand_over());
        if has_room {
            self.decide(request);
        }
        has_room
    }

    /// The committer is free: gives it the batch. `false`: the engine broke down.
    fn hand_over(&mut self) -> bool {
        let Some(mut open) = self.open.take() else { return true };
        self.note_live_bytes(&mut open);
        let is_empty = open.is_empty;
        let seq = open.builder.seq;
        if !is_empty {
            self.offset = page_up(self.offset + open.builder.len() as u64);
            self.number += 1;
            // There was room for it. If not, it has made its own, and that must not be filled with zeroes again.
            debug_assert!(self.offset <= self.log_room, "room is made before a decision");
            self.log_room = self.log_room.max(self.offset);
        }
        // Also after a batch of refusals alone: they may be refusals because the log is too long.
        let next_log = if self.offset == PAGE { None } else { self.next_log() };
        let closed = Closed {
            segment: Arc::clone(&self.log),
            builder: open.builder,
            answers: open.answers,
            is_empty,
            ends_segment: next_log.is_some(),
        };
        let bytes = closed.builder.len();
        self.inner.pipeline.hand_over(closed);
        let turned = next_log.is_none_or(|next| self.turn_over(next, seq));
        self.press_back(if is_empty { 0 } else { bytes });
        turned
    }

    /// The further flushes, compaction or the next log are behind, the longer the decider pauses after what it has
    /// written. Every decision waits a little longer then; none waits for ever.
    fn press_back(&mut self, bytes: usize) {
        self.pressure = self.inner.tree.pressure() + self.pressure_of_the_log();
        let pause = self.pressure.pause_after(bytes);
        if !pause.is_zero() {
            self.inner.background.wake_all();
            self.inner
                .counters
                .paused_micros
                .fetch_add(u64::try_from(pause.as_micros()).unwrap_or(0), Ordering::Relaxed);
            sync::sleep(pause);
        }
    }

    /// The log has outgrown what was written out ahead, and the next one is not ready.
    fn pressure_of_the_log(&self) -> Pressure {
        let (over, room) = (self.offset.saturating_sub(self.log_limit), self.log_max().saturating_sub(self.log_limit));
        if over == 0 || self.inner.space.is_full() {
            return Pressure(0);
        }
        Pressure(usize::try_from(over * PRESSURE_OF_THE_LOG_MAX / room.max(1)).unwrap_or(usize::MAX >> 1))
    }

    /// Above this the log takes deletes only.
    fn log_max(&self) -> u64 {
        self.inner.options.log_bytes.max(8 << 20) * 2
    }

    /// A fresh log, if the present one or the memtable is full, there is a fresh one, and the tree takes another memtable.
    fn next_log(&self) -> Option<Arc<Segment>> {
        let (options, tree) = (&self.inner.options, &self.inner.tree);
        // On a full disk deletes are written out early: it is compaction that gives back the space of what they delete.
        let share = if self.inner.space.is_full() { MEMTABLE_SHARE_WHEN_FULL } else { 1 };
        let full = self.offset >= self.log_limit || tree.memtable_bytes() >= options.memtable_bytes / share;
        if full && tree.takes_a_memtable() { self.inner.background.take_spare() } else { None }
    }

    /// Ends the log and the memtable together, at a moment when all they hold is durable. `false`: that never comes.
    fn turn_over(&mut self, next: Arc<Segment>, last_seq: u64) -> bool {
        let inner = Arc::clone(&self.inner);
        if !inner.pipeline.wait_until_idle() {
            return false;
        }
        inner.tree.rotate(self.number);
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
        self.log_room = self.log_limit;
        true
    }

    fn open_batch(&mut self) -> &mut Open {
        let (log, offset, number) = (self.log.id, self.offset, self.number);
        let inner = &self.inner;
        self.open.get_or_insert_with(|| Open {
            builder: BatchBuilder::new(log, offset, number, inner.tree.next_seq()),
            answers: Vec::new(),
            touched: BTreeSet::new(),
            is_empty: true,
        })
    }

    fn decide(&mut self, mut request: Request) {
        let (verdict, stamp) = match request.prepared.take() {
            Some(prepared) if self.holds(&request, &prepared) => (prepared.verdict, prepared.stamp),
            _ => {
                let budget = if request.tries < TRIES_OUTSIDE { ROWS_IN_TURN_MAX } else { usize::MAX };
                match self.run_in_turn(&mut request, budget) {
                    Some(judged) => judged,
                    None => return self.send_outside(request),
                }
            }
        };
        let partitions = request.decision.partitions();
        if request.tries > 0 {
            self.recent.end(partitions);
        }
        let answer = match verdict {
            Verdict::Commit(changes) => {
                self.recent.note_stamp(partitions, stamp);
                self.apply(changes, stamp)
            }
            Verdict::Refuse => {
                self.inner.counters.refusals.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Verdict::Unread(Unread::Failed(error)) => Err(error),
            Verdict::Unread(Unread::NotYet) => Err(EngineError::Unavailable("a row was not at hand".into())),
        };
        // A refusal is an answer too: it goes out with the batch whose writes it may have been decided on.
        let due = DueAnswer { decision: request.decision, waiting: request.answer, answer };
        self.open_batch().answers.push(due);
    }

    /// Whether what was decided outside would be decided now, and with a stamp above all others of its partitions.
    fn holds(&self, request: &Request, prepared: &Prepared) -> bool {
        let is_overtaken = self.recent.overtook(request.decision.partitions(), prepared.stamp);
        !is_overtaken && !self.recent.touched(&prepared.footprint, prepared.at)
    }

    /// What the decision says on the newest state. `None`: it looks at more rows than that.
    fn run_in_turn(&mut self, request: &mut Request, rows_max: usize) -> Option<(Verdict, Timestamp)> {
        let now = self.inner.clock.now();
        let stamp = self.inner.stamps.next(now);
        let entropy = match self.entropy.next(&self.inner.options.probe) {
            Ok(entropy) => entropy,
            Err(error) => return Some((Verdict::Unread(Unread::Failed(error)), stamp)),
        };
        let rows = Newest { inner: &self.inner, left: Cell::new(rows_max) };
        let verdict = run(&mut request.decision, &rows, Tick { now, stamp, entropy });
        let is_too_much = matches!(verdict, Verdict::Unread(Unread::NotYet)) && rows.left.get() == 0;
        (!is_too_much).then_some((verdict, stamp))
    }

    fn send_outside(&mut self, mut request: Request) {
        if request.tries == 0 {
            self.recent.begin(request.decision.partitions(), self.last_written);
        }
        request.after = self.last_written;
        let mut state = self.inner.pipeline.lock();
        // After a break-down no thread would take it, and its caller would wait for ever.
        if !state.broken {
            state.taken = state.taken.checked_sub(1).expect("it is one of those that were taken");
            state.heavy_count += 1;
            state.heavy.push_back(request);
        }
        drop(state);
        self.inner.pipeline.outside.notify_one();
    }

    /// Everything that can fail is done before the first row is written: a decision is in the batch whole or not at all.
    fn apply(&mut self, mut changes: Changes, stamp: Timestamp) -> Answer {
        changes.validate()?;
        if changes.is_empty() {
            return Ok(());
        }
        self.sole_owners.drop_at_once(&mut changes);
        let stored = SoleOwners::of(&changes);
        let dropped = self.dropped_rows(&changes)?;
        let size = weight(&changes, dropped.len());
        if !changes.frees_space {
            self.takes_growth(size)?;
        }
        let mut writes = stored_rows(&changes);
        writes.extend(changes.rows);
        writes.extend(dropped.into_iter().map(|key| (key, None)));
        let mut live = Vec::new();
        for (key, value) in writes.iter().filter(|(key, _)| is_content_key(key.as_bytes())) {
            let old = self.inner.get(key.as_bytes(), NEWEST)?;
            note_places(old.as_ref(), -1, &mut live)?;
            note_places(value.as_ref(), 1, &mut live)?;
        }
        self.make_room(size + live.len() as u64 * LIVE_ROW_BYTES)?;
        let open = self.open_batch();
        open.builder.stamp = open.builder.stamp.max(stamp.0);
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
        self.sole_owners.note(&stored);
        self.open_batch().is_empty = false;
        self.inner.counters.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Whether so much may be written that gives no space back: not below the reserve, and not while the next log is missing
    /// and this one must last for the deletes. That is no matter of space, so the client may come again soon.
    fn takes_growth(&self, size: u64) -> Answer {
        if self.inner.space.is_full() || !self.inner.takes(size * WRITTEN_TIMES) {
            return Err(EngineError::Full);
        }
        let log_is_short = self.offset + LOG_ROOM_FOR_DELETES > self.log_max();
        if log_is_short { Err(EngineError::Busy) } else { Ok(()) }
    }

    /// The log must have room for what is decided before it is: afterwards there is no way back. Beyond what was written out
    /// ahead, room is made by writing zeroes, which fails while no decision depends on it yet.
    fn make_room(&mut self, size: u64) -> Answer {
        let filled = self
            .open
            .as_ref()
            .map_or(HEADER as u64, |open| open.builder.len() as u64 + open.touched.len() as u64 * LIVE_ROW_BYTES);
        let end = page_up(self.offset + filled + size);
        if end <= self.log_room {
            return Ok(());
        }
        let ahead = end + LOG_STEP;
        if self.log.extend(self.log_room, ahead).is_ok() {
            self.log_room = ahead;
            return Ok(());
        }
        if let Err(error) = self.log.extend(self.log_room, end) {
            if is_full(&error) {
                self.inner.space.was_full();
                return Err(EngineError::Full);
            }
            return Err(unavailable("making room in the log", &error));
        }
        self.log_room = end;
        Ok(())
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
        let place = ExtentPlace { segment, offset, length, sums: ExtentPlace::sums_of(bytes) };
        let places = if bytes.is_empty() { vec![] } else { vec![place] };
        Manifest { length: bytes.len() as u64, rows: 1, places }
    }

    /// One row into the batch, the cache and the tree.
    fn write(&mut self, key: &[u8], value: Option<Bytes>) {
        let inner = Arc::clone(&self.inner);
        let open = self.open_batch();
        open.builder.add_row(key, value.as_deref());
        let seq = open.builder.seq;
        let hash = inner.cache.hash(key);
        inner.cache.written(key, hash, value.as_ref(), seq);
        inner.tree.insert_hashed(key, hash, value, seq);
        self.last_written = seq;
        self.recent.note(seq, key);
    }

    fn count_live(&mut self, changes: &[(u64, i64)]) {
        let inner = Arc::clone(&self.inner);
        let mut live = inner.live.lock().expect("nothing panics under this lock");
        for (segment, change) in changes {
            let bytes = live.entry(*segment).or_default();
            // More dead than ever lived: the rows do not add up, and going on would drop what lives.
            *bytes = bytes.checked_add_signed(*change).expect("a segment has at least the live bytes that go");
            self.open_batch().touched.insert(*segment);
        }
    }

    /// The live bytes of the segments this batch touched become rows of the same batch.
    fn note_live_bytes(&mut self, open: &mut Open) {
        let live = self.inner.live.lock().expect("nothing panics under this lock");
        for segment in std::mem::take(&mut open.touched) {
            let bytes = Bytes::copy_from_slice(&live.get(&segment).copied().unwrap_or(0).to_be_bytes());
            let key = segment_key(segment);
            open.builder.add_row(key.as_bytes(), Some(&bytes));
            let hash = self.inner.cache.hash(key.as_bytes());
            self.inner.cache.written(key.as_bytes(), hash, Some(&bytes), open.builder.seq);
            self.inner.tree.insert_hashed(key.as_bytes(), hash, Some(bytes), open.builder.seq);
            self.recent.note(open.builder.seq, key.as_bytes());
        }
    }
}

/// About how many bytes a decision takes in the log, with the rows of contents that it drops: never less than it does, but for
/// the rows of live bytes.
fn weight(changes: &Changes, dropped_rows: usize) -> u64 {
    let rows = changes.rows.iter().map(|(key, value)| key.as_bytes().len() + value.as_ref().map_or(0, Bytes::len) + 8);
    let contents = changes.contents.iter().map(|staged| match staged.part() {
        Part::Inline(bytes) => bytes.len() + 256,
        Part::Placed { rows, .. } => rows.iter().map(|row| row.len() + 64).sum(),
    });
    let dropped = dropped_rows * 64;
    (rows.sum::<usize>() + contents.sum::<usize>() + dropped) as u64
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
            let _ = self.inner.options.probe.at(Moment::Committer);
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
            match std::mem::take(&mut state.slot) {
                Slot::Full(closed) => return Some(Step::Commit(closed)),
                Slot::Busy if state.awaits_slot => pipeline.decider.notify_one(),
                Slot::Busy | Slot::Idle => {}
            }
            if state.decider_done {
                return None;
            }
            state.slot = Slot::Idle;
            state = match patience {
                Some(patience) => pipeline
                    .committer
                    .wait_timeout(state, patience)
                    .map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state),
                None => Pipeline::wait(&pipeline.committer, state),
            };
        }
    }

    fn commit(&mut self, closed: Closed) -> io::Result<()> {
        if closed.is_empty {
            if closed.ends_segment {
                self.sync_rest()?;
            }
            answer(closed.answers);
            return Ok(());
        }
        let (seq, number, offset) = (closed.builder.seq, closed.builder.number, closed.builder.offset);
        let record = closed.builder.finish(self.synced_through);
        closed.segment.write_at(&record, offset)?;
        let full = self.inner.options.durability == Durability::Full;
        if full || closed.ends_segment {
            closed.segment.sync()?;
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
        // No other thread publishes: this is all that has been written.
        let written = self.inner.tree.published();
        segment.sync()?;
        self.inner.durable.store(written, Ordering::Release);
        self.inner.counters.syncs.fetch_add(1, Ordering::Relaxed);
        self.synced_through = number;
        Ok(())
    }
}

fn answer(answers: Vec<DueAnswer>) {
    for DueAnswer { decision, waiting, answer } in answers {
        drop(decision);
        let _ = waiting.send(answer);
    }
}

#[cfg(test)]
mod tests;
