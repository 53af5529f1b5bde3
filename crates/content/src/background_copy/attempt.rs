//! One attempt of a background copy: the bytes of its source, taken as they come or referred to where they are.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use concurrency::Timestamp;
use engine::{Changes, Commit, Engine, Rows, Staged, Stop, Tick, Unread, commit};
use service::unrefused;
use wire::http::{Body, header};

use super::{Destination, Done, Halted, Job, failed_at_source, halted};
use crate::copy_state::CopyStatus;
use crate::map::{ByteSpan, GROUP_BYTES, PAGE_BYTES, SHARED_GROUPS_MAX};
use crate::source::{Fetched, LocalPlace, SourceReader, enter_in_background};

/// One content holds at most so many bytes of a copy.
const CONTENT_BYTES_MAX: u64 = 1 << 30;
/// Pages are written so many bytes at a time.
pub const PAGES_BYTES: usize = 4 * 1024 * 1024;
/// So much must come while a source is waited for so long, or the attempt ends: a source that sends a byte now and then would
/// hold its place for as long as it likes.
const PACE_BYTES: u64 = 256 * 1024;
const PACE_SECONDS: u64 = 5 * 60;
/// Progress is told when this much more has come, or a quarter of what was there, if that is less.
const PROGRESS_BYTES: u64 = 4 * 1024 * 1024;
/// How many contents one step of a copy inside this server refers to.
const EXTENTS_PER_STEP_MAX: usize = 4_096;

/// One attempt of a copy.
#[derive(Debug)]
pub struct Attempt<'a, D> {
    engine: &'a dyn Engine,
    pub(super) job: Job,
    destination: PhantomData<fn() -> D>,
}

impl<'a, D: Destination> Attempt<'a, D> {
    pub fn new(engine: &'a dyn Engine, job: Job) -> Attempt<'a, D> {
        Attempt { engine, job, destination: PhantomData }
    }

    /// Takes the bytes of an answer. `is_again`: an earlier attempt may have written some.
    pub async fn run(&self, fetched: Fetched, is_again: bool) -> Result<(), Halted> {
        let (total, _, is_sparse) = self.look().await?;
        let etag = fetched.headers.get(header::ETAG).and_then(|etag| etag.to_str().ok());
        let is_other = self.job.etag.as_deref().zip(etag).is_some_and(|(before, now)| before != now);
        if is_other || fetched.body.length() != Some(total) {
            return Err(source_has_changed());
        }
        // Without an ETag nobody knows whether these are the bytes that the earlier attempt saw.
        let is_unsure = self.job.etag.is_none() || etag.is_none();
        let mut source = PacedBody { body: fetched.body, engine: self.engine, pace: Pace::default() };
        let pieces = match is_sparse {
            false => self.take(&mut source, total).await?,
            true => {
                if is_again && is_unsure {
                    self.clear().await?;
                }
                self.take_pages(&mut source, total).await?;
                Vec::new()
            }
        };
        self.finish(pieces, total).await
    }

    /// How many bytes there are in all, how many of them have come, and whether the resource is sparse.
    async fn look(&self) -> Result<(u64, u64, bool), Halted> {
        let job = self.job.clone();
        let found = engine::read::<_, Infallible, _>(self.engine, move |rows, _| {
            let Some(mut found) = job.waiting::<D>(rows)? else { return Ok(None) };
            let (total, done) = D::copy(&mut found).map_or((0, 0), |copy| (copy.total, copy.done));
            Ok(Some((total, done, D::is_sparse(&found))))
        });
        unrefused(found.await)?.ok_or(Halted::Unwanted)
    }

    /// Copies from a resource of this server by reference, some groups in each step. `false`: that cannot be done, and nothing
    /// of it is left.
    pub(super) async fn share_all(&self, place: &LocalPlace, reader: &Arc<dyn SourceReader>) -> Result<bool, Halted> {
        let (total, mut done, is_sparse) = self.look().await?;
        if !is_sparse {
            return Ok(false);
        }
        let _guard = enter_in_background(self.engine, reader, place).await.map_err(halted)?;
        while done < total {
            let end = total.min((done / GROUP_BYTES + SHARED_GROUPS_MAX) * GROUP_BYTES);
            if !self.share_some(ByteSpan { start: done, end }, place, reader).await? {
                self.clear().await?;
                return Ok(false);
            }
            done = end;
        }
        self.finish(Vec::new(), total).await?;
        Ok(true)
    }

    async fn share_some(
        &self,
        span: ByteSpan,
        place: &LocalPlace,
        reader: &Arc<dyn SourceReader>,
    ) -> Result<bool, Halted> {
        let (reader, place, etag) = (Arc::clone(reader), place.clone(), self.job.etag.clone());
        self.change(move |found, rows, tick, changes| {
            let source = match reader.look(&place, rows, tick.now) {
                Ok(source) if Some(source.etag()) == etag => source,
                Ok(_) => return Ok(Err(source_has_changed())),
                Err(Stop::Refused(refusal)) => return Ok(Err(failed_at_source(refusal.status, refusal.code))),
                Err(Stop::Unread(unread)) => return Err(unread),
            };
            let Some(extents) = source.bytes.extents(rows, span, EXTENTS_PER_STEP_MAX)? else { return Ok(Ok(false)) };
            if !D::share(found, (span, &extents), rows, tick, changes)? {
                return Ok(Ok(false));
            }
            if let Some(copy) = D::copy(found) {
                copy.done = span.end;
            }
            Ok(Ok(true))
        })
        .await?
    }

    /// Takes all bytes into contents that nobody sees yet.
    async fn take(&self, source: &mut PacedBody<'_>, total: u64) -> Result<Vec<Staged>, Halted> {
        let mut pieces = Vec::new();
        let (mut arrived, mut told) = (0, 0);
        let mut rest = Bytes::new();
        while arrived < total {
            let length = (total - arrived).min(CONTENT_BYTES_MAX);
            let mut writer = self.engine.writer(Some(length));
            let end = arrived + length;
            while arrived < end {
                if rest.is_empty() {
                    rest = source.next().await?;
                }
                let bytes = rest.split_to(rest.len().min(usize::try_from(end - arrived).unwrap_or(usize::MAX)));
                arrived += bytes.len() as u64;
                writer.write(bytes).await?;
                if arrived - told >= PROGRESS_BYTES.min(told / 4 + 1) {
                    self.tell(arrived).await?;
                    told = arrived;
                }
            }
            pieces.push(writer.finish().await?);
        }
        Ok(pieces)
    }

    /// The resource holds nothing again.
    async fn clear(&self) -> Result<(), Halted> {
        self.change(|found, rows, tick, changes| {
            D::clear(found, rows, tick, changes)?;
            if let Some(copy) = D::copy(found) {
                copy.done = 0;
            }
            Ok(())
        })
        .await
    }

    /// Writes the pages as they come. Zeros are not written: that is what is there.
    async fn take_pages(&self, source: &mut PacedBody<'_>, total: u64) -> Result<(), Halted> {
        let (mut written, mut buffer) = (0, BytesMut::new());
        while written < total {
            let length = usize::try_from(total - written).unwrap_or(usize::MAX).min(PAGES_BYTES);
            while buffer.len() < length {
                buffer.extend_from_slice(&source.next().await?);
            }
            let bytes = buffer.split_to(length).freeze();
            for span in written_pages(&bytes) {
                let mut writer = self.engine.writer(Some(span.end - span.start));
                writer.write(bytes.slice(span.start as usize..span.end as usize)).await?;
                let staged = writer.finish().await?;
                self.write(ByteSpan { start: written + span.start, end: written + span.end }, staged).await?;
            }
            written += length as u64;
            self.tell(written).await?;
        }
        Ok(())
    }

    async fn write(&self, span: ByteSpan, staged: Staged) -> Result<(), Halted> {
        self.change(move |found, rows, tick, changes| D::write(found, span, &staged, rows, tick, changes)).await
    }

    /// Says how much has come.
    pub async fn tell(&self, arrived: u64) -> Result<(), Halted> {
        self.change(move |found, _, _, _| {
            if let Some(copy) = D::copy(found) {
                copy.done = arrived;
            }
            Ok(())
        })
        .await
    }

    /// All of it is there: from now on it is the content of the resource.
    pub async fn finish(&self, pieces: Vec<Staged>, total: u64) -> Result<(), Halted> {
        let (job, content_md5) = (self.job.id, self.job.content_md5.clone());
        let done = Done { length: total, content_md5 };
        self.change(move |found, rows, tick, changes| {
            if let Some(copy) = D::copy(found) {
                (copy.status, copy.done, copy.completed, copy.job) = (CopyStatus::Success, total, Some(tick.now), None);
            }
            if let Some(stored) = Job::find::<D>(rows, job)? {
                stored.finish::<D>(changes);
            }
            D::complete(found, &pieces, &done, tick, changes);
            Ok(())
        })
        .await
    }

    /// Changes the resource, if it still waits for this attempt of the copy.
    async fn change<T: Send + 'static>(
        &self,
        change: impl Fn(&mut D::Found, &dyn Rows, Tick, &mut Changes) -> Result<T, Unread> + Send + 'static,
    ) -> Result<T, Halted> {
        let job = self.job.clone();
        let Ok(destination) = job.destination::<D>() else { return Err(Halted::Unwanted) };
        let changed = commit::<_, Infallible, _>(self.engine, destination.partition(), move |rows, tick| {
            let mut changes = Changes::none();
            let Some((_, mut found)) = job.current::<D>(rows)? else {
                return Ok(Commit { changes, outcome: None });
            };
            let outcome = change(&mut found, rows, tick, &mut changes)?;
            destination.store(found, rows, &mut changes)?;
            Ok(Commit { changes, outcome: Some(outcome) })
        });
        unrefused(changed.await)?.ok_or(Halted::Unwanted)
    }
}

fn source_has_changed() -> Halted {
    Halted::Failed("412 ConditionNotMet \"The source has changed.\"".to_owned())
}

/// The bytes of a source, as long as they come fast enough.
struct PacedBody<'a> {
    body: Box<dyn Body>,
    engine: &'a dyn Engine,
    pace: Pace,
}

impl PacedBody<'_> {
    async fn next(&mut self) -> Result<Bytes, Halted> {
        let asked = self.engine.now();
        let Some(Ok(bytes)) = self.body.next().await else { return Err(Halted::Broken) };
        let waited = self.engine.now().0.saturating_sub(asked.0);
        if self.pace.is_kept(waited, bytes.len() as u64) { Ok(bytes) } else { Err(Halted::Broken) }
    }
}

/// What a source has sent, and how long it was waited for. The time that this server takes to write does not count.
#[derive(Debug, Default)]
struct Pace {
    waited: u64,
    bytes: u64,
}

impl Pace {
    /// Whether enough has come, with these bytes after so many ticks.
    fn is_kept(&mut self, waited: u64, bytes: u64) -> bool {
        self.waited = self.waited.saturating_add(waited);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.waited < Timestamp::default().plus_seconds(PACE_SECONDS).0 {
            return true;
        }
        let is_enough = self.bytes >= PACE_BYTES;
        *self = Pace::default();
        is_enough
    }
}

/// The pages that hold something, merged where they touch.
fn written_pages(bytes: &Bytes) -> Vec<ByteSpan> {
    let mut spans: Vec<ByteSpan> = Vec::new();
    for (at, page) in bytes.chunks(PAGE_BYTES as usize).enumerate() {
        if page.iter().all(|byte| *byte == 0) {
            continue;
        }
        let start = at as u64 * PAGE_BYTES;
        let end = start + page.len() as u64;
        match spans.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => spans.push(ByteSpan { start, end }),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_slow_when_too_little_came_while_it_was_waited_for() {
        let seconds = |seconds| Timestamp::default().plus_seconds(seconds).0;
        let mut pace = Pace::default();
        assert!(pace.is_kept(seconds(PACE_SECONDS - 1), 0));
        assert!(pace.is_kept(seconds(1), PACE_BYTES));
        assert!(pace.is_kept(seconds(PACE_SECONDS - 1), PACE_BYTES - 1));
        assert!(!pace.is_kept(seconds(1), 0));
        // A server that is slow to write has asked for nothing meanwhile.
        assert!((0..10_000).all(|_| pace.is_kept(0, 1)));
    }
}
