//! What the tests share: requests from text, and a service on the memory engine.

use std::sync::Arc;

use auth::Caller;
use bytes::Bytes;
use engine::memory::MemoryEngine;
use service::{Asker, HttpService};
use wire::http::{FixedBody, Head, Reply};

use crate::{Failure, Op, TableService};

pub use service::testing::{header, refusal, text};

const ACCOUNT: u64 = 1;

/// A request, with the URL written below the account.
pub fn request(method: &str, url: &str, headers: &[(&str, &str)]) -> Head {
    let head = service::testing::request(method, url, headers);
    Head { endpoint: "http://127.0.0.1:10002/acct".into(), version: "2019-02-02".into(), ..head }
}

/// A service on an engine of its own.
pub struct Bench {
    pub engine: Arc<MemoryEngine>,
    pub service: TableService,
}

impl Bench {
    pub fn new() -> Bench {
        let engine = Arc::new(MemoryEngine::default());
        Bench { service: TableService::new(engine.clone()), engine }
    }

    /// A service that has the table `tab`.
    pub async fn with_table() -> Bench {
        let bench = Bench::new();
        bench.create("tab").await;
        bench
    }

    pub async fn create(&self, name: &str) {
        let body = format!("{{\"TableName\":\"{name}\"}}");
        self.call("POST", "Tables", &[], body.as_bytes()).await.unwrap();
    }

    /// Inserts an entity with its keys and `more` JSON members, and returns its ETag.
    pub async fn insert(&self, table: &str, partition: &str, row: &str, more: &str) -> String {
        let body = format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\"{more}}}");
        let made = self.call("POST", table, &[], body.as_bytes()).await.unwrap();
        header(&made, "etag").unwrap().to_owned()
    }

    pub async fn call(&self, method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Reply, Failure> {
        self.send(request(method, url, headers), body).await
    }

    pub async fn send(&self, head: Head, body: &[u8]) -> Result<Reply, Failure> {
        self.send_as(&Caller::Owner, head, body).await
    }

    pub async fn send_as(&self, caller: &Caller, head: Head, body: &[u8]) -> Result<Reply, Failure> {
        let op = Op::named_by(&head)?;
        let asker = Asker { caller, ..Asker::OWNER };
        self.service.run_for(asker, op, &head, ACCOUNT, &mut FixedBody::new(Bytes::copy_from_slice(body))).await
    }

    /// The keys of the entities that a query finds: `partition/row`.
    pub async fn rows(&self, url: &str) -> Vec<String> {
        Bench::keys(&text(self.call("GET", url, &[], b"").await.unwrap()).await)
    }

    /// The keys of the entities of a page.
    pub fn keys(page: &str) -> Vec<String> {
        let page: serde_json::Value = serde_json::from_str(page).unwrap();
        let key = |entity: &serde_json::Value| {
            format!("{}/{}", entity["PartitionKey"].as_str().unwrap(), entity["RowKey"].as_str().unwrap())
        };
        page["value"].as_array().unwrap().iter().map(key).collect()
    }

    /// Does everything that is due now, and what that makes due.
    pub async fn sweep(&self) {
        service::testing::sweep(&*self.engine, &[&self.service]).await;
    }

    /// How many rows there are.
    pub fn stored(&self) -> u64 {
        service::testing::figure(&*self.engine, "rows")
    }
}
