//! Creating a directory or a file, and replacing a file as a whole.

use concurrency::{Lease, LeaseId, Timestamp};
use content::map::{ByteSpan, FileView};
use engine::{Changes, Rows, Staged, Tick};
use service::{HttpHeaders, Pairs};

use super::properties::{PermissionSetting, SmbSettings};
use super::write::MAP_ID;
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

/// The settings of a file that inherits its permission.
pub fn inheriting() -> SmbSettings {
    SmbSettings { permission: PermissionSetting::Inherit, ..SmbSettings::default() }
}

/// Asks for what a creation at a spot looks at.
pub fn announce(spot: &Spot, new: &NewNode, file: Option<&NewFile>, rows: &dyn Rows) {
    let kind = if file.is_some() { ChildKind::File } else { ChildKind::Directory };
    permission::announce_new(spot, &new.settings, kind, rows);
    if file.is_some() {
        spot.share.announce_count(rows);
    }
}

/// Creates a directory at a free name.
pub fn directory(spot: &Spot, new: &NewNode, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<Node, Halt> {
    if spot.node.is_some() {
        return Err(refuse(FileError::ResourceAlreadyExists));
    }
    let node = new.node(tick.id(0), NodeKind::Directory, spot, rows, tick, changes)?;
    entry::add(spot, &node, changes);
    Ok(node)
}

/// Creates a file at a free name, or in the place of a file. It has the bytes of `first`, and zeros behind them. A file that is
/// replaced keeps its id and its lease; its bytes, properties and metadata are gone.
pub fn file(
    spot: &Spot,
    new: &NewNode,
    file: &NewFile,
    first: Option<&Staged>,
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Node, Halt> {
    let before = spot.node.as_ref();
    let lease = file.judge(spot, tick.now).map_err(refuse)?;
    let view = FileView::new(tick.id(MAP_ID));
    let state =
        FileState { length: file.length, view, born: tick.stamp, headers: file.headers.clone(), lease, copy: None };
    let id = before.map_or(tick.id(0), |node| node.id);
    let node = new.node(id, NodeKind::File(state), spot, rows, tick, changes)?;
    spot.share.count(rows, before.map_or(0, Node::length), file.length, changes)?;
    view.create(changes);
    if let Some(staged) = first {
        view.write_new(ByteSpan { start: 0, end: staged.length() }, staged, tick, changes);
    }
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

impl NewFile {
    /// Whether the file may be created at a spot, and the lease that it has then.
    pub fn judge(&self, spot: &Spot, now: Timestamp) -> Result<Lease, FileError> {
        let Some(node) = &spot.node else {
            // A lease cannot be on what is not there.
            return Lease::Available.check_write(self.lease, now).map_err(FileError::file_lease);
        };
        let state = node.file().ok_or(FileError::ResourceTypeMismatch)?;
        if !self.may_replace {
            return Err(FileError::UnauthorizedOverwrite);
        }
        let lease = state.lease.check_write(self.lease, now).map_err(FileError::file_lease)?;
        state.check_no_copy(now)?;
        if node.is_read_only() { Err(FileError::ReadOnlyAttribute) } else { Ok(lease) }
    }
}

impl NewNode {
    pub fn node(
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
        settings.check(spot.share.protocol).map_err(refuse)?;
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
            nfs: settings.new_nfs(spot.share.protocol, is_directory),
        })
    }
}
