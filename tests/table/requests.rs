//! Requests that are wrong: each gets a clear refusal in JSON, and nothing is changed.

use crate::harness::Table;
use crate::rights::signature;
use crate::stage::{ANY, Stage, VERSION};

const ENTITY: &str = "tab(PartitionKey='p',RowKey='r')";

#[test]
fn what_is_wrong_with_a_request() {
    let stage = Stage::new();
    let before = stage.insert("p", "r", "").etag();
    let many = (0..253).map(|n| format!(",\"p{n}\":1")).collect::<String>();
    let long = "x".repeat(32 * 1024 + 1);
    let text = "x".repeat(32 * 1024);
    let large = (0..17).map(|n| format!(",\"p{n}\":\"{text}\"")).collect::<String>();
    let insert = |more: &str| format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"new\"{more}}}");
    let post = |more: &str| ("POST tab".to_owned(), insert(more));
    let raw = |line: &str, body: &str| (line.to_owned(), body.to_owned());
    let mut table = Table::new("what is wrong with a request");
    for (row, (line, body), expected) in [
        ("no keys", raw("POST tab", "{}"), "400 PropertiesNeedValue"),
        ("no row key", raw("POST tab", r#"{"PartitionKey":"p"}"#), "400 PropertiesNeedValue"),
        ("a key of another type", raw("POST tab", r#"{"PartitionKey":1,"RowKey":"r"}"#), "400 InvalidInput"),
        ("a slash in a key", raw("POST tab", r#"{"PartitionKey":"a/b","RowKey":"r"}"#), "400 OutOfRangeInput"),
        (
            "a long key",
            raw("POST tab", &format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{}\"}}", "x".repeat(513))),
            "400 KeyValueTooLarge",
        ),
        ("no JSON", raw("POST tab", "hello"), "400 InvalidInput"),
        ("half a surrogate", post(",\"a\":\"\\ud800\""), "400 InvalidInput"),
        ("nested", post(",\"a\":[1]"), "400 InvalidInput"),
        ("twice", post(",\"a\":1,\"a\":2"), "400 DuplicatePropertiesSpecified"),
        ("a bad name", post(",\"a b\":1"), "400 PropertyNameInvalid"),
        ("a long name", post(&format!(",\"{}\":1", "a".repeat(256))), "400 PropertyNameTooLong"),
        ("too many", post(&many), "400 TooManyProperties"),
        ("a long value", post(&format!(",\"a\":\"{long}\"")), "400 PropertyValueTooLarge"),
        ("too large", post(&large), "400 EntityTooLarge"),
        ("not of its type", post(",\"a@odata.type\":\"Edm.Guid\",\"a\":\"x\""), "400 InvalidInput"),
        ("no such type", post(",\"a@odata.type\":\"Edm.Decimal\",\"a\":\"1\""), "400 InvalidInput"),
        ("other keys than the URL", raw(&format!("PUT {ENTITY}"), r#"{"PartitionKey":"q"}"#), "400 InvalidInput"),
        ("no table", raw("POST missing", &insert("")), "404 TableNotFound"),
        ("no table and no keys", raw("POST missing", "{}"), "404 TableNotFound"),
        ("beyond a table", raw("DELETE tab/Tables('tab')", ""), "400 InvalidInput"),
        ("beyond no table", raw("DELETE missing/Tables('tab')", ""), "404 TableNotFound"),
        ("beyond a bad table", raw("DELETE a//(PartitionKey='p',RowKey='r')", ""), "400 OutOfRangeInput"),
        ("a bad table", raw("POST a-b-c", &insert("")), "400 InvalidResourceName"),
        ("a bad address", raw("GET tab(x)", ""), "400 InvalidInput"),
        ("a bad verb", raw("POST tab(PartitionKey='p',RowKey='r')", "{}"), "405 MethodNotAllowed"),
        ("no such part", raw("GET tab?comp=x", ""), "400 InvalidQueryParameterValue"),
        ("a bad filter", raw("GET tab()?$filter=a%20eq", ""), "400 InvalidInput"),
        ("a bad top", raw("GET tab()?$top=1001", ""), "400 InvalidInput"),
        ("a top of nothing", raw("GET tab()?$top=0", ""), "200"),
        ("an order", raw("GET tab()?$orderby=a", ""), "501 NotImplemented"),
        ("a skip", raw("GET tab()?$skip=1", ""), "501 NotImplemented"),
        ("a count", raw("GET tab()?$count=true", ""), "501 NotImplemented"),
        ("an expansion", raw("GET tab()?$expand=a", ""), "501 NotImplemented"),
        ("a token that is none", raw("GET tab()?NextPartitionKey=x", ""), "400 InvalidInput"),
        ("a bad filter of no table", raw("GET missing()?$filter=a%20eq", ""), "400 InvalidInput"),
        ("a bad entity of no table", raw("PUT missing(PartitionKey='p',RowKey='r')", "?"), "400 InvalidInput"),
        ("all of a table", raw("DELETE tab", ""), "405 MethodNotAllowed"),
        ("a transaction to read", raw("GET $batch", ""), "405 MethodNotAllowed"),
        ("tables to replace", raw("PUT Tables", ""), "405 MethodNotAllowed"),
    ] {
        table.row(row, stage.call(&line, &[], body).said(), expected);
    }
    for (row, header, expected) in [
        ("Atom", ("content-type", "application/atom+xml"), "415 AtomFormatNotSupported"),
        ("Atom wanted", ("accept", "application/atom+xml"), "415 AtomFormatNotSupported"),
        ("no JSON said", ("content-type", "text/plain"), "415 MediaTypeNotSupported"),
        ("a verb in a header", ("x-http-method", "BREW"), "400 XMethodIncorrectValue"),
        ("a verb that is not for a header", ("x-http-method", "GET"), "400 XMethodIncorrectValue"),
    ] {
        table.row(row, stage.call("POST tab", &[header], insert("")).said(), expected);
    }
    let merge = ("x-http-method", "MERGE");
    let answer = stage.call(&format!("PUT {ENTITY}"), &[merge], "{}");
    table.row("a verb in a header of PUT", answer.said(), "400 XMethodNotUsingPost");
    let answer = stage.call(&format!("POST {ENTITY}"), &[merge, merge], "{}");
    table.row("two verbs", answer.said(), "400 XMethodIncorrectCount");
    let large = stage.call("POST tab", &[], vec![b' '; 4 * 1024 * 1024 + 1]);
    table.row("a body beyond all limits", large.said(), "413 RequestBodyTooLarge");
    let page = stage.get("tab()").ok().json();
    assert_eq!((page["value"].as_array().map(Vec::len), stage.get(ENTITY).etag()), (Some(1), before));
}

#[test]
fn a_verb_can_stand_in_a_header() {
    let stage = Stage::new();
    stage.insert("p", "r", ",\"a\":1");
    let merged = stage.call(&format!("POST {ENTITY}"), &[("x-http-method", "MERGE"), ANY], r#"{"b":2}"#);
    assert_eq!(merged.said(), "204");
    let found = stage.get(ENTITY).ok().json();
    assert_eq!((found["a"].as_i64(), found["b"].as_i64()), (Some(1), Some(2)));
}

#[test]
fn without_a_credential_nobody_comes_in() {
    let stage = Stage::new();
    for line in ["GET Tables", "GET tab()", "POST $batch"] {
        let head = stage.client.unsigned_head(line, &[]);
        assert_eq!(stage.client.call_odd(line, &head, b"").said(), "401 NoAuthenticationInformation", "{line}");
    }
}

/// The secondary shows how far it has come and gives what it has; it takes nothing.
#[test]
fn the_secondary_is_for_reading() {
    let stage = Stage::new();
    stage.insert("p", "r", "");
    let mut table = Table::new("the secondary");
    for (verb, target, expected) in [
        ("GET", "?restype=service&comp=stats", "200"),
        ("GET", "/Tables", "200"),
        ("GET", "/tab()", "200"),
        ("GET", "/tab(PartitionKey='p',RowKey='r')", "200"),
        ("POST", "/Tables", "403 InsufficientAccountPermissions"),
        ("PUT", "/tab(PartitionKey='p',RowKey='r')", "403 InsufficientAccountPermissions"),
        ("POST", "/$batch", "403 InsufficientAccountPermissions"),
    ] {
        let glue = if target.contains('?') { '&' } else { '?' };
        let line = format!("{verb} {target}{glue}{}", signature(&stage, "t", "sco", "rwdlau"));
        let head = stage.client.unsigned_head(&line, &[VERSION, ("content-length", "0")]);
        let head = head.replace("/devstoreaccount1/", "/devstoreaccount1-secondary");
        table.row(format!("{verb} {target}"), stage.client.call_odd(&line, &head, b"").said(), expected);
    }
    assert_eq!(stage.get(ENTITY).said(), "200", "nothing was changed");
}

#[test]
fn an_insert_says_where_it_is() {
    let stage = Stage::new();
    let made = stage.insert("it's", "ä", "");
    assert_eq!(made.status, 201);
    let location = made.header("location").expect("a location");
    assert!(location.ends_with("/devstoreaccount1/tab(PartitionKey='it%27%27s',RowKey='%C3%A4')"), "{location}");
    let target = location.split_once("/devstoreaccount1/").expect("the account").1;
    assert_eq!(stage.get(target).ok().etag(), made.etag());
    let quiet =
        stage.call("POST tab", &[("prefer", "return-no-content"), VERSION], r#"{"PartitionKey":"q","RowKey":"r"}"#);
    assert_eq!((quiet.status, quiet.header("preference-applied")), (204, Some("return-no-content")));
    assert!(quiet.header("dataserviceid").is_some() && quiet.header("etag").is_some());
}
