//! How much of the disk may still be used, and for what.
//!
//! Growing writes end at a reserve, and sooner when compaction is behind and will need more than that. What is left belongs
//! to deletes and to what gives space back: their log, the rows they are written out as, compaction, and the collector's
//! copies. So a full disk can always be emptied.

use std::sync::atomic::Ordering;

use crate::folder::Folder;
use crate::sync::{AtomicBool, AtomicU64};
use crate::tree::TABLES_AT_ONCE;

/// The reserve is never more than this share of the disk, so that a small disk can be used, too.
const RESERVE_SHARE: u64 = 4;
/// The collector leaves this share of the reserve untouched.
const KEPT_SHARE: u64 = 4;
/// Tables and logs take at most this share of the disk each, and tables at most this share of the reserve: their copies must fit
/// into it, and leave half of it to logs and flushes.
const TABLE_SHARE: u64 = 64;
const TABLE_SHARE_OF_RESERVE: u64 = 2 * TABLES_AT_ONCE;
const LOG_SHARE: u64 = 32;
const TABLE_BYTES: std::ops::RangeInclusive<u64> = 4 << 20..=64 << 20;
const LOG_BYTES_MIN: u64 = 4 << 20;

/// What is known of the disk's free space.
#[derive(Debug)]
pub struct Space {
    total: u64,
    reserve: u64,
    /// How much may be written until the disk must be looked at again.
    unlooked: AtomicU64,
    full: AtomicBool,
}

impl Space {
    /// Of a disk that has not been looked at yet.
    pub fn new(folder: &Folder, reserve_bytes: u64) -> Space {
        let total = folder.disk().total_bytes(folder.path()).unwrap_or_else(|error| {
            tracing::warn!(%error, "the size of the disk is not known");
            u64::MAX
        });
        let reserve = reserve_bytes.min(total / RESERVE_SHARE);
        Space { total, reserve, unlooked: AtomicU64::new(0), full: AtomicBool::new(false) }
    }

    /// The size of the tree's tables. One round of compaction needs room for several.
    pub fn table_bytes(&self) -> u64 {
        (self.total / TABLE_SHARE)
            .min(self.reserve / TABLE_SHARE_OF_RESERVE)
            .clamp(*TABLE_BYTES.start(), *TABLE_BYTES.end())
    }

    /// What copies of contents must leave free.
    pub fn kept_from_the_collector(&self) -> u64 {
        self.reserve / KEPT_SHARE
    }

    pub fn log_bytes(&self, wanted: u64) -> u64 {
        wanted.min((self.total / LOG_SHARE).max(LOG_BYTES_MIN))
    }

    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// A client was told that the disk is full.
    pub fn was_full(&self) {
        self.unlooked.store(0, Ordering::Release);
        if !self.full.swap(true, Ordering::AcqRel) {
            tracing::warn!("the disk is full");
        }
    }

    /// How much must be free for growing writes. `needed` is what flushes and compaction will write before they give anything
    /// back; logs and STATE need room beside it.
    fn least_free(&self, needed: u64) -> u64 {
        self.reserve.max(needed.saturating_add(self.reserve / KEPT_SHARE))
    }

    /// Looks at the disk, with what flushes and compaction will need of it. Returns how much is free.
    pub fn look(&self, folder: &Folder, needed: u64) -> Option<u64> {
        let free = folder.disk().free_bytes(folder.path()).ok()?;
        let least = self.least_free(needed);
        let full = free < least;
        self.unlooked.store(free.saturating_sub(least), Ordering::Release);
        if self.full.swap(full, Ordering::AcqRel) != full {
            tracing::warn!(free, full, "free disk space");
        }
        Some(free)
    }

    /// Whether a growing write of so many bytes may be made. Looks at the disk once what was free then may be used up.
    pub fn takes(&self, folder: &Folder, bytes: u64, needed: impl FnOnce() -> u64) -> bool {
        let left = |left: u64| left.checked_sub(bytes);
        if self.unlooked.fetch_update(Ordering::AcqRel, Ordering::Acquire, left).is_err() {
            self.look(folder, needed());
        }
        !self.is_full()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(total: u64, reserve_bytes: u64) -> Space {
        let reserve = reserve_bytes.min(total / RESERVE_SHARE);
        Space { total, reserve, unlooked: AtomicU64::new(0), full: AtomicBool::new(false) }
    }

    /// Rows that are deleted give their space back by compaction alone. It must fit where growing writes have ended, and
    /// leave room for logs and flushes.
    #[test]
    fn a_round_of_compaction_fits_into_the_reserve_of_any_disk() {
        const MIB: u64 = 1 << 20;
        let sizes = [256 * MIB, 512 * MIB, 1 << 30, 2 << 30, 4 << 30, 8 << 30, 1 << 40, u64::MAX];
        for (total, reserve) in sizes.iter().flat_map(|total| [64 * MIB, 512 * MIB].map(|reserve| (*total, reserve))) {
            let space = of(total, reserve);
            let needed = TABLES_AT_ONCE * space.table_bytes();
            assert!(needed <= space.reserve / 2, "{needed} of {} on a disk of {total}", space.reserve);
            assert_eq!(space.least_free(needed), space.reserve, "compaction that is not behind asks for no more");
        }
    }

    #[test]
    fn growing_writes_leave_what_compaction_will_need() {
        let space = of(1 << 40, 512 << 20);
        assert_eq!(space.least_free(0), 512 << 20);
        assert_eq!(space.least_free(2 << 30), (2 << 30) + (128 << 20));
    }
}
