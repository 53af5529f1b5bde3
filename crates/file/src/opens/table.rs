//! The shares of the table behind their mutexes, and what concerns several slots of one share.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concurrency::caching::{AcknowledgementRefusal, Contention};
use concurrency::range_lock::WaitId;
use tokio::sync::futures::OwnedNotified;
use tokio::time::Instant;

use super::caches::{BreakWait, CacheKey, Contender, LeaseIndex, Notice, Notices};
use super::entry::Work;
use super::open::{OpenHandle, OpenRequest, Place};
use super::slot::{Slot, Wakes};
use super::{FileId, HandleId, HandleRefusal, OpenRefusal, Reach, Refusal};

/// Far more than cores, so that two busy shares rarely meet.
const SHARDS: usize = 64;

#[derive(Debug)]
pub(super) struct Table {
    shards: Vec<Mutex<HashMap<u64, Share>>>,
    next_handle: AtomicU64,
    /// Names entries and waiting lock requests.
    next_ticket: AtomicU64,
    /// Shares with a handle or with a file to be deleted.
    restless: AtomicU64,
    /// How often a share has become one of them.
    unrests: AtomicU64,
    /// How often the rename of a directory has begun or ended, by shard.
    moves: Vec<AtomicU64>,
    pub leases: LeaseIndex,
}

impl Table {
    pub fn new(random: u64) -> Table {
        Table {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            // The upper half is left free: numbers rise for as long as the process runs.
            next_handle: AtomicU64::new((random >> 1).max(1)),
            next_ticket: AtomicU64::new(0),
            restless: AtomicU64::new(0),
            unrests: AtomicU64::new(0),
            moves: (0..SHARDS).map(|_| AtomicU64::new(0)).collect(),
            leases: LeaseIndex::default(),
        }
    }

    pub fn next_handle(&self) -> HandleId {
        HandleId(self.next_handle.fetch_add(1, Ordering::Relaxed))
    }

    pub fn next_ticket(&self) -> u64 {
        self.next_ticket.fetch_add(1, Ordering::Relaxed)
    }

    /// A rename of a directory with everything below begins or ends.
    pub fn moving(&self, share: u64) {
        self.moves[shard_of(share)].fetch_add(1, Ordering::SeqCst);
    }

    /// See [`Opens::moves`](super::Opens::moves).
    pub fn moves(&self, share: u64) -> u64 {
        self.moves[shard_of(share)].load(Ordering::SeqCst)
    }

    pub fn next_wait(&self) -> WaitId {
        WaitId(self.next_ticket())
    }

    /// One look at a share, or one change of it. A share that is empty afterwards is removed.
    pub fn with<R>(&self, share: u64, look: impl FnOnce(&mut Share) -> R) -> R {
        let mut shard = self.shard(share);
        let found = shard.entry(share).or_default();
        let was_restless = found.is_restless();
        let answer = look(found);
        match (was_restless, found.is_restless()) {
            (false, true) => {
                self.restless.fetch_add(1, Ordering::SeqCst);
                self.unrests.fetch_add(1, Ordering::SeqCst);
            }
            (true, false) => _ = self.restless.fetch_sub(1, Ordering::SeqCst),
            (true, true) | (false, false) => {}
        }
        if found.is_empty() {
            shard.remove(&share);
        }
        answer
    }

    /// See [`Opens::calm`](super::Opens::calm).
    pub fn calm(&self) -> Option<u64> {
        let unrests = self.unrests.load(Ordering::SeqCst);
        (self.restless.load(Ordering::SeqCst) == 0).then_some(unrests)
    }

    /// Looks again after each change until there is no hindrance any more.
    pub async fn wait_while(&self, share: u64, hindrance: impl Fn(&mut Share) -> Option<OwnedNotified>) {
        while let Some(changed) = self.with(share, &hindrance) {
            changed.await;
        }
    }

    /// Tells clients of breaks. One that cannot be told has lost what it cached.
    pub fn tell(&self, notices: Notices) {
        for Notice { file, key, number, holder, broken } in notices {
            if !holder.broken(broken) {
                self.with(file.share, |share| share.expire(file.id, key, number)).wake();
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).is_empty())
    }

    fn shard(&self, share: u64) -> MutexGuard<'_, HashMap<u64, Share>> {
        self.shards[shard_of(share)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shard_of(share: u64) -> usize {
    // Ids of one tick are close to each other; the odd factor spreads them.
    let mixed = share.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    mixed as usize % SHARDS
}

/// What is open and at work in one share.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// By file id. Directories above an open file have a slot, too: it counts what is open below.
    slots: HashMap<u64, Slot>,
    /// The file of each handle.
    handles: BTreeMap<HandleId, u64>,
    /// Files to be deleted when the last handle closes, and those that are being deleted for that reason.
    pending: HashSet<u64>,
}

/// Why there is no handle yet.
pub(super) enum NotOpened {
    Refused(OpenRefusal),
    /// A REST operation is at work that changes what the caller read. See [`Share::outdating`].
    Outdated,
}

impl From<OpenRefusal> for NotOpened {
    fn from(refusal: OpenRefusal) -> NotOpened {
        NotOpened::Refused(refusal)
    }
}

/// What is left of a handle that was closed.
pub(super) struct ClosedHandle {
    pub handle: OpenHandle,
    /// It was the last one of a file that is to be deleted. The file stays pending until [`Share::unmark`].
    pub must_delete: bool,
    pub wakes: Wakes,
}

impl Share {
    pub fn is_pending(&self, id: u64) -> bool {
        self.pending.contains(&id)
    }

    /// Whether it is being judged for deletion. See [`Handle::judge_deletion`](super::Handle::judge_deletion).
    pub fn is_judged(&self, id: u64) -> bool {
        self.slots.get(&id).is_some_and(|slot| slot.judged > 0)
    }

    /// A judgement for deletion has ended.
    pub fn end_judgement(&mut self, id: u64) {
        let slot = self.slots.get_mut(&id).expect("a file has a slot while it is judged");
        slot.judged -= 1;
        self.tidy(id);
    }

    /// The next change, while an operation is at work that began before.
    pub fn while_older(&mut self, id: u64, ticket: u64) -> Option<OwnedNotified> {
        self.slots.get_mut(&id).and_then(|slot| slot.while_older(ticket))
    }

    pub fn pending_among(&self, ids: &[u64]) -> HashSet<u64> {
        if self.pending.is_empty() {
            return HashSet::new();
        }
        ids.iter().copied().filter(|id| self.pending.contains(id)).collect()
    }

    pub fn slot(&self, id: u64) -> Option<&Slot> {
        self.slots.get(&id)
    }

    /// The slot in which a cache is.
    pub fn slot_mut(&mut self, id: u64) -> Result<&mut Slot, AcknowledgementRefusal> {
        self.slots.get_mut(&id).ok_or(AcknowledgementRefusal::NotFound)
    }

    /// The slot of the file, if the handle is still open.
    pub fn slot_of(&mut self, file: FileId, handle: HandleId) -> Option<&mut Slot> {
        self.slots.get_mut(&file.id).filter(|slot| slot.handles.contains_key(&handle))
    }

    /// The handles of the share behind `after`, in the order of their numbers, each with its file.
    pub fn handles_after(&self, after: HandleId) -> impl Iterator<Item = (HandleId, u64)> {
        self.handles.range((Bound::Excluded(after), Bound::Unbounded)).map(|(handle, file)| (*handle, *file))
    }

    pub fn file_of(&self, handle: HandleId) -> Option<u64> {
        self.handles.get(&handle).copied()
    }

    /// A REST operation begins, or is refused. What SMB clients cache of the file is broken, unless it does not matter to the operation.
    pub fn enter(&mut self, file: FileId, work: Work, breaks: bool) -> (Result<(), Refusal>, Notices) {
        if self.is_pending(file.id) {
            return (Err(Refusal::DeletePending), Notices::default());
        }
        let (number, is_tree) = (work.ticket, work.is_tree());
        let slot = self.slots.entry(file.id).or_default();
        let judged = slot.judge(&work);
        let contention = match judged {
            Ok(()) => Some(work.access.contention()).filter(|_| breaks),
            Err(Refusal::SharingViolation) => Some(Contention::Conflict),
            Err(_) => None,
        };
        let contend = |contention| slot.contend(file, Contender::new(contention, None), number);
        let (mut notices, mut waits) = contention.map(contend).unwrap_or_default();
        let mut reach = Reach::Node;
        if is_tree && judged == Err(Refusal::SharingViolation) {
            let (below, waits_below) = self.contend_below(file, number);
            notices.extend(below);
            waits |= waits_below;
            reach = Reach::Tree;
        }
        if waits {
            return (Err(Refusal::Breaking(BreakWait { file, reach, until: number })), notices);
        }
        match judged {
            Ok(()) => self.slots.entry(file.id).or_default().begin(work),
            Err(_) => self.tidy(file.id),
        }
        (judged, notices)
    }

    /// Whatever is open below a directory may be open only because its client keeps the handle for later.
    fn contend_below(&mut self, directory: FileId, number: u64) -> (Notices, bool) {
        let (mut notices, mut waits) = (Notices::default(), false);
        for (id, slot) in &mut self.slots {
            if slot.is_below(directory.id) {
                let file = FileId { share: directory.share, id: *id };
                let (told, must_wait) = slot.contend(file, Contender::new(Contention::Conflict, None), number);
                notices.extend(told);
                waits |= must_wait;
            }
        }
        (notices, waits)
    }

    /// A rename through a handle begins. Its access was judged when it was opened; only opens below stand against it, and handles that
    /// other clients keep for later.
    pub fn enter_by_handle(
        &mut self,
        file: FileId,
        handle: HandleId,
        work: Work,
    ) -> (Result<(), HandleRefusal>, Notices) {
        let (number, is_pending) = (work.ticket, self.is_pending(file.id));
        let Some(slot) = self.slot_of(file, handle) else {
            return (Err(HandleRefusal::Closed), Notices::default());
        };
        if is_pending {
            return (Err(HandleRefusal::DeletePending), Notices::default());
        }
        let is_open_below = slot.below > 0;
        let (notices, waits) = match is_open_below {
            true => self.contend_below(file, number),
            false => slot.contend_by(file, handle, Contention::Rename, number),
        };
        if waits {
            let reach = if is_open_below { Reach::Tree } else { Reach::Node };
            return (Err(HandleRefusal::Breaking(BreakWait { file, reach, until: number })), notices);
        }
        if is_open_below {
            return (Err(HandleRefusal::OpenBelow), notices);
        }
        self.slots.entry(file.id).or_default().begin(work);
        (Ok(()), notices)
    }

    /// The client of a cache cannot be told of a break.
    pub fn expire(&mut self, id: u64, key: CacheKey, number: u64) -> Wakes {
        self.slots.get_mut(&id).map(|slot| slot.expire(key, number)).unwrap_or_default()
    }

    /// The next change, and when the first break is to end, while the breaks are in progress.
    pub fn while_breaking(&mut self, wait: BreakWait, now: Instant) -> Option<(OwnedNotified, Instant)> {
        let BreakWait { file, reach, until } = wait;
        match reach {
            Reach::Node => self.slots.get_mut(&file.id)?.while_breaking(until, now),
            Reach::Tree => {
                let mut slots = self.slots.iter_mut().filter(|(id, slot)| **id == file.id || slot.is_below(file.id));
                slots.find_map(|(_, slot)| slot.while_breaking(until, now))
            }
        }
    }

    /// A REST operation ends.
    pub fn leave(&mut self, id: u64, ticket: u64) -> Wakes {
        let slot = self.slots.get_mut(&id).expect("a file has a slot while an entry is at work");
        let wakes = slot.end(ticket);
        self.tidy(id);
        wakes
    }

    /// Puts the new handle into the table, unless it is refused or has to begin again. REST operations that stand
    /// against it may still be at work: see [`Slot::transient_against`]. `number` is that of the breaks that begin.
    pub fn try_open(
        &mut self,
        handle: HandleId,
        request: &OpenRequest,
        number: u64,
        leases: &LeaseIndex,
    ) -> (Result<(), NotOpened>, Notices) {
        let file = request.file;
        let lease = request.caching.lease();
        if lease.and_then(|name| leases.file_of(name)).is_some_and(|held| held != file) {
            return (Err(OpenRefusal::LeaseElsewhere.into()), Notices::default());
        }
        let judged = self.judge_open(request);
        let contention = match &judged {
            Ok(()) if request.also.is_none() => Contention::Open,
            Ok(()) => Contention::Overwrite,
            // Against a REST lease nothing helps.
            Err(NotOpened::Refused(OpenRefusal::SharingViolation)) if !request.meets_rest_lease() => {
                Contention::Conflict
            }
            Err(_) => return (judged, Notices::default()),
        };
        let contender = Contender {
            contention,
            own: lease.map(CacheKey::Lease),
            is_open: true,
            has_waited: request.has_waited,
            mask: Some(request.mask).filter(|_| contention == Contention::Open),
        };
        let contended = self.slots.get_mut(&file.id).map(|slot| slot.contend(file, contender, number));
        let (notices, waits) = contended.unwrap_or_default();
        if waits {
            let wait = BreakWait { file, reach: Reach::Node, until: number };
            return (Err(OpenRefusal::Breaking(wait).into()), notices);
        }
        if judged.is_ok() {
            self.handles.insert(handle, file.id);
            let slot = self.slots.entry(file.id).or_default();
            slot.add(handle, OpenHandle::new(handle, request), request.caching);
            self.count_below(&request.place);
            if let Some(name) = lease {
                leases.insert(name, file);
            }
        }
        (judged, notices)
    }

    /// The client is about to be told of the handle. While it waited, the file may have been marked for deletion.
    pub fn finish_open(&mut self, file: FileId, handle: HandleId) -> Result<(), OpenRefusal> {
        if self.is_pending(file.id) {
            return Err(OpenRefusal::DeletePending);
        }
        let slot = self.slots.get_mut(&file.id).expect("a file has a slot while a handle is in it");
        slot.tell(handle);
        Ok(())
    }

    /// The order is that of SMB: delete-pending, then share modes.
    fn judge_open(&self, request: &OpenRequest) -> Result<(), NotOpened> {
        let FileId { id, .. } = request.file;
        if self.is_pending(id) || request.place.above.iter().any(|above| self.is_pending(*above)) {
            return Err(OpenRefusal::DeletePending.into());
        }
        if self.outdating(request).is_some() {
            return Err(NotOpened::Outdated);
        }
        let slot = self.slots.get(&id);
        slot.unwrap_or(&Slot::default()).judge_open(request).map_err(NotOpened::Refused)
    }

    /// The slot of a REST operation that changes what the caller of an open has read: one on a directory above with
    /// all that is below, or one on the file itself that moves it, deletes it or leases it.
    fn outdating(&self, request: &OpenRequest) -> Option<u64> {
        let is_moving = |id: &&u64| self.slots.get(id).is_some_and(|slot| slot.trees > 0);
        let above = request.place.above.iter().find(is_moving).copied();
        let itself = || self.slots.get(&request.file.id).is_some_and(|slot| slot.is_outdating(request.judged()));
        above.or_else(|| itself().then_some(request.file.id))
    }

    /// The next change of what outdates the request; nothing if it is gone.
    pub fn while_outdated(&mut self, request: &OpenRequest) -> Option<OwnedNotified> {
        let id = self.outdating(request)?;
        self.slots.get_mut(&id).map(Slot::next_change)
    }

    /// Removes a handle from the table. If the file is now to be deleted, clients that keep handles of it for later are told. `number` is
    /// that of the breaks.
    pub fn close(
        &mut self,
        file: FileId,
        handle: HandleId,
        number: u64,
        leases: &LeaseIndex,
    ) -> Option<(ClosedHandle, Notices)> {
        let id = file.id;
        let slot = self.slots.get_mut(&id)?;
        let (closed, wakes, lease) = slot.close(handle)?;
        if let Some(name) = lease {
            leases.remove(name);
        }
        let is_last = closed.is_told && !slot.is_open();
        let mut notices = Notices::default();
        if closed.is_told && closed.deletes_on_close {
            self.pending.insert(id);
            (notices, _) = slot.contend(file, Contender::new(Contention::Rename, None), number);
        }
        self.handles.remove(&handle);
        self.tidy(id);
        self.uncount_below(&closed.place);
        Some((ClosedHandle { handle: closed, must_delete: is_last && self.is_pending(id), wakes }, notices))
    }

    pub fn mark(&mut self, id: u64) {
        self.pending.insert(id);
    }

    pub fn unmark(&mut self, id: u64) {
        self.pending.remove(&id);
    }

    /// The file or directory has another name or directory now; its handles go along.
    pub fn relocate(&mut self, id: u64, place: &Arc<Place>) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        let moved = slot.handles.values_mut();
        let before: Vec<_> = moved.map(|one| std::mem::replace(&mut one.place, Arc::clone(place))).collect();
        for old in before {
            self.count_below(place);
            self.uncount_below(&old);
        }
    }

    fn count_below(&mut self, place: &Place) {
        for above in &place.above {
            self.slots.entry(*above).or_default().below += 1;
        }
    }

    fn uncount_below(&mut self, place: &Place) {
        for above in &place.above {
            let slot = self.slots.get_mut(above).expect("a directory above an open file has a slot");
            slot.below -= 1;
            self.tidy(*above);
        }
    }

    fn tidy(&mut self, id: u64) {
        if self.slots.get(&id).is_some_and(Slot::is_empty) {
            self.slots.remove(&id);
        }
    }

    /// Whether there is anything that a REST operation could be refused for.
    fn is_restless(&self) -> bool {
        !self.handles.is_empty() || !self.pending.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.handles.is_empty() && self.pending.is_empty()
    }
}

impl Work {
    pub fn is_tree(&self) -> bool {
        self.reach == Reach::Tree
    }
}
