//! REST and SMB at once on the same files, with a ledger of what each client was told.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use smb::Status;
use smb::testing::body;
use smb::wire::FileId;
use smb::wire::header::Command;

use crate::client::Client;
use crate::server::{Program, Wire};

const CLIENTS: usize = 16;
const READ: u32 = 0x1;
const ALL: u32 = 0x1F_01FF;
const SHARE_READ: u32 = 1;
const SHARE_ALL: u32 = 7;
const OPEN: u32 = 1;
const CREATE: u32 = 2;
const DIRECTORY: u32 = 1;
/// Each REST writer has a page of the file.
const PAGE: usize = 512;

fn read(wire: &mut Wire, id: FileId, length: usize) -> Vec<u8> {
    let told = wire.ask(Command::Read, body::read(id, 0, length as u32));
    assert_eq!(told.status(), Status::SUCCESS);
    told.data().to_vec()
}

fn close(wire: &mut Wire, id: FileId) {
    assert_eq!(wire.ask(Command::Close, body::close(id)).status(), Status::SUCCESS);
}

/// From before it was asked to after it was answered.
struct Span {
    begin: Instant,
    end: Instant,
}

impl Span {
    fn meets(&self, other: &Span) -> bool {
        self.begin <= other.end && other.begin <= self.end
    }
}

/// Sixteen REST writers against sixteen SMB openers that do not share writing.
///
/// While such an open is held nothing changes: what it reads first it reads last. A write that is refused was asked for while an open
/// that excludes it was there, or was on its way in or out. What was acknowledged is there at the end.
#[test]
fn no_write_is_committed_under_an_open_that_excludes_it() {
    const ROUNDS: usize = 12;
    let program = Program::start(&["--create", "share:data"]);
    let client = Client::new(program.file);
    let length = (CLIENTS * PAGE).to_string();
    client.call("PUT data/file", &[("x-ms-type", "file"), ("x-ms-content-length", &length)], "").ok();
    let opening = AtomicUsize::new(CLIENTS);
    let (opens, writes) = thread::scope(|scope| {
        let openers: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (opening, program) = (&opening, &program);
                scope.spawn(move || {
                    let mut wire = Wire::on_data(program);
                    let mut held = Vec::new();
                    for round in 0..ROUNDS {
                        let begin = Instant::now();
                        let told = wire.open("file", READ, SHARE_READ, OPEN, 0);
                        assert_eq!(told.status(), Status::SUCCESS, "REST at work makes an open wait, never fail");
                        let id = told.file_id();
                        let first = read(&mut wire, id, CLIENTS * PAGE);
                        for _ in 0..(number + round) % 4 {
                            assert!(read(&mut wire, id, CLIENTS * PAGE) == first, "changed under an open");
                        }
                        close(&mut wire, id);
                        held.push(Span { begin, end: Instant::now() });
                        // Now and then nobody has it open.
                        thread::sleep(std::time::Duration::from_millis(1 + (number * 7 + round * 3) as u64 % 20));
                    }
                    opening.fetch_sub(1, Ordering::AcqRel);
                    held
                })
            })
            .collect();
        let writers: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (opening, address) = (&opening, program.file);
                scope.spawn(move || {
                    let client = Client::new(address);
                    let range = format!("bytes={}-{}", number * PAGE, (number + 1) * PAGE - 1);
                    let (mut acknowledged, mut refused) = ((0u32, Vec::new()), Vec::new());
                    for version in 1u32.. {
                        // Once more when all of them are gone.
                        let is_last = opening.load(Ordering::Acquire) == 0;
                        let bytes = version.to_le_bytes().repeat(PAGE / 4);
                        let begin = Instant::now();
                        let headers = [("x-ms-write", "update"), ("x-ms-range", &*range)];
                        let answer = client.call("PUT data/file?comp=range", &headers, &bytes);
                        let span = Span { begin, end: Instant::now() };
                        match answer.status {
                            201 => {
                                acknowledged.0 += 1;
                                acknowledged.1 = bytes;
                            }
                            409 => {
                                assert!(answer.said().contains("SharingViolation"), "{}", answer.said());
                                refused.push(span);
                            }
                            _ => panic!("{}", answer.said()),
                        }
                        if is_last {
                            assert_eq!(answer.status, 201, "nobody has it open");
                            break;
                        }
                    }
                    (acknowledged, refused)
                })
            })
            .collect();
        let opens: Vec<Span> = openers.into_iter().flat_map(|opener| opener.join().expect("an opener")).collect();
        let writes: Vec<_> = writers.into_iter().map(|writer| writer.join().expect("a writer")).collect();
        (opens, writes)
    });
    let refused: Vec<&Span> = writes.iter().flat_map(|(_, refused)| refused).collect();
    for write in &refused {
        assert!(opens.iter().any(|open| open.meets(write)), "refused for an open that was not there");
    }
    assert!(!refused.is_empty(), "no write met an open");
    let content = client.call("GET data/file", &[], "").ok().body;
    for (number, ((_, bytes), _)) in writes.iter().enumerate() {
        assert!(&content[number * PAGE..(number + 1) * PAGE] == bytes, "{number}: what was acknowledged last is there");
    }
    let acknowledged: u32 = writes.iter().map(|((count, _), _)| count).sum();
    println!("{} opens, {acknowledged} writes, {} refused", opens.len(), refused.len());
}

fn rename(wire: &mut Wire, id: FileId, to: &str) -> Status {
    const RENAME: u8 = 10;
    let name: Vec<u8> = to.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut info = vec![0; 16];
    info.extend((name.len() as u32).to_le_bytes());
    info.extend(name);
    wire.ask(Command::SetInfo, body::set_info(id, 1, RENAME, &info)).status()
}

/// Names and file ids in the root directory, over SMB.
fn listed(wire: &mut Wire) -> BTreeMap<String, u64> {
    const ID_BOTH_DIRECTORY: u8 = 37;
    const RESTART: u8 = 1;
    let id = wire.open("", READ, SHARE_ALL, OPEN, DIRECTORY).file_id();
    let told = wire.ask(Command::QueryDirectory, body::query_directory(id, ID_BOTH_DIRECTORY, RESTART, 60_000, "*"));
    assert_eq!(told.status(), Status::SUCCESS);
    close(wire, id);
    let (mut found, mut rest) = (BTreeMap::new(), told.buffer());
    loop {
        let number = |at: usize, bytes: usize| {
            rest[at..at + bytes].iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let name = &rest[104..104 + number(60, 4) as usize];
        let units: Vec<u16> = name.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
        found.insert(String::from_utf16(&units).expect("a name"), number(96, 8));
        match number(0, 4) as usize {
            0 => break found,
            next => rest = &rest[next..],
        }
    }
}

/// A file and a directory with a file in it are renamed to and fro over SMB. Every listing, over REST and over SMB, shows each of them
/// once and with its id; an open handle of the file goes along.
#[test]
fn renames_are_seen_whole() {
    const RENAMES: usize = 60;
    let program = Program::start(&["--create", "share:data"]);
    let mut renamer = Wire::on_data(&program);
    let file = renamer.open("a", ALL, SHARE_ALL, CREATE, 0).file_id();
    assert_eq!(renamer.ask(Command::Write, body::write(file, 0, b"goes along")).status(), Status::SUCCESS);
    let directory = renamer.open("c", ALL, SHARE_ALL, CREATE, DIRECTORY).file_id();
    let inside = renamer.open("c\\inside", ALL, SHARE_ALL, CREATE, 0).file_id();
    close(&mut renamer, inside);
    let ids = listed(&mut renamer);
    let (id_of_file, id_of_directory) = (ids["a"], ids["c"]);
    let stop = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let (stop, program) = (&stop, &program);
        let one_of = |names: &BTreeMap<String, u64>, both: [&str; 2], id: u64| {
            let found: Vec<&str> = both.into_iter().filter(|name| names.contains_key(*name)).collect();
            assert!(found.len() == 1 && names[found[0]] == id, "{names:?}");
            found[0] == both[0]
        };
        let looks: Vec<thread::ScopedJoinHandle<'_, [usize; 2]>> = (0..6)
            .map(|number| {
                scope.spawn(move || {
                    let (client, mut wire) = (Client::new(program.file), Wire::on_data(program));
                    let reading = wire.open("a", READ, SHARE_ALL, OPEN, 0);
                    let mut seen = [0; 2];
                    while !stop.load(Ordering::Acquire) {
                        let names = if number % 2 == 0 {
                            let answer =
                                client.call("GET data?restype=directory&comp=list&include=Timestamps", &[], "");
                            let list = answer.ok().xml();
                            let text = |entry: &crate::xml::Element, name: &str| entry.text_of(name).expect("a value");
                            let entry = |entry| (text(entry, "Name"), text(entry, "FileId").parse().expect("a number"));
                            list.all("Entries").iter().map(entry).collect()
                        } else {
                            listed(&mut wire)
                        };
                        let is_first = one_of(&names, ["a", "b"], id_of_file);
                        one_of(&names, ["c", "d"], id_of_directory);
                        seen[usize::from(is_first)] += 1;
                        if reading.status() == Status::SUCCESS {
                            assert_eq!(read(&mut wire, reading.file_id(), 100), b"goes along");
                        }
                    }
                    seen
                })
            })
            .collect();
        for turn in 0..RENAMES {
            let is_even = turn % 2 == 0;
            assert_eq!(rename(&mut renamer, file, if is_even { "b" } else { "a" }), Status::SUCCESS);
            assert_eq!(rename(&mut renamer, directory, if is_even { "d" } else { "c" }), Status::SUCCESS);
            let path = if is_even { "d\\inside" } else { "c\\inside" };
            let told = renamer.open(path, READ, SHARE_ALL, OPEN, 0);
            assert_eq!(told.status(), Status::SUCCESS, "{path}");
            close(&mut renamer, told.file_id());
        }
        stop.store(true, Ordering::Release);
        looks.into_iter().map(|look| look.join().expect("each look sees both once")).collect::<Vec<_>>()
    });
    assert!(seen.iter().flatten().sum::<usize>() > 0, "nobody looked: {seen:?}");
    println!("looks at the second name and at the first: {seen:?}");
}

/// One client holds a file with a lock and an open that shares nothing, another waits for the lock, and neither says or reads anything
/// any more. Everything else in their directory, and what their opens allow on the files, goes on.
#[test]
fn a_client_that_never_answers_holds_up_nobody() {
    const EXCLUSIVE: u32 = 2;
    let program = Program::start(&["--create", "share:data"]);
    let mut holder = Wire::on_data(&program);
    let held = holder.open("held", ALL, SHARE_ALL, CREATE, 0).file_id();
    assert_eq!(holder.ask(Command::Write, body::write(held, 0, &[1; 2_000])).status(), Status::SUCCESS);
    assert_eq!(holder.ask(Command::Lock, body::lock(held, &[(0, 1_000, EXCLUSIVE | 0x10)])).status(), Status::SUCCESS);
    assert_eq!(holder.open("closed", ALL, 0, CREATE, 0).status(), Status::SUCCESS);
    let mut waiter = Wire::on_data(&program);
    let waiting = waiter.open("held", ALL, SHARE_ALL, OPEN, 0).file_id();
    let frame = waiter.client.ask(Command::Lock, body::lock(waiting, &[(0, 1_000, EXCLUSIVE)]));
    waiter.send(&frame);
    // A change of the directory that nobody takes, again and again.
    let watched = waiter.open("", READ, SHARE_ALL, OPEN, DIRECTORY).file_id();
    let frame = waiter.client.ask(Command::ChangeNotify, body::change_notify(watched, 0x1FF));
    waiter.send(&frame);
    let client = Client::new(program.file);
    let mut other = Wire::on_data(&program);
    let put = |range: &str| {
        client.call("PUT data/held?comp=range", &[("x-ms-write", "update"), ("x-ms-range", range)], [2; 500])
    };
    for round in 0..40 {
        assert!(put("bytes=0-499").said().contains("FileLockConflict"));
        put("bytes=1200-1699").ok();
        let refused = client.call("GET data/closed", &[], "");
        assert!(refused.said().contains("SharingViolation"), "{}", refused.said());
        assert_eq!(other.open("closed", READ, SHARE_ALL, OPEN, 0).status(), Status::SHARING_VIOLATION);
        let id = other.open("held", ALL, SHARE_ALL, OPEN, 0).file_id();
        assert_eq!(other.ask(Command::Write, body::write(id, 0, b"x")).status(), Status::FILE_LOCK_CONFLICT);
        assert_eq!(other.ask(Command::Write, body::write(id, 1_500, b"x")).status(), Status::SUCCESS);
        close(&mut other, id);
        let name = format!("new{round}");
        let id = other.open(&name, ALL, SHARE_ALL, CREATE, 0).file_id();
        assert_eq!(rename(&mut other, id, "renamed"), Status::SUCCESS);
        close(&mut other, id);
        client.call("DELETE data/renamed", &[], "").ok();
    }
    // The file under its handles can be renamed, and the lock goes along.
    let id = other.open("held", ALL, SHARE_ALL, OPEN, 0).file_id();
    assert_eq!(rename(&mut other, id, "moved"), Status::SUCCESS);
    assert_eq!(other.ask(Command::Write, body::write(id, 0, b"x")).status(), Status::FILE_LOCK_CONFLICT);
}
