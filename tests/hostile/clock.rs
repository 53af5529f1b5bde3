//! Time that jumps: everything that has become due is done when the test clock answers.

use std::time::{Duration, Instant};

use crate::harness::{Client, Server};

/// How many blobs each part has.
const BLOBS: usize = 1_500;
const BLOB_BYTES: usize = 3_000;
const WRITERS: usize = 8;
const WEEK: u64 = 7 * 86_400;
/// A step that takes longer has not answered.
const STEP_WITHIN: Duration = Duration::from_secs(60);

const BLOCK_BLOB: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

/// How many bytes of contents the server holds.
fn content_bytes(server: &Server) -> u64 {
    let name = "lazurite_engine_content_bytes ";
    let metrics = server.metrics();
    metrics.lines().find_map(|line| line.strip_prefix(name)?.parse().ok()).expect("a figure")
}

/// Does something for each blob of a container, by several clients.
fn each(server: &Server, container: &str, work: impl Fn(&Client, &str) + Sync) {
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (work, client) = (&work, server.client());
            scope.spawn(move || {
                for number in (writer..BLOBS).step_by(WRITERS) {
                    work(&client, &format!("{container}/{number:05}"));
                }
            });
        }
    });
}

fn put_all(server: &Server, container: &str) {
    server.client().call(&format!("PUT {container}?restype=container"), &[], "").ok();
    each(server, container, |client, blob| {
        client.call(&format!("PUT {blob}"), &[BLOCK_BLOB, ("x-ms-tags", "a=1")], [7; BLOB_BYTES]).ok();
    });
}

/// Blobs that can be undeleted for so many days.
fn delete_all(server: &Server, container: &str, days: u32) {
    let policy = format!(
        "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>{days}</Days>\
         </DeleteRetentionPolicy></StorageServiceProperties>"
    );
    server.client().call("PUT ?restype=service&comp=properties", &[], policy).ok();
    each(server, container, |client, blob| _ = client.call(&format!("DELETE {blob}"), &[], "").ok());
}

fn step(server: &Server) {
    let began = Instant::now();
    server.advance(WEEK);
    eprintln!("a step of a week took {:?}, {} bytes are left", began.elapsed(), content_bytes(server));
    assert!(began.elapsed() < STEP_WITHIN, "a step of a week took {:?}", began.elapsed());
}

#[test]
fn two_steps_of_a_week_do_all_that_has_become_due() {
    let server = Server::start();
    let one_part = (BLOBS * BLOB_BYTES) as u64;
    ["first", "second", "gone"].into_iter().for_each(|container| put_all(&server, container));
    assert_eq!(content_bytes(&server), 3 * one_part);
    delete_all(&server, "first", 5);
    delete_all(&server, "second", 12);
    // A container that goes with all its blobs is one due row with very many steps.
    server.client().call("DELETE gone?restype=container", &[], "").ok();
    assert!(content_bytes(&server) >= 2 * one_part, "what can be undeleted is still there");
    step(&server);
    assert_eq!(content_bytes(&server), one_part, "what was due in the first week is done");
    step(&server);
    assert_eq!(content_bytes(&server), 0, "all that was due is done");
}
