//! Get Messages: what comes back when, and for how long it is hidden.

use crate::harness::{Table, date_after};
use crate::stage::{Stage, texts};

#[test]
fn ranges_of_the_parameters() {
    let stage = Stage::new();
    let mut table = Table::new("get_messages: ranges");
    for (query, expected) in [
        ("", "200"),
        ("numofmessages=1", "200"),
        ("numofmessages=32", "200"),
        ("numofmessages=0", "400 OutOfRangeQueryParameterValue"),
        ("numofmessages=33", "400 OutOfRangeQueryParameterValue"),
        ("numofmessages=x", "400 InvalidQueryParameterValue"),
        ("visibilitytimeout=1", "200"),
        ("visibilitytimeout=604800", "200"),
        ("visibilitytimeout=0", "400 OutOfRangeQueryParameterValue"),
        ("visibilitytimeout=604801", "400 OutOfRangeQueryParameterValue"),
        ("peekonly=maybe", "400 InvalidQueryParameterValue"),
    ] {
        table.row(query, stage.call(&format!("GET que/messages?{query}"), &[], "").said(), expected);
    }
    let refused = stage.call("GET que/messages?numofmessages=33", &[], "").xml();
    let detail = |name: &str| refused.text_of(name).unwrap_or_default();
    assert_eq!(detail("QueryParameterName"), "numofmessages");
    assert_eq!((detail("MinimumAllowed"), detail("MaximumAllowed")), ("1".into(), "32".into()));
    assert_eq!(stage.call("GET other/messages", &[], "").said(), "404 QueueNotFound");
    assert_eq!(stage.call("GET other/messages?numofmessages=0", &[], "").said(), "400 OutOfRangeQueryParameterValue");
    let empty = stage.call("GET que/messages", &[], "").ok();
    assert!(String::from_utf8_lossy(&empty.body).ends_with("<QueueMessagesList />"));
}

#[test]
fn in_their_order_and_each_once() {
    let stage = Stage::new();
    for n in 0..40 {
        stage.put(&n.to_string());
    }
    let first = stage.take(1, 60);
    assert_eq!((texts(&first), first[0].dequeued), (vec!["0"], Some(1)));
    assert_eq!(texts(&stage.take(32, 60)), (1..33).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(stage.take(32, 60).len(), 7);
    assert_eq!(stage.take(32, 60).len(), 0);
}

#[test]
fn what_is_not_deleted_comes_back() {
    let stage = Stage::new();
    let put = stage.put("a");
    for round in 1..=3 {
        let taken = stage.take(32, 20).remove(0);
        assert_eq!((taken.dequeued, taken.text.as_deref()), (Some(round), Some("a")));
        assert_eq!((&taken.id, &taken.inserted, &taken.expires), (&put.id, &put.inserted, &put.expires));
        assert_ne!(taken.receipt, put.receipt);
        stage.server.advance(18);
        assert_eq!(stage.take(32, 20).len(), 0, "it is still hidden");
        stage.server.advance(3);
    }
    // Half a minute unless told otherwise.
    let taken = crate::stage::messages(stage.call("GET que/messages", &[], "")).remove(0);
    assert!(taken.next_visible >= date_after(&taken.inserted, 30), "{taken:?}");
    stage.server.advance(28);
    assert_eq!(stage.peek(1).len(), 0);
    stage.server.advance(3);
    assert_eq!(stage.peek(1).len(), 1);
}

#[test]
fn delayed_messages_wait_for_their_time() {
    let stage = Stage::new();
    stage.put_with("late", "visibilitytimeout=200");
    stage.put_with("soon", "visibilitytimeout=100");
    stage.put("now");
    assert_eq!(texts(&stage.take(32, 604_800)), ["now"]);
    stage.server.advance(200);
    assert_eq!(texts(&stage.take(32, 60)), ["soon", "late"]);
}

#[test]
fn what_has_expired_is_gone_hidden_or_not() {
    let stage = Stage::new();
    stage.put_with("seen", "messagettl=60");
    let hidden = stage.put_with("hidden", "messagettl=60&visibilitytimeout=59");
    let taken = stage.take(1, 604_800).remove(0);
    stage.put("lives");
    assert_eq!(stage.count(), 3);
    stage.server.advance(60);
    for message in [&hidden, &taken] {
        assert_eq!(stage.delete(message).said(), "404 MessageNotFound");
        assert_eq!(stage.update(message, 0, None).said(), "404 MessageNotFound");
    }
    assert_eq!(texts(&stage.peek(32)), ["lives"]);
    assert_eq!(texts(&stage.take(32, 1)), ["lives"]);
    assert_eq!(stage.count(), 1);
    stage.server.advance(604_800);
    assert_eq!((stage.count(), stage.take(32, 1).len()), (0, 0));
}

#[test]
fn nothing_is_lost_by_a_kill_and_what_was_hidden_stays_hidden() {
    let mut stage = Stage::new();
    for n in 0..10 {
        stage.put(&n.to_string());
    }
    let taken = stage.take(3, 600);
    stage.delete(&taken[0]).ok();
    stage.server.kill_and_restart();
    stage.client = stage.server.client();
    assert_eq!(stage.count(), 9);
    assert_eq!(texts(&stage.take(32, 600)), ["3", "4", "5", "6", "7", "8", "9"]);
    assert_eq!(stage.delete(&taken[0]).said(), "404 MessageNotFound");
    assert_eq!(stage.delete(&taken[1]).said(), "204");
    stage.server.advance(600);
    assert_eq!(stage.take(32, 1).len(), 8);
}
