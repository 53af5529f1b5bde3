//! What the creator of a blob may say of it beside its headers and metadata, whichever operation creates it.

use concurrency::Timestamp;
use engine::Tick;
use wire::http::Head;
use wire::names::ContainerName;
use wire::tags::Tags;

use crate::error::BlobError;
use crate::model::protection::{Policy, Protection};
use crate::model::tags::Tagged;
use crate::model::tier::{Tier, TierSet};
use crate::model::{BlobType, Committed};
use crate::request;

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
    /// For a blob of this kind and, if it is known beforehand, length.
    pub fn parse(head: &Head, kind: BlobType, length: u64, is_premium: bool) -> Result<CreationOptions, BlobError> {
        let given = CreationOptions::parse_unchecked(head, is_premium)?;
        if let Some(tier) = given.tier {
            tier.check(kind, length, is_premium)?;
        }
        Ok(given)
    }

    /// For a blob of which nothing is known yet: whether it can have the tier is still to be seen.
    pub fn parse_unchecked(head: &Head, is_premium: bool) -> Result<CreationOptions, BlobError> {
        let tier = request::tier(head)?;
        let (policy, legal_hold) = (request::policy(head)?, request::legal_hold(head)?);
        Ok(CreationOptions { tier, tags: request::tags(head)?, policy, legal_hold, is_premium })
    }

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
