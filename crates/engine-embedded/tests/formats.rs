//! Folders of earlier formats open, keep what they hold, and are of the present format afterwards.
//!
//! `formats/1-crashed` and `formats/1-stopped` were written by the program that made format 1: the first as a kill left it,
//! the second after an orderly stop. The zeroes at the ends of the logs were cut off to keep them small.

mod common;

use std::path::{Path, PathBuf};

use common::{assert_clean, crash_copy, get, open, pattern, put};
use engine::Engine;

const SMALL: u64 = 20;

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats").join(name)
}

fn large() -> bytes::Bytes {
    pattern("large", 1, 70_000)
}

async fn fill(engine: &dyn Engine) {
    for round in 0..SMALL {
        let name = format!("{round}");
        put(engine, &name, &pattern(&name, round, 100)).await.expect("put");
    }
    put(engine, "large", &large()).await.expect("put");
}

/// Writes the folders. Run by hand, once, before the format changes.
#[tokio::test]
#[ignore = "writes the folders of the present format"]
async fn write_the_folders() {
    let live = tempfile::tempdir().expect("a folder");
    let engine = open(live.path());
    fill(&*engine).await;
    let format = std::fs::read_to_string(live.path().join("FORMAT")).expect("read");
    let format = format.lines().find_map(|line| line.strip_prefix("format=")).expect("a number").to_owned();
    let crashed = kept(&format!("{format}-crashed"));
    crash_copy(live.path(), &crashed);
    for entry in std::fs::read_dir(crashed.join("segments")).expect("listed") {
        let path = entry.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("read");
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let file = std::fs::File::options().write(true).open(&path).expect("opened");
        file.set_len(used.next_multiple_of(4096) as u64).expect("cut");
    }
    engine.close().await.expect("closed");
    drop(engine);
    crash_copy(live.path(), &kept(&format!("{format}-stopped")));
}

#[tokio::test]
async fn folders_of_format_one_open_and_keep_everything() {
    for name in ["1-crashed", "1-stopped"] {
        let folder = tempfile::tempdir().expect("a folder");
        crash_copy(&kept(name), folder.path());
        // Git keeps no empty folders.
        std::fs::create_dir_all(folder.path().join("rows/tables")).expect("made");
        for start in 0..3 {
            let engine = open(folder.path());
            for round in 0..SMALL {
                let name = format!("{round}");
                assert_eq!(get(&*engine, &name).await, Ok(Some(pattern(&name, round, 100))), "start {start}");
            }
            assert_eq!(get(&*engine, "large").await, Ok(Some(large())), "{name}, start {start}");
            put(&*engine, "after", &pattern("after", start, 10)).await.expect("put");
            drop(engine);
        }
        assert_clean(folder.path());
    }
}
