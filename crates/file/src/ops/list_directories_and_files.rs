//! List Directories and Files: a page of what is in a directory, by name, files and directories mixed.
//!
//! The order is that of the folded names, and the marker is one: so a page costs the same wherever it begins, and nothing is
//! shown twice or left out when entries come and go between two pages.

use std::collections::{BTreeMap, HashSet};

use concurrency::share_mode::RestAccess;
use concurrency::{ETag, Timestamp};
use engine::{Key, KeyReader, PREFETCH_KEYS_MAX, Rows, Unread, Visit};
use service::{codec, listing, reply};
use wire::fold::fold;
use wire::http::{Head, Reply, StatusCode};
use wire::xml::XmlWriter;
use wire::{base64, dates, percent};

use super::Call;
use crate::entering::{self, Admission, NodeRead};
use crate::error::FileError;
use crate::model::{Entry, Halt, Node, NodePlace, entries_of, linked_key, past_entries_of, refuse};
use crate::past;
use crate::request::flag;
use crate::tree::{Spot, Target, shown_id};
use crate::{Failure, request};

/// The most entries of a page, and how many it has if the request does not say.
const RESULTS_MAX: usize = 5_000;
/// How many rows a page may pass over that a snapshot does not see; then the page is short and has a marker. Tests would take long to
/// make so many.
const ROWS_PASSED_MAX: usize = if cfg!(test) { 100 } else { 20_000 };
/// Since this version entries have ids.
const IDS_SINCE: &str = "2020-10-02";
/// Since this version names that XML cannot carry are encoded.
const ENCODED_SINCE: &str = "2021-12-02";
const INCLUDE: [&str; 4] = ["timestamps", "etag", "attributes", "permissionkey"];

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListDirectoriesAndFiles {
    /// Only names that begin like this, whatever the case. Folded.
    pub prefix: String,
    /// The page begins behind this folded name.
    pub after: Option<String>,
    pub max: usize,
}

/// What is told of each entry beside its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Include {
    timestamps: bool,
    etag: bool,
    attributes: bool,
    permission_key: bool,
}

fn parse(head: &Head) -> Result<(Target, ListDirectoriesAndFiles, Include), FileError> {
    let target = request::directory(head)?;
    request::no_conditions(head)?;
    let words = listing::include(head, &INCLUDE)?;
    let has = |word: &str| words.iter().any(|included| included == word);
    let include = Include {
        timestamps: has("timestamps"),
        etag: has("etag"),
        attributes: has("attributes"),
        permission_key: has("permissionkey"),
    };
    // Lengths are exact in any case.
    flag(head, "x-ms-file-extended-info")?;
    let list = ListDirectoriesAndFiles {
        prefix: fold(head.query.get("prefix").unwrap_or_default()).into_owned(),
        after: after(head)?,
        max: listing::max_results(head, RESULTS_MAX)?,
    };
    Ok((request::at_snapshot(head, target)?, list, include))
}

/// The folded name with which the last page ended.
fn after(head: &Head) -> Result<Option<String>, FileError> {
    let Some(text) = head.query.get("marker") else { return Ok(None) };
    let name = base64::decode_url(text).and_then(|bytes| String::from_utf8(bytes).ok());
    name.map(Some).ok_or(FileError::InvalidMarker)
}

/// A page of a directory.
#[derive(Debug)]
pub struct Page {
    /// The id of the directory as it is shown.
    directory: u64,
    entries: Vec<Node>,
    /// The folded name of the last entry, if others follow.
    next: Option<String>,
}

impl NodeRead for ListDirectoriesAndFiles {
    type Outcome = Page;

    fn admission(&self, _: &Spot) -> Admission {
        Admission::of(RestAccess::Look)
    }

    fn read(&self, spot: &Spot, rows: &dyn Rows, _: Timestamp) -> Result<Page, Halt> {
        let directory = spot.read_directory().map_err(refuse)?.id;
        let (entries, next) = self.page(spot, rows)?;
        Ok(Page { directory: shown_id(spot.share, directory), entries, next })
    }
}

impl ListDirectoriesAndFiles {
    /// A page of the directory at a spot, and the folded name to go on behind, if others follow.
    pub fn page(&self, spot: &Spot, rows: &dyn Rows) -> Result<(Vec<Node>, Option<String>), Halt> {
        let directory = spot.read_directory().map_err(refuse)?.id;
        let generation = spot.share.generation;
        let base = self.walk(rows, (spot, entries_of(generation, directory)), |entry, _| match spot.at {
            None => Row::Shown,
            Some(at) if entry.since() <= at => Row::Shown,
            Some(_) => Row::Hidden,
        });
        let run = match spot.at {
            None => base?,
            Some(at) => {
                // Both are asked for before either is missed.
                let past =
                    self.walk(rows, (spot, past_entries_of(generation, directory)), |entry, until| match until {
                        // It was changed before the snapshot was taken.
                        Some(until) if until < at => Row::Hidden,
                        Some(_) | None if entry.since() <= at => Row::Shown,
                        Some(_) | None => Row::Hidden,
                    });
                base?.merged(past?)
            }
        };
        let (entries, next) = self.cut(run);
        Ok((resolve(rows, spot, directory, entries)?, next))
    }
}

/// Whether the page has what a row holds.
enum Row {
    Shown,
    Hidden,
}

/// Some entries of a directory with their folded names, in order.
#[derive(Default)]
struct Run {
    entries: Vec<(String, Entry)>,
    /// The walk ended before the rows did, and this is the last name of which it saw all.
    stopped: Option<String>,
}

impl Run {
    /// What both have, up to the name where one of them stopped. A name is in one of them only.
    fn merged(self, other: Run) -> Run {
        let stopped = match (self.stopped, other.stopped) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let mut entries = self.entries;
        entries.extend(other.entries);
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        if let Some(last) = &stopped {
            entries.retain(|(name, _)| name <= last);
        }
        Run { entries, stopped }
    }
}

impl ListDirectoriesAndFiles {
    /// Walks entries, or past entries, until there is more than a page of them or too many have been seen.
    fn walk(
        &self,
        rows: &dyn Rows,
        (spot, all): (&Spot, Key),
        look: impl Fn(&Entry, Option<u64>) -> Row,
    ) -> Result<Run, Unread> {
        let within = all.clone().text_prefix(&self.prefix);
        let mut from = within.clone();
        if spot.is_root() {
            // The entries of the root begin with its own row.
            from = from.max(all.clone().text("").after_all());
        }
        if let Some(name) = &self.after {
            from = from.max(all.text(name).after_all());
        }
        let (mut run, mut failed, mut hidden, mut passed) = (Run::default(), None, None::<String>, 0);
        rows.scan(&from, &within.after_all(), self.max + 1, &mut |key, row| {
            let (mut entry, (name, until)) = match codec::decode(row).and_then(|entry| Ok((entry, parts(key)?))) {
                Ok(parts) => parts,
                Err(error) => {
                    failed = Some(error);
                    return Visit::Stop;
                }
            };
            // A name may have several past entries: all of them are passed over together.
            if passed >= ROWS_PASSED_MAX && hidden.as_ref().is_some_and(|hidden| *hidden != name) {
                run.stopped = hidden.take();
                return Visit::Stop;
            }
            if let Row::Hidden = look(&entry, until) {
                (hidden, passed) = (Some(name), passed + 1);
                return Visit::Next;
            }
            // No page tells where files were before, and there may be many such places.
            if let Entry::Node(node) = &mut entry {
                node.former = None;
            }
            run.entries.push((name, entry));
            if run.entries.len() <= self.max {
                return Visit::Next;
            }
            run.stopped = run.entries.last().map(|(name, _)| name.clone());
            Visit::Stop
        })?;
        failed.map_or(Ok(run), Err)
    }

    /// The first entries of a run, and the folded name to go on behind.
    fn cut(&self, mut run: Run) -> (Vec<(String, Entry)>, Option<String>) {
        if run.entries.len() <= self.max {
            return (run.entries, run.stopped);
        }
        run.entries.truncate(self.max);
        let next = run.entries.last().map(|(name, _)| name.clone());
        (run.entries, next)
    }
}

/// The files and directories of some entries of a directory, those that hard links lead to included.
///
/// Each file that has several names is read once, and its other names are not kept: a page may have thousands of links, and each of
/// their files many long names.
fn resolve(rows: &dyn Rows, spot: &Spot, directory: u64, entries: Vec<(String, Entry)>) -> Result<Vec<Node>, Unread> {
    let generation = spot.share.generation;
    let mut links: BTreeMap<u64, Vec<(usize, String)>> = BTreeMap::new();
    let mut nodes = Vec::with_capacity(entries.len());
    for (at, (name, entry)) in entries.into_iter().enumerate() {
        match entry {
            Entry::Node(node) => nodes.push(Some(node)),
            Entry::Link(link) => {
                links.entry(link.id).or_default().push((at, name));
                nodes.push(None);
            }
        }
    }
    let keys: Vec<Key> = links.keys().map(|id| linked_key(generation, *id)).collect();
    keys.chunks(PREFETCH_KEYS_MAX).for_each(|keys| rows.prefetch(keys));
    // All are asked for before any is missed.
    let mut missed = None;
    for (id, names) in links {
        match past::linked(rows, generation, spot.at, id) {
            Ok(seen) => {
                let mut node = seen.ok_or_else(past::lost_link)?.node;
                let links = node.links.take();
                node.former = None;
                for (at, name) in names {
                    let name = past::name_at(links.as_ref(), &NodePlace { directory, name })?;
                    nodes[at] = Some(Node { name, ..node.clone() });
                }
            }
            Err(unread) => missed = missed.or(Some(unread)),
        }
    }
    missed.map_or_else(|| Ok(nodes.into_iter().flatten().collect()), Err)
}

/// The folded name in the key of an entry, and, of a past entry, the epoch of its snapshot.
fn parts(key: &[u8]) -> Result<(String, Option<u64>), Unread> {
    let mut reader = KeyReader::new(key);
    let name = reader.number().and_then(|_| reader.number()).and_then(|_| reader.text());
    Ok((name.ok_or_else(|| codec::corrupt("the key of an entry cannot be read"))?, reader.number()))
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, list, include) = parse(call.head)?;
    let (spot, page) = entering::look(call, &target, list).await?;
    let ids: Vec<u64> = page.entries.iter().map(|node| node.id).collect();
    // What a snapshot sees is never about to be deleted.
    let ids = if spot.at.is_some() { Vec::new() } else { ids };
    let pending = call.opens.pending_among(spot.share.generation, &ids);
    Ok(reply::xml(StatusCode::OK, document(call.head, &target, &page, &pending, include)))
}

/// The page as the answer shows it, without what SMB is about to delete.
fn document(head: &Head, target: &Target, page: &Page, pending: &HashSet<u64>, include: Include) -> XmlWriter {
    let mut xml = XmlWriter::document();
    xml.reserve(page.entries.len() * 160);
    open(&mut xml, head, target);
    xml.leaf_if("Marker", head.query.get("marker"));
    if let Some(prefix) = head.query.get("prefix") {
        text_element(&mut xml, head, "Prefix", prefix);
    }
    xml.leaf_if("MaxResults", head.query.get("maxresults"));
    let has_ids = head.since(IDS_SINCE);
    if has_ids {
        xml.number("DirectoryId", page.directory);
    }
    xml.open("Entries");
    for node in page.entries.iter().filter(|node| !pending.contains(&node.id)) {
        let element = if node.is_directory() { "Directory" } else { "File" };
        xml.open(element);
        text_element(&mut xml, head, "Name", &node.name);
        if has_ids {
            xml.number("FileId", node.id);
        }
        properties(&mut xml, node, include);
        // NFS has neither.
        let is_smb = node.nfs.is_none();
        xml.leaf_if("Attributes", (include.attributes && is_smb).then(|| node.attributes.to_string()));
        xml.leaf_if("PermissionKey", (include.permission_key && is_smb).then(|| node.permission.to_string()));
        xml.close(element);
    }
    xml.close("Entries");
    xml.leaf("NextMarker", page.next.as_ref().map(|name| base64::encode_url(name.as_bytes())).unwrap_or_default());
    xml.close("EnumerationResults");
    xml
}

fn open(xml: &mut XmlWriter, head: &Head, target: &Target) {
    let (endpoint, path) = (format!("{}/", head.endpoint), target.path.to_string());
    let is_encoded = is_encoded(head, &path);
    let path = if is_encoded { percent::encode_name(&path).into_owned() } else { path };
    let mut attributes =
        vec![("ServiceEndpoint", &*endpoint), ("ShareName", target.share.as_str()), ("DirectoryPath", &*path)];
    let snapshot = target.snapshot.map(dates::iso_ticks);
    if let Some(snapshot) = &snapshot {
        attributes.insert(2, ("ShareSnapshot", snapshot.as_str()));
    }
    if is_encoded {
        attributes.push(("Encoded", "true"));
    }
    xml.open_with("EnumerationResults", &attributes);
}

fn properties(xml: &mut XmlWriter, node: &Node, include: Include) {
    let length = node.shown_length();
    if length.is_none() && !include.timestamps && !include.etag {
        xml.empty("Properties");
        return;
    }
    xml.open("Properties");
    if let Some(length) = length {
        xml.number("Content-Length", length);
    }
    if include.timestamps {
        xml.leaf("CreationTime", dates::iso_ticks(node.created).as_str());
        xml.leaf("LastAccessTime", dates::iso_ticks(node.accessed).as_str());
        xml.leaf("LastWriteTime", dates::iso_ticks(node.written).as_str());
        xml.leaf("ChangeTime", dates::iso_ticks(node.changed).as_str());
        xml.leaf("Last-Modified", dates::http_date(node.stamp).as_str());
    }
    xml.leaf_if("Etag", include.etag.then(|| ETag::new(node.stamp).quoted()));
    xml.close("Properties");
}

/// An element with a name or a part of one, encoded if XML cannot carry it.
fn text_element(xml: &mut XmlWriter, head: &Head, element: &str, text: &str) {
    if is_encoded(head, text) {
        xml.open_with(element, &[("Encoded", "true")]).text(&percent::encode_name(text)).close(element);
    } else {
        xml.leaf(element, text);
    }
}

/// Names have no control characters, so two characters remain that XML cannot carry.
fn is_encoded(head: &Head, text: &str) -> bool {
    head.since(ENCODED_SINCE)
        && text.contains(|letter: char| letter.is_control() || matches!(letter, '\u{FFFE}' | '\u{FFFF}'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, between, header, request as head_of, text};
    use service::RequestError;
    use wire::http::FixedBody;

    const URL: &str = "share/dir?restype=directory&comp=list";

    async fn bench() -> Bench {
        let bench = Bench::with_share().await;
        bench.mkdir("dir").await;
        bench.create("dir/b", 7).await;
        bench.mkdir("dir/A").await;
        bench.create("dir/C", 0).await;
        bench
    }

    #[tokio::test]
    async fn a_page_does_not_hold_all_names_of_the_files_on_it() {
        let bench = Bench::with_nfs_share().await;
        bench.create("was", 7).await;
        bench.create("three", 7).await;
        bench.snapshot().await;
        bench.rename("was", "one", &[]).await.unwrap();
        bench.rename("three", "third", &[]).await.unwrap();
        bench.link("one", "Two", &[]).await.unwrap();
        let page = engine::read::<Page, FileError, _>(&*bench.engine, |rows, now| {
            let target = request::directory(&head_of("GET", "share?restype=directory&comp=list", &[])).unwrap();
            let spot = crate::tree::find(rows, 1, &target)?;
            let list = ListDirectoriesAndFiles { prefix: String::new(), after: None, max: RESULTS_MAX };
            list.read(&spot, rows, now)
        });
        let entries = page.await.unwrap().entries;
        let told: Vec<_> = entries.iter().map(|node| (&*node.name, node.length(), &node.links, &node.former)).collect();
        assert_eq!(told, ["one", "third", "Two"].map(|name| (name, 7, &None, &None)), "nor where they were");
    }

    #[tokio::test]
    async fn files_and_directories_mixed_without_case() {
        let bench = bench().await;
        let (directory, file) = (bench.directory("dir").await, bench.file("dir/b").await);
        let id = |reply| header(reply, "x-ms-file-id").unwrap().to_owned();
        let (inner, other) = (bench.directory("dir/a").await, bench.file("dir/c").await);
        let expected = format!(
            "<EnumerationResults ServiceEndpoint=\"http://127.0.0.1:10003/acct/\" ShareName=\"share\" DirectoryPath=\"dir\">\
             <DirectoryId>{}</DirectoryId><Entries>\
             <Directory><Name>A</Name><FileId>{}</FileId><Properties /></Directory>\
             <File><Name>b</Name><FileId>{}</FileId><Properties><Content-Length>7</Content-Length></Properties></File>\
             <File><Name>C</Name><FileId>{}</FileId><Properties><Content-Length>0</Content-Length></Properties></File>\
             </Entries><NextMarker /></EnumerationResults>",
            id(&directory),
            id(&inner),
            id(&file),
            id(&other),
        );
        let list = bench.text("GET", URL).await;
        assert!(list.ends_with(&expected), "{list}");
        let root = bench.text("GET", "share?restype=directory&comp=list").await;
        assert!(root.contains("DirectoryPath=\"\"><DirectoryId>0</DirectoryId>"), "{root}");
        assert_eq!(between(&root, "<Name>", "<"), ["dir"]);
        assert!(bench.names("dir/a").await.is_empty());
    }

    #[tokio::test]
    async fn what_is_included() {
        let bench = bench().await;
        bench.advance(3).await;
        bench.write("dir/b", 0, b"x").await;
        let file = bench.file("dir/b").await;
        let of = |name| header(&file, name).unwrap();
        let list = bench.text("GET", &format!("{URL}&include=Timestamps,ETag&include=Attributes,PermissionKey")).await;
        let shown = between(&list, "<File>", "</File>")[0];
        let created = of("x-ms-file-creation-time");
        let expected = format!(
            "<Properties><Content-Length>7</Content-Length><CreationTime>{created}</CreationTime>\
             <LastAccessTime>{created}</LastAccessTime><LastWriteTime>{}</LastWriteTime><ChangeTime>{}</ChangeTime>\
             <Last-Modified>{}</Last-Modified><Etag>{}</Etag></Properties><Attributes>Archive</Attributes>\
             <PermissionKey>{}</PermissionKey>",
            of("x-ms-file-last-write-time"),
            of("x-ms-file-change-time"),
            of("last-modified"),
            of("etag"),
            of("x-ms-file-permission-key"),
        );
        let plain = |text: &str| text.replace("&quot;", "\"");
        assert!(plain(shown).ends_with(&expected), "{shown}\n{expected}");
        let directory = between(&list, "<Directory>", "</Directory>")[0];
        assert!(directory.contains("<Properties><CreationTime>") && directory.contains("<Attributes>Directory<"));
        let etags = bench.text("GET", &format!("{URL}&include=etag")).await;
        assert!(etags.contains("<Etag>") && !etags.contains("<CreationTime>") && !etags.contains("<Attributes>"));
        let unknown = bench.refused("GET", &format!("{URL}&include=owner"), &[]).await;
        assert_eq!(unknown, FileError::query("include", "owner"));
        let extended = bench.refused("GET", URL, &[("x-ms-file-extended-info", "maybe")]).await;
        assert_eq!(extended, FileError::header("x-ms-file-extended-info", "maybe"));
    }

    #[tokio::test]
    async fn pages_of_any_size_show_each_entry_once() {
        let bench = Bench::with_share().await;
        bench.mkdir("dir").await;
        for number in 0..30 {
            let name = if number % 2 == 0 { format!("dir/File{number:02}") } else { format!("dir/file{number:02}") };
            if number % 3 == 0 { bench.mkdir(&name).await } else { bench.create(&name, 0).await }
        }
        let all = bench.names("dir").await;
        assert_eq!(all.len(), 30);
        assert!(all.is_sorted_by_key(|name| name.to_ascii_uppercase()));
        for max in [1, 7, 29, 30, 31] {
            let (mut seen, mut marker) = (Vec::new(), String::new());
            loop {
                let page = bench.text("GET", &format!("{URL}&maxresults={max}&marker={marker}&prefix=fIL")).await;
                assert!(page.contains(&format!("<Prefix>fIL</Prefix><MaxResults>{max}</MaxResults>")), "{page}");
                assert_eq!(page.contains("<Marker>"), !marker.is_empty());
                let names = between(&page, "<Name>", "<");
                assert!(names.len() <= max);
                seen.extend(names.iter().map(|name| (*name).to_owned()));
                marker = between(&page, "<NextMarker>", "<").first().map_or("", |marker| *marker).to_owned();
                if marker.is_empty() {
                    assert!(page.contains("<NextMarker />"));
                    break;
                }
                // What comes and goes before the marker changes nothing for the pages behind it.
                bench.create("dir/fil", 0).await;
                bench.call("DELETE", "share/dir/fil", &[], b"").await.unwrap();
            }
            assert_eq!(seen, all, "{max}");
        }
    }

    #[tokio::test]
    async fn prefixes() {
        let bench = Bench::with_share().await;
        for name in ["Straße", "STRAND", "str", "Über", "über2", "%25"] {
            bench.create(name, 0).await;
        }
        let list = async |prefix: &str| {
            let prefix = wire::percent::encode_value(prefix).into_owned();
            let page = bench.text("GET", &format!("share?restype=directory&comp=list&prefix={prefix}")).await;
            between(&page, "<Name>", "<").into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(list("stra").await, ["STRAND", "Straße"]);
        assert_eq!(list("ÜB").await, ["Über", "über2"]);
        assert_eq!(list("%").await, ["%"]);
        assert_eq!(list("x").await, [""; 0]);
        assert_eq!(list("").await.len(), 6);
    }

    #[tokio::test]
    async fn names_that_xml_cannot_carry_are_encoded() {
        let bench = Bench::with_share().await;
        let name = wire::percent::encode_name("a\u{FFFE}<b>").into_owned().replace("%3C", "").replace("%3E", "");
        bench.mkdir(&name).await;
        let list = bench.text("GET", "share?restype=directory&comp=list&prefix=a%EF%BF%BE").await;
        assert!(list.contains("<Name Encoded=\"true\">a%EF%BF%BEb</Name>"), "{list}");
        assert!(list.contains("<Prefix Encoded=\"true\">a%EF%BF%BE</Prefix>"), "{list}");
        let inner = bench.text("GET", &format!("share/{name}?restype=directory&comp=list")).await;
        assert!(inner.contains("DirectoryPath=\"a%EF%BF%BEb\" Encoded=\"true\">"), "{inner}");
        let old = async |version: &str| {
            let mut head = head_of("GET", "share?restype=directory&comp=list", &[]);
            head.version = version.into();
            text(bench.send(head, &mut FixedBody::new(&b""[..])).await.unwrap()).await
        };
        let before = old("2021-10-04").await;
        assert!(before.contains("<Name>a\u{FFFD}b</Name><FileId>"), "{before}");
        assert!(!old("2020-08-04").await.contains("Id>"));
    }

    #[tokio::test]
    async fn refusals_and_two_at_once() {
        let bench = Bench::with_share().await;
        let refused = async |query: &str| {
            bench.refused("GET", &format!("share/no?restype=directory&comp=list&{query}"), &[]).await
        };
        for value in ["0", "-1"] {
            let error = refused(&format!("maxresults={value}")).await;
            assert!(
                matches!(error, FileError::Request(RequestError::OutOfRangeQueryParameterValue { .. })),
                "{error:?}"
            );
        }
        assert_eq!(refused("maxresults=x").await, FileError::query("maxresults", "x"));
        assert_eq!(refused("marker=*").await, FileError::InvalidMarker);
        assert_eq!(refused("marker=QQ").await, FileError::ResourceNotFound);
    }
}
