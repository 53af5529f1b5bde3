//! The Blob service.
//!
//! [`Op::named_by`] says which operation a request names, [`BlobService::run`] runs it. Each operation has its own file
//! under `ops` and is a value, such as [`CreateContainer`], that any protocol can build: `parse` makes it from an HTTP
//! request, `apply` has the rules, as a pure function of what is stored, and `run` takes it to the engine and writes the
//! answer. The order of the checks is part of the protocol: a request with two faults gets the error that the service would
//! give.
//!
//! The floors, from below. A module knows only those below it, and a test holds them to that:
//!
//! - `error`: every refusal with its status, code and text.
//! - `op`: the operations by name, and the permission that each needs.
//! - `model`: the rows and their keys: containers, blobs, block lists, tags, policies, copies.
//! - `rules`: what holds whichever operation asks: leases and writes, soft delete and versions, immutability, tiers,
//!   encryption, copies within the server.
//! - `download`: the bytes of a state.
//! - `request`, `encryption_headers`, `listing`: headers and parameters as values; `reply`: values as headers and XML.
//! - `source`: where the bytes of a copy come from. `background_copy`: copies that go on after their answer.
//! - `ops`: the operations.
//! - `route`: which request names which operation. `website`: the static website. `collect`: what is done later, by due rows.
//!   `check`: what `lazurite check` holds against each other.
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
mod encryption_headers;
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

use content::background_copy::Copier;
use content::source::SourceReader;
use engine::{Engine, EngineError};
use service::properties::{KnownRules, Rules};
use service::{StoredPolicy, unrefused};
use wire::http::{Body, Head, Reply};
use wire::names::ContainerName;

pub use check::check;
pub use content::source::{Fetched, Outside, Running, Unreached};
pub use error::{BlobError, Failure};
pub use listing::After;
pub use model::blocks::{BadBlockId, BlockId};
pub use model::encryption::Encryption;
pub use model::tags::Tagged;
pub use model::tier::{Priority, Tier};
pub use model::{
    Blob, BlobType, Committed, Container, ContentRef, Deletion, HttpHeaders, PublicAccess, Seen, VersionId, Which,
};
pub use op::Op;
pub use ops::{
    AppendBlock, AppendedBlock, BeginCopy, BlobBytes, BlobsPage, BlockList, ContainersPage, CopiedBlob, CopyBlob,
    CopyKind, CopyOutcome, CopyReceived, CreateContainer, DeleteBlob, DeleteContainer, DeleteSnapshots, DeleteType,
    FindBlocks, GetBlob, IncludeBlobs, LeaseBlob, LeaseContainer, ListBlobs, ListContainers, ListedBlob, ListedBlock,
    ListedContainer, ListedEntry, ListedState, PageWrite, PutBlob, PutBlock, PutBlockList, PutPage, ReadBlob,
    SequenceConditions, SourceProperties, TierConditions, WholeCopy, WrittenPages,
};
pub use rules::copy_source::{SourceBlob, SourceUrl};
pub use rules::creation_options::CreationOptions;
pub use rules::encryption::CustomerKey;
pub use rules::immutability::Standing;
pub use rules::soft_delete::{Fate, Keeping, Written};
pub use rules::writable::Reach;
pub use service::Asker;
pub use source::BlobReader;

use model::service_properties::PROPERTIES;

/// The row spaces of what is kept by references, as contents are: block lists and page maps.
pub const REFERRED: [u8; 2] = [service::space::BLOCK_LIST, service::space::PAGE_MAP];

/// The service over one engine.
#[derive(Clone, Debug)]
pub struct BlobService {
    engine: Arc<dyn Engine>,
    rules: Arc<KnownRules>,
    copier: background_copy::BlobCopier,
}

/// Public access and stored access policies of a container.
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

    /// Lets copies read sources outside of this server.
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

    /// Answers a request to the static website of an account, which needs no credential.
    pub async fn website(&self, asker: Asker<'_>, head: &Head, account: u64) -> Result<Reply, Failure> {
        website::page(self, asker, head, account).await
    }

    /// Runs an operation for a caller whose permissions have been checked.
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

    /// Public access and stored policies of a container. One that does not exist gives access to none.
    pub async fn access(&self, account: u64, container: &str) -> Result<ContainerAccess, EngineError> {
        let Ok(name) = ContainerName::parse(container) else { return Ok(ContainerAccess::default()) };
        let found = engine::read(&*self.engine, move |rows, _| Ok(model::find_container(rows, account, &name)?)).await;
        Ok(unrefused(found)?.map_or_else(ContainerAccess::default, |container| ContainerAccess {
            public: container.public,
            policies: container.policies,
        }))
    }
}
