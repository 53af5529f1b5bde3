//! Lease File: keep others from writing to a file, without end. Four actions, chosen by a header.

use concurrency::Timestamp;
use concurrency::share_mode::RestAccess;
use engine::{Changes, Rows, Tick};
use service::{LeaseAction, LeaseKind, LeaseOutcome, reply};
use wire::http::{Head, Reply};

use super::Call;
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
            | LeaseAction::Break { .. } => Admission::of(RestAccess::Look),
        }
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
