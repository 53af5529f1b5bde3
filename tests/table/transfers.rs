//! Money moves between the accounts of one partition, by transactions of many clients at once. The sum never changes: not
//! at any read, and not when the server is killed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::Client;
use crate::stage::{Stage, VERSION, transact};

const CLIENTS: usize = 16;
const ACCOUNTS: u64 = 8;
const EACH: i64 = 1_000;
const ROUNDS: usize = 3;

/// Balances and ETags, from one page.
fn balances(client: &Client) -> Option<Vec<(i64, String)>> {
    let answer = client.try_call("GET bank()?$filter=PartitionKey%20eq%20'all'", &[VERSION], "").ok()?;
    if answer.status != 200 {
        assert_eq!(answer.status, 503, "{}", answer.said());
        return None;
    }
    let page = answer.json();
    let of = |entity: &serde_json::Value| {
        let balance = entity["balance"].as_str().expect("a balance").parse().expect("a number");
        (balance, entity["odata.etag"].as_str().expect("an ETag").to_owned())
    };
    Some(page["value"].as_array().expect("a list").iter().map(of).collect())
}

fn entity(balance: i64) -> String {
    format!("{{\"balance@odata.type\":\"Edm.Int64\",\"balance\":\"{balance}\"}}")
}

fn checked(balances: &[(i64, String)]) {
    assert_eq!(balances.len() as u64, ACCOUNTS);
    let sum: i64 = balances.iter().map(|(balance, _)| balance).sum();
    assert_eq!(sum, EACH * ACCOUNTS as i64, "{balances:?}");
}

/// Moves one from one account to another, if both are as they were read. `None`: the server is gone.
fn transfer(client: &Client, random: u64) -> Option<bool> {
    let all = balances(client)?;
    checked(&all);
    let from = (random % ACCOUNTS) as usize;
    let to = ((random / ACCOUNTS) % (ACCOUNTS - 1)) as usize;
    let to = if to >= from { to + 1 } else { to };
    let line = |n: usize| format!("PUT bank(PartitionKey='all',RowKey='{n}')");
    let parts = transact(
        client,
        &[
            (&line(from), &[("If-Match", all[from].1.as_str())], &entity(all[from].0 - 1)),
            (&line(to), &[("If-Match", all[to].1.as_str())], &entity(all[to].0 + 1)),
        ],
    )?;
    match parts[0].said().as_str() {
        "204" => Some(true),
        "412 UpdateConditionNotSatisfied" => Some(false),
        other => panic!("{other}"),
    }
}

#[test]
fn the_sum_never_changes() {
    let mut stage = Stage::new();
    stage.call("POST Tables", &[], r#"{"TableName":"bank"}"#).ok();
    for n in 0..ACCOUNTS {
        let line = format!("PUT bank(PartitionKey='all',RowKey='{n}')");
        stage.call(&line, &[], entity(EACH)).ok();
    }
    let (done, refused, reads) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    for round in 0..ROUNDS {
        let stop = AtomicBool::new(false);
        let clients: Vec<Client> = (0..CLIENTS).map(|_| stage.server.client()).collect();
        let reader = stage.server.client();
        thread::scope(|scope| {
            for (n, client) in clients.into_iter().enumerate() {
                let (stop, done, refused) = (&stop, &done, &refused);
                scope.spawn(move || {
                    let mut random = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul((round * CLIENTS + n + 1) as u64);
                    while !stop.load(Ordering::Relaxed) {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        match transfer(&client, random) {
                            Some(true) => _ = done.fetch_add(1, Ordering::Relaxed),
                            Some(false) => _ = refused.fetch_add(1, Ordering::Relaxed),
                            None => return,
                        }
                    }
                });
            }
            let (stop, reads) = (&stop, &reads);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let Some(all) = balances(&reader) else { return };
                    checked(&all);
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
            let began = Instant::now();
            let enough = (round as u64 + 1) * 100;
            while began.elapsed() < Duration::from_secs(20) && done.load(Ordering::Relaxed) < enough {
                thread::sleep(Duration::from_millis(20));
            }
            stage.server.kill_and_restart();
            stop.store(true, Ordering::Relaxed);
        });
        checked(&balances(&stage.server.client()).expect("the server is back"));
    }
    let done = done.load(Ordering::Relaxed);
    assert!(done >= 50, "only {done} transfers, {} refused", refused.load(Ordering::Relaxed));
    assert!(reads.load(Ordering::Relaxed) > 10);
}
