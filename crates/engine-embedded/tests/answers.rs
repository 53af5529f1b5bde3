//! No answer tells of a state that a crash can take back: not a success, not a refusal, not a read.

mod common;

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use common::key;
use engine::{Changes, Commit, Engine, NotCommitted, Stop};
use engine_embedded::faults::{FaultyDisk, Point};
use engine_embedded::{Durability, EmbeddedEngine, Options};

/// A disk whose log syncs wait until they are let through.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn shut(&self, shut: bool) {
        *self.0.0.lock().expect("not poisoned") = shut;
        self.0.1.notify_all();
    }

    fn disk(&self) -> Arc<FaultyDisk> {
        let gate = self.clone();
        Arc::new(FaultyDisk::new(move |point, _| {
            if point == Point::LogSync {
                let shut = gate.0.0.lock().expect("not poisoned");
                drop(gate.0.1.wait_while(shut, |shut| *shut).expect("not poisoned"));
            }
            Ok(())
        }))
    }
}

async fn write(engine: Arc<EmbeddedEngine>) -> Result<(), NotCommitted<Infallible>> {
    engine::commit(&*engine, key("a"), |_, _| {
        let mut changes = Changes::none();
        changes.put(key("a"), "1");
        Ok(Commit { changes, outcome: () })
    })
    .await
}

/// Writes, and tells when it was decided.
async fn count(engine: Arc<EmbeddedEngine>, decided: Arc<AtomicU64>) -> Result<(), NotCommitted<Infallible>> {
    engine::commit(&*engine, key("a"), move |_, tick| {
        decided.fetch_add(1, Ordering::AcqRel);
        let mut changes = Changes::none();
        changes.put(key("a"), tick.stamp.0.to_be_bytes().to_vec());
        Ok(Commit { changes, outcome: () })
    })
    .await
}

/// Refuses if the row is there.
async fn refuse(engine: Arc<EmbeddedEngine>) -> Result<(), NotCommitted<&'static str>> {
    engine::commit(&*engine, key("a"), |rows, _| match rows.get(&key("a"))? {
        Some(_) => Err(Stop::Refused("it is there")),
        None => Ok(Commit::unchanged(())),
    })
    .await
}

async fn read(engine: &EmbeddedEngine) -> Option<bytes::Bytes> {
    engine::read::<_, Infallible, _>(engine, |rows, _| Ok(rows.get(&key("a"))?)).await.expect("read")
}

/// Long enough for an answer that does not wait to be there.
const A_WHILE: Duration = Duration::from_millis(150);

#[tokio::test(flavor = "multi_thread")]
async fn answers_wait_for_what_they_were_decided_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let gate = Gate::default();
    let options = Options { disk: gate.disk(), ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    gate.shut(true);
    let written = tokio::spawn(write(Arc::clone(&engine)));
    tokio::time::sleep(A_WHILE).await;
    let refused = tokio::spawn(refuse(Arc::clone(&engine)));
    tokio::time::sleep(A_WHILE).await;
    let (was_written, was_refused) = (written.is_finished(), refused.is_finished());
    let was_read = read(&engine).await;
    gate.shut(false);
    assert!(!was_written, "the write is acknowledged before it is durable");
    assert!(!was_refused, "the refusal tells of a write that is not durable");
    assert_eq!(was_read, None, "a reader sees what is not durable");
    assert_eq!(written.await.expect("the task"), Ok(()));
    assert_eq!(refused.await.expect("the task"), Err(NotCommitted::Refused("it is there")));
    assert_eq!(read(&engine).await.as_deref(), Some(&b"1"[..]));
}

/// What a decision holds is given up when its changes are there, also if no task waits for its answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_kept_until_it_is_durable() {
    let folder = tempfile::tempdir().expect("a folder");
    let gate = Gate::default();
    let options = Options { disk: gate.disk(), ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    gate.shut(true);
    let (decided, held) = (Arc::new(AtomicU64::new(0)), Arc::new(()));
    let (noted, holds) = (Arc::clone(&decided), Arc::clone(&held));
    let (decision, _) = engine::ask::<_, Infallible, _>(key("a"), move |_, _| {
        let _ = &holds;
        noted.fetch_add(1, Ordering::AcqRel);
        let mut changes = Changes::none();
        changes.put(key("a"), "1");
        Ok(Commit { changes, outcome: () })
    });
    drop(engine.commit(decision));
    let wait_for = async |count: u64| {
        while decided.load(Ordering::Acquire) < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    wait_for(1).await;
    // The decider is done with the first once it has decided the next.
    let next = tokio::spawn(count(Arc::clone(&engine), Arc::clone(&decided)));
    wait_for(2).await;
    let was_kept = Arc::strong_count(&held) == 2;
    gate.shut(false);
    assert!(was_kept, "given up before it is durable");
    assert_eq!(next.await.expect("the task"), Ok(()));
    assert_eq!(Arc::strong_count(&held), 1);
    assert!(read(&engine).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_sync_serves_everything_that_waits() {
    let folder = tempfile::tempdir().expect("a folder");
    let gate = Gate::default();
    let options = Options { disk: gate.disk(), ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    gate.shut(true);
    let decided = Arc::new(AtomicU64::new(0));
    let writers: Vec<_> = (0..200).map(|_| tokio::spawn(count(Arc::clone(&engine), Arc::clone(&decided)))).collect();
    while decided.load(Ordering::Acquire) < 200 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    gate.shut(false);
    for writer in writers {
        assert_eq!(writer.await.expect("the task"), Ok(()));
    }
    let syncs = engine.figures().iter().find(|(name, _)| *name == "syncs").expect("counted").1;
    assert!(syncs <= 4, "{syncs} syncs for 200 writes to one row");
}

#[tokio::test(flavor = "multi_thread")]
async fn relaxed_durability_syncs_under_load_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { durability: Durability::Relaxed, ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    let syncs =
        |engine: &EmbeddedEngine| engine.figures().iter().find(|(name, _)| *name == "syncs").expect("counted").1;
    while syncs(&engine) < 2 {
        write(Arc::clone(&engine)).await.expect("written");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn relaxed_durability_moves_only_the_acknowledgement() {
    let folder = tempfile::tempdir().expect("a folder");
    let gate = Gate::default();
    let options = Options { disk: gate.disk(), durability: Durability::Relaxed, ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    gate.shut(true);
    assert_eq!(write(Arc::clone(&engine)).await, Ok(()), "acknowledged without a sync");
    assert_eq!(read(&engine).await.as_deref(), Some(&b"1"[..]));
    gate.shut(false);
    engine.close().await.expect("closed");
    drop(engine);
    assert_eq!(read(&common::open(folder.path())).await.as_deref(), Some(&b"1"[..]), "an orderly stop keeps it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_goes_only_when_what_emptied_it_is_durable() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = common::open(folder.path());
    common::put(&*engine, "large", &common::pattern("large", 1, 500_000)).await.expect("put");
    engine.close().await.expect("closed");
    drop(engine);
    let gate = Gate::default();
    let options = Options { disk: gate.disk(), durability: Durability::Relaxed, collects: false, ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    let large_files = || {
        let files =
            std::fs::read_dir(folder.path().join("segments")).expect("listed").map(|file| file.expect("a file"));
        files
            .filter(|file| {
                std::fs::read(file.path())
                    .is_ok_and(|bytes| bytes.get(4096..).is_some_and(|rest| rest.starts_with(b"EXT1")))
            })
            .count()
    };
    assert_eq!(large_files(), 1);
    common::delete(&*engine, "large").await.expect("deleted");
    common::sweep(&*engine).await;
    gate.shut(true);
    let collector = Arc::clone(&engine);
    let collected = tokio::task::spawn_blocking(move || collector.collect_now());
    tokio::time::sleep(A_WHILE).await;
    // The gate opens before anything can fail: an engine behind a shut one does not end.
    let before_the_sync = large_files();
    gate.shut(false);
    assert_eq!(before_the_sync, 1, "the bytes are gone, and a power cut could bring back the row that names them");
    assert_eq!(collected.await.expect("the thread"), Ok(()));
    assert_eq!(large_files(), 0);
}
