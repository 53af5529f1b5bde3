//! WRITE: bytes to a file or a pipe (MS-SMB2 2.2.21).

use bytes::Bytes;

use super::cursor::Put;
use super::{FileId, body, buffer};
use crate::status::{Result, Status};

const SIZE: u16 = 49;

/// Bits of `Request::flags`: the data is durable before the answer.
pub const FLAG_WRITE_THROUGH: u32 = 1;
pub const FLAG_UNBUFFERED: u32 = 2;

/// The request. Its data is a part of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub offset: u64,
    pub file_id: FileId,
    pub remaining: u32,
    pub flags: u32,
    pub data: Bytes,
}

impl Request {
    /// Reads the body.
    ///
    /// # Errors
    /// INVALID_PARAMETER, also for a write over RDMA, which is not offered.
    pub fn decode(message: &Bytes) -> Result<Request> {
        let mut reader = body(message, SIZE)?;
        let data_offset = usize::from(reader.u16()?);
        let length = reader.u32()? as usize;
        let offset = reader.u64()?;
        let file_id = FileId::decode(&mut reader)?;
        let channel = reader.u32()?;
        let remaining = reader.u32()?;
        reader.skip(4)?;
        let flags = reader.u32()?;
        if channel != 0 {
            return Err(Status::INVALID_PARAMETER);
        }
        Ok(Request { offset, file_id, remaining, flags, data: buffer(message, SIZE, data_offset, length)? })
    }
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    pub count: u32,
}

impl Response {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(17);
        out.put_u16(0);
        out.put_u32(self.count);
        out.put_u32(0);
        out.put_u32(0);
    }
}
