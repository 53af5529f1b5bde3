//! What the creator of a blob may say of it beside its headers and metadata, whichever operation creates it.

use concurrency::Timestamp;
use engine::Tick;
use wire::names::ContainerName;
use wire::tags::Tags;

use crate::error::BlobError;
use crate::model::protection::{Policy, Protection};
use crate::model::tags::Tagged;
use crate::model::tier::{Tier, TierSet};
use crate::model::{BlobType, Committed};

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CreationOptions {
    pub tier: Option<Tier>,
    pub tags: Tags,
    pub policy: Option<Policy>,
    pub legal_hold: Option<bool>,
    /// The account is one in which page blobs have tiers.
    pub is_premium: bool,
}

impl CreationOptions {
    /// A policy whose time is over would protect nothing; to lock it would look as if it did.
    pub fn check(&self, now: Timestamp) -> Result<(), BlobError> {
        self.policy.map_or(Ok(()), |policy| policy.check_begins(now))
    }

    /// The new state of a blob with what was said of it.
    pub fn to(&self, state: Committed, container: &ContainerName, account: u64, tick: Tick) -> Committed {
        let inferred = match state.kind {
            BlobType::Page { .. } if self.is_premium => Some(Tier::of_pages(state.length)),
            BlobType::Page { .. } | BlobType::Block | BlobType::Append { .. } => None,
        };
        let is_inferred = self.tier.is_none();
        Committed {
            tier: self.tier.or(inferred).map(|tier| TierSet { tier, since: tick.stamp, is_inferred }),
            tags: Tagged::new(account, container, &self.tags),
            protection: Protection::new(self.policy, self.legal_hold),
            ..state
        }
    }
}
