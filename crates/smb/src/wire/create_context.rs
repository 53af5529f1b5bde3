//! Contexts of CREATE (MS-SMB2 2.2.13.2): a chain of names and data, 8-byte aligned. Unknown names are passed over, as the protocol says.

use super::FileId;
use super::cursor::{Put, Reader, len16, len32, part};
use crate::status::{Result, Status};

/// Contexts in a request; fourteen are documented.
pub const CONTEXTS_MAX: usize = 64;

const FIXED_BYTES: usize = 16;

/// Bits of a lease's state.
pub mod lease_state {
    pub const READ: u32 = 1;
    pub const HANDLE: u32 = 2;
    pub const WRITE: u32 = 4;
}

/// Bits of a lease's flags.
pub mod lease_flag {
    /// A break has not been acknowledged.
    pub const BREAK_IN_PROGRESS: u32 = 2;
    /// The parent's key is there.
    pub const PARENT_KEY_SET: u32 = 4;
}

/// `DurableV2::flags`: survives the end of the server, too.
pub const DURABLE_PERSISTENT: u32 = 2;

/// A lease that is asked for, or granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub key: [u8; 16],
    pub state: u32,
    pub flags: u32,
    /// Of version 2.
    pub v2: Option<LeaseV2>,
}

/// What version 2 of a lease has beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseV2 {
    pub parent_key: [u8; 16],
    pub epoch: u16,
}

/// `DH2Q`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableV2 {
    pub timeout_ms: u32,
    pub flags: u32,
    pub create_guid: u128,
}

/// `DH2C`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconnectV2 {
    pub file_id: FileId,
    pub create_guid: u128,
    pub flags: u32,
}

/// What the contexts of a request ask for. The first of a name counts.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RequestContexts {
    /// `DHnQ`: a durable handle.
    pub durable: bool,
    /// `DHnC`: the durable handle again.
    pub reconnect: Option<FileId>,
    pub durable_v2: Option<DurableV2>,
    pub reconnect_v2: Option<ReconnectV2>,
    /// `RqLs`.
    pub lease: Option<Lease>,
    /// `MxAc`: the time inside may be missing.
    pub maximal_access: Option<Option<i64>>,
    /// `QFid`.
    pub on_disk_id: bool,
    /// `AlSi`.
    pub allocation_size: Option<u64>,
    /// `TWrp`: FILETIME of a snapshot.
    pub timewarp: Option<i64>,
    /// `SecD`: a security descriptor, self-relative.
    pub security_descriptor: Option<Vec<u8>>,
    /// `ExtA`: a chain of extended attributes.
    pub extended_attributes: Option<Vec<u8>>,
    /// Names of contexts that are not known, for the log.
    pub unknown: usize,
}

impl RequestContexts {
    /// Reads a chain.
    ///
    /// # Errors
    /// INVALID_PARAMETER for a chain that is none, or data of a known name that is too short.
    pub fn decode(bytes: &[u8]) -> Result<RequestContexts> {
        let mut contexts = RequestContexts::default();
        let mut rest = bytes;
        for _ in 0..CONTEXTS_MAX {
            if rest.is_empty() {
                return Ok(contexts);
            }
            let mut reader = Reader::new(rest);
            let next = reader.u32()? as usize;
            let name_offset = usize::from(reader.u16()?);
            let name_length = usize::from(reader.u16()?);
            reader.skip(2)?;
            let data_offset = usize::from(reader.u16()?);
            let data_length = reader.u32()? as usize;
            let context = if next == 0 { rest } else { part(rest, 0, next)? };
            if !next.is_multiple_of(8) || (next != 0 && next < FIXED_BYTES) || name_offset < FIXED_BYTES {
                return Err(Status::INVALID_PARAMETER);
            }
            let name = part(context, name_offset, name_length)?;
            if data_length > 0 && data_offset < name_offset + name_length {
                return Err(Status::INVALID_PARAMETER);
            }
            let data = if data_length == 0 { &[] } else { part(context, data_offset, data_length)? };
            contexts.take(name, data)?;
            if next == 0 {
                return Ok(contexts);
            }
            rest = &rest[next..];
        }
        Err(Status::INVALID_PARAMETER)
    }

    fn take(&mut self, name: &[u8], data: &[u8]) -> Result<()> {
        let mut reader = Reader::new(data);
        match name {
            b"DHnQ" => self.durable = true,
            b"DHnC" => first(&mut self.reconnect, FileId::decode(&mut reader)?),
            b"DH2Q" => first(&mut self.durable_v2, durable_v2(&mut reader)?),
            b"DH2C" => first(&mut self.reconnect_v2, reconnect_v2(&mut reader)?),
            b"RqLs" => first(&mut self.lease, lease(data)?),
            b"MxAc" => {
                let time = if data.is_empty() { None } else { Some(reader.i64()?) };
                first(&mut self.maximal_access, time);
            }
            b"QFid" => self.on_disk_id = true,
            b"AlSi" => first(&mut self.allocation_size, reader.u64()?),
            b"TWrp" => first(&mut self.timewarp, reader.i64()?),
            b"SecD" => first(&mut self.security_descriptor, data.to_vec()),
            b"ExtA" => first(&mut self.extended_attributes, data.to_vec()),
            // Samba and Windows refuse a name of fewer than four bytes.
            _ if name.len() < 4 => return Err(Status::INVALID_PARAMETER),
            _ => self.unknown += 1,
        }
        Ok(())
    }
}

fn first<T>(place: &mut Option<T>, value: T) {
    if place.is_none() {
        *place = Some(value);
    }
}

fn durable_v2(reader: &mut Reader<'_>) -> Result<DurableV2> {
    let timeout_ms = reader.u32()?;
    let flags = reader.u32()?;
    reader.skip(8)?;
    Ok(DurableV2 { timeout_ms, flags, create_guid: reader.u128()? })
}

fn reconnect_v2(reader: &mut Reader<'_>) -> Result<ReconnectV2> {
    let file_id = FileId::decode(reader)?;
    Ok(ReconnectV2 { file_id, create_guid: reader.u128()?, flags: reader.u32()? })
}

fn lease(data: &[u8]) -> Result<Lease> {
    let mut reader = Reader::new(data);
    let key = reader.array()?;
    let state = reader.u32()?;
    let flags = reader.u32()?;
    reader.skip(8)?;
    let v2 = match data.len() {
        32 => None,
        52 => Some(LeaseV2 { parent_key: reader.array()?, epoch: reader.u16()? }),
        _ => return Err(Status::INVALID_PARAMETER),
    };
    Ok(Lease { key, state, flags, v2 })
}

/// What the contexts of an answer say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseContext {
    /// `DHnQ`: the handle is durable.
    Durable,
    /// `DH2Q`: the handle is durable for so long.
    DurableV2 { timeout_ms: u32, flags: u32 },
    /// `RqLs`: in the version that was asked for.
    Lease(Lease),
    /// `MxAc`.
    MaximalAccess { status: Status, access: u32 },
    /// `QFid`.
    OnDiskId { file_id: u64, volume_id: u64 },
}

impl ResponseContext {
    fn name(&self) -> &'static [u8; 4] {
        match self {
            ResponseContext::Durable => b"DHnQ",
            ResponseContext::DurableV2 { .. } => b"DH2Q",
            ResponseContext::Lease(_) => b"RqLs",
            ResponseContext::MaximalAccess { .. } => b"MxAc",
            ResponseContext::OnDiskId { .. } => b"QFid",
        }
    }

    fn data(&self, out: &mut Vec<u8>) {
        match self {
            ResponseContext::Durable => out.put_u64(0),
            ResponseContext::DurableV2 { timeout_ms, flags } => {
                out.put_u32(*timeout_ms);
                out.put_u32(*flags);
            }
            ResponseContext::Lease(lease) => {
                out.put(&lease.key);
                out.put_u32(lease.state);
                out.put_u32(lease.flags);
                out.put_u64(0);
                if let Some(v2) = &lease.v2 {
                    out.put(&v2.parent_key);
                    out.put_u16(v2.epoch);
                    out.put_u16(0);
                }
            }
            ResponseContext::MaximalAccess { status, access } => {
                out.put_u32(status.0);
                out.put_u32(*access);
            }
            ResponseContext::OnDiskId { file_id, volume_id } => {
                out.put_u64(*file_id);
                out.put_u64(*volume_id);
                out.put_zeros(16);
            }
        }
    }
}

/// The chain of an answer.
pub(super) fn encode(contexts: &[ResponseContext]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut last = 0;
    for (count, context) in contexts.iter().enumerate() {
        if count > 0 {
            out.align(0, 8);
            let distance = len32(out.len() - last);
            out.replace(last, &distance.to_le_bytes());
            last = out.len();
        }
        let mut data = Vec::new();
        context.data(&mut data);
        out.put_u32(0);
        out.put_u16(len16(FIXED_BYTES));
        out.put_u16(4);
        out.put_u16(0);
        out.put_u16(len16(FIXED_BYTES + 8));
        out.put_u32(len32(data.len()));
        out.put(context.name());
        out.put_u32(0);
        out.put(&data);
    }
    out
}

#[cfg(any(test, feature = "testing"))]
pub(crate) fn chain(contexts: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (count, (name, data)) in contexts.iter().enumerate() {
        let start = out.len();
        out.put_u32(0);
        out.put_u16(16);
        out.put_u16(len16(name.len()));
        out.put_u16(0);
        let data_at = (16 + name.len()).next_multiple_of(8);
        out.put_u16(if data.is_empty() { 0 } else { len16(data_at) });
        out.put_u32(len32(data.len()));
        out.put(name);
        out.align(start, 8);
        out.put(data);
        if count + 1 < contexts.len() {
            out.align(start, 8);
            let distance = len32(out.len() - start);
            out.replace(start, &distance.to_le_bytes());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_context_is_read() {
        let lease1: Vec<u8> = [[1; 16].as_slice(), &[7, 0, 0, 0], &[0; 4], &[0; 8]].concat();
        let lease2: Vec<u8> = [lease1.as_slice(), &[2; 16], &[5, 0, 0, 0]].concat();
        let durable: Vec<u8> = [&[0x10, 0x27, 0, 0, 2, 0, 0, 0], [0; 8].as_slice(), &[3; 16]].concat();
        let reconnect: Vec<u8> = [[4; 16].as_slice(), &[3; 16], &[2, 0, 0, 0]].concat();
        let contexts = RequestContexts::decode(&chain(&[
            (b"AAPL", &[1, 0, 0, 0]),
            (b"DHnQ", &[0; 16]),
            (b"DHnC", &[4; 16]),
            (b"DH2Q", &durable),
            (b"DH2C", &reconnect),
            (b"RqLs", &lease2),
            (b"RqLs", &lease1),
            (b"MxAc", &[]),
            (b"QFid", &[]),
            (b"AlSi", &[1, 0, 0, 0, 0, 0, 0, 0]),
            (b"TWrp", &[2, 0, 0, 0, 0, 0, 0, 0]),
            (b"SecD", &[9; 20]),
            (b"ExtA", &[8; 12]),
            (&[0x93; 16], &[0; 4]),
        ]))
        .unwrap();
        let file_id = FileId { persistent: 0x0404_0404_0404_0404, volatile: 0x0404_0404_0404_0404 };
        let create_guid = u128::from_le_bytes([3; 16]);
        let v2 = Some(LeaseV2 { parent_key: [2; 16], epoch: 5 });
        let expected = RequestContexts {
            durable: true,
            reconnect: Some(file_id),
            durable_v2: Some(DurableV2 { timeout_ms: 10_000, flags: DURABLE_PERSISTENT, create_guid }),
            reconnect_v2: Some(ReconnectV2 { file_id, create_guid, flags: DURABLE_PERSISTENT }),
            lease: Some(Lease { key: [1; 16], state: 7, flags: 0, v2 }),
            maximal_access: Some(None),
            on_disk_id: true,
            allocation_size: Some(1),
            timewarp: Some(2),
            security_descriptor: Some(vec![9; 20]),
            extended_attributes: Some(vec![8; 12]),
            unknown: 2,
        };
        assert_eq!(contexts, expected);
    }

    #[test]
    fn a_chain_that_is_none_is_an_invalid_parameter() {
        let good = chain(&[(b"QFid", &[]), (b"MxAc", &[1, 0, 0, 0, 0, 0, 0, 0])]);
        assert_eq!(RequestContexts::decode(&good).unwrap().maximal_access, Some(Some(1)));
        let broken = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            RequestContexts::decode(&bytes)
        };
        for (at, byte, why) in [
            (0, 20, "not aligned"),
            (0, 8, "within itself"),
            (1, 200, "out of the chain"),
            (4, 15, "the name lies in the fixed part"),
            (6, 3, "three bytes of a name"),
            (6, 255, "a name out of its context"),
            (12, 255, "data out of its context"),
            (24 + 12, 4, "half a time"),
        ] {
            assert_eq!(broken(at, byte), Err(Status::INVALID_PARAMETER), "{why}");
        }
        assert_eq!(RequestContexts::decode(&chain(&[(b"RqLs", &[0; 33])])), Err(Status::INVALID_PARAMETER));
        assert_eq!(RequestContexts::decode(&chain(&[(b"DH2Q", &[0; 31])])), Err(Status::INVALID_PARAMETER));
        let many: Vec<(&[u8], &[u8])> = vec![(b"QFid", &[]); CONTEXTS_MAX + 1];
        assert_eq!(RequestContexts::decode(&chain(&many)), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn answers_are_a_chain_of_their_own() {
        let lease = Lease { key: [1; 16], state: 3, flags: 0, v2: None };
        let bytes = encode(&[ResponseContext::Durable, ResponseContext::Lease(lease)]);
        assert_eq!(bytes[..4], [32, 0, 0, 0]);
        assert_eq!(&bytes[16..20], b"DHnQ");
        assert_eq!(RequestContexts::decode(&bytes).unwrap().lease, Some(lease));
        assert_eq!(encode(&[]), Vec::<u8>::new());
    }
}
