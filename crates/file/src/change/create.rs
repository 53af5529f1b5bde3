//! Creating a directory or a file, and replacing a file as a whole.

use concurrency::{Lease, LeaseId, Timestamp};
use content::map::{ByteSpan, FileView};
use engine::{Changes, Rows, Staged, Tick};
use service::{HttpHeaders, Pairs};

use super::properties::{PermissionSetting, SmbSettings};
use super::write::{self, MAP_ID};
use super::{entry, permission, set};
use crate::error::FileError;
use crate::model::{FileState, Halt, Node, NodeKind, no_lease, refuse};
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
    pub replacing: Replacing,
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

/// Asks for the permission that something new, which is no directory, inherits.
pub fn announce_permission(spot: &Spot, new: &NewNode, rows: &dyn Rows) {
    permission::announce_new(spot, &new.settings, ChildKind::File, rows);
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
    let lease = file.replacing.judge(spot, tick.now).map_err(refuse)?;
    let view = FileView::new(tick.id(MAP_ID));
    let state =
        FileState { length: file.length, view, born: tick.stamp, headers: file.headers.clone(), lease, copy: None };
    let id = before.map_or(tick.id(0), |node| node.id);
    let mut node = new.node(id, NodeKind::File(state), spot, rows, tick, changes)?;
    // All names of the file see what has become of it.
    node.links = before.and_then(|old| old.links.clone());
    spot.share.count(rows, before.map_or(0, Node::length), file.length, changes)?;
    view.create(changes);
    if let Some(staged) = first {
        view.write_new(ByteSpan { start: 0, end: staged.length() }, staged, tick, changes);
    }
    match before {
        None => entry::add(spot, &node, changes),
        Some(_) => entry::supplant(spot, &node, rows, tick, changes)?,
    }
    Ok(node)
}

/// Empties the file that stands at a spot, for an SMB client that overwrites or supersedes it. It keeps its id, its permission, its
/// metadata and the time of its creation; whether the client may do so was judged before.
pub fn overwrite(
    spot: &Spot,
    settings: &SmbSettings,
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Node, Halt> {
    let mut node = set::file_of_handle(spot, tick.now).map_err(refuse)?;
    entry::begin(spot, &mut node, rows, changes)?;
    write::resize(spot, &mut node, 0, rows, tick, changes)?;
    node.attributes = settings.new_attributes(false);
    (node.written, node.changed, node.stamp) = (tick.now, tick.now, tick.stamp);
    if let NodeKind::File(state) = &mut node.kind {
        state.copy = None;
    }
    entry::replace(spot, &node, changes);
    Ok(node)
}

/// How a file may take the place of another, or a free name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Replacing {
    /// The lease that the request names.
    pub lease: Option<LeaseId>,
    /// Whether the caller may replace a file that is there.
    pub may_replace: bool,
    /// Even if it is read-only.
    pub ignores_read_only: bool,
}

impl Replacing {
    /// Whether a file may be stored at a spot, and the lease that it has then. Neither a directory nor a symbolic link is replaced.
    pub fn judge(self, spot: &Spot, now: Timestamp) -> Result<Lease, FileError> {
        let Some(node) = &spot.node else { return no_lease(self.lease, now) };
        if node.file().is_none() {
            return Err(FileError::ResourceTypeMismatch);
        }
        if !self.may_replace {
            return Err(FileError::UnauthorizedOverwrite);
        }
        let lease = node.check_write(self.lease, now)?;
        if node.is_read_only() && !self.ignores_read_only { Err(FileError::ReadOnlyAttribute) } else { Ok(lease) }
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
            links: None,
            // A file that is replaced is still the one that was renamed.
            former: spot.node.as_ref().filter(|old| old.id == id).and_then(|old| old.former.clone()),
        })
    }
}
