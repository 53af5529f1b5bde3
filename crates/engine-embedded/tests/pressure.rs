//! Writes go on while the engine tidies up, and an engine that is told to close does.

mod common;

use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use common::{assert_clean, delete, failure, get, key, pattern, put, sweep};
use engine::{Changes, Commit, ContentId, Engine, EngineError, Key, Visit};
use engine_embedded::faults::{FaultyDisk, Point};
use engine_embedded::probe::{Moment, Probe};
use engine_embedded::{EmbeddedEngine, Options};

/// Against a test that would hang for ever; nothing here takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(300);

/// Memtables that are full after a few writes, and segments that are worth emptying.
fn cramped() -> Options {
    Options {
        memtable_bytes: 8 << 10,
        log_bytes: 64 << 10,
        segment_bytes: 1 << 20,
        row_cache_bytes: 4 << 10,
        content_cache_bytes: 4 << 10,
        ..Options::default()
    }
}

fn figure(engine: &EmbeddedEngine, name: &str) -> u64 {
    engine.figures().into_iter().find(|(figure, _)| *figure == name).expect("a figure of this name").1
}

/// A row that nearly fills a memtable.
async fn put_row(engine: &EmbeddedEngine, name: &str, round: u64) -> Result<(), EngineError> {
    put_row_of(engine, name, round, 6_000).await
}

async fn put_row_of(engine: &EmbeddedEngine, name: &str, round: u64, bytes: usize) -> Result<(), EngineError> {
    let (key, row) = (key(name), pattern(name, round, bytes));
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

/// A gate in a thread of the engine: while it is shut the thread does not go on.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Shuts the gate until the guard is dropped. It must go before the engine, which waits for its threads; so a test that
    /// fails opens the gate, too.
    #[must_use]
    fn shut(&self) -> ShutGate {
        self.set(true);
        ShutGate(self.clone())
    }

    fn set(&self, shut: bool) {
        *self.0.0.lock().expect("no panic") = shut;
        self.0.1.notify_all();
    }

    fn probe(&self, gated: Moment) -> Probe {
        let gate = self.clone();
        Probe::new(move |moment| {
            let shut = gate.0.0.lock().expect("no panic");
            if moment == gated {
                drop(gate.0.1.wait_while(shut, |shut| *shut).expect("no panic"));
            }
            Ok(())
        })
    }
}

struct ShutGate(Gate);

impl Drop for ShutGate {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Waits until so many of the tasks have their answer.
async fn wait_for_answers<T>(tasks: &[tokio::task::JoinHandle<T>], enough: usize) {
    let began = Instant::now();
    while tasks.iter().filter(|task| task.is_finished()).count() < enough {
        assert!(began.elapsed() < PATIENCE, "fewer than {enough} of {} were answered", tasks.len());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_waits_is_bounded_by_its_bytes() {
    const EACH: usize = 60_000;
    let folder = tempfile::tempdir().expect("a folder");
    let gate = Gate::default();
    let options = Options { waiting_bytes_max: 1 << 20, probe: gate.probe(Moment::Decider), ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    for round in 0..2_u64 {
        let shut = gate.shut();
        let puts = (0..40).map(|number| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move { put(&*engine, &format!("{number}"), &pattern("x", round, EACH)).await })
        });
        let puts: Vec<_> = puts.collect();
        wait_for_answers(&puts, 40 - (1 << 20) / EACH).await;
        drop(shut);
        let mut answers = Vec::new();
        for put in puts {
            answers.push(tokio::time::timeout(PATIENCE, put).await.expect("an answer").expect("no panic"));
        }
        let done = answers.iter().filter(|answer| answer.is_ok()).count();
        assert!(done <= (1 << 20) / EACH && done > 10, "round {round}: {done} were taken");
        assert!(answers.iter().flat_map(|answer| answer.as_ref().err()).all(|error| *error == EngineError::Busy));
    }
    put(&*engine, "later", &pattern("x", 1, EACH)).await.expect("there is room again");
}

/// However much waits, a batch ends soon after its limit of 4 MiB: a sync, the memory it takes and what a start must read at
/// once stay bounded.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crowd_of_large_decisions_becomes_many_batches() {
    const EACH: usize = 1_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    let gate = Gate::default();
    let options = Options { probe: gate.probe(Moment::Decider), ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    let shut = gate.shut();
    let puts = (0..48).map(|number| {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move {
            let (key, row) = (key(&format!("{number}")), pattern("x", number, EACH));
            let done = engine::commit::<_, Infallible, _>(&*engine, key.clone(), move |_, _| {
                let mut changes = Changes::none();
                changes.put(key.clone(), row.clone());
                Ok(Commit { changes, outcome: () })
            });
            done.await.map_err(failure)
        })
    });
    let puts: Vec<_> = puts.collect();
    // The gate holds the decider after its first look; by then the others wait.
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(shut);
    for put in puts {
        let answer = tokio::time::timeout(PATIENCE, put).await.expect("an answer").expect("no panic");
        assert_eq!(answer, Ok(()));
    }
    let batches = figure(&engine, "batches");
    assert!(batches >= 48 * EACH as u64 / (6 << 20), "{batches} batches for 48 MB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn decisions_that_are_run_outside_count_as_waiting() {
    let folder = tempfile::tempdir().expect("a folder");
    let gate = Gate::default();
    let options = Options { waiting_max: 5, probe: gate.probe(Moment::Outside), ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    let fill = engine::commit::<_, Infallible, _>(&*engine, key("many"), |_, _| {
        let mut changes = Changes::none();
        for number in 0..1_200 {
            changes.put(key("many").number(number), "row");
        }
        Ok(Commit { changes, outcome: () })
    });
    fill.await.expect("many rows");
    let shut = gate.shut();
    let heavy = (0..20).map(|_| {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move {
            let looked = engine::commit::<_, Infallible, _>(&*engine, key("many"), |rows, _| {
                rows.scan(&key("many"), &key("many").after_all(), 2_000, &mut |_, _| Visit::Next)?;
                Ok(Commit::unchanged(()))
            });
            looked.await.map_err(failure)
        })
    });
    let heavy: Vec<_> = heavy.collect();
    wait_for_answers(&heavy, 15).await;
    drop(shut);
    let mut busy = 0;
    for one in heavy {
        let answer = tokio::time::timeout(PATIENCE, one).await.expect("an answer").expect("no panic");
        assert!(matches!(answer, Ok(()) | Err(EngineError::Busy)), "{answer:?}");
        busy += usize::from(answer.is_err());
    }
    assert!((15..20).contains(&busy), "{busy} of 20 were too many");
}

/// The next log is late and the disk is empty: writers are slowed down, and then told to come again, not that the disk is full.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_log_that_is_late_is_no_full_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let gate = Gate::default();
    // No other task commits anything, and the first log is the only one.
    let options =
        Options { log_bytes: 4 << 20, collects: false, probe: gate.probe(Moment::Flusher), ..Options::default() };
    gate.set(true);
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    let shut = gate.shut();
    let mut written = 0;
    let refused = loop {
        assert!(written < 5_000, "the log grows for ever");
        match put_row_of(&engine, &format!("{written}"), written, 60_000).await {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, EngineError::Busy, "after {written} rows");
    assert_eq!(figure(&engine, "disk_full"), 0);
    assert!(figure(&engine, "paused_microseconds") > 0, "writers were slowed down before");
    delete(&*engine, "absent").await.expect("deletes are taken");
    drop(shut);
    let began = Instant::now();
    while put_row(&engine, "later", 1).await == Err(EngineError::Busy) {
        assert!(began.elapsed() < PATIENCE, "no log was made: {:?}", engine.figures());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Listings that wait for the disk (here: for a message) hold no worker of the runtime: others' tasks go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_listings_do_not_stall_other_tasks() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = common::open(folder.path());
    for number in 0..3 {
        put_row(&engine, &format!("{number}"), 1).await.expect("put");
    }
    let (tell, told) = std::sync::mpsc::channel();
    let told = Arc::new(Mutex::new(told));
    let listings = (0..4).map(|_| {
        let (engine, told) = (Arc::clone(&engine), Arc::clone(&told));
        tokio::spawn(async move {
            let all = Key::new(0x70);
            let listed = engine::read::<_, Infallible, _>(&*engine, move |rows, _| {
                let mut heard = false;
                rows.scan(&all, &all.after_all(), 5_000, &mut |_, _| {
                    heard = told.lock().expect("no panic").recv_timeout(PATIENCE / 4).is_ok();
                    Visit::Stop
                })?;
                Ok(heard)
            });
            listed.await.expect("listed")
        })
    });
    let listings: Vec<_> = listings.collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let other = tokio::spawn(async move { (0..4).for_each(|_| tell.send(()).expect("the test listens")) });
    other.await.expect("the other task goes on");
    for listing in listings {
        assert!(listing.await.expect("no panic"), "no other task could run while the listings waited");
    }
}

/// An engine that has just been opened: nothing of these objects is in memory.
async fn open_cold(folder: &Path) -> Arc<EmbeddedEngine> {
    let engine = common::open(folder);
    for number in 0..8 {
        put(&*engine, &format!("{number}"), &pattern("cold", number, 70_000)).await.expect("put");
    }
    engine.close().await.expect("closed");
    drop(engine);
    common::open(folder)
}

fn content_of(row: &[u8]) -> ContentId {
    ContentId(u64::from_be_bytes(row[..8].try_into().expect("eight bytes")))
}

/// Gets of rows, and of where contents are, that wait for the disk (here: for a message) hold no worker of the runtime: others'
/// tasks go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_gets_do_not_stall_other_tasks() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open_cold(folder.path()).await;
    for opens in [false, true] {
        let (tell, told) = std::sync::mpsc::channel();
        let told = Arc::new(Mutex::new(told));
        let gets = (0..4).map(|number| {
            let (engine, told, key) = (Arc::clone(&engine), Arc::clone(&told), key(&format!("{number}")));
            tokio::spawn(async move {
                let got = engine::read::<_, Infallible, _>(&*engine, move |rows, _| {
                    let row = rows.get(&key)?.expect("it was put");
                    if opens {
                        // The row is known by now, the place of its content is not.
                        rows.content(content_of(&row))?;
                    }
                    Ok(told.lock().expect("no panic").recv_timeout(PATIENCE / 4).is_ok())
                });
                got.await.expect("got")
            })
        });
        let gets: Vec<_> = gets.collect();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let other = tokio::spawn(async move { (0..4).for_each(|_| tell.send(()).expect("the test listens")) });
        other.await.expect("the other task goes on");
        for get in gets {
            assert!(get.await.expect("no panic"), "no other task could run while the gets waited");
        }
    }
}

/// Only what would touch the disk leaves the thread that asks.
#[tokio::test]
async fn what_is_in_memory_is_read_where_it_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open_cold(folder.path()).await;
    let here = std::thread::current().id();
    let is_read_here = async |name: &str| {
        let key = key(name);
        let read = engine::read::<_, Infallible, _>(&*engine, move |rows, _| {
            if let Some(row) = rows.get(&key)? {
                rows.content(content_of(&row))?;
            }
            Ok(std::thread::current().id())
        });
        read.await.expect("read") == here
    };
    put(&*engine, "new", &pattern("new", 1, 100)).await.expect("put");
    assert!(is_read_here("new").await, "it has just been written");
    assert!(!is_read_here("0").await, "it is on the disk");
    assert!(is_read_here("0").await, "it is known by now");
    assert!(is_read_here("absent").await, "the filters of what is on the disk say that it is not there");
}

/// Before anything has been written out there is nothing to wait for, not even for a row that is not there.
#[tokio::test]
async fn an_engine_that_has_written_nothing_out_reads_everything_where_it_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = common::open(folder.path());
    put(&*engine, "new", &pattern("new", 1, 100)).await.expect("put");
    let here = std::thread::current().id();
    for name in ["new", "absent"] {
        let key = key(name);
        let read = engine::read::<_, Infallible, _>(&*engine, move |rows, _| {
            rows.get(&key)?;
            Ok(std::thread::current().id())
        });
        assert_eq!(read.await.expect("read"), here, "{name}");
    }
}

/// How many rows a scan sees that expects one and goes on, and whether all of it was run by the thread that asked.
async fn scan_on_and_on(engine: &EmbeddedEngine) -> (usize, bool) {
    let (all, here) = (Key::new(0x70), std::thread::current().id());
    let scanned = engine::read::<_, Infallible, _>(engine, move |rows, _| {
        let mut seen = 0;
        rows.scan(&all, &all.after_all(), 1, &mut |_, _| {
            seen += 1;
            Visit::Next
        })?;
        Ok((seen, std::thread::current().id() == here))
    });
    scanned.await.expect("scanned")
}

/// A filter that matches nothing: the scan expects one row and looks at all of them.
#[tokio::test]
async fn a_scan_that_finds_more_rows_than_it_expects_leaves_the_thread_that_asks() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = common::open(folder.path());
    let rows = |names: std::ops::Range<usize>| {
        engine::commit::<(), Infallible, _>(&*engine, Key::new(0x70), move |_, _| {
            let mut changes = engine::Changes::none();
            for name in names.clone() {
                changes.put(key(&format!("{name}")), "row");
            }
            Ok(engine::Commit { changes, outcome: () })
        })
    };
    rows(0..1_001).await.expect("put");
    assert_eq!(scan_on_and_on(&engine).await, (1_001, true), "a page of rows in memory");
    rows(1_001..1_002).await.expect("put");
    assert_eq!(scan_on_and_on(&engine).await, (1_002, false), "many rows in memory");
}

/// Large rows take as long as many small ones.
#[tokio::test]
async fn a_scan_of_large_rows_leaves_the_thread_that_asks() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = common::open(folder.path());
    for (number, is_here) in [(1, true), (2, true), (3, false)] {
        put_row_of(&engine, &format!("{number}"), 1, 500 << 10).await.expect("put");
        assert_eq!(scan_on_and_on(&engine).await, (number, is_here));
    }
}

/// However few rows it expects: where they are on the disk, it waits for that.
#[tokio::test]
async fn a_scan_of_rows_on_the_disk_leaves_the_thread_that_asks() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open_cold(folder.path()).await;
    assert_eq!(scan_on_and_on(&engine).await, (8, false));
}
