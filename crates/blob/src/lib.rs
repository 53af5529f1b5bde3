//! The Blob service.
//!
//! [`Op::named_by`] says which operation a request names, [`BlobService::run`] runs it. Each operation has its own file
//! under `ops`, in three parts: `parse` turns the request into values that cannot be wrong, `decide` judges them against
//! what is stored, as a pure function, and `run` takes the two to the engine and writes the answer. The order of the
//! checks in `decide` is part of the protocol: a request with two faults gets the error that the service would give.
//!
//! What always holds:
//!
//! - Every decision on a blob reads the row of its container in the same step, so nothing can be written into a
//!   container that is being deleted.
//! - An upload is judged twice: before its body is read, to refuse early, and when it is committed, which is what counts.
//! - A refusal changes nothing. Bytes that were uploaded for it are given back.

mod blocks;
mod codec;
mod collect;
mod cors;
#[cfg(test)]
mod crashes;
mod download;
mod error;
mod keeping;
mod lease_action;
mod listing;
mod model;
mod op;
mod ops;
mod pages;
mod reply;
mod request;
mod route;
#[cfg(test)]
mod testing;
mod upload;

use std::sync::Arc;

use auth::delegation::Secret;
use auth::{Caller, Settings};
use concurrency::Timestamp;
use engine::{Engine, EngineError, NotCommitted};
use wire::http::{Body, BodyError, Head, Reply};
use wire::names::ContainerName;
use wire::xml::SignedIdentifier;

pub use error::BlobError;
pub use model::PublicAccess;
pub use op::Op;

/// The service over one engine.
#[derive(Clone, Debug)]
pub struct BlobService {
    engine: Arc<dyn Engine>,
    rules: Arc<cors::KnownRules>,
}

/// Who asks, for the few operations that differ by it. That they may has been checked.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    pub caller: &'a Caller,
    /// The time by which the caller was judged. Clients sign with their own clocks, so a test clock has no say in it.
    pub now: Timestamp,
    /// What the account is like.
    pub settings: &'a Settings,
    /// What user delegation keys are made from.
    pub secret: Secret<'a>,
}

/// The settings of an account that nothing was said about.
static USUAL: Settings = Settings::USUAL;

impl Asker<'_> {
    /// Somebody who holds the account's key.
    const OWNER: Asker<'static> =
        Asker { caller: &Caller::Owner, now: Timestamp(0), settings: &USUAL, secret: Secret(None) };

    /// The right to create ends where something is already there; only the operation can see that.
    fn reach(&self) -> Reach {
        if self.caller.has(b'w') { Reach::Overwrite } else { Reach::CreateOnly }
    }
}

/// How far the right to create goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// The caller may also write.
    Overwrite,
    /// The caller may create (signature permission `c` without `w`): what exists stays as it is.
    CreateOnly,
}

/// Why a request has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The service says no: an answer like any other.
    Refused(BlobError),
    /// The engine could not do it.
    Failed(EngineError),
    /// The body did not arrive.
    Body(BodyError),
}

/// What a container says about who may come in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerAccess {
    pub public: PublicAccess,
    pub policies: Vec<SignedIdentifier>,
}

impl BlobService {
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>) -> BlobService {
        BlobService { engine, rules: Arc::default() }
    }

    /// Runs an operation for the owner of the account.
    pub async fn run(&self, op: Op, head: &Head, account: u64, body: &mut dyn Body) -> Result<Reply, Failure> {
        self.run_for(Asker::OWNER, op, head, account, body).await
    }

    /// Runs an operation for a caller who may.
    pub async fn run_for(
        &self,
        asker: Asker<'_>,
        op: Op,
        head: &Head,
        account: u64,
        body: &mut dyn Body,
    ) -> Result<Reply, Failure> {
        let call = ops::Call { engine: &*self.engine, account, head, reach: asker.reach(), asker };
        ops::run(op, call, body).await
    }

    /// The rules for pages of other sites that an account has, if it has any.
    pub async fn cors(&self, account: u64) -> Result<Option<cors::Rules>, EngineError> {
        self.rules.of(&*self.engine, account).await
    }

    /// Public access and stored policies of a container. One that is not there lets nobody in.
    pub async fn access(&self, account: u64, container: &str) -> Result<ContainerAccess, EngineError> {
        let Ok(name) = ContainerName::parse(container) else { return Ok(ContainerAccess::default()) };
        let found = engine::read::<_, std::convert::Infallible, _>(&*self.engine, |rows, _| {
            Ok(model::find_container(rows, account, &name)?)
        });
        match found.await {
            Ok(found) => Ok(found.map_or_else(ContainerAccess::default, |container| ContainerAccess {
                public: container.public,
                policies: container.policies.into_iter().map(Into::into).collect(),
            })),
            Err(NotCommitted::Refused(never)) => match never {},
            Err(NotCommitted::Failed(error)) => Err(error),
        }
    }
}

impl From<BlobError> for Failure {
    fn from(error: BlobError) -> Failure {
        Failure::Refused(error)
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        Failure::Failed(error)
    }
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Failure {
        Failure::Body(error)
    }
}

impl From<NotCommitted<BlobError>> for Failure {
    fn from(error: NotCommitted<BlobError>) -> Failure {
        match error {
            NotCommitted::Refused(error) => Failure::Refused(error),
            NotCommitted::Failed(error) => Failure::Failed(error),
        }
    }
}
