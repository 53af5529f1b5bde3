//! Put Range From URL: writes bytes that come from a file or a blob of this server, or from elsewhere.

use content::upload::{self, Announced, Wanted};
use service::RequestError;
use service::reply::{self, REQUEST_SERVER_ENCRYPTED, TRUE};
use service::request::{no_body, source_sums};
use service::sources::Manner;
use wire::base64;
use wire::http::{Body, Head, Reply, StatusCode};

use super::Call;
use super::put_range::{self, BODY_BYTES_MAX, PutRange, RangeWrite, WRITE, WriteRange};
use crate::change::write::{RangeChange, WrittenBy};
use crate::entering;
use crate::error::FileError;
use crate::reply::node::{FILE_LAST_WRITE_TIME, time};
use crate::request::text;
use crate::source::{OpenedSource, SOURCE_RANGE, Source, broken};
use crate::tree::Target;
use crate::{Failure, request, smb_headers};

const IF_MATCH: &str = "x-ms-source-if-match-crc64";
const IF_NONE_MATCH: &str = "x-ms-source-if-none-match-crc64";

#[derive(Clone, PartialEq, Eq, Debug)]
struct PutRangeFromUrl {
    put: PutRange,
    source: Source,
    /// The sum that the bytes must have, or must not have.
    if_match: Option<u64>,
    if_none_match: Option<u64>,
}

fn parse(head: &Head, body: &dyn Body) -> Result<(Target, PutRangeFromUrl), FileError> {
    let target = request::file(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    no_body(body)?;
    let kind = put_range::kind(head)?;
    if kind == RangeWrite::Clear {
        return Err(FileError::header(WRITE, "clear"));
    }
    let (start, end) = put_range::span(head)?;
    if end - start > BODY_BYTES_MAX {
        return Err(RequestError::RequestBodyTooLarge { most: BODY_BYTES_MAX }.into());
    }
    let moves_last_write = smb_headers::last_write_time_moves(head)?;
    let range = RangeChange { start, end, lease: request::lease_id(head)?, moves_last_write, by: WrittenBy::Rest };
    let put = PutRange { kind, range, sums: source_sums(head)? };
    let source = Source::parse(head, Manner::FromUrl)?;
    let (if_match, if_none_match) = (crc64(head, IF_MATCH)?, crc64(head, IF_NONE_MATCH)?);
    Ok((target, PutRangeFromUrl { put, source, if_match, if_none_match }))
}

fn crc64(head: &Head, name: &'static str) -> Result<Option<u64>, FileError> {
    let Some(value) = text(head, name)? else { return Ok(None) };
    base64::crc64_header(value).map(Some).ok_or_else(|| FileError::header(name, value))
}

impl PutRangeFromUrl {
    /// As many bytes must come as the range has.
    fn check_length(&self, head: &Head, length: u64) -> Result<(), FileError> {
        if length == self.put.range.end - self.put.range.start {
            return Ok(());
        }
        Err(FileError::header(SOURCE_RANGE, text(head, SOURCE_RANGE)?.unwrap_or_default()))
    }

    fn check_sum(&self, crc64: Option<u64>) -> Result<(), FileError> {
        let differs = self.if_match.is_some_and(|wanted| Some(wanted) != crc64);
        let is_known = self.if_none_match.is_some_and(|unwanted| Some(unwanted) == crc64);
        if differs || is_known { Err(FileError::SourceConditionNotMet) } else { Ok(()) }
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let (target, op) = parse(call.head, body)?;
    let (spot, gathered) = put_range::prepare(call, &target, op.put).await?;
    let OpenedSource { length, mut body } = op.source.open(call).await?;
    op.check_length(call.head, length)?;
    let announced = Announced::from(length).between(gathered.before.clone(), gathered.after.clone());
    let wanted = Wanted { md5: op.put.sums.md5.is_some(), crc64: true };
    let received = upload::receive(call.engine, &mut *body, announced, wanted).await.map_err(broken)?;
    upload::verify(&op.put.sums, received.md5, received.crc64).map_err(FileError::from)?;
    op.check_sum(received.crc64)?;
    let crc64 = received.crc64;
    let write = WriteRange { put: op.put, received: Some(received), gathered };
    let node = entering::commit_at(call, &target, Some(spot), write).await?;
    let mut answer = reply::reply(StatusCode::CREATED);
    reply::set_version(&mut answer.headers, node.stamp);
    answer.headers.insert(&REQUEST_SERVER_ENCRYPTED, TRUE);
    answer.headers.insert(&FILE_LAST_WRITE_TIME, time(node.written));
    if let Some(crc64) = crc64 {
        reply::set_crc64(&mut answer.headers, crc64);
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MY_LEASE, Script, Then, blob_url, header, refusal, url};
    use wire::checksum::Crc64;
    use wire::http::ErrorReply;

    const URL: &str = "share/file?comp=range";
    const UPDATE: (&str, &str) = (WRITE, "update");
    const ELSEWHERE: &str = "http://a/x?sig=secret";

    /// A file of 100 zeros to write to, and one of ten bytes to read from; the same bytes elsewhere.
    async fn bench() -> Bench {
        let (bench, elsewhere) = Bench::with_elsewhere().await;
        bench.create("file", 100).await;
        bench.create("source", 10).await;
        bench.write("source", 0, b"0123456789").await;
        elsewhere.0.lock().unwrap().insert(ELSEWHERE, Script::of(b"0123456789"));
        bench
    }

    async fn put(bench: &Bench, from: &str, more: &[(&str, &str)]) -> Result<Reply, Failure> {
        let headers = [&[UPDATE, ("x-ms-copy-source", from)], more].concat();
        bench.call("PUT", URL, &headers, b"").await
    }

    #[tokio::test]
    async fn bytes_come_from_a_file_a_blob_or_elsewhere() {
        let bench = bench().await;
        let mut expected = vec![0; 100];
        let sum = wire::base64::encode_crc64(Crc64::of(b"3456"));
        for (at, from) in [url("source"), blob_url("source"), ELSEWHERE.to_owned()].iter().enumerate() {
            let start = 20 * at + 5;
            let range = format!("bytes={start}-{}", start + 3);
            let before = bench.file("file").await;
            bench.advance(1).await;
            let answer =
                put(&bench, from, &[("x-ms-range", &*range), ("x-ms-source-range", "bytes=3-6")]).await.unwrap();
            assert_eq!(answer.status, 201, "{from}");
            assert_eq!(header(&answer, "x-ms-content-crc64"), Some(&*sum), "{from}");
            assert_eq!(header(&answer, "x-ms-request-server-encrypted"), Some("true"));
            expected[start..start + 4].copy_from_slice(b"3456");
            assert!(bench.read("file").await == expected, "{from}");
            let after = bench.file("file").await;
            for name in ["etag", "last-modified", "x-ms-file-last-write-time"] {
                assert_eq!(header(&answer, name), header(&after, name), "{name}");
                assert_ne!(header(&before, name), header(&after, name), "{name}");
            }
        }
        // All of the source, next to what is there, and without a move of the last write time.
        let before = bench.file("file").await;
        bench.advance(1).await;
        let keep = ("x-ms-file-last-write-time", "preserve");
        let answer = put(&bench, &url("source"), &[("x-ms-range", "bytes=9-18"), keep]).await.unwrap();
        expected[9..19].copy_from_slice(b"0123456789");
        assert!(bench.read("file").await == expected);
        assert_eq!(header(&answer, keep.0), header(&before, keep.0));
        bench.check_rows().await;
    }

    #[tokio::test]
    async fn the_same_file_can_be_its_source() {
        let bench = bench().await;
        let range = [("x-ms-range", "bytes=2-5"), ("x-ms-source-range", "bytes=0-3")];
        let source = url("source");
        let headers = [&[UPDATE, ("x-ms-copy-source", source.as_str())], &range[..]].concat();
        bench.call("PUT", "share/source?comp=range", &headers, b"").await.unwrap();
        assert_eq!(bench.read("source").await, b"0101236789");
    }

    #[tokio::test]
    async fn sums_and_conditions() {
        let bench = bench().await;
        let (right, wrong) = (wire::base64::encode_crc64(Crc64::of(b"0123456789")), wire::base64::encode_crc64(7));
        let range = ("x-ms-range", "bytes=0-9");
        let write = async |name: &str, sum: &str| put(&bench, &url("source"), &[range, (name, sum)]).await;
        for (name, sum) in [("x-ms-source-content-crc64", &right), (IF_MATCH, &right), (IF_NONE_MATCH, &wrong)] {
            write(name, sum).await.unwrap();
        }
        let before = bench.figures();
        for (name, sum) in [(IF_MATCH, &wrong), (IF_NONE_MATCH, &right)] {
            assert_eq!(refusal(write(name, sum).await), FileError::SourceConditionNotMet, "{name}");
        }
        let mismatch = refusal(write("x-ms-source-content-crc64", &wrong).await);
        assert!(matches!(mismatch, FileError::Request(RequestError::Crc64Mismatch { .. })), "{mismatch:?}");
        for name in ["x-ms-source-content-crc64", IF_MATCH, IF_NONE_MATCH] {
            assert_eq!(refusal(write(name, "A").await), FileError::header(name, "A"));
        }
        assert_eq!(bench.figures(), before);
    }

    #[tokio::test]
    async fn each_refusal_and_two_at_once() {
        let bench = bench().await;
        let (source, range) = (url("source"), ("x-ms-range", "bytes=0-9"));
        let refused = async |headers: &[(&str, &str)]| bench.refused("PUT", URL, headers).await;
        let copy = ("x-ms-copy-source", &*source);
        let missing = |name| FileError::from(RequestError::MissingRequiredHeader { name });
        assert_eq!(refused(&[copy, range]).await, missing(WRITE));
        assert_eq!(refused(&[copy, UPDATE]).await, missing("x-ms-range"));
        assert_eq!(refused(&[copy, range, (WRITE, "clear")]).await, FileError::header(WRITE, "clear"));
        let body = refusal(bench.call("PUT", URL, &[copy, range, UPDATE], b"data").await);
        assert_eq!(body, FileError::header("content-length", "4"));
        let large = ("x-ms-range", "bytes=0-4194304");
        assert_eq!(
            refused(&[copy, large, UPDATE]).await,
            RequestError::RequestBodyTooLarge { most: BODY_BYTES_MAX }.into()
        );
        for wanted in ["bytes=0-8", "bytes=0-"] {
            let short = [copy, ("x-ms-range", "bytes=0-4"), UPDATE, (SOURCE_RANGE, wanted)];
            assert_eq!(refused(&short).await, FileError::header(SOURCE_RANGE, wanted));
        }
        assert_eq!(
            refused(&[copy, range, UPDATE, (SOURCE_RANGE, "pages")]).await,
            FileError::header(SOURCE_RANGE, "pages")
        );
        let outside = FileError::InvalidRange { length: 100 };
        assert_eq!(refused(&[copy, ("x-ms-range", "bytes=95-104"), UPDATE]).await, outside);
        // The target is judged before anybody looks at the source.
        let none = ("x-ms-copy-source", "http://private/x");
        assert_eq!(refused(&[none, ("x-ms-range", "bytes=95-104"), UPDATE]).await, outside);
        bench.lease("file", MY_LEASE).await;
        let missing = FileError::file_lease(concurrency::LeaseRefusal::IdMissing);
        assert_eq!(refused(&[none, range, UPDATE]).await, missing);
        bench.call("PUT", URL, &[copy, range, UPDATE, ("x-ms-lease-id", MY_LEASE)], b"").await.unwrap();
        assert_eq!(
            bench.refused("PUT", "share/none?comp=range", &[copy, range, UPDATE]).await,
            FileError::ResourceNotFound
        );
    }

    #[tokio::test]
    async fn sources_that_are_not_there() {
        let (bench, elsewhere) = Bench::with_elsewhere().await;
        bench.create("file", 10).await;
        bench.mkdir("dir").await;
        elsewhere.0.lock().unwrap().insert("http://a/cut", Script { then: Then::Cut, length: 10, ..Script::of(b"01") });
        let code = ("x-ms-error-code", "BlobNotFound");
        let gone = Script { status: 404, ..Script::of(b"") }.header(code.0, code.1);
        elsewhere.0.lock().unwrap().insert("http://a/gone", gone);
        let before = bench.figures();
        for (from, status, source) in [
            (url("none"), 404, Some("404 ResourceNotFound")),
            (url("dir"), 404, Some("404 ResourceNotFound")),
            (url("none/file"), 404, Some("404 ParentNotFound")),
            (blob_url("none"), 404, Some("404 ResourceNotFound")),
            ("http://private/x".to_owned(), 401, Some("401 NoAuthenticationInformation")),
            ("http://127.0.0.1:10001/acct/queue".to_owned(), 400, None),
            ("http://a/gone".to_owned(), 404, Some("404 BlobNotFound")),
            ("http://a/nowhere".to_owned(), 400, None),
            ("http://a/cut".to_owned(), 500, None),
        ] {
            let refused = ErrorReply::from(refusal(put(&bench, &from, &[("x-ms-range", "bytes=0-9")]).await));
            assert_eq!((refused.status, refused.code), (status, "CannotVerifyCopySource"), "{from}");
            let told =
                |name| refused.headers.iter().find(|(header, _)| *header == name).map(|(_, value)| value.clone());
            let told = told("x-ms-copy-source-status-code").zip(told("x-ms-copy-source-error-code"));
            assert_eq!(told.map(|(status, code)| format!("{status} {code}")).as_deref(), source, "{from}");
        }
        let unclear = refusal(put(&bench, "not a url?sig=secret", &[("x-ms-range", "bytes=0-9")]).await);
        assert_eq!(unclear, FileError::header("x-ms-copy-source", "not a url"));
        let token = [("x-ms-range", "bytes=0-9"), ("x-ms-copy-source-authorization", "SharedKey a:secret")];
        let unclear = refusal(put(&bench, "http://a/x", &token).await);
        assert_eq!(unclear, FileError::header("x-ms-copy-source-authorization", ""));
        assert_eq!(bench.figures(), before);
    }
}
