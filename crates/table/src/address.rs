//! What the path of a request names: the service, all tables, one table, the entities of a table, or one entity.

use crate::error::TableError;
use crate::key::EntityKey;

/// The path of a request, below the account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address<'a> {
    Service,
    /// `$batch`
    Batch,
    /// `Tables`
    Tables,
    /// `Tables('name')`
    Table(String),
    /// `name` or `name()`
    Entities(&'a str),
    /// `name(PartitionKey='p',RowKey='r')`
    Entity(&'a str, EntityKey),
    /// `name/...`, which names nothing; which error it gets depends on the verb. Clients send it when the service
    /// endpoint they were given ends with the name of a table.
    Beyond(&'a str),
}

const TABLES: &str = "Tables";
const BAD_KEY: TableError = TableError::InvalidInput("The key in the URL is not valid.");

impl<'a> Address<'a> {
    pub fn parse(path: &'a str) -> Result<Address<'a>, TableError> {
        // A slash behind a parenthesis belongs to a key.
        if let Some((name, rest)) = path.split_once('/').filter(|(name, _)| !name.contains('(')) {
            return Ok(match (name.is_empty(), rest.is_empty()) {
                (true, true) => Address::Service,
                (false, true) => Address::named(name),
                (_, false) => Address::Beyond(name),
            });
        }
        let Some((name, inner)) = path.split_once('(') else {
            return Ok(Address::named(path));
        };
        let is_tables = name.eq_ignore_ascii_case(TABLES);
        let inner = inner.strip_suffix(')').ok_or(BAD_KEY)?.trim();
        match (is_tables, inner.is_empty()) {
            (true, true) => Ok(Address::Tables),
            (true, false) => table(inner),
            (false, true) => Ok(Address::Entities(name)),
            (false, false) => Ok(Address::Entity(name, entity(inner)?)),
        }
    }

    fn named(name: &'a str) -> Address<'a> {
        match name {
            "" => Address::Service,
            "$batch" => Address::Batch,
            name if name.eq_ignore_ascii_case(TABLES) => Address::Tables,
            name => Address::Entities(name),
        }
    }

    /// The table whose entities the path names.
    pub fn entities_of(&self) -> Option<&'a str> {
        match self {
            Address::Entities(name) | Address::Entity(name, _) | Address::Beyond(name) => Some(name),
            Address::Service | Address::Batch | Address::Tables | Address::Table(_) => None,
        }
    }
}

/// `'name'`, or `TableName='name'`.
fn table(mut inner: &str) -> Result<Address<'static>, TableError> {
    if let Some(rest) = inner.strip_prefix("TableName") {
        inner = rest.trim_start().strip_prefix('=').ok_or(BAD_KEY)?.trim_start();
    }
    let name = quoted(&mut inner)?;
    if inner.is_empty() { Ok(Address::Table(name)) } else { Err(BAD_KEY) }
}

/// `PartitionKey='p',RowKey='r'`, in either order.
fn entity(mut inner: &str) -> Result<EntityKey, TableError> {
    let (mut partition, mut row) = (None, None);
    loop {
        let (name, rest) = inner.split_once('=').ok_or(BAD_KEY)?;
        inner = rest.trim_start();
        let place = match name.trim() {
            "PartitionKey" => &mut partition,
            "RowKey" => &mut row,
            _ => return Err(BAD_KEY),
        };
        if place.replace(quoted(&mut inner)?).is_some() {
            return Err(BAD_KEY);
        }
        match inner.strip_prefix(',') {
            Some(rest) => inner = rest,
            None if inner.is_empty() => break,
            None => return Err(BAD_KEY),
        }
    }
    match (partition, row) {
        (Some(partition), Some(row)) => EntityKey::new(partition, row),
        _ => Err(BAD_KEY),
    }
}

/// Reads a quoted text, in which two quotes stand for one, and the spaces after it.
fn quoted(rest: &mut &str) -> Result<String, TableError> {
    let mut text = String::new();
    let mut inner = rest.strip_prefix('\'').ok_or(BAD_KEY)?;
    loop {
        let (part, after) = inner.split_once('\'').ok_or(BAD_KEY)?;
        text.push_str(part);
        match after.strip_prefix('\'') {
            Some(more) => {
                text.push('\'');
                inner = more;
            }
            None => {
                *rest = after.trim_start();
                return Ok(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity<'a>(table: &'a str, partition: &str, row: &str) -> Address<'a> {
        Address::Entity(table, EntityKey::new(partition, row).unwrap())
    }

    #[test]
    fn what_urls_name() {
        let table = [
            ("", Address::Service),
            ("/", Address::Service),
            ("$batch", Address::Batch),
            ("Tables", Address::Tables),
            ("Tables()", Address::Tables),
            ("tables", Address::Tables),
            ("Tables('abc')", Address::Table("abc".into())),
            ("Tables( TableName = 'abc' )", Address::Table("abc".into())),
            ("abc", Address::Entities("abc")),
            ("abc()", Address::Entities("abc")),
            ("abc/", Address::Entities("abc")),
            ("abc/Tables", Address::Beyond("abc")),
            ("abc/Tables('def')", Address::Beyond("abc")),
            ("abc(PartitionKey='p',RowKey='r')", entity("abc", "p", "r")),
            ("abc( RowKey = 'r' , PartitionKey = 'p' )", entity("abc", "p", "r")),
            ("abc(PartitionKey='',RowKey='')", entity("abc", "", "")),
            ("abc(PartitionKey='it''s',RowKey='''')", entity("abc", "it's", "'")),
            ("abc(PartitionKey='a,b=(c)',RowKey=')')", entity("abc", "a,b=(c)", ")")),
            ("abc(PartitionKey='😀',RowKey='ä b')", entity("abc", "😀", "ä b")),
        ];
        for (path, address) in table {
            assert_eq!(Address::parse(path), Ok(address), "{path}");
        }
    }

    #[test]
    fn what_names_nothing() {
        for path in [
            "abc(",
            "abc(x)",
            "abc('p','r')",
            "abc(PartitionKey='p')",
            "abc(PartitionKey='p',RowKey='r'",
            "abc(PartitionKey='p',RowKey=r)",
            "abc(PartitionKey='p',RowKey='r)",
            "abc(PartitionKey='p',PartitionKey='r')",
            "abc(PartitionKey='p',RowKey='r',x='y')",
            "abc(PartitionKey='p',RowKey='r',)",
            "abc(PartitionKey='p'RowKey='r')",
            "abc(PartitionKey='p',RowKey='r')x",
            "Tables(abc)",
            "Tables('abc'",
            "Tables('abc',)",
        ] {
            assert!(Address::parse(path).is_err(), "{path}");
        }
        let refused = Address::parse("abc(PartitionKey='p',RowKey='a/b')");
        assert_eq!(refused, Err(TableError::OutOfRangeInput { name: "RowKey", value: "a/b".into() }));
    }
}
