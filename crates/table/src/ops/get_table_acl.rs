//! Get Table ACL: the stored access policies of a table.

use std::sync::Arc;

use concurrency::Timestamp;
use engine::Rows;
use service::{ReadOperation, StoredPolicy};
use wire::http::{Reply, StatusCode};
use wire::xml::XmlWriter;

use super::{Call, table_of};
use crate::Failure;
use crate::error::TableError;
use crate::model::{self, Halt};
use crate::name::TableName;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetTableAcl {
    pub table: TableName,
}

impl ReadOperation for GetTableAcl {
    type Outcome = Vec<StoredPolicy>;
    type Refusal = TableError;

    fn apply(&self, rows: &dyn Rows, account: u64, _: Timestamp) -> Result<Vec<StoredPolicy>, Halt> {
        Ok(model::existing_table(rows, account, &self.table)?.policies)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let policies = call.read(&Arc::new(GetTableAcl { table: table_of(call.head)? })).await?;
    let mut xml = XmlWriter::document();
    StoredPolicy::document(&policies).write(&mut xml);
    Ok(Reply::new(StatusCode::OK).with_body("application/xml", xml.finish()))
}
