//! Lease Share: for 15 to 60 seconds or without end, as containers have it.

use crate::harness::{Headers, Table};
use crate::stage::{A, B, SHARE, Stage};

const MISMATCH: &str = "409 LeaseIdMismatchWithLeaseOperation";
const NOT_PRESENT: &str = "409 LeaseNotPresentWithLeaseOperation";
const PRESENT: &str = "409 LeaseAlreadyPresent";
const BREAKING_ACQUIRE: &str = "409 LeaseIsBreakingAndCannotBeAcquired";
const BREAKING_CHANGE: &str = "409 LeaseIsBreakingAndCannotBeChanged";
const NO_RENEWAL: &str = "409 LeaseIsBrokenAndCannotBeRenewed";

/// The states that actions begin in: A holds, or held, the lease.
const BEFORE: [&str; 6] = ["available", "leased for 60 s", "leased for ever", "breaking for 30 s", "broken", "expired"];

/// What becomes of the lease. X is the id the server makes. A refusal leaves the lease as it was.
#[rustfmt::skip]
const ACTIONS: &[(&str, [&str; 6])] = &[
    // action         available       leased for 60 s    leased for ever     breaking for 30 s  broken          expired
    ("acquire",      ["201 leased X", PRESENT,           PRESENT,            PRESENT,           "201 leased X", "201 leased X"]),
    ("acquire A",    ["201 leased A", "201 leased A",    "201 leased A",     BREAKING_ACQUIRE,  "201 leased A", "201 leased A"]),
    ("acquire B",    ["201 leased B", PRESENT,           PRESENT,            PRESENT,           "201 leased B", "201 leased B"]),
    ("renew A",      [MISMATCH,       "200 leased A",    "200 leased A",     NO_RENEWAL,        NO_RENEWAL,     "200 leased A"]),
    ("renew B",      [MISMATCH,       MISMATCH,          MISMATCH,           MISMATCH,          MISMATCH,       MISMATCH]),
    ("change A B",   [NOT_PRESENT,    "200 leased B",    "200 leased B",     BREAKING_CHANGE,   NOT_PRESENT,    NOT_PRESENT]),
    ("change B A",   [NOT_PRESENT,    "200 leased A",    "200 leased A",     MISMATCH,          NOT_PRESENT,    NOT_PRESENT]),
    ("change B C",   [NOT_PRESENT,    MISMATCH,          MISMATCH,           MISMATCH,          NOT_PRESENT,    NOT_PRESENT]),
    ("release A",    [MISMATCH,       "200 available",   "200 available",    "200 available",   "200 available", "200 available"]),
    ("release B",    [MISMATCH,       MISMATCH,          MISMATCH,           MISMATCH,          MISMATCH,       MISMATCH]),
    ("break 0",      [NOT_PRESENT,    "202 broken 0",    "202 broken 0",     "202 broken 0",    "202 broken 0", "202 broken 0"]),
    ("break 10",     [NOT_PRESENT,    "202 breaking 10", "202 breaking 10",  "202 breaking 10", "202 broken 0", "202 broken 0"]),
    ("break 60",     [NOT_PRESENT,    "202 breaking 60", "202 breaking 60",  "202 breaking 30", "202 broken 0", "202 broken 0"]),
    ("break",        [NOT_PRESENT,    "202 breaking 60", "202 broken 0",     "202 breaking 30", "202 broken 0", "202 broken 0"]),
];

fn fresh(stage: &Stage, count: usize) -> String {
    let share = format!("share{count}");
    stage.make_share(&share);
    format!("{share}?restype=share")
}

fn bring(stage: &Stage, target: &str, before: &str) {
    match before {
        "leased for 60 s" => stage.acquire(target, A, "60"),
        "leased for ever" => stage.acquire(target, A, "-1"),
        "breaking for 30 s" => {
            stage.acquire(target, A, "-1");
            stage.break_lease(target, "30");
        }
        state => stage.bring_lease(target, state),
    }
}

#[test]
fn every_action_in_every_state() {
    let stage = Stage::new();
    let mut table = Table::new("lease_share");
    let mut count = 0;
    for (action, expected) in ACTIONS {
        for (before, expected) in BEFORE.iter().zip(expected) {
            count += 1;
            let target = fresh(&stage, count);
            bring(&stage, &target, before);
            let version = |answer: &crate::harness::Answer| {
                format!("{:?} {:?}", answer.header("etag"), answer.header("last-modified"))
            };
            let known = version(&stage.head(&target));
            let answer = stage.act(&target, action, "60");
            table.row(format!("{action}, {before}"), stage.outcome(&target, &answer, expected), expected);
            let after = stage.head(&target);
            table.row(format!("{action}, {before}: the version stays"), version(&after), &known);
            if answer.is_success() {
                table.row(format!("{action}, {before}: the version told"), version(&answer), &known);
            } else {
                let unchanged = before.split(' ').next().expect("a word");
                let state = after.header("x-ms-lease-state").unwrap_or("none");
                table.row(format!("{action}, {before}: state after"), state, unchanged);
            }
        }
    }
}

/// What the three headers say in each state.
#[rustfmt::skip]
const SHOWN: &[(&str, [Option<&str>; 3])] = &[
    // before            x-ms-lease-status   x-ms-lease-state   x-ms-lease-duration
    ("available",         [Some("unlocked"), Some("available"), None]),
    ("leased for 60 s",   [Some("locked"),   Some("leased"),    Some("fixed")]),
    ("leased for ever",   [Some("locked"),   Some("leased"),    Some("infinite")]),
    ("breaking for 30 s", [Some("locked"),   Some("breaking"),  None]),
    ("broken",            [Some("unlocked"), Some("broken"),    None]),
    ("expired",           [Some("unlocked"), Some("expired"),   None]),
];

#[test]
fn what_reads_show_of_a_lease() {
    let stage = Stage::new();
    let mut table = Table::new("lease_share shown");
    for (count, (before, expected)) in SHOWN.iter().enumerate() {
        let target = fresh(&stage, count);
        bring(&stage, &target, before);
        for verb in ["HEAD", "GET"] {
            let answer = stage.call(&format!("{verb} {target}"), &[], "");
            let got = ["x-ms-lease-status", "x-ms-lease-state", "x-ms-lease-duration"].map(|name| answer.header(name));
            table.row(format!("{verb}, {before}"), format!("{got:?}"), format!("{expected:?}"));
        }
    }
}

#[rustfmt::skip]
const STORIES: &[(&str, &[&str], &str)] = &[
    ("a lease ends when its time is up",               &["acquire A 15", "wait 16"], "expired"),
    ("not before",                                     &["acquire A 30", "wait 15"], "leased"),
    ("an infinite lease does not end",                 &["acquire A -1", "wait 1000000"], "leased"),
    ("renewing starts the clock again",                &["acquire A 30", "wait 20", "renew A", "wait 20"], "leased"),
    ("and keeps the duration",                         &["acquire A 30", "wait 20", "renew A", "wait 31"], "expired"),
    ("an expired lease can be renewed",                &["acquire A 15", "wait 500", "renew A"], "leased"),
    ("changing does not start the clock again",        &["acquire A 30", "wait 20", "change A B", "wait 11"], "expired"),
    ("acquiring again gives the new duration",         &["acquire A 15", "acquire A 60", "wait 30"], "leased"),
    ("a break ends when its period is over",           &["acquire A -1", "break 10", "wait 11"], "broken"),
    ("not before, either",                             &["acquire A -1", "break 40", "wait 20"], "breaking"),
    ("a break never lengthens the lease",              &["acquire A 15", "break 60", "wait 16"], "broken"),
    ("a second break may shorten the first",           &["acquire A -1", "break 60", "break 5", "wait 6"], "broken"),
    ("a released lease is free for others",            &["acquire A -1", "release A", "acquire B 15"], "leased"),
    ("so is one that was broken",                      &["acquire A -1", "break 0", "acquire B 15"], "leased"),
    ("so is one that has expired",                     &["acquire A 15", "wait 16", "acquire B 15"], "leased"),
];

#[test]
fn time_moves_leases() {
    let stage = Stage::new();
    let mut table = Table::new("lease_share in time");
    for (count, (what, steps, expected)) in STORIES.iter().enumerate() {
        let target = fresh(&stage, count);
        for step in *steps {
            match step.split(' ').collect::<Vec<_>>()[..] {
                ["wait", seconds] => stage.server.advance(seconds.parse().expect("seconds")),
                ["acquire", id, seconds] => stage.acquire(&target, if id == "A" { A } else { B }, seconds),
                _ => _ = stage.act(&target, step, "-1").ok(),
            }
        }
        table.row(format!("{what} ({})", steps.join(", ")), stage.lease_state(&target), expected);
    }
}

#[rustfmt::skip]
const PARAMETERS: &[(&str, Headers<'static>, &str)] = &[
    ("no action",              &[], "400 MissingRequiredHeader"),
    ("an unknown action",      &[("x-ms-lease-action", "steal")], "400 InvalidHeaderValue"),
    ("acquire without a time", &[("x-ms-lease-action", "acquire")], "400 MissingRequiredHeader"),
    ("acquire for 14 s",       &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "14")], "400 InvalidHeaderValue"),
    ("acquire for 61 s",       &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "61")], "400 InvalidHeaderValue"),
    ("acquire for 0 s",        &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "0")], "400 InvalidHeaderValue"),
    ("acquire for -2 s",       &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-2")], "400 InvalidHeaderValue"),
    ("acquire for x s",        &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "x")], "400 InvalidHeaderValue"),
    ("propose no GUID",        &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", "me")], "400 InvalidHeaderValue"),
    ("renew nothing",          &[("x-ms-lease-action", "renew")], "400 MissingRequiredHeader"),
    ("renew no GUID",          &[("x-ms-lease-action", "renew"), ("x-ms-lease-id", "me")], "400 InvalidHeaderValue"),
    ("release nothing",        &[("x-ms-lease-action", "release")], "400 MissingRequiredHeader"),
    ("change nothing",         &[("x-ms-lease-action", "change"), ("x-ms-proposed-lease-id", B)], "400 MissingRequiredHeader"),
    ("change to nothing",      &[("x-ms-lease-action", "change"), ("x-ms-lease-id", A)], "400 MissingRequiredHeader"),
    ("break for 61 s",         &[("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "61")], "400 InvalidHeaderValue"),
    ("break for -1 s",         &[("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "-1")], "400 InvalidHeaderValue"),
    ("break for x s",          &[("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "x")], "400 InvalidHeaderValue"),
];

#[test]
fn bad_parameters_change_nothing() {
    let stage = Stage::new();
    stage.acquire(SHARE, A, "-1");
    let before = stage.everything();
    let mut table = Table::new("lease_share parameters");
    for (what, headers, expected) in PARAMETERS {
        table.row(what, stage.lease(SHARE, headers).said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
    let broken = stage.lease("none?restype=share", &[("x-ms-lease-action", "break")]);
    table.row("no share", broken.said(), "404 ShareNotFound");
    let stolen = stage.lease("none?restype=share", &[("x-ms-lease-action", "steal")]);
    table.row("no action and no share", stolen.said(), "400 InvalidHeaderValue");
}
