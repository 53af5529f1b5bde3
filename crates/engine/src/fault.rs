//! An engine that fails on purpose: errors and crashes between any two steps.
//!
//! Each touch of the engine is a numbered step. A plan says what happens at which; the same plan gives the same run, so a
//! test can walk all steps of an operation and look at what each failure leaves behind.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;

use crate::{BoxFuture, ContentId, ContentWriter, Decision, Engine, EngineError, Query, Staged, Wrapper};

/// What happens at a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    None,
    /// It fails before anything is done.
    Before(EngineError),
    /// It is done, but the answer gets lost.
    After(EngineError),
    /// The process dies before the step: nothing works from here on.
    CrashBefore,
    /// The process dies after the step.
    CrashAfter,
}

impl Fault {
    /// Every way to fail.
    #[must_use]
    pub fn every() -> [Fault; 4] {
        let error = || EngineError::Unavailable("on purpose".into());
        [Fault::Before(error()), Fault::After(error()), Fault::CrashBefore, Fault::CrashAfter]
    }
}

/// Wraps an engine and fails by plan.
pub struct FaultyEngine {
    engine: Arc<dyn Engine>,
    steps: Arc<Steps>,
}

struct Steps {
    plan: Box<dyn Fn(u64) -> Fault + Send + Sync>,
    count: AtomicU64,
    crashed: AtomicBool,
}

impl fmt::Debug for FaultyEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyEngine").field("engine", &self.engine).field("steps", &self.steps()).finish()
    }
}

impl FaultyEngine {
    pub fn new(engine: Arc<dyn Engine>, plan: impl Fn(u64) -> Fault + Send + Sync + 'static) -> FaultyEngine {
        let steps = Steps { plan: Box::new(plan), count: AtomicU64::new(0), crashed: AtomicBool::new(false) };
        FaultyEngine { engine, steps: Arc::new(steps) }
    }

    /// Fails at one step.
    pub fn at(engine: Arc<dyn Engine>, step: u64, fault: Fault) -> FaultyEngine {
        FaultyEngine::new(engine, move |at| if at == step { fault.clone() } else { Fault::None })
    }

    /// How many steps were taken so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps.count.load(Ordering::Acquire)
    }
}

impl Steps {
    fn next(&self) -> Result<Fault, EngineError> {
        if self.crashed.load(Ordering::Acquire) {
            return Err(EngineError::Closed);
        }
        let step = self.count.fetch_add(1, Ordering::AcqRel);
        match (self.plan)(step) {
            Fault::Before(error) => Err(error),
            Fault::CrashBefore => {
                self.crashed.store(true, Ordering::Release);
                Err(EngineError::Closed)
            }
            fault => Ok(fault),
        }
    }

    fn after<T>(&self, fault: Fault, answer: Result<T, EngineError>) -> Result<T, EngineError> {
        match fault {
            Fault::After(error) => Err(error),
            Fault::CrashAfter => {
                self.crashed.store(true, Ordering::Release);
                Err(EngineError::Closed)
            }
            Fault::None | Fault::Before(_) | Fault::CrashBefore => answer,
        }
    }

    async fn around<T>(&self, step: BoxFuture<'_, Result<T, EngineError>>) -> Result<T, EngineError> {
        let fault = self.next()?;
        let answer = step.await;
        self.after(fault, answer)
    }
}

impl Wrapper for FaultyEngine {
    fn inner(&self) -> &dyn Engine {
        &*self.engine
    }

    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            let fault = self.steps.next()?;
            let answer = self.engine.commit(decision).await;
            self.steps.after(fault, answer)
        })
    }

    fn query(&self, query: Box<dyn Query>) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            let fault = self.steps.next()?;
            let answer = self.engine.query(query).await;
            self.steps.after(fault, answer)
        })
    }

    fn writer(&self, length: Option<u64>) -> Box<dyn ContentWriter> {
        Box::new(FaultyWriter { writer: self.engine.writer(length), steps: Arc::clone(&self.steps) })
    }

    fn advance_clock(&self, seconds: u64) -> BoxFuture<'_, Result<u64, EngineError>> {
        Box::pin(self.steps.around(self.engine.advance_clock(seconds)))
    }
}

struct FaultyWriter {
    writer: Box<dyn ContentWriter>,
    steps: Arc<Steps>,
}

impl ContentWriter for FaultyWriter {
    fn id(&self) -> ContentId {
        self.writer.id()
    }

    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(self.steps.around(self.writer.write(bytes)))
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<Staged, EngineError>> {
        Box::pin(async move { self.steps.around(self.writer.finish()).await })
    }
}
