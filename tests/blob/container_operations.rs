//! The operations on containers side by side: what each answers, which conditions it takes, and what a lease means to it.

use crate::harness::{Answer, Headers, Table, date_after};
use crate::stage::{A, B, LEASE_STATES, Stage};

struct Operation {
    name: &'static str,
    line: &'static str,
    headers: Headers<'static>,
    done: &'static str,
}

/// How each operation is asked for; `{}` is the container.
#[rustfmt::skip]
const OPERATIONS: &[Operation] = &[
    Operation { name: "Create Container",         line: "PUT {}?restype=container",               headers: &[], done: "201" },
    Operation { name: "Get Container Properties", line: "GET {}?restype=container",               headers: &[], done: "200" },
    Operation { name: "Get Container Metadata",   line: "GET {}?restype=container&comp=metadata", headers: &[], done: "200" },
    Operation { name: "Set Container Metadata",   line: "PUT {}?restype=container&comp=metadata", headers: &[("x-ms-meta-a", "1")], done: "200" },
    Operation { name: "Get Container ACL",        line: "GET {}?restype=container&comp=acl",      headers: &[], done: "200" },
    Operation { name: "Set Container ACL",        line: "PUT {}?restype=container&comp=acl",      headers: &[], done: "200" },
    Operation { name: "Delete Container",         line: "DELETE {}?restype=container",            headers: &[], done: "202" },
    Operation { name: "Lease Container",          line: "PUT {}?restype=container&comp=lease",    headers: ACQUIRE, done: "201" },
    Operation { name: "List Blobs",               line: "GET {}?restype=container&comp=list",     headers: &[], done: "200" },
];

const ACQUIRE: Headers<'static> =
    &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", A)];

fn named(name: &str) -> &'static Operation {
    OPERATIONS.iter().find(|operation| operation.name == name).expect("an operation")
}

impl Operation {
    fn ask(&self, stage: &Stage, container: &str, more: Headers<'_>) -> Answer {
        stage.call(&self.line.replace("{}", container), &[self.headers, more].concat(), "")
    }
}

/// A new container. Create Container needs a name that is free.
fn fresh(stage: &Stage, name: &str, count: usize) -> String {
    let container = format!("{}-{count}", name.to_lowercase().replace(' ', "-"));
    if name != "Create Container" {
        stage.call(&format!("PUT {container}?restype=container"), &[], "").ok();
    }
    container
}

fn target(container: &str) -> String {
    format!("{container}?restype=container")
}

/// Which answers tell the ETag and Last-Modified, and what becomes of them.
#[rustfmt::skip]
const ETAGS: &[(&str, bool, &str)] = &[
    // operation                  told   after
    ("Create Container",          true,  "new"),
    ("Get Container Properties",  true,  "same"),
    ("Get Container Metadata",    true,  "same"),
    ("Set Container Metadata",    true,  "new"),
    ("Get Container ACL",         true,  "same"),
    ("Set Container ACL",         true,  "new"),
    ("Delete Container",          false, "gone"),
    ("Lease Container",           true,  "same"),
    ("List Blobs",                false, "same"),
];

#[test]
fn which_answers_tell_the_etag_and_which_operations_change_it() {
    let stage = Stage::new();
    let mut table = Table::new("container operations: ETag");
    for (name, told, expected) in ETAGS {
        let container = fresh(&stage, name, 0);
        let before = stage.head(&target(&container));
        stage.server.advance(2);
        let answer = named(name).ask(&stage, &container, &[]);
        table.row(format!("{name}: answer"), answer.said(), named(name).done);
        table.row(format!("{name}: ETag told"), answer.header("etag").is_some(), told);
        table.row(format!("{name}: Last-Modified told"), answer.header("last-modified").is_some(), told);
        let after = stage.head(&target(&container));
        let change = |header| match (before.header(header), after.header(header)) {
            (_, None) => "gone",
            (before, after) if before == after => "same",
            _ => "new",
        };
        table.row(format!("{name}: ETag after"), change("etag"), expected);
        table.row(format!("{name}: Last-Modified after"), change("last-modified"), expected);
        if *told {
            table.row(format!("{name}: the one of now"), answer.etag(), after.etag());
        }
    }
}

const UNMET: &str = "412 ConditionNotMet";
const REFUSED: &str = "400 ConditionHeadersNotSupported";

/// Which conditions each operation takes: what it answers when the one condition that is sent does not hold. Reads of
/// containers take none and pass over them; a write that cannot judge a condition refuses it, lest it destroy what the
/// client meant to protect.
#[rustfmt::skip]
const CONDITIONS: &[(&str, [&str; 4])] = &[
    // operation                  If-Match  If-None-Match  If-Modified-Since  If-Unmodified-Since
    ("Get Container Properties", ["200",    "200",         "200",             "200"]),
    ("Get Container Metadata",   ["200",    "200",         "200",             "200"]),
    ("Set Container Metadata",   [REFUSED,  REFUSED,       UNMET,             REFUSED]),
    ("Get Container ACL",        ["200",    "200",         "200",             "200"]),
    ("Set Container ACL",        [REFUSED,  REFUSED,       UNMET,             UNMET]),
    ("Delete Container",         [REFUSED,  REFUSED,       UNMET,             UNMET]),
    ("Lease Container",          [REFUSED,  REFUSED,       UNMET,             UNMET]),
    ("List Blobs",               ["200",    "200",         "200",             "200"]),
];

#[test]
fn which_conditions_are_taken() {
    let stage = Stage::new();
    let mut table = Table::new("container operations: conditions");
    for (name, expected) in CONDITIONS {
        let container = fresh(&stage, name, 0);
        let before = stage.head(&target(&container));
        let (etag, date) = (before.etag(), before.last_modified());
        let earlier = date_after(&date, -1);
        let unmet = [
            ("if-match", "\"0x8D0000000000000\""),
            ("if-none-match", &*etag),
            ("if-modified-since", &*date),
            ("if-unmodified-since", &*earlier),
        ];
        for (condition, expected) in unmet.iter().zip(expected) {
            let answer = named(name).ask(&stage, &container, &[*condition]);
            table.row(format!("{name}, {} unmet", condition.0), answer.said(), expected);
            let after = stage.head(&target(&container));
            table.row(
                format!("{name}, {} unmet: ETag after", condition.0),
                format!("{:?}", after.header("etag")),
                format!("{:?}", Some(&etag)),
            );
        }
        for (count, (condition, expected)) in
            ["if-modified-since", "if-unmodified-since"].iter().zip(&expected[2..]).enumerate()
        {
            let container = fresh(&stage, name, count + 1);
            let date = stage.head(&target(&container)).last_modified();
            let date = if *condition == "if-modified-since" { date_after(&date, -1) } else { date };
            let expected = if *expected == REFUSED { REFUSED } else { named(name).done };
            let answer = named(name).ask(&stage, &container, &[(condition, &date)]);
            table.row(format!("{name}, {condition} met"), answer.said(), expected);
        }
    }
}

const MISSING_ID: &str = "412 LeaseIdMissing";
const OTHER_ID: &str = "412 LeaseIdMismatchWithContainerOperation";
const LOST: &str = "412 LeaseLost";
const ABSENT: &str = "412 LeaseNotPresentWithContainerOperation";

/// What each operation answers to a lease id: on a leased container none, the right one and a wrong one; on one whose
/// lease has expired the id it had. Only Delete needs one. List Blobs does not take one.
#[rustfmt::skip]
const LEASE_IDS: &[(&str, [&str; 4])] = &[
    // operation                  none        right  wrong     expired
    ("Get Container Properties", ["200",      "200", OTHER_ID, LOST]),
    ("Get Container Metadata",   ["200",      "200", OTHER_ID, LOST]),
    ("Set Container Metadata",   ["200",      "200", OTHER_ID, LOST]),
    ("Get Container ACL",        ["200",      "200", OTHER_ID, LOST]),
    ("Set Container ACL",        ["200",      "200", OTHER_ID, LOST]),
    ("Delete Container",         [MISSING_ID, "202", OTHER_ID, LOST]),
    ("List Blobs",               ["200",      "200", "200",    "200"]),
];

#[test]
fn what_a_lease_id_means_to_each_operation() {
    let stage = Stage::new();
    let mut table = Table::new("container operations: lease ids");
    let cases: [(&str, &str, Headers<'_>); 4] = [
        ("none", "leased", &[]),
        ("right", "leased", &[("x-ms-lease-id", A)]),
        ("wrong", "leased", &[("x-ms-lease-id", B)]),
        ("expired", "expired", &[("x-ms-lease-id", A)]),
    ];
    for (name, expected) in LEASE_IDS {
        for (count, ((case, state, id), expected)) in cases.iter().zip(expected).enumerate() {
            let container = fresh(&stage, name, count);
            stage.bring_lease(&target(&container), state);
            table.row(format!("{name}, {case}"), named(name).ask(&stage, &container, id).said(), expected);
        }
    }
}

/// Every state: A is or was the holder's id. "Others" are the reads, Set Container Metadata and Set Container ACL.
#[rustfmt::skip]
const RULES: &[(&str, &str, [&str; 5])] = &[
    //                  available  leased      breaking    broken  expired
    ("delete", "none", ["ok",      MISSING_ID, MISSING_ID, "ok",   "ok"]),
    ("delete", "A",    [ABSENT,    "ok",       "ok",       LOST,   LOST]),
    ("delete", "B",    [ABSENT,    OTHER_ID,   OTHER_ID,   LOST,   LOST]),
    ("others", "none", ["ok",      "ok",       "ok",       "ok",   "ok"]),
    ("others", "A",    [ABSENT,    "ok",       "ok",       LOST,   LOST]),
    ("others", "B",    [ABSENT,    OTHER_ID,   OTHER_ID,   LOST,   LOST]),
];

#[rustfmt::skip]
const RULE_OF: &[(&str, &str)] = &[
    ("Get Container Properties", "others"),
    ("Get Container Metadata",   "others"),
    ("Set Container Metadata",   "others"),
    ("Get Container ACL",        "others"),
    ("Set Container ACL",        "others"),
    ("Delete Container",         "delete"),
];

#[test]
fn every_operation_in_every_lease_state() {
    let stage = Stage::new();
    let mut table = Table::new("container operations: lease states");
    let mut count = 0;
    for (name, rule) in RULE_OF {
        for (_, id, expected) in RULES.iter().filter(|(known, ..)| known == rule) {
            for (before, expected) in LEASE_STATES.iter().zip(expected) {
                count += 1;
                let container = fresh(&stage, name, count);
                stage.bring_lease(&target(&container), before);
                let headers: Headers<'_> = match *id {
                    "A" => &[("x-ms-lease-id", A)],
                    "B" => &[("x-ms-lease-id", B)],
                    _ => &[],
                };
                let row = format!("{name}, {before}, {id}");
                let expected = if *expected == "ok" { named(name).done } else { expected };
                table.row(&row, named(name).ask(&stage, &container, headers).said(), expected);
                let after = stage.head(&target(&container));
                let is_deleted = *name == "Delete Container" && expected == "202";
                let expected = if is_deleted { "gone" } else { before };
                let state = after.header("x-ms-lease-state").unwrap_or("gone");
                table.row(format!("{row}: state after"), state, expected);
            }
        }
    }
}

/// A lease on a container keeps it from being deleted and nothing else: what is in it does not care.
#[test]
fn blobs_do_not_care_for_the_lease_of_their_container() {
    let stage = Stage::new();
    stage.bring_lease("cont?restype=container", "leased");
    for operation in crate::blob_operations::OPERATIONS {
        operation.put(&stage, "cont/blob", "old");
        assert_eq!(operation.ask(&stage, "cont/blob", &[]).said(), operation.done, "{}", operation.name);
        stage.call("DELETE cont/blob", &[("x-ms-delete-snapshots", "include")], "");
        stage.lease("cont/blob", &[("x-ms-lease-action", "release"), ("x-ms-lease-id", A)]);
        stage.call("DELETE cont/blob", &[("x-ms-delete-snapshots", "include")], "");
    }
}

#[test]
fn no_container() {
    let stage = Stage::new();
    let mut table = Table::new("container operations: no container");
    for operation in &OPERATIONS[1..] {
        let said = operation.ask(&stage, "none", &[]).said();
        table.row(operation.name, said, "404 ContainerNotFound");
        // A lease id for something that is not there does not change that.
        if operation.name != "Lease Container" {
            let said = operation.ask(&stage, "none", &[("x-ms-lease-id", A)]).said();
            table.row(format!("{}, lease id", operation.name), said, "404 ContainerNotFound");
            let said = operation.ask(&stage, "cont", &[("x-ms-lease-id", "me")]).said();
            let expected = if operation.name == "List Blobs" { "200" } else { "400 InvalidHeaderValue" };
            table.row(format!("{}, no GUID", operation.name), said, expected);
        }
    }
}
