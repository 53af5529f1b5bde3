//! Nodes that are silent, slow or in each other's way: what one of them suffers from the others must not last, and what it
//! holds must stay its own.

mod common;
#[path = "../../../tests/harness/standby.rs"]
mod standby;

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use common::acts::{count, increment, key, number, open_content, put, stage, store, try_to_stage};
use common::proxy::Proxy;
use engine::byte_store::ByteStore;
use engine::memory::MemoryBytes;
use engine::{BoxFuture, Changes, Commit, ContentId, Engine, EngineError, NotCommitted, Timestamp, Visit, space};
use engine_postgres::{Options, PostgresEngine};
use standby::StalledStandbys;

/// Generous: only against hanging. What cannot be removed is tried again after up to two minutes here.
const PATIENCE: Duration = Duration::from_secs(300);

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

async fn sql(url: &str, options: &Options, sql: &str) {
    let sql = format!("SET search_path = {}; {sql}", options.schema);
    connect(url).await.batch_execute(&sql).await.expect("it is done");
}

async fn drop_content(engine: &dyn Engine, id: ContentId, owner: u64) {
    engine::commit::<_, Infallible, _>(engine, key("drop"), move |_, tick| {
        let mut changes = Changes::none();
        changes.unrefer(space::CONTENT, id.0, owner, tick.now);
        Ok(Commit { changes, outcome: () })
    })
    .await
    .expect("unreferred");
    while engine::collector::sweep(engine, &[]).await != Ok(0) {}
}

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Waits on a worker of the runtime, as a function does that takes long. The others must not wait with it: the worker may be the one
/// that listens for all of them.
fn wait_while(mut goes_on: impl FnMut() -> bool) {
    tokio::task::block_in_place(|| {
        while goes_on() {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

fn stand_still(time: Duration) {
    tokio::task::block_in_place(|| std::thread::sleep(time));
}

fn since_1970(time: Timestamp) -> Duration {
    Duration::from_nanos((time.0 - Timestamp::UNIX_EPOCH.0) * 100)
}

/// The answers of nodes that say that they live wait for the standby, and are old when they arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_standby_moves_no_clock() {
    let Some(server) = common::Server::start("test-postgres", &["--standby", "fsync=off"]) else { return };
    let url = server.address.as_str();
    let options = common::fresh(url).await;
    let node = common::open(url, Arc::new(MemoryBytes::default()), &options).await;
    // Behind by what opening took is fine; the machine's clock is the database's, too.
    let behind = |node: &PostgresEngine| {
        let real = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        real.saturating_sub(since_1970(node.now()))
    };
    let mut stalled = Some(StalledStandbys::of(url));
    let (began, mut before) = (Instant::now(), node.now());
    while began.elapsed() < Duration::from_secs(9) {
        if began.elapsed() > Duration::from_secs(5) {
            stalled = None;
        }
        let now = node.now();
        assert!(now >= before, "the clock went back by {} ms", (before.0 - now.0) / 10_000);
        before = now;
        assert!(behind(&node) < Duration::from_secs(1), "the clock is {:?} behind", behind(&node));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(stalled);
}

/// A server takes over whose clock is behind: the time of no node goes back, and a node that starts then has the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_clock_is_behind_is_told_the_time() {
    let Some(url) = common::postgres() else { return };
    let (options, objects) = (common::fresh(url).await, Arc::new(MemoryBytes::default()));
    // As if the clock of the server so far were ten seconds ahead of that of the next.
    sql(url, &options, "UPDATE state SET ahead = '10 seconds'").await;
    let old = common::open(url, objects.clone(), &options).await;
    sql(url, &options, "UPDATE state SET ahead = '0'").await;
    let before = old.now();
    let decided = engine::commit::<_, Infallible, _>(&*old, key("t"), |rows, tick| {
        rows.get(&key("t"))?;
        Ok(Commit::unchanged(tick.now))
    });
    assert!(decided.await.expect("a tick") >= before, "a decision went back");
    let new = common::open(url, objects, &options).await;
    let (early, late) = (new.now(), old.now());
    assert!(
        early.plus_seconds(1) > late,
        "the node that starts now is behind by {:?}",
        since_1970(late) - since_1970(early)
    );
}

/// After a fail-over all nodes were silent, and the first that is back must not think that it is alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_reads_stays_while_it_cannot_be_heard() {
    let Some(url) = common::postgres() else { return };
    let (options, objects) = (common::fresh(url).await, Arc::new(MemoryBytes::default()));
    let proxy = Proxy::start(url).await;
    let one = common::open(url, objects.clone(), &options).await;
    let cut_off = common::open(&proxy.url(url), objects.clone(), &options).await;
    let staged = stage(&*one, 9_000_000).await;
    store(&*one, &staged, 1).await.expect("stored");
    let content = open_content(&*cut_off, staged.id()).await.expect("open");
    assert_eq!(content.read(0, 100).await.map(|bytes| bytes.len()), Ok(100), "it knows where the bytes are");
    proxy.set_away(true);
    tokio::time::sleep(Duration::from_secs(1)).await;
    sql(url, &options, "UPDATE node SET expires = clock_timestamp() - interval '1 second'").await;
    drop_content(&*one, staged.id(), 1).await;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(12) {
        one.collect_now().await.expect("a round");
        assert_eq!(objects.count(), 2, "the bytes are gone");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    proxy.set_away(false);
    drop(content);
    eventually("the bytes go", async || objects.count() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn a_node_is_heard_while_all_its_connections_are_busy() {
    let Some(url) = common::postgres() else { return };
    // One connection beside the one by which it is heard.
    let options = Options { connections: 2, ..common::fresh(url).await };
    let node = common::open(url, Arc::new(MemoryBytes::default()), &options).await;
    put(&*node, &key("a"), "a").await;
    let (is_busy, may_end) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (busy, ending, reader) = (Arc::clone(&is_busy), Arc::clone(&may_end), Arc::clone(&node));
    let read = tokio::spawn(async move {
        engine::read::<_, Infallible, _>(&*reader, move |rows, _| {
            rows.get(&key("a"))?;
            // With a snapshot, and the connection that it needs.
            busy.store(true, Ordering::Release);
            wait_while(|| !ending.load(Ordering::Acquire));
            Ok(())
        })
        .await
    });
    eventually("the connection is taken", async || is_busy.load(Ordering::Acquire)).await;
    let client = connect(url).await;
    let sql = format!("SELECT max(said_at) FROM {}.node", options.schema);
    let said = async || client.query_one(&sql, &[]).await.expect("an answer").get::<_, SystemTime>(0);
    // Twice: one beat may have been under way.
    for _ in 0..2 {
        let before = said().await;
        eventually("it is heard", async || said().await > before).await;
    }
    may_end.store(true, Ordering::Release);
    // A connection that was idle for so long may have been cut off; then it was read again.
    read.await.expect("no panic").expect("read");
}

/// Every batch has a connection and needs a stamp that must be asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_do_not_wait_for_each_others_connections() {
    let Some(url) = common::postgres() else { return };
    let options = Options { connections: 4, ..common::fresh(url).await };
    let objects = Arc::new(MemoryBytes::default());
    let (node, other) =
        (common::open(url, objects.clone(), &options).await, common::open(url, objects, &options).await);
    for round in 1..=3 {
        // The stamps that the node has are all too old now. It learns so with the first row that it reads.
        assert_eq!(other.advance_clock(3_600).await, Ok(3_600 * round));
        let tasks = (0..40).map(|number| {
            let node = Arc::clone(&node);
            tokio::spawn(async move { increment(&*node, &format!("row{number}")).await })
        });
        for task in tasks.collect::<Vec<_>>() {
            let (value, _) = task.await.expect("no panic").expect("none of them is told that the server is busy");
            assert_eq!(value, round);
        }
    }
}

/// Panics when it is dropped.
struct PanicsAtItsEnd;

impl Drop for PanicsAtItsEnd {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "on purpose, in a test");
    }
}

/// A panic where none is expected, outside of what decisions say: the caller is told that it failed, and the partition is not
/// closed to later decisions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_in_the_work_on_a_partition_does_not_stop_it() {
    let Some(url) = common::postgres() else { return };
    let options = common::fresh(url).await;
    let node = common::open(url, Arc::new(MemoryBytes::default()), &options).await;
    for _ in 0..2 {
        let panics = PanicsAtItsEnd;
        let panicked = engine::commit::<_, Infallible, _>(&*node, key("p"), move |_, _| {
            let _ = &panics;
            Ok(Commit::unchanged(()))
        });
        let _ = tokio::time::timeout(PATIENCE, panicked).await.expect("an answer, whatever it says");
        let next = tokio::time::timeout(PATIENCE, increment(&*node, "p")).await.expect("its turn comes");
        next.expect("the next one is served");
    }
    assert_eq!(figure(&*node, "waiting"), 0);
    tokio::time::timeout(PATIENCE, node.close()).await.expect("it ends").expect("closed");
}

/// An upload through a node that has ended cannot be committed; decisions that wait beside it are not affected.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_that_the_database_refuses_fails_alone() {
    let Some(url) = common::postgres() else { return };
    let options = common::fresh(url).await;
    let node = common::open(url, Arc::new(MemoryBytes::default()), &options).await;
    let staged = stage(&*node, 200_000).await;
    sql(url, &options, "UPDATE epoch SET ended = true").await;
    let slow = Arc::clone(&node);
    let slow = tokio::spawn(async move {
        engine::commit::<_, Infallible, _>(&*slow, key("p"), |_, _| {
            // So long that all others gather behind it, and are one batch.
            stand_still(Duration::from_millis(500));
            Ok(Commit::unchanged(()))
        })
        .await
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let tasks = (0..60_u64).map(|number| {
        let (node, staged) = (Arc::clone(&node), staged.clone());
        tokio::spawn(async move {
            let committed = engine::commit::<_, Infallible, _>(&*node, key("p"), move |_, _| {
                let mut changes = Changes::none();
                changes.put(key(&format!("p{number}")), "there");
                if number == 41 {
                    changes.store(&staged, 1);
                }
                Ok(Commit { changes, outcome: () })
            });
            (number, committed.await)
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        let (number, committed) = task.await.expect("no panic");
        match number {
            41 => assert!(matches!(committed, Err(NotCommitted::Failed(EngineError::Unavailable(_))))),
            _ => assert_eq!(committed, Ok(()), "request {number}"),
        }
    }
    assert_eq!(slow.await.expect("no panic"), Ok(()));
}

/// Each of two commits changes what the other one has read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_cross_do_not_lock_each_other_out() {
    let Some(url) = common::postgres() else { return };
    connect(url).await.batch_execute("CREATE DATABASE crossing").await.expect("a database of its own, for its figures");
    let url = &url.replacen("/postgres?", "/crossing?", 1);
    let (options, objects) = (common::fresh(url).await, Arc::new(MemoryBytes::default()));
    let nodes = [common::open(url, objects.clone(), &options).await, common::open(url, objects, &options).await];
    const PAIRS: usize = 20;
    for row in 0..2 * PAIRS {
        put(&*nodes[0], &key(&format!("{row:02}")), "0").await;
    }
    let copies = (0..2 * PAIRS).map(|row| {
        let node = Arc::clone(&nodes[row % 2]);
        let (from, to) = (key(&format!("{row:02}")), key(&format!("{:02}", row ^ 1)));
        tokio::spawn(async move {
            for _ in 0..15 {
                let (from, to) = (from.clone(), to.clone());
                engine::commit::<_, Infallible, _>(&*node, to.clone(), move |rows, _| {
                    rows.get(&to)?;
                    let mut changes = Changes::none();
                    changes.put(to.clone(), rows.get(&from)?.unwrap_or_default());
                    Ok(Commit { changes, outcome: () })
                })
                .await
                .expect("a copy");
            }
        })
    });
    for copy in copies.collect::<Vec<_>>() {
        copy.await.expect("all copies are made");
    }
    // Servers of connections tell their figures when they end.
    for node in nodes {
        node.close().await.expect("closed");
    }
    let sql = "SELECT numbackends, deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let client = connect(url).await;
    eventually("the connections end", async || {
        client.query_one(sql, &[]).await.expect("figures").get::<_, i32>(0) == 1
    })
    .await;
    let deadlocks: i64 = client.query_one(sql, &[]).await.expect("figures").get(1);
    assert_eq!(deadlocks, 0, "each of them costs a second");
}

/// Writers that write rows without a pause, each in a partition of its own, until they are stopped.
struct Others {
    stop: Arc<AtomicBool>,
    /// How often the first of them has written.
    written: Arc<AtomicU64>,
    writers: Vec<tokio::task::JoinHandle<u64>>,
}

impl Others {
    fn write(node: &Arc<PostgresEngine>, rows: &'static [&'static str]) -> Others {
        let (stop, first) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let writer = |(number, row): (usize, &'static str)| {
            let (node, stop, first) = (Arc::clone(node), Arc::clone(&stop), Arc::clone(&first));
            tokio::spawn(async move {
                let mut written = 0;
                while !stop.load(Ordering::Acquire) {
                    increment(&*node, row).await.expect("no writer is told that the server is busy");
                    written += 1;
                    if number == 0 {
                        first.store(written, Ordering::Release);
                    }
                }
                written
            })
        };
        let writers = rows.iter().copied().enumerate().map(writer).collect();
        Others { stop, written: first, writers }
    }

    /// For a function that has read the first row: waits until it has been written since, or `most` have passed.
    fn wait_for_a_write(written: &AtomicU64, most: Duration) {
        let (began, before) = (Instant::now(), written.load(Ordering::Acquire));
        // Of two that end after the read, the second began after it.
        wait_while(|| written.load(Ordering::Acquire) < before + 2 && began.elapsed() < most);
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Release);
        for writer in self.writers {
            assert!(writer.await.expect("a writer") > 0);
        }
    }
}

/// A decision that takes longer than others leave what it reads alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_decision_that_keeps_losing_gets_its_turn() {
    let Some(url) = common::postgres() else { return };
    let options = common::fresh(url).await;
    let node = common::open(url, Arc::new(MemoryBytes::default()), &options).await;
    let others = Others::write(&node, &["a", "b", "c"]);
    let written = Arc::clone(&others.written);
    eventually("they write", async || count(&*node, "c").await > 0).await;
    let decided = engine::commit::<_, Infallible, _>(&*node, key("slow"), move |rows, _| {
        let seen = number(rows.get(&key("a"))?.as_ref());
        let mut there = 0;
        rows.scan(&key("b"), &key("d"), 3, &mut |_, _| {
            there += 1;
            Visit::Next
        })?;
        // In its turn no other decision writes.
        Others::wait_for_a_write(&written, Duration::from_millis(500));
        let mut changes = Changes::none();
        changes.put(key("slow"), "done");
        Ok(Commit { changes, outcome: (seen, there) })
    })
    .await;
    let at_most = count(&*node, "a").await;
    others.end().await;
    let (seen, there) = decided.expect("it gets its turn");
    assert!((1..=at_most).contains(&seen) && there == 2);
    assert!(figure(&*node, "conflicts") > 0, "nothing was in its way: this shows nothing");
}

/// All others wait for a node in its turn, but not for one that stands still.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_node_that_is_stopped_in_its_turn_is_not_waited_for() {
    let Some(url) = common::postgres() else { return };
    let (options, objects) = (common::fresh(url).await, Arc::new(MemoryBytes::default()));
    let (stopped, node) =
        (common::open(url, objects.clone(), &options).await, common::open(url, objects, &options).await);
    let others = Others::write(&node, &["a", "b"]);
    let written = Arc::clone(&others.written);
    eventually("they write", async || count(&*node, "b").await > 0).await;
    let mut runs = 0;
    let decided = engine::commit::<_, Infallible, _>(&*stopped, key("slow"), move |rows, _| {
        rows.get(&key("a"))?;
        runs += 1;
        // It loses four times; then all others wait, and it stands still.
        match runs {
            ..=4 => Others::wait_for_a_write(&written, PATIENCE),
            5.. => stand_still(Duration::from_secs(15)),
        }
        let mut changes = Changes::none();
        changes.put(key("slow"), "done");
        Ok(Commit { changes, outcome: runs })
    })
    .await;
    let before = count(&*node, "a").await;
    eventually("they go on", async || count(&*node, "a").await > before).await;
    others.end().await;
    // It was cut off, and others have written since. Whether it knows before it sends its commit is a matter of luck.
    assert!(
        matches!(decided, Err(NotCommitted::Failed(EngineError::Busy | EngineError::Unavailable(_)))),
        "{decided:?}"
    );
    assert_eq!(count(&*node, "slow").await, 0, "nothing was done");
}

/// A node stands still between a decision and its commit, for longer than the names of commits are kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_that_comes_too_late_is_decided_anew() {
    let Some(url) = common::postgres() else { return };
    let options = common::fresh(url).await;
    let node = common::open(url, Arc::new(MemoryBytes::default()), &options).await;
    let before = node.now();
    let (is_decided, may_commit) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (deciding, waiting, late) = (Arc::clone(&is_decided), Arc::clone(&may_commit), Arc::clone(&node));
    let commit = tokio::spawn(async move {
        // It reads nothing, so nothing tells it that time has passed.
        engine::commit::<_, Infallible, _>(&*late, key("late"), move |_, tick| {
            deciding.store(true, Ordering::Release);
            wait_while(|| !waiting.load(Ordering::Acquire));
            let mut changes = Changes::none();
            changes.put(key("late"), "late");
            Ok(Commit { changes, outcome: tick })
        })
        .await
    });
    eventually("it is decided", async || is_decided.load(Ordering::Acquire)).await;
    sql(url, &options, "UPDATE state SET ahead = '1 hour'").await;
    may_commit.store(true, Ordering::Release);
    let tick = commit.await.expect("no panic").expect("decided anew");
    assert!(tick.now > before.plus_seconds(3_500) && tick.stamp > before.plus_seconds(3_500), "an hour ago");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_together_check_the_store_without_harm() {
    let Some(server) = common::Server::start("test-s3", &[]) else { return };
    let address = format!("s3://lazurite/together?endpoint={}&region=us-east-1", server.address);
    let credentials =
        engine_s3::Credentials { access_key_id: "lazurite".into(), secret_access_key: "lazurite-secret".into() };
    let store = engine_s3::open(&address.parse().expect("an address"), Some(&credentials)).expect("a store");
    let nodes = (0..8).map(|_| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for round in 0..10 {
                assert_eq!(store.check().await, Ok(()), "round {round}");
            }
        })
    });
    for node in nodes.collect::<Vec<_>>() {
        node.await.expect("the store is fine");
    }
    assert_eq!(store.list("check", "").await, Ok(Vec::new()), "nothing stays");
}

/// Refuses to remove objects that hold this many bytes.
#[derive(Debug, Default)]
struct Stubborn {
    objects: MemoryBytes,
    refused: Mutex<HashSet<String>>,
    is_stubborn: std::sync::atomic::AtomicBool,
}

const REFUSED_BYTES: usize = 123_456;

impl Stubborn {
    fn relent(&self) {
        self.is_stubborn.store(false, std::sync::atomic::Ordering::Release);
    }

    fn new() -> Stubborn {
        Stubborn { is_stubborn: true.into(), ..Stubborn::default() }
    }
}

impl ByteStore for Stubborn {
    fn put<'a>(&'a self, name: &'a str, pieces: Vec<Bytes>) -> BoxFuture<'a, Result<(), EngineError>> {
        if pieces.iter().map(Bytes::len).sum::<usize>() == REFUSED_BYTES {
            self.refused.lock().expect("no panic").insert(name.to_owned());
        }
        self.objects.put(name, pieces)
    }

    fn get<'a>(&'a self, name: &'a str, range: Range<u64>) -> BoxFuture<'a, Result<Bytes, EngineError>> {
        self.objects.get(name, range)
    }

    fn delete(&self, names: Vec<String>) -> BoxFuture<'_, Result<(), EngineError>> {
        let refused = self.refused.lock().expect("no panic").clone();
        let is_stubborn = self.is_stubborn.load(std::sync::atomic::Ordering::Acquire);
        if is_stubborn && names.iter().any(|name| refused.contains(name)) {
            return Box::pin(async { Err(EngineError::Unavailable("access denied".into())) });
        }
        self.objects.delete(names)
    }

    fn list<'a>(&'a self, prefix: &'a str, after: &'a str) -> BoxFuture<'a, Result<Vec<String>, EngineError>> {
        self.objects.list(prefix, after)
    }
}

fn figure(engine: &dyn Engine, name: &str) -> u64 {
    engine.figures().into_iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| value)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_removed_keeps_nothing_else_from_going() {
    let Some(url) = common::postgres() else { return };
    let (options, objects) = (common::fresh(url).await, Arc::new(Stubborn::new()));
    let dead = common::open(url, objects.clone(), &options).await;
    // Uploads of a node that ends before they are stored, and contents that are dropped: of each one that cannot go.
    let uploads = [stage(&*dead, REFUSED_BYTES).await, stage(&*dead, 200_000).await];
    let node = common::open(url, objects.clone(), &options).await;
    for (owner, bytes) in [(1, REFUSED_BYTES), (2, 300_000), (3, REFUSED_BYTES)] {
        let staged = stage(&*node, bytes).await;
        store(&*node, &staged, owner).await.expect("stored");
        drop_content(&*node, staged.id(), owner).await;
    }
    assert_eq!(objects.objects.count(), 5);
    dead.close().await.expect("closed");
    eventually("what can go is gone", async || objects.objects.count() == 3).await;
    assert!(figure(&*node, "garbage_failures") >= 3, "it is counted");
    // What comes later goes as well, and another run is looked at.
    let late = stage(&*node, 400_000).await;
    store(&*node, &late, 4).await.expect("stored");
    drop_content(&*node, late.id(), 4).await;
    let next = common::open(url, objects.clone(), &options).await;
    let orphan = stage(&*next, 500_000).await;
    next.close().await.expect("closed");
    eventually("what comes later is gone", async || objects.objects.count() == 3).await;
    // And when it can be removed, it is.
    objects.relent();
    eventually("all is gone", async || objects.objects.count() == 0).await;
    drop((uploads, orphan));
}

/// What a Put Blob and a Get Blob do: a container, then the blob in it, then the commit, or the content.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_costs_one_round_trip_and_one_for_each_row_that_leads_to_another() {
    const ROUNDS: u64 = 50;
    /// Beats and collections may come between: so many a second at most.
    const OTHERS_PER_SECOND: u64 = 10;
    let Some(url) = common::postgres() else { return };
    let options = common::fresh(url).await;
    let node = common::open(url, Arc::new(MemoryBytes::default()), &options).await;
    let (container, blob) = (key("container"), key("blob"));
    put(&*node, &container, "c").await;
    let staged = stage(&*node, 1_000).await;
    store(&*node, &staged, 1).await.expect("stored");
    let (began, before) = (Instant::now(), figure(&*node, "round_trips"));
    for _ in 0..ROUNDS {
        let (container, blob) = (container.clone(), blob.clone());
        engine::commit::<_, Infallible, _>(&*node, blob.clone(), move |rows, _| {
            rows.get(&container)?;
            rows.get(&blob)?;
            let mut changes = Changes::none();
            changes.put(blob.clone(), "b");
            Ok(Commit { changes, outcome: () })
        })
        .await
        .expect("put");
    }
    let between = figure(&*node, "round_trips");
    for _ in 0..ROUNDS {
        let (container, blob, id) = (container.clone(), blob.clone(), staged.id());
        let content = engine::read::<_, Infallible, _>(&*node, move |rows, _| {
            rows.get(&container)?;
            rows.get(&blob)?;
            Ok(rows.content(id)?)
        });
        assert_eq!(content.await.expect("open").read(0, 1_000).await.map(|bytes| bytes.len()), Ok(1_000));
    }
    let after = figure(&*node, "round_trips");
    eprintln!("round trips of {ROUNDS}: put {}, get {}", between - before, after - between);
    let others = OTHERS_PER_SECOND * (2 + began.elapsed().as_secs());
    assert!(between - before <= 3 * ROUNDS + others && after - between <= 3 * ROUNDS + others);
}

/// A node whose slot was given to another, while all slots are taken, has no name to upload under.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_a_place_writes_no_objects() {
    let Some(url) = common::postgres() else { return };
    let (options, objects) = (common::fresh(url).await, Arc::new(MemoryBytes::default()));
    let node = common::open(url, objects.clone(), &options).await;
    sql(url, &options, "UPDATE node SET epoch = 999, expires = 'infinity'").await;
    assert!(node.collect_now().await.is_err(), "it notices");
    let upload = async || try_to_stage(&*node, 200_000).await;
    assert_eq!(upload().await.map(|_| ()), Err(EngineError::Busy));
    assert_eq!(objects.count(), 0, "no node would ever remove it");
    sql(url, &options, "UPDATE node SET epoch = 0, expires = '-infinity' WHERE slot = 3").await;
    eventually("it finds another place", async || upload().await.is_ok()).await;
}

/// The tables of every earlier version that was given out.
const VERSION_3: [&str; 3] = [
    include_str!("../src/schema/0001.sql"),
    include_str!("../src/schema/0002.sql"),
    include_str!("../src/schema/0003.sql"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn earlier_tables_are_brought_up_to_date_when_no_node_runs() {
    let Some(url) = common::postgres() else { return };
    let options = Options { schema: "version_3".into(), connections: 4, ..Options::default() };
    let client = connect(url).await;
    client.batch_execute("CREATE SCHEMA version_3; SET search_path = version_3").await.expect("a schema");
    client.batch_execute("CREATE TABLE schema_version (version bigint NOT NULL)").await.expect("a table");
    for (number, tables) in (1_i64..).zip(VERSION_3) {
        client.batch_execute(tables).await.expect("tables");
        client.execute("INSERT INTO schema_version VALUES ($1)", &[&number]).await.expect("noted");
    }
    // What a node of that version has left, and one that runs.
    let value = [&7_u64.to_be_bytes()[..], common::proxy::MARK].concat();
    let entry = "INSERT INTO entry (head, disc, rest, version, value) VALUES ($1, '', '', 1, $2)";
    client.execute(entry, &[&key("a").as_bytes(), &value]).await.expect("a row");
    client.batch_execute("SELECT claim_slot('15 seconds')").await.expect("a node runs");
    let refused = engine_postgres::migrate(url, &options).await;
    assert!(refused.as_ref().is_err_and(|error| error.contains("nodes still run (1)")), "{refused:?}");
    let version: i64 = client.query_one("SELECT max(version) FROM schema_version", &[]).await.expect("one").get(0);
    assert_eq!(version, 3, "nothing was changed");
    client.batch_execute("UPDATE node SET expires = '-infinity'").await.expect("it has left");
    assert_eq!(engine_postgres::migrate(url, &options).await, Ok((3, 4)));
    let node = common::open(url, Arc::new(MemoryBytes::default()), &options).await;
    assert_eq!(count(&*node, "a").await, 7);
    assert_eq!(increment(&*node, "a").await.map(|(value, _)| value), Ok(8));
    assert_eq!(engine_postgres::migrate(url, &options).await, Ok((4, 4)), "nothing to do is no reason to refuse");
    // Tables of a later version: a node that has lost its slot finds out before it goes on.
    sql(url, &options, "INSERT INTO schema_version VALUES (5); UPDATE node SET epoch = 0, expires = '-infinity'").await;
    let lost = node.collect_now().await;
    assert!(matches!(&lost, Err(EngineError::Unavailable(why)) if why.contains("newer")), "{lost:?}");
}
