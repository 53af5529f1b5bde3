//! Soft delete: the mark of what is deleted and can come back for some days.

use concurrency::Timestamp;
use engine::Tick;
use minicbor::{Decode, Encode};
use wire::dates;
use wire::xml::XmlWriter;

use crate::codec;

const SECONDS_PER_DAY: u64 = 24 * 3600;

/// The mark of a soft-deleted resource: a container, a share, or a state of a blob.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Deletion {
    #[cbor(n(0), with = "codec::time")]
    pub at: Timestamp,
    /// From then on it is gone.
    #[cbor(n(1), with = "codec::time")]
    pub until: Timestamp,
    /// Tells it apart from undeletions of the same time.
    #[cbor(n(2), with = "codec::time")]
    pub stamp: Timestamp,
}

impl Deletion {
    /// Made now, for some days.
    pub fn new(days: u16, tick: Tick) -> Deletion {
        let until = tick.now.plus_seconds(u64::from(days) * SECONDS_PER_DAY);
        Deletion { at: tick.now, until, stamp: tick.stamp }
    }

    /// Whether what it marks can still come back.
    pub fn is_kept(&self, now: Timestamp) -> bool {
        now < self.until
    }

    /// Writes into a listing when it was made, and for how many days what it marks can still come back. A day that has begun counts.
    pub fn write(&self, xml: &mut XmlWriter, now: Timestamp) {
        const TICKS_PER_DAY: u64 = SECONDS_PER_DAY * Timestamp::TICKS_PER_SECOND;
        xml.leaf("DeletedTime", dates::http_date(self.at).as_str());
        xml.number("RemainingRetentionDays", self.until.0.saturating_sub(now.0).div_ceil(TICKS_PER_DAY));
    }
}
