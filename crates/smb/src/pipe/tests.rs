use super::ndr::NdrWriter;
use super::rpc::client::{self, NDR64, ndr32};
use super::srvsvc::{Share, ShareKind};
use super::*;

fn shares(count: usize) -> Vec<Share> {
    let disk = |number| Share { name: format!("share{number:04}"), kind: ShareKind::Disk, remark: String::new() };
    let ipc = Share { name: "IPC$".into(), kind: ShareKind::Ipc, remark: "IPC".into() };
    (0..count).map(disk).chain([ipc]).collect()
}

fn server(shares: &[Share]) -> Server<'_> {
    Server { name: "LAZURITE", comment: "files", shares }
}

/// The arguments of NetrShareEnum as smbclient sends them.
fn enum_stub(level: u32) -> Vec<u8> {
    crate::samples::share_enum(level)
}

fn info_stub(name: &str, level: u32) -> Vec<u8> {
    let mut writer = NdrWriter::default();
    writer.null();
    writer.string(name);
    writer.u32(level);
    writer.finish()
}

/// Binds, calls, and gives the stub of the answer, over all its packets.
fn called(opnum: u16, stub: &[u8], shares: &[Share]) -> Vec<u8> {
    let mut pipe = Pipe::default();
    pipe.write(&client::bind(&[ndr32()]), &server(shares)).unwrap();
    let ack = pipe.read(4280).unwrap();
    assert_eq!((ack.data[2], ack.status), (12, Status::SUCCESS));
    pipe.write(&client::request(0, opnum, stub, 3), &server(shares)).unwrap();
    let mut answer = Vec::new();
    loop {
        let packet = pipe.read(4280).unwrap().data;
        assert_eq!((packet[2], packet[3] & 1 == 1), (2, answer.is_empty()), "an answer, its first packet marked");
        answer.extend_from_slice(&packet[24..]);
        if packet[3] & 2 != 0 {
            assert_eq!(pipe.read(4280), Err(Status::PIPE_EMPTY));
            return answer;
        }
    }
}

fn status(answer: &[u8]) -> u32 {
    u32::from_le_bytes(answer[answer.len() - 4..].try_into().unwrap())
}

#[test]
fn shares_are_listed_on_every_level() {
    for level in [0, 1, 2, 501, 502] {
        let answer = called(15, &enum_stub(level), &shares(3));
        assert_eq!(status(&answer), 0, "{level}");
        assert_eq!(answer[..4], level.to_le_bytes());
        assert_eq!(answer[12..16], [4, 0, 0, 0], "entries");
        let name: Vec<u8> = "share0002\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(answer.windows(name.len()).any(|window| window == name), "{level}");
    }
    assert_eq!(status(&called(15, &enum_stub(3), &shares(3))), 124);
}

/// Level 1 with one share, byte by byte.
#[test]
fn a_list_is_laid_out_as_documented() {
    let list = [Share { name: "a".into(), kind: ShareKind::Disk, remark: "b".into() }];
    let answer = called(15, &enum_stub(1), &list);
    let numbers: Vec<u32> = answer.chunks(4).map(|chunk| u32::from_le_bytes(chunk.try_into().unwrap())).collect();
    let text = |letter: u8| [2, 0, 2, u32::from(letter)];
    let expected =
        [&[1, 1, 0x2_0004, 1, 0x2_0008, 1, 0x2_000C, 0, 0x2_0010][..], &text(b'a'), &text(b'b'), &[1, 0x2_0014, 0, 0]];
    assert_eq!(numbers, expected.concat());
}

#[test]
fn a_long_list_comes_in_fragments() {
    let answer = called(15, &enum_stub(1), &shares(500));
    assert!(answer.len() > 3 * 4280);
    assert_eq!(status(&answer), 0);
}

#[test]
fn one_share_is_told_about() {
    for level in [0, 1, 2, 501, 502, 1005] {
        assert_eq!(status(&called(16, &info_stub("SHARE0000", level), &shares(1))), 0, "{level}");
    }
    assert_eq!(status(&called(16, &info_stub("other", 1), &shares(1))), 2310);
    assert_eq!(status(&called(16, &info_stub("share0000", 9), &shares(1))), 124);
    let mut writer = NdrWriter::default();
    writer.null();
    writer.u32(101);
    assert_eq!(status(&called(21, &writer.finish(), &shares(1))), 0);
}

#[test]
fn transfer_syntaxes_are_refused_singly() {
    let mut pipe = Pipe::default();
    pipe.write(&client::bind(&[NDR64, ndr32()]), &server(&[])).unwrap();
    let ack = pipe.read(4280).unwrap().data;
    let results = &ack[ack.len() - 48..];
    assert_eq!((results[..4].to_vec(), results[24..28].to_vec()), (vec![2, 0, 2, 0], vec![0, 0, 0, 0]));
    pipe.write(&client::request(0, 15, &enum_stub(1), 3), &server(&[])).unwrap();
    let fault = pipe.read(4280).unwrap().data;
    assert_eq!((fault[2], &fault[24..28]), (3, &[3, 0, 1, 0x1C][..]));
}

#[test]
fn faults_have_their_numbers() {
    let fault = |opnum, stub: &[u8]| {
        let mut pipe = Pipe::default();
        pipe.write(&client::bind(&[ndr32()]), &server(&[])).unwrap();
        pipe.read(4280).unwrap();
        pipe.write(&client::request(0, opnum, stub, 3), &server(&[])).unwrap();
        let packet = pipe.read(4280).unwrap().data;
        (packet[2], u32::from_le_bytes(packet[24..28].try_into().unwrap()))
    };
    assert_eq!(fault(99, &[]), (3, 0x1C01_0002));
    assert_eq!(fault(15, &[]), (3, 0x6F7));
    assert_eq!(fault(16, &info_stub("a", 1)[..10]), (3, 0x6F7));
}

#[test]
fn a_call_may_come_in_fragments_and_pieces() {
    let stub = enum_stub(1);
    let list = shares(1);
    let mut pipe = Pipe::default();
    let bind = client::bind(&[ndr32()]);
    pipe.write(&bind[..20], &server(&list)).unwrap();
    assert_eq!(pipe.read(4280), Err(Status::PIPE_EMPTY));
    pipe.write(&bind[20..], &server(&list)).unwrap();
    pipe.read(4280).unwrap();
    pipe.write(&client::request(0, 15, &stub[..20], 1), &server(&list)).unwrap();
    assert_eq!(pipe.read(4280), Err(Status::PIPE_EMPTY));
    pipe.write(&client::request(0, 15, &stub[20..], 2), &server(&list)).unwrap();
    let part = pipe.read(10).unwrap();
    assert_eq!((part.data.len(), part.status), (10, Status::BUFFER_OVERFLOW));
    let left = pipe.available();
    let rest = pipe.read(4280).unwrap();
    assert_eq!((rest.data.len(), rest.status), (left, Status::SUCCESS));
}

/// Small calls whose answers are large: no more are made than somebody reads.
#[test]
fn calls_wait_until_answers_are_read() {
    let list = shares(1000);
    let mut pipe = Pipe::default();
    pipe.write(&client::bind(&[ndr32()]), &server(&list)).unwrap();
    pipe.read(4280).unwrap();
    let call = client::request(0, 15, &enum_stub(502), 3);
    assert_eq!(pipe.write(&call.repeat(500), &server(&list)), Err(Status::PIPE_BUSY));
    let one = called(15, &enum_stub(502), &list).len();
    let waiting: usize = pipe.answers.iter().map(Vec::len).sum();
    assert!(waiting < 2 * (one + ANSWER_BYTES_MAX), "{waiting} bytes wait");
    assert_eq!(pipe.write(&call, &server(&list)), Err(Status::PIPE_BUSY));
    while pipe.read(4280).is_ok() {}
    assert_eq!(pipe.answer(None), Ok(Progress::NeedsServer), "the others are still there");
}

#[test]
fn anything_else_ends_the_pipe() {
    let good = client::bind(&[ndr32()]);
    for (at, byte) in [(0, 4), (4, 0), (8, 4), (10, 1), (2, 7), (24, 200)] {
        let mut bytes = good.clone();
        bytes[at] = byte;
        if at == 8 {
            bytes[9] = 0;
        }
        assert_eq!(Pipe::default().write(&bytes, &server(&[])), Err(Status::PIPE_DISCONNECTED), "byte {at}");
    }
    let later = client::request(0, 15, &[], 2);
    assert_eq!(Pipe::default().write(&later, &server(&[])), Err(Status::PIPE_DISCONNECTED));
    let mut pipe = Pipe::default();
    let flood = client::request(0, 15, &[0; 4000], 0);
    let mut first = client::request(0, 15, &[], 1);
    first.extend(flood.repeat(15));
    pipe.write(&first, &server(&[])).unwrap();
    assert_eq!(pipe.write(&flood.repeat(2), &server(&[])), Err(Status::PIPE_DISCONNECTED));
    assert!(is_srvsvc("srvsvc") && is_srvsvc(r"\SrvSvc") && !is_srvsvc("wkssvc"));
}
