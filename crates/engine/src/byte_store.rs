//! Where engines that keep their rows elsewhere put large contents: objects by name, written once, never changed.
//!
//! Nothing more is asked of the store than that what was put is durable and then seen by every later read. In particular
//! no conditional put and no rename: stores differ too much in these.

use std::fmt::Debug;
use std::ops::Range;

use bytes::Bytes;

use crate::{BoxFuture, EngineError};

/// A place for objects. Clients of it make names that never repeat.
pub trait ByteStore: Debug + Send + Sync {
    /// Stores an object of these pieces. Durable when it returns.
    fn put<'a>(&'a self, name: &'a str, pieces: Vec<Bytes>) -> BoxFuture<'a, Result<(), EngineError>>;

    /// The bytes of `range`, all of them. An object that is not there is [`EngineError::Corrupt`]: callers ask only for objects that
    /// were stored.
    fn get<'a>(&'a self, name: &'a str, range: Range<u64>) -> BoxFuture<'a, Result<Bytes, EngineError>>;

    /// Removes objects. One that is not there is no error.
    fn delete(&self, names: Vec<String>) -> BoxFuture<'_, Result<(), EngineError>>;

    /// Names that begin with `prefix` and come after `after`, in order; some of them, and none only when there are none.
    fn list<'a>(&'a self, prefix: &'a str, after: &'a str) -> BoxFuture<'a, Result<Vec<String>, EngineError>>;
}
