//! The server dies under load, and comes back: by kill -9, and by a power cut where the machine lets us make one.
//!
//! Writers put, stage, commit and delete blobs of their own and note what the server acknowledged. After each death the
//! server starts again on the same folder. Everything acknowledged must be there with its ETag, nothing may be torn, and
//! `lazurite check` must find the folder clean. `LAZURITE_CRASH_ROUNDS` says how often (`cargo xtask crash N`).

#[path = "../harness/client.rs"]
#[allow(dead_code)]
mod client;
mod power;
#[allow(dead_code)]
mod victim;
#[path = "../harness/xml.rs"]
#[allow(dead_code)]
mod xml;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::{Answer, Client, Headers};
use victim::Victim;

const WRITERS: u64 = 6;
const NAMES: u64 = 5;

/// What became of one blob, as far as its only writer knows.
#[derive(Clone, Default, Debug)]
struct Known {
    /// The last state the server acknowledged.
    acknowledged: State,
    /// What was asked for after that and not answered. It may have happened or not.
    in_flight: Option<u64>,
}

#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct State {
    /// `None`: the blob is not there.
    version: Option<u64>,
    etag: Option<String>,
}

/// By blob name.
type Ledger = Arc<Mutex<HashMap<String, Known>>>;

/// The bytes of a version of a blob: every part of them tells which.
fn content(name: &str, version: u64) -> Vec<u8> {
    let length = match version % 10 {
        3 => 1_500_000,
        6 => 70_000,
        _ => 20 + (version * 37 % 5_000) as usize,
    };
    let mut state =
        name.bytes().fold(version | 1, |state, byte| (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn deletes(version: u64) -> bool {
    version % 10 == 9
}

/// Asks; `None` when the server is gone, or its disk is and it says so.
fn ask(client: &Client, line: &str, headers: Headers<'_>, body: impl AsRef<[u8]>) -> Option<Answer> {
    client.try_call(line, headers, body).filter(|answer| answer.status < 500)
}

/// Brings the blob to `version`. `None`: the server died first. Otherwise the state it acknowledged.
fn write(client: &Client, name: &str, version: u64) -> Option<State> {
    let text = version.to_string();
    let answer = match version % 10 {
        9 => {
            let answer = ask(client, &format!("DELETE crash/{name}"), &[], "")?;
            assert!(matches!(answer.status, 202 | 404), "delete {name}: {}", answer.said());
            return Some(State::default());
        }
        5 | 6 => {
            let bytes = content(name, version);
            let mut list = String::from("<BlockList>");
            for (number, part) in bytes.chunks(bytes.len().div_ceil(3)).enumerate() {
                let id = wire::base64::encode(format!("{number:03}").as_bytes());
                let line =
                    format!("PUT crash/{name}?comp=block&blockid={}", id.replace('=', "%3D").replace('+', "%2B"));
                let staged = ask(client, &line, &[], part)?;
                assert_eq!(staged.status, 201, "stage {name}: {}", staged.said());
                list += &format!("<Latest>{id}</Latest>");
            }
            list += "</BlockList>";
            ask(client, &format!("PUT crash/{name}?comp=blocklist"), &[("x-ms-meta-version", &text)], list)?
        }
        _ => {
            let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-meta-version", text.as_str())];
            ask(client, &format!("PUT crash/{name}"), &headers, content(name, version))?
        }
    };
    assert_eq!(answer.status, 201, "write {name} {version}: {}", answer.said());
    Some(State { version: Some(version), etag: Some(answer.etag()) })
}

/// Writes until the server is gone.
fn writer(number: u64, address: std::net::SocketAddr, start: u64, ledger: &Ledger, stop: &AtomicBool) {
    let client = Client::new(address);
    for version in start.. {
        if stop.load(Ordering::Acquire) {
            return;
        }
        let name = format!("{number}-{}", version % NAMES);
        ledger.lock().expect("no writer panics with it").entry(name.clone()).or_default().in_flight = Some(version);
        let Some(state) = write(&client, &name, version) else { return };
        let mut ledger = ledger.lock().expect("no writer panics with it");
        ledger.insert(name, Known { acknowledged: state, in_flight: None });
    }
}

/// Holds what the server has against what it acknowledged, and takes over what happened without an answer.
fn verify(client: &Client, ledger: &Ledger) {
    for (name, known) in ledger.lock().expect("nobody else runs").iter_mut() {
        let found = client.call(&format!("GET crash/{name}"), &[], "");
        let state = match found.status {
            404 => State::default(),
            _ => {
                let found = found.clone().ok();
                let version = found.header("x-ms-meta-version").and_then(|text| text.parse().ok()).expect("a version");
                assert!(found.body == content(name, version), "{name}: the bytes are not those of version {version}");
                State { version: Some(version), etag: Some(found.etag()) }
            }
        };
        let is_acknowledged = state == known.acknowledged;
        let is_in_flight = known.in_flight.is_some_and(|version| {
            if deletes(version) { state.version.is_none() } else { state.version == Some(version) }
        });
        assert!(is_acknowledged || is_in_flight, "{name}: found {state:?}, but {known:?}");
        *known = Known { acknowledged: state, in_flight: None };
    }
}

/// One life of the server: start, verify, load, die.
fn live_and_die(folder: &Path, ledger: &Ledger, start: &mut u64, millis: u64, die: impl FnOnce(Victim)) {
    let server = Victim::start(folder);
    let client = Client::new(server.blob);
    let created = client.call("PUT crash?restype=container", &[], "");
    assert!(matches!(created.status, 201 | 409), "{}", created.said());
    verify(&client, ledger);
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let (address, ledger, stop, start) = (server.blob, Arc::clone(ledger), Arc::clone(&stop), *start);
            std::thread::spawn(move || writer(number, address, start, &ledger, &stop))
        })
        .collect();
    std::thread::sleep(Duration::from_millis(millis));
    die(server);
    stop.store(true, Ordering::Release);
    for writer in writers {
        writer.join().expect("a writer saw what it must not");
    }
    let newest = |known: &Known| known.acknowledged.version.max(known.in_flight).unwrap_or(0);
    *start = ledger.lock().expect("nobody else runs").values().map(newest).max().unwrap_or(0).max(*start) + 1;
}

fn rounds() -> u64 {
    std::env::var("LAZURITE_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

#[test]
fn kill_nine_loses_nothing() {
    let folder = victim::fresh_folder("kill");
    let ledger = Ledger::default();
    let mut start = 1;
    for round in 0..rounds() {
        live_and_die(&folder, &ledger, &mut start, 100 + round * 173 % 900, Victim::kill);
        victim::check(&folder);
    }
    let server = Victim::start(&folder);
    verify(&Client::new(server.blob), &ledger);
    server.kill();
    assert!(start > 10, "the writers hardly wrote");
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_power_cut_loses_nothing() {
    let Some(disk) = power::Disk::new() else {
        println!("skipped: this machine lets us mount no disk image, so no power can be cut");
        return;
    };
    let ledger = Ledger::default();
    let mut start = 1;
    for round in 0..rounds().min(10) {
        let folder = disk.mount().join("data");
        live_and_die(&folder, &ledger, &mut start, 150 + round * 211 % 800, |server| {
            disk.cut();
            server.kill();
        });
        disk.unmount();
        victim::check(&disk.mount().join("data"));
        disk.unmount();
    }
    let server = Victim::start(&disk.mount().join("data"));
    verify(&Client::new(server.blob), &ledger);
    server.kill();
    assert!(start > 10, "the writers hardly wrote");
}
