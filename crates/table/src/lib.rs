//! The Table service.
//!
//! [`Op::named_by`] says which operation a request names, [`HttpService::run_for`] runs it. Each operation has its own file
//! under `ops` and is a value, such as [`CreateTable`], that any protocol can build: `parse` makes it from an HTTP request,
//! `apply` has the rules, and `run` takes it to the engine and writes the answer. What they share is split by kind:
//!
//! - `request_parts`, `address`, `format`, `token`: what a request says besides its body, as valid values
//! - `entity`: typed values, and entities as JSON and as rows
//! - `filter`: `$filter`, its evaluation, and the plan that turns conditions on keys into ranges of rows
//! - `write`: the rules of the six writes of an entity, alone or in a transaction
//! - `scope`: which keys a shared access signature allows
//!
//! What always holds:
//!
//! - Every decision on an entity reads the row of its table in the same step, so nothing can be written into a table that
//!   is being deleted.
//! - A page of a query shows one state of the table. A transaction is one commit: a page shows all of its writes or
//!   none.
//! - A refusal changes nothing.

mod address;
mod answer;
mod collect;
#[cfg(test)]
mod crashes;
mod entity;
mod error;
mod etag;
mod filter;
mod format;
mod key;
mod model;
mod name;
mod op;
mod ops;
mod request_parts;
#[cfg(test)]
mod round_trips;
mod route;
mod scope;
#[cfg(test)]
mod testing;
mod token;
mod write;

use std::sync::Arc;

use engine::{Engine, Rows, Unread};
use service::properties::Properties;
use service::{Call, HttpService, ServiceState, StoredPolicy};
use wire::http::{Body, Reply};

pub use answer::error_body;
pub use entity::Property;
pub use entity::value::Value;
pub use error::TableError;
pub use etag::IfMatch;
pub use key::EntityKey;
pub use name::TableName;
pub use op::Op;
pub use ops::{
    CreateTable, DeleteTable, EntityGroupTransaction, GetTableAcl, QueryTable, QueryTables, SetTableAcl, TablesPage,
};
pub use write::{EntityChange, EntityWrite, EntityWritten};

use ops::get_table_service_properties::PROPERTIES;

/// Why a request has no result.
pub type Failure = service::Failure<TableError>;

/// The service over one engine.
#[derive(Clone, Debug)]
pub struct TableService(ServiceState);

impl TableService {
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>) -> TableService {
        TableService(ServiceState::new(engine))
    }
}

impl HttpService for TableService {
    type Op = Op;
    type Error = TableError;

    fn state(&self) -> &ServiceState {
        &self.0
    }

    fn properties() -> &'static Properties {
        &PROPERTIES
    }

    async fn answer(&self, op: Op, call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
        ops::run(op, call, body).await
    }

    fn find_policies(rows: &dyn Rows, account: u64, table: &str) -> Result<Option<Vec<StoredPolicy>>, Unread> {
        let Ok(name) = TableName::parse(table) else { return Ok(None) };
        Ok(model::find_table(rows, account, &name)?.map(|table| table.policies))
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Failure {
        Failure::Refused(error)
    }
}

/// What the crate `fuzzing` calls, with arbitrary bytes.
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzzing {
    /// Parses a filter and makes its plan.
    pub fn filter(text: &str) {
        if let Ok(Some(filter)) = crate::filter::Filter::parse(text) {
            let _ = crate::filter::Plan::of(Some(&filter)).bounds();
        }
    }

    /// Parses an entity.
    pub fn entity(body: &[u8]) {
        let _ = crate::entity::read::read(body);
    }

    /// Decodes a row as that of a table, and as that of an entity with all its properties.
    pub fn rows(row: &[u8]) {
        let _ = service::codec::decode::<crate::model::Table>(row).is_ok();
        if let Ok(row) = crate::entity::Row::open(row) {
            let _ = row.properties().all(|property| property.is_ok());
            let _ = row.shown().all(|property| property.is_ok());
            let _ = (row.property("v").is_ok(), row.entity().is_ok());
        }
    }

    /// Valid rows, for the mutator to start from.
    #[must_use]
    pub fn row_samples() -> Vec<Vec<u8>> {
        let table = crate::model::Table { generation: 7, name: "tab".into(), policies: vec![] };
        let entity =
            [0x01, 0xA2, 0x00, 0x19, 0x03, 0xE8, 0x01, 0x86, 0x61, 0x76, 0x02, 0x01, 0x61, 0x77, 0x01, 0x61, 0x78];
        vec![service::codec::encode(&table).to_vec(), entity.to_vec()]
    }
}
