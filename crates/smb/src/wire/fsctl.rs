//! What IOCTL carries in and out, by its code (MS-SMB2 2.2.31, MS-FSCC 2.3).

use std::net::IpAddr;

use super::FileId;
use super::cursor::{Put, Reader, Short, len16, len32, part, utf16};
use crate::status::{Result, Status};

/// Codes of file system controls.
pub mod code {
    pub const DFS_GET_REFERRALS: u32 = 0x0006_0194;
    pub const DFS_GET_REFERRALS_EX: u32 = 0x0006_01B0;
    pub const GET_COMPRESSION: u32 = 0x0009_003C;
    pub const SET_REPARSE_POINT: u32 = 0x0009_00A4;
    pub const GET_REPARSE_POINT: u32 = 0x0009_00A8;
    pub const DELETE_REPARSE_POINT: u32 = 0x0009_00AC;
    pub const CREATE_OR_GET_OBJECT_ID: u32 = 0x0009_00C0;
    pub const SET_SPARSE: u32 = 0x0009_00C4;
    pub const QUERY_ALLOCATED_RANGES: u32 = 0x0009_40CF;
    pub const SET_ZERO_DATA: u32 = 0x0009_80C8;
    pub const FILE_LEVEL_TRIM: u32 = 0x0009_8208;
    pub const DUPLICATE_EXTENTS_TO_FILE: u32 = 0x0009_8344;
    pub const SET_COMPRESSION: u32 = 0x0009_C040;
    pub const PIPE_WAIT: u32 = 0x0011_0018;
    pub const PIPE_PEEK: u32 = 0x0011_400C;
    pub const PIPE_TRANSCEIVE: u32 = 0x0011_C017;
    pub const SRV_REQUEST_RESUME_KEY: u32 = 0x0014_0078;
    pub const LMR_REQUEST_RESILIENCY: u32 = 0x0014_01D4;
    pub const QUERY_NETWORK_INTERFACE_INFO: u32 = 0x0014_01FC;
    pub const VALIDATE_NEGOTIATE_INFO: u32 = 0x0014_0204;
    pub const SRV_ENUMERATE_SNAPSHOTS: u32 = 0x0014_4064;
    pub const SRV_COPYCHUNK: u32 = 0x0014_40F2;
    pub const SRV_READ_HASH: u32 = 0x0014_41BB;
    pub const SRV_COPYCHUNK_WRITE: u32 = 0x0014_80F2;
}

/// VALIDATE_NEGOTIATE_INFO: what the client sent when it negotiated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidateNegotiate {
    pub capabilities: u32,
    pub client_guid: u128,
    pub security_mode: u16,
    pub dialects: Vec<u16>,
}

impl ValidateNegotiate {
    /// Reads the input.
    ///
    /// # Errors
    /// INVALID_PARAMETER.
    pub fn decode(input: &[u8]) -> Result<ValidateNegotiate> {
        let mut reader = Reader::new(input);
        let capabilities = reader.u32()?;
        let client_guid = reader.u128()?;
        let security_mode = reader.u16()?;
        let count = usize::from(reader.u16()?);
        let dialects = reader.take(count * 2)?.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        Ok(ValidateNegotiate { capabilities, client_guid, security_mode, dialects: dialects.collect() })
    }
}

/// VALIDATE_NEGOTIATE_INFO: what the server answered when it negotiated.
#[must_use]
pub fn validate_negotiate(capabilities: u32, server_guid: u128, security_mode: u16, dialect: u16) -> Vec<u8> {
    let mut out = Vec::with_capacity(24);
    out.put_u32(capabilities);
    out.put(&server_guid.to_le_bytes());
    out.put_u16(security_mode);
    out.put_u16(dialect);
    out
}

/// A key that names the source of a copy: the id of its open, and that of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeKey {
    pub file_id: FileId,
    pub session_id: u64,
}

impl ResumeKey {
    fn decode(reader: &mut Reader<'_>) -> std::result::Result<ResumeKey, Short> {
        Ok(ResumeKey { file_id: FileId::decode(reader)?, session_id: reader.u64()? })
    }
}

/// SRV_REQUEST_RESUME_KEY: the key, and a context that is empty; clients want its four bytes nevertheless.
#[must_use]
pub fn resume_key(key: &ResumeKey) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    key.file_id.encode(&mut out);
    out.put_u64(key.session_id);
    out.put_zeros(8);
    out
}

/// Limits of one SRV_COPYCHUNK, as Windows has them; a request above them is answered with them.
pub const COPY_CHUNKS_MAX: u32 = 256;
pub const COPY_CHUNK_BYTES_MAX: u32 = 1 << 20;
pub const COPY_BYTES_MAX: u32 = 16 << 20;

/// A range that is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyChunk {
    pub source_offset: u64,
    pub target_offset: u64,
    pub length: u32,
}

/// SRV_COPYCHUNK and SRV_COPYCHUNK_WRITE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyChunks {
    pub source: ResumeKey,
    pub chunks: Vec<CopyChunk>,
}

/// A target offset that stands for the end of the file.
pub const COPY_TO_END: u64 = u64::MAX;

/// The source of SRV_COPYCHUNK and SRV_COPYCHUNK_WRITE, which is looked for before the rest is judged.
///
/// # Errors
/// INVALID_PARAMETER.
pub fn copy_source(input: &[u8]) -> Result<ResumeKey> {
    Ok(ResumeKey::decode(&mut Reader::new(input))?)
}

impl CopyChunks {
    /// Reads the input.
    ///
    /// # Errors
    /// INVALID_PARAMETER, also for what is above the limits; it is answered with the limits.
    pub fn decode(input: &[u8]) -> Result<CopyChunks> {
        let mut reader = Reader::new(input);
        let source = ResumeKey::decode(&mut reader)?;
        let count = reader.u32()?;
        reader.skip(4)?;
        if count > COPY_CHUNKS_MAX {
            return Err(Status::INVALID_PARAMETER);
        }
        let bytes = reader.take(count as usize * 24)?;
        let chunks = bytes.chunks_exact(24).map(chunk).collect::<std::result::Result<Vec<_>, _>>()?;
        let is_good = |chunk: &CopyChunk| {
            let is_place = |offset: u64| i64::try_from(offset).is_ok();
            (1..=COPY_CHUNK_BYTES_MAX).contains(&chunk.length)
                && is_place(chunk.source_offset)
                && (is_place(chunk.target_offset) || chunk.target_offset == COPY_TO_END)
        };
        let total: u64 = chunks.iter().map(|chunk| u64::from(chunk.length)).sum();
        if total > u64::from(COPY_BYTES_MAX) || !chunks.iter().all(is_good) {
            return Err(Status::INVALID_PARAMETER);
        }
        Ok(CopyChunks { source, chunks })
    }
}

fn chunk(bytes: &[u8]) -> std::result::Result<CopyChunk, Short> {
    let mut reader = Reader::new(bytes);
    Ok(CopyChunk { source_offset: reader.u64()?, target_offset: reader.u64()?, length: reader.u32()? })
}

/// DUPLICATE_EXTENTS_TO_FILE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateExtents {
    pub source: FileId,
    pub source_offset: u64,
    pub target_offset: u64,
    pub length: u64,
}

impl DuplicateExtents {
    /// Reads the input.
    ///
    /// # Errors
    /// INVALID_PARAMETER, also for negative places and lengths.
    pub fn decode(input: &[u8]) -> Result<DuplicateExtents> {
        let mut reader = Reader::new(input);
        let source = FileId::decode(&mut reader)?;
        let mut place = || u64::try_from(reader.i64()?).map_err(|_| Status::INVALID_PARAMETER);
        Ok(DuplicateExtents { source, source_offset: place()?, target_offset: place()?, length: place()? })
    }
}

/// What was copied; or, with INVALID_PARAMETER, the limits.
#[must_use]
pub fn copied(chunks: u32, chunk_bytes: u32, total_bytes: u32) -> Vec<u8> {
    [chunks, chunk_bytes, total_bytes].into_iter().flat_map(u32::to_le_bytes).collect()
}

/// SRV_ENUMERATE_SNAPSHOTS: names as `@GMT-2026.01.02-03.04.05`, newest first. Only their number when they do not fit into `max`.
///
/// # Errors
/// INVALID_PARAMETER when not even the number fits.
pub fn snapshots(names: &[String], max: usize) -> Result<Vec<u8>> {
    if max < 16 {
        return Err(Status::INVALID_PARAMETER);
    }
    let mut list = Vec::new();
    for name in names {
        list.put_utf16(name);
        list.put_u16(0);
    }
    list.put_u16(0);
    let fits = 12 + list.len() <= max;
    let mut out = Vec::new();
    out.put_u32(len32(names.len()));
    out.put_u32(if fits { len32(names.len()) } else { 0 });
    out.put_u32(len32(list.len()));
    match fits {
        true => out.put(&list),
        false => out.put_u32(0),
    }
    Ok(out)
}

/// An address of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkInterface {
    pub index: u32,
    /// Bits per second.
    pub link_speed: u64,
    pub address: IpAddr,
}

/// QUERY_NETWORK_INTERFACE_INFO.
#[must_use]
pub fn network_interfaces(interfaces: &[NetworkInterface]) -> Vec<u8> {
    const ENTRY_BYTES: usize = 152;
    let mut out = Vec::with_capacity(interfaces.len() * ENTRY_BYTES);
    for (count, interface) in interfaces.iter().enumerate() {
        let start = out.len();
        out.put_u32(if count + 1 == interfaces.len() { 0 } else { len32(ENTRY_BYTES) });
        out.put_u32(interface.index);
        out.put_u32(0);
        out.put_u32(0);
        out.put_u64(interface.link_speed);
        match interface.address {
            IpAddr::V4(address) => {
                out.put_u16(0x02);
                out.put_u16(0);
                out.put(&address.octets());
            }
            IpAddr::V6(address) => {
                out.put_u16(0x17);
                out.put_u16(0);
                out.put_u32(0);
                out.put(&address.octets());
            }
        }
        out.put_zeros(start + ENTRY_BYTES - out.len());
    }
    out
}

/// SET_SPARSE: no input means sparse.
#[must_use]
pub fn set_sparse(input: &[u8]) -> bool {
    input.first().is_none_or(|byte| *byte != 0)
}

/// A range of a file, from its first byte to behind its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub offset: u64,
    pub end: u64,
}

/// SET_ZERO_DATA.
///
/// # Errors
/// INVALID_PARAMETER, also for a negative place or an end before the start.
pub fn set_zero_data(input: &[u8]) -> Result<Range> {
    let mut reader = Reader::new(input);
    let (offset, end) = (reader.i64()?, reader.i64()?);
    match (u64::try_from(offset), u64::try_from(end)) {
        (Ok(offset), Ok(end)) if offset <= end => Ok(Range { offset, end }),
        _ => Err(Status::INVALID_PARAMETER),
    }
}

/// QUERY_ALLOCATED_RANGES: where to look.
///
/// # Errors
/// INVALID_PARAMETER, also for a negative place or length, or an end above 2^63.
pub fn query_allocated_ranges(input: &[u8]) -> Result<Range> {
    let mut reader = Reader::new(input);
    let (offset, length) = (reader.i64()?, reader.i64()?);
    let end = offset.checked_add(length).ok_or(Status::INVALID_PARAMETER)?;
    match (u64::try_from(offset), u64::try_from(end)) {
        (Ok(offset), Ok(end)) if length >= 0 => Ok(Range { offset, end }),
        _ => Err(Status::INVALID_PARAMETER),
    }
}

/// QUERY_ALLOCATED_RANGES: what was found, and BUFFER_OVERFLOW when not all of it fits into `max`.
///
/// # Errors
/// BUFFER_TOO_SMALL when there is something and not even one fits.
pub fn allocated_ranges(ranges: &[Range], max: usize) -> Result<(Vec<u8>, Status)> {
    let fit = (max / 16).min(ranges.len());
    if fit == 0 && !ranges.is_empty() {
        return Err(Status::BUFFER_TOO_SMALL);
    }
    let mut out = Vec::with_capacity(fit * 16);
    for range in &ranges[..fit] {
        out.put_u64(range.offset);
        out.put_u64(range.end.saturating_sub(range.offset));
    }
    Ok((out, if fit < ranges.len() { Status::BUFFER_OVERFLOW } else { Status::SUCCESS }))
}

/// PIPE_WAIT: the name of the pipe.
///
/// # Errors
/// INVALID_PARAMETER, OBJECT_NAME_INVALID for a name that is no text.
pub fn pipe_wait(input: &[u8]) -> Result<String> {
    let mut reader = Reader::new(input);
    reader.skip(8)?;
    let length = reader.u32()? as usize;
    let name = part(input, 14, length)?;
    utf16(name).map_err(|_| Status::OBJECT_NAME_INVALID)
}

/// PIPE_PEEK: connected, nothing more to say than how much is there.
#[must_use]
pub fn pipe_peek(available: usize) -> Vec<u8> {
    const CONNECTED: u32 = 3;
    let mut out = Vec::with_capacity(16);
    out.put_u32(CONNECTED);
    out.put_u32(len32(available));
    out.put_u32(u32::from(available > 0));
    out.put_u32(len32(available));
    out
}

/// SET_COMPRESSION: whether the file is to be compressed.
///
/// # Errors
/// INVALID_PARAMETER.
pub fn set_compression(input: &[u8]) -> Result<bool> {
    Ok(Reader::new(input).u16()? != 0)
}

/// GET_COMPRESSION: none.
#[must_use]
pub fn compression() -> Vec<u8> {
    len16(0).to_le_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_counted_when_they_do_not_fit() {
        let names = ["@GMT-2026.01.02-03.04.05".to_owned(), "@GMT-2026.01.01-03.04.05".to_owned()];
        let all = snapshots(&names, 200).unwrap();
        assert_eq!(all[..12], [2, 0, 0, 0, 2, 0, 0, 0, 102, 0, 0, 0]);
        assert_eq!(all.len(), 12 + 102);
        let number = snapshots(&names, 16).unwrap();
        assert_eq!(number, [2, 0, 0, 0, 0, 0, 0, 0, 102, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(snapshots(&names, 15), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn copies_have_limits() {
        let input = |count: u32, length: u32| {
            let mut out = vec![7; 24];
            out.put_u32(count);
            out.put_u32(0);
            for place in 0..u64::from(count) {
                out.put_u64(place);
                out.put_u64(place + 1);
                out.put_u32(length);
                out.put_u32(0);
            }
            out
        };
        let copy = CopyChunks::decode(&input(2, 5)).unwrap();
        assert_eq!(copy.chunks[1], CopyChunk { source_offset: 1, target_offset: 2, length: 5 });
        assert_eq!(CopyChunks::decode(&input(257, 5)), Err(Status::INVALID_PARAMETER));
        assert_eq!(CopyChunks::decode(&input(1, (1 << 20) + 1)), Err(Status::INVALID_PARAMETER));
        assert_eq!(CopyChunks::decode(&input(17, 1 << 20)), Err(Status::INVALID_PARAMETER));
        assert_eq!(CopyChunks::decode(&input(1, 0)), Err(Status::INVALID_PARAMETER));
        assert_eq!(CopyChunks::decode(&input(2, 5)[..79]), Err(Status::INVALID_PARAMETER));
        assert!(CopyChunks::decode(&input(0, 0)).unwrap().chunks.is_empty());
        for (at, offset, is_good) in [(32, -1, false), (40, -1, true), (40, -2, false), (40, i64::MAX, true)] {
            let mut placed = input(1, 5);
            placed[at..at + 8].copy_from_slice(&i64::to_le_bytes(offset));
            assert_eq!(CopyChunks::decode(&placed).is_ok(), is_good, "{at} {offset}");
        }
    }

    #[test]
    fn a_key_is_read_as_it_was_written() {
        let key = ResumeKey { file_id: FileId { persistent: 1, volatile: 2 }, session_id: 3 };
        let told = resume_key(&key);
        assert_eq!((told.len(), &told[24..]), (32, &[0; 8][..]));
        let input = [&told[..24], &[0; 8]].concat();
        assert_eq!(CopyChunks::decode(&input).map(|copy| copy.source), Ok(key));
    }

    #[test]
    fn extents_are_not_negative() {
        let input = |numbers: [i64; 5]| numbers.map(i64::to_le_bytes).concat();
        let source = FileId { persistent: 1, volatile: 2 };
        assert_eq!(
            DuplicateExtents::decode(&input([1, 2, 3, 4, 5])),
            Ok(DuplicateExtents { source, source_offset: 3, target_offset: 4, length: 5 })
        );
        for bad in [[1, 2, -3, 4, 5], [1, 2, 3, -4, 5], [1, 2, 3, 4, -5]] {
            assert_eq!(DuplicateExtents::decode(&input(bad)), Err(Status::INVALID_PARAMETER));
        }
        assert_eq!(DuplicateExtents::decode(&input([1; 5])[..39]), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn ranges_are_not_negative() {
        let input = |a: i64, b: i64| [a.to_le_bytes(), b.to_le_bytes()].concat();
        assert_eq!(set_zero_data(&input(1, 3)), Ok(Range { offset: 1, end: 3 }));
        assert_eq!(set_zero_data(&input(3, 1)), Err(Status::INVALID_PARAMETER));
        assert_eq!(set_zero_data(&input(-1, 1)), Err(Status::INVALID_PARAMETER));
        assert_eq!(query_allocated_ranges(&input(1, 3)), Ok(Range { offset: 1, end: 4 }));
        assert_eq!(query_allocated_ranges(&input(1, -1)), Err(Status::INVALID_PARAMETER));
        assert_eq!(query_allocated_ranges(&input(i64::MAX, 1)), Err(Status::INVALID_PARAMETER));
        let found = [Range { offset: 0, end: 4 }, Range { offset: 8, end: 9 }];
        assert_eq!(allocated_ranges(&found, 15), Err(Status::BUFFER_TOO_SMALL));
        assert_eq!(
            allocated_ranges(&found, 31).map(|(out, status)| (out.len(), status)),
            Ok((16, Status::BUFFER_OVERFLOW))
        );
        assert_eq!(allocated_ranges(&found, 32).map(|(out, status)| (out.len(), status)), Ok((32, Status::SUCCESS)));
        assert_eq!(allocated_ranges(&[], 0), Ok((Vec::new(), Status::SUCCESS)));
    }

    #[test]
    fn an_interface_has_152_bytes() {
        let of = |text: &str| NetworkInterface { index: 1, link_speed: 10, address: text.parse().unwrap() };
        let out = network_interfaces(&[of("127.0.0.1"), of("::1")]);
        assert_eq!(out.len(), 304);
        assert_eq!(out[..4], [152, 0, 0, 0]);
        assert_eq!(out[24..32], [2, 0, 0, 0, 127, 0, 0, 1]);
        assert_eq!(out[152 + 24..152 + 26], [0x17, 0]);
    }
}
