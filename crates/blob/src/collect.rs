//! What goes later: the handlers of the due rows that the service writes.
//!
//! Each works in steps, one small decision after another, so that other decisions do not wait long. The last step removes the
//! due row; what was interrupted is still due, and doing a step twice does nothing.

use std::collections::HashSet;
use std::convert::Infallible;

use bytes::Bytes;
use engine::collector::{Handled, Handler, is_referred, steps};
use engine::due::Due;
use engine::{BoxFuture, Changes, Engine, EngineError, Key, Rows, Tick, Unread, Visit, read};
use service::{codec, remove_rows, space, unrefused};

use crate::BlobService;
use crate::model::blocks::for_each_chunk;
use crate::model::{
    self, Blob, Block, Committed, DeletedContainer, ListChunk, blocks_of, list_rows, moved_key, purge_due,
    snapshots_of, versions_of,
};
use crate::rules::soft_delete::{self, Expiring};

/// How many rows of one kind a step removes. Each brings a few others with it.
const ROWS_PER_STEP: usize = 50;
/// How many entries of a list a step removes, or one row. The rows of a block list hold many, those of an append blob one.
const LIST_ENTRIES_PER_STEP: usize = 1_000;

/// What earlier versions wrote in place of a space.
const BLOCK_LIST_BEFORE: u8 = 2;
const STAGING_BEFORE: u8 = 3;
const UNCOMMITTED_BEFORE: u8 = 4;
const CONTAINER_BEFORE: u8 = 5;

impl Handler for BlobService {
    fn spaces(&self) -> &[u8] {
        &[
            space::CONTAINER,
            space::CONTAINER_DELETED,
            space::BLOB,
            space::BLOCK,
            space::SNAPSHOT,
            space::BLOCK_LIST,
            space::VERSION,
            space::COPY,
            BLOCK_LIST_BEFORE,
            STAGING_BEFORE,
            UNCOMMITTED_BEFORE,
            CONTAINER_BEFORE,
        ]
    }

    fn handle<'a>(&'a self, engine: &'a dyn Engine, due: &'a Due) -> BoxFuture<'a, Result<Handled, EngineError>> {
        Box::pin(async move {
            match Task::of(due).ok_or_else(|| due.unknown())? {
                Task::DropList(list) => {
                    steps(engine, due, move |rows, tick, changes| drop_list(rows, list, tick, changes))
                }
                Task::DropStaging(staging) => {
                    let listed = contents_of_list(engine, staging).await?;
                    steps(engine, due, move |rows, tick, changes| drop_staging(rows, staging, &listed, tick, changes))
                }
                Task::AgeBlocks(key) => {
                    let at = due.at;
                    steps(engine, due, move |rows, tick, changes| age_blocks(rows, &key, at, tick, changes))
                }
                Task::PurgeContainer(generation) => {
                    steps(engine, due, move |rows, tick, changes| purge_container(rows, generation, tick, changes))
                }
                Task::DropStates(all) => {
                    steps(engine, due, move |rows, tick, changes| drop_states(rows, &all, tick, changes))
                }
                Task::Expire(which, key) => steps(engine, due, move |rows, tick, changes| {
                    soft_delete::expire(rows, which, &key, tick, changes)?;
                    Ok(false)
                }),
                Task::EndContainer(key) => {
                    steps(engine, due, move |rows, tick, changes| end_container(rows, &key, tick, changes))
                }
                Task::Copy(id) => return self.copier.tend(id, due).await,
            }
            .await?;
            Ok(Handled::Done)
        })
    }
}

/// What a due row asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Task {
    /// To drop a block list that has lost a reference, if that was the last.
    DropList(u64),
    /// To remove what is left of blocks that were committed or discarded.
    DropStaging(u64),
    /// To discard the uncommitted blocks of a blob, if they are old.
    AgeBlocks(Key),
    /// To remove the blobs of a container that is gone.
    PurgeContainer(u64),
    /// To remove the rows of snapshots or versions that are out of reach.
    DropStates(Key),
    /// To end a retention.
    Expire(Expiring, Key),
    /// To end the time in which a container can be restored.
    EndContainer(Key),
    /// To look after a copy from elsewhere.
    Copy(u64),
}

impl Task {
    fn of(due: &Due) -> Option<Task> {
        let id = due.owner_id();
        let key = || Key::from_bytes(&due.owner);
        match due.space {
            space::BLOCK_LIST | BLOCK_LIST_BEFORE => id.map(Task::DropList),
            space::BLOCK if id.is_none() => Some(Task::AgeBlocks(key())),
            space::BLOCK | STAGING_BEFORE => id.map(Task::DropStaging),
            UNCOMMITTED_BEFORE => Some(Task::AgeBlocks(key())),
            space::CONTAINER | CONTAINER_BEFORE => id.map(Task::PurgeContainer),
            space::CONTAINER_DELETED => Some(Task::EndContainer(key())),
            space::SNAPSHOT => id.map(|uid| Task::DropStates(snapshots_of(uid))),
            space::VERSION => id.map(|uid| Task::DropStates(versions_of(uid))),
            space::BLOB => Expiring::from_owner(&due.owner).map(|(which, key)| Task::Expire(which, key)),
            space::COPY => id.map(Task::Copy),
            _ => None,
        }
    }
}

/// A block list without references: its rows, and its references to contents. Once unreferred it stays so, because
/// only a version that refers to a list can pass it on.
fn drop_list(rows: &dyn Rows, list: u64, tick: Tick, changes: &mut Changes) -> Result<bool, Unread> {
    if is_referred(rows, list)? {
        return Ok(false);
    }
    let (all, mut entries, mut count) = (list_rows(list), 0, 0);
    rows.scan(&all, &all.after_all(), 1, &mut |_, row| {
        let Ok(chunk) = codec::decode::<ListChunk>(row) else { return Visit::Next };
        entries += chunk.entries.len();
        count += usize::from(count == 0 || entries <= LIST_ENTRIES_PER_STEP);
        if entries < LIST_ENTRIES_PER_STEP { Visit::Next } else { Visit::Stop }
    })?;
    remove_rows(rows, &all, count, changes, |_, chunk: ListChunk, changes| {
        for entry in chunk.entries {
            changes.unrefer(space::CONTENT, entry.content, list, tick.now);
        }
    })
}

/// The contents in the list that took over a staging id; none if the blocks were discarded. A list never changes. If it
/// is being dropped at the same time, some contents may be missing here and lose the same reference twice, which is
/// the same as once.
async fn contents_of_list(engine: &dyn Engine, list: u64) -> Result<HashSet<u64>, EngineError> {
    let contents = read::<_, Infallible, _>(engine, move |rows, _| {
        let mut contents = HashSet::new();
        for_each_chunk(rows, list, 0, |chunk| {
            contents.extend(chunk.entries.iter().map(|entry| entry.content));
            true
        })?;
        Ok(contents)
    });
    unrefused(contents.await)
}

/// What is left of a staging area: the rows of all blocks, and the contents of those that no list took over.
fn drop_staging(
    rows: &dyn Rows,
    staging: u64,
    listed: &HashSet<u64>,
    tick: Tick,
    changes: &mut Changes,
) -> Result<bool, Unread> {
    remove_rows(rows, &blocks_of(staging), ROWS_PER_STEP, changes, |_, block: Block, changes| {
        if !listed.contains(&block.content) {
            changes.unrefer(space::CONTENT, block.content, staging, tick.now);
        }
    })
}

/// Uncommitted blocks after a week. If a block came meanwhile, the week begins with that one.
fn age_blocks(
    rows: &dyn Rows,
    key: &Key,
    at: engine::Timestamp,
    tick: Tick,
    changes: &mut Changes,
) -> Result<bool, Unread> {
    let Some(mut blob) = model::find_blob(rows, key)? else { return Ok(false) };
    let Some(mut staging) = blob.staging.take().filter(|staging| staging.due == at) else { return Ok(false) };
    let end = staging.end();
    if end > tick.now {
        staging.due = end;
        changes.put(staging.due_key(key), Bytes::new());
        blob.staging = Some(staging);
    } else {
        staging.leave(key, changes, tick.now);
    }
    blob.store(key.clone(), changes);
    Ok(false)
}

/// A soft-deleted container whose retention is over: it is purged like any other.
fn end_container(rows: &dyn Rows, key: &Key, tick: Tick, changes: &mut Changes) -> Result<bool, Unread> {
    let Some(row) = rows.get(key)? else { return Ok(false) };
    let deleted: DeletedContainer = codec::decode(&row)?;
    if !deleted.mark.is_kept(tick.now) {
        changes.delete(key.clone());
        changes.put(purge_due(deleted.container.generation, tick.now), Bytes::new());
    }
    Ok(false)
}

/// The blobs of a container that was deleted. Nothing can be added to it any more: every write needs its live row.
fn purge_container(rows: &dyn Rows, generation: u64, tick: Tick, changes: &mut Changes) -> Result<bool, Unread> {
    let all = Key::new(space::BLOB).number(generation);
    changes.delete(moved_key(generation));
    remove_rows(rows, &all, ROWS_PER_STEP, changes, |key, blob: Blob, changes| {
        blob.let_go(key, changes, tick.now);
    })
}

/// The snapshots or versions of a blob that is gone, or that has taken another uid.
fn drop_states(rows: &dyn Rows, all: &Key, tick: Tick, changes: &mut Changes) -> Result<bool, Unread> {
    remove_rows(rows, all, ROWS_PER_STEP, changes, |_, state: Committed, changes| {
        state.let_go(changes, tick.now);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlobError;
    use crate::model::blocks;
    use crate::testing::{Bench, refusal};
    use content::map::MapCollector;
    use engine::collector;

    const NOTHING: (u64, u64) = (0, 0);

    async fn put_blocks(bench: &Bench, blob: &str, count: usize) -> String {
        let mut list = String::new();
        for n in 0..count {
            let id = wire::base64::encode(format!("{n:05}").as_bytes());
            bench.call("PUT", &format!("{blob}?comp=block&blockid={id}"), &[], b"block").await.unwrap();
            list.push_str(&format!("<Latest>{id}</Latest>"));
        }
        format!("<BlockList>{list}</BlockList>")
    }

    async fn put_list(bench: &Bench, blob: &str, list: &str) {
        bench.call("PUT", &format!("{blob}?comp=blocklist"), &[], list.as_bytes()).await.unwrap();
    }

    async fn delete_container(bench: &Bench) {
        bench.call("DELETE", "cont?restype=container", &[], b"").await.unwrap();
    }

    /// One row for the container, one for the blob, one reference; one content.
    const ONE_WHOLE_BLOB: (u64, u64) = (3, 1);

    #[tokio::test]
    async fn overwriting_leaves_one_content() {
        let bench = Bench::with_container().await;
        for _ in 0..5 {
            bench.put("cont/blob", b"x").await;
        }
        bench.sweep().await;
        assert_eq!(bench.figures(), ONE_WHOLE_BLOB);
        bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (1, 0));
    }

    #[tokio::test]
    async fn blocks_leave_nothing_behind() {
        let bench = Bench::with_container().await;
        let list = put_blocks(&bench, "cont/blob", 2_100).await;
        put_blocks(&bench, "cont/blob", 10).await;
        put_list(&bench, "cont/blob", &list).await;
        bench.sweep().await;
        // Container, blob, its reference to the list, three rows of the list, and a reference for each block.
        assert_eq!(bench.figures(), (6 + 2_100, 2_100));
        assert_eq!(bench.get("cont/blob").await.len(), 2_100 * 5);
        // A block that nobody lists, then the same list again from the committed blocks.
        bench.call("PUT", "cont/blob?comp=block&blockid=eHh4eHg=", &[], b"x").await.unwrap();
        put_list(&bench, "cont/blob", &list.replace("Latest", "Committed")).await;
        bench.sweep().await;
        assert_eq!(bench.figures(), (6 + 2_100, 2_100));
        assert_eq!(bench.get("cont/blob").await.len(), 2_100 * 5);
        bench.put("cont/blob", b"whole").await;
        bench.sweep().await;
        assert_eq!(bench.figures(), ONE_WHOLE_BLOB);
    }

    #[tokio::test]
    async fn a_deleted_blob_of_blocks_leaves_nothing_even_if_its_list_goes_first() {
        for list_first in [false, true] {
            let bench = Bench::with_container().await;
            let list = put_blocks(&bench, "cont/blob", 70).await;
            put_blocks(&bench, "cont/blob", 75).await;
            put_list(&bench, "cont/blob", &list).await;
            put_blocks(&bench, "cont/blob", 60).await;
            bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
            if list_first {
                let handler = AllBut(space::BLOCK, &bench);
                while collector::sweep(&*bench.engine, &[&handler, &MapCollector]).await.unwrap() > 0 {}
                assert_ne!(bench.figures(), (1, 0));
            }
            bench.sweep().await;
            assert_eq!(bench.figures(), (1, 0), "{list_first}");
        }
    }

    /// Leaves due rows of one space for later.
    struct AllBut<'a>(u8, &'a Bench);

    impl std::fmt::Debug for AllBut<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "AllBut({:?})", self.0)
        }
    }

    impl Handler for AllBut<'_> {
        fn spaces(&self) -> &[u8] {
            self.1.service.spaces()
        }

        fn handle<'a>(&'a self, engine: &'a dyn Engine, due: &'a Due) -> BoxFuture<'a, Result<Handled, EngineError>> {
            if due.space == self.0 { Box::pin(async { Ok(Handled::Left) }) } else { self.1.service.handle(engine, due) }
        }
    }

    /// Turns the due rows of blocks, block lists and containers into the bytes that earlier versions wrote.
    async fn write_as_before(bench: &Bench) -> usize {
        let before = |due: &Due| {
            let number = match Task::of(due)? {
                Task::DropList(_) => BLOCK_LIST_BEFORE,
                Task::DropStaging(_) => STAGING_BEFORE,
                Task::AgeBlocks(_) => UNCOMMITTED_BEFORE,
                Task::PurgeContainer(_) => CONTAINER_BEFORE,
                _ => return None,
            };
            Some([&[0xE2][..], &due.at.0.to_be_bytes(), &[number], &escaped(&due.owner), &[0, 1]].concat())
        };
        let all = Key::new(space::DUE);
        engine::commit::<_, Infallible, _>(&*bench.engine, all.clone(), move |rows, _| {
            let mut changes = Changes::none();
            rows.scan(&all, &all.after_all(), 1, &mut |key, _| {
                if let Some(old) = before(&Due::from_key(key).unwrap()) {
                    changes.delete(Key::from_bytes(key)).put(Key::from_bytes(&old), Bytes::new());
                }
                engine::Visit::Next
            })?;
            let count = changes.rows.len() / 2;
            Ok(engine::Commit { changes, outcome: count })
        })
        .await
        .unwrap()
    }

    fn escaped(owner: &[u8]) -> Vec<u8> {
        owner.iter().flat_map(|byte| if *byte == 0 { vec![0, 0xFF] } else { vec![*byte] }).collect()
    }

    #[tokio::test]
    async fn what_earlier_versions_left_due_is_done() {
        let bench = Bench::with_container().await;
        let list = put_blocks(&bench, "cont/blob", 70).await;
        put_blocks(&bench, "cont/blob", 75).await;
        put_list(&bench, "cont/blob", &list).await;
        bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(write_as_before(&bench).await, 2, "the list, and what was left of its blocks");
        bench.sweep().await;
        assert_eq!(bench.figures(), (1, 0));

        put_blocks(&bench, "cont/blob", 3).await;
        put_blocks(&bench, "cont/later", 1).await;
        assert_eq!(write_as_before(&bench).await, 2, "both grow old");
        bench.advance(blocks::UNCOMMITTED_SECONDS - 60).await;
        put_blocks(&bench, "cont/later", 1).await;
        bench.advance(120).await;
        bench.sweep().await;
        assert_eq!(refusal(bench.call("GET", "cont/blob?comp=blocklist", &[], b"").await), BlobError::BlobNotFound);
        assert!(bench.text("GET", "cont/later?comp=blocklist&blocklisttype=uncommitted").await.contains("<Block>"));

        // Blocks that are committed take their own due row along, not the one of before; that one finds nothing to do.
        put_blocks(&bench, "cont/again", 1).await;
        assert_eq!(write_as_before(&bench).await, 2);
        put_list(&bench, "cont/again", "<BlockList/>").await;
        bench.advance(blocks::UNCOMMITTED_SECONDS + 60).await;
        bench.sweep().await;
        bench.get("cont/again").await;
        delete_container(&bench).await;
        assert_eq!(write_as_before(&bench).await, 1);
        bench.sweep().await;
        assert_eq!(bench.figures(), NOTHING);
    }

    #[tokio::test]
    async fn uncommitted_blocks_live_for_a_week_after_the_last() {
        let bench = Bench::with_container().await;
        bench.put("cont/kept", b"x").await;
        let kept = bench.figures();
        put_blocks(&bench, "cont/blob", 3).await;
        put_blocks(&bench, "cont/kept", 3).await;
        bench.advance(blocks::UNCOMMITTED_SECONDS - 60).await;
        bench.sweep().await;
        put_blocks(&bench, "cont/blob", 1).await;
        bench.advance(120).await;
        bench.sweep().await;
        let list = bench.text("GET", "cont/blob?comp=blocklist&blocklisttype=uncommitted").await;
        assert_eq!(list.matches("<Block>").count(), 3);
        let list = bench.text("GET", "cont/kept?comp=blocklist&blocklisttype=uncommitted").await;
        assert_eq!(list.matches("<Block>").count(), 0);
        bench.advance(blocks::UNCOMMITTED_SECONDS).await;
        bench.sweep().await;
        let gone = bench.call("GET", "cont/blob?comp=blocklist", &[], b"").await;
        assert_eq!(refusal(gone), BlobError::BlobNotFound);
        assert_eq!(bench.figures(), kept);
        assert_eq!(bench.get("cont/kept").await, b"x");
    }

    /// What clients see does not wait for the sweep.
    #[tokio::test]
    async fn after_a_week_blocks_are_gone_even_if_nobody_sweeps() {
        let bench = Bench::with_container().await;
        bench.put("cont/kept", b"x").await;
        let list = put_blocks(&bench, "cont/blob", 3).await;
        put_blocks(&bench, "cont/kept", 3).await;
        put_blocks(&bench, "cont/again", 3).await;
        bench.advance(blocks::UNCOMMITTED_SECONDS).await;
        let gone = async |method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]| {
            refusal(bench.call(method, url, headers, body).await)
        };
        let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
        assert_eq!(gone("GET", "cont/blob?comp=blocklist", &[], b"").await, BlobError::BlobNotFound);
        assert_eq!(gone("DELETE", "cont/blob", &[], b"").await, BlobError::BlobNotFound);
        assert_eq!(gone("PUT", "cont/blob?comp=lease", &acquire, b"").await, BlobError::BlobNotFound);
        for blob in ["cont/blob?comp=blocklist", "cont/kept?comp=blocklist"] {
            assert_eq!(gone("PUT", blob, &[], list.as_bytes()).await, BlobError::InvalidBlockList);
        }
        let shown = bench.text("GET", "cont?restype=container&comp=list&include=uncommittedblobs").await;
        assert_eq!(shown.matches("<Blob>").count(), 1);
        // A new block begins a new week, and may have an id of another length.
        bench.call("PUT", "cont/again?comp=block&blockid=QQ==", &[], b"x").await.unwrap();
        let waiting = bench.text("GET", "cont/again?comp=blocklist&blocklisttype=all").await;
        assert_eq!(waiting.matches("<Block>").count(), 1);
        bench.sweep().await;
        let waiting = bench.text("GET", "cont/again?comp=blocklist&blocklisttype=all").await;
        assert_eq!(waiting.matches("<Block>").count(), 1);
        bench.put("cont/again", b"x").await;
        bench.sweep().await;
        // The container and two whole blobs with a reference each.
        assert_eq!(bench.figures(), (5, 2));
    }

    #[tokio::test]
    async fn snapshots_share_and_leave_nothing() {
        let bench = Bench::with_container().await;
        let list = put_blocks(&bench, "cont/blob", 3).await;
        put_list(&bench, "cont/blob", &list).await;
        for _ in 0..120 {
            bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
        }
        bench.put("cont/blob", b"new").await;
        bench.sweep().await;
        assert_eq!(bench.figures().1, 4);
        let include = [("x-ms-delete-snapshots", "include")];
        bench.call("DELETE", "cont/blob", &include, b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (1, 0));
    }

    #[tokio::test]
    async fn a_deleted_container_leaves_nothing_and_its_successor_is_untouched() {
        let bench = Bench::with_container().await;
        for n in 0..120 {
            bench.put(&format!("cont/blob{n}"), b"x").await;
        }
        let list = put_blocks(&bench, "cont/blocks", 5).await;
        put_list(&bench, "cont/blocks", &list).await;
        bench.call("PUT", "cont/blocks?comp=snapshot", &[], b"").await.unwrap();
        put_blocks(&bench, "cont/blocks", 5).await;
        put_blocks(&bench, "cont/uncommitted", 5).await;
        delete_container(&bench).await;
        bench.call("PUT", "cont?restype=container", &[], b"").await.unwrap();
        bench.put("cont/blob1", b"new").await;
        bench.sweep().await;
        assert_eq!(bench.figures(), ONE_WHOLE_BLOB);
        assert_eq!(bench.get("cont/blob1").await, b"new");
        delete_container(&bench).await;
        bench.sweep().await;
        assert_eq!(bench.figures(), NOTHING);
    }

    #[tokio::test]
    async fn a_refused_upload_leaves_nothing() {
        let bench = Bench::with_container().await;
        let before = bench.figures();
        let wrong = [("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")];
        refusal(bench.call("PUT", "cont/blob?comp=block&blockid=QQ==", &wrong, b"x").await);
        assert_eq!(bench.figures(), before);
    }

    async fn damage_first(bench: &Bench, space: u8, count: usize) {
        let damaged = engine::commit::<_, Infallible, _>(&*bench.engine, Key::new(0), move |rows, _| {
            let (all, mut changes, mut seen) = (Key::new(space), Changes::none(), 0);
            rows.scan(&all, &all.after_all(), count, &mut |key, _| {
                changes.put(Key::from_bytes(key), b"damaged".to_vec());
                seen += 1;
                if seen < count { engine::Visit::Next } else { engine::Visit::Stop }
            })?;
            Ok(engine::Commit { changes, outcome: () })
        });
        damaged.await.unwrap();
    }

    /// Sweeps until nothing changes, and says what is left: rows, contents, and the failure.
    async fn swept(bench: &Bench) -> (u64, u64, String) {
        let mut last = None;
        loop {
            let failed = collector::sweep(&*bench.engine, &[&bench.service, &MapCollector]).await.err();
            if last.replace(bench.figures()) == Some(bench.figures()) {
                let (rows, contents) = bench.figures();
                return (rows, contents, failed.map_or(String::new(), |error| error.to_string()));
            }
        }
    }

    /// Rows that cannot be read are named and left; what lies behind them goes, however many they are.
    #[tokio::test]
    async fn bad_rows_stop_nothing_behind_them() {
        for bad in [1, 2 * ROWS_PER_STEP] {
            let bench = Bench::with_container().await;
            for n in 0..bad + 2 * ROWS_PER_STEP {
                bench.put(&format!("cont/{n:05}"), b"x").await;
            }
            damage_first(&bench, space::BLOB, bad).await;
            delete_container(&bench).await;
            let (rows, contents, failed) = swept(&bench).await;
            // The row, its reference and its content stay, and the purge is still due.
            assert_eq!((rows, contents), (2 * bad as u64 + 1, bad as u64));
            assert!(failed.contains("cannot be read") && failed.contains("00000"), "{failed}");
        }
        // The same for snapshots, blocks that wait, and the rows of a list.
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"x").await;
        for _ in 0..3 {
            bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
        }
        damage_first(&bench, space::SNAPSHOT, 1).await;
        delete_container(&bench).await;
        let (rows, contents, failed) = swept(&bench).await;
        assert_eq!((rows, contents), (2 + 1, 1));
        assert!(failed.contains("cannot be read"), "{failed}");

        let bench = Bench::with_container().await;
        put_blocks(&bench, "cont/blob", 3).await;
        damage_first(&bench, space::BLOCK, 1).await;
        delete_container(&bench).await;
        let (rows, contents, failed) = swept(&bench).await;
        assert_eq!((rows, contents), (2 + 1, 1));
        assert!(failed.contains("cannot be read"), "{failed}");

        let bench = Bench::with_container().await;
        let append = [("x-ms-blob-type", "AppendBlob")];
        bench.call("PUT", "cont/blob", &append, b"").await.unwrap();
        for _ in 0..3 {
            bench.call("PUT", "cont/blob?comp=appendblock", &[], b"x").await.unwrap();
        }
        damage_first(&bench, space::BLOCK_LIST, 1).await;
        delete_container(&bench).await;
        let (rows, contents, failed) = swept(&bench).await;
        assert_eq!((rows, contents), (2 + 1, 1));
        assert!(failed.contains("cannot be read"), "{failed}");
    }
}
