//! The operations, one file each, by the name the REST reference gives them.

mod abort_copy_file;
mod copy_file;
mod create_directory;
mod create_file;
mod create_hard_link;
mod create_permission;
mod create_share;
mod create_symbolic_link;
mod delete_directory;
mod delete_file;
mod delete_share;
mod force_close_handles;
mod get_directory_metadata;
mod get_directory_properties;
mod get_file;
mod get_file_metadata;
mod get_file_properties;
pub mod get_file_service_properties;
mod get_permission;
mod get_share_acl;
mod get_share_metadata;
mod get_share_properties;
mod get_share_stats;
mod get_symbolic_link;
mod get_user_delegation_key;
mod lease_file;
mod lease_share;
pub mod list_directories_and_files;
mod list_handles;
mod list_ranges;
mod list_shares;
mod preflight_file_request;
mod put_range;
mod put_range_from_url;
mod rename_directory;
mod rename_file;
mod restore_share;
mod set_directory_metadata;
mod set_directory_properties;
mod set_file_metadata;
mod set_file_properties;
mod set_file_service_properties;
mod set_share_acl;
mod set_share_metadata;
mod set_share_properties;
mod snapshot_share;

pub use create_permission::CreatePermission;
pub use create_share::CreateShare;
pub use delete_share::{DeleteShare, DeleteSnapshots, ShareRemoval};
pub use get_permission::GetPermission;
pub use get_share_properties::ReadShare;
pub use get_share_stats::GetShareStats;
pub use lease_share::LeaseShare;
pub use list_shares::{ListShares, ListedShare, SharePlace, ShareVersion, SharesPage};
pub use restore_share::RestoreShare;
pub use set_share_acl::SetShareAcl;
pub use set_share_metadata::{SetShareMetadata, WriteShare};
pub use set_share_properties::SetShareProperties;
pub use snapshot_share::SnapshotShare;

use std::ops::Deref;
use std::sync::Arc;

use tokio::time::Instant;
use wire::http::{Body, Reply};

use crate::background_copy::FileCopier;
use crate::door::Abandoned;
use crate::opens::Opens;
use crate::opens::events::Events;
use crate::owner::Ownership;
use crate::{Failure, Op};

/// A request as an operation of this service gets it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub base: service::Call<'a>,
    pub opens: &'a Opens,
    /// Where changes are told to those who watch directories over SMB.
    pub events: &'a Events,
    /// Files that SMB has marked for deletion and that are deleted in the background.
    pub abandoned: &'a Arc<Abandoned>,
    /// How long the operation waits for SMB clients to give up what they cache.
    pub caches_until: Instant,
    /// For sources of copies, and for copies that go on after the answer.
    pub copier: &'a FileCopier,
    /// The part of this node among many, one of which serves SMB.
    pub ownership: Option<&'a Arc<Ownership>>,
}

impl<'a> Deref for Call<'a> {
    type Target = service::Call<'a>;

    fn deref(&self) -> &service::Call<'a> {
        &self.base
    }
}

/// Boxed are operations whose futures are large: every request's future would otherwise be as large.
pub async fn run(op: Op, call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    match op {
        Op::ListShares => list_shares::run(call).await,
        Op::GetFileServiceProperties => get_file_service_properties::run(call).await,
        Op::SetFileServiceProperties => set_file_service_properties::run(call, body).await,
        Op::GetUserDelegationKey => get_user_delegation_key::run(call, body).await,
        Op::PreflightFileRequest => preflight_file_request::run(call).await,
        Op::CreateShare => create_share::run(call).await,
        Op::SnapshotShare => snapshot_share::run(call).await,
        Op::GetShareProperties => get_share_properties::run(call).await,
        Op::SetShareProperties => set_share_properties::run(call).await,
        Op::GetShareMetadata => get_share_metadata::run(call).await,
        Op::SetShareMetadata => set_share_metadata::run(call).await,
        Op::GetShareAcl => get_share_acl::run(call).await,
        Op::SetShareAcl => set_share_acl::run(call, body).await,
        Op::GetShareStats => get_share_stats::run(call).await,
        Op::DeleteShare => delete_share::run(call).await,
        Op::RestoreShare => restore_share::run(call).await,
        Op::LeaseShare => lease_share::run(call).await,
        Op::CreatePermission => create_permission::run(call, body).await,
        Op::GetPermission => get_permission::run(call).await,
        Op::CreateDirectory => Box::pin(create_directory::run(call)).await,
        Op::GetDirectoryProperties => get_directory_properties::run(call).await,
        Op::SetDirectoryProperties => Box::pin(set_directory_properties::run(call)).await,
        Op::GetDirectoryMetadata => get_directory_metadata::run(call).await,
        Op::SetDirectoryMetadata => Box::pin(set_directory_metadata::run(call)).await,
        Op::DeleteDirectory => Box::pin(delete_directory::run(call)).await,
        Op::RenameDirectory => Box::pin(rename_directory::run(call)).await,
        Op::ListDirectoriesAndFiles => list_directories_and_files::run(call).await,
        Op::ListHandles => list_handles::run(call).await,
        Op::ForceCloseHandles => force_close_handles::run(call).await,
        Op::CreateFile => Box::pin(create_file::run(call, body)).await,
        Op::GetFile => get_file::run(call).await,
        Op::GetFileProperties => get_file_properties::run(call).await,
        Op::SetFileProperties => Box::pin(set_file_properties::run(call)).await,
        Op::GetFileMetadata => get_file_metadata::run(call).await,
        Op::SetFileMetadata => Box::pin(set_file_metadata::run(call)).await,
        Op::DeleteFile => Box::pin(delete_file::run(call)).await,
        Op::RenameFile => Box::pin(rename_file::run(call)).await,
        Op::LeaseFile => Box::pin(lease_file::run(call)).await,
        Op::PutRange => Box::pin(put_range::run(call, body)).await,
        Op::PutRangeFromUrl => Box::pin(put_range_from_url::run(call, body)).await,
        Op::ListRanges => list_ranges::run(call).await,
        Op::CopyFile => Box::pin(copy_file::run(call, body)).await,
        Op::AbortCopyFile => Box::pin(abort_copy_file::run(call)).await,
        Op::CreateSymbolicLink => Box::pin(create_symbolic_link::run(call)).await,
        Op::GetSymbolicLink => get_symbolic_link::run(call).await,
        Op::CreateHardLink => Box::pin(create_hard_link::run(call)).await,
    }
}
