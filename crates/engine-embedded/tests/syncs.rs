//! A sync that fails is remembered: nothing that it should have made durable counts as durable, ever.

mod common;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock, RwLockReadGuard};

use common::{assert_clean, delete, get, open, pattern, put, sweep};
use engine::{Engine, EngineError};
use engine_embedded::disk::{Disk, DiskFile, Lock, RealDisk};
use engine_embedded::faults::{FaultyDisk, Point};
use engine_embedded::{EmbeddedEngine, OnFatal, Options};

const EIO: i32 = 5;

fn eio() -> io::Error {
    io::Error::from_raw_os_error(EIO)
}

/// The next sync of a data segment waits for the test and then fails; those after it succeed, as Linux has it.
#[derive(Default)]
struct OneFailure {
    armed: AtomicBool,
    /// 0: no sync, 1: a sync waits, 2: it may fail.
    stage: Mutex<u8>,
    changed: Condvar,
}

impl OneFailure {
    fn disk(self: &Arc<Self>) -> Arc<FaultyDisk> {
        let failure = Arc::clone(self);
        Arc::new(FaultyDisk::new(move |point, _| {
            if point == Point::DataSync && failure.armed.swap(false, Ordering::AcqRel) {
                failure.go_to(1);
                failure.wait_for(2);
                return Err(eio());
            }
            Ok(())
        }))
    }

    fn go_to(&self, stage: u8) {
        let mut present = self.stage.lock().expect("not poisoned");
        *present = stage.max(*present);
        drop(present);
        self.changed.notify_all();
    }

    fn wait_for(&self, stage: u8) {
        let stages = self.stage.lock().expect("not poisoned");
        drop(self.changed.wait_while(stages, |present| *present < stage).expect("not poisoned"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_sync_is_remembered_though_the_request_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let failure = Arc::new(OneFailure::default());
    let options = Options { disk: failure.disk(), ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    // The segment is there before: the sync that makes a new one is not the one that is to fail.
    put(&*engine, "before", &pattern("before", 1, 600_000)).await.expect("put");
    let (mut first, mut second) = (engine.writer(Some(600_000)), engine.writer(Some(600_000)));
    first.write(pattern("first", 1, 600_000)).await.expect("written");
    second.write(pattern("second", 1, 600_000)).await.expect("written");
    failure.armed.store(true, Ordering::Release);
    let gone = tokio::spawn(first.finish());
    tokio::task::spawn_blocking({
        let failure = Arc::clone(&failure);
        move || failure.wait_for(1)
    })
    .await
    .expect("waited");
    // The client hangs up while its sync runs. Then the sync fails.
    gone.abort();
    assert!(gone.await.expect_err("given up").is_cancelled());
    failure.go_to(2);
    // The second one's bytes are in the same segment; the next sync of it will report success.
    let answer = second.finish().await;
    assert!(matches!(answer, Err(EngineError::Unavailable(_))), "{answer:?}");
    put(&*engine, "third", &pattern("third", 1, 600_000)).await.expect("another segment takes it");
    drop(engine);
    assert_clean(folder.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_sync_of_the_collector_is_remembered_by_uploads() {
    let folder = tempfile::tempdir().expect("a folder");
    let failure = Arc::new(OneFailure::default());
    failure.go_to(2);
    let options = Options { disk: failure.disk(), collects: false, segment_bytes: 32 << 20, ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    // Large ones, so that they share the lane of what the collector moves. Three of them fill the second segment.
    for round in 0..5 {
        put(&*engine, &format!("{round}"), &pattern("x", round, 9_000_000)).await.expect("put");
    }
    for round in 1..3 {
        delete(&*engine, &format!("{round}")).await.expect("deleted");
    }
    sweep(&*engine).await;
    let mut upload = engine.writer(Some(9_000_000));
    upload.write(pattern("upload", 1, 9_000_000)).await.expect("written");
    failure.armed.store(true, Ordering::Release);
    let collector = Arc::clone(&engine);
    let collected = tokio::task::spawn_blocking(move || collector.collect_now()).await.expect("a thread");
    if failure.armed.load(Ordering::Acquire) {
        panic!("the collector synced nothing: {collected:?}");
    }
    let shared = upload.finish().await;
    assert!(matches!(shared, Err(EngineError::Unavailable(_))), "{shared:?}");
    assert_eq!(get(&*engine, "3").await, Ok(Some(pattern("x", 3, 9_000_000))), "what it wanted to move is still there");
    drop(engine);
    assert_clean(folder.path());
}

/// A disk as Linux has it: what was written is read back at once, and is on the platter after a sync that succeeded. A sync
/// that fails drops what it should have written, and says so once.
#[derive(Debug, Clone, Default)]
struct ForgetfulDisk {
    platter: Arc<Mutex<HashMap<PathBuf, Vec<u8>>>>,
    fail_next_sync: Arc<AtomicBool>,
    is_dark: Arc<RwLock<bool>>,
}

#[derive(Debug)]
struct ForgetfulFile {
    disk: ForgetfulDisk,
    path: PathBuf,
    file: Box<dyn DiskFile>,
    dirty: Mutex<Vec<(u64, Vec<u8>)>>,
}

impl ForgetfulDisk {
    fn over(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(ForgetfulFile { disk: self.clone(), path: path.to_path_buf(), file, dirty: Mutex::default() })
    }

    /// Every call that changes the disk holds this: until it is dropped the power stays. After the cut nothing is changed any more,
    /// though the threads of the engine that had the disk go on.
    fn power(&self) -> io::Result<RwLockReadGuard<'_, bool>> {
        let is_dark = self.is_dark.read().expect("not poisoned");
        if *is_dark { Err(eio()) } else { Ok(is_dark) }
    }

    /// Leaves in the segments what is on the platter.
    fn cut_power(&self) {
        *self.is_dark.write().expect("not poisoned") = true;
        for (path, bytes) in self.platter.lock().expect("not poisoned").iter().filter(|(path, _)| path.exists()) {
            std::fs::write(path, bytes).expect("written");
        }
    }
}

impl Disk for ForgetfulDisk {
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        let _power = self.power()?;
        RealDisk.create_folder(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(path)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let _power = self.power()?;
        Ok(self.over(path, RealDisk.create(path)?))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.over(path, RealDisk.open(path)?))
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        RealDisk.read(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _power = self.power()?;
        let moved = self.platter.lock().expect("not poisoned").remove(from);
        self.platter.lock().expect("not poisoned").extend(moved.map(|bytes| (to.to_path_buf(), bytes)));
        RealDisk.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let _power = self.power()?;
        self.platter.lock().expect("not poisoned").remove(path);
        RealDisk.remove_file(path)
    }
    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_folder(path)
    }
    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        RealDisk.free_bytes(path)
    }
    fn lock(&self, folder: &Path) -> io::Result<Option<Box<dyn Lock>>> {
        RealDisk.lock(folder)
    }
    fn tree_work(&self, work: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let _power = self.power()?;
        work()
    }
}

impl DiskFile for ForgetfulFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let _power = self.disk.power()?;
        self.dirty.lock().expect("not poisoned").push((offset, bytes.to_vec()));
        self.file.write_all_at(bytes, offset)
    }
    fn set_len(&self, length: u64) -> io::Result<()> {
        let _power = self.disk.power()?;
        let length_here = usize::try_from(length).expect("fits");
        self.disk.platter.lock().expect("not poisoned").entry(self.path.clone()).or_default().resize(length_here, 0);
        self.file.set_len(length)
    }
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }
    fn sync_data(&self) -> io::Result<()> {
        let _power = self.disk.power()?;
        let dirty = std::mem::take(&mut *self.dirty.lock().expect("not poisoned"));
        // The sync of a batch: new files, which the engine makes beside it, are written from their first byte on.
        let is_batch = !dirty.is_empty() && dirty.iter().all(|(offset, _)| *offset > 0);
        if is_batch && self.disk.fail_next_sync.swap(false, Ordering::AcqRel) {
            return Err(eio());
        }
        let mut platter = self.disk.platter.lock().expect("not poisoned");
        let file = platter.entry(self.path.clone()).or_default();
        for (offset, bytes) in dirty {
            let from = usize::try_from(offset).expect("fits");
            file.resize(file.len().max(from + bytes.len()), 0);
            file[from..from + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(())
    }
    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }
}

#[tokio::test]
async fn what_a_failed_sync_left_in_memory_is_written_again_before_it_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = ForgetfulDisk::default();
    let died = Arc::new(AtomicU8::new(0));
    let note = Arc::clone(&died);
    let options = Options {
        disk: Arc::new(disk.clone()),
        on_fatal: OnFatal(Arc::new(move |_| note.store(1, Ordering::Release))),
        ..Options::default()
    };
    let engine = EmbeddedEngine::open(folder.path(), options.clone()).expect("opened");
    put(&*engine, "before", &pattern("before", 1, 3_000)).await.expect("put");
    disk.fail_next_sync.store(true, Ordering::Release);
    assert_eq!(put(&*engine, "unsynced", &pattern("unsynced", 1, 3_000)).await, Err(EngineError::Closed));
    while died.load(Ordering::Acquire) == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    drop(engine);
    // A restart finds the batch in memory. It may count or not; but once it has been shown it stays.
    let engine = EmbeddedEngine::open(folder.path(), options.clone()).expect("opened");
    let shown = get(&*engine, "unsynced").await.expect("read");
    put(&*engine, "after", &pattern("after", 1, 3_000)).await.expect("put");
    // The power is cut: nothing more is written, and what is on the platter is what there is.
    std::mem::forget(engine);
    disk.cut_power();
    std::fs::remove_file(folder.path().join("LOCK")).expect("removed");
    let engine = open(folder.path());
    assert_eq!(get(&*engine, "before").await, Ok(Some(pattern("before", 1, 3_000))));
    assert_eq!(get(&*engine, "after").await, Ok(Some(pattern("after", 1, 3_000))));
    assert_eq!(get(&*engine, "unsynced").await, Ok(shown));
}
