//! CLOSE: ends an open (MS-SMB2 2.2.15).

use super::cursor::Put;
use super::{FileId, Times, body};
use crate::status::Result;

/// The client wants the attributes in the answer.
pub const POSTQUERY_ATTRIB: u16 = 1;

/// The request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub flags: u16,
    pub file_id: FileId,
}

impl Request {
    /// Reads the body.
    ///
    /// # Errors
    /// INVALID_PARAMETER.
    pub fn decode(message: &[u8]) -> Result<Request> {
        let mut reader = body(message, 24)?;
        let flags = reader.u16()?;
        reader.skip(4)?;
        Ok(Request { flags, file_id: FileId::decode(&mut reader)? })
    }
}

/// What the file was like when it was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Attributes {
    pub times: Times,
    pub allocation_size: u64,
    pub end_of_file: u64,
    pub attributes: u32,
}

/// The answer: with attributes if they were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Response {
    pub attributes: Option<Attributes>,
}

impl Response {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(60);
        out.put_u16(if self.attributes.is_some() { POSTQUERY_ATTRIB } else { 0 });
        out.put_u32(0);
        let attributes = self.attributes.unwrap_or_default();
        attributes.times.encode(out);
        out.put_u64(attributes.allocation_size);
        out.put_u64(attributes.end_of_file);
        out.put_u32(attributes.attributes);
    }
}
