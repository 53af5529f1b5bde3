//! The operations on shares side by side: what each answers, what it changes, and what a lease means to it.

use crate::harness::{Answer, Headers, Table};
use crate::stage::{A, B, LENGTH, Stage};

struct Operation {
    name: &'static str,
    line: &'static str,
    headers: Headers<'static>,
    body: &'static str,
    done: &'static str,
}

const PERMISSION: &str = r#"{"permission":"O:SYG:SYD:(A;;FA;;;SY)"}"#;
const ACQUIRE: Headers<'static> =
    &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", A)];

const fn operation(
    name: &'static str,
    line: &'static str,
    headers: Headers<'static>,
    body: &'static str,
    done: &'static str,
) -> Operation {
    Operation { name, line, headers, body, done }
}

/// How each operation is asked for; `{}` is the share.
#[rustfmt::skip]
const OPERATIONS: &[Operation] = &[
    operation("Create Share",         "PUT {}?restype=share",                     &[],                            "", "201"),
    operation("Get Share Properties", "GET {}?restype=share",                     &[],                            "", "200"),
    operation("Set Share Properties", "PUT {}?restype=share&comp=properties",     &[("x-ms-share-quota", "100")], "", "200"),
    operation("Get Share Metadata",   "GET {}?restype=share&comp=metadata",       &[],                            "", "200"),
    operation("Set Share Metadata",   "PUT {}?restype=share&comp=metadata",       &[("x-ms-meta-a", "1")],        "", "200"),
    operation("Get Share ACL",        "GET {}?restype=share&comp=acl",            &[],                            "", "200"),
    operation("Set Share ACL",        "PUT {}?restype=share&comp=acl",            &[],                            "", "200"),
    operation("Get Share Stats",      "GET {}?restype=share&comp=stats",          &[],                            "", "200"),
    operation("Create Permission",    "PUT {}?restype=share&comp=filepermission", &[],                    PERMISSION, "201"),
    operation("Delete Share",         "DELETE {}?restype=share",                  &[],                            "", "202"),
    operation("Lease Share",          "PUT {}?restype=share&comp=lease",          ACQUIRE,                        "", "201"),
    operation("List",                 "GET {}?restype=directory&comp=list",       &[],                            "", "200"),
];

fn named(name: &str) -> &'static Operation {
    OPERATIONS.iter().find(|operation| operation.name == name).expect("an operation")
}

impl Operation {
    fn ask(&self, stage: &Stage, share: &str, more: Headers<'_>) -> Answer {
        stage.call(&self.line.replace("{}", share), &[self.headers, more].concat(), self.body)
    }
}

/// A new share. Create Share needs a name that is free.
fn fresh(stage: &Stage, name: &str, count: usize) -> String {
    let share = format!("{}-{count}", name.to_lowercase().replace(' ', "-"));
    if name != "Create Share" {
        stage.make_share(&share);
    }
    share
}

fn target(share: &str) -> String {
    format!("{share}?restype=share")
}

/// Which answers tell the ETag and Last-Modified, and what becomes of them.
#[rustfmt::skip]
const ETAGS: &[(&str, Option<bool>, &str)] = &[
    // operation              told         after
    ("Create Share",          Some(true),  "new"),
    ("Get Share Properties",  Some(true),  "same"),
    ("Set Share Properties",  Some(true),  "new"),
    ("Get Share Metadata",    Some(true),  "same"),
    ("Set Share Metadata",    Some(true),  "new"),
    ("Get Share ACL",         Some(true),  "same"),
    ("Set Share ACL",         Some(true),  "new"),
    ("Get Share Stats",       Some(true),  "same"),
    ("Create Permission",     None,        "same"),
    ("Delete Share",          Some(false), "gone"),
    ("Lease Share",           Some(true),  "same"),
    ("List",                  None,        "same"),
];

#[test]
fn which_answers_tell_the_etag_and_which_operations_change_it() {
    let stage = Stage::new();
    let mut table = Table::new("share operations: ETag");
    for (name, told, expected) in ETAGS {
        let share = fresh(&stage, name, 0);
        let before = stage.head(&target(&share));
        stage.server.advance(2);
        let answer = named(name).ask(&stage, &share, &[]);
        table.row(format!("{name}: answer"), answer.said(), named(name).done);
        let after = stage.head(&target(&share));
        if let Some(told) = told {
            table.row(format!("{name}: ETag told"), answer.header("etag").is_some(), told);
            table.row(format!("{name}: Last-Modified told"), answer.header("last-modified").is_some(), told);
        }
        if *told == Some(true) {
            table.row(format!("{name}: the one of now"), answer.etag(), after.etag());
            table.row(format!("{name}: the time of now"), answer.last_modified(), after.last_modified());
            let form = answer.etag();
            let digits = form.strip_prefix("\"0x").and_then(|rest| rest.strip_suffix('"')).unwrap_or_default();
            let is_well_formed =
                digits.len() >= 15 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'));
            assert!(is_well_formed, "{form}");
        }
        let change = |header| match (before.header(header), after.header(header)) {
            (_, None) => "gone",
            (before, after) if before == after => "same",
            _ => "new",
        };
        table.row(format!("{name}: ETag after"), change("etag"), expected);
        table.row(format!("{name}: Last-Modified after"), change("last-modified"), expected);
    }
}

/// What happens in a share is not a change of the share.
#[test]
fn files_and_directories_do_not_change_their_share() {
    let stage = Stage::new();
    let before = stage.head(&target("share"));
    stage.server.advance(2);
    stage.make_directory("share/dir");
    stage.put_file("share/dir/file", "content");
    stage.rename_directory("share/dir", "share/other", &[]).ok();
    stage.resize("share/other/file", 100).ok();
    stage.acquire("share/other/file", A, "-1");
    stage.call("DELETE share/other/file", &[("x-ms-lease-id", A)], "").ok();
    stage.delete("share/other?restype=directory").ok();
    let after = stage.head(&target("share"));
    assert_eq!((before.etag(), before.last_modified()), (after.etag(), after.last_modified()));
}

/// Files have no conditions: one that is sent cannot be judged, and is refused.
#[test]
fn conditions_are_refused() {
    let stage = Stage::new();
    let mut table = Table::new("share operations: conditions");
    let etag = stage.head(&target("share")).etag();
    let date = stage.head(&target("share")).last_modified();
    for operation in &OPERATIONS[1..] {
        for condition in [
            ("if-match", &*etag),
            ("if-none-match", "\"0x8D0000000000000\""),
            ("if-modified-since", &*date),
            ("if-unmodified-since", &*date),
        ] {
            let said = operation.ask(&stage, "share", &[condition]).said();
            table.row(format!("{}, {}", operation.name, condition.0), said, "400 ConditionHeadersNotSupported");
        }
    }
    assert_eq!(stage.head(&target("share")).etag(), etag);
}

const MISSING_ID: &str = "412 LeaseIdMissing";
const OTHER_ID: &str = "412 LeaseIdMismatchWithContainerOperation";
const ABSENT: &str = "412 LeaseNotPresentWithContainerOperation";
/// The lease has ended: which of the codes tells so is nowhere written down.
const OVER: &str = "412";

pub const LEASE_STATES: [&str; 5] = ["available", "leased", "breaking", "broken", "expired"];

/// Every state: A is or was the holder's id. A share's lease protects the share itself from being deleted and set.
#[rustfmt::skip]
const RULES: &[(&str, &str, [&str; 5])] = &[
    //                  available  leased      breaking    broken  expired
    ("delete", "none", ["ok",      MISSING_ID, MISSING_ID, "ok",   "ok"]),
    ("delete", "A",    [ABSENT,    "ok",       "ok",       OVER,   OVER]),
    ("delete", "B",    [ABSENT,    OTHER_ID,   OTHER_ID,   OVER,   OVER]),
    ("set",    "none", ["ok",      MISSING_ID, MISSING_ID, "ok",   "ok"]),
    ("set",    "A",    [ABSENT,    "ok",       "ok",       OVER,   OVER]),
    ("set",    "B",    [ABSENT,    OTHER_ID,   OTHER_ID,   OVER,   OVER]),
    ("read",   "none", ["ok",      "ok",       "ok",       "ok",   "ok"]),
    ("read",   "A",    [ABSENT,    "ok",       "ok",       OVER,   OVER]),
    ("read",   "B",    [ABSENT,    OTHER_ID,   OTHER_ID,   OVER,   OVER]),
];

#[rustfmt::skip]
const RULE_OF: &[(&str, &str)] = &[
    ("Get Share Properties", "read"),
    ("Set Share Properties", "set"),
    ("Get Share Metadata",   "read"),
    ("Set Share Metadata",   "set"),
    ("Get Share ACL",        "read"),
    ("Set Share ACL",        "set"),
    ("Get Share Stats",      "read"),
    ("Delete Share",         "delete"),
];

#[test]
fn every_operation_in_every_lease_state() {
    let stage = Stage::new();
    let mut table = Table::new("share operations: lease states");
    let mut count = 0;
    for (name, rule) in RULE_OF {
        for (_, id, expected) in RULES.iter().filter(|(known, ..)| known == rule) {
            for (before, expected) in LEASE_STATES.iter().zip(expected) {
                count += 1;
                let share = fresh(&stage, name, count);
                stage.bring_lease(&target(&share), before);
                let headers: Headers<'_> = match *id {
                    "A" => &[("x-ms-lease-id", A)],
                    "B" => &[("x-ms-lease-id", B)],
                    _ => &[],
                };
                let row = format!("{name}, {before}, {id}");
                let answer = named(name).ask(&stage, &share, headers);
                let expected = if *expected == "ok" { named(name).done } else { expected };
                let got = if expected == OVER { answer.status.to_string() } else { answer.said() };
                table.row(&row, got, expected);
                let after = stage.head(&target(&share));
                let is_deleted = *name == "Delete Share" && expected == "202";
                let expected = if is_deleted { "gone" } else { before };
                table.row(format!("{row}: state after"), after.header("x-ms-lease-state").unwrap_or("gone"), expected);
            }
        }
    }
}

/// The lease of a share keeps nobody from the files in it.
#[test]
fn files_do_not_care_for_the_lease_of_their_share() {
    let stage = Stage::new();
    stage.bring_lease(&target("share"), "leased");
    stage.make_directory("share/dir");
    stage.put_file("share/dir/file", "content");
    stage.rename_file("share/dir/file", "share/file", &[]).ok();
    stage.resize("share/file", 3).ok();
    assert_eq!(stage.read("share/file"), b"con");
    assert_eq!(stage.delete("share/file").said(), "202");
    assert_eq!(stage.delete("share/dir?restype=directory").said(), "202");
    let permission = stage.call("PUT share?restype=share&comp=filepermission", &[], PERMISSION);
    assert_eq!(permission.said(), "201");
}

#[test]
fn no_share() {
    let stage = Stage::new();
    let mut table = Table::new("share operations: no share");
    for operation in &OPERATIONS[1..] {
        table.row(operation.name, operation.ask(&stage, "none", &[]).said(), "404 ShareNotFound");
        if !matches!(operation.name, "Lease Share" | "List" | "Create Permission") {
            // A lease id for something that is not there does not change that.
            let said = operation.ask(&stage, "none", &[("x-ms-lease-id", A)]).said();
            table.row(format!("{}, lease id", operation.name), said, "404 ShareNotFound");
            let said = operation.ask(&stage, "none", &[("x-ms-lease-id", "me")]).said();
            table.row(format!("{}, no GUID and no share", operation.name), said, "400 InvalidHeaderValue");
        }
    }
    for (name, line, headers) in [
        ("a directory", "PUT none/dir?restype=directory", &[][..]),
        ("a file", "PUT none/file", &[("x-ms-type", "file"), (LENGTH, "0")][..]),
        ("properties of a file", "HEAD none/file", &[]),
        ("a file in a directory", "GET none/dir/file", &[]),
        ("ranges", "GET none/file?comp=rangelist", &[]),
        ("handles", "GET none/file?comp=listhandles", &[]),
    ] {
        table.row(name, stage.call(line, headers, "").said(), "404 ShareNotFound");
    }
}

/// Two faults in one request: what can be seen without looking at the share comes first.
#[test]
fn two_faults() {
    let stage = Stage::new();
    stage.bring_lease("share?restype=share", "leased");
    let before = stage.everything();
    let mut table = Table::new("share operations: two faults");
    #[rustfmt::skip]
    let rows: &[(&str, &str, Headers<'_>, &str, &str)] = &[
        ("a bad quota of no share",      "PUT none?restype=share&comp=properties", &[("x-ms-share-quota", "x")], "", "400 InvalidHeaderValue"),
        ("a bad quota, leased",          "PUT share?restype=share&comp=properties", &[("x-ms-share-quota", "0")], "", "400 InvalidHeaderValue"),
        ("bad metadata of no share",     "PUT none?restype=share&comp=metadata", &[("x-ms-meta-1", "x")], "", "400 InvalidMetadata"),
        ("bad policies of no share",     "PUT none?restype=share&comp=acl", &[], "<a/>", "400 InvalidXmlDocument"),
        ("bad policies, leased",         "PUT share?restype=share&comp=acl", &[], "<a/>", "400 InvalidXmlDocument"),
        ("exists, with a bad quota",     "PUT share?restype=share", &[("x-ms-share-quota", "x")], "", "400 InvalidHeaderValue"),
        ("exists, with a wrong lease",   "PUT share?restype=share", &[("x-ms-lease-id", B)], "", "409 ShareAlreadyExists"),
        ("a bad time-out of no share",   "GET none?restype=share&timeout=x", &[], "", "400 InvalidQueryParameterValue"),
        ("a condition and no share",     "GET none?restype=share", &[("if-match", "*")], "", "400 ConditionHeadersNotSupported"),
    ];
    for (row, line, headers, body, expected) in rows {
        table.row(row, stage.call(line, headers, body).said(), expected);
    }
    assert_eq!(stage.everything(), before);
}
