//! A request body on its way into a content.

use engine::{Engine, Staged};
use wire::checksum::{Crc64, Md5};
use wire::http::{Body, BodyError, Head, HeaderMap};

use crate::Failure;
use crate::error::BlobError;
use crate::reply;
use crate::request::BodySums;

/// Since this version an answer carries the MD5 only if the request did, and a CRC64 otherwise.
const CRC64_SINCE: &str = "2019-02-02";

/// Which sums to compute while the bytes pass.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub md5: bool,
    pub crc64: bool,
}

/// A body that has arrived whole and is what the client said it is.
#[derive(Clone, Debug)]
pub struct Received {
    /// `None` if there were no bytes.
    pub staged: Option<Staged>,
    pub length: u64,
    pub md5: Option<[u8; 16]>,
    pub crc64: Option<u64>,
}

impl Wanted {
    /// Put Block and Append Block answer the CRC64 to a client that checks by MD5, too; its tests ask for it. Put Page
    /// does as they do.
    pub fn of_block(head: &Head, sums: &BodySums) -> Wanted {
        let plain = Wanted::by(head, sums);
        Wanted { crc64: plain.crc64 || head.since(CRC64_SINCE), ..plain }
    }

    /// What must be checked or answered. An MD5 to store is asked for apart.
    pub fn by(head: &Head, sums: &BodySums) -> Wanted {
        let by_crc64 = head.since(CRC64_SINCE);
        Wanted { md5: sums.md5.is_some() || !by_crc64, crc64: sums.crc64.is_some() || (by_crc64 && sums.md5.is_none()) }
    }
}

/// Takes the length that the client must announce, and refuses what is over `most` before any byte is asked for.
pub fn length(body: &dyn Body, most: u64) -> Result<u64, BlobError> {
    let length = body.length().ok_or(BlobError::MissingContentLengthHeader)?;
    if length > most { Err(BlobError::RequestBodyTooLarge { most }) } else { Ok(length) }
}

/// Reads `length` bytes into a content. Nothing is stored until a commit says so; on an error nothing is left.
pub async fn receive(
    engine: &dyn Engine,
    body: &mut dyn Body,
    length: u64,
    wanted: Wanted,
) -> Result<Received, Failure> {
    let mut md5 = wanted.md5.then(Md5::new);
    let mut crc64 = wanted.crc64.then(Crc64::new);
    let mut writer = (length > 0).then(|| engine.writer(Some(length)));
    let mut arrived = 0_u64;
    while let Some(bytes) = body.next().await {
        let bytes = bytes?;
        arrived += bytes.len() as u64;
        if arrived > length {
            return Err(BodyError::Incomplete.into());
        }
        if let Some(sum) = &mut md5 {
            sum.update(&bytes);
        }
        if let Some(sum) = &mut crc64 {
            sum.update(&bytes);
        }
        if let Some(writer) = &mut writer {
            writer.write(bytes).await?;
        }
    }
    if arrived != length {
        return Err(BodyError::Incomplete.into());
    }
    let staged = match writer {
        Some(writer) => Some(writer.finish().await?),
        None => None,
    };
    Ok(Received { staged, length, md5: md5.map(Md5::finish), crc64: crc64.map(Crc64::finish) })
}

/// Compares what was announced with what arrived.
pub fn verify(given: &BodySums, computed_md5: Option<[u8; 16]>, computed_crc64: Option<u64>) -> Result<(), BlobError> {
    match (given.md5, computed_md5) {
        (Some(given), Some(computed)) if given != computed => return Err(BlobError::Md5Mismatch { given, computed }),
        _ => {}
    }
    match (given.crc64, computed_crc64) {
        (Some(given), Some(computed)) if given != computed => Err(BlobError::Crc64Mismatch { given, computed }),
        _ => Ok(()),
    }
}

/// Tells the client what arrived: the MD5 if that is how it checks, and the CRC64 if that was computed.
pub fn answer_sums(headers: &mut HeaderMap, head: &Head, sums: &BodySums, md5: Option<[u8; 16]>, crc64: Option<u64>) {
    let by_md5 = sums.md5.is_some() || !head.since(CRC64_SINCE);
    if let Some(md5) = md5.filter(|_| by_md5) {
        reply::set_md5(headers, &reply::CONTENT_MD5, &md5);
    }
    if let Some(crc64) = crc64 {
        reply::set_crc64(headers, crc64);
    }
}
