//! Restore Share, and the shares that wait for it.

use crate::harness::{Answer, Element, Table};
use crate::stage::{EVERYTHING, SHARE, Stage, told};

const DAY: u64 = 24 * 3600;

fn stage() -> Stage {
    let stage = Stage::new();
    stage.keep_deleted(7);
    stage.make_directory("share/dir");
    stage.put_file("share/dir/file", "kept");
    stage
}

/// The deleted shares of the listing.
fn deleted(stage: &Stage) -> Vec<Element> {
    let listed = stage.get("?comp=list&include=deleted").ok().xml();
    listed.all("Shares").iter().filter(|share| share.text_of("Deleted").as_deref() == Some("true")).cloned().collect()
}

/// Deletes the share and returns the version that the listing tells.
fn delete(stage: &Stage) -> String {
    stage.delete(SHARE).ok();
    let found = deleted(stage).pop().expect("a deleted share");
    assert_eq!(found.text_of("Name").as_deref(), Some("share"));
    assert_eq!(found.text_of("Properties/RemainingRetentionDays").as_deref(), Some("7"));
    assert!(found.text_of("Properties/DeletedTime").is_some_and(|time| time.ends_with(" GMT")), "{found:?}");
    found.text_of("Version").expect("a version")
}

fn restore(stage: &Stage, name: &str, deleted: &str, version: &str) -> Answer {
    let headers = [("x-ms-deleted-share-name", deleted), ("x-ms-deleted-share-version", version)];
    stage.call(&format!("PUT {name}?restype=share&comp=undelete"), &headers, "")
}

#[test]
fn it_comes_back_as_it_was() {
    let stage = stage();
    stage.call("PUT share?restype=share&comp=metadata", &[("x-ms-meta-a", "1")], "").ok();
    let see = || {
        let targets = [
            "share?restype=share&comp=stats",
            &format!("share?restype=directory&comp=list&{EVERYTHING}"),
            &format!("share/dir?restype=directory&comp=list&{EVERYTHING}"),
            "share/dir/file",
        ];
        targets.map(|target| told(&stage.get(target)).replace(&stage.head(SHARE).etag(), "the share's"))
    };
    let before = see();
    let version = delete(&stage);
    assert_eq!(stage.get("share/dir/file").said(), "404 ShareNotFound");
    assert!(stage.get("?comp=list").xml().all("Shares").is_empty());
    stage.server.advance(6 * DAY);
    assert_eq!(deleted(&stage)[0].text_of("Properties/RemainingRetentionDays").as_deref(), Some("1"));
    let restored = restore(&stage, "share", "share", &version);
    assert_eq!((restored.said().as_str(), restored.header("etag").is_some()), ("201", true));
    // Last-Modified of the share may be new, what is in it is as it was.
    let after = see();
    assert_eq!(after[1..], before[1..]);
    assert_eq!(stage.usage("share"), 4);
    assert_eq!(stage.head(SHARE).header("x-ms-meta-a"), Some("1"));
    assert!(deleted(&stage).is_empty());
    // What was deleted once and came back does not end with that time.
    stage.server.advance(7 * DAY);
    assert_eq!(stage.read("share/dir/file"), b"kept");
    stage.write("share/dir/file", 0, "KEPT");
    assert_eq!(stage.read("share/dir/file"), b"KEPT");
}

#[test]
fn refusals() {
    let stage = stage();
    let version = delete(&stage);
    let mut table = Table::new("restore_share");
    let undelete = "PUT share?restype=share&comp=undelete";
    table.row("no headers", stage.call(undelete, &[], "").said(), "400 MissingRequiredHeader");
    table.row("not a version", restore(&stage, "share", "share", "x").status, "400");
    table.row("no such version", restore(&stage, "share", "share", "01D0000000000001").status, "404");
    table.row("under another name", restore(&stage, "other", "share", &version).status, "400");
    table.row("of another name", restore(&stage, "share", "other", &version).status, "400");
    assert_eq!(deleted(&stage).len(), 1, "nothing of that restored it");
    stage.make_share("share");
    table.row("the name is taken", restore(&stage, "share", "share", &version).said(), "409 ShareAlreadyExists");
    stage.put_file("share/new", "new");
    // Both are kept, each with its own version.
    let second = delete(&stage);
    assert_ne!(second, version);
    let mut versions: Vec<_> = deleted(&stage).iter().filter_map(|share| share.text_of("Version")).collect();
    versions.sort();
    let mut expected = vec![version.clone(), second.clone()];
    expected.sort();
    assert_eq!(versions, expected);
    table.row("the second", restore(&stage, "share", "share", &second).said(), "201");
    table.row("what it held", stage.names("share"), "new");
    table.row("again", restore(&stage, "share", "share", &second).status, "409");
    delete(&stage);
    stage.server.advance(7 * DAY);
    table.row("too late", restore(&stage, "share", "share", &version).said(), "404 ShareNotFound");
    assert!(deleted(&stage).is_empty());
}

/// A share that was kept is kept as long as was said when it was deleted; what is deleted later goes by what is said now.
#[test]
fn when_nothing_is_kept_any_more() {
    let stage = stage();
    let version = delete(&stage);
    stage.set_service("<ShareDeleteRetentionPolicy><Enabled>false</Enabled></ShareDeleteRetentionPolicy>");
    assert_eq!(restore(&stage, "share", "share", &version).said(), "201");
    stage.delete(SHARE).ok();
    assert!(deleted(&stage).is_empty());
    assert_eq!(stage.get("share/dir/file").said(), "404 ShareNotFound");
}

/// A kept share does not stand in the way of another of its name.
#[test]
fn names_and_leases_of_kept_shares() {
    let stage = stage();
    stage.bring_lease(SHARE, "leased");
    assert_eq!(stage.delete(SHARE).said(), "412 LeaseIdMissing");
    stage.call(&format!("DELETE {SHARE}"), &[("x-ms-lease-id", crate::stage::A)], "").ok();
    let mut made = stage.call(&format!("PUT {SHARE}"), &[], "");
    if made.said() == "409 ShareBeingDeleted" {
        stage.server.advance(60);
        made = stage.call(&format!("PUT {SHARE}"), &[], "");
    }
    assert_eq!(made.said(), "201");
    assert_eq!((stage.names("share"), stage.lease_state(SHARE)), (String::new(), "available".to_owned()));
}
