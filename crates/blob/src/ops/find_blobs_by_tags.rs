//! Find Blobs by Tags: the blobs of an account, or of one container, whose tags are as asked for.
//!
//! The search walks the index of one tag that is asked for, the one with the fewest rows as far as a short look tells, and
//! holds the others against the blob itself. A page is read from one state of the store; it may be shorter than asked for
//! and still have a marker. The marker names the row at which the page ended, and with it the tag that is walked.

use std::collections::{BTreeMap, HashMap};

use concurrency::tag_expression::CONTAINER;
use concurrency::{TagComparison, TagExpression, TagOperator};
use engine::{Key, Rows, Unread, Visit, read};
use service::{RequestError, codec};
use wire::base64;
use wire::http::{Head, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};
use wire::xml::XmlWriter;

use super::Call;
use crate::error::BlobError;
use crate::listing::{self, ROWS_VISITED_MAX};
use crate::model::tags::{Indexed, TagIndexKey, rows_of};
use crate::model::{self, Halt, Pairs, blob_key};
use crate::{Failure, reply};

/// How many rows of each tag are counted to see which has the fewest; more only where all have as many as that.
const LOOK_ROWS: [usize; 3] = [100, 800, 6_400];
/// How many blobs are looked at before the next rows of the index are.
const BATCH_ROWS_MIN: usize = 100;

pub struct FindBlobsByTags {
    account: u64,
    wanted: TagSearch,
    /// The row of the index at which the last page ended.
    after: Option<TagIndexKey>,
    max: usize,
}

/// What the blobs must be tagged with, and where they must be.
#[derive(Clone, PartialEq, Eq, Debug)]
struct TagSearch {
    container: Option<Within>,
    tags: BTreeMap<String, Values>,
}

/// A container that was named: in the path it must be there, in the expression it need not.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Within {
    Path(ContainerName),
    Expression(ContainerName),
    /// A name that no container can have.
    Nowhere,
}

/// The values that a tag may have.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Values {
    One(String),
    Range { from: Option<Bound>, to: Option<Bound> },
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Bound {
    value: String,
    is_in: bool,
}

/// How many different tags a search may ask for, beside the container.
const TAGS_MAX: usize = 10;
const NO_RANGE: &str =
    "Error parsing query: can't have multiple conditions for a single tag unless they define a range";

impl FindBlobsByTags {
    pub fn parse(head: &Head, account: u64, container: Option<ContainerName>) -> Result<FindBlobsByTags, BlobError> {
        const WHERE: &str = "where";
        let text = head.query.get(WHERE);
        let text = text.ok_or(RequestError::MissingRequiredQueryParameter { name: WHERE })?;
        let invalid = |message| BlobError::InvalidTagQuery { message, query: text.to_owned() };
        let wanted = TagSearch::parse(text, container).map_err(invalid)?;
        let after = after(head, account, &wanted)?;
        Ok(FindBlobsByTags { account, wanted, after, max: listing::max_results(head)? })
    }
}

impl TagSearch {
    /// Comparisons that must all hold, or why they cannot be asked for. Of one tag there is one value or one range, and at
    /// least one tag is named: all that is in a container is for a listing to say.
    fn parse(text: &str, path: Option<ContainerName>) -> Result<TagSearch, String> {
        let mut wanted = TagSearch { container: path.map(Within::Path), tags: BTreeMap::new() };
        for comparison in TagExpression::parse_search(text).map_err(|error| error.to_string())? {
            if comparison.key == CONTAINER {
                wanted.within(&comparison)?;
            } else {
                wanted.compare(comparison)?;
            }
        }
        match wanted.tags.len() {
            0 => Err("Error parsing query: at least one tag must be named".to_owned()),
            1..=TAGS_MAX => Ok(wanted),
            _ => Err(format!("Error parsing query: there can be at most {TAGS_MAX} unique tags in a query")),
        }
    }

    fn within(&mut self, comparison: &TagComparison) -> Result<(), String> {
        match (&self.container, comparison.operator) {
            (None, TagOperator::Equal) => {
                let name = ContainerName::parse(&comparison.value);
                self.container = Some(name.map_or(Within::Nowhere, Within::Expression));
                Ok(())
            }
            (None, _) => Err(format!("Error parsing query: {CONTAINER} can only be compared by =")),
            (Some(Within::Path(_)), _) => {
                Err("Error parsing query: Cannot have container in both uri and query".to_owned())
            }
            (Some(Within::Expression(_) | Within::Nowhere), _) => Err(NO_RANGE.to_owned()),
        }
    }

    fn compare(&mut self, comparison: TagComparison) -> Result<(), String> {
        let TagComparison { key, operator, value } = comparison;
        let bound = |value, is_in| Some(Bound { value, is_in });
        let (from, to) = match operator {
            // The grammar of a search does not have it.
            TagOperator::NotEqual => return Err(NO_RANGE.to_owned()),
            TagOperator::Equal => {
                let is_first = self.tags.insert(key, Values::One(value)).is_none();
                return is_first.then_some(()).ok_or_else(|| NO_RANGE.to_owned());
            }
            TagOperator::Greater => (bound(value, false), None),
            TagOperator::AtLeast => (bound(value, true), None),
            TagOperator::Less => (None, bound(value, false)),
            TagOperator::AtMost => (None, bound(value, true)),
        };
        match self.tags.entry(key).or_insert(Values::Range { from: None, to: None }) {
            Values::Range { from: old @ None, .. } if from.is_some() => *old = from,
            Values::Range { to: old @ None, .. } if to.is_some() => *old = to,
            Values::Range { .. } | Values::One(_) => return Err(NO_RANGE.to_owned()),
        }
        Ok(())
    }

    fn holds(&self, tags: &[(String, String)]) -> bool {
        let value_of = |wanted: &str| tags.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.as_str());
        self.tags.iter().all(|(key, values)| value_of(key).is_some_and(|value| values.have(value)))
    }
}

impl Values {
    fn have(&self, value: &str) -> bool {
        match self {
            Values::One(wanted) => value == wanted,
            Values::Range { from, to } => {
                let is_above = |bound: &Bound| value > bound.value.as_str() || (bound.is_in && value == bound.value);
                let is_below = |bound: &Bound| value < bound.value.as_str() || (bound.is_in && value == bound.value);
                from.as_ref().is_none_or(is_above) && to.as_ref().is_none_or(is_below)
            }
        }
    }

    /// The rows of the index that have such a value. Where a range is empty the end may lie before the start.
    fn bounds(&self, tag: &Key) -> (Key, Key) {
        match self {
            Values::One(value) => {
                let all = tag.clone().text(value);
                (all.clone(), all.after_all())
            }
            Values::Range { from, to } => {
                let place = |bound: &Bound, after: bool| {
                    let of_value = tag.clone().text(&bound.value);
                    if after { of_value.after_all() } else { of_value }
                };
                let from = from.as_ref().map_or(tag.clone(), |bound| place(bound, !bound.is_in));
                let to = to.as_ref().map_or(tag.after_all(), |bound| place(bound, bound.is_in));
                (from, to)
            }
        }
    }
}

/// Where the last page ended. A marker of another search is refused.
fn after(head: &Head, account: u64, wanted: &TagSearch) -> Result<Option<TagIndexKey>, BlobError> {
    const NAME: &str = "marker";
    let Some(text) = head.query.get(NAME) else { return Ok(None) };
    let place = base64::decode(text).and_then(|row| TagIndexKey::of(&row));
    let is_ours = |place: &TagIndexKey| {
        let values = wanted.tags.get(&place.key);
        place.account == account && values.is_some_and(|values| values.have(&place.value))
    };
    place.filter(is_ours).map(Some).ok_or_else(|| BlobError::query(NAME, text))
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct TaggedBlob {
    container: String,
    name: String,
    tags: Pairs,
}

#[derive(Default)]
struct Page {
    blobs: Vec<TaggedBlob>,
    /// The row at which the next one begins.
    next: Option<Key>,
}

/// A row of the index.
struct Hit {
    row: Key,
    place: TagIndexKey,
    container: String,
}

impl FindBlobsByTags {
    fn page(&self, rows: &dyn Rows) -> Result<Page, Halt> {
        let generation = match &self.wanted.container {
            None => None,
            Some(Within::Path(name)) => Some(model::generation(rows, self.account, name)?),
            Some(Within::Nowhere) => return Ok(Page::default()),
            Some(Within::Expression(name)) => match model::find_container(rows, self.account, name)? {
                Some(container) => Some(container.generation),
                None => return Ok(Page::default()),
            },
        };
        Ok(self.walk(rows, generation)?)
    }

    fn walk(&self, rows: &dyn Rows, generation: Option<u64>) -> Result<Page, Unread> {
        let tag = self.tag_to_walk(rows)?;
        let (mut from, to) = self.wanted.tags[tag].bounds(&rows_of(self.account, tag));
        if let Some(after) = &self.after {
            let row = rows_of(self.account, tag).text(&after.value).number(after.generation).text(&after.name);
            from = from.max(row.next());
        }
        let mut page = Page::default();
        let mut living = Living { account: self.account, names: HashMap::new() };
        let mut visited = 0;
        loop {
            let wanted = (self.max - page.blobs.len()).max(BATCH_ROWS_MIN);
            let hits = hits(rows, &from, &to, generation, wanted)?;
            let is_last = hits.len() < wanted;
            for hit in hits {
                visited += 1;
                from = hit.row.next();
                if page.blobs.len() == self.max {
                    return Ok(page);
                }
                let row = hit.row.clone();
                page.blobs.extend(self.found(rows, hit, &mut living)?);
                // Set aside for the case that the page ends here.
                page.next = Some(row);
            }
            if is_last {
                return Ok(Page { next: None, ..page });
            }
            if visited >= ROWS_VISITED_MAX || page.blobs.len() == self.max {
                return Ok(page);
            }
        }
    }

    /// The tag with the fewest rows, or the one that the pages before this one walked.
    fn tag_to_walk(&self, rows: &dyn Rows) -> Result<&str, Unread> {
        if let Some(after) = &self.after {
            return Ok(&after.key);
        }
        let mut fewest = "";
        for most in LOOK_ROWS {
            let mut least = most;
            for (tag, values) in self.wanted.tags.iter().rev() {
                let (from, to) = values.bounds(&rows_of(self.account, tag));
                // One tag is not compared with any other.
                let count = if self.wanted.tags.len() == 1 { 0 } else { count(rows, &from, &to, most)? };
                if count <= least {
                    (least, fewest) = (count, tag);
                }
            }
            if least < most {
                break;
            }
        }
        Ok(fewest)
    }

    /// The blob of a row, if its container is there and its other tags are as asked for.
    fn found(&self, rows: &dyn Rows, hit: Hit, living: &mut Living) -> Result<Option<TaggedBlob>, Unread> {
        let TagIndexKey { generation, name, .. } = hit.place;
        let Ok(blob_name) = BlobName::parse(&name) else { return Ok(None) };
        let Some(container) = living.name(rows, generation, &hit.container)? else { return Ok(None) };
        let Some(blob) = model::find_blob(rows, &blob_key(generation, &blob_name))? else { return Ok(None) };
        let Some(state) = blob.committed.filter(|state| self.wanted.holds(state.tags())) else { return Ok(None) };
        let asked_for = |(key, _): &&(String, String)| self.wanted.tags.contains_key(key);
        let tags = state.tags().iter().filter(asked_for).cloned().collect();
        Ok(Some(TaggedBlob { container, name, tags }))
    }
}

/// Which containers are there, and under which names, remembered for one page.
struct Living {
    account: u64,
    names: HashMap<u64, Option<String>>,
}

impl Living {
    fn name(&mut self, rows: &dyn Rows, generation: u64, name: &str) -> Result<Option<String>, Unread> {
        if let Some(known) = self.names.get(&generation) {
            return Ok(known.clone());
        }
        let Ok(container) = ContainerName::parse(name) else { return Ok(None) };
        let found = model::name_of_generation(rows, self.account, generation, &container)?;
        let name = found.map(|name| name.as_str().to_owned());
        self.names.insert(generation, name.clone());
        Ok(name)
    }
}

fn count(rows: &dyn Rows, from: &Key, to: &Key, most: usize) -> Result<usize, Unread> {
    let mut count = 0;
    if from < to {
        rows.scan(from, to, most, &mut |_, _| {
            count += 1;
            if count < most { Visit::Next } else { Visit::Stop }
        })?;
    }
    Ok(count)
}

/// The next rows of the index, of one container if a generation is given: rows of others are jumped over.
fn hits(rows: &dyn Rows, from: &Key, to: &Key, generation: Option<u64>, most: usize) -> Result<Vec<Hit>, Unread> {
    let mut hits = Vec::new();
    let mut failed = None;
    if from >= to {
        return Ok(hits);
    }
    rows.scan(from, to, most, &mut |row, value| {
        let read = || Ok((TagIndexKey::read(row)?, codec::decode::<Indexed>(value)?));
        let (place, indexed) = match read() {
            Ok(found) => found,
            Err(error) => {
                failed = Some(error);
                return Visit::Stop;
            }
        };
        let of_value = rows_of(place.account, &place.key).text(&place.value);
        match generation {
            Some(wanted) if place.generation < wanted => return Visit::SkipTo(of_value.number(wanted)),
            Some(wanted) if place.generation > wanted => return Visit::SkipTo(of_value.after_all()),
            Some(_) | None => {}
        }
        hits.push(Hit { row: Key::from_bytes(row), place, container: indexed.container });
        if hits.len() < most { Visit::Next } else { Visit::Stop }
    })?;
    failed.map_or(Ok(hits), Err)
}

impl FindBlobsByTags {
    pub async fn run(self, call: Call<'_>) -> Result<Reply, Failure> {
        let page = read(call.engine, move |rows, _| self.page(rows)).await?;
        Ok(reply::xml(StatusCode::OK, document(call.head, &page)))
    }
}

fn document(head: &Head, page: &Page) -> XmlWriter {
    let mut xml = XmlWriter::document();
    xml.open_with("EnumerationResults", &[("ServiceEndpoint", &format!("{}/", head.endpoint))]);
    for (element, parameter) in [("Where", "where"), ("Marker", "marker"), ("MaxResults", "maxresults")] {
        xml.leaf_if(element, head.query.get(parameter));
    }
    xml.open("Blobs");
    for found in &page.blobs {
        xml.open("Blob").name(&found.name).leaf("ContainerName", &found.container);
        reply::tags_element(&mut xml, &found.tags);
        xml.close("Blob");
    }
    xml.close("Blobs");
    xml.leaf("NextMarker", page.next.as_ref().map(|row| base64::encode(row.as_bytes())).unwrap_or_default());
    xml.close("EnumerationResults");
    xml
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    FindBlobsByTags::parse(call.head, call.account, None)?.run(call).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, between, refusal};
    use std::cell::Cell;

    async fn put(bench: &Bench, url: &str, tags: &str) {
        let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-tags", tags)];
        bench.call("PUT", url, &headers, b"x").await.unwrap();
    }

    async fn ask(bench: &Bench, url: &str, text: &str) -> String {
        bench.text("GET", &format!("{url}comp=blobs&where={}", wire::percent::encode_value(text))).await
    }

    fn names(page: &str) -> Vec<String> {
        let pairs = between(page, "<Name>", "</Name>").into_iter().zip(between(page, "<ContainerName>", "</"));
        pairs.map(|(name, container)| format!("{container}/{name}")).collect()
    }

    async fn find(bench: &Bench, text: &str) -> Vec<String> {
        names(&ask(bench, "?", text).await)
    }

    async fn bench() -> Bench {
        let bench = Bench::with_container().await;
        bench.call("PUT", "other?restype=container", &[], b"").await.unwrap();
        put(&bench, "cont/a", "colour=red&size=1").await;
        put(&bench, "cont/b", "colour=red&size=2").await;
        put(&bench, "cont/c", "colour=blue&size=3").await;
        put(&bench, "other/a", "colour=red&size=3").await;
        put(&bench, "other/d", "Colour=red").await;
        bench.put("cont/plain", b"x").await;
        bench
    }

    #[tokio::test]
    async fn by_value_range_and_container() {
        let bench = bench().await;
        assert_eq!(find(&bench, "colour='red'").await, ["cont/a", "cont/b", "other/a"]);
        assert_eq!(find(&bench, "colour='red' AND size='2'").await, ["cont/b"]);
        assert_eq!(find(&bench, "colour='red' AND size > '1'").await, ["cont/b", "other/a"]);
        assert_eq!(find(&bench, "size >= '2' AND size < '3'").await, ["cont/b"]);
        assert_eq!(find(&bench, "size > '1' AND size <= '3'").await, ["cont/b", "cont/c", "other/a"]);
        assert_eq!(find(&bench, "size < '2'").await, ["cont/a"]);
        assert_eq!(find(&bench, "size > '3' AND size < '1'").await, Vec::<String>::new());
        assert_eq!(find(&bench, "colour='green'").await, Vec::<String>::new());
        assert_eq!(find(&bench, "\"Colour\"='red'").await, ["other/d"]);
        assert_eq!(find(&bench, "@container='other' AND colour='red'").await, ["other/a"]);
        assert_eq!(find(&bench, "@container='other' AND size>'0'").await, ["other/a"]);
        assert_eq!(find(&bench, "@container='gone' AND colour='red'").await, Vec::<String>::new());
        assert_eq!(find(&bench, "@container='No Name' AND colour='red'").await, Vec::<String>::new());
        assert_eq!(names(&ask(&bench, "cont?restype=container&", "size>='2'").await), ["cont/b", "cont/c"]);
        // Only the tags that were asked for are told.
        let page = ask(&bench, "?", "size='1'").await;
        assert!(page.contains("<Tags><TagSet><Tag><Key>size</Key><Value>1</Value></Tag></TagSet></Tags>"), "{page}");
        assert!(page.contains("<Where>size='1'</Where>") && page.contains("<NextMarker />"), "{page}");
    }

    #[tokio::test]
    async fn in_pages_of_any_size() {
        let bench = bench().await;
        for (text, all) in [
            ("colour='red'", vec!["cont/a", "cont/b", "other/a"]),
            ("size>'0'", vec!["cont/a", "cont/b", "cont/c", "other/a"]),
            ("colour='red' AND size>'1'", vec!["cont/b", "other/a"]),
        ] {
            for max in 1..=5 {
                let (mut seen, mut marker, mut pages) = (Vec::new(), String::new(), 0);
                loop {
                    let query = format!("?maxresults={max}&marker={}&", wire::percent::encode_value(&marker));
                    let page = ask(&bench, &query, text).await;
                    let found = names(&page);
                    assert!(found.len() <= max);
                    seen.extend(found);
                    pages += 1;
                    marker = between(&page, "<NextMarker>", "</NextMarker>").first().map_or("", |m| *m).to_owned();
                    if marker.is_empty() {
                        break;
                    }
                }
                assert_eq!(seen, all, "{text} by {max}");
                assert!(pages <= all.len() / max + 3, "{text} by {max} took {pages} pages");
            }
        }
    }

    #[tokio::test]
    async fn what_is_gone_is_not_found() {
        let bench = bench().await;
        bench.put("cont/a", b"untagged").await;
        put(&bench, "cont/b", "colour=blue").await;
        assert_eq!(find(&bench, "colour='red'").await, ["other/a"]);
        assert_eq!(find(&bench, "colour='blue'").await, ["cont/b", "cont/c"]);
        bench.call("PUT", "cont/b?comp=tags", &[], b"<Tags><TagSet/></Tags>").await.unwrap();
        bench.call("DELETE", "cont/c", &[], b"").await.unwrap();
        assert_eq!(find(&bench, "colour='blue'").await, Vec::<String>::new());
        bench.call("DELETE", "other?restype=container", &[], b"").await.unwrap();
        assert_eq!(find(&bench, "colour='red'").await, Vec::<String>::new());
        // A container of the same name is another one.
        bench.call("PUT", "other?restype=container", &[], b"").await.unwrap();
        assert_eq!(find(&bench, "colour='red'").await, Vec::<String>::new());
        put(&bench, "other/new", "colour=red").await;
        assert_eq!(find(&bench, "colour='red'").await, ["other/new"]);
        bench.sweep().await;
        assert_eq!(find(&bench, "colour='red'").await, ["other/new"]);
        for name in ["cont", "other"] {
            bench.call("DELETE", &format!("{name}?restype=container"), &[], b"").await.unwrap();
        }
        bench.sweep().await;
        assert_eq!(bench.figures(), (0, 0));
    }

    #[tokio::test]
    async fn a_snapshot_is_not_found_and_keeps_nothing_alive() {
        let bench = Bench::with_container().await;
        put(&bench, "cont/a", "k=old").await;
        bench.call("PUT", "cont/a?comp=snapshot", &[], b"").await.unwrap();
        put(&bench, "cont/a", "k=new").await;
        assert_eq!(find(&bench, "k='old'").await, Vec::<String>::new());
        assert_eq!(find(&bench, "k='new'").await, ["cont/a"]);
    }

    #[tokio::test]
    async fn what_comes_back_is_found_again_and_an_earlier_version_never() {
        let mut bench = Bench::with_container().await;
        bench.settings.blob_soft_delete_days = Some(7);
        put(&bench, "cont/a", "k=soft").await;
        bench.call("DELETE", "cont/a", &[], b"").await.unwrap();
        assert_eq!(find(&bench, "k='soft'").await, Vec::<String>::new());
        bench.call("PUT", "cont/a?comp=undelete", &[], b"").await.unwrap();
        assert_eq!(find(&bench, "k='soft'").await, ["cont/a"]);
        put(&bench, "cont/a", "k=other").await;
        assert_eq!(find(&bench, "k='soft'").await, Vec::<String>::new());

        bench.settings.versioning = true;
        put(&bench, "cont/v", "k=old").await;
        let told = bench.call("HEAD", "cont/v", &[], b"").await.unwrap();
        let old = crate::testing::header(&told, "x-ms-version-id").unwrap().to_owned();
        put(&bench, "cont/v", "k=new").await;
        assert_eq!(find(&bench, "k='old'").await, Vec::<String>::new());
        assert_eq!(find(&bench, "k='new'").await, ["cont/v"]);
        // A version has tags of its own, which can be set, and is not found by them either.
        let url = format!("cont/v?comp=tags&versionid={old}");
        assert!(bench.text("GET", &url).await.contains("<Value>old</Value>"));
        let set = b"<Tags><TagSet><Tag><Key>k</Key><Value>set</Value></Tag></TagSet></Tags>";
        bench.call("PUT", &url, &[], set).await.unwrap();
        assert!(bench.text("GET", &url).await.contains("<Value>set</Value>"));
        assert_eq!(find(&bench, "k='set'").await, Vec::<String>::new());
        bench.call("DELETE", "cont/v", &[], b"").await.unwrap();
        assert_eq!(find(&bench, "k='new'").await, Vec::<String>::new());
        bench.call("DELETE", "cont?restype=container", &[], b"").await.unwrap();
        bench.advance(8 * 24 * 3600).await;
        bench.sweep().await;
        assert_eq!(bench.figures(), (0, 0));
    }

    #[tokio::test]
    async fn refusals() {
        let bench = bench().await;
        for text in [
            "colour",
            "colour<>'red'",
            "colour='red' OR size='1'",
            "colour='red' AND colour='blue'",
            "size>'1' AND size>'2'",
            "size='1' AND size>'0'",
            "@container='cont'",
            "@container>'cont' AND size='1'",
            "@container='cont' AND @container='other' AND size='1'",
            "@other='cont' AND size='1'",
        ] {
            let url = format!("?comp=blobs&where={}", wire::percent::encode_value(text));
            let reply = refusal(bench.call("GET", &url, &[], b"").await).to_reply();
            assert_eq!((reply.status, reply.code), (400, "InvalidQueryParameterValue"), "{text}");
            assert!(reply.message.starts_with("Error parsing query"), "{text}: {}", reply.message);
            assert_eq!(reply.details[1], ("QueryParameterValue", text.to_owned()));
        }
        let missing = bench.call("GET", "?comp=blobs", &[], b"").await;
        assert_eq!(refusal(missing), RequestError::MissingRequiredQueryParameter { name: "where" }.into());
        let gone = bench.call("GET", "gone?restype=container&comp=blobs&where=a%3D%27b%27", &[], b"").await;
        assert_eq!(refusal(gone), BlobError::ContainerNotFound);
        let inside = "cont?restype=container&comp=blobs&where=%40container%3D%27cont%27%20AND%20a%3D%27b%27";
        let refused = refusal(bench.call("GET", inside, &[], b"").await);
        let message = "Error parsing query: Cannot have container in both uri and query".to_owned();
        let query = "@container='cont' AND a='b'".to_owned();
        assert_eq!(refused, BlobError::InvalidTagQuery { message, query });
        // Two faults: what is wrong with the request comes before what is not there.
        let both = bench.call("GET", "gone?restype=container&comp=blobs&where=a", &[], b"").await;
        let message = "Error parsing query at or near character position 2: unexpected ''".to_owned();
        assert_eq!(refusal(both), BlobError::InvalidTagQuery { message, query: "a".to_owned() });
        // A marker of another search, and of nothing.
        let page = ask(&bench, "?maxresults=1&", "colour='red'").await;
        let marker = wire::percent::encode_value(between(&page, "<NextMarker>", "<")[0]).into_owned();
        for (marker, text) in [(marker.as_str(), "size%3D%271%27"), ("x", "a%3D%27b%27"), ("AAAA", "a%3D%27b%27")] {
            let url = format!("?comp=blobs&where={text}&marker={marker}");
            let refused = refusal(bench.call("GET", &url, &[], b"").await);
            assert!(
                matches!(refused, BlobError::Request(RequestError::InvalidQueryParameterValue { name: "marker", .. })),
                "{refused:?}"
            );
        }
    }

    /// Rows that count how many of them were looked at.
    struct Counted<'a>(&'a dyn Rows, &'a Cell<usize>);

    impl Rows for Counted<'_> {
        fn get(&self, key: &Key) -> Result<Option<bytes::Bytes>, Unread> {
            self.1.set(self.1.get() + 1);
            self.0.get(key)
        }

        fn scan(
            &self,
            from: &Key,
            to: &Key,
            about: usize,
            visit: &mut dyn FnMut(&[u8], &bytes::Bytes) -> Visit,
        ) -> Result<(), Unread> {
            self.0.scan(from, to, about, &mut |key, row| {
                self.1.set(self.1.get() + 1);
                visit(key, row)
            })
        }

        fn content(&self, id: engine::ContentId) -> Result<engine::Content, Unread> {
            self.0.content(id)
        }
    }

    /// A search costs what it finds, not what there is.
    #[tokio::test]
    async fn the_rarest_tag_is_walked() {
        let bench = Bench::with_container().await;
        bench.call("PUT", "other?restype=container", &[], b"").await.unwrap();
        for n in 0..1_000 {
            put(&bench, &format!("cont/{n:04}"), &format!("all=1&n={n:04}&kind={}", n % 10)).await;
        }
        put(&bench, "other/x", "all=1&n=0500&kind=0").await;
        let visited = async |text: &str, expected: usize| {
            let url = format!("?comp=blobs&where={}", wire::percent::encode_value(text));
            let op = FindBlobsByTags::parse(&crate::testing::request("GET", &url, &[]), 1, None).unwrap();
            let found = read::<_, BlobError, _>(&*bench.engine, move |rows, _| {
                let visited = Cell::new(0);
                let page = op.page(&Counted(rows, &visited))?;
                Ok((page.blobs.len(), visited.get()))
            });
            let (found, visited) = found.await.unwrap();
            assert_eq!(found, expected, "{text}");
            visited
        };
        assert!(visited("n='0500'", 2).await < 10);
        // The tag that all have is left aside, whichever stands first.
        assert!(visited("all='1' AND n='0123'", 1).await < LOOK_ROWS[0] + 10);
        assert!(visited("n>='0123' AND n<='0125' AND all='1'", 3).await < LOOK_ROWS[0] + 20);
        // Where both are many the look goes on until one of them ends.
        assert!(visited("all='1' AND kind='7'", 100).await < 2 * LOOK_ROWS[0] + 900 + 210);
        // Rows of the other container are jumped over.
        assert!(visited("@container='other' AND all='1'", 1).await < 10);
    }

    #[tokio::test]
    async fn ten_different_tags_beside_the_container_and_no_more() {
        let bench = bench().await;
        let of = |count: usize| {
            let tags = (0..count).map(|n| format!(" AND k{n}>='a' AND k{n}<'b'")).collect::<String>();
            format!("@container='cont'{tags}")
        };
        assert_eq!(find(&bench, &of(10)).await, Vec::<String>::new());
        let url = format!("?comp=blobs&where={}", wire::percent::encode_value(&of(11)));
        let message = "Error parsing query: there can be at most 10 unique tags in a query".to_owned();
        let refused = refusal(bench.call("GET", &url, &[], b"").await);
        assert_eq!(refused, BlobError::InvalidTagQuery { message, query: of(11) });
    }
}
