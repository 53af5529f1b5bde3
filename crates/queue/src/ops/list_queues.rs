//! List Queues: a page of an account's queues, by name.

use std::sync::Arc;

use concurrency::Timestamp;
use engine::{Key, KeyReader, Rows, Unread, Visit};
use service::space;
use service::{Pairs, ReadOperation, codec, listing};
use wire::http::{Head, Reply, StatusCode};
use wire::xml::XmlWriter;
use wire::{base64, metadata};

use super::Call;
use crate::error::QueueError;
use crate::model::{Halt, Queue};
use crate::{Failure, reply};

/// The most queues in a page, and how many it has if the request does not say.
const RESULTS_MAX: usize = 5_000;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListQueues {
    /// Only queues whose names begin like this.
    pub prefix: String,
    /// The page begins after this name.
    pub after: Option<String>,
    /// At most this many queues.
    pub max: usize,
}

fn parse(head: &Head) -> Result<ListQueues, QueueError> {
    Ok(ListQueues {
        prefix: head.query.get("prefix").unwrap_or_default().to_owned(),
        after: after(head)?,
        max: listing::max_results(head, RESULTS_MAX)?,
    })
}

/// The name with which the last page ended. It is a name, not a position, so that no queue is shown twice or left out
/// when others are created or deleted.
fn after(head: &Head) -> Result<Option<String>, QueueError> {
    let Some(text) = head.query.get("marker") else { return Ok(None) };
    let name = base64::decode_url(text).and_then(|bytes| String::from_utf8(bytes).ok());
    name.map(Some).ok_or(QueueError::InvalidMarker)
}

/// A page of queues, in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueuesPage {
    pub queues: Vec<ListedQueue>,
    /// Whether no queue follows.
    pub is_last: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedQueue {
    pub name: String,
    pub metadata: Pairs,
}

impl ListedQueue {
    fn read(key: &[u8], row: &[u8]) -> Result<ListedQueue, Unread> {
        Ok(ListedQueue { name: name_of(key)?, metadata: codec::decode::<Queue>(row)?.metadata })
    }
}

impl ReadOperation for ListQueues {
    type Outcome = QueuesPage;
    type Refusal = QueueError;

    fn apply(&self, rows: &dyn Rows, account: u64, _: Timestamp) -> Result<QueuesPage, Halt> {
        let all = Key::new(space::QUEUE).number(account);
        let within = all.clone().text_prefix(&self.prefix);
        let from = match &self.after {
            None => within.clone(),
            Some(name) => within.clone().max(all.text(name).next()),
        };
        let mut page = QueuesPage { queues: Vec::new(), is_last: true };
        let mut failed = None;
        rows.scan(&from, &within.after_all(), self.max + 1, &mut |key, row| {
            if page.queues.len() == self.max {
                page.is_last = false;
                return Visit::Stop;
            }
            match ListedQueue::read(key, row) {
                Ok(queue) => {
                    page.queues.push(queue);
                    Visit::Next
                }
                Err(error) => {
                    failed = Some(error);
                    Visit::Stop
                }
            }
        })?;
        failed.map_or(Ok(page), |error| Err(error.into()))
    }
}

/// The page as the answer shows it.
fn document(head: &Head, page: &QueuesPage, shows_metadata: bool) -> XmlWriter {
    let mut xml = XmlWriter::document();
    // Before version 2013-08-15 the answer named the account, and each queue had its URL.
    let is_old = !head.since("2013-08-15");
    let endpoint = format!("{}/", head.endpoint);
    let attribute = if is_old { "AccountName" } else { "ServiceEndpoint" };
    xml.open_with("EnumerationResults", &[(attribute, &endpoint)]);
    for (element, parameter) in [("Prefix", "prefix"), ("Marker", "marker"), ("MaxResults", "maxresults")] {
        xml.leaf_if(element, head.query.get(parameter));
    }
    xml.open("Queues");
    for ListedQueue { name, metadata } in &page.queues {
        xml.open("Queue").leaf("Name", name);
        xml.leaf_if("Url", is_old.then(|| format!("{endpoint}{name}")));
        if shows_metadata {
            metadata::element(&mut xml, metadata);
        }
        xml.close("Queue");
    }
    xml.close("Queues");
    let next = page.queues.last().filter(|_| !page.is_last).map(|queue| base64::encode_url(queue.name.as_bytes()));
    xml.leaf("NextMarker", next.unwrap_or_default());
    xml.close("EnumerationResults");
    xml
}

fn name_of(key: &[u8]) -> Result<String, Unread> {
    let mut reader = KeyReader::new(key);
    reader.number().and_then(|_| reader.text()).ok_or_else(|| codec::corrupt("the key of a queue"))
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let include = listing::include(call.head, &["metadata"]).map_err(QueueError::from)?;
    let page = call.read(&Arc::new(parse(call.head)?)).await?;
    Ok(reply::xml(StatusCode::OK, document(call.head, &page, !include.is_empty())))
}

#[cfg(test)]
mod tests {
    use crate::QueueError;
    use crate::testing::{Bench, between, refusal, request, text};
    use service::RequestError;
    use wire::http::FixedBody;

    async fn bench() -> Bench {
        let bench = Bench::new();
        for name in ["beta", "alpha", "gamma-1", "gamma-2"] {
            bench.call("PUT", name, &[("x-ms-meta-n", name)], b"").await.unwrap();
        }
        bench
    }

    #[tokio::test]
    async fn by_name_in_pages() {
        let bench = bench().await;
        let all = bench.text("GET", "?comp=list").await;
        assert_eq!(between(&all, "<Name>", "</Name>"), ["alpha", "beta", "gamma-1", "gamma-2"]);
        assert!(!all.contains("<Metadata>") && !all.contains("<Prefix") && all.contains("<NextMarker />"), "{all}");
        let some = bench.text("GET", "?comp=list&prefix=gamma&include=metadata").await;
        assert_eq!(between(&some, "<n>", "</n>"), ["gamma-1", "gamma-2"]);
        assert!(some.contains("<Prefix>gamma</Prefix>"));

        for (size, pages) in [(1, 4), (2, 2), (3, 2), (4, 1)] {
            let mut seen = Vec::new();
            let mut marker = String::new();
            let mut count = 0;
            loop {
                let page = bench.text("GET", &format!("?comp=list&maxresults={size}&marker={marker}")).await;
                seen.extend(between(&page, "<Name>", "</Name>").iter().map(|name| name.to_string()));
                marker = between(&page, "<NextMarker>", "</NextMarker>").first().map_or("", |m| *m).to_owned();
                count += 1;
                if marker.is_empty() {
                    break;
                }
            }
            assert_eq!((seen.len(), count), (4, pages), "{size}");
            assert!(seen.is_sorted());
        }
    }

    #[tokio::test]
    async fn an_old_version_is_shown_addresses() {
        let bench = bench().await;
        let mut head = request("GET", "?comp=list&prefix=alpha", &[]);
        head.version = "2012-02-12".into();
        let told = text(bench.send(head, &mut FixedBody::new("")).await.unwrap()).await;
        assert!(told.contains("AccountName=\"http://127.0.0.1:10001/acct/\""), "{told}");
        assert!(told.contains("<Url>http://127.0.0.1:10001/acct/alpha</Url>"), "{told}");
    }

    #[tokio::test]
    async fn bad_parameters() {
        let bench = bench().await;
        let ask = async |query: &str| refusal(bench.call("GET", &format!("?comp=list&{query}"), &[], b"").await);
        assert_eq!(ask("marker=!!").await, QueueError::InvalidMarker);
        assert_eq!(ask("include=deleted").await, QueueError::query("include", "deleted"));
        let (name, value) = ("maxresults", "0".to_owned());
        let out_of_range = RequestError::OutOfRangeQueryParameterValue { name, value, least: 1, most: 5_000 };
        assert_eq!(ask("maxresults=0").await, out_of_range.into());
    }
}
