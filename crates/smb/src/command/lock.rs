//! LOCK: byte-range locks (MS-SMB2 3.3.5.14). All ranges of a request are locked or none.

use concurrency::range_lock::LockKind;
use file::door::Lock;

use super::refusal::status_of;
use super::{Answer, Call};
use crate::status::{Result, Status};
use crate::wire::lock::{self, Action, Element};
use crate::wire::{Empty, Response};

pub(super) async fn run(call: &Call, request: lock::Request) -> Result<Answer> {
    let open = call.open(request.file_id)?;
    let file = &open.file()?.door;
    let locks: Vec<(Lock, bool)> = request.locks.iter().filter_map(asked).collect();
    match &locks[..] {
        [] => {
            let ranges: Vec<(u64, u64)> =
                request.locks.iter().map(|element| (element.offset, element.length)).collect();
            file.unlock(&ranges).map_err(status_of)?;
        }
        // In a compound nothing but the last request may wait.
        [(lock, false)] if call.may_wait => file.lock_waiting(*lock).await.map_err(status_of)?,
        // Waiting for several at once is not defined.
        [_, _, ..] if locks.iter().any(|(_, at_once)| !at_once) => return Err(Status::INVALID_PARAMETER),
        _ => {
            let locks: Vec<Lock> = locks.iter().map(|(lock, _)| *lock).collect();
            file.lock(&locks).await.map_err(status_of)?;
        }
    }
    Ok(Answer::new(Response::Lock(Empty)))
}

/// The lock, and whether it is to be granted at once or not at all. None for an unlock.
fn asked(element: &Element) -> Option<(Lock, bool)> {
    match element.action {
        Action::Unlock => None,
        Action::Lock { exclusive, fail_immediately } => {
            let kind = if exclusive { LockKind::Exclusive } else { LockKind::Shared };
            Some((Lock { offset: element.offset, length: element.length, kind }, fail_immediately))
        }
    }
}
