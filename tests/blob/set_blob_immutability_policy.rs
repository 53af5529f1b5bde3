//! Set Blob Immutability Policy, Delete Blob Immutability Policy, Set Blob Legal Hold, and Set Blob Expiry.

use crate::harness::{Headers, Table, date_after};
use crate::stage::{A, APPEND_BLOB, B, BLOCK_BLOB, Stage, percent};

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

/// What else is wrong is told first, where the order of the service has it before; and what is allowed beside a hold.
#[test]
fn a_hold_and_another_fault() {
    let stage = Stage::new();
    let hold = ("x-ms-legal-hold", "true");
    let put = stage.call("PUT cont/blob", &[BLOCK_BLOB, hold], "hello").ok();
    let later = date_after(put.header("date").expect("a date"), 600);
    stage.call(POLICY, &[(UNTIL, &later)], "").ok();
    stage.acquire("cont/blob", A, "-1");
    let (mine, stale) = (("x-ms-lease-id", A), ("if-match", "\"0x1\""));
    let page = [mine, ("x-ms-page-write", "clear"), ("x-ms-range", "bytes=0-511")];
    let from = stage.client.url("cont/other");
    stage.put("cont/other", "other");
    let before = stage.everything();
    #[rustfmt::skip]
    let rows: &[(&str, &str, Headers<'_>, &str, &str)] = &[
        ("both protections",      "DELETE cont/blob", &[mine], "", HELD),
        ("leased",                "DELETE cont/blob", &[], "", "412 LeaseIdMissing"),
        ("leased by another",     "DELETE cont/blob", &[("x-ms-lease-id", B)], "", "412 LeaseIdMismatchWithBlobOperation"),
        ("stale",                 "DELETE cont/blob", &[mine, stale], "", "412 ConditionNotMet"),
        ("stale, leased",         "PUT cont/blob", &[BLOCK_BLOB, stale], "x", "412 ConditionNotMet"),
        ("must not exist",        "PUT cont/blob", &[BLOCK_BLOB, ("if-none-match", "*")], "x", "412 LeaseIdMissing"),
        ("another type's write",  "PUT cont/blob?comp=page", &page, "", "409 InvalidBlobType"),
        ("another type's append", "PUT cont/blob?comp=appendblock", &[mine], "x", "409 InvalidBlobType"),
        ("another type over it",  "PUT cont/blob", &[APPEND_BLOB, mine], "", HELD),
        ("wrong sum",             "PUT cont/blob", &[BLOCK_BLOB, mine, ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")], "x", HELD),
        ("no such block",         "PUT cont/blob?comp=blocklist", &[mine], "<BlockList><Latest>AAAA</Latest></BlockList>", HELD),
        ("copy over it",          "PUT cont/blob", &[mine, ("x-ms-copy-source", &from)], "", HELD),
        ("no source",             "PUT cont/blob", &[mine, ("x-ms-copy-source", "http://127.0.0.1:1/x")], "", HELD),
    ];
    let mut table = Table::new("set_blob_legal_hold: two faults");
    for (what, line, headers, body, expected) in rows {
        table.row(what, stage.call(line, headers, body).said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
    let tags = "<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>";
    #[rustfmt::skip]
    let allowed: &[(&str, Headers<'_>, &str, &str)] = &[
        ("PUT cont/blob?comp=tags", &[mine], tags, "204"),
        ("PUT cont/blob?comp=tier", &[mine, ("x-ms-access-tier", "Cool")], "", "200"),
        ("PUT cont/blob?comp=block&blockid=AAAA", &[mine], "x", "201"),
        ("PUT cont/blob?comp=lease", &[mine, ("x-ms-lease-action", "renew")], "", "200"),
        ("PUT cont/blob?comp=snapshot", &[mine], "", "201"),
    ];
    for (line, headers, body, expected) in allowed {
        table.row(line, stage.call(line, headers, body).said(), expected);
    }
    // The archive does not loosen it, and it says so first.
    stage.call("PUT cont/blob?comp=tier", &[mine, ("x-ms-access-tier", "Archive")], "").ok();
    table.row("archived", stage.call("PUT cont/blob", &[BLOCK_BLOB, mine], "x").said(), HELD);
}

/// A snapshot is protected by itself, and with it what it is deleted with.
#[test]
fn snapshots_have_protections_of_their_own() {
    let stage = Stage::new();
    stage.put("cont/blob", "hello");
    let made = stage.call("PUT cont/blob?comp=snapshot", &[], "").ok();
    let snapshot = format!("cont/blob?snapshot={}", percent(made.header("x-ms-snapshot").expect("an id")));
    stage.call(&format!("PUT {snapshot}&comp=legalhold"), &[("x-ms-legal-hold", "true")], "").ok();
    let mut table = Table::new("set_blob_legal_hold: snapshots");
    let all = [("x-ms-delete-snapshots", "include")];
    let before = stage.everything();
    table.row("the snapshot", stage.call(&format!("DELETE {snapshot}"), &[], "").said(), HELD);
    table.row("the blob with it", stage.call("DELETE cont/blob", &all, "").said(), HELD);
    let only = [("x-ms-delete-snapshots", "only")];
    table.row("all snapshots", stage.call("DELETE cont/blob", &only, "").said(), HELD);
    table.row("the container", stage.call("DELETE cont?restype=container", &[], "").said(), HELD);
    assert_eq!(stage.everything(), before);
    table.row("the blob is free", stage.call("PUT cont/blob", &[BLOCK_BLOB], "other").said(), "201");
    stage.call(&format!("PUT {snapshot}&comp=legalhold"), &[("x-ms-legal-hold", "false")], "").ok();
    table.row("free", stage.call("DELETE cont/blob", &all, "").said(), "202");
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
    let put = [BLOCK_BLOB, ("x-ms-expiry-option", "RelativeToNow"), ("x-ms-expiry-time", "1000")];
    table.row("from the start", stage.call("PUT cont/new", &put, "x").said(), "409 BlobOperationNotSupported");
    table.row("nothing was made", stage.get("cont/new").said(), "404 BlobNotFound");
    assert_eq!(stage.get("cont/blob").ok().body, b"hello");
}
