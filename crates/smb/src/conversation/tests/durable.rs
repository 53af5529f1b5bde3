//! Durable opens: a connection is cut, and its client comes back, or does not.

use std::time::Instant;

use concurrency::range_lock::Transfer;
use concurrency::share_mode::RestAccess;
use file::opens::{FileId as TableId, Refusal, Span};

use super::*;
use crate::durable::DISCONNECTED_OPENS_PER_ACCOUNT_MAX;
use crate::wire::create::oplock_level::{BATCH, LEASE, NONE};

const GUID: u128 = 0x1234;
/// Read, write and handle caching.
const RWH: u32 = 7;
const RH: u32 = 3;

fn durable(timeout_ms: u32) -> (&'static [u8], Vec<u8>) {
    (b"DH2Q", body::durable_v2(timeout_ms, GUID))
}

fn claim(id: FileId, guid: u128) -> (&'static [u8], Vec<u8>) {
    (b"DH2C", body::reconnect_v2(id, guid))
}

fn lease(key: u8, state: u32) -> (&'static [u8], Vec<u8>) {
    (b"RqLs", body::lease([key; 16], state, None))
}

/// Whether an answer has a context of the name.
fn has_context(told: &Told, name: &[u8; 4]) -> bool {
    told.bytes.windows(4).any(|window| window == name)
}

impl Talk {
    async fn open_with(&mut self, name: &str, oplock: u8, contexts: &[(&[u8], Vec<u8>)]) -> Told {
        let create = body::create(name, 0x1F_01FF, 7, 3, 0);
        self.ask(Command::Create, body::with_contexts(create, oplock, contexts)).await
    }

    async fn lock(&mut self, id: FileId, flags: u32) -> Status {
        self.ask(Command::Lock, body::lock(id, &[(0, 10, flags)])).await.status()
    }
}

impl Bench {
    /// A file that was opened durably, and whose connection is cut.
    async fn cut(&self, timeout_ms: u32) -> FileId {
        let mut talk = self.connected().await;
        let told = talk.open_with("a", BATCH, &[durable(timeout_ms)]).await;
        assert!(told.status() == Status::SUCCESS && has_context(&told, b"DH2Q"));
        assert_eq!(talk.lock(told.file_id(), 0x12).await, Status::SUCCESS);
        talk.conversation.end().await;
        told.file_id()
    }

    /// The number of the share in the table.
    async fn share(&self) -> u64 {
        let account = engine::account::id(self.host.engine.as_ref(), "devstore").await.unwrap();
        self.server.door.connect(account, "data").await.unwrap().space().await.unwrap().volume
    }

    fn disconnected(&self) -> usize {
        self.server.disconnected().len()
    }
}

#[tokio::test]
async fn an_open_comes_back_with_its_oplock_and_its_locks() {
    let bench = bench(true).await;
    let id = bench.cut(0).await;
    assert_eq!(bench.disconnected(), 1);
    let mut talk = bench.connected().await;
    let told = talk.open_with("a", BATCH, &[claim(id, GUID)]).await;
    assert_eq!((told.status(), told.bytes[64 + 2]), (Status::SUCCESS, BATCH));
    assert!(!has_context(&told, b"DH2Q"), "it is told once that it is durable");
    let again = told.file_id();
    assert_eq!((again.persistent, bench.disconnected()), (id.persistent, 0));
    assert_eq!(talk.ask(Command::Write, body::write(again, 0, b"x")).await.status(), Status::SUCCESS);
    assert_eq!(talk.lock(again, 4).await, Status::SUCCESS, "it was still locked");
    assert_eq!(talk.lock(again, 4).await, Status::RANGE_NOT_LOCKED);
    // It stays durable.
    talk.conversation.end().await;
    let mut talk = bench.connected().await;
    assert_eq!(talk.open_with("a", BATCH, &[claim(again, GUID)]).await.status(), Status::SUCCESS);
    let id = talk.open_with("a", BATCH, &[claim(again, GUID)]).await.status();
    assert_eq!(id, Status::OBJECT_NAME_NOT_FOUND, "an open with a connection cannot be claimed");
}

#[tokio::test]
async fn a_claim_must_fit() {
    let bench = bench(true).await;
    let id = bench.cut(0).await;
    let mut talk = bench.connected().await;
    let elsewhere = FileId { persistent: id.persistent + 1, ..id };
    for (contexts, status) in [
        (vec![claim(id, GUID + 1)], Status::OBJECT_NAME_NOT_FOUND),
        (vec![claim(elsewhere, GUID)], Status::OBJECT_NAME_NOT_FOUND),
        (vec![claim(id, GUID), lease(1, RWH)], Status::OBJECT_NAME_NOT_FOUND),
        (vec![claim(id, GUID), durable(0)], Status::INVALID_PARAMETER),
        (vec![claim(id, GUID), (b"DHnC", body::reconnect(id))], Status::INVALID_PARAMETER),
    ] {
        assert_eq!(talk.open_with("a", BATCH, &contexts).await.status(), status, "{contexts:?}");
    }
    assert_eq!(bench.disconnected(), 1, "it waits for the right one");
    assert_eq!(talk.open_with("a", BATCH, &[claim(id, GUID)]).await.status(), Status::SUCCESS);
}

#[tokio::test]
async fn who_comes_too_late_finds_nothing() {
    let bench = bench(true).await;
    let id = bench.cut(1).await;
    std::thread::sleep(Duration::from_millis(5));
    let mut talk = bench.connected().await;
    assert_eq!(talk.open_with("a", BATCH, &[claim(id, GUID)]).await.status(), Status::OBJECT_NAME_NOT_FOUND);
    assert_eq!(bench.disconnected(), 1);
    bench.server.end_disconnected(Instant::now());
    assert!(bench.disconnected() == 0 && bench.opens.is_empty(), "and nothing is left of it");
}

#[tokio::test]
async fn what_is_not_durable_ends_with_its_connection() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    for (oplock, contexts) in [
        (BATCH, vec![]),
        (NONE, vec![durable(0)]),
        (8, vec![durable(0)]),
        (LEASE, vec![durable(0), lease(1, 1)]),
        (LEASE, vec![durable(0), lease(1, 5)]),
    ] {
        let told = talk.open_with("a", oplock, &contexts).await;
        assert!(told.status() == Status::SUCCESS && !has_context(&told, b"DH2Q"), "{oplock} {contexts:?}");
        talk.ask(Command::Close, body::close(told.file_id())).await;
    }
    let directory = body::create("d", 0x1F_01FF, 7, 3, 1);
    let directory = body::with_contexts(directory, LEASE, &[durable(0), lease(2, RWH)]);
    let told = talk.ask(Command::Create, directory).await;
    assert!(told.status() == Status::SUCCESS && !has_context(&told, b"DH2Q"), "a directory");
    talk.ask(Command::Close, body::close(told.file_id())).await;
    // TREE_DISCONNECT closes everything; LOGOFF leaves what is durable.
    assert!(has_context(&talk.open_with("a", BATCH, &[durable(0)]).await, b"DH2Q"));
    talk.ask(Command::TreeDisconnect, body::empty()).await;
    assert!(bench.disconnected() == 0 && !talk.conversation.is_in_use());
    talk.connect("data").await;
    assert!(has_context(&talk.open_with("a", BATCH, &[(b"DHnQ", vec![0; 16])]).await, b"DHnQ"));
    talk.ask(Command::Logoff, body::empty()).await;
    assert_eq!(bench.disconnected(), 1);
    bench.server.end_all_disconnected();
    assert!(bench.opens.is_empty());
}

#[tokio::test]
async fn another_open_goes_on_and_ends_it() {
    for contexts in [vec![], vec![lease(1, RWH)]] {
        let bench = bench(true).await;
        let mut talk = bench.connected().await;
        let (level, asked) = if contexts.is_empty() { (BATCH, vec![]) } else { (LEASE, contexts.clone()) };
        let told = talk.open_with("a", level, &[&[durable(0)], &asked[..]].concat()).await;
        assert!(has_context(&told, b"DH2Q"));
        talk.conversation.end().await;
        let mut other = bench.connected().await;
        assert_eq!(other.open("a", 1, 0).await.status(), Status::SUCCESS);
        assert_eq!(bench.disconnected(), 0);
        let claimed = other.open_with("a", level, &[&[claim(told.file_id(), GUID)], &asked[..]].concat()).await;
        assert_eq!(claimed.status(), Status::OBJECT_NAME_NOT_FOUND);
    }
}

/// A handle lease alone is no hindrance to those who only read beside it.
#[tokio::test]
async fn a_shared_lease_stays_beside_another_open() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let told = talk.open_with("a", LEASE, &[durable(0), lease(1, RH)]).await;
    assert!(has_context(&told, b"DH2Q"));
    talk.conversation.end().await;
    let mut other = bench.connected().await;
    let beside = other.open("a", 1, 0).await.file_id();
    assert_eq!(bench.disconnected(), 1);
    for (name, key, status) in
        [("b", 1, Status::INVALID_PARAMETER), ("a", 2, Status::OBJECT_NAME_NOT_FOUND), ("A", 1, Status::SUCCESS)]
    {
        let claimed = other.open_with(name, LEASE, &[claim(told.file_id(), GUID), lease(key, RH)]).await;
        assert_eq!(claimed.status(), status, "{name} {key}");
    }
    other.conversation.end().await;
    // A change through another handle takes back what was read, and with it the handle.
    let mut third = bench.connected().await;
    let writer = third.open("a", 1, 0).await.file_id();
    assert_eq!(bench.disconnected(), 1);
    assert_eq!(third.ask(Command::Write, body::write(writer, 0, b"x")).await.status(), Status::SUCCESS);
    assert_eq!(bench.disconnected(), 0);
    assert_ne!(beside, writer);
}

#[tokio::test]
async fn rest_goes_on_and_ends_it_except_where_it_has_locked() {
    let bench = bench(true).await;
    bench.cut(0).await;
    let mut look = bench.connected().await;
    // Attributes alone break nothing.
    let told = look.ask(Command::Create, body::create("a", 0x80, 7, 1, 0)).await;
    assert!(told.status() == Status::SUCCESS && bench.disconnected() == 1);
    let id = told.file_id();
    let told = look.ask(Command::QueryInfo, body::query_info(id, 1, 6, 8)).await;
    let file = u64::from_le_bytes(told.buffer()[..8].try_into().unwrap());
    look.conversation.end().await;
    let share = bench.share().await;
    let file = TableId { share, id: file };
    let put = async |offset| {
        let span = Span { offset, length: 1, transfer: Transfer::Write };
        bench.opens.enter(file, RestAccess::Write, Some(span)).await.map(drop)
    };
    assert_eq!(put(9).await, Err(Refusal::FileLockConflict), "its locks stand");
    assert_eq!(bench.disconnected(), 1);
    // The break ends it at once; the operation then begins again.
    assert!(matches!(put(10).await, Err(Refusal::Breaking(_))));
    assert_eq!((bench.disconnected(), put(10).await, put(9).await), (0, Ok(()), Ok(())));
}

#[tokio::test]
async fn a_replaced_key_and_a_forced_close_end_it() {
    let bench = bench(true).await;
    bench.cut(0).await;
    bench.accounts.set(accounts(KEY));
    bench.server.end_disconnected(Instant::now());
    assert_eq!(bench.disconnected(), 1, "the same key in a list that was read again");
    bench.accounts.set(accounts(OTHER_KEY));
    bench.server.end_disconnected(Instant::now());
    assert!(bench.disconnected() == 0 && bench.opens.is_empty());
    // A session whose key is gone leaves nothing behind, even if nobody has noticed yet.
    bench.accounts.set(accounts(KEY));
    let mut talk = bench.connected().await;
    assert!(has_context(&talk.open_with("a", BATCH, &[durable(0)]).await, b"DH2Q"));
    bench.accounts.set(accounts(OTHER_KEY));
    talk.conversation.end().await;
    assert_eq!(bench.disconnected(), 0);
    bench.accounts.set(accounts(KEY));
    bench.cut(0).await;
    let share = bench.share().await;
    bench.opens.close_disconnected(share);
    assert!(bench.disconnected() == 0 && bench.opens.is_empty(), "the share is deleted");
}

#[tokio::test]
async fn a_new_session_of_the_client_takes_over() {
    let bench = bench(true).await;
    let mut old = bench.connected().await;
    let id = old.open_with("a", BATCH, &[durable(0)]).await.file_id();
    let waiting = old.open("b", 3, 0).await.file_id();
    assert_eq!(old.lock(waiting, 0x12).await, Status::SUCCESS);
    // The server has not noticed that the old connection is dead.
    let mut new = bench.talk(USUAL, true);
    new.client.previous_session = old.client.session_id;
    assert_eq!(new.log_on("devstore", KEY).await, Status::SUCCESS);
    new.connect("data").await;
    assert_eq!(new.open_with("a", BATCH, &[claim(id, GUID)]).await.status(), Status::SUCCESS);
    let b = new.open("b", 1, 0).await.file_id();
    assert_eq!(new.lock(b, 0x12).await, Status::SUCCESS, "what was not durable is closed");
    assert!(!old.conversation.is_in_use());
}

/// A lock that waits when its session ends is not granted to a handle that lives on.
#[tokio::test]
async fn a_lock_that_waits_ends_with_its_session() {
    let bench = bench(true).await;
    let mut old = bench.connected().await;
    let second = (&b"DH2Q"[..], body::durable_v2(0, GUID + 1));
    let holder = old.open_with("a", LEASE, &[durable(0), lease(1, RH)]).await.file_id();
    let waiter = old.open_with("a", LEASE, &[second, lease(1, RH)]).await.file_id();
    assert_eq!(old.lock(holder, 0x12).await, Status::SUCCESS);
    assert_eq!(old.lock(waiter, 0x2).await, Status::PENDING);
    let mut new = bench.talk(USUAL, true);
    new.client.previous_session = old.client.session_id;
    assert_eq!(new.log_on("devstore", KEY).await, Status::SUCCESS);
    new.connect("data").await;
    assert_eq!(old.answers().await.remove(0).status(), Status::CANCELLED);
    let told = new.open_with("a", LEASE, &[claim(holder, GUID), lease(1, RH)]).await;
    assert_eq!(new.lock(told.file_id(), 4).await, Status::SUCCESS);
    let told = new.open_with("a", LEASE, &[claim(waiter, GUID + 1), lease(1, RH)]).await;
    assert_eq!(new.lock(told.file_id(), 4).await, Status::RANGE_NOT_LOCKED);
}

#[tokio::test]
async fn a_lock_request_that_is_sent_again_is_done_once() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let id = talk.open_with("a", BATCH, &[durable(0)]).await.file_id();
    let lock = |sequence, flags| body::lock_numbered(id, sequence, &[(0, 10, flags)]);
    for (sequence, flags, status) in [
        (0x11, 0x12, Status::SUCCESS),
        (0x11, 0x12, Status::SUCCESS),
        (0x12, 0x12, Status::LOCK_NOT_GRANTED),
        (0x13, 0x4, Status::SUCCESS),
        (0x13, 0x4, Status::SUCCESS),
        (0x14, 0x4, Status::RANGE_NOT_LOCKED),
        // Without a place there is nothing to compare.
        (0x01, 0x12, Status::SUCCESS),
        (0x01, 0x12, Status::LOCK_NOT_GRANTED),
    ] {
        assert_eq!(talk.ask(Command::Lock, lock(sequence, flags)).await.status(), status, "{sequence:#x} {flags:#x}");
    }
    let id = talk.open("b", 3, 0).await.file_id();
    let lock = || body::lock_numbered(id, 0x11, &[(0, 10, 0x12)]);
    assert_eq!(talk.ask(Command::Lock, lock()).await.status(), Status::SUCCESS);
    assert_eq!(talk.ask(Command::Lock, lock()).await.status(), Status::LOCK_NOT_GRANTED, "not durable");
}

#[tokio::test]
async fn a_create_that_is_sent_again_gets_the_open_of_the_first() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let first = talk.open_with("a", BATCH, &[durable(0)]).await;
    assert_eq!(talk.open_with("a", BATCH, &[durable(0)]).await.status(), Status::DUPLICATE_OBJECTID);
    talk.client.replays = true;
    let again = talk.open_with("a", BATCH, &[durable(0)]).await;
    assert_eq!((again.status(), again.file_id()), (Status::SUCCESS, first.file_id()));
    assert_eq!(&again.bytes[64..], &first.bytes[64..], "the same answer, also that it was created");
    let told = talk.open_with("a", NONE, &[durable(0)]).await;
    assert_eq!((told.status(), told.bytes[66], has_context(&told, b"DH2Q")), (Status::SUCCESS, NONE, false));
    let told = talk.open_with("a", LEASE, &[durable(0), lease(1, RWH)]).await;
    assert_eq!(told.status(), Status::ACCESS_DENIED);
    // Another session cannot have it, and once it is used nobody can.
    let mut other = bench.connected().await;
    other.client.replays = true;
    assert_eq!(other.open_with("a", BATCH, &[durable(0)]).await.status(), Status::DUPLICATE_OBJECTID);
    talk.client.replays = false;
    assert_eq!(talk.ask(Command::Write, body::write(first.file_id(), 0, b"x")).await.status(), Status::SUCCESS);
    talk.ask(Command::Close, body::close(first.file_id())).await;
    talk.client.replays = true;
    let new = talk.open_with("a", BATCH, &[durable(0)]).await;
    assert!(new.status() == Status::SUCCESS && new.file_id() != first.file_id());
}

/// More opens than are kept: the rest is closed, and others are served.
#[tokio::test]
async fn a_flood_of_lost_opens_has_a_limit() {
    const MORE: usize = 20;
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    for number in 0..DISCONNECTED_OPENS_PER_ACCOUNT_MAX + MORE {
        let context = (&b"DH2Q"[..], body::durable_v2(0, number as u128));
        let told = talk.open_with(&format!("{number}"), BATCH, &[context]).await;
        assert!(has_context(&told, b"DH2Q"), "{number}");
    }
    talk.conversation.end().await;
    assert_eq!(bench.disconnected(), DISCONNECTED_OPENS_PER_ACCOUNT_MAX);
    let mut other = bench.connected().await;
    for number in 0..DISCONNECTED_OPENS_PER_ACCOUNT_MAX + MORE {
        assert_eq!(other.open(&format!("{number}"), 1, 0).await.status(), Status::SUCCESS, "{number}");
    }
    assert_eq!(bench.disconnected(), 0);
}
