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
    match renaming.replaced(from, to, tick).map_err(refuse)? {
        // Both are names of one file: the old one goes, and nothing else does.
        Some(replaced) if replaced.id == source.id => {}
        Some(replaced) => entry::remove(to, replaced, rows, tick, changes)?,
        None => {}
    }
    let permission = permission::of_changed(to, &source, &renaming.settings, rows, changes)?;
    let node = renaming.renamed(source, to, permission, tick);
    Ok(entry::relocate(from, to, node, rows, changes)?)
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
        match self.kind {
            RenamedKind::File => {
                let lease = node.check_write(self.source_lease, tick.now)?;
                if let NodeKind::File(state) = &mut node.kind {
                    state.lease = lease;
                }
            }
            RenamedKind::Directory if node.is_directory() => {}
            RenamedKind::Directory => return Err(FileError::ResourceTypeMismatch),
        }
        if to.above.contains(&node.id) {
            return Err(FileError::InvalidInput { reason: "A directory cannot be renamed to a path below itself." });
        }
        Ok(node)
    }

    /// The file or symbolic link that has the new name, which goes. A name may also only be spelled anew.
    fn replaced<'a>(&self, from: &Spot, to: &'a Spot, tick: Tick) -> Result<Option<&'a Node>, FileError> {
        let Some(node) = to.node.as_ref().filter(|_| from.key() != to.key()) else { return Ok(None) };
        if node.is_directory() || !self.replaces {
            return Err(FileError::ResourceAlreadyExists);
        }
        node.check_write(self.target_lease, tick.now)?;
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
