//! Shares: their rows, deleted or not, and the guard that every decision inside a share reads.

use concurrency::{Lease, Timestamp};
use engine::{Rows, Unread};
use minicbor::{Decode, Encode};
use service::{Pairs, StoredPolicy, codec};
use wire::names::ShareName;

use super::keys::share_key;
use super::{Halt, NfsProperties, refuse};
use crate::error::FileError;

const GIB: u64 = 1 << 30;

#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Share {
    /// Names what is inside, and is the id of the root directory; a share made again under the same name has another.
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
    pub policies: Vec<StoredPolicy>,
    #[n(5)]
    pub quota_gib: u64,
    #[n(6)]
    pub tier: AccessTier,
    /// `None`: the share has the tier that it was created with.
    #[cbor(n(7), with = "codec::optional_time")]
    pub tier_changed: Option<Timestamp>,
    #[n(8)]
    pub protocol: Protocol,
    #[n(9)]
    pub root_squash: Option<RootSquash>,
    #[n(10)]
    pub provisioned: Provisioned,
    /// The epoch that changes are made in. A share snapshot ends it.
    #[n(11)]
    pub epoch: u64,
    /// The epoch of the newest snapshot that is there; 0: there is none.
    #[n(12)]
    pub newest_snapshot: u64,
    /// How many snapshots there are.
    #[n(13)]
    pub snapshots: u32,
    /// The time that names the last snapshot, also when that is gone: the next one has a later time.
    #[cbor(n(14), default)]
    pub last_snapshot: u64,
}

/// A share that is deleted and can come back. What it holds stays under its generation.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct DeletedShare {
    #[n(0)]
    pub share: Share,
    #[n(1)]
    pub mark: service::Deletion,
}

/// The part of a share's row that decisions inside the share need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Decode)]
#[cbor(map)]
pub struct ShareGuard {
    #[n(0)]
    pub generation: u64,
    #[n(5)]
    quota_gib: u64,
    #[n(8)]
    pub protocol: Protocol,
    #[n(11)]
    pub epoch: u64,
    #[n(12)]
    pub newest_snapshot: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(index_only)]
pub enum AccessTier {
    #[default]
    #[n(0)]
    TransactionOptimized,
    #[n(1)]
    Hot,
    #[n(2)]
    Cool,
    #[n(3)]
    Premium,
}

/// By which protocol a share is mounted. REST reaches both kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(index_only)]
pub enum Protocol {
    #[default]
    #[n(0)]
    Smb,
    #[n(1)]
    Nfs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(index_only)]
pub enum RootSquash {
    #[n(0)]
    NoRootSquash,
    #[n(1)]
    RootSquash,
    #[n(2)]
    AllSquash,
}

/// Settings of provisioned shares. They are stored and shown, and have no effect here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub struct Provisioned {
    #[n(0)]
    pub iops: Option<u64>,
    #[n(1)]
    pub bandwidth_mibps: Option<u64>,
    #[n(2)]
    pub bursting: Option<bool>,
    #[n(3)]
    pub bursting_max_iops: Option<u64>,
    #[n(4)]
    pub bursting_max_bandwidth_mibps: Option<u64>,
    #[n(5)]
    pub snapshot_virtual_directory_access: Option<bool>,
    #[n(6)]
    pub smb_directory_lease: Option<bool>,
}

impl AccessTier {
    pub const ALL: [AccessTier; 4] =
        [AccessTier::TransactionOptimized, AccessTier::Hot, AccessTier::Cool, AccessTier::Premium];

    pub fn name(self) -> &'static str {
        match self {
            AccessTier::TransactionOptimized => "TransactionOptimized",
            AccessTier::Hot => "Hot",
            AccessTier::Cool => "Cool",
            AccessTier::Premium => "Premium",
        }
    }
}

impl Protocol {
    /// What NFS sees of something new; nothing in a share that is mounted over SMB.
    pub fn new_properties(self, is_directory: bool) -> Option<NfsProperties> {
        match self {
            Protocol::Smb => None,
            Protocol::Nfs => Some(NfsProperties::new(is_directory)),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Protocol::Smb => "SMB",
            Protocol::Nfs => "NFS",
        }
    }
}

impl RootSquash {
    pub const ALL: [RootSquash; 3] = [RootSquash::NoRootSquash, RootSquash::RootSquash, RootSquash::AllSquash];

    pub fn name(self) -> &'static str {
        match self {
            RootSquash::NoRootSquash => "NoRootSquash",
            RootSquash::RootSquash => "RootSquash",
            RootSquash::AllSquash => "AllSquash",
        }
    }
}

impl ShareGuard {
    pub fn quota_bytes(&self) -> u64 {
        self.quota_gib.saturating_mul(GIB)
    }
}

pub fn find_share(rows: &dyn Rows, account: u64, name: &ShareName) -> Result<Option<Share>, Unread> {
    rows.get(&share_key(account, name))?.map(|row| codec::decode(&row)).transpose()
}

/// The share, which must exist.
pub fn existing_share(rows: &dyn Rows, account: u64, name: &ShareName) -> Result<Share, Halt> {
    find_share(rows, account, name)?.ok_or(refuse(FileError::ShareNotFound))
}

/// The guard of everything inside a share: the share must be there, in the same state of the store.
pub fn guard(rows: &dyn Rows, account: u64, name: &ShareName) -> Result<ShareGuard, Halt> {
    find_guard(rows, account, name)?.ok_or(refuse(FileError::ShareNotFound))
}

/// The same of a share that may be gone.
pub fn find_guard(rows: &dyn Rows, account: u64, name: &ShareName) -> Result<Option<ShareGuard>, Unread> {
    rows.get(&share_key(account, name))?.map(|row| codec::decode(&row)).transpose()
}
