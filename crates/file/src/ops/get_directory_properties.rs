//! Get Directory Properties: attributes, times, permission and metadata of a directory, or of the root of a share.

use concurrency::Timestamp;
use concurrency::share_mode::RestAccess;
use engine::Rows;
use service::reply;
use wire::http::{Head, Reply, StatusCode};

use super::Call;
use crate::entering::{self, Admission, NodeRead};
use crate::error::FileError;
use crate::model::{Halt, refuse};
use crate::reply::node::ShownNode;
use crate::tree::{Spot, Target};
use crate::{Failure, request};

/// A read of a directory's state; Get Directory Metadata is the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadDirectory;

impl ReadDirectory {
    pub fn parse(head: &Head) -> Result<Target, FileError> {
        let target = request::directory(head)?;
        request::no_conditions(head)?;
        request::no_snapshot(head)?;
        Ok(target)
    }
}

impl NodeRead for ReadDirectory {
    type Outcome = ShownNode;

    fn admission(&self, _: &Spot) -> Admission {
        Admission::of(RestAccess::Look)
    }

    fn read(&self, spot: &Spot, _: &dyn Rows, now: Timestamp) -> Result<ShownNode, Halt> {
        Ok(ShownNode::new(spot, spot.read_directory().map_err(refuse)?.clone(), now))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let target = ReadDirectory::parse(call.head)?;
    let (_, shown) = entering::look(call, &target, ReadDirectory).await?;
    let mut answer = reply::reply(StatusCode::OK);
    shown.set_on(&mut answer.headers, call.head);
    Ok(answer)
}
