//! Delete File: at once. It is refused while any SMB client has the file open.

use concurrency::LeaseId;
use concurrency::share_mode::RestAccess;
use engine::{Changes, Rows, Tick};
use wire::http::{Head, Reply, StatusCode};

use super::Call;
use crate::change::remove;
use crate::entering::{self, Admission, NodeChange};
use crate::error::FileError;
use crate::model::Halt;
use crate::tree::{Spot, Target};
use crate::{Failure, request};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct DeleteFile {
    lease: Option<LeaseId>,
}

fn parse(head: &Head) -> Result<(Target, DeleteFile), FileError> {
    let target = request::file(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    Ok((target, DeleteFile { lease: request::lease_id(head)? }))
}

impl NodeChange for DeleteFile {
    type Outcome = ();

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Delete).in_turn()
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<(), Halt> {
        remove::file(spot, self.lease, rows, tick, changes)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, delete) = parse(call.head)?;
    entering::commit(call, &target, delete).await?;
    Ok(Reply::new(StatusCode::ACCEPTED))
}
