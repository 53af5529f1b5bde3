//! What a crash cannot leave is refused, with the place named, and nothing is removed.

mod common;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{assert_clean, crash_copy, get, open, pattern, put};
use engine::{Changes, Commit, Engine, Key, Visit, space};
use engine_embedded::faults::{FaultyDisk, Point};
use engine_embedded::{EmbeddedEngine, OnFatal, OpenError, Options};

const OBJECTS: u64 = 12;

/// A folder as a crash leaves it, with small contents in the log and a large one in a data segment.
async fn crashed() -> tempfile::TempDir {
    let live = tempfile::tempdir().expect("a folder");
    let engine = open(live.path());
    for round in 0..OBJECTS {
        let name = format!("{round}");
        put(&*engine, &name, &pattern(&name, round, 3_000)).await.expect("put");
    }
    put(&*engine, "large", &pattern("large", 1, 100_000)).await.expect("put");
    let folder = tempfile::tempdir().expect("a folder");
    crash_copy(live.path(), folder.path());
    folder
}

async fn assert_whole(folder: &Path) {
    let engine = open(folder);
    for round in 0..OBJECTS {
        let name = format!("{round}");
        assert_eq!(get(&*engine, &name).await, Ok(Some(pattern(&name, round, 3_000))), "{name}");
    }
    assert_eq!(get(&*engine, "large").await, Ok(Some(pattern("large", 1, 100_000))));
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.join("segments")).expect("listed");
    files.map(|entry| entry.expect("an entry").path()).collect()
}

fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    segments(folder).into_iter().map(|path| (path.clone(), std::fs::read(path).expect("read"))).collect()
}

fn has_batches(path: &Path) -> bool {
    std::fs::read(path).expect("read").get(4096..).is_some_and(|rest| rest.starts_with(b"BAT1"))
}

/// Opening and checking refuse, say where, and leave every file as it is.
fn assert_refused(folder: &Path, place: &str) {
    let before = contents(folder);
    let error = EmbeddedEngine::open(folder, Options::default()).map(drop).expect_err("refused");
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains(place), "{error}, but not {place}");
    assert!(engine_embedded::check(folder, &mut |_| {}).is_err(), "the check must see it");
    assert!(contents(folder) == before, "nothing is removed and nothing is changed");
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).expect("read");
    change(&mut bytes);
    std::fs::write(path, bytes).expect("written");
}

#[tokio::test]
async fn a_damaged_header_is_refused_and_named() {
    let crashed = crashed().await;
    for name in segments(crashed.path()).iter().map(|path| path.file_name().expect("a name")) {
        for at in [0, 8, 20, 30, 41] {
            let copy = tempfile::tempdir().expect("a folder");
            crash_copy(crashed.path(), copy.path());
            let path = copy.path().join("segments").join(name);
            change(&path, |bytes| bytes[at] ^= 0x40);
            assert_refused(copy.path(), &format!("{} byte {at}", path.display()));
            change(&path, |bytes| bytes[at] ^= 0x40);
            assert_whole(copy.path()).await;
        }
    }
}

#[tokio::test]
async fn a_header_of_zeroes_before_batches_is_refused() {
    let crashed = crashed().await;
    let log = segments(crashed.path()).into_iter().find(|path| has_batches(path)).expect("a log");
    change(&log, |bytes| bytes[..4096].fill(0));
    assert_refused(crashed.path(), &format!("{} byte 0", log.display()));
}

#[tokio::test]
async fn a_log_that_was_in_use_must_be_there() {
    let crashed = crashed().await;
    let log = segments(crashed.path()).into_iter().find(|path| has_batches(path)).expect("a log");
    for gone in [None, Some(vec![]), Some(vec![0; 8192])] {
        let copy = tempfile::tempdir().expect("a folder");
        crash_copy(crashed.path(), copy.path());
        let path = copy.path().join("segments").join(log.file_name().expect("a name"));
        match gone {
            None => std::fs::remove_file(&path).expect("removed"),
            Some(bytes) => std::fs::write(&path, bytes).expect("written"),
        }
        assert_refused(copy.path(), &format!("{} byte 0", path.display()));
    }
}

#[tokio::test]
async fn a_segment_with_contents_must_be_there() {
    let crashed = crashed().await;
    assert_whole(crashed.path()).await;
    let with_contents = |path: &PathBuf| std::fs::metadata(path).expect("there").len() > 4096;
    for path in segments(crashed.path()).into_iter().filter(with_contents) {
        let copy = tempfile::tempdir().expect("a folder");
        crash_copy(crashed.path(), copy.path());
        let path = copy.path().join("segments").join(path.file_name().expect("a name"));
        std::fs::remove_file(&path).expect("removed");
        assert_refused(copy.path(), &format!("{} byte 0", path.display()));
    }
}

#[tokio::test]
async fn a_file_that_was_never_used_is_passed_over() {
    let crashed = crashed().await;
    for (id, bytes) in [(0xff0, vec![]), (0xff1, vec![7; 20]), (0xff2, vec![0; 2 << 20])] {
        std::fs::write(crashed.path().join(format!("segments/{id:016x}.seg")), bytes).expect("written");
    }
    assert_whole(crashed.path()).await;
    assert_clean(crashed.path());
    for id in [0xff0, 0xff1, 0xff2] {
        assert!(!crashed.path().join(format!("segments/{id:016x}.seg")).exists());
    }
}

#[tokio::test]
async fn an_error_of_the_disk_is_not_damage_and_removes_nothing() {
    let (eio, eacces, emfile) = (5, 13, 24);
    let crashed = crashed().await;
    for (point, errno) in [(Point::Open, eacces), (Point::Open, emfile), (Point::Read, eio), (Point::Tree, eio)] {
        let before = contents(crashed.path());
        let disk = FaultyDisk::new(move |at, path| {
            let here = at == point && (at != Point::Read || path.extension().is_some());
            if here { Err(io::Error::from_raw_os_error(errno)) } else { Ok(()) }
        });
        let options = Options { disk: Arc::new(disk), ..Options::default() };
        let error = EmbeddedEngine::open(crashed.path(), options).map(drop).expect_err("refused");
        assert!(matches!(error, OpenError::Io { .. }), "{point:?}: {error:?}");
        assert!(contents(crashed.path()) == before, "{point:?}");
    }
    assert_whole(crashed.path()).await;
}

#[tokio::test]
async fn a_tree_that_is_older_than_the_state_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path());
    put(&*engine, "first", &pattern("first", 1, 100)).await.expect("put");
    drop(engine);
    let old = tempfile::tempdir().expect("a folder");
    crash_copy(folder.path(), old.path());
    let engine = open(folder.path());
    put(&*engine, "second", &pattern("second", 1, 100)).await.expect("put");
    drop(engine);
    std::fs::remove_dir_all(folder.path().join("rows")).expect("removed");
    std::fs::rename(old.path().join("rows"), folder.path().join("rows")).expect("renamed");
    assert_refused(folder.path(), "rows");
}

#[tokio::test]
async fn a_state_that_is_older_than_the_tree_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(open(folder.path()));
    let old = std::fs::read(folder.path().join("STATE")).expect("read");
    let engine = open(folder.path());
    engine.advance_clock(1).await.expect("a row");
    drop(engine);
    // The log of that run is given back, because nothing lives in it.
    drop(open(folder.path()));
    std::fs::write(folder.path().join("STATE"), old).expect("written");
    assert_refused(folder.path(), "rows");
}

/// Segments in which nothing lives are removed at the start. So a row that cannot be read does not mean that nothing lives there.
#[tokio::test]
async fn a_row_of_live_bytes_that_cannot_be_read_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path());
    put(&*engine, "large", &pattern("large", 1, 100_000)).await.expect("put");
    engine::commit::<_, std::convert::Infallible, _>(&*engine, Key::new(space::SEGMENT), |rows, _| {
        let (all, mut changes) = (Key::new(space::SEGMENT), Changes::none());
        rows.scan(&all, &all.after_all(), 1, &mut |key, _| {
            changes.put(Key::from_bytes(key), "short");
            Visit::Stop
        })?;
        assert!(!changes.is_empty(), "the segment of the content has a row");
        Ok(Commit { changes, outcome: () })
    })
    .await
    .expect("committed");
    drop(engine);
    assert_refused(folder.path(), "rows");
}

/// A byte turned, set or cut off, or a sector lost.
fn spoil(bytes: &mut Vec<u8>, at: usize, how: u64) {
    match how % 4 {
        0 => bytes[at] ^= 1 << (how / 4 % 8),
        1 => bytes[at] = !bytes[at],
        2 => bytes.truncate(at),
        _ => {
            let end = bytes.len().min(at + 512);
            bytes[at..end].fill(0);
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("listed").map(|entry| entry.expect("an entry").path());
    let mut all: Vec<PathBuf> =
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect();
    all.sort();
    all
}

/// Whatever is damaged, in the tree's files too: the folder is refused, or reads fail. Nothing is read wrong or missing
/// without a word, and no thread panics over it.
#[tokio::test(flavor = "multi_thread")]
async fn damage_anywhere_is_refused_or_told_and_never_shown() {
    const ROUNDS: u64 = 80;
    let object = |number: u64| pattern("x", number, if number == 3 { 100_000 } else { 500 });
    let folder = tempfile::tempdir().expect("a folder");
    let panicked = Arc::new(AtomicBool::new(false));
    let note = Arc::clone(&panicked);
    let on_fatal = OnFatal(Arc::new(move |_| note.store(true, Ordering::Release)));
    let options = Options { memtable_bytes: 8 << 10, log_bytes: 64 << 10, on_fatal, ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options.clone()).expect("opened");
    for number in (0..100).chain(0..100) {
        put(&*engine, &format!("{number}"), &object(number)).await.expect("put");
    }
    engine.close().await.expect("closed");
    drop(engine);
    let mut random = 4_711_u64;
    for round in 0..ROUNDS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (which, at, how) = (random >> 33, random >> 17, random >> 40);
        let copy = tempfile::tempdir().expect("a folder");
        crash_copy(folder.path(), copy.path());
        let files = files(copy.path());
        let path = &files[usize::try_from(which).expect("fits") % files.len()];
        change(path, |bytes| {
            let at = usize::try_from(at).expect("fits") % bytes.len().max(1);
            if !bytes.is_empty() {
                spoil(bytes, at, how);
            }
        });
        let Ok(engine) = EmbeddedEngine::open(copy.path(), options.clone()) else { continue };
        for number in 0..100 {
            let found = get(&*engine, &format!("{number}")).await;
            let right = found.as_ref().map_or(true, |found| *found == Some(object(number)));
            assert!(right, "round {round}, {}: object {number} is wrong", path.display());
        }
        for number in 0..30 {
            let _ = put(&*engine, &format!("{number}"), &object(number)).await;
        }
        drop(engine);
        assert!(!panicked.load(Ordering::Acquire), "round {round}, {}: a thread panicked", path.display());
    }
}
