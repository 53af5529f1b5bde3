//! kill -9 under load, at the level of the engine: nothing acknowledged is lost, nothing torn is readable.
//!
//! The test runs its own binary as the victim; the victim says on its standard output what was acknowledged.

mod common;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use common::{assert_clean, delete, get, pattern, put};
use engine_embedded::{EmbeddedEngine, Options};

const ROUNDS: u64 = 6;
const WRITERS: u64 = 8;
const NAMES: u64 = 20;

fn length(version: u64) -> usize {
    if version.is_multiple_of(25) { 300_000 } else { 1 + usize::try_from(version % 7_000).expect("fits") }
}

fn options() -> Options {
    Options { memtable_bytes: 256 << 10, log_bytes: 2 << 20, segment_bytes: 4 << 20, ..Options::default() }
}

/// The victim: writers that overwrite and delete their own objects until the process is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the victim of the test below"]
async fn victim() {
    let folder = std::env::var("VICTIM_FOLDER").expect("a folder");
    let start: u64 = std::env::var("VICTIM_START").expect("a number").parse().expect("a number");
    let engine = EmbeddedEngine::open(Path::new(&folder), options()).expect("opened");
    // Ends the line in which the test was named.
    say("");
    let sweeper = Arc::clone(&engine);
    tokio::spawn(async move {
        loop {
            common::sweep(&*sweeper).await;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let engine = Arc::clone(&engine);
        writers.push(tokio::spawn(async move {
            for version in start.. {
                let name = format!("{writer}/{}", version % NAMES);
                say(&format!("try {name} {version}"));
                if version % 9 == 5 {
                    delete(&*engine, &name).await.expect("deleted");
                } else {
                    put(&*engine, &name, &pattern(&name, version, length(version))).await.expect("put");
                }
                say(&format!("ack {name} {version}"));
            }
        }));
    }
    for writer in writers {
        writer.await.expect("a writer");
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
}

/// What is known of an object: the last acknowledged version and those tried after it.
#[derive(Default)]
struct Known {
    acknowledged: u64,
    tried: Vec<u64>,
}

#[tokio::test]
async fn kill_nine_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut known: HashMap<String, Known> = HashMap::new();
    let mut start = 1;
    for round in 0..ROUNDS {
        for line in run_victim(folder.path(), start, 40 + 60 * round) {
            let mut words = line.split(' ');
            let (Some(what), Some(name), Some(version)) = (words.next(), words.next(), words.next()) else { continue };
            let Ok(version) = version.parse::<u64>() else { continue };
            let object = known.entry(name.to_owned()).or_default();
            if what == "ack" {
                object.acknowledged = version;
                object.tried.retain(|tried| *tried > version);
            } else if what == "try" {
                object.tried.push(version);
                start = start.max(version + 1);
            }
        }
        let engine = EmbeddedEngine::open(folder.path(), options()).expect("opened after the kill");
        for (name, object) in &mut known {
            let found = get(&*engine, name).await.expect("readable");
            let possible: Vec<u64> = object.tried.iter().copied().chain([object.acknowledged]).collect();
            let is = |version: u64| match (&found, version % 9 == 5) {
                (None, deleted) => deleted,
                (Some(_), true) => false,
                (Some(bytes), false) => *bytes == pattern(name, version, length(version)),
            };
            let right = possible.iter().any(|version| *version > 0 && is(*version))
                || (object.acknowledged == 0 && found.is_none());
            assert!(right, "{name}: {:?} bytes, acknowledged {}", found.map(|bytes| bytes.len()), object.acknowledged);
            // What came through unacknowledged is as good as acknowledged from here on.
            if let Some(version) = object.tried.iter().copied().find(|version| is(*version)) {
                object.acknowledged = version;
            }
            object.tried.clear();
        }
        drop(engine);
        assert_clean(folder.path());
    }
}

/// Runs the victim until so many writes were acknowledged, kills it, and returns the lines it got out.
fn run_victim(folder: &Path, start: u64, acknowledged: u64) -> Vec<String> {
    let mut victim = Command::new(std::env::current_exe().expect("myself"))
        .args(["--ignored", "--exact", "--nocapture", "victim"])
        .env("VICTIM_FOLDER", folder)
        .env("VICTIM_START", start.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    let mut lines = BufReader::new(victim.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let (mut said, mut left) = (Vec::new(), acknowledged);
    while left > 0 {
        let line = lines.next().expect("the victim goes on until it is killed");
        left -= u64::from(line.starts_with("ack "));
        said.push(line);
    }
    victim.kill().expect("killed");
    said.extend(lines);
    victim.wait().expect("gone");
    said
}
