//! How much a share holds: the sum of the lengths of its files, written or not.

use engine::{Changes, Rows, Unread};
use minicbor::{Decode, Encode};
use service::codec;

use super::keys::usage_key;
use super::refuse;
use super::{Halt, ShareGuard};
use crate::error::FileError;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub struct Usage {
    /// The sum of the lengths of all files.
    #[n(0)]
    pub bytes: u64,
    /// The sum of the lengths of files that only snapshots see.
    #[cbor(n(1), default)]
    pub past_bytes: u64,
}

pub fn find_usage(rows: &dyn Rows, generation: u64) -> Result<Usage, Unread> {
    rows.get(&usage_key(generation))?.map_or_else(|| Ok(Usage::default()), |row| codec::decode(&row))
}

/// The same as the changes of a decision have left it so far.
fn pending_usage(rows: &dyn Rows, generation: u64, changes: &Changes) -> Result<Usage, Unread> {
    let key = usage_key(generation);
    match changes.rows.iter().rev().find(|(changed, _)| *changed == key) {
        Some((_, Some(row))) => codec::decode(row),
        Some((_, None)) => Ok(Usage::default()),
        None => find_usage(rows, generation),
    }
}

impl ShareGuard {
    /// Asks for the row that [`ShareGuard::count`] will look at.
    pub fn announce_count(&self, rows: &dyn Rows) {
        rows.prefetch(&[usage_key(self.generation)]);
    }

    /// Counts a file that snapshots still see.
    pub fn count_kept(&self, rows: &dyn Rows, length: u64, changes: &mut Changes) -> Result<(), Unread> {
        if length == 0 {
            return Ok(());
        }
        let usage = pending_usage(rows, self.generation, changes)?;
        let past_bytes = usage.past_bytes.saturating_add(length);
        changes.put(usage_key(self.generation), codec::encode(&Usage { past_bytes, ..usage }));
        Ok(())
    }

    /// Counts a file whose length changes, within the quota. A file that does not grow is never over quota, and a change that
    /// keeps the length does not touch the row.
    pub fn count(&self, rows: &dyn Rows, before: u64, after: u64, changes: &mut Changes) -> Result<(), Halt> {
        if before == after {
            return Ok(());
        }
        let usage = pending_usage(rows, self.generation, changes)?;
        let rest =
            usage.bytes.checked_sub(before).ok_or_else(|| codec::corrupt("a share's usage is below its files"))?;
        let bytes = rest.saturating_add(after);
        if after > before && bytes > self.quota_bytes() {
            return Err(refuse(FileError::ShareSizeLimitReached));
        }
        changes.put(usage_key(self.generation), codec::encode(&Usage { bytes, ..usage }));
        Ok(())
    }
}
