//! Set Blob Tags and Get Blob Tags.

use crate::harness::{Headers, Table};
use crate::stage::{A, BLOCK_BLOB, Stage};

const URL: &str = "PUT cont/blob?comp=tags";

pub fn document(pairs: &[(&str, &str)]) -> String {
    let tag = |(key, value): &(&str, &str)| format!("<Tag><Key>{key}</Key><Value>{value}</Value></Tag>");
    format!("<Tags><TagSet>{}</TagSet></Tags>", pairs.iter().map(tag).collect::<String>())
}

fn tags(stage: &Stage, target: &str) -> Vec<(String, String)> {
    let told = stage.get(target).ok().xml();
    let text = |tag: &crate::harness::Element, name| tag.text_of(name).expect("a text");
    told.all("TagSet").iter().map(|tag| (text(tag, "Key"), text(tag, "Value"))).collect()
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

#[test]
fn they_come_with_the_blob_or_later_and_leave_the_version_alone() {
    let stage = Stage::new();
    let put = stage.call("PUT cont/blob", &[BLOCK_BLOB, ("x-ms-tags", "a+b=1%2B1&c=")], "x").ok();
    assert_eq!(tags(&stage, "cont/blob?comp=tags"), [pair("a b", "1+1"), pair("c", "")]);
    stage.server.advance(5);
    let set = stage.call(URL, &[], document(&[("colour", "red")])).ok();
    assert_eq!((set.status, set.body.len()), (204, 0));
    let told = stage.head("cont/blob");
    assert_eq!((told.etag(), told.last_modified()), (put.etag(), put.last_modified()));
    assert_eq!(told.header("x-ms-tag-count"), Some("1"));
    // A list of blocks is a new blob, with the tags it comes with.
    stage.put_block("cont/blob", "AAAA", "y");
    stage
        .call("PUT cont/blob?comp=blocklist", &[("x-ms-tags", "d=e")], "<BlockList><Latest>AAAA</Latest></BlockList>")
        .ok();
    assert_eq!(tags(&stage, "cont/blob?comp=tags"), [pair("d", "e")]);
    stage.put("cont/blob", "z");
    assert_eq!(tags(&stage, "cont/blob?comp=tags"), []);
}

#[test]
fn bad_requests_change_nothing() {
    let stage = Stage::new();
    stage.put("cont/blob", "hello");
    stage.call(URL, &[], document(&[("a", "1")])).ok();
    stage.acquire("cont/blob", A, "-1");
    let before = stage.everything();
    let good = document(&[("a", "2")]);
    let long = document(&[("a", &"v".repeat(257))]);
    let huge = " ".repeat(70_000);
    let held = ("x-ms-lease-id", A);
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str, &str)] = &[
        ("no lease",                  &[], &good, "412 LeaseIdMissing"),
        ("another character",         &[held], &document(&[("a", "ä")]), "400 InvalidTag"),
        ("a key twice",               &[held], &document(&[("a", "1"), ("a", "1")]), "400 DuplicateTagNames"),
        ("no key",                    &[held], &document(&[("", "1")]), "400 EmptyTagName"),
        ("a long value",              &[held], &long, "400 TagsTooLarge"),
        ("no document",               &[held], "", "400 InvalidXmlDocument"),
        ("another document",          &[held], "<Other/>", "400 InvalidXmlDocument"),
        ("too much",                  &[held], &huge, "413 RequestBodyTooLarge"),
        ("another sum",               &[held, ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")], &good, "400 Md5Mismatch"),
        ("another ETag",              &[held, ("x-ms-blob-if-match", "\"0x1\"")], &good, "412 ConditionNotMet"),
        ("another tag",               &[held, ("x-ms-if-tags", "a='2'")], &good, "412 ConditionNotMet"),
        ("no expression",             &[held, ("x-ms-if-tags", "a = b")], &good, "400 InvalidHeaderValue"),
        ("a condition and no lease",  &[("x-ms-if-tags", "a='2'")], &good, "412 ConditionNotMet"),
    ];
    let mut table = Table::new("set_blob_tags");
    for (what, headers, body, expected) in rows {
        table.row(what, stage.call(URL, headers, body).said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
        assert_eq!(tags(&stage, "cont/blob?comp=tags"), [pair("a", "1")], "{what}");
    }
    table.row("no blob", stage.call("PUT cont/none?comp=tags", &[], &good).said(), "404 BlobNotFound");
    table.row("no container", stage.call("PUT none/blob?comp=tags", &[], &good).said(), "404 ContainerNotFound");
    table.row("all is well", stage.call(URL, &[held, ("x-ms-if-tags", "a>='1'")], &good).said(), "204");
}
