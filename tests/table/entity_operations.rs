//! The seven operations on entities: which of them answer an ETag, which of them ask for one, alone and in a transaction.

use crate::harness::{Headers, Table};
use crate::stage::{ANY, STALE, Stage};

const ENTITY: &str = "tab(PartitionKey='p',RowKey='r')";
const BODY: &str = r#"{"b":2}"#;
const WHOLE: &str = r#"{"PartitionKey":"p","RowKey":"r","b":2}"#;

/// What If-Match says.
#[derive(Clone, Copy, Debug)]
enum Given {
    Nothing,
    Stale,
    Right,
    Any,
}
use Given::{Any, Nothing, Right, Stale};

/// Operation, whether the entity is there, what If-Match says, the answer, whether it has an ETag, and the properties that
/// the entity has afterwards; `None`: it is not there.
type Row = (&'static str, bool, Given, &'static str, bool, Option<&'static str>);

const TABLE: &[Row] = &[
    ("QueryEntities", true, Nothing, "200", true, Some("a=1")),
    ("QueryEntities", false, Nothing, "404 ResourceNotFound", false, None),
    ("InsertEntity", true, Nothing, "409 EntityAlreadyExists", false, Some("a=1")),
    ("InsertEntity", false, Nothing, "201", true, Some("b=2")),
    ("UpdateEntity", true, Stale, "412 UpdateConditionNotSatisfied", false, Some("a=1")),
    ("UpdateEntity", true, Right, "204", true, Some("b=2")),
    ("UpdateEntity", true, Any, "204", true, Some("b=2")),
    ("UpdateEntity", false, Stale, "404 ResourceNotFound", false, None),
    ("UpdateEntity", false, Any, "404 ResourceNotFound", false, None),
    ("MergeEntity", true, Stale, "412 UpdateConditionNotSatisfied", false, Some("a=1")),
    ("MergeEntity", true, Right, "204", true, Some("a=1 b=2")),
    ("MergeEntity", true, Any, "204", true, Some("a=1 b=2")),
    ("MergeEntity", false, Stale, "404 ResourceNotFound", false, None),
    ("MergeEntity", false, Any, "404 ResourceNotFound", false, None),
    ("DeleteEntity", true, Nothing, "400 MissingRequiredHeader", false, Some("a=1")),
    ("DeleteEntity", true, Stale, "412 UpdateConditionNotSatisfied", false, Some("a=1")),
    ("DeleteEntity", true, Right, "204", false, None),
    ("DeleteEntity", true, Any, "204", false, None),
    ("DeleteEntity", false, Stale, "404 ResourceNotFound", false, None),
    ("DeleteEntity", false, Any, "404 ResourceNotFound", false, None),
    // Without If-Match an update and a merge are upserts.
    ("InsertOrReplaceEntity", true, Nothing, "204", true, Some("b=2")),
    ("InsertOrReplaceEntity", false, Nothing, "204", true, Some("b=2")),
    ("InsertOrMergeEntity", true, Nothing, "204", true, Some("a=1 b=2")),
    ("InsertOrMergeEntity", false, Nothing, "204", true, Some("b=2")),
];

fn request(operation: &str) -> (String, &'static str) {
    let verb = match operation {
        "QueryEntities" => "GET",
        "InsertEntity" => return ("POST tab".into(), WHOLE),
        "UpdateEntity" | "InsertOrReplaceEntity" => "PUT",
        "MergeEntity" | "InsertOrMergeEntity" => "MERGE",
        _ => "DELETE",
    };
    (format!("{verb} {ENTITY}"), if matches!(verb, "GET" | "DELETE") { "" } else { BODY })
}

/// The custom properties of the entity.
fn held(stage: &Stage) -> Option<String> {
    let found = stage.get(ENTITY);
    if found.status == 404 {
        return None;
    }
    let shown = found.ok().json();
    let own = ["a", "b"].into_iter().filter(|name| !shown[name].is_null());
    Some(own.map(|name| format!("{name}={}", shown[name])).collect::<Vec<_>>().join(" "))
}

/// Runs all rows; `send` gives back what was said, and the ETag.
fn run(title: &'static str, send: impl Fn(&Stage, &str, Headers<'_>, &str) -> (String, Option<String>)) {
    let stage = Stage::new();
    let mut table = Table::new(title);
    for (operation, is_there, given, expected, has_etag, after) in TABLE {
        let _ = stage.call(&format!("DELETE {ENTITY}"), &[ANY], "");
        let right = if *is_there { stage.insert("p", "r", ",\"a\":1").etag() } else { String::new() };
        let headers: &[(&str, &str)] = match given {
            Nothing => &[],
            Stale => &[STALE],
            Right => &[("if-match", &right)],
            Any => &[ANY],
        };
        let (line, body) = request(operation);
        let (said, etag) = send(&stage, &line, headers, body);
        let row = format!("{operation}, {given:?}, {}", if *is_there { "there" } else { "not there" });
        table.row(format!("{row}: answer"), &said, expected);
        table.row(format!("{row}: has an ETag"), etag.is_some(), has_etag);
        table.row(format!("{row}: after"), held(&stage).unwrap_or_default(), after.unwrap_or_default());
        if let (Some(etag), Some(_)) = (etag, after) {
            table.row(format!("{row}: the ETag is that of the entity"), etag, stage.get(ENTITY).etag());
        }
        if said.starts_with("204") && *is_there && *operation != "DeleteEntity" {
            table.row(format!("{row}: a write changes the ETag"), stage.get(ENTITY).etag() != right, true);
        }
    }
}

#[test]
fn alone() {
    run("the seven operations, alone", |stage, line, headers, body| {
        let answer = stage.call(line, headers, body);
        (answer.said(), answer.header("etag").map(str::to_owned))
    });
}

#[test]
fn in_a_transaction() {
    run("the seven operations, in a transaction", |stage, line, headers, body| {
        if line.starts_with("GET") {
            let body = format!(
                "--batch_x\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 GET http://h/devstoreaccount1/{ENTITY} HTTP/1.1\r\n\r\n--batch_x--\r\n"
            );
            let answer = stage.call("POST $batch", &crate::stage::BATCH, body);
            let part = crate::stage::parts(&answer).pop().expect("a part");
            return (part.said(), part.header("etag").map(str::to_owned));
        }
        let part = stage.transact(&[(line, headers, body)]).pop().expect("a part");
        (part.said(), part.header("etag").map(str::to_owned))
    });
}

#[test]
fn conditions_that_are_none() {
    let stage = Stage::new();
    let etag = stage.insert("p", "r", "").etag();
    let mut table = Table::new("conditions that are none");
    for (name, value, expected) in [
        ("if-match", "", "412 UpdateConditionNotSatisfied"),
        ("if-match", "\"0x8D\"", "400 InvalidInput"),
        ("if-match", "mine", "400 InvalidInput"),
        ("if-match", "W/\"mine\"", "412 UpdateConditionNotSatisfied"),
        ("if-none-match", "*", "400 InvalidInput"),
        ("if-none-match", etag.as_str(), "400 InvalidInput"),
    ] {
        for verb in ["PUT", "MERGE", "PATCH", "DELETE"] {
            let line = format!("{verb} {ENTITY}");
            let body = if verb == "DELETE" { "" } else { BODY };
            let answer = stage.call(&line, &[(name, value)], body);
            table.row(format!("{verb} {name}: {value}"), answer.said(), expected);
        }
    }
    for verb in ["PUT", "MERGE", "PATCH", "DELETE"] {
        let body = if verb == "DELETE" { "" } else { BODY };
        let both = [("if-match", etag.as_str()), ("if-none-match", "*")];
        let answer = stage.call(&format!("{verb} {ENTITY}"), &both, body);
        table.row(format!("{verb} with both"), answer.said(), "400 InvalidInput");
        // Two faults: a condition that is none comes before that there is nothing to hold it against.
        let line = format!("{verb} tab(PartitionKey='p',RowKey='x')");
        let answer = stage.call(&line, &[("if-match", "mine")], body);
        table.row(format!("{verb} of nothing"), answer.said(), "400 InvalidInput");
    }
    assert_eq!(stage.get(ENTITY).etag(), etag, "nothing was changed");
}

#[test]
fn patch_is_merge() {
    let stage = Stage::new();
    let etag = stage.insert("p", "r", ",\"a\":1").etag();
    let line = format!("PATCH {ENTITY}");
    assert_eq!(stage.call(&line, &[("if-match", &etag)], BODY).said(), "204");
    assert_eq!(held(&stage).as_deref(), Some("a=1 b=2"));
    assert_eq!(stage.call(&line, &[("if-match", &etag)], BODY).said(), "412 UpdateConditionNotSatisfied");
    assert_eq!(stage.call(&line, &[], r#"{"a":3}"#).said(), "204");
    assert_eq!(held(&stage).as_deref(), Some("a=3 b=2"));
    let made = stage.transact(&[("PATCH tab(PartitionKey='p',RowKey='new')", &[], BODY)]);
    assert_eq!(made[0].said(), "204");
}

#[test]
fn an_etag_never_returns() {
    let stage = Stage::new();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..50 {
        assert!(seen.insert(stage.insert("p", "r", "").etag()));
        for _ in 0..3 {
            assert!(seen.insert(stage.call(&format!("PUT {ENTITY}"), &[], BODY).ok().etag()));
        }
        stage.call(&format!("DELETE {ENTITY}"), &[ANY], "").ok();
    }
}
