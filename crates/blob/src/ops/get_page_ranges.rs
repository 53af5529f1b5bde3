//! Get Page Ranges: which pages of a page blob hold something, or which have changed since a snapshot.

use concurrency::Timestamp;
use content::map::{ByteSpan, Changed, PAGE_BYTES, PageView};
use engine::{Rows, read};
use service::sources::without_signature;
use wire::http::{Head, HeaderValue, Reply, StatusCode};
use wire::ranges::RangeHeader;
use wire::xml::XmlWriter;
use wire::{base64, dates, percent};

use super::Call;
use super::get_blob::ReadBlob;
use crate::error::BlobError;
use crate::model::Which;
use crate::model::{self, Committed, ContentRef, Halt, Seen, refuse};
use crate::request;
use crate::{Failure, listing, reply};
use content::copy_state::Incremental;

/// The default and the cap of a page of ranges.
const RESULTS_MAX: usize = 10_000;
/// Before this version there were no pages: one answer has all ranges.
const PAGED_SINCE: &str = "2020-10-02";

struct GetPageRanges {
    read: ReadBlob,
    range: RangeHeader,
    /// The snapshot to compare with.
    since: Option<Timestamp>,
    /// Where an earlier answer ended.
    from: u64,
    most: usize,
}

fn parse(head: &Head) -> Result<GetPageRanges, BlobError> {
    let read = ReadBlob::parse(head)?;
    let is_paged = head.since(PAGED_SINCE);
    Ok(GetPageRanges {
        read,
        range: request::range(head)?,
        since: since(head)?,
        from: if is_paged { marker(head)? } else { 0 },
        most: if is_paged { listing::max_results_of(head, RESULTS_MAX)? } else { usize::MAX },
    })
}

fn since(head: &Head) -> Result<Option<Timestamp>, BlobError> {
    const NAME: &str = "prevsnapshot";
    let Some(text) = head.query.get(NAME) else { return since_url(head) };
    dates::parse_iso_ticks(text).map(Some).ok_or_else(|| BlobError::query(NAME, text))
}

/// The same by a URL, which must name a snapshot of this blob.
fn since_url(head: &Head) -> Result<Option<Timestamp>, BlobError> {
    const NAME: &str = "x-ms-previous-snapshot-url";
    let Some(url) = request::text(head, NAME)? else { return Ok(None) };
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let is_same = percent::decode_path(path).is_ok_and(|path| path.ends_with(&format!("/{}", head.resource)));
    let mut pairs = percent::query_pairs(query).flatten();
    let snapshot = pairs.find(|(name, _)| name.eq_ignore_ascii_case("snapshot")).map(|(_, value)| value);
    let at = snapshot.filter(|_| is_same).and_then(|text| dates::parse_iso_ticks(&text));
    at.map(Some).ok_or_else(|| BlobError::header(NAME, without_signature(url)))
}

/// The offset to go on at. Clients must not read anything into a marker.
fn marker(head: &Head) -> Result<u64, BlobError> {
    const NAME: &str = "marker";
    let Some(text) = head.query.get(NAME) else { return Ok(0) };
    let offset = base64::decode(text).and_then(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?)));
    offset.ok_or_else(|| BlobError::query(NAME, text))
}

struct PageRanges {
    seen: Seen,
    ranges: Vec<Changed>,
    next: Option<u64>,
}

impl GetPageRanges {
    fn look(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<PageRanges, Halt> {
        let seen = self.read.look(rows, account, now)?;
        let ContentRef::Pages(view) = seen.state.content else { return Err(refuse(BlobError::InvalidBlobType)) };
        let span = self.span(seen.state.length).map_err(refuse)?;
        let (ranges, next) = match self.since {
            None => {
                let (ranges, next) = view.ranges(rows, span, self.most)?;
                (ranges.into_iter().map(|span| Changed { span, is_cleared: false }).collect(), next)
            }
            Some(at) => {
                let earlier = self.earlier(rows, account, (view, &seen.state), at)?;
                view.changes_since(rows, earlier, span, self.most)?
            }
        };
        Ok(PageRanges { seen, ranges, next })
    }

    /// The snapshot to compare with, and when it was taken: an earlier state of the same blob, if the blob was not made
    /// anew.
    fn earlier(
        &self,
        rows: &dyn Rows,
        account: u64,
        (view, target): (PageView, &Committed),
        at: Timestamp,
    ) -> Result<(PageView, Timestamp), Halt> {
        if matches!(self.read.which, Which::Snapshot(target) if target < at) {
            return Err(refuse(BlobError::PreviousSnapshotCannotBeNewer));
        }
        let generation = model::generation(rows, account, &self.read.container)?;
        let earlier = model::see(rows, generation, &self.read.name, Which::Snapshot(at))?;
        let earlier = earlier.ok_or(refuse(BlobError::PreviousSnapshotNotFound))?;
        let copied = |state: &Committed| state.copy.as_ref().and_then(|copy| copy.incremental.clone());
        let follows = |earlier: &Incremental| copied(target).is_some_and(|target| target.follows(earlier));
        match (earlier.state.content, copied(&earlier.state).filter(follows)) {
            (ContentRef::Pages(earlier), _) if earlier.map == view.map => Ok((earlier, at)),
            // Each copy has a map of its own, and is a later state of the same source.
            (ContentRef::Pages(pages), Some(copied)) => Ok((pages, copied.source_snapshot)),
            _ => Err(refuse(BlobError::BlobOverwritten)),
        }
    }

    /// The pages to look at: those that the range touches, from the marker on.
    fn span(&self, length: u64) -> Result<ByteSpan, BlobError> {
        let span = self.range.resolve(length).map_err(|_| BlobError::InvalidRange { length })?;
        let (start, end) = span.map_or((0, length), |span| (span.first, span.last + 1));
        let start = (start - start % PAGE_BYTES).max(self.from);
        Ok(ByteSpan { start, end: end.next_multiple_of(PAGE_BYTES).max(start) })
    }
}

fn document(found: &PageRanges) -> XmlWriter {
    let mut xml = XmlWriter::document();
    xml.reserve(found.ranges.len() * 80);
    xml.open("PageList");
    for range in &found.ranges {
        let element = if range.is_cleared { "ClearRange" } else { "PageRange" };
        xml.open(element).number("Start", range.span.start).number("End", range.span.end - 1).close(element);
    }
    xml.leaf("NextMarker", found.next.map(|next| base64::encode(&next.to_be_bytes())).unwrap_or_default());
    xml.close("PageList");
    xml
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = parse(call.head)?;
    let account = call.account;
    let found = read(call.engine, move |rows, now| op.look(rows, account, now)).await?;
    let mut answer = reply::xml(StatusCode::OK, document(&found));
    reply::set_version(&mut answer.headers, found.seen.state.stamp);
    answer.headers.insert(&reply::BLOB_CONTENT_LENGTH, HeaderValue::from(found.seen.state.length));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::BlobError;
    use crate::testing::{Bench, between, header, refusal};

    const URL: &str = "cont/blob?comp=pagelist";

    async fn write(bench: &Bench, range: &str, pages: usize) {
        let headers = [("x-ms-page-write", "update"), ("range", range)];
        bench.call("PUT", "cont/blob?comp=page", &headers, &vec![1; pages * 512]).await.unwrap();
    }

    fn page_list(ranges: &[(u64, u64)]) -> String {
        let range =
            |(start, end): &(u64, u64)| format!("<PageRange><Start>{start}</Start><End>{end}</End></PageRange>");
        ranges.iter().map(range).collect()
    }

    #[tokio::test]
    async fn ranges_are_merged_and_cut() {
        let bench = Bench::with_container().await;
        bench.put_pages("cont/blob", 10_240).await;
        let list = async |headers: &[(&str, &str)]| {
            let answer = bench.call("GET", URL, headers, b"").await.unwrap();
            assert_eq!(header(&answer, "x-ms-blob-content-length"), Some("10240"));
            String::from_utf8(crate::testing::bytes(answer).await).unwrap()
        };
        assert!(list(&[]).await.ends_with("<PageList><NextMarker /></PageList>"));
        write(&bench, "bytes=512-1023", 1).await;
        write(&bench, "bytes=1024-2047", 2).await;
        write(&bench, "bytes=4096-4607", 1).await;
        assert!(list(&[]).await.contains(&page_list(&[(512, 2_047), (4_096, 4_607)])));
        let part = list(&[("x-ms-range", "bytes=1024-4500")]).await;
        assert!(part.contains(&page_list(&[(1_024, 2_047), (4_096, 4_607)])), "{part}");
        assert_eq!(between(&part, "<PageRange>", "</PageRange>").len(), 2);
        let refused = bench.call("GET", URL, &[("range", "bytes=10240-")], b"").await;
        assert_eq!(refusal(refused), BlobError::InvalidRange { length: 10_240 });
        let refused = bench.call("GET", &format!("{URL}&marker=x"), &[], b"").await;
        assert_eq!(refusal(refused), BlobError::query("marker", "x"));
        let refused = bench.call("GET", &format!("{URL}&prevsnapshot=2026-11-15T18:00:00.0000000Z"), &[], b"").await;
        assert_eq!(refusal(refused), BlobError::PreviousSnapshotNotFound);
        let refused = bench.call("GET", &format!("{URL}&prevsnapshot=x"), &[], b"").await;
        assert_eq!(refusal(refused), BlobError::query("prevsnapshot", "x"));
        let by_url =
            async |url: &str| refusal(bench.call("GET", URL, &[("x-ms-previous-snapshot-url", url)], b"").await);
        let snapshot = "snapshot=2026-11-15T18%3A00%3A00.0000000Z";
        let own = by_url(&format!("http://h/acct/cont/blob?sig=s&{snapshot}")).await;
        assert_eq!(own, BlobError::PreviousSnapshotNotFound);
        let other = by_url(&format!("http://h/acct/cont/other?sig=s&{snapshot}")).await;
        let told = format!("http://h/acct/cont/other?{snapshot}");
        assert_eq!(other, BlobError::header("x-ms-previous-snapshot-url", told));
        assert_eq!(by_url("http://h/acct/cont/blob").await.to_reply().code, "InvalidHeaderValue");
        let etag = header(&bench.call("HEAD", "cont/blob", &[], b"").await.unwrap(), "etag").unwrap().to_owned();
        let unchanged = bench.call("GET", URL, &[("if-none-match", &etag)], b"").await;
        assert_eq!(refusal(unchanged), BlobError::NotModified);
    }

    #[tokio::test]
    async fn what_has_changed_since_a_snapshot() {
        let bench = Bench::with_container().await;
        bench.put_pages("cont/blob", 10_240).await;
        let snapshot = async || {
            let made = bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
            header(&made, "x-ms-snapshot").unwrap().to_owned()
        };
        write(&bench, "bytes=0-2047", 4).await;
        let first = snapshot().await;
        write(&bench, "bytes=512-1023", 1).await;
        let clear = [("x-ms-page-write", "clear"), ("range", "bytes=1024-1535")];
        bench.call("PUT", "cont/blob?comp=page", &clear, b"").await.unwrap();
        let second = snapshot().await;
        write(&bench, "bytes=4096-4607", 1).await;
        let list = async |target: &str, since: &str| {
            let told = bench.text("GET", &format!("cont/blob?comp=pagelist{target}&prevsnapshot={since}")).await;
            between(&told, "<PageList>", "<NextMarker").concat()
        };
        let cleared = page_list(&[(1_024, 1_535)]).replace("PageRange", "ClearRange");
        let since_first = page_list(&[(512, 1_023)]) + &cleared;
        assert_eq!(list(&format!("&snapshot={second}"), &first).await, since_first);
        assert_eq!(list("", &first).await, since_first + &page_list(&[(4_096, 4_607)]));
        assert_eq!(list("", &second).await, page_list(&[(4_096, 4_607)]));
        let by_url = [("x-ms-previous-snapshot-url", &*crate::testing::url(&format!("cont/blob?snapshot={second}")))];
        let told = bench.call("GET", URL, &by_url, b"").await.unwrap();
        let told = String::from_utf8(crate::testing::bytes(told).await).unwrap();
        assert_eq!(between(&told, "<PageList>", "<NextMarker").concat(), page_list(&[(4_096, 4_607)]));
        assert_eq!(list(&format!("&snapshot={second}"), &second).await, "");
        let newer = bench.call("GET", &format!("{URL}&snapshot={first}&prevsnapshot={second}"), &[], b"").await;
        assert_eq!(refusal(newer), BlobError::PreviousSnapshotCannotBeNewer);
        bench.put_pages("cont/blob", 10_240).await;
        let anew = bench.call("GET", &format!("{URL}&prevsnapshot={second}"), &[], b"").await;
        assert_eq!(refusal(anew), BlobError::BlobOverwritten);
    }

    #[tokio::test]
    async fn pages_of_any_size_have_the_same_ranges() {
        let bench = Bench::with_container().await;
        bench.put_pages("cont/blob", 4 << 20).await;
        for start in (0..4_u64 << 20).step_by(300 * 512) {
            write(&bench, &format!("bytes={start}-{}", start + 511), 1).await;
        }
        let whole = bench.text("GET", URL).await;
        let expected: Vec<String> =
            between(&whole, "<PageRange>", "</PageRange>").iter().map(|range| (*range).to_owned()).collect();
        for max in [1, 3, 28, 100] {
            let (mut seen, mut marker) = (Vec::new(), String::new());
            loop {
                let marked = wire::percent::encode_value(&marker).into_owned();
                let page = bench.text("GET", &format!("{URL}&maxresults={max}&marker={marked}")).await;
                let ranges = between(&page, "<PageRange>", "</PageRange>");
                assert!(ranges.len() <= max);
                seen.extend(ranges.iter().map(|range| (*range).to_owned()));
                marker = between(&page, "<NextMarker>", "</NextMarker>").first().map_or("", |m| *m).to_owned();
                if marker.is_empty() {
                    break;
                }
            }
            assert_eq!(seen, expected, "{max}");
        }
    }
}
