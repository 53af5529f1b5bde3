//! The rows of the File service.
//!
//! | space | key | row |
//! |---|---|---|
//! | `SHARE` | account, name | [`Share`] |
//! | `SHARE_DELETED` | account, name, version | [`DeletedShare`] |
//! | `SHARE_SNAPSHOT` | share generation, time | [`ShareSnapshot`] |
//! | `ENTRY` | share generation, directory id, folded name | [`Entry`] |
//! | `PLACE` | share generation, node id | [`NodePlace`] |
//! | `PAST_ENTRY` | share generation, directory id, folded name, epoch of a snapshot | [`Entry`] as snapshots up to that one see it; of a file that has several names: its id, no name, and the [`Node`] |
//! | `KEPT_ENTRY` | share generation, epoch of a snapshot, directory id, folded name | nothing: which past entries go with the snapshot |
//! | `SHARE_USAGE` | share generation | [`Usage`] |
//! | `LINKED_FILE` | share generation, node id | [`Node`] of a file that has several names; their `ENTRY` rows are [`HardLink`] |
//! | `PERMISSION` | share generation, key of the descriptor | the descriptor in its binary form |
//! | `SMB_OWNER`, `SMB_SHARE` | nothing; account, name | see [`crate::owner`] |
//!
//! A directory's entries are keyed by its id, so a rename moves one row and everything below goes along.

mod attributes;
mod keys;
mod links;
mod nfs;
mod node;
mod share;
mod snapshot;
mod usage;

use engine::Stop;

use crate::error::FileError;

pub use attributes::Attributes;
pub use keys::*;
pub use links::{Entry, HardLink, LINKS_MAX, Links};
pub use nfs::{FileMode, NfsProperties};
pub use node::{FileState, FormerPlace, Node, NodeKind, NodePlace, no_lease};
pub use share::{
    AccessTier, DeletedShare, Protocol, Provisioned, RootSquash, Share, ShareGuard, existing_share, find_guard,
    find_share, guard,
};
pub use snapshot::{SNAPSHOTS_MAX, ShareSnapshot, SnapshotRows, existing_snapshot, snapshot_rows, snapshots};
pub use usage::{Usage, find_usage};

/// Why a decision ends without changes.
pub type Halt = Stop<FileError>;

pub fn refuse(error: FileError) -> Halt {
    Stop::Refused(error)
}
