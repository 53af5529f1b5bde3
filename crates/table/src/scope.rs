//! Which entities a shared access signature allows: those of one table, and maybe only a range of keys.

use auth::grant::{GrantKind, KeyBound, Scope};
use auth::{Caller, Refusal};
use engine::prefix_end;

use crate::error::TableError;
use crate::filter::stored;
use crate::key::EntityKey;
use crate::name::TableName;

/// The entities that a caller may access: keys from `from` to before `to`, in the form in which they are stored in a
/// table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reach {
    table: Option<Box<str>>,
    pub from: Vec<u8>,
    pub to: Option<Vec<u8>>,
}

impl Reach {
    pub fn of(caller: &Caller) -> Reach {
        match caller.grant().map(|grant| &grant.kind) {
            Some(GrantKind::Service(Scope::Table { name, start, end })) => Reach {
                table: Some(name.clone()),
                from: bound(start).unwrap_or_default(),
                to: bound(end).map(|last| prefix_end(&last)),
            },
            _ => Reach::default(),
        }
    }

    /// Whether the signature is for this table. Only a transaction asks: it names its table in the body, which the
    /// server has not seen when it checks the signature.
    pub fn check_table(&self, table: &TableName) -> Result<(), TableError> {
        allowed(self.table.as_ref().is_none_or(|name| table.is(name)))
    }

    pub fn check(&self, key: &EntityKey) -> Result<(), TableError> {
        if self.from.is_empty() && self.to.is_none() {
            return Ok(());
        }
        let key = [stored(&key.partition), stored(&key.row)].concat();
        allowed(self.from <= key && self.to.as_ref().is_none_or(|to| key < *to))
    }
}

fn bound(bound: &KeyBound) -> Option<Vec<u8>> {
    let mut key = stored(bound.partition.as_deref()?);
    if let Some(row) = &bound.row {
        key.extend_from_slice(&stored(row));
    }
    Some(key)
}

fn allowed(is_allowed: bool) -> Result<(), TableError> {
    is_allowed.then_some(()).ok_or(TableError::NotAllowed(Refusal::AuthorizationFailure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use auth::{Grant, Permissions};

    fn reach(start: (Option<&str>, Option<&str>), end: (Option<&str>, Option<&str>)) -> Reach {
        let bound = |(partition, row): (Option<&str>, Option<&str>)| KeyBound {
            partition: partition.map(Into::into),
            row: row.map(Into::into),
        };
        let scope = Scope::Table { name: "tab".into(), start: bound(start), end: bound(end) };
        Reach::of(&Caller::Sas(Grant {
            kind: GrantKind::Service(scope),
            permissions: Permissions::of("raud"),
            overrides: None,
            encryption_scope: None,
            delegation: None,
        }))
    }

    #[test]
    fn ranges() {
        let may =
            |reach: &Reach, partition: &str, row: &str| reach.check(&EntityKey::new(partition, row).unwrap()).is_ok();
        let all = reach((None, None), (None, None));
        assert!(may(&all, "", "") && may(&all, "z", "z"));
        let partitions = reach((Some("b"), None), (Some("d"), None));
        for (partition, expected) in [("a", false), ("az", false), ("b", true), ("c", true), ("d", true), ("da", false)]
        {
            assert_eq!(may(&partitions, partition, "x"), expected, "{partition}");
        }
        let rows = reach((Some("b"), Some("5")), (Some("d"), Some("5")));
        for (partition, row, expected) in [
            ("b", "4", false),
            ("b", "5", true),
            ("b", "6", true),
            ("c", "", true),
            ("d", "5", true),
            ("d", "50", false),
            ("d", "6", false),
        ] {
            assert_eq!(may(&rows, partition, row), expected, "{partition} {row}");
        }
    }

    #[test]
    fn tables() {
        let reach = reach((None, None), (None, None));
        assert_eq!(reach.check_table(&TableName::parse("TAB").unwrap()), Ok(()));
        let other = reach.check_table(&TableName::parse("other").unwrap());
        assert_eq!(other, Err(TableError::NotAllowed(Refusal::AuthorizationFailure)));
        assert_eq!(Reach::of(&Caller::Owner).check_table(&TableName::parse("other").unwrap()), Ok(()));
    }
}
