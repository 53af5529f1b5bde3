//! Abort Copy Blob, and what there is to abort: a copy from elsewhere that is under way.

use std::time::{Duration, Instant};

use crate::harness::Elsewhere;
use crate::harness::{Answer, Headers, Table};
use crate::stage::{A, APPEND_BLOB, B, BLOCK_BLOB, PAGE_BLOB, Stage};

const KIB: usize = 1024;
const PATIENCE: Duration = Duration::from_secs(60);

fn content() -> Vec<u8> {
    (0..100 * KIB).map(|at| (at / 7 % 251) as u8).collect()
}

/// A source that gives 40 of its 100 KiB.
fn stalled(headers: Headers<'_>) -> Elsewhere {
    Elsewhere::start(content(), 40 * KIB, headers)
}

#[track_caller]
fn begin(stage: &Stage, source: &Elsewhere, headers: Headers<'_>) -> String {
    let begun = stage.take("PUT cont/blob", &source.url(), headers).ok();
    assert_eq!((begun.status, begun.header("x-ms-copy-status")), (202, Some("pending")));
    begun.header("x-ms-copy-id").expect("an id").to_owned()
}

/// Waits for something to be said of the blob, and lets the time of the server pass meanwhile.
#[track_caller]
fn wait_for(stage: &Stage, is_said: impl Fn(&Answer) -> bool) -> Answer {
    let began = Instant::now();
    loop {
        let told = stage.head("cont/blob").ok();
        if is_said(&told) {
            return told;
        }
        assert!(began.elapsed() < PATIENCE, "{:?}", told.headers);
        stage.server.advance(1);
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn status(told: &Answer) -> &str {
    told.header("x-ms-copy-status").unwrap_or("none")
}

/// How much has come, of how much.
fn progress(told: &Answer) -> (usize, usize) {
    let (done, total) = told.header("x-ms-copy-progress").and_then(|text| text.split_once('/')).expect("a progress");
    (done.parse().expect("a number"), total.parse().expect("a number"))
}

fn abort(stage: &Stage, id: &str, headers: Headers<'_>) -> Answer {
    let headers = [&[("x-ms-copy-action", "abort")], headers].concat();
    stage.call(&format!("PUT cont/blob?comp=copy&copyid={id}"), &headers, "")
}

#[test]
fn a_copy_under_way_is_seen_and_stands_against_changes() {
    let stage = Stage::new();
    stage.put("cont/other", "other");
    let source = stalled(&[("content-type", "text/plain"), ("x-ms-meta-a", "1")]);
    let id = begin(&stage, &source, &[]);
    // A quarter of what has come may not have been told yet.
    let told = wait_for(&stage, |told| progress(told).0 >= 30 * KIB);
    assert!(progress(&told).0 <= 40 * KIB, "{:?}", progress(&told));
    assert_eq!((progress(&told).1, status(&told)), (100 * KIB, "pending"));
    assert_eq!((told.header("x-ms-copy-id"), told.header("x-ms-copy-source")), (Some(&*id), Some(&*source.url())));
    assert_eq!((told.header("content-length"), told.header("x-ms-copy-completion-time")), (Some("0"), None));
    assert_eq!(stage.get("cont/blob").ok().body, b"");
    let listed = stage.get("cont?restype=container&comp=list&include=copy&prefix=blob").xml();
    assert_eq!(listed.all("Blobs")[0].text_of("Properties/CopyStatus").as_deref(), Some("pending"));

    let other = stage.client.url("cont/other");
    let copy = ("x-ms-copy-source", other.as_str());
    let readable = stage.readable("cont/other");
    let from_url = ("x-ms-copy-source", readable.as_str());
    let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    let tags = "<Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>";
    #[rustfmt::skip]
    let rows: &[(&str, &str, Headers<'_>, &str)] = &[
        ("Put Blob",            "PUT cont/blob", &[BLOCK_BLOB], "new"),
        ("Put Blob, page",      "PUT cont/blob", &[PAGE_BLOB, ("x-ms-blob-content-length", "512")], ""),
        ("Put Blob, append",    "PUT cont/blob", &[APPEND_BLOB], ""),
        ("Put Blob From URL",   "PUT cont/blob", &[BLOCK_BLOB, from_url], ""),
        ("Copy Blob",           "PUT cont/blob", &[copy], ""),
        ("Copy Blob From URL",  "PUT cont/blob", &[from_url, ("x-ms-requires-sync", "true")], ""),
        ("Put Block",           "PUT cont/blob?comp=block&blockid=AAAA", &[], "new"),
        ("Put Block From URL",  "PUT cont/blob?comp=block&blockid=AAAA", &[from_url], ""),
        ("Put Block List",      "PUT cont/blob?comp=blocklist", &[], "<BlockList/>"),
        ("Set Blob Metadata",   "PUT cont/blob?comp=metadata", &[], ""),
        ("Set Blob Properties", "PUT cont/blob?comp=properties", &[], ""),
        ("Set Blob Tags",       "PUT cont/blob?comp=tags", &[], tags),
        ("Set Blob Tier",       "PUT cont/blob?comp=tier", &[("x-ms-access-tier", "Cool")], ""),
        ("Snapshot Blob",       "PUT cont/blob?comp=snapshot", &[], ""),
        ("Lease Blob",          "PUT cont/blob?comp=lease", &lease, ""),
        ("Delete Blob",         "DELETE cont/blob", &[], ""),
    ];
    let mut table = Table::new("pending copy");
    for (what, line, headers, body) in rows {
        table.row(what, stage.call(line, headers, body).said(), "409 PendingCopyOperation");
    }
    // Its bytes are nobody's source yet.
    let from_it = stage.take("PUT cont/second", &stage.client.url("cont/blob"), &[]);
    table.row("as a source", from_it.said(), "409 CannotVerifyCopySource");
    drop(table);
    assert_eq!(status(&stage.head("cont/blob")), "pending");

    source.open();
    let done = wait_for(&stage, |told| status(told) != "pending");
    assert_eq!((status(&done), progress(&done)), ("success", (100 * KIB, 100 * KIB)));
    assert_ne!(done.etag(), told.etag());
    assert_eq!((done.header("content-type"), done.header("x-ms-meta-a")), (Some("text/plain"), Some("1")));
    assert!(done.header("x-ms-copy-completion-time").is_some());
    assert_eq!(stage.get("cont/blob").ok().body, content());
    assert_eq!(source.requests(), 1);
    assert_eq!(abort(&stage, &id, &[]).said(), "409 NoPendingCopyOperation");
}

#[test]
fn what_is_aborted_is_empty() {
    let stage = Stage::new();
    stage.put("cont/blob", "before");
    stage.acquire("cont/blob", A, "-1");
    let source = stalled(&[]);
    let mut table = Table::new("abort");
    table.row("a copy without the lease", stage.take("PUT cont/blob", &source.url(), &[]).said(), "412 LeaseIdMissing");
    let lease = ("x-ms-lease-id", A);
    let id = begin(&stage, &source, &[lease, ("x-ms-meta-kept", "1")]);
    #[rustfmt::skip]
    let rows: &[(&str, &str, Headers<'_>, &str)] = &[
        ("no lease id",                      &id, &[], "412 LeaseIdMissing"),
        ("another's lease id",               &id, &[("x-ms-lease-id", B)], "412 LeaseIdMismatchWithBlobOperation"),
        ("another copy",                     B,   &[lease], "409 CopyIdMismatch"),
        ("another copy and no lease id",     B,   &[], "412 LeaseIdMissing"),
        ("no copy id",                       "x", &[lease], "400 InvalidQueryParameterValue"),
    ];
    for (what, id, headers, expected) in rows {
        table.row(what, abort(&stage, id, headers).said(), expected);
        assert_eq!(status(&stage.head("cont/blob")), "pending", "{what}");
    }
    let said = stage.call(&format!("PUT cont/blob?comp=copy&copyid={id}"), &[lease], "").said();
    table.row("no action", said, "400 MissingRequiredHeader");
    let none = stage.call(&format!("PUT cont/none?comp=copy&copyid={id}"), &[("x-ms-copy-action", "abort")], "");
    table.row("no blob", none.said(), "404 BlobNotFound");

    table.row("with the lease id", abort(&stage, &id, &[lease]).said(), "204");
    let told = stage.head("cont/blob").ok();
    assert_eq!((status(&told), told.header("content-length")), ("aborted", Some("0")));
    assert_eq!((told.header("x-ms-meta-kept"), told.header("x-ms-lease-state")), (Some("1"), Some("leased")));
    table.row("again", abort(&stage, &id, &[lease]).said(), "409 NoPendingCopyOperation");
    // Nothing of it comes later.
    source.open();
    stage.server.advance(30);
    stage.put_elsewhere();
    assert_eq!(stage.get("cont/blob").ok().body, b"");
    stage.call("PUT cont/blob", &[BLOCK_BLOB, lease], "after").ok();
    assert_eq!(stage.get("cont/blob").ok().body, b"after");
}

/// What becomes of a source while the server is dead, and so of the copy.
#[test]
fn a_killed_server_goes_on_or_says_that_it_failed() {
    type Fate = fn(&Elsewhere);
    let fates: [(&str, Fate, &str); 3] = [
        ("is as it was", Elsewhere::open, "success"),
        ("has changed", |source| (source.change_content(), source.open()).1, "failed"),
        ("is gone", Elsewhere::leave, "failed"),
    ];
    for kind in ["BlockBlob", "AppendBlob"] {
        for (what, fate, expected) in fates {
            let mut stage = Stage::new();
            let source = stalled(&[("x-ms-blob-type", kind)]);
            begin(&stage, &source, &[]);
            wait_for(&stage, |told| progress(told).0 > 0);
            stage.server.kill_and_restart();
            stage.client = stage.server.client();
            assert_eq!(stage.get("cont/blob").ok().body, b"", "{kind} {what}");
            fate(&source);
            let told = wait_for(&stage, |told| {
                // Never half.
                let seen = stage.get("cont/blob").ok().body;
                assert!(seen.is_empty() || seen == content(), "{kind} {what}: {} bytes", seen.len());
                status(told) != "pending"
            });
            assert_eq!(status(&told), expected, "{kind} {what}");
            assert!(source.requests() > 1);
            let whole = if expected == "success" { content() } else { Vec::new() };
            assert_eq!(stage.get("cont/blob").ok().body, whole, "{kind} {what}");
            assert_eq!(told.header("x-ms-copy-status-description").is_some(), expected == "failed");
            // It can be written again either way.
            stage.call("DELETE cont/blob", &[], "").ok();
        }
    }
}

/// Pages come one by one before everybody's eyes, and all of them in the end.
#[test]
fn pages_from_elsewhere() {
    let mut stage = Stage::new();
    let source = stalled(&[("x-ms-blob-type", "PageBlob"), ("x-ms-blob-sequence-number", "7")]);
    let id = begin(&stage, &source, &[]);
    let told = stage.head("cont/blob").ok();
    assert_eq!((told.header("content-length"), told.header("x-ms-blob-type")), (Some("102400"), Some("PageBlob")));
    stage.server.kill_and_restart();
    stage.client = stage.server.client();
    let update = [("x-ms-page-write", "update"), ("range", "bytes=0-511")];
    assert_eq!(stage.call("PUT cont/blob?comp=page", &update, [1; 512]).said(), "409 PendingCopyOperation");
    source.open();
    let done = wait_for(&stage, |told| status(told) != "pending");
    assert_eq!((status(&done), done.header("x-ms-blob-sequence-number")), ("success", Some("7")));
    assert_eq!(done.header("x-ms-copy-id"), Some(&*id));
    assert_eq!(stage.get("cont/blob").ok().body, content());
}
