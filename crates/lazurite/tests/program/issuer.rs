//! An issuer of tokens that is asked for its keys: one that changes them, one that is down, one that answers nonsense.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::support::*;
use crate::tls::ask_https;
use crate::tokens::{Signer, certificate, request};

const DISCOVERY: &str = "/tenant/.well-known/openid-configuration";

/// Serves documents by path, and counts how often each was asked for.
#[derive(Clone)]
struct FakeIssuer {
    address: SocketAddr,
    scheme: &'static str,
    documents: Arc<Mutex<HashMap<String, String>>>,
    asked: Arc<Mutex<HashMap<String, usize>>>,
}

impl FakeIssuer {
    fn start(at: SocketAddr, tls: Option<Arc<ServerConfig>>) -> FakeIssuer {
        let listener = TcpListener::bind(at).unwrap();
        let issuer = FakeIssuer {
            address: listener.local_addr().unwrap(),
            scheme: if tls.is_some() { "https" } else { "http" },
            documents: Arc::default(),
            asked: Arc::default(),
        };
        let serving = issuer.clone();
        std::thread::spawn(move || {
            for tcp in listener.incoming().map_while(Result::ok) {
                match &tls {
                    None => serving.serve(tcp),
                    Some(config) => {
                        serving.serve(StreamOwned::new(ServerConnection::new(Arc::clone(config)).unwrap(), tcp));
                    }
                }
            }
        });
        issuer
    }

    fn anywhere() -> FakeIssuer {
        FakeIssuer::start(SocketAddr::from(([127, 0, 0, 1], 0)), None)
    }

    fn serve(&self, stream: impl Read + Write) {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        if stream.read_line(&mut line).is_err() {
            return;
        }
        let mut rest = String::new();
        while rest != "\r\n" {
            rest.clear();
            stream.read_line(&mut rest).unwrap();
        }
        let path = line.split(' ').nth(1).unwrap().to_owned();
        let document = self.documents.lock().unwrap().get(&path).cloned();
        *self.asked.lock().unwrap().entry(path).or_default() += 1;
        let answer = match document {
            Some(text) if text.starts_with("HTTP/") => text,
            Some(text) => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()),
            None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        let stream = stream.get_mut();
        let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.flush());
    }

    fn name(&self) -> String {
        format!("{}://localhost:{}/tenant", self.scheme, self.address.port())
    }

    fn put(&self, path: &str, document: impl Into<String>) {
        self.documents.lock().unwrap().insert(path.to_owned(), document.into());
    }

    fn discovery(&self) -> String {
        let (name, scheme, address) = (self.name(), self.scheme, self.address);
        format!("{{\"issuer\":\"{name}\",\"jwks_uri\":\"{scheme}://localhost:{}/keys\",\"x\":[]}}", address.port())
    }

    fn has(self, signer: &Signer) -> FakeIssuer {
        self.put(DISCOVERY, self.discovery());
        self.put("/keys", signer.key_set());
        self
    }

    fn asked(&self, path: &str) -> usize {
        self.asked.lock().unwrap().get(path).copied().unwrap_or(0)
    }
}

fn start(folder: &Folder, issuer: &str, variables: &[(&str, &str)]) -> Program {
    let issuer = format!("issuer={issuer}");
    let options = ["--tls", "auto", "--oauth", &issuer, "--debug", "log.txt"];
    let mut program = Program::spawn(command(folder, &options).envs(variables.iter().copied()));
    program.wait_for("Ready.");
    program
}

fn said(program: &Program) -> String {
    program.said.iter().find(|line| line.starts_with("Bearer tokens: ")).cloned().unwrap_or_default()
}

/// The status that a request with this token gets.
fn status(program: &Program, folder: &Folder, token: &str) -> u16 {
    let answer = ask_https(program.address("Blob"), "localhost", &certificate(folder), &request(token)).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

fn wait_for_log(folder: &Folder, words: &str) {
    let log = || std::fs::read_to_string(folder.0.join("log.txt")).unwrap();
    let began = Instant::now();
    while !log().contains(words) {
        assert!(began.elapsed() < PATIENCE, "no {words} in {}", log());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn one_that_changes_its_keys() {
    let folder = Folder::new("issuer-rotates");
    let (first, second, stranger) = (Signer::new("first"), Signer::new("second"), Signer::new("stranger"));
    let issuer = FakeIssuer::anywhere().has(&first);
    let name = issuer.name();
    let program = start(&folder, &name, &[]);
    assert_eq!(said(&program), format!("Bearer tokens: those of {name} (1 key was fetched there)"));
    let asked = |token: String| status(&program, &folder, &token);
    assert_eq!(asked(first.token(&name)), 200);
    assert_eq!(asked(first.token(&format!("{name}/"))), 200);
    assert_eq!(asked(first.token("https://elsewhere.example.org/")), 401);
    assert_eq!(issuer.asked("/keys"), 1);

    // The first request with a new key is let in: the issuer is asked in between.
    issuer.put("/keys", second.key_set());
    assert_eq!(asked(second.token(&name)), 200);
    assert_eq!(asked(first.token(&name)), 401);
    assert_eq!(issuer.asked("/keys"), 2);
    // Strangers cannot make us ask again and again.
    for _ in 0..10 {
        assert_eq!(asked(stranger.token(&name)), 401);
    }
    assert_eq!(issuer.asked("/keys"), 2);

    // What is nonsense changes nothing.
    issuer.put("/keys", "nonsense");
    program.signal("-HUP");
    wait_for_log(&folder, "/keys has no keys that we can use");
    assert_eq!(asked(second.token(&name)), 200);
    program.stop();
}

#[test]
fn one_that_is_down_at_first() {
    let folder = Folder::new("issuer-down");
    let signer = Signer::new("one");
    let place = FakeIssuer {
        address: TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap(),
        ..FakeIssuer::anywhere()
    };
    let name = place.name();
    let program = start(&folder, &name, &[]);
    assert!(said(&program).contains("none yet"), "{}", said(&program));
    wait_for_log(&folder, "it cannot be reached");
    let _issuer = FakeIssuer::start(place.address, None).has(&signer);
    assert_eq!(status(&program, &folder, &signer.token(&name)), 200);
    wait_for_log(&folder, "can be fetched again");
    program.stop();
}

#[test]
fn one_that_answers_nonsense() {
    let signer = Signer::new("one");
    let issuer = FakeIssuer::anywhere().has(&signer);
    let (name, good) = (issuer.name(), issuer.discovery());
    let redirect = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n";
    let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(300_000));
    for (path, document, words) in [
        (DISCOVERY, "<html>", "is no discovery document"),
        (DISCOVERY, "{}", "names no issuer"),
        (DISCOVERY, &good.replace("/tenant\"", "/other\""), "speaks for the issuer http://localhost"),
        (DISCOVERY, &good.replace("jwks_uri", "other"), "does not say where the keys are"),
        (DISCOVERY, &good.replace("/keys", "/nowhere"), "/nowhere answers 404"),
        (DISCOVERY, redirect, "answers 302"),
        (DISCOVERY, &endless, "it sends more than is taken"),
        ("/keys", "{\"keys\":[]}", "/keys has no keys that we can use"),
    ] {
        let folder = Folder::new("issuer-nonsense");
        let _ = issuer.clone().has(&signer);
        issuer.put(path, document);
        let program = start(&folder, &name, &[]);
        assert!(said(&program).contains("none yet"), "{words}: {}", said(&program));
        wait_for_log(&folder, words);
        assert_eq!(status(&program, &folder, &signer.token(&name)), 401, "{words}");
        program.stop();
    }
}

#[test]
fn one_over_https_whose_certificate_is_trusted_or_not() {
    let folder = Folder::new("issuer-https");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let trusted = folder.0.join("authority.pem");
    std::fs::write(&trusted, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![made.cert.der().clone()], key).unwrap());
    let signer = Signer::new("one");
    let issuer = FakeIssuer::start(SocketAddr::from(([127, 0, 0, 1], 0)), Some(config)).has(&signer);
    let name = issuer.name();

    let program = start(&folder, &name, &[("SSL_CERT_FILE", trusted.to_str().unwrap())]);
    assert_eq!(status(&program, &folder, &signer.token(&name)), 200);
    // Nor does it send us to a place that is less safe.
    issuer.put(
        DISCOVERY,
        issuer.discovery().replace("\"https://localhost", "\"http://localhost").replacen("http:", "https:", 1),
    );
    program.signal("-HUP");
    wait_for_log(&folder, "which is not https");
    program.stop();

    let program = start(&folder, &name, &[("SSL_CERT_FILE", certificate(&folder).to_str().unwrap())]);
    wait_for_log(&folder, "no secure connection");
    assert_eq!(status(&program, &folder, &signer.token(&name)), 401);
    program.stop();
}

#[test]
fn what_is_no_issuer_is_refused() {
    let folder = Folder::new("issuer-refused");
    for (options, word) in [
        (&["--oauth", "issuer=nonsense"][..], "an http or https URL"),
        (&["--oauth", "issuer=http://localhost:1@example.org"], "an http or https URL"),
        (&["--oauth", "issuer=http://example.org", "--host", "0.0.0.0"], "over https"),
    ] {
        let mut command = command(&folder, options);
        let said = refusal(command.env("AZURITE_ACCOUNTS", "mine:c2VjcmV0"));
        assert!(said.contains(word) && said.trim_end().lines().last().unwrap().ends_with('.'), "{said}");
    }
}
