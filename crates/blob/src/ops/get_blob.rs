//! Get Blob: the bytes of a blob or a snapshot, all or a range, with its properties.

use std::collections::VecDeque;
use std::sync::Arc;

use concurrency::{Conditions, LeaseId, Timestamp};
use content::pieces::{self, Piece};
use engine::Rows;
use service::{ReadOperation, RequestError};
use wire::http::{Head, Reply, StatusCode, header};
use wire::names::{BlobName, ContainerName};
use wire::ranges::{RangeHeader, Span};

use super::Call;
use crate::download;
use crate::encryption_headers::{self, OF_BLOB};
use crate::error::BlobError;
use crate::model::Which;
use crate::model::{self, Halt, Seen, refuse};
use crate::rules::encryption::{self, CustomerKey};
use crate::{Failure, reply, request};

/// A read of a blob's state; Get Blob Properties and Get Blob Metadata are the same kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadBlob {
    pub container: ContainerName,
    pub name: BlobName,
    pub which: Which,
    pub conditions: Conditions,
    pub lease: Option<LeaseId>,
    pub key: Option<CustomerKey>,
}

impl ReadBlob {
    pub fn parse(head: &Head) -> Result<ReadBlob, BlobError> {
        let (container, name) = request::blob(head)?;
        request::no_expiry(head)?;
        Ok(ReadBlob {
            container,
            name,
            which: request::which(head)?,
            conditions: request::conditions(head)?,
            lease: request::lease_id(head)?,
            key: encryption_headers::customer_key(head, &OF_BLOB)?,
        })
    }

    /// A read of what is not there is "not found" whatever its conditions.
    pub fn decide(&self, found: Option<Seen>, now: Timestamp) -> Result<Seen, BlobError> {
        let seen = found.ok_or(BlobError::BlobNotFound)?;
        self.conditions.check_read(&seen.state.version())?;
        seen.lease.unwrap_or_default().check_read(self.lease, now).map_err(BlobError::lease_on_blob)?;
        Ok(seen)
    }

    pub fn look(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<Seen, Halt> {
        let generation = model::generation(rows, account, &self.container)?;
        let found = model::see(rows, generation, &self.name, self.which)?;
        self.decide(found, now).map_err(refuse)
    }

    /// The same with metadata and MD5, which a customer-provided key may seal.
    pub fn look_inside(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<Seen, Halt> {
        let mut seen = self.look(rows, account, now)?;
        encryption::check_read(seen.state.encryption.as_ref(), self.key.as_ref()).map_err(refuse)?;
        encryption::reveal(&mut seen.state, self.key.as_ref())?;
        Ok(seen)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetBlob {
    pub read: ReadBlob,
    pub range: RangeHeader,
    /// The checksum of the range that the answer is to have.
    pub sum: Option<request::RangeSum>,
}

fn parse(head: &Head) -> Result<GetBlob, BlobError> {
    let range = request::range(head)?;
    Ok(GetBlob { read: ReadBlob::parse(head)?, range, sum: request::range_sum(head, range)? })
}

impl GetBlob {
    /// The bytes that are meant, of a blob of `length` bytes; `None` for all of them.
    fn span(&self, length: u64) -> Result<Option<Span>, BlobError> {
        let span = self.range.resolve(length).map_err(|_| BlobError::InvalidRange { length })?;
        match span {
            Some(span) if self.sum.is_some() && span.count() > request::SUMMED_RANGE_BYTES_MAX => {
                Err(BlobError::Request(RequestError::OutOfRangeInput))
            }
            span => Ok(span),
        }
    }
}

/// The state of a blob.
impl ReadOperation for ReadBlob {
    /// What is seen, and when.
    type Outcome = (Seen, Timestamp);
    type Refusal = BlobError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<(Seen, Timestamp), Halt> {
        Ok((self.look_inside(rows, account, now)?, now))
    }
}

/// The bytes of a blob, or a range of them.
impl ReadOperation for GetBlob {
    type Outcome = BlobBytes;
    type Refusal = BlobError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<BlobBytes, Halt> {
        let seen = self.read.look_inside(rows, account, now)?;
        seen.state.check_not_archived(now).map_err(refuse)?;
        // Only the snapshots of an incremental copy are for reading.
        if seen.lease.is_some() && seen.state.is_incremental_copy() {
            return Err(refuse(BlobError::OperationNotAllowedOnIncrementalCopyBlob));
        }
        let span = self.span(seen.state.length).map_err(refuse)?;
        let pieces =
            pieces::unlocked(download::open(rows, &seen.state, span)?, self.read.key.as_ref().map(|key| &key.secret));
        Ok(BlobBytes { pieces, seen, span, now })
    }
}

/// A blob that is read, and its bytes.
#[derive(Debug)]
pub struct BlobBytes {
    pub seen: Seen,
    /// The bytes that are meant; `None` for all of them.
    pub span: Option<Span>,
    pub pieces: VecDeque<Piece>,
    pub now: Timestamp,
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = Arc::new(parse(call.head)?);
    let structured = request::structured_body(call.head)?;
    let found = call.read(&op).await?;
    let state = &found.seen.state;
    let mut answer = reply::reply(if found.span.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK });
    reply::set_blob(&mut answer.headers, state, found.seen.lease.as_ref(), found.now);
    if let Some(span) = found.span {
        let range = format!("bytes {}-{}/{}", span.first, span.last, state.length);
        answer.headers.insert(header::CONTENT_RANGE, reply::value(range));
    }
    if let Some(md5) = &state.headers.content_md5 {
        let name = if found.span.is_some() { &reply::BLOB_CONTENT_MD5 } else { &reply::CONTENT_MD5 };
        reply::set_md5(&mut answer.headers, name, md5);
    }
    answer.body = pieces::reply_body(&mut answer.headers, found.pieces, op.sum, structured).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, HELD, MINE, NOW, YOURS, bytes, committed, header, refusal};
    use concurrency::{ETag, ETagMatch, Lease};

    fn ask(lease: Option<LeaseId>, conditions: Conditions) -> ReadBlob {
        ReadBlob {
            container: ContainerName::parse("cont").unwrap(),
            name: BlobName::parse("blob").unwrap(),
            which: Which::Base,
            conditions,
            lease,
            key: None,
        }
    }

    fn seen(lease: Lease) -> Option<Seen> {
        Some(Seen { state: committed(), lease: Some(lease) })
    }

    #[test]
    fn each_refusal_and_two_at_once() {
        let current = Some(ETagMatch::OneOf(vec![ETag::new(committed().stamp).to_string()]));
        let unchanged = Conditions { if_none_match: current, ..Conditions::default() };
        let stale = Conditions { if_match: Some(ETagMatch::OneOf(vec!["0x1".into()])), ..Conditions::default() };
        let decide = |lease, conditions: &Conditions, found| ask(lease, conditions.clone()).decide(found, NOW).err();
        let free = Conditions::default();
        assert_eq!(decide(None, &free, seen(HELD)), None);
        assert_eq!(decide(Some(MINE), &free, seen(HELD)), None);
        assert_eq!(decide(Some(YOURS), &free, seen(HELD)), Some(BlobError::LeaseIdMismatchWithBlobOperation));
        assert_eq!(
            decide(Some(MINE), &free, seen(Lease::Available)),
            Some(BlobError::LeaseNotPresentWithBlobOperation)
        );
        assert_eq!(decide(None, &unchanged, seen(HELD)), Some(BlobError::NotModified));
        assert_eq!(decide(None, &stale, seen(HELD)), Some(BlobError::ConditionNotMet));
        assert_eq!(decide(None, &stale, None), Some(BlobError::BlobNotFound));
        assert_eq!(decide(Some(YOURS), &unchanged, seen(HELD)), Some(BlobError::NotModified));
    }

    #[tokio::test]
    async fn ranges() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"0123456789").await;
        let table: &[(&str, u16, &[u8], Option<&str>)] = &[
            ("bytes=0-3", 206, b"0123", Some("bytes 0-3/10")),
            ("bytes=4-", 206, b"456789", Some("bytes 4-9/10")),
            ("bytes=9-99", 206, b"9", Some("bytes 9-9/10")),
            ("bytes=-3", 200, b"0123456789", None),
            ("bytes=0-1,3-4", 200, b"0123456789", None),
            ("lines", 200, b"0123456789", None),
        ];
        for (range, status, body, content_range) in table {
            let answer = bench.call("GET", "cont/blob", &[("range", range)], b"").await.unwrap();
            assert_eq!(answer.status, *status, "{range}");
            assert_eq!(header(&answer, "content-range"), *content_range, "{range}");
            let name = if *status == 206 { "x-ms-blob-content-md5" } else { "content-md5" };
            assert_eq!(header(&answer, name), Some("eB5eJF1ptWaXm4bijSPyxw=="), "{range}");
            assert_eq!(bytes(answer).await, *body, "{range}");
        }
        let refused = bench.call("GET", "cont/blob", &[("range", "bytes=10-")], b"").await;
        assert_eq!(refusal(refused), BlobError::InvalidRange { length: 10 });
        let both = [("range", "bytes=0-0"), ("x-ms-range", "bytes=1-2")];
        assert_eq!(bytes(bench.call("GET", "cont/blob", &both, b"").await.unwrap()).await, b"12");
        let refused = bench.call("GET", "cont/blob", &[("x-ms-range", "bytes=-3")], b"").await;
        assert_eq!(refusal(refused), BlobError::header("x-ms-range", "bytes=-3"));
    }

    #[tokio::test]
    async fn sums_of_ranges() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"hello world").await;
        let (md5, crc64) = (("x-ms-range-get-content-md5", "true"), ("x-ms-range-get-content-crc64", "true"));
        let range = ("range", "bytes=0-4");
        let answer = bench.call("GET", "cont/blob", &[range, md5], b"").await.unwrap();
        assert_eq!(header(&answer, "content-md5"), Some("XUFAKrxLKna5cZ2REBfFkg=="));
        assert_eq!(bytes(answer).await, b"hello");
        let answer = bench.call("GET", "cont/blob", &[range, crc64], b"").await.unwrap();
        assert!(header(&answer, "x-ms-content-crc64").is_some());
        for headers in [&[md5][..], &[crc64], &[range, md5, crc64], &[range, (md5.0, "yes")]] {
            assert!(bench.call("GET", "cont/blob", headers, b"").await.is_err(), "{headers:?}");
        }
    }

    #[tokio::test]
    async fn an_empty_blob_is_read_whole_but_not_by_range() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"").await;
        assert_eq!(bench.get("cont/blob").await, b"");
        let refused = bench.call("GET", "cont/blob", &[("range", "bytes=0-")], b"").await;
        assert_eq!(refusal(refused), BlobError::InvalidRange { length: 0 });
    }

    #[tokio::test]
    async fn a_download_ends_with_the_bytes_it_began_with() {
        let bench = Bench::with_container().await;
        let old: Vec<u8> = (0..700_000_u32).map(|n| n as u8).collect();
        bench.put("cont/blob", &old).await;
        let answer = bench.call("GET", "cont/blob", &[], b"").await.unwrap();
        bench.put("cont/blob", b"new").await;
        bench.sweep().await;
        assert!(bytes(answer).await == old);
        assert_eq!(bench.get("cont/blob").await, b"new");
    }

    #[tokio::test]
    async fn no_version_and_no_snapshot_is_not_found() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"x").await;
        for query in ["snapshot", "versionid"] {
            let url = format!("cont/blob?{query}=2026-11-15T18:00:00.0000000Z");
            assert_eq!(refusal(bench.call("GET", &url, &[], b"").await), BlobError::BlobNotFound);
        }
    }
}
