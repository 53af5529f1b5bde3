//! Small helpers the tests of this crate share.
#![allow(dead_code)]

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use engine::{Changes, Commit, Engine, EngineError, Key, NotCommitted, Timestamp, Wrapper, space};
use engine_embedded::{EmbeddedEngine, Options};

pub fn open(folder: &Path) -> Arc<EmbeddedEngine> {
    EmbeddedEngine::open(folder, Options::default()).expect("opened")
}

pub fn key(name: &str) -> Key {
    Key::new(0x70).text(name)
}

/// One object: a row that names a content, stored together.
pub async fn put(engine: &dyn Engine, name: &str, bytes: &Bytes) -> Result<Timestamp, EngineError> {
    let mut writer = engine.writer(Some(bytes.len() as u64));
    writer.write(bytes.clone()).await?;
    let staged = writer.finish().await?;
    let key = key(name);
    let done = engine::commit::<_, Infallible, _>(engine, key.clone(), move |rows, tick| {
        let mut changes = Changes::none();
        if let Some(old) = rows.get(&key)? {
            changes.unrefer(space::CONTENT, number(&old[..8]), number(&old[8..]), tick.now);
        }
        changes.store(&staged, tick.id(1));
        let row = [staged.id().0.to_be_bytes(), tick.id(1).to_be_bytes()].concat();
        changes.put(key.clone(), row);
        Ok(Commit { changes, outcome: tick.stamp })
    });
    done.await.map_err(failure)
}

pub async fn delete(engine: &dyn Engine, name: &str) -> Result<(), EngineError> {
    let key = key(name);
    let done = engine::commit::<_, Infallible, _>(engine, key.clone(), move |rows, tick| {
        let mut changes = Changes::none().freeing_space();
        if let Some(old) = rows.get(&key)? {
            changes.unrefer(space::CONTENT, number(&old[..8]), number(&old[8..]), tick.now);
            changes.delete(key.clone());
        }
        Ok(Commit { changes, outcome: () })
    });
    done.await.map_err(failure)
}

/// The object's bytes, or `None` if it is not there.
pub async fn get(engine: &dyn Engine, name: &str) -> Result<Option<Bytes>, EngineError> {
    let key = key(name);
    let found = engine::read::<_, Infallible, _>(engine, move |rows, _| {
        let Some(row) = rows.get(&key)? else { return Ok(None) };
        Ok(Some(rows.content(engine::ContentId(number(&row[..8])))?))
    });
    let Some(content) = found.await.map_err(failure)? else { return Ok(None) };
    let mut out = Vec::new();
    while (out.len() as u64) < content.length() {
        out.extend_from_slice(&content.read(out.len() as u64, 1 << 20).await?);
    }
    Ok(Some(Bytes::from(out)))
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("eight bytes"))
}

pub fn failure(error: NotCommitted<Infallible>) -> EngineError {
    match error {
        NotCommitted::Failed(error) => error,
        NotCommitted::Refused(never) => match never {},
    }
}

/// Says that a test was not run, also to `./test`, which names a file for that: what a test prints is not shown when it passes.
pub fn skipped(why: &str) {
    println!("SKIPPED: {why}");
    if let Some(path) = std::env::var_os("LAZURITE_SKIPPED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        std::io::Write::write_all(&mut file.expect("the file opens"), format!("SKIPPED: {why}\n").as_bytes())
            .expect("a line in the file");
    }
}

pub async fn sweep(engine: &dyn Engine) {
    while engine::collector::sweep(engine, &[]).await.expect("swept") > 0 {}
}

/// Bytes that tell which object and which version they belong to, at every place.
pub fn pattern(name: &str, version: u64, length: usize) -> Bytes {
    let mut state = name.bytes().fold(version.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    });
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    Bytes::from(bytes)
}

/// The folder as a crash at this moment would leave it: copied while nothing in it changes.
pub fn crash_copy(from: &Path, to: &Path) {
    loop {
        let before = listing(from);
        if before.is_ok() && copy(from, to).is_ok() && listing(from).ok() == before.ok() {
            return;
        }
        if to.exists() {
            std::fs::remove_dir_all(to).expect("removed");
        }
    }
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else if entry.file_name() != "LOCK" {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Every file with its length and when it was written to.
fn listing(folder: &Path) -> std::io::Result<Vec<(std::path::PathBuf, u64, std::time::SystemTime)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            files.extend(listing(&entry.path())?);
        } else {
            let data = entry.metadata()?;
            files.push((entry.path(), data.len(), data.modified()?));
        }
    }
    files.sort();
    Ok(files)
}

pub fn assert_clean(folder: &Path) {
    let report = engine_embedded::check(folder, &mut |_| {}).expect("checked");
    assert!(report.is_clean(), "{report}");
}

pub fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("listed").map(|entry| entry.expect("an entry"));
    entries
        .map(
            |entry| {
                if entry.path().is_dir() { folder_bytes(&entry.path()) } else { entry.metadata().expect("data").len() }
            },
        )
        .sum()
}

/// With tiny budgets everything happens often: logs end, memtables are written out, rows leave the cache.
pub fn cramped_options() -> Options {
    Options {
        memtable_bytes: 8 << 10,
        log_bytes: 64 << 10,
        segment_bytes: 1 << 20,
        row_cache_bytes: 4 << 10,
        content_cache_bytes: 4 << 10,
        ..Options::default()
    }
}

/// An engine in a folder of its own, which is removed with it.
pub fn in_folder(options: Options) -> Arc<dyn Engine> {
    let folder = tempfile::tempdir().expect("a folder").keep();
    let engine = EmbeddedEngine::open(&folder, options).expect("opened");
    Arc::new(InFolder { engine, folder })
}

#[derive(Debug)]
struct InFolder {
    engine: Arc<EmbeddedEngine>,
    folder: std::path::PathBuf,
}

impl Drop for InFolder {
    fn drop(&mut self) {
        // `close` does its work when it is called; nothing is left to wait for.
        drop(self.engine.close());
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Wrapper for InFolder {
    fn inner(&self) -> &dyn Engine {
        &*self.engine
    }
}
