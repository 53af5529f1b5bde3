//! What share snapshots see.
//!
//! A snapshot is one row: it ends the share's epoch. Each file and directory knows since which epoch it is as it is. The first
//! change after a snapshot keeps the entry as it was, as a past entry of that snapshot, and the file goes on in the next epoch of
//! its map, so that its bytes stay, too. What is changed again before the next snapshot, and what no snapshot sees, keeps nothing.
//!
//! - [`keep`] is called, by `change::entry` alone, before an entry changes or goes.
//! - [`see`] finds what stood at a name when a snapshot was taken: the entry itself if it has not changed since, or the past entry
//!   of the next snapshot that has one. The epochs of a name's past entries never overlap, so there is only one.
//! - A file that has several names is an entry of its own beside those of its names, in the place of its id and no name. A change
//!   of the file keeps that entry alone; a name that goes is kept as the hard link that it was. [`follow`] goes from one to the
//!   other, as of one snapshot.
//! - [`let_go_some`] works off what a snapshot kept that is gone: a past entry goes to the snapshot before, if that one sees it,
//!   and otherwise away.

use bytes::Bytes;
use concurrency::Timestamp;
use engine::{Changes, Key, KeyReader, Rows, Tick, Unread, Visit};
use service::codec;
use wire::file_path::FoldedName;
use wire::names::ShareName;

use crate::model::{
    DeletedShare, Entry, FormerPlace, Halt, HardLink, Links, Node, NodePlace, Protocol, SNAPSHOTS_MAX, ShareGuard,
    deleted_shares_named, entry_key, entry_key_at, existing_snapshot, find_guard, find_usage, kept_by, kept_key,
    linked_key, past_key, past_of, snapshots, usage_key,
};
use crate::tree::{self, Spot};

/// How many past entries a step lets go of. Each brings some rows with it.
pub const ENTRIES_PER_STEP: usize = if cfg!(test) { 4 } else { 50 };

/// With more former places than this a file forgets those that only snapshots saw which are gone.
const PLACES_MAX: usize = if cfg!(test) { 3 } else { SNAPSHOTS_MAX as usize };

/// Keeps what stands at a spot if the newest snapshot sees it, and says whether it does. If so, its bytes belong to the past entry:
/// the file goes on with the next epoch of its map, or lets go of nothing.
pub fn keep(spot: &Spot, rows: &dyn Rows, changes: &mut Changes) -> Result<bool, Unread> {
    let share = spot.share;
    let Some(node) = spot.node.as_ref().filter(|node| is_seen(share, node)) else { return Ok(false) };
    match node.links {
        None => put_past(share, &spot.place(), codec::encode(node), changes),
        // It is kept once, whatever the number of its names, and by which of them it is changed.
        Some(_) => {
            let node = Node { name: String::new(), ..node.clone() };
            put_past(share, &NodePlace::of_linked(node.id), codec::encode(&node), changes);
        }
    }
    share.count_kept(rows, node.length(), changes)?;
    Ok(true)
}

/// Keeps that a place is one of several names of a file, if the newest snapshot sees it. The file itself is another matter.
pub fn keep_link(share: ShareGuard, place: &NodePlace, rows: &dyn Rows, changes: &mut Changes) -> Result<(), Unread> {
    if share.newest_snapshot == 0 {
        return Ok(());
    }
    let Some(row) = rows.get(&entry_key_at(share.generation, place))? else { return Ok(()) };
    match codec::decode(&row)? {
        Entry::Link(link) if share.newest_snapshot >= link.since => put_past(share, place, row, changes),
        Entry::Link(_) | Entry::Node(_) => {}
    }
    Ok(())
}

fn put_past(share: ShareGuard, place: &NodePlace, row: Bytes, changes: &mut Changes) {
    let (until, NodePlace { directory, name }) = (share.newest_snapshot, place);
    changes.put(past_key(share.generation, *directory, name, until), row);
    changes.put(kept_key(share.generation, until, *directory, name), Bytes::new());
}

/// Whether the newest snapshot sees an entry, so that the next change keeps it.
pub fn is_seen(share: ShareGuard, node: &Node) -> bool {
    share.newest_snapshot >= node.since
}

/// Notes on a file that is renamed, or gets its second name, where the snapshots so far find it.
pub fn note_place(from: &Spot, node: &mut Node, rows: &dyn Rows) -> Result<(), Unread> {
    let until = from.share.newest_snapshot;
    let is_noted = node.former.as_ref().and_then(|places| places.last()).is_some_and(|last| last.until >= until);
    if until == 0 || node.is_directory() || is_noted {
        return Ok(());
    }
    let places = node.former.get_or_insert_default();
    places.push(FormerPlace { until, directory: from.directory(), name: from.name.as_str().to_owned() });
    if places.len() > PLACES_MAX {
        // A place stays if a snapshot lives that finds the file there, so no more stay than there are snapshots.
        let live = snapshots(rows, from.share.generation)?;
        let mut noted = 0;
        places.retain(|place| {
            let before = std::mem::replace(&mut noted, place.until);
            live.iter().any(|(_, snapshot)| before < snapshot.epoch && snapshot.epoch <= place.until)
        });
    }
    Ok(())
}

/// The epoch of the snapshot that a request names. `None` for the share itself.
pub fn epoch_of(rows: &dyn Rows, share: ShareGuard, time: Option<Timestamp>) -> Result<Option<u64>, Halt> {
    time.map(|time| Ok(existing_snapshot(rows, share.generation, time)?.epoch)).transpose()
}

/// What stands at a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    pub node: Node,
    /// It is a past entry, which never changes.
    pub is_past: bool,
}

/// What stands at a name, or stood there when the snapshot of the epoch `at` was taken.
pub fn see(
    rows: &dyn Rows,
    generation: u64,
    at: Option<u64>,
    directory: u64,
    name: &FoldedName,
) -> Result<Option<Seen>, Unread> {
    let key = entry_key(generation, directory, name);
    let Some(epoch) = at else { return Ok(tree::entry(rows, &key)?.map(|node| Seen { node, is_past: false })) };
    // Both are asked for before either is missed.
    let (base, past) = (rows.get(&key), first_past(rows, generation, epoch, directory, name.as_str()));
    let (base, past) = (base?.map(|row| codec::decode::<Entry>(&row)).transpose()?, past?);
    let base = base.filter(|entry| entry.since() <= epoch).map(|entry| (entry, false));
    match base.or(past.filter(|entry| entry.since() <= epoch).map(|entry| (entry, true))) {
        Some((Entry::Node(node), is_past)) => Ok(Some(Seen { node, is_past })),
        Some((Entry::Link(link), _)) => {
            let place = NodePlace { directory, name: name.as_str().to_owned() };
            follow(rows, generation, at, &place, link).map(Some)
        }
        None => Ok(None),
    }
}

/// The file that the hard link at a place leads to, or led to when the snapshot of the epoch `at` was taken, under the name that it
/// has there.
pub fn follow(
    rows: &dyn Rows,
    generation: u64,
    at: Option<u64>,
    place: &NodePlace,
    link: HardLink,
) -> Result<Seen, Unread> {
    let Seen { mut node, is_past } = linked(rows, generation, at, link.id)?.ok_or_else(lost_link)?;
    node.name = name_at(node.links.as_ref(), place)?;
    Ok(Seen { node, is_past })
}

/// How a file that has several names is spelled at a place.
pub fn name_at(links: Option<&Links>, place: &NodePlace) -> Result<String, Unread> {
    Ok(links.and_then(|links| links.spelling(place)).ok_or_else(lost_link)?.to_owned())
}

/// A link and its file do not fit.
pub fn lost_link() -> Unread {
    codec::corrupt("a hard link does not lead to a file that has its name")
}

/// The file of an id, if it has several names, or had them when the snapshot of the epoch `at` was taken.
pub fn linked(rows: &dyn Rows, generation: u64, at: Option<u64>, id: u64) -> Result<Option<Seen>, Unread> {
    let base = rows.get(&linked_key(generation, id))?.map(|row| codec::decode::<Node>(&row)).transpose()?;
    let base = base.filter(|node| at.is_none_or(|at| node.since <= at));
    match (base, at) {
        (Some(node), _) => Ok(Some(Seen { node, is_past: false })),
        (None, None) => Ok(None),
        (None, Some(at)) => match first_past(rows, generation, at, id, "")? {
            Some(Entry::Node(node)) if node.since <= at => Ok(Some(Seen { node, is_past: true })),
            Some(_) | None => Ok(None),
        },
    }
}

/// The first past entry of a name that the snapshot of the epoch `at`, or a later one, has kept.
fn first_past(rows: &dyn Rows, generation: u64, at: u64, directory: u64, name: &str) -> Result<Option<Entry>, Unread> {
    let mut found = None;
    let all = past_of(generation, directory, name);
    rows.scan(&all.clone().number(at), &all.after_all(), 1, &mut |_, row| {
        found = Some(codec::decode(row));
        Visit::Stop
    })?;
    found.transpose()
}

/// Where the file at a spot was when the snapshot of the epoch `at` was taken: the file itself, if it was there.
pub fn former(rows: &dyn Rows, spot: &Spot, node: &Node, at: u64) -> Result<Option<Node>, Unread> {
    let noted = node.former.iter().flatten().find(|place| place.until >= at);
    let (directory, name) = match noted {
        Some(place) => (place.directory, FoldedName::stored(&place.name)),
        None => (spot.directory(), spot.name.clone()),
    };
    let generation = spot.share.generation;
    // If it had several names then, it is found by its id. Both are asked for before either is missed.
    let linked = match spot.share.protocol {
        Protocol::Smb => Ok(None),
        Protocol::Nfs => linked(rows, generation, Some(at), node.id),
    };
    let seen = see(rows, generation, Some(at), directory, &name)?;
    Ok(linked?.or(seen).map(|seen| seen.node).filter(|found| found.id == node.id))
}

/// A snapshot that is gone, with past entries that are still kept for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DroppedSnapshot {
    pub account: u64,
    pub share: ShareName,
    pub generation: u64,
    pub epoch: u64,
}

impl DroppedSnapshot {
    /// From the owner of its due row.
    pub fn from_bytes(owner: &[u8]) -> Option<DroppedSnapshot> {
        let mut reader = KeyReader::new(owner);
        let (account, share) = (reader.number()?, ShareName::parse(&reader.text()?).ok()?);
        Some(DroppedSnapshot { account, share, generation: reader.number()?, epoch: reader.number()? })
    }

    /// The first key of what it kept.
    pub fn kept(&self) -> Key {
        kept_by(self.generation, self.epoch)
    }

    /// Whether its share is there, or can come back. Otherwise all of the share is about to be removed.
    fn has_share(&self, rows: &dyn Rows) -> Result<bool, Unread> {
        let live = find_guard(rows, self.account, &self.share);
        let all = deleted_shares_named(self.account, &self.share);
        let mut deleted = Ok(false);
        rows.scan(&all, &all.after_all(), 1, &mut |_, row| {
            deleted = codec::decode(row).map(|found: DeletedShare| found.share.generation == self.generation);
            if matches!(deleted, Ok(false)) { Visit::Next } else { Visit::Stop }
        })?;
        Ok(live?.is_some_and(|share| share.generation == self.generation) || deleted?)
    }
}

/// Lets go of some past entries of a snapshot that is gone, from the key `low` on, and says where to go on. Those that the snapshot
/// before sees go to that one.
pub fn let_go_some(
    rows: &dyn Rows,
    snapshot: &DroppedSnapshot,
    low: &Key,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Option<Key>, Unread> {
    let DroppedSnapshot { generation, epoch, .. } = *snapshot;
    // All are asked for before any is missed.
    let (has_share, live, kept) =
        (snapshot.has_share(rows), snapshots(rows, generation), kept_from(rows, snapshot, low));
    // Of a share that is gone nothing else is asked: a snapshot whose row cannot be read goes with it.
    if !has_share? {
        return Ok(None);
    }
    let (live, (kept, next)) = (live?, kept?);
    let before = live.iter().map(|(_, other)| other.epoch).filter(|other| *other < epoch).max().unwrap_or(0);
    let keys: Vec<Key> = kept.iter().map(|(directory, name)| past_key(generation, *directory, name, epoch)).collect();
    rows.prefetch(&keys);
    let (mut freed, mut gone, mut unreadable) = (0, 0, None);
    for ((directory, name), key) in kept.iter().zip(keys) {
        let row = rows.get(&key)?;
        let kept = kept_key(generation, epoch, *directory, name);
        let Ok(entry) = row.as_ref().map(|row| codec::decode::<Entry>(row)).transpose() else {
            // It stays, and what lies behind it goes.
            unreadable = unreadable.or(Some(kept));
            continue;
        };
        gone += 1;
        changes.delete(kept);
        changes.delete(key);
        let (Some(row), Some(entry)) = (row, entry) else { continue };
        if entry.since() <= before {
            changes.put(past_key(generation, *directory, name, before), row);
            changes.put(kept_key(generation, before, *directory, name), Bytes::new());
        } else if let Entry::Node(node) = entry {
            freed += node.length();
            if let Some(state) = node.file() {
                state.view.let_go(changes, tick.now);
            }
        }
    }
    if freed > 0 {
        let mut usage = find_usage(rows, generation)?;
        usage.past_bytes = usage.past_bytes.saturating_sub(freed);
        changes.put(usage_key(generation), codec::encode(&usage));
    }
    match (unreadable, next) {
        (None, next) => Ok(next),
        // All others of this snapshot go first. Then those that cannot be read are told.
        (Some(first), None) if gone > 0 => Ok(Some(first)),
        (Some(_), None) => Err(codec::corrupt("a past entry cannot be read and stays")),
        (Some(first), Some(next)) => Ok(Some(if gone > 0 { first } else { next })),
    }
}

/// A directory's id and a folded name in it.
type KeptName = (u64, String);

/// Some names whose past entries a snapshot has kept, and where to go on if there are more.
fn kept_from(rows: &dyn Rows, snapshot: &DroppedSnapshot, low: &Key) -> Result<(Vec<KeptName>, Option<Key>), Unread> {
    let all = snapshot.kept();
    let (mut found, mut next, mut is_readable) = (Vec::new(), None, true);
    rows.scan((&all).max(low), &all.after_all(), ENTRIES_PER_STEP + 1, &mut |key, _| {
        if found.len() == ENTRIES_PER_STEP {
            next = Some(Key::from_bytes(key));
            return Visit::Stop;
        }
        let mut reader = KeyReader::new(key);
        let (_, _, directory, name) = (reader.number(), reader.number(), reader.number(), reader.text());
        is_readable = directory.is_some() && name.is_some();
        found.extend(directory.zip(name));
        if is_readable { Visit::Next } else { Visit::Stop }
    })?;
    if is_readable { Ok((found, next)) } else { Err(codec::corrupt("the key of a kept entry")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileError;
    use crate::model::{dropped_snapshot_due, share_key};
    use crate::testing::Bench;
    use engine::due::Due;
    use engine::{Commit, commit};

    /// However much a snapshot kept, each step is small, begins where the last one ended, and lets others in between.
    #[tokio::test]
    async fn what_a_snapshot_kept_goes_in_small_steps() {
        let bench = Bench::with_share().await;
        let count = 3 * ENTRIES_PER_STEP + 1;
        for n in 0..count {
            bench.create(&format!("{n:03}"), 10).await;
        }
        let first = bench.snapshot().await;
        for n in 0..count {
            bench.write(&format!("{n:03}"), 0, b"x").await;
        }
        bench.drop_snapshot(&first).await;
        let (generation, name) = (bench.generation().await, ShareName::parse("share").unwrap());
        let share = share_key(1, &name);
        let due = Due::from_key(dropped_snapshot_due(&share, generation, 1, Timestamp(5)).as_bytes()).unwrap();
        let dropped = DroppedSnapshot::from_bytes(&due.owner).unwrap();
        assert_eq!(dropped, DroppedSnapshot { account: 1, share: name, generation, epoch: 1 });
        let (mut low, mut steps) = (Some(dropped.kept()), 0);
        while let Some(from) = low {
            let dropped = dropped.clone();
            let step = commit::<_, FileError, _>(&*bench.engine, share.clone(), move |rows, tick| {
                let mut changes = Changes::none();
                let low = let_go_some(rows, &dropped, &from, tick, &mut changes)?;
                assert!(low.as_ref().is_none_or(|low| *low > from));
                assert!(changes.rows.len() <= 6 * ENTRIES_PER_STEP, "{} rows", changes.rows.len());
                Ok(Commit { changes, outcome: low })
            });
            low = step.await.unwrap();
            steps += 1;
            bench.check_rows().await;
            bench.write(&format!("{:03}", steps), 0, b"y").await;
        }
        assert_eq!((steps, bench.past_rows().await), (4, 0));
        bench.sweep().await;
        bench.check_rows().await;
    }

    /// One past entry that cannot be read stays and is told. All others go.
    #[tokio::test]
    async fn a_past_entry_that_cannot_be_read_stops_no_other() {
        let bench = Bench::with_share().await;
        let names: Vec<String> = (0..3 * ENTRIES_PER_STEP).map(|n| format!("{n:03}")).collect();
        for name in &names {
            bench.create(name, 10).await;
        }
        let first = bench.snapshot().await;
        for name in &names {
            bench.write(name, 0, b"x").await;
        }
        bench.damage_first(Key::new(service::space::PAST_ENTRY)).await;
        bench.drop_snapshot(&first).await;
        let mut failed = None;
        for _ in 0..10 {
            let swept = engine::collector::sweep(&*bench.engine, &[&bench.service, &content::map::MapCollector]).await;
            failed = swept.err().or(failed);
        }
        assert!(failed.unwrap().to_string().contains("cannot be read"));
        assert_eq!(bench.past_rows().await, 2, "the row and the one that says what it is kept for");
    }

    #[test]
    fn owners_of_due_rows_that_are_none() {
        for owner in [&b""[..], b"x", &[0; 40]] {
            assert_eq!(DroppedSnapshot::from_bytes(owner), None);
        }
    }
}
