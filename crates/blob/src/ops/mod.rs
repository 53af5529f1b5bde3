//! The operations, one file each, by the name the REST reference gives them.

mod abort_copy_blob;
mod append_blob_seal;
mod append_block;
mod append_block_from_url;
mod copy_blob;
mod copy_blob_from_url;
mod create_container;
mod delete_blob;
mod delete_blob_immutability_policy;
mod delete_container;
mod find_blobs_by_tags;
mod find_blobs_by_tags_in_container;
mod get_account_information;
mod get_blob;
mod get_blob_metadata;
mod get_blob_properties;
pub mod get_blob_service_properties;
mod get_blob_service_stats;
mod get_blob_tags;
mod get_block_list;
mod get_container_acl;
mod get_container_metadata;
mod get_container_properties;
mod get_page_ranges;
mod get_user_delegation_key;
mod incremental_copy_blob;
mod lease_blob;
mod lease_container;
mod list_blobs;
mod list_containers;
mod preflight_blob_request;
mod put_blob;
mod put_blob_from_url;
mod put_block;
mod put_block_from_url;
mod put_block_list;
mod put_page;
mod put_page_from_url;
mod query_blob_contents;
mod restore_container;
mod set_blob_expiry;
mod set_blob_immutability_policy;
mod set_blob_legal_hold;
mod set_blob_metadata;
mod set_blob_properties;
mod set_blob_service_properties;
mod set_blob_tags;
mod set_blob_tier;
mod set_container_acl;
mod set_container_metadata;
mod snapshot_blob;
mod undelete_blob;

use std::sync::Arc;

use engine::Engine;
use service::{Operation, ReadOperation, RequestError};
use wire::http::{Body, Head, Reply};

use crate::encryption_headers;
use crate::error::BlobError;
use crate::rules::encryption::WriteEncryption;
use crate::rules::soft_delete::Keeping;
use crate::source::CopySources;
use crate::{Asker, BlobService, Failure, Op, Outside, Reach};

pub use append_block::{AppendBlock, AppendedBlock};
pub use copy_blob::{
    BeginCopy, CopiedBlob, CopyBlob, CopyKind, CopyOutcome, CopyReceived, SourceProperties, WholeCopy,
};
pub use create_container::CreateContainer;
pub use delete_blob::{DeleteBlob, DeleteSnapshots, DeleteType, TierConditions};
pub use delete_container::DeleteContainer;
pub use get_blob::{BlobBytes, GetBlob, ReadBlob};
pub use lease_blob::LeaseBlob;
pub use lease_container::LeaseContainer;
pub use list_blobs::{BlobsPage, IncludeBlobs, ListBlobs, ListedBlob, ListedEntry, ListedState};
pub use list_containers::{ContainersPage, ListContainers, ListedContainer};
pub use put_blob::PutBlob;
pub use put_block::PutBlock;
pub use put_block_list::{BlockList, FindBlocks, ListedBlock, PutBlockList};
pub use put_page::{PageWrite, PutPage, SequenceConditions, WrittenPages};

/// What every operation is given.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub engine: &'a dyn Engine,
    pub account: u64,
    pub head: &'a Head,
    pub reach: Reach,
    pub asker: Asker<'a>,
    /// Fetches the sources of copies that are outside of this server, if that is allowed.
    pub outside: Option<&'a dyn Outside>,
    /// Runs background copies.
    pub service: &'a BlobService,
}

impl Call<'_> {
    /// Decides an operation in this request's account and commits what it changes.
    pub async fn commit<O: Operation<Refusal = BlobError>>(&self, operation: &Arc<O>) -> Result<O::Outcome, Failure> {
        service::commit(self.engine, self.account, operation).await
    }

    /// Runs an operation that changes nothing in this request's account.
    pub async fn read<O: ReadOperation<Refusal = BlobError>>(&self, operation: &Arc<O>) -> Result<O::Outcome, Failure> {
        service::read(self.engine, self.account, operation).await
    }

    /// How what the request writes is to be encrypted.
    pub fn encryption(&self) -> Result<WriteEncryption, BlobError> {
        encryption_headers::of_write(self.head, self.asker.caller, self.asker.settings)
    }

    /// What the account keeps of what is replaced or deleted.
    pub fn keeping(&self) -> Keeping {
        Keeping::new(self.account, self.asker.settings)
    }

    /// Where the source of a copy is found.
    pub fn sources(&self) -> CopySources<'_> {
        CopySources {
            engine: self.engine,
            sources: self.asker.sources,
            outside: self.outside,
            files: self.service.copier.neighbour.as_ref(),
        }
    }
}

pub async fn run(op: Op, call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    match op {
        Op::AbortCopyBlob => abort_copy_blob::run(call).await,
        // Boxed: the future of a copy is large, and the future of every request would otherwise be as large.
        Op::AppendBlockFromUrl => Box::pin(append_block_from_url::run(call, body)).await,
        Op::CopyBlob => Box::pin(copy_blob::run(call, body)).await,
        Op::CopyBlobFromUrl => Box::pin(copy_blob_from_url::run(call, body)).await,
        Op::IncrementalCopyBlob => Box::pin(incremental_copy_blob::run(call, body)).await,
        Op::PutBlobFromUrl => Box::pin(put_blob_from_url::run(call, body)).await,
        Op::PutBlockFromUrl => Box::pin(put_block_from_url::run(call, body)).await,
        Op::PutPageFromUrl => Box::pin(put_page_from_url::run(call, body)).await,
        Op::AppendBlobSeal => append_blob_seal::run(call).await,
        Op::AppendBlock => append_block::run(call, body).await,
        Op::CreateContainer => create_container::run(call).await,
        Op::DeleteBlob => delete_blob::run(call).await,
        Op::DeleteContainer => delete_container::run(call).await,
        Op::FindBlobsByTags => find_blobs_by_tags::run(call).await,
        Op::FindBlobsByTagsInContainer => find_blobs_by_tags_in_container::run(call).await,
        Op::GetAccountInformation => get_account_information::run(call).await,
        Op::GetBlob => get_blob::run(call).await,
        Op::GetBlobMetadata => get_blob_metadata::run(call).await,
        Op::GetBlobProperties => get_blob_properties::run(call).await,
        Op::GetBlobServiceProperties => get_blob_service_properties::run(call).await,
        Op::GetBlobServiceStats => get_blob_service_stats::run(call).await,
        Op::GetBlobTags => get_blob_tags::run(call).await,
        Op::GetBlockList => get_block_list::run(call).await,
        Op::GetContainerAcl => get_container_acl::run(call).await,
        Op::GetContainerMetadata => get_container_metadata::run(call).await,
        Op::GetContainerProperties => get_container_properties::run(call).await,
        Op::GetUserDelegationKey => get_user_delegation_key::run(call, body).await,
        Op::GetPageRanges => get_page_ranges::run(call).await,
        Op::LeaseBlob => lease_blob::run(call).await,
        Op::LeaseContainer => lease_container::run(call).await,
        Op::ListBlobs => list_blobs::run(call).await,
        Op::ListContainers => list_containers::run(call).await,
        Op::PreflightBlobRequest => preflight_blob_request::run(call).await,
        Op::PutBlob => put_blob::run(call, body).await,
        Op::PutBlock => put_block::run(call, body).await,
        Op::PutBlockList => put_block_list::run(call, body).await,
        Op::PutPage => put_page::run(call, body).await,
        Op::RestoreContainer => restore_container::run(call).await,
        Op::QueryBlobContents => Box::pin(query_blob_contents::run(call, body)).await,
        Op::SetBlobMetadata => set_blob_metadata::run(call).await,
        Op::SetBlobProperties => set_blob_properties::run(call).await,
        Op::SetBlobServiceProperties => set_blob_service_properties::run(call, body).await,
        Op::SetBlobTags => set_blob_tags::run(call, body).await,
        Op::SetBlobTier => set_blob_tier::run(call).await,
        Op::SetBlobExpiry => set_blob_expiry::run(call).await,
        Op::SetBlobImmutabilityPolicy => set_blob_immutability_policy::run(call).await,
        Op::DeleteBlobImmutabilityPolicy => delete_blob_immutability_policy::run(call).await,
        Op::SetBlobLegalHold => set_blob_legal_hold::run(call).await,
        Op::SetContainerAcl => set_container_acl::run(call, body).await,
        Op::SetContainerMetadata => set_container_metadata::run(call).await,
        Op::SnapshotBlob => snapshot_blob::run(call).await,
        Op::UndeleteBlob => undelete_blob::run(call).await,
        // The server runs each part of a batch as a request of its own, with a caller of its own.
        Op::BlobBatch => Err(BlobError::Request(RequestError::NotImplemented).into()),
        Op::RenameContainer => Err(BlobError::Request(RequestError::NotImplemented).into()),
    }
}
