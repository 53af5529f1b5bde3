//! Lease File: without end, until it is released or broken, and broken at once.

use crate::harness::{Answer, Headers, Table};
use crate::stage::{A, B, Stage};

const MISMATCH: &str = "409 LeaseIdMismatchWithLeaseOperation";
const NOT_PRESENT: &str = "409 LeaseNotPresentWithLeaseOperation";
const PRESENT: &str = "409 LeaseAlreadyPresent";

const BEFORE: [&str; 3] = ["available", "leased", "broken"];

/// What becomes of the lease. X is the id the server makes. A refusal leaves the lease as it was.
#[rustfmt::skip]
const ACTIONS: &[(&str, [&str; 3])] = &[
    // action       available       leased           broken
    ("acquire",    ["201 leased X", PRESENT,         "201 leased X"]),
    ("acquire A",  ["201 leased A", "201 leased A",  "201 leased A"]),
    ("acquire B",  ["201 leased B", PRESENT,         "201 leased B"]),
    ("break",      [NOT_PRESENT,    "202 broken 0",  "202 broken 0"]),
    ("change A B", [NOT_PRESENT,    "200 leased B",  NOT_PRESENT]),
    ("change B A", [NOT_PRESENT,    "200 leased A",  NOT_PRESENT]),
    ("change B C", [NOT_PRESENT,    MISMATCH,        NOT_PRESENT]),
    ("release A",  [MISMATCH,       "200 available", "200 available"]),
    ("release B",  [MISMATCH,       MISMATCH,        MISMATCH]),
];

fn fresh(stage: &Stage, count: usize) -> String {
    let path = format!("share/file{count}");
    stage.put_file(&path, "x");
    path
}

#[test]
fn every_action_in_every_state() {
    let stage = Stage::new();
    let mut table = Table::new("lease_file");
    let mut count = 0;
    for (action, expected) in ACTIONS {
        for (before, expected) in BEFORE.iter().zip(expected) {
            count += 1;
            let path = fresh(&stage, count);
            stage.bring_lease(&path, before);
            let version = |answer: &Answer| format!("{:?} {:?}", answer.header("etag"), answer.header("last-modified"));
            let change = |answer: &Answer| answer.header("x-ms-file-change-time").map(str::to_owned);
            let (known, changed) = (version(&stage.head(&path)), change(&stage.head(&path)));
            stage.server.advance(2);
            let answer = stage.act(&path, action, "-1");
            table.row(format!("{action}, {before}"), stage.outcome(&path, &answer, expected), expected);
            let after = stage.head(&path);
            table.row(format!("{action}, {before}: the version stays"), version(&after), &known);
            table.row(format!("{action}, {before}: the change time stays"), change(&after) == changed, true);
            if answer.is_success() {
                table.row(format!("{action}, {before}: the version told"), version(&answer), &known);
            } else {
                let state = after.header("x-ms-lease-state").unwrap_or("none");
                table.row(format!("{action}, {before}: state after"), state, before);
            }
        }
    }
}

/// What the three headers say in each state.
#[rustfmt::skip]
const SHOWN: &[(&str, [Option<&str>; 3])] = &[
    // before      x-ms-lease-status  x-ms-lease-state   x-ms-lease-duration
    ("available", [Some("unlocked"),  Some("available"), None]),
    ("leased",    [Some("locked"),    Some("leased"),    Some("infinite")]),
    ("broken",    [Some("unlocked"),  Some("broken"),    None]),
];

#[test]
fn what_reads_show_of_a_lease() {
    let stage = Stage::new();
    let mut table = Table::new("lease_file shown");
    for (count, (before, expected)) in SHOWN.iter().enumerate() {
        let path = fresh(&stage, count);
        stage.bring_lease(&path, before);
        for verb in ["HEAD", "GET"] {
            let answer = stage.call(&format!("{verb} {path}"), &[], "");
            let got = ["x-ms-lease-status", "x-ms-lease-state", "x-ms-lease-duration"].map(|name| answer.header(name));
            table.row(format!("{verb}, {before}"), format!("{got:?}"), format!("{expected:?}"));
        }
        // Time does nothing to it.
        stage.server.advance(1_000_000);
        table.row(format!("{before}, much later"), stage.lease_state(&path), before);
    }
}

#[rustfmt::skip]
const PARAMETERS: &[(&str, Headers<'static>, &str)] = &[
    ("no action",              &[], "400 MissingRequiredHeader"),
    ("an unknown action",      &[("x-ms-lease-action", "steal")], "400 InvalidHeaderValue"),
    ("renew",                  &[("x-ms-lease-action", "renew"), ("x-ms-lease-id", A)], "400 InvalidHeaderValue"),
    ("acquire without a time", &[("x-ms-lease-action", "acquire")], "400 MissingRequiredHeader"),
    ("acquire for 15 s",       &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")], "400 InvalidHeaderValue"),
    ("acquire for 60 s",       &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "60")], "400 InvalidHeaderValue"),
    ("acquire for 0 s",        &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "0")], "400 InvalidHeaderValue"),
    ("acquire for -2 s",       &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-2")], "400 InvalidHeaderValue"),
    ("acquire for x s",        &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "x")], "400 InvalidHeaderValue"),
    ("propose no GUID",        &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", "me")], "400 InvalidHeaderValue"),
    ("release nothing",        &[("x-ms-lease-action", "release")], "400 MissingRequiredHeader"),
    ("release no GUID",        &[("x-ms-lease-action", "release"), ("x-ms-lease-id", "me")], "400 InvalidHeaderValue"),
    ("change nothing",         &[("x-ms-lease-action", "change"), ("x-ms-proposed-lease-id", B)], "400 MissingRequiredHeader"),
    ("change to nothing",      &[("x-ms-lease-action", "change"), ("x-ms-lease-id", A)], "400 MissingRequiredHeader"),
    ("change to no GUID",      &[("x-ms-lease-action", "change"), ("x-ms-lease-id", A), ("x-ms-proposed-lease-id", "me")], "400 InvalidHeaderValue"),
];

#[test]
fn bad_parameters_change_nothing() {
    let stage = Stage::new();
    stage.put_file("share/file", "x");
    stage.acquire("share/file", A, "-1");
    let before = stage.everything();
    let mut table = Table::new("lease_file parameters");
    for (what, headers, expected) in PARAMETERS {
        table.row(what, stage.lease("share/file", headers).said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
    let breaks = [("x-ms-lease-action", "break")];
    table.row("no file", stage.lease("share/none", &breaks).said(), "404 ResourceNotFound");
    table.row("no share", stage.lease("none/file", &breaks).said(), "404 ShareNotFound");
}

#[test]
fn ids_are_guids_in_any_form() {
    let stage = Stage::new();
    stage.put_file("share/file", "x");
    stage.acquire("share/file", "{AAAAAAAA-AAAA-AAAA-AAAA-AAAAAAAAAAAA}", "-1");
    for id in [A, &A.to_uppercase(), &A.replace('-', "")] {
        let put = stage.put_range("share/file", 0, "y", &[("x-ms-lease-id", id)]);
        assert_eq!(put.said(), "201", "{id}");
    }
    let broken = stage.lease("share/file", &[("x-ms-lease-action", "break")]);
    assert_eq!((broken.status, broken.header("x-ms-lease-time")), (202, Some("0")));
}

/// The lease belongs to the file, whatever it is called and whatever is in it; it goes with it.
#[test]
fn a_lease_stays_with_its_file() {
    let stage = Stage::new();
    let mine = ("x-ms-lease-id", A);
    stage.make_directory("share/dir");
    stage.put_file("share/dir/file", "x");
    stage.acquire("share/dir/file", A, "-1");
    stage.create_file("share/dir/file", 10, &[mine]).ok();
    assert_eq!(stage.lease_state("share/dir/file"), "leased", "made anew");
    stage.rename_directory("share/dir", "share/other", &[]).ok();
    assert_eq!(stage.lease_state("share/other/file"), "leased", "its directory renamed");
    assert_eq!(stage.rename_file("share/other/file", "share/file", &[]).said(), "412 LeaseIdMissing");
    stage.rename_file("share/other/file", "share/file", &[("x-ms-source-lease-id", A)]).ok();
    assert_eq!(stage.lease_state("share/file"), "leased", "renamed");
    assert_eq!(stage.put_range("share/file", 0, "y", &[]).said(), "412 LeaseIdMissing");
    stage.call("DELETE share/file", &[mine], "").ok();
    stage.put_file("share/file", "z");
    assert_eq!(stage.lease_state("share/file"), "available");
}

/// It is there after a kill, too.
#[test]
fn after_a_kill() {
    let mut stage = Stage::new();
    for (path, state) in [("share/leased", "leased"), ("share/broken", "broken")] {
        stage.put_file(path, "x");
        stage.bring_lease(path, state);
    }
    stage.server.kill_and_restart();
    stage.client = stage.server.client();
    assert_eq!(
        (stage.lease_state("share/leased"), stage.lease_state("share/broken")),
        ("leased".into(), "broken".into())
    );
    assert_eq!(stage.delete("share/leased").said(), "412 LeaseIdMissing");
    assert_eq!(stage.call("DELETE share/leased", &[("x-ms-lease-id", A)], "").said(), "202");
}
