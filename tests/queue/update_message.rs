//! Update Message, and when a receipt is good.

use crate::harness::{Answer, Table};
use crate::stage::{Message, Stage, body, texts};

fn updated(message: &Message, answer: Answer) -> Message {
    let answer = answer.ok();
    assert_eq!(answer.status, 204);
    let header = |name: &str| answer.header(name).expect("a header").to_owned();
    let (receipt, next_visible) = (header("x-ms-popreceipt"), header("x-ms-time-next-visible"));
    assert!(next_visible.ends_with(" GMT"), "{next_visible}");
    Message { receipt, next_visible, ..message.clone() }
}

#[test]
fn the_text_changes_only_if_there_is_one() {
    let stage = Stage::new();
    stage.put("old");
    let taken = stage.take(1, 60).remove(0);
    let hidden = updated(&taken, stage.update(&taken, 120, None));
    assert_ne!(hidden.receipt, taken.receipt);
    stage.server.advance(61);
    assert_eq!(stage.peek(1).len(), 0, "the time counts from the update on");
    let shown = updated(&hidden, stage.update(&hidden, 0, Some("new & <better>")));
    assert_eq!(texts(&stage.peek(1)), ["new & <better>"]);
    let shown = updated(&shown, stage.update(&shown, 0, Some("")));
    assert_eq!(texts(&stage.peek(1)), [""]);
    let taken = stage.take(1, 60).remove(0);
    assert_eq!((taken.dequeued, &taken.expires), (Some(2), &shown.expires));
}

#[test]
fn only_the_last_receipt_is_good_and_it_does_not_run_out() {
    let stage = Stage::new();
    let put = stage.put("a");
    let first = updated(&put, stage.update(&put, 10, None));
    let mut table = Table::new("update_message: receipts");
    table.row("of the put, after an update", stage.update(&put, 1, None).said(), "404 MessageNotFound");
    table.row("delete with it", stage.delete(&put).said(), "404 MessageNotFound");
    // The time is over, but nobody else was given the message.
    stage.server.advance(3_600);
    let second = updated(&first, stage.update(&first, 10, None));
    stage.server.advance(3_600);
    let taken = stage.take(1, 10).remove(0);
    table.row("after somebody else took it", stage.update(&second, 1, None).said(), "404 MessageNotFound");
    table.row("delete with that", stage.delete(&second).said(), "404 MessageNotFound");
    table.row("the last", stage.delete(&taken).said(), "204");
    table.row("after the end", stage.update(&taken, 1, None).said(), "404 MessageNotFound");
}

#[test]
fn what_is_wrong_with_a_request() {
    let stage = Stage::new();
    let (one, two) = (stage.put_with("one", "messagettl=600"), stage.put("two"));
    let mut table = Table::new("update_message: refusals");
    let good = format!("popreceipt={}", one.receipt);
    let nobody = "01234567-89ab-4def-8000-000000000001";
    let rows: &[(&str, &str, String, &str, &str)] = &[
        ("no receipt", &one.id, "visibilitytimeout=0".into(), "", "400 MissingRequiredQueryParameter"),
        ("no time", &one.id, good.clone(), "", "400 MissingRequiredQueryParameter"),
        (
            "a receipt that is none",
            &one.id,
            "popreceipt=abc&visibilitytimeout=0".into(),
            "",
            "400 InvalidQueryParameterValue",
        ),
        ("somebody else's receipt", &two.id, format!("{good}&visibilitytimeout=0"), "", "400 PopReceiptMismatch"),
        ("no such message", nobody, format!("{good}&visibilitytimeout=0"), "", "400 PopReceiptMismatch"),
        ("no id", "nobody", format!("{good}&visibilitytimeout=0"), "", "404 MessageNotFound"),
        ("a negative time", &one.id, format!("{good}&visibilitytimeout=-1"), "", "400 OutOfRangeQueryParameterValue"),
        (
            "more than a week",
            &one.id,
            format!("{good}&visibilitytimeout=604801"),
            "",
            "400 OutOfRangeQueryParameterValue",
        ),
        ("beyond its end", &one.id, format!("{good}&visibilitytimeout=601"), "", "400 OutOfRangeQueryParameterValue"),
        ("no XML", &one.id, format!("{good}&visibilitytimeout=0"), "text", "400 InvalidXmlDocument"),
        (
            "bad receipt and no XML",
            &one.id,
            "popreceipt=abc&visibilitytimeout=0".into(),
            "text",
            "400 InvalidQueryParameterValue",
        ),
    ];
    for (row, id, query, document, expected) in rows {
        let line = format!("PUT que/messages/{id}?{query}");
        table.row(row, stage.call(&line, &[], document).said(), expected);
    }
    let too_long = body(&"x".repeat(65_537));
    let line = format!("PUT {}&visibilitytimeout=0", one.url());
    table.row("too long", stage.call(&line, &[], too_long).said(), "413 RequestBodyTooLarge");
    let elsewhere = line.replace("que/", "other/");
    table.row("no queue", stage.call(&elsewhere, &[], "").said(), "404 QueueNotFound");
    // None of them has changed anything.
    assert_eq!(texts(&stage.peek(32)), ["one", "two"]);
    table.row("right", stage.update(&one, 590, None).said(), "204");
    table.row(
        "right, hidden for a week",
        stage.update(&stage.put_with("x", "messagettl=-1"), 604_800, None).said(),
        "204",
    );
}
