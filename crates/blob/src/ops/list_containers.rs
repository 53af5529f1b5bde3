//! List Containers: a page of an account's containers, by name.

use concurrency::Timestamp;
use engine::{Key, KeyReader, Rows, Unread, Visit, read, space};
use wire::dates;
use wire::http::{Head, Reply, StatusCode};
use wire::names::ContainerName;
use wire::xml::XmlWriter;

use super::Call;
use super::get_container_properties::ACCOUNT_SCOPE;
use crate::error::BlobError;
use crate::listing::{self, After, ROWS_VISITED_MAX};
use crate::model::Container;
use crate::{Failure, codec, reply};

/// Shown only to those who ask for the service's own.
const SYSTEM: [&str; 2] = [ContainerName::LOGS, ContainerName::CHANGE_FEED];

struct ListContainers {
    prefix: String,
    after: Option<After>,
    max: usize,
    metadata: bool,
    system: bool,
}

fn parse(head: &Head) -> Result<ListContainers, BlobError> {
    // Nothing is deleted softly yet, so there is nothing that `deleted` could show.
    let include = listing::include(head, &["metadata", "deleted", "system"])?;
    let has = |word: &str| include.iter().any(|included| included == word);
    Ok(ListContainers {
        prefix: head.query.get("prefix").unwrap_or_default().to_owned(),
        after: After::parse(head)?,
        max: listing::max_results(head)?,
        metadata: has("metadata"),
        system: has("system"),
    })
}

#[derive(Default)]
struct Page {
    containers: Vec<(String, Container)>,
    next: Option<After>,
}

impl ListContainers {
    fn page(&self, rows: &dyn Rows, account: u64) -> Result<Page, Unread> {
        let all = Key::new(space::CONTAINER).number(account);
        let within = all.clone().text_prefix(&self.prefix);
        let from = match &self.after {
            None => within.clone(),
            Some(After::Name(name) | After::Snapshot(name, _)) => within.clone().max(all.text(name).next()),
            Some(After::Prefix(prefix)) => within.clone().max(all.text_prefix(prefix).after_all()),
        };
        let mut page = Page::default();
        let mut failed = None;
        let mut last = None;
        let mut visited = 0;
        rows.scan(&from, &within.after_all(), self.max + 1, &mut |key, row| {
            if page.containers.len() == self.max || visited == ROWS_VISITED_MAX {
                page.next = last.take().map(After::Name);
                return Visit::Stop;
            }
            visited += 1;
            let read = || Ok((name_of(key)?, codec::decode::<Container>(row)?));
            match read() {
                Ok((name, container)) => {
                    last = Some(name.clone());
                    if self.system || !SYSTEM.contains(&name.as_str()) {
                        page.containers.push((name, container));
                    }
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
}

fn name_of(key: &[u8]) -> Result<String, Unread> {
    let mut reader = KeyReader::new(key);
    reader.number().and_then(|_| reader.text()).ok_or_else(|| codec::corrupt("the key of a container"))
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = parse(call.head)?;
    let (page, now) = read::<_, BlobError, _>(call.engine, |rows, now| Ok((op.page(rows, call.account)?, now))).await?;
    Ok(reply::xml(StatusCode::OK, op.document(call.head, &page, now)))
}

impl ListContainers {
    fn document(&self, head: &Head, page: &Page, now: Timestamp) -> XmlWriter {
        let mut xml = XmlWriter::document();
        xml.reserve(page.containers.len() * 640);
        xml.open_with("EnumerationResults", &[("ServiceEndpoint", &format!("{}/", head.endpoint))]);
        for (element, parameter) in [("Prefix", "prefix"), ("Marker", "marker"), ("MaxResults", "maxresults")] {
            xml.leaf_if(element, head.query.get(parameter));
        }
        xml.open("Containers");
        for (name, container) in &page.containers {
            self.container(&mut xml, name, container, now);
        }
        xml.close("Containers");
        xml.leaf("NextMarker", page.next.as_ref().map(After::to_marker).unwrap_or_default());
        xml.close("EnumerationResults");
        xml
    }

    fn container(&self, xml: &mut XmlWriter, name: &str, container: &Container, now: Timestamp) {
        xml.open("Container").leaf("Name", name).open("Properties");
        xml.leaf("Last-Modified", dates::http_date(container.stamp).as_str());
        xml.leaf("Etag", container.version().etag.quoted());
        xml.leaf("LeaseStatus", reply::lease_status(&container.lease, now));
        xml.leaf("LeaseState", reply::lease_state(&container.lease, now));
        xml.leaf_if("LeaseDuration", reply::lease_duration(&container.lease, now));
        xml.leaf_if("PublicAccess", reply::public_access(container.public));
        xml.flag("HasImmutabilityPolicy", false).flag("HasLegalHold", false);
        xml.flag("ImmutableStorageWithVersioningEnabled", false);
        xml.leaf("DefaultEncryptionScope", ACCOUNT_SCOPE).flag("DenyEncryptionScopeOverride", false);
        xml.close("Properties");
        if self.metadata {
            reply::metadata_element(xml, &container.metadata);
        }
        xml.close("Container");
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, between};

    #[tokio::test]
    async fn by_name_in_pages() {
        let bench = Bench::new().await;
        for name in ["beta", "alpha", "gamma-1", "gamma-2", "$logs"] {
            let url = format!("{name}?restype=container");
            bench.call("PUT", &url, &[("x-ms-meta-n", name)], b"").await.unwrap();
        }
        let all = bench.text("GET", "?comp=list").await;
        assert_eq!(between(&all, "<Name>", "</Name>"), ["alpha", "beta", "gamma-1", "gamma-2"]);
        assert!(!all.contains("<Metadata>") && all.contains("<NextMarker />"));
        let system = bench.text("GET", "?comp=list&include=system,metadata&maxresults=1").await;
        assert_eq!(between(&system, "<Name>", "</Name>"), ["$logs"]);
        assert_eq!(between(&system, "<n>", "</n>"), ["$logs"]);
        let some = bench.text("GET", "?comp=list&prefix=gamma").await;
        assert_eq!(between(&some, "<Name>", "</Name>"), ["gamma-1", "gamma-2"]);

        let mut seen = Vec::new();
        let mut marker = String::new();
        loop {
            let page = bench.text("GET", &format!("?comp=list&maxresults=2&marker={marker}")).await;
            seen.extend(between(&page, "<Name>", "</Name>").iter().map(|name| name.to_string()));
            marker = between(&page, "<NextMarker>", "</NextMarker>").first().map_or("", |m| *m).to_owned();
            if marker.is_empty() {
                break;
            }
            assert!(seen.len() == 2);
        }
        assert_eq!(seen, ["alpha", "beta", "gamma-1", "gamma-2"]);
    }
}
