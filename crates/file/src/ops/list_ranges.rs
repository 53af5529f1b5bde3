//! List Ranges: which bytes of a file were written, in whole pages of 512.

use concurrency::Timestamp;
use concurrency::share_mode::RestAccess;
use content::map::{PAGE_BYTES, PageSpan};
use engine::Rows;
use service::request::range;
use service::{listing, reply};
use wire::http::{Head, HeaderValue, Reply, StatusCode};
use wire::ranges::RangeHeader;
use wire::xml::XmlWriter;
use wire::{base64, dates};

use super::Call;
use super::get_file_properties::ReadFile;
use crate::Failure;
use crate::entering::{self, Admission, NodeRead};
use crate::error::FileError;
use crate::model::{Halt, refuse};
use crate::reply::node::{CONTENT_LENGTH, ShownNode};
use crate::request::flag;
use crate::tree::{Spot, Target};

/// The most ranges of a page. A request that does not ask for pages gets all ranges.
const RESULTS_MAX: usize = 10_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ListRanges {
    read: ReadFile,
    range: RangeHeader,
    /// Where an earlier answer ended.
    from: u64,
    most: usize,
}

fn parse(head: &Head) -> Result<(Target, ListRanges), FileError> {
    let (target, read) = ReadFile::parse(head)?;
    // It matters for files that were renamed since a snapshot.
    flag(head, "x-ms-file-support-rename")?;
    let most = if is_paged(head) { listing::max_results(head, RESULTS_MAX)? } else { usize::MAX };
    let list = ListRanges { read, range: range(head)?, from: marker(head)?, most };
    no_previous_snapshot(head)?;
    Ok((target, list))
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

/// No share has snapshots yet, so there is none to compare with.
fn no_previous_snapshot(head: &Head) -> Result<(), FileError> {
    const NAME: &str = "prevsharesnapshot";
    match head.query.get(NAME) {
        None => Ok(()),
        Some(value) if dates::parse_iso_ticks(value).is_none() => Err(FileError::query(NAME, value)),
        Some(_) => Err(FileError::ShareNotFound),
    }
}

#[derive(Debug)]
struct Found {
    shown: ShownNode,
    length: u64,
    ranges: Vec<PageSpan>,
    next: Option<u64>,
}

impl ListRanges {
    /// The pages that are meant, of a file of `length` bytes.
    fn span(&self, length: u64) -> Result<PageSpan, FileError> {
        let span = self.range.resolve(length).map_err(|_| FileError::InvalidRange { length })?;
        let (start, end) = span.map_or((0, length), |span| (span.first, span.last + 1));
        let start = (start - start % PAGE_BYTES).max(self.from);
        Ok(PageSpan { start, end: end.next_multiple_of(PAGE_BYTES).max(start) })
    }
}

impl NodeRead for ListRanges {
    type Outcome = Found;

    fn admission(&self, _: &Spot) -> Admission {
        Admission::of(RestAccess::Read)
    }

    fn read(&self, spot: &Spot, rows: &dyn Rows, now: Timestamp) -> Result<Found, Halt> {
        let shown = self.read.look(spot, now).map_err(refuse)?;
        let state = shown.node.as_read_file().map_err(refuse)?;
        let length = state.length;
        let (ranges, next) = state.view.ranges(rows, self.span(length).map_err(refuse)?, self.most)?;
        Ok(Found { length, ranges, next, shown })
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

/// The last page ends with the file.
fn document(found: &Found, is_paged: bool) -> XmlWriter {
    let mut xml = XmlWriter::document();
    xml.reserve(found.ranges.len() * 64);
    xml.open("Ranges");
    for range in &found.ranges {
        let end = range.end.min(found.length) - 1;
        xml.open("Range").number("Start", range.start).number("End", end).close("Range");
    }
    if is_paged {
        xml.leaf("NextMarker", found.next.map(|next| base64::encode_url(&next.to_be_bytes())).unwrap_or_default());
    }
    xml.close("Ranges");
    xml
}
