//! Whether a blob may be written to at all: by the holder of its lease, and while no copy into it is under way.

use auth::Caller;
use concurrency::{Lease, LeaseId, Timestamp};

use crate::error::BlobError;
use crate::model::{Blob, Committed};

/// How far the right to create goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// The caller may also write.
    Overwrite,
    /// The caller may create (signature permission `c` without `w`): what exists stays as it is.
    CreateOnly,
}

impl Reach {
    /// The right to create ends where something is already there; only the operation can see that.
    pub fn of(caller: &Caller) -> Reach {
        if caller.has(b'w') { Reach::Overwrite } else { Reach::CreateOnly }
    }
}

impl Blob {
    /// Whether a request with this lease id may write, and the lease as it is afterwards. Every write asks here: while a
    /// copy into the blob is under way nothing else changes it, and an incremental copy is only ever copied to.
    pub fn check_write(&self, lease: Option<LeaseId>, now: Timestamp) -> Result<Lease, BlobError> {
        let lease = self.check_free(lease, now)?;
        match &self.committed {
            Some(state) if state.is_incremental_copy() => Err(BlobError::OperationNotAllowedOnIncrementalCopyBlob),
            Some(_) | None => Ok(lease),
        }
    }

    /// The same for what may be done to an incremental copy, too: another copy, and its end.
    pub fn check_free(&self, lease: Option<LeaseId>, now: Timestamp) -> Result<Lease, BlobError> {
        let lease = self.lease.check_write(lease, now).map_err(BlobError::lease_on_blob)?;
        self.check_no_copy(now)?;
        Ok(lease)
    }

    /// A copy under way stands against everything but reads and its own end.
    pub fn check_no_copy(&self, now: Timestamp) -> Result<(), BlobError> {
        self.committed.as_ref().map_or(Ok(()), |state| state.check_no_copy(now))
    }
}

impl Committed {
    /// Whether no copy into it is under way.
    pub fn check_no_copy(&self, now: Timestamp) -> Result<(), BlobError> {
        match &self.copy {
            Some(copy) if copy.is_pending(now) => Err(BlobError::PendingCopyOperation),
            Some(_) | None => Ok(()),
        }
    }
}

/// [`Blob::check_write`] for a blob that need not be there.
pub fn check_write(found: Option<&Blob>, lease: Option<LeaseId>, now: Timestamp) -> Result<Lease, BlobError> {
    match found {
        Some(blob) => blob.check_write(lease, now),
        None => Lease::Available.check_write(lease, now).map_err(BlobError::lease_on_blob),
    }
}

/// [`Blob::check_free`] for a blob that need not be there.
pub fn check_free(found: Option<&Blob>, lease: Option<LeaseId>, now: Timestamp) -> Result<Lease, BlobError> {
    match found {
        Some(blob) => blob.check_free(lease, now),
        None => Lease::Available.check_write(lease, now).map_err(BlobError::lease_on_blob),
    }
}
