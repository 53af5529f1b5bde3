//! TREE_CONNECT: takes a share by its path (MS-SMB2 2.2.9).

use bytes::Bytes;

use super::cursor::{Put, utf16};
use super::{body, buffer};
use crate::status::{Result, Status};

const SIZE: u16 = 9;

/// Characters of the host and the share in a path; Azure's shares have 63 at most, hosts 255.
pub const PATH_BYTES_MAX: usize = 2 * 1024;

/// The request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub flags: u16,
    /// `\\host\share`, as it came.
    pub path: String,
}

impl Request {
    /// Reads the body.
    ///
    /// # Errors
    /// INVALID_PARAMETER for a body that is none, BAD_NETWORK_NAME for a path that is no text.
    pub fn decode(message: &Bytes) -> Result<Request> {
        let mut reader = body(message, SIZE)?;
        let flags = reader.u16()?;
        let offset = usize::from(reader.u16()?);
        let length = usize::from(reader.u16()?);
        let path = buffer(message, SIZE, offset, length)?;
        if !length.is_multiple_of(2) || length > PATH_BYTES_MAX {
            return Err(Status::INVALID_PARAMETER);
        }
        Ok(Request { flags, path: utf16(&path).map_err(|_| Status::BAD_NETWORK_NAME)? })
    }

    /// The share: what follows the host.
    ///
    /// # Errors
    /// BAD_NETWORK_NAME when the path is not `\\host\share`.
    pub fn share(&self) -> Result<&str> {
        let path = self.path.strip_prefix(r"\\").ok_or(Status::BAD_NETWORK_NAME)?;
        match path.split_once('\\') {
            Some((host, share)) if !host.is_empty() && !share.is_empty() && !share.contains('\\') => Ok(share),
            _ => Err(Status::BAD_NETWORK_NAME),
        }
    }
}

/// What kind of share it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ShareType {
    Disk = 1,
    Pipe = 2,
}

/// Bits of `Response::flags`. Without any, clients cache files by hand: the default.
pub const SHARE_NO_CACHING: u32 = 0x30;
pub const SHARE_ENCRYPT_DATA: u32 = 0x8000;

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    pub share_type: ShareType,
    pub flags: u32,
    pub capabilities: u32,
    pub maximal_access: u32,
}

impl Response {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(16);
        out.put_u8(self.share_type as u8);
        out.put_u8(0);
        out.put_u32(self.flags);
        out.put_u32(self.capabilities);
        out.put_u32(self.maximal_access);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_follows_its_host() {
        let share = |path: &str| Request { flags: 0, path: path.into() }.share().map(str::to_owned);
        assert_eq!(share(r"\\host\share"), Ok("share".into()));
        assert_eq!(share(r"\\127.0.0.1\IPC$"), Ok("IPC$".into()));
        for path in ["", r"\\", r"\\host", r"\\host\", r"\\\share", r"host\share", r"\host\share", r"\\host\a\b"] {
            assert_eq!(share(path), Err(Status::BAD_NETWORK_NAME), "{path}");
        }
    }
}
