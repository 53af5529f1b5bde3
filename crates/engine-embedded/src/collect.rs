//! The collector of segments: gives space back.
//!
//! A segment without live contents is dropped. A segment in which less than half of the bytes are live is emptied first: its live
//! contents are copied to a data segment, and the rows that hold their places are changed in guarded decisions. A file is unlinked
//! only after the commit that made it superfluous is durable and no reader looks at an older state.
//!
//! The collector gives way: it works in short rounds, not at all while flushes or compaction are behind, and rests as long
//! as it works. What cannot be read or moved is left where it is, named in the log, counted, and tried again later and
//! later; everything else goes on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use engine::{Changes, Commit, ContentId, EngineError, Key, NotCommitted};

use crate::Inner;
use crate::background::unavailable;
use crate::batch::{Batch, BatchBuilder, BatchHeader, HEADER};
use crate::contents::read_place;
use crate::manifest::{ExtentPlace, Manifest, PLACES_PER_ROW, content_key, segment_key};
use crate::recovery::read_batch;
use crate::segment::{EXTENT_HEADER, ExtentHeader, PAGE, Segment, SegmentHold, page_up};
use crate::sync::{self, Instant, MutexGuard};
use crate::tree::NEWEST;

/// How much is copied in one go: bounds the memory and the work between two syncs.
const MOVE_BYTES: u64 = 4 << 20;
/// How many places one decision changes: bounds how long the others wait for it.
const MOVES_PER_DECISION: usize = 128;
/// How much one gentle round copies.
const ROUND_BYTES: u64 = 32 << 20;
/// Smaller segments are not emptied; they are dropped once nothing in them is live.
const SMALL: u64 = 64 * 1024;
/// When what lives takes less than this part of the file, rows and padding are reason enough to copy it.
const NEARLY_EMPTY: u64 = 8;
/// What failed is tried again after this long, and each time after twice as long, up to the second.
const FIRST_RETRY: Duration = Duration::from_secs(4);
const RETRY_MAX: Duration = Duration::from_secs(3_600);
/// How often to look whether a dropped segment can be unlinked.
const UNLINK_PAUSE: Duration = Duration::from_millis(1);
/// The longest rest after a copy.
const REST_MAX: Duration = Duration::from_millis(500);

/// How hard the collector works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// Beside others: a bounded round, and nothing while the disk has more urgent work.
    Gentle,
    /// All there is to do.
    Everything,
}

/// What the collector remembers between rounds. Its lock makes the holder the only collector.
#[derive(Debug, Default)]
pub struct Collector {
    /// Segments that are to be unlinked when no reader can look at a state before this one.
    dropped: Vec<(Arc<Segment>, u64)>,
    /// How many bytes of contents were ever stored in a segment, once that was looked up.
    stored: BTreeMap<u64, u64>,
    failing: BTreeMap<u64, Failure>,
    /// Where the emptying of a segment goes on.
    cursor: Option<(u64, u64)>,
}

/// How often something has failed: a segment that could not be collected, or compaction.
#[derive(Debug, Default)]
pub struct Failure {
    times: u32,
    last: Option<Instant>,
}

impl Failure {
    pub fn happened(&mut self) {
        self.times += 1;
        self.last = Some(Instant::now());
    }

    /// Whether it is too early to try again. It is not once `most` has passed.
    pub fn is_resting(&self, most: Duration) -> bool {
        let rest = FIRST_RETRY.saturating_mul(1 << self.times.min(16)).min(most);
        self.last.is_some_and(|last| last.elapsed() < rest)
    }
}

/// One round over all segments. `true`: there is more to do.
pub fn run(inner: &Arc<Inner>, pace: Pace) -> bool {
    let mut collector = lock(inner);
    unlink_dropped(inner, &mut collector);
    let mut round = Round { inner, pace, moved: 0, is_over: false };
    let mut segments = inner.segments.all();
    segments.sort_unstable_by_key(|segment| segment.id);
    for segment in segments {
        if round.is_over() {
            break;
        }
        let is_dropped = collector.dropped.iter().any(|(dropped, _)| dropped.id == segment.id);
        let is_resting = collector.failing.get(&segment.id).is_some_and(|failure| failure.is_resting(RETRY_MAX));
        if !segment.is_collectable() || is_dropped || (is_resting && pace == Pace::Gentle) {
            continue;
        }
        match round.collect(&mut collector, &segment) {
            Ok(()) => {
                collector.failing.remove(&segment.id);
            }
            Err(EngineError::Closed) => break,
            Err(error) => note_failure(inner, &mut collector, &segment, &error),
        }
        // At once: the next one may need the room.
        unlink_dropped(inner, &mut collector);
    }
    inner.counters.segments_failing.store(collector.failing.len() as u64, Ordering::Relaxed);
    while pace == Pace::Everything && !collector.dropped.is_empty() && !round.is_over() {
        sync::sleep(UNLINK_PAUSE);
        unlink_dropped(inner, &mut collector);
    }
    round.is_over
}

pub fn lock(inner: &Inner) -> MutexGuard<'_, Collector> {
    inner.collector.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn note_failure(inner: &Inner, collector: &mut Collector, segment: &Segment, error: &EngineError) {
    inner.counters.collection_failures.fetch_add(1, Ordering::Relaxed);
    let failure = collector.failing.entry(segment.id).or_default();
    failure.happened();
    let (file, times) = (segment.path().display(), failure.times);
    tracing::warn!(%file, %error, times, "a segment cannot be collected; it will be tried again, later each time");
}

/// Unlinks the dropped segments that no reader can see any more.
pub fn unlink_dropped(inner: &Inner, collector: &mut Collector) {
    // Not before the commits that emptied it are synced, which in relaxed durability is later than acknowledged.
    let safe = inner.tree.watermark().min(inner.durable.load(Ordering::Acquire));
    let mut left = Vec::new();
    for (segment, safe_from) in std::mem::take(&mut collector.dropped) {
        if safe_from > safe {
            left.push((segment, safe_from));
            continue;
        }
        inner.live.lock().expect("nothing panics under this lock").remove(&segment.id);
        inner.segments.remove(segment.id);
        collector.stored.remove(&segment.id);
        match segment.unlink() {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let error = EngineError::Unavailable(format!("unlinking: {error}"));
                note_failure(inner, collector, &segment, &error);
                left.push((segment, safe_from));
            }
            _ => {
                collector.failing.remove(&segment.id);
                inner.counters.segments_collected.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    collector.dropped = left;
}

/// One pass over the segments.
struct Round<'a> {
    inner: &'a Arc<Inner>,
    pace: Pace,
    moved: u64,
    /// Ended before all was done.
    is_over: bool,
}

impl Round<'_> {
    fn is_over(&mut self) -> bool {
        // When space is short there is nothing more urgent, and without it compaction cannot catch up either.
        let is_gentle = self.pace == Pace::Gentle && !self.inner.space.is_full();
        let gives_way = is_gentle && (self.moved >= ROUND_BYTES || !self.inner.tree.pressure().is_zero());
        self.is_over |= gives_way || self.inner.closing.load(Ordering::Acquire) || self.inner.pipeline.is_broken();
        self.is_over
    }

    fn collect(&mut self, collector: &mut Collector, segment: &Arc<Segment>) -> Result<(), EngineError> {
        if is_worth_emptying(self.inner, collector, segment)? {
            self.empty(collector, segment)?;
        }
        if live_bytes(self.inner, segment.id) == 0 && segment.is_collectable() && !self.is_over() {
            collector.dropped.push((Arc::clone(segment), drop_segment(self.inner, segment)?));
        }
        Ok(())
    }

    /// Copies what lives in a segment elsewhere. What cannot be copied is named and left; then this fails at the end. Where there
    /// is no room for copies it waits for a later round.
    fn empty(&mut self, collector: &mut Collector, segment: &Arc<Segment>) -> Result<(), EngineError> {
        if !self.inner.has_room_to_move(live_bytes(self.inner, segment.id).min(MOVE_BYTES)) {
            return Ok(());
        }
        let mut gathered = Vec::new();
        let mut gathered_bytes = 0;
        let mut failed = None;
        let mut at = collector.cursor.take().filter(|(id, _)| *id == segment.id).map_or(PAGE, |(_, at)| at);
        let end = length_of(segment)?;
        while at < end && !self.is_over() {
            let (candidates, next) = candidates_at(segment, at)?;
            at = next;
            for (content, number, offset) in candidates {
                match find_living(self.inner, segment.id, content, number, offset) {
                    Ok(Some(living)) => {
                        gathered_bytes += living.bytes.len() as u64;
                        gathered.push(living);
                    }
                    Ok(None) => {}
                    Err(error) => {
                        tracing::warn!(content = content.0, number, %error, "a content cannot be moved");
                        failed = Some(error);
                    }
                }
                if gathered_bytes >= MOVE_BYTES {
                    if !self.inner.has_room_to_move(gathered_bytes) {
                        return Ok(());
                    }
                    self.relocate(std::mem::take(&mut gathered))?;
                    gathered_bytes = 0;
                }
            }
        }
        if !self.inner.has_room_to_move(gathered_bytes) {
            return Ok(());
        }
        self.relocate(gathered)?;
        if at < end {
            collector.cursor = Some((segment.id, at));
        } else if failed.is_none() {
            failed = lost_in(self.inner, segment);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Copies, then rests as long as that took: others use the disk too.
    fn relocate(&mut self, living: Vec<Living>) -> Result<(), EngineError> {
        let began = Instant::now();
        self.moved += relocate(self.inner, living)?;
        if self.pace == Pace::Gentle && !self.inner.space.is_full() {
            sync::sleep(began.elapsed().min(REST_MAX));
        }
        Ok(())
    }
}

/// Whether copying what lives in a segment gives back more than it costs.
///
/// What counts is what became of the contents: rows and padding of a log would otherwise make it worth copying as soon as
/// it ends. Only when there is hardly anything to copy are they reason enough.
fn is_worth_emptying(inner: &Inner, collector: &mut Collector, segment: &Segment) -> Result<bool, EngineError> {
    let (length, live) = (length_of(segment)?, live_bytes(inner, segment.id));
    if live == 0 || length <= SMALL || live * 2 >= length {
        return Ok(false);
    }
    Ok(live * NEARLY_EMPTY < length || live * 2 < stored_bytes(collector, segment, length)?)
}

/// How many bytes of contents were ever stored in the segment.
fn stored_bytes(collector: &mut Collector, segment: &Segment, length: u64) -> Result<u64, EngineError> {
    if let Some(bytes) = collector.stored.get(&segment.id) {
        return Ok(*bytes);
    }
    let (mut at, mut bytes) = (PAGE, 0);
    while at < length {
        let (stored, next) = match record_at(segment, at)? {
            Record::Extent(extent) => (u64::from(extent.length), end_of(&extent)),
            Record::Batch(batch) => {
                (batch.contents().map(|content| u64::from(content.length)).sum(), batch.header.end())
            }
            Record::Nothing => (0, at + PAGE),
        };
        (at, bytes) = (next, bytes + stored);
    }
    collector.stored.insert(segment.id, bytes);
    Ok(bytes)
}

fn length_of(segment: &Segment) -> Result<u64, EngineError> {
    segment.len().map_err(|error| EngineError::Unavailable(error.to_string()))
}

fn live_bytes(inner: &Inner, segment: u64) -> u64 {
    inner.live.lock().expect("nothing panics under this lock").get(&segment).copied().unwrap_or(0)
}

/// Everything that was found in a segment has been moved. Contents that are still live there cannot be found by walking through
/// it.
fn lost_in(inner: &Inner, segment: &Segment) -> Option<EngineError> {
    let left = live_bytes(inner, segment.id);
    (left > 0).then(|| EngineError::Corrupt(format!("{left} bytes of contents live in it and are not found there")))
}

/// Takes the segment's row out. Returns the state from which on the file is not needed.
fn drop_segment(inner: &Arc<Inner>, segment: &Segment) -> Result<u64, EngineError> {
    let key = segment_key(segment.id);
    decide(inner, key.clone(), move |_| {
        let mut changes = Changes::none().freeing_space();
        changes.delete(key.clone());
        Ok(changes)
    })?;
    Ok(inner.tree.published())
}

/// A content's extent that lives in the segment being emptied.
struct Living {
    content: ContentId,
    number: u32,
    place: ExtentPlace,
    bytes: Bytes,
}

type Candidates = Vec<(ContentId, u32, u64)>;

/// What stands at a place of a segment.
enum Record {
    Extent(ExtentHeader),
    Batch(Box<Batch>),
    Nothing,
}

fn record_at(segment: &Segment, at: u64) -> Result<Record, EngineError> {
    let failed = |error: std::io::Error| unavailable(&format!("segment {:x}", segment.id), &error);
    let mut header = [0_u8; HEADER];
    let read = segment.file().and_then(|file| file.read_at(&mut header, at)).map_err(failed)?;
    if let Some(extent) = ExtentHeader::decode(&header[..read], segment.id, at) {
        return Ok(Record::Extent(extent));
    }
    if BatchHeader::decode(&header[..read], segment.id, at).is_some()
        && let Some(batch) = read_batch(segment, at).map_err(failed)?
    {
        return Ok(Record::Batch(Box::new(batch)));
    }
    Ok(Record::Nothing)
}

fn end_of(extent: &ExtentHeader) -> u64 {
    page_up(extent.offset + EXTENT_HEADER + u64::from(extent.length))
}

/// The contents recorded at this place of a segment (id, extent number, offset of the bytes), and the next place to look.
fn candidates_at(segment: &Segment, at: u64) -> Result<(Candidates, u64), EngineError> {
    Ok(match record_at(segment, at)? {
        Record::Extent(extent) => {
            (vec![(ContentId(extent.content), extent.number, at + EXTENT_HEADER)], end_of(&extent))
        }
        Record::Batch(batch) => {
            let found = batch.contents().map(|content| (ContentId(content.id), 0, content.offset)).collect();
            (found, batch.header.end())
        }
        Record::Nothing => (Vec::new(), at + PAGE),
    })
}

fn find_living(
    inner: &Inner,
    segment: u64,
    content: ContentId,
    number: u32,
    offset: u64,
) -> Result<Option<Living>, EngineError> {
    // A packed small content carries no extent number; it is always the first.
    let (row, index) = (number / PLACES_PER_ROW as u32, number as usize % PLACES_PER_ROW);
    let Some(value) = inner.tree.get(content_key(content, row).as_bytes(), NEWEST)? else { return Ok(None) };
    let manifest = Manifest::decode(&value)?;
    let Some(place) = manifest.places.get(index) else { return Ok(None) };
    if place.segment != segment || place.offset != offset {
        return Ok(None);
    }
    let bytes = read_place(inner, place)?;
    Ok(Some(Living { content, number, place: place.clone(), bytes }))
}

/// A content's extent, where it was and where it is now.
struct Move {
    content: ContentId,
    number: u32,
    old: ExtentPlace,
    new: ExtentPlace,
}

/// Writes the bytes to new places, syncs, and changes the rows that still hold the old ones. Returns how many bytes.
fn relocate(inner: &Arc<Inner>, living: Vec<Living>) -> Result<u64, EngineError> {
    if living.is_empty() {
        return Ok(0);
    }
    let mut holds = Vec::new();
    let written = write_elsewhere(inner, living, &mut holds).and_then(|moves| sync_all(&holds).map(|()| moves));
    let moves = written.map_err(|error| {
        // The tail of a segment in which a write or sync failed cannot be trusted.
        holds.iter().for_each(|hold| inner.lanes.seal(&hold.0));
        EngineError::Unavailable(format!("moving contents: {error}"))
    })?;
    let bytes = moves.iter().map(|one| u64::from(one.old.length)).sum();
    let mut moves = moves.into_iter().peekable();
    while moves.peek().is_some() {
        change_places(inner, moves.by_ref().take(MOVES_PER_DECISION).collect())?;
    }
    inner.counters.bytes_moved.fetch_add(bytes, Ordering::Relaxed);
    drop(holds);
    Ok(bytes)
}

/// Small contents are packed together, the others become extents of their own.
fn write_elsewhere(inner: &Inner, living: Vec<Living>, holds: &mut Vec<SegmentHold>) -> std::io::Result<Vec<Move>> {
    let mut moves = Vec::with_capacity(living.len());
    let (small, large): (Vec<Living>, Vec<Living>) =
        living.into_iter().partition(|one| one.number == 0 && one.bytes.len() <= engine::INLINE_MAX);
    if !small.is_empty() {
        let bytes = small.iter().map(|one| one.bytes.len() as u64 + 24).sum::<u64>() + HEADER as u64;
        let (hold, at) = inner.lanes.reserve(inner, 0, bytes)?;
        let segment = Arc::clone(&hold.0);
        holds.push(hold);
        let mut pack = BatchBuilder::new(segment.id, at, 0, 0);
        for one in small {
            let offset = pack.add_content(one.content.0, &one.bytes, crc32c::crc32c(&one.bytes));
            let new = ExtentPlace { segment: segment.id, offset, ..one.place.clone() };
            moves.push(Move { content: one.content, number: one.number, old: one.place, new });
        }
        segment.write_at(&pack.finish(0), at)?;
    }
    for one in large {
        let (hold, at) = inner.lanes.reserve(inner, 1, EXTENT_HEADER + one.bytes.len() as u64)?;
        let segment = Arc::clone(&hold.0);
        holds.push(hold);
        let (content, number, length) = (one.content.0, one.number, one.place.length);
        let header = ExtentHeader { segment: segment.id, offset: at, content, number, length };
        segment.write_at(&header.encode(), at)?;
        segment.write_at(&one.bytes, at + EXTENT_HEADER)?;
        let new = ExtentPlace { segment: segment.id, offset: at + EXTENT_HEADER, ..one.place.clone() };
        moves.push(Move { content: one.content, number, old: one.place, new });
    }
    Ok(moves)
}

fn sync_all(holds: &[SegmentHold]) -> std::io::Result<()> {
    let segments: BTreeMap<u64, &Arc<Segment>> = holds.iter().map(|hold| (hold.0.id, &hold.0)).collect();
    segments.values().try_for_each(|segment| segment.sync())
}

/// One decision: every place that is still the old one becomes the new one.
fn change_places(inner: &Arc<Inner>, moves: Vec<Move>) -> Result<(), EngineError> {
    decide(inner, Key::new(engine::space::SEGMENT), move |rows| {
        // Several extents may stand in one row.
        let mut manifests: BTreeMap<Key, (Manifest, bool)> = BTreeMap::new();
        for one in &moves {
            let key = content_key(one.content, one.number / PLACES_PER_ROW as u32);
            if !manifests.contains_key(&key) {
                let Some(row) = rows.get(&key)? else { continue };
                manifests.insert(key.clone(), (Manifest::decode(&row)?, false));
            }
            let Some((manifest, is_changed)) = manifests.get_mut(&key) else { continue };
            if let Some(place) = manifest.places.get_mut(one.number as usize % PLACES_PER_ROW)
                && *place == one.old
            {
                *place = one.new.clone();
                *is_changed = true;
            }
        }
        let mut changes = Changes::none().freeing_space();
        for (key, (manifest, _)) in manifests.into_iter().filter(|(_, (_, is_changed))| *is_changed) {
            changes.put(key, manifest.encode());
        }
        Ok(changes)
    })
}

/// Commits a decision of the engine's own, from a thread of its own.
fn decide(
    inner: &Arc<Inner>,
    partition: Key,
    mut decide: impl FnMut(&dyn engine::Rows) -> Result<Changes, engine::Unread> + Send + 'static,
) -> Result<(), EngineError> {
    let (decision, pending) = engine::ask::<(), std::convert::Infallible, _>(partition, move |rows, _| {
        Ok(Commit { changes: decide(rows)?, outcome: () })
    });
    let waiting = inner.pipeline.submit(decision, usize::MAX)?;
    sync::wait_for(waiting).unwrap_or(Err(EngineError::Closed))?;
    match pending.answer() {
        Ok(()) => Ok(()),
        Err(NotCommitted::Failed(error)) => Err(error),
        Err(NotCommitted::Refused(never)) => match never {},
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_failed_rests_longer_each_time() {
        let mut failure = Failure::default();
        assert!(!failure.is_resting(RETRY_MAX));
        failure.happened();
        assert!(failure.is_resting(RETRY_MAX));
        let (once, twice) = (FIRST_RETRY * 2, FIRST_RETRY * 4);
        let ago = |time: Duration| Instant::now().checked_sub(time);
        failure.last = ago(once);
        assert!(!failure.is_resting(RETRY_MAX));
        failure.happened();
        failure.last = ago(once);
        assert!(failure.is_resting(RETRY_MAX));
        assert!(!failure.is_resting(once), "not longer than this");
        failure.last = ago(twice);
        assert!(!failure.is_resting(RETRY_MAX));
    }
}
