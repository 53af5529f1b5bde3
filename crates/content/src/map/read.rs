//! The rows that a view sees, and the bytes they stand for.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

use bytes::Bytes;
use engine::collector::ref_key;
use engine::{Content, ContentId, Key, KeyReader, Rows, Unread, Visit};
use service::{codec, space};

use super::copy::Origin;
use super::group::{Group, Run, ZEROS};
use super::{ByteSpan, FIRST_EPOCH, View, group_rows, key, parts};
use crate::pieces::Piece;

/// How many groups are loaded at once of a map with others behind it. Tests have few groups, and see the borders, too.
const GROUPS_AT_ONCE: usize = if cfg!(test) { 3 } else { 1_000 };

/// Up to so many groups are asked for by their keys. The largest transfer of SMB touches nine if it is not aligned.
const GROUPS_BY_KEY_MAX: u64 = 16;

/// A row that a view sees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Found {
    /// The map that it is a row of.
    pub map: u64,
    pub epoch: u64,
    /// There is no row of an earlier epoch, and no map behind this one.
    pub is_alone: bool,
    /// A snapshot may still need it. Only writes look at the snapshots.
    pub is_read_by_others: bool,
    /// It is of a map behind this one, which never changes.
    pub is_inherited: bool,
    /// There is an earlier state to compare with, which needs to know of clears. Only writes look.
    pub keeps_marks: bool,
    pub group: Group,
}

/// The newest version of a group that a scan has come to so far. Only the last one is decoded: a group that was written after each of
/// many snapshots has as many versions before it.
struct GroupVersion {
    group: u64,
    epoch: u64,
    /// There is no earlier version.
    is_alone: bool,
    row: Bytes,
}

impl GroupVersion {
    fn found<const UNIT: u64>(&self, view: View<UNIT>) -> Result<Found, Unread> {
        let GroupVersion { epoch, is_alone, .. } = *self;
        let group = codec::decode(&self.row)?;
        let is_read_by_others = epoch != view.epoch;
        Ok(Found { map: view.map, epoch, is_alone, is_read_by_others, group, ..Found::default() })
    }
}

/// Rows by group, each with the number of the view that it is of.
pub(super) type NearestRows = BTreeMap<u64, (usize, Found)>;

impl Default for Found {
    /// Stands for a row that is not there: it is of no epoch, and nothing reads it.
    fn default() -> Found {
        let (is_alone, group) = (true, Group::default());
        Found { map: 0, epoch: 0, is_alone, is_read_by_others: false, is_inherited: false, keeps_marks: false, group }
    }
}

impl<const UNIT: u64> View<UNIT> {
    /// Visits what this view sees of the groups that `span` touches, until `each` returns false. Groups that were never
    /// written are passed over.
    pub(super) fn groups(
        self,
        rows: &dyn Rows,
        span: ByteSpan,
        each: &mut dyn FnMut(u64, Found) -> bool,
    ) -> Result<(), Unread> {
        let origins = self.origins(rows)?;
        if origins.is_empty() {
            return self.own_groups(rows, span, each);
        }
        let mut views = vec![Origin::from(self)];
        views.extend(origins);
        let mut next = Some(span);
        while let Some(span) = next {
            let (found, more) = Self::nearest(rows, &views, span)?;
            for (group, (at, found)) in found {
                // What is behind a row shows if the row goes.
                let found = Found { is_alone: false, ..if at == 0 { found } else { found.inherited() } };
                if !each(group, found) {
                    return Ok(());
                }
            }
            next = more;
        }
        Ok(())
    }

    /// Some groups of `span` as the nearest of some views that has them sees them, each with the number of that view; and
    /// what is left of the span.
    pub(super) fn nearest(
        rows: &dyn Rows,
        views: &[Origin],
        span: ByteSpan,
    ) -> Result<(NearestRows, Option<ByteSpan>), Unread> {
        let (mut found, mut last) = (BTreeMap::new(), u64::MAX);
        for (at, origin) in views.iter().enumerate() {
            let mut count = 0;
            origin.view::<UNIT>().own_groups(rows, origin.shown_groups(span), &mut |group, row| {
                count += 1;
                if count == GROUPS_AT_ONCE {
                    last = last.min(group);
                }
                found.entry(group).or_insert_with(|| (at, origin.cut::<UNIT>(group, row)));
                count < GROUPS_AT_ONCE
            })?;
        }
        found.retain(|group, _| *group <= last);
        let rest = last.checked_add(1).map(|next| Self::bytes_of(next, 0, 0).start);
        let rest = rest.map(|start| ByteSpan { start, ..span }).filter(|rest| !rest.is_empty());
        Ok((found, rest))
    }

    /// The same as [`View::groups`], without the maps behind this one.
    pub(super) fn own_groups(
        self,
        rows: &dyn Rows,
        span: ByteSpan,
        each: &mut dyn FnMut(u64, Found) -> bool,
    ) -> Result<(), Unread> {
        if span.is_empty() {
            return Ok(());
        }
        let (from, to) = span.groups();
        if self.epoch == FIRST_EPOCH && to - from <= GROUPS_BY_KEY_MAX {
            return self.groups_by_key(rows, from..to, each);
        }
        let mut newest: Option<GroupVersion> = None;
        let mut failed = None;
        let mut enough = false;
        let about = usize::try_from(to - from).unwrap_or(usize::MAX).min(1_000);
        rows.scan(&group_rows(self.map, from), &group_rows(self.map, to), about, &mut |key, row| {
            let visited = parts(key).and_then(|(group, epoch)| {
                if let Some(last) = newest.take_if(|last| last.group != group)
                    && !each(last.group, last.found(self)?)
                {
                    enough = true;
                    return Ok(Visit::Stop);
                }
                if epoch <= self.epoch {
                    let is_alone = newest.is_none();
                    newest = Some(GroupVersion { group, epoch, is_alone, row: row.clone() });
                }
                Ok(Visit::Next)
            });
            visited.unwrap_or_else(|error| {
                failed = Some(error);
                Visit::Stop
            })
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some(last) = newest.filter(|_| !enough) {
            each(last.group, last.found(self)?);
        }
        Ok(())
    }

    /// A few groups of a map in its first epoch, in which each has one row at most. Its key is known, and engines have rows that
    /// are asked for by their keys at hand, where a scan would have to search.
    fn groups_by_key(
        self,
        rows: &dyn Rows,
        groups: Range<u64>,
        each: &mut dyn FnMut(u64, Found) -> bool,
    ) -> Result<(), Unread> {
        let keys: Vec<Key> = groups.clone().map(|group| key(self.map, group, self.epoch)).collect();
        if keys.len() > 1 {
            rows.prefetch(&keys);
        }
        for (group, key) in groups.zip(&keys) {
            let Some(row) = rows.get(key)? else { continue };
            let place = Found { map: self.map, epoch: self.epoch, ..Found::default() };
            if !each(group, Found { group: codec::decode(&row)?, ..place }) {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn load_all(self, rows: &dyn Rows, span: ByteSpan) -> Result<BTreeMap<u64, Found>, Unread> {
        let mut found = BTreeMap::new();
        self.groups(rows, span, &mut |group, row| {
            found.insert(group, row);
            true
        })?;
        Ok(found)
    }

    /// One group.
    pub(super) fn load_group(self, rows: &dyn Rows, group: u64) -> Result<Option<Found>, Unread> {
        Ok(self.load_all(rows, Self::bytes_of(group, 0, Self::GROUP_UNITS))?.remove(&group))
    }

    /// A group as the newest earlier state that can still be compared with saw it. `None`: there is no such state.
    pub(super) fn earlier_group(self, rows: &dyn Rows, group: u64) -> Result<Option<Group>, Unread> {
        // Before the first epoch there is none.
        let epochs = if self.epoch == FIRST_EPOCH { Vec::new() } else { live_epochs(rows, self.map)? };
        let earlier = match epochs.into_iter().filter(|epoch| *epoch < self.epoch).max() {
            Some(epoch) => View { epoch, ..self }.load_group(rows, group)?,
            None => {
                let origins = self.origins(rows)?;
                if !origins.iter().any(Origin::is_cut) {
                    return Ok(None);
                }
                let (mut found, _) = Self::nearest(rows, &origins, Self::bytes_of(group, 0, Self::GROUP_UNITS))?;
                found.remove(&group).map(|(_, found)| found)
            }
        };
        Ok(Some(earlier.unwrap_or_default().group))
    }

    /// Whether there is an earlier state that this one can be compared with.
    pub(super) fn has_earlier(self, rows: &dyn Rows) -> Result<bool, Unread> {
        // A map that a cut or a clear has put in front of another goes on where that one ended.
        if self.origins(rows)?.iter().any(Origin::is_cut) {
            return Ok(true);
        }
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

    /// Opens the bytes from `offset` to `end`.
    pub fn open(self, rows: &dyn Rows, offset: u64, end: u64) -> Result<VecDeque<Piece>, Unread> {
        let wanted = ByteSpan { start: offset, end };
        let mut found = Vec::new();
        self.groups(rows, wanted, &mut |group, row| {
            found.extend(row.group.runs.iter().filter_map(|run| {
                let bytes = Self::bytes_of(group, run.first, run.end());
                let part = bytes.cut_to(wanted);
                (!part.is_empty()).then_some((part, run.content, run.skip * UNIT + (part.start - bytes.start)))
            }));
            true
        })?;
        let mut contents = OpenContents::new(rows);
        let mut pieces = VecDeque::with_capacity(found.len());
        let mut at = offset;
        for (part, content, skip) in found {
            if at < part.start {
                pieces.push_back(Piece::zeros(part.start - at));
            }
            pieces.push_back(contents.piece(content, skip, part.length())?);
            at = part.end;
        }
        if at < end {
            pieces.push_back(Piece::zeros(end - at));
        }
        Ok(pieces)
    }
}

impl Found {
    pub fn is_stored(&self) -> bool {
        self.epoch != 0
    }

    /// As maps in front see it: as old as can be, and not theirs to change.
    fn inherited(self) -> Found {
        Found { epoch: 0, is_read_by_others: true, is_inherited: true, ..self }
    }
}

/// Opens contents once each, however many runs are in them.
pub(super) struct OpenContents<'a> {
    rows: &'a dyn Rows,
    known: HashMap<u64, Content>,
}

impl<'a> OpenContents<'a> {
    pub fn new(rows: &'a dyn Rows) -> OpenContents<'a> {
        OpenContents { rows, known: HashMap::new() }
    }

    pub fn piece(&mut self, id: u64, offset: u64, length: u64) -> Result<Piece, Unread> {
        if id == ZEROS {
            return Ok(Piece::zeros(length));
        }
        let content = match self.known.get(&id) {
            Some(content) => content.clone(),
            None => self.known.entry(id).or_insert(self.rows.content(ContentId(id))?).clone(),
        };
        Ok(Piece::new(id, content, offset, length))
    }

    /// The bytes of a run of a file.
    pub fn run(&mut self, run: Run) -> Result<Piece, Unread> {
        self.piece(run.content, run.skip, run.count)
    }
}

/// The epochs of a map that a resource, a snapshot or a map in front of it sees.
pub(super) fn live_epochs(rows: &dyn Rows, map: u64) -> Result<Vec<u64>, Unread> {
    let all = Key::new(space::REF).number(map);
    let mut epochs = Vec::new();
    rows.scan(&all, &all.after_all(), 1, &mut |key, _| {
        let mut reader = KeyReader::new(key);
        epochs.extend(reader.number().and_then(|_| reader.number()));
        Visit::Next
    })?;
    Ok(epochs)
}

#[cfg(test)]
mod tests {
    use engine::memory::MemoryEngine;
    use engine::{Changes, Commit, NotCommitted, commit, read};

    use super::*;
    use crate::map::PageView;

    /// Of a group's versions only the newest that the view sees is decoded: one that cannot be read is in nobody's way before it.
    #[tokio::test]
    async fn older_versions_are_not_decoded() {
        const MAP: u64 = 7;
        let engine = MemoryEngine::default();
        let stored = commit(&engine, group_rows(MAP, 0), |_, _| {
            let mut changes = Changes::none();
            for group in [0, 1] {
                changes.put(key(MAP, group, 1), Bytes::from_static(b"damaged"));
                changes.put(key(MAP, group, 2), codec::encode(&Group::default()));
            }
            Ok::<_, engine::Stop<()>>(Commit { changes, outcome: () })
        });
        stored.await.unwrap();
        let seen = async |epoch| {
            let seen = read(&engine, move |rows, _| {
                let mut seen = Vec::new();
                let span = PageView::bytes_of(0, 0, 2 * PageView::GROUP_UNITS);
                PageView { map: MAP, epoch }.own_groups(rows, span, &mut |group, found| {
                    seen.push((group, found.epoch, found.is_alone));
                    true
                })?;
                Ok::<_, engine::Stop<()>>(seen)
            });
            seen.await
        };
        assert_eq!(seen(3).await.unwrap(), [(0, 2, false), (1, 2, false)]);
        assert!(matches!(seen(1).await, Err(NotCommitted::Failed(_))));
    }
}
