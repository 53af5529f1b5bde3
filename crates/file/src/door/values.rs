//! What is asked through the door and what it answers.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use concurrency::Timestamp;
use concurrency::range_lock::LockKind;

use super::{OpenFile, attributes};
use crate::model::Node;
use crate::opens::{Broken, CachingRequest, Client, HandleId};

/// Told what becomes of a handle without its own doing: the SMB session that has it. It is called without locks and must not block.
pub trait HandleOwner: Debug + Send + Sync {
    /// The handle was closed by force. What its [`OpenFile`] is asked from now on is refused.
    fn closed(&self, handle: HandleId);

    /// What the handle's oplock or lease allowed to cache is taken back. Says whether the client can be told: one that cannot has lost
    /// all of it. It acknowledges by [`OpenFile::acknowledge_oplock`] or [`super::Door::acknowledge_lease`], or by closing the handle.
    fn broken(&self, broken: Broken) -> bool;

    /// What is at work for the handle, an open, a rename or a deletion, waits for other clients to give up what they cache, or no longer.
    /// Its future may be dropped while it waits.
    fn waits(&self, is_waiting: bool) {
        let _ = is_waiting;
    }
}

/// What a CREATE does with what stands at the name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Disposition {
    /// Replaces a file, or creates one.
    Supersede,
    /// Opens what is there.
    Open,
    /// Creates at a free name.
    Create,
    /// Opens what is there, or creates.
    OpenIf,
    /// Empties a file that is there.
    Overwrite,
    /// Empties a file that is there, or creates one.
    OverwriteIf,
}

impl Disposition {
    /// From the number in a CREATE request.
    pub fn from_number(number: u32) -> Option<Disposition> {
        Some(match number {
            0 => Disposition::Supersede,
            1 => Disposition::Open,
            2 => Disposition::Create,
            3 => Disposition::OpenIf,
            4 => Disposition::Overwrite,
            5 => Disposition::OverwriteIf,
            _ => return None,
        })
    }
}

/// What a CREATE has done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CreateAction {
    Superseded,
    Opened,
    Created,
    Overwritten,
}

impl CreateAction {
    /// The number in a CREATE response.
    pub fn number(self) -> u32 {
        match self {
            CreateAction::Superseded => 0,
            CreateAction::Opened => 1,
            CreateAction::Created => 2,
            CreateAction::Overwritten => 3,
        }
    }
}

/// A CREATE of a file or directory.
#[derive(Clone, Debug)]
pub struct CreateRequest {
    /// From the root of the share, with backslashes between the names and none in front. Empty: the root.
    pub path: String,
    /// The time of the share snapshot in which the path is. `None`: it is in the share.
    pub snapshot: Option<Timestamp>,
    /// The desired access as it came. Generic rights and MAXIMUM_ALLOWED are replaced by what they stand for.
    pub access: u32,
    /// The share access as it came.
    pub sharing: u32,
    pub disposition: Disposition,
    /// The create options as they came ([`super::options`]). Those without a name there are ignored.
    pub options: u32,
    /// Attributes of a file that is created or overwritten, as they came.
    pub attributes: u32,
    /// A self-relative security descriptor for something new.
    pub security: Option<Bytes>,
    /// The allocation size for a new file (context `AlSi`). A file's length is not changed by it.
    pub allocation: Option<u64>,
    pub caching: CachingRequest,
    pub client: Client,
    pub owner: Arc<dyn HandleOwner>,
}

/// The answer to a CREATE.
#[derive(Debug)]
pub struct Opened {
    pub file: OpenFile,
    pub action: CreateAction,
    pub info: FileInfo,
}

/// Everything that there is to know of an open file or directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileInfo {
    pub created: Timestamp,
    pub accessed: Timestamp,
    pub written: Timestamp,
    pub changed: Timestamp,
    /// As SMB has them: never 0, `NORMAL` stands for none.
    pub attributes: u32,
    /// 0 for a directory.
    pub length: u64,
    /// The length in whole clusters of 4 KiB, or what this handle has asked for if that is more; 0 for a directory.
    pub allocation: u64,
    /// Stays when the file is renamed. Never 0, also for the root.
    pub id: u64,
    pub links: u32,
    pub is_directory: bool,
    pub is_delete_pending: bool,
    /// From the root of the share, with backslashes between the names; empty for the root.
    pub path: String,
    /// The access that the handle has.
    pub access: u32,
}

/// The unit in which space is given to files, as SMB clients are told.
const CLUSTER_BYTES: u64 = 4_096;

/// The attributes of a file or directory as SMB has them.
fn shown_attributes(node: &Node) -> u32 {
    match node.attributes.bits() {
        0 => attributes::NORMAL,
        bits => bits,
    }
}

fn allocated(length: u64) -> u64 {
    length.checked_next_multiple_of(CLUSTER_BYTES).unwrap_or(length)
}

impl FileInfo {
    pub(super) fn new(node: &Node, path: &str, access: u32, is_delete_pending: bool) -> FileInfo {
        FileInfo {
            created: node.created,
            accessed: node.accessed,
            written: node.written,
            changed: node.changed,
            attributes: shown_attributes(node),
            length: node.length(),
            allocation: allocated(node.length()),
            id: node.id,
            links: u32::try_from(node.link_count()).unwrap_or(u32::MAX),
            is_directory: node.is_directory(),
            is_delete_pending,
            path: path.to_owned(),
            access,
        }
    }

    /// Where the last cluster of the file ends.
    pub(super) fn cluster_end(&self) -> u64 {
        allocated(self.length)
    }

    /// The same, with the allocation size that the client has asked for, if that is larger.
    pub(super) fn with_allocation(self, asked: u64) -> FileInfo {
        if self.is_directory {
            return self;
        }
        FileInfo { allocation: self.allocation.max(allocated(asked)), ..self }
    }
}

/// How much there is in a share, and where its limit is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    pub quota_bytes: u64,
    pub used_bytes: u64,
    /// When the root directory was created.
    pub created: Timestamp,
    /// The id of the root directory, for the serial number of the volume.
    pub volume: u64,
}

/// What SET_INFO says of a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum TimeChange {
    /// 0: it stays as it is.
    #[default]
    Keep,
    /// -1: changes made through this handle do not move it from now on.
    Freeze,
    /// -2: they do again.
    Thaw,
    At(Timestamp),
}

/// FILETIME counts from 1601, a [`Timestamp`] from the year 1, both in units of 100 ns.
const TICKS_UNTIL_1601: u64 = 504_911_232_000_000_000;

impl TimeChange {
    /// From a FILETIME in SET_INFO. `None` for other negative numbers and for times that no date has.
    pub fn from_filetime(number: i64) -> Option<TimeChange> {
        Some(match number {
            0 => TimeChange::Keep,
            -1 => TimeChange::Freeze,
            -2 => TimeChange::Thaw,
            number => TimeChange::At(time_of(number)?),
        })
    }
}

/// The time of a FILETIME. `None` for negative numbers and for times that no date has.
pub fn time_of(filetime: i64) -> Option<Timestamp> {
    Some(Timestamp(u64::try_from(filetime).ok()?.checked_add(TICKS_UNTIL_1601)?))
}

/// A time as FILETIME. What was before 1601 is 0.
pub fn filetime(time: Timestamp) -> u64 {
    time.0.saturating_sub(TICKS_UNTIL_1601)
}

/// FileBasicInformation as it is set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BasicInfo {
    pub created: TimeChange,
    pub accessed: TimeChange,
    pub written: TimeChange,
    pub changed: TimeChange,
    /// 0: they stay as they are.
    pub attributes: u32,
}

/// One lock of a LOCK request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lock {
    pub offset: u64,
    pub length: u64,
    pub kind: LockKind,
}

/// An entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectoryEntry {
    /// As it is spelled. `.` and `..` come first.
    pub name: String,
    pub created: Timestamp,
    pub accessed: Timestamp,
    pub written: Timestamp,
    pub changed: Timestamp,
    /// As SMB has them.
    pub attributes: u32,
    pub length: u64,
    pub allocation: u64,
    pub id: u64,
    /// Where [`OpenFile::advance`] goes on.
    pub(super) position: Position,
}

impl DirectoryEntry {
    pub(super) fn new(node: &Node, name: &str, position: Position) -> DirectoryEntry {
        DirectoryEntry {
            name: name.to_owned(),
            created: node.created,
            accessed: node.accessed,
            written: node.written,
            changed: node.changed,
            attributes: shown_attributes(node),
            length: node.length(),
            allocation: allocated(node.length()),
            id: node.id,
            position,
        }
    }
}

/// Where a listing is: behind what was listed last.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Position {
    Start,
    Dot,
    DotDot,
    /// The folded name of an entry.
    Name(String),
}

/// What happened in a directory that is watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Changes {
    /// In order; at least one. A rename is two of them, one behind the other.
    Records(Vec<Change>),
    /// Too much happened: `NOTIFY_ENUM_DIR`.
    Overflow,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Change {
    pub kind: ChangeKind,
    /// From the directory that is watched, with backslashes between the names.
    pub path: String,
}

/// FILE_NOTIFY_INFORMATION's action.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ChangeKind {
    Added,
    Removed,
    Modified,
    RenamedFrom,
    RenamedTo,
}

impl ChangeKind {
    /// The number in FILE_NOTIFY_INFORMATION.
    pub fn number(self) -> u32 {
        match self {
            ChangeKind::Added => 1,
            ChangeKind::Removed => 2,
            ChangeKind::Modified => 3,
            ChangeKind::RenamedFrom => 4,
            ChangeKind::RenamedTo => 5,
        }
    }
}
