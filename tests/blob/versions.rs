//! Versions: what every write keeps, in an account that has them.

use std::time::{Duration, Instant};

use crate::harness::{Answer, Headers, Table};
use crate::stage::{APPEND_BLOB, BLOCK_BLOB, Stage};

fn version(answer: &Answer) -> String {
    answer.header("x-ms-version-id").expect("a version id").to_owned()
}

fn write(stage: &Stage, content: &str) -> String {
    version(&stage.put("cont/blob", content))
}

#[test]
fn every_write_keeps_what_was_there() {
    let stage = Stage::with_settings("versioning = true");
    let mut ids = vec![write(&stage, "first"), write(&stage, "second")];
    stage.put_block("cont/blob", "AAAA", "third");
    let list = "<BlockList><Latest>AAAA</Latest></BlockList>";
    ids.push(version(&stage.call("PUT cont/blob?comp=blocklist", &[], list).ok()));
    ids.push(version(&stage.call("PUT cont/blob?comp=metadata", &[("x-ms-meta-a", "1")], "").ok()));
    ids.push(version(&stage.call("PUT cont/blob?comp=snapshot", &[], "").ok()));
    assert!(ids.is_sorted_by(|left, right| left < right), "{ids:?}");
    let mut table = Table::new("versions");
    for (id, content) in ids.iter().zip(["first", "second", "third", "third", "third"]) {
        let told = stage.get(&format!("cont/blob?versionid={id}")).ok();
        table.row(format!("content of {id}"), String::from_utf8_lossy(&told.body), content);
        table.row(format!("id of {id}"), version(&told), id);
        let is_current = told.header("x-ms-is-current-version").unwrap_or("false") == "true";
        table.row(format!("is {id} current"), is_current, *id == ids[4]);
    }
    let listed = stage.get("cont?restype=container&comp=list&include=versions").xml();
    let shown: Vec<_> = listed.all("Blobs").iter().map(|blob| blob.text_of("VersionId").unwrap_or_default()).collect();
    assert_eq!(shown, ids);
    // Without an id the blob is deleted, and all of them are previous versions.
    stage.call("DELETE cont/blob", &[("x-ms-delete-snapshots", "include")], "").ok();
    table.row("without an id", stage.get("cont/blob").said(), "404 BlobNotFound");
    table.row("with one", stage.get(&format!("cont/blob?versionid={}", ids[4])).said(), "200");
    table.row("properties not changed", stage.call("PUT cont/blob?comp=metadata", &[], "").said(), "404 BlobNotFound");
    let only = stage.get("cont?restype=container&comp=list&include=deletedwithversions").xml();
    let only = only.all("Blobs").first().and_then(|blob| blob.text_of("HasVersionsOnly"));
    table.row("has versions only", only.unwrap_or_default(), "true");
    for id in &ids {
        table.row(
            format!("delete {id}"),
            stage.call(&format!("DELETE cont/blob?versionid={id}"), &[], "").said(),
            "202",
        );
    }
    let left = stage.get("cont?restype=container&comp=list&include=versions,deletedwithversions").xml();
    assert_eq!(left.all("Blobs"), []);
}

#[test]
fn refusals() {
    let stage = Stage::with_settings("versioning = true");
    let (first, second) = (write(&stage, "first"), write(&stage, "second"));
    let mut table = Table::new("versions refused");
    let by_id = |id: &str| format!("cont/blob?versionid={id}");
    let delete = |target: String| stage.call(&format!("DELETE {target}"), &[], "").said();
    table.row("delete the current one by its id", delete(by_id(&second)), "403 OperationNotAllowedOnRootBlob");
    table.row("delete none", delete(by_id("2020-01-01T00:00:00.0000000Z")), "404 BlobNotFound");
    table.row("delete what is no time", delete(by_id("new")), "400 InvalidQueryParameterValue");
    table.row(
        "write to one",
        stage.call(&format!("PUT {}", by_id(&first)), &[BLOCK_BLOB], "x").said(),
        "400 InvalidOperation",
    );
    let both = format!("{}&snapshot={first}", by_id(&first));
    table.row("a snapshot and a version", stage.get(&both).said(), "400 InvalidQueryParameterValue");
    table.row("unchanged", String::from_utf8_lossy(&stage.get(&by_id(&first)).body), "first");
}

/// Switching versions on is noticed while the server runs, and what was there before becomes one.
#[test]
fn they_can_be_switched_on_and_off() {
    let stage = Stage::with_settings("");
    assert_eq!(stage.put("cont/blob", "before").header("x-ms-version-id"), None);
    stage.server.configure("versioning = true");
    let deadline = Instant::now() + Duration::from_secs(30);
    while stage.put("cont/other", "x").header("x-ms-version-id").is_none() {
        assert!(Instant::now() < deadline, "the settings were not read again");
        std::thread::sleep(Duration::from_millis(100));
    }
    write(&stage, "after");
    let listed = stage.get("cont?restype=container&comp=list&include=versions&prefix=blob").xml();
    let oldest = listed.all("Blobs")[0].text_of("VersionId").expect("a version");
    assert_eq!(stage.get(&format!("cont/blob?versionid={oldest}")).ok().body, b"before");
    assert_eq!(stage.get("cont/blob").ok().body, b"after");
}

/// All versions of a blob have one type, and so have all snapshots.
#[test]
fn types_do_not_mix() {
    let stage = Stage::with_settings("versioning = true");
    let mut table = Table::new("versions: types");
    stage.put("cont/blob", "first");
    let append = |headers: Headers<'_>| stage.call("PUT cont/blob", &[&[APPEND_BLOB], headers].concat(), "").said();
    table.row("over a version", append(&[]), "409 InvalidBlobType");
    table.row("stale, too", append(&[("if-match", "\"0x1\"")]), "412 ConditionNotMet");
    stage.call("DELETE cont/blob", &[], "").ok();
    table.row("beside versions", append(&[]), "409 InvalidBlobType");
    table.row("of their type", stage.call("PUT cont/blob", &[BLOCK_BLOB], "again").said(), "201");

    let stage = Stage::new();
    stage.put("cont/blob", "first");
    stage.call("PUT cont/blob?comp=snapshot", &[], "").ok();
    let append = || stage.call("PUT cont/blob", &[APPEND_BLOB], "").said();
    table.row("beside snapshots", append(), "409 SnapshotsPresent");
    assert_eq!(stage.get("cont/blob").ok().body, b"first");
    stage.call("DELETE cont/blob", &[("x-ms-delete-snapshots", "only")], "").ok();
    table.row("without them", append(), "201");
}
