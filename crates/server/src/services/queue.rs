//! The Queue service, as the server sees it.

use std::sync::Arc;

use auth::Need;
use engine::EngineError;
use queue::{Op, QueueService};
use service::properties::Rules;
use service::{Asker, HttpService, StoredPolicy};
use wire::http::{Body, ErrorReply, Head, Reply};

use super::{Parts, RestOperation, RestService, SourceReads};
use crate::pipeline::Stop;

impl RestOperation for Op {
    const ALL: &'static [Op] = Op::ALL;

    fn named_by(head: &Head) -> Result<Op, ErrorReply> {
        Ok(Op::named_by(head)?)
    }

    fn name(self) -> &'static str {
        Op::name(self)
    }

    fn number(self) -> usize {
        self as usize
    }

    fn needed_by(self, _: &Head) -> Need {
        self.needs()
    }

    fn is_preflight(self) -> bool {
        self == Op::PreflightQueueRequest
    }
}

impl RestService for QueueService {
    type Op = Op;

    const AS_SOURCE: Option<SourceReads<Op>> = None;

    fn new(parts: &Parts) -> QueueService {
        QueueService::new(Arc::clone(&parts.engine))
    }

    async fn run(
        &self,
        op: Op,
        asker: Asker<'_>,
        head: &Head,
        account: u64,
        body: &mut dyn Body,
    ) -> Result<Reply, Stop> {
        Ok(self.run_for(asker, op, head, account, body).await?)
    }

    async fn policies(&self, account: u64, head: &Head) -> Result<Vec<StoredPolicy>, EngineError> {
        HttpService::policies(self, account, head.first_segment().unwrap_or_default()).await
    }

    async fn is_public(&self, _: Op, _: u64, _: &Head) -> Result<bool, EngineError> {
        Ok(false)
    }

    async fn cors(&self, account: u64) -> Result<Option<Rules>, EngineError> {
        HttpService::cors(self, account).await
    }
}
