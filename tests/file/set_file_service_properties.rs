//! Set File Service Properties, Get File Service Properties, Preflight File Request, and what CORS rules do.

use crate::harness::Table;
use crate::stage::Stage;

const URL: &str = "?restype=service&comp=properties";

fn document(inside: &str) -> String {
    format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties>{inside}</StorageServiceProperties>")
}

fn rule(origins: &str, methods: &str, headers: &str) -> String {
    format!(
        "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}</AllowedMethods>\
         <AllowedHeaders>{headers}</AllowedHeaders><ExposedHeaders>x-ms-*</ExposedHeaders>\
         <MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule>"
    )
}

#[test]
fn what_is_left_out_stays() {
    let stage = Stage::new();
    let told = stage.get(URL).ok().xml();
    assert_eq!(told.name, "StorageServiceProperties");
    for (element, value) in [("HourMetrics/Enabled", "false"), ("MinuteMetrics/Enabled", "false")] {
        assert_eq!(told.text_of(element).as_deref(), Some(value), "{element}");
    }
    assert!(told.find("Cors").is_some_and(|cors| cors.children.is_empty()), "{told:?}");
    assert_eq!(told.text_of("ShareDeleteRetentionPolicy/Enabled").as_deref(), Some("false"));
    for absent in ["DefaultServiceVersion", "StaticWebsite", "DeleteRetentionPolicy"] {
        assert_eq!(told.text_of(absent), None, "{absent}");
    }
    stage.set_service(&format!("<Cors>{}</Cors>", rule("http://page", "GET,PUT", "x-ms-*")));
    stage.set_service(
        "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>\
         <RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics>",
    );
    stage.keep_deleted(14);
    let told = stage.get(URL).ok().xml();
    #[rustfmt::skip]
    let expected = [
        ("Cors/CorsRule/AllowedOrigins",           "http://page"),
        ("Cors/CorsRule/AllowedMethods",           "GET,PUT"),
        ("Cors/CorsRule/MaxAgeInSeconds",          "5"),
        ("HourMetrics/IncludeAPIs",                "true"),
        ("HourMetrics/RetentionPolicy/Days",       "7"),
        ("MinuteMetrics/Enabled",                  "false"),
        ("ShareDeleteRetentionPolicy/Enabled",     "true"),
        ("ShareDeleteRetentionPolicy/Days",        "14"),
    ];
    for (element, value) in expected {
        assert_eq!(told.text_of(element).as_deref(), Some(value), "{element}");
    }
    stage.set_service("<Cors/>");
    let told = stage.get(URL).ok().xml();
    assert_eq!((told.all("Cors").len(), told.text_of("ShareDeleteRetentionPolicy/Days")), (0, Some("14".to_owned())));
}

/// Settings of the protocol for mounting.
#[test]
fn protocol_settings_are_kept() {
    let stage = Stage::new();
    stage.set_service(
        "<ProtocolSettings><SMB><Multichannel><Enabled>false</Enabled></Multichannel><Versions>SMB3.1.1</Versions></SMB>\
         </ProtocolSettings>",
    );
    let told = stage.get(URL).ok().xml();
    assert_eq!(told.text_of("ProtocolSettings/SMB/Multichannel/Enabled").as_deref(), Some("false"), "{told:?}");
}

#[test]
fn bad_documents_change_nothing() {
    let stage = Stage::new();
    stage.set_service(&format!("<Cors>{}</Cors>", rule("http://page", "GET", "a")));
    let before = stage.get(URL).body;
    let six = rule("http://page", "GET", "a").repeat(6);
    let mut table = Table::new("set_file_service_properties: bad documents");
    for (row, inside, expected) in [
        ("a version", "<DefaultServiceVersion>2020-10-02</DefaultServiceVersion>", "400 InvalidXmlDocument"),
        (
            "kept blobs",
            "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>",
            "400 InvalidXmlDocument",
        ),
        ("a website", "<StaticWebsite><Enabled>true</Enabled></StaticWebsite>", "400 InvalidXmlDocument"),
        ("anything", "<Other/>", "400 InvalidXmlDocument"),
        ("six rules", &*format!("<Cors>{six}</Cors>"), "400"),
        ("a method that is none", &*format!("<Cors>{}</Cors>", rule("*", "BREW", "a")), "400"),
        ("half a rule", "<Cors><CorsRule><AllowedOrigins>*</AllowedOrigins></CorsRule></Cors>", "400"),
        ("no days", "<ShareDeleteRetentionPolicy><Enabled>true</Enabled></ShareDeleteRetentionPolicy>", "400"),
        (
            "0 days",
            "<ShareDeleteRetentionPolicy><Enabled>true</Enabled><Days>0</Days></ShareDeleteRetentionPolicy>",
            "400",
        ),
        (
            "366 days",
            "<ShareDeleteRetentionPolicy><Enabled>true</Enabled><Days>366</Days></ShareDeleteRetentionPolicy>",
            "400",
        ),
    ] {
        let answer = stage.call(&format!("PUT {URL}"), &[], document(inside));
        let got = if expected == "400" { answer.status.to_string() } else { answer.said() };
        table.row(row, got, expected);
        assert!(stage.get(URL).body == before, "{row}");
    }
    for body in ["<a/>", "text", ""] {
        table.row(format!("{body:?}"), stage.call(&format!("PUT {URL}"), &[], body).said(), "400 InvalidXmlDocument");
    }
    let stats = stage.get("?restype=service&comp=stats");
    table.row("there are no statistics", stats.said(), "400 InvalidQueryParameterValue");
}

/// A preflight asks for nothing that exists and has no credential.
#[test]
fn browsers_are_told_what_the_rules_say() {
    let stage = Stage::new();
    stage.put_file("share/file", "content");
    let options = |origin: &str, method: &str, headers: &str| {
        let mut all = vec![("origin", origin), ("access-control-request-method", method)];
        all.extend((!headers.is_empty()).then_some(("access-control-request-headers", headers)));
        let line = "OPTIONS share/none/at/all";
        stage.client.call_odd(line, &stage.client.unsigned_head(line, &all), b"")
    };
    assert_eq!(options("http://page", "GET", "").said(), "403 CorsPreflightFailure");
    let rules = rule("http://page", "GET,PUT", "x-ms-*,range") + &rule("http://page", "GET", "*");
    stage.set_service(&format!("<Cors>{rules}</Cors>"));
    let mut table = Table::new("set_file_service_properties: CORS");
    for (row, origin, method, headers, expected) in [
        ("allowed", "http://page", "GET", "", "200"),
        ("with headers", "http://page", "PUT", "x-ms-type, range", "200"),
        ("another method", "http://page", "DELETE", "", "403 CorsPreflightFailure"),
        ("another page", "http://other", "GET", "", "403 CorsPreflightFailure"),
        ("another case", "http://PAGE", "GET", "", "403 CorsPreflightFailure"),
        ("another header: the first rule decides", "http://page", "GET", "accept", "403 CorsPreflightFailure"),
    ] {
        let answer = options(origin, method, headers);
        table.row(row, answer.said(), expected);
        if answer.is_success() {
            let told = |name: &str| answer.header(name).unwrap_or("none").to_owned();
            table.row(format!("{row}: origin"), told("access-control-allow-origin"), origin);
            table.row(format!("{row}: methods"), told("access-control-allow-methods"), method);
            table.row(format!("{row}: time"), told("access-control-max-age"), "5");
        }
    }
    let line = "OPTIONS share/file";
    let empty = stage.client.call_odd(line, &stage.client.unsigned_head(line, &[]), b"");
    table.row("without an origin", empty.said(), "400 InvalidHeaderValue");

    let from = |origin| stage.call("GET share/file", &[("origin", origin)], "").ok();
    assert_eq!(from("http://page").header("access-control-allow-origin"), Some("http://page"));
    assert!(from("http://page").header("access-control-expose-headers").is_some());
    assert_eq!(from("http://other").header("access-control-allow-origin"), None);
    assert_eq!(from("http://other").header("vary"), Some("Origin"));
    // A refusal is told to the page, too.
    let refused = stage.call("GET share/none", &[("origin", "http://page")], "");
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (404, Some("http://page")));
}
