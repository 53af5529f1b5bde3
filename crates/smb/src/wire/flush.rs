//! FLUSH: all that was written to a file is durable (MS-SMB2 2.2.17).

pub use super::Empty as Response;
use super::{FileId, body};
use crate::status::Result;

/// The request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub file_id: FileId,
}

impl Request {
    /// Reads the body.
    ///
    /// # Errors
    /// INVALID_PARAMETER.
    pub fn decode(message: &[u8]) -> Result<Request> {
        let mut reader = body(message, 24)?;
        reader.skip(6)?;
        Ok(Request { file_id: FileId::decode(&mut reader)? })
    }
}
