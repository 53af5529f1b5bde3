//! SET_INFO: changes a file's properties, name, length or security (MS-SMB2 3.3.5.21).

use std::sync::atomic::Ordering;

use file::door::{BasicInfo, TimeChange};

use super::refusal::status_of;
use super::{Answer, Call};
use crate::open::{FileOpen, OpenKind};
use crate::status::{Result, Status};
use crate::wire::info::set::{NewName, SetFile};
use crate::wire::query_info::InfoType;
use crate::wire::{Response, Times, set_info, snapshot_token};

/// Owner, group, DACL and SACL. Other parts of a descriptor are not kept.
const SECURITY_PARTS: u32 = 0xF;

pub(super) async fn run(call: &Call, request: set_info::Request) -> Result<Answer> {
    let open = call.open(request.file_id)?;
    match (&open.kind, request.info_type) {
        (OpenKind::File(file), InfoType::File) => {
            let set = SetFile::decode(request.class, &request.buffer)?;
            let owner = file.owner();
            // What renames or deletes may wait for other clients; the rest goes on beside it.
            let may_wait = matches!(set, SetFile::Rename(_) | SetFile::Disposition { .. });
            let _at_work = if may_wait { Some(owner.works_for(&call.breaks).await) } else { None };
            Box::pin(set_file(file, set)).await?;
        }
        (OpenKind::File(file), InfoType::Security) => {
            let parts = request.additional & SECURITY_PARTS;
            file.door.set_security(parts, &request.buffer).await.map_err(status_of)?;
        }
        (OpenKind::Pipe(_), InfoType::File) => match SetFile::decode(request.class, &request.buffer)? {
            SetFile::Pipe { .. } => {}
            _ => return Err(Status::INVALID_DEVICE_REQUEST),
        },
        (OpenKind::File(_), InfoType::FileSystem | InfoType::Quota) => return Err(Status::NOT_SUPPORTED),
        (OpenKind::Pipe(_), InfoType::FileSystem | InfoType::Quota | InfoType::Security) => {
            return Err(Status::INVALID_DEVICE_REQUEST);
        }
    }
    Ok(Answer::new(Response::SetInfo(set_info::Response)))
}

async fn set_file(file: &FileOpen, set: SetFile) -> Result<()> {
    let door = &file.door;
    let done = match set {
        SetFile::Basic { times, attributes } => door.set_basic(basic(times, attributes)?).await,
        SetFile::Rename(name) => door.rename(target(&name)?, name.replace).await,
        SetFile::Disposition { delete } => door.set_delete_pending(delete).await,
        SetFile::Allocation(size) => door.set_allocation(size).await,
        SetFile::EndOfFile(length) => door.set_end_of_file(length).await,
        SetFile::Position(position) => {
            file.position.store(position, Ordering::Relaxed);
            Ok(())
        }
        SetFile::Mode(_) => Ok(()),
        // Clients fall back to the older classes.
        SetFile::RenameEx { .. } | SetFile::DispositionEx { .. } => return Err(Status::INVALID_INFO_CLASS),
        SetFile::FullEa(_) => return Err(Status::EAS_NOT_SUPPORTED),
        SetFile::ValidDataLength(_) => return Err(Status::PRIVILEGE_NOT_HELD),
        SetFile::Link(_) | SetFile::ShortName(_) => return Err(Status::NOT_SUPPORTED),
        SetFile::Pipe { .. } => return Err(Status::INVALID_PARAMETER),
    };
    done.map_err(status_of)
}

fn basic(times: Times, attributes: u32) -> Result<BasicInfo> {
    let time = |number| TimeChange::from_filetime(number).ok_or(Status::INVALID_PARAMETER);
    Ok(BasicInfo {
        created: time(times.creation)?,
        accessed: time(times.last_access)?,
        written: time(times.last_write)?,
        changed: time(times.change)?,
        attributes,
    })
}

/// The new path. Names relative to another open are not sent over the network, and nothing comes into a snapshot.
fn target(name: &NewName) -> Result<&str> {
    if name.root != 0 {
        return Err(Status::INVALID_PARAMETER);
    }
    match snapshot_token::split(&name.name) {
        (_, None) => Ok(&name.name),
        (_, Some(_)) => Err(Status::MEDIA_WRITE_PROTECTED),
    }
}
