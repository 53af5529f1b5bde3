//! Many entities in one table: finding one, or a page of neighbours, takes as long among millions as among thousands.

use std::time::{Duration, Instant};

use super::client::{Answer, Client};
use super::load::{TRANSACTION, done, transaction};
use super::victim::{Victim, check, fresh_folder};
use super::{MEMORY_MAX, MIB, POINT_READS, disk_used, each, has_room, median, name, scale, timed};

const VERSION: (&str, &str) = ("x-ms-version", "2019-02-02");
const JSON: (&str, &str) = ("accept", "application/json;odata=minimalmetadata");
/// So many entities come with one request.
const TOGETHER: u64 = 100;
const PER_PARTITION: u64 = 1_000;
/// A page of neighbours: half a partition.
const PAGE: u64 = 500;
const PAGES: u64 = 100;
/// What an entity takes on the disk, at most, while the tree is being tidied up.
const BYTES_EACH: u64 = 700;

/// Partition and row of an entity. Partitions do not come in the order in which they are written.
fn key(number: u64) -> (String, String) {
    (name(number / PER_PARTITION), format!("{:04}", number % PER_PARTITION))
}

fn text(number: u64) -> String {
    format!("some text of an entity, about fifty bytes {number:08}")
}

/// Inserts a hundred neighbours by one transaction.
fn insert(client: &Client, first: u64) {
    let operations = (first..first + TOGETHER).map(|number| {
        let (partition, row) = key(number);
        let json = format!(
            "{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"number\":{number},\"text\":\"{}\",\
             \"half\":{:.1},\"even\":{}}}",
            text(number),
            number as f64 / 2.0,
            number.is_multiple_of(2),
        );
        ("POST /devstoreaccount1/many".to_owned(), json)
    });
    let answer = client.call("POST $batch", &[VERSION, TRANSACTION], transaction(operations)).ok();
    assert_eq!(done(&answer), TOGETHER, "{}", String::from_utf8_lossy(&answer.body));
}

fn get(client: &Client, target: &str) -> Answer {
    client.call(&format!("GET {target}"), &[VERSION, JSON], "").ok()
}

/// How long point reads and pages take, and what the process holds then.
fn look(server: &Victim, count: u64) {
    let client = Client::of_tables(server.table);
    let reads: Vec<Duration> = (0..POINT_READS)
        .map(|turn| {
            let number = turn * 7_919 % count;
            let (partition, row) = key(number);
            let target = format!("many(PartitionKey='{partition}',RowKey='{row}')");
            let (found, took) = timed(|| get(&client, &target));
            let found = found.json();
            assert_eq!((found["number"].as_u64(), found["text"].as_str()), (Some(number), Some(&*text(number))));
            took
        })
        .collect();
    let partitions = count / PER_PARTITION;
    let pages: Vec<Duration> = (0..PAGES)
        .map(|turn| {
            let first = turn * 7_919 % partitions * PER_PARTITION + turn % PAGE;
            let ((partition, from), (_, to)) = (key(first), key(first + PAGE));
            let filter = format!("PartitionKey eq '{partition}' and RowKey ge '{from}' and RowKey lt '{to}'");
            let target = format!("many()?$filter={}", filter.replace(' ', "%20"));
            let (page, took) = timed(|| get(&client, &target));
            let page = page.json();
            let shown = page["value"].as_array().expect("a list");
            assert_eq!(shown.len() as u64, PAGE);
            assert_eq!(shown[0]["number"].as_u64(), Some(first));
            assert_eq!(shown[shown.len() - 1]["number"].as_u64(), Some(first + PAGE - 1));
            took
        })
        .collect();
    println!(
        "{count} entities: point read {:?}, page of {PAGE} neighbours {:?}, memory {} MiB",
        median(reads),
        median(pages),
        server.memory() / MIB,
    );
    assert!(server.memory() < MEMORY_MAX);
}

/// Goes through the whole table, page by page: everything is there once, in its order.
fn count(server: &Victim) -> u64 {
    let client = Client::of_tables(server.table);
    let (mut seen, mut next, mut last) = (0, String::new(), String::new());
    loop {
        let page = get(&client, &format!("many()?$select=PartitionKey,RowKey{next}"));
        for entity in page.json()["value"].as_array().expect("a list") {
            let key = format!("{}{}", entity["PartitionKey"], entity["RowKey"]);
            assert!(last < key, "{key} comes after {last}");
            (seen, last) = (seen + 1, key);
        }
        let token = |name: &str| page.header(name).map(|token| wire::percent::encode_value(token).into_owned());
        let Some(partition) = token("x-ms-continuation-nextpartitionkey") else { return seen };
        let row = token("x-ms-continuation-nextrowkey").expect("both");
        next = format!("&NextPartitionKey={partition}&NextRowKey={row}");
    }
}

#[test]
fn many_entities() {
    let folder = fresh_folder("scale-entities");
    let (few, many) = (10_000, 100_000 * scale());
    if !has_room(&folder, many * BYTES_EACH) {
        return;
    }
    let server = Victim::start(&folder);
    let client = || Client::of_tables(server.table);
    client().call("POST Tables", &[VERSION, ("content-type", "application/json")], r#"{"TableName":"many"}"#).ok();
    for numbers in [0..few, few..many] {
        let began = Instant::now();
        let (made, total) = (numbers.end - numbers.start, numbers.end);
        let batches = numbers.start / TOGETHER..numbers.end / TOGETHER;
        each(client, batches, |client, batch| insert(client, batch * TOGETHER));
        println!("{made} entities in {:?}, disk {} MiB", began.elapsed(), disk_used(&folder) / MIB);
        look(&server, total);
    }
    server.kill();
    let (server, took) = timed(|| Victim::start(&folder));
    println!("opened after a kill in {took:?}");
    look(&server, many);
    let (seen, took) = timed(|| count(&server));
    println!("all of them seen in {took:?}, memory {} MiB", server.memory() / MIB);
    assert_eq!(seen, many);
    assert!(server.memory() < MEMORY_MAX);
    server.kill();
    check(&folder);
    std::fs::remove_dir_all(&folder).expect("removed");
}
