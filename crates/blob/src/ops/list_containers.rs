//! List Containers: a page of an account's containers, by name.

use std::collections::HashMap;
use std::sync::Arc;

use concurrency::Timestamp;
use engine::{Key, KeyReader, Rows, Unread, Visit};
use service::{ReadOperation, codec, space};
use wire::dates;
use wire::http::{Head, Reply, StatusCode};
use wire::names::ContainerName;
use wire::xml::XmlWriter;

use super::Call;
use super::get_container_properties::default_scope;
use super::restore_container::version_text;
use crate::error::BlobError;
use crate::listing::{self, After, ROWS_VISITED_MAX};
use crate::model::{Container, DeletedContainer, Deletion, Halt};
use crate::rules::immutability::Standing;
use crate::{Failure, reply};

/// Containers of the service itself, which are listed only with `include=system`.
const SYSTEM: [&str; 2] = [ContainerName::LOGS, ContainerName::CHANGE_FEED];

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListContainers {
    pub prefix: String,
    /// Where an earlier page ended.
    pub after: Option<After>,
    /// The most entries of a page.
    pub max: usize,
    pub metadata: bool,
    /// Also those that are soft-deleted.
    pub deleted: bool,
    /// Also those of the service itself.
    pub system: bool,
}

fn parse(head: &Head) -> Result<ListContainers, BlobError> {
    let include = listing::include(head, &["metadata", "deleted", "system"])?;
    let has = |word: &str| include.iter().any(|included| included == word);
    Ok(ListContainers {
        prefix: head.query.get("prefix").unwrap_or_default().to_owned(),
        after: After::parse(head)?,
        max: listing::max_results(head)?,
        metadata: has("metadata"),
        deleted: has("deleted"),
        system: has("system"),
    })
}

/// A page of containers.
#[derive(Debug)]
pub struct ContainersPage {
    pub entries: Vec<ListedContainer>,
    /// What is protected in them, by generation, as far as anything is.
    pub standing: HashMap<u64, Standing>,
    pub next: Option<After>,
    /// When the containers were as the page says.
    pub now: Timestamp,
}

#[derive(Clone, Debug)]
pub struct ListedContainer {
    pub name: String,
    pub container: Container,
    /// Of one that is deleted: its version, and when that was.
    pub deleted: Option<(u64, Deletion)>,
}

impl ListedContainer {
    /// By name; of one name the deleted ones first, oldest first.
    fn place(&self) -> (String, u64) {
        (self.name.clone(), self.deleted.map_or(LIVE, |(version, _)| version))
    }
}

/// Comes after all versions.
const LIVE: u64 = u64::MAX;

fn after((name, version): (String, u64)) -> After {
    if version == LIVE { After::Name(name) } else { After::Snapshot(name, Timestamp(version)) }
}

/// Some of the live or of the deleted containers, in order.
#[derive(Default)]
struct Run {
    entries: Vec<ListedContainer>,
    /// The walk ended before the rows did, and this is the last place it saw.
    stopped: Option<(String, u64)>,
}

impl ListContainers {
    fn page(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<ContainersPage, Unread> {
        let live = self.live(rows, account)?;
        let deleted = if self.deleted { self.deleted(rows, account, now)? } else { Run::default() };
        // Beyond the place where one of them stopped, not everything is known.
        let horizon = [&live.stopped, &deleted.stopped].into_iter().flatten().min().cloned();
        let mut entries = live.entries;
        if !deleted.entries.is_empty() {
            entries.extend(deleted.entries);
            entries.sort_by_cached_key(ListedContainer::place);
        }
        if let Some(horizon) = &horizon {
            entries.retain(|entry| entry.place() <= *horizon);
        }
        let mut page = ContainersPage { next: horizon.map(after), entries, standing: HashMap::new(), now };
        if page.entries.len() > self.max {
            page.entries.truncate(self.max);
            page.next = page.entries.last().map(|entry| after(entry.place()));
        }
        Ok(page)
    }

    fn live(&self, rows: &dyn Rows, account: u64) -> Result<Run, Unread> {
        let all = Key::new(space::CONTAINER).number(account);
        let beyond = match &self.after {
            None => all.clone(),
            Some(After::Name(name)) => all.clone().text(name).next(),
            // Of this name the live one is still to come.
            Some(After::Snapshot(name, _) | After::Version(name, _)) => all.clone().text(name),
            Some(After::Prefix(prefix)) => all.clone().text_prefix(prefix).after_all(),
        };
        self.walk(rows, (all, beyond), |name, _, row| {
            let is_shown = self.system || !SYSTEM.contains(&name);
            let entry = ListedContainer { name: name.to_owned(), container: codec::decode(row)?, deleted: None };
            Ok((LIVE, is_shown.then_some(entry)))
        })
    }

    fn deleted(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<Run, Unread> {
        let all = Key::new(space::CONTAINER_DELETED).number(account);
        let beyond = match &self.after {
            None => all.clone(),
            Some(After::Name(name)) => all.clone().text(name).after_all(),
            Some(After::Snapshot(name, at) | After::Version(name, at)) => all.clone().text(name).number(at.0).next(),
            Some(After::Prefix(prefix)) => all.clone().text_prefix(prefix).after_all(),
        };
        self.walk(rows, (all, beyond), |name, version, row| {
            let version = version.ok_or_else(|| codec::corrupt("the key of a deleted container"))?;
            let DeletedContainer { container, mark } = codec::decode(row)?;
            let entry = ListedContainer { name: name.to_owned(), container, deleted: Some((version, mark)) };
            Ok((version, mark.is_kept(now).then_some(entry)))
        })
    }

    /// Walks the rows from `beyond` on until there is more than a page of them or too many have been seen. `read` gives
    /// the place of a row among those of its name, and the entry if it is shown.
    fn walk(
        &self,
        rows: &dyn Rows,
        (all, beyond): (Key, Key),
        read: impl Fn(&str, Option<u64>, &[u8]) -> Result<(u64, Option<ListedContainer>), Unread>,
    ) -> Result<Run, Unread> {
        let within = all.text_prefix(&self.prefix);
        let mut run = Run::default();
        let mut failed = None;
        let mut last = None;
        let mut visited = 0;
        rows.scan(&within.clone().max(beyond), &within.after_all(), self.max + 1, &mut |key, row| {
            // One more than fits, to know whether there is more.
            if run.entries.len() > self.max || visited == ROWS_VISITED_MAX {
                run.stopped = last.take();
                return Visit::Stop;
            }
            visited += 1;
            let read = || {
                let mut reader = KeyReader::new(key);
                let name = reader.number().and_then(|_| reader.text());
                let name = name.ok_or_else(|| codec::corrupt("the key of a container"))?;
                let (place, entry) = read(&name, reader.number(), row)?;
                Ok(((name, place), entry))
            };
            match read() {
                Ok((place, entry)) => {
                    last = Some(place);
                    run.entries.extend(entry);
                    Visit::Next
                }
                Err(error) => {
                    failed = Some(error);
                    Visit::Stop
                }
            }
        })?;
        failed.map_or(Ok(run), Err)
    }
}

impl ContainersPage {
    /// Most stores protect nothing at all, and then there is one look for all containers.
    fn with_standing(mut self, rows: &dyn Rows, now: Timestamp) -> Result<ContainersPage, Unread> {
        if Standing::is_nowhere(rows)? {
            return Ok(self);
        }
        for ListedContainer { container, .. } in &self.entries {
            self.standing.insert(container.generation, Standing::of(rows, container.generation, now)?);
        }
        Ok(self)
    }
}

impl ReadOperation for ListContainers {
    type Outcome = ContainersPage;
    type Refusal = BlobError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<ContainersPage, Halt> {
        Ok(self.page(rows, account, now)?.with_standing(rows, now)?)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = Arc::new(parse(call.head)?);
    let page = call.read(&op).await?;
    Ok(reply::xml(StatusCode::OK, op.document(call.head, &page, page.now)))
}

impl ListContainers {
    fn document(&self, head: &Head, page: &ContainersPage, now: Timestamp) -> XmlWriter {
        let mut xml = XmlWriter::document();
        xml.reserve(page.entries.len() * 640);
        xml.open_with("EnumerationResults", &[("ServiceEndpoint", &format!("{}/", head.endpoint))]);
        for (element, parameter) in [("Prefix", "prefix"), ("Marker", "marker"), ("MaxResults", "maxresults")] {
            xml.leaf_if(element, head.query.get(parameter));
        }
        xml.open("Containers");
        for entry in &page.entries {
            let standing = page.standing.get(&entry.container.generation).copied().unwrap_or_default();
            self.container(&mut xml, entry, standing, now);
        }
        xml.close("Containers");
        xml.leaf("NextMarker", page.next.as_ref().map(After::to_marker).unwrap_or_default());
        xml.close("EnumerationResults");
        xml
    }

    fn container(&self, xml: &mut XmlWriter, entry: &ListedContainer, standing: Standing, now: Timestamp) {
        let ListedContainer { name, container, deleted } = entry;
        xml.open("Container").leaf("Name", name);
        if let Some((version, _)) = deleted {
            xml.flag("Deleted", true).leaf("Version", version_text(*version));
        }
        xml.open("Properties");
        xml.leaf("Last-Modified", dates::http_date(container.stamp).as_str());
        xml.leaf("Etag", container.version().etag.quoted());
        xml.leaf("LeaseStatus", reply::lease_status(&container.lease, now));
        xml.leaf("LeaseState", reply::lease_state(&container.lease, now));
        xml.leaf_if("LeaseDuration", reply::lease_duration(&container.lease, now));
        xml.leaf_if("PublicAccess", reply::public_access(container.public));
        xml.flag("HasImmutabilityPolicy", standing.policy).flag("HasLegalHold", standing.legal_hold);
        xml.flag("ImmutableStorageWithVersioningEnabled", standing.is_any());
        xml.leaf("DefaultEncryptionScope", default_scope(container));
        xml.flag("DenyEncryptionScopeOverride", container.denies_other_scopes);
        if let Some((_, mark)) = deleted {
            mark.write(xml, now);
        }
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
    async fn deleted_ones_come_before_their_successors_in_pages_of_any_size() {
        let mut bench = Bench::new().await;
        bench.settings.container_soft_delete_days = Some(7);
        for name in ["aaa", "bbb", "bbb", "ccc", "ddd"] {
            bench.call("PUT", &format!("{name}?restype=container"), &[("x-ms-meta-k", "v")], b"").await.unwrap();
            if name != "aaa" && name != "ccc" {
                bench.call("DELETE", &format!("{name}?restype=container"), &[], b"").await.unwrap();
            }
        }
        bench.call("PUT", "bbb?restype=container", &[], b"").await.unwrap();
        let all = ["aaa", "bbb deleted", "bbb deleted", "bbb", "ccc", "ddd deleted"];
        for max in 1..=7 {
            let (mut seen, mut marker) = (Vec::new(), String::new());
            loop {
                let encoded = wire::percent::encode_value(&marker).into_owned();
                let url = format!("?comp=list&include=deleted,metadata&maxresults={max}&marker={encoded}");
                let page = bench.text("GET", &url).await;
                for container in between(&page, "<Container>", "</Container>") {
                    let name = between(container, "<Name>", "</Name>")[0];
                    let deleted = container.contains("<Deleted>true</Deleted><Version>");
                    let days = container.contains("</DeletedTime><RemainingRetentionDays>7</RemainingRetentionDays>");
                    assert_eq!(deleted, days, "{container}");
                    seen.push(format!("{name}{}", if deleted { " deleted" } else { "" }));
                }
                marker = between(&page, "<NextMarker>", "</NextMarker>").first().map_or("", |m| *m).to_owned();
                if marker.is_empty() {
                    break;
                }
            }
            assert_eq!(seen, all, "{max}");
        }
        let plain = bench.text("GET", "?comp=list").await;
        assert_eq!(between(&plain, "<Name>", "</Name>"), ["aaa", "bbb", "ccc"]);
    }

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
