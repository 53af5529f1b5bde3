//! Attributes, times and permission, as SMB and REST both show them, and how a request sets them.

use concurrency::Timestamp;
use engine::Tick;

use crate::model::{Attributes, Node};
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
    /// The change time is now unless a request says otherwise.
    pub changed: Option<Timestamp>,
    pub permission: PermissionSetting,
    pub semantics: Semantics,
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
    /// Sets attributes and times of what is there. The change time and the stamp move with every change.
    pub fn set(&self, node: &mut Node, tick: Tick) {
        if let Some(attributes) = self.attributes {
            node.attributes = of_kind(attributes, node.is_directory());
        }
        node.created = self.created.over(node.created, tick.now);
        node.written = self.written.over(node.written, tick.now);
        node.changed = self.changed.unwrap_or(tick.now);
        node.stamp = tick.stamp;
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
        let before = Node::root(7, 1, key, tick());
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
}
