//! Delete Share.

use crate::file_operations::OPERATIONS;
use crate::harness::Table;
use crate::stage::{A, SHARE, Stage};

#[test]
fn everything_in_it_is_gone_at_once() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    stage.put_file("share/dir/file", "0123456789");
    // The lease of a file does not protect the share.
    stage.acquire("share/dir/file", A, "-1");
    let deleted = stage.delete(SHARE);
    assert_eq!(deleted.said(), "202");
    assert_eq!(deleted.header("x-ms-file-share-usage-bytes"), Some("10"));
    assert_eq!(deleted.header("x-ms-file-share-snapshot-usage-bytes"), Some("0"));
    let mut table = Table::new("delete_share");
    for operation in OPERATIONS {
        table.row(operation.name, operation.ask(&stage, "share/dir/file", &[]).said(), "404 ShareNotFound");
    }
    table.row("again", stage.delete(SHARE).said(), "404 ShareNotFound");
    table.row("its root", stage.get("share?restype=directory&comp=list").said(), "404 ShareNotFound");
    assert!(stage.get("?comp=list").xml().all("Shares").is_empty());
    assert!(stage.get("?comp=list&include=deleted").xml().all("Shares").is_empty(), "nothing is kept unless asked for");
}

#[test]
fn what_comes_after_it_knows_nothing_of_it() {
    let stage = Stage::new();
    let old = stage.head(SHARE).etag();
    stage.call("PUT share?restype=share&comp=metadata", &[("x-ms-meta-a", "1")], "").ok();
    stage.make_directory("share/dir");
    stage.put_file("share/dir/file", "x");
    let key = stage.head("share/dir/file").header("x-ms-file-permission-key").expect("a key").to_owned();
    stage.delete(SHARE).ok();
    // The name may be kept for a while; then it is free.
    let mut made = stage.call(&format!("PUT {SHARE}"), &[], "");
    if made.said() == "409 ShareBeingDeleted" {
        stage.server.advance(60);
        made = stage.call(&format!("PUT {SHARE}"), &[], "");
    }
    assert_ne!(made.ok().etag(), old);
    assert_eq!((stage.names("share"), stage.usage("share")), (String::new(), 0));
    assert_eq!(stage.head(SHARE).header("x-ms-meta-a"), None);
    assert_eq!(stage.get("share/dir/file").status, 404);
    // What is made anew inherits the same descriptor, so it has the same key.
    stage.make_directory("share/dir");
    stage.make_file("share/dir/file", 0);
    assert_eq!(stage.head("share/dir/file").header("x-ms-file-permission-key"), Some(key.as_str()));
}

#[test]
fn bad_parameters_delete_nothing() {
    let stage = Stage::new();
    stage.put_file("share/file", "x");
    let before = stage.everything();
    let mut table = Table::new("delete_share: parameters");
    let call = |line: &str, headers| stage.call(line, headers, "").said();
    table.row(
        "what snapshots",
        call("DELETE share?restype=share", &[("x-ms-delete-snapshots", "some")]),
        "400 InvalidHeaderValue",
    );
    table.row("no restype", &call("DELETE share", &[])[..1], "4");
    table.row("a file's restype", &call("DELETE share?restype=container", &[])[..1], "4");
    assert_eq!(stage.everything(), before);
    table.row("with its snapshots", call("DELETE share?restype=share", &[("x-ms-delete-snapshots", "include")]), "202");
}
