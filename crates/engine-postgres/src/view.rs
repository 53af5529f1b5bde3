//! What a function sees: rows loaded from one snapshot, under what earlier functions of the same batch have changed.
//!
//! A row that is not loaded is noted as wanted, and the function ends with `NotYet`; the next load brings it.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use bytes::Bytes;
use engine::{Changes, Content, ContentId, EngineError, Key, Part, Rows, Staged, Unread, Visit};

use crate::contents::{Found, Reader, Source};
use crate::node::ReadHold;

/// A row as it is stored: its version and its value.
pub type Row = (i64, Bytes);

/// Rows and contents of one snapshot, as far as they were asked for.
#[derive(Debug, Default)]
pub struct Loaded {
    points: HashMap<Vec<u8>, Option<Row>>,
    /// Ranges by where they begin; no two overlap.
    ranges: BTreeMap<Vec<u8>, LoadedRange>,
    contents: HashMap<u64, Option<Arc<Found>>>,
    /// How many ranges were loaded.
    range_loads: u32,
    /// The latest version among the rows.
    pub newest: i64,
}

#[derive(Debug)]
struct LoadedRange {
    to: Vec<u8>,
    rows: BTreeMap<Vec<u8>, Row>,
}

/// What a function asked for and did not get.
#[derive(Debug, Default)]
pub struct Wanted {
    pub points: Vec<Vec<u8>>,
    /// From, to, and how many rows at most.
    pub ranges: Vec<(Vec<u8>, Vec<u8>, usize)>,
    pub contents: Vec<u64>,
}

impl Wanted {
    pub fn is_empty(&self) -> bool {
        self.points.is_empty() && self.ranges.is_empty() && self.contents.is_empty()
    }
}

/// What a function has seen of the snapshot: a commit holds only if it is still so.
#[derive(Debug, Default)]
pub struct Seen {
    /// Rows by key; zero stands for one that was not there.
    pub points: BTreeMap<Vec<u8>, i64>,
    pub ranges: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Seen {
    pub fn add(&mut self, other: Seen) {
        self.points.extend(other.points);
        self.ranges.extend(other.ranges);
    }
}

impl Loaded {
    pub fn add_point(&mut self, key: Vec<u8>, row: Option<Row>) {
        self.newest = self.newest.max(row.as_ref().map_or(0, |(version, _)| *version));
        self.points.insert(key, row);
    }

    /// `rows` are all of the range if there are fewer than `limit`, else its first.
    pub fn add_range(&mut self, from: Vec<u8>, to: Vec<u8>, limit: usize, rows: Vec<(Vec<u8>, Row)>) {
        self.range_loads += 1;
        self.newest = rows.iter().fold(self.newest, |newest, (_, (version, _))| newest.max(*version));
        let mut end = to;
        if rows.len() >= limit
            && let Some((last, _)) = rows.last()
        {
            end = after(last);
        }
        if let Some((next, _)) = self.ranges.range(from.clone()..).next()
            && *next < end
        {
            end.clone_from(next);
        }
        let rows = rows.into_iter().take_while(|(key, _)| *key < end).collect();
        self.ranges.insert(from, LoadedRange { to: end, rows });
    }

    pub fn add_content(&mut self, id: u64, found: Option<Arc<Found>>) {
        self.contents.insert(id, found);
    }

    /// Gives the readers handed out ahead what they stand for. `false`: the function must run again.
    pub fn fulfil(&self, promised: &[Arc<Reader>]) -> bool {
        promised.iter().all(|reader| match self.contents.get(&reader.id()) {
            Some(Some(found)) => reader.fulfil(Arc::clone(found)),
            Some(None) | None => false,
        })
    }

    fn covering(&self, at: &[u8]) -> Option<&LoadedRange> {
        let (_, range) = self.ranges.range::<[u8], _>((Unbounded, Included(at))).next_back()?;
        (at < range.to.as_slice()).then_some(range)
    }

    fn get(&self, key: &[u8]) -> Option<Option<&Row>> {
        if let Some(row) = self.points.get(key) {
            return Some(row.as_ref());
        }
        Some(self.covering(key)?.rows.get(key))
    }

    /// How many rows a range held, and the sum of their versions. Every version is another, so this tells ranges apart.
    pub fn digest(&self, from: &[u8], to: &[u8]) -> (i64, i128) {
        let (mut count, mut sum) = (0, 0);
        let first = self.ranges.range::<[u8], _>((Unbounded, Included(from))).next_back();
        let begin = first.map_or(from, |(begin, _)| begin.as_slice()).min(from);
        for (_, range) in self.ranges.range::<[u8], _>((Included(begin), Excluded(to))) {
            let rows = range.rows.range::<[u8], _>((Included(from), Excluded(to)));
            for (_, (version, _)) in rows {
                count += 1;
                sum += i128::from(*version);
            }
        }
        (count, sum)
    }
}

/// What the functions of a batch have changed so far.
#[derive(Debug, Default)]
pub struct Overlay {
    /// The newest value of each row, and the stamp of the function that wrote it.
    pub rows: BTreeMap<Vec<u8>, (i64, Option<Bytes>)>,
    pub contents: HashMap<u64, Staged>,
    pub dropped: HashSet<u64>,
    /// How many bytes the commit will carry.
    pub bytes: usize,
}

impl Overlay {
    pub fn apply(&mut self, changes: Changes, stamp: i64) {
        for (key, value) in changes.rows {
            self.bytes += key.as_bytes().len() + value.as_ref().map_or(0, Bytes::len);
            self.rows.insert(key.as_bytes().to_vec(), (stamp, value));
        }
        for staged in changes.contents {
            if let Part::Inline(bytes) = staged.part() {
                self.bytes += bytes.len();
            }
            self.contents.insert(staged.id().0, staged);
        }
        self.dropped.extend(changes.dropped.into_iter().map(|id| id.0));
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.contents.is_empty() && self.dropped.is_empty()
    }
}

/// One run of a function over one state.
pub struct View<'a> {
    pub loaded: &'a Loaded,
    pub overlay: &'a Overlay,
    pub source: &'a Source,
    pub hold: &'a Arc<ReadHold>,
    pub wanted: RefCell<Wanted>,
    pub seen: RefCell<Seen>,
    /// Readers handed out before their content was loaded.
    pub promised: RefCell<Vec<Arc<Reader>>>,
    /// Content ids that were asked for in this run, so that each is wanted once.
    asked: RefCell<HashMap<u64, Content>>,
}

impl<'a> View<'a> {
    pub fn new(loaded: &'a Loaded, overlay: &'a Overlay, source: &'a Source, hold: &'a Arc<ReadHold>) -> View<'a> {
        View {
            loaded,
            overlay,
            source,
            hold,
            wanted: RefCell::default(),
            seen: RefCell::default(),
            promised: RefCell::default(),
            asked: RefCell::default(),
        }
    }

    fn want_range(&self, from: &[u8], to: &[u8], about: usize) -> Unread {
        let rows = engine::loads::rows_per_load(about, self.loaded.range_loads);
        self.wanted.borrow_mut().ranges.push((from.to_vec(), to.to_vec(), rows));
        Unread::NotYet
    }

    fn saw_range(&self, from: &[u8], to: &[u8]) {
        if from < to {
            self.seen.borrow_mut().ranges.push((from.to_vec(), to.to_vec()));
        }
    }
}

/// The first key after `key`.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

impl Rows for View<'_> {
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Unread> {
        let key = key.as_bytes();
        if let Some((_, value)) = self.overlay.rows.get(key) {
            return Ok(value.clone());
        }
        let Some(row) = self.loaded.get(key) else {
            self.wanted.borrow_mut().points.push(key.to_vec());
            return Err(Unread::NotYet);
        };
        self.seen.borrow_mut().points.insert(key.to_vec(), row.map_or(0, |(version, _)| *version));
        Ok(row.map(|(_, value)| value.clone()))
    }

    fn scan(
        &self,
        from: &Key,
        to: &Key,
        about: usize,
        visit: &mut dyn FnMut(&[u8], &Bytes) -> Visit,
    ) -> Result<(), Unread> {
        let to = to.as_bytes();
        let mut at = from.as_bytes().to_vec();
        // Where what was looked at without a gap begins.
        let mut began = at.clone();
        while at.as_slice() < to {
            let Some(range) = self.loaded.covering(&at) else { return Err(self.want_range(&at, to, about)) };
            let end = range.to.as_slice().min(to);
            let mut skip = None;
            for (key, value) in merged(range, self.overlay, &at, end) {
                match visit(key, value) {
                    Visit::Next => {}
                    Visit::SkipTo(next) => {
                        self.saw_range(&began, &after(key));
                        skip = Some(next.as_bytes().to_vec());
                        break;
                    }
                    Visit::Stop => {
                        self.saw_range(&began, &after(key));
                        return Ok(());
                    }
                }
            }
            match skip {
                Some(next) => {
                    at.clone_from(&next);
                    began = next;
                }
                None => at = end.to_vec(),
            }
        }
        self.saw_range(&began, to);
        Ok(())
    }

    fn content(&self, id: ContentId) -> Result<Content, Unread> {
        let missing = || EngineError::Corrupt(format!("content {} is not there", id.0));
        if self.overlay.dropped.contains(&id.0) {
            return Err(missing().into());
        }
        if let Some(content) = self.asked.borrow().get(&id.0) {
            return Ok(content.clone());
        }
        let reader = if let Some(staged) = self.overlay.contents.get(&id.0) {
            Arc::new(Reader::new(self.source, id.0, Some(Found::staged(staged)?), Arc::clone(self.hold)))
        } else {
            match self.loaded.contents.get(&id.0) {
                Some(Some(found)) => {
                    Arc::new(Reader::new(self.source, id.0, Some(Arc::clone(found)), Arc::clone(self.hold)))
                }
                Some(None) => return Err(missing().into()),
                None => {
                    let reader = Arc::new(Reader::new(self.source, id.0, None, Arc::clone(self.hold)));
                    self.wanted.borrow_mut().contents.push(id.0);
                    self.promised.borrow_mut().push(Arc::clone(&reader));
                    reader
                }
            }
        };
        let content = Content::new(reader);
        self.asked.borrow_mut().insert(id.0, content.clone());
        Ok(content)
    }
}

/// The rows of a loaded range under the overlay, in order.
fn merged<'r>(
    range: &'r LoadedRange,
    overlay: &'r Overlay,
    from: &[u8],
    to: &[u8],
) -> impl Iterator<Item = (&'r [u8], &'r Bytes)> {
    let bounds = (Included(from), Excluded(to));
    let mut below = range.rows.range::<[u8], _>(bounds).peekable();
    let mut above = overlay.rows.range::<[u8], _>(bounds).peekable();
    std::iter::from_fn(move || {
        loop {
            let (lower, upper) = (below.peek(), above.peek());
            let take_upper = match (lower, upper) {
                (None, None) => return None,
                (Some(_), None) => false,
                (None, Some(_)) => true,
                (Some((low, _)), Some((up, _))) => {
                    if low == up {
                        below.next();
                        continue;
                    }
                    up < low
                }
            };
            if take_upper {
                let (key, (_, value)) = above.next()?;
                if let Some(value) = value {
                    return Some((key.as_slice(), value));
                }
            } else {
                let (key, (_, value)) = below.next()?;
                return Some((key.as_slice(), value));
            }
        }
    })
}
