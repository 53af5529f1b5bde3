//! What commands do with a pipe of IPC$.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::refusal::status_of;
use super::{Answer, Call};
use crate::open::{Open, OpenKind};
use crate::pipe::srvsvc::{SHARES_MAX, Server, Share, ShareKind};
use crate::pipe::{Pipe, Progress, is_srvsvc};
use crate::status::{Result, Status};
use crate::wire::create::{self, Action};
use crate::wire::{Response, Times};

/// Pipes are files without attributes.
const ATTRIBUTE_NORMAL: u32 = 0x80;

fn lock(pipe: &Mutex<Pipe>) -> MutexGuard<'_, Pipe> {
    pipe.lock().unwrap_or_else(PoisonError::into_inner)
}

/// CREATE on IPC$.
pub(super) async fn create(call: &Call, request: &create::Request, tree_id: u32) -> Result<Answer> {
    if !is_srvsvc(&request.name) {
        return Err(Status::OBJECT_NAME_NOT_FOUND);
    }
    let user = call.user()?;
    user.may_open()?;
    let persistent = call.conversation.server.next_open();
    let make = |id| Open::new(id, tree_id, OpenKind::Pipe(Mutex::default()));
    let open = user.add_open(tree_id, persistent, make).await?;
    let created = create::Response {
        oplock: create::oplock_level::NONE,
        action: Action::Opened,
        times: Times::default(),
        allocation_size: 4096,
        end_of_file: 0,
        attributes: ATTRIBUTE_NORMAL,
        file_id: open.id,
        contexts: Vec::new(),
    };
    Ok(Answer::new(Response::Create(Box::new(created))))
}

/// Takes what WRITE or PIPE_TRANSCEIVE brings.
pub(super) async fn write(call: &Call, pipe: &Mutex<Pipe>, bytes: &[u8]) -> Result<()> {
    let progress = {
        let mut pipe = lock(pipe);
        pipe.take(bytes)?;
        pipe.answer(None)?
    };
    if progress == Progress::NeedsServer {
        // Only a call that is complete is worth a list of all shares.
        let shares = shares(call).await?;
        let server = Server { name: "LAZURITE", comment: "Lazurite", shares: &shares };
        lock(pipe).answer(Some(&server))?;
    }
    Ok(())
}

/// Up to `max` bytes of the next message, and what is left of it.
pub(super) fn read(pipe: &Mutex<Pipe>, max: usize) -> Result<(Vec<u8>, Status, usize)> {
    let mut pipe = lock(pipe);
    let read = pipe.read(max)?;
    let left = if read.status == Status::BUFFER_OVERFLOW { pipe.available() } else { 0 };
    Ok((read.data, read.status, left))
}

/// Bytes of the next message.
pub(super) fn available(pipe: &Mutex<Pipe>) -> usize {
    lock(pipe).available()
}

/// The shares of the account that is logged on, and IPC$.
async fn shares(call: &Call) -> Result<Vec<Share>> {
    let account = call.account().await?;
    let names = call.conversation.server.door.shares(account).await.map_err(status_of)?;
    let disk = |name: String| Share { name, kind: ShareKind::Disk, remark: String::new() };
    let ipc = Share { name: "IPC$".into(), kind: ShareKind::Ipc, remark: "IPC Service".into() };
    Ok(names.into_iter().take(SHARES_MAX).map(disk).chain([ipc]).collect())
}
