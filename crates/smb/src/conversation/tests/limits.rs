//! What requests may hold and for how long, and what the end of a connection leaves behind: nothing.

use crate::connection::UNPAID_BYTES_MAX;
use crate::logon_throttle::FAILED_LOGONS_BURST;
use crate::memory::WORK_BYTES_MAX;
use crate::user::PIPES_PER_SESSION_MAX;
use crate::wire::{Request, change_notify};

use super::*;

fn watch() -> Vec<Asked> {
    vec![
        Asked::new(Command::Create, body::create("d", 0x1F_01FF, 7, 3, 1)),
        Asked::new(Command::ChangeNotify, body::change_notify(FileId::RELATED, 1)).related(),
    ]
}

fn free_places(talk: &Talk) -> usize {
    talk.conversation.shared.places.available_permits()
}

/// A compound whose last request comes to its turn when the conversation is ending already.
#[tokio::test]
async fn a_request_that_begins_to_wait_at_the_end_is_cancelled() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let gate = bench.host.gate.lock().await;
    let mut compound = vec![Asked::new(Command::TreeConnect, body::tree_connect("data"))];
    compound.extend(watch().into_iter().map(Asked::related));
    let frame = talk.client.frame(compound);
    talk.send(&frame).await.unwrap();
    let mut end = Box::pin(talk.conversation.end());
    assert!(poll_once(end.as_mut()).await.is_none(), "TREE_CONNECT is at work");
    drop(gate);
    end.await;
    let frames = [talk.outbox.next().await.unwrap().parts.concat(), talk.outbox.next().await.unwrap().parts.concat()];
    let told: Vec<Told> = frames.iter().flat_map(|frame| talk.client.answers(frame)).collect();
    assert_eq!(statuses(&told), [Status::SUCCESS, Status::SUCCESS, Status::PENDING, Status::CANCELLED]);
    assert!(talk.outbox.next().await.is_none());
}

/// Without [`Conversation::end`], as after a panic.
#[tokio::test]
async fn a_conversation_that_is_dropped_closes_its_files() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    talk.open("a", 2, 0x1000).await;
    let user = bench.server.find_session(talk.client.session_id, "devstore").expect("a session");
    drop(talk);
    while user.has_opens() || bench.server.find_session(user.session.id, "devstore").is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_interim_answer_of_a_related_request_names_its_session() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let frame = talk.client.frame(watch());
    talk.send(&frame).await.unwrap();
    let told = talk.answers().await;
    assert_eq!(statuses(&told), [Status::SUCCESS, Status::PENDING]);
    assert!(told.iter().all(|told| told.header.session_id == talk.client.session_id));
}

/// Bytes, and a count of who has them.
struct Held(Vec<u8>, #[expect(dead_code, reason = "held, not read")] Arc<()>);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[tokio::test]
async fn a_request_that_waits_does_not_hold_its_frame() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let id = talk.open("", 1, 1).await.file_id();
    let shared = Arc::clone(&talk.conversation.shared);
    let user = bench.server.find_session(talk.client.session_id, "devstore").unwrap();
    let held = Arc::new(());
    let header = Header {
        session_id: user.session.id,
        message_id: 1_000,
        route: Route::Tree { process: 0, tree: talk.client.tree_id },
        ..crate::wire::header::request(Command::ChangeNotify)
    };
    let request = change_notify::Request { flags: 0, output_bytes: 100, file_id: id, filter: 1 };
    let incoming = Incoming {
        header,
        bytes: Bytes::from_owner(Held(vec![0; 100], Arc::clone(&held))),
        request: Ok(Request::ChangeNotify(request)),
        session: Some(Arc::clone(&user.session)),
        sign: false,
    };
    let requests = vec![incoming];
    let place = shared.place(&requests).await;
    let mut waiting = Box::pin(shared.run(requests, None, place));
    assert!(poll_once(waiting.as_mut()).await.is_none());
    assert_eq!(Arc::strong_count(&held), 1, "nothing but the test holds the bytes");
}

#[tokio::test]
async fn a_message_is_paid_for_whatever_it_carries() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let echo = |bytes: usize| [body::empty(), vec![0; bytes]].concat();
    assert_eq!(talk.ask(Command::Echo, echo(65_536)).await.status(), Status::SUCCESS);
    let told = talk.ask(Command::Echo, echo(65_536 + UNPAID_BYTES_MAX)).await;
    assert_eq!(told.status(), Status::INVALID_PARAMETER);
}

/// Two answers of 8 MiB have no room in one frame.
#[tokio::test]
async fn long_answers_of_a_compound_come_in_frames_of_their_own() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let id = talk.open("a", 2, 0).await.file_id();
    for _ in 0..20 {
        talk.ask(Command::Echo, body::empty()).await;
    }
    let paid = |command, body| Asked { charge: 128, ..Asked::new(command, body) };
    let data = vec![7; 8 << 20];
    let frame = talk.client.frame(vec![paid(Command::Write, body::write(id, 0, &data))]);
    talk.send(&frame).await.unwrap();
    assert_eq!(statuses(&talk.answers().await), [Status::SUCCESS]);
    for _ in 0..10 {
        talk.ask(Command::Echo, body::empty()).await;
    }
    let read = paid(Command::Read, body::read(id, 0, 8 << 20));
    let echo = Asked::new(Command::Echo, body::empty());
    let frame = talk.client.frame(vec![read.clone(), echo, read]);
    talk.send(&frame).await.unwrap();
    let first = talk.answers().await;
    assert_eq!((statuses(&first), first[0].data() == data), (vec![Status::SUCCESS; 2], true));
    let second = talk.answers().await;
    assert_eq!((statuses(&second), second[0].data() == data), (vec![Status::SUCCESS], true));
}

#[tokio::test(start_paused = true)]
async fn slow_work_keeps_its_place_and_is_never_cut_off() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let directory = talk.open("", 1, 1).await.file_id();
    let notify = || body::change_notify(directory, 1);
    assert_eq!(talk.ask(Command::ChangeNotify, notify()).await.status(), Status::PENDING);
    assert_eq!(free_places(&talk), REQUESTS_MAX, "who waits for others needs no place");

    let gate = bench.host.gate.lock().await;
    assert_eq!(talk.ask(Command::TreeConnect, body::tree_connect("data")).await.status(), Status::PENDING);
    assert_eq!(free_places(&talk), REQUESTS_MAX - 1, "work that goes on keeps its place");
    drop(gate);
    assert_eq!(statuses(&talk.answers().await), [Status::SUCCESS]);

    talk.conversation.shared.waiting.store(WAITING_REQUESTS_MAX, Ordering::Relaxed);
    assert_eq!(talk.ask(Command::ChangeNotify, notify()).await.status(), Status::INSUFFICIENT_RESOURCES);
    let gate = bench.host.gate.lock().await;
    let frame = talk.client.ask(Command::TreeConnect, body::tree_connect("data"));
    talk.send(&frame).await.unwrap();
    tokio::time::sleep(3 * INTERIM_AFTER).await;
    drop(gate);
    assert_eq!(statuses(&talk.answers().await), [Status::SUCCESS], "it goes on without an interim answer");
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_takes_long_can_be_cancelled() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let id = talk.open("", 1, 1).await.file_id();
    let user = bench.server.find_session(talk.client.session_id, "devstore").unwrap();
    let open = user.open(talk.client.tree_id, id).unwrap();
    let _other = open.file().unwrap().listing.lock().await;
    let interim = talk.ask(Command::QueryDirectory, body::query_directory(id, 12, 0, 100, "*")).await;
    assert_eq!(interim.status(), Status::PENDING);
    let frame = talk.client.cancel(interim.header.message_id, None);
    talk.send(&frame).await.unwrap();
    assert_eq!(statuses(&talk.answers().await), [Status::CANCELLED]);
}

#[tokio::test]
async fn requests_at_work_have_a_share_of_memory() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let all = bench.server.memory.available();
    assert_eq!(all, WORK_BYTES_MAX);
    let gate = bench.host.gate.lock().await;
    let charged = Asked { charge: 20, ..Asked::new(Command::TreeConnect, body::tree_connect("data")) };
    let frame = talk.client.frame(vec![charged]);
    talk.send(&frame).await.unwrap();
    assert_eq!(bench.server.memory.available(), all - 20 * 65_536);
    drop(gate);
    let frame = talk.outbox.next().await.unwrap();
    assert_eq!(bench.server.memory.available(), all - 20 * 65_536, "the answer keeps it until it is sent");
    assert_eq!(statuses(&talk.client.answers(&frame.parts.concat())), [Status::SUCCESS]);
    drop(frame);
    assert_eq!(bench.server.memory.available(), all);
    talk.conversation.end().await;
    assert_eq!(bench.server.memory.available(), all);
}

/// The request that waits gives up its place, but the answers in front of it are as large as before.
#[tokio::test]
async fn answers_before_a_request_that_waits_keep_their_memory() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let directory = talk.open("", 1, 1).await.file_id();
    let id = talk.open("a", 2, 0).await.file_id();
    assert_eq!(talk.ask(Command::Write, body::write(id, 0, b"data")).await.status(), Status::SUCCESS);
    let all = bench.server.memory.available();
    let read = Asked { charge: 20, ..Asked::new(Command::Read, body::read(id, 0, 4)) };
    let frame = talk.client.frame(vec![read, Asked::new(Command::ChangeNotify, body::change_notify(directory, 1))]);
    talk.send(&frame).await.unwrap();
    assert_eq!(free_places(&talk), REQUESTS_MAX);
    let frame = talk.outbox.next().await.unwrap();
    assert_eq!(statuses(&talk.client.answers(&frame.parts.concat())), [Status::SUCCESS, Status::PENDING]);
    assert_eq!(bench.server.memory.available(), all - 21 * 65_536);
    drop(frame);
    assert_eq!(bench.server.memory.available(), all, "a request that waits holds none");
}

#[tokio::test]
async fn what_follows_a_request_that_cannot_be_read_is_related_to_it() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let create = body::create("a", 0x1F_01FF, 7, 3, 0);
    let unreadable = Asked::new(Command::Create, vec![1, 0]);
    let frame = talk.client.frame(vec![unreadable.clone(), Asked::new(Command::Create, create.clone()).related()]);
    talk.send(&frame).await.unwrap();
    let told = talk.answers().await;
    assert_eq!(statuses(&told), [Status::INVALID_PARAMETER, Status::SUCCESS], "the tree is that of the first");
    let frame = talk.client.frame(vec![
        Asked::new(Command::QueryInfo, body::query_info(told[1].file_id(), 1, 5, 100)),
        Asked::new(Command::Flush, vec![1, 0]),
        Asked::new(Command::Close, body::close(FileId::RELATED)).related(),
    ]);
    talk.send(&frame).await.unwrap();
    let expected = [Status::SUCCESS, Status::INVALID_PARAMETER, Status::INVALID_PARAMETER];
    assert_eq!(statuses(&talk.answers().await), expected, "not the file of the one before");
    assert!(talk.conversation.is_in_use());
}

#[tokio::test]
async fn what_is_related_to_nothing_is_refused() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let id = talk.open("a", 2, 0).await.file_id();
    let create = Asked::new(Command::Create, body::create("b", 0x1F_01FF, 7, 2, 0)).related();
    let frame = talk.client.frame(vec![create, Asked::new(Command::Close, body::close(id)).related()]);
    talk.send(&frame).await.unwrap();
    assert_eq!(statuses(&talk.answers().await), [Status::INVALID_PARAMETER; 2]);
}

#[tokio::test]
async fn strangers_have_little_room_for_answers() {
    let bench = bench(true).await;
    let mut talk = bench.talk(USUAL, true);
    assert_eq!(talk.conversation.outbox_bytes_max(), OUTBOX_BYTES_MAX_BEFORE_LOGON);
    assert_eq!(talk.log_on("devstore", KEY).await, Status::SUCCESS);
    assert_eq!(talk.conversation.outbox_bytes_max(), OUTBOX_BYTES_MAX);
}

#[tokio::test]
async fn pipes_have_a_limit() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    talk.connect("IPC$").await;
    for _ in 0..PIPES_PER_SESSION_MAX {
        assert_eq!(talk.open("srvsvc", 1, 0).await.status(), Status::SUCCESS);
    }
    assert_eq!(talk.open("srvsvc", 1, 0).await.status(), Status::INSUFFICIENT_RESOURCES);
}

#[tokio::test]
async fn a_session_that_another_connection_replaced_is_let_go() {
    let bench = bench(false).await;
    let mut first = bench.talk(USUAL, false);
    first.log_on("devstore", KEY).await;
    first.connect("data").await;
    first.open("a", 2, 0).await;
    let mut second = bench.talk(USUAL, false);
    let negotiate = second.client.negotiate();
    let answer = second.exchange(negotiate).await;
    let token = second.client.log_on(&answer, "devstore", KEY);
    let answer = second.exchange(token).await;
    let mut last = second.client.prove(&answer);
    // PreviousSessionId.
    last[4 + 64 + 16..4 + 64 + 24].copy_from_slice(&first.client.session_id.to_le_bytes());
    let answer = second.exchange(last).await;
    assert_eq!(Header::decode(&answer[4..]).unwrap().status, Status::SUCCESS);
    assert!(!first.conversation.is_in_use(), "its files are closed when the new one is told of its logon");
    first.conversation.end_rotated_sessions().await;
    assert!(!first.conversation.is_logged_on());
    assert_eq!(first.conversation.shared.connection().sessions().count(), 0);
}

/// Whoever can put a packet on the connection must not be able to end its sessions.
#[tokio::test]
async fn a_logon_of_a_session_is_signed() {
    let bench = bench(false).await;
    let mut talk = bench.talk(USUAL, false);
    talk.log_on("devstore", KEY).await;
    let mut frame = talk.client.log_on_again("devstore", OTHER_KEY);
    let flags = u32::from_le_bytes(frame[20..24].try_into().unwrap()) & !Flags::SIGNED.0;
    frame[20..24].copy_from_slice(&flags.to_le_bytes());
    let answer = talk.exchange(frame).await;
    assert_eq!(Header::decode(&answer[4..]).unwrap().status, Status::ACCESS_DENIED);
    assert_eq!(talk.ask(Command::Echo, body::empty()).await.status(), Status::SUCCESS);
    assert_eq!(bench.host.failed.load(Ordering::Relaxed), 0, "no key was tried");
}

#[tokio::test]
async fn a_refusal_that_is_held_back_stops_no_other_session() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    for _ in 0..2 * FAILED_LOGONS_BURST as usize {
        bench.server.throttle.failed(talk.conversation.shared.peer.ip(), None, std::time::Instant::now());
    }
    let mut stranger = Client::new(USUAL, false);
    stranger.next_id = talk.client.next_id;
    let frame = stranger.log_on_again("devstore", OTHER_KEY);
    let answer = talk.exchange(frame).await;
    let frame = stranger.prove(&answer);
    talk.send(&frame).await.unwrap();
    talk.client.next_id = stranger.next_id;
    assert_eq!(talk.ask(Command::Echo, body::empty()).await.status(), Status::SUCCESS);
    talk.conversation.end().await;
    let refusal = talk.outbox.next().await.unwrap().parts.concat();
    assert_eq!(Header::decode(&refusal[4..]).unwrap().status, Status::LOGON_FAILURE);
}

#[tokio::test]
async fn cancel_of_no_id_cancels_nothing() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let shared = Arc::clone(&talk.conversation.shared);
    let running = Arc::new(Running { cancelled: Notify::new(), async_id: AtomicU64::new(0) });
    lock(&shared.running).insert(1_000, Arc::clone(&running));
    let frame = talk.client.cancel(0, Some(0));
    talk.send(&frame).await.unwrap();
    let mut cancelled = Box::pin(running.cancelled.notified());
    assert!(poll_once(cancelled.as_mut()).await.is_none());
}
