//! Bytes of an open file: read, written, cut, cleared, locked.

use std::sync::Arc;

use ::bytes::Bytes;
use concurrency::range_lock::{LockKind, LockRange};
use content::map::{ByteSpan, Crowded, Gathered, compact};
use content::pieces;
use engine::{Engine, EngineError, Staged};

use super::decide::{ended, refuse};
use super::{Lock, OpenFile, Refused, TRANSFER_BYTES_MAX, access};
use crate::announcement::Effect;
use crate::change::write::{self, Place, PreparedWrite, RangeChange, WrittenBy};
use crate::model::{Attributes, refuse as halt};
use crate::opens::Handle;
use crate::opens::events::Aspects;
use crate::request::FILE_BYTES_MAX;

/// The largest offset that SMB knows.
const OFFSET_MAX: u64 = i64::MAX as u64;
/// How often a write rewrites a group of the map before it goes ahead.
const REWRITES_MAX: usize = 4;
/// Ranges that one request for allocated ranges is answered.
const RANGES_MAX: usize = 10_000;
/// Groups of the map, of 1 MiB each, that one read for allocated ranges looks at. Tests have few.
const GROUPS_PER_READ: usize = if cfg!(test) { 2 } else { 1_000 };
/// Groups of the map that one request for allocated ranges looks at.
const GROUPS_LISTED_MAX: usize = if cfg!(test) { 4 } else { 64_000 };

pub(super) const READS: u32 = access::FILE_READ_DATA | access::FILE_EXECUTE;
pub(super) const WRITES: u32 = access::FILE_WRITE_DATA | access::FILE_APPEND_DATA;

/// Bytes of a file.
impl OpenFile {
    /// Reads up to `length` bytes, at most [`super::TRANSFER_BYTES_MAX`]; fewer where the file ends. Nothing at all is
    /// [`Refused::EndOfFile`], unless `length` is 0. Needs FILE_READ_DATA or FILE_EXECUTE.
    pub async fn read(&self, offset: u64, length: u32) -> Result<Bytes, Refused> {
        self.need_file()?;
        self.need(READS)?;
        let wanted = transfer(offset, length as usize)?;
        self.check_read(offset, u64::from(length))?;
        let look = self.look(move |spot, rows, _| {
            let state = spot.existing().and_then(|node| node.as_read_file()).map_err(|error| ended(halt(error)))?;
            let end = wanted.end.min(state.length);
            if wanted.start >= end {
                let is_nothing = wanted.start == wanted.end;
                return if is_nothing { Ok(Default::default()) } else { Err(refuse(Refused::EndOfFile)) };
            }
            Ok(state.view.open(rows, wanted.start, end)?)
        });
        let (pieces, _) = look.await?;
        Ok(pieces::whole(pieces).await?)
    }

    /// Writes all of the bytes and makes the file longer if they reach beyond its end. Needs FILE_WRITE_DATA, or FILE_APPEND_DATA
    /// and no byte before the end. Ready when the write is durable.
    pub async fn write(&self, offset: u64, bytes: Bytes) -> Result<(), Refused> {
        self.write_in_place(offset, bytes, Place::Anywhere).await
    }

    /// The same, if the bytes lie where they must. If they do not any longer that is [`Refused::TryAgain`].
    pub(super) async fn write_in_place(&self, offset: u64, bytes: Bytes, place: Place) -> Result<(), Refused> {
        self.need_file()?;
        self.need(WRITES)?;
        let span = transfer(offset, bytes.len())?;
        if span.end > FILE_BYTES_MAX {
            return Err(Refused::DiskFull);
        }
        // It is under way before its bytes are stored: flush and close wait for it.
        let begun = self.begin_change(Some(span)).await?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.break_readers()?;
        let change = self.range_change(span, place);
        let gathered = self.prepare(change).await?;
        let staged = stage(&*self.tree.door.engine, [&gathered.before, &bytes, &gathered.after]).await?;
        let written = self.commit_change(begun, Effect::changed(Aspects::BYTES), move |spot, rows, tick, changes| {
            spot.share.announce_count(rows);
            change.write(spot, (&gathered, &staged), rows, tick, changes).map(drop).map_err(ended)
        });
        written.await
    }

    /// Everything that was written before is durable. Needs FILE_WRITE_DATA or FILE_APPEND_DATA on a file.
    pub async fn flush(&self) -> Result<(), Refused> {
        if !self.is_directory() {
            self.need(WRITES)?;
        }
        self.location()?;
        // Each write is durable when it has ended.
        self.settled().await;
        Ok(())
    }

    /// Gives the file another length (FileEndOfFileInformation). Needs FILE_WRITE_DATA.
    pub async fn set_end_of_file(&self, length: u64) -> Result<(), Refused> {
        self.resize(length, |_, asked| Some(asked)).await?;
        self.state().allocation = 0;
        Ok(())
    }

    /// FileAllocationInformation: a size below the length cuts the file, a larger one is only
    /// shown to this handle. Needs FILE_WRITE_DATA.
    pub async fn set_allocation(&self, size: u64) -> Result<(), Refused> {
        self.resize(size, |length, asked| Some(asked).filter(|asked| *asked < length)).await?;
        self.state().allocation = Some(size).filter(|size| *size <= FILE_BYTES_MAX).unwrap_or(0);
        Ok(())
    }

    /// `choose` says the new length by the one that there is and the one that is asked for.
    async fn resize(&self, asked: u64, choose: fn(u64, u64) -> Option<u64>) -> Result<(), Refused> {
        self.need_file()?;
        self.need(access::FILE_WRITE_DATA)?;
        if asked > OFFSET_MAX {
            return Err(Refused::InvalidParameter);
        }
        if choose(u64::MAX, asked).is_some() && choose(0, asked).is_some() && asked > FILE_BYTES_MAX {
            return Err(Refused::DiskFull);
        }
        let times = self.moved_times();
        let begun = self.begin_change(None).await?;
        self.break_readers()?;
        let changed = self.commit_change(begun, Effect::changed(Aspects::BYTES), move |spot, rows, tick, changes| {
            spot.share.announce_count(rows);
            let length = spot.existing().map_err(|error| ended(halt(error)))?.length();
            match choose(length, asked).filter(|chosen| *chosen != length) {
                Some(chosen) => {
                    write::resize_by_handle(spot, chosen, times, rows, tick, changes).map(drop).map_err(ended)
                }
                None => Ok(()),
            }
        });
        changed.await
    }

    /// FSCTL_SET_SPARSE: the attribute by which clients know that holes are worth asking for. Needs FILE_WRITE_DATA, FILE_APPEND_DATA or
    /// FILE_WRITE_ATTRIBUTES.
    pub async fn set_sparse(&self, is_sparse: bool) -> Result<(), Refused> {
        if self.is_directory() {
            return Err(Refused::InvalidParameter);
        }
        self.need(WRITES | access::FILE_WRITE_ATTRIBUTES)?;
        let (_, moves_change) = self.moved_times();
        let set = self.change(Effect::changed(Aspects::ATTRIBUTES), move |spot, rows, tick, changes| {
            write::set_sparse(spot, is_sparse, moves_change, rows, tick, changes).map_err(ended)
        });
        set.await
    }

    /// Makes bytes zeros, up to the end of the file at most (FSCTL_SET_ZERO_DATA). `end` is behind the last. Needs FILE_WRITE_DATA.
    pub async fn set_zero_data(&self, start: u64, end: u64) -> Result<(), Refused> {
        self.need_file()?;
        self.need(access::FILE_WRITE_DATA)?;
        if start > end || end > OFFSET_MAX {
            return Err(Refused::InvalidParameter);
        }
        let begun = self.begin_change(Some(ByteSpan { start, end })).await?;
        self.break_readers()?;
        let change = self.range_change(ByteSpan { start, end }, Place::Anywhere);
        let cleared = self.commit_change(begun, Effect::changed(Aspects::BYTES), move |spot, rows, tick, changes| {
            let length = spot.existing().map_err(|error| ended(halt(error)))?.length();
            let change = RangeChange { end: change.end.min(length), ..change };
            if change.start >= change.end {
                return Ok(());
            }
            change.clear(spot, rows, tick, changes).map(drop).map_err(ended)
        });
        cleared.await
    }

    /// The ranges of a part of the file that take space, as offsets and lengths, at most `most` of them (FSCTL_QUERY_ALLOCATED_RANGES):
    /// what is written of a sparse file, all of another one. The second value: there are more. Needs FILE_READ_DATA.
    ///
    /// One call looks at [`GROUPS_LISTED_MAX`] groups of the map, and at more only while it finds nothing.
    pub async fn allocated_ranges(
        &self,
        offset: u64,
        length: u64,
        most: usize,
    ) -> Result<(Vec<(u64, u64)>, bool), Refused> {
        self.need_file()?;
        self.need(access::FILE_READ_DATA)?;
        let wanted = span(offset, length)?;
        let most = most.clamp(1, RANGES_MAX);
        let (mut found, mut next): (Vec<ByteSpan>, _) = (Vec::new(), Some(wanted.start));
        let mut steps = 0;
        while let Some(start) = next.filter(|_| found.is_empty() || steps * GROUPS_PER_READ < GROUPS_LISTED_MAX) {
            // One more than there is room for may go on where the last one ends.
            let room = most - found.len() + usize::from(!found.is_empty());
            let (ranges, more) = self.written_ranges(ByteSpan { start, ..wanted }, room).await?;
            for range in ranges {
                let is_full = found.len() == most;
                match found.last_mut() {
                    Some(last) if last.end == range.start => last.end = range.end,
                    Some(_) if is_full => return Ok((lengths(&found), true)),
                    Some(_) | None => found.push(range),
                }
            }
            next = more;
            steps += 1;
        }
        Ok((lengths(&found), next.is_some()))
    }

    /// Some of the ranges that take space, and where to go on.
    async fn written_ranges(&self, wanted: ByteSpan, most: usize) -> Result<(Vec<ByteSpan>, Option<u64>), Refused> {
        let look = self.look(move |spot, rows, _| {
            let node = spot.existing().map_err(|error| ended(halt(error)))?;
            let state = node.as_read_file().map_err(|error| ended(halt(error)))?;
            let wanted = ByteSpan { end: wanted.end.min(state.length), ..wanted };
            if wanted.start >= wanted.end {
                return Ok((Vec::new(), None));
            }
            if !node.attributes.contains(Attributes::SPARSE) {
                return Ok((vec![wanted], None));
            }
            let (ranges, next) = state.view.some_ranges(rows, wanted, (most, GROUPS_PER_READ))?;
            let cut =
                |range: ByteSpan| ByteSpan { start: range.start.max(wanted.start), end: range.end.min(wanted.end) };
            Ok((ranges.into_iter().map(cut).collect(), next))
        });
        Ok(look.await?.0)
    }

    /// Whether the bytes may be written, and what is stored along with them. A group that has become too many runs is rewritten
    /// first.
    async fn prepare(&self, change: RangeChange) -> Result<Gathered, Refused> {
        let mut rewrites = 0;
        loop {
            let look = self.look(move |spot, rows, now| change.prepare(spot, rows, now).map_err(ended));
            let (PreparedWrite { gathering, crowded }, _) = look.await?;
            match crowded.filter(|_| rewrites < REWRITES_MAX) {
                Some(Crowded { map, group }) => compact(&*self.tree.door.engine, map, group).await?,
                None => return Ok(gathering.read().await?),
            }
            rewrites += 1;
        }
    }

    /// A handle without FILE_WRITE_DATA may only append, wherever else the change may lie.
    pub(super) fn range_change(&self, span: ByteSpan, place: Place) -> RangeChange {
        let (moves_last_write, moves_change) = self.moved_times();
        let only_appends = self.access() & access::FILE_WRITE_DATA == 0;
        let place = if only_appends && place == Place::Anywhere { Place::NotBeforeEnd } else { place };
        let by = WrittenBy::Handle { moves_change, place };
        RangeChange { start: span.start, end: span.end, lease: None, moves_last_write, by }
    }

    /// Whether changes through this handle move the last write time, and the change time.
    fn moved_times(&self) -> (bool, bool) {
        let state = self.state();
        (!state.is_write_time_frozen, !state.is_change_time_frozen)
    }
}

/// Locks of bytes.
impl OpenFile {
    /// Takes all of the locks or none, at once or not at all ([`Refused::LockNotGranted`]). Needs FILE_READ_DATA or FILE_WRITE_DATA.
    pub async fn lock(&self, locks: &[Lock]) -> Result<(), Refused> {
        let handle = self.lockable()?;
        let ranges: Result<Vec<(LockRange, LockKind)>, Refused> = locks.iter().map(range_of).collect();
        Ok(handle.lock_now(&ranges?).await?)
    }

    /// Takes a lock and waits while another one overlaps it. Dropping the future withdraws it. Closing the handle ends it with
    /// [`Refused::FileClosed`].
    pub async fn lock_waiting(&self, lock: Lock) -> Result<(), Refused> {
        let handle = self.lockable()?;
        let (range, kind) = range_of(&lock)?;
        Ok(handle.lock(range, kind).await?)
    }

    /// Gives up locks, given by offset and length, one after the other. The first that is not held ends it; those before it are
    /// given up.
    pub fn unlock(&self, ranges: &[(u64, u64)]) -> Result<(), Refused> {
        self.need_file()?;
        let handle = self.live().ok_or(Refused::NotSupported)?;
        for (offset, length) in ranges {
            handle.unlock(LockRange::new(*offset, *length)?)?;
        }
        Ok(())
    }

    /// The handle of a file whose bytes may be locked. Locks live in the table of opens, so there are none in share snapshots.
    fn lockable(&self) -> Result<&Handle, Refused> {
        self.need_file()?;
        self.need(READS | WRITES)?;
        self.live().map(Arc::as_ref).ok_or(Refused::NotSupported)
    }
}

fn range_of(lock: &Lock) -> Result<(LockRange, LockKind), Refused> {
    Ok((LockRange::new(lock.offset, lock.length)?, lock.kind))
}

/// The bytes that a read or write moves.
fn transfer(start: u64, length: usize) -> Result<ByteSpan, Refused> {
    if length > TRANSFER_BYTES_MAX { Err(Refused::InvalidParameter) } else { span(start, length as u64) }
}

pub(super) fn span(start: u64, length: u64) -> Result<ByteSpan, Refused> {
    match start.checked_add(length) {
        Some(end) if end <= OFFSET_MAX => Ok(ByteSpan { start, end }),
        Some(_) | None => Err(Refused::InvalidParameter),
    }
}

/// Offsets and lengths.
fn lengths(ranges: &[ByteSpan]) -> Vec<(u64, u64)> {
    ranges.iter().map(|range| (range.start, range.length())).collect()
}

/// Stores bytes as one content. Nothing is seen of it until a commit says so.
async fn stage(engine: &dyn Engine, parts: [&Bytes; 3]) -> Result<Staged, EngineError> {
    let length = parts.iter().map(|part| part.len() as u64).sum();
    let mut writer = engine.writer(Some(length));
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        writer.write(part.clone()).await?;
    }
    writer.finish().await
}
