//! The rows that say which node serves SMB, and which shares SMB uses.

use concurrency::Timestamp;
use engine::{Key, Rows, Unread};
use minicbor::{Decode, Encode};
use service::{codec, space};

use crate::model::share_key;
use wire::names::ShareName;

/// Names one term of one node: another one for each term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Encode, Decode)]
#[cbor(map)]
pub struct TermId {
    #[n(0)]
    high: u64,
    #[n(1)]
    low: u64,
}

impl TermId {
    /// Of random bits.
    #[must_use]
    pub fn new(random: u128) -> TermId {
        TermId { high: (random >> 64) as u64, low: random as u64 }
    }

    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.high) << 64 | u128::from(self.low)).to_be_bytes()
    }
}

/// Where other nodes reach a node.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct NodeAddress {
    #[n(0)]
    pub host: String,
    #[n(1)]
    pub smb_port: u16,
    /// Whether its REST ports speak TLS.
    #[n(2)]
    pub https: bool,
    /// `None`: the node has no such port.
    #[n(3)]
    pub file_port: Option<u16>,
    #[n(4)]
    pub blob_port: Option<u16>,
}

impl NodeAddress {
    /// The beginning of the URLs of a REST port.
    #[must_use]
    pub fn url(&self, port: u16) -> String {
        let (scheme, host) = (if self.https { "https" } else { "http" }, &self.host);
        let is_ipv6 = host.contains(':') && !host.starts_with('[');
        if is_ipv6 { format!("{scheme}://[{host}]:{port}") } else { format!("{scheme}://{host}:{port}") }
    }
}

/// The row `SMB_OWNER`.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Owner {
    #[n(0)]
    pub id: TermId,
    #[n(1)]
    pub address: NodeAddress,
    /// Until then no other node takes its place.
    #[cbor(n(2), with = "codec::time")]
    pub until: Timestamp,
}

impl Owner {
    pub fn is_alive(&self, now: Timestamp) -> bool {
        now < self.until
    }
}

/// The row `SMB_SHARE`: which term's table of opens holds for a share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct ShareMark {
    #[n(0)]
    pub owner: TermId,
    /// The stamp of the decision that wrote it: a removal removes the mark that it knows and no later one.
    #[cbor(n(1), with = "codec::time")]
    pub stamp: Timestamp,
}

pub fn owner_key() -> Key {
    Key::new(space::SMB_OWNER)
}

pub fn find_owner(rows: &dyn Rows) -> Result<Option<Owner>, Unread> {
    rows.get(&owner_key())?.map(|row| codec::decode(&row)).transpose()
}

/// The mark of a share, by the key of its row.
pub fn mark_key(share: &Key) -> Key {
    in_space(space::SMB_SHARE, share)
}

/// The key of the row of a share, by the key of its mark.
pub fn marked_share(mark: &Key) -> Key {
    in_space(space::SHARE, mark)
}

fn in_space(space: u8, key: &Key) -> Key {
    let mut bytes = key.as_bytes().to_vec();
    bytes[0] = space;
    Key::from_bytes(&bytes)
}

pub fn find_mark(rows: &dyn Rows, account: u64, share: &ShareName) -> Result<Option<ShareMark>, Unread> {
    find_mark_at(rows, &mark_key(&share_key(account, share)))
}

pub fn find_mark_at(rows: &dyn Rows, mark: &Key) -> Result<Option<ShareMark>, Unread> {
    rows.get(mark)?.map(|row| codec::decode(&row)).transpose()
}
