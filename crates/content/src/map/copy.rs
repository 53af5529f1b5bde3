//! Copies and cuts: maps that stand in front of others.
//!
//! A copy of a map costs the same however much it holds: the new map begins empty and reads what it does not have from the
//! one it was copied from, at the epoch of that moment. A file that is cut short by many groups becomes such a copy of
//! itself, with an end: beyond it the map behind shows nothing, however the file grows later.

use std::convert::Infallible;

use bytes::Bytes;
use concurrency::Timestamp;
use engine::collector::ref_key;
use engine::{Changes, Commit, Engine, EngineError, Key, Rows, Tick, Unread, Visit, commit};
use minicbor::{Decode, Encode};
use service::{codec, unrefused};

use super::group::Group;
use super::read::Found;
use super::write::Change;
use super::{ByteSpan, FIRST_EPOCH, FRESH_IDS, GROUP_BYTES, MAP_BYTES_MAX, View, group_rows, key, prune_due, rows_of};

/// How many maps may stand behind one. Every read asks all of them.
pub const ORIGINS_MAX: usize = 8;
/// How many groups a cut removes in its own decision.
pub const CUT_ROWS_MAX: usize = if cfg!(test) { 2 } else { 1_000 };
/// How many groups one step of settling takes over: each needs a fresh id.
const GROUPS_PER_STEP: usize = 8;

/// The maps behind a map, the nearest first: where the bytes come from that it has no row for. It is stored in the row of
/// the map itself, which is empty for a map that began with zeros.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
#[cbor(map)]
pub(super) struct Origins {
    #[n(0)]
    pub views: Vec<Origin>,
}

/// A map behind another, as it was at one epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub(super) struct Origin {
    #[n(0)]
    pub map: u64,
    #[n(1)]
    pub epoch: u64,
    /// The bytes from here on do not show. `None`: all show.
    #[n(2)]
    pub end: Option<u64>,
}

impl<const UNIT: u64> From<View<UNIT>> for Origin {
    fn from(view: View<UNIT>) -> Origin {
        Origin { map: view.map, epoch: view.epoch, end: None }
    }
}

impl Origin {
    pub fn view<const UNIT: u64>(self) -> View<UNIT> {
        View { map: self.map, epoch: self.epoch }
    }

    pub fn has_end(&self) -> bool {
        self.end.is_some()
    }

    /// `span` without the groups that do not show. The group in which the end lies shows up to there.
    pub fn groups_up_to_end(&self, span: ByteSpan) -> ByteSpan {
        let end = self.end.map_or(u64::MAX, |end| end.next_multiple_of(GROUP_BYTES));
        ByteSpan { end: span.end.min(end), ..span }
    }

    /// A group as it shows through.
    pub fn cut<const UNIT: u64>(&self, group: u64, found: Found) -> Found {
        match self.end {
            Some(end) if end < (group + 1) * GROUP_BYTES => {
                let units = end.saturating_sub(group * GROUP_BYTES) / UNIT;
                Found { group: found.group.up_to(units), ..found }
            }
            Some(_) | None => found,
        }
    }

    fn ending_at(self, end: Option<u64>) -> Origin {
        let ends = [self.end, end].into_iter().flatten();
        Origin { end: ends.min(), ..self }
    }

    /// The reference of a map that stands in front of this one. It begins as that of a resource does, so that the epoch
    /// counts as one that is read.
    fn held_by(self, map: u64) -> Key {
        ref_key(self.map, self.epoch).number(map)
    }
}

/// A map that has branched off another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Branch<const UNIT: u64> {
    pub view: View<UNIT>,
    /// It reads the epoch that it has branched off, which must not change any more.
    pub needs_this: bool,
}

impl<const UNIT: u64> View<UNIT> {
    /// The maps behind this one.
    pub(super) fn origins(self, rows: &dyn Rows) -> Result<Vec<Origin>, Unread> {
        origins(rows, self.map)
    }

    /// A new map that begins as this view. It costs the same however much there is: the new map stands in front of this
    /// one. `None`: too many do so already, and [`View::settle`] must come first.
    pub fn branch(self, rows: &dyn Rows, map: u64, changes: &mut Changes) -> Result<Option<Branch<UNIT>>, Unread> {
        self.branch_up_to(rows, map, None, changes)
    }

    fn branch_up_to(
        self,
        rows: &dyn Rows,
        map: u64,
        end: Option<u64>,
        changes: &mut Changes,
    ) -> Result<Option<Branch<UNIT>>, Unread> {
        let mut views = self.origins(rows)?;
        let needs_this = self.has_rows(rows)?;
        if needs_this {
            views.insert(0, self.into());
        }
        if views.len() > ORIGINS_MAX {
            return Ok(None);
        }
        for view in &mut views {
            *view = view.ending_at(end);
            changes.put(view.held_by(map), Bytes::new());
        }
        let view = View::new(map);
        view.refer(changes);
        let row = if views.is_empty() { Bytes::new() } else { codec::encode(&Origins { views }) };
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

    /// Cuts a resource of `length` bytes off at `end`: nothing beyond it shows again, however it grows later. Returns the
    /// view to go on with; `map` is the id of the map if it is a new one. `None`: too many maps stand behind this one, and
    /// [`View::settle`] must come first.
    ///
    /// A new map costs the same however much is cut off, and forgets which pages were written and cleared there since a
    /// snapshot.
    pub fn cut(
        self,
        rows: &dyn Rows,
        (length, end): (u64, u64),
        map: u64,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<Option<View<UNIT>>, Unread> {
        let span = ByteSpan { start: end, end: length };
        if span.is_empty() {
            return Ok(Some(self));
        }
        let is_small = || self.touches_few(rows, span);
        if (end > 0 || self.has_earlier(rows)?) && is_small()? {
            for (group, found) in self.load(rows, span, true)? {
                let (from, to) = (Self::units_in(span, group).0, Self::GROUP_UNITS);
                self.paint_end(group, found, Change::Cut(from, to), (span, tick), changes);
            }
            return Ok(Some(self));
        }
        let view = if end == 0 {
            let view = View::new(map);
            view.create(changes);
            view
        } else {
            let Some(branch) = self.branch_up_to(rows, map, Some(end), changes)? else { return Ok(None) };
            branch.view
        };
        self.let_go(changes, tick.now);
        Ok(Some(view))
    }

    /// Whether a cut may remove what is there of `span` in its own decision.
    fn touches_few(self, rows: &dyn Rows, span: ByteSpan) -> Result<bool, Unread> {
        let mut count = 0;
        self.groups(rows, span, &mut |_, _| {
            count += 1;
            count <= CUT_ROWS_MAX
        })?;
        Ok(count <= CUT_ROWS_MAX)
    }

    /// Makes a map stand by itself, in steps: without maps behind it.
    pub async fn settle(engine: &dyn Engine, map: u64) -> Result<(), EngineError> {
        let mut next = Some(0);
        while let Some(from) = next {
            let step = commit::<_, Infallible, _>(engine, rows_of(map), move |rows, tick| {
                let mut changes = Changes::none();
                let next = Self::settle_some(rows, map, from, tick, &mut changes)?;
                Ok(Commit { changes, outcome: next })
            });
            next = unrefused(step.await)?;
        }
        Ok(())
    }

    /// Gives a map rows of its own for what it has from the maps behind it, some groups from `from` on, so that it can let
    /// go of them. Says where to go on.
    fn settle_some(
        rows: &dyn Rows,
        map: u64,
        from: u64,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<Option<u64>, Unread> {
        let origins = origins(rows, map)?;
        let mut taken = 0;
        let mut next = Some(ByteSpan { start: from * GROUP_BYTES, end: MAP_BYTES_MAX });
        while let Some(span) = next {
            let (found, more) = Self::nearest(rows, &origins, span)?;
            for (group, (_, found)) in found {
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
                // Nothing compares this map with what was before it.
                changes.put(own, codec::encode(&Group { id, cleared: Vec::new(), ..found.group }));
            }
            next = more;
        }
        leave(&origins, map, tick.now, changes);
        changes.put(rows_of(map), Bytes::new());
        Ok(None)
    }
}

/// The maps behind a map.
pub(super) fn origins(rows: &dyn Rows, map: u64) -> Result<Vec<Origin>, Unread> {
    match rows.get(&rows_of(map))? {
        Some(row) if !row.is_empty() => Ok(codec::decode::<Origins>(&row)?.views),
        Some(_) | None => Ok(Vec::new()),
    }
}

/// A map does not need those behind it any longer.
pub(super) fn leave(origins: &[Origin], map: u64, now: Timestamp, changes: &mut Changes) {
    for origin in origins {
        changes.delete(origin.held_by(map));
        changes.put(prune_due(origin.map, 0, now), Bytes::new());
    }
}
