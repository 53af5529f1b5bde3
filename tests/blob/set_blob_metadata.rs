//! Set Blob Metadata and Get Blob Metadata.

use crate::harness::{Headers, Table};
use crate::stage::Stage;

const URL: &str = "PUT cont/blob?comp=metadata";

#[test]
fn all_of_it_is_replaced_and_nothing_else() {
    let stage = Stage::new();
    stage.put("cont/blob", "hello");
    stage.put_block("cont/blob", "AAAA", "waiting");
    stage.call("PUT cont/blob?comp=properties", &[("x-ms-blob-content-type", "a/b")], "").ok();
    stage.call(URL, &[("x-ms-meta-a", "1"), ("x-ms-meta-B", " 2 ")], "").ok();
    stage.call(URL, &[("x-ms-meta-b", "3"), ("x-ms-meta-_", "x~\t!")], "").ok();
    for line in ["GET cont/blob", "HEAD cont/blob", "GET cont/blob?comp=metadata", "HEAD cont/blob?comp=metadata"] {
        let told = stage.call(line, &[], "").ok();
        assert_eq!((told.header("x-ms-meta-a"), told.header("x-ms-meta-b")), (None, Some("3")), "{line}");
        assert_eq!(told.header("x-ms-meta-_"), Some("x~\t!"), "{line}");
    }
    let told = stage.get("cont/blob");
    assert_eq!((told.header("content-type"), &told.body[..]), (Some("a/b"), &b"hello"[..]));
    let list = stage.get("cont/blob?comp=blocklist&blocklisttype=all").xml();
    assert_eq!(list.all("UncommittedBlocks").len(), 1);
}

#[test]
fn bad_metadata_changes_nothing() {
    let stage = Stage::new();
    stage.put("cont/blob", "hello");
    stage.call(URL, &[("x-ms-meta-a", "1")], "").ok();
    let before = stage.everything();
    let (fits, too_long) = ("x".repeat(8 * 1024 - 1), "x".repeat(8 * 1024));
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("empty name",            &[("x-ms-meta-", "x")], "400 EmptyMetadataKey"),
        ("begins with a digit",   &[("x-ms-meta-1", "x")], "400 InvalidMetadata"),
        ("a dash",                &[("x-ms-meta-a-b", "x")], "400 InvalidMetadata"),
        ("a dot",                 &[("x-ms-meta-a.b", "x")], "400 InvalidMetadata"),
        ("not ASCII",             &[("x-ms-meta-a", "é")], "400 InvalidMetadata"),
        ("too much in one",       &[("x-ms-meta-a", &too_long)], "400 MetadataTooLarge"),
        ("too much in two",       &[("x-ms-meta-a", &fits), ("x-ms-meta-b", "")], "400 MetadataTooLarge"),
    ];
    let mut table = Table::new("set_blob_metadata");
    for (what, headers, expected) in rows {
        table.row(what, stage.call(URL, headers, "").said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
    table.row("as much as fits", stage.call(URL, &[("x-ms-meta-a", &fits)], "").said(), "200");
    assert_eq!(stage.head("cont/blob").header("x-ms-meta-a"), Some(&*fits));
}
