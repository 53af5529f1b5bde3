//! An engine that has nothing at hand: it answers `NotYet` first, and counts how often it had to fetch.
//!
//! The engine for many machines fetches the rows of a function from its database, and runs the function again from its start when
//! more came in. Over this wrapper every function lives through the same on any engine: what it asks for the first time is not there,
//! and each round of fetching is counted as the round trip that it would be. A decision is run once more at the end, and must say the
//! same: it is a pure function of its rows and its tick.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::{
    BoxFuture, Changes, Content, ContentId, Decision, Engine, EngineError, Key, Query, Rows, Tick, Timestamp, Unread,
    Verdict, Visit, Wrapper,
};

/// A scan fetches at least so many rows, and at most; each further fetch of a run brings more than the one before.
const ROWS_PER_LOAD_MIN: usize = 16;
const ROWS_PER_LOAD_MAX: usize = 10_000;

/// How many rows a scan fetches that expects to see `about`, after `loads` ranges were fetched.
#[must_use]
pub fn rows_per_load(about: usize, loads: u32) -> usize {
    (about.saturating_add(1).max(ROWS_PER_LOAD_MIN) << loads.min(10)).min(ROWS_PER_LOAD_MAX)
}

/// Wraps an engine and counts round trips.
#[derive(Debug)]
pub struct LoadingEngine {
    engine: Arc<dyn Engine>,
    trips: Arc<AtomicU64>,
}

impl LoadingEngine {
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>) -> LoadingEngine {
        LoadingEngine { engine, trips: Arc::default() }
    }

    /// The round trips since it was asked last: one for each time that rows were fetched, and one for each commit of changes.
    #[must_use]
    pub fn take_round_trips(&self) -> u64 {
        self.trips.swap(0, Ordering::AcqRel)
    }
}

impl Wrapper for LoadingEngine {
    fn inner(&self) -> &dyn Engine {
        &*self.engine
    }

    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        self.engine.commit(Box::new(LoadingDecision { decision, trips: Arc::clone(&self.trips) }))
    }

    fn query<'a>(&'a self, query: &'a mut dyn Query) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move { self.engine.query(&mut LoadingQuery { query, trips: &self.trips }).await })
    }
}

struct LoadingDecision {
    decision: Box<dyn Decision>,
    trips: Arc<AtomicU64>,
}

impl Decision for LoadingDecision {
    fn partition(&self) -> &Key {
        self.decision.partition()
    }

    fn decide(&mut self, rows: &dyn Rows, tick: Tick) -> Verdict {
        let verdict = until_loaded(rows, &self.trips, |view| {
            let verdict = self.decision.decide(view, tick);
            let is_short = matches!(verdict, Verdict::Unread(Unread::NotYet));
            (verdict, is_short)
        });
        assert_same(&verdict, &self.decision.decide(rows, tick));
        if matches!(&verdict, Verdict::Commit(changes) if !changes.is_empty()) {
            self.trips.fetch_add(1, Ordering::AcqRel);
        }
        verdict
    }
}

struct LoadingQuery<'a> {
    query: &'a mut dyn Query,
    trips: &'a AtomicU64,
}

impl Query for LoadingQuery<'_> {
    fn run(&mut self, rows: &dyn Rows, now: Timestamp) -> Result<(), Unread> {
        until_loaded(rows, self.trips, |view| {
            let answer = self.query.run(view, now);
            let is_short = answer == Err(Unread::NotYet);
            (answer, is_short)
        })
    }
}

/// Runs a function until everything it asks for is at hand. It says whether it was told `NotYet`.
fn until_loaded<T>(rows: &dyn Rows, trips: &AtomicU64, mut run: impl FnMut(&View<'_>) -> (T, bool)) -> T {
    let mut loaded = Loaded::default();
    loop {
        let view = View { rows, loaded: &loaded, wanted: RefCell::default() };
        let (answer, is_short) = run(&view);
        let wanted = view.wanted.into_inner();
        if wanted.is_empty() {
            return answer;
        }
        trips.fetch_add(1, Ordering::AcqRel);
        if let Err(unread) = loaded.load(rows, wanted) {
            // The engine below has it not either, or failed: what the function says to that is its answer.
            debug_assert!(unread != Unread::NotYet, "only one engine loads");
            return answer;
        }
        // Contents can be handed out before they are fetched: no need to run again.
        if !is_short {
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

/// What was fetched so far, by key; ranges by where they begin, with where they end.
#[derive(Debug, Default)]
struct Loaded {
    points: BTreeSet<Vec<u8>>,
    ranges: BTreeMap<Vec<u8>, Vec<u8>>,
    contents: BTreeSet<u64>,
    range_loads: u32,
}

/// What was asked for and is not there.
#[derive(Debug, Default)]
struct Wanted {
    points: Vec<Vec<u8>>,
    ranges: Vec<(Vec<u8>, Vec<u8>, usize)>,
    contents: Vec<u64>,
}

impl Wanted {
    fn is_empty(&self) -> bool {
        self.points.is_empty() && self.ranges.is_empty() && self.contents.is_empty()
    }
}

impl Loaded {
    fn load(&mut self, rows: &dyn Rows, wanted: Wanted) -> Result<(), Unread> {
        self.points.extend(wanted.points);
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

    /// Up to where everything from `at` on is there.
    fn end_of(&self, at: &[u8]) -> Option<&[u8]> {
        let (_, to) = self.ranges.range::<[u8], _>((Unbounded, Included(at))).next_back()?;
        (at < to.as_slice()).then_some(to.as_slice())
    }
}

struct View<'a> {
    rows: &'a dyn Rows,
    loaded: &'a Loaded,
    wanted: RefCell<Wanted>,
}

impl Rows for View<'_> {
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Unread> {
        if self.loaded.points.contains(key.as_bytes()) || self.loaded.end_of(key.as_bytes()).is_some() {
            return self.rows.get(key);
        }
        self.wanted.borrow_mut().points.push(key.as_bytes().to_vec());
        Err(Unread::NotYet)
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
