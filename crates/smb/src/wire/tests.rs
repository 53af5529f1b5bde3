//! Requests of every command, literally, and what becomes of them when they are damaged.

use super::create::Disposition;
use super::header::Header;
use super::query_info::InfoType;
use super::*;
use crate::samples::{self, FILE_ID};

fn decoded(command: Command, message: Vec<u8>) -> Result<Request> {
    Request::decode(command, &message.into())
}

#[test]
fn every_command_is_read() {
    let commands: Vec<Command> = samples::requests().iter().map(|(command, _)| *command).collect();
    assert!(Command::ALL.iter().all(|command| commands.contains(command)), "each command has a sample");
    for (command, message) in samples::requests() {
        assert_eq!(Header::decode(&message).unwrap().command(), Ok(command));
        let request = decoded(command, message).unwrap_or_else(|status| panic!("{command:?}: {status}"));
        match request.file_id() {
            Some(file_id) => assert_eq!(file_id, FILE_ID, "{command:?}"),
            None => assert!(!matches!(command, Command::Read | Command::Write | Command::Close), "{command:?}"),
        }
    }
}

#[test]
fn a_size_that_is_not_the_documented_one_is_an_invalid_parameter() {
    for (command, message) in samples::requests() {
        let mut other = message.clone();
        other[HEADER_BYTES] ^= 1;
        assert_eq!(decoded(command, other), Err(Status::INVALID_PARAMETER), "{command:?}");
    }
}

#[test]
fn a_message_that_ends_early_is_an_invalid_parameter_or_the_same() {
    for (command, message) in samples::requests() {
        let whole = decoded(command, message.clone()).unwrap();
        for length in 0..message.len() {
            match decoded(command, message[..length].to_vec()) {
                Ok(request) => assert_eq!(request, whole, "{command:?} of {length} bytes"),
                Err(status) => assert_eq!(status, Status::INVALID_PARAMETER, "{command:?} of {length} bytes"),
            }
        }
    }
}

#[test]
fn a_negotiate_is_read_whole() {
    let Ok(Request::Negotiate(request)) = decoded(Command::Negotiate, samples::negotiate()) else { panic!() };
    assert_eq!(request.dialects, [0x0202, 0x0210, 0x0300, 0x0302, 0x0311]);
    assert_eq!(request.client_guid, u128::from_le_bytes([0xAB; 16]));
    let contexts = request.contexts.unwrap();
    assert_eq!((contexts.salt.len(), contexts.ciphers), (32, Some(vec![2, 1, 4, 3])));
    assert_eq!((contexts.signings, contexts.net_name.as_deref()), (Some(vec![2, 1, 0]), Some("127.0.0.1")));
    let mut none = samples::negotiate();
    none[HEADER_BYTES + 2] = 0;
    assert_eq!(decoded(Command::Negotiate, none), Err(Status::INVALID_PARAMETER));
    let mut old = samples::negotiate();
    old[HEADER_BYTES + 2] = 4;
    let Ok(Request::Negotiate(old)) = decoded(Command::Negotiate, old) else { panic!() };
    assert_eq!(old.contexts, None, "contexts belong to 3.1.1");
}

#[test]
fn a_create_is_read_whole() {
    let message = samples::create(r"dir\file.txt", &samples::create_contexts());
    let Ok(Request::Create(request)) = decoded(Command::Create, message) else { panic!() };
    assert_eq!(request.name, r"dir\file.txt");
    assert_eq!((request.oplock, request.disposition), (create::oplock_level::LEASE, Disposition::OpenIf));
    assert_eq!((request.desired_access, request.share_access, request.options), (0x12_019F, 7, 0x40));
    assert_eq!(request.contexts.lease.unwrap().v2.unwrap().epoch, 5);
    assert_eq!((request.contexts.maximal_access, request.contexts.unknown), (Some(None), 2));
    let Ok(Request::Create(root)) = decoded(Command::Create, samples::create("", &[])) else { panic!() };
    assert_eq!(root.name, "");
}

#[test]
fn faults_of_a_create_have_their_status() {
    let with = |at: usize, byte: u8| {
        let mut message = samples::create("name", &[]);
        message[at] = byte;
        decoded(Command::Create, message).map(|_| ())
    };
    assert_eq!(with(HEADER_BYTES + 4, 4), Err(Status::BAD_IMPERSONATION_LEVEL));
    assert_eq!(with(HEADER_BYTES + 36, 6), Err(Status::INVALID_PARAMETER), "disposition");
    assert_eq!(with(HEADER_BYTES + 46, 7), Err(Status::INVALID_PARAMETER), "half a character");
    assert_eq!(with(HEADER_BYTES + 46, 10), Err(Status::INVALID_PARAMETER), "a name out of the message");
    assert_eq!(with(HEADER_BYTES + 44, 100), Err(Status::INVALID_PARAMETER), "a name in the fixed part");
    assert_eq!(with(121, 0xD8), Err(Status::OBJECT_NAME_INVALID), "half of a pair");
    let claim = create_context::chain(&[(b"DHnC", &[0; 16])]);
    let mut again = samples::create("name", &claim);
    (again[HEADER_BYTES + 4], again[HEADER_BYTES + 36]) = (4, 6);
    assert!(decoded(Command::Create, again).is_ok(), "who claims an open again asks for nothing else");
    let mut by_id = samples::create("name", &[]);
    by_id[HEADER_BYTES + 41] = 0x20;
    let Ok(Request::Create(by_id)) = decoded(Command::Create, by_id) else { panic!() };
    assert_eq!((by_id.name.as_str(), by_id.raw_name.len()), ("", 8));
}

#[test]
fn the_data_of_a_write_is_not_copied() {
    let message = Bytes::from(samples::write(b"data to write"));
    let Ok(Request::Write(write)) = Request::decode(Command::Write, &message) else { panic!() };
    assert_eq!(write.data, &b"data to write"[..]);
    assert_eq!(write.data.as_ptr(), message[112..].as_ptr());
    assert_eq!((write.offset, write.flags), (4096, write::FLAG_WRITE_THROUGH));
}

#[test]
fn the_data_of_a_read_is_not_copied() {
    let data = Bytes::from_static(b"data that was read");
    let body = Response::Read(read::Response { data: vec![data.clone()], remaining: 0 });
    let mut head = Vec::new();
    let parts = body.encode(&mut head);
    assert_eq!((head.len(), parts[0].as_ptr()), (16, data.as_ptr()));
}

#[test]
fn locks_have_flags_that_go_together() {
    let locks = |ranges: &[(u64, u64, u32)]| match decoded(Command::Lock, samples::lock(ranges))? {
        Request::Lock(request) => Ok(request),
        other => panic!("{other:?}"),
    };
    let request = locks(&[(0, 10, 0x12), (20, 1, 0x11)]).unwrap();
    assert_eq!((request.sequence_number, request.sequence_index), (5, 2));
    assert_eq!(request.locks[0].action, lock::Action::Lock { exclusive: true, fail_immediately: true });
    assert_eq!(locks(&[(0, 1, 4)]).unwrap().locks[0].action, lock::Action::Unlock);
    for flags in [0, 3, 0x10, 5] {
        assert_eq!(locks(&[(0, 1, flags)]).unwrap().locks[0].action, lock::Action::Invalid, "{flags}");
    }
    assert_eq!(locks(&[]), Err(Status::INVALID_PARAMETER));
}

#[test]
fn other_requests_say_what_was_sent() {
    let Ok(Request::QueryInfo(info)) = decoded(Command::QueryInfo, samples::query_info()) else { panic!() };
    assert_eq!((info.info_type, info.class, info.output_bytes), (InfoType::File, 18, 4096));
    let Ok(Request::QueryDirectory(list)) = decoded(Command::QueryDirectory, samples::query_directory("*.txt")) else {
        panic!()
    };
    assert_eq!((list.pattern.as_str(), list.class, list.flags), ("*.txt", 37, query_directory::RESTART_SCANS));
    let message = samples::ioctl(fsctl::code::VALIDATE_NEGOTIATE_INFO, &samples::validate_negotiate());
    let Ok(Request::Ioctl(ioctl)) = decoded(Command::Ioctl, message.clone()) else { panic!() };
    let validate = fsctl::ValidateNegotiate::decode(&ioctl.input).unwrap();
    assert_eq!((validate.capabilities, validate.dialects), (0x7F, vec![0x0300, 0x0302]));
    let mut no_fsctl = message;
    no_fsctl[HEADER_BYTES + 48] = 0;
    assert_eq!(decoded(Command::Ioctl, no_fsctl), Err(Status::NOT_SUPPORTED));
    let Ok(Request::OplockBreak(lease)) = decoded(Command::OplockBreak, samples::lease_ack()) else { panic!() };
    assert_eq!(lease, oplock_break::Request::Lease(oplock_break::LeaseAck { key: [6; 16], state: 3 }));
    let messages = compound::split(&samples::compound().into()).unwrap();
    assert_eq!(messages.iter().filter(|one| one.header.flags.has(header::Flags::RELATED)).count(), 2);
}

#[test]
fn a_request_pays_for_the_larger_half() {
    let payload = |command, message| decoded(command, message).unwrap().payload_bytes();
    assert_eq!(payload(Command::Read, samples::read()), 65_536);
    assert_eq!(payload(Command::Write, samples::write(&[0; 100])), 100);
    assert_eq!(payload(Command::Ioctl, samples::ioctl(1, &[0; 5000])), 5000);
    assert_eq!(payload(Command::Close, samples::close()), 0);
}
