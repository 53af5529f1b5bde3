//! SET_INFO: changes what is known of a file (MS-SMB2 2.2.39).

use bytes::Bytes;

use super::cursor::Put;
use super::query_info::InfoType;
use super::{FileId, body, buffer};
use crate::status::Result;

const SIZE: u16 = 33;

/// The request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub info_type: InfoType,
    /// See [`super::info::set`]; unknown ones are INVALID_INFO_CLASS.
    pub class: u8,
    pub additional: u32,
    pub file_id: FileId,
    pub buffer: Bytes,
}

impl Request {
    /// Reads the body.
    ///
    /// # Errors
    /// INVALID_PARAMETER.
    pub fn decode(message: &Bytes) -> Result<Request> {
        let mut reader = body(message, SIZE)?;
        let info_type = InfoType::from_u8(reader.u8()?)?;
        let class = reader.u8()?;
        let length = reader.u32()? as usize;
        let offset = usize::from(reader.u16()?);
        reader.skip(2)?;
        let additional = reader.u32()?;
        let file_id = FileId::decode(&mut reader)?;
        Ok(Request { info_type, class, additional, file_id, buffer: buffer(message, SIZE, offset, length)? })
    }
}

/// The answer says nothing beside its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response;

impl Response {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(2);
    }
}
