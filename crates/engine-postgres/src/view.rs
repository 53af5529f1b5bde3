//! What a function sees: rows loaded from one snapshot, under what earlier functions of the same batch have changed.
//!
//! A row that is not loaded is noted as wanted, and the function ends with `NotYet`; the next load brings it. If there is a
//! hint (`engine::hints`) the function sees that instead and goes on to what it wants next. The load brings all of it, and the
//! run counts for nothing.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use bytes::Bytes;
use engine::hints::Hints;
use engine::{Changes, Content, ContentId, EngineError, Key, PREFETCH_KEYS_MAX, Part, Rows, Staged, Unread, Visit};

use crate::contents::{Reader, Source, StoredContent};
use crate::node::ReadHold;

/// A row as it is stored: its version and its value.
pub type Row = (i64, Bytes);

/// Rows and contents of one snapshot, as far as they were asked for.
#[derive(Debug, Default)]
pub struct LoadedRows {
    points: HashMap<Vec<u8>, Option<Row>>,
    /// Ranges by where they begin; no two overlap.
    ranges: BTreeMap<Vec<u8>, LoadedRange>,
    contents: HashMap<u64, Option<Arc<StoredContent>>>,
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

/// The rows and contents that a function asked for and that are not loaded.
#[derive(Debug, Default)]
pub struct MissingRows {
    pub points: BTreeSet<Vec<u8>>,
    /// Announced by the function: loaded along with what is wanted, never alone.
    announced: BTreeSet<Vec<u8>>,
    /// From, to, and how many rows at most.
    pub ranges: Vec<(Vec<u8>, Vec<u8>, usize)>,
    pub contents: Vec<u64>,
}

impl MissingRows {
    pub fn is_empty(&self) -> bool {
        self.points.is_empty() && self.ranges.is_empty() && self.contents.is_empty()
    }

    /// The rows to load by their keys.
    pub fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.points.union(&self.announced)
    }

    /// How many rows the load can bring.
    pub fn rows(&self) -> usize {
        let limits = self.ranges.iter().map(|(_, _, limit)| *limit);
        limits.fold(self.points.len() + self.announced.len(), usize::saturating_add)
    }

    /// The rows that another function wants, too. Contents are for the function alone that reads them.
    pub fn add_rows(&mut self, other: MissingRows) {
        self.points.extend(other.points);
        self.announced.extend(other.announced);
        for (from, to, limit) in other.ranges {
            match self.ranges.iter_mut().find(|known| (&known.0, &known.1) == (&from, &to)) {
                Some(known) => known.2 = known.2.max(limit),
                None => self.ranges.push((from, to, limit)),
            }
        }
    }
}

/// What a function has seen of the snapshot: a commit holds only if it is still so.
#[derive(Debug, Default)]
pub struct ReadSet {
    /// Rows by key; zero stands for one that was not there.
    pub points: BTreeMap<Vec<u8>, i64>,
    pub ranges: Vec<(Vec<u8>, Vec<u8>)>,
}

impl ReadSet {
    pub fn add(&mut self, other: ReadSet) {
        self.points.extend(other.points);
        self.ranges.extend(other.ranges);
    }
}

impl LoadedRows {
    pub fn add_point(&mut self, key: Vec<u8>, row: Option<Row>) {
        self.newest = self.newest.max(row.as_ref().map_or(0, |(version, _)| *version));
        self.points.insert(key, row);
    }

    /// `rows` are all of the range if there are fewer than `limit`, else its first. What is loaded of it already stays, or
    /// its rows would count twice.
    pub fn add_range(&mut self, from: Vec<u8>, to: Vec<u8>, limit: usize, rows: Vec<(Vec<u8>, Row)>) {
        self.range_loads += 1;
        self.newest = rows.iter().fold(self.newest, |newest, (_, (version, _))| newest.max(*version));
        let begin = self.covering(&from).map_or(from, |range| range.to.clone());
        let mut end = to;
        if rows.len() >= limit
            && let Some((last, _)) = rows.last()
        {
            end = after(last);
        }
        if let Some((next, _)) = self.ranges.range(begin.clone()..).next()
            && *next < end
        {
            end.clone_from(next);
        }
        if begin < end {
            let rows = rows.into_iter().filter(|(key, _)| begin <= *key && *key < end).collect();
            self.ranges.insert(begin, LoadedRange { to: end, rows });
        }
    }

    pub fn add_content(&mut self, id: u64, found: Option<Arc<StoredContent>>) {
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

    pub fn get(&self, key: &[u8]) -> Option<Option<&Row>> {
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
    loaded: &'a LoadedRows,
    overlay: &'a Overlay,
    source: &'a Source,
    hints: &'a Hints,
    hold: &'a Arc<ReadHold>,
    noted: RefCell<RunNotes>,
    /// Content ids that were asked for in this run, so that each is wanted once.
    asked: RefCell<HashMap<u64, Content>>,
}

/// What is known after a run.
#[derive(Debug, Default)]
pub struct RunNotes {
    pub wanted: MissingRows,
    pub seen: ReadSet,
    /// Readers handed out before their content was loaded.
    pub promised: Vec<Arc<Reader>>,
    /// Rows that were hints.
    guessed: Vec<Vec<u8>>,
}

impl RunNotes {
    /// It was run on hints, so what the function said counts for nothing.
    pub fn is_void(&self) -> bool {
        !self.guessed.is_empty()
    }

    /// What it wanted is loaded: the rows that it was shown led to more.
    pub fn teach(&self, hints: &Hints, loaded: &LoadedRows) {
        let shown = self.seen.points.keys().chain(&self.guessed);
        hints.learn(shown, |key| loaded.get(key).flatten().map(|(_, value)| value.clone()));
    }
}

impl<'a> View<'a> {
    pub fn new(
        loaded: &'a LoadedRows,
        overlay: &'a Overlay,
        source: &'a Source,
        hints: &'a Hints,
        hold: &'a Arc<ReadHold>,
    ) -> View<'a> {
        View { loaded, overlay, source, hints, hold, noted: RefCell::default(), asked: RefCell::default() }
    }

    pub fn is_void(&self) -> bool {
        self.noted.borrow().is_void()
    }

    pub fn into_noted(self) -> RunNotes {
        self.noted.into_inner()
    }

    fn has(&self, key: &[u8]) -> bool {
        self.overlay.rows.contains_key(key) || self.loaded.get(key).is_some()
    }

    fn want_range(&self, from: &[u8], to: &[u8], about: usize) -> Unread {
        let rows = engine::rows_per_load(about, self.loaded.range_loads);
        self.noted.borrow_mut().wanted.ranges.push((from.to_vec(), to.to_vec(), rows));
        Unread::NotYet
    }

    fn saw_range(&self, from: &[u8], to: &[u8]) {
        if from < to {
            self.noted.borrow_mut().seen.ranges.push((from.to_vec(), to.to_vec()));
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
        let mut noted = self.noted.borrow_mut();
        let Some(row) = self.loaded.get(key) else {
            noted.wanted.points.insert(key.to_vec());
            let hint = self.hints.row(key).ok_or(Unread::NotYet)?;
            noted.guessed.push(key.to_vec());
            return Ok(Some(hint));
        };
        noted.seen.points.insert(key.to_vec(), row.map_or(0, |(version, _)| *version));
        Ok(row.map(|(_, value)| value.clone()))
    }

    fn prefetch(&self, keys: &[Key]) {
        let announced = &mut self.noted.borrow_mut().wanted.announced;
        let room = PREFETCH_KEYS_MAX.saturating_sub(announced.len());
        let missing = keys.iter().map(Key::as_bytes).filter(|key| !self.has(key));
        announced.extend(missing.take(room).map(<[u8]>::to_vec));
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
            Arc::new(Reader::new(self.source, id.0, Some(StoredContent::staged(staged)?), Arc::clone(self.hold)))
        } else {
            match self.loaded.contents.get(&id.0) {
                Some(Some(found)) => {
                    Arc::new(Reader::new(self.source, id.0, Some(Arc::clone(found)), Arc::clone(self.hold)))
                }
                Some(None) => return Err(missing().into()),
                None => {
                    let reader = Arc::new(Reader::new(self.source, id.0, None, Arc::clone(self.hold)));
                    let mut noted = self.noted.borrow_mut();
                    noted.wanted.contents.push(id.0);
                    noted.promised.push(Arc::clone(&reader));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(from: u8, to: u8) -> Vec<(Vec<u8>, Row)> {
        (from..to).map(|key| (vec![key], (i64::from(key), Bytes::new()))).collect()
    }

    /// Functions of one batch may want ranges that overlap, and they are loaded together.
    #[test]
    fn a_row_of_two_loaded_ranges_counts_once() {
        for order in [[(1, 6), (3, 9)], [(3, 9), (1, 6)], [(1, 9), (3, 6)], [(3, 6), (1, 9)], [(1, 9), (1, 6)]] {
            let mut loaded = LoadedRows::default();
            for (from, to) in order {
                loaded.add_range(vec![from], vec![to], 100, rows(from, to));
            }
            // What is not covered is wanted again.
            while let Some(gap) = (1..9).find(|key| loaded.covering(&[*key]).is_none()) {
                loaded.add_range(vec![gap], vec![9], 100, rows(gap, 9));
            }
            assert_eq!(loaded.digest(&[1], &[9]), (8, (1..9).sum()), "{order:?}");
        }
    }

    #[test]
    fn ranges_that_were_cut_off_join_without_a_gap_or_an_overlap() {
        let mut loaded = LoadedRows::default();
        loaded.add_range(vec![1], vec![9], 3, rows(1, 4));
        loaded.add_range(vec![2], vec![9], 4, rows(2, 6));
        assert_eq!(loaded.digest(&[1], &[5, 0]), (5, 15));
        assert!(loaded.covering(&[5]).is_some() && loaded.covering(&[6]).is_none());
    }
}
