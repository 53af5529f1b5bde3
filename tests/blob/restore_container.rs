//! Restore Container, and the containers that wait for it.

use crate::harness::{Answer, Table};
use crate::stage::Stage;

const DAY: u64 = 24 * 3600;

fn stage() -> Stage {
    let stage = Stage::with_settings("container_soft_delete_days = 7");
    stage.put("cont/blob", "kept");
    stage
}

/// Deletes the container and returns the version that the listing tells.
fn delete(stage: &Stage) -> String {
    stage.call("DELETE cont?restype=container", &[], "").ok();
    let listed = stage.get("?comp=list&include=deleted").xml();
    let deleted = listed.all("Containers").iter().rfind(|container| container.text_of("Deleted").is_some());
    let deleted = deleted.expect("a deleted container");
    assert_eq!(deleted.text_of("Properties/RemainingRetentionDays").as_deref(), Some("7"));
    assert!(deleted.text_of("Properties/DeletedTime").is_some());
    deleted.text_of("Version").expect("a version")
}

fn restore(stage: &Stage, name: &str, version: &str) -> Answer {
    let headers = [("x-ms-deleted-container-name", "cont"), ("x-ms-deleted-container-version", version)];
    stage.call(&format!("PUT {name}?restype=container&comp=undelete"), &headers, "")
}

#[test]
fn it_comes_back_as_it_was() {
    let stage = stage();
    stage.call("PUT cont?restype=container&comp=metadata", &[("x-ms-meta-a", "1")], "").ok();
    let version = delete(&stage);
    assert_eq!(stage.get("cont/blob").said(), "404 ContainerNotFound");
    assert!(stage.get("?comp=list").xml().all("Containers").is_empty());
    stage.server.advance(6 * DAY);
    assert_eq!(restore(&stage, "cont", &version).said(), "201");
    assert_eq!(stage.get("cont/blob").ok().body, b"kept");
    assert_eq!(stage.head("cont?restype=container").header("x-ms-meta-a"), Some("1"));
    // What was deleted once and came back does not end with that time.
    stage.server.advance(7 * DAY);
    stage.put_elsewhere();
    assert_eq!(stage.get("cont/blob").ok().body, b"kept");
}

#[test]
fn refusals() {
    let stage = stage();
    let version = delete(&stage);
    let mut table = Table::new("restore_container");
    table.row(
        "no headers",
        stage.call("PUT cont?restype=container&comp=undelete", &[], "").said(),
        "400 MissingRequiredHeader",
    );
    table.row("not a version", restore(&stage, "cont", "x").said(), "400 InvalidHeaderValue");
    table.row("no such version", restore(&stage, "cont", "0000000000000001").said(), "404 ContainerNotFound");
    stage.call("PUT cont?restype=container", &[], "").ok();
    table.row("the name is taken", restore(&stage, "cont", &version).said(), "409 ContainerAlreadyExists");
    table.row("another name", restore(&stage, "other", &version).said(), "201");
    table.row("again", restore(&stage, "third", &version).said(), "404 ContainerNotFound");
    table.row("what it held", String::from_utf8_lossy(&stage.get("other/blob").body), "kept");
    let version = delete(&stage);
    stage.server.advance(7 * DAY);
    table.row("too late", restore(&stage, "cont", &version).said(), "404 ContainerNotFound");
}
