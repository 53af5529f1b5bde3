//! Attributes, times and permission, as SMB and REST both show them, and how a request sets them.

use concurrency::Timestamp;
use engine::Tick;

use crate::error::FileError;
use crate::model::{Attributes, FileMode, NfsProperties, Node, Protocol};
use crate::security::{Permission, PermissionKey};

/// A time that a request sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TimeSetting {
    /// It stays as it is. Of something new there is nothing to keep, so it is the time of the creation.
    #[default]
    Preserve,
    Now,
    At(Timestamp),
}

/// A permission that a request sets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum PermissionSetting {
    /// It stays as it is. Something new inherits.
    #[default]
    Preserve,
    /// What the directory above passes on.
    Inherit,
    Given(Box<Permission>),
    /// One that the share has already.
    Key(PermissionKey),
}

/// How the properties of something new are taken (`x-ms-file-property-semantics`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Semantics {
    /// A file gets the Archive attribute whatever was sent, and a descriptor inherits what it does not forbid.
    #[default]
    New,
    /// Everything is taken as it is given.
    Restore,
}

impl Semantics {
    /// What is restored brings the permission that it had. Without one it is created like anything new.
    pub fn with(self, permission: &PermissionSetting) -> Semantics {
        match permission {
            PermissionSetting::Given(_) | PermissionSetting::Key(_) => self,
            PermissionSetting::Preserve | PermissionSetting::Inherit => Semantics::New,
        }
    }
}

/// What a request sets of the properties that SMB sees.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SmbSettings {
    /// `None`: they stay as they are. Something new has those of its kind alone.
    pub attributes: Option<Attributes>,
    pub created: TimeSetting,
    pub written: TimeSetting,
    /// Only SMB sets it, and nothing else moves it.
    pub accessed: TimeSetting,
    /// The change time is now unless a request says otherwise.
    pub changed: Option<Timestamp>,
    pub permission: PermissionSetting,
    pub semantics: Semantics,
    pub nfs: NfsSettings,
}

/// What a request sets of the properties that NFS sees. Those that it leaves out stay as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NfsSettings {
    pub owner: Option<u32>,
    pub group: Option<u32>,
    pub mode: Option<FileMode>,
}

pub const OWNER: &str = "x-ms-owner";
pub const GROUP: &str = "x-ms-group";
pub const MODE: &str = "x-ms-mode";

impl NfsSettings {
    /// A share that is mounted over SMB has none of them.
    fn check(self, protocol: Protocol) -> Result<(), FileError> {
        let owner = self.owner.map(|owner| (OWNER, owner.to_string()));
        let group = self.group.map(|group| (GROUP, group.to_string()));
        let mode = self.mode.map(|mode| (MODE, mode.to_string()));
        match (protocol, owner.or(group).or(mode)) {
            (Protocol::Smb, Some((name, value))) => Err(FileError::header(name, value)),
            (Protocol::Smb, None) | (Protocol::Nfs, _) => Ok(()),
        }
    }

    fn over(self, before: NfsProperties) -> NfsProperties {
        NfsProperties {
            owner: self.owner.unwrap_or(before.owner),
            group: self.group.unwrap_or(before.group),
            mode: self.mode.unwrap_or(before.mode),
        }
    }
}

impl TimeSetting {
    /// The time once it is set.
    pub fn over(self, before: Timestamp, now: Timestamp) -> Timestamp {
        match self {
            TimeSetting::Preserve => before,
            TimeSetting::Now => now,
            TimeSetting::At(time) => time,
        }
    }
}

impl SmbSettings {
    /// Whether a share that is mounted by `protocol` has the properties that are set.
    pub fn check(&self, protocol: Protocol) -> Result<(), FileError> {
        self.nfs.check(protocol)
    }

    /// Sets attributes and times of what is there. The change time and the stamp move with every change.
    pub fn set(&self, node: &mut Node, tick: Tick) {
        if let Some(attributes) = self.attributes {
            node.attributes = of_kind(attributes, node.is_directory()).as_sparse_as(node.attributes);
        }
        node.created = self.created.over(node.created, tick.now);
        node.written = self.written.over(node.written, tick.now);
        node.accessed = self.accessed.over(node.accessed, tick.now);
        node.changed = self.changed.unwrap_or(tick.now);
        node.nfs = node.nfs.map(|before| self.nfs.over(before));
        node.stamp = tick.stamp;
    }

    /// What NFS sees of something new.
    pub fn new_nfs(&self, protocol: Protocol, is_directory: bool) -> Option<NfsProperties> {
        protocol.new_properties(is_directory).map(|usual| self.nfs.over(usual))
    }

    /// The attributes of something new.
    pub fn new_attributes(&self, is_directory: bool) -> Attributes {
        let given = self.attributes.unwrap_or_default();
        let own =
            if self.semantics == Semantics::New && !is_directory { Attributes::ARCHIVE } else { Attributes::NONE };
        of_kind(given.with(own), is_directory)
    }
}

/// Whether something is a directory is not for clients to set.
fn of_kind(attributes: Attributes, is_directory: bool) -> Attributes {
    let plain = attributes.without(Attributes::DIRECTORY);
    if is_directory { plain.with(Attributes::DIRECTORY) } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NOW, tick};

    #[test]
    fn times() {
        let (before, at) = (NOW.plus_seconds(1), NOW.plus_seconds(2));
        assert_eq!(TimeSetting::Preserve.over(before, NOW), before);
        assert_eq!(TimeSetting::Now.over(before, NOW), NOW);
        assert_eq!(TimeSetting::At(at).over(before, NOW), at);
    }

    #[test]
    fn attributes_of_something_new() {
        let shown = |attributes: Option<Attributes>, semantics, is_directory| {
            let settings = SmbSettings { attributes, semantics, ..SmbSettings::default() };
            settings.new_attributes(is_directory).to_string()
        };
        let parse = |text| Attributes::parse(text);
        for (given, of_file, of_restored_file, of_directory) in [
            (None, "Archive", "None", "Directory"),
            (parse("None"), "Archive", "None", "Directory"),
            (parse("ReadOnly"), "ReadOnly | Archive", "ReadOnly", "ReadOnly | Directory"),
            (parse("Directory"), "Archive", "None", "Directory"),
            (parse("Archive|Hidden"), "Hidden | Archive", "Hidden | Archive", "Hidden | Directory | Archive"),
        ] {
            assert_eq!(shown(given, Semantics::New, false), of_file, "{given:?}");
            assert_eq!(shown(given, Semantics::Restore, false), of_restored_file, "{given:?}");
            for semantics in [Semantics::New, Semantics::Restore] {
                assert_eq!(shown(given, semantics, true), of_directory, "{given:?}");
            }
        }
    }

    #[test]
    fn what_is_not_named_stays_but_the_change_time_and_the_stamp_move() {
        let key = crate::security::Permission::new(crate::security::root_directory()).unwrap().key();
        let before = Node::root(7, 1, Protocol::Smb, key, tick());
        let later = Tick { now: NOW.plus_seconds(9), stamp: NOW.plus_seconds(10), entropy: 1 };
        let mut node = before.clone();
        SmbSettings::default().set(&mut node, later);
        assert_eq!(node, Node { changed: later.now, stamp: later.stamp, ..before.clone() });
        let settings = SmbSettings {
            attributes: Some(Attributes::NONE),
            created: TimeSetting::Now,
            written: TimeSetting::At(NOW.plus_seconds(3)),
            changed: Some(NOW.plus_seconds(4)),
            ..SmbSettings::default()
        };
        settings.set(&mut node, later);
        let expected = Node {
            created: later.now,
            written: NOW.plus_seconds(3),
            changed: NOW.plus_seconds(4),
            stamp: later.stamp,
            ..before
        };
        assert_eq!(node, expected, "a directory stays one");
    }

    #[test]
    fn owner_group_and_mode_are_for_nfs() {
        let settings = |owner, group, mode: Option<&str>| {
            let nfs = NfsSettings { owner, group, mode: mode.and_then(FileMode::parse) };
            SmbSettings { nfs, ..SmbSettings::default() }
        };
        assert_eq!(SmbSettings::default().check(Protocol::Smb), Ok(()));
        for (set, name, value) in [
            (settings(Some(7), Some(8), None), OWNER, "7"),
            (settings(None, Some(8), Some("640")), GROUP, "8"),
            (settings(None, None, Some("640")), MODE, "0640"),
        ] {
            assert_eq!(set.check(Protocol::Nfs), Ok(()));
            assert_eq!(set.check(Protocol::Smb), Err(FileError::header(name, value)));
            assert_eq!(set.new_nfs(Protocol::Smb, true), None);
        }
        let shown = |nfs: NfsProperties| format!("{} {} {}", nfs.owner, nfs.group, nfs.mode);
        let new = |set: SmbSettings, is_directory| set.new_nfs(Protocol::Nfs, is_directory).map(shown);
        assert_eq!(new(SmbSettings::default(), true).as_deref(), Some("0 0 0755"));
        assert_eq!(new(settings(Some(7), None, None), false).as_deref(), Some("7 0 0664"));
        let key = crate::security::Permission::new(crate::security::root_directory()).unwrap().key();
        let mut node = Node::root(7, 1, Protocol::Nfs, key, tick());
        settings(None, Some(8), Some("rwx------")).set(&mut node, tick());
        assert_eq!(node.nfs.map(shown).as_deref(), Some("0 8 0700"));
        settings(Some(7), None, None).set(&mut node, tick());
        assert_eq!(node.nfs.map(shown).as_deref(), Some("7 8 0700"));
    }
}
