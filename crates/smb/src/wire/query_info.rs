//! QUERY_INFO: what is known of a file, its file system, its security or its quota (MS-SMB2 2.2.37).

use bytes::Bytes;

use super::{FileId, body, buffer, encode_buffer};
use crate::status::{Result, Status};

const SIZE: u16 = 41;

/// What is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoType {
    File,
    FileSystem,
    Security,
    Quota,
}

impl InfoType {
    pub(super) fn from_u8(value: u8) -> Result<InfoType> {
        match value {
            1 => Ok(InfoType::File),
            2 => Ok(InfoType::FileSystem),
            3 => Ok(InfoType::Security),
            4 => Ok(InfoType::Quota),
            _ => Err(Status::INVALID_PARAMETER),
        }
    }
}

/// Bits of `additional` when security is asked for or set.
pub const OWNER_SECURITY_INFORMATION: u32 = 0x1;
pub const GROUP_SECURITY_INFORMATION: u32 = 0x2;
pub const DACL_SECURITY_INFORMATION: u32 = 0x4;
pub const SACL_SECURITY_INFORMATION: u32 = 0x8;
pub const LABEL_SECURITY_INFORMATION: u32 = 0x10;

/// The request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub info_type: InfoType,
    /// See [`super::info`]; unknown ones are INVALID_INFO_CLASS.
    pub class: u8,
    pub output_bytes: u32,
    pub additional: u32,
    pub flags: u32,
    pub file_id: FileId,
    pub input: Bytes,
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
        let output_bytes = reader.u32()?;
        let offset = usize::from(reader.u16()?);
        reader.skip(2)?;
        let length = reader.u32()? as usize;
        let additional = reader.u32()?;
        let flags = reader.u32()?;
        let file_id = FileId::decode(&mut reader)?;
        let input = buffer(message, SIZE, offset, length)?;
        Ok(Request { info_type, class, output_bytes, additional, flags, file_id, input })
    }
}

/// The answer: what [`super::info`] wrote, or a security descriptor.
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
