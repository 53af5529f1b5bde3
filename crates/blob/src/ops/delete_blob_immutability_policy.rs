//! Delete Blob Immutability Policy: one that is not locked. Where there is none nothing is to do.

use concurrency::Timestamp;
use wire::http::{Reply, StatusCode};

use super::Call;
use super::set_blob_immutability_policy::Protect;
use crate::error::BlobError;
use crate::model::protection::{Mode, Protection};
use crate::{Failure, reply};

fn decide(before: Protection, _: Timestamp) -> Result<Protection, BlobError> {
    match before.policy {
        Some(policy) if policy.mode == Mode::Locked => Err(BlobError::BlobImmutableDueToPolicy),
        Some(_) | None => Ok(Protection { policy: None, ..before }),
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    Protect::parse(call.head)?.run(call, decide).await?;
    Ok(reply::reply(StatusCode::OK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::protection::Policy;
    use crate::testing::NOW;

    #[test]
    fn a_locked_one_stays_also_when_its_time_is_over() {
        let had = |mode| Protection {
            policy: Some(Policy { until: NOW.plus_seconds(10), mode }),
            legal_hold: Some(true),
            ..Protection::default()
        };
        let gone = |mode| Ok(Protection { policy: None, ..had(mode) });
        assert_eq!(decide(had(Mode::Unlocked), NOW), gone(Mode::Unlocked));
        assert_eq!(decide(had(Mode::Unlocked), NOW.plus_seconds(10)), gone(Mode::Unlocked));
        // The reference: a locked policy cannot be deleted. It makes no exception for one that has expired.
        for now in [NOW, NOW.plus_seconds(10)] {
            assert_eq!(decide(had(Mode::Locked), now), Err(BlobError::BlobImmutableDueToPolicy));
        }
        assert_eq!(decide(Protection::default(), NOW), Ok(Protection::default()));
    }
}
