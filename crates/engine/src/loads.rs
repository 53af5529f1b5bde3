//! An engine that has nothing at hand: it answers `NotYet` first, and counts how often it had to fetch.
//!
//! The engine for many machines fetches the rows of a function from its database, and runs the function again from its start when
//! more came in. Over this wrapper every function lives through the same on any engine: what it asks for the first time is not there,
//! and each round of fetching is counted as the round trip that it would be. What led to other rows before is guessed first
//! (`hints`), as there. A decision is run once more at the end, and must say the same: it is a pure function of its rows and its tick.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::hints::Hints;
use crate::{
    BoxFuture, Changes, Content, ContentId, Decision, Engine, EngineError, Key, PREFETCH_KEYS_MAX, Partitions, Query,
    Rows, Tick, Timestamp, Unread, Verdict, Visit, Wrapper, rows_per_load,
};

/// Wraps an engine and counts round trips.
#[derive(Debug)]
pub struct LoadingEngine {
    engine: Arc<dyn Engine>,
    node: Arc<LoadingNode>,
}

/// What the node would keep.
#[derive(Debug, Default)]
struct LoadingNode {
    trips: AtomicU64,
    hints: Hints,
}

impl LoadingEngine {
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>) -> LoadingEngine {
        LoadingEngine { engine, node: Arc::default() }
    }

    /// From here on it is as if the node had just started: nothing can be guessed.
    pub fn forget_hints(&self) {
        self.node.hints.forget_all();
    }

    /// The round trips since it was asked last: one for each time that rows were fetched, and one for each commit of changes.
    #[must_use]
    pub fn take_round_trips(&self) -> u64 {
        self.node.trips.swap(0, Ordering::AcqRel)
    }
}

/// Whether the node has served requests of this kind before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeState {
    JustStarted,
    KnowsItsWay,
}

/// What a request may cost: on a node that has just started, and on one that knows its way.
pub type Budget = (u64, u64);

/// Holds the round trips of requests against their budgets.
#[derive(Debug)]
pub struct Tally {
    pub engine: Arc<LoadingEngine>,
    state: NodeState,
    wrong: Vec<String>,
}

impl Tally {
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>, state: NodeState) -> Tally {
        Tally { engine: Arc::new(LoadingEngine::new(engine)), state, wrong: Vec::new() }
    }

    /// A request is about to be sent.
    pub fn begin(&self) {
        if self.state == NodeState::JustStarted {
            self.engine.forget_hints();
        }
        let _ = self.engine.take_round_trips();
    }

    /// It was answered.
    pub fn end(&mut self, request: &str, (just_started, knows_its_way): Budget) {
        let (trips, state) = (self.engine.take_round_trips(), self.state);
        let budget = match state {
            NodeState::JustStarted => just_started,
            NodeState::KnowsItsWay => knows_its_way,
        };
        if trips != budget {
            self.wrong.push(format!("{request}: {trips} round trips on a node that {state:?}, not {budget}"));
        }
    }

    /// Panics unless every request took exactly its budget of round trips. A change that saves trips lowers the budget.
    pub fn assert(self) {
        assert!(self.wrong.is_empty(), "\n{}", self.wrong.join("\n"));
    }
}

impl Wrapper for LoadingEngine {
    fn inner(&self) -> &dyn Engine {
        &*self.engine
    }

    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        self.engine.commit(Box::new(LoadingDecision { decision, node: Arc::clone(&self.node) }))
    }

    fn query(&self, query: Box<dyn Query>) -> BoxFuture<'_, Result<(), EngineError>> {
        self.engine.query(Box::new(LoadingQuery { query, node: Arc::clone(&self.node) }))
    }
}

struct LoadingDecision {
    decision: Box<dyn Decision>,
    node: Arc<LoadingNode>,
}

impl Decision for LoadingDecision {
    fn partitions(&self) -> &Partitions {
        self.decision.partitions()
    }

    fn decide(&mut self, rows: &dyn Rows, tick: Tick) -> Verdict {
        let verdict = until_loaded(rows, &self.node, |view| {
            let verdict = self.decision.decide(view, tick);
            let is_short = matches!(verdict, Verdict::Unread(Unread::NotYet));
            (verdict, is_short)
        });
        assert_same(&verdict, &self.decision.decide(rows, tick));
        if matches!(&verdict, Verdict::Commit(changes) if !changes.is_empty()) {
            self.node.trips.fetch_add(1, Ordering::AcqRel);
        }
        verdict
    }
}

struct LoadingQuery {
    query: Box<dyn Query>,
    node: Arc<LoadingNode>,
}

impl Query for LoadingQuery {
    fn run(&mut self, rows: &dyn Rows, now: Timestamp) -> Result<(), Unread> {
        until_loaded(rows, &self.node, |view| {
            let answer = self.query.run(view, now);
            let is_short = answer == Err(Unread::NotYet);
            (answer, is_short)
        })
    }
}

/// Runs a function until everything it asks for is at hand. It says whether it was told `NotYet`.
fn until_loaded<T>(rows: &dyn Rows, node: &LoadingNode, mut run: impl FnMut(&dyn Rows) -> (T, bool)) -> T {
    let mut loaded = LoadedRows::default();
    loop {
        let view = View::new(rows, &loaded, &node.hints);
        let (answer, is_short) = run(&view);
        let View { wanted, looked_at, guessed, .. } = view;
        let wanted = wanted.into_inner();
        if wanted.is_empty() {
            return answer;
        }
        node.trips.fetch_add(1, Ordering::AcqRel);
        if let Err(unread) = loaded.load(rows, wanted) {
            // The engine below has it not either, or failed: what the function says to that is its answer.
            debug_assert!(unread != Unread::NotYet, "only one engine loads");
            return run(rows).0;
        }
        node.hints.learn(&looked_at.into_inner(), |key| rows.get(&Key::from_bytes(key)).ok().flatten());
        // Contents can be handed out before they are fetched: no need to run again.
        if !is_short && !guessed.get() {
            return answer;
        }
    }
}

fn assert_same(one: &Verdict, other: &Verdict) {
    let is_same = match (one, other) {
        (Verdict::Commit(one), Verdict::Commit(other)) => is_same_change(one, other),
        (Verdict::Refuse, Verdict::Refuse) => true,
        (Verdict::Unread(one), Verdict::Unread(other)) => one == other,
        (Verdict::Commit(_) | Verdict::Refuse | Verdict::Unread(_), _) => false,
    };
    assert!(is_same, "a decision is not a pure function: first {one:?}, then {other:?}");
}

fn is_same_change(one: &Changes, other: &Changes) -> bool {
    let ids = |changes: &Changes| changes.contents.iter().map(crate::Staged::id).collect::<Vec<ContentId>>();
    one.rows == other.rows
        && ids(one) == ids(other)
        && one.dropped == other.dropped
        && one.frees_space == other.frees_space
}

/// The rows that were fetched so far, by key; ranges by their beginning, each with its end.
#[derive(Debug, Default)]
struct LoadedRows {
    points: BTreeSet<Vec<u8>>,
    ranges: BTreeMap<Vec<u8>, Vec<u8>>,
    contents: BTreeSet<u64>,
    range_loads: u32,
}

/// The rows that the function asked for and that were not fetched yet.
#[derive(Debug, Default)]
struct MissingRows {
    points: Vec<Vec<u8>>,
    /// Announced: fetched along with others, never alone.
    announced: Vec<Vec<u8>>,
    ranges: Vec<(Vec<u8>, Vec<u8>, usize)>,
    contents: Vec<u64>,
}

impl MissingRows {
    fn is_empty(&self) -> bool {
        self.points.is_empty() && self.ranges.is_empty() && self.contents.is_empty()
    }
}

impl LoadedRows {
    fn load(&mut self, rows: &dyn Rows, wanted: MissingRows) -> Result<(), Unread> {
        self.points.extend(wanted.points);
        self.points.extend(wanted.announced);
        self.contents.extend(wanted.contents);
        for (from, to, limit) in wanted.ranges {
            self.range_loads += 1;
            let (mut count, mut end) = (0, to.clone());
            rows.scan(&Key::from_bytes(&from), &Key::from_bytes(&to), limit, &mut |key, _| {
                count += 1;
                if count < limit {
                    return Visit::Next;
                }
                end = Key::from_bytes(key).next().as_bytes().to_vec();
                Visit::Stop
            })?;
            self.ranges.insert(from, end);
        }
        Ok(())
    }

    fn has(&self, key: &[u8]) -> bool {
        self.points.contains(key) || self.end_of(key).is_some()
    }

    /// Up to where everything from `at` on is there.
    fn end_of(&self, at: &[u8]) -> Option<&[u8]> {
        let (_, to) = self.ranges.range::<[u8], _>((Unbounded, Included(at))).next_back()?;
        (at < to.as_slice()).then_some(to.as_slice())
    }
}

struct View<'a> {
    rows: &'a dyn Rows,
    loaded: &'a LoadedRows,
    hints: &'a Hints,
    wanted: RefCell<MissingRows>,
    /// The rows that the function was shown by their keys.
    looked_at: RefCell<BTreeSet<Vec<u8>>>,
    /// Some of them were hints, so what the function says counts for nothing.
    guessed: Cell<bool>,
}

impl<'a> View<'a> {
    fn new(rows: &'a dyn Rows, loaded: &'a LoadedRows, hints: &'a Hints) -> View<'a> {
        let (wanted, looked_at) = (RefCell::default(), RefCell::default());
        View { rows, loaded, hints, wanted, looked_at, guessed: Cell::new(false) }
    }
}

impl Rows for View<'_> {
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Unread> {
        let bytes = key.as_bytes();
        if self.loaded.has(bytes) {
            self.looked_at.borrow_mut().insert(bytes.to_vec());
            return self.rows.get(key);
        }
        self.wanted.borrow_mut().points.push(bytes.to_vec());
        let hint = self.hints.row(bytes).ok_or(Unread::NotYet)?;
        self.looked_at.borrow_mut().insert(bytes.to_vec());
        self.guessed.set(true);
        Ok(Some(hint))
    }

    fn prefetch(&self, keys: &[Key]) {
        let announced = &mut self.wanted.borrow_mut().announced;
        let room = PREFETCH_KEYS_MAX.saturating_sub(announced.len());
        let missing = keys.iter().map(Key::as_bytes).filter(|key| !self.loaded.has(key));
        announced.extend(missing.take(room).map(<[u8]>::to_vec));
    }

    fn scan(
        &self,
        from: &Key,
        to: &Key,
        about: usize,
        visit: &mut dyn FnMut(&[u8], &Bytes) -> Visit,
    ) -> Result<(), Unread> {
        let mut at = from.clone();
        while at < *to {
            let Some(end) = self.loaded.end_of(at.as_bytes()) else {
                let limit = rows_per_load(about, self.loaded.range_loads);
                self.wanted.borrow_mut().ranges.push((at.as_bytes().to_vec(), to.as_bytes().to_vec(), limit));
                return Err(Unread::NotYet);
            };
            let end = Key::from_bytes(end).min(to.clone());
            let mut next = Some(end.clone());
            self.rows.scan(&at, &end, about, &mut |key, value| match visit(key, value) {
                Visit::Next => Visit::Next,
                Visit::SkipTo(far) => {
                    next = Some(far);
                    Visit::Stop
                }
                Visit::Stop => {
                    next = None;
                    Visit::Stop
                }
            })?;
            match next {
                Some(next) => at = next,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn content(&self, id: ContentId) -> Result<Content, Unread> {
        if !self.loaded.contents.contains(&id.0) && !self.wanted.borrow().contents.contains(&id.0) {
            self.wanted.borrow_mut().contents.push(id.0);
        }
        self.rows.content(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryEngine;
    use crate::{Commit, commit, read};
    use std::convert::Infallible;

    fn key(text: &str) -> Key {
        Key::new(0x70).text(text)
    }

    async fn put(engine: &LoadingEngine, name: &'static str, value: &'static str) {
        let decide = move |_: &dyn Rows, _| {
            let mut changes = Changes::none();
            changes.put(key(name), value);
            Ok(Commit { changes, outcome: () })
        };
        commit::<(), Infallible, _>(engine, key(name), decide).await.expect("a plain write");
    }

    /// The trips of one read.
    async fn trips<T: Send + 'static>(engine: &LoadingEngine, run: fn(&dyn Rows) -> Result<T, Unread>) -> u64 {
        let _ = engine.take_round_trips();
        read::<T, Infallible, _>(engine, move |rows, _| Ok(run(rows)?)).await.expect("a read");
        engine.take_round_trips()
    }

    fn engine() -> LoadingEngine {
        LoadingEngine::new(Arc::new(MemoryEngine::default()))
    }

    fn fifty() -> Vec<Key> {
        (0..50).map(|number| key(&number.to_string())).collect()
    }

    fn get_all(rows: &dyn Rows) -> Result<(), Unread> {
        fifty().iter().try_for_each(|key| rows.get(key).map(|_| ()))
    }

    #[tokio::test]
    async fn announced_rows_come_with_the_next_that_is_missing_and_never_alone() {
        let engine = engine();
        assert_eq!(trips(&engine, get_all).await, 50);
        let announced = |rows: &dyn Rows| {
            rows.prefetch(&fifty());
            get_all(rows)
        };
        assert_eq!(trips(&engine, announced).await, 1);
        let only_announced = |rows: &dyn Rows| {
            rows.prefetch(&fifty());
            Ok(())
        };
        assert_eq!(trips(&engine, only_announced).await, 0);
    }

    #[tokio::test]
    async fn what_led_to_another_row_is_guessed_the_next_time() {
        let engine = engine();
        put(&engine, "lead", "one").await;
        put(&engine, "one", "1").await;
        put(&engine, "two", "2").await;
        let follow = |rows: &dyn Rows| {
            let lead = rows.get(&key("lead"))?.expect("it is there");
            rows.get(&key(std::str::from_utf8(&lead).expect("text")))
        };
        assert_eq!(trips(&engine, follow).await, 2);
        assert_eq!(trips(&engine, follow).await, 1);
        put(&engine, "lead", "two").await;
        assert_eq!(trips(&engine, follow).await, 2, "the guess was wrong");
        assert_eq!(trips(&engine, follow).await, 1);
        engine.forget_hints();
        assert_eq!(trips(&engine, follow).await, 2);
    }
}
