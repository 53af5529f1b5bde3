//! List Handles and Force Close Handles.

use std::ops::Bound;
use std::sync::Arc;

use concurrency::Timestamp;
use concurrency::share_mode::Access;

use super::handle::{Closed, Removal, close};
use super::open::{Client, OpenHandle, Place};
use super::table::Share;
use super::{FileId, HandleId, Opens, Reach};

/// Handles looked at under one hold of the mutex. A share may have a great many.
const HANDLES_PER_LOOK: usize = 1_024;

/// The handles of a file or directory, or of everything below it, too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scope {
    pub file: FileId,
    pub reach: Reach,
}

/// A handle as List Handles shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandleInfo {
    pub id: HandleId,
    pub file: FileId,
    pub place: Arc<Place>,
    pub access: Access,
    pub client: Client,
    pub opened: Timestamp,
    pub reconnected: Option<Timestamp>,
}

/// A part of a listing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HandlePage {
    /// In the order of their numbers.
    pub handles: Vec<HandleInfo>,
    /// If there are more: the marker of the next page.
    pub next: Option<HandleId>,
}

/// The handles to close by force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    One(HandleId),
    /// All behind the marker, but no more than `most` at once.
    All {
        after: Option<HandleId>,
        most: usize,
    },
}

/// What became of a forced close.
#[derive(Debug, Default)]
pub struct ForcedClose {
    pub closed: usize,
    /// If there are more: the marker to go on with.
    pub next: Option<HandleId>,
    /// Files whose last handle was closed and that are to be deleted.
    pub removals: Vec<Removal>,
}

impl HandleInfo {
    fn new(share: u64, id: HandleId, file: u64, handle: &OpenHandle) -> HandleInfo {
        HandleInfo {
            id,
            file: FileId { share, id: file },
            place: Arc::clone(&handle.place),
            access: handle.open.access,
            client: handle.client.clone(),
            opened: handle.opened,
            reconnected: handle.reconnected,
        }
    }
}

impl Opens {
    /// Up to `most` handles behind the marker, in the order of their numbers. Handles that come and go between two pages
    /// are listed or not; all others are listed once.
    pub fn handles(&self, scope: Scope, after: Option<HandleId>, most: usize) -> HandlePage {
        let mut handles = Vec::new();
        let mut from = after.unwrap_or(HandleId(0));
        loop {
            // One more than wanted says that there is a next page.
            let room = most.saturating_add(1) - handles.len();
            let look = self.table.with(scope.file.share, |share| look(share, scope, from, room));
            handles.extend(look.found);
            match look.go_on {
                Some(last) if handles.len() <= most => from = last,
                _ => break,
            }
        }
        let is_more = handles.len() > most;
        handles.truncate(most);
        let next = if is_more { Some(handles.last().map_or(from, |last| last.id)) } else { None };
        HandlePage { handles, next }
    }

    /// Closes handles without their clients' doing and tells each [`Holder`](super::Holder).
    pub fn force_close(&self, scope: Scope, which: Which) -> ForcedClose {
        let (found, next): (Vec<(FileId, HandleId)>, _) = match which {
            Which::One(id) => (self.handle_in(scope, id).into_iter().collect(), None),
            Which::All { after, most } => {
                let page = self.handles(scope, after, most);
                (page.handles.into_iter().map(|handle| (handle.file, handle.id)).collect(), page.next)
            }
        };
        let mut outcome = ForcedClose { closed: 0, next, removals: Vec::new() };
        for (file, id) in found {
            self.force_close_one(file, id, &mut outcome);
        }
        outcome
    }

    /// The share is deleted: handles whose clients have lost their connection are closed.
    pub fn close_disconnected(&self, share: u64) {
        let mut from = HandleId(0);
        loop {
            let (lost, last) = self.table.with(share, |share| {
                let looked: Vec<(HandleId, u64)> = share.handles_after(from).take(HANDLES_PER_LOOK).collect();
                let last = looked.last().map(|(id, _)| *id);
                let is_lost = |(id, file): &(HandleId, u64)| {
                    let handle = share.slot(*file).and_then(|slot| slot.handles.get(id));
                    handle.is_some_and(|handle| handle.is_disconnected)
                };
                (looked.into_iter().filter(is_lost).collect::<Vec<_>>(), last)
            });
            for (id, file) in lost {
                self.force_close_one(FileId { share, id: file }, id, &mut ForcedClose::default());
            }
            match last {
                Some(last) => from = last,
                None => return,
            }
        }
    }

    fn handle_in(&self, scope: Scope, id: HandleId) -> Option<(FileId, HandleId)> {
        let share = scope.file.share;
        let file = self.table.with(share, |share| {
            let file = share.file_of(id)?;
            let handle = share.slot(file)?.handles.get(&id)?;
            scope.contains(file, handle).then_some(file)
        });
        file.map(|file| (FileId { share, id: file }, id))
    }

    fn force_close_one(&self, file: FileId, id: HandleId, outcome: &mut ForcedClose) {
        if let Some(Closed { holder, removal }) = close(&self.table, file, id) {
            outcome.closed += 1;
            outcome.removals.extend(removal);
            holder.closed(id);
        }
    }
}

impl Scope {
    fn contains(self, file: u64, handle: &OpenHandle) -> bool {
        let is_below = self.reach == Reach::Tree && handle.place.above.contains(&self.file.id);
        handle.is_told && (is_below || file == self.file.id)
    }
}

/// A part of the handles of a share.
struct Look {
    found: Vec<HandleInfo>,
    /// The last handle looked at, if there may be more behind it.
    go_on: Option<HandleId>,
}

fn look(share: &Share, scope: Scope, after: HandleId, most: usize) -> Look {
    match scope.reach {
        Reach::Node => Look { found: look_at_node(share, scope.file, after, most), go_on: None },
        Reach::Tree => look_at_tree(share, scope, after, most),
    }
}

fn look_at_node(share: &Share, file: FileId, after: HandleId, most: usize) -> Vec<HandleInfo> {
    let behind = (Bound::Excluded(after), Bound::Unbounded);
    let handles = share.slot(file.id).into_iter().flat_map(|slot| slot.handles.range(behind));
    let told = handles.filter(|(_, handle)| handle.is_told);
    told.take(most).map(|(id, handle)| HandleInfo::new(file.share, *id, file.id, handle)).collect()
}

fn look_at_tree(share: &Share, scope: Scope, after: HandleId, most: usize) -> Look {
    let mut look = Look { found: Vec::new(), go_on: None };
    for (number, (id, file)) in share.handles_after(after).enumerate() {
        let handle = share.slot(file).and_then(|slot| slot.handles.get(&id)).expect("every handle is in its slot");
        if scope.contains(file, handle) {
            look.found.push(HandleInfo::new(scope.file.share, id, file, handle));
        }
        if look.found.len() >= most || number + 1 >= HANDLES_PER_LOOK {
            look.go_on = Some(id);
            break;
        }
    }
    look
}
