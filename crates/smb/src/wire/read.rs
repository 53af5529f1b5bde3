//! READ: bytes of a file or a pipe (MS-SMB2 2.2.19).

use bytes::Bytes;

use super::cursor::{Put, len32};
use super::{FileId, body};
use crate::status::{Result, Status};

const SIZE: u16 = 49;

/// Where data stands in an answer.
pub const DATA_OFFSET: u8 = 80;

/// `Request::flags`: past caches (3.0.2). All our reads are.
pub const FLAG_UNBUFFERED: u8 = 1;

/// The request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub flags: u8,
    pub length: u32,
    pub offset: u64,
    pub file_id: FileId,
    /// Fewer bytes than these are END_OF_FILE.
    pub minimum: u32,
    pub remaining: u32,
}

impl Request {
    /// Reads the body.
    ///
    /// # Errors
    /// INVALID_PARAMETER, also for a read over RDMA, which is not offered.
    pub fn decode(message: &[u8]) -> Result<Request> {
        let mut reader = body(message, SIZE)?;
        reader.skip(1)?;
        let flags = reader.u8()?;
        let length = reader.u32()?;
        let offset = reader.u64()?;
        let file_id = FileId::decode(&mut reader)?;
        let minimum = reader.u32()?;
        let channel = reader.u32()?;
        let remaining = reader.u32()?;
        if channel != 0 {
            return Err(Status::INVALID_PARAMETER);
        }
        Ok(Request { flags, length, offset, file_id, minimum, remaining })
    }
}

/// The answer. Its data is handed on, not copied.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Response {
    pub data: Vec<Bytes>,
    /// What is left of a message in a pipe.
    pub remaining: u32,
}

impl Response {
    /// Appends the body without the data.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let length: usize = self.data.iter().map(Bytes::len).sum();
        out.put_u16(17);
        out.put_u8(DATA_OFFSET);
        out.put_u8(0);
        out.put_u32(len32(length));
        out.put_u32(self.remaining);
        out.put_u32(0);
    }
}
