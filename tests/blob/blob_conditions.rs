//! Conditional headers on blobs: every combination of the four, on reads and on writes; what is not there; the wildcards;
//! and which fault is told when a request has two.

use crate::blob_operations::named;
use crate::harness::{Answer, Headers, Table, date_after};
use crate::stage::{A, B, BLOCK_BLOB, Stage};

/// How one header of a request stands to the blob.
const STANDINGS: [&str; 3] = ["absent", "holds", "fails"];

/// The first row that fits gives the answer. "passes" is absent or holds, "*" is anything.
type Row = ([&'static str; 4], &'static str);

#[rustfmt::skip]
const READS: &[Row] = &[
    // If-Match  If-Unmodified-Since  If-None-Match  If-Modified-Since
    (["fails",   "*",                 "*",           "*"],      "412 ConditionNotMet"),
    (["*",       "fails",             "*",           "*"],      "412 ConditionNotMet"),
    (["passes",  "passes",            "fails",       "fails"],  "304 ConditionNotMet"),
    (["passes",  "passes",            "fails",       "absent"], "304 ConditionNotMet"),
    (["passes",  "passes",            "absent",      "fails"],  "304 ConditionNotMet"),
    (["passes",  "passes",            "fails",       "holds"],  "200"),
    (["passes",  "passes",            "holds",       "fails"],  "200"),
    (["passes",  "passes",            "passes",      "passes"], "200"),
];

#[rustfmt::skip]
const WRITES: &[Row] = &[
    // If-Match  If-Unmodified-Since  If-None-Match  If-Modified-Since
    (["absent",  "absent",            "absent",      "absent"], "ok"),
    (["holds",   "*",                 "absent",      "absent"], "ok"),
    (["fails",   "*",                 "absent",      "absent"], "412 ConditionNotMet"),
    (["absent",  "holds",             "absent",      "absent"], "ok"),
    (["absent",  "fails",             "absent",      "absent"], "412 ConditionNotMet"),
    (["absent",  "absent",            "holds",       "*"],      "ok"),
    (["absent",  "absent",            "fails",       "*"],      "412 ConditionNotMet"),
    (["absent",  "absent",            "absent",      "holds"],  "ok"),
    (["absent",  "absent",            "absent",      "fails"],  "412 ConditionNotMet"),
    (["*",       "*",                 "*",           "*"],      "400 MultipleConditionHeadersNotSupported"),
];

fn expected(rows: &[Row], standing: [&str; 4]) -> &'static str {
    let fits = |pattern: &str, standing: &str| match pattern {
        "*" => true,
        "passes" => standing != "fails",
        exact => exact == standing,
    };
    let found = rows.iter().find(|(patterns, _)| patterns.iter().zip(standing).all(|(p, s)| fits(p, s)));
    found.unwrap_or_else(|| panic!("no row for {standing:?}")).1
}

fn all_standings() -> impl Iterator<Item = [&'static str; 4]> {
    let of = |number: usize, place: u32| STANDINGS[number / 3_usize.pow(place) % 3];
    (0..81).map(move |number| [of(number, 3), of(number, 2), of(number, 1), of(number, 0)])
}

/// The headers that stand so to a blob with this ETag and time.
fn headers(standing: [&str; 4], version: &Answer) -> Vec<(&'static str, String)> {
    let (etag, date) = (version.etag(), version.last_modified());
    let other = "\"0x8D0000000000000\"".to_owned();
    let values = [
        ("if-match", etag.clone(), other.clone()),
        ("if-unmodified-since", date.clone(), date_after(&date, -1)),
        ("if-none-match", other, etag),
        ("if-modified-since", date_after(&date, -1), date),
    ];
    let chosen = values.into_iter().zip(standing).filter_map(|((name, holds, fails), standing)| match standing {
        "holds" => Some((name, holds)),
        "fails" => Some((name, fails)),
        _ => None,
    });
    chosen.collect()
}

fn borrowed<'a>(headers: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

#[test]
fn every_combination_on_reads() {
    let stage = Stage::new();
    let mut table = Table::new("conditions on reads");
    let base = stage.put("cont/blob", "hello");
    let own = [("x-ms-meta-own", "yes")];
    let snapshot = stage.call("PUT cont/blob?comp=snapshot", &own, "").ok();
    let id = snapshot.header("x-ms-snapshot").expect("an id").to_owned();
    let reads = [
        ("GET cont/blob".to_owned(), &base),
        ("HEAD cont/blob".to_owned(), &base),
        ("GET cont/blob?comp=metadata".to_owned(), &base),
        (format!("GET cont/blob?snapshot={id}"), &snapshot),
    ];
    for standing in all_standings() {
        for (line, version) in &reads {
            let headers = headers(standing, version);
            let answer = stage.call(line, &borrowed(&headers), "");
            table.row(format!("{line}, {standing:?}"), answer.said(), expected(READS, standing));
        }
    }
}

/// A failed condition comes before a range, and a range is cut from what the conditions were judged on.
#[test]
fn conditions_with_a_range() {
    let stage = Stage::new();
    let put = stage.put("cont/blob", "hello");
    let etag = put.etag();
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("the version and the range are there", &[("if-match", &etag), ("range", "bytes=1-2")], "206"),
        ("another version",                     &[("if-match", "\"0x1\""), ("range", "bytes=1-2")], "412 ConditionNotMet"),
        ("no new version",                      &[("if-none-match", &etag), ("range", "bytes=1-2")], "304 ConditionNotMet"),
        ("another version, no such range",      &[("if-match", "\"0x1\""), ("range", "bytes=9-")], "412 ConditionNotMet"),
        ("the version, no such range",          &[("if-match", &etag), ("range", "bytes=9-")], "416 InvalidRange"),
        ("one of several",                      &[("if-match", &format!("\"0x1\", {etag}"))], "200"),
        ("none of several",                     &[("if-match", "\"0x1\", \"0x2\"")], "412 ConditionNotMet"),
        ("not one of several",                  &[("if-none-match", &format!("\"0x1\",{etag}"))], "304 ConditionNotMet"),
        ("other than all of several",           &[("if-none-match", "\"0x1\",\"0x2\"")], "200"),
        ("a weak one is no match",              &[("if-match", &format!("W/{etag}"))], "412 ConditionNotMet"),
        ("and no match is what was asked",      &[("if-none-match", &format!("W/{etag}"))], "200"),
        ("must not exist",                      &[("if-none-match", "*")], "400 UnsatisfiableCondition"),
        ("must exist",                          &[("if-match", "*")], "200"),
        ("no date",                             &[("if-modified-since", "yesterday")], "400 InvalidHeaderValue"),
        ("no date either",                      &[("if-unmodified-since", "2026-01-01")], "400 InvalidHeaderValue"),
        ("an open quote",                       &[("if-match", "\"0x1")], "412 ConditionNotMet"),
        ("no list",                             &[("if-match", &format!("{etag},,"))], "412 ConditionNotMet"),
        ("what is no ETag is not matched",      &[("if-none-match", "\"0x1")], "400 InvalidHeaderValue"),
        ("no ETag",                             &[("if-match", "")], "200"),
    ];
    let mut table = Table::new("conditions with a range");
    for (what, headers, expected) in rows {
        table.row(what, stage.call("GET cont/blob", headers, "").said(), expected);
    }
}

/// A 304 tells the client what it has.
#[test]
fn not_modified_says_which_version() {
    let stage = Stage::new();
    let etag = stage.put("cont/blob", "hello").etag();
    for line in ["GET cont/blob", "HEAD cont/blob"] {
        let answer = stage.call(line, &[("if-none-match", &etag)], "");
        assert_eq!((answer.status, answer.body.len()), (304, 0), "{line}");
    }
}

#[test]
fn every_combination_on_writes() {
    let stage = Stage::new();
    let mut table = Table::new("conditions on writes");
    for name in [
        "Put Blob",
        "Set Blob Properties",
        "Set Blob Metadata",
        "Put Block List",
        "Snapshot Blob",
        "Delete Blob",
        "Append Block",
        "Append Blob Seal",
        "Put Page",
        "Clear Pages",
        "Resize",
    ] {
        let operation = named(name);
        let mut version = operation.put(&stage, "cont/blob", "hello");
        for standing in all_standings() {
            let headers = headers(standing, &version);
            let expected = match expected(WRITES, standing) {
                "ok" => operation.done,
                refused => refused,
            };
            let answer = operation.ask(&stage, "cont/blob", &borrowed(&headers));
            table.row(format!("{name}, {standing:?}"), answer.said(), expected);
            let now = stage.head("cont/blob");
            if answer.is_success() {
                version = if now.status == 404 { operation.put(&stage, "cont/blob", "hello") } else { now };
            } else {
                assert_eq!(now.header("etag"), version.header("etag"), "{name}, {standing:?}: refused, and changed");
            }
        }
    }
}

#[test]
fn writes_take_one_etag() {
    let stage = Stage::new();
    let etag = stage.put("cont/blob", "hello").etag();
    let list = format!("{etag}, \"0x1\"");
    let mut table = Table::new("conditions: lists on writes");
    for name in [
        "Put Blob",
        "Set Blob Properties",
        "Set Blob Metadata",
        "Put Block List",
        "Snapshot Blob",
        "Lease Blob",
        "Delete Blob",
        "Append Block",
        "Append Blob Seal",
        "Put Page",
        "Clear Pages",
        "Resize",
    ] {
        for header in ["if-match", "if-none-match"] {
            let answer = named(name).ask(&stage, "cont/blob", &[(header, &list)]);
            table.row(format!("{name}, {header}"), answer.said(), "400 MultipleConditionHeadersNotSupported");
        }
    }
    assert_eq!(stage.head("cont/blob").etag(), etag);
}

const GONE: &str = "404 BlobNotFound";
const UNMET: &str = "412 ConditionNotMet";

/// A blob that is not there, or has only uncommitted blocks, which is the same to conditions.
#[rustfmt::skip]
const NOTHING_THERE: &[(&str, [&str; 7])] = &[
    // operation             no condition  If-Match "x"  If-Match *  If-None-Match "x"  If-None-Match *  If-Modified-Since  If-Unmodified-Since
    ("Put Blob",            ["201",        UNMET,        UNMET,      "201",             "201",           "201",             "201"]),
    ("Put Block List",      ["201",        UNMET,        UNMET,      "201",             "201",           "201",             "201"]),
    ("Get Blob",            [GONE,         GONE,         GONE,       GONE,              GONE,            GONE,              GONE]),
    ("Get Blob Properties", [GONE,         GONE,         GONE,       GONE,              GONE,            GONE,              GONE]),
    ("Get Blob Metadata",   [GONE,         GONE,         GONE,       GONE,              GONE,            GONE,              GONE]),
    ("Set Blob Properties", [GONE,         UNMET,        UNMET,      GONE,              GONE,            GONE,              GONE]),
    ("Set Blob Metadata",   [GONE,         UNMET,        UNMET,      GONE,              GONE,            GONE,              GONE]),
    ("Snapshot Blob",       [GONE,         UNMET,        UNMET,      GONE,              GONE,            GONE,              GONE]),
    ("Delete Blob",         [GONE,         UNMET,        UNMET,      GONE,              GONE,            GONE,              GONE]),
    ("Append Block",        [GONE,         UNMET,        UNMET,      GONE,              GONE,            GONE,              GONE]),
    ("Append Blob Seal",    [GONE,         UNMET,        UNMET,      GONE,              GONE,            GONE,              GONE]),
    ("Put Page",            [GONE,         UNMET,        UNMET,      GONE,              GONE,            GONE,              GONE]),
    ("Clear Pages",         [GONE,         UNMET,        UNMET,      GONE,              GONE,            GONE,              GONE]),
    ("Get Page Ranges",     [GONE,         GONE,         GONE,       GONE,              GONE,            GONE,              GONE]),
    ("Resize",              [GONE,         UNMET,        UNMET,      GONE,              GONE,            GONE,              GONE]),
];

const SEVEN: [&[(&str, &str)]; 7] = [
    &[],
    &[("if-match", "\"0x1\"")],
    &[("if-match", "*")],
    &[("if-none-match", "\"0x1\"")],
    &[("if-none-match", "*")],
    &[("if-modified-since", "Sun, 15 Nov 2015 18:00:00 GMT")],
    &[("if-unmodified-since", "Sun, 15 Nov 2015 18:00:00 GMT")],
];

#[test]
fn blobs_that_are_not_there() {
    let stage = Stage::new();
    let mut table = Table::new("conditions on nothing");
    for (name, expected) in NOTHING_THERE {
        for (at, (conditions, expected)) in SEVEN.iter().zip(expected).enumerate() {
            let row = format!("{name}, {:?}", conditions.first());
            let blob = format!("cont/{}-{at}", name.replace(' ', "-"));
            table.row(&row, named(name).ask(&stage, &blob, conditions).said(), expected);
            let staged = format!("{blob}-staged");
            stage.put_block(&staged, "AAAA", "waiting");
            let expected = match (*name, at) {
                // Deleting what is only staged takes the blocks away; that is a matter of its own.
                ("Delete Blob", _) => continue,
                _ => expected,
            };
            table.row(format!("{row}, staged"), named(name).ask(&stage, &staged, conditions).said(), expected);
        }
    }
}

/// `If-None-Match: *` and `If-Match: *` on a blob that is there.
#[rustfmt::skip]
const WILDCARDS: &[(&str, &str, &str)] = &[
    // operation             If-None-Match: *              If-Match: *
    ("Put Blob",            "409 BlobAlreadyExists",      "201"),
    ("Put Block List",      "409 BlobAlreadyExists",      "201"),
    ("Get Blob",            "400 UnsatisfiableCondition", "200"),
    ("Get Blob Properties", "400 UnsatisfiableCondition", "200"),
    ("Get Blob Metadata",   "400 UnsatisfiableCondition", "200"),
    ("Set Blob Properties", "200",                        "200"),
    ("Set Blob Metadata",   "200",                        "200"),
    ("Lease Blob",          "201",                        "201"),
    ("Delete Blob",         "412 ConditionNotMet",        "202"),
    ("Append Block",        "201",                        "201"),
    ("Append Blob Seal",    "200",                        "200"),
    ("Put Page",            "201",                        "201"),
    ("Clear Pages",         "201",                        "201"),
    ("Get Page Ranges",     "400 UnsatisfiableCondition", "200"),
    ("Resize",              "200",                        "200"),
];

#[test]
fn wildcards() {
    let stage = Stage::new();
    let mut table = Table::new("conditions: wildcards");
    for (name, none_match, matched) in WILDCARDS {
        for (header, expected) in [("if-none-match", none_match), ("if-match", matched)] {
            let blob = format!("cont/{}-{header}", name.replace(' ', "-"));
            named(name).put(&stage, &blob, "hello");
            table.row(format!("{name}, {header}"), named(name).ask(&stage, &blob, &[(header, "*")]).said(), expected);
        }
    }
}

/// A request with two faults gets the one that is looked for first: the form of the request, the container, conditions,
/// the blob, the lease, `If-None-Match: *` on a create, then the content.
#[test]
fn two_faults_at_once() {
    let stage = Stage::new();
    stage.put("cont/leased", "old");
    stage.acquire("cont/leased", A, "-1");
    stage.put("cont/free", "old");
    stage.put_block("cont/free", "AAAA", "waiting");
    let snapshot = stage.call("PUT cont/free?comp=snapshot", &[], "").ok();
    let snapshot = snapshot.header("x-ms-snapshot").expect("an id").to_owned();
    let on_snapshot = format!("PUT cont/free?comp=metadata&snapshot={snapshot}");
    let (stale, create_only) = (("if-match", "\"0x1\""), ("if-none-match", "*"));
    let (mine, yours) = (("x-ms-lease-id", A), ("x-ms-lease-id", B));
    let bad_md5 = ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==");
    #[rustfmt::skip]
    let rows: &[(&str, &str, Headers<'_>, &str, &str)] = &[
        // The form of the request before anything that is stored.
        ("bad header, no container",       "PUT none/blob",   &[BLOCK_BLOB, ("x-ms-lease-id", "me")], "x", "400 InvalidHeaderValue"),
        ("no type, no container",          "PUT none/blob",   &[], "x", "400 MissingRequiredHeader"),
        ("two sums, no container",         "PUT none/blob",   &[BLOCK_BLOB, bad_md5, ("x-ms-content-crc64", "AAAAAAAAAAA=")], "x", "400 BothCrc64AndMd5HeaderPresent"),
        ("bad metadata, stale",            "PUT cont/free",   &[BLOCK_BLOB, stale, ("x-ms-meta-1", "x")], "x", "400 InvalidMetadata"),
        ("conditions at odds, no blob",    "PUT cont/none?comp=metadata", &[stale, ("if-none-match", "\"0x2\"")], "", "400 MultipleConditionHeadersNotSupported"),
        ("bad block id, no container",     "PUT none/blob?comp=block&blockid=%21", &[], "x", "400 InvalidQueryParameterValue"),
        ("bad range, no blob",             "GET cont/none",   &[("x-ms-range", "bytes=x")], "", "400 InvalidHeaderValue"),
        // The container before what should be in it.
        ("no container, stale",            "PUT none/blob",   &[BLOCK_BLOB, stale], "x", "404 ContainerNotFound"),
        ("no container, create only",      "PUT none/blob",   &[BLOCK_BLOB, create_only], "x", "404 ContainerNotFound"),
        ("no container, lease id",         "GET none/blob",   &[mine], "", "404 ContainerNotFound"),
        ("no container, wrong sum",        "PUT none/blob",   &[BLOCK_BLOB, bad_md5], "x", "404 ContainerNotFound"),
        // Conditions before the blob and the lease.
        ("stale, no blob",                 "DELETE cont/none", &[stale], "", "412 ConditionNotMet"),
        ("stale, no lease id",             "PUT cont/leased", &[BLOCK_BLOB, stale], "x", "412 ConditionNotMet"),
        ("stale, wrong lease id",          "PUT cont/leased", &[BLOCK_BLOB, stale, yours], "x", "412 ConditionNotMet"),
        ("stale, wrong lease id, read",    "GET cont/leased", &[stale, yours], "", "412 ConditionNotMet"),
        ("stale, wrong sum",               "PUT cont/free",   &[BLOCK_BLOB, stale, bad_md5], "x", "412 ConditionNotMet"),
        ("stale, unknown block",           "PUT cont/free?comp=blocklist", &[stale], "<BlockList><Latest>BBBB</Latest></BlockList>", "412 ConditionNotMet"),
        ("stale, snapshots present",       "DELETE cont/free", &[stale], "", "412 ConditionNotMet"),
        // The blob before its lease.
        ("no blob, lease id",              "DELETE cont/none", &[mine], "", "404 BlobNotFound"),
        ("no blob, lease id, read",        "HEAD cont/none",  &[mine], "", "404 BlobNotFound"),
        // The lease before "must not exist", snapshots, ranges, blocks and the content.
        ("create only, no lease id",       "PUT cont/leased", &[BLOCK_BLOB, create_only], "x", "412 LeaseIdMissing"),
        ("create only, wrong lease id",    "PUT cont/leased", &[BLOCK_BLOB, create_only, yours], "x", "412 LeaseIdMismatchWithBlobOperation"),
        ("create only, no lease id, list", "PUT cont/leased?comp=blocklist", &[create_only], "<BlockList/>", "412 LeaseIdMissing"),
        ("create only, id of no lease",    "PUT cont/free",   &[BLOCK_BLOB, create_only, mine], "x", "412 LeaseNotPresentWithBlobOperation"),
        ("no lease id, wrong sum",         "PUT cont/leased", &[BLOCK_BLOB, bad_md5], "x", "412 LeaseIdMissing"),
        ("no lease id, unknown block",     "PUT cont/leased?comp=blocklist", &[], "<BlockList><Latest>BBBB</Latest></BlockList>", "412 LeaseIdMissing"),
        ("id of no lease, snapshots",      "DELETE cont/free", &[mine], "", "412 LeaseNotPresentWithBlobOperation"),
        ("wrong lease id, no such range",  "GET cont/leased", &[yours, ("range", "bytes=9-")], "", "412 LeaseIdMismatchWithBlobOperation"),
        ("wrong lease id, other id length", "PUT cont/leased?comp=block&blockid=AA%3D%3D", &[yours], "x", "412 LeaseIdMismatchWithBlobOperation"),
        // "Must not exist" before the content.
        ("create only, wrong sum",         "PUT cont/free",   &[BLOCK_BLOB, create_only, bad_md5], "x", "409 BlobAlreadyExists"),
        // A snapshot cannot be written, whatever else is wrong.
        ("a snapshot, bad metadata",       &on_snapshot,      &[("x-ms-meta-1", "x")], "", "400"),
        ("a snapshot, lease id",           &on_snapshot,      &[mine], "", "400"),
    ];
    let before = stage.get("cont?restype=container&comp=list&include=snapshots,metadata,uncommittedblobs").body;
    let mut table = Table::new("two faults");
    for (what, line, headers, body, expected) in rows {
        let answer = stage.call(line, headers, body);
        let got = if *expected == "400" { answer.status.to_string() } else { answer.said() };
        table.row(what, got, expected);
    }
    let after = stage.get("cont?restype=container&comp=list&include=snapshots,metadata,uncommittedblobs").body;
    assert_eq!(String::from_utf8_lossy(&after), String::from_utf8_lossy(&before));
    // The one pair that is no fault: who names the active lease knows that the blob exists.
    let replaced = stage.call("PUT cont/leased", &[BLOCK_BLOB, create_only, mine], "new");
    assert_eq!(replaced.said(), "201");
    let replaced = stage.call("PUT cont/leased?comp=blocklist", &[create_only, mine], "<BlockList/>");
    assert_eq!(replaced.said(), "201");
}
