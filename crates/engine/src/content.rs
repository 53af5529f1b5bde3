//! Contents: immutable bytes, written once, stored by a commit, read in ranges.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use crate::{BoxFuture, EngineError};

/// Contents up to this many bytes travel with their commit: one append, one sync.
pub const INLINE_MAX: usize = 64 * 1024;

/// Names a content; unique for ever.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ContentId(pub u64);

/// A content on its way in.
pub trait ContentWriter: Send {
    /// The id that the content will have. Known from the start, so that it can be bound to what is written.
    fn id(&self) -> ContentId;

    /// Takes the next bytes. Pends while the store is behind, so memory stays bounded.
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>>;

    /// The content is complete: what this returns is durable (or small enough to travel with its commit).
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<Staged, EngineError>>;
}

/// A complete content that no commit has stored yet. Dropping the last clone gives its place back.
#[derive(Clone, Debug)]
pub struct Staged {
    id: ContentId,
    length: u64,
    part: Part,
}

/// Where a staged content waits. For engines.
#[derive(Clone, Debug)]
pub enum Part {
    /// In memory: the commit carries it.
    Inline(Bytes),
    /// In the byte store, durable: the rows that say where, and whatever keeps the place from being collected.
    Placed { rows: Arc<Vec<Bytes>>, hold: Arc<dyn Hold> },
}

/// Keeps staged bytes alive; what it is only the engine knows.
pub trait Hold: Debug + Send + Sync + Any {}
impl<T: Debug + Send + Sync + Any> Hold for T {}

impl Staged {
    #[must_use]
    pub fn new(id: ContentId, length: u64, part: Part) -> Staged {
        Staged { id, length, part }
    }

    #[must_use]
    pub fn id(&self) -> ContentId {
        self.id
    }

    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    #[must_use]
    pub fn part(&self) -> &Part {
        &self.part
    }
}

/// How an engine reads one of its contents.
pub trait ContentReader: Debug + Send + Sync {
    fn length(&self) -> u64;

    /// Some bytes from `offset` on: at least one and at most `most`, or none at the end. Checked against their sums.
    fn read(&self, offset: u64, most: usize) -> BoxFuture<'_, Result<Bytes, EngineError>>;

    /// The same, if it can be had without waiting for a disk. `None`: ask [`ContentReader::read`].
    fn read_now(&self, offset: u64, most: usize) -> Option<Result<Bytes, EngineError>>;
}

/// An open content. It can be read to its end even when its owner is deleted or overwritten meanwhile.
#[derive(Clone, Debug)]
pub struct Content(Arc<dyn ContentReader>);

impl Content {
    #[must_use]
    pub fn new(reader: Arc<dyn ContentReader>) -> Content {
        Content(reader)
    }

    #[must_use]
    pub fn length(&self) -> u64 {
        self.0.length()
    }

    pub async fn read(&self, offset: u64, most: usize) -> Result<Bytes, EngineError> {
        match self.0.read_now(offset, most) {
            Some(answer) => answer,
            None => self.0.read(offset, most).await,
        }
    }

    #[must_use]
    pub fn read_now(&self, offset: u64, most: usize) -> Option<Result<Bytes, EngineError>> {
        self.0.read_now(offset, most)
    }
}
