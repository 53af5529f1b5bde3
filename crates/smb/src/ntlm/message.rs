//! The three messages (MS-NLMP 2.2.1).

use std::ops::Range;

use super::MESSAGE_BYTES_MAX;
use super::av_pair::AvPairs;
use crate::status::{Result, Status};
use crate::wire::cursor::{Put, Reader, len16, len32, part, to_utf16, utf16};

pub(super) const SIGNATURE: &[u8; 8] = b"NTLMSSP\0";

/// Bytes of a NEGOTIATE message, which is kept until the next one comes. Clients send 32 to 80.
pub const NEGOTIATE_BYTES_MAX: usize = 1 << 10;

/// Where the integrity code stands in AUTHENTICATE.
pub(super) const MIC: Range<usize> = 72..88;

/// Bits of the flags.
pub mod flag {
    pub const UNICODE: u32 = 0x1;
    pub const OEM: u32 = 0x2;
    pub const REQUEST_TARGET: u32 = 0x4;
    pub const SIGN: u32 = 0x10;
    pub const SEAL: u32 = 0x20;
    pub const NTLM: u32 = 0x200;
    pub const ANONYMOUS: u32 = 0x800;
    pub const ALWAYS_SIGN: u32 = 0x8000;
    pub const TARGET_TYPE_SERVER: u32 = 0x2_0000;
    pub const EXTENDED_SESSION_SECURITY: u32 = 0x8_0000;
    pub const TARGET_INFO: u32 = 0x80_0000;
    pub const VERSION: u32 = 0x200_0000;
    pub const BITS_128: u32 = 0x2000_0000;
    pub const KEY_EXCH: u32 = 0x4000_0000;
    pub const BITS_56: u32 = 0x8000_0000;
    /// What a challenge takes over from the client.
    pub(crate) const TAKEN_OVER: u32 =
        REQUEST_TARGET | SIGN | SEAL | ALWAYS_SIGN | VERSION | BITS_128 | KEY_EXCH | BITS_56;
    /// What every challenge has.
    pub(crate) const OF_CHALLENGES: u32 = UNICODE | NTLM | TARGET_TYPE_SERVER | EXTENDED_SESSION_SECURITY | TARGET_INFO;
}

fn header(message: &[u8], kind: u32) -> Result<Reader<'_>> {
    let mut reader = Reader::new(message);
    if message.len() > MESSAGE_BYTES_MAX || reader.take(8)? != SIGNATURE || reader.u32()? != kind {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(reader)
}

/// The flags of a NEGOTIATE message.
pub(super) fn negotiate(message: &[u8]) -> Result<u32> {
    if message.len() > NEGOTIATE_BYTES_MAX {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(header(message, 1)?.u32()?)
}

/// A CHALLENGE message.
pub(super) fn challenge(target: &str, flags: u32, challenge: [u8; 8], pairs: &AvPairs) -> Vec<u8> {
    const PAYLOAD: usize = 56;
    /// Windows 10 and the revision of NTLM; clients look at the revision alone, if at all.
    const VERSION: [u8; 8] = [10, 0, 0, 0, 0, 0, 0, 15];
    let target = to_utf16(target);
    let info = pairs.encode();
    let mut out = SIGNATURE.to_vec();
    out.put_u32(2);
    field(&mut out, target.len(), PAYLOAD);
    out.put_u32(flags);
    out.put(&challenge);
    out.put_u64(0);
    field(&mut out, info.len(), PAYLOAD + target.len());
    out.put(&VERSION);
    out.put(&target);
    out.put(&info);
    out
}

pub(super) fn field(out: &mut Vec<u8>, length: usize, offset: usize) {
    out.put_u16(len16(length));
    out.put_u16(len16(length));
    out.put_u32(len32(offset));
}

/// An AUTHENTICATE message.
pub(super) struct Authenticate<'a> {
    pub flags: u32,
    pub nt_response: &'a [u8],
    pub domain: String,
    pub user: String,
    pub workstation: String,
    pub session_key: &'a [u8],
}

impl Authenticate<'_> {
    pub(super) fn decode(message: &[u8]) -> Result<Authenticate<'_>> {
        let mut reader = header(message, 3)?;
        let mut next = || -> Result<&[u8]> {
            let length = usize::from(reader.u16()?);
            reader.skip(2)?;
            let offset = reader.u32()? as usize;
            match length {
                0 => Ok(&[]),
                _ => Ok(part(message, offset, length)?),
            }
        };
        next()?;
        let nt_response = next()?;
        let text = |bytes: &[u8]| utf16(bytes).map_err(|_| Status::INVALID_PARAMETER);
        let domain = text(next()?)?;
        let user = text(next()?)?;
        let workstation = text(next()?)?;
        let session_key = next()?;
        let flags = reader.u32()?;
        Ok(Authenticate { flags, nt_response, domain, user, workstation, session_key })
    }
}
