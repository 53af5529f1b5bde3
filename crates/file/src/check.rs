//! What `lazurite check` verifies in shares: that entries, linked files, places, permissions, snapshots and usage agree.
//!
//! Nothing may change meanwhile: the rows are read in slices.

use std::collections::{BTreeSet, HashMap, HashSet};

use bytes::Bytes;
use content::background_copy::Job;
use engine::due::Due;
use engine::{Engine, EngineError, Key, KeyReader, Rows, Unread};
use service::{codec, each_row, space};

use crate::background_copy::FileDestination;
use crate::collect::Task;
use crate::model::{
    DeletedShare, Entry, HardLink, Node, NodePlace, Share, ShareSnapshot, Usage, deleted_share_due, entry_key_at,
    kept_key, linked_key, past_key, permission_key, place_key, place_of_entry, root_key, snapshots,
};
use crate::past::follow;

/// Reports each problem to `problem`, in one sentence.
pub async fn check(engine: &dyn Engine, problem: &mut (dyn FnMut(String) + Send)) -> Result<(), EngineError> {
    let mut survey = Survey::default();
    for (space, look) in [(space::SHARE, share as Look), (space::SHARE_DELETED, deleted_share)] {
        each_row(engine, space, look, &mut |row| survey.found_share(row, problem)).await?;
    }
    each_row(engine, space::DUE, due, &mut |row| survey.found_due(&row)).await?;
    let inner = [
        (space::SHARE_SNAPSHOT, snapshot as Look),
        (space::ENTRY, entry),
        (space::PAST_ENTRY, past),
        (space::KEPT_ENTRY, kept),
        (space::PLACE, place),
        (space::LINKED_FILE, linked_file),
        (space::PERMISSION, permission),
        (space::SHARE_USAGE, usage),
        (space::FILE_COPY, copy),
    ];
    for (space, look) in inner {
        each_row(engine, space, look, &mut |row| survey.found_inside(row, problem)).await?;
    }
    survey.sum_up(problem);
    Ok(())
}

/// What a row says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Finding {
    /// `None`: the row belongs to no share, or cannot be read.
    generation: Option<u64>,
    /// Of a share: what it is called.
    title: String,
    /// The bytes of a file.
    length: u64,
    /// The bytes of a file that only snapshots see.
    past_length: u64,
    /// The usage that is stored.
    usage: Usage,
    /// Of a snapshot, or a task that lets go of one: its epoch.
    snapshot: Option<u64>,
    /// Of a past entry: the epoch of the snapshot that keeps it.
    kept_by: Option<u64>,
    problems: Vec<String>,
}

/// All that is known of the shares.
#[derive(Default)]
struct Survey {
    /// What the shares are called, by generation, deleted ones included.
    titles: HashMap<u64, String>,
    /// Generations that are about to be removed. What is left of them need not agree.
    purged: HashSet<u64>,
    /// What is counted, and what is stored.
    lengths: HashMap<u64, Usage>,
    usages: HashMap<u64, Usage>,
    orphans: BTreeSet<u64>,
    /// Snapshots that are there, or of which something is about to let go, by generation and epoch.
    snapshots: HashSet<(u64, u64)>,
    /// Snapshots that entries are kept for.
    keepers: BTreeSet<(u64, u64)>,
}

impl Survey {
    fn found_share(&mut self, row: Finding, problem: &mut (dyn FnMut(String) + Send)) {
        let title = row.title;
        row.problems.into_iter().for_each(|text| problem(format!("{title}: {text}")));
        let Some(generation) = row.generation else { return };
        if let Some(other) = self.titles.insert(generation, title.clone()) {
            problem(format!("{title}: it has the same generation as {other}"));
        }
    }

    fn found_due(&mut self, row: &Finding) {
        match (row.generation, row.snapshot) {
            (Some(generation), Some(epoch)) => _ = self.snapshots.insert((generation, epoch)),
            (Some(generation), None) => _ = self.purged.insert(generation),
            (None, _) => {}
        }
    }

    fn found_inside(&mut self, row: Finding, problem: &mut (dyn FnMut(String) + Send)) {
        let title = row.generation.and_then(|generation| self.titles.get(&generation));
        match (row.generation, title) {
            (None, _) => row.problems.into_iter().for_each(problem),
            (Some(generation), Some(title)) => {
                row.problems.into_iter().for_each(|text| problem(format!("{title}: {text}")));
                let counted = self.lengths.entry(generation).or_default();
                counted.bytes += row.length;
                counted.past_bytes += row.past_length;
                if row.usage != Usage::default() {
                    self.usages.insert(generation, row.usage);
                }
                self.snapshots.extend(row.snapshot.map(|epoch| (generation, epoch)));
                self.keepers.extend(row.kept_by.map(|epoch| (generation, epoch)));
            }
            (Some(generation), None) if self.purged.contains(&generation) => {}
            (Some(generation), None) => _ = self.orphans.insert(generation),
        }
    }

    fn sum_up(&self, problem: &mut (dyn FnMut(String) + Send)) {
        let title = |generation: &u64| self.titles.get(generation).map_or("a share", String::as_str);
        for (generation, counted) in &self.lengths {
            let usage = self.usages.get(generation).copied().unwrap_or_default();
            for (what, stored, counted) in [
                ("its files", usage.bytes, counted.bytes),
                ("the past files of its snapshots", usage.past_bytes, counted.past_bytes),
            ] {
                if stored != counted {
                    problem(format!("{}: it counts {stored} bytes, and {what} have {counted}", title(generation)));
                }
            }
        }
        for (generation, epoch) in self.keepers.difference(&self.snapshots.iter().copied().collect()) {
            problem(format!(
                "{}: entries are kept for the snapshot {epoch}, which is not there, and nothing is going to let go of them",
                title(generation)
            ));
        }
        for generation in &self.orphans {
            problem(format!(
                "shares: generation {generation:x} belongs to no share, and nothing is going to remove its rows"
            ));
        }
    }
}

fn share(rows: &dyn Rows, key: &Key, row: &Bytes) -> Result<Finding, Unread> {
    let title = title(key, "share");
    let Ok(share) = codec::decode::<Share>(row) else { return Ok(unreadable(key)) };
    let mut problems: Vec<String> = root(rows, share.generation)?.into_iter().collect();
    problems.extend(snapshots_of_share(rows, &share)?);
    Ok(Finding { generation: Some(share.generation), title, problems, ..Finding::default() })
}

fn deleted_share(rows: &dyn Rows, key: &Key, row: &Bytes) -> Result<Finding, Unread> {
    let title = title(key, "deleted share");
    let Ok(DeletedShare { share, mark }) = codec::decode::<DeletedShare>(row) else { return Ok(unreadable(key)) };
    let mut problems: Vec<String> = root(rows, share.generation)?.into_iter().collect();
    problems.extend(snapshots_of_share(rows, &share)?);
    if rows.get(&deleted_share_due(key, mark))?.is_none() {
        problems.push("nothing is going to end the time in which it can be restored".to_owned());
    }
    Ok(Finding { generation: Some(share.generation), title, problems, ..Finding::default() })
}

/// What is wrong with the root directory of a share.
fn root(rows: &dyn Rows, generation: u64) -> Result<Option<String>, Unread> {
    let Some(row) = rows.get(&root_key(generation))? else { return Ok(Some("it has no root directory".to_owned())) };
    let root = codec::decode::<Node>(&row);
    let is_one = root.is_ok_and(|node| node.is_directory() && node.id == generation);
    Ok((!is_one).then(|| "its root directory is none".to_owned()))
}

/// What a share says of its snapshots and is not so.
fn snapshots_of_share(rows: &dyn Rows, share: &Share) -> Result<Option<String>, Unread> {
    // One that cannot be read is told where snapshots are looked at.
    let found = match snapshots(rows, share.generation) {
        Err(Unread::Failed(_)) => return Ok(None),
        found => found?,
    };
    let newest = found.iter().map(|(_, snapshot)| snapshot.epoch).max().unwrap_or(0);
    let last = found.last().map_or(0, |(time, _)| time.0);
    let is_so = share.snapshots as usize == found.len() && share.newest_snapshot == newest;
    let is_so = is_so && share.epoch > newest && share.last_snapshot >= last;
    Ok((!is_so).then(|| {
        format!(
            "it counts {} snapshots, the newest of epoch {}, and there are {}, the newest of epoch {newest}",
            share.snapshots,
            share.newest_snapshot,
            found.len()
        )
    }))
}

fn snapshot(_: &dyn Rows, key: &Key, row: &Bytes) -> Result<Finding, Unread> {
    match (KeyReader::new(key.as_bytes()).number(), codec::decode::<ShareSnapshot>(row)) {
        (Some(generation), Ok(snapshot)) => {
            Ok(Finding { generation: Some(generation), snapshot: Some(snapshot.epoch), ..Finding::default() })
        }
        _ => Ok(unreadable(key)),
    }
}

/// A past entry is kept for a snapshot. A file or directory has a permission, and a hard link leads to a file.
fn past(rows: &dyn Rows, key: &Key, row: &Bytes) -> Result<Finding, Unread> {
    let mut reader = KeyReader::new(key.as_bytes());
    let parts = (reader.number(), reader.number(), reader.text(), reader.number());
    let (Some(generation), Some(directory), Some(name), Some(until)) = parts else { return Ok(unreadable(key)) };
    let Ok(entry) = codec::decode::<Entry>(row) else { return Ok(unreadable(key)) };
    let (mut problems, place) = (Vec::new(), NodePlace { directory, name });
    let what = match &entry {
        Entry::Node(node) => format!("{:?} ({:x})", node.name, node.id),
        Entry::Link(link) => format!("the hard link {:?} ({:x})", place.name, link.id),
    };
    if rows.get(&kept_key(generation, until, directory, &place.name))?.is_none() {
        problems.push(format!("nothing is going to let go of {what}, which a snapshot sees"));
    }
    if entry.since() > until {
        problems.push(format!("no snapshot sees {what}, which is kept for one"));
    }
    let past_length = match entry {
        Entry::Node(node) => {
            if rows.get(&permission_key(generation, node.permission))?.is_none() {
                problems.push(format!("the permission of {what} in a snapshot is not there"));
            }
            if node.links.is_some() != (place == NodePlace::of_linked(node.id) && node.id != generation) {
                problems.push(format!("a snapshot sees {what} in the wrong place"));
            }
            node.length()
        }
        Entry::Link(link) => {
            problems.extend(link_problem(rows, generation, &place, link, Some(until))?);
            0
        }
    };
    let kept_by = Some(until);
    Ok(Finding { generation: Some(generation), past_length, kept_by, problems, ..Finding::default() })
}

/// What is wrong with a hard link as the snapshots see it that are there: each from `link.since` on, up to the epoch `until` of a
/// past one.
fn link_problem(
    rows: &dyn Rows,
    generation: u64,
    place: &NodePlace,
    link: HardLink,
    until: Option<u64>,
) -> Result<Option<String>, Unread> {
    // One that cannot be read is told where snapshots are looked at.
    let found = match snapshots(rows, generation) {
        Err(Unread::Failed(_)) => return Ok(None),
        found => found?,
    };
    let epochs = found.iter().map(|(_, snapshot)| snapshot.epoch);
    for epoch in epochs.filter(|epoch| *epoch >= link.since && until.is_none_or(|until| *epoch <= until)) {
        match follow(rows, generation, Some(epoch), place, link) {
            Ok(_) => {}
            Err(Unread::NotYet) => return Err(Unread::NotYet),
            Err(Unread::Failed(_)) => {
                let (name, id) = (&place.name, link.id);
                return Ok(Some(format!(
                    "in the snapshot {epoch} the hard link {name:?} leads to {id:x}, which does not have that name"
                )));
            }
        }
    }
    Ok(None)
}

/// What is kept is there.
fn kept(rows: &dyn Rows, key: &Key, _: &Bytes) -> Result<Finding, Unread> {
    let mut reader = KeyReader::new(key.as_bytes());
    let parts = (reader.number(), reader.number(), reader.number(), reader.text());
    let (Some(generation), Some(until), Some(directory), Some(name)) = parts else { return Ok(unreadable(key)) };
    let is_there = rows.get(&past_key(generation, directory, &name, until))?.is_some();
    let problem = (!is_there).then(|| format!("{name:?} is kept for the snapshot {until}, and is not there"));
    Ok(Finding { generation: Some(generation), problems: problem.into_iter().collect(), ..Finding::default() })
}

fn due(_: &dyn Rows, key: &Key, _: &Bytes) -> Result<Finding, Unread> {
    let task = Due::from_key(key.as_bytes()).and_then(|due| Task::of(&due));
    let (generation, snapshot) = match task {
        Some(Task::Purge { generation }) => (Some(generation), None),
        Some(Task::LetGo(snapshot)) => (Some(snapshot.generation), Some(snapshot.epoch)),
        Some(Task::EndRetention { .. } | Task::Copy(_)) | None => (None, None),
    };
    Ok(Finding { generation, snapshot, ..Finding::default() })
}

/// A file or directory has a place that leads to it, a permission, and a directory that it is in. A hard link leads to a file that
/// has its name.
fn entry(rows: &dyn Rows, key: &Key, row: &Bytes) -> Result<Finding, Unread> {
    let Some((generation, place)) = place_of_entry(key.as_bytes()) else { return Ok(unreadable(key)) };
    let Ok(entry) = codec::decode::<Entry>(row) else { return Ok(unreadable(key)) };
    let mut problems = Vec::new();
    let directory = place.directory;
    let is_root = directory == generation && place.name.is_empty();
    if directory != generation && rows.get(&place_key(generation, directory))?.is_none() {
        problems.push(format!("{:?} ({:x}) is in a directory that is not there", place.name, entry.id()));
    }
    let length = match entry {
        Entry::Node(node) => {
            let what = format!("{:?} ({:x})", node.name, node.id);
            if !is_root {
                problems.extend(place_problem(rows, generation, (&what, node.id), &place)?);
            }
            if node.links.is_some() {
                problems.push(format!("{what} has several names, and is kept under one of them"));
            }
            problems.extend(node_problems(rows, generation, &what, &node)?);
            node.length()
        }
        Entry::Link(link) => {
            let row = rows.get(&linked_key(generation, link.id))?.map(|row| codec::decode::<Node>(&row));
            let knows_it = |node: Node| node.links.is_some_and(|links| links.spelling(&place).is_some());
            if !row.is_some_and(|node| node.is_ok_and(knows_it)) {
                let what = &place.name;
                problems.push(format!("the hard link {what:?} leads to {:x}, which does not have that name", link.id));
            }
            problems.extend(link_problem(rows, generation, &place, link, None)?);
            0
        }
    };
    Ok(Finding { generation: Some(generation), length, problems, ..Finding::default() })
}

/// Each name of a file that has several is an entry that leads to it, and its place is that of the first.
fn linked_file(rows: &dyn Rows, key: &Key, row: &Bytes) -> Result<Finding, Unread> {
    let mut reader = KeyReader::new(key.as_bytes());
    let (Some(generation), Some(id)) = (reader.number(), reader.number()) else { return Ok(unreadable(key)) };
    let Ok(node) = codec::decode::<Node>(row) else { return Ok(unreadable(key)) };
    let what = format!("the linked file {id:x}");
    let names = node.links.as_ref().map_or(&[][..], |links| links.names());
    let mut problems = Vec::new();
    if names.len() < 2 || node.id != id || node.file().is_none() {
        problems.push(format!("{what} is not a file with several names"));
    }
    if let Some(first) = names.first() {
        problems.extend(place_problem(rows, generation, (&what, id), &first.place)?);
    }
    for (at, name) in names.iter().enumerate() {
        let found = rows.get(&entry_key_at(generation, &name.place))?.map(|row| codec::decode::<Entry>(&row));
        let is_ours = matches!(found, Some(Ok(Entry::Link(link))) if link.id == id);
        if !is_ours || names[..at].iter().any(|other| other.place == name.place) {
            problems.push(format!("{what} has the name {:?}, which does not lead to it", name.spelling));
        }
    }
    problems.extend(node_problems(rows, generation, &what, &node)?);
    Ok(Finding { generation: Some(generation), length: node.length(), problems, ..Finding::default() })
}

/// What is wrong with the place of a file or directory that is to be at `place`.
fn place_problem(
    rows: &dyn Rows,
    generation: u64,
    (what, id): (&str, u64),
    place: &NodePlace,
) -> Result<Option<String>, Unread> {
    let found = rows.get(&place_key(generation, id))?.map(|row| codec::decode::<NodePlace>(&row));
    let leads_to_it = matches!(found, Some(Ok(found)) if found == *place);
    Ok((!leads_to_it).then(|| format!("the place of {what} does not lead to it")))
}

/// What is wrong with what a file or directory names: its permission, and the copy that it waits for.
fn node_problems(rows: &dyn Rows, generation: u64, what: &str, node: &Node) -> Result<Vec<String>, Unread> {
    let mut problems = Vec::new();
    if rows.get(&permission_key(generation, node.permission))?.is_none() {
        problems.push(format!("the permission of {what} is not there"));
    }
    let waiting = node.file().and_then(|state| state.copy.as_deref()).and_then(|copy| copy.job);
    if let Some(id) = waiting
        && rows.get(&Job::key::<FileDestination>(id))?.is_none()
    {
        problems.push(format!("{what} waits for a copy that is not there"));
    }
    Ok(problems)
}

/// A copy that is under way is looked after. One that no file waits for ends when that is done.
fn copy(rows: &dyn Rows, key: &Key, row: &Bytes) -> Result<Finding, Unread> {
    let Ok(job) = codec::decode::<Job>(row) else { return Ok(unreadable(key)) };
    let is_tended = job.is_tended::<FileDestination>(rows)?;
    let problems = if is_tended { Vec::new() } else { vec![format!("no node looks after the copy {:x}", job.id)] };
    Ok(Finding { problems, ..Finding::default() })
}

/// A place leads to the file or directory of its id.
fn place(rows: &dyn Rows, key: &Key, row: &Bytes) -> Result<Finding, Unread> {
    let mut reader = KeyReader::new(key.as_bytes());
    let (Some(generation), Some(id)) = (reader.number(), reader.number()) else { return Ok(unreadable(key)) };
    let Ok(place) = codec::decode::<NodePlace>(row) else { return Ok(unreadable(key)) };
    let found = rows.get(&entry_key_at(generation, &place))?;
    let problem = match found.map(|row| codec::decode::<Entry>(&row)) {
        None => Some(format!("a place leads to {:?} ({id:x}), which is not there", place.name)),
        Some(Ok(entry)) if entry.id() != id => {
            Some(format!("a place leads to {:?} ({id:x}), and {:x} is there", place.name, entry.id()))
        }
        // One that cannot be read is told where entries are looked at.
        Some(_) => None,
    };
    Ok(Finding { generation: Some(generation), problems: problem.into_iter().collect(), ..Finding::default() })
}

fn permission(_: &dyn Rows, key: &Key, _: &Bytes) -> Result<Finding, Unread> {
    match KeyReader::new(key.as_bytes()).number() {
        Some(generation) => Ok(Finding { generation: Some(generation), ..Finding::default() }),
        None => Ok(unreadable(key)),
    }
}

fn usage(_: &dyn Rows, key: &Key, row: &Bytes) -> Result<Finding, Unread> {
    match (KeyReader::new(key.as_bytes()).number(), codec::decode::<Usage>(row)) {
        (Some(generation), Ok(usage)) => Ok(Finding { generation: Some(generation), usage, ..Finding::default() }),
        _ => Ok(unreadable(key)),
    }
}

fn title(key: &Key, what: &str) -> String {
    let mut reader = KeyReader::new(key.as_bytes());
    let (account, name) = (reader.number().unwrap_or_default(), reader.text().unwrap_or_default());
    format!("{what} {name} of account {account}")
}

fn unreadable(key: &Key) -> Finding {
    let problems = vec![format!("a row cannot be read: {key:?}")];
    Finding { title: "shares".to_owned(), problems, ..Finding::default() }
}

/// What is found out about a row.
type Look = fn(&dyn Rows, &Key, &Bytes) -> Result<Finding, Unread>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileError;
    use crate::testing::{Bench, Script, Then};
    use engine::{Changes, Commit, Visit};

    async fn problems(bench: &Bench) -> Vec<String> {
        let mut problems = Vec::new();
        check(&*bench.engine, &mut |problem| problems.push(problem)).await.unwrap();
        problems
    }

    async fn used() -> Bench {
        let mut bench = Bench::with_share().await;
        bench.settings.share_soft_delete_days = Some(7);
        bench.mkdir("dir").await;
        bench.create("dir/file", 100).await;
        bench.create("other", 7).await;
        bench.write("dir/file", 10, b"bytes").await;
        bench
    }

    #[tokio::test]
    async fn what_shares_do_is_no_problem() {
        let bench = used().await;
        assert_eq!(problems(&bench).await, [""; 0]);
        let rename = [("x-ms-file-rename-source", "http://127.0.0.1:10003/acct/share/dir")];
        bench.call("PUT", "share/moved?restype=directory&comp=rename", &rename, b"").await.unwrap();
        bench.call("DELETE", "share/other", &[], b"").await.unwrap();
        assert_eq!(problems(&bench).await, [""; 0]);
        bench.call("DELETE", "share?restype=share", &[], b"").await.unwrap();
        assert_eq!(problems(&bench).await, [""; 0]);
        bench.advance(7 * 24 * 3600).await;
        // The time is over, and nobody has swept.
        assert_eq!(problems(&bench).await, [""; 0]);
        bench.sweep().await;
        assert_eq!((problems(&bench).await, bench.rows()), (Vec::new(), 0));
        // A purge that is still to come.
        let bench = Bench { settings: Default::default(), ..used().await };
        bench.call("DELETE", "share?restype=share", &[], b"").await.unwrap();
        assert_eq!(problems(&bench).await, [""; 0]);
    }

    /// Changes the first row of a space that `which` takes.
    async fn damage(bench: &Bench, space: u8, which: fn(&Key) -> bool, into: Option<&'static [u8]>) {
        let damaged = engine::commit::<(), FileError, _>(&*bench.engine, Key::new(space::SHARE), move |rows, _| {
            let (all, mut changes) = (Key::new(space), Changes::none());
            rows.scan(&all, &all.after_all(), 1, &mut |key, _| {
                let key = Key::from_bytes(key);
                if !which(&key) {
                    return Visit::Next;
                }
                match into {
                    None => changes.delete(key),
                    Some(bytes) => changes.put(key, bytes.to_vec()),
                };
                Visit::Stop
            })?;
            assert!(!changes.rows.is_empty(), "a row of {space:x} was damaged");
            Ok(Commit { changes, outcome: () })
        });
        damaged.await.unwrap();
    }

    fn is_named(key: &Key, name: &str) -> bool {
        let mut reader = KeyReader::new(key.as_bytes());
        reader.number();
        reader.number();
        reader.text().as_deref() == Some(name)
    }

    #[tokio::test]
    async fn what_does_not_fit_is_told() {
        type Case = (u8, fn(&Key) -> bool, &'static [&'static str]);
        let cases: [Case; 5] = [
            (space::ENTRY, |key| is_named(key, "OTHER"), &["which is not there", "it counts 107 bytes"]),
            (space::ENTRY, |key| is_named(key, ""), &["it has no root directory"]),
            (space::PLACE, |_| true, &["does not lead to it", "is in a directory that is not there"]),
            (space::SHARE_USAGE, |_| true, &["it counts 0 bytes, and its files have 107"]),
            (space::SHARE, |_| true, &["belongs to no share"]),
        ];
        for (space, which, expected) in cases {
            let bench = used().await;
            damage(&bench, space, which, None).await;
            let found = problems(&bench).await;
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.contains(expected), "{found}, not {expected}");
            }
        }
        // The root and everything that inherited from it.
        let bench = used().await;
        while service::testing::figure(&*bench.engine, "rows") > 0 && !all_permissions_gone(&bench).await {
            damage(&bench, space::PERMISSION, |_| true, None).await;
        }
        let found = problems(&bench).await;
        assert_eq!(found.iter().filter(|problem| problem.contains("the permission of")).count(), 4, "{found:?}");
    }

    /// A file with three names.
    async fn linked() -> Bench {
        let bench = Bench::with_nfs_share().await;
        bench.mkdir("dir").await;
        bench.create("one", 100).await;
        for name in ["two", "dir/three"] {
            bench.link("one", name, &[]).await.unwrap();
        }
        bench.symlink("link", "one", &[]).await.unwrap();
        bench
    }

    #[tokio::test]
    async fn links_that_do_not_fit_are_told() {
        assert_eq!(problems(&linked().await).await, [""; 0]);
        type Case = (u8, fn(&Key) -> bool, Option<&'static [u8]>, &'static [&'static str]);
        const LOST: &str = "which does not have that name";
        let cases: [Case; 6] = [
            (space::LINKED_FILE, |_| true, None, &[LOST, LOST, LOST, "it counts 100 bytes, and its files have 0"]),
            (space::LINKED_FILE, |_| true, Some(b"?"), &[LOST, LOST, LOST, "cannot be read", "it counts 100 bytes"]),
            (space::ENTRY, |key| is_named(key, "TWO"), None, &["has the name \"two\", which does not lead to it"]),
            (space::ENTRY, |key| is_named(key, "ONE"), None, &["which is not there", "has the name \"one\""]),
            // A link to the file with the id 1, which is none.
            (space::ENTRY, |key| is_named(key, "TWO"), Some(&[1, 0x82, 1, 1]), &[LOST, "has the name \"two\""]),
            (space::ENTRY, |key| is_named(key, "LINK"), None, &["which is not there"]),
        ];
        for (space, which, into, expected) in cases {
            let bench = linked().await;
            damage(&bench, space, which, into).await;
            let found = problems(&bench).await;
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.contains(expected), "{found}, not {expected}");
            }
        }
    }

    /// Hard links of a snapshot, one of which is gone, to a file that has changed since.
    #[tokio::test]
    async fn links_that_do_not_fit_in_snapshots_are_told() {
        let past = async || {
            let bench = linked().await;
            bench.snapshot().await;
            bench.write("one", 0, b"x").await;
            bench.call("DELETE", "share/two", &[], b"").await.unwrap();
            bench
        };
        assert_eq!(problems(&past().await).await, [""; 0]);
        const LOST: &str = "in the snapshot 1 the hard link";
        type Case = (fn(&Key) -> bool, Option<&'static [u8]>, &'static [&'static str]);
        let cases: [Case; 3] = [
            // The file as the snapshot sees it, which its three names lead to.
            (
                |key| is_named(key, ""),
                None,
                &[LOST, LOST, LOST, "is kept for the snapshot 1", "it counts 100 bytes, and the past files"],
            ),
            (|key| is_named(key, "TWO"), None, &["\"TWO\" is kept for the snapshot 1, and is not there"]),
            // A link to the file with the id 1, which is none.
            (|key| is_named(key, "TWO"), Some(&[1, 0x82, 1, 1]), &[LOST]),
        ];
        for (which, into, expected) in cases {
            let bench = past().await;
            damage(&bench, space::PAST_ENTRY, which, into).await;
            let found = problems(&bench).await;
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.contains(expected), "{found}, not {expected}");
            }
        }
    }

    /// A file whose row has lost one of its names.
    #[tokio::test]
    async fn a_link_count_that_is_wrong_is_told() {
        let bench = linked().await;
        let damaged = engine::commit::<(), FileError, _>(&*bench.engine, Key::new(space::SHARE), move |rows, _| {
            let (all, mut changes) = (Key::new(space::LINKED_FILE), Changes::none());
            rows.scan(&all, &all.after_all(), 1, &mut |key, row| {
                let mut node: Node = codec::decode(row).unwrap();
                let links = node.links.take().unwrap();
                let last = links.names()[2].place.clone();
                node.links = Some(links.without(&last));
                changes.put(Key::from_bytes(key), codec::encode(&node));
                Visit::Stop
            })?;
            Ok(Commit { changes, outcome: () })
        });
        damaged.await.unwrap();
        let found = problems(&bench).await;
        assert!(matches!(&found[..], [one] if one.contains("the hard link \"THREE\" leads to")), "{found:?}");
    }

    async fn all_permissions_gone(bench: &Bench) -> bool {
        let mut count = 0;
        each_row(&*bench.engine, space::PERMISSION, permission, &mut |_| count += 1).await.unwrap();
        count == 0
    }

    /// Two snapshots, one of which is gone, with something that nothing has let go of yet.
    async fn with_snapshots() -> Bench {
        let bench = used().await;
        bench.snapshot().await;
        bench.write("dir/file", 10, b"other").await;
        let second = bench.snapshot().await;
        bench.call("DELETE", "share/other", &[], b"").await.unwrap();
        bench.drop_snapshot(&second).await;
        bench
    }

    #[tokio::test]
    async fn what_does_not_fit_in_snapshots_is_told() {
        let bench = with_snapshots().await;
        assert_eq!(problems(&bench).await, [""; 0]);
        bench.sweep().await;
        assert_eq!(problems(&bench).await, [""; 0]);
        type Case = (u8, fn(&Key) -> bool, &'static [&'static str]);
        let of_snapshot: fn(&Key) -> bool =
            |key| Due::from_key(key.as_bytes()).is_some_and(|due| due.space == space::SHARE_SNAPSHOT);
        let cases: [Case; 4] = [
            (space::SHARE_SNAPSHOT, |_| true, &["it counts 1 snapshots", "entries are kept for the snapshot 1"]),
            (space::PAST_ENTRY, |_| true, &["is not there", "it counts 107 bytes, and the past files"]),
            (space::KEPT_ENTRY, |_| true, &["nothing is going to let go of"]),
            (space::DUE, of_snapshot, &["entries are kept for the snapshot 2, which is not there"]),
        ];
        for (space, which, expected) in cases {
            let bench = with_snapshots().await;
            damage(&bench, space, which, None).await;
            let found = problems(&bench).await;
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.contains(expected), "{found}, not {expected}");
            }
        }
        for space in [space::SHARE_SNAPSHOT, space::PAST_ENTRY] {
            let bench = with_snapshots().await;
            damage(&bench, space, |_| true, Some(b"damaged")).await;
            let found = problems(&bench).await;
            assert!(found.iter().any(|problem| problem.contains("cannot be read")), "{space:x}: {found:?}");
        }
    }

    #[tokio::test]
    async fn a_deleted_share_must_be_due() {
        let bench = used().await;
        bench.call("DELETE", "share?restype=share", &[], b"").await.unwrap();
        let of_share = |key: &Key| Due::from_key(key.as_bytes()).is_some_and(|due| due.space == space::SHARE_DELETED);
        damage(&bench, space::DUE, of_share, None).await;
        let found = problems(&bench).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("deleted share share of account 1: nothing is going to end"), "{found:?}");
    }

    #[tokio::test]
    async fn a_copy_under_way_must_be_there_and_be_looked_after() {
        let of_copy: fn(&Key) -> bool =
            |key| Due::from_key(key.as_bytes()).is_some_and(|due| due.space == space::FILE_COPY);
        let any: fn(&Key) -> bool = |_| true;
        for (space, which, expected) in [
            (space::FILE_COPY, any, "waits for a copy that is not there"),
            (space::DUE, of_copy, "no node looks after the copy"),
        ] {
            let (bench, elsewhere) = Bench::with_elsewhere().await;
            let stalled = Script { length: 1_000, then: Then::Stall, ..Script::of(b"begin") };
            elsewhere.0.lock().unwrap().insert("http://a/x", stalled);
            bench.call("PUT", "share/file", &[("x-ms-copy-source", "http://a/x")], b"").await.unwrap();
            assert_eq!(problems(&bench).await, [""; 0]);
            damage(&bench, space, which, None).await;
            let found = problems(&bench).await;
            assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
        }
    }

    /// A row that cannot be read is named, and the others are looked at all the same.
    #[tokio::test]
    async fn a_row_that_cannot_be_read_is_named() {
        for space in [space::SHARE, space::ENTRY, space::PLACE, space::SHARE_USAGE] {
            let bench = used().await;
            bench.call("PUT", "zzz?restype=share", &[], b"").await.unwrap();
            damage(&bench, space, |_| true, Some(b"damaged")).await;
            let found = problems(&bench).await;
            assert!(found.iter().any(|problem| problem.contains("cannot be read")), "{space:x}: {found:?}");
            assert!(!found.iter().any(|problem| problem.contains("zzz")), "{space:x}: {found:?}");
        }
    }
}
