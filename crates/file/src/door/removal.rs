//! Deleting what SMB has marked for deletion, now that its last handle is closed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::{Changes, Commit, Engine, EngineError};
use tokio::sync::Notify;
use wire::file_path::FoldedName;
use wire::fold::fold;
use wire::names::ShareName;

use crate::Failure;
use crate::announcement::{Announcement, Effect};
use crate::change::remove;
use crate::error::FileError;
use crate::model::share_key;
use crate::opens::events::{Aspects, Events};
use crate::opens::{FileId, NameKey, Opens, Place, Removal};
use crate::owner::shares::TreeHold;

/// How long an abandoned file rests after the first attempt that failed; twice as long after each further one.
pub const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// And never longer. It is never given up while the engine may recover: the file would be there again.
pub const RETRY_PAUSE_MAX: Duration = Duration::from_secs(10 * 60);

/// What is needed to delete a file.
#[derive(Clone, Copy, Debug)]
pub struct Remover<'a> {
    pub engine: &'a dyn Engine,
    pub opens: &'a Opens,
    pub events: &'a Events,
    pub abandoned: &'a Arc<Abandoned>,
    /// Of the share, in the term in which SMB was served. `None` on a server that is alone.
    pub hold: Option<&'a Arc<TreeHold>>,
}

impl Remover<'_> {
    /// A file that is to be deleted. It is not forgotten: dropped before [`Remover::remove`] has deleted it, it is abandoned.
    pub fn due(self, account: u64, share: &ShareName, removal: Removal) -> Due {
        let file = AbandonedFile { account, share: share.clone(), removal, attempts: 0, hold: self.hold.cloned() };
        self.abandoned.begun(file, &mut self.abandoned.files())
    }

    /// Deletes the file, wherever it is by now. It stays pending until that is done. If the engine cannot do it now, or if the
    /// future is dropped, the file is abandoned: it is deleted in the background.
    pub async fn remove(self, due: Due) -> Result<(), Failure> {
        let Some(Deletion { account, share, file, place, .. }) = due.deletion() else { return Ok(()) };
        // Whoever opens the file looks at its row first and then at the table, where it is pending until its row is gone. The turn
        // keeps both together.
        let turn = match name_of(&place, file.share) {
            Some(name) => Some(self.opens.turn_to_remove(name).await),
            None => None,
        };
        let (due, turn) = (Arc::new(due), Arc::new(turn));
        let announcement = Arc::new(Announcement::new(self.events));
        let (deciding, name) = (Arc::clone(&announcement), share.clone());
        let names: Vec<String> = place.path.split('/').map(str::to_owned).collect();
        let above: Vec<u64> = place.above.iter().rev().copied().collect();
        let folded = FoldedName::stored(&fold(names.last().map_or("", String::as_str)));
        let held = (Arc::clone(&due), Arc::clone(&turn));
        let removed = engine::commit::<(), FileError, _>(self.engine, share_key(account, &share), move |rows, tick| {
            let _held = &held;
            let mut changes = Changes::none();
            let removed = remove::closed(rows, account, &name, (file, (&above, &folded)), tick, &mut changes)?;
            deciding.decided(|| {
                let event = removed.and_then(|spot| {
                    let is_directory = spot.node.as_ref().is_some_and(|node| node.is_directory());
                    Effect::Removed(Aspects::name_of(is_directory)).event(&spot, &names)
                });
                event.into_iter().collect()
            });
            Ok(Commit { changes, outcome: () })
        });
        let result = removed.await.map_err(Failure::from);
        match &result {
            Ok(()) => announcement.publish(),
            Err(_) => announcement.forget(),
        }
        if !result.as_ref().is_err_and(is_passing) {
            due.settled();
        }
        // Not before the watchers know: the next one at the name may create a file there.
        drop(turn);
        result
    }
}

/// Whether it may work later.
pub fn is_passing(failure: &Failure) -> bool {
    match failure {
        Failure::Failed(EngineError::Busy | EngineError::Full | EngineError::Closed | EngineError::Unavailable(_)) => {
            true
        }
        // The file is the business of another node now.
        Failure::Failed(EngineError::Corrupt(_) | EngineError::TooLarge { .. } | EngineError::Elsewhere { .. })
        | Failure::Refused(_)
        | Failure::Body(_) => false,
    }
}

/// A file that is to be deleted now. Dropped before it is settled, it is abandoned: a commit that nobody waited for may have
/// deleted it or not.
#[derive(Debug)]
#[must_use = "the file is to be deleted"]
pub struct Due {
    abandoned: Arc<Abandoned>,
    file: Mutex<Option<AbandonedFile>>,
}

/// Which file, and where.
pub struct Deletion {
    pub account: u64,
    pub share: ShareName,
    file: FileId,
    pub place: Place,
    /// As in [`AbandonedFile`].
    pub attempts: u32,
    pub hold: Option<Arc<TreeHold>>,
}

impl Due {
    pub fn deletion(&self) -> Option<Deletion> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.as_ref().map(|AbandonedFile { account, share, removal, attempts, hold }| Deletion {
            account: *account,
            share: share.clone(),
            file: removal.file(),
            place: removal.place().clone(),
            attempts: *attempts,
            hold: hold.clone(),
        })
    }

    /// It is deleted, or cannot be. It is no longer pending.
    fn settled(&self) {
        drop(self.take());
    }

    fn take(&self) -> Option<AbandonedFile> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        let file = self.take();
        let mut files = self.abandoned.files();
        files.under_way -= 1;
        // Counted by one or the other at any time.
        self.abandoned.put(file, files);
    }
}

/// The name that openers of a place take their turn at.
fn name_of(place: &Place, share: u64) -> Option<NameKey> {
    let directory = place.above.first().copied().unwrap_or(share);
    let name = place.path.rsplit('/').next()?;
    Some(NameKey { directory, folded: fold(name).into_owned().into() })
}

/// Files to be deleted that nobody deletes yet: their last handle was dropped instead of closed, or the engine could not do it.
#[derive(Debug, Default)]
pub struct Abandoned {
    files: Mutex<Files>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Files {
    /// To be deleted at once.
    queue: VecDeque<AbandonedFile>,
    /// Those of which an attempt failed, each with the time of its next one once that is known.
    resting: Vec<(AbandonedFile, Option<Instant>)>,
    /// How many [`Due`] there are.
    under_way: usize,
}

#[derive(Debug)]
pub struct AbandonedFile {
    pub account: u64,
    pub share: ShareName,
    pub removal: Removal,
    /// Attempts in the background that have begun.
    pub attempts: u32,
    /// Keeps the mark of the share, and says in which term the file was to be deleted: not in a later one.
    pub hold: Option<Arc<TreeHold>>,
}

impl Abandoned {
    /// Has the file deleted in the background: at once, or after a rest if that was tried before.
    pub fn add(&self, file: AbandonedFile) {
        self.put(Some(file), self.files());
    }

    fn put(&self, file: Option<AbandonedFile>, mut files: MutexGuard<'_, Files>) {
        match file {
            None => {}
            Some(file) if file.attempts > 0 => files.resting.push((file, None)),
            Some(file) => {
                files.queue.push_back(file);
                drop(files);
                self.arrived.notify_one();
            }
        }
    }

    /// A file that is to be deleted now.
    fn begun(self: &Arc<Self>, file: AbandonedFile, files: &mut Files) -> Due {
        files.under_way += 1;
        Due { abandoned: Arc::clone(self), file: Mutex::new(Some(file)) }
    }

    /// Ends the rest of those whose time has come. The rest of one that was not seen resting before begins now.
    pub fn wake(&self, now: Instant) {
        self.wake_where(|attempts, until| now >= *until.get_or_insert(now + retry_pause(attempts)));
    }

    /// Ends the rest of all.
    pub fn wake_all(&self) {
        self.wake_where(|_, _| true);
    }

    fn wake_where(&self, is_over: impl Fn(u32, &mut Option<Instant>) -> bool) {
        let mut files = self.files();
        let Files { queue, resting, .. } = &mut *files;
        queue.extend(resting.extract_if(.., |(file, until)| is_over(file.attempts, until)).map(|(file, _)| file));
        let is_any = !queue.is_empty();
        drop(files);
        if is_any {
            self.arrived.notify_one();
        }
    }

    /// The one that has been there for longest, when there is one. If it cannot be deleted now it rests before the next attempt.
    pub async fn next(self: &Arc<Self>) -> Due {
        loop {
            let (due, is_more) = {
                let mut files = self.files();
                let file = files.queue.pop_front();
                let again = file.map(|file| AbandonedFile { attempts: file.attempts.saturating_add(1), ..file });
                (again.map(|file| self.begun(file, &mut files)), !files.queue.is_empty())
            };
            if is_more {
                // Two that arrive at once may have woken only one of those who wait.
                self.arrived.notify_one();
            }
            match due {
                Some(due) => return due,
                None => self.arrived.notified().await,
            }
        }
    }

    /// Whether a deletion is under way or is to begin at once.
    pub fn is_at_work(&self) -> bool {
        let files = self.files();
        !files.queue.is_empty() || files.under_way > 0
    }

    /// Whether a file rests.
    #[cfg(test)]
    pub fn has_resting(&self) -> bool {
        !self.files().resting.is_empty()
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a file rests after so many attempts.
pub fn retry_pause(attempts: u32) -> Duration {
    let doubled = 1u32.checked_shl(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
    RETRY_PAUSE.saturating_mul(doubled).min(RETRY_PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attempt_is_followed_by_a_longer_rest() {
        for (attempts, seconds) in [(1, 1), (2, 2), (3, 4), (10, 512), (11, 600), (40, 600), (u32::MAX, 600)] {
            assert_eq!(retry_pause(attempts), Duration::from_secs(seconds), "{attempts}");
        }
    }
}
