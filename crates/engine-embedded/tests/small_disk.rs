//! A disk that is filled up: deletes and reads go on at every moment, the space comes back, and a restart works.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use common::{assert_clean, delete, get, key, pattern, put, sweep};
use engine::{Changes, Commit, Engine, EngineError};
use engine_embedded::disk::{Disk, DiskFile, Lock};
use engine_embedded::faults::{FaultyDisk, Point};
use engine_embedded::probe::{Moment, Probe};
use engine_embedded::{EmbeddedEngine, OnFatal, Options};

/// Against a test that would wait for ever: minutes, where seconds are enough on a machine that has nothing else to do.
const ROUNDS_MAX: u32 = 5_000;

/// Ends the test instead of the process.
fn options() -> Options {
    let on_fatal = OnFatal(Arc::new(|why| {
        eprintln!("the engine broke down: {why}");
        std::process::exit(101);
    }));
    Options { on_fatal, ..Options::default() }
}

/// One row without a content.
async fn put_row(engine: &dyn Engine, name: &str, bytes: usize) -> Result<(), EngineError> {
    let (key, value) = (key(name), pattern(name, 7, bytes));
    let done = engine::commit::<_, std::convert::Infallible, _>(engine, key.clone(), move |_, _| {
        let mut changes = Changes::none();
        changes.put(key.clone(), value.clone());
        Ok(Commit { changes, outcome: () })
    });
    done.await.map_err(common::failure)
}

async fn delete_row(engine: &dyn Engine, name: &str) -> Result<(), EngineError> {
    let key = key(name);
    let done = engine::commit::<_, std::convert::Infallible, _>(engine, key.clone(), move |_, _| {
        let mut changes = Changes::none().freeing_space();
        changes.delete(key.clone());
        Ok(Commit { changes, outcome: () })
    });
    done.await.map_err(common::failure)
}

fn length(round: u64) -> usize {
    match round % 4 {
        0 => 3_000_000,
        1 => 300_000,
        _ => 40_000,
    }
}

/// Fills the disk with contents and rows until it is full. Returns how many of each there are.
async fn fill(engine: &dyn Engine) -> (u64, u64) {
    let (mut contents, mut rows) = (0, 0);
    // That there is room again is noticed in the background; how soon is not promised.
    let mut tries = 0;
    while put(engine, "c0", &pattern("c", 0, length(0))).await == Err(EngineError::Full) {
        assert!(tries < ROUNDS_MAX, "there is no room: {:?}", engine.figures());
        tries += 1;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    loop {
        match put(engine, &format!("c{contents}"), &pattern("c", contents, length(contents))).await {
            Ok(_) => contents += 1,
            Err(EngineError::Full) => break,
            Err(error) => panic!("content {contents}: {error:?}"),
        }
        for _ in 0..20 {
            match put_row(engine, &format!("r{rows}"), 2_000).await {
                Ok(()) => rows += 1,
                Err(EngineError::Full) => break,
                Err(error) => panic!("row {rows}: {error:?}"),
            }
        }
    }
    assert_eq!(get(engine, "c0").await, Ok(Some(pattern("c", 0, length(0)))), "reads go on");
    (contents, rows)
}

async fn empty(engine: &dyn Engine, (contents, rows): (u64, u64)) {
    for round in 0..contents {
        assert_eq!(delete(engine, &format!("c{round}")).await, Ok(()), "content {round} of {contents}");
    }
    for round in 0..rows {
        assert_eq!(delete_row(engine, &format!("r{round}")).await, Ok(()), "row {round} of {rows}");
    }
    sweep(engine).await;
}

/// How many bytes the files in a folder take, whatever comes and goes meanwhile.
fn used(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(
            |entry| {
                if entry.path().is_dir() { used(&entry.path()) } else { entry.metadata().map_or(0, |data| data.len()) }
            },
        )
        .sum()
}

/// The engine gives space back by itself; how soon is not promised.
async fn wait_for_space(engine: &Arc<EmbeddedEngine>, folder: &Path, at_most: u64) {
    for round in 0.. {
        let collector = Arc::clone(engine);
        let _ = tokio::task::spawn_blocking(move || collector.collect_now()).await.expect("a thread");
        // Something must be written for the log to end, and its rows to be written out.
        let _ = put_row(&**engine, "again", 500_000).await;
        let left = used(folder);
        if left < at_most {
            return;
        }
        assert!(round < ROUNDS_MAX, "{left} bytes are still used: {:?}", engine.figures());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

async fn fill_and_empty(folder: &Path, options: Options, disk_bytes: u64) {
    let mut engine = EmbeddedEngine::open(folder, options.clone()).expect("opened");
    for round in 0..2 {
        let filled = fill(&*engine).await;
        println!("round {round}: {} contents and {} rows filled the disk", filled.0, filled.1);
        engine.close().await.expect("a full disk can be closed");
        drop(engine);
        engine = EmbeddedEngine::open(folder, options.clone()).expect("a full disk can be opened");
        assert_eq!(get(&*engine, "c0").await, Ok(Some(pattern("c", 0, length(0)))), "after the restart");
        empty(&*engine, filled).await;
        wait_for_space(&engine, folder, disk_bytes / 2).await;
    }
    drop(engine);
    assert_clean(folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_disk_is_filled_and_emptied() {
    const DISK: u64 = 512 << 20;
    let Some(disk) = LoopDisk::new(DISK) else {
        return common::skipped("a_small_disk_is_filled_and_emptied: a disk cannot be mounted here");
    };
    fill_and_empty(&disk.mount_point().join("data"), options(), DISK).await;
}

/// The same quickly, on a disk that only says it is small: what is asked for beyond its end fails as the system's would.
#[tokio::test(flavor = "multi_thread")]
async fn deletes_go_on_when_the_disk_is_full() {
    const DISK: u64 = 48 << 20;
    let folder = tempfile::tempdir().expect("a folder");
    let (path, at_most) = (folder.path().to_path_buf(), Arc::new(AtomicU64::new(DISK)));
    let (limit, looked) = (Arc::clone(&at_most), path.clone());
    let disk = FaultyDisk::new(move |point, _| {
        let reserve = match point {
            // Growing writes end at a reserve of a third.
            Point::FreeSpace => DISK / 3,
            Point::Create | Point::LogWrite | Point::DataWrite | Point::Tree => 0,
            _ => return Ok(()),
        };
        let full = used(&looked) + reserve > limit.load(Ordering::Acquire);
        if full { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    });
    let options = Options {
        disk: Arc::new(disk),
        memtable_bytes: 1 << 20,
        log_bytes: 4 << 20,
        segment_bytes: 8 << 20,
        ..options()
    };
    fill_and_empty(&path, options, DISK).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_cannot_be_written_for_a_while_leaves_no_log_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let fails = Arc::new(AtomicU64::new(0));
    let failed = Arc::clone(&fails);
    let disk = FaultyDisk::new(move |point, _| {
        let fails = || failed.try_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok();
        if point == Point::StateWrite && fails() { Err(std::io::Error::other("not now")) } else { Ok(()) }
    });
    assert_logs_are_given_back(folder.path(), disk, |round| {
        if round % 100 == 50 {
            fails.store(2, Ordering::Release);
        }
        fails.load(Ordering::Acquire) == 0
    })
    .await;
}

/// What is behind the end of a log is given back with it. If that fails once, the log and those after it go all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_end_cannot_be_cut_keeps_no_other_from_going() {
    let folder = tempfile::tempdir().expect("a folder");
    let (armed, cut) = (Arc::new(AtomicBool::new(false)), Mutex::new(None::<PathBuf>));
    let disk = {
        let armed = Arc::clone(&armed);
        FaultyDisk::new(move |point, path| {
            let mut cut = cut.lock().expect("no panic");
            if point == Point::SetLength && armed.swap(false, Ordering::AcqRel) {
                *cut = Some(path.to_path_buf());
            }
            if point == Point::WholeSync && cut.take_if(|cut| cut == path).is_some() {
                return Err(std::io::Error::from_raw_os_error(5));
            }
            Ok(())
        })
    };
    assert_logs_are_given_back(folder.path(), disk, |round| {
        if round == 50 {
            armed.store(true, Ordering::Release);
        }
        !armed.load(Ordering::Acquire)
    })
    .await;
}

/// Writes and deletes, while the disk fails as `goes_wrong` says in each round; it says when it has failed as it should. Then
/// everything that was used must come back.
async fn assert_logs_are_given_back(folder: &Path, disk: FaultyDisk, goes_wrong: impl Fn(u64) -> bool) {
    let options =
        Options { disk: Arc::new(disk), log_bytes: 256 << 10, memtable_bytes: 32 << 10, ..Options::default() };
    let engine = EmbeddedEngine::open(folder, options).expect("opened");
    for round in 0..400 {
        let name = format!("{round}");
        put(&*engine, &name, &pattern(&name, round, 20_000)).await.expect("put");
        goes_wrong(round);
    }
    while !goes_wrong(1) {
        let _ = put(&*engine, "more", &pattern("more", 1, 20_000)).await;
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    for round in 0..400 {
        delete(&*engine, &format!("{round}")).await.expect("deleted");
    }
    sweep(&*engine).await;
    // The logs end and are given up in the background; how soon is not promised.
    for round in 0.. {
        assert!(round < ROUNDS_MAX, "the logs are not given back: {:?}", engine.figures());
        let _ = put(&*engine, "more", &pattern("more", 1, 20_000)).await;
        sweep(&*engine).await;
        let collector = Arc::clone(&engine);
        tokio::task::spawn_blocking(move || collector.collect_now()).await.expect("a thread").expect("collected");
        if used(&folder.join("segments")) < 4 << 20 {
            break;
        }
    }
    drop(engine);
    assert_clean(folder);
}

/// A disk of a given size, on which every write and every new file beyond it fails, as the system's would. The tree's own
/// writes are counted and never fail.
#[derive(Debug)]
struct SmallDisk {
    below: FaultyDisk,
    folder: PathBuf,
    bytes: u64,
}

impl SmallDisk {
    /// `refused` counts what there was no room for.
    fn new(folder: &Path, bytes: u64, refused: &Arc<AtomicU64>) -> SmallDisk {
        let (looked, refused) = (folder.to_path_buf(), Arc::clone(refused));
        let below = FaultyDisk::new(move |point, _| {
            let writes = matches!(point, Point::Create | Point::LogWrite | Point::DataWrite | Point::StateWrite);
            if writes && used(&looked) > bytes {
                refused.fetch_add(1, Ordering::AcqRel);
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            Ok(())
        });
        SmallDisk { below, folder: folder.to_path_buf(), bytes }
    }
}

impl Disk for SmallDisk {
    fn free_bytes(&self, _path: &Path) -> std::io::Result<u64> {
        Ok(self.bytes.saturating_sub(used(&self.folder)))
    }
    fn total_bytes(&self, _path: &Path) -> std::io::Result<u64> {
        Ok(self.bytes)
    }
    fn create_folder(&self, path: &Path) -> std::io::Result<()> {
        self.below.create_folder(path)
    }
    fn list(&self, path: &Path) -> std::io::Result<Vec<String>> {
        self.below.list(path)
    }
    fn create(&self, path: &Path) -> std::io::Result<Box<dyn DiskFile>> {
        self.below.create(path)
    }
    fn open(&self, path: &Path) -> std::io::Result<Box<dyn DiskFile>> {
        self.below.open(path)
    }
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        self.below.read(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        self.below.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> std::io::Result<()> {
        self.below.remove_file(path)
    }
    fn sync_folder(&self, path: &Path) -> std::io::Result<()> {
        self.below.sync_folder(path)
    }
    fn lock(&self, folder: &Path) -> std::io::Result<Option<Box<dyn Lock>>> {
        self.below.lock(folder)
    }
}

/// Much of every segment lives, and more than there is room for in the reserve: it is moved a bit at a time, and each segment
/// that is empty goes before the next is moved.
#[tokio::test(flavor = "multi_thread")]
async fn the_collector_does_not_use_up_the_last_of_a_full_disk() {
    const DISK: u64 = 96 << 20;
    const EACH: usize = 300_000;
    let folder = tempfile::tempdir().expect("a folder");
    let refused = Arc::new(AtomicU64::new(0));
    let disk = Arc::new(SmallDisk::new(folder.path(), DISK, &refused));
    let options = Options { disk, log_bytes: 4 << 20, segment_bytes: 4 << 20, collects: false, ..options() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    let mut count = 0;
    while put(&*engine, &format!("{count}"), &pattern("x", count, EACH)).await != Err(EngineError::Full) {
        count += 1;
    }
    let lives = |number: u64| number % 5 < 2;
    for number in (0..count).filter(|number| !lives(*number)) {
        delete(&*engine, &format!("{number}")).await.expect("deleted");
    }
    sweep(&*engine).await;
    let live = EACH as u64 * (0..count).filter(|number| lives(*number)).count() as u64;
    assert!(live > DISK / 4, "{live} bytes do not fit into the reserve");
    for round in 0.. {
        let collector = Arc::clone(&engine);
        tokio::task::spawn_blocking(move || collector.collect_now()).await.expect("a thread").expect("collected");
        assert_eq!(refused.load(Ordering::Acquire), 0, "the disk was used up: {:?}", engine.figures());
        if used(&folder.path().join("segments")) < live * 3 / 2 + (8 << 20) {
            break;
        }
        assert!(round < 100, "the space does not come back: {:?}", engine.figures());
    }
    for number in (0..count).filter(|number| lives(*number)) {
        let found = get(&*engine, &format!("{number}")).await.expect("read");
        assert!(found == Some(pattern("x", number, EACH)), "{number}");
    }
    drop(engine);
    assert_clean(folder.path());
}

/// How many rows a decision of `change_rows` writes or deletes.
const ROWS_AT_ONCE: u64 = 50;
const ROW_BYTES: usize = 2_000;

/// Writes, or deletes, the rows of one group.
async fn change_rows(engine: &dyn Engine, group: u64, deletes: bool) -> Result<(), EngineError> {
    let row_key = |number: u64| key("rows").number(group * ROWS_AT_ONCE + number);
    let rows: Vec<_> = (0..ROWS_AT_ONCE)
        .map(|number| (row_key(number), (!deletes).then(|| pattern("row", group * ROWS_AT_ONCE + number, ROW_BYTES))))
        .collect();
    let done = engine::commit::<_, std::convert::Infallible, _>(engine, key("rows"), move |_, _| {
        let mut changes = if deletes { Changes::none().freeing_space() } else { Changes::none() };
        changes.rows.clone_from(&rows);
        Ok(Commit { changes, outcome: () })
    });
    done.await.map_err(common::failure)
}

fn figure(engine: &EmbeddedEngine, name: &str) -> u64 {
    engine.figures().into_iter().find(|(figure, _)| *figure == name).expect("a figure of this name").1
}

/// The compactor stands still until the disk is full and level 0 is larger than the reserve. Then there must still be room to
/// merge it, and what is deleted gives its space back.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_with_compaction_behind_can_be_emptied() {
    const DISK: u64 = 128 << 20;
    const RESERVE: u64 = DISK / 4;
    let folder = tempfile::tempdir().expect("a folder");
    let (refused, held) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(true)));
    let is_held = Arc::clone(&held);
    let probe = Probe::new(move |moment| {
        while moment == Moment::Compactor && is_held.load(Ordering::Acquire) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Ok(())
    });
    let disk = Arc::new(SmallDisk::new(folder.path(), DISK, &refused));
    let options = Options { disk, probe, log_bytes: 4 << 20, memtable_bytes: 4 << 20, ..options() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    let release = Release(held);
    let (looks, path) = (Arc::new(AtomicBool::new(true)), folder.path().to_path_buf());
    let (watches, most) = (Release(Arc::clone(&looks)), std::thread::spawn(move || most_used(&path, &looks)));
    let filled = fill_with_rows(&*engine, 0).await;
    assert!(figure(&engine, "tree_disk_bytes") > RESERVE, "{:?}", engine.figures());
    drop(release);
    wait_until(&engine, "level 0 is not merged", |engine| figure(engine, "tree_level0_runs") < 4).await;
    for group in 0..filled {
        assert_eq!(change_rows(&*engine, group, true).await, Ok(()), "group {group} of {filled}");
    }
    // Nearly as much fits as did before: the space of what was deleted has come back, but for the last deletes, which wait in
    // memory and above the rows that they delete.
    let mut again = filled;
    for round in 0.. {
        again = fill_with_rows(&*engine, again).await;
        if again - filled >= filled * 3 / 4 {
            break;
        }
        assert!(round < ROUNDS_MAX, "{} of {filled} fit: {:?}", again - filled, engine.figures());
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    drop(watches);
    let most = most.join().expect("no panic");
    assert!(most <= DISK, "{most} bytes were used");
    assert_eq!(refused.load(Ordering::Acquire), 0, "the disk was used up: {:?}", engine.figures());
    drop(engine);
    assert_clean(folder.path());
}

/// How much of the disk was used at most, while a test watches.
fn most_used(folder: &Path, looks: &AtomicBool) -> u64 {
    let mut most = 0;
    while looks.load(Ordering::Acquire) {
        most = most.max(used(folder));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    most
}

/// Lets the thread go that waits for it, also when the test fails: an engine that is dropped waits for its threads.
struct Release(Arc<AtomicBool>);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Writes rows until the disk is full. Returns the first group that was not written.
async fn fill_with_rows(engine: &dyn Engine, first: u64) -> u64 {
    for group in first.. {
        match change_rows(engine, group, false).await {
            Ok(()) => {}
            Err(EngineError::Full) => return group,
            Err(error) => panic!("group {group}: {error:?}"),
        }
    }
    first
}

async fn wait_until(engine: &EmbeddedEngine, what: &str, holds: impl Fn(&EmbeddedEngine) -> bool) {
    for round in 0.. {
        if holds(engine) {
            return;
        }
        assert!(round < ROUNDS_MAX, "{what}: {:?}", engine.figures());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// An ext4 image on a loop device.
struct LoopDisk {
    folder: tempfile::TempDir,
}

impl LoopDisk {
    /// `None` where we may not mount, or the tools are missing.
    fn new(bytes: u64) -> Option<LoopDisk> {
        let disk = LoopDisk { folder: tempfile::tempdir().ok()? };
        std::fs::create_dir(disk.mount_point()).ok()?;
        let image = disk.folder.path().join("image");
        std::fs::File::create(&image).ok()?.set_len(bytes).ok()?;
        let made = works(Command::new("mkfs.ext4").arg("-q").arg(&image));
        let mounted = made && works(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(disk.mount_point()));
        mounted.then_some(disk)
    }

    fn mount_point(&self) -> PathBuf {
        self.folder.path().join("disk")
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        works(Command::new("umount").arg(self.mount_point()));
    }
}

fn works(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
