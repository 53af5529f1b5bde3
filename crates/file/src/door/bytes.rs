//! Bytes of an open file: read, written, cut, cleared, locked.

use ::bytes::Bytes;
use concurrency::range_lock::{LockKind, LockRange, Transfer};
use content::map::{ByteSpan, Crowded, Gathered, compact};
use content::pieces;
use engine::{Engine, EngineError, Staged};

use super::decide::{ended, refuse};
use super::{Lock, OpenFile, Refused, TRANSFER_BYTES_MAX, access};
use crate::announcement::Effect;
use crate::change::write::{self, PreparedWrite, RangeChange, WrittenBy};
use crate::model::refuse as halt;
use crate::opens::events::Aspects;
use crate::request::FILE_BYTES_MAX;

/// The largest offset that SMB knows.
const OFFSET_MAX: u64 = i64::MAX as u64;
/// How often a write rewrites a group of the map before it goes ahead.
const REWRITES_MAX: usize = 4;
/// Ranges that one request for allocated ranges is answered.
const RANGES_MAX: usize = 10_000;

const READS: u32 = access::FILE_READ_DATA | access::FILE_EXECUTE;
const WRITES: u32 = access::FILE_WRITE_DATA | access::FILE_APPEND_DATA;

/// Bytes of a file.
impl OpenFile {
    /// Reads up to `length` bytes, at most [`super::TRANSFER_BYTES_MAX`]; fewer where the file ends. Nothing at all is
    /// [`Refused::EndOfFile`], unless `length` is 0. Needs FILE_READ_DATA or FILE_EXECUTE.
    pub async fn read(&self, offset: u64, length: u32) -> Result<Bytes, Refused> {
        self.need_file()?;
        self.need(READS)?;
        let wanted = transfer(offset, length as usize)?;
        self.handle.check_io(offset, u64::from(length), Transfer::Read)?;
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
        let change = self.range_change(span);
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

    /// Makes bytes zeros, up to the end of the file at most (FSCTL_SET_ZERO_DATA). `end` is behind the last. Needs FILE_WRITE_DATA.
    pub async fn set_zero_data(&self, start: u64, end: u64) -> Result<(), Refused> {
        self.need_file()?;
        self.need(access::FILE_WRITE_DATA)?;
        if start > end || end > OFFSET_MAX {
            return Err(Refused::InvalidParameter);
        }
        let begun = self.begin_change(Some(ByteSpan { start, end })).await?;
        self.break_readers()?;
        let change = self.range_change(ByteSpan { start, end });
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

    /// The written ranges in a part of the file, as offsets and lengths, at most `most` of them (FSCTL_QUERY_ALLOCATED_RANGES). The
    /// second value: there are more. Needs FILE_READ_DATA.
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
        let look = self.look(move |spot, rows, _| {
            let state = spot.existing().and_then(|node| node.as_read_file()).map_err(|error| ended(halt(error)))?;
            let end = wanted.end.min(state.length);
            if wanted.start >= end {
                return Ok((Vec::new(), false));
            }
            let (ranges, next) = state.view.ranges(rows, ByteSpan { start: wanted.start, end }, most)?;
            let clipped = ranges.into_iter().map(|range| {
                let (from, to) = (range.start.max(wanted.start), range.end.min(end));
                (from, to.saturating_sub(from))
            });
            Ok((clipped.collect(), next.is_some()))
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

    fn range_change(&self, span: ByteSpan) -> RangeChange {
        let (moves_last_write, moves_change) = self.moved_times();
        let only_appends = self.access() & access::FILE_WRITE_DATA == 0;
        let by = WrittenBy::Handle { moves_change, only_appends };
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
        self.need_lockable()?;
        let ranges: Result<Vec<(LockRange, LockKind)>, Refused> = locks.iter().map(range_of).collect();
        Ok(self.handle.lock_now(&ranges?).await?)
    }

    /// Takes a lock and waits while another one overlaps it. Dropping the future withdraws it. Closing the handle ends it with
    /// [`Refused::FileClosed`].
    pub async fn lock_waiting(&self, lock: Lock) -> Result<(), Refused> {
        self.need_lockable()?;
        let (range, kind) = range_of(&lock)?;
        Ok(self.handle.lock(range, kind).await?)
    }

    /// Gives up locks, given by offset and length, one after the other. The first that is not held ends it; those before it are
    /// given up.
    pub fn unlock(&self, ranges: &[(u64, u64)]) -> Result<(), Refused> {
        self.need_file()?;
        for (offset, length) in ranges {
            self.handle.unlock(LockRange::new(*offset, *length)?)?;
        }
        Ok(())
    }

    fn need_lockable(&self) -> Result<(), Refused> {
        self.need_file()?;
        self.need(READS | WRITES)
    }
}

fn range_of(lock: &Lock) -> Result<(LockRange, LockKind), Refused> {
    Ok((LockRange::new(lock.offset, lock.length)?, lock.kind))
}

/// The bytes that a read or write moves.
fn transfer(start: u64, length: usize) -> Result<ByteSpan, Refused> {
    if length > TRANSFER_BYTES_MAX { Err(Refused::InvalidParameter) } else { span(start, length as u64) }
}

fn span(start: u64, length: u64) -> Result<ByteSpan, Refused> {
    match start.checked_add(length) {
        Some(end) if end <= OFFSET_MAX => Ok(ByteSpan { start, end }),
        Some(_) | None => Err(Refused::InvalidParameter),
    }
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
