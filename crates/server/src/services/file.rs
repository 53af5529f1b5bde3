//! The File service, as the server sees it.

use std::sync::Arc;
use std::time::Duration;

use auth::Need;
use blob::BlobReader;
use engine::EngineError;
use file::{FileService, Op};
use service::properties::Rules;
use service::{Asker, HttpService, StoredPolicy};
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
        self == Op::PreflightFileRequest
    }

    /// From the REST reference.
    fn time_limit(self, length: u64) -> Duration {
        match self {
            Op::CreateFile | Op::PutRange | Op::PutRangeFromUrl => timeouts::file_upload(length),
            Op::GetFile => timeouts::READ,
            Op::ListShares
            | Op::GetFileServiceProperties
            | Op::SetFileServiceProperties
            | Op::GetUserDelegationKey
            | Op::PreflightFileRequest
            | Op::CreateShare
            | Op::SnapshotShare
            | Op::GetShareProperties
            | Op::SetShareProperties
            | Op::GetShareMetadata
            | Op::SetShareMetadata
            | Op::GetShareAcl
            | Op::SetShareAcl
            | Op::GetShareStats
            | Op::DeleteShare
            | Op::RestoreShare
            | Op::LeaseShare
            | Op::CreatePermission
            | Op::GetPermission
            | Op::CreateDirectory
            | Op::GetDirectoryProperties
            | Op::SetDirectoryProperties
            | Op::GetDirectoryMetadata
            | Op::SetDirectoryMetadata
            | Op::DeleteDirectory
            | Op::RenameDirectory
            | Op::ListDirectoriesAndFiles
            | Op::ListHandles
            | Op::ForceCloseHandles
            | Op::GetFileProperties
            | Op::SetFileProperties
            | Op::GetFileMetadata
            | Op::SetFileMetadata
            | Op::DeleteFile
            | Op::RenameFile
            | Op::LeaseFile
            | Op::ListRanges
            | Op::CopyFile
            | Op::AbortCopyFile
            | Op::CreateSymbolicLink
            | Op::GetSymbolicLink
            | Op::CreateHardLink => timeouts::USUAL,
        }
    }
}

impl RestService for FileService {
    type Op = Op;

    const AS_SOURCE: Option<SourceReads<Op>> = Some(SourceReads { content: Op::GetFile, tags: None });

    fn new(parts: &Parts) -> FileService {
        let service = FileService::new(Arc::clone(&parts.engine), Arc::clone(&parts.opens));
        let service = service.reaching(Arc::clone(&parts.outside)).copying_from(Arc::new(BlobReader));
        match &parts.ownership {
            Some(ownership) => service.among(Arc::clone(ownership)),
            None => service,
        }
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
