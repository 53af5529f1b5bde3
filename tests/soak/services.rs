//! All services at once, while the server is stopped and killed: every acknowledged write must be there afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::client::Client;
use super::ledger::{self, Ledger, ask};
use super::load::{TRANSACTION, done, transaction};
use super::victim::{Victim, check, fresh_folder};
use super::{JSON, TABLES_VERSION, length};

const BLOB_WRITERS: u64 = 4;
const TABLE_WRITERS: u64 = 3;
const QUEUE_WRITERS: u64 = 3;
/// Entities of one transaction: all of them have the same turn, or the transaction was torn.
const TOGETHER: u64 = 20;
/// How long a server lives: by turns, so that it dies in different states.
const LIVES: [Duration; 5] = [
    Duration::from_millis(700),
    Duration::from_secs(4),
    Duration::from_millis(1_500),
    Duration::from_secs(9),
    Duration::from_secs(2),
];
/// However short the run: two kills and an orderly stop.
const LIVES_MIN: usize = 3;
/// The folder is checked after every so many lives, and at the end.
const LIVES_PER_CHECK: usize = 4;

/// What the only writer of a partition was told.
#[derive(Clone, Copy, Default, Debug)]
struct Turns {
    acknowledged: u64,
    asked: u64,
}

/// The messages of the queue, by their text.
#[derive(Default)]
struct Messages {
    /// The put was acknowledged, and no delete was asked for.
    there: BTreeSet<String>,
    /// A put or a delete was not answered: they may be there or not.
    unknown: BTreeSet<String>,
    /// A delete was asked for: perhaps before the put of the message was answered.
    taken: BTreeSet<String>,
    /// When the delete was acknowledged: nobody who asks later may be given them.
    gone: BTreeMap<String, Instant>,
}

#[derive(Clone, Default)]
struct Books {
    blobs: Ledger,
    entities: Arc<Mutex<BTreeMap<u64, Turns>>>,
    messages: Arc<Mutex<Messages>>,
}

fn open<T>(book: &Mutex<T>) -> MutexGuard<'_, T> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn every_acknowledged_write_survives_stops_and_kills() {
    let folder = fresh_folder("soak-services");
    let (books, began) = (Books::default(), Instant::now());
    let mut start = 1;
    for life in 0.. {
        let server = Victim::start(&folder);
        make(&server);
        verify(&server, &books);
        if began.elapsed() > length() / 2 && life >= LIVES_MIN {
            let messages = open(&books.messages);
            println!(
                "{life} lives: {} blobs, {} turns of transactions, {} messages put and deleted",
                open(&books.blobs).len(),
                open(&books.entities).values().map(|turns| turns.acknowledged).sum::<u64>(),
                messages.gone.len(),
            );
            assert!(!messages.gone.is_empty(), "hardly anything was done");
            break;
        }
        live(server, &books, &mut start, LIVES[life % LIVES.len()], life % 3 == 2);
        if life % LIVES_PER_CHECK == LIVES_PER_CHECK - 1 {
            check(&folder);
        }
    }
    check(&folder);
    std::fs::remove_dir_all(&folder).expect("removed");
}

fn make(server: &Victim) {
    for (address, line, body) in [(server.blob, "PUT crash?restype=container", ""), (server.queue, "PUT soak", "")] {
        let made = Client::new(address).call(line, &[], body);
        assert!(matches!(made.status, 201 | 204 | 409), "{}", made.said());
    }
    let tables = Client::of_tables(server.table);
    let made = tables.call("POST Tables", &[TABLES_VERSION, JSON], "{\"TableName\":\"soak\"}");
    assert!(matches!(made.status, 201 | 409), "{}", made.said());
}

/// One life: writers of every service, and the end in the middle of it.
fn live(server: Victim, books: &Books, start: &mut u64, life: Duration, is_orderly: bool) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for number in 0..BLOB_WRITERS {
        let (address, books, stop, start) = (server.blob, books.clone(), Arc::clone(&stop), *start);
        writers.push(std::thread::spawn(move || ledger::writer(number, address, start, &books.blobs, &stop)));
    }
    for number in 0..TABLE_WRITERS {
        let (address, books, stop) = (server.table, books.clone(), Arc::clone(&stop));
        writers.push(std::thread::spawn(move || write_entities(number, address, &books, &stop)));
    }
    for number in 0..QUEUE_WRITERS {
        let (address, books, stop) = (server.queue, books.clone(), Arc::clone(&stop));
        writers.push(std::thread::spawn(move || write_messages(number, address, &books, &stop)));
    }
    std::thread::sleep(life);
    if is_orderly {
        server.stop();
    } else {
        server.kill();
    }
    // Not before: an answer that came counts, and the writers notice that the server is gone.
    for writer in writers {
        writer.join().expect("a writer saw what it must not");
    }
    *start = ledger::newest(&books.blobs).max(*start) + 1;
}

/// Replaces all entities of a partition by one transaction, turn by turn.
fn write_entities(partition: u64, address: SocketAddr, books: &Books, stop: &AtomicBool) {
    let client = Client::of_tables(address);
    while !stop.load(Ordering::Acquire) {
        let turn = {
            let mut book = open(&books.entities);
            let turns = book.entry(partition).or_default();
            turns.asked = turns.asked.max(turns.acknowledged) + 1;
            turns.asked
        };
        let operations = (0..TOGETHER).map(|row| {
            let line = format!("PUT /devstoreaccount1/soak(PartitionKey='{partition}',RowKey='{row}')");
            (line, format!("{{\"turn\":{turn},\"text\":\"{}\"}}", "x".repeat(1_000)))
        });
        let body = transaction(operations);
        let Some(answer) = ask(&client, "POST $batch", &[TABLES_VERSION, TRANSACTION], body) else { return };
        assert_eq!(done(&answer), TOGETHER, "{}", answer.said());
        open(&books.entities).entry(partition).or_default().acknowledged = turn;
    }
}

/// Puts messages, takes some and deletes them.
fn write_messages(writer: u64, address: SocketAddr, books: &Books, stop: &AtomicBool) {
    let client = Client::new(address);
    let life = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    for number in 0_u64.. {
        if stop.load(Ordering::Acquire) {
            return;
        }
        let text = format!("{writer}-{life}-{number}");
        open(&books.messages).unknown.insert(text.clone());
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        let Some(answer) = ask(&client, "POST soak/messages", &[], body) else { return };
        answer.ok();
        let mut book = open(&books.messages);
        // Another client may have taken it before its put was answered.
        if !book.taken.contains(&text) {
            book.unknown.remove(&text);
            book.there.insert(text);
        }
        drop(book);
        if number % 2 == 1 && !take_and_delete(&client, books) {
            return;
        }
    }
}

/// Takes messages for a moment and deletes them. `false`: the server is gone.
fn take_and_delete(client: &Client, books: &Books) -> bool {
    let line = "GET soak/messages?numofmessages=3&visibilitytimeout=1";
    let asked = Instant::now();
    let Some(answer) = ask(client, line, &[], "") else { return false };
    for message in &answer.ok().xml().children {
        let part = |name: &str| message.text_of(name).expect("an element");
        let (text, receipt) = (part("MessageText"), part("PopReceipt").replace('+', "%2B").replace('=', "%3D"));
        let mut book = open(&books.messages);
        assert!(book.gone.get(&text).is_none_or(|gone| *gone > asked), "{text} came back after its delete");
        book.there.remove(&text);
        book.unknown.insert(text.clone());
        book.taken.insert(text.clone());
        drop(book);
        let line = format!("DELETE soak/messages/{}?popreceipt={receipt}", part("MessageId"));
        let Some(deleted) = ask(client, &line, &[], "") else { return false };
        match deleted.status {
            204 => {
                let mut book = open(&books.messages);
                book.unknown.remove(&text);
                book.gone.insert(text, Instant::now());
            }
            // Somebody else has it by now, or has deleted it.
            400 | 404 => {}
            _ => panic!("{}", deleted.said()),
        }
    }
    true
}

/// Holds what the server has against the books.
fn verify(server: &Victim, books: &Books) {
    ledger::verify(&Client::new(server.blob), &books.blobs);
    let tables = Client::of_tables(server.table);
    for (partition, turns) in open(&books.entities).iter_mut() {
        let target = format!("GET soak()?$filter=PartitionKey%20eq%20'{partition}'");
        let found =
            tables.call(&target, &[TABLES_VERSION, ("accept", "application/json;odata=nometadata")], "").ok().json();
        let found: BTreeSet<u64> = found["value"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["turn"].as_u64().expect("a turn"))
            .collect();
        let found: Vec<u64> = found.into_iter().collect();
        let is_right = match found[..] {
            [] => turns.acknowledged == 0,
            [turn] => turn >= turns.acknowledged && turn <= turns.asked,
            _ => false,
        };
        assert!(is_right, "partition {partition}: found turns {found:?}, but {turns:?}");
        turns.acknowledged = found.first().copied().unwrap_or(0);
    }
    verify_messages(&Client::new(server.queue), books);
}

/// Takes everything out of the queue, which forgets nothing that was put and brings nothing back that was deleted.
fn verify_messages(client: &Client, books: &Books) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(take_and_delete(client, books), "the server is gone");
        let left = open(&books.messages).there.len();
        if left == 0 {
            return;
        }
        assert!(Instant::now() < deadline, "{left} acknowledged messages are not there");
        let told = client.call("GET soak?comp=metadata", &[], "").ok();
        if told.header("x-ms-approximate-messages-count") == Some("0") {
            let book = open(&books.messages);
            assert!(book.there.is_empty(), "acknowledged messages are gone: {:?}", book.there);
        }
    }
}
