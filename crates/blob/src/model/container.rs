//! Containers: their rows, deleted or not, and the guard that every decision on a blob reads.

use concurrency::{Lease, Timestamp, Version};
use engine::{Rows, Unread};
use minicbor::{Decode, Encode};
use service::{Deletion, Pairs, StoredPolicy, codec};
use wire::names::ContainerName;

use super::blob::version;
use super::keys::{container_key, moved_key};
use super::{Halt, refuse};
use crate::error::BlobError;

#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Container {
    /// Names what is inside; a container made again under the same name has another.
    #[n(0)]
    pub generation: u64,
    /// ETag and Last-Modified are both made of it.
    #[cbor(n(1), with = "codec::time")]
    pub stamp: Timestamp,
    #[cbor(n(2), with = "codec::lease")]
    pub lease: Lease,
    #[n(3)]
    pub metadata: Pairs,
    #[n(4)]
    pub public: PublicAccess,
    #[n(5)]
    pub policies: Vec<StoredPolicy>,
    /// The encryption scope of blobs that name none.
    #[n(10)]
    pub default_scope: Option<String>,
    /// No blob may have another.
    #[cbor(n(11), default)]
    pub denies_other_scopes: bool,
}

/// A container that is deleted and can come back. What it holds stays under its generation.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct DeletedContainer {
    #[n(0)]
    pub container: Container,
    #[n(1)]
    pub mark: Deletion,
}

/// The part of a container's row that every decision on its blobs reads.
#[derive(Decode)]
#[cbor(map)]
pub struct ContainerGuard {
    #[n(0)]
    pub generation: u64,
    #[n(10)]
    pub default_scope: Option<String>,
    #[cbor(n(11), default)]
    pub denies_other_scopes: bool,
}

/// What anonymous requests may read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Encode, Decode)]
#[cbor(index_only)]
pub enum PublicAccess {
    #[default]
    #[n(0)]
    None,
    /// The blobs, if one knows their names.
    #[n(1)]
    Blob,
    /// The blobs, their list and the container's properties.
    #[n(2)]
    Container,
}

impl Container {
    pub fn version(&self) -> Version<'_> {
        version(self.stamp, &[])
    }
}

/// The name that a container of this generation has, if it is there; `name` is one that it had.
pub fn name_of_generation(
    rows: &dyn Rows,
    account: u64,
    generation: u64,
    name: &ContainerName,
) -> Result<Option<ContainerName>, Unread> {
    let is_there = |name: &ContainerName| {
        let found = find_container(rows, account, name)?;
        Ok::<_, Unread>(found.is_some_and(|container| container.generation == generation))
    };
    if is_there(name)? {
        return Ok(Some(name.clone()));
    }
    let Some(row) = rows.get(&moved_key(generation))? else { return Ok(None) };
    let text = std::str::from_utf8(&row).map_err(|_| codec::corrupt("the name of a container"))?;
    let name = ContainerName::parse(text).map_err(|_| codec::corrupt("the name of a container"))?;
    Ok(is_there(&name)?.then_some(name))
}

pub fn find_container(rows: &dyn Rows, account: u64, name: &ContainerName) -> Result<Option<Container>, Unread> {
    rows.get(&container_key(account, name))?.map(|row| codec::decode(&row)).transpose()
}

/// The guard of everything inside a container: it must be there, in the same state of the store.
pub fn generation(rows: &dyn Rows, account: u64, name: &ContainerName) -> Result<u64, Halt> {
    Ok(guard(rows, account, name)?.generation)
}

/// The same, with what the container demands of what is written into it. A decision that needs both looks once.
pub fn guard(rows: &dyn Rows, account: u64, name: &ContainerName) -> Result<ContainerGuard, Halt> {
    let row = rows.get(&container_key(account, name))?.ok_or(refuse(BlobError::ContainerNotFound))?;
    Ok(codec::decode(&row)?)
}
