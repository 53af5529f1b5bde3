//! Much of everything at once: opens, locks, answers that are never read, garbage, logons that never end. Each meets a limit that has a
//! name, the memory of the server stays bounded, and another client is served meanwhile.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use smb::Status;
use smb::testing::{Asked, body};
use smb::wire::FileId;
use smb::wire::header::Command;

use crate::KEY;
use crate::server::{Program, Wire};

const OPENS_PER_FILE_MAX: usize = 2_000;
const OPENS_PER_SESSION_MAX: usize = 16_384;
const LOCKS_PER_OPEN_MAX: u64 = 4_096;
const LOCKS_PER_FILE_MAX: u64 = 16_384;
/// Requests in a frame.
const BATCH: usize = 40;
const READ: u32 = 0x1;
const ALL: u32 = 0x1F_01FF;
const SHARE_ALL: u32 = 7;
const OPEN_IF: u32 = 3;

/// Another client: it writes and reads a file of its own for as long as the flood lasts.
struct Bystander {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Bystander {
    fn begin(program: &Program) -> Bystander {
        let mut wire = Wire::on_data(program);
        let id = wire.open("bystander", ALL, 0, OPEN_IF, 0).file_id();
        let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&rounds));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Acquire) {
                let round = counted.fetch_add(1, Ordering::AcqRel).to_le_bytes();
                assert_eq!(wire.ask(Command::Write, body::write(id, 0, &round)).status(), Status::SUCCESS);
                assert_eq!(wire.ask(Command::Read, body::read(id, 0, 8)).data(), round);
            }
        });
        Bystander { stop, rounds, thread }
    }

    /// Waits until it has been served some more.
    fn is_served(&self) {
        let before = self.rounds.load(Ordering::Acquire);
        while self.rounds.load(Ordering::Acquire) < before + 2 {
            assert!(!self.thread.is_finished(), "the bystander was not served");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn end(self) {
        self.stop.store(true, Ordering::Release);
        self.thread.join().expect("the bystander was served");
    }
}

fn statuses(wire: &mut Wire, asked: Vec<Asked>) -> Vec<Status> {
    wire.ask_all(asked).iter().map(|told| told.status()).collect()
}

#[test]
fn ten_thousand_opens() {
    let program = Program::start(&["--create", "share:data"]);
    let bystander = Bystander::begin(&program);
    let mut wire = Wire::on_data(&program);
    wire.gather_credits();
    let opens = |name: &str, count: usize| -> Vec<Asked> {
        vec![Asked::new(Command::Create, body::create(name, READ, SHARE_ALL, OPEN_IF, 0)); count]
    };
    let files = OPENS_PER_SESSION_MAX.div_ceil(OPENS_PER_FILE_MAX);
    let mut opened = 0;
    for number in 0..files {
        let name = format!("file{number}");
        let of_file = OPENS_PER_FILE_MAX.min(OPENS_PER_SESSION_MAX - opened);
        let mut left = of_file;
        while left > 0 {
            let count = left.min(BATCH);
            assert_eq!(statuses(&mut wire, opens(&name, count)), vec![Status::SUCCESS; count], "{name}: {left}");
            left -= count;
        }
        opened += of_file;
        assert_eq!(statuses(&mut wire, opens(&name, 1)), [Status::INSUFFICIENT_RESOURCES], "{name}");
        bystander.is_served();
    }
    assert_eq!(opened, OPENS_PER_SESSION_MAX);
    assert_eq!(statuses(&mut wire, opens("another", 1)), [Status::INSUFFICIENT_RESOURCES], "the session is full");
    // The limit of a file counts all sessions, that of a session its own opens.
    let mut other = Wire::on_data(&program);
    assert_eq!(statuses(&mut other, opens("file0", 1)), [Status::INSUFFICIENT_RESOURCES]);
    assert_eq!(statuses(&mut other, opens("another", 1)), [Status::SUCCESS]);
    assert!(program.memory() < 512 << 20, "{} bytes", program.memory());
    // All of it goes with the connection: then nobody stands against an open that shares nothing.
    drop(wire);
    for number in 0..files {
        while other.open(&format!("file{number}"), ALL, 0, OPEN_IF, 0).status() == Status::SHARING_VIOLATION {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    bystander.end();
}

#[test]
fn a_hundred_thousand_locks() {
    const LOCKS: u64 = 100_000;
    const PER_REQUEST: u64 = 256;
    const AT_ONCE: u32 = 0x11;
    let program = Program::start(&["--create", "share:data"]);
    let bystander = Bystander::begin(&program);
    let mut wire = Wire::on_data(&program);
    let lock = |wire: &mut Wire, id: FileId, first: u64, count: u64| {
        let ranges: Vec<(u64, u64, u32)> = (first..first + count).map(|at| (at * 10, 5, AT_ONCE)).collect();
        wire.ask(Command::Lock, body::lock(id, &ranges)).status()
    };
    let mut locked = 0;
    for number in 0.. {
        let name = format!("file{number}");
        // Each lock is held against all others of its file. One file is filled; the others have a part of that, which is done sooner.
        let opens = if number == 0 { LOCKS_PER_FILE_MAX / LOCKS_PER_OPEN_MAX } else { 1 };
        for open in 0..opens {
            let id = wire.open(&name, ALL, SHARE_ALL, OPEN_IF, 0).file_id();
            let first = open * LOCKS_PER_OPEN_MAX;
            for part in 0..LOCKS_PER_OPEN_MAX / PER_REQUEST {
                let first = first + part * PER_REQUEST;
                assert_eq!(lock(&mut wire, id, first, PER_REQUEST), Status::SUCCESS, "{name} {open} {part}");
                locked += PER_REQUEST;
            }
            assert_eq!(lock(&mut wire, id, 1 << 40, 1), Status::INSUFFICIENT_RESOURCES, "the open is full");
            bystander.is_served();
        }
        let id = wire.open(&name, ALL, SHARE_ALL, OPEN_IF, 0).file_id();
        let last = if number == 0 { Status::INSUFFICIENT_RESOURCES } else { Status::SUCCESS };
        assert_eq!(lock(&mut wire, id, 1 << 40, 1), last, "whether {name} is full");
        if locked >= LOCKS {
            break;
        }
    }
    assert!(program.memory() < 512 << 20, "{} bytes", program.memory());
    // The locks hold: a write of another client meets the first, and none when they are gone.
    let mut other = Wire::on_data(&program);
    let id = other.open("file0", ALL, SHARE_ALL, OPEN_IF, 0).file_id();
    let write = || body::write(id, 0, b"x");
    assert_eq!(other.ask(Command::Write, write()).status(), Status::FILE_LOCK_CONFLICT);
    drop(wire);
    while other.ask(Command::Write, write()).status() == Status::FILE_LOCK_CONFLICT {
        std::thread::sleep(Duration::from_millis(20));
    }
    bystander.end();
}

/// What one request asks for of the file `large`.
const LARGE_BYTES: u32 = 1 << 20;

/// A request for as many bytes.
fn large(command: Command, body: Vec<u8>) -> Vec<Asked> {
    vec![Asked { charge: 16, ..Asked::new(command, body) }]
}

/// The client that has written the file `large`, with its handle.
fn owner_of_large(program: &Program) -> (Wire, FileId) {
    let mut owner = Wire::on_data(program);
    owner.gather_credits();
    let id = owner.open("large", ALL, SHARE_ALL, OPEN_IF, 0).file_id();
    let data = vec![7; LARGE_BYTES as usize];
    assert_eq!(owner.ask_all(large(Command::Write, body::write(id, 0, &data)))[0].status(), Status::SUCCESS);
    (owner, id)
}

/// A client that has asked for the file `large` as often as it may, and has read nothing of it.
fn greedy(program: &Program) -> Wire {
    /// What 480 of 512 credits pay for.
    const REQUESTS: usize = 30;
    let mut wire = Wire::on_data(program);
    wire.gather_credits();
    let id = wire.open("large", READ, SHARE_ALL, 1, 0).file_id();
    wire.socket.set_nonblocking(true).expect("a setting");
    for _ in 0..REQUESTS {
        let frame = wire.client.frame(large(Command::Read, body::read(id, 0, LARGE_BYTES)));
        // When the server has read enough it reads no more, or it has ended the connection.
        if wire.socket.write(&frame).ok() != Some(frame.len()) {
            break;
        }
    }
    wire
}

/// Many clients ask for far more than the server has memory for, and read nothing. The answers of all connections together have a
/// limit.
#[test]
fn clients_that_never_read() {
    const CLIENTS: usize = 100;
    let program = Program::start(&["--create", "share:data"]);
    let (mut owner, id) = owner_of_large(&program);
    let bystander = Bystander::begin(&program);
    let mut silent = Vec::new();
    let mut most = 0;
    for _ in 0..CLIENTS {
        silent.push(greedy(&program));
        bystander.is_served();
        most = most.max(program.memory());
    }
    assert!(most < 800 << 20, "{most} bytes");
    drop(silent);
    bystander.end();
    assert!(
        owner.ask_all(large(Command::Read, body::read(id, 0, LARGE_BYTES)))[0].data().iter().all(|byte| *byte == 7)
    );
}

/// Nor do clients that read a little now and then keep the memory from others.
#[test]
fn clients_that_read_a_little() {
    const CLIENTS: usize = 40;
    const PAUSE: Duration = Duration::from_millis(200);
    let program = Program::start(&["--create", "share:data"]);
    let (mut owner, id) = owner_of_large(&program);
    let bystander = Bystander::begin(&program);
    let mut slow: Vec<Wire> = (0..CLIENTS).map(|_| greedy(&program)).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let trickle = std::thread::spawn(move || {
        let mut part = vec![0; 32 << 10];
        while !stopped.load(Ordering::Acquire) {
            for wire in &mut slow {
                // Nothing may have come, or the connection is gone.
                let _ = wire.socket.read(&mut part);
            }
            std::thread::sleep(PAUSE);
        }
    });
    bystander.is_served();
    // Too large for the reserve: it needs what the others hold.
    let told = owner.ask_all(large(Command::Read, body::read(id, 0, LARGE_BYTES))).remove(0);
    assert_eq!((told.status(), told.data().len()), (Status::SUCCESS, LARGE_BYTES as usize));
    stop.store(true, Ordering::Release);
    trickle.join().expect("it only reads");
    bystander.end();
}

/// Random bytes before NEGOTIATE, as NEGOTIATE, as tokens of a logon, as a frame that claims to be encrypted, and as the body of every
/// command of a client that is logged on.
#[test]
fn garbage_at_every_stage() {
    let program = Program::start(&["--create", "share:data"]);
    let bystander = Bystander::begin(&program);
    const BODY_SIZES: [u8; 9] = [4, 9, 24, 32, 33, 41, 48, 49, 57];
    let mut random = Random(1);
    for round in 0..40 {
        let mut wire = Wire::connected(&program);
        let _ = wire.socket.write_all(&random.frame(&[]));
        let mut negotiating = Wire::connected(&program);
        let frame = negotiating.client.negotiate();
        let _ = negotiating.socket.write_all(&random.damaged(&frame));
        let mut logging_on = Wire::connected(&program);
        let frame = logging_on.client.negotiate();
        let answer = logging_on.exchange(&frame);
        let frame = logging_on.client.log_on(&answer, "devstoreaccount1", KEY);
        let _ = logging_on.socket.write_all(&random.damaged(&frame));
        let (mut proving, proof) = Wire::half_logged_on(&program, KEY);
        let _ = proving.socket.write_all(&random.damaged(&proof));
        let mut sealed = Wire::on_data(&program);
        let frame = sealed.client.ask(Command::Echo, body::empty());
        let _ = sealed.socket.write_all(&random.damaged(&frame));
        let _ = sealed.socket.write_all(&random.frame(b"\xFDSMB"));
        if round % 10 == 0 {
            bystander.is_served();
        }
    }
    for number in 0..19u16 {
        let Some(command) = Command::from_u16(number) else { continue };
        // Those have states of their own, and CANCEL has no answer.
        if matches!(command, Command::Negotiate | Command::SessionSetup | Command::Cancel | Command::Logoff) {
            continue;
        }
        let mut wire = Wire::on_data(&program);
        let usual = |wire: &mut Wire| wire.open("mine", ALL, SHARE_ALL, OPEN_IF, 0);
        let id = usual(&mut wire).file_id();
        for _ in 0..40 {
            let mut bytes = random.bytes(4 + random.clone().next() as usize % 200);
            // Now and then the size of the body is right, and so is the file.
            if random.next().is_multiple_of(2) && bytes.len() > 32 {
                let at = if random.next().is_multiple_of(2) { 8 } else { 16 };
                bytes[at..at + 8].copy_from_slice(&id.persistent.to_le_bytes());
                bytes[at + 8..at + 16].copy_from_slice(&id.volatile.to_le_bytes());
                bytes[..2].copy_from_slice(&[BODY_SIZES[random.next() as usize % BODY_SIZES.len()], 0]);
            }
            assert!(wire.try_ask(command, bytes).is_ok(), "{command:?} of a client that is logged on has an answer");
        }
        drop(wire);
        bystander.is_served();
    }
    assert!(program.memory() < 512 << 20, "{} bytes", program.memory());
    bystander.end();
}

/// Logons that stop in the middle, on many connections and several on each, cost little and keep nobody out.
#[test]
fn half_logons_for_ever() {
    const CLIENTS: usize = 300;
    let program = Program::start(&["--create", "share:data"]);
    let bystander = Bystander::begin(&program);
    let before = program.memory();
    let mut half = Vec::new();
    for _ in 0..CLIENTS {
        let (mut wire, _) = Wire::half_logged_on(&program, KEY);
        // A second one on the same connection.
        wire.client.session_id = 0;
        let frame = wire.client.log_on_again("devstoreaccount1", KEY);
        wire.exchange(&frame);
        half.push(wire);
    }
    bystander.is_served();
    let more = program.memory().saturating_sub(before);
    assert!(more < 256 << 20, "{more} bytes for {CLIENTS} connections");
    drop(half);
    bystander.end();
}

#[derive(Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    /// A frame of random bytes behind these.
    fn frame(&mut self, begin: &[u8]) -> Vec<u8> {
        let count = 64 + self.next() as usize % 400;
        let body = [begin, &self.bytes(count)].concat();
        [&(body.len() as u32).to_be_bytes()[..], &body].concat()
    }

    /// The frame with some of its bytes changed.
    fn damaged(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut frame = frame.to_vec();
        for _ in 0..1 + self.next() % 8 {
            let at = 4 + self.next() as usize % (frame.len() - 4);
            frame[at] ^= 1 + (self.next() % 255) as u8;
        }
        frame
    }
}
