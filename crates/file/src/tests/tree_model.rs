//! Random trees: creates, writes, clears, resizes, renames, deletes, snapshots and lists against a plain model, of which each snapshot
//! has a copy. The seed of a failure is printed and can be tried again with `LAZURITE_SEED`.

use std::collections::BTreeMap;

use crate::testing::{Bench, between, bytes as bytes_of, header};
use crate::{Failure, FileError};

const SEEDS: u64 = 40;
const STEPS: usize = 120;
const NAMES: [&str; 5] = ["a", "B", "c", "Straße", "d."];
const LENGTH_MAX: u64 = 3_000;
const PAGE: usize = 512;

/// Pseudorandom numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn name(&mut self) -> String {
        let name = NAMES[self.below(NAMES.len() as u64) as usize];
        match self.below(3) {
            0 => name.to_uppercase(),
            1 => name.to_lowercase(),
            _ => name.to_owned(),
        }
    }

    fn path(&mut self) -> Vec<String> {
        (0..1 + self.below(3)).map(|_| self.name()).collect()
    }
}

/// A file or a directory with what is in it.
#[derive(Clone, Debug)]
enum Thing {
    File { id: String, bytes: Vec<Byte> },
    Directory { id: String, children: Children },
}

/// A byte, and whether it was written: List Ranges tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Byte {
    value: u8,
    is_written: bool,
}

impl Byte {
    fn written(value: u8) -> Byte {
        Byte { value, is_written: true }
    }
}

/// The ranges of whole pages in which something was written.
fn ranges(bytes: &[Byte]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for (page, content) in bytes.chunks(PAGE).enumerate() {
        let (start, end) = (page * PAGE, page * PAGE + content.len() - 1);
        match ranges.last_mut() {
            _ if !content.iter().any(|byte| byte.is_written) => {}
            Some(last) if last.1 + 1 == start => last.1 = end,
            _ => ranges.push((start, end)),
        }
    }
    ranges
}

/// By folded name, with the spelling.
type Children = BTreeMap<String, (String, Thing)>;

/// How the model compares names: one capital letter for one letter, without dots at the end.
fn fold(name: &str) -> String {
    name.trim_end_matches('.').chars().map(wire::fold::fold_char).collect()
}

fn spelled(name: &str) -> String {
    name.trim_end_matches('.').to_owned()
}

impl Thing {
    fn id(&self) -> &str {
        match self {
            Thing::File { id, .. } | Thing::Directory { id, .. } => id,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Model {
    root: Children,
}

impl Model {
    /// The directory that a path is in.
    fn parent(&mut self, path: &[String]) -> Option<&mut Children> {
        let mut at = &mut self.root;
        for name in &path[..path.len() - 1] {
            match at.get_mut(&fold(name)) {
                Some((_, Thing::Directory { children, .. })) => at = children,
                _ => return None,
            }
        }
        Some(at)
    }

    fn get(&mut self, path: &[String]) -> Result<Option<&mut Thing>, FileError> {
        let children = self.parent(path).ok_or(FileError::ParentNotFound)?;
        Ok(children.get_mut(&fold(&path[path.len() - 1])).map(|(_, thing)| thing))
    }

    fn usage(children: &Children) -> usize {
        let of = |thing: &Thing| match thing {
            Thing::File { bytes, .. } => bytes.len(),
            Thing::Directory { children, .. } => Model::usage(children),
        };
        children.values().map(|(_, thing)| of(thing)).sum()
    }
}

fn text(path: &[String]) -> String {
    path.iter().map(|name| wire::percent::encode_name(name).into_owned()).collect::<Vec<_>>().join("/")
}

struct Run {
    bench: Bench,
    model: Model,
    random: Random,
    /// By the time that names them.
    snapshots: Vec<(String, Model)>,
}

impl Run {
    async fn step(&mut self) {
        match self.random.below(15) {
            12 => self.take_snapshot().await,
            13 => self.drop_snapshot().await,
            14 => self.bench.sweep().await,
            0 | 1 => self.create_directory().await,
            2 | 3 => self.create_file().await,
            4 | 5 => self.write().await,
            6 => self.clear().await,
            7 => self.resize().await,
            8 | 9 => self.rename().await,
            10 => self.delete_file().await,
            _ => self.delete_directory().await,
        }
    }

    async fn take_snapshot(&mut self) {
        let time = self.bench.snapshot().await;
        let copy = self.model.clone();
        self.snapshots.push((time, copy));
    }

    async fn drop_snapshot(&mut self) {
        if self.snapshots.is_empty() {
            return;
        }
        let at = self.random.below(self.snapshots.len() as u64) as usize;
        let (time, _) = self.snapshots.remove(at);
        self.bench.drop_snapshot(&time).await;
    }

    async fn create_directory(&mut self) {
        let path = self.random.path();
        let expected = match self.model.get(&path) {
            Err(error) => Err(error),
            Ok(Some(_)) => Err(FileError::ResourceAlreadyExists),
            Ok(None) => Ok(()),
        };
        let result = self.bench.call("PUT", &format!("share/{}?restype=directory", text(&path)), &[], b"").await;
        if let Some(answer) = agree(result, expected, "create directory", &path) {
            let thing = Thing::Directory { id: answer, children: Children::new() };
            self.put(&path, thing);
        }
    }

    async fn create_file(&mut self) {
        let path = self.random.path();
        let length = self.random.below(LENGTH_MAX);
        let expected = match self.model.get(&path) {
            Err(error) => Err(error),
            Ok(Some(Thing::Directory { .. })) => Err(FileError::ResourceTypeMismatch),
            Ok(Some(Thing::File { .. }) | None) => Ok(()),
        };
        let before = self.model.get(&path).ok().flatten().map(|thing| thing.id().to_owned());
        let (length_text, body) = (length.to_string(), vec![5; self.random.below(length.min(100) + 1) as usize]);
        let headers = [("x-ms-type", "file"), ("x-ms-content-length", &*length_text)];
        let result = self.bench.call("PUT", &format!("share/{}", text(&path)), &headers, &body).await;
        if let Some(id) = agree(result, expected, "create file", &path) {
            assert!(before.is_none_or(|before| before == id), "a file that is replaced keeps its id");
            let mut bytes: Vec<Byte> = body.into_iter().map(Byte::written).collect();
            bytes.resize(length as usize, Byte::default());
            self.put(&path, Thing::File { id, bytes });
        }
    }

    fn put(&mut self, path: &[String], thing: Thing) {
        let name = &path[path.len() - 1];
        self.model.parent(path).unwrap().insert(fold(name), (spelled(name), thing));
    }

    /// What a change of a file's bytes is answered with, by its length.
    fn file(&mut self, path: &[String]) -> Result<&mut Vec<Byte>, FileError> {
        match self.model.get(path)? {
            None => Err(FileError::ResourceNotFound),
            Some(Thing::Directory { .. }) => Err(FileError::ResourceTypeMismatch),
            Some(Thing::File { bytes, .. }) => Ok(bytes),
        }
    }

    fn range(&mut self) -> (u64, u64) {
        let start = self.random.below(LENGTH_MAX);
        (start, start + 1 + self.random.below(LENGTH_MAX / 4))
    }

    async fn write(&mut self) {
        let (path, (start, end)) = (self.random.path(), self.range());
        let byte = self.random.below(255) as u8 + 1;
        let expected = self.changed(&path, start, end);
        let range = format!("bytes={start}-{}", end - 1);
        let headers = [("x-ms-write", "update"), ("x-ms-range", &*range)];
        let url = format!("share/{}?comp=range", text(&path));
        let result = self.bench.call("PUT", &url, &headers, &vec![byte; (end - start) as usize]).await;
        if agree(result, expected, "write", &path).is_some() {
            self.file(&path).unwrap()[start as usize..end as usize].fill(Byte::written(byte));
        }
    }

    async fn clear(&mut self) {
        let (path, (start, end)) = (self.random.path(), self.range());
        let expected = self.changed(&path, start, end);
        let range = format!("bytes={start}-{}", end - 1);
        let headers = [("x-ms-write", "clear"), ("x-ms-range", &*range)];
        let result = self.bench.call("PUT", &format!("share/{}?comp=range", text(&path)), &headers, b"").await;
        if agree(result, expected, "clear", &path).is_some() {
            let bytes = self.file(&path).unwrap();
            let is_last = end as usize == bytes.len();
            for (at, byte) in bytes.iter_mut().enumerate().take(end as usize).skip(start as usize) {
                let page = at - at % PAGE;
                let is_whole = page >= start as usize && (page + PAGE <= end as usize || is_last);
                *byte = Byte { value: 0, is_written: byte.is_written && !is_whole };
            }
        }
    }

    fn changed(&mut self, path: &[String], _: u64, end: u64) -> Result<(), FileError> {
        let length = self.file(path)?.len() as u64;
        if end > length { Err(FileError::InvalidRange { length }) } else { Ok(()) }
    }

    async fn resize(&mut self) {
        let (path, length) = (self.random.path(), self.random.below(LENGTH_MAX));
        let expected = self.file(&path).map(|_| ());
        let length_text = length.to_string();
        let headers = [("x-ms-content-length", &*length_text)];
        let result = self.bench.call("PUT", &format!("share/{}?comp=properties", text(&path)), &headers, b"").await;
        if agree(result, expected, "resize", &path).is_some() {
            self.file(&path).unwrap().resize(length as usize, Byte::default());
        }
    }

    async fn delete_file(&mut self) {
        let path = self.random.path();
        let expected = self.file(&path).map(|_| ());
        let result = self.bench.call("DELETE", &format!("share/{}", text(&path)), &[], b"").await;
        if agree(result, expected, "delete file", &path).is_some() {
            self.model.parent(&path).unwrap().remove(&fold(&path[path.len() - 1]));
        }
    }

    async fn delete_directory(&mut self) {
        let path = self.random.path();
        let expected = match self.model.get(&path) {
            Err(error) => Err(error),
            Ok(None) => Err(FileError::ResourceNotFound),
            Ok(Some(Thing::File { .. })) => Err(FileError::ResourceTypeMismatch),
            Ok(Some(Thing::Directory { children, .. })) if !children.is_empty() => Err(FileError::DirectoryNotEmpty),
            Ok(Some(Thing::Directory { .. })) => Ok(()),
        };
        let result = self.bench.call("DELETE", &format!("share/{}?restype=directory", text(&path)), &[], b"").await;
        if agree(result, expected, "delete directory", &path).is_some() {
            self.model.parent(&path).unwrap().remove(&fold(&path[path.len() - 1]));
        }
    }

    async fn rename(&mut self) {
        let (from, to, replaces) = (self.random.path(), self.random.path(), self.random.below(2) == 0);
        let is_directory = self.random.below(2) == 0;
        let expected = self.renamed(&from, &to, replaces, is_directory);
        let replace = [("x-ms-file-rename-replace-if-exists", if replaces { "true" } else { "false" })];
        let url = if is_directory { format!("{}?restype=directory", text(&to)) } else { text(&to) };
        let result = self.bench.rename(&text(&from), &url, &replace).await;
        let what = format!("rename of {from:?} as {is_directory} replacing {replaces}");
        if let Some(id) = agree(result, expected, &what, &to) {
            let (_, thing) = self.model.parent(&from).unwrap().remove(&fold(&from[from.len() - 1])).unwrap();
            assert_eq!(id, thing.id(), "ids stay");
            self.put(&to, thing);
        }
    }

    fn renamed(&mut self, from: &[String], to: &[String], replaces: bool, is_directory: bool) -> Result<(), FileError> {
        // Where a path leads is looked at first, at both ends.
        let target = self.model.get(to).map(|found| found.map(|thing| thing.clone()));
        let source = match self.model.get(from) {
            Ok(found) => found.cloned(),
            Err(_) => return Err(FileError::ResourceNotFound),
        };
        let target = target?;
        let source = source.ok_or(FileError::ResourceNotFound)?;
        if matches!(source, Thing::Directory { .. }) != is_directory {
            return Err(FileError::ResourceTypeMismatch);
        }
        let is_within = to.len() > from.len() && to.iter().zip(from).all(|(one, other)| fold(one) == fold(other));
        if is_within {
            return Err(FileError::InvalidInput { reason: "A directory cannot be renamed to a path below itself." });
        }
        match target {
            None => Ok(()),
            Some(thing) if thing.id() == source.id() => Ok(()),
            Some(Thing::File { .. }) if replaces => Ok(()),
            Some(_) => Err(FileError::ResourceAlreadyExists),
        }
    }

    /// Everything that can be seen is as it should be.
    async fn check(&self) {
        self.check_directory(String::new(), &self.model.root, "").await;
        for (time, model) in &self.snapshots {
            self.check_directory(String::new(), &model.root, &format!("&sharesnapshot={time}")).await;
        }
        let stats = self.bench.text("GET", "share?restype=share&comp=stats").await;
        let usage = format!("<ShareUsageBytes>{}<", Model::usage(&self.model.root));
        assert!(stats.contains(&usage), "{stats} {usage}");
        assert!(self.bench.opens.is_empty());
    }

    async fn check_directory(&self, path: String, children: &Children, snapshot: &str) {
        let list = self
            .bench
            .text("GET", &format!("share/{path}?restype=directory&comp=list&maxresults=1000{snapshot}"))
            .await;
        let names: Vec<&str> = children.values().map(|(name, _)| name.as_str()).collect();
        assert_eq!(between(&list, "<Name>", "<"), names, "{path}");
        let ids: Vec<&str> = children.values().map(|(_, thing)| thing.id()).collect();
        assert_eq!(between(&list, "<FileId>", "<"), ids, "{path}");
        for (name, thing) in children.values() {
            let name = wire::percent::encode_name(name).into_owned();
            let below = if path.is_empty() { name } else { format!("{path}/{name}") };
            match thing {
                Thing::File { bytes, .. } => self.check_file(&below, bytes, snapshot).await,
                Thing::Directory { children, .. } => Box::pin(self.check_directory(below, children, snapshot)).await,
            }
        }
    }
}

impl Run {
    async fn check_file(&self, path: &str, bytes: &[Byte], snapshot: &str) {
        let content: Vec<u8> = bytes.iter().map(|byte| byte.value).collect();
        let url = format!("share/{path}?timeout=30{snapshot}");
        let read = bytes_of(self.bench.call("GET", &url, &[], b"").await.unwrap()).await;
        assert!(read == content, "{path} {snapshot}");
        let list = self.bench.text("GET", &format!("share/{path}?comp=rangelist{snapshot}")).await;
        let numbers =
            |name: &str| between(&list, &format!("<{name}>"), "<").into_iter().map(|text| text.parse().unwrap());
        let listed: Vec<(usize, usize)> = numbers("Start").zip(numbers("End")).collect();
        assert_eq!(listed, ranges(bytes), "{path} {snapshot}");
    }
}

/// Both say the same; the id in the answer if it was done.
fn agree(
    result: Result<wire::http::Reply, Failure>,
    expected: Result<(), FileError>,
    what: &str,
    path: &[String],
) -> Option<String> {
    match (result, expected) {
        (Ok(answer), Ok(())) => Some(header(&answer, "x-ms-file-id").unwrap_or_default().to_owned()),
        (Err(Failure::Refused(error)), Err(expected)) => {
            assert_eq!(error, expected, "{what} {path:?}");
            None
        }
        (result, expected) => panic!("{what} {path:?}: {result:?}, not {expected:?}"),
    }
}

async fn run(seed: u64) {
    let (bench, model, random) = (Bench::with_share().await, Model::default(), Random(seed));
    let mut run = Run { bench, model, random, snapshots: Vec::new() };
    for step in 0..STEPS {
        run.step().await;
        if step % 20 == 19 {
            run.check().await;
        }
    }
    run.bench.sweep().await;
    run.check().await;
    run.bench.check_rows().await;
    while !run.snapshots.is_empty() {
        run.drop_snapshot().await;
        if run.random.below(2) == 0 {
            run.bench.sweep().await;
            run.check().await;
        }
    }
    run.bench.sweep().await;
    run.check().await;
    run.bench.check_rows().await;
    assert_eq!(run.bench.past_rows().await, 0, "something is kept for a snapshot that is gone");
    run.bench.call("DELETE", "share?restype=share", &[], b"").await.unwrap();
    run.bench.advance(60).await;
    run.bench.sweep().await;
    assert_eq!((run.bench.rows(), service::testing::figure(&*run.bench.engine, "contents")), (0, 0));
}

#[tokio::test]
async fn random_trees_are_as_the_model_says() {
    let seeds = match std::env::var("LAZURITE_SEED") {
        Ok(seed) => {
            let seed: u64 = seed.parse().unwrap();
            seed..seed + 1
        }
        Err(_) => 0..SEEDS,
    };
    for seed in seeds {
        println!("LAZURITE_SEED={seed}");
        run(seed).await;
    }
}
