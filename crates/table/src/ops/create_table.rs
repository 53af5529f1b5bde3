//! Create Table: a new, empty table under a name that is free.

use std::sync::Arc;

use engine::{Changes, Key, Rows, Tick};
use service::{Operation, codec};
use wire::http::{Body, Reply, collect};

use super::{BODY_BYTES_MAX, Call};
use crate::Failure;
use crate::answer::Answer;
use crate::entity::read;
use crate::error::TableError;
use crate::format::{self, Prefer};
use crate::model::{self, Halt, Table, refuse, table_key};
use crate::name::TableName;
use crate::ops::query_tables;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateTable {
    pub table: TableName,
}

impl Operation for CreateTable {
    type Outcome = ();
    type Refusal = TableError;

    fn partition(&self, account: u64) -> Key {
        table_key(account, &self.table)
    }

    /// A name is free as soon as its table is deleted: the entities of the deleted table belong to another generation.
    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<(), Halt> {
        if model::find_table(rows, account, &self.table)?.is_some() {
            return Err(refuse(TableError::TableAlreadyExists));
        }
        let name = self.table.as_str().to_owned();
        let table = Table { generation: tick.id(0), name, policies: Vec::new() };
        changes.put(table_key(account, &self.table), codec::encode(&table));
        Ok(())
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let head = call.head;
    format::check_body(head)?;
    let metadata = format::metadata(head)?;
    let body = collect(body, BODY_BYTES_MAX).await?;
    let table = TableName::parse(&read::table_name(&body)?).map_err(TableError::from)?;
    let op = Arc::new(CreateTable { table });
    call.commit(&op).await?;
    let location = format!("{}/Tables('{}')", head.endpoint, op.table.as_str());
    let body = || query_tables::alone(head, metadata, op.table.as_str());
    Ok(Answer::made(metadata, Prefer::of(head), location, body).into())
}

#[cfg(test)]
mod tests {
    use crate::TableError;
    use crate::testing::{Bench, header, refusal, text};
    use service::RequestError;

    #[tokio::test]
    async fn a_name_is_taken_once_whatever_its_case() {
        let bench = Bench::new();
        let made = bench.call("POST", "Tables", &[], br#"{"TableName":"MyTable"}"#).await.unwrap();
        assert_eq!(made.status, 201);
        assert_eq!(header(&made, "location"), Some("http://127.0.0.1:10002/acct/Tables('MyTable')"));
        let shown = text(made).await;
        assert_eq!(
            shown,
            r#"{"odata.metadata":"http://127.0.0.1:10002/acct/$metadata#Tables/@Element","TableName":"MyTable"}"#
        );
        let again = bench.call("POST", "Tables", &[], br#"{"TableName":"mytable"}"#).await;
        assert_eq!(refusal(again), TableError::TableAlreadyExists);
    }

    #[tokio::test]
    async fn who_does_not_want_to_see_it_does_not() {
        let bench = Bench::new();
        let prefer = [("prefer", "return-no-content")];
        let made = bench.call("POST", "Tables", &prefer, br#"{"TableName":"abc"}"#).await.unwrap();
        assert_eq!((made.status.as_u16(), header(&made, "preference-applied")), (204, Some("return-no-content")));
        assert_eq!(header(&made, "dataserviceid"), Some("http://127.0.0.1:10002/acct/Tables('abc')"));
        assert_eq!(text(made).await, "");
    }

    #[tokio::test]
    async fn faults_in_the_request_come_before_what_is_there() {
        let bench = Bench::with_table().await;
        for (body, expected) in [
            (&b"{}"[..], TableError::PropertiesNeedValue),
            (br#"{"TableName":"a-b"}"#, RequestError::InvalidResourceName.into()),
            (br#"{"TableName":"ab"}"#, TableError::NameLength),
            (br#"{"TableName":"tables"}"#, RequestError::InvalidResourceName.into()),
        ] {
            assert_eq!(refusal(bench.call("POST", "Tables", &[], body).await), expected);
        }
        let atom = bench.call("POST", "Tables", &[("content-type", "application/atom+xml")], br#"{"TableName":"tab"}"#);
        assert_eq!(refusal(atom.await), TableError::AtomFormatNotSupported);
    }
}
