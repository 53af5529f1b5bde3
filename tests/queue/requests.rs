//! What every request has in common: lines that name nothing, and headers that queues do not know.

use crate::harness::Table;
use crate::rights::for_account;
use crate::stage::{Stage, body};

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

/// Queues have neither versions nor leases: what asks for one is passed over, as the service does.
#[test]
fn conditions_mean_nothing_here() {
    let stage = Stage::new();
    for header in [
        ("if-match", "\"0x8D\""),
        ("if-none-match", "*"),
        ("if-unmodified-since", "Thu, 01 Jan 2015 00:00:00 GMT"),
        ("x-ms-lease-id", "01234567-89ab-4def-8000-000000000001"),
    ] {
        assert_eq!(stage.call("PUT que?comp=metadata", &[header], "").said(), "204", "{header:?}");
        let put = stage.call("POST que/messages", &[header], body("x")).ok();
        assert_eq!((put.status, put.header("etag")), (201, None), "{header:?}");
    }
}

/// The secondary shows how far it has come and gives what it has; it takes nothing.
#[test]
fn the_secondary_is_for_reading() {
    let stage = Stage::new();
    let client = stage.server.client();
    let mut table = Table::new("requests: the secondary");
    for (verb, target, expected) in [
        ("GET", "?restype=service&comp=stats", "200"),
        ("GET", "?comp=list", "200"),
        ("GET", "/que?comp=metadata", "200"),
        ("GET", "/que/messages?peekonly=true", "200"),
        ("PUT", "/que", "403 InsufficientAccountPermissions"),
        ("DELETE", "/que/messages", "403 InsufficientAccountPermissions"),
    ] {
        let glue = if target.contains('?') { '&' } else { '?' };
        let line = format!("{verb} {target}{glue}{}", for_account("rwdlacup", "sco"));
        let head = client.unsigned_head(&line, &[("content-length", "0")]);
        let head = head.replace("/devstoreaccount1/", "/devstoreaccount1-secondary");
        table.row(format!("{verb} {target}"), client.call_odd(&line, &head, b"").said(), expected);
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
