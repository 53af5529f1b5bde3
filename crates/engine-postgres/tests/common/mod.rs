//! A PostgreSQL for the tests of a program: started when the first test asks, gone when the program ends.
#![allow(dead_code)]

pub mod acts;
pub mod proxy;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::byte_store::ByteStore;
use engine_postgres::{Options, PostgresEngine};

/// A server that a script runs until its standard input ends, which it does when this program ends.
#[derive(Debug)]
pub struct Server {
    pub address: String,
    process: Child,
    _input: ChildStdin,
}

impl Server {
    /// `None`, with a word about it, where the server is not installed.
    pub fn start(script: &str, arguments: &[&str]) -> Option<Server> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(script);
        let mut command = Command::new(path);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("a script of this repository");
        let input = process.stdin.take().expect("it is a pipe");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("it is a pipe")).read_line(&mut line).expect("a line");
        match line.trim_end().split_once(' ') {
            Some(("ready", address)) => Some(Server { address: address.to_owned(), process, _input: input }),
            _ if line.trim_end() == "missing" => {
                eprintln!("SKIPPED: {script} finds no server installed");
                None
            }
            _ => panic!("{script} said {line:?}"),
        }
    }
}

/// The address of this program's PostgreSQL.
pub fn postgres() -> Option<&'static str> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    // A test asks for durability of the process, not of the disk; `fsync=off` keeps the tests quick.
    SERVER.get_or_init(|| Server::start("test-postgres", &["fsync=off"])).as_ref().map(|server| server.address.as_str())
}

/// A byte store on this program's S3 server.
pub fn s3() -> Option<Arc<dyn ByteStore>> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let server = SERVER.get_or_init(|| Server::start("test-s3", &[])).as_ref()?;
    let prefix = NEXT.fetch_add(1, Ordering::Relaxed);
    let address = format!("s3://lazurite/{prefix}?endpoint={}&region=us-east-1", server.address);
    let credentials =
        engine_s3::Credentials { access_key_id: "lazurite".into(), secret_access_key: "lazurite-secret".into() };
    let store = engine_s3::open(&address.parse().expect("an address"), Some(&credentials)).expect("a store");
    Some(store)
}

/// Options with a schema of their own, made and up to date.
pub async fn fresh(url: &str) -> Options {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let schema = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let options = Options { schema, connections: 8, ..Options::default() };
    assert_eq!(engine_postgres::migrate(url, &options).await, Ok((0, 4)));
    options
}

pub async fn open(url: &str, store: Arc<dyn ByteStore>, options: &Options) -> Arc<PostgresEngine> {
    PostgresEngine::open(url, store, options.clone()).await.expect("opened")
}
