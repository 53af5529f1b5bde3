//! Contents on their way in and out.
//!
//! Up to [`INLINE_MAX`] bytes travel with their commit into the database. Larger ones go to the byte store in extents,
//! each an object of its own, while the body arrives; all of them are durable before `finish` returns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use bytes::{Bytes, BytesMut};
use engine::byte_store::ByteStore;
use engine::{BoxFuture, ContentId, ContentReader, ContentWriter, EngineError, INLINE_MAX, Part, Staged};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::task::JoinHandle;

use crate::node::{FreshId, Node, ReadHold};
use crate::pool::Pool;

/// The longest extent.
const EXTENT_BYTES: u64 = 8 << 20;
/// Sums are taken over this many bytes, so that a range checks only what it touches.
const SUM_BYTES: usize = 64 * 1024;
/// A reader that goes through a content asks for up to this much at a time.
const READ_AHEAD_BYTES: u64 = 4 << 20;
/// How much of bodies may be in memory on the way to the byte store.
const UPLOAD_MEMORY_KIB: usize = 512 * 1024;
/// Memory for a body is taken in steps of this...
const RESERVE_STEP_KIB: usize = 256;
/// ...and when less than this is left, extents of this length are sent off already.
const UPLOAD_MEMORY_SHORT_KIB: usize = UPLOAD_MEMORY_KIB / 4;
const SHORT_EXTENT_BYTES: u64 = 1 << 20;

/// The parts of the engine that readers and writers use.
#[derive(Clone, Debug)]
pub struct Source {
    pub pool: Arc<Pool>,
    pub node: Arc<Node>,
    pub store: Arc<dyn ByteStore>,
    pub runtime: Handle,
    pub memory: Arc<Semaphore>,
}

impl Source {
    pub fn new(pool: Arc<Pool>, node: Arc<Node>, store: Arc<dyn ByteStore>) -> Source {
        Source { pool, node, store, runtime: Handle::current(), memory: Arc::new(Semaphore::new(UPLOAD_MEMORY_KIB)) }
    }
}

/// One object of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    pub object: String,
    pub length: u64,
    /// CRC-32C of every [`SUM_BYTES`], as big-endian numbers.
    pub sums: Vec<u8>,
}

/// A content that is stored, or is about to be.
#[derive(Debug)]
pub struct StoredContent {
    pub length: u64,
    /// `None`: not loaded yet.
    pub whereabouts: Option<Whereabouts>,
}

#[derive(Clone, Debug)]
pub enum Whereabouts {
    Inline(Bytes),
    /// With where each begins.
    Extents(Arc<Vec<(u64, Extent)>>),
}

impl StoredContent {
    /// One that a commit is about to store.
    pub fn staged(staged: &Staged) -> Result<Arc<StoredContent>, EngineError> {
        let whereabouts = match staged.part() {
            Part::Inline(bytes) => Whereabouts::Inline(bytes.clone()),
            Part::Placed { .. } => Whereabouts::placed(placed(staged)?.extents.clone()),
        };
        Ok(Arc::new(StoredContent { length: staged.length(), whereabouts: Some(whereabouts) }))
    }
}

impl Whereabouts {
    pub fn placed(extents: Vec<Extent>) -> Whereabouts {
        let mut start = 0;
        let place = |extent: Extent| {
            let at = start;
            start += extent.length;
            (at, extent)
        };
        Whereabouts::Extents(Arc::new(extents.into_iter().map(place).collect()))
    }
}

/// An open content.
#[derive(Debug)]
pub struct Reader {
    source: Source,
    id: u64,
    found: OnceLock<Arc<StoredContent>>,
    loaded: OnceLock<Whereabouts>,
    /// Its length was asked for before it was known: the function must run again.
    asked_too_early: AtomicBool,
    ahead: Mutex<Ahead>,
    /// Keeps what this reads from being removed.
    _hold: Arc<ReadHold>,
}

/// Bytes that were read before they were asked for.
#[derive(Debug, Default)]
struct Ahead {
    at: u64,
    bytes: Bytes,
    /// How much the next read asks for; it grows while the reads follow each other.
    next: u64,
}

impl Reader {
    pub fn new(source: &Source, id: u64, found: Option<Arc<StoredContent>>, hold: Arc<ReadHold>) -> Reader {
        Reader {
            source: source.clone(),
            id,
            found: found.map_or_else(OnceLock::new, OnceLock::from),
            loaded: OnceLock::new(),
            asked_too_early: AtomicBool::new(false),
            ahead: Mutex::default(),
            _hold: hold,
        }
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    /// Gives the reader its content. `false`: the function asked for the length before, and must run again.
    pub fn fulfil(&self, found: Arc<StoredContent>) -> bool {
        let _ = self.found.set(found);
        !self.asked_too_early.load(Ordering::Acquire)
    }

    fn found(&self) -> Result<&Arc<StoredContent>, EngineError> {
        self.found.get().ok_or_else(|| EngineError::Unavailable("a content was read before it was there".into()))
    }

    fn whereabouts(&self) -> Option<&Whereabouts> {
        self.found.get().and_then(|found| found.whereabouts.as_ref()).or_else(|| self.loaded.get())
    }

    async fn load(&self) -> Result<Whereabouts, EngineError> {
        if let Some(whereabouts) = self.whereabouts() {
            return Ok(whereabouts.clone());
        }
        let (pool, id) = (Arc::clone(&self.source.pool), self.id);
        let loading = self.source.runtime.spawn(async move { crate::session::whereabouts(&pool, id).await });
        let loaded = joined(loading).await?;
        Ok(self.loaded.get_or_init(|| loaded).clone())
    }

    async fn read_extents(&self, extents: &[(u64, Extent)], offset: u64, most: usize) -> Result<Bytes, EngineError> {
        if let Some(bytes) = self.at_hand(offset, most) {
            return Ok(bytes);
        }
        let index = extents.partition_point(|(start, _)| *start <= offset) - 1;
        let (start, extent) = &extents[index];
        let wanted = {
            let mut ahead = self.ahead.lock().expect("nothing panics under this lock");
            let follows = offset > 0 && ahead.at + ahead.bytes.len() as u64 == offset;
            ahead.next = if follows { (ahead.next * 4).min(READ_AHEAD_BYTES) } else { most as u64 };
            ahead.next.max(most as u64)
        };
        // Whole chunks are read and checked; what was asked for is cut out.
        let chunk = SUM_BYTES as u64;
        let within = offset - start;
        let first = within / chunk * chunk;
        let last = (within + wanted).div_ceil(chunk).saturating_mul(chunk).min(extent.length);
        let (store, object) = (Arc::clone(&self.source.store), extent.object.clone());
        let reading = self.source.runtime.spawn(async move { store.get(&object, first..last).await });
        let bytes = joined(reading).await?;
        check(extent, first, &bytes)?;
        *self.ahead.lock().expect("nothing panics under this lock") = Ahead { at: start + first, bytes, next: wanted };
        self.at_hand(offset, most).ok_or_else(|| EngineError::Corrupt(format!("object {} is short", extent.object)))
    }

    fn at_hand(&self, offset: u64, most: usize) -> Option<Bytes> {
        let ahead = self.ahead.lock().expect("nothing panics under this lock");
        let skip = usize::try_from(offset.checked_sub(ahead.at)?).ok()?;
        if skip >= ahead.bytes.len() {
            return None;
        }
        Some(ahead.bytes.slice(skip..ahead.bytes.len().min(skip.saturating_add(most))))
    }
}

fn check(extent: &Extent, first: u64, bytes: &Bytes) -> Result<(), EngineError> {
    let sums = extent.sums.chunks_exact(4).skip(usize::try_from(first).unwrap_or(usize::MAX) / SUM_BYTES);
    let sound = bytes.chunks(SUM_BYTES).zip(sums).filter(|(part, sum)| crc32c::crc32c(part).to_be_bytes() == **sum);
    if sound.count() == bytes.len().div_ceil(SUM_BYTES) {
        return Ok(());
    }
    Err(EngineError::Corrupt(format!("the bytes of object {} do not match their sum", extent.object)))
}

fn cut(bytes: &Bytes, offset: u64, most: usize) -> Bytes {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    bytes.slice(start..start.saturating_add(most).min(bytes.len()))
}

impl ContentReader for Reader {
    fn length(&self) -> u64 {
        match self.found.get() {
            Some(found) => found.length,
            None => {
                self.asked_too_early.store(true, Ordering::Release);
                0
            }
        }
    }

    fn read(&self, offset: u64, most: usize) -> BoxFuture<'_, Result<Bytes, EngineError>> {
        Box::pin(async move {
            if offset >= self.found()?.length {
                return Ok(Bytes::new());
            }
            match self.load().await? {
                Whereabouts::Inline(bytes) => Ok(cut(&bytes, offset, most)),
                Whereabouts::Extents(extents) => self.read_extents(&extents, offset, most).await,
            }
        })
    }

    fn read_now(&self, offset: u64, most: usize) -> Option<Result<Bytes, EngineError>> {
        match self.whereabouts()? {
            Whereabouts::Inline(bytes) => Some(Ok(cut(bytes, offset, most))),
            Whereabouts::Extents(_) => self.at_hand(offset, most).map(Ok),
        }
    }
}

/// The result of a task that the engine spawned.
pub async fn joined<T>(task: JoinHandle<Result<T, EngineError>>) -> Result<T, EngineError> {
    task.await.unwrap_or_else(|error| Err(EngineError::Unavailable(error.to_string())))
}

/// Objects that were written and belong to no content yet. Dropping it removes them.
#[derive(Debug)]
pub struct UploadedObjects {
    pub extents: Vec<Extent>,
    pub epoch: i64,
    source: Source,
    /// A commit has stored them, or may have.
    kept: AtomicBool,
}

impl UploadedObjects {
    /// They belong to a content now, or may: this node must not remove them.
    pub fn keep(&self) {
        self.kept.store(true, Ordering::Release);
    }
}

impl Drop for UploadedObjects {
    fn drop(&mut self) {
        if self.kept.load(Ordering::Acquire) || self.extents.is_empty() {
            return;
        }
        let names = self.extents.iter().map(|extent| extent.object.clone()).collect();
        let store = Arc::clone(&self.source.store);
        // What is not removed here is removed when the run of this node has ended.
        self.source.runtime.spawn(async move {
            if let Err(error) = store.delete(names).await {
                tracing::debug!(%error, "objects of an unfinished upload stay for now");
            }
        });
    }
}

/// What a staged content of this engine holds in the byte store.
pub fn placed(staged: &Staged) -> Result<&UploadedObjects, EngineError> {
    let Part::Placed { hold, .. } = staged.part() else {
        return Err(EngineError::Corrupt("a content that is not in the byte store".into()));
    };
    let hold: &dyn std::any::Any = hold.as_ref();
    hold.downcast_ref::<UploadedObjects>().ok_or_else(|| EngineError::Corrupt("a content of another engine".into()))
}

/// A content on its way in.
pub struct Writer {
    source: Source,
    length: Option<u64>,
    received: u64,
    pieces: Vec<Bytes>,
    pieces_bytes: u64,
    written: u64,
    permit: Option<OwnedSemaphorePermit>,
    /// At most one extent is under way while the next is gathered.
    running: Option<JoinHandle<Result<Extent, EngineError>>>,
    placed: UploadedObjects,
    taken: FreshId,
}

impl Writer {
    pub fn new(source: Source, length: Option<u64>) -> Writer {
        let taken = source.node.take_id();
        let placed = UploadedObjects {
            extents: Vec::new(),
            epoch: taken.epoch,
            source: source.clone(),
            kept: AtomicBool::new(false),
        };
        Writer {
            source,
            length,
            received: 0,
            pieces: Vec::new(),
            pieces_bytes: 0,
            written: 0,
            permit: None,
            running: None,
            placed,
            taken,
        }
    }

    /// No other node has the id, nor will have: the database knows that it is taken.
    async fn confirm(&self) -> Result<(), EngineError> {
        let (node, taken) = (Arc::clone(&self.source.node), self.taken);
        let confirming = async move { node.confirm(taken).await.map_err(crate::trouble::Trouble::into_engine) };
        joined(self.source.runtime.spawn(confirming)).await
    }

    fn extent_bytes(&self) -> u64 {
        self.length.map_or(EXTENT_BYTES, |length| (length - self.written.min(length)).min(EXTENT_BYTES))
    }

    async fn gather(&mut self, mut bytes: Bytes) -> Result<(), EngineError> {
        while !bytes.is_empty() {
            let room = usize::try_from(self.extent_bytes() - self.pieces_bytes).unwrap_or(usize::MAX);
            let part = bytes.split_to(bytes.len().min(room).min(RESERVE_STEP_KIB * 1024));
            self.pieces_bytes += part.len() as u64;
            self.pieces.push(part);
            self.reserve().await?;
            let is_whole = self.pieces_bytes > 0 && self.pieces_bytes == self.extent_bytes();
            if is_whole && (self.written > 0 || self.pieces_bytes > INLINE_MAX as u64) {
                self.send().await?;
            }
        }
        Ok(())
    }

    /// Memory for what was gathered, taken as it arrives: a slow upload holds no more than it has sent. When memory is short,
    /// what was gathered is sent off as a shorter extent, so that no upload holds a part of the memory while all wait for the rest.
    async fn reserve(&mut self) -> Result<(), EngineError> {
        if self.written == 0 && self.pieces_bytes <= INLINE_MAX as u64 {
            return Ok(());
        }
        let is_enough = match self.source.memory.available_permits() {
            left if left < RESERVE_STEP_KIB => true,
            left if left < UPLOAD_MEMORY_SHORT_KIB => self.pieces_bytes >= SHORT_EXTENT_BYTES,
            _ => false,
        };
        if is_enough && self.permit.is_some() {
            return self.send().await;
        }
        let held = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = usize::try_from(self.pieces_bytes.div_ceil(1024)).unwrap_or(usize::MAX);
        let Some(missing) = wanted.checked_sub(held).filter(|missing| *missing > 0) else { return Ok(()) };
        let step = u32::try_from(missing.max(RESERVE_STEP_KIB)).unwrap_or(u32::MAX);
        let memory = Arc::clone(&self.source.memory);
        let more = match memory.clone().try_acquire_many_owned(step) {
            Ok(more) => more,
            // Nothing is held while waiting: what is there goes first.
            Err(TryAcquireError::NoPermits) if held > 0 => return self.send().await,
            Err(_) => memory.acquire_many_owned(step).await.map_err(|_| EngineError::Closed)?,
        };
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        Ok(())
    }

    /// Sends off what was gathered as one extent, when the one before has arrived.
    async fn send(&mut self) -> Result<(), EngineError> {
        self.settle().await?;
        if !self.taken.has_a_run() {
            // No node would ever find and remove such an object.
            return Err(EngineError::Busy);
        }
        let content = self.taken.id;
        let number = self.placed.extents.len();
        // Random at the front, so that stores that spread objects by name spread them.
        let mut random = [0; 4];
        getrandom::fill(&mut random).map_err(|error| EngineError::Unavailable(error.to_string()))?;
        let object = format!("{:016x}/{:08x}-{content:016x}-{number}", self.placed.epoch, u32::from_be_bytes(random));
        let pieces = std::mem::take(&mut self.pieces);
        let length = std::mem::take(&mut self.pieces_bytes);
        let permit = self.permit.take();
        self.written += length;
        let store = Arc::clone(&self.source.store);
        self.running = Some(self.source.runtime.spawn(async move {
            let sums = sums(&pieces);
            store.put(&object, pieces).await?;
            drop(permit);
            Ok(Extent { object, length, sums })
        }));
        Ok(())
    }

    async fn settle(&mut self) -> Result<(), EngineError> {
        if let Some(running) = self.running.take() {
            self.placed.extents.push(joined(running).await?);
        }
        Ok(())
    }

    fn inline(&mut self) -> Bytes {
        match self.pieces.len() {
            1 => self.pieces.remove(0),
            _ => self.pieces.drain(..).flatten().collect::<BytesMut>().freeze(),
        }
    }
}

fn sums(pieces: &[Bytes]) -> Vec<u8> {
    let (mut sums, mut sum, mut filled) = (Vec::new(), 0, 0);
    for piece in pieces {
        let mut rest = piece.as_ref();
        while !rest.is_empty() {
            let (part, after) = rest.split_at(rest.len().min(SUM_BYTES - filled));
            sum = crc32c::crc32c_append(sum, part);
            filled += part.len();
            rest = after;
            if filled == SUM_BYTES {
                sums.extend_from_slice(&u32::to_be_bytes(sum));
                (sum, filled) = (0, 0);
            }
        }
    }
    if filled > 0 {
        sums.extend_from_slice(&u32::to_be_bytes(sum));
    }
    sums
}

impl ContentWriter for Writer {
    fn id(&self) -> ContentId {
        ContentId(self.taken.id)
    }

    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.received += bytes.len() as u64;
            if self.length.is_some_and(|length| self.received > length) {
                return Err(EngineError::Unavailable("more bytes than announced".into()));
            }
            self.gather(bytes).await
        })
    }

    fn finish(mut self: Box<Self>) -> BoxFuture<'static, Result<Staged, EngineError>> {
        Box::pin(async move {
            self.confirm().await?;
            let id = self.id();
            if self.received <= INLINE_MAX as u64 {
                let bytes = self.inline();
                return Ok(Staged::new(id, bytes.len() as u64, Part::Inline(bytes)));
            }
            if self.pieces_bytes > 0 {
                self.send().await?;
            }
            self.settle().await?;
            let source = self.source.clone();
            let empty = UploadedObjects { extents: Vec::new(), epoch: 0, source, kept: AtomicBool::new(true) };
            let placed = std::mem::replace(&mut self.placed, empty);
            let part = Part::Placed { rows: Arc::default(), hold: Arc::new(placed) };
            Ok(Staged::new(id, self.written, part))
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // An upload that is cut off: what is still under way is removed with the rest once it has arrived.
        let Some(running) = self.running.take() else { return };
        let store = Arc::clone(&self.source.store);
        self.source.runtime.spawn(async move {
            if let Ok(Ok(extent)) = running.await
                && let Err(error) = store.delete(vec![extent.object]).await
            {
                tracing::debug!(%error, "an object of an unfinished upload stays for now");
            }
        });
    }
}
