//! Create Queue.

use crate::harness::{Headers, Table};
use crate::stage::Stage;

#[test]
fn the_same_metadata_again_is_no_fault() {
    let stage = Stage::new();
    let mut table = Table::new("create_queue: again");
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("first",              &[("x-ms-meta-a", "1"), ("x-ms-meta-b", "2")], "201"),
        ("the same",           &[("x-ms-meta-a", "1"), ("x-ms-meta-b", "2")], "204"),
        ("in another order",   &[("x-ms-meta-b", "2"), ("x-ms-meta-a", "1")], "204"),
        ("in another case",    &[("x-ms-meta-B", "2"), ("x-ms-meta-A", "1")], "204"),
        ("without",            &[],                                           "409 QueueAlreadyExists"),
        ("one less",           &[("x-ms-meta-a", "1")],                       "409 QueueAlreadyExists"),
        ("another value",      &[("x-ms-meta-a", "1"), ("x-ms-meta-b", "3")], "409 QueueAlreadyExists"),
        ("a name that cannot", &[("x-ms-meta-1a", "1")],                      "400 InvalidMetadata"),
    ];
    for (row, headers, expected) in rows {
        table.row(row, stage.call("PUT other", headers, "").said(), expected);
    }
}

#[test]
fn names() {
    let stage = Stage::new();
    let mut table = Table::new("create_queue: names");
    let longest = "q".repeat(63);
    for (name, expected) in [
        ("abc", "201"),
        ("a-1", "201"),
        ("1-2-3", "201"),
        (&longest, "201"),
        ("ab", "400 OutOfRangeInput"),
        (&format!("{longest}q"), "400 OutOfRangeInput"),
        ("Abc", "400 InvalidResourceName"),
        ("a--b", "400 InvalidResourceName"),
        ("-ab", "400 InvalidResourceName"),
        ("ab-", "400 InvalidResourceName"),
        ("a_b", "400 InvalidResourceName"),
        ("%24logs", "400 InvalidResourceName"),
    ] {
        table.row(name, stage.call(&format!("PUT {name}"), &[], "").said(), expected);
    }
}

#[test]
fn messages_stay_when_the_queue_is_created_again() {
    let stage = Stage::new();
    stage.put("kept");
    assert_eq!(stage.call("PUT que", &[], "").said(), "204");
    assert_eq!(stage.count(), 1);
}
