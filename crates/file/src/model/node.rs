//! Files and directories: the row of a directory entry.

use concurrency::{Lease, LeaseId, Timestamp};
use content::copy_state::CopyState;
use content::map::FileView;
use engine::Tick;
use minicbor::{Decode, Encode};
use service::{HttpHeaders, Pairs, codec};

use super::{Attributes, Links, NfsProperties, Protocol};
use crate::error::FileError;
use crate::security::{ChildKind, PermissionKey};

/// A file or a directory, as its directory lists it.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Node {
    /// Stays for as long as it exists, also when it is renamed, and is never used again.
    #[n(0)]
    pub id: u64,
    /// The name as its creator spelled it.
    #[n(1)]
    pub name: String,
    #[n(2)]
    pub kind: NodeKind,
    /// The share's epoch in which it became what it is.
    #[n(3)]
    pub since: u64,
    /// ETag and Last-Modified are both made of it.
    #[cbor(n(4), with = "codec::time")]
    pub stamp: Timestamp,
    #[cbor(n(5), with = "codec::time")]
    pub created: Timestamp,
    #[cbor(n(6), with = "codec::time")]
    pub written: Timestamp,
    #[cbor(n(7), with = "codec::time")]
    pub changed: Timestamp,
    #[cbor(n(8), with = "codec::time")]
    pub accessed: Timestamp,
    #[n(9)]
    pub attributes: Attributes,
    #[cbor(n(10), with = "permission_key")]
    pub permission: PermissionKey,
    #[n(11)]
    pub metadata: Pairs,
    /// `None` in a share that is mounted over SMB.
    #[n(12)]
    pub nfs: Option<NfsProperties>,
    /// The names of a file that has several, which is kept by its id. `None`: it has one, and its row is the entry of that name.
    #[n(13)]
    pub links: Option<Links>,
    /// Where a file was before it was renamed, as far as snapshots were taken there; the oldest first. A comparison with a snapshot
    /// finds the file by it.
    #[n(20)]
    pub former: Option<Vec<FormerPlace>>,
}

/// Where a file was until the snapshot of the epoch `until`.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct FormerPlace {
    #[n(0)]
    pub until: u64,
    #[n(1)]
    pub directory: u64,
    /// Folded.
    #[n(2)]
    pub name: String,
}

/// What only files, only directories, or only symbolic links have.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum NodeKind {
    #[n(0)]
    Directory,
    #[n(1)]
    File(#[n(0)] FileState),
    /// A symbolic link, with the path that it leads to. Clients follow it, the service never does.
    #[n(2)]
    SymbolicLink(#[n(0)] String),
}

/// What a file has beside what it has in common with directories.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct FileState {
    #[n(0)]
    pub length: u64,
    /// Where its bytes are.
    #[n(1)]
    pub view: FileView,
    /// When it was created or replaced as a whole: to compare its ranges with a snapshot, it must be the same there.
    #[cbor(n(2), with = "codec::time")]
    pub born: Timestamp,
    #[n(3)]
    pub headers: HttpHeaders,
    #[cbor(n(4), with = "codec::lease")]
    pub lease: Lease,
    /// The copy that it came from, or that it waits for.
    #[n(5)]
    pub copy: Option<Box<CopyState>>,
}

impl FileState {
    /// While a copy into the file is under way nothing else changes it.
    pub fn check_no_copy(&self, now: Timestamp) -> Result<(), FileError> {
        match &self.copy {
            Some(copy) if copy.is_pending(now) => Err(FileError::PendingCopyOperation),
            Some(_) | None => Ok(()),
        }
    }
}

/// Where a node is: under which directory, and with which folded name.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct NodePlace {
    #[n(0)]
    pub directory: u64,
    #[n(1)]
    pub name: String,
}

impl NodePlace {
    /// Where the past of a file that has several names is kept. No name is like this: the id of a file is not that of a directory.
    pub fn of_linked(id: u64) -> NodePlace {
        NodePlace { directory: id, name: String::new() }
    }
}

impl Node {
    /// The root directory of a new share.
    pub fn root(generation: u64, epoch: u64, protocol: Protocol, permission: PermissionKey, tick: Tick) -> Node {
        Node {
            id: generation,
            name: String::new(),
            kind: NodeKind::Directory,
            since: epoch,
            stamp: tick.stamp,
            created: tick.now,
            written: tick.now,
            changed: tick.now,
            accessed: tick.now,
            attributes: Attributes::DIRECTORY,
            permission,
            metadata: Pairs::new(),
            nfs: protocol.new_properties(true),
            links: None,
            former: None,
        }
    }

    pub fn is_directory(&self) -> bool {
        matches!(self.kind, NodeKind::Directory)
    }

    /// What it is to the directory that it inherits from.
    pub fn child_kind(&self) -> ChildKind {
        match self.kind {
            NodeKind::Directory => ChildKind::Directory,
            NodeKind::File(_) | NodeKind::SymbolicLink(_) => ChildKind::File,
        }
    }

    /// NFS knows no such attribute.
    pub fn is_read_only(&self) -> bool {
        self.nfs.is_none() && self.attributes.contains(Attributes::READ_ONLY)
    }

    /// What it has as a file.
    pub fn file(&self) -> Option<&FileState> {
        match &self.kind {
            NodeKind::File(state) => Some(state),
            NodeKind::Directory | NodeKind::SymbolicLink(_) => None,
        }
    }

    /// A file whose bytes are read. Where a directory stands there is no such file, and a symbolic link has no bytes.
    pub fn as_read_file(&self) -> Result<&FileState, FileError> {
        match &self.kind {
            NodeKind::File(state) => Ok(state),
            NodeKind::Directory => Err(FileError::ResourceNotFound),
            NodeKind::SymbolicLink(_) => Err(FileError::ResourceTypeMismatch),
        }
    }

    /// Whether a read of its properties may name this lease. A symbolic link never has one. Where a directory stands there is no
    /// such file.
    pub fn check_read(&self, lease: Option<LeaseId>, now: Timestamp) -> Result<(), FileError> {
        let own = match &self.kind {
            NodeKind::File(state) => &state.lease,
            NodeKind::SymbolicLink(_) => &Lease::Available,
            NodeKind::Directory => return Err(FileError::ResourceNotFound),
        };
        own.check_read(lease, now).map_err(FileError::file_lease)
    }

    /// Whether a change that names this lease may be made, and the lease afterwards. Nothing changes a file while a copy into it is
    /// under way. A directory is not changed like this.
    pub fn check_write(&self, lease: Option<LeaseId>, now: Timestamp) -> Result<Lease, FileError> {
        let state = match &self.kind {
            NodeKind::File(state) => state,
            NodeKind::SymbolicLink(_) => return no_lease(lease, now),
            NodeKind::Directory => return Err(FileError::ResourceTypeMismatch),
        };
        let lease = state.lease.check_write(lease, now).map_err(FileError::file_lease)?;
        state.check_no_copy(now)?;
        Ok(lease)
    }

    /// A file that is changed. A directory cannot be, not like this.
    pub fn as_written_file(&mut self) -> Result<&mut FileState, FileError> {
        match &mut self.kind {
            NodeKind::File(state) => Ok(state),
            NodeKind::Directory | NodeKind::SymbolicLink(_) => Err(FileError::ResourceTypeMismatch),
        }
    }

    /// The bytes that count towards the quota.
    pub fn length(&self) -> u64 {
        self.file().map_or(0, |state| state.length)
    }

    /// The length that clients are told: that of a symbolic link is the length of its path. Directories have none.
    pub fn shown_length(&self) -> Option<u64> {
        match &self.kind {
            NodeKind::File(state) => Some(state.length),
            NodeKind::SymbolicLink(text) => Some(text.len() as u64),
            NodeKind::Directory => None,
        }
    }

    /// How many names it has.
    pub fn link_count(&self) -> usize {
        self.links.as_ref().map_or(1, Links::count)
    }
}

/// What has no lease is changed only by requests that name none.
pub fn no_lease(lease: Option<LeaseId>, now: Timestamp) -> Result<Lease, FileError> {
    Lease::Available.check_write(lease, now).map_err(FileError::file_lease)
}

/// Encodes a permission key as its bytes.
mod permission_key {
    use minicbor::decode::{Decoder, Error as DecodeError};
    use minicbor::encode::{Encoder, Error as EncodeError, Write};

    use super::PermissionKey;

    pub fn encode<C, W: Write>(
        key: &PermissionKey,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        e.bytes(&key.to_bytes())?;
        Ok(())
    }

    pub fn decode<'b, C>(d: &mut Decoder<'b>, _: &mut C) -> Result<PermissionKey, DecodeError> {
        let bytes = d.bytes()?.try_into().map_err(|_| DecodeError::message("a permission key is not 16 bytes"))?;
        Ok(PermissionKey::from_bytes(bytes))
    }
}
