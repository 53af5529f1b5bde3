//! Conversations over the File service in memory: compounds, requests that wait, limits, sessions that end.

mod controls;
mod durable;
mod limits;

mod caching;

use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use ::wire::names::ShareName;
use auth::{Account, AccountKey, Accounts};
use bytes::Bytes;
use engine::memory::MemoryEngine;
use engine::{BoxFuture, Decision, Engine, EngineError, Wrapper};
use file::opens::Opens;
use file::{CreateShare, FileService};
use service::current::Shared as Kept;
use tokio::sync::Semaphore;

use super::*;
use crate::connection::Settings;
use crate::crypto::kdf::Algorithms;
use crate::ntlm::ServerNames;
use crate::server::{Answered, Host};
use crate::status::Status;
use crate::testing::{Asked, Client, Told, USUAL, body};
use crate::user::{OPENS_PER_SESSION_MAX, TREES_PER_SESSION_MAX};
use crate::wire::FileId;
use crate::wire::fsctl::code;
use crate::wire::header::Flags;
use crate::wire::negotiate::Dialect;

const KEY: &str = "a2V5";
const OTHER_KEY: &str = "b3RoZXI=";
/// More commits than a test has.
const COMMITS: usize = 1 << 20;

#[derive(Debug)]
struct TestHost {
    engine: Arc<dyn Engine>,
    /// Whoever has it holds up TREE_CONNECT.
    gate: tokio::sync::Mutex<()>,
    failed: AtomicUsize,
}

impl Host for TestHost {
    fn account_id<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<u64, EngineError>> {
        Box::pin(async {
            let _open = self.gate.lock().await;
            engine::account::id(self.engine.as_ref(), name).await
        })
    }

    fn answered(&self, _: &Answered<'_>) {}

    fn logon_failed(&self, _: SocketAddr, _: Duration) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }
}

/// An engine whose commits wait while there are no permits for them. Each takes one.
#[derive(Debug)]
struct Slow {
    inner: MemoryEngine,
    commits: Arc<Semaphore>,
}

impl Wrapper for Slow {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async {
            self.commits.acquire().await.unwrap().forget();
            self.inner.commit(decision).await
        })
    }
}

/// A server with the account `devstore` and its share `data`.
struct Bench {
    server: Arc<Server>,
    /// Permits for commits: many, unless a test takes them.
    commits: Arc<Semaphore>,
    accounts: Arc<Kept<Accounts>>,
    host: Arc<TestHost>,
    opens: Arc<Opens>,
}

fn accounts(key: &str) -> Accounts {
    Accounts::new([Account::new("devstore", vec![AccountKey::from_base64(key).unwrap()])])
}

async fn bench(require_encryption: bool) -> Bench {
    let commits = Arc::new(Semaphore::new(COMMITS));
    let engine: Arc<dyn Engine> = Arc::new(Slow { inner: MemoryEngine::new(1), commits: Arc::clone(&commits) });
    let id = engine::account::id(engine.as_ref(), "devstore").await.unwrap();
    let create = CreateShare::named(ShareName::parse("data").unwrap());
    service::commit(engine.as_ref(), id, &Arc::new(create)).await.unwrap();
    let opens = Arc::new(Opens::new(1));
    let files = FileService::new(Arc::clone(&engine), Arc::clone(&opens));
    let names = ServerNames {
        computer: "LAZURITE".into(),
        domain: "AZURE".into(),
        dns_computer: "lazurite".into(),
        dns_domain: "lazurite".into(),
        hosts: None,
    };
    let settings = Settings { names, server_guid: 7, require_encryption, require_signing: true, leasing: true };
    let accounts = Arc::new(Kept::new(accounts(KEY)));
    let host = Arc::new(TestHost { engine, gate: tokio::sync::Mutex::default(), failed: AtomicUsize::new(0) });
    let server = Server::new(settings, files.door(), Arc::clone(&accounts) as _, Arc::clone(&host) as _);
    Bench { server: Arc::new(server), commits, accounts, host, opens }
}

/// A client with its connection.
struct Talk {
    client: Client,
    conversation: Conversation,
    outbox: Outbox,
}

impl Bench {
    fn talk(&self, algorithms: Algorithms, encrypt: bool) -> Talk {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let conversation = Conversation::new(Arc::clone(&self.server), at(1), at(2));
        let outbox = conversation.outbox();
        Talk { client: Client::new(algorithms, encrypt), conversation, outbox }
    }

    /// Logged on, and connected to the share.
    async fn connected(&self) -> Talk {
        let mut talk = self.talk(USUAL, true);
        assert_eq!(talk.log_on("devstore", KEY).await, Status::SUCCESS);
        talk.connect("data").await;
        talk
    }
}

impl Talk {
    async fn send(&mut self, frame: &[u8]) -> Result<(), Disconnect> {
        self.conversation.receive(frame[4..].into()).await
    }

    async fn frame(&mut self) -> Vec<u8> {
        let frame = self.outbox.next().await.expect("an answer");
        self.outbox.sent(frame.parts.iter().map(Bytes::len).sum());
        frame.parts.concat()
    }

    async fn exchange(&mut self, frame: Vec<u8>) -> Vec<u8> {
        self.send(&frame).await.expect("the connection goes on");
        self.frame().await
    }

    async fn log_on(&mut self, user: &str, key: &str) -> Status {
        let negotiate = self.client.negotiate();
        let answer = self.exchange(negotiate).await;
        let first = self.client.log_on(&answer, user, key);
        let answer = self.exchange(first).await;
        let last = self.client.prove(&answer);
        let answer = self.exchange(last).await;
        self.client.proven(&answer)
    }

    async fn ask(&mut self, command: Command, body: Vec<u8>) -> Told {
        let frame = self.client.ask(command, body);
        let frame = self.exchange(frame).await;
        self.client.answers(&frame).remove(0)
    }

    async fn connect(&mut self, share: &str) {
        let told = self.ask(Command::TreeConnect, body::tree_connect(share)).await;
        assert_eq!(told.status(), Status::SUCCESS);
        self.client.tree_id = told.header.tree_id().unwrap();
    }

    async fn open(&mut self, name: &str, disposition: u32, options: u32) -> Told {
        self.ask(Command::Create, body::create(name, 0x1F_01FF, 7, disposition, options)).await
    }

    async fn answers(&mut self) -> Vec<Told> {
        let frame = self.frame().await;
        self.client.answers(&frame)
    }
}

fn statuses(told: &[Told]) -> Vec<Status> {
    told.iter().map(Told::status).collect()
}

#[tokio::test]
async fn a_file_in_every_dialect() {
    use crate::wire::negotiate_context::{CipherId, SigningId};
    let old = |dialect, signing, cipher| Algorithms { dialect, signing, cipher };
    for (algorithms, encrypt) in [
        (old(Dialect::Smb210, SigningId::HmacSha256, None), false),
        (old(Dialect::Smb300, SigningId::AesCmac, Some(CipherId::Aes128Ccm)), false),
        (old(Dialect::Smb302, SigningId::AesCmac, Some(CipherId::Aes128Ccm)), true),
        (old(Dialect::Smb311, SigningId::AesCmac, Some(CipherId::Aes256Gcm)), true),
        (USUAL, false),
        (USUAL, true),
    ] {
        let bench = bench(false).await;
        let mut talk = bench.talk(algorithms, encrypt);
        assert_eq!(talk.log_on("devstore", KEY).await, Status::SUCCESS, "{algorithms:?}");
        talk.connect("data").await;
        let id = talk.open("a", 2, 0x40).await.file_id();
        let told = talk.ask(Command::Write, body::write(id, 0, b"hello")).await;
        assert_eq!(told.status(), Status::SUCCESS, "{algorithms:?}");
        let told = talk.ask(Command::Read, body::read(id, 1, 100)).await;
        assert_eq!(told.data(), b"ello", "{algorithms:?}");
        assert_eq!(talk.ask(Command::Close, body::close(id)).await.status(), Status::SUCCESS);
        assert_eq!(talk.ask(Command::Close, body::close(id)).await.status(), Status::FILE_CLOSED);
        talk.conversation.end().await;
    }
}

#[tokio::test]
async fn related_requests_go_on_with_the_file_of_the_first() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let compound = |disposition| {
        vec![
            Asked::new(Command::Create, body::create("a", 0x1F_01FF, 7, disposition, 0)),
            Asked::new(Command::QueryInfo, body::query_info(FileId::RELATED, 1, 99, 100)).related(),
            Asked::new(Command::QueryInfo, body::query_info(FileId::RELATED, 1, 5, 100)).related(),
            Asked::new(Command::Close, body::close(FileId::RELATED)).related(),
        ]
    };
    let frame = talk.client.frame(compound(1));
    talk.send(&frame).await.unwrap();
    let told = talk.answers().await;
    assert_eq!(
        statuses(&told),
        [Status::OBJECT_NAME_NOT_FOUND; 4],
        "a failed CREATE fails what was meant for its file"
    );
    let frame = talk.client.frame(compound(2));
    talk.send(&frame).await.unwrap();
    let told = talk.answers().await;
    let expected = [Status::SUCCESS, Status::INVALID_INFO_CLASS, Status::SUCCESS, Status::SUCCESS];
    assert_eq!(statuses(&told), expected, "another failure leaves the file where it is");
    assert!(told.iter().all(|told| told.header.session_id == talk.client.session_id));
    assert!(told.iter().all(|told| told.header.tree_id() == Some(talk.client.tree_id)));
    assert!(!talk.conversation.is_in_use(), "the file is closed");
}

#[tokio::test]
async fn a_lock_waits_and_is_granted_cancelled_or_ends_with_its_handle() {
    let bench = bench(true).await;
    let (mut holder, mut waiter) = (bench.connected().await, bench.connected().await);
    let held = holder.open("a", 3, 0).await.file_id();
    let waiting = waiter.open("a", 3, 0).await.file_id();
    assert_eq!(holder.ask(Command::Lock, body::lock(held, &[(0, 10, 0x12)])).await.status(), Status::SUCCESS);
    let at_once = waiter.ask(Command::Lock, body::lock(waiting, &[(5, 1, 0x12)])).await;
    assert_eq!(at_once.status(), Status::LOCK_NOT_GRANTED);

    // Cancelled by its asynchronous id, and by its message id.
    for by_async_id in [true, false] {
        let interim = waiter.ask(Command::Lock, body::lock(waiting, &[(5, 1, 0x2)])).await;
        assert_eq!(interim.status(), Status::PENDING);
        assert!(interim.header.credits > 0, "the interim answer carries the credits");
        let Route::Async(id) = interim.header.route else { panic!("an asynchronous id") };
        let frame = waiter.client.cancel(interim.header.message_id, by_async_id.then_some(id));
        waiter.send(&frame).await.unwrap();
        let last = waiter.answers().await.remove(0);
        assert_eq!((last.status(), last.header.route), (Status::CANCELLED, Route::Async(id)));
        assert_eq!((last.header.message_id, last.header.credits), (interim.header.message_id, 0));
    }

    // Granted when the other unlocks. Meanwhile other requests are answered.
    let interim = waiter.ask(Command::Lock, body::lock(waiting, &[(5, 1, 0x2)])).await;
    assert_eq!(interim.status(), Status::PENDING);
    assert_eq!(waiter.ask(Command::Echo, body::empty()).await.status(), Status::SUCCESS);
    assert_eq!(holder.ask(Command::Lock, body::lock(held, &[(0, 10, 0x4)])).await.status(), Status::SUCCESS);
    let last = waiter.answers().await.remove(0);
    assert_eq!((last.status(), last.header.message_id), (Status::SUCCESS, interim.header.message_id));

    // The holder waits now, and closes.
    let interim = holder.ask(Command::Lock, body::lock(held, &[(5, 1, 0x2)])).await;
    assert_eq!(interim.status(), Status::PENDING);
    let frame = holder.client.ask(Command::Close, body::close(held));
    holder.send(&frame).await.unwrap();
    let mut ended = vec![holder.answers().await.remove(0), holder.answers().await.remove(0)];
    ended.sort_by_key(|told| told.header.command);
    assert_eq!(statuses(&ended), [Status::SUCCESS, Status::RANGE_NOT_LOCKED]);
}

#[tokio::test]
async fn locks_and_unlocks_of_one_request() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let id = talk.open("a", 3, 0).await.file_id();
    for (ranges, status) in [
        (&[(0, 1, 0x12), (5, 1, 0x12)][..], Status::SUCCESS),
        (&[(9, 1, 0)], Status::INVALID_PARAMETER),
        (&[(9, 1, 3)], Status::INVALID_PARAMETER),
        (&[(9, 1, 0x12), (0, 1, 4)], Status::INVALID_PARAMETER),
        (&[(9, 1, 2), (11, 1, 2)], Status::INVALID_PARAMETER),
        // The first is unlocked although the second is no unlock.
        (&[(0, 1, 4), (9, 1, 0x12)], Status::INVALID_PARAMETER),
        (&[(0, 1, 4)], Status::RANGE_NOT_LOCKED),
        (&[(5, 1, 4)], Status::SUCCESS),
    ] {
        let told = talk.ask(Command::Lock, body::lock(id, ranges)).await;
        assert_eq!(told.status(), status, "{ranges:?}");
    }
    let wrong = FileId { volatile: 99, ..id };
    let told = talk.ask(Command::Lock, body::lock(wrong, &[(0, 1, 0)])).await;
    assert_eq!(told.status(), Status::FILE_CLOSED, "the file is looked for first");
}

#[tokio::test]
async fn only_the_last_of_a_compound_waits() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let directory = talk.open("", 1, 1).await.file_id();
    let notify = body::change_notify(directory, 1);
    let frame = talk
        .client
        .frame(vec![Asked::new(Command::ChangeNotify, notify.clone()), Asked::new(Command::ChangeNotify, notify)]);
    talk.send(&frame).await.unwrap();
    let told = talk.answers().await;
    assert_eq!(
        statuses(&told),
        [Status::INTERNAL_ERROR, Status::PENDING],
        "the interim answer comes with those before it"
    );
    talk.open("new", 2, 0).await;
    let last = talk.answers().await.remove(0);
    assert_eq!((last.status(), &last.buffer()[4..8]), (Status::SUCCESS, &[1, 0, 0, 0][..]));
    let interim = talk.ask(Command::ChangeNotify, body::change_notify(directory, 1)).await;
    assert_eq!(interim.status(), Status::PENDING);
    let frame = talk.client.ask(Command::Close, body::close(directory));
    talk.send(&frame).await.unwrap();
    let mut ended = vec![talk.answers().await.remove(0), talk.answers().await.remove(0)];
    ended.sort_by_key(|told| told.header.command);
    assert_eq!(statuses(&ended), [Status::SUCCESS, Status::NOTIFY_CLEANUP]);
}

#[tokio::test]
async fn a_watched_directory_that_is_deleted_is_let_go() {
    let bench = bench(true).await;
    let (mut watcher, mut other) = (bench.connected().await, bench.connected().await);
    let watched = watcher.open("d", 3, 1).await.file_id();
    let interim = watcher.ask(Command::ChangeNotify, body::change_notify(watched, 1)).await;
    assert_eq!(interim.status(), Status::PENDING);
    let id = other.open("d", 1, 1).await.file_id();
    assert_eq!(other.ask(Command::SetInfo, body::set_info(id, 1, 13, &[1])).await.status(), Status::SUCCESS);
    let last = watcher.answers().await.remove(0);
    assert_eq!((last.status(), last.header.message_id), (Status::DELETE_PENDING, interim.header.message_id));
    let again = watcher.ask(Command::ChangeNotify, body::change_notify(watched, 1)).await;
    assert_eq!(again.status(), Status::DELETE_PENDING);
    other.ask(Command::Close, body::close(id)).await;
    assert_eq!(other.open("d", 1, 1).await.status(), Status::DELETE_PENDING);
    watcher.ask(Command::Close, body::close(watched)).await;
    assert_eq!(other.open("d", 1, 1).await.status(), Status::OBJECT_NAME_NOT_FOUND);
}

#[tokio::test]
async fn a_replaced_key_ends_its_sessions() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    talk.open("a", 2, 0).await;
    assert!(talk.conversation.is_in_use());
    bench.accounts.set(accounts(KEY));
    talk.conversation.end_rotated_sessions().await;
    assert!(talk.conversation.is_logged_on(), "the same key in a list that was read again");
    bench.accounts.set(accounts(OTHER_KEY));
    talk.conversation.end_rotated_sessions().await;
    assert!(!talk.conversation.is_logged_on() && !talk.conversation.is_in_use());
    let frame = talk.client.ask(Command::Echo, body::empty());
    assert_eq!(talk.send(&frame).await, Err(Disconnect::BadMessage), "nobody can decrypt it any more");
    let mut again = bench.talk(USUAL, true);
    assert_eq!(again.log_on("devstore", KEY).await, Status::LOGON_FAILURE);
    assert_eq!(bench.host.failed.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn who_fails_to_log_on_again_is_out() {
    let bench = bench(false).await;
    let mut talk = bench.talk(USUAL, false);
    talk.log_on("devstore", KEY).await;
    talk.connect("data").await;
    talk.open("a", 2, 0).await;
    for (key, status) in [(KEY, Status::SUCCESS), (OTHER_KEY, Status::LOGON_FAILURE)] {
        let first = talk.client.log_on_again("devstore", key);
        let answer = talk.exchange(first).await;
        let last = talk.client.prove(&answer);
        let answer = talk.exchange(last).await;
        assert_eq!(Header::decode(&answer[4..]).unwrap().status, status);
        assert_eq!(talk.conversation.is_in_use(), status == Status::SUCCESS, "the files of the session");
    }
    assert!(!talk.conversation.is_logged_on());
}

#[tokio::test]
async fn logoff_and_tree_disconnect_close_what_is_open() {
    let bench = bench(false).await;
    let mut talk = bench.talk(USUAL, false);
    talk.log_on("devstore", KEY).await;
    talk.connect("data").await;
    talk.open("a", 2, 0).await;
    assert_eq!(talk.ask(Command::TreeDisconnect, body::empty()).await.status(), Status::SUCCESS);
    assert!(!talk.conversation.is_in_use());
    assert_eq!(talk.ask(Command::TreeDisconnect, body::empty()).await.status(), Status::NETWORK_NAME_DELETED);
    assert_eq!(talk.open("a", 1, 0).await.status(), Status::NETWORK_NAME_DELETED);
    talk.connect("data").await;
    talk.open("a", 1, 0).await;
    assert_eq!(talk.ask(Command::Logoff, body::empty()).await.status(), Status::SUCCESS);
    assert!(!talk.conversation.is_in_use() && !talk.conversation.is_logged_on());
    let told = talk.open("a", 1, 0).await;
    assert_eq!(told.status(), Status::USER_SESSION_DELETED);
    assert!(told.header.flags.has(Flags::SIGNED), "Samba's client drops an answer without the flag");
    assert_ne!(told.header.signature, [0; 16], "the signature of the request");
}

#[tokio::test]
async fn trees_have_a_limit() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    for _ in 1..TREES_PER_SESSION_MAX {
        talk.connect("IPC$").await;
    }
    let told = talk.ask(Command::TreeConnect, body::tree_connect("data")).await;
    assert_eq!(told.status(), Status::INSUFFICIENT_RESOURCES);
    const { assert!(OPENS_PER_SESSION_MAX > TREES_PER_SESSION_MAX) };
}

#[tokio::test]
async fn shares_that_are_not_there() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    for share in ["other", "a", "IPC", "d$ta"] {
        let told = talk.ask(Command::TreeConnect, body::tree_connect(share)).await;
        assert_eq!(told.status(), Status::BAD_NETWORK_NAME, "{share}");
    }
    assert_eq!(talk.ask(Command::TreeConnect, body::tree_connect("DATA")).await.status(), Status::SUCCESS);
}

#[tokio::test]
async fn controls_have_the_statuses_that_clients_expect() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let file = talk.open("a", 2, 0).await.file_id();
    for (code, id, status) in [
        (code::DFS_GET_REFERRALS, FileId::RELATED, Status::FS_DRIVER_REQUIRED),
        (code::GET_REPARSE_POINT, file, Status::NOT_A_REPARSE_POINT),
        (code::GET_REPARSE_POINT, FileId::RELATED, Status::FILE_CLOSED),
        (code::CREATE_OR_GET_OBJECT_ID, file, Status::INVALID_DEVICE_REQUEST),
        (code::SRV_READ_HASH, file, Status::INVALID_DEVICE_REQUEST),
        (code::LMR_REQUEST_RESILIENCY, file, Status::INVALID_DEVICE_REQUEST),
        (code::SRV_COPYCHUNK, file, Status::INVALID_PARAMETER),
        (code::SET_COMPRESSION, file, Status::INVALID_PARAMETER),
        (code::DUPLICATE_EXTENTS_TO_FILE, file, Status::INVALID_PARAMETER),
        (code::SRV_REQUEST_RESUME_KEY, FileId::RELATED, Status::FILE_CLOSED),
        (code::SET_SPARSE, file, Status::SUCCESS),
        (code::PIPE_TRANSCEIVE, file, Status::INVALID_DEVICE_REQUEST),
        (code::SET_ZERO_DATA, file, Status::INVALID_PARAMETER),
        (code::QUERY_NETWORK_INTERFACE_INFO, FileId::RELATED, Status::SUCCESS),
        (code::QUERY_NETWORK_INTERFACE_INFO, file, Status::INVALID_PARAMETER),
        (0x0009_FFFF, file, Status::INVALID_DEVICE_REQUEST),
    ] {
        let told = talk.ask(Command::Ioctl, body::ioctl(id, code, &[], 4096)).await;
        assert_eq!(told.status(), status, "{code:#x} {id:?}");
    }
    assert_eq!(talk.ask(Command::OplockBreak, vec![24, 0]).await.status(), Status::INVALID_PARAMETER);
}

#[tokio::test]
async fn a_negotiation_that_was_changed_ends_the_connection() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let input = |capabilities: u32| {
        let mut input = capabilities.to_le_bytes().to_vec();
        input.extend([0xAB; 16]);
        input.extend([1, 0, 5, 0]);
        input.extend([0x11, 0x03].repeat(5));
        input
    };
    let validate = |capabilities| body::ioctl(FileId::RELATED, code::VALIDATE_NEGOTIATE_INFO, &input(capabilities), 24);
    let told = talk.ask(Command::Ioctl, validate(0x7F)).await;
    assert_eq!(told.status(), Status::SUCCESS);
    let frame = talk.client.ask(Command::Ioctl, validate(0x3F));
    talk.send(&frame).await.unwrap();
    assert!(talk.outbox.is_closed());
    assert!(talk.outbox.next().await.is_none(), "no answer");
}

#[tokio::test]
async fn the_share_list_comes_over_the_pipe_in_both_ways() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    talk.connect("ipc$").await;
    assert_eq!(talk.open("wkssvc", 1, 0).await.status(), Status::OBJECT_NAME_NOT_FOUND);
    let pipe = talk.open("srvsvc", 1, 0).await.file_id();
    assert_eq!(talk.ask(Command::Read, body::read(pipe, 0, 100)).await.status(), Status::PIPE_EMPTY);
    let told = talk.ask(Command::Ioctl, body::ioctl(pipe, code::PIPE_TRANSCEIVE, b"no packet at all", 4096)).await;
    assert!(told.status().is_error());
    assert_eq!(talk.ask(Command::QueryInfo, body::query_info(pipe, 1, 5, 24)).await.status(), Status::SUCCESS);
    assert_eq!(talk.ask(Command::Lock, body::lock(pipe, &[(0, 1, 2)])).await.status(), Status::INVALID_DEVICE_REQUEST);
    assert_eq!(talk.ask(Command::Close, body::close(pipe)).await.status(), Status::SUCCESS);
}

#[tokio::test]
async fn a_session_that_is_replaced_ends_on_its_connection() {
    let bench = bench(false).await;
    let mut first = bench.talk(USUAL, false);
    first.log_on("devstore", KEY).await;
    first.connect("data").await;
    first.open("a", 2, 0).await;
    let user = bench.server.find_session(first.client.session_id, "devstore").expect("a session");
    assert!(bench.server.find_session(first.client.session_id, "other").is_none(), "only its own account finds it");
    bench.server.end_opens(&user, Ending::Lost).await;
    assert!(!first.conversation.is_in_use());
    assert_eq!(first.open("a", 1, 0).await.status(), Status::USER_SESSION_DELETED);
}

#[tokio::test]
async fn listings_keep_their_place() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    for number in 0..20 {
        let id = talk.open(&format!("file-{number:02}"), 2, 0).await.file_id();
        talk.ask(Command::Close, body::close(id)).await;
    }
    let root = talk.open("", 1, 1).await.file_id();
    let names = |flags: u8, output: u32, pattern: &str| body::query_directory(root, 12, flags, output, pattern);
    let mut count = 0;
    loop {
        let told = talk.ask(Command::QueryDirectory, names(0, 100, "*")).await;
        if told.status() == Status::NO_MORE_FILES {
            break;
        }
        assert_eq!(told.status(), Status::SUCCESS);
        let mut rest = told.buffer();
        loop {
            count += 1;
            match u32::from_le_bytes(rest[..4].try_into().unwrap()) {
                0 => break,
                next => rest = &rest[next as usize..],
            }
        }
    }
    assert_eq!(count, 22);
    let told = talk.ask(Command::QueryDirectory, names(3, 100, "file-1?")).await;
    assert_eq!((told.status(), &told.buffer()[..4]), (Status::SUCCESS, &[0; 4][..]), "one entry");
    for (body, status) in [
        (names(1, 100, "none*"), Status::NO_SUCH_FILE),
        (names(0, 8, "*"), Status::INFO_LENGTH_MISMATCH),
        (names(0, 100, ""), Status::OBJECT_NAME_INVALID),
        (body::query_directory(root, 99, 0, 100, "*"), Status::INVALID_INFO_CLASS),
    ] {
        assert_eq!(talk.ask(Command::QueryDirectory, body).await.status(), status);
    }
    let file = talk.open("file-00", 1, 0).await.file_id();
    let told = talk.ask(Command::QueryDirectory, body::query_directory(file, 12, 0, 100, "*")).await;
    assert_eq!(told.status(), Status::INVALID_PARAMETER);
}

#[tokio::test]
async fn what_a_create_may_not_ask_for() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    for (name, access, share, options, status) in [
        ("\\a", 1, 7, 0, Status::INVALID_PARAMETER),
        ("a", 0, 7, 0, Status::ACCESS_DENIED),
        ("a", 0x0040_0000, 7, 0, Status::ACCESS_DENIED),
        ("..\\a", 1, 7, 0, Status::OBJECT_PATH_SYNTAX_BAD),
        ("a", 1, 8, 0, Status::INVALID_PARAMETER),
        ("a", 1, 7, 0x8000_0000, Status::INVALID_PARAMETER),
        ("a", 1, 7, 0x2000, Status::NOT_SUPPORTED),
        ("a:b", 1, 7, 0, Status::OBJECT_NAME_INVALID),
        ("a", 1, 7, 0x41, Status::INVALID_PARAMETER),
        ("x\\y", 1, 7, 0, Status::OBJECT_PATH_NOT_FOUND),
    ] {
        let told = talk.ask(Command::Create, body::create(name, access, share, 3, options)).await;
        assert_eq!(told.status(), status, "{name} {access:#x} {share} {options:#x}");
    }
    assert!(!talk.conversation.is_in_use());
}

/// Bodies of requests as clients send them, with bytes changed by chance, on files, directories and a pipe: every one is answered.
#[tokio::test]
async fn damaged_requests_are_answered() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let file = talk.open("a", 2, 0).await.file_id();
    let directory = talk.open("d", 2, 1).await.file_id();
    talk.ask(Command::Write, body::write(file, 0, &[7; 5000])).await;
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let samples = crate::samples::requests();
    for round in 0..4_000u32 {
        let (command, message) = &samples[(random() % samples.len() as u64) as usize];
        if matches!(
            command,
            Command::Negotiate | Command::SessionSetup | Command::Logoff | Command::TreeDisconnect | Command::Cancel
        ) {
            continue;
        }
        let mut bytes = message[64..].to_vec();
        // The samples name a file that is not there; most of the time it becomes one that is.
        let id = if random() % 2 == 0 { file } else { directory };
        let sample = [crate::samples::FILE_ID.persistent.to_le_bytes(), crate::samples::FILE_ID.volatile.to_le_bytes()];
        if let Some(at) = bytes.windows(16).position(|window| window == sample.concat()) {
            let real = [id.persistent.to_le_bytes(), id.volatile.to_le_bytes()].concat();
            bytes[at..at + 16].copy_from_slice(&real);
        }
        for _ in 0..random() % 4 {
            let at = (random() % bytes.len() as u64) as usize;
            bytes[at] = random() as u8;
        }
        // VALIDATE_NEGOTIATE_INFO with anything but the truth ends the connection, as it must.
        if *command == Command::Ioctl {
            let codes =
                [code::SET_ZERO_DATA, code::QUERY_ALLOCATED_RANGES, code::PIPE_WAIT, code::SET_SPARSE, 0x0009_0000];
            bytes[4..8].copy_from_slice(&codes[(random() % codes.len() as u64) as usize].to_le_bytes());
        }
        bytes.truncate(bytes.len().saturating_sub((random() % 40).saturating_sub(30) as usize));
        let frame = talk.client.ask(*command, bytes);
        let message_id = talk.client.next_id - 1;
        if talk.send(&frame).await.is_err() {
            panic!("{command:?} in round {round} ended the connection");
        }
        let told = talk.answers().await.remove(0);
        if told.status() == Status::PENDING {
            let frame = talk.client.cancel(message_id, None);
            talk.send(&frame).await.unwrap();
            talk.answers().await;
        }
        assert!(!talk.outbox.is_closed(), "{command:?} in round {round}");
    }
    talk.conversation.end().await;
}
