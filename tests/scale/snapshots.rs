//! A share of many files and its snapshots: taking one costs the same however much the share holds, and dropping one stops nobody.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::client::Client;
use super::victim::{Victim, check, fresh_folder};
use super::{MIB, disk_used, each, has_room, median, name, scale, timed};

/// Files in each directory.
const DIRECTORY_FILES: u64 = 10_000;
/// What a file that has bytes holds. A commit carries so many with it.
const FILE_BYTES: usize = 16 * 1024;
/// Each so manieth file has bytes, and is changed after the snapshot was taken.
const CHANGED_EVERY: u64 = 10;
/// What an empty file takes on the disk, at most, while the tree is being tidied up.
const EMPTY_FILE_BYTES: u64 = 2_000;
/// How long the space of a dropped snapshot may take to return. Only a server that does not give it back gets so far.
const RETURNED_WITHIN: Duration = Duration::from_secs(1_800);

fn path(number: u64) -> String {
    format!("many/{}/{}", number / DIRECTORY_FILES, name(number))
}

fn write(client: &Client, number: u64, byte: u8) {
    let range = format!("bytes=0-{}", FILE_BYTES - 1);
    let headers = [("x-ms-write", "update"), ("x-ms-range", &*range)];
    client.call(&format!("PUT {}?comp=range", path(number)), &headers, vec![byte; FILE_BYTES]).ok();
}

fn make(server: &Victim, numbers: std::ops::Range<u64>) {
    let client = Client::new(server.file);
    for directory in numbers.start.div_ceil(DIRECTORY_FILES)..numbers.end.div_ceil(DIRECTORY_FILES) {
        client.call(&format!("PUT many/{directory}?restype=directory"), &[], "").ok();
    }
    each(
        || Client::new(server.file),
        numbers,
        |client, number| {
            let length = if number.is_multiple_of(CHANGED_EVERY) { FILE_BYTES } else { 0 };
            let headers = [("x-ms-type", "file"), ("x-ms-content-length", &*length.to_string())];
            client.call(&format!("PUT {}", path(number)), &headers, "").ok();
            if length > 0 {
                write(client, number, 1);
            }
        },
    );
}

/// Takes a snapshot, and says its name.
fn take(client: &Client, among: u64) -> String {
    let (taken, took) = timed(|| client.call("PUT many?restype=share&comp=snapshot", &[], "").ok());
    println!("a snapshot of {among} files in {took:?}");
    taken.header("x-ms-snapshot").expect("the name of the snapshot").to_owned()
}

fn assert_reads(client: &Client, number: u64, snapshot: &str, byte: u8) {
    let suffix = if snapshot.is_empty() { String::new() } else { format!("?sharesnapshot={snapshot}") };
    let read = client.call(&format!("GET {}{suffix}", path(number)), &[], "").ok();
    assert!(read.body == [byte; FILE_BYTES], "file {number} in {snapshot:?}");
}

/// Reads and writes until told to stop. The longest that anything took, and how often something was asked for.
fn go_on(server: &Victim, is_over: &AtomicBool) -> (Duration, u64) {
    let client = Client::new(server.file);
    let (mut longest, mut count) = (Duration::ZERO, 0);
    while !is_over.load(Ordering::Acquire) {
        let number = count * CHANGED_EVERY % (DIRECTORY_FILES * scale());
        let (_, wrote) = timed(|| write(&client, number, 3));
        let (_, read) = timed(|| assert_reads(&client, number, "", 3));
        (longest, count) = (longest.max(wrote).max(read), count + 1);
    }
    (longest, count)
}

#[test]
fn snapshots_of_many_files() {
    let folder = fresh_folder("scale-snapshots");
    let (few, many) = (DIRECTORY_FILES / 10, DIRECTORY_FILES * scale());
    if !has_room(&folder, many * EMPTY_FILE_BYTES + 4 * many / CHANGED_EVERY * FILE_BYTES as u64) {
        return;
    }
    let server = Victim::start(&folder);
    let client = Client::new(server.file);
    client.call("PUT many?restype=share", &[], "").ok();
    make(&server, 0..few);
    let first = take(&client, few);
    client.call(&format!("DELETE many?restype=share&sharesnapshot={first}"), &[], "").ok();
    make(&server, few..many);
    // A connection that was silent for so long has been closed.
    let client = Client::new(server.file);
    let before = disk_used(&folder);
    let snapshot = take(&client, many);
    let changed = || (0..many).step_by(CHANGED_EVERY as usize);

    let (_, took) = timed(|| {
        each(
            || Client::new(server.file),
            0..many / CHANGED_EVERY,
            |client, number| {
                write(client, number * CHANGED_EVERY, 2);
            },
        );
    });
    let (full, client) = (disk_used(&folder), Client::new(server.file));
    println!("{} files changed in {took:?}, disk {} MiB, {} before", many / CHANGED_EVERY, full / MIB, before / MIB);
    let times = changed().step_by(97).map(|number| timed(|| assert_reads(&client, number, &snapshot, 1)).1).collect();
    println!("a file of the snapshot read in {:?}", median(times));
    changed().step_by(97).for_each(|number| assert_reads(&client, number, "", 2));

    // What only the snapshot saw goes in the background, while others read and write.
    let is_over = AtomicBool::new(false);
    let began = Instant::now();
    std::thread::scope(|scope| {
        let going_on = scope.spawn(|| go_on(&server, &is_over));
        client.call(&format!("DELETE many?restype=share&sharesnapshot={snapshot}"), &[], "").ok();
        // A little fits into segments that are still being written to, and those are not given back.
        let may_stay = if scale() > 1 { before + (full - before) / 2 } else { u64::MAX };
        while disk_used(&folder) > may_stay && began.elapsed() < RETURNED_WITHIN {
            std::thread::sleep(Duration::from_millis(500));
        }
        is_over.store(true, Ordering::Release);
        let (longest, count) = going_on.join().expect("others were served");
        let left = disk_used(&folder);
        println!(
            "the snapshot dropped: disk {} MiB after {:?}; beside it {count} writes and reads, the longest took {longest:?}",
            left / MIB,
            began.elapsed(),
        );
        assert!(left <= may_stay, "the space of the snapshot did not return");
    });
    server.kill();
    check(&folder);
    std::fs::remove_dir_all(&folder).expect("removed");
}
