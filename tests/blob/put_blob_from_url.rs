//! Put Blob From URL.

use crate::harness::{Headers, Table};
use crate::stage::{APPEND_BLOB, BLOCK_BLOB, Stage};

#[test]
fn what_comes_from_the_source_and_what_from_the_request() {
    let stage = Stage::new();
    let headers = [
        BLOCK_BLOB,
        ("x-ms-blob-content-type", "text/plain"),
        ("x-ms-blob-content-language", "de"),
        ("x-ms-meta-a", "1"),
    ];
    stage.call("PUT cont/source", &headers, "hello").ok();
    stage.put_pages("cont/page", 512);
    stage.put_pages("cont/before", 512);
    let told = |headers: Headers<'_>| {
        let made =
            stage.take("PUT cont/before", &stage.readable("cont/source"), &[&[BLOCK_BLOB], headers].concat()).ok();
        assert_eq!((made.status, made.header("x-ms-copy-id")), (201, None));
        assert_eq!(made.header("content-md5"), Some("XUFAKrxLKna5cZ2REBfFkg=="));
        let told = stage.get("cont/before").ok();
        assert_eq!((&*told.body, told.header("x-ms-blob-type")), (&b"hello"[..], Some("BlockBlob")));
        let text = |name: &str| told.header(name).unwrap_or("-").to_owned();
        [text("content-type"), text("content-language"), text("x-ms-meta-a"), text("x-ms-meta-b")].join(" ")
    };
    let mut table = Table::new("put_blob_from_url");
    table.row("of the source", told(&[]), "text/plain de 1 -");
    table.row("a type", told(&[("x-ms-blob-content-type", "text/html")]), "text/html de 1 -");
    table.row("metadata", told(&[("x-ms-meta-b", "2")]), "text/plain de - 2");
    table.row(
        "nothing of it",
        told(&[("x-ms-copy-source-blob-properties", "false")]),
        "application/octet-stream - - -",
    );
    let url = stage.readable("cont/source");
    table.row("as another type", stage.take("PUT cont/new", &url, &[APPEND_BLOB]).said(), "400 InvalidHeaderValue");
    let wrong = [BLOCK_BLOB, ("x-ms-source-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")];
    table.row("wrong MD5", stage.take("PUT cont/new", &url, &wrong).said(), "400 Md5Mismatch");
    table.row("nothing was made", stage.get("cont/new").said(), "404 BlobNotFound");
    // The bytes of other types are taken as they are.
    stage.take("PUT cont/new", &stage.readable("cont/page"), &[BLOCK_BLOB]).ok();
    let made = stage.get("cont/new").ok();
    assert_eq!(
        (made.body, made.headers.iter().any(|(name, _)| name == "x-ms-blob-sequence-number")),
        (vec![0; 512], false)
    );
}

/// Whole copies take the whole source: a range of the source is a header of other operations.
#[test]
fn a_range_of_the_source_changes_nothing() {
    const PART: (&str, &str) = ("x-ms-source-range", "bytes=0-99");
    const SYNC: (&str, &str) = ("x-ms-requires-sync", "true");
    let stage = Stage::new();
    stage.call("PUT cont/block", &[BLOCK_BLOB], "hello").ok();
    stage.put_pages("cont/page", 512);
    let mut table = Table::new("whole copies with a range");
    for (name, header, source, length) in [
        ("Put Blob From URL of a block blob", BLOCK_BLOB, "cont/block", 5),
        ("Put Blob From URL of a page blob", BLOCK_BLOB, "cont/page", 512),
        ("Copy Blob From URL", SYNC, "cont/block", 5),
    ] {
        stage.take("PUT cont/made", &stage.readable(source), &[header, PART]).ok();
        table.row(name, stage.get("cont/made").ok().body.len(), length);
        stage.call("DELETE cont/made", &[], "").ok();
    }
}
