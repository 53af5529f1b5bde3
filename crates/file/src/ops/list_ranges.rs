//! List Ranges: which bytes of a file were written, in whole pages of 512; or which have changed since a snapshot of the share.

use concurrency::Timestamp;
use concurrency::share_mode::RestAccess;
use content::map::{ByteSpan, Changed};
use engine::{Rows, Stop};
use service::request::range;
use service::{listing, reply};
use wire::http::{Head, HeaderValue, Reply, StatusCode};
use wire::ranges::RangeHeader;
use wire::xml::XmlWriter;
use wire::{base64, dates};

use super::Call;
use super::get_file_properties::ReadFile;
use crate::entering::{self, Admission, NodeRead};
use crate::error::FileError;
use crate::model::{FileState, Halt, Node, existing_snapshot, refuse};
use crate::reply::node::{CONTENT_LENGTH, ShownNode};
use crate::request::{flag, named_even_if_empty};
use crate::tree::{self, Spot, Target};
use crate::{Failure, past};

/// The most ranges of a page. A request that does not ask for pages gets all ranges.
const RESULTS_MAX: usize = 10_000;

#[derive(Clone, PartialEq, Eq, Debug)]
struct ListRanges {
    read: ReadFile,
    /// The file in the snapshot that it is compared with. `None`: all ranges that are written.
    previous: Option<Target>,
    /// Whether the file may be elsewhere in that snapshot.
    supports_rename: bool,
    range: RangeHeader,
    /// Where an earlier answer ended.
    from: u64,
    most: usize,
}

fn parse(head: &Head) -> Result<(Target, ListRanges), FileError> {
    let (target, read) = ReadFile::parse(head)?;
    let supports_rename = flag(head, "x-ms-file-support-rename")?.unwrap_or(false);
    let most = if is_paged(head) { listing::max_results(head, RESULTS_MAX)? } else { usize::MAX };
    let (range, from) = (range(head)?, marker(head)?);
    let previous = previous_snapshot(head)?.map(|time| Target { snapshot: Some(time), ..target.clone() });
    Ok((target, ListRanges { read, previous, supports_rename, range, from, most }))
}

fn is_paged(head: &Head) -> bool {
    head.query.has("maxresults") || head.query.has("marker")
}

/// The offset to go on at. Clients must not read anything into a marker.
fn marker(head: &Head) -> Result<u64, FileError> {
    let Some(text) = head.query.get("marker") else { return Ok(0) };
    let offset = base64::decode_url(text).and_then(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?)));
    offset.ok_or(FileError::InvalidMarker)
}

/// The snapshot to compare with. An empty one is refused: all ranges would pass for what has changed.
fn previous_snapshot(head: &Head) -> Result<Option<Timestamp>, FileError> {
    let Some(value) = named_even_if_empty(head, PREVIOUS) else { return Ok(None) };
    dates::parse_iso_ticks(value).map(Some).ok_or_else(|| FileError::query(PREVIOUS, value))
}

const PREVIOUS: &str = "prevsharesnapshot";

#[derive(Debug)]
struct FileRanges {
    shown: ShownNode,
    length: u64,
    ranges: Vec<Changed>,
    next: Option<u64>,
}

impl ListRanges {
    /// The pages that are meant, of a file of `length` bytes.
    fn span(&self, length: u64) -> Result<ByteSpan, FileError> {
        let span = self.range.resolve(length).map_err(|_| FileError::InvalidRange { length })?;
        let (start, end) = span.map_or((0, length), |span| (span.first, span.last + 1));
        let pages = ByteSpan { start, end }.outwards(length);
        Ok(ByteSpan { start: pages.start.max(self.from), ..pages })
    }

    /// What is written of a file.
    fn written(&self, state: &FileState, span: ByteSpan, rows: &dyn Rows) -> Result<Listed, Halt> {
        let (ranges, next) = state.view.ranges(rows, span, self.most)?;
        Ok((ranges.into_iter().map(|span| Changed { span, is_cleared: false }).collect(), next))
    }

    /// What has become of a file since the previous snapshot, which must be the older one.
    fn changed(
        &self,
        (spot, node, span): (&Spot, &Node, ByteSpan),
        previous: &Target,
        rows: &dyn Rows,
    ) -> Result<Listed, Halt> {
        let time = previous.snapshot.unwrap_or_default();
        let snapshot = existing_snapshot(rows, spot.share.generation, time)?;
        if spot.at.is_some_and(|at| at < snapshot.epoch) {
            return Err(refuse(FileError::query(PREVIOUS, dates::iso_ticks(time).as_str())));
        }
        let state = node.as_read_file().map_err(refuse)?;
        let before = self.before((spot, node), (previous, snapshot.epoch), rows)?;
        if before.born != state.born {
            return Err(refuse(FileError::FileGenerationMismatch));
        }
        // What was cut off is not told: the answer tells how long the file is.
        Ok(state.view.changes_since(rows, (before.view, snapshot.taken), span, self.most)?)
    }

    /// The file as the snapshot of the epoch `at` has it. It is found by its id, wherever it was.
    fn before(
        &self,
        (spot, node): (&Spot, &Node),
        (path, at): (&Target, u64),
        rows: &dyn Rows,
    ) -> Result<FileState, Halt> {
        let at_path = match tree::find_at(rows, spot.share, Some(at), &path.path) {
            Ok(found) => found.node.filter(|found| !found.is_directory()),
            Err(Stop::Refused(FileError::ParentNotFound)) => None,
            Err(other) => return Err(other),
        };
        let is_same = at_path.as_ref().is_some_and(|found| found.id == node.id);
        let found = match &at_path {
            Some(_) if is_same => at_path.clone(),
            Some(_) | None => past::former(rows, spot, node, at)?,
        };
        match found {
            Some(found) if is_same || self.supports_rename => Ok(found.as_read_file().map_err(refuse)?.clone()),
            // It was elsewhere, or another file was here.
            Some(_) => Err(refuse(FileError::FileGenerationMismatch)),
            None if at_path.is_some() => Err(refuse(FileError::FileGenerationMismatch)),
            None => Err(refuse(FileError::ResourceNotFound)),
        }
    }
}

/// Some ranges, and where to go on if there are more.
type Listed = (Vec<Changed>, Option<u64>);

impl NodeRead for ListRanges {
    type Outcome = FileRanges;

    fn admission(&self, _: &Spot) -> Admission {
        Admission::of(RestAccess::Read)
    }

    fn read(&self, spot: &Spot, rows: &dyn Rows, now: Timestamp) -> Result<FileRanges, Halt> {
        let shown = self.read.look(spot, now).map_err(refuse)?;
        let state = shown.node.as_read_file().map_err(refuse)?;
        let length = state.length;
        let span = self.span(length).map_err(refuse)?;
        let (ranges, next) = match &self.previous {
            None => self.written(state, span, rows)?,
            Some(previous) => self.changed((spot, &shown.node, span), previous, rows)?,
        };
        Ok(FileRanges { length, ranges, next, shown })
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, list) = parse(call.head)?;
    let found = entering::read(call, &target, list).await?;
    let mut answer = reply::xml(StatusCode::OK, document(&found, is_paged(call.head)));
    reply::set_version(&mut answer.headers, found.shown.node.stamp);
    answer.headers.insert(&CONTENT_LENGTH, HeaderValue::from(found.length));
    Ok(answer)
}

fn document(found: &FileRanges, is_paged: bool) -> XmlWriter {
    let mut xml = XmlWriter::document();
    xml.reserve(found.ranges.len() * 64);
    xml.open("Ranges");
    for range in &found.ranges {
        let element = if range.is_cleared { "ClearRange" } else { "Range" };
        xml.open(element).number("Start", range.span.start).number("End", range.span.end - 1).close(element);
    }
    if is_paged {
        xml.leaf("NextMarker", found.next.map(|next| base64::encode_url(&next.to_be_bytes())).unwrap_or_default());
    }
    xml.close("Ranges");
    xml
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, between, header, text};
    use service::RequestError;

    const URL: &str = "share/file?comp=rangelist";

    async fn listed(bench: &Bench, headers: &[(&str, &str)]) -> Vec<(u64, u64)> {
        let list = text(bench.call("GET", URL, headers, b"").await.unwrap()).await;
        let number = |range: &str, name: &str| between(range, &format!("<{name}>"), "<")[0].parse().unwrap();
        let ranges = between(&list, "<Range>", "</Range>");
        ranges.into_iter().map(|range| (number(range, "Start"), number(range, "End"))).collect()
    }

    async fn clear(bench: &Bench, range: &str) {
        let headers = [("x-ms-write", "clear"), ("x-ms-range", range)];
        bench.call("PUT", "share/file?comp=range", &headers, b"").await.unwrap();
    }

    /// As the service has been seen to answer.
    #[tokio::test]
    async fn whole_pages_are_told_up_to_the_end_of_the_file() {
        let bench = Bench::with_share().await;
        bench.create("file", 4_096).await;
        bench.write("file", 1_023, b"bytes").await;
        assert_eq!(listed(&bench, &[]).await, [(512, 1_535)]);
        // A clear inside a page leaves it listed; one of whole pages does not.
        clear(&bench, "bytes=1023-1030").await;
        assert_eq!(listed(&bench, &[]).await, [(512, 1_535)]);
        clear(&bench, "bytes=512-1023").await;
        assert_eq!(listed(&bench, &[]).await, [(1_024, 1_535)]);
        clear(&bench, "bytes=0-4095").await;
        assert_eq!(listed(&bench, &[]).await, []);
        // A clear of a part of a page that was never written writes nothing.
        clear(&bench, "bytes=100-200").await;
        assert_eq!(listed(&bench, &[]).await, []);
        bench.create("file", 10).await;
        bench.write("file", 0, &[1; 10]).await;
        assert_eq!(listed(&bench, &[]).await, [(0, 9)]);
    }

    #[tokio::test]
    async fn ranges_that_touch_are_one() {
        let bench = Bench::with_share().await;
        bench.create("file", 3 << 20).await;
        for offset in [512, 1_024, 4_096, (1 << 20) - 512, 1 << 20] {
            bench.write("file", offset, &[1; 512]).await;
        }
        let all = [(512, 1_535), (4_096, 4_607), ((1 << 20) - 512, (1 << 20) + 511)];
        assert_eq!(listed(&bench, &[]).await, all);
        assert_eq!(listed(&bench, &[("x-ms-range", "bytes=1024-4500")]).await, [(1_024, 1_535), (4_096, 4_607)]);
        assert_eq!(listed(&bench, &[("range", "bytes=1300-1400")]).await, [(1_024, 1_535)]);
        assert_eq!(listed(&bench, &[("range", "bytes=2048-4095")]).await, []);
        let answer = bench.call("GET", URL, &[], b"").await.unwrap();
        assert_eq!(header(&answer, "x-ms-content-length"), Some("3145728"));
        assert_eq!(header(&answer, "etag"), header(&bench.file("file").await, "etag"));
        // Cut, and made longer again: what was cut does not come back.
        for length in ["4100", "3145728"] {
            let headers = [("x-ms-content-length", length)];
            bench.call("PUT", "share/file?comp=properties", &headers, b"").await.unwrap();
        }
        assert_eq!(listed(&bench, &[]).await, [(512, 1_535), (4_096, 4_607)]);
    }

    #[tokio::test]
    async fn pages_of_any_size_have_the_same_ranges() {
        let bench = Bench::with_share().await;
        bench.create("file", 4 << 20).await;
        for start in (0..4_u64 << 20).step_by(300 * 512) {
            bench.write("file", start + 7, b"x").await;
        }
        let whole = listed(&bench, &[]).await;
        for max in [1, 3, 28, 100] {
            let (mut seen, mut marker) = (Vec::new(), String::new());
            loop {
                let page = bench.text("GET", &format!("{URL}&maxresults={max}&marker={marker}")).await;
                let ranges = between(&page, "<Start>", "<");
                assert!(ranges.len() <= max);
                seen.extend(ranges.iter().map(|start| start.parse::<u64>().unwrap()));
                match between(&page, "<NextMarker>", "<").first() {
                    Some(next) => marker = (*next).to_owned(),
                    None => break,
                }
            }
            assert_eq!(seen, whole.iter().map(|(start, _)| *start).collect::<Vec<_>>(), "{max}");
        }
    }

    #[tokio::test]
    async fn a_tebibyte_that_was_never_written_costs_nothing() {
        let bench = Bench::with_share().await;
        bench.create("file", 1 << 40).await;
        bench.write("file", 0, b"first").await;
        bench.write("file", (1 << 40) - 4, b"last").await;
        assert_eq!(listed(&bench, &[]).await, [(0, 511), ((1 << 40) - 512, (1 << 40) - 1)]);
        bench.call("DELETE", "share/file", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(service::testing::figure(&*bench.engine, "contents"), 0);
    }

    #[tokio::test]
    async fn refusals_and_two_at_once() {
        let bench = Bench::with_share().await;
        bench.create("file", 10).await;
        let refused = async |query: &str, headers: &[(&str, &str)]| {
            bench.refused("GET", &format!("{URL}&{query}"), headers).await
        };
        assert_eq!(refused("", &[("range", "bytes=10-")]).await, FileError::InvalidRange { length: 10 });
        assert_eq!(refused("marker=x", &[("range", "bytes=10-")]).await, FileError::InvalidMarker);
        let zero = refused("maxresults=0", &[]).await;
        assert!(matches!(zero, FileError::Request(RequestError::OutOfRangeQueryParameterValue { .. })), "{zero:?}");
        let snapshot = "prevsharesnapshot=2026-11-15T18:00:00.0000000Z";
        assert_eq!(refused(snapshot, &[]).await, FileError::ShareNotFound);
        assert_eq!(refused("prevsharesnapshot=x", &[]).await, FileError::query("prevsharesnapshot", "x"));
        bench.create("empty", 0).await;
        let empty = bench.text("GET", "share/empty?comp=rangelist").await;
        assert!(empty.ends_with("<Ranges></Ranges>"), "{empty}");
    }
}
