//! Append Block: add bytes to the end of an append blob.
//!
//! Appends are judged one after another, each on the length that the one before it left, so no two get the same place. An
//! append writes one row of the blob's list, however long that has become.

use std::sync::Arc;

use concurrency::{Conditions, LeaseId, Timestamp};
use content::upload::{self, Received, Wanted};
use engine::{Changes, Key, Rows, Tick, Unread};
use service::{Operation, ReadOperation, RequestError, codec, space};
use wire::http::{Body, Head, HeaderValue, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};

use super::Call;
use crate::error::BlobError;
use crate::model::blocks::for_each_chunk;
use crate::model::blocks::list_chunks;
use crate::model::encryption::Encryption;
use crate::model::{
    self, Blob, BlobType, Committed, ContentRef, Halt, ListChunk, ListEntry, blob_key, chunk_key, refuse,
};
use crate::request::BodySums;
use crate::rules::encryption;
use crate::{Failure, reply, request};

const MIB: u64 = 1024 * 1024;

/// How often a blob can be appended to.
const BLOCKS_MAX: u32 = 50_000;

/// The largest block, by the version that raised it.
pub(super) fn body_bytes_max(head: &Head) -> u64 {
    if head.since("2022-11-02") { 100 * MIB } else { 4 * MIB }
}

/// A block to append. As a [`ReadOperation`] it says whether the block may be appended, before its body is read.
#[derive(Clone, Debug)]
pub struct AppendBlock {
    pub container: ContainerName,
    pub name: BlobName,
    pub conditions: Conditions,
    pub lease: Option<LeaseId>,
    /// The length that the blob must have.
    pub position: Option<u64>,
    /// The length that the blob may have afterwards.
    pub max_size: Option<u64>,
    /// What the client names as encryption, which must be that of the blob.
    pub encryption: Option<Encryption>,
    /// The bytes of the block, which are durable by now. There is at least one. Before they are read, their length alone counts.
    pub body: Received,
}

/// The block without its body, and the checksums that the client sends with that.
pub(super) fn parse(head: &Head) -> Result<(AppendBlock, BodySums), BlobError> {
    let (container, name) = request::blob(head)?;
    request::only_base(head)?;
    request::no_expiry(head)?;
    let conditions = request::conditions(head)?;
    conditions.check_write_combination()?;
    let op = AppendBlock {
        container,
        name,
        conditions,
        lease: request::lease_id(head)?,
        position: request::append_position(head)?,
        max_size: request::number(head, "x-ms-blob-condition-maxsize")?,
        encryption: None,
        body: Received::nothing(0),
    };
    Ok((op, request::body_sums(head)?))
}

/// Where a block was appended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppendedBlock {
    /// When the blob was last changed: now.
    pub stamp: Timestamp,
    /// The offset of its first byte.
    pub offset: u64,
    /// How many blocks the blob has with it.
    pub blocks: u32,
    pub encryption: Option<Encryption>,
}

/// A blob with one more block, and where that stands.
#[derive(Clone, PartialEq, Eq, Debug)]
struct LongerBlob {
    blob: Blob,
    list: u64,
    /// The version that must refer to the list from now on, if it is a new one.
    new_owner: Option<u64>,
    offset: u64,
    blocks: u32,
}

impl AppendBlock {
    /// Whether the bytes may be added, and what they are added to. The order is the service's.
    fn judge(&self, found: Option<Blob>, now: Timestamp) -> Result<(Blob, Committed, u32), BlobError> {
        self.conditions.check_write(found.as_ref().and_then(Blob::version).as_ref())?;
        let mut blob = found.filter(|blob| blob.committed.is_some()).ok_or(BlobError::BlobNotFound)?;
        blob.lease = blob.check_write(self.lease, now)?;
        let state = blob.committed.take().ok_or(BlobError::BlobNotFound)?;
        let BlobType::Append { blocks, sealed } = state.kind else { return Err(BlobError::InvalidBlobType) };
        state.check_change(now)?;
        if sealed {
            return Err(BlobError::BlobIsSealed);
        }
        if blocks >= BLOCKS_MAX {
            return Err(BlobError::BlockCountExceedsLimit);
        }
        if self.position.is_some_and(|position| position != state.length) {
            return Err(BlobError::AppendPositionConditionNotMet);
        }
        if self.max_size.is_some_and(|most| state.length.saturating_add(self.body.length) > most) {
            return Err(BlobError::MaxBlobSizeConditionNotMet);
        }
        Ok((blob, state, blocks))
    }

    /// The blob as it becomes. Its version stays, and with that its reference to the list; the first block begins one.
    fn decide(&self, found: Option<Blob>, tick: Tick) -> Result<LongerBlob, BlobError> {
        let (blob, state, blocks) = self.judge(found, tick.now)?;
        let (list, new_owner) = match state.content {
            ContentRef::Blocks(list) => (list, None),
            ContentRef::Empty | ContentRef::Whole(_) | ContentRef::Pages(_) | ContentRef::Shared(_) => {
                (tick.id(2), Some(state.version))
            }
        };
        let (offset, blocks) = (state.length, blocks + 1);
        let committed = Committed {
            stamp: tick.stamp,
            length: offset + self.body.length,
            content: ContentRef::Blocks(list),
            kind: BlobType::Append { blocks, sealed: false },
            copy: None,
            ..state
        };
        Ok(LongerBlob { blob: Blob { committed: Some(committed), ..blob }, list, new_owner, offset, blocks })
    }
}

/// Whether the block may be appended.
impl ReadOperation for AppendBlock {
    type Outcome = ();
    type Refusal = BlobError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<(), Halt> {
        let container = model::guard(rows, account, &self.container)?;
        let found = model::find_blob(rows, &blob_key(container.generation, &self.name))?;
        let (_, state, _) = self.judge(found, now).map_err(refuse)?;
        encryption::same_as(&container, self.encryption.as_ref(), state.encryption.as_ref())?;
        Ok(())
    }
}

impl Operation for AppendBlock {
    type Outcome = AppendedBlock;
    type Refusal = BlobError;

    fn partition(&self, account: u64) -> Key {
        model::blob_partition(account, &self.container, &self.name)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<AppendedBlock, Halt> {
        let container = model::guard(rows, account, &self.container)?;
        let key = blob_key(container.generation, &self.name);
        let found = model::find_blob(rows, &key)?;
        let before = found.as_ref().and_then(|blob| blob.committed.clone());
        let LongerBlob { blob, list, new_owner, offset, blocks } = self.decide(found, tick).map_err(refuse)?;
        let stored = blob.committed.as_ref().and_then(|state| state.encryption.as_ref());
        let encryption = encryption::same_as(&container, self.encryption.as_ref(), stored)?;
        if let Some(before) = before {
            take_over(rows, &before, list, tick.now, changes)?;
        }
        let content = self.body.keep(rows, list, changes, BlobError::SourceConditionNotMet)?;
        let content = content.ok_or(refuse(BlobError::Request(RequestError::OutOfRangeInput)))?;
        let size = self.body.length;
        let entry = ListEntry { id: Vec::new(), content, size };
        let row = codec::encode(&ListChunk { start: offset, entries: vec![entry] });
        changes.put(chunk_key(list, offset + size), row);
        if let Some(version) = new_owner {
            changes.refer(list, version);
        }
        changes.put(key, codec::encode(&blob));
        Ok(AppendedBlock { stamp: tick.stamp, offset, blocks, encryption })
    }
}

/// A blob that was copied shares the list of another. Before it grows, its blocks are written into a list of its own.
fn take_over(
    rows: &dyn Rows,
    before: &Committed,
    list: u64,
    now: Timestamp,
    changes: &mut Changes,
) -> Result<(), Unread> {
    let ContentRef::Shared(shared) = before.content else { return Ok(()) };
    let mut entries: Vec<ListEntry> = Vec::new();
    let mut length = 0;
    for_each_chunk(rows, shared, 0, |chunk| {
        for entry in &chunk.entries {
            // What follows was appended to the other one after the copy.
            if length < before.length {
                entries.push(entry.clone());
                length += entry.size;
            }
        }
        length < before.length
    })?;
    for entry in &entries {
        changes.refer(entry.content, list);
    }
    for (end, row) in list_chunks(&entries) {
        changes.put(chunk_key(list, end), row);
    }
    changes.unrefer(space::BLOCK_LIST, shared, before.version, now);
    Ok(())
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let (op, sums) = parse(call.head)?;
    let asked = call.encryption()?;
    let announced = upload::announced(call.head, body, body_bytes_max(call.head))?;
    if announced.length == 0 {
        return Err(BlobError::header("content-length", "0").into());
    }
    let expected = Received::nothing(announced.length);
    let op = Arc::new(AppendBlock { encryption: asked.encryption.clone(), body: expected, ..op });
    call.read(&op).await?;

    let announced = announced.sealed_with(asked.key.as_ref().map(|key| &key.secret));
    let body = upload::receive(call.engine, body, announced, Wanted::of_block(call.head, &sums)).await?;
    upload::verify(&sums, body.md5, body.crc64)?;

    AppendBlock { body, ..Arc::unwrap_or_clone(op) }.store(call, &sums).await
}

impl AppendBlock {
    /// Commits the block and answers.
    pub(super) async fn store(self, call: Call<'_>, sums: &BodySums) -> Result<Reply, Failure> {
        let mut answer = reply::reply(StatusCode::CREATED);
        upload::answer_sums(&mut answer.headers, call.head, sums, self.body.md5, self.body.crc64);
        let AppendedBlock { stamp, offset, blocks, encryption } = call.commit(&Arc::new(self)).await?;
        reply::set_version(&mut answer.headers, stamp);
        answer.headers.insert(&reply::BLOB_APPEND_OFFSET, HeaderValue::from(offset));
        answer.headers.insert(&reply::BLOB_COMMITTED_BLOCK_COUNT, HeaderValue::from(blocks));
        reply::set_encrypted(&mut answer.headers, encryption.as_ref());
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, HELD, Interrupted, MINE, NOW, YOURS, committed, header, refusal, request, tick};
    use concurrency::{ETagMatch, Lease};

    const APPEND_BLOB: (&str, &str) = ("x-ms-blob-type", "AppendBlob");
    const URL: &str = "cont/blob?comp=appendblock";

    fn ask(lease: Option<LeaseId>, position: Option<u64>, max_size: Option<u64>) -> AppendBlock {
        AppendBlock {
            container: ContainerName::parse("cont").unwrap(),
            name: BlobName::parse("blob").unwrap(),
            conditions: Conditions::default(),
            lease,
            position,
            max_size,
            encryption: None,
            body: Received::nothing(10),
        }
    }

    fn blob(lease: Lease, kind: BlobType) -> Blob {
        let state = Committed { length: 100, content: ContentRef::Blocks(8), kind, ..committed() };
        Blob { uid: 3, lease, committed: Some(state), ..Blob::default() }
    }

    const OPEN: BlobType = BlobType::Append { blocks: 5, sealed: false };
    const FULL: BlobType = BlobType::Append { blocks: BLOCKS_MAX, sealed: false };
    const SEALED: BlobType = BlobType::Append { blocks: BLOCKS_MAX, sealed: true };

    #[test]
    fn each_refusal_and_two_at_once() {
        let judge = |ask: AppendBlock, found: Option<Blob>| ask.judge(found, NOW).err();
        let free = |kind| Some(blob(Lease::Available, kind));
        assert_eq!(judge(ask(None, None, None), free(OPEN)), None);
        assert_eq!(judge(ask(None, Some(100), Some(110)), free(OPEN)), None);
        assert_eq!(judge(ask(Some(MINE), None, None), Some(blob(HELD, OPEN))), None);
        let refused = |ask: AppendBlock, found: Option<Blob>| judge(ask, found).unwrap();
        assert_eq!(refused(ask(None, None, None), None), BlobError::BlobNotFound);
        let uncommitted = Blob { committed: None, ..blob(Lease::Available, OPEN) };
        assert_eq!(refused(ask(None, None, None), Some(uncommitted)), BlobError::BlobNotFound);
        assert_eq!(refused(ask(None, None, None), Some(blob(HELD, OPEN))), BlobError::LeaseIdMissing);
        let yours = refused(ask(Some(YOURS), None, None), Some(blob(HELD, OPEN)));
        assert_eq!(yours, BlobError::LeaseIdMismatchWithBlobOperation);
        assert_eq!(refused(ask(None, None, None), free(BlobType::Block)), BlobError::InvalidBlobType);
        assert_eq!(refused(ask(None, None, None), free(FULL)), BlobError::BlockCountExceedsLimit);
        assert_eq!(refused(ask(None, Some(99), None), free(OPEN)), BlobError::AppendPositionConditionNotMet);
        assert_eq!(refused(ask(None, None, Some(109)), free(OPEN)), BlobError::MaxBlobSizeConditionNotMet);
        assert_eq!(refused(ask(None, None, Some(9)), free(OPEN)), BlobError::MaxBlobSizeConditionNotMet);
        // Two at once: conditions, lease, type, seal, count, position, size.
        let stale = Conditions { if_match: Some(ETagMatch::OneOf(vec!["0x1".into()])), ..Conditions::default() };
        let stale = AppendBlock { conditions: stale, ..ask(None, Some(1), None) };
        assert_eq!(refused(stale, Some(blob(HELD, OPEN))), BlobError::ConditionNotMet);
        assert_eq!(refused(ask(None, None, None), Some(blob(HELD, BlobType::Block))), BlobError::LeaseIdMissing);
        assert_eq!(refused(ask(None, Some(1), None), free(BlobType::Block)), BlobError::InvalidBlobType);
        assert_eq!(refused(ask(None, Some(1), None), free(SEALED)), BlobError::BlobIsSealed);
        assert_eq!(refused(ask(None, Some(1), None), free(FULL)), BlobError::BlockCountExceedsLimit);
        assert_eq!(refused(ask(None, Some(1), Some(1)), free(OPEN)), BlobError::AppendPositionConditionNotMet);
    }

    #[test]
    fn the_version_owns_the_list_from_the_first_block_on() {
        let mut empty = blob(Lease::Broken { id: MINE }, OPEN);
        if let Some(state) = &mut empty.committed {
            (state.content, state.length) = (ContentRef::Empty, 0);
        }
        let first = ask(None, None, None).decide(Some(empty), tick()).unwrap();
        assert_eq!((first.list, first.new_owner, first.offset, first.blocks), (tick().id(2), Some(4), 0, 6));
        assert_eq!(first.blob.lease, Lease::Available);
        let more = ask(None, None, None).decide(Some(first.blob), tick()).unwrap();
        assert_eq!((more.list, more.new_owner, more.offset, more.blocks), (first.list, None, 10, 7));
        assert_eq!(more.blob.committed.unwrap().version, 4);
    }

    async fn append(bench: &Bench, headers: &[(&str, &str)], body: &[u8]) -> (String, String) {
        let answer = bench.call("PUT", URL, headers, body).await.unwrap();
        assert_eq!(answer.status, 201);
        let text = |name| header(&answer, name).unwrap().to_owned();
        (text("x-ms-blob-append-offset"), text("x-ms-blob-committed-block-count"))
    }

    #[tokio::test]
    async fn blocks_come_one_after_another() {
        let bench = Bench::with_container().await;
        bench.call("PUT", "cont/blob", &[APPEND_BLOB], b"").await.unwrap();
        let mut whole = Vec::new();
        for n in 0..300_u32 {
            let block = vec![n as u8; 1 + n as usize % 7];
            let (offset, count) = append(&bench, &[], &block).await;
            assert_eq!((offset, count), (whole.len().to_string(), (n + 1).to_string()));
            whole.extend_from_slice(&block);
        }
        assert_eq!(bench.get("cont/blob").await, whole);
        for (first, last) in [(0, 0), (1, 5), (17, 600), (1000, whole.len() - 1)] {
            let range = format!("bytes={first}-{last}");
            let part = bench.call("GET", "cont/blob", &[("range", &range)], b"").await.unwrap();
            assert_eq!(crate::testing::bytes(part).await, whole[first..=last], "{range}");
        }
        // An append adds one row to the list, with one content and its reference.
        let before = bench.figures();
        append(&bench, &[], b"x").await;
        let after = bench.figures();
        assert_eq!((after.0 - before.0, after.1 - before.1), (2, 1));
        bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (1, 0));
    }

    #[tokio::test]
    async fn a_snapshot_ends_where_the_blob_ended() {
        let bench = Bench::with_container().await;
        bench.call("PUT", "cont/blob", &[APPEND_BLOB], b"").await.unwrap();
        let snapshot = async || {
            let answer = bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
            format!("cont/blob?snapshot={}", header(&answer, "x-ms-snapshot").unwrap())
        };
        let empty = snapshot().await;
        append(&bench, &[], b"one").await;
        let one = snapshot().await;
        append(&bench, &[], b"two").await;
        for (url, body, count) in [(&*empty, &b""[..], "0"), (&one, b"one", "1"), ("cont/blob", b"onetwo", "2")] {
            assert_eq!(bench.get(url).await, body);
            let told = bench.call("HEAD", url, &[], b"").await.unwrap();
            assert_eq!(header(&told, "x-ms-blob-committed-block-count"), Some(count), "{url}");
        }
        // A new blob of the same name has a list of its own.
        bench.call("PUT", "cont/blob", &[APPEND_BLOB], b"").await.unwrap();
        append(&bench, &[], b"other").await;
        bench.sweep().await;
        assert_eq!(bench.get(&one).await, b"one");
        assert_eq!(bench.get("cont/blob").await, b"other");
        bench.call("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "include")], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (1, 0));
    }

    #[tokio::test]
    async fn bodies_and_sums() {
        let bench = Bench::with_container().await;
        bench.call("PUT", "cont/blob", &[APPEND_BLOB], b"").await.unwrap();
        let before = bench.figures();
        let refused = |result| refusal(result);
        assert_eq!(refused(bench.call("PUT", URL, &[], b"").await), BlobError::header("content-length", "0"));
        let over = bench.call_with("PUT", URL, &[], b"", Some(100 * MIB + 1)).await;
        assert_eq!(refused(over), BlobError::Request(RequestError::RequestBodyTooLarge { most: 100 * MIB }));
        let wrong = [("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")];
        assert!(matches!(
            refused(bench.call("PUT", URL, &wrong, b"x").await),
            BlobError::Request(RequestError::Md5Mismatch { .. })
        ));
        for name in ["x-ms-blob-condition-appendpos", "x-ms-blob-condition-maxsize"] {
            let result = bench.call("PUT", URL, &[(name, "-1")], b"x").await;
            assert_eq!(refused(result), BlobError::header(name, "-1"));
        }
        let result = bench.call_unread("PUT", URL, &[("x-ms-blob-condition-appendpos", "7")]).await;
        assert_eq!(refused(result), BlobError::AppendPositionConditionNotMet);
        assert_eq!(bench.figures(), before);
        let answer = bench.call("PUT", URL, &[], b"x").await.unwrap();
        assert!(header(&answer, "x-ms-content-crc64").is_some() && header(&answer, "content-md5").is_none());
    }

    #[tokio::test]
    async fn of_two_who_append_at_one_position_the_second_loses() {
        let bench = Bench::with_container().await;
        bench.call("PUT", "cont/blob", &[APPEND_BLOB], b"").await.unwrap();
        let at = [("x-ms-blob-condition-appendpos", "0")];
        let interrupted = Interrupted::by(&bench, request("PUT", URL, &at), b"theirs");
        let refused = interrupted.call("PUT", URL, &at, b"ours").await;
        assert_eq!(refusal(refused), BlobError::AppendPositionConditionNotMet);
        // Without the condition both get a place.
        let interrupted = Interrupted::by(&bench, request("PUT", URL, &[]), b"+more");
        assert_eq!(append(&interrupted, &[], b"+ours").await, ("11".to_owned(), "3".to_owned()));
        assert_eq!(bench.get("cont/blob").await, b"theirs+more+ours");
    }

    #[tokio::test]
    async fn other_types_keep_to_their_own_operations() {
        let bench = Bench::with_container().await;
        bench.call("PUT", "cont/append", &[APPEND_BLOB], b"").await.unwrap();
        bench.put("cont/blob", b"x").await;
        let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
        for blob in ["cont/append", "cont/blob"] {
            bench.call("PUT", &format!("{blob}?comp=lease"), &acquire, b"").await.unwrap();
        }
        // Here the type is judged before the lease, there after it.
        let refused = bench.call("PUT", "cont/append?comp=block&blockid=QQ==", &[], b"x").await;
        assert_eq!(refusal(refused), BlobError::InvalidBlobType);
        let refused = bench.call("PUT", "cont/append?comp=blocklist", &[], b"<BlockList/>").await;
        assert_eq!(refusal(refused), BlobError::InvalidBlobType);
        let refused = bench.call("GET", "cont/append?comp=blocklist", &[], b"").await;
        assert_eq!(refusal(refused), BlobError::InvalidBlobType);
        assert_eq!(refusal(bench.call("PUT", URL, &[], b"x").await), BlobError::LeaseIdMissing);
    }
}
