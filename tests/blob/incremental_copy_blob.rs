//! Incremental Copy Blob.

use crate::harness::Table;
use crate::stage::{A, Stage, percent};

const LINE: &str = "PUT cont/blob?comp=incrementalcopy";

fn snapshot(stage: &Stage, blob: &str) -> String {
    let made = stage.call(&format!("PUT {blob}?comp=snapshot"), &[], "").ok();
    stage.client.url(&format!("{blob}?snapshot={}", percent(made.header("x-ms-snapshot").expect("an id"))))
}

fn write(stage: &Stage, page: u64, byte: u8) {
    let range = format!("bytes={}-{}", page * 512, page * 512 + 511);
    stage.call("PUT cont/source?comp=page", &[("x-ms-page-write", "update"), ("range", &range)], [byte; 512]).ok();
}

#[test]
fn each_copy_leaves_a_snapshot() {
    let stage = Stage::new();
    stage.put_pages("cont/source", 2_048);
    stage.put_pages("cont/other", 2_048);
    stage.put("cont/block", "x");
    write(&stage, 0, 1);
    let first = snapshot(&stage, "cont/source");
    let made = stage.take(LINE, &first, &[]).ok();
    assert_eq!((made.status, made.header("x-ms-copy-status").is_some()), (202, true));
    write(&stage, 2, 2);
    let second = snapshot(&stage, "cont/source");
    stage.take(LINE, &second, &[]).ok();
    let told = stage.head("cont/blob").ok();
    assert_eq!(told.header("x-ms-incremental-copy"), Some("true"));
    let last = told.header("x-ms-copy-destination-snapshot").expect("a snapshot").to_owned();
    let listed = stage.get("cont?restype=container&comp=list&include=snapshots,copy&prefix=blob").xml();
    let ids: Vec<_> = listed.all("Blobs").iter().filter_map(|blob| blob.text_of("Snapshot")).collect();
    assert_eq!((ids.len(), ids.last()), (2, Some(&last)));

    let mut table = Table::new("incremental_copy_blob");
    let third = snapshot(&stage, "cont/source");
    table.row("of earlier", stage.take(LINE, &first, &[]).said(), "409 IncrementalCopyOfEarlierSnapshotNotAllowed");
    table.row(
        "of another",
        stage.take(LINE, &snapshot(&stage, "cont/other"), &[]).said(),
        "409 IncrementalCopyBlobMismatch",
    );
    let base = stage.client.url("cont/source");
    table.row("of no snapshot", stage.take(LINE, &base, &[]).said(), "409 IncrementalCopySourceMustBeSnapshot");
    table.row(
        "of a block blob",
        stage.take(LINE, &snapshot(&stage, "cont/block"), &[]).said(),
        "409 InvalidSourceBlobType",
    );
    let onto = stage.take("PUT cont/block?comp=incrementalcopy", &third, &[]);
    table.row("onto a block blob", onto.said(), "409 InvalidBlobType");
    table.row("stale", stage.take(LINE, &third, &[("if-match", "\"0x1\"")]).said(), "412 ConditionNotMet");
    table.row("stale and earlier", stage.take(LINE, &first, &[("if-match", "\"0x1\"")]).said(), "412 ConditionNotMet");
    let refused = "409 OperationNotAllowedOnIncrementalCopyBlob";
    table.row("read", stage.get("cont/blob").said(), refused);
    let clear = [("x-ms-page-write", "clear"), ("range", "bytes=0-511")];
    table.row("write", stage.call("PUT cont/blob?comp=page", &clear, "").said(), refused);
    table.row("copy over it", stage.take("PUT cont/blob", &base, &[]).said(), refused);

    // The snapshots are read, whatever becomes of the source.
    stage.call("DELETE cont/source", &[("x-ms-delete-snapshots", "include")], "").ok();
    stage.server.advance(3_600);
    stage.put_elsewhere();
    let read = |id: &str| stage.get(&format!("cont/blob?snapshot={id}")).ok().body;
    assert_eq!(read(&ids[0]), [[1; 512], [0; 512], [0; 512], [0; 512]].concat());
    assert_eq!(read(&ids[1]), [[1; 512], [0; 512], [2; 512], [0; 512]].concat());
    // One of them becomes a blob that is like any other.
    let url = stage.client.url(&format!("cont/blob?snapshot={}", percent(&ids[1])));
    stage.take("PUT cont/restored", &url, &[]).ok();
    assert_eq!(stage.get("cont/restored").ok().body, read(&ids[1]));
    stage.acquire("cont/restored", A, "-1");
    stage.call("DELETE cont/blob", &[("x-ms-delete-snapshots", "include")], "").ok();
}
