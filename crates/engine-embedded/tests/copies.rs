//! A copy of the folder that was taken while a server wrote to it.
//!
//! It is not one moment, so it may be refused or found damaged. What must never happen is that it opens, is called clean, and
//! misses something that had been acknowledged before the copying began.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{get, pattern, put};
use engine_embedded::{EmbeddedEngine, Options};

const COPIES: u64 = 12;

/// As `cp -r` does it: file by file, in the given order, whatever happens meanwhile. Files that vanish are passed over.
fn copy(from: &Path, to: &Path, backwards: bool) {
    std::fs::create_dir_all(to).expect("made");
    let mut names: Vec<_> =
        std::fs::read_dir(from).expect("listed").map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    if backwards {
        names.reverse();
    }
    for name in names.into_iter().filter(|name| name != "LOCK") {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() {
            copy(&from, &to, backwards);
        } else {
            let _ = std::fs::copy(from, to);
        }
    }
}

fn value(round: u64) -> bytes::Bytes {
    pattern("x", round, if round.is_multiple_of(20) { 100_000 } else { 2_000 })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_taken_under_load_is_never_called_clean_over_a_loss() {
    let folder = tempfile::tempdir().expect("a folder");
    // Small budgets, so that logs end and rows are written out all the time.
    let options = Options { memtable_bytes: 32 << 10, log_bytes: 128 << 10, ..Options::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("opened");
    let (acknowledged, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let writer = tokio::spawn({
        let (engine, acknowledged, stop) = (Arc::clone(&engine), Arc::clone(&acknowledged), Arc::clone(&stop));
        async move {
            while !stop.load(Ordering::Acquire) {
                let round = acknowledged.load(Ordering::Acquire);
                put(&*engine, &format!("{round}"), &value(round)).await.expect("put");
                acknowledged.store(round + 1, Ordering::Release);
            }
        }
    });
    let mut opened = 0;
    for round in 0..COPIES {
        while acknowledged.load(Ordering::Acquire) < (round + 1) * 60 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let (from, to) = (folder.path().to_path_buf(), tempfile::tempdir().expect("a folder"));
        let before = acknowledged.load(Ordering::Acquire);
        let target = to.path().to_path_buf();
        tokio::task::spawn_blocking(move || copy(&from, &target, round % 2 == 1)).await.expect("copied");
        let Ok(report) = engine_embedded::check(to.path(), &mut |_| {}) else { continue };
        if !report.is_clean() {
            continue;
        }
        opened += 1;
        let copied = common::open(to.path());
        for old in 0..before {
            assert_eq!(get(&*copied, &format!("{old}")).await, Ok(Some(value(old))), "copy {round}: {old} of {before}");
        }
    }
    stop.store(true, Ordering::Release);
    writer.await.expect("the writer");
    println!("{opened} of {COPIES} copies were clean");
    assert!(opened > 0, "no copy was clean, so nothing was compared");
}
