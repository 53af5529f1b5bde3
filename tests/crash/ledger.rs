//! What writers asked for and what they were told: after a death, everything acknowledged must be there.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Answer, Client, Headers};

const NAMES: u64 = 5;

/// What became of one blob, as far as its only writer knows.
#[derive(Clone, Default, Debug)]
pub struct Known {
    /// The last state the server acknowledged.
    pub acknowledged: State,
    /// What was asked for after that and not answered. It may have happened or not.
    pub in_flight: Option<u64>,
    /// What the server acknowledged in its present life, in order: the version and the state it left.
    pub life: Vec<(u64, State)>,
    /// The state at the beginning of that life.
    pub before_life: State,
}

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct State {
    /// `None`: the blob is not there.
    pub version: Option<u64>,
    pub etag: Option<String>,
}

/// By blob name.
pub type Ledger = Arc<Mutex<HashMap<String, Known>>>;

/// The bytes of a version of a blob: every part of them tells which.
pub fn content(name: &str, version: u64) -> Vec<u8> {
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
pub fn ask(client: &Client, line: &str, headers: Headers<'_>, body: impl AsRef<[u8]>) -> Option<Answer> {
    client.try_call(line, headers, body).ok().filter(|answer| answer.status < 500)
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

/// Writes until the server is gone, or `dark` says that its answers count no more.
pub fn writer(number: u64, address: SocketAddr, start: u64, ledger: &Ledger, dark: &AtomicBool) {
    let client = Client::new(address);
    for version in start.. {
        let name = format!("{number}-{}", version % NAMES);
        ledger.lock().expect("no writer panics with it").entry(name.clone()).or_default().in_flight = Some(version);
        let Some(state) = write(&client, &name, version) else { return };
        let mut ledger = ledger.lock().expect("no writer panics with it");
        if dark.load(Ordering::SeqCst) {
            return;
        }
        let known = ledger.entry(name).or_default();
        known.life.push((version, state.clone()));
        known.acknowledged = state;
        known.in_flight = None;
    }
}

/// What is there now. `None`: the server is gone, or says that something behind it is.
fn look(client: &Client, name: &str) -> Option<State> {
    let found = ask(client, &format!("GET crash/{name}"), &[], "")?;
    if found.status == 404 {
        return Some(State::default());
    }
    let found = found.ok();
    let version = found.header("x-ms-meta-version").and_then(|text| text.parse().ok()).expect("a version");
    assert!(found.body == content(name, version), "{name}: the bytes are not those of version {version}");
    Some(State { version: Some(version), etag: Some(found.etag()) })
}

impl Known {
    /// Takes over what is there, which is what was acknowledged or what was asked for after that.
    fn settle(&mut self, name: &str, state: State) {
        let is_acknowledged = state == self.acknowledged;
        let is_in_flight = self.in_flight.is_some_and(|version| is_version(&state, version));
        assert!(is_acknowledged || is_in_flight, "{name}: found {state:?}, but {self:?}");
        *self = Known::settled(state);
    }

    /// A blob whose state has been read back: a new life begins with it.
    fn settled(state: State) -> Known {
        Known { before_life: state.clone(), acknowledged: state, ..Known::default() }
    }

    /// Whether `found` is what the blob's writer had left after its version `last`.
    fn is_state_after(&self, last: u64, found: &State) -> bool {
        if self.in_flight.is_some_and(|version| version <= last && is_version(found, version)) {
            return true;
        }
        let acknowledged = self.life.iter().rev().find(|(version, _)| *version <= last);
        found == acknowledged.map_or(&self.before_life, |(_, state)| state)
    }
}

/// Whether this is the state that writing `version` leaves; its ETag is not known.
fn is_version(state: &State, version: u64) -> bool {
    if deletes(version) { state.version.is_none() } else { state.version == Some(version) }
}

/// Holds what the server has against what it acknowledged, and takes over what happened without an answer.
pub fn verify(client: &Client, ledger: &Ledger) {
    for (name, known) in ledger.lock().expect("nobody else runs").iter_mut() {
        let state = look(client, name).unwrap_or_else(|| panic!("{name}: no answer"));
        known.settle(name, state);
    }
}

/// Relaxed durability after a power cut: the newest writes may be gone, but only the newest. For each writer there is one
/// version up to which everything it did is there and after which nothing is.
pub fn verify_prefix(client: &Client, ledger: &Ledger) {
    let mut ledger = ledger.lock().expect("nobody else runs");
    let mut found: HashMap<String, Vec<(String, State)>> = HashMap::new();
    for name in ledger.keys() {
        let writer = name.split('-').next().expect("a writer's number").to_owned();
        let state = look(client, name).unwrap_or_else(|| panic!("{name}: no answer"));
        found.entry(writer).or_default().push((name.clone(), state));
    }
    for blobs in found.into_values() {
        let versions = blobs.iter().flat_map(|(name, _)| {
            let known = &ledger[name];
            known.life.iter().map(|(version, _)| *version).chain(known.in_flight)
        });
        let is_prefix = |last: u64| blobs.iter().all(|(name, state)| ledger[name].is_state_after(last, state));
        assert!(
            std::iter::once(0).chain(versions).any(is_prefix),
            "no prefix of what was written: found {blobs:?}, but {:?}",
            blobs.iter().map(|(name, _)| &ledger[name]).collect::<Vec<_>>()
        );
        for (name, state) in blobs {
            ledger.insert(name, Known::settled(state));
        }
    }
}

/// What a writer has lived through that does not give up.
#[derive(Default, Debug)]
pub struct Persistence {
    pub failures: u64,
    /// The longest time from one acknowledgement to the next.
    pub longest_wait: Duration,
}

/// Writes until it is stopped. Where it gets no answer it looks, as long as it takes, what has become of its wish, and goes
/// on from there. The marks of a blob must rise, whoever wrote them.
pub fn persistent_writer(number: u64, address: SocketAddr, ledger: &Ledger, stop: &AtomicBool) -> Persistence {
    let client = Client::new(address);
    let mut story = Persistence::default();
    let mut marks: HashMap<String, String> = HashMap::new();
    let mut last = Instant::now();
    for version in 1.. {
        let name = format!("{number}-{}", version % NAMES);
        let mut known = {
            let mut ledger = ledger.lock().expect("no writer panics with it");
            let known = ledger.entry(name.clone()).or_default();
            known.in_flight = Some(version);
            known.clone()
        };
        if let Some(state) = write(&client, &name, version) {
            known = Known::settled(state);
            story.longest_wait = story.longest_wait.max(last.elapsed());
            last = Instant::now();
        } else {
            story.failures += 1;
            let state = loop {
                if stop.load(Ordering::Acquire) {
                    return story;
                }
                thread::sleep(Duration::from_millis(100));
                if let Some(state) = look(&client, &name) {
                    break state;
                }
            };
            known.settle(&name, state);
        }
        if let Some(mark) = &known.acknowledged.etag {
            // Of one length, so that texts compare as numbers do.
            let before = marks.insert(name.clone(), mark.clone());
            assert!(before.is_none_or(|before| before <= *mark), "{name}: a mark went back to {mark}");
        }
        ledger.lock().expect("no writer panics with it").insert(name, known);
        if stop.load(Ordering::Acquire) {
            return story;
        }
    }
    story
}

/// The newest version that anybody asked for.
pub fn newest(ledger: &Ledger) -> u64 {
    let newest = |known: &Known| known.acknowledged.version.max(known.in_flight).unwrap_or(0);
    ledger.lock().expect("nobody else runs").values().map(newest).max().unwrap_or(0)
}
