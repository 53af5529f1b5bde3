//! Delete Table: the table and everything in it are gone at once; the rows behind it go later.

use bytes::Bytes;
use engine::due::{self, Kind};
use engine::{Changes, Commit, commit};
use wire::http::{Head, Reply};

use super::Call;
use crate::Failure;
use crate::address::Address;
use crate::answer::Answer;
use crate::error::TableError;
use crate::model::{self, refuse, table_key};
use crate::name::TableName;

/// The table that is named in the parentheses.
pub fn parse(head: &Head) -> Result<TableName, TableError> {
    match Address::parse(&head.resource)? {
        Address::Table(name) => Ok(TableName::parse(&name)?),
        _ => Err(TableError::MethodNotAllowed),
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let name = parse(call.head)?;
    let (key, account) = (table_key(call.account, &name), call.account);
    commit(call.engine, key.clone(), move |rows, tick| {
        let found = model::find_table(rows, account, &name)?.ok_or(refuse(TableError::ResourceNotFound))?;
        let mut changes = Changes::none().freeing_space();
        changes.delete(key.clone());
        changes.put(due::key(tick.now, Kind::TablePurge, &found.generation.to_be_bytes()), Bytes::new());
        Ok(Commit { changes, outcome: () })
    })
    .await?;
    Ok(Answer::empty().into())
}

#[cfg(test)]
mod tests {
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
}
