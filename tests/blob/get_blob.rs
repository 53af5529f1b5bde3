//! Get Blob: ranges and sums. Conditions are in `blob_conditions`, the other headers in `put_blob`.

use wire::base64;
use wire::checksum::{Crc64, Md5};

use crate::harness::{Headers, Table};
use crate::stage::{Stage, block_list};

const CONTENT: &str = "0123456789";

/// What a range gives of ten bytes: the status, `Content-Range` and the body.
#[rustfmt::skip]
const RANGES: &[(&str, Headers<'static>, &str, Option<&str>, &str)] = &[
    ("none",                     &[], "200", None, CONTENT),
    ("first to last",            &[("range", "bytes=2-4")], "206", Some("bytes 2-4/10"), "234"),
    ("open end",                 &[("range", "bytes=7-")], "206", Some("bytes 7-9/10"), "789"),
    ("all",                      &[("range", "bytes=0-")], "206", Some("bytes 0-9/10"), CONTENT),
    ("one byte",                 &[("range", "bytes=9-9")], "206", Some("bytes 9-9/10"), "9"),
    ("over the end",             &[("range", "bytes=8-99")], "206", Some("bytes 8-9/10"), "89"),
    ("at the end",               &[("range", "bytes=10-")], "416 InvalidRange", Some("bytes */10"), ""),
    ("far away",                 &[("range", "bytes=1000-2000")], "416 InvalidRange", Some("bytes */10"), ""),
    ("x-ms-range",               &[("x-ms-range", "bytes=1-2")], "206", Some("bytes 1-2/10"), "12"),
    ("x-ms-range wins",          &[("x-ms-range", "bytes=1-2"), ("range", "bytes=5-6")], "206", Some("bytes 1-2/10"), "12"),
    ("a suffix is ignored",      &[("range", "bytes=-3")], "200", None, CONTENT),
    ("several are ignored",      &[("range", "bytes=0-1,3-4")], "200", None, CONTENT),
    ("another unit is ignored",  &[("range", "lines=1-2")], "200", None, CONTENT),
    ("backwards is ignored",     &[("range", "bytes=4-2")], "200", None, CONTENT),
    ("no range is ignored",      &[("range", "hello")], "200", None, CONTENT),
    ("too large a number",       &[("range", "bytes=0-99999999999999999999999")], "200", None, CONTENT),
    ("x-ms-range is not",        &[("x-ms-range", "hello")], "400 InvalidHeaderValue", None, ""),
    ("x-ms-range backwards",     &[("x-ms-range", "bytes=4-2")], "400 InvalidHeaderValue", None, ""),
    ("x-ms-range of two",        &[("x-ms-range", "bytes=0-1,3-4")], "400 InvalidHeaderValue", None, ""),
];

#[test]
fn ranges() {
    let stage = Stage::new();
    let mut table = Table::new("get_blob ranges");
    stage.put("cont/whole", CONTENT);
    for (id, part) in [("AAAA", "012"), ("BBBB", "3456"), ("CCCC", "789")] {
        stage.put_block("cont/blocks", id, part);
    }
    let list = block_list(&[("Latest", "AAAA"), ("Latest", "BBBB"), ("Latest", "CCCC")]);
    stage.call("PUT cont/blocks?comp=blocklist", &[], list).ok();
    for blob in ["cont/whole", "cont/blocks"] {
        for (what, headers, said, range, body) in RANGES {
            let answer = stage.call(&format!("GET {blob}"), headers, "");
            table.row(format!("{blob}, {what}"), answer.said(), said);
            let got = answer.header("content-range");
            table.row(format!("{blob}, {what}: Content-Range"), format!("{got:?}"), format!("{range:?}"));
            if answer.is_success() {
                table.row(format!("{blob}, {what}: body"), String::from_utf8_lossy(&answer.body), body);
                table.row(
                    format!("{blob}, {what}: Accept-Ranges"),
                    answer.header("accept-ranges").unwrap_or("none"),
                    "bytes",
                );
            }
        }
        let head = stage.call(&format!("HEAD {blob}"), &[("range", "bytes=2-4")], "");
        table.row(
            format!("{blob}, HEAD"),
            format!("{} {:?}", head.status, head.header("content-length")),
            "200 Some(\"10\")",
        );
    }
    stage.put("cont/empty", "");
    table.row("empty", stage.call("GET cont/empty", &[("range", "bytes=1-")], "").said(), "416 InvalidRange");
    table.row("empty, no range", stage.get("cont/empty").said(), "200");
}

/// Every range of a blob whose blocks have different sizes.
#[test]
fn ranges_across_blocks() {
    let stage = Stage::new();
    let sizes = [1_usize, 70_000, 3, 4096, 200_000, 17];
    let mut content = Vec::new();
    let mut list = Vec::new();
    let ids: Vec<String> = (0..sizes.len()).map(|at| base64::encode(format!("{at:03}").as_bytes())).collect();
    for (at, size) in sizes.iter().enumerate() {
        let block: Vec<u8> = (0..*size).map(|byte| (byte * 31 + at * 7) as u8).collect();
        stage.put_block("cont/blob", &ids[at], &block);
        content.extend_from_slice(&block);
        list.push(("Uncommitted", ids[at].as_str()));
    }
    stage.call("PUT cont/blob?comp=blocklist", &[], block_list(&list)).ok();
    assert!(stage.get("cont/blob").body == content);
    let mut borders: Vec<usize> = sizes
        .iter()
        .scan(0, |sum, size| {
            *sum += size;
            Some(*sum)
        })
        .collect();
    borders.insert(0, 1);
    for first in borders.iter().flat_map(|at| [at - 1, *at]).filter(|at| *at < content.len()) {
        for last in borders.iter().flat_map(|at| [at - 1, *at]).filter(|at| *at >= first && *at < content.len()) {
            let got = stage.call("GET cont/blob", &[("range", &format!("bytes={first}-{last}"))], "");
            assert_eq!(got.status, 206, "{first}-{last}");
            assert!(got.body == content[first..=last], "{first}-{last}");
        }
    }
}

#[test]
fn sums_of_ranges() {
    let stage = Stage::new();
    stage.put("cont/blob", CONTENT);
    let whole = base64::encode(&Md5::of(CONTENT.as_bytes()));
    let (md5, crc64) = (("x-ms-range-get-content-md5", "true"), ("x-ms-range-get-content-crc64", "true"));
    let range = ("range", "bytes=2-4");
    let got = stage.call("GET cont/blob", &[range], "");
    assert_eq!((got.header("content-md5"), got.header("x-ms-blob-content-md5")), (None, Some(&*whole)));
    let got = stage.call("GET cont/blob", &[range, md5], "");
    assert_eq!(got.header("content-md5"), Some(&*base64::encode(&Md5::of(b"234"))));
    assert_eq!(got.header("x-ms-blob-content-md5"), Some(&*whole));
    let got = stage.call("GET cont/blob", &[range, crc64], "");
    assert_eq!(got.header("x-ms-content-crc64"), Some(&*base64::encode_crc64(Crc64::of(b"234"))));
    let mut table = Table::new("get_blob sums");
    stage.put("cont/large", vec![b'x'; (4 << 20) + 1]);
    table.row("MD5 without a range", stage.call("GET cont/blob", &[md5], "").status, 400);
    table.row("CRC64 without a range", stage.call("GET cont/blob", &[crc64], "").status, 400);
    table.row("both", stage.call("GET cont/blob", &[range, md5, crc64], "").status, 400);
    table.row(
        "neither yes nor no",
        stage.call("GET cont/blob", &[range, (md5.0, "maybe")], "").said(),
        "400 InvalidHeaderValue",
    );
    let four = ("range", "bytes=0-4194303");
    table.row("4 MiB", stage.call("GET cont/large", &[four, md5], "").said(), "206");
    table.row("more than 4 MiB", stage.call("GET cont/large", &[("range", "bytes=0-4194304"), md5], "").status, 400);
    table.row("more than 4 MiB, CRC64", stage.call("GET cont/large", &[("range", "bytes=0-"), crc64], "").status, 400);
}

#[test]
fn what_cannot_be_read() {
    let stage = Stage::new();
    stage.put("cont/blob", CONTENT);
    stage.put_block("cont/staged", "AAAA", "x");
    #[rustfmt::skip]
    let rows: &[(&str, &str)] = &[
        ("cont/none",                                       "404 BlobNotFound"),
        ("cont/staged",                                     "404 BlobNotFound"),
        ("none/blob",                                       "404 ContainerNotFound"),
        ("cont/blob?snapshot=2026-01-01T00:00:00.0000000Z", "404 BlobNotFound"),
        ("cont/blob?snapshot=yesterday",                    "400 InvalidQueryParameterValue"),
        ("cont/blob?snapshot=now",                          "400 InvalidQueryParameterValue"),
        ("cont/blob?versionid=yesterday",                   "400 InvalidQueryParameterValue"),
    ];
    let mut table = Table::new("get_blob refusals");
    for (target, expected) in rows {
        for verb in ["GET", "HEAD"] {
            table.row(format!("{verb} {target}"), stage.call(&format!("{verb} {target}"), &[], "").said(), expected);
        }
    }
}
