//! Files that are read again while the server runs: on SIGHUP, when they change, and where it must not be a moment too
//! late, at a glance before each use.
//!
//! A file that cannot be used changes nothing: what was read before goes on, and the log says so. It is tried again until
//! it can be used: it may be that the file is fine and only reading it failed, for want of a file descriptor, and then a key
//! that was taken away must not stay good.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

/// How often the files are looked at without a signal.
const PAUSE: Duration = Duration::from_secs(1);
/// A glance is good for this long: many requests come in a millisecond, and each would ask the system the same.
const GLANCE_GOOD_FOR: Duration = Duration::from_millis(1);
/// This long after a file was written every server goes by it.
pub const SEEN_AFTER: Duration = Duration::from_millis(10);
/// The times of files go in steps, of some milliseconds on many systems: one that was just written can be written again
/// and look the same. So it counts as seen only when it is older than this.
const SETTLED_AFTER: Duration = Duration::from_millis(50);
/// A file that could not be used is tried again after this long, though it looks the same.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Something that was made from files and can be made from them again.
pub struct Reload {
    paths: Vec<PathBuf>,
    began: Instant,
    /// When the last glance was taken, in nanoseconds after `began`.
    glanced: AtomicU64,
    seen: RwLock<Seen>,
    again: Mutex<Again>,
}

/// Files as they were at some time.
pub struct Files {
    paths: Vec<PathBuf>,
    seen: Seen,
}

struct Seen {
    stamps: Vec<Option<Stamp>>,
    /// Whether every later change will show.
    is_settled: bool,
    /// When they could not be read, or not be used.
    failed: Option<Instant>,
}

struct Again {
    read: Box<dyn FnMut() -> Result<(), String> + Send>,
    /// What the log was told of these very files.
    said: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Change,
    Wish,
}

impl Files {
    /// To be called before the files are read for the first time: what changes in between is noticed then.
    pub fn now<'a>(files: impl IntoIterator<Item = &'a Path>) -> Files {
        let paths: Vec<PathBuf> = files.into_iter().map(Path::to_path_buf).collect();
        Files { seen: Seen::of(&paths), paths }
    }
}

impl Seen {
    fn of(paths: &[PathBuf]) -> Seen {
        let stamps: Vec<Option<Stamp>> = paths.iter().map(|path| stamp(path)).collect();
        let is_settled = stamps.iter().flatten().all(Stamp::is_settled);
        Seen { stamps, is_settled, failed: None }
    }
}

impl Reload {
    /// `again` reads the files and puts what they say into effect, or says in a sentence why it cannot.
    pub fn new(files: Files, again: impl FnMut() -> Result<(), String> + Send + 'static) -> Reload {
        let again = Again { read: Box::new(again), said: None };
        Reload {
            paths: files.paths,
            began: Instant::now(),
            glanced: AtomicU64::new(0),
            seen: RwLock::new(files.seen),
            again: Mutex::new(again),
        }
    }

    /// What is in effect when this returns is what the files said at this time, or [`GLANCE_GOOD_FOR`] earlier. To be
    /// called before each use: it is a look at the clock, seldom one at the files, and nobody waits for anybody unless
    /// there is something to read.
    pub fn glance(&self) {
        let now = self.began.elapsed().as_nanos() as u64;
        let last = self.glanced.load(Ordering::Acquire);
        if last != 0 && now.saturating_sub(last) < GLANCE_GOOD_FOR.as_nanos() as u64 {
            return;
        }
        self.look();
        // When it began: what was written while we looked may not have been seen.
        self.glanced.fetch_max(now, Ordering::Release);
    }

    /// Reads the files if they have changed. When this returns, what is in effect is what they said at some time after
    /// the call.
    pub fn look(&self) {
        if self.have_changed(&Seen::of(&self.paths)) {
            self.read(Cause::Change);
        }
    }

    fn have_changed(&self, now: &Seen) -> bool {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        let is_owed = seen.failed.is_some_and(|at| at.elapsed() >= RETRY_PAUSE);
        !seen.is_settled || seen.stamps != now.stamps || is_owed
    }

    fn read(&self, cause: Cause) {
        let mut again: MutexGuard<'_, Again> = self.again.lock().unwrap_or_else(PoisonError::into_inner);
        // Looked at before they are read: what is written meanwhile is a change that is still to come.
        let mut now = Seen::of(&self.paths);
        if cause == Cause::Change && !self.have_changed(&now) {
            return;
        }
        let are_others = self.seen.read().unwrap_or_else(PoisonError::into_inner).stamps != now.stamps;
        let is_news = are_others || cause == Cause::Wish;
        let outcome = (again.read)();
        match outcome {
            Ok(()) if is_news || again.said.is_some() => {
                again.said = None;
                self.paths.iter().for_each(|path| tracing::info!("{} was read again", path.display()));
            }
            Ok(()) => {}
            Err(sentence) => {
                if is_news || again.said.as_ref() != Some(&sentence) {
                    tracing::warn!("{sentence} What was read before stays in effect.");
                }
                again.said = Some(sentence);
                now.failed = Some(Instant::now());
            }
        }
        // Last: a reader that finds the files marked as seen relies on what was read.
        *self.seen.write().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

/// Looks after the files until the other end of `asked` is gone. Reading may take long where files are far away, so this
/// has a thread of its own.
pub fn watch(reloads: Vec<Arc<Reload>>, asked: Receiver<()>) -> std::io::Result<()> {
    let look_after = move || {
        loop {
            match asked.recv_timeout(PAUSE) {
                Ok(()) => reloads.iter().for_each(|reload| reload.read(Cause::Wish)),
                Err(RecvTimeoutError::Timeout) => reloads.iter().for_each(|reload| reload.look()),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    };
    std::thread::Builder::new().name("reload".into()).spawn(look_after).map(drop)
}

/// What differs when a file was written or another one took its place.
#[derive(PartialEq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    #[cfg(unix)]
    inode: u64,
}

impl Stamp {
    fn is_settled(&self) -> bool {
        // A time that is still to come tells nothing: somebody's clock is wrong.
        let age = self.modified.and_then(|modified| modified.elapsed().ok());
        age.is_none_or(|age| age >= SETTLED_AFTER)
    }
}

/// `None`: there is nothing, or nothing we may see.
fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(Stamp {
        modified: metadata.modified().ok(),
        length: metadata.len(),
        #[cfg(unix)]
        inode: std::os::unix::fs::MetadataExt::ino(&metadata),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    struct TestFolder(PathBuf);

    impl TestFolder {
        fn new(name: &str) -> TestFolder {
            let place = TestFolder(std::env::temp_dir().join(format!("lazurite-reload-{name}-{}", std::process::id())));
            let _ = std::fs::remove_file(&place.0);
            place
        }

        fn files(&self) -> Files {
            Files::now([self.0.as_path()])
        }

        fn write(&self, text: &str) {
            std::fs::write(&self.0, text).unwrap();
        }

        /// As if it had been written long ago.
        fn settle(&self) {
            let file = std::fs::File::options().write(true).open(&self.0).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(10)).unwrap();
        }
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn counting(place: &TestFolder) -> (Reload, Arc<AtomicU32>) {
        let count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&count);
        let reload = Reload::new(place.files(), move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        (reload, count)
    }

    #[test]
    fn read_again_when_changed_or_asked_and_not_otherwise() {
        let place = TestFolder::new("changes");
        let (reload, count) = counting(&place);
        let look = || {
            reload.look();
            count.load(Ordering::Relaxed)
        };
        assert_eq!(look(), 0);
        place.write("one");
        place.settle();
        assert_eq!(look(), 1);
        assert_eq!(look(), 1);
        reload.read(Cause::Wish);
        assert_eq!(look(), 2);
        place.write("other");
        place.settle();
        assert_eq!(look(), 3);
        std::fs::remove_file(&place.0).unwrap();
        assert_eq!(look(), 4);
        assert_eq!(look(), 4);
    }

    /// As when there was no file descriptor left for it.
    #[test]
    fn what_could_not_be_read_is_tried_again_though_the_file_stays_the_same() {
        let place = TestFolder::new("retries");
        let (failures, in_effect) = (Arc::new(AtomicU32::new(2)), Arc::new(AtomicU32::new(0)));
        let (left, set) = (Arc::clone(&failures), Arc::clone(&in_effect));
        let reload = Reload::new(place.files(), move || {
            if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                return Err("Too many open files.".into());
            }
            set.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        place.write("one");
        place.settle();
        let began = Instant::now();
        while in_effect.load(Ordering::SeqCst) == 0 {
            reload.glance();
            assert!(began.elapsed() < Duration::from_secs(10), "it is never read again");
        }
        assert_eq!(failures.load(Ordering::SeqCst), 0);
        std::thread::sleep(2 * RETRY_PAUSE);
        reload.look();
        assert_eq!(in_effect.load(Ordering::SeqCst), 1, "what was read is not read again");
    }

    #[test]
    fn one_that_was_just_written_is_not_trusted_to_stay() {
        let place = TestFolder::new("settles");
        place.write("one");
        let (reload, count) = counting(&place);
        reload.look();
        assert_eq!(count.load(Ordering::Relaxed), 1, "it may have been written after it was seen");
        let began = Instant::now();
        while reload.have_changed(&Seen::of(&reload.paths)) {
            reload.look();
            assert!(began.elapsed() < Duration::from_secs(10));
        }
        let settled = count.load(Ordering::Relaxed);
        reload.look();
        assert_eq!(count.load(Ordering::Relaxed), settled);
    }

    #[test]
    fn whoever_looks_after_a_change_finds_it() {
        let place = TestFolder::new("threads");
        place.write("0");
        let value = Arc::new(AtomicU32::new(0));
        let (set, path) = (Arc::clone(&value), place.0.clone());
        let reload = Reload::new(place.files(), move || {
            let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
            set.store(text.parse().map_err(|_| "Half of it.".to_owned())?, Ordering::SeqCst);
            Ok(())
        });
        let written = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let least = written.load(Ordering::SeqCst);
                        reload.glance();
                        let found = value.load(Ordering::SeqCst);
                        assert!(found >= least, "{found} after {least} was written");
                        if least == 200 {
                            return;
                        }
                    }
                });
            }
            for number in 1..=200 {
                let next = place.0.with_extension("next");
                std::fs::write(&next, number.to_string()).unwrap();
                std::fs::rename(&next, &place.0).unwrap();
                std::thread::sleep(SEEN_AFTER);
                written.store(number, Ordering::SeqCst);
            }
        });
    }
}
