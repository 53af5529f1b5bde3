//! Why the service refuses a request: every code with its status and text, in one place.

use concurrency::LeaseRefusal;
use content::source::CopySourceFault;
use service::RequestError;
use wire::file_path::PathError;
use wire::http::ErrorReply;
use wire::metadata::MetadataError;
use wire::names::NameError;
use wire::xml::XmlError;

use crate::opens::BreakWait;

/// A refusal. Nothing was changed; the same request may succeed once what it names has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileError {
    /// The request itself is wrong, as it would be for any service.
    Request(RequestError),

    // The request itself (400 and its kin).
    /// A descriptor that SDDL cannot say.
    CannotConvertToSddlDueToCustomAce,
    ConditionHeadersNotSupported,
    FileInvalidPermission,
    FileInvalidPermissionKey,
    InvalidFileOrDirectoryPathName,
    /// What the operation cannot do with what it names: delete or rename the root, move a directory into itself.
    InvalidInput {
        reason: &'static str,
    },
    InvalidMarker,
    /// Only shares for NFS have links.
    LinkNotSupported,
    /// Snapshots never change.
    ShareSnapshotOperationNotSupported,

    // What is, or is not, there.
    /// Some snapshots of a share that is to be deleted are leased.
    DeleteShareWhenSnapshotLeased,
    DirectoryNotEmpty,
    /// A file is not the one that a snapshot has, or it is elsewhere there.
    FileGenerationMismatch,
    InvalidRange {
        length: u64,
    },
    ParentNotFound,
    ReadOnlyAttribute,
    ResourceAlreadyExists,
    ResourceNotFound,
    ResourceTypeMismatch,
    ShareAlreadyExists,
    ShareHasSnapshots,
    ShareNotFound,
    ShareSnapshotCountExceeded,
    /// The quota of the share is used up.
    ShareSizeLimitReached,
    /// The caller may create, and there is something already.
    UnauthorizedOverwrite,
    /// The caller may write the target of a rename, but not its source.
    UnauthorizedSource,

    // Copies.
    CannotVerifyCopySource(Box<CopySourceFault>),
    CopyIdMismatch,
    NoPendingCopyOperation,
    PendingCopyOperation,
    SourceConditionNotMet,

    // Others have it open over SMB.
    FileLockConflict,
    SharingViolation,
    SmbDeletePending,
    /// A directory with something open below it.
    CannotDeleteFileOrDirectory,
    /// An SMB client has not given up in time what it caches of the file.
    ClientCacheFlushDelay,

    // Leases.
    Lease(Leased, LeaseRefusal),

    /// SMB clients must give up what they cache of a file first. It is never an answer: the operation waits for them and begins anew.
    CacheBreaking(BreakWait),
    /// Another file or directory, or none, stands at the path since it was looked up, or the file ends elsewhere. It is never an answer:
    /// the operation begins anew.
    Moved,
    /// The same of the source of a copy.
    SourceMoved,
    /// Too many maps stand behind that of a file to put another in front. It is never an answer: the operation makes the map stand by
    /// itself and begins anew.
    Unsettled {
        map: u64,
    },
}

/// What a lease that refuses is on, and what was asked of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leased {
    File,
    Share,
}

/// The code of a file that SMB is about to delete. The reference's error table has `DeletePending`; its page on file locks has this
/// one, and so does our promise.
const SMB_DELETE_PENDING: &str = "SMBDeletePending";
const CANNOT_VERIFY_COPY_SOURCE: &str = "CannotVerifyCopySource";

impl FileError {
    pub(crate) fn header(name: &'static str, value: impl Into<String>) -> FileError {
        FileError::Request(RequestError::header(name, value))
    }

    pub(crate) fn query(name: &'static str, value: impl Into<String>) -> FileError {
        FileError::Request(RequestError::query(name, value))
    }

    pub(crate) fn file_lease(refusal: LeaseRefusal) -> FileError {
        FileError::Lease(Leased::File, refusal)
    }

    pub(crate) fn share_lease(refusal: LeaseRefusal) -> FileError {
        FileError::Lease(Leased::Share, refusal)
    }

    /// Status, code and text. Codes are what clients match on; of the texts only a few.
    fn table(&self) -> (u16, &'static str, &'static str) {
        match self {
            FileError::Request(error) => error.table(),
            FileError::CannotConvertToSddlDueToCustomAce => (
                400,
                "CannotConvertToSddlDueToCustomAce",
                "The file permission has an entry that cannot be written as SDDL. Ask for it in binary form.",
            ),
            FileError::ConditionHeadersNotSupported => {
                (400, "ConditionHeadersNotSupported", "Condition headers are not supported.")
            }
            FileError::FileInvalidPermission => {
                (400, "FileInvalidPermission", "The file permission is not a valid security descriptor.")
            }
            FileError::FileInvalidPermissionKey => {
                (400, "FileInvalidPermissionKey", "The file permission key is not known in this share.")
            }
            FileError::InvalidFileOrDirectoryPathName => (
                400,
                "InvalidFileOrDirectoryPathName",
                "The specified path, or one of its names, is longer than the service allows.",
            ),
            FileError::InvalidInput { .. } => (400, "InvalidInput", "One of the request inputs is not valid."),
            FileError::InvalidMarker => (400, "InvalidMarker", "The specified marker is invalid."),
            FileError::LinkNotSupported => {
                (400, "UnsupportedQueryParameter", "Links are supported only in shares with the NFS protocol enabled.")
            }
            FileError::ShareSnapshotOperationNotSupported => {
                (400, "ShareSnapshotOperationNotSupported", "The operation is not supported on a share snapshot.")
            }

            FileError::DeleteShareWhenSnapshotLeased => (
                409,
                "DeleteShareWhenSnapshotLeased",
                "Unable to delete the share because one or more share snapshots have active leases.",
            ),
            FileError::DirectoryNotEmpty => (409, "DirectoryNotEmpty", "The specified directory is not empty."),
            FileError::FileGenerationMismatch => (
                409,
                "FileGenerationMismatch",
                "The file is not the one that the previous share snapshot has at this path.",
            ),
            FileError::InvalidRange { .. } => {
                (416, "InvalidRange", "The range specified is invalid for the current size of the resource.")
            }
            FileError::ParentNotFound => (404, "ParentNotFound", "The specified parent path does not exist."),
            FileError::ReadOnlyAttribute => {
                (409, "ReadOnlyAttribute", "The specified resource is read-only and cannot be modified at this time.")
            }
            FileError::ResourceAlreadyExists => {
                (409, "ResourceAlreadyExists", "The specified resource already exists.")
            }
            FileError::ResourceNotFound => (404, "ResourceNotFound", "The specified resource does not exist."),
            FileError::ResourceTypeMismatch => {
                (409, "ResourceTypeMismatch", "The resource type does not match the type of the specified resource.")
            }
            FileError::ShareAlreadyExists => (409, "ShareAlreadyExists", "The specified share already exists."),
            FileError::ShareHasSnapshots => {
                (409, "ShareHasSnapshots", "The share has snapshots and the operation requires no snapshots.")
            }
            FileError::ShareNotFound => (404, "ShareNotFound", "The specified share does not exist."),
            FileError::ShareSnapshotCountExceeded => (
                409,
                "ShareSnapshotCountExceeded",
                "The share has as many snapshots as it can have. Delete some of them.",
            ),
            FileError::ShareSizeLimitReached => {
                (403, "ShareSizeLimitReached", "The share size limit has been reached.")
            }
            FileError::UnauthorizedOverwrite | FileError::UnauthorizedSource => (
                403,
                "AuthorizationPermissionMismatch",
                "This request is not authorized to perform this operation using this permission.",
            ),

            FileError::CannotVerifyCopySource(fault) => {
                (fault.status, CANNOT_VERIFY_COPY_SOURCE, "The copy source could not be read.")
            }
            FileError::CopyIdMismatch => (
                409,
                "CopyIdMismatch",
                "The specified copy ID did not match the copy ID for the pending copy operation.",
            ),
            FileError::NoPendingCopyOperation => {
                (409, "NoPendingCopyOperation", "There is currently no pending copy operation.")
            }
            FileError::PendingCopyOperation => {
                (409, "PendingCopyOperation", "There is currently a pending copy operation.")
            }
            FileError::SourceConditionNotMet => (
                412,
                "SourceConditionNotMet",
                "The source condition specified using HTTP conditional header(s) is not met.",
            ),

            FileError::FileLockConflict => {
                (409, "FileLockConflict", "A portion of the specified file is locked by an SMB client.")
            }
            FileError::SharingViolation => {
                (409, "SharingViolation", "The specified resource may be in use by an SMB client.")
            }
            FileError::SmbDeletePending => {
                (409, SMB_DELETE_PENDING, "The specified resource is marked for deletion by an SMB client.")
            }
            FileError::CannotDeleteFileOrDirectory => (
                409,
                "CannotDeleteFileOrDirectory",
                "The file or directory could not be deleted because it is in use by an SMB client.",
            ),

            FileError::ClientCacheFlushDelay => (
                408,
                "ClientCacheFlushDelay",
                "The specified resource may be cached by an SMB client, which did not write its cache back in time.",
            ),

            FileError::Lease(of, refusal) => lease(*of, *refusal),
            FileError::CacheBreaking(_) => (503, "ServerBusy", "SMB clients open the file all the time. Try again."),
            FileError::Moved | FileError::SourceMoved => {
                (503, "ServerBusy", "The path changes all the time. Try again.")
            }
            FileError::Unsettled { .. } => (503, "ServerBusy", "The file is being rewritten. Try again."),
        }
    }
}

/// The service calls a share a container in its codes, though not in its texts.
fn lease(of: Leased, refusal: LeaseRefusal) -> (u16, &'static str, &'static str) {
    match (refusal, of) {
        (LeaseRefusal::AlreadyPresent, _) => (409, "LeaseAlreadyPresent", "There is already a lease present."),
        (LeaseRefusal::IdMismatchWithLeaseOperation, _) => (
            409,
            "LeaseIdMismatchWithLeaseOperation",
            "The lease ID specified did not match the lease ID for the resource with the specified lease operation.",
        ),
        (LeaseRefusal::IsBreakingAndCannotBeAcquired, _) => (
            409,
            "LeaseIsBreakingAndCannotBeAcquired",
            "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.",
        ),
        (LeaseRefusal::IsBreakingAndCannotBeChanged, _) => (
            409,
            "LeaseIsBreakingAndCannotBeChanged",
            "The lease ID matched, but the lease is currently in breaking state and cannot be changed.",
        ),
        (LeaseRefusal::IsBrokenAndCannotBeRenewed, _) => (
            409,
            "LeaseIsBrokenAndCannotBeRenewed",
            "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.",
        ),
        (LeaseRefusal::NotPresentWithLeaseOperation, _) => {
            (409, "LeaseNotPresentWithLeaseOperation", "There is currently no lease on the resource.")
        }
        (LeaseRefusal::IdMissing, Leased::File) => (
            412,
            "LeaseIdMissing",
            "There is currently a lease on the file and no lease ID was specified in the request.",
        ),
        (LeaseRefusal::IdMissing, Leased::Share) => (
            412,
            "LeaseIdMissing",
            "There is currently a lease on the file share and no lease ID was specified in the request.",
        ),
        (LeaseRefusal::IdMismatch, Leased::File) => {
            (412, "LeaseIdMismatchWithFileOperation", "The lease ID specified did not match the lease ID for the file.")
        }
        (LeaseRefusal::IdMismatch, Leased::Share) => (
            412,
            "LeaseIdMismatchWithContainerOperation",
            "The lease ID specified did not match the lease ID for the file share.",
        ),
        // A lease that has ended is none.
        (LeaseRefusal::NotPresent | LeaseRefusal::Lost, Leased::File) => {
            (412, "LeaseNotPresentWithFileOperation", "There is currently no lease on the file.")
        }
        (LeaseRefusal::NotPresent | LeaseRefusal::Lost, Leased::Share) => {
            (412, "LeaseNotPresentWithContainerOperation", "There is currently no lease on the file share.")
        }
    }
}

/// The refusal as an HTTP answer.
impl From<FileError> for ErrorReply {
    fn from(error: FileError) -> ErrorReply {
        let (status, code, message) = error.table();
        let reply = ErrorReply::new(status, code, message);
        match error {
            FileError::Request(error) => error.into(),
            FileError::InvalidRange { length } => reply.header("content-range", format!("bytes */{length}")),
            FileError::InvalidInput { reason } => reply.detail("Reason", reason),
            FileError::CannotVerifyCopySource(fault) => fault.to_reply(CANNOT_VERIFY_COPY_SOURCE),
            _ => reply,
        }
    }
}

impl From<CopySourceFault> for FileError {
    fn from(fault: CopySourceFault) -> FileError {
        FileError::CannotVerifyCopySource(Box::new(fault))
    }
}

impl From<RequestError> for FileError {
    fn from(error: RequestError) -> FileError {
        FileError::Request(error)
    }
}

impl From<NameError> for FileError {
    fn from(error: NameError) -> FileError {
        FileError::Request(error.into())
    }
}

impl From<MetadataError> for FileError {
    fn from(error: MetadataError) -> FileError {
        FileError::Request(error.into())
    }
}

impl From<XmlError> for FileError {
    fn from(error: XmlError) -> FileError {
        FileError::Request(error.into())
    }
}

impl From<PathError> for FileError {
    fn from(error: PathError) -> FileError {
        match error {
            PathError::Characters | PathError::Reserved | PathError::Empty => RequestError::InvalidResourceName.into(),
            PathError::ComponentLength | PathError::PathLength | PathError::Depth => {
                FileError::InvalidFileOrDirectoryPathName
            }
        }
    }
}
