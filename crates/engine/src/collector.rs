//! The sweeper: handles due rows, and collects contents to which there is no reference.
//!
//! It runs ordinary decisions, so it needs no locks and can stop at any point: what it did not finish is still due.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::due::{self, Due};
use crate::{
    BoxFuture, Changes, Commit, ContentId, Engine, EngineError, Key, NotCommitted, Rows, Tick, Timestamp, Unread,
    Visit, commit, panics, read, space,
};

/// How many due rows one sweep takes at most before others get their turn.
pub const DUE_PER_SWEEP: usize = 1_000;

/// How many due rows are handled at once. An engine commits together what waits together, so this many share the wait for
/// the disk; one after another they would take a sync each, and after much was deleted that is minutes.
const HANDLED_AT_ONCE: usize = 64;

/// What failed is tried again after this long, and each time after twice as long, up to the second.
const FIRST_RETRY: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(3_600);
/// How many rows may be failing and be remembered.
const FAILING_MAX: usize = 10_000;
/// How many of them one sweep tries again.
const RETRIES_PER_SWEEP: usize = 32;
/// After so many failures without a success between them a sweep ends.
const FAILURES_IN_A_ROW_MAX: usize = 64;
/// The low mark follows what the clock has shown so long ago: no decision takes that long to commit.
const MARK_DISTANCE: Duration = Duration::from_secs(60);
/// Most decisions take a moment. Most sweeps begin at what the clock has shown so long ago...
const NEAR_MARK_DISTANCE: Duration = Duration::from_secs(2);
/// ...and this often one begins at the low mark.
const LOOK_BACK_EVERY: Duration = Duration::from_secs(10);
/// How far apart the readings of the clock are that are kept for both.
const SEEN_EVERY: Duration = Duration::from_millis(50);
/// How often a sweep goes over everything, whatever the mark says.
const WALK_EVERY: Duration = Duration::from_secs(600);

/// How many steps one due row may take before others get their turn.
const STEPS_PER_TURN: usize = 100;

/// The row that says `owner` refers to `thing`.
#[must_use]
pub fn ref_key(thing: u64, owner: u64) -> Key {
    Key::new(space::REF).number(thing).number(owner)
}

/// Whether there is a reference to `thing`.
pub fn is_referred(rows: &dyn Rows, thing: u64) -> Result<bool, Unread> {
    let prefix = Key::new(space::REF).number(thing);
    let mut found = false;
    rows.scan(&prefix, &prefix.after_all(), 1, &mut |_, _| {
        found = true;
        Visit::Stop
    })?;
    Ok(found)
}

/// What became of a due row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handled {
    /// The work is done, or a part of it; the row is removed with the last part.
    Done,
    /// The row stays because its work is under way elsewhere. That is no failure.
    Left,
}

/// Handles the due rows of some spaces: a service, or the collector of contents.
pub trait Handler: Debug + Send + Sync {
    /// Its spaces. No other handler has one of them.
    fn spaces(&self) -> &[u8];

    /// Does what `due` asks for in decisions of its own, the last of which removes the row.
    fn handle<'a>(&'a self, engine: &'a dyn Engine, due: &'a Due) -> BoxFuture<'a, Result<Handled, EngineError>>;
}

/// Does what is due now, once. Returns how many rows it handled, or what went wrong first, having done the rest.
pub async fn sweep(engine: &dyn Engine, handlers: &[&dyn Handler]) -> Result<usize, EngineError> {
    let swept = Sweeper::default().sweep(engine, handlers).await?;
    match swept.failures.into_iter().next() {
        Some(failed) => Err(failed.error),
        None => Ok(swept.handled),
    }
}

/// What one sweep has done.
#[derive(Debug, Default)]
pub struct Swept {
    pub handled: usize,
    pub failures: Vec<Failed>,
    /// It did as much as one sweep does.
    pub is_more_left: bool,
    is_closed: bool,
}

/// A due row that could not be handled. It is tried again, after twice as long each time.
#[derive(Debug)]
pub struct Failed {
    /// Which one: its space, its owner, and when it was due.
    pub what: String,
    pub error: EngineError,
    pub times: u32,
}

/// Does what is due, sweep by sweep.
///
/// A row that cannot be handled is left and rests; the others go on. A sweep begins at a low mark, so that it does not walk
/// over what all earlier ones have removed. A row can come to lie below what the clock shows, because its decision took a
/// while; so the mark follows the clock at a distance, and now and then a sweep goes over everything. What a minute has removed
/// is still much to walk over for each sweep of a busy server: most begin at a mark that is nearer.
#[derive(Debug, Default)]
pub struct Sweeper(Arc<Mutex<Memory>>);

#[derive(Debug, Default)]
struct Memory {
    /// What could not be handled, by the key of its row.
    failing: BTreeMap<Key, Failure>,
    failures: u64,
    /// Below this only what is failing is left.
    low: Option<Key>,
    /// Below this hardly anything is left.
    near: Option<Key>,
    /// What the clock has shown, and when.
    seen: VecDeque<(Instant, Timestamp)>,
    walked: Option<Instant>,
    /// When a sweep began at the low mark.
    looked_back: Option<Instant>,
}

#[derive(Debug)]
struct Failure {
    times: u32,
    last: Instant,
}

impl Failure {
    fn rests_at(&self, moment: Instant) -> bool {
        let rest = FIRST_RETRY.saturating_mul(1 << self.times.saturating_sub(1).min(16)).min(RETRY_MAX);
        moment.saturating_duration_since(self.last) < rest
    }
}

/// The due rows that a sweep handles.
struct Found {
    keys: Vec<Key>,
    now: Timestamp,
    is_more_left: bool,
}

impl Sweeper {
    /// Does what is due now, at most [`DUE_PER_SWEEP`] rows.
    pub async fn sweep(&self, engine: &dyn Engine, handlers: &[&dyn Handler]) -> Result<Swept, EngineError> {
        self.sweep_at(engine, handlers, Instant::now()).await
    }

    /// Figures for the operator.
    #[must_use]
    pub fn figures(&self) -> [(&'static str, u64); 2] {
        let memory = self.memory();
        [("due_failures", memory.failures), ("due_failing", memory.failing.len() as u64)]
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        remembered(&self.0)
    }

    async fn sweep_at(
        &self,
        engine: &dyn Engine,
        handlers: &[&dyn Handler],
        moment: Instant,
    ) -> Result<Swept, EngineError> {
        let (from, again) = self.memory().begin(moment);
        let found = self.due_now(engine, from).await?;
        let mut swept = Swept { is_more_left: found.is_more_left, ..Swept::default() };
        // What fails may be tried again; what was not tried yet goes first.
        for keys in [&found.keys, &again] {
            let mut keys = keys.iter();
            let mut in_a_row = 0;
            let works = std::iter::from_fn(|| keys.next().map(|key| handle(engine, handlers, key)));
            each_at_once(works, |key, done| {
                in_a_row = if done.is_ok() { 0 } else { in_a_row + 1 };
                self.note(key, done, moment, &mut swept);
                // Perhaps it is not the rows but the engine: the rest would only wait for it too.
                in_a_row < FAILURES_IN_A_ROW_MAX
            })
            .await;
        }
        if swept.is_closed {
            return Err(EngineError::Closed);
        }
        if swept.failures.len() >= FAILURES_IN_A_ROW_MAX {
            return Ok(swept);
        }
        self.memory().finish(&found, moment);
        Ok(swept)
    }

    fn note(&self, key: &Key, done: Result<Handled, EngineError>, moment: Instant, swept: &mut Swept) {
        match done {
            Ok(handled) => {
                self.memory().failing.remove(key);
                swept.handled += usize::from(handled == Handled::Done);
            }
            Err(EngineError::Closed) => swept.is_closed = true,
            Err(error) => swept.failures.push(self.memory().note_failure(key, error, moment)),
        }
    }

    async fn due_now(&self, engine: &dyn Engine, from: Option<Key>) -> Result<Found, EngineError> {
        let memory = Arc::clone(&self.0);
        let found = read::<_, std::convert::Infallible, _>(engine, move |rows, now| {
            let (first, to) = due::range(now);
            let mut found = Found { keys: Vec::new(), now, is_more_left: false };
            rows.scan(from.as_ref().unwrap_or(&first), &to, DUE_PER_SWEEP, &mut |key, _| {
                let key = Key::from_bytes(key);
                if !remembered(&memory).failing.contains_key(&key) {
                    found.keys.push(key);
                }
                found.is_more_left = found.keys.len() == DUE_PER_SWEEP;
                if found.is_more_left { Visit::Stop } else { Visit::Next }
            })?;
            Ok(found)
        });
        found.await.or_else(failed)
    }
}

fn remembered(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    /// Where to begin, and which of the failing rows are to be tried again.
    fn begin(&mut self, moment: Instant) -> (Option<Key>, Vec<Key>) {
        let is_over = |last: Option<Instant>, most| last.is_none_or(|last| age(last, moment) >= most);
        if is_over(self.walked, WALK_EVERY) {
            self.walked = Some(moment);
            (self.low, self.near) = (None, None);
        }
        let looks_back = is_over(self.looked_back, LOOK_BACK_EVERY);
        if looks_back {
            self.looked_back = Some(moment);
        }
        let from = if looks_back { &self.low } else { &self.near };
        let again = self.failing.iter().filter(|(_, failure)| !failure.rests_at(moment));
        (from.clone(), again.map(|(key, _)| key.clone()).take(RETRIES_PER_SWEEP).collect())
    }

    fn note_failure(&mut self, key: &Key, error: EngineError, moment: Instant) -> Failed {
        self.failures += 1;
        let failure = self.failing.entry(key.clone()).or_insert(Failure { times: 0, last: moment });
        failure.times += 1;
        failure.last = moment;
        let times = failure.times;
        if self.failing.len() > FAILING_MAX {
            // They are found again by the next sweep that goes over everything.
            self.failing.pop_last();
            self.walked = None;
        }
        Failed { what: describe(key), error, times }
    }

    /// Below the first row that was found nothing is left: the marks may follow what the clock has shown a while ago.
    fn finish(&mut self, found: &Found, moment: Instant) {
        if self.seen.back().is_none_or(|(last, _)| age(*last, moment) >= SEEN_EVERY) {
            self.seen.push_back((moment, found.now));
        }
        while self.seen.get(1).is_some_and(|(second, _)| age(*second, moment) >= MARK_DISTANCE) {
            self.seen.pop_front();
        }
        let shown = |distance: Duration| {
            let (_, shown) = self.seen.iter().rev().find(|(seen, _)| age(*seen, moment) >= distance)?;
            let mark = due::range(*shown).1;
            // Not beyond what this sweep has found: its handler may have done only a part of it.
            Some(found.keys.first().map_or_else(|| mark.clone(), |first| mark.clone().min(first.clone())))
        };
        let (low, near) = (shown(MARK_DISTANCE), shown(NEAR_MARK_DISTANCE));
        self.low = low.max(self.low.take());
        // A row that was found below it is still to be found.
        self.near = near.max(self.low.clone());
    }
}

fn age(then: Instant, moment: Instant) -> Duration {
    moment.saturating_duration_since(then)
}

/// Which row it is, for people.
fn describe(key: &Key) -> String {
    match Due::from_key(key.as_bytes()) {
        Some(due) => match due.owner_id() {
            Some(id) => format!("{id} in space {:#04x}, due at {}", due.space, due.at.0),
            None => format!("{} in space {:#04x}, due at {}", due.owner.escape_ascii(), due.space, due.at.0),
        },
        None => format!("a due row that this version does not know: {}", key.as_bytes().escape_ascii()),
    }
}

type Work<'a> = BoxFuture<'a, (&'a Key, Result<Handled, EngineError>)>;

/// A handler that panics is a fault of its service and fails alone.
fn handle<'a>(engine: &'a dyn Engine, handlers: &'a [&'a dyn Handler], key: &'a Key) -> Work<'a> {
    Box::pin(async move {
        let panicked = |_| Err(EngineError::Unavailable("its handler panicked".into()));
        (key, panics::caught(handle_one(engine, handlers, key)).await.unwrap_or_else(panicked))
    })
}

async fn handle_one(engine: &dyn Engine, handlers: &[&dyn Handler], key: &Key) -> Result<Handled, EngineError> {
    let due = Due::from_key(key.as_bytes()).ok_or_else(due::no_handler)?;
    if due.space == space::CONTENT {
        return collect_content(engine, &due).await.map(|()| Handled::Done);
    }
    let handler = handlers.iter().find(|handler| handler.spaces().contains(&due.space));
    handler.ok_or_else(due::no_handler)?.handle(engine, &due).await
}

/// Does the works, [`HANDLED_AT_ONCE`] at a time, and tells of each how it ended. Once `each` says `false`, those that run
/// come to their end and no other is begun.
async fn each_at_once<'a>(
    mut works: impl Iterator<Item = Work<'a>>,
    mut each: impl FnMut(&Key, Result<Handled, EngineError>) -> bool,
) {
    let mut running: Vec<Work<'a>> = Vec::new();
    let mut goes_on = true;
    poll_fn(|cx| {
        loop {
            if goes_on {
                running.extend(works.by_ref().take(HANDLED_AT_ONCE - running.len()));
            }
            if running.is_empty() {
                return Poll::Ready(());
            }
            let before = running.len();
            running.retain_mut(|work| match work.as_mut().poll(cx) {
                Poll::Pending => true,
                Poll::Ready((key, done)) => {
                    goes_on &= each(key, done);
                    false
                }
            });
            // Those that have ended make room for others, which must be polled once.
            if running.len() == before {
                return Poll::Pending;
            }
        }
    })
    .await;
}

/// Drops a content if its last reference is gone.
async fn collect_content(engine: &dyn Engine, due: &Due) -> Result<(), EngineError> {
    let due = due.clone();
    let Some(id) = due.owner_id() else { return Ok(()) };
    let decision = commit::<(), std::convert::Infallible, _>(engine, due.key(), move |rows, _| {
        let mut changes = Changes::none().freeing_space();
        changes.delete(due.key());
        if !is_referred(rows, id)? {
            changes.dropped.push(ContentId(id));
        }
        Ok(Commit { changes, outcome: () })
    });
    decision.await.or_else(failed)
}

fn failed<T>(error: NotCommitted<std::convert::Infallible>) -> Result<T, EngineError> {
    match error {
        NotCommitted::Failed(error) => Err(error),
        NotCommitted::Refused(never) => match never {},
    }
}

/// Runs `step` until it says that nothing is left, and removes the due row with the last one. After so many steps as one turn has
/// the row stays, and the next sweep goes on.
///
/// The steps are a partition of their own. Steps that change rows which other decisions change as well use [`steps_in`].
pub fn steps<'a, F>(engine: &'a dyn Engine, due: &'a Due, step: F) -> BoxFuture<'a, Result<(), EngineError>>
where
    F: Fn(&dyn Rows, Tick, &mut Changes) -> Result<bool, Unread> + Send + Sync + Clone + 'static,
{
    steps_in(due.key(), engine, due, step)
}

/// The same, as decisions of `partition`.
pub fn steps_in<'a, F>(
    partition: Key,
    engine: &'a dyn Engine,
    due: &'a Due,
    step: F,
) -> BoxFuture<'a, Result<(), EngineError>>
where
    F: Fn(&dyn Rows, Tick, &mut Changes) -> Result<bool, Unread> + Send + Sync + Clone + 'static,
{
    Box::pin(async move {
        let step = move |rows: &dyn Rows, tick: Tick, (): &(), changes: &mut Changes| {
            Ok(step(rows, tick, changes)?.then_some(()))
        };
        run_steps(partition, engine, due, (), step).await.map(drop)
    })
}

/// The same as [`steps`], for work that goes through many rows in order. Each step is told how far those before it have come,
/// and says how far it has come itself; `None`: nothing is left. What it says counts once its changes are committed. Returns
/// where the next turn goes on.
///
/// A step that looked for its first row from the beginning would walk over all that the steps before it have removed.
pub fn steps_from<'a, C, F>(
    engine: &'a dyn Engine,
    due: &'a Due,
    from: C,
    step: F,
) -> BoxFuture<'a, Result<Option<C>, EngineError>>
where
    C: Clone + Send + Sync + 'static,
    F: Fn(&dyn Rows, Tick, &C, &mut Changes) -> Result<Option<C>, Unread> + Send + Sync + Clone + 'static,
{
    steps_from_in(due.key(), engine, due, from, step)
}

/// The same, as decisions of `partition`.
pub fn steps_from_in<'a, C, F>(
    partition: Key,
    engine: &'a dyn Engine,
    due: &'a Due,
    from: C,
    step: F,
) -> BoxFuture<'a, Result<Option<C>, EngineError>>
where
    C: Clone + Send + Sync + 'static,
    F: Fn(&dyn Rows, Tick, &C, &mut Changes) -> Result<Option<C>, Unread> + Send + Sync + Clone + 'static,
{
    Box::pin(run_steps(partition, engine, due, from, step))
}

async fn run_steps<C, F>(
    partition: Key,
    engine: &dyn Engine,
    due: &Due,
    mut from: C,
    step: F,
) -> Result<Option<C>, EngineError>
where
    C: Clone + Send + Sync + 'static,
    F: Fn(&dyn Rows, Tick, &C, &mut Changes) -> Result<Option<C>, Unread> + Send + Sync + Clone + 'static,
{
    for _ in 0..STEPS_PER_TURN {
        let (key, step) = (due.key(), step.clone());
        let next = commit::<Option<C>, std::convert::Infallible, _>(engine, partition.clone(), move |rows, tick| {
            let mut changes = Changes::none().freeing_space();
            let next = step(rows, tick, &from, &mut changes)?;
            if next.is_none() {
                // First, so that a step may put it back for another time.
                changes.rows.insert(0, (key.clone(), None));
            }
            Ok(Commit { changes, outcome: next })
        });
        match next.await.or_else(failed)? {
            Some(next) => from = next,
            None => return Ok(None),
        }
    }
    Ok(Some(from))
}

/// Removes up to `most` rows of a range in one decision and says whether any are left.
pub fn delete_some(
    rows: &dyn Rows,
    from: &Key,
    to: &Key,
    most: usize,
    changes: &mut Changes,
    mut each: impl FnMut(&[u8], &Bytes, &mut Changes),
) -> Result<bool, Unread> {
    let mut count = 0;
    let mut more = false;
    rows.scan(from, to, most + 1, &mut |key, value| {
        if count == most {
            more = true;
            return Visit::Stop;
        }
        count += 1;
        changes.delete(Key::from_bytes(key));
        each(key, value, changes);
        Visit::Next
    })?;
    Ok(more)
}

#[cfg(test)]
mod tests {
    use tokio::sync::Barrier;

    use super::*;
    use crate::memory::MemoryEngine;

    const SPACE: u8 = 0x70;

    /// Fails on owners that begin with "bad", panics on those that begin with "worse", and removes the row of others.
    #[derive(Debug)]
    struct Picky;

    impl Handler for Picky {
        fn spaces(&self) -> &[u8] {
            &[SPACE]
        }

        fn handle<'a>(&'a self, engine: &'a dyn Engine, due: &'a Due) -> BoxFuture<'a, Result<Handled, EngineError>> {
            Box::pin(async move {
                assert!(!due.owner.starts_with(b"worse"), "this test panics on purpose");
                if due.owner.starts_with(b"bad") {
                    return Err(EngineError::Corrupt("a bad row".into()));
                }
                steps(engine, due, |_, _, _| Ok(false)).await.map(|()| Handled::Done)
            })
        }
    }

    async fn put_due(engine: &dyn Engine, at: Timestamp, owner: &str) -> Key {
        let key = due::key(at, SPACE, owner.as_bytes());
        let row = key.clone();
        let put = commit::<(), std::convert::Infallible, _>(engine, key.clone(), move |_, _| {
            let mut changes = Changes::none();
            changes.put(row.clone(), Bytes::new());
            Ok(Commit { changes, outcome: () })
        });
        put.await.expect("a due row");
        key
    }

    fn seconds(moment: Instant, seconds: u64) -> Instant {
        moment + Duration::from_secs(seconds)
    }

    #[tokio::test]
    async fn a_row_that_cannot_be_handled_stops_no_other() {
        let (engine, sweeper, began) = (MemoryEngine::new(1), Sweeper::default(), Instant::now());
        for (number, owner) in ["bad 1", "good 1", "worse 1", "good 2"].iter().enumerate() {
            put_due(&engine, Timestamp(number as u64), owner).await;
        }
        let swept = sweeper.sweep_at(&engine, &[&Picky], began).await.expect("swept");
        assert_eq!((swept.handled, swept.failures.len()), (2, 2));
        assert!(swept.failures[0].what.contains("bad 1") && swept.failures[1].what.contains("worse 1"));
        assert_eq!(sweeper.figures(), [("due_failures", 2), ("due_failing", 2)]);
        let swept = sweeper.sweep_at(&engine, &[&Picky], seconds(began, 1)).await.expect("swept");
        assert_eq!((swept.handled, swept.failures.len()), (0, 0), "they rest");
        let swept = sweeper.sweep_at(&engine, &[&Picky], seconds(began, 3)).await.expect("swept");
        assert_eq!(
            swept.failures.iter().map(|failed| failed.times).collect::<Vec<_>>(),
            [2, 2],
            "they are tried again"
        );
        let swept = sweeper.sweep_at(&engine, &[&Picky], seconds(began, 6)).await.expect("swept");
        assert!(swept.failures.is_empty(), "the second rest is longer");
    }

    #[tokio::test]
    async fn a_turn_goes_on_where_the_last_one_ended() {
        let engine = MemoryEngine::new(1);
        let key = put_due(&engine, Timestamp(5), "long").await;
        let due = Due::from_key(key.as_bytes()).expect("a due row");
        let is_due = async || {
            let key = key.clone();
            let found = crate::read::<_, std::convert::Infallible, _>(&engine, move |rows, _| Ok(rows.get(&key)?));
            found.await.expect("read").is_some()
        };
        let count = STEPS_PER_TURN as u64 + 50;
        let step = move |_: &dyn Rows, _: Tick, from: &u64, _: &mut Changes| {
            let next = from + 1;
            Ok((next < count).then_some(next))
        };
        let next = steps_from(&engine, &due, 0, step).await.expect("a turn");
        assert_eq!((next, is_due().await), (Some(STEPS_PER_TURN as u64), true));
        // A step that fails says nothing about how far it came, and the row stays.
        let fails = |_: &dyn Rows, _: Tick, _: &u64, _: &mut Changes| {
            Err::<Option<u64>, _>(Unread::Failed(EngineError::Unavailable("not now".into())))
        };
        assert!(steps_from(&engine, &due, 100, fails).await.is_err() && is_due().await);
        let next = steps_from(&engine, &due, 100, step).await.expect("a turn");
        assert_eq!((next, is_due().await), (None, false));
    }

    #[tokio::test]
    async fn more_bad_rows_than_a_sweep_takes_stop_no_other() {
        let (engine, sweeper, began) = (MemoryEngine::new(1), Sweeper::default(), Instant::now());
        for number in 0..DUE_PER_SWEEP as u64 + 10 {
            put_due(&engine, Timestamp(number), "bad").await;
        }
        put_due(&engine, Timestamp(1_000_000), "good").await;
        let mut handled = 0;
        for turn in 0..100 {
            handled += sweeper.sweep_at(&engine, &[&Picky], seconds(began, turn)).await.expect("swept").handled;
        }
        assert_eq!(handled, 1);
    }

    #[tokio::test]
    async fn the_low_mark_follows_at_a_distance_and_everything_is_walked_now_and_then() {
        let (engine, sweeper, began) = (MemoryEngine::new(1), Sweeper::default(), Instant::now());
        let sweep = async |after: u64| {
            sweeper.sweep_at(&engine, &[&Picky], seconds(began, after)).await.expect("swept").handled
        };
        assert_eq!(sweep(0).await, 0);
        let first = engine.now();
        put_due(&engine, Timestamp(first.0 - 5), "its decision took a while").await;
        assert_eq!(sweep(30).await, 1, "the mark has not moved yet");
        assert_eq!(sweep(61).await, 0);
        let low = sweeper.memory().low.clone().expect("a low mark");
        assert!(low <= due::range(first).1 && low > due::range(Timestamp(first.0 - 1_000_000_000)).1);
        put_due(&engine, Timestamp(7), "far too late").await;
        assert_eq!(sweep(62).await, 0, "below the mark");
        put_due(&engine, engine.now(), "now").await;
        assert_eq!(sweep(63).await, 1);
        // Most sweeps begin nearer, and now and then one looks back.
        put_due(&engine, first, "its decision took a while").await;
        assert_eq!(sweep(66).await, 0, "below the near mark");
        assert_eq!(sweep(72).await, 1, "a look back");
        assert_eq!(sweep(700).await, 1, "everything is walked");
    }

    /// A handler may do only a part of its work in one turn: the mark must not pass its row.
    #[tokio::test]
    async fn the_low_mark_does_not_pass_a_row_that_is_still_there() {
        #[derive(Debug)]
        struct Slow;
        impl Handler for Slow {
            fn spaces(&self) -> &[u8] {
                &[SPACE]
            }

            fn handle<'a>(&'a self, _: &'a dyn Engine, _: &'a Due) -> BoxFuture<'a, Result<Handled, EngineError>> {
                Box::pin(async { Ok(Handled::Done) })
            }
        }
        let (engine, sweeper, began) = (MemoryEngine::new(1), Sweeper::default(), Instant::now());
        let row = put_due(&engine, Timestamp(7), "a large container").await;
        for after in [0, 61, 122] {
            let swept = sweeper.sweep_at(&engine, &[&Slow], seconds(began, after)).await.expect("swept");
            assert_eq!(swept.handled, 1);
        }
        assert!(sweeper.memory().low.as_ref().is_none_or(|low| *low <= row));
    }

    /// Another node may be at work on a row: the row stays and rests no longer than any other.
    #[tokio::test]
    async fn a_row_that_is_left_to_another_is_no_failure() {
        #[derive(Debug)]
        struct Elsewhere;
        impl Handler for Elsewhere {
            fn spaces(&self) -> &[u8] {
                &[SPACE]
            }

            fn handle<'a>(&'a self, _: &'a dyn Engine, _: &'a Due) -> BoxFuture<'a, Result<Handled, EngineError>> {
                Box::pin(async { Ok(Handled::Left) })
            }
        }
        let (engine, sweeper) = (MemoryEngine::new(1), Sweeper::default());
        put_due(&engine, Timestamp(7), "a copy").await;
        for _ in 0..2 {
            let swept = sweeper.sweep(&engine, &[&Elsewhere]).await.expect("swept");
            assert_eq!((swept.handled, swept.failures.len()), (0, 0));
        }
        assert_eq!(
            sweeper.sweep(&engine, &[&Picky]).await.expect("swept").handled,
            1,
            "it is still there, and not resting"
        );
    }

    const ROWS: u64 = 200;

    /// Handles rows only when so many of them are under way together; every tenth fails.
    #[derive(Debug)]
    struct Together {
        barrier: Barrier,
        seen: Mutex<Vec<u64>>,
    }

    impl Handler for Together {
        fn spaces(&self) -> &[u8] {
            &[SPACE]
        }

        fn handle<'a>(&'a self, _: &'a dyn Engine, due: &'a Due) -> BoxFuture<'a, Result<Handled, EngineError>> {
            Box::pin(async move {
                self.barrier.wait().await;
                let owner = due.owner_id().unwrap_or(0);
                self.seen.lock().unwrap().push(owner);
                if owner.is_multiple_of(10) { Err(EngineError::Busy) } else { Ok(Handled::Done) }
            })
        }
    }

    #[tokio::test]
    async fn due_rows_are_handled_together_and_one_that_fails_stops_no_other() {
        let engine = MemoryEngine::new(7);
        for owner in 0..ROWS {
            let due = Due::new(Timestamp(0), SPACE, &owner.to_be_bytes());
            let put = commit::<(), std::convert::Infallible, _>(&engine, due.key(), move |_, _| {
                let mut changes = Changes::none();
                changes.put(due.key(), Bytes::new());
                Ok(Commit { changes, outcome: () })
            });
            put.await.unwrap();
        }
        let together = Together { barrier: Barrier::new(20), seen: Mutex::default() };
        let handlers: [&dyn Handler; 1] = [&together];
        let sweeping = sweep(&engine, &handlers);
        let swept = tokio::time::timeout(Duration::from_secs(30), sweeping).await;
        assert!(swept.expect("they wait for each other in vain").is_err());
        assert_eq!(together.seen.lock().unwrap().len() as u64, ROWS);
    }
}
