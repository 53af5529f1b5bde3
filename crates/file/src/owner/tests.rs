//! Two nodes over one store: the first serves SMB, or did.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use content::source::{LocalPlace, SourceReader, open_local_in_background};
use engine::loads::LoadingEngine;
use engine::memory::MemoryEngine;
use engine::{Engine, EngineError, NotCommitted, Rows};

use super::rows::{find_mark, find_owner};
use super::shares::MARK_PAUSE;
use super::*;
use crate::Failure;
use crate::door::tests::{created, open, wish};
use crate::door::{OpenFile, Refused, Tree};
use crate::source::FileReader;
use crate::testing::Bench;
use wire::names::ShareName;

/// A node: its service, and its part.
struct Node {
    bench: Bench,
    ownership: Arc<Ownership>,
    id: u128,
}

impl Node {
    fn new(store: &Arc<MemoryEngine>, id: u128) -> Node {
        let front = Arc::new(LoadingEngine::new(Arc::clone(store) as Arc<dyn Engine>));
        let bench = Bench::over(front, Arc::clone(store));
        let ownership = Arc::new(Ownership::default());
        let service = bench.service.clone().among(Arc::clone(&ownership));
        Node { bench: Bench { service, ..bench }, ownership, id }
    }

    fn address(&self) -> NodeAddress {
        let host = format!("node{}", self.id);
        NodeAddress { host, smb_port: 445, https: false, file_port: Some(10_004), blob_port: None }
    }

    /// Begins a term, if it is its turn. A node that has an owner before it says which.
    async fn take(&self, term: u128) -> Result<TermId, String> {
        let taken = super::take(&*self.bench.engine, TermId::new(term), None, self.address()).await.unwrap();
        let owner = taken.map_err(|other| other.address.host)?;
        self.ownership.set_term(Some(owner.id));
        Ok(owner.id)
    }

    async fn connect(&self) -> Tree {
        self.bench.service.door().connect(1, "share").await.unwrap()
    }

    async fn put(&self, name: &str) -> Result<(), Failure> {
        let headers = [("x-ms-type", "file"), ("x-ms-content-length", "10")];
        self.bench.call("PUT", &format!("share/{name}"), &headers, b"").await.map(drop)
    }

    async fn get(&self, name: &str) -> Result<(), Failure> {
        self.bench.call("GET", &format!("share/{name}"), &[], b"").await.map(drop)
    }
}

async fn nodes() -> (Node, Node) {
    let store = Arc::new(MemoryEngine::default());
    let (one, two) = (Node::new(&store, 1), Node::new(&store, 2));
    one.bench.call("PUT", "share?restype=share", &[], b"").await.unwrap();
    (one, two)
}

fn elsewhere<T>(address: &str) -> Result<T, Failure> {
    Err(Failure::Failed(EngineError::Elsewhere { address: Some(address.to_owned()) }))
}

const AT_ONE: &str = "http://node1:10004";

/// The mark of the share.
async fn mark(node: &Node) -> Option<TermId> {
    let name = ShareName::parse("share").unwrap();
    let find = move |rows: &dyn Rows, _| Ok(find_mark(rows, 1, &name)?.map(|mark| mark.owner));
    unrefused(engine::read(&*node.bench.engine, find).await).unwrap()
}

async fn write(file: &OpenFile) -> Result<(), Refused> {
    file.write(0, Bytes::from_static(b"data")).await
}

const DEPOSED: Refused = Refused::Failed(EngineError::Elsewhere { address: None });

#[tokio::test]
async fn a_share_that_smb_uses_is_decided_on_by_the_owner_alone() {
    let (one, two) = nodes().await;
    let term = one.take(10).await.unwrap();
    two.put("before").await.unwrap();
    assert_eq!(mark(&one).await, None, "an owner without clients marks nothing");
    let tree = one.connect().await;
    assert_eq!(mark(&one).await, Some(term));
    assert_eq!(two.put("file").await, elsewhere(AT_ONE));
    assert_eq!(two.get("before").await, elsewhere(AT_ONE));
    assert_eq!(two.bench.call("DELETE", "share?restype=share", &[], b"").await.map(drop), elsewhere(AT_ONE));
    one.put("file").await.unwrap();
    let file = open(&tree, wish("file")).await;
    write(&file).await.unwrap();
    // What names no share is anybody's.
    two.bench.call("GET", "?comp=list", &[], b"").await.unwrap();
    two.bench.call("PUT", "other?restype=share", &[], b"").await.unwrap();
}

#[tokio::test]
async fn who_is_not_the_owner_connects_nobody() {
    let (one, two) = nodes().await;
    let refused = |node: &Node| node.bench.service.door();
    assert_eq!(refused(&one).connect(1, "share").await.unwrap_err(), DEPOSED);
    one.take(10).await.unwrap();
    assert_eq!(two.take(20).await, Err("node1".to_owned()));
    assert_eq!(refused(&two).connect(1, "share").await.unwrap_err(), DEPOSED);
    assert_eq!(refused(&one).connect(1, "missing").await.unwrap_err(), Refused::ShareNotFound);
    // A node that thinks so and is not.
    two.ownership.set_term(Some(TermId::new(20)));
    assert_eq!(refused(&two).connect(1, "share").await.unwrap_err(), DEPOSED);
    assert_eq!(mark(&one).await, None);
}

#[tokio::test]
async fn a_mark_goes_some_time_after_the_last_tree() {
    let (one, two) = nodes().await;
    one.take(10).await.unwrap();
    let (first, second) = (one.connect().await, one.connect().await);
    let remove = async |pause| one.ownership.remove_unused_marks(&*one.bench.engine, pause).await.unwrap();
    drop(first);
    remove(Duration::ZERO).await;
    assert!(mark(&one).await.is_some(), "there is another tree");
    let file = open(&second, created("file")).await;
    drop(second);
    remove(Duration::ZERO).await;
    assert!(mark(&one).await.is_some(), "there is an open");
    file.close().await.unwrap();
    drop(file);
    remove(MARK_PAUSE).await;
    assert!(mark(&one).await.is_some(), "it is not long ago");
    remove(Duration::ZERO).await;
    assert_eq!(mark(&one).await, None);
    two.put("other").await.unwrap();
    let tree = one.connect().await;
    assert_eq!(two.put("other").await, elsewhere(AT_ONE));
    write(&open(&tree, wish("file")).await).await.unwrap();
}

/// The decision that removes a mark may come after the one that has put another.
#[tokio::test]
async fn a_removal_leaves_a_later_mark_alone() {
    let (one, two) = nodes().await;
    one.take(10).await.unwrap();
    drop(one.connect().await);
    let late = Node { ownership: Arc::new(Ownership::default()), ..Node::new(&one.bench.engine, 1) };
    // As if the share were taken out here, and connected to again before the removal is decided.
    std::mem::swap(&mut *late.ownership.shares(), &mut *one.ownership.shares());
    let _tree = one.connect().await;
    late.ownership.remove_unused_marks(&*one.bench.engine, Duration::ZERO).await.unwrap();
    assert!(mark(&one).await.is_some());
    assert_eq!(two.put("file").await, elsewhere(AT_ONE));
}

/// An engine that does what it is asked, and whose answers get lost.
#[derive(Debug)]
struct Unanswered(Arc<dyn Engine>);

impl engine::Wrapper for Unanswered {
    fn inner(&self) -> &dyn Engine {
        &*self.0
    }

    fn commit(&self, decision: Box<dyn engine::Decision>) -> engine::BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async {
            self.0.commit(decision).await?;
            Err(EngineError::Unavailable("lost".into()))
        })
    }
}

impl Node {
    fn unanswered(&self) -> Unanswered {
        Unanswered(Arc::clone(&self.bench.engine) as Arc<dyn Engine>)
    }
}

#[tokio::test]
async fn a_mark_whose_removal_was_not_answered_is_written_again() {
    let (one, _) = nodes().await;
    one.put("file").await.unwrap();
    let term = one.take(10).await.unwrap();
    drop(one.connect().await);
    one.ownership.remove_unused_marks(&one.unanswered(), Duration::ZERO).await.unwrap_err();
    assert_eq!(mark(&one).await, None, "it was done");
    let tree = one.connect().await;
    assert_eq!(mark(&one).await, Some(term));
    write(&open(&tree, wish("file")).await).await.unwrap();
}

#[tokio::test]
async fn a_mark_whose_writing_was_not_answered_is_removed() {
    let (one, two) = nodes().await;
    one.take(10).await.unwrap();
    let share = ShareName::parse("share").unwrap();
    one.ownership.connect(&one.unanswered(), 1, &share).await.unwrap_err();
    assert!(mark(&one).await.is_some(), "it was done");
    one.ownership.remove_unused_marks(&*one.bench.engine, MARK_PAUSE).await.unwrap();
    assert!(mark(&one).await.is_some(), "it is not long ago");
    one.ownership.remove_unused_marks(&*one.bench.engine, Duration::ZERO).await.unwrap();
    assert_eq!(mark(&one).await, None);
    two.put("file").await.unwrap();
    let missing = ShareName::parse("missing").unwrap();
    one.ownership.connect(&*one.bench.engine, 1, &missing).await.unwrap_err();
    assert!(one.ownership.shares().is_empty(), "nothing was written, so nothing is kept");
}

#[tokio::test]
async fn a_deletion_that_is_to_come_keeps_the_mark() {
    let (one, two) = nodes().await;
    one.put("file").await.unwrap();
    one.take(10).await.unwrap();
    let tree = one.connect().await;
    let file = open(&tree, wish("file")).await;
    file.set_delete_pending(true).await.unwrap();
    drop((file, tree));
    let door = one.bench.service.door();
    assert!(door.has_abandoned());
    one.ownership.remove_unused_marks(&*one.bench.engine, Duration::ZERO).await.unwrap();
    assert!(mark(&one).await.is_some());
    door.delete_abandoned().await.unwrap();
    one.ownership.remove_unused_marks(&*one.bench.engine, Duration::ZERO).await.unwrap();
    assert_eq!(mark(&one).await, None);
    two.put("file").await.unwrap();
}

/// Such a copy is taken up by any node, and is to end on it.
#[tokio::test]
async fn a_copy_in_the_background_goes_by_the_rows() {
    let (one, two) = nodes().await;
    one.put("file").await.unwrap();
    one.take(10).await.unwrap();
    let _tree = one.connect().await;
    let engine = Arc::clone(&two.bench.engine) as Arc<dyn Engine>;
    let reader = FileReader::new(Arc::clone(&two.bench.opens)).among(Arc::clone(&engine), Arc::clone(&two.ownership));
    let reader: Arc<dyn SourceReader> = Arc::new(reader);
    let (container, name) = ("share".to_owned(), "file".to_owned());
    let place = LocalPlace { account: 1, container, name, snapshot: None, version: None };
    let refused = reader.enter(&*engine, &place).await.unwrap_err();
    assert!(matches!(refused, NotCommitted::Failed(EngineError::Elsewhere { .. })), "{refused:?}");
    assert_eq!(open_local_in_background(&*engine, &reader, &place).await.unwrap().length, 10);
}

/// A node dies, and nobody changes its shares any more.
#[tokio::test]
async fn a_term_removes_the_marks_of_those_before_it_and_no_others() {
    let (one, two) = nodes().await;
    let remove = async |term| shares::remove_former_marks(&*two.bench.engine, TermId::new(term)).await.unwrap();
    for number in 0..120 {
        one.bench.call("PUT", &format!("share{number}?restype=share"), &[], b"").await.unwrap();
    }
    one.take(10).await.unwrap();
    let door = one.bench.service.door();
    let mut trees = vec![one.connect().await];
    for number in 0..120 {
        trees.push(door.connect(1, &format!("share{number}")).await.unwrap());
    }
    remove(20).await;
    assert_eq!(mark(&one).await, Some(TermId::new(10)), "20 is no term that lasts");
    one.bench.advance(15).await;
    two.take(20).await.unwrap();
    let _tree = two.bench.service.door().connect(1, "share7").await.unwrap();
    remove(20).await;
    let all = engine::Key::new(service::space::SMB_SHARE);
    let count = move |rows: &dyn Rows, _| {
        let mut count = 0;
        rows.scan(&all, &all.after_all(), 10, &mut |_, _| {
            count += 1;
            engine::Visit::Next
        })?;
        Ok(count)
    };
    assert_eq!(unrefused(engine::read(&*two.bench.engine, count).await).unwrap(), 1);
}

/// The owner stands still beyond its term. A change by another node fences it off; a read does not.
#[tokio::test]
async fn an_owner_that_is_taken_for_gone_commits_nothing_more() {
    let (one, two) = nodes().await;
    one.put("file").await.unwrap();
    one.take(10).await.unwrap();
    let tree = one.connect().await;
    let file = open(&tree, wish("file")).await;
    one.bench.advance(14).await;
    assert_eq!(two.get("file").await, elsewhere(AT_ONE), "it may be alive");
    one.bench.advance(1).await;
    two.get("file").await.unwrap();
    write(&file).await.unwrap();
    assert!(mark(&one).await.is_some(), "nobody has acted on the share");
    two.put("new").await.unwrap();
    assert_eq!(mark(&one).await, None);
    assert_eq!(write(&file).await, Err(DEPOSED));
    assert_eq!(tree.open(created("late")).await.map(|opened| opened.action), Err(DEPOSED));
    assert_eq!(tree.space().await.map(drop), Err(DEPOSED));
    // And it knows.
    one.ownership.term_lost(TermId::new(10)).await;
    // As REST it is a node like any other.
    one.put("rest").await.unwrap();
}

#[tokio::test]
async fn a_successor_waits_and_the_former_owner_finds_another_mark() {
    let (one, two) = nodes().await;
    one.put("file").await.unwrap();
    one.take(10).await.unwrap();
    let old = one.connect().await;
    let old_file = open(&old, wish("file")).await;
    one.bench.advance(10).await;
    assert_eq!(
        super::renew(&*one.bench.engine, TermId::new(10)).await.unwrap().map(|owner| owner.id),
        one.ownership.term()
    );
    one.bench.advance(14).await;
    assert_eq!(two.take(20).await, Err("node1".to_owned()));
    one.bench.advance(1).await;
    let term = two.take(20).await.unwrap();
    assert_eq!(super::renew(&*one.bench.engine, TermId::new(10)).await.unwrap(), None);
    // Nobody has acted on the share.
    write(&old_file).await.unwrap();
    let new = two.connect().await;
    assert_eq!(mark(&one).await, Some(term));
    assert_eq!(write(&old_file).await, Err(DEPOSED));
    assert_eq!(one.put("file").await, elsewhere("http://node2:10004"));
    write(&open(&new, wish("file")).await).await.unwrap();
    // The same node again: what was open in its former term stays refused.
    two.ownership.set_term(None);
    super::release(&*one.bench.engine, term).await.unwrap();
    one.take(30).await.unwrap();
    let again = one.connect().await;
    assert_eq!(write(&old_file).await, Err(DEPOSED));
    write(&open(&again, wish("file")).await).await.unwrap();
}

/// A file that was to be deleted when its last handle was lost, in a term that has ended: it stays.
#[tokio::test]
async fn what_was_to_be_deleted_in_a_former_term_stays() {
    let (one, two) = nodes().await;
    one.put("file").await.unwrap();
    one.take(10).await.unwrap();
    let tree = one.connect().await;
    let file = open(&tree, wish("file")).await;
    file.set_delete_pending(true).await.unwrap();
    one.bench.advance(15).await;
    two.put("other").await.unwrap();
    drop(file);
    let door = one.bench.service.door();
    let failed = door.delete_abandoned().await.unwrap_err();
    assert!(failed.tried_again_after.is_none() && !door.has_abandoned(), "{failed:?}");
    two.get("file").await.unwrap();
    one.take(30).await.unwrap();
    let again = one.connect().await;
    write(&open(&again, wish("file")).await).await.unwrap();
}

#[tokio::test]
async fn a_term_that_was_released_leaves_no_row() {
    let (one, two) = nodes().await;
    let term = one.take(10).await.unwrap();
    let found = super::find(&*one.bench.engine).await.unwrap().expect("an owner");
    assert_eq!((found.id, found.address), (term, one.address()));
    super::release(&*one.bench.engine, TermId::new(20)).await.unwrap();
    assert!(super::find(&*one.bench.engine).await.unwrap().is_some(), "it is another's");
    super::release(&*one.bench.engine, term).await.unwrap();
    let row = |rows: &dyn Rows, _| Ok(find_owner(rows)?);
    assert_eq!(unrefused(engine::read(&*one.bench.engine, row).await).unwrap(), None);
    two.take(20).await.unwrap();
    assert_eq!(super::find(&*one.bench.engine).await.unwrap().expect("an owner").id, TermId::new(20));
}
