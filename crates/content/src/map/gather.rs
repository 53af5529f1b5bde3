//! Small writes to files.
//!
//! A run for each append of 100 bytes would make rows of thousands of runs. So a small write takes small neighbours along:
//! before its commit they are read and staged with it as one content. A neighbour goes along while it is at most twice as
//! large as what has been gathered so far, so each byte is written again O(log n) times, and O(log n) runs are left.
//!
//! ```text
//! let gathered = view.gather(rows, span)?        in the read that comes first
//! let gathered = gathering.read().await?         bytes before and after those of the request
//! upload::receive(.., announced.between(..))     all of them become one content
//! view.write_gathered(rows, span, ..)            in the decision
//! ```

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use engine::{Changes, EngineError, Rows, Staged, Tick, Unread};

use super::group::{Group, Run};
use super::read::OpenContents;
use super::{ByteSpan, FileView, GROUP_BYTES};
use crate::pieces::{self, Piece};

/// What is gathered is at most so large, the write included. A content of this size still travels with its commit.
pub const GATHERED_BYTES_MAX: u64 = engine::INLINE_MAX as u64;

/// The neighbours that a write takes along, still to be read.
#[derive(Clone, Debug, Default)]
pub struct Gathering {
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
        if span.is_empty() || span.length() >= GATHERED_BYTES_MAX {
            return Ok(Gathering::default());
        }
        let found = self.load_all(rows, span)?;
        let first = span.start / GROUP_BYTES;
        let last = (span.end - 1) / GROUP_BYTES;
        let side = |group: u64| -> Result<Side, Unread> {
            let runs = found.get(&group).map(|found| found.group.runs.clone()).unwrap_or_default();
            let kept = if runs.is_empty() { None } else { self.earlier_group(rows, group)? };
            let kept = kept.map_or_else(BTreeSet::new, |kept| kept.runs.iter().map(|run| run.content).collect());
            Ok(Side { runs, kept })
        };
        let (before, after) = choose(&side(first)?, &side(last)?, span);
        let mut contents = OpenContents::new(rows);
        let mut open = |runs: &[Run]| runs.iter().map(|run| contents.run(*run)).collect::<Result<_, Unread>>();
        Ok(Gathering { view: Some(self), pieces_before: open(&before)?, pieces_after: open(&after)?, before, after })
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

/// The group on one side of a write.
struct Side {
    runs: Vec<Run>,
    /// Contents that must stay as they are.
    kept: BTreeSet<u64>,
}

impl Side {
    fn may_move(&self, run: &Run) -> bool {
        !self.kept.contains(&run.content)
    }
}

/// The runs to take along, before and after the write, in order.
fn choose(before: &Side, after: &Side, span: ByteSpan) -> (Vec<Run>, Vec<Run>) {
    let start = span.start % GROUP_BYTES;
    let end = (span.end - 1) % GROUP_BYTES + 1;
    let group = |side: &Side| Group { runs: side.runs.clone(), ..Group::default() };
    let mut left: Vec<Run> = group(before).runs_within(0, start).collect();
    let mut right: Vec<Run> = group(after).runs_within(end, u64::MAX).collect();
    right.reverse();
    let (mut taken_left, mut taken_right) = (Vec::new(), Vec::new());
    let (mut from, mut to, mut size) = (start, end, span.length());
    loop {
        let fits = |run: &Run| run.count <= 2 * size && size + run.count <= GATHERED_BYTES_MAX;
        if let Some(run) = left.pop_if(|run| run.end() == from && fits(run) && before.may_move(run)) {
            (from, size) = (run.first, size + run.count);
            taken_left.push(run);
        } else if let Some(run) = right.pop_if(|run| run.first == to && fits(run) && after.may_move(run)) {
            (to, size) = (run.end(), size + run.count);
            taken_right.push(run);
        } else {
            break;
        }
    }
    taken_left.reverse();
    (taken_left, taken_right)
}
