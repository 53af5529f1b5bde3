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
struct Found {
    shown: ShownNode,
    span: Option<Span>,
    pieces: VecDeque<Piece>,
}

impl NodeRead for GetFile {
    type Outcome = Found;

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

    fn read(&self, spot: &Spot, rows: &dyn Rows, now: Timestamp) -> Result<Found, Halt> {
        let shown = self.read.look(spot, now).map_err(refuse)?;
        let state = shown.node.as_read_file().map_err(refuse)?;
        let span = self.span(state.length).map_err(refuse)?;
        let (start, end) = span.map_or((0, state.length), |span| (span.first, span.last + 1));
        let pieces = state.view.open(rows, start, end)?;
        Ok(Found { shown, span, pieces })
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, get) = parse(call.head)?;
    let is_structured = structured_body(call.head).map_err(FileError::from)?;
    let Found { shown, span, pieces } = entering::read(call, &target, get).await?;
    let mut answer = reply::reply(if span.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK });
    shown.set_on(&mut answer.headers, call.head);
    answer.headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(state) = shown.node.file() {
        if let Some(span) = span {
            let range = format!("bytes {}-{}/{}", span.first, span.last, state.length);
            answer.headers.insert(header::CONTENT_RANGE, reply::value(range));
        }
        node::set_file_md5(&mut answer.headers, state, if span.is_some() { &CONTENT_MD5_OF_FILE } else { &CONTENT_MD5 });
    }
    answer.body = pieces::reply_body(&mut answer.headers, pieces, get.sum, is_structured).await?;
    Ok(answer)
}
