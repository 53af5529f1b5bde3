//! `lazurite check`: reads everything in a folder and says what is wrong with it.
//!
//! Opening recovers the folder as a start would. Then every row is read (the tree checks its blocks), every extent is
//! checked against its sums, and references, contents and live bytes are compared with each other.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use engine::due::Due;
use engine::{Key, KeyReader, Visit, space};

use crate::contents::read_place;
use crate::disk::Disk;
use crate::folder::{OpenError, io_error};
use crate::manifest::Manifest;
use crate::{EmbeddedEngine, Inner, Options};

/// More problems than this are counted, not listed.
const LISTED_MAX: usize = 100;

/// How far a check has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
    pub what: &'static str,
}

/// What a check found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    pub rows: u64,
    pub contents: u64,
    pub extents: u64,
    pub content_bytes: u64,
    pub references: u64,
    pub due: u64,
    pub segments: u64,
    pub problem_count: u64,
    pub problems: Vec<String>,
}

impl Report {
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.problem_count == 0
    }

    /// Adds a problem, also one that a service found in its rows.
    pub fn problem(&mut self, text: String) {
        self.problem_count += 1;
        if self.problems.len() < LISTED_MAX {
            self.problems.push(text);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} rows, {} contents in {} extents ({} bytes), {} references, {} due, {} segments",
            self.rows, self.contents, self.extents, self.content_bytes, self.references, self.due, self.segments
        )?;
        for problem in &self.problems {
            writeln!(f, "problem: {problem}")?;
        }
        if self.is_clean() { f.write_str("clean") } else { write!(f, "{} problems", self.problem_count) }
    }
}

/// Checks a folder that no server holds.
pub fn check(path: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Report, OpenError> {
    check_all(Options::default().disk, path, &[], progress, &mut |_, _| {})
}

/// The same as [`check_with`] on another disk, without `more`.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub fn check_on(
    disk: Arc<dyn Disk>,
    path: &Path,
    referred: &[u8],
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, OpenError> {
    check_all(disk, path, referred, progress, &mut |_, _| {})
}

/// The same, and then what `more` looks at: the engine knows rows, the services know what they mean. `referred` are the spaces of
/// things that are referred to as contents are; the keys of their rows begin with the number of the thing.
pub fn check_with(
    path: &Path,
    referred: &[u8],
    progress: &mut dyn FnMut(Progress),
    more: &mut More<'_>,
) -> Result<Report, OpenError> {
    check_all(Options::default().disk, path, referred, progress, more)
}

/// Looks at an open folder, and adds to the report.
type More<'a> = dyn FnMut(&EmbeddedEngine, &mut Report) + 'a;

fn check_all(
    disk: Arc<dyn Disk>,
    path: &Path,
    referred: &[u8],
    progress: &mut dyn FnMut(Progress),
    more: &mut More<'_>,
) -> Result<Report, OpenError> {
    match disk.read(&path.join("FORMAT")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(OpenError::NotOurs(path.to_path_buf())),
        read => read.map_err(io_error("cannot read FORMAT"))?,
    };
    let engine = EmbeddedEngine::open(path, Options { collects: false, disk, ..Options::default() })?;
    let mut report = Report::default();
    let found = walk(&engine.inner, referred, &mut report, progress);
    match found {
        Ok(found) => compare(&engine.inner, &found, &mut report),
        Err(error) => report.problem(format!("rows: {error}")),
    }
    more(&engine, &mut report);
    Ok(report)
}

/// What the rows say, for comparing.
#[derive(Default)]
struct RowFindings {
    contents: HashSet<u64>,
    /// What else can be referred to.
    things: HashSet<u64>,
    referred: HashSet<u64>,
    due: HashSet<u64>,
    live: HashMap<u64, u64>,
}

fn walk(
    inner: &Inner,
    referred: &[u8],
    report: &mut Report,
    progress: &mut dyn FnMut(Progress),
) -> Result<RowFindings, engine::EngineError> {
    let total = inner.live.lock().expect("nothing panics under this lock").values().sum::<u64>();
    let pin = inner.tree.pin();
    let mut found = RowFindings::default();
    let mut manifests = Vec::new();
    inner.tree.scan(&[0], &[0xFF], pin.at, &mut |key, value| {
        report.rows += 1;
        if report.rows.is_multiple_of(10_000) {
            progress(Progress { done: 0, total, what: "rows" });
        }
        let mut reader = KeyReader::new(key);
        match key.first() {
            Some(&space::CONTENT) => manifests.push((Key::from_bytes(key), value.clone())),
            Some(&space::REF) => {
                report.references += 1;
                found.referred.extend(reader.number());
            }
            Some(&space::DUE) => match Due::from_key(key) {
                Some(due) => {
                    report.due += 1;
                    if due.space == space::CONTENT {
                        found.due.extend(due.owner_id());
                    }
                }
                None => report.problem("a due row cannot be read".into()),
            },
            Some(space) if referred.contains(space) => found.things.extend(reader.number()),
            Some(_) | None => {}
        }
        // Contents are checked in slices, so that a large folder does not fill the memory.
        if manifests.len() >= 1_000 {
            check_contents(inner, std::mem::take(&mut manifests), &mut found, report, total, progress);
        }
        Visit::Next
    })?;
    check_contents(inner, manifests, &mut found, report, total, progress);
    Ok(found)
}

fn check_contents(
    inner: &Inner,
    manifests: Vec<(Key, bytes::Bytes)>,
    found: &mut RowFindings,
    report: &mut Report,
    total: u64,
    progress: &mut dyn FnMut(Progress),
) {
    for (key, value) in manifests {
        let mut reader = KeyReader::new(key.as_bytes());
        let (Some(id), Some(row)) = (reader.number(), reader.number()) else {
            report.problem(format!("a content row has a key that cannot be read: {key:?}"));
            continue;
        };
        if row == 0 {
            report.contents += 1;
            found.contents.insert(id);
        }
        let manifest = match Manifest::decode(&value) {
            Ok(manifest) => manifest,
            Err(error) => {
                report.problem(format!("content {id}: {error}"));
                continue;
            }
        };
        for place in &manifest.places {
            report.extents += 1;
            report.content_bytes += u64::from(place.length);
            *found.live.entry(place.segment).or_default() += u64::from(place.length);
            if let Err(error) = read_place(inner, place) {
                report.problem(format!("content {id}: {error}"));
            }
        }
        progress(Progress { done: report.content_bytes, total, what: "contents" });
    }
}

fn compare(inner: &Inner, found: &RowFindings, report: &mut Report) {
    report.segments = inner.segments.all().len() as u64;
    for thing in &found.referred {
        if !found.contents.contains(thing) && !found.things.contains(thing) {
            report.problem(format!("something refers to {thing}, which is not there"));
        }
    }
    for content in &found.contents {
        if !found.referred.contains(content) && !found.due.contains(content) {
            report.problem(format!("nothing refers to content {content}, and no due row asks for its collection"));
        }
    }
    let live = inner.live.lock().expect("nothing panics under this lock");
    for (segment, bytes) in live.iter() {
        let counted = found.live.get(segment).copied().unwrap_or(0);
        if counted != *bytes {
            report.problem(format!("segment {segment:x} is said to hold {bytes} bytes and holds {counted}"));
        }
    }
    for segment in found.live.keys().filter(|segment| !live.contains_key(segment)) {
        report.problem(format!("segment {segment:x} holds contents and is not accounted for"));
    }
}
