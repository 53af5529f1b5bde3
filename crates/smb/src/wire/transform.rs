//! The header of an encrypted message (MS-SMB2 2.2.41). What follows it is one encrypted frame.

use super::cursor::{Put, Reader};
use super::header::{BadHeader, PROTOCOL_TRANSFORM};

/// Bytes of the transform header.
pub const TRANSFORM_BYTES: usize = 52;

/// Where the part begins that is authenticated but not encrypted; it runs to the end of the header.
pub const AUTHENTICATED_FROM: usize = 20;

/// A transform header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transform {
    /// The tag of the cipher.
    pub signature: [u8; 16],
    /// The first 12 (GCM) or 11 (CCM) bytes count; the others are zero.
    pub nonce: [u8; 16],
    /// The length of the message before encryption, which is that after it.
    pub original_bytes: u32,
    /// 1: encrypted (3.1.1), or AES-128-CCM (3.0).
    pub flags: u16,
    pub session_id: u64,
}

impl Transform {
    /// Reads the header and gives what follows it.
    ///
    /// # Errors
    /// When the connection must end: too short, another protocol, not encrypted, or another length than it says.
    pub fn decode(frame: &[u8]) -> Result<(Transform, &[u8]), BadHeader> {
        let (header, body) = frame.split_at_checked(TRANSFORM_BYTES).ok_or(BadHeader)?;
        if header[..4] != PROTOCOL_TRANSFORM {
            return Err(BadHeader);
        }
        let transform = Transform::fields(&mut Reader::new(&header[4..])).map_err(|_| BadHeader)?;
        if transform.flags != 1 || transform.original_bytes as usize != body.len() {
            return Err(BadHeader);
        }
        Ok((transform, body))
    }

    fn fields(reader: &mut Reader<'_>) -> Result<Transform, super::cursor::Short> {
        let signature = reader.array()?;
        let nonce = reader.array()?;
        let original_bytes = reader.u32()?;
        reader.skip(2)?;
        Ok(Transform { signature, nonce, original_bytes, flags: reader.u16()?, session_id: reader.u64()? })
    }

    /// Appends the header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put(&PROTOCOL_TRANSFORM);
        out.put(&self.signature);
        out.put(&self.nonce);
        out.put_u32(self.original_bytes);
        out.put_u16(0);
        out.put_u16(self.flags);
        out.put_u64(self.session_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transform_header_is_read_as_it_was_written() {
        let header =
            Transform { signature: [1; 16], nonce: [2; 16], original_bytes: 3, flags: 1, session_id: 0x1122_3344_5566 };
        let mut out = Vec::new();
        header.encode(&mut out);
        assert_eq!(out.len(), TRANSFORM_BYTES);
        out.extend([7; 3]);
        assert_eq!(Transform::decode(&out), Ok((header, &[7, 7, 7][..])));
        assert_eq!(Transform::decode(&out[..54]), Err(BadHeader));
        assert_eq!(Transform::decode(&out[..51]), Err(BadHeader));
        out[42] = 0;
        assert_eq!(Transform::decode(&out), Err(BadHeader), "not encrypted");
    }
}
