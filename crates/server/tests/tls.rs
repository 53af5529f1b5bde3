//! The services inside TLS, and what they do with those who speak something else.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use server::Limits;
use support::{Choice, Client, PATIENCE, Running, put_blob, raw, sas, signed, start, start_as, start_with};
use tokio_rustls::rustls;

fn secure() -> Running {
    start_as(Choice { tls: true, ..Choice::default() })
}

/// A client on a connection of its own, with a blob to ask for.
fn with_blob(server: &Running, content: &[u8]) -> Client {
    let mut client = Client::secure(server.blob);
    assert_eq!(client.ask(&signed("PUT", "/acct/box?restype=container", "", b"")).status, 201);
    assert_eq!(client.ask(&put_blob("/acct/box/thing", content)).status, 201);
    client
}

#[test]
fn a_blob_goes_in_and_out() {
    let server = secure();
    let content: Vec<u8> = (0..5_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut client = with_blob(&server, &content);
    for _ in 0..2 {
        let answer = client.ask(&signed("GET", "/acct/box/thing", "", b""));
        assert!((answer.status, &answer.body) == (200, &content));
    }
    assert_eq!(client.tls.as_ref().unwrap().alpn_protocol(), Some(&b"http/1.1"[..]));
}

#[test]
fn listings_name_the_endpoint_as_it_was_asked() {
    let server = secure();
    let mut client = with_blob(&server, b"hello");
    let answer = client.ask(&signed("GET", "/acct?comp=list", "", b""));
    assert!(answer.text().contains("ServiceEndpoint=\"https://127.0.0.1/acct"), "{}", answer.text());
}

#[test]
fn the_spelling_of_metadata_comes_through() {
    let server = secure();
    let mut client = with_blob(&server, b"hello");
    let metadata = signed("PUT", "/acct/box/thing?comp=metadata", "x-ms-meta-twoWords: 1\r\n", b"");
    assert_eq!(client.ask(&metadata).status, 200);
    client.send(&signed("GET", "/acct/box/thing", "", b""));
    let answer = client.receive();
    assert_eq!(answer.header("x-ms-meta-twowords"), "1");
    assert!(answer.spelled.contains("x-ms-meta-twoWords"), "{answer:?}");
}

#[test]
fn a_signature_that_demands_https_is_taken_and_refused_without() {
    let signature = support::sas_with("r", "https");
    let server = secure();
    let mut client = with_blob(&server, b"hello");
    let answer = client.ask(&raw("GET", &format!("/acct/box/thing?{signature}"), "", b""));
    assert_eq!(answer.text(), "hello");
    let answer =
        start().with_blob(b"hello").client().ask(&raw("GET", &format!("/acct/box/thing?{signature}"), "", b""));
    assert_eq!((answer.status, answer.code()), (403, "AuthorizationProtocolMismatch"));
}

#[test]
fn the_admin_port_takes_both() {
    let server = secure();
    let request = b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for mut client in [Client::secure(server.admin), Client::to(server.admin)] {
        for _ in 0..2 {
            assert_eq!(client.ask(request).status, 200);
        }
    }
}

#[test]
fn plain_http_on_a_port_for_tls_is_told_so() {
    let server = secure();
    for body in [0, 300_000] {
        let mut client = Client::to(server.blob);
        let answer = client.ask(&put_blob("/acct/box/thing", &vec![b'x'; body]));
        assert_eq!((answer.status, answer.code()), (400, "AccountRequiresHttps"));
        assert!(answer.text().contains("<Code>AccountRequiresHttps</Code>"));
        assert!(client.is_closed());
    }
}

#[test]
fn tls_on_a_plain_port_ends_at_once() {
    let server = start();
    let mut client = Client::secure(server.blob);
    let began = std::time::Instant::now();
    assert!(!client.try_send(&signed("GET", "/acct?comp=list", "", b"")));
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn a_client_of_another_protocol_is_refused() {
    let server = secure();
    assert!(!Client::offering(server.blob, &[b"h2"]).try_send(b"GET"));
    // Who offers nothing means HTTP/1.1, and so does who offers both.
    for protocols in [&[][..], &[&b"h2"[..], &b"http/1.1"[..]][..]] {
        let answer = Client::offering(server.blob, protocols).ask(&raw("GET", "/acct/box/thing", "", b""));
        assert_eq!(answer.status, 404);
    }
}

#[test]
fn garbage_instead_of_a_handshake_ends_the_connection_and_nothing_else() {
    let server = secure();
    let hello = [b"\x16\x03\x01\xff\xff".as_slice(), &[0xff; 20_000]].concat();
    let cut_off = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec();
    for garbage in [hello, cut_off, vec![0; 100_000], b"\x15\x03\x03\x00\x02\x02\x28".to_vec(), b"hello\r\n".to_vec()] {
        let mut tcp = TcpStream::connect(server.blob).unwrap();
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = tcp.write_all(&garbage);
        let _ = tcp.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        tcp.read_to_end(&mut answer).expect("closed in good order");
        assert!(answer.len() < 100, "at most an alert: {answer:?}");
    }
    let mut client = with_blob(&server, b"hello");
    assert_eq!(client.ask(&signed("GET", "/acct/box/thing", "", b"")).text(), "hello");
}

#[test]
fn a_slow_handshake_is_not_waited_for() {
    let limits = Limits { handshake: Duration::from_millis(200), ..Limits::default() };
    let server = start_as(Choice { tls: true, limits, ..Choice::default() });
    for said in [&b""[..], b"\x16\x03\x01"] {
        let mut client = Client::to(server.blob);
        client.send(said);
        assert!(client.is_closed());
    }
}

#[test]
fn a_handshake_does_not_hold_up_the_end() {
    let mut server = secure();
    let mut waiting = Client::to(server.blob);
    waiting.send(b"\x16\x03\x01");
    // Once this is answered, the connection before it has been accepted, too.
    Client::secure(server.blob).ask(&raw("GET", "/acct/box", "", b""));
    server.ask_to_stop();
    assert!(waiting.is_closed());
    server.wait();
}

#[test]
fn a_client_that_takes_nothing_of_its_answer_is_cut_off() {
    let limits = Limits { write_pause: Duration::from_millis(100), ..Limits::default() };
    let server = start_as(Choice { tls: true, limits, ..Choice::default() });
    let mut client = with_blob(&server, &vec![b'x'; 32 << 20]);
    client.send(&signed("GET", "/acct/box/thing", "", b""));
    std::thread::sleep(Duration::from_millis(1_500));
    let (mut read, mut buffer) = (0, vec![0; 1 << 20]);
    while let Ok(some @ 1..) = client.tcp.read(&mut buffer) {
        read += some;
    }
    assert!(read < 32 << 20, "the whole answer was there");
}

#[test]
fn a_silent_connection_and_a_slow_head_are_closed_inside_tls_too() {
    let limits = Limits { idle: Duration::from_millis(200), head: Duration::from_millis(200), ..Limits::default() };
    let server = start_as(Choice { tls: true, limits, ..Choice::default() });
    let mut client = Client::secure(server.blob);
    assert_eq!(client.ask(&raw("GET", "/acct/box", "", b"")).status, 404);
    let tls = client.tls.as_mut().unwrap();
    let goodbye = rustls::Stream::new(tls.as_mut(), &mut client.tcp).read(&mut [0]);
    assert_eq!(goodbye.expect("a goodbye"), 0);
    let mut client = Client::secure(server.blob);
    client.send(b"GET /acct/box HT");
    assert!(client.is_closed());
}

#[test]
fn the_refusal_of_a_large_body_arrives_though_nobody_reads_the_body() {
    let server = secure();
    for _ in 0..3 {
        let mut client = Client::secure(server.blob);
        let request = format!("/acct/missing/new?{}", sas());
        let request = raw("PUT", &request, "x-ms-blob-type: BlockBlob\r\n", &vec![b'x'; 16 << 20]);
        client.try_send(&request);
        let answer = client.receive();
        assert_eq!((answer.status, answer.code()), (404, "ContainerNotFound"));
        assert_eq!(answer.header("connection"), "close");
    }
}

#[test]
fn a_plain_server_has_plain_endpoints() {
    let server = start_with(Limits::default(), false).with_blob(b"hello");
    let answer = server.client().ask(&signed("GET", "/acct?comp=list", "", b""));
    assert!(answer.text().contains("ServiceEndpoint=\"http://127.0.0.1/acct"), "{}", answer.text());
}
