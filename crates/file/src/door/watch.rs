//! CHANGE_NOTIFY: what happens in an open directory.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use super::{Change, ChangeKind, Changes, OpenFile, Refused, access};
use crate::opens::events::{Action, Aspects, Event, Notice};

impl OpenFile {
    /// Waits for changes in the directory (CHANGE_NOTIFY). Filter and depth are those of the first call of the handle; what happens
    /// between two calls is kept. Dropping the future loses nothing. Closing the handle ends it with [`Refused::FileClosed`].
    /// [`Refused::DeletePending`] ends it when the directory is to be deleted. In a share
    /// snapshot nothing changes, and nothing is waited for: [`Refused::NotSupported`]. Needs FILE_READ_DATA.
    pub async fn changes(&self, filter: u32, is_recursive: bool) -> Result<Changes, Refused> {
        if !self.is_directory() {
            return Err(Refused::InvalidParameter);
        }
        self.need(access::FILE_READ_DATA)?;
        if self.is_in_snapshot() {
            return Err(Refused::NotSupported);
        }
        // One request of a handle after the other: each change is told once.
        let mut watcher = self.watcher.lock().await;
        self.location()?;
        if self.is_delete_pending() {
            return Err(Refused::DeletePending);
        }
        if watcher.is_none() {
            let watched = self.tree.door.events.watch(self.file_id(), is_recursive, Aspects(filter));
            *watcher = Some(watched.map_err(|_too_many| Refused::TooMany)?);
        }
        let Some(watcher) = watcher.as_mut() else { return Err(Refused::FileClosed) };
        loop {
            let (mut next, mut closed) = (pin!(watcher.next()), pin!(self.closed()));
            let notice = poll_fn(|context| match closed.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => next.as_mut().poll(context).map(Some),
            });
            match notice.await {
                None => return Err(Refused::FileClosed),
                Some(Notice::DeletePending) if self.is_delete_pending() => return Err(Refused::DeletePending),
                // That was taken back.
                Some(Notice::DeletePending) => {}
                Some(Notice::Overflow) => return Ok(Changes::Overflow),
                Some(Notice::Events(events)) => {
                    let records = events.iter().flat_map(|event| records(event, self.file_id()));
                    return Ok(Changes::Records(records.collect()));
                }
            }
        }
    }
}

/// An event as those who watch `directory` are told of it.
fn records(event: &Event, directory: u64) -> Vec<Change> {
    let Some(way) = event.path_from(directory) else { return Vec::new() };
    let change = |kind: ChangeKind, name: &str| {
        let mut names = way.clone();
        names.push(name);
        Change { kind, path: names.join("\\") }
    };
    match &event.action {
        Action::Added { name } => vec![change(ChangeKind::Added, name)],
        Action::Removed { name } => vec![change(ChangeKind::Removed, name)],
        Action::Modified { name } => vec![change(ChangeKind::Modified, name)],
        Action::Renamed { from, to } => vec![change(ChangeKind::RenamedFrom, from), change(ChangeKind::RenamedTo, to)],
    }
}
