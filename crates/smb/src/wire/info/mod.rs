//! Information classes (MS-FSCC 2.4, 2.5): what QUERY_DIRECTORY and QUERY_INFO answer, and what SET_INFO sets.
//!
//! A buffer below the fixed part of a class is INFO_LENGTH_MISMATCH; one that the variable part does not fit into is filled, with
//! BUFFER_OVERFLOW.

pub mod directory;
pub mod file;
pub mod file_system;
pub mod quota;
pub mod set;

use crate::status::{Result, Status};

/// What is answered: the bytes, with SUCCESS or BUFFER_OVERFLOW.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub buffer: Vec<u8>,
    pub status: Status,
}

/// Cuts an answer to the client's buffer.
///
/// # Errors
/// INFO_LENGTH_MISMATCH when not even the fixed part has room.
pub fn bounded(mut buffer: Vec<u8>, fixed: usize, max: usize) -> Result<Answer> {
    if max < fixed {
        return Err(Status::INFO_LENGTH_MISMATCH);
    }
    let status = if buffer.len() > max { Status::BUFFER_OVERFLOW } else { Status::SUCCESS };
    buffer.truncate(max);
    Ok(Answer { buffer, status })
}
