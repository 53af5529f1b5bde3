//! Many clients at once, over HTTP, while servers die: what they saw must be what one server, doing one thing after another, could
//! have answered.
//!
//! Blobs with If-Match, leases and the writes they keep out, messages, transactions of entities and a container that comes and goes; the
//! models are in `crates/histories`. The embedded server is killed again and again (`LAZURITE_HISTORY_ROUNDS`, `cargo xtask histories N`).
//! Under `scripts/cluster` there are three nodes: one stands still for longer than its place in the cluster is kept for it, one dies and
//! is replaced, and meanwhile the byte store and then the database's standby are slow.

#[path = "../harness/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "../harness/cluster.rs"]
#[allow(dead_code)]
mod cluster;
mod objects;
#[path = "../../crates/engine-postgres/tests/common/proxy.rs"]
#[allow(dead_code)]
mod proxy;
#[path = "../harness/standby.rs"]
mod standby;
#[path = "../crash/victim.rs"]
#[allow(dead_code)]
mod victim;
#[path = "../harness/xml.rs"]
#[allow(dead_code)]
mod xml;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use objects::{Door, Doors, Objects};
use proxy::Proxy;
use standby::StalledStandbys;
use victim::Victim;

const CLIENTS: u64 = 6;
/// By how much the times of clients and servers may differ, in milliseconds: a server reads its clock again when it starts.
const SLACK_ALONE: u64 = 30;
/// The nodes of a cluster follow the clock of the database.
const SLACK_CLUSTER: u64 = 500;
/// Longer than the place of a node is kept that says nothing.
const PAUSE: Duration = Duration::from_secs(20);
/// How much later everything arrives that goes to a slow store or comes from it.
const STORE_DELAY: Duration = Duration::from_millis(300);
/// How long something stays slow.
const SLOW: Duration = Duration::from_secs(5);
/// Generous: only against hanging.
const PATIENCE: Duration = Duration::from_secs(120);

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn door(server: &Victim) -> Door {
    Door { blob: server.blob, queue: server.queue, table: server.table }
}

/// Clients that ask until they are told to stop, or (where they are told so) until one of them gets no answer.
fn clients(
    objects: &Arc<Objects>,
    doors: &Arc<Doors>,
    seed: u64,
    gives_up: bool,
    stop: &Arc<AtomicBool>,
) -> Vec<JoinHandle<()>> {
    let client = |number: u64| {
        let (objects, doors, stop) = (Arc::clone(objects), Arc::clone(doors), Arc::clone(stop));
        thread::spawn(move || objects.client(number, &doors, seed, gives_up, &stop))
    };
    (0..CLIENTS).map(client).collect()
}

fn join(clients: Vec<JoinHandle<()>>) {
    for client in clients {
        client.join().expect("a client saw what it must not");
    }
}

#[test]
fn kill_nine_leaves_a_history_that_one_server_could_have_had() {
    let folder = victim::fresh_folder("histories");
    let seed = number("LAZURITE_HISTORY_SEED", 1);
    let objects = Arc::new(Objects::default());
    for round in 0..number("LAZURITE_HISTORY_ROUNDS", 3) {
        let server = Victim::start(&folder);
        // What was asked of the dead one has happened or never will.
        objects.settle();
        objects.prepare(door(&server));
        let stop = Arc::new(AtomicBool::new(false));
        let doors = Arc::new(Doors::new([door(&server)]));
        let asking = clients(&objects, &doors, seed * 1_000 + round, true, &stop);
        thread::sleep(Duration::from_millis(700 + round * 173 % 900));
        server.kill();
        stop.store(true, Ordering::Release);
        join(asking);
    }
    let server = Victim::start(&folder);
    objects.settle();
    objects.look_at_everything(door(&server));
    server.kill();
    victim::check(&folder);
    std::fs::remove_dir_all(&folder).expect("removed");
    objects.judge(SLACK_ALONE, seed);
}

/// The environment with the byte store behind a proxy that can make it slow.
fn through_a_proxy(environment: &mut cluster::Environment, runtime: &tokio::runtime::Runtime) -> Proxy {
    let (_, url) = environment.iter_mut().find(|(name, _)| *name == "LAZURITE_BYTES").expect("a byte store");
    let (front, place) = url.split_once("endpoint=http://").expect("an endpoint");
    let (place, back) = place.split_once('&').expect("a region");
    let proxy = runtime.block_on(Proxy::before(place.parse().expect("an address")));
    *url = format!("{front}endpoint=http://{}&{back}", proxy.address());
    proxy
}

/// Waits until the database has ended what a killed node had sent, for which it needs no node: until it has closed all connections
/// from these ports.
fn await_last_commits(database: &str, ports: &[u16]) {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE client_port IN (0, {})", ports.join(", "));
    let began = Instant::now();
    while cluster::ask(database, &sql) != "0" {
        assert!(began.elapsed() < PATIENCE, "the database does not close the connections of a dead node");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn nodes_that_die_and_pause_leave_a_history_that_one_server_could_have_had() {
    let folder = victim::fresh_folder("histories-nodes");
    let mut environment = cluster::make(&folder);
    if cluster::nodes(&environment) < 3 {
        eprintln!("SKIPPED: histories of nodes; run it with scripts/cluster");
        return;
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let store = through_a_proxy(&mut environment, &runtime);
    let database = std::env::var("LAZURITE_TEST_METADATA").expect("scripts/cluster sets it");
    let seed = number("LAZURITE_HISTORY_SEED", 1);
    let mut nodes: Vec<Victim> = (0..3).map(|_| Victim::start_node(&folder, &environment)).collect();
    let doors = Arc::new(Doors::new(nodes.iter().map(door)));
    let objects = Arc::new(Objects::default());
    objects.prepare(doors.of(0));
    let stop = Arc::new(AtomicBool::new(false));
    let asking = clients(&objects, &doors, seed, false, &stop);
    thread::sleep(Duration::from_secs(3));

    // One node stands still, and the store is slow for a part of that time.
    nodes[1].signal("STOP");
    store.set_delay(STORE_DELAY);
    thread::sleep(SLOW);
    store.set_delay(Duration::ZERO);
    thread::sleep(PAUSE.saturating_sub(SLOW));
    nodes[1].signal("CONT");
    thread::sleep(Duration::from_secs(3));

    // Every commit waits for the standby.
    let stalled = StalledStandbys::of(&database);
    thread::sleep(SLOW);
    drop(stalled);
    thread::sleep(Duration::from_secs(2));

    // One node dies, and another takes its place.
    let victim = nodes.remove(2);
    let ports = victim.ports();
    assert!(!ports.is_empty(), "a node has connections to the database");
    victim.kill();
    await_last_commits(&database, &ports);
    objects.settle_those(|client| doors.place_of(client) == 2);
    nodes.push(Victim::start_node(&folder, &environment));
    doors.replace(2, door(&nodes[2]));
    thread::sleep(Duration::from_secs(4));

    stop.store(true, Ordering::Release);
    join(asking);
    objects.look_at_everything(doors.of(0));
    drop(nodes);
    objects.judge(SLACK_CLUSTER, seed);
    let _ = std::fs::remove_dir_all(&folder);
}
