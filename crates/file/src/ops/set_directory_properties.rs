//! Set Directory Properties: attributes, times and permission. What a request does not name stays.

use concurrency::share_mode::RestAccess;
use engine::{Changes, Rows, Tick};
use wire::http::{Head, Reply, StatusCode};

use super::Call;
use crate::change::properties::SmbSettings;
use crate::change::set;
use crate::entering::{self, Admission, NodeChange};
use crate::error::FileError;
use crate::model::Halt;
use crate::reply::node::ShownNode;
use crate::tree::{Spot, Target};
use crate::{Failure, request, smb_headers};

#[derive(Clone, PartialEq, Eq, Debug)]
struct SetDirectoryProperties {
    settings: SmbSettings,
}

fn parse(head: &Head) -> Result<(Target, SetDirectoryProperties), FileError> {
    let target = request::directory(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    Ok((target, SetDirectoryProperties { settings: smb_headers::parse(head)? }))
}

impl NodeChange for SetDirectoryProperties {
    type Outcome = ShownNode;

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Write).in_turn()
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<ShownNode, Halt> {
        let node = set::directory_properties(spot, &self.settings, rows, tick, changes)?;
        Ok(ShownNode::new(spot, node, tick.now))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, set) = parse(call.head)?;
    let shown = entering::commit(call, &target, set).await?;
    Ok(shown.changed(call.head, StatusCode::OK))
}
