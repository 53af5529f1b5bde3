//! Append Blob Seal.

use crate::harness::{Headers, Table};
use crate::stage::{A, APPEND_BLOB, Stage};

const URL: &str = "PUT cont/blob?comp=seal";

#[test]
fn a_sealed_blob() {
    let stage = Stage::new();
    stage.put_append("cont/blob", "old");
    let mut table = Table::new("append_blob_seal");
    table.row("before", stage.head("cont/blob").header("x-ms-blob-sealed").is_none(), true);
    for what in ["seal", "seal again"] {
        let answer = stage.call(URL, &[], "");
        table.row(what, answer.said(), "200");
        table.row(format!("{what}: told"), answer.header("x-ms-blob-sealed").unwrap_or_default(), "true");
    }
    let read = |line: &str| stage.call(line, &[], "").ok().header("x-ms-blob-sealed").unwrap_or_default().to_owned();
    table.row("Get Blob", read("GET cont/blob"), "true");
    table.row("Get Blob Properties", read("HEAD cont/blob"), "true");
    let listed = stage.get("cont?restype=container&comp=list").xml();
    table.row("List Blobs", listed.all("Blobs")[0].text_of("Properties/Sealed").unwrap_or_default(), "true");
    table.row("append", stage.call("PUT cont/blob?comp=appendblock", &[], "x").said(), "409 BlobIsSealed");
    let metadata = stage.call("PUT cont/blob?comp=metadata", &[("x-ms-meta-a", "1")], "");
    table.row("metadata", metadata.said(), "200");
    let properties = stage.call("PUT cont/blob?comp=properties", &[("x-ms-blob-content-type", "a/b")], "");
    table.row("properties", properties.said(), "200");
    table.row("still sealed", read("HEAD cont/blob"), "true");
    assert_eq!(stage.get("cont/blob").body, b"old");
    table.row("made again", stage.call("PUT cont/blob", &[APPEND_BLOB], "").said(), "201");
    table.row("and open", stage.call("PUT cont/blob?comp=appendblock", &[], "x").said(), "201");
}

#[test]
fn refusals_change_nothing() {
    let stage = Stage::new();
    stage.put_append("cont/blob", "old");
    stage.put("cont/block", "old");
    stage.put_append("cont/leased", "old");
    stage.acquire("cont/leased", A, "-1");
    let before = stage.everything();
    let position = "x-ms-blob-condition-appendpos";
    #[rustfmt::skip]
    let rows: &[(&str, &str, Headers<'_>, &str)] = &[
        ("no position",              URL, &[(position, "x")], "400 InvalidHeaderValue"),
        ("not the end",              URL, &[(position, "2")], "412 AppendPositionConditionNotMet"),
        ("stale, not the end",       URL, &[(position, "2"), ("if-match", "\"0x1\"")], "412 ConditionNotMet"),
        ("no container",             "PUT none/blob?comp=seal",   &[], "404 ContainerNotFound"),
        ("no blob",                  "PUT cont/none?comp=seal",   &[], "404 BlobNotFound"),
        ("a block blob",             "PUT cont/block?comp=seal",  &[], "409 InvalidBlobType"),
        ("no lease id, not the end", "PUT cont/leased?comp=seal", &[(position, "2")], "412 LeaseIdMissing"),
    ];
    let mut table = Table::new("append_blob_seal refusals");
    for (what, line, headers, expected) in rows {
        table.row(what, stage.call(line, headers, "").said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
    table.row("the end", stage.call(URL, &[(position, "3")], "").said(), "200");
}
