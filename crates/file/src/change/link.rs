//! Creating symbolic links, and giving a file another name. Only shares for NFS have either.

use concurrency::LeaseId;
use engine::{Changes, Rows, Stop, Tick};
use wire::file_path::FilePath;

use super::create::NewNode;
use super::entry;
use crate::error::FileError;
use crate::model::{Halt, LINKS_MAX, Node, NodeKind, Protocol, no_lease, refuse};
use crate::tree::{self, Spot};

/// What a symbolic link is created with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewSymbolicLink {
    /// The path that it leads to. Whether anything is there does not matter.
    pub text: String,
    pub node: NewNode,
    pub lease: Option<LeaseId>,
}

/// Another name for a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewHardLink {
    /// A name that the file has.
    pub file: FilePath,
    /// The lease of the file.
    pub lease: Option<LeaseId>,
}

/// Creates a symbolic link at a free name.
pub fn symbolic(
    spot: &Spot,
    new: &NewSymbolicLink,
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Node, Halt> {
    check_free(spot).map_err(refuse)?;
    // Something new is not leased.
    no_lease(new.lease, tick.now).map_err(refuse)?;
    let kind = NodeKind::SymbolicLink(new.text.clone());
    let node = new.node.node(tick.id(0), kind, spot, rows, tick, changes)?;
    entry::add(spot, &node, changes);
    Ok(node)
}

impl NewHardLink {
    /// Where the file is. A file below a directory that is not there is as little there as any other.
    pub fn find(&self, spot: &Spot, rows: &dyn Rows) -> Result<Spot, Halt> {
        tree::find_in(rows, spot.share, &self.file).map_err(|halt| match halt {
            Stop::Refused(FileError::ParentNotFound) => refuse(FileError::ResourceNotFound),
            other => other,
        })
    }
}

/// Gives a file the free name at a spot.
pub fn hard(spot: &Spot, new: &NewHardLink, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<Node, Halt> {
    check_free(spot).map_err(refuse)?;
    let from = new.find(spot, rows)?;
    let node = new.judge(&from, tick).map_err(refuse)?;
    Ok(entry::link(&from, spot, node, rows, changes)?)
}

impl NewHardLink {
    /// The file, if it may get another name. Its bytes stay as they are, and so does when they were written.
    fn judge(&self, from: &Spot, tick: Tick) -> Result<Node, FileError> {
        let mut node = from.existing()?.clone();
        let NodeKind::File(_) = node.kind else { return Err(FileError::ResourceTypeMismatch) };
        let lease = node.check_write(self.lease, tick.now)?;
        node.as_written_file()?.lease = lease;
        if node.link_count() >= LINKS_MAX {
            return Err(FileError::InvalidInput { reason: "The file has as many names as a file may have." });
        }
        (node.stamp, node.changed) = (tick.stamp, tick.now);
        Ok(node)
    }
}

fn check_free(spot: &Spot) -> Result<(), FileError> {
    match (spot.share.protocol, &spot.node) {
        (Protocol::Smb, _) => Err(FileError::LinkNotSupported),
        (Protocol::Nfs, Some(_)) => Err(FileError::ResourceAlreadyExists),
        (Protocol::Nfs, None) => Ok(()),
    }
}
