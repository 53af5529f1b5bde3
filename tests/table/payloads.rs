//! What goes in and comes out: media types, metadata, preferences, and how much of everything there may be.

use crate::harness::{Answer, Table};
use crate::stage::{ANY, Stage};

const ENTITY: &str = "tab(PartitionKey='p',RowKey='r')";

fn kind(answer: &Answer) -> &str {
    answer.header("content-type").unwrap_or_default()
}

/// The names of the members of a JSON object, in their order.
fn members(shown: &str) -> Vec<String> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(shown).expect("an object");
    let mut names: Vec<String> = object.keys().cloned().collect();
    names.sort_by_key(|name| shown.find(&format!("\"{name}\":")));
    names
}

#[test]
fn how_much_is_told_about_an_entity() {
    let stage = Stage::new();
    let more = ",\"s\":\"x\",\"l@odata.type\":\"Edm.Int64\",\"l\":\"1\"";
    stage.insert("p", "r", more);
    let keys = ["PartitionKey", "RowKey"];
    let values = ["s", "l@odata.type", "l"];
    let rows: [(&str, Vec<&str>); 3] = [
        ("nometadata", [&keys[..], &["Timestamp", "s", "l"]].concat()),
        ("minimalmetadata", [&["odata.metadata", "odata.etag"], &keys[..], &["Timestamp"], &values].concat()),
        (
            "fullmetadata",
            [
                &["odata.metadata", "odata.type", "odata.id", "odata.etag", "odata.editLink"],
                &keys[..],
                &["Timestamp@odata.type", "Timestamp"],
                &values,
            ]
            .concat(),
        ),
    ];
    let endpoint = stage.client.url("");
    for (level, expected) in rows {
        let wanted = format!("application/json;odata={level}");
        let told = format!("{wanted};streaming=true;charset=utf-8");
        let one = stage.call(&format!("GET {ENTITY}"), &[("accept", &wanted)], "").ok();
        assert_eq!(kind(&one), told);
        for (name, value) in
            [("x-content-type-options", "nosniff"), ("cache-control", "no-cache"), ("dataserviceversion", "3.0;")]
        {
            assert_eq!(one.header(name), Some(value), "{name}");
        }
        assert_eq!(members(&String::from_utf8_lossy(&one.body)), expected, "{level}");
        let page = stage.call("GET tab()", &[("accept", &wanted)], "").ok().json();
        let context = (level != "nometadata").then(|| format!("{endpoint}$metadata#tab"));
        assert_eq!(page["odata.metadata"].as_str(), context.as_deref(), "{level}");
        // Among others an entity does not say again where they are all described.
        let among = page["value"][0].as_object().expect("an object");
        assert_eq!(among.len(), expected.iter().filter(|name| **name != "odata.metadata").count(), "{level}");
        let tables = stage.call("GET Tables", &[("accept", &wanted)], "").ok();
        assert_eq!(kind(&tables), told);
        let tables = tables.json();
        let context = (level != "nometadata").then(|| format!("{endpoint}$metadata#Tables"));
        assert_eq!(tables["odata.metadata"].as_str(), context.as_deref(), "{level}");
        assert_eq!(tables["value"][0]["odata.type"].is_string(), level == "fullmetadata");
        let table = stage.call("GET Tables('tab')", &[("accept", &wanted)], "").ok().json();
        assert_eq!(table["TableName"].as_str(), Some("tab"));
    }
    let full = stage.call(&format!("GET {ENTITY}"), &[("accept", "application/json;odata=fullmetadata")], "").json();
    assert_eq!(full["odata.metadata"].as_str(), Some(format!("{endpoint}$metadata#tab/@Element").as_str()));
    assert_eq!(full["odata.type"].as_str(), Some("devstoreaccount1.tab"));
    assert_eq!(full["odata.id"].as_str(), Some(format!("{endpoint}{ENTITY}").as_str()));
    assert_eq!(full["odata.editLink"].as_str(), Some(ENTITY));
}

#[test]
fn which_forms_are_spoken() {
    let stage = Stage::new();
    stage.insert("p", "r", "");
    let mut table = Table::new("which forms are spoken");
    for (accept, query, expected) in [
        ("application/json", "", "minimalmetadata"),
        ("*/*", "", "minimalmetadata"),
        ("application/atom+xml,application/json;odata=nometadata", "", "nometadata"),
        ("application/json;odata=nometadata", "?$format=application/json;odata%3Dfullmetadata", "fullmetadata"),
        ("application/atom+xml", "", "415 AtomFormatNotSupported"),
        ("text/html", "", "415 MediaTypeNotSupported"),
        ("application/json;odata=verbose", "", "415 MediaTypeNotSupported"),
        ("*/*", "?$format=atom", "415 MediaTypeNotSupported"),
    ] {
        let answer = stage.call(&format!("GET {ENTITY}{query}"), &[("accept", accept)], "");
        let level = kind(&answer).split("odata=").nth(1).and_then(|rest| rest.split(';').next()).map(str::to_owned);
        let got = if answer.is_success() { level.expect("a level") } else { answer.said() };
        table.row(format!("{accept} {query}"), got, expected);
    }
    // Two faults: that the form is not spoken comes before that the entity is not there.
    let answer = stage.call("GET tab(PartitionKey='p',RowKey='x')", &[("accept", "application/atom+xml")], "");
    table.row("Atom of an entity that is not there", answer.said(), "415 AtomFormatNotSupported");
}

#[test]
fn what_a_client_prefers() {
    let stage = Stage::new();
    let mut table = Table::new("what a client prefers");
    for (turn, (prefer, status, applied, version)) in [
        (None, 201, None, "3.0;"),
        (Some("return-content"), 201, Some("return-content"), "3.0;"),
        (Some("return-no-content"), 204, Some("return-no-content"), "3.0;"),
        (Some("respond-async"), 201, None, "3.0;"),
    ]
    .into_iter()
    .enumerate()
    {
        let headers: Vec<(&str, &str)> = prefer.iter().map(|value| ("prefer", *value)).collect();
        let entity = format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{turn}\"}}");
        let name = format!("{{\"TableName\":\"tab{turn}\"}}");
        for (line, body) in [("POST tab", entity), ("POST Tables", name)] {
            let answer = stage.call(line, &headers, body);
            let row = format!("{line} {prefer:?}");
            table.row(format!("{row}: status"), answer.status, status);
            table.row(
                format!("{row}: applied"),
                format!("{:?}", answer.header("preference-applied")),
                format!("{applied:?}"),
            );
            table.row(format!("{row}: version"), answer.header("dataserviceversion").unwrap_or_default(), version);
            table.row(format!("{row}: location"), answer.header("location").is_some(), true);
            table.row(format!("{row}: shown"), !answer.body.is_empty(), status == 201);
        }
    }
    let put = stage.call(&format!("PUT {ENTITY}"), &[("prefer", "return-content")], "{}");
    table.row("PUT: version", put.header("dataserviceversion").unwrap_or_default(), "1.0;");
    table.row("PUT: applied", put.header("preference-applied").is_some(), false);
}

#[test]
fn what_a_body_says_too_much_is_passed_over() {
    let stage = Stage::new();
    stage.insert("p", "r", ",\"a\":1,\"b\":2");
    let before = stage.get(ENTITY).ok().json();
    // What is null counts as not sent: a merge cannot remove a property.
    let body = r#"{"odata.etag":"W/\"mine\"","odata.type":"x.y","Timestamp":"1999-01-01T00:00:00Z","a":null,"c":3,
        "PartitionKey":"p","RowKey":"r"}"#;
    stage.call(&format!("MERGE {ENTITY}"), &[ANY], body).ok();
    let merged = stage.get(ENTITY).ok().json();
    assert_eq!((merged["a"].as_i64(), merged["b"].as_i64(), merged["c"].as_i64()), (Some(1), Some(2), Some(3)));
    assert!(merged["Timestamp"].as_str() > before["Timestamp"].as_str());
    stage.call(&format!("PUT {ENTITY}"), &[ANY], body).ok();
    let replaced = stage.get(ENTITY).ok().json();
    assert!(replaced.get("a").is_none() && replaced.get("b").is_none(), "{replaced}");
    assert_eq!(replaced["c"].as_i64(), Some(3));
}

#[test]
fn numbers_keep_their_type() {
    let stage = Stage::new();
    // A whole number that 32 bits cannot hold is a double, unless it says that it is of 64 bits.
    let more = ",\"a\":2147483647,\"b\":2147483648,\"c\":1e3,\"d\":-0.0,\"e@odata.type\":\"Edm.Int64\",\"e\":5,\
                \"f@odata.type\":\"Edm.Double\",\"f\":7";
    stage.insert("p", "r", more);
    let shown = String::from_utf8(stage.get(ENTITY).ok().body).expect("text");
    assert!(
        shown.ends_with(
            "\"a\":2147483647,\"b\":2147483648.0,\"c\":1000.0,\"d\":-0.0,\"e@odata.type\":\"Edm.Int64\",\"e\":\"5\",\"f\":7.0}"
        ),
        "{shown}"
    );
}

/// What is just small enough goes in, and comes out as it was; one more is refused. The refusals stand in `requests`.
#[test]
fn as_much_as_there_may_be() {
    let stage = Stage::new();
    let mut table = Table::new("as much as there may be");
    let key = "k".repeat(512);
    let long = "ä".repeat(32 * 1024);
    let bytes = wire::base64::encode(&vec![7; 64 * 1024]);
    let many: String = (0..252).map(|n| format!(",\"p{n}\":{n}")).collect();
    let name = "n".repeat(255);
    let binary = |text: &str| format!(",\"a@odata.type\":\"Edm.Binary\",\"a\":\"{text}\"");
    for (row, body, expected) in [
        ("keys", format!("{{\"PartitionKey\":\"{key}\",\"RowKey\":\"{key}\"}}"), "201"),
        ("keys of nothing", "{\"PartitionKey\":\"\",\"RowKey\":\"\"}".to_owned(), "201"),
        ("a text", whole(&format!(",\"a\":\"{long}\"")), "201"),
        ("bytes", whole(&binary(&bytes)), "201"),
        ("properties", whole(&many), "201"),
        ("a name", whole(&format!(",\"{name}\":1")), "201"),
        (
            "bytes, one more",
            whole(&binary(&wire::base64::encode(&vec![7; 64 * 1024 + 1]))),
            "400 PropertyValueTooLarge",
        ),
        ("a text, one more", whole(&format!(",\"a\":\"{long}x\"")), "400 PropertyValueTooLarge"),
        (
            "a time too early",
            whole(",\"a@odata.type\":\"Edm.DateTime\",\"a\":\"1600-12-31T23:59:59Z\""),
            "400 InvalidInput",
        ),
        // Two faults: what is wrong with a property comes before how many there are.
        ("many and a bad name", whole(&format!("{many},\"p-\":1")), "400 PropertyNameInvalid"),
    ] {
        let _ = stage.call(&format!("DELETE {ENTITY}"), &[ANY], "");
        table.row(row, stage.call("POST tab", &[], body).said(), expected);
    }
    assert_eq!(stage.get("tab(PartitionKey='',RowKey='')").said(), "200");
    assert_eq!(stage.get(&format!("tab(PartitionKey='{key}', RowKey='{key}')").replace(' ', "%20")).said(), "200");
    for (row, char, expected) in [
        ("a slash", "%2F", "400 OutOfRangeInput"),
        ("a backslash", "%5C", "400 OutOfRangeInput"),
        ("a number sign", "%23", "400 OutOfRangeInput"),
        ("a question mark", "%3F", "400 OutOfRangeInput"),
        ("a tab", "%09", "400 OutOfRangeInput"),
        ("a delete", "%7F", "400 OutOfRangeInput"),
        ("a percent sign", "%25", "204"),
        ("a quote", "%27%27", "204"),
    ] {
        let line = format!("PUT tab(PartitionKey='a{char}b',RowKey='r')");
        table.row(format!("a key with {row}"), stage.call(&line, &[], "{}").said(), expected);
    }
}

fn whole(more: &str) -> String {
    format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"r\"{more}}}")
}
