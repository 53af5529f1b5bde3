//! Snapshot Blob.

use crate::harness::{Headers, Table};
use crate::stage::{A, BLOCK_BLOB, Stage};

const URL: &str = "PUT cont/blob?comp=snapshot";

fn snapshot(stage: &Stage) -> String {
    stage.call(URL, &[], "").ok().header("x-ms-snapshot").expect("an id").to_owned()
}

#[test]
fn a_snapshot_stays_as_the_blob_was() {
    let stage = Stage::new();
    let headers = [BLOCK_BLOB, ("x-ms-blob-content-type", "text/plain"), ("x-ms-meta-a", "1")];
    let put = stage.call("PUT cont/blob", &headers, "first").ok();
    stage.put_block("cont/blob", "AAAA", "waiting");
    stage.acquire("cont/blob", A, "-1");
    let id = snapshot(&stage);
    assert_eq!((id.len(), &id[19..20]), (28, "."), "{id}");
    let target = format!("cont/blob?snapshot={id}");
    stage.server.advance(5);
    stage.call("PUT cont/blob", &[BLOCK_BLOB, ("x-ms-lease-id", A)], "second").ok();
    let told = stage.get(&target).ok();
    assert_eq!(told.body, b"first");
    // Without metadata of its own it keeps the version of the blob.
    assert_eq!((told.etag(), told.last_modified()), (put.etag(), put.last_modified()));
    assert_eq!((told.header("content-type"), told.header("x-ms-meta-a")), (Some("text/plain"), Some("1")));
    // Neither the lease nor what was waiting went along.
    assert_eq!((told.header("x-ms-lease-state"), told.header("x-ms-lease-status")), (None, None));
    let list = stage.get(&format!("{target}&comp=blocklist&blocklisttype=all")).xml();
    assert_eq!(list.all("UncommittedBlocks"), []);
}

#[test]
fn metadata_of_its_own_makes_a_version_of_its_own() {
    let stage = Stage::new();
    stage.call("PUT cont/blob", &[BLOCK_BLOB, ("x-ms-meta-a", "1"), ("x-ms-meta-b", "2")], "x").ok();
    let base = stage.head("cont/blob");
    stage.server.advance(5);
    let made = stage.call(URL, &[("x-ms-meta-a", "9")], "").ok();
    let id = made.header("x-ms-snapshot").expect("an id").to_owned();
    let told = stage.head(&format!("cont/blob?snapshot={id}")).ok();
    assert_eq!((told.header("x-ms-meta-a"), told.header("x-ms-meta-b")), (Some("9"), None));
    assert_ne!((told.etag(), told.last_modified()), (base.etag(), base.last_modified()));
    assert_eq!((made.etag(), made.last_modified()), (told.etag(), told.last_modified()));
    assert_eq!(stage.head("cont/blob").etag(), base.etag());
    assert_eq!(stage.head("cont/blob").header("x-ms-meta-b"), Some("2"));
}

#[test]
fn no_two_have_the_same_id() {
    let stage = Stage::new();
    stage.put("cont/blob", "x");
    let ids: Vec<String> = (0..20).map(|_| snapshot(&stage)).collect();
    assert!(ids.is_sorted_by(|left, right| left < right), "{ids:?}");
}

/// What a snapshot refuses, being what it is.
#[test]
fn a_snapshot_cannot_be_written() {
    let stage = Stage::new();
    stage.put("cont/blob", "x");
    let id = snapshot(&stage);
    let target = format!("cont/blob?snapshot={id}");
    let before = stage.everything();
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    #[rustfmt::skip]
    let rows: &[(&str, String, Headers<'_>, &str)] = &[
        ("Put Blob",            format!("PUT {target}"), &[BLOCK_BLOB], "new"),
        ("Set Blob Metadata",   format!("PUT {target}&comp=metadata"), &[("x-ms-meta-a", "1")], ""),
        ("Set Blob Properties", format!("PUT {target}&comp=properties"), &[], ""),
        ("Put Block",           format!("PUT {target}&comp=block&blockid=AAAA"), &[], "new"),
        ("Put Block List",      format!("PUT {target}&comp=blocklist"), &[], "<BlockList/>"),
        ("Lease Blob",          format!("PUT {target}&comp=lease"), &acquire, ""),
        ("Snapshot Blob",       format!("PUT {target}&comp=snapshot"), &[], ""),
    ];
    let mut table = Table::new("snapshot_blob writes");
    for (what, line, headers, body) in rows {
        table.row(what, stage.call(line, headers, body).status, 400);
        assert_eq!(stage.everything(), before, "{what}");
    }
    let both = stage.call(&format!("DELETE {target}"), &[("x-ms-delete-snapshots", "only")], "");
    table.row("Delete Blob with its snapshots", both.said(), "400 InvalidOperation");
    assert_eq!(stage.everything(), before);
}

#[test]
fn refusals() {
    let stage = Stage::new();
    stage.put("cont/blob", "x");
    stage.put_block("cont/staged", "AAAA", "x");
    let long = "x".repeat(8 * 1024);
    let before = stage.everything();
    #[rustfmt::skip]
    let rows: &[(&str, &str, Headers<'_>, &str)] = &[
        ("no blob",             "PUT cont/none?comp=snapshot",   &[], "404 BlobNotFound"),
        ("no committed blob",   "PUT cont/staged?comp=snapshot", &[], "404 BlobNotFound"),
        ("no container",        "PUT none/blob?comp=snapshot",   &[], "404 ContainerNotFound"),
        ("bad metadata",        URL, &[("x-ms-meta-1", "x")], "400 InvalidMetadata"),
        ("too much metadata",   URL, &[("x-ms-meta-a", &long)], "400 MetadataTooLarge"),
        ("lease id no GUID",    URL, &[("x-ms-lease-id", "x")], "400 InvalidHeaderValue"),
        ("stale",               URL, &[("if-match", "\"0x1\"")], "412 ConditionNotMet"),
    ];
    let mut table = Table::new("snapshot_blob refusals");
    for (what, line, headers, expected) in rows {
        table.row(what, stage.call(line, headers, "").said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
}
