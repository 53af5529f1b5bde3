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

mod background_copy;
mod check;
mod collect;
#[cfg(test)]
mod crashes;
mod download;
mod error;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzzing;
mod listing;
mod model;
mod op;
mod ops;
mod reply;
mod request;
#[cfg(test)]
mod round_trips;
mod route;
mod rules;
mod source;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod website;

use std::sync::Arc;

use auth::Caller;
use content::background_copy::Copier;
use content::source::SourceReader;
use engine::{Engine, EngineError};
use service::properties::{KnownRules, Rules};
use service::{StoredPolicy, unrefused};
use wire::http::{Body, Head, Reply};
use wire::names::ContainerName;

pub use check::check;
pub use content::source::{Fetched, Outside, Running, Unreached};
pub use error::BlobError;
pub use model::PublicAccess;
pub use op::Op;
pub use service::Asker;
pub use source::BlobReader;

use ops::get_blob_service_properties::PROPERTIES;

/// The spaces of what is referred to as contents are: block lists and page maps.
pub const REFERRED: [u8; 2] = [service::space::BLOCK_LIST, service::space::PAGE_MAP];

/// The service over one engine.
#[derive(Clone, Debug)]
pub struct BlobService {
    engine: Arc<dyn Engine>,
    rules: Arc<KnownRules>,
    copier: background_copy::BlobCopier,
}

/// How far the right to create goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// The caller may also write.
    Overwrite,
    /// The caller may create (signature permission `c` without `w`): what exists stays as it is.
    CreateOnly,
}

impl Reach {
    /// The right to create ends where something is already there; only the operation can see that.
    fn of(caller: &Caller) -> Reach {
        if caller.has(b'w') { Reach::Overwrite } else { Reach::CreateOnly }
    }
}

/// Why a request has no result.
pub type Failure = service::Failure<BlobError>;

/// What a container says about who may come in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerAccess {
    pub public: PublicAccess,
    pub policies: Vec<StoredPolicy>,
}

impl BlobService {
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>) -> BlobService {
        BlobService { copier: Copier::new(Arc::clone(&engine)), engine, rules: Arc::default() }
    }

    /// Copies from elsewhere, too.
    #[must_use]
    pub fn reaching(self, outside: Arc<dyn Outside>) -> BlobService {
        BlobService { copier: self.copier.reaching(outside), ..self }
    }

    /// Copies from files of this server, too.
    #[must_use]
    pub fn copying_from(self, files: Arc<dyn SourceReader>) -> BlobService {
        BlobService { copier: self.copier.copying_from(files), ..self }
    }

    /// Runs an operation for the owner of the account.
    pub async fn run(&self, op: Op, head: &Head, account: u64, body: &mut dyn Body) -> Result<Reply, Failure> {
        self.run_for(Asker::OWNER, op, head, account, body).await
    }

    /// What the static website of an account answers. Anybody may ask.
    pub async fn website(&self, asker: Asker<'_>, head: &Head, account: u64) -> Result<Reply, Failure> {
        website::page(self, asker, head, account).await
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
        let (reach, outside) = (Reach::of(asker.caller), self.copier.outside.as_deref());
        let call = ops::Call { engine: &*self.engine, account, head, reach, asker, outside, service: self };
        ops::run(op, call, body).await
    }

    /// The rules for pages of other sites that an account has, if it has any.
    pub async fn cors(&self, account: u64) -> Result<Option<Rules>, EngineError> {
        self.rules.of(&PROPERTIES, &*self.engine, account).await
    }

    /// Public access and stored policies of a container. One that is not there lets nobody in.
    pub async fn access(&self, account: u64, container: &str) -> Result<ContainerAccess, EngineError> {
        let Ok(name) = ContainerName::parse(container) else { return Ok(ContainerAccess::default()) };
        let found = engine::read(&*self.engine, move |rows, _| Ok(model::find_container(rows, account, &name)?)).await;
        Ok(unrefused(found)?.map_or_else(ContainerAccess::default, |container| ContainerAccess {
            public: container.public,
            policies: container.policies,
        }))
    }
}

impl From<BlobError> for Failure {
    fn from(error: BlobError) -> Failure {
        Failure::Refused(error)
    }
}
