//! What the creator of a blob may say of it beside its headers and metadata, whichever operation creates it.

use engine::Tick;
use wire::http::Head;
use wire::names::ContainerName;
use wire::tags::Tags;

use crate::error::BlobError;
use crate::model::{BlobType, Committed, Tier, TierSet};
use crate::request;
use crate::tags::Tagged;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Given {
    pub tier: Option<Tier>,
    pub tags: Tags,
}

impl Given {
    pub fn parse(head: &Head, kind: BlobType) -> Result<Given, BlobError> {
        Ok(Given { tier: tier(head, kind)?, tags: request::tags(head)? })
    }

    /// The new state of a blob with what was said of it.
    pub fn to(&self, state: Committed, container: &ContainerName, account: u64, tick: Tick) -> Committed {
        Committed {
            tier: self.tier.map(|tier| TierSet { tier, since: tick.stamp }),
            tags: Tagged::new(account, container, &self.tags),
            ..state
        }
    }
}

fn tier(head: &Head, kind: BlobType) -> Result<Option<Tier>, BlobError> {
    match (request::tier(head)?, kind) {
        (tier, BlobType::Block) => Ok(tier),
        (None, BlobType::Append { .. } | BlobType::Page { .. }) => Ok(None),
        (Some(_), BlobType::Append { .. } | BlobType::Page { .. }) => Err(BlobError::AccessTierNotSupportedForBlobType),
    }
}
