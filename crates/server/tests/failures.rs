//! What a client sees when the engine behind the service does not do its work.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use engine::memory::MemoryEngine;
use engine::{BoxFuture, Decision, Engine, EngineError, Query, Wrapper};
use server::Limits;
use support::{Client, put_blob, raw, signed, start, start_on};

/// The reference engine, until a fault is switched on.
#[derive(Debug, Default)]
struct Faulty {
    engine: MemoryEngine,
    fault: AtomicU8,
}

const FINE: u8 = 0;
const BUSY: u8 = 1;
const FULL: u8 = 2;
const CORRUPT: u8 = 3;
const PANIC: u8 = 4;
/// The data folder was taken away.
const GONE: u8 = 6;
/// Everything works, in a few seconds.
const SLOW: u8 = 5;

impl Faulty {
    fn fail(&self) -> Result<(), EngineError> {
        match self.fault.load(Ordering::Relaxed) {
            BUSY => Err(EngineError::Busy),
            FULL => Err(EngineError::Full),
            CORRUPT => Err(EngineError::Corrupt("row /secret/place".into())),
            PANIC => panic!("this test panics on purpose"),
            _ => Ok(()),
        }
    }
}

impl Wrapper for Faulty {
    fn inner(&self) -> &dyn Engine {
        &self.engine
    }

    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.fail()?;
            if self.fault.load(Ordering::Relaxed) == SLOW {
                tokio::time::sleep(Duration::from_secs(4)).await;
            }
            self.engine.commit(decision).await
        })
    }

    fn query(&self, query: Box<dyn Query>) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.fail()?;
            self.engine.query(query).await
        })
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let is_full = self.fault.load(Ordering::Relaxed) == FULL;
        let is_gone = self.fault.load(Ordering::Relaxed) == GONE;
        let troubles = [("disk_full", u64::from(is_full)), ("folder_gone", u64::from(is_gone))];
        self.engine.figures().into_iter().chain(troubles).collect()
    }
}

#[test]
fn every_failure_has_its_answer_and_the_connection_lives_on() {
    let engine = Arc::new(Faulty::default());
    let server = start_on(Arc::clone(&engine) as _, Limits::default(), false).with_blob(b"hello");
    let mut client: Client = server.client();
    for (fault, status, code) in [
        (BUSY, 503, "ServerBusy"),
        (FULL, 503, "ServerBusy"),
        (CORRUPT, 500, "InternalError"),
        (PANIC, 500, "InternalError"),
    ] {
        engine.fault.store(fault, Ordering::Relaxed);
        let answer = client.ask(&signed("GET", "/acct/box/thing", "", b""));
        assert_eq!((answer.status, answer.code()), (status, code));
        assert!(!answer.text().contains("secret") && !answer.reason.contains("secret"), "{answer:?}");
        assert_eq!(answer.headers.contains_key("retry-after"), status == 503);
        engine.fault.store(FINE, Ordering::Relaxed);
        assert_eq!(client.ask(&signed("GET", "/acct/box/thing", "", b"")).text(), "hello");
    }
}

#[test]
fn who_does_not_want_to_wait_is_told_when_time_is_up() {
    let engine = Arc::new(Faulty::default());
    let server = start_on(Arc::clone(&engine) as _, Limits::default(), false).with_blob(b"hello");
    let mut client: Client = server.client();
    engine.fault.store(SLOW, Ordering::Relaxed);
    let began = Instant::now();
    let answer = client.ask(&put_blob("/acct/box/thing?timeout=1", b"other"));
    assert_eq!((answer.status, answer.code()), (500, "OperationTimedOut"));
    assert!((1..3).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    // Reads do not wait here, and the connection lives on.
    assert_eq!(client.ask(&signed("GET", "/acct/box/thing?timeout=1", "", b"")).status, 200);
    engine.fault.store(FINE, Ordering::Relaxed);
    assert_eq!(client.ask(&put_blob("/acct/box/thing?timeout=1", b"other")).status, 201);
}

#[test]
fn a_body_that_does_not_come_in_time() {
    let server = start().with_blob(b"hello");
    let mut client = server.client();
    let request = put_blob("/acct/box/thing?timeout=1", b"0123456789");
    client.send(&request[..request.len() - 5]);
    let answer = client.receive();
    assert_eq!((answer.status, answer.code()), (500, "OperationTimedOut"));
    assert_eq!(answer.header("connection"), "close");
    assert!(client.is_closed());
    assert_eq!(server.client().ask(&signed("GET", "/acct/box/thing", "", b"")).text(), "hello");
}

#[test]
fn a_time_that_is_none() {
    let server = start().with_blob(b"hello");
    for (timeout, status) in [("30", 200), ("0", 200), ("99999", 200), ("-1", 400), ("soon", 400), ("1.5", 400)] {
        let answer = server.client().ask(&signed("GET", &format!("/acct/box/thing?timeout={timeout}"), "", b""));
        assert_eq!(answer.status, status, "{timeout}");
        if status == 400 {
            assert_eq!(answer.code(), "InvalidQueryParameterValue");
            assert!(answer.text().contains("<QueryParameterName>timeout</QueryParameterName>"), "{}", answer.text());
        }
    }
}

#[test]
fn with_a_full_disk_others_should_be_asked() {
    let engine = Arc::new(Faulty::default());
    let server = start_on(Arc::clone(&engine) as _, Limits::default(), false);
    let mut admin = Client::to(server.admin);
    let troubles = [(FULL, "disk full"), (GONE, "data folder gone")];
    let each = troubles.iter().flat_map(|(fault, word)| [(FINE, 200, "ready"), (*fault, 503, *word)]);
    for (fault, status, word) in each.chain([(FINE, 200, "ready")]) {
        engine.fault.store(fault, Ordering::Relaxed);
        let answer = admin.ask(&raw("GET", "/health/ready", "", b""));
        assert_eq!((answer.status, answer.text()), (status, format!("{{\"status\":\"{word}\"}}").as_str()));
        assert_eq!(admin.ask(&raw("GET", "/health/live", "", b"")).status, 200);
    }
}
