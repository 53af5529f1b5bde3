//! Two protocols on one listener: HTTP, and one that says each line again.

use std::sync::atomic::AtomicU64;

use http::{Request, Response};
use hyper::body::Incoming;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use wire::http::ReplyBody;

use super::*;
use crate::body::AnswerBody;
use crate::http1::{Answers, Http1};
use crate::stream::Traffic;

/// Only against hanging.
const PATIENCE: Duration = Duration::from_secs(20);
const HOUR: Duration = Duration::from_secs(3600);

/// Says each line again. `wait` is answered once `go_on` was rung, `panic` never.
#[derive(Debug, Default)]
struct Lines {
    /// How many `wait` have begun.
    waiting: Arc<AtomicU64>,
    go_on: Arc<Notify>,
}

impl Protocol for Lines {
    async fn converse(&self, socket: &mut Socket, connection: &Connection) {
        let mut socket = BufReader::new(socket);
        loop {
            let mut line = String::new();
            let read = tokio::select! {
                read = socket.read_line(&mut line) => read,
                () = connection.ending() => return,
            };
            if !matches!(read, Ok(1..)) {
                return;
            }
            connection.activity.admit();
            match line.trim() {
                "panic" => panic!("this test panics on purpose"),
                "wait" => {
                    self.waiting.fetch_add(1, Ordering::Relaxed);
                    self.go_on.notified().await;
                }
                _ => {}
            }
            if socket.write_all(line.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// Answers every request with `hello`.
#[derive(Debug)]
struct Hello;

impl Answers for Hello {
    async fn answer(&self, _: Request<Incoming>, _: SocketAddr, traffic: Arc<Traffic>) -> Response<AnswerBody> {
        traffic.activity.admit();
        Response::new(AnswerBody::new(ReplyBody::Bytes("hello".into()), traffic))
    }
}

/// Both protocols, each on a port of its own.
struct Both {
    connections: Connections,
    lines: SocketAddr,
    http: SocketAddr,
    waiting: Arc<AtomicU64>,
    go_on: Arc<Notify>,
    accepting: [JoinHandle<()>; 2],
}

fn start(limits: Limits) -> Both {
    let connections = Connections::new(limits, Arc::new(Metrics::new()));
    let port = || {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let connection_limits = connections.service_limits();
        (Port { listener, transport: Transport::Plain, connection_limits, idle: limits.idle }, address)
    };
    let ((line_port, lines), (http_port, http)) = (port(), port());
    let protocol = Lines::default();
    let (waiting, go_on) = (Arc::clone(&protocol.waiting), Arc::clone(&protocol.go_on));
    let accepting = [
        tokio::spawn(connections.clone().accept(line_port, protocol)),
        tokio::spawn(connections.clone().accept(http_port, Http1(Hello))),
    ];
    Both { connections, lines, http, waiting, go_on, accepting }
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it hangs")
}

struct Client(BufReader<TcpStream>);

impl Client {
    async fn to(address: SocketAddr) -> Client {
        Client(BufReader::new(within(TcpStream::connect(address)).await.unwrap()))
    }

    async fn send(&mut self, text: &str) {
        within(self.0.write_all(text.as_bytes())).await.unwrap();
    }

    /// The next line, or nothing if the server has closed.
    async fn line(&mut self) -> String {
        let mut line = String::new();
        let _ = within(self.0.read_line(&mut line)).await;
        line
    }

    async fn ask(&mut self, line: &str) -> String {
        self.send(line).await;
        self.line().await
    }

    async fn ask_http(&mut self) -> String {
        self.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        let mut answer = Vec::new();
        while !answer.ends_with(b"hello") {
            assert!(within(self.0.read_buf(&mut answer)).await.unwrap() > 0, "closed before the answer");
        }
        String::from_utf8(answer).unwrap()
    }

    async fn is_closed(&mut self) -> bool {
        self.line().await.is_empty()
    }
}

/// Resolves when so many connections are open.
async fn until_open(both: &Both, count: usize) {
    let mut open = both.connections.open.subscribe();
    within(open.wait_for(|open| *open == count)).await.unwrap();
}

#[tokio::test]
async fn each_port_speaks_its_protocol() {
    let both = start(Limits::default());
    let (mut lines, mut http) = (Client::to(both.lines).await, Client::to(both.http).await);
    for _ in 0..2 {
        assert_eq!(lines.ask("one\n").await, "one\n");
        let answer = http.ask_http().await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("hello"), "{answer}");
    }
}

#[tokio::test]
async fn an_address_has_as_many_connections_as_it_may_on_each_port() {
    let both = start(Limits { connections_per_address: 2, first_request: HOUR, displaced: HOUR, ..Limits::default() });
    for port in [both.lines, both.http] {
        let mut first = Client::to(port).await;
        let _second = Client::to(port).await;
        assert!(Client::to(port).await.is_closed().await, "the third of an address");
        if port == both.lines {
            assert_eq!(first.ask("still here\n").await, "still here\n");
        } else {
            assert!(first.ask_http().await.ends_with("hello"));
        }
    }
    assert_eq!(both.connections.metrics.connections_refused.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn who_asks_for_nothing_is_closed_and_who_has_asked_is_not() {
    let both = start(Limits { first_request: Duration::from_millis(100), ..Limits::default() });
    let mut has_asked = [Client::to(both.lines).await, Client::to(both.http).await];
    assert_eq!(has_asked[0].ask("one\n").await, "one\n");
    assert!(has_asked[1].ask_http().await.ends_with("hello"));
    for port in [both.lines, both.http] {
        let (mut silent, mut slow) = (Client::to(port).await, Client::to(port).await);
        slow.send("G").await;
        assert!(silent.is_closed().await && slow.is_closed().await);
    }
    until_open(&both, 2).await;
    assert_eq!(has_asked[0].ask("two\n").await, "two\n");
    assert!(has_asked[1].ask_http().await.ends_with("hello"));
}

#[tokio::test]
async fn one_slow_client_keeps_nobody_waiting() {
    let both = start(Limits::default());
    let mut slow = Client::to(both.lines).await;
    slow.send("half a l").await;
    let mut waiting = Client::to(both.lines).await;
    waiting.send("wait\n").await;
    assert_eq!(Client::to(both.lines).await.ask("quick\n").await, "quick\n");
    assert!(Client::to(both.http).await.ask_http().await.ends_with("hello"));
    assert_eq!(slow.ask("ine\n").await, "half a line\n");
    both.go_on.notify_one();
    assert_eq!(waiting.line().await, "wait\n");
}

#[tokio::test]
async fn a_panic_ends_its_own_connection_alone() {
    let both = start(Limits::default());
    let mut other = Client::to(both.lines).await;
    assert_eq!(other.ask("one\n").await, "one\n");
    assert_eq!(Client::to(both.lines).await.ask("panic\n").await, "");
    until_open(&both, 1).await;
    assert_eq!(other.ask("two\n").await, "two\n");
    assert_eq!(Client::to(both.lines).await.ask("three\n").await, "three\n");
}

#[tokio::test]
async fn at_the_end_what_has_begun_is_answered_and_silent_connections_are_closed() {
    let both = start(Limits { first_request: HOUR, shutdown: HOUR, ..Limits::default() });
    let mut silent = [Client::to(both.lines).await, Client::to(both.http).await];
    let mut idle = [Client::to(both.lines).await, Client::to(both.http).await];
    assert_eq!(idle[0].ask("one\n").await, "one\n");
    assert!(idle[1].ask_http().await.ends_with("hello"));
    let mut busy = Client::to(both.lines).await;
    busy.send("wait\n").await;
    while both.waiting.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    until_open(&both, 5).await;
    let connections = both.connections.clone();
    let ending = tokio::spawn(async move { connections.end().await });
    for client in silent.iter_mut().chain(&mut idle) {
        assert!(client.is_closed().await);
    }
    for accepting in both.accepting {
        within(accepting).await.unwrap();
    }
    assert!(TcpStream::connect(both.lines).await.is_err(), "no port accepts any longer");
    assert!(!ending.is_finished(), "the end waits for what has begun");
    both.go_on.notify_one();
    assert_eq!(busy.line().await, "wait\n");
    assert!(busy.is_closed().await);
    assert_eq!(within(ending).await.unwrap(), 0);
}

#[tokio::test]
async fn the_end_waits_no_longer_than_it_may() {
    let both = start(Limits { shutdown: Duration::from_millis(100), ..Limits::default() });
    let mut busy = Client::to(both.lines).await;
    busy.send("wait\n").await;
    while both.waiting.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(within(both.connections.end()).await, 1);
}
