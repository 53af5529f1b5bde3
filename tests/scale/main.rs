//! Much of everything: what grows with the data and what must not.
//!
//! `LAZURITE_SCALE` is a factor: 1 (10,000 blobs, 256 MiB of uploads, 100,000 entities, 10,000 messages, 10,000 files) runs with
//! the other tests, `cargo xtask scale` runs the same with 100 (1,000,000 blobs, 25 GiB, 10,000,000 entities, 1,000,000 messages,
//! 1,000,000 files in one directory and in a share with snapshots).
//! What is measured is printed; what is asserted does not depend on the speed of the machine.

#[path = "../harness/client.rs"]
#[allow(dead_code)]
mod client;
mod file_figures;
mod files;
#[path = "../harness/load.rs"]
mod load;
mod queues;
mod snapshots;
mod tables;
#[path = "../crash/victim.rs"]
#[allow(dead_code)]
mod victim;
#[path = "../harness/xml.rs"]
#[allow(dead_code)]
mod xml;

use std::time::{Duration, Instant};

use client::Client;
use load::{MIB, disk_used, each, has_room, name};
use victim::{Victim, fresh_folder};

const PAGE: u64 = 5_000;
const POINT_READS: u64 = 2_000;
/// Caches and memtables have budgets; a process that goes beyond this holds data.
const MEMORY_MAX: u64 = 768 * MIB;

fn scale() -> u64 {
    std::env::var("LAZURITE_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// How long it takes to do something, each time.
fn timed<T>(mut work: impl FnMut() -> T) -> (T, Duration) {
    let began = Instant::now();
    (work(), began.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// How long list pages and point reads take, and what the process holds then.
fn look(server: &Victim, count: u64) {
    let client = Client::new(server.blob);
    let (mut listed, mut marker, mut pages) = (0, String::new(), Vec::new());
    loop {
        let line = format!("GET many?restype=container&comp=list&maxresults={PAGE}&marker={marker}");
        let began = Instant::now();
        let page = client.call(&line, &[], "").ok();
        pages.push(began.elapsed());
        let text = String::from_utf8(page.body).expect("XML");
        listed += text.matches("<Blob>").count() as u64;
        let next = text.split("<NextMarker>").nth(1).and_then(|rest| rest.split("</NextMarker>").next());
        marker = next.unwrap_or_default().replace('=', "%3D").replace('+', "%2B").replace('/', "%2F");
        if marker.is_empty() {
            break;
        }
    }
    assert_eq!(listed, count);
    let reads = (0..POINT_READS).map(|number| {
        let number = number * 7_919 % count;
        let began = Instant::now();
        let found = client.call(&format!("GET many/{}", name(number)), &[], "").ok();
        let took = began.elapsed();
        assert_eq!(found.body, number.to_string().into_bytes());
        took
    });
    let reads: Vec<Duration> = reads.collect();
    println!(
        "{count} blobs: list page of {PAGE} {:?} (median of {}), point read {:?}, memory {} MiB",
        median(pages.clone()),
        pages.len(),
        median(reads),
        server.memory() / MIB,
    );
    assert!(server.memory() < MEMORY_MAX);
}

#[test]
fn many_blobs() {
    let folder = fresh_folder("scale-many");
    let (few, many) = (1_000 * scale().min(10), 10_000 * scale());
    let server = Victim::start(&folder);
    Client::new(server.blob).call("PUT many?restype=container", &[], "").ok();
    for numbers in [0..few, few..many] {
        let began = Instant::now();
        let (made, count) = (numbers.end - numbers.start, numbers.end);
        each(
            || Client::new(server.blob),
            numbers,
            |client, number| {
                let headers = [("x-ms-blob-type", "BlockBlob")];
                client.call(&format!("PUT many/{}", name(number)), &headers, number.to_string()).ok();
            },
        );
        println!("{made} blobs put in {:?}", began.elapsed());
        look(&server, count);
    }
    drop(server);
    let began = Instant::now();
    let server = Victim::start(&folder);
    println!("opened after a kill in {:?}", began.elapsed());
    look(&server, many);
    drop(server);
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// A copy refers to the bytes of its source: it takes no time and no space, and stays when the source goes.
#[test]
fn a_copy_of_a_large_blob_is_instant_and_safe() {
    const BLOCK: u64 = 4 * MIB;
    let folder = fresh_folder("scale-copy");
    let bytes = 100 * MIB * scale();
    if !has_room(&folder, bytes) {
        return;
    }
    let server = Victim::start(&folder);
    let client = Client::new(server.blob);
    client.call("PUT cont?restype=container", &[], "").ok();
    upload_in_blocks(&client, "cont/source", bytes, BLOCK);
    let full = disk_used(&folder);
    let source = client.url("cont/source");
    let began = Instant::now();
    let copied = client.call("PUT cont/copy", &[("x-ms-copy-source", &source)], "").ok();
    println!("{} MiB copied in {:?}, memory {} MiB", bytes / MIB, began.elapsed(), server.memory() / MIB);
    assert_eq!(copied.header("x-ms-copy-status"), Some("success"));
    let grown = disk_used(&folder).saturating_sub(full);
    assert!(grown < bytes / 4, "a copy took {} MiB", grown / MIB);
    // The source goes. Something else comes, so that the server has a reason to tidy up, and is killed in the middle.
    client.call("DELETE cont/source", &[], "").ok();
    upload_in_blocks(&client, "cont/other", bytes / 10, BLOCK);
    client.call("DELETE cont/other", &[], "").ok();
    std::thread::sleep(Duration::from_secs(3));
    server.kill();
    let server = Victim::start(&folder);
    let client = Client::new(server.blob);
    assert_eq!(client.call("HEAD cont/source", &[], "").status, 404);
    let told = client.call("HEAD cont/copy", &[], "").ok();
    assert_eq!(told.header("content-length"), Some(bytes.to_string().as_str()));
    let blocks = bytes / BLOCK;
    for block in (0..50).map(|number| number * 7_919 % blocks).chain([0, blocks - 1]) {
        // A part that goes over the border of two blocks, where there is one.
        let (first, end) = ((block * BLOCK).saturating_sub(1_000), block * BLOCK + 1_000);
        let range = format!("bytes={first}-{}", end - 1);
        let read = client.call("GET cont/copy", &[("x-ms-range", &range)], "").ok();
        let expected: Vec<u8> = (first..end).map(|at| (at / BLOCK) as u8).collect();
        assert!(read.body == expected, "{range}");
    }
    server.kill();
    victim::check(&folder);
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// A hundred clients upload in blocks at once; then everything is deleted and the space comes back.
#[test]
fn many_uploads_and_their_space() {
    const UPLOADS: u64 = 100;
    const BLOCK: u64 = 4 * MIB;
    let folder = fresh_folder("scale-uploads");
    let bytes = 256 * MIB * scale() / 100;
    if !has_room(&folder, UPLOADS * bytes) {
        return;
    }
    let server = Victim::start(&folder);
    Client::new(server.blob).call("PUT cont?restype=container", &[], "").ok();
    let empty = disk_used(&folder);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for upload in 0..UPLOADS {
            let address = server.blob;
            scope.spawn(move || upload_in_blocks(&Client::new(address), &format!("cont/{upload}"), bytes, BLOCK));
        }
    });
    let (took, memory) = (began.elapsed(), server.memory());
    let full = disk_used(&folder);
    println!(
        "{UPLOADS} uploads of {} MiB at once: {:.0} MiB/s, memory {} MiB, disk {} MiB",
        bytes / MIB,
        (UPLOADS * bytes / MIB) as f64 / took.as_secs_f64(),
        memory / MIB,
        full / MIB,
    );
    assert!(memory < MEMORY_MAX);
    let client = Client::new(server.blob);
    for upload in 0..UPLOADS {
        client.call(&format!("DELETE cont/{upload}"), &[], "").ok();
    }
    let began = Instant::now();
    let patience = Duration::from_secs(300);
    // A segment that is being written to is not given back. It is at most 256 MiB, and there are a few of them.
    let may_stay = ((full - empty) / 4).min(1024 * MIB);
    let left = |used: u64| used - empty.min(used);
    while left(disk_used(&folder)) > may_stay && began.elapsed() < patience {
        std::thread::sleep(Duration::from_millis(200));
    }
    let used = disk_used(&folder);
    println!("deleted: disk {} MiB after {:?}", used / MIB, began.elapsed());
    assert!(left(used) <= may_stay, "{used} of {full} bytes are still on the disk");
    drop(server);
    victim::check(&folder);
    std::fs::remove_dir_all(&folder).expect("removed");
}

fn upload_in_blocks(client: &Client, blob: &str, bytes: u64, block: u64) {
    let mut list = String::from("<BlockList>");
    let mut left = bytes;
    let mut number = 0u32;
    while left > 0 {
        let length = left.min(block);
        let content = vec![number as u8; length as usize];
        let id = format!("{number:08}");
        client.call(&format!("PUT {blob}?comp=block&blockid={id}"), &[], content).ok();
        list += &format!("<Latest>{id}</Latest>");
        (left, number) = (left - length, number + 1);
    }
    client.call(&format!("PUT {blob}?comp=blocklist"), &[], list + "</BlockList>").ok();
}
