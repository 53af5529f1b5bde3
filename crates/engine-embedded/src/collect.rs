//! The collector of segments: gives space back.
//!
//! A segment nothing lives in is dropped. One that is less than half alive is emptied first: what lives is copied to a
//! data segment, and the rows that hold the places are changed in guarded decisions. A file is unlinked only after the
//! commit that made it superfluous is durable and no reader looks at an older state.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use engine::{Changes, Commit, ContentId, EngineError, Key, NotCommitted};

use crate::Inner;
use crate::batch::{BatchBuilder, BatchHeader, HEADER};
use crate::contents::read_place;
use crate::manifest::{Manifest, PLACES_PER_ROW, Place, content_key, segment_key};
use crate::recovery::read_batch;
use crate::segment::{EXTENT_HEADER, ExtentHeader, PAGE, Segment, page_up};
use crate::sync;
use crate::tree::NEWEST;

/// How much is copied in one go: bounds the memory and the work between two syncs.
const MOVE_BYTES: u64 = 4 << 20;
/// Segments smaller than this are not worth the copying until nothing lives in them.
const SMALL: u64 = 64 * 1024;

/// One round over all segments. Returns how many were dropped.
pub fn run(inner: &Arc<Inner>) -> Result<usize, EngineError> {
    let mut dropped = 0;
    for segment in inner.segments.all() {
        if inner.stopping.load(Ordering::Acquire) {
            break;
        }
        if !segment.is_collectable() {
            continue;
        }
        let length = segment.len().map_err(|error| EngineError::Unavailable(error.to_string()))?;
        let live = live_bytes(inner, segment.id);
        if live > 0 && length > SMALL && live * 2 < length {
            empty(inner, &segment)?;
        }
        if live_bytes(inner, segment.id) == 0 && segment.is_collectable() {
            drop_segment(inner, &segment)?;
            dropped += 1;
        }
    }
    Ok(dropped)
}

fn live_bytes(inner: &Inner, segment: u64) -> u64 {
    inner.live.lock().expect("nothing panics under this lock").get(&segment).copied().unwrap_or(0)
}

fn drop_segment(inner: &Arc<Inner>, segment: &Arc<Segment>) -> Result<(), EngineError> {
    let key = segment_key(segment.id);
    decide(inner, key.clone(), move |_| {
        let mut changes = Changes::none().freeing_space();
        changes.delete(key.clone());
        Ok(changes)
    })?;
    // Not before the commits that emptied it are synced, which in relaxed durability is later than acknowledged.
    let safe_from = inner.tree.published();
    while inner.tree.watermark() < safe_from || inner.durable.load(Ordering::Acquire) < safe_from {
        if inner.pipeline.is_broken() {
            return Err(EngineError::Closed);
        }
        sync::sleep(std::time::Duration::from_millis(1));
    }
    inner.live.lock().expect("nothing panics under this lock").remove(&segment.id);
    inner.segments.remove(segment.id);
    inner.folder.disk().remove_file(segment.path()).map_err(|error| EngineError::Unavailable(error.to_string()))?;
    inner.counters.segments_collected.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// A content's extent that lives in the segment being emptied.
struct Living {
    content: ContentId,
    number: u32,
    place: Place,
    bytes: Bytes,
}

/// Copies what lives in a segment elsewhere.
fn empty(inner: &Arc<Inner>, segment: &Arc<Segment>) -> Result<(), EngineError> {
    let mut gathered = Vec::new();
    let mut gathered_bytes = 0;
    let mut at = PAGE;
    let end = segment.len().map_err(|error| EngineError::Unavailable(error.to_string()))?;
    while at < end && !inner.stopping.load(Ordering::Acquire) {
        let (candidates, next) = candidates_at(segment, at)?;
        at = next;
        for (content, number, offset) in candidates {
            if let Some(living) = find_living(inner, segment.id, content, number, offset)? {
                gathered_bytes += living.bytes.len() as u64;
                gathered.push(living);
            }
        }
        if gathered_bytes >= MOVE_BYTES {
            relocate(inner, std::mem::take(&mut gathered))?;
            gathered_bytes = 0;
        }
    }
    relocate(inner, gathered)
}

type Candidates = Vec<(ContentId, u32, u64)>;

/// The contents recorded at this place of a segment (id, extent number, offset of the bytes), and the next place to look.
fn candidates_at(segment: &Segment, at: u64) -> Result<(Candidates, u64), EngineError> {
    let failed = |error: std::io::Error| EngineError::Unavailable(format!("segment {:x}: {error}", segment.id));
    let mut header = [0_u8; HEADER];
    let read = segment.file().read_at(&mut header, at).map_err(failed)?;
    if let Some(extent) = ExtentHeader::decode(&header[..read], segment.id, at) {
        let bytes_at = at + EXTENT_HEADER;
        let found = vec![(ContentId(extent.content), extent.number, bytes_at)];
        return Ok((found, page_up(bytes_at + u64::from(extent.length))));
    }
    if BatchHeader::decode(&header[..read], segment.id, at).is_some()
        && let Some(batch) = read_batch(segment, at).map_err(failed)?
    {
        let found = batch.contents().map(|content| (ContentId(content.id), 0, content.offset)).collect();
        return Ok((found, batch.header.end()));
    }
    Ok((Vec::new(), at + PAGE))
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

/// Writes the bytes to new places, syncs, and changes the rows that still hold the old ones.
fn relocate(inner: &Arc<Inner>, living: Vec<Living>) -> Result<(), EngineError> {
    if living.is_empty() {
        return Ok(());
    }
    let (small, large): (Vec<Living>, Vec<Living>) =
        living.into_iter().partition(|one| one.number == 0 && one.bytes.len() <= engine::INLINE_MAX);
    let mut moves = Vec::new();
    let mut holds = Vec::new();
    let failed = |error: std::io::Error| EngineError::Unavailable(format!("moving contents: {error}"));
    if !small.is_empty() {
        let bytes = small.iter().map(|one| one.bytes.len() as u64 + 24).sum::<u64>() + HEADER as u64;
        let (hold, at) = inner.lanes.reserve(inner, 0, bytes).map_err(failed)?;
        let mut pack = BatchBuilder::new(hold.0.id, at, 0, 0);
        for one in small {
            let offset = pack.add_content(one.content.0, &one.bytes, crc32c::crc32c(&one.bytes));
            moves.push((one.content, one.number, one.place.clone(), Place { segment: hold.0.id, offset, ..one.place }));
        }
        hold.0.write_at(&pack.finish(0), at).map_err(failed)?;
        holds.push(hold);
    }
    for one in large {
        let bytes = EXTENT_HEADER + one.bytes.len() as u64;
        let (hold, at) = inner.lanes.reserve(inner, 1, bytes).map_err(failed)?;
        let (content, number, length) = (one.content.0, one.number, one.place.length);
        let header = ExtentHeader { segment: hold.0.id, offset: at, content, number, length };
        hold.0.write_at(&header.encode(), at).map_err(failed)?;
        hold.0.write_at(&one.bytes, at + EXTENT_HEADER).map_err(failed)?;
        let new = Place { segment: hold.0.id, offset: at + EXTENT_HEADER, ..one.place.clone() };
        moves.push((one.content, one.number, one.place, new));
        holds.push(hold);
    }
    let mut synced: Vec<u64> = Vec::new();
    for hold in &holds {
        if !synced.contains(&hold.0.id) {
            hold.0.sync_now().map_err(failed)?;
            synced.push(hold.0.id);
        }
    }
    let moved: u64 = moves.iter().map(|(_, _, place, _)| u64::from(place.length)).sum();
    decide(inner, Key::new(engine::space::SEGMENT), move |rows| {
        let mut changes = Changes::none().freeing_space();
        for (content, number, old, new) in &moves {
            let key = content_key(*content, number / PLACES_PER_ROW as u32);
            // Several extents of one row: build on what this decision has already changed.
            let pending = changes.rows.iter().rev().find(|(changed, _)| *changed == key);
            let row = match pending {
                Some((_, value)) => value.clone(),
                None => rows.get(&key)?,
            };
            let Some(row) = row else { continue };
            let mut manifest = Manifest::decode(&row)?;
            if let Some(place) = manifest.places.get_mut(*number as usize % PLACES_PER_ROW)
                && place == old
            {
                *place = new.clone();
                changes.rows.retain(|(changed, _)| *changed != key);
                changes.put(key, manifest.encode());
            }
        }
        Ok(changes)
    })?;
    inner.counters.bytes_moved.fetch_add(moved, Ordering::Relaxed);
    drop(holds);
    Ok(())
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
