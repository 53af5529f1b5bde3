//! What a connection may rely on: requests and answers on the wire, byte by byte.

mod support;

use std::time::Duration;

use server::Limits;
use support::{Client, Running, put_blob, raw, sas, sas_for, signed, start, start_with};

#[test]
fn a_connection_serves_many_requests() {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    for _ in 0..3 {
        let answer = client.ask(&signed("GET", "/acct/box/thing", "", b""));
        assert_eq!((answer.status, answer.text()), (200, "hello"));
    }
}

#[test]
fn what_every_answer_carries() {
    let server = start().with_blob(b"hello");
    let id = "x-ms-client-request-id: my id\r\nx-ms-version: 2022-11-02\r\n";
    for (target, status) in [("/acct/box/thing", 200), ("/acct/box/other", 404)] {
        let answer = server.client().ask(&signed("GET", target, id, b""));
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("x-ms-version"), "2022-11-02");
        assert_eq!(answer.header("x-ms-client-request-id"), "my id");
        assert_eq!(answer.header("server"), concat!("Lazurite-Blob/", env!("CARGO_PKG_VERSION")));
        assert_eq!(answer.header("x-ms-request-id").len(), 36);
        assert!(answer.header("date").ends_with(" GMT"));
    }
}

#[test]
fn an_error_in_the_shape_of_the_service() {
    let server = start().with_blob(b"hello");
    let answer = server.client().ask(&signed("GET", "/acct/box/other", "", b""));
    assert_eq!((answer.status, answer.code()), (404, "BlobNotFound"));
    assert_eq!(answer.reason, "The specified blob does not exist.");
    assert_eq!(answer.header("content-type"), "application/xml");
    let start = "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>BlobNotFound</Code><Message>The specified blob does \
                 not exist.\nRequestId:";
    assert!(answer.text().starts_with(start), "{}", answer.text());
    assert!(answer.text().ends_with("Z</Message></Error>"), "{}", answer.text());
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    let two = [signed("GET", "/acct/box/thing", "", b""), signed("GET", "/acct/box/other", "", b"")].concat();
    client.send(&two);
    assert_eq!(client.receive().status, 200);
    assert_eq!(client.receive().status, 404);
}

/// All of them in one write, before the first answer.
#[test]
fn names_of_metadata_keep_their_case_when_requests_are_pipelined() {
    let server = start().with_blob(b"hello");
    let put = |name: &str| {
        let headers = format!("x-ms-blob-type: BlockBlob\r\nx-ms-meta-{name}: 1\r\n");
        signed("PUT", &format!("/acct/box/{name}"), &headers, format!("\r\nx-ms-meta-{name}X: 2\r\n\r\n").as_bytes())
    };
    let get = |name: &str| signed("GET", &format!("/acct/box/{name}"), "", b"");
    let mut client = server.client();
    client.send(
        &[put("firstOne"), put("plain"), put("thirdOne"), get("firstOne"), get("plain"), get("thirdOne")].concat(),
    );
    for _ in 0..3 {
        assert_eq!(client.receive().status, 201);
    }
    for name in ["firstOne", "plain", "thirdOne"] {
        let answer = client.receive();
        assert!(answer.spelled.contains(&format!("\r\nx-ms-meta-{name}: 1\r\n")), "{}", answer.spelled);
        assert_eq!(answer.text(), format!("\r\nx-ms-meta-{name}X: 2\r\n\r\n"));
    }
}

#[test]
fn head_has_the_length_and_no_body() {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    let answer = client.ask(&signed("HEAD", "/acct/box/thing", "", b""));
    assert_eq!((answer.status, answer.header("content-length")), (200, "5"));
    let answer = client.ask(&signed("HEAD", "/acct/box/other", "", b""));
    assert_eq!((answer.status, answer.code()), (404, "BlobNotFound"));
    // Had there been a body, the next answer would not begin where it should.
    assert_eq!(client.ask(&signed("GET", "/acct/box/thing", "", b"")).text(), "hello");
}

#[test]
fn a_client_that_expects_100_gets_it_when_the_body_is_wanted() {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    let expect = "Expect: 100-continue\r\nx-ms-blob-type: BlockBlob\r\n";
    let request = signed("PUT", "/acct/box/new", expect, b"content");
    client.send(&request[..request.len() - 7]);
    assert_eq!(client.receive_head().status, 100);
    client.send(b"content");
    assert_eq!(client.receive().status, 201);
    assert_eq!(client.ask(&signed("GET", "/acct/box/new", "", b"")).text(), "content");
}

#[test]
fn a_client_that_expects_100_is_refused_before_it_sends() {
    let server = start();
    let mut client = server.client();
    let expect = "Expect: 100-continue\r\nx-ms-blob-type: BlockBlob\r\n";
    let request = signed("PUT", "/acct/missing/new", expect, b"content");
    client.send(&request[..request.len() - 7]);
    let answer = client.receive();
    assert_eq!((answer.status, answer.code()), (404, "ContainerNotFound"));
    assert_eq!(answer.header("connection"), "close");
}

#[test]
fn a_small_refused_body_keeps_the_connection() {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    let answer = client.ask(&put_blob("/acct/missing/new", &[b'x'; 100_000]));
    assert_eq!((answer.status, answer.code()), (404, "ContainerNotFound"));
    assert_eq!(client.ask(&signed("GET", "/acct/box/thing", "", b"")).text(), "hello");
}

#[test]
fn the_refusal_of_a_small_body_does_not_wait_for_the_rest_of_it() {
    let server = start();
    let mut client = server.client();
    let request = put_blob("/acct/missing/new", b"0123456789");
    let began = std::time::Instant::now();
    client.send(&request[..request.len() - 5]);
    let answer = client.receive();
    assert_eq!((answer.status, answer.code()), (404, "ContainerNotFound"));
    assert_eq!(answer.header("connection"), "close");
    assert!(began.elapsed() < Limits::default().body_pause / 2);
}

#[test]
fn the_refusal_of_a_large_body_arrives_though_nobody_reads_the_body() {
    let server = start();
    for _ in 0..5 {
        let mut client = server.client();
        let answer = client.ask(&put_blob("/acct/missing/new", &vec![b'x'; 16 << 20]));
        assert_eq!((answer.status, answer.code()), (404, "ContainerNotFound"));
        assert_eq!(answer.header("connection"), "close");
        assert!(client.is_closed());
    }
}

#[test]
fn a_body_that_is_cut_off_changes_nothing() {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    let request = put_blob("/acct/box/thing", b"0123456789");
    client.send(&request[..request.len() - 5]);
    client.tcp.shutdown(std::net::Shutdown::Write).unwrap();
    while !client.is_closed() {
        client.receive();
    }
    assert_eq!(server.client().ask(&signed("GET", "/acct/box/thing", "", b"")).text(), "hello");
}

#[test]
fn a_slow_head_is_not_waited_for() {
    let server =
        start_with(Limits { head: Duration::from_millis(200), ..Limits::default() }, false).with_blob(b"hello");
    let mut client = server.client();
    client.send(b"GET /acct/box/thing HTTP/1.1\r\nHost:");
    assert!(client.is_closed());
    // The same on a connection that has served before.
    let mut client = server.client();
    assert_eq!(client.ask(&signed("GET", "/acct/box/thing", "", b"")).status, 200);
    client.send(b"GET /acct");
    assert!(client.is_closed());
}

#[test]
fn bytes_now_and_then_do_not_prolong_a_head() {
    let server = start_with(Limits { head: Duration::from_millis(300), ..Limits::default() }, false);
    let mut client = server.client();
    let began = std::time::Instant::now();
    while client.try_send(b"G") && began.elapsed() < support::PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_slow_body_is_not_waited_for() {
    let server =
        start_with(Limits { body_pause: Duration::from_millis(200), ..Limits::default() }, false).with_blob(b"hello");
    let mut client = server.client();
    let request = put_blob("/acct/box/thing", b"0123456789");
    client.send(&request[..request.len() - 5]);
    let answer = client.receive();
    assert_eq!((answer.status, answer.code()), (408, "OperationTimedOut"));
    assert!(client.is_closed());
    assert_eq!(server.client().ask(&signed("GET", "/acct/box/thing", "", b"")).text(), "hello");
}

#[test]
fn a_client_that_takes_nothing_of_its_answer_is_cut_off() {
    let limits = Limits { write_pause: Duration::from_millis(100), ..Limits::default() };
    let server = start_with(limits, false).with_blob(&vec![b'x'; 32 << 20]);
    let mut client = server.client();
    client.send(&signed("GET", "/acct/box/thing", "", b""));
    std::thread::sleep(Duration::from_millis(1_500));
    let mut read = 0;
    let mut buffer = vec![0; 1 << 20];
    while let Ok(some @ 1..) = std::io::Read::read(&mut client.tcp, &mut buffer) {
        read += some;
    }
    assert!(read < 32 << 20, "the whole answer was there");
}

#[test]
fn a_silent_connection_is_closed() {
    let limits = Limits { idle: Duration::from_millis(200), ..Limits::default() };
    let server = start_with(limits, false).with_blob(b"hello");
    let mut client = server.client();
    assert!(client.is_closed());
    let mut client = server.client();
    assert_eq!(client.ask(&signed("GET", "/acct/box/thing", "", b"")).status, 200);
    assert!(client.is_closed());
}

#[test]
fn too_many_connections_wait_for_their_turn() {
    let server = start_with(Limits { connections: 2, ..Limits::default() }, false);
    let request = raw("GET", "/acct/box", "", b"");
    let (mut first, mut second, mut third) = (server.client(), server.client(), server.client());
    assert_eq!(first.ask(&request).status, 404);
    assert_eq!(second.ask(&request).status, 404);
    third.send(&request);
    third.tcp.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(std::io::Read::read(&mut third.tcp, &mut [0]).is_err(), "the third was served");
    drop(first);
    third.tcp.set_read_timeout(Some(support::PATIENCE)).unwrap();
    assert_eq!(third.receive().status, 404);
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let server = start();
    let mut client = server.client();
    let header = format!("x-ms-meta-a: {}\r\n", "x".repeat(200_000));
    client.try_send(&raw("GET", "/acct/box", &header, b""));
    assert_eq!(client.receive().status, 431);
    assert!(client.is_closed());
    let mut client = server.client();
    let header = format!("x-ms-meta-a: {}\r\n", "x".repeat(90_000));
    assert_eq!(client.ask(&raw("GET", "/acct/box", &header, b"")).status, 431);
}

#[test]
fn what_is_no_http_is_refused() {
    let server = start();
    for nonsense in ["hello\r\n\r\n", "GET\r\n\r\n", "GET /a b HTTP/1.1\r\n\r\n", "\u{16}\u{3}\u{1}\r\n\r\n"] {
        let mut client = server.client();
        client.try_send(nonsense.as_bytes());
        assert_eq!(client.receive().status, 400, "{nonsense:?}");
        assert!(client.is_closed());
    }
}

#[test]
fn bad_requests_get_the_errors_of_the_service() {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    for (request, status, code) in [
        (signed("GET", "/acct/box/%zz", "", b""), 400, "RequestUrlFailedToParse"),
        (signed("GET", "/acct/box/%ff", "", b""), 400, "RequestUrlFailedToParse"),
        (signed("GET", "/acct/box/thing?comp=%ff", "", b""), 400, "RequestUrlFailedToParse"),
        (signed("GET", "/acct/box/thing", "x-ms-version: soon\r\n", b""), 400, "InvalidHeaderValue"),
        (signed("GET", "/acct/box/thing", "x-ms-version: 2099-01-01\r\n", b""), 400, "InvalidHeaderValue"),
        (signed("GET", "/nobody/box/thing", "", b""), 404, "ResourceNotFound"),
        (signed("GET", "/", "", b""), 404, "ResourceNotFound"),
        (signed("GET", "/acct/box/thing?sig=x", "", b""), 403, "AuthenticationFailed"),
        (raw("GET", "/acct/box/thing", "x-ms-version: 2021-12-02\r\n", b""), 401, "NoAuthenticationInformation"),
        (raw("GET", "/acct/box/thing", "", b""), 404, "ResourceNotFound"),
        (raw("GET", "/acct/box/thing", "Authorization: nonsense\r\n", b""), 400, "InvalidAuthenticationInfo"),
        (signed("PUT", "/acct-secondary/box?restype=container", "", b""), 403, "InsufficientAccountPermissions"),
    ] {
        let line = String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_owned();
        let answer = client.ask(&request);
        assert_eq!((answer.status, answer.code()), (status, code), "{line}");
    }
}

#[test]
fn an_unknown_verb_is_refused() {
    let server = start().with_blob(b"hello");
    let answer = server.client().ask(&signed("FROB", "/acct/box/thing", "", b""));
    assert_eq!((answer.status, answer.code()), (400, "InvalidHttpVerb"));
}

#[test]
fn the_account_may_be_in_the_host() {
    let server = start().with_blob(b"hello");
    let request = format!("GET /box/thing?{} HTTP/1.1\r\nHost: acct.blob.localhost\r\n\r\n", sas());
    assert_eq!(server.client().ask(request.as_bytes()).text(), "hello");
}

#[test]
fn the_secondary_can_be_read() {
    let server = start().with_blob(b"hello");
    assert_eq!(server.client().ask(&signed("GET", "/acct-secondary/box/thing", "", b"")).text(), "hello");
}

#[test]
fn what_is_public_needs_no_signature() {
    let server = start();
    let mut client = server.client();
    let public = "x-ms-blob-public-access: blob\r\n";
    assert_eq!(client.ask(&signed("PUT", "/acct/open?restype=container", public, b"")).status, 201);
    assert_eq!(client.ask(&put_blob("/acct/open/thing", b"hello")).status, 201);
    assert_eq!(client.ask(&raw("GET", "/acct/open/thing", "", b"")).text(), "hello");
    // The blobs are public, the container is not, and writing never is.
    for (method, target) in [("GET", "/acct/open?restype=container"), ("DELETE", "/acct/open/thing")] {
        let answer = client.ask(&raw(method, target, "x-ms-version: 2021-12-02\r\n", b""));
        assert_eq!((answer.status, answer.code()), (401, "NoAuthenticationInformation"), "{method}");
        assert!(answer.header("www-authenticate").contains("resource_id=https://storage.azure.com"));
    }
}

#[test]
fn a_signature_allows_what_it_says_and_no_more() {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    let blob = "x-ms-blob-type: BlockBlob\r\n";
    let mut ask = |method, path: &str, permissions, headers| {
        let answer = client.ask(&raw(method, &format!("{path}?{}", sas_for(permissions)), headers, b""));
        (answer.status, answer.code().to_owned())
    };
    let mismatch = (403, "AuthorizationPermissionMismatch".to_owned());
    assert_eq!(ask("GET", "/acct/box/thing", "w", ""), mismatch);
    assert_eq!(ask("PUT", "/acct/box/thing", "r", blob), mismatch);
    assert_eq!(ask("GET", "/acct/box/thing", "r", "").0, 200);
    // The right to create does not reach what is already there.
    assert_eq!(ask("PUT", "/acct/box/thing", "c", blob).0, 403);
    assert_eq!(ask("PUT", "/acct/box/new", "c", blob).0, 201);
}

#[test]
fn http_1_0_is_served_and_closed() {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    let answer = client.ask(format!("GET /acct/box/thing?{} HTTP/1.0\r\n\r\n", sas()).as_bytes());
    assert_eq!((answer.status, answer.text()), (200, "hello"));
    assert!(client.is_closed());
}

/// Clients ask on either port whether there is a hierarchy, and go on with blobs there when there is none.
#[test]
fn both_blob_ports_say_that_there_is_no_hierarchy() {
    let server = start().with_blob(b"hello");
    for address in [server.dfs, server.blob] {
        let mut client = Client::to(address);
        for target in ["/acct/box/?action=getAccessControl", "/acct/box//?action=getAccessControl&upn=false"] {
            let answer = client.ask(&signed("HEAD", target, "", b""));
            assert_eq!((answer.status, answer.code()), (400, "HierarchicalNamespaceNotEnabled"), "{target}");
            assert_eq!((answer.header("content-type"), answer.text()), ("", ""), "{target}");
        }
        let answer = client.ask(&signed("PUT", "/acct/box/new?resource=file", "", b""));
        assert_eq!((answer.status, answer.code()), (409, "EndpointUnsupportedAccountFeatures"));
        assert_eq!(answer.header("content-type"), "application/json;charset=utf-8");
        assert!(answer.text().starts_with("{\"error\":{\"code\":\"EndpointUnsupp"), "{}", answer.text());
        // Nothing is told to those who show no credential, or a bad one.
        let stranger = client.ask(&raw(
            "GET",
            "/acct/box?resource=filesystem&recursive=true",
            "x-ms-version: 2021-12-02\r\n",
            b"",
        ));
        assert_eq!((stranger.status, stranger.code()), (401, "NoAuthenticationInformation"));
        assert!(stranger.text().starts_with('{'), "{}", stranger.text());
        // Blobs are there, and refused in the way of the Blob service.
        let info = client.ask(&signed("GET", "/acct?restype=account&comp=properties", "", b""));
        assert_eq!((info.status, info.header("x-ms-is-hns-enabled")), (200, "false"));
        assert_eq!(client.ask(&signed("HEAD", "/acct/box?restype=container", "", b"")).status, 200);
        assert_eq!(client.ask(&signed("GET", "/acct/box/thing", "", b"")).text(), "hello");
        let missing = client.ask(&signed("HEAD", "/acct/box//", "", b""));
        assert_eq!(missing.status, 404, "this is how Trino asks");
        let missing = client.ask(&signed("GET", "/acct/box/none", "", b""));
        assert!(missing.text().contains("<Code>BlobNotFound</Code>"), "{}", missing.text());
    }
}

#[test]
fn health_and_the_test_clock() {
    let server = start();
    let mut client = Client::to(server.admin);
    for path in ["/health/live", "/health/ready"] {
        assert_eq!(client.ask(&raw("GET", path, "", b"")).status, 200);
    }
    assert_eq!(client.ask(&raw("GET", "/", "", b"")).status, 404);
    let mut advance = |body: &str| client.ask(&raw("POST", "/test/clock", "", body.as_bytes()));
    assert_eq!(advance("{\"advance_seconds\": 60}").text(), "{\"offset_seconds\":60}");
    assert_eq!(advance("{\"advance_seconds\": 30}").text(), "{\"offset_seconds\":90}");
    for bad in ["", "{", "{\"advance_seconds\": -1}", "{\"seconds\": 1}"] {
        assert_eq!(advance(bad).status, 400, "{bad}");
    }
    assert_eq!(advance(&" ".repeat(10_000)).status, 400);
}

#[test]
fn without_the_switch_there_is_no_test_clock() {
    let server = start_with(Limits::default(), false);
    let answer = Client::to(server.admin).ask(&raw("POST", "/test/clock", "", b"{\"advance_seconds\": 60}"));
    assert_eq!(answer.status, 404);
}

#[test]
fn at_shutdown_what_runs_comes_to_its_end_and_nothing_new_begins() {
    let mut server = start().with_blob(b"hello");
    let mut idle = server.client();
    assert_eq!(idle.ask(&signed("GET", "/acct/box/thing", "", b"")).status, 200);
    let mut never_used = server.client();
    let mut busy = upload_under_way(&server);
    server.ask_to_stop();
    assert!(idle.is_closed() && never_used.is_closed());
    busy.send(b"0123456789");
    let answer = busy.receive();
    assert_eq!((answer.status, answer.header("connection")), (201, "close"));
    assert!(busy.is_closed());
    let address = server.blob;
    server.wait();
    assert!(std::net::TcpStream::connect(address).is_err());
}

/// A client that has been told to go on and has ten bytes to send.
fn upload_under_way(server: &Running) -> Client {
    let mut client = server.client();
    let headers = "Expect: 100-continue\r\nx-ms-blob-type: BlockBlob\r\n";
    let request = signed("PUT", "/acct/box/new", headers, b"0123456789");
    client.send(&request[..request.len() - 10]);
    assert_eq!(client.receive_head().status, 100);
    client
}

#[test]
fn shutdown_does_not_wait_for_ever() {
    let limits = Limits { shutdown: Duration::from_millis(300), ..Limits::default() };
    let mut server = start_with(limits, false).with_blob(b"hello");
    let _busy = upload_under_way(&server);
    let began = std::time::Instant::now();
    server.ask_to_stop();
    server.wait();
    assert!(began.elapsed() < Duration::from_secs(5));
}
