//! Put Range: writes or clears bytes of a file. It never makes the file longer.

use concurrency::Timestamp;
use concurrency::range_lock::Transfer;
use concurrency::share_mode::RestAccess;
use content::upload::{self, Received, Wanted};
use engine::{Changes, Rows, Tick};
use service::request::{BodySums, body_sums, range};
use service::reply::{self, REQUEST_SERVER_ENCRYPTED, TRUE};
use service::RequestError;
use wire::http::{Body, Head, Reply, StatusCode};
use wire::ranges::RangeHeader;

use super::Call;
use crate::change::write::RangeChange;
use crate::entering::{self, Admission, NodeChange, NodeRead};
use crate::error::FileError;
use crate::model::{Halt, Node, refuse};
use crate::opens::Span;
use crate::reply::node::{FILE_LAST_WRITE_TIME, time};
use crate::request::{required, text};
use crate::tree::{Spot, Target};
use crate::{Failure, request, smb_headers};

/// The most that one request writes. A clear may go over the whole file.
pub const BODY_BYTES_MAX: u64 = 4 * 1024 * 1024;

const RANGE: &str = "x-ms-range";
const WRITE: &str = "x-ms-write";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PutRange {
    kind: RangeWrite,
    range: RangeChange,
    sums: BodySums,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RangeWrite {
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
    let range = RangeChange { start, end, lease: request::lease_id(head)?, moves_last_write };
    Ok((target, PutRange { kind, range, sums }))
}

fn kind(head: &Head) -> Result<RangeWrite, FileError> {
    match required(head, WRITE)? {
        value if value.eq_ignore_ascii_case("update") => Ok(RangeWrite::Update),
        value if value.eq_ignore_ascii_case("clear") => Ok(RangeWrite::Clear),
        other => Err(FileError::header(WRITE, other)),
    }
}

/// The bytes that are meant: the first, and the first behind them. Here a `Range` that means nothing cannot be ignored.
fn span(head: &Head) -> Result<(u64, u64), FileError> {
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
    type Outcome = ();

    fn admission(&self, _: &Spot) -> Admission {
        self.admission()
    }

    fn read(&self, spot: &Spot, _: &dyn Rows, now: Timestamp) -> Result<(), Halt> {
        self.range.judge(spot, now).map(|_file| ()).map_err(refuse)
    }
}

/// The range with the bytes that have come.
struct WriteRange {
    put: PutRange,
    received: Option<Received>,
}

impl NodeChange for WriteRange {
    type Outcome = Node;

    fn admission(&self) -> Admission {
        self.put.admission()
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<Node, Halt> {
        match self.received.as_ref().and_then(|received| received.staged.as_ref()) {
            Some(staged) => self.put.range.write(spot, staged, rows, tick, changes),
            None => self.put.range.clear(spot, rows, tick, changes),
        }
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let (target, put) = parse(call.head, body)?;
    let (spot, received) = match put.kind {
        RangeWrite::Clear => (None, None),
        RangeWrite::Update => {
            let (spot, ()) = entering::look(call, &target, put).await?;
            (Some(spot), Some(receive(call, body, &put.sums).await?))
        }
    };
    let write = WriteRange { put, received: received.clone() };
    let node = entering::commit_at(call, &target, spot, write).await?;
    let mut answer = reply::reply(StatusCode::CREATED);
    reply::set_version(&mut answer.headers, node.stamp);
    answer.headers.insert(&REQUEST_SERVER_ENCRYPTED, TRUE);
    answer.headers.insert(&FILE_LAST_WRITE_TIME, time(node.written));
    if let Some(received) = received {
        set_sums(&mut answer, call.head, &received);
    }
    Ok(answer)
}

/// Takes the body in. Its MD5 is answered, whether the client has sent one or not.
pub async fn receive(call: Call<'_>, body: &mut dyn Body, sums: &BodySums) -> Result<Received, Failure> {
    let announced = upload::announced(call.head, body, BODY_BYTES_MAX).map_err(FileError::from)?;
    let wanted = Wanted { md5: true, crc64: sums.crc64.is_some() };
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
