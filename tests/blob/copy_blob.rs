//! Copy Blob within the server; for copies from elsewhere see [`crate::abort_copy_blob`].

use crate::harness::{Answer, Headers, Table};
use crate::stage::{A, BLOCK_BLOB, Stage, block_list};

fn copy(stage: &Stage, to: &str, from: &str, headers: Headers<'_>) -> Answer {
    stage.take(&format!("PUT {to}"), &stage.client.url(from), headers)
}

#[test]
fn a_copy_is_what_its_source_was_and_stays_so() {
    let stage = Stage::new();
    stage.put_block("cont/source", "AAAA", vec![1; 70_000]);
    stage.put_block("cont/source", "BBBB", vec![2; 50_000]);
    let list = block_list(&[("Latest", "AAAA"), ("Latest", "BBBB")]);
    let headers =
        [("x-ms-blob-content-type", "text/plain"), ("x-ms-blob-cache-control", "no-store"), ("x-ms-meta-a", "1")];
    stage.call("PUT cont/source?comp=blocklist", &headers, list).ok();
    stage.put_block("cont/source", "CCCC", "waiting");
    stage.acquire("cont/source", A, "15");
    let content = stage.get("cont/source").ok().body;
    let made = copy(&stage, "cont/blob", "cont/source", &[]).ok();
    assert_eq!((made.status, made.header("x-ms-copy-status")), (202, Some("success")));
    let told = stage.head("cont/blob").ok();
    assert_eq!((told.etag(), told.header("x-ms-copy-id")), (made.etag(), made.header("x-ms-copy-id")));
    assert_eq!((told.header("content-type"), told.header("cache-control")), (Some("text/plain"), Some("no-store")));
    assert_eq!((told.header("x-ms-meta-a"), told.header("x-ms-lease-state")), (Some("1"), Some("available")));
    assert_eq!(told.header("x-ms-copy-source"), Some(&*stage.client.url("cont/source")));
    assert_eq!(told.header("x-ms-copy-progress"), Some("120000/120000"));
    let blocks = stage.get("cont/blob?comp=blocklist&blocklisttype=all").xml();
    let names: Vec<_> =
        blocks.all("CommittedBlocks").iter().map(|block| block.text_of("Name").unwrap_or_default()).collect();
    assert_eq!((names, blocks.all("UncommittedBlocks")), (vec!["AAAA".to_owned(), "BBBB".to_owned()], &[][..]));

    // Whatever becomes of the source.
    stage.call("PUT cont/source", &[BLOCK_BLOB, ("x-ms-lease-id", A)], "other").ok();
    stage.call("DELETE cont/source", &[("x-ms-lease-id", A)], "").ok();
    stage.server.advance(3_600);
    stage.put_elsewhere();
    assert_eq!(stage.get("cont/blob").ok().body, content);
    // And the copy can be changed like any blob: a block of it stays, one is new.
    stage.put_block("cont/blob", "DDDD", "new");
    let list = block_list(&[("Committed", "BBBB"), ("Latest", "DDDD")]);
    stage.call("PUT cont/blob?comp=blocklist", &[], list).ok();
    assert_eq!(stage.get("cont/blob").ok().body, [&content[70_000..], b"new"].concat());
    // A copy of a container that is deleted, too.
    stage.call("PUT gone?restype=container", &[], "").ok();
    stage.put("gone/source", "kept");
    copy(&stage, "cont/kept", "gone/source", &[]).ok();
    stage.call("DELETE gone?restype=container", &[], "").ok();
    stage.server.advance(3_600);
    stage.put_elsewhere();
    assert_eq!(stage.get("cont/kept").ok().body, b"kept");
}

#[test]
fn what_the_request_says_instead() {
    let stage = Stage::new();
    stage.call("PUT cont/source", &[BLOCK_BLOB, ("x-ms-meta-a", "1"), ("x-ms-tags", "t=1")], "x").ok();
    let told = |blob: &str, headers: Headers<'_>| {
        copy(&stage, blob, "cont/source", headers).ok();
        let told = stage.head(blob).ok();
        let text = |name: &str| told.header(name).unwrap_or("-").to_owned();
        [text("x-ms-meta-a"), text("x-ms-meta-b"), text("x-ms-access-tier"), text("x-ms-tag-count")].join(" ")
    };
    let mut table = Table::new("copy_blob says");
    table.row("nothing", told("cont/1", &[]), "1 - Hot -");
    table.row("metadata", told("cont/2", &[("x-ms-meta-b", "2")]), "- 2 Hot -");
    table.row("a tier", told("cont/3", &[("x-ms-access-tier", "Cool")]), "1 - Cool -");
    table.row("the tier that was there", told("cont/3", &[]), "1 - Cool -");
    table.row("tags", told("cont/4", &[("x-ms-tags", "a=1&b=2")]), "1 - Hot 2");
    // Onto itself: nothing is lost but what was waiting.
    stage.put_block("cont/1", "AAAA", "waiting");
    copy(&stage, "cont/1", "cont/1", &[("x-ms-meta-b", "3")]).ok();
    let blocks = stage.get("cont/1?comp=blocklist&blocklisttype=uncommitted").xml();
    assert_eq!((stage.get("cont/1").ok().body, blocks.all("UncommittedBlocks")), (b"x".to_vec(), &[][..]));
}

#[test]
fn an_archived_source_is_rehydrated_for_its_copy() {
    let stage = Stage::new();
    let archive = ("x-ms-access-tier", "Archive");
    stage.call("PUT cont/source", &[BLOCK_BLOB, archive], "hello").ok();
    let url = stage.readable("cont/source");
    let take = |headers: &[(&str, &str)]| stage.take("PUT cont/copy", &url, headers);
    let hot = ("x-ms-access-tier", "Hot");
    let mut table = Table::new("copy_blob: archived");
    table.row("nowhere", take(&[]).said(), "409 BlobArchived");
    table.row("to the archive", take(&[archive]).said(), "409 BlobArchived");
    table.row("stale and nowhere", take(&[("if-match", "\"0x1\"")]).said(), "412 ConditionNotMet");
    let sync = take(&[hot, ("x-ms-requires-sync", "true")]);
    table.row("within the request", sync.said(), "409 CannotVerifyCopySource");
    let source_code = sync.header("x-ms-copy-source-error-code").unwrap_or_default().to_owned();
    table.row("within the request", source_code, "BlobArchived");
    table.row("put", take(&[hot, BLOCK_BLOB]).said(), "409 CannotVerifyCopySource");
    table.row("in what hurry", take(&[hot, ("x-ms-rehydrate-priority", "x")]).said(), "400 InvalidHeaderValue");
    table.row("nothing was made", stage.get("cont/copy").said(), "404 BlobNotFound");
    let made = take(&[hot, ("x-ms-rehydrate-priority", "High")]).ok();
    table.row("status", made.header("x-ms-copy-status").unwrap_or_default(), "pending");
    let told = stage.head("cont/copy").ok();
    table.row("on its way", told.header("x-ms-archive-status").unwrap_or_default(), "rehydrate-pending-to-hot");
    table.row("progress", told.header("x-ms-copy-progress").unwrap_or_default(), "0/5");
    table.row("read", stage.get("cont/copy").said(), "409 BlobArchived");
    table.row("write", stage.call("PUT cont/copy", &[BLOCK_BLOB], "x").said(), "409 PendingCopyOperation");
    stage.server.advance(3_600);
    let copied = stage.get("cont/copy").ok();
    assert_eq!(copied.body, b"hello");
    table.row("done", copied.header("x-ms-copy-status").unwrap_or_default(), "success");
    table.row("tier", copied.header("x-ms-access-tier").unwrap_or_default(), "Hot");
    table.row("the source", stage.get("cont/source").said(), "409 BlobArchived");
}

#[test]
fn types_stay_apart() {
    let stage = Stage::new();
    stage.put("cont/block", "x");
    stage.put_append("cont/append", "xy");
    stage.put_pages("cont/page", 1_024);
    let mut table = Table::new("copy_blob types");
    for from in ["block", "append", "page"] {
        for to in ["block", "append", "page"] {
            let said = copy(&stage, &format!("cont/{to}"), &format!("cont/{from}"), &[]).said();
            table.row(format!("{from} to {to}"), said, if from == to { "202" } else { "409 InvalidBlobType" });
        }
        copy(&stage, &format!("cont/new-{from}"), &format!("cont/{from}"), &[]).ok();
        let (is, was) = (stage.head(&format!("cont/new-{from}")), stage.head(&format!("cont/{from}")));
        assert_eq!(is.header("x-ms-blob-type"), was.header("x-ms-blob-type"));
        assert_eq!(is.header("content-length"), was.header("content-length"));
    }
    // An append blob and its copy grow apart.
    stage.call("PUT cont/append?comp=appendblock", &[], "old").ok();
    stage.call("PUT cont/new-append?comp=appendblock", &[], "new").ok();
    assert_eq!(stage.get("cont/append").ok().body, b"xyold");
    assert_eq!(stage.get("cont/new-append").ok().body, b"xynew");
}

/// An earlier state becomes the blob again.
#[test]
fn snapshots_and_versions_are_promoted() {
    let stage = Stage::with_settings("versioning = true");
    let id = |answer: Answer, name: &str| answer.header(name).expect("an id").to_owned();
    let first = id(stage.put("cont/blob", "first"), "x-ms-version-id");
    let snapshot = id(stage.call("PUT cont/blob?comp=snapshot", &[], "").ok(), "x-ms-snapshot");
    let second = id(stage.put("cont/blob", "second"), "x-ms-version-id");
    let promoted = copy(&stage, "cont/blob", &format!("cont/blob?versionid={first}"), &[]).ok();
    let promoted = id(promoted, "x-ms-version-id");
    assert_eq!(stage.get("cont/blob").ok().body, b"first");
    assert!(first < second && second < promoted, "{first} {second} {promoted}");
    assert_eq!(stage.get(&format!("cont/blob?versionid={second}")).ok().body, b"second");
    stage.put("cont/blob", "third");
    copy(&stage, "cont/blob", &format!("cont/blob?snapshot={snapshot}"), &[]).ok();
    assert_eq!(stage.get("cont/blob").ok().body, b"first");
    // And after the versions themselves are gone.
    for version in [&first, &second] {
        stage.call(&format!("DELETE cont/blob?versionid={version}"), &[], "").ok();
    }
    stage.server.advance(3_600);
    stage.put_elsewhere();
    assert_eq!(stage.get("cont/blob").ok().body, b"first");
    let gone = copy(&stage, "cont/blob", &format!("cont/blob?versionid={first}"), &[]);
    assert_eq!(gone.said(), "404 CannotVerifyCopySource");
    let onto = copy(&stage, &format!("cont/blob?snapshot={snapshot}"), "cont/blob", &[]);
    assert_eq!(onto.status, 400);
}

/// A lease must not end while a copy goes on, so that one for a time is not enough.
#[test]
fn leases_of_the_destination() {
    let stage = Stage::new();
    stage.put("cont/source", "new");
    let mut table = Table::new("copy_blob leases");
    for (duration, headers, expected) in [
        ("-1", &[][..], "412 LeaseIdMissing"),
        ("-1", &[("x-ms-lease-id", A)], "202"),
        ("15", &[], "412 LeaseIdMissing"),
        ("15", &[("x-ms-lease-id", A)], "412 InfiniteLeaseDurationRequired"),
        ("15", &[("x-ms-lease-id", A), ("x-ms-requires-sync", "true")], "202"),
    ] {
        let what = format!("{duration} {headers:?}");
        stage.put("cont/blob", "old");
        stage.acquire("cont/blob", A, duration);
        let said = stage.take("PUT cont/blob", &stage.readable("cont/source"), headers).said();
        let content = if said == "202" { "new" } else { "old" };
        assert_eq!(stage.get("cont/blob").ok().body, content.as_bytes(), "{what}");
        assert_eq!(stage.lease_state("cont/blob"), "leased", "{what}");
        table.row(what, said, expected);
        stage.call("DELETE cont/blob", &[("x-ms-lease-id", A)], "").ok();
    }
}
