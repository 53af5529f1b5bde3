//! Background copies: Copy Blob from a URL elsewhere, which goes on after its answer.
//!
//! The blob says that a copy into it is pending, the row of the job says what is to be fetched, and a due row comes up every few
//! seconds while the job exists. The node that runs a copy holds a claim on the job and renews it each time the due row comes up.
//! A claim that was not renewed for a while belongs to a process that has ended or to a node that is gone: the next node that
//! sees the due row claims the copy and begins it anew. A copy that fails for good, or that takes longer than two weeks, leaves
//! an empty blob that says why. Readers never see a part of a block or append blob; a page blob shows its pages as they arrive,
//! as in Azure.

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

/// How often the due row of a copy comes up, and the node that runs it renews its claim.
const LOOK_SECONDS: u64 = 5;
/// A claim that is this late in being renewed counts as given up.
const GRACE_SECONDS: u64 = 10;
/// A copy fails after two weeks, as in Azure.
const SECONDS_MAX: u64 = 14 * 24 * 60 * 60;
/// How often a source may break off or be out of reach until the copy fails.
const ATTEMPTS_MAX: u32 = 5;
/// The most bytes of a copy that one content holds.
const CONTENT_BYTES_MAX: u64 = 1 << 30;
/// How many bytes of pages are written at a time.
const PAGES_BYTES: usize = 4 * 1024 * 1024;
/// How many copies a node runs at once; the others stay pending. Each holds a connection and a writer.
const COPIES_AT_ONCE_MAX: usize = 64;
/// After how long a copy for which a node had no room is tried again.
const WAIT_SECONDS: u64 = 60;
/// How many bytes must come within how long, or the attempt ends: a source that sends a byte now and then would otherwise hold
/// one of the places for as long as it likes.
const PACE_BYTES: u64 = 256 * 1024;
const PACE_SECONDS: u64 = 5 * 60;
/// Progress is told when this much more has come, or a quarter of what was there, if that is less.
const PROGRESS_BYTES: u64 = 4 * 1024 * 1024;

/// A background copy: what is to be fetched, and the blob that waits for it.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Job {
    #[n(0)]
    pub id: u64,
    /// With its signature, if it has one.
    #[n(1)]
    url: String,
    /// The ETag of the source when the copy began. The source must still have it.
    #[n(2)]
    etag: Option<String>,
    /// The key of the blob.
    #[cbor(n(3), with = "minicbor::bytes")]
    blob: Vec<u8>,
    #[cbor(n(4), with = "codec::time")]
    begun: Timestamp,
    #[n(5)]
    attempts: u32,
    /// When the due row comes up next.
    #[cbor(n(6), with = "codec::time")]
    due: Timestamp,
    /// The node that runs this copy. Each claim draws a fresh id, so a node that lost the copy can tell.
    #[n(7)]
    claim: Option<u64>,
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

/// The copies that this process runs.
#[derive(Debug, Default)]
pub struct Copies(Mutex<HashMap<u64, RunningCopy>>);

#[derive(Debug)]
struct RunningCopy {
    claim: Option<u64>,
    /// Dropping it ends the copy.
    _running: Option<Box<dyn Running>>,
}

impl Copies {
    fn running(&self) -> MutexGuard<'_, HashMap<u64, RunningCopy>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self) -> bool {
        self.running().len() < COPIES_AT_ONCE_MAX
    }

    /// The claim under which this process runs a copy.
    fn claim(&self, id: u64) -> Option<u64> {
        self.running().get(&id).and_then(|copy| copy.claim)
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
            claim: Some(tick.id(4)),
            content_md5,
        }
    }

    /// Claims the copy, or renews `claim` if that is the one it has. The claim must be renewed within [`LOOK_SECONDS`].
    /// `false`: another node holds a claim.
    fn take(&mut self, claim: Option<u64>, tick: Tick) -> bool {
        let is_ours = self.claim.is_some() && self.claim == claim;
        if !is_ours && !self.is_left(tick) {
            return false;
        }
        if !is_ours {
            self.claim = Some(tick.id(4));
        }
        self.due = tick.now.plus_seconds(LOOK_SECONDS);
        true
    }

    /// Whether no node holds a claim that was renewed in time.
    fn is_left(&self, tick: Tick) -> bool {
        self.claim.is_none() || tick.now >= self.due.plus_seconds(GRACE_SECONDS)
    }

    /// Gives the claim up, and has the due row come up later: no node has room for the copy.
    fn wait(&mut self, tick: Tick) {
        self.claim = None;
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
        let stored = stored?.filter(|stored| stored.claim == self.claim);
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

/// Ends the copy that `blob` waits for, without its bytes, and returns the id of its job.
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

/// What a look at the job of a copy has found.
enum Fate {
    /// This process runs the copy.
    Ours(Job),
    /// No blob waits for the copy any more.
    Over,
    /// Another node runs the copy.
    AnothersConcern,
    /// There is no room for it on this node now.
    Waits,
}

/// Why a copy does not go on.
enum Halted {
    /// Its blob does not wait for it any longer.
    Unwanted,
    /// It cannot succeed. The text is the status description of the blob.
    Failed(String),
    /// Another attempt may succeed.
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
    /// Handles the due row of a copy: runs the copy on this node, unless another node holds the claim.
    pub(crate) async fn tend(&self, id: u64, due: &Due) -> Result<Handled, EngineError> {
        let (key, claim) = (due.key(), self.copies.claim(id));
        let is_possible = self.outside.is_some();
        let has_room = claim.is_some() || self.copies.has_room();
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
            if !job.take(claim, tick) {
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
                self.leave(id, claim);
                return Ok(Handled::Left);
            }
        }
        Ok(Handled::Done)
    }

    /// Runs a copy beside the requests, unless it is running already or there is no room; then the due row comes up later.
    /// `begun`: the answer of the source is already there.
    pub(crate) fn pursue(&self, job: Job, begun: Option<Fetched>) {
        let Some(outside) = &self.outside else { return };
        let mut copies = self.copies.running();
        if copies.get(&job.id).is_some_and(|copy| copy.claim == job.claim) {
            return;
        }
        if copies.len() >= COPIES_AT_ONCE_MAX && !copies.contains_key(&job.id) {
            return;
        }
        let (service, id, claim) = (self.clone(), job.id, job.claim);
        // A run under an earlier claim ends here: another node claimed the copy in the meantime, because this one was late.
        copies.insert(id, RunningCopy { claim, _running: None });
        let running = outside.spawn(Box::pin(async move {
            service.copy(job, begun).await;
            service.leave(id, claim);
        }));
        copies.insert(id, RunningCopy { claim, _running: Some(running) });
    }

    /// Forgets the run under this claim; if it has not ended yet it ends now.
    fn leave(&self, id: u64, claim: Option<u64>) {
        let mut copies = self.copies.running();
        let ended = copies.get(&id).is_some_and(|copy| copy.claim == claim).then(|| copies.remove(&id));
        drop(copies);
        drop(ended);
    }

    /// Stops running a copy.
    pub(crate) fn abandon(&self, id: u64) {
        let running = self.copies.running().remove(&id);
        drop(running);
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
            // The server of the source may recover.
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
        // The next node that sees the due row may claim the copy.
        stored.claim = None;
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
        // Without an ETag it is not known whether these are the bytes that the earlier attempt saw.
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

    /// Stores all bytes in contents that no blob refers to yet.
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

    /// Stores the progress of the copy.
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
mod tests;
