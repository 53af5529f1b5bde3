//! Deleted data gives its space back, and nothing else goes with it.

mod common;

use std::sync::{Arc, Condvar, Mutex};

use common::{assert_clean, delete, folder_bytes, get, open, pattern, put, sweep};
use engine::{Engine, EngineError};
use engine_embedded::faults::{FaultyDisk, Point};
use engine_embedded::{EmbeddedEngine, Options};

async fn collect(engine: &std::sync::Arc<EmbeddedEngine>) {
    let engine = std::sync::Arc::clone(engine);
    let collected = tokio::task::spawn_blocking(move || engine.collect_now()).await.expect("a thread");
    collected.expect("collected");
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_objects_give_their_space_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let options =
        Options { log_bytes: 1 << 20, segment_bytes: 4 << 20, memtable_bytes: 256 << 10, ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options.clone()).expect("opened");
    let length = |round: u64| if round.is_multiple_of(10) { 400_000 } else { 20_000 };
    for round in 0..300 {
        let name = format!("{round}");
        put(&*engine, &name, &pattern(&name, round, length(round))).await.expect("put");
    }
    let full = folder_bytes(folder.path());
    for round in (0..300).filter(|round| round % 7 != 0) {
        delete(&*engine, &format!("{round}")).await.expect("deleted");
    }
    sweep(&*engine).await;
    engine.close().await.expect("closed");
    drop(engine);
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    for _ in 0..3 {
        collect(&engine).await;
    }
    let live: u64 = (0..300).filter(|round| round % 7 == 0).map(|round| length(round) as u64).sum();
    let left = folder_bytes(&folder.path().join("segments"));
    assert!(left < live * 5 / 2 + (6 << 20), "{live} bytes live, {left} on disk, {full} before");
    for round in 0..300 {
        let name = format!("{round}");
        let expected = (round % 7 == 0).then(|| pattern(&name, round, length(round)));
        assert!(get(&*engine, &name).await.expect("read") == expected, "{name}");
    }
    drop(engine);
    assert_clean(folder.path());
    let engine = open(folder.path());
    assert!(get(&*engine, "0").await.expect("read").is_some(), "moved contents come back after a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_keeps_its_bytes_while_they_are_moved_and_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { segment_bytes: 4 << 20, ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    for round in 0..12 {
        put(&*engine, &format!("{round}"), &pattern("x", round, 900_000)).await.expect("put");
    }
    let content = engine::read::<_, std::convert::Infallible, _>(&*engine, |rows, _| {
        let row = rows.get(&common::key("3"))?.expect("there");
        Ok(rows.content(engine::ContentId(u64::from_be_bytes(row[..8].try_into().expect("eight"))))?)
    })
    .await
    .expect("opened");
    for round in 0..11 {
        delete(&*engine, &format!("{round}")).await.expect("deleted");
    }
    sweep(&*engine).await;
    for _ in 0..3 {
        collect(&engine).await;
    }
    let mut read = Vec::new();
    while read.len() < 900_000 {
        read.extend_from_slice(&content.read(read.len() as u64, 100_000).await.expect("bytes"));
    }
    assert!(read == pattern("x", 3, 900_000));
    assert!(get(&*engine, "11").await.expect("read") == Some(pattern("x", 11, 900_000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_never_end_leave_nothing_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path());
    for _ in 0..5 {
        let mut writer = engine.writer(Some(4_000_000));
        writer.write(pattern("x", 1, 2_000_000)).await.expect("half of it");
        drop(writer);
    }
    put(&*engine, "kept", &pattern("kept", 1, 100)).await.expect("put");
    engine.close().await.expect("closed");
    drop(engine);
    let engine = open(folder.path());
    collect(&engine).await;
    assert!(get(&*engine, "kept").await.expect("read").is_some());
    let left = folder_bytes(&folder.path().join("segments"));
    assert!(left < 8 << 20, "{left} bytes are left");
}

/// A write of an upload may be under way when its request is gone and the engine closes. It ends before the folder is let go.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_is_under_way_ends_before_the_folder_is_closed() {
    let folder = tempfile::tempdir().expect("a folder");
    // 0: no write, 1: a write has begun, 2: it may go on.
    let stage = Arc::new((Mutex::new(0), Condvar::new()));
    let disk = {
        let stage = Arc::clone(&stage);
        FaultyDisk::new(move |point, _| {
            if point == Point::DataWrite {
                let mut present = stage.0.lock().expect("no panic");
                *present = 1.max(*present);
                stage.1.notify_all();
                drop(stage.1.wait_while(present, |present| *present < 2).expect("no panic"));
            }
            Ok(())
        })
    };
    let engine = EmbeddedEngine::open(folder.path(), Options { disk: Arc::new(disk), ..Options::default() });
    let engine = engine.expect("opened");
    let mut writer = engine.writer(Some(4_000_000));
    writer.write(pattern("x", 1, 2_000_000)).await.expect("half of it");
    drop(stage.1.wait_while(stage.0.lock().expect("no panic"), |present| *present < 1).expect("no panic"));
    drop(writer);
    let letting_go = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        *stage.0.lock().expect("no panic") = 2;
        stage.1.notify_all();
    });
    drop(engine);
    let again = EmbeddedEngine::open(folder.path(), Options::default());
    letting_go.join().expect("no panic");
    again.expect("no process has the folder any more");
}

/// A read may be waiting for the disk when its request is gone and the engine closes. It ends before the folder is let go.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_is_under_way_ends_before_the_folder_is_closed() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path());
    put(&*engine, "one", &pattern("one", 1, 100)).await.expect("put");
    let (reading, begun) = std::sync::mpsc::channel();
    let (let_go, may_go) = std::sync::mpsc::channel::<()>();
    let may_go = Mutex::new(may_go);
    let reader = {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move {
            let read = engine::read::<_, std::convert::Infallible, _>(&*engine, move |rows, _| {
                rows.scan(&common::key(""), &common::key("z"), 10_000, &mut |_, _| {
                    let _ = reading.send(());
                    let _ = may_go.lock().expect("no panic").recv();
                    engine::Visit::Stop
                })?;
                Ok(())
            });
            read.await
        })
    };
    begun.recv().expect("a read has begun");
    reader.abort();
    assert!(reader.await.expect_err("given up").is_cancelled());
    let letting_go = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        let _ = let_go.send(());
    });
    drop(engine);
    let again = EmbeddedEngine::open(folder.path(), Options::default());
    letting_go.join().expect("no panic");
    again.expect("no process has the folder any more");
}

/// An upload whose client is slow does not keep the folder: the engine closes, and the upload hears of it.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_does_not_outlive_its_engine() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path());
    let (mut large, mut small) = (engine.writer(Some(4_000_000)), engine.writer(Some(10)));
    large.write(pattern("x", 1, 1_000_000)).await.expect("a part");
    small.write(pattern("x", 1, 10)).await.expect("all of it");
    drop(engine);
    let engine = open(folder.path());
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(large.write(pattern("x", 1, 1_000_000)).await.err());
    }
    assert!(answers.contains(&Some(EngineError::Closed)), "{answers:?}");
    assert!(matches!(small.finish().await, Err(EngineError::Closed)));
    drop(engine);
}

fn figure(engine: &EmbeddedEngine, name: &str) -> u64 {
    engine.figures().into_iter().find(|(figure, _)| *figure == name).expect("a figure of this name").1
}

fn small_segments() -> Options {
    Options { log_bytes: 1 << 20, segment_bytes: 4 << 20, memtable_bytes: 256 << 10, ..Options::default() }
}

/// Rows and the padding to whole pages take half of such a log, but they are no reason to copy the other half.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_contents_all_live_is_not_copied() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = EmbeddedEngine::open(folder.path(), small_segments()).expect("opened");
    for number in 0..600 {
        put(&*engine, &format!("{number}"), &pattern("x", number, 4_096)).await.expect("put");
    }
    engine.close().await.expect("closed");
    drop(engine);
    let engine = EmbeddedEngine::open(folder.path(), small_segments()).expect("opened");
    collect(&engine).await;
    assert_eq!(figure(&engine, "bytes_moved"), 0);
    for number in (0..600).filter(|number| number % 4 != 0) {
        delete(&*engine, &format!("{number}")).await.expect("deleted");
    }
    sweep(&*engine).await;
    collect(&engine).await;
    assert!(figure(&engine, "bytes_moved") > 0, "most contents are gone: now it pays");
    for number in (0..600).step_by(4) {
        assert!(get(&*engine, &format!("{number}")).await.expect("read") == Some(pattern("x", number, 4_096)));
    }
}

/// A decision changes a bounded number of places, so that the others do not wait: here there are thousands to change.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_tiny_contents_are_moved_in_small_decisions() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = EmbeddedEngine::open(folder.path(), small_segments()).expect("opened");
    for group in 0..40_u64 {
        let puts = (0..100).map(|number| {
            let engine = std::sync::Arc::clone(&engine);
            tokio::spawn(async move {
                let name = format!("{group}-{number}");
                put(&*engine, &name, &pattern(&name, 1, 10)).await.expect("put");
            })
        });
        for put in puts.collect::<Vec<_>>() {
            put.await.expect("no panic");
        }
    }
    engine.close().await.expect("closed");
    drop(engine);
    let engine = EmbeddedEngine::open(folder.path(), small_segments()).expect("opened");
    let commits = figure(&engine, "commits");
    collect(&engine).await;
    let moved = figure(&engine, "bytes_moved") / 10;
    assert!(moved > 2_000, "{moved} contents were moved");
    let decisions = figure(&engine, "commits") - commits;
    assert!(decisions >= moved / 128, "{moved} contents by {decisions} decisions");
    for group in 0..40 {
        let name = format!("{group}-7");
        assert!(get(&*engine, &name).await.expect("read") == Some(pattern(&name, 1, 10)));
    }
    drop(engine);
    assert_clean(folder.path());
}

/// One damaged content stays where it is; the others are moved, other segments collected, and the damage is counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_content_does_not_stop_the_collection() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { collects: false, ..small_segments() };
    let engine = EmbeddedEngine::open(folder.path(), options.clone()).expect("opened");
    for number in 0..40 {
        put(&*engine, &format!("{number}"), &pattern("x", number, 900_000)).await.expect("put");
    }
    for number in (0..40).filter(|number| number % 4 != 0) {
        delete(&*engine, &format!("{number}")).await.expect("deleted");
    }
    sweep(&*engine).await;
    engine.close().await.expect("closed");
    drop(engine);
    damage(folder.path(), &pattern("x", 0, 900_000), 1_000);
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    let before = figure(&engine, "segments");
    collect(&engine).await;
    let after = figure(&engine, "segments");
    assert!(after + 4 < before, "{before} segments before, {after} after");
    assert_eq!(figure(&engine, "segments_failing"), 1);
    assert!(figure(&engine, "collection_failures") > 0);
    assert!(get(&*engine, "0").await.is_err(), "the damaged one is still named, not lost");
    for number in (4..40).step_by(4) {
        assert!(get(&*engine, &format!("{number}")).await.expect("read") == Some(pattern("x", number, 900_000)));
    }
}

/// The header before a content is damaged, so that the content is not found by walking through the segment. It is where its row
/// says, and can be read; but its segment cannot be emptied, and that is said, not tried again and again.
#[tokio::test(flavor = "multi_thread")]
async fn a_content_that_is_not_found_in_its_segment_is_named_and_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { collects: false, ..small_segments() };
    let engine = EmbeddedEngine::open(folder.path(), options.clone()).expect("opened");
    for number in 0..12 {
        put(&*engine, &format!("{number}"), &pattern("x", number, 900_000)).await.expect("put");
    }
    for number in (0..12).filter(|number| number % 4 != 0) {
        delete(&*engine, &format!("{number}")).await.expect("deleted");
    }
    sweep(&*engine).await;
    engine.close().await.expect("closed");
    drop(engine);
    damage(folder.path(), &pattern("x", 0, 900_000), -60);
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    collect(&engine).await;
    assert_eq!((figure(&engine, "segments_failing"), figure(&engine, "collection_failures")), (1, 1));
    for number in (0..12).step_by(4) {
        assert!(get(&*engine, &format!("{number}")).await.expect("read") == Some(pattern("x", number, 900_000)));
    }
}

/// Flips a byte of a content, or before it, in whatever segment it stands.
fn damage(folder: &std::path::Path, content: &[u8], offset: isize) {
    let segments = std::fs::read_dir(folder.join("segments")).expect("listed");
    for path in segments.map(|entry| entry.expect("an entry").path()) {
        let mut bytes = std::fs::read(&path).expect("read");
        if let Some(at) = bytes.windows(64).position(|window| window == &content[..64]) {
            bytes[at.checked_add_signed(offset).expect("in the file")] ^= 1;
            std::fs::write(&path, bytes).expect("written");
            return;
        }
    }
    panic!("the content is in no segment");
}
