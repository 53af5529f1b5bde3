//! Many files in one directory: finding one, or a page of neighbours, takes as long among a million as among thousands. And
//! large files of which little was written, and many small writes to one.

use std::time::{Duration, Instant};

use super::client::{Answer, Client};
use super::victim::{Victim, check, fresh_folder};
use super::{MEMORY_MAX, MIB, POINT_READS, disk_used, each, has_room, median, name, scale, timed};

const PAGE: usize = 5_000;
/// What an empty file takes on the disk, at most, while the tree is being tidied up.
const BYTES_EACH: u64 = 2_000;
/// A page may take this much longer at the end than at the beginning: noise of the machine, not of the data.
const NOISE: u32 = 5;
const NOISE_FLOOR: Duration = Duration::from_millis(50);
const TIB: u64 = 1 << 40;

/// Whether times count. Beside other tests on the same machine any of them can be any.
fn is_measured() -> bool {
    scale() > 1
}

fn make(client: &Client, path: &str, length: u64) -> Answer {
    let length = length.to_string();
    client.call(&format!("PUT {path}"), &[("x-ms-type", "file"), ("x-ms-content-length", &length)], "").ok()
}

fn write(client: &Client, path: &str, offset: u64, bytes: &[u8]) -> Answer {
    let range = format!("bytes={offset}-{}", offset + bytes.len() as u64 - 1);
    client.call(&format!("PUT {path}?comp=range"), &[("x-ms-write", "update"), ("x-ms-range", &range)], bytes).ok()
}

/// All pages of the directory, in order, and how long each of them took.
fn pages(client: &Client, count: u64) -> Vec<Duration> {
    let (mut seen, mut marker, mut last, mut times) = (0, String::new(), String::new(), Vec::new());
    loop {
        let marked = wire::percent::encode_value(&marker).into_owned();
        let line = format!("GET many/dir?restype=directory&comp=list&maxresults={PAGE}&marker={marked}");
        let (page, took) = timed(|| client.call(&line, &[], "").ok());
        times.push(took);
        let text = String::from_utf8(page.body).expect("XML");
        for name in text.split("<Name>").skip(1) {
            let name = name.split("</Name>").next().expect("a name").to_owned();
            assert!(last < name, "{name} comes after {last}");
            (seen, last) = (seen + 1, name);
        }
        let next = text.split("<NextMarker>").nth(1).and_then(|rest| rest.split("</NextMarker>").next());
        marker = next.unwrap_or_default().replace("&amp;", "&");
        if marker.is_empty() {
            assert_eq!(seen, count);
            return times;
        }
    }
}

/// How long pages and point reads take, and what the process holds then.
fn look(server: &Victim, count: u64) {
    let client = Client::new(server.file);
    let times = pages(&client, count);
    let part = times.len().div_ceil(10);
    let (first, end) = (median(times[..part].to_vec()), median(times[times.len() - part..].to_vec()));
    let reads: Vec<Duration> = (0..POINT_READS)
        .map(|turn| {
            let number = turn * 7_919 % count;
            let (found, took) = timed(|| client.call(&format!("HEAD many/dir/{}", name(number)), &[], "").ok());
            assert_eq!(found.header("x-ms-meta-number"), Some(number.to_string().as_str()));
            took
        })
        .collect();
    println!(
        "{count} files: list page of {PAGE} {first:?} at the beginning, {end:?} at the end ({} pages), point read {:?}, memory {} MiB",
        times.len(),
        median(reads),
        server.memory() / MIB,
    );
    assert!(!is_measured() || end <= first * NOISE + NOISE_FLOOR, "a page costs more at the end");
    assert!(server.memory() < MEMORY_MAX);
}

/// Creates and deletes beside all the others, and says how long each takes.
fn come_and_go(server: &Victim, round: u64) -> Duration {
    let client = Client::new(server.file);
    let times = (0..200).map(|number| {
        let path = format!("many/dir/{}x{round}", name(number * 31));
        timed(|| {
            make(&client, &path, 0);
            client.call(&format!("DELETE {path}"), &[], "").ok();
        })
        .1
    });
    median(times.collect())
}

#[test]
fn many_files() {
    let folder = fresh_folder("scale-files");
    let (few, many) = (1_000 * scale().min(10), 10_000 * scale());
    if !has_room(&folder, many * BYTES_EACH) {
        return;
    }
    let server = Victim::start(&folder);
    let client = Client::new(server.file);
    client.call("PUT many?restype=share", &[], "").ok();
    client.call("PUT many/dir?restype=directory", &[], "").ok();
    let mut steps = Vec::new();
    for numbers in [0..few, few..many] {
        let began = Instant::now();
        let (made, count) = (numbers.end - numbers.start, numbers.end);
        each(
            || Client::new(server.file),
            numbers,
            |client, number| {
                let value = number.to_string();
                let headers = [("x-ms-type", "file"), ("x-ms-content-length", "0"), ("x-ms-meta-number", &*value)];
                client.call(&format!("PUT many/dir/{}", name(number)), &headers, "").ok();
            },
        );
        println!("{made} files in {:?}, disk {} MiB", began.elapsed(), disk_used(&folder) / MIB);
        look(&server, count);
        steps.push(come_and_go(&server, count));
    }
    println!("create and delete: {:?} among {few}, {:?} among {many}", steps[0], steps[1]);
    let is_flat = steps[1] <= steps[0] * NOISE + NOISE_FLOOR;
    assert!(!is_measured() || is_flat, "creating and deleting costs more among many");
    // A rename of the directory moves one row, not a million.
    let source = client.url("many/dir");
    for (to, from) in [("other", &source), ("dir", &client.url("many/other"))] {
        let line = format!("PUT many/{to}?restype=directory&comp=rename");
        let (_, took) = timed(|| client.call(&line, &[("x-ms-file-rename-source", from)], "").ok());
        println!("the directory renamed in {took:?}");
        assert!(!is_measured() || took < Duration::from_secs(2), "a rename went through the directory");
    }
    server.kill();
    let (server, took) = timed(|| Victim::start(&folder));
    println!("opened after a kill in {took:?}");
    look(&server, many);
    server.kill();
    check(&folder);
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// A tebibyte of which almost nothing was written is as quick as any file.
#[test]
fn a_sparse_tebibyte() {
    let folder = fresh_folder("scale-sparse");
    let server = Victim::start(&folder);
    let client = Client::new(server.file);
    client.call("PUT many?restype=share", &[], "").ok();
    let empty = disk_used(&folder);
    let rounds = 20 * scale();
    let mut times: [Vec<Duration>; 5] = Default::default();
    for round in 0..rounds {
        let path = format!("many/{round}");
        let make_it = || drop(make(&client, &path, TIB));
        let write_it = || {
            write(&client, &path, 0, &[1; 4_096]);
            write(&client, &path, TIB - 4_096, &[2; 4_096]);
        };
        let list_it = || {
            let listed = client.call(&format!("GET {path}?comp=rangelist"), &[], "").ok().xml();
            assert_eq!(listed.children.len(), 2);
        };
        let cut_it = || {
            let half = (TIB / 2).to_string();
            client.call(&format!("PUT {path}?comp=properties"), &[("x-ms-content-length", &half)], "").ok();
        };
        let delete_it = || drop(client.call(&format!("DELETE {path}"), &[], "").ok());
        let works: [&dyn Fn(); 5] = [&make_it, &write_it, &list_it, &cut_it, &delete_it];
        for (work, times) in works.iter().zip(&mut times) {
            times.push(timed(work).1);
        }
    }
    for (what, times) in ["create", "write at both ends", "list ranges", "cut to half", "delete"].iter().zip(times) {
        let typical = median(times);
        println!("1 TiB, {what}: {typical:?}");
        assert!(!is_measured() || typical < Duration::from_millis(500), "{what} goes through the file");
    }
    let grown = disk_used(&folder).saturating_sub(empty);
    assert!(grown < 64 * MIB * scale(), "files of nothing take {} MiB", grown / MIB);
    server.kill();
    check(&folder);
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// A log that grows by a hundred bytes at a time.
#[test]
fn small_appends() {
    const PIECE: usize = 100;
    let folder = fresh_folder("scale-appends");
    let server = Victim::start(&folder);
    let client = Client::new(server.file);
    client.call("PUT many?restype=share", &[], "").ok();
    let count = 1_000 * scale().min(10);
    make(&client, "many/log", count * PIECE as u64);
    let piece = |number: u64| format!("{number:0PIECE$}").into_bytes();
    let (first, rest): (Vec<Duration>, Vec<Duration>) = {
        let mut append = |number: u64| timed(|| write(&client, "many/log", number * PIECE as u64, &piece(number))).1;
        let first = (0..count / 10).map(&mut append).collect();
        (first, (count / 10..count).map(append).collect())
    };
    let late = rest[rest.len() - rest.len() / 10..].to_vec();
    let (early, late) = (median(first), median(late));
    let (read, took) = timed(|| client.call("GET many/log", &[], "").ok());
    assert!(read.body == (0..count).flat_map(piece).collect::<Vec<u8>>());
    println!(
        "{count} appends of {PIECE} bytes: {early:?} at the beginning, {late:?} at the end; read back in {took:?}"
    );
    assert!(!is_measured() || late <= early * NOISE + NOISE_FLOOR, "an append costs more at the end");
    server.kill();
    check(&folder);
    std::fs::remove_dir_all(&folder).expect("removed");
}
