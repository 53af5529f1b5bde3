//! Create File: a file of zeros, or one that begins with the bytes of the body. A file that is there is replaced.

use concurrency::share_mode::RestAccess;
use concurrency::Timestamp;
use content::upload::{self, Received};
use engine::{Changes, Rows, Tick};
use service::request::{BodySums, body_sums};
use service::{HttpHeaders, RequestError, reply};
use wire::http::{Body, Head, Reply, StatusCode};

use super::Call;
use super::put_range::{BODY_BYTES_MAX, receive, set_sums};
use crate::change::create::{self, NewFile, NewNode};
use crate::entering::{self, Admission, NodeChange, NodeRead};
use crate::error::FileError;
use crate::model::{Halt, refuse};
use crate::reply::node::ShownNode;
use crate::request::{FILE_LENGTH, HTTP_HEADERS, required};
use crate::tree::{Spot, Target};
use crate::{Failure, request, smb_headers};

const TYPE: &str = "x-ms-type";

#[derive(Clone, Debug)]
struct CreateFile {
    new: NewNode,
    file: NewFile,
    /// The first bytes of the file.
    body: Option<Received>,
}

fn parse(head: &Head, may_replace: bool) -> Result<(Target, CreateFile), FileError> {
    let target = request::file(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    let kind = required(head, TYPE)?;
    if !kind.eq_ignore_ascii_case("file") {
        return Err(FileError::header(TYPE, kind));
    }
    let length = request::file_length(head)?.ok_or(RequestError::MissingRequiredHeader { name: FILE_LENGTH })?;
    let mut headers = HttpHeaders::parse(head, &HTTP_HEADERS)?;
    headers.content_type.get_or_insert_with(|| reply::CONTENT_TYPE_DEFAULT.to_owned());
    let file = NewFile { length, headers, lease: request::lease_id(head)?, may_replace };
    let new = NewNode { settings: smb_headers::parse(head)?, metadata: request::metadata(head)? };
    Ok((target, CreateFile { new, file, body: None }))
}

/// The sums that the body must have, if one is announced. It must fit into the file.
fn announced(head: &Head, body: &dyn Body, file: &NewFile) -> Result<Option<BodySums>, FileError> {
    if body.length().is_none_or(|length| length == 0) {
        return Ok(None);
    }
    let length = upload::announced(head, body, BODY_BYTES_MAX)?.length;
    if length > file.length {
        return Err(FileError::header("content-length", length.to_string()));
    }
    Ok(Some(body_sums(head)?))
}

/// Whether the file may be created, before its bytes are asked for.
struct MayCreate(NewFile);

impl NodeRead for MayCreate {
    type Outcome = ();

    fn admission(&self, _: &Spot) -> Admission {
        Admission::of(RestAccess::Replace)
    }

    fn read(&self, spot: &Spot, _: &dyn Rows, now: Timestamp) -> Result<(), Halt> {
        self.0.judge(spot, now).map(|_lease| ()).map_err(refuse)
    }
}

impl NodeChange for CreateFile {
    type Outcome = ShownNode;

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Replace).in_turn()
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<ShownNode, Halt> {
        let first = self.body.as_ref().and_then(|received| received.staged.as_ref());
        let node = create::file(spot, &self.new, &self.file, first, rows, tick, changes)?;
        Ok(ShownNode::new(spot, node, tick.now))
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    // A signature that only lets create does not let replace.
    let (target, mut create) = parse(call.head, call.asker.caller.has(b'w'))?;
    let Some(sums) = announced(call.head, body, &create.file)? else {
        let shown = entering::commit(call, &target, create).await?;
        return Ok(shown.changed(call.head, StatusCode::CREATED));
    };
    let (spot, ()) = entering::look(call, &target, MayCreate(create.file.clone())).await?;
    let received = receive(call, body, &sums).await?;
    create.body = Some(received.clone());
    let shown = entering::commit_at(call, &target, Some(spot), create).await?;
    let mut answer = shown.changed(call.head, StatusCode::CREATED);
    set_sums(&mut answer, call.head, &received);
    Ok(answer)
}
