//! The tier of a blob, as it is stored.

use concurrency::Timestamp;
use minicbor::{Decode, Encode};
use service::codec;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(index_only)]
pub enum Tier {
    #[n(0)]
    Hot,
    #[n(1)]
    Cool,
    #[n(2)]
    Cold,
    #[n(3)]
    Archive,
    #[n(4)]
    Smart,
    // Those of page blobs in premium accounts, each larger and faster than the one before.
    #[n(10)]
    P4,
    #[n(11)]
    P6,
    #[n(12)]
    P10,
    #[n(13)]
    P15,
    #[n(14)]
    P20,
    #[n(15)]
    P30,
    #[n(16)]
    P40,
    #[n(17)]
    P50,
    #[n(18)]
    P60,
    #[n(19)]
    P70,
    #[n(20)]
    P80,
}

/// A tier that was asked for, and when. A blob without one has the account's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct TierSet {
    #[n(0)]
    pub tier: Tier,
    #[cbor(n(1), with = "codec::time")]
    pub since: Timestamp,
    /// No request set it: it is the tier that a page blob of its length has.
    #[cbor(n(2), default)]
    pub is_inferred: bool,
}

/// An archived blob on its way back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Rehydration {
    #[n(0)]
    pub to: Tier,
    #[n(1)]
    pub priority: Priority,
    /// When it is there.
    #[cbor(n(2), with = "codec::time")]
    pub end: Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Encode, Decode)]
#[cbor(index_only)]
pub enum Priority {
    #[default]
    #[n(0)]
    Standard,
    #[n(1)]
    High,
}
