//! What nobody needs any longer: dropped contents, objects of runs that ended, old names of commits.
//!
//! Every node tries; a lock in the database lets one of them work at a time. Each step can stop anywhere: what was not
//! removed is found again.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use crate::Inner;
use crate::node::LEASE;
use crate::pool::Loan;
use crate::trouble::Trouble;

const GARBAGE_LOCK: i64 = 0x6c61_7a75_6761_7262;
/// How many contents are removed in one step.
const CONTENTS_PER_STEP: i64 = 500;
/// A dropped content is kept at least this long after everybody could see that it was dropped: longer than the nodes'
/// clocks can disagree, and than a read takes from its beginning to being known.
const DROPPED_FOR: Duration = Duration::from_secs(5);
/// Names of commits are kept this long: longer than anybody tries to commit.
const NAMES_KEPT_SECONDS: f64 = 600.0;
/// An epoch counts as ended this long after its node was last heard of.
const ENDED_AFTER: Duration = Duration::from_secs(4 * LEASE.as_secs());

/// Contents seen to be dropped, and when that was.
#[derive(Debug, Default)]
pub struct Garbage {
    seen: Mutex<Option<(SystemTime, Vec<i64>)>>,
}

/// One round. `true`: there is more to do.
pub async fn round(inner: &Inner) -> Result<bool, Trouble> {
    let pool = &inner.source.pool;
    let loan = pool.get().await?;
    let lock = "SELECT pg_try_advisory_lock($1)";
    let alone: bool = pool.ask_one(&loan, lock, &[&GARBAGE_LOCK]).await?.get(0);
    if !alone {
        pool.give_back(loan);
        return Ok(false);
    }
    let more = contents(inner, &loan).await?;
    epochs(inner, &loan).await?;
    forget_names(inner, &loan).await?;
    pool.ask(&loan, "SELECT pg_advisory_unlock($1)", &[&GARBAGE_LOCK]).await?;
    pool.give_back(loan);
    Ok(more)
}

/// Removes contents that were dropped before the oldest read of any node began.
async fn contents(inner: &Inner, loan: &Loan) -> Result<bool, Trouble> {
    let seen = inner.garbage.seen.lock().expect("nothing panics under this lock").take();
    let Some((at, ids)) = seen else {
        let sql = "SELECT clock_timestamp(), array(SELECT id FROM content WHERE dropped IS NOT NULL \
                   ORDER BY dropped LIMIT $1)";
        let row = inner.source.pool.ask_one(loan, sql, &[&CONTENTS_PER_STEP]).await?;
        let ids: Vec<i64> = row.get(1);
        if !ids.is_empty() {
            *inner.garbage.seen.lock().expect("nothing panics under this lock") = Some((row.get(0), ids));
        }
        return Ok(false);
    };
    // Every node that lives has said, since then, that none of its reads is as old.
    let sql =
        "SELECT count(*) = 0 FROM node WHERE expires > clock_timestamp() AND (oldest_read <= $1 OR said_at <= $1)";
    let after = at + DROPPED_FOR;
    let nobody_reads: bool = inner.source.pool.ask_one(loan, sql, &[&after]).await?.get(0);
    if !nobody_reads {
        *inner.garbage.seen.lock().expect("nothing panics under this lock") = Some((at, ids));
        return Ok(false);
    }
    remove(inner, loan, &ids).await?;
    Ok(ids.len() as i64 == CONTENTS_PER_STEP)
}

/// The objects first: as long as the rows are there, somebody can find what is left to remove.
async fn remove(inner: &Inner, loan: &Loan, ids: &[i64]) -> Result<(), Trouble> {
    let pool = &inner.source.pool;
    let sql = "SELECT object FROM extent WHERE content = ANY ($1::bigint[])";
    let rows = pool.ask(loan, sql, &[&ids]).await?;
    let objects: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let count = objects.len() as u64;
    inner.source.store.delete(objects).await.map_err(|error| Trouble::Refused(error.to_string()))?;
    let sql = "WITH gone AS (DELETE FROM extent WHERE content = ANY ($1::bigint[])) \
               DELETE FROM content WHERE id = ANY ($1::bigint[]) AND dropped IS NOT NULL";
    pool.tell(loan, sql, &[&ids]).await?;
    inner.counters.objects_removed.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
    Ok(())
}

/// Ends runs whose nodes are gone, and removes the objects they never stored.
async fn epochs(inner: &Inner, loan: &Loan) -> Result<(), Trouble> {
    let pool = &inner.source.pool;
    // The node's place goes with its run: should it come back, it begins a new one.
    let sql = "WITH gone AS (UPDATE node SET epoch = 0 WHERE epoch <> 0 AND expires < clock_timestamp() \
               - make_interval(secs => $1)) \
               UPDATE epoch SET ended = true WHERE NOT ended AND NOT EXISTS (SELECT 1 FROM node n \
               WHERE n.epoch = epoch.id AND n.expires >= clock_timestamp() - make_interval(secs => $1))";
    pool.tell(loan, sql, &[&ENDED_AFTER.as_secs_f64()]).await?;
    let sql = "SELECT id FROM epoch WHERE ended AND NOT swept ORDER BY id LIMIT 1";
    let rows = pool.ask(loan, sql, &[]).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    let epoch: i64 = row.get(0);
    sweep(inner, loan, epoch).await?;
    let sql = "UPDATE epoch SET swept = true WHERE id = $1";
    pool.tell(loan, sql, &[&epoch]).await?;
    Ok(())
}

async fn sweep(inner: &Inner, loan: &Loan, epoch: i64) -> Result<(), Trouble> {
    let store = &inner.source.store;
    let away = |error: engine::EngineError| Trouble::Refused(error.to_string());
    let prefix = format!("{epoch:016x}/");
    let mut after = String::new();
    loop {
        let names = store.list(&prefix, &after).await.map_err(away)?;
        let Some(last) = names.last().cloned() else { return Ok(()) };
        let sql = "SELECT object FROM extent WHERE object = ANY ($1::text[])";
        let rows = inner.source.pool.ask(loan, sql, &[&names]).await?;
        let stored: HashSet<String> = rows.iter().map(|row| row.get(0)).collect();
        let orphans: Vec<String> = names.into_iter().filter(|name| !stored.contains(name)).collect();
        let count = orphans.len() as u64;
        store.delete(orphans).await.map_err(away)?;
        inner.counters.orphans_removed.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
        after = last;
    }
}

/// A name whose stamp lies in the future stays: it is what keeps later stamps above it.
async fn forget_names(inner: &Inner, loan: &Loan) -> Result<(), Trouble> {
    let sql = "DELETE FROM committed WHERE at < clock_timestamp() - make_interval(secs => $1) AND stamp < $2";
    let now = inner.source.node.now().0.cast_signed();
    inner.source.pool.tell(loan, sql, &[&NAMES_KEPT_SECONDS, &now]).await?;
    Ok(())
}
