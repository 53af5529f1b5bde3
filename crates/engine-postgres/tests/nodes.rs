//! Several nodes over one database, a database that goes away, connections that break: what only this engine has to bear.

mod common;

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use engine::memory::MemoryBytes;
use engine::{Changes, Commit, Engine, EngineError, Key, NotCommitted, Stop, Visit, space};
use engine_postgres::{Options, PostgresEngine, Setting};

use common::acts::{count, increment, key, open_content, put, stage, store, try_to_stage};
use common::proxy::Proxy;

/// Generous: only against hanging.
const PATIENCE: Duration = Duration::from_secs(300);

async fn two_nodes(url: &str) -> [Arc<PostgresEngine>; 2] {
    let (options, store) = (common::fresh(url).await, Arc::new(MemoryBytes::default()));
    [common::open(url, store.clone(), &options).await, common::open(url, store, &options).await]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_decision_of_two_nodes_sees_those_before_it() {
    let Some(url) = common::postgres() else { return };
    let nodes = two_nodes(url).await;
    let mut tasks = Vec::new();
    for task in 0..8 {
        let node = Arc::clone(&nodes[task % 2]);
        tasks.push(tokio::spawn(async move {
            let mut seen = Vec::new();
            for _ in 0..25 {
                seen.push(increment(&*node, "counter").await.expect("an increment"));
            }
            seen
        }));
    }
    let mut seen = Vec::new();
    for task in tasks {
        seen.extend(task.await.expect("a writer"));
    }
    seen.sort_unstable();
    assert_eq!(seen.iter().map(|(value, _)| *value).collect::<Vec<_>>(), (1..=200).collect::<Vec<_>>());
    assert!(seen.is_sorted_by_key(|(_, stamp)| *stamp), "stamps rise with the values");
    assert_eq!(count(&*nodes[1], "counter").await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_node_acknowledged_the_other_sees() {
    let Some(url) = common::postgres() else { return };
    let nodes = two_nodes(url).await;
    for round in 1..=50 {
        increment(&*nodes[round % 2], "a").await.expect("an increment");
        assert_eq!(count(&*nodes[(round + 1) % 2], "a").await, round as u64);
    }
    let before = nodes[1].now();
    assert_eq!(nodes[0].advance_clock(3_600).await, Ok(3_600));
    let (now, stamp) = engine::commit::<_, Infallible, _>(&*nodes[1], key("b"), |rows, tick| {
        rows.get(&key("b"))?;
        Ok(Commit::unchanged((tick.now, tick.stamp)))
    })
    .await
    .expect("a tick");
    assert!(now >= before.plus_seconds(3_600) && stamp >= before.plus_seconds(3_600), "all nodes have the clock");
    assert_eq!(nodes[1].advance_clock(1).await, Ok(3_601));
}

/// A guard in another partition: of a change of the guard and a commit that relies on it, the later one sees the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_holds_over_nodes() {
    let Some(url) = common::postgres() else { return };
    let nodes = two_nodes(url).await;
    for round in 0..20_u32 {
        let guard = key(&format!("guard{round}"));
        put(&*nodes[0], &guard, "open").await;
        let (closing, entering) = (guard.clone(), guard.clone());
        let entered = key(&format!("entered{round}"));
        let inside = entered.clone();
        let close = engine::commit::<_, Infallible, _>(&*nodes[0], guard.clone(), move |rows, _| {
            // The decision that closes must see every entry: a range, which cannot be locked.
            let mut there = 0;
            rows.scan(&inside, &inside.after_all(), 1, &mut |_, _| {
                there += 1;
                Visit::Next
            })?;
            let mut changes = Changes::none();
            changes.put(closing.clone(), "closed");
            Ok(Commit { changes, outcome: there })
        });
        let enter = engine::commit::<_, (), _>(&*nodes[1], entered.clone(), move |rows, _| {
            match rows.get(&entering)?.as_deref() {
                Some(b"open") => {}
                _ => return Err(Stop::Refused(())),
            }
            let mut changes = Changes::none();
            changes.put(entered.clone(), "x");
            Ok(Commit { changes, outcome: () })
        });
        let (there, entered) = tokio::join!(close, enter);
        assert_eq!(there.expect("closed"), i32::from(entered.is_ok()), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_keys_sort_as_short_ones_do() {
    let Some(url) = common::postgres() else { return };
    let [node, _other] = two_nodes(url).await;
    let stem = "x".repeat(engine::KEY_BYTES_MAX - 10);
    let keys: Vec<Key> =
        ["", "\0", "1", "11", "2", "b", "ba"].iter().map(|last| key(&format!("{stem}{last}"))).collect();
    for key in keys.iter().rev() {
        put(&*node, key, "v").await;
    }
    put(&*node, &key("w"), "before").await;
    put(&*node, &key("y"), "after").await;
    let seen = |from: Key, to: Key| {
        let node = &node;
        async move {
            engine::read::<_, Infallible, _>(&**node, move |rows, _| {
                let mut seen = Vec::new();
                rows.scan(&from, &to, 2, &mut |key, _| {
                    seen.push(Key::from_bytes(key));
                    Visit::Next
                })?;
                Ok(seen)
            })
            .await
            .expect("a scan")
        }
    };
    let all = seen(Key::new(0x70), Key::new(0x71)).await;
    assert_eq!(all[1..8], keys, "whole");
    assert_eq!(seen(keys[2].clone(), keys[5].clone()).await, keys[2..5], "cut within long keys");
    let one = keys[3].clone();
    let found = engine::read::<_, Infallible, _>(&*node, move |rows, _| Ok(rows.get(&one)?)).await.expect("a read");
    assert!(found.is_some());
}

/// A server that takes a connection and says nothing, as a machine does that is gone, does not hide the one behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_says_nothing_is_passed_by() {
    let Some(url) = common::postgres() else { return };
    let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let both = url.replacen('@', &format!("@{},", mute.local_addr().expect("its address")), 1);
    let options = common::fresh(&both).await;
    let node = common::open(&both, Arc::new(MemoryBytes::default()), &options).await;
    increment(&*node, "a").await.expect("an increment");
    assert_eq!(count(&*node, "a").await, 1);
}

/// Commits are cut again and again: before they arrive, right after, and when their answer comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_lost_answers_and_each_commit_is_done_once() {
    const CUTS: u64 = 1_000;
    let Some(url) = common::postgres() else { return };
    let options = Options { patience: Duration::from_secs(30), ..common::fresh(url).await };
    let proxy = Arc::new(Proxy::start(url).await);
    let node = common::open(&proxy.url(url), Arc::new(MemoryBytes::default()), &options).await;
    proxy.cut(CUTS);
    let mut tasks = Vec::new();
    for task in 0..8 {
        let (node, cutting) = (Arc::clone(&node), Arc::clone(&proxy));
        tasks.push(tokio::spawn(async move {
            let (name, mut expected) = (format!("cut{task}"), 0);
            while cutting.cuts() < CUTS {
                expected += 1;
                let (value, _) = increment(&*node, &name).await.expect("an answer");
                assert_eq!(value, expected, "the answer is what is stored");
            }
            assert_eq!(count(&*node, &name).await, expected, "each was done once");
            expected
        }));
    }
    let mut commits = 0;
    for task in tasks {
        commits += task.await.expect("a writer");
    }
    println!("{} cuts in {commits} commits", proxy.cuts());
    assert!(proxy.cuts() >= CUTS && commits > CUTS / 4, "few commits were cut often");
}

/// A node that forbids a commit whose answer got lost, and loses that answer, too, asks again: it must not be told that all was
/// done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_was_forbidden_never_counts_as_done() {
    let Some(url) = common::postgres() else { return };
    let options = common::fresh(url).await;
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("a connection");
    tokio::spawn(connection);
    let names = "INSERT INTO committed (part, stamp, done) VALUES (1, 5, false), (2, 5, true)";
    let names = format!("SET search_path = {}; {names}", options.schema);
    client.batch_execute(&names).await.expect("two names");
    let nothing = ["'{}'"; 37].join(", ");
    for (part, outcome) in [(1, 1), (2, 0)] {
        let again = format!("SELECT outcome FROM commit_batch('{{{part}}}', 5, 5, {nothing})");
        let answer: i32 = client.query_one(&again, &[]).await.expect("an answer").get(0);
        assert_eq!(answer, outcome, "partition {part}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_goes_away_makes_busy_and_comes_back_by_itself() {
    let Some(url) = common::postgres() else { return };
    let options = Options { patience: Duration::from_secs(1), ..common::fresh(url).await };
    let proxy = Proxy::start(url).await;
    let node = common::open(&proxy.url(url), Arc::new(MemoryBytes::default()), &options).await;
    increment(&*node, "a").await.expect("an increment");
    proxy.set_away(true);
    let began = Instant::now();
    assert_eq!(increment(&*node, "a").await, Err(NotCommitted::Failed(EngineError::Busy)));
    let read = engine::read::<_, Infallible, _>(&*node, |rows, _| Ok(rows.get(&key("a"))?)).await;
    assert_eq!(read, Err(NotCommitted::Failed(EngineError::Busy)));
    assert!(began.elapsed() < PATIENCE, "bounded");
    proxy.set_away(false);
    let back = Instant::now();
    while increment(&*node, "a").await.is_err() {
        assert!(back.elapsed() < PATIENCE, "it does not come back");
    }
    assert_eq!(count(&*node, "a").await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_bytes_go_when_no_node_reads_them() {
    let Some(url) = common::postgres() else { return };
    let (options, objects) = (common::fresh(url).await, Arc::new(MemoryBytes::default()));
    let one = common::open(url, objects.clone(), &options).await;
    let two = common::open(url, objects.clone(), &options).await;
    let staged = stage(&*one, 9_000_000).await;
    store(&*one, &staged, 1).await.expect("stored");
    assert_eq!(objects.count(), 2, "two extents");
    let (id, content) = (staged.id(), open_content(&*two, staged.id()).await.expect("open"));
    drop(staged);
    engine::commit::<_, Infallible, _>(&*one, key("u"), move |_, tick| {
        let mut changes = Changes::none();
        changes.unrefer(space::CONTENT, id.0, 1, tick.now);
        Ok(Commit { changes, outcome: () })
    })
    .await
    .expect("unreferred");
    assert_eq!(engine::collector::sweep(&*one, &[]).await, Ok(1));
    assert!(open_content(&*two, id).await.is_err());
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(objects.count(), 2, "the other node still reads");
    assert_eq!(content.read(8_999_990, 100).await.map(|bytes| bytes.len()), Ok(10));
    drop(content);
    let began = Instant::now();
    while objects.count() > 0 {
        assert!(began.elapsed() < PATIENCE, "never removed");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_node_never_stored_is_removed_and_cannot_be_stored_any_more() {
    let Some(url) = common::postgres() else { return };
    let (options, objects) = (common::fresh(url).await, Arc::new(MemoryBytes::default()));
    let dead = common::open(url, objects.clone(), &options).await;
    let kept = stage(&*dead, 200_000).await;
    store(&*dead, &kept, 1).await.expect("stored");
    let staged = stage(&*dead, 200_000).await;
    assert_eq!(objects.count(), 2);
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("a connection");
    tokio::spawn(connection);
    let epoch =
        client.query_one(&format!("SELECT max(epoch) FROM {}.node", options.schema), &[]).await.expect("a node");
    let epoch: i64 = epoch.get(0);
    let silence = format!("UPDATE {}.node SET expires = '-infinity' WHERE epoch = {epoch}", options.schema);
    client.batch_execute(&silence).await.expect("silenced");
    let other = common::open(url, objects.clone(), &options).await;
    // The node that counts as dead goes on beating: the round must come between two of its beats.
    let began = Instant::now();
    while objects.count() > 1 {
        assert!(began.elapsed() < PATIENCE, "never removed");
        client.batch_execute(&silence).await.expect("silenced");
        other.collect_now().await.expect("a round");
    }
    assert_eq!(objects.count(), 1, "what was stored stays");
    assert!(matches!(store(&*dead, &staged, 2).await, Err(NotCommitted::Failed(EngineError::Unavailable(_)))));
    assert!(open_content(&*other, staged.id()).await.is_err());
    assert_eq!(open_content(&*other, kept.id()).await.map(|content| content.length()), Ok(200_000));
    // The node goes on under a new name; until it has one it is busy.
    let again = loop {
        match try_to_stage(&*dead, 200_000).await {
            Ok(staged) if store(&*dead, &staged, 3).await.is_ok() => break staged,
            Ok(_) | Err(EngineError::Busy) => {}
            Err(error) => panic!("an upload failed: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert!(open_content(&*other, again.id()).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_that_is_not_there_is_said_so_and_migrating_twice_is_fine() {
    let Some(url) = common::postgres() else { return };
    let options = Options { schema: "not_migrated".into(), ..Options::default() };
    let store = Arc::new(MemoryBytes::default());
    let refused = PostgresEngine::open(url, store.clone(), options.clone()).await.map(|_| ());
    assert!(refused.unwrap_err().contains("lazurite migrate"));
    assert_eq!(engine_postgres::migrate(url, &options).await, Ok((0, 4)));
    assert_eq!(engine_postgres::migrate(url, &options).await, Ok((4, 4)));
    PostgresEngine::open(url, store, options).await.expect("opened");
    let odd = Options { schema: "a; drop".into(), ..Options::default() };
    assert!(engine_postgres::migrate(url, &odd).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_setting_is_everybodys_at_once() {
    const NAME: &str = "accounts";
    let Some(url) = common::postgres() else { return };
    let options = common::fresh(url).await;
    let node = common::open(url, Arc::new(MemoryBytes::default()), &options).await;
    assert_eq!(node.setting(NAME, 0).await, Ok(None), "it was never set");
    for (text, version) in [("a", 1), ("b", 2)] {
        let edit = engine_postgres::edit_setting(url, &options, NAME).await.expect("an edit");
        assert_eq!(edit.text, if version == 1 { "" } else { "a" });
        assert_eq!(node.setting(NAME, version - 1).await, Ok(None), "it is not written yet");
        edit.put(text).await.expect("written");
        let setting = Setting { version, text: text.to_owned() };
        assert_eq!(node.setting(NAME, version - 1).await, Ok(Some(setting)));
        assert_eq!(node.setting(NAME, version).await, Ok(None));
    }
    drop(engine_postgres::edit_setting(url, &options, NAME).await.expect("an edit"));
    let two = engine_postgres::edit_setting(url, &options, NAME).await.expect("the other one has let go");
    assert_eq!(two.text, "b", "a change that is dropped changes nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_of_many_nodes_never_meet() {
    let Some(url) = common::postgres() else { return };
    let nodes = two_nodes(url).await;
    let mut ids = HashSet::new();
    for _ in 0..200 {
        for node in &nodes {
            let stamp =
                engine::commit::<_, Infallible, _>(&**node, key("t"), |_, tick| Ok(Commit::unchanged(tick.stamp)));
            let stamp = stamp.await.expect("a tick");
            assert!((0..engine::IDS_PER_TICK).all(|n| ids.insert(stamp.0 + n)), "an id came twice");
        }
    }
}

/// An upload that stops in the middle of an extent holds what it has sent, not what it might send.
#[tokio::test(flavor = "multi_thread")]
async fn slow_uploads_do_not_take_all_memory() {
    const EXTENT: usize = 8 << 20;
    let Some(url) = common::postgres() else { return };
    let [one, _two] = two_nodes(url).await;
    let most = Bytes::from(vec![7; EXTENT - 1]);
    let mut slow = Vec::new();
    for _ in 0..66 {
        let mut writer = one.writer(Some(EXTENT as u64));
        let written = tokio::time::timeout(PATIENCE, writer.write(most.clone())).await;
        written.expect("there is memory for a part").expect("written");
        slow.push(writer);
    }
    let staged = tokio::time::timeout(PATIENCE, stage(&*one, EXTENT)).await.expect("there is memory");
    store(&*one, &staged, 1).await.expect("stored");
    let content = open_content(&*one, staged.id()).await.expect("opened");
    assert_eq!(content.length(), EXTENT as u64);
    for mut writer in slow.into_iter().rev().take(3) {
        writer.write(Bytes::from_static(b"7")).await.expect("the rest");
        let staged = writer.finish().await.expect("staged");
        assert_eq!(staged.length(), EXTENT as u64);
    }
}
