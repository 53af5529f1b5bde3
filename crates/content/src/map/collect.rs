//! What goes later: rows of maps that no epoch sees any longer.

use bytes::Bytes;
use engine::collector::{Handled, Handler, steps};
use engine::due::Due;
use engine::{BoxFuture, Changes, Engine, EngineError, Key, KeyReader, PREFETCH_KEYS_MAX, Rows, Tick, Unread, Visit};
use service::{codec, space};

use super::copy::{leave, origins};
use super::group::Group;
use super::{GROUP_BYTES, compact, group_rows, key, parts, prune_due, rows_of};

/// How many rows, and how many runs in them, one step of pruning looks at.
const ROWS_PER_STEP: usize = 200;
const RUNS_PER_STEP: usize = 2_000;
/// If more maps than this stand in front of one, each counts as one that is seen.
const FRONTS_ASKED_MAX: usize = 16;

/// Handles the due rows of all maps, whichever service they belong to: the sweeper needs one of these beside the services.
#[derive(Clone, Copy, Debug, Default)]
pub struct MapCollector;

impl Handler for MapCollector {
    fn spaces(&self) -> &[u8] {
        &[space::PAGE_MAP]
    }

    fn handle<'a>(&'a self, engine: &'a dyn Engine, due: &'a Due) -> BoxFuture<'a, Result<Handled, EngineError>> {
        Box::pin(async move {
            match Task::of(&due.owner).ok_or_else(|| due.unknown())? {
                // A long map is pruned piece by piece, and each piece asks for the next.
                Task::Prune { map, from } => {
                    let pruned = steps(engine, due, move |rows, tick, changes| {
                        prune(rows, map, from, tick, changes)?;
                        Ok(false)
                    });
                    pruned.await?;
                }
                Task::Compact { map, group } => {
                    compact::compact(engine, map, group).await?;
                    steps(engine, due, |_, _, _| Ok(false)).await?;
                }
            }
            Ok(Handled::Done)
        })
    }
}

/// What a due row asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Task {
    /// To remove what no epoch sees, from a group on.
    Prune { map: u64, from: u64 },
    /// To rewrite a group that has many runs.
    Compact { map: u64, group: u64 },
}

impl Task {
    fn of(owner: &[u8]) -> Option<Task> {
        let (map, rest) = owner.split_first_chunk::<8>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let (map, number) = (u64::from_be_bytes(*map), u64::from_be_bytes(*number));
        match rest {
            [] => Some(Task::Prune { map, from: number }),
            [compact::DUE_MARK] => Some(Task::Compact { map, group: number }),
            _ => None,
        }
    }
}

/// Removes rows that no epoch reads, some groups from `from` on, and asks for the rest to be done in its turn. If nothing
/// refers to the map, those are all.
fn prune(rows: &dyn Rows, map: u64, from: u64, tick: Tick, changes: &mut Changes) -> Result<(), Unread> {
    let references = references(rows, map)?;
    let is_gone = references.is_empty();
    let readers = readers(rows, map, &references)?;
    let origins = origins(rows, map)?;
    // A map in front may have others behind this one, also when this one has been settled.
    let hides_others = !origins.is_empty() || references.iter().any(|(_, front)| front.is_some());
    let mut step = Step { readers, hides_others, group: None, versions: Vec::new() };
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
                changes.put(prune_due(map, group, tick.now), Bytes::new());
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
        leave(&origins, map, tick.now, changes);
        changes.delete(rows_of(map));
    } else if !more && !is_seen(&references) {
        // Those behind it need not keep anything for this one.
        for origin in origins {
            changes.put(prune_due(origin.map, 0, tick.now), Bytes::new());
        }
    }
    failed.map_or(Ok(()), Err)
}

/// An epoch of a map that is read, and which groups of it: all of them by a resource or a snapshot, and by a map in front of it
/// those that show there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Reader {
    epoch: u64,
    /// The first group, and the one after the last.
    groups: (u64, u64),
}

impl Reader {
    fn sees(&self, group: u64) -> bool {
        (self.groups.0..self.groups.1).contains(&group)
    }
}

/// The epochs of a map that something refers to: a resource or a snapshot, or the map in front of it that is named.
fn references(rows: &dyn Rows, map: u64) -> Result<Vec<(u64, Option<u64>)>, Unread> {
    let all = Key::new(space::REF).number(map);
    let mut references = Vec::new();
    rows.scan(&all, &all.after_all(), 1, &mut |key, _| {
        let mut reader = KeyReader::new(key);
        let epoch = reader.number().and_then(|_| reader.number());
        references.extend(epoch.map(|epoch| (epoch, reader.number())));
        Visit::Next
    })?;
    Ok(references)
}

/// Whether a resource or a snapshot sees the map, and not only maps in front of it.
fn is_seen(references: &[(u64, Option<u64>)]) -> bool {
    references.iter().any(|(_, front)| front.is_none())
}

/// A map in front that is only behind others itself reads nothing: those refer to all maps behind it, too, and to what shows there
/// of each.
fn readers(rows: &dyn Rows, map: u64, references: &[(u64, Option<u64>)]) -> Result<Vec<Reader>, Unread> {
    let fronts: Vec<u64> = references.iter().filter_map(|(_, front)| *front).collect();
    rows.prefetch(&fronts.iter().map(|front| rows_of(*front)).take(PREFETCH_KEYS_MAX).collect::<Vec<_>>());
    let mut readers = Vec::with_capacity(references.len());
    for (epoch, front) in references.iter().copied() {
        let everything = Reader { epoch, groups: (0, u64::MAX) };
        let Some(front) = front else {
            readers.push(everything);
            continue;
        };
        if fronts.len() <= FRONTS_ASKED_MAX && !is_seen(&self::references(rows, front)?) {
            continue;
        }
        let shown = origins(rows, front)?.into_iter().filter(|origin| (origin.map, origin.epoch) == (map, epoch));
        let before = readers.len();
        readers.extend(shown.map(|origin| {
            let end = origin.end.map_or(u64::MAX, |end| end.div_ceil(GROUP_BYTES));
            Reader { epoch, groups: (origin.start.unwrap_or(0) / GROUP_BYTES, end) }
        }));
        if readers.len() == before {
            readers.push(everything);
        }
    }
    Ok(readers)
}

/// The rows of the group at hand, by epoch.
struct Step {
    readers: Vec<Reader>,
    /// There are maps behind this one, or may be from where it is read, whose bytes even a row without runs hides.
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
            let is_read =
                self.readers.iter().any(|reader| (*epoch..until).contains(&reader.epoch) && reader.sees(group));
            // A row without runs hides those of an older one, or tells an earlier epoch of clears.
            let tells = || !version.cleared.is_empty() && self.readers.iter().any(|reader| reader.epoch < *epoch);
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

#[cfg(test)]
mod tests {
    use super::*;
    use concurrency::Timestamp;

    #[test]
    fn due_rows_say_what_they_ask_for() {
        let task = |key: engine::Key| Task::of(&Due::from_key(key.as_bytes()).unwrap().owner);
        assert_eq!(task(prune_due(7, 3, Timestamp(5))), Some(Task::Prune { map: 7, from: 3 }));
        assert_eq!(task(compact::due_row(7, 3, Timestamp(5))), Some(Task::Compact { map: 7, group: 3 }));
        for owner in [&b""[..], &[0; 8], &[0; 15], &[9; 17], &[1; 18]] {
            assert_eq!(Task::of(owner), None);
        }
    }
}
