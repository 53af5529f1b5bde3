//! The sweeper: does what is due, and collects what nobody refers to.
//!
//! It runs ordinary decisions, so it needs no locks and can stop at any point: what it did not finish is still due.

use std::fmt::Debug;
use std::future::poll_fn;
use std::task::Poll;

use bytes::Bytes;

use crate::due::{self, Due, Kind};
use crate::{
    BoxFuture, Changes, Commit, ContentId, Engine, EngineError, Key, NotCommitted, Rows, Tick, Unread, Visit, commit,
    read, space,
};

/// How many due rows one sweep takes at most before others get their turn.
pub const DUE_PER_SWEEP: usize = 1_000;

/// How many due rows are handled at once. An engine commits together what waits together, so this many share the wait for
/// the disk; one after another they would take a sync each, and after much was deleted that is minutes.
const HANDLED_AT_ONCE: usize = 64;

/// How many steps one due row may take before others get their turn.
const STEPS_PER_TURN: usize = 100;

/// The row that says `owner` refers to `thing`.
#[must_use]
pub fn ref_key(thing: u64, owner: u64) -> Key {
    Key::new(space::REF).number(thing).number(owner)
}

/// Whether anybody refers to `thing`.
pub fn is_referred(rows: &dyn Rows, thing: u64) -> Result<bool, Unread> {
    let prefix = Key::new(space::REF).number(thing);
    let mut found = false;
    rows.scan(&prefix, &prefix.after_all(), 1, &mut |_, _| {
        found = true;
        Visit::Stop
    })?;
    Ok(found)
}

/// Somebody who handles due rows of their own kinds.
pub trait Handler: Debug + Send + Sync {
    /// Does what `due` asks for in decisions of its own, the last of which removes the row. `false`: not mine.
    fn handle<'a>(&'a self, engine: &'a dyn Engine, due: &'a Due) -> BoxFuture<'a, Result<bool, EngineError>>;
}

/// Does what is due now, at most [`DUE_PER_SWEEP`] rows. Returns how many rows it handled, or the first error; a row that
/// fails keeps no other row from its turn.
pub async fn sweep(engine: &dyn Engine, handlers: &[&dyn Handler]) -> Result<usize, EngineError> {
    let waiting = due_now(engine).await?;
    let mut rest = waiting.iter();
    let mut running: Vec<BoxFuture<'_, Result<bool, EngineError>>> = Vec::new();
    let (mut handled, mut failure) = (0, None);
    poll_fn(|cx| {
        loop {
            let free = HANDLED_AT_ONCE - running.len();
            running.extend(rest.by_ref().take(free).map(|due| handle(engine, handlers, due)));
            let before = running.len();
            running.retain_mut(|work| match work.as_mut().poll(cx) {
                Poll::Pending => true,
                Poll::Ready(Ok(is_handled)) => {
                    handled += usize::from(is_handled);
                    false
                }
                Poll::Ready(Err(error)) => {
                    failure.get_or_insert(error);
                    false
                }
            });
            if running.is_empty() && rest.len() == 0 {
                return Poll::Ready(());
            }
            // Those that have ended make room for others, which must be polled once.
            if running.len() == before {
                return Poll::Pending;
            }
        }
    })
    .await;
    failure.map_or(Ok(handled), Err)
}

/// Whether somebody knew what to do.
fn handle<'a>(
    engine: &'a dyn Engine,
    handlers: &'a [&'a dyn Handler],
    due: &'a Due,
) -> BoxFuture<'a, Result<bool, EngineError>> {
    Box::pin(async move {
        if due.kind == Kind::Content {
            return collect_content(engine, due).await.map(|()| true);
        }
        for handler in handlers {
            if handler.handle(engine, due).await? {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

async fn due_now(engine: &dyn Engine) -> Result<Vec<Due>, EngineError> {
    let waiting = read::<_, std::convert::Infallible, _>(engine, |rows, now| {
        let (from, to) = due::range(now);
        let mut waiting = Vec::new();
        rows.scan(&from, &to, DUE_PER_SWEEP, &mut |key, _| {
            waiting.extend(Due::from_key(key));
            if waiting.len() < DUE_PER_SWEEP { Visit::Next } else { Visit::Stop }
        })?;
        Ok(waiting)
    });
    waiting.await.or_else(failed)
}

/// Drops a content if its last reference is gone.
async fn collect_content(engine: &dyn Engine, due: &Due) -> Result<(), EngineError> {
    let due = due.clone();
    let Some(id) = due.owner_id() else { return Ok(()) };
    let decision = commit::<(), std::convert::Infallible, _>(engine, due.key(), move |rows, _| {
        let mut changes = Changes::none().freeing_space();
        changes.delete(due.key());
        if !is_referred(rows, id)? {
            changes.dropped.push(ContentId(id));
        }
        Ok(Commit { changes, outcome: () })
    });
    decision.await.or_else(failed)
}

fn failed<T>(error: NotCommitted<std::convert::Infallible>) -> Result<T, EngineError> {
    match error {
        NotCommitted::Failed(error) => Err(error),
        NotCommitted::Refused(never) => match never {},
    }
}

/// Runs `step` until it says that nothing is left, and removes the due row with the last one.
///
/// The steps are a partition of their own. Who changes rows that others change as well uses [`steps_in`].
pub fn steps<'a, F>(engine: &'a dyn Engine, due: &'a Due, step: F) -> BoxFuture<'a, Result<(), EngineError>>
where
    F: Fn(&dyn Rows, Tick, &mut Changes) -> Result<bool, Unread> + Send + Sync + Clone + 'static,
{
    steps_in(due.key(), engine, due, step)
}

/// The same, as decisions of `partition`.
pub fn steps_in<'a, F>(
    partition: Key,
    engine: &'a dyn Engine,
    due: &'a Due,
    step: F,
) -> BoxFuture<'a, Result<(), EngineError>>
where
    F: Fn(&dyn Rows, Tick, &mut Changes) -> Result<bool, Unread> + Send + Sync + Clone + 'static,
{
    Box::pin(async move {
        for _ in 0..STEPS_PER_TURN {
            let (key, step) = (due.key(), step.clone());
            let more = commit::<bool, std::convert::Infallible, _>(engine, partition.clone(), move |rows, tick| {
                let mut changes = Changes::none().freeing_space();
                let more = step(rows, tick, &mut changes)?;
                if !more {
                    // First, so that a step may put it back for another time.
                    changes.rows.insert(0, (key.clone(), None));
                }
                Ok(Commit { changes, outcome: more })
            });
            if !more.await.or_else(failed)? {
                break;
            }
        }
        Ok(())
    })
}

/// Removes up to `most` rows of a range in one decision and says whether any are left.
pub fn delete_some(
    rows: &dyn Rows,
    from: &Key,
    to: &Key,
    most: usize,
    changes: &mut Changes,
    mut each: impl FnMut(&[u8], &Bytes, &mut Changes),
) -> Result<bool, Unread> {
    let mut count = 0;
    let mut more = false;
    rows.scan(from, to, most + 1, &mut |key, value| {
        if count == most {
            more = true;
            return Visit::Stop;
        }
        count += 1;
        changes.delete(Key::from_bytes(key));
        each(key, value, changes);
        Visit::Next
    })?;
    Ok(more)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use tokio::sync::Barrier;

    use super::*;
    use crate::Timestamp;
    use crate::memory::MemoryEngine;

    const ROWS: u64 = 200;

    /// Handles rows only when so many of them are under way together; every tenth fails.
    #[derive(Debug)]
    struct Together {
        barrier: Barrier,
        seen: Mutex<Vec<u64>>,
    }

    impl Handler for Together {
        fn handle<'a>(&'a self, _: &'a dyn Engine, due: &'a Due) -> BoxFuture<'a, Result<bool, EngineError>> {
            Box::pin(async move {
                self.barrier.wait().await;
                let owner = due.owner_id().unwrap_or(0);
                self.seen.lock().unwrap().push(owner);
                if owner.is_multiple_of(10) { Err(EngineError::Busy) } else { Ok(true) }
            })
        }
    }

    #[tokio::test]
    async fn due_rows_are_handled_together_and_one_that_fails_stops_no_other() {
        let engine = MemoryEngine::new(7);
        for owner in 0..ROWS {
            let due = Due { at: Timestamp(0), kind: Kind::Staging, owner: owner.to_be_bytes().to_vec() };
            let put = commit::<(), std::convert::Infallible, _>(&engine, due.key(), move |_, _| {
                let mut changes = Changes::none();
                changes.put(due.key(), Bytes::new());
                Ok(Commit { changes, outcome: () })
            });
            put.await.unwrap();
        }
        let together = Together { barrier: Barrier::new(20), seen: Mutex::default() };
        let handlers: [&dyn Handler; 1] = [&together];
        let sweeping = sweep(&engine, &handlers);
        let swept = tokio::time::timeout(Duration::from_secs(30), sweeping).await;
        assert!(swept.expect("they wait for each other in vain").is_err());
        assert_eq!(together.seen.lock().unwrap().len() as u64, ROWS);
    }
}
