//! Lease Blob. The table of actions holds for Lease Container, too, and is run there as well.

use crate::harness::{Answer, Headers, Table, date_after};
use crate::stage::{A, B, C, Stage, with_comp};

const MISMATCH: &str = "409 LeaseIdMismatchWithLeaseOperation";
const NOT_PRESENT: &str = "409 LeaseNotPresentWithLeaseOperation";
const PRESENT: &str = "409 LeaseAlreadyPresent";
const BREAKING_ACQUIRE: &str = "409 LeaseIsBreakingAndCannotBeAcquired";
const BREAKING_CHANGE: &str = "409 LeaseIsBreakingAndCannotBeChanged";
const NO_RENEWAL: &str = "409 LeaseIsBrokenAndCannotBeRenewed";

/// The states that actions begin in: A holds, or held, the lease.
const BEFORE: [&str; 6] = ["available", "leased for 60 s", "leased for ever", "breaking for 30 s", "broken", "expired"];

/// What becomes of the lease: for a success the status, the state, and who holds it or how many seconds the break takes.
/// X is the id the server makes. A refusal leaves the lease as it was.
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

/// `fresh` makes something unleased and tells its target.
pub fn check_actions(title: &'static str, stage: &Stage, fresh: impl Fn(usize) -> String) {
    let mut table = Table::new(title);
    let mut count = 0;
    for (action, expected) in ACTIONS {
        for (before, expected) in BEFORE.iter().zip(expected) {
            count += 1;
            let target = fresh(count);
            bring(stage, &target, before);
            let version = versions(&stage.head(&target));
            let answer = act(stage, &target, action);
            let got = outcome(stage, &target, &answer, expected);
            table.row(format!("{action}, {before}"), got, expected);
            let after = stage.head(&target);
            table.row(format!("{action}, {before}: the version stays"), versions(&after), &version);
            if answer.is_success() {
                table.row(format!("{action}, {before}: the version told"), versions(&answer), &version);
            } else {
                let unchanged = before.split(' ').next().expect("a word");
                table.row(format!("{action}, {before}: state after"), state(&after), unchanged);
            }
        }
    }
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

fn act(stage: &Stage, target: &str, action: &str) -> Answer {
    let id = |name: &&str| match *name {
        "A" => A,
        "B" => B,
        "C" => C,
        number => panic!("no id is called {number}"),
    };
    let words: Vec<&str> = action.split(' ').collect();
    let mut headers = vec![("x-ms-lease-action", words[0])];
    match &words[..] {
        ["acquire", proposed @ ..] => {
            headers.push(("x-ms-lease-duration", "60"));
            headers.extend(proposed.iter().map(|name| ("x-ms-proposed-lease-id", id(name))));
        }
        ["renew" | "release", name] => headers.push(("x-ms-lease-id", id(name))),
        ["change", from, to] => {
            headers.extend([("x-ms-lease-id", id(from)), ("x-ms-proposed-lease-id", id(to))]);
        }
        ["break", period @ ..] => headers.extend(period.iter().map(|period| ("x-ms-lease-break-period", *period))),
        _ => panic!("no such action: {action}"),
    }
    stage.lease(target, &headers)
}

/// The outcome in the words of the table.
fn outcome(stage: &Stage, target: &str, answer: &Answer, expected: &str) -> String {
    if !answer.is_success() {
        return answer.said();
    }
    let after = stage.head(target);
    let state = state(&after);
    if let Some(told) = answer.header("x-ms-lease-time") {
        return format!("{} {state} {}", answer.status, about(told, expected));
    }
    let Some(id) = answer.header("x-ms-lease-id") else { return format!("{} {state}", answer.status) };
    let known = [(A, "A"), (B, "B"), (C, "C")].into_iter().find(|(known, _)| *known == id);
    let holder = known.map_or("X", |(_, name)| name);
    // Only its holder may name a lease.
    let holds = stage.call(&format!("HEAD {target}"), &[("x-ms-lease-id", id)], "");
    let consistent = holds.status == 200
        && after.header("x-ms-lease-status") == Some("locked")
        && after.header("x-ms-lease-duration").is_some();
    if consistent { format!("{} {state} {holder}", answer.status) } else { format!("{holds:?} {after:?}") }
}

/// Time does not stand still during a test: a second or two less is as good.
fn about(told: &str, expected: &str) -> String {
    let wanted: u64 = expected.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    match told.parse::<u64>() {
        Ok(seconds) if seconds <= wanted && seconds + 2 >= wanted => wanted.to_string(),
        _ => told.to_owned(),
    }
}

fn state(head: &Answer) -> &str {
    head.header("x-ms-lease-state").unwrap_or("none")
}

fn versions(answer: &Answer) -> String {
    format!("{:?} {:?}", answer.header("etag"), answer.header("last-modified"))
}

#[test]
fn every_action_in_every_state() {
    let stage = Stage::new();
    check_actions("lease_blob", &stage, |count| {
        let blob = format!("cont/blob{count}");
        stage.put(&blob, "x");
        blob
    });
}

/// What the three headers say in each state.
#[rustfmt::skip]
const SHOWN: &[(&str, [Option<&str>; 3])] = &[
    // before            x-ms-lease-status  x-ms-lease-state   x-ms-lease-duration
    ("available",         [Some("unlocked"), Some("available"), None]),
    ("leased for 60 s",   [Some("locked"),   Some("leased"),    Some("fixed")]),
    ("leased for ever",   [Some("locked"),   Some("leased"),    Some("infinite")]),
    ("breaking for 30 s", [Some("locked"),   Some("breaking"),  None]),
    ("broken",            [Some("unlocked"), Some("broken"),    None]),
    ("expired",           [Some("unlocked"), Some("expired"),   None]),
];

pub fn check_shown(title: &'static str, stage: &Stage, fresh: impl Fn(usize) -> String) {
    let mut table = Table::new(title);
    for (count, (before, expected)) in SHOWN.iter().enumerate() {
        let target = fresh(count);
        bring(stage, &target, before);
        for verb in ["HEAD", "GET"] {
            let answer = stage.call(&format!("{verb} {target}"), &[], "");
            let got = ["x-ms-lease-status", "x-ms-lease-state", "x-ms-lease-duration"].map(|name| answer.header(name));
            table.row(format!("{verb}, {before}"), format!("{got:?}"), format!("{expected:?}"));
        }
    }
}

#[test]
fn what_reads_show_of_a_lease() {
    let stage = Stage::new();
    check_shown("lease_blob shown", &stage, |count| {
        let blob = format!("cont/blob{count}");
        stage.put(&blob, "x");
        blob
    });
}

/// Time moves a lease without anybody asking: (what happens, the state after it).
type Story = (&'static str, &'static [&'static str], &'static str);

#[rustfmt::skip]
const STORIES: &[Story] = &[
    ("a lease ends when its time is up",               &["acquire A 15", "wait 16"], "expired"),
    ("not before",                                     &["acquire A 30", "wait 15"], "leased"),
    ("an infinite lease does not end",                 &["acquire A -1", "wait 1000000"], "leased"),
    ("renewing starts the clock again",                &["acquire A 30", "wait 20", "renew A", "wait 20"], "leased"),
    ("and keeps the duration",                         &["acquire A 30", "wait 20", "renew A", "wait 31"], "expired"),
    ("an expired lease can be renewed",                &["acquire A 15", "wait 500", "renew A"], "leased"),
    ("changing does not start the clock again",        &["acquire A 30", "wait 20", "change A B", "wait 11"], "expired"),
    ("acquiring again gives the new duration",         &["acquire A 15", "acquire A 60", "wait 30"], "leased"),
    ("also a shorter one",                             &["acquire A -1", "acquire A 15", "wait 16"], "expired"),
    ("a break ends when its period is over",           &["acquire A -1", "break 10", "wait 11"], "broken"),
    ("not before",                                     &["acquire A -1", "break 40", "wait 20"], "breaking"),
    ("a break never lengthens the lease",              &["acquire A 15", "break 60", "wait 16"], "broken"),
    ("nor an earlier break",                           &["acquire A -1", "break 10", "break 60", "wait 11"], "broken"),
    ("a second break may shorten the first",           &["acquire A -1", "break 60", "break 5", "wait 6"], "broken"),
    ("a break without a period lets the lease run out", &["acquire A 60", "wait 40", "break", "wait 21"], "broken"),
    ("a released lease is free for others",            &["acquire A -1", "release A", "acquire B 15"], "leased"),
    ("so is one that was broken",                      &["acquire A -1", "break 0", "acquire B 15"], "leased"),
    ("a broken one can be broken again",               &["acquire A -1", "break 0", "break 10"], "broken"),
];

pub fn check_stories(title: &'static str, stage: &Stage, fresh: impl Fn(usize) -> String) {
    let mut table = Table::new(title);
    for (count, (what, steps, expected)) in STORIES.iter().enumerate() {
        let target = fresh(count);
        for step in *steps {
            match step.split(' ').collect::<Vec<_>>()[..] {
                ["wait", seconds] => stage.server.advance(seconds.parse().expect("seconds")),
                ["acquire", id, seconds] => stage.acquire(&target, if id == "A" { A } else { B }, seconds),
                _ => _ = act(stage, &target, step).ok(),
            }
        }
        table.row(format!("{what} ({})", steps.join(", ")), stage.lease_state(&target), expected);
    }
}

#[test]
fn time_moves_leases() {
    let stage = Stage::new();
    check_stories("lease_blob in time", &stage, |count| {
        let blob = format!("cont/blob{count}");
        stage.put(&blob, "x");
        blob
    });
}

/// What happens to a lease that has ended when somebody writes without it.
#[rustfmt::skip]
const FORGOTTEN: &[(&str, &str, &str)] = &[
    // the state before, what is asked after the write, what it answers
    ("expired", "renew A",   MISMATCH),
    ("expired", "release A", MISMATCH),
    ("expired", "break",     NOT_PRESENT),
    ("broken",  "release A", MISMATCH),
    ("broken",  "break 0",   NOT_PRESENT),
    ("leased",  "renew A",   "200 leased A"),
];

#[test]
fn a_write_makes_an_ended_lease_available() {
    let stage = Stage::new();
    let mut table = Table::new("lease_blob forgotten");
    for (before, action, expected) in FORGOTTEN {
        stage.put("cont/blob", "x");
        stage.bring_lease("cont/blob", before);
        let id: &[(&str, &str)] = if *before == "leased" { &[("x-ms-lease-id", A)] } else { &[] };
        stage.call("PUT cont/blob?comp=metadata", id, "").ok();
        let answer = act(&stage, "cont/blob", action);
        table.row(format!("{before}, {action}"), outcome(&stage, "cont/blob", &answer, expected), expected);
        stage.call("DELETE cont/blob", id, "").ok();
    }
}

/// Headers that an action needs, or cannot have.
#[rustfmt::skip]
pub const PARAMETERS: &[(&str, Headers<'static>, &str)] = &[
    ("no action",              &[], "400 MissingRequiredHeader"),
    ("an unknown action",      &[("x-ms-lease-action", "steal")], "400 InvalidHeaderValue"),
    ("an empty action",        &[("x-ms-lease-action", "")], "400 MissingRequiredHeader"),
    ("acquire without a time", &[("x-ms-lease-action", "acquire")], "400 MissingRequiredHeader"),
    ("acquire for 14 s",       &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "14")], "400 InvalidHeaderValue"),
    ("acquire for 61 s",       &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "61")], "400 InvalidHeaderValue"),
    ("acquire for 0 s",        &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "0")], "400 InvalidHeaderValue"),
    ("acquire for -2 s",       &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-2")], "400 InvalidHeaderValue"),
    ("acquire for x s",        &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "x")], "400 InvalidHeaderValue"),
    ("acquire for 2^64 s",     &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "18446744073709551616")], "400 InvalidHeaderValue"),
    ("propose no GUID",        &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", "me")], "400 InvalidHeaderValue"),
    ("renew nothing",          &[("x-ms-lease-action", "renew")], "400 MissingRequiredHeader"),
    ("renew no GUID",          &[("x-ms-lease-action", "renew"), ("x-ms-lease-id", "me")], "400 InvalidHeaderValue"),
    ("release nothing",        &[("x-ms-lease-action", "release")], "400 MissingRequiredHeader"),
    ("change nothing",         &[("x-ms-lease-action", "change"), ("x-ms-proposed-lease-id", B)], "400 MissingRequiredHeader"),
    ("change to nothing",      &[("x-ms-lease-action", "change"), ("x-ms-lease-id", A)], "400 MissingRequiredHeader"),
    ("change to no GUID",      &[("x-ms-lease-action", "change"), ("x-ms-lease-id", A), ("x-ms-proposed-lease-id", "me")], "400 InvalidHeaderValue"),
    ("break for 61 s",         &[("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "61")], "400 InvalidHeaderValue"),
    ("break for -1 s",         &[("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "-1")], "400 InvalidHeaderValue"),
    ("break for x s",          &[("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "x")], "400 InvalidHeaderValue"),
];

#[test]
fn bad_parameters_change_nothing() {
    let stage = Stage::new();
    stage.put("cont/blob", "x");
    stage.acquire("cont/blob", A, "-1");
    let before = stage.everything();
    let mut table = Table::new("lease_blob parameters");
    for (what, headers, expected) in PARAMETERS {
        table.row(what, stage.lease("cont/blob", headers).said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
}

#[test]
fn ids_are_guids_in_any_form() {
    let stage = Stage::new();
    stage.put("cont/blob", "x");
    stage.acquire("cont/blob", "{AAAAAAAA-AAAA-AAAA-AAAA-AAAAAAAAAAAA}", "-1");
    for id in [A, &A.to_uppercase(), &A.replace('-', ""), &format!("({A})")] {
        let answer = stage.lease("cont/blob", &[("x-ms-lease-action", "Renew"), ("x-ms-lease-id", id)]);
        assert_eq!((answer.said().as_str(), answer.header("x-ms-lease-id")), ("200", Some(A)), "{id}");
    }
}

/// What cannot be leased.
#[test]
fn what_is_not_there_cannot_be_leased() {
    let stage = Stage::new();
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    let mut table = Table::new("lease_blob what");
    stage.put("cont/blob", "x");
    let snapshot = stage.call("PUT cont/blob?comp=snapshot", &[], "").ok();
    let snapshot = snapshot.header("x-ms-snapshot").expect("a snapshot").to_owned();
    table.row("no blob", stage.lease("cont/none", &acquire).said(), "404 BlobNotFound");
    table.row("no container", stage.lease("none/blob", &acquire).said(), "404 ContainerNotFound");
    let on_snapshot = stage.lease(&format!("cont/blob?snapshot={snapshot}"), &acquire);
    table.row("a snapshot", on_snapshot.status, "400");
    stage.put_block("cont/staged", "AAAA", "x");
    table.row("a blob of uncommitted blocks", stage.lease("cont/staged", &acquire).said(), "201");
    assert_eq!(stage.lease_state("cont/blob"), "available");
}

/// Conditions are judged before the lease, by the rules of writes.
#[test]
fn conditions_come_first() {
    let stage = Stage::new();
    let put = stage.put("cont/blob", "x");
    stage.acquire("cont/blob", A, "-1");
    let (etag, date) = (put.etag(), put.last_modified());
    let (earlier, later) = (date_after(&date, -10), date_after(&date, 10));
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("the ETag matches",     &[("if-match", &etag)], "200"),
        ("it does not",          &[("if-match", "\"0x1\"")], "412 ConditionNotMet"),
        ("it is another",        &[("if-none-match", "\"0x1\"")], "200"),
        ("it is the same",       &[("if-none-match", &etag)], "412 ConditionNotMet"),
        ("changed since",        &[("if-modified-since", &earlier)], "200"),
        ("not changed since",    &[("if-modified-since", &later)], "412 ConditionNotMet"),
        ("unchanged since",      &[("if-unmodified-since", &later)], "200"),
        ("not unchanged since",  &[("if-unmodified-since", &earlier)], "412 ConditionNotMet"),
        ("two that contradict",  &[("if-match", &etag), ("if-none-match", "\"0x1\"")], "400 MultipleConditionHeadersNotSupported"),
        ("must not exist",       &[("if-none-match", "*")], "200"),
    ];
    let mut table = Table::new("lease_blob conditions");
    for (what, conditions, expected) in rows {
        let right = [&[("x-ms-lease-action", "renew"), ("x-ms-lease-id", A)], *conditions].concat();
        table.row(what, stage.lease("cont/blob", &right).said(), expected);
        let wrong = [&[("x-ms-lease-action", "renew"), ("x-ms-lease-id", B)], *conditions].concat();
        let expected = if *expected == "200" { MISMATCH } else { expected };
        table.row(format!("{what}, wrong id"), stage.lease("cont/blob", &wrong).said(), expected);
    }
}

#[test]
fn a_lease_stays_on_the_blob_through_overwrites_and_goes_with_it() {
    let stage = Stage::new();
    let mine = ("x-ms-lease-id", A);
    stage.put("cont/blob", "x");
    stage.acquire("cont/blob", A, "-1");
    stage.call("PUT cont/blob", &[crate::stage::BLOCK_BLOB, mine], "y").ok();
    assert_eq!(stage.lease_state("cont/blob"), "leased");
    stage.call(&format!("PUT {}", with_comp("cont/blob", "blocklist")), &[mine], "<BlockList/>").ok();
    assert_eq!(stage.lease_state("cont/blob"), "leased");
    stage.call("DELETE cont/blob", &[mine], "").ok();
    stage.put("cont/blob", "z");
    assert_eq!(stage.lease_state("cont/blob"), "available");
}
