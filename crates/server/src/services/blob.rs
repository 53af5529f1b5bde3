//! The Blob service, as the server sees it.

use std::sync::Arc;
use std::time::Duration;

use auth::Need;
use blob::{BlobService, Op};
use engine::EngineError;
use file::FileReader;
use service::properties::Rules;
use service::{Asker, StoredPolicy};
use wire::http::{Body, ErrorReply, Head, Reply};

use super::{Parts, RestOperation, RestService, SourceReads};
use crate::pipeline::Stop;
use crate::timeouts;

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

    fn needed_by(self, head: &Head) -> Need {
        Op::needed_by(self, head)
    }

    fn is_preflight(self) -> bool {
        self == Op::PreflightBlobRequest
    }

    /// From the REST reference.
    fn time_limit(self, length: u64) -> Duration {
        match self {
            Op::PutBlob
            | Op::PutBlobFromUrl
            | Op::CopyBlobFromUrl
            | Op::PutBlock
            | Op::PutBlockFromUrl
            | Op::PutPage
            | Op::PutPageFromUrl
            | Op::AppendBlock
            | Op::AppendBlockFromUrl => timeouts::upload(length),
            Op::GetBlob | Op::QueryBlobContents => timeouts::READ,
            Op::PutBlockList => Duration::from_secs(60),
            Op::BlobBatch => Duration::from_secs(120),
            Op::ListContainers
            | Op::GetBlobServiceProperties
            | Op::SetBlobServiceProperties
            | Op::GetBlobServiceStats
            | Op::GetAccountInformation
            | Op::GetUserDelegationKey
            | Op::PreflightBlobRequest
            | Op::FindBlobsByTags
            | Op::FindBlobsByTagsInContainer
            | Op::CreateContainer
            | Op::GetContainerProperties
            | Op::GetContainerMetadata
            | Op::SetContainerMetadata
            | Op::GetContainerAcl
            | Op::SetContainerAcl
            | Op::DeleteContainer
            | Op::LeaseContainer
            | Op::RestoreContainer
            | Op::RenameContainer
            | Op::ListBlobs
            | Op::GetBlobProperties
            | Op::SetBlobProperties
            | Op::GetBlobMetadata
            | Op::SetBlobMetadata
            | Op::GetBlobTags
            | Op::SetBlobTags
            | Op::LeaseBlob
            | Op::SnapshotBlob
            | Op::CopyBlob
            | Op::AbortCopyBlob
            | Op::IncrementalCopyBlob
            | Op::DeleteBlob
            | Op::UndeleteBlob
            | Op::SetBlobTier
            | Op::SetBlobExpiry
            | Op::SetBlobImmutabilityPolicy
            | Op::DeleteBlobImmutabilityPolicy
            | Op::SetBlobLegalHold
            | Op::GetBlockList
            | Op::GetPageRanges
            | Op::AppendBlobSeal => timeouts::USUAL,
        }
    }
}

impl RestService for BlobService {
    type Op = Op;

    const AS_SOURCE: Option<SourceReads<Op>> = Some(SourceReads { content: Op::GetBlob, tags: Some(Op::GetBlobTags) });

    fn new(parts: &Parts) -> BlobService {
        let files = FileReader::new(Arc::clone(&parts.opens));
        let files = match &parts.ownership {
            Some(ownership) => files.among(Arc::clone(&parts.engine), Arc::clone(ownership)),
            None => files,
        };
        let service = BlobService::new(Arc::clone(&parts.engine)).reaching(Arc::clone(&parts.outside));
        service.copying_from(Arc::new(files))
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
        Ok(self.access(account, container(head)).await?.policies)
    }

    async fn is_public(&self, op: Op, account: u64, head: &Head) -> Result<bool, EngineError> {
        match op.anonymous(head) {
            None => Ok(false),
            Some(least) => Ok(self.access(account, container(head)).await?.public >= least),
        }
    }

    async fn cors(&self, account: u64) -> Result<Option<Rules>, EngineError> {
        BlobService::cors(self, account).await
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
