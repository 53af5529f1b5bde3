//! Structured bodies, both ways: `x-ms-structured-body` on Put Range, on Create File and on Get File.

use wire::structured::{Encoder, VALUE};

use crate::harness::Table;
use crate::stage::{FILE, LENGTH, Stage, UPDATE, pattern};

const FORM: (&str, &str) = ("x-ms-structured-body", VALUE);
const PLAIN_LENGTH: &str = "x-ms-structured-content-length";

fn framed(payload: &[u8]) -> Vec<u8> {
    Encoder::new(payload.len() as u64).next(payload.to_vec().into()).concat()
}

#[test]
fn there_and_back() {
    let stage = Stage::new();
    let payload = pattern(1, 4 << 20);
    let length = payload.len().to_string();
    stage.make_file("share/file", 6 << 20);
    // Encoded it is longer than 4 MiB; what counts is the content.
    let headers = [UPDATE, FORM, (PLAIN_LENGTH, length.as_str()), ("x-ms-range", "bytes=1048576-5242879")];
    let put = stage.call("PUT share/file?comp=range", &headers, framed(&payload));
    assert_eq!(put.said(), "201");
    assert_eq!(put.header(FORM.0), Some(VALUE));
    assert!(stage.read_range("share/file", 1 << 20, (5 << 20) - 1) == payload);
    let got = stage.call("GET share/file", &[FORM, ("x-ms-range", "bytes=1048576-5242879")], "").ok();
    assert_eq!((got.status, got.header(FORM.0), got.header(PLAIN_LENGTH)), (206, Some(VALUE), Some(&*length)));
    assert!(got.body == framed(&payload));
    let content = pattern(2, 1_000);
    let headers = [FILE, (LENGTH, "1000"), FORM, (PLAIN_LENGTH, "1000")];
    let made = stage.call("PUT share/made", &headers, framed(&content));
    assert_eq!((made.said().as_str(), made.header(FORM.0)), ("201", Some(VALUE)));
    let got = stage.call("GET share/made", &[FORM], "").ok();
    assert!(got.status == 200 && got.body == framed(&content));
}

#[test]
fn what_is_damaged_is_refused() {
    let stage = Stage::new();
    stage.put_file("share/file", "some content");
    let before = stage.everything();
    let good = framed(b"some content");
    let mut flipped = good.clone();
    flipped[30] ^= 4;
    let mut table = Table::new("structured_body");
    for (row, form, length, body, expected) in [
        ("damaged", VALUE, "12", &flipped, "400 Crc64Mismatch"),
        ("another length", VALUE, "13", &good, "400"),
        ("not a message", VALUE, "12", &b"some content".repeat(9), "400 InvalidInput"),
        ("no length", VALUE, "", &good, "400 MissingRequiredHeader"),
        ("another form", "XSM/1.0; properties=md5", "12", &good, "400 InvalidHeaderValue"),
    ] {
        let headers = [UPDATE, ("x-ms-range", "bytes=0-11"), (FORM.0, form), (PLAIN_LENGTH, length)];
        let refused = stage.call("PUT share/file?comp=range", &headers, body);
        let got = if expected == "400" { refused.status.to_string() } else { refused.said() };
        table.row(row, got, expected);
    }
    assert_eq!(stage.everything(), before);
}
