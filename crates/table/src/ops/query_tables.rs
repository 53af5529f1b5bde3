//! Query Tables: a page of an account's tables, by name, or one of them.

use std::sync::Arc;

use concurrency::Timestamp;
use engine::{Rows, Unread, Visit};
use service::{ReadOperation, codec};
use wire::http::{Head, Reply, StatusCode};

use super::Call;
use super::query_entities::{ROWS_VISITED_MAX, no_unsupported_options, top};
use crate::Failure;
use crate::address::Address;
use crate::answer::Answer;
use crate::entity::value::Value;
use crate::entity::write::{LIST_END, Metadata, Object, begin_list};
use crate::error::TableError;
use crate::filter::{Filter, Name, Subject};
use crate::format::{self, Prefer};
use crate::model::{self, Halt, Table, refuse, tables_of};
use crate::name::TableName;
use crate::token;

const NEXT_TABLE_NAME: &str = "x-ms-continuation-NextTableName";

#[derive(Debug)]
pub struct QueryTables {
    filter: Option<Filter>,
    /// At most this many tables.
    top: usize,
    /// The first name that the page may show.
    from: Option<String>,
}

/// Query Tables with one name: `Tables('name')`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueryTable {
    pub table: TableName,
}

fn parse(head: &Head) -> Result<QueryTables, TableError> {
    no_unsupported_options(head)?;
    Ok(QueryTables {
        filter: Filter::parse(head.query.get("$filter").unwrap_or_default())?,
        top: top(head)?,
        from: token::read(head, "NextTableName")?,
    })
}

/// A page of tables, in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TablesPage {
    pub names: Vec<String>,
    /// Where the next page begins; `None` if this is the last one.
    pub next: Option<String>,
}

/// A table as a filter sees it: its name is all it has.
struct FilteredTable<'a>(&'a str);

impl Subject for FilteredTable<'_> {
    fn value(&self, name: &Name) -> Result<Option<Value<'_>>, Unread> {
        let is_name = matches!(name, Name::Other(name) if name == "TableName");
        Ok(is_name.then(|| Value::String(self.0.into())))
    }
}

impl ReadOperation for QueryTables {
    type Outcome = TablesPage;
    type Refusal = TableError;

    fn apply(&self, rows: &dyn Rows, account: u64, _: Timestamp) -> Result<TablesPage, Halt> {
        if self.top == 0 {
            return Ok(TablesPage::default());
        }
        let all = tables_of(account);
        let from = self.from.as_ref().map_or(all.clone(), |name| all.clone().text(name));
        let mut page = TablesPage::default();
        let mut visited = 0;
        let mut failed = None;
        rows.scan(&from, &all.after_all(), self.top + 1, &mut |_, row| {
            let mut visit = || {
                let table: Table = codec::decode(row)?;
                if page.names.len() == self.top || visited == ROWS_VISITED_MAX {
                    page.next = Some(table.name.to_ascii_lowercase());
                    return Ok(Visit::Stop);
                }
                visited += 1;
                if self.filter.as_ref().map_or(Ok(true), |filter| filter.matches(&FilteredTable(&table.name)))? {
                    page.names.push(table.name);
                }
                Ok(Visit::Next)
            };
            visit().unwrap_or_else(|error| {
                failed = Some(error);
                Visit::Stop
            })
        })?;
        failed.map_or(Ok(page), |error| Err(Halt::Unread(error)))
    }
}

impl ReadOperation for QueryTable {
    /// The name as it was written when the table was created.
    type Outcome = String;
    type Refusal = TableError;

    fn apply(&self, rows: &dyn Rows, account: u64, _: Timestamp) -> Result<String, Halt> {
        let found = model::find_table(rows, account, &self.table)?;
        Ok(found.ok_or(refuse(TableError::ResourceNotFound))?.name)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let metadata = format::metadata(call.head)?;
    if let Address::Table(name) = Address::parse(&call.head.resource)? {
        return one(call, metadata, &name).await;
    }
    let page = call.read(&Arc::new(parse(call.head)?)).await?;
    let mut out = Vec::with_capacity(256);
    begin_list(&mut out, metadata, &call.head.endpoint, "Tables");
    for (n, name) in page.names.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        members(Object::open(&mut out), call.head, metadata, name);
    }
    out.extend_from_slice(LIST_END);
    let mut answer = Answer::json(StatusCode::OK, metadata, Prefer::Unsaid, out);
    if let Some(next) = page.next {
        answer = answer.with(NEXT_TABLE_NAME, token::write(&next));
    }
    Ok(answer.into())
}

async fn one(call: Call<'_>, metadata: Metadata, name: &str) -> Result<Reply, Failure> {
    let table = TableName::parse(name).map_err(TableError::from)?;
    let found = call.read(&Arc::new(QueryTable { table })).await?;
    let body = alone(call.head, metadata, &found);
    Ok(Answer::json(StatusCode::OK, metadata, Prefer::Unsaid, body).into())
}

/// One table, as JSON.
pub fn alone(head: &Head, metadata: Metadata, name: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let mut object = Object::open(&mut out);
    if metadata != Metadata::None {
        object.name("odata.metadata");
        object.text(format!("{}/$metadata#Tables/@Element", head.endpoint));
    }
    members(object, head, metadata, name);
    out
}

fn members(mut object: Object<'_>, head: &Head, metadata: Metadata, name: &str) {
    if metadata == Metadata::Full {
        object.name("odata.type");
        object.text(format!("{}.Tables", head.account));
        object.name("odata.id");
        object.text(format!("{}/Tables('{name}')", head.endpoint));
        object.name("odata.editLink");
        object.text(format!("Tables('{name}')"));
    }
    object.name("TableName");
    object.text(name);
    object.close();
}

#[cfg(test)]
mod tests {
    use crate::TableError;
    use crate::testing::{Bench, header, refusal, text};

    async fn bench() -> Bench {
        let bench = Bench::new();
        for name in ["Beta", "alpha", "gamma1", "gamma2"] {
            bench.create(name).await;
        }
        bench
    }

    #[tokio::test]
    async fn the_three_levels() {
        let bench = bench().await;
        let get = async |accept: &str| {
            text(bench.call("GET", "Tables?$top=1", &[("accept", accept)], b"").await.unwrap()).await
        };
        assert_eq!(get("application/json;odata=nometadata").await, r#"{"value":[{"TableName":"alpha"}]}"#);
        let minimal =
            r#"{"odata.metadata":"http://127.0.0.1:10002/acct/$metadata#Tables","value":[{"TableName":"alpha"}]}"#;
        assert_eq!(get("application/json").await, minimal);
        let full = get("application/json;odata=fullmetadata").await;
        let one = r#"{"odata.type":"acct.Tables","odata.id":"http://127.0.0.1:10002/acct/Tables('alpha')","odata.editLink":"Tables('alpha')","TableName":"alpha"}"#;
        assert!(full.ends_with(&format!("[{one}]}}")), "{full}");
    }

    #[tokio::test]
    async fn pages_and_filters() {
        let bench = bench().await;
        let mut names = Vec::new();
        let mut url = "Tables?$top=3".to_owned();
        loop {
            let page = bench.call("GET", &url, &[], b"").await.unwrap();
            let next = header(&page, "x-ms-continuation-nexttablename").map(str::to_owned);
            let page: serde_json::Value = serde_json::from_str(&text(page).await).unwrap();
            names.extend(
                page["value"].as_array().unwrap().iter().map(|table| table["TableName"].as_str().unwrap().to_owned()),
            );
            let Some(next) = next else { break };
            url = format!("Tables?$top=3&NextTableName={}", wire::percent::encode_value(&next));
        }
        assert_eq!(names, ["alpha", "Beta", "gamma1", "gamma2"]);
        let filtered =
            bench.call("GET", "Tables?$filter=TableName%20ge%20'gamma'%20and%20TableName%20lt%20'gamma2'", &[], b"");
        assert!(text(filtered.await.unwrap()).await.contains(r#""value":[{"TableName":"gamma1"}]"#));
    }

    #[tokio::test]
    async fn one_table() {
        let bench = bench().await;
        let found = text(bench.call("GET", "Tables('BETA')", &[], b"").await.unwrap()).await;
        assert!(found.ends_with(r##"$metadata#Tables/@Element","TableName":"Beta"}"##), "{found}");
        assert_eq!(refusal(bench.call("GET", "Tables('missing')", &[], b"").await), TableError::ResourceNotFound);
    }

    #[tokio::test]
    async fn bad_options() {
        let bench = bench().await;
        for query in ["$top=1001", "$top=x", "NextTableName=x", "$filter=TableName"] {
            let answer = bench.call("GET", &format!("Tables?{query}"), &[], b"").await;
            match query {
                "$filter=TableName" => assert!(text(answer.unwrap()).await.contains("\"value\":[]")),
                _ => assert!(matches!(refusal(answer), TableError::InvalidInput(_)), "{query}"),
            }
        }
    }
}
