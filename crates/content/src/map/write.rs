//! Writes and clears.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use concurrency::Timestamp;
use engine::{Changes, Rows, Staged, Tick, Unread};
use service::{codec, space};

use super::compact;
use super::group::{Group, Run, outside, whole_pages};
use super::read::{Found, live_epochs};
use super::{ByteSpan, FRESH_IDS, GROUP_BYTES, PAGE_BYTES, View, key};

/// What becomes of some units of a group, from the first up to the second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change<'a> {
    Write(Run),
    /// What lies from the first unit up to the second is these runs, and unwritten between them.
    Share(u64, u64, &'a [Run]),
    /// Zeros. Pages that are cleared as a whole are unwritten; those that are cleared in part stay written.
    Clear(u64, u64),
    /// Cut off: unwritten, in part or not.
    Cut(u64, u64),
}

impl Change<'_> {
    fn runs(self, before: &Group, page: u64, at: Timestamp) -> Vec<Run> {
        match self {
            Change::Write(run) => before.written(run),
            Change::Share(from, to, runs) => before.painted(from, to, runs.iter().copied()),
            Change::Clear(from, to) => before.zeroed(from, to, page, at),
            Change::Cut(from, to) => before.cut_out(from, to),
        }
    }

    fn is_write(self) -> bool {
        matches!(self, Change::Write(_) | Change::Share(..))
    }
}

impl<const UNIT: u64> View<UNIT> {
    /// Makes `staged` the bytes of `span`, which has as many.
    pub fn write(
        self,
        rows: &dyn Rows,
        span: ByteSpan,
        staged: &Staged,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(), Unread> {
        self.write_from(rows, span, (staged, 0), tick, changes)
    }

    /// The same for a map that is created in the same decision: there is nothing to look at.
    pub fn write_new(self, span: ByteSpan, staged: &Staged, tick: Tick, changes: &mut Changes) {
        self.paint_all(BTreeMap::new(), span, (staged, 0), tick, changes);
    }

    /// The same with the bytes of `staged` from an offset on.
    pub(super) fn write_from(
        self,
        rows: &dyn Rows,
        span: ByteSpan,
        (staged, offset): (&Staged, u64),
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(), Unread> {
        let before = self.load(rows, span, false)?;
        self.paint_all(before, span, (staged, offset), tick, changes);
        Ok(())
    }

    fn paint_all(
        self,
        mut before: BTreeMap<u64, Found>,
        span: ByteSpan,
        (staged, offset): (&Staged, u64),
        tick: Tick,
        changes: &mut Changes,
    ) {
        changes.contents.push(staged.clone());
        let (first, end) = span.groups();
        for group in first..end {
            let (from, to) = Self::units_in(span, group);
            let skip = (group * Self::GROUP_UNITS + from) - span.start / UNIT + offset / UNIT;
            let run = Run { first: from, count: to - from, content: staged.id().0, skip };
            let id = tick.id(FRESH_IDS + group - first);
            self.paint(group, before.remove(&group), Change::Write(run), (id, tick), changes);
        }
    }

    /// Makes the bytes of `span` zeros. What it costs depends on how many groups of it were ever written.
    ///
    /// Pages of 512 bytes that lie in the span as a whole are unwritten. Of pages that it cuts, what was written stays so.
    pub fn clear(self, rows: &dyn Rows, span: ByteSpan, tick: Tick, changes: &mut Changes) -> Result<(), Unread> {
        for (group, found) in self.load(rows, span, true)? {
            let (from, to) = Self::units_in(span, group);
            self.paint_end(group, found, Change::Clear(from, to), (span, tick), changes);
        }
        Ok(())
    }

    /// Unwrites some units of a group that was found for it. Only the first and the last group of `span` can come out with
    /// runs in them, and need an id.
    pub(super) fn paint_end(
        self,
        group: u64,
        found: Found,
        change: Change<'_>,
        (span, tick): (ByteSpan, Tick),
        changes: &mut Changes,
    ) {
        let id = tick.id(FRESH_IDS + u64::from(group != span.start / GROUP_BYTES));
        self.paint(group, Some(found), change, (id, tick), changes);
    }

    /// The rows of `span` for a write or a clear, with what snapshots still need of them.
    pub(super) fn load(self, rows: &dyn Rows, span: ByteSpan, clears: bool) -> Result<BTreeMap<u64, Found>, Unread> {
        let mut found = self.load_all(rows, span)?;
        if found.values().any(|row| row.epoch != self.epoch) {
            let epochs = live_epochs(rows, self.map)?;
            for row in found.values_mut() {
                row.is_read_by_others =
                    row.is_inherited || epochs.iter().any(|live| (row.epoch..self.epoch).contains(live));
            }
        }
        let may_mark = |row: &Found| clears || !row.group.cleared.is_empty();
        if found.values().any(may_mark) && self.has_earlier(rows)? {
            for row in found.values_mut() {
                row.keeps_marks = true;
            }
        }
        Ok(found)
    }

    /// Stores the row of a group after a change. `fresh` is its id if it needs a new one.
    pub(super) fn paint(
        self,
        group: u64,
        before: Option<Found>,
        change: Change<'_>,
        (fresh, tick): (u64, Tick),
        changes: &mut Changes,
    ) {
        let before = before.unwrap_or_default();
        let runs = change.runs(&before.group, Self::PAGE_UNITS, tick.stamp);
        if runs == before.group.runs {
            return;
        }
        let cleared = match change {
            _ if !before.keeps_marks => Vec::new(),
            Change::Write(run) => before.group.cleared_after_write(run.first, run.end()),
            Change::Share(from, to, runs) => {
                let unwritten = before.group.cleared_after_clear(from, to, tick.stamp);
                runs.iter().fold(unwritten, |marks, run| outside(&marks, run.first, run.end()))
            }
            Change::Cut(from, to) => before.group.cleared_after_clear(from, to, tick.stamp),
            Change::Clear(from, to) => {
                let (from, to) = whole_pages(from, to, Self::PAGE_UNITS);
                before.group.cleared_after_clear(from, to, tick.stamp)
            }
        };
        // A row of an earlier epoch stays for the snapshots that read it, and this epoch gets one of its own. If nothing else
        // reads it, it moves here with its id.
        let is_own = !before.is_read_by_others;
        if is_own && before.is_stored() && before.epoch != self.epoch {
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
        if UNIT < PAGE_BYTES && change.is_write() && compact::is_due(before.group.runs.len(), after.runs.len()) {
            changes.put(compact::due_row(self.map, group, tick.now), Bytes::new());
        }
        let key = key(self.map, group, self.epoch);
        let hides_nothing = before.is_alone && is_own;
        if after.runs.is_empty() && after.cleared.is_empty() && hides_nothing {
            changes.delete(key);
        } else {
            changes.put(key, codec::encode(&after));
        }
    }
}
