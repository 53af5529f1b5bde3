//! LOCK: byte-range locks (MS-SMB2 3.3.5.14). All ranges of a request are locked or none.

use concurrency::range_lock::LockKind;
use file::door::{Lock, OpenFile, Refused};

use super::refusal::status_of;
use super::{Answer, Call};
use crate::status::{Result, Status};
use crate::wire::lock::{self, Action, Element};
use crate::wire::{Empty, Response};

pub(super) async fn run(call: &Call, request: lock::Request) -> Result<Answer> {
    let open = call.open(request.file_id)?;
    let open = open.file()?;
    let (index, number) = (request.sequence_index, request.sequence_number);
    // A client that lost its connection does not know whether its request was carried out, and sends it again.
    if open.durable.is_some() && open.lock_sequences().is_replay(index, number) {
        return Ok(Answer::new(Response::Lock(Empty)));
    }
    let file = &open.door;
    match request.locks.first().map(|element| element.action) {
        Some(Action::Unlock) => unlock(file, &request.locks)?,
        Some(Action::Lock { .. } | Action::Invalid) | None => lock(call, file, &request.locks).await?,
    }
    open.lock_sequences().done(index, number);
    Ok(Answer::new(Response::Lock(Empty)))
}

/// Unlocks one after the other. A range that is not locked, or is no unlock, ends it; those before it are unlocked.
fn unlock(file: &OpenFile, elements: &[Element]) -> Result<()> {
    for element in elements {
        if element.action != Action::Unlock {
            return Err(Status::INVALID_PARAMETER);
        }
        file.unlock(&[(element.offset, element.length)]).map_err(status_of)?;
    }
    Ok(())
}

async fn lock(call: &Call, file: &OpenFile, elements: &[Element]) -> Result<()> {
    let locks: Vec<(Lock, bool)> = elements.iter().map(asked).collect::<Result<_>>()?;
    match &locks[..] {
        // In a compound nothing but the last request may wait. A lock whose handle closes while it waits was never there.
        [(lock, false)] if call.may_wait => file.lock_waiting(*lock).await.map_err(|refused| match refused {
            Refused::FileClosed => Status::RANGE_NOT_LOCKED,
            refused => status_of(refused),
        }),
        // Waiting for several at once is not defined.
        [_, _, ..] if locks.iter().any(|(_, at_once)| !at_once) => Err(Status::INVALID_PARAMETER),
        _ => {
            let locks: Vec<Lock> = locks.iter().map(|(lock, _)| *lock).collect();
            file.lock(&locks).await.map_err(status_of)
        }
    }
}

/// The lock, and whether it is to be granted at once or not at all.
fn asked(element: &Element) -> Result<(Lock, bool)> {
    match element.action {
        Action::Unlock | Action::Invalid => Err(Status::INVALID_PARAMETER),
        Action::Lock { exclusive, fail_immediately } => {
            let kind = if exclusive { LockKind::Exclusive } else { LockKind::Shared };
            Ok((Lock { offset: element.offset, length: element.length, kind }, fail_immediately))
        }
    }
}
