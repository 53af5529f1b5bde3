//! A walk over all rows of a space, for `lazurite check`.

use bytes::Bytes;
use engine::{Engine, EngineError, Key, Rows, Unread, Visit, read};

use crate::unrefused;

/// How many rows are looked at in one read.
pub const ROWS_PER_SLICE: usize = 1_000;

/// Looks at all rows of a space and hands on what `look` makes of each, in the order of their keys.
///
/// The rows are read in slices, each on a state of its own: nothing should change meanwhile.
pub async fn each_row<T: Send + 'static>(
    engine: &dyn Engine,
    space: u8,
    look: impl Fn(&dyn Rows, &Key, &Bytes) -> Result<T, Unread> + Copy + Send + 'static,
    found: &mut (dyn FnMut(T) + Send),
) -> Result<(), EngineError> {
    let mut from = Key::new(space);
    let to = from.after_all();
    loop {
        let (begin, end) = (from.clone(), to.clone());
        let slice = read(engine, move |rows, _| {
            let mut slice: Vec<(Key, Bytes)> = Vec::new();
            rows.scan(&begin, &end, ROWS_PER_SLICE, &mut |key, row| {
                slice.push((Key::from_bytes(key), row.clone()));
                if slice.len() < ROWS_PER_SLICE { Visit::Next } else { Visit::Stop }
            })?;
            let looked = slice.iter().map(|(key, row)| look(rows, key, row)).collect::<Result<Vec<_>, _>>()?;
            Ok((looked, slice.pop().map(|(last, _)| last)))
        });
        let (looked, last) = unrefused(slice.await)?;
        let count = looked.len();
        looked.into_iter().for_each(&mut *found);
        match last {
            Some(last) if count == ROWS_PER_SLICE => from = last.next(),
            Some(_) | None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use engine::memory::MemoryEngine;
    use engine::{Changes, Commit, commit};

    use super::*;

    /// Two full slices and none, and two and a bit: each row is seen once, and nothing of the spaces beside it.
    #[tokio::test]
    async fn every_row_is_seen_once() {
        for count in [0, 1, ROWS_PER_SLICE, 2 * ROWS_PER_SLICE, 2 * ROWS_PER_SLICE + 1] {
            let engine = MemoryEngine::new(1);
            let filled = commit::<_, Infallible, _>(&engine, Key::new(7), move |_, _| {
                let mut changes = Changes::none();
                for number in 0..count as u64 {
                    changes.put(Key::new(7).number(number), Bytes::from(number.to_be_bytes().to_vec()));
                }
                changes.put(Key::new(6).number(0), Bytes::new());
                changes.put(Key::new(8).number(0), Bytes::new());
                Ok(Commit { changes, outcome: () })
            });
            filled.await.unwrap();
            let mut seen = Vec::new();
            each_row(&engine, 7, |_, _, row| Ok(row.clone()), &mut |row| seen.push(row)).await.unwrap();
            let expected: Vec<Bytes> = (0..count as u64).map(|n| Bytes::from(n.to_be_bytes().to_vec())).collect();
            assert_eq!(seen, expected, "{count}");
        }
    }
}
