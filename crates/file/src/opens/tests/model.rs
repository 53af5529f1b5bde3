//! The table as simple as it can be: one list of each kind, searched from the front. No slots, no counts, no waking.

use std::collections::HashSet;

use concurrency::range_lock::{LockKind, LockRange, LockRefusal, Transfer};
use concurrency::share_mode::{Open, RestAccess};

use super::{HandleRefusal, OpenRefusal, Reach, Refusal, Scope, Span};

/// Names a guard or a future in the test.
pub type Key = u64;

#[derive(Clone, Debug)]
pub struct ModelOpen {
    pub key: Key,
    pub file: u64,
    pub above: Vec<u64>,
    pub open: Open,
    pub delete_on_close: bool,
    pub is_leased: bool,
    is_told: bool,
}

#[derive(Debug)]
pub struct ModelEntry {
    pub key: Key,
    pub file: u64,
    pub access: RestAccess,
    pub is_tree: bool,
    pub span: Option<Span>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Lock {
    owner: Key,
    file: u64,
    range: LockRange,
    kind: LockKind,
}

/// A lock request whose client was not answered yet.
#[derive(Debug)]
struct Claim {
    key: Key,
    locks: Vec<Lock>,
    is_queued: bool,
}

/// How a future ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Outcome {
    Open(Result<(), OpenRefusal>),
    Lock(Result<(), HandleRefusal>),
}

#[derive(Debug, Default)]
pub struct Model {
    handles: Vec<ModelOpen>,
    /// Opens that wait for a rename, a delete or a lease.
    outdated: Vec<ModelOpen>,
    entries: Vec<ModelEntry>,
    pending: HashSet<u64>,
    locks: Vec<Lock>,
    claims: Vec<Claim>,
}

impl ModelOpen {
    pub fn new(key: Key, file: u64, above: &[u64], open: Open) -> ModelOpen {
        let above = above.to_vec();
        ModelOpen { key, file, above, open, delete_on_close: false, is_leased: false, is_told: false }
    }
}

impl Model {
    pub fn is_empty(&self) -> bool {
        self.handles.is_empty() && self.entries.is_empty() && self.pending.is_empty()
    }

    pub fn enter(&mut self, entry: ModelEntry) -> Result<(), Refusal> {
        if self.pending.contains(&entry.file) {
            return Err(Refusal::DeletePending);
        }
        let is_open_below = self.handles.iter().any(|handle| handle.above.contains(&entry.file));
        let mut beside = self.handles.iter().filter(|handle| handle.file == entry.file);
        if entry.is_tree && is_open_below || beside.any(|handle| entry.access.conflicts_with(handle.open)) {
            return Err(Refusal::SharingViolation);
        }
        if self.locks.iter().any(|lock| meets(&entry, lock)) {
            return Err(Refusal::FileLockConflict);
        }
        self.entries.push(entry);
        Ok(())
    }

    pub fn leave(&mut self, key: Key) {
        self.entries.retain(|entry| entry.key != key);
    }

    /// Nothing if it waits.
    pub fn open(&mut self, request: ModelOpen) -> Option<Result<(), OpenRefusal>> {
        if self.pending.contains(&request.file) || request.above.iter().any(|above| self.pending.contains(above)) {
            return Some(Err(OpenRefusal::DeletePending));
        }
        if self.is_outdated(&request) {
            self.outdated.push(request);
            return None;
        }
        let beside = self.handles.iter().filter(|handle| handle.file == request.file).map(|handle| handle.open);
        let lease = request.is_leased.then_some(Open::REST_LEASE);
        if beside.chain(lease).any(|open| open.conflicts_with(request.open)) {
            return Some(Err(OpenRefusal::SharingViolation));
        }
        let is_told = !self.is_beside_entry(&request);
        self.handles.push(ModelOpen { is_told, ..request });
        is_told.then_some(Ok(()))
    }

    pub fn withdraw_open(&mut self, key: Key) {
        self.outdated.retain(|request| request.key != key);
        self.handles.retain(|handle| handle.key != key);
    }

    /// Whether the file must be deleted now.
    pub fn close(&mut self, key: Key) -> bool {
        let place = self.handles.iter().position(|handle| handle.key == key).unwrap();
        let closed = self.handles.remove(place);
        self.locks.retain(|lock| lock.owner != key);
        if closed.delete_on_close {
            self.pending.insert(closed.file);
        }
        let is_open = self.handles.iter().any(|handle| handle.file == closed.file && handle.is_told);
        self.pending.contains(&closed.file) && !is_open
    }

    pub fn set_pending(&mut self, file: u64, pending: bool) {
        if pending {
            self.pending.insert(file)
        } else {
            self.pending.remove(&file)
        };
    }

    pub fn pending(&self) -> &HashSet<u64> {
        &self.pending
    }

    pub fn moved(&mut self, file: u64, above: &[u64]) {
        self.handles.iter_mut().filter(|handle| handle.file == file).for_each(|handle| handle.above = above.to_vec());
    }

    pub fn handles_in(&self, scope: Scope) -> Vec<Key> {
        let is_below = |handle: &ModelOpen| scope.reach == Reach::Tree && handle.above.contains(&scope.file.id);
        let inside = |handle: &&ModelOpen| handle.is_told && (handle.file == scope.file.id || is_below(handle));
        self.handles.iter().filter(inside).map(|handle| handle.key).collect()
    }

    /// Nothing if it waits.
    pub fn lock(
        &mut self,
        key: Key,
        (owner, file): (Key, u64),
        wanted: &[(LockRange, LockKind)],
        may_wait: bool,
    ) -> Option<Result<(), HandleRefusal>> {
        let locks: Vec<_> =
            wanted.iter().map(|(range, kind)| Lock { owner, file, range: *range, kind: *kind }).collect();
        let is_granted = self.take(&locks);
        if !is_granted && !may_wait {
            return Some(Err(HandleRefusal::Lock(LockRefusal::NotGranted)));
        }
        if is_granted && !self.is_in_entry(&locks) {
            return Some(Ok(()));
        }
        self.claims.push(Claim { key, locks, is_queued: !is_granted });
        None
    }

    pub fn unlock(&mut self, owner: Key, range: LockRange) -> Result<(), HandleRefusal> {
        let named = |kind| move |lock: &Lock| lock.owner == owner && lock.range == range && lock.kind == kind;
        let place = |kind| self.locks.iter().position(named(kind));
        let found = place(LockKind::Exclusive).or_else(|| place(LockKind::Shared));
        self.locks.remove(found.ok_or(HandleRefusal::Lock(LockRefusal::NotLocked))?);
        Ok(())
    }

    /// A range that the handle has locked, if there is any.
    pub fn locked_by(&self, owner: Key) -> Option<LockRange> {
        self.locks.iter().find(|lock| lock.owner == owner).map(|lock| lock.range)
    }

    pub fn withdraw_lock(&mut self, key: Key) {
        let claim = self.claims.remove(self.claims.iter().position(|claim| claim.key == key).unwrap());
        if claim.is_queued {
            return;
        }
        for mine in claim.locks {
            let exclusive = |lock: &Lock| lock.kind == LockKind::Exclusive && overlaps(lock, &mine);
            if mine.kind == LockKind::Exclusive || !self.locks.iter().any(exclusive) {
                _ = self.unlock(mine.owner, mine.range);
            }
        }
    }

    pub fn check_io(&self, owner: Key, file: u64, range: LockRange, transfer: Transfer) -> Result<(), HandleRefusal> {
        let mine = Lock { owner, file, range, kind: LockKind::Shared };
        let met = |lock: &Lock| {
            let is_kept = match lock.kind {
                LockKind::Exclusive => lock.owner != owner,
                LockKind::Shared => transfer == Transfer::Write,
            };
            is_kept && overlaps(lock, &mine)
        };
        if self.locks.iter().any(met) { Err(HandleRefusal::Lock(LockRefusal::Conflict)) } else { Ok(()) }
    }

    /// Ends every wait that has no reason any more.
    pub fn settle(&mut self) -> Vec<(Key, Outcome)> {
        let mut ended = self.settle_outdated();
        ended.extend(self.settle_opens());
        ended.extend(self.settle_locks());
        ended
    }

    fn settle_outdated(&mut self) -> Vec<(Key, Outcome)> {
        let (wait, end) = std::mem::take(&mut self.outdated).into_iter().partition(|one| self.is_outdated(one));
        self.outdated = wait;
        let end: Vec<ModelOpen> = end;
        end.iter().map(|one| (one.key, Outcome::Open(Err(OpenRefusal::LookAgain)))).collect()
    }

    fn settle_opens(&mut self) -> Vec<(Key, Outcome)> {
        let mut ended = Vec::new();
        for mut handle in std::mem::take(&mut self.handles) {
            let ends = !handle.is_told && !self.is_beside_entry(&handle);
            if ends && self.pending.contains(&handle.file) {
                ended.push((handle.key, Outcome::Open(Err(OpenRefusal::DeletePending))));
                continue;
            }
            if ends {
                ended.push((handle.key, Outcome::Open(Ok(()))));
                handle.is_told = true;
            }
            self.handles.push(handle);
        }
        ended
    }

    fn settle_locks(&mut self) -> Vec<(Key, Outcome)> {
        let mut ended = Vec::new();
        for mut claim in std::mem::take(&mut self.claims) {
            let is_open = self.handles.iter().any(|handle| handle.key == claim.locks[0].owner);
            claim.is_queued = claim.is_queued && is_open && !self.take(&claim.locks);
            if !is_open {
                ended.push((claim.key, Outcome::Lock(Err(HandleRefusal::Closed))));
            } else if !claim.is_queued && !self.is_in_entry(&claim.locks) {
                ended.push((claim.key, Outcome::Lock(Ok(()))));
            } else {
                self.claims.push(claim);
            }
        }
        ended
    }

    fn take(&mut self, wanted: &[Lock]) -> bool {
        let before = self.locks.len();
        for new in wanted {
            let stands_against = |held: &Lock| match (held.kind, new.kind) {
                (LockKind::Shared, LockKind::Shared) => false,
                (LockKind::Exclusive, LockKind::Shared) => held.owner != new.owner && overlaps(held, new),
                (_, LockKind::Exclusive) => overlaps(held, new),
            };
            if self.locks.iter().any(stands_against) {
                self.locks.truncate(before);
                return false;
            }
            self.locks.push(*new);
        }
        true
    }

    fn is_outdated(&self, request: &ModelOpen) -> bool {
        self.entries.iter().any(|entry| {
            let moves = matches!(entry.access, RestAccess::Delete | RestAccess::Rename | RestAccess::AcquireLease);
            let is_itself = entry.file == request.file && moves && entry.access.conflicts_with(request.open);
            is_itself || (entry.is_tree && request.above.contains(&entry.file))
        })
    }

    fn is_beside_entry(&self, open: &ModelOpen) -> bool {
        self.entries.iter().any(|entry| entry.file == open.file && entry.access.conflicts_with(open.open))
    }

    fn is_in_entry(&self, locks: &[Lock]) -> bool {
        self.entries.iter().any(|entry| locks.iter().any(|lock| meets(entry, lock)))
    }
}

/// Ranges in the test are never empty.
fn overlaps(one: &Lock, other: &Lock) -> bool {
    let ends_before = |one: &Lock, other: &Lock| one.range.offset() + one.range.length() <= other.range.offset();
    one.file == other.file && !ends_before(one, other) && !ends_before(other, one)
}

fn meets(entry: &ModelEntry, lock: &Lock) -> bool {
    entry.span.is_some_and(|span| {
        let range = super::range(span.offset, span.length);
        let whole = Lock { owner: 0, file: entry.file, range, kind: LockKind::Shared };
        (lock.kind == LockKind::Exclusive || span.transfer == Transfer::Write) && overlaps(&whole, lock)
    })
}
