//! What copies inside the server refer to: contents of another resource, or of another place in it, as runs of a map.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use engine::{Changes, IDS_PER_TICK, Rows, Tick, Unread};
use service::codec;

use super::compact::{RUNS_DUE, RUNS_MAX, due_row, is_due};
use super::group::{Group, Run, ZEROS};
use super::write::Change;
use super::{ByteSpan, FRESH_IDS, FileView, View, key};
use crate::source::Extent;

/// How many groups one decision can fill: each needs a fresh id.
pub const SHARED_GROUPS_MAX: u64 = IDS_PER_TICK - FRESH_IDS;

impl<const UNIT: u64> View<UNIT> {
    /// Which contents hold the bytes of `span`, in order. What they leave out is zeros. `None`: there are more than `most`.
    pub fn extents(self, rows: &dyn Rows, span: ByteSpan, most: usize) -> Result<Option<Vec<Extent>>, Unread> {
        let mut extents = Vec::new();
        self.groups(rows, span, &mut |group, row| {
            for run in row.group.runs.iter().filter(|run| run.content != ZEROS) {
                let bytes = Self::bytes_of(group, run.first, run.end());
                let part = bytes.cut_to(span);
                if !part.is_empty() {
                    let skip = run.skip * UNIT + (part.start - bytes.start);
                    extents.push(Extent { span: part, content: run.content, skip });
                }
            }
            extents.len() <= most
        })?;
        Ok(Some(extents).filter(|extents| extents.len() <= most))
    }
}

impl FileView {
    /// Makes the bytes of `span` those of some contents, which other resources refer to, too, and what they leave out zeros. Nothing is
    /// copied. `false`: something is written there already, or there are too many groups or runs for that.
    pub fn share(
        self,
        rows: &dyn Rows,
        (span, extents): (ByteSpan, &[Extent]),
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<bool, Unread> {
        let mut is_written = false;
        self.groups(rows, span, &mut |_, _| {
            is_written = true;
            false
        })?;
        Ok(!is_written && self.share_new((span, extents), tick, changes))
    }

    /// Makes the bytes of `span` those of some contents, as [`FileView::share`] does, whatever is written there. `false`: there are too
    /// many groups or runs for that, and nothing has changed.
    pub fn share_over(
        self,
        rows: &dyn Rows,
        (span, extents): (ByteSpan, &[Extent]),
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<bool, Unread> {
        let (first, end) = span.groups();
        let shared = runs_by_group(extents);
        if end - first > SHARED_GROUPS_MAX || shared.values().any(|runs| runs.len() > RUNS_DUE) {
            return Ok(false);
        }
        let mut before = self.load(rows, span, true)?;
        let runs_of = |group: u64| shared.get(&group).map_or(&[][..], Vec::as_slice);
        // A run that the span cuts in two counts twice.
        if before.iter().any(|(group, found)| found.group.runs.len() + 1 + runs_of(*group).len() > RUNS_MAX) {
            return Ok(false);
        }
        for group in first..end {
            let (from, to) = Self::units_in(span, group);
            let id = tick.id(FRESH_IDS + group - first);
            let change = Change::Share(from, to, runs_of(group));
            self.paint(group, before.remove(&group), change, (id, tick), changes);
        }
        Ok(true)
    }

    /// The same as [`FileView::share`] for a map that is created in the same decision: there is nothing to look at.
    pub fn share_new(self, (span, extents): (ByteSpan, &[Extent]), tick: Tick, changes: &mut Changes) -> bool {
        let (first, end) = span.groups();
        let groups = runs_by_group(extents);
        if end - first > SHARED_GROUPS_MAX || groups.values().any(|runs| runs.len() > RUNS_DUE) {
            return false;
        }
        for (group, runs) in groups {
            let id = tick.id(FRESH_IDS + group - first);
            for content in runs.iter().map(|run| run.content).collect::<BTreeSet<u64>>() {
                changes.refer(content, id);
            }
            if is_due(0, runs.len()) {
                changes.put(due_row(self.map, group, tick.now), Bytes::new());
            }
            changes.put(key(self.map, group, self.epoch), codec::encode(&Group { id, runs, cleared: Vec::new() }));
        }
        true
    }
}

/// The runs of each group. Those that follow each other in one content are one.
fn runs_by_group(extents: &[Extent]) -> BTreeMap<u64, Vec<Run>> {
    let mut groups: BTreeMap<u64, Vec<Run>> = BTreeMap::new();
    for extent in extents {
        let (first, end) = extent.span.groups();
        for group in first..end {
            let (from, to) = FileView::units_in(extent.span, group);
            let start = FileView::bytes_of(group, from, to).start;
            let run = Run {
                first: from,
                count: to - from,
                content: extent.content,
                skip: extent.skip + (start - extent.span.start),
            };
            let runs = groups.entry(group).or_default();
            match runs.last_mut() {
                Some(last)
                    if last.content == run.content && last.end() == run.first && last.skip + last.count == run.skip =>
                {
                    last.count += run.count;
                }
                _ => runs.push(run),
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::GROUP_BYTES;
    use concurrency::Timestamp;

    fn extent(start: u64, end: u64, content: u64, skip: u64) -> Extent {
        Extent { span: ByteSpan { start, end }, content, skip }
    }

    #[test]
    fn extents_become_runs_of_their_groups() {
        let run = |first, count, content, skip| Run { first, count, content, skip };
        let all =
            [extent(10, 20, 7, 0), extent(20, GROUP_BYTES + 5, 7, 10), extent(GROUP_BYTES + 5, GROUP_BYTES + 9, 8, 3)];
        let groups = runs_by_group(&all);
        assert_eq!(groups[&0], [run(10, GROUP_BYTES - 10, 7, 0)]);
        assert_eq!(groups[&1], [run(0, 5, 7, GROUP_BYTES - 10), run(5, 4, 8, 3)]);
        assert_eq!(groups.len(), 2);
    }

    #[test]
    fn what_is_too_much_for_one_decision_is_not_begun() {
        let tick = Tick { now: Timestamp(5), stamp: Timestamp(1_000), entropy: 7 };
        let shared = |end: u64, extents: &[Extent]| {
            let mut changes = Changes::none();
            FileView::new(9).share_new((ByteSpan { start: 0, end }, extents), tick, &mut changes)
        };
        let most = SHARED_GROUPS_MAX * GROUP_BYTES;
        assert!(shared(most, &[extent(0, most, 7, 0)]));
        assert!(!shared(most + 1, &[extent(0, most + 1, 7, 0)]));
        let many: Vec<Extent> = (0..=RUNS_DUE as u64).map(|n| extent(2 * n, 2 * n + 1, 7, 0)).collect();
        assert!(shared(1_000, &many[1..]) && !shared(1_000, &many));
    }
}
