//! Copies and cuts: maps that stand in front of others.
//!
//! A copy of a map costs the same however much it holds: the new map begins empty and reads what it does not have from the
//! one it was copied from, at the epoch of that moment. A file that is cut short by many groups becomes such a copy of
//! itself, with an end: beyond it the map behind shows nothing, however the file grows later. A clear of many groups does the
//! same: what is behind shows before and after them.

use std::convert::Infallible;

use bytes::Bytes;
use concurrency::Timestamp;
use engine::collector::ref_key;
use engine::{Changes, Commit, Engine, EngineError, Key, Rows, Tick, Unread, Visit, commit};
use minicbor::{Decode, Encode};
use service::{codec, unrefused};

use super::group::Group;
use super::read::{Found, live_epochs};
use super::write::Change;
use super::{ByteSpan, FIRST_EPOCH, FRESH_IDS, GROUP_BYTES, MAP_BYTES_MAX, View, group_rows, key, prune_due, rows_of};

/// How many maps may stand behind one. Every read asks all of them.
pub const ORIGINS_MAX: usize = 8;
/// How many groups a cut or a clear removes in its own decision.
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
    /// The groups before this byte do not show. `None`: all show.
    #[n(3)]
    pub start: Option<u64>,
}

impl<const UNIT: u64> From<View<UNIT>> for Origin {
    fn from(view: View<UNIT>) -> Origin {
        Origin { map: view.map, epoch: view.epoch, end: None, start: None }
    }
}

impl Origin {
    pub fn view<const UNIT: u64>(self) -> View<UNIT> {
        View { map: self.map, epoch: self.epoch }
    }

    /// Whether a cut or a clear has taken something of it away.
    pub fn is_cut(&self) -> bool {
        self.end.is_some() || self.start.is_some()
    }

    /// `span` without the groups that do not show. The group in which the end lies shows up to there.
    pub fn shown_groups(&self, span: ByteSpan) -> ByteSpan {
        let end = self.end.map_or(u64::MAX, |end| end.next_multiple_of(GROUP_BYTES));
        ByteSpan { start: span.start.max(self.start.unwrap_or(0)), end: span.end.min(end) }
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

    /// What shows of it outside of `hole`: before it, and behind it, where the hole ends with a group.
    fn around(self, hole: ByteSpan) -> impl Iterator<Item = Origin> {
        let before = Origin { end: Some(self.end.map_or(hole.start, |end| end.min(hole.start))), ..self };
        let behind = Origin { start: Some(self.start.map_or(hole.end, |start| start.max(hole.end))), ..self };
        let shows = |origin: &Origin| origin.start.unwrap_or(0) < origin.end.unwrap_or(MAP_BYTES_MAX);
        [before, behind].into_iter().filter(shows)
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
        let behind = self.origins(rows)?;
        let needs_this = self.has_rows(rows)?;
        Ok(self.branch_from(behind, map, needs_this, None, changes))
    }

    /// The same; of the maps behind the new one nothing shows inside of `hole`.
    fn branch_from(
        self,
        behind: Vec<Origin>,
        map: u64,
        needs_this: bool,
        hole: Option<ByteSpan>,
        changes: &mut Changes,
    ) -> Option<Branch<UNIT>> {
        let mut views = behind;
        if needs_this {
            views.insert(0, self.into());
        }
        if let Some(hole) = hole {
            views = views.into_iter().flat_map(|view| view.around(hole)).collect();
        }
        if views.len() > ORIGINS_MAX {
            return None;
        }
        for view in &views {
            changes.put(view.held_by(map), Bytes::new());
        }
        let view = View::new(map);
        view.refer(changes);
        let row = if views.is_empty() { Bytes::new() } else { codec::encode(&Origins { views }) };
        changes.put(rows_of(map), row);
        Some(Branch { view, needs_this })
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
            let hole = ByteSpan { start: end, end: MAP_BYTES_MAX };
            let behind = self.origins(rows)?;
            let needs_this = self.has_rows(rows)?;
            let Some(branch) = self.branch_from(behind, map, needs_this, Some(hole), changes) else { return Ok(None) };
            branch.view
        };
        self.let_go(changes, tick.now);
        Ok(Some(view))
    }

    /// Makes the bytes of `span` zeros, in a resource of `length` bytes, as [`View::clear`] does, but at the same cost however
    /// many groups were written there. Returns the view to go on with; `map` is the id of the map if it is a new one. `None`:
    /// too many maps stand behind this one, and [`View::settle`] must come first.
    ///
    /// A new map forgets which pages were written and cleared there since a snapshot.
    pub fn clear_any(
        self,
        rows: &dyn Rows,
        (length, span): (u64, ByteSpan),
        map: u64,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<Option<View<UNIT>>, Unread> {
        // Where all of it goes, nothing is kept behind the map.
        let frees_origins =
            || Ok::<_, Unread>(span.start == 0 && span.end >= length && !self.origins(rows)?.is_empty());
        if self.touches_few(rows, span)? && !frees_origins()? {
            self.clear(rows, span, tick, changes)?;
            return Ok(Some(self));
        }
        let start = span.start.next_multiple_of(GROUP_BYTES);
        let end = if span.end >= length { MAP_BYTES_MAX } else { span.end - span.end % GROUP_BYTES };
        // What is left of the first and of the last group is cleared in this map, which then shows around the hole.
        let mut left = Vec::new();
        for edge in [ByteSpan { end: start, ..span }, ByteSpan { start: end, ..span }] {
            if !edge.is_empty() {
                left.extend(self.load(rows, edge, true)?.into_iter().map(|(group, found)| (edge, group, found)));
            }
        }
        let behind = self.origins(rows)?;
        let needs_this = !left.is_empty() || self.has_rows(rows)?;
        let hole = ByteSpan { start, end };
        let Some(branch) = self.branch_from(behind, map, needs_this, Some(hole), changes) else { return Ok(None) };
        for (edge, group, found) in left {
            let (from, to) = Self::units_in(edge, group);
            self.paint_end(group, found, Change::Clear(from, to), (span, tick), changes);
        }
        self.let_go(changes, tick.now);
        Ok(Some(branch.view))
    }

    /// Whether a cut or a clear may remove what is there of `span` in its own decision.
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
        // The resource may be gone meanwhile: nothing comes into a map that the collector is about to remove, or has removed.
        if live_epochs(rows, map)?.is_empty() {
            return Ok(None);
        }
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
