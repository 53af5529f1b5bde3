//! A deep queue: putting, taking and deleting take as long at any depth, and nothing is given out twice.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::client::{Answer, Client};
use super::victim::{Victim, check, fresh_folder};
use super::{MEMORY_MAX, MIB, each, has_room, median, scale, timed};

const TURNS: u64 = 200;
/// The most that one request may take.
const TOGETHER: u64 = 32;
const BYTES_EACH: u64 = 1_500;

fn put(client: &Client, number: u64) -> Answer {
    // Padded, so that the text of a message is about as long as that of a small job.
    let text = format!("message {number:<240}");
    let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
    client.call("POST que/messages", &[], body).ok()
}

/// The numbers of the messages in an answer, and how to delete them.
fn taken(answer: &Answer) -> Vec<(u64, String)> {
    let list = answer.xml();
    let one = |message: &super::xml::Element| {
        let text = |name: &str| message.text_of(name).expect("an element");
        let number = text("MessageText")["message ".len()..].trim().parse().expect("a number");
        (number, format!("DELETE que/messages/{}?popreceipt={}", text("MessageId"), text("PopReceipt")))
    };
    list.children.iter().map(one).collect()
}

fn depth(client: &Client) -> u64 {
    let told = client.call("GET que?comp=metadata", &[], "").ok();
    told.header("x-ms-approximate-messages-count").expect("a count").parse().expect("a number")
}

/// How long it takes to put one, to take one and to delete it, with so many in the queue; the depth stays.
fn look(server: &Victim, next: &mut u64) {
    let client = Client::new(server.queue);
    let (mut puts, mut takes, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
    let before = depth(&client);
    for _ in 0..TURNS {
        puts.push(timed(|| put(&client, *next)).1);
        *next += 1;
        let (answer, took) = timed(|| client.call("GET que/messages?visibilitytimeout=3600", &[], "").ok());
        takes.push(took);
        let message = taken(&answer).remove(0);
        deletes.push(timed(|| client.call(&message.1, &[], "").ok()).1);
    }
    assert_eq!(depth(&client), before);
    let [put, take, delete]: [Duration; 3] = [puts, takes, deletes].map(median);
    println!("depth {before}: put {put:?}, take {take:?}, delete {delete:?}, memory {} MiB", server.memory() / MIB);
    assert!(server.memory() < MEMORY_MAX);
}

#[test]
fn a_deep_queue() {
    let folder = fresh_folder("scale-queue");
    let (shallow, deep) = (100, 10_000 * scale());
    if !has_room(&folder, deep * BYTES_EACH) {
        return;
    }
    let server = Victim::start(&folder);
    let client = || Client::new(server.queue);
    client().call("PUT que", &[], "").ok();
    // What `look` puts has numbers of its own.
    let mut next = deep;
    for numbers in [0..shallow, shallow..deep] {
        let began = Instant::now();
        let made = numbers.end - numbers.start;
        each(client, numbers, |client, number| drop(put(client, number)));
        println!("{made} messages put in {:?}", began.elapsed());
        look(&server, &mut next);
    }
    server.kill();
    let (server, took) = timed(|| Victim::start(&folder));
    println!("opened after a kill in {took:?}");
    look(&server, &mut next);
    // Half of them go, by many at once.
    let seen = Mutex::new(BTreeSet::new());
    let began = Instant::now();
    let client = || Client::new(server.queue);
    each(client, 0..deep / 2 / TOGETHER, |client, _| {
        let line = format!("GET que/messages?numofmessages={TOGETHER}&visibilitytimeout=3600");
        for (number, delete) in taken(&client.call(&line, &[], "").ok()) {
            assert!(seen.lock().expect("nobody panicked").insert(number), "{number} was given out twice");
            client.call(&delete, &[], "").ok();
        }
    });
    let gone = deep / 2 / TOGETHER * TOGETHER;
    println!("{gone} messages taken and deleted in {:?}", began.elapsed());
    assert_eq!(seen.into_inner().expect("nobody panicked").len() as u64, gone);
    assert_eq!(depth(&client()), deep - gone);
    look(&server, &mut next);
    client().call("DELETE que/messages", &[], "").ok();
    assert_eq!(depth(&client()), 0);
    server.kill();
    check(&folder);
    std::fs::remove_dir_all(&folder).expect("removed");
}
