//! Copy Blob From URL.

use crate::harness::Table;
use crate::stage::{BLOCK_BLOB, Stage};

const SYNC: (&str, &str) = ("x-ms-requires-sync", "true");

#[test]
fn it_is_done_when_it_answers() {
    let stage = Stage::new();
    stage.call("PUT cont/source", &[BLOCK_BLOB, ("x-ms-meta-a", "1"), ("x-ms-tags", "t=1")], "hello").ok();
    let url = stage.signed("cont/source", "rt", "2099-01-01T00:00:00Z");
    let made = stage.take("PUT cont/blob", &url, &[SYNC]).ok();
    assert_eq!((made.status, made.header("x-ms-copy-status")), (202, Some("success")));
    // It repeats an MD5 that it was given, and tells none of its own.
    assert_eq!(made.header("content-md5"), None);
    let md5 = ("x-ms-source-content-md5", "XUFAKrxLKna5cZ2REBfFkg==");
    let made = stage.take("PUT cont/blob", &url, &[SYNC, md5]).ok();
    assert_eq!(made.header("content-md5"), Some(md5.1));
    let told = stage.get("cont/blob").ok();
    assert_eq!(
        (&*told.body, told.header("x-ms-meta-a"), told.header("x-ms-tag-count")),
        (&b"hello"[..], Some("1"), None)
    );
    // The signature is not for those who read the copy.
    let source = told.header("x-ms-copy-source").expect("a source");
    assert!(source.starts_with(&stage.client.url("cont/source")) && !source.contains("sig="), "{source}");
    let (copy, replace) = (("x-ms-copy-source-tag-option", "COPY"), ("x-ms-copy-source-tag-option", "REPLACE"));
    let tags = ("x-ms-tags", "a=1&b=2");
    let mut table = Table::new("copy_blob_from_url tags");
    for (what, headers, expected) in [
        ("copied", &[SYNC, copy][..], "202 1"),
        ("replaced", &[SYNC, replace, tags], "202 2"),
        ("given", &[SYNC, tags], "202 2"),
        ("both", &[SYNC, copy, tags], "400 BothUserTagsAndSourceTagsCopyPresentException 2"),
        ("neither", &[SYNC, replace], "202 0"),
    ] {
        let said = stage.take("PUT cont/blob", &url, headers).said();
        let told = stage.head("cont/blob");
        table.row(what, format!("{said} {}", told.header("x-ms-tag-count").unwrap_or("0")), expected);
    }
    let unreadable = stage.take("PUT cont/blob", &stage.readable("cont/source"), &[SYNC, copy]);
    table.row("tags without the right", unreadable.said(), "403 CannotVerifyCopySource");
}

#[test]
fn refusals() {
    let stage = Stage::new();
    stage.put("cont/source", "hello");
    stage.put("cont/blob", "before");
    stage.put_append("cont/append", "x");
    stage.put_pages("cont/page", 512);
    let url = stage.readable("cont/source");
    let before = stage.everything();
    let mut table = Table::new("copy_blob_from_url refusals");
    for (what, url, headers, expected) in [
        ("an append blob", &stage.readable("cont/append"), &[SYNC][..], "409 InvalidSourceBlobType"),
        ("a page blob", &stage.readable("cont/page"), &[SYNC], "409 InvalidSourceBlobType"),
        ("wrong MD5", &url, &[SYNC, ("x-ms-source-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")], "400 Md5Mismatch"),
        ("wrong flag", &url, &[("x-ms-requires-sync", "perhaps")], "400 InvalidHeaderValue"),
        ("must be new", &url, &[SYNC, ("if-none-match", "*")], "409 BlobAlreadyExists"),
    ] {
        table.row(what, stage.take("PUT cont/blob", url, headers).said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
}
