//! What `lazurite check` verifies in shares: that entries, places, permissions and usage agree.
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
    DeletedShare, Node, NodePlace, Share, Usage, deleted_share_due, entries_of, permission_key, place_key, root_key,
};

/// Reports each problem to `problem`, in one sentence.
pub async fn check(engine: &dyn Engine, problem: &mut (dyn FnMut(String) + Send)) -> Result<(), EngineError> {
    let mut survey = Survey::default();
    for (space, look) in [(space::SHARE, share as Look), (space::SHARE_DELETED, deleted_share)] {
        each_row(engine, space, look, &mut |row| survey.found_share(row, problem)).await?;
    }
    each_row(engine, space::DUE, due, &mut |row| survey.purged.extend(row.generation)).await?;
    let inner = [
        (space::ENTRY, entry as Look),
        (space::PLACE, place),
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
    /// The usage that is stored.
    usage: u64,
    problems: Vec<String>,
}

/// All that is known of the shares.
#[derive(Default)]
struct Survey {
    /// What the shares are called, by generation, deleted ones included.
    titles: HashMap<u64, String>,
    /// Generations that are about to be removed. What is left of them need not agree.
    purged: HashSet<u64>,
    lengths: HashMap<u64, u64>,
    usages: HashMap<u64, u64>,
    orphans: BTreeSet<u64>,
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

    fn found_inside(&mut self, row: Finding, problem: &mut (dyn FnMut(String) + Send)) {
        let title = row.generation.and_then(|generation| self.titles.get(&generation));
        match (row.generation, title) {
            (None, _) => row.problems.into_iter().for_each(problem),
            (Some(generation), Some(title)) => {
                row.problems.into_iter().for_each(|text| problem(format!("{title}: {text}")));
                *self.lengths.entry(generation).or_default() += row.length;
                *self.usages.entry(generation).or_default() += row.usage;
            }
            (Some(generation), None) if self.purged.contains(&generation) => {}
            (Some(generation), None) => _ = self.orphans.insert(generation),
        }
    }

    fn sum_up(&self, problem: &mut (dyn FnMut(String) + Send)) {
        for (generation, length) in &self.lengths {
            let usage = self.usages.get(generation).copied().unwrap_or_default();
            if usage != *length {
                let title = self.titles.get(generation).map_or("a share", String::as_str);
                problem(format!("{title}: it counts {usage} bytes, and its files have {length}"));
            }
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
    let problems = root(rows, share.generation)?.into_iter().collect();
    Ok(Finding { generation: Some(share.generation), title, problems, ..Finding::default() })
}

fn deleted_share(rows: &dyn Rows, key: &Key, row: &Bytes) -> Result<Finding, Unread> {
    let title = title(key, "deleted share");
    let Ok(DeletedShare { share, mark }) = codec::decode::<DeletedShare>(row) else { return Ok(unreadable(key)) };
    let mut problems: Vec<String> = root(rows, share.generation)?.into_iter().collect();
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

fn due(_: &dyn Rows, key: &Key, _: &Bytes) -> Result<Finding, Unread> {
    let task = Due::from_key(key.as_bytes()).and_then(|due| Task::of(&due));
    let generation = match task {
        Some(Task::Purge { generation }) => Some(generation),
        Some(Task::EndRetention { .. } | Task::Copy(_)) | None => None,
    };
    Ok(Finding { generation, ..Finding::default() })
}

/// A file or directory has a place that leads to it, a permission, and a directory that it is in.
fn entry(rows: &dyn Rows, key: &Key, row: &Bytes) -> Result<Finding, Unread> {
    let mut reader = KeyReader::new(key.as_bytes());
    let parts = (reader.number(), reader.number(), reader.text());
    let (Some(generation), Some(directory), Some(name)) = parts else { return Ok(unreadable(key)) };
    let Ok(node) = codec::decode::<Node>(row) else { return Ok(unreadable(key)) };
    let mut problems = Vec::new();
    let is_root = directory == generation && name.is_empty();
    let place = NodePlace { directory, name };
    if !is_root {
        let found = rows.get(&place_key(generation, node.id))?.map(|row| codec::decode::<NodePlace>(&row));
        if !matches!(found, Some(Ok(found)) if found == place) {
            problems.push(format!("the place of {:?} ({:x}) does not lead to it", node.name, node.id));
        }
        if directory != generation && rows.get(&place_key(generation, directory))?.is_none() {
            problems.push(format!("{:?} ({:x}) is in a directory that is not there", node.name, node.id));
        }
    }
    if rows.get(&permission_key(generation, node.permission))?.is_none() {
        problems.push(format!("the permission of {:?} ({:x}) is not there", node.name, node.id));
    }
    let waiting = node.file().and_then(|state| state.copy.as_deref()).and_then(|copy| copy.job);
    if let Some(id) = waiting
        && rows.get(&Job::key::<FileDestination>(id))?.is_none()
    {
        problems.push(format!("{:?} ({:x}) waits for a copy that is not there", node.name, node.id));
    }
    Ok(Finding { generation: Some(generation), length: node.length(), problems, ..Finding::default() })
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
    let found = rows.get(&entries_of(generation, place.directory).text(&place.name))?;
    let problem = match found.map(|row| codec::decode::<Node>(&row)) {
        None => Some(format!("a place leads to {:?} ({id:x}), which is not there", place.name)),
        Some(Ok(node)) if node.id != id => {
            Some(format!("a place leads to {:?} ({id:x}), and {:x} is there", place.name, node.id))
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
        (Some(generation), Ok(usage)) => {
            Ok(Finding { generation: Some(generation), usage: usage.bytes, ..Finding::default() })
        }
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

    async fn all_permissions_gone(bench: &Bench) -> bool {
        let mut count = 0;
        each_row(&*bench.engine, space::PERMISSION, permission, &mut |_| count += 1).await.unwrap();
        count == 0
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
