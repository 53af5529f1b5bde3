//! SMB from outside: frames over TCP against the real program, those of a client that is well and those of one that is not.
//!
//! `crash` kills the server under writers, `races` has REST and SMB at once, `floods` and `hostile` have what no client sends. What files
//! do over SMB is tested by other clients (`tests/clients/python/test_smb*.py`) and in the crate `smb`.

#[path = "../harness/client.rs"]
#[allow(dead_code)]
mod client;
mod crash;
mod durable;
mod floods;
mod hostile;
mod races;
mod server;
#[path = "../harness/xml.rs"]
#[allow(dead_code)]
mod xml;

use std::net::Shutdown;
use std::time::Duration;

use server::{Program, Wire};
use smb::Status;
use smb::testing::{Asked, body};
use smb::wire::header::Command;

const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

#[test]
fn a_file_comes_back_after_the_server_was_killed() {
    let mut program = Program::start(&["--create", "share:data"]);
    let mut client = Wire::logged_on(&program, KEY);
    client.connect("data");
    let id = client.ask(Command::Create, body::create("a", 0x1F_01FF, 7, 2, 0)).file_id();
    let told = client.ask(Command::Write, body::write(id, 0, b"durable when it is answered"));
    assert_eq!(told.status(), Status::SUCCESS);
    program.kill_and_restart();
    let mut client = Wire::logged_on(&program, KEY);
    client.connect("data");
    let id = client.ask(Command::Create, body::create("A", 1, 7, 1, 0)).file_id();
    let told = client.ask(Command::Read, body::read(id, 0, 100));
    assert_eq!(told.data(), b"durable when it is answered");
}

#[test]
fn requests_are_counted_by_command() {
    let program = Program::start(&["--create", "share:data"]);
    let mut client = Wire::logged_on(&program, KEY);
    client.connect("data");
    assert_eq!(client.ask(Command::Create, body::create("no", 1, 7, 1, 0)).status(), Status::OBJECT_NAME_NOT_FOUND);
    let metrics = program.metrics();
    for line in [
        "lazurite_smb_requests_total{command=\"TREE_CONNECT\",status=\"success\"} 1",
        "lazurite_smb_requests_total{command=\"CREATE\",status=\"error\"} 1",
    ] {
        assert!(metrics.lines().any(|told| told == line), "{line} is not in\n{metrics}");
    }
}

/// Reading has ended when most of the answers are still to be sent: each of them arrives whole.
#[test]
fn answers_arrive_whole_after_the_client_said_its_last_word() {
    const BYTES: u32 = 8 << 20;
    let program = Program::start(&["--create", "share:data"]);
    let mut client = Wire::logged_on(&program, KEY);
    client.connect("data");
    let id = client.ask(Command::Create, body::create("a", 0x1F_01FF, 7, 2, 0)).file_id();
    client.gather_credits();
    let large = |command, body| vec![Asked { charge: 128, ..Asked::new(command, body) }];
    let data: Vec<u8> = (0..BYTES).map(|number| (number % 251) as u8).collect();
    let frame = client.client.frame(large(Command::Write, body::write(id, 0, &data)));
    let frame = client.exchange(&frame);
    assert_eq!(client.client.answers(&frame)[0].status(), Status::SUCCESS);
    client.gather_credits();
    for _ in 0..3 {
        let frame = client.client.frame(large(Command::Read, body::read(id, 0, BYTES)));
        client.send(&frame);
    }
    // The first frame is on its way, and has no room in the buffers of the socket.
    assert_eq!(client.socket.peek(&mut [0; 4]).unwrap(), 4);
    client.socket.shutdown(Shutdown::Write).unwrap();
    // Nothing depends on it but that the server most likely sees the end before the frame is sent.
    std::thread::sleep(Duration::from_millis(300));
    for _ in 0..3 {
        let frame = client.receive();
        // An interim answer may come first.
        let mut told = client.client.answers(&frame).remove(0);
        while told.status() == Status::PENDING {
            let frame = client.receive();
            told = client.client.answers(&frame).remove(0);
        }
        assert!(told.status() == Status::SUCCESS && told.data() == data);
    }
    assert!(client.ends());
}

/// A frame that never ends does not keep the server from closing files.
#[test]
fn a_file_is_deleted_at_the_end_although_its_client_is_in_the_middle_of_a_frame() {
    let mut program = Program::start(&["--create", "share:data"]);
    let mut client = Wire::logged_on(&program, KEY);
    client.connect("data");
    let told = client.ask(Command::Create, body::create("a", 0x1F_01FF, 7, 2, 0x1000));
    assert_eq!(told.status(), Status::SUCCESS);
    let frame = client.client.ask(Command::Echo, body::empty());
    client.send(&frame[..20]);
    assert!(program.stop_and_restart(), "it ends with 0");
    assert!(client.ends());
    let mut client = Wire::logged_on(&program, KEY);
    client.connect("data");
    let told = client.ask(Command::Create, body::create("a", 1, 7, 1, 0));
    assert_eq!(told.status(), Status::OBJECT_NAME_NOT_FOUND);
}

#[test]
fn the_server_ends_in_good_order_with_clients_connected() {
    let program = Program::start(&["--create", "share:data"]);
    let mut client = Wire::logged_on(&program, KEY);
    client.connect("data");
    let id = client.ask(Command::Create, body::create("a", 0x1F_01FF, 7, 2, 0x1000)).file_id();
    let told = client.ask(Command::Write, body::write(id, 0, b"x"));
    assert_eq!(told.status(), Status::SUCCESS);
    let silent = Wire::connected(&program);
    assert!(program.stop(), "it ends with 0");
    assert!(client.ends() && silent.ends());
}

/// A client keeps writes back; another one opens the file, waits, and reads what the first wrote when it was told to.
#[test]
fn a_cache_is_written_back_before_another_client_reads() {
    const KEY_OF_LEASE: [u8; 16] = [7; 16];
    const READ_HANDLE: u32 = 3;
    const ALL: u32 = 7;
    let program = Program::start(&["--create", "share:data"]);
    let (mut holder, mut reader) = (Wire::logged_on(&program, KEY), Wire::logged_on(&program, KEY));
    holder.connect("data");
    reader.connect("data");
    let told = holder.ask(Command::Create, body::create_with_lease("a", KEY_OF_LEASE, ALL, None));
    let id = told.file_id();
    let frame = reader.client.ask(Command::Create, body::create("a", 1, 7, 1, 0));
    let frame = reader.exchange(&frame);
    let interim = reader.client.answers(&frame).remove(0);
    assert_eq!(interim.status(), Status::PENDING);
    let frame = holder.receive();
    let broken = holder.client.answers(&frame).remove(0);
    assert_eq!((broken.header.message_id, broken.header.command), (u64::MAX, Command::OplockBreak as u16));
    assert_eq!(holder.ask(Command::Write, body::write(id, 0, b"kept back")).status(), Status::SUCCESS);
    let told = holder.ask(Command::OplockBreak, body::lease_ack(KEY_OF_LEASE, READ_HANDLE));
    assert_eq!(told.status(), Status::SUCCESS);
    let frame = reader.receive();
    let opened = reader.client.answers(&frame).remove(0);
    assert_eq!((opened.status(), opened.header.message_id), (Status::SUCCESS, interim.header.message_id));
    let told = reader.ask(Command::Read, body::read(opened.file_id(), 0, 100));
    assert_eq!(told.data(), b"kept back");
}
