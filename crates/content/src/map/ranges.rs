//! What clients are told of a map: which pages are written, and which have changed since a snapshot.

use std::collections::{BTreeMap, BTreeSet};

use concurrency::Timestamp;
use engine::{Rows, Unread};

use super::group::Group;
use super::read::Found;
use super::{ByteSpan, GROUP_BYTES, PAGE_BYTES, View};

/// How many groups are compared at once. Tests have few, and see the borders, too.
const COMPARED_AT_ONCE: usize = if cfg!(any(test, feature = "testing")) { 2 } else { 1_000 };

const GROUP_PAGES: usize = (GROUP_BYTES / PAGE_BYTES) as usize;

/// A range of pages that differs from what it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Changed {
    pub span: ByteSpan,
    /// Unwritten now, but written at some time since or before; otherwise written.
    pub is_cleared: bool,
}

/// Ranges as they are found, merged where they touch: at most `most` of them, of `span`.
struct Listing {
    span: ByteSpan,
    most: usize,
    found: Vec<Changed>,
}

impl Listing {
    /// Adds a range. `Err`: there is no room for it, and the next listing goes on here.
    fn add(&mut self, bytes: ByteSpan, is_cleared: bool) -> Result<(), u64> {
        let span = bytes.cut_to(self.span);
        if span.is_empty() {
            return Ok(());
        }
        // Runs in one page are one range of pages.
        let touches = |last: &&mut Changed| last.span.end >= span.start && last.is_cleared == is_cleared;
        if let Some(last) = self.found.last_mut().filter(touches) {
            last.span.end = span.end.max(last.span.end);
        } else if self.found.len() < self.most {
            self.found.push(Changed { span, is_cleared });
        } else {
            return Err(span.start);
        }
        Ok(())
    }
}

impl<const UNIT: u64> View<UNIT> {
    /// The pages of `span` that are written, as ranges that are merged where they touch, at most `most`; and where to go on
    /// if there are more. The span ends where the resource does: so does the last page.
    pub fn ranges(self, rows: &dyn Rows, span: ByteSpan, most: usize) -> Result<(Vec<ByteSpan>, Option<u64>), Unread> {
        self.some_ranges(rows, span, (most, usize::MAX))
    }

    /// The same, and no more than `groups` written groups are looked at. A range is cut where that ends.
    pub fn some_ranges(
        self,
        rows: &dyn Rows,
        span: ByteSpan,
        (most, mut groups): (usize, usize),
    ) -> Result<(Vec<ByteSpan>, Option<u64>), Unread> {
        let mut listing = Listing { span, most, found: Vec::new() };
        let mut next = None;
        self.groups(rows, span, &mut |group, row| {
            if groups == 0 {
                next = Some((group * GROUP_BYTES).max(span.start));
                return false;
            }
            groups -= 1;
            let pages = row.group.runs.iter().map(|run| Self::bytes_of(group, run.first, run.end()).outwards(u64::MAX));
            next = pages.map(|pages| listing.add(pages, false)).find_map(Result::err);
            next.is_none()
        })?;
        Ok((listing.found.into_iter().map(|range| range.span).collect(), next))
    }

    /// What became of `span` between an earlier view, taken at `since`, and this one, in pages, merged where they touch, at
    /// most `most` ranges; and where to go on if there are more. Written again with the same bytes is written.
    pub fn changes_since(
        self,
        rows: &dyn Rows,
        (earlier, since): (View<UNIT>, Timestamp),
        span: ByteSpan,
        most: usize,
    ) -> Result<(Vec<Changed>, Option<u64>), Unread> {
        let mut listing = Listing { span, most, found: Vec::new() };
        let mut start = span.start;
        while start < span.end {
            // Some at a time: a resource can have millions.
            let rest = ByteSpan { start, end: span.end };
            let (mut after, end) = self.load_some(rows, rest)?;
            let (mut before, end) = earlier.load_some(rows, ByteSpan { start, end })?;
            let groups: BTreeSet<u64> = before.keys().chain(after.keys()).copied().collect();
            for group in groups.into_iter().take_while(|group| group * GROUP_BYTES < end) {
                let (old, new) = (before.remove(&group).unwrap_or_default(), after.remove(&group).unwrap_or_default());
                if earlier.map == self.map && old.epoch == new.epoch {
                    continue;
                }
                for (first, end, is_cleared) in changed_pages(&old.group, &new.group, since, Self::PAGE_UNITS) {
                    let pages = Self::bytes_of(group, first * Self::PAGE_UNITS, end * Self::PAGE_UNITS);
                    if let Err(next) = listing.add(pages, is_cleared) {
                        return Ok((listing.found, Some(next)));
                    }
                }
            }
            start = end;
        }
        Ok((listing.found, None))
    }

    /// The groups of `span`, or the first of them, and the end of what is looked at by then.
    fn load_some(self, rows: &dyn Rows, span: ByteSpan) -> Result<(BTreeMap<u64, Found>, u64), Unread> {
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

/// The pages of a group in which something has changed: the first page, the one after the last, and whether they are
/// unwritten now.
fn changed_pages(before: &Group, after: &Group, since: Timestamp, page: u64) -> Vec<(u64, u64, bool)> {
    let mut written = [false; GROUP_PAGES];
    for run in &after.runs {
        written[pages_of(run.first, run.end(), page)].fill(true);
    }
    let mut found: Vec<(u64, u64, bool)> = Vec::new();
    for (from, to) in before.changes_to(after, since) {
        for at in pages_of(from, to, page) {
            let (number, is_cleared) = (at as u64, !written[at]);
            match found.last_mut() {
                // Another change in the same page.
                Some((_, end, _)) if *end > number => {}
                Some((_, end, last)) if *end == number && *last == is_cleared => *end += 1,
                _ => found.push((number, number + 1, is_cleared)),
            }
        }
    }
    found
}

/// The pages that some units touch.
fn pages_of(from: u64, to: u64, page: u64) -> std::ops::Range<usize> {
    (from / page) as usize..to.div_ceil(page) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_told_as_what_they_are_now() {
        use crate::map::group::{Cleared, Run};
        let run = |first, count, content| Run { first, count, content, skip: 0 };
        let group = |runs: &[Run], cleared: &[Cleared]| Group { id: 1, runs: runs.to_vec(), cleared: cleared.to_vec() };
        let told = |before: &Group, after: &Group| changed_pages(before, after, Timestamp(10), 512);
        let none = group(&[], &[]);
        // Five bytes at 1,023 are in two pages.
        assert_eq!(told(&none, &group(&[run(1_023, 5, 7)], &[])), [(1, 3, false)]);
        // Two changes in one page are one, and a page with something in it is written, whatever else it lost.
        let two = group(&[run(0, 10, 7), run(20, 10, 8), run(600, 10, 8)], &[]);
        assert_eq!(told(&none, &two), [(0, 2, false)]);
        assert_eq!(told(&two, &group(&[run(0, 10, 7)], &[])), [(0, 1, false), (1, 2, true)]);
        assert_eq!(told(&two, &two), []);
        let marks = [
            Cleared { first: 520, count: 1, at: Timestamp(11) },
            Cleared { first: 1_030, count: 1, at: Timestamp(10) },
        ];
        assert_eq!(told(&none, &group(&[], &marks)), [(1, 2, true)]);
    }
}
