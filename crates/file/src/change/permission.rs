//! The descriptors of a share: stored once each, named by their keys.

use bytes::Bytes;
use engine::{Changes, Rows};
use service::codec;

use super::properties::{PermissionSetting, Semantics, SmbSettings};
use crate::error::FileError;
use crate::model::{Halt, Node, ShareGuard, permission_key, refuse};
use crate::security::{ChildKind, Descriptor, PermissionError, PermissionKey, new_child};
use crate::tree::{self, Spot};

/// The permission of something new at a spot.
pub fn of_new(
    spot: &Spot,
    settings: &SmbSettings,
    kind: ChildKind,
    rows: &dyn Rows,
    changes: &mut Changes,
) -> Result<PermissionKey, Halt> {
    let given = match &settings.permission {
        PermissionSetting::Key(key) => return known(spot.share, *key, rows),
        PermissionSetting::Given(descriptor) if settings.semantics == Semantics::Restore => {
            return store(spot.share, descriptor, rows, changes);
        }
        PermissionSetting::Given(descriptor) => Some(&**descriptor),
        PermissionSetting::Inherit | PermissionSetting::Preserve => None,
    };
    let above = tree::directory_above(rows, spot)?;
    let parent = find(spot.share, above.permission, rows)?;
    store(spot.share, &new_child(&parent, given, kind), rows, changes)
}

/// The permission of what stands at a spot, once the settings are made.
pub fn of_changed(
    spot: &Spot,
    node: &Node,
    settings: &SmbSettings,
    rows: &dyn Rows,
    changes: &mut Changes,
) -> Result<PermissionKey, Halt> {
    match &settings.permission {
        PermissionSetting::Preserve => Ok(node.permission),
        PermissionSetting::Key(key) => known(spot.share, *key, rows),
        PermissionSetting::Given(descriptor) => store(spot.share, descriptor, rows, changes),
        PermissionSetting::Inherit => {
            let kind = if node.is_directory() { ChildKind::Directory } else { ChildKind::File };
            of_new(spot, settings, kind, rows, changes)
        }
    }
}

/// Stores a descriptor unless the share has it, and says its key.
pub fn store(
    share: ShareGuard,
    descriptor: &Descriptor,
    rows: &dyn Rows,
    changes: &mut Changes,
) -> Result<PermissionKey, Halt> {
    let binary = descriptor.encode().map_err(|error| refuse(error.into()))?;
    let key = PermissionKey::of(&binary);
    let row = permission_key(share.generation, key);
    if rows.get(&row)?.is_none() {
        changes.put(row, Bytes::from(binary));
    }
    Ok(key)
}

/// The descriptor of a file or directory. Every key that a row names is there.
pub fn find(share: ShareGuard, key: PermissionKey, rows: &dyn Rows) -> Result<Descriptor, Halt> {
    let row = rows.get(&permission_key(share.generation, key))?;
    let binary = row.ok_or_else(|| codec::corrupt("a permission that a file names is not there"))?;
    Ok(Descriptor::decode(&binary).map_err(|_| codec::corrupt("a stored permission cannot be read"))?)
}

/// A key that a client names.
fn known(share: ShareGuard, key: PermissionKey, rows: &dyn Rows) -> Result<PermissionKey, Halt> {
    match rows.get(&permission_key(share.generation, key))? {
        Some(_) => Ok(key),
        None => Err(refuse(FileError::FileInvalidPermissionKey)),
    }
}

impl From<PermissionError> for FileError {
    fn from(error: PermissionError) -> FileError {
        match error.code() {
            "CannotConvertToSddlDueToCustomAce" => FileError::CannotConvertToSddlDueToCustomAce,
            _ => FileError::FileInvalidPermission,
        }
    }
}
