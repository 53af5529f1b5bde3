//! Renaming a file, or a directory with everything below it, within a share.
//!
//! One row moves. What is below a directory hangs on its id and stays where it is.

use concurrency::LeaseId;
use engine::{Changes, Rows, Tick};
use service::Pairs;

use super::properties::SmbSettings;
use super::{entry, permission};
use crate::error::FileError;
use crate::model::{Halt, Node, NodeKind, refuse};
use crate::security::PermissionKey;
use crate::tree::Spot;

/// How something is renamed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Renaming {
    pub kind: RenamedKind,
    pub source_lease: Option<LeaseId>,
    pub target_lease: Option<LeaseId>,
    /// A file that has the new name may be replaced.
    pub replaces: bool,
    /// Even if it is read-only.
    pub ignores_read_only: bool,
    pub settings: SmbSettings,
    /// `None`: it keeps what it has.
    pub metadata: Option<Pairs>,
    /// The same, of a file.
    pub content_type: Option<String>,
}

/// What the request says that it renames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RenamedKind {
    File,
    Directory,
}

/// Renames what stands at `from` to the name `to`.
pub fn rename(
    from: &Spot,
    to: &Spot,
    renaming: &Renaming,
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Node, Halt> {
    let source = renaming.source(from, to, tick).map_err(refuse)?;
    renaming.settings.check(to.share.protocol).map_err(refuse)?;
    if let Some(replaced) = renaming.replaced(&source, to, tick).map_err(refuse)? {
        entry::remove(to, replaced, rows, tick, changes)?;
    }
    let permission = permission::of_changed(to, &source, &renaming.settings, rows, changes)?;
    let node = renaming.renamed(source, to, permission, tick);
    entry::relocate(from, to, &node, changes);
    Ok(node)
}

impl Renaming {
    /// What is renamed, with the lease that it has afterwards.
    fn source(&self, from: &Spot, to: &Spot, tick: Tick) -> Result<Node, FileError> {
        let mut node = from.existing()?.clone();
        if from.is_root() || to.is_root() {
            return Err(FileError::InvalidInput {
                reason: "The root directory of a share cannot be renamed or replaced.",
            });
        }
        match (&mut node.kind, self.kind) {
            (NodeKind::File(state), RenamedKind::File) => {
                state.lease = state.lease.check_write(self.source_lease, tick.now).map_err(FileError::file_lease)?;
                state.check_no_copy(tick.now)?;
            }
            (NodeKind::Directory, RenamedKind::Directory) => {}
            (NodeKind::File(_), RenamedKind::Directory) | (NodeKind::Directory, RenamedKind::File) => {
                return Err(FileError::ResourceTypeMismatch);
            }
        }
        if to.above.contains(&node.id) {
            return Err(FileError::InvalidInput { reason: "A directory cannot be renamed to a path below itself." });
        }
        Ok(node)
    }

    /// The file that has the new name and goes. A name may also only be spelled anew.
    fn replaced<'a>(&self, source: &Node, to: &'a Spot, tick: Tick) -> Result<Option<&'a Node>, FileError> {
        let Some(node) = to.node.as_ref().filter(|node| node.id != source.id) else { return Ok(None) };
        let state = node.file().filter(|_| self.replaces).ok_or(FileError::ResourceAlreadyExists)?;
        state.lease.check_write(self.target_lease, tick.now).map_err(FileError::file_lease)?;
        state.check_no_copy(tick.now)?;
        if node.is_read_only() && !self.ignores_read_only {
            return Err(FileError::ReadOnlyAttribute);
        }
        Ok(Some(node))
    }

    fn renamed(&self, source: Node, to: &Spot, permission: PermissionKey, tick: Tick) -> Node {
        let metadata = self.metadata.clone().unwrap_or_else(|| source.metadata.clone());
        let mut node = Node { name: to.spelling.clone(), permission, metadata, ..source };
        self.settings.set(&mut node, tick);
        if let (NodeKind::File(state), Some(content_type)) = (&mut node.kind, &self.content_type) {
            state.headers.content_type = Some(content_type.clone());
        }
        node
    }
}
