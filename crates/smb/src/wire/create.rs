//! CREATE: opens a file, a directory or a pipe, and creates it if that is asked for (MS-SMB2 2.2.13).

use bytes::Bytes;
pub use file::door::{CreateAction as Action, Disposition, options as option};

use super::create_context::{self, RequestContexts, ResponseContext};
use super::cursor::{Put, len32, utf16};
use super::header::HEADER_BYTES;
use super::{FileId, Times, body, buffer};
use crate::status::{Result, Status};

const SIZE: u16 = 57;

/// Bytes of the contexts of a request. A security descriptor has 64 KiB at most.
pub const CONTEXTS_BYTES_MAX: usize = 128 << 10;

/// Levels of oplocks.
pub mod oplock_level {
    pub const NONE: u8 = 0x00;
    pub const II: u8 = 0x01;
    pub const EXCLUSIVE: u8 = 0x08;
    pub const BATCH: u8 = 0x09;
    /// A lease: see the context `RqLs`.
    pub const LEASE: u8 = 0xFF;
}

/// Bits of the desired access (MS-SMB2 2.2.13.1): those of the File service, and what only messages have.
pub mod access {
    pub use file::door::access::*;

    pub const FILE_GENERIC_READ: u32 = 0x12_0089;
    pub const FILE_GENERIC_WRITE: u32 = 0x12_0116;
    pub const FILE_GENERIC_EXECUTE: u32 = 0x12_00A0;
    /// Bits that stand for something.
    pub const KNOWN: u32 = 0xF31F_01FF;
}

/// The request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// See [`oplock_level`]; others are taken for none.
    pub oplock: u8,
    pub impersonation: u32,
    pub desired_access: u32,
    pub attributes: u32,
    pub share_access: u32,
    pub disposition: Disposition,
    pub options: u32,
    /// From the root of the share, with `\`; empty for the root. With OPEN_BY_FILE_ID: see `raw_name`.
    pub name: String,
    /// The name's bytes: a file id of 8 or 16 bytes with OPEN_BY_FILE_ID, when `name` is empty.
    pub raw_name: Bytes,
    pub contexts: RequestContexts,
}

impl Request {
    /// Reads the body.
    ///
    /// # Errors
    /// INVALID_PARAMETER for a body or contexts that are none, BAD_IMPERSONATION_LEVEL, OBJECT_NAME_INVALID for a name that is no text.
    pub fn decode(message: &Bytes) -> Result<Request> {
        let mut reader = body(message, SIZE)?;
        reader.skip(1)?;
        let oplock = reader.u8()?;
        let impersonation = reader.u32()?;
        reader.skip(16)?;
        let desired_access = reader.u32()?;
        let attributes = reader.u32()?;
        let share_access = reader.u32()?;
        let disposition = reader.u32()?;
        let options = reader.u32()?;
        let name_offset = usize::from(reader.u16()?);
        let name_length = usize::from(reader.u16()?);
        let contexts_offset = reader.u32()? as usize;
        let contexts_length = reader.u32()? as usize;
        let raw_name = buffer(message, SIZE, name_offset, name_length)?;
        let contexts = buffer(message, SIZE, contexts_offset, contexts_length)?;
        if contexts_length > CONTEXTS_BYTES_MAX {
            return Err(Status::INVALID_PARAMETER);
        }
        let contexts = RequestContexts::decode(&contexts)?;
        // Who claims an open again has asked for everything else before: nobody looks at it.
        let is_claim = contexts.reconnect.is_some() || contexts.reconnect_v2.is_some();
        if impersonation > 3 && !is_claim {
            return Err(Status::BAD_IMPERSONATION_LEVEL);
        }
        let disposition = match Disposition::from_number(disposition) {
            None if is_claim => Disposition::Open,
            disposition => disposition.ok_or(Status::INVALID_PARAMETER)?,
        };
        if !name_length.is_multiple_of(2) {
            return Err(Status::INVALID_PARAMETER);
        }
        let name = match options & option::OPEN_BY_FILE_ID {
            0 => utf16(&raw_name).map_err(|_| Status::OBJECT_NAME_INVALID)?,
            _ => String::new(),
        };
        Ok(Request {
            oplock,
            impersonation,
            desired_access,
            attributes,
            share_access,
            disposition,
            options,
            name,
            raw_name,
            contexts,
        })
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub oplock: u8,
    pub action: Action,
    pub times: Times,
    pub allocation_size: u64,
    pub end_of_file: u64,
    pub attributes: u32,
    pub file_id: FileId,
    pub contexts: Vec<ResponseContext>,
}

impl Response {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(89);
        out.put_u8(self.oplock);
        out.put_u8(0);
        out.put_u32(self.action.number());
        self.times.encode(out);
        out.put_u64(self.allocation_size);
        out.put_u64(self.end_of_file);
        out.put_u32(self.attributes);
        out.put_u32(0);
        self.file_id.encode(out);
        let contexts = create_context::encode(&self.contexts);
        out.put_u32(if contexts.is_empty() { 0 } else { len32(HEADER_BYTES + 88) });
        out.put_u32(len32(contexts.len()));
        out.put(&contexts);
    }
}
