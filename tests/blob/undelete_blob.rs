//! Undelete Blob, and what soft delete keeps for it.

use crate::harness::Table;
use crate::stage::{BLOCK_BLOB, Stage};

const DAY: u64 = 24 * 3600;
const UNDELETE: &str = "PUT cont/blob?comp=undelete";
const LIST: &str = "cont?restype=container&comp=list&include=deleted,snapshots";

/// What a list of everything shows, in its order.
fn shown(stage: &Stage) -> String {
    let listed = stage.get(LIST).xml();
    let word = |blob: &crate::harness::Element| {
        let kind = if blob.text_of("Snapshot").is_some() { "snapshot" } else { "base" };
        format!("{kind}{}", if blob.text_of("Deleted").is_some() { "-deleted" } else { "" })
    };
    listed.all("Blobs").iter().map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_deleted_comes_back_until_its_time_is_over() {
    let stage = Stage::with_settings("blob_soft_delete_days = 7");
    let put = stage.call("PUT cont/blob", &[BLOCK_BLOB, ("x-ms-meta-a", "1")], "first").ok();
    stage.call("PUT cont/blob?comp=snapshot", &[], "").ok();
    let deleted = stage.call("DELETE cont/blob", &[("x-ms-delete-snapshots", "include")], "").ok();
    assert_eq!(deleted.header("x-ms-delete-type-permanent"), Some("false"));
    let mut table = Table::new("undelete_blob");
    table.row("while it is deleted", shown(&stage), "snapshot-deleted base-deleted");
    table.row("read", stage.get("cont/blob").said(), "404 BlobNotFound");
    table.row("delete again", stage.call("DELETE cont/blob", &[], "").said(), "404 BlobNotFound");
    stage.server.advance(6 * DAY);
    table.row("undelete", stage.call(UNDELETE, &[], "").said(), "200");
    table.row("undelete what is there", stage.call(UNDELETE, &[], "").said(), "200");
    table.row("undelete nothing", stage.call("PUT cont/none?comp=undelete", &[], "").said(), "404 BlobNotFound");
    table.row("undeleted", shown(&stage), "snapshot base");
    let told = stage.get("cont/blob").ok();
    table.row("its content", String::from_utf8_lossy(&told.body), "first");
    table.row("its ETag", told.etag(), put.etag());
    table.row("its metadata", told.header("x-ms-meta-a").unwrap_or_default(), "1");
    stage.put("cont/blob", "second");
    table.row("overwritten", shown(&stage), "snapshot snapshot-deleted base");
    stage.call("DELETE cont/blob", &[("x-ms-delete-snapshots", "include")], "").ok();
    stage.server.advance(7 * DAY);
    table.row("when its time is over", shown(&stage), "");
    table.row("too late", stage.call(UNDELETE, &[], "").said(), "404 BlobNotFound");
    stage.put_elsewhere();
    table.row("later", shown(&stage), "");
}

#[test]
fn the_service_properties_decide_how_long() {
    let stage = Stage::with_settings("blob_soft_delete_days = 7");
    let properties = "PUT ?restype=service&comp=properties";
    let policy = |inner: &str| {
        format!(
            "<StorageServiceProperties><DeleteRetentionPolicy>{inner}</DeleteRetentionPolicy></StorageServiceProperties>"
        )
    };
    stage.call(properties, &[], policy("<Enabled>true</Enabled><Days>1</Days>")).ok();
    stage.put("cont/blob", "x");
    stage.call("DELETE cont/blob", &[], "").ok();
    stage.server.advance(DAY);
    assert_eq!(stage.call(UNDELETE, &[], "").said(), "404 BlobNotFound");
    stage.call(properties, &[], policy("<Enabled>false</Enabled>")).ok();
    stage.put("cont/blob", "x");
    let deleted = stage.call("DELETE cont/blob", &[], "").ok();
    assert_eq!(deleted.header("x-ms-delete-type-permanent"), Some("true"));
    assert_eq!(shown(&stage), "");
}

#[test]
fn for_good() {
    let stage = Stage::new();
    let policy = |allow: bool| {
        format!(
            "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>\
             <AllowPermanentDelete>{allow}</AllowPermanentDelete></DeleteRetentionPolicy></StorageServiceProperties>"
        )
    };
    stage.call("PUT ?restype=service&comp=properties", &[], policy(false)).ok();
    stage.put("cont/blob", "x");
    let made = stage.call("PUT cont/blob?comp=snapshot", &[], "").ok();
    let snapshot = format!("cont/blob?snapshot={}", made.header("x-ms-snapshot").expect("an id"));
    let for_good = format!("DELETE {snapshot}&deletetype=permanent");
    let mut table = Table::new("delete_blob for good");
    let refused = "409 PermanentDeleteNotAllowed";
    table.row("the blob", stage.call("DELETE cont/blob?deletetype=permanent", &[], "").said(), refused);
    table.row("what is not deleted", stage.call(&for_good, &[], "").said(), refused);
    stage.call(&format!("DELETE {snapshot}"), &[], "").ok();
    table.row("not allowed", stage.call(&for_good, &[], "").said(), refused);
    stage.call("PUT ?restype=service&comp=properties", &[], policy(true)).ok();
    let deleted = stage.call(&for_good, &[], "");
    table.row("allowed", deleted.said(), "202");
    table.row("is permanent", deleted.header("x-ms-delete-type-permanent").unwrap_or_default(), "true");
    table.row("again", stage.call(&for_good, &[], "").said(), "404 BlobNotFound");
    table.row("what is left", shown(&stage), "base");
}
