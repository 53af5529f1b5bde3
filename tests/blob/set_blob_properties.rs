//! Set Blob Properties.

use crate::harness::{Headers, Table};
use crate::stage::Stage;

const URL: &str = "PUT cont/blob?comp=properties";
const SIX: [(&str, &str, &str); 6] = [
    ("x-ms-blob-content-type", "content-type", "text/plain"),
    ("x-ms-blob-content-encoding", "content-encoding", "identity"),
    ("x-ms-blob-content-language", "content-language", "de"),
    ("x-ms-blob-content-disposition", "content-disposition", "inline"),
    ("x-ms-blob-cache-control", "cache-control", "no-cache"),
    ("x-ms-blob-content-md5", "content-md5", "AAAAAAAAAAAAAAAAAAAAAA=="),
];

/// The six are set together: whichever is absent is cleared.
#[test]
fn all_or_none() {
    let stage = Stage::new();
    stage.call("PUT cont/blob", &[crate::stage::BLOCK_BLOB, ("x-ms-meta-a", "1")], "hello").ok();
    let all: Vec<(&str, &str)> = SIX.iter().map(|(name, _, value)| (*name, *value)).collect();
    stage.call(URL, &all, "").ok();
    let told = stage.get("cont/blob");
    for (_, name, value) in SIX {
        assert_eq!(told.header(name), Some(value), "{name}");
    }
    stage.call(URL, &[("x-ms-blob-cache-control", "max-age=1")], "").ok();
    let told = stage.get("cont/blob");
    assert_eq!(told.header("cache-control"), Some("max-age=1"));
    for name in ["content-encoding", "content-language", "content-disposition", "content-md5"] {
        assert_eq!(told.header(name), None, "{name}");
    }
    assert_eq!((told.header("x-ms-meta-a"), &told.body[..]), (Some("1"), &b"hello"[..]));
}

#[test]
fn bad_headers_change_nothing() {
    let stage = Stage::new();
    stage.put("cont/blob", "hello");
    let before = stage.everything();
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("MD5 not base64",        &[("x-ms-blob-content-md5", "x")], "400 InvalidMd5"),
        ("not ASCII",             &[("x-ms-blob-content-type", "té/xt")], "400 InvalidHeaderValue"),
        ("a lease id no GUID",    &[("x-ms-lease-id", "x")], "400 InvalidHeaderValue"),
        ("no date",               &[("if-modified-since", "x")], "400 InvalidHeaderValue"),
    ];
    let mut table = Table::new("set_blob_properties");
    for (what, headers, expected) in rows {
        table.row(what, stage.call(URL, headers, "").said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
    // What only page blobs have.
    for header in [("x-ms-blob-content-length", "512"), ("x-ms-sequence-number-action", "increment")] {
        let answer = stage.call(URL, &[header], "");
        table.row(format!("{} on a block blob", header.0), answer.status >= 400 && answer.status < 502, true);
        assert_eq!(stage.everything(), before, "{header:?}");
    }
}
