//! How many round trips the operations on directories and files take on an engine that must fetch its rows. The budget may be
//! lowered and is never exceeded.

use std::collections::HashSet;
use std::sync::Arc;

use engine::loads::{Budget, NodeState, Tally};
use engine::memory::MemoryEngine;

use crate::Op;
use crate::testing::{Bench, Elsewhere, Script, Then, header, request};

type Ask = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [u8]);

const CREATE: &[(&str, &str)] = &[("x-ms-type", "file"), ("x-ms-content-length", "100000")];
const PLAIN: &[(&str, &str)] = &[];
const UPDATE: &[(&str, &str)] = &[("x-ms-write", "update"), ("x-ms-range", "bytes=0-3")];
const NEXT: &[(&str, &str)] = &[("x-ms-write", "update"), ("x-ms-range", "bytes=4-7")];
const FAR: &[(&str, &str)] = &[("x-ms-write", "update"), ("x-ms-range", "bytes=70000-70003")];
const CLEAR: &[(&str, &str)] = &[("x-ms-write", "clear"), ("x-ms-range", "bytes=0-99999")];
const ACQUIRE: &[(&str, &str)] = &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
const BREAK: &[(&str, &str)] = &[("x-ms-lease-action", "break")];
const SHORTER: &[(&str, &str)] = &[("x-ms-content-length", "10")];
const HANDLE: &[(&str, &str)] = &[("x-ms-handle-id", "*")];
const FROM_FILE: &[(&str, &str)] = &[("x-ms-file-rename-source", "http://127.0.0.1:10003/acct/share/a/b/c/file")];
const COPY: &[(&str, &str)] = &[("x-ms-copy-source", "http://127.0.0.1:10003/acct/share/a/b/c/file")];
const COPY_RANGE: &[(&str, &str)] = &[
    ("x-ms-copy-source", "http://127.0.0.1:10003/acct/share/a/b/c/file"),
    ("x-ms-source-range", "bytes=0-3"),
    ("x-ms-write", "update"),
    ("x-ms-range", "bytes=4-7"),
];
const FROM_DIRECTORY: &[(&str, &str)] = &[("x-ms-file-rename-source", "http://127.0.0.1:10003/acct/share/a/b/empty")];

/// In this order, in a share with the directory `a/b/c`: the request, and its round trips on a node that has just started and on
/// one that knows its way.
const BUDGET: &[(Ask, Budget)] = &[
    (("PUT", "share/a/b/empty?restype=directory", PLAIN, b""), (6, 3)),
    (("GET", "share/a/b/empty?restype=directory", PLAIN, b""), (4, 1)),
    (("GET", "share/a/b/empty?restype=directory&comp=metadata", PLAIN, b""), (4, 1)),
    (("PUT", "share/a/b/empty?restype=directory&comp=properties", PLAIN, b""), (6, 3)),
    (("PUT", "share/a/b/empty?restype=directory&comp=metadata", PLAIN, b""), (6, 3)),
    // The first file in the share: the permission that it inherits is stored, too.
    (("PUT", "share/a/b/c/file", CREATE, b""), (8, 5)),
    (("PUT", "share/a/b/c/other", CREATE, b""), (8, 3)),
    (("PUT", "share/a/b/c/file", CREATE, b"first bytes"), (8, 3)),
    (("HEAD", "share/a/b/c/file", PLAIN, b""), (5, 1)),
    (("GET", "share/a/b/c/file?comp=metadata", PLAIN, b""), (5, 1)),
    // It has another map since it was replaced.
    (("GET", "share/a/b/c/file", PLAIN, b""), (8, 4)),
    (("GET", "share/a/b/c/file", PLAIN, b""), (8, 1)),
    (("PUT", "share/a/b/c/file?comp=range", UPDATE, b"data"), (9, 3)),
    // It is stored with what stands before it.
    (("PUT", "share/a/b/c/file?comp=range", NEXT, b"data"), (10, 4)),
    (("PUT", "share/a/b/c/file?comp=range", FAR, b"data"), (9, 3)),
    (("GET", "share/a/b/c/file?comp=rangelist", PLAIN, b""), (7, 1)),
    (("PUT", "share/a/b/c/file?comp=range", CLEAR, b""), (9, 3)),
    (("PUT", "share/a/b/c/file?comp=properties", PLAIN, b""), (7, 3)),
    (("PUT", "share/a/b/c/file?comp=properties", SHORTER, b""), (9, 4)),
    (("PUT", "share/a/b/c/file?comp=metadata", PLAIN, b""), (7, 3)),
    (("PUT", "share/a/b/c/file?comp=lease", ACQUIRE, b""), (7, 3)),
    (("PUT", "share/a/b/c/file?comp=lease", BREAK, b""), (7, 3)),
    (("GET", "share/a/b/c?restype=directory&comp=list", PLAIN, b""), (5, 1)),
    (("GET", "share/a/b/c/file?comp=listhandles", PLAIN, b""), (5, 1)),
    (("PUT", "share/a/b/c/file?comp=forceclosehandles", HANDLE, b""), (5, 1)),
    // A copy looks at its target, then at its source, and commits with both.
    (("PUT", "share/a/b/c/file?comp=range", UPDATE, b"data"), (9, 3)),
    (("PUT", "share/a/b/c/copy", COPY, b""), (10, 5)),
    (("PUT", "share/a/b/c/copy", COPY, b""), (10, 5)),
    (("PUT", "share/a/b/c/copy?comp=range", COPY_RANGE, b""), (17, 11)),
    (("PUT", "share/a/renamed?comp=rename", FROM_FILE, b""), (7, 3)),
    (("PUT", "share/a/moved?restype=directory&comp=rename", FROM_DIRECTORY, b""), (6, 3)),
    (("DELETE", "share/a/renamed", PLAIN, b""), (5, 3)),
    (("DELETE", "share/a/moved?restype=directory", PLAIN, b""), (6, 4)),
];

const LINK_FILE: &[(&str, &str)] = &[("x-ms-type", "file"), ("x-ms-file-target-file", "a/b/c/file")];
const LINK_TEXT: &[(&str, &str)] = &[("x-ms-link-text", "file")];

/// The same in a share for NFS. What a file with several names costs more is one row that each of them leads to.
const BUDGET_OF_LINKS: &[(Ask, Budget)] = &[
    (("PUT", "share/a/b/c/symbolic?restype=symboliclink", LINK_TEXT, b""), (8, 5)),
    (("GET", "share/a/b/c/symbolic?restype=symboliclink", PLAIN, b""), (5, 1)),
    (("DELETE", "share/a/b/c/symbolic", PLAIN, b""), (7, 3)),
    // A file with one name costs what it costs elsewhere.
    (("PUT", "share/a/b/c/file", CREATE, b""), (8, 3)),
    (("HEAD", "share/a/b/c/file", PLAIN, b""), (5, 1)),
    (("PUT", "share/a/b/c/second?restype=hardlink", LINK_FILE, b""), (7, 3)),
    (("PUT", "share/a/b/c/third?restype=hardlink", LINK_FILE, b""), (8, 4)),
    (("HEAD", "share/a/b/c/file", PLAIN, b""), (6, 1)),
    (("PUT", "share/a/b/c/second?comp=range", UPDATE, b"data"), (10, 6)),
    (("PUT", "share/a/b/c/second?comp=metadata", PLAIN, b""), (8, 3)),
    (("GET", "share/a/b/c?restype=directory&comp=list", PLAIN, b""), (6, 2)),
    (("PUT", "share/a/renamed?comp=rename", FROM_FILE, b""), (8, 3)),
    (("DELETE", "share/a/b/c/third", PLAIN, b""), (8, 4)),
    (("DELETE", "share/a/b/c/second", PLAIN, b""), (8, 3)),
    (("DELETE", "share/a/renamed", PLAIN, b""), (5, 3)),
];

/// In this order, after a snapshot of a file `a/b/c/file`. `TIME` stands for the time of the snapshot.
const SNAPSHOT_BUDGET: &[(Ask, Budget)] = &[
    (("GET", "share/a/b/c/file?sharesnapshot=TIME", PLAIN, b""), (9, 7)),
    (("GET", "share/a/b/c?restype=directory&comp=list&sharesnapshot=TIME", PLAIN, b""), (6, 4)),
    // The first change keeps what the snapshot sees.
    (("PUT", "share/a/b/c/file?comp=range", UPDATE, b"data"), (11, 5)),
    (("PUT", "share/a/b/c/file?comp=range", UPDATE, b"data"), (9, 3)),
    (("PUT", "share/a/b/c/other?comp=metadata", PLAIN, b""), (8, 3)),
    (("PUT", "share/a/b/c/other?comp=metadata", PLAIN, b""), (7, 3)),
    (("GET", "share/a/b/c/file?sharesnapshot=TIME", PLAIN, b""), (9, 5)),
    (("HEAD", "share/a/b/c/file?sharesnapshot=TIME", PLAIN, b""), (6, 4)),
    (("GET", "share/a/b/c?restype=directory&comp=list&sharesnapshot=TIME", PLAIN, b""), (6, 4)),
    (("GET", "share/a/b/c/file?comp=rangelist&prevsharesnapshot=TIME", PLAIN, b""), (12, 5)),
    (("PUT", "share/a/renamed?comp=rename", FROM_FILE, b""), (7, 3)),
    (("DELETE", "share/a/b/c/other", PLAIN, b""), (7, 3)),
];

async fn snapshots_keep_their_budget(state: NodeState) {
    let engine = Arc::new(MemoryEngine::default());
    let mut tally = Tally::new(engine.clone(), state);
    let bench = Bench::over(tally.engine.clone(), engine);
    bench.call("PUT", "share?restype=share", &[], b"").await.unwrap();
    for path in ["a", "a/b", "a/b/c"] {
        bench.mkdir(path).await;
    }
    for name in ["file", "other"] {
        bench.create(&format!("a/b/c/{name}"), 100_000).await;
        bench.write(&format!("a/b/c/{name}"), 0, b"data").await;
    }
    let time = bench.snapshot().await;
    for ((method, url, headers, body), budget) in SNAPSHOT_BUDGET {
        tally.begin();
        let answer = bench.call(method, &url.replace("TIME", &time), headers, body).await;
        tally.end(&format!("{method} {url} {headers:?}"), *budget);
        answer.unwrap_or_else(|failure| panic!("{method} {url}: {failure:?}"));
    }
    tally.assert();
}

#[tokio::test]
async fn snapshots_keep_their_budget_on_a_node_that_has_just_started() {
    snapshots_keep_their_budget(NodeState::JustStarted).await;
}

#[tokio::test]
async fn snapshots_keep_their_budget_on_a_node_that_knows_its_way() {
    snapshots_keep_their_budget(NodeState::KnowsItsWay).await;
}

async fn every_operation_keeps_its_budget(state: NodeState) {
    let placements: [fn(Bench) -> Bench; 2] = [|bench| bench, Bench::among_others];
    for placed in placements {
        budget_is_kept(PLAIN, BUDGET, state, placed).await;
        budget_is_kept(&[("x-ms-enabled-protocols", "NFS")], BUDGET_OF_LINKS, state, placed).await;
    }
}

/// Where one node of many serves SMB, the mark of a share is asked for together with its row.
async fn budget_is_kept(
    share: &[(&str, &str)],
    budget: &[(Ask, Budget)],
    state: NodeState,
    placed: fn(Bench) -> Bench,
) {
    let engine = Arc::new(MemoryEngine::default());
    let mut tally = Tally::new(engine.clone(), state);
    let bench = placed(Bench::over(tally.engine.clone(), engine));
    bench.call("PUT", "share?restype=share", share, b"").await.unwrap();
    for path in ["a", "a/b", "a/b/c"] {
        bench.mkdir(path).await;
    }
    for ((method, url, headers, body), budget) in budget {
        tally.begin();
        let answer = bench.call(method, url, headers, body).await;
        tally.end(&format!("{method} {url} {headers:?}"), *budget);
        answer.unwrap_or_else(|failure| panic!("{method} {url}: {failure:?}"));
    }
    tally.assert();
}

#[tokio::test]
async fn every_operation_keeps_its_budget_on_a_node_that_has_just_started() {
    every_operation_keeps_its_budget(NodeState::JustStarted).await;
}

#[tokio::test]
async fn every_operation_keeps_its_budget_on_a_node_that_knows_its_way() {
    every_operation_keeps_its_budget(NodeState::KnowsItsWay).await;
}

/// Abort Copy File needs a copy that is under way, and its id.
#[tokio::test]
async fn an_abort_keeps_its_budget() {
    for state in [NodeState::JustStarted, NodeState::KnowsItsWay] {
        let engine = Arc::new(MemoryEngine::default());
        let mut tally = Tally::new(engine.clone(), state);
        let elsewhere = Arc::new(Elsewhere::default());
        let stalled = Script { length: 1_000, then: Then::Stall, ..Script::of(b"begin") };
        elsewhere.0.lock().unwrap().insert("http://a/x", stalled);
        let bench = Bench::over(tally.engine.clone(), engine).reaching(elsewhere);
        bench.call("PUT", "share?restype=share", &[], b"").await.unwrap();
        let begun = bench.call("PUT", "share/file", &[("x-ms-copy-source", "http://a/x")], b"").await.unwrap();
        let url = format!("share/file?comp=copy&copyid={}", header(&begun, "x-ms-copy-id").unwrap());
        tally.begin();
        let answer = bench.call("PUT", &url, &[("x-ms-copy-action", "abort")], b"").await;
        tally.end("abort", (5, 4));
        answer.unwrap();
        tally.assert();
    }
}

#[test]
fn every_operation_on_files_has_a_budget() {
    let all = BUDGET.iter().chain(BUDGET_OF_LINKS);
    let named = all.map(|((method, url, headers, _), _)| Op::named_by(&request(method, url, headers)).unwrap());
    let budgeted: HashSet<Op> = named.chain([Op::AbortCopyFile]).collect();
    let first = Op::ALL.iter().position(|op| *op == Op::CreateDirectory).unwrap();
    let missing: Vec<&Op> = Op::ALL[first..].iter().filter(|op| !budgeted.contains(op)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
