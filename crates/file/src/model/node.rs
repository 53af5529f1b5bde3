//! Files and directories: the row of a directory entry.

use concurrency::{Lease, Timestamp};
use content::copy_state::CopyState;
use content::map::FileView;
use engine::Tick;
use minicbor::{Decode, Encode};
use service::{HttpHeaders, Pairs, codec};

use super::{Attributes, NfsProperties, Protocol};
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
}

/// What only files, or only directories, have.
#[expect(clippy::large_enum_variant, reason = "nearly every node is a file")]
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum NodeKind {
    #[n(0)]
    Directory,
    #[n(1)]
    File(#[n(0)] FileState),
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
        }
    }

    pub fn is_directory(&self) -> bool {
        matches!(self.kind, NodeKind::Directory)
    }

    /// What it is to the directory that it inherits from.
    pub fn child_kind(&self) -> ChildKind {
        match self.kind {
            NodeKind::Directory => ChildKind::Directory,
            NodeKind::File(_) => ChildKind::File,
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
            NodeKind::Directory => None,
        }
    }

    /// A file that is read. Where a directory stands there is no such file.
    pub fn as_read_file(&self) -> Result<&FileState, FileError> {
        self.file().ok_or(FileError::ResourceNotFound)
    }

    /// A file that is changed. A directory cannot be, not like this.
    pub fn as_written_file(&mut self) -> Result<&mut FileState, FileError> {
        match &mut self.kind {
            NodeKind::File(state) => Ok(state),
            NodeKind::Directory => Err(FileError::ResourceTypeMismatch),
        }
    }

    /// The bytes that count towards the quota.
    pub fn length(&self) -> u64 {
        self.file().map_or(0, |state| state.length)
    }
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
