//! Who has what open: the one table that REST operations and SMB opens both enter.
//!
//! It lives in the memory of one process and knows neither rows nor packets. The rules are values in
//! [`concurrency::share_mode`], [`concurrency::range_lock`] and [`concurrency::caching`]; this module keeps what they are asked about and
//! wakes what waits.
//!
//! - [`Entry`]: a REST operation at work on a file, from the check to the end of its commit. It is admitted or refused
//!   and never waits for an SMB client.
//! - [`Handle`]: an SMB open, with its byte-range locks. Beside REST operations at work it waits instead of being
//!   refused: the new handle or lock is in the table at once, so later REST operations meet it, and its client is told
//!   when the earlier ones have left. So a stream of requests cannot keep it out for ever.
//! - `caches`: oplocks by handle and leases by client and key, which handles of one file share.
//! - [`Turn`]: the right to look at rows and then at the table, one at a time for each name.
//! - [`Removal`]: a file whose last handle closed and that is to be deleted.
//! - [`events`]: changes of directories, for clients that watch them.
//!
//! What always holds:
//!
//! - Everything about one share is behind one mutex, so whether something is open below a directory, and whether a
//!   rename of a directory above is at work, is one look. Shares are spread over shards. No mutex is held over an
//!   `await` or while a [`Holder`] is called.
//! - Everything entered is a guard: dropped, it leaves the table and wakes what waits for it. Dropping a future
//!   withdraws what it asked for. A slot that is empty is removed.
//! - Turns are taken before entries and opens, never while one of those is held, so no two operations wait for each
//!   other.
//! - Nothing here waits for a client with an entry, an open or a turn held: what must wait for the acknowledgement of a break is refused
//!   with a [`BreakWait`], and its caller begins again when that has ended.
//! - Time limits are for the caller, who drops the future; only a break that its client does not acknowledge ends by itself, after
//!   [`BREAK_PATIENCE`].

mod caches;
mod entry;
pub mod events;
mod handle;
mod handles;
mod lock;
mod open;
mod refusal;
mod slot;
mod table;
mod tally;
#[cfg(test)]
mod tests;
mod turn;

use std::collections::HashSet;
use std::sync::Arc;

use concurrency::caching::{AcknowledgementRefusal, Caching};
use concurrency::share_mode::{Access, Open};
use tokio::time::Instant;

pub use caches::{BREAK_PATIENCE, BreakWait, Broken, CachingRequest, GrantedCaching, LeaseName, LeaseV2};
pub use entry::{Entry, Span};
pub use handle::{Handle, Judgement, Removal};
pub use handles::{ForcedClose, HandleInfo, HandlePage, Scope, Which};
pub use open::{Client, Holder, OpenRequest, Place};
pub use refusal::{HandleRefusal, OpenRefusal, Refusal};
pub use turn::{NameKey, Turn};

use table::Table;
use turn::Turns;

/// Handles of one file or directory, as Azure Files allows.
pub const OPENS_PER_FILE_MAX: usize = 2_000;
/// Handles of the root directory of a share, as Azure Files allows.
pub const OPENS_PER_ROOT_MAX: usize = 10_000;
/// REST operations at work on one file. Far above what the server lets in at once.
pub const ENTRIES_PER_FILE_MAX: usize = 16_384;
/// Operations that have a turn at one name or wait for it.
pub const TURNS_PER_NAME_MAX: usize = 4_096;

/// A file or directory of a share. The id alone is unique in the whole store; the share says where in the table it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId {
    /// The generation of the share, which is also the id of its root directory.
    pub share: u64,
    pub id: u64,
}

impl FileId {
    pub fn is_root(self) -> bool {
        self.id == self.share
    }
}

/// The number of a handle, as List Handles shows it. Never 0 and never given out twice by one process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HandleId(pub u64);

/// Whether a file or directory is meant alone or with everything below it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reach {
    Node,
    Tree,
}

/// The table. A clone is the same table.
#[derive(Clone, Debug)]
pub struct Opens {
    table: Arc<Table>,
    turns: Arc<Turns>,
}

impl Opens {
    /// `random` is where the numbers of handles begin, so that those of an earlier process are unlikely to be met again.
    pub fn new(random: u64) -> Opens {
        Opens { table: Arc::new(Table::new(random)), turns: Arc::new(Turns::default()) }
    }

    /// Whether the file is deleted as soon as its last handle closes, or is being deleted for that reason.
    pub fn is_delete_pending(&self, file: FileId) -> bool {
        self.table.with(file.share, |share| share.is_pending(file.id))
    }

    /// Those of `ids` that are delete-pending: List leaves them out.
    pub fn pending_among(&self, share: u64, ids: &[u64]) -> HashSet<u64> {
        self.table.with(share, |share| share.pending_among(ids))
    }

    /// Whether something may be renamed to a name in the directory: for that the directory is opened to add to it, sharing reads and
    /// writes (MS-FSA, FileRenameInformation). So a handle of the directory with DELETE access stands against it, and one that does
    /// not share writes; one that only does not share deletion does not.
    pub fn check_rename_into(&self, directory: FileId) -> Result<(), Refusal> {
        let renamer = Open { access: Access::WRITE, sharing: Access::READ.and(Access::WRITE) };
        let judge = |slot: &slot::Slot| slot.check_beside(renamer);
        self.table.with(directory.share, |share| share.slot(directory.id).map_or(Ok(()), judge))
    }

    /// Waits until the breaks have ended: acknowledged, given up with the handle, or too late. Nothing must be held meanwhile that the
    /// clients could need to answer.
    pub async fn breaks_ended(&self, wait: BreakWait) {
        let look = |share: &mut table::Share| share.while_breaking(wait, Instant::now());
        while let Some((changed, end)) = self.table.with(wait.file.share, look) {
            // After the end the next look ends the break.
            _ = tokio::time::timeout_at(end, changed).await;
        }
    }

    /// A client has answered the break of a lease, and keeps `kept`.
    pub fn acknowledge_lease(&self, name: LeaseName, kept: Caching) -> Result<(), AcknowledgementRefusal> {
        let file = self.table.leases.file_of(name).ok_or(AcknowledgementRefusal::NotFound)?;
        handle::acknowledge(&self.table, file, caches::CacheKey::Lease(name), kept)
    }

    /// Whether the client has a lease of this name for anything but the file.
    pub fn is_lease_elsewhere(&self, name: LeaseName, file: Option<FileId>) -> bool {
        self.table.leases.file_of(name).is_some_and(|held| Some(held) != file)
    }

    /// A number if no file has a handle and none is to be deleted. If it is the same later, there was neither meanwhile: a read that
    /// was begun and ended in between needed no entry.
    pub fn calm(&self) -> Option<u64> {
        self.table.calm()
    }

    /// A number that changes whenever the rename of a directory of the share begins or ends. An opener that found it the same before its
    /// look at the rows and after its handle was in the table knows that the path led where it says. From then on no directory above
    /// is renamed.
    pub fn moves(&self, share: u64) -> u64 {
        self.table.moves(share)
    }

    /// Whether nothing is open, at work or waiting.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty() && self.turns.is_empty()
    }
}
