//! Requests as clients send them, made by hand, for tests and for the fuzzer.

use crate::pipe::ndr::NdrWriter;
#[cfg(feature = "testing")]
use crate::pipe::rpc::client as rpc;
use crate::wire::FileId;
use crate::wire::create_context::chain;
use crate::wire::cursor::{Put, len16, len32, to_utf16};
use crate::wire::header::{Command, Flags, HEADER_BYTES, Header, Route};

/// The file of the samples.
pub(crate) const FILE_ID: FileId = FileId { persistent: 0x1122, volatile: 0x3344 };

/// A message of a command with a body.
pub(crate) fn message(command: Command, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    let header = Header {
        credit_charge: 1,
        command: command as u16,
        credits: 31,
        flags: Flags::default(),
        message_id: 7,
        route: Route::Tree { process: 0xFEFF, tree: 5 },
        session_id: 9,
        ..Header::unsolicited()
    };
    header.encode(&mut out);
    body(&mut out);
    out
}

fn empty(out: &mut Vec<u8>) {
    out.put_u32(4);
}

/// One of each command, of OPLOCK_BREAK both.
pub(crate) fn requests() -> Vec<(Command, Vec<u8>)> {
    let mut all = vec![
        (Command::Negotiate, negotiate()),
        (Command::SessionSetup, session_setup(b"token")),
        (Command::TreeConnect, tree_connect(r"\\127.0.0.1\share")),
        (Command::Create, create(r"dir\file.txt", &create_contexts())),
        (Command::Close, close()),
        (Command::Flush, flush()),
        (Command::Read, read()),
        (Command::Write, write(b"data to write")),
        (Command::Lock, lock(&[(0, 10, 0x12), (20, 1, 0x11)])),
        (Command::Ioctl, ioctl(crate::wire::fsctl::code::VALIDATE_NEGOTIATE_INFO, &validate_negotiate())),
        (Command::QueryDirectory, query_directory("*")),
        (Command::ChangeNotify, change_notify()),
        (Command::QueryInfo, query_info()),
        (Command::SetInfo, set_info(10, &rename("dir\\new"))),
        (Command::OplockBreak, oplock_ack()),
        (Command::OplockBreak, lease_ack()),
    ];
    for command in [Command::Logoff, Command::TreeDisconnect, Command::Cancel, Command::Echo] {
        all.push((command, message(command, empty)));
    }
    all
}

pub(crate) fn negotiate() -> Vec<u8> {
    message(Command::Negotiate, |out| {
        out.put_u16(36);
        out.put_u16(5);
        out.put_u16(1);
        out.put_u16(0);
        out.put_u32(0x7F);
        out.put(&[0xAB; 16]);
        let offset = (HEADER_BYTES + 36 + 10).next_multiple_of(8);
        out.put_u32(len32(offset));
        out.put_u16(4);
        out.put_u16(0);
        [0x0202, 0x0210, 0x0300, 0x0302, 0x0311].into_iter().for_each(|dialect| out.put_u16(dialect));
        out.align(0, 8);
        out.put(&negotiate_contexts());
    })
}

/// The same as the first request of a connection.
#[cfg(feature = "testing")]
pub(crate) fn negotiate_first() -> Vec<u8> {
    let mut message = negotiate();
    message.replace(24, &[0; 8]);
    message
}

/// Pre-authentication, ciphers, signatures, and a name: what smbclient sends.
pub(crate) fn negotiate_contexts() -> Vec<u8> {
    let mut out = Vec::new();
    let name = to_utf16("127.0.0.1");
    let preauth = [&[1, 0, 32, 0, 1, 0][..], &[0x5A; 32]].concat();
    let contexts: [(u16, &[u8]); 4] =
        [(1, &preauth), (2, &[4, 0, 2, 0, 1, 0, 4, 0, 3, 0]), (8, &[3, 0, 2, 0, 1, 0, 0, 0]), (5, &name)];
    for (kind, data) in contexts {
        out.align(0, 8);
        out.put_u16(kind);
        out.put_u16(len16(data.len()));
        out.put_u32(0);
        out.put(data);
    }
    out
}

pub(crate) fn session_setup(token: &[u8]) -> Vec<u8> {
    message(Command::SessionSetup, |out| {
        out.put_u16(25);
        out.put(&[0, 1]);
        out.put_u32(1);
        out.put_u32(0);
        out.put_u16(88);
        out.put_u16(len16(token.len()));
        out.put_u64(3);
        out.put(token);
    })
}

pub(crate) fn tree_connect(path: &str) -> Vec<u8> {
    message(Command::TreeConnect, |out| {
        let path = to_utf16(path);
        out.put_u16(9);
        out.put_u16(0);
        out.put_u16(72);
        out.put_u16(len16(path.len()));
        out.put(&path);
    })
}

pub(crate) fn create(name: &str, contexts: &[u8]) -> Vec<u8> {
    message(Command::Create, |out| {
        let name = to_utf16(name);
        out.put_u16(57);
        out.put(&[0, 0xFF]);
        out.put_u32(2);
        out.put_u64(0);
        out.put_u64(0);
        out.put_u32(0x12_019F);
        out.put_u32(0x80);
        out.put_u32(7);
        out.put_u32(3);
        out.put_u32(0x40);
        out.put_u16(120);
        out.put_u16(len16(name.len()));
        let offset = (120 + name.len()).next_multiple_of(8);
        out.put_u32(if contexts.is_empty() { 0 } else { len32(offset) });
        out.put_u32(len32(contexts.len()));
        out.put(&name);
        if !contexts.is_empty() {
            out.align(0, 8);
            out.put(contexts);
        }
    })
}

/// What Windows sends: a durable handle, a lease, maximal access, the file id, and two contexts that are not known.
pub(crate) fn create_contexts() -> Vec<u8> {
    let lease = [&[1; 16][..], &[7, 0, 0, 0], &[0; 12], &[2; 16], &[5, 0, 0, 0]].concat();
    let durable = [&[0; 16][..], &[3; 16]].concat();
    let reconnect = [&[4; 32][..], &[0; 4]].concat();
    chain(&[
        (b"DH2Q", &durable),
        (b"MxAc", &[]),
        (b"QFid", &[]),
        (b"RqLs", &lease),
        (b"DHnQ", &[0; 16]),
        (b"DHnC", &[4; 16]),
        (b"DH2C", &reconnect),
        (b"TWrp", &[2, 0, 0, 0, 0, 0, 0, 0]),
        (b"AlSi", &[1, 0, 0, 0, 0, 0, 0, 0]),
        (b"SecD", &[9; 20]),
        (b"ExtA", &[8; 12]),
        (b"AAPL", &[1, 0, 0, 0]),
        (&[0x93; 16], &[]),
    ])
}

fn file_id(out: &mut Vec<u8>) {
    out.put_u64(FILE_ID.persistent);
    out.put_u64(FILE_ID.volatile);
}

pub(crate) fn close() -> Vec<u8> {
    message(Command::Close, |out| {
        out.put_u16(24);
        out.put_u16(1);
        out.put_u32(0);
        file_id(out);
    })
}

pub(crate) fn flush() -> Vec<u8> {
    message(Command::Flush, |out| {
        out.put_u16(24);
        out.put_zeros(6);
        file_id(out);
    })
}

pub(crate) fn read() -> Vec<u8> {
    message(Command::Read, |out| {
        out.put_u16(49);
        out.put(&[0x50, 0]);
        out.put_u32(65_536);
        out.put_u64(4_096);
        file_id(out);
        out.put_u32(1);
        out.put_zeros(12);
        out.put_u8(0);
    })
}

pub(crate) fn write(data: &[u8]) -> Vec<u8> {
    message(Command::Write, |out| {
        out.put_u16(49);
        out.put_u16(112);
        out.put_u32(len32(data.len()));
        out.put_u64(4_096);
        file_id(out);
        out.put_zeros(12);
        out.put_u32(1);
        out.put(data);
    })
}

/// Offset, length and flags of each range.
pub(crate) fn lock(ranges: &[(u64, u64, u32)]) -> Vec<u8> {
    message(Command::Lock, |out| {
        out.put_u16(48);
        out.put_u16(len16(ranges.len()));
        out.put_u32(0x25);
        file_id(out);
        for (offset, length, flags) in ranges {
            out.put_u64(*offset);
            out.put_u64(*length);
            out.put_u32(*flags);
            out.put_u32(0);
        }
    })
}

pub(crate) fn ioctl(code: u32, input: &[u8]) -> Vec<u8> {
    message(Command::Ioctl, |out| {
        out.put_u16(57);
        out.put_u16(0);
        out.put_u32(code);
        file_id(out);
        out.put_u32(120);
        out.put_u32(len32(input.len()));
        out.put_u32(0);
        out.put_u64(0);
        out.put_u32(4_280);
        out.put_u32(1);
        out.put_u32(0);
        out.put(input);
    })
}

pub(crate) fn query_directory(pattern: &str) -> Vec<u8> {
    message(Command::QueryDirectory, |out| {
        let pattern = to_utf16(pattern);
        out.put_u16(33);
        out.put(&[37, 1]);
        out.put_u32(0);
        file_id(out);
        out.put_u16(96);
        out.put_u16(len16(pattern.len()));
        out.put_u32(65_536);
        out.put(&pattern);
    })
}

pub(crate) fn change_notify() -> Vec<u8> {
    message(Command::ChangeNotify, |out| {
        out.put_u16(32);
        out.put_u16(1);
        out.put_u32(4_096);
        file_id(out);
        out.put_u32(0xFFF);
        out.put_u32(0);
    })
}

pub(crate) fn query_info() -> Vec<u8> {
    message(Command::QueryInfo, |out| {
        out.put_u16(41);
        out.put(&[1, 18]);
        out.put_u32(4_096);
        out.put_u32(0);
        out.put_u32(0);
        out.put_u32(0);
        out.put_u32(0);
        file_id(out);
    })
}

pub(crate) fn set_info(class: u8, buffer: &[u8]) -> Vec<u8> {
    message(Command::SetInfo, |out| {
        out.put_u16(33);
        out.put(&[1, class]);
        out.put_u32(len32(buffer.len()));
        out.put_u16(96);
        out.put_u16(0);
        out.put_u32(0);
        file_id(out);
        out.put(buffer);
    })
}

pub(crate) fn rename(name: &str) -> Vec<u8> {
    let mut out = vec![1, 0, 0, 0, 0, 0, 0, 0];
    let name = to_utf16(name);
    out.put_u64(0);
    out.put_u32(len32(name.len()));
    out.put(&name);
    out
}

pub(crate) fn oplock_ack() -> Vec<u8> {
    message(Command::OplockBreak, |out| {
        out.put_u16(24);
        out.put(&[1, 0, 0, 0, 0, 0]);
        file_id(out);
    })
}

pub(crate) fn lease_ack() -> Vec<u8> {
    message(Command::OplockBreak, |out| {
        out.put_u16(36);
        out.put_zeros(6);
        out.put(&[6; 16]);
        out.put_u32(3);
        out.put_u64(0);
    })
}

pub(crate) fn validate_negotiate() -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u32(0x7F);
    out.put(&[0xAB; 16]);
    out.put_u16(1);
    out.put_u16(2);
    out.put_u16(0x0300);
    out.put_u16(0x0302);
    out
}

/// CREATE and two requests that go on with its file.
pub(crate) fn compound() -> Vec<u8> {
    let mut out = Vec::new();
    let messages = [create("file", &[]), query_info(), close()];
    for (place, bytes) in messages.iter().enumerate() {
        let start = out.length();
        out.put(bytes);
        if place > 0 {
            out.replace(start + 16, &Flags::RELATED.0.to_le_bytes());
        }
        if place + 1 < messages.len() {
            out.align(start, 8);
            let next = len32(out.length() - start);
            out.replace(start + 20, &next.to_le_bytes());
        }
    }
    out
}

pub(crate) fn share_enum(level: u32) -> Vec<u8> {
    let mut writer = NdrWriter::default();
    writer.pointer();
    writer.string(r"\\127.0.0.1");
    writer.u32(level);
    writer.u32(level);
    writer.pointer();
    writer.u32(0);
    writer.null();
    writer.u32(u32::MAX);
    writer.pointer();
    writer.u32(0);
    writer.finish()
}

#[cfg(feature = "testing")]
pub(crate) fn copy_chunks() -> Vec<u8> {
    let mut out = vec![7; 24];
    out.put_u32(1);
    out.put_u32(0);
    out.put_u64(1);
    out.put_u64(2);
    out.put_u64(3);
    out
}

#[cfg(feature = "testing")]
pub(crate) fn smb1() -> Vec<u8> {
    let mut out = b"\xFFSMB\x72".to_vec();
    out.put_zeros(27);
    out.put(b"\0\x16\0\x02NT LM 0.12\0\x02SMB 2.???\0");
    out
}

#[cfg(feature = "testing")]
pub(crate) fn rpc_bind() -> Vec<u8> {
    rpc::bind(&[rpc::ndr32()])
}

#[cfg(feature = "testing")]
pub(crate) fn rpc_request(opnum: u16, stub: &[u8]) -> Vec<u8> {
    rpc::request(0, opnum, stub, 3)
}
