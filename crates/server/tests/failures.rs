//! What a client sees when the engine behind the service does not do its work.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use engine::memory::MemoryEngine;
use engine::{BoxFuture, ContentWriter, Decision, Engine, EngineError, Query, Timestamp};
use server::Limits;
use support::{Client, signed, start_on};

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

impl Engine for Faulty {
    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.fail()?;
            self.engine.commit(decision).await
        })
    }

    fn query<'a>(&'a self, query: &'a mut dyn Query) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move {
            self.fail()?;
            self.engine.query(query).await
        })
    }

    fn writer(&self, length: Option<u64>) -> Box<dyn ContentWriter> {
        self.engine.writer(length)
    }

    fn now(&self) -> Timestamp {
        self.engine.now()
    }

    fn advance_clock(&self, seconds: u64) -> BoxFuture<'_, Result<u64, EngineError>> {
        self.engine.advance_clock(seconds)
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.engine.figures()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        self.engine.close()
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
