//! Lease File: keep others from writing to a file, without end. Four actions, chosen by a header.

use concurrency::Timestamp;
use concurrency::share_mode::RestAccess;
use engine::{Changes, Rows, Tick};
use service::{LeaseAction, LeaseKind, LeaseOutcome, reply};
use wire::http::{Head, Reply};

use super::Call;
use crate::announcement::Effect;
use crate::change::set;
use crate::entering::{self, Admission, NodeChange};
use crate::error::FileError;
use crate::model::Halt;
use crate::tree::{Spot, Target};
use crate::{Failure, request};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LeaseFile {
    action: LeaseAction,
}

fn parse(head: &Head) -> Result<(Target, LeaseFile), FileError> {
    let target = request::file(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    Ok((target, LeaseFile { action: LeaseAction::parse(head, LeaseKind::Infinite)? }))
}

impl NodeChange for LeaseFile {
    /// What has become of the lease, and the file's stamp, which stays.
    type Outcome = (LeaseOutcome, Timestamp);

    /// A new lease counts for openers as an open of its own. The other actions only take away.
    fn admission(&self) -> Admission {
        match self.action {
            LeaseAction::Acquire { .. } => Admission::of(RestAccess::AcquireLease).in_turn(),
            LeaseAction::Renew { .. }
            | LeaseAction::Change { .. }
            | LeaseAction::Release { .. }
            | LeaseAction::Break { .. } => Admission::of(RestAccess::Look).beside_caches(),
        }
    }

    fn effect(&self) -> Effect {
        Effect::Unseen
    }

    fn apply(
        &self,
        spot: &Spot,
        _: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(LeaseOutcome, Timestamp), Halt> {
        set::file_lease(spot, self.action, tick, changes)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, lease) = parse(call.head)?;
    let (outcome, stamp) = entering::commit(call, &target, lease).await?;
    let mut answer = outcome.answer();
    reply::set_version(&mut answer.headers, stamp);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MY_LEASE};
    use service::RequestError;

    #[tokio::test]
    async fn the_request_is_told_before_what_it_names() {
        let bench = Bench::with_share().await;
        let url = "share/no/file?comp=lease";
        let missing = |name| FileError::from(RequestError::MissingRequiredHeader { name });
        assert_eq!(bench.refused("PUT", url, &[]).await, missing("x-ms-lease-action"));
        let acquire = ("x-ms-lease-action", "acquire");
        assert_eq!(bench.refused("PUT", url, &[acquire]).await, missing("x-ms-lease-duration"));
        let release = ("x-ms-lease-action", "release");
        assert_eq!(bench.refused("PUT", url, &[release]).await, missing("x-ms-lease-id"));
        let bad = [release, ("x-ms-lease-id", "me")];
        assert_eq!(bench.refused("PUT", url, &bad).await, FileError::header("x-ms-lease-id", "me"));
        let good = [release, ("x-ms-lease-id", MY_LEASE)];
        assert_eq!(bench.refused("PUT", url, &good).await, FileError::ParentNotFound);
    }
}
