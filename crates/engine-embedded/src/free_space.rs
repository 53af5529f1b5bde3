//! How much of the disk may still be used, and by whom.
//!
//! Growing writes end at a reserve. What is left belongs to deletes and to what gives space back: their log, the rows they
//! are written out as, compaction, and the collector's copies. So a full disk can always be emptied.

use std::sync::atomic::Ordering;

use crate::folder::Folder;
use crate::sync::{AtomicBool, AtomicU64};

/// The reserve is never more than this share of the disk, so that a small disk can be used, too.
const RESERVE_SHARE: u64 = 4;
/// Tables and logs take at most this share of the disk each: their copies must fit into the reserve.
const TABLE_SHARE: u64 = 64;
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
        (self.total / TABLE_SHARE).clamp(*TABLE_BYTES.start(), *TABLE_BYTES.end())
    }

    pub fn log_bytes(&self, wanted: u64) -> u64 {
        wanted.min((self.total / LOG_SHARE).max(LOG_BYTES_MIN))
    }

    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// Somebody was told that the disk is full.
    pub fn was_full(&self) {
        self.unlooked.store(0, Ordering::Release);
        if !self.full.swap(true, Ordering::AcqRel) {
            tracing::warn!("the disk is full");
        }
    }

    /// Looks at the disk. Returns how much is free.
    pub fn look(&self, folder: &Folder) -> Option<u64> {
        let free = folder.disk().free_bytes(folder.path()).ok()?;
        let full = free < self.reserve;
        self.unlooked.store(free.saturating_sub(self.reserve), Ordering::Release);
        if self.full.swap(full, Ordering::AcqRel) != full {
            tracing::warn!(free, full, "free disk space");
        }
        Some(free)
    }

    /// Whether a growing write of so many bytes may be made. Looks at the disk once what was free then may be used up.
    pub fn takes(&self, folder: &Folder, bytes: u64) -> bool {
        let left = |left: u64| left.checked_sub(bytes);
        if self.unlooked.fetch_update(Ordering::AcqRel, Ordering::Acquire, left).is_err() {
            self.look(folder);
        }
        !self.is_full()
    }
}
