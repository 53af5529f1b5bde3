//! Structured bodies, both ways: `x-ms-structured-body` on uploads and on Get Blob.

use wire::structured::{Encoder, VALUE};

use crate::harness::Table;
use crate::stage::{BLOCK_BLOB, Stage};

const FORM: (&str, &str) = ("x-ms-structured-body", VALUE);
const LENGTH: &str = "x-ms-structured-content-length";

fn framed(payload: &[u8]) -> Vec<u8> {
    Encoder::new(payload.len() as u64).next(payload.to_vec().into()).concat()
}

/// More than one segment, and more than travels in one piece.
#[test]
fn there_and_back() {
    let stage = Stage::new();
    let payload: Vec<u8> = (0..9_500_000_u32).map(|n| (n / 3) as u8).collect();
    let length = payload.len().to_string();
    let put = stage.call("PUT cont/blob", &[BLOCK_BLOB, FORM, (LENGTH, &length)], framed(&payload)).ok();
    assert_eq!(put.header(FORM.0), Some(VALUE));
    assert!(stage.get("cont/blob").body == payload);
    let got = stage.call("GET cont/blob", &[FORM], "").ok();
    assert_eq!((got.header(FORM.0), got.header(LENGTH)), (Some(VALUE), Some(&*length)));
    assert!(got.body == framed(&payload));
    let part = stage.call("GET cont/blob", &[FORM, ("range", "bytes=4000000-8999999")], "").ok();
    assert_eq!((part.status, part.header(LENGTH)), (206, Some("5000000")));
    assert!(part.body == framed(&payload[4_000_000..9_000_000]));
}

#[test]
fn what_is_damaged_is_refused() {
    let stage = Stage::new();
    stage.put("cont/blob", "old");
    let before = stage.everything();
    let good = framed(b"some content");
    let mut flipped = good.clone();
    flipped[30] ^= 4;
    let mut table = Table::new("structured_body");
    for (row, form, length, body, expected) in [
        ("damaged", VALUE, "12", &flipped, "400 Crc64Mismatch"),
        ("another length", VALUE, "13", &good, "400 InvalidInput"),
        ("not a message", VALUE, "12", &b"some content".repeat(9), "400 InvalidInput"),
        ("no length", VALUE, "", &good, "400 MissingRequiredHeader"),
        ("another form", "XSM/1.0; properties=md5", "12", &good, "400 InvalidHeaderValue"),
    ] {
        let refused = stage.call("PUT cont/blob", &[BLOCK_BLOB, (FORM.0, form), (LENGTH, length)], body);
        table.row(row, refused.said(), expected);
    }
    assert_eq!(stage.everything(), before);
}
