//! Removing a file or an empty directory.

use concurrency::LeaseId;
use engine::{Changes, Rows, Tick, Visit};

use wire::file_path::FoldedName;
use wire::names::ShareName;

use super::entry;
use crate::error::FileError;
use crate::model::{Halt, Node, entries_of, find_guard, refuse};
use crate::opens::FileId;
use crate::tree::{self, Spot};

/// Removes the directory that stands at a spot, which must be empty.
pub fn directory(spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<(), Halt> {
    if spot.is_root() {
        return Err(refuse(FileError::InvalidInput { reason: "The root directory of a share cannot be deleted." }));
    }
    let node = spot.existing().map_err(refuse)?;
    if !node.is_directory() {
        return Err(refuse(FileError::ResourceTypeMismatch));
    }
    if has_entries(rows, spot, node)? {
        return Err(refuse(FileError::DirectoryNotEmpty));
    }
    entry::remove(spot, node, rows, tick, changes)
}

/// Removes the file or symbolic link that stands at a spot, if its lease lets it go, and says how many names it has left. That it
/// is read-only does not matter.
pub fn file(
    spot: &Spot,
    lease: Option<LeaseId>,
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<usize, Halt> {
    let node = spot.existing().map_err(refuse)?;
    node.check_write(lease, tick.now).map_err(refuse)?;
    entry::remove(spot, node, rows, tick, changes)?;
    Ok(node.link_count() - 1)
}

/// Removes what SMB has marked for deletion, now that its last handle is closed: wherever it is by now, and whatever its lease
/// and its attributes say. What is gone already, and a directory into which something came meanwhile, stays as it is. `place`
/// is where the last handle had it: the ids of the directories above from the root down, and its name. Says where it was, if it is
/// removed.
pub fn closed(
    rows: &dyn Rows,
    account: u64,
    share: &ShareName,
    (file, place): (FileId, (&[u64], &FoldedName)),
    tick: Tick,
    changes: &mut Changes,
) -> Result<Option<Spot>, Halt> {
    let Some(share) = find_guard(rows, account, share)?.filter(|share| share.generation == file.share) else {
        return Ok(None);
    };
    share.announce_count(rows);
    let Some(spot) = tree::find_open(rows, share, place, file.id)? else { return Ok(None) };
    match &spot.node {
        Some(node) if node.id == file.id && !(node.is_directory() && has_entries(rows, &spot, node)?) => {
            entry::remove(&spot, node, rows, tick, changes)?;
            Ok(Some(spot))
        }
        Some(_) | None => Ok(None),
    }
}

/// Whether anything stands in a directory.
pub fn has_entries(rows: &dyn Rows, spot: &Spot, node: &Node) -> Result<bool, Halt> {
    let all = entries_of(spot.share.generation, node.id);
    let mut found = false;
    rows.scan(&all, &all.after_all(), 1, &mut |_, _| {
        found = true;
        Visit::Stop
    })?;
    Ok(found)
}
