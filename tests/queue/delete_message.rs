//! Delete Message.

use crate::harness::Table;
use crate::stage::Stage;

#[test]
fn a_deleted_message_never_comes_back() {
    let stage = Stage::new();
    stage.put("a");
    stage.put("b");
    let taken = stage.take(1, 30).remove(0);
    assert_eq!(stage.delete(&taken).said(), "204");
    assert_eq!(stage.delete(&taken).said(), "404 MessageNotFound", "a client that asks again must expect this");
    stage.server.advance(3_600);
    assert_eq!(stage.take(32, 30).len(), 1);
    assert_eq!(stage.count(), 1);
}

#[test]
fn what_is_wrong_with_a_request() {
    let stage = Stage::new();
    let (one, two) = (stage.put("one"), stage.put("two"));
    let mut table = Table::new("delete_message: refusals");
    for (row, line, expected) in [
        ("no receipt", format!("DELETE que/messages/{}", one.id), "400 MissingRequiredQueryParameter"),
        (
            "an empty receipt",
            format!("DELETE que/messages/{}?popreceipt=", one.id),
            "400 MissingRequiredQueryParameter",
        ),
        (
            "no receipt of ours",
            format!("DELETE que/messages/{}?popreceipt=AgAAAAMAAAAAAAAA", one.id),
            "400 InvalidQueryParameterValue",
        ),
        (
            "somebody else's",
            format!("DELETE que/messages/{}?popreceipt={}", one.id, two.receipt),
            "400 PopReceiptMismatch",
        ),
        ("no queue", format!("DELETE {}", one.url().replace("que/", "other/")), "404 QueueNotFound"),
        ("no queue and no receipt", format!("DELETE other/messages/{}", one.id), "400 MissingRequiredQueryParameter"),
        ("two levels too deep", "DELETE que/messages/a/b".to_owned(), "400 InvalidUri"),
    ] {
        table.row(row, stage.call(&line, &[], "").said(), expected);
    }
    let refused = stage.call(&format!("DELETE que/messages/{}?popreceipt=x", one.id), &[], "").xml();
    assert_eq!(refused.text_of("QueryParameterName").as_deref(), Some("popreceipt"));
    assert!(refused.text_of("Reason").is_some());
    assert_eq!(stage.count(), 2);
}
