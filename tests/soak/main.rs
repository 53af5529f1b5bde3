//! A long load, on a release build, and what it did to the server: `cargo xtask soak MINUTES`.
//!
//! First much is deleted at random, so that the collector has gigabytes to move, while clients write transactions: it is
//! measured how long nobody is answered. Then all services are written to while the server is stopped and killed again and
//! again; every acknowledged write must be there, and `lazurite check` must find the folder clean.
//!
//! `LAZURITE_SOAK_MINUTES` says how long; without it the same is done in small, in a few seconds.

#[path = "../harness/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "../crash/ledger.rs"]
#[allow(dead_code)]
mod ledger;
#[path = "../harness/load.rs"]
mod load;
mod services;
#[path = "../crash/victim.rs"]
#[allow(dead_code)]
mod victim;
#[path = "../harness/xml.rs"]
#[allow(dead_code)]
mod xml;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use client::{Client, plain_get};
use load::{MIB, TRANSACTION, done, each, has_room, transaction};
use victim::{Victim, check, fresh_folder};

/// At this length of a run, and above, the first part has its full size.
const FULL_MINUTES: u64 = 10;
/// Blobs of 1 MiB in the full size.
const BLOBS: u64 = 4_096;
/// Of a hundred blobs so many are deleted.
const DELETED: u64 = 62;
const TRANSACTION_WRITERS: u64 = 12;
const ENTITIES: u64 = 100;
const ENTITY_BYTES: usize = 1_400;
/// The longest silence that is meant to be; `docs/reliability.md` keeps what was measured.
const SILENCE_GOAL: Duration = Duration::from_secs(1);
/// A server that answers nobody for so long hangs.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const TABLES_VERSION: (&str, &str) = ("x-ms-version", "2019-02-02");

/// How long the whole run is to take.
fn length() -> Duration {
    let minutes = std::env::var("LAZURITE_SOAK_MINUTES").ok().and_then(|text| text.parse().ok());
    minutes.map_or(Duration::from_secs(12), |minutes: u64| Duration::from_secs(60 * minutes))
}

/// Whether a blob is deleted: at random, but each time the same.
fn is_deleted(number: u64) -> bool {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % 100 < DELETED
}

fn blob(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(MIB as usize / 8)
}

/// When the last answer came, and the longest time without one.
struct Silence {
    last: Instant,
    longest: Duration,
    answers: u64,
}

impl Silence {
    fn answered(&mut self) {
        self.longest = self.longest.max(self.last.elapsed());
        self.last = Instant::now();
        self.answers += 1;
    }
}

fn write_transactions(client: &Client, writer: u64, until: Instant, silence: &Mutex<Silence>) {
    let text = "x".repeat(ENTITY_BYTES);
    for turn in 0_u64.. {
        if Instant::now() > until {
            return;
        }
        let operations = (0..ENTITIES).map(|number| {
            let partition = format!("{writer}-{}", turn % 50);
            let line = format!("PUT /devstoreaccount1/soak(PartitionKey='{partition}',RowKey='{:03}-{turn}')", number);
            (line, format!("{{\"turn\":{turn},\"text\":\"{text}\"}}"))
        });
        let answer = client.call("POST $batch", &[TABLES_VERSION, TRANSACTION], transaction(operations)).ok();
        assert_eq!(done(&answer), ENTITIES, "{}", answer.said());
        silence.lock().expect("no writer panics with it").answered();
    }
}

#[test]
fn writers_are_answered_while_gigabytes_are_collected() {
    let folder = fresh_folder("soak-collect");
    let minutes = length().as_secs().div_ceil(60).min(FULL_MINUTES);
    let is_small = length() < Duration::from_secs(60);
    let blobs = if is_small { BLOBS / 64 } else { BLOBS * minutes / FULL_MINUTES };
    if !has_room(&folder, 4 * blobs * MIB) {
        return;
    }
    let server = Victim::start_with_clock(&folder);
    let client = Client::new(server.blob);
    client.call("PUT soak?restype=container", &[], "").ok();
    Client::of_tables(server.table).call("POST Tables", &[TABLES_VERSION, JSON], "{\"TableName\":\"soak\"}").ok();
    let block_blob = [("x-ms-blob-type", "BlockBlob")];
    each(
        || Client::new(server.blob),
        0..blobs,
        |client, number| {
            client.call(&format!("PUT soak/{number}"), &block_blob, blob(number)).ok();
        },
    );
    each(
        || Client::new(server.blob),
        0..blobs,
        |client, number| {
            if is_deleted(number) {
                client.call(&format!("DELETE soak/{number}"), &[], "").ok();
            }
        },
    );
    let silence = Mutex::new(Silence { last: Instant::now(), longest: Duration::ZERO, answers: 0 });
    let until = Instant::now() + length() / 3;
    std::thread::scope(|scope| {
        for writer in 0..TRANSACTION_WRITERS {
            let (silence, table) = (&silence, server.table);
            scope.spawn(move || write_transactions(&Client::of_tables(table), writer, until, silence));
        }
    });
    let silence = silence.into_inner().expect("no writer panics with it");
    let metrics = plain_get(server.admin.expect("an address"), "/metrics");
    let figure = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("lazurite_engine_{name} ")));
        line.map_or("?".to_owned(), str::to_owned)
    };
    println!(
        "{blobs} MiB, {DELETED} % deleted; {} transactions of {ENTITIES} entities in {:?}: longest silence {:?} \
         (goal: under {SILENCE_GOAL:?}); \
         {} segments collected, {} MiB moved, level 0 has {} runs, paused {} us, memory {} MiB",
        silence.answers,
        length() / 3,
        silence.longest,
        figure("segments_collected"),
        figure("bytes_moved").parse::<u64>().map_or(0, |bytes| bytes / MIB),
        figure("tree_level0_runs"),
        figure("paused_microseconds"),
        server.memory() / MIB,
    );
    assert!(silence.longest < SILENCE_MAX, "nobody was answered for {:?}", silence.longest);
    // A connection that was silent for so long has been closed.
    let client = Client::new(server.blob);
    for number in (0..blobs).step_by(7) {
        let found = client.call(&format!("GET soak/{number}"), &[], "");
        match is_deleted(number) {
            true => assert_eq!(found.status, 404, "{number}"),
            false => assert!(found.ok().body == blob(number), "{number}"),
        }
    }
    server.kill();
    check(&folder);
    std::fs::remove_dir_all(&folder).expect("removed");
}

const JSON: (&str, &str) = ("content-type", "application/json");
