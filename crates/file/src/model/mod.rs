//! The rows of the File service.
//!
//! | space | key | row |
//! |---|---|---|
//! | `SHARE` | account, name | [`Share`] |
//! | `SHARE_DELETED` | account, name, version | [`DeletedShare`] |
//! | `ENTRY` | share generation, directory id, folded name | [`Node`] |
//! | `PLACE` | share generation, node id | [`NodePlace`] |
//! | `SHARE_USAGE` | share generation | [`Usage`] |
//! | `PERMISSION` | share generation, key of the descriptor | the descriptor in its binary form |
//!
//! A directory's entries are keyed by its id, so a rename moves one row and everything below goes along.

mod attributes;
mod keys;
mod nfs;
mod node;
mod share;
mod usage;

use engine::Stop;

use crate::error::FileError;

pub use attributes::Attributes;
pub use keys::*;
pub use nfs::{FileMode, NfsProperties};
pub use node::{FileState, Node, NodeKind, NodePlace};
pub use share::{
    AccessTier, DeletedShare, Protocol, Provisioned, RootSquash, Share, ShareGuard, existing_share, find_guard,
    find_share, guard,
};
pub use usage::{Usage, find_usage};

/// Why a decision ends without changes.
pub type Halt = Stop<FileError>;

pub fn refuse(error: FileError) -> Halt {
    Stop::Refused(error)
}
