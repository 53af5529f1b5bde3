//! What every request has in common: lines that name nothing, and headers that queues do not know.

use crate::harness::Table;
use crate::stage::Stage;

#[test]
fn requests_that_name_nothing() {
    let stage = Stage::new();
    let mut table = Table::new("requests: nothing");
    for (line, expected) in [
        ("GET que", "405 UnsupportedHttpVerb"),
        ("POST que", "405 UnsupportedHttpVerb"),
        ("PUT que/messages", "405 UnsupportedHttpVerb"),
        ("GET que?comp=lease", "400 InvalidQueryParameterValue"),
        ("GET que/other", "400 InvalidUri"),
        ("GET que/messages/a/b", "400 InvalidUri"),
        ("GET ?comp=list&restype=container", "400 InvalidQueryParameterValue"),
        ("DELETE ?comp=list", "405 UnsupportedHttpVerb"),
        ("GET que/messages?timeout=x", "400 InvalidQueryParameterValue"),
    ] {
        table.row(line, stage.call(line, &[], "").said(), expected);
    }
}

#[test]
fn the_service_says_who_it_is() {
    let stage = Stage::new();
    let told = stage.call("GET que?comp=metadata", &[("x-ms-client-request-id", "mine")], "").ok();
    assert!(told.header("server").is_some_and(|server| server.starts_with("Lazurite-Queue/")));
    assert_eq!(told.header("x-ms-client-request-id"), Some("mine"));
    assert_eq!(stage.client.call_odd("GET que", &stage.client.unsigned_head("GET que/messages", &[]), b"").status, 401);
}
