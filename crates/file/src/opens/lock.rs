//! Byte-range locks of a handle: asked for, waited for, given up.

use concurrency::caching::Contention;
use concurrency::range_lock::{LockKind, LockRange, WaitId};

use super::slot::{Requested, Slot, Wakes};
use super::{Handle, HandleRefusal};

impl Handle {
    /// Locks the range, and waits while another lock overlaps it. Requests are granted in the order in which they were
    /// asked for. Dropping the future withdraws the request.
    pub async fn lock(&self, range: LockRange, kind: LockKind) -> Result<(), HandleRefusal> {
        let wait = self.table.next_wait();
        let requested = self.on_slot(|slot| Ok(slot.lock_or_wait(wait, self.id, (range, kind))?))?;
        self.contend(Contention::Change)?;
        let claim = Claim { handle: self, wait: Some(wait), ranges: &[(range, kind)], is_told: false };
        if let Requested::Waiting(granted) = requested {
            granted.await.map_err(|_| HandleRefusal::Closed)?;
        }
        claim.told().await
    }

    /// Locks all of the ranges or none. It is refused if another lock overlaps, and waits only for REST operations that
    /// are at work on the ranges. Dropping the future gives the locks back.
    pub async fn lock_now(&self, ranges: &[(LockRange, LockKind)]) -> Result<(), HandleRefusal> {
        self.on_slot(|slot| Ok(slot.lock_all(self.id, ranges)?))?;
        self.contend(Contention::Change)?;
        Claim { handle: self, wait: None, ranges, is_told: false }.told().await
    }

    /// Gives up one lock of exactly this range, an exclusive one first.
    pub fn unlock(&self, range: LockRange) -> Result<(), HandleRefusal> {
        self.on_slot(|slot| Ok(slot.unlock(self.id, range)?)).map(Wakes::wake)
    }

    /// How many locks it holds.
    pub fn lock_count(&self) -> usize {
        self.on_slot(|slot| Ok(slot.lock_count(self.id))).unwrap_or_default()
    }

    fn on_slot<R>(&self, act: impl FnOnce(&mut Slot) -> Result<R, HandleRefusal>) -> Result<R, HandleRefusal> {
        let closed = Err(HandleRefusal::Closed);
        self.table.with(self.file.share, |share| share.slot_of(self.file, self.id).map_or(closed, act))
    }
}

/// Locks that are in the table or wait there, and that the client does not know of yet.
struct Claim<'a> {
    handle: &'a Handle,
    wait: Option<WaitId>,
    ranges: &'a [(LockRange, LockKind)],
    is_told: bool,
}

impl Claim<'_> {
    /// The locks are held. Waits for REST operations that were at work on the ranges before.
    async fn told(mut self) -> Result<(), HandleRefusal> {
        let Handle { table, file, id } = self.handle;
        let inside = |slot: &mut Slot| slot.transient_in(self.ranges);
        table.wait_while(file.share, |share| share.slot_of(*file, *id).and_then(inside)).await;
        self.is_told = true;
        self.handle.on_slot(|_still_open| Ok(()))
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.is_told {
            return;
        }
        let withdrawn = self.handle.on_slot(|slot| {
            if self.wait.is_some_and(|wait| slot.cancel(wait)) {
                return Ok(Vec::new());
            }
            Ok(self.ranges.iter().map(|lock| slot.withdraw(self.handle.id, *lock)).collect())
        });
        // A handle that was closed has no locks any more.
        withdrawn.unwrap_or_default().into_iter().for_each(Wakes::wake);
    }
}
