//! Set Blob Tier.

use crate::harness::{Headers, Table};
use crate::stage::{A, BLOCK_BLOB, Stage};

const URL: &str = "PUT cont/blob?comp=tier";
const HOUR: u64 = 3600;

fn to(tier: &str) -> [(&'static str, &str); 1] {
    [("x-ms-access-tier", tier)]
}

#[test]
fn an_archived_blob_comes_back_by_the_clock() {
    let stage = Stage::new();
    let put = stage.call("PUT cont/blob", &[BLOCK_BLOB, ("x-ms-access-tier", "Archive")], "hello").ok();
    let mut table = Table::new("set_blob_tier: archived");
    let query =
        "<QueryRequest><QueryType>SQL</QueryType><Expression>SELECT * FROM BlobStorage</Expression></QueryRequest>";
    let refused = [
        ("GET cont/blob", ""),
        ("PUT cont/blob?comp=metadata", ""),
        ("PUT cont/blob?comp=snapshot", ""),
        ("PUT cont/blob?comp=block&blockid=AAAA", "x"),
        ("GET cont/blob?comp=blocklist&blocklisttype=all", ""),
        ("POST cont/blob?comp=query", query),
    ];
    for (line, body) in refused {
        table.row(line, stage.call(line, &[], body).said(), "409 BlobArchived");
    }
    table.row("overwrite", stage.call("PUT cont/blob", &[BLOCK_BLOB], "other").said(), "409 BlobArchived");
    table.row("standard", stage.call(URL, &to("Cool"), "").said(), "202");
    table.row("another", stage.call(URL, &to("Hot"), "").said(), "409 BlobBeingRehydrated");
    table.row("archive again", stage.call(URL, &to("Archive"), "").said(), "409 BlobBeingRehydrated");
    stage.server.advance(14 * HOUR);
    table.row("after 14 hours", stage.get("cont/blob").said(), "409 BlobArchived");
    let told = stage.head("cont/blob");
    assert_eq!(told.header("x-ms-archive-status"), Some("rehydrate-pending-to-cool"));
    assert_eq!(told.header("x-ms-rehydrate-priority"), Some("Standard"));
    stage.server.advance(HOUR);
    assert_eq!(stage.get("cont/blob").ok().body, b"hello");
    let told = stage.head("cont/blob");
    assert_eq!((told.header("x-ms-access-tier"), told.header("x-ms-archive-status")), (Some("Cool"), None));
    assert_eq!(told.etag(), put.etag());
    // In a hurry it takes an hour.
    stage.call(URL, &to("Archive"), "").ok();
    stage.call(URL, &[("x-ms-access-tier", "Hot"), ("x-ms-rehydrate-priority", "High")], "").ok();
    stage.server.advance(HOUR);
    assert_eq!(stage.get("cont/blob").ok().body, b"hello");
}

#[test]
fn bad_requests_change_nothing() {
    let stage = Stage::new();
    stage.put("cont/blob", "hello");
    stage.put_pages("cont/pages", 512);
    stage.put_append("cont/append", "x");
    stage.acquire("cont/blob", A, "-1");
    let before = stage.everything();
    let held = ("x-ms-lease-id", A);
    #[rustfmt::skip]
    let rows: &[(&str, &str, Headers<'_>, &str)] = &[
        ("no tier",             URL, &[held], "400 MissingRequiredHeader"),
        ("an unknown tier",     URL, &[held, ("x-ms-access-tier", "Warm")], "400 InvalidHeaderValue"),
        ("a tier of pages",     URL, &[held, ("x-ms-access-tier", "P10")], "400 AccessTierNotSupportedForBlobType"),
        ("an unknown priority", URL, &[held, ("x-ms-access-tier", "Hot"), ("x-ms-rehydrate-priority", "x")], "400 InvalidHeaderValue"),
        ("no lease",            URL, &[("x-ms-access-tier", "Hot")], "412 LeaseIdMissing"),
        ("tags and no lease",   URL, &[("x-ms-access-tier", "Hot"), ("x-ms-if-tags", "a='1'")], "412 ConditionNotMet"),
        ("no blob",             "PUT cont/none?comp=tier", &[("x-ms-access-tier", "Hot")], "404 BlobNotFound"),
        ("no container",        "PUT none/blob?comp=tier", &[("x-ms-access-tier", "Hot")], "404 ContainerNotFound"),
        ("pages, standard",     "PUT cont/pages?comp=tier", &[("x-ms-access-tier", "Hot")], "400 AccessTierNotSupportedForBlobType"),
        ("pages, premium",      "PUT cont/pages?comp=tier", &[("x-ms-access-tier", "P10")], "400 BlobAccessTierNotSupportedForAccountType"),
        ("an append blob",      "PUT cont/append?comp=tier", &[("x-ms-access-tier", "Hot")], "400 AccessTierNotSupportedForBlobType"),
    ];
    let mut table = Table::new("set_blob_tier");
    for (what, line, headers, expected) in rows {
        table.row(what, stage.call(line, headers, "").said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
    table.row("all is well", stage.call(URL, &[held, ("x-ms-access-tier", "Cold")], "").said(), "200");
}
