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

use std::process::{Command, ExitCode};
use std::time::Instant;

const USAGE: &str = "usage: lazurite-sim SEED | lazurite-sim --seeds N [--from S]";
/// A machine that was switched off leaves its memory and its open files behind, so a process runs only so many seeds.
const SEEDS_PER_PROCESS: u64 = 25;

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

/// Runs seeds in this process, one after another.
fn here(from: u64, count: u64) -> ExitCode {
    let mut is_good = true;
    for seed in from..from + count {
        if let Err(why) = run::run(seed, false) {
            println!("seed {seed} is wrong: {why}\nreplay it with: cargo xtask sim {seed}");
            is_good = false;
        }
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs seeds in as many processes as there are processors.
fn many(from: u64, count: u64) -> ExitCode {
    let began = Instant::now();
    let next = std::sync::atomic::AtomicU64::new(from);
    let wrong = std::sync::atomic::AtomicU64::new(0);
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
                    if !runs_well(first, some) {
                        wrong.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner();
    println!("{count} seeds from {from} in {} s", began.elapsed().as_secs());
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn runs_well(from: u64, count: u64) -> bool {
    let program = std::env::current_exe().expect("this program has a path");
    let arguments = ["--here".to_owned(), from.to_string(), count.to_string()];
    let status = Command::new(program).args(arguments).spawn().and_then(|mut child| {
        let status = child.wait();
        tree_folder::clear_scratch_of(child.id());
        status
    });
    match status {
        Ok(status) if status.success() => true,
        Ok(status) => {
            println!("of the seeds {from}..{} some are wrong ({status})", from + count);
            false
        }
        Err(error) => {
            println!("cannot start a process: {error}");
            false
        }
    }
}
