//! What is stored: the rows of the Blob service, their keys, and what refers to what.
//!
//! - A container is one row by account and name. Its `generation` names everything inside it, so deleting a container
//!   removes one row and its blobs are out of reach at once.
//! - A blob is one head row by generation and name; a listing walks these rows and needs no others.
//! - Contents and block lists are shared by reference. The owner of a reference is the id of one committed version
//!   (`Committed::version`), which every base blob and snapshot has for itself.
//! - Uncommitted blocks hang on a staging id. When Put Block List commits them, the staging id becomes the id of the list,
//!   so the references of the blocks stay as they are.
//! - An append blob is a list of blocks, too, in which every append adds one row. A snapshot refers to the same list and
//!   sees it up to its own length; what is appended later stands beyond that. Replacing the blob begins a new list.
//! - A page blob is a map of pages, which has a module of its own.

pub mod blob;
pub mod blocks;
pub mod container;
pub mod encryption;
pub mod keys;
pub mod protection;
pub mod service_properties;
pub mod tags;
pub mod target;
pub mod tier;

use engine::Stop;
pub use service::{Deletion, HttpHeaders, Pairs, StoredPolicy};

use crate::error::BlobError;

pub use blob::{
    Blob, BlobType, Committed, ContentRef, PAGE_BLOB_BYTES_MAX, Past, Seen, Undeletion, VersionId, Which, content,
    find_blob, find_state, see,
};
pub use blocks::{Block, ListChunk, ListEntry, Staging};
pub use container::{
    Container, ContainerGuard, DeletedContainer, PublicAccess, find_container, generation, guard, name_of_generation,
};
pub use keys::{
    blob_key, blob_partition, block_key, blocks_of, chunk_key, container_key, deleted_container_due,
    deleted_container_key, list_rows, moved_key, purge_due, snapshot_key, snapshots_due, snapshots_of, state_time,
    version_key, versions_due, versions_of,
};

/// What a function over rows ends with when it has no result.
pub type Halt = Stop<BlobError>;

pub fn refuse(error: BlobError) -> Halt {
    Stop::Refused(error)
}
