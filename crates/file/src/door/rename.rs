//! Renaming an open file or directory.

use std::sync::Arc;

use concurrency::share_mode::RestAccess;
use engine::{Changes, Commit, Rows, Stop};
use wire::file_path::FilePath;

use super::decide::{ATTEMPTS_MAX, Ended, Stopped, ended, names_directory, parse_path, refuse};
use super::open_file::{Location, UnderWay};
use super::{OpenFile, Refused, access};
use crate::announcement::{self, Announcement};
use crate::change::properties::SmbSettings;
use crate::change::rename::{self, RenamedKind, Renaming};
use crate::change::set;
use crate::entering::{MovedHandles, name_key, place};
use crate::model::{ShareGuard, share_key};
use crate::opens::{Entry, FileId, NameKey, Reach, Refusal, Turn};
use crate::tree::{self, Spot};

/// Where it is, and where it is to be.
#[derive(Debug)]
struct Way {
    from: Location,
    to: FilePath,
}

impl Way {
    fn find(&self, rows: &dyn Rows, share: ShareGuard) -> Result<(Spot, Spot), Stopped> {
        // Both are asked for before either is missed.
        let (from, to) = (self.from.find(rows, share), tree::find_in(rows, share, &self.to));
        Ok((from?, to.map_err(ended)?))
    }
}

/// What a rename holds until its commit has ended: its entries at the new name, the turns, and that it is under way.
type Held = ((Entry, Option<Entry>), Option<Arc<Turn>>, Arc<UnderWay>);

impl OpenFile {
    /// FileRenameInformation. `target` is a path as in [`super::CreateRequest::path`], with or without a backslash in front. A file at
    /// the new name goes if `replaces` and nobody has it open, a directory never. Needs DELETE.
    pub async fn rename(&self, target: &str, replaces: bool) -> Result<(), Refused> {
        self.need(access::DELETE)?;
        let to = parse_path(target.strip_prefix('\\').unwrap_or(target))?;
        if to.is_root() || names_directory(target) && !self.is_directory() {
            return Err(Refused::NameInvalid);
        }
        Box::pin(self.rename_to(to, replaces)).await
    }

    async fn rename_to(&self, to: FilePath, replaces: bool) -> Result<(), Refused> {
        let opens = &self.tree.door.opens;
        // Before any turn: close waits for what is under way, and what it deletes then waits for the turn.
        let under_way = Arc::new(self.under_way().await?);
        let mut turn: Option<((NameKey, NameKey), Arc<Turn>)> = None;
        for _ in 0..ATTEMPTS_MAX {
            let way = Arc::new(Way { from: self.location()?, to: to.clone() });
            let looking = Arc::clone(&way);
            let (from, to) = self.tree.read(move |rows, share, _| looking.find(rows, share)).await?;
            let names = (name_key(&from), name_key(&to));
            if turn.as_ref().is_none_or(|(held, _)| *held != names) {
                drop(turn.take());
                turn = Some((names.clone(), Arc::new(opens.turn_at_both(names.0, names.1).await?)));
            }
            let held = turn.as_ref().map(|(_, turn)| Arc::clone(turn));
            let reach = if self.is_directory() { Reach::Tree } else { Reach::Node };
            let renamed = async {
                let source = self.handle()?.begin_rename(reach)?;
                let replaced = self.enter_target(&from, &to, replaces).await?;
                let held = (replaced, held, Arc::clone(&under_way));
                self.commit_rename(way, (from, to), replaces, (source, held)).await
            };
            match renamed.await {
                Err(Ended::LookAgain) => {}
                Err(Ended::Breaking(wait)) => {
                    drop(turn.take());
                    self.breaks_ended(wait).await;
                }
                result => return Ok(result?),
            }
        }
        Err(Refused::TryAgain)
    }

    /// Enters the table for the directory of the new name, and for what has that name, which nobody may have open.
    async fn enter_target(&self, from: &Spot, to: &Spot, replaces: bool) -> Result<(Entry, Option<Entry>), Ended> {
        let opens = &self.tree.door.opens;
        let directory = FileId { share: to.share.generation, id: to.directory() };
        let added = opens.enter_to_add(directory)?;
        opens.check_rename_into(directory)?;
        let Some(node) = to.node.as_ref().filter(|node| Some(node.id) != from.id()) else { return Ok((added, None)) };
        if node.is_directory() || !replaces {
            return Err(if replaces { Refused::AccessDenied } else { Refused::Collision }.into());
        }
        let file = FileId { share: to.share.generation, id: node.id };
        match opens.enter(file, RestAccess::Delete, None).await {
            Ok(entry) => Ok((added, Some(entry))),
            Err(Refusal::SharingViolation) => Err(Refused::AccessDenied.into()),
            Err(other) => Err(other.into()),
        }
    }

    async fn commit_rename(
        &self,
        way: Arc<Way>,
        seen: (Spot, Spot),
        replaces: bool,
        (source, held): (Entry, Held),
    ) -> Result<(), Ended> {
        let tree = self.tree.clone();
        let announcement = Arc::new(Announcement::new(&tree.door.events));
        let moved = Arc::new(MovedHandles::new(Some(source)));
        let (deciding, moving) = (Arc::clone(&announcement), Arc::clone(&moved));
        let partition = share_key(tree.account, &tree.share);
        let is_change_time_frozen = self.state().is_change_time_frozen;
        let committed = engine::commit(&*self.tree.door.engine, partition, move |rows, tick| {
            let _held = &held;
            moving.decided(None);
            let mut changes = Changes::none();
            let (from, to) = way.find(rows, tree.guard(rows)?)?;
            if from.key() != seen.0.key() || (to.key(), to.id()) != (seen.1.key(), seen.1.id()) {
                return Err(Stop::Refused(Ended::LookAgain));
            }
            if from.is_root() {
                return Err(refuse(Refused::AccessDenied));
            }
            let renaming = renaming(&from, replaces, is_change_time_frozen, tick.now);
            rename::rename(&from, &to, &renaming, rows, tick, &mut changes).map_err(ended)?;
            moving.decided(Some(place(rows, &to, &way.to).map_err(ended)?));
            deciding.decided(|| {
                let old: Vec<&str> = way.from.names.iter().map(String::as_str).collect();
                announcement::renamed((&from, &old), (&to, &announcement::names(&way.to)))
            });
            Ok(Commit { changes, outcome: () })
        });
        let result = committed.await;
        match result {
            Ok(()) => {
                moved.move_handles();
                announcement.publish();
            }
            Err(_) => {
                moved.decided(None);
                announcement.forget();
            }
        }
        Ok(result?)
    }
}

fn renaming(from: &Spot, replaces: bool, is_change_time_frozen: bool, now: concurrency::Timestamp) -> Renaming {
    let changed = from.node.as_ref().filter(|_| is_change_time_frozen).map(|node| node.changed);
    let is_directory = from.node.as_ref().is_some_and(|node| node.is_directory());
    Renaming {
        kind: if is_directory { RenamedKind::Directory } else { RenamedKind::File },
        source_lease: set::lease_for_handle(from, now),
        target_lease: None,
        replaces,
        ignores_read_only: false,
        settings: SmbSettings { changed, ..SmbSettings::default() },
        metadata: None,
        content_type: None,
    }
}
