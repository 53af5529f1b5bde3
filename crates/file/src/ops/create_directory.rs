//! Create Directory.

use concurrency::share_mode::RestAccess;
use engine::{Changes, Rows, Tick};
use wire::http::{Head, Reply, StatusCode};

use super::Call;
use crate::change::create::{self, NewNode};
use crate::entering::{self, Admission, NodeChange};
use crate::error::FileError;
use crate::model::Halt;
use crate::reply::node::ShownNode;
use crate::tree::{Spot, Target};
use crate::{Failure, request, smb_headers};

#[derive(Clone, PartialEq, Eq, Debug)]
struct CreateDirectory {
    new: NewNode,
}

fn parse(head: &Head) -> Result<(Target, CreateDirectory), FileError> {
    let target = request::directory(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    let new = NewNode { settings: smb_headers::parse(head)?, metadata: request::metadata(head)? };
    Ok((target, CreateDirectory { new }))
}

impl NodeChange for CreateDirectory {
    type Outcome = ShownNode;

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Look).in_turn()
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<ShownNode, Halt> {
        let node = create::directory(spot, &self.new, rows, tick, changes)?;
        Ok(ShownNode::new(spot, node, tick.now))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, create) = parse(call.head)?;
    let shown = entering::commit(call, &target, create).await?;
    Ok(shown.changed(call.head, StatusCode::CREATED))
}
