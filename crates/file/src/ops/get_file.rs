//! Get File: the bytes of a file, all or a range, with its properties. What was never written is zeros.

use std::collections::VecDeque;

use concurrency::Timestamp;
use concurrency::range_lock::Transfer;
use concurrency::share_mode::RestAccess;
use content::pieces::{self, Piece};
use engine::Rows;
use service::RequestError;
use service::reply::{self, CONTENT_MD5};
use service::request::{RangeSum, SUMMED_RANGE_BYTES_MAX, range, range_sum, structured_body};
use wire::http::{Head, HeaderValue, Reply, StatusCode, header};
use wire::ranges::{RangeHeader, Span};

use super::Call;
use super::get_file_properties::ReadFile;
use crate::entering::{self, Admission, NodeRead};
use crate::error::FileError;
use crate::model::{Halt, refuse};
use crate::reply::node::{self, CONTENT_MD5_OF_FILE, ShownNode};
use crate::tree::{Spot, Target};
use crate::{Failure, opens};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct GetFile {
    read: ReadFile,
    range: RangeHeader,
    sum: Option<RangeSum>,
}

fn parse(head: &Head) -> Result<(Target, GetFile), FileError> {
    let (target, read) = ReadFile::parse(head)?;
    let range = range(head)?;
    Ok((target, GetFile { read, range, sum: range_sum(head, range)? }))
}

impl GetFile {
    /// The bytes that are meant, of a file of `length` bytes; `None` for all of them.
    fn span(&self, length: u64) -> Result<Option<Span>, FileError> {
        let span = self.range.resolve(length).map_err(|_| FileError::InvalidRange { length })?;
        match span {
            Some(span) if self.sum.is_some() && span.count() > SUMMED_RANGE_BYTES_MAX => {
                Err(RequestError::OutOfRangeInput.into())
            }
            span => Ok(span),
        }
    }
}

#[derive(Debug)]
struct FileBytes {
    shown: ShownNode,
    span: Option<Span>,
    pieces: VecDeque<Piece>,
}

impl NodeRead for GetFile {
    type Outcome = FileBytes;

    fn admission(&self, spot: &Spot) -> Admission {
        let length = spot.node.as_ref().map_or(0, |node| node.length());
        let (first, count) = match self.range.resolve(length) {
            Ok(Some(span)) => (span.first, span.count()),
            Ok(None) => (0, length),
            // It reads nothing.
            Err(_) => (0, 0),
        };
        let span = opens::Span { offset: first, length: count, transfer: Transfer::Read };
        Admission::of(RestAccess::Read).at(Some(span).filter(|span| span.length > 0))
    }

    fn read(&self, spot: &Spot, rows: &dyn Rows, now: Timestamp) -> Result<FileBytes, Halt> {
        let shown = self.read.look(spot, now).map_err(refuse)?;
        let state = shown.node.as_read_file().map_err(refuse)?;
        let span = self.span(state.length).map_err(refuse)?;
        let (start, end) = span.map_or((0, state.length), |span| (span.first, span.last + 1));
        let pieces = state.view.open(rows, start, end)?;
        Ok(FileBytes { shown, span, pieces })
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, get) = parse(call.head)?;
    let is_structured = structured_body(call.head).map_err(FileError::from)?;
    let FileBytes { shown, span, pieces } = entering::read(call, &target, get).await?;
    let mut answer = reply::reply(if span.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK });
    shown.set_on(&mut answer.headers, call.head);
    answer.headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(state) = shown.node.file() {
        if let Some(span) = span {
            let range = format!("bytes {}-{}/{}", span.first, span.last, state.length);
            answer.headers.insert(header::CONTENT_RANGE, reply::value(range));
        }
        node::set_file_md5(
            &mut answer.headers,
            state,
            if span.is_some() { &CONTENT_MD5_OF_FILE } else { &CONTENT_MD5 },
        );
    }
    answer.body = pieces::reply_body(&mut answer.headers, pieces, get.sum, is_structured).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, bytes, header, refusal};

    async fn bench() -> Bench {
        let bench = Bench::with_share().await;
        let headers = [
            ("x-ms-type", "file"),
            ("x-ms-content-length", "10"),
            ("x-ms-content-md5", "eB5eJF1ptWaXm4bijSPyxw=="),
            ("x-ms-meta-a", "b"),
        ];
        bench.call("PUT", "share/file", &headers, b"0123456789").await.unwrap();
        bench
    }

    #[tokio::test]
    async fn ranges() {
        let bench = bench().await;
        let table: &[(&str, u16, &[u8], Option<&str>)] = &[
            ("bytes=0-3", 206, b"0123", Some("bytes 0-3/10")),
            ("bytes=4-", 206, b"456789", Some("bytes 4-9/10")),
            ("bytes=9-99", 206, b"9", Some("bytes 9-9/10")),
            ("bytes=-3", 200, b"0123456789", None),
            ("bytes=0-1,3-4", 200, b"0123456789", None),
        ];
        for (range, status, body, content_range) in table {
            let answer = bench.call("GET", "share/file", &[("range", range)], b"").await.unwrap();
            assert_eq!(answer.status, *status, "{range}");
            assert_eq!(header(&answer, "content-range"), *content_range, "{range}");
            let name = if *status == 206 { "x-ms-content-md5" } else { "content-md5" };
            assert_eq!(header(&answer, name), Some("eB5eJF1ptWaXm4bijSPyxw=="), "{range}");
            for (name, value) in [("accept-ranges", "bytes"), ("x-ms-meta-a", "b"), ("x-ms-type", "File")] {
                assert_eq!(header(&answer, name), Some(value), "{range}");
            }
            assert_eq!(bytes(answer).await, *body, "{range}");
        }
        let both = [("range", "bytes=0-0"), ("x-ms-range", "bytes=1-2")];
        assert_eq!(bytes(bench.call("GET", "share/file", &both, b"").await.unwrap()).await, b"12");
        let refused = async |name, range| bench.refused("GET", "share/file", &[(name, range)]).await;
        assert_eq!(refused("range", "bytes=10-").await, FileError::InvalidRange { length: 10 });
        assert_eq!(refused("x-ms-range", "bytes=-3").await, FileError::header("x-ms-range", "bytes=-3"));
    }

    #[tokio::test]
    async fn what_was_never_written_is_zeros() {
        let bench = Bench::with_share().await;
        bench.create("file", 4 << 40).await;
        bench.write("file", (4 << 40) - 3, b"end").await;
        let range = format!("bytes={}-", (4_u64 << 40) - 6);
        let answer = bench.call("GET", "share/file", &[("x-ms-range", &*range)], b"").await.unwrap();
        assert_eq!(bytes(answer).await, b"\0\0\0end");
        bench.create("empty", 0).await;
        assert_eq!(bench.read("empty").await, b"");
        let refused = bench.refused("GET", "share/empty", &[("range", "bytes=0-")]).await;
        assert_eq!(refused, FileError::InvalidRange { length: 0 });
    }

    #[tokio::test]
    async fn sums_of_ranges() {
        let bench = bench().await;
        let (md5, range) = (("x-ms-range-get-content-md5", "true"), ("range", "bytes=0-4"));
        let answer = bench.call("GET", "share/file", &[range, md5], b"").await.unwrap();
        assert_eq!(header(&answer, "content-md5"), Some(&*wire::base64::encode(&wire::checksum::Md5::of(b"01234"))));
        assert_eq!(header(&answer, "x-ms-content-md5"), Some("eB5eJF1ptWaXm4bijSPyxw=="));
        assert_eq!(bytes(answer).await, b"01234");
        assert_eq!(bench.refused("GET", "share/file", &[md5]).await, FileError::header(md5.0, "true"));
        assert_eq!(bench.refused("GET", "share/file", &[range, (md5.0, "yes")]).await, FileError::header(md5.0, "yes"));
        bench.create("large", 5 << 20).await;
        let large = [("range", "bytes=0-4194304"), md5];
        assert_eq!(bench.refused("GET", "share/large", &large).await, RequestError::OutOfRangeInput.into());
        let fits = [("range", "bytes=0-4194303"), md5];
        assert_eq!(bytes(bench.call("GET", "share/large", &fits, b"").await.unwrap()).await.len(), 4 << 20);
    }

    #[tokio::test]
    async fn a_structured_body() {
        let bench = bench().await;
        let asked = [("x-ms-structured-body", wire::structured::VALUE)];
        let answer = bench.call("GET", "share/file", &asked, b"").await.unwrap();
        assert_eq!(header(&answer, "x-ms-structured-body"), Some(wire::structured::VALUE));
        assert_eq!(header(&answer, "x-ms-structured-content-length"), Some("10"));
        let mut body = bytes::Bytes::from(bytes(answer).await);
        let mut decoder = wire::structured::Decoder::new(body.len() as u64, 10);
        let mut content = Vec::new();
        while let Some(part) = decoder.next(&mut body).unwrap() {
            content.extend_from_slice(&part);
        }
        decoder.finish().unwrap();
        assert_eq!(content, b"0123456789");
        let odd = bench.refused("GET", "share/file", &[("x-ms-structured-body", "odd")]).await;
        assert_eq!(odd, FileError::header("x-ms-structured-body", "odd"));
    }

    #[tokio::test]
    async fn a_download_ends_with_the_bytes_it_began_with() {
        let bench = Bench::with_share().await;
        let old: Vec<u8> = (0..700_000_u32).map(|n| n as u8).collect();
        bench.create("file", 700_000).await;
        bench.write("file", 0, &old).await;
        let answer = bench.call("GET", "share/file", &[], b"").await.unwrap();
        bench.write("file", 0, &[1; 700_000]).await;
        bench.call("DELETE", "share/file", &[], b"").await.unwrap();
        bench.sweep().await;
        assert!(bytes(answer).await == old);
    }

    #[tokio::test]
    async fn of_two_faults_the_lease_is_told_before_the_range() {
        let bench = bench().await;
        let headers = [("x-ms-lease-id", crate::testing::MY_LEASE), ("range", "bytes=99-")];
        let refused = refusal(bench.call("GET", "share/file", &headers, b"").await);
        assert_eq!(refused, FileError::file_lease(concurrency::LeaseRefusal::NotPresent));
        let none = bench.refused("GET", "share/no", &headers).await;
        assert_eq!(none, FileError::ResourceNotFound);
    }
}
