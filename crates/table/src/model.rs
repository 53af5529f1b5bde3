//! What is stored: the rows of the Table service.
//!
//! - A table is one row by account and name in lower case. Its `generation` names everything inside it, so deleting a table
//!   removes one row and its entities are out of reach at once; their rows go later.
//! - An entity is one row by generation, partition key and row key, in the order in which a query walks them. See `entity`.

use engine::{Key, Rows, Stop, Unread};
use minicbor::{Decode, Encode};
use service::space;
use service::{StoredPolicy, codec};

use crate::error::TableError;
use crate::key::{EntityKey, ordered};
use crate::name::TableName;

/// What a function over rows ends with when it has no result.
pub type Halt = Stop<TableError>;

pub fn refuse(error: TableError) -> Halt {
    Stop::Refused(error)
}

#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Table {
    /// Names what is inside; a table made again under the same name has another.
    #[n(0)]
    pub generation: u64,
    /// As it was written when the table was made.
    #[n(1)]
    pub name: String,
    #[n(2)]
    pub policies: Vec<StoredPolicy>,
}

/// The same row, for those who only need to know that the table is there.
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

/// Engines take partitions in turn; an entity's is known before its table has been read.
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

/// The guard of everything inside a table: it must be there, in the same state of the store.
pub fn generation(rows: &dyn Rows, account: u64, name: &TableName) -> Result<u64, Halt> {
    let row = rows.get(&table_key(account, name))?.ok_or(refuse(TableError::TableNotFound))?;
    Ok(codec::decode::<TableGuard>(&row)?.generation)
}
