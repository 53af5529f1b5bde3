//! Copies from one open file to another inside of the server (FSCTL_SRV_COPYCHUNK, FSCTL_DUPLICATE_EXTENTS_TO_FILE).
//!
//! Within a share the map of the target refers to the contents of the source: no bytes move. Bytes are read and written where that does
//! not pay, for small and for scattered ranges, and between shares. Every step is one commit, as a write is.

use content::map::{ByteSpan, GATHERED_BYTES_MAX};
use content::source::Extent;
use engine::{Changes, EngineError};

use super::bytes::{READS, WRITES, span};
use super::decide::{ended, refuse};
use super::{FileInfo, OpenFile, Refused, access, attributes};
use crate::announcement::Effect;
use crate::change::write::Place;
use crate::model::refuse as halt;
use crate::opens::events::Aspects;
use crate::request::FILE_BYTES_MAX;

/// The most bytes that one commit of a copy refers to: 17 groups of the map at most.
pub const COPY_STEP_BYTES_MAX: u64 = 16 << 20;
/// The most bytes that one FSCTL_DUPLICATE_EXTENTS_TO_FILE copies. From the documentation of block cloning.
pub const DUPLICATED_BYTES_MAX: u64 = 4 << 30;
/// The most bytes that a copy holds in memory, and that it appends at once.
const READ_BYTES_MAX: u64 = 1 << 20;
/// How many parts of copies, of [`READ_BYTES_MAX`] each, are in memory at once.
pub(crate) const PARTS_IN_MEMORY_MAX: usize = 64;
/// A shorter range is written as bytes, so that small neighbours are gathered.
const SHARED_BYTES_MIN: u64 = GATHERED_BYTES_MAX;
/// Contents are referred to if a run of them has so many bytes on the average. Otherwise the copy puts them together again.
const SHARED_RUN_BYTES_MIN: u64 = 16 << 10;
/// How often a step looks again where the target ends, because others have changed that.
const LOOKS_MAX: usize = 16;

/// A range that is copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    pub from: u64,
    /// `None`: where the target ends. It has no more than 1 MiB then.
    pub to: Option<u64>,
    pub length: u64,
}

/// How far a copy has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Copied {
    pub chunks: usize,
    pub bytes: u64,
}

/// What the handle of the target needs beside the right to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyAccess {
    /// FSCTL_SRV_COPYCHUNK: also FILE_READ_DATA.
    ReadAndWrite,
    /// FSCTL_SRV_COPYCHUNK_WRITE.
    Write,
}

/// Where a step of a copy reads and writes. Both have the same length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Step {
    from: ByteSpan,
    to: ByteSpan,
    place: Place,
}

impl OpenFile {
    /// Copies ranges of `source`, one after the other, to this file, which becomes longer if they reach beyond its end. Also says how
    /// far it has come: what was copied before a refusal stays. A range that is not wholly in the source is [`Refused::BeyondEnd`].
    ///
    /// Needs FILE_READ_DATA or FILE_EXECUTE of the source, and FILE_WRITE_DATA or FILE_APPEND_DATA here. A range that overlaps its source is read
    /// whole before it is written.
    pub async fn copy_chunks(
        &self,
        source: &OpenFile,
        chunks: &[Chunk],
        needs: CopyAccess,
    ) -> (Copied, Result<(), Refused>) {
        let mut copied = Copied::default();
        let result = match self.check_copy(source, needs) {
            Ok(()) => self.copy_all(source, chunks, &mut copied).await,
            Err(refused) => Err(refused),
        };
        (copied, result)
    }

    fn check_copy(&self, source: &OpenFile, needs: CopyAccess) -> Result<(), Refused> {
        source.need_file()?;
        self.need_file()?;
        source.need(READS)?;
        self.need(WRITES)?;
        match needs {
            CopyAccess::ReadAndWrite => self.need(access::FILE_READ_DATA),
            CopyAccess::Write => Ok(()),
        }
    }

    async fn copy_all(&self, source: &OpenFile, chunks: &[Chunk], copied: &mut Copied) -> Result<(), Refused> {
        let mut rest = chunks;
        while !rest.is_empty() {
            let (run, behind) = rest.split_at(following(rest));
            rest = behind;
            // All of a run at once, if that can be. Whatever stands against that stands against one of its chunks.
            if let Some(step) = self.merged(source, run) {
                let length = step.from.length();
                match self.share(source, step).await {
                    Ok(true) => {
                        *copied = Copied { chunks: copied.chunks + run.len(), bytes: copied.bytes + length };
                        continue;
                    }
                    // It may be done all the same.
                    Err(Refused::Failed(error)) => return Err(Refused::Failed(error)),
                    Ok(false) | Err(_) => {}
                }
            }
            for chunk in run {
                self.copy_chunk(source, *chunk).await?;
                *copied = Copied { chunks: copied.chunks + 1, bytes: copied.bytes + chunk.length };
            }
        }
        Ok(())
    }

    /// Chunks that follow each other as one step, if there are several and one after the other gives the same: within one file the
    /// later ones must not read what the earlier ones have written.
    fn merged(&self, source: &OpenFile, run: &[Chunk]) -> Option<Step> {
        let [first, _, ..] = run else { return None };
        let length = run.iter().map(|chunk| chunk.length).sum();
        let (from, to) = (span(first.from, length).ok()?, span(first.to?, length).ok()?);
        let is_alike = !self.is_overlapping(source, from, to);
        is_alike.then_some(Step { from, to, place: Place::Anywhere })
    }

    async fn copy_chunk(&self, source: &OpenFile, Chunk { from, to, length }: Chunk) -> Result<(), Refused> {
        let from = span(from, length)?;
        if let Some(to) = to {
            return self.copy(source, Step { from, to: span(to, length)?, place: Place::Anywhere }).await;
        }
        if length > READ_BYTES_MAX {
            return Err(Refused::InvalidParameter);
        }
        for _ in 0..LOOKS_MAX {
            let to = span(self.query().await?.length, length)?;
            match self.copy(source, Step { from, to, place: Place::AtEnd }).await {
                // Others have written there or cut the file.
                Err(Refused::TryAgain) => {}
                done => return done,
            }
        }
        Err(Refused::TryAgain)
    }

    async fn copy(&self, source: &OpenFile, step: Step) -> Result<(), Refused> {
        if self.share(source, step).await? {
            return Ok(());
        }
        self.copy_bytes(source, step).await
    }

    /// Has the map of this file refer to what the source holds. `false`: that cannot be, or does not pay.
    async fn share(&self, source: &OpenFile, step: Step) -> Result<bool, Refused> {
        let Step { from, to, place } = step;
        let length = from.length();
        let is_share_same = source.tree.generation == self.tree.generation;
        if !is_share_same || !(SHARED_BYTES_MIN..=COPY_STEP_BYTES_MAX).contains(&length) {
            return Ok(false);
        }
        if to.end > FILE_BYTES_MAX {
            return Err(Refused::DiskFull);
        }
        source.check_read(from.start, length)?;
        let location = source.location()?;
        let begun = self.begin_change(Some(to)).await?;
        self.break_readers()?;
        let change = self.range_change(to, place);
        let shared = self.commit_change(begun, Effect::changed(Aspects::BYTES), move |spot, rows, tick, changes| {
            spot.share.announce_count(rows);
            let from_spot = location.find(rows, spot.share)?;
            let state =
                from_spot.existing().and_then(|node| node.as_read_file()).map_err(|error| ended(halt(error)))?;
            if from.end > state.length {
                return Err(refuse(Refused::BeyondEnd));
            }
            let most = usize::try_from(length / SHARED_RUN_BYTES_MIN).unwrap_or(usize::MAX);
            let Some(extents) = state.view.extents(rows, from, most)? else { return Ok(false) };
            let moved: Vec<Extent> = extents.into_iter().map(|extent| moved(extent, step)).collect();
            let is_shared = change.share(spot, &moved, rows, tick, changes).map_err(ended)?;
            if !is_shared {
                *changes = Changes::none();
            }
            Ok(is_shared)
        });
        shared.await
    }

    /// Reads and writes, at most [`READ_BYTES_MAX`] at a time.
    async fn copy_bytes(&self, source: &OpenFile, step: Step) -> Result<(), Refused> {
        let (mut from, mut to) = (step.from, step.to);
        // Behind itself a range is copied in parts from its end on: what is written was read before.
        let is_backwards = source.is_same_file(self) && from.start < to.start;
        while from.start < from.end {
            let length = from.length().min(READ_BYTES_MAX);
            let (start, offset) = match is_backwards {
                true => (from.end - length, to.end - length),
                false => (from.start, to.start),
            };
            // Reads and writes wait for no client.
            let _part = self.tree.door.copying.acquire().await.map_err(|_| EngineError::Closed)?;
            // No more than READ_BYTES_MAX.
            let bytes = match source.read(start, length as u32).await {
                Ok(bytes) if bytes.len() as u64 == length => bytes,
                Ok(_) | Err(Refused::EndOfFile) => return Err(Refused::BeyondEnd),
                Err(refused) => return Err(refused),
            };
            self.write_in_place(offset, bytes, step.place).await?;
            match is_backwards {
                true => (from.end, to.end) = (start, offset),
                false => (from.start, to.start) = (start + length, offset + length),
            }
        }
        Ok(())
    }

    fn is_same_file(&self, other: &OpenFile) -> bool {
        self.file_id() == other.file_id() && !self.is_in_snapshot() && !other.is_in_snapshot()
    }

    /// Whether a copy writes to bytes that it reads.
    fn is_overlapping(&self, source: &OpenFile, from: ByteSpan, to: ByteSpan) -> bool {
        source.is_same_file(self) && from.start < to.end && to.start < from.end
    }

    /// Makes a range of this file, which stays as long as it is, the same as one of `source`, in the same share
    /// (FSCTL_DUPLICATE_EXTENTS_TO_FILE). The source may end with its last cluster; what lies behind the end of this file is left out. It
    /// is done in steps of [`COPY_STEP_BYTES_MAX`], one commit each; a refusal leaves those before it.
    ///
    /// Needs FILE_READ_DATA of the source and FILE_WRITE_DATA here. A sparse file is not duplicated into one that is not, and no range
    /// into one that overlaps it: [`Refused::NotSupported`].
    pub async fn duplicate_extents(&self, source: &OpenFile, from: u64, to: u64, length: u64) -> Result<(), Refused> {
        source.need_file()?;
        self.need_file()?;
        source.need(access::FILE_READ_DATA)?;
        self.need(access::FILE_WRITE_DATA)?;
        if source.tree.generation != self.tree.generation || length > DUPLICATED_BYTES_MAX {
            return Err(Refused::InvalidParameter);
        }
        self.handle()?;
        let (from, to) = (span(from, length)?, span(to, length)?);
        if length == 0 {
            return Ok(());
        }
        let (before, target) = (source.query().await?, self.query().await?);
        let would_lose_holes = is_sparse(&before) && !is_sparse(&target);
        if self.is_overlapping(source, from, to) || would_lose_holes || from.end > before.cluster_end() {
            return Err(Refused::NotSupported);
        }
        // The rest of the last cluster of the source is zeros.
        let there = before.length.saturating_sub(from.start).min(length);
        let mut wanted = target.length.saturating_sub(to.start).min(length);
        let (mut done, mut looks) = (0, 0);
        while done < there.min(wanted) {
            let length = COPY_STEP_BYTES_MAX.min(there.min(wanted) - done);
            let (from, target) = (span(from.start + done, length)?, span(to.start + done, length)?);
            match self.copy(source, Step { from, to: target, place: Place::WithinFile }).await {
                Ok(()) => done += length,
                // Others have cut this file: it does not grow again.
                Err(Refused::TryAgain) if looks < LOOKS_MAX => {
                    looks += 1;
                    wanted = wanted.min(self.query().await?.length.saturating_sub(to.start));
                }
                Err(refused) => return Err(refused),
            }
        }
        if done < wanted {
            self.set_zero_data(to.start + done, to.start + wanted).await?;
        }
        Ok(())
    }
}

fn is_sparse(info: &FileInfo) -> bool {
    info.attributes & attributes::SPARSE_FILE != 0
}

/// How many of the chunks go on where the one before ends, in both files, and are no more than one step.
fn following(chunks: &[Chunk]) -> usize {
    let mut length = chunks.first().map_or(0, |chunk| chunk.length);
    let pairs = chunks.windows(2).take_while(|pair| {
        length = length.saturating_add(pair[1].length);
        let goes_on = |start: u64, next: u64| start.checked_add(pair[0].length) == Some(next);
        let is_behind = pair[0].to.zip(pair[1].to).is_some_and(|(to, next)| goes_on(to, next));
        is_behind && goes_on(pair[0].from, pair[1].from) && length <= COPY_STEP_BYTES_MAX
    });
    1 + pairs.count()
}

/// Where an extent of the source is in the target.
fn moved(extent: Extent, Step { from, to, .. }: Step) -> Extent {
    let place = |at: u64| to.start + (at - from.start);
    Extent { span: ByteSpan { start: place(extent.span.start), end: place(extent.span.end) }, ..extent }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_follow_each_other() {
        const MIB: u64 = 1 << 20;
        let chunk = |from, to, length| Chunk { from, to: Some(to), length };
        let run: Vec<Chunk> = (0..20).map(|n| chunk(n * MIB, (n + 5) * MIB, MIB)).collect();
        assert_eq!((following(&run[..1]), following(&run[..3]), following(&run)), (1, 3, 16));
        assert_eq!(following(&[chunk(0, 0, 5), chunk(5, 6, 5)]), 1, "a gap in the target");
        assert_eq!(following(&[chunk(0, 0, 5), chunk(6, 5, 5)]), 1, "a gap in the source");
        assert_eq!(following(&[chunk(0, 0, 5), Chunk { to: None, ..chunk(5, 0, 5) }]), 1);
        assert_eq!(following(&[chunk(u64::MAX, u64::MAX, 5), chunk(4, 4, 5)]), 1);
    }
}
