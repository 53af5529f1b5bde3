//! Changes of directories, for SMB clients that watch them (CHANGE_NOTIFY).
//!
//! The service publishes an [`Event`] when a change is durable, whether REST or SMB made it. Nothing is stored: all
//! changes of a share that SMB uses pass through one process. A watcher that does not keep up loses the single events and
//! is told so; publishing never waits.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::Notify;

use super::Opens;

/// Events kept for a watcher between two of its requests; one more and all of them are dropped for an overflow.
pub const EVENTS_PER_WATCHER_MAX: usize = 1_024;
/// Room for those events. Deep directories make large ones.
pub const EVENT_BYTES_PER_WATCHER_MAX: usize = 128 * 1024;
/// Watchers of one directory: as many as its handles may be.
pub const WATCHERS_PER_DIRECTORY_MAX: usize = super::OPENS_PER_ROOT_MAX;

/// What of a file or directory changed, and what a watcher wants to know: the completion filter of SMB.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Aspects(pub u32);

impl Aspects {
    pub const FILE_NAME: Aspects = Aspects(0x1);
    pub const DIRECTORY_NAME: Aspects = Aspects(0x2);
    pub const ATTRIBUTES: Aspects = Aspects(0x4);
    pub const SIZE: Aspects = Aspects(0x8);
    pub const LAST_WRITE: Aspects = Aspects(0x10);
    pub const LAST_ACCESS: Aspects = Aspects(0x20);
    pub const CREATION: Aspects = Aspects(0x40);
    pub const SECURITY: Aspects = Aspects(0x100);

    /// What of a file changes when bytes of it are written.
    pub const BYTES: Aspects = Aspects(Aspects::SIZE.0 | Aspects::LAST_WRITE.0);
    /// Attributes, times and permission.
    pub const PROPERTIES: Aspects =
        Aspects(Aspects::ATTRIBUTES.0 | Aspects::LAST_WRITE.0 | Aspects::CREATION.0 | Aspects::SECURITY.0);

    pub const fn name_of(is_directory: bool) -> Aspects {
        if is_directory { Aspects::DIRECTORY_NAME } else { Aspects::FILE_NAME }
    }

    #[must_use]
    pub const fn and(self, other: Aspects) -> Aspects {
        Aspects(self.0 | other.0)
    }

    pub const fn meets(self, other: Aspects) -> bool {
        self.0 & other.0 != 0
    }
}

/// What happened to a name in a directory. A move to another directory is two events, one removed and one added.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    Added { name: String },
    Removed { name: String },
    Modified { name: String },
    Renamed { from: String, to: String },
}

/// A directory above the one in which something happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Above {
    pub directory: u64,
    /// The name in it that leads down.
    pub child: String,
}

/// A change in a directory.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Event {
    pub directory: u64,
    /// The directories above it, the nearest first and the root last.
    pub above: Vec<Above>,
    pub action: Action,
    pub aspects: Aspects,
}

impl Event {
    /// What happened to a name: `above` are the ids of the directories above it, from the root down, and `names` the path from the root
    /// to it. Nothing for the root, which is in no directory.
    pub fn at<N: AsRef<str>>(above: &[u64], names: &[N], action: Action, aspects: Aspects) -> Option<Event> {
        let (directory, higher) = above.split_last()?;
        let above = higher.iter().zip(names).rev();
        let above = above.map(|(id, name)| Above { directory: *id, child: name.as_ref().to_owned() }).collect();
        Some(Event { directory: *directory, above, action, aspects })
    }

    /// The room that it takes.
    fn bytes(&self) -> usize {
        let names = match &self.action {
            Action::Added { name } | Action::Removed { name } | Action::Modified { name } => name.len(),
            Action::Renamed { from, to } => from.len() + to.len(),
        };
        let above: usize = self.above.iter().map(|above| size_of::<Above>() + above.child.len()).sum();
        size_of::<Event>() + names + above
    }

    /// The names that lead from `directory` to the one in which it happened: none for itself, nothing if it is neither
    /// that nor above.
    pub fn path_from(&self, directory: u64) -> Option<Vec<&str>> {
        if directory == self.directory {
            return Some(Vec::new());
        }
        let found = self.above.iter().position(|above| above.directory == directory)?;
        Some(self.above[..=found].iter().rev().map(|above| above.child.as_str()).collect())
    }
}

/// What a watcher is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// All that happened since the last notice, in order; at least one.
    Events(Vec<Arc<Event>>),
    /// Too much happened: the client reads the directory anew.
    Overflow,
    /// The directory is to be deleted when its last handle closes, and the watcher's may be that one.
    DeletePending,
}

/// The directory has too many watchers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TooManyWatchers;

/// Who watches which directory. A clone is the same hub.
#[derive(Clone, Debug, Default)]
pub struct Events {
    hub: Arc<Hub>,
}

#[derive(Debug, Default)]
struct Hub {
    /// By directory. Publishing only reads it.
    watches: RwLock<HashMap<u64, Vec<Arc<Watch>>>>,
    count: AtomicUsize,
    /// Who will watch a directory has it open before.
    opens: Option<Opens>,
}

#[derive(Debug)]
struct Watch {
    directory: u64,
    is_recursive: bool,
    filter: Aspects,
    kept: Mutex<Kept>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<Arc<Event>>,
    /// The room that the events take.
    bytes: usize,
    has_overflowed: bool,
    is_delete_pending: bool,
}

/// Watches a directory until it is dropped. What happens between two calls of [`Watcher::next`] is kept.
#[derive(Debug)]
#[must_use = "nothing is watched when this is dropped"]
pub struct Watcher {
    hub: Arc<Hub>,
    watch: Arc<Watch>,
}

impl Events {
    /// Watches the directory, or everything below it as well, for changes that meet the filter.
    pub fn watch(&self, directory: u64, is_recursive: bool, filter: Aspects) -> Result<Watcher, TooManyWatchers> {
        let watch = Watch { directory, is_recursive, filter, kept: Mutex::default(), arrived: Notify::new() };
        let watch = Arc::new(watch);
        self.hub.add(&watch)?;
        Ok(Watcher { hub: Arc::clone(&self.hub), watch })
    }

    /// For the directories of this table.
    pub fn beside(opens: &Opens) -> Events {
        Events { hub: Arc::new(Hub { opens: Some(opens.clone()), ..Hub::default() }) }
    }

    /// Whether there may be a watcher when what is decided now is durable. If not, no event needs to be made. One who begins to
    /// watch in between and looks at the directory finds it as it was before: only the event tells of the change.
    pub fn may_be_watched(&self) -> bool {
        self.has_watchers() || self.hub.opens.as_ref().is_some_and(|opens| opens.calm().is_none())
    }

    /// Whether there is any watcher.
    pub fn has_watchers(&self) -> bool {
        self.hub.count.load(Ordering::Relaxed) > 0
    }

    /// Tells those who watch the directory that it is to be deleted: a client that only watches it has to let it go.
    pub fn delete_pending(&self, directory: u64) {
        if !self.has_watchers() {
            return;
        }
        let watched: Vec<Arc<Watch>> = {
            let watches = self.hub.watches.read().unwrap_or_else(PoisonError::into_inner);
            watches.get(&directory).into_iter().flatten().cloned().collect()
        };
        for watch in watched {
            watch.kept().is_delete_pending = true;
            watch.arrived.notify_one();
        }
    }

    /// Tells those who watch the directory, and those who watch everything below a directory above it.
    pub fn publish(&self, event: Event) {
        if !self.has_watchers() {
            return;
        }
        let event = Arc::new(event);
        let told: Vec<Arc<Watch>> = self.hub.watching(&event);
        for watch in told {
            watch.keep(&event);
            watch.arrived.notify_one();
        }
    }
}

impl Watcher {
    pub fn directory(&self) -> u64 {
        self.watch.directory
    }

    /// Waits until something happened and answers all of it. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Notice {
        loop {
            if let Some(notice) = self.watch.take() {
                return notice;
            }
            self.watch.arrived.notified().await;
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.hub.remove(&self.watch);
    }
}

impl Hub {
    fn add(&self, watch: &Arc<Watch>) -> Result<(), TooManyWatchers> {
        let mut watches = self.watches.write().unwrap_or_else(PoisonError::into_inner);
        let same_directory = watches.entry(watch.directory).or_default();
        if same_directory.len() >= WATCHERS_PER_DIRECTORY_MAX {
            return Err(TooManyWatchers);
        }
        same_directory.push(Arc::clone(watch));
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn remove(&self, watch: &Arc<Watch>) {
        let mut watches = self.watches.write().unwrap_or_else(PoisonError::into_inner);
        let Some(same_directory) = watches.get_mut(&watch.directory) else { return };
        same_directory.retain(|other| !Arc::ptr_eq(other, watch));
        if same_directory.is_empty() {
            watches.remove(&watch.directory);
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    fn watching(&self, event: &Event) -> Vec<Arc<Watch>> {
        let watches = self.watches.read().unwrap_or_else(PoisonError::into_inner);
        let at = |directory: u64| watches.get(&directory).into_iter().flatten();
        let here = at(event.directory);
        let above = event.above.iter().flat_map(|above| at(above.directory)).filter(|watch| watch.is_recursive);
        here.chain(above).filter(|watch| watch.filter.meets(event.aspects)).cloned().collect()
    }
}

impl Watch {
    fn keep(&self, event: &Arc<Event>) {
        let mut kept = self.kept();
        if kept.has_overflowed {
            return;
        }
        let bytes = kept.bytes + event.bytes();
        if kept.events.len() < EVENTS_PER_WATCHER_MAX && bytes <= EVENT_BYTES_PER_WATCHER_MAX {
            kept.events.push_back(Arc::clone(event));
            kept.bytes = bytes;
        } else {
            *kept = Kept { events: VecDeque::new(), bytes: 0, has_overflowed: true, ..*kept };
        }
    }

    fn take(&self) -> Option<Notice> {
        let Kept { events, has_overflowed, is_delete_pending, .. } = std::mem::take(&mut *self.kept());
        if is_delete_pending {
            return Some(Notice::DeletePending);
        }
        if has_overflowed {
            return Some(Notice::Overflow);
        }
        (!events.is_empty()).then(|| Notice::Events(events.into()))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
