//! List Queues: a page of an account's queues, by name.

use engine::{Key, KeyReader, Rows, Unread, Visit, read, space};
use service::{codec, listing};
use wire::http::{Head, Reply, StatusCode};
use wire::xml::XmlWriter;
use wire::{base64, metadata};

use super::Call;
use crate::error::QueueError;
use crate::model::Queue;
use crate::{Failure, reply};

/// The default and the cap of a page.
const RESULTS_MAX: usize = 5_000;

struct ListQueues {
    prefix: String,
    /// The page begins after this name.
    after: Option<String>,
    max: usize,
    metadata: bool,
}

fn parse(head: &Head) -> Result<ListQueues, QueueError> {
    let include = listing::include(head, &["metadata"])?;
    Ok(ListQueues {
        prefix: head.query.get("prefix").unwrap_or_default().to_owned(),
        after: after(head)?,
        max: listing::max_results(head, RESULTS_MAX)?,
        metadata: !include.is_empty(),
    })
}

/// Where the last page ended. A name, not a position, so that nothing is shown twice or left out when others write.
fn after(head: &Head) -> Result<Option<String>, QueueError> {
    let Some(text) = head.query.get("marker") else { return Ok(None) };
    let name = base64::decode_url(text).and_then(|bytes| String::from_utf8(bytes).ok());
    name.map(Some).ok_or(QueueError::InvalidMarker)
}

#[derive(Default)]
struct Page {
    queues: Vec<(String, Queue)>,
    is_last: bool,
}

impl ListQueues {
    fn page(&self, rows: &dyn Rows, account: u64) -> Result<Page, Unread> {
        let all = Key::new(space::QUEUE).number(account);
        let within = all.clone().text_prefix(&self.prefix);
        let from = match &self.after {
            None => within.clone(),
            Some(name) => within.clone().max(all.text(name).next()),
        };
        let mut page = Page { is_last: true, ..Page::default() };
        let mut failed = None;
        rows.scan(&from, &within.after_all(), self.max + 1, &mut |key, row| {
            if page.queues.len() == self.max {
                page.is_last = false;
                return Visit::Stop;
            }
            let read = || Ok((name_of(key)?, codec::decode::<Queue>(row)?));
            match read() {
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
        failed.map_or(Ok(page), Err)
    }

    fn document(&self, head: &Head, page: &Page) -> XmlWriter {
        let mut xml = XmlWriter::document();
        // Until version 2013-08-15 the account was named, and each queue had its address.
        let is_old = !head.since("2013-08-15");
        let endpoint = format!("{}/", head.endpoint);
        let attribute = if is_old { "AccountName" } else { "ServiceEndpoint" };
        xml.open_with("EnumerationResults", &[(attribute, &endpoint)]);
        for (element, parameter) in [("Prefix", "prefix"), ("Marker", "marker"), ("MaxResults", "maxresults")] {
            xml.leaf_if(element, head.query.get(parameter));
        }
        xml.open("Queues");
        for (name, queue) in &page.queues {
            xml.open("Queue").leaf("Name", name);
            xml.leaf_if("Url", is_old.then(|| format!("{endpoint}{name}")));
            if self.metadata {
                metadata::element(&mut xml, &queue.metadata);
            }
            xml.close("Queue");
        }
        xml.close("Queues");
        let next = page.queues.last().filter(|_| !page.is_last).map(|(name, _)| base64::encode_url(name.as_bytes()));
        xml.leaf("NextMarker", next.unwrap_or_default());
        xml.close("EnumerationResults");
        xml
    }
}

fn name_of(key: &[u8]) -> Result<String, Unread> {
    let mut reader = KeyReader::new(key);
    reader.number().and_then(|_| reader.text()).ok_or_else(|| codec::corrupt("the key of a queue"))
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = parse(call.head)?;
    let page = read::<_, QueueError, _>(call.engine, |rows, _| Ok(op.page(rows, call.account)?)).await?;
    Ok(reply::xml(StatusCode::OK, op.document(call.head, &page)))
}

#[cfg(test)]
mod tests {
    use crate::QueueError;
    use crate::testing::{Bench, between, bytes, refusal, request};
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
        let told = String::from_utf8(bytes(bench.send(head, &mut FixedBody::new("")).await.unwrap())).unwrap();
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
