//! Many clients at once: every byte accounted for, ids that stay, one winner where there can be one, and no failure.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::harness::{Answer, Client, Headers};
use crate::stage::{A, FILE, LENGTH, SOURCE, Stage, UPDATE, pattern};

const CLIENTS: usize = 16;

/// All send at the same time, each its own request.
fn at_once(stage: &Stage, ask: impl Fn(&Client, usize) -> Answer + Sync) -> Vec<String> {
    let barrier = Barrier::new(CLIENTS);
    thread::scope(|scope| {
        let (barrier, ask) = (&barrier, &ask);
        let asking: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let client = stage.server.client();
                scope.spawn(move || {
                    barrier.wait();
                    ask(&client, number).said()
                })
            })
            .collect();
        let mut said: Vec<String> = asking.into_iter().map(|asked| asked.join().expect("an answer")).collect();
        said.sort();
        said
    })
}

/// Sixteen clients write ranges of their own into one file while its directory is renamed to and fro. A write is done whole
/// wherever the file is just then, or not at all because nothing is at that path.
#[test]
fn writers_while_their_directory_is_renamed() {
    const RANGE: usize = 96 << 10;
    const WRITES: usize = 60;
    let stage = Stage::new();
    let homes = ["share/one", "share/two"];
    stage.make_directory(homes[0]);
    stage.make_file("share/one/file", (CLIENTS * RANGE) as u64);
    let id = |answer: &Answer| answer.header("x-ms-file-id").expect("an id").to_owned();
    let file_id = id(&stage.head("share/one/file"));
    let directory_id = id(&stage.head("share/one?restype=directory"));
    let writing = AtomicUsize::new(CLIENTS);
    let missed = AtomicUsize::new(0);
    let contents: Vec<Vec<u8>> = thread::scope(|scope| {
        let writers: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let client = stage.server.client();
                let (writing, missed) = (&writing, &missed);
                scope.spawn(move || {
                    let mut mine = vec![0; RANGE];
                    let mut home = number % 2;
                    for round in 0..WRITES {
                        // Of every size, at every border.
                        let size = 1 + (round * 7_919 + number * 31) % [100, 512, 5_000, 70_000][round % 4];
                        let first = (round * 104_729 + number) % (RANGE - size);
                        let first = if round % 3 == 0 { first / 512 * 512 } else { first };
                        let bytes = pattern((number * WRITES + round) as u64, size);
                        let (begin, range_start) = (number * RANGE + first, first);
                        let range = format!("bytes={begin}-{}", begin + size - 1);
                        loop {
                            let line = format!("PUT {}/file?comp=range", homes[home]);
                            let answer = client.call(&line, &[UPDATE, ("x-ms-range", &range)], &bytes);
                            match answer.status {
                                201 => break,
                                404 => {
                                    missed.fetch_add(1, Ordering::Relaxed);
                                    home = 1 - home;
                                }
                                _ => panic!("writer {number}: {}", answer.said()),
                            }
                        }
                        mine[range_start..range_start + size].copy_from_slice(&bytes);
                        // Now and then it is read back: its own range has its own bytes, whoever writes beside it.
                        if round % 10 == 9 {
                            let whole = format!("bytes={}-{}", number * RANGE, (number + 1) * RANGE - 1);
                            let read = loop {
                                let read =
                                    client.call(&format!("GET {}/file", homes[home]), &[("x-ms-range", &whole)], "");
                                match read.status {
                                    206 => break read,
                                    404 => home = 1 - home,
                                    _ => panic!("reader {number}: {}", read.said()),
                                }
                            };
                            assert!(read.body == mine, "writer {number}, round {round}: its range is another");
                        }
                    }
                    writing.fetch_sub(1, Ordering::Release);
                    mine
                })
            })
            .collect();
        let renamer = {
            let client = stage.server.client();
            let (writing, file_id, directory_id) = (&writing, &file_id, &directory_id);
            scope.spawn(move || {
                let mut at = 0;
                let mut renames = 0;
                while writing.load(Ordering::Acquire) > 0 {
                    let source = client.url(homes[at]);
                    let line = format!("PUT {}?restype=directory&comp=rename", homes[1 - at]);
                    let answer = client.call(&line, &[(SOURCE, &source)], "");
                    assert_eq!(answer.said(), "200", "rename {renames}");
                    assert_eq!(answer.header("x-ms-file-id"), Some(directory_id.as_str()));
                    at = 1 - at;
                    renames += 1;
                    let head = client.call(&format!("HEAD {}/file", homes[at]), &[], "").ok();
                    assert_eq!(head.header("x-ms-file-id"), Some(file_id.as_str()));
                    assert_eq!(client.call(&format!("HEAD {}/file", homes[1 - at]), &[], "").status, 404);
                    let listed = client.call("GET share?restype=directory&comp=list", &[], "").ok().xml();
                    assert_eq!(listed.all("Entries").len(), 1, "a rename is seen whole: {listed:?}");
                }
                (at, renames)
            })
        };
        let contents = writers.into_iter().map(|writer| writer.join().expect("a writer")).collect();
        let (at, renames) = renamer.join().expect("the renamer");
        println!("{renames} renames, {} writes came where the file was not", missed.load(Ordering::Relaxed));
        assert!(renames > 5, "the directory was hardly renamed");
        if at == 1 {
            stage.rename_directory(homes[1], homes[0], &[]).ok();
        }
        contents
    });
    assert!(stage.read("share/one/file") == contents.concat(), "not every byte is there");
    assert_eq!(id(&stage.head("share/one/file")), file_id);
    assert_eq!(stage.usage("share"), (CLIENTS * RANGE) as u64);
}

/// What races, the request, what the winner is told and what all others are told.
type Race = (&'static str, &'static str, Headers<'static>, &'static str, &'static str);

const ACQUIRE: Headers<'static> = &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];

#[test]
fn one_winner() {
    const ROUNDS: usize = 60;
    let stage = Stage::new();
    #[rustfmt::skip]
    let races: &[Race] = &[
        // what              request                              headers  the winner  all others
        ("create a directory", "PUT share/new?restype=directory",   &[],     "201", "409 ResourceAlreadyExists"),
        ("create a share",     "PUT fresh{}?restype=share",         &[],     "201", "409 ShareAlreadyExists"),
        ("acquire",            "PUT share/leased?comp=lease",       ACQUIRE, "201", "409 LeaseAlreadyPresent"),
        ("delete a file",      "DELETE share/doomed",               &[],     "202", "404 ResourceNotFound"),
        ("delete a directory", "DELETE share/empty?restype=directory", &[],  "202", "404 ResourceNotFound"),
    ];
    for round in 0..ROUNDS {
        let (what, line, headers, winner, others) = races[round % races.len()];
        let _ = stage.delete("share/new?restype=directory");
        let _ = stage.lease("share/leased", &[("x-ms-lease-action", "break")]);
        stage.make_file("share/leased", 0);
        stage.make_file("share/doomed", 0);
        let _ = stage.call("PUT share/empty?restype=directory", &[], "");
        let line = line.replace("{}", &round.to_string());
        let said = at_once(&stage, |client, _| client.call(&line, headers, ""));
        let mut expected = vec![others; CLIENTS - 1];
        expected.push(winner);
        expected.sort_unstable();
        assert_eq!(said, expected, "round {round}, {what}");
    }
}

/// Sixteen rename the same file, each to a name of its own: one has it.
#[test]
fn one_rename_wins() {
    let stage = Stage::new();
    for round in 0..20 {
        let made = stage.put_file("share/from", format!("round {round}"));
        let id = stage.head("share/from").header("x-ms-file-id").expect("an id").to_owned();
        let said = at_once(&stage, |client, number| {
            let source = client.url("share/from");
            client.call(&format!("PUT share/to{number}?comp=rename"), &[(SOURCE, &source)], "")
        });
        let mut expected = vec!["404 ResourceNotFound"; CLIENTS];
        expected[0] = "200";
        expected.sort_unstable();
        assert_eq!(said, expected, "round {round}");
        let left = stage.list("share", "");
        assert_eq!(left.len(), 1, "round {round}");
        assert_eq!(left[0].text_of("FileId"), Some(id));
        let name = crate::stage::name_of(&left[0]);
        assert_eq!(stage.read(&format!("share/{name}")), format!("round {round}").as_bytes());
        stage.delete(&format!("share/{name}")).ok();
        drop(made);
    }
}

/// All rename a file of their own over the same target: all but one of them are replaced, and nothing is counted twice.
#[test]
fn all_replace_one() {
    let stage = Stage::new();
    for round in 0..10 {
        for number in 0..CLIENTS {
            stage.put_file(&format!("share/from{number}"), vec![b'x'; number + 1]);
        }
        let said = at_once(&stage, |client, number| {
            let source = client.url(&format!("share/from{number}"));
            let headers = [(SOURCE, source.as_str()), ("x-ms-file-rename-replace-if-exists", "true")];
            client.call("PUT share/to?comp=rename", &headers, "")
        });
        assert_eq!(said, vec!["200"; CLIENTS], "round {round}");
        assert_eq!(stage.names("share"), "to");
        assert_eq!(stage.usage("share"), stage.read("share/to").len() as u64, "round {round}");
    }
}

/// Two directories, each moved into the other at the same time: there is never a circle, and nothing is lost.
#[test]
fn no_circles() {
    let stage = Stage::new();
    for round in 0..30 {
        for name in ["a", "b"] {
            stage.make_directory(&format!("share/{name}"));
            stage.put_file(&format!("share/{name}/file"), name);
        }
        let said = at_once(&stage, |client, number| {
            let (from, to) = if number % 2 == 0 { ("a", "b") } else { ("b", "a") };
            let source = client.url(&format!("share/{from}"));
            client.call(&format!("PUT share/{to}/in{number}?restype=directory&comp=rename"), &[(SOURCE, &source)], "")
        });
        assert!(said.iter().all(|said| !said.starts_with('5')), "round {round}: {said:?}");
        assert_eq!(said.iter().filter(|said| *said == "200").count(), 1, "round {round}: {said:?}");
        let root = stage.list("share", "");
        assert_eq!(root.len(), 1, "round {round}");
        let outer = crate::stage::name_of(&root[0]);
        let inner = stage.list(&format!("share/{outer}"), "prefix=in");
        let inner = crate::stage::name_of(&inner[0]);
        let found: BTreeSet<Vec<u8>> = [format!("share/{outer}/file"), format!("share/{outer}/{inner}/file")]
            .iter()
            .map(|path| stage.read(path))
            .collect();
        assert_eq!(found, BTreeSet::from([b"a".to_vec(), b"b".to_vec()]), "round {round}");
        for path in [format!("share/{outer}/{inner}"), format!("share/{outer}")] {
            stage.delete(&format!("{path}/file")).ok();
            stage.delete(&format!("{path}?restype=directory")).ok();
        }
    }
}

/// A directory is deleted while others create in it: whatever was created is there, and then so is the directory.
#[test]
fn nothing_is_created_in_what_is_gone() {
    let stage = Stage::new();
    for round in 0..40 {
        stage.make_directory("share/dir");
        let said = at_once(&stage, |client, number| match number {
            0 => client.call("DELETE share/dir?restype=directory", &[], ""),
            number => client.call(&format!("PUT share/dir/{number}"), &[FILE, (LENGTH, "1")], ""),
        });
        let made = said.iter().filter(|said| *said == "201").count();
        let is_gone = said.iter().any(|said| said == "202");
        assert_eq!(is_gone, made == 0, "round {round}: {said:?}");
        assert_eq!(stage.usage("share"), made as u64, "round {round}");
        if is_gone {
            assert_eq!(stage.names("share"), "");
        } else {
            assert_eq!(stage.list("share/dir", "").len(), made, "round {round}");
            for number in 1..CLIENTS {
                let _ = stage.delete(&format!("share/dir/{number}"));
            }
            stage.delete("share/dir?restype=directory").ok();
        }
    }
}

/// A lease keeps everybody else out, and only until it ends.
#[test]
fn one_holder_at_a_time() {
    const ROUNDS: usize = 20;
    let stage = Stage::new();
    stage.put_file("share/file", "00000000");
    thread::scope(|scope| {
        for writer in 0..8_usize {
            let client = stage.server.client();
            scope.spawn(move || {
                let id = A.replace("aaaaaaaaaaaa", &format!("{writer:012}"));
                let (mine, lease) = (("x-ms-lease-id", &*id), "PUT share/file?comp=lease");
                let acquire =
                    [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", &*id)];
                for _ in 0..ROUNDS {
                    loop {
                        match client.call(lease, &acquire, "").said().as_str() {
                            "201" => break,
                            "409 LeaseAlreadyPresent" => thread::yield_now(),
                            other => panic!("{other}"),
                        }
                    }
                    // Read and write without any condition: the lease is what keeps this safe.
                    let seen = client.call("GET share/file", &[mine], "").ok();
                    let count: usize = std::str::from_utf8(&seen.body).expect("text").parse().expect("a number");
                    let headers = [UPDATE, ("x-ms-range", "bytes=0-7"), mine];
                    client.call("PUT share/file?comp=range", &headers, format!("{:08}", count + 1)).ok();
                    client.call(lease, &[("x-ms-lease-action", "release"), mine], "").ok();
                }
            });
        }
    });
    assert_eq!(stage.read("share/file"), format!("{:08}", 8 * ROUNDS).as_bytes());
}

/// Listings while files come and go: what is there all the time is in every listing, once and in its order.
#[test]
fn listings_while_others_write() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    for number in 0..40 {
        stage.make_file(&format!("share/dir/keep{number:02}"), 0);
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..4 {
            let (client, done) = (stage.server.client(), &done);
            scope.spawn(move || {
                let mut round = 0;
                while !done.load(Ordering::Relaxed) {
                    let path = format!("share/dir/keep{:02}-{writer}", (round * 7) % 40);
                    client.call(&format!("PUT {path}"), &[FILE, (LENGTH, "0")], "").ok();
                    client.call(&format!("DELETE {path}"), &[], "").ok();
                    round += 1;
                }
            });
        }
        let client = stage.server.client();
        for round in 0..60 {
            let (mut found, mut marker) = (Vec::new(), String::new());
            loop {
                let size = 1 + round % 13;
                let target = format!(
                    "share/dir?restype=directory&comp=list&maxresults={size}&marker={}",
                    crate::stage::percent(&marker)
                );
                let page = client.call(&format!("GET {target}"), &[], "").ok().xml();
                found.extend(page.all("Entries").iter().map(crate::stage::name_of));
                marker = page.text_of("NextMarker").expect("a marker");
                if marker.is_empty() {
                    break;
                }
            }
            let kept = found.iter().filter(|name| name.len() == 6).count();
            assert_eq!(kept, 40, "round {round}: {found:?}");
            assert!(
                found.windows(2).all(|pair| pair[0].to_uppercase() < pair[1].to_uppercase()),
                "round {round}: {found:?}"
            );
        }
        done.store(true, Ordering::Relaxed);
    });
}
