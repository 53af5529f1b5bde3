//! Several nodes over one database and one store. Only under `scripts/cluster`, which starts both; skipped elsewhere.

#[path = "../harness/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "../harness/cluster.rs"]
mod cluster;
#[path = "../crash/ledger.rs"]
#[allow(dead_code)]
mod ledger;
#[path = "../harness/server.rs"]
mod server;
#[path = "../harness/xml.rs"]
#[allow(dead_code)]
mod xml;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use client::Client;
use ledger::{Ledger, verify, writer};
use server::Server;

const BLOCK_BLOB: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

/// `None`, with a word about it, where there are no nodes to choose between.
fn start() -> Option<Server> {
    let nodes = std::env::var("LAZURITE_TEST_NODES").ok().and_then(|count| count.parse::<usize>().ok());
    if nodes.is_none_or(|count| count < 2) {
        eprintln!("SKIPPED: run it with scripts/cluster");
        return None;
    }
    Some(Server::start())
}

/// A write that one node has acknowledged is seen by the next read on every other, and its ETag counts there.
#[test]
fn what_one_node_has_acknowledged_the_others_see() {
    const ROUNDS: usize = 60;
    let Some(server) = start() else { return };
    let nodes: Vec<Client> = server.addresses().into_iter().map(Client::new).collect();
    nodes[0].call("PUT cont?restype=container", &[], "").ok();
    let mut etag = String::new();
    for round in 0..ROUNDS {
        let (writer, reader) = (&nodes[round % nodes.len()], &nodes[(round + 1) % nodes.len()]);
        // In the database, and in the store.
        let content = vec![round as u8; if round % 3 == 0 { 100_000 } else { 100 }];
        let before = etag.clone();
        let condition = if round == 0 { ("if-none-match", "*") } else { ("if-match", &*before) };
        etag = writer.call("PUT cont/blob", &[BLOCK_BLOB, condition], &content).ok().etag();
        let got = reader.call("GET cont/blob", &[], "").ok();
        assert!(got.body == content && got.etag() == etag, "round {round}: an earlier state was read");
        if round > 0 {
            let late = reader.call("PUT cont/blob", &[BLOCK_BLOB, ("if-match", &before)], "late");
            assert_eq!(late.said(), "412 ConditionNotMet", "round {round}");
        }
        let listed = reader.call("GET cont?restype=container&comp=list", &[], "").ok();
        let listed = String::from_utf8(listed.body).expect("text");
        assert!(listed.contains(etag.trim_matches('"')), "round {round}: the list shows an earlier state");
    }
    // Rights count at once, too: nobody keeps them.
    let reader = &nodes[1];
    let head = |line: &str| format!("{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    let anonymous = || reader.browse("GET", &head("GET /devstoreaccount1/cont/blob")).status;
    for round in 0..5 {
        nodes[0].call("PUT cont?restype=container&comp=acl", &[("x-ms-blob-public-access", "blob")], "").ok();
        assert_eq!(anonymous(), 200, "round {round}: what is public is refused");
        nodes[0].call("PUT cont?restype=container&comp=acl", &[], "").ok();
        assert_ne!(anonymous(), 200, "round {round}: what is private is given");
    }
}

/// `kill -9` of a node under load: nothing acknowledged is lost, by it or the others, and those go on.
#[test]
fn killing_a_node_loses_nothing() {
    const WRITERS_PER_NODE: u64 = 2;
    let Some(mut server) = start() else { return };
    let ledger = Ledger::default();
    let addresses = server.addresses();
    let survivor = Client::new(addresses[0]);
    survivor.call("PUT crash?restype=container", &[], "").ok();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..addresses.len() as u64 * WRITERS_PER_NODE)
        .map(|number| {
            let address = addresses[number as usize % addresses.len()];
            let (ledger, stop) = (Arc::clone(&ledger), Arc::clone(&stop));
            thread::spawn(move || writer(number, address, 1, &ledger, &stop))
        })
        .collect();
    thread::sleep(Duration::from_secs(3));
    server.lose_a_node();
    let at_death = progress(&ledger, 0);
    let lost = progress(&ledger, addresses.len() as u64 - 1);
    thread::sleep(Duration::from_secs(3));
    stop.store(true, Ordering::Release);
    for writer in writers {
        writer.join().expect("a writer saw what it must not");
    }
    let after = progress(&ledger, 0);
    eprintln!("versions: {lost} by a writer of the lost node; {at_death} by another then, {after} 3 s later");
    assert!(lost > 1, "the lost node hardly wrote");
    assert!(after > at_death + 1, "the others did not go on: {at_death}, then {after}");
    verify(&survivor, &ledger);
}

/// How far a writer has come.
fn progress(ledger: &Ledger, number: u64) -> u64 {
    let ledger = ledger.lock().expect("no writer panics with it");
    let own = ledger.iter().filter(|(name, _)| name.starts_with(&format!("{number}-")));
    own.filter_map(|(_, known)| known.acknowledged.version).max().unwrap_or(0)
}
