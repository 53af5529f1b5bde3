//! IOCTL: file system controls and pipes (MS-SMB2 2.2.31). What they carry is in [`super::fsctl`].

use bytes::Bytes;

use super::cursor::{Put, len32};
use super::{FileId, body, buffer};
use crate::status::{Result, Status};

const SIZE: u16 = 57;

/// The request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// See [`super::fsctl::code`].
    pub code: u32,
    pub file_id: FileId,
    pub input: Bytes,
    pub max_input: u32,
    pub max_output: u32,
}

impl Request {
    /// Reads the body.
    ///
    /// # Errors
    /// INVALID_PARAMETER for a body that is none, NOT_SUPPORTED for an IOCTL that is no file system control.
    pub fn decode(message: &Bytes) -> Result<Request> {
        let mut reader = body(message, SIZE)?;
        reader.skip(2)?;
        let code = reader.u32()?;
        let file_id = FileId::decode(&mut reader)?;
        let offset = reader.u32()? as usize;
        let length = reader.u32()? as usize;
        let max_input = reader.u32()?;
        reader.skip(8)?;
        let max_output = reader.u32()?;
        let flags = reader.u32()?;
        let input = buffer(message, SIZE, offset, length)?;
        if flags != 1 {
            return Err(Status::NOT_SUPPORTED);
        }
        Ok(Request { code, file_id, input, max_input, max_output })
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub code: u32,
    pub file_id: FileId,
    pub output: Vec<u8>,
}

impl Response {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        // The output has its place even when it is empty: clients check both offsets.
        const BUFFER: u32 = 112;
        out.put_u16(49);
        out.put_u16(0);
        out.put_u32(self.code);
        self.file_id.encode(out);
        out.put_u32(BUFFER);
        out.put_u32(0);
        out.put_u32(BUFFER);
        out.put_u32(len32(self.output.len()));
        out.put_u32(0);
        out.put_u32(0);
        out.put(&self.output);
    }
}
