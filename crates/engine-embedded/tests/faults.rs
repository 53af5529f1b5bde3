//! The disk fails: the write fails with a clear error, what was acknowledged stays, and the engine recovers.

mod common;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use common::{assert_clean, crash_copy, delete, get, open, pattern, put};
use engine::{Engine, EngineError};
use engine_embedded::faults::{FaultyDisk, Point};
use engine_embedded::{EmbeddedEngine, OnFatal, Options};

/// A switch the test sets: which point fails, and with what.
#[derive(Clone, Default)]
struct Switch(Arc<Mutex<Option<(Point, i32)>>>);

impl Switch {
    fn set(&self, fault: Option<(Point, i32)>) {
        *self.0.lock().expect("not poisoned") = fault;
    }

    fn disk(&self) -> Arc<FaultyDisk> {
        let switch = self.clone();
        Arc::new(FaultyDisk::new(move |point, _| match *switch.0.lock().expect("not poisoned") {
            Some((at, errno)) if at == point => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }))
    }
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn open_with(folder: &Path, switch: &Switch, died: &Arc<AtomicU8>) -> Arc<EmbeddedEngine> {
    let died = Arc::clone(died);
    let options = Options {
        disk: switch.disk(),
        on_fatal: OnFatal(Arc::new(move |_| died.store(1, Ordering::Release))),
        ..Options::default()
    };
    EmbeddedEngine::open(folder, options).expect("opened")
}

#[tokio::test]
async fn a_failed_upload_fails_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (switch, died) = (Switch::default(), Arc::default());
    let engine = open_with(folder.path(), &switch, &died);
    put(&*engine, "before", &pattern("before", 1, 500_000)).await.expect("put");
    for point in [Point::DataWrite, Point::DataSync] {
        switch.set(Some((point, EIO)));
        let failed = put(&*engine, "large", &pattern("large", 1, 500_000)).await;
        assert!(matches!(failed, Err(EngineError::Unavailable(_))), "{point:?}: {failed:?}");
        put(&*engine, "small", &pattern("small", 1, 500)).await.expect("small ones go on");
        assert_eq!(get(&*engine, "large").await, Ok(None));
        assert_eq!(get(&*engine, "before").await, Ok(Some(pattern("before", 1, 500_000))));
        switch.set(None);
        put(&*engine, "large", &pattern("large", 2, 500_000)).await.expect("it works again");
        delete(&*engine, "large").await.expect("deleted");
    }
    assert_eq!(died.load(Ordering::Acquire), 0);
    drop(engine);
    assert_clean(folder.path());
}

#[tokio::test]
async fn a_full_disk_is_said_and_passes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (switch, died) = (Switch::default(), Arc::default());
    let engine = open_with(folder.path(), &switch, &died);
    put(&*engine, "kept", &pattern("kept", 1, 500_000)).await.expect("put");
    switch.set(Some((Point::DataWrite, ENOSPC)));
    assert_eq!(put(&*engine, "large", &pattern("large", 1, 500_000)).await, Err(EngineError::Full));
    assert_eq!(put(&*engine, "small", &pattern("small", 1, 50)).await, Err(EngineError::Full), "it is full for all");
    assert_eq!(get(&*engine, "kept").await, Ok(Some(pattern("kept", 1, 500_000))));
    delete(&*engine, "kept").await.expect("deletes go on");
    switch.set(None);
    // The engine looks at the disk by itself; how soon is not promised.
    while put(&*engine, "large", &pattern("large", 2, 500_000)).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(get(&*engine, "large").await, Ok(Some(pattern("large", 2, 500_000))));
    assert_eq!(died.load(Ordering::Acquire), 0);
    drop(engine);
    assert_clean(folder.path());
}

#[tokio::test]
async fn below_the_reserve_only_deletes_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path());
    put(&*engine, "kept", &pattern("kept", 1, 500)).await.expect("put");
    engine.close().await.expect("closed");
    drop(engine);
    let disk = FaultyDisk::new(|point, _| match point {
        Point::FreeSpace => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    });
    let options = Options { disk: Arc::new(disk), ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    while put(&*engine, "more", &pattern("more", 1, 500)).await != Err(EngineError::Full) {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    delete(&*engine, "kept").await.expect("deleted");
    assert_eq!(get(&*engine, "kept").await, Ok(None));
}

#[tokio::test]
async fn a_log_that_fails_stops_the_engine_and_loses_nothing() {
    for point in [Point::LogWrite, Point::LogSync] {
        let folder = tempfile::tempdir().expect("a folder");
        let (switch, died) = (Switch::default(), Arc::default());
        let engine = open_with(folder.path(), &switch, &died);
        for round in 0..10 {
            let name = format!("{round}");
            put(&*engine, &name, &pattern(&name, round, 3_000)).await.expect("put");
        }
        switch.set(Some((point, EIO)));
        let lost = put(&*engine, "unacknowledged", &pattern("u", 1, 3_000)).await;
        assert_eq!(lost, Err(EngineError::Closed), "no caller is told that it happened");
        while died.load(Ordering::Acquire) == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        switch.set(None);
        assert_eq!(put(&*engine, "late", &pattern("l", 1, 10)).await, Err(EngineError::Closed));
        assert_eq!(get(&*engine, "unacknowledged").await, Ok(None), "readers never see it");
        let after = tempfile::tempdir().expect("a folder");
        crash_copy(folder.path(), after.path());
        let engine = open(after.path());
        for round in 0..10 {
            let name = format!("{round}");
            assert_eq!(get(&*engine, &name).await, Ok(Some(pattern(&name, round, 3_000))));
        }
        drop(engine);
        assert_clean(after.path());
    }
}
