//! Removing the rows of something that is gone, some at a time.

use engine::{Changes, Key, Rows, Unread, Visit};

use crate::codec;

/// A step walks over so many rows that cannot be read before it gives up on what is behind them.
const UNREAD_ROWS_MAX: usize = 10_000;

/// What a step has left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Removed {
    pub more: bool,
    /// Nothing is left before this key.
    pub low: Key,
}

/// Removes some rows below `prefix`, with what `each` adds for them, and says whether there are more.
///
/// A row that cannot be read stays: it is not known what it refers to. The rows behind it go first; when only such rows are left
/// the step fails with their names, until they are repaired or removed.
pub fn remove_rows<T>(
    rows: &dyn Rows,
    prefix: &Key,
    most: usize,
    changes: &mut Changes,
    each: impl FnMut(&Key, T, &mut Changes),
) -> Result<bool, Unread>
where
    T: for<'b> minicbor::Decode<'b, ()>,
{
    Ok(remove_rows_from(rows, prefix, prefix, most, changes, each)?.more)
}

/// The same from a key on before which nothing is left: a step that began at `prefix` would walk over everything that the
/// steps before it have removed.
pub fn remove_rows_from<T>(
    rows: &dyn Rows,
    prefix: &Key,
    low: &Key,
    most: usize,
    changes: &mut Changes,
    mut each: impl FnMut(&Key, T, &mut Changes),
) -> Result<Removed, Unread>
where
    T: for<'b> minicbor::Decode<'b, ()>,
{
    let (mut count, mut more, mut unread) = (0, false, Vec::new());
    let from = prefix.max(low);
    let mut reached = from.clone();
    rows.scan(from, &prefix.after_all(), most + 1, &mut |key, row| {
        let key = Key::from_bytes(key);
        let Ok(value) = codec::decode(row) else {
            unread.push(key);
            return if unread.len() < UNREAD_ROWS_MAX { Visit::Next } else { Visit::Stop };
        };
        if count == most {
            more = true;
            return Visit::Stop;
        }
        count += 1;
        each(&key, value, changes);
        reached = key.next();
        changes.delete(key);
        Visit::Next
    })?;
    match unread.first() {
        Some(first) if count == 0 => {
            let others = unread.len() - 1;
            Err(codec::corrupt(&format!("the row {first:?} cannot be read and stays, and so do {others} others")))
        }
        Some(first) => Ok(Removed { more: true, low: first.clone() }),
        None => Ok(Removed { more, low: reached }),
    }
}
