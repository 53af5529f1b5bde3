//! Put Range: writes or clears bytes of a file. It never makes the file longer.

use concurrency::Timestamp;
use concurrency::range_lock::Transfer;
use concurrency::share_mode::RestAccess;
use content::map::{Crowded, FileView, Gathered, compact};
use content::upload::{self, Received, Wanted};
use engine::{Changes, Rows, Tick};
use service::RequestError;
use service::reply::{self, REQUEST_SERVER_ENCRYPTED, TRUE};
use service::request::{BodySums, body_sums, range};
use wire::http::{Body, Head, Reply, StatusCode};
use wire::ranges::RangeHeader;

use super::Call;
use super::set_file_properties::SETTLINGS_MAX;
use crate::announcement::Effect;
use crate::change::write::{PreparedWrite, RangeChange, WrittenBy};
use crate::entering::{self, Admission, NodeChange, NodeRead};
use crate::error::FileError;
use crate::model::{Halt, Node};
use crate::opens::Span;
use crate::opens::events::Aspects;
use crate::reply::node::{FILE_LAST_WRITE_TIME, time};
use crate::request::{required, text};
use crate::tree::{Spot, Target};
use crate::{Failure, request, smb_headers};

/// The most that one request writes. A clear may go over the whole file.
pub const BODY_BYTES_MAX: u64 = 4 * 1024 * 1024;

const RANGE: &str = "x-ms-range";
pub const WRITE: &str = "x-ms-write";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PutRange {
    pub kind: RangeWrite,
    pub range: RangeChange,
    pub sums: BodySums,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeWrite {
    Update,
    Clear,
}

/// With the length of the body, which must be that of the range.
fn parse(head: &Head, body: &dyn Body) -> Result<(Target, PutRange), FileError> {
    let target = request::file(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    let kind = kind(head)?;
    let (start, end) = span(head)?;
    let sums = body_sums(head)?;
    match kind {
        RangeWrite::Update => {
            let length = upload::announced(head, body, BODY_BYTES_MAX)?.length;
            if length != end - start {
                return Err(FileError::header(RANGE, text(head, RANGE)?.unwrap_or_default()));
            }
        }
        RangeWrite::Clear => {
            service::request::no_body(body)?;
            if let Some(md5) = text(head, "content-md5")? {
                return Err(FileError::header("content-md5", md5));
            }
        }
    }
    let moves_last_write = smb_headers::last_write_time_moves(head)?;
    let range = RangeChange { start, end, lease: request::lease_id(head)?, moves_last_write, by: WrittenBy::Rest };
    Ok((target, PutRange { kind, range, sums }))
}

pub fn kind(head: &Head) -> Result<RangeWrite, FileError> {
    match required(head, WRITE)? {
        value if value.eq_ignore_ascii_case("update") => Ok(RangeWrite::Update),
        value if value.eq_ignore_ascii_case("clear") => Ok(RangeWrite::Clear),
        other => Err(FileError::header(WRITE, other)),
    }
}

/// The bytes that are meant: the first, and the first behind them. Here a `Range` that means nothing cannot be ignored.
pub fn span(head: &Head) -> Result<(u64, u64), FileError> {
    let given = || text(head, RANGE).ok().flatten().or_else(|| head.header("range")).unwrap_or_default().to_owned();
    match range(head)? {
        RangeHeader::None => Err(RequestError::MissingRequiredHeader { name: RANGE }.into()),
        RangeHeader::Ignored | RangeHeader::Span { last: None | Some(u64::MAX), .. } => {
            Err(FileError::header(RANGE, given()))
        }
        RangeHeader::Span { first, last: Some(last) } => Ok((first, last + 1)),
    }
}

impl PutRange {
    fn admission(&self) -> Admission {
        let RangeChange { start, end, .. } = self.range;
        let span = Span { offset: start, length: end - start, transfer: Transfer::Write };
        Admission::of(RestAccess::Write).at(Some(span))
    }
}

/// Whether the range may be written, before its bytes are asked for.
impl NodeRead for PutRange {
    type Outcome = PreparedWrite;

    fn admission(&self, _: &Spot) -> Admission {
        self.admission()
    }

    fn read(&self, spot: &Spot, rows: &dyn Rows, now: Timestamp) -> Result<PreparedWrite, Halt> {
        self.range.prepare(spot, rows, now)
    }
}

/// The range with the bytes that have come, and with the neighbours that they are stored with.
#[derive(Clone)]
pub struct WriteRange {
    pub put: PutRange,
    pub received: Option<Received>,
    pub gathered: Gathered,
}

impl NodeChange for WriteRange {
    type Outcome = Node;

    fn admission(&self) -> Admission {
        self.put.admission()
    }

    fn effect(&self) -> Effect {
        Effect::changed(Aspects::BYTES)
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<Node, Halt> {
        match self.received.as_ref().and_then(|received| received.staged.as_ref()) {
            Some(staged) => self.put.range.write(spot, (&self.gathered, staged), rows, tick, changes),
            None => self.put.range.clear(spot, rows, tick, changes),
        }
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let (target, put) = parse(call.head, body)?;
    let (spot, write) = match put.kind {
        RangeWrite::Clear => (None, WriteRange { put, received: None, gathered: Gathered::default() }),
        RangeWrite::Update => {
            let (spot, gathered) = prepare(call, &target, put).await?;
            let received = receive(call, body, &gathered, &put.sums).await?;
            (Some(spot), WriteRange { put, received: Some(received), gathered })
        }
    };
    let received = write.received.clone();
    let node = commit(call, &target, spot, write).await?;
    let mut answer = reply::reply(StatusCode::CREATED);
    reply::set_version(&mut answer.headers, node.stamp);
    answer.headers.insert(&REQUEST_SERVER_ENCRYPTED, TRUE);
    answer.headers.insert(&FILE_LAST_WRITE_TIME, time(node.written));
    if let Some(received) = received {
        set_sums(&mut answer, call.head, &received);
    }
    Ok(answer)
}

/// A clear of much may first have to make the map of the file stand by itself.
async fn commit(call: Call<'_>, target: &Target, mut spot: Option<Spot>, write: WriteRange) -> Result<Node, Failure> {
    for _ in 0..SETTLINGS_MAX {
        match entering::commit_at(call, target, spot.take(), write.clone()).await {
            Err(Failure::Refused(FileError::Unsettled { map })) => FileView::settle(call.engine, map).await?,
            result => return result,
        }
    }
    Err(FileError::Moved.into())
}

/// How often a write rewrites a group of the map before it goes ahead.
const REWRITES_MAX: usize = 4;

/// Whether the range may be written, where it is, and what is stored along with it. A group that has become too many runs is
/// rewritten first.
pub async fn prepare(call: Call<'_>, target: &Target, put: PutRange) -> Result<(Spot, Gathered), Failure> {
    let mut rewrites = 0;
    loop {
        let (spot, PreparedWrite { gathering, crowded }) = entering::look(call, target, put).await?;
        match crowded.filter(|_| rewrites < REWRITES_MAX) {
            Some(Crowded { map, group }) => compact(call.engine, map, group).await?,
            None => return Ok((spot, gathering.read().await?)),
        }
        rewrites += 1;
    }
}

/// The MD5 of a body up to this size is answered whether the client has sent one or not. Of a larger one it would cost as much as
/// everything else, so it is computed for clients that compare it.
const SUMMED_BYTES_MAX: u64 = 64 * 1024;
/// Clients of an earlier version may count on it.
const MD5_ALWAYS_BEFORE: &str = "2019-02-02";

/// Takes the body in.
pub async fn receive(
    call: Call<'_>,
    body: &mut dyn Body,
    gathered: &Gathered,
    sums: &BodySums,
) -> Result<Received, Failure> {
    let announced = upload::announced(call.head, body, BODY_BYTES_MAX).map_err(FileError::from)?;
    let announced = announced.between(gathered.before.clone(), gathered.after.clone());
    let is_summed = announced.length <= SUMMED_BYTES_MAX || !call.head.since(MD5_ALWAYS_BEFORE);
    let wanted = Wanted { md5: is_summed || sums.md5.is_some(), crc64: sums.crc64.is_some() };
    let received = upload::receive(call.engine, body, announced, wanted).await?;
    upload::verify(sums, received.md5, received.crc64).map_err(FileError::from)?;
    Ok(received)
}

/// Tells the client what arrived.
pub fn set_sums(answer: &mut Reply, head: &Head, received: &Received) {
    if let Some(md5) = &received.md5 {
        reply::set_md5(&mut answer.headers, &reply::CONTENT_MD5, md5);
    }
    if let Some(crc64) = received.crc64 {
        reply::set_crc64(&mut answer.headers, crc64);
    }
    if head.has_header(service::request::STRUCTURED_BODY) {
        answer.headers.insert(&reply::STRUCTURED_BODY, wire::http::HeaderValue::from_static(wire::structured::VALUE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, UnreadBody, bytes, header, refusal, request as head_of};
    use wire::http::FixedBody;

    const URL: &str = "share/file?comp=range";
    const UPDATE: (&str, &str) = (WRITE, "update");
    const CLEAR: (&str, &str) = (WRITE, "clear");

    async fn bench() -> Bench {
        let bench = Bench::with_share().await;
        bench.create("file", 2_000).await;
        bench
    }

    #[tokio::test]
    async fn bytes_are_written_anywhere_and_cleared() {
        let bench = bench().await;
        let before = bench.figures();
        let mut content = vec![0; 2_000];
        for (start, end) in [(0, 5), (511, 514), (100, 1_700), (1_990, 2_000), (0, 2_000), (3, 4)] {
            let (first, byte) = (start as u64, (start % 250) as u8 + 1);
            bench.write("file", first, &vec![byte; end - start]).await;
            content[start..end].fill(byte);
            assert!(bench.read("file").await == content, "{start}-{end}");
        }
        for (start, end) in [(10, 20), (500, 1_600), (0, 1), (1_999, 2_000), (0, 2_000)] {
            let range = format!("bytes={start}-{}", end - 1);
            let answer = bench.call("PUT", URL, &[CLEAR, (RANGE, &*range)], b"").await.unwrap();
            assert_eq!((answer.status.as_u16(), header(&answer, "content-md5")), (201, None));
            content[start..end].fill(0);
            assert!(bench.read("file").await == content, "{range}");
        }
        bench.sweep().await;
        assert_eq!(bench.figures(), before);
    }

    #[tokio::test]
    async fn the_answer() {
        let bench = bench().await;
        let before = bench.file("file").await;
        bench.advance(1).await;
        let answer = bench.call("PUT", URL, &[UPDATE, (RANGE, "bytes=0-4")], b"hello").await.unwrap();
        assert_eq!(answer.status, 201);
        assert_eq!(header(&answer, "content-md5"), Some("XUFAKrxLKna5cZ2REBfFkg=="));
        assert_eq!(header(&answer, "x-ms-request-server-encrypted"), Some("true"));
        let after = bench.file("file").await;
        for name in ["etag", "last-modified", "x-ms-file-last-write-time"] {
            assert_eq!(header(&answer, name), header(&after, name), "{name}");
            assert_ne!(header(&before, name), header(&after, name), "{name}");
        }
        assert_ne!(header(&before, "x-ms-file-change-time"), header(&after, "x-ms-file-change-time"));
        bench.advance(1).await;
        let keep = ("x-ms-file-last-write-time", "preserve");
        for headers in [[UPDATE, (RANGE, "bytes=0-4"), keep], [CLEAR, (RANGE, "bytes=0-511"), keep]] {
            let body: &[u8] = if headers[0] == UPDATE { b"hallo" } else { b"" };
            let answer = bench.call("PUT", URL, &headers, body).await.unwrap();
            assert_eq!(header(&answer, keep.0), header(&after, keep.0));
            assert_ne!(header(&answer, "etag"), header(&after, "etag"));
        }
        assert_ne!(header(&bench.file("file").await, "x-ms-file-change-time"), header(&after, "x-ms-file-change-time"));
    }

    #[tokio::test]
    async fn the_range_and_the_body() {
        let bench = bench().await;
        let before = bench.figures();
        let refused =
            async |headers: &[(&str, &str)], body: &[u8]| refusal(bench.call("PUT", URL, headers, body).await);
        let missing = |name| FileError::from(RequestError::MissingRequiredHeader { name });
        assert_eq!(refused(&[(RANGE, "bytes=0-3")], b"data").await, missing(WRITE));
        assert_eq!(
            refused(&[(WRITE, "append"), (RANGE, "bytes=0-3")], b"data").await,
            FileError::header(WRITE, "append")
        );
        assert_eq!(refused(&[UPDATE], b"data").await, missing(RANGE));
        for range in ["bytes=0-", "bytes=-4", "bytes=0-4", "bytes=0-2", "pages", "bytes=0-18446744073709551615"] {
            assert_eq!(refused(&[UPDATE, (RANGE, range)], b"data").await, FileError::header(RANGE, range), "{range}");
        }
        let outside = FileError::InvalidRange { length: 2_000 };
        for range in ["bytes=1997-2000", "bytes=2000-2003", "bytes=9999-10002"] {
            assert_eq!(refused(&[UPDATE, (RANGE, range)], b"data").await, outside, "{range}");
        }
        assert_eq!(refused(&[CLEAR, (RANGE, "bytes=0-2000")], b"").await, outside);
        assert_eq!(refused(&[CLEAR, (RANGE, "bytes=0-3")], b"data").await, FileError::header("content-length", "4"));
        let md5 = ("content-md5", "XUFAKrxLKna5cZ2REBfFkg==");
        assert_eq!(refused(&[CLEAR, (RANGE, "bytes=0-3"), md5], b"").await, FileError::header(md5.0, md5.1));
        let wrong = refused(&[UPDATE, (RANGE, "bytes=0-3"), md5], b"data").await;
        assert!(matches!(wrong, FileError::Request(RequestError::Md5Mismatch { .. })), "{wrong:?}");
        let time = ("x-ms-file-last-write-time", "2020-01-01T00:00:00Z");
        assert_eq!(refused(&[UPDATE, (RANGE, "bytes=0-3"), time], b"data").await, FileError::header(time.0, time.1));
        assert_eq!(bench.figures(), before);
        assert!(bench.read("file").await == vec![0; 2_000]);
        // The range of HTTP will do.
        bench.call("PUT", URL, &[UPDATE, ("range", "bytes=0-3")], b"data").await.unwrap();
    }

    #[tokio::test]
    async fn at_most_4_mib_are_written_but_any_number_is_cleared() {
        let bench = Bench::with_share().await;
        bench.create("file", 4 << 40).await;
        let put = async |headers: &[(&str, &str)], length: usize| {
            bench.send(head_of("PUT", URL, headers), &mut FixedBody::new(vec![1; length])).await
        };
        put(&[UPDATE, (RANGE, "bytes=1-4194304")], 4 << 20).await.unwrap();
        let large = refusal(put(&[UPDATE, (RANGE, "bytes=0-4194304")], (4 << 20) + 1).await);
        assert_eq!(large, RequestError::RequestBodyTooLarge { most: BODY_BYTES_MAX }.into());
        assert_eq!(wire::http::ErrorReply::from(large).status, 413);
        put(&[CLEAR, (RANGE, "bytes=0-4398046511103")], 0).await.unwrap();
        let ranges = bench.text("GET", "share/file?comp=rangelist").await;
        assert!(ranges.ends_with("<Ranges></Ranges>"), "{ranges}");
    }

    /// More groups than a decision takes out one by one: the clear puts a new map in front, and only so many of them stand behind
    /// each other.
    #[tokio::test]
    async fn a_large_part_can_be_cleared_again_and_again() {
        const GROUP: u64 = content::map::GROUP_BYTES;
        let bench = Bench::with_share().await;
        let length = 1_100 * GROUP;
        bench.create("file", length).await;
        let clear = async |first: u64, end: u64| {
            let range = format!("bytes={first}-{}", end - 1);
            bench.call("PUT", URL, &[CLEAR, (RANGE, &*range)], b"").await.unwrap();
        };
        bench.write("file", 0, b"begin").await;
        bench.write("file", length - 3, b"end").await;
        for _ in 0..=content::map::ORIGINS_MAX {
            // Each write touches two groups.
            for group in (1..content::map::CUT_ROWS_MAX as u64 + 4).step_by(2) {
                bench.write("file", group * GROUP - 1, b"xy").await;
            }
            clear(5, length - 3).await;
            let ranges = bench.text("GET", "share/file?comp=rangelist").await;
            let last = (length - 512).to_string();
            assert_eq!(crate::testing::between(&ranges, "<Start>", "<"), ["0", &*last], "{ranges}");
        }
        let read = bench.call("GET", "share/file", &[(RANGE, "bytes=0-9")], b"").await.unwrap();
        assert_eq!(bytes(read).await, b"begin\0\0\0\0\0");
        let range = format!("bytes={}-", length - 5);
        let read = bench.call("GET", "share/file", &[(RANGE, &*range)], b"").await.unwrap();
        assert_eq!(bytes(read).await, b"\0\0end");
        bench.sweep().await;
        assert_eq!(service::testing::figure(&*bench.engine, "contents"), 2);
        clear(0, length).await;
        bench.sweep().await;
        assert_eq!(service::testing::figure(&*bench.engine, "contents"), 0);
        bench.check_rows().await;
    }

    #[tokio::test]
    async fn a_structured_body() {
        let bench = bench().await;
        let mut encoder = wire::structured::Encoder::new(5);
        let body = encoder.next(bytes::Bytes::from_static(b"hello")).concat();
        let structured = [("x-ms-structured-body", wire::structured::VALUE), ("x-ms-structured-content-length", "5")];
        let headers = [&[UPDATE, (RANGE, "bytes=7-11")], &structured[..]].concat();
        let answer = bench.call("PUT", URL, &headers, &body).await.unwrap();
        assert_eq!(header(&answer, "x-ms-structured-body"), Some(wire::structured::VALUE));
        let read = bench.call("GET", "share/file", &[(RANGE, "bytes=6-12")], b"").await.unwrap();
        assert_eq!(bytes(read).await, b"\0hello\0");
        let mut damaged = body.clone();
        let last = damaged.len() - 20;
        damaged[last] ^= 1;
        assert!(bench.call("PUT", URL, &headers, &damaged).await.is_err());
        let short = [&[UPDATE, (RANGE, "bytes=7-10")], &structured[..]].concat();
        assert_eq!(refusal(bench.call("PUT", URL, &short, &body).await), FileError::header(RANGE, "bytes=7-10"));
    }

    #[tokio::test]
    async fn the_md5_of_a_large_body_is_told_to_clients_that_compare_it() {
        let bench = Bench::with_share().await;
        bench.create("file", 70_000).await;
        let body = vec![7; 70_000];
        let md5 = wire::base64::encode(&wire::checksum::Md5::of(&body));
        let range = (RANGE, "bytes=0-69999");
        let plain = bench.call("PUT", URL, &[UPDATE, range], &body).await.unwrap();
        let compared = bench.call("PUT", URL, &[UPDATE, range, ("content-md5", &*md5)], &body).await.unwrap();
        assert_eq!((header(&plain, "content-md5"), header(&compared, "content-md5")), (None, Some(&*md5)));
    }

    /// Appends of 100 bytes: each is a resize and a write, and they do not leave a content each.
    #[tokio::test]
    async fn small_appends_are_stored_together() {
        let bench = Bench::with_share().await;
        bench.create("log", 0).await;
        let mut content = Vec::new();
        for number in 0..600_u32 {
            let line = [number as u8 | 1; 100];
            let (start, end) = (content.len(), content.len() + line.len());
            let length = [("x-ms-content-length", &*end.to_string())];
            bench.call("PUT", "share/log?comp=properties", &length, b"").await.unwrap();
            bench.write("log", start as u64, &line).await;
            content.extend_from_slice(&line);
        }
        assert!(bench.read("log").await == content);
        bench.sweep().await;
        let contents = service::testing::figure(&*bench.engine, "contents");
        assert!(contents < 20, "{contents}");
        assert!(bench.read("log").await == content);
        // A write between two neighbours takes both along, and a clear between them does not bring them back.
        let clear = [CLEAR, (RANGE, "bytes=50-149")];
        bench.call("PUT", "share/log?comp=range", &clear, b"").await.unwrap();
        bench.write("log", 60, b"between").await;
        content[50..150].fill(0);
        content[60..67].copy_from_slice(b"between");
        assert!(bench.read("log").await == content);
    }

    /// Neighbours that change while the body comes stay as they have become.
    #[tokio::test]
    async fn what_is_written_beside_a_write_that_is_on_its_way_stays() {
        struct Meanwhile<'a>(Option<&'a Bench>);
        impl Body for Meanwhile<'_> {
            fn length(&self) -> Option<u64> {
                Some(4)
            }
            fn next(&mut self) -> wire::http::BoxFuture<'_, Option<Result<bytes::Bytes, wire::http::BodyError>>> {
                Box::pin(async {
                    let bench = self.0.take()?;
                    bench.write("file", 0, b"newer").await;
                    bench.write("file", 10, b"newer").await;
                    Some(Ok(bytes::Bytes::from_static(b"data")))
                })
            }
        }
        let bench = Bench::with_share().await;
        bench.create("file", 20).await;
        bench.write("file", 0, b"older").await;
        bench.write("file", 9, b"older").await;
        let head = head_of("PUT", URL, &[UPDATE, (RANGE, "bytes=5-8")]);
        bench.send(head, &mut Meanwhile(Some(&bench))).await.unwrap();
        assert_eq!(bench.read("file").await, b"newerdataonewer\0\0\0\0\0");
    }

    /// A refusal comes before the body is asked for, and of two faults the one that comes first.
    #[tokio::test]
    async fn what_is_refused_is_not_read() {
        let bench = bench().await;
        let refused = async |url: &str, headers: &[(&str, &str)]| {
            refusal(bench.send(head_of("PUT", url, headers), &mut UnreadBody(4)).await)
        };
        let outside = [UPDATE, (RANGE, "bytes=1999-2002")];
        assert_eq!(refused(URL, &outside).await, FileError::InvalidRange { length: 2_000 });
        let none = [outside[0], outside[1], ("x-ms-lease-id", crate::testing::MY_LEASE)];
        assert_eq!(refused(URL, &none).await, FileError::file_lease(concurrency::LeaseRefusal::NotPresent));
        bench.call("PUT", "share/file?comp=properties", &[("x-ms-file-attributes", "ReadOnly")], b"").await.unwrap();
        assert_eq!(refused(URL, &outside).await, FileError::ReadOnlyAttribute);
        assert_eq!(refused("share/no?comp=range", &outside).await, FileError::ResourceNotFound, "it never creates");
        assert_eq!(refused("other/file?comp=range", &outside).await, FileError::ShareNotFound);
    }

    /// What changed while the body came counts.
    #[tokio::test]
    async fn the_commit_judges_again() {
        struct Meanwhile<'a>(Option<&'a Bench>);
        impl Body for Meanwhile<'_> {
            fn length(&self) -> Option<u64> {
                Some(4)
            }
            fn next(&mut self) -> wire::http::BoxFuture<'_, Option<Result<bytes::Bytes, wire::http::BodyError>>> {
                Box::pin(async {
                    let bench = self.0.take()?;
                    bench.create("file", 3).await;
                    Some(Ok(bytes::Bytes::from_static(b"data")))
                })
            }
        }
        let bench = bench().await;
        let head = head_of("PUT", URL, &[UPDATE, (RANGE, "bytes=0-3")]);
        let refused = refusal(bench.send(head, &mut Meanwhile(Some(&bench))).await);
        assert_eq!(refused, FileError::InvalidRange { length: 3 });
        assert_eq!(bench.read("file").await, [0; 3]);
    }
}
