//! What those get who mean no good: silent connections, guesses, pages in a browser, queries that cost too much.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

use server::Limits;
use support::{
    Choice, Client, by_owner, client_from, put_blob, raw, sas, sas_for, signed, start, start_as, start_with, with_query,
};

fn health(server: &support::Running) -> u16 {
    Client::to(server.admin).ask(b"GET /health/ready HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").status
}

#[test]
fn silent_connections_take_places_from_nobody_else() {
    let patient = Duration::from_secs(3600);
    let limits = Limits { connections: 3, connections_per_address: 2, ..Limits::default() };
    let server = start_with(Limits { first_request: patient, displaced: patient, ..limits }, false);
    let silent = [server.client(), server.client()];
    assert!(server.client().is_closed(), "an address has its share");
    assert_eq!(health(&server), 200);
    let mut queues = Client::to(server.queue);
    assert_eq!(queues.ask(&signed("GET", "/acct?comp=list", "", b"")).status, 200);
    let metrics = Client::to(server.admin).ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(metrics.text().contains("\nlazurite_connections_refused_total 1\n"));
    drop(silent);
    let request = signed("GET", "/acct?comp=list", "", b"");
    let mut client = server.client();
    // Until the server has seen them go.
    while !client.try_send(&request) || client.is_closed() {
        client = server.client();
    }
    assert_eq!(client.receive().status, 200);
}

#[test]
fn the_admin_port_has_places_of_its_own() {
    let server = start_with(Limits { connections: 2, connections_per_address: 2, ..Limits::default() }, false);
    let ports = [server.blob, server.queue, server.table];
    let _silent: Vec<Client> = ports.iter().flat_map(|port| [Client::to(*port), Client::to(*port)]).collect();
    assert_eq!(health(&server), 200);
}

#[test]
fn a_connection_that_asks_nothing_is_closed_soon() {
    // Long enough for a client of a busy machine that goes on asking.
    let first_request = Duration::from_secs(2);
    let server = start_with(Limits { first_request, ..Limits::default() }, false).with_blob(b"hello");
    // Neither a byte of a request, nor one byte and then nothing. `idle` and `head` would let them stay.
    let (mut silent, mut slow) = (server.client(), server.client());
    slow.send(b"G");
    assert!(silent.is_closed() && slow.is_closed());
    // Nor does a request that is refused make it stay, whatever it asks for and however often.
    let signed_badly = "/acct/box/thing?sv=2021-12-02&ss=b&srt=o&sp=r&se=2098-01-01T00:00:00Z&sig=AAAA";
    let preflight = "Origin: http://example.org\r\nAccess-Control-Request-Method: GET\r\n";
    let refused = [
        ("GET", "/acct/box/thing", ""),
        ("GET", "/nobody/box/thing", ""),
        ("GET", "/", ""),
        ("PUT", signed_badly, ""),
        ("OPTIONS", "/acct/box/thing", preflight),
    ]
    .map(|(method, target, headers)| {
        let mut refused = server.client();
        for _ in 0..3 {
            let answer = refused.ask(&raw(method, target, headers, b""));
            assert!((400..500).contains(&answer.status), "{method} {target}: {}", answer.status);
        }
        (method, target, refused)
    });
    for (method, target, mut refused) in refused {
        assert!(refused.is_closed(), "{method} {target}");
    }
    // Who has asked once may be silent for longer.
    let mut client = server.client();
    assert_eq!(client.ask(&signed("GET", "/acct/box/thing", "", b"")).status, 200);
    // So may who was identified, though not allowed, and who was served what is public.
    let mut reader = server.client();
    let only_lists = with_query("/acct/box/thing", &sas_for("l"));
    assert_eq!(reader.ask(&raw("GET", &only_lists, "", b"")).status, 403);
    let public = "x-ms-blob-public-access: blob\r\n";
    assert_eq!(client.ask(&by_owner("PUT", "/acct/box?restype=container&comp=acl", public, b"")).status, 200);
    let mut anonymous = server.client();
    assert_eq!(anonymous.ask(&raw("GET", "/acct/box/thing", "", b"")).status, 200);
    std::thread::sleep(2 * first_request);
    for client in [&mut client, &mut reader, &mut anonymous] {
        assert_eq!(client.ask(&signed("GET", "/acct/box/thing", "", b"")).status, 200);
    }
}

/// Two addresses fill a port without any credential: each connection has asked for something and was refused.
#[test]
fn connections_that_were_refused_make_room_for_others() {
    let patient = Duration::from_secs(3600);
    let limits = Limits { connections: 4, connections_per_address: 2, first_request: patient, ..Limits::default() };
    let server = start_with(Limits { displaced: Duration::from_millis(50), ..limits }, false);
    let mut strangers: Vec<Client> = [[127, 0, 0, 2], [127, 0, 0, 2], [127, 0, 0, 3], [127, 0, 0, 3]]
        .map(|from| client_from(from, server.blob))
        .into();
    for stranger in &mut strangers {
        assert_eq!(stranger.ask(&raw("GET", "/acct?comp=list", "", b"")).status, 404);
    }
    let request = signed("GET", "/acct?comp=list", "", b"");
    let mut clients: Vec<Client> = [[127, 0, 0, 4], [127, 0, 0, 4], [127, 0, 0, 5], [127, 0, 0, 5]]
        .map(|from| {
            let mut client = client_from(from, server.blob);
            assert_eq!(client.ask(&request).status, 200);
            client
        })
        .into();
    assert!(strangers.iter_mut().all(Client::is_closed), "each of them has made room");
    let metrics = Client::to(server.admin).ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(metrics.text().contains("\nlazurite_connections_displaced_total 4\n"));
    // Those that were let in make room for nobody, however long they are silent.
    let mut late = client_from([127, 0, 0, 2], server.blob);
    late.send(&request);
    std::thread::sleep(Duration::from_millis(300));
    for client in &mut clients {
        assert_eq!(client.ask(&request).status, 200);
    }
    drop(clients.pop());
    assert_eq!(late.receive().status, 200);
}

/// Strangers whose connections are never silent for long: each asks again as soon as it was refused.
#[test]
fn connections_that_are_refused_again_and_again_make_room_for_others() {
    let patient = Duration::from_secs(3600);
    let limits = Limits { connections: 2, connections_per_address: 1, first_request: patient, ..Limits::default() };
    let server = start_with(limits, false);
    let strangers = [[127, 0, 0, 2], [127, 0, 0, 3]].map(|from| client_from(from, server.blob));
    let asking = strangers.map(|mut stranger| {
        std::thread::spawn(move || {
            let request = raw("GET", "/acct?comp=list", "", b"");
            while stranger.try_send(&request) && !stranger.is_closed() {
                assert_eq!(stranger.receive().status, 404);
            }
        })
    });
    let _clients = [[127, 0, 0, 4], [127, 0, 0, 5]].map(|from| {
        let mut client = client_from(from, server.blob);
        assert_eq!(client.ask(&signed("GET", "/acct?comp=list", "", b"")).status, 200);
        client
    });
    // Each of them has made room.
    for stranger in asking {
        stranger.join().unwrap();
    }
}

/// What is public costs nobody a credential, so it must not keep those out who have one.
#[test]
fn connections_that_were_served_what_is_public_make_room_for_others() {
    let limits = Limits { connections: 2, connections_per_address: 1, ..Limits::default() };
    let server = start_with(Limits { displaced: Duration::from_millis(50), ..limits }, false);
    // By another port, which has places of its own.
    let (mut owner, public) = (Client::to(server.dfs), "x-ms-blob-public-access: blob\r\n");
    assert_eq!(owner.ask(&by_owner("PUT", "/acct/box?restype=container", public, b"")).status, 201);
    assert_eq!(owner.ask(&put_blob("/acct/box/thing", b"hello")).status, 201);
    let mut strangers = [[127, 0, 0, 2], [127, 0, 0, 3]].map(|from| client_from(from, server.blob));
    for stranger in &mut strangers {
        assert_eq!(stranger.ask(&raw("GET", "/acct/box/thing", "", b"")).status, 200);
    }
    let _clients = [[127, 0, 0, 4], [127, 0, 0, 5]].map(|from| {
        let mut client = client_from(from, server.blob);
        assert_eq!(client.ask(&signed("GET", "/acct/box/thing", "", b"")).status, 200);
        client
    });
    assert!(strangers.iter_mut().all(Client::is_closed), "each of them has made room");
}

/// Heads that are sent slowly or never come to their end are held in memory, and nobody has signed them.
#[test]
fn heads_without_end_take_little_memory() {
    const HELD: usize = 64 * 1024;
    const HEAD: usize = 16 * 1024;
    const STRANGERS: usize = 20;
    let patient = Duration::from_secs(3600);
    let limits = Limits { unfinished_heads: HELD, first_request: patient, head: patient, ..Limits::default() };
    let server = start_with(limits, false).with_blob(b"hello");
    let unfinished = format!("GET /acct/box/thing HTTP/1.1\r\nx-ms-meta-a: {}", "a".repeat(HEAD));
    let mut strangers: Vec<TcpStream> = (0..STRANGERS)
        .map(|_| {
            let mut stranger = server.client();
            // It may be closed before all of it was sent.
            stranger.try_send(unfinished.as_bytes());
            stranger.tcp.set_nonblocking(true).unwrap();
            stranger.tcp
        })
        .collect();
    let began = std::time::Instant::now();
    loop {
        let is_open = |stranger: &mut TcpStream| {
            stranger.read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        };
        strangers.retain_mut(is_open);
        // One that is short, or that came when there was room, may wait on.
        if strangers.len() * HEAD <= HELD + STRANGERS * 4 * 1024 {
            break;
        }
        assert!(began.elapsed() < support::PATIENCE, "{} heads without end are held", strangers.len());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(server.client().ask(&signed("GET", "/acct/box/thing", "", b"")).status, 200);
    // When they have gone, there is room for a long head that comes in pieces.
    drop(strangers);
    let long = signed("GET", "/acct/box/thing", &format!("x-ms-meta-a: {}\r\n", "a".repeat(HEAD)), b"");
    let mut client = server.client();
    while !client.try_send(&long) || client.is_closed() {
        client = server.client();
    }
    assert_eq!(client.receive().status, 200);
}

/// A list of a public container is long, and whoever asks for one need not read it.
#[test]
fn public_lists_that_nobody_reads_take_little_memory() {
    let patient = Duration::from_secs(3600);
    let limits = Limits { public_answers: 1024 * 1024, write_pause: patient, ..Limits::default() };
    let server = start_with(limits, false);
    let (mut owner, public) = (server.client(), "x-ms-blob-public-access: container\r\n");
    assert_eq!(owner.ask(&by_owner("PUT", "/acct/box?restype=container", public, b"")).status, 201);
    for number in 0..400 {
        let name = format!("/acct/box/{number:03}{}", "x".repeat(900));
        assert_eq!(owner.ask(&put_blob(&name, b"")).status, 201);
    }
    let list = raw("GET", "/acct/box?restype=container&comp=list", "", b"");
    let answer = server.client().ask(&list);
    assert_eq!(answer.status, 200);
    assert!((512 * 1024..1024 * 1024).contains(&answer.body.len()), "{} bytes", answer.body.len());
    // More than the system holds for a client that does not read, so that one answer waits in the server.
    let mut deaf = server.client();
    deaf.send(&list.repeat(400));
    let began = std::time::Instant::now();
    let ask_until = |status: u16| loop {
        let answer = server.client().ask(&list);
        if answer.status == status {
            return answer.code().to_owned();
        }
        assert!(began.elapsed() < support::PATIENCE, "{} and not {status}", answer.status);
    };
    assert_eq!(ask_until(503), "ServerBusy");
    assert_eq!(owner.ask(&signed("GET", "/acct/box?restype=container&comp=list", "", b"")).status, 200);
    drop(deaf);
    ask_until(200);
}

/// On the admin port nobody signs in, so whoever asks next gets the place of who has been silent longest.
#[test]
fn the_admin_port_cannot_be_filled_by_who_asked_once() {
    let limits = Limits { admin_connections: 4, displaced: Duration::from_millis(50), ..Limits::default() };
    let server = start_with(limits, false);
    let ask = |client: &mut Client| client.ask(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").status;
    let mut strangers: Vec<Client> = [[127, 0, 0, 2], [127, 0, 0, 2], [127, 0, 0, 3], [127, 0, 0, 3]]
        .map(|from| client_from(from, server.admin))
        .into();
    for stranger in &mut strangers {
        assert_eq!(ask(stranger), 200);
    }
    for _ in 0..3 {
        assert_eq!(ask(&mut client_from([127, 0, 0, 4], server.admin)), 200);
    }
}

/// Where there is no room, a refusal that nobody takes is not waited for, either.
#[test]
fn a_client_that_does_not_read_its_refusals_makes_room() {
    let limits = Limits { connections: 1, connections_per_address: 1, ..Limits::default() };
    let soon = Duration::from_millis(50);
    let server = start_with(Limits { displaced: soon, first_request: soon, ..limits }, false);
    let mut deaf = client_from([127, 0, 0, 2], server.blob);
    deaf.tcp.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let request = raw("GET", "/acct?comp=list", "", b"");
    while deaf.try_send(&request) {}
    let mut client = client_from([127, 0, 0, 3], server.blob);
    assert_eq!(client.ask(&signed("GET", "/acct?comp=list", "", b"")).status, 200);
}

/// Asks the admin port to move the clock, as curl does it, with these headers.
fn move_clock(server: &support::Running, headers: &str) -> u16 {
    let body = "{\"advance_seconds\": 1}";
    let request = format!("POST /test/clock HTTP/1.1\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
    Client::to(server.admin).ask(request.as_bytes()).status
}

#[test]
fn the_admin_port_is_for_who_calls_it_by_its_name() {
    let server = start();
    for headers in [
        "Host: 127.0.0.1:10010\r\n",
        "Host: [::1]\r\n",
        "Host: 10.1.2.3:10010\r\n",
        "Host: LOCALHOST:10010\r\n",
        "Host: a.localhost\r\n",
        "Host: admin.example.org\r\n",
    ] {
        assert_eq!(move_clock(&server, headers), 200, "{headers}");
    }
    // The name of a page's own server, led to this address.
    for headers in [
        "Host: rebound.example.org\r\n",
        "Host: rebound.example.org:10010\r\n",
        "Host: rebound.example.org\r\nOrigin: http://rebound.example.org\r\nSec-Fetch-Site: same-origin\r\n",
        "Host: 127.0.0.1.example.org\r\n",
        "Host: localhost.example.org\r\n",
        "Host: localhost\r\nHost: rebound.example.org\r\n",
        "",
    ] {
        assert_eq!(move_clock(&server, headers), 403, "{headers}");
    }
}

#[test]
fn pages_of_other_sites_do_not_get_through_the_admin_port() {
    let server = start();
    let ask = |path: &str, headers: &str| {
        Client::to(server.admin).ask(format!("GET {path} HTTP/1.1\r\n{headers}\r\n").as_bytes())
    };
    for headers in [
        "Host: localhost:10010\r\nOrigin: http://LOCALHOST:10010\r\n",
        "Host: localhost:10010\r\nOrigin: http://localhost:10010\r\nSec-Fetch-Site: same-origin\r\n",
        // Somebody typed the address.
        "Host: localhost:10010\r\nSec-Fetch-Site: none\r\n",
    ] {
        assert_eq!(move_clock(&server, headers), 200, "{headers}");
        assert_eq!(ask("/metrics", headers).status, 200, "{headers}");
    }
    for headers in [
        "Host: localhost\r\nOrigin: http://example.org\r\n",
        // A form and a simple request need no preflight.
        "Host: localhost\r\nOrigin: https://example.org\r\nContent-Type: text/plain\r\n",
        "Host: localhost\r\nSec-Fetch-Site: cross-site\r\nContent-Type: text/plain\r\n",
        "Host: localhost\r\nOrigin: null\r\n",
        // Pages can come from an address, and from another port of this machine, which is the same site for a browser.
        "Host: localhost\r\nOrigin: http://203.0.113.5\r\n",
        "Host: 127.0.0.1:10010\r\nOrigin: http://127.0.0.1:10000\r\n",
        "Host: 127.0.0.1:10010\r\nSec-Fetch-Site: same-site\r\n",
        "Host: localhost:10010\r\nOrigin: http://127.0.0.1:10010\r\n",
        "Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://example.org\r\n",
        "Host: localhost\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n",
        "Host: localhost\r\nSec-Fetch-Site: \r\n",
    ] {
        assert_eq!(move_clock(&server, headers), 403, "{headers}");
        let answer = ask("/metrics", headers);
        assert_eq!(answer.status, 403, "{headers}");
        assert!(!answer.spelled.to_ascii_lowercase().contains("access-control-"), "{headers}");
    }
}

/// Probes and scrapers call the port by names that nobody has told it.
#[test]
fn health_and_figures_are_told_whatever_the_port_is_called() {
    let server = start();
    for path in ["/health/live", "/health/ready", "/metrics"] {
        for headers in ["Host: lazurite.storage.svc:10010\r\n", ""] {
            let request = format!("GET {path} HTTP/1.1\r\n{headers}\r\n");
            assert_eq!(Client::to(server.admin).ask(request.as_bytes()).status, 200, "{path} {headers}");
        }
    }
    // A load balancer that asks in the old way names no host.
    assert_eq!(Client::to(server.admin).ask(b"GET /health/ready HTTP/1.0\r\n\r\n").status, 200);
}

#[test]
fn a_request_has_one_host() {
    let server = start().with_blob(b"hello");
    let target = format!("/acct/box/thing?{}", sas());
    for (hosts, status, code) in [
        ("Host: 127.0.0.1\r\n", 200, ""),
        ("", 400, "MissingRequiredHeader"),
        ("Host: 127.0.0.1\r\nHost: 127.0.0.1\r\n", 400, "InvalidHeaderValue"),
        ("Host: a\r\nHost: b\r\n", 400, "InvalidHeaderValue"),
        ("Host: a b\r\n", 400, "InvalidHeaderValue"),
    ] {
        let answer = server.client().ask(format!("GET {target} HTTP/1.1\r\n{hosts}\r\n").as_bytes());
        assert_eq!((answer.status, answer.code()), (status, code), "{hosts}");
    }
}

#[test]
fn failed_sign_ins_are_counted() {
    let server = start().with_blob(b"hello");
    for _ in 0..3 {
        let answer = server.client().ask(&raw("GET", "/acct/box/thing?sv=2021-12-02&sig=AAAA", "", b""));
        assert_eq!(answer.status, 403);
    }
    // No signature at all is no failure to sign in.
    server.client().ask(&raw("GET", "/acct/box/thing", "", b""));
    // Whoever may write must not guess what opens a source, either.
    let source = format!("http://127.0.0.1:{}/acct/box/thing?sv=2021-12-02&sig=AAAA", server.blob.port());
    let headers = format!("x-ms-copy-source: {source}\r\n");
    assert!(server.client().ask(&signed("PUT", "/acct/box/copy", &headers, b"")).status >= 400);
    let metrics = Client::to(server.admin).ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(metrics.text().contains("\nlazurite_authentication_failures_total 4\n"));
    assert!(metrics.text().contains("\nlazurite_authentication_failures_slowed_total 0\n"));
}

/// Who guesses is slowed down after a while, and a client at the same address is not.
#[test]
fn guesses_are_slowed_down_and_good_requests_are_not() {
    let server = start().with_blob(b"hello");
    let guess = raw("GET", "/acct/box/thing?sv=2021-12-02&sig=AAAA", "", b"");
    let slowed = || {
        let metrics = Client::to(server.admin).ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let line = "lazurite_authentication_failures_slowed_total ";
        metrics.text().lines().find_map(|text| text.strip_prefix(line)?.parse::<u64>().ok()).expect("it is counted")
    };
    // More than are free and more than are forgiven meanwhile, several at a time.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = server.client();
                for _ in 0..1_000 {
                    (0..10).for_each(|_| client.send(&guess));
                    (0..10).for_each(|_| assert_eq!(client.receive().status, 403));
                    if slowed() > 0 {
                        return;
                    }
                }
            });
        }
    });
    assert!(slowed() > 0, "nobody was slowed down");
    let before = slowed();
    let mut client = server.client();
    for _ in 0..20 {
        assert_eq!(client.ask(&signed("GET", "/acct/box/thing", "", b"")).status, 200);
    }
    assert_eq!(slowed(), before, "a good request waits for nobody");
}

/// To the end of an answer in chunks, or of the connection.
fn read_to_end(tcp: &mut TcpStream) {
    let (mut last, mut piece) = (Vec::new(), [0; 4096]);
    while !last.ends_with(b"\r\n0\r\n\r\n") {
        match tcp.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(read) => {
                last.extend_from_slice(&piece[..read]);
                last.drain(..last.len().saturating_sub(16));
            }
        }
    }
}

/// More of them than there are threads that serve requests, each busy for seconds.
#[test]
fn health_is_answered_while_costly_queries_run() {
    let server = start().with_blob(b"");
    let record = format!("{}\n", "a".repeat(50_000));
    assert_eq!(server.client().ask(&put_blob("/acct/box/thing", record.repeat(200).as_bytes())).status, 201);
    let expression = format!("SELECT COUNT(*) FROM BlobStorage WHERE _1 LIKE '%_{}b%'", "a".repeat(200));
    let body = format!("<QueryRequest><QueryType>SQL</QueryType><Expression>{expression}</Expression></QueryRequest>");
    let (tell, told) = mpsc::channel();
    let mut asked = Vec::new();
    for _ in 0..4 {
        let mut client = server.client();
        client.send(&signed("POST", "/acct/box/thing?comp=query", "", body.as_bytes()));
        // The answer begins before the work does.
        assert_eq!(client.receive_head().status, 200);
        asked.push(client.tcp.try_clone().unwrap());
        let tell = tell.clone();
        std::thread::spawn(move || {
            read_to_end(&mut client.tcp);
            let _ = tell.send("a query has ended");
        });
    }
    for _ in 0..3 {
        assert_eq!(health(&server), 200);
    }
    let _ = tell.send("health was answered");
    assert_eq!(told.recv_timeout(support::PATIENCE).unwrap(), "health was answered");
    for client in asked {
        let _ = client.shutdown(std::net::Shutdown::Both);
    }
}

/// As a server is without `--copy-sources`: whatever a source on this machine is called, nobody goes there.
#[test]
fn copies_come_from_this_server_alone() {
    let choice = Choice { copy_sources: fetch::Hosts::default(), ..Choice::default() };
    let server = start_as(choice).with_blob(b"hello");
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    other.set_nonblocking(true).unwrap();
    let other_port = other.local_addr().unwrap().port();
    let copy = |source: &str, sync: &str| {
        let headers = format!("x-ms-blob-type: BlockBlob\r\nx-ms-copy-source: {source}\r\n{sync}");
        server.client().ask(&signed("PUT", "/acct/box/copy", &headers, b"")).status
    };
    for port in [other_port, server.admin.port()] {
        for host in [
            "127.0.0.1",
            "localhost",
            "LOCALHOST.",
            "a.blob.localhost",
            "127.1",
            "127.0.0.2",
            "2130706433",
            "0x7f.0.0.1",
            "0.0.0.0",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::7f00:1]",
        ] {
            for sync in ["", "x-ms-requires-sync: true\r\n"] {
                let status = copy(&format!("http://{host}:{port}/metrics"), sync);
                assert!((400..500).contains(&status), "{host}:{port}: {status}");
            }
        }
    }
    assert!(other.accept().is_err(), "somebody came");
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let source = format!("http://{host}:{}/acct/box/thing?{}", server.blob.port(), sas());
        assert_eq!(copy(&source, ""), 201, "{source}");
    }
}

/// An operator who names a host has not named those that the host sends us to.
#[test]
fn a_source_that_sends_us_elsewhere_is_not_followed() {
    let listen = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (named, other) = (listen(), listen());
    other.set_nonblocking(true).unwrap();
    let (named_at, other_at) = (named.local_addr().unwrap(), other.local_addr().unwrap());
    let choice = Choice { copy_sources: named_at.to_string().parse().unwrap(), ..Choice::default() };
    let server = start_as(choice).with_blob(b"hello");
    let moved = ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"];
    let syncs = ["", "x-ms-requires-sync: true\r\n"];
    let answering = std::thread::spawn(move || {
        for status in moved.iter().flat_map(|status| syncs.map(|_| status)) {
            let (mut tcp, _) = named.accept().unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                let mut piece = [0; 1024];
                let read = tcp.read(&mut piece).unwrap();
                asked.extend_from_slice(&piece[..read]);
            }
            let head = format!("HTTP/1.1 {status}\r\nLocation: http://{other_at}/secret\r\nContent-Length: 0\r\n\r\n");
            tcp.write_all(head.as_bytes()).unwrap();
        }
    });
    for (status, sync) in moved.iter().flat_map(|status| syncs.map(|sync| (status, sync))) {
        let headers = format!("x-ms-copy-source: http://{named_at}/source\r\n{sync}");
        let answer = server.client().ask(&signed("PUT", "/acct/box/copy", &headers, b""));
        assert_eq!((answer.status, answer.code()), (412, "CannotVerifyCopySource"), "{status}");
    }
    answering.join().unwrap();
    assert!(other.accept().is_err(), "somebody came");
    assert_eq!(server.client().ask(&signed("HEAD", "/acct/box/copy", "", b"")).status, 404);
}
