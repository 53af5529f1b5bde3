//! Set File Properties: HTTP headers, length, attributes, times and permission.
//!
//! If any of the six HTTP headers is given, all six are set; otherwise they stay, as everything does that the request does not
//! name.

use concurrency::LeaseId;
use concurrency::share_mode::RestAccess;
use engine::{Changes, Rows, Tick};
use service::HttpHeaders;
use wire::http::{Head, Reply, StatusCode};

use super::Call;
use crate::change::set::{self, FileSettings};
use crate::entering::{self, Admission, NodeChange};
use crate::error::FileError;
use crate::model::Halt;
use crate::reply::node::ShownNode;
use crate::request::HTTP_HEADERS;
use crate::tree::{Spot, Target};
use crate::{Failure, request, smb_headers};

#[derive(Clone, PartialEq, Eq, Debug)]
struct SetFileProperties {
    settings: FileSettings,
    lease: Option<LeaseId>,
}

fn parse(head: &Head) -> Result<(Target, SetFileProperties), FileError> {
    let target = request::file(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    let headers = match HTTP_HEADERS.are_in(head) {
        true => Some(HttpHeaders::parse(head, &HTTP_HEADERS)?),
        false => None,
    };
    let settings = FileSettings { headers, length: request::file_length(head)?, smb: smb_headers::parse(head)? };
    Ok((target, SetFileProperties { settings, lease: request::lease_id(head)? }))
}

impl NodeChange for SetFileProperties {
    type Outcome = ShownNode;

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Write).in_turn()
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<ShownNode, Halt> {
        let node = set::file_properties(spot, &self.settings, self.lease, rows, tick, changes)?;
        Ok(ShownNode::new(spot, node, tick.now))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, set) = parse(call.head)?;
    let shown = entering::commit(call, &target, set).await?;
    Ok(shown.changed(call.head, StatusCode::OK))
}
