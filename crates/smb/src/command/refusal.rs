//! The status of each refusal of the File service.

use engine::EngineError;
use file::door::Refused;

use crate::status::Status;

/// The status that a client gets. A failure that is not the client's fault is logged here, once.
pub(super) fn status_of(refused: Refused) -> Status {
    match refused {
        Refused::AccessDenied => Status::ACCESS_DENIED,
        Refused::BeyondEnd => Status::INVALID_VIEW_SIZE,
        Refused::CannotDelete => Status::CANNOT_DELETE,
        Refused::Collision => Status::OBJECT_NAME_COLLISION,
        Refused::DeletePending => Status::DELETE_PENDING,
        Refused::DirectoryNotEmpty => Status::DIRECTORY_NOT_EMPTY,
        Refused::DiskFull => Status::DISK_FULL,
        Refused::EndOfFile => Status::END_OF_FILE,
        Refused::FileClosed => Status::FILE_CLOSED,
        Refused::FileLockConflict => Status::FILE_LOCK_CONFLICT,
        Refused::InvalidParameter => Status::INVALID_PARAMETER,
        Refused::InvalidLockRange => Status::INVALID_LOCK_RANGE,
        Refused::InvalidSecurityDescriptor => Status::INVALID_SECURITY_DESCR,
        Refused::IsADirectory => Status::FILE_IS_A_DIRECTORY,
        Refused::LockNotGranted => Status::LOCK_NOT_GRANTED,
        Refused::NameInvalid => Status::OBJECT_NAME_INVALID,
        Refused::NoMoreFiles => Status::NO_MORE_FILES,
        Refused::NoSuchFile => Status::NO_SUCH_FILE,
        Refused::NotADirectory => Status::NOT_A_DIRECTORY,
        Refused::NotFound => Status::OBJECT_NAME_NOT_FOUND,
        Refused::NotAFile => Status::INVALID_DEVICE_REQUEST,
        Refused::NotSupported => Status::NOT_SUPPORTED,
        Refused::PathNotFound => Status::OBJECT_PATH_NOT_FOUND,
        Refused::RangeNotLocked => Status::RANGE_NOT_LOCKED,
        Refused::ShareGone => Status::NETWORK_NAME_DELETED,
        Refused::ShareNotFound => Status::BAD_NETWORK_NAME,
        Refused::SnapshotGone => Status::FILE_INVALID,
        Refused::SharingViolation => Status::SHARING_VIOLATION,
        Refused::TooMany => Status::INSUFFICIENT_RESOURCES,
        Refused::TryAgain => Status::RETRY,
        Refused::WriteProtected => Status::MEDIA_WRITE_PROTECTED,
        Refused::Failed(error) => failed(&error),
    }
}

fn failed(error: &EngineError) -> Status {
    // This node serves SMB no longer, and its connections are about to end.
    if !matches!(error, EngineError::Elsewhere { .. }) {
        tracing::error!(%error, "an SMB request failed");
    }
    match error {
        EngineError::Full => Status::DISK_FULL,
        EngineError::Busy => Status::INSUFFICIENT_RESOURCES,
        EngineError::Elsewhere { .. } => Status::NETWORK_NAME_DELETED,
        EngineError::Closed | EngineError::Unavailable(_) | EngineError::Corrupt(_) | EngineError::TooLarge { .. } => {
            Status::UNEXPECTED_IO_ERROR
        }
    }
}
