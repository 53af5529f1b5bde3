//! Many clients at once, over HTTP, while servers die: what they saw must be what one server, doing one thing after another, could
//! have answered.
//!
//! Blobs with If-Match, leases and the writes they keep out, messages, transactions of entities and a container that comes and goes; the
//! models are in `crates/histories`. The embedded server is killed again and again (`LAZURITE_HISTORY_ROUNDS`, `cargo xtask histories N`).
//! Under `scripts/cluster` there are three nodes, of which one dies and one stands still for longer than its place in the cluster
//! is kept for it.

#[path = "../harness/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "../harness/cluster.rs"]
#[allow(dead_code)]
mod cluster;
mod objects;
#[path = "../crash/victim.rs"]
#[allow(dead_code)]
mod victim;
#[path = "../harness/xml.rs"]
#[allow(dead_code)]
mod xml;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use objects::{Door, Objects};
use victim::Victim;

const CLIENTS: u64 = 6;
/// By how much the times of clients and servers may differ, in milliseconds: a server reads its clock again when it starts.
const SLACK_ALONE: u64 = 30;
/// The nodes of a cluster follow the clock of the database.
const SLACK_CLUSTER: u64 = 500;
/// Longer than the place of a node is kept that says nothing.
const PAUSE: Duration = Duration::from_secs(20);

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn door(server: &Victim) -> Door {
    Door { blob: server.blob, queue: server.queue, table: server.table }
}

/// Clients that ask until they are told to stop, or (where they are told so) until one of them gets no answer.
fn clients(
    objects: &Arc<Objects>,
    doors: &[Door],
    seed: u64,
    gives_up: bool,
    stop: &Arc<AtomicBool>,
) -> Vec<JoinHandle<()>> {
    let client = |number: u64| {
        let (objects, stop) = (Arc::clone(objects), Arc::clone(stop));
        let door = doors[number as usize % doors.len()];
        thread::spawn(move || objects.client(number, door, seed, gives_up, &stop))
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
        let asking = clients(&objects, &[door(&server)], seed * 1_000 + round, true, &stop);
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

#[test]
fn nodes_that_die_and_pause_leave_a_history_that_one_server_could_have_had() {
    let folder = victim::fresh_folder("histories-nodes");
    let environment = cluster::make(&folder);
    if cluster::nodes(&environment) < 3 {
        eprintln!("SKIPPED: histories of nodes; run it with scripts/cluster");
        return;
    }
    let seed = number("LAZURITE_HISTORY_SEED", 1);
    let mut nodes: Vec<Victim> = (0..3).map(|_| Victim::start_node(&folder, &environment)).collect();
    let doors: Vec<Door> = nodes.iter().map(door).collect();
    let objects = Arc::new(Objects::default());
    objects.prepare(doors[0]);
    let stop = Arc::new(AtomicBool::new(false));
    let asking = clients(&objects, &doors, seed, false, &stop);
    thread::sleep(Duration::from_secs(3));
    nodes[1].signal("STOP");
    thread::sleep(PAUSE);
    nodes[1].signal("CONT");
    thread::sleep(Duration::from_secs(3));
    nodes.pop().expect("three").kill();
    thread::sleep(Duration::from_secs(5));
    stop.store(true, Ordering::Release);
    join(asking);
    objects.look_at_everything(doors[0]);
    drop(nodes);
    objects.judge(SLACK_CLUSTER, seed);
    let _ = std::fs::remove_dir_all(&folder);
}
