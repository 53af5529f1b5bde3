//! An entity: its properties and its limits, and how it is read and written.

pub mod read;
mod row;
pub mod value;
pub mod write;

use std::borrow::Cow;
use std::collections::HashSet;

use concurrency::Timestamp;

use crate::error::TableError;
use crate::key::{EntityKey, units};
use value::Value;

pub use row::{Row, UncheckedValue};

/// The most properties of an entity, besides the two keys and the timestamp.
pub const PROPERTIES_MAX: usize = 252;
pub const NAME_UNITS_MAX: usize = 255;
/// The largest entity. Names and texts count two bytes for each UTF-16 code unit.
pub const ENTITY_BYTES_MAX: usize = 1024 * 1024;

pub const PARTITION_KEY: &str = "PartitionKey";
pub const ROW_KEY: &str = "RowKey";
pub const TIMESTAMP: &str = "Timestamp";

/// A property: name and value.
pub type Property<'a> = (Cow<'a, str>, Value<'a>);

/// An entity without its keys. Properties keep the order in which they were first sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity<'a> {
    pub stamp: Timestamp,
    pub properties: Vec<Property<'a>>,
}

impl<'a> Entity<'a> {
    /// An entity with these properties.
    pub fn of(stamp: Timestamp, properties: &'a [Property<'_>]) -> Entity<'a> {
        Entity { stamp, properties: properties.iter().map(view).collect() }
    }

    /// This entity with `properties` set and its other properties kept.
    pub fn merged(mut self, stamp: Timestamp, properties: &'a [Property<'_>]) -> Entity<'a> {
        for property in properties {
            match self.properties.iter_mut().find(|(name, _)| *name == property.0) {
                Some(own) => own.1 = property.1.view(),
                None => self.properties.push(view(property)),
            }
        }
        Entity { stamp, ..self }
    }

    /// Refuses an entity that is too large as a whole.
    pub fn check(&self, key: &EntityKey) -> Result<(), TableError> {
        if self.properties.len() > PROPERTIES_MAX {
            return Err(TableError::TooManyProperties);
        }
        let keys = 4 + (units(&key.partition) + units(&key.row)) * 2;
        let properties = self.properties.iter().map(|(name, value)| 8 + units(name) * 2 + value.size());
        if keys + properties.sum::<usize>() > ENTITY_BYTES_MAX {
            return Err(TableError::EntityTooLarge);
        }
        Ok(())
    }
}

fn view<'a>((name, value): &'a Property<'_>) -> Property<'a> {
    (Cow::Borrowed(&**name), value.view())
}

/// Refuses properties with a bad name or value, or with a name that another one has.
fn check_properties(properties: &[Property<'_>]) -> Result<(), TableError> {
    // As long as there are few properties, comparing with all before is the quickest way to find a duplicate.
    let mut seen = HashSet::new();
    let mut is_known = |at: usize, name: &str| match properties.len() {
        ..=16 => properties[..at].iter().any(|(known, _)| known == name),
        _ => !seen.insert(name.to_owned()),
    };
    for (at, (name, value)) in properties.iter().enumerate() {
        if units(name) > NAME_UNITS_MAX {
            return Err(TableError::PropertyNameTooLong);
        }
        if !is_identifier(name) {
            return Err(TableError::PropertyNameInvalid { name: name.clone().into_owned() });
        }
        if is_known(at, name) {
            return Err(TableError::DuplicatePropertiesSpecified);
        }
        if value.is_too_large() {
            return Err(TableError::PropertyValueTooLarge { name: name.clone().into_owned() });
        }
    }
    if properties.len() > PROPERTIES_MAX {
        return Err(TableError::TooManyProperties);
    }
    Ok(())
}

/// Property names are identifiers as C# defines them.
pub fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first == '_' || first.is_alphabetic())
        && name.chars().all(|char| char == '_' || char.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn property(name: &str, value: Value<'static>) -> Property<'static> {
        (Cow::Owned(name.to_owned()), value)
    }

    fn numbered(count: usize) -> Vec<Property<'static>> {
        (0..count).map(|n| property(&format!("p{n}"), Value::Int32(0))).collect()
    }

    #[test]
    fn merging_keeps_what_is_not_named_and_the_order() {
        let before = Entity { stamp: Timestamp(1), properties: numbered(3) };
        let new = [property("new", Value::Int32(5)), property("p1", Value::Boolean(true))];
        let after = before.merged(Timestamp(2), &new);
        let names: Vec<_> = after.properties.iter().map(|(name, _)| name.as_ref()).collect();
        assert_eq!((after.stamp, names), (Timestamp(2), vec!["p0", "p1", "p2", "new"]));
        assert_eq!(after.properties[1].1, Value::Boolean(true));
    }

    #[test]
    fn names_of_properties() {
        let refused = |name: &str| check_properties(&[property(name, Value::Int32(1))]).err();
        for name in ["a", "_", "ä1", "ABC_1", &"x".repeat(255)] {
            assert_eq!(refused(name), None, "{name}");
        }
        for name in ["", "1a", "a-b", "a b", "a.b", "a@b"] {
            assert_eq!(refused(name), Some(TableError::PropertyNameInvalid { name: name.into() }));
        }
        // Of two faults, the length is reported.
        assert_eq!(refused(&"-".repeat(256)), Some(TableError::PropertyNameTooLong));
        for count in [1, 10, 100] {
            let mut twice = numbered(count);
            assert_eq!(check_properties(&twice), Ok(()));
            twice.push(property("p0", Value::Int32(2)));
            assert_eq!(check_properties(&twice), Err(TableError::DuplicatePropertiesSpecified), "{count}");
        }
        assert!(check_properties(&[property("a", Value::Int32(1)), property("A", Value::Int32(2))]).is_ok());
    }

    #[test]
    fn how_much_an_entity_may_hold() {
        let key = EntityKey::new("p", "r").unwrap();
        let check = |properties| Entity { stamp: Timestamp(1), properties }.check(&key);
        assert_eq!(check(numbered(252)), Ok(()));
        assert_eq!(check(numbered(253)), Err(TableError::TooManyProperties));
        let large = |count: usize, last: usize| {
            let mut all: Vec<_> = (0..count)
                .map(|n| property(&format!("p{n:02}"), Value::Binary(vec![0; 64 * 1024 - 18].into())))
                .collect();
            all.push(property("p99", Value::Binary(vec![0; last].into())));
            all
        };
        // 15 values make 15 * 64 KiB to the byte; the keys take 8 and the last property 18 bytes of the rest.
        assert_eq!(check(large(15, 64 * 1024 - 26)), Ok(()));
        assert_eq!(check(large(15, 64 * 1024 - 25)), Err(TableError::EntityTooLarge));
    }
}
