//! Contents on their way in and out.
//!
//! Up to [`INLINE_MAX`] bytes wait in memory and travel with their commit. Larger ones go to data segments in extents,
//! written while the body arrives and synced before `finish` returns.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Counter, Ordering};

use bytes::{Bytes, BytesMut};
use engine::{
    BoxFuture, Content, ContentId, ContentReader, ContentWriter, EngineError, INLINE_MAX, Part, Staged, Unread,
};

use crate::Inner;
use crate::background::{is_full, unavailable};
use crate::door::Door;
use crate::manifest::{ExtentPlace, Manifest, content_key};
use crate::segment::{CRC_CHUNK, EXTENT_HEADER, ExtentHeader, PAGE, Segment, SegmentHold, SegmentKind, page_up};
use crate::small_contents::SmallContents;
use crate::sync::{self, Blocking, Mutex};

/// The longest extent.
pub const EXTENT_BYTES: u64 = 8 << 20;
/// How long an extent is when the content's length is not known ahead.
const EXTENT_BYTES_UNKNOWN: u64 = 1 << 20;
/// How much of a body is gathered before it is written.
const PIECE_BYTES: usize = 512 * 1024;
/// The first data segment's size; each next one is larger, up to the limit.
const FIRST_SEGMENT_BYTES: u64 = 16 << 20;
/// Contents above this go to the second lane, so that small ones do not wait for their syncs.
const LARGE: u64 = 8 << 20;

/// Where large contents are written: each lane has its own segment.
#[derive(Debug, Default)]
pub struct Lanes([Mutex<Lane>; 2]);

#[derive(Debug, Default)]
struct Lane {
    segment: Option<Arc<Segment>>,
    next: u64,
    limit: u64,
}

impl Lanes {
    /// Room for `bytes` in one piece.
    pub fn reserve(&self, inner: &Inner, lane: usize, bytes: u64) -> io::Result<(SegmentHold, u64)> {
        let mut lane = self.0[lane].lock().expect("nothing panics under this lock");
        let usable = lane.segment.as_ref().is_some_and(|segment| !segment.has_failed());
        if !usable || lane.next + bytes > lane.limit {
            lane.turn_over(inner, bytes)?;
        }
        let offset = lane.next;
        lane.next = page_up(offset + bytes);
        let segment = lane.segment.as_ref().ok_or_else(|| io::Error::other("no segment"))?;
        Ok((SegmentHold::new(segment), offset))
    }

    /// Writes no more to the open segment: after an error its tail cannot be trusted.
    pub fn seal(&self, failed: &Segment) {
        for lane in &self.0 {
            let mut lane = lane.lock().expect("nothing panics under this lock");
            if lane.segment.as_ref().is_some_and(|segment| segment.id == failed.id) {
                failed.seal();
                lane.segment = None;
            }
        }
    }
}

impl Lane {
    fn turn_over(&mut self, inner: &Inner, bytes: u64) -> io::Result<()> {
        let id = inner.next_segment.fetch_add(1, Ordering::AcqRel);
        let segment = Arc::new(Segment::create(&inner.folder, id, SegmentKind::Data, 0)?);
        inner.segments.insert(Arc::clone(&segment));
        if let Some(old) = self.segment.replace(segment) {
            old.seal();
        }
        let planned = (self.limit * 2).max(FIRST_SEGMENT_BYTES).min(inner.options.segment_bytes);
        self.limit = planned.max(PAGE + bytes);
        self.next = PAGE;
        Ok(())
    }
}

/// A content on its way in.
pub struct Writer {
    door: Door,
    id: ContentId,
    length: Option<u64>,
    received: u64,
    pieces: Vec<Bytes>,
    pieces_bytes: usize,
    /// At most one write is under way while the next piece is gathered.
    running: Option<Blocking<Result<Extents, EngineError>>>,
    extents: Option<Extents>,
}

/// The extents written so far.
struct Extents {
    door: Door,
    content: u64,
    length: Option<u64>,
    written: u64,
    places: Vec<ExtentPlace>,
    holds: Vec<SegmentHold>,
    current: Option<CurrentExtent>,
}

struct CurrentExtent {
    segment: Arc<Segment>,
    header_at: u64,
    capacity: u64,
    filled: u64,
    sums: Vec<u32>,
    sum: u32,
}

impl Writer {
    pub fn new(inner: &Arc<Inner>, length: Option<u64>) -> Writer {
        let (door, id) = (Door::to(inner), ContentId(inner.stamps.next(inner.clock.now()).0));
        let extents = Extents {
            door: door.clone(),
            content: id.0,
            length,
            written: 0,
            places: Vec::new(),
            holds: Vec::new(),
            current: None,
        };
        let (pieces, extents) = (Vec::new(), Some(extents));
        Writer { door, id, length, received: 0, pieces, pieces_bytes: 0, running: None, extents }
    }

    async fn write_out(&mut self) -> Result<(), EngineError> {
        let mut extents = self.settled().await?;
        let pieces = std::mem::take(&mut self.pieces);
        self.pieces_bytes = 0;
        self.running = Some(sync::blocking(move || {
            extents.append(&pieces)?;
            Ok(extents)
        }));
        Ok(())
    }

    /// The extents after the write under way has ended.
    async fn settled(&mut self) -> Result<Extents, EngineError> {
        if let Some(running) = self.running.take() {
            return running.await.map_err(|error| EngineError::Unavailable(error.to_string()))?;
        }
        self.extents.take().ok_or_else(|| EngineError::Unavailable("an earlier write failed".into()))
    }

    /// The whole content, if it is small enough to travel with its commit.
    fn finish_small(&mut self) -> Result<Option<Bytes>, EngineError> {
        let inner = self.door.enter()?;
        if inner.space.is_full() {
            return Err(EngineError::Full);
        }
        inner.refuse_without_folder()?;
        if self.received > INLINE_MAX as u64 {
            return Ok(None);
        }
        WaitingBytes::count(&inner, self.inline()).map(Some)
    }

    fn inline(&mut self) -> Bytes {
        match self.pieces.len() {
            1 => self.pieces.remove(0),
            _ => {
                let mut whole = BytesMut::with_capacity(self.pieces_bytes);
                self.pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
                whole.freeze()
            }
        }
    }
}

impl ContentWriter for Writer {
    fn id(&self) -> ContentId {
        self.id
    }

    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.received += bytes.len() as u64;
            if self.length.is_some_and(|length| self.received > length) {
                return Err(EngineError::Unavailable("more bytes than announced".into()));
            }
            self.pieces_bytes += bytes.len();
            if !bytes.is_empty() {
                self.pieces.push(bytes);
            }
            if self.pieces_bytes >= PIECE_BYTES { self.write_out().await } else { Ok(()) }
        })
    }

    fn finish(mut self: Box<Self>) -> BoxFuture<'static, Result<Staged, EngineError>> {
        Box::pin(async move {
            if let Some(bytes) = self.finish_small()? {
                return Ok(Staged::new(self.id, bytes.len() as u64, Part::Inline(bytes)));
            }
            if !self.pieces.is_empty() {
                self.write_out().await?;
            }
            let extents = self.settled().await?;
            extents.finish(self.id).await
        })
    }
}

/// A small content in memory. Its bytes are counted until the last clone is dropped.
struct WaitingBytes {
    bytes: Bytes,
    count: Arc<Counter>,
}

impl WaitingBytes {
    fn count(inner: &Inner, bytes: Bytes) -> Result<Bytes, EngineError> {
        let length = bytes.len() as u64;
        let waiting = WaitingBytes { bytes, count: Arc::clone(&inner.waiting_bytes) };
        let before = waiting.count.fetch_add(length, Ordering::Relaxed);
        // Too much or not, it is taken from the count again when `waiting` goes.
        let is_too_much = before + length > inner.options.waiting_bytes_max;
        if is_too_much { Err(EngineError::Busy) } else { Ok(Bytes::from_owner(waiting)) }
    }
}

impl AsRef<[u8]> for WaitingBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for WaitingBytes {
    fn drop(&mut self) {
        self.count.fetch_sub(self.bytes.len() as u64, Ordering::Relaxed);
    }
}

impl Extents {
    fn append(&mut self, pieces: &[Bytes]) -> Result<(), EngineError> {
        let inner = self.door.enter()?;
        self.try_append(&inner, pieces).map_err(|error| {
            if let Some(current) = self.current.take() {
                inner.lanes.seal(&current.segment);
            }
            storing(&inner, &error)
        })
    }

    fn try_append(&mut self, inner: &Inner, pieces: &[Bytes]) -> io::Result<()> {
        for piece in pieces {
            let mut rest = piece.clone();
            while !rest.is_empty() {
                if self.current.is_none() {
                    self.begin(inner)?;
                }
                let Some(current) = &mut self.current else { continue };
                let room = usize::try_from(current.capacity - current.filled).unwrap_or(usize::MAX);
                let part = rest.split_to(rest.len().min(room));
                current.append(&part)?;
                self.written += part.len() as u64;
                if current.filled == current.capacity {
                    self.end()?;
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, inner: &Inner) -> io::Result<()> {
        let left = self.length.map(|length| length - self.written);
        let capacity = left.map_or(EXTENT_BYTES_UNKNOWN, |left| left.min(EXTENT_BYTES));
        let lane = usize::from(self.length.is_none_or(|length| length > LARGE));
        if !inner.takes(EXTENT_HEADER + capacity) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let (hold, header_at) = inner.lanes.reserve(inner, lane, EXTENT_HEADER + capacity)?;
        let segment = Arc::clone(&hold.0);
        self.holds.push(hold);
        segment.write_at(&self.header(&segment, header_at, capacity).encode(), header_at)?;
        self.current = Some(CurrentExtent { segment, header_at, capacity, filled: 0, sums: Vec::new(), sum: 0 });
        Ok(())
    }

    fn header(&self, segment: &Segment, offset: u64, length: u64) -> ExtentHeader {
        let number = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        ExtentHeader { segment: segment.id, offset, content: self.content, number, length }
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(mut current) = self.current.take() else { return Ok(()) };
        if current.filled < current.capacity {
            let header = self.header(&current.segment, current.header_at, current.filled);
            current.segment.write_at(&header.encode(), current.header_at)?;
        }
        if !current.filled.is_multiple_of(CRC_CHUNK as u64) {
            current.sums.push(current.sum);
        }
        self.places.push(ExtentPlace {
            segment: current.segment.id,
            offset: current.header_at + EXTENT_HEADER,
            length: u32::try_from(current.filled).unwrap_or(u32::MAX),
            sums: current.sums,
        });
        Ok(())
    }

    async fn finish(mut self, id: ContentId) -> Result<Staged, EngineError> {
        {
            let inner = self.door.enter()?;
            self.end().map_err(|error| storing(&inner, &error))?;
        }
        let mut segments: Vec<Arc<Segment>> = self.holds.iter().map(|hold| Arc::clone(&hold.0)).collect();
        segments.dedup_by_key(|segment| segment.id);
        for segment in segments {
            if let Err(error) = segment.sync_shared().await {
                let inner = self.door.enter()?;
                inner.lanes.seal(&segment);
                return Err(storing(&inner, &error));
            }
        }
        let rows = Manifest::rows_for(self.written, &self.places).iter().map(Manifest::encode).collect();
        let part = Part::Placed { rows: Arc::new(rows), hold: Arc::new(std::mem::take(&mut self.holds)) };
        Ok(Staged::new(id, self.written, part))
    }
}

impl CurrentExtent {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.segment.write_at(bytes, self.header_at + EXTENT_HEADER + self.filled)?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let in_chunk = usize::try_from(self.filled % CRC_CHUNK as u64).unwrap_or(0);
            let (part, after) = rest.split_at(rest.len().min(CRC_CHUNK - in_chunk));
            self.sum = crc32c::crc32c_append(self.sum, part);
            self.filled += part.len() as u64;
            if self.filled.is_multiple_of(CRC_CHUNK as u64) {
                self.sums.push(std::mem::take(&mut self.sum));
            }
            rest = after;
        }
        Ok(())
    }
}

fn storing(inner: &Inner, error: &io::Error) -> EngineError {
    if is_full(error) {
        inner.space.was_full();
        return EngineError::Full;
    }
    unavailable("storing bytes", error)
}

/// Opens a content, whose rows `get` finds. It holds its segments, so it can be read whatever happens to them.
pub fn open(
    inner: &Inner,
    id: ContentId,
    get: impl Fn(&[u8]) -> Result<Option<Bytes>, Unread>,
) -> Result<Content, Unread> {
    let missing = || EngineError::Corrupt(format!("content {} is not there", id.0));
    let first = get(content_key(id, 0).as_bytes())?.ok_or_else(missing)?;
    if let Some(content) = inner.small_contents.get(id) {
        return Ok(Content::new(Arc::new(content)));
    }
    let first = Manifest::decode(&first)?;
    let mut extents = Vec::with_capacity(first.places.len());
    let mut start = 0;
    let mut add = |places: Vec<ExtentPlace>| -> Result<(), EngineError> {
        for place in places {
            let segment = inner.segments.get(place.segment);
            let segment = segment.ok_or_else(|| {
                EngineError::Corrupt(format!(
                    "content {} lies in segment {:x}, which is not there",
                    id.0, place.segment
                ))
            })?;
            let length = u64::from(place.length);
            extents.push(OpenExtent { start, segment, place });
            start += length;
        }
        Ok(())
    };
    add(first.places)?;
    for row in 1..first.rows {
        add(Manifest::decode(&get(content_key(id, row).as_bytes())?.ok_or_else(missing)?)?.places)?;
    }
    if start != first.length {
        return Err(EngineError::Corrupt(format!("content {} has {start} of its {} bytes", id.0, first.length)).into());
    }
    let is_small = extents.len() == 1 && SmallContents::takes(first.length);
    let small = is_small.then(|| (id, Arc::clone(&inner.small_contents)));
    Ok(Content::new(Arc::new(OpenContent { length: first.length, extents: Arc::new(extents), small })))
}

#[derive(Debug)]
struct OpenContent {
    length: u64,
    extents: Arc<Vec<OpenExtent>>,
    /// Where its bytes are kept once they were read, if it is small.
    small: Option<(ContentId, Arc<SmallContents>)>,
}

#[derive(Debug)]
struct OpenExtent {
    /// Where in the content it begins.
    start: u64,
    segment: Arc<Segment>,
    place: ExtentPlace,
}

impl OpenContent {
    fn extent_at(&self, offset: u64) -> Option<usize> {
        if offset >= self.length {
            return None;
        }
        Some(self.extents.partition_point(|extent| extent.start <= offset) - 1)
    }

    /// These bytes were read: the next reader finds them in memory, if they are all.
    fn was_read(&self, bytes: &Bytes) {
        if let Some((id, contents)) = &self.small
            && bytes.len() as u64 == self.length
        {
            contents.read(*id, bytes);
        }
    }
}

impl ContentReader for OpenContent {
    fn length(&self) -> u64 {
        self.length
    }

    fn read(&self, offset: u64, most: usize) -> BoxFuture<'_, Result<Bytes, EngineError>> {
        let Some(index) = self.extent_at(offset) else { return Box::pin(async { Ok(Bytes::new()) }) };
        let extents = Arc::clone(&self.extents);
        Box::pin(async move {
            let read = move || extents[index].read(offset - extents[index].start, most, false);
            let bytes = sync::blocking(read).await;
            let bytes = bytes.map_err(|error| EngineError::Unavailable(error.to_string()))??.unwrap_or_default();
            self.was_read(&bytes);
            Ok(bytes)
        })
    }

    fn read_now(&self, offset: u64, most: usize) -> Option<Result<Bytes, EngineError>> {
        let Some(index) = self.extent_at(offset) else { return Some(Ok(Bytes::new())) };
        let extent = &self.extents[index];
        let bytes = extent.read(offset - extent.start, most, true).transpose()?;
        if let Ok(bytes) = &bytes {
            self.was_read(bytes);
        }
        Some(bytes)
    }
}

impl OpenExtent {
    /// Whole chunks are read and checked; what was asked for is cut out. `None`: not in memory, and `only_now`.
    fn read(&self, offset: u64, most: usize, only_now: bool) -> Result<Option<Bytes>, EngineError> {
        let chunk = CRC_CHUNK as u64;
        let length = u64::from(self.place.length);
        let end = offset.saturating_add(most as u64).min(length);
        let first = offset / chunk * chunk;
        let last = end.div_ceil(chunk).saturating_mul(chunk).min(length);
        let mut buffer = vec![0_u8; usize::try_from(last - first).unwrap_or(0)];
        let at = self.place.offset + first;
        if only_now {
            if !self.segment.file_if_open().is_some_and(|file| file.read_cached(&mut buffer, at)) {
                return Ok(None);
            }
        } else {
            let read = self.segment.file().and_then(|file| file.read_exact_at(&mut buffer, at));
            read.map_err(|error| unavailable(&format!("reading segment {:x}", self.segment.id), &error))?;
        }
        let sums = self.place.sums.get(usize::try_from(first / chunk).unwrap_or(usize::MAX)..).unwrap_or_default();
        let sound = buffer.chunks(CRC_CHUNK).zip(sums).filter(|(bytes, sum)| crc32c::crc32c(bytes) == **sum).count();
        if sound != buffer.len().div_ceil(CRC_CHUNK) {
            let place = format!("segment {:x} at {at}", self.segment.id);
            return Err(EngineError::Corrupt(format!("the bytes in {place} do not match their sum")));
        }
        let cut = usize::try_from(offset - first).unwrap_or(0)..usize::try_from(end - first).unwrap_or(0);
        Ok(Some(Bytes::from(buffer).slice(cut)))
    }
}

/// Reads one extent for the collector and for `check`.
pub fn read_place(inner: &Inner, place: &ExtentPlace) -> Result<Bytes, EngineError> {
    let segment = inner.segments.get(place.segment);
    let segment = segment.ok_or_else(|| EngineError::Corrupt(format!("segment {:x} is not there", place.segment)))?;
    let extent = OpenExtent { start: 0, segment, place: place.clone() };
    Ok(extent.read(0, place.length as usize, false)?.unwrap_or_default())
}
