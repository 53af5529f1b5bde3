//! Many clients at once: no update is lost, no torn content is ever seen.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use wire::base64;
use wire::checksum::Crc64;

use crate::harness::{Client, Headers};
use crate::stage::{A, BLOCK_BLOB, Stage, block_list, percent};

const WRITERS: usize = 16;

/// Sixteen writers read the ETag and write under the condition that it is still the same. Each version is the base of
/// exactly one later one, and the count of successes is the count of versions.
#[test]
fn one_winner_per_version() {
    const VERSIONS: usize = 300;
    let stage = Stage::new();
    let first = stage.put("cont/blob", "0").etag();
    // For each version, who replaced it: it must be nobody or one.
    let replaced = Mutex::new(BTreeMap::from([(first, 0_usize)]));
    let (wins, losses) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            let client = stage.server.client();
            let (replaced, wins, losses) = (&replaced, &wins, &losses);
            scope.spawn(move || {
                while wins.load(Ordering::Relaxed) < VERSIONS {
                    let seen = client.call("GET cont/blob", &[], "").ok();
                    let count: usize = std::str::from_utf8(&seen.body).expect("a number").parse().expect("a number");
                    let next = (count + 1).to_string();
                    let answer = client.call("PUT cont/blob", &[BLOCK_BLOB, ("if-match", &seen.etag())], next);
                    match answer.said().as_str() {
                        "201" => {
                            wins.fetch_add(1, Ordering::Relaxed);
                            let mut replaced = replaced.lock().expect("nobody panicked");
                            *replaced.entry(seen.etag()).or_default() += 1;
                            replaced.entry(answer.etag()).or_default();
                        }
                        "412 ConditionNotMet" => _ = losses.fetch_add(1, Ordering::Relaxed),
                        other => panic!("{other}"),
                    }
                }
            });
        }
    });
    let wins = wins.into_inner();
    let replaced = replaced.into_inner().expect("nobody panicked");
    let twice: Vec<_> = replaced.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "versions with two successors: {twice:?}");
    assert_eq!(replaced.len(), wins + 1, "two writes were given one ETag");
    assert_eq!(replaced.values().filter(|count| **count == 0).count(), 1, "only the last has no successor");
    // The content counted along: every increment is there.
    assert_eq!(stage.get("cont/blob").body, wins.to_string().as_bytes());
    assert!(losses.into_inner() > 0, "nobody met anybody");
}

/// What races, the request, its headers and body, what the winner is told and what all others are told.
type Race = (&'static str, &'static str, Headers<'static>, &'static str, &'static str, &'static str);

const ACQUIRE: Headers<'static> = &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];

/// The same start for all, thousands of times: whoever comes first wins, all others are told.
#[test]
fn everybody_at_once() {
    const ROUNDS: usize = 180;
    let stage = Stage::new();
    #[rustfmt::skip]
    let races: &[Race] = &[
        // what      request                         headers                                  body  the winner  all others
        ("create",  "PUT cont/new",                  &[BLOCK_BLOB, ("if-none-match", "*")],   "x",  "201", "409 BlobAlreadyExists"),
        ("replace", "PUT cont/blob",                 &[BLOCK_BLOB],                           "x",  "201", "412 ConditionNotMet"),
        ("set",     "PUT cont/blob?comp=metadata",   &[("x-ms-meta-a", "1")],                 "",   "200", "412 ConditionNotMet"),
        ("acquire", "PUT cont/leased?comp=lease",    ACQUIRE,                                 "",   "201", "409 LeaseAlreadyPresent"),
        ("delete",  "DELETE cont/doomed",            &[],                                     "",   "202", "404 BlobNotFound"),
        ("make",    "PUT fresh{}?restype=container", &[],                                     "",   "201", "409 ContainerAlreadyExists"),
    ];
    let mut clients: Vec<Client> = (0..WRITERS).map(|_| stage.server.client()).collect();
    let barrier = Barrier::new(WRITERS);
    for round in 0..ROUNDS {
        let (what, line, headers, body, winner, others) = races[round % races.len()];
        let etag = prepare(&stage.client);
        let line = line.replace("{}", &round.to_string());
        let condition = if matches!(what, "replace" | "set") { vec![("if-match", &*etag)] } else { vec![] };
        let headers = [headers, &condition].concat();
        let ask = |client: &mut Client| {
            barrier.wait();
            client.call(&line, &headers, body).said()
        };
        let mut told: Vec<String> = thread::scope(|scope| {
            let asking: Vec<_> = clients.iter_mut().map(|client| scope.spawn(|| ask(client))).collect();
            asking.into_iter().map(|asked| asked.join().expect("an answer")).collect()
        });
        told.sort();
        let mut expected = vec![others; WRITERS - 1];
        expected.push(winner);
        expected.sort_unstable();
        assert_eq!(told, expected, "round {round}, {what}");
    }
}

/// The stage of one round: nothing at `new`, no lease on `leased`, something to delete, and a blob, whose ETag it gives.
fn prepare(client: &Client) -> String {
    let _ = client.call("DELETE cont/new", &[], "");
    client.call("PUT cont/leased?comp=lease", &[("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "0")], "");
    client.call("PUT cont/leased", &[BLOCK_BLOB], "x").ok();
    client.call("PUT cont/doomed", &[BLOCK_BLOB], "x").ok();
    client.call("PUT cont/blob", &[BLOCK_BLOB], "x").ok().etag()
}

/// A content that carries its own checksum: it is whole, or it shows.
fn sealed(number: usize, size: usize) -> Vec<u8> {
    let mut content = vec![0; size.max(10)];
    let seed = number.wrapping_mul(2_654_435_761);
    for (at, byte) in content[8..].iter_mut().enumerate() {
        *byte = (seed >> (at % 24)) as u8 ^ at as u8;
    }
    let sum = Crc64::of(&content[8..]).to_le_bytes();
    content[..8].copy_from_slice(&sum);
    content
}

fn is_whole(content: &[u8]) -> bool {
    content.len() >= 10 && content[..8] == Crc64::of(&content[8..]).to_le_bytes()
}

const SIZES: [usize; 6] = [10, 1_000, 65_536, 65_537, 300_000, 2 << 20];

/// Readers see one version at a time while others replace the blob, whole or by lists of blocks.
#[test]
fn readers_see_whole_versions() {
    const WRITES: usize = 30;
    let stage = Stage::new();
    stage.put("cont/blob", sealed(0, 10));
    let done = AtomicBool::new(false);
    let reads = AtomicUsize::new(0);
    thread::scope(|scope| {
        for reader in 0..4 {
            let client = stage.server.client();
            let (done, reads) = (&done, &reads);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let got = client.call("GET cont/blob", &[], "").ok();
                    assert!(is_whole(&got.body), "reader {reader} got {} bytes of several versions", got.body.len());
                    // A later part, under the condition that it is of the same version, belongs to the same content.
                    let etag = got.etag();
                    let middle = got.body.len() / 2;
                    let range = format!("bytes={middle}-");
                    let rest = client.call("GET cont/blob", &[("if-match", &etag), ("range", &range)], "");
                    match rest.status {
                        206 => {
                            assert!(rest.body == got.body[middle..], "reader {reader}: the rest is of another version")
                        }
                        412 => {}
                        other => panic!("{other}"),
                    }
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let client = stage.server.client();
                scope.spawn(move || {
                    for round in 0..WRITES {
                        let content = sealed(round * 2 + writer, SIZES[round % SIZES.len()]);
                        if (round + writer) % 2 == 0 {
                            client.call("PUT cont/blob", &[BLOCK_BLOB], &content).ok();
                        } else {
                            commit_in_blocks(&client, writer, &content);
                        }
                    }
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok), "a writer failed");
    });
    assert!(is_whole(&stage.get("cont/blob").body));
    assert!(reads.into_inner() > 10);
}

/// Uploads a content in four blocks and commits them. Somebody else's write may throw the blocks away in between; then
/// the list is refused as a whole.
fn commit_in_blocks(client: &Client, writer: usize, content: &[u8]) {
    let size = content.len().div_ceil(4).max(1);
    let ids: Vec<String> =
        (0..content.chunks(size).len()).map(|at| base64::encode(format!("{writer}-{at:03}").as_bytes())).collect();
    for (id, block) in ids.iter().zip(content.chunks(size)) {
        client.call(&format!("PUT cont/blob?comp=block&blockid={}", percent(id)), &[], block).ok();
    }
    let list: Vec<(&str, &str)> = ids.iter().map(|id| ("Uncommitted", id.as_str())).collect();
    let answer = client.call("PUT cont/blob?comp=blocklist", &[], block_list(&list));
    assert!(matches!(answer.said().as_str(), "201" | "400 InvalidBlockList"), "{}", answer.said());
}

/// A download that has begun ends with its own bytes, whatever becomes of the blob.
#[test]
fn downloads_end_with_what_they_began() {
    let stage = Stage::new();
    let content = sealed(7, 24 << 20);
    #[rustfmt::skip]
    let fates: &[(&str, &str, Headers<'_>, &str)] = &[
        ("deleted",           "DELETE cont/blob",           &[], ""),
        ("overwritten",       "PUT cont/blob",              &[BLOCK_BLOB], "new"),
        ("emptied by a list", "PUT cont/blob?comp=blocklist", &[], "<BlockList/>"),
        ("gone with its container", "DELETE cont?restype=container", &[], ""),
    ];
    for by_blocks in [false, true] {
        for (what, line, headers, body) in fates {
            let _ = stage.call("PUT cont?restype=container", &[], "");
            if by_blocks {
                commit_in_blocks(&stage.client, 0, &content);
            } else {
                stage.put("cont/blob", &content);
            }
            let reader = stage.server.client();
            let download = reader.begin("GET cont/blob", &[]);
            assert_eq!(download.answer.said(), "200");
            stage.call(line, headers, body).ok();
            // What was let go may be collected at any time now.
            stage.server.advance(3600);
            stage.put_elsewhere();
            let got = download.finish();
            assert!(got.body == content, "{what}, by blocks: {by_blocks}");
        }
    }
}

/// A lease keeps everybody else out, and only until it ends.
#[test]
fn one_holder_at_a_time() {
    const ROUNDS: usize = 25;
    let stage = Stage::new();
    stage.put("cont/blob", "0");
    thread::scope(|scope| {
        for writer in 0..8_usize {
            let client = stage.server.client();
            scope.spawn(move || {
                let id = A.replace("aaaaaaaaaaaa", &format!("{writer:012}"));
                let (mine, lease) = (("x-ms-lease-id", &*id), "PUT cont/blob?comp=lease");
                let acquire =
                    [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "60"), ("x-ms-proposed-lease-id", &*id)];
                for _ in 0..ROUNDS {
                    loop {
                        match client.call(lease, &acquire, "").said().as_str() {
                            "201" => break,
                            "409 LeaseAlreadyPresent" => thread::yield_now(),
                            other => panic!("{other}"),
                        }
                    }
                    // Read and write without any condition: the lease is what keeps this safe.
                    let seen = client.call("GET cont/blob", &[mine], "").ok();
                    let count: usize = std::str::from_utf8(&seen.body).expect("text").parse().expect("a number");
                    client.call("PUT cont/blob", &[BLOCK_BLOB, mine], (count + 1).to_string()).ok();
                    client.call(lease, &[("x-ms-lease-action", "release"), mine], "").ok();
                }
            });
        }
    });
    assert_eq!(stage.get("cont/blob").body, (8 * ROUNDS).to_string().as_bytes());
}
