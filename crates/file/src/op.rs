//! Every operation of the File service, by the name the REST reference gives it.

use auth::{Need, ResourceType, Service};

service::operations! {
    // The service.
    ListShares,
    GetFileServiceProperties,
    SetFileServiceProperties,
    GetUserDelegationKey,
    PreflightFileRequest,
    // Shares.
    CreateShare,
    SnapshotShare,
    GetShareProperties,
    SetShareProperties,
    GetShareMetadata,
    SetShareMetadata,
    GetShareAcl,
    SetShareAcl,
    GetShareStats,
    DeleteShare,
    RestoreShare,
    LeaseShare,
    CreatePermission,
    GetPermission,
    // Directories.
    CreateDirectory,
    GetDirectoryProperties,
    SetDirectoryProperties,
    GetDirectoryMetadata,
    SetDirectoryMetadata,
    DeleteDirectory,
    RenameDirectory,
    ListDirectoriesAndFiles,
    // Directories and files.
    ListHandles,
    ForceCloseHandles,
    // Files.
    CreateFile,
    GetFile,
    GetFileProperties,
    SetFileProperties,
    GetFileMetadata,
    SetFileMetadata,
    DeleteFile,
    RenameFile,
    LeaseFile,
    PutRange,
    PutRangeFromUrl,
    ListRanges,
    CopyFile,
    AbortCopyFile,
    CreateSymbolicLink,
    GetSymbolicLink,
    CreateHardLink,
}

impl Op {
    /// The permission that a shared access signature must have. (The holder of the account key may do everything.)
    ///
    /// A signature for a share or a file reaches directories and files only; the operations of a share and of the service take an
    /// account signature.
    #[must_use]
    pub fn needs(self) -> Need {
        let service = |letters| Need::new(Service::File, ResourceType::Service, letters).account_sas_only();
        let share = |letters| Need::new(Service::File, ResourceType::Container, letters).account_sas_only();
        let file = |letters| Need::new(Service::File, ResourceType::Object, letters);
        match self {
            Op::ListShares => service("l"),
            Op::GetFileServiceProperties => service("r"),
            Op::SetFileServiceProperties => service("w"),
            Op::GetUserDelegationKey => service("").only_by_bearer(),
            // A browser sends the preflight without credentials.
            Op::PreflightFileRequest => service(""),
            Op::CreateShare | Op::SnapshotShare => share("cw"),
            Op::GetShareProperties | Op::GetShareMetadata | Op::GetShareStats => share("r"),
            Op::SetShareProperties | Op::SetShareMetadata => share("w"),
            Op::GetShareAcl | Op::SetShareAcl => share("").never_by_sas().never_by_bearer(),
            Op::DeleteShare => share("d"),
            Op::RestoreShare => share("w"),
            Op::LeaseShare => share("wd"),
            // Permissions belong to the share but are made by who may write files in it.
            Op::CreatePermission => Need::new(Service::File, ResourceType::Container, "cw"),
            Op::GetPermission => Need::new(Service::File, ResourceType::Container, "r"),
            Op::ListDirectoriesAndFiles => Need::new(Service::File, ResourceType::Container, "l"),
            Op::ListHandles => file("l").or_container().account_sas_only(),
            Op::ForceCloseHandles => file("w").or_container().account_sas_only(),
            Op::CreateDirectory | Op::CreateFile | Op::CopyFile | Op::CreateSymbolicLink | Op::CreateHardLink => {
                file("cw")
            }
            Op::GetDirectoryProperties
            | Op::GetDirectoryMetadata
            | Op::GetFile
            | Op::GetFileProperties
            | Op::GetFileMetadata
            | Op::ListRanges
            | Op::GetSymbolicLink => file("r"),
            Op::SetDirectoryProperties
            | Op::SetDirectoryMetadata
            | Op::RenameDirectory
            | Op::SetFileProperties
            | Op::SetFileMetadata
            | Op::RenameFile
            | Op::PutRange
            | Op::PutRangeFromUrl
            | Op::AbortCopyFile => file("w"),
            Op::LeaseFile => file("wd"),
            Op::DeleteDirectory | Op::DeleteFile => file("d"),
        }
    }
}
