//! Much load at once: what the suites that measure share.
#![allow(dead_code)]

use std::path::Path;
use std::process::Command;

use crate::client::{Answer, Client};

pub const MIB: u64 = 1024 * 1024;
pub const WRITERS: u64 = 16;

/// Says what a run needs, and whether the disk has it.
pub fn has_room(folder: &Path, bytes: u64) -> bool {
    let free = Command::new("df").arg("--output=avail").arg("--block-size=1").arg(folder).output().expect("df runs");
    let free: u64 =
        String::from_utf8_lossy(&free.stdout).lines().last().and_then(|line| line.trim().parse().ok()).unwrap_or(0);
    let has = free > bytes + bytes / 2;
    if !has {
        println!("skipped: {} MiB are needed, {} MiB are free", bytes * 3 / 2 / MIB, free / MIB);
    }
    has
}

pub fn disk_used(folder: &Path) -> u64 {
    let used = Command::new("du").arg("--summarize").arg("--block-size=1").arg(folder).output().expect("du runs");
    String::from_utf8_lossy(&used.stdout)
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .expect("a number")
}

pub fn name(number: u64) -> String {
    // Not in the order in which they are written.
    format!("{:016x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Runs `work` once for each number, by several clients at once.
pub fn each(client: impl Fn() -> Client + Sync, numbers: std::ops::Range<u64>, work: impl Fn(&Client, u64) + Sync) {
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (numbers, work, client) = (numbers.clone(), &work, &client);
            scope.spawn(move || {
                let client = client();
                numbers.filter(|number| number % WRITERS == writer).for_each(|number| work(&client, number));
            });
        }
    });
}

/// The body of an entity group transaction: the line that each operation begins with, and its entity as JSON.
pub fn transaction(operations: impl Iterator<Item = (String, String)>) -> String {
    let mut body = "--batch_x\r\nContent-Type: multipart/mixed; boundary=changeset_x\r\n\r\n".to_owned();
    for (line, json) in operations {
        body += "--changeset_x\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
        body += &format!(
            "{line} HTTP/1.1\r\nContent-Type: application/json\r\nPrefer: return-no-content\r\n\r\n{json}\r\n"
        );
    }
    body + "--changeset_x--\r\n--batch_x--\r\n"
}

/// Says which kind of body a transaction is.
pub const TRANSACTION: (&str, &str) = ("content-type", "multipart/mixed; boundary=batch_x");

/// How many operations of a transaction were done.
pub fn done(answer: &Answer) -> u64 {
    String::from_utf8_lossy(&answer.body).matches("HTTP/1.1 204").count() as u64
}
