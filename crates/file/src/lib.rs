//! The File service.
//!
//! [`Op::named_by`] says which operation a request names, [`HttpService::run_for`] runs it. Each operation has its own file under
//! `ops` and is a value that any protocol can build: `parse` makes it from an HTTP request, `apply` has the rules, and `run` takes
//! it to the engine and writes the answer.
//!
//! - [`security`]: who owns a file and who may do what with it: SIDs, security descriptors, SDDL, inheritance.
//! - [`door`]: what SMB calls.
//! - [`opens`]: who has what open: the table that REST operations and SMB opens both enter.
//! - [`owner`]: one node of many serves SMB, and has the table of opens.
//! - `model`: the rows.
//! - `tree`: from a path to the file or directory that stands there.
//! - `past`: what share snapshots see.
//! - `change`: what becomes of files and directories, whoever asks, REST or SMB.
//! - `announcement`: how those who watch a directory are told of changes.
//! - `entering`: how a REST operation enters the table of opens for as long as it is at work.
//! - `request`, `reply`: what operations have in common in what they take and answer.
//! - `permission_format`: the two forms in which a permission is sent and told.
//! - `share_settings`: the headers that set quota, tier and the like of a share.
//! - `smb_headers`: the headers that set attributes, times and permission.
//! - `source`: the source of a copy: a file or a blob of this server, or something elsewhere.
//! - `background_copy`: copies into files that go on after their answer.
//! - `collect`: what is done later: the purge of deleted shares.
//! - `check`: holds the rows of a stopped server against each other.
//!
//! What always holds:
//!
//! - A share is one partition: its decisions are made one after another, so a rename, a delete and a write of one tree always agree.
//! - Every decision inside a share reads the row of the share in the same step, so nothing can be written into a share that is
//!   being deleted.
//! - A file's id stays when it is renamed, also under a directory that is renamed. What hangs on it, ranges, leases, opens, goes along.
//! - A file with several names is one row, which all of them lead to: what is done through one name is seen through all.
//! - No change is committed while an SMB open that was there before it excludes it.
//! - The usage of a share is the sum of the lengths of its files, in every state of the store.

mod announcement;
mod background_copy;
mod change;
mod check;
mod collect;
#[cfg(test)]
mod crashes;
pub mod door;
mod entering;
mod error;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzzing;
mod model;
mod op;
pub mod opens;
mod ops;
pub mod owner;
mod past;
mod permission_format;
mod reply;
mod request;
#[cfg(test)]
mod round_trips;
#[cfg(test)]
mod round_trips_files;
mod route;
pub mod security;
mod share_settings;
mod smb_headers;
mod source;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tree;

use std::sync::Arc;

use content::background_copy::Copier;
use content::source::{Outside, SourceReader};
use engine::{Engine, Rows, Unread};
use service::properties::Properties;
use service::{Call, HttpService, ServiceState, StoredPolicy};
use tokio::time::Instant;
use wire::http::{Body, Reply};
use wire::names::ShareName;

pub use check::check;
pub use error::FileError;
pub use model::{AccessTier, Protocol, Provisioned, RootSquash, Share, Usage};
pub use op::Op;
pub use ops::{
    CreatePermission, CreateShare, DeleteShare, DeleteSnapshots, GetPermission, GetShareStats, LeaseShare, ListShares,
    ListedShare, ReadShare, RestoreShare, SetShareAcl, SetShareMetadata, SetShareProperties, SharePlace, ShareRemoval,
    ShareVersion, SharesPage, SnapshotShare, WriteShare,
};
pub use share_settings::ShareSettings;
pub use source::FileReader;

use background_copy::FileCopier;
use opens::Opens;
use opens::events::Events;
use ops::get_file_service_properties::PROPERTIES;
use owner::{FencedEngine, Ownership, Protected, RestPort};

/// Why a request has no result.
pub type Failure = service::Failure<FileError>;

/// The service over one engine.
#[derive(Clone, Debug)]
pub struct FileService {
    engine: Arc<dyn Engine>,
    state: ServiceState,
    opens: Arc<Opens>,
    events: Events,
    /// Files to be deleted whose last SMB handle was dropped.
    abandoned: Arc<door::Abandoned>,
    /// Permits for the parts of SMB's copies that are in memory.
    copying: Arc<tokio::sync::Semaphore>,
    copier: FileCopier,
    removals: Arc<collect::Removals>,
    /// On a node of many: its part, and the engine for REST requests.
    ownership: Option<Arc<Ownership>>,
    fenced: Option<Arc<FencedEngine>>,
}

impl FileService {
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>, opens: Arc<Opens>) -> FileService {
        FileService {
            copier: Copier::new(Arc::clone(&engine)),
            state: ServiceState::new(Arc::clone(&engine)),
            engine,
            events: Events::beside(&opens),
            opens,
            abandoned: Arc::default(),
            copying: Arc::new(tokio::sync::Semaphore::new(door::PARTS_IN_MEMORY_MAX)),
            removals: Arc::default(),
            ownership: None,
            fenced: None,
        }
    }

    /// As a node of many, one of which serves SMB.
    #[must_use]
    pub fn among(self, ownership: Arc<Ownership>) -> FileService {
        let protected = Protected::Rest(RestPort::File);
        let fenced = FencedEngine::new(Arc::clone(&self.engine), Arc::clone(&ownership), protected);
        FileService { ownership: Some(ownership), fenced: Some(Arc::new(fenced)), ..self }
    }

    /// Copies from elsewhere, too.
    #[must_use]
    pub fn reaching(self, outside: Arc<dyn Outside>) -> FileService {
        FileService { copier: self.copier.reaching(outside), ..self }
    }

    /// Copies from blobs of this server, too.
    #[must_use]
    pub fn copying_from(self, blobs: Arc<dyn SourceReader>) -> FileService {
        FileService { copier: self.copier.copying_from(blobs), ..self }
    }
}

impl HttpService for FileService {
    type Op = Op;
    type Error = FileError;

    fn state(&self) -> &ServiceState {
        &self.state
    }

    fn properties() -> &'static Properties {
        &PROPERTIES
    }

    async fn answer(&self, op: Op, call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
        let FileService { opens, events, abandoned, copier, .. } = self;
        let base = match &self.fenced {
            Some(engine) => Call { engine: &**engine, ..call },
            None => call,
        };
        let ownership = self.ownership.as_ref();
        let caches_until = Instant::now() + request::caches_patience(base.head);
        let call = ops::Call { base, opens, events, abandoned, caches_until, copier, ownership };
        // Boxed: every request of the server would otherwise have room for it.
        Box::pin(ops::run(op, call, body)).await
    }

    fn find_policies(rows: &dyn Rows, account: u64, share: &str) -> Result<Option<Vec<StoredPolicy>>, Unread> {
        let Ok(name) = ShareName::parse(share) else { return Ok(None) };
        Ok(model::find_share(rows, account, &name)?.map(|share| share.policies))
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        Failure::Refused(error)
    }
}
