//! The seam between the services and the engines.
//!
//! A service hands the engine a **pure function**. The engine calls it with the rows it asks for and a [`Tick`]; the
//! function answers with [`Changes`] or a refusal, and the engine commits the changes in one step or not at all.
//! Azure's semantics live in those functions, once; an engine sees keys, rows and bytes.
//!
//! What always holds, for every engine (`conformance` proves it):
//!
//! - Decisions of one partition are judged one after another: each sees the changes of all that came before it. A decision
//!   that names several partitions ([`Partitions`]) is one of each of them.
//! - The same holds across partitions for everything a decision has read: a row, or a range it scanned as far as it went. If
//!   any of it was changed by a commit that came before, the decision is run again. One pair alone is excepted, on engines
//!   of many machines: two decisions that have no partition in common, each of which relies on a row not being there, or on a
//!   range, that the other one writes, may both commit. Such a pair meets at a row that is there (one changes it, the other
//!   reads it by its key), or one of the two names the partition of the other beside its own.
//! - An answer, a refusal too, is given only when everything it was decided on is durable.
//! - A [`read`] sees one state, and that state is durable: nothing a crash can take back.
//! - `stamp` is unique and rises strictly within a partition, over restarts and clock steps; `now` follows the clock.
//! - Contents become reachable with the commit that stores them and stay whole until the last reference is gone; a
//!   [`Content`] once opened can be read to its end whatever happens to its owner.

pub mod account;
pub mod byte_store;
mod clock;
pub mod collector;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod conformance;
mod content;
pub mod due;
mod error;
#[cfg(feature = "testing")]
pub mod fault;
pub mod hints;
mod key;
mod load_size;
#[cfg(feature = "testing")]
pub mod loads;
pub mod memory;
pub mod panics;
mod partitions;
mod wrapper;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
pub use concurrency::Timestamp;

pub use clock::{Clock, StampSource};
pub use content::{Content, ContentId, ContentReader, ContentWriter, INLINE_MAX, Part, Staged};
pub use error::{EngineError, NotCommitted, Stop, Unread};
pub use key::{Key, KeyReader, prefix_end, space};
pub use load_size::rows_per_load;
pub use partitions::{PARTITIONS_MAX, Partitions};
pub use wrapper::Wrapper;

/// A future the seam returns; boxed, so that services hold engines as `Arc<dyn Engine>`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Keys longer than this are refused before they reach an engine.
pub const KEY_BYTES_MAX: usize = 8 * 1024;
/// Values longer than this are refused; services split what is larger.
pub const VALUE_BYTES_MAX: usize = 1_100 * 1024;
/// How many ids one decision may draw from its [`Tick`]: an entity group transaction has up to 100 operations, each with a
/// timestamp of its own. At 128 steps of 100 ns stamps keep up with the clock to 78,000 decisions a second.
pub const IDS_PER_TICK: u64 = 128;

/// How many keys [`Rows::prefetch`] takes note of in one run of a function: the entities of a transaction, and some more.
pub const PREFETCH_KEYS_MAX: usize = 256;

/// What the engine alone can know at the moment of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Tick {
    /// The time by which leases and retentions are judged.
    pub now: Timestamp,
    /// Unique and strictly rising: ETags, Last-Modified, snapshot and version ids are made of it.
    pub stamp: Timestamp,
    /// Fresh randomness, for ids that must not be guessed or that must look like GUIDs.
    pub entropy: u128,
}

impl Tick {
    /// The `n`-th fresh id of this decision: unique in the whole store, for ever. `id(0)` is the stamp itself.
    #[must_use]
    pub fn id(&self, n: u64) -> u64 {
        assert!(n < IDS_PER_TICK, "a decision draws at most {IDS_PER_TICK} ids");
        self.stamp.0 + n
    }
}

/// What a scan does after a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visit {
    Next,
    /// Go on at the first key that is not below this one. It must lie after the current row.
    SkipTo(Key),
    Stop,
}

/// The rows a function may look at: one state of the store.
///
/// An engine that has a row at hand returns it; one that must fetch it first returns [`Unread::NotYet`], fetches, and
/// calls the function again from its start. So pass every `Unread` on with `?`, and keep functions pure. Such an engine may
/// also run a function on rows as they were before, only to learn what it will ask for (`hints`); what it says then counts
/// for nothing.
pub trait Rows {
    /// The row at `key`.
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Unread>;

    /// Says that the function is about to ask for these rows, up to [`PREFETCH_KEYS_MAX`]. An engine that must fetch rows
    /// fetches them together with the next one that is missing.
    ///
    /// It changes nothing in what is seen, and a row that was announced and not looked at is none that the function has read:
    /// others may change it without a conflict. So announce what is asked for in most cases, before asking for the first.
    fn prefetch(&self, keys: &[Key]) {
        let _ = keys;
    }

    /// Visits the rows with `from <= key < to` in order. `about` is how many rows the visitor expects to see.
    fn scan(
        &self,
        from: &Key,
        to: &Key,
        about: usize,
        visit: &mut dyn FnMut(&[u8], &Bytes) -> Visit,
    ) -> Result<(), Unread>;

    /// Opens a stored content. What it returns stays readable after the function has ended.
    fn content(&self, id: ContentId) -> Result<Content, Unread>;
}

/// What a decision wants changed: all of it, in one step.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Rows to set (`Some`) or remove (`None`), applied in order; of two writes to one key the later counts.
    pub rows: Vec<(Key, Option<Bytes>)>,
    /// Contents that become stored with this commit.
    pub contents: Vec<Staged>,
    /// Contents to which there is no reference, and never can be again.
    pub dropped: Vec<ContentId>,
    /// Set for deletes and clean-up: such commits are let through when the disk is nearly full.
    pub frees_space: bool,
}

impl Changes {
    #[must_use]
    pub fn none() -> Changes {
        Changes::default()
    }

    pub fn put(&mut self, key: Key, value: impl Into<Bytes>) -> &mut Self {
        self.rows.push((key, Some(value.into())));
        self
    }

    pub fn delete(&mut self, key: Key) -> &mut Self {
        self.rows.push((key, None));
        self
    }

    /// Stores a staged content with this commit, referred to by `owner`.
    pub fn store(&mut self, staged: &Staged, owner: u64) -> &mut Self {
        self.contents.push(staged.clone());
        self.refer(staged.id().0, owner)
    }

    /// Adds a reference from `owner` to `thing` (a content, or an object that itself refers to contents).
    ///
    /// The decision must have seen that `thing` is there, in the same step.
    pub fn refer(&mut self, thing: u64, owner: u64) -> &mut Self {
        self.put(collector::ref_key(thing, owner), Bytes::new())
    }

    /// Takes a reference back and asks the owner of `space` to look at `thing`, which is in it. Contents are the collector's.
    pub fn unrefer(&mut self, space: u8, thing: u64, owner: u64, now: Timestamp) -> &mut Self {
        self.delete(collector::ref_key(thing, owner));
        self.put(due::key(now, space, &thing.to_be_bytes()), Bytes::new())
    }

    #[must_use]
    pub fn freeing_space(mut self) -> Changes {
        self.frees_space = true;
        self
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.contents.is_empty() && self.dropped.is_empty()
    }

    /// Refuses what no engine could store.
    pub fn validate(&self) -> Result<(), EngineError> {
        for (key, value) in &self.rows {
            let length = value.as_ref().map_or(0, Bytes::len);
            if key.as_bytes().is_empty() || key.as_bytes().len() > KEY_BYTES_MAX || length > VALUE_BYTES_MAX {
                return Err(EngineError::TooLarge { key_bytes: key.as_bytes().len(), value_bytes: length });
            }
        }
        Ok(())
    }
}

/// What became of one run of a decision. Engines match on it; services never see it.
#[derive(Debug)]
pub enum Verdict {
    Commit(Changes),
    /// No change. The decision keeps its refusal for the caller.
    Refuse,
    Unread(Unread),
}

/// A decision as engines see it: run it, perhaps more than once, and commit what it says.
pub trait Decision: Send {
    /// The partitions it changes, each by the key of its head row: mostly one. Engines serve partitions in turn.
    ///
    /// A decision that looks at more than a thousand rows may be run beside the others and only checked in its turn: if
    /// anything that it read has been written since, it is run again.
    fn partitions(&self) -> &Partitions;
    fn decide(&mut self, rows: &dyn Rows, tick: Tick) -> Verdict;
}

/// A read as engines see it: run it on one durable state, perhaps more than once, until it has what it wants.
pub trait Query: Send {
    fn run(&mut self, rows: &dyn Rows, now: Timestamp) -> Result<(), Unread>;
}

/// A place for rows and bytes.
pub trait Engine: Debug + Send + Sync {
    /// Judges the decision in its turn and commits it. Ready when the answer is durable.
    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>>;

    /// Runs the query on the newest durable state. The engine owns it: it may be run on another thread than the caller's.
    fn query(&self, query: Box<dyn Query>) -> BoxFuture<'_, Result<(), EngineError>>;

    /// Starts a content of `length` bytes, if that is known. Nothing is seen of it until a commit stores it.
    fn writer(&self, length: Option<u64>) -> Box<dyn ContentWriter>;

    /// The time by which leases and retentions are judged.
    fn now(&self) -> Timestamp;

    /// Moves the engine's time forward, durably, and returns by how many seconds it now leads. For tests of time.
    fn advance_clock(&self, seconds: u64) -> BoxFuture<'_, Result<u64, EngineError>>;

    /// Figures for the operator: name and value, in a fixed order.
    fn figures(&self) -> Vec<(&'static str, u64)>;

    /// Finishes what runs, refuses what comes, and closes in good order.
    fn close(&self) -> BoxFuture<'_, Result<(), EngineError>>;
}

/// What a decision answers: the changes, and what to tell the caller once they are durable.
#[derive(Debug)]
pub struct Commit<T> {
    pub changes: Changes,
    pub outcome: T,
}

impl<T> Commit<T> {
    /// An answer that changes nothing, but is still given only when what it was decided on is durable.
    #[must_use]
    pub fn unchanged(outcome: T) -> Commit<T> {
        Commit { changes: Changes::none(), outcome }
    }
}

/// Commits a decision: the typed door to [`Engine::commit`].
///
/// `partitions` is the key of the partition that it changes, or [`Partitions`]. `decide` may run more than once; only the last
/// run counts.
pub async fn commit<T, R, F>(
    engine: &dyn Engine,
    partitions: impl Into<Partitions>,
    decide: F,
) -> Result<T, NotCommitted<R>>
where
    T: Send + 'static,
    R: Send + 'static,
    F: FnMut(&dyn Rows, Tick) -> Result<Commit<T>, Stop<R>> + Send + 'static,
{
    let (decision, pending) = ask(partitions, decide);
    engine.commit(decision).await.map_err(NotCommitted::Failed)?;
    pending.answer()
}

/// A decision as engines take it, and where its answer will be. For engines that decide something themselves.
pub fn ask<T, R, F>(partitions: impl Into<Partitions>, decide: F) -> (Box<dyn Decision>, Pending<T, R>)
where
    T: Send + 'static,
    R: Send + 'static,
    F: FnMut(&dyn Rows, Tick) -> Result<Commit<T>, Stop<R>> + Send + 'static,
{
    let answer = Arc::new(Mutex::new(None));
    let pending = Pending(Arc::clone(&answer));
    (Box::new(FnDecision { partitions: partitions.into(), decide, answer }), pending)
}

/// The answer to a decision, once the engine has committed it, or to a query that has been run.
#[derive(Debug)]
pub struct Pending<T, R>(Arc<Mutex<Option<Result<T, R>>>>);

impl<T, R> Pending<T, R> {
    pub fn answer(self) -> Result<T, NotCommitted<R>> {
        match self.0.lock().expect("no decision panics while it holds its answer").take() {
            Some(Ok(outcome)) => Ok(outcome),
            Some(Err(refusal)) => Err(NotCommitted::Refused(refusal)),
            None => Err(NotCommitted::Failed(EngineError::Unavailable("the engine gave no answer".into()))),
        }
    }
}

/// Reads one durable state: the typed door to [`Engine::query`].
///
/// `run` may run more than once, and elsewhere than the caller; only the last run counts.
pub async fn read<T, R, F>(engine: &dyn Engine, run: F) -> Result<T, NotCommitted<R>>
where
    T: Send + 'static,
    R: Send + 'static,
    F: FnMut(&dyn Rows, Timestamp) -> Result<T, Stop<R>> + Send + 'static,
{
    let answer = Arc::new(Mutex::new(None));
    let pending = Pending(Arc::clone(&answer));
    engine.query(Box::new(FnQuery { run, answer })).await.map_err(NotCommitted::Failed)?;
    pending.answer()
}

/// A decision made of a function.
struct FnDecision<T, R, F> {
    partitions: Partitions,
    decide: F,
    answer: Arc<Mutex<Option<Result<T, R>>>>,
}

impl<T, R, F> Decision for FnDecision<T, R, F>
where
    T: Send,
    R: Send,
    F: FnMut(&dyn Rows, Tick) -> Result<Commit<T>, Stop<R>> + Send,
{
    fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    fn decide(&mut self, rows: &dyn Rows, tick: Tick) -> Verdict {
        let (answer, verdict) = match (self.decide)(rows, tick) {
            Ok(commit) => (Some(Ok(commit.outcome)), Verdict::Commit(commit.changes)),
            Err(Stop::Refused(refusal)) => (Some(Err(refusal)), Verdict::Refuse),
            Err(Stop::Unread(unread)) => (None, Verdict::Unread(unread)),
        };
        *self.answer.lock().expect("no decision panics while it holds its answer") = answer;
        verdict
    }
}

/// A query made of a function.
struct FnQuery<T, R, F> {
    run: F,
    answer: Arc<Mutex<Option<Result<T, R>>>>,
}

impl<T, R, F> Query for FnQuery<T, R, F>
where
    T: Send,
    R: Send,
    F: FnMut(&dyn Rows, Timestamp) -> Result<T, Stop<R>> + Send,
{
    fn run(&mut self, rows: &dyn Rows, now: Timestamp) -> Result<(), Unread> {
        let answer = match (self.run)(rows, now) {
            Ok(outcome) => Ok(outcome),
            Err(Stop::Refused(refusal)) => Err(refusal),
            Err(Stop::Unread(unread)) => return Err(unread),
        };
        *self.answer.lock().expect("no query panics while it holds its answer") = Some(answer);
        Ok(())
    }
}
