//! Durable opens over real connections.

use smb::Status;
use smb::testing::body;
use smb::wire::FileId;
use smb::wire::header::Command;

use crate::KEY;
use crate::server::{Program, Wire};

const GUID: u128 = 7;
const BATCH: u8 = 9;
/// FILE_DELETE_ON_CLOSE.
const DELETE_ON_CLOSE: u32 = 0x1000;

fn connected(program: &Program) -> Wire {
    let mut wire = Wire::logged_on(program, KEY);
    wire.connect("data");
    wire
}

fn open(wire: &mut Wire, name: &str, options: u32) -> FileId {
    let create = body::create(name, 0x1F_01FF, 7, 3, options);
    let create = body::with_contexts(create, BATCH, &[(b"DH2Q", body::durable_v2(0, GUID))]);
    let told = wire.ask(Command::Create, create);
    assert_eq!((told.status(), told.bytes[64 + 2]), (Status::SUCCESS, BATCH));
    told.file_id()
}

fn claim(wire: &mut Wire, name: &str, id: FileId) -> Result<FileId, Status> {
    let create = body::create(name, 0x1F_01FF, 7, 1, 0);
    let create = body::with_contexts(create, BATCH, &[(b"DH2C", body::reconnect_v2(id, GUID))]);
    let told = wire.ask(Command::Create, create);
    match told.status() {
        Status::SUCCESS => Ok(told.file_id()),
        status => Err(status),
    }
}

#[test]
fn a_file_stays_open_and_locked_over_a_cut_connection() {
    let program = Program::start(&["--create", "share:data"]);
    let mut client = connected(&program);
    let id = open(&mut client, "a", 0);
    assert_eq!(client.ask(Command::Lock, body::lock(id, &[(0, 10, 0x12)])).status(), Status::SUCCESS);
    assert_eq!(client.ask(Command::Write, body::write(id, 0, b"before")).status(), Status::SUCCESS);
    let session = client.client.session_id;
    drop(client);
    let mut client = Wire::logged_on_again(&program, KEY, session);
    client.connect("data");
    let again = claim(&mut client, "a", id).expect("it is still there");
    assert_eq!(client.ask(Command::Read, body::read(again, 0, 100)).data(), b"before");
    assert_eq!(client.ask(Command::Lock, body::lock(again, &[(0, 10, 4)])).status(), Status::SUCCESS);
    assert_eq!(client.ask(Command::Close, body::close(again)).status(), Status::SUCCESS);
    let session = client.client.session_id;
    drop(client);
    let mut client = Wire::logged_on_again(&program, KEY, session);
    client.connect("data");
    assert_eq!(claim(&mut client, "a", id), Err(Status::OBJECT_NAME_NOT_FOUND), "closed is closed");
}

#[test]
fn another_client_has_the_file_when_it_wants_it() {
    let program = Program::start(&["--create", "share:data"]);
    let mut client = connected(&program);
    let id = open(&mut client, "a", 0);
    let session = client.client.session_id;
    drop(client);
    // The end of the connection is seen before the next session takes its place.
    let mut client = Wire::logged_on_again(&program, KEY, session);
    client.connect("data");
    let mut other = connected(&program);
    let told = other.ask(Command::Create, body::create("a", 0x1F_01FF, 0, 1, 0));
    assert_eq!(told.status(), Status::SUCCESS);
    assert_eq!(claim(&mut client, "a", id), Err(Status::OBJECT_NAME_NOT_FOUND));
}

/// What a lost client has deleted is gone when the server has ended.
#[test]
fn a_lost_open_ends_with_the_server() {
    let mut program = Program::start(&["--create", "share:data"]);
    let mut client = connected(&program);
    let id = open(&mut client, "a", DELETE_ON_CLOSE);
    let session = client.client.session_id;
    drop(client);
    let mut client = Wire::logged_on_again(&program, KEY, session);
    drop(client.ask(Command::Echo, body::empty()));
    assert!(program.stop_and_restart(), "it ends with 0");
    let mut client = connected(&program);
    assert_eq!(claim(&mut client, "a", id), Err(Status::OBJECT_NAME_NOT_FOUND), "opens do not outlive the server");
    let told = client.ask(Command::Create, body::create("a", 1, 7, 1, 0));
    assert_eq!(told.status(), Status::OBJECT_NAME_NOT_FOUND);
}
