//! What tests do to an engine.

use std::convert::Infallible;

use bytes::Bytes;
use engine::{Changes, Commit, Content, ContentId, Engine, EngineError, Key, NotCommitted, Staged, Timestamp};

use super::proxy::MARK;

pub fn key(name: &str) -> Key {
    Key::new(0x70).text(name)
}

pub fn number(row: Option<&Bytes>) -> u64 {
    row.map_or(0, |row| u64::from_be_bytes(row[..8].try_into().expect("eight bytes")))
}

/// Adds one to a row, with the mark in it, and answers its new value and the stamp.
pub async fn increment(engine: &dyn Engine, name: &str) -> Result<(u64, Timestamp), NotCommitted<Infallible>> {
    let key = key(name);
    engine::commit(engine, key.clone(), move |rows, tick| {
        let next = number(rows.get(&key)?.as_ref()) + 1;
        let mut changes = Changes::none();
        changes.put(key.clone(), [&next.to_be_bytes()[..], MARK].concat());
        Ok(Commit { changes, outcome: (next, tick.stamp) })
    })
    .await
}

pub async fn count(engine: &dyn Engine, name: &str) -> u64 {
    let key = key(name);
    let row = engine::read::<_, Infallible, _>(engine, move |rows, _| Ok(rows.get(&key)?)).await.expect("a read");
    number(row.as_ref())
}

pub async fn stage(engine: &dyn Engine, bytes: usize) -> Staged {
    try_to_stage(engine, bytes).await.expect("staged")
}

pub async fn try_to_stage(engine: &dyn Engine, bytes: usize) -> Result<Staged, EngineError> {
    let mut writer = engine.writer(Some(bytes as u64));
    writer.write(Bytes::from(vec![7; bytes])).await?;
    writer.finish().await
}

pub async fn store(engine: &dyn Engine, staged: &Staged, owner: u64) -> Result<(), NotCommitted<Infallible>> {
    let staged = staged.clone();
    engine::commit(engine, key("store"), move |_, _| {
        let mut changes = Changes::none();
        changes.store(&staged, owner);
        Ok(Commit { changes, outcome: () })
    })
    .await
}

pub async fn open_content(engine: &dyn Engine, id: ContentId) -> Result<Content, NotCommitted<Infallible>> {
    engine::read(engine, move |rows, _| Ok(rows.content(id)?)).await
}

pub async fn put(engine: &dyn Engine, key: &Key, value: &'static str) {
    let at = key.clone();
    engine::commit::<_, Infallible, _>(engine, key.clone(), move |_, _| {
        let mut changes = Changes::none();
        changes.put(at.clone(), value);
        Ok(Commit { changes, outcome: () })
    })
    .await
    .expect("a plain write");
}
