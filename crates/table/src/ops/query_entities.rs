//! Query Entities: a page of a table's entities in the order of their keys, or one of them.
//!
//! A page shows one state of the table. It ends after `$top` entities, or when it has become large or has visited many
//! rows that the filter does not match; then it has a continuation token.

use std::sync::Arc;

use concurrency::Timestamp;
use engine::{Key, Rows, Unread, Visit};
use service::ReadOperation;
use wire::http::{Head, Reply, StatusCode};

use super::{BODY_BYTES_MAX, Call};
use crate::Failure;
use crate::address::Address;
use crate::answer::Answer;
use crate::entity::value::Value;
use crate::entity::write::{LIST_END, Metadata, Shape};
use crate::entity::{Row, is_identifier};
use crate::error::TableError;
use crate::etag;
use crate::filter::{Filter, Name, Plan, Step, Subject, stored};
use crate::format::{self, Prefer};
use crate::key::{self, EntityKey, KeyView, entities};
use crate::model::{self, Halt, refuse};
use crate::name::TableName;
use crate::scope::Reach;
use crate::token;

/// The most entities in a page, and how many it has without `$top`.
pub const ENTITIES_PER_PAGE_MAX: usize = 1_000;
/// How many rows a page may visit, shown or not. A page that ends because of it is short and has a continuation token.
pub const ROWS_VISITED_MAX: usize = 20_000;
/// A page ends when it has become this large: an entity can have up to 1 MiB.
const PAGE_BYTES_MAX: usize = BODY_BYTES_MAX;

const NEXT_PARTITION_KEY: &str = "x-ms-continuation-NextPartitionKey";
const NEXT_ROW_KEY: &str = "x-ms-continuation-NextRowKey";

/// A page of entities. The page is written as JSON while its rows are visited, without a value for each entity in between;
/// so the operation holds what the JSON needs.
#[derive(Debug)]
struct QueryEntities {
    view: EntityView,
    filter: Option<Filter>,
    top: usize,
    /// The first key that the page may show, as it is stored in the table.
    from: Vec<u8>,
    reach: Reach,
}

/// Query Entities with the keys of one entity.
#[derive(Debug)]
struct QueryEntity {
    view: EntityView,
    key: EntityKey,
}

/// The table, and how its entities are shown.
#[derive(Debug)]
struct EntityView {
    table: TableName,
    metadata: Metadata,
    select: Option<Vec<String>>,
    endpoint: String,
    account: String,
}

impl EntityView {
    fn parse(head: &Head, table: &str) -> Result<EntityView, TableError> {
        no_unsupported_options(head)?;
        Ok(EntityView {
            table: TableName::parse(table)?,
            metadata: format::metadata(head)?,
            select: select(head)?,
            endpoint: head.endpoint.clone(),
            account: head.account.clone(),
        })
    }

    fn shape(&self) -> Shape<'_> {
        Shape {
            metadata: self.metadata,
            endpoint: &self.endpoint,
            account: &self.account,
            table: self.table.as_str(),
            select: self.select.as_deref(),
        }
    }
}

fn parse(head: &Head, table: &str, reach: Reach) -> Result<QueryEntities, TableError> {
    Ok(QueryEntities {
        view: EntityView::parse(head, table)?,
        filter: Filter::parse(head.query.get("$filter").unwrap_or_default())?,
        top: top(head)?,
        from: from(head)?,
        reach,
    })
}

/// `$top`: the most results in a page.
pub fn top(head: &Head) -> Result<usize, TableError> {
    let Some(text) = head.query.get("$top") else { return Ok(ENTITIES_PER_PAGE_MAX) };
    let count = text.parse().ok().filter(|count| *count <= ENTITIES_PER_PAGE_MAX);
    count.ok_or(TableError::InvalidInput("$top is a number from 0 to 1000."))
}

/// Refuses query options that the service does not support. To ignore them would return something else than the client
/// asked for.
pub fn no_unsupported_options(head: &Head) -> Result<(), TableError> {
    let names = ["$orderby", "$skip", "$skiptoken", "$count", "$inlinecount", "$expand", "$search", "$apply"];
    match names.iter().any(|name| head.query.has(name)) {
        true => Err(TableError::NotImplemented("The query options are $filter, $top, $select and $format.")),
        false => Ok(()),
    }
}

/// `$select`: the properties to show; `None`: all of them.
fn select(head: &Head) -> Result<Option<Vec<String>>, TableError> {
    let Some(text) = head.query.get("$select").filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    let mut names: Vec<String> = Vec::new();
    for name in text.split(',').map(str::trim) {
        if name == "*" {
            return Ok(None);
        }
        if !is_identifier(name) {
            return Err(TableError::InvalidInput("$select is a list of names of properties."));
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Ok(Some(names))
}

fn from(head: &Head) -> Result<Vec<u8>, TableError> {
    let Some(partition) = token::read(head, "NextPartitionKey")? else { return Ok(Vec::new()) };
    let mut from = stored(&partition);
    if let Some(row) = token::read(head, "NextRowKey")? {
        from.extend_from_slice(&stored(&row));
    }
    Ok(from)
}

/// What a page shows, and where the next one begins.
struct EntitiesPage {
    body: Vec<u8>,
    next: Option<EntityKey>,
}

/// An entity as a filter sees it.
struct FilteredEntity<'a> {
    key: KeyView<'a>,
    row: &'a Row<'a>,
}

impl Subject for FilteredEntity<'_> {
    fn value(&self, name: &Name) -> Result<Option<Value<'_>>, Unread> {
        Ok(match name {
            Name::PartitionKey => Some(Value::String(self.key.partition.into())),
            Name::RowKey => Some(Value::String(self.key.row.into())),
            Name::Timestamp => Some(Value::DateTime(self.row.stamp)),
            Name::Other(name) => self.row.property(name)?,
        })
    }
}

impl ReadOperation for QueryEntities {
    type Outcome = EntitiesPage;
    type Refusal = TableError;

    fn apply(&self, rows: &dyn Rows, account: u64, _: Timestamp) -> Result<EntitiesPage, Halt> {
        let generation = model::generation(rows, account, &self.view.table)?;
        let shape = self.view.shape();
        let mut page = EntitiesPage { body: Vec::with_capacity(1024), next: None };
        shape.list(&mut page.body);
        let plan = Plan::of(self.filter.as_ref());
        // With `$top=0` there is no continuation token: clients ask for pages until there is none.
        if let Some((from, to)) = self.bounds(&plan).filter(|_| self.top > 0) {
            let page = &mut page;
            let is_one_range = plan.is_one_range();
            let mut scan =
                Scan { query: self, plan, is_one_range, shape, page, generation, shown: 0, visited: 0, last: 0 };
            scan.run(rows, &from, &to)?;
        }
        page.body.extend_from_slice(LIST_END);
        Ok(page)
    }
}

impl QueryEntities {
    /// The range of keys to scan: the intersection of the plan, the continuation token and the signature's range.
    fn bounds(&self, plan: &Plan) -> Option<(Vec<u8>, Vec<u8>)> {
        let (mut from, mut to) = plan.bounds()?;
        for least in [&self.from, &self.reach.from] {
            if from < *least {
                from.clone_from(least);
            }
        }
        if let Some(most) = self.reach.to.as_ref().filter(|most| **most < to) {
            to.clone_from(most);
        }
        (from < to).then_some((from, to))
    }
}

/// A scan over the rows of a table that fills a page.
struct Scan<'a> {
    query: &'a QueryEntities,
    plan: Plan,
    /// Every row that the scan visits lies in the plan.
    is_one_range: bool,
    shape: Shape<'a>,
    page: &'a mut EntitiesPage,
    generation: u64,
    shown: usize,
    visited: usize,
    last: usize,
}

impl Scan<'_> {
    fn run(&mut self, rows: &dyn Rows, from: &[u8], to: &[u8]) -> Result<(), Unread> {
        let (from, to) = (self.key(from), self.key(to));
        let mut failed = None;
        rows.scan(&from, &to, self.query.top + 1, &mut |key, row| {
            self.visit(key, row).unwrap_or_else(|error| {
                failed = Some(error);
                Visit::Stop
            })
        })?;
        failed.map_or(Ok(()), Err)
    }

    fn key(&self, bytes: &[u8]) -> Key {
        let mut key = entities(self.generation).as_bytes().to_vec();
        key.extend_from_slice(bytes);
        Key::from_bytes(&key)
    }

    fn visit(&mut self, key: &[u8], row: &[u8]) -> Result<Visit, Unread> {
        let (partition, row_key) = key::split(key).ok_or_else(bad_key)?;
        let step = match self.is_one_range {
            true => Step::Inside,
            false => self.plan.step(partition, row_key, &mut self.last),
        };
        if step == Step::Done {
            return Ok(Visit::Stop);
        }
        let partition = key::text_of(partition).ok_or_else(bad_key)?;
        let row_key = key::text_of(row_key).ok_or_else(bad_key)?;
        let is_full = self.shown == self.query.top || self.page.body.len() >= PAGE_BYTES_MAX;
        if is_full || self.visited == ROWS_VISITED_MAX {
            self.page.next = Some(EntityKey { partition: partition.into_owned(), row: row_key.into_owned() });
            return Ok(Visit::Stop);
        }
        self.visited += 1;
        if let Step::SkipTo(next) = step {
            return Ok(Visit::SkipTo(self.key(&next)));
        }
        let row = Row::open(row)?;
        let key = KeyView { partition: &partition, row: &row_key };
        let filter = self.query.filter.as_ref().filter(|_| !self.plan.is_exact());
        if filter.map_or(Ok(true), |filter| filter.matches(&FilteredEntity { key, row: &row }))? {
            if self.shown > 0 {
                self.page.body.push(b',');
            }
            self.shown += 1;
            self.shape.among(&mut self.page.body, key, &row)?;
        }
        Ok(Visit::Next)
    }
}

fn bad_key() -> Unread {
    service::codec::corrupt("the key of an entity")
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    Ok(answer(call).await?.into())
}

/// The answer, for a query by itself or inside a transaction.
pub async fn answer(call: Call<'_>) -> Result<Answer, Failure> {
    let head = call.head;
    let reach = Reach::of(call.asker.caller);
    match Address::parse(&head.resource)? {
        Address::Entity(name, key) => one(call, &reach, name, key).await,
        Address::Entities(name) => page(call, reach, name).await,
        Address::Service | Address::Batch | Address::Tables | Address::Table(_) | Address::Beyond(_) => {
            Err(TableError::MethodNotAllowed.into())
        }
    }
}

async fn page(call: Call<'_>, reach: Reach, name: &str) -> Result<Answer, Failure> {
    let op = Arc::new(parse(call.head, name, reach)?);
    let EntitiesPage { body, next } = call.read(&op).await?;
    let answer = Answer::json(StatusCode::OK, op.view.metadata, Prefer::Unsaid, body);
    Ok(match next {
        None => answer,
        Some(key) => {
            answer.with(NEXT_PARTITION_KEY, token::write(&key.partition)).with(NEXT_ROW_KEY, token::write(&key.row))
        }
    })
}

impl ReadOperation for QueryEntity {
    /// The entity as JSON, and its timestamp.
    type Outcome = (Vec<u8>, Timestamp);
    type Refusal = TableError;

    fn apply(&self, rows: &dyn Rows, account: u64, _: Timestamp) -> Result<(Vec<u8>, Timestamp), Halt> {
        let generation = model::generation(rows, account, &self.view.table)?;
        let row = rows.get(&self.key.in_table(generation))?.ok_or(refuse(TableError::ResourceNotFound))?;
        let row = Row::open(&row)?;
        let mut body = Vec::with_capacity(512);
        self.view.shape().alone(&mut body, self.key.view(), &row)?;
        Ok((body, row.stamp))
    }
}

async fn one(call: Call<'_>, reach: &Reach, name: &str, key: EntityKey) -> Result<Answer, Failure> {
    let view = EntityView::parse(call.head, name)?;
    reach.check(&key)?;
    let op = Arc::new(QueryEntity { view, key });
    let (body, stamp) = call.read(&op).await?;
    Ok(Answer::json(StatusCode::OK, op.view.metadata, Prefer::Unsaid, body).with("ETag", etag::of(stamp)))
}

#[cfg(test)]
mod tests {
    use crate::TableError;
    use crate::testing::{Bench, header, refusal, text};
    use wire::percent::encode_value;

    /// Three partitions of five rows.
    async fn bench() -> Bench {
        let bench = Bench::with_table().await;
        for partition in ["a", "b", "😀"] {
            for n in 0..5 {
                bench.insert("tab", partition, &n.to_string(), &format!(r#","n":{n},"even":{}"#, n % 2 == 0)).await;
            }
        }
        bench
    }

    async fn keys(bench: &Bench, query: &str) -> Vec<String> {
        bench.rows(&format!("tab()?{query}")).await
    }

    fn filter(text: &str) -> String {
        format!("$filter={}", encode_value(text))
    }

    #[tokio::test]
    async fn everything_in_order_page_by_page() {
        let bench = bench().await;
        let mut seen = Vec::new();
        let mut next = String::new();
        for size in [4, 4, 1, 1_000] {
            let page = bench.call("GET", &format!("tab()?$top={size}{next}"), &[], b"").await.unwrap();
            let token = |name: &str| header(&page, name).map(|token| encode_value(token).into_owned());
            let (partition, row) = (token("x-ms-continuation-nextpartitionkey"), token("x-ms-continuation-nextrowkey"));
            next = partition.map_or(String::new(), |partition| {
                format!("&NextPartitionKey={partition}&NextRowKey={}", row.unwrap())
            });
            seen.extend(Bench::keys(&text(page).await));
        }
        assert_eq!(next, "", "the last page has no token");
        assert_eq!(seen, keys(&bench, "").await);
        assert_eq!(seen.len(), 15);
        assert_eq!((seen[0].as_str(), seen[14].as_str()), ("a/0", "😀/4"));
    }

    #[tokio::test]
    async fn filters() {
        let bench = bench().await;
        for (text, expected) in [
            ("PartitionKey eq 'b' and RowKey eq '3'", &["b/3"][..]),
            ("PartitionKey eq 'b' and RowKey ge '3'", &["b/3", "b/4"]),
            ("RowKey eq '2'", &["a/2", "b/2", "😀/2"]),
            ("(PartitionKey eq 'a' and RowKey eq '1') or (PartitionKey eq '😀' and RowKey eq '4')", &["a/1", "😀/4"]),
            ("n eq 2 and PartitionKey lt 'b'", &["a/2"]),
            ("even and n gt 3", &["a/4", "b/4", "😀/4"]),
            ("not (n lt 4) and PartitionKey ne 'b'", &["a/4", "😀/4"]),
            ("PartitionKey eq 'nobody'", &[]),
            ("Timestamp lt datetime'2000-01-01T00:00:00Z'", &[]),
            ("Timestamp lt datetime'0001-01-01T00:00:00Z'", &[]),
            ("false", &[]),
            ("False", &[]),
            ("false or PartitionKey eq 'b' and RowKey eq '3'", &["b/3"]),
            ("not (true and n ne 2) and PartitionKey eq 'a'", &["a/2"]),
        ] {
            assert_eq!(keys(&bench, &filter(text)).await, expected, "{text}");
        }
        for text in
            ["Timestamp gt datetime'2000-01-01T00:00:00Z'", "Timestamp gt datetime'0001-01-01'", "true", "not FALSE"]
        {
            assert_eq!(keys(&bench, &filter(text)).await.len(), 15, "{text}");
        }
    }

    /// No continuation token either: a client that asks for pages until there is none would never end.
    #[tokio::test]
    async fn a_page_of_none_is_empty() {
        let bench = bench().await;
        for url in ["tab()?$top=0", "Tables?$top=0"] {
            let page = bench.call("GET", url, &[], b"").await.unwrap();
            for token in ["nextpartitionkey", "nextrowkey", "nexttablename"] {
                assert_eq!(header(&page, &format!("x-ms-continuation-{token}")), None, "{url}");
            }
            assert!(text(page).await.ends_with("\"value\":[]}"), "{url}");
        }
    }

    #[tokio::test]
    async fn one_entity() {
        let bench = bench().await;
        let found = bench.call("GET", "tab(PartitionKey='b',RowKey='3')", &[], b"").await.unwrap();
        assert_eq!(header(&found, "dataserviceversion"), Some("3.0;"));
        let etag = header(&found, "etag").unwrap().to_owned();
        let shown: serde_json::Value = serde_json::from_str(&text(found).await).unwrap();
        assert_eq!((shown["n"].as_i64(), shown["odata.etag"].as_str()), (Some(3), Some(etag.as_str())));
        let selected = bench.call(
            "GET",
            "tab(PartitionKey='b',RowKey='3')?$select=n,x",
            &[("accept", "application/json;odata=nometadata")],
            b"",
        );
        assert_eq!(text(selected.await.unwrap()).await, r#"{"n":3,"x":null}"#);
        let missing = bench.call("GET", "tab(PartitionKey='b',RowKey='9')", &[], b"").await;
        assert_eq!(refusal(missing), TableError::ResourceNotFound);
        let no_table = bench.call("GET", "nothing(PartitionKey='b',RowKey='9')", &[], b"").await;
        assert_eq!(refusal(no_table), TableError::TableNotFound);
        let filtered = bench.call("GET", "nothing()", &[], b"").await;
        assert_eq!(refusal(filtered), TableError::TableNotFound);
    }

    #[tokio::test]
    async fn bad_options_are_refused() {
        let bench = bench().await;
        for query in ["$top=1001", "$top=-1", "$select=a%20b", "NextPartitionKey=x", "$filter=a%20eq"] {
            let refused = refusal(bench.call("GET", &format!("tab()?{query}"), &[], b"").await);
            assert!(matches!(refused, TableError::InvalidInput(_)), "{query}");
        }
        for query in ["$orderby=a", "$skip=1", "$filter=startswith(a,'b')"] {
            let refused = refusal(bench.call("GET", &format!("tab()?{query}"), &[], b"").await);
            assert!(matches!(refused, TableError::NotImplemented(_)), "{query}");
        }
    }

    #[tokio::test]
    async fn a_large_page_ends_early() {
        let bench = Bench::with_table().await;
        let large = "x".repeat(32 * 1024);
        for n in 0..200 {
            bench.insert("tab", "p", &format!("{n:03}"), &format!(r#","v":"{large}""#)).await;
        }
        let page = bench.call("GET", "tab()", &[], b"").await.unwrap();
        assert!(header(&page, "x-ms-continuation-nextrowkey").is_some());
        let count = Bench::keys(&text(page).await).len();
        assert!((100..200).contains(&count), "{count}");
    }
}
