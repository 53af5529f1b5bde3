//! What is open and at work on one file or directory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use concurrency::caching::{AcknowledgementRefusal, Caching, Contention};
use concurrency::range_lock::{
    Actor, LockKind, LockOutcome, LockRange, LockRefusal, OpenId, RangeLocks, Transfer, WaitId,
};
use concurrency::share_mode::{Admission, Open, RestAccess, admit};
use tokio::sync::futures::OwnedNotified;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::caches::{
    CacheKey, Caches, CachingRequest, Contended, Contender, GrantedCaching, LeaseName, Notice, Notices, Told,
};
use super::entry::Work;
use super::open::{OpenHandle, OpenRequest};
use super::tally::Tally;
use super::{ENTRIES_PER_FILE_MAX, FileId, HandleId, OPENS_PER_FILE_MAX, OPENS_PER_ROOT_MAX, OpenRefusal, Refusal};

#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Added by [`Slot::add`] and removed by [`Slot::close`], which keep the two counts below.
    pub handles: BTreeMap<HandleId, OpenHandle>,
    share_modes: Tally<Open>,
    /// Handles that their clients have.
    told: usize,
    locks: RangeLocks,
    lock_waits: HashMap<WaitId, LockWait>,
    /// By ticket.
    at_work: BTreeMap<u64, Work>,
    accesses: Tally<RestAccess>,
    /// Those at work that mean everything below, too.
    pub trees: usize,
    /// Handles of files and directories below.
    pub below: usize,
    /// Handles through which it is being judged whether it may be deleted.
    pub judged: usize,
    /// Handles that do more than look at attributes.
    users: usize,
    caches: Caches,
    /// Made when something first waits.
    changed: Option<Arc<Notify>>,
}

/// A lock request in the queue of [`RangeLocks`], and how it is told that it was granted.
#[derive(Debug)]
struct LockWait {
    handle: HandleId,
    granted: oneshot::Sender<()>,
}

/// What a change of a slot wakes. Waking may run foreign code, so it is done when the mutex is released.
#[derive(Debug, Default)]
#[must_use = "what waits must be woken"]
pub(super) struct Wakes {
    changed: Option<Arc<Notify>>,
    granted: Vec<oneshot::Sender<()>>,
    /// Lock requests of a handle that was closed: dropping these tells them.
    closed: Vec<oneshot::Sender<()>>,
}

impl Wakes {
    pub fn wake(self) {
        if let Some(changed) = self.changed {
            changed.notify_waiters();
        }
        for granted in self.granted {
            // Without a receiver its future is being dropped, which gives the lock back.
            _ = granted.send(());
        }
        drop(self.closed);
    }
}

/// A lock request that is in the table.
#[derive(Debug)]
pub(super) enum Requested {
    Granted,
    /// Nothing comes if the handle is closed.
    Waiting(oneshot::Receiver<()>),
}

/// The name of the handle among the locks.
fn owner(handle: HandleId) -> OpenId {
    OpenId(handle.0)
}

impl Slot {
    pub fn is_empty(&self) -> bool {
        // Locks and lock requests are gone when there is no handle.
        self.handles.is_empty() && self.at_work.is_empty() && self.below == 0 && self.judged == 0
    }

    /// The next time that an operation leaves or a handle closes. Made under the mutex, so no change is missed.
    pub fn next_change(&mut self) -> OwnedNotified {
        Arc::clone(self.changed.get_or_insert_default()).notified_owned()
    }

    /// Whether a REST operation may begin.
    pub fn judge(&self, work: &Work) -> Result<(), Refusal> {
        if work.is_tree() && self.below > 0 {
            return Err(Refusal::SharingViolation);
        }
        work.access.check(self.share_modes.kinds())?;
        if work.meets(&self.locks) {
            return Err(Refusal::FileLockConflict);
        }
        if self.at_work.len() < ENTRIES_PER_FILE_MAX { Ok(()) } else { Err(Refusal::TooMany) }
    }

    /// Whether something that is open only for a moment may be so beside the handles.
    pub fn check_beside(&self, open: Open) -> Result<(), Refusal> {
        let conflicts = self.share_modes.kinds().any(|handle| handle.conflicts_with(open));
        if conflicts { Err(Refusal::SharingViolation) } else { Ok(()) }
    }

    pub fn begin(&mut self, work: Work) {
        self.trees += usize::from(work.is_tree());
        self.accesses.add(work.access);
        self.at_work.insert(work.ticket, work);
    }

    pub fn end(&mut self, ticket: u64) -> Wakes {
        let ended = self.at_work.remove(&ticket).expect("an entry is at work until it is dropped");
        self.accesses.remove(ended.access);
        self.trees -= usize::from(ended.is_tree());
        self.wakes()
    }

    /// Whether a handle may be opened beside the others and the lease. For REST operations at work it will wait.
    pub fn judge_open(&self, request: &OpenRequest) -> Result<(), OpenRefusal> {
        match admit(request.judged(), self.share_modes.kinds(), request.is_leased, self.accesses.kinds()) {
            Admission::Refused(violation) => return Err(violation.into()),
            Admission::Admitted | Admission::Wait => {}
        }
        let most = if request.file.is_root() { OPENS_PER_ROOT_MAX } else { OPENS_PER_FILE_MAX };
        if self.handles.len() < most { Ok(()) } else { Err(OpenRefusal::TooMany) }
    }

    /// Whether an operation stands against the open that changes what its caller read of the file.
    pub fn is_outdating(&self, new: Open) -> bool {
        self.accesses.kinds().any(|access| changes_what_openers_read(access) && access.conflicts_with(new))
    }

    /// The next change, if a REST operation at work stands against the open.
    pub fn transient_against(&mut self, open: Open) -> Option<OwnedNotified> {
        let stands_against = self.accesses.kinds().any(|access| access.conflicts_with(open));
        stands_against.then(|| self.next_change())
    }

    /// The next change, if an operation with a smaller ticket is at work.
    pub fn while_older(&mut self, ticket: u64) -> Option<OwnedNotified> {
        let is_older = self.at_work.keys().next().is_some_and(|first| *first < ticket);
        is_older.then(|| self.next_change())
    }

    /// The next change, if a REST operation at work is on bytes that the locks cover.
    pub fn transient_in(&mut self, ranges: &[(LockRange, LockKind)]) -> Option<OwnedNotified> {
        if self.at_work.values().all(|work| work.span.is_none()) {
            return None;
        }
        let mut alone = RangeLocks::default();
        alone.lock_all(OpenId(0), ranges).expect("the same locks have been granted beside others");
        let meets = self.at_work.values().any(|work| work.meets(&alone));
        meets.then(|| self.next_change())
    }

    pub fn add(&mut self, id: HandleId, handle: OpenHandle, asked: CachingRequest) {
        self.share_modes.add(handle.open);
        // What is read while it changes, or while it is locked, is not kept.
        let is_changing = self.accesses.kinds().any(|access| matches!(access, RestAccess::Write | RestAccess::Replace));
        let is_unsteady = is_changing || !self.locks.is_empty();
        self.caches.add(id, asked, handle.is_user, self.users, is_unsteady);
        self.users += usize::from(handle.is_user);
        self.handles.insert(id, handle);
    }

    /// The client is about to have the handle.
    pub fn tell(&mut self, id: HandleId) {
        self.handles.get_mut(&id).expect("nothing closes a handle that no client has").is_told = true;
        self.told += 1;
    }

    /// Whether a client has a handle. Others are withdrawn without a trace.
    pub fn is_open(&self) -> bool {
        self.told > 0
    }

    /// The third value is a lease that has ended with it.
    pub fn close(&mut self, handle: HandleId) -> Option<(OpenHandle, Wakes, Option<LeaseName>)> {
        let closed = self.handles.remove(&handle)?;
        self.share_modes.remove(closed.open);
        self.told -= usize::from(closed.is_told);
        self.users -= usize::from(closed.is_user);
        let lease = closed.cache.and_then(|key| self.caches.remove(handle, key, closed.is_user));
        let waits = self.lock_waits.extract_if(|_, wait| wait.handle == handle);
        let withdrawn = waits.map(|(_, wait)| wait.granted).collect();
        let granted = self.locks.close(owner(handle));
        let wakes = Wakes { changed: self.changed.clone(), granted: self.take_waits(granted), closed: withdrawn };
        Some((closed, wakes, lease))
    }

    /// Takes back what does not go with what is done to the file. The second value: that must be waited for.
    pub fn contend(&mut self, file: FileId, contender: Contender, number: u64) -> (Notices, bool) {
        let mut notices = Notices::default();
        if self.caches.is_empty() {
            return (notices, false);
        }
        let Contended { told, waits } = self.caches.contend(contender, number);
        for told in told {
            self.notify(file, told, number, &mut notices);
        }
        (notices, waits)
    }

    /// The same for what is done through a handle: its own cache is left alone.
    pub fn contend_by(
        &mut self,
        file: FileId,
        handle: HandleId,
        contention: Contention,
        number: u64,
    ) -> (Notices, bool) {
        let own = self.handles.get(&handle).and_then(|handle| handle.cache);
        self.contend(file, Contender::new(contention, own), number)
    }

    /// Whether it is open and in the directory, or in one below it.
    pub fn is_below(&self, directory: u64) -> bool {
        self.handles.values().next().is_some_and(|handle| handle.place.above.contains(&directory))
    }

    /// Tells the first handle that has a connection, and each one that has lost it: those cannot answer and end.
    fn notify(&self, file: FileId, Told { key, broken }: Told, number: u64, notices: &mut Notices) {
        let handles = self.caches.handles(key).filter_map(|handle| self.handles.get(&handle));
        let (lost, connected): (Vec<_>, Vec<_>) = handles.partition(|handle| handle.is_disconnected);
        for handle in lost.into_iter().chain(connected.into_iter().next()) {
            notices.push(Notice { file, key, number, holder: Arc::clone(&handle.holder), broken });
        }
    }

    /// Whether the handle can be kept for a client that has lost its connection.
    pub fn keeps(&self, handle: HandleId) -> bool {
        let key = self.handles.get(&handle).and_then(|handle| handle.cache);
        key.is_some_and(|key| self.caches.keeps_handles(key))
    }

    pub fn granted(&self, handle: HandleId) -> GrantedCaching {
        let key = self.handles.get(&handle).and_then(|handle| handle.cache);
        key.map_or(GrantedCaching::None, |key| self.caches.granted(key))
    }

    /// A client has answered a break.
    pub fn acknowledge(
        &mut self,
        file: FileId,
        (key, kept): (CacheKey, Caching),
        number: u64,
    ) -> Result<(Notices, Wakes), AcknowledgementRefusal> {
        let mut notices = Notices::default();
        if let Some(told) = self.caches.acknowledge(key, kept, number)? {
            self.notify(file, told, number, &mut notices);
        }
        Ok((notices, self.wakes()))
    }

    /// The client of a cache cannot be told of a break.
    pub fn expire(&mut self, key: CacheKey, number: u64) -> Wakes {
        self.caches.expire(key, number);
        self.wakes()
    }

    /// The next change, and when the first break is to end, while breaks up to a number are in progress.
    pub fn while_breaking(&mut self, until: u64, now: Instant) -> Option<(OwnedNotified, Instant)> {
        let end = self.caches.next_expiry(until, now)?;
        Some((self.next_change(), end))
    }

    fn wakes(&self) -> Wakes {
        Wakes { changed: self.changed.clone(), ..Wakes::default() }
    }

    pub fn lock_all(&mut self, handle: HandleId, ranges: &[(LockRange, LockKind)]) -> Result<(), LockRefusal> {
        self.locks.lock_all(owner(handle), ranges)
    }

    pub fn lock_or_wait(
        &mut self,
        wait: WaitId,
        handle: HandleId,
        (range, kind): (LockRange, LockKind),
    ) -> Result<Requested, LockRefusal> {
        match self.locks.lock_or_wait(wait, owner(handle), range, kind)? {
            LockOutcome::Granted => Ok(Requested::Granted),
            LockOutcome::Waiting => {
                let (granted, answer) = oneshot::channel();
                self.lock_waits.insert(wait, LockWait { handle, granted });
                Ok(Requested::Waiting(answer))
            }
        }
    }

    /// Whether the request still waited, so that nothing is to be unlocked.
    pub fn cancel(&mut self, wait: WaitId) -> bool {
        self.lock_waits.remove(&wait);
        self.locks.cancel(wait)
    }

    pub fn unlock(&mut self, handle: HandleId, range: LockRange) -> Result<Wakes, LockRefusal> {
        let granted = self.locks.unlock(owner(handle), range)?;
        Ok(Wakes { granted: self.take_waits(granted), ..Wakes::default() })
    }

    /// Gives back a lock that its client was not told of.
    pub fn withdraw(&mut self, handle: HandleId, (range, kind): (LockRange, LockKind)) -> Wakes {
        // An unlock gives up an exclusive lock first. If there is one over the shared lock, it is of the same handle and
        // must stay; the shared lock then goes with the handle.
        let exclusive = self.locks.check(Actor::Rest, range.offset(), range.length(), Transfer::Read).is_err();
        if kind == LockKind::Shared && exclusive {
            return Wakes::default();
        }
        // It may be gone: another request of the same handle may have unlocked it.
        self.unlock(handle, range).unwrap_or_default()
    }

    pub fn lock_count(&self, handle: HandleId) -> usize {
        self.locks.count(owner(handle))
    }

    pub fn check_io(&self, handle: HandleId, offset: u64, length: u64, transfer: Transfer) -> Result<(), LockRefusal> {
        self.locks.check(Actor::Handle(owner(handle)), offset, length, transfer)
    }

    fn take_waits(&mut self, granted: Vec<WaitId>) -> Vec<oneshot::Sender<()>> {
        granted.iter().filter_map(|wait| self.lock_waits.remove(wait)).map(|wait| wait.granted).collect()
    }
}

impl Work {
    /// Whether the operation is on bytes that one of the locks keeps from it.
    fn meets(&self, locks: &RangeLocks) -> bool {
        self.span.is_some_and(|span| locks.check(Actor::Rest, span.offset, span.length, span.transfer).is_err())
    }
}

/// Which REST operations take effect on the path, the existence or the lease of a file. An open that waited for one of
/// the others finds what it looked up.
fn changes_what_openers_read(access: RestAccess) -> bool {
    match access {
        RestAccess::Delete | RestAccess::Rename | RestAccess::AcquireLease => true,
        RestAccess::Look | RestAccess::Read | RestAccess::Write | RestAccess::Replace => false,
    }
}
