//! SMB from outside: frames over TCP against the real program, those of a client that is well and those of one that is not.
//!
//! What files do over SMB is tested by other clients (`tests/clients/python/test_smb*.py`) and in the crate `smb`.

mod hostile;
mod server;

use server::{Program, Wire};
use smb::Status;
use smb::testing::body;
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
