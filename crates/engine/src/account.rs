//! Accounts by number: rows carry a short id instead of the name, and the name may change.

use bytes::Bytes;

use crate::{Changes, Commit, Engine, EngineError, Key, NotCommitted, Stop, commit, space};

/// The number of `name`, given out on its first use and never again.
pub async fn id(engine: &dyn Engine, name: &str) -> Result<u64, EngineError> {
    let key = Key::new(space::ACCOUNT).text(name);
    let answer = commit::<u64, std::convert::Infallible, _>(engine, key.clone(), move |rows, tick| {
        if let Some(row) = rows.get(&key)? {
            let bytes = row.as_ref().try_into().map_err(|_| {
                Stop::Unread(EngineError::Corrupt(format!("the account row {key:?} has {} bytes", row.len())).into())
            })?;
            return Ok(Commit::unchanged(u64::from_be_bytes(bytes)));
        }
        let mut changes = Changes::none();
        changes.put(key.clone(), Bytes::copy_from_slice(&tick.id(0).to_be_bytes()));
        Ok(Commit { changes, outcome: tick.id(0) })
    });
    match answer.await {
        Ok(id) => Ok(id),
        Err(NotCommitted::Refused(never)) => match never {},
        Err(NotCommitted::Failed(error)) => Err(error),
    }
}
