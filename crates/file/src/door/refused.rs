//! Why something is not done for an SMB client.

use std::fmt;

use engine::EngineError;

/// A refusal or a failure. The SMB front end has an NTSTATUS for each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The handle was not opened with the access that this needs, or the file does not allow it to anybody: `ACCESS_DENIED`.
    AccessDenied,
    /// A read-only file, or the root, cannot be deleted: `CANNOT_DELETE`.
    CannotDelete,
    /// The name is taken: `OBJECT_NAME_COLLISION`.
    Collision,
    /// The file is to be deleted when its last handle closes: `DELETE_PENDING`.
    DeletePending,
    DirectoryNotEmpty,
    /// The quota of the share is used up, or the file would be longer than a file can be: `DISK_FULL`.
    DiskFull,
    /// A copy reads beyond the last byte of its source: `INVALID_VIEW_SIZE`.
    BeyondEnd,
    /// A read begins behind the last byte: `END_OF_FILE`.
    EndOfFile,
    /// The handle was closed, perhaps by Force Close Handles: `FILE_CLOSED`. CHANGE_NOTIFY answers `NOTIFY_CLEANUP` instead.
    FileClosed,
    /// A read or write meets a byte-range lock: `FILE_LOCK_CONFLICT`.
    FileLockConflict,
    /// The options contradict each other or a number is out of range: `INVALID_PARAMETER`.
    InvalidParameter,
    /// The range of a lock ends beyond 2^64: `INVALID_LOCK_RANGE`.
    InvalidLockRange,
    /// What is no security descriptor: `INVALID_SECURITY_DESCR`.
    InvalidSecurityDescriptor,
    /// A directory stands where a file is asked for: `FILE_IS_A_DIRECTORY`.
    IsADirectory,
    /// Another lock overlaps: `LOCK_NOT_GRANTED`.
    LockNotGranted,
    /// No path of a file, or an alternate stream: `OBJECT_NAME_INVALID`.
    NameInvalid,
    /// All entries of the directory were listed: `NO_MORE_FILES`.
    NoMoreFiles,
    /// No entry of the directory matches the pattern: `NO_SUCH_FILE`.
    NoSuchFile,
    /// A file stands where a directory is asked for: `NOT_A_DIRECTORY`.
    NotADirectory,
    /// The name is not there: `OBJECT_NAME_NOT_FOUND`.
    NotFound,
    /// Only files have this: `INVALID_DEVICE_REQUEST`.
    NotAFile,
    /// The service does not do this: `NOT_SUPPORTED`.
    NotSupported,
    /// A directory above the name is not there: `OBJECT_PATH_NOT_FOUND`.
    PathNotFound,
    /// An unlock names no lock of its handle: `RANGE_NOT_LOCKED`.
    RangeNotLocked,
    /// The share was deleted since the client connected: `NETWORK_NAME_DELETED`.
    ShareGone,
    /// No share of the account has this name, or it is one for NFS: `BAD_NETWORK_NAME`.
    ShareNotFound,
    /// The share snapshot was deleted since the file was opened in it: `FILE_INVALID`.
    SnapshotGone,
    /// Another handle or a REST lease stands against it: `SHARING_VIOLATION`.
    SharingViolation,
    /// A limit is reached: `INSUFFICIENT_RESOURCES`.
    TooMany,
    /// The file changed under the request again and again; the client may try again: `RETRY`.
    TryAgain,
    /// Nothing changes in a share snapshot: `MEDIA_WRITE_PROTECTED`.
    WriteProtected,
    /// The engine failed; it was not the client's fault: `UNEXPECTED_IO_ERROR`, or `DISK_FULL` if the disk is full.
    Failed(EngineError),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::AccessDenied => "the handle does not have the access that this needs",
            Refused::BeyondEnd => "the copy reads beyond the last byte",
            Refused::CannotDelete => "the file cannot be deleted",
            Refused::Collision => "the name is taken",
            Refused::DeletePending => "the file is to be deleted when its last handle closes",
            Refused::DirectoryNotEmpty => "the directory is not empty",
            Refused::DiskFull => "the quota of the share is used up",
            Refused::EndOfFile => "the read begins behind the last byte",
            Refused::FileClosed => "the handle was closed",
            Refused::FileLockConflict => "a byte-range lock covers a part of the range",
            Refused::InvalidParameter => "a parameter is out of range or contradicts another",
            Refused::InvalidLockRange => "the range ends beyond the largest offset",
            Refused::InvalidSecurityDescriptor => "that is no security descriptor",
            Refused::IsADirectory => "a directory stands there",
            Refused::LockNotGranted => "another lock overlaps the range",
            Refused::NameInvalid => "that is no name of a file",
            Refused::NoMoreFiles => "all entries were listed",
            Refused::NoSuchFile => "no entry matches",
            Refused::NotADirectory => "a file stands there",
            Refused::NotFound => "nothing has this name",
            Refused::NotAFile => "only files have this",
            Refused::NotSupported => "the service does not do this",
            Refused::PathNotFound => "a directory of the path is not there",
            Refused::RangeNotLocked => "the handle has no lock of exactly this range",
            Refused::ShareGone => "the share was deleted",
            Refused::ShareNotFound => "the account has no such share for SMB",
            Refused::SnapshotGone => "the share snapshot was deleted",
            Refused::SharingViolation => "another handle or a lease stands against it",
            Refused::TooMany => "a limit is reached",
            Refused::TryAgain => "the file changed under the request",
            Refused::WriteProtected => "nothing changes in a share snapshot",
            Refused::Failed(error) => return error.fmt(f),
        })
    }
}

impl std::error::Error for Refused {}
