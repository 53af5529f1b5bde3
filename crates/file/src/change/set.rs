//! Setting properties and metadata of what is there.

use concurrency::{LeaseId, Timestamp};
use engine::{Changes, Rows, Tick};
use service::{HttpHeaders, LeaseAction, LeaseOutcome, Pairs};

use super::properties::SmbSettings;
use super::{entry, permission, write};
use crate::error::FileError;
use crate::model::{Halt, Node, NodeKind, refuse};
use crate::tree::Spot;

/// Sets the properties of a directory that SMB sees.
pub fn directory_properties(
    spot: &Spot,
    settings: &SmbSettings,
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Node, Halt> {
    let mut node = existing_directory(spot).map_err(refuse)?.clone();
    settings.check(spot.share.protocol).map_err(refuse)?;
    node.permission = permission::of_changed(spot, &node, settings, rows, changes)?;
    settings.set(&mut node, tick);
    entry::begin(spot, &mut node, rows, changes)?;
    entry::replace(spot, &node, changes);
    Ok(node)
}

/// Sets the metadata of a directory.
pub fn directory_metadata(
    spot: &Spot,
    metadata: &Pairs,
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Node, Halt> {
    let node = existing_directory(spot).map_err(refuse)?;
    let mut node = Node { metadata: metadata.clone(), stamp: tick.stamp, changed: tick.now, ..node.clone() };
    entry::begin(spot, &mut node, rows, changes)?;
    entry::replace(spot, &node, changes);
    Ok(node)
}

/// What Set File Properties sets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileSettings {
    /// All of them or none.
    pub headers: Option<HttpHeaders>,
    /// The new length.
    pub length: Option<u64>,
    pub smb: SmbSettings,
}

/// Sets the properties of a file or symbolic link. A read-only file takes all of them but another length; otherwise it
/// could not be made writable again.
pub fn file_properties(
    spot: &Spot,
    settings: &FileSettings,
    lease: Option<LeaseId>,
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Node, Halt> {
    let mut node = leased_file(spot, lease, tick.now).map_err(refuse)?;
    settings.smb.check(spot.share.protocol).map_err(refuse)?;
    if node.file().is_none() && (settings.headers.is_some() || settings.length.is_some()) {
        return Err(refuse(FileError::ResourceTypeMismatch));
    }
    entry::begin(spot, &mut node, rows, changes)?;
    let before = node.length();
    let length = settings.length.unwrap_or(before);
    if length != before {
        if node.is_read_only() {
            return Err(refuse(FileError::ReadOnlyAttribute));
        }
        write::resize(spot, &mut node, length, rows, tick, changes)?;
        // It counts as a write of the contents, whatever is said of the time otherwise.
        node.written = tick.now;
    }
    node.permission = permission::of_changed(spot, &node, &settings.smb, rows, changes)?;
    settings.smb.set(&mut node, tick);
    if let NodeKind::File(state) = &mut node.kind {
        // From here on it is not what was copied.
        state.copy = None;
        if let Some(headers) = &settings.headers {
            state.headers = headers.clone();
        }
    }
    entry::replace(spot, &node, changes);
    Ok(node)
}

/// Sets the metadata of a file or symbolic link.
pub fn file_metadata(
    spot: &Spot,
    metadata: &Pairs,
    lease: Option<LeaseId>,
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Node, Halt> {
    let mut node = writable_file(spot, lease, tick.now).map_err(refuse)?;
    entry::begin(spot, &mut node, rows, changes)?;
    node.metadata = metadata.clone();
    (node.stamp, node.changed) = (tick.stamp, tick.now);
    entry::replace(spot, &node, changes);
    Ok(node)
}

/// Acquires, changes, releases or breaks the lease of a file. Its ETag, its times and its bytes stay as they are.
pub fn file_lease(
    spot: &Spot,
    action: LeaseAction,
    tick: Tick,
    changes: &mut Changes,
) -> Result<(LeaseOutcome, Timestamp), Halt> {
    let mut node = spot.existing().map_err(refuse)?.clone();
    let state = node.as_written_file().map_err(refuse)?;
    let (lease, outcome) =
        action.decide(&state.lease, tick).map_err(|refusal| refuse(FileError::file_lease(refusal)))?;
    state.lease = lease;
    entry::replace_unseen(spot, &node, changes);
    Ok((outcome, node.stamp))
}

/// A directory that is changed. Where a file stands it is not one.
pub fn existing_directory(spot: &Spot) -> Result<&Node, FileError> {
    let node = spot.existing()?;
    if node.is_directory() { Ok(node) } else { Err(FileError::ResourceTypeMismatch) }
}

/// The file or symbolic link at a spot, for a change that its lease and its attributes must allow, with the lease that it has afterwards.
pub fn writable_file(spot: &Spot, lease: Option<LeaseId>, now: Timestamp) -> Result<Node, FileError> {
    let node = leased_file(spot, lease, now)?;
    if node.is_read_only() { Err(FileError::ReadOnlyAttribute) } else { Ok(node) }
}

/// The file at a spot, for a change of its bytes through an SMB handle: that was judged beside the lease and the attributes when it was
/// opened.
pub fn file_of_handle(spot: &Spot, now: Timestamp) -> Result<Node, FileError> {
    let mut node = spot.existing()?.clone();
    node.as_written_file()?.check_no_copy(now)?;
    Ok(node)
}

/// The lease that a change through an SMB handle names: the one that holds the file, as the handle was judged beside it when it was
/// opened.
pub fn lease_for_handle(spot: &Spot, now: Timestamp) -> Option<LeaseId> {
    spot.node.as_ref().and_then(Node::file).and_then(|state| state.lease.holder(now))
}

/// The same for a change that a read-only file allows: of its attributes, for one.
fn leased_file(spot: &Spot, lease: Option<LeaseId>, now: Timestamp) -> Result<Node, FileError> {
    let mut node = spot.existing()?.clone();
    let lease = node.check_write(lease, now)?;
    if let NodeKind::File(state) = &mut node.kind {
        state.lease = lease;
    }
    Ok(node)
}
