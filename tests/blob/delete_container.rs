//! Delete Container.

use crate::blob_operations::OPERATIONS;
use crate::harness::Table;
use crate::stage::{A, Stage};

#[test]
fn everything_in_it_is_gone_at_once() {
    let stage = Stage::new();
    stage.put("cont/blob", "x");
    // The lease of a blob does not protect the container.
    stage.acquire("cont/blob", A, "-1");
    assert_eq!(stage.call("DELETE cont?restype=container", &[], "").said(), "202");
    let mut table = Table::new("delete_container");
    for operation in OPERATIONS {
        table.row(operation.name, operation.ask(&stage, "cont/blob", &[]).said(), "404 ContainerNotFound");
    }
    table.row("again", stage.call("DELETE cont?restype=container", &[], "").said(), "404 ContainerNotFound");
    assert!(stage.get("?comp=list").xml().all("Containers").is_empty());
}

#[test]
fn what_comes_after_it_knows_nothing_of_it() {
    let stage = Stage::new();
    let old = stage.head("cont?restype=container").etag();
    stage.put("cont/blob", "x");
    stage.put_block("cont/staged", "AAAA", "x");
    stage.call("DELETE cont?restype=container", &[], "").ok();
    // The name may be kept for a while; then it is free.
    let mut made = stage.call("PUT cont?restype=container", &[], "");
    if made.said() == "409 ContainerBeingDeleted" {
        stage.server.advance(60);
        made = stage.call("PUT cont?restype=container", &[], "");
    }
    assert_ne!(made.ok().etag(), old);
    let listing = stage.get("cont?restype=container&comp=list&include=uncommittedblobs,snapshots").xml();
    assert_eq!(listing.all("Blobs"), []);
    assert_eq!(stage.get("cont/blob").said(), "404 BlobNotFound");
}
