//! FLUSH: everything written so far is durable (MS-SMB2 3.3.5.11).

use super::refusal::status_of;
use super::{Answer, Call};
use crate::open::OpenKind;
use crate::status::Result;
use crate::wire::{Empty, Response, flush};

pub(super) async fn run(call: &Call, request: flush::Request) -> Result<Answer> {
    let open = call.open(request.file_id)?;
    match &open.kind {
        OpenKind::File(file) => file.door.flush().await.map_err(status_of)?,
        OpenKind::Pipe(_) => {}
    }
    Ok(Answer::new(Response::Flush(Empty)))
}
