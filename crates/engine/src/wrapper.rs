//! Engines around engines: a wrapper says what it does differently, and the engine inside does the rest.

use std::fmt::Debug;

use crate::{BoxFuture, ContentWriter, Decision, Engine, EngineError, Query, Timestamp};

/// An engine around another one. Each method calls the same method of the engine inside, so an implementation
/// writes only those that differ; every wrapper is an [`Engine`].
///
/// Import it only where a wrapper is written: its methods have the names of the engine's.
pub trait Wrapper: Debug + Send + Sync {
    /// The engine inside.
    fn inner(&self) -> &dyn Engine;

    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        self.inner().commit(decision)
    }

    fn query(&self, query: Box<dyn Query>) -> BoxFuture<'_, Result<(), EngineError>> {
        self.inner().query(query)
    }

    fn writer(&self, length: Option<u64>) -> Box<dyn ContentWriter> {
        self.inner().writer(length)
    }

    fn advance_clock(&self, seconds: u64) -> BoxFuture<'_, Result<u64, EngineError>> {
        self.inner().advance_clock(seconds)
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.inner().figures()
    }
}

impl<W: Wrapper> Engine for W {
    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        Wrapper::commit(self, decision)
    }

    fn query(&self, query: Box<dyn Query>) -> BoxFuture<'_, Result<(), EngineError>> {
        Wrapper::query(self, query)
    }

    fn writer(&self, length: Option<u64>) -> Box<dyn ContentWriter> {
        Wrapper::writer(self, length)
    }

    fn now(&self) -> Timestamp {
        self.inner().now()
    }

    fn advance_clock(&self, seconds: u64) -> BoxFuture<'_, Result<u64, EngineError>> {
        Wrapper::advance_clock(self, seconds)
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        Wrapper::figures(self)
    }

    fn close(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        self.inner().close()
    }
}
