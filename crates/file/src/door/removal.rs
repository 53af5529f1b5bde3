//! Deleting what SMB has marked for deletion, now that its last handle is closed.

use std::sync::{Arc, Mutex, PoisonError};

use engine::{Changes, Commit, Engine};
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
use crate::opens::{NameKey, Opens, Place, Removal};

/// What is needed to delete a file.
#[derive(Clone, Copy, Debug)]
pub struct Remover<'a> {
    pub engine: &'a dyn Engine,
    pub opens: &'a Opens,
    pub events: &'a Events,
}

impl Remover<'_> {
    /// Deletes the file, wherever it is by now. It stays pending until the commit has ended, also if the future is dropped.
    pub async fn remove(self, account: u64, share: &ShareName, removal: Removal) -> Result<(), Failure> {
        // Whoever opens the file looks at its row first and then at the table, where it is pending until its row is gone. The turn
        // keeps both together. Where too many wait for it, the file is deleted without.
        let turn = match name_of(removal.place(), removal.file().share) {
            Some(name) => self.opens.turn(name).await.ok(),
            None => None,
        };
        let announcement = Arc::new(Announcement::new(self.events));
        let (deciding, name, file) = (Arc::clone(&announcement), share.clone(), removal.file());
        let names: Vec<String> = removal.place().path.split('/').map(str::to_owned).collect();
        let above: Vec<u64> = removal.place().above.iter().rev().copied().collect();
        let folded = FoldedName::stored(&fold(names.last().map_or("", String::as_str)));
        let held = (removal, turn);
        let removed = engine::commit::<(), FileError, _>(self.engine, share_key(account, share), move |rows, tick| {
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
        let result = removed.await;
        match result {
            Ok(()) => announcement.publish(),
            Err(_) => announcement.forget(),
        }
        Ok(result?)
    }
}

/// The name that openers of a place take their turn at.
fn name_of(place: &Place, share: u64) -> Option<NameKey> {
    let directory = place.above.first().copied().unwrap_or(share);
    let name = place.path.rsplit('/').next()?;
    Some(NameKey { directory, folded: fold(name).into_owned().into() })
}

/// Files whose last handle was dropped instead of closed, until they are deleted.
#[derive(Debug, Default)]
pub struct Abandoned {
    files: Mutex<Vec<AbandonedFile>>,
    arrived: Notify,
}

#[derive(Debug)]
pub struct AbandonedFile {
    pub account: u64,
    pub share: ShareName,
    pub removal: Removal,
}

impl Abandoned {
    pub fn add(&self, file: AbandonedFile) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).push(file);
        self.arrived.notify_one();
    }

    /// Those that are there, at least one.
    pub async fn next(&self) -> Vec<AbandonedFile> {
        loop {
            let files = std::mem::take(&mut *self.files.lock().unwrap_or_else(PoisonError::into_inner));
            if !files.is_empty() {
                return files;
            }
            self.arrived.notified().await;
        }
    }
}
