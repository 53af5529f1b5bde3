//! Creating a directory or a file, and replacing a file as a whole.

use concurrency::{Lease, LeaseId};
use content::map::FileView;
use engine::{Changes, Rows, Tick};
use service::{HttpHeaders, Pairs};

use super::properties::SmbSettings;
use super::{entry, permission};
use crate::error::FileError;
use crate::model::{FileState, Halt, Node, NodeKind, refuse};
use crate::security::ChildKind;
use crate::tree::Spot;

/// What directories and files are created with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewNode {
    pub settings: SmbSettings,
    pub metadata: Pairs,
}

/// What only files are created with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewFile {
    pub length: u64,
    pub headers: HttpHeaders,
    /// The lease that the request names: a file that is replaced may be leased.
    pub lease: Option<LeaseId>,
    /// Whether a file that is there may be replaced.
    pub may_replace: bool,
}

/// The id of a new map among the fresh ids of a decision. The id of a new node is the first.
const MAP_ID: u64 = 1;

/// Creates a directory at a free name.
pub fn directory(
    spot: &Spot,
    new: &NewNode,
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Node, Halt> {
    if spot.node.is_some() {
        return Err(refuse(FileError::ResourceAlreadyExists));
    }
    let node = new.node(tick.id(0), NodeKind::Directory, spot, rows, tick, changes)?;
    entry::add(spot, &node, changes);
    Ok(node)
}

/// Creates a file of zeros at a free name, or in the place of a file. A file that is replaced keeps its id and its lease; its bytes,
/// properties and metadata are gone.
pub fn file(
    spot: &Spot,
    new: &NewNode,
    file: &NewFile,
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Node, Halt> {
    let before = spot.node.as_ref();
    let lease = may_replace(before, file, tick).map_err(refuse)?;
    let view = FileView::new(tick.id(MAP_ID));
    let state = FileState { length: file.length, view, born: tick.stamp, headers: file.headers.clone(), lease };
    let id = before.map_or(tick.id(0), |node| node.id);
    let node = new.node(id, NodeKind::File(state), spot, rows, tick, changes)?;
    spot.share.count(rows, before.map_or(0, Node::length), file.length, changes)?;
    view.create(changes);
    match before {
        None => entry::add(spot, &node, changes),
        Some(old) => {
            if let Some(state) = old.file() {
                state.view.let_go(changes, tick.now);
            }
            entry::replace(spot, &node, changes);
        }
    }
    Ok(node)
}

/// Whether a file may take the place of what stands there, and the lease that it has then.
fn may_replace(before: Option<&Node>, file: &NewFile, tick: Tick) -> Result<Lease, FileError> {
    let Some(node) = before else {
        // A lease cannot be on what is not there.
        return Lease::Available.check_write(file.lease, tick.now).map_err(FileError::file_lease);
    };
    let state = node.file().ok_or(FileError::ResourceTypeMismatch)?;
    if !file.may_replace {
        return Err(FileError::UnauthorizedOverwrite);
    }
    let lease = state.lease.check_write(file.lease, tick.now).map_err(FileError::file_lease)?;
    if node.is_read_only() { Err(FileError::ReadOnlyAttribute) } else { Ok(lease) }
}

impl NewNode {
    fn node(
        &self,
        id: u64,
        kind: NodeKind,
        spot: &Spot,
        rows: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<Node, Halt> {
        let is_directory = matches!(kind, NodeKind::Directory);
        let child = if is_directory { ChildKind::Directory } else { ChildKind::File };
        let settings = &self.settings;
        Ok(Node {
            id,
            name: spot.spelling.clone(),
            kind,
            since: spot.share.epoch,
            stamp: tick.stamp,
            created: settings.created.over(tick.now, tick.now),
            written: settings.written.over(tick.now, tick.now),
            changed: settings.changed.unwrap_or(tick.now),
            accessed: tick.now,
            attributes: settings.new_attributes(is_directory),
            permission: permission::of_new(spot, settings, child, rows, changes)?,
            metadata: self.metadata.clone(),
        })
    }
}
