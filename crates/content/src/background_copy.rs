//! Copies that go on after their answer.
//!
//! The resource says that a copy into it is pending, a row says what is to be fetched, and a due row asks every few seconds
//! whether a node does it. The node that does runs the copy beside the requests and answers the due row; when no node has answered
//! for a while the server was started again, or the node of a cluster that did it is gone, and the node that finds that out has the
//! copy begin anew. A copy that fails for good, or that takes longer than two weeks, leaves an empty resource that says why.
//!
//! Readers never see a part of a block or append blob; page blobs and files fill up before their eyes, as the service has it. Where
//! the source is in this server and the destination is a map, the copy moves no bytes: it refers to contents, a few groups at a time.

mod attempt;

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use concurrency::Timestamp;
use engine::collector::Handled;
use engine::due::{self, Due};
use engine::{Changes, Commit, Engine, EngineError, Key, NotCommitted, Rows, Staged, Tick, Unread, commit};
use minicbor::{Decode, Encode};
use service::{codec, unrefused};
use wire::http::{ErrorReply, HeaderMap, HeaderValue, header};

pub use attempt::{Attempt, PAGES_BYTES};

use crate::copy_state::{CopyState, CopyStatus};
use crate::map::ByteSpan;
use crate::source::{Extent, Fetched, LocalPlace, Outside, Running, SourceReader, open_local_in_background};

/// How often somebody looks whether a copy is being done.
pub const LOOK_SECONDS: u64 = 5;
/// The node that does a copy is thought gone when it is this late in saying that it does.
pub const GRACE_SECONDS: u64 = 10;
/// The service gives up after two weeks.
pub const SECONDS_MAX: u64 = 14 * 24 * 60 * 60;
/// How often a source may break off or be out of reach.
pub const ATTEMPTS_MAX: u32 = 5;
/// A node does at most so many copies at once; the others stay pending. Each holds a connection and a writer.
pub const COPIES_AT_ONCE_MAX: usize = 64;
/// A copy that found no room asks again after so long.
pub const WAIT_SECONDS: u64 = 60;

/// A resource that a background copy fills, as the row of the copy names it.
pub trait Destination: Clone + Debug + Send + Sync + 'static {
    /// The space of the rows of copies, and of the due rows that look after them.
    const SPACE: u8;

    /// The resource, as it was found.
    type Found: Send + 'static;

    fn to_bytes(&self) -> Vec<u8>;

    fn from_bytes(bytes: &[u8]) -> Option<Self>;

    /// The partition of its decisions.
    fn partition(&self) -> Key;

    /// The resource, if it waits for the copy of this job.
    fn find(&self, rows: &dyn Rows, job: u64) -> Result<Option<Self::Found>, Unread>;

    /// Whether a resource that is not found can come back, and wait for its copy again.
    fn may_return(&self, rows: &dyn Rows, now: Timestamp) -> Result<bool, Unread> {
        let _ = (rows, now);
        Ok(false)
    }

    fn store(&self, found: Self::Found, rows: &dyn Rows, changes: &mut Changes) -> Result<(), Unread>;

    fn copy(found: &mut Self::Found) -> Option<&mut CopyState>;

    /// Whether bytes are written as they come, and seen by readers.
    fn is_sparse(found: &Self::Found) -> bool;

    /// Writes some bytes of a sparse resource.
    fn write(
        found: &mut Self::Found,
        span: ByteSpan,
        staged: &Staged,
        rows: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(), Unread>;

    /// Refers to the contents that hold the bytes of a span. `false`: it cannot, or something is written there.
    fn share(
        found: &mut Self::Found,
        (span, extents): (ByteSpan, &[Extent]),
        rows: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<bool, Unread> {
        let _ = (found, span, extents, rows, tick, changes);
        Ok(false)
    }

    /// Forgets what was written of a sparse resource.
    fn clear(found: &mut Self::Found, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<(), Unread>;

    /// All bytes are there: those of a resource that is not sparse are in `pieces`.
    fn complete(found: &mut Self::Found, pieces: &[Staged], done: &Done, tick: Tick, changes: &mut Changes);

    /// It holds nothing, and never will by this copy.
    fn empty(&self, found: &mut Self::Found, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<(), Unread>;
}

/// A copy whose bytes are there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Done {
    pub length: u64,
    /// The MD5 that the source told of its bytes.
    pub content_md5: Option<Vec<u8>>,
}

/// What is to be fetched, and for which resource.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Job {
    #[n(0)]
    pub id: u64,
    /// With whatever opens it.
    #[n(1)]
    pub url: String,
    /// What the source was when the copy began; it must still be that.
    #[n(2)]
    pub etag: Option<String>,
    /// The resource that waits for it.
    #[cbor(n(3), with = "minicbor::bytes")]
    pub destination: Vec<u8>,
    #[cbor(n(4), with = "codec::time")]
    pub begun: Timestamp,
    #[n(5)]
    pub attempts: u32,
    /// When somebody looks next.
    #[cbor(n(6), with = "codec::time")]
    pub due: Timestamp,
    /// The node that runs this copy. Each attempt draws a fresh id, so a node that lost the copy can tell.
    #[n(7)]
    pub claim: Option<u64>,
    /// The MD5 that the source told of its bytes, for the resource once they are there.
    #[cbor(n(8), with = "minicbor::bytes", default)]
    pub content_md5: Option<Vec<u8>>,
    /// The source is in this server. That the caller may read it was judged when the copy began.
    #[n(9)]
    pub local: Option<LocalPlace>,
}

/// Leaves out the URL, which may carry a signature.
impl Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("id", &self.id).field("attempts", &self.attempts).finish_non_exhaustive()
    }
}

/// The source of a copy, as its job keeps it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobSource {
    pub url: String,
    pub etag: Option<String>,
    pub content_md5: Option<Vec<u8>>,
    pub local: Option<LocalPlace>,
}

fn job_key<D: Destination>(id: u64) -> Key {
    Key::new(D::SPACE).number(id)
}

fn due_key<D: Destination>(id: u64, at: Timestamp) -> Key {
    due::key(at, D::SPACE, &id.to_be_bytes())
}

impl Job {
    pub fn new<D: Destination>(source: JobSource, destination: &D, tick: Tick) -> Job {
        let JobSource { url, etag, content_md5, local } = source;
        Job {
            id: tick.id(3),
            url,
            etag,
            destination: destination.to_bytes(),
            begun: tick.now,
            attempts: 0,
            due: tick.now.plus_seconds(LOOK_SECONDS),
            claim: Some(tick.id(4)),
            content_md5,
            local,
        }
    }

    /// Claims the copy for the attempt `claim`, which must renew the claim before it is due. `false`: another one does it, as far as
    /// one can know.
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

    /// Whether no node does it, as far as one can know.
    fn is_left(&self, tick: Tick) -> bool {
        self.claim.is_none() || tick.now >= self.due.plus_seconds(GRACE_SECONDS)
    }

    /// No node has to do it for a while.
    fn wait(&mut self, tick: Tick) {
        self.claim = None;
        self.due = tick.now.plus_seconds(WAIT_SECONDS);
    }

    /// Stores it, with the due row that looks after it.
    pub fn begin<D: Destination>(&self, changes: &mut Changes) {
        changes.put(job_key::<D>(self.id), codec::encode(self));
        changes.put(due_key::<D>(self.id, self.due), Bytes::new());
    }

    /// The key of the row of a copy.
    pub fn key<D: Destination>(id: u64) -> Key {
        job_key::<D>(id)
    }

    /// Whether its due row is there.
    pub fn is_tended<D: Destination>(&self, rows: &dyn Rows) -> Result<bool, Unread> {
        Ok(rows.get(&due_key::<D>(self.id, self.due))?.is_some())
    }

    pub fn find<D: Destination>(rows: &dyn Rows, id: u64) -> Result<Option<Job>, Unread> {
        rows.get(&job_key::<D>(id))?.map(|row| codec::decode(&row)).transpose()
    }

    /// The resource that waits for it.
    pub fn waiting<D: Destination>(&self, rows: &dyn Rows) -> Result<Option<D::Found>, Unread> {
        self.destination::<D>()?.find(rows, self.id)
    }

    pub fn destination<D: Destination>(&self) -> Result<D, Unread> {
        D::from_bytes(&self.destination).ok_or_else(|| codec::corrupt("the destination of a copy"))
    }

    /// The stored job and the resource that waits for it, if this attempt is the one that counts: another node may have begun the
    /// copy anew, because this one seemed gone.
    fn current<D: Destination>(&self, rows: &dyn Rows) -> Result<Option<(Job, D::Found)>, Unread> {
        // Both are asked for before either is missed.
        let (stored, found) = (Job::find::<D>(rows, self.id), self.waiting::<D>(rows));
        let stored = stored?.filter(|stored| stored.claim == self.claim);
        Ok(stored.zip(found?))
    }

    /// There is nothing left to do.
    fn finish<D: Destination>(&self, changes: &mut Changes) {
        changes.delete(job_key::<D>(self.id));
        changes.delete(due_key::<D>(self.id, self.due));
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(etag) = self.etag.as_ref().and_then(|etag| HeaderValue::try_from(etag).ok()) {
            headers.insert(header::IF_MATCH, etag);
        }
        headers
    }
}

/// Ends the copy that a resource waits for, without its bytes, and returns whose job it was.
pub fn end<D: Destination>(
    destination: &D,
    found: &mut D::Found,
    (status, description): (CopyStatus, Option<String>),
    rows: &dyn Rows,
    tick: Tick,
    changes: &mut Changes,
) -> Result<Option<u64>, Unread> {
    destination.empty(found, rows, tick, changes)?;
    let Some(copy) = D::copy(found) else { return Ok(None) };
    copy.status = status;
    copy.description = description;
    copy.completed = Some(tick.now);
    copy.until = None;
    let job = copy.job.take();
    if let Some(id) = job
        && let Some(job) = Job::find::<D>(rows, id)?
    {
        job.finish::<D>(changes);
    }
    Ok(job)
}

/// The copies that this process is doing.
#[derive(Debug, Default)]
struct Copies(Mutex<HashMap<u64, Doing>>);

#[derive(Debug)]
struct Doing {
    claim: Option<u64>,
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
    fn claim(&self, id: u64) -> Option<u64> {
        self.doing().get(&id).and_then(|doing| doing.claim)
    }
}

/// What is to become of a copy that somebody looked after.
enum Fate {
    /// This process does it.
    Ours(Box<Job>),
    /// Nothing waits for it any longer, or not now.
    Over,
    /// Another node does it.
    AnothersConcern,
    /// There is no room for it on this node now.
    Waits,
}

/// Why a copy does not go on.
#[derive(Debug)]
pub enum Halted {
    /// Its resource does not wait for it any longer.
    Unwanted,
    /// It cannot succeed: as the resource will say.
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

/// Runs the background copies of a service.
#[derive(Debug)]
pub struct Copier<D> {
    pub engine: Arc<dyn Engine>,
    /// What is not in this server, if anything is to be had from there.
    pub outside: Option<Arc<dyn Outside>>,
    /// The other service of this server that is copied from.
    pub neighbour: Option<Arc<dyn SourceReader>>,
    copies: Arc<Copies>,
    destination: PhantomData<fn() -> D>,
}

impl<D> Clone for Copier<D> {
    fn clone(&self) -> Copier<D> {
        Copier {
            engine: Arc::clone(&self.engine),
            outside: self.outside.clone(),
            neighbour: self.neighbour.clone(),
            copies: Arc::clone(&self.copies),
            destination: PhantomData,
        }
    }
}

impl<D: Destination> Copier<D> {
    pub fn new(engine: Arc<dyn Engine>) -> Copier<D> {
        Copier { engine, outside: None, neighbour: None, copies: Arc::default(), destination: PhantomData }
    }

    /// Copies from elsewhere, too.
    #[must_use]
    pub fn reaching(self, outside: Arc<dyn Outside>) -> Copier<D> {
        Copier { outside: Some(outside), ..self }
    }

    /// Copies from another service of this server, too.
    #[must_use]
    pub fn copying_from(self, neighbour: Arc<dyn SourceReader>) -> Copier<D> {
        Copier { neighbour: Some(neighbour), ..self }
    }

    /// Looks after a background copy: runs it on this node unless another node does, which leaves the row to that node.
    pub async fn tend(&self, id: u64, due: &Due) -> Result<Handled, EngineError> {
        let (key, claim) = (due.key(), self.copies.claim(id));
        let (reaches_outside, reaches_neighbour) = (self.outside.is_some(), self.neighbour.is_some());
        let has_room = claim.is_some() || self.copies.has_room();
        let fate = commit::<_, Infallible, _>(&*self.engine, due.key(), move |rows, tick| {
            let mut changes = Changes::none();
            changes.delete(key.clone());
            let Some(mut job) = Job::find::<D>(rows, id)? else { return Ok(Commit { changes, outcome: Fate::Over }) };
            let destination = job.destination::<D>()?;
            let Some(mut found) = destination.find(rows, id)? else {
                if destination.may_return(rows, tick.now)? {
                    job.wait(tick);
                    job.begin::<D>(&mut changes);
                } else {
                    job.finish::<D>(&mut changes);
                }
                return Ok(Commit { changes, outcome: Fate::Over });
            };
            // What runs beside the requests is spawned by the outside, whatever is read.
            let is_possible = reaches_outside && (job.local.is_none() || reaches_neighbour);
            let why = match tick.now >= job.begun.plus_seconds(SECONDS_MAX) {
                true => Some("500 OperationCancelled \"The copy took too long.\""),
                false if !is_possible => Some("500 CannotVerifyCopySource \"This server copies only from itself.\""),
                false => None,
            };
            if let Some(why) = why {
                let failed = (CopyStatus::Failed, Some(why.to_owned()));
                end(&destination, &mut found, failed, rows, tick, &mut changes)?;
                destination.store(found, rows, &mut changes)?;
                return Ok(Commit { changes, outcome: Fate::Over });
            }
            if !has_room && job.is_left(tick) {
                job.wait(tick);
                job.begin::<D>(&mut changes);
                return Ok(Commit { changes, outcome: Fate::Waits });
            }
            if !job.take(claim, tick) {
                return Ok(Commit::unchanged(Fate::AnothersConcern));
            }
            job.begin::<D>(&mut changes);
            Ok(Commit { changes, outcome: Fate::Ours(Box::new(job)) })
        });
        match unrefused(fate.await)? {
            Fate::Ours(job) => self.pursue(*job, None),
            Fate::Over => self.abandon(id),
            Fate::Waits => {}
            Fate::AnothersConcern => {
                self.leave(id, claim);
                return Ok(Handled::Left);
            }
        }
        Ok(Handled::Done)
    }

    /// Does a copy beside the requests, unless that is being done or there is no room: then it is looked after later.
    /// `begun`: the answer of the source is already there.
    pub fn pursue(&self, job: Job, begun: Option<Fetched>) {
        let Some(outside) = &self.outside else { return };
        let mut copies = self.copies.doing();
        if copies.get(&job.id).is_some_and(|doing| doing.claim == job.claim) {
            return;
        }
        if copies.len() >= COPIES_AT_ONCE_MAX && !copies.contains_key(&job.id) {
            return;
        }
        let (copier, id, claim) = (self.clone(), job.id, job.claim);
        // What was begun as another claim ends here: somebody thought this process gone in the meantime.
        copies.insert(id, Doing { claim, _running: None });
        let running = outside.spawn(Box::pin(async move {
            copier.copy(job, begun).await;
            copier.leave(id, claim);
        }));
        copies.insert(id, Doing { claim, _running: Some(running) });
    }

    /// What was done as this claim has ended, or ends here.
    fn leave(&self, id: u64, claim: Option<u64>) {
        let mut copies = self.copies.doing();
        let ended = copies.get(&id).is_some_and(|doing| doing.claim == claim).then(|| copies.remove(&id));
        drop(copies);
        drop(ended);
    }

    /// Stops doing a copy.
    pub fn abandon(&self, id: u64) {
        let doing = self.copies.doing().remove(&id);
        drop(doing);
    }

    async fn copy(&self, job: Job, begun: Option<Fetched>) {
        let engine = &*self.engine;
        let attempt = Attempt::<D>::new(engine, job.clone());
        // What the engine could not do now stays due.
        let _ = match self.attempt(&attempt, begun).await {
            Ok(()) | Err(Halted::Unwanted | Halted::Engine) => Ok(()),
            Err(Halted::Failed(why)) => give_up::<D>(engine, job, Some(why)).await,
            Err(Halted::Broken) => give_up::<D>(engine, job, None).await,
        };
    }

    async fn attempt(&self, attempt: &Attempt<'_, D>, begun: Option<Fetched>) -> Result<(), Halted> {
        if let Some((place, reader)) = attempt.job.local.as_ref().zip(self.neighbour.as_ref())
            && attempt.share_all(place, reader).await?
        {
            return Ok(());
        }
        let is_again = begun.is_none();
        let fetched = self.fetch(&attempt.job, begun).await?;
        attempt.run(fetched, is_again).await
    }

    async fn fetch(&self, job: &Job, begun: Option<Fetched>) -> Result<Fetched, Halted> {
        let fetched = match (begun, &job.local) {
            (Some(fetched), _) => fetched,
            (None, Some(place)) => return self.fetch_here(place).await,
            (None, None) => {
                let Some(outside) = &self.outside else { return Err(Halted::Broken) };
                outside.fetch(&job.url, job.headers()).await.map_err(|error| match error.is_forbidden {
                    true => Halted::Failed(format!("500 CannotVerifyCopySource \"{}\"", error.message)),
                    false => Halted::Broken,
                })?
            }
        };
        match fetched.status {
            200 => Ok(fetched),
            // The server of the source may come to itself.
            500..=599 | 429 => Err(Halted::Broken),
            status => {
                let code = fetched.headers.get("x-ms-error-code").and_then(|code| code.to_str().ok());
                Err(failed_at_source(status, code.unwrap_or("CannotVerifyCopySource")))
            }
        }
    }

    /// A source in this server, as if another server had sent it.
    async fn fetch_here(&self, place: &LocalPlace) -> Result<Fetched, Halted> {
        let Some(reader) = &self.neighbour else { return Err(Halted::Broken) };
        let opened = open_local_in_background(&*self.engine, reader, place).await.map_err(halted)?;
        let mut headers = HeaderMap::new();
        if let Ok(etag) = HeaderValue::try_from(opened.source.etag()) {
            headers.insert(header::ETAG, etag);
        }
        Ok(Fetched { status: 200, headers, body: opened.body })
    }
}

fn failed_at_source(status: u16, code: &str) -> Halted {
    Halted::Failed(format!("{status} {code} \"Copy failed when reading the source.\""))
}

/// A source in this server that refuses will do so again.
fn halted(error: NotCommitted<ErrorReply>) -> Halted {
    match error {
        NotCommitted::Refused(refusal) => failed_at_source(refusal.status, refusal.code),
        NotCommitted::Failed(_) => Halted::Engine,
    }
}

/// Notes that a source has broken off; after some times, or if there is a reason, the copy has failed.
pub async fn give_up<D: Destination>(engine: &dyn Engine, job: Job, why: Option<String>) -> Result<(), EngineError> {
    let Ok(destination) = job.destination::<D>() else { return Ok(()) };
    let noted = commit::<_, Infallible, _>(engine, destination.partition(), move |rows, tick| {
        let mut changes = Changes::none();
        let Some((mut stored, mut found)) = job.current::<D>(rows)? else {
            return Ok(Commit { changes, outcome: () });
        };
        stored.attempts += 1;
        // Whichever node looks next may try.
        stored.claim = None;
        let exhausted = "500 CannotVerifyCopySource \"Copy failed when reading the source.\"".to_owned();
        match why.clone().or((stored.attempts >= ATTEMPTS_MAX).then_some(exhausted)) {
            Some(why) => {
                end(&destination, &mut found, (CopyStatus::Failed, Some(why)), rows, tick, &mut changes)?;
                destination.store(found, rows, &mut changes)?;
            }
            None => _ = changes.put(job_key::<D>(job.id), codec::encode(&stored)),
        }
        Ok(Commit { changes, outcome: () })
    });
    unrefused(noted.await)
}

/// Reads a row as that of a copy under way.
#[cfg(any(test, feature = "testing"))]
pub fn fuzz(row: &[u8]) {
    let _ = codec::decode::<Job>(row).is_ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of before a source could be in this server.
    #[test]
    fn jobs_of_earlier_versions_are_read() {
        #[derive(Encode)]
        #[cbor(map)]
        struct Before {
            #[n(0)]
            id: u64,
            #[n(1)]
            url: String,
            #[n(2)]
            etag: Option<String>,
            #[cbor(n(3), with = "minicbor::bytes")]
            blob: Vec<u8>,
            #[cbor(n(4), with = "codec::time")]
            begun: Timestamp,
            #[n(5)]
            attempts: u32,
            #[cbor(n(6), with = "codec::time")]
            due: Timestamp,
            #[n(7)]
            claim: Option<u64>,
            #[cbor(n(8), with = "minicbor::bytes", default)]
            content_md5: Option<Vec<u8>>,
        }
        let (url, etag, begun) = ("http://a/x".to_owned(), None, Timestamp(5));
        let before = Before {
            id: 7,
            url: url.clone(),
            etag: etag.clone(),
            blob: vec![1, 2],
            begun,
            attempts: 3,
            due: Timestamp(9),
            claim: Some(4),
            content_md5: None,
        };
        let job = Job {
            id: 7,
            url,
            etag,
            destination: vec![1, 2],
            begun,
            attempts: 3,
            due: Timestamp(9),
            claim: Some(4),
            content_md5: None,
            local: None,
        };
        assert_eq!(codec::decode::<Job>(&codec::encode(&before)), Ok(job));
    }
}
