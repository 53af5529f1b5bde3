//! OPLOCK_BREAK: takes caching rights back, of an open (oplock) or of a lease (MS-SMB2 2.2.23 to 2.2.25).

use super::cursor::{Put, Reader};
use super::header::HEADER_BYTES;
use super::{FileId, body};
use crate::status::{Result, Status};

const OPLOCK_SIZE: u16 = 24;
const LEASE_ACK_SIZE: u16 = 36;

/// An oplock break: the notification, its acknowledgement and the answer to that have one form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OplockBreak {
    /// See [`super::create::oplock_level`].
    pub level: u8,
    pub file_id: FileId,
}

/// An acknowledged lease break, and the answer to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseAck {
    pub key: [u8; 16],
    /// Bits of [`super::create_context::lease_state`].
    pub state: u32,
}

/// What a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Oplock(OplockBreak),
    Lease(LeaseAck),
}

impl Request {
    /// Reads the body. The size of the structure tells the two apart.
    ///
    /// # Errors
    /// INVALID_PARAMETER.
    pub fn decode(message: &[u8]) -> Result<Request> {
        let size = Reader::new(message.get(HEADER_BYTES..).ok_or(Status::INVALID_PARAMETER)?).u16()?;
        let mut reader = body(message, size)?;
        match size {
            OPLOCK_SIZE => {
                let level = reader.u8()?;
                reader.skip(5)?;
                Ok(Request::Oplock(OplockBreak { level, file_id: FileId::decode(&mut reader)? }))
            }
            LEASE_ACK_SIZE => {
                reader.skip(6)?;
                Ok(Request::Lease(LeaseAck { key: reader.array()?, state: reader.u32()? }))
            }
            _ => Err(Status::INVALID_PARAMETER),
        }
    }
}

/// What the server sends: an answer to an acknowledgement, or the notification of an oplock break, which has the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    Oplock(OplockBreak),
    Lease(LeaseAck),
}

impl Response {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Response::Oplock(oplock) => {
                out.put_u16(OPLOCK_SIZE);
                out.put_u8(oplock.level);
                out.put_u8(0);
                out.put_u32(0);
                oplock.file_id.encode(out);
            }
            Response::Lease(lease) => {
                out.put_u16(LEASE_ACK_SIZE);
                out.put_u16(0);
                out.put_u32(0);
                out.put(&lease.key);
                out.put_u32(lease.state);
                out.put_u64(0);
            }
        }
    }
}

/// The notification of a lease break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseNotification {
    /// Of a lease of version 2, else 0.
    pub new_epoch: u16,
    /// The client must acknowledge before the break is over.
    pub ack_required: bool,
    pub key: [u8; 16],
    pub current_state: u32,
    pub new_state: u32,
}

impl LeaseNotification {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(44);
        out.put_u16(self.new_epoch);
        out.put_u32(u32::from(self.ack_required));
        out.put(&self.key);
        out.put_u32(self.current_state);
        out.put_u32(self.new_state);
        out.put_zeros(12);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_are_as_documented() {
        let mut out = Vec::new();
        let file_id = FileId { persistent: 2, volatile: 3 };
        Response::Oplock(OplockBreak { level: 1, file_id }).encode(&mut out);
        assert_eq!(out, [24, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        let mut out = Vec::new();
        Response::Lease(LeaseAck { key: [9; 16], state: 3 }).encode(&mut out);
        assert_eq!((out.len(), &out[24..28]), (36, &[3, 0, 0, 0][..]));
    }
}
