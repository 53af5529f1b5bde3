//! The background threads: spare logs, flushes, the retirement of logs, compaction, collection, a look at the free space.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use engine::EngineError;

use crate::collect::{self, Failure, Pace};
use crate::disk::is_out_of_files;
use crate::folder::KnownLog;
use crate::probe::Moment;
use crate::segment::{Segment, SegmentKind};
use crate::sync::{self, AtomicBool, AtomicU64, Condvar, Instant, JoinHandle, Mutex, MutexGuard};
use crate::{Inner, supervise};

/// The first spare log is small, so that a new folder is too; each next one is larger, up to the limit.
const FIRST_SPARE_BYTES: u64 = 4 << 20;
const GROWTH: u64 = 4;
const IDLE: Duration = Duration::from_millis(500);
/// How often the collector looks when there is nothing to do, and at least between two rounds.
const COLLECT_EVERY: Duration = Duration::from_secs(2);
const COLLECT_AGAIN: Duration = Duration::from_millis(100);
/// Compaction that fails is tried again after this long at most: writers are slowed down until it works.
const COMPACTION_REST_MAX: Duration = Duration::from_secs(60);
/// How often a failure that repeats is logged again.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// A log that takes no more batches. It can go (or serve as plain data) once its rows are in the tree's files.
#[derive(Clone, Debug)]
pub struct EndedLog {
    pub log: Arc<Segment>,
    pub length: u64,
    pub next_log: u64,
    pub next_batch: u64,
    pub last_seq: u64,
    pub stamp: u64,
}

/// The state that the background threads share.
#[derive(Debug, Default)]
pub struct Signals {
    state: Mutex<SignalState>,
    wake: Condvar,
    log_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct SignalState {
    first_log: Option<(Arc<Segment>, u64)>,
    spare: Option<Arc<Segment>>,
    /// A spare that STATE does not list yet.
    unlisted: Option<Arc<Segment>>,
    ended: Vec<EndedLog>,
}

impl Signals {
    pub fn new(first_log: Arc<Segment>, next_batch: u64, replayed: Vec<EndedLog>) -> Signals {
        let state = SignalState { first_log: Some((first_log, next_batch)), ended: replayed, ..SignalState::default() };
        Signals { state: Mutex::new(state), wake: Condvar::new(), log_bytes: AtomicU64::new(FIRST_SPARE_BYTES) }
    }

    fn lock(&self) -> MutexGuard<'_, SignalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log to begin with and the number of its first batch.
    pub fn take_first_log(&self) -> (Arc<Segment>, u64) {
        self.lock().first_log.take().expect("the pipeline starts once")
    }

    pub fn take_spare(&self) -> Option<Arc<Segment>> {
        let spare = self.lock().spare.take();
        self.wake.notify_all();
        spare
    }

    pub fn log_ended(&self, ended: EndedLog) {
        self.lock().ended.push(ended);
        self.wake.notify_all();
    }

    /// Under the lock, so that a thread that is about to wait does not miss it.
    pub fn wake_all(&self) {
        let _state = self.lock();
        self.wake.notify_all();
    }

    /// Waits for something to do, unless it is there already.
    fn wait(&self, stopping: &AtomicBool, is_something_to_do: impl FnOnce(&SignalState) -> bool) {
        let state = self.lock();
        if !stopping.load(Ordering::Acquire) && !is_something_to_do(&state) {
            drop(self.wake.wait_timeout(state, IDLE));
        }
    }

    /// Waits for this long, or until the engine closes.
    fn pause(&self, stopping: &AtomicBool, pause: Duration) {
        let began = Instant::now();
        while let Some(left) = pause.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
            let state = self.lock();
            if stopping.load(Ordering::Acquire) {
                return;
            }
            drop(self.wake.wait_timeout(state, left));
        }
    }
}

/// The flusher and the compactor: they are needed until everything is decided and written.
pub fn start(inner: &Arc<Inner>) -> io::Result<Vec<JoinHandle<()>>> {
    Ok(vec![supervise(inner, "flusher", flusher)?, supervise(inner, "compactor", compactor)?])
}

/// The collector. It waits for the threads that commit, so it has a thread of its own, which none of them waits for.
pub fn start_collector(inner: &Arc<Inner>) -> io::Result<JoinHandle<()>> {
    supervise(inner, "collector", collector)
}

/// Throttles the log of a failure that may repeat: it is logged at once, and then once in a while.
#[derive(Default)]
struct Repeated {
    said: Option<Instant>,
    unsaid: u64,
}

impl Repeated {
    /// `Some`: log it, with how many times it has happened since it was last logged. `None`: not yet.
    fn due(&mut self) -> Option<u64> {
        self.unsaid += 1;
        if self.said.is_some_and(|said| said.elapsed() < SAY_EVERY) {
            return None;
        }
        self.said = Some(Instant::now());
        Some(std::mem::take(&mut self.unsaid))
    }

    fn failed(&mut self, what: &str, error: &io::Error) {
        if let Some(times) = self.due() {
            tracing::warn!(%error, what, times, "failed in the background; it will be tried again");
        }
    }
}

fn flusher(inner: &Arc<Inner>) {
    let (mut looking, mut making, mut flushing) = (Repeated::default(), Repeated::default(), Repeated::default());
    while !inner.stopping.load(Ordering::Acquire) {
        let _ = inner.options.probe.at(Moment::Flusher);
        inner.look_at_space();
        look_at_folder(inner, &mut looking);
        let made = make_spare(inner);
        let flushed = flush_ended(inner);
        for (repeated, what, result) in
            [(&mut making, "making a log segment", made), (&mut flushing, "writing rows out", flushed)]
        {
            if let Err(error) = result {
                repeated.failed(what, &error);
                sync::sleep(IDLE);
            }
        }
        inner.background.wait(&inner.stopping, |state| state.spare.is_none() || !state.ended.is_empty());
    }
}

/// Keeps one log segment ready, written out with zeroes, so that a full log costs its writers nothing.
fn make_spare(inner: &Inner) -> io::Result<()> {
    if inner.background.lock().spare.is_some() {
        return Ok(());
    }
    let unlisted = inner.background.lock().unlisted.clone();
    let log = match unlisted {
        Some(log) => log,
        None => {
            // On a full disk the next log is for deletes alone.
            let wanted = inner.background.log_bytes.load(Ordering::Relaxed).min(inner.options.log_bytes);
            let bytes = if inner.space.is_full() { FIRST_SPARE_BYTES } else { inner.space.log_bytes(wanted) };
            let log = new_log(inner, bytes)?;
            inner.background.log_bytes.store(bytes.saturating_mul(GROWTH), Ordering::Relaxed);
            log
        }
    };
    // STATE knows of a log before anything can be acknowledged from it, so it is missed if it is lost. If STATE cannot be
    // written the log stays where it is, because the new STATE may have reached the disk after all.
    inner.background.lock().unlisted = Some(Arc::clone(&log));
    let known = KnownLog { id: log.id, end: None };
    inner.folder.change_state(|state| state.logs.get_or_insert_default().push(known))?;
    let mut state = inner.background.lock();
    state.unlisted = None;
    state.spare = Some(log);
    Ok(())
}

fn new_log(inner: &Inner, bytes: u64) -> io::Result<Arc<Segment>> {
    let id = inner.next_segment.fetch_add(1, Ordering::AcqRel);
    let made = Segment::create(&inner.folder, id, SegmentKind::Log, bytes);
    if made.as_ref().is_err_and(is_full) {
        inner.space.was_full();
    }
    let log = Arc::new(made?);
    inner.segments.insert(Arc::clone(&log));
    Ok(log)
}

pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

/// The error for the client after a failure of the disk. Without a free file descriptor the engine is only busy: the client can
/// come again.
pub fn unavailable(doing: &str, error: &io::Error) -> EngineError {
    match is_out_of_files(error) {
        true => EngineError::Busy,
        false => EngineError::Unavailable(format!("{doing}: {error}")),
    }
}

/// Writes out what the ended logs hold, then lets the logs go, oldest first.
fn flush_ended(inner: &Inner) -> io::Result<()> {
    // Memtables are sealed before their log is listed here, and hold durable rows only.
    let ended: Vec<EndedLog> = inner.background.lock().ended.clone();
    let Some(last) = ended.last() else { return Ok(()) };
    if !inner.has_room_for(inner.tree.sealed_bytes()) {
        return Err(io::Error::new(io::ErrorKind::StorageFull, "there is no room to write rows out"));
    }
    inner.tree.flush()?;
    inner.folder.change_state(|state| {
        state.replay_segment = last.next_log;
        state.replay_batch = last.next_batch;
        state.seq_floor = last.last_seq;
        state.stamp_floor = last.stamp;
        state.durable_batch = last.next_batch.saturating_sub(1);
        state.in_tree = last.next_batch;
        state.logs.get_or_insert_default().retain(|known| ended.iter().all(|ended| ended.log.id != known.id));
    })?;
    for ended in ended {
        ended.log.cut(ended.length)?;
        ended.log.seal();
        // Only now: what fails before is tried again.
        inner.background.lock().ended.remove(0);
    }
    Ok(())
}

/// Open files can be written to although they were removed: the writes would succeed, and be lost with the process.
fn look_at_folder(inner: &Inner, repeated: &mut Repeated) {
    let in_place = inner.folder.is_in_place().unwrap_or_else(|error| {
        repeated.failed("looking at the data folder", &error);
        !inner.folder_gone.load(Ordering::Acquire)
    });
    if inner.folder_gone.swap(!in_place, Ordering::AcqRel) == in_place {
        let folder = inner.folder.path().display();
        if in_place {
            tracing::warn!(%folder, "the data folder is back in its place; writes are taken again");
        } else {
            tracing::error!(%folder, "the data folder was removed or moved; no writes are taken any more");
        }
    }
}

fn compactor(inner: &Arc<Inner>) {
    let (mut compacting, mut cleaning, mut removing) = (Repeated::default(), Repeated::default(), Repeated::default());
    let mut failure = Failure::default();
    while !inner.stopping.load(Ordering::Acquire) {
        let _ = inner.options.probe.at(Moment::Compactor);
        let mut changed = false;
        if let Err(error) = inner.tree.remove_unfinished() {
            removing.failed("removing unfinished tables of rows", &error);
        }
        let room = inner.look_at_space();
        if !failure.is_resting(COMPACTION_REST_MAX) {
            match inner.tree.compact(room, inner.space.is_full()) {
                Ok(more) => {
                    failure = Failure::default();
                    changed |= more;
                }
                Err(error) => {
                    compacting.failed("compaction", &error);
                    // A block that cannot be read will not be read the next time either, and each try writes much. A disk
                    // that is full may have room soon.
                    if !is_full(&error) {
                        failure.happened();
                    }
                }
            }
        }
        if let Err(error) = inner.tree.maintain() {
            cleaning.failed("removing old versions of the rows", &error);
        }
        if !changed {
            inner.background.wait(&inner.stopping, |_| false);
        }
    }
}

fn collector(inner: &Arc<Inner>) {
    let mut pause = COLLECT_EVERY;
    loop {
        inner.background.pause(&inner.closing, pause);
        if inner.closing.load(Ordering::Acquire) || inner.pipeline.is_broken() {
            return;
        }
        let _ = inner.options.probe.at(Moment::Collector);
        let more = inner.options.collects && collect::run(inner, Pace::Gentle);
        pause = if more { COLLECT_AGAIN } else { COLLECT_EVERY };
    }
}

/// The last steps of an orderly stop: everything is in the tree's files and the log is empty.
pub fn finish(inner: &Inner) -> io::Result<()> {
    if inner.pipeline.is_broken() {
        return Ok(());
    }
    let (log, length, next_batch) = inner.pipeline.log_end();
    inner.tree.rotate(next_batch);
    inner.tree.flush()?;
    inner.folder.change_state(|state| {
        // No segment has this number yet: there is nothing to replay.
        state.replay_segment = inner.next_segment.load(Ordering::Acquire);
        state.replay_batch = next_batch;
        state.seq_floor = inner.tree.published();
        state.stamp_floor = inner.stamps.last().0;
        state.durable_batch = next_batch.saturating_sub(1);
        state.in_tree = next_batch;
        state.logs = Some(Vec::new());
    })?;
    // From here on the log is a data segment like others, or nothing.
    if let Some(log) = log {
        log.cut(length)?;
    }
    let mut state = inner.background.lock();
    for unused in [state.spare.take(), state.unlisted.take()].into_iter().flatten() {
        inner.segments.remove(unused.id);
        inner.folder.disk().remove_file(unused.path())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_counted() {
        let mut repeated = Repeated::default();
        assert_eq!([repeated.due(), repeated.due(), repeated.due()], [Some(1), None, None]);
        repeated.said = None;
        assert_eq!(repeated.due(), Some(3));
    }

    #[cfg(unix)]
    #[test]
    fn out_of_file_descriptors_means_come_again() {
        for code in [23, 24] {
            let error = io::Error::from_raw_os_error(code);
            assert!(matches!(unavailable("storing bytes", &error), EngineError::Busy), "{error}");
        }
        let broken = io::Error::from_raw_os_error(5);
        assert!(matches!(unavailable("storing bytes", &broken), EngineError::Unavailable(_)));
    }
}
