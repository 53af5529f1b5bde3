//! What no client sends. Each time the connection ends and others go on.

use std::io::Write;
use std::net::Shutdown;

use smb::Status;
use smb::testing::{Asked, body};
use smb::wire::header::Command;

use crate::KEY;
use crate::server::{Program, Wire};

/// The server is well, and lets others in.
fn is_well(program: &Program) {
    let mut client = Wire::logged_on(program, KEY);
    assert_eq!(client.ask(Command::Echo, body::empty()).status(), Status::SUCCESS);
}

#[test]
fn bytes_that_are_no_smb_end_the_connection() {
    let program = Program::start(&[]);
    let smb1 = b"\xFFSMB\x72\0\0\0\0\x18\x01\x28\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0E\0\x02NT LM 0.12\0\x02";
    let mut old = vec![0, 0, 0, smb1.len() as u8];
    old.extend(smb1);
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        &[0, 0, 0, 0],
        &[0, 0xFF, 0xFF, 0xFF, 1, 2, 3],
        // A megabyte is announced before anybody has logged on.
        &[0, 0x10, 0, 0],
        &[0x81, 0, 0, 4, 1, 2, 3, 4],
        &[0, 0, 0, 4, 0xFE, b'S', b'M', b'B'],
        &[0, 0, 0, 8, 0xFD, b'S', b'M', b'B', 0, 0, 0, 0],
        &old,
        &[0; 1 << 16],
    ] {
        let mut wire = Wire::connected(&program);
        let _ = wire.socket.write_all(bytes);
        assert!(wire.ends(), "{:?}", &bytes[..4]);
    }
    is_well(&program);
}

#[test]
fn a_second_negotiation_ends_the_connection() {
    let program = Program::start(&[]);
    let mut wire = Wire::connected(&program);
    let frame = wire.client.negotiate();
    wire.exchange(&frame);
    let again = wire.client.negotiate();
    wire.send(&again);
    assert!(wire.ends());
    is_well(&program);
}

#[test]
fn who_does_not_log_on_is_sent_away() {
    let program = Program::start(&["--first-request-timeout", "1"]);
    // Nothing at all, half a prefix, half a frame, half a logon.
    let silent = Wire::connected(&program);
    let mut prefix = Wire::connected(&program);
    prefix.send(&[0, 0]);
    let mut part = Wire::connected(&program);
    let frame = part.client.negotiate();
    part.send(&frame[..50]);
    let (half, _) = Wire::half_logged_on(&program, KEY);
    for wire in [silent, prefix, half] {
        assert!(wire.ends());
    }
    drop(part);
    is_well(&program);
}

#[test]
fn a_message_id_is_used_once() {
    let program = Program::start(&[]);
    let mut wire = Wire::logged_on(&program, KEY);
    wire.client.next_id -= 1;
    let frame = wire.client.ask(Command::Echo, body::empty());
    wire.send(&frame);
    assert!(wire.ends());
    let mut wire = Wire::logged_on(&program, KEY);
    wire.client.next_id += 100_000;
    let frame = wire.client.ask(Command::Echo, body::empty());
    wire.send(&frame);
    assert!(wire.ends());
    is_well(&program);
}

#[test]
fn a_session_that_must_encrypt_does() {
    let program = Program::start(&[]);
    let mut wire = Wire::logged_on(&program, KEY);
    wire.client.encrypt = false;
    let told = wire.ask(Command::Echo, body::empty());
    assert_eq!(told.status(), Status::ACCESS_DENIED);
    let mut wire = Wire::logged_on(&program, KEY);
    let mut frame = wire.client.ask(Command::Echo, body::empty());
    let last = frame.len() - 1;
    frame[last] ^= 1;
    wire.send(&frame);
    assert!(wire.ends(), "a frame that was changed on its way");
    is_well(&program);
}

/// Requests for answers that are never read: the server stops reading, and its memory stays within limits.
#[test]
fn who_never_reads_gets_no_further() {
    let program = Program::start(&["--create", "share:data"]);
    let mut wire = Wire::logged_on(&program, KEY);
    wire.connect("data");
    let id = wire.ask(Command::Create, body::create("a", 0x1F_01FF, 7, 2, 0)).file_id();
    assert_eq!(wire.ask(Command::Write, body::write(id, 0, &[7; 60_000])).status(), Status::SUCCESS);
    wire.socket.set_nonblocking(true).unwrap();
    let mut sent = 0u64;
    'sending: for _ in 0..100_000 {
        let frame = wire.client.frame(vec![Asked::new(Command::Read, body::read(id, 0, 60_000))]);
        let mut rest = &frame[..];
        while !rest.is_empty() {
            match wire.socket.write(rest) {
                Ok(written) => rest = &rest[written..],
                // The server does not read any more, or has ended the connection because credits ran out.
                Err(_) => break 'sending,
            }
        }
        sent += 1;
    }
    assert!(sent < 100_000, "the server went on reading");
    let memory = program.metrics();
    let resident = memory.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    if let Some(bytes) = resident.and_then(|text| text.parse::<u64>().ok()) {
        assert!(bytes < 512 << 20, "{bytes} bytes");
    }
    let _ = wire.socket.shutdown(Shutdown::Both);
    is_well(&program);
}

#[test]
fn wrong_keys_are_refused_and_right_ones_still_let_in() {
    let program = Program::start(&[]);
    for _ in 0..25 {
        let (_, status) = Wire::log_on(&program, "d3Jvbmc=");
        assert_eq!(status, Status::LOGON_FAILURE);
    }
    is_well(&program);
    assert!(program.metrics().contains("lazurite_authentication_failures_total 25"));
}

#[test]
fn many_requests_in_one_frame_have_a_limit() {
    let program = Program::start(&[]);
    let mut wire = Wire::logged_on(&program, KEY);
    let echoes = |count: usize| vec![Asked::new(Command::Echo, body::empty()); count];
    let frame = wire.client.frame(echoes(20));
    let frame = wire.exchange(&frame);
    assert_eq!(wire.client.answers(&frame).len(), 20);
    let frame = wire.client.frame(echoes(65));
    wire.send(&frame);
    assert!(wire.ends());
    is_well(&program);
}
