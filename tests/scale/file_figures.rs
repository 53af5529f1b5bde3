//! What operations on files cost beside the same on page blobs, block blobs and append blobs: one server, one run, in turn.
//!
//! `LAZURITE_FIGURES_MS` is how long each measurement takes; without it each is so short that only its requests are tested.
//! `cargo xtask file-figures` sets it. Figures are printed and not asserted: they depend on the machine.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::client::Client;
use super::load::WRITERS;
use super::median;
use super::victim::{Victim, check, fresh_folder};

const UPDATE: (&str, &str) = ("x-ms-write", "update");
const BLOCK_BLOB: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
const SMALL: usize = 4 << 10;
const LARGE: usize = 1 << 20;
/// Every client has its own part of the file and of the page blob.
const PART: u64 = LARGE as u64;
const WHOLE: u64 = WRITERS * PART;
/// Each measurement is repeated, in turn with the others.
const ROUNDS: usize = 3;

fn time() -> Option<Duration> {
    std::env::var("LAZURITE_FIGURES_MS").ok().and_then(|text| text.parse().ok()).map(Duration::from_millis)
}

/// One kind of work: its name, the service, and what a client does, by its number and by how often it has done it.
struct Work<'a> {
    name: &'a str,
    client: &'a (dyn Fn() -> Client + Sync),
    once: &'a (dyn Fn(&Client, u64, u64) + Sync),
}

impl Work<'_> {
    /// How often it is done in a second, by all clients together.
    fn rate(&self) -> f64 {
        let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let began = Instant::now();
        std::thread::scope(|scope| {
            for number in 0..WRITERS {
                let (stop, done) = (&stop, &done);
                scope.spawn(move || {
                    let client = (self.client)();
                    for turn in 0.. {
                        (self.once)(&client, number, turn);
                        done.fetch_add(1, Ordering::Relaxed);
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            std::thread::sleep(time().unwrap_or_default());
            stop.store(true, Ordering::Relaxed);
        });
        done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
    }
}

/// Prints the rate of each work, and what it is of that of the last one.
fn compare(what: &str, works: &[Work<'_>]) {
    let mut rates = vec![Vec::new(); works.len()];
    for round in 0..if time().is_some() { ROUNDS } else { 1 } {
        for step in 0..works.len() {
            let at = if round % 2 == 0 { step } else { works.len() - 1 - step };
            rates[at].push(works[at].rate());
        }
    }
    let typical: Vec<f64> = rates
        .into_iter()
        .map(|mut rates| {
            rates.sort_unstable_by(f64::total_cmp);
            rates[rates.len() / 2]
        })
        .collect();
    let last = typical[typical.len() - 1];
    let told = works.iter().zip(&typical).map(|(work, rate)| format!("{} {rate:.0}/s ({:.2})", work.name, rate / last));
    println!("{what}: {}", told.collect::<Vec<_>>().join(", "));
}

fn range(number: u64, size: usize) -> String {
    format!("bytes={}-{}", number * PART, number * PART + size as u64 - 1)
}

/// A file and a page blob, all written, and a block blob of each size.
fn prepare(files: &Client, blobs: &Client) {
    let (whole, part) = (WHOLE.to_string(), vec![7; LARGE]);
    files.call("PUT fig?restype=share", &[], "").ok();
    blobs.call("PUT fig?restype=container", &[], "").ok();
    files.call("PUT fig/file", &[("x-ms-type", "file"), ("x-ms-content-length", &whole)], "").ok();
    let page_blob = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", &*whole)];
    blobs.call("PUT fig/pages", &page_blob, "").ok();
    for number in 0..WRITERS {
        let range = range(number, LARGE);
        files.call("PUT fig/file?comp=range", &[UPDATE, ("x-ms-range", &range)], &part).ok();
        let write = [("x-ms-page-write", "update"), ("x-ms-range", &*range)];
        blobs.call("PUT fig/pages?comp=page", &write, &part).ok();
    }
    for size in [SMALL, LARGE] {
        blobs.call(&format!("PUT fig/blob{size}"), &[BLOCK_BLOB], &part[..size]).ok();
    }
}

#[test]
fn figures_of_files() {
    let folder = fresh_folder("file-figures");
    let server = Victim::start(&folder);
    let (file, blob) = (|| Client::new(server.file), || Client::new(server.blob));
    prepare(&file(), &blob());
    for size in [SMALL, LARGE] {
        let body = vec![8; size];
        let put_range = |client: &Client, number: u64, _: u64| {
            let range = range(number, size);
            client.call("PUT fig/file?comp=range", &[UPDATE, ("x-ms-range", &range)], &body).ok();
        };
        let put_page = |client: &Client, number: u64, _: u64| {
            let write = [("x-ms-page-write", "update"), ("x-ms-range", &*range(number, size))];
            client.call("PUT fig/pages?comp=page", &write, &body).ok();
        };
        let put_blob = |client: &Client, number: u64, _: u64| {
            client.call(&format!("PUT fig/put{number}"), &[BLOCK_BLOB], &body).ok();
        };
        let works = [
            Work { name: "file range", client: &file, once: &put_range },
            Work { name: "page blob", client: &blob, once: &put_page },
            Work { name: "block blob", client: &blob, once: &put_blob },
        ];
        compare(&format!("put {} KiB", size >> 10), &works);

        let get_range = |client: &Client, number: u64, _: u64| {
            let answer = client.call("GET fig/file", &[("x-ms-range", &range(number, size))], "").ok();
            assert_eq!(answer.body.len(), size);
        };
        let get_page = |client: &Client, number: u64, _: u64| {
            let answer = client.call("GET fig/pages", &[("x-ms-range", &range(number, size))], "").ok();
            assert_eq!(answer.body.len(), size);
        };
        let get_blob = |client: &Client, _: u64, _: u64| {
            let answer = client.call(&format!("GET fig/blob{size}"), &[], "").ok();
            assert_eq!(answer.body.len(), size);
        };
        let works = [
            Work { name: "file range", client: &file, once: &get_range },
            Work { name: "page blob", client: &blob, once: &get_page },
            Work { name: "block blob", client: &blob, once: &get_blob },
        ];
        compare(&format!("get {} KiB", size >> 10), &works);
    }
    let come_and_go = |client: &Client, number: u64, turn: u64| {
        let path = format!("fig/small{number}-{turn}");
        client.call(&format!("PUT {path}"), &[("x-ms-type", "file"), ("x-ms-content-length", "100")], [1; 100]).ok();
        client.call(&format!("DELETE {path}"), &[], "").ok();
    };
    let blobs_come_and_go = |client: &Client, number: u64, turn: u64| {
        let path = format!("fig/small{number}-{turn}");
        client.call(&format!("PUT {path}"), &[BLOCK_BLOB], [1; 100]).ok();
        client.call(&format!("DELETE {path}"), &[], "").ok();
    };
    let works = [
        Work { name: "files", client: &file, once: &come_and_go },
        Work { name: "block blobs", client: &blob, once: &blobs_come_and_go },
    ];
    compare("create and delete, 100 bytes", &works);
    lists(&file(), &blob());
    appends(&file(), &blob());
    server.kill();
    check(&folder);
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// All pages of a directory and of a container with as many.
fn lists(files: &Client, blobs: &Client) {
    let count = if time().is_some() { 10_000 } else { 200 };
    files.call("PUT fig/list?restype=directory", &[], "").ok();
    blobs.call("PUT list?restype=container", &[], "").ok();
    for number in 0..count {
        let empty = [("x-ms-type", "file"), ("x-ms-content-length", "0")];
        files.call(&format!("PUT fig/list/{number:05}"), &empty, "").ok();
        blobs.call(&format!("PUT list/{number:05}"), &[BLOCK_BLOB], "").ok();
    }
    let walk = |client: &Client, line: &str| {
        let (began, mut marker, mut seen) = (Instant::now(), String::new(), 0);
        loop {
            let page = client.call(&format!("GET {line}&marker={marker}"), &[], "").ok();
            let text = String::from_utf8(page.body).expect("XML");
            seen += text.matches("<Name>").count();
            match text.split("<NextMarker>").nth(1).and_then(|rest| rest.split('<').next()) {
                Some(next) => marker = wire::percent::encode_value(next).into_owned(),
                None => break,
            }
        }
        assert_eq!(seen, count);
        began.elapsed()
    };
    let (mut of_files, mut of_blobs) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        of_files.push(walk(files, "fig/list?restype=directory&comp=list"));
        of_blobs.push(walk(blobs, "list?restype=container&comp=list"));
    }
    println!("list of {count}: files {:?}, blobs {:?}", median(of_files), median(of_blobs));
}

/// A log that one client writes, beside an append blob.
fn appends(files: &Client, blobs: &Client) {
    const PIECE: usize = 100;
    let count = if time().is_some() { 10_000 } else { 300 };
    files.call("PUT fig/log", &[("x-ms-type", "file"), ("x-ms-content-length", "0")], "").ok();
    blobs.call("PUT fig/appended", &[("x-ms-blob-type", "AppendBlob")], "").ok();
    let piece = |number: usize| format!("{number:0PIECE$}");
    let began = Instant::now();
    for number in 0..count {
        let (first, end) = (number * PIECE, (number + 1) * PIECE);
        files.call("PUT fig/log?comp=properties", &[("x-ms-content-length", &end.to_string())], "").ok();
        let range = format!("bytes={first}-{}", end - 1);
        files.call("PUT fig/log?comp=range", &[UPDATE, ("x-ms-range", &range)], piece(number)).ok();
    }
    let of_files = began.elapsed();
    let began = Instant::now();
    for number in 0..count {
        blobs.call("PUT fig/appended?comp=appendblock", &[], piece(number)).ok();
    }
    let of_blobs = began.elapsed();
    let whole: String = (0..count).map(piece).collect();
    assert!(files.call("GET fig/log", &[], "").ok().body == whole.as_bytes());
    assert!(blobs.call("GET fig/appended", &[], "").ok().body == whole.as_bytes());
    println!("{count} appends of {PIECE} bytes: file {of_files:?} (with a resize each), append blob {of_blobs:?}");
}
