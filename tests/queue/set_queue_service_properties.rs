//! Set Queue Service Properties, Get Queue Service Properties, Get Queue Service Stats, and what CORS rules do.

use crate::harness::{FOREIGN_SETTINGS, Table};
use crate::stage::Stage;

const URL: &str = "?restype=service&comp=properties";
const CORS: &str = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://page</AllowedOrigins>\
    <AllowedMethods>GET,POST</AllowedMethods><AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders>x-ms-*</ExposedHeaders>\
    <MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";

#[test]
fn what_is_left_out_stays() {
    let stage = Stage::new();
    let told = stage.call(&format!("GET {URL}"), &[], "").ok().xml();
    for (element, value) in
        [("Logging/Read", "false"), ("HourMetrics/Enabled", "false"), ("MinuteMetrics/Enabled", "false")]
    {
        assert_eq!(told.text_of(element).as_deref(), Some(value), "{element}");
    }
    for absent in ["DefaultServiceVersion", "StaticWebsite", "DeleteRetentionPolicy"] {
        assert_eq!(told.text_of(absent), None, "{absent}");
    }
    assert_eq!(stage.call(&format!("PUT {URL}"), &[], CORS).said(), "202");
    let logging = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete><Read>true</Read>\
        <Write>true</Write><RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy></Logging>\
        </StorageServiceProperties>";
    assert_eq!(stage.call(&format!("PUT {URL}"), &[], logging).said(), "202");
    let told = stage.call(&format!("GET {URL}"), &[], "").ok().xml();
    assert_eq!(told.text_of("Cors/CorsRule/AllowedOrigins").as_deref(), Some("http://page"));
    assert_eq!(told.text_of("Logging/RetentionPolicy/Days").as_deref(), Some("5"));
    assert_eq!(stage.call(&format!("PUT {URL}"), &[], "<a/>").said(), "400 InvalidXmlDocument");
}

/// What only blobs have is unknown here, and nothing of the document counts then.
#[test]
fn settings_of_other_services_are_refused() {
    let stage = Stage::new();
    let mut table = Table::new("settings of other services");
    for inner in FOREIGN_SETTINGS {
        let document = CORS.replace("</StorageServiceProperties>", &format!("{inner}</StorageServiceProperties>"));
        table.row(inner, stage.call(&format!("PUT {URL}"), &[], document).said(), "400 InvalidXmlDocument");
    }
    assert_eq!(stage.call(&format!("GET {URL}"), &[], "").ok().xml().text_of("Cors/CorsRule/AllowedOrigins"), None);
}

#[test]
fn browsers_are_told_what_the_rules_say() {
    let stage = Stage::new();
    let ask = [("origin", "http://page"), ("access-control-request-method", "POST")];
    assert_eq!(stage.call("OPTIONS que/messages", &ask, "").said(), "403 CorsPreflightFailure");
    stage.call(&format!("PUT {URL}"), &[], CORS).ok();
    let told = stage.call("OPTIONS que/messages", &ask, "").ok();
    assert_eq!(told.header("access-control-allow-origin"), Some("http://page"));
    let told = stage.call("GET que/messages?peekonly=true", &ask[..1], "").ok();
    assert_eq!(told.header("access-control-allow-origin"), Some("http://page"));
    let other = stage.call("GET que/messages?peekonly=true", &[("origin", "http://other")], "").ok();
    assert_eq!(other.header("access-control-allow-origin"), None);
}

#[test]
fn only_the_secondary_tells_how_far_it_is() {
    let stage = Stage::new();
    let stats = "GET ?restype=service&comp=stats";
    assert_eq!(stage.call(stats, &[], "").said(), "400 InvalidQueryParameterValue");
}
