//! Decisions of the door: on rows of one share, found again each time.

use concurrency::Timestamp;
use concurrency::range_lock::LockRefusal;
use engine::{NotCommitted, Rows, Stop};
use wire::file_path::{FilePath, PathKind, TrailingDots};

use super::{Refused, Tree};
use crate::error::FileError;
use crate::model::{Halt, Protocol, ShareGuard, find_guard};
use crate::opens::{BreakWait, HandleRefusal, OpenRefusal, Refusal};

/// How often an operation begins anew because what it has looked up has changed.
pub const ATTEMPTS_MAX: usize = 100;
/// How often the map of a file is made to stand by itself before an operation gives up.
pub const SETTLINGS_MAX: usize = 4;

/// Why a decision ends without a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    Refused(Refused),
    /// What was looked up before is not there any more.
    LookAgain,
    /// The map of the file must stand by itself first.
    Unsettled {
        map: u64,
    },
    /// Other clients must give up what they cache first. Nothing is held while they are waited for.
    Breaking(BreakWait),
}

pub type Stopped = Stop<Ended>;

/// A refusal in a decision.
pub fn refuse(refused: Refused) -> Stopped {
    Stop::Refused(Ended::Refused(refused))
}

/// What a function that REST has, too, ended with.
pub fn ended(halt: Halt) -> Stopped {
    match halt {
        Stop::Refused(error) => Stop::Refused(error.into()),
        Stop::Unread(unread) => Stop::Unread(unread),
    }
}

impl Tree {
    /// The share, if it is still the one that the client connected to.
    pub(super) fn guard(&self, rows: &dyn Rows) -> Result<ShareGuard, Stopped> {
        let share = find_guard(rows, self.account, &self.share)?;
        let same = share.filter(|share| share.generation == self.generation && share.protocol == Protocol::Smb);
        same.ok_or(refuse(Refused::ShareGone))
    }

    /// Reads on one state of the share.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        look: impl Fn(&dyn Rows, ShareGuard, Timestamp) -> Result<T, Stopped> + Send + 'static,
    ) -> Result<T, Ended> {
        let tree = self.clone();
        let read = engine::read(&*self.door.engine, move |rows, now| look(rows, tree.guard(rows)?, now));
        Ok(read.await?)
    }
}

/// A path as SMB has it. Names follow the rules of REST; dots at their ends stay.
pub fn parse_path(path: &str) -> Result<FilePath, Refused> {
    if path.starts_with('\\') {
        return Err(Refused::InvalidParameter);
    }
    if path.contains('/') {
        return Err(Refused::NameInvalid);
    }
    // The unnamed stream is the file itself; there are no others.
    let stream = path.len().checked_sub(DATA_STREAM.len()).and_then(|at| path.split_at_checked(at));
    let path = match stream {
        Some((file, stream)) if stream.eq_ignore_ascii_case(DATA_STREAM) && !file.is_empty() => {
            if names_directory(file) {
                return Err(Refused::NameInvalid);
            }
            file
        }
        Some(_) | None => path,
    };
    let path = path.replace('\\', "/");
    FilePath::parse(&path, PathKind::Directory, TrailingDots::Keep).map_err(|_| Refused::NameInvalid)
}

/// Whether a path can only be that of a directory: it ends with a backslash.
pub fn names_directory(path: &str) -> bool {
    path.ends_with('\\')
}

const DATA_STREAM: &str = "::$DATA";

impl From<Ended> for Refused {
    fn from(ended: Ended) -> Refused {
        match ended {
            Ended::Refused(refused) => refused,
            Ended::LookAgain | Ended::Unsettled { .. } | Ended::Breaking(_) => Refused::TryAgain,
        }
    }
}

impl From<Refused> for Ended {
    fn from(refused: Refused) -> Ended {
        Ended::Refused(refused)
    }
}

impl From<NotCommitted<Ended>> for Ended {
    fn from(error: NotCommitted<Ended>) -> Ended {
        match error {
            NotCommitted::Refused(ended) => ended,
            NotCommitted::Failed(error) => Refused::Failed(error).into(),
        }
    }
}

impl From<engine::EngineError> for Refused {
    fn from(error: engine::EngineError) -> Refused {
        Refused::Failed(error)
    }
}

impl From<FileError> for Ended {
    fn from(error: FileError) -> Ended {
        Ended::Refused(match error {
            FileError::Moved | FileError::SourceMoved | FileError::UnauthorizedOverwrite => return Ended::LookAgain,
            FileError::Unsettled { map } => return Ended::Unsettled { map },
            FileError::CacheBreaking(wait) => return Ended::Breaking(wait),
            FileError::CannotConvertToSddlDueToCustomAce
            | FileError::FileInvalidPermission
            | FileError::FileInvalidPermissionKey => Refused::InvalidSecurityDescriptor,
            FileError::InvalidFileOrDirectoryPathName => Refused::NameInvalid,
            FileError::DirectoryNotEmpty => Refused::DirectoryNotEmpty,
            // A handle that may only append, before the end of the file.
            FileError::InvalidRange { .. } | FileError::ReadOnlyAttribute => Refused::AccessDenied,
            FileError::ParentNotFound => Refused::PathNotFound,
            FileError::ResourceAlreadyExists => Refused::Collision,
            FileError::ResourceNotFound => Refused::NotFound,
            FileError::ResourceTypeMismatch => Refused::NotAFile,
            FileError::ShareNotFound => Refused::ShareGone,
            FileError::ShareSizeLimitReached => Refused::DiskFull,
            // To SMB, a copy that fills the file has it open.
            FileError::PendingCopyOperation
            | FileError::SharingViolation
            | FileError::ClientCacheFlushDelay
            | FileError::Lease(..) => Refused::SharingViolation,
            FileError::FileLockConflict => Refused::FileLockConflict,
            FileError::SmbDeletePending => Refused::DeletePending,
            FileError::CannotDeleteFileOrDirectory => Refused::CannotDelete,
            FileError::Request(_)
            | FileError::ConditionHeadersNotSupported
            | FileError::InvalidInput { .. }
            | FileError::InvalidMarker
            | FileError::LinkNotSupported
            | FileError::ShareSnapshotOperationNotSupported
            | FileError::DeleteShareWhenSnapshotLeased
            | FileError::FileGenerationMismatch
            | FileError::ShareAlreadyExists
            | FileError::ShareHasSnapshots
            | FileError::ShareSnapshotCountExceeded
            | FileError::UnauthorizedSource
            | FileError::CannotVerifyCopySource(_)
            | FileError::CopyIdMismatch
            | FileError::NoPendingCopyOperation
            | FileError::SourceConditionNotMet => Refused::InvalidParameter,
        })
    }
}

impl From<HandleRefusal> for Ended {
    fn from(refusal: HandleRefusal) -> Ended {
        Ended::Refused(match refusal {
            HandleRefusal::Breaking(wait) => return Ended::Breaking(wait),
            HandleRefusal::Closed => Refused::FileClosed,
            HandleRefusal::DeletePending => Refused::DeletePending,
            HandleRefusal::OpenBelow => Refused::AccessDenied,
            HandleRefusal::Lock(refusal) => refusal.into(),
        })
    }
}

impl From<HandleRefusal> for Refused {
    fn from(refusal: HandleRefusal) -> Refused {
        Ended::from(refusal).into()
    }
}

impl From<LockRefusal> for Refused {
    fn from(refusal: LockRefusal) -> Refused {
        match refusal {
            LockRefusal::NotGranted => Refused::LockNotGranted,
            LockRefusal::Conflict => Refused::FileLockConflict,
            LockRefusal::NotLocked => Refused::RangeNotLocked,
            LockRefusal::InvalidRange => Refused::InvalidLockRange,
            LockRefusal::TooMany => Refused::TooMany,
        }
    }
}

impl From<Refusal> for Ended {
    fn from(refusal: Refusal) -> Ended {
        Ended::Refused(match refusal {
            Refusal::Breaking(wait) => return Ended::Breaking(wait),
            Refusal::DeletePending => Refused::DeletePending,
            Refusal::SharingViolation => Refused::SharingViolation,
            Refusal::FileLockConflict => Refused::FileLockConflict,
            Refusal::TooMany => Refused::TooMany,
        })
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        Ended::from(refusal).into()
    }
}

impl From<OpenRefusal> for Ended {
    fn from(refusal: OpenRefusal) -> Ended {
        Ended::Refused(match refusal {
            OpenRefusal::LookAgain => return Ended::LookAgain,
            OpenRefusal::DeletePending => Refused::DeletePending,
            OpenRefusal::SharingViolation => Refused::SharingViolation,
            OpenRefusal::TooMany => Refused::TooMany,
            OpenRefusal::Breaking(wait) => return Ended::Breaking(wait),
            OpenRefusal::LeaseElsewhere => Refused::InvalidParameter,
        })
    }
}
