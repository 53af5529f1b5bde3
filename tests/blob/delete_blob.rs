//! Delete Blob.

use crate::harness::{Headers, Table};
use crate::stage::{A, Stage};

const INCLUDE: (&str, &str) = ("x-ms-delete-snapshots", "include");
const ONLY: (&str, &str) = ("x-ms-delete-snapshots", "only");

/// With snapshots there is more than one thing to delete: (headers, answer, is the blob left, is the snapshot).
#[test]
fn snapshots_must_be_named() {
    let stage = Stage::new();
    let mut table = Table::new("delete_blob snapshots");
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str, u16, u16)] = &[
        ("nothing said",          &[],                              "409 SnapshotsPresent", 200, 200),
        ("include",               &[INCLUDE],                       "202", 404, 404),
        ("only",                  &[ONLY],                          "202", 200, 404),
        ("something else",        &[("x-ms-delete-snapshots", "all")], "400 InvalidHeaderValue", 200, 200),
    ];
    for (at, (what, headers, expected, blob, snapshot)) in rows.iter().enumerate() {
        let target = format!("cont/blob{at}");
        stage.put(&target, "x");
        let made = stage.call(&format!("PUT {target}?comp=snapshot"), &[], "").ok();
        let id = made.header("x-ms-snapshot").expect("an id");
        table.row(what, stage.call(&format!("DELETE {target}"), headers, "").said(), expected);
        table.row(format!("{what}: blob"), stage.head(&target).status, blob);
        table.row(format!("{what}: snapshot"), stage.head(&format!("{target}?snapshot={id}")).status, snapshot);
    }
}

#[test]
fn one_snapshot_of_several() {
    let stage = Stage::new();
    stage.put("cont/blob", "x");
    let make = || stage.call("PUT cont/blob?comp=snapshot", &[], "").ok().header("x-ms-snapshot").map(str::to_owned);
    let ids: Vec<String> = (0..3).filter_map(|_| make()).collect();
    let target = |at: usize| format!("cont/blob?snapshot={}", ids[at]);
    assert_eq!(stage.call(&format!("DELETE {}", target(1)), &[], "").said(), "202");
    assert_eq!(stage.call(&format!("DELETE {}", target(1)), &[], "").said(), "404 BlobNotFound");
    assert_eq!([0, 1, 2].map(|at| stage.head(&target(at)).status), [200, 404, 200]);
    assert_eq!(stage.call("DELETE cont/blob", &[], "").said(), "409 SnapshotsPresent");
    stage.call("DELETE cont/blob", &[ONLY], "").ok();
    assert_eq!(stage.call("DELETE cont/blob", &[], "").said(), "202");
}

#[test]
fn a_deleted_blob_is_gone() {
    let stage = Stage::new();
    let first = stage.put("cont/blob", "first");
    stage.put_block("cont/blob", "AAAA", "waiting");
    let snapshot = stage.call("PUT cont/blob?comp=snapshot", &[], "").ok();
    let snapshot = snapshot.header("x-ms-snapshot").expect("an id").to_owned();
    stage.call("DELETE cont/blob", &[INCLUDE], "").ok();
    let mut table = Table::new("delete_blob gone");
    table.row("read", stage.get("cont/blob").said(), "404 BlobNotFound");
    table.row("delete", stage.call("DELETE cont/blob", &[], "").said(), "404 BlobNotFound");
    table.row("snapshot", stage.get(&format!("cont/blob?snapshot={snapshot}")).said(), "404 BlobNotFound");
    let blocks = stage.get("cont/blob?comp=blocklist&blocklisttype=all");
    table.row("blocks", blocks.said(), "404 BlobNotFound");
    // Made again it has nothing of what was: not the ETag, not the snapshots, not the blocks.
    let second = stage.put("cont/blob", "second");
    assert_ne!(first.etag(), second.etag());
    table.row(
        "old ETag",
        stage.call("GET cont/blob", &[("if-match", &first.etag())], "").said(),
        "412 ConditionNotMet",
    );
    table.row("old snapshot", stage.get(&format!("cont/blob?snapshot={snapshot}")).said(), "404 BlobNotFound");
    let commit = stage.call("PUT cont/blob?comp=blocklist", &[], "<BlockList><Latest>AAAA</Latest></BlockList>");
    table.row("old block", commit.said(), "400 InvalidBlockList");
    table.row("without snapshots", stage.call("DELETE cont/blob", &[], "").said(), "202");
}

#[test]
fn only_snapshots_needs_the_lease_too() {
    let stage = Stage::new();
    stage.put("cont/blob", "x");
    stage.call("PUT cont/blob?comp=snapshot", &[], "").ok();
    stage.acquire("cont/blob", A, "-1");
    assert_eq!(stage.call("DELETE cont/blob", &[ONLY], "").said(), "412 LeaseIdMissing");
    assert_eq!(stage.call("DELETE cont/blob", &[ONLY, ("x-ms-lease-id", A)], "").said(), "202");
    assert_eq!(stage.lease_state("cont/blob"), "leased");
}
