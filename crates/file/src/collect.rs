//! Background work of the File service: what goes after a share or a snapshot of it was deleted.
//!
//! Each due row is worked off in steps, one small decision after another, so that no request waits long behind it. The last step
//! removes the due row; what was interrupted is still due, and doing a step twice does nothing.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use engine::collector::{Handled, Handler, steps_from, steps_from_in, steps_in};
use engine::due::Due;
use engine::{BoxFuture, Changes, Engine, EngineError, Key, KeyReader, Rows, Tick, Unread, Visit};
use service::{Removed, codec, remove_rows_from, space};
use wire::names::ShareName;

use crate::FileService;
use crate::model::{
    DeletedShare, Entry, all_entries_of, all_kept_of, all_past_of, linked_files_of, permissions_of, places_of,
    purge_due, share_key, snapshots_of, usage_key,
};
use crate::past::{self, DroppedSnapshot};

/// How many files and directories a step removes. A file brings a few rows with it.
const ENTRIES_PER_STEP: usize = 50;
/// How many rows a step removes that bring nothing with them.
const ROWS_PER_STEP: usize = 500;

impl Handler for FileService {
    fn spaces(&self) -> &[u8] {
        &[space::SHARE, space::SHARE_DELETED, space::SHARE_SNAPSHOT, space::FILE_COPY]
    }

    fn handle<'a>(&'a self, engine: &'a dyn Engine, due: &'a Due) -> BoxFuture<'a, Result<Handled, EngineError>> {
        Box::pin(async move {
            match Task::of(due).ok_or_else(|| due.unknown())? {
                Task::Purge { generation } => {
                    let low = self.removals.low((generation, 0), all_entries_of(generation));
                    let steps = steps_from(engine, due, low, move |rows, tick, low, changes| {
                        purge(rows, generation, low, tick, changes)
                    });
                    self.removals.reached((generation, 0), steps.await?);
                }
                Task::LetGo(snapshot) => {
                    let which = (snapshot.generation, snapshot.epoch);
                    let (low, share) =
                        (self.removals.low(which, snapshot.kept()), share_key(snapshot.account, &snapshot.share));
                    let steps = steps_from_in(share, engine, due, low, move |rows, tick, low, changes| {
                        past::let_go_some(rows, &snapshot, low, tick, changes)
                    });
                    self.removals.reached(which, steps.await?);
                }
                Task::Copy(id) => return self.copier.tend(id, due).await,
                Task::EndRetention { deleted, share } => {
                    steps_in(share, engine, due, move |rows, tick, changes| {
                        end_retention(rows, &deleted, tick, changes)?;
                        Ok(false)
                    })
                    .await?;
                }
            }
            Ok(Handled::Done)
        })
    }
}

/// What a due row asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Task {
    /// To remove everything in a share that is gone.
    Purge { generation: u64 },
    /// To end the time in which the share at the key `deleted` can be restored. `share` is the key that it had.
    EndRetention { deleted: Key, share: Key },
    /// To let go of what a snapshot kept that is gone.
    LetGo(DroppedSnapshot),
    /// To look after a copy that is under way.
    Copy(u64),
}

impl Task {
    pub fn of(due: &Due) -> Option<Task> {
        match due.space {
            space::SHARE => due.owner_id().map(|generation| Task::Purge { generation }),
            space::SHARE_SNAPSHOT => DroppedSnapshot::from_bytes(&due.owner).map(Task::LetGo),
            space::FILE_COPY => due.owner_id().map(Task::Copy),
            space::SHARE_DELETED => {
                let mut reader = KeyReader::new(&due.owner);
                let (account, name) = (reader.number()?, reader.text()?);
                let share = share_key(account, &ShareName::parse(&name).ok()?);
                Some(Task::EndRetention { deleted: Key::from_bytes(&due.owner), share })
            }
            _ => None,
        }
    }
}

/// A deleted share that was not restored in time: from here on it goes as every other.
fn end_retention(rows: &dyn Rows, key: &Key, tick: Tick, changes: &mut Changes) -> Result<(), Unread> {
    let Some(row) = rows.get(key)? else { return Ok(()) };
    let deleted: DeletedShare = codec::decode(&row)?;
    if !deleted.mark.is_kept(tick.now) {
        changes.delete(key.clone());
        changes.put(purge_due(deleted.share.generation, tick.now), Bytes::new());
    }
    Ok(())
}

/// How far the removals under way have come, by the generation of a share, and the epoch of a snapshot or 0 for all of the share.
/// After a restart they begin at the first row again.
#[derive(Debug, Default)]
pub struct Removals(Mutex<HashMap<(u64, u64), Key>>);

impl Removals {
    fn lock(&self) -> MutexGuard<'_, HashMap<(u64, u64), Key>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing is left before this key, which is `first` in the beginning.
    fn low(&self, which: (u64, u64), first: Key) -> Key {
        self.lock().get(&which).cloned().unwrap_or(first)
    }

    /// `None`: nothing is left at all.
    fn reached(&self, which: (u64, u64), low: Option<Key>) {
        match low {
            Some(low) => _ = self.lock().insert(which, low),
            None => _ = self.lock().remove(&which),
        }
    }
}

/// Removes some of what is in a share that was deleted, from the key `low` on, and says where to go on. Nothing can be added to
/// the share any more: every write needs its live row.
fn purge(
    rows: &dyn Rows,
    generation: u64,
    low: &Key,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Option<Key>, Unread> {
    let mut failed = None;
    // In the order of their keys. Where files are, their bytes go along.
    for (all, holds_files) in [
        (all_entries_of(generation), true),
        (places_of(generation), false),
        (all_past_of(generation), true),
        (all_kept_of(generation), false),
        (permissions_of(generation), false),
        (linked_files_of(generation), true),
    ] {
        let next = match holds_files {
            true => remove_nodes(rows, &all, low, tick, changes),
            false => delete_from(rows, &all, low, changes),
        };
        match next {
            Ok(None) => {}
            // Rows that cannot be read stay, and are told once everything else is gone.
            Err(Unread::Failed(error)) => failed = failed.or(Some(error)),
            Ok(Some(next)) => return Ok(Some(if failed.is_none() { next } else { low.clone() })),
            Err(Unread::NotYet) => return Err(Unread::NotYet),
        }
    }
    if let Some(error) = failed {
        return if changes.rows.is_empty() { Err(Unread::Failed(error)) } else { Ok(Some(low.clone())) };
    }
    changes.delete(usage_key(generation));
    // There are fewer of them than a step removes.
    let snapshots = snapshots_of(generation);
    delete_from(rows, &snapshots, &snapshots, changes)
}

/// Removes files and directories, with the bytes of files, and says where to go on if there are more. A hard link has no bytes of
/// its own.
fn remove_nodes(
    rows: &dyn Rows,
    all: &Key,
    low: &Key,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Option<Key>, Unread> {
    if *low >= all.after_all() {
        return Ok(None);
    }
    let Removed { more, low } =
        remove_rows_from(rows, all, low, ENTRIES_PER_STEP, changes, |_, entry, changes| match entry {
            Entry::Node(node) => {
                if let Some(file) = node.file() {
                    file.view.let_go(changes, tick.now);
                }
            }
            Entry::Link(_) => {}
        })?;
    Ok(more.then_some(low))
}

/// Removes rows that bring nothing with them, and says where to go on if there are more.
fn delete_from(rows: &dyn Rows, all: &Key, low: &Key, changes: &mut Changes) -> Result<Option<Key>, Unread> {
    let (mut count, mut next) = (0, None);
    rows.scan(all.max(low), &all.after_all(), ROWS_PER_STEP + 1, &mut |key, _| {
        if count == ROWS_PER_STEP {
            next = Some(Key::from_bytes(key));
            return Visit::Stop;
        }
        count += 1;
        changes.delete(Key::from_bytes(key));
        Visit::Next
    })?;
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileError;
    use crate::testing::{Bench, refusal};
    use content::map::MapCollector;
    use engine::collector;
    use engine::{Commit, Content, ContentId, commit};
    use std::cell::RefCell;
    use std::sync::Arc;

    const SHARE: &str = "share?restype=share";

    fn contents(bench: &Bench) -> u64 {
        service::testing::figure(&*bench.engine, "contents")
    }

    /// Two directories with more files than a step removes, some of them with bytes.
    async fn full() -> Bench {
        let bench = Bench::with_share().await;
        for directory in ["a", "b"] {
            bench.mkdir(directory).await;
            for n in 0..ENTRIES_PER_STEP {
                bench.create(&format!("{directory}/{n}"), 10).await;
            }
        }
        for n in 0..10 {
            bench.write(&format!("a/{n}"), 0, b"0123456789").await;
        }
        let permission = b"{\"permission\":\"O:BAG:SYD:(A;;FA;;;BU)\"}";
        bench.call("PUT", "share?restype=share&comp=filepermission", &[], permission).await.unwrap();
        bench
    }

    #[tokio::test]
    async fn a_deleted_share_leaves_nothing_and_its_successor_is_untouched() {
        let bench = full().await;
        bench.call("DELETE", SHARE, &[], b"").await.unwrap();
        bench.call("PUT", SHARE, &[], b"").await.unwrap();
        bench.create("file", 3).await;
        bench.write("file", 0, b"new").await;
        assert_eq!(refusal(bench.call("GET", "share/a/0", &[], b"").await), FileError::ParentNotFound);
        bench.sweep().await;
        let alone = Bench::with_share().await;
        alone.create("file", 3).await;
        alone.write("file", 0, b"new").await;
        assert_eq!((bench.rows(), contents(&bench)), (alone.rows(), contents(&alone)));
        assert_eq!(bench.read("file").await, b"new");
        bench.call("DELETE", SHARE, &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!((bench.rows(), contents(&bench)), (0, 0));
    }

    #[tokio::test]
    async fn a_share_that_is_kept_loses_nothing_until_its_time_is_over() {
        let mut bench = full().await;
        bench.settings.share_soft_delete_days = Some(1);
        let before = (bench.rows(), contents(&bench));
        bench.call("DELETE", SHARE, &[], b"").await.unwrap();
        bench.advance(24 * 3600 - 1).await;
        bench.sweep().await;
        // One row more: when its time is over.
        assert_eq!((bench.rows(), contents(&bench)), (before.0 + 1, before.1));
        bench.advance(1).await;
        bench.sweep().await;
        assert_eq!((bench.rows(), contents(&bench)), (0, 0));
    }

    /// A file that cannot be read is named and left; what lies behind it goes.
    #[tokio::test]
    async fn bad_rows_stop_nothing_behind_them() {
        let bench = full().await;
        bench.damage_first(Key::new(space::ENTRY)).await;
        bench.call("DELETE", SHARE, &[], b"").await.unwrap();
        let mut failed = None;
        for _ in 0..10 {
            failed = collector::sweep(&*bench.engine, &[&bench.service, &MapCollector]).await.err().or(failed);
        }
        assert!(failed.unwrap().to_string().contains("cannot be read"));
        let mut entries = 0;
        engine::read::<_, FileError, _>(&*bench.engine, |rows, _| {
            let (all, mut count) = (Key::new(space::ENTRY), 0);
            rows.scan(&all, &all.after_all(), 10, &mut |_, _| {
                count += 1;
                Visit::Next
            })?;
            Ok(count)
        })
        .await
        .map(|count| entries = count)
        .unwrap();
        assert_eq!((entries, contents(&bench)), (1, 0));
    }

    /// The bytes that snapshots and files with several names hold are behind the bad row.
    #[tokio::test]
    async fn bad_rows_do_not_keep_the_bytes_of_snapshots_and_linked_files() {
        for is_nfs in [false, true] {
            let bench = if is_nfs { Bench::with_nfs_share().await } else { Bench::with_share().await };
            for name in ["a", "b", "c"] {
                bench.create(name, 10).await;
                bench.write(name, 0, b"before").await;
            }
            if is_nfs {
                bench.link("b", "linked", &[]).await.unwrap();
            }
            bench.snapshot().await;
            for name in ["a", "b", "c"] {
                bench.write(name, 0, b"after").await;
            }
            bench.damage_first(Key::new(space::ENTRY)).await;
            let include = [("x-ms-delete-snapshots", "include")];
            bench.call("DELETE", SHARE, &include, b"").await.unwrap();
            let mut failed = None;
            for _ in 0..20 {
                failed = collector::sweep(&*bench.engine, &[&bench.service, &MapCollector]).await.err().or(failed);
            }
            assert!(failed.unwrap().to_string().contains("cannot be read"));
            assert_eq!((contents(&bench), bench.past_rows().await), (0, 0), "for NFS: {is_nfs}");
        }
    }

    /// Notes where scans begin.
    struct Watched<'a> {
        rows: &'a dyn Rows,
        begun: RefCell<Vec<Key>>,
    }

    impl Rows for Watched<'_> {
        fn get(&self, key: &Key) -> Result<Option<Bytes>, Unread> {
            self.rows.get(key)
        }

        fn scan(
            &self,
            from: &Key,
            to: &Key,
            about: usize,
            visit: &mut dyn FnMut(&[u8], &Bytes) -> Visit,
        ) -> Result<(), Unread> {
            self.begun.borrow_mut().push(from.clone());
            self.rows.scan(from, to, about, visit)
        }

        fn content(&self, id: ContentId) -> Result<Content, Unread> {
            self.rows.content(id)
        }
    }

    /// On a tree, rows that were removed a moment ago cost as much to walk over as rows that are there. A share of a million files
    /// takes 20,000 steps.
    #[tokio::test]
    async fn no_step_walks_over_what_another_has_removed() {
        let bench = full().await;
        let generation = bench.generation().await;
        bench.call("DELETE", SHARE, &[], b"").await.unwrap();
        let mut low = Some(all_entries_of(generation));
        let mut removed: Vec<Key> = Vec::new();
        let mut steps = 0;
        while let Some(from) = low {
            let begun = Arc::new(Mutex::new(Vec::new()));
            let noted = Arc::clone(&begun);
            let step = commit::<_, FileError, _>(&*bench.engine, Key::new(space::DUE), move |rows, tick| {
                let watched = Watched { rows, begun: RefCell::default() };
                let mut changes = Changes::none();
                let low = purge(&watched, generation, &from, tick, &mut changes)?;
                *noted.lock().unwrap() = watched.begun.into_inner();
                let gone = changes.rows.iter().filter(|(_, row)| row.is_none()).map(|(key, _)| key.clone());
                let gone: Vec<Key> = gone.collect();
                Ok(Commit { changes, outcome: (low, gone) })
            });
            let (next, gone) = step.await.unwrap();
            for from in begun.lock().unwrap().iter() {
                let same_kind = |key: &&Key| key.as_bytes()[0] == from.as_bytes()[0];
                let walked = removed.iter().filter(same_kind).filter(|key| *key >= from).count();
                assert_eq!(walked, 0, "a scan from {from:?}");
            }
            removed.extend(gone);
            (low, steps) = (next, steps + 1);
        }
        assert!(steps > 2, "only {steps} steps");
        assert!(removed.len() > 2 * ENTRIES_PER_STEP);
        bench.sweep().await;
        assert_eq!((bench.rows(), contents(&bench)), (0, 0));
    }
}
