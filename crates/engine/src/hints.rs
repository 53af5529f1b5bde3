//! Rows that led to other rows, as they were when they were last read: what an engine that fetches its rows guesses by.
//!
//! The key of a blob contains the generation of its container, which stands in the container's row. An engine that must fetch
//! both could ask for the second row only after the first has arrived. But such rows seldom change. So the engine keeps the
//! rows that led to others and shows them to the next function that asks for them, in a run whose outcome counts for nothing:
//! it only tells which rows to fetch, and the rows that were shown are fetched along with them. Then the function runs on what
//! was fetched. A hint that is out of date costs a round trip and never an answer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;

/// A larger row is not kept.
const ROW_BYTES_MAX: usize = 16 * 1024;
/// Hints come in two generations of at most this size, keys included: when the younger one is full it takes the place of the
/// older one, so rows that were used since then stay.
const GENERATION_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What a row costs beside its bytes.
const ROW_BYTES_BESIDE: usize = 128;

/// The hints of one node.
#[derive(Debug, Default)]
pub struct Hints(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Vec<u8>, Bytes>,
    old: HashMap<Vec<u8>, Bytes>,
    young_bytes: usize,
}

fn cost(key: &[u8], value: &Bytes) -> usize {
    key.len() + value.len() + ROW_BYTES_BESIDE
}

impl Hints {
    fn generations(&self) -> MutexGuard<'_, Generations> {
        self.0.lock().expect("nothing panics under this lock")
    }

    /// The row as it was when it last led to another.
    #[must_use]
    pub fn row(&self, key: &[u8]) -> Option<Bytes> {
        let generations = self.generations();
        generations.young.get(key).or_else(|| generations.old.get(key)).cloned()
    }

    /// A function that had been shown these rows asked for more. `row` says how each of them is now.
    pub fn learn<'k>(&self, keys: impl IntoIterator<Item = &'k Vec<u8>>, row: impl Fn(&[u8]) -> Option<Bytes>) {
        let mut generations = self.generations();
        for key in keys {
            match row(key).filter(|value| value.len() <= ROW_BYTES_MAX) {
                Some(value) => generations.keep(key, value),
                None => generations.forget(key),
            }
        }
    }

    /// As on a node that has just started.
    pub fn forget_all(&self) {
        *self.generations() = Generations::default();
    }
}

impl Generations {
    fn keep(&mut self, key: &[u8], value: Bytes) {
        self.forget(key);
        let bytes = cost(key, &value);
        if self.young_bytes + bytes > GENERATION_BYTES_MAX {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += bytes;
        self.young.insert(key.to_vec(), value);
    }

    fn forget(&mut self, key: &[u8]) {
        self.old.remove(key);
        if let Some(value) = self.young.remove(key) {
            self.young_bytes -= cost(key, &value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(hints: &Hints, key: &str, row: Option<Vec<u8>>) {
        hints.learn([&key.as_bytes().to_vec()], |_| row.clone().map(Bytes::from));
    }

    #[test]
    fn a_hint_is_the_row_as_it_was_last() {
        let hints = Hints::default();
        assert_eq!(hints.row(b"a"), None);
        learn(&hints, "a", Some(vec![1]));
        learn(&hints, "a", Some(vec![2]));
        assert_eq!(hints.row(b"a"), Some(Bytes::from_static(&[2])));
        learn(&hints, "a", None);
        assert_eq!(hints.row(b"a"), None);
        learn(&hints, "a", Some(vec![0; ROW_BYTES_MAX + 1]));
        assert_eq!(hints.row(b"a"), None, "too large to be kept");
    }

    #[test]
    fn hints_take_bounded_memory_and_those_in_use_stay() {
        let hints = Hints::default();
        let rows = 5 * GENERATION_BYTES_MAX / ROW_BYTES_MAX;
        for number in 0..rows {
            learn(&hints, "used", Some(vec![7]));
            learn(&hints, &number.to_string(), Some(vec![0; ROW_BYTES_MAX]));
        }
        assert!(hints.row(b"used").is_some());
        assert!(hints.row(b"0").is_none());
        let generations = hints.generations();
        let bytes = |rows: &HashMap<Vec<u8>, Bytes>| rows.iter().map(|(key, row)| cost(key, row)).sum::<usize>();
        assert_eq!(bytes(&generations.young), generations.young_bytes);
        assert!(bytes(&generations.young) + bytes(&generations.old) <= 2 * GENERATION_BYTES_MAX);
    }
}
