//! Small writes to files.
//!
//! A run for each append of 100 bytes would make rows of thousands of runs. So a small write takes small neighbours along:
//! before its commit they are read and staged with it as one content. A neighbour goes along while it is at most twice as
//! large as what has been gathered so far, so each byte is written again O(log n) times, and O(log n) runs are left.
//!
//! A write over bytes that are written already is another matter: nothing bounds how often it comes. If it leaves no more runs
//! than there were, it takes nothing along, and never what it leaves of the runs that it cuts: else a page that is written again
//! and again would each time bring the same neighbours. What such writes leave behind is rewritten once for all (`compact`).
//!
//! ```text
//! let gathered = view.gather(rows, span)?        in the read that comes first
//! let gathered = gathering.read().await?         bytes before and after those of the request
//! upload::receive(.., announced.between(..))     all of them become one content
//! view.write_gathered(rows, span, ..)            in the decision
//! ```

use std::collections::VecDeque;

use bytes::Bytes;
use engine::{Changes, EngineError, Rows, Staged, Tick, Unread};

use super::compact::Crowded;
use super::group::{Group, Run};
use super::read::OpenContents;
use super::{ByteSpan, FileView, GROUP_BYTES};
use crate::pieces::{self, Piece};

/// What is gathered is at most so large, the write included. A content of this size still travels with its commit.
pub const GATHERED_BYTES_MAX: u64 = engine::INLINE_MAX as u64;

/// The neighbours that a write takes along, still to be read.
#[derive(Clone, Debug, Default)]
pub struct Gathering {
    /// A group that must be rewritten before the write.
    pub crowded: Option<Crowded>,
    view: Option<FileView>,
    before: Vec<Run>,
    after: Vec<Run>,
    pieces_before: VecDeque<Piece>,
    pieces_after: VecDeque<Piece>,
}

/// The neighbours that a write takes along. The default is a write that takes none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Gathered {
    /// The view that they were gathered for.
    view: Option<FileView>,
    /// The runs, in order, in units of the first and of the last group that the write touches.
    runs_before: Vec<Run>,
    runs_after: Vec<Run>,
    /// The bytes that stand right before and right after those of the write.
    pub before: Bytes,
    pub after: Bytes,
}

impl Gathering {
    /// Reads the neighbours.
    pub async fn read(self) -> Result<Gathered, EngineError> {
        Ok(Gathered {
            view: self.view,
            before: pieces::whole(self.pieces_before).await?,
            after: pieces::whole(self.pieces_after).await?,
            runs_before: self.before,
            runs_after: self.after,
        })
    }
}

impl Gathered {
    /// The bytes of the content that a write of `span` stages.
    pub fn extent(&self, span: ByteSpan) -> ByteSpan {
        ByteSpan { start: span.start - self.before.len() as u64, end: span.end + self.after.len() as u64 }
    }
}

impl FileView {
    /// The neighbours that a write of `span` takes along.
    ///
    /// Runs that an earlier snapshot sees stay as they are: a comparison with it would tell that they have changed. So a write
    /// that keeps this epoch for a snapshot asks its [`View::next`].
    pub fn gather(self, rows: &dyn Rows, span: ByteSpan) -> Result<Gathering, Unread> {
        let found = self.load_all(rows, span)?;
        let crowded = found.iter().find_map(|(group, found)| found.crowded(*group));
        let none = Gathering { crowded, ..Gathering::default() };
        if span.is_empty() || span.length() >= GATHERED_BYTES_MAX {
            return Ok(none);
        }
        let (first, last) = (span.start / GROUP_BYTES, (span.end - 1) / GROUP_BYTES);
        let nothing = Group::default();
        let group = |number: u64| found.get(&number).map_or(&nothing, |found| &found.group);
        let (before, after) = (group(first), group(last));
        let rewrite = Rewrite::of((first..=last).map(|number| (number, group(number))), span);
        if rewrite == Rewrite::InPlace {
            return Ok(none);
        }
        let mut neighbours = (left_of(before, span, rewrite), right_of(after, span, rewrite));
        let kept = |runs: &mut Vec<Run>, group: u64| -> Result<(), Unread> {
            let earlier = if runs.is_empty() { None } else { self.earlier_group(rows, group)? };
            let contents = earlier.map(|earlier| earlier.contents()).unwrap_or_default();
            // What lies beyond it is no neighbour any longer.
            if let Some(end) = runs.iter().position(|run| contents.contains(&run.content)) {
                runs.truncate(end);
            }
            Ok(())
        };
        kept(&mut neighbours.0, first)?;
        kept(&mut neighbours.1, last)?;
        let (before, after) = choose(neighbours, span);
        let mut contents = OpenContents::new(rows);
        let mut open = |runs: &[Run]| runs.iter().map(|run| contents.run(*run)).collect::<Result<_, Unread>>();
        let (pieces_before, pieces_after) = (open(&before)?, open(&after)?);
        Ok(Gathering { view: Some(self), crowded, before, after, pieces_before, pieces_after })
    }

    /// Makes `staged` the bytes of `span` and of the neighbours that were gathered for it. If one of these has changed since,
    /// or the file has gone on in another epoch, only `span` is written.
    pub fn write_gathered(
        self,
        rows: &dyn Rows,
        span: ByteSpan,
        (gathered, staged): (&Gathered, &Staged),
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(), Unread> {
        let extent = gathered.extent(span);
        // In another epoch there may be a snapshot that sees them.
        if extent != span && gathered.view == Some(self) && self.has_runs(rows, span, gathered)? {
            return self.write(rows, extent, staged, tick, changes);
        }
        self.write_from(rows, span, (staged, span.start - extent.start), tick, changes)
    }

    /// Whether the neighbours are still those that were gathered. Equal runs have equal bytes: contents never change.
    fn has_runs(self, rows: &dyn Rows, span: ByteSpan, gathered: &Gathered) -> Result<bool, Unread> {
        let extent = gathered.extent(span);
        let has = |part: ByteSpan, runs: &[Run]| {
            if part.is_empty() {
                return Ok(true);
            }
            let group = part.start / GROUP_BYTES;
            let (from, to) = Self::units_in(part, group);
            let found = self.load_group(rows, group)?.unwrap_or_default();
            Ok::<bool, Unread>(found.group.runs_within(from, to).eq(runs.iter().copied()))
        };
        Ok(has(ByteSpan { end: span.start, ..extent }, &gathered.runs_before)?
            && has(ByteSpan { start: span.end, ..extent }, &gathered.runs_after)?)
    }
}

/// What a write does to the runs that are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rewrite {
    /// Some of its bytes were unwritten.
    No,
    /// All of its bytes were written, and it leaves more runs than there were.
    Cuts,
    /// All of its bytes were written, and it leaves as many runs as there were, or fewer.
    InPlace,
}

impl Rewrite {
    /// Of the groups that the write touches, in order.
    fn of<'a>(groups: impl Iterator<Item = (u64, &'a Group)>, span: ByteSpan) -> Rewrite {
        let (mut written, mut touched, mut parts, mut count) = (0, 0, 0, 0);
        for (number, group) in groups {
            let (from, to) = FileView::units_in(span, number);
            for run in group.runs.iter().filter(|run| run.first < to && from < run.end()) {
                touched += 1;
                parts += usize::from(run.first < from) + usize::from(to < run.end());
                written += run.end().min(to) - run.first.max(from);
            }
            count += 1;
        }
        if written < span.length() {
            Rewrite::No
        } else if parts + count > touched {
            Rewrite::Cuts
        } else {
            Rewrite::InPlace
        }
    }
}

/// The runs before a write, the nearest first, up to a gap.
fn left_of(group: &Group, span: ByteSpan, rewrite: Rewrite) -> Vec<Run> {
    let start = span.start % GROUP_BYTES;
    let mut at = start;
    let runs =
        group.runs.iter().rev().filter(|run| run.first < start && (rewrite == Rewrite::No || run.end() <= start));
    let runs = runs.filter_map(|run| run.within(0, start));
    runs.take_while(|run| std::mem::replace(&mut at, run.first) == run.end()).collect()
}

/// The runs after a write, the nearest first, up to a gap.
fn right_of(group: &Group, span: ByteSpan, rewrite: Rewrite) -> Vec<Run> {
    let end = (span.end - 1) % GROUP_BYTES + 1;
    let mut at = end;
    let runs = group.runs.iter().filter(|run| end < run.end() && (rewrite == Rewrite::No || end <= run.first));
    let runs = runs.filter_map(|run| run.within(end, u64::MAX));
    runs.take_while(|run| std::mem::replace(&mut at, run.end()) == run.first).collect()
}

/// The runs to take along, before and after the write, in order. The neighbours come with the nearest first.
fn choose((left, right): (Vec<Run>, Vec<Run>), span: ByteSpan) -> (Vec<Run>, Vec<Run>) {
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    let (mut taken_left, mut taken_right, mut size) = (Vec::new(), Vec::new(), span.length());
    loop {
        let fits = |run: &Run| run.count <= 2 * size && size + run.count <= GATHERED_BYTES_MAX;
        if let Some(run) = left.next_if(fits) {
            size += run.count;
            taken_left.push(run);
        } else if let Some(run) = right.next_if(fits) {
            size += run.count;
            taken_right.push(run);
        } else {
            break;
        }
    }
    taken_left.reverse();
    (taken_left, taken_right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: u64, end: u64) -> Run {
        Run { first, count: end - first, content: first + 1, skip: 0 }
    }

    fn group(runs: &[(u64, u64)]) -> Group {
        Group { runs: runs.iter().map(|(first, end)| run(*first, *end)).collect(), ..Group::default() }
    }

    #[test]
    fn what_a_write_does_to_the_runs() {
        type Bounds = (u64, u64);
        let table: &[(&[Bounds], Bounds, Rewrite)] = &[
            (&[], (0, 10), Rewrite::No),
            (&[(0, 10)], (10, 20), Rewrite::No),
            (&[(0, 10), (12, 20)], (5, 15), Rewrite::No),
            (&[(0, 10)], (5, 11), Rewrite::No),
            (&[(0, 10)], (0, 10), Rewrite::InPlace),
            (&[(0, 10)], (0, 9), Rewrite::Cuts),
            (&[(0, 10)], (1, 10), Rewrite::Cuts),
            (&[(0, 10)], (1, 9), Rewrite::Cuts),
            (&[(0, 10), (10, 20)], (5, 15), Rewrite::Cuts),
            (&[(0, 10), (10, 20)], (5, 20), Rewrite::InPlace),
            (&[(0, 10), (10, 20)], (0, 20), Rewrite::InPlace),
            (&[(0, 10), (10, 15), (15, 20)], (5, 18), Rewrite::InPlace),
        ];
        for (runs, (start, end), expected) in table {
            let span = ByteSpan { start: *start, end: *end };
            assert_eq!(Rewrite::of([(0, &group(runs))].into_iter(), span), *expected, "{runs:?} {span:?}");
        }
        // Over the border of two groups.
        let (first, last) = (group(&[(0, GROUP_BYTES)]), group(&[(0, 10), (10, GROUP_BYTES)]));
        let of = |start, end| Rewrite::of([(0, &first), (1, &last)].into_iter(), ByteSpan { start, end });
        assert_eq!(of(0, GROUP_BYTES + 10), Rewrite::InPlace);
        assert_eq!(of(5, GROUP_BYTES + 10), Rewrite::Cuts);
        assert_eq!(of(0, 2 * GROUP_BYTES), Rewrite::InPlace);
    }

    #[test]
    fn neighbours_come_nearest_first_and_end_at_a_gap() {
        let group = group(&[(0, 5), (6, 10), (10, 20), (20, 30), (30, 40), (41, 50)]);
        let span = |start, end| ByteSpan { start, end };
        let sides = |span, rewrite| (left_of(&group, span, rewrite), right_of(&group, span, rewrite));
        let whole = (vec![run(10, 20), run(6, 10)], vec![run(30, 40)]);
        for rewrite in [Rewrite::No, Rewrite::Cuts] {
            assert_eq!(sides(span(20, 30), rewrite), whole);
            assert_eq!(sides(span(GROUP_BYTES + 20, GROUP_BYTES + 30), rewrite), whole, "{rewrite:?}");
        }
        // What is left of runs that are cut goes along only with a write of bytes that were unwritten.
        let (left, right) = sides(span(22, 28), Rewrite::No);
        let cut = |first, end, skip| Run { first, count: end - first, content: 21, skip };
        assert_eq!((left[0], left[1], right[0], right[1]), (cut(20, 22, 0), run(10, 20), cut(28, 30, 8), run(30, 40)));
        assert_eq!(sides(span(22, 28), Rewrite::Cuts), (vec![], vec![]));
        assert_eq!(sides(span(22, 30), Rewrite::Cuts), (vec![], vec![run(30, 40)]));
        assert_eq!(sides(span(55, 60), Rewrite::No), (vec![], vec![]));
    }
}
