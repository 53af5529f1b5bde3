//! The engine as the File service sees it on a node of many: every decision and read that looks at the row of a share also looks at
//! the share's mark, in the same round trip, and ends if another node has the table of opens of that share.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use bytes::Bytes;
use concurrency::Timestamp;
use engine::{
    BoxFuture, Changes, Content, ContentId, Decision, Engine, EngineError, Key, Partitions, Query, Rows, Tick, Unread,
    Verdict, Visit, Wrapper,
};
use service::space;

use super::Ownership;
use super::rows::{NodeAddress, TermId, find_mark_at, find_owner, mark_key};
use super::rules::{Judgement, Side, judge};

/// For whom an engine is fenced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protected {
    /// For REST requests to this service, which can be forwarded.
    Rest(RestPort),
    /// For SMB clients that connected in this term.
    Smb { term: Option<TermId> },
}

/// The port of the owner that a request is forwarded to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RestPort {
    File,
    Blob,
}

impl RestPort {
    fn of(self, address: &NodeAddress) -> Option<u16> {
        match self {
            RestPort::File => address.file_port,
            RestPort::Blob => address.blob_port,
        }
    }
}

/// An engine whose decisions and reads on shares are judged first.
#[derive(Debug)]
pub struct FencedEngine {
    inner: Arc<dyn Engine>,
    ownership: Arc<Ownership>,
    protected: Protected,
}

impl FencedEngine {
    #[must_use]
    pub fn new(inner: Arc<dyn Engine>, ownership: Arc<Ownership>, protected: Protected) -> FencedEngine {
        FencedEngine { inner, ownership, protected }
    }

    /// Taken once for each decision and read: all of its runs are judged alike.
    fn fence(&self) -> Fence {
        match self.protected {
            Protected::Rest(port) => Fence { side: Side::Rest { own: self.ownership.term() }, port: Some(port) },
            Protected::Smb { term } => Fence { side: Side::Smb { term }, port: None },
        }
    }

    /// An owner that was taken for dead learns of it here.
    fn noticed<T>(&self, answer: Result<T, EngineError>) -> Result<T, EngineError> {
        if let (Err(EngineError::Elsewhere { .. }), Protected::Smb { term: Some(term) }) = (&answer, self.protected) {
            self.ownership.lost(term);
        }
        answer
    }
}

impl Wrapper for FencedEngine {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        let committed = self.inner.commit(Box::new(FencedDecision { decision, fence: self.fence() }));
        Box::pin(async { self.noticed(committed.await) })
    }

    fn query(&self, query: Box<dyn Query>) -> BoxFuture<'_, Result<(), EngineError>> {
        let answered = self.inner.query(Box::new(FencedQuery { query, fence: self.fence() }));
        Box::pin(async { self.noticed(answered.await) })
    }
}

#[derive(Clone, Copy, Debug)]
struct Fence {
    side: Side,
    port: Option<RestPort>,
}

struct FencedDecision {
    decision: Box<dyn Decision>,
    fence: Fence,
}

impl Decision for FencedDecision {
    fn partitions(&self) -> &Partitions {
        self.decision.partitions()
    }

    fn decide(&mut self, rows: &dyn Rows, tick: Tick) -> Verdict {
        let view = FencedRows::new(rows, self.fence, tick.now);
        for partition in self.decision.partitions().iter() {
            if let Err(unread) = view.look(partition) {
                return Verdict::Unread(unread);
            }
        }
        let verdict = self.decision.decide(&view, tick);
        match verdict {
            Verdict::Commit(_) | Verdict::Refuse if view.is_short.get() => Verdict::Unread(Unread::NotYet),
            Verdict::Commit(changes) => Verdict::Commit(view.fencing(changes, self.decision.partitions())),
            other => other,
        }
    }
}

struct FencedQuery {
    query: Box<dyn Query>,
    fence: Fence,
}

impl Query for FencedQuery {
    fn run(&mut self, rows: &dyn Rows, now: Timestamp) -> Result<(), Unread> {
        let view = FencedRows::new(rows, self.fence, now);
        self.query.run(&view, now)?;
        if view.is_short.get() { Err(Unread::NotYet) } else { Ok(()) }
    }
}

/// Rows, with a look at the mark of every share that is looked at.
struct FencedRows<'a> {
    rows: &'a dyn Rows,
    fence: Fence,
    now: Timestamp,
    /// Marks that were looked at.
    seen: RefCell<Vec<Key>>,
    /// Those of owners that are gone.
    stale: RefCell<Vec<Key>>,
    /// A mark is still to be fetched. The function runs on meanwhile, to say what else it needs, and its answer counts for nothing.
    is_short: Cell<bool>,
}

impl<'a> FencedRows<'a> {
    fn new(rows: &'a dyn Rows, fence: Fence, now: Timestamp) -> FencedRows<'a> {
        FencedRows { rows, fence, now, seen: RefCell::default(), stale: RefCell::default(), is_short: Cell::new(false) }
    }

    /// Looks at the mark, if the key is that of a share and it was not looked at before.
    fn look(&self, key: &Key) -> Result<(), Unread> {
        if key.as_bytes().first() != Some(&space::SHARE) {
            return Ok(());
        }
        let mark = mark_key(key);
        if self.seen.borrow().contains(&mark) {
            return Ok(());
        }
        let found = match find_mark_at(self.rows, &mark) {
            Ok(found) => found,
            Err(Unread::NotYet) => {
                self.is_short.set(true);
                return Ok(());
            }
            Err(failed) => return Err(failed),
        };
        match judge(self.fence.side, found, self.now, || find_owner(self.rows))? {
            Judgement::GoesOn => {}
            Judgement::GoesOnAndFences => self.stale.borrow_mut().push(mark.clone()),
            Judgement::Elsewhere(address) => {
                let port = self.fence.port.and_then(|port| port.of(&address));
                return Err(EngineError::Elsewhere { address: port.map(|port| address.url(port)) }.into());
            }
            Judgement::Deposed => return Err(EngineError::Elsewhere { address: None }.into()),
        }
        self.seen.borrow_mut().push(mark);
        Ok(())
    }

    /// With the removal of marks of owners that are gone, in shares that are changed.
    fn fencing(&self, mut changes: Changes, partitions: &Partitions) -> Changes {
        if changes.is_empty() {
            return changes;
        }
        let changed: Vec<Key> = partitions.iter().map(mark_key).collect();
        for mark in self.stale.take() {
            if changed.contains(&mark) {
                changes.delete(mark);
            }
        }
        changes
    }
}

impl Rows for FencedRows<'_> {
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Unread> {
        self.look(key)?;
        self.rows.get(key)
    }

    fn prefetch(&self, keys: &[Key]) {
        self.rows.prefetch(keys);
    }

    fn scan(
        &self,
        from: &Key,
        to: &Key,
        about: usize,
        visit: &mut dyn FnMut(&[u8], &Bytes) -> Visit,
    ) -> Result<(), Unread> {
        self.rows.scan(from, to, about, visit)
    }

    fn content(&self, id: ContentId) -> Result<Content, Unread> {
        self.rows.content(id)
    }
}
