//! What a commit costs: this engine beside the embedded one and beside plain PostgreSQL, in one run on one machine.
//!
//! `cargo xtask cluster-figures`. PostgreSQL has a synchronous standby and all of them sync to the same disk. Every client
//! writes one row of 1 KiB after another and waits for each. "spread": each client a row of its own, and all of them read
//! one other row, as blobs do with their container. "hot": all of them the same row. "plain" is one statement that changes a row
//! whose version is as expected, prepared, over as many connections as a node has: what is there to gain.

#[path = "../tests/common/mod.rs"]
mod common;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use engine::memory::MemoryBytes;
use engine::{BoxFuture, Changes, Commit, Engine, Key};
use engine_embedded::EmbeddedEngine;
use tokio_postgres::{Client, NoTls, Statement};

const TIME: Duration = Duration::from_secs(4);
const CONNECTIONS: usize = 16;
const ROW_BYTES: usize = 1024;

/// The target that is measured: one write of a client to a row.
type Write = Arc<dyn Fn(usize) -> BoxFuture<'static, ()> + Send + Sync>;

/// Its name, and the engine whose round trips are counted.
type Subject<'a> = (&'a str, Write, Option<&'a Arc<dyn Engine>>);

fn engine_write(engine: Arc<dyn Engine>) -> Write {
    Arc::new(move |row| {
        let engine = Arc::clone(&engine);
        Box::pin(async move {
            let (key, guard) = (Key::new(0x70).number(row as u64), Key::new(0x71));
            let decide = move |rows: &dyn engine::Rows, _| {
                rows.get(&guard)?;
                let count = rows.get(&key)?.map_or(0, |row| row[0]);
                let mut changes = Changes::none();
                changes.put(key.clone(), vec![count.wrapping_add(1); ROW_BYTES]);
                Ok(Commit { changes, outcome: () })
            };
            engine::commit::<(), Infallible, _>(&*engine, Key::new(0x70).number(row as u64), decide)
                .await
                .expect("a commit");
        })
    })
}

async fn plain_write(url: &str) -> Write {
    let mut clients: Vec<(Client, Statement, Statement)> = Vec::new();
    for number in 0..CONNECTIONS {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
        tokio::spawn(connection);
        if number == 0 {
            let make = "DROP TABLE IF EXISTS plain; \
                        CREATE TABLE plain (key bigint PRIMARY KEY, version bigint NOT NULL, value bytea NOT NULL); \
                        INSERT INTO plain SELECT n, 0, '' FROM generate_series(0, 63) n";
            client.batch_execute(make).await.expect("a table");
        }
        let read = client.prepare("SELECT version FROM plain WHERE key = $1").await.expect("a statement");
        let write = "UPDATE plain SET version = version + 1, value = $3 WHERE key = $1 AND version = $2";
        let write = client.prepare(write).await.expect("a statement");
        clients.push((client, read, write));
    }
    let clients = Arc::new(clients);
    let next = Arc::new(AtomicUsize::new(0));
    let free = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
    Arc::new(move |row| {
        let (clients, next, free) = (Arc::clone(&clients), Arc::clone(&next), Arc::clone(&free));
        Box::pin(async move {
            let _turn = free.acquire().await.expect("it is never closed");
            let (client, read, write) = &clients[next.fetch_add(1, Ordering::Relaxed) % CONNECTIONS];
            let (key, value) = (row as i64, vec![7_u8; ROW_BYTES]);
            loop {
                let version: i64 = client.query_one(read, &[&key]).await.expect("a row").get(0);
                if client.execute(write, &[&key, &version, &value]).await.expect("an answer") == 1 {
                    return;
                }
            }
        })
    })
}

struct Measured {
    per_second: f64,
    median: Duration,
    slowest_percent: Duration,
    round_trips: Option<f64>,
}

fn figure(engine: Option<&Arc<dyn Engine>>, name: &str) -> Option<u64> {
    engine?.figures().into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

async fn measure(write: &Write, engine: Option<&Arc<dyn Engine>>, clients: usize, is_hot: bool) -> Measured {
    let before = figure(engine, "round_trips");
    let began = Instant::now();
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let (write, row) = (Arc::clone(write), if is_hot { 0 } else { client });
            tokio::spawn(async move {
                let mut took = Vec::new();
                while began.elapsed() < TIME {
                    let asked = Instant::now();
                    write(row).await;
                    took.push(asked.elapsed());
                }
                took
            })
        })
        .collect();
    let mut took = Vec::new();
    for task in tasks {
        took.extend(task.await.expect("a client"));
    }
    let seconds = began.elapsed().as_secs_f64();
    took.sort_unstable();
    let round_trips = figure(engine, "round_trips").zip(before).map(|(now, before)| (now - before) as f64);
    Measured {
        per_second: took.len() as f64 / seconds,
        median: took[took.len() / 2],
        slowest_percent: took[took.len() * 99 / 100],
        round_trips: round_trips.map(|trips| trips / took.len() as f64),
    }
}

#[tokio::main]
async fn main() {
    let Some(server) = common::Server::start("test-postgres", &["--standby"]) else { return };
    let folder = std::env::temp_dir().join(format!("lazurite-figures-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let embedded: Arc<dyn Engine> =
        EmbeddedEngine::open(&folder.join("data"), engine_embedded::Options::default()).expect("opened");
    let options = engine_postgres::Options { connections: CONNECTIONS, ..common::fresh(&server.address).await };
    let store = Arc::new(MemoryBytes::default());
    let one: Arc<dyn Engine> = common::open(&server.address, store.clone(), &options).await;
    let two: Arc<dyn Engine> = common::open(&server.address, store, &options).await;
    for engine in [&embedded, &one] {
        let decide = |_: &dyn engine::Rows, _| {
            let mut changes = Changes::none();
            changes.put(Key::new(0x71), "guard");
            Ok(Commit { changes, outcome: () })
        };
        engine::commit::<(), Infallible, _>(&**engine, Key::new(0x71), decide).await.expect("a commit");
    }
    let (first, second) = (engine_write(Arc::clone(&one)), engine_write(Arc::clone(&two)));
    let turn = AtomicUsize::new(0);
    let both: Write = Arc::new(move |row| match turn.fetch_add(1, Ordering::Relaxed) % 2 {
        0 => first(row),
        _ => second(row),
    });
    let subjects: [Subject<'_>; 4] = [
        ("embedded engine", engine_write(Arc::clone(&embedded)), None),
        ("plain PostgreSQL", plain_write(&server.address).await, None),
        ("one node", engine_write(Arc::clone(&one)), Some(&one)),
        ("two nodes", both, None),
    ];
    println!(
        "| | clients | rows | commits/s | median | 99 of 100 within | round trips a commit |\n|---|---|---|---|---|---|---|"
    );
    for clients in [16, 64] {
        for is_hot in [false, true] {
            for (name, write, engine) in &subjects {
                let found = measure(write, *engine, clients, is_hot).await;
                let round_trips = found.round_trips.map_or("-".to_owned(), |trips| format!("{trips:.2}"));
                println!(
                    "| {name} | {clients} | {} | {:.0} | {:.1} ms | {:.1} ms | {round_trips} |",
                    if is_hot { "hot" } else { "spread" },
                    found.per_second,
                    found.median.as_secs_f64() * 1e3,
                    found.slowest_percent.as_secs_f64() * 1e3,
                );
            }
        }
    }
    for engine in [embedded, one, two] {
        engine.close().await.expect("closed");
    }
    let _ = std::fs::remove_dir_all(folder);
}
