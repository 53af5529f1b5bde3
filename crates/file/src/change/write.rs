//! Writing, clearing and resizing the bytes of a file.

use concurrency::{LeaseId, Timestamp};
use content::map::{ByteSpan, Crowded, Gathered, Gathering, PAGE_BYTES};
use content::source::Extent;
use engine::{Changes, Rows, Staged, Tick};

use super::{entry, set};
use crate::error::FileError;
use crate::model::{Attributes, FileState, Halt, Node, NodeKind, refuse};
use crate::past;
use crate::tree::Spot;

/// The id of a new map among the fresh ids of a decision. The id of a new node is the first.
pub const MAP_ID: u64 = 1;

/// What is known of a write before its bytes have come.
#[derive(Debug)]
pub struct PreparedWrite {
    /// The small neighbours that the write takes along, so that appends do not leave a run each.
    pub gathering: Gathering,
    /// A group of the file's map that must be rewritten first.
    pub crowded: Option<Crowded>,
}

/// A change of some bytes of a file, which stays as long as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangeChange {
    pub start: u64,
    /// Behind the last byte.
    pub end: u64,
    pub lease: Option<LeaseId>,
    /// Whether the last write time moves.
    pub moves_last_write: bool,
    pub by: WrittenBy,
}

/// Where a change of bytes comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WrittenBy {
    /// It leaves the file as long as it is, and the file's lease and attributes must allow it.
    Rest,
    /// An SMB handle, which was judged beside lease and attributes when it was opened. It makes the file longer if it ends beyond it.
    Handle {
        /// Whether the change time moves.
        moves_change: bool,
        place: Place,
    },
}

/// Where a change by a handle must lie when it is decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Anywhere,
    /// It does not begin before the end of the file: the handle may only append.
    NotBeforeEnd,
    /// It begins where the file ends. Otherwise the file has changed since its end was looked up ([`FileError::Moved`]).
    AtEnd,
    /// It ends within the file, which does not become longer. Otherwise the file has changed since ([`FileError::Moved`]).
    WithinFile,
}

impl RangeChange {
    /// Whether the bytes may be changed, and the file with the lease that it has afterwards.
    pub fn judge(&self, spot: &Spot, now: Timestamp) -> Result<Node, FileError> {
        match self.by {
            WrittenBy::Rest => {
                let mut node = set::writable_file(spot, self.lease, now)?;
                let length = node.as_written_file()?.length;
                if self.end > length { Err(FileError::InvalidRange { length }) } else { Ok(node) }
            }
            WrittenBy::Handle { place, .. } => {
                let node = set::file_of_handle(spot, now)?;
                let length = node.length();
                match place {
                    Place::NotBeforeEnd if self.start < length => Err(FileError::InvalidRange { length }),
                    Place::AtEnd if self.start != length => Err(FileError::Moved),
                    Place::WithinFile if self.end > length => Err(FileError::Moved),
                    Place::Anywhere | Place::NotBeforeEnd | Place::AtEnd | Place::WithinFile => Ok(node),
                }
            }
        }
    }

    /// Whether the bytes may be written, and what comes along with them.
    pub fn prepare(&self, spot: &Spot, rows: &dyn Rows, now: Timestamp) -> Result<PreparedWrite, Halt> {
        let mut node = self.judge(spot, now).map_err(refuse)?;
        let is_seen = past::is_seen(spot.share, &node);
        let view = node.as_written_file().map_err(refuse)?.view;
        let view = if is_seen { view.next() } else { view };
        let gathering = view.gather(rows, self.span())?;
        Ok(PreparedWrite { crowded: gathering.crowded, gathering })
    }

    /// Makes the bytes those of `staged`, which also has the neighbours that were gathered. If these have changed since, they stay
    /// as they are.
    pub fn write(
        &self,
        spot: &Spot,
        gathered: (&Gathered, &Staged),
        rows: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<Node, Halt> {
        self.change(spot, rows, tick, changes, |state, changes| {
            Ok(state.view.write_gathered(rows, self.span(), gathered, tick, changes)?)
        })
    }

    /// Makes the bytes those that some contents hold, and zeros where they hold none: a copy that moves no bytes. `false`: the map does
    /// not take so much at once. The caller forgets the changes then.
    pub fn share(
        &self,
        spot: &Spot,
        extents: &[Extent],
        rows: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<bool, Halt> {
        let mut is_shared = false;
        self.change(spot, rows, tick, changes, |state, changes| {
            is_shared = state.view.share_over(rows, (self.span(), extents), tick, changes)?;
            Ok(())
        })?;
        Ok(is_shared)
    }

    /// Makes the bytes zeros. Whole pages of them are not stored any longer; the last page of the file is whole where the file ends.
    /// What it costs does not depend on how much was written there.
    pub fn clear(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<Node, Halt> {
        self.change(spot, rows, tick, changes, |state, changes| {
            let mut span = self.span();
            if span.end == state.length {
                span.end = span.end.next_multiple_of(PAGE_BYTES);
            }
            let view = state.view.clear_any(rows, (state.length, span), tick.id(MAP_ID), tick, changes)?;
            state.view = view.ok_or(refuse(FileError::Unsettled { map: state.view.map }))?;
            Ok(())
        })
    }

    fn change(
        &self,
        spot: &Spot,
        rows: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
        paint: impl FnOnce(&mut FileState, &mut Changes) -> Result<(), Halt>,
    ) -> Result<Node, Halt> {
        let mut node = self.judge(spot, tick.now).map_err(refuse)?;
        entry::begin(spot, &mut node, rows, changes)?;
        let state = node.as_written_file().map_err(refuse)?;
        if self.end > state.length {
            // Only a handle writes beyond the end.
            spot.share.count(rows, state.length, self.end, changes)?;
            state.length = self.end;
        }
        paint(state, changes)?;
        node.stamp = tick.stamp;
        if self.by.moves_change() {
            node.changed = tick.now;
        }
        if self.moves_last_write {
            node.written = tick.now;
        }
        entry::replace(spot, &node, changes);
        Ok(node)
    }

    fn span(&self) -> ByteSpan {
        ByteSpan { start: self.start, end: self.end }
    }
}

impl WrittenBy {
    fn moves_change(self) -> bool {
        match self {
            WrittenBy::Rest => true,
            WrittenBy::Handle { moves_change, .. } => moves_change,
        }
    }
}

/// Makes the file that a handle has sparse, or no longer. What its map holds stays as it is.
pub fn set_sparse(
    spot: &Spot,
    is_sparse: bool,
    moves_change: bool,
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<(), Halt> {
    let mut node = set::file_of_handle(spot, tick.now).map_err(refuse)?;
    if node.attributes.contains(Attributes::SPARSE) == is_sparse {
        return Ok(());
    }
    entry::begin(spot, &mut node, rows, changes)?;
    let plain = node.attributes.without(Attributes::SPARSE);
    node.attributes = if is_sparse { plain.with(Attributes::SPARSE) } else { plain };
    node.stamp = tick.stamp;
    node.changed = if moves_change { tick.now } else { node.changed };
    entry::replace(spot, &node, changes);
    Ok(())
}

/// Gives the file that a handle has another length.
pub fn resize_by_handle(
    spot: &Spot,
    length: u64,
    (moves_last_write, moves_change): (bool, bool),
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Node, Halt> {
    let mut node = set::file_of_handle(spot, tick.now).map_err(refuse)?;
    entry::begin(spot, &mut node, rows, changes)?;
    resize(spot, &mut node, length, rows, tick, changes)?;
    node.stamp = tick.stamp;
    node.written = if moves_last_write { tick.now } else { node.written };
    node.changed = if moves_change { tick.now } else { node.changed };
    entry::replace(spot, &node, changes);
    Ok(node)
}

/// Gives a file another length: what is above a smaller one is gone, what a larger one adds is zeros. It must fit into the quota
/// of the share.
pub fn resize(
    spot: &Spot,
    node: &mut Node,
    length: u64,
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<(), Halt> {
    let NodeKind::File(state) = &mut node.kind else { return Err(refuse(FileError::ResourceTypeMismatch)) };
    spot.share.count(rows, state.length, length, changes)?;
    let view = state.view.cut(rows, (state.length, length), tick.id(MAP_ID), tick, changes)?;
    state.view = view.ok_or(refuse(FileError::Unsettled { map: state.view.map }))?;
    state.length = length;
    Ok(())
}
