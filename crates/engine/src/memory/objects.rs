//! A byte store that forgets everything: for tests of the engines that need one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use bytes::{Bytes, BytesMut};

use crate::byte_store::ByteStore;
use crate::{BoxFuture, EngineError};

const NAMES_PER_LIST: usize = 100;

#[derive(Debug, Default)]
pub struct MemoryBytes(Mutex<BTreeMap<String, Bytes>>);

impl MemoryBytes {
    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.0.lock().expect("nothing panics under this lock")
    }

    /// How many objects there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.objects().len()
    }
}

impl ByteStore for MemoryBytes {
    fn put<'a>(&'a self, name: &'a str, pieces: Vec<Bytes>) -> BoxFuture<'a, Result<(), EngineError>> {
        let whole: BytesMut = pieces.into_iter().flatten().collect();
        self.objects().insert(name.to_owned(), whole.freeze());
        Box::pin(async { Ok(()) })
    }

    fn get<'a>(&'a self, name: &'a str, range: Range<u64>) -> BoxFuture<'a, Result<Bytes, EngineError>> {
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let found = self.objects().get(name).cloned();
        let bytes = found.filter(|bytes| range.start <= range.end && range.end <= bytes.len() as u64);
        let answer = bytes.map(|bytes| bytes.slice(index(range.start)..index(range.end)));
        let answer = answer.ok_or_else(|| EngineError::Corrupt(format!("object {name} is not there")));
        Box::pin(async { answer })
    }

    fn delete(&self, names: Vec<String>) -> BoxFuture<'_, Result<(), EngineError>> {
        for name in names {
            self.objects().remove(&name);
        }
        Box::pin(async { Ok(()) })
    }

    fn list<'a>(&'a self, prefix: &'a str, after: &'a str) -> BoxFuture<'a, Result<Vec<String>, EngineError>> {
        let objects = self.objects();
        let names = objects.keys().filter(|name| name.starts_with(prefix) && name.as_str() > after);
        let names = names.take(NAMES_PER_LIST).cloned().collect();
        Box::pin(async { Ok(names) })
    }
}
