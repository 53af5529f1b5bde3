//! The operations on blobs side by side: what each answers, which conditions it takes, and what a lease means to it.
//!
//! Copy Blob and Abort Copy Blob belong here, too; until they are built, `not_yet` has them.
//! Operations of one type of blob only are tried on that type.

use crate::harness::{Answer, Headers, Table, date_after};
use crate::stage::{A, B, BLOCK_BLOB, LEASE_STATES, Stage};

/// How each operation is asked for; `{}` is the blob.
pub struct Operation {
    pub name: &'static str,
    line: &'static str,
    headers: Headers<'static>,
    body: &'static str,
    /// What a success answers.
    pub done: &'static str,
}

const fn operation(
    name: &'static str,
    line: &'static str,
    headers: Headers<'static>,
    body: &'static str,
    done: &'static str,
) -> Operation {
    Operation { name, line, headers, body, done }
}

#[rustfmt::skip]
pub const OPERATIONS: &[Operation] = &[
    operation("Put Blob",            "PUT {}",                           &[BLOCK_BLOB],          "new", "201"),
    operation("Get Blob",            "GET {}",                           &[],                    "",    "200"),
    operation("Get Blob Properties", "HEAD {}",                          &[],                    "",    "200"),
    operation("Set Blob Properties", "PUT {}?comp=properties",           &[("x-ms-blob-content-type", "a/b")], "", "200"),
    operation("Get Blob Metadata",   "GET {}?comp=metadata",             &[],                    "",    "200"),
    operation("Set Blob Metadata",   "PUT {}?comp=metadata",             &[("x-ms-meta-a", "1")], "",   "200"),
    operation("Lease Blob",          "PUT {}?comp=lease",                ACQUIRE,                "",    "201"),
    operation("Snapshot Blob",       "PUT {}?comp=snapshot",             &[],                    "",    "201"),
    operation("Delete Blob",         "DELETE {}",                        &[("x-ms-delete-snapshots", "include")], "", "202"),
    operation("Put Block",           "PUT {}?comp=block&blockid=AAAA",   &[],                    "new", "201"),
    operation("Put Block List",      "PUT {}?comp=blocklist",            &[],                    "<BlockList/>", "201"),
    operation("Get Block List",      "GET {}?comp=blocklist&blocklisttype=all", &[],             "",    "200"),
    operation("Append Block",        "PUT {}?comp=appendblock",          &[],                    "new", "201"),
    operation("Append Blob Seal",    "PUT {}?comp=seal",                 &[],                    "",    "200"),
    operation("Put Page",            "PUT {}?comp=page",                 &[("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511")], PAGE, "201"),
    operation("Clear Pages",         "PUT {}?comp=page",                 &[("x-ms-page-write", "clear"), ("x-ms-range", "bytes=0-511")], "", "201"),
    operation("Get Page Ranges",     "GET {}?comp=pagelist",             &[],                    "",    "200"),
    operation("Resize",              "PUT {}?comp=properties",           &[("x-ms-blob-content-length", "2048")], "", "200"),
    operation("Update Sequence Number", "PUT {}?comp=properties",        &[("x-ms-sequence-number-action", "increment")], "", "200"),
];

/// The content of one page.
const PAGE: &str = match std::str::from_utf8(&[b'n'; 512]) {
    Ok(page) => page,
    Err(_) => unreachable!(),
};

const ACQUIRE: Headers<'static> =
    &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", A)];

/// The operation of a name.
pub fn named(name: &str) -> &'static Operation {
    OPERATIONS.iter().find(|operation| operation.name == name).expect("an operation")
}

impl Operation {
    /// Puts a blob of the type that the operation is for.
    #[track_caller]
    pub fn put(&self, stage: &Stage, blob: &str, content: &str) -> Answer {
        match self.name {
            "Append Block" | "Append Blob Seal" => stage.put_append(blob, content),
            "Put Page" | "Clear Pages" | "Get Page Ranges" | "Resize" | "Update Sequence Number" => {
                stage.put_pages(blob, 1_024)
            }
            _ => stage.put(blob, content),
        }
    }

    pub fn ask(&self, stage: &Stage, blob: &str, more: Headers<'_>) -> Answer {
        stage.call(&self.line.replace("{}", blob), &[self.headers, more].concat(), self.body)
    }
}

/// Which answers tell the ETag and Last-Modified of the blob as it is after the operation.
#[rustfmt::skip]
const ETAG_TOLD: &[(&str, bool)] = &[
    ("Put Blob",            true),
    ("Get Blob",            true),
    ("Get Blob Properties", true),
    ("Set Blob Properties", true),
    ("Get Blob Metadata",   true),
    ("Set Blob Metadata",   true),
    ("Lease Blob",          true),
    ("Snapshot Blob",       true),
    ("Delete Blob",         false),
    ("Put Block",           false),
    ("Put Block List",      true),
    ("Get Block List",      true),
    ("Append Block",        true),
    ("Append Blob Seal",    true),
    ("Put Page",            true),
    ("Clear Pages",         true),
    ("Get Page Ranges",     true),
    ("Resize",              true),
    ("Update Sequence Number", true),
];

/// What each operation makes of the ETag and Last-Modified.
#[rustfmt::skip]
const ETAG_AFTER: &[(&str, &str)] = &[
    ("Put Blob",            "new"),
    ("Get Blob",            "same"),
    ("Get Blob Properties", "same"),
    ("Set Blob Properties", "new"),
    ("Get Blob Metadata",   "same"),
    ("Set Blob Metadata",   "new"),
    ("Lease Blob",          "same"),
    ("Snapshot Blob",       "same"),
    ("Put Block",           "same"),
    ("Put Block List",      "new"),
    ("Get Block List",      "same"),
    ("Append Block",        "new"),
    ("Append Blob Seal",    "same"),
    ("Put Page",            "new"),
    ("Clear Pages",         "new"),
    ("Get Page Ranges",     "same"),
    ("Resize",              "new"),
    ("Update Sequence Number", "new"),
];

#[test]
fn which_answers_tell_the_etag() {
    let stage = Stage::new();
    let mut table = Table::new("blob operations: ETag told");
    for (name, told) in ETAG_TOLD {
        named(name).put(&stage, "cont/blob", "old");
        let answer = named(name).ask(&stage, "cont/blob", &[]);
        table.row(format!("{name}: answer"), answer.said(), named(name).done);
        table.row(format!("{name}: ETag"), answer.header("etag").is_some(), told);
        table.row(format!("{name}: Last-Modified"), answer.header("last-modified").is_some(), told);
        if *told {
            let now = stage.head("cont/blob");
            table.row(format!("{name}: the one of now"), answer.etag(), now.etag());
            table.row(format!("{name}: the time of now"), answer.last_modified(), now.last_modified());
            let form = answer.etag();
            let digits = form.strip_prefix("\"0x").and_then(|rest| rest.strip_suffix('"')).unwrap_or_default();
            let is_well_formed =
                digits.len() >= 15 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'));
            assert!(is_well_formed, "{form}");
        }
        let _ = stage.call("DELETE cont/blob", &[("x-ms-delete-snapshots", "include"), ("x-ms-lease-id", A)], "");
        let _ = stage.call("DELETE cont/blob", &[("x-ms-delete-snapshots", "include")], "");
    }
}

#[test]
fn which_operations_change_the_etag() {
    let stage = Stage::new();
    let mut table = Table::new("blob operations: ETag after");
    let container = stage.head("cont?restype=container");
    for (count, (name, expected)) in ETAG_AFTER.iter().enumerate() {
        let blob = format!("cont/blob{count}");
        let before = named(name).put(&stage, &blob, "old");
        // A new time can only be told from the old one when a second has passed.
        stage.server.advance(2);
        named(name).ask(&stage, &blob, &[]).ok();
        let after = stage.head(&blob);
        let change = |same: bool| if same { "same" } else { "new" };
        table.row(format!("{name}: ETag"), change(before.etag() == after.etag()), expected);
        table.row(format!("{name}: Last-Modified"), change(before.last_modified() == after.last_modified()), expected);
    }
    for action in ["renew", "change", "break", "release"] {
        let before = stage.head("cont/blob0");
        stage.acquire("cont/blob0", A, "60");
        stage.server.advance(2);
        let ids = [("x-ms-lease-action", action), ("x-ms-lease-id", A), ("x-ms-proposed-lease-id", A)];
        let answer = stage.lease("cont/blob0", &ids).ok();
        let _ = stage.lease("cont/blob0", &[("x-ms-lease-action", "release"), ("x-ms-lease-id", A)]);
        table.row(format!("Lease Blob, {action}: ETag"), answer.etag(), before.etag());
        table.row(format!("Lease Blob, {action}: Last-Modified"), answer.last_modified(), before.last_modified());
    }
    let after = stage.head("cont?restype=container");
    table.row("the container's ETag", after.etag(), container.etag());
    table.row("the container's Last-Modified", after.last_modified(), container.last_modified());
}

#[test]
fn no_etag_comes_twice() {
    let stage = Stage::new();
    let mut seen = Vec::new();
    for round in 0..20 {
        seen.push(stage.put("cont/blob", "same").etag());
        seen.push(stage.call("PUT cont/blob?comp=metadata", &[], "").ok().etag());
        if round % 2 == 0 {
            stage.call("DELETE cont/blob", &[], "").ok();
        }
    }
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count);
}

/// Which conditions each operation takes: what it answers when the one condition that is sent does not hold.
const UNMET: &str = "412 ConditionNotMet";
const UNCHANGED: &str = "304 ConditionNotMet";

#[rustfmt::skip]
const CONDITIONS: &[(&str, [&str; 4])] = &[
    // operation             If-Match   If-None-Match  If-Modified-Since  If-Unmodified-Since
    ("Put Blob",            [UNMET,     UNMET,         UNMET,             UNMET]),
    ("Get Blob",            [UNMET,     UNCHANGED,     UNCHANGED,         UNMET]),
    ("Get Blob Properties", [UNMET,     UNCHANGED,     UNCHANGED,         UNMET]),
    ("Set Blob Properties", [UNMET,     UNMET,         UNMET,             UNMET]),
    ("Get Blob Metadata",   [UNMET,     UNCHANGED,     UNCHANGED,         UNMET]),
    ("Set Blob Metadata",   [UNMET,     UNMET,         UNMET,             UNMET]),
    ("Lease Blob",          [UNMET,     UNMET,         UNMET,             UNMET]),
    ("Snapshot Blob",       [UNMET,     UNMET,         UNMET,             UNMET]),
    ("Delete Blob",         [UNMET,     UNMET,         UNMET,             UNMET]),
    ("Put Block",           ["201",     "201",         "201",             "201"]),
    ("Put Block List",      [UNMET,     UNMET,         UNMET,             UNMET]),
    ("Get Block List",      ["200",     "200",         "200",             "200"]),
    ("Append Block",        [UNMET,     UNMET,         UNMET,             UNMET]),
    ("Append Blob Seal",    [UNMET,     UNMET,         UNMET,             UNMET]),
    ("Put Page",            [UNMET,     UNMET,         UNMET,             UNMET]),
    ("Clear Pages",         [UNMET,     UNMET,         UNMET,             UNMET]),
    ("Get Page Ranges",     [UNMET,     UNCHANGED,     UNCHANGED,         UNMET]),
    ("Resize",              [UNMET,     UNMET,         UNMET,             UNMET]),
    ("Update Sequence Number", [UNMET,  UNMET,         UNMET,             UNMET]),
];

#[test]
fn which_conditions_are_taken() {
    let stage = Stage::new();
    let mut table = Table::new("blob operations: conditions");
    for (name, expected) in CONDITIONS {
        let put = named(name).put(&stage, "cont/blob", "old");
        let _ = stage.call("PUT cont/blob?comp=block&blockid=AAAA", &[], "waiting");
        let (etag, date) = (put.etag(), put.last_modified());
        let (earlier, later) = (date_after(&date, -1), date_after(&date, 1));
        let before = stage.everything();
        let unmet = [
            ("if-match", "\"0x8D0000000000000\""),
            ("if-none-match", &*etag),
            ("if-modified-since", &*date),
            ("if-unmodified-since", &*earlier),
        ];
        for (condition, expected) in unmet.iter().zip(expected) {
            let answer = named(name).ask(&stage, "cont/blob", &[*condition]);
            table.row(format!("{name}, {} unmet", condition.0), answer.said(), expected);
            if !answer.is_success() {
                assert_eq!(stage.everything(), before, "{name}, {}", condition.0);
            }
        }
        let met = [
            ("if-match", &*etag),
            ("if-match", "*"),
            ("if-match", etag.trim_matches('"')),
            ("if-none-match", "\"0x8D0000000000000\""),
            ("if-modified-since", &*earlier),
            ("if-unmodified-since", &*date),
            ("if-unmodified-since", &*later),
        ];
        for (at, condition) in met.iter().enumerate() {
            let blob = format!("cont/{}-{at}", name.replace(' ', "-"));
            let put = named(name).put(&stage, &blob, "old");
            // Each has a blob of its own, whose ETag is another one.
            let (etag, date) = (put.etag(), put.last_modified());
            let (earlier, later) = (date_after(&date, -1), date_after(&date, 1));
            let own = match (condition.0, at) {
                ("if-match", 0) => etag.as_str(),
                ("if-match", 2) => etag.trim_matches('"'),
                ("if-modified-since", _) => &earlier,
                ("if-unmodified-since", 5) => &date,
                ("if-unmodified-since", _) => &later,
                _ => condition.1,
            };
            let answer = named(name).ask(&stage, &blob, &[(condition.0, own)]);
            table.row(format!("{name}, {} met ({at})", condition.0), answer.said(), named(name).done);
        }
    }
}

const MISSING_ID: &str = "412 LeaseIdMissing";
const OTHER_ID: &str = "412 LeaseIdMismatchWithBlobOperation";
const LOST: &str = "412 LeaseLost";

/// What each operation answers to a lease id: on a leased blob none, the right one and a wrong one; on a blob whose
/// lease has expired the id it had.
#[rustfmt::skip]
const LEASE_IDS: &[(&str, [&str; 4])] = &[
    // operation             none        right  wrong     expired
    ("Put Blob",            [MISSING_ID, "201", OTHER_ID, LOST]),
    ("Get Blob",            ["200",      "200", OTHER_ID, LOST]),
    ("Get Blob Properties", ["200",      "200", OTHER_ID, LOST]),
    ("Set Blob Properties", [MISSING_ID, "200", OTHER_ID, LOST]),
    ("Get Blob Metadata",   ["200",      "200", OTHER_ID, LOST]),
    ("Set Blob Metadata",   [MISSING_ID, "200", OTHER_ID, LOST]),
    ("Snapshot Blob",       ["201",      "201", OTHER_ID, LOST]),
    ("Delete Blob",         [MISSING_ID, "202", OTHER_ID, LOST]),
    ("Put Block",           [MISSING_ID, "201", OTHER_ID, LOST]),
    ("Put Block List",      [MISSING_ID, "201", OTHER_ID, LOST]),
    ("Get Block List",      ["200",      "200", OTHER_ID, LOST]),
    ("Append Block",        [MISSING_ID, "201", OTHER_ID, LOST]),
    ("Append Blob Seal",    [MISSING_ID, "200", OTHER_ID, LOST]),
    ("Put Page",            [MISSING_ID, "201", OTHER_ID, LOST]),
    ("Clear Pages",         [MISSING_ID, "201", OTHER_ID, LOST]),
    ("Get Page Ranges",     ["200",      "200", OTHER_ID, LOST]),
    ("Resize",              [MISSING_ID, "200", OTHER_ID, LOST]),
    ("Update Sequence Number", [MISSING_ID, "200", OTHER_ID, LOST]),
];

#[test]
fn what_a_lease_id_means_to_each_operation() {
    let stage = Stage::new();
    let mut table = Table::new("blob operations: lease ids");
    let cases: [(&str, &str, Headers<'_>); 4] = [
        ("none", "leased", &[]),
        ("right", "leased", &[("x-ms-lease-id", A)]),
        ("wrong", "leased", &[("x-ms-lease-id", B)]),
        ("expired", "expired", &[("x-ms-lease-id", A)]),
    ];
    for (name, expected) in LEASE_IDS {
        for ((case, state, id), expected) in cases.iter().zip(expected) {
            let blob = format!("cont/{}-{case}", name.replace(' ', "-"));
            named(name).put(&stage, &blob, "old");
            stage.bring_lease(&blob, state);
            table.row(format!("{name}, {case}"), named(name).ask(&stage, &blob, id).said(), expected);
        }
    }
}

const ABSENT: &str = "412 LeaseNotPresentWithBlobOperation";

/// The two rules behind that, in every state: A is or was the holder's id.
#[rustfmt::skip]
const RULES: &[(&str, &str, [&str; 5])] = &[
    //                 available  leased      breaking    broken  expired
    ("write", "none", ["ok",      MISSING_ID, MISSING_ID, "ok",   "ok"]),
    ("write", "A",    [ABSENT,    "ok",       "ok",       LOST,   LOST]),
    ("write", "B",    [ABSENT,    OTHER_ID,   OTHER_ID,   LOST,   LOST]),
    ("read",  "none", ["ok",      "ok",       "ok",       "ok",   "ok"]),
    ("read",  "A",    [ABSENT,    "ok",       "ok",       LOST,   LOST]),
    ("read",  "B",    [ABSENT,    OTHER_ID,   OTHER_ID,   LOST,   LOST]),
];

#[rustfmt::skip]
const RULE_OF: &[(&str, &str)] = &[
    ("Put Blob",            "write"),
    ("Get Blob",            "read"),
    ("Get Blob Properties", "read"),
    ("Set Blob Properties", "write"),
    ("Get Blob Metadata",   "read"),
    ("Set Blob Metadata",   "write"),
    ("Snapshot Blob",       "read"),
    ("Delete Blob",         "write"),
    ("Put Block",           "write"),
    ("Put Block List",      "write"),
    ("Get Block List",      "read"),
    ("Append Block",        "write"),
    ("Append Blob Seal",    "write"),
    ("Put Page",            "write"),
    ("Clear Pages",         "write"),
    ("Get Page Ranges",     "read"),
    ("Resize",              "write"),
    ("Update Sequence Number", "write"),
];

#[test]
fn every_operation_in_every_lease_state() {
    let stage = Stage::new();
    let mut table = Table::new("blob operations: lease states");
    for (name, rule) in RULE_OF {
        for (_, id, expected) in RULES.iter().filter(|(known, ..)| known == rule) {
            for (before, expected) in LEASE_STATES.iter().zip(expected) {
                named(name).put(&stage, "cont/blob", "old");
                stage.bring_lease("cont/blob", before);
                let headers: Headers<'_> = match *id {
                    "A" => &[("x-ms-lease-id", A)],
                    "B" => &[("x-ms-lease-id", B)],
                    _ => &[],
                };
                let row = format!("{name}, {before}, {id}");
                let expected = if *expected == "ok" { named(name).done } else { expected };
                let answer = named(name).ask(&stage, "cont/blob", headers);
                table.row(&row, answer.said(), expected);
                // A write that needed no id leaves nothing of a lease that has ended; nothing else changes the state.
                let is_deleted = *name == "Delete Blob" && answer.is_success();
                if !is_deleted {
                    let ended = matches!(*before, "broken" | "expired");
                    let forgotten = *rule == "write" && answer.is_success() && ended;
                    let after = stage.lease_state("cont/blob");
                    // Whether a block that only waits counts as a change of the blob is nowhere said.
                    if !(*name == "Put Block" && forgotten) {
                        table.row(format!("{row}: state after"), &after, if forgotten { "available" } else { before });
                    }
                    remove(&stage, &after);
                }
            }
        }
    }
}

fn remove(stage: &Stage, state: &str) {
    let mine: Headers<'_> = if matches!(state, "leased" | "breaking") { &[("x-ms-lease-id", A)] } else { &[] };
    stage.call("DELETE cont/blob", &[&[("x-ms-delete-snapshots", "include")], mine].concat(), "").ok();
}

/// An id for a blob that is not there.
#[rustfmt::skip]
const ID_FOR_NOTHING: &[(&str, &str)] = &[
    ("Put Blob",            ABSENT),
    ("Get Blob",            "404 BlobNotFound"),
    ("Get Blob Properties", "404 BlobNotFound"),
    ("Set Blob Properties", "404 BlobNotFound"),
    ("Get Blob Metadata",   "404 BlobNotFound"),
    ("Set Blob Metadata",   "404 BlobNotFound"),
    ("Snapshot Blob",       "404 BlobNotFound"),
    ("Delete Blob",         "404 BlobNotFound"),
    ("Put Block",           ABSENT),
    ("Put Block List",      ABSENT),
    ("Get Block List",      "404 BlobNotFound"),
    ("Append Block",        "404 BlobNotFound"),
    ("Append Blob Seal",    "404 BlobNotFound"),
    ("Put Page",            "404 BlobNotFound"),
    ("Clear Pages",         "404 BlobNotFound"),
    ("Get Page Ranges",     "404 BlobNotFound"),
    ("Resize",              "404 BlobNotFound"),
    ("Update Sequence Number", "404 BlobNotFound"),
];

#[test]
fn a_lease_id_for_a_blob_that_is_not_there() {
    let stage = Stage::new();
    let mut table = Table::new("blob operations: no blob");
    for (name, expected) in ID_FOR_NOTHING {
        table.row(name, named(name).ask(&stage, "cont/none", &[("x-ms-lease-id", A)]).said(), expected);
    }
    for operation in OPERATIONS {
        let answer = operation.ask(&stage, "none/blob", &[]);
        table.row(format!("{}, no container", operation.name), answer.said(), "404 ContainerNotFound");
        let answer = operation.ask(&stage, "cont/blob", &[("x-ms-lease-id", "me")]);
        if operation.name != "Lease Blob" {
            table.row(format!("{}, no GUID", operation.name), answer.said(), "400 InvalidHeaderValue");
        }
    }
    assert_eq!(stage.get("cont?restype=container&comp=list&include=uncommittedblobs").xml().all("Blobs"), []);
}
