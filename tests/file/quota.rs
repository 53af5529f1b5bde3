//! The quota of a share: exact to the byte.

use std::sync::Barrier;
use std::thread;

use crate::harness::Table;
use crate::stage::{GIB, MIB, Stage};

const FULL: &str = "403 ShareSizeLimitReached";

/// A share of 1 GiB.
fn stage() -> Stage {
    let stage = Stage::new();
    set(&stage, 1);
    stage
}

fn set(stage: &Stage, gib: u64) {
    stage.call("PUT share?restype=share&comp=properties", &[("x-ms-share-quota", &gib.to_string())], "").ok();
}

#[test]
fn to_the_byte() {
    let stage = stage();
    let mut table = Table::new("quota: to the byte");
    let create = |name: &str, length| stage.create_file(&format!("share/{name}"), length, &[]).said();
    table.row("one byte too many", create("a", GIB + 1), FULL);
    table.row("all of it", create("a", GIB), "201");
    table.row("one more byte", create("b", 1), FULL);
    table.row("an empty file", create("b", 0), "201");
    table.row("it grows", stage.resize("share/b", 1).said(), FULL);
    table.row("the large one grows", stage.resize("share/a", GIB + 1).said(), FULL);
    table.row("written inside", stage.put_range("share/a", GIB - 3, "end", &[]).said(), "201");
    table.row("cleared inside", stage.clear("share/a", 0, GIB - 1).said(), "201");
    table.row("the same again", create("a", GIB), "201");
    table.row("anew, too large", create("a", GIB + 1), FULL);
    table.row("usage", stage.usage("share"), GIB);
    table.row("one byte less", stage.resize("share/a", GIB - 1).said(), "200");
    table.row("now there is room", stage.resize("share/b", 1).said(), "200");
    table.row("for one", stage.resize("share/b", 2).said(), FULL);
    table.row("a directory", stage.call("PUT share/dir?restype=directory", &[], "").said(), "201");
    table.row("renamed", stage.rename_file("share/b", "share/dir/b", &[]).said(), "200");
    table.row("deleted", stage.delete("share/a").said(), "202");
    table.row("usage then", stage.usage("share"), 1);
    table.row("room again", create("a", GIB - 1), "201");
    table.row("and no more", create("c", 1), FULL);
}

/// A quota below the usage takes nothing away: only what grows is refused.
#[test]
fn lowered_below_the_usage() {
    let stage = Stage::new();
    stage.make_file("share/a", 3 * GIB);
    stage.make_file("share/b", 10);
    set(&stage, 1);
    let mut table = Table::new("quota: lowered");
    table.row("shown", stage.head("share?restype=share").header("x-ms-share-quota").unwrap_or("none"), "1");
    table.row("usage", stage.usage("share"), 3 * GIB + 10);
    table.row("an empty file", stage.create_file("share/c", 0, &[]).said(), "201");
    table.row("one with a length", stage.create_file("share/d", 1, &[]).said(), FULL);
    table.row("it grows", stage.resize("share/b", 11).said(), FULL);
    table.row("it is written", stage.put_range("share/b", 0, "0123456789", &[]).said(), "201");
    table.row("it shrinks", stage.resize("share/b", 9).said(), "200");
    table.row("it keeps its length", stage.resize("share/b", 9).said(), "200");
    table.row("not back again", stage.resize("share/b", 10).said(), FULL);
    table.row("anew, shorter", stage.create_file("share/b", 8, &[]).said(), "201");
    table.row("anew, longer", stage.create_file("share/b", 9, &[]).said(), FULL);
    table.row("the large one shrinks", stage.resize("share/a", 2 * GIB).said(), "200");
    table.row("still over", stage.create_file("share/d", 1, &[]).said(), FULL);
    let replace = [("x-ms-file-rename-replace-if-exists", "true")];
    table.row("over the large one", stage.rename_file("share/b", "share/a", &replace).said(), "200");
    table.row("room again", stage.create_file("share/d", GIB - 8, &[]).said(), "201");
    table.row("all of it", stage.create_file("share/e", 1, &[]).said(), FULL);
    set(&stage, 2);
    table.row("more by a setting", stage.create_file("share/e", GIB, &[]).said(), "201");
}

/// A file is judged by its lease before the quota is, and what is refused leaves all as it was.
#[test]
fn two_faults() {
    let stage = stage();
    stage.make_file("share/file", 10);
    stage.acquire("share/file", crate::stage::A, "-1");
    let before = stage.everything();
    let mut table = Table::new("quota: two faults");
    table.row("leased", stage.resize("share/file", GIB + 1).said(), "412 LeaseIdMissing");
    let created = stage.create_file("share/none/file", GIB + 1, &[]);
    table.row("no parent", created.said(), "404 ParentNotFound");
    let mine = [("x-ms-lease-id", crate::stage::A), ("x-ms-content-length", "1073741825")];
    table.row("mine, too large", stage.call("PUT share/file?comp=properties", &mine, "").said(), FULL);
    assert_eq!(stage.everything(), before);
}

/// However many come at once: so many fit, and no more.
#[test]
fn sixteen_at_once() {
    const CLIENTS: u64 = 16;
    let stage = stage();
    for round in 0..10 {
        let barrier = Barrier::new(CLIENTS as usize);
        let said: Vec<String> = thread::scope(|scope| {
            let asking: Vec<_> = (0..CLIENTS)
                .map(|number| {
                    let (client, barrier) = (stage.server.client(), &barrier);
                    scope.spawn(move || {
                        let length = (128 * MIB).to_string();
                        barrier.wait();
                        let headers = [crate::stage::FILE, (crate::stage::LENGTH, length.as_str())];
                        client.call(&format!("PUT share/{number}"), &headers, "").said()
                    })
                })
                .collect();
            asking.into_iter().map(|asked| asked.join().expect("an answer")).collect()
        });
        let done = said.iter().filter(|said| *said == "201").count();
        let refused = said.iter().filter(|said| *said == FULL).count();
        assert_eq!((done, refused), (8, 8), "round {round}: {said:?}");
        assert_eq!(stage.usage("share"), GIB);
        for number in 0..CLIENTS {
            let _ = stage.delete(&format!("share/{number}"));
        }
        assert_eq!(stage.usage("share"), 0);
    }
}
