//! Put Block List.

use wire::base64;
use wire::checksum::{Crc64, Md5};

use crate::harness::{Headers, Table};
use crate::stage::{Stage, block_list};

const URL: &str = "PUT cont/blob?comp=blocklist";

/// Blocks with the kind of element they stand in.
type List = &'static [(&'static str, &'static str)];

/// From where an id is taken: the blob has A and B committed as "a1" and "b1"; B and C wait as "b2" and "c2".
#[rustfmt::skip]
const LISTS: &[(&str, List, &str)] = &[
    ("committed",                   &[("Committed", "AAAA"), ("Committed", "BBBB")], "a1b1"),
    ("the other way round",         &[("Committed", "BBBB"), ("Committed", "AAAA")], "b1a1"),
    ("uncommitted",                 &[("Uncommitted", "BBBB"), ("Uncommitted", "CCCC")], "b2c2"),
    ("the latest",                  &[("Latest", "AAAA"), ("Latest", "BBBB"), ("Latest", "CCCC")], "a1b2c2"),
    ("mixed",                       &[("Latest", "CCCC"), ("Committed", "AAAA"), ("Uncommitted", "BBBB")], "c2a1b2"),
    ("several times",               &[("Latest", "BBBB"), ("Latest", "BBBB"), ("Committed", "AAAA"), ("Latest", "BBBB")], "b2b2a1b2"),
    ("nothing",                     &[], ""),
    ("only waiting, as committed",  &[("Committed", "CCCC")], "400 InvalidBlockList"),
    ("only committed, as waiting",  &[("Uncommitted", "AAAA")], "400 InvalidBlockList"),
    ("unknown",                     &[("Latest", "DDDD")], "400 InvalidBlockList"),
    ("one of several unknown",      &[("Latest", "AAAA"), ("Latest", "DDDD")], "400 InvalidBlockList"),
    ("of another length",           &[("Latest", "AAAAAAAA")], "400 InvalidBlockList"),
    ("one id from two places",      &[("Committed", "BBBB"), ("Uncommitted", "BBBB")], "400 InvalidBlockList"),
    ("not base64",                  &[("Latest", "!!!!")], "400 InvalidBlockList"),
    ("no id",                       &[("Latest", "")], "400 InvalidBlockList"),
];

#[test]
fn where_blocks_are_taken_from() {
    let stage = Stage::new();
    let mut table = Table::new("put_block_list");
    for (what, list, expected) in LISTS {
        stage.put_block("cont/blob", "AAAA", "a1");
        stage.put_block("cont/blob", "BBBB", "b1");
        stage.call(URL, &[], block_list(&[("Latest", "AAAA"), ("Latest", "BBBB")])).ok();
        stage.put_block("cont/blob", "CCCC", "c1");
        stage.put_block("cont/blob", "CCCC", "c2");
        stage.put_block("cont/blob", "BBBB", "b2");
        let before = stage.everything();
        let answer = stage.call(URL, &[], block_list(list));
        if answer.is_success() {
            let content = stage.get("cont/blob");
            table.row(what, String::from_utf8_lossy(&content.body), expected);
            table.row(format!("{what}: ETag"), content.etag(), answer.etag());
            let blocks = stage.get("cont/blob?comp=blocklist&blocklisttype=all").xml();
            let names: Vec<String> = blocks.all("CommittedBlocks").iter().filter_map(|b| b.text_of("Name")).collect();
            let wanted: Vec<&str> = list.iter().map(|(_, id)| *id).collect();
            table.row(format!("{what}: blocks"), names.join(" "), wanted.join(" "));
            // Listed or not, what was waiting is gone.
            table.row(format!("{what}: waiting"), blocks.all("UncommittedBlocks").len(), 0);
        } else {
            table.row(what, answer.said(), expected);
            assert_eq!(stage.everything(), before, "{what}");
        }
        stage.call("DELETE cont/blob", &[], "").ok();
    }
}

#[test]
fn bad_documents_change_nothing() {
    let stage = Stage::new();
    stage.put("cont/blob", "old");
    stage.put_block("cont/blob", "AAAA", "waiting");
    let before = stage.everything();
    let fine = block_list(&[("Latest", "AAAA")]);
    let too_many = format!("<BlockList>{}</BlockList>", "<Latest>AAAA</Latest>".repeat(50_001));
    let entities = "<!DOCTYPE a [<!ENTITY x \"AAAA\">]><BlockList><Latest>&x;</Latest></BlockList>";
    let deep = format!("{}{}", "<BlockList>".repeat(10_000), "</BlockList>".repeat(10_000));
    let long = "x".repeat(8 * 1024);
    let empty_md5 = "1B2M2Y8AsgTpgAmY7PhCfg==";
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str, &str)] = &[
        ("nothing",              &[], "", "400 InvalidXmlDocument"),
        ("not XML",              &[], "hello", "400 InvalidXmlDocument"),
        ("not closed",           &[], "<BlockList><Latest>AAAA</Latest>", "400 InvalidXmlDocument"),
        ("another document",     &[], "<Blocks/>", "400 InvalidXmlDocument"),
        ("an unknown element",   &[], "<BlockList><Oldest>AAAA</Oldest></BlockList>", "400 InvalidXmlDocument"),
        ("text between",         &[], "<BlockList>AAAA</BlockList>", "400 InvalidXmlDocument"),
        ("more after the end",   &[], "<BlockList/><BlockList/>", "400 InvalidXmlDocument"),
        ("nested",               &[], &deep, "400 InvalidXmlDocument"),
        ("a document type",      &[], entities, "400 InvalidXmlDocument"),
        ("an unknown entity",    &[], "<BlockList><Latest>&x;</Latest></BlockList>", "400 InvalidXmlDocument"),
        ("50,001 blocks",        &[], &too_many, "400 BlockListTooLong"),
        ("wrong MD5",            &[("content-md5", empty_md5)], &fine, "400 Md5Mismatch"),
        ("wrong CRC64",          &[("x-ms-content-crc64", "AQAAAAAAAAA=")], &fine, "400 Crc64Mismatch"),
        ("both sums",            &[("content-md5", empty_md5), ("x-ms-content-crc64", "AQAAAAAAAAA=")], &fine, "400 BothCrc64AndMd5HeaderPresent"),
        ("MD5 not base64",       &[("content-md5", "x")], &fine, "400 InvalidMd5"),
        ("MD5 of the blob, bad", &[("x-ms-blob-content-md5", "x")], &fine, "400 InvalidMd5"),
        ("too much metadata",    &[("x-ms-meta-a", &long)], &fine, "400 MetadataTooLarge"),
        ("no identifier",        &[("x-ms-meta-1", "x")], &fine, "400 InvalidMetadata"),
        ("an unknown tier",      &[("x-ms-access-tier", "Warm")], &fine, "400 InvalidHeaderValue"),
        ("a lease id no GUID",   &[("x-ms-lease-id", "x")], &fine, "400 InvalidHeaderValue"),
    ];
    let mut table = Table::new("put_block_list bad documents");
    for (what, headers, body, expected) in rows {
        table.row(what, stage.call(URL, headers, body).said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
    let not_utf8 = stage.call(URL, &[], b"<BlockList><Latest>\xff\xfe</Latest></BlockList>");
    table.row("not UTF-8", not_utf8.said(), "400 InvalidXmlDocument");
    let client = &stage.client;
    let cut = client.cut_short(URL, &client.head(URL, &[], Some(1000)), fine.as_bytes());
    assert!(cut.as_ref().is_none_or(|answer| answer.status >= 400), "{cut:?}");
    client.hang_up(&client.head(URL, &[], Some(1000)), fine.as_bytes());
    assert_eq!(stage.everything(), before);
}

#[test]
fn properties_are_those_of_the_request() {
    let stage = Stage::new();
    let md5 = base64::encode(&[9; 16]);
    let headers = [
        ("content-type", "application/xml"),
        ("x-ms-blob-content-type", "text/plain"),
        ("x-ms-blob-content-md5", &*md5),
        ("x-ms-blob-cache-control", "no-cache"),
        ("x-ms-meta-a", "1"),
    ];
    stage.put_block("cont/blob", "AAAA", "hello");
    let list = block_list(&[("Latest", "AAAA")]);
    let answer = stage.call(URL, &headers, &list).ok();
    assert_eq!(answer.header("x-ms-content-crc64"), Some(&*base64::encode_crc64(Crc64::of(list.as_bytes()))));
    let told = stage.get("cont/blob").ok();
    for (name, value) in
        [("content-type", "text/plain"), ("content-md5", &md5), ("cache-control", "no-cache"), ("x-ms-meta-a", "1")]
    {
        assert_eq!(told.header(name), Some(value), "{name}");
    }
    // Absent is cleared; the type has a default. The MD5 of the request is that of the list.
    let sum = base64::encode(&Md5::of(block_list(&[("Committed", "AAAA")]).as_bytes()));
    let answer = stage.call(URL, &[("content-md5", &sum)], block_list(&[("Committed", "AAAA")])).ok();
    assert_eq!(answer.header("content-md5"), Some(&*sum));
    let told = stage.get("cont/blob").ok();
    assert_eq!((told.header("content-type"), told.header("content-md5")), (Some("application/octet-stream"), None));
    assert_eq!((told.header("cache-control"), told.header("x-ms-meta-a")), (None, None));
    assert_eq!(told.body, b"hello");
}

/// A committed block outlives the upload of another under the same id, and the whole list that it came from.
#[test]
fn blocks_are_kept_as_long_as_a_list_or_a_snapshot_needs_them() {
    let stage = Stage::new();
    stage.put_block("cont/blob", "AAAA", "first");
    stage.call(URL, &[], block_list(&[("Latest", "AAAA")])).ok();
    let snapshot = stage.call("PUT cont/blob?comp=snapshot", &[], "").ok();
    let snapshot = snapshot.header("x-ms-snapshot").expect("an id").to_owned();
    stage.put_block("cont/blob", "AAAA", "second");
    stage.put_block("cont/blob", "BBBB", "third");
    stage.call(URL, &[], block_list(&[("Committed", "AAAA"), ("Uncommitted", "BBBB")])).ok();
    assert_eq!(stage.get("cont/blob").body, b"firstthird");
    stage.put_block("cont/blob", "AAAA", "fourth");
    stage.call(URL, &[], block_list(&[("Uncommitted", "AAAA"), ("Committed", "BBBB")])).ok();
    assert_eq!(stage.get("cont/blob").body, b"fourththird");
    stage.put("cont/blob", "whole");
    assert_eq!(stage.get(&format!("cont/blob?snapshot={snapshot}")).body, b"first");
    let list = stage.get(&format!("cont/blob?comp=blocklist&snapshot={snapshot}")).xml();
    assert_eq!(list.all("CommittedBlocks").len(), 1);
}
