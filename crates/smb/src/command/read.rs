//! READ: bytes of a file or a pipe (MS-SMB2 3.3.5.12).

use std::sync::atomic::Ordering;

use super::refusal::status_of;
use super::{Answer, Call, pipe};
use crate::open::OpenKind;
use crate::status::{Result, Status};
use crate::wire::{Response, read};

pub(super) async fn run(call: &Call, request: read::Request) -> Result<Answer> {
    let open = call.open(request.file_id)?;
    let file = match &open.kind {
        OpenKind::File(file) => file,
        OpenKind::Pipe(pipe) => {
            let (data, status, left) = pipe::read(pipe, request.length as usize)?;
            let remaining = u32::try_from(left).unwrap_or(u32::MAX);
            let body = read::Response { data: vec![data.into()], remaining };
            return Ok(Answer::with(status, Response::Read(body)));
        }
    };
    if i64::try_from(request.offset).is_err() {
        return Err(Status::INVALID_PARAMETER);
    }
    let data = file.door.read(request.offset, request.length).await.map_err(status_of)?;
    file.position.store(request.offset.saturating_add(data.len() as u64), Ordering::Relaxed);
    if data.len() < request.minimum as usize {
        return Err(Status::END_OF_FILE);
    }
    Ok(Answer::new(Response::Read(read::Response { data: vec![data], remaining: 0 })))
}
