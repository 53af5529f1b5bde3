//! The blob that a copy is made of: what it must be, and what its reader is told if it is not.

use std::fmt;

use concurrency::{Conditions, Timestamp};
use content::source::CopySourceFault;
use engine::{Rows, Stop};
use service::sources::{Manner, without_signature};
use wire::http::ErrorReply;
use wire::names::{BlobName, ContainerName};

use super::encryption::{self, CustomerKey};
use crate::error::BlobError;
use crate::model::{self, Halt, Seen, Which, refuse};

/// The URL of a source, with whatever opens it.
#[derive(Clone, PartialEq, Eq)]
pub struct SourceUrl(pub String);

/// Leaves out the signature.
impl fmt::Debug for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_signature(&self.0))
    }
}

/// A blob of this server that is copied from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceBlob {
    pub account: u64,
    pub container: ContainerName,
    pub name: BlobName,
    pub which: Which,
    pub manner: Manner,
    /// What opens it, if it is sealed.
    pub key: Option<CustomerKey>,
}

impl SourceBlob {
    /// The state that is to be copied, if it is there and as the conditions want it.
    pub fn look(&self, rows: &dyn Rows, conditions: &Conditions, now: Timestamp) -> Result<Seen, Halt> {
        let refused = |error: BlobError| refuse(refused(error.to_reply()));
        let generation = match model::generation(rows, self.account, &self.container) {
            Err(Stop::Refused(error)) => return Err(refused(error)),
            other => other?,
        };
        let seen = model::see(rows, generation, &self.name, self.which)?;
        let seen = seen.ok_or_else(|| refused(BlobError::BlobNotFound))?;
        conditions.check_read(&seen.state.version()).map_err(|unmet| match self.manner {
            // Only the tags are not as they should be: the service has no code of its own for a source's.
            Manner::Copy if conditions.without_tags().check_read(&seen.state.version()).is_ok() => refuse(unmet.into()),
            Manner::Copy => refuse(BlobError::SourceConditionNotMet),
            Manner::FromUrl => refused(unmet.into()),
        })?;
        encryption::check_read(seen.state.encryption.as_ref(), self.key.as_ref()).map_err(refused)?;
        // Its bytes have not all arrived yet.
        seen.state.check_no_copy(now).map_err(refused)?;
        match self.manner {
            // A copy can be told to have it rehydrated.
            Manner::Copy => {}
            Manner::FromUrl => seen.state.check_not_archived(now).map_err(refused)?,
        }
        Ok(seen)
    }
}

/// A read that the source refuses.
pub fn refused(refusal: ErrorReply) -> BlobError {
    CopySourceFault::refused(&refusal).into()
}

/// An answer of the source that is not its bytes.
pub fn fault(status: u16, code: Option<&str>, message: &str) -> BlobError {
    CopySourceFault::answered(status, code, message).into()
}

/// No answer of the source.
pub fn nowhere(message: &str) -> BlobError {
    CopySourceFault::unanswered(message).into()
}
