//! Writes go on while the engine tidies up, and an engine that is told to close does.

mod common;

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{assert_clean, delete, failure, get, key, pattern, put, sweep};
use engine::{Changes, Commit, Engine, EngineError};
use engine_embedded::faults::{FaultyDisk, Point};
use engine_embedded::{EmbeddedEngine, Options};

/// Against a test that would hang for ever; nothing here takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Memtables that are full after a few writes, and segments that are worth emptying.
fn cramped() -> Options {
    Options {
        memtable_bytes: 8 << 10,
        log_bytes: 64 << 10,
        segment_bytes: 1 << 20,
        row_cache_bytes: 4 << 10,
        ..Options::default()
    }
}

fn figure(engine: &EmbeddedEngine, name: &str) -> u64 {
    engine.figures().into_iter().find(|(figure, _)| *figure == name).expect("a figure of this name").1
}

/// A row that nearly fills a memtable.
async fn put_row(engine: &EmbeddedEngine, name: &str, round: u64) -> Result<(), EngineError> {
    let (key, row) = (key(name), pattern(name, round, 6_000));
    let done = engine::commit::<_, Infallible, _>(engine, key.clone(), move |_, _| {
        let mut changes = Changes::none();
        changes.put(key.clone(), row.clone());
        Ok(Commit { changes, outcome: () })
    });
    done.await.map_err(failure)
}

/// Contents in many data segments, most of them deleted: much work for the collector.
async fn open_with_work_for_the_collector(folder: &Path) -> Arc<EmbeddedEngine> {
    let engine = EmbeddedEngine::open(folder, Options { collects: false, ..cramped() }).expect("opened");
    for number in 0..400 {
        put(&*engine, &format!("large-{number}"), &pattern("large", number, 70_000)).await.expect("put");
    }
    for number in (0..400).filter(|number| number % 8 != 0) {
        delete(&*engine, &format!("large-{number}")).await.expect("deleted");
    }
    sweep(&*engine).await;
    engine.close().await.expect("closed");
    drop(engine);
    // The collector syncs what it moves, and this disk takes its time: meanwhile there is much to compact.
    let disk = FaultyDisk::new(|point, _| {
        if point == Point::DataSync {
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    });
    EmbeddedEngine::open(folder, Options { disk: Arc::new(disk), ..cramped() }).expect("opened again")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_go_on_while_the_collector_works_and_compaction_is_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open_with_work_for_the_collector(folder.path()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers = (0..8).map(|writer| {
        let (engine, stop) = (Arc::clone(&engine), Arc::clone(&stop));
        tokio::spawn(async move {
            for round in 0_u64.. {
                if stop.load(Ordering::Acquire) {
                    return round;
                }
                let name = format!("{writer}-{}", round % 50);
                put_row(&engine, &name, round).await.expect("put");
            }
            0
        })
    });
    let writers: Vec<_> = writers.collect();
    let began = Instant::now();
    let mut seen = (0, Instant::now());
    while figure(&engine, "segments_collected") < 20 {
        let commits = figure(&engine, "commits");
        if commits != seen.0 {
            seen = (commits, Instant::now());
        }
        assert!(seen.1.elapsed() < PATIENCE / 4, "no write was answered: {:?}", engine.figures());
        assert!(began.elapsed() < PATIENCE, "nothing was collected: {:?}", engine.figures());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stop.store(true, Ordering::Release);
    for writer in writers {
        let rounds = tokio::time::timeout(PATIENCE, writer).await.expect("the writer was answered").expect("no panic");
        assert!(rounds > 0, "every writer has written");
    }
    close_in_time(Arc::clone(&engine)).await;
    drop(engine);
    assert_clean(folder.path());
    let engine = common::open(folder.path());
    for number in 0..400 {
        let expected = (number % 8 == 0).then(|| pattern("large", number, 70_000));
        assert!(get(&*engine, &format!("large-{number}")).await.expect("read") == expected, "large-{number}");
    }
}

async fn close_in_time(engine: Arc<EmbeddedEngine>) {
    // `close` does its work when it is called, which may take a while.
    let closing = tokio::task::spawn_blocking(move || drop(engine.close()));
    tokio::time::timeout(PATIENCE, closing).await.expect("close ends").expect("no panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn closing_ends_in_the_middle_of_everything() {
    for pause in [0, 20, 100, 400] {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = open_with_work_for_the_collector(folder.path()).await;
        let writers = (0..8).map(|writer| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                for round in 0_u64.. {
                    let name = format!("{writer}-{}", round % 50);
                    if put_row(&engine, &name, round).await.is_err() {
                        return;
                    }
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        let collecting = Arc::clone(&engine);
        let collecting = tokio::task::spawn_blocking(move || collecting.collect_now());
        tokio::time::sleep(Duration::from_millis(pause)).await;
        close_in_time(Arc::clone(&engine)).await;
        for writer in writers {
            tokio::time::timeout(PATIENCE, writer).await.expect("every writer is answered").expect("no panic");
        }
        let collected = tokio::time::timeout(PATIENCE, collecting).await.expect("the collector ends");
        let _cut_short = collected.expect("no panic");
        drop(engine);
        assert_clean(folder.path());
    }
}
