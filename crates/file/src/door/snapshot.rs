//! Previous versions: files and directories as a share snapshot sees them.
//!
//! They are read by the same functions as the share itself. Nothing about them changes, so nobody is asked who else has them open, and
//! nothing is locked or watched. Every request looks whether the snapshot is still there.

use concurrency::Timestamp;
use engine::{Rows, Stop};

use super::create::{Found, Plan, Wish};
use super::decide::{Stopped, refuse};
use super::open_file::Location;
use super::{CreateAction, CreateRequest, FileInfo, OpenFile, Opened, Refused, Tree, access};
use crate::model::{ShareGuard, existing_snapshot};

/// The epoch of the snapshot of a time. `missing`: why it is refused if there is none.
pub fn epoch(rows: &dyn Rows, share: ShareGuard, time: Timestamp, missing: Refused) -> Result<u64, Stopped> {
    match existing_snapshot(rows, share.generation, time) {
        Ok(snapshot) => Ok(snapshot.epoch),
        Err(Stop::Refused(_)) => Err(refuse(missing)),
        Err(Stop::Unread(unread)) => Err(unread.into()),
    }
}

/// CREATE in the snapshot of a time. Rights to write are granted as they are asked for, as on other media that cannot be written: what
/// uses them is refused.
pub async fn open(tree: &Tree, request: CreateRequest, time: Timestamp) -> Result<Opened, Refused> {
    let wish = Wish::new(&request)?;
    let path = wish.path.clone();
    let found = tree.read(move |rows, share, now| {
        let epoch = epoch(rows, share, time, Refused::NotFound)?;
        Found::look(rows, (share, Some(epoch)), &path, now)
    });
    let Found { spot, names, .. } = found.await?;
    match wish.plan(&spot, None)? {
        Plan::Open if !wish.deletes_on_close() => {}
        Plan::Open | Plan::Create { .. } | Plan::Overwrite => return Err(Refused::WriteProtected),
    }
    let Some(node) = &spot.node else { return Err(Refused::NotFound) };
    let granted = wish.access | if wish.wants_all { access::READ_AND_EXECUTE } else { 0 };
    let info = FileInfo::new(node, &names.join("\\"), granted, false);
    let location = Location::in_snapshot(time, &spot, names);
    let file = OpenFile::in_snapshot(tree.clone(), location, request.owner, granted, node.is_directory());
    Ok(Opened { file, action: CreateAction::Opened, info })
}
