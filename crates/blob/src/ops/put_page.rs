//! Put Page: write or clear pages of a page blob.

use std::sync::Arc;

use concurrency::{Conditions, LeaseId, Timestamp};
use content::map::{ByteSpan, PAGE_BYTES, PageView};
use content::upload::{self, Received, Wanted};
use engine::{Changes, Key, Rows, Tick};
use service::{Operation, ReadOperation, RequestError, codec};
use wire::http::{Body, Head, HeaderValue, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};
use wire::ranges::RangeHeader;

use super::Call;
use crate::error::BlobError;
use crate::model::encryption::Encryption;
use crate::model::{self, Blob, BlobType, Committed, ContentRef, Halt, blob_key, refuse};
use crate::request::BodySums;
use crate::rules::encryption;
use crate::{Failure, reply, request};

/// The most that one request writes. A clear may go over the whole blob.
pub(super) const BODY_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Pages to write or to clear. As a [`ReadOperation`] it says whether they may be changed, before the body is read.
#[derive(Clone, Debug)]
pub struct PutPage {
    pub container: ContainerName,
    pub name: BlobName,
    pub conditions: Conditions,
    pub sequence: SequenceConditions,
    pub lease: Option<LeaseId>,
    pub write: PageWrite,
    /// Whole pages, at least one.
    pub span: ByteSpan,
    /// What the client names as encryption, which must be that of the blob.
    pub encryption: Option<Encryption>,
}

/// What becomes of the pages.
#[derive(Clone, Debug)]
pub enum PageWrite {
    /// They get these bytes, which are durable by now and as many as the pages have. Before they are read, their length alone
    /// counts.
    Update(Received),
    Clear,
}

/// What the blob's sequence number must be; all that are given must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SequenceConditions {
    pub at_most: Option<u64>,
    pub below: Option<u64>,
    pub equal: Option<u64>,
}

/// What Put Page tells of the blob.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenPages {
    /// When the blob was last changed: now.
    pub stamp: Timestamp,
    pub sequence: u64,
    pub encryption: Option<Encryption>,
}

impl SequenceConditions {
    fn check(&self, sequence: u64) -> Result<(), BlobError> {
        let holds = self.at_most.is_none_or(|most| sequence <= most)
            && self.below.is_none_or(|end| sequence < end)
            && self.equal.is_none_or(|equal| sequence == equal);
        if holds { Ok(()) } else { Err(BlobError::SequenceNumberConditionNotMet) }
    }
}

/// With the length of the body, which must be that of the pages.
fn parse_with(head: &Head, body: &dyn Body) -> Result<(PutPage, BodySums), BlobError> {
    let length = upload::announced(head, body, BODY_BYTES_MAX)?.length;
    let (op, sums) = parse(head)?;
    match op.write {
        PageWrite::Update(_) if length != bytes_of(op.span) => Err(BlobError::InvalidPageRange),
        PageWrite::Clear if length > 0 => Err(BlobError::header("content-length", length.to_string())),
        PageWrite::Update(_) | PageWrite::Clear => Ok((op, sums)),
    }
}

/// The pages without the bytes for them, and the checksums that the client sends with those.
pub(super) fn parse(head: &Head) -> Result<(PutPage, BodySums), BlobError> {
    let (container, name) = request::blob(head)?;
    request::only_base(head)?;
    request::no_expiry(head)?;
    let conditions = request::conditions(head)?;
    conditions.check_write_combination()?;
    let is_clear = is_clear(head)?;
    let span = span(head)?;
    let op = PutPage {
        container,
        name,
        conditions,
        sequence: SequenceConditions {
            at_most: request::number(head, "x-ms-if-sequence-number-le")?,
            below: request::number(head, "x-ms-if-sequence-number-lt")?,
            equal: request::number(head, "x-ms-if-sequence-number-eq")?,
        },
        lease: request::lease_id(head)?,
        write: if is_clear { PageWrite::Clear } else { PageWrite::Update(Received::nothing(bytes_of(span))) },
        span,
        encryption: None,
    };
    Ok((op, request::body_sums(head)?))
}

fn is_clear(head: &Head) -> Result<bool, BlobError> {
    const NAME: &str = "x-ms-page-write";
    match request::required(head, NAME)? {
        value if value.eq_ignore_ascii_case("update") => Ok(false),
        value if value.eq_ignore_ascii_case("clear") => Ok(true),
        other => Err(BlobError::header(NAME, other)),
    }
}

/// The pages that are meant. Here a `Range` that means nothing cannot be ignored.
fn span(head: &Head) -> Result<ByteSpan, BlobError> {
    match request::range(head)? {
        RangeHeader::None => Err(BlobError::Request(RequestError::MissingRequiredHeader { name: "x-ms-range" })),
        RangeHeader::Ignored => Err(BlobError::header("range", request::text(head, "range")?.unwrap_or_default())),
        RangeHeader::Span { last: None, .. } => Err(BlobError::InvalidPageRange),
        RangeHeader::Span { first, last: Some(last) } => {
            let end = last.checked_add(1).ok_or(BlobError::InvalidPageRange)?;
            Some(ByteSpan { start: first, end }).filter(is_pages).ok_or(BlobError::InvalidPageRange)
        }
    }
}

/// Whether the span is one of whole pages.
fn is_pages(span: &ByteSpan) -> bool {
    span.start < span.end && span.start.is_multiple_of(PAGE_BYTES) && span.end.is_multiple_of(PAGE_BYTES)
}

pub(super) fn bytes_of(span: ByteSpan) -> u64 {
    span.end.saturating_sub(span.start)
}

/// A blob whose pages are to be changed.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Target {
    blob: Blob,
    state: Committed,
    view: PageView,
    sequence: u64,
}

impl PutPage {
    /// Whether the write may happen. The order is the service's.
    fn judge(&self, found: Option<Blob>, now: Timestamp) -> Result<Target, BlobError> {
        self.conditions.check_write(found.as_ref().and_then(Blob::version).as_ref())?;
        let mut blob = found.filter(|blob| blob.committed.is_some()).ok_or(BlobError::BlobNotFound)?;
        blob.lease = blob.check_write(self.lease, now)?;
        let state = blob.committed.take().ok_or(BlobError::BlobNotFound)?;
        let (BlobType::Page { sequence }, ContentRef::Pages(view)) = (state.kind, state.content) else {
            return Err(BlobError::InvalidBlobType);
        };
        state.check_change(now)?;
        self.sequence.check(sequence)?;
        let is_whole = match &self.write {
            PageWrite::Update(body) => body.length == bytes_of(self.span),
            PageWrite::Clear => true,
        };
        if self.span.end > state.length || !is_pages(&self.span) || !is_whole {
            return Err(BlobError::InvalidPageRange);
        }
        Ok(Target { blob, state, view, sequence })
    }

    /// The blob as it becomes; its pages are changed beside it.
    fn decide(&self, found: Option<Blob>, tick: Tick) -> Result<(Blob, PageView, u64), BlobError> {
        let Target { blob, state, view, sequence } = self.judge(found, tick.now)?;
        let committed = Some(Committed { stamp: tick.stamp, ..state });
        Ok((Blob { committed, ..blob }, view, sequence))
    }
}

/// Whether the pages may be written.
impl ReadOperation for PutPage {
    type Outcome = ();
    type Refusal = BlobError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<(), Halt> {
        let container = model::guard(rows, account, &self.container)?;
        let found = model::find_blob(rows, &blob_key(container.generation, &self.name))?;
        let target = self.judge(found, now).map_err(refuse)?;
        encryption::same_as(&container, self.encryption.as_ref(), target.state.encryption.as_ref())?;
        Ok(())
    }
}

impl Operation for PutPage {
    type Outcome = WrittenPages;
    type Refusal = BlobError;

    fn partition(&self, account: u64) -> Key {
        model::blob_partition(account, &self.container, &self.name)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<WrittenPages, Halt> {
        let container = model::guard(rows, account, &self.container)?;
        let key = blob_key(container.generation, &self.name);
        let (blob, view, sequence) = self.decide(model::find_blob(rows, &key)?, tick).map_err(refuse)?;
        let stored = blob.committed.as_ref().and_then(|state| state.encryption.as_ref());
        let encryption = encryption::same_as(&container, self.encryption.as_ref(), stored)?;
        match &self.write {
            PageWrite::Update(Received { staged: Some(staged), .. }) => {
                view.write(rows, self.span, staged, tick, changes)?;
            }
            // Pages are written, not referred to.
            PageWrite::Update(Received { staged: None, .. }) => return Err(refuse(BlobError::InvalidPageRange)),
            PageWrite::Clear => view.clear(rows, self.span, tick, changes)?,
        }
        changes.put(key, codec::encode(&blob));
        Ok(WrittenPages { stamp: tick.stamp, sequence, encryption })
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let (op, sums) = parse_with(call.head, body)?;
    let asked = call.encryption()?;
    let op = Arc::new(PutPage { encryption: asked.encryption.clone(), ..op });
    call.read(&op).await?;
    let mut op = Arc::unwrap_or_clone(op);
    if let PageWrite::Update(bytes) = &mut op.write {
        let announced =
            upload::announced(call.head, body, BODY_BYTES_MAX)?.sealed_with(asked.key.as_ref().map(|key| &key.secret));
        *bytes = upload::receive(call.engine, body, announced, Wanted::of_block(call.head, &sums)).await?;
        upload::verify(&sums, bytes.md5, bytes.crc64)?;
    }
    op.store(call, &sums).await
}

impl PutPage {
    /// Commits the pages, or that there are none, and answers.
    pub(super) async fn store(self, call: Call<'_>, sums: &BodySums) -> Result<Reply, Failure> {
        let mut answer = reply::reply(StatusCode::CREATED);
        let is_update = match &self.write {
            PageWrite::Update(body) => {
                upload::answer_sums(&mut answer.headers, call.head, sums, body.md5, body.crc64);
                true
            }
            PageWrite::Clear => false,
        };
        let WrittenPages { stamp, sequence, encryption } = call.commit(&Arc::new(self)).await?;
        reply::set_version(&mut answer.headers, stamp);
        answer.headers.insert(&reply::BLOB_SEQUENCE_NUMBER, HeaderValue::from(sequence));
        if is_update {
            reply::set_encrypted(&mut answer.headers, encryption.as_ref());
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, HELD, Interrupted, MINE, NOW, YOURS, committed, header, refusal, request};
    use concurrency::{ETagMatch, Lease};

    const URL: &str = "cont/blob?comp=page";
    const UPDATE: (&str, &str) = ("x-ms-page-write", "update");
    const CLEAR: (&str, &str) = ("x-ms-page-write", "clear");

    fn ask(lease: Option<LeaseId>, sequence: SequenceConditions, end: u64) -> PutPage {
        PutPage {
            container: ContainerName::parse("cont").unwrap(),
            name: BlobName::parse("blob").unwrap(),
            conditions: Conditions::default(),
            sequence,
            lease,
            write: PageWrite::Clear,
            span: ByteSpan { start: 0, end },
            encryption: None,
        }
    }

    fn blob(lease: Lease, kind: BlobType) -> Option<Blob> {
        let content = match kind {
            BlobType::Page { .. } => ContentRef::Pages(PageView { map: 8, epoch: 1 }),
            BlobType::Block | BlobType::Append { .. } => ContentRef::Empty,
        };
        let state = Committed { length: 1_024, content, kind, ..committed() };
        Some(Blob { uid: 3, lease, committed: Some(state), ..Blob::default() })
    }

    const PAGES: BlobType = BlobType::Page { sequence: 7 };

    #[test]
    fn each_refusal_and_two_at_once() {
        let any = SequenceConditions::default;
        let wrong = || SequenceConditions { equal: Some(6), ..any() };
        let judge = |ask: PutPage, found| ask.judge(found, NOW).err();
        let free = |kind| blob(Lease::Available, kind);
        assert_eq!(judge(ask(None, any(), 1_024), free(PAGES)), None);
        assert_eq!(judge(ask(Some(MINE), any(), 1_024), blob(HELD, PAGES)), None);
        assert_eq!(judge(ask(None, any(), 512), None), Some(BlobError::BlobNotFound));
        assert_eq!(judge(ask(None, any(), 512), blob(HELD, PAGES)), Some(BlobError::LeaseIdMissing));
        let yours = judge(ask(Some(YOURS), wrong(), 512), blob(HELD, PAGES));
        assert_eq!(yours, Some(BlobError::LeaseIdMismatchWithBlobOperation));
        assert_eq!(judge(ask(None, wrong(), 2_048), free(BlobType::Block)), Some(BlobError::InvalidBlobType));
        assert_eq!(judge(ask(None, any(), 512), blob(HELD, BlobType::Block)), Some(BlobError::LeaseIdMissing));
        assert_eq!(judge(ask(None, any(), 1_536), free(PAGES)), Some(BlobError::InvalidPageRange));
        assert_eq!(judge(ask(None, wrong(), 1_536), free(PAGES)), Some(BlobError::SequenceNumberConditionNotMet));
        let stale = Conditions { if_match: Some(ETagMatch::OneOf(vec!["0x1".into()])), ..Conditions::default() };
        let stale = PutPage { conditions: stale, ..ask(None, wrong(), 1_536) };
        assert_eq!(judge(stale, blob(HELD, PAGES)), Some(BlobError::ConditionNotMet));
    }

    #[test]
    fn sequence_numbers() {
        let at_most = |value| SequenceConditions { at_most: Some(value), ..Default::default() };
        let below = |value| SequenceConditions { below: Some(value), ..Default::default() };
        let equal = |value| SequenceConditions { equal: Some(value), ..Default::default() };
        for (conditions, holds) in [
            (at_most(7), true),
            (at_most(6), false),
            (below(8), true),
            (below(7), false),
            (equal(7), true),
            (equal(8), false),
            (SequenceConditions { at_most: Some(7), below: Some(7), equal: Some(7) }, false),
            (SequenceConditions { at_most: Some(7), below: Some(8), equal: Some(7) }, true),
        ] {
            assert_eq!(conditions.check(7).is_ok(), holds, "{conditions:?}");
        }
    }

    #[tokio::test]
    async fn pages_and_sums() {
        let bench = Bench::with_container().await;
        bench.put_pages("cont/blob", 2_048).await;
        let before = bench.figures();
        let page = [7; 512];
        let put = async |headers: &[(&str, &str)], body: &[u8]| bench.call("PUT", URL, headers, body).await;
        let range = |text: &'static str| ("range", text);
        assert_eq!(refusal(put(&[range("bytes=0-511")], &page).await), missing("x-ms-page-write"));
        assert_eq!(refusal(put(&[UPDATE], &page).await), missing("x-ms-range"));
        for text in ["bytes=0-510", "bytes=1-512", "bytes=0-1023", "bytes=0-", "bytes=0-18446744073709551615"] {
            assert_eq!(refusal(put(&[UPDATE, range(text)], &page).await), BlobError::InvalidPageRange, "{text}");
        }
        assert_eq!(refusal(put(&[UPDATE, range("pages")], &page).await), BlobError::header("range", "pages"));
        let beyond = put(&[UPDATE, range("bytes=2048-2559")], &page).await;
        assert_eq!(refusal(beyond), BlobError::InvalidPageRange);
        let full = put(&[CLEAR, range("bytes=0-511")], &page).await;
        assert_eq!(refusal(full), BlobError::header("content-length", "512"));
        let over = bench.call_with("PUT", URL, &[UPDATE, range("bytes=0-511")], b"", Some(BODY_BYTES_MAX + 1)).await;
        assert_eq!(refusal(over), BlobError::Request(RequestError::RequestBodyTooLarge { most: BODY_BYTES_MAX }));
        let wrong = put(&[UPDATE, range("bytes=0-511"), ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")], &page).await;
        assert!(matches!(refusal(wrong), BlobError::Request(RequestError::Md5Mismatch { .. })));
        let stale = [UPDATE, range("bytes=0-511"), ("x-ms-if-sequence-number-lt", "0")];
        assert_eq!(refusal(put(&stale, &page).await), BlobError::SequenceNumberConditionNotMet);
        assert_eq!(bench.figures(), before);

        let answer = put(&[UPDATE, range("bytes=512-1023")], &page).await.unwrap();
        assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-blob-sequence-number")), (201, Some("0")));
        assert!(header(&answer, "x-ms-content-crc64").is_some());
        assert_eq!(bench.get("cont/blob").await, [vec![0; 512], vec![7; 512], vec![0; 1_024]].concat());
        let answer = put(&[CLEAR, range("bytes=0-2047")], b"").await.unwrap();
        assert_eq!(header(&answer, "x-ms-content-crc64"), None);
        assert_eq!(bench.get("cont/blob").await, vec![0; 2_048]);
        bench.sweep().await;
        assert_eq!(bench.figures(), before);
    }

    fn missing(name: &'static str) -> BlobError {
        BlobError::Request(RequestError::MissingRequiredHeader { name })
    }

    #[tokio::test]
    async fn of_two_writers_with_one_etag_the_second_loses() {
        let bench = Bench::with_container().await;
        let etag = bench.put_pages("cont/blob", 512).await;
        let headers = [UPDATE, ("range", "bytes=0-511"), ("if-match", etag.as_str())];
        let interrupted = Interrupted::by(&bench, request("PUT", URL, &headers), &[1; 512]);
        let refused = interrupted.call("PUT", URL, &headers, &[2; 512]).await;
        assert_eq!(refusal(refused), BlobError::ConditionNotMet);
        assert_eq!(bench.get("cont/blob").await, [1; 512]);
    }

    #[tokio::test]
    async fn other_types_keep_to_their_own_operations() {
        let bench = Bench::with_container().await;
        bench.put_pages("cont/pages", 512).await;
        bench.put("cont/blob", b"x").await;
        for (method, url) in [
            ("PUT", "cont/pages?comp=block&blockid=QQ=="),
            ("PUT", "cont/pages?comp=blocklist"),
            ("GET", "cont/pages?comp=blocklist"),
            ("PUT", "cont/pages?comp=appendblock"),
            ("PUT", "cont/pages?comp=seal"),
            ("GET", "cont/blob?comp=pagelist"),
        ] {
            let refused = bench.call(method, url, &[], b"<BlockList/>").await;
            assert_eq!(refusal(refused), BlobError::InvalidBlobType, "{method} {url}");
        }
        let refused = bench.call("PUT", URL, &[CLEAR, ("range", "bytes=0-511")], b"").await;
        assert_eq!(refusal(refused), BlobError::InvalidBlobType);
    }

    /// More groups than one step of the sweep takes.
    #[tokio::test]
    async fn a_wide_blob_leaves_nothing() {
        let bench = Bench::with_container().await;
        bench.put_pages("cont/blob", 600 << 20).await;
        for group in 0..450_u64 {
            let start = group << 20;
            let range = format!("bytes={start}-{}", start + 511);
            bench.call("PUT", URL, &[UPDATE, ("range", &range)], &[1; 512]).await.unwrap();
        }
        bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
        bench.call("PUT", URL, &[CLEAR, ("range", "bytes=0-209715199")], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures().1, 450);
        bench.call("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "only")], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures().1, 250);
        bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (1, 0));
    }
}
