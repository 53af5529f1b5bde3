//! Set File Metadata: replaces all of it.

use concurrency::share_mode::RestAccess;
use concurrency::{LeaseId, Timestamp};
use engine::{Changes, Rows, Tick};
use service::Pairs;
use wire::http::{Head, Reply};

use super::Call;
use crate::change::set;
use crate::entering::{self, Admission, NodeChange};
use crate::error::FileError;
use crate::model::Halt;
use crate::reply::node;
use crate::tree::{Spot, Target};
use crate::{Failure, request};

#[derive(Clone, PartialEq, Eq, Debug)]
struct SetFileMetadata {
    metadata: Pairs,
    lease: Option<LeaseId>,
}

fn parse(head: &Head) -> Result<(Target, SetFileMetadata), FileError> {
    let target = request::file(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    Ok((target, SetFileMetadata { metadata: request::metadata(head)?, lease: request::lease_id(head)? }))
}

impl NodeChange for SetFileMetadata {
    type Outcome = Timestamp;

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Write)
    }

    fn apply(&self, spot: &Spot, _: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<Timestamp, Halt> {
        Ok(set::file_metadata(spot, &self.metadata, self.lease, tick, changes)?.stamp)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, set) = parse(call.head)?;
    Ok(node::metadata_set(entering::commit(call, &target, set).await?))
}
