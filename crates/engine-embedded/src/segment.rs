//! Segments: files of records that start on a 4 KiB page and name their own place.
//!
//! A log segment holds batches, a data segment holds extents of large contents. An acknowledged page is never written
//! again, so a torn write cannot take an acknowledged record with it. Everything is read back through a CRC32C.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::disk::{Disk, DiskFile, is_out_of_files};
use crate::folder::{Folder, OpenError, io_error};
use crate::segment_files::SegmentFiles;
use crate::sync::{self, AtomicBool, AtomicU64, Mutex, MutexGuard, RwLock};

pub const PAGE: u64 = 4096;
/// One CRC32C covers this much of a content, so that a range read checks only what it touches.
pub const CRC_CHUNK: usize = 64 * 1024;

const SEGMENT_MAGIC: [u8; 8] = *b"LAZSEG\x00\x01";
const EXTENT_MAGIC: u32 = 0x3154_5845;
pub const EXTENT_HEADER: u64 = 64;
const SEGMENT_HEADER: usize = 64;
/// How much is read, or filled with zeroes, at a time.
const PIECE: usize = 1 << 20;

/// What a segment was made for. Both kinds serve contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentKind {
    Log,
    Data,
}

/// A segment file, open while it is written to or was used not long ago. A reader that holds the segment can read it,
/// also after the file has been unlinked.
#[derive(Debug)]
pub struct Segment {
    pub id: u64,
    pub kind: SegmentKind,
    path: PathBuf,
    /// `None`: it was closed, because other files were needed. Segments that are written to keep theirs open.
    file: Mutex<Option<Arc<dyn DiskFile>>>,
    /// The file was used since it was last looked at for closing.
    was_used: AtomicBool,
    /// The file has no name any more, so it could not be opened again.
    is_unlinked: AtomicBool,
    disk: Arc<dyn Disk>,
    uuid: [u8; 16],
    files: Arc<SegmentFiles>,
    /// Staged contents that no commit has stored yet: such a segment is not collected.
    staged: AtomicU64,
    /// Still being written to by this run, or needed to replay what the tree's files do not hold yet.
    active: AtomicBool,
    sync: SyncGroup,
}

/// The syncs that were asked for, and their results. A failure is remembered for good: the system reports it once, drops what
/// it could not write, and calls the next sync a success.
#[derive(Debug, Default)]
struct SyncGroup {
    /// A task that waits here holds no thread.
    turn: tokio::sync::Mutex<()>,
    /// Held while the system syncs.
    syncing: Mutex<()>,
    requested: AtomicU64,
    completed: AtomicU64,
    failed: AtomicBool,
}

/// What stands under a segment's name.
#[derive(Debug)]
pub enum SegmentFile {
    Whole(Arc<Segment>),
    /// The start was killed while it made the file, so nothing was ever put in it.
    Unborn,
}

impl Segment {
    /// Makes a new file with its header on disk; `zeroed` bytes are allocated and written ahead.
    pub fn create(folder: &Folder, id: u64, kind: SegmentKind, zeroed: u64) -> io::Result<Segment> {
        let path = segment_path(&folder.segments(), id);
        let file = folder.disk().create(&path)?;
        let segment = Segment::over(folder, id, kind, path, Some(file));
        let made = segment.prepare(&folder.uuid, zeroed).and_then(|()| folder.disk().sync_folder(&folder.segments()));
        if let Err(error) = made {
            let _ = folder.disk().remove_file(&segment.path);
            return Err(error);
        }
        Ok(segment)
    }

    fn over(folder: &Folder, id: u64, kind: SegmentKind, path: PathBuf, file: Option<Box<dyn DiskFile>>) -> Segment {
        let files = Arc::clone(folder.segment_files());
        if file.is_some() {
            files.opened();
        }
        Segment {
            id,
            kind,
            path,
            file: Mutex::new(file.map(Arc::from)),
            was_used: AtomicBool::new(true),
            is_unlinked: AtomicBool::new(false),
            disk: Arc::clone(folder.disk()),
            uuid: folder.uuid,
            files,
            staged: AtomicU64::new(0),
            active: AtomicBool::new(true),
            sync: SyncGroup::default(),
        }
    }

    /// Written-out zeroes make later syncs cheap: no block is allocated and no length changes under them.
    fn prepare(&self, uuid: &[u8; 16], zeroed: u64) -> io::Result<()> {
        self.write_at(&encode_header(self.id, self.kind, uuid), 0)?;
        self.extend(PAGE, zeroed)?;
        self.file()?.sync_all()
    }

    /// Writes zeroes, so that there is room for what comes.
    pub fn extend(&self, from: u64, to: u64) -> io::Result<()> {
        let (file, zeroes) = (self.file()?, vec![0_u8; PIECE]);
        let mut at = from;
        while at < to {
            let length = zeroes.len().min(usize::try_from(to - at).unwrap_or(zeroes.len()));
            file.write_all_at(&zeroes[..length], at)?;
            at += length as u64;
        }
        Ok(())
    }

    /// Finds a segment of an earlier run. It will never be appended to; its file is opened when it is used.
    ///
    /// A segment's header is durable before anything else is written to it. So a file that is shorter than a header, or
    /// holds nothing but zeroes, was never used. Any other file without a sound header is damaged.
    pub fn open(folder: &Folder, id: u64) -> Result<SegmentFile, OpenError> {
        let path = segment_path(&folder.segments(), id);
        let cannot = |what: &str| io_error(format!("cannot {what} {}", path.display()));
        let file = folder.disk().open(&path).map_err(cannot("open"))?;
        let mut header = [0_u8; SEGMENT_HEADER];
        match file.read_exact_at(&mut header, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(SegmentFile::Unborn),
            read => read.map_err(cannot("read"))?,
        }
        let Some(kind) = decode_header(&header, id, &folder.uuid) else {
            if is_zero(&*file).map_err(cannot("read"))? {
                return Ok(SegmentFile::Unborn);
            }
            let at = first_difference(&header, id, &folder.uuid);
            let place = format!("{} byte {at}", path.display());
            return Err(OpenError::Damaged { place, why: "the header of a segment is damaged or not ours".into() });
        };
        let segment = Segment::over(folder, id, kind, path.clone(), None);
        segment.active.store(false, Ordering::Release);
        Ok(SegmentFile::Whole(Arc::new(segment)))
    }

    pub fn len(&self) -> io::Result<u64> {
        self.file()?.length()
    }

    /// The file, opened again if it was closed.
    pub fn file(&self) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.file_if_open() {
            return Ok(file);
        }
        let file = match self.open_again() {
            // There may be none left because of other segments.
            Err(error) if is_out_of_files(&error) && self.files.close_some(1) > 0 => self.open_again(),
            opened => opened,
        }?;
        let mut slot = self.slot();
        if let Some(open) = &*slot {
            return Ok(Arc::clone(open));
        }
        *slot = Some(Arc::clone(&file));
        drop(slot);
        // No lock is held: this may close the files of others.
        self.files.opened();
        Ok(file)
    }

    /// The file, if it is open.
    pub fn file_if_open(&self) -> Option<Arc<dyn DiskFile>> {
        self.was_used.store(true, Ordering::Release);
        self.slot().clone()
    }

    /// It was this segment's file when it was closed. It must be so still, whatever was done to the folder meanwhile.
    fn open_again(&self) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.open(&self.path)?;
        let mut header = [0_u8; SEGMENT_HEADER];
        file.read_exact_at(&mut header, 0)?;
        if decode_header(&header, self.id, &self.uuid) != Some(self.kind) {
            let why = format!("{} is not the segment any more that it was", self.path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(Arc::from(file))
    }

    /// Closes the file if the segment is not written to and was not used since the last call. Returns whether it did.
    pub fn close_if_idle(&self) -> bool {
        if self.was_used.swap(false, Ordering::AcqRel) || !self.is_collectable() {
            return false;
        }
        let mut slot = self.slot();
        // Looked at under the lock, because unlinking takes it, too.
        if self.is_unlinked.load(Ordering::Acquire) || !self.is_collectable() || slot.take().is_none() {
            return false;
        }
        self.files.closed();
        true
    }

    /// Removes the file. Readers that hold the segment can still read it, so the file stays open as long as they hold it.
    pub fn unlink(&self) -> io::Result<()> {
        {
            let _slot = self.slot();
            self.is_unlinked.store(true, Ordering::Release);
        }
        match self.file() {
            Err(error) if is_out_of_files(&error) => Err(error),
            // A file that cannot be opened for another reason cannot be read either: it is removed.
            Ok(_) | Err(_) => self.disk.remove_file(&self.path),
        }
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<dyn DiskFile>>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file()?.write_all_at(bytes, offset)
    }

    /// Syncs the file. Every sync of a segment that is in use goes through here, and one sync serves all calls
    /// made before it began.
    pub fn sync(&self) -> io::Result<()> {
        let mine = self.sync.requested.fetch_add(1, Ordering::AcqRel) + 1;
        self.sync_as(mine, false)
    }

    /// Syncs once for all tasks that wait. A task that stops waiting does not stop the sync: the thread that syncs notes the
    /// result.
    pub async fn sync_shared(self: &Arc<Self>) -> io::Result<()> {
        let mine = self.sync.requested.fetch_add(1, Ordering::AcqRel) + 1;
        let _turn = self.sync.turn.lock().await;
        if !self.has_failed() && self.sync.completed.load(Ordering::Acquire) >= mine {
            return Ok(());
        }
        let segment = Arc::clone(self);
        sync::blocking(move || segment.sync_as(mine, false)).await.map_err(io::Error::other)?
    }

    /// `whole`: its length too, whatever was synced before.
    fn sync_as(&self, mine: u64, whole: bool) -> io::Result<()> {
        let _syncing = self.sync.syncing.lock().expect("nothing panics under this lock");
        if self.has_failed() {
            return Err(io::Error::other("an earlier sync of this segment failed"));
        }
        if !whole && self.sync.completed.load(Ordering::Acquire) >= mine {
            return Ok(());
        }
        let file = self.file()?;
        let upto = self.sync.requested.load(Ordering::Acquire);
        let synced = if whole { file.sync_all() } else { file.sync_data() };
        match &synced {
            Ok(()) => self.sync.completed.store(upto, Ordering::Release),
            Err(error) => {
                self.sync.failed.store(true, Ordering::Release);
                if self.kind == SegmentKind::Data {
                    self.seal();
                }
                tracing::error!(segment = self.id, %error, "a sync failed; this segment takes no more");
            }
        }
        synced
    }

    /// Writes a part again, as it reads now. What a failed sync has dropped may still be read from memory, and only what is
    /// written anew will be written out by the next sync.
    pub fn write_again(&self, from: u64, to: u64) -> io::Result<()> {
        let (file, mut piece) = (self.file()?, vec![0_u8; PIECE]);
        let mut at = from;
        while at < to {
            let length = piece.len().min(usize::try_from(to - at).unwrap_or(piece.len()));
            file.read_exact_at(&mut piece[..length], at)?;
            file.write_all_at(&piece[..length], at)?;
            at += length as u64;
        }
        Ok(())
    }

    pub fn has_failed(&self) -> bool {
        self.sync.failed.load(Ordering::Acquire)
    }

    /// Keeps a segment of an earlier run from being collected until it is sealed: its rows may be nowhere else yet.
    pub fn keep(&self) {
        self.active.store(true, Ordering::Release);
    }

    pub fn seal(&self) {
        self.active.store(false, Ordering::Release);
    }

    /// Whether the collector may look at it: it is not written to, and no staged content is in it.
    pub fn is_collectable(&self) -> bool {
        !self.active.load(Ordering::Acquire) && self.staged.load(Ordering::Acquire) == 0
    }

    /// Gives back what stands behind `length`.
    pub fn cut(&self, length: u64) -> io::Result<()> {
        if self.len()? <= length {
            return Ok(());
        }
        self.file()?.set_len(length)?;
        let mine = self.sync.requested.fetch_add(1, Ordering::AcqRel) + 1;
        self.sync_as(mine, true)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if self.slot().is_some() {
            self.files.closed();
        }
    }
}

/// Keeps a segment while a staged content in it waits for its commit.
#[derive(Debug)]
pub struct SegmentHold(pub Arc<Segment>);

impl SegmentHold {
    pub fn new(segment: &Arc<Segment>) -> SegmentHold {
        segment.staged.fetch_add(1, Ordering::AcqRel);
        SegmentHold(Arc::clone(segment))
    }
}

impl Drop for SegmentHold {
    fn drop(&mut self) {
        self.0.staged.fetch_sub(1, Ordering::AcqRel);
    }
}

/// All segments that may hold a live content, by id.
#[derive(Debug, Default)]
pub struct Segments(RwLock<HashMap<u64, Arc<Segment>>>);

impl Segments {
    pub fn get(&self, id: u64) -> Option<Arc<Segment>> {
        self.0.read().expect("nothing panics under this lock").get(&id).cloned()
    }

    pub fn insert(&self, segment: Arc<Segment>) {
        segment.files.add(&segment);
        self.0.write().expect("nothing panics under this lock").insert(segment.id, segment);
    }

    pub fn remove(&self, id: u64) -> Option<Arc<Segment>> {
        self.0.write().expect("nothing panics under this lock").remove(&id)
    }

    /// The oldest first, so that a simulation finds them in the same order every time.
    pub fn all(&self) -> Vec<Arc<Segment>> {
        let mut all: Vec<Arc<Segment>> =
            self.0.read().expect("nothing panics under this lock").values().cloned().collect();
        all.sort_by_key(|segment| segment.id);
        all
    }
}

pub fn segment_path(folder: &Path, id: u64) -> PathBuf {
    folder.join(format!("{id:016x}.seg"))
}

/// The ids of the segment files in a folder, in order.
pub fn list_segments(folder: &Folder) -> io::Result<Vec<u64>> {
    let names = folder.disk().list(&folder.segments())?;
    let ids = names.iter().filter_map(|name| u64::from_str_radix(name.strip_suffix(".seg")?, 16).ok());
    let mut ids: Vec<u64> = ids.collect();
    ids.sort_unstable();
    Ok(ids)
}

fn encode_header(id: u64, kind: SegmentKind, uuid: &[u8; 16]) -> Vec<u8> {
    let mut page = vec![0_u8; SEGMENT_HEADER];
    page[..8].copy_from_slice(&SEGMENT_MAGIC);
    page[8] = if kind == SegmentKind::Log { 1 } else { 2 };
    page[16..24].copy_from_slice(&id.to_le_bytes());
    page[24..40].copy_from_slice(uuid);
    let crc = crc32c::crc32c(&page[..40]);
    page[40..44].copy_from_slice(&crc.to_le_bytes());
    page
}

fn decode_header(header: &[u8; SEGMENT_HEADER], id: u64, uuid: &[u8; 16]) -> Option<SegmentKind> {
    let sound = header[..8] == SEGMENT_MAGIC
        && header[40..44] == crc32c::crc32c(&header[..40]).to_le_bytes()
        && header[16..24] == id.to_le_bytes()
        && header[24..40] == *uuid;
    if !sound {
        return None;
    }
    match header[8] {
        1 => Some(SegmentKind::Log),
        2 => Some(SegmentKind::Data),
        _ => None,
    }
}

/// Where a header differs from what it must be: the closer of the two kinds.
fn first_difference(header: &[u8; SEGMENT_HEADER], id: u64, uuid: &[u8; 16]) -> usize {
    let differs = |kind| {
        let right = encode_header(id, kind, uuid);
        header.iter().zip(&right).position(|(found, right)| found != right).unwrap_or(0)
    };
    differs(SegmentKind::Log).max(differs(SegmentKind::Data))
}

fn is_zero(file: &dyn DiskFile) -> io::Result<bool> {
    let mut piece = vec![0_u8; PIECE];
    let mut at = 0;
    loop {
        let read = file.read_at(&mut piece, at)?;
        if read == 0 {
            return Ok(true);
        }
        if piece[..read].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += read as u64;
    }
}

/// An extent's header names the row that holds its place: the content's id and the extent's number in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtentHeader {
    pub segment: u64,
    /// Of the header; the bytes follow it.
    pub offset: u64,
    pub content: u64,
    pub number: u32,
    pub length: u32,
}

impl ExtentHeader {
    pub fn encode(&self) -> [u8; EXTENT_HEADER as usize] {
        let mut out = [0_u8; EXTENT_HEADER as usize];
        out[0..4].copy_from_slice(&EXTENT_MAGIC.to_le_bytes());
        out[8..16].copy_from_slice(&self.segment.to_le_bytes());
        out[16..24].copy_from_slice(&self.offset.to_le_bytes());
        out[24..32].copy_from_slice(&self.content.to_le_bytes());
        out[32..36].copy_from_slice(&self.number.to_le_bytes());
        out[36..40].copy_from_slice(&self.length.to_le_bytes());
        let crc = crc32c::crc32c(&out[..40]);
        out[40..44].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// The header at `offset` of `segment`, if one stands there.
    pub fn decode(bytes: &[u8], segment: u64, offset: u64) -> Option<ExtentHeader> {
        let bytes = bytes.get(..EXTENT_HEADER as usize)?;
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let header = ExtentHeader {
            segment: u64_at(8),
            offset: u64_at(16),
            content: u64_at(24),
            number: u32_at(32),
            length: u32_at(36),
        };
        let sound = u32_at(0) == EXTENT_MAGIC
            && u32_at(40) == crc32c::crc32c(&bytes[..40])
            && header.segment == segment
            && header.offset == offset;
        sound.then_some(header)
    }
}

/// `offset` rounded up to the next page.
pub fn page_up(offset: u64) -> u64 {
    offset.div_ceil(PAGE) * PAGE
}
