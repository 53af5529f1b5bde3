//! Oplocks and leases on the wire: what CREATE answers, breaks, acknowledgements, and a CREATE that waits.

use super::*;
use crate::wire::create_context::{Lease, LeaseV2, RequestContexts, lease_flag};
use crate::wire::header::{Flags, HEADER_BYTES};

const R: u32 = 1;
const RH: u32 = 3;
const RWH: u32 = 7;
const A: [u8; 16] = [1; 16];
const B: [u8; 16] = [2; 16];
/// The message id of what the server sends by itself.
const UNSOLICITED: u64 = u64::MAX;

/// The oplock level and the lease in an answer of CREATE.
fn granted(told: &Told) -> (u8, Option<Lease>) {
    let body = &told.bytes[HEADER_BYTES..];
    let number = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap()) as usize;
    let (at, length) = (number(80), number(84));
    let contexts = if length == 0 { &[][..] } else { &told.bytes[at..at + length] };
    (body[2], RequestContexts::decode(contexts).unwrap().lease)
}

impl Talk {
    async fn lease(&mut self, name: &str, key: [u8; 16], state: u32, epoch: Option<u16>) -> Told {
        self.ask(Command::Create, body::create_with_lease(name, key, state, epoch)).await
    }

    async fn acknowledge(&mut self, key: [u8; 16], state: u32) -> Status {
        self.ask(Command::OplockBreak, body::lease_ack(key, state)).await.status()
    }

    /// What the server sends by itself: the body of a break.
    async fn broken(&mut self) -> Vec<u8> {
        let frame = self.frame().await;
        let told = self.client.answers(&frame).remove(0);
        assert_eq!((told.header.message_id, told.header.session_id), (UNSOLICITED, 0));
        assert_eq!(told.header.command().unwrap(), Command::OplockBreak);
        assert!(told.header.flags.has(Flags::RESPONSE) && !told.header.flags.has(Flags::SIGNED));
        told.bytes[HEADER_BYTES..].to_vec()
    }
}

/// The body of a lease break: epoch, whether it must be acknowledged, from, to.
fn lease_break(body: &[u8], key: [u8; 16]) -> (u16, bool, u32, u32) {
    assert_eq!((body.len(), &body[8..24]), (44, &key[..]));
    let number = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap());
    (u16::from_le_bytes([body[2], body[3]]), number(4) == 1, number(24), number(28))
}

#[tokio::test]
async fn a_lease_is_granted_broken_and_acknowledged() {
    for require_encryption in [true, false] {
        let bench = bench(require_encryption).await;
        let (mut holder, mut other) = (bench.connected().await, bench.connected().await);
        let told = holder.lease("a", A, RWH, Some(0x4711)).await;
        let v2 = Some(LeaseV2 { parent_key: [0; 16], epoch: 0x4712 });
        assert_eq!(granted(&told), (0xFF, Some(Lease { key: A, state: RWH, flags: 0, v2 })));

        let interim = other.lease("a", B, RWH, None).await;
        assert_eq!(interim.status(), Status::PENDING, "it waits, and says so at once");
        assert_eq!(lease_break(&holder.broken().await, A), (0x4713, true, RWH, RH));
        // The same client, with another handle: the break is in progress.
        let told = holder.lease("a", A, RWH, Some(0)).await;
        let (_, lease) = granted(&told);
        assert_eq!(lease.map(|lease| (lease.state, lease.flags)), Some((RWH, lease_flag::BREAK_IN_PROGRESS)));
        for (key, state, status) in [
            (B, RH, Status::OBJECT_NAME_NOT_FOUND),
            (A, RWH, Status::REQUEST_NOT_ACCEPTED),
            (A, 0x80, Status::REQUEST_NOT_ACCEPTED),
            (A, RH, Status::SUCCESS),
            (A, RH, Status::UNSUCCESSFUL),
        ] {
            assert_eq!(holder.acknowledge(key, state).await, status, "{state:#x}");
        }
        let last = other.answers().await.remove(0);
        assert_eq!((last.status(), last.header.message_id), (Status::SUCCESS, interim.header.message_id));
        let expected = Lease { key: B, state: RH, flags: 0, v2: None };
        assert_eq!(granted(&last), (0xFF, Some(expected)));

        // A write takes read caching from the other; nobody waits.
        let id = last.file_id();
        assert_eq!(other.ask(Command::Write, body::write(id, 0, b"x")).await.status(), Status::SUCCESS);
        assert_eq!(lease_break(&holder.broken().await, A), (0x4714, true, RH, 0));
        assert_eq!(holder.acknowledge(A, 0).await, Status::SUCCESS);
    }
}

#[tokio::test]
async fn an_oplock_is_granted_broken_and_acknowledged() {
    let bench = bench(true).await;
    let (mut holder, mut other) = (bench.connected().await, bench.connected().await);
    let told = holder.ask(Command::Create, body::create_with_oplock("a", 9)).await;
    assert_eq!(granted(&told), (9, None));
    let id = told.file_id();
    let early = holder.ask(Command::OplockBreak, body::oplock_ack(id, 1)).await;
    assert_eq!(early.status(), Status::INVALID_OPLOCK_PROTOCOL);
    let interim = other.ask(Command::Create, body::create_with_oplock("a", 9)).await;
    assert_eq!(interim.status(), Status::PENDING);
    let broken = holder.broken().await;
    assert_eq!((broken.len(), broken[2]), (24, 1), "to level II");
    assert_eq!(broken[8..16], id.persistent.to_le_bytes());
    for (level, status) in [
        (0xFF, Status::INVALID_PARAMETER),
        (9, Status::INVALID_OPLOCK_PROTOCOL),
        (1, Status::SUCCESS),
        (1, Status::INVALID_OPLOCK_PROTOCOL),
    ] {
        let told = holder.ask(Command::OplockBreak, body::oplock_ack(id, level)).await;
        assert_eq!(told.status(), status, "{level:#x}");
    }
    let last = other.answers().await.remove(0);
    assert_eq!((last.status(), granted(&last)), (Status::SUCCESS, (1, None)));
    let wrong = FileId { volatile: 99, ..id };
    let told = holder.ask(Command::OplockBreak, body::oplock_ack(wrong, 0)).await;
    assert_eq!(told.status(), Status::FILE_CLOSED);
}

#[tokio::test]
async fn a_create_that_waits_for_a_break_can_be_cancelled_and_ends_with_its_connection() {
    let bench = bench(true).await;
    let (mut holder, mut other) = (bench.connected().await, bench.connected().await);
    let id = holder.lease("a", A, RWH, None).await.file_id();
    let interim = other.lease("a", B, R, None).await;
    assert_eq!(interim.status(), Status::PENDING);
    let Route::Async(async_id) = interim.header.route else { panic!("an asynchronous id") };
    let frame = other.client.cancel(interim.header.message_id, Some(async_id));
    other.send(&frame).await.unwrap();
    let last = other.answers().await.remove(0);
    assert_eq!((last.status(), last.header.message_id), (Status::CANCELLED, interim.header.message_id));
    assert!(!other.conversation.is_in_use(), "nothing was opened");

    // The break goes on, and is not told a second time.
    assert_eq!(lease_break(&holder.broken().await, A), (0, true, RWH, RH));
    assert_eq!(other.lease("a", B, R, None).await.status(), Status::PENDING);
    other.conversation.end().await;
    assert_eq!(holder.ask(Command::Close, body::close(id)).await.status(), Status::SUCCESS);
    let told = holder.lease("a", B, RWH, None).await;
    assert_eq!(granted(&told).1.map(|lease| lease.state), Some(RWH), "the file is free");
}

#[tokio::test]
async fn a_client_that_closes_or_goes_away_is_not_waited_for() {
    let bench = bench(true).await;
    let mut other = bench.connected().await;
    for goes_away in [false, true] {
        let mut holder = bench.connected().await;
        let id = holder.lease("a", A, RWH, None).await.file_id();
        let interim = other.lease("a", B, RWH, None).await;
        assert_eq!(interim.status(), Status::PENDING);
        assert_eq!(lease_break(&holder.broken().await, A), (0, true, RWH, RH));
        match goes_away {
            true => holder.conversation.end().await,
            false => assert_eq!(holder.ask(Command::Close, body::close(id)).await.status(), Status::SUCCESS),
        }
        let last = other.answers().await.remove(0);
        assert_eq!(granted(&last).1.map(|lease| lease.state), Some(RWH));
        other.ask(Command::Close, body::close(last.file_id())).await;
    }
}

#[tokio::test]
async fn a_lease_of_several_connections_is_told_on_one_that_lives() {
    let bench = bench(true).await;
    let (mut first, mut second, mut other) =
        (bench.connected().await, bench.connected().await, bench.connected().await);
    first.lease("a", A, RH, None).await;
    let id = second.lease("a", A, RH, None).await.file_id();
    // The first connection is about to end; its handle is still open.
    first.outbox.close();
    let told = other.ask(Command::Create, body::create("a", 0x1F_01FF, 7, 5, 0)).await;
    assert_eq!(told.status(), Status::SUCCESS, "RH is not waited for");
    assert_eq!(lease_break(&second.broken().await, A), (0, true, RH, 0));
    assert_eq!(second.acknowledge(A, 0).await, Status::SUCCESS);
    assert_eq!(second.ask(Command::Close, body::close(id)).await.status(), Status::SUCCESS);
}

#[tokio::test]
async fn a_key_names_one_file_and_a_directory_has_no_lease() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    talk.lease("a", A, RWH, None).await;
    assert_eq!(talk.lease("b", A, RWH, None).await.status(), Status::INVALID_PARAMETER);
    assert_eq!(talk.open("b", 1, 0).await.status(), Status::OBJECT_NAME_NOT_FOUND);
    assert_eq!(talk.open("d", 2, 1).await.status(), Status::SUCCESS);
    let told = talk.lease("d", B, RWH, Some(1)).await;
    assert_eq!((told.status(), granted(&told)), (Status::SUCCESS, (0, None)));
}
