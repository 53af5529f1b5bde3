//! The operations, one file each, by the name the REST reference gives them.

mod create_table;
mod delete_entity;
mod delete_table;
mod entity_group_transaction;
mod get_table_acl;
pub mod get_table_service_properties;
mod get_table_service_stats;
mod insert_entity;
mod insert_or_merge_entity;
mod insert_or_replace_entity;
mod merge_entity;
mod preflight_table_request;
mod query_entities;
mod query_tables;
mod set_table_acl;
mod set_table_service_properties;
mod update_entity;

pub use create_table::CreateTable;
pub use delete_table::DeleteTable;
pub use entity_group_transaction::EntityGroupTransaction;
pub use get_table_acl::GetTableAcl;
pub use query_tables::{QueryTable, QueryTables, TablesPage};
pub use set_table_acl::SetTableAcl;

use service::Call;
use wire::http::{Body, Head, Reply};

use crate::address::Address;
use crate::error::TableError;
use crate::name::TableName;
use crate::{Failure, Op};

/// The largest body of a request (4 MiB). A page of entities ends when it has become as large.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The table whose entities or policies a request is about.
pub fn table_of(head: &Head) -> Result<TableName, TableError> {
    Ok(TableName::parse(Address::parse(&head.resource)?.entities_of().unwrap_or_default())?)
}

pub async fn run(op: Op, call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    match op {
        Op::CreateTable => create_table::run(call, body).await,
        Op::DeleteEntity => delete_entity::run(call).await,
        Op::DeleteTable => delete_table::run(call).await,
        Op::EntityGroupTransaction => entity_group_transaction::run(call, body).await,
        Op::GetTableAcl => get_table_acl::run(call).await,
        Op::GetTableServiceProperties => get_table_service_properties::run(call).await,
        Op::GetTableServiceStats => get_table_service_stats::run(call).await,
        Op::InsertEntity => insert_entity::run(call, body).await,
        Op::InsertOrMergeEntity => insert_or_merge_entity::run(call, body).await,
        Op::InsertOrReplaceEntity => insert_or_replace_entity::run(call, body).await,
        Op::MergeEntity => merge_entity::run(call, body).await,
        Op::PreflightTableRequest => preflight_table_request::run(call).await,
        Op::QueryEntities => query_entities::run(call).await,
        Op::QueryTables => query_tables::run(call).await,
        Op::SetTableAcl => set_table_acl::run(call, body).await,
        Op::SetTableServiceProperties => set_table_service_properties::run(call, body).await,
        Op::UpdateEntity => update_entity::run(call, body).await,
    }
}
