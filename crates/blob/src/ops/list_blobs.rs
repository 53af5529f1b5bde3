//! List Blobs: a page of a container's blobs by name, flat or folded at a delimiter.
//!
//! The page is read from one state of the store. It may be shorter than asked for and still have a marker: rows that are
//! not shown cost time too, and a page looks at a bounded number of them.

use std::sync::Arc;

use concurrency::{Lease, Timestamp};
use engine::{Key, KeyReader, Rows, Unread, Visit};
use service::{ReadOperation, codec, space};
use wire::http::{Head, Reply, StatusCode};
use wire::names::ContainerName;
use wire::xml::XmlWriter;
use wire::{base64, dates};

use super::Call;
use crate::error::BlobError;
use crate::listing::{self, After, ROWS_VISITED_MAX};
use crate::model::encryption::Encryption;
use crate::model::tier::Tier;
use crate::model::{self, Blob, BlobType, Committed, Deletion, Halt, VersionId, snapshots_of, versions_of};
use crate::{Failure, reply, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListBlobs {
    pub container: ContainerName,
    pub prefix: String,
    pub delimiter: Option<String>,
    /// Where an earlier page ended.
    pub after: Option<After>,
    /// Lower and upper bound by name.
    pub start_from: Option<String>,
    pub end_before: Option<String>,
    /// The most entries of a page.
    pub max: usize,
    pub include: IncludeBlobs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IncludeBlobs {
    pub metadata: bool,
    pub snapshots: bool,
    pub uncommitted: bool,
    pub tags: bool,
    /// Also what is soft-deleted, of what else is included.
    pub deleted: bool,
    pub versions: bool,
    /// Names of which only versions are left.
    pub deleted_with_versions: bool,
    pub policies: bool,
    pub holds: bool,
    pub copy: bool,
}

/// The words that `include` takes.
const INCLUDE: [&str; 10] = [
    "snapshots",
    "metadata",
    "uncommittedblobs",
    "copy",
    "deleted",
    "tags",
    "versions",
    "deletedwithversions",
    "immutabilitypolicy",
    "legalhold",
];

fn parse(head: &Head) -> Result<ListBlobs, BlobError> {
    let words = listing::include(head, &INCLUDE)?;
    let has = |word: &str| words.iter().any(|included| included == word);
    let text = |name| head.query.get(name).map(str::to_owned);
    if head.query.has("showonly") {
        // Only accounts with a hierarchical namespace have directories to tell apart.
        return Err(BlobError::query("showonly", head.query.get("showonly").unwrap_or_default()));
    }
    let delimiter = text("delimiter");
    let include = IncludeBlobs {
        metadata: has("metadata"),
        snapshots: has("snapshots"),
        uncommitted: has("uncommittedblobs"),
        tags: has("tags"),
        deleted: has("deleted"),
        versions: has("versions"),
        deleted_with_versions: has("deletedwithversions"),
        policies: has("immutabilitypolicy"),
        holds: has("legalhold"),
        copy: has("copy"),
    };
    if delimiter.is_some() && include.snapshots {
        return Err(BlobError::query("include", head.query.get("include").unwrap_or_default()));
    }
    Ok(ListBlobs {
        container: request::container(head)?,
        prefix: head.query.get("prefix").unwrap_or_default().to_owned(),
        delimiter,
        after: After::parse(head)?,
        start_from: text("startFrom"),
        end_before: text("endBefore"),
        max: listing::max_results(head)?,
        include,
    })
}

#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly every entry is a blob, and a page holds a bounded number")]
pub enum ListedEntry {
    Prefix(String),
    Blob(ListedBlob),
}

/// One state of a blob, as it is listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedBlob {
    pub name: String,
    pub of: ListedState,
    /// `None`: there is nothing to tell but the name.
    pub state: Option<Committed>,
    /// The base alone has one, while it is not deleted.
    pub lease: Option<Lease>,
    pub deleted: Option<Deletion>,
}

/// Which state of a blob an entry shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListedState {
    Base,
    Snapshot(Timestamp),
    Version(VersionId),
    /// There is no base, only versions.
    VersionsOnly,
}

impl ListedEntry {
    fn after(&self) -> After {
        match self {
            ListedEntry::Prefix(prefix) => After::Prefix(prefix.clone()),
            ListedEntry::Blob(shown) => match shown.of {
                ListedState::Base | ListedState::VersionsOnly => After::Name(shown.name.clone()),
                ListedState::Snapshot(at) => After::Snapshot(shown.name.clone(), at),
                ListedState::Version(VersionId(at)) => After::Version(shown.name.clone(), at),
            },
        }
    }
}

/// A page of blobs.
#[derive(Debug)]
pub struct BlobsPage {
    pub entries: Vec<ListedEntry>,
    pub next: Option<After>,
    /// When the blobs were as the page says.
    pub now: Timestamp,
    /// How many rows of snapshots and versions may still be looked at.
    rows_left: usize,
}

impl BlobsPage {
    /// Adds an entry, or notes where the next page begins if this one is full.
    fn push(&mut self, entry: ListedEntry, max: usize) -> bool {
        if self.entries.len() == max {
            self.next = self.entries.last().map(ListedEntry::after);
            return false;
        }
        self.entries.push(entry);
        true
    }
}

/// What the walk over the head rows finds.
#[expect(clippy::large_enum_variant, reason = "nearly every item is a blob, and a page holds a bounded number")]
enum Item {
    Blob(String, Blob),
    Prefix(String),
}

struct Walk {
    items: Vec<Item>,
    /// The walk ended before the rows did, and this is the last thing it saw.
    stopped: Option<After>,
}

impl ListBlobs {
    fn page(&self, rows: &dyn Rows, generation: u64, now: Timestamp) -> Result<BlobsPage, Unread> {
        let walk = self.walk(rows, generation, now)?;
        let entries = Vec::with_capacity(walk.items.len());
        let mut page = BlobsPage { entries, next: None, now, rows_left: ROWS_VISITED_MAX };
        for item in walk.items {
            let fits = match item {
                Item::Prefix(prefix) => page.push(ListedEntry::Prefix(prefix), self.max),
                Item::Blob(name, blob) => self.add_blob(rows, name, blob, now, &mut page)?,
            };
            if !fits {
                return Ok(page);
            }
        }
        page.next = walk.stopped;
        Ok(page)
    }

    /// The snapshots of a blob, oldest first, then its previous versions, oldest first, then the blob itself.
    fn add_blob(
        &self,
        rows: &dyn Rows,
        name: String,
        mut blob: Blob,
        now: Timestamp,
        page: &mut BlobsPage,
    ) -> Result<bool, Unread> {
        let (snapshots, versions) = self.states(&blob);
        let (from_snapshot, from_version) = match &self.after {
            Some(After::Snapshot(last, at)) if *last == name => (Some(*at), None),
            Some(After::Version(last, at)) if *last == name => (Some(Timestamp(u64::MAX)), Some(*at)),
            Some(After::Name(_) | After::Snapshot(..) | After::Version(..) | After::Prefix(_)) | None => (None, None),
        };
        if let Some(all) = snapshots
            && !self.add_states(rows, (&name, &blob), (all, from_snapshot), ListedState::Snapshot, now, page)?
        {
            return Ok(false);
        }
        let of_version = |at| ListedState::Version(VersionId(at));
        if let Some(all) = versions
            && !self.add_states(rows, (&name, &blob), (all, from_version), of_version, now, page)?
        {
            return Ok(false);
        }
        let lease = blob.lease;
        let (of, state, lease, deleted) = match (blob.committed.take(), self.deleted_base(&blob, now)) {
            (Some(state), _) => (ListedState::Base, Some(state), Some(lease), None),
            (None, Some((state, mark))) => (ListedState::Base, Some(state.clone()), None, Some(mark)),
            (None, None) if self.include.uncommitted && blob.is_there(now) => {
                (ListedState::Base, None, Some(lease), None)
            }
            (None, None) if self.has_versions_only(&blob) => (ListedState::VersionsOnly, None, None, None),
            (None, None) => return Ok(true),
        };
        Ok(page.push(ListedEntry::Blob(ListedBlob { name, of, state, lease, deleted }), self.max))
    }

    /// Where the snapshots and versions of a blob are that are to be shown. `None`: there are none to look for.
    fn states(&self, blob: &Blob) -> (Option<Key>, Option<Key>) {
        let past = blob.past.as_deref();
        let wanted = |live: u32, deleted: u32| live > 0 || self.include.deleted && deleted > 0;
        let snapshots = wanted(blob.snapshots, past.map_or(0, |past| past.deleted_snapshots));
        let versions = past.filter(|past| self.include.versions && wanted(past.versions, past.deleted_versions));
        let snapshots = (self.include.snapshots && snapshots).then(|| snapshots_of(blob.uid));
        (snapshots, versions.map(|past| versions_of(past.uid)))
    }

    fn deleted_base<'a>(&self, blob: &'a Blob, now: Timestamp) -> Option<(&'a Committed, Deletion)> {
        let state = blob.past.as_ref()?.deleted.as_ref().filter(|_| self.include.deleted)?;
        state.deleted.filter(|mark| mark.is_kept(now)).map(|mark| (state, mark))
    }

    fn has_versions_only(&self, blob: &Blob) -> bool {
        let has_versions = || blob.past.as_ref().is_some_and(|past| past.versions > 0);
        self.include.deleted_with_versions && blob.committed.is_none() && has_versions()
    }

    /// Adds the snapshots or versions below `all`, after the one that an earlier page ended with.
    fn add_states(
        &self,
        rows: &dyn Rows,
        (name, blob): (&str, &Blob),
        (all, after): (Key, Option<Timestamp>),
        of: impl Fn(Timestamp) -> ListedState,
        now: Timestamp,
        page: &mut BlobsPage,
    ) -> Result<bool, Unread> {
        let from = match after {
            Some(Timestamp(u64::MAX)) => return Ok(true),
            Some(at) => all.clone().number(at.0 + 1),
            None => all.clone(),
        };
        let mut failed = None;
        let mut fits = true;
        rows.scan(&from, &all.after_all(), self.max + 1 - page.entries.len(), &mut |key, row| {
            let read = || Ok((model::state_time(key)?, codec::decode::<Committed>(row)?));
            let (at, state) = match read() {
                Ok(found) => found,
                Err(error) => {
                    failed = Some(error);
                    return Visit::Stop;
                }
            };
            let deleted = blob.deletion_of(&state);
            let is_shown = deleted.is_none_or(|mark| self.include.deleted && mark.is_kept(now));
            let shown = ListedBlob { name: name.to_owned(), of: of(at), state: Some(state), lease: None, deleted };
            let entry = ListedEntry::Blob(shown);
            page.rows_left = page.rows_left.saturating_sub(1);
            if page.rows_left == 0 {
                // Too many that are not shown. This one comes with the next page, if it is.
                page.next = Some(if is_shown { before(entry.after()) } else { entry.after() });
                fits = false;
            } else if is_shown {
                fits = page.push(entry, self.max);
            }
            if fits { Visit::Next } else { Visit::Stop }
        })?;
        failed.map_or(Ok(fits), Err)
    }

    /// Walks the head rows until the page must be full or too many rows have been seen.
    fn walk(&self, rows: &dyn Rows, generation: u64, now: Timestamp) -> Result<Walk, Unread> {
        let (from, to) = self.bounds(generation);
        let mut walk = Walk { items: Vec::new(), stopped: None };
        let mut last = None;
        let mut visited = 0;
        let mut failed = None;
        rows.scan(&from, &to, self.max + 1, &mut |key, row| {
            // One more than fits, to know whether there is more.
            if walk.items.len() > self.max || visited == ROWS_VISITED_MAX {
                walk.stopped = last.take();
                return Visit::Stop;
            }
            visited += 1;
            let read = || Ok((name_of(key)?, codec::decode::<Blob>(row)?));
            let (name, blob) = match read() {
                Ok(found) => found,
                Err(error) => {
                    failed = Some(error);
                    return Visit::Stop;
                }
            };
            if !self.may_show(&blob, now) {
                last = Some(After::Name(name));
                return Visit::Next;
            }
            match self.folded(&name) {
                Some(prefix) => {
                    last = Some(After::Prefix(prefix.to_owned()));
                    let beyond = Key::new(space::BLOB).number(generation).text_prefix(prefix).after_all();
                    walk.items.push(Item::Prefix(prefix.to_owned()));
                    Visit::SkipTo(beyond)
                }
                None => {
                    last = Some(After::Name(name.clone()));
                    walk.items.push(Item::Blob(name, blob));
                    Visit::Next
                }
            }
        })?;
        failed.map_or(Ok(walk), Err)
    }

    /// Whether a blob, or what is left of it, may be in the list. Whether it is can depend on its other rows.
    fn may_show(&self, blob: &Blob, now: Timestamp) -> bool {
        blob.committed.is_some()
            || self.include.uncommitted && blob.is_there(now)
            || self.deleted_base(blob, now).is_some()
            || self.has_versions_only(blob)
            || self.states(blob) != (None, None)
    }

    fn bounds(&self, generation: u64) -> (Key, Key) {
        let all = Key::new(space::BLOB).number(generation);
        let within = all.clone().text_prefix(&self.prefix);
        let mut from = match &self.after {
            None => within.clone(),
            Some(After::Name(name)) => within.clone().max(all.clone().text(name).next()),
            // Of this name there is more to come.
            Some(After::Snapshot(name, _) | After::Version(name, _)) => within.clone().max(all.clone().text(name)),
            Some(After::Prefix(prefix)) => within.clone().max(all.clone().text_prefix(prefix).after_all()),
        };
        let mut to = within.after_all();
        if let Some(start) = &self.start_from {
            from = from.max(all.clone().text(start));
        }
        if let Some(end) = &self.end_before {
            to = to.min(all.text(end));
        }
        (from, to)
    }

    /// The name up to and with the first delimiter after the prefix.
    fn folded<'a>(&self, name: &'a str) -> Option<&'a str> {
        let delimiter = self.delimiter.as_deref()?;
        let rest = name.get(self.prefix.len()..)?;
        let at = rest.find(delimiter)?;
        name.get(..self.prefix.len() + at + delimiter.len())
    }
}

/// What a page must end with for this to be the first of the next.
fn before(after: After) -> After {
    let earlier = |at: Timestamp| Timestamp(at.0 - 1);
    match after {
        After::Snapshot(name, at) => After::Snapshot(name, earlier(at)),
        After::Version(name, at) => After::Version(name, earlier(at)),
        After::Name(_) | After::Prefix(_) => after,
    }
}

fn name_of(key: &[u8]) -> Result<String, Unread> {
    let mut reader = KeyReader::new(key);
    reader.number().and_then(|_| reader.text()).ok_or_else(|| codec::corrupt("the key of a blob"))
}

impl ReadOperation for ListBlobs {
    type Outcome = BlobsPage;
    type Refusal = BlobError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<BlobsPage, Halt> {
        let generation = model::generation(rows, account, &self.container)?;
        Ok(self.page(rows, generation, now)?)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = Arc::new(parse(call.head)?);
    let page = call.read(&op).await?;
    Ok(reply::xml(StatusCode::OK, op.document(call.head, &page, page.now)))
}

/// About what one blob takes, to grow the document once.
const BYTES_PER_BLOB: usize = 900;

impl ListBlobs {
    fn document(&self, head: &Head, page: &BlobsPage, now: Timestamp) -> XmlWriter {
        let mut xml = XmlWriter::document();
        xml.reserve(1_024 + page.entries.len() * BYTES_PER_BLOB);
        let endpoint = format!("{}/", head.endpoint);
        let attributes = [("ServiceEndpoint", endpoint.as_str()), ("ContainerName", self.container.as_str())];
        xml.open_with("EnumerationResults", &attributes);
        let repeated =
            [("Prefix", "prefix"), ("Marker", "marker"), ("MaxResults", "maxresults"), ("Delimiter", "delimiter")];
        for (element, parameter) in repeated {
            xml.leaf_if(element, head.query.get(parameter));
        }
        xml.open("Blobs");
        for entry in &page.entries {
            match entry {
                ListedEntry::Prefix(prefix) => _ = xml.open("BlobPrefix").name(prefix).close("BlobPrefix"),
                ListedEntry::Blob(shown) => self.blob(&mut xml, shown, now),
            }
        }
        xml.close("Blobs");
        xml.leaf("NextMarker", page.next.as_ref().map(After::to_marker).unwrap_or_default());
        xml.close("EnumerationResults");
        xml
    }

    fn blob(&self, xml: &mut XmlWriter, shown: &ListedBlob, now: Timestamp) {
        let state = shown.state.as_ref();
        xml.open("Blob").name(&shown.name);
        if let ListedState::Snapshot(at) = shown.of {
            xml.leaf("Snapshot", dates::iso_ticks(at).as_str());
        }
        if let Some(VersionId(at)) = state.and_then(|state| state.version_id) {
            xml.leaf("VersionId", dates::iso_ticks(at).as_str());
            if shown.of == ListedState::Base && shown.deleted.is_none() {
                xml.flag("IsCurrentVersion", true);
            }
        }
        if shown.deleted.is_some() {
            xml.flag("Deleted", true);
        }
        if shown.of == ListedState::VersionsOnly {
            xml.flag("HasVersionsOnly", true);
        }
        xml.open("Properties");
        match state {
            Some(state) => {
                properties(xml, state, now);
                protection(xml, state, self.include);
            }
            None => _ = xml.number("Content-Length", 0).leaf("BlobType", "BlockBlob"),
        }
        if let Some(lease) = &shown.lease {
            xml.leaf("LeaseStatus", reply::lease_status(lease, now));
            xml.leaf("LeaseState", reply::lease_state(lease, now));
            xml.leaf_if("LeaseDuration", reply::lease_duration(lease, now));
        }
        if let Some(copy) = state.and_then(|state| state.copy.as_ref()).filter(|_| self.include.copy) {
            reply::copy_elements(xml, copy, now);
        }
        xml.flag("ServerEncrypted", true);
        match state.and_then(|state| state.encryption.as_ref()) {
            None => {}
            Some(Encryption::Key(sealed)) => {
                xml.leaf("CustomerProvidedKeySha256", base64::encode(&sealed.sha256));
            }
            Some(Encryption::Scope(scope)) => _ = xml.leaf("EncryptionScope", scope),
        }
        if let Some(mark) = &shown.deleted {
            mark.write(xml, now);
        }
        xml.close("Properties");
        if let Some(state) = state
            && self.include.metadata
        {
            match &state.encryption {
                // A listing takes no customer-provided key.
                Some(Encryption::Key(sealed)) if sealed.metadata.is_some() => {
                    xml.open_with("Metadata", &[("Encrypted", "true")]).close("Metadata");
                }
                Some(Encryption::Key(_) | Encryption::Scope(_)) | None => reply::metadata_element(xml, &state.metadata),
            }
        }
        if let Some(state) = state
            && self.include.tags
            && !state.tags().is_empty()
        {
            reply::tags_element(xml, state.tags());
        }
        xml.close("Blob");
    }
}

fn properties(xml: &mut XmlWriter, state: &Committed, now: Timestamp) {
    let own = &state.headers;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    xml.leaf("Creation-Time", dates::http_date(state.created).as_str());
    xml.leaf("Last-Modified", dates::http_date(state.stamp).as_str());
    xml.leaf("Etag", state.version().etag.to_string());
    xml.number("Content-Length", state.length);
    xml.leaf("Content-Type", text(&own.content_type));
    xml.leaf("Content-Encoding", text(&own.content_encoding));
    xml.leaf("Content-Language", text(&own.content_language));
    xml.leaf("Content-MD5", own.content_md5.as_deref().map(base64::encode).unwrap_or_default());
    xml.leaf("Cache-Control", text(&own.cache_control));
    xml.leaf("Content-Disposition", text(&own.content_disposition));
    if let BlobType::Page { sequence } = state.kind {
        xml.number("x-ms-blob-sequence-number", sequence);
    }
    xml.leaf("BlobType", state.kind.name());
    tier(xml, state, now);
    match state.kind {
        BlobType::Append { sealed: true, .. } => _ = xml.flag("Sealed", true),
        BlobType::Block | BlobType::Append { sealed: false, .. } | BlobType::Page { .. } => {}
    }
    if !state.tags().is_empty() {
        xml.number("TagCount", state.tags().len() as u64);
    }
}

fn tier(xml: &mut XmlWriter, state: &Committed, now: Timestamp) {
    let Some(shown) = state.tier_at(now) else { return };
    xml.leaf("AccessTier", shown.tier.name());
    match shown.since {
        Some(since) => _ = xml.leaf("AccessTierChangeTime", dates::http_date(since).as_str()),
        None => _ = xml.flag("AccessTierInferred", true),
    }
    if shown.tier == Tier::Smart {
        xml.leaf("SmartAccessTier", Tier::SMART_DEFAULT.name());
    }
    if let (Some(status), Some(back)) = (shown.archive_status(), shown.rehydration) {
        xml.leaf("ArchiveStatus", status).leaf("RehydratePriority", back.priority.name());
    }
}

fn protection(xml: &mut XmlWriter, state: &Committed, include: IncludeBlobs) {
    if let Some(policy) = state.policy().filter(|_| include.policies) {
        xml.leaf("ImmutabilityPolicyUntilDate", dates::http_date(policy.until).as_str());
        xml.leaf("ImmutabilityPolicyMode", policy.mode.name());
    }
    if let Some(hold) = state.legal_hold().filter(|_| include.holds) {
        xml.flag("LegalHold", hold);
    }
}

#[cfg(test)]
mod tests {
    use crate::BlobError;
    use crate::testing::{Bench, between, refusal};
    use service::RequestError;

    const LIST: &str = "cont?restype=container&comp=list";

    async fn bench(names: &[&str]) -> Bench {
        let bench = Bench::with_container().await;
        for name in names {
            bench.put(&format!("cont/{name}"), b"x").await;
        }
        bench
    }

    async fn names(bench: &Bench, query: &str) -> Vec<String> {
        let page = bench.text("GET", &format!("{LIST}{query}")).await;
        between(&page, "<Name>", "</Name>").iter().map(|name| name.to_string()).collect()
    }

    /// All pages of a listing, each with `max` entries but the last.
    async fn paged(bench: &Bench, query: &str, max: usize) -> Vec<String> {
        let (mut seen, mut marker) = (Vec::new(), String::new());
        loop {
            let encoded = wire::percent::encode_value(&marker).into_owned();
            let page = bench.text("GET", &format!("{LIST}{query}&maxresults={max}&marker={encoded}")).await;
            let found = between(&page, "<Name>", "</Name>");
            seen.extend(found.iter().map(|name| name.to_string()));
            marker = between(&page, "<NextMarker>", "</NextMarker>").first().map_or("", |m| *m).to_owned();
            if marker.is_empty() {
                return seen;
            }
            assert_eq!(found.len(), max);
        }
    }

    #[tokio::test]
    async fn flat_lists_are_in_byte_order_in_pages_of_any_size() {
        let all = ["B", "a", "a/b", "a/b/c", "ab", "z", "ä"];
        let bench = bench(&["z", "a/b/c", "a", "%C3%A4", "B", "ab", "a/b"]).await;
        assert_eq!(names(&bench, "").await, all);
        for max in 1..=8 {
            assert_eq!(paged(&bench, "", max).await, all, "{max}");
        }
        assert_eq!(names(&bench, "&prefix=a/").await, ["a/b", "a/b/c"]);
        assert_eq!(names(&bench, "&prefix=x").await, Vec::<String>::new());
        assert_eq!(names(&bench, "&startFrom=ab&endBefore=z").await, ["ab"]);
    }

    #[tokio::test]
    async fn folders_are_folded_in_pages_of_any_size() {
        let bench = bench(&["a.txt", "dir/1", "dir/2", "dir/sub/3", "dir2/4", "e", "f/5"]).await;
        let all = ["a.txt", "dir/", "dir2/", "e", "f/"];
        assert_eq!(names(&bench, "&delimiter=/").await, all);
        for max in 1..=6 {
            assert_eq!(paged(&bench, "&delimiter=/", max).await, all, "{max}");
        }
        assert_eq!(names(&bench, "&delimiter=/&prefix=dir/").await, ["dir/1", "dir/2", "dir/sub/"]);
        assert_eq!(names(&bench, "&delimiter=ir&prefix=d").await, ["dir"]);
        let page = bench.text("GET", &format!("{LIST}&delimiter=/")).await;
        assert!(
            page.contains("<BlobPrefix><Name>dir/</Name></BlobPrefix>") && page.contains("<Delimiter>/</Delimiter>")
        );
    }

    #[tokio::test]
    async fn what_is_told_of_a_blob() {
        let bench = Bench::with_container().await;
        let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-meta-k", "v"), ("content-type", "text/plain")];
        let put = bench.call("PUT", "cont/blob", &headers, b"hello").await.unwrap();
        let etag = put.headers["etag"].to_str().unwrap().trim_matches('"').to_owned();
        let page = bench.text("GET", LIST).await;
        for part in [
            "<EnumerationResults ServiceEndpoint=\"http://127.0.0.1:10000/acct/\" ContainerName=\"cont\">",
            &format!("<Etag>{etag}</Etag><Content-Length>5</Content-Length><Content-Type>text/plain</Content-Type>"),
            "<Content-Encoding />",
            "<Content-MD5>XUFAKrxLKna5cZ2REBfFkg==</Content-MD5>",
            "<BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred>",
            "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>",
            "<NextMarker />",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        assert!(!page.contains("<Metadata>"));
        let page = bench.text("GET", &format!("{LIST}&include=metadata,tags,copy,versions,deleted")).await;
        assert!(page.contains("<Metadata><k>v</k></Metadata>"));
    }

    /// Name, snapshot, version, and what else is said, of all pages.
    async fn entries(bench: &Bench, query: &str, max: usize) -> Vec<String> {
        let (mut seen, mut marker) = (Vec::new(), String::new());
        loop {
            let encoded = wire::percent::encode_value(&marker).into_owned();
            let page = bench.text("GET", &format!("{LIST}{query}&maxresults={max}&marker={encoded}")).await;
            for blob in between(&page, "<Blob>", "</Blob>") {
                let mut words = vec![between(blob, "<Name>", "</Name>")[0]];
                for word in ["Snapshot", "VersionId", "IsCurrentVersion", "Deleted", "HasVersionsOnly"] {
                    words.extend(blob.contains(&format!("<{word}>")).then_some(word));
                }
                seen.push(words.join(" "));
            }
            seen.extend(between(&page, "<BlobPrefix><Name>", "</Name>").iter().map(|name| name.to_string()));
            marker = between(&page, "<NextMarker>", "</NextMarker>").first().map_or("", |m| *m).to_owned();
            if marker.is_empty() {
                return seen;
            }
        }
    }

    #[tokio::test]
    async fn versions_and_what_is_deleted_are_shown_to_those_who_ask_in_pages_of_any_size() {
        let mut bench = bench(&["a", "b", "c/1", "d"]).await;
        bench.settings.blob_soft_delete_days = Some(3);
        bench.put("cont/a", b"2").await;
        bench.call("PUT", "cont/a?comp=snapshot", &[], b"").await.unwrap();
        bench.call("DELETE", "cont/b", &[], b"").await.unwrap();
        bench.settings.versioning = true;
        for name in ["cont/c/1", "cont/d", "cont/d"] {
            bench.put(name, b"3").await;
        }
        bench.call("DELETE", "cont/c/1", &[], b"").await.unwrap();
        let page = bench.text("GET", &format!("{LIST}&include=versions&prefix=d")).await;
        let oldest = between(&page, "<VersionId>", "</VersionId>")[0].to_owned();
        bench.call("DELETE", &format!("cont/d?versionid={oldest}"), &[], b"").await.unwrap();
        let table: &[(&str, &[&str])] = &[
            ("", &["a", "d VersionId IsCurrentVersion"]),
            ("&include=deleted", &["a", "b Deleted", "d VersionId IsCurrentVersion"]),
            ("&include=snapshots", &["a Snapshot", "a", "d VersionId IsCurrentVersion"]),
            (
                "&include=snapshots,deleted",
                &["a Snapshot Deleted", "a Snapshot", "a", "b Deleted", "d VersionId IsCurrentVersion"],
            ),
            (
                "&include=versions",
                &["a", "c/1 VersionId", "c/1 VersionId", "d VersionId", "d VersionId IsCurrentVersion"],
            ),
            (
                "&include=versions,deleted&prefix=d",
                &["d VersionId Deleted", "d VersionId", "d VersionId IsCurrentVersion"],
            ),
            ("&include=deletedwithversions", &["a", "c/1 HasVersionsOnly", "d VersionId IsCurrentVersion"]),
            ("&include=deletedwithversions&startFrom=b&endBefore=d", &["c/1 HasVersionsOnly"]),
            ("&delimiter=/", &["a", "d VersionId IsCurrentVersion"]),
            ("&delimiter=/&include=deleted&prefix=b", &["b Deleted"]),
            ("&delimiter=/&include=versions&prefix=c", &["c/"]),
            ("&delimiter=/&include=deletedwithversions&prefix=c", &["c/"]),
        ];
        for (query, expected) in table {
            for max in 1..=6 {
                assert_eq!(entries(&bench, query, max).await, *expected, "{query} in pages of {max}");
            }
        }
        // When its time is over it is not shown, swept or not.
        bench.advance(3 * 24 * 3600).await;
        assert_eq!(entries(&bench, "&include=deleted,snapshots&prefix=a", 5).await, ["a Snapshot", "a"]);
        assert_eq!(entries(&bench, "&include=deleted&prefix=b", 5).await, Vec::<String>::new());
        assert_eq!(entries(&bench, "&include=deleted,versions&prefix=d", 5).await.len(), 2);
    }

    #[tokio::test]
    async fn many_rows_that_are_not_shown_make_short_pages() {
        let mut bench = bench(&["a", "b"]).await;
        bench.settings.blob_soft_delete_days = Some(3);
        for _ in 0..crate::listing::ROWS_VISITED_MAX {
            bench.put("cont/a", b"x").await;
        }
        bench.call("PUT", "cont/a?comp=snapshot", &[], b"").await.unwrap();
        let page = bench.text("GET", &format!("{LIST}&include=snapshots")).await;
        assert_eq!(between(&page, "<Name>", "</Name>"), Vec::<&str>::new());
        assert_eq!(entries(&bench, "&include=snapshots", 5).await, ["a Snapshot", "a", "b"]);
    }

    #[tokio::test]
    async fn refusals() {
        let bench = bench(&["a"]).await;
        let ask = async |query: &str| refusal(bench.call("GET", &format!("{LIST}{query}"), &[], b"").await);
        assert_eq!(ask("&include=all").await, BlobError::query("include", "all"));
        assert_eq!(ask("&include=snapshots&delimiter=/").await, BlobError::query("include", "snapshots"));
        assert_eq!(ask("&marker=x").await, BlobError::query("marker", "x"));
        assert!(matches!(
            ask("&maxresults=0").await,
            BlobError::Request(RequestError::OutOfRangeQueryParameterValue { .. })
        ));
        let gone = bench.call("GET", "gone?restype=container&comp=list", &[], b"").await;
        assert_eq!(refusal(gone), BlobError::ContainerNotFound);
        // Two faults: what is wrong with the request comes before what is not there.
        let both = bench.call("GET", "gone?restype=container&comp=list&maxresults=x", &[], b"").await;
        assert_eq!(refusal(both), BlobError::query("maxresults", "x"));
    }

    #[tokio::test]
    async fn a_name_whose_versions_are_all_deleted_is_not_one_with_versions() {
        let mut bench = Bench::with_container().await;
        (bench.settings.versioning, bench.settings.blob_soft_delete_days) = (true, Some(7));
        let answer = bench.call("PUT", "cont/blob", &[("x-ms-blob-type", "BlockBlob")], b"x").await.unwrap();
        let id = crate::testing::header(&answer, "x-ms-version-id").unwrap().to_owned();
        bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
        let listed = async || bench.text("GET", "cont?restype=container&comp=list&include=deletedwithversions").await;
        assert!(listed().await.contains("<HasVersionsOnly>true</HasVersionsOnly>"));
        bench.call("DELETE", &format!("cont/blob?versionid={id}"), &[], b"").await.unwrap();
        assert!(!listed().await.contains("<Blob>"));
        bench.call("PUT", "cont/blob?comp=undelete", &[], b"").await.unwrap();
        assert!(listed().await.contains("<HasVersionsOnly>true</HasVersionsOnly>"));
    }
}
