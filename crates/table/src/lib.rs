//! The Table service.
//!
//! [`Op::named_by`] says which operation a request names, [`TableService::run`] runs it. Each operation has its own file
//! under `ops`. What they share is split by kind:
//!
//! - `asked`, `address`, `format`, `token`: what a request says beside its body, as values that cannot be wrong
//! - `entity`: typed values, and entities as JSON and as rows
//! - `filter`: the query language, its evaluation, and the plan that turns conditions on keys into ranges of rows
//! - `write`: the rules of the six writes, pure, for one entity alone and for many in a transaction
//! - `scope`: which keys a signature reaches
//!
//! What always holds:
//!
//! - Every decision on an entity reads the row of its table in the same step, so nothing can be written into a table that
//!   is being deleted.
//! - A page of a query is one state of the table. A transaction is one commit: a page shows all of it or nothing.
//! - A refusal changes nothing.

mod address;
mod answer;
mod asked;
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
#[cfg(test)]
mod round_trips;
mod route;
mod scope;
#[cfg(test)]
mod testing;
mod token;
mod write;

use std::sync::Arc;

use engine::{Engine, EngineError};
use service::properties::{KnownRules, Rules};
use service::{Asker, StoredPolicy, unrefused};
use wire::http::{Body, Head, Reply};

pub use answer::error_body;
pub use error::TableError;
pub use name::TableName;
pub use op::Op;

use ops::get_table_service_properties::PROPERTIES;

/// The service over one engine.
#[derive(Clone, Debug)]
pub struct TableService {
    engine: Arc<dyn Engine>,
    rules: Arc<KnownRules>,
}

/// Why a request has no result.
pub type Failure = service::Failure<TableError>;

impl TableService {
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>) -> TableService {
        TableService { engine, rules: Arc::default() }
    }

    /// Runs an operation for the owner of the account.
    pub async fn run(&self, op: Op, head: &Head, account: u64, body: &mut dyn Body) -> Result<Reply, Failure> {
        self.run_for(Asker::OWNER, op, head, account, body).await
    }

    /// Runs an operation for a caller who may.
    pub async fn run_for(
        &self,
        asker: Asker<'_>,
        op: Op,
        head: &Head,
        account: u64,
        body: &mut dyn Body,
    ) -> Result<Reply, Failure> {
        ops::run(op, ops::Call { engine: &*self.engine, account, head, asker }, body).await
    }

    /// The rules for pages of other sites that an account has, if it has any.
    pub async fn cors(&self, account: u64) -> Result<Option<Rules>, EngineError> {
        self.rules.of(&PROPERTIES, &*self.engine, account).await
    }

    /// The stored policies of a table. One that is not there has none.
    pub async fn policies(&self, account: u64, table: &str) -> Result<Vec<StoredPolicy>, EngineError> {
        let Ok(name) = TableName::parse(table) else { return Ok(Vec::new()) };
        let found = engine::read(&*self.engine, |rows, _| Ok(model::find_table(rows, account, &name)?)).await;
        Ok(unrefused(found)?.map_or_else(Vec::new, |table| table.policies))
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Failure {
        Failure::Refused(error)
    }
}

/// For those who try what no client would send.
#[doc(hidden)]
pub mod fuzzing {
    /// Reads a filter, plans it, and holds it against nothing.
    pub fn filter(text: &str) {
        if let Ok(Some(filter)) = crate::filter::Filter::parse(text) {
            let _ = crate::filter::Plan::of(Some(&filter)).bounds();
        }
    }

    /// Reads an entity.
    pub fn entity(body: &[u8]) {
        let _ = crate::entity::read::read(body);
    }

    /// Reads a row as that of a table, and of an entity with all its properties.
    pub fn rows(row: &[u8]) {
        let _ = service::codec::decode::<crate::model::Table>(row).is_ok();
        if let Ok(row) = crate::entity::Row::open(row) {
            let _ = row.properties().all(|property| property.is_ok());
            let _ = row.shown().all(|property| property.is_ok());
            let _ = (row.property("v").is_ok(), row.entity().is_ok());
        }
    }

    /// Rows to begin with.
    #[must_use]
    pub fn row_samples() -> Vec<Vec<u8>> {
        let table = crate::model::Table { generation: 7, name: "tab".into(), policies: vec![] };
        let entity =
            [0x01, 0xA2, 0x00, 0x19, 0x03, 0xE8, 0x01, 0x86, 0x61, 0x76, 0x02, 0x01, 0x61, 0x77, 0x01, 0x61, 0x78];
        vec![service::codec::encode(&table).to_vec(), entity.to_vec()]
    }
}
