//! A slow standby: it stays connected and takes nothing, as a machine does whose disk hangs. Commits wait for it; reads do not.

use std::process::Command;

/// Standbys that take nothing until this is dropped.
#[derive(Debug)]
pub struct StalledStandbys {
    receivers: Vec<String>,
}

impl StalledStandbys {
    /// Stops the process of every standby that takes what the primary sends. `database` names all servers.
    pub fn of(database: &str) -> StalledStandbys {
        let receivers: Vec<String> = one_by_one(database).iter().filter_map(|server| receiver(server)).collect();
        assert!(!receivers.is_empty(), "the database has no standby");
        signal("-STOP", &receivers);
        StalledStandbys { receivers }
    }
}

impl Drop for StalledStandbys {
    fn drop(&mut self) {
        signal("-CONT", &self.receivers);
    }
}

/// The address once for each server, whatever its role.
fn one_by_one(database: &str) -> Vec<String> {
    let (front, rest) = database.split_once('@').expect("a user");
    let (hosts, _) = rest.split_once('/').expect("a database");
    hosts.split(',').map(|host| format!("{front}@{host}/postgres?sslmode=disable")).collect()
}

/// The process that receives for this server; `None` for a primary, and for a server that is gone.
fn receiver(server: &str) -> Option<String> {
    let sql = "SELECT pid FROM pg_stat_wal_receiver";
    let options = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command", sql, server];
    let said = Command::new("psql").args(options).output().expect("psql runs");
    let process = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    (said.status.success() && !process.is_empty()).then_some(process)
}

fn signal(signal: &str, processes: &[String]) {
    let sent = Command::new("kill").arg(signal).args(processes).output().expect("kill runs");
    assert!(sent.status.success() || std::thread::panicking(), "{}", String::from_utf8_lossy(&sent.stderr));
}
