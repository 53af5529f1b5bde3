//! WRITE: bytes to a file or a pipe (MS-SMB2 3.3.5.13). Every write is durable when it is answered.

use super::refusal::status_of;
use super::{Answer, Call, pipe};
use crate::open::OpenKind;
use crate::status::{Result, Status};
use crate::wire::{Response, write};

pub(super) async fn run(call: &Call, request: write::Request) -> Result<Answer> {
    let open = call.open(request.file_id)?;
    let count = u32::try_from(request.data.len()).map_err(|_| Status::INVALID_PARAMETER)?;
    match &open.kind {
        OpenKind::Pipe(pipe) => pipe::write(call, pipe, &request.data).await?,
        OpenKind::File(file) => {
            let end = request.offset.checked_add(u64::from(count)).filter(|end| i64::try_from(*end).is_ok());
            end.ok_or(Status::INVALID_PARAMETER)?;
            file.door.write(request.offset, request.data).await.map_err(status_of)?;
        }
    }
    Ok(Answer::new(Response::Write(write::Response { count })))
}
