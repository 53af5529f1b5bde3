//! Tables: made, listed page by page, deleted; and the settings of the service.

use crate::harness::{FOREIGN_SETTINGS, Table};
use crate::stage::Stage;

#[test]
fn a_table_comes_and_goes() {
    let stage = Stage::new();
    let made = stage.call("POST Tables", &[("prefer", "return-no-content")], r#"{"TableName":"Second"}"#);
    assert_eq!((made.status, made.header("preference-applied")), (204, Some("return-no-content")));
    assert_eq!(stage.call("POST Tables", &[], r#"{"TableName":"SECOND"}"#).said(), "409 TableAlreadyExists");
    let listed = stage.get("Tables").ok();
    assert_eq!(
        listed.header("content-type"),
        Some("application/json;odata=minimalmetadata;streaming=true;charset=utf-8")
    );
    assert_eq!(listed.header("x-content-type-options"), Some("nosniff"));
    let names: Vec<_> =
        listed.json()["value"].as_array().expect("a list").iter().map(|it| it["TableName"].clone()).collect();
    assert_eq!(names, ["Second", "tab"]);
    assert_eq!(stage.call("DELETE Tables('second')", &[], "").said(), "204");
    assert_eq!(stage.call("DELETE Tables('second')", &[], "").said(), "404 ResourceNotFound");
    assert_eq!(stage.get("Tables('second')").said(), "404 ResourceNotFound");
    assert_eq!(stage.get("second()").said(), "404 TableNotFound");
    stage.call("POST Tables", &[], r#"{"TableName":"second"}"#).ok();
    assert_eq!(stage.get("second()").ok().json()["value"].as_array().map(Vec::len), Some(0));
}

#[test]
fn pages_of_tables() {
    let stage = Stage::new();
    for n in 0..25 {
        stage.call("POST Tables", &[], format!("{{\"TableName\":\"page{n:02}\"}}")).ok();
    }
    let mut seen = 0;
    let mut next = String::new();
    loop {
        let page = stage.get(&format!("Tables?$top=10&$filter=TableName%20ge%20'page'{next}")).ok();
        seen += page.json()["value"].as_array().expect("a list").len();
        let Some(token) = page.header("x-ms-continuation-nexttablename") else { break };
        next = format!("&NextTableName={}", wire::percent::encode_value(token));
    }
    // `tab` is one of them.
    assert_eq!(seen, 26);
}

/// Health checks of .NET Aspire ask for no table at all.
#[test]
fn filters_that_are_true_or_false_for_every_table() {
    let stage = Stage::new();
    let count = |filter: &str| {
        let listed = stage.get(&format!("Tables?$filter={filter}")).ok().json();
        listed["value"].as_array().expect("a list").len()
    };
    for none in ["false", "False", "FALSE", "not%20true", "false%20and%20true", "TableName%20eq%20'tab'%20and%20false"]
    {
        assert_eq!(count(none), 0, "{none}");
    }
    for all in ["true", "True", "not%20false", "false%20or%20true", "TableName%20eq%20'none'%20or%20true"] {
        assert_eq!(count(all), 1, "{all}");
    }
}

#[test]
fn names_that_are_none() {
    let stage = Stage::new();
    let mut table = Table::new("names of tables");
    for (name, expected) in [
        ("ab", "400 OutOfRangeInput"),
        (&"x".repeat(64), "400 OutOfRangeInput"),
        ("1abc", "400 InvalidResourceName"),
        ("a-b-c", "400 InvalidResourceName"),
        ("tables", "400 InvalidResourceName"),
        ("täbles", "400 InvalidResourceName"),
        ("", "400 OutOfRangeInput"),
    ] {
        let answer = stage.call("POST Tables", &[], format!("{{\"TableName\":\"{name}\"}}"));
        table.row(name, answer.said(), expected);
    }
}

#[test]
fn settings_and_other_sites() {
    let stage = Stage::new();
    let url = "?restype=service&comp=properties";
    let rule = "<Cors><CorsRule><AllowedOrigins>http://a</AllowedOrigins><AllowedMethods>GET,MERGE</AllowedMethods>\
        <AllowedHeaders>*</AllowedHeaders><ExposedHeaders>etag</ExposedHeaders><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors>";
    let document = format!("<StorageServiceProperties>{rule}</StorageServiceProperties>");
    let xml = [("content-type", "application/xml")];
    assert_eq!(stage.call(&format!("PUT {url}"), &xml, document).said(), "202");
    let told = stage.get(url).ok();
    assert_eq!(told.header("content-type"), Some("application/xml"));
    assert!(String::from_utf8_lossy(&told.body).contains("<AllowedMethods>GET,MERGE</AllowedMethods>"));
    let shown = stage.call("GET tab()", &[("origin", "http://a")], "").ok();
    assert_eq!(shown.header("access-control-allow-origin"), Some("http://a"));
    let preflight = |origin: &str| {
        let headers = [("origin", origin), ("access-control-request-method", "MERGE")];
        let head = stage.client.unsigned_head("OPTIONS tab", &headers);
        stage.client.call_odd("OPTIONS tab", &head, b"")
    };
    assert_eq!(preflight("http://a").said(), "200");
    assert_eq!(preflight("http://b").said(), "403 CorsPreflightFailure");
    // A refusal of what speaks XML is XML.
    let refused = stage.call(&format!("PUT {url}"), &xml, "<a/>");
    assert_eq!(
        (refused.said().as_str(), refused.header("content-type")),
        ("400 InvalidXmlDocument", Some("application/xml"))
    );
    assert_eq!(stage.get("?restype=service&comp=stats").said(), "400 InvalidQueryParameterValue");
}

/// What only blobs have is unknown here, and nothing of the document counts then.
#[test]
fn settings_of_other_services_are_refused() {
    let stage = Stage::new();
    let url = "?restype=service&comp=properties";
    let xml = [("content-type", "application/xml")];
    let before = stage.get(url).ok().body;
    let cors = "<Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><AllowedHeaders/>\
        <ExposedHeaders/><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors>";
    let mut table = Table::new("settings of other services");
    for inner in FOREIGN_SETTINGS {
        let document = format!("<StorageServiceProperties>{cors}{inner}</StorageServiceProperties>");
        table.row(inner, stage.call(&format!("PUT {url}"), &xml, document).said(), "400 InvalidXmlDocument");
    }
    assert_eq!(stage.get(url).ok().body, before);
}
