//! The marks of the shares that SMB uses: each is written with the first tree connect, and removed a minute after the last tree is gone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use concurrency::Timestamp;
use engine::{Changes, Commit, Engine, EngineError, Key, NotCommitted, Rows, Stop, Tick, Unread, Visit};
use service::{codec, space, unrefused};
use wire::names::ShareName;

use super::Ownership;
use super::rows::{ShareMark, TermId, find_mark, find_mark_at, find_owner, mark_key, marked_share};
use crate::error::FileError;
use crate::model::{Protocol, Share, existing_share, refuse, share_key};

/// How long the mark of a share stays after its last tree is gone.
pub const MARK_PAUSE: Duration = Duration::from_secs(60);

/// Marks that are looked at in one read, when a term begins.
const MARKS_PER_READ: usize = 100;

type ShareId = (u64, ShareName);

/// The shares that SMB clients of this node use.
#[derive(Debug, Default)]
pub struct MarkedShares(HashMap<ShareId, MarkedShare>);

#[derive(Debug)]
struct MarkedShare {
    term: TermId,
    /// Whether the mark is there for certain. If not, the next tree writes one.
    is_marked: bool,
    /// That of the last mark that is known. `None`: none is.
    stamp: Option<Timestamp>,
    /// Marks of which it is not known whether they were written.
    unsure: usize,
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
pub struct UnusedMark {
    share: ShareId,
    term: TermId,
    stamp: Timestamp,
}

impl MarkedShares {
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is a mark already. If not, the caller writes one. `term` is the one that is now.
    fn enter(&mut self, share: &ShareId, term: TermId) -> bool {
        let fresh = || {
            let unused_since = Instant::now();
            MarkedShare { term, is_marked: false, stamp: None, unsure: 0, trees: 0, unused_since }
        };
        let entry = self.0.entry(share.clone()).or_insert_with(fresh);
        if entry.term != term {
            *entry = fresh();
        }
        entry.trees += 1;
        entry.unsure += usize::from(!entry.is_marked);
        entry.is_marked
    }

    /// Enters a share that is in use.
    fn enter_again(&mut self, share: &ShareId, term: TermId) -> bool {
        let entry = self.0.get_mut(share).filter(|entry| entry.term == term);
        entry.map(|entry| entry.trees += 1).is_some()
    }

    /// A mark was written. `None`: it was refused, so there is none of that caller.
    fn marked(&mut self, share: &ShareId, term: TermId, mark: Option<ShareMark>) {
        if let Some(entry) = self.0.get_mut(share).filter(|entry| entry.term == term) {
            entry.unsure = entry.unsure.saturating_sub(1);
            entry.is_marked |= mark.is_some();
            entry.stamp = entry.stamp.max(mark.map(|mark| mark.stamp));
        }
    }

    fn leave(&mut self, share: &ShareId, term: TermId) {
        if let Some(entry) = self.0.get_mut(share).filter(|entry| entry.term == term) {
            entry.trees -= 1;
            entry.unused_since = Instant::now();
            if entry.trees == 0 && entry.stamp.is_none() && entry.unsure == 0 {
                self.0.remove(share);
            }
        }
    }

    /// Those whose marks have to be looked at before they can be removed.
    fn unsure(&self, pause: Duration) -> Vec<(ShareId, TermId)> {
        let unsure = self.0.iter().filter(|(_, entry)| entry.is_unused(pause) && entry.unsure > 0);
        unsure.map(|(share, entry)| (share.clone(), entry.term)).collect()
    }

    /// The mark was looked at. A tree that has come since has written another one, or will.
    fn looked_at(&mut self, share: &ShareId, term: TermId, found: Option<ShareMark>, pause: Duration) {
        let entry = self.0.get_mut(share).filter(|entry| entry.term == term && entry.is_unused(pause));
        if let Some(entry) = entry {
            entry.unsure = 0;
            let own = found.filter(|mark| mark.owner == term);
            entry.stamp = entry.stamp.max(own.map(|mark| mark.stamp));
        }
    }

    pub(super) fn keep_those_of(&mut self, term: Option<TermId>) {
        self.0.retain(|_, entry| Some(entry.term) == term);
    }

    /// Takes out those that have had no tree for so long. A tree that comes from now on writes another mark.
    fn take_unused(&mut self, pause: Duration) -> Vec<UnusedMark> {
        let unused = self.0.extract_if(|_, entry| entry.is_unused(pause) && entry.unsure == 0);
        unused.filter_map(|(share, entry)| Some(UnusedMark { share, term: entry.term, stamp: entry.stamp? })).collect()
    }

    /// Its mark could not be removed now, or it is not known whether it was.
    fn put_back(&mut self, UnusedMark { share, term, stamp }: UnusedMark) {
        let unused_since = Instant::now();
        let back = MarkedShare { term, is_marked: false, stamp: Some(stamp), unsure: 0, trees: 0, unused_since };
        self.0.entry(share).or_insert(back);
    }
}

impl MarkedShare {
    fn is_unused(&self, pause: Duration) -> bool {
        self.trees == 0 && self.unused_since.elapsed() >= pause
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
        let share = (account, name.clone());
        let (term, is_marked) = {
            let mut shares = self.shares();
            // Read under the lock: an entry of another term is one of a term that has ended.
            let term = self.term().ok_or(EngineError::Elsewhere { address: None })?;
            (term, shares.enter(&share, term))
        };
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
        // Dropped before it has an answer, or failed: the mark may be there, and whoever removes marks looks.
        match marked.await {
            Ok((found, mark)) => {
                self.shares().marked(&share, term, Some(mark));
                Ok((hold, Some(found)))
            }
            Err(error) => {
                if matches!(error, NotCommitted::Refused(_) | NotCommitted::Failed(EngineError::Elsewhere { .. })) {
                    self.shares().marked(&share, term, None);
                }
                Err(error)
            }
        }
    }

    /// Keeps the mark of a share that is in use, for a deletion that is still to be done. `None`: this node does not serve it.
    pub fn hold(self: &Arc<Ownership>, account: u64, name: &ShareName) -> Option<TreeHold> {
        let share = (account, name.clone());
        let mut shares = self.shares();
        let term = self.term().filter(|term| shares.enter_again(&share, *term))?;
        Some(TreeHold { ownership: Arc::clone(self), share, term })
    }

    /// Takes out the marks of shares that have no tree now. A tree that comes from now on writes another mark.
    pub fn take_unused_marks(&self) -> Vec<UnusedMark> {
        self.shares().take_unused(Duration::ZERO)
    }

    /// Removes the marks of shares that have had no tree for this long.
    pub async fn remove_unused_marks(&self, engine: &dyn Engine, pause: Duration) -> Result<(), EngineError> {
        let mut removed = Ok(());
        let unsure = self.shares().unsure(pause);
        for (share, term) in unsure {
            let (account, name) = share.clone();
            let look = move |rows: &dyn Rows, _| Ok(find_mark(rows, account, &name)?);
            match unrefused(engine::read(engine, look).await) {
                Ok(found) => self.shares().looked_at(&share, term, found, pause),
                Err(error) => removed = Err(error),
            }
        }
        let unused = self.shares().take_unused(pause);
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

/// Removes marks that [`Ownership::take_unused_marks`] took out.
pub async fn remove_marks(engine: &dyn Engine, marks: Vec<UnusedMark>) -> Result<(), EngineError> {
    for mark in marks {
        remove_mark(engine, &mark).await?;
    }
    Ok(())
}

/// Removes the marks that terms before this one have left behind, as nodes do that die. Ends early if the term has ended.
pub async fn remove_former_marks(engine: &dyn Engine, term: TermId) -> Result<(), EngineError> {
    let (all, mut next) = (Key::new(space::SMB_SHARE), Some(Key::new(space::SMB_SHARE)));
    while let Some(from) = next {
        let (from, to) = (from.max(all.clone()), all.after_all());
        let page = engine::read(engine, move |rows, _| Ok(marks(rows, &from, &to)?));
        let (found, after) = unrefused(page.await)?;
        next = after;
        for (key, mark) in found {
            if mark.owner != term && !remove_former_mark(engine, key, mark, term).await? {
                return Ok(());
            }
        }
    }
    Ok(())
}

type Marks = Vec<(Key, ShareMark)>;

/// A page of marks with their keys, and where the next page begins.
fn marks(rows: &dyn Rows, from: &Key, to: &Key) -> Result<(Marks, Option<Key>), Unread> {
    let (mut found, mut failed) = (Marks::new(), None);
    rows.scan(from, to, MARKS_PER_READ, &mut |key, row| match codec::decode(row) {
        Ok(mark) => {
            found.push((Key::from_bytes(key), mark));
            if found.len() < MARKS_PER_READ { Visit::Next } else { Visit::Stop }
        }
        Err(error) => {
            failed = Some(error);
            Visit::Stop
        }
    })?;
    let next = found.last().filter(|_| found.len() == MARKS_PER_READ).map(|(key, _)| key.next());
    failed.map_or(Ok((found, next)), Err)
}

/// Whether the term lasts. Then other terms have ended, and their marks count for nothing.
async fn remove_former_mark(
    engine: &dyn Engine,
    key: Key,
    known: ShareMark,
    term: TermId,
) -> Result<bool, EngineError> {
    let removed = engine::commit(engine, marked_share(&key), move |rows, tick| {
        let (owner, found) = (find_owner(rows), find_mark_at(rows, &key));
        let lasts = owner?.is_some_and(|owner| owner.id == term && owner.is_alive(tick.now));
        let mut changes = Changes::none();
        if lasts && found? == Some(known) {
            changes.delete(key.clone());
        }
        Ok(Commit { changes: changes.freeing_space(), outcome: lasts })
    });
    unrefused(removed.await)
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
