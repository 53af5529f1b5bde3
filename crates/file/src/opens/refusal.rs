//! Why an operation, an open or a request by handle is refused.

use std::fmt;

use concurrency::range_lock::LockRefusal;
use concurrency::share_mode::SharingViolation;

use super::caches::BreakWait;

/// Why a REST operation may not begin.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// The file is to be deleted: 409 `SMBDeletePending`.
    DeletePending,
    /// A handle does not share what the operation needs: 409 `SharingViolation`.
    SharingViolation,
    /// A byte-range lock covers a part of the range: 409 `FileLockConflict`.
    FileLockConflict,
    /// A limit of this module is reached.
    TooMany,
    /// SMB clients must give up what they cache first. The caller lets go of its turn and its entries, waits and begins again.
    Breaking(BreakWait),
}

/// Why a file is not opened over SMB.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OpenRefusal {
    /// The file, or a directory above it, is to be deleted: `STATUS_DELETE_PENDING`.
    DeletePending,
    /// A handle or a held REST lease stands against it: `STATUS_SHARING_VIOLATION`.
    SharingViolation,
    /// A REST operation that was at work may have changed what the caller read: the path, the file or its lease. It is
    /// done now; the caller gives up its turn and begins again from the path.
    LookAgain,
    /// A limit of this module is reached: `STATUS_INSUFFICIENT_RESOURCES`.
    TooMany,
    /// Other clients must give up what they cache first. The caller gives up its turn, waits and begins again from the path.
    Breaking(BreakWait),
    /// The client has a lease of this key on another file: `STATUS_INVALID_PARAMETER`.
    LeaseElsewhere,
}

/// Why a request by handle is refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HandleRefusal {
    /// The handle was closed, perhaps by force: `STATUS_FILE_CLOSED`.
    Closed,
    /// The file is to be deleted and cannot be renamed any more: `STATUS_DELETE_PENDING`.
    DeletePending,
    /// Something below the directory is open: `STATUS_ACCESS_DENIED`.
    OpenBelow,
    Lock(LockRefusal),
    /// Other clients must give up what they cache first. The caller lets go of its turn and its entries, waits and begins again.
    Breaking(BreakWait),
}

impl From<SharingViolation> for Refusal {
    fn from(SharingViolation: SharingViolation) -> Refusal {
        Refusal::SharingViolation
    }
}

impl From<SharingViolation> for OpenRefusal {
    fn from(SharingViolation: SharingViolation) -> OpenRefusal {
        OpenRefusal::SharingViolation
    }
}

impl From<LockRefusal> for HandleRefusal {
    fn from(refusal: LockRefusal) -> HandleRefusal {
        HandleRefusal::Lock(refusal)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::DeletePending => "the file is to be deleted when its last handle closes",
            Refusal::SharingViolation => "an open handle does not share what the operation needs",
            Refusal::FileLockConflict => "a byte-range lock covers a part of the range",
            Refusal::TooMany => "too many operations are at work on the file",
            Refusal::Breaking(_) => "an SMB client must give up what it caches first",
        })
    }
}

impl fmt::Display for OpenRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OpenRefusal::DeletePending => "the file is to be deleted when its last handle closes",
            OpenRefusal::SharingViolation => "another handle or a lease stands against the open",
            OpenRefusal::LookAgain => "the file may have moved or changed since it was looked up",
            OpenRefusal::TooMany => "the file has too many handles",
            OpenRefusal::Breaking(_) => "another client must give up what it caches first",
            OpenRefusal::LeaseElsewhere => "the key of the lease is in use for another file",
        })
    }
}

impl fmt::Display for HandleRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandleRefusal::Closed => f.write_str("the handle was closed"),
            HandleRefusal::DeletePending => f.write_str("the file is to be deleted when its last handle closes"),
            HandleRefusal::OpenBelow => f.write_str("something below the directory is open"),
            HandleRefusal::Lock(refusal) => refusal.fmt(f),
            HandleRefusal::Breaking(_) => f.write_str("another client must give up what it caches first"),
        }
    }
}

impl std::error::Error for Refusal {}
impl std::error::Error for OpenRefusal {}
impl std::error::Error for HandleRefusal {}
