//! Put Range From URL: bytes of a file, a blob, or something elsewhere.

use crate::harness::Elsewhere;
use crate::harness::{Headers, Table};
use crate::signatures;
use crate::stage::{A, Stage, UPDATE, pattern};

const COPY_SOURCE: &str = "x-ms-copy-source";
const LINE: &str = "PUT share/file?comp=range";

#[test]
fn from_everywhere() {
    let stage = Stage::new();
    let content = pattern(1, 5_000);
    stage.put_file("share/from", &content);
    stage.make_file("share/file", 10_000);
    let blobs = stage.server.blob_client();
    blobs.call("PUT cont?restype=container", &[], "").ok();
    blobs.call("PUT cont/blob", &[("x-ms-blob-type", "BlockBlob")], &content).ok();
    let elsewhere = Elsewhere::start(content[100..1_600].to_vec(), usize::MAX, &[]);
    let of_file = signatures::for_path(&stage.client, "share/from", "r");
    let of_blob = signatures::for_services(&stage.client, "b", "r", "o");
    let mut expected = vec![0; 10_000];
    let mut table = Table::new("put_range_from_url: sources");
    let part = ("x-ms-source-range", "bytes=100-1599");
    let rows: [(&str, String, usize, Headers<'_>); 3] = [
        ("a file", stage.client.url(&format!("share/from?{of_file}")), 0, &[part]),
        ("a blob", blobs.url(&format!("cont/blob?{of_blob}")), 3_000, &[part]),
        ("elsewhere", elsewhere.url(), 8_500, &[]),
    ];
    for (row, url, start, headers) in rows {
        let range = format!("bytes={start}-{}", start + 1_499);
        let headers = [&[UPDATE, (COPY_SOURCE, &*url), ("x-ms-range", &*range)], headers].concat();
        let answer = stage.call(LINE, &headers, "");
        table.row(row, answer.said(), "201");
        table.row(format!("{row}: sum"), answer.header("x-ms-content-crc64").is_some(), true);
        expected[start..start + 1_500].copy_from_slice(&content[100..1_600]);
        table.row(format!("{row}: content"), stage.read("share/file") == expected, true);
    }
}

#[test]
fn what_stands_against_it() {
    let stage = Stage::new();
    stage.put_file("share/from", "0123456789");
    stage.make_file("share/file", 100);
    let url = stage.client.url("share/from");
    let signed = format!("{url}?{}", signatures::for_path(&stage.client, "share/from", "r"));
    let wrong = format!("{url}?{}", signatures::for_path(&stage.client, "share/from", "w"));
    let none = format!("{}?{}", stage.client.url("share/none"), signatures::for_path(&stage.client, "share/none", "r"));
    let range = ("x-ms-range", "bytes=0-9");
    let from = |url: &'static str| (COPY_SOURCE, url);
    let [signed, wrong, none, unsigned]: [&'static str; 4] = [signed, wrong, none, url].map(|url| &*url.leak());
    let mut table = Table::new("put_range_from_url: refusals");
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("done",               &[from(signed), UPDATE, range], "201"),
        ("no signature",       &[from(unsigned), UPDATE, range], "401 CannotVerifyCopySource"),
        ("another signature",  &[from(wrong), UPDATE, range], "403 CannotVerifyCopySource"),
        ("no source",          &[from(none), UPDATE, range], "404 CannotVerifyCopySource"),
        ("no URL",             &[from("x"), UPDATE, range], "400 InvalidHeaderValue"),
        ("no write",           &[from(signed), range], "400 MissingRequiredHeader"),
        ("a clear",            &[from(signed), ("x-ms-write", "clear"), range], "400 InvalidHeaderValue"),
        ("no range",           &[from(signed), UPDATE], "400 MissingRequiredHeader"),
        ("beyond the end",     &[from(signed), UPDATE, ("x-ms-range", "bytes=95-104")], "416 InvalidRange"),
        ("over 4 MiB",         &[from(signed), UPDATE, ("x-ms-range", "bytes=0-4194304")], "413 RequestBodyTooLarge"),
        ("fewer bytes",        &[from(signed), UPDATE, ("x-ms-range", "bytes=0-10")], "400 InvalidHeaderValue"),
        ("a range beyond its end", &[from(signed), UPDATE, range, ("x-ms-source-range", "bytes=10-19")], "416 CannotVerifyCopySource"),
        ("another sum",        &[from(signed), UPDATE, range, ("x-ms-source-content-crc64", "AQAAAAAAAAA=")], "400 Crc64Mismatch"),
        ("not this sum",       &[from(signed), UPDATE, range, ("x-ms-source-if-match-crc64", "AQAAAAAAAAA=")], "412 SourceConditionNotMet"),
        ("a lease that is not", &[from(signed), UPDATE, range, ("x-ms-lease-id", A)], "412 LeaseNotPresentWithFileOperation"),
    ];
    for (row, headers, expected) in rows {
        let before = stage.everything();
        let answer = stage.call(LINE, headers, "");
        table.row(row, answer.said(), expected);
        if !answer.is_success() {
            table.row(format!("{row}: nothing changed"), stage.everything() == before, true);
        }
    }
}
