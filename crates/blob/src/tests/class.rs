//! Operations that are alike for every rule, named once. The tables say what they do to a class.

use crate::Op;

/// What an operation is about, and what it does to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpClass {
    /// The account, or a container that is not there yet: nothing that is protected.
    Account,
    Container(ContainerClass),
    Blob(BlobClass),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContainerClass {
    /// Get Container Properties, Get Container Metadata.
    Read,
    GetAcl,
    SetMetadata,
    SetAcl,
    Delete,
    Lease,
    /// List Blobs, Find Blobs by Tags in Container.
    List,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlobClass {
    /// Put Blob, Put Blob From URL, Put Block List: a new blob in the place of what was there.
    Replace,
    /// Copy Blob, Copy Blob From URL: the same, with the content of a source.
    Copy,
    IncrementalCopy,
    AbortCopy,
    /// Put Block, Put Block From URL: nothing changes until the blocks are committed.
    StageBlock,
    /// Put Page, Append Block and their forms From URL: the content changes in place.
    WriteInPlace,
    Seal,
    SetProperties,
    SetMetadata,
    SetTags,
    SetTier,
    SetExpiry,
    Lease,
    Snapshot,
    Delete,
    Undelete,
    /// Set Blob Immutability Policy, Set Blob Legal Hold.
    Protect,
    DeletePolicy,
    /// Get Blob, Get Blob Properties, Get Blob Metadata.
    Read,
    Query,
    GetTags,
    GetBlockList,
    GetPageRanges,
}

impl Op {
    pub fn class(self) -> OpClass {
        match self {
            Op::ListContainers
            | Op::GetBlobServiceProperties
            | Op::SetBlobServiceProperties
            | Op::GetBlobServiceStats
            | Op::GetAccountInformation
            | Op::GetUserDelegationKey
            | Op::PreflightBlobRequest
            | Op::BlobBatch
            | Op::FindBlobsByTags
            | Op::CreateContainer
            | Op::RestoreContainer
            | Op::RenameContainer => OpClass::Account,
            Op::GetContainerProperties | Op::GetContainerMetadata => OpClass::Container(ContainerClass::Read),
            Op::GetContainerAcl => OpClass::Container(ContainerClass::GetAcl),
            Op::SetContainerMetadata => OpClass::Container(ContainerClass::SetMetadata),
            Op::SetContainerAcl => OpClass::Container(ContainerClass::SetAcl),
            Op::DeleteContainer => OpClass::Container(ContainerClass::Delete),
            Op::LeaseContainer => OpClass::Container(ContainerClass::Lease),
            Op::ListBlobs | Op::FindBlobsByTagsInContainer => OpClass::Container(ContainerClass::List),
            Op::PutBlob | Op::PutBlobFromUrl | Op::PutBlockList => OpClass::Blob(BlobClass::Replace),
            Op::CopyBlob | Op::CopyBlobFromUrl => OpClass::Blob(BlobClass::Copy),
            Op::IncrementalCopyBlob => OpClass::Blob(BlobClass::IncrementalCopy),
            Op::AbortCopyBlob => OpClass::Blob(BlobClass::AbortCopy),
            Op::PutBlock | Op::PutBlockFromUrl => OpClass::Blob(BlobClass::StageBlock),
            Op::PutPage | Op::PutPageFromUrl | Op::AppendBlock | Op::AppendBlockFromUrl => {
                OpClass::Blob(BlobClass::WriteInPlace)
            }
            Op::AppendBlobSeal => OpClass::Blob(BlobClass::Seal),
            Op::SetBlobProperties => OpClass::Blob(BlobClass::SetProperties),
            Op::SetBlobMetadata => OpClass::Blob(BlobClass::SetMetadata),
            Op::SetBlobTags => OpClass::Blob(BlobClass::SetTags),
            Op::SetBlobTier => OpClass::Blob(BlobClass::SetTier),
            Op::SetBlobExpiry => OpClass::Blob(BlobClass::SetExpiry),
            Op::LeaseBlob => OpClass::Blob(BlobClass::Lease),
            Op::SnapshotBlob => OpClass::Blob(BlobClass::Snapshot),
            Op::DeleteBlob => OpClass::Blob(BlobClass::Delete),
            Op::UndeleteBlob => OpClass::Blob(BlobClass::Undelete),
            Op::SetBlobImmutabilityPolicy | Op::SetBlobLegalHold => OpClass::Blob(BlobClass::Protect),
            Op::DeleteBlobImmutabilityPolicy => OpClass::Blob(BlobClass::DeletePolicy),
            Op::GetBlob | Op::GetBlobProperties | Op::GetBlobMetadata => OpClass::Blob(BlobClass::Read),
            Op::QueryBlobContents => OpClass::Blob(BlobClass::Query),
            Op::GetBlobTags => OpClass::Blob(BlobClass::GetTags),
            Op::GetBlockList => OpClass::Blob(BlobClass::GetBlockList),
            Op::GetPageRanges => OpClass::Blob(BlobClass::GetPageRanges),
        }
    }
}
