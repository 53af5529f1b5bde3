//! CHANGE_NOTIFY: waits for changes below a directory (MS-SMB2 3.3.5.19).

use file::door::{ChangeKind, Changes, Refused};

use super::refusal::status_of;
use super::{Answer, Call};
use crate::status::{Result, Status};
use crate::wire::Response;
use crate::wire::change_notify::{self, Action, Change, WATCH_TREE, encode_changes};

pub(super) async fn run(call: &Call, request: change_notify::Request) -> Result<Answer> {
    let open = call.open(request.file_id)?;
    let open = open.file()?;
    let file = &open.door;
    if !file.is_directory() {
        return Err(Status::INVALID_PARAMETER);
    }
    // In a compound nothing but the last request may wait.
    if !call.may_wait {
        return Err(Status::INTERNAL_ERROR);
    }
    let room = request.output_bytes.min(*open.notify_bytes.get_or_init(|| request.output_bytes));
    let changes = match file.changes(request.filter, request.flags & WATCH_TREE != 0).await {
        Ok(Changes::Records(changes)) => changes,
        Ok(Changes::Overflow) => return Ok(answer(Status::NOTIFY_ENUM_DIR, Vec::new())),
        Err(Refused::FileClosed) => return Ok(answer(Status::NOTIFY_CLEANUP, Vec::new())),
        Err(refused) => return Err(status_of(refused)),
    };
    let changes: Vec<Change> = changes.into_iter().map(shown).collect();
    Ok(match encode_changes(&changes, room as usize) {
        Some(buffer) => answer(Status::SUCCESS, buffer),
        None => answer(Status::NOTIFY_ENUM_DIR, Vec::new()),
    })
}

fn answer(status: Status, buffer: Vec<u8>) -> Answer {
    Answer::with(status, Response::ChangeNotify(change_notify::Response { buffer }))
}

fn shown(change: file::door::Change) -> Change {
    let action = match change.kind {
        ChangeKind::Added => Action::Added,
        ChangeKind::Removed => Action::Removed,
        ChangeKind::Modified => Action::Modified,
        ChangeKind::RenamedFrom => Action::RenamedOldName,
        ChangeKind::RenamedTo => Action::RenamedNewName,
    };
    Change { action, name: change.path }
}
