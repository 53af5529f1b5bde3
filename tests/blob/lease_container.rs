//! Lease Container: the same actions as on a blob.

use crate::harness::{Headers, Table, date_after};
use crate::lease_blob::{PARAMETERS, check_actions, check_shown, check_stories};
use crate::stage::{A, Stage};

const CONT: &str = "cont?restype=container";

fn fresh(stage: &Stage, count: usize) -> String {
    let container = format!("cont{count}?restype=container");
    stage.call(&format!("PUT {container}"), &[], "").ok();
    container
}

#[test]
fn every_action_in_every_state() {
    let stage = Stage::new();
    check_actions("lease_container", &stage, |count| fresh(&stage, count));
}

#[test]
fn what_reads_show_of_a_lease() {
    let stage = Stage::new();
    check_shown("lease_container shown", &stage, |count| fresh(&stage, count));
}

#[test]
fn time_moves_leases() {
    let stage = Stage::new();
    check_stories("lease_container in time", &stage, |count| fresh(&stage, count));
}

#[test]
fn bad_parameters_change_nothing() {
    let stage = Stage::new();
    stage.acquire(CONT, A, "-1");
    let before = stage.everything();
    let mut table = Table::new("lease_container parameters");
    for (what, headers, expected) in PARAMETERS {
        table.row(what, stage.lease(CONT, headers).said(), expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
    table.row(
        "no container",
        stage.lease("none?restype=container", &[("x-ms-lease-action", "break")]).said(),
        "404 ContainerNotFound",
    );
}

/// Writing to a container does not make an ended lease available, as writing to a blob does.
#[test]
fn an_expired_lease_can_be_renewed_after_a_write() {
    let stage = Stage::new();
    stage.bring_lease(CONT, "expired");
    stage.call("PUT cont?restype=container&comp=metadata", &[("x-ms-meta-a", "1")], "").ok();
    let renew = [("x-ms-lease-action", "renew"), ("x-ms-lease-id", A)];
    assert_eq!(stage.lease(CONT, &renew).said(), "200");
}

/// Only dates are taken as conditions.
#[test]
fn conditions_are_dates() {
    let stage = Stage::new();
    let date = stage.head(CONT).last_modified();
    stage.acquire(CONT, A, "-1");
    let (earlier, later) = (date_after(&date, -10), date_after(&date, 10));
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("changed since",        &[("if-modified-since", &earlier)], "200"),
        ("not changed since",    &[("if-modified-since", &later)], "412 ConditionNotMet"),
        ("unchanged since",      &[("if-unmodified-since", &later)], "200"),
        ("not unchanged since",  &[("if-unmodified-since", &earlier)], "412 ConditionNotMet"),
        ("both",                 &[("if-unmodified-since", &later), ("if-modified-since", &earlier)], "400 MultipleConditionHeadersNotSupported"),
        ("an ETag",              &[("if-match", "\"0x1\"")], "400 ConditionHeadersNotSupported"),
        ("another ETag",         &[("if-none-match", "\"0x1\"")], "400 ConditionHeadersNotSupported"),
        ("no date",              &[("if-modified-since", "today")], "400 InvalidHeaderValue"),
    ];
    let mut table = Table::new("lease_container conditions");
    for (what, conditions, expected) in rows {
        let headers = [&[("x-ms-lease-action", "renew"), ("x-ms-lease-id", A)], *conditions].concat();
        table.row(what, stage.lease(CONT, &headers).said(), expected);
    }
}
