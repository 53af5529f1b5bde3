//! Page blobs: which content holds which page.
//!
//! The pages of a blob are a map. It has a row for each group of pages that was ever written, by group and **epoch**: the
//! row says where every page of the group is, and pages it does not name are zeros. A write makes the row of its epoch from
//! the newest there is. A snapshot raises the epoch of the blob and keeps the old one for itself, so it costs one row
//! however large the blob is; a read at an epoch takes, of each group, the newest row that is not newer.
//!
//! What refers to what: the blob and each of its snapshots refer to the map, by their epochs; a row refers to the contents
//! it names, by an id of its own. So the references to a map say which epochs are still to be read, and a row that no such
//! epoch reads can go.
//!
//! Who compares with a snapshot is also told of pages that were written and cleared since, though they are zeros at both
//! ends. So a row keeps when its pages were cleared, for as long as there is an earlier epoch to compare with. Only pages
//! that held something are marked: what a clear stores never exceeds what was written.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::convert::Infallible;

use bytes::Bytes;
use concurrency::Timestamp;
use engine::collector::{Handled, Handler, ref_key, steps};
use engine::due::{self, Due};
use engine::{
    BoxFuture, Changes, Commit, Engine, EngineError, Key, KeyReader, Rows, Staged, Tick, Unread, Visit, commit,
};
use minicbor::{Decode, Encode};
use service::{codec, space, unrefused};

use crate::pieces::Piece;

pub const PAGE_BYTES: u64 = 512;
/// A write of the largest size touches five groups at most, and a row of single pages stays well below what engines take.
pub const GROUP_PAGES: u64 = 2_048;
pub const GROUP_BYTES: u64 = GROUP_PAGES * PAGE_BYTES;
/// No map goes beyond this: the longest page blob, 8 TiB.
const MAP_BYTES_MAX: u64 = 8 << 40;
/// The first epoch of a map.
const FIRST_EPOCH: u64 = 1;

/// A map as it is seen at one epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct View {
    #[n(0)]
    pub map: u64,
    #[n(1)]
    pub epoch: u64,
}

/// Where the pages come from that a map has no row for: other maps that it began as a copy of, the nearest first. It is
/// stored in the row of the map itself, which is empty for a map that began with zeros.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
struct Origin {
    #[n(0)]
    views: Vec<View>,
}

/// How many maps may stand behind one. Every read asks all of them.
pub const ORIGINS_MAX: usize = 8;

/// Bytes from `start` up to and without `end`, both on the border of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageSpan {
    pub start: u64,
    pub end: u64,
}

/// One row: the pages of a group, as one epoch left them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
struct Group {
    /// The owner of its references to contents.
    #[n(0)]
    id: u64,
    /// In order, without overlap.
    #[n(1)]
    runs: Vec<Run>,
    /// Pages that held something once and are zeros now, in order, without overlap among them or with the runs.
    #[cbor(n(2), default)]
    cleared: Vec<Cleared>,
}

/// Pages that follow each other in the blob and in one content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
struct Run {
    /// The first page, counted from the start of the group.
    #[n(0)]
    first: u64,
    #[n(1)]
    count: u64,
    #[n(2)]
    content: u64,
    /// The page of the content that this begins with.
    #[n(3)]
    skip: u64,
}

/// Pages that follow each other and were cleared together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
struct Cleared {
    /// The first page, counted from the start of the group.
    #[n(0)]
    first: u64,
    #[n(1)]
    count: u64,
    /// The stamp of the clear.
    #[cbor(n(2), with = "codec::time")]
    at: Timestamp,
}

impl Cleared {
    fn end(&self) -> u64 {
        self.first + self.count
    }

    /// The part of it from page `from` up to page `to`.
    fn within(&self, from: u64, to: u64) -> Option<Cleared> {
        let (first, end) = (self.first.max(from), self.end().min(to));
        (first < end).then(|| Cleared { first, count: end - first, ..*self })
    }
}

impl Run {
    fn end(&self) -> u64 {
        self.first + self.count
    }

    /// The part of it from page `from` up to page `to`.
    fn within(&self, from: u64, to: u64) -> Option<Run> {
        let (first, end) = (self.first.max(from), self.end().min(to));
        (first < end).then(|| Run { first, count: end - first, skip: self.skip + (first - self.first), ..*self })
    }
}

impl Group {
    fn contents(&self) -> BTreeSet<u64> {
        self.runs.iter().map(|run| run.content).collect()
    }

    /// The runs once the pages from `from` to `to` are those of `run`, or zeros.
    fn painted(&self, from: u64, to: u64, run: Option<Run>) -> Vec<Run> {
        let mut runs = Vec::with_capacity(self.runs.len() + 2);
        runs.extend(self.runs.iter().filter_map(|run| run.within(0, from)));
        runs.extend(run);
        runs.extend(self.runs.iter().filter_map(|run| run.within(to, GROUP_PAGES)));
        runs
    }

    /// What is known to be cleared once the pages from `from` to `to` are written.
    fn cleared_after_write(&self, from: u64, to: u64) -> Vec<Cleared> {
        let parts = self.cleared.iter().flat_map(|mark| [mark.within(0, from), mark.within(to, GROUP_PAGES)]);
        parts.flatten().collect()
    }

    /// What is known to be cleared once the pages from `from` to `to` are cleared by the tick with the stamp `at`. Those
    /// that are zeros already stay as they are.
    fn cleared_after_clear(&self, from: u64, to: u64, at: Timestamp) -> Vec<Cleared> {
        let mark = |run: Run| Cleared { first: run.first, count: run.count, at };
        let fresh = self.runs.iter().filter_map(|run| run.within(from, to)).map(mark);
        let mut marks: Vec<Cleared> = self.cleared.iter().copied().chain(fresh).collect();
        marks.sort_unstable_by_key(|mark| mark.first);
        marks.dedup_by(|next, last| {
            let is_one = last.end() == next.first && last.at == next.at;
            last.count += if is_one { next.count } else { 0 };
            is_one
        });
        marks
    }
}

fn rows_of(map: u64) -> Key {
    Key::new(space::PAGE_MAP).number(map)
}

fn group_rows(map: u64, group: u64) -> Key {
    rows_of(map).number(group)
}

fn key(map: u64, group: u64, epoch: u64) -> Key {
    group_rows(map, group).number(epoch)
}

/// For decisions about a map itself.
fn partition(map: u64) -> Key {
    rows_of(map)
}

/// The due row that asks for a map to be pruned: its map and where to begin.
fn due_key(map: u64, from: u64, now: Timestamp) -> Key {
    due::key(now, space::PAGE_MAP, &[map.to_be_bytes(), from.to_be_bytes()].concat())
}

/// The map and the group from which on to prune, of such a row.
fn due_owner(owner: &[u8]) -> Option<(u64, u64)> {
    let (map, from) = owner.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*map), u64::from_be_bytes(from.try_into().ok()?)))
}

impl View {
    /// A new map, whose pages are all zeros.
    pub fn new(map: u64) -> View {
        View { map, epoch: FIRST_EPOCH }
    }

    /// Stores a new map. It has a row of its own, because what is referred to must be there.
    pub fn create(self, changes: &mut Changes) {
        changes.put(rows_of(self.map), Bytes::new());
        self.refer(changes);
    }

    /// Somebody reads this epoch, or writes it.
    pub fn refer(self, changes: &mut Changes) {
        changes.refer(self.map, self.epoch);
    }

    /// Nobody does any longer: what only this epoch read goes later.
    pub fn let_go(self, changes: &mut Changes, now: Timestamp) {
        changes.delete(ref_key(self.map, self.epoch));
        changes.put(due_key(self.map, 0, now), Bytes::new());
    }

    /// What stands behind this map.
    fn origin(self, rows: &dyn Rows) -> Result<Vec<View>, Unread> {
        match rows.get(&rows_of(self.map))? {
            Some(row) if !row.is_empty() => Ok(codec::decode::<Origin>(&row)?.views),
            Some(_) | None => Ok(Vec::new()),
        }
    }

    /// A new map that begins as this view. It costs the same however many pages there are: the new map stands in front of
    /// this one. `None`: too many do so already, and [`settle`] must come first.
    pub fn branch(self, rows: &dyn Rows, map: u64, changes: &mut Changes) -> Result<Option<Branch>, Unread> {
        let mut views = self.origin(rows)?;
        let needs_this = self.has_rows(rows)?;
        if needs_this {
            views.insert(0, self);
        }
        if views.len() > ORIGINS_MAX {
            return Ok(None);
        }
        for view in &views {
            changes.put(view.held_by(map), Bytes::new());
        }
        let view = View::new(map);
        view.refer(changes);
        let row = if views.is_empty() { Bytes::new() } else { codec::encode(&Origin { views }) };
        changes.put(rows_of(map), row);
        Ok(Some(Branch { view, needs_this }))
    }

    fn has_rows(self, rows: &dyn Rows) -> Result<bool, Unread> {
        let mut found = false;
        rows.scan(&group_rows(self.map, 0), &rows_of(self.map).after_all(), 1, &mut |_, _| {
            found = true;
            Visit::Stop
        })?;
        Ok(found)
    }

    /// The reference of a map that stands in front of this view. It begins as that of the blob does, so that the epoch
    /// counts as one that is read.
    fn held_by(self, map: u64) -> Key {
        ref_key(self.map, self.epoch).number(map)
    }

    /// The blob goes on in the next epoch, and this one is left to those who have branched off.
    pub fn move_on(self, changes: &mut Changes) -> View {
        changes.delete(ref_key(self.map, self.epoch));
        self.next().refer(changes);
        self.next()
    }

    /// The epoch that writes go to once this one is kept for a snapshot.
    pub fn next(self) -> View {
        View { epoch: self.epoch + 1, ..self }
    }

    /// Visits what is there at this epoch of the groups that `span` touches, until `each` has enough. Groups that were
    /// never written are passed over.
    fn groups(self, rows: &dyn Rows, span: PageSpan, each: &mut dyn FnMut(u64, Found) -> bool) -> Result<(), Unread> {
        let origin = self.origin(rows)?;
        if origin.is_empty() {
            return self.own_groups(rows, span, each);
        }
        // Some at a time: what stands behind is asked for all of them at once.
        let mut start = span.start;
        while start < span.end {
            let end = span.end.min(start - start % GROUP_BYTES + GROUPS_AT_ONCE * GROUP_BYTES);
            let part = PageSpan { start, end };
            let mut found = BTreeMap::new();
            self.own_groups(rows, part, &mut |group, row| {
                // What is behind it shows if it goes.
                found.insert(group, Found { is_alone: false, ..row });
                true
            })?;
            for (group, inherited) in inherited(rows, &origin, part)? {
                found.entry(group).or_insert(inherited);
            }
            for (group, row) in found {
                if !each(group, row) {
                    return Ok(());
                }
            }
            start = end;
        }
        Ok(())
    }

    /// The same without what stands behind the map.
    fn own_groups(
        self,
        rows: &dyn Rows,
        span: PageSpan,
        each: &mut dyn FnMut(u64, Found) -> bool,
    ) -> Result<(), Unread> {
        let (from, to) = (span.start / GROUP_BYTES, span.end.div_ceil(GROUP_BYTES));
        let mut newest: Option<(u64, Found)> = None;
        let mut failed = None;
        let mut enough = false;
        let about = usize::try_from(to - from).unwrap_or(usize::MAX).min(1_000);
        rows.scan(&group_rows(self.map, from), &group_rows(self.map, to), about, &mut |key, row| {
            let (group, epoch) = match parts(key) {
                Ok(parts) => parts,
                Err(error) => {
                    failed = Some(error);
                    return Visit::Stop;
                }
            };
            if newest.as_ref().is_some_and(|(last, _)| *last != group)
                && let Some((last, found)) = newest.take()
                && !each(last, found)
            {
                enough = true;
                return Visit::Stop;
            }
            if epoch <= self.epoch {
                match codec::decode(row) {
                    Ok(content) => {
                        let is_alone = newest.is_none();
                        let is_read_by_others = epoch != self.epoch;
                        let found = Found { epoch, is_alone, is_read_by_others, group: content, ..Found::default() };
                        newest = Some((group, found));
                    }
                    Err(error) => {
                        failed = Some(error);
                        return Visit::Stop;
                    }
                }
            }
            Visit::Next
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some((last, found)) = newest.filter(|_| !enough) {
            each(last, found);
        }
        Ok(())
    }

    /// Makes the pages of `span` those of `staged`, which has as many bytes.
    pub fn write(
        self,
        rows: &dyn Rows,
        span: PageSpan,
        staged: &Staged,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(), Unread> {
        let mut before = self.load(rows, span, Purpose::Write)?;
        changes.contents.push(staged.clone());
        let first = span.start / GROUP_BYTES;
        for group in first..span.end.div_ceil(GROUP_BYTES) {
            let (from, to) = span.pages_in(group);
            let skip = (group * GROUP_PAGES + from) - span.start / PAGE_BYTES;
            let run = Run { first: from, count: to - from, content: staged.id().0, skip };
            let id = tick.id(FRESH_IDS + group - first);
            self.paint(group, before.remove(&group), (from, to), Some(run), (id, tick), changes);
        }
        Ok(())
    }

    /// Makes the pages of `span` zeros. What it costs depends on how many groups of it were ever written.
    pub fn clear(self, rows: &dyn Rows, span: PageSpan, tick: Tick, changes: &mut Changes) -> Result<(), Unread> {
        for (group, found) in self.load(rows, span, Purpose::Clear)? {
            // Only the first and the last can come out with pages in them.
            let id = tick.id(FRESH_IDS + u64::from(group != span.start / GROUP_BYTES));
            self.paint(group, Some(found), span.pages_in(group), None, (id, tick), changes);
        }
        Ok(())
    }

    fn load_all(self, rows: &dyn Rows, span: PageSpan) -> Result<BTreeMap<u64, Found>, Unread> {
        let mut found = BTreeMap::new();
        self.groups(rows, span, &mut |group, row| {
            found.insert(group, row);
            true
        })?;
        Ok(found)
    }

    /// The same for a write or a clear, which must know what snapshots still need.
    fn load(self, rows: &dyn Rows, span: PageSpan, purpose: Purpose) -> Result<BTreeMap<u64, Found>, Unread> {
        let mut found = self.load_all(rows, span)?;
        if found.values().any(|row| row.epoch != self.epoch) {
            let epochs = live_epochs(rows, self.map)?;
            for row in found.values_mut() {
                row.is_read_by_others =
                    row.is_inherited || epochs.iter().any(|live| (row.epoch..self.epoch).contains(live));
            }
        }
        let may_mark = |row: &Found| purpose == Purpose::Clear || !row.group.cleared.is_empty();
        if found.values().any(may_mark) && self.has_earlier(rows)? {
            for row in found.values_mut() {
                row.keeps_marks = true;
            }
        }
        Ok(found)
    }

    /// Whether there is an earlier state of the map that this one can be compared with.
    fn has_earlier(self, rows: &dyn Rows) -> Result<bool, Unread> {
        if self.epoch == FIRST_EPOCH {
            return Ok(false);
        }
        let all = Key::new(space::REF).number(self.map);
        let mut found = false;
        rows.scan(&all, &ref_key(self.map, self.epoch), 1, &mut |_, _| {
            found = true;
            Visit::Stop
        })?;
        Ok(found)
    }

    /// Writes the row of a group in which the pages from `from` to `to` have become those of `run`, or zeros. `fresh` is
    /// its id if it needs a new one.
    fn paint(
        self,
        group: u64,
        before: Option<Found>,
        (from, to): (u64, u64),
        run: Option<Run>,
        (fresh, tick): (u64, Tick),
        changes: &mut Changes,
    ) {
        let before = before.unwrap_or_default();
        let runs = before.group.painted(from, to, run);
        if runs == before.group.runs {
            return;
        }
        let cleared = match run {
            _ if !before.keeps_marks => Vec::new(),
            Some(_) => before.group.cleared_after_write(from, to),
            None => before.group.cleared_after_clear(from, to, tick.stamp),
        };
        // A row of an earlier epoch stays for those who read that, and this epoch gets one of its own. If nobody else
        // reads it, it moves here with its id.
        let is_own = !before.is_read_by_others;
        if is_own && before.epoch != self.epoch {
            changes.delete(key(self.map, group, before.epoch));
        }
        let keeps_id = is_own && !before.group.runs.is_empty();
        let id = if keeps_id { before.group.id } else { fresh };
        let after = Group { id, runs, cleared };
        let (old, new) = (before.group.contents(), after.contents());
        let held = if keeps_id { &old } else { &BTreeSet::new() };
        for content in new.difference(held) {
            changes.refer(*content, id);
        }
        for content in held.difference(&new) {
            changes.unrefer(space::CONTENT, *content, id, tick.now);
        }
        let key = key(self.map, group, self.epoch);
        let hides_nothing = before.is_alone && is_own;
        if after.runs.is_empty() && after.cleared.is_empty() && hides_nothing {
            changes.delete(key);
        } else {
            changes.put(key, codec::encode(&after));
        }
    }

    /// Opens what the bytes from `offset` to `end` are made of.
    pub fn open(self, rows: &dyn Rows, offset: u64, end: u64) -> Result<VecDeque<Piece>, Unread> {
        let mut found = Vec::new();
        self.groups(rows, PageSpan { start: offset, end }, &mut |group, row| {
            let base = group * GROUP_BYTES;
            found.extend(row.group.runs.iter().filter_map(|run| {
                let (start, stop) = (base + run.first * PAGE_BYTES, base + run.end() * PAGE_BYTES);
                let (first, last) = (start.max(offset), stop.min(end));
                (first < last).then_some((first, last, run.content, run.skip * PAGE_BYTES + (first - start)))
            }));
            true
        })?;
        let mut open = HashMap::new();
        let mut pieces = VecDeque::with_capacity(found.len());
        let mut at = offset;
        for (first, last, id, skip) in found {
            if at < first {
                pieces.push_back(Piece::zeros(first - at));
            }
            let content = match open.get(&id) {
                Some(content) => engine::Content::clone(content),
                None => open.entry(id).or_insert(rows.content(engine::ContentId(id))?).clone(),
            };
            pieces.push_back(Piece::new(id, content, skip, last - first));
            at = last;
        }
        if at < end {
            pieces.push_back(Piece::zeros(end - at));
        }
        Ok(pieces)
    }

    /// The ranges of `span` that hold pages, merged where they touch, at most `most`; and where to go on if there are
    /// more.
    pub fn ranges(self, rows: &dyn Rows, span: PageSpan, most: usize) -> Result<(Vec<PageSpan>, Option<u64>), Unread> {
        let mut ranges: Vec<PageSpan> = Vec::new();
        let mut next = None;
        self.groups(rows, span, &mut |group, row| {
            for run in &row.group.runs {
                let base = group * GROUP_BYTES;
                let (start, end) = (base + run.first * PAGE_BYTES, base + run.end() * PAGE_BYTES);
                let (start, end) = (start.max(span.start), end.min(span.end));
                if start >= end {
                    continue;
                }
                if let Some(last) = ranges.last_mut().filter(|last| last.end == start) {
                    last.end = end;
                } else if ranges.len() < most {
                    ranges.push(PageSpan { start, end });
                } else {
                    next = Some(start);
                    return false;
                }
            }
            true
        })?;
        Ok((ranges, next))
    }
}

/// A range of pages that differs from what it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Changed {
    pub span: PageSpan,
    /// Zeros now, but they were something else since or before; otherwise written.
    pub is_cleared: bool,
}

impl View {
    /// What became of `span` between an earlier view of the same map, taken at `since`, and this one, merged where it
    /// touches, at most `most` ranges; and where to go on if there are more. Written again with the same bytes is written.
    pub fn changes_since(
        self,
        rows: &dyn Rows,
        (earlier, since): (View, Timestamp),
        span: PageSpan,
        most: usize,
    ) -> Result<(Vec<Changed>, Option<u64>), Unread> {
        let mut found: Vec<Changed> = Vec::new();
        let mut start = span.start;
        while start < span.end {
            // Some at a time: a blob can have millions.
            let rest = PageSpan { start, end: span.end };
            let (mut after, end) = self.load_some(rows, rest)?;
            let (mut before, end) = earlier.load_some(rows, PageSpan { start, end })?;
            let groups: BTreeSet<u64> = before.keys().chain(after.keys()).copied().collect();
            for group in groups.into_iter().take_while(|group| group * GROUP_BYTES < end) {
                let (old, new) = (before.remove(&group).unwrap_or_default(), after.remove(&group).unwrap_or_default());
                if earlier.map == self.map && old.epoch == new.epoch {
                    continue;
                }
                for changed in old.group.changes_to(&new.group, since) {
                    if let Err(next) = changed.join(group * GROUP_BYTES, span, &mut found, most) {
                        return Ok((found, Some(next)));
                    }
                }
            }
            start = end;
        }
        Ok((found, None))
    }

    /// The groups of `span`, or the first of them, and the end of what is looked at by then.
    fn load_some(self, rows: &dyn Rows, span: PageSpan) -> Result<(BTreeMap<u64, Found>, u64), Unread> {
        let (mut found, mut end) = (BTreeMap::new(), span.end);
        self.groups(rows, span, &mut |group, row| {
            found.insert(group, row);
            let is_enough = found.len() == COMPARED_AT_ONCE;
            if is_enough {
                end = end.min((group + 1) * GROUP_BYTES);
            }
            !is_enough
        })?;
        Ok((found, end))
    }
}

/// How many groups are compared at once. Tests have few, and see the borders, too.
const COMPARED_AT_ONCE: usize = if cfg!(any(test, feature = "testing")) { 2 } else { 1_000 };

impl Changed {
    /// Adds it, in pages of the group at `base`, to what is `found` of `span`: at most `most` ranges. Where to go on, if there
    /// is no room for it.
    fn join(self, base: u64, span: PageSpan, found: &mut Vec<Changed>, most: usize) -> Result<(), u64> {
        let (start, end) = (base + self.span.start * PAGE_BYTES, base + self.span.end * PAGE_BYTES);
        let (start, end) = (start.max(span.start), end.min(span.end));
        if start >= end {
            return Ok(());
        }
        let touches = |last: &&mut Changed| last.span.end == start && last.is_cleared == self.is_cleared;
        if let Some(last) = found.last_mut().filter(touches) {
            last.span.end = end;
        } else if found.len() < most {
            found.push(Changed { span: PageSpan { start, end }, ..self });
        } else {
            return Err(start);
        }
        Ok(())
    }
}

impl Group {
    /// What differs in `after`, in pages of the group, or was cleared after `since`.
    fn changes_to(&self, after: &Group, since: Timestamp) -> Vec<Changed> {
        // Between two borders every page has one answer.
        let borders = self.runs.iter().chain(&after.runs).flat_map(|run| [run.first, run.end()]);
        let marks = after.cleared.iter().filter(|mark| mark.at > since);
        let borders = borders.chain(marks.clone().flat_map(|mark| [mark.first, mark.end()]));
        let borders: Vec<u64> = borders.collect::<BTreeSet<u64>>().into_iter().collect();
        let (old, new) = (self.pages_at(&borders), after.pages_at(&borders));
        let mut marks = marks.peekable();
        let mut changes = Vec::new();
        for (at, pair) in borders.windows(2).enumerate() {
            while marks.next_if(|mark| mark.end() <= pair[0]).is_some() {}
            let is_marked = marks.peek().is_some_and(|mark| mark.first <= pair[0]);
            let is_cleared = match (old[at], new[at]) {
                (None, None) if is_marked => true,
                (before, after) if before == after => continue,
                (_, Some(_)) => false,
                (_, None) => true,
            };
            changes.push(Changed { span: PageSpan { start: pair[0], end: pair[1] }, is_cleared });
        }
        changes
    }

    /// Which page of which content stands at each of some pages, which are in order.
    fn pages_at(&self, pages: &[u64]) -> Vec<Option<(u64, u64)>> {
        let mut runs = self.runs.iter().peekable();
        let at = |&page: &u64| {
            while runs.next_if(|run| run.end() <= page).is_some() {}
            let run = runs.peek().filter(|run| run.first <= page)?;
            Some((run.content, run.skip + (page - run.first)))
        };
        pages.iter().map(at).collect()
    }
}

/// A row that a view found.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Found {
    epoch: u64,
    /// There is none of an earlier epoch.
    is_alone: bool,
    /// A snapshot may still need it. Only who writes looks at the snapshots.
    is_read_by_others: bool,
    /// It is of a map behind this one, which nobody changes.
    is_inherited: bool,
    /// There is something to compare with, which needs to know of clears. Only who writes looks.
    keeps_marks: bool,
    group: Group,
}

impl Default for Found {
    /// What stands for a row that is not there: it is of no epoch, and nobody reads it.
    fn default() -> Found {
        let (is_alone, group) = (true, Group::default());
        Found { epoch: 0, is_alone, is_read_by_others: false, is_inherited: false, keeps_marks: false, group }
    }
}

impl PageSpan {
    /// The pages of a group that it covers, counted from the start of the group.
    fn pages_in(self, group: u64) -> (u64, u64) {
        let base = group * GROUP_PAGES;
        let page = |offset: u64| (offset / PAGE_BYTES).saturating_sub(base).min(GROUP_PAGES);
        (page(self.start), page(self.end))
    }
}

/// What the rows of a map are loaded for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    Write,
    Clear,
}

/// A map that has branched off another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Branch {
    pub view: View,
    /// It reads the epoch that it has branched off, which must not change any more.
    pub needs_this: bool,
}

/// How many groups are looked for at once in the maps behind one.
const GROUPS_AT_ONCE: u64 = 1_000;

/// What the maps behind another have of `span`: of each group what the nearest has.
fn inherited(rows: &dyn Rows, origin: &[View], span: PageSpan) -> Result<BTreeMap<u64, Found>, Unread> {
    let mut found = BTreeMap::new();
    for view in origin {
        view.own_groups(rows, span, &mut |group, row| {
            // As old as can be, and nothing to be changed from here.
            let row = Found { epoch: 0, is_alone: false, is_read_by_others: true, is_inherited: true, ..row };
            found.entry(group).or_insert(row);
            true
        })?;
    }
    Ok(found)
}

/// Some groups from `from` on that the maps behind another have, and where to go on.
fn inherited_from(rows: &dyn Rows, origin: &[View], from: u64) -> Result<(BTreeMap<u64, Found>, Option<u64>), Unread> {
    let all = PageSpan { start: from * GROUP_BYTES, end: MAP_BYTES_MAX };
    let mut until = u64::MAX;
    for view in origin {
        let mut count = 0;
        view.own_groups(rows, all, &mut |group, _| {
            count += 1;
            if count == GROUPS_AT_ONCE {
                until = until.min(group);
            }
            count < GROUPS_AT_ONCE
        })?;
    }
    if until == u64::MAX {
        return Ok((inherited(rows, origin, all)?, None));
    }
    let some = PageSpan { end: (until + 1) * GROUP_BYTES, ..all };
    Ok((inherited(rows, origin, some)?, Some(until + 1)))
}

/// How many groups one step of settling takes over: each needs a fresh id.
const GROUPS_PER_STEP: usize = 8;

/// Makes a map stand by itself, in steps: without maps behind it.
pub async fn settle(engine: &dyn Engine, map: u64) -> Result<(), EngineError> {
    let mut next = Some(0);
    while let Some(from) = next {
        let step = commit::<_, Infallible, _>(engine, partition(map), move |rows, tick| {
            let mut changes = Changes::none();
            let next = settle_some(rows, map, from, tick, &mut changes)?;
            Ok(Commit { changes, outcome: next })
        });
        next = unrefused(step.await)?;
    }
    Ok(())
}

/// Gives a map rows of its own for what it has from the maps behind it, some groups from `from` on, so that it can let go
/// of them. Says where to go on.
fn settle_some(rows: &dyn Rows, map: u64, from: u64, tick: Tick, changes: &mut Changes) -> Result<Option<u64>, Unread> {
    let origin = View::new(map).origin(rows)?;
    let mut taken = 0;
    let mut next = Some(from);
    while let Some(from) = next {
        let (found, more) = inherited_from(rows, &origin, from)?;
        for (group, found) in found {
            let own = key(map, group, FIRST_EPOCH);
            if found.group.runs.is_empty() || rows.get(&own)?.is_some() {
                continue;
            }
            if taken == GROUPS_PER_STEP {
                return Ok(Some(group));
            }
            let id = tick.id(FRESH_IDS + taken as u64);
            taken += 1;
            for content in found.group.contents() {
                changes.refer(content, id);
            }
            // Nobody compares this map with what was before it.
            changes.put(own, codec::encode(&Group { id, cleared: Vec::new(), ..found.group }));
        }
        next = more;
    }
    leave(&origin, map, tick.now, changes);
    changes.put(rows_of(map), Bytes::new());
    Ok(None)
}

/// A map does not need those behind it any longer.
fn leave(origin: &[View], map: u64, now: Timestamp, changes: &mut Changes) {
    for view in origin {
        changes.delete(view.held_by(map));
        changes.put(due_key(view.map, 0, now), Bytes::new());
    }
}

/// Where the ids of new rows begin among those of a tick; the ones below are for the blob. A write needs five.
const FRESH_IDS: u64 = 4;

fn parts(key: &[u8]) -> Result<(u64, u64), Unread> {
    let mut reader = KeyReader::new(key);
    let parts = reader.number().and_then(|_| Some((reader.number()?, reader.number()?)));
    parts.ok_or_else(|| codec::corrupt("the key of a page map"))
}

/// How many rows, and how many runs in them, one step of pruning looks at.
const ROWS_PER_STEP: usize = 200;
const RUNS_PER_STEP: usize = 2_000;

/// Handles the due rows of all maps, whichever service they belong to: the sweeper needs one of these beside the services.
#[derive(Clone, Copy, Debug, Default)]
pub struct MapCollector;

impl Handler for MapCollector {
    fn spaces(&self) -> &[u8] {
        &[space::PAGE_MAP]
    }

    fn handle<'a>(&'a self, engine: &'a dyn Engine, due: &'a Due) -> BoxFuture<'a, Result<Handled, EngineError>> {
        Box::pin(async move {
            let (map, from) = due_owner(&due.owner).ok_or_else(|| due.unknown())?;
            // A long map is pruned piece by piece, and each piece asks for the next.
            let pruned = steps(engine, due, move |rows, tick, changes| {
                prune(rows, map, from, tick, changes)?;
                Ok(false)
            });
            pruned.await?;
            Ok(Handled::Done)
        })
    }
}

/// Removes rows that no epoch reads, some groups from `from` on, and asks for the rest to be done in its turn. If nobody
/// refers to the map, those are all.
fn prune(rows: &dyn Rows, map: u64, from: u64, tick: Tick, changes: &mut Changes) -> Result<(), Unread> {
    let epochs = live_epochs(rows, map)?;
    let is_gone = epochs.is_empty();
    let origin = View::new(map).origin(rows)?;
    let mut step = Step { epochs, hides_others: !origin.is_empty(), group: None, versions: Vec::new() };
    let mut more = false;
    let (mut visited, mut runs) = (0, 0);
    let mut failed = None;
    rows.scan(&group_rows(map, from), &rows_of(map).after_all(), ROWS_PER_STEP, &mut |key, row| {
        let read = || Ok((parts(key)?, codec::decode::<Group>(row)?));
        let ((group, epoch), version) = match read() {
            Ok(found) => found,
            Err(error) => {
                failed = Some(error);
                return Visit::Stop;
            }
        };
        if step.group != Some(group) {
            step.finish(map, tick, changes);
            if visited >= ROWS_PER_STEP || runs >= RUNS_PER_STEP {
                changes.put(due_key(map, group, tick.now), Bytes::new());
                more = true;
                return Visit::Stop;
            }
            step.group = Some(group);
        }
        visited += 1;
        runs += version.runs.len();
        step.versions.push((epoch, version));
        Visit::Next
    })?;
    step.finish(map, tick, changes);
    if is_gone && !more {
        leave(&origin, map, tick.now, changes);
        changes.delete(rows_of(map));
    }
    failed.map_or(Ok(()), Err)
}

fn live_epochs(rows: &dyn Rows, map: u64) -> Result<Vec<u64>, Unread> {
    let all = Key::new(space::REF).number(map);
    let mut epochs = Vec::new();
    rows.scan(&all, &all.after_all(), 1, &mut |key, _| {
        let mut reader = KeyReader::new(key);
        epochs.extend(reader.number().and_then(|_| reader.number()));
        Visit::Next
    })?;
    Ok(epochs)
}

/// The rows of the group at hand, by epoch.
struct Step {
    epochs: Vec<u64>,
    /// There are maps behind this one, whose pages even a row without pages hides.
    hides_others: bool,
    group: Option<u64>,
    versions: Vec<(u64, Group)>,
}

impl Step {
    fn finish(&mut self, map: u64, tick: Tick, changes: &mut Changes) {
        let Some(group) = self.group.take() else { return };
        let versions = std::mem::take(&mut self.versions);
        let mut hides_something = self.hides_others;
        for (at, (epoch, version)) in versions.iter().enumerate() {
            let until = versions.get(at + 1).map_or(u64::MAX, |(next, _)| *next);
            let is_read = self.epochs.iter().any(|live| (*epoch..until).contains(live));
            // A row without pages hides the pages of an older one, or tells an earlier epoch of clears.
            let tells = || !version.cleared.is_empty() && self.epochs.iter().any(|live| live < epoch);
            if is_read && (hides_something || !version.runs.is_empty() || tells()) {
                hides_something = true;
                continue;
            }
            changes.delete(key(map, group, *epoch));
            for content in version.contents() {
                changes.unrefer(space::CONTENT, content, version.id, tick.now);
            }
        }
    }
}

/// Reads a row as each kind of row that maps have.
#[cfg(any(test, feature = "testing"))]
pub fn fuzz(row: &[u8]) {
    let _ = (codec::decode::<Origin>(row).is_ok(), codec::decode::<Group>(row).is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: u64, count: u64, content: u64, skip: u64) -> Run {
        Run { first, count, content, skip }
    }

    #[test]
    fn what_is_written_over_is_cut() {
        let group = Group { id: 1, runs: vec![run(0, 10, 7, 0), run(20, 10, 8, 5)], cleared: vec![] };
        let write = Some(run(5, 20, 9, 0));
        assert_eq!(group.painted(5, 25, write), [run(0, 5, 7, 0), run(5, 20, 9, 0), run(25, 5, 8, 10)]);
        assert_eq!(group.painted(2, 4, None), [run(0, 2, 7, 0), run(4, 6, 7, 4), run(20, 10, 8, 5)]);
        assert_eq!(group.painted(0, GROUP_PAGES, None), []);
        assert_eq!(group.painted(12, 18, None), group.runs);
    }

    fn bytes_of(hex: &str) -> Vec<u8> {
        let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
        (0..hex.len()).step_by(2).map(digits).collect()
    }

    /// Rows as the first released version stored them for page blobs, byte by byte.
    #[test]
    fn stored_rows_of_page_blobs_stay_as_they_are() {
        let mark = Cleared { first: 10, count: 3, at: Timestamp(0x08DE_0000_0000_0000) };
        let runs = vec![run(0, 10, 7, 0), run(20, 2_028, 0x8DE0_0000_0000_0065, 5)];
        let group = Group { id: 0x8DE0_0000_0000_0064, runs, cleared: vec![mark] };
        let row = bytes_of(
            "01a3001b8de0000000000064018284000a070084141907ec1b8de0000000000065050281830a031b08de000000000000",
        );
        assert_eq!(codec::encode(&group), row);
        assert_eq!(codec::decode::<Group>(&row), Ok(group));

        let views = vec![View { map: 0x8DE0_0000_0000_0064, epoch: 3 }, View { map: 9, epoch: 1 }];
        let origin = Origin { views };
        let row = bytes_of("01a10082821b8de000000000006403820901");
        assert_eq!(codec::encode(&origin), row);
        assert_eq!(codec::decode::<Origin>(&row), Ok(origin));
    }

    /// Rows of before there were marks.
    #[test]
    fn rows_without_marks_are_read() {
        #[derive(Encode)]
        #[cbor(map)]
        struct Before {
            #[n(0)]
            id: u64,
            #[n(1)]
            runs: Vec<Run>,
        }
        let runs = vec![run(0, 10, 7, 0)];
        let row = codec::encode(&Before { id: 1, runs: runs.clone() });
        assert_eq!(codec::decode::<Group>(&row).unwrap(), Group { id: 1, runs, cleared: vec![] });
    }

    #[test]
    fn clears_are_marked_where_something_was() {
        let mark = |first, count, at| Cleared { first, count, at: Timestamp(at) };
        let runs = vec![run(0, 10, 7, 0), run(10, 2, 8, 0), run(20, 10, 9, 5)];
        let group = Group { id: 1, runs, cleared: vec![mark(12, 3, 50)] };
        assert_eq!(group.cleared_after_clear(2, 4, Timestamp(60)), [mark(2, 2, 60), mark(12, 3, 50)]);
        let all = group.cleared_after_clear(0, GROUP_PAGES, Timestamp(60));
        assert_eq!(all, [mark(0, 12, 60), mark(12, 3, 50), mark(20, 10, 60)]);
        assert_eq!(group.cleared_after_clear(12, 20, Timestamp(60)), group.cleared);
        assert_eq!(group.cleared_after_write(13, 14), [mark(12, 1, 50), mark(14, 1, 50)]);
        assert_eq!(group.cleared_after_write(0, 12), group.cleared);

        let after = Group { id: 1, runs: vec![run(14, 1, 7, 0)], cleared: vec![mark(12, 2, 50), mark(30, 4, 60)] };
        let changes = |since| {
            let told = Group::default().changes_to(&after, Timestamp(since)).into_iter();
            told.map(|told| (told.span.start, told.span.end, told.is_cleared)).collect::<Vec<_>>()
        };
        assert_eq!(changes(49), [(12, 14, true), (14, 15, false), (30, 34, true)]);
        assert_eq!(changes(50), [(14, 15, false), (30, 34, true)]);
        assert_eq!(changes(60), [(14, 15, false)]);
    }
}
