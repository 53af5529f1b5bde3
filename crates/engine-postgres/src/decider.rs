//! Decisions: gathered by their partitions, run against rows of one snapshot, committed in one call.
//!
//! At most one batch of the same partitions is under way on a node; it runs all that wait, one after another, each on the
//! changes of those before it. Before that it runs each of them for the sake of what they ask for, so that the rows of all come
//! in one round trip. Between nodes, and between batches that have only some of their partitions in common, the database
//! decides: a commit holds only if all that was read is still so, else the batch is run again. One that keeps losing gets its turn: first those of its partitions wait for it, then all do.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use engine::{Decision, EngineError, Partitions, Tick, Unread, Verdict, panics};
use tokio::sync::{Notify, oneshot};

use crate::commit::{self, Committed};
use crate::key::partition_numbers;
use crate::session::{Session, Turn};
use crate::trouble::Trouble;
use crate::view::{LoadedRows, MissingRows, Overlay, ReadSet, View};
use crate::{Inner, Options};

/// How many decisions one batch takes.
const DECISIONS_PER_BATCH: usize = 128;
/// A batch is closed when its commit has grown to this.
const BYTES_PER_BATCH: usize = 4 << 20;
/// So many rows are loaded together for the decisions of a batch; the others load theirs in their turn. A row has up to a
/// megabyte.
const ROWS_PER_GATHERING: usize = 256;
/// So often at most, because rows lead to others: a container to a blob, a blob to the settings that it is deleted by.
const GATHERINGS_PER_BATCH: usize = 3;
/// After so many conflicts in a row the nodes queue up for the partitions.
const CONFLICTS_BEFORE_QUEUEING: u32 = 2;
/// After so many, others have changed what they had no need to queue for: then all that commit wait for one try.
const CONFLICTS_BEFORE_ALL_WAIT: u32 = 4;
/// How many decisions a batch keeps that all others wait for.
const DECISIONS_ALL_WAIT_FOR: usize = 8;
/// The longest pause before another try.
const PAUSE_MAX: Duration = Duration::from_millis(500);

type Answer = Result<(), EngineError>;

struct Request {
    decision: Box<dyn Decision>,
    answer: oneshot::Sender<Answer>,
}

/// The decisions that wait, by their partitions. Partitions are in the map while a task works on them.
#[derive(Default)]
pub struct Waiting {
    lines: Mutex<Lines>,
    /// No task works any more.
    idle: Notify,
}

#[derive(Default)]
struct Lines {
    by_partitions: HashMap<Partitions, VecDeque<Request>>,
    count: usize,
    closed: bool,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").field("count", &self.lines().count).finish()
    }
}

impl Waiting {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().expect("nothing panics under this lock")
    }

    pub fn count(&self) -> usize {
        self.lines().count
    }

    /// Takes no more, and waits until all that waited is answered.
    pub async fn close(&self) {
        self.lines().closed = true;
        loop {
            let idle = self.idle.notified();
            if self.lines().by_partitions.is_empty() {
                return;
            }
            idle.await;
        }
    }

    /// What waits for the partitions; `None`, and they are free, when nothing does.
    fn take(&self, partitions: &Partitions) -> Option<Vec<Request>> {
        let mut lines = self.lines();
        let line = lines.by_partitions.get_mut(partitions)?;
        let taken: Vec<Request> = line.drain(..line.len().min(DECISIONS_PER_BATCH)).collect();
        lines.count -= taken.len();
        if taken.is_empty() {
            lines.by_partitions.remove(partitions);
            self.idle.notify_waiters();
            return None;
        }
        Some(taken)
    }

    /// Those that found no room in their batch are the first of the next.
    fn put_back(&self, partitions: &Partitions, requests: Vec<Request>) {
        let mut lines = self.lines();
        lines.count += requests.len();
        if let Some(line) = lines.by_partitions.get_mut(partitions) {
            requests.into_iter().rev().for_each(|request| line.push_front(request));
        }
    }
}

/// Puts the decision in line. A task works on it from here on, whether or not the caller waits.
pub fn submit(inner: &Arc<Inner>, decision: Box<dyn Decision>) -> Result<oneshot::Receiver<Answer>, EngineError> {
    let (answer, receiver) = oneshot::channel();
    let partitions = decision.partitions().clone();
    let mut lines = inner.waiting.lines();
    if lines.closed {
        return Err(EngineError::Closed);
    }
    if lines.count >= inner.options.waiting_max {
        return Err(EngineError::Busy);
    }
    lines.count += 1;
    let mut is_new = false;
    let line = lines.by_partitions.entry(partitions.clone()).or_insert_with(|| {
        is_new = true;
        VecDeque::new()
    });
    line.push_back(Request { decision, answer });
    drop(lines);
    if is_new {
        let shared = Arc::clone(inner);
        inner.source.runtime.spawn(async move { serve(&shared, &partitions).await });
    }
    Ok(receiver)
}

/// Works on partitions until nothing waits for them.
async fn serve(inner: &Arc<Inner>, partitions: &Partitions) {
    let numbers = partition_numbers(partitions);
    while let Some(requests) = inner.waiting.take(partitions) {
        let batch = Batch { inner, partitions, numbers: &numbers, requests, conflicts: 0 };
        match panics::caught(Box::pin(batch.run())).await {
            Ok(left) => inner.waiting.put_back(partitions, left),
            // Those of the batch learn that it failed when it is dropped. Those that wait are served.
            Err(panics::Panicked) => tracing::error!(?partitions, "the work on a batch of decisions panicked"),
        }
    }
}

struct Batch<'a> {
    inner: &'a Arc<Inner>,
    partitions: &'a Partitions,
    /// By which the partitions are locked.
    numbers: &'a [i64],
    requests: Vec<Request>,
    conflicts: u32,
}

/// What became of the functions of a batch: the commit, and the answer to each request.
struct BatchOutcome {
    overlay: Overlay,
    seen: ReadSet,
    first: i64,
    stamp: i64,
    answers: Vec<Answer>,
}

impl<'a> Batch<'a> {
    /// Runs and commits, until it is done or time is up. Returns the requests that found no room.
    async fn run(mut self) -> Vec<Request> {
        let deadline = Instant::now() + self.inner.options.patience;
        let mut pause = Duration::from_millis(2);
        loop {
            let trouble = match self.try_once(deadline).await {
                Ok((answers, left)) => {
                    for (request, answer) in self.requests.into_iter().zip(answers) {
                        let _ = request.answer.send(answer);
                    }
                    return left;
                }
                Err(trouble) => trouble,
            };
            if matches!(trouble, Trouble::Fatal(_)) && self.requests.len() > 1 {
                // One of them may be the reason, and the others have nothing to do with it: the halves are tried apart.
                let others = self.requests.split_off(self.requests.len() / 2);
                self.inner.waiting.put_back(self.partitions, others);
                continue;
            }
            let counters = &self.inner.counters;
            match &trouble {
                Trouble::Conflict => {
                    self.conflicts += 1;
                    counters.conflicts.fetch_add(1, Ordering::Relaxed);
                }
                Trouble::Fatal(error) => tracing::error!(error, "the database refuses a commit"),
                Trouble::Refused(_) | Trouble::Lost(_) | Trouble::Away(_) => {
                    counters.retries.fetch_add(1, Ordering::Relaxed);
                }
            }
            if matches!(trouble, Trouble::Fatal(_)) || Instant::now() + pause > deadline {
                // What is lost here is a connection that only read: nothing was done.
                let error = match trouble {
                    Trouble::Fatal(_) => trouble.into_engine(),
                    _ => EngineError::Busy,
                };
                for request in self.requests {
                    let _ = request.answer.send(Err(error.clone()));
                }
                return Vec::new();
            }
            if trouble != Trouble::Conflict {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }

    async fn try_once(&mut self, deadline: Instant) -> Result<(Vec<Answer>, Vec<Request>), Trouble> {
        let pool = &self.inner.source.pool;
        let mut session = match self.turn() {
            None => None,
            Some(turn) => Some(Session::begin_in_turn(pool, turn).await?),
        };
        let mut loaded = LoadedRows::default();
        let decided = self.decide(&mut session, &mut loaded).await?;
        let left = self.requests.split_off(decided.answers.len());
        if decided.overlay.is_empty() {
            // Nothing to write; what was decided on was durable when it was read.
            if let Some(session) = session {
                session.end();
            }
            return Ok((decided.answers, left));
        }
        let BatchOutcome { overlay, seen, first, stamp, answers } = decided;
        let commit =
            commit::Batch { parts: self.numbers, first, stamp, overlay: &overlay, seen: &seen, loaded: &loaded };
        let done = commit::run(self.inner, &commit, session, deadline).await;
        let counters = &self.inner.counters;
        match done {
            Ok(Committed { dropped_bytes }) => {
                commit::keep(&overlay);
                let stored: u64 = overlay.contents.values().map(engine::Staged::length).sum();
                self.inner.source.node.count_bytes(stored.cast_signed() - dropped_bytes);
                counters.batches.fetch_add(1, Ordering::Relaxed);
                counters.commits.fetch_add(answers.len() as u64, Ordering::Relaxed);
                Ok((answers, left))
            }
            Err(trouble) => {
                if trouble.is_unknown() {
                    commit::keep(&overlay);
                    self.inner.waiting.put_back(self.partitions, left);
                    return self.unknown(trouble, answers.len());
                }
                self.requests.extend(left);
                Err(trouble)
            }
        }
    }

    /// Which commits must wait, so that this batch is not always the one that loses.
    fn turn(&mut self) -> Option<Turn<'a>> {
        match self.conflicts {
            ..CONFLICTS_BEFORE_QUEUEING => None,
            CONFLICTS_BEFORE_QUEUEING..CONFLICTS_BEFORE_ALL_WAIT => Some(Turn::Partitions(self.numbers)),
            CONFLICTS_BEFORE_ALL_WAIT.. => {
                let others = self.requests.split_off(self.requests.len().min(DECISIONS_ALL_WAIT_FOR));
                self.inner.waiting.put_back(self.partitions, others);
                Some(Turn::All)
            }
        }
    }

    /// Time is up and it is not known whether the commit was done: it must not be decided again.
    fn unknown(&self, trouble: Trouble, count: usize) -> Result<(Vec<Answer>, Vec<Request>), Trouble> {
        tracing::error!(%trouble, count, "it is not known whether a commit was done");
        let error = trouble.into_engine();
        Ok((vec![Err(error); count], Vec::new()))
    }

    /// Loads what the functions of the batch ask for before the first of them is decided. They are run on what is stored, so a
    /// function that will see what another one changes may have to load again in its turn.
    async fn gather(&mut self, session: &mut Option<Session>, loaded: &mut LoadedRows) -> Result<(), Trouble> {
        let (inner, overlay) = (self.inner, Overlay::default());
        let hold = inner.source.node.begin_read();
        // No stamp is taken for runs that come to nothing.
        let now = inner.source.node.now();
        let tick = Tick { now, stamp: now, entropy: entropy()? };
        let mut open: Vec<&mut Request> = self.requests.iter_mut().collect();
        for _ in 0..GATHERINGS_PER_BATCH {
            let mut wanted = MissingRows::default();
            let mut gathered = Vec::new();
            open.retain_mut(|request| {
                if wanted.rows() >= ROWS_PER_GATHERING {
                    return false;
                }
                let view = View::new(loaded, &overlay, &inner.source, &inner.hints, &hold);
                run(&mut request.decision, &view, tick);
                let mut noted = view.into_noted();
                let wants_more = !noted.wanted.is_empty();
                if wants_more {
                    wanted.add_rows(std::mem::take(&mut noted.wanted));
                    gathered.push(noted);
                }
                wants_more
            });
            if wanted.is_empty() {
                break;
            }
            inner.load_rows(session, &wanted, loaded).await?;
            gathered.iter().for_each(|noted| noted.teach(&inner.hints, loaded));
        }
        Ok(())
    }

    /// Runs the functions in their order.
    async fn decide(
        &mut self,
        session: &mut Option<Session>,
        loaded: &mut LoadedRows,
    ) -> Result<BatchOutcome, Trouble> {
        let mut decided = BatchOutcome {
            overlay: Overlay::default(),
            seen: ReadSet::default(),
            first: 0,
            stamp: 0,
            answers: Vec::with_capacity(self.requests.len()),
        };
        if self.requests.len() > 1 {
            self.gather(session, loaded).await?;
            self.inner.source.node.settle_the_time().await?;
        }
        let hold = self.inner.source.node.begin_read();
        for request in &mut self.requests {
            if decided.overlay.bytes >= BYTES_PER_BATCH {
                break;
            }
            let node = &self.inner.source.node;
            let mut moment = node.moment();
            node.follow(&mut moment, loaded.newest);
            let mut stamp = node.stamp().await?;
            let entropy = entropy()?;
            let answer = loop {
                let tick = Tick { now: moment.now, stamp, entropy };
                let view = View::new(loaded, &decided.overlay, &self.inner.source, &self.inner.hints, &hold);
                let verdict = run(&mut request.decision, &view, tick);
                let noted = view.into_noted();
                if !noted.wanted.is_empty() {
                    self.inner.load(session, &noted, loaded).await?;
                    node.settle_the_time().await?;
                    if node.follow(&mut moment, loaded.newest) {
                        stamp = node.stamp().await?;
                        continue;
                    }
                    let is_short = matches!(verdict, Verdict::Unread(Unread::NotYet));
                    if is_short || noted.is_void() || !loaded.fulfil(&noted.promised) {
                        continue;
                    }
                }
                decided.seen.add(noted.seen);
                break match verdict {
                    Verdict::Commit(changes) => match changes.validate() {
                        Ok(()) if changes.is_empty() => Ok(()),
                        Ok(()) => {
                            let stamp = stamp.0.cast_signed();
                            decided.first = if decided.first == 0 { stamp } else { decided.first };
                            decided.stamp = stamp;
                            decided.overlay.apply(changes, stamp);
                            Ok(())
                        }
                        Err(error) => Err(error),
                    },
                    Verdict::Refuse => {
                        self.inner.counters.refusals.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    }
                    Verdict::Unread(Unread::Failed(error)) => Err(error),
                    Verdict::Unread(Unread::NotYet) => {
                        Err(EngineError::Unavailable("a decision waits for a row it did not ask for".into()))
                    }
                };
            };
            decided.answers.push(answer);
        }
        Ok(decided)
    }
}

/// A decision that panics is a fault of the service; the engine must go on for all others.
fn run(decision: &mut Box<dyn Decision>, view: &View<'_>, tick: Tick) -> Verdict {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| decision.decide(view, tick)))
        .unwrap_or_else(|_| Verdict::Unread(Unread::Failed(EngineError::Unavailable("a decision panicked".into()))))
}

fn entropy() -> Result<u128, Trouble> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Trouble::Fatal(format!("the system gives no random bytes: {error}")))?;
    Ok(u128::from_le_bytes(bytes))
}

impl Default for Options {
    fn default() -> Options {
        Options {
            connections: 16,
            waiting_max: 16 * 1024,
            patience: Duration::from_secs(10),
            schema: "lazurite".into(),
        }
    }
}
