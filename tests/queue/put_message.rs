//! Put Message.

use crate::harness::{Table, date_after};
use crate::stage::{Stage, body, messages, texts};

#[test]
fn ranges_of_the_parameters() {
    let stage = Stage::new();
    let mut table = Table::new("put_message: ranges");
    for (query, expected) in [
        ("", "201"),
        ("visibilitytimeout=0", "201"),
        ("visibilitytimeout=604799", "201"),
        ("visibilitytimeout=604800", "400 InvalidQueryParameterValue"),
        ("visibilitytimeout=604800&messagettl=-1", "201"),
        ("visibilitytimeout=604801&messagettl=-1", "400 OutOfRangeQueryParameterValue"),
        ("visibilitytimeout=-1", "400 OutOfRangeQueryParameterValue"),
        ("visibilitytimeout=x", "400 InvalidQueryParameterValue"),
        ("messagettl=1", "201"),
        ("messagettl=604801", "201"),
        ("messagettl=-1", "201"),
        ("messagettl=0", "400 InvalidQueryParameterValue"),
        ("messagettl=-2", "400 InvalidQueryParameterValue"),
        ("messagettl=x", "400 InvalidQueryParameterValue"),
        ("messagettl=10&visibilitytimeout=9", "201"),
        ("messagettl=10&visibilitytimeout=10", "400 InvalidQueryParameterValue"),
        ("messagettl=10&visibilitytimeout=11", "400 InvalidQueryParameterValue"),
    ] {
        table.row(query, stage.call(&format!("POST que/messages?{query}"), &[], body("x")).said(), expected);
    }
    let refused = stage.call("POST que/messages?visibilitytimeout=604801", &[], body("x")).xml();
    let detail = |name: &str| refused.text_of(name).unwrap_or_default();
    assert_eq!(detail("QueryParameterName"), "visibilitytimeout");
    assert_eq!((detail("MinimumAllowed"), detail("MaximumAllowed")), ("0".into(), "604800".into()));
}

#[test]
fn the_answer_tells_everything_but_the_text() {
    let stage = Stage::new();
    let put = stage.put_with("hello", "visibilitytimeout=60&messagettl=600");
    assert_eq!((put.dequeued, put.text.as_deref()), (None, None));
    assert_eq!(put.id.len(), 36);
    assert_eq!(put.next_visible, date_after(&put.inserted, 60));
    assert_eq!(put.expires, date_after(&put.inserted, 600));
    assert_eq!(stage.put("week").expires, date_after(&stage.put("week").inserted, 604_800));
    assert_eq!(stage.put_with("endless", "messagettl=-1").expires, "Fri, 31 Dec 9999 23:59:59 GMT");
    // The receipt is good without anybody having taken the message.
    assert_eq!(stage.delete(&put).said(), "204");
    let old = stage.call("POST que/messages", &[("x-ms-version", "2015-12-11")], body("x")).ok();
    assert_eq!((old.status, old.body.len()), (201, 0));
}

#[test]
fn texts_come_back_to_the_byte() {
    let stage = Stage::new();
    let long = "x".repeat(65_536);
    let all = [
        "plain",
        "",
        " spaces  at both ends ",
        "line\nbreak\r\nand\ttab",
        "<xml attr=\"1\">&amp;</xml>",
        "ä€😀\u{feff}",
        "SGVsbG8gV29ybGQ=",
        &long,
    ];
    for text in all {
        stage.put(text);
    }
    assert_eq!(texts(&stage.peek(32)), all);
    assert_eq!(texts(&stage.take(32, 30)), all);
}

#[test]
fn what_is_no_message_is_refused() {
    let stage = Stage::new();
    let mut table = Table::new("put_message: bodies");
    let too_long = body(&"x".repeat(65_537));
    let escaped = body(&"<".repeat(65_536));
    for (row, document, expected) in [
        ("no body", "", "400 MissingRequiredXmlNode"),
        ("no text", "<QueueMessage/>", "400 MissingRequiredXmlNode"),
        ("no XML", "hello", "400 InvalidXmlDocument"),
        ("another root", "<Message><MessageText>x</MessageText></Message>", "400 InvalidXmlDocument"),
        ("markup", "<QueueMessage><MessageText>a<b>c</b></MessageText></QueueMessage>", "400 InvalidXmlDocument"),
        ("too long", &too_long, "413 RequestBodyTooLarge"),
        ("long only because it is escaped", &escaped, "201"),
    ] {
        table.row(row, stage.call("POST que/messages", &[], document).said(), expected);
    }
    let refused = stage.call("POST que/messages", &[], &too_long).xml();
    assert_eq!(refused.text_of("MaxLimit").as_deref(), Some("65536"));
    assert_eq!(stage.call("POST other/messages", &[], body("x")).said(), "404 QueueNotFound");
    // Two faults: what is wrong with the request comes first.
    assert_eq!(stage.call("POST other/messages", &[], "hello").said(), "400 InvalidXmlDocument");
    assert_eq!(stage.call("POST other/messages?messagettl=0", &[], "hello").said(), "400 InvalidQueryParameterValue");
    assert_eq!(stage.count(), 1);
    assert_eq!(messages(stage.call("GET que/messages", &[], "")).len(), 1);
}
