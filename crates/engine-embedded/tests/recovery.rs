//! What comes back after a stop, a crash, and damage.

mod common;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use common::{assert_clean, crash_copy, get, open, pattern, put};
use engine::Engine;
use engine_embedded::{EmbeddedEngine, Options};

#[tokio::test]
async fn an_orderly_stop_keeps_everything_and_leaves_no_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path());
    let small = pattern("small", 1, 5_000);
    let large = pattern("large", 1, 3_000_000);
    put(&*engine, "small", &small).await.expect("put");
    let stamp = put(&*engine, "large", &large).await.expect("put");
    engine.advance_clock(3_600).await.expect("advanced");
    engine.close().await.expect("closed");
    drop(engine);

    let engine = open(folder.path());
    assert_eq!(get(&*engine, "small").await, Ok(Some(small)));
    assert_eq!(get(&*engine, "large").await, Ok(Some(large)));
    assert!(put(&*engine, "next", &pattern("next", 1, 10)).await.expect("put") > stamp.plus_seconds(3_500));
    drop(engine);
    assert_clean(folder.path());
}

/// Many writers replace one small object, several in each batch. What they replace goes with the commit that replaces it, also if
/// it was stored in the same batch, and a crash finds one content and nothing to be collected.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_replaced_at_once_goes_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path());
    for round in 0..20_u64 {
        let writers = (0..32_u64).map(|writer| {
            let engine = std::sync::Arc::clone(&engine);
            tokio::spawn(async move {
                let bytes = pattern("often", round * 100 + writer, 900);
                put(&*engine, "often", &bytes).await.map(|_| bytes)
            })
        });
        let mut written = Vec::new();
        for writer in writers.collect::<Vec<_>>() {
            written.push(writer.await.expect("no panic").expect("put"));
        }
        let left = get(&*engine, "often").await.expect("read").expect("it is there");
        assert!(written.contains(&left), "round {round}");
        if round % 10 == 9 {
            let crashed = tempfile::tempdir().expect("a folder");
            crash_copy(folder.path(), crashed.path());
            let after = open(crashed.path());
            assert_eq!(get(&*after, "often").await, Ok(Some(left)));
            // After the start it is not known who else refers to it, so the collector looks.
            put(&*after, "often", &pattern("often", 7, 900)).await.expect("put");
            assert_eq!(engine::collector::sweep(&*after, &[]).await, Ok(1));
            drop(after);
            assert_clean(crashed.path());
            let report = engine_embedded::check(crashed.path(), &mut |_| {}).expect("checked");
            assert_eq!((report.contents, report.references, report.due), (1, 1, 0));
        }
    }
    assert_eq!(engine::collector::sweep(&*engine, &[]).await, Ok(0), "nothing was left to the collector");
    drop(engine);
    assert_clean(folder.path());
}

#[tokio::test]
async fn a_crash_keeps_what_was_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    // Small budgets: the crash finds some rows written out, some only in the log, and several logs.
    let options = Options { memtable_bytes: 32 << 10, log_bytes: 128 << 10, ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options.clone()).expect("opened");
    let mut last = engine::Timestamp(0);
    for round in 0..300_u64 {
        let name = format!("object {}", round % 50);
        let length = if round % 40 == 0 { 200_000 } else { 900 };
        last = put(&*engine, &name, &pattern(&name, round, length)).await.expect("put");
        if round % 60 == 59 {
            let crashed = tempfile::tempdir().expect("a folder");
            crash_copy(folder.path(), crashed.path());
            let after = EmbeddedEngine::open(crashed.path(), options.clone()).expect("opened after the crash");
            for back in 0..50_u64 {
                let version = round - back;
                let name = format!("object {}", version % 50);
                let length = if version % 40 == 0 { 200_000 } else { 900 };
                assert_eq!(get(&*after, &name).await, Ok(Some(pattern(&name, version, length))), "{name}");
            }
            let stamp = put(&*after, "next", &pattern("next", 1, 10)).await.expect("put");
            assert!(stamp > last, "stamps go on rising");
            drop(after);
            assert_clean(crashed.path());
        }
    }
    drop(engine);
    assert!(last > engine::Timestamp(0));
}

#[tokio::test]
async fn crash_after_crash_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path());
    for round in 0..20 {
        let name = format!("{round}");
        put(&*engine, &name, &pattern(&name, round, 2_000)).await.expect("put");
    }
    let kept = tempfile::tempdir().expect("a folder");
    let mut from = folder.path().to_path_buf();
    for generation in 0..4 {
        let crashed = kept.path().join(format!("crashed {generation}"));
        let next = kept.path().join(format!("crashed again {generation}"));
        crash_copy(&from, &crashed);
        let after = open(&crashed);
        for round in 0..20 {
            let name = format!("{round}");
            assert_eq!(get(&*after, &name).await, Ok(Some(pattern(&name, round, 2_000))), "generation {generation}");
        }
        crash_copy(&crashed, &next);
        from = next;
    }
}

/// A folder as a crash leaves it: 30 objects, all in one log, and where each one's batch is.
struct Crashed {
    folder: tempfile::TempDir,
    log: PathBuf,
    /// Where each object's batch begins, and at the end where the last one ends.
    places: Vec<u64>,
}

const OBJECTS: u64 = 30;

async fn crashed() -> Crashed {
    let live = tempfile::tempdir().expect("a folder");
    let engine = open(live.path());
    for round in 0..OBJECTS {
        let name = format!("{round}");
        put(&*engine, &name, &pattern(&name, round, 6_000)).await.expect("put");
    }
    let folder = tempfile::tempdir().expect("a folder");
    crash_copy(live.path(), folder.path());
    let log = the_log(folder.path());
    let bytes = std::fs::read(&log).expect("read");
    let places = (1..bytes.len() / 4096).map(|page| page * 4096).filter(|at| bytes[*at..].starts_with(b"BAT1"));
    let mut places: Vec<u64> = places.map(|at| at as u64).collect();
    let last = usize::try_from(*places.last().expect("batches")).expect("fits");
    let length = u64::from_le_bytes(bytes[last + 56..last + 64].try_into().expect("eight bytes"));
    places.push((last as u64 + length).div_ceil(4096) * 4096);
    assert_eq!(places.len() as u64, OBJECTS + 1, "one batch each");
    Crashed { folder, log, places }
}

/// The log that has batches in it; the other one is the spare.
fn the_log(folder: &Path) -> PathBuf {
    let files = std::fs::read_dir(folder.join("segments")).expect("listed");
    let with_batches = files.map(|entry| entry.expect("an entry").path()).filter(|path| {
        let bytes = std::fs::read(path).expect("read");
        bytes[4096..].starts_with(b"BAT1")
    });
    let found: Vec<PathBuf> = with_batches.collect();
    assert_eq!(found.len(), 1);
    found[0].clone()
}

enum Damage {
    Zero,
    Flip,
}

fn damage(log: &Path, page: u64, how: &Damage) {
    let file = std::fs::File::options().read(true).write(true).open(log).expect("opened");
    let mut bytes = [0_u8; 4096];
    file.read_exact_at(&mut bytes, page).expect("read");
    match how {
        Damage::Zero => bytes = [0; 4096],
        Damage::Flip => bytes[17] ^= 0x10,
    }
    file.write_all_at(&bytes, page).expect("written");
}

#[tokio::test]
async fn damage_in_the_tail_is_cut_and_takes_nothing_else() {
    let crashed = crashed().await;
    let (from, to) = (crashed.places[crashed.places.len() - 2], crashed.places[crashed.places.len() - 1]);
    for page in (from..to).step_by(4096) {
        for how in [Damage::Zero, Damage::Flip] {
            let copy = tempfile::tempdir().expect("a folder");
            crash_copy(crashed.folder.path(), copy.path());
            let log = copy.path().join("segments").join(crashed.log.file_name().expect("a name"));
            damage(&log, page, &how);
            let engine = open(copy.path());
            for round in 0..OBJECTS - 1 {
                let name = format!("{round}");
                assert_eq!(get(&*engine, &name).await, Ok(Some(pattern(&name, round, 6_000))), "page {page}");
            }
            assert_eq!(get(&*engine, &format!("{}", OBJECTS - 1)).await, Ok(None), "the torn one is gone whole");
            put(&*engine, "after", &pattern("after", 1, 10)).await.expect("put");
            drop(engine);
            assert_clean(copy.path());
            assert!(get(&*open(copy.path()), "after").await.expect("read").is_some());
        }
    }
}

#[tokio::test]
async fn damage_in_the_middle_is_refused_and_named() {
    let crashed = crashed().await;
    let last = crashed.places[crashed.places.len() - 2];
    for page in (crashed.places[0]..last).step_by(4096) {
        for how in [Damage::Zero, Damage::Flip] {
            let copy = tempfile::tempdir().expect("a folder");
            crash_copy(crashed.folder.path(), copy.path());
            let log = copy.path().join("segments").join(crashed.log.file_name().expect("a name"));
            damage(&log, page, &how);
            let before = std::fs::read(&log).expect("read");
            let error = EmbeddedEngine::open(copy.path(), Options::default()).expect_err("refused").to_string();
            let batch = crashed.places.iter().rev().find(|at| **at <= page).expect("a batch");
            assert!(error.contains(&format!("{} byte {batch}", log.display())), "page {page}: {error}");
            assert!(std::fs::read(&log).expect("read") == before, "nothing was touched");
        }
    }
}

#[tokio::test]
async fn in_relaxed_durability_a_hole_is_where_the_history_ends() {
    let live = tempfile::tempdir().expect("a folder");
    let relaxed = Options { durability: engine_embedded::Durability::Relaxed, ..Options::default() };
    let engine = EmbeddedEngine::open(live.path(), relaxed).expect("opened");
    for round in 0..10 {
        let name = format!("{round}");
        put(&*engine, &name, &pattern(&name, round, 6_000)).await.expect("put");
    }
    let copy = tempfile::tempdir().expect("a folder");
    crash_copy(live.path(), copy.path());
    drop(engine);
    let log = the_log(copy.path());
    let bytes = std::fs::read(&log).expect("read");
    let batches: Vec<usize> =
        (1..bytes.len() / 4096).map(|page| page * 4096).filter(|at| bytes[*at..].starts_with(b"BAT1")).collect();
    let synced_through = |at: usize| u64::from_le_bytes(bytes[at + 48..at + 56].try_into().expect("eight bytes"));
    // Nothing says that the fifth batch was durable when the later ones were written, unless the machine was very slow.
    let known = batches.iter().any(|at| synced_through(*at) >= 5);
    damage(&log, batches[4] as u64, &Damage::Zero);
    match EmbeddedEngine::open(copy.path(), Options::default()) {
        Ok(engine) => {
            assert!(!known, "a batch that was known durable is gone, and the start did not refuse");
            for round in 0..10 {
                let name = format!("{round}");
                let expected = (round < 4).then(|| pattern(&name, round, 6_000));
                assert_eq!(get(&*engine, &name).await, Ok(expected), "{name}");
            }
        }
        Err(error) => assert!(known, "{error}"),
    }
}

#[tokio::test]
async fn a_missing_log_is_refused() {
    let live = tempfile::tempdir().expect("a folder");
    let options = Options { memtable_bytes: 1 << 30, log_bytes: 64 << 10, ..Options::default() };
    let engine = EmbeddedEngine::open(live.path(), options.clone()).expect("opened");
    for round in 0..300 {
        let name = format!("{round}");
        put(&*engine, &name, &pattern(&name, round, 6_000)).await.expect("put");
    }
    let copy = tempfile::tempdir().expect("a folder");
    crash_copy(live.path(), copy.path());
    drop(engine);
    let mut logs: Vec<PathBuf> = std::fs::read_dir(copy.path().join("segments"))
        .expect("listed")
        .map(|entry| entry.expect("entry").path())
        .collect();
    logs.sort();
    let with_batches: Vec<&PathBuf> =
        logs.iter().filter(|log| std::fs::read(log).expect("read")[4096..].starts_with(b"BAT1")).collect();
    assert!(with_batches.len() >= 2, "the test needs several logs");
    // The newest log but one cannot have been retired while a batch in the newest needs it.
    std::fs::remove_file(with_batches[with_batches.len() - 2]).expect("removed");
    match EmbeddedEngine::open(copy.path(), options) {
        Err(error) => assert!(error.to_string().contains("damaged"), "{error}"),
        Ok(engine) => {
            // It had been retired after all: then its rows are in the tree, but its contents are missed.
            drop(engine);
            assert!(!engine_embedded::check(copy.path(), &mut |_| {}).expect("checked").is_clean());
        }
    }
}
