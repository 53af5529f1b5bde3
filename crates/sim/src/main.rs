//! The real services and the real embedded engine on a simulated disk, under one clock and one seed.
//!
//! ```text
//! lazurite-sim SEED                    replays a seed and tells its story
//! lazurite-sim --seeds N [--from S]    runs N seeds, in processes beside each other
//! ```

mod clients;
mod disk;
mod models;
mod pages;
mod run;
mod schedule;
mod story;
mod tree_folder;

use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::Instant;

const USAGE: &str = "usage: lazurite-sim SEED | lazurite-sim --seeds N [--from S]";
/// A machine that was switched off leaves its memory and its open files behind, so a process runs only so many seeds.
const SEEDS_PER_PROCESS: u64 = 25;
/// How the line begins in which a process tells how many objects it did not judge, and how many there were.
const OBJECTS: &str = "objects not judged, of all: ";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().ok();
    let code = match words[..] {
        [seed] if number(seed).is_some() => replay(number(seed).unwrap_or(0)),
        ["--seeds", count] if number(count).is_some() => many(0, number(count).unwrap_or(0)),
        ["--seeds", count, "--from", from] if number(count).is_some() && number(from).is_some() => {
            many(number(from).unwrap_or(0), number(count).unwrap_or(0))
        }
        ["--here", from, count] => here(number(from).unwrap_or(0), number(count).unwrap_or(0)),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    };
    tree_folder::clear_scratch_of(std::process::id());
    code
}

/// Tells the story of one seed.
fn replay(seed: u64) -> ExitCode {
    match run::run(seed, true) {
        Ok(summary) => {
            println!("seed {seed}: {summary:?}: nothing is wrong");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("seed {seed} is wrong: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Runs seeds in this process, one after another. The last line says how many objects were not judged.
fn here(from: u64, count: u64) -> ExitCode {
    let (mut is_good, mut objects, mut unjudged) = (true, 0, 0);
    for seed in from..from + count {
        match run::run(seed, false) {
            Ok(summary) => (objects, unjudged) = (objects + summary.objects, unjudged + summary.unjudged),
            Err(why) => {
                println!("seed {seed} is wrong: {why}\nreplay it with: cargo xtask sim {seed}");
                is_good = false;
            }
        }
    }
    println!("{OBJECTS}{unjudged} {objects}");
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs seeds in as many processes as there are processors.
fn many(from: u64, count: u64) -> ExitCode {
    let began = Instant::now();
    let next = std::sync::atomic::AtomicU64::new(from);
    let wrong = std::sync::atomic::AtomicU64::new(0);
    let judged = Mutex::new((0, 0));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let first = next.fetch_add(SEEDS_PER_PROCESS, std::sync::atomic::Ordering::Relaxed);
                    if first >= from + count {
                        return;
                    }
                    let some = SEEDS_PER_PROCESS.min(from + count - first);
                    if !runs_well(first, some, &judged) {
                        wrong.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner();
    let (unjudged, objects) = judged.into_inner().expect("nothing panics under this lock");
    println!("{count} seeds from {from} in {} s", began.elapsed().as_secs());
    println!("{unjudged} of {objects} objects were not judged: their calls could have happened in too many orders");
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs seeds in a process of their own and adds up what it says of its objects.
fn runs_well(from: u64, count: u64, judged: &Mutex<(u64, u64)>) -> bool {
    let program = std::env::current_exe().expect("this program has a path");
    let arguments = ["--here".to_owned(), from.to_string(), count.to_string()];
    let ran = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().and_then(|child| {
        let id = child.id();
        let output = child.wait_with_output();
        tree_folder::clear_scratch_of(id);
        output
    });
    let output = match ran {
        Ok(output) => output,
        Err(error) => {
            println!("cannot start a process: {error}");
            return false;
        }
    };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        match line.strip_prefix(OBJECTS).and_then(|counts| counts.split_once(' ')) {
            Some((unjudged, objects)) => {
                let mut judged = judged.lock().expect("nothing panics under this lock");
                judged.0 += unjudged.parse::<u64>().unwrap_or(0);
                judged.1 += objects.parse::<u64>().unwrap_or(0);
            }
            None => println!("{line}"),
        }
    }
    if !output.status.success() {
        println!("of the seeds {from}..{} some are wrong ({})", from + count, output.status);
    }
    output.status.success()
}
