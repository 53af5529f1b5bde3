//! Removes garbage: dropped contents, objects of runs that ended, old names of commits.
//!
//! Every node tries; a lock in the database lets one of them work at a time. Each step can stop anywhere: what was not
//! removed is found again. What cannot be removed is named in the log, counted, and tried again later and later; nothing
//! else waits for it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use engine::EngineError;
use engine::byte_store::ByteStore;

use crate::Inner;
use crate::node::LEASE;
use crate::pool::Loan;
use crate::trouble::Trouble;

const GARBAGE_LOCK: i64 = 0x6c61_7a75_6761_7262;
/// How many contents are removed in one step.
const CONTENTS_PER_STEP: i64 = 500;
/// A dropped content is kept at least this long after this node saw that it was dropped.
const DROPPED_FOR: Duration = Duration::from_secs(5);
/// Names of commits are kept this long: longer than any node tries to commit.
const NAMES_KEPT_SECONDS: f64 = 600.0;
/// A run has ended when its node's lease has, and nothing was heard of it for this long by a node that hears and is heard.
pub const ENDED_AFTER: Duration = Duration::from_secs(4 * LEASE.as_secs());
/// A node that has not looked for this long has not heard the others either, and begins to watch anew.
const LOOKS_APART_MAX: Duration = Duration::from_secs(2 * LEASE.as_secs());
/// How many ended runs are looked at in one round.
const RUNS_PER_ROUND: i64 = 16;
/// After so many objects in a row that the store is too busy to remove, it is left alone for a while.
const BUSY_MAX: usize = 3;
/// When something that could not be removed is tried again: after 5 seconds, then after twice as long, up to an hour and a half.
const TRY_AGAIN: &str = "clock_timestamp() + make_interval(secs => 5 * 2 ^ least(tries, 10))";

#[derive(Debug, Default)]
pub struct Garbage {
    /// Contents seen to be dropped, and when that was.
    seen: Mutex<Option<(SystemTime, Vec<i64>)>>,
    silence: Mutex<Silence>,
}

impl Garbage {
    fn seen(&self) -> MutexGuard<'_, Option<(SystemTime, Vec<i64>)>> {
        self.seen.lock().expect("nothing panics under this lock")
    }
}

/// The silent runs: the last beat of each, and since when this node watches it.
///
/// Time alone proves nothing: while the database is away, or waits for a standby, no node is heard. So a run is watched,
/// by a node that looks often enough and is heard itself.
#[derive(Debug, Default)]
struct Silence {
    looked: Option<Instant>,
    since: HashMap<i64, (SystemTime, Instant)>,
}

impl Silence {
    /// `silent` are the runs whose leases have ended, and when they last said something. Returns those that have ended.
    fn look(&mut self, now: Instant, is_heard: bool, silent: &[(i64, SystemTime)]) -> Vec<i64> {
        let last = self.looked.replace(now);
        if !is_heard || last.is_none_or(|last| now.duration_since(last) > LOOKS_APART_MAX) {
            self.since.clear();
        }
        let before = std::mem::take(&mut self.since);
        let known = |epoch: &i64, said: &SystemTime| before.get(epoch).filter(|(then, _)| then == said).copied();
        let entry = |(epoch, said): &(i64, SystemTime)| (*epoch, known(epoch, said).unwrap_or((*said, now)));
        self.since = silent.iter().map(entry).collect();
        let has_ended = |began: &Instant| is_heard && now.duration_since(*began) >= ENDED_AFTER;
        self.since.iter().filter(|(_, (_, began))| has_ended(began)).map(|(epoch, _)| *epoch).collect()
    }
}

/// One round. `true`: there is more to do.
pub async fn round(inner: &Inner) -> Result<bool, Trouble> {
    let pool = &inner.source.pool;
    let loan = pool.get().await?;
    let ended = silent_runs(inner, &loan).await?;
    let lock = "SELECT pg_try_advisory_lock($1)";
    let alone: bool = pool.ask_one(&loan, lock, &[&GARBAGE_LOCK]).await?.get(0);
    if !alone {
        pool.give_back(loan);
        return Ok(false);
    }
    let more = go_on(inner, contents(inner, &loan).await, "contents")?;
    go_on(inner, epochs(inner, &loan, &ended).await, "runs")?;
    go_on(inner, forget_names(inner, &loan).await, "names of commits")?;
    pool.ask(&loan, "SELECT pg_advisory_unlock($1)", &[&GARBAGE_LOCK]).await?;
    pool.give_back(loan);
    Ok(more.unwrap_or(false))
}

/// A part that fails does not keep the next from being tried, as long as the database answers.
fn go_on<T>(inner: &Inner, done: Result<T, Trouble>, what: &str) -> Result<Option<T>, Trouble> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(trouble @ (Trouble::Lost(_) | Trouble::Away(_))) => Err(trouble),
        Err(trouble) => {
            tracing::warn!(%trouble, what, "garbage could not be removed and stays for now");
            inner.counters.garbage_failures.fetch_add(1, Ordering::Relaxed);
            Ok(None)
        }
    }
}

/// Runs that have ended, as far as this node can know.
async fn silent_runs(inner: &Inner, loan: &Loan) -> Result<Vec<i64>, Trouble> {
    let sql =
        "SELECT epoch, said_at FROM node WHERE epoch <> 0 AND expires < clock_timestamp() AND expires > '-infinity'";
    let rows = inner.source.pool.ask(loan, sql, &[]).await?;
    let silent: Vec<(i64, SystemTime)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let mut silence = inner.garbage.silence.lock().expect("nothing panics under this lock");
    Ok(silence.look(Instant::now(), inner.source.node.is_heard(), &silent))
}

/// Removes contents that were dropped before the oldest read of any node began.
async fn contents(inner: &Inner, loan: &Loan) -> Result<bool, Trouble> {
    let seen = inner.garbage.seen().take();
    let Some((at, ids)) = seen else {
        let sql = "SELECT cluster_time(), array(SELECT id FROM content WHERE dropped < clock_timestamp() \
                   ORDER BY dropped LIMIT $1)";
        let row = inner.source.pool.ask_one(loan, sql, &[&CONTENTS_PER_STEP]).await?;
        let ids: Vec<i64> = row.get(1);
        if !ids.is_empty() {
            *inner.garbage.seen() = Some((row.get(0), ids));
        }
        return Ok(false);
    };
    // Every node whose run has not ended has said, since then, that none of its reads is as old. One that cannot be heard
    // may be reading: it counts until its run has ended.
    let sql = "SELECT count(*) = 0 FROM node WHERE epoch <> 0 AND expires > '-infinity' AND oldest_read <= $1";
    let after = at + DROPPED_FOR;
    let nobody_reads: bool = inner.source.pool.ask_one(loan, sql, &[&after]).await?.get(0);
    if !nobody_reads {
        *inner.garbage.seen() = Some((at, ids));
        return Ok(false);
    }
    remove(inner, loan, &ids).await?;
    Ok(ids.len() as i64 == CONTENTS_PER_STEP)
}

/// Objects that are removed together: those of a content, or one that belongs to none.
#[derive(Debug)]
struct Item {
    id: i64,
    objects: Vec<String>,
}

/// What became of items: those that are gone, and those that could not be removed. Others were not tried.
#[derive(Debug, Default)]
struct Removed {
    gone: Vec<Item>,
    stuck: Vec<(Item, EngineError)>,
}

/// Removes objects together, and where that fails each item by itself.
async fn remove_objects(store: &dyn ByteStore, items: Vec<Item>) -> Removed {
    let all = items.iter().flat_map(|item| item.objects.iter().cloned()).collect();
    if store.delete(all).await.is_ok() {
        return Removed { gone: items, stuck: Vec::new() };
    }
    let (mut removed, mut busy) = (Removed::default(), 0);
    for item in items {
        match store.delete(item.objects.clone()).await {
            Ok(()) => {
                busy = 0;
                removed.gone.push(item);
            }
            Err(error) => {
                busy += usize::from(error == EngineError::Busy);
                removed.stuck.push((item, error));
            }
        }
        if busy >= BUSY_MAX {
            break;
        }
    }
    removed
}

/// The objects first: as long as the rows are there, a node can find what is left to remove.
async fn remove(inner: &Inner, loan: &Loan, ids: &[i64]) -> Result<(), Trouble> {
    let pool = &inner.source.pool;
    let sql = "SELECT content, object FROM extent WHERE content = ANY ($1::bigint[])";
    let mut objects: HashMap<i64, Vec<String>> = HashMap::new();
    for row in pool.ask(loan, sql, &[&ids]).await? {
        objects.entry(row.get(0)).or_default().push(row.get(1));
    }
    let item = |id: &i64| Item { id: *id, objects: objects.remove(id).unwrap_or_default() };
    let removed = remove_objects(&*inner.source.store, ids.iter().map(item).collect()).await;
    let gone: Vec<i64> = removed.gone.iter().map(|item| item.id).collect();
    let count = removed.gone.iter().map(|item| item.objects.len() as u64).sum();
    inner.counters.objects_removed.fetch_add(count, Ordering::Relaxed);
    if let Err(trouble) = forget_contents(inner, loan, &gone).await {
        if !matches!(trouble, Trouble::Fatal(_)) {
            return Err(trouble);
        }
        for id in gone {
            if let Err(trouble) = forget_contents(inner, loan, &[id]).await {
                put_off(inner, loan, id, &trouble.to_string()).await?;
            }
        }
    }
    for (item, error) in removed.stuck {
        put_off(inner, loan, item.id, &format!("{error} ({})", item.objects.join(", "))).await?;
    }
    Ok(())
}

async fn forget_contents(inner: &Inner, loan: &Loan, ids: &[i64]) -> Result<(), Trouble> {
    let sql = "WITH gone AS (DELETE FROM extent WHERE content = ANY ($1::bigint[])) \
               DELETE FROM content WHERE id = ANY ($1::bigint[]) AND dropped IS NOT NULL";
    inner.source.pool.tell(loan, sql, &[&ids]).await.map(|_| ())
}

/// A content that cannot be removed is tried again later, behind the others.
async fn put_off(inner: &Inner, loan: &Loan, content: i64, error: &str) -> Result<(), Trouble> {
    tracing::warn!(content, error, "a dropped content cannot be removed; it is tried again later");
    inner.counters.garbage_failures.fetch_add(1, Ordering::Relaxed);
    let sql =
        format!("UPDATE content SET tries = tries + 1, dropped = {TRY_AGAIN} WHERE id = $1 AND dropped IS NOT NULL");
    inner.source.pool.tell(loan, &sql, &[&content]).await.map(|_| ())
}

/// Ends runs whose nodes are gone, and removes the objects they never stored.
async fn epochs(inner: &Inner, loan: &Loan, ended: &[i64]) -> Result<(), Trouble> {
    let pool = &inner.source.pool;
    // The node's slot goes with its run: a node that comes back begins a new run. A node that left has ended its own.
    let sql = "UPDATE node SET epoch = 0 WHERE epoch <> 0 AND (expires = '-infinity' \
               OR epoch = ANY ($1::bigint[]) AND expires < clock_timestamp())";
    pool.tell(loan, sql, &[&ended]).await?;
    let sql =
        "UPDATE epoch SET ended = true WHERE NOT ended AND NOT EXISTS (SELECT 1 FROM node n WHERE n.epoch = epoch.id)";
    pool.tell(loan, sql, &[]).await?;
    let sql =
        "SELECT id FROM epoch WHERE ended AND NOT swept AND again < clock_timestamp() ORDER BY again, id LIMIT $1";
    for row in pool.ask(loan, sql, &[&RUNS_PER_ROUND]).await? {
        finish(inner, loan, row.get(0)).await?;
    }
    Ok(())
}

/// Removes the objects of a run that has ended, or puts that off.
async fn finish(inner: &Inner, loan: &Loan, epoch: i64) -> Result<(), Trouble> {
    let sql = match sweep(inner, loan, epoch).await? {
        None => "UPDATE epoch SET swept = true WHERE id = $1".to_owned(),
        Some(error) => {
            tracing::warn!(
                epoch,
                error,
                "objects of a run that has ended cannot be removed; they are tried again later"
            );
            inner.counters.garbage_failures.fetch_add(1, Ordering::Relaxed);
            format!("UPDATE epoch SET tries = tries + 1, again = {TRY_AGAIN} WHERE id = $1")
        }
    };
    inner.source.pool.tell(loan, &sql, &[&epoch]).await.map(|_| ())
}

/// Removes what a run wrote and never stored. Returns what kept it from removing all.
async fn sweep(inner: &Inner, loan: &Loan, epoch: i64) -> Result<Option<String>, Trouble> {
    let store = &inner.source.store;
    let prefix = format!("{epoch:016x}/");
    let (mut after, mut error) = (String::new(), None);
    loop {
        let names = match store.list(&prefix, &after).await {
            Ok(names) => names,
            Err(error) => return Ok(Some(error.to_string())),
        };
        let Some(last) = names.last().cloned() else { return Ok(error) };
        let sql = "SELECT object FROM extent WHERE object = ANY ($1::text[])";
        let rows = inner.source.pool.ask(loan, sql, &[&names]).await?;
        let stored: HashSet<String> = rows.iter().map(|row| row.get(0)).collect();
        let orphans = names.into_iter().filter(|name| !stored.contains(name));
        let orphans: Vec<Item> = orphans.map(|name| Item { id: epoch, objects: vec![name] }).collect();
        let count = orphans.len();
        let removed = remove_objects(&**store, orphans).await;
        inner.counters.orphans_removed.fetch_add(removed.gone.len() as u64, Ordering::Relaxed);
        let was_left_alone = removed.gone.len() + removed.stuck.len() < count;
        if let Some((item, why)) = removed.stuck.first() {
            error = Some(format!("{why} ({})", item.objects.join(", ")));
        }
        if was_left_alone {
            return Ok(error);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use engine::BoxFuture;
    use std::ops::Range;
    use std::sync::atomic::AtomicUsize;

    /// Removes one object at a time, a few of them, and is busy from then on.
    #[derive(Debug, Default)]
    struct Tired(AtomicUsize);

    const REMOVED_AT_FIRST: usize = 2;

    impl ByteStore for Tired {
        fn put<'a>(&'a self, _: &'a str, _: Vec<Bytes>) -> BoxFuture<'a, Result<(), EngineError>> {
            Box::pin(async { Err(EngineError::Busy) })
        }

        fn get<'a>(&'a self, _: &'a str, _: Range<u64>) -> BoxFuture<'a, Result<Bytes, EngineError>> {
            Box::pin(async { Err(EngineError::Busy) })
        }

        fn delete(&self, names: Vec<String>) -> BoxFuture<'_, Result<(), EngineError>> {
            let is_one = names.len() == 1;
            let is_done = is_one && self.0.fetch_add(1, Ordering::Relaxed) < REMOVED_AT_FIRST;
            Box::pin(async move { if is_done { Ok(()) } else { Err(EngineError::Busy) } })
        }

        fn list<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<Vec<String>, EngineError>> {
            Box::pin(async { Err(EngineError::Busy) })
        }
    }

    /// Each try may take as long as the store's patience: a round must not do that for every object.
    #[tokio::test]
    async fn a_store_that_becomes_busy_half_way_is_left_alone() {
        let (store, count) = (Tired::default(), 100);
        let item = |id: i64| Item { id, objects: vec![id.to_string()] };
        let removed = remove_objects(&store, (0..count).map(item).collect()).await;
        assert_eq!((removed.gone.len(), removed.stuck.len()), (REMOVED_AT_FIRST, BUSY_MAX));
        assert_eq!(store.0.into_inner(), REMOVED_AT_FIRST + BUSY_MAX);
    }

    /// Looks every three seconds at a run that said something last at `said`; the seconds after which it has ended.
    fn ends_after(silence: &mut Silence, begin: Instant, is_heard: bool, said: u64) -> Option<u64> {
        let said = SystemTime::UNIX_EPOCH + Duration::from_secs(said);
        let at = |seconds| begin + Duration::from_secs(seconds);
        (0..100).map(|look| look * 3).find(|seconds| !silence.look(at(*seconds), is_heard, &[(7, said)]).is_empty())
    }

    #[test]
    fn a_run_ends_when_it_was_watched_saying_nothing() {
        let begin = Instant::now();
        assert_eq!(ends_after(&mut Silence::default(), begin, true, 1), Some(ENDED_AFTER.as_secs()));
        assert_eq!(
            ends_after(&mut Silence::default(), begin, false, 1),
            None,
            "a node that is not heard does not judge"
        );
    }

    #[test]
    fn who_did_not_look_or_heard_something_begins_anew() {
        let (begin, mut silence) = (Instant::now(), Silence::default());
        let at = |seconds| begin + Duration::from_secs(seconds);
        let said = |seconds| [(7, SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))];
        assert_eq!(silence.look(at(0), true, &said(1)), [0; 0]);
        assert_eq!(silence.look(at(600), true, &said(1)), [0; 0], "the database was away");
        assert_eq!(silence.look(at(620), true, &[]), [0; 0], "it is back");
        assert_eq!(silence.look(at(640), true, &said(2)), [0; 0]);
        assert_eq!(silence.look(at(665), true, &said(3)), [0; 0], "it said something");
        assert_eq!(silence.look(at(690), true, &said(3)), [0; 0]);
        assert_eq!(silence.look(at(715), true, &said(3)), [0; 0]);
        assert_eq!(silence.look(at(725), true, &said(3)), [7]);
    }
}
