//! Telling those who watch a directory what a change was, once it is durable.
//!
//! The decision notes what it does; whoever asked for it publishes that after the commit. A request can be dropped while its commit
//! waits, and the commit may be done all the same: then it is published when the engine is done with the decision.

use std::sync::{Mutex, PoisonError};

use wire::file_path::FilePath;

use crate::opens::events::{Action, Aspects, Event, Events};
use crate::tree::Spot;

/// What a change is to those who watch the directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// At a free name something new of this kind; what is there changes in these respects.
    Put { added: Aspects, changed: Aspects },
    /// It goes.
    Removed(Aspects),
    /// Watchers see nothing of it.
    Unseen,
}

impl Effect {
    /// Attributes, times or permission of what is there.
    pub const PROPERTIES: Effect = Effect::changed(Aspects::PROPERTIES);

    pub const fn changed(changed: Aspects) -> Effect {
        Effect::Put { added: Aspects::FILE_NAME, changed }
    }

    /// The event, for what stood at the spot before.
    pub fn event<N: AsRef<str>>(self, spot: &Spot, names: &[N]) -> Option<Event> {
        let name = spot.node.as_ref().map_or(&spot.spelling, |node| &node.name).clone();
        let (action, aspects) = match (self, &spot.node) {
            (Effect::Unseen, _) | (Effect::Removed(_), None) => return None,
            (Effect::Put { added, .. }, None) => (Action::Added { name }, added),
            (Effect::Put { changed, .. }, Some(_)) => (Action::Modified { name }, changed),
            (Effect::Removed(aspects), Some(_)) => (Action::Removed { name }, aspects),
        };
        Event::at(&spot.above, names, action, aspects)
    }
}

/// The events of a rename: one within a directory, two between directories.
pub fn renamed<N: AsRef<str>>((from, old): (&Spot, &[N]), (to, new): (&Spot, &[N])) -> Vec<Event> {
    let Some(node) = &from.node else { return Vec::new() };
    let aspects = Aspects::name_of(node.is_directory());
    let (before, after) = (node.name.clone(), to.spelling.clone());
    let replaced = to.node.as_ref().filter(|other| other.id != node.id);
    let replaced = replaced.map(|other| (Action::Removed { name: other.name.clone() }, Aspects::FILE_NAME));
    let gone = replaced.and_then(|(action, aspects)| Event::at(&to.above, new, action, aspects));
    let moved = if from.directory() == to.directory() {
        [Event::at(&to.above, new, Action::Renamed { from: before, to: after }, aspects), None]
    } else {
        [
            Event::at(&from.above, old, Action::Removed { name: before }, aspects),
            Event::at(&to.above, new, Action::Added { name: after }, aspects),
        ]
    };
    gone.into_iter().chain(moved.into_iter().flatten()).collect()
}

/// The names of a path.
pub fn names(path: &FilePath) -> Vec<&str> {
    path.names().iter().map(|name| name.as_str()).collect()
}

/// What a decision does, until it is known whether it was committed.
#[derive(Debug)]
pub struct Announcement {
    events: Events,
    decided: Mutex<Vec<Event>>,
}

impl Announcement {
    pub fn new(events: &Events) -> Announcement {
        Announcement { events: events.clone(), decided: Mutex::default() }
    }

    /// The decision was run, and does this. If nobody can be told of it, it is not asked.
    pub fn decided(&self, events: impl FnOnce() -> Vec<Event>) {
        let events = if self.events.may_be_watched() { events() } else { Vec::new() };
        self.set(events);
    }

    /// It was not committed.
    pub fn forget(&self) {
        self.set(Vec::new());
    }

    /// It is durable.
    pub fn publish(&self) {
        for event in self.set(Vec::new()) {
            self.events.publish(event);
        }
    }

    fn set(&self, events: Vec<Event>) -> Vec<Event> {
        std::mem::replace(&mut *self.decided.lock().unwrap_or_else(PoisonError::into_inner), events)
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // The request was dropped before it knew of the commit.
        self.publish();
    }
}

#[cfg(test)]
mod tests {
    use concurrency::share_mode::Access;

    use super::*;
    use crate::opens::events::Notice;
    use crate::testing::Bench;

    fn event(directory: u64) -> Vec<Event> {
        let action = Action::Added { name: "new".to_owned() };
        Event::at(&[directory], &["new"], action, Aspects::FILE_NAME).into_iter().collect()
    }

    /// Who begins to watch between the decision and its commit, and lists the directory then, does not find the change there.
    #[tokio::test]
    async fn who_watches_before_the_commit_is_told() {
        let bench = Bench::with_share().await;
        let events = Events::beside(&bench.opens);
        Announcement::new(&events).decided(|| panic!("nobody can watch without a handle"));
        let handle = bench.open("", Access::READ, Access::ALL).await;
        let announcement = Announcement::new(&events);
        announcement.decided(|| event(handle.file().id));
        let mut watcher = events.watch(handle.file().id, false, Aspects::FILE_NAME).unwrap();
        announcement.publish();
        assert!(matches!(watcher.next().await, Notice::Events(all) if all.len() == 1));
    }
}
