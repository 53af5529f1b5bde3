//! The services behind the walk: the one place that hands a request to the crate it belongs to.

use std::sync::Arc;

use blob::{Asker, BlobService, Outside};
use engine::collector::Handler;
use engine::{Engine, EngineError};
use queue::QueueService;
use service::properties::Rules;
use service::{Failure, HttpService, StoredPolicy};
use table::TableService;
use wire::http::{Body, BodyError, ErrorReply, Head, Reply};

use crate::op::Op;
use crate::service::Service;

#[derive(Debug)]
pub(crate) struct Services {
    blob: Arc<BlobService>,
    queue: Arc<QueueService>,
    table: Arc<TableService>,
}

/// Why a service has no result.
#[derive(Debug)]
pub(crate) enum NoResult {
    Refused(ErrorReply),
    Failed(EngineError),
    Body(BodyError),
}

impl<E: Into<ErrorReply>> From<Failure<E>> for NoResult {
    fn from(failure: Failure<E>) -> NoResult {
        match failure {
            Failure::Refused(error) => NoResult::Refused(error.into()),
            Failure::Failed(error) => NoResult::Failed(error),
            Failure::Body(error) => NoResult::Body(error),
        }
    }
}

impl Services {
    /// `outside` is where copies may come from, apart from this server itself.
    pub(crate) fn new(engine: &Arc<dyn Engine>, outside: Arc<dyn Outside>) -> Services {
        Services {
            blob: Arc::new(BlobService::new(Arc::clone(engine)).reaching(outside)),
            queue: Arc::new(QueueService::new(Arc::clone(engine))),
            table: Arc::new(TableService::new(Arc::clone(engine))),
        }
    }

    /// Those who look after what is due.
    pub(crate) fn handlers(&self) -> Vec<Arc<dyn Handler>> {
        vec![Arc::clone(&self.blob) as _, Arc::clone(&self.queue) as _, Arc::clone(&self.table) as _]
    }

    pub(crate) fn is_built(service: Service) -> bool {
        match service {
            Service::Blob | Service::Queue | Service::Table => true,
            Service::File | Service::Dfs => false,
        }
    }

    pub(crate) async fn run(
        &self,
        op: Op,
        asker: Asker<'_>,
        head: &Head,
        account: u64,
        body: &mut dyn Body,
    ) -> Result<Reply, NoResult> {
        match op {
            Op::Blob(op) => Ok(self.blob.run_for(asker, op, head, account, body).await?),
            Op::Queue(op) => Ok(self.queue.run_for(asker, op, head, account, body).await?),
            Op::Table(op) => Ok(self.table.run_for(asker, op, head, account, body).await?),
        }
    }

    /// A page of the website of an account.
    pub(crate) async fn website(&self, asker: Asker<'_>, head: &Head, account: u64) -> Result<Reply, NoResult> {
        Ok(self.blob.website(asker, head, account).await?)
    }

    /// The stored policies that a signature for this request may lean on.
    pub(crate) async fn policies(
        &self,
        service: Service,
        account: u64,
        head: &Head,
    ) -> Result<Vec<StoredPolicy>, EngineError> {
        match service {
            Service::Blob => Ok(self.blob.access(account, container(head)).await?.policies),
            Service::Queue => self.queue.policies(account, head.first_segment().unwrap_or_default()).await,
            // The signature names its table; that it is the one of the URL is checked with it.
            Service::Table => self.table.policies(account, head.query.get("tn").unwrap_or_default()).await,
            Service::File | Service::Dfs => Ok(Vec::new()),
        }
    }

    /// Whether the request needs no credential, because what it asks for is public.
    pub(crate) async fn is_public(&self, op: Op, account: u64, head: &Head) -> Result<bool, EngineError> {
        match op {
            Op::Blob(op) => match op.anonymous(head) {
                None => Ok(false),
                Some(least) => Ok(self.blob.access(account, container(head)).await?.public >= least),
            },
            Op::Queue(_) | Op::Table(_) => Ok(false),
        }
    }

    /// The rules for pages of other sites that an account has, if it has any.
    pub(crate) async fn cors(&self, service: Service, account: u64) -> Result<Option<Rules>, EngineError> {
        match service {
            Service::Blob => self.blob.cors(account).await,
            Service::Queue => self.queue.cors(account).await,
            Service::Table => self.table.cors(account).await,
            Service::File | Service::Dfs => Ok(None),
        }
    }
}

/// The container whose rules apply. A path of one segment names a blob of the root container, unless the request says
/// otherwise; it must be read here exactly as it is when the operation is named, or the rules of another container than
/// the one that is opened would apply.
pub(crate) fn container(head: &Head) -> &str {
    let restype = head.query.get("restype").unwrap_or_default();
    let names_no_blob = ["container", "account"].iter().any(|kind| kind.eq_ignore_ascii_case(restype));
    if head.rest().is_some() || names_no_blob { head.first_segment().unwrap_or_default() } else { "$root" }
}
