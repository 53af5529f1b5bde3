//! CREATE: opens a file, a directory or a pipe (MS-SMB2 3.3.5.9). Leases and oplocks are not granted, handles are not durable; clients that
//! ask for them get an open without.

use std::sync::Arc;

use bytes::Bytes;
use concurrency::Timestamp;
use file::door::{CreateRequest, FileInfo, HandleOwner, Tree};
use file::opens::{Client, HandleId};

use super::refusal::status_of;
use super::{Answer, Call, pipe};
use crate::open::{FileOpen, Open, OpenKind};
use crate::status::{Result, Status};
use crate::user::TreeKind;
use crate::wire::create::{self, access, oplock_level, option};
use crate::wire::create_context::{RequestContexts, ResponseContext};
use crate::wire::{Response, Times, snapshot_token};

/// Options that no client may send, and those that are not there, as Windows answers them.
const OPTIONS_INVALID: u32 = 0xFF00_0000;
const OPTIONS_NOT_SUPPORTED: u32 = option::OPEN_BY_FILE_ID | option::RESERVE_OPFILTER | 0x80;
/// Attributes that are defined (MS-FSCC 2.6).
const ATTRIBUTES_KNOWN: u32 = 0x0002_FFB7;
/// Options that FileModeInformation tells (MS-FSCC 2.4.26).
const MODE_OPTIONS: u32 = option::WRITE_THROUGH
    | option::SEQUENTIAL_ONLY
    | option::NO_INTERMEDIATE_BUFFERING
    | option::SYNCHRONOUS_IO_ALERT
    | option::SYNCHRONOUS_IO_NONALERT
    | option::DELETE_ON_CLOSE;

pub(super) async fn run(call: &Call, request: create::Request) -> Result<Answer> {
    let tree = call.tree()?;
    let (share, volume) = match &tree.kind {
        TreeKind::Ipc => return pipe::create(call, &request, tree.id).await,
        TreeKind::Share { tree, volume } => (tree, *volume),
    };
    check(&request)?;
    let user = call.user()?;
    user.may_open()?;
    let (mode, contexts) = (request.options & MODE_OPTIONS, request.contexts.clone());
    let opened = Box::pin(share.open(asked(call, request)?)).await.map_err(status_of)?;
    let (action, info, is_in_snapshot) = (opened.action, opened.info, opened.file.is_in_snapshot());
    let file = FileOpen::new(opened.file, mode);
    let open = user.add_open(tree.id, |id| Open::new(id, tree.id, OpenKind::File(Box::new(file)))).await?;
    let created = create::Response {
        oplock: oplock_level::NONE,
        action,
        times: times(&info),
        allocation_size: info.allocation,
        end_of_file: info.length,
        attributes: info.attributes,
        file_id: open.id,
        contexts: answers(&contexts, &info, (volume, is_in_snapshot)),
    };
    Ok(Answer::new(Response::Create(Box::new(created))))
}

/// What can be judged without looking at the file.
fn check(request: &create::Request) -> Result<()> {
    if request.name.starts_with('\\') {
        return Err(Status::INVALID_PARAMETER);
    }
    if request.desired_access == 0 || request.desired_access & !access::KNOWN != 0 {
        return Err(Status::ACCESS_DENIED);
    }
    if request.options & OPTIONS_INVALID != 0 || request.share_access & !7 != 0 {
        return Err(Status::INVALID_PARAMETER);
    }
    if request.attributes & !ATTRIBUTES_KNOWN != 0 {
        return Err(Status::INVALID_PARAMETER);
    }
    if request.options & OPTIONS_NOT_SUPPORTED != 0 {
        return Err(Status::NOT_SUPPORTED);
    }
    let contexts = &request.contexts;
    // A durable handle that nobody has.
    if contexts.reconnect.is_some() || contexts.reconnect_v2.is_some() {
        return Err(Status::OBJECT_NAME_NOT_FOUND);
    }
    if contexts.extended_attributes.as_ref().is_some_and(|attributes| !attributes.is_empty()) {
        return Err(Status::EAS_NOT_SUPPORTED);
    }
    Ok(())
}

fn asked(call: &Call, request: create::Request) -> Result<CreateRequest> {
    let session = &call.user()?.session;
    let address = call.conversation.peer;
    let (path, snapshot) = snapshot(&request)?;
    Ok(CreateRequest {
        path,
        snapshot,
        access: request.desired_access,
        sharing: request.share_access,
        disposition: request.disposition,
        options: request.options,
        attributes: request.attributes,
        security: request.contexts.security_descriptor.map(Bytes::from),
        allocation: request.contexts.allocation_size,
        client: Client { session: session.id, address, name: address.ip().to_string() },
        owner: Arc::new(Owner),
    })
}

/// The path, and the time of the snapshot that it is in: as the context `TWrp` says it, or a token in the path.
fn snapshot(request: &create::Request) -> Result<(String, Option<Timestamp>)> {
    let (path, token) = snapshot_token::split(&request.name);
    let named = match request.contexts.timewarp {
        None | Some(0) => token,
        // Snapshots are taken at whole seconds. No snapshot is of a time that no date has.
        Some(time) => {
            let time = file::door::time_of(time).ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
            Some(time.whole_seconds())
        }
    };
    Ok((resolved(&path)?, named))
}

/// The path without `.` and `..`, which no client needs and Windows takes.
fn resolved(name: &str) -> Result<String> {
    let is_dots = |part: &str| part == "." || part == "..";
    if !name.split('\\').any(is_dots) {
        return Ok(name.to_owned());
    }
    let mut parts = Vec::new();
    for part in name.split('\\') {
        match part {
            "." => {}
            ".." => {
                parts.pop().ok_or(Status::OBJECT_PATH_SYNTAX_BAD)?;
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("\\"))
}

/// A handle that was closed by force is noticed at its next request, which the File service refuses.
#[derive(Debug)]
struct Owner;

impl HandleOwner for Owner {
    fn closed(&self, handle: HandleId) {
        tracing::debug!(handle = handle.0, "an SMB handle was closed by force");
    }
}

fn answers(asked: &RequestContexts, info: &FileInfo, (volume, is_in_snapshot): (u64, bool)) -> Vec<ResponseContext> {
    let mut contexts = Vec::new();
    if asked.maximal_access.is_some() {
        let access = if is_in_snapshot { access::READ_AND_EXECUTE } else { access::FILE_ALL_ACCESS };
        contexts.push(ResponseContext::MaximalAccess { status: Status::SUCCESS, access });
    }
    if asked.on_disk_id {
        contexts.push(ResponseContext::OnDiskId { file_id: info.id, volume_id: volume });
    }
    contexts
}

/// The times of a file as the wire has them.
pub(super) fn times(info: &FileInfo) -> Times {
    Times {
        creation: super::filetime(info.created),
        last_access: super::filetime(info.accessed),
        last_write: super::filetime(info.written),
        change: super::filetime(info.changed),
    }
}

/// For commands that need the share of a tree.
pub(super) fn share(kind: &TreeKind) -> Result<(&Tree, u64)> {
    match kind {
        TreeKind::Share { tree, volume } => Ok((tree, *volume)),
        TreeKind::Ipc => Err(Status::INVALID_DEVICE_REQUEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_resolved_within_the_share() {
        for (name, path) in [
            ("", Ok("")),
            ("a\\b", Ok("a\\b")),
            ("a\\..\\b", Ok("b")),
            ("a\\.\\b\\..", Ok("a")),
            ("a\\..", Ok("")),
            ("...", Ok("...")),
            ("..", Err(Status::OBJECT_PATH_SYNTAX_BAD)),
            ("a\\..\\..\\b", Err(Status::OBJECT_PATH_SYNTAX_BAD)),
        ] {
            assert_eq!(resolved(name), path.map(str::to_owned), "{name}");
        }
    }
}
