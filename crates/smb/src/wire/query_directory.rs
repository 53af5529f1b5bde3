//! QUERY_DIRECTORY: entries of a directory by a pattern (MS-SMB2 2.2.33).

use bytes::Bytes;

use super::cursor::utf16;
use super::{FileId, body, buffer, encode_buffer};
use crate::status::{Result, Status};

const SIZE: u16 = 33;

/// Bits of `Request::flags`.
pub const RESTART_SCANS: u8 = 0x01;
pub const RETURN_SINGLE_ENTRY: u8 = 0x02;
pub const INDEX_SPECIFIED: u8 = 0x04;
/// Restart, and take the new pattern.
pub const REOPEN: u8 = 0x10;

/// The request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// See [`super::info::directory::DirectoryClass`]; unknown ones are INVALID_INFO_CLASS.
    pub class: u8,
    pub flags: u8,
    pub file_index: u32,
    pub file_id: FileId,
    pub output_bytes: u32,
    pub pattern: String,
}

impl Request {
    /// Reads the body.
    ///
    /// # Errors
    /// INVALID_PARAMETER for a body that is none, OBJECT_NAME_INVALID for a pattern that is no text.
    pub fn decode(message: &Bytes) -> Result<Request> {
        let mut reader = body(message, SIZE)?;
        let class = reader.u8()?;
        let flags = reader.u8()?;
        let file_index = reader.u32()?;
        let file_id = FileId::decode(&mut reader)?;
        let offset = usize::from(reader.u16()?);
        let length = usize::from(reader.u16()?);
        let output_bytes = reader.u32()?;
        let pattern = buffer(message, SIZE, offset, length)?;
        if !length.is_multiple_of(2) {
            return Err(Status::INVALID_PARAMETER);
        }
        let pattern = utf16(&pattern).map_err(|_| Status::OBJECT_NAME_INVALID)?;
        Ok(Request { class, flags, file_index, file_id, output_bytes, pattern })
    }
}

/// The answer: entries as [`super::info::directory`] writes them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Response {
    pub buffer: Vec<u8>,
}

impl Response {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode_buffer(out, &self.buffer);
    }
}
