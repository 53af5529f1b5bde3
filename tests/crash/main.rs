//! The server dies under load, and comes back: by kill -9, and by a power cut where the machine lets us make one.
//!
//! Writers put, stage, commit and delete blobs of their own and note what the server acknowledged. After each death the
//! server starts again on the same folder. Everything acknowledged must be there with its ETag, nothing may be torn, and
//! `lazurite check` must find the folder clean. Others go round through every kind of operation, on blobs (`kinds.rs`) and on
//! files (`files.rs`). `LAZURITE_CRASH_ROUNDS` says how often (`cargo xtask crash N`).

#[path = "../harness/client.rs"]
#[allow(dead_code)]
mod client;
mod files;
mod kinds;
#[allow(dead_code)]
mod ledger;
mod power;
#[allow(dead_code)]
mod victim;
#[path = "../harness/xml.rs"]
#[allow(dead_code)]
mod xml;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use client::Client;
use ledger::{Ledger, newest, verify, verify_prefix, writer};
use victim::Victim;

const WRITERS: u64 = 6;
/// However slow the machine: a writer has written this often before the server dies.
const WRITES_MIN: u64 = 4;

/// One life of a server that has just started: verify, load, die. Answers count until the flag that `die` gets is set.
fn live_and_die(
    server: Victim,
    verify: impl FnOnce(&Client, &Ledger),
    ledger: &Ledger,
    start: &mut u64,
    millis: u64,
    die: impl FnOnce(Victim, &AtomicBool),
) {
    let client = Client::new(server.blob);
    let created = client.call("PUT crash?restype=container", &[], "");
    assert!(matches!(created.status, 201 | 409), "{}", created.said());
    verify(&client, ledger);
    let dark = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let (address, ledger, dark, start) = (server.blob, Arc::clone(ledger), Arc::clone(&dark), *start);
            std::thread::spawn(move || writer(number, address, start, &ledger, &dark))
        })
        .collect();
    std::thread::sleep(Duration::from_millis(millis));
    // A machine that is busy with something else needs longer for a few writes.
    while newest(ledger) < *start + WRITES_MIN && !writers.iter().any(JoinHandle::is_finished) {
        std::thread::sleep(Duration::from_millis(5));
    }
    die(server, &dark);
    for writer in writers {
        writer.join().expect("a writer saw what it must not");
    }
    *start = newest(ledger).max(*start) + 1;
}

/// A number that a setting gives, if it does.
fn told(setting: &str) -> Option<u64> {
    std::env::var(setting).ok().and_then(|text| text.parse().ok())
}

fn rounds() -> u64 {
    told("LAZURITE_CRASH_ROUNDS").unwrap_or(3)
}

fn relaxed_rounds() -> u64 {
    told("LAZURITE_CRASH_RELAXED_ROUNDS").unwrap_or(rounds().div_ceil(4).max(3))
}

/// How often the power is cut: at most ten times in ordinary tests, which take a second each.
fn power_rounds() -> u64 {
    told("LAZURITE_POWER_ROUNDS").unwrap_or(rounds().min(10))
}

fn relaxed_power_rounds() -> u64 {
    told("LAZURITE_POWER_RELAXED_ROUNDS").unwrap_or(power_rounds().div_ceil(2))
}

/// Says that a test was not run, also to `./test`, which names a file for that: what a test prints is not shown when it passes.
fn skipped(why: &str) {
    println!("SKIPPED: {why}");
    if let Some(path) = std::env::var_os("LAZURITE_SKIPPED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        file.expect("the file opens").write_all(format!("SKIPPED: {why}\n").as_bytes()).expect("a line in the file");
    }
}

#[test]
fn kill_nine_loses_nothing() {
    kill_nine("kill", Victim::start, rounds());
}

/// What a process has written the system keeps, synced or not: relaxed durability is about power alone.
#[test]
fn kill_nine_loses_nothing_in_relaxed_durability_either() {
    kill_nine("kill-relaxed", Victim::start_relaxed, relaxed_rounds());
}

fn kill_nine(name: &str, begin: fn(&Path) -> Victim, rounds: u64) {
    let folder = victim::fresh_folder(name);
    let ledger = Ledger::default();
    let mut start = 1;
    for round in 0..rounds {
        let millis = 100 + round * 173 % 900;
        live_and_die(begin(&folder), verify, &ledger, &mut start, millis, |server, _| server.kill());
        victim::check(&folder);
    }
    let server = begin(&folder);
    verify(&Client::new(server.blob), &ledger);
    server.kill();
    assert!(start > 10, "the writers hardly wrote");
    println!("{name}: {rounds} kills, {start} writes of each of {WRITERS} writers, nothing lost");
    std::fs::remove_dir_all(&folder).expect("removed");
}

const DAY: u64 = 24 * 3600;

/// Moves the clock, and waits until what is due is done. False: the server died first.
fn advance(admin: SocketAddr, seconds: u64) -> bool {
    let asked = TcpStream::connect(admin).and_then(|mut stream| {
        let body = format!("{{\"advance_seconds\": {seconds}}}");
        let head = format!("POST /test/clock HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n", body.len());
        stream.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    asked.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
}

#[test]
fn kill_nine_leaves_every_kind_of_operation_whole() {
    let folder = victim::fresh_folder("kinds");
    let account = format!("[accounts.{}]\nkeys = [\"{}\"]\nblob_soft_delete_days = 7\n", client::ACCOUNT, client::KEY);
    std::fs::write(folder.join("lazurite.toml"), account).expect("a file in the folder");
    let pairs = kinds::Pairs::default();
    let mut interrupted = BTreeSet::new();
    for round in 0..rounds() {
        // In the middle of their work.
        let server = Victim::start_with_clock(&folder);
        let client = Client::new(server.blob);
        let created = client.call("PUT kinds?restype=container", &[], "");
        assert!(matches!(created.status, 201 | 409), "{}", created.said());
        interrupted.extend(kinds::verify(&client, &pairs));
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let (address, pairs, stop) = (server.blob, Arc::clone(&pairs), Arc::clone(&stop));
                std::thread::spawn(move || kinds::writer(number, address, &pairs, &stop))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(200 + round * 173 % 700));
        server.kill();
        stop.store(true, Ordering::Release);
        for writer in writers {
            writer.join().expect("a writer saw what it must not");
        }
        victim::check(&folder);

        // In the middle of the collection of what they have deleted and replaced.
        let server = Victim::start_with_clock(&folder);
        interrupted.extend(kinds::verify(&Client::new(server.blob), &pairs));
        let admin = server.admin.expect("an address");
        let moving = std::thread::spawn(move || advance(admin, 8 * DAY));
        std::thread::sleep(Duration::from_millis(1 + round * 7 % 40));
        server.kill();
        let _ = moving.join();
        victim::check(&folder);

        // Whatever of that was done: the rest is, and of what is there nothing is missing.
        let server = Victim::start_with_clock(&folder);
        assert!(advance(server.admin.expect("an address"), 8 * DAY), "the clock did not move");
        kinds::forget_deleted(&pairs);
        kinds::verify(&Client::new(server.blob), &pairs);
        server.kill();
        victim::check(&folder);
    }
    println!("interrupted: {interrupted:?}");
    assert!(!interrupted.is_empty(), "nothing was under way at any death");
    // Nothing is left of what nobody can see any more, once all of it had its turn.
    let server = Victim::start_with_clock(&folder);
    Client::new(server.blob).call("DELETE kinds?restype=container", &[], "").ok();
    for _ in 0..20 {
        assert!(advance(server.admin.expect("an address"), 8 * DAY), "the clock did not move");
    }
    server.kill();
    let said = victim::check(&folder);
    assert!(said.contains(" 0 contents in 0 extents (0 bytes), 0 references, 0 due"), "{said}");
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn kill_nine_leaves_every_kind_of_file_operation_whole() {
    let folder = victim::fresh_folder("files");
    let trees = files::Trees::default();
    let mut interrupted = BTreeSet::new();
    for round in 0..rounds() {
        // In the middle of their work.
        let server = Victim::start_with_clock(&folder);
        let client = Client::new(server.file);
        if round == 0 {
            files::prepare(&client, &trees, WRITERS);
        }
        interrupted.extend(files::verify(&client, &trees));
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let (address, trees, stop) = (server.file, Arc::clone(&trees), Arc::clone(&stop));
                std::thread::spawn(move || files::writer(number, address, &trees, &stop))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(200 + round * 173 % 700));
        server.kill();
        stop.store(true, Ordering::Release);
        for writer in writers {
            writer.join().expect("a writer saw what it must not");
        }
        victim::check(&folder);

        // In the middle of the collection of what they have deleted and replaced.
        let server = Victim::start_with_clock(&folder);
        interrupted.extend(files::verify(&Client::new(server.file), &trees));
        let admin = server.admin.expect("an address");
        let moving = std::thread::spawn(move || advance(admin, DAY));
        std::thread::sleep(Duration::from_millis(1 + round * 7 % 40));
        server.kill();
        let _ = moving.join();
        victim::check(&folder);
    }
    println!("interrupted: {interrupted:?}");
    assert!(!interrupted.is_empty(), "nothing was under way at any death");
    // Nothing is left of what nobody can see any more, once all of it had its turn.
    let server = Victim::start_with_clock(&folder);
    let client = Client::new(server.file);
    files::verify(&client, &trees);
    client.call("DELETE kill?restype=share", &[], "").ok();
    for _ in 0..20 {
        assert!(advance(server.admin.expect("an address"), DAY), "the clock did not move");
    }
    server.kill();
    let said = victim::check(&folder);
    assert!(said.contains(" 0 contents in 0 extents (0 bytes), 0 references, 0 due"), "{said}");
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_power_cut_loses_nothing() {
    cut_power("power", Victim::start, verify, true, power_rounds());
}

#[test]
fn a_power_cut_in_relaxed_durability_loses_only_the_newest() {
    cut_power("power-relaxed", Victim::start_relaxed, verify_prefix, false, relaxed_power_rounds());
}

fn cut_power(name: &str, begin: fn(&Path) -> Victim, verify: fn(&Client, &Ledger), synced: bool, rounds: u64) {
    let Some(disk) = power::Disk::new(name) else {
        return skipped(&format!("{name}: this machine lets us mount no disk image, so no power can be cut"));
    };
    let ledger = Ledger::default();
    let mut start = 1;
    for round in 0..rounds {
        let server = begin(&disk.mount().join("data"));
        live_and_die(server, verify, &ledger, &mut start, 150 + round * 211 % 800, |server, dark| {
            // Without power nothing is answered. The system we play this on does answer for a moment: its fdatasync
            // may say yes to what it drops, when the cut comes in the middle of it. Relaxed durability answers before
            // any fdatasync; there the writes of the last moment are those that may be lost.
            dark.store(synced, Ordering::SeqCst);
            disk.cut();
            dark.store(true, Ordering::SeqCst);
            server.kill();
        });
        disk.unmount();
        victim::check(&disk.mount().join("data"));
        disk.unmount();
    }
    let server = begin(&disk.mount().join("data"));
    verify(&Client::new(server.blob), &ledger);
    server.kill();
    assert!(start > 10, "the writers hardly wrote");
    println!("{name}: {rounds} cuts, {start} writes of each of {WRITERS} writers");
}
