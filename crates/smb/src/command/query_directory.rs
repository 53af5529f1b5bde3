//! QUERY_DIRECTORY: entries of a directory (MS-SMB2 3.3.5.18).

use file::door::{DirectoryEntry, LISTED_ENTRIES_MAX};

use super::refusal::status_of;
use super::{Answer, Call, filetime};
use crate::status::{Result, Status};
use crate::wire::info::directory::{DirectoryClass, Entry, Listing};
use crate::wire::query_directory::{self, REOPEN, RESTART_SCANS, RETURN_SINGLE_ENTRY};
use crate::wire::{Response, Times};

pub(super) async fn run(call: &Call, request: query_directory::Request) -> Result<Answer> {
    let open = call.open(request.file_id)?;
    let file = open.file()?;
    if !file.door.is_directory() {
        return Err(Status::INVALID_PARAMETER);
    }
    let class = DirectoryClass::from_u8(request.class)?;
    if request.pattern.is_empty() {
        return Err(Status::OBJECT_NAME_INVALID);
    }
    let mut listing = Listing::new(class, request.output_bytes as usize)?;
    let is_single = request.flags & RETURN_SINGLE_ENTRY != 0;
    let mut restart = request.flags & (RESTART_SCANS | REOPEN) != 0;
    let most = if is_single { 1 } else { room(class, request.output_bytes as usize) };
    let _one_at_a_time = file.listing.lock().await;
    // An answer is one page of the File service: what was renamed between two of them would be in it twice.
    let entries = loop {
        let entries = file.door.list(&request.pattern, restart, most).await.map_err(status_of)?;
        if !entries.is_empty() {
            break entries;
        }
        restart = false;
        // None of very many names has matched so far. Others get their turn in between, and whoever waits can give up.
        tokio::task::yield_now().await;
    };
    let fitting = entries.iter().take_while(|entry| listing.push(&shown(entry))).count();
    if let Some(last) = fitting.checked_sub(1) {
        file.door.advance(&entries[last]);
    }
    let buffer = listing.finish()?;
    Ok(Answer::new(Response::QueryDirectory(query_directory::Response { buffer })))
}

/// How many entries to ask for: as many as have room if their names are short, and one, to know that there is one.
fn room(class: DirectoryClass, output_bytes: usize) -> usize {
    let each = class.fixed_bytes() + 16;
    (output_bytes / each).clamp(1, LISTED_ENTRIES_MAX)
}

fn shown(entry: &DirectoryEntry) -> Entry {
    Entry {
        name: entry.name.clone(),
        times: Times {
            creation: filetime(entry.created),
            last_access: filetime(entry.accessed),
            last_write: filetime(entry.written),
            change: filetime(entry.changed),
        },
        end_of_file: entry.length,
        allocation_size: entry.allocation,
        attributes: entry.attributes,
        file_id: entry.id,
        reparse_tag: 0,
    }
}
