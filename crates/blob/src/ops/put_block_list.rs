//! Put Block List: make a list of blocks the content of the blob, all at once.
//!
//! A list may have 50,000 entries. They are looked up in a read, before the commit; the commit only makes sure that the
//! blocks are still the same, and looks again if they are not. So a long list does not keep other requests waiting.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use concurrency::{Conditions, Lease, LeaseId, Timestamp};
use content::upload::{self, Wanted};
use engine::{Changes, Key, Rows, Tick};
use service::{Operation, ReadOperation};
use wire::checksum::{Crc64, Md5};
use wire::http::{Body, Reply, StatusCode, collect};
use wire::names::{BlobName, ContainerName};
use wire::xml::{BLOCKS_PER_LIST_MAX, BlockSearch, XmlError, parse_block_list};

use super::Call;
use crate::error::BlobError;
use crate::model::blocks::{self, BlockId};
use crate::model::encryption::Encryption;
use crate::model::{
    self, Blob, BlobType, Block, Committed, ContainerGuard, ContentRef, Halt, HttpHeaders, ListEntry, Pairs, Staging,
    blob_key, chunk_key, refuse,
};
use crate::request::BodySums;
use crate::rules::creation_options::CreationOptions;
use crate::rules::encryption;
use crate::rules::soft_delete::{self, Keeping, Written};
use crate::rules::writable;
use crate::{Failure, reply, request};

/// 50,000 entries with the longest ids fit.
const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A blob to make of blocks. As a [`ReadOperation`] it says whether the blob may be made, before the list is read.
#[derive(Clone, Debug)]
pub struct PutBlockList {
    pub container: ContainerName,
    pub name: BlobName,
    pub conditions: Conditions,
    pub lease: Option<LeaseId>,
    pub headers: HttpHeaders,
    pub metadata: Pairs,
    pub options: CreationOptions,
    pub blocks: BlockList,
    /// What the client names as encryption; else that of the container holds.
    pub encryption: Option<Encryption>,
    pub keeping: Keeping,
}

/// The operation without its list, and the checksums that the client sends with that.
fn parse(call: &Call<'_>) -> Result<(PutBlockList, BodySums), BlobError> {
    let head = call.head;
    let (container, name) = request::blob(head)?;
    request::only_base(head)?;
    request::no_expiry(head)?;
    let conditions = request::conditions(head)?;
    conditions.check_write_combination()?;
    let own = request::blob_headers(head)?;
    // `Content-Type` here is that of the list.
    let content_type = own.content_type.or(Some(reply::CONTENT_TYPE_DEFAULT.to_owned()));
    let op = PutBlockList {
        container,
        name,
        conditions,
        lease: request::lease_id(head)?,
        headers: HttpHeaders { content_type, ..own },
        metadata: request::metadata(head)?,
        options: request::creation_options(head, BlobType::Block, 0, false)?,
        blocks: BlockList::default(),
        encryption: None,
        keeping: call.keeping(),
    };
    Ok((op, request::body_sums(head)?))
}

/// One block of a list: which, and where it is looked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedBlock {
    pub search: BlockSearch,
    pub id: BlockId,
}

/// The blocks that a blob is to consist of, in the order of its content, and where they were found if that is known
/// already ([`FindBlocks`]).
#[derive(Clone, Debug, Default)]
pub struct BlockList {
    blocks: Arc<[ListedBlock]>,
    found: Option<Arc<FoundBlocks>>,
}

impl BlockList {
    /// Refuses lists that are too long, and those that want one id from two places.
    pub fn new(blocks: Vec<ListedBlock>) -> Result<BlockList, BlobError> {
        if blocks.len() > BLOCKS_PER_LIST_MAX {
            return Err(BlobError::BlockListTooLong);
        }
        let mut searches = HashMap::new();
        for ListedBlock { search, id } in &blocks {
            // An id may come again, but always from the same place.
            if searches.insert(id, search).is_some_and(|before| before != search) {
                return Err(BlobError::InvalidBlockList);
            }
        }
        Ok(BlockList { blocks: blocks.into(), found: None })
    }
}

fn parse_list(document: &[u8]) -> Result<BlockList, BlobError> {
    let entries = parse_block_list(document).map_err(|error| match error {
        XmlError::TooMany { .. } => BlobError::BlockListTooLong,
        other => other.into(),
    })?;
    let blocks = entries.into_iter().map(|entry| {
        let id = BlockId::parse(&entry.id).map_err(|_| BlobError::InvalidBlockList)?;
        Ok(ListedBlock { search: entry.search, id })
    });
    BlockList::new(blocks.collect::<Result<_, BlobError>>()?)
}

/// The blocks that were found, in the order of the list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Resolved {
    entries: Vec<ListEntry>,
    /// Some of them come from the blocks that wait.
    from_staging: bool,
    /// Contents of the old list that the new one must refer to as well.
    kept: Vec<u64>,
}

fn resolve(
    blocks: &[ListedBlock],
    waiting: &HashMap<Vec<u8>, Block>,
    old: &HashMap<Vec<u8>, Block>,
    encryption: Option<&Encryption>,
) -> Result<Resolved, BlobError> {
    let mut resolved = Resolved::default();
    for ListedBlock { search, id } in blocks {
        let fresh = match search {
            BlockSearch::Uncommitted | BlockSearch::Latest => waiting.get(id.as_bytes()),
            BlockSearch::Committed => None,
        };
        let kept = match search {
            BlockSearch::Committed | BlockSearch::Latest => old.get(id.as_bytes()),
            BlockSearch::Uncommitted => None,
        };
        let block = match (fresh, kept) {
            (Some(block), _) => {
                resolved.from_staging = true;
                block
            }
            (None, Some(block)) => {
                resolved.kept.push(block.content);
                block
            }
            (None, None) => return Err(BlobError::InvalidBlockList),
        };
        // What is read with one key must have been written with it.
        encryption::matches(block.encryption.as_ref(), encryption)?;
        resolved.entries.push(ListEntry { id: id.as_bytes().to_vec(), content: block.content, size: block.size });
    }
    Ok(resolved)
}

impl PutBlockList {
    fn judge(&self, found: Option<&Blob>, now: Timestamp) -> Result<Lease, BlobError> {
        self.options.check(now)?;
        let version = found.and_then(Blob::version);
        self.conditions.check_write(version.as_ref())?;
        if found.is_some_and(|blob| !blob.is_block_blob()) {
            return Err(BlobError::InvalidBlobType);
        }
        let before = found.map_or(Lease::Available, |blob| blob.lease);
        let lease = writable::check_write(found, self.lease, now)?;
        self.conditions.check_create_only(version.is_some(), before.is_held_by(self.lease, now))?;
        found.map_or(Ok(()), |blob| blob.check_replace(self.keeping.versioning(), now))?;
        Ok(lease)
    }

    /// What becomes of the blob. Properties and metadata are those of this request; lease and the time of creation stay;
    /// what was waiting is gone, listed or not.
    fn decide(
        &self,
        found: Option<&Blob>,
        content: ContentRef,
        length: u64,
        account: u64,
        tick: Tick,
    ) -> Result<(Lease, Committed), BlobError> {
        let lease = self.judge(found, tick.now)?;
        let before = found.and_then(|blob| blob.committed.as_ref());
        let committed = Committed {
            created: before.map_or(tick.stamp, |state| state.created),
            headers: self.headers.clone(),
            metadata: self.metadata.clone(),
            ..Committed::new(BlobType::Block, content, length, tick)
        };
        Ok((lease, self.options.to(committed, &self.container, account, tick)))
    }

    fn load(&self, rows: &dyn Rows, account: u64) -> Result<(ContainerGuard, Key, Option<Blob>), Halt> {
        let container = model::guard(rows, account, &self.container)?;
        let key = blob_key(container.generation, &self.name);
        let found = model::find_blob(rows, &key)?;
        Ok((container, key, found))
    }

    fn look_up(
        &self,
        rows: &dyn Rows,
        found: Option<&Blob>,
        encryption: Option<&Encryption>,
        now: Timestamp,
    ) -> Result<FoundBlocks, Halt> {
        let blocks = &self.blocks.blocks;
        let wants = |searches: &[BlockSearch]| blocks.iter().any(|block| searches.contains(&block.search));
        let staging = found.and_then(|blob| blob.waiting(now));
        let staging = staging.filter(|_| wants(&[BlockSearch::Uncommitted, BlockSearch::Latest]));
        let waiting = staging.map(|staging| blocks::uncommitted(rows, staging)).transpose();
        let state = found.and_then(|blob| blob.committed.as_ref());
        let state = state.filter(|_| wants(&[BlockSearch::Committed, BlockSearch::Latest]));
        let old = state.map(|state| blocks::committed(rows, state)).transpose();
        // Both were asked for before one of them is waited for, so an engine that fetches rows fetches both at once.
        let waiting = waiting?.unwrap_or_default().into_iter().collect();
        let encryption_of_old = state.and_then(|state| state.encryption.as_ref());
        let old_block = |entry: ListEntry| {
            let encryption = encryption_of_old.cloned();
            (entry.id, Block { content: entry.content, size: entry.size, encryption, is_shared: false })
        };
        let old = old?.unwrap_or_default().into_iter().map(old_block).collect();
        let resolved = resolve(blocks, &waiting, &old, encryption).map_err(refuse)?;
        Ok(FoundBlocks {
            basis: Basis::of(found, now),
            length: resolved.entries.iter().map(|entry| entry.size).sum(),
            chunks: blocks::list_chunks(&resolved.entries),
            from_staging: resolved.from_staging,
            kept: resolved.kept,
        })
    }
}

/// What the look-up saw. As long as it is the same, so are the blocks: every Put Block changes the staging area, and
/// every change of the content the version.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Basis {
    staging: Option<Staging>,
    version: Option<u64>,
}

impl Basis {
    fn of(found: Option<&Blob>, now: Timestamp) -> Basis {
        Basis {
            staging: found.and_then(|blob| blob.waiting(now)).cloned(),
            version: found.and_then(|blob| blob.committed.as_ref()).map(|state| state.version),
        }
    }
}

/// A list that is ready to be committed.
#[derive(Clone, PartialEq, Eq, Debug)]
struct FoundBlocks {
    basis: Basis,
    length: u64,
    chunks: Vec<(u64, Bytes)>,
    from_staging: bool,
    kept: Vec<u64>,
}

impl FoundBlocks {
    /// The list takes the id of the staging area it empties: the references of those blocks are then its own already.
    fn list_id(&self, tick: Tick) -> u64 {
        let staging = self.basis.staging.as_ref().filter(|_| self.from_staging);
        staging.map_or(tick.id(2), |staging| staging.id)
    }

    fn content(&self, tick: Tick) -> ContentRef {
        if self.chunks.is_empty() { ContentRef::Empty } else { ContentRef::Blocks(self.list_id(tick)) }
    }

    /// The rows of the list, and the references to and from it.
    fn write(&self, changes: &mut Changes, version: u64, tick: Tick) {
        let list = self.list_id(tick);
        for (end, row) in &self.chunks {
            changes.put(chunk_key(list, *end), row.clone());
        }
        for &content in &self.kept {
            changes.refer(content, list);
        }
        if !self.chunks.is_empty() {
            changes.refer(list, version);
        }
    }
}

/// Whether the list may be put, whatever stands in it.
impl ReadOperation for PutBlockList {
    type Outcome = ();
    type Refusal = BlobError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<(), Halt> {
        let (container, _, found) = self.load(rows, account)?;
        encryption::effective(&container, self.encryption.as_ref())?;
        self.judge(found.as_ref().filter(|blob| blob.is_there(now)), now).map_err(refuse)?;
        Ok(())
    }
}

/// Finds the blocks of a list, ahead of the commit. The outcome is the list with what was found.
#[derive(Clone, Debug)]
pub struct FindBlocks(pub Arc<PutBlockList>);

impl ReadOperation for FindBlocks {
    type Outcome = BlockList;
    type Refusal = BlobError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<BlockList, Halt> {
        let FindBlocks(op) = self;
        let (container, _, found) = op.load(rows, account)?;
        let there = found.as_ref().filter(|blob| blob.is_there(now));
        op.judge(there, now).map_err(refuse)?;
        let encryption = encryption::effective(&container, op.encryption.as_ref())?;
        let found = op.look_up(rows, there, encryption.as_ref(), now)?;
        Ok(BlockList { found: Some(Arc::new(found)), ..op.blocks.clone() })
    }
}

impl Operation for PutBlockList {
    /// What was written, and how it is encrypted.
    type Outcome = (Written, Option<Encryption>);
    type Refusal = BlobError;

    fn partition(&self, account: u64) -> Key {
        model::blob_partition(account, &self.container, &self.name)
    }

    fn apply(
        &self,
        rows: &dyn Rows,
        account: u64,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(Written, Option<Encryption>), Halt> {
        self.keeping.prefetch(rows);
        let (container, key, found) = self.load(rows, account)?;
        let there = found.as_ref().filter(|blob| blob.is_there(tick.now));
        self.judge(there, tick.now).map_err(refuse)?;
        let encryption = encryption::effective(&container, self.encryption.as_ref())?;
        let found_now;
        let list = match &self.blocks.found {
            Some(ahead) if ahead.basis == Basis::of(there, tick.now) => ahead.as_ref(),
            Some(_) | None => {
                found_now = self.look_up(rows, there, encryption.as_ref(), tick.now)?;
                &found_now
            }
        };
        let decided = self.decide(there, list.content(tick), list.length, account, tick);
        let (lease, mut state) = decided.map_err(refuse)?;
        state.encryption.clone_from(&encryption);
        list.write(changes, tick.id(1), tick);
        let written = soft_delete::replace(rows, key, found, (lease, state), self.keeping, tick, changes)?;
        Ok((written, encryption))
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let (op, sums) = parse(&call)?;
    let mut asked = call.encryption()?;
    let op = Arc::new(PutBlockList { encryption: asked.encryption.clone(), ..op });
    call.read(&op).await?;

    let document = collect(body, BODY_BYTES_MAX).await?;
    let wanted = Wanted::by(call.head, &sums);
    let (md5, crc64) = (wanted.md5.then(|| Md5::of(&document)), wanted.crc64.then(|| Crc64::of(&document)));
    upload::verify(&sums, md5, crc64)?;
    let op = Arc::new(PutBlockList { blocks: parse_list(&document)?, ..Arc::unwrap_or_clone(op) });
    let blocks = call.read(&Arc::new(FindBlocks(Arc::clone(&op)))).await?;

    let mut answer = reply::reply(StatusCode::CREATED);
    upload::answer_sums(&mut answer.headers, call.head, &sums, md5, crc64);
    let mut op = PutBlockList { blocks, ..Arc::unwrap_or_clone(op) };
    asked.seal_metadata(&mut op.metadata)?;
    op.encryption = asked.encryption;
    let (written, encryption) = call.commit(&Arc::new(op)).await?;
    reply::set_written(&mut answer.headers, written);
    reply::set_encrypted(&mut answer.headers, encryption.as_ref());
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, Interrupted, bytes, header, refusal, request};
    use service::RequestError;
    use wire::base64;

    fn found(blocks: &[(&str, u64)]) -> HashMap<Vec<u8>, Block> {
        blocks
            .iter()
            .map(|(id, content)| {
                (id.as_bytes().to_vec(), Block { content: *content, size: 1, encryption: None, is_shared: false })
            })
            .collect()
    }

    #[test]
    fn each_search_looks_where_it_says() {
        let (waiting, old) = (found(&[("a", 1), ("b", 2)]), found(&[("b", 20), ("c", 30)]));
        let table = [
            (BlockSearch::Uncommitted, "a", Some(1)),
            (BlockSearch::Uncommitted, "c", None),
            (BlockSearch::Committed, "b", Some(20)),
            (BlockSearch::Committed, "a", None),
            (BlockSearch::Latest, "b", Some(2)),
            (BlockSearch::Latest, "c", Some(30)),
            (BlockSearch::Latest, "d", None),
        ];
        for (search, id, content) in table {
            let block = ListedBlock { search, id: BlockId::new(id).unwrap() };
            let resolved = resolve(&[block], &waiting, &old, None);
            assert_eq!(resolved.ok().map(|r| r.entries[0].content), content, "{search:?} {id}");
        }
    }

    #[test]
    fn an_id_comes_from_one_place() {
        let parse = |document: &[u8]| parse_list(document).map(|list| list.blocks.len());
        let list = |inner: &str| parse(format!("<BlockList>{inner}</BlockList>").as_bytes());
        assert_eq!(list("<Latest>QQ==</Latest><Latest>QQ==</Latest>"), Ok(2));
        let mixed = list("<Latest>QQ==</Latest><Committed>QQ==</Committed>");
        assert_eq!(mixed, Err(BlobError::InvalidBlockList));
        assert_eq!(list("<Latest>Q</Latest>"), Err(BlobError::InvalidBlockList));
        assert_eq!(list("<Latest></Latest>"), Err(BlobError::InvalidBlockList));
        assert_eq!(parse(b"<List/>"), Err(BlobError::Request(RequestError::InvalidXmlDocument)));
        let many = "<Latest>QQ==</Latest>".repeat(50_001);
        assert_eq!(list(&many), Err(BlobError::BlockListTooLong));
    }

    async fn put_block(bench: &Bench, id: &str, body: &[u8]) {
        let url = format!("cont/blob?comp=block&blockid={}", base64::encode(id.as_bytes()));
        bench.call("PUT", &url, &[], body).await.unwrap();
    }

    async fn put_list(bench: &Bench, list: &[(&str, &str)], headers: &[(&str, &str)]) -> Result<Reply, Failure> {
        let entry = |(kind, id): &(&str, &str)| format!("<{kind}>{}</{kind}>", base64::encode(id.as_bytes()));
        let entries: String = list.iter().map(entry).collect();
        let body = format!("<BlockList>{entries}</BlockList>");
        bench.call("PUT", "cont/blob?comp=blocklist", headers, body.as_bytes()).await
    }

    #[tokio::test]
    async fn blocks_become_the_blob_and_blobs_are_edited_by_their_blocks() {
        let bench = Bench::with_container().await;
        for (id, body) in [("1", &b"one "[..]), ("2", b"two "), ("3", b"three "), ("4", b"unlisted ")] {
            put_block(&bench, id, body).await;
        }
        let first = [("Latest", "1"), ("Uncommitted", "2"), ("Latest", "1"), ("Latest", "3")];
        let answer = put_list(&bench, &first, &[("x-ms-meta-a", "1"), ("content-type", "text/xml")]).await.unwrap();
        assert_eq!(answer.status, 201);
        assert_eq!(bench.get("cont/blob").await, b"one two one three ");
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(header(&told, "content-type"), Some("application/octet-stream"));
        assert_eq!(header(&told, "content-md5"), None);
        let created = header(&told, "x-ms-creation-time").unwrap().to_owned();
        bench.sweep().await;
        assert_eq!(bench.get("cont/blob").await, b"one two one three ");

        // What was not listed is gone; what is not there cannot be listed, and then nothing changes.
        let gone = put_list(&bench, &[("Latest", "4")], &[]).await;
        assert_eq!(refusal(gone), BlobError::InvalidBlockList);
        put_block(&bench, "2", b"TWO ").await;
        put_list(&bench, &[("Committed", "3"), ("Latest", "2"), ("Latest", "1")], &[]).await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.get("cont/blob").await, b"three TWO one ");
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-meta-a"), None);
        assert_eq!(header(&told, "x-ms-creation-time"), Some(created.as_str()));

        // Only committed blocks, so the list has an id of its own; then an empty one.
        put_list(&bench, &[("Committed", "1")], &[]).await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.get("cont/blob").await, b"one ");
        put_list(&bench, &[], &[]).await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.get("cont/blob").await, b"");
    }

    #[tokio::test]
    async fn ranges_cross_blocks_and_rows_of_the_list() {
        let bench = Bench::with_container().await;
        let count = 2_500;
        let ids: Vec<String> = (0..count).map(|n| format!("{n:05}")).collect();
        for id in &ids {
            put_block(&bench, id, &id.as_bytes()[1..]).await;
        }
        let list: Vec<(&str, &str)> = ids.iter().map(|id| ("Latest", id.as_str())).collect();
        put_list(&bench, &list, &[]).await.unwrap();
        let whole: Vec<u8> = (0..count).flat_map(|n| format!("{n:04}").into_bytes()).collect();
        assert!(bench.get("cont/blob").await == whole);
        for (first, last) in [(0, 0), (3, 4), (3_999, 4_000), (3_998, 8_001), (9_999, 9_999), (5, 9_990)] {
            let range = format!("bytes={first}-{last}");
            let answer = bench.call("GET", "cont/blob", &[("range", &range)], b"").await.unwrap();
            assert!(bytes(answer).await == whole[first..=last], "{range}");
        }
    }

    #[tokio::test]
    async fn a_stale_condition_is_refused_before_the_list_is_read() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"x").await;
        let refused = bench.call_unread("PUT", "cont/blob?comp=blocklist", &[("if-match", "\"0x1\"")]).await;
        assert_eq!(refusal(refused), BlobError::ConditionNotMet);
        // A condition that fails and a list that is wrong: the condition.
        let refused = put_list(&bench, &[("Latest", "9")], &[("if-none-match", "*")]).await;
        assert_eq!(refusal(refused), BlobError::BlobAlreadyExists);
        let wrong = [("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")];
        assert!(matches!(
            refusal(put_list(&bench, &[], &wrong).await),
            BlobError::Request(RequestError::Md5Mismatch { .. })
        ));
        assert_eq!(bench.get("cont/blob").await, b"x");
    }
    #[tokio::test]
    async fn a_block_that_comes_in_between_counts() {
        let bench = Bench::with_container().await;
        put_block(&bench, "1", b"old ").await;
        put_block(&bench, "2", b"two").await;
        let url = format!("cont/blob?comp=block&blockid={}", base64::encode(b"1"));
        let interrupted = Interrupted::by(&bench, request("PUT", &url, &[]), b"new ");
        put_list(&interrupted, &[("Latest", "1"), ("Latest", "2")], &[]).await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.get("cont/blob").await, b"new two");
        bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (1, 0));
    }

    #[tokio::test]
    async fn blocks_that_go_in_between_are_not_found() {
        let bench = Bench::with_container().await;
        put_block(&bench, "1", b"one").await;
        let put = request("PUT", "cont/blob", &[("x-ms-blob-type", "BlockBlob")]);
        let interrupted = Interrupted::by(&bench, put, b"whole");
        let refused = put_list(&interrupted, &[("Latest", "1")], &[]).await;
        assert_eq!(refusal(refused), BlobError::InvalidBlockList);
        assert_eq!(bench.get("cont/blob").await, b"whole");
    }
}
