//! The marks of the shares that SMB uses: each is written with the first tree connect, and removed a minute after the last tree is gone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use concurrency::Timestamp;
use engine::{Changes, Commit, Engine, EngineError, NotCommitted, Rows, Stop, Tick};
use service::{codec, unrefused};
use wire::names::ShareName;

use super::Ownership;
use super::rows::{ShareMark, TermId, find_mark, find_owner, mark_key};
use crate::error::FileError;
use crate::model::{Protocol, Share, existing_share, refuse, share_key};

/// How long the mark of a share stays after its last tree is gone.
pub const MARK_PAUSE: Duration = Duration::from_secs(60);

type ShareId = (u64, ShareName);

/// The shares that SMB clients of this node use.
#[derive(Debug, Default)]
pub struct MarkedShares(HashMap<ShareId, MarkedShare>);

#[derive(Debug)]
struct MarkedShare {
    term: TermId,
    /// That of the last mark. `None`: none was written yet.
    stamp: Option<Timestamp>,
    trees: usize,
    /// Since when there is no tree.
    unused_since: Instant,
}

/// A tree of a share, for as long as it is there.
#[derive(Debug)]
pub struct TreeHold {
    ownership: Arc<Ownership>,
    share: ShareId,
    pub term: TermId,
}

impl Drop for TreeHold {
    fn drop(&mut self) {
        self.ownership.shares().leave(&self.share, self.term);
    }
}

/// A mark that is not needed any more.
#[derive(Debug)]
struct UnusedMark {
    share: ShareId,
    term: TermId,
    stamp: Timestamp,
}

impl MarkedShares {
    /// Whether there is a mark already.
    fn enter(&mut self, share: &ShareId, term: TermId) -> bool {
        let fresh = || MarkedShare { term, stamp: None, trees: 0, unused_since: Instant::now() };
        let entry = self.0.entry(share.clone()).or_insert_with(fresh);
        if entry.term != term {
            *entry = fresh();
        }
        entry.trees += 1;
        entry.stamp.is_some()
    }

    fn marked(&mut self, share: &ShareId, mark: ShareMark) {
        if let Some(entry) = self.0.get_mut(share).filter(|entry| entry.term == mark.owner) {
            entry.stamp = entry.stamp.max(Some(mark.stamp));
        }
    }

    fn leave(&mut self, share: &ShareId, term: TermId) {
        if let Some(entry) = self.0.get_mut(share).filter(|entry| entry.term == term) {
            entry.trees -= 1;
            entry.unused_since = Instant::now();
            if entry.trees == 0 && entry.stamp.is_none() {
                self.0.remove(share);
            }
        }
    }

    pub(super) fn keep_those_of(&mut self, term: Option<TermId>) {
        self.0.retain(|_, entry| Some(entry.term) == term);
    }

    /// Takes out those that have had no tree for so long. A tree that comes from now on writes another mark.
    fn take_unused(&mut self, pause: Duration) -> Vec<UnusedMark> {
        let is_unused = |entry: &MarkedShare| entry.trees == 0 && entry.unused_since.elapsed() >= pause;
        let unused = self.0.extract_if(|_, entry| is_unused(entry));
        unused.filter_map(|(share, entry)| Some(UnusedMark { share, term: entry.term, stamp: entry.stamp? })).collect()
    }

    /// Its mark could not be removed now.
    fn put_back(&mut self, UnusedMark { share, term, stamp }: UnusedMark) {
        let unused_since = Instant::now();
        let back = MarkedShare { term, stamp: Some(stamp), trees: 0, unused_since };
        self.0.entry(share).or_insert(back);
    }
}

impl Ownership {
    /// A tree connect: marks the share, if it has no mark of this term yet. The share is told if it was looked at on the way.
    ///
    /// Fails with [`EngineError::Elsewhere`] if this node is not the owner, and is refused if there is no such share.
    pub async fn connect(
        self: &Arc<Ownership>,
        engine: &dyn Engine,
        account: u64,
        name: &ShareName,
    ) -> Result<(TreeHold, Option<Share>), NotCommitted<FileError>> {
        let term = self.term().ok_or(EngineError::Elsewhere { address: None })?;
        let share = (account, name.clone());
        let is_marked = self.shares().enter(&share, term);
        let hold = TreeHold { ownership: Arc::clone(self), share: share.clone(), term };
        if is_marked {
            return Ok((hold, None));
        }
        let name = name.clone();
        let marked = engine::commit(engine, share_key(account, &name), move |rows, tick| {
            let (found, mark) = mark(rows, account, &name, term, tick)?;
            let mut changes = Changes::none();
            changes.put(mark_key(&share_key(account, &name)), codec::encode(&mark));
            Ok(Commit { changes, outcome: (found, mark) })
        });
        let (found, mark) = marked.await?;
        self.shares().marked(&share, mark);
        Ok((hold, Some(found)))
    }

    /// Removes the marks of shares that have had no tree for this long.
    pub async fn remove_unused_marks(&self, engine: &dyn Engine, pause: Duration) -> Result<(), EngineError> {
        let unused = self.shares().take_unused(pause);
        let mut removed = Ok(());
        for mark in unused {
            let done = remove_mark(engine, &mark).await;
            if done.is_err() {
                self.shares().put_back(mark);
                removed = done;
            }
        }
        removed
    }
}

/// The mark that a term puts on a share. Others' marks are those of terms that have ended, because this one lasts.
fn mark(
    rows: &dyn Rows,
    account: u64,
    name: &ShareName,
    term: TermId,
    tick: Tick,
) -> Result<(Share, ShareMark), Stop<FileError>> {
    // All are asked for before one is missed.
    let (owner, before, share) =
        (find_owner(rows), find_mark(rows, account, name), existing_share(rows, account, name));
    let is_owner = owner?.is_some_and(|owner| owner.id == term && owner.is_alive(tick.now));
    before?;
    if !is_owner {
        return Err(Stop::Unread(EngineError::Elsewhere { address: None }.into()));
    }
    let share = share?;
    if share.protocol != Protocol::Smb {
        return Err(refuse(FileError::ShareNotFound));
    }
    Ok((share, ShareMark { owner: term, stamp: tick.stamp }))
}

async fn remove_mark(engine: &dyn Engine, mark: &UnusedMark) -> Result<(), EngineError> {
    let ((account, name), known) = (mark.share.clone(), ShareMark { owner: mark.term, stamp: mark.stamp });
    let removed = engine::commit(engine, share_key(account, &name), move |rows, _| {
        let mut changes = Changes::none();
        if find_mark(rows, account, &name)? == Some(known) {
            changes.delete(mark_key(&share_key(account, &name)));
        }
        Ok(Commit { changes: changes.freeing_space(), outcome: () })
    });
    unrefused(removed.await)
}
