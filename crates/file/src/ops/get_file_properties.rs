//! Get File Properties: what Get File tells, without the bytes.

use concurrency::share_mode::RestAccess;
use concurrency::{Lease, LeaseId, Timestamp};
use engine::Rows;
use service::reply::{self, CONTENT_MD5};
use wire::http::{Head, HeaderValue, Reply, StatusCode, header};

use super::Call;
use crate::entering::{self, Admission, NodeRead};
use crate::error::FileError;
use crate::model::{Halt, NodeKind, refuse};
use crate::reply::node::{self, ShownNode};
use crate::tree::{Spot, Target};
use crate::{Failure, request};

/// A read of a file's state; Get File Metadata is the same, and the others that read begin with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadFile {
    /// A read needs no lease, but one that it names must be held.
    lease: Option<LeaseId>,
}

impl ReadFile {
    pub fn parse(head: &Head) -> Result<(Target, ReadFile), FileError> {
        let target = request::file(head)?;
        request::no_conditions(head)?;
        let read = ReadFile { lease: request::lease_id(head)? };
        Ok((request::at_snapshot(head, target)?, read))
    }

    /// The file or symbolic link at a spot. Where a directory stands there is none. In a snapshot no file is leased.
    pub fn look(self, spot: &Spot, now: Timestamp) -> Result<ShownNode, FileError> {
        let mut node = spot.existing()?.clone();
        if let (NodeKind::File(state), Some(_)) = (&mut node.kind, spot.at) {
            state.lease = Lease::Available;
        }
        node.check_read(self.lease, now)?;
        Ok(ShownNode::new(spot, node, now))
    }
}

impl NodeRead for ReadFile {
    type Outcome = ShownNode;

    fn admission(&self, _: &Spot) -> Admission {
        Admission::of(RestAccess::Look)
    }

    fn read(&self, spot: &Spot, _: &dyn Rows, now: Timestamp) -> Result<ShownNode, Halt> {
        self.look(spot, now).map_err(refuse)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, read) = ReadFile::parse(call.head)?;
    let (_, shown) = entering::look(call, &target, read).await?;
    let mut answer = reply::reply(StatusCode::OK);
    shown.set_on(&mut answer.headers, call.head);
    if let Some(length) = shown.node.shown_length() {
        answer.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    if let Some(state) = shown.node.file() {
        node::set_file_md5(&mut answer.headers, state, &CONTENT_MD5);
    }
    Ok(answer)
}
