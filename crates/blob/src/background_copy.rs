//! Copies from elsewhere, which go on after their answer.
//!
//! The blob says that a copy into it is pending, a row says what is to be fetched, and a due row asks every few seconds
//! whether somebody does. Who does so runs beside the requests and answers the due row; when nobody has answered for a while the
//! server was started again, or the node of a cluster that did it is gone, and whoever finds that out has the copy begin anew. A copy that fails for good, or that takes longer than two weeks, leaves an empty blob
//! that says why. Readers never see a part of a block or append blob; a page blob fills up before their eyes, as the service has
//! it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use concurrency::Timestamp;
use content::map::{ByteSpan, PAGE_BYTES, PageView};
use engine::collector::Handled;
use engine::due::{self, Due};
use engine::{Changes, Commit, Engine, EngineError, Key, Rows, Staged, Tick, Unread, commit};
use minicbor::{Decode, Encode};
use service::{codec, space, unrefused};
use wire::http::{Body, HeaderMap, HeaderValue, header};

use crate::BlobService;
use crate::model::blocks;
use crate::model::copy_state::{CopyState, CopyStatus};
use crate::model::tier::TierSet;
use crate::model::{self, Blob, BlobType, Committed, ContentRef, ListEntry, chunk_key};
use crate::source::{Fetched, Running};

/// How often somebody looks whether a copy is being done.
const LOOK_SECONDS: u64 = 5;
/// Who does a copy is thought gone when he is this late in saying that he does.
const GRACE_SECONDS: u64 = 10;
/// The service gives up after two weeks.
const SECONDS_MAX: u64 = 14 * 24 * 60 * 60;
/// How often a source may break off or be out of reach.
const ATTEMPTS_MAX: u32 = 5;
/// One content holds at most so many bytes of a copy.
const CONTENT_BYTES_MAX: u64 = 1 << 30;
/// Pages are written so many bytes at a time.
const PAGES_BYTES: usize = 4 * 1024 * 1024;
/// A node does at most so many copies at once; the others stay pending. Each holds a connection and a writer.
const COPIES_AT_ONCE_MAX: usize = 64;
/// A copy that found no room asks again after so long.
const WAIT_SECONDS: u64 = 60;
/// So much must come while a source is waited for so long, or the attempt ends: a source that sends a byte now and then would
/// hold its place for as long as it likes.
const PACE_BYTES: u64 = 256 * 1024;
const PACE_SECONDS: u64 = 5 * 60;
/// Progress is told when this much more has come, or a quarter of what was there, if that is less.
const PROGRESS_BYTES: u64 = 4 * 1024 * 1024;

/// What is to be fetched, and for whom.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Job {
    #[n(0)]
    pub id: u64,
    /// With whatever opens it.
    #[n(1)]
    url: String,
    /// What the source was when the copy began; it must still be that.
    #[n(2)]
    etag: Option<String>,
    /// The key of the blob.
    #[cbor(n(3), with = "minicbor::bytes")]
    blob: Vec<u8>,
    #[cbor(n(4), with = "codec::time")]
    begun: Timestamp,
    #[n(5)]
    attempts: u32,
    /// When somebody looks next.
    #[cbor(n(6), with = "codec::time")]
    due: Timestamp,
    /// Who does it: an id that he drew when he took it.
    #[n(7)]
    doer: Option<u64>,
    /// The MD5 that the source told of its bytes, for the blob once they are there.
    #[cbor(n(8), with = "minicbor::bytes", default)]
    content_md5: Option<Vec<u8>>,
}

/// Leaves out the URL, which may carry a signature.
impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("id", &self.id).field("attempts", &self.attempts).finish_non_exhaustive()
    }
}

/// The copies that this process is doing.
#[derive(Debug, Default)]
pub struct Copies(Mutex<HashMap<u64, Doing>>);

#[derive(Debug)]
struct Doing {
    doer: Option<u64>,
    /// Ends with this value.
    _running: Option<Box<dyn Running>>,
}

impl Copies {
    fn doing(&self) -> MutexGuard<'_, HashMap<u64, Doing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self) -> bool {
        self.doing().len() < COPIES_AT_ONCE_MAX
    }

    /// As whom this process does a copy.
    fn doer(&self, id: u64) -> Option<u64> {
        self.doing().get(&id).and_then(|doing| doing.doer)
    }
}

fn job_key(id: u64) -> Key {
    Key::new(space::COPY).number(id)
}

fn due_key(id: u64, at: Timestamp) -> Key {
    due::key(at, space::COPY, &id.to_be_bytes())
}

impl Job {
    pub fn new(url: &str, etag: Option<String>, content_md5: Option<Vec<u8>>, blob: &Key, tick: Tick) -> Job {
        Job {
            id: tick.id(3),
            url: url.to_owned(),
            etag,
            blob: blob.as_bytes().to_vec(),
            begun: tick.now,
            attempts: 0,
            due: tick.now.plus_seconds(LOOK_SECONDS),
            doer: Some(tick.id(4)),
            content_md5,
        }
    }

    /// Has it done by `doer`, who says so again before long. `false`: another one does it, as far as one can know.
    fn take(&mut self, doer: Option<u64>, tick: Tick) -> bool {
        let is_ours = self.doer.is_some() && self.doer == doer;
        if !is_ours && !self.is_left(tick) {
            return false;
        }
        if !is_ours {
            self.doer = Some(tick.id(4));
        }
        self.due = tick.now.plus_seconds(LOOK_SECONDS);
        true
    }

    /// Whether no node does it, as far as one can know.
    fn is_left(&self, tick: Tick) -> bool {
        self.doer.is_none() || tick.now >= self.due.plus_seconds(GRACE_SECONDS)
    }

    /// No node has to do it for a while.
    fn wait(&mut self, tick: Tick) {
        self.doer = None;
        self.due = tick.now.plus_seconds(WAIT_SECONDS);
    }

    /// Stores it, with the due row that looks after it.
    pub fn begin(&self, changes: &mut Changes) {
        changes.put(job_key(self.id), codec::encode(self));
        changes.put(due_key(self.id, self.due), Bytes::new());
    }

    fn find(rows: &dyn Rows, id: u64) -> Result<Option<Job>, Unread> {
        rows.get(&job_key(id))?.map(|row| codec::decode(&row)).transpose()
    }

    /// The stored job and the blob that waits for it, if this attempt is the one that counts: another node may have begun the
    /// copy anew, because this one seemed gone.
    fn current(&self, rows: &dyn Rows) -> Result<Option<(Job, Blob, Committed)>, Unread> {
        // Both are asked for before either is missed.
        let (stored, blob) = (Job::find(rows, self.id), self.blob(rows));
        let stored = stored?.filter(|stored| stored.doer == self.doer);
        Ok(stored.zip(blob?).map(|(stored, (blob, state))| (stored, blob, state)))
    }

    /// There is nothing left to do.
    fn finish(&self, changes: &mut Changes) {
        changes.delete(job_key(self.id));
        changes.delete(due_key(self.id, self.due));
    }

    fn key(&self) -> Key {
        Key::from_bytes(&self.blob)
    }

    /// The blob, if it still waits for this copy.
    fn blob(&self, rows: &dyn Rows) -> Result<Option<(Blob, Committed)>, Unread> {
        let Some(mut blob) = model::find_blob(rows, &self.key())? else { return Ok(None) };
        let is_ours = |copy: &CopyState| copy.status == CopyStatus::Pending && copy.job == Some(self.id);
        let Some(state) = blob.committed.take() else { return Ok(None) };
        Ok(state.copy.as_deref().is_some_and(is_ours).then_some((blob, state)))
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(etag) = self.etag.as_ref().and_then(|etag| HeaderValue::try_from(etag).ok()) {
            headers.insert(header::IF_MATCH, etag);
        }
        headers
    }
}

/// Ends the copy that `blob` waits for, without its bytes, and returns whose job it was.
pub fn end(
    rows: &dyn Rows,
    blob: &mut Blob,
    status: CopyStatus,
    description: Option<String>,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Option<u64>, Unread> {
    let Some(state) = &mut blob.committed else { return Ok(None) };
    // The blob stays, and with it all that is said of it but its bytes.
    state.let_content_go(changes, tick.now);
    state.headers.content_md5 = None;
    state.content = match state.kind {
        BlobType::Block | BlobType::Append { .. } => ContentRef::Empty,
        BlobType::Page { .. } => no_pages(tick, changes),
    };
    state.length = 0;
    state.stamp = tick.stamp;
    // Nothing is left that would have to come out of the archive.
    if let Some(back) = state.rehydration.take() {
        state.tier = Some(TierSet { tier: back.to, since: tick.stamp, is_inferred: false });
    }
    let Some(copy) = &mut state.copy else { return Ok(None) };
    copy.status = status;
    copy.description = description;
    copy.completed = Some(tick.now);
    copy.until = None;
    let job = copy.job.take();
    if let Some(id) = job
        && let Some(job) = Job::find(rows, id)?
    {
        job.finish(changes);
    }
    Ok(job)
}

/// A page map in which nothing is written.
fn no_pages(tick: Tick, changes: &mut Changes) -> ContentRef {
    let view = PageView::new(tick.id(2));
    view.create(changes);
    ContentRef::Pages(view)
}

/// What is to become of a copy that somebody looked after.
enum Fate {
    /// This process does it.
    Ours(Job),
    /// Nobody waits for it any longer.
    Over,
    /// Another node does it.
    AnothersConcern,
    /// There is no room for it on this node now.
    Waits,
}

/// Why a copy does not go on.
enum Halted {
    /// Its blob does not wait for it any longer.
    Unwanted,
    /// It cannot succeed: as the blob will say.
    Failed(String),
    /// It may, another time.
    Broken,
    /// The engine could not do it, and will be asked again.
    Engine,
}

impl From<EngineError> for Halted {
    fn from(_: EngineError) -> Halted {
        Halted::Engine
    }
}

impl BlobService {
    /// Looks after a background copy: runs it on this node unless another node does, which leaves the row to that node.
    pub(crate) async fn tend(&self, id: u64, due: &Due) -> Result<Handled, EngineError> {
        let (key, doer) = (due.key(), self.copies.doer(id));
        let is_possible = self.outside.is_some();
        let has_room = doer.is_some() || self.copies.has_room();
        let fate = commit::<_, Infallible, _>(&*self.engine, due.key(), move |rows, tick| {
            let mut changes = Changes::none();
            changes.delete(key.clone());
            let Some(mut job) = Job::find(rows, id)? else { return Ok(Commit { changes, outcome: Fate::Over }) };
            let Some((mut blob, state)) = job.blob(rows)? else {
                job.finish(&mut changes);
                return Ok(Commit { changes, outcome: Fate::Over });
            };
            let why = match tick.now >= job.begun.plus_seconds(SECONDS_MAX) {
                true => Some("500 OperationCancelled \"The copy took too long.\""),
                false if !is_possible => Some("500 CannotVerifyCopySource \"This server copies only from itself.\""),
                false => None,
            };
            if let Some(why) = why {
                blob.committed = Some(state);
                end(rows, &mut blob, CopyStatus::Failed, Some(why.to_owned()), tick, &mut changes)?;
                changes.put(job.key(), codec::encode(&blob));
                return Ok(Commit { changes, outcome: Fate::Over });
            }
            if !has_room && job.is_left(tick) {
                job.wait(tick);
                job.begin(&mut changes);
                return Ok(Commit { changes, outcome: Fate::Waits });
            }
            if !job.take(doer, tick) {
                return Ok(Commit::unchanged(Fate::AnothersConcern));
            }
            job.begin(&mut changes);
            Ok(Commit { changes, outcome: Fate::Ours(job) })
        });
        match unrefused(fate.await)? {
            Fate::Ours(job) => self.pursue(job, None),
            Fate::Over => self.abandon(id),
            Fate::Waits => {}
            Fate::AnothersConcern => {
                self.leave(id, doer);
                return Ok(Handled::Left);
            }
        }
        Ok(Handled::Done)
    }

    /// Does a copy beside the requests, unless that is being done or there is no room: then it is looked after later.
    /// `begun`: the answer of the source is already there.
    pub(crate) fn pursue(&self, job: Job, begun: Option<Fetched>) {
        let Some(outside) = &self.outside else { return };
        let mut copies = self.copies.doing();
        if copies.get(&job.id).is_some_and(|doing| doing.doer == job.doer) {
            return;
        }
        if copies.len() >= COPIES_AT_ONCE_MAX && !copies.contains_key(&job.id) {
            return;
        }
        let (service, id, doer) = (self.clone(), job.id, job.doer);
        // What was begun as another doer ends here: somebody thought this process gone in the meantime.
        copies.insert(id, Doing { doer, _running: None });
        let running = outside.spawn(Box::pin(async move {
            service.copy(job, begun).await;
            service.leave(id, doer);
        }));
        copies.insert(id, Doing { doer, _running: Some(running) });
    }

    /// What was done as this doer has ended, or ends here.
    fn leave(&self, id: u64, doer: Option<u64>) {
        let mut copies = self.copies.doing();
        let ended = copies.get(&id).is_some_and(|doing| doing.doer == doer).then(|| copies.remove(&id));
        drop(copies);
        drop(ended);
    }

    /// Stops doing a copy.
    pub(crate) fn abandon(&self, id: u64) {
        let doing = self.copies.doing().remove(&id);
        drop(doing);
    }

    async fn copy(&self, job: Job, begun: Option<Fetched>) {
        let engine = &*self.engine;
        let is_again = begun.is_none();
        let outcome = match self.fetch(&job, begun).await {
            Ok(fetched) => Copy { engine, job: job.clone() }.run(fetched, is_again).await,
            Err(halted) => Err(halted),
        };
        // What the engine could not do now stays due.
        let _ = match outcome {
            Ok(()) | Err(Halted::Unwanted | Halted::Engine) => Ok(()),
            Err(Halted::Failed(why)) => give_up(engine, job, Some(why)).await,
            Err(Halted::Broken) => give_up(engine, job, None).await,
        };
    }

    async fn fetch(&self, job: &Job, begun: Option<Fetched>) -> Result<Fetched, Halted> {
        let Some(outside) = &self.outside else { return Err(Halted::Broken) };
        let fetched = match begun {
            Some(fetched) => fetched,
            None => outside.fetch(&job.url, job.headers()).await.map_err(|error| match error.is_forbidden {
                true => Halted::Failed(format!("500 CannotVerifyCopySource \"{}\"", error.message)),
                false => Halted::Broken,
            })?,
        };
        match fetched.status {
            200 => Ok(fetched),
            // The server of the source may come to itself.
            500..=599 | 429 => Err(Halted::Broken),
            status => {
                let code = fetched.headers.get("x-ms-error-code").and_then(|code| code.to_str().ok());
                let code = code.unwrap_or("CannotVerifyCopySource");
                Err(Halted::Failed(format!("{status} {code} \"Copy failed when reading the source.\"")))
            }
        }
    }
}

/// Notes that a source has broken off; after some times, or if there is a reason, the copy has failed.
async fn give_up(engine: &dyn Engine, job: Job, why: Option<String>) -> Result<(), EngineError> {
    let partition = job.key();
    let noted = commit::<_, Infallible, _>(engine, partition, move |rows, tick| {
        let mut changes = Changes::none();
        let Some((mut stored, mut blob, state)) = job.current(rows)? else {
            return Ok(Commit { changes, outcome: () });
        };
        stored.attempts += 1;
        // Whoever looks next may try.
        stored.doer = None;
        let exhausted = "500 CannotVerifyCopySource \"Copy failed when reading the source.\"".to_owned();
        match why.clone().or((stored.attempts >= ATTEMPTS_MAX).then_some(exhausted)) {
            Some(why) => {
                blob.committed = Some(state);
                end(rows, &mut blob, CopyStatus::Failed, Some(why), tick, &mut changes)?;
                changes.put(job.key(), codec::encode(&blob));
            }
            None => _ = changes.put(job_key(job.id), codec::encode(&stored)),
        }
        Ok(Commit { changes, outcome: () })
    });
    unrefused(noted.await)
}

/// A copy under way.
struct Copy<'a> {
    engine: &'a dyn Engine,
    job: Job,
}

impl Copy<'_> {
    /// `is_again`: an earlier attempt may have written pages.
    async fn run(&self, fetched: Fetched, is_again: bool) -> Result<(), Halted> {
        let state = self.look().await?;
        let total = state.copy.as_ref().map_or(0, |copy| copy.total);
        let etag = fetched.headers.get(header::ETAG).and_then(|etag| etag.to_str().ok());
        let is_other = self.job.etag.as_deref().zip(etag).is_some_and(|(before, now)| before != now);
        if is_other || fetched.body.length() != Some(total) {
            return Err(Halted::Failed("412 ConditionNotMet \"The source has changed.\"".to_owned()));
        }
        // Without an ETag nobody knows whether these are the bytes that the earlier attempt saw.
        let is_unsure = self.job.etag.is_none() || etag.is_none();
        let mut source = PacedBody { body: fetched.body, engine: self.engine, pace: Pace::default() };
        let pieces = match state.kind {
            BlobType::Block | BlobType::Append { .. } => self.take(&mut source, total).await?,
            BlobType::Page { .. } => {
                if is_again && is_unsure {
                    self.clear().await?;
                }
                self.take_pages(&mut source, total).await?;
                Vec::new()
            }
        };
        self.finish(pieces, total).await
    }

    async fn look(&self) -> Result<Committed, Halted> {
        let job = self.job.clone();
        let state =
            engine::read::<_, Infallible, _>(self.engine, move |rows, _| Ok(job.blob(rows)?.map(|(_, state)| state)));
        unrefused(state.await)?.ok_or(Halted::Unwanted)
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

    /// The blob holds nothing again.
    async fn clear(&self) -> Result<(), Halted> {
        self.change(|state, _, tick, changes| {
            state.let_content_go(changes, tick.now);
            state.content = no_pages(tick, changes);
            state.stamp = tick.stamp;
            if let Some(copy) = &mut state.copy {
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
        self.change(move |state, rows, tick, changes| match state.content {
            ContentRef::Pages(view) => {
                // Readers see it, so it is another state of the blob.
                state.stamp = tick.stamp;
                view.write(rows, span, &staged, tick, changes)
            }
            ContentRef::Empty | ContentRef::Whole(_) | ContentRef::Blocks(_) | ContentRef::Shared(_) => Ok(()),
        })
        .await
    }

    /// Says how much has come.
    async fn tell(&self, arrived: u64) -> Result<(), Halted> {
        self.change(move |state, _, _, _| {
            if let Some(copy) = &mut state.copy {
                copy.done = arrived;
            }
            Ok(())
        })
        .await
    }

    /// All of it is there: from now on it is the content of the blob.
    async fn finish(&self, pieces: Vec<Staged>, total: u64) -> Result<(), Halted> {
        let job = self.job.clone();
        self.change(move |state, rows, tick, changes| {
            state.stamp = tick.stamp;
            if let Some(copy) = &mut state.copy {
                (copy.status, copy.done, copy.completed, copy.job) = (CopyStatus::Success, total, Some(tick.now), None);
            }
            if let BlobType::Append { sealed, .. } = state.kind {
                state.kind = BlobType::Append { blocks: u32::try_from(pieces.len()).unwrap_or(u32::MAX), sealed };
            }
            if let Some(stored) = Job::find(rows, job.id)? {
                stored.finish(changes);
            }
            state.length = total;
            if let Some(md5) = &job.content_md5 {
                state.headers.content_md5 = Some(md5.clone());
            }
            match (state.kind, pieces.as_slice()) {
                (BlobType::Page { .. }, _) | (_, []) => {}
                (BlobType::Block, [whole]) => {
                    changes.store(whole, state.version);
                    state.content = ContentRef::Whole(whole.id().0);
                }
                (BlobType::Block | BlobType::Append { .. }, pieces) => {
                    state.content = ContentRef::Blocks(list(pieces, state, tick, changes));
                }
            }
            Ok(())
        })
        .await
    }

    /// Changes the blob, if it still waits for this attempt of the copy.
    async fn change(
        &self,
        change: impl Fn(&mut Committed, &dyn Rows, Tick, &mut Changes) -> Result<(), Unread> + Send + 'static,
    ) -> Result<(), Halted> {
        let job = self.job.clone();
        let changed = commit::<_, Infallible, _>(self.engine, job.key(), move |rows, tick| {
            let mut changes = Changes::none();
            let Some((_, mut blob, mut state)) = job.current(rows)? else {
                return Ok(Commit { changes, outcome: false });
            };
            change(&mut state, rows, tick, &mut changes)?;
            blob.committed = Some(state);
            changes.put(job.key(), codec::encode(&blob));
            Ok(Commit { changes, outcome: true })
        });
        if unrefused(changed.await)? { Ok(()) } else { Err(Halted::Unwanted) }
    }
}

/// A list of contents that follow each other. A block has an id in it, an appended one has none.
fn list(pieces: &[Staged], state: &Committed, tick: Tick, changes: &mut Changes) -> u64 {
    let list = tick.id(2);
    let id = |at: usize| match state.kind {
        BlobType::Block | BlobType::Page { .. } => (at as u64).to_be_bytes().to_vec(),
        BlobType::Append { .. } => Vec::new(),
    };
    let entry = |(at, piece): (usize, &Staged)| ListEntry { id: id(at), content: piece.id().0, size: piece.length() };
    let entries: Vec<ListEntry> = pieces.iter().enumerate().map(entry).collect();
    for piece in pieces {
        changes.store(piece, list);
    }
    for (end, row) in blocks::list_chunks(&entries) {
        changes.put(chunk_key(list, end), row);
    }
    changes.refer(list, state.version);
    list
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

/// Reads a row as that of a copy under way.
#[cfg(any(test, feature = "testing"))]
pub fn fuzz(row: &[u8]) {
    let _ = codec::decode::<Job>(row).is_ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlobError;
    use crate::testing::{Bench, Elsewhere, Script, Then, header, refusal};
    use std::sync::Arc;

    /// A request that changes a blob: method, URL and headers.
    type Write<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

    const SOURCE: &str = "http://a/x?sig=secret";
    const COPY: [(&str, &str); 1] = [("x-ms-copy-source", SOURCE)];

    async fn bench(script: Script) -> (Bench, Arc<Elsewhere>) {
        let Bench { engine, service, settings } = Bench::with_container().await;
        let elsewhere = Arc::new(Elsewhere::default());
        elsewhere.0.lock().unwrap().insert(SOURCE, script);
        (Bench { engine, service: service.reaching(elsewhere.clone()), settings }, elsewhere)
    }

    async fn told(bench: &Bench, name: &str) -> Option<String> {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        header(&told, name).map(str::to_owned)
    }

    fn stalled() -> Script {
        Script { length: 1_000, then: Then::Stall, ..Script::of(b"begin") }
    }

    /// It would be pending for as long as the source likes.
    #[tokio::test]
    async fn a_source_that_announces_more_than_a_blob_may_have_is_refused() {
        for (length, kind) in [(1 << 62, "BlockBlob"), (1 << 62, "PageBlob"), ((8 << 40) + 512, "PageBlob")] {
            let script = Script { length, then: Then::Stall, ..Script::of(b"begin") };
            let (bench, _) = bench(script.header("x-ms-blob-type", kind)).await;
            let refused = refusal(bench.call("PUT", "cont/blob", &COPY, b"").await).to_reply();
            assert_eq!((refused.status, refused.code), (400, "CannotVerifyCopySource"), "{length} {kind}");
            assert_eq!(refusal(bench.call("HEAD", "cont/blob", &[], b"").await), BlobError::BlobNotFound);
        }
    }

    #[tokio::test]
    async fn while_it_is_pending() {
        let (bench, _) = bench(stalled().header("content-type", "text/plain").header("x-ms-meta-a", "1")).await;
        bench.put("cont/blob", b"before").await;
        let answer = bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
        assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-copy-status")), (202, Some("pending")));
        assert_eq!(told(&bench, "x-ms-copy-progress").await.as_deref(), Some("5/1000"));
        assert_eq!(told(&bench, "x-ms-copy-source").await.as_deref(), Some("http://a/x"));
        assert_eq!(told(&bench, "content-length").await.as_deref(), Some("0"));
        assert_eq!(bench.get("cont/blob").await, b"");
        let block_blob = [("x-ms-blob-type", "BlockBlob")];
        let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
        let writes: [Write<'_>; 8] = [
            ("PUT", "cont/blob", &block_blob),
            ("PUT", "cont/blob", &COPY),
            ("PUT", "cont/blob?comp=block&blockid=QQ==", &[]),
            ("PUT", "cont/blob?comp=metadata", &[]),
            ("PUT", "cont/blob?comp=properties", &[]),
            ("PUT", "cont/blob?comp=snapshot", &[]),
            ("PUT", "cont/blob?comp=lease", &acquire),
            ("DELETE", "cont/blob", &[]),
        ];
        for (method, url, headers) in writes {
            let body: &[u8] = if url.contains("block") { b"x" } else { b"" };
            let refused = bench.call(method, url, headers, body).await;
            assert_eq!(refusal(refused), BlobError::PendingCopyOperation, "{method} {url}");
        }
        let list = "<BlockList/>";
        let refused = bench.call("PUT", "cont/blob?comp=blocklist", &[], list.as_bytes()).await;
        assert_eq!(refusal(refused), BlobError::PendingCopyOperation);
        // Nobody has its bytes, so nobody copies them on.
        let from = crate::testing::url("cont/blob");
        let refused = refusal(bench.call("PUT", "cont/next", &[("x-ms-copy-source", from.as_str())], b"").await);
        assert_eq!(refused.to_reply().status, 409);
        // Whoever looks after it sees that it is being done.
        bench.advance(60).await;
        bench.sweep().await;
        assert_eq!(told(&bench, "x-ms-copy-progress").await.as_deref(), Some("5/1000"));

        let id = header(&answer, "x-ms-copy-id").unwrap();
        let abort = [("x-ms-copy-action", "abort")];
        let answer = bench.call("PUT", &format!("cont/blob?comp=copy&copyid={id}"), &abort, b"").await.unwrap();
        assert_eq!(answer.status, 204);
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("aborted"));
        assert_eq!(told(&bench, "x-ms-meta-a").await.as_deref(), Some("1"));
        assert_eq!(bench.get("cont/blob").await, b"");
        let again = bench.call("PUT", &format!("cont/blob?comp=copy&copyid={id}"), &abort, b"").await;
        assert_eq!(refusal(again), BlobError::NoPendingCopyOperation);
        bench.put("cont/blob", b"after").await;
        bench.advance(60).await;
        bench.sweep().await;
        assert_eq!(bench.get("cont/blob").await, b"after");
        bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (1, 0));
    }

    #[tokio::test]
    async fn it_comes_to_its_end() {
        let whole: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
        let pieces = whole.chunks(7_777).map(Bytes::copy_from_slice).collect();
        let (bench, _) = bench(Script { bytes: pieces, ..Script::of(&whole) }).await;
        bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
        let before = told(&bench, "etag").await;
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("success"));
        assert_eq!(told(&bench, "x-ms-copy-progress").await.as_deref(), Some("200000/200000"));
        assert!(bench.get("cont/blob").await == whole);
        assert!(before.is_some() && told(&bench, "x-ms-copy-completion-time").await.is_some());
        bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (1, 0));
    }

    #[tokio::test]
    async fn pages_that_hold_nothing_are_not_written() {
        let whole = [vec![0; 1_024], vec![5; 512], vec![0; 512], vec![6; 1_024]].concat();
        let script = Script::of(&whole).header("x-ms-blob-type", "PageBlob").header("x-ms-blob-sequence-number", "7");
        let (bench, _) = bench(script).await;
        bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("success"));
        assert_eq!(told(&bench, "x-ms-blob-sequence-number").await.as_deref(), Some("7"));
        assert!(bench.get("cont/blob").await == whole);
        let pages = bench.text("GET", "cont/blob?comp=pagelist").await;
        assert!(pages.contains("<Start>1024</Start><End>1535</End>") && pages.contains("<Start>2048</Start>"));
    }

    #[tokio::test]
    async fn a_source_that_breaks_off_is_tried_again_and_in_the_end_given_up() {
        let cut = Script { length: 10, then: Then::Cut, ..Script::of(b"begin") };
        let (bench, elsewhere) = bench(cut.clone()).await;
        let look = async || {
            bench.advance(LOOK_SECONDS + 1).await;
            bench.sweep().await;
            told(&bench, "x-ms-copy-status").await
        };
        bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
        elsewhere.0.lock().unwrap().insert(SOURCE, Script::of(b"0123456789"));
        assert_eq!(look().await.as_deref(), Some("success"));
        assert_eq!(bench.get("cont/blob").await, b"0123456789");

        elsewhere.0.lock().unwrap().insert(SOURCE, cut);
        bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
        for _ in 2..ATTEMPTS_MAX {
            assert_eq!(look().await.as_deref(), Some("pending"));
        }
        assert_eq!(look().await.as_deref(), Some("failed"));
        let why = told(&bench, "x-ms-copy-status-description").await.unwrap();
        assert!(why.starts_with("500 CannotVerifyCopySource"), "{why}");
        assert_eq!(bench.get("cont/blob").await, b"");
        bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (1, 0));
    }

    #[tokio::test]
    async fn a_source_that_changes_and_one_that_goes_fail_the_copy() {
        let cut = Script { length: 10, then: Then::Cut, ..Script::of(b"begin").header("etag", "\"1\"") };
        let other = Script::of(b"other bytes").header("etag", "\"2\"");
        let gone = Script { status: 404, ..Script::of(b"").header("x-ms-error-code", "BlobNotFound") };
        for (then, why) in [(Some(other), "412 "), (Some(gone), "404 BlobNotFound"), (None, "500 ")] {
            let (bench, elsewhere) = bench(cut.clone()).await;
            bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
            assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
            match then {
                Some(script) => _ = elsewhere.0.lock().unwrap().insert(SOURCE, script),
                None => _ = elsewhere.0.lock().unwrap().remove(SOURCE),
            }
            for _ in 0..ATTEMPTS_MAX {
                bench.advance(LOOK_SECONDS + 1).await;
                bench.sweep().await;
                told(&bench, "x-ms-copy-status").await;
            }
            assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("failed"), "{why}");
            let described = told(&bench, "x-ms-copy-status-description").await.unwrap();
            assert!(described.starts_with(why), "{described}");
        }
    }

    /// Two nodes over one engine: a copy is done by the one that began it, as long as it says so.
    #[tokio::test]
    async fn one_node_does_a_copy_and_another_only_when_it_is_gone() {
        let (one, elsewhere) = bench(stalled()).await;
        let two = Bench::on(one.engine.clone());
        let two = Bench { service: two.service.reaching(elsewhere.clone()), ..two };
        one.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
        assert_eq!(told(&one, "x-ms-copy-progress").await.as_deref(), Some("5/1000"));
        // Whoever began anew would succeed now.
        elsewhere.0.lock().unwrap().insert(SOURCE, Script::of(&[7; 1_000]));
        for _ in 0..5 {
            one.advance(LOOK_SECONDS + 1).await;
            two.sweep().await;
            assert_eq!(told(&two, "x-ms-copy-status").await.as_deref(), Some("pending"), "it is done elsewhere");
            one.sweep().await;
            assert_eq!(told(&two, "x-ms-copy-status").await.as_deref(), Some("pending"), "it is being done");
        }
        one.advance(LOOK_SECONDS + GRACE_SECONDS).await;
        two.sweep().await;
        assert_eq!(told(&two, "x-ms-copy-status").await.as_deref(), Some("success"));
        one.advance(LOOK_SECONDS + GRACE_SECONDS).await;
        one.sweep().await;
        two.sweep().await;
        assert_eq!(two.get("cont/blob").await, [7; 1_000]);
    }

    #[tokio::test]
    async fn after_two_weeks_it_is_over() {
        let (bench, _) = bench(stalled()).await;
        bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
        bench.advance(SECONDS_MAX).await;
        bench.sweep().await;
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("failed"));
        bench.put("cont/blob", b"x").await;
    }

    /// What protects a blob is said of it, not of the bytes that a copy was to bring.
    #[tokio::test]
    async fn a_copy_that_ends_leaves_what_protects_its_blob() {
        let hold = [COPY[0], ("x-ms-legal-hold", "true")];
        let abort = [("x-ms-copy-action", "abort")];
        for is_aborted in [true, false] {
            let (bench, _) = bench(stalled()).await;
            let begun = bench.call("PUT", "cont/blob", &hold, b"").await.unwrap();
            if is_aborted {
                let id = header(&begun, "x-ms-copy-id").unwrap();
                bench.call("PUT", &format!("cont/blob?comp=copy&copyid={id}"), &abort, b"").await.unwrap();
            } else {
                bench.advance(SECONDS_MAX).await;
                bench.sweep().await;
            }
            assert_eq!(told(&bench, "x-ms-legal-hold").await.as_deref(), Some("true"));
            assert_eq!(bench.problems().await, Vec::<String>::new());
            let container = bench.call("HEAD", "cont?restype=container", &[], b"").await.unwrap();
            assert_eq!(header(&container, "x-ms-has-legal-hold"), Some("true"));
            let deleted = bench.call("DELETE", "cont?restype=container", &[], b"").await;
            assert_eq!(refusal(deleted), BlobError::BlobImmutableDueToLegalHold);
        }
    }

    /// A download in parts holds on to an ETag; a page that came meanwhile must end it.
    #[tokio::test]
    async fn each_write_of_pages_has_its_own_etag() {
        let mib = 1024 * 1024;
        let filled = Script::of(&vec![1; 4 * mib]).header("x-ms-blob-type", "PageBlob");
        let (bench, _) = bench(Script { length: 8 * mib as u64, then: Then::Stall, ..filled }).await;
        let begun = bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
        let empty = header(&begun, "etag").unwrap();
        assert_eq!(told(&bench, "x-ms-copy-progress").await, Some(format!("{}/{}", 4 * mib, 8 * mib)));
        assert_ne!(told(&bench, "etag").await.as_deref(), Some(empty));
        let part = [("if-match", empty), ("range", "bytes=0-511")];
        assert_eq!(refusal(bench.call("GET", "cont/blob", &part, b"").await), BlobError::ConditionNotMet);
    }

    /// The sum is that of the source's bytes, so it comes with them.
    #[tokio::test]
    async fn the_md5_of_the_source_is_told_when_its_bytes_are_there() {
        let md5 = "XUFAKrxLKna5cZ2REBfFkg==";
        let source = Script::of(b"hello").header("content-md5", md5);
        for kind in ["BlockBlob", "AppendBlob", "PageBlob"] {
            let stalled = Script { length: 512, then: Then::Stall, ..source.clone().header("x-ms-blob-type", kind) };
            let (bench, _) = bench(stalled).await;
            let begun = bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
            assert_eq!(told(&bench, "content-md5").await, None, "{kind}");
            let id = header(&begun, "x-ms-copy-id").unwrap();
            let abort = [("x-ms-copy-action", "abort")];
            bench.call("PUT", &format!("cont/blob?comp=copy&copyid={id}"), &abort, b"").await.unwrap();
            assert_eq!(told(&bench, "content-md5").await, None, "{kind}");
        }
        let (bench, _) = bench(source).await;
        bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("success"));
        assert_eq!(told(&bench, "content-md5").await.as_deref(), Some(md5));
    }

    async fn stored_job(bench: &Bench) -> Job {
        let job = engine::read::<_, Infallible, _>(&*bench.engine, |rows, _| {
            let (all, mut found) = (Key::new(space::COPY), None);
            rows.scan(&all, &all.after_all(), 1, &mut |_, row| {
                found = Some(codec::decode::<Job>(row));
                engine::Visit::Stop
            })?;
            Ok(found.transpose()?)
        });
        job.await.unwrap().expect("a copy is under way")
    }

    /// A node that seemed gone, and whose copy another one has begun anew, neither fails it nor writes to its blob.
    #[tokio::test]
    async fn an_attempt_that_another_has_replaced_changes_nothing() {
        let (bench, _) = bench(stalled()).await;
        bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
        assert_eq!(told(&bench, "x-ms-copy-progress").await.as_deref(), Some("5/1000"));
        let current = stored_job(&bench).await;
        let stale = Job { doer: Some(1), ..current.clone() };
        give_up(&*bench.engine, stale.clone(), None).await.unwrap();
        give_up(&*bench.engine, stale.clone(), Some("500 Over".to_owned())).await.unwrap();
        assert!(stored_job(&bench).await == current);
        let attempt = Copy { engine: &*bench.engine, job: stale };
        assert!(matches!(attempt.tell(700).await, Err(Halted::Unwanted)));
        assert!(matches!(attempt.finish(Vec::new(), 1_000).await, Err(Halted::Unwanted)));
        assert_eq!(told(&bench, "x-ms-copy-progress").await.as_deref(), Some("5/1000"));
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
    }

    /// Where nobody can tell whether the source is still what it was, nothing is left of what an earlier attempt wrote.
    #[tokio::test]
    async fn pages_of_two_attempts_are_not_mixed() {
        const HALF: usize = PAGES_BYTES;
        let page = |script: Script| script.header("x-ms-blob-type", "PageBlob");
        let cut = page(Script { length: 2 * HALF as u64, then: Then::Cut, ..Script::of(&vec![1; HALF]) });
        let after = [vec![0; HALF], vec![2; HALF]].concat();
        let (bench, elsewhere) = bench(cut).await;
        bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
        assert_eq!(told(&bench, "x-ms-copy-progress").await, Some(format!("{HALF}/{}", 2 * HALF)));
        elsewhere.0.lock().unwrap().insert(SOURCE, page(Script::of(&after)));
        bench.advance(LOOK_SECONDS + 1).await;
        bench.sweep().await;
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("success"));
        assert!(bench.get("cont/blob").await == after);
        bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (1, 0));
    }

    /// A source that sends another ETag is another one, though it took no notice of the condition.
    #[tokio::test]
    async fn an_answer_with_another_etag_fails_the_copy() {
        let (bench, _) = bench(stalled()).await;
        bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
        told(&bench, "x-ms-copy-status").await;
        let job = Job { etag: Some("\"1\"".to_owned()), ..stored_job(&bench).await };
        let headers = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("\"2\""))]);
        let body = Box::new(wire::http::FixedBody::new(Bytes::from_static(&[7; 1_000])));
        let attempt = Copy { engine: &*bench.engine, job };
        let outcome = attempt.run(Fetched { status: 200, headers, body }, true).await;
        assert!(matches!(outcome, Err(Halted::Failed(why)) if why.starts_with("412 ")));
    }

    #[tokio::test]
    async fn copies_that_find_no_room_stay_pending_and_wait() {
        let (bench, _) = bench(stalled()).await;
        let progress = async |blob: &str| {
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
            let told = bench.call("HEAD", blob, &[], b"").await.unwrap();
            assert_eq!(header(&told, "x-ms-copy-status"), Some("pending"));
            header(&told, "x-ms-copy-progress").unwrap().to_owned()
        };
        let mut ids = Vec::new();
        for n in 0..=COPIES_AT_ONCE_MAX {
            let begun = bench.call("PUT", &format!("cont/{n}"), &COPY, b"").await.unwrap();
            ids.push(header(&begun, "x-ms-copy-id").unwrap().to_owned());
        }
        let last = format!("cont/{COPIES_AT_ONCE_MAX}");
        assert_eq!(progress("cont/0").await, "5/1000");
        assert_eq!(progress(&last).await, "0/1000");
        for _ in 0..3 {
            bench.advance(WAIT_SECONDS + GRACE_SECONDS).await;
            bench.sweep().await;
            assert_eq!(progress(&last).await, "0/1000");
        }
        let abort = [("x-ms-copy-action", "abort")];
        bench.call("PUT", &format!("cont/0?comp=copy&copyid={}", ids[0]), &abort, b"").await.unwrap();
        bench.advance(WAIT_SECONDS + GRACE_SECONDS).await;
        bench.sweep().await;
        assert_eq!(progress(&last).await, "5/1000");
    }

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

    /// Sends one byte every 29 seconds.
    #[derive(Debug)]
    struct Dripping(Arc<engine::memory::MemoryEngine>);

    impl crate::source::Outside for Dripping {
        fn fetch<'a>(
            &'a self,
            _: &'a str,
            _: HeaderMap,
        ) -> engine::BoxFuture<'a, Result<Fetched, crate::source::Unreached>> {
            let body = Box::new(Drips(self.0.clone()));
            Box::pin(async { Ok(Fetched { status: 200, headers: HeaderMap::new(), body }) })
        }

        fn spawn(&self, work: engine::BoxFuture<'static, ()>) -> Box<dyn Running> {
            Elsewhere::default().spawn(work)
        }
    }

    struct Drips(Arc<engine::memory::MemoryEngine>);

    impl Body for Drips {
        fn length(&self) -> Option<u64> {
            Some(1 << 20)
        }

        fn next(&mut self) -> engine::BoxFuture<'_, Option<Result<Bytes, wire::http::BodyError>>> {
            Box::pin(async {
                self.0.advance_clock(29).await.unwrap();
                Some(Ok(Bytes::from_static(b"x")))
            })
        }
    }

    #[tokio::test]
    async fn a_source_that_drips_is_given_up() {
        let Bench { engine, service, settings } = Bench::with_container().await;
        let service = service.reaching(Arc::new(Dripping(engine.clone())));
        let bench = Bench { engine, service, settings };
        bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
        for _ in 1..ATTEMPTS_MAX {
            assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
            bench.advance(LOOK_SECONDS + 1).await;
            bench.sweep().await;
        }
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("failed"));
    }
}
