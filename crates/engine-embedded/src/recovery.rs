//! Opening a folder: replay the log into the tree, cut what a crash left half-written, refuse what a crash cannot leave.
//!
//! Batches are numbered without gaps over all logs, and each says which batch was known durable when it was written. So
//! when a batch is missing or damaged there are two cases. If a later batch says it had been durable, or STATE does, the
//! disk has lost something: the folder is refused and the place is named. Otherwise it was in flight when the machine
//! stopped, nobody was told it had happened, and it is cut off.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use engine::{Key, KeyReader, StampSource, Timestamp, Visit, space};

use crate::background::{EndedLog, Signals};
use crate::batch::{Batch, BatchHeader, HEADER, pages_from};
use crate::cache::RowCache;
use crate::contents::Lanes;
use crate::folder::{Folder, OpenError, State, io_error};
use crate::pipeline::Pipeline;
use crate::segment::{PAGE, Segment, SegmentKind, Segments, list_segments};
use crate::sync::{self, AtomicBool, AtomicU64, Mutex};
use crate::tree::{self, Tree};
use crate::{Counters, Inner, Options, stored_number};

/// The size of the very first log: what an empty folder costs.
const FIRST_LOG_BYTES: u64 = 1 << 20;

pub fn open(path: &Path, options: Options) -> Result<Inner, OpenError> {
    let folder = Folder::open(path, Arc::clone(&options.disk))?;
    let state = folder.read_state()?;
    let tree = Tree::open(&folder, options.block_cache_bytes, state.seq_floor)?;
    let ids = list_segments(&folder).map_err(io_error("cannot list the segments"))?;
    let first_free = ids.last().map_or(1, |last| last + 1).max(state.replay_segment).max(1);
    let replayed = replay(&folder, &ids, &state, &tree)?;
    let stamp_floor = Timestamp(state.stamp_floor.max(replayed.stamp));
    let stored = Stored::load(&tree)?;
    let segments = Segments::default();
    open_segments(&folder, &ids, &stored.live, &replayed, &segments)?;
    let (seq, log_id) = (tree.published(), first_free);
    let log = Segment::create(&folder, log_id, SegmentKind::Log, FIRST_LOG_BYTES)
        .map_err(io_error("cannot make a log segment"))?;
    let log = Arc::new(log);
    segments.insert(Arc::clone(&log));
    let ended = replayed.ended(seq, log_id, stamp_floor.0);
    if !ended.is_empty() {
        tree.rotate();
    }
    Ok(Inner {
        cache: RowCache::new(options.row_cache_bytes),
        lanes: Lanes::default(),
        pipeline: Pipeline::default(),
        clock: sync::clock(stored.clock_offset),
        stamps: StampSource::above(stamp_floor),
        next_segment: AtomicU64::new(log_id + 1),
        live: Mutex::new(stored.live),
        durable: AtomicU64::new(0),
        disk_full: AtomicBool::new(false),
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

/// What replaying the log brought to light.
struct Replayed {
    /// The logs that hold rows which may not be in the tree's files yet, and where their last batch ends.
    logs: Vec<(Arc<Segment>, u64)>,
    next_batch: u64,
    stamp: u64,
}

impl Replayed {
    fn ended(&self, last_seq: u64, next_log: u64, stamp: u64) -> Vec<EndedLog> {
        let ended = self.logs.iter().map(|(log, length)| EndedLog {
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

fn replay(folder: &Folder, ids: &[u64], state: &State, tree: &Tree) -> Result<Replayed, OpenError> {
    let mut logs = Vec::new();
    for &id in ids.iter().filter(|id| **id >= state.replay_segment) {
        match Segment::open(folder, id) {
            Ok(segment) if segment.kind == SegmentKind::Log => logs.push(Arc::new(segment)),
            Ok(_) => {}
            // A file whose header never reached the disk holds nothing; if a batch is missing that is noticed below.
            Err(error) => tracing::warn!(segment = id, %error, "a segment cannot be opened"),
        }
    }
    let mut replayed = Replayed { logs: Vec::new(), next_batch: state.replay_batch, stamp: 0 };
    for log in &logs {
        let stopped_at = replay_log(log, tree, &mut replayed)?;
        log.keep();
        replayed.logs.push((Arc::clone(log), stopped_at));
    }
    refuse_holes(&logs, state, &replayed)?;
    for (log, length) in &replayed.logs {
        let present = log.len().map_err(io_error("cannot look at a segment"))?;
        if present > *length {
            log.truncate(*length).map_err(io_error("cannot cut a segment"))?;
        }
    }
    Ok(replayed)
}

/// Replays one log as far as the numbers go on. Returns where it stopped.
fn replay_log(log: &Segment, tree: &Tree, replayed: &mut Replayed) -> Result<u64, OpenError> {
    let mut at = PAGE;
    while let Some(batch) = read_batch(log, at).map_err(io_error("cannot read the log"))? {
        if batch.header.number != replayed.next_batch {
            break;
        }
        let damaged = || OpenError::Damaged { place: place(log, at), why: "a batch cannot be taken apart".into() };
        for (key, value) in batch.rows().ok_or_else(damaged)? {
            tree.insert(&key, value.map(|value| Bytes::copy_from_slice(&value)), batch.header.seq);
        }
        tree.saw_seq(batch.header.seq);
        replayed.next_batch += 1;
        replayed.stamp = replayed.stamp.max(batch.header.stamp);
        at = batch.header.end();
    }
    Ok(at)
}

/// The whole, sound batch at this place, if there is one.
pub fn read_batch(log: &Segment, at: u64) -> std::io::Result<Option<Batch>> {
    let mut header = [0_u8; HEADER];
    match log.file().read_exact_at(&mut header, at) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let Some(header) = BatchHeader::decode(&header, log.id, at) else { return Ok(None) };
    let mut record = vec![0_u8; usize::try_from(header.length).unwrap_or(0)];
    match log.file().read_exact_at(&mut record, at) {
        Ok(()) => Ok(Batch::decode(Bytes::from(record), header)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replay has stopped before `next_batch`. Was that batch, or a later one, ever known to be durable?
fn refuse_holes(logs: &[Arc<Segment>], state: &State, replayed: &Replayed) -> Result<(), OpenError> {
    let missing = replayed.next_batch;
    let stopped = replayed.logs.iter().rev().find(|(_, end)| *end > PAGE).or(replayed.logs.first());
    let where_it_stopped = || stopped.map_or("the log, which is not there".into(), |(log, end)| place(log, *end));
    if missing <= state.durable_batch {
        let why = format!("batch {missing} was stored and cannot be read");
        return Err(OpenError::Damaged { place: where_it_stopped(), why });
    }
    for (log, from) in logs.iter().zip(replayed.logs.iter().map(|(_, end)| *end)) {
        let end = log.len().map_err(io_error("cannot look at a segment"))?;
        for at in pages_from(from, end) {
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
        let mut live = HashMap::new();
        let all = Key::new(space::SEGMENT);
        tree.scan(all.as_bytes(), all.after_all().as_bytes(), tree::NEWEST, &mut |key, value| {
            if let Some(id) = KeyReader::new(key).number() {
                live.insert(id, stored_number(Some(value.clone())));
            }
            Visit::Next
        })
        .map_err(unreadable)?;
        let offset = tree.get(Key::new(space::CLOCK).text("offset").as_bytes(), tree::NEWEST).map_err(unreadable)?;
        Ok(Stored { live, clock_offset: stored_number(offset) })
    }
}

/// Opens the segments that may hold contents. One that nothing was ever stored in is left over from a crash: it goes.
fn open_segments(
    folder: &Folder,
    ids: &[u64],
    live: &HashMap<u64, u64>,
    replayed: &Replayed,
    segments: &Segments,
) -> Result<(), OpenError> {
    for (log, _) in replayed.logs.iter().filter(|(_, end)| *end > PAGE) {
        segments.insert(Arc::clone(log));
    }
    for &id in ids.iter().filter(|id| segments.get(**id).is_none()) {
        let holds_nothing = live.get(&id).is_none_or(|bytes| *bytes == 0);
        let path = crate::segment::segment_path(&folder.segments(), id);
        if holds_nothing {
            folder.disk().remove_file(&path).map_err(io_error(format!("cannot remove {}", path.display())))?;
            continue;
        }
        let segment = Segment::open(folder, id).map_err(|error| OpenError::Damaged {
            place: path.display().to_string(),
            why: format!("a segment with contents: {error}"),
        })?;
        segments.insert(Arc::new(segment));
    }
    Ok(())
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
                std::fs::copy(entry.path(), target).expect("copied");
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
