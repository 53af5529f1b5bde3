//! SESSION_SETUP: logon, in as many round trips as the tokens need (MS-SMB2 2.2.5).

use bytes::Bytes;

use super::cursor::{Put, len16};
use super::{body, buffer};
use crate::status::Result;

const SIZE: u16 = 25;

/// `Request::flags`: the session gets one more connection. Multichannel is not offered.
pub const FLAG_BINDING: u8 = 1;
/// Bits of `Response::flags`.
pub const SESSION_IS_GUEST: u16 = 1;
pub const SESSION_IS_NULL: u16 = 2;
/// All messages of the session are encrypted.
pub const SESSION_ENCRYPT_DATA: u16 = 4;

/// The request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub flags: u8,
    pub security_mode: u8,
    pub capabilities: u32,
    pub channel: u32,
    /// A session of the same user that this one replaces, or 0.
    pub previous_session_id: u64,
    /// SPNEGO or bare NTLMSSP.
    pub token: Bytes,
}

impl Request {
    /// Reads the body.
    ///
    /// # Errors
    /// INVALID_PARAMETER.
    pub fn decode(message: &Bytes) -> Result<Request> {
        let mut reader = body(message, SIZE)?;
        let flags = reader.u8()?;
        let security_mode = reader.u8()?;
        let capabilities = reader.u32()?;
        let channel = reader.u32()?;
        let offset = usize::from(reader.u16()?);
        let length = usize::from(reader.u16()?);
        let previous_session_id = reader.u64()?;
        let token = buffer(message, SIZE, offset, length)?;
        Ok(Request { flags, security_mode, capabilities, channel, previous_session_id, token })
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub flags: u16,
    pub token: Vec<u8>,
}

impl Response {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(9);
        out.put_u16(self.flags);
        out.put_u16(72);
        out.put_u16(len16(self.token.len()));
        out.put(&self.token);
    }
}
