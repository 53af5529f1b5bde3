//! Operations as values: what another protocol than HTTP does with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use concurrency::{Conditions, LeaseDuration, Timestamp};
use content::map::ByteSpan;
use content::pieces;
use content::upload::{self, Received, Wanted};
use engine::memory::MemoryEngine;
use engine::{Changes, Content, ContentId, Key, Rows, Stop, Tick, Unread, Visit};
use service::sources::Manner;
use service::{Failure, LeaseAction, LeaseOutcome, Operation, RequestError, commit, read, space};
use wire::http::FixedBody;
use wire::names::{BlobName, ContainerName};
use wire::ranges::RangeHeader;
use wire::xml::BlockSearch;

use crate::model::container_key;
use crate::testing::MINE;
use crate::*;

const ACCOUNT: u64 = 1;

fn container() -> ContainerName {
    ContainerName::parse("cont").unwrap()
}

fn name() -> BlobName {
    BlobName::parse("blob").unwrap()
}

fn put() -> PutBlob {
    PutBlob {
        container: container(),
        name: name(),
        conditions: Conditions::default(),
        lease: None,
        headers: HttpHeaders::default(),
        metadata: vec![("colour".into(), "blue".into())],
        options: CreationOptions::default(),
        kind: BlobType::Page { sequence: 0 },
        pages: 1_024,
        encryption: None,
        body: Received::nothing(0),
        keeping: Keeping::new(ACCOUNT, &auth::Settings::USUAL),
        reach: Reach::Overwrite,
    }
}

fn delete() -> DeleteBlob {
    DeleteBlob {
        container: container(),
        name: name(),
        which: Which::Base,
        conditions: Conditions::default(),
        lease: None,
        snapshots: None,
        delete_type: DeleteType::default(),
        tier: TierConditions::default(),
        keeping: Keeping::new(ACCOUNT, &auth::Settings::USUAL),
    }
}

async fn done<O: Operation<Refusal = BlobError>>(
    engine: &MemoryEngine,
    operation: O,
) -> Result<O::Outcome, Failure<BlobError>> {
    commit(engine, ACCOUNT, &Arc::new(operation)).await
}

fn refused<T: std::fmt::Debug>(result: Result<T, Failure<BlobError>>) -> BlobError {
    match result {
        Err(Failure::Refused(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// The life of a blob without a request: create, put, lease, read, list, delete.
#[tokio::test]
async fn a_protocol_without_http_has_the_same_rules() {
    let engine = MemoryEngine::new(1);
    assert_eq!(refused(done(&engine, put()).await), BlobError::ContainerNotFound);
    done(&engine, CreateContainer::named(container())).await.unwrap();
    let again = done(&engine, CreateContainer::named(container())).await;
    assert_eq!(refused(again), BlobError::ContainerAlreadyExists);

    read(&engine, ACCOUNT, &Arc::new(put())).await.unwrap();
    let (written, _) = done(&engine, put()).await.unwrap();
    let action = LeaseAction::Acquire { proposed: Some(MINE), duration: LeaseDuration::Infinite };
    let lease = LeaseBlob { container: container(), name: name(), conditions: Conditions::default(), action };
    assert_eq!(done(&engine, lease).await.unwrap(), (LeaseOutcome::Acquired(MINE), Some(written.stamp)));
    assert_eq!(refused(done(&engine, put()).await), BlobError::LeaseIdMissing);
    assert_eq!(refused(read(&engine, ACCOUNT, &Arc::new(put())).await), BlobError::LeaseIdMissing);

    let conditions = Conditions::default();
    let blob =
        ReadBlob { container: container(), name: name(), which: Which::Base, conditions, lease: None, key: None };
    let get = GetBlob { read: blob, range: RangeHeader::Span { first: 512, last: None }, sum: None };
    let found = read(&engine, ACCOUNT, &Arc::new(get)).await.unwrap();
    assert_eq!(found.seen.state.metadata, put().metadata);
    assert_eq!(found.span.map(|span| (span.first, span.count())), Some((512, 512)));

    let list = ListBlobs {
        container: container(),
        prefix: String::new(),
        delimiter: None,
        after: None,
        start_from: None,
        end_before: None,
        max: 10,
        include: IncludeBlobs::default(),
    };
    let page = read(&engine, ACCOUNT, &Arc::new(list)).await.unwrap();
    assert!(matches!(&page.entries[..], [ListedEntry::Blob(blob)] if blob.name == "blob"), "{:?}", page.entries);

    assert_eq!(refused(done(&engine, delete()).await), BlobError::LeaseIdMissing);
    assert_eq!(done(&engine, DeleteBlob { lease: Some(MINE), ..delete() }).await.unwrap(), Fate::Gone);
    assert_eq!(refused(done(&engine, delete()).await), BlobError::BlobNotFound);
    let conditions = Conditions::default();
    let delete = DeleteContainer { container: container(), conditions, lease: None, soft_delete_days: None };
    done(&engine, delete.clone()).await.unwrap();
    assert_eq!(refused(done(&engine, delete).await), BlobError::ContainerNotFound);
}

/// The bytes of the blob.
async fn content(engine: &MemoryEngine) -> Vec<u8> {
    let conditions = Conditions::default();
    let blob =
        ReadBlob { container: container(), name: name(), which: Which::Base, conditions, lease: None, key: None };
    let found = read(engine, ACCOUNT, &Arc::new(GetBlob { read: blob, range: RangeHeader::None, sum: None })).await;
    pieces::whole(found.unwrap().pieces).await.unwrap().to_vec()
}

/// A body that has arrived.
async fn received(engine: &MemoryEngine, bytes: &'static [u8]) -> Received {
    let wanted = Wanted { md5: false, crc64: false };
    let mut body = FixedBody::new(Bytes::from_static(bytes));
    upload::receive::<BlobError>(engine, &mut body, bytes.len() as u64, wanted).await.unwrap()
}

fn put_block(id: &str, body: Received) -> PutBlock {
    let id = BlockId::new(id).unwrap();
    PutBlock { container: container(), name: name(), id, lease: None, encryption: None, body }
}

#[tokio::test]
async fn a_block_waits() {
    let engine = MemoryEngine::new(1);
    assert_eq!(BlockId::new([]), Err(BadBlockId::Unreadable));
    assert_eq!(BlockId::new([7; 65]), Err(BadBlockId::TooLong));
    let block = put_block("1", received(&engine, b"one").await);
    assert_eq!(refused(read(&engine, ACCOUNT, &Arc::new(block.clone())).await), BlobError::ContainerNotFound);
    assert_eq!(refused(done(&engine, block.clone()).await), BlobError::ContainerNotFound);
    done(&engine, CreateContainer::named(container())).await.unwrap();
    read(&engine, ACCOUNT, &Arc::new(block.clone())).await.unwrap();
    assert_eq!(done(&engine, block).await.unwrap(), None);
    let longer = put_block("22", received(&engine, b"two").await);
    assert_eq!(refused(done(&engine, longer).await), BlobError::InvalidBlobOrBlock);
    let empty = done(&engine, put_block("2", Received::nothing(0))).await;
    assert_eq!(refused(empty), BlobError::Request(RequestError::OutOfRangeInput));
}

#[tokio::test]
async fn blocks_are_appended() {
    let engine = MemoryEngine::new(1);
    done(&engine, CreateContainer::named(container())).await.unwrap();
    let append = |body: Received, position: Option<u64>| AppendBlock {
        container: container(),
        name: name(),
        conditions: Conditions::default(),
        lease: None,
        position,
        max_size: Some(6),
        encryption: None,
        body,
    };
    let first = append(received(&engine, b"one").await, None);
    assert_eq!(refused(done(&engine, first.clone()).await), BlobError::BlobNotFound);
    let kind = BlobType::Append { blocks: 0, sealed: false };
    done(&engine, PutBlob { kind, pages: 0, ..put() }).await.unwrap();
    read(&engine, ACCOUNT, &Arc::new(first.clone())).await.unwrap();
    let appended = done(&engine, first).await.unwrap();
    assert_eq!((appended.offset, appended.blocks), (0, 1));
    let second = append(received(&engine, b"two").await, Some(3));
    assert_eq!(done(&engine, second).await.unwrap().offset, 3);
    let more = append(Received::nothing(1), None);
    assert_eq!(refused(read(&engine, ACCOUNT, &Arc::new(more)).await), BlobError::MaxBlobSizeConditionNotMet);
    let empty = done(&engine, append(Received::nothing(0), None)).await;
    assert_eq!(refused(empty), BlobError::Request(RequestError::OutOfRangeInput));
    assert_eq!(content(&engine).await, b"onetwo");
}

#[tokio::test]
async fn pages_are_written_and_cleared() {
    let engine = MemoryEngine::new(1);
    done(&engine, CreateContainer::named(container())).await.unwrap();
    let write = |write: PageWrite, start: u64, end: u64| PutPage {
        container: container(),
        name: name(),
        conditions: Conditions::default(),
        sequence: SequenceConditions { equal: Some(0), ..SequenceConditions::default() },
        lease: None,
        write,
        span: ByteSpan { start, end },
        encryption: None,
    };
    let first = write(PageWrite::Update(received(&engine, &[1; 512]).await), 0, 512);
    assert_eq!(refused(done(&engine, first.clone()).await), BlobError::BlobNotFound);
    let (before, _) = done(&engine, put()).await.unwrap();
    read(&engine, ACCOUNT, &Arc::new(first.clone())).await.unwrap();
    let written = done(&engine, first.clone()).await.unwrap();
    assert!(written.stamp > before.stamp && written.sequence == 0);
    assert_eq!(content(&engine).await, [vec![1; 512], vec![0; 512]].concat());
    // No value writes what is not whole pages, or other bytes than there are pages for.
    for wrong in [
        PutPage { span: ByteSpan { start: 0, end: 1_024 }, ..first.clone() },
        PutPage { span: ByteSpan { start: 512, end: 1_536 }, ..first.clone() },
        PutPage { span: ByteSpan { start: 512, end: 0 }, ..first.clone() },
        PutPage { span: ByteSpan { start: 256, end: 768 }, ..first },
        write(PageWrite::Update(Received::nothing(512)), 0, 512),
        write(PageWrite::Clear, 0, 100),
        write(PageWrite::Clear, 0, 0),
    ] {
        assert_eq!(refused(done(&engine, wrong).await), BlobError::InvalidPageRange);
    }
    done(&engine, write(PageWrite::Clear, 0, 512)).await.unwrap();
    assert_eq!(content(&engine).await, [0; 1_024]);
}

fn put_list(ids: &[&str]) -> PutBlockList {
    let listed = |id: &&str| ListedBlock { search: BlockSearch::Latest, id: BlockId::new(*id).unwrap() };
    PutBlockList {
        container: container(),
        name: name(),
        conditions: Conditions::default(),
        lease: None,
        headers: HttpHeaders::default(),
        metadata: vec![("colour".into(), "blue".into())],
        options: CreationOptions::default(),
        blocks: BlockList::new(ids.iter().map(listed).collect()).unwrap(),
        encryption: None,
        keeping: Keeping::new(ACCOUNT, &auth::Settings::USUAL),
    }
}

#[tokio::test]
async fn blocks_become_a_blob() {
    let engine = MemoryEngine::new(1);
    done(&engine, CreateContainer::named(container())).await.unwrap();
    for (id, bytes) in [("1", &b"one "[..]), ("2", b"two ")] {
        done(&engine, put_block(id, received(&engine, bytes).await)).await.unwrap();
    }
    read(&engine, ACCOUNT, &Arc::new(put_list(&["3"]))).await.unwrap();
    let missing = FindBlocks(Arc::new(put_list(&["3"])));
    assert_eq!(refused(read(&engine, ACCOUNT, &Arc::new(missing)).await), BlobError::InvalidBlockList);
    assert_eq!(refused(done(&engine, put_list(&["3"])).await), BlobError::InvalidBlockList);
    // The commit finds its blocks itself, or takes them as they were found.
    done(&engine, put_list(&["2", "1"])).await.unwrap();
    assert_eq!(content(&engine).await, b"two one ");
    let op = put_list(&["1", "2", "1"]);
    let blocks = read(&engine, ACCOUNT, &Arc::new(FindBlocks(Arc::new(op.clone())))).await.unwrap();
    done(&engine, PutBlockList { blocks: blocks.clone(), ..op.clone() }).await.unwrap();
    assert_eq!(content(&engine).await, b"one two one ");
    // Found on an earlier state of the blob, they are looked for again.
    done(&engine, put_block("2", received(&engine, b"TWO ").await)).await.unwrap();
    done(&engine, PutBlockList { blocks, ..op }).await.unwrap();
    assert_eq!(content(&engine).await, b"one TWO one ");
    let two_places = [BlockSearch::Latest, BlockSearch::Committed];
    let two_places = two_places.map(|search| ListedBlock { search, id: BlockId::new("1").unwrap() });
    assert_eq!(BlockList::new(two_places.to_vec()).err(), Some(BlobError::InvalidBlockList));
    assert_eq!(BlockList::new(vec![two_places[0].clone(); 50_001]).err(), Some(BlobError::BlockListTooLong));
}

fn copy(kind: CopyKind) -> WholeCopy {
    WholeCopy {
        container: container(),
        name: BlobName::parse("copy").unwrap(),
        conditions: Conditions::default(),
        lease: None,
        kind,
        source_url: SourceUrl("http://host/cont/blob?sv=1&sig=secret".to_owned()),
        metadata: vec![],
        headers: HttpHeaders::default(),
        takes_properties: true,
        options: CreationOptions::default(),
        takes_tags: false,
        seal: None,
        priority: None,
        encryption: None,
        keeping: Keeping::new(ACCOUNT, &auth::Settings::USUAL),
        reach: Reach::Overwrite,
    }
}

fn properties(length: u64, kind: BlobType) -> SourceProperties {
    let (headers, metadata) = (HttpHeaders::default(), put().metadata);
    SourceProperties { length, kind, headers, metadata, tags: None, is_archived: false }
}

async fn state_of(engine: &MemoryEngine, name: &str) -> Committed {
    let (name, conditions) = (BlobName::parse(name).unwrap(), Conditions::default());
    let blob = ReadBlob { container: container(), name, which: Which::Base, conditions, lease: None, key: None };
    let get = GetBlob { read: blob, range: RangeHeader::None, sum: None };
    read(engine, ACCOUNT, &Arc::new(get)).await.unwrap().seen.state
}

#[tokio::test]
async fn a_blob_is_copied_by_reference() {
    let engine = MemoryEngine::new(1);
    assert_eq!(refused(read(&engine, ACCOUNT, &Arc::new(copy(CopyKind::Copy))).await), BlobError::ContainerNotFound);
    done(&engine, CreateContainer::named(container())).await.unwrap();
    read(&engine, ACCOUNT, &Arc::new(copy(CopyKind::Copy))).await.unwrap();
    let manner = Manner::Copy;
    let source =
        SourceBlob { account: ACCOUNT, container: container(), name: name(), which: Which::Base, manner, key: None };
    let source_conditions = Conditions::default();
    let op = CopyBlob { copy: copy(CopyKind::Copy), source, source_conditions, source_stamp: None };
    let missing = refused(done(&engine, op.clone()).await);
    assert!(matches!(missing, BlobError::CannotVerifyCopySource(_)), "{missing:?}");
    let (written, _) = done(&engine, put()).await.unwrap();
    let CopyOutcome::Copied(copied) = done(&engine, op.clone()).await.unwrap() else { panic!("not copied") };
    let told = copied.copy.unwrap();
    assert_eq!((told.source.as_str(), told.total), ("http://host/cont/blob?sv=1", 1_024));
    let state = state_of(&engine, "copy").await;
    assert_eq!((state.stamp, state.length, state.metadata), (copied.written.stamp, 1_024, put().metadata));

    // A source that must be as it was, and is not; and one that is no longer of a type that can be shared.
    let before = Some(Timestamp(written.stamp.0 - 1));
    let stale = done(&engine, CopyBlob { source_stamp: before, ..op.clone() }).await.unwrap();
    assert!(matches!(stale, CopyOutcome::SourceChanged));
    let pages = CopyBlob { copy: copy(CopyKind::BlockBlob), ..op.clone() };
    assert!(matches!(done(&engine, pages).await.unwrap(), CopyOutcome::SourceChanged));
    let sealed = Some(Encryption::Key(Default::default()));
    let sealed = CopyBlob { copy: WholeCopy { encryption: sealed, ..copy(CopyKind::Copy) }, ..op };
    assert_eq!(refused(done(&engine, sealed.clone()).await), BlobError::SourceConditionNotMet);
    assert!(!format!("{sealed:?}").contains("secret"));
}

#[tokio::test]
async fn bytes_that_were_read_become_a_copy() {
    let engine = MemoryEngine::new(1);
    done(&engine, CreateContainer::named(container())).await.unwrap();
    let (kind, body) = (BlobType::Block, received(&engine, b"hello").await);
    let op = CopyReceived { copy: copy(CopyKind::CopyInRequest), source: properties(5, kind), body };
    done(&engine, op.clone()).await.unwrap();
    let state = state_of(&engine, "copy").await;
    assert_eq!((state.length, state.kind, state.metadata), (5, kind, put().metadata));
    let longer = CopyReceived { source: properties(6, kind), ..op.clone() };
    assert_eq!(refused(done(&engine, longer).await), BlobError::Request(RequestError::OutOfRangeInput));
    let copy = WholeCopy { name: name(), ..copy(CopyKind::Copy) };
    let pages = CopyReceived { copy, source: properties(512, BlobType::Page { sequence: 0 }), ..op };
    assert_eq!(refused(done(&engine, pages).await), BlobError::InvalidSourceBlobType);
}

#[tokio::test]
async fn a_copy_begins() {
    let engine = MemoryEngine::new(1);
    done(&engine, CreateContainer::named(container())).await.unwrap();
    let source = properties(1_024, BlobType::Page { sequence: 3 });
    let begin = || BeginCopy {
        copy: copy(CopyKind::Copy),
        source: source.clone(),
        source_etag: Some("\"1\"".into()),
        local: None,
    };
    let (copied, job) = done(&engine, begin()).await.unwrap();
    assert_eq!(copied.copy.unwrap().job, Some(job.id));
    assert_eq!((job.url.as_str(), job.etag.as_deref()), (copy(CopyKind::Copy).source_url.0.as_str(), Some("\"1\"")));
    assert_eq!(state_of(&engine, "copy").await.length, 1_024);
    assert_eq!(refused(done(&engine, begin()).await), BlobError::PendingCopyOperation);
}

/// An operation whose looks at the row of its container are counted.
struct Watched(PutBlob, AtomicUsize);

struct CountedRows<'a>(&'a dyn Rows, &'a AtomicUsize);

impl Rows for CountedRows<'_> {
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Unread> {
        self.1.fetch_add(usize::from(*key == container_key(ACCOUNT, &container())), Ordering::Relaxed);
        self.0.get(key)
    }

    fn scan(
        &self,
        from: &Key,
        to: &Key,
        about: usize,
        visit: &mut dyn FnMut(&[u8], &Bytes) -> Visit,
    ) -> Result<(), Unread> {
        assert_ne!(from.as_bytes().first(), Some(&space::CONTAINER));
        self.0.scan(from, to, about, visit)
    }

    fn content(&self, id: ContentId) -> Result<Content, Unread> {
        self.0.content(id)
    }
}

impl Operation for Watched {
    type Outcome = <PutBlob as Operation>::Outcome;
    type Refusal = BlobError;

    fn partition(&self, account: u64) -> Key {
        self.0.partition(account)
    }

    fn apply(
        &self,
        rows: &dyn Rows,
        account: u64,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<Self::Outcome, Stop<BlobError>> {
        self.1.store(0, Ordering::Relaxed);
        Operation::apply(&self.0, &CountedRows(rows, &self.1), account, tick, changes)
    }
}

#[tokio::test]
async fn a_decision_looks_at_its_container_once() {
    let engine = MemoryEngine::new(1);
    done(&engine, CreateContainer::named(container())).await.unwrap();
    let watched = Arc::new(Watched(put(), AtomicUsize::new(0)));
    commit(&engine, ACCOUNT, &watched).await.unwrap();
    assert_eq!(watched.1.load(Ordering::Relaxed), 1);
}
