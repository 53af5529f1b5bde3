//! Requests that nobody would send, to every operation, over HTTP and with a good signature.
//!
//! An episode is a seed and a service: a server of its own, one good request for each operation, and then thousands that
//! are made of those by mutation. Whatever comes, each gets an answer in good form and none a failure of ours; the server
//! stays alive, calm, well and small; and it leaves a folder in which everything is in order.
//!
//! `cargo xtask fuzz-http SECONDS` runs new seeds for so long. An episode that fails prints its seed, and
//! `cargo xtask fuzz-http seed SEED` runs that one again.

mod examples;
mod expressions;
mod files;
#[path = "../harness/mod.rs"]
mod harness;
mod mutate;
mod random;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use examples::{Example, Learned};
use harness::{Answer, Client, Element, Server, Service};
use random::Random;

/// Rows of tables that are known to differ; there are no tables here.
pub const NOT_YET: [(&str, &str); 0] = [];

/// So many mutated requests an episode has.
const REQUESTS_PER_EPISODE: usize = 1_500;
/// After so many the server is asked how it is.
const REQUESTS_PER_LOOK: usize = 100;
/// A server of one episode takes no more memory than this.
const RESIDENT_BYTES_MAX: u64 = 512 << 20;
/// The farthest that the clock is moved at a time.
const ADVANCE_SECS_MAX: usize = 100_000;

const SECONDS: &str = "LAZURITE_FUZZ_SECONDS";
const SEED: &str = "LAZURITE_FUZZ_SEED";
const FIRST_SEED: u64 = 1;

/// Without more being said a few seconds of the same seeds: enough to see that it works.
const SECONDS_DEFAULT: u64 = 10;

#[test]
fn nothing_that_is_sent_makes_the_server_fail() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    if let Some(seed) = number(SEED) {
        return SERVICES.into_iter().for_each(|service| told(seed, service));
    }
    let (seconds, first) = match number(SECONDS) {
        Some(seconds) => (seconds, fresh_seed()),
        None => (SECONDS_DEFAULT, FIRST_SEED),
    };
    let end = Instant::now() + Duration::from_secs(seconds);
    let run = |service: Service| {
        let mut seed = first;
        while Instant::now() < end {
            told(seed, service);
            seed += 1;
        }
        seed - first
    };
    let episodes: u64 = std::thread::scope(|scope| {
        let threads = SERVICES.map(|service| scope.spawn(move || run(service)));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).sum()
    });
    println!("{episodes} episodes of {REQUESTS_PER_EPISODE} requests from seed {first} on");
}

/// Every operation that there is has an example, and the example is what it says it is.
#[test]
fn each_example_reaches_its_operation() {
    for service in SERVICES {
        let episode = Episode::begin(FIRST_SEED, service);
        let counted = episode.server.metrics();
        for name in examples::names(service, &episode.client) {
            let wanted = format!("operation=\"{name}\"");
            assert!(counted.lines().any(|line| line.contains(&wanted)), "no example reached {name}:\n{counted}");
        }
    }
}

/// The File service comes into this list as soon as it answers; its examples are ready.
const SERVICES: [Service; 3] = [Service::Blob, Service::Queue, Service::Table];

fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    now.as_secs() * 1_000
}

/// Runs an episode; one that fails says how to run it again.
fn told(seed: u64, service: Service) {
    let outcome = catch_unwind(AssertUnwindSafe(|| Episode::begin(seed, service).run()));
    if let Err(panic) = outcome {
        eprintln!("Again: cargo xtask fuzz-http seed {seed}   (it was the {} service)", service.name());
        resume_unwind(panic);
    }
}

struct Episode {
    server: Server,
    client: Client,
    random: Random,
    examples: Vec<Example>,
    learned: Learned,
}

impl Episode {
    /// Starts a server and sends it every example as it is.
    fn begin(seed: u64, service: Service) -> Episode {
        let server = Server::serving(service);
        let client = server.client();
        let examples = examples::of(service, &client);
        let random = Random::new(seed ^ (service as u64) << 56);
        let mut episode = Episode { server, client, random, examples, learned: Learned::default() };
        for example in episode.examples.clone() {
            episode.send(&episode.learned.filled(&example), "an example");
        }
        episode
    }

    fn run(mut self) {
        for count in 0..REQUESTS_PER_EPISODE {
            let example = self.random.of(&self.examples).clone();
            let example = self.learned.filled(&example);
            let mutated = mutate::mutated(&example, &mut self.random);
            self.send(&mutated, &format!("request {count}"));
            if count % REQUESTS_PER_LOOK == 0 {
                self.look();
            }
        }
        self.look();
    }

    fn send(&mut self, example: &Example, which: &str) {
        let head = example.head(&self.client);
        // A connection that the server has closed in between is no fault; one that ends without an answer twice is.
        let exchange = || self.client.probe(&example.line(), &head, &example.body);
        let answer = exchange().or_else(exchange);
        let answer = answer.unwrap_or_else(|| panic!("{which}: no answer to\n{}", example.show(&head)));
        if let Err(why) = judge(example, &answer) {
            let said = String::from_utf8_lossy(&answer.body);
            panic!("{which}: {why}\n{}\n{} {said:.600}", example.show(&head), answer.status);
        }
        self.learned.learn(&answer);
    }

    /// Sees that the server is well.
    fn look(&mut self) {
        assert!(self.server.is_healthy(), "the server says that it is not well");
        if let Some(bytes) = self.server.resident_bytes() {
            assert!(bytes <= RESIDENT_BYTES_MAX, "the server takes {} MiB of memory", bytes >> 20);
        }
        if self.random.one_in(3) {
            self.server.advance(self.random.below(ADVANCE_SECS_MAX) as u64);
        }
    }
}

/// What every answer must be like, whatever was asked.
fn judge(example: &Example, answer: &Answer) -> Result<(), String> {
    let code = answer.header("x-ms-error-code").unwrap_or_default();
    // What is not built yet, and what cannot be done at the moment, is said so.
    if answer.status >= 500 && !matches!(answer.status, 501 | 503) {
        return Err(format!("a failure: {} {code}", answer.status));
    }
    // hyper refuses by itself what is no HTTP.
    let is_ours = answer.header("x-ms-request-id").is_some();
    if !is_ours {
        return if matches!(answer.status, 400..=499) { Ok(()) } else { Err("an answer without an id".into()) };
    }
    if answer.status < 400 || example.verb == "HEAD" {
        return Ok(());
    }
    let kind = answer.header("content-type").unwrap_or_default();
    let body = &answer.body;
    let is_good = match kind.split(';').next() {
        Some("application/xml") => Element::parse(body).is_ok_and(|error| error.name == "Error"),
        Some("application/json") => serde_json::from_slice::<serde_json::Value>(body).is_ok(),
        _ => false,
    };
    if is_good { Ok(()) } else { Err(format!("a refusal in bad form: {kind}")) }
}
