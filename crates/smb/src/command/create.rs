//! CREATE: opens a file, a directory or a pipe (MS-SMB2 3.3.5.9), with an oplock or a lease, durable or not.

use std::sync::Arc;

use bytes::Bytes;
use concurrency::Timestamp;
use concurrency::caching::Caching;
use file::door::{CreateAction, CreateRequest, FileInfo, HandleOwner, Tree};
use file::opens::{CachingRequest, Client, GrantedCaching, LeaseName};

use super::durable::{self, Wish};
use super::refusal::status_of;
use super::{Answer, Call, pipe};
use crate::breaks::{Owner, level, level_of};
use crate::durable::Durable;
use crate::open::{FileOpen, Open, OpenKind};
use crate::replay::Begun;
use crate::status::{Result, Status};
use crate::user::TreeKind;
use crate::wire::create::{self, access, oplock_level, option};
use crate::wire::create_context::{Lease, LeaseV2, RequestContexts, ResponseContext, lease_flag};
use crate::wire::{FileId, Response, Times, snapshot_token};

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
    let wish = Wish::new(&request.contexts, call.knows_v2()?)?;
    if let Wish::Again(again) = wish {
        return durable::reconnect(call, (share, volume), tree.id, &request, again).await;
    }
    check(&request)?;
    let user = call.user()?;
    user.may_open()?;
    let named = match wish {
        Wish::None | Wish::V1 | Wish::Again(_) => None,
        Wish::V2(asked) => {
            let key = (call.client()?, asked.create_guid);
            match call.conversation.server.replays.begin(key, user.session.id, call.is_replay)? {
                Begun::New(named) => Some(named),
                Begun::Again(file) => return durable::replay(&file, &request),
            }
        }
    };
    let (mode, contexts) = (request.options & MODE_OPTIONS, request.contexts.clone());
    let owner = Arc::new(Owner::new(&call.conversation, &user.session, &call.breaks));
    let opened = Box::pin(share.open(asked(call, share, request, &owner)?)).await.map_err(status_of)?;
    let (action, info, granted) = (opened.action, opened.info, opened.file.caching());
    let is_in_snapshot = opened.file.is_in_snapshot();
    let durable = wish.granted(call, &opened.file)?;
    let file = Arc::new(FileOpen::new(opened.file, Arc::clone(&owner), mode).durable(durable));
    let persistent = call.conversation.server.next_open();
    let make = |id| Open::new(id, tree.id, OpenKind::File(Arc::clone(&file)));
    let open = user.add_open(tree.id, persistent, make).await?;
    owner.opened(open.id);
    let told = Told { action, info: &info, volume, is_in_snapshot, granted, durable: file.durable.as_ref() };
    let created = response(open.id, &told, &contexts);
    if let Some(named) = named {
        file.can_be_replayed(user.session.id, named, &created);
    }
    Ok(Answer { opened: Some(owner), ..Answer::new(Response::Create(Box::new(created))) })
}

/// What the answer tells of an open.
#[derive(Debug)]
pub(super) struct Told<'a> {
    pub action: CreateAction,
    pub info: &'a FileInfo,
    pub volume: u64,
    pub is_in_snapshot: bool,
    pub granted: GrantedCaching,
    pub durable: Option<&'a Durable>,
}

/// The answer to a CREATE that asked for `contexts`.
pub(super) fn response(file_id: FileId, told: &Told<'_>, contexts: &RequestContexts) -> create::Response {
    let info = told.info;
    create::Response {
        oplock: match told.granted {
            GrantedCaching::None => oplock_level::NONE,
            GrantedCaching::Oplock(granted) => level(granted),
            GrantedCaching::Lease { .. } => oplock_level::LEASE,
        },
        action: told.action,
        times: times(info),
        allocation_size: info.allocation,
        end_of_file: info.length,
        attributes: info.attributes,
        file_id,
        contexts: answers(contexts, told),
    }
}

/// Who has a handle, as List Handles shows it.
pub(super) fn client(call: &Call) -> Result<Client> {
    let address = call.conversation.peer;
    Ok(Client { session: call.user()?.session.id, address, name: address.ip().to_string() })
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
    if contexts.extended_attributes.as_ref().is_some_and(|attributes| !attributes.is_empty()) {
        return Err(Status::EAS_NOT_SUPPORTED);
    }
    Ok(())
}

fn asked(call: &Call, share: &Tree, request: create::Request, owner: &Arc<Owner>) -> Result<CreateRequest> {
    let caching = caching(call, share, &request)?;
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
        client: client(call)?,
        caching,
        owner: Arc::clone(owner) as Arc<dyn HandleOwner>,
    })
}

/// The oplock or the lease that is asked for.
fn caching(call: &Call, share: &Tree, request: &create::Request) -> Result<CachingRequest> {
    if request.oplock != oplock_level::LEASE {
        return Ok(CachingRequest::Oplock(level_of(request.oplock)));
    }
    let Some(Lease { key, state, flags, v2 }) = request.contexts.lease else { return Ok(CachingRequest::None) };
    let v2 = v2.map(|v2| file::opens::LeaseV2 {
        epoch: v2.epoch,
        parent: (flags & lease_flag::PARENT_KEY_SET != 0).then_some(v2.parent_key),
    });
    let name = LeaseName { account: share.account(), client: call.client()?, key };
    Ok(CachingRequest::Lease { name, state: Caching::from_bits(state), v2 })
}

/// The lease as the answer tells it.
pub(super) fn lease_of(granted: GrantedCaching) -> Option<Lease> {
    let GrantedCaching::Lease { key, state, is_breaking, v2 } = granted else { return None };
    let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
    let parent = v2.and_then(|v2| v2.parent);
    Some(Lease {
        key,
        state: state.bits(),
        flags: flag(is_breaking, lease_flag::BREAK_IN_PROGRESS) | flag(parent.is_some(), lease_flag::PARENT_KEY_SET),
        v2: v2.map(|v2| LeaseV2 { parent_key: parent.unwrap_or_default(), epoch: v2.epoch }),
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

fn answers(asked: &RequestContexts, told: &Told<'_>) -> Vec<ResponseContext> {
    let mut contexts = Vec::new();
    contexts.extend(lease_of(told.granted).map(ResponseContext::Lease));
    contexts.extend(told.durable.map(durable::answer));
    if asked.maximal_access.is_some() {
        let access = if told.is_in_snapshot { access::READ_AND_EXECUTE } else { access::FILE_ALL_ACCESS };
        contexts.push(ResponseContext::MaximalAccess { status: Status::SUCCESS, access });
    }
    if asked.on_disk_id {
        contexts.push(ResponseContext::OnDiskId { file_id: told.info.id, volume_id: told.volume });
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
