//! Put Blob.

use wire::base64;
use wire::checksum::{Crc64, Md5};

use crate::harness::{Headers, Table};
use crate::stage::{BLOCK_BLOB, Stage, percent};

#[test]
fn content_properties_and_metadata_are_replaced_together() {
    let stage = Stage::new();
    let headers = [
        BLOCK_BLOB,
        ("x-ms-blob-content-type", "text/plain"),
        ("x-ms-blob-content-encoding", "identity"),
        ("x-ms-blob-content-language", "de"),
        ("x-ms-blob-content-disposition", "inline"),
        ("x-ms-blob-cache-control", "no-cache"),
        ("x-ms-meta-Colour", "blue"),
    ];
    let put = stage.call("PUT cont/blob", &headers, "hello").ok();
    assert_eq!(put.header("x-ms-request-server-encrypted"), Some("true"));
    let got = stage.get("cont/blob").ok();
    assert_eq!(got.body, b"hello");
    let told = [
        ("content-type", "text/plain"),
        ("content-encoding", "identity"),
        ("content-language", "de"),
        ("content-disposition", "inline"),
        ("cache-control", "no-cache"),
        ("x-ms-meta-colour", "blue"),
        ("x-ms-blob-type", "BlockBlob"),
        ("accept-ranges", "bytes"),
        ("x-ms-server-encrypted", "true"),
        ("x-ms-lease-state", "available"),
        ("x-ms-lease-status", "unlocked"),
        ("content-md5", &base64::encode(&Md5::of(b"hello"))),
    ];
    for (name, value) in told {
        assert_eq!(got.header(name), Some(value), "{name}");
        assert_eq!(stage.head("cont/blob").header(name), Some(value), "{name}");
    }
    assert_eq!((got.etag(), got.last_modified()), (put.etag(), put.last_modified()));
    stage.put_block("cont/blob", "AAAA", "waiting");
    stage.put("cont/blob", "");
    let got = stage.get("cont/blob").ok();
    assert_eq!((got.body.len(), got.header("content-type")), (0, Some("application/octet-stream")));
    for name in ["content-encoding", "content-language", "content-disposition", "cache-control", "x-ms-meta-colour"] {
        assert_eq!(got.header(name), None, "{name}");
    }
    // What was waiting is discarded.
    let list = stage.get("cont/blob?comp=blocklist&blocklisttype=all").xml();
    assert_eq!(list.all("UncommittedBlocks"), []);
}

#[test]
fn sums_are_checked_and_answered() {
    let stage = Stage::new();
    let (md5, crc64) = (base64::encode(&Md5::of(b"hello")), base64::encode_crc64(Crc64::of(b"hello")));
    let put = |header: &[(&str, &str)]| stage.call("PUT cont/blob", &[&[BLOCK_BLOB], header].concat(), "hello").ok();
    let plain = put(&[]);
    assert_eq!((plain.header("content-md5"), plain.header("x-ms-content-crc64")), (None, Some(&*crc64)));
    let by_crc64 = put(&[("x-ms-content-crc64", &crc64)]);
    assert_eq!((by_crc64.header("content-md5"), by_crc64.header("x-ms-content-crc64")), (None, Some(&*crc64)));
    let by_md5 = put(&[("content-md5", &md5)]);
    assert_eq!((by_md5.header("content-md5"), by_md5.header("x-ms-content-crc64")), (Some(&*md5), None));
    put(&[("x-ms-blob-content-md5", &md5)]);
}

/// Nothing of a refused upload is ever seen.
#[test]
fn bad_requests_change_nothing() {
    let stage = Stage::new();
    stage.put("cont/blob", "old");
    stage.put_block("cont/blob", "AAAA", "waiting");
    let before = stage.everything();
    let long = "x".repeat(8 * 1024);
    let empty_md5 = "1B2M2Y8AsgTpgAmY7PhCfg==";
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("no type",                 &[], "400 MissingRequiredHeader"),
        ("an unknown type",         &[("x-ms-blob-type", "Blob")], "400 InvalidHeaderValue"),
        ("wrong MD5",               &[BLOCK_BLOB, ("content-md5", empty_md5)], "400 Md5Mismatch"),
        ("wrong MD5 of the blob",   &[BLOCK_BLOB, ("x-ms-blob-content-md5", empty_md5)], "400 Md5Mismatch"),
        ("wrong CRC64",             &[BLOCK_BLOB, ("x-ms-content-crc64", "AQAAAAAAAAA=")], "400 Crc64Mismatch"),
        ("both sums",               &[BLOCK_BLOB, ("content-md5", empty_md5), ("x-ms-content-crc64", "AQAAAAAAAAA=")], "400 BothCrc64AndMd5HeaderPresent"),
        ("MD5 of 15 bytes",         &[BLOCK_BLOB, ("content-md5", "AAAAAAAAAAAAAAAAAAAA")], "400 InvalidMd5"),
        ("MD5 not base64",          &[BLOCK_BLOB, ("content-md5", "hello")], "400 InvalidMd5"),
        ("MD5 of the blob, bad",    &[BLOCK_BLOB, ("x-ms-blob-content-md5", "!")], "400 InvalidMd5"),
        ("CRC64 of 7 bytes",        &[BLOCK_BLOB, ("x-ms-content-crc64", "AAAAAAAAAA==")], "400 InvalidHeaderValue"),
        ("CRC64 not base64",        &[BLOCK_BLOB, ("x-ms-content-crc64", "?")], "400 InvalidHeaderValue"),
        ("lease id no GUID",        &[BLOCK_BLOB, ("x-ms-lease-id", "1234")], "400 InvalidHeaderValue"),
        ("no date",                 &[BLOCK_BLOB, ("if-unmodified-since", "tomorrow")], "400 InvalidHeaderValue"),
        ("open ETag",               &[BLOCK_BLOB, ("if-match", "\"0x")], "412 ConditionNotMet"),
        ("empty metadata name",     &[BLOCK_BLOB, ("x-ms-meta-", "x")], "400 EmptyMetadataKey"),
        ("no identifier",           &[BLOCK_BLOB, ("x-ms-meta-a.b", "x")], "400 InvalidMetadata"),
        ("umlauts in metadata",     &[BLOCK_BLOB, ("x-ms-meta-a", "ü")], "400 InvalidMetadata"),
        ("too much metadata",       &[BLOCK_BLOB, ("x-ms-meta-a", &long)], "400 MetadataTooLarge"),
        ("an unknown tier",         &[BLOCK_BLOB, ("x-ms-access-tier", "Warm")], "400 InvalidHeaderValue"),
        ("no version",              &[BLOCK_BLOB, ("x-ms-version", "1.0")], "400 InvalidHeaderValue"),
        ("a snapshot",              &[BLOCK_BLOB], "400"),
    ];
    let mut table = Table::new("put_blob");
    for (what, headers, expected) in rows {
        let target =
            if *what == "a snapshot" { "cont/blob?snapshot=2026-01-01T00:00:00.0000000Z" } else { "cont/blob" };
        let answer = stage.call(&format!("PUT {target}"), headers, "new content");
        table.row(what, if *expected == "400" { answer.status.to_string() } else { answer.said() }, expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
}

/// Bodies that are not what their head says.
#[test]
fn bodies_that_do_not_come_whole() {
    let stage = Stage::new();
    stage.put("cont/blob", "old");
    let before = stage.everything();
    let client = &stage.client;
    let mut table = Table::new("put_blob bodies");
    let line = "PUT cont/blob";
    let big = vec![b'x'; 1 << 20];

    let head = client.head(line, &[BLOCK_BLOB], Some(1000));
    let cut = client.cut_short(line, &head, b"only this");
    // Whoever goes away in the middle may get no answer; if there is one, it is a refusal.
    assert!(cut.as_ref().is_none_or(|answer| answer.status >= 400), "{cut:?}");
    assert_eq!(stage.everything(), before);
    client.hang_up(&head, b"only this");
    client.hang_up(&client.head(line, &[BLOCK_BLOB], Some(100 << 20)), &big);
    client.hang_up(&head, b"");
    assert_eq!(stage.everything(), before);

    let no_length = client.head(line, &[BLOCK_BLOB], None);
    table.row("no length", client.call_odd(line, &no_length, b"").said(), "411 MissingContentLengthHeader");
    let chunked = no_length.replace("\r\n\r\n", "\r\ntransfer-encoding: chunked\r\n\r\n");
    let answer = client.call_odd(line, &chunked, b"3\r\nnew\r\n0\r\n\r\n");
    table.row("in chunks", answer.said(), "411 MissingContentLengthHeader");
    let too_long = client.head(line, &[BLOCK_BLOB], Some((5_000 << 20) + 1));
    table.row("over the limit", client.call_odd(line, &too_long, b"").said(), "413 RequestBodyTooLarge");
    let old = client.head(line, &[BLOCK_BLOB, ("x-ms-version", "2019-07-07")], Some((256 << 20) + 1));
    table.row("over the limit of 2019", client.call_odd(line, &old, b"").said(), "413 RequestBodyTooLarge");
    assert_eq!(stage.everything(), before);
}

/// `Expect: 100-continue`: a refusal comes before the body is asked for.
#[test]
fn refusals_come_before_the_body() {
    let stage = Stage::new();
    stage.put("cont/blob", "old");
    let client = &stage.client;
    let line = "PUT cont/blob";
    let expect = ("expect", "100-continue");
    let stale = client.head(line, &[BLOCK_BLOB, expect, ("if-match", "\"0x1\"")], Some(50 << 20));
    assert_eq!(client.call_odd(line, &stale, b"").said(), "412 ConditionNotMet");
    let fine = client.head(line, &[BLOCK_BLOB, expect], Some(3));
    assert_eq!(client.call_odd(line, &fine, b"new").said(), "201");
    assert_eq!(stage.get("cont/blob").body, b"new");
}

/// Names are any text, case and all; what a path cannot say is percent-encoded.
#[test]
fn names() {
    let stage = Stage::new();
    let (long, too_long) = ("n".repeat(1024), "n".repeat(1025));
    let (deep, too_deep) = (vec!["d"; 254].join("/"), vec!["d"; 255].join("/"));
    let umlauts = "ä".repeat(1024);
    #[rustfmt::skip]
    let rows: &[(&str, &str)] = &[
        ("a",               "201"),
        ("A",               "201"),
        ("with space",      "201"),
        ("100%",            "201"),
        ("a+b&c=d?e#f",     "201"),
        ("quote\"s'<>",     "201"),
        ("dir/sub/file",    "201"),
        ("dir//file",       "201"),
        ("trailing/",       "201"),
        ("dot.",            "201"),
        ("..",              "201"),
        ("a/../b",          "201"),
        ("~",               "201"),
        ("üñí/日本語/😀",    "201"),
        ("\u{1}\u{1f}",     "201"),
        ("a\u{fffe}b",      "201"),
        ("%2F",             "201"),
        (&long,             "201"),
        (&umlauts,          "201"),
        (&deep,             "201"),
        (&too_long,         "400 OutOfRangeInput"),
        (&too_deep,         "400 OutOfRangeInput"),
    ];
    let mut table = Table::new("put_blob names");
    for (name, expected) in rows {
        let shown: String = name.chars().take(30).collect();
        let target = format!("cont/{}", percent(name));
        let answer = stage.call(&format!("PUT {target}"), &[BLOCK_BLOB], *name);
        table.row(format!("{shown:?}"), answer.said(), expected);
        if answer.status == 201 {
            table.row(format!("{shown:?}: read back"), stage.get(&target).body == name.as_bytes(), true);
        }
    }
    // The same name written in two ways is the same blob.
    assert_eq!(stage.get("cont/dir/sub/file").body, b"dir/sub/file");
    assert_eq!(stage.get("cont/dir%2Fsub%2ffile").body, b"dir/sub/file");
    for (target, expected) in [("cont/%zz", "400"), ("cont/%c3", "400"), ("cont/a%00b", "400")] {
        table.row(target, stage.call(&format!("PUT {target}"), &[BLOCK_BLOB], "x").status, expected);
    }
}

#[test]
fn unsupported_verbs() {
    let stage = Stage::new();
    stage.put("cont/blob", "old");
    let before = stage.everything();
    let mut table = Table::new("verbs");
    table.row("POST", stage.call("POST cont/blob", &[], "x").said(), "405 UnsupportedHttpVerb");
    table.row("PATCH", stage.call("PATCH cont/blob", &[], "x").said(), "405 UnsupportedHttpVerb");
    table.row("no verb", stage.call("FROB cont/blob", &[], "x").said(), "400 InvalidHttpVerb");
    table.row("POST container", stage.call("POST cont?restype=container", &[], "").said(), "405 UnsupportedHttpVerb");
    table.row(
        "unknown comp",
        stage.call("PUT cont/blob?comp=nothing", &[], "").said(),
        "400 InvalidQueryParameterValue",
    );
    table.row(
        "unknown restype",
        stage.call("PUT cont?restype=cupboard", &[], "").said(),
        "400 InvalidQueryParameterValue",
    );
    assert_eq!(stage.everything(), before);
}

/// Sizes on both sides of what is stored in one place or another.
#[test]
fn contents_of_every_size() {
    let stage = Stage::new();
    let bytes: Vec<u8> = (0..9_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for size in [0, 1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 1 << 20, (4 << 20) + 1, 8 << 20, (8 << 20) + 1] {
        let md5 = base64::encode(&Md5::of(&bytes[..size]));
        stage.call("PUT cont/blob", &[BLOCK_BLOB, ("content-md5", &md5)], &bytes[..size]).ok();
        let got = stage.get("cont/blob").ok();
        assert!(got.body == bytes[..size], "{size}");
        assert_eq!(got.header("content-md5"), Some(&*md5));
    }
}
