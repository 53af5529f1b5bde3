//! NEGOTIATE: dialect, ciphers and sizes of a connection (MS-SMB2 2.2.3).

use bytes::Bytes;

use super::body;
use super::cursor::{Put, len16, len32};
use super::header::HEADER_BYTES;
use super::negotiate_context::{self, Contexts, ResponseContext};
use crate::status::{Result, Status};

const SIZE: u16 = 36;

/// Dialects in a request. There are six.
pub const DIALECTS_MAX: usize = 64;

/// The dialects that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Dialect {
    Smb210 = 0x0210,
    Smb300 = 0x0300,
    Smb302 = 0x0302,
    Smb311 = 0x0311,
}

impl Dialect {
    /// The dialect of a number.
    #[must_use]
    pub fn from_u16(value: u16) -> Option<Dialect> {
        [Dialect::Smb210, Dialect::Smb300, Dialect::Smb302, Dialect::Smb311].into_iter().find(|d| *d as u16 == value)
    }
}

/// The number that answers an SMB1 request: the client sends an SMB2 NEGOTIATE next.
pub const DIALECT_ANY_SMB2: u16 = 0x02FF;

/// Bits of the security mode.
pub const SIGNING_ENABLED: u16 = 1;
pub const SIGNING_REQUIRED: u16 = 2;

/// Bits of the capabilities.
pub mod capability {
    pub const DFS: u32 = 0x01;
    pub const LEASING: u32 = 0x02;
    /// Reads and writes above 64 KiB, paid with credits.
    pub const LARGE_MTU: u32 = 0x04;
    pub const MULTI_CHANNEL: u32 = 0x08;
    pub const PERSISTENT_HANDLES: u32 = 0x10;
    pub const DIRECTORY_LEASING: u32 = 0x20;
    /// AES-128-CCM in 3.0 and 3.0.2; 3.1.1 has a context.
    pub const ENCRYPTION: u32 = 0x40;
}

/// The request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub security_mode: u16,
    pub capabilities: u32,
    pub client_guid: u128,
    /// As they came, with those that are unknown.
    pub dialects: Vec<u16>,
    /// With 3.1.1 among the dialects.
    pub contexts: Option<Contexts>,
}

impl Request {
    /// Reads the body.
    ///
    /// # Errors
    /// INVALID_PARAMETER, and what [`Contexts::decode`] says.
    pub fn decode(message: &Bytes) -> Result<Request> {
        let mut reader = body(message, SIZE)?;
        let count = usize::from(reader.u16()?);
        let security_mode = reader.u16()?;
        reader.skip(2)?;
        let capabilities = reader.u32()?;
        let client_guid = reader.u128()?;
        let context_offset = reader.u32()? as usize;
        let context_count = usize::from(reader.u16()?);
        reader.skip(2)?;
        if count == 0 || count > DIALECTS_MAX {
            return Err(Status::INVALID_PARAMETER);
        }
        let dialects = reader.take(count * 2)?;
        let dialects: Vec<u16> = dialects.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        let contexts = dialects.contains(&(Dialect::Smb311 as u16)).then(|| {
            let bytes = message.get(context_offset..).ok_or(Status::INVALID_PARAMETER)?;
            if context_offset < HEADER_BYTES + usize::from(SIZE) || !context_offset.is_multiple_of(8) {
                return Err(Status::INVALID_PARAMETER);
            }
            Contexts::decode(bytes, context_count)
        });
        Ok(Request { security_mode, capabilities, client_guid, dialects, contexts: contexts.transpose()? })
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub security_mode: u16,
    /// A [`Dialect`] or [`DIALECT_ANY_SMB2`].
    pub dialect: u16,
    pub server_guid: u128,
    pub capabilities: u32,
    pub max_transact: u32,
    pub max_read: u32,
    pub max_write: u32,
    /// FILETIME.
    pub system_time: i64,
    /// NegTokenInit2.
    pub token: Vec<u8>,
    /// Of 3.1.1, else none.
    pub contexts: Vec<ResponseContext>,
}

impl Response {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        const TOKEN_OFFSET: usize = HEADER_BYTES + 64;
        let start = out.len();
        let contexts_at = (TOKEN_OFFSET + self.token.len()).next_multiple_of(8);
        out.put_u16(65);
        out.put_u16(self.security_mode);
        out.put_u16(self.dialect);
        out.put_u16(len16(self.contexts.len()));
        out.put(&self.server_guid.to_le_bytes());
        out.put_u32(self.capabilities);
        out.put_u32(self.max_transact);
        out.put_u32(self.max_read);
        out.put_u32(self.max_write);
        out.put_i64(self.system_time);
        out.put_i64(0);
        out.put_u16(len16(TOKEN_OFFSET));
        out.put_u16(len16(self.token.len()));
        out.put_u32(if self.contexts.is_empty() { 0 } else { len32(contexts_at) });
        out.put(&self.token);
        if !self.contexts.is_empty() {
            out.align(start, 8);
            negotiate_context::encode(&self.contexts, out);
        }
    }
}
