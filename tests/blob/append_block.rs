//! Append Block, and Put Blob as far as it makes append blobs.

use std::collections::BTreeSet;
use std::thread;

use wire::base64;
use wire::checksum::{Crc64, Md5};

use crate::harness::{Headers, Table};
use crate::stage::{A, APPEND_BLOB, BLOCK_BLOB, Stage};

const URL: &str = "PUT cont/blob?comp=appendblock";

#[test]
fn a_blob_grows_at_its_end() {
    let stage = Stage::new();
    let made = stage.call("PUT cont/blob", &[APPEND_BLOB, ("x-ms-blob-content-type", "text/plain")], "").ok();
    let mut table = Table::new("append_block");
    for (count, (block, offset)) in [("one,", "0"), ("two,", "4"), ("three", "8")].into_iter().enumerate() {
        let answer = stage.call(URL, &[], block).ok();
        table.row(format!("{block}: offset"), answer.header("x-ms-blob-append-offset").unwrap_or_default(), offset);
        let blocks = answer.header("x-ms-blob-committed-block-count").unwrap_or_default();
        table.row(format!("{block}: blocks"), blocks, count + 1);
        assert_eq!(answer.etag(), stage.head("cont/blob").etag());
        assert_ne!(answer.etag(), made.etag());
    }
    let told = stage.get("cont/blob").ok();
    assert_eq!(told.body, b"one,two,three");
    table.row("type", told.header("x-ms-blob-type").unwrap_or_default(), "AppendBlob");
    table.row("content type", told.header("content-type").unwrap_or_default(), "text/plain");
    table.row("blocks", told.header("x-ms-blob-committed-block-count").unwrap_or_default(), "3");
    table.row("no tier", told.header("x-ms-access-tier").is_none(), true);
    table.row("created", told.header("x-ms-creation-time").unwrap_or_default(), made.last_modified());
    let part = stage.call("GET cont/blob", &[("range", "bytes=2-9")], "").ok();
    assert_eq!(part.body, b"e,two,th");
    let listed = stage.get("cont?restype=container&comp=list").xml();
    let blob = &listed.all("Blobs")[0];
    table.row("listed", blob.text_of("Properties/BlobType").unwrap_or_default(), "AppendBlob");
    table.row("listed without a tier", blob.find("Properties/AccessTier").is_none(), true);
    table.row("listed with its length", blob.text_of("Properties/Content-Length").unwrap_or_default(), "13");
    // Made again, it is empty.
    stage.call("PUT cont/blob", &[APPEND_BLOB], "").ok();
    assert_eq!(stage.get("cont/blob").body, b"");
}

#[test]
fn snapshots_do_not_grow() {
    let stage = Stage::new();
    stage.put_append("cont/blob", "one");
    let made = stage.call("PUT cont/blob?comp=snapshot", &[], "").ok();
    let target = format!("cont/blob?snapshot={}", made.header("x-ms-snapshot").expect("an id"));
    stage.call(URL, &[], "two").ok();
    let refused = stage.call(&format!("PUT {target}&comp=appendblock"), &[], "x");
    assert_eq!(refused.said(), "400 InvalidOperation");
    assert_eq!((stage.get(&target).body, stage.get("cont/blob").body), (b"one".to_vec(), b"onetwo".to_vec()));
    assert_eq!(stage.head(&target).header("x-ms-blob-committed-block-count"), Some("1"));
    stage.call("PUT cont/blob", &[APPEND_BLOB], "").ok();
    assert_eq!(stage.get(&target).body, b"one");
}

#[test]
fn refusals_change_nothing() {
    let stage = Stage::new();
    stage.put_append("cont/blob", "old");
    stage.put("cont/block", "old");
    stage.put_append("cont/leased", "old");
    stage.acquire("cont/leased", A, "-1");
    stage.put_block("cont/staged", "AAAA", "x");
    let before = stage.everything();
    let empty_md5 = "1B2M2Y8AsgTpgAmY7PhCfg==";
    let (position, size) = ("x-ms-blob-condition-appendpos", "x-ms-blob-condition-maxsize");
    let stale = ("if-match", "\"0x1\"");
    #[rustfmt::skip]
    let rows: &[(&str, &str, Headers<'_>, &str, &str)] = &[
        ("an empty block",      URL, &[], "", "400 InvalidHeaderValue"),
        ("wrong MD5",           URL, &[("content-md5", empty_md5)], "x", "400 Md5Mismatch"),
        ("wrong CRC64",         URL, &[("x-ms-content-crc64", "AQAAAAAAAAA=")], "x", "400 Crc64Mismatch"),
        ("both sums",           URL, &[("content-md5", empty_md5), ("x-ms-content-crc64", "AQAAAAAAAAA=")], "x", "400 BothCrc64AndMd5HeaderPresent"),
        ("no position",         URL, &[(position, "end")], "x", "400 InvalidHeaderValue"),
        ("no size",             URL, &[(size, "-1")], "x", "400 InvalidHeaderValue"),
        ("not the end",         URL, &[(position, "2")], "x", "412 AppendPositionConditionNotMet"),
        ("too large",           URL, &[(size, "3")], "x", "412 MaxBlobSizeConditionNotMet"),
        ("neither",             URL, &[(position, "4"), (size, "3")], "x", "412 AppendPositionConditionNotMet"),
        ("stale, not the end",  URL, &[stale, (position, "4")], "x", "412 ConditionNotMet"),
        ("not the end, wrong sum", URL, &[(position, "4"), ("content-md5", empty_md5)], "x", "412 AppendPositionConditionNotMet"),
        ("id of no lease",      URL, &[("x-ms-lease-id", A)], "x", "412 LeaseNotPresentWithBlobOperation"),
        ("no container",        "PUT none/blob?comp=appendblock",   &[], "x", "404 ContainerNotFound"),
        ("no blob",             "PUT cont/none?comp=appendblock",   &[], "x", "404 BlobNotFound"),
        ("blocks that wait",    "PUT cont/staged?comp=appendblock", &[], "x", "404 BlobNotFound"),
        ("a block blob",        "PUT cont/block?comp=appendblock",  &[], "x", "409 InvalidBlobType"),
        ("a block blob, not the end", "PUT cont/block?comp=appendblock",  &[(position, "4")], "x", "409 InvalidBlobType"),
        ("no lease id, not the end", "PUT cont/leased?comp=appendblock", &[(position, "4")], "x", "412 LeaseIdMissing"),
        ("with a body",         "PUT cont/blob", &[APPEND_BLOB], "x", "400 InvalidHeaderValue"),
        ("with a tier",         "PUT cont/blob", &[APPEND_BLOB, ("x-ms-access-tier", "Hot")], "", "400 AccessTierNotSupportedForBlobType"),
        ("create only",         "PUT cont/blob", &[APPEND_BLOB, ("if-none-match", "*")], "", "409 BlobAlreadyExists"),
        ("Put Block",           "PUT cont/blob?comp=block&blockid=AAAA", &[], "x", "409 InvalidBlobType"),
        ("Put Block List",      "PUT cont/blob?comp=blocklist", &[], "<BlockList/>", "409 InvalidBlobType"),
        ("Get Block List",      "GET cont/blob?comp=blocklist", &[], "", "409 InvalidBlobType"),
        ("Put Block, leased",   "PUT cont/leased?comp=block&blockid=AAAA", &[], "x", "409 InvalidBlobType"),
        ("Put Block List, leased", "PUT cont/leased?comp=blocklist", &[], "<BlockList/>", "409 InvalidBlobType"),
        ("Put Block List, stale",  "PUT cont/leased?comp=blocklist", &[stale], "<BlockList/>", "412 ConditionNotMet"),
    ];
    let mut table = Table::new("append_block refusals");
    for (what, line, headers, body, expected) in rows {
        table.row(what, stage.call(line, headers, body).said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
    let client = &stage.client;
    let over = client.head(URL, &[], Some((100 << 20) + 1));
    table.row("over the limit", client.call_odd(URL, &over, b"").said(), "413 RequestBodyTooLarge");
    let over = client.head(URL, &[("x-ms-version", "2022-08-04")], Some((4 << 20) + 1));
    table.row("over the limit of 2022", client.call_odd(URL, &over, b"").said(), "413 RequestBodyTooLarge");
    client.hang_up(&client.head(URL, &[], Some(100)), b"not all");
    assert_eq!(stage.everything(), before);
    table.row("the end", stage.call(URL, &[(position, "3"), (size, "4")], "x").said(), "201");
}

#[test]
fn what_is_answered() {
    let stage = Stage::new();
    stage.put_append("cont/blob", "old");
    let (md5, crc64) = (base64::encode(&Md5::of(b"x")), base64::encode_crc64(Crc64::of(b"x")));
    let plain = stage.call(URL, &[], "x").ok();
    assert_eq!((plain.header("content-md5"), plain.header("x-ms-content-crc64")), (None, Some(&*crc64)));
    let by_md5 = stage.call(URL, &[("content-md5", &md5)], "x").ok();
    assert_eq!((by_md5.header("content-md5"), by_md5.header("x-ms-content-crc64")), (Some(&*md5), Some(&*crc64)));
    assert_eq!(by_md5.header("x-ms-request-server-encrypted"), Some("true"));
}

/// A blob of one type replaces a blob of another, and keeps its lease. Snapshots stand against that.
#[test]
fn one_type_replaces_another() {
    let stage = Stage::new();
    stage.put("cont/blob", "block");
    stage.call("PUT cont/blob?comp=snapshot", &[], "").ok();
    stage.acquire("cont/blob", A, "-1");
    let replace = || stage.call("PUT cont/blob", &[APPEND_BLOB, ("x-ms-lease-id", A)], "").said();
    assert_eq!(replace(), "409 SnapshotsPresent");
    stage.call("DELETE cont/blob", &[("x-ms-delete-snapshots", "only"), ("x-ms-lease-id", A)], "").ok();
    assert_eq!(replace(), "201");
    stage.call(URL, &[("x-ms-lease-id", A)], "append").ok();
    assert_eq!(stage.get("cont/blob").body, b"append");
    stage.call("PUT cont/blob", &[BLOCK_BLOB, ("x-ms-lease-id", A)], "block").ok();
    assert_eq!(stage.head("cont/blob").header("x-ms-blob-committed-block-count"), None);
}

/// Eight at once: every block is there, whole, at the place its writer was told.
#[test]
fn everybody_gets_a_place_of_his_own() {
    const EACH: usize = 40;
    let stage = Stage::new();
    stage.call("PUT cont/blob", &[APPEND_BLOB], "").ok();
    let told: Vec<(usize, String)> = thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let client = stage.server.client();
                scope.spawn(move || {
                    let append = |count: usize| {
                        let block = format!("<{writer}:{count}{}>", "-".repeat(count % 9));
                        let answer = client.call(URL, &[], &block).ok();
                        let offset = answer.header("x-ms-blob-append-offset").expect("an offset").parse();
                        (offset.expect("a number"), block)
                    };
                    (0..EACH).map(append).collect::<Vec<_>>()
                })
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().expect("nobody panics")).collect()
    });
    let whole = String::from_utf8(stage.get("cont/blob").ok().body).expect("text");
    for (offset, block) in &told {
        assert_eq!(whole.get(*offset..offset + block.len()), Some(block.as_str()));
    }
    assert_eq!(told.iter().map(|(offset, _)| offset).collect::<BTreeSet<_>>().len(), 8 * EACH);
    assert_eq!(told.iter().map(|(_, block)| block.len()).sum::<usize>(), whole.len());
    assert_eq!(stage.head("cont/blob").header("x-ms-blob-committed-block-count"), Some("320"));
}
