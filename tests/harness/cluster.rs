//! What the nodes of a test share: a database and a prefix in the store, made for it. `scripts/cluster` says where.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

pub type Environment = Vec<(&'static str, String)>;

/// How many nodes a server has.
pub fn nodes(cluster: &Environment) -> usize {
    if cluster.is_empty() {
        return 1;
    }
    std::env::var("LAZURITE_TEST_NODES").ok().and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// Makes a database with our tables. Returns the environment that leads nodes there; nothing where there is no cluster.
pub fn make(folder: &Path) -> Environment {
    let Ok(database) = std::env::var("LAZURITE_TEST_METADATA") else { return Vec::new() };
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    ask(&database, &format!("CREATE DATABASE {name}"));
    let required = |variable: &str| std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set"));
    let environment = vec![
        ("LAZURITE_METADATA", database.replacen("/postgres?", &format!("/{name}?"), 1)),
        ("LAZURITE_BYTES", required("LAZURITE_TEST_BYTES").replacen('?', &format!("/{name}?"), 1)),
        ("AWS_ACCESS_KEY_ID", required("AWS_ACCESS_KEY_ID")),
        ("AWS_SECRET_ACCESS_KEY", required("AWS_SECRET_ACCESS_KEY")),
    ];
    let mut migrate = Command::new(env!("CARGO_BIN_EXE_lazurite"));
    migrate.env_clear().envs(environment.iter().cloned());
    let migrated = migrate.current_dir(folder).arg("migrate").output().expect("the program runs");
    assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
    environment
}

/// What the server of the database that takes writes says.
pub fn ask(database: &str, sql: &str) -> String {
    postgres("psql", &["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command", sql, database])
}

/// The address with the server that takes writes as the only one. Others may not have heard yet of what is new.
#[allow(dead_code)] // Not every suite asks.
pub fn at_primary(database: &str) -> String {
    let place = ask(database, "SELECT host(inet_server_addr()) || ':' || inet_server_port()");
    let (front, hosts) = database.split_once('@').expect("a user");
    let (_, back) = hosts.split_once('/').expect("a database");
    format!("{front}@{place}/{back}")
}

/// Runs one of PostgreSQL's programs.
pub fn postgres(program: &str, arguments: &[&str]) -> String {
    let said = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(said.status.success(), "{program}: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8_lossy(&said.stdout).trim().to_owned()
}
