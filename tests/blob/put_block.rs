//! Put Block.

use wire::base64;
use wire::checksum::{Crc64, Md5};

use crate::harness::{Headers, Table};
use crate::stage::{A, Stage, block_list, percent};

/// Block ids as they stand in the URL, before percent-encoding.
#[test]
fn ids() {
    let stage = Stage::new();
    let (longest, too_long) = (base64::encode(&[7; 64]), base64::encode(&[7; 65]));
    #[rustfmt::skip]
    let rows: &[(&str, Option<&str>, &str)] = &[
        ("one byte",          Some("AA=="), "201"),
        ("any bytes",         Some("+/+/"), "201"),
        ("64 bytes",          Some(&longest), "201"),
        ("65 bytes",          Some(&too_long), "400 OutOfRangeInput"),
        ("not base64",        Some("!!!!"), "400 InvalidQueryParameterValue"),
        ("no padding",        Some("AA"), "400 InvalidQueryParameterValue"),
        ("nothing",           Some(""), "400 MissingRequiredQueryParameter"),
        ("umlauts",           Some("ÄÖÜß"), "400 InvalidQueryParameterValue"),
        ("none",              None, "400 MissingRequiredQueryParameter"),
    ];
    let mut table = Table::new("put_block ids");
    for (what, id, expected) in rows {
        let id = id.map(|id| format!("&blockid={}", percent(id))).unwrap_or_default();
        let blob = format!("cont/{}", percent(what));
        let answer = stage.call(&format!("PUT {blob}?comp=block{id}"), &[], "x");
        table.row(what, answer.said(), expected);
        let list = stage.get(&format!("{blob}?comp=blocklist&blocklisttype=uncommitted")).status;
        table.row(format!("{what}: a blob of blocks"), list, if *expected == "201" { 200 } else { 404 });
    }
}

#[test]
fn ids_of_one_blob_have_one_length() {
    let stage = Stage::new();
    stage.put_block("cont/blob", "AAAA", "x");
    let before = stage.everything();
    let mut table = Table::new("put_block lengths");
    for id in ["AAAAAAAA", "AA%3D%3D"] {
        let answer = stage.call(&format!("PUT cont/blob?comp=block&blockid={id}"), &[], "y");
        table.row(id, answer.said(), "400 InvalidBlobOrBlock");
        assert_eq!(stage.everything(), before);
    }
    // Once they are committed, others may come with another length.
    stage.call("PUT cont/blob?comp=blocklist", &[], block_list(&[("Latest", "AAAA")])).ok();
    table.row("after the commit", stage.call("PUT cont/blob?comp=block&blockid=AAAAAAAA", &[], "y").said(), "201");
}

#[test]
fn bad_requests_change_nothing() {
    let stage = Stage::new();
    stage.put("cont/blob", "old");
    stage.put_block("cont/blob", "AAAA", "waiting");
    let before = stage.everything();
    let empty_md5 = "1B2M2Y8AsgTpgAmY7PhCfg==";
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str, &str)] = &[
        ("an empty block",   &[], "", "400 InvalidHeaderValue"),
        ("wrong MD5",        &[("content-md5", empty_md5)], "x", "400 Md5Mismatch"),
        ("wrong CRC64",      &[("x-ms-content-crc64", "AQAAAAAAAAA=")], "x", "400 Crc64Mismatch"),
        ("both sums",        &[("content-md5", empty_md5), ("x-ms-content-crc64", "AQAAAAAAAAA=")], "x", "400 BothCrc64AndMd5HeaderPresent"),
        ("MD5 not base64",   &[("content-md5", "x")], "x", "400 InvalidMd5"),
        ("CRC64 not base64", &[("x-ms-content-crc64", "x")], "x", "400 InvalidHeaderValue"),
        ("lease id no GUID", &[("x-ms-lease-id", "x")], "x", "400 InvalidHeaderValue"),
        ("id of no lease",   &[("x-ms-lease-id", A)], "x", "412 LeaseNotPresentWithBlobOperation"),
    ];
    let mut table = Table::new("put_block");
    for (what, headers, body, expected) in rows {
        for id in ["AAAA", "BBBB"] {
            let answer = stage.call(&format!("PUT cont/blob?comp=block&blockid={id}"), headers, body);
            table.row(format!("{what}, {id}"), answer.said(), expected);
            assert_eq!(stage.everything(), before, "{what}");
        }
    }
    let client = &stage.client;
    let line = "PUT cont/blob?comp=block&blockid=BBBB";
    let over = client.head(line, &[], Some((4_000 << 20) + 1));
    table.row("over the limit", client.call_odd(line, &over, b"").said(), "413 RequestBodyTooLarge");
    let over = client.head(line, &[("x-ms-version", "2019-07-07")], Some((100 << 20) + 1));
    table.row("over the limit of 2019", client.call_odd(line, &over, b"").said(), "413 RequestBodyTooLarge");
    table.row(
        "no length",
        client.call_odd(line, &client.head(line, &[], None), b"").said(),
        "411 MissingContentLengthHeader",
    );
    client.hang_up(&client.head(line, &[], Some(100)), b"not all");
    let cut = client.cut_short(line, &client.head(line, &[], Some(100)), b"not all");
    assert!(cut.as_ref().is_none_or(|answer| answer.status >= 400), "{cut:?}");
    assert_eq!(stage.everything(), before);
}

#[test]
fn what_is_answered() {
    let stage = Stage::new();
    let (md5, crc64) = (base64::encode(&Md5::of(b"x")), base64::encode_crc64(Crc64::of(b"x")));
    let line = "PUT cont/blob?comp=block&blockid=AAAA";
    let plain = stage.call(line, &[], "x").ok();
    assert_eq!((plain.header("content-md5"), plain.header("x-ms-content-crc64")), (None, Some(&*crc64)));
    // The reference says that the MD5 stands in for the CRC64; the service's own clients see both.
    let by_md5 = stage.call(line, &[("content-md5", &md5)], "x").ok();
    assert_eq!((by_md5.header("content-md5"), by_md5.header("x-ms-content-crc64")), (Some(&*md5), Some(&*crc64)));
    // Properties of the blob have no place here, not even wrong ones.
    let ignored = stage.call(line, &[("x-ms-blob-content-md5", "wrong"), ("x-ms-blob-content-type", "a/b")], "x");
    assert_eq!(ignored.said(), "201");
}

/// A blob of nothing but blocks is there for those who ask for it and for nobody else.
#[test]
fn a_blob_of_blocks_alone() {
    let stage = Stage::new();
    stage.put_block("cont/blob", "AAAA", "x");
    assert_eq!(stage.get("cont/blob").said(), "404 BlobNotFound");
    assert_eq!(stage.head("cont/blob").said(), "404 BlobNotFound");
    assert_eq!(stage.get("cont?restype=container&comp=list").xml().all("Blobs"), []);
    let listed = stage.get("cont?restype=container&comp=list&include=uncommittedblobs").xml();
    assert_eq!(listed.all("Blobs").len(), 1);
    let blob = &listed.all("Blobs")[0];
    assert_eq!(blob.text_of("Properties/Content-Length").as_deref(), Some("0"));
    assert_eq!((blob.find("Properties/Etag"), blob.find("Properties/Last-Modified")), (None, None));
}

const DAY: u64 = 24 * 60 * 60;

/// Uncommitted blocks are dropped a week after the last of them came.
#[test]
fn blocks_that_nobody_commits_are_dropped_after_a_week() {
    let stage = Stage::new();
    stage.put_block("cont/staged", "AAAA", "x");
    stage.put("cont/blob", "old");
    stage.put_block("cont/blob", "AAAA", "x");
    stage.server.advance(6 * DAY);
    stage.put_block("cont/blob", "BBBB", "y");
    stage.server.advance(2 * DAY);
    let waiting = |blob: &str| stage.get(&format!("{blob}?comp=blocklist&blocklisttype=uncommitted"));
    assert_eq!(waiting("cont/staged").said(), "404 BlobNotFound");
    // The week begins again with every block.
    assert_eq!(waiting("cont/blob").xml().all("UncommittedBlocks").len(), 2);
    stage.call("PUT cont/blob?comp=blocklist", &[], block_list(&[("Latest", "AAAA")])).ok();
    stage.put_block("cont/blob", "CCCC", "z");
    stage.server.advance(8 * DAY);
    assert_eq!(waiting("cont/blob").xml().all("UncommittedBlocks"), []);
    assert_eq!(stage.get("cont/blob").body, b"x");
    let listed = stage.get("cont?restype=container&comp=list&include=uncommittedblobs").xml();
    let names: Vec<_> = listed.all("Blobs").iter().filter_map(|blob| blob.text_of("Name")).collect();
    assert_eq!(names, ["blob"]);
}

/// Not when somebody comes by to tidy up.
#[test]
fn blocks_are_gone_the_moment_their_week_is_over() {
    let stage = Stage::new();
    for round in 0..20 {
        let blob = format!("cont/blob{round}");
        stage.put_block(&blob, "AAAA", "x");
        stage.server.advance(8 * DAY);
        let commit = stage.call(&format!("PUT {blob}?comp=blocklist"), &[], block_list(&[("Latest", "AAAA")]));
        assert_eq!(commit.said(), "400 InvalidBlockList", "round {round}");
    }
}
