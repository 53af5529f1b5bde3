//! One node serves SMB for all of them: SMB through any node, REST through any other, and the death of the one that serves.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command as Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ::smb::Status;
use ::smb::testing::{Told, body};
use ::smb::wire::header::Command;

use crate::client::{Client, KEY, NoAnswer};
use crate::has_nodes;
use crate::server::{Server, Service};
use crate::smb_server::Wire;

/// Only against hanging.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(120);
/// REST goes on within 20 seconds, which is the product's own bound. Less than the time-out of a request, because a request must not wait for
/// a node that stands still; more than the bound, because the machine may be busy.
const REST_GOES_ON_WITHIN: Duration = Duration::from_secs(30);

const READ: u32 = 0x1;
const WRITE: u32 = 0x2;
const SHARE_READ: u32 = 1;
const SHARE_WRITE: u32 = 2;
const SHARE_ALL: u32 = 7;
const OPEN: u32 = 1;
const OPEN_OR_CREATE: u32 = 3;

const UPDATE: (&str, &str) = ("x-ms-write", "update");

fn start() -> Option<Server> {
    has_nodes().then(|| Server::serving(Service::File))
}

/// Tries until it works.
fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(done) = attempt() {
            return done;
        }
        assert!(began.elapsed() < GIVEN_UP_AFTER, "{what}: it does not come to pass");
        thread::sleep(Duration::from_millis(100));
    }
}

/// A client with the share `data`, through the node at this address. `None`: not now.
fn mounted(address: SocketAddr) -> Option<Wire> {
    let (mut wire, status) = Wire::log_on_at(address, KEY).ok()?;
    assert_eq!(status, Status::SUCCESS);
    let told = wire.try_ask(Command::TreeConnect, body::tree_connect("data")).ok()?;
    if told.status() != Status::SUCCESS {
        return None;
    }
    wire.client.tree_id = told.header.tree_id().expect("a tree");
    Some(wire)
}

fn mount(address: SocketAddr) -> Wire {
    eventually("a mount", || mounted(address))
}

fn open(wire: &mut Wire, name: &str, access: u32, sharing: u32, disposition: u32) -> Told {
    wire.ask(Command::Create, body::create(name, access, sharing, disposition, 0))
}

fn write(wire: &mut Wire, file: &Told, bytes: &[u8]) -> Status {
    wire.ask(Command::Write, body::write(file.file_id(), 0, bytes)).status()
}

fn close(wire: &mut Wire, file: &Told) {
    assert_eq!(wire.ask(Command::Close, body::close(file.file_id())).status(), Status::SUCCESS);
}

fn create(client: &Client, name: &str, length: usize) {
    let length = length.to_string();
    client.call(&format!("PUT data/{name}"), &[("x-ms-type", "file"), ("x-ms-content-length", &length)], "").ok();
}

fn put_range(client: &Client, name: &str, bytes: &[u8]) -> String {
    let range = format!("bytes=0-{}", bytes.len() - 1);
    client.call(&format!("PUT data/{name}?comp=range"), &[UPDATE, ("x-ms-range", &range)], bytes).said()
}

/// Clients of each node, REST and SMB, with the share `data`.
fn clients(server: &Server) -> (Vec<Client>, Vec<SocketAddr>) {
    let rest: Vec<Client> = server.addresses().into_iter().map(Client::new).collect();
    rest[0].call("PUT data?restype=share", &[], "").ok();
    eventually("an owner", || server.smb_owner());
    (rest, server.smb_addresses())
}

/// SMB through every node and REST through every other: one table of opens.
#[test]
fn smb_through_any_node_and_rest_through_any_other() {
    let Some(server) = start() else { return };
    let (rest, smb) = clients(&server);
    for (node, address) in smb.iter().enumerate() {
        let mut wire = mount(*address);
        let name = format!("file{node}");
        create(&rest[node], &name, 4);
        for client in &rest {
            for (access, sharing, get, put) in [
                (READ, SHARE_ALL, "200", "201"),
                (READ, SHARE_READ, "200", "409 SharingViolation"),
                (READ, SHARE_WRITE, "409 SharingViolation", "201"),
                (READ, 0, "409 SharingViolation", "409 SharingViolation"),
                (WRITE, SHARE_READ | SHARE_WRITE, "200", "201"),
                (READ | WRITE, SHARE_READ, "200", "409 SharingViolation"),
            ] {
                let file = open(&mut wire, &name, access, sharing, OPEN);
                assert_eq!(file.status(), Status::SUCCESS);
                let said = client.call(&format!("GET data/{name}"), &[], "").said();
                assert_eq!(
                    (said.as_str(), put_range(client, &name, b"rest").as_str()),
                    (get, put),
                    "{access} {sharing}"
                );
                close(&mut wire, &file);
            }
            let file = open(&mut wire, &name, READ | WRITE, SHARE_ALL, OPEN);
            assert_eq!(write(&mut wire, &file, b"smb!"), Status::SUCCESS);
            assert_eq!(client.call(&format!("GET data/{name}"), &[], "").ok().body, b"smb!");
            assert_eq!(put_range(client, &name, b"rest"), "201");
            let read = wire.ask(Command::Read, body::read(file.file_id(), 0, 4));
            assert_eq!((read.status(), read.data()), (Status::SUCCESS, &b"rest"[..]));
            // An exclusive lock of two bytes, at once or not at all.
            let locked = wire.ask(Command::Lock, body::lock(file.file_id(), &[(0, 2, 0x12)]));
            assert_eq!(locked.status(), Status::SUCCESS);
            assert_eq!(put_range(client, &name, b"rest"), "409 FileLockConflict");
            let answer = client.call(&format!("GET data/{name}?comp=listhandles"), &[], "").ok();
            let listed = String::from_utf8(answer.body).expect("text");
            let own = wire.socket.local_addr().expect("an address");
            assert!(listed.contains(&format!("<ClientIp>{own}</ClientIp>")), "{own} is not in {listed}");
            close(&mut wire, &file);
        }
    }
    requests_of_every_kind_get_through(&rest);
    what_only_nodes_may_say(&server, &rest);
    // All nodes are well, whichever serves.
    assert!(server.is_healthy());
}

/// Large bodies both ways, heads without bodies, spelled names and refusals, through every node.
fn requests_of_every_kind_get_through(rest: &[Client]) {
    let large: Vec<u8> = (0..4 << 20).map(|place: u32| (place % 251) as u8).collect();
    create(&rest[0], "large", large.len());
    for client in rest {
        assert_eq!(put_range(client, "large", &large), "201");
        assert!(client.call("GET data/large", &[], "").ok().body == large, "it is as it was written");
        let head = client.call("HEAD data/large", &[], "").ok();
        assert_eq!(head.header("content-length"), Some("4194304"));
        client.call("PUT data/large?comp=metadata", &[("x-ms-meta-CamelCase", "one")], "").ok();
        assert_eq!(client.call("HEAD data/large", &[], "").ok().header("x-ms-meta-camelcase"), Some("one"));
        assert_eq!(client.call("GET data/missing", &[], "").said(), "404 ResourceNotFound");
        let acl = "<SignedIdentifiers/>";
        client.call("PUT data?restype=share&comp=acl", &[], acl).ok();
        client.call("GET data?restype=directory&comp=list", &[], "").ok();
    }
}

/// What a node tells another about a client is not believed of anybody else.
fn what_only_nodes_may_say(server: &Server, rest: &[Client]) {
    let forged = "A".repeat(80);
    for client in rest {
        assert_eq!(client.call("GET data/large", &[("x-lazurite-client", &forged)], "").said(), "503 ServerBusy");
    }
    for address in server.smb_addresses() {
        let mut stream = TcpStream::connect(address).expect("the SMB port");
        stream.set_read_timeout(Some(GIVEN_UP_AFTER)).expect("a limit");
        stream.write_all(&[b"LZR1", &[7; 74][..]].concat()).expect("sent");
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        assert!(rest.is_empty(), "it was answered: {ended:?}");
    }
}

/// Writers of files, through REST of every node but one and through SMB, that do not give up. Each writes rising numbers.
struct Writers {
    stop: Arc<AtomicBool>,
    acknowledged: Vec<(String, Arc<AtomicU64>)>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Writers {
    fn begin(server: &Server, except: usize) -> Writers {
        let mut writers = Writers { stop: Arc::default(), acknowledged: Vec::new(), threads: Vec::new() };
        let smb = server.smb_addresses();
        for (node, address) in server.addresses().into_iter().enumerate().filter(|(node, _)| *node != except) {
            let client = Client::new(address);
            create(&client, &format!("rest{node}"), 8);
            writers.add(format!("rest{node}"), move |name, number| {
                let range = [UPDATE, ("x-ms-range", "bytes=0-7")];
                let body = u64::to_be_bytes(number);
                let answer = client.try_call(&format!("PUT data/{name}?comp=range"), &range, body);
                match answer {
                    Ok(answer) if answer.is_success() => true,
                    Ok(answer) => {
                        assert!(answer.status >= 500, "{}", answer.said());
                        false
                    }
                    Err(NoAnswer::NotSent | NoAnswer::Lost) => false,
                }
            });
            let (address, mut wire) = (smb[node], None);
            writers.add(format!("smb{node}"), move |name, number| {
                let done = wire.take().or_else(|| mounted(address)).and_then(|mut mounted| {
                    let wish = body::create(name, READ | WRITE, SHARE_ALL, OPEN_OR_CREATE, 0);
                    let file = mounted.try_ask(Command::Create, wish).ok()?;
                    if file.status() != Status::SUCCESS {
                        return None;
                    }
                    let id = file.file_id();
                    let written =
                        mounted.try_ask(Command::Write, body::write(id, 0, &u64::to_be_bytes(number))).ok()?;
                    let is_written = written.status() == Status::SUCCESS;
                    mounted.try_ask(Command::Close, body::close(id)).ok()?;
                    wire = Some(mounted);
                    is_written.then_some(())
                });
                done.is_some()
            });
        }
        writers.await_progress("the beginning");
        writers
    }

    fn add(&mut self, name: String, mut attempt: impl FnMut(&str, u64) -> bool + Send + 'static) {
        let acknowledged = Arc::new(AtomicU64::new(0));
        self.acknowledged.push((name.clone(), Arc::clone(&acknowledged)));
        let stop = Arc::clone(&self.stop);
        self.threads.push(thread::spawn(move || {
            let mut number = 1;
            while !stop.load(Ordering::Acquire) {
                if attempt(&name, number) {
                    acknowledged.store(number, Ordering::Release);
                } else {
                    thread::sleep(Duration::from_millis(50));
                }
                number += 1;
            }
        }));
    }

    /// Waits until each writer has been acknowledged some more. Returns how long that took over REST and over SMB.
    fn await_progress(&self, what: &str) -> (Duration, Duration) {
        let began = Instant::now();
        let before: Vec<u64> = self.acknowledged.iter().map(|(_, count)| count.load(Ordering::Acquire)).collect();
        let (rest, smb): (Vec<_>, Vec<_>) =
            self.acknowledged.iter().zip(before).partition(|((name, _), _)| name.starts_with("rest"));
        let [rest, smb] = [rest, smb].map(|writers| {
            for ((name, count), before) in writers {
                eventually(&format!("{name}, {what}"), || {
                    assert!(!self.threads.iter().any(thread::JoinHandle::is_finished), "a writer saw what it must not");
                    (count.load(Ordering::Acquire) > before + 3).then_some(())
                });
            }
            began.elapsed()
        });
        assert!(rest < REST_GOES_ON_WITHIN, "{what}: {rest:?}");
        (rest, smb)
    }

    /// Ends them, and looks whether what was acknowledged last, or something later, is there.
    fn end(self, client: &Client) {
        self.stop.store(true, Ordering::Release);
        self.threads.into_iter().for_each(|writer| writer.join().expect("a writer saw what it must not"));
        for (name, acknowledged) in self.acknowledged {
            let body = eventually("a read", || {
                let answer = client.call(&format!("GET data/{name}"), &[], "");
                answer.is_success().then_some(answer.body)
            });
            let found = u64::from_be_bytes(body.try_into().expect("a number"));
            let least = acknowledged.load(Ordering::Acquire);
            assert!(found >= least, "{name}: {least} was acknowledged, and {found} is there");
        }
    }
}

/// `kill -9` of the node that serves SMB, under load: REST and SMB go on through the others, and nothing acknowledged is lost.
#[test]
fn killing_the_node_that_serves_smb_loses_nothing() {
    let Some(mut server) = start() else { return };
    clients(&server);
    let owner = eventually("an owner", || server.smb_owner());
    let writers = Writers::begin(&server, owner);
    server.lose_node(owner);
    let (rest, smb) = writers.await_progress("after the owner was killed");
    let successor = eventually("a successor", || server.smb_owner());
    writers.end(&Client::new(server.addresses()[1 - successor]));
    eprintln!(
        "the node that serves SMB was killed: through the others REST went on within {rest:?}, SMB within {smb:?}"
    );
}

/// The node that serves SMB stands still beyond its term, and goes on: it commits nothing any more.
#[test]
fn a_node_that_stood_still_commits_nothing_more() {
    let Some(server) = start() else { return };
    let (rest, smb) = clients(&server);
    let owner = eventually("an owner", || server.smb_owner());
    let other = (owner + 1) % smb.len();
    let mut old = mount(smb[owner]);
    let file = open(&mut old, "file", READ | WRITE, SHARE_ALL, OPEN_OR_CREATE);
    assert_eq!(write(&mut old, &file, b"first"), Status::SUCCESS);
    let writers = Writers::begin(&server, owner);
    signal(&server, owner, "-STOP");
    let (rest_took, smb_took) = writers.await_progress("after the owner was stopped");
    // Not as a writer of the file that the old client has open: that one is to be refused for the share, and not for the file.
    assert_eq!(rest[other].call("GET data/file", &[], "").ok().body, b"first");
    // These wait in the sockets of the node until it goes on.
    for _ in 0..3 {
        let late = old.client.ask(Command::Write, body::write(file.file_id(), 0, b"later"));
        old.send(&late);
    }
    signal(&server, owner, "-CONT");
    let mut refusals = 0;
    while let Ok(frame) = old.try_receive() {
        for told in old.client.answers(&frame) {
            assert_ne!(told.status(), Status::SUCCESS, "a late write was acknowledged");
            refusals += 1;
        }
    }
    assert_eq!(rest[other].call("GET data/file", &[], "").ok().body, b"first", "a late write was committed");
    // It is a node like any other again.
    let mut again = mount(smb[owner]);
    let file = open(&mut again, "file", READ | WRITE, SHARE_ALL, OPEN);
    assert_eq!(write(&mut again, &file, b"again"), Status::SUCCESS);
    assert_eq!(rest[owner].call("GET data/file", &[], "").ok().body, b"again");
    writers.end(&rest[other]);
    eprintln!(
        "the node that serves SMB stood still: through the others REST went on within {rest_took:?}, SMB within {smb_took:?}; \
         of its late writes {refusals} were refused, the others were not answered"
    );
}

fn signal(server: &Server, node: usize, signal: &str) {
    let process = server.process(node).to_string();
    assert!(Process::new("kill").args([signal, &process]).status().expect("kill runs").success());
}
