//! Requests that nobody would send, to every operation, over HTTP and with a good signature.
//!
//! An episode is a seed and a service: a server of its own, one good request for each operation, and then thousands that
//! are made of those by mutation, by several clients at once. (Each client's requests follow from the seed; how they interleave
//! does not.) Whatever comes, each gets an answer in good form and none a failure of ours; the server
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
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use examples::{Example, Learned};
use harness::{Answer, Client, Element, Server, Service};
use random::Random;

/// Rows of tables that are known to differ; there are no tables here.
pub const NOT_YET: [(&str, &str); 0] = [];

/// So many clients ask at once.
const CLIENTS: usize = 3;
/// So many mutated requests an episode has, those of all clients.
const REQUESTS_PER_EPISODE: usize = 1_500;
/// After so many of one client the server is asked how it is.
const REQUESTS_PER_LOOK: usize = 50;
/// At most one answer in so many may say that there is too much to do: with so few clients there is not.
const ANSWERS_PER_BUSY_MIN: u64 = 100;
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
    let tally = &Tally::default();
    if let Some(seed) = number(SEED) {
        SERVICES.into_iter().for_each(|service| told(seed, service, tally));
        return tally.tell();
    }
    let (seconds, first) = match number(SECONDS) {
        Some(seconds) => (seconds, fresh_seed()),
        None => (SECONDS_DEFAULT, FIRST_SEED),
    };
    let end = Instant::now() + Duration::from_secs(seconds);
    let run = |service: Service| {
        let mut seed = first;
        while Instant::now() < end {
            told(seed, service, tally);
            seed += 1;
        }
        seed - first
    };
    let episodes: u64 = std::thread::scope(|scope| {
        let threads = SERVICES.map(|service| scope.spawn(move || run(service)));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).sum()
    });
    println!("{episodes} episodes of {REQUESTS_PER_EPISODE} requests from seed {first} on");
    tally.tell();
}

/// How many answers there were, and how many of them said that something is not built, or cannot be done at the moment.
#[derive(Default)]
struct Tally {
    answers: AtomicU64,
    not_built: AtomicU64,
    busy: AtomicU64,
}

impl Tally {
    fn note(&self, status: u16) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        match status {
            501 => _ = self.not_built.fetch_add(1, Ordering::Relaxed),
            503 => _ = self.busy.fetch_add(1, Ordering::Relaxed),
            _ => {}
        }
    }

    fn tell(&self) {
        let [answers, not_built, busy] =
            [&self.answers, &self.not_built, &self.busy].map(|count| count.load(Ordering::Relaxed));
        println!("{answers} answers: {not_built} of 501 (not built), {busy} of 503 (come again)");
        assert!(busy * ANSWERS_PER_BUSY_MIN <= answers, "{busy} of {answers} answers say that there is too much to do");
    }
}

/// Every operation that there is has an example, and the example is what it says it is.
#[test]
fn each_example_reaches_its_operation() {
    for service in SERVICES {
        let tally = Tally::default();
        let episode = Episode::begin(FIRST_SEED, service, &tally);
        let counted = episode.server.metrics();
        for name in examples::names(service, &episode.server.client()) {
            let wanted = format!("operation=\"{name}\"");
            assert!(counted.lines().any(|line| line.contains(&wanted)), "no example reached {name}:\n{counted}");
        }
    }
}

const SERVICES: [Service; 4] = [Service::Blob, Service::Queue, Service::Table, Service::File];

fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    now.as_secs() * 1_000
}

/// Runs an episode; one that fails says how to run it again.
fn told(seed: u64, service: Service, tally: &Tally) {
    let outcome = catch_unwind(AssertUnwindSafe(|| Episode::begin(seed, service, tally).run()));
    if let Err(panic) = outcome {
        eprintln!("Again: cargo xtask fuzz-http seed {seed}   (it was the {} service)", service.name());
        resume_unwind(panic);
    }
}

struct Episode<'a> {
    server: Server,
    seed: u64,
    examples: Vec<Example>,
    learned: Learned,
    tally: &'a Tally,
}

impl<'a> Episode<'a> {
    /// Starts a server and sends it every example as it is.
    fn begin(seed: u64, service: Service, tally: &'a Tally) -> Episode<'a> {
        let server = Server::serving(service);
        let examples = examples::of(service, &server.client());
        let seed = seed ^ (service as u64) << 56;
        let mut episode = Episode { server, seed, examples, learned: Learned::default(), tally };
        let mut sender = episode.sender(0);
        for example in &episode.examples {
            sender.send(&sender.learned.filled(example), "an example");
        }
        episode.learned = sender.learned;
        episode
    }

    fn sender(&self, number: usize) -> Sender {
        Sender {
            number,
            client: self.server.client(),
            random: Random::new(self.seed ^ (number as u64) << 48),
            learned: self.learned.clone(),
            statuses: Vec::new(),
        }
    }

    fn run(self) {
        let episode = &self;
        std::thread::scope(|scope| {
            let senders = (0..CLIENTS).map(|number| scope.spawn(move || episode.send_all(episode.sender(number))));
            let senders: Vec<_> = senders.collect();
            senders.into_iter().for_each(|sender| sender.join().unwrap_or_else(|panic| resume_unwind(panic)));
        });
    }

    fn send_all(&self, mut sender: Sender) {
        for count in 0..REQUESTS_PER_EPISODE / CLIENTS {
            let example = sender.random.of(&self.examples).clone();
            let example = sender.learned.filled(&example);
            let mutated = mutate::mutated(&example, &mut sender.random);
            sender.send(&mutated, &format!("request {count} of client {}", sender.number));
            if count % REQUESTS_PER_LOOK == 0 {
                self.look(&mut sender.random);
            }
        }
        self.look(&mut sender.random);
        sender.statuses.iter().for_each(|status| self.tally.note(*status));
    }

    /// Sees that the server is well.
    fn look(&self, random: &mut Random) {
        assert!(self.server.is_healthy(), "the server says that it is not well");
        if let Some(bytes) = self.server.resident_bytes() {
            assert!(bytes <= RESIDENT_BYTES_MAX, "the server takes {} MiB of memory", bytes >> 20);
        }
        if random.one_in(3) {
            self.server.advance(random.below(ADVANCE_SECS_MAX) as u64);
        }
    }
}

/// One client, and what it has learned from its answers.
struct Sender {
    number: usize,
    client: Client,
    random: Random,
    learned: Learned,
    statuses: Vec<u16>,
}

impl Sender {
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
        self.statuses.push(answer.status);
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
