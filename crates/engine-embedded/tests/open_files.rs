//! However many segments there are, few of their files are open, and everything can be read.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{assert_clean, delete, get, key, pattern, put, sweep};
use engine::Engine;
use engine_embedded::{EmbeddedEngine, Options};

const CONTENTS: u64 = 120;
const LENGTH: usize = 200_000;
/// What may be open beside the files that stay open to be read again: logs, data segments that are written to, and some
/// that are just being read.
const AT_WORK: usize = 24;

/// A segment for each content, and eight of their files open.
fn options() -> Options {
    Options { segment_bytes: 256 << 10, files_max: 12, ..Options::default() }
}

fn segment_files_open(folder: &Path) -> usize {
    let segments = folder.join("segments");
    let files = std::fs::read_dir("/proc/self/fd").expect("the files of this process");
    let targets = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    targets.filter(|target| target.starts_with(&segments)).count()
}

async fn read_all(engine: &Arc<EmbeddedEngine>) {
    let readers = (0..8).map(|reader| {
        let engine = Arc::clone(engine);
        tokio::spawn(async move {
            for number in (0..CONTENTS).map(|number| (number * 7 + reader * 31) % CONTENTS) {
                let found = get(&*engine, &number.to_string()).await.expect("read");
                assert!(found == Some(pattern("x", number, LENGTH)), "{number}");
            }
        })
    });
    for reader in readers.collect::<Vec<_>>() {
        reader.await.expect("all could be read");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn many_segments_need_few_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = EmbeddedEngine::open(folder.path(), options()).expect("opened");
    for number in 0..CONTENTS {
        put(&*engine, &number.to_string(), &pattern("x", number, LENGTH)).await.expect("put");
    }
    let segments = std::fs::read_dir(folder.path().join("segments")).expect("listed").count();
    assert!(segments > 100, "only {segments} segments, so nothing is shown");
    read_all(&engine).await;
    let open = segment_files_open(folder.path());
    assert!(open < 8 + AT_WORK, "{open} files of {segments} segments are open");
    engine.close().await.expect("closed");
    drop(engine);

    let engine = EmbeddedEngine::open(folder.path(), options()).expect("opened again");
    let open = segment_files_open(folder.path());
    assert!(open < 8 + AT_WORK, "{open} files of {segments} segments are open after the start");
    read_all(&engine).await;
    let open = segment_files_open(folder.path());
    assert!(open < 8 + AT_WORK, "{open} files of {segments} segments are open");
    let told = engine.figures().into_iter().find(|(name, _)| *name == "segment_files_open").expect("a figure").1;
    assert!(told < (8 + AT_WORK) as u64, "{told} are said to be open");
    drop(engine);
    assert_clean(folder.path());
}

/// A reader has opened its content; then the file of its segment is closed, and later the segment goes.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_keeps_its_bytes_though_their_file_was_closed_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = EmbeddedEngine::open(folder.path(), options()).expect("opened");
    for number in 0..CONTENTS {
        put(&*engine, &number.to_string(), &pattern("x", number, LENGTH)).await.expect("put");
    }
    let content = engine::read::<_, std::convert::Infallible, _>(&*engine, |rows, _| {
        let row = rows.get(&key("3"))?.expect("there");
        Ok(rows.content(engine::ContentId(u64::from_be_bytes(row[..8].try_into().expect("eight"))))?)
    })
    .await
    .expect("opened");
    // Others are read, so that its file is closed.
    read_all(&engine).await;
    for number in 0..CONTENTS {
        delete(&*engine, &number.to_string()).await.expect("deleted");
    }
    sweep(&*engine).await;
    for _ in 0..3 {
        let engine = Arc::clone(&engine);
        let collected = tokio::task::spawn_blocking(move || engine.collect_now()).await.expect("a thread");
        collected.expect("collected");
    }
    let mut read = Vec::new();
    while read.len() < LENGTH {
        read.extend_from_slice(&content.read(read.len() as u64, 30_000).await.expect("bytes"));
    }
    assert!(read == pattern("x", 3, LENGTH));
}
