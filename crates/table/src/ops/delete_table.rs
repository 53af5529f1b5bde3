//! Delete Table: the table and its entities are gone at once; the rows behind them go later.

use std::sync::Arc;

use bytes::Bytes;
use engine::{Changes, Key, Rows, Tick, due};
use service::Operation;
use service::space;
use wire::http::{Head, Reply};

use super::Call;
use crate::Failure;
use crate::address::Address;
use crate::answer::Answer;
use crate::error::TableError;
use crate::model::{self, Halt, refuse, table_key};
use crate::name::TableName;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteTable {
    pub table: TableName,
}

/// The table that is named in the parentheses: `Tables('name')`.
fn parse(head: &Head) -> Result<DeleteTable, TableError> {
    match Address::parse(&head.resource)? {
        Address::Table(name) => Ok(DeleteTable { table: TableName::parse(&name)? }),
        Address::Service
        | Address::Batch
        | Address::Tables
        | Address::Entities(_)
        | Address::Entity(..)
        | Address::Beyond(_) => Err(TableError::MethodNotAllowed),
    }
}

impl Operation for DeleteTable {
    type Outcome = ();
    type Refusal = TableError;

    fn partition(&self, account: u64) -> Key {
        table_key(account, &self.table)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<(), Halt> {
        let found = model::find_table(rows, account, &self.table)?.ok_or(refuse(TableError::ResourceNotFound))?;
        changes.delete(table_key(account, &self.table));
        changes.put(due::key(tick.now, space::TABLE, &found.generation.to_be_bytes()), Bytes::new());
        changes.frees_space = true;
        Ok(())
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    call.commit(&Arc::new(parse(call.head)?)).await?;
    Ok(Answer::empty().into())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use engine::due::Due;
    use engine::{Changes, Commit, Key, Visit, commit};
    use service::space;

    use crate::TableError;
    use crate::testing::{Bench, refusal};

    #[tokio::test]
    async fn the_name_is_free_at_once_and_the_old_entities_are_not_seen() {
        let bench = Bench::with_table().await;
        bench.insert("tab", "p", "r", "").await;
        assert_eq!(bench.call("DELETE", "Tables('TAB')", &[], b"").await.unwrap().status, 204);
        let entity = "tab(PartitionKey='p',RowKey='r')";
        assert_eq!(refusal(bench.call("GET", entity, &[], b"").await), TableError::TableNotFound);
        assert_eq!(refusal(bench.call("DELETE", "Tables('tab')", &[], b"").await), TableError::ResourceNotFound);
        bench.create("tab").await;
        assert_eq!(refusal(bench.call("GET", entity, &[], b"").await), TableError::ResourceNotFound);
        assert_eq!(bench.rows("tab()").await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn nothing_is_left_after_a_sweep() {
        let bench = Bench::with_table().await;
        for n in 0..2_500 {
            bench.insert("tab", "p", &n.to_string(), "").await;
        }
        bench.create("other").await;
        bench.insert("other", "p", "r", "").await;
        bench.call("DELETE", "Tables('tab')", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.stored(), 2, "the other table and its entity");
        bench.call("DELETE", "Tables('other')", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.stored(), 0);
    }

    /// Earlier versions wrote a number of their own in place of the space. It is the same one.
    #[tokio::test]
    async fn what_earlier_versions_left_due_is_done() {
        let bench = Bench::with_table().await;
        bench.insert("tab", "p", "r", "").await;
        bench.call("DELETE", "Tables('tab')", &[], b"").await.unwrap();
        let all = Key::new(space::DUE);
        let rewritten = commit::<_, std::convert::Infallible, _>(&*bench.engine, all.clone(), move |rows, _| {
            let mut changes = Changes::none();
            rows.scan(&all, &all.after_all(), 1, &mut |key, _| {
                let due = Due::from_key(key).unwrap();
                let old = Key::new(space::DUE).number(due.at.0).byte(32).text(&due.owner);
                changes.delete(Key::from_bytes(key)).put(old, Bytes::new());
                Visit::Next
            })?;
            Ok(Commit { outcome: changes.rows.len(), changes })
        });
        assert_eq!(rewritten.await.unwrap(), 2);
        bench.sweep().await;
        assert_eq!(bench.stored(), 0);
    }
}
