//! The rows of the Table service.
//!
//! - A table is one row, by account and name in lower case. Its `generation` is part of its entities' keys, so deleting
//!   a table removes one row and all its entities are out of reach at once; their rows are removed later.
//! - An entity is one row, by generation, partition key and row key, in the order in which queries return them. See
//!   `entity`.

use engine::{Key, Rows, Stop, Unread};
use minicbor::{Decode, Encode};
use service::space;
use service::{StoredPolicy, codec};

use crate::error::TableError;
use crate::key::{EntityKey, ordered};
use crate::name::TableName;

/// Why a function over rows ends without a result.
pub type Halt = Stop<TableError>;

pub fn refuse(error: TableError) -> Halt {
    Stop::Refused(error)
}

#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Table {
    /// Part of the keys of its entities. Creating a table again under the same name draws a new one.
    #[n(0)]
    pub generation: u64,
    /// The name as it was written when the table was created.
    #[n(1)]
    pub name: String,
    #[n(2)]
    pub policies: Vec<StoredPolicy>,
}

/// The same row, when it only matters that the table exists.
#[derive(Decode)]
#[cbor(map)]
struct TableGuard {
    #[n(0)]
    generation: u64,
}

pub fn tables_of(account: u64) -> Key {
    Key::new(space::TABLE).number(account)
}

pub fn table_key(account: u64, name: &TableName) -> Key {
    tables_of(account).text(name.folded())
}

/// The engine's partition of an entity: table and partition key. It is known before the table's row has been read.
pub fn partition(account: u64, table: &TableName, key: &EntityKey) -> Key {
    table_key(account, table).text(ordered(&key.partition))
}

pub fn find_table(rows: &dyn Rows, account: u64, name: &TableName) -> Result<Option<Table>, Unread> {
    rows.get(&table_key(account, name))?.map(|row| codec::decode(&row)).transpose()
}

/// The table, which must exist.
pub fn existing_table(rows: &dyn Rows, account: u64, name: &TableName) -> Result<Table, Halt> {
    find_table(rows, account, name)?.ok_or(refuse(TableError::TableNotFound))
}

/// The table's generation. Every decision on an entity reads it, so that the table exists in the same state of the
/// store.
pub fn generation(rows: &dyn Rows, account: u64, name: &TableName) -> Result<u64, Halt> {
    let row = rows.get(&table_key(account, name))?.ok_or(refuse(TableError::TableNotFound))?;
    Ok(codec::decode::<TableGuard>(&row)?.generation)
}
