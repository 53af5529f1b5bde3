//! Commits: one call of `commit_batch`, which is done once however often its answer gets lost.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use engine::{EngineError, Part};
use tokio_postgres::types::ToSql;

use crate::Inner;
use crate::contents::{Extent, placed};
use crate::key::StoredKey;
use crate::pool::Loan;
use crate::session::{END_TURN, Session};
use crate::trouble::Trouble;
use crate::view::{LoadedRows, Overlay, ReadSet};

/// The pause between two tries of a commit whose connection was lost.
const PAUSE: Duration = Duration::from_millis(50);

/// What is to be committed, and what it was decided on.
pub struct Batch<'a> {
    /// The partitions by their numbers, which rise. The first one keeps the commit's name, by which a node asks
    /// whether it was done.
    pub parts: &'a [i64],
    /// The first and the last stamp of its decisions; the last one names the commit.
    pub first: i64,
    pub stamp: i64,
    pub overlay: &'a Overlay,
    pub seen: &'a ReadSet,
    pub loaded: &'a LoadedRows,
}

#[derive(Debug)]
pub struct Committed {
    pub dropped_bytes: i64,
}

/// What the stored contents hold in the byte store is theirs now (or may be).
pub fn keep(overlay: &Overlay) {
    overlay.contents.values().filter_map(|staged| placed(staged).ok()).for_each(|placed| placed.keep());
}

/// Commits. `Lost`: it is not known whether it was done. Every other trouble: nothing was done and nothing will be.
pub async fn run(
    inner: &Inner,
    batch: &Batch<'_>,
    session: Option<Session>,
    deadline: Instant,
) -> Result<Committed, Trouble> {
    let arguments = Arguments::of(batch)?;
    let pool = &inner.source.pool;
    let mut session = session;
    // A try was sent and not answered: it may be done, or still be under way.
    let mut lost = None;
    loop {
        let tried = match session.take() {
            Some(session) => call(inner, batch, &arguments, session).await,
            None => match Session::begin(pool).await {
                Ok(session) => call(inner, batch, &arguments, session).await,
                Err(trouble) => Err(trouble),
            },
        };
        let trouble = match tried {
            Ok(answer) if answer.outcome == 0 => {
                return Ok(Committed { dropped_bytes: answer.dropped_bytes });
            }
            Ok(answer) if answer.outcome == 2 => {
                Trouble::Fatal("the node that took this upload counts as ended; it must be sent again".into())
            }
            Ok(answer) if answer.outcome == 3 => Trouble::Refused("it was decided too long ago".into()),
            Ok(answer) => {
                inner.source.node.raise_stamps(answer.last);
                Trouble::Conflict
            }
            Err(trouble) => trouble,
        };
        match trouble {
            Trouble::Lost(what) => lost = Some(what),
            trouble if lost.is_none() => return Err(trouble),
            // Not done so far; but the lost try may still be under way, so the commit is forbidden.
            Trouble::Conflict | Trouble::Fatal(_) => match forbid(inner, batch).await {
                Ok(Name::Forbidden) => return Err(trouble),
                Ok(Name::Done) => return Ok(Committed { dropped_bytes: 0 }),
                Err(_) => {}
            },
            Trouble::Refused(_) | Trouble::Away(_) => {}
        }
        if Instant::now() + PAUSE > deadline {
            return Err(Trouble::Lost(lost.unwrap_or_default()));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// What a commit's name stands for.
enum Name {
    /// It was done after all.
    Done,
    /// It was not, and will not be.
    Forbidden,
}

/// Takes the commit's name, so that a call still on its way finds it taken. However often it is asked, it says the same; and
/// it writes in any case, so that what it says waits for the standby.
async fn forbid(inner: &Inner, batch: &Batch<'_>) -> Result<Name, Trouble> {
    let pool = &inner.source.pool;
    let loan = pool.get().await?;
    loan.conn.was_warned();
    let sql = "INSERT INTO committed (part, stamp, done) VALUES ($1, $2, false) \
               ON CONFLICT (part, stamp) DO UPDATE SET at = clock_timestamp() RETURNING done";
    let is_done: bool = pool.ask_one(&loan, sql, &[&batch.parts[0], &batch.stamp]).await?.get(0);
    if loan.conn.was_warned() {
        return Err(Trouble::Lost("the standby was not waited for".into()));
    }
    pool.give_back(loan);
    Ok(if is_done { Name::Done } else { Name::Forbidden })
}

struct CallAnswer {
    outcome: i32,
    last: i64,
    dropped_bytes: i64,
}

/// Ends the snapshot and commits, in one round trip.
async fn call(
    inner: &Inner,
    batch: &Batch<'_>,
    arguments: &Arguments<'_>,
    session: Session,
) -> Result<CallAnswer, Trouble> {
    let pool = &inner.source.pool;
    let (loan, open, in_turn) = session.into_parts();
    let Loan { conn, .. } = &loan;
    if conn.client.is_closed() {
        // This node stood still for so long that it was cut off. Nothing was sent, so nothing was done.
        return Err(Trouble::Refused("the connection was closed before".into()));
    }
    conn.was_warned();
    let answer = pool.answer(async {
        let ended = async {
            match open {
                true => conn.client.batch_execute("COMMIT").await,
                false => Ok(()),
            }
        };
        let parameters = arguments.parameters(batch);
        let called = conn.client.query_one(&conn.statements.commit, &parameters);
        let unlocked = async {
            match in_turn {
                true => conn.client.batch_execute(END_TURN).await,
                false => Ok(()),
            }
        };
        let (ended, called, unlocked) = tokio::join!(biased; ended, called, unlocked);
        // Whether it was committed counts, whatever becomes of the connection afterwards.
        let row = called?;
        ended?;
        Ok((CallAnswer { outcome: row.get(0), last: row.get(1), dropped_bytes: row.get(2) }, unlocked.is_ok()))
    });
    match answer.await {
        Ok((answer, clean)) => {
            if conn.was_warned() {
                return Err(Trouble::Lost("the standby was not waited for".into()));
            }
            if clean {
                pool.give_back(loan);
            }
            Ok(answer)
        }
        Err(Trouble::Conflict) => {
            if !in_turn {
                pool.give_back(loan);
            }
            Err(Trouble::Conflict)
        }
        Err(trouble) => Err(trouble),
    }
}

/// Rows by their parts, as columns.
#[derive(Default)]
struct Keys<'a> {
    heads: Vec<&'a [u8]>,
    discs: Vec<Vec<u8>>,
    rests: Vec<&'a [u8]>,
    versions: Vec<i64>,
    values: Vec<&'a [u8]>,
}

impl<'a> Keys<'a> {
    fn push(&mut self, key: &'a [u8], version: i64, value: &'a [u8]) {
        let key = StoredKey::of(key);
        self.discs.push(key.disc());
        self.heads.push(key.head);
        self.rests.push(key.rest);
        self.versions.push(version);
        self.values.push(value);
    }
}

/// Rows that stay as they are until the commit is done, in the order of their keys, so that no two commits wait for each
/// other. Those that are changed are locked against reads and changes of other commits, those that were only read against changes.
#[derive(Default)]
struct Locks<'a> {
    heads: Vec<&'a [u8]>,
    discs: Vec<Vec<u8>>,
    /// `None`: whatever it is.
    versions: Vec<Option<i64>>,
    /// Neighbours of one kind are locked together: where each such run ends, how many versions it has, and its kind.
    ends: Vec<i32>,
    counts: Vec<i64>,
    changes: Vec<bool>,
}

impl<'a> Locks<'a> {
    /// Keys must rise.
    fn push(&mut self, key: &'a [u8], version: Option<i64>, is_changed: bool) {
        let key = StoredKey::of(key);
        self.discs.push(key.disc());
        self.heads.push(key.head);
        self.versions.push(version);
        if self.changes.last() != Some(&is_changed) {
            self.changes.push(is_changed);
            self.ends.push(0);
            self.counts.push(0);
        }
        if let (Some(end), Some(count)) = (self.ends.last_mut(), self.counts.last_mut()) {
            *end = i32::try_from(self.heads.len()).unwrap_or(i32::MAX);
            *count += i64::from(version.is_some());
        }
    }
}

/// The arguments of `commit_batch`, but for the stamps.
#[derive(Default)]
struct Arguments<'a> {
    locks: Locks<'a>,
    void: Keys<'a>,
    from: Keys<'a>,
    to: Keys<'a>,
    counts: Vec<i64>,
    sums: Vec<String>,
    new: Keys<'a>,
    put: Keys<'a>,
    deleted: Keys<'a>,
    contents: Vec<i64>,
    content_lengths: Vec<i64>,
    content_sums: Vec<Option<i64>>,
    content_bytes: Vec<Option<&'a [u8]>>,
    extent_contents: Vec<i64>,
    extent_numbers: Vec<i32>,
    extent_objects: Vec<&'a str>,
    extent_lengths: Vec<i64>,
    extent_sums: Vec<&'a [u8]>,
    epochs: Vec<i64>,
    dropped: Vec<i64>,
}

impl<'a> Arguments<'a> {
    fn of(batch: &Batch<'a>) -> Result<Arguments<'a>, Trouble> {
        let mut arguments = Arguments::default();
        arguments.add_rows(batch);
        arguments.add_ranges(batch);
        arguments.add_contents(batch.overlay).map_err(|error| Trouble::Fatal(error.to_string()))?;
        Ok(arguments)
    }

    fn add_rows(&mut self, batch: &Batch<'a>) {
        let mut locks = BTreeMap::new();
        for (key, version) in &batch.seen.points {
            let written = batch.overlay.rows.get(key);
            match (*version, written) {
                (0, None | Some((_, None))) => self.void.push(key, 0, &[]),
                (0, Some((_, Some(_)))) => {}
                (version, written) => _ = locks.insert(key, (Some(version), written.is_some())),
            }
        }
        for (key, (stamp, value)) in &batch.overlay.rows {
            let was_absent = batch.seen.points.get(key) == Some(&0);
            match value {
                Some(value) if was_absent => self.new.push(key, *stamp, value),
                Some(value) => self.put.push(key, *stamp, value),
                None if was_absent => {}
                None => self.deleted.push(key, 0, &[]),
            }
            // Rows that were written without a look may be what others look at.
            let is_looked_at = !batch.seen.ranges.is_empty() || !self.void.heads.is_empty();
            if is_looked_at && !was_absent {
                locks.entry(key).or_insert((None, true));
            }
        }
        for (key, (version, is_changed)) in locks {
            self.locks.push(key, version, is_changed);
        }
    }

    fn add_ranges(&mut self, batch: &Batch<'a>) {
        let mut ranges: Vec<(&'a [u8], &'a [u8])> =
            batch.seen.ranges.iter().map(|(from, to)| (from.as_slice(), to.as_slice())).collect();
        ranges.sort_unstable();
        ranges.dedup();
        for (from, to) in ranges {
            let (count, sum) = batch.loaded.digest(from, to);
            self.from.push(from, 0, &[]);
            self.to.push(to, 0, &[]);
            self.counts.push(count);
            self.sums.push(sum.to_string());
        }
    }

    fn add_contents(&mut self, overlay: &'a Overlay) -> Result<(), EngineError> {
        let mut epochs = HashSet::new();
        for (id, staged) in &overlay.contents {
            if overlay.dropped.contains(id) {
                continue;
            }
            self.contents.push(id.cast_signed());
            self.content_lengths.push(staged.length().cast_signed());
            match staged.part() {
                Part::Inline(bytes) => {
                    self.content_sums.push(Some(i64::from(crc32c::crc32c(bytes))));
                    self.content_bytes.push(Some(bytes));
                }
                Part::Placed { .. } => {
                    let placed = placed(staged)?;
                    self.content_sums.push(None);
                    self.content_bytes.push(None);
                    self.add_extents(*id, &placed.extents);
                    epochs.insert(placed.epoch);
                }
            }
        }
        self.epochs.extend(epochs);
        self.dropped
            .extend(overlay.dropped.iter().filter(|id| !overlay.contents.contains_key(id)).map(|id| id.cast_signed()));
        Ok(())
    }

    fn add_extents(&mut self, content: u64, extents: &'a [Extent]) {
        for (number, extent) in (0..).zip(extents) {
            self.extent_contents.push(content.cast_signed());
            self.extent_numbers.push(number);
            self.extent_objects.push(&extent.object);
            self.extent_lengths.push(extent.length.cast_signed());
            self.extent_sums.push(&extent.sums);
        }
    }

    /// In the order of the function's parameters.
    fn parameters<'p>(&'p self, batch: &'p Batch<'_>) -> [&'p (dyn ToSql + Sync); 40] {
        [
            &batch.parts,
            &batch.first,
            &batch.stamp,
            &self.locks.heads,
            &self.locks.discs,
            &self.locks.versions,
            &self.locks.ends,
            &self.locks.counts,
            &self.locks.changes,
            &self.void.heads,
            &self.void.discs,
            &self.from.heads,
            &self.from.rests,
            &self.to.heads,
            &self.to.rests,
            &self.counts,
            &self.sums,
            &self.new.heads,
            &self.new.discs,
            &self.new.rests,
            &self.new.versions,
            &self.new.values,
            &self.put.heads,
            &self.put.discs,
            &self.put.rests,
            &self.put.versions,
            &self.put.values,
            &self.deleted.heads,
            &self.deleted.discs,
            &self.contents,
            &self.content_lengths,
            &self.content_sums,
            &self.content_bytes,
            &self.extent_contents,
            &self.extent_numbers,
            &self.extent_objects,
            &self.extent_lengths,
            &self.extent_sums,
            &self.epochs,
            &self.dropped,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_locked_in_the_order_of_their_keys_and_neighbours_together() {
        let mut locks = Locks::default();
        let rows: [(&[u8], Option<i64>, bool); 5] = [
            (b"a", Some(1), false),
            (b"b", Some(2), true),
            (b"c", None, true),
            (b"d", Some(4), true),
            (b"e", Some(5), false),
        ];
        rows.iter().for_each(|(key, version, is_changed)| locks.push(key, *version, *is_changed));
        assert_eq!(locks.heads, [b"a", b"b", b"c", b"d", b"e"]);
        assert_eq!(locks.ends, [1, 4, 5]);
        assert_eq!(locks.counts, [1, 2, 1], "one of them may be of any version, or none");
        assert_eq!(locks.changes, [false, true, false]);
    }
}
