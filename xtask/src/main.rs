//! `cargo xtask`: every developer command, nothing to install.
//!
//! A command is a list of steps, and a step is a program with its arguments. Each step is printed before it runs, so
//! that it can be repeated by hand; the first one that fails ends the command with its exit code.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const USAGE: &str = "\
cargo xtask <command>

  check        formatting, lints, tests, licences: what every commit passes (licences when cargo-deny is installed)
  crash [N [M [R [S]]]]  kills the server under load N times (20 unless told), cuts its power M times (up to 10 unless told),
               and looks for what was acknowledged and is gone; then R kills (a quarter of N unless told) and S cuts (half of M
               unless told) in relaxed durability
  scale [N]    a lot of data (1,000,000 blobs, 25 GiB, 10,000,000 entities, 1,000,000 messages in one queue; N is the factor,
               100 unless told), and what time, memory and disk it takes
  soak [N]     N minutes (10 unless told) of load on a release build: gigabytes to collect while clients write, then all services while
               the server is stopped and killed; prints the longest silence, ends with a check and a ledger of every write
  consumers [N] 32 consumers and N messages (100,000 unless told) on one queue, while consumers die and the server is killed
  fuzz-http [N] requests that nobody would send, to every operation, for N seconds (60 unless told); what fails prints its seed
  fuzz-http seed S  the same requests again
  histories [N]  many clients at once while the server is killed N times (20 unless told): could one server have answered so?
  fuzz NAME MINUTES  mutated inputs for a decoder (`all`: one after another), from seeds that are new with each run
  sim SEED     the services and the embedded engine on a simulated disk, by one seed: replays it and tells its story
  sim --seeds N [--from S]   runs N seeds and names those that are wrong
  cluster-figures  what a commit costs with PostgreSQL and a standby, beside the embedded engine and plain PostgreSQL
  file-figures [N]  operations on files beside those on blobs, N milliseconds each (2,000 unless told), on a release build
  bench        how to measure
  help         this list

The client tests and the examples are started by ./test, the server by ./run.
";

const BENCH: &str = "\
Measure a release build on a quiet machine, the load generator pinned away from the server if there are cores for both:

  cargo build --release -p lazurite
  target/release/lazurite --location /path/on/the/disk/to/measure --silent

and drive it with the tool you trust over real connections (the well-known account, Shared Key or a SAS). Say with each
figure: machine, disk, durability mode, connections, object size, and the same figure of a peer in the same run.

Pieces of the server, without sockets and disks:

  cargo bench -p lazurite-wire --bench checksum      MD5 and CRC64
  cargo bench -p lazurite-auth --bench identify      each kind of credential
  cargo bench -p lazurite-blob --bench small_blobs   reads and writes of small blobs
  cargo bench -p lazurite --bench reload             seeing whether a file has changed
";

/// How often `crash` kills the server when no number is given.
const CRASH_ROUNDS_DEFAULT: &str = "20";
/// What the numbers after `crash` say: kills and power cuts, and both again in relaxed durability.
const CRASH_SETTINGS: [&str; 4] = [
    "LAZURITE_CRASH_ROUNDS",
    "LAZURITE_POWER_ROUNDS",
    "LAZURITE_CRASH_RELAXED_ROUNDS",
    "LAZURITE_POWER_RELAXED_ROUNDS",
];
/// How many messages `consumers` sends when no number is given.
const CONSUMERS_MESSAGES_DEFAULT: &str = "100000";

/// How long `fuzz-http` runs when no number is given.
const FUZZ_SECONDS_DEFAULT: &str = "60";

/// How long `soak` takes when no number is given.
const SOAK_MINUTES_DEFAULT: &str = "10";

/// How much more than in the ordinary tests `scale` does when no number is given.
const SCALE_DEFAULT: &str = "100";

/// How long each measurement of `file-figures` takes when no number is given.
const FILE_FIGURES_MS_DEFAULT: &str = "2000";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["help" | "--help" | "-h"] => say(USAGE),
        ["check"] => run(check()),
        ["crash"] => run([crash(&[CRASH_ROUNDS_DEFAULT])]),
        ["crash", ref rounds @ ..] if rounds.len() <= CRASH_SETTINGS.len() && are_numbers(rounds) => {
            run([crash(rounds)])
        }
        ["scale"] => run([scale(SCALE_DEFAULT)]),
        ["scale", factor] if factor.parse::<u32>().is_ok() => run([scale(factor)]),
        ["soak"] => run([soak(SOAK_MINUTES_DEFAULT)]),
        ["soak", minutes] if minutes.parse::<u32>().is_ok() => run([soak(minutes)]),
        ["consumers"] => run([consumers(CONSUMERS_MESSAGES_DEFAULT)]),
        ["consumers", messages] if messages.parse::<u32>().is_ok() => run([consumers(messages)]),
        ["fuzz-http"] => run([fuzz_http("LAZURITE_FUZZ_SECONDS", FUZZ_SECONDS_DEFAULT)]),
        ["fuzz-http", "seed", seed] if seed.parse::<u64>().is_ok() => run([fuzz_http("LAZURITE_FUZZ_SEED", seed)]),
        ["fuzz-http", seconds] if seconds.parse::<u32>().is_ok() => run([fuzz_http("LAZURITE_FUZZ_SECONDS", seconds)]),
        ["histories"] => run([histories(CRASH_ROUNDS_DEFAULT)]),
        ["histories", rounds] if rounds.parse::<u32>().is_ok() => run([histories(rounds)]),
        ["fuzz", name, minutes] if minutes.parse::<u32>().is_ok() => run([fuzz(name, minutes)]),
        ["sim", seed] if seed.parse::<u64>().is_ok() => run([sim(seed)]),
        ["sim", "--seeds", seeds] if seeds.parse::<u64>().is_ok() => run([sim(&format!("--seeds {seeds}"))]),
        ["sim", "--seeds", seeds, "--from", from] if seeds.parse::<u64>().is_ok() && from.parse::<u64>().is_ok() => {
            run([sim(&format!("--seeds {seeds} --from {from}"))])
        }
        ["cluster-figures"] => run([Step::cargo("run --release --package lazurite-engine-postgres --example figures")]),
        ["file-figures"] => run([file_figures(FILE_FIGURES_MS_DEFAULT)]),
        ["file-figures", time] if time.parse::<u32>().is_ok() => run([file_figures(time)]),
        ["bench"] => say(BENCH),
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Cheapest first: what is wrong should be known early.
fn check() -> Vec<Step> {
    let mut steps = vec![
        Step::cargo("fmt --all --check"),
        // The program as it is released, without the features for tests that dev-dependencies switch on.
        Step::cargo("clippy --package lazurite --bins --quiet -- -D warnings"),
        // A test may fail where it stands, also in the functions that tests share.
        Step::cargo("clippy --workspace --all-targets --quiet -- -D warnings -A clippy::unwrap_used"),
    ];
    if is_installed("nextest") {
        // It runs everything except the examples in the documentation, each test in a process of its own. Those of one
        // crate share a PostgreSQL, which takes longer to start than they run.
        steps.push(Step::cargo(
            "nextest run --workspace --exclude lazurite-engine-postgres --no-fail-fast --no-tests=pass",
        ));
        steps.push(Step::cargo("test --package lazurite-engine-postgres --no-fail-fast --quiet"));
        steps.push(Step::cargo("test --workspace --doc --quiet"));
    } else {
        steps.push(Step::cargo("test --workspace --no-fail-fast --quiet"));
    }
    if is_installed("deny") {
        // Advisories would need the network.
        steps.push(Step::cargo("deny --offline check bans licenses sources"));
    }
    steps
}

fn crash(rounds: &[&str]) -> Step {
    let step = Step::cargo("test -p lazurite --test crash -- --nocapture");
    CRASH_SETTINGS.iter().zip(rounds).fold(step, |step, (setting, rounds)| step.with(setting, rounds))
}

fn are_numbers(words: &[&str]) -> bool {
    words.iter().all(|word| word.parse::<u32>().is_ok())
}

fn histories(rounds: &str) -> Step {
    Step::cargo("test -p lazurite --test histories kill_nine -- --nocapture").with("LAZURITE_HISTORY_ROUNDS", rounds)
}

fn fuzz(name: &str, minutes: &str) -> Step {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    let seed = since.map_or(1, |since| since.as_secs()).to_string();
    let step = Step::cargo("test --profile fuzz -p lazurite-fuzzing --test short no_decoder_panics -- --nocapture")
        .with("LAZURITE_FUZZ_MINUTES", minutes)
        .with("LAZURITE_FUZZ_SEED", &seed);
    if name == "all" { step } else { step.with("LAZURITE_FUZZ_NAME", name) }
}

fn scale(factor: &str) -> Step {
    Step::cargo("test --release -p lazurite --test scale -- --nocapture --test-threads=1")
        .with("LAZURITE_SCALE", factor)
}

fn file_figures(time: &str) -> Step {
    Step::cargo("test --release -p lazurite --test scale -- --nocapture --test-threads=1 figures_of_files")
        .with("LAZURITE_FIGURES_MS", time)
}

fn soak(minutes: &str) -> Step {
    Step::cargo("test --release -p lazurite --test soak -- --nocapture --test-threads=1")
        .with("LAZURITE_SOAK_MINUTES", minutes)
}

fn consumers(messages: &str) -> Step {
    Step::cargo("test --release -p lazurite --test queue -- --nocapture consumers")
        .with("LAZURITE_QUEUE_MESSAGES", messages)
}

fn fuzz_http(setting: &'static str, value: &str) -> Step {
    Step::cargo("test -p lazurite --test fuzz-http -- --nocapture nothing_that_is_sent").with(setting, value)
}

/// It stands outside the workspace and builds into a place of its own.
fn sim(what: &str) -> Step {
    Step::cargo(&format!(
        "run --release --quiet --manifest-path crates/sim/Cargo.toml --target-dir .cache/sim -- {what}"
    ))
}

/// One program call from the root of the repository.
#[derive(Debug)]
struct Step {
    arguments: Vec<String>,
    settings: Vec<(&'static str, String)>,
}

impl Step {
    fn cargo(arguments: &str) -> Self {
        Self { arguments: arguments.split(' ').map(str::to_owned).collect(), settings: Vec::new() }
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.settings.push((name, value.to_owned()));
        self
    }

    fn show(&self) -> String {
        let settings: String = self.settings.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        format!("{settings}cargo {}", self.arguments.join(" "))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(cargo());
        command.current_dir(root()).args(&self.arguments).stdin(Stdio::null());
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }
}

fn run(steps: impl IntoIterator<Item = Step>) -> ExitCode {
    for step in steps {
        eprintln!("$ {}", step.show());
        match step.command().status() {
            Ok(status) if status.success() => {}
            Ok(status) => {
                eprintln!("failed: {}", step.show());
                return ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
            }
            Err(error) => {
                eprintln!("could not start: {}: {error}", step.show());
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn say(text: &str) -> ExitCode {
    print!("{text}");
    ExitCode::SUCCESS
}

/// Whether cargo knows this subcommand.
fn is_installed(subcommand: &str) -> bool {
    Command::new(cargo())
        .args([subcommand, "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The cargo that started us, so that toolchain overrides hold.
fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Asked at run time: one target folder may serve several working copies.
fn root() -> PathBuf {
    let xtask = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&xtask).parent().expect("xtask stands in the root of the repository").to_owned()
}
