//! How often a node asks the database for rows, on a real one.

mod common;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use engine::memory::MemoryBytes;
use engine::{Changes, Commit, Engine, Key, Rows, Unread};
use engine_postgres::PostgresEngine;
use futures_util::future::join_all;

use common::acts::{key, put};

async fn nodes(url: &str) -> [Arc<PostgresEngine>; 2] {
    let (options, store) = (common::fresh(url).await, Arc::new(MemoryBytes::default()));
    [common::open(url, store.clone(), &options).await, common::open(url, store, &options).await]
}

fn loads(node: &PostgresEngine) -> u64 {
    node.figures().iter().find(|(name, _)| *name == "loads").expect("a figure").1
}

fn row(number: u64) -> Key {
    Key::new(0x70).text("row").number(number)
}

/// Changes the row `number` of a partition that all of them share.
async fn change(node: &PostgresEngine, number: u64) {
    engine::commit::<(), Infallible, _>(node, key("partition"), move |rows, _| {
        let before = rows.get(&row(number))?.map_or(0, |row| row[0]);
        let mut changes = Changes::none();
        changes.put(row(number), vec![before + 1]);
        Ok(Commit { changes, outcome: () })
    })
    .await
    .expect("a commit");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_that_wait_together_load_together() {
    let Some(url) = common::postgres() else { return };
    let [node, _] = nodes(url).await;
    for round in 1..=2 {
        let before = loads(&node);
        join_all((0..100).map(|number| change(&node, number))).await;
        let loads = loads(&node) - before;
        // The first is under way when the others come; how many batches those make is a matter of time.
        assert!(loads <= 20, "{loads} loads for 100 decisions");
        let seen = engine::read::<_, Infallible, _>(&*node, |rows, _| {
            Ok((0..100).map(|number| rows.get(&row(number))).collect::<Result<Vec<_>, Unread>>()?)
        });
        assert!(seen.await.expect("a read").iter().all(|row| *row == Some(Bytes::from(vec![round]))));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn announced_rows_come_in_one_load() {
    let Some(url) = common::postgres() else { return };
    let [node, _] = nodes(url).await;
    let keys: Vec<Key> = (0..100).map(row).collect();
    for round in 1..=2_u8 {
        let before = loads(&node);
        let announced = keys.clone();
        let count = engine::commit::<usize, Infallible, _>(&*node, key("partition"), move |rows, _| {
            rows.prefetch(&announced);
            let mut changes = Changes::none();
            let mut there = 0;
            for key in &announced {
                there += usize::from(rows.get(key)?.is_some());
                changes.put(key.clone(), vec![round]);
            }
            Ok(Commit { changes, outcome: there })
        });
        assert_eq!(count.await, Ok(if round == 1 { 0 } else { 100 }));
        assert_eq!(loads(&node) - before, 1);
    }
}

fn follow_lead(rows: &dyn Rows) -> Result<Option<Bytes>, Unread> {
    let lead = rows.get(&key("lead"))?.unwrap_or_default();
    rows.get(&key(&String::from_utf8_lossy(&lead)))
}

async fn followed(node: &PostgresEngine) -> Option<Bytes> {
    engine::read::<_, Infallible, _>(node, |rows, _| Ok(follow_lead(rows)?)).await.expect("a read")
}

/// A row that led to another is guessed the next time, and what another node has made of it meanwhile counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_and_the_one_it_leads_to_come_in_one_load() {
    let Some(url) = common::postgres() else { return };
    let [node, other] = nodes(url).await;
    put(&*other, &key("one"), "1").await;
    put(&*other, &key("two"), "2").await;
    for (lead, value) in [("one", "1"), ("two", "2"), ("one", "1")] {
        put(&*other, &key("lead"), lead).await;
        let before = loads(&node);
        assert_eq!(followed(&node).await, Some(Bytes::from(value)));
        assert_eq!(loads(&node) - before, 2, "nothing was known, or the guess was wrong");
        assert_eq!(followed(&node).await, Some(Bytes::from(value)));
        assert_eq!(loads(&node) - before, 3);
        let copied = engine::commit::<_, Infallible, _>(&*node, key("copy"), |rows, _| {
            let found = follow_lead(rows)?;
            let mut changes = Changes::none();
            changes.rows.push((key("copy"), found.clone()));
            Ok(Commit { changes, outcome: found })
        });
        assert_eq!(copied.await, Ok(Some(Bytes::from(value))));
        assert_eq!(loads(&node) - before, 4);
    }
}
