//! The model: a map of rows.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use engine::{BoxFuture, Changes, Content, ContentId, ContentReader, EngineError, Key, Unread, Visit};
use histories::{Model, Span};

use crate::Contents;
use crate::plan::{Outcome, Plan, Seen};

/// A plan, and the contents that were staged for it.
pub struct Asked {
    pub plan: Plan,
    pub contents: Contents,
}

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.plan.fmt(f)
    }
}

impl Asked {
    pub fn run(&self, rows: &dyn engine::Rows) -> Result<Seen, Unread> {
        self.plan.run(rows, &self.contents)
    }
}

/// All rows, shared between the states that have the same.
#[derive(Clone, Default)]
pub struct Rows {
    rows: Arc<BTreeMap<Vec<u8>, Bytes>>,
    /// Over keys and values, whatever their order: two states with the same are the same.
    digest: u64,
}

impl PartialEq for Rows {
    fn eq(&self, other: &Rows) -> bool {
        self.digest == other.digest && self.rows.len() == other.rows.len()
    }
}

impl Eq for Rows {}

impl Hash for Rows {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rows {:016x}", self.rows.len(), self.digest)
    }
}

fn digest(key: &[u8], value: &Bytes) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, value).hash(&mut hasher);
    hasher.finish()
}

impl Rows {
    fn apply(&mut self, changes: Changes) {
        let rows = Arc::make_mut(&mut self.rows);
        for (key, value) in changes.rows {
            let key = key.as_bytes();
            // The rows by which contents are kept and collected are the engine's affair.
            if !Plan::is_row(key) {
                continue;
            }
            let before = match value {
                Some(value) => {
                    self.digest ^= digest(key, &value);
                    rows.insert(key.to_vec(), value)
                }
                None => rows.remove(key),
            };
            if let Some(before) = before {
                self.digest ^= digest(key, &before);
            }
        }
    }

    fn after(&self, asked: &Asked) -> (Outcome, Rows) {
        let Seen { outcome, changes, .. } = asked.run(self).expect("a map has every row");
        let mut after = self.clone();
        if matches!(outcome, Outcome::Done(_)) && !changes.is_empty() {
            after.apply(changes);
        }
        (outcome, after)
    }
}

impl Model for Rows {
    type Call = Arc<Asked>;
    type Answer = Outcome;

    fn answered(&self, asked: &Arc<Asked>, answer: &Outcome, _: Span) -> Vec<Rows> {
        let (outcome, after) = self.after(asked);
        if outcome == *answer { vec![after] } else { Vec::new() }
    }

    fn unanswered(&self, asked: &Arc<Asked>, _: Span) -> Vec<Rows> {
        vec![self.after(asked).1]
    }
}

impl engine::Rows for Rows {
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Unread> {
        Ok(self.rows.get(key.as_bytes()).cloned())
    }

    fn scan(
        &self,
        from: &Key,
        to: &Key,
        _about: usize,
        visit: &mut dyn FnMut(&[u8], &Bytes) -> Visit,
    ) -> Result<(), Unread> {
        // As plain as can be: what is skipped is walked over and not shown.
        let mut at = from.as_bytes().to_vec();
        for (key, value) in self.rows.range(at.clone()..).take_while(|(key, _)| key.as_slice() < to.as_bytes()) {
            if *key < at {
                continue;
            }
            match visit(key, value) {
                Visit::Next => {}
                Visit::SkipTo(next) => at = next.as_bytes().to_vec(),
                Visit::Stop => break,
            }
        }
        Ok(())
    }

    fn content(&self, _: ContentId) -> Result<Content, Unread> {
        Ok(Content::new(Arc::new(NeverRead)))
    }
}

/// Stands for a content; nobody reads it in the model.
#[derive(Debug)]
struct NeverRead;

impl ContentReader for NeverRead {
    fn length(&self) -> u64 {
        0
    }

    fn read(&self, _: u64, _: usize) -> BoxFuture<'_, Result<Bytes, EngineError>> {
        Box::pin(async { Ok(Bytes::new()) })
    }

    fn read_now(&self, _: u64, _: usize) -> Option<Result<Bytes, EngineError>> {
        Some(Ok(Bytes::new()))
    }
}
