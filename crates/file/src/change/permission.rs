//! The permissions of a share: stored once each, named by their keys.

use bytes::Bytes;
use engine::{Changes, Rows};
use service::codec;

use super::properties::{PermissionSetting, Semantics, SmbSettings};
use crate::error::FileError;
use crate::model::{Halt, Node, ShareGuard, permission_key, refuse};
use crate::security::{ChildKind, Descriptor, Permission, PermissionError, PermissionKey, new_child};
use crate::tree::{self, Spot};

/// The permission of something new at a spot.
pub fn of_new(
    spot: &Spot,
    settings: &SmbSettings,
    kind: ChildKind,
    rows: &dyn Rows,
    changes: &mut Changes,
) -> Result<PermissionKey, Halt> {
    match &settings.permission {
        PermissionSetting::Key(key) => known(spot.share, *key, rows),
        PermissionSetting::Given(permission) if settings.semantics == Semantics::Restore => {
            store(spot.share, permission, rows, changes)
        }
        PermissionSetting::Given(permission) => inherited(spot, permission.descriptor(), kind, rows, changes),
        PermissionSetting::Inherit | PermissionSetting::Preserve => {
            inherited(spot, &Descriptor::default(), kind, rows, changes)
        }
    }
}

/// Asks for what [`of_new`] looks at.
pub fn announce_new(spot: &Spot, settings: &SmbSettings, kind: ChildKind, rows: &dyn Rows) {
    // What it says counts for nothing, and neither does whether it could say anything.
    _ = of_new(spot, settings, kind, rows, &mut Changes::none());
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
        PermissionSetting::Given(permission) => store(spot.share, permission, rows, changes),
        // The root has nothing above it to inherit from.
        PermissionSetting::Inherit if spot.is_root() => Ok(node.permission),
        PermissionSetting::Inherit => inherited(spot, &Descriptor::default(), node.child_kind(), rows, changes),
    }
}

/// What a creator asks for, with what the directory above passes on.
fn inherited(
    spot: &Spot,
    given: &Descriptor,
    kind: ChildKind,
    rows: &dyn Rows,
    changes: &mut Changes,
) -> Result<PermissionKey, Halt> {
    let above = tree::directory_above(rows, spot)?;
    let parent = find(spot.share, above.permission, rows)?;
    let permission = Permission::new(new_child(parent.descriptor(), given, kind));
    store(spot.share, &permission.map_err(|error| refuse(error.into()))?, rows, changes)
}

/// Stores a permission unless the share has it, and says its key.
pub fn store(
    share: ShareGuard,
    permission: &Permission,
    rows: &dyn Rows,
    changes: &mut Changes,
) -> Result<PermissionKey, Halt> {
    let key = permission.key();
    let row = permission_key(share.generation, key);
    if rows.get(&row)?.is_none() {
        changes.put(row, Bytes::copy_from_slice(permission.as_bytes()));
    }
    Ok(key)
}

/// The permission of a file or directory. Every key that a row names is there.
pub fn find(share: ShareGuard, key: PermissionKey, rows: &dyn Rows) -> Result<Permission, Halt> {
    let row = rows.get(&permission_key(share.generation, key))?;
    let binary = row.ok_or_else(|| codec::corrupt("a permission that a file names is not there"))?;
    Ok(Permission::from_bytes(&binary).map_err(|_| codec::corrupt("a stored permission cannot be read"))?)
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
        match error {
            PermissionError::CustomAce => FileError::CannotConvertToSddlDueToCustomAce,
            PermissionError::Key => FileError::FileInvalidPermissionKey,
            PermissionError::Syntax
            | PermissionError::DomainAlias
            | PermissionError::OwnerMissing
            | PermissionError::GroupMissing
            | PermissionError::DaclMissing
            | PermissionError::Base64
            | PermissionError::Malformed
            | PermissionError::TooLarge => FileError::FileInvalidPermission,
        }
    }
}
