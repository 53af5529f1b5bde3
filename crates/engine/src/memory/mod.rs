//! The reference engine: a sorted map under a lock. Right by reading; also what `--in-memory` runs on.
//!
//! One lock makes every decision atomic and every read one state. Nothing is durable, so nothing has to be waited for.

mod objects;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use bytes::{Bytes, BytesMut};

use crate::{
    BoxFuture, Changes, Clock, Content, ContentId, ContentReader, ContentWriter, Decision, Engine, EngineError, Key,
    Part, Query, Rows, Staged, StampSource, Tick, Timestamp, Unread, Verdict, Visit,
};

pub use objects::MemoryBytes;

/// An engine that forgets everything when it is dropped.
#[derive(Debug)]
pub struct MemoryEngine {
    state: RwLock<State>,
    clock: Clock,
    stamps: StampSource,
    entropy: Mutex<u128>,
    closed: Mutex<bool>,
}

#[derive(Debug, Default)]
struct State {
    rows: BTreeMap<Vec<u8>, Bytes>,
    contents: HashMap<ContentId, Bytes>,
    commits: u64,
}

impl Default for MemoryEngine {
    fn default() -> MemoryEngine {
        MemoryEngine::new(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
    }
}

impl MemoryEngine {
    /// `seed` starts the engine's randomness: the same seed gives the same ids.
    #[must_use]
    pub fn new(seed: u128) -> MemoryEngine {
        MemoryEngine {
            state: RwLock::default(),
            clock: Clock::new(0),
            stamps: StampSource::above(Timestamp(0)),
            entropy: Mutex::new(seed | 1),
            closed: Mutex::new(false),
        }
    }

    fn tick(&self) -> Tick {
        let now = self.clock.now();
        Tick { now, stamp: self.stamps.next(now), entropy: self.fresh_entropy() }
    }

    /// A plain congruential step, mixed: spread well enough for ids, and repeatable.
    fn fresh_entropy(&self) -> u128 {
        let mut state = self.entropy.lock().expect("nothing panics under this lock");
        *state = state.wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645).wrapping_add(0x5851_F42D_4C95_7F2D);
        (*state ^ (*state >> 64)).rotate_left(41)
    }

    fn open(&self) -> Result<MutexGuard<'_, bool>, EngineError> {
        let closed = self.closed.lock().expect("nothing panics under this lock");
        if *closed { Err(EngineError::Closed) } else { Ok(closed) }
    }

    fn decide(&self, mut decision: Box<dyn Decision>) -> Result<(), EngineError> {
        drop(self.open()?);
        let mut state = self.state.write().map_err(|_| poisoned())?;
        let tick = self.tick();
        // A decision that panics is a fault of the service; the engine must go on for all others.
        let run = std::panic::AssertUnwindSafe(|| decision.decide(&View(&state), tick));
        let verdict =
            std::panic::catch_unwind(run).map_err(|_| EngineError::Unavailable("a decision panicked".into()))?;
        match verdict {
            Verdict::Commit(changes) => state.apply(changes),
            Verdict::Refuse => Ok(()),
            Verdict::Unread(Unread::Failed(error)) => Err(error),
            Verdict::Unread(Unread::NotYet) => Err(EngineError::Unavailable("a row was not at hand".into())),
        }
    }
}

impl State {
    fn apply(&mut self, changes: Changes) -> Result<(), EngineError> {
        changes.validate()?;
        for staged in changes.contents {
            let Part::Inline(bytes) = staged.part() else {
                return Err(EngineError::Corrupt("a content of another engine".into()));
            };
            self.contents.insert(staged.id(), bytes.clone());
        }
        for (key, value) in changes.rows {
            match value {
                Some(value) => self.rows.insert(key.as_bytes().to_vec(), value),
                None => self.rows.remove(key.as_bytes()),
            };
        }
        for id in changes.dropped {
            self.contents.remove(&id);
        }
        self.commits += 1;
        Ok(())
    }
}

fn poisoned() -> EngineError {
    EngineError::Unavailable("a decision panicked; the state is not to be trusted".into())
}

impl Engine for MemoryEngine {
    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        let answer = self.decide(decision);
        Box::pin(async move { answer })
    }

    fn query(&self, mut query: Box<dyn Query>) -> BoxFuture<'_, Result<(), EngineError>> {
        let answer = self.state.read().map_err(|_| poisoned()).and_then(|state| {
            query.run(&View(&state), self.clock.now()).map_err(|unread| match unread {
                Unread::Failed(error) => error,
                Unread::NotYet => EngineError::Unavailable("a row was not at hand".into()),
            })
        });
        Box::pin(async move { answer })
    }

    fn writer(&self, length: Option<u64>) -> Box<dyn ContentWriter> {
        let capacity = usize::try_from(length.unwrap_or(0)).unwrap_or(0).min(64 * 1024 * 1024);
        let id = ContentId(self.stamps.next(self.clock.now()).0);
        Box::new(MemoryWriter { id, bytes: BytesMut::with_capacity(capacity) })
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn advance_clock(&self, seconds: u64) -> BoxFuture<'_, Result<u64, EngineError>> {
        self.clock.raise_offset(self.clock.offset_seconds().saturating_add(seconds));
        Box::pin(async move { Ok(self.clock.offset_seconds()) })
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let Ok(state) = self.state.read() else { return Vec::new() };
        let bytes = state.contents.values().map(|content| content.len() as u64).sum();
        vec![
            ("rows", state.rows.len() as u64),
            ("contents", state.contents.len() as u64),
            ("content_bytes", bytes),
            ("commits", state.commits),
        ]
    }

    fn close(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        *self.closed.lock().expect("nothing panics under this lock") = true;
        Box::pin(async { Ok(()) })
    }
}

struct View<'a>(&'a State);

impl Rows for View<'_> {
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Unread> {
        Ok(self.0.rows.get(key.as_bytes()).cloned())
    }

    fn scan(
        &self,
        from: &Key,
        to: &Key,
        _about: usize,
        visit: &mut dyn FnMut(&[u8], &Bytes) -> Visit,
    ) -> Result<(), Unread> {
        let mut from = from.as_bytes().to_vec();
        while from.as_slice() < to.as_bytes() {
            let mut range = self.0.rows.range(from.clone()..to.as_bytes().to_vec());
            let skip = range.find_map(|(key, value)| match visit(key, value) {
                Visit::Next => None,
                Visit::SkipTo(next) => Some(Some(next)),
                Visit::Stop => Some(None),
            });
            match skip {
                Some(Some(next)) => from = next.as_bytes().to_vec(),
                Some(None) | None => return Ok(()),
            }
        }
        Ok(())
    }

    fn content(&self, id: ContentId) -> Result<Content, Unread> {
        let bytes = self.0.contents.get(&id).cloned();
        let bytes = bytes.ok_or_else(|| EngineError::Corrupt(format!("content {} is not there", id.0)))?;
        Ok(Content::new(Arc::new(MemoryContent(bytes))))
    }
}

#[derive(Debug)]
struct MemoryContent(Bytes);

impl ContentReader for MemoryContent {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, offset: u64, most: usize) -> BoxFuture<'_, Result<Bytes, EngineError>> {
        let bytes = self.read_now(offset, most).unwrap_or_else(|| Ok(Bytes::new()));
        Box::pin(async move { bytes })
    }

    fn read_now(&self, offset: u64, most: usize) -> Option<Result<Bytes, EngineError>> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let end = start.saturating_add(most).min(self.0.len());
        Some(Ok(self.0.slice(start..end)))
    }
}

struct MemoryWriter {
    id: ContentId,
    bytes: BytesMut,
}

impl ContentWriter for MemoryWriter {
    fn id(&self) -> ContentId {
        self.id
    }

    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        self.bytes.extend_from_slice(&bytes);
        Box::pin(async { Ok(()) })
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<Staged, EngineError>> {
        let length = self.bytes.len() as u64;
        Box::pin(async move { Ok(Staged::new(self.id, length, Part::Inline(self.bytes.freeze()))) })
    }
}
