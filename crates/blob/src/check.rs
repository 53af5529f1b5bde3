//! The service's part of `lazurite check`: do the projections say what the blobs say?
//!
//! Each tag of a current blob has one row in the index, and each protection of a state has its rows by container. A row too few
//! loses a blob from a search, or lets its container be deleted; a row too many finds nothing, or keeps a container for ever.
//! And each blob counts its snapshots and versions: by these numbers it is decided whether it can be deleted and when its
//! row goes.
//! Nothing may change meanwhile: the rows are read in slices.

use std::collections::HashSet;

use bytes::Bytes;
use engine::{Engine, EngineError, Key, KeyReader, Rows, Unread, Visit};
use service::{codec, each_row, space};

use crate::model;
use crate::model::protection::Protection;
use crate::model::tags;
use crate::model::{Blob, Committed, snapshots_of, versions_of};

/// About how many snapshots or versions of a blob are read at a time.
const STATES_AT_ONCE: usize = 1_000;

/// Tells `problem` what is wrong, one sentence each.
pub async fn check(engine: &dyn Engine, problem: &mut (dyn FnMut(String) + Send)) -> Result<(), EngineError> {
    let mut protected = HashSet::new();
    each(engine, space::PROTECTED, problem, protection, &mut |_, row| {
        protected.insert(row);
        None
    })
    .await?;
    let mut expect = |state: &Key, row: Key| match protected.remove(&row) {
        true => None,
        false => Some(format!("a protection of {state:?} has no row: {row:?}")),
    };
    each(engine, space::TAG, problem, index_row, &mut expect).await?;
    each(engine, space::BLOB, problem, blob, &mut expect).await?;
    for space in [space::SNAPSHOT, space::VERSION] {
        each(engine, space, problem, snapshot_or_version, &mut expect).await?;
    }
    for row in protected {
        problem(format!("a row protects something that is not there: {row:?}"));
    }
    Ok(())
}

/// What a row says.
#[derive(Default)]
struct Findings {
    problems: Vec<String>,
    /// Rows that protect a state, each with the key of the state.
    protecting: Vec<(Key, Key)>,
}

fn protection(_: &dyn Rows, key: &Key, _: &Bytes, found: &mut Findings) -> Result<(), Unread> {
    found.protecting.push((key.clone(), key.clone()));
    Ok(())
}

fn blob(rows: &dyn Rows, key: &Key, row: &Bytes, found: &mut Findings) -> Result<(), Unread> {
    let Ok(blob) = codec::decode::<Blob>(row) else { return unreadable("blob", key, found) };
    let current = blob.committed.as_ref();
    indexed(rows, current, key, found)?;
    counted(rows, &blob, key, found)?;
    let deleted = blob.past.as_ref().and_then(|past| past.deleted.as_ref());
    let generation = KeyReader::new(key.as_bytes()).number();
    for state in current.into_iter().chain(deleted) {
        if let Some(protection) = state.protection
            && Some(protection.generation) != generation
        {
            found.problems.push(format!("the protection of blob {key:?} names another container"));
        }
        found.expect(state, key);
    }
    Ok(())
}

fn snapshot_or_version(_: &dyn Rows, key: &Key, row: &Bytes, found: &mut Findings) -> Result<(), Unread> {
    match codec::decode::<Committed>(row) {
        Ok(state) => found.expect(&state, key),
        Err(_) => return unreadable("snapshot or version", key, found),
    }
    Ok(())
}

fn unreadable(what: &str, key: &Key, found: &mut Findings) -> Result<(), Unread> {
    found.problems.push(format!("a {what} cannot be read: {key:?}"));
    Ok(())
}

/// A row of the index must be of a blob that has that tag now.
fn index_row(rows: &dyn Rows, key: &Key, _: &Bytes, found: &mut Findings) -> Result<(), Unread> {
    let Some(place) = tags::TagIndexKey::of(key.as_bytes()) else {
        return unreadable("row of the tag index", key, found);
    };
    let blob = Key::new(space::BLOB).number(place.generation).text(&place.name);
    let state = match model::find_blob(rows, &blob) {
        Err(Unread::NotYet) => return Err(Unread::NotYet),
        // Told where the blob itself is looked at.
        Err(Unread::Failed(_)) => return Ok(()),
        Ok(blob) => blob.and_then(|blob| blob.committed),
    };
    let expected = state.as_ref().map(|state| tags::places(state.tags.as_ref(), &blob)).unwrap_or_default();
    if !expected.contains(key) {
        found.problems.push(format!("a row of the tag index is left behind: {key:?}"));
    }
    Ok(())
}

/// Every tag of the current state of the blob at `key` must have its row in the index.
fn indexed(rows: &dyn Rows, state: Option<&Committed>, key: &Key, found: &mut Findings) -> Result<(), Unread> {
    for place in tags::places(state.and_then(|state| state.tags.as_ref()), key) {
        if rows.get(&place)?.is_none() {
            found.problems.push(format!("a tag of blob {key:?} is missing in the index: {place:?}"));
        }
    }
    Ok(())
}

/// A blob has as many snapshots and previous versions, deleted and not, as it says.
fn counted(rows: &dyn Rows, blob: &Blob, key: &Key, found: &mut Findings) -> Result<(), Unread> {
    let past = blob.past.as_deref();
    let snapshots = (blob.snapshots, past.map_or(0, |past| past.deleted_snapshots));
    compare(rows, blob, "snapshots", (snapshots_of(blob.uid), snapshots), key, found)?;
    let Some(past) = past.filter(|past| past.has_versions()) else { return Ok(()) };
    compare(rows, blob, "versions", (versions_of(past.uid), (past.versions, past.deleted_versions)), key, found)
}

/// Counts the rows below `all`: those that can be seen, and those that are deleted.
fn compare(
    rows: &dyn Rows,
    blob: &Blob,
    what: &str,
    (all, said): (Key, (u32, u32)),
    key: &Key,
    found: &mut Findings,
) -> Result<(), Unread> {
    let (mut there, mut is_readable) = ((0, 0), true);
    rows.scan(&all, &all.after_all(), STATES_AT_ONCE, &mut |_, row| {
        match codec::decode::<Committed>(row) {
            Ok(state) if blob.deletion_of(&state).is_none() => there.0 += 1,
            Ok(_) => there.1 += 1,
            // Told where the states themselves are looked at.
            Err(_) => is_readable = false,
        }
        Visit::Next
    })?;
    if is_readable && there != said {
        let ((live, deleted), (live_said, deleted_said)) = (there, said);
        found.problems.push(format!(
            "blob {key:?} counts {live_said} {what} and {deleted_said} deleted ones, and has {live} and {deleted}"
        ));
    }
    Ok(())
}

impl Findings {
    /// Notes the rows that must protect this state.
    fn expect(&mut self, state: &Committed, key: &Key) {
        let rows = state.protection.iter().flat_map(|protection: &Protection| protection.rows(state.version));
        self.protecting.extend(rows.map(|row| (key.clone(), row)));
    }
}

/// What is done with a row: its key, its value, and what is found.
type Look = fn(&dyn Rows, &Key, &Bytes, &mut Findings) -> Result<(), Unread>;

/// Looks at all rows of a space. `protecting` is given every state and row that protects it, and says what is wrong with that.
async fn each(
    engine: &dyn Engine,
    space: u8,
    problem: &mut (dyn FnMut(String) + Send),
    look: Look,
    protecting: &mut (dyn FnMut(&Key, Key) -> Option<String> + Send),
) -> Result<(), EngineError> {
    let look = move |rows: &dyn Rows, key: &Key, row: &Bytes| {
        let mut found = Findings::default();
        look(rows, key, row, &mut found)?;
        Ok(found)
    };
    each_row(engine, space, look, &mut |found| {
        let amiss = found.protecting.into_iter().filter_map(|(state, row)| protecting(&state, row));
        found.problems.into_iter().chain(amiss).for_each(&mut *problem);
    })
    .await
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use engine::{Changes, Commit, Key, KeyReader, Rows, Visit, commit};
    use service::space;

    const TAGGED: [(&str, &str); 3] =
        [("x-ms-blob-type", "BlockBlob"), ("x-ms-tags", "a=1&b=2"), ("x-ms-legal-hold", "true")];

    /// The last row of a space.
    fn last(rows: &dyn Rows, space: u8) -> Result<Key, engine::Unread> {
        let (from, mut last) = (Key::new(space), None);
        rows.scan(&from, &from.after_all(), 10, &mut |key, _| {
            last = Some(Key::from_bytes(key));
            Visit::Next
        })?;
        Ok(last.unwrap())
    }

    async fn change(bench: &Bench, change: impl Fn(&dyn Rows, &mut Changes) + Send + 'static) {
        let changed = commit::<_, std::convert::Infallible, _>(&*bench.engine, Key::new(0), move |rows, _| {
            let mut changes = Changes::none();
            change(rows, &mut changes);
            Ok(Commit { changes, outcome: () })
        });
        changed.await.unwrap();
    }

    type Damage = fn(&dyn Rows, &mut Changes);

    #[tokio::test]
    async fn each_row_too_few_or_too_many_is_seen() {
        let bench = Bench::with_container().await;
        bench.call("PUT", "cont/blob", &TAGGED, b"x").await.unwrap();
        bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
        assert_eq!(bench.problems().await, Vec::<String>::new());
        let damages: [(&str, Damage); 6] = [
            ("is missing in the index", |rows, changes| _ = changes.delete(last(rows, space::TAG).unwrap())),
            ("is left behind", |rows, changes| {
                let row = rows.get(&last(rows, space::TAG).unwrap()).unwrap().unwrap();
                changes.put(crate::model::tags::rows_of(1, "c").text("3").number(7).text("gone"), row);
            }),
            ("has no row", |rows, changes| _ = changes.delete(last(rows, space::PROTECTED).unwrap())),
            ("protects something that is not there", |rows, changes| {
                changes.put(last(rows, space::PROTECTED).unwrap().next(), bytes::Bytes::new());
            }),
            ("counts 1 snapshots and 0 deleted ones, and has 0 and 0", |rows, changes| {
                changes.delete(last(rows, space::SNAPSHOT).unwrap());
            }),
            ("counts 1 snapshots and 0 deleted ones, and has 2 and 0", |rows, changes| {
                let at = last(rows, space::SNAPSHOT).unwrap();
                let uid = KeyReader::new(at.as_bytes()).number().unwrap();
                let row = rows.get(&at).unwrap().unwrap();
                changes.put(crate::model::snapshot_key(uid, concurrency::Timestamp(7)), row);
            }),
        ];
        for (sentence, damage) in damages {
            let bench = Bench::with_container().await;
            bench.call("PUT", "cont/blob", &TAGGED, b"x").await.unwrap();
            bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
            change(&bench, damage).await;
            let problems = bench.problems().await;
            assert!(problems.len() == 1 && problems[0].contains(sentence), "{sentence}: {problems:?}");
        }
    }

    /// One bad row is told, and the others are looked at all the same.
    #[tokio::test]
    async fn a_row_that_cannot_be_read_is_one_problem() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"x").await;
        bench.call("PUT", "cont/tagged", &TAGGED, b"x").await.unwrap();
        change(&bench, |rows, changes| {
            let blob = Key::new(space::BLOB);
            rows.scan(&blob, &blob.after_all(), 1, &mut |key, _| {
                changes.put(Key::from_bytes(key), b"damaged".to_vec());
                Visit::Stop
            })
            .unwrap();
        })
        .await;
        let problems = bench.problems().await;
        assert!(problems.len() == 1 && problems[0].contains("a blob cannot be read"), "{problems:?}");
    }

    #[tokio::test]
    async fn slices_leave_nothing_out() {
        let bench = Bench::with_container().await;
        for n in 0..2 * service::ROWS_PER_SLICE / 2 + 1 {
            bench.call("PUT", &format!("cont/{n:05}"), &TAGGED, b"").await.unwrap();
        }
        assert_eq!(bench.problems().await, Vec::<String>::new());
        change(&bench, |rows, changes| _ = changes.delete(last(rows, space::TAG).unwrap())).await;
        assert_eq!(bench.problems().await.len(), 1);
    }
}
