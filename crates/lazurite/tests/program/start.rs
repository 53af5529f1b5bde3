//! Its lines, its refusals, its end.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::support::*;

#[test]
fn it_says_where_it_listens_and_how_to_connect() {
    let folder = Folder::new("greeting");
    let program = Program::start(&folder, &[]);
    for who in ["Blob service", "Queue service", "Table service", "File service", "Dfs service"] {
        let answer = ask(program.address(who), "GET /devstoreaccount1?comp=list HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 "), "{who}: {answer}");
    }
    let answer = ask(program.address("Admin"), "GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let said = program.said.join("\n");
    assert!(said.contains(&format!("Data folder: {}", folder.data().display())), "{said}");
    assert!(said.contains("Durability: full") && said.contains("AccountName=devstoreaccount1;"), "{said}");
    program.stop();
}

#[test]
fn silent_is_silent() {
    let folder = Folder::new("silent");
    let program = Program::start(&folder, &["--silent"]);
    ask(program.address("Blob"), "GET /devstoreaccount1/c/b HTTP/1.1\r\nHost: x\r\n\r\n");
    let said = program.stop();
    assert_eq!(said.len(), 7, "{said:?}");
    assert!(
        said.iter().all(|line| line.contains(" is listening at http://127.0.0.1:") || line == "Ready."),
        "{said:?}"
    );
}

#[test]
fn the_access_log_has_every_request_and_no_signature() {
    let folder = Folder::new("log");
    let program = Program::start(&folder, &[]);
    let request = "GET /devstoreaccount1/c/b?sv=2021-12-02&sig=topsecret HTTP/1.1\r\nHost: x\r\n\r\n";
    ask(program.address("Blob"), request);
    let said = program.stop().join("\n");
    assert!(said.contains("\"GET /devstoreaccount1/c/b?sv=2021-12-02&sig=REDACTED HTTP/1.1\" 403 "), "{said}");
    assert!(!said.contains("topsecret"));
}

#[test]
fn the_debug_log_has_every_request_with_why_it_was_refused_and_no_secret() {
    let folder = Folder::new("debug");
    let file = folder.0.join("debug.log");
    std::fs::write(&file, "before\n").unwrap();
    let program = Program::start(&folder, &["--debug", file.to_str().unwrap()]);
    let request = "GET /devstoreaccount1/c/b?sv=2021-12-02&sig=topsecret HTTP/1.1\r\nHost: x\r\nx-ms-client-request-id: mine\r\n\r\n";
    ask(program.address("Blob"), request);
    let signed =
        "GET /devstoreaccount1/c/b HTTP/1.1\r\nHost: x\r\nAuthorization: SharedKey devstoreaccount1:topsecret\r\n\r\n";
    ask(program.address("Blob"), signed);
    ask(program.address("Table"), "GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: x\r\n\r\n");
    program.stop();
    let log = std::fs::read_to_string(&file).unwrap();
    assert!(log.starts_with("before\n") && !log.contains("topsecret"), "{log}");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(" HTTP/1.1 {host: x")).collect();
    assert_eq!(lines.len(), 3, "{log}");
    for (line, parts) in lines.iter().zip([
        &[
            "GET /devstoreaccount1/c/b?sv=2021-12-02&sig=REDACTED",
            "x-ms-client-request-id: mine",
            "caller=unknown",
            "refused=AuthenticationFailed: ",
            "answer=403 {",
            "x-ms-request-id: ",
        ][..],
        &["authorization: SharedKey devstoreaccount1:REDACTED", "refused=", "answer=4"],
        &["operation=QueryTables", "caller=anonymous", "refused="],
    ]) {
        for part in parts {
            assert!(line.contains(part), "{part} is not in {line}");
        }
    }
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_port_in_use_is_named_with_its_flag() {
    let folder = Folder::new("port");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = refusal(&mut command(&folder, &["--table-port", &port]));
    assert!(said.contains(&port) && said.contains("--table-port") && said.lines().count() == 1, "{said}");
    assert!(!folder.data().exists(), "the data folder was touched");
}

#[test]
fn a_data_folder_has_one_server() {
    let folder = Folder::new("twice");
    let program = Program::start(&folder, &[]);
    let said = refusal(&mut command(&folder, &[]));
    assert!(said.contains("in use"), "{said}");
    program.stop();
}

#[test]
fn the_key_that_everybody_knows_stays_on_loopback() {
    let folder = Folder::new("key");
    let said = refusal(&mut command(&folder, &["--host", "0.0.0.0"]));
    assert!(said.contains("everybody knows") && said.contains("--azurite-compat"), "{said}");
    Program::start(&folder, &["--host", "0.0.0.0", "--azurite-compat"]).stop();
    let mut own_key = command(&folder, &["--host", "0.0.0.0"]);
    let mut program = Program::spawn(own_key.env("AZURITE_ACCOUNTS", "mine:c2VjcmV0"));
    program.wait_for("Ready.");
    assert!(program.said.iter().all(|line| !line.contains("c2VjcmV0")), "{:?}", program.said);
    program.stop();
}

#[test]
fn the_test_clock_goes_forward_and_stays_there() {
    let folder = Folder::new("clock");
    let advance = |program: &Program| {
        let body = "{\"advance_seconds\": 60}";
        let length = body.len();
        let request = format!("POST /test/clock HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}");
        ask(program.address("Admin"), &request)
    };
    let program = Program::start(&folder, &["--test-clock"]);
    assert!(advance(&program).ends_with("{\"offset_seconds\":60}"));
    program.stop();
    let program = Program::start(&folder, &["--test-clock"]);
    assert!(advance(&program).ends_with("{\"offset_seconds\":120}"));
    program.stop();
    let program = Program::start(&folder, &[]);
    assert!(advance(&program).starts_with("HTTP/1.1 404 "));
    program.stop();
}

#[test]
fn check_says_whether_a_folder_is_clean() {
    let folder = Folder::new("check");
    Program::start(&folder, &[]).stop();
    let output = bare(env!("CARGO_BIN_EXE_lazurite")).arg("check").arg(folder.data()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().ends_with("clean\n"));
    let said = refusal(bare(env!("CARGO_BIN_EXE_lazurite")).arg("check").arg(folder.0.join("nothing")));
    assert!(said.contains("cannot be checked"), "{said}");
}

#[test]
fn both_signals_end_it_in_good_order_under_load() {
    for signal in ["-TERM", "-INT"] {
        let folder = Folder::new(&format!("signal{signal}"));
        let mut program = Program::start(&folder, &["--silent"]);
        let address = program.address("Blob");
        let (stop, whole, cut) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let (stop, whole, cut) = (Arc::clone(&stop), Arc::clone(&whole), Arc::clone(&cut));
                std::thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        match one_request(address) {
                            Some(true) => whole.fetch_add(1, Ordering::Relaxed),
                            Some(false) => cut.fetch_add(1, Ordering::Relaxed),
                            None => 0,
                        };
                    }
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        program.signal(signal);
        assert_eq!(program.wait().code(), Some(0));
        stop.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
        assert!(whole.load(Ordering::Relaxed) > 0);
        assert_eq!(cut.load(Ordering::Relaxed), 0, "answers were cut off");
    }
}

/// Whether an answer came whole; `None`: nothing came at all, so the request never began.
fn one_request(address: SocketAddr) -> Option<bool> {
    let mut tcp = TcpStream::connect(address).ok()?;
    tcp.set_read_timeout(Some(PATIENCE)).ok()?;
    tcp.write_all(b"GET /devstoreaccount1/c/b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    let read = tcp.read_to_string(&mut answer);
    if answer.is_empty() {
        return None;
    }
    Some(read.is_ok() && answer.ends_with("</Error>"))
}
