//! Every operation of the File service, by the name the REST reference gives it.

use auth::{Need, Permissions, ResourceType, Service};
use wire::http::Head;

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
            Op::LeaseShare => share("w"),
            // Permissions belong to the share, and a caller that may write files in it may make them.
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
            Op::LeaseFile => file("w"),
            Op::DeleteDirectory | Op::DeleteFile => file("d"),
        }
    }

    /// The permission that this request must have: mostly the one of its operation.
    #[must_use]
    pub fn needed_by(self, head: &Head) -> Need {
        let breaks = || head.header("x-ms-lease-action").is_some_and(|action| action.eq_ignore_ascii_case("break"));
        match self {
            // Whoever may delete may also break the lease that forbids it.
            Op::LeaseShare | Op::LeaseFile if breaks() => Need { any_of: Permissions::of("wd"), ..self.needs() },
            _ => self.needs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;
    use auth::SasUse;
    use std::collections::BTreeSet;

    /// The second column of the File service's lines in a file under `docs`.
    fn names(file: &str) -> BTreeSet<String> {
        let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let ours = text.lines().filter_map(|line| line.strip_prefix("file\t"));
        ours.filter_map(|line| line.split('\t').next()).map(str::to_owned).collect()
    }

    #[test]
    fn there_is_one_op_for_each_published_operation() {
        assert_eq!(Op::ALL.iter().map(|op| op.name().to_owned()).collect::<BTreeSet<_>>(), names("operations.txt"));
    }

    /// An operation that is not built answers 501 and is listed.
    #[test]
    fn every_operation_is_built() {
        assert_eq!(names("not-yet.txt"), BTreeSet::new());
    }

    #[test]
    fn what_a_signature_for_a_share_or_a_file_allows() {
        for op in Op::ALL {
            let need = op.needs();
            let letters = match op {
                Op::GetDirectoryProperties
                | Op::GetDirectoryMetadata
                | Op::GetFile
                | Op::GetFileProperties
                | Op::GetFileMetadata
                | Op::ListRanges
                | Op::GetSymbolicLink
                | Op::GetPermission => "r",
                Op::CreateDirectory
                | Op::CreateFile
                | Op::CopyFile
                | Op::CreateSymbolicLink
                | Op::CreateHardLink
                | Op::CreatePermission => "cw",
                Op::SetDirectoryProperties
                | Op::SetDirectoryMetadata
                | Op::RenameDirectory
                | Op::SetFileProperties
                | Op::SetFileMetadata
                | Op::RenameFile
                | Op::PutRange
                | Op::PutRangeFromUrl
                | Op::AbortCopyFile
                | Op::LeaseFile => "w",
                Op::DeleteDirectory | Op::DeleteFile => "d",
                Op::ListDirectoriesAndFiles => "l",
                _ => {
                    assert_ne!(need.sas, SasUse::Any, "{}", op.name());
                    continue;
                }
            };
            assert_eq!((need.sas, need.any_of), (SasUse::Any, Permissions::of(letters)), "{}", op.name());
        }
    }

    #[test]
    fn whoever_may_delete_may_break_a_lease() {
        for (op, url) in [(Op::LeaseShare, "share?restype=share&comp=lease"), (Op::LeaseFile, "share/file?comp=lease")]
        {
            let need = |action| op.needed_by(&request("PUT", url, &[("x-ms-lease-action", action)])).any_of;
            assert_eq!((need("Break"), need("release")), (Permissions::of("wd"), Permissions::of("w")));
        }
        assert_eq!(Op::DeleteFile.needed_by(&request("DELETE", "share/file", &[])), Op::DeleteFile.needs());
    }
}
