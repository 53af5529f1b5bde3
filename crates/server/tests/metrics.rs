//! What those who watch the server are told.

mod support;

use support::{Choice, Client, Running, put_blob, raw, signed, start, start_as};

/// The number behind a name with labels.
fn value(server: &Running, name: &str) -> f64 {
    let answer = Client::to(server.admin).ask(&raw("GET", "/metrics", "", b""));
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/plain; version=0.0.4; charset=utf-8"));
    let line = answer.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0.0, |number| number.parse().expect("a number"))
}

#[test]
fn requests_are_counted() {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    for _ in 0..3 {
        assert_eq!(client.ask(&signed("GET", "/acct/box/thing", "", b"")).text(), "hello");
    }
    assert_eq!(client.ask(&signed("GET", "/acct/box/none", "", b"")).status, 404);
    assert_eq!(client.ask(&raw("GET", "/nobody/box/none", "", b"")).status, 404);
    assert_eq!(client.ask(&put_blob("/acct/missing/thing", &[b'x'; 1000])).status, 404);
    drop(client);
    let get = "service=\"blob\",operation=\"GetBlob\"";
    let put = "service=\"blob\",operation=\"PutBlob\"";
    for (name, expected) in [
        (format!("lazurite_requests_total{{{get},status=\"2xx\"}}"), 3.0),
        (format!("lazurite_requests_total{{{get},status=\"4xx\"}}"), 1.0),
        (format!("lazurite_request_duration_seconds_count{{{get}}}"), 4.0),
        (format!("lazurite_request_duration_seconds_bucket{{{get},le=\"+Inf\"}}"), 4.0),
        (format!("lazurite_requests_total{{{put},status=\"2xx\"}}"), 1.0),
        (format!("lazurite_request_body_bytes_total{{{put}}}"), 1005.0),
        ("lazurite_requests_total{service=\"blob\",operation=\"unknown\",status=\"4xx\"}".into(), 1.0),
        ("lazurite_errors_total{service=\"blob\",code=\"BlobNotFound\"}".into(), 1.0),
        ("lazurite_errors_total{service=\"blob\",code=\"ResourceNotFound\"}".into(), 1.0),
    ] {
        assert_eq!(value(&server, &name), expected, "{name}");
    }
    // Three times the blob and the text of one refusal.
    let sent = value(&server, &format!("lazurite_response_body_bytes_total{{{get}}}"));
    assert!((15.0..2_000.0).contains(&(sent)), "{sent}");
    assert!(value(&server, "lazurite_engine_commits") >= 2.0);
    assert!(value(&server, "lazurite_uptime_seconds") > 0.0);
    assert!(value(&server, "process_resident_memory_bytes") > 1e6);
    assert!(value(&server, "process_start_time_seconds") > 1.7e9);
}

#[test]
fn connections_are_counted() {
    let server = start_as(Choice { tls: true, ..Choice::default() });
    let mut plain = Client::to(server.blob);
    plain.ask(&raw("GET", "/acct/box", "", b""));
    assert!(plain.is_closed());
    let mut clients = [Client::secure(server.blob), Client::secure(server.blob)];
    for client in &mut clients {
        client.ask(&raw("GET", "/acct/box", "", b""));
    }
    // Who asks is one of them.
    assert_eq!(value(&server, "lazurite_connections_total"), 4.0);
    assert!(value(&server, "lazurite_connections_open") >= 3.0);
    assert_eq!(value(&server, "lazurite_tls_handshakes_failed_total"), 1.0);
}

#[test]
fn nothing_secret_is_told() {
    let server = start().with_blob(b"hello");
    let text = Client::to(server.admin).ask(&raw("GET", "/metrics", "", b""));
    assert!(!text.text().contains("box") && !text.text().contains("acct"), "names of customers' things");
}
