//! Opening a folder: replay the log into the tree, cut what a crash left half-written, refuse what a crash cannot leave.
//!
//! Batches are numbered without gaps over all logs, and each says which batch was known durable when it was written. So
//! when a batch is missing or damaged there are two cases. If a later batch says it had been durable, or STATE does, the
//! disk has lost something: the folder is refused and the place is named. Otherwise it was in flight when the machine
//! stopped: no client was told that it happened, and it is cut off.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use engine::{Key, KeyReader, StampSource, Timestamp, Visit, space};

use crate::background::{EndedLog, Signals};
use crate::batch::{Batch, BatchHeader, HEADER, pages_from};
use crate::cache::RowCache;
use crate::contents::Lanes;
use crate::folder::{Folder, KnownLog, OpenError, State, io_error};
use crate::free_space::Space;
use crate::pipeline::Pipeline;
use crate::segment::{PAGE, Segment, SegmentFile, SegmentKind, Segments, list_segments, segment_path};
use crate::small_contents::SmallContents;
use crate::sync::{self, AtomicBool, AtomicU64, Mutex};
use crate::tree::{self, Tree};
use crate::{Counters, Inner, Options, stored_number};

/// The size of the very first log: what an empty folder costs.
const FIRST_LOG_BYTES: u64 = 1 << 20;

pub fn open(path: &Path, options: Options) -> Result<Inner, OpenError> {
    let folder = Folder::open(path, Arc::clone(&options.disk))?.with_segment_files(options.segment_files_max());
    let state = folder.state();
    let space = Space::new(&folder, options.reserve_bytes);
    let tree = Tree::open(&folder, &options, state.seq_floor, space.table_bytes())?;
    let found = look_at_segments(&folder)?;
    let first_free = found.last_key_value().map_or(1, |(last, _)| last + 1).max(state.replay_segment).max(1);
    let replayed = replay(&found, &folder, &state, &tree)?;
    refuse_another_tree(&folder, &state, &tree, replayed.next_batch)?;
    let stamp_floor = Timestamp(state.stamp_floor.max(replayed.stamp));
    let stored = Stored::load(&tree)?;
    let segments = Segments::default();
    let dead = open_segments(&folder, found, &stored.live, &replayed, &segments)?;
    replayed.make_durable()?;
    let (seq, log_id) = (tree.published(), first_free);
    let log = make_first_log(&folder, log_id, &replayed, seq, stamp_floor.0)?;
    segments.insert(Arc::clone(&log));
    // STATE no longer counts on these.
    for id in dead {
        let path = segment_path(&folder.segments(), id);
        folder.disk().remove_file(&path).map_err(io_error(format!("cannot remove {}", path.display())))?;
    }
    for (log, length) in replayed.used() {
        log.cut(*length).map_err(io_error(format!("cannot cut {}", log.path().display())))?;
    }
    let ended = replayed.ended(seq, log_id, stamp_floor.0);
    if !ended.is_empty() {
        tree.rotate(replayed.next_batch);
    }
    Ok(Inner {
        cache: RowCache::new(options.row_cache_bytes),
        small_contents: Arc::new(SmallContents::new(options.content_cache_bytes)),
        lanes: Lanes::default(),
        pipeline: Pipeline::default(),
        guests: Arc::default(),
        clock: sync::clock(stored.clock_offset),
        stamps: StampSource::above(stamp_floor),
        next_segment: AtomicU64::new(log_id + 1),
        live: Mutex::new(stored.live),
        durable: AtomicU64::new(0),
        space,
        folder_gone: AtomicBool::new(false),
        closing: AtomicBool::new(false),
        stopping: AtomicBool::new(false),
        background: Signals::new(log, replayed.next_batch, ended),
        collector: Mutex::default(),
        waiting_bytes: Arc::default(),
        counters: Counters::default(),
        folder,
        options,
        tree,
        segments,
    })
}

/// Everything that stands in the folder of segments. One damaged header ends the start: the segment
/// may have held anything.
fn look_at_segments(folder: &Folder) -> Result<BTreeMap<u64, SegmentFile>, OpenError> {
    let ids = list_segments(folder).map_err(io_error("cannot list the segments"))?;
    ids.into_iter().map(|id| Ok((id, Segment::open(folder, id)?))).collect()
}

/// Makes the log that this run begins with, and puts it into STATE together with what was replayed.
fn make_first_log(
    folder: &Folder,
    id: u64,
    replayed: &Replayed,
    seq: u64,
    stamp: u64,
) -> Result<Arc<Segment>, OpenError> {
    let log = Segment::create(folder, id, SegmentKind::Log, FIRST_LOG_BYTES);
    let log = Arc::new(log.map_err(io_error("cannot make a log segment"))?);
    let known = replayed.used().map(|(log, end)| KnownLog { id: log.id, end: Some(*end) });
    let known: Vec<KnownLog> = known.chain([KnownLog { id, end: None }]).collect();
    folder.upgrade()?;
    let written = folder.change_state(|state| {
        state.logs = Some(known);
        state.durable_batch = replayed.next_batch - 1;
        state.seq_floor = state.seq_floor.max(seq);
        state.stamp_floor = state.stamp_floor.max(stamp);
    });
    written.map_err(io_error("cannot write STATE"))?;
    Ok(log)
}

/// The tree's files must hold what STATE says they hold, and nothing that is in no log. Otherwise they are not the tree
/// that belongs here: an older one, or one that was copied while a server wrote to it.
fn refuse_another_tree(folder: &Folder, state: &State, tree: &Tree, next_batch: u64) -> Result<(), OpenError> {
    let unreadable = |error: engine::EngineError| OpenError::Damaged { place: "rows".into(), why: error.to_string() };
    let below = tree.holds_below().map_err(unreadable)?;
    let place = || folder.rows().display().to_string();
    if below < state.in_tree {
        let why = format!("it must hold all batches below {}, and holds those below {below}", state.in_tree);
        return Err(OpenError::Damaged { place: place(), why });
    }
    if below > next_batch {
        let why = format!("it holds batches up to {}, but the log ends before batch {next_batch}", below - 1);
        return Err(OpenError::Damaged { place: place(), why });
    }
    Ok(())
}

/// What replaying the log brought to light.
struct Replayed {
    /// The logs that hold rows which may not be in the tree's files yet, and where their last batch ends.
    logs: Vec<(Arc<Segment>, u64)>,
    next_batch: u64,
    stamp: u64,
    /// The batch up to which a sync is known to have succeeded.
    durable: u64,
    /// Batches that no later batch and no STATE says were durable: number, index of the log, from where, to where.
    unproven: VecDeque<(u64, usize, u64, u64)>,
}

impl Replayed {
    /// What was replayed counts from here on, so it must be on the disk, not only in the system's memory.
    ///
    /// If the last run ended because a sync failed, the system has dropped what it could not write but still shows it to
    /// readers, and a further sync succeeds without writing it. Only the batches after the last sync that is known to have
    /// succeeded can be of that kind. They are written again, each byte as it is, and synced.
    fn make_durable(&self) -> Result<(), OpenError> {
        for (_, log, from, to) in &self.unproven {
            let log = &self.logs[*log].0;
            let place = format!("cannot write {} again", log.path().display());
            log.write_again(*from, *to).map_err(io_error(place))?;
        }
        for (log, _) in &self.logs {
            log.sync().map_err(io_error(format!("cannot sync {}", log.path().display())))?;
        }
        Ok(())
    }

    /// The logs from which anything was replayed.
    fn used(&self) -> impl Iterator<Item = &(Arc<Segment>, u64)> {
        self.logs.iter().filter(|(_, end)| *end > PAGE)
    }

    fn saw(&mut self, log: usize, header: &BatchHeader) {
        self.next_batch = header.number + 1;
        self.stamp = self.stamp.max(header.stamp);
        self.durable = self.durable.max(header.synced_through);
        self.unproven.push_back((header.number, log, header.offset, header.end()));
        while self.unproven.front().is_some_and(|(number, ..)| *number <= self.durable) {
            self.unproven.pop_front();
        }
    }

    fn ended(&self, last_seq: u64, next_log: u64, stamp: u64) -> Vec<EndedLog> {
        let ended = self.used().map(|(log, length)| EndedLog {
            log: Arc::clone(log),
            length: *length,
            next_log,
            next_batch: self.next_batch,
            last_seq,
            stamp,
        });
        ended.collect()
    }
}

fn replay(
    found: &BTreeMap<u64, SegmentFile>,
    folder: &Folder,
    state: &State,
    tree: &Tree,
) -> Result<Replayed, OpenError> {
    refuse_missing_logs(found, folder, state)?;
    let whole = found.values().filter_map(|found| match found {
        SegmentFile::Whole(segment) if segment.kind == SegmentKind::Log => Some(segment),
        _ => None,
    });
    let logs: Vec<&Arc<Segment>> = whole.filter(|log| log.id >= state.replay_segment).collect();
    let mut replayed = Replayed {
        logs: Vec::new(),
        next_batch: state.replay_batch,
        stamp: 0,
        durable: state.durable_batch,
        unproven: VecDeque::new(),
    };
    for log in logs {
        let limit = known_end(state, log.id).unwrap_or(u64::MAX);
        let stopped_at = replay_log(log, limit, tree, &mut replayed)?;
        log.keep();
        replayed.logs.push((Arc::clone(log), stopped_at));
    }
    refuse_holes(state, &replayed)?;
    Ok(replayed)
}

/// A log that STATE lists may hold what was acknowledged: it must be there, and must not be one that was never used.
fn refuse_missing_logs(found: &BTreeMap<u64, SegmentFile>, folder: &Folder, state: &State) -> Result<(), OpenError> {
    for known in state.logs.iter().flatten() {
        let why = match found.get(&known.id) {
            Some(SegmentFile::Whole(segment)) if segment.kind == SegmentKind::Log => continue,
            Some(SegmentFile::Whole(_)) => "STATE lists it as a log, and it is none",
            Some(SegmentFile::Unborn) => "STATE lists this log, and its header is gone",
            None => "STATE lists this log, and it is not there",
        };
        let place = format!("{} byte 0", segment_path(&folder.segments(), known.id).display());
        return Err(OpenError::Damaged { place, why: why.into() });
    }
    Ok(())
}

/// Where a log ended when it was replayed before.
fn known_end(state: &State, log: u64) -> Option<u64> {
    state.logs.iter().flatten().find(|known| known.id == log)?.end
}

/// Replays one log as far as the numbers go on, and not beyond `limit`. Returns where it stopped.
fn replay_log(log: &Segment, limit: u64, tree: &Tree, replayed: &mut Replayed) -> Result<u64, OpenError> {
    let index = replayed.logs.len();
    let mut at = PAGE;
    while at < limit
        && let Some(batch) = read_batch(log, at).map_err(io_error("cannot read the log"))?
    {
        if batch.header.number != replayed.next_batch {
            break;
        }
        let damaged = || OpenError::Damaged { place: place(log, at), why: "a batch cannot be taken apart".into() };
        for (key, value) in batch.rows().ok_or_else(damaged)? {
            tree.insert(&key, value.map(|value| Bytes::copy_from_slice(&value)), batch.header.seq);
        }
        tree.saw_seq(batch.header.seq);
        replayed.saw(index, &batch.header);
        at = batch.header.end();
    }
    Ok(at)
}

/// The whole, sound batch at this place, if there is one.
pub fn read_batch(log: &Segment, at: u64) -> std::io::Result<Option<Batch>> {
    let (file, mut header) = (log.file()?, [0_u8; HEADER]);
    match file.read_exact_at(&mut header, at) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let Some(header) = BatchHeader::decode(&header, log.id, at) else { return Ok(None) };
    let mut record = vec![0_u8; usize::try_from(header.length).unwrap_or(0)];
    match file.read_exact_at(&mut record, at) {
        Ok(()) => Ok(Batch::decode(Bytes::from(record), header)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replay has stopped before `next_batch`. Was that batch, or a later one, ever known to be durable?
fn refuse_holes(state: &State, replayed: &Replayed) -> Result<(), OpenError> {
    let missing = replayed.next_batch;
    let stopped = replayed.logs.iter().rev().find(|(_, end)| *end > PAGE).or(replayed.logs.first());
    let where_it_stopped = || stopped.map_or("the log, which is not there".into(), |(log, end)| place(log, *end));
    if missing <= state.durable_batch {
        let why = format!("batch {missing} was stored and cannot be read");
        return Err(OpenError::Damaged { place: where_it_stopped(), why });
    }
    for (log, from) in &replayed.logs {
        let length = log.len().map_err(io_error("cannot look at a segment"))?;
        let end = length.min(known_end(state, log.id).unwrap_or(u64::MAX));
        for at in pages_from(*from, end) {
            let Some(later) = read_batch(log, at).map_err(io_error("cannot read the log"))? else { continue };
            if later.header.number > missing && later.header.synced_through >= missing {
                let why = format!(
                    "batch {missing} was stored and cannot be read; batch {} after it, at {}, is whole",
                    later.header.number,
                    place(log, at)
                );
                return Err(OpenError::Damaged { place: where_it_stopped(), why });
            }
        }
    }
    Ok(())
}

fn place(log: &Segment, at: u64) -> String {
    format!("{} byte {at}", log.path().display())
}

/// What the tree itself says about the engine.
struct Stored {
    live: HashMap<u64, u64>,
    clock_offset: u64,
}

impl Stored {
    fn load(tree: &Tree) -> Result<Stored, OpenError> {
        let unreadable =
            |error: engine::EngineError| OpenError::Damaged { place: "rows".into(), why: error.to_string() };
        let (mut live, mut strange) = (HashMap::new(), None);
        let all = Key::new(space::SEGMENT);
        tree.scan(all.as_bytes(), all.after_all().as_bytes(), tree::NEWEST, &mut |key, value| {
            // What lives in no segment is removed, so this must be certain.
            match (KeyReader::new(key).number(), value.as_ref().try_into()) {
                (Some(id), Ok(bytes)) => _ = live.insert(id, u64::from_be_bytes(bytes)),
                _ => strange = Some(key.escape_ascii().to_string()),
            }
            Visit::Next
        })
        .map_err(unreadable)?;
        if let Some(key) = strange {
            let why = format!("the row {key} does not say how many bytes live in a segment");
            return Err(OpenError::Damaged { place: "rows".into(), why });
        }
        let offset = tree.get(Key::new(space::CLOCK).text("offset").as_bytes(), tree::NEWEST).map_err(unreadable)?;
        Ok(Stored { live, clock_offset: stored_number(offset) })
    }
}

/// Sorts the segments: those that may hold contents are put into `segments`. Returns the dead, which are of three kinds:
/// never used (their header was never written), a log from which nothing was replayed and that holds no batch which was
/// ever durable (a spare, or one whose first batch was cut off), and one in which the tree says nothing lives. What the
/// tree says is good for that: it is known not to be older than STATE.
fn open_segments(
    folder: &Folder,
    found: BTreeMap<u64, SegmentFile>,
    live: &HashMap<u64, u64>,
    replayed: &Replayed,
    segments: &Segments,
) -> Result<Vec<u64>, OpenError> {
    for (log, _) in replayed.used() {
        segments.insert(Arc::clone(log));
    }
    let lives_in = |id: u64| live.get(&id).copied().unwrap_or(0);
    let mut dead = Vec::new();
    for (id, found) in found {
        match found {
            SegmentFile::Whole(segment) if lives_in(id) > 0 => segments.insert(segment),
            _ if segments.get(id).is_none() => dead.push(id),
            _ => {}
        }
    }
    let missing = live.iter().find(|(id, bytes)| **bytes > 0 && segments.get(**id).is_none());
    if let Some((id, bytes)) = missing {
        let place = format!("{} byte 0", segment_path(&folder.segments(), *id).display());
        return Err(OpenError::Damaged { place, why: format!("{bytes} bytes of contents are in it, and it is gone") });
    }
    Ok(dead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EmbeddedEngine;
    use engine::{Changes, Commit};

    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).expect("a folder");
        for entry in std::fs::read_dir(from).expect("listed").map(|entry| entry.expect("an entry")) {
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                copy(&entry.path(), &target);
            } else {
                // The engine runs on: what it has removed since the folder was listed is not in the copy.
                match std::fs::copy(entry.path(), target) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    copied => _ = copied.expect("copied"),
                }
            }
        }
    }

    #[tokio::test]
    async fn a_log_that_was_replayed_is_kept_until_its_rows_are_written_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = EmbeddedEngine::open(folder.path(), Options::default()).expect("opened");
        engine::commit::<(), std::convert::Infallible, _>(&*engine, Key::new(0x70), |_, _| {
            let mut changes = Changes::none();
            changes.put(Key::new(0x70), "a row and no content");
            Ok(Commit { changes, outcome: () })
        })
        .await
        .expect("committed");
        let crashed = tempfile::tempdir().expect("a folder");
        copy(folder.path(), crashed.path());
        // Nothing runs yet, so nothing has been written out: no log may go, though nothing lives in it.
        let inner = open(crashed.path(), Options::default()).expect("opened");
        assert!(inner.segments.all().len() >= 2, "the replayed log and the new one");
        assert!(inner.segments.all().iter().all(|segment| !segment.is_collectable()));
    }
}
