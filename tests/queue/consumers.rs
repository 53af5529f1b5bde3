//! Many consumers on one queue, while some of them die and the server is killed.
//!
//! Every message is processed at least once. None is given to two at a time, none that was acknowledged is lost, and none
//! comes back after its deletion was acknowledged. `LAZURITE_QUEUE_MESSAGES` says how many messages (`cargo xtask
//! consumers`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Answer, Client, Server, Service};
use crate::stage::{Message, body, messages};

const CONSUMERS: usize = 32;
const PRODUCERS: usize = 4;
const MESSAGES_DEFAULT: usize = 2_000;
/// How long a message is hidden from the others: consumers that die hold theirs up for so long.
const HIDDEN: Duration = Duration::from_secs(3);
/// Clocks are read before and after; what is closer than this proves nothing.
const DOUBT: Duration = Duration::from_millis(50);

/// One message given to one consumer: asked at, answered at.
#[derive(Clone, Debug)]
struct Given {
    asked: Instant,
    answered: Instant,
    dequeued: u64,
}

#[derive(Default)]
struct Ledger {
    /// By message id, in any order.
    given: BTreeMap<String, Vec<Given>>,
    /// When the deletion was acknowledged.
    deleted: BTreeMap<String, Instant>,
    processed: BTreeSet<String>,
}

struct Play {
    ledger: Mutex<Ledger>,
    /// All that producers had acknowledged.
    put: Mutex<BTreeSet<String>>,
    produced: AtomicBool,
    done: AtomicBool,
    deaths: AtomicUsize,
    lost_answers: AtomicUsize,
}

#[test]
fn nothing_is_lost_and_nobody_shares() {
    let wanted = std::env::var("LAZURITE_QUEUE_MESSAGES").ok().map(|text| text.parse().expect("a number"));
    let wanted: usize = wanted.unwrap_or(MESSAGES_DEFAULT);
    let mut server = Server::serving(Service::Queue);
    server.client().call("PUT que", &[], "").ok();
    let play = Play {
        ledger: Mutex::default(),
        put: Mutex::default(),
        produced: AtomicBool::new(false),
        done: AtomicBool::new(false),
        deaths: AtomicUsize::new(0),
        lost_answers: AtomicUsize::new(0),
    };
    let next = AtomicUsize::new(0);
    let mut kills = 0;
    thread::scope(|scope| {
        let play = &play;
        let next = &next;
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|_| {
                let client = server.client();
                scope.spawn(move || produce(&client, play, next, wanted))
            })
            .collect();
        let consumers: Vec<_> = (0..CONSUMERS)
            .map(|number| {
                let client = server.client();
                scope.spawn(move || consume(&client, play, number as u64))
            })
            .collect();
        // Kill while there is work, a few times at least however fast it goes.
        let limit = 4 + wanted / 5_000;
        while kills < limit && !consumers.iter().any(|consumer| consumer.is_finished()) {
            thread::sleep(Duration::from_millis(400 + 150 * (kills as u64 % 4)));
            server.kill_and_restart();
            kills += 1;
        }
        for producer in producers {
            producer.join().expect("a producer");
        }
        play.produced.store(true, Ordering::Release);
        let failed = consumers.into_iter().filter_map(|consumer| consumer.join().err()).count();
        assert_eq!(failed, 0, "consumers failed");
    });
    let told = server.client().call("GET que?comp=metadata", &[], "").ok();
    assert_eq!(told.header("x-ms-approximate-messages-count"), Some("0"));
    judge(&play, wanted);
    let (deaths, lost) = (play.deaths.into_inner(), play.lost_answers.into_inner());
    println!("{wanted} messages, {kills} kills of the server, {deaths} deaths of consumers, {lost} answers lost");
    assert!(deaths > 0 && kills > 0 && lost > 0, "nothing went wrong, so nothing was shown");
}

/// Asks until there is an answer. Errors in between are requests whose outcome nobody knows.
fn insist(client: &Client, play: &Play, line: &str, body: &str) -> (Answer, Instant) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let asked = Instant::now();
        match client.try_call(line, &[], body) {
            // A server that is going down may still refuse.
            Ok(answer) if answer.status < 500 => return (answer, asked),
            Ok(_) | Err(_) => {
                play.lost_answers.fetch_add(1, Ordering::Relaxed);
                assert!(Instant::now() < deadline, "the server did not come back");
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

fn produce(client: &Client, play: &Play, next: &AtomicUsize, wanted: usize) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= wanted {
            return;
        }
        let text = format!("message {number}");
        let (answer, _) = insist(client, play, "POST que/messages", &body(&text));
        assert_eq!(answer.said(), "201");
        play.put.lock().expect("nobody panicked").insert(text);
    }
}

fn consume(client: &Client, play: &Play, seed: u64) {
    let mut state = seed;
    let mut chance = |one_in: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33).is_multiple_of(one_in)
    };
    let line = format!("GET que/messages?numofmessages=8&visibilitytimeout={}", HIDDEN.as_secs());
    while !play.done.load(Ordering::Acquire) {
        let (answer, asked) = insist(client, play, &line, "");
        let answered = Instant::now();
        let taken = messages(answer);
        note(play, &taken, asked, answered);
        if taken.is_empty() {
            rest(client, play);
            continue;
        }
        if chance(25) {
            // This consumer dies with what it has. Another takes its place.
            play.deaths.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        for message in &taken {
            process(client, play, message);
        }
    }
}

fn note(play: &Play, taken: &[Message], asked: Instant, answered: Instant) {
    let mut ledger = play.ledger.lock().expect("nobody panicked");
    for message in taken {
        let dequeued = message.dequeued.expect("a count");
        ledger.given.entry(message.id.clone()).or_default().push(Given { asked, answered, dequeued });
    }
}

fn process(client: &Client, play: &Play, message: &Message) {
    let text = message.text.clone().expect("a text");
    play.ledger.lock().expect("nobody panicked").processed.insert(text);
    let (answer, _) = insist(client, play, &format!("DELETE {}", message.url()), "");
    match answer.said().as_str() {
        "204" => {
            let mut ledger = play.ledger.lock().expect("nobody panicked");
            let twice = ledger.deleted.insert(message.id.clone(), Instant::now());
            assert!(twice.is_none(), "{} was deleted twice", message.id);
        }
        // Deleted by a request whose answer was lost, or taken by another since.
        "404 MessageNotFound" => {}
        other => panic!("{other}"),
    }
}

/// There is nothing to take. When there is nothing at all, it is over.
fn rest(client: &Client, play: &Play) {
    if play.produced.load(Ordering::Acquire) {
        let (told, _) = insist(client, play, "GET que?comp=metadata", "");
        if told.header("x-ms-approximate-messages-count") == Some("0") {
            play.done.store(true, Ordering::Release);
        }
    }
    thread::sleep(Duration::from_millis(20));
}

fn judge(play: &Play, wanted: usize) {
    let ledger = play.ledger.lock().expect("nobody panicked");
    let put = play.put.lock().expect("nobody panicked");
    assert_eq!(put.len(), wanted);
    let lost: Vec<&String> = put.difference(&ledger.processed).collect();
    assert!(lost.is_empty(), "{} messages were acknowledged and never processed: {:?}", lost.len(), lost.first());
    for (id, given) in &ledger.given {
        let mut given = given.clone();
        given.sort_by_key(|one| one.dequeued);
        for pair in given.windows(2) {
            let [first, second] = pair else { continue };
            // It was hidden for certain from the first answer on, until so long after the first question.
            let is_within = second.asked > first.answered && second.answered + DOUBT < first.asked + HIDDEN;
            assert!(!is_within, "{id} was given to two at a time: {first:?}, {second:?}");
            assert!(first.dequeued < second.dequeued, "{id} was given out twice with one count");
        }
        if let Some(deleted) = ledger.deleted.get(id) {
            let late = given.iter().find(|one| one.asked > *deleted);
            assert!(late.is_none(), "{id} came back after it was deleted: {late:?}");
        }
    }
}
