//! Set Blob Immutability Policy, Delete Blob Immutability Policy, Set Blob Legal Hold, and Set Blob Expiry.

use crate::harness::{Headers, Table, date_after};
use crate::stage::{BLOCK_BLOB, Stage};

const POLICY: &str = "PUT cont/blob?comp=immutabilityPolicies";
const UNTIL: &str = "x-ms-immutability-policy-until-date";
const MODE: &str = "x-ms-immutability-policy-mode";
const IMMUTABLE: &str = "409 BlobImmutableDueToPolicy";
const HELD: &str = "409 BlobImmutableDueToLegalHold";

/// Everything that would change or remove the blob, or what it is in.
const WRITES: &[(&str, Headers<'static>, &str)] = &[
    ("PUT cont/blob", &[BLOCK_BLOB], "other"),
    ("PUT cont/blob?comp=blocklist", &[], "<BlockList/>"),
    ("PUT cont/blob?comp=metadata", &[("x-ms-meta-a", "1")], ""),
    ("PUT cont/blob?comp=properties", &[], ""),
    ("DELETE cont/blob", &[], ""),
    ("DELETE cont?restype=container", &[], ""),
];

#[test]
fn a_locked_policy_stands_until_its_time_is_over() {
    let stage = Stage::new();
    let put = stage.put("cont/blob", "hello");
    let now = put.header("date").expect("a date").to_owned();
    let (soon, later) = (date_after(&now, 600), date_after(&now, 1_200));
    let mut table = Table::new("set_blob_immutability_policy");
    let set = stage.call(POLICY, &[(UNTIL, &later), (MODE, "Unlocked")], "").ok();
    assert_eq!((set.header(UNTIL), set.header(MODE)), (Some(&*later), Some("unlocked")));
    table.row("unlocked: earlier", stage.call(POLICY, &[(UNTIL, &soon)], "").said(), "200");
    for (line, headers, body) in WRITES {
        table.row(line, stage.call(line, headers, body).said(), IMMUTABLE);
    }
    let remove = "DELETE cont/blob?comp=immutabilityPolicies";
    table.row("unlocked: removed", stage.call(remove, &[], "").said(), "200");
    table.row("locked", stage.call(POLICY, &[(UNTIL, &later), (MODE, "Locked")], "").said(), "200");
    table.row("locked: removed", stage.call(remove, &[], "").said(), IMMUTABLE);
    table.row("locked: earlier", stage.call(POLICY, &[(UNTIL, &soon), (MODE, "Locked")], "").said(), IMMUTABLE);
    table.row("locked: unlocked", stage.call(POLICY, &[(UNTIL, &later)], "").said(), IMMUTABLE);
    table.row(
        "in the past",
        stage.call(POLICY, &[(UNTIL, &date_after(&now, -600))], "").said(),
        "400 InvalidHeaderValue",
    );
    table.row("no date", stage.call(POLICY, &[(MODE, "Locked")], "").said(), "400 MissingRequiredHeader");
    let told = stage.get("cont/blob");
    assert_eq!((told.body.as_slice(), told.etag()), (&b"hello"[..], put.etag()));
    assert_eq!((told.header(UNTIL), told.header(MODE)), (Some(&*later), Some("locked")));
    stage.server.advance(1_300);
    table.row("over", stage.call("DELETE cont/blob", &[], "").said(), "202");
    table.row("the container", stage.call("DELETE cont?restype=container", &[], "").said(), "202");
}

#[test]
fn a_hold_stands_until_it_is_taken_away() {
    let stage = Stage::new();
    stage.call("PUT cont/blob", &[BLOCK_BLOB, ("x-ms-legal-hold", "true")], "hello").ok();
    let mut table = Table::new("set_blob_legal_hold");
    for (line, headers, body) in WRITES {
        table.row(line, stage.call(line, headers, body).said(), HELD);
    }
    stage.server.advance(100 * 365 * 24 * 3600);
    table.row("a hundred years later", stage.call("DELETE cont/blob", &[], "").said(), HELD);
    let list = stage.get("cont?restype=container&comp=list&include=legalhold").xml();
    assert_eq!(list.all("Blobs")[0].text_of("Properties/LegalHold").as_deref(), Some("true"));
    table.row("nothing said", stage.call("PUT cont/blob?comp=legalhold", &[], "").said(), "400 MissingRequiredHeader");
    let free = [("x-ms-legal-hold", "false")];
    assert_eq!(stage.call("PUT cont/blob?comp=legalhold", &free, "").ok().header("x-ms-legal-hold"), Some("false"));
    table.row("free", stage.call("DELETE cont/blob", &[], "").said(), "202");
}

#[test]
fn an_account_without_directories_has_no_expiry() {
    let stage = Stage::new();
    stage.put("cont/blob", "hello");
    let mut table = Table::new("set_blob_expiry");
    let line = "PUT cont/blob?comp=expiry";
    table.row(
        "never",
        stage.call(line, &[("x-ms-expiry-option", "NeverExpire")], "").said(),
        "409 BlobOperationNotSupported",
    );
    table.row("nothing", stage.call(line, &[], "").said(), "400 MissingRequiredHeader");
    assert_eq!(stage.get("cont/blob").ok().body, b"hello");
}
