//! Some thousands of inputs for each decoder, the same in every run. `LAZURITE_FUZZ_MINUTES` runs longer, with `LAZURITE_FUZZ_SEED` as
//! the first seed and `LAZURITE_FUZZ_NAME` alone: `cargo xtask fuzz NAME MINUTES`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use fuzzing::{Mutator, TARGETS, Target, corpus};

const INPUTS: u64 = 15_000;
const INPUTS_PER_SEED: u64 = 10_000;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn number(name: &str) -> Option<u64> {
    variable(name)?.parse().ok()
}

/// Runs inputs of one seed. Panics with the input that made the decoder panic.
fn run((name, decode): &Target, seed: u64, inputs: u64) {
    let mut mutator = Mutator::new(seed, corpus(name));
    for count in 0..inputs {
        let input = mutator.next_input();
        let done = catch_unwind(AssertUnwindSafe(|| decode(&input)));
        assert!(done.is_ok(), "{name}, seed {seed}, input {count}: b\"{}\"", input.escape_ascii());
    }
}

#[test]
fn no_decoder_panics() {
    let name = variable("LAZURITE_FUZZ_NAME");
    let wanted = TARGETS.iter().filter(|(target, _)| name.as_ref().is_none_or(|name| name == target));
    let wanted: Vec<&Target> = wanted.collect();
    assert!(
        !wanted.is_empty(),
        "no target {name:?}; there are {:?}",
        TARGETS.iter().map(|(name, _)| name).collect::<Vec<_>>()
    );
    let Some(minutes) = number("LAZURITE_FUZZ_MINUTES") else {
        wanted.into_iter().for_each(|target| run(target, 1, INPUTS));
        return;
    };
    for target in wanted {
        let end = Instant::now() + Duration::from_secs(minutes * 60);
        let first = number("LAZURITE_FUZZ_SEED").unwrap_or(1);
        let mut seed = first;
        while Instant::now() < end {
            run(target, seed, INPUTS_PER_SEED);
            seed += 1;
        }
        println!(
            "{}: {} inputs in {minutes} minutes, seeds {first} to {}",
            target.0,
            (seed - first) * INPUTS_PER_SEED,
            seed - 1
        );
    }
}

#[test]
fn every_target_has_something_to_begin_with() {
    for (name, decode) in TARGETS {
        let corpus = corpus(name);
        assert!(corpus.iter().any(|input| !input.is_empty()), "{name} begins with nothing");
        corpus.iter().for_each(|input| decode(input));
    }
}
