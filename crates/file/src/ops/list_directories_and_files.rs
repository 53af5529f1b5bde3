//! List Directories and Files: a page of what is in a directory, by name, files and directories mixed.
//!
//! The order is that of the folded names, and the marker is one: so a page costs the same wherever it begins, and nothing is
//! shown twice or left out when entries come and go between two pages.

use std::collections::HashSet;

use concurrency::share_mode::RestAccess;
use concurrency::{ETag, Timestamp};
use engine::{KeyReader, Rows, Unread, Visit};
use service::{codec, listing, reply};
use wire::fold::fold;
use wire::http::{Head, Reply, StatusCode};
use wire::xml::XmlWriter;
use wire::{base64, dates, percent};

use super::Call;
use crate::entering::{self, Admission, NodeRead};
use crate::error::FileError;
use crate::model::{Halt, Node, entries_of, refuse, root_key};
use crate::request::flag;
use crate::tree::{Spot, Target, shown_id};
use crate::{Failure, request};

/// The most entries of a page, and how many it has if the request does not say.
const RESULTS_MAX: usize = 5_000;
/// Since this version entries have ids.
const IDS_SINCE: &str = "2020-10-02";
/// Since this version names that XML cannot carry are encoded.
const ENCODED_SINCE: &str = "2021-12-02";
const INCLUDE: [&str; 4] = ["timestamps", "etag", "attributes", "permissionkey"];

#[derive(Clone, PartialEq, Eq, Debug)]
struct ListDirectoriesAndFiles {
    /// Only names that begin like this, whatever the case. Folded.
    prefix: String,
    /// The page begins behind this folded name.
    after: Option<String>,
    max: usize,
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
    request::no_snapshot(head)?;
    Ok((target, list, include))
}

/// The folded name with which the last page ended.
fn after(head: &Head) -> Result<Option<String>, FileError> {
    let Some(text) = head.query.get("marker") else { return Ok(None) };
    let name = base64::decode_url(text).and_then(|bytes| String::from_utf8(bytes).ok());
    name.map(Some).ok_or(FileError::InvalidMarker)
}

/// A page of a directory.
#[derive(Debug)]
struct Page {
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
        let all = entries_of(spot.share.generation, directory);
        let within = all.clone().text_prefix(&self.prefix);
        let mut from = within.clone();
        if spot.is_root() {
            // The entries of the root begin with its own row.
            from = from.max(root_key(directory).next());
        }
        if let Some(name) = &self.after {
            from = from.max(all.text(name).next());
        }
        let mut page = Page { directory: shown_id(spot.share, directory), entries: Vec::new(), next: None };
        let (mut last, mut failed) = (None, None);
        rows.scan(&from, &within.after_all(), self.max + 1, &mut |key, row| {
            if page.entries.len() == self.max {
                page.next = last.take();
                return Visit::Stop;
            }
            match codec::decode(row).and_then(|node| Ok((node, folded_name(key)?))) {
                Ok((node, name)) => {
                    page.entries.push(node);
                    last = Some(name);
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

/// The folded name in the key of an entry.
fn folded_name(key: &[u8]) -> Result<String, Unread> {
    let mut reader = KeyReader::new(key);
    let name = reader.number().and_then(|_| reader.number()).and_then(|_| reader.text());
    name.ok_or_else(|| codec::corrupt("the key of an entry cannot be read"))
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (target, list, include) = parse(call.head)?;
    let (spot, page) = entering::look(call, &target, list).await?;
    let ids: Vec<u64> = page.entries.iter().map(|node| node.id).collect();
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
        xml.leaf_if("Attributes", include.attributes.then(|| node.attributes.to_string()));
        xml.leaf_if("PermissionKey", include.permission_key.then(|| node.permission.to_string()));
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
    if is_encoded {
        attributes.push(("Encoded", "true"));
    }
    xml.open_with("EnumerationResults", &attributes);
}

fn properties(xml: &mut XmlWriter, node: &Node, include: Include) {
    let length = node.file().map(|state| state.length);
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
    head.since(ENCODED_SINCE) && text.contains(|letter: char| letter.is_control() || matches!(letter, '\u{FFFE}' | '\u{FFFF}'))
}
