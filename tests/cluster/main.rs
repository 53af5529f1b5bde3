//! Several nodes over one database and one store. Only under `scripts/cluster`, which starts both; skipped elsewhere.

#[path = "../harness/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "../harness/cluster.rs"]
mod cluster;
#[path = "../crash/ledger.rs"]
#[allow(dead_code)]
mod ledger;
#[path = "../../crates/engine-postgres/tests/common/proxy.rs"]
#[allow(dead_code)]
mod proxy;
#[path = "../harness/server.rs"]
mod server;
mod smb;
#[path = "../smb/server.rs"]
#[allow(dead_code)]
mod smb_server;
#[path = "../harness/standby.rs"]
mod standby;
#[path = "../harness/xml.rs"]
#[allow(dead_code)]
mod xml;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use client::{ACCOUNT, Client, KEY};
use ledger::{Ledger, Persistence, persistent_writer, verify};
use proxy::{MARK, Proxy};
use server::{Server, Service};
use standby::StalledStandbys;

const BLOCK_BLOB: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

/// `None`, with a word about it, where there are no nodes to choose between.
fn start() -> Option<Server> {
    has_nodes().then(Server::start)
}

fn has_nodes() -> bool {
    let has_nodes = variable("LAZURITE_TEST_NODES").parse().is_ok_and(|count: usize| count > 1);
    if !has_nodes {
        eprintln!("SKIPPED: run it with scripts/cluster");
    }
    has_nodes
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

/// A backup of the database, restored beside a bucket that has gone on: what was there then is there, whole, and new marks
/// are above all that were ever given.
#[test]
fn a_restored_backup_has_what_was_there_then() {
    let Some(server) = start() else { return };
    let client = server.client();
    client.call("PUT cont?restype=container", &[], "").ok();
    let (small, large) = (vec![1; 1_000], vec![2; 200_000]);
    client.call("PUT cont/small", &[BLOCK_BLOB], &small).ok();
    client.call("PUT cont/large", &[BLOCK_BLOB], &large).ok();
    let mut environment = server.environment();
    let metadata = &mut environment.iter_mut().find(|(name, _)| *name == "LAZURITE_METADATA").expect("a database").1;
    let file = std::env::temp_dir().join(format!("lazurite-backup-{}", std::process::id()));
    let file = file.to_str().expect("text");
    cluster::postgres("pg_dump", &["--format=custom", "--file", file, metadata]);
    let later = client.call("PUT cont/later", &[BLOCK_BLOB], &large).ok().etag();
    client.call("DELETE cont/small", &[], "").ok();
    drop(server);
    cluster::ask(metadata, "CREATE DATABASE restored");
    let restored = |url: &str| {
        let (front, back) = url.rsplit_once('/').expect("a database");
        let (_, options) = back.split_once('?').expect("options");
        format!("{front}/restored?{options}")
    };
    cluster::postgres("pg_restore", &["--dbname", &restored(&cluster::at_primary(metadata)), file]);
    *metadata = restored(metadata);
    fs::remove_file(file).expect("the backup");
    let server = Server::start_again(environment);
    let client = server.client();
    for (name, content) in [("small", small), ("large", large)] {
        assert!(client.call(&format!("GET cont/{name}"), &[], "").ok().body == content, "{name}");
    }
    assert_eq!(client.call("GET cont/later", &[], "").said(), "404 BlobNotFound");
    let new = client.call("PUT cont/later", &[BLOCK_BLOB], "new").ok().etag();
    assert!(new > later, "the mark {new} may have been given before {later}");
}

/// Accounts in the database: a key that was replaced opens nothing any more, on any node, when the command has ended.
#[test]
fn a_new_key_counts_on_every_node_at_once() {
    let Some(server) = start() else { return };
    let asked = |key: &str| -> Vec<String> {
        let ask = |address| Client::new(address).with_key(key).call("GET ?comp=list", &[], "").said();
        server.addresses().into_iter().map(ask).collect()
    };
    let nodes = server.addresses().len();
    assert_eq!(asked(KEY), vec!["200"; nodes], "without any account there is the well-known one");
    server.command(&["account", "add", "other"]);
    assert_eq!(asked(KEY), vec!["404 ResourceNotFound"; nodes], "now there are others");
    server.command(&["account", "add", ACCOUNT, "--key", KEY]);
    let mut key = KEY.to_owned();
    for round in 0..5 {
        assert_eq!(asked(&key), vec!["200"; nodes], "round {round}");
        let said = server.command(&["account", "rotate", ACCOUNT]);
        let (_, new) = said.split_once("AccountKey=").expect("a connection string");
        let new = new.split_once(';').expect("its end").0.to_owned();
        assert_eq!(asked(&key), vec!["403 AuthenticationFailed"; nodes], "round {round}: the old key still opens");
        key = new;
    }
    assert_eq!(server.command(&["account", "list"]).lines().count(), 2);
}

/// Connections are cut between a commit and its answer: each block is appended once, and its writer is told where it stands.
/// How often, says LAZURITE_TEST_CUTS.
#[test]
fn lost_answers_of_the_database_are_nothing_to_clients() {
    if !has_nodes() {
        return;
    }
    let cuts = variable("LAZURITE_TEST_CUTS").parse().unwrap_or(100);
    let runtime = runtime();
    let mut proxy = None;
    let server = Server::start_through("LAZURITE_METADATA", |url| {
        let primary = cluster::at_primary(url);
        proxy.insert(runtime.block_on(Proxy::start(&primary))).url(&primary)
    });
    let proxy = proxy.expect("it was started");
    server.client().call("PUT cont?restype=container", &[], "").ok();
    proxy.cut(cuts);
    let appended: usize = thread::scope(|scope| {
        let writers = server.addresses().into_iter().enumerate().map(|(number, address)| {
            let proxy = &proxy;
            scope.spawn(move || {
                let client = Client::new(address);
                let name = format!("cont/{number}");
                client.call(&format!("PUT {name}"), &[("x-ms-blob-type", "AppendBlob")], "").ok();
                let mut expected = Vec::new();
                while proxy.cuts() < cuts {
                    let block = [MARK, format!(" {}\n", expected.len()).as_bytes()].concat();
                    let answer = client.call(&format!("PUT {name}?comp=appendblock"), &[], &block).ok();
                    assert_eq!(answer.header("x-ms-blob-append-offset"), Some(&*expected.len().to_string()));
                    expected.extend(block);
                }
                let got = client.call(&format!("GET {name}"), &[], "").ok();
                assert!(got.body == expected, "{name} is not what was appended");
                expected.iter().filter(|byte| **byte == b'\n').count()
            })
        });
        let writers: Vec<_> = writers.collect();
        writers.into_iter().map(|writer| writer.join().expect("a writer saw what it must not")).sum()
    });
    eprintln!("{} connections cut between a commit and its answer, in {appended} blocks", proxy.cuts());
}

/// Without the store what is small goes on, and what is large is told to come again; with it everything is as before.
#[test]
fn a_store_that_is_away_is_said_so_and_comes_back() {
    if !has_nodes() {
        return;
    }
    let runtime = runtime();
    let mut proxy = None;
    let server = Server::start_through("LAZURITE_BYTES", |url| {
        let (front, place) = url.split_once("endpoint=http://").expect("an endpoint");
        let (place, back) = place.split_once('&').expect("a region");
        let started = runtime.block_on(Proxy::before(place.parse().expect("an address")));
        format!("{front}endpoint=http://{}&{back}", proxy.insert(started).address())
    });
    let proxy = proxy.expect("it was started");
    let client = server.client();
    let large = vec![7; 300_000];
    client.call("PUT cont?restype=container", &[], "").ok();
    client.call("PUT cont/large", &[BLOCK_BLOB], &large).ok();
    proxy.set_away(true);
    let refused = client.call("PUT cont/other", &[BLOCK_BLOB], &large);
    assert_eq!((refused.said().as_str(), refused.header("retry-after").is_some()), ("503 ServerBusy", true));
    assert_eq!(client.call("GET cont/large", &[], "").said(), "503 ServerBusy");
    client.call("PUT cont/small", &[BLOCK_BLOB], "small").ok();
    assert_eq!(client.call("GET cont/small", &[], "").ok().body, b"small");
    assert_eq!(client.call("HEAD cont/other", &[], "").status, 404, "what was refused has not happened");
    proxy.set_away(false);
    assert!(client.call("GET cont/large", &[], "").ok().body == large, "it is as it was");
    client.call("PUT cont/other", &[BLOCK_BLOB], &large).ok();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

/// Writers that do not give up, two for each node.
struct Load {
    ledger: Ledger,
    stop: Arc<AtomicBool>,
    writers: Vec<JoinHandle<Persistence>>,
}

impl Load {
    /// On the nodes of the server, in full swing when this returns.
    fn begin(server: &Server) -> Load {
        const WRITERS_PER_NODE: usize = 2;
        let (ledger, stop) = (Ledger::default(), Arc::new(AtomicBool::new(false)));
        let addresses = server.addresses();
        Client::new(addresses[0]).call("PUT crash?restype=container", &[], "").ok();
        let writers = (0..addresses.len() * WRITERS_PER_NODE).map(|number| {
            let address = addresses[number % addresses.len()];
            let (ledger, stop) = (Arc::clone(&ledger), Arc::clone(&stop));
            thread::spawn(move || persistent_writer(number as u64, address, &ledger, &stop))
        });
        let load = Load { writers: writers.collect(), ledger, stop };
        load.await_progress(0..load.writers.len());
        load
    }

    /// Waits until each of these writers has been acknowledged a dozen more versions, large ones among them. Returns how
    /// long that took.
    fn await_progress(&self, writers: Range<usize>) -> Duration {
        const GIVEN_UP_AFTER: Duration = Duration::from_secs(240);
        let began = Instant::now();
        let before: Vec<u64> = writers.clone().map(|number| self.progress(number)).collect();
        while writers.clone().zip(&before).any(|(number, before)| self.progress(number) < before + 12) {
            assert!(began.elapsed() < GIVEN_UP_AFTER, "the writers do not go on");
            assert!(!self.writers.iter().any(JoinHandle::is_finished), "a writer saw what it must not");
            thread::sleep(Duration::from_millis(50));
        }
        began.elapsed()
    }

    /// How far a writer has come.
    fn progress(&self, number: usize) -> u64 {
        let ledger = self.ledger.lock().expect("no writer panics with it");
        let own = ledger.iter().filter(|(name, _)| name.starts_with(&format!("{number}-")));
        own.filter_map(|(_, known)| known.acknowledged.version).max().unwrap_or(0)
    }

    /// Ends the writers and holds what is there against what they were told. Returns the longest time that one of them had
    /// to wait, and how often any was refused or left without an answer.
    fn end(self, client: &Client) -> (Duration, u64) {
        self.stop.store(true, Ordering::Release);
        let stories = self.writers.into_iter().map(|writer| writer.join().expect("a writer saw what it must not"));
        let ended = stories.fold((Duration::ZERO, 0), |(longest, failures), story| {
            (longest.max(story.longest_wait), failures + story.failures)
        });
        verify(client, &self.ledger);
        ended
    }
}

/// `kill -9` of a node under load: nothing acknowledged is lost, by it or the others, and those go on.
#[test]
fn killing_a_node_loses_nothing() {
    let Some(mut server) = start() else { return };
    let load = Load::begin(&server);
    let nodes = server.addresses().len();
    server.lose_a_node();
    // The writers of each node but the last.
    let others = (0..2 * nodes).filter(|number| number % nodes != nodes - 1);
    others.for_each(|number| _ = load.await_progress(number..number + 1));
    let (longest, failures) = load.end(&Client::new(server.addresses()[0]));
    eprintln!(
        "a node was killed: the writers of the others waited {longest:?} at most; {failures} requests failed, its own included"
    );
}

/// `kill -9` of one of three volume servers under load: every object has a copy elsewhere, and new ones find a place.
#[test]
fn killing_a_volume_server_loses_nothing() {
    let Some(server) = start() else { return };
    let volumes = variable("LAZURITE_TEST_VOLUMES");
    let volume = volumes.split(' ').next().expect("a process");
    let load = Load::begin(&server);
    kill(volume, &[]);
    let took = load.await_progress(0..load.writers.len());
    let (longest, failures) = load.end(&server.client());
    eprintln!(
        "a volume server was killed: all writers went on within {took:?}; the longest wait was {longest:?}, {failures} requests failed"
    );
}

/// `kill -9` of the standby that commits wait for: another one takes its place, and Patroni brings it back.
#[test]
fn killing_a_standby_loses_nothing() {
    let Some((server, members)) = start_with_members() else { return };
    let queues = Server::serving(Service::Queue);
    let load = Load::begin(&server);
    let (_, folder) = member(&members, "synchronous");
    let processes = processes_of(&folder);
    kill(&processes[0], &processes[1..]);
    let took = load.await_progress(0..load.writers.len());
    what_is_held_is_held_on_all_nodes(&server, &queues);
    let (longest, failures) = load.end(&server.client());
    eprintln!(
        "the synchronous standby was killed: all writers went on within {took:?}; the longest wait was {longest:?}, {failures} requests failed"
    );
    // Whole again before others are killed.
    let began = Instant::now();
    while processes_of(&folder).is_empty() || find_member(&members, "synchronous").is_none() {
        assert!(began.elapsed() < Duration::from_secs(120), "the standby does not come back");
        thread::sleep(Duration::from_millis(200));
    }
}

/// Standbys that hang, and go on: every commit waits meanwhile, those of the nodes' own messages too. No clock may follow
/// an answer that is as old as the wait.
#[test]
fn a_slow_standby_gives_no_lease_and_no_message_to_two() {
    let Some(server) = start() else { return };
    let queues = Server::serving(Service::Queue);
    let stalled = StalledStandbys::of(&variable("LAZURITE_TEST_METADATA"));
    thread::sleep(Duration::from_secs(8));
    drop(stalled);
    what_is_held_is_held_on_all_nodes(&server, &queues);
}

/// How long a lease and the invisibility of a message last.
const HELD: Duration = Duration::from_secs(15);
/// By how much they may end sooner: the nodes' clocks differ by the way to the database.
const CLOCKS_APART: Duration = Duration::from_millis(100);

/// Each node gives a lease and a message; the next one must give neither away before its time.
fn what_is_held_is_held_on_all_nodes(blobs: &Server, queues: &Server) {
    Client::new(blobs.addresses()[0]).call("PUT held?restype=container", &[], "").ok();
    let held: Vec<(String, Duration)> = thread::scope(|scope| {
        let mut holders = Vec::new();
        for (server, hold) in
            [(blobs, hold_a_blob as fn(usize, SocketAddr, SocketAddr) -> Duration), (queues, hold_a_message)]
        {
            let nodes = server.addresses();
            for number in 0..nodes.len() {
                let (one, next) = (nodes[number], nodes[(number + 1) % nodes.len()]);
                holders.push((number, scope.spawn(move || hold(number, one, next))));
            }
        }
        let ended = |(number, holder): (usize, thread::ScopedJoinHandle<'_, Duration>)| {
            (format!("node {number}"), holder.join().expect("a holder saw what it must not"))
        };
        holders.into_iter().map(ended).collect()
    });
    eprintln!("held for: {held:?}");
    assert!(held.iter().all(|(_, held)| *held + CLOCKS_APART >= HELD), "given away too early: {held:?}");
}

/// How long a lease of one node kept the next one from giving another: from before it was asked for until after the other
/// one was given, so never less than it was.
fn hold_a_blob(number: usize, one: SocketAddr, next: SocketAddr) -> Duration {
    let (one, next) = (Client::new(one), Client::new(next));
    one.call(&format!("PUT held/{number}"), &[BLOCK_BLOB], "").ok();
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")];
    let lease = format!("PUT held/{number}?comp=lease");
    let began = Instant::now();
    one.call(&lease, &acquire, "").ok();
    loop {
        let answer = next.call(&lease, &acquire, "");
        if answer.is_success() {
            return began.elapsed();
        }
        assert_eq!(answer.said(), "409 LeaseAlreadyPresent");
        thread::sleep(Duration::from_millis(100));
    }
}

/// The same of a message that one node has given out. A queue of its own for each, so that nobody gets another's.
fn hold_a_message(number: usize, one: SocketAddr, next: SocketAddr) -> Duration {
    let (one, next) = (Client::new(one), Client::new(next));
    one.call(&format!("PUT held{number}"), &[], "").ok();
    let message = "<QueueMessage><MessageText>one</MessageText></QueueMessage>";
    one.call(&format!("POST held{number}/messages"), &[], message).ok();
    let take = |client: &Client| {
        let answer = client.call(&format!("GET held{number}/messages?visibilitytimeout=15"), &[], "").ok();
        !answer.xml().children.is_empty()
    };
    let began = Instant::now();
    assert!(take(&one), "the message is there");
    while !take(&next) {
        thread::sleep(Duration::from_millis(100));
    }
    began.elapsed()
}

/// `kill -9` of the primary, with all that belongs to it, under load: a standby takes over and has everything acknowledged.
#[test]
fn killing_the_primary_loses_nothing() {
    let Some((server, members)) = start_with_members() else { return };
    let load = Load::begin(&server);
    let (patroni, folder) = member(&members, "primary");
    kill(&patroni, &processes_of(&folder));
    let took = load.await_progress(0..load.writers.len());
    let (_, new_folder) = member(&members, "primary");
    assert_ne!(new_folder, folder, "another one leads");
    let (longest, failures) = load.end(&server.client());
    eprintln!(
        "the primary was killed: all writers went on within {took:?}; the longest wait was {longest:?}, {failures} requests failed"
    );
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// A server, and the members of its database; `None`, with a word about it, where no standby would take over.
fn start_with_members() -> Option<(Server, String)> {
    let server = start()?;
    let members = variable("LAZURITE_TEST_MEMBERS");
    if members.is_empty() {
        eprintln!("SKIPPED: fail-over; run it with scripts/cluster --patroni");
        return None;
    }
    Some((server, members))
}

/// The process of the Patroni that has this role, and the folder of its PostgreSQL.
fn member(members: &str, role: &str) -> (String, String) {
    find_member(members, role).unwrap_or_else(|| panic!("nobody is {role}"))
}

fn find_member(members: &str, role: &str) -> Option<(String, String)> {
    members.split(' ').find_map(|member| {
        let mut parts = member.splitn(3, ':').map(str::to_owned);
        let (patroni, port, folder) = (parts.next()?, parts.next()?, parts.next()?);
        let mut stream = TcpStream::connect(("127.0.0.1", port.parse().ok()?)).ok()?;
        stream.write_all(format!("GET /{role} HTTP/1.0\r\n\r\n").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.split(' ').nth(1).filter(|status| *status == "200").map(|_| (patroni, folder))
    })
}

/// The processes of the PostgreSQL with this folder, the one that started the others first: none while it does not run.
fn processes_of(folder: &str) -> Vec<String> {
    let Ok(file) = fs::read_to_string(format!("{folder}/postmaster.pid")) else { return Vec::new() };
    let postmaster = file.lines().next().expect("a process").to_owned();
    let children = fs::read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children"));
    let Ok(children) = children else { return Vec::new() };
    std::iter::once(postmaster.as_str()).chain(children.split_whitespace()).map(str::to_owned).collect()
}

/// Kills a process, and those that belong to it: some of them may be gone already.
fn kill(process: &str, others: &[String]) {
    let kill = |processes: &[String]| Command::new("kill").arg("-KILL").args(processes).output().expect("kill runs");
    let killed = kill(&[process.to_owned()]);
    assert!(killed.status.success(), "{process}: {}", String::from_utf8_lossy(&killed.stderr));
    if !others.is_empty() {
        kill(others);
    }
}
