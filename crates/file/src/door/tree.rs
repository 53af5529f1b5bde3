//! The door itself, and shares that clients are connected to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use concurrency::Timestamp;
use concurrency::caching::{AcknowledgementRefusal, Caching};
use engine::{Engine, NotCommitted, Rows};
use tokio::sync::Semaphore;
use wire::file_path::FilePath;
use wire::names::ShareName;

use super::decide::Ended;
use super::removal::{self, Abandoned, AbandonedFile, Deletion, Remover};
use super::{CreateRequest, HandleOwner, Opened, Refused, Space, create, snapshot};
use crate::model::{Protocol, find_share, find_usage, snapshots};
use crate::opens::events::Events;
use crate::opens::{BreakWait, LeaseName, Opens, Removal};
use crate::owner::shares::TreeHold;
use crate::owner::{FencedEngine, Ownership, Protected};
use crate::{Failure, FileError, FileService, ListShares, ShareVersion, tree};

/// Shares that are listed for a client. The wire format has room for more, clients' patience has not.
pub const SHARES_LISTED_MAX: usize = 10_000;
/// Shares that one read looks at.
const SHARES_PER_READ: usize = 1_000;

/// The File service as SMB calls it. A clone is the same door.
///
/// The server runs [`Door::delete_abandoned`] beside it.
#[derive(Clone, Debug)]
pub struct Door {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) opens: Arc<Opens>,
    pub(super) events: Events,
    pub(super) abandoned: Arc<Abandoned>,
    /// A permit for every part of a copy that is in memory.
    pub(super) copying: Arc<Semaphore>,
    /// On a node of many.
    ownership: Option<Arc<Ownership>>,
    /// Keeps the mark of the share, on a node of many, and says in which term the clients connected.
    hold: Option<Arc<TreeHold>>,
}

impl FileService {
    /// What SMB calls.
    #[must_use]
    pub fn door(&self) -> Door {
        Door {
            engine: Arc::clone(&self.engine),
            opens: Arc::clone(&self.opens),
            events: self.events.clone(),
            abandoned: Arc::clone(&self.abandoned),
            copying: Arc::clone(&self.copying),
            ownership: self.ownership.clone(),
            hold: None,
        }
    }
}

/// A file that is to be deleted and was not.
#[derive(Debug)]
pub struct NotDeleted {
    pub account: u64,
    pub share: String,
    pub path: String,
    pub error: Failure,
    /// Attempts in the background so far, this one included.
    pub attempts: u32,
    /// It is still to be deleted, and rests for this long before the next attempt. If not, it stays and can be opened again.
    pub tried_again_after: Option<Duration>,
}

/// A share that a client is connected to (TREE_CONNECT). A clone is the same connection. A share that is deleted and made again
/// under the same name is another one: the connection answers [`Refused::ShareGone`] from then on.
#[derive(Clone, Debug)]
pub struct Tree {
    pub(super) door: Door,
    pub(super) account: u64,
    pub(super) share: ShareName,
    /// The generation of the share, which is the id of its root.
    pub(super) generation: u64,
}

impl Door {
    /// The names of the shares of an account that SMB reaches, in order, at most [`SHARES_LISTED_MAX`].
    pub async fn shares(&self, account: u64) -> Result<Vec<String>, Refused> {
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let max = SHARES_PER_READ;
            let list = ListShares { prefix: String::new(), after, max, deleted: false, snapshots: false };
            let page = service::read(&*self.engine, account, &Arc::new(list)).await.map_err(refused)?;
            let smb = page
                .shares
                .into_iter()
                .filter(|listed| listed.place.version == ShareVersion::Live && listed.share.protocol == Protocol::Smb);
            names.extend(smb.map(|listed| listed.place.name));
            after = page.next;
            if after.is_none() || names.len() >= SHARES_LISTED_MAX {
                names.truncate(SHARES_LISTED_MAX);
                return Ok(names);
            }
        }
    }

    /// Connects to a share. Names of shares have no case over SMB.
    ///
    /// Refused with [`Refused::ShareNotFound`] if the account has no such share, or one for NFS.
    pub async fn connect(&self, account: u64, share: &str) -> Result<Tree, Refused> {
        let share = ShareName::parse(&share.to_ascii_lowercase()).map_err(|_| Refused::ShareNotFound)?;
        let (hold, found) = match &self.ownership {
            None => (None, None),
            Some(ownership) => {
                let connected = ownership.connect(&*self.engine, account, &share).await;
                let (hold, found) = connected.map_err(|error| match error {
                    NotCommitted::Refused(_) => Refused::ShareNotFound,
                    NotCommitted::Failed(error) => Refused::Failed(error),
                })?;
                (Some(Arc::new(hold)), found)
            }
        };
        let door = self.holding(hold);
        let found = match found {
            Some(found) => Some(found),
            None => {
                let name = share.clone();
                let found = move |rows: &dyn Rows, _| Ok(find_share(rows, account, &name)?);
                engine::read::<_, FileError, _>(&*door.engine, found).await.map_err(|error| refused(error.into()))?
            }
        };
        let found = found.filter(|found| found.protocol == Protocol::Smb).ok_or(Refused::ShareNotFound)?;
        Ok(Tree { door, account, share, generation: found.generation })
    }

    /// The door for clients that connected in the term of a hold: nothing of theirs is committed after it. The same door on a server
    /// that is alone.
    fn holding(&self, hold: Option<Arc<TreeHold>>) -> Door {
        let Some(ownership) = &self.ownership else { return self.clone() };
        let protected = Protected::Smb { term: hold.as_ref().map(|hold| hold.term) };
        let engine = FencedEngine::new(Arc::clone(&self.engine), Arc::clone(ownership), protected);
        Door { engine: Arc::new(engine), hold, ..self.clone() }
    }

    /// Waits for a file that is to be deleted and that nobody deletes, because its last handle was dropped instead of closed or
    /// because the engine could not do it, and deletes it. Until then nobody can open the file, so the server calls this again and
    /// again, several times at once. A file that could not be deleted rests, each time for longer: see [`Door::wake_abandoned`].
    pub async fn delete_abandoned(&self) -> Result<(), NotDeleted> {
        let due = self.abandoned.next().await;
        let Some(Deletion { account, share, place, attempts, hold, .. }) = due.deletion() else { return Ok(()) };
        let path = place.path;
        self.holding(hold).remover().remove(due).await.map_err(|error| NotDeleted {
            account,
            share: share.as_str().to_owned(),
            path,
            attempts,
            tried_again_after: removal::is_passing(&error).then(|| removal::retry_pause(attempts)),
            error,
        })
    }

    /// A client has answered the break of a lease, and keeps `kept`.
    pub fn acknowledge_lease(&self, name: LeaseName, kept: Caching) -> Result<(), AcknowledgementRefusal> {
        self.opens.acknowledge_lease(name, kept)
    }

    /// Has those files tried again that have rested for long enough. Called from time to time.
    pub fn wake_abandoned(&self, now: Instant) {
        self.abandoned.wake(now);
    }

    /// Has all files tried again that rest: the server ends.
    pub fn wake_all_abandoned(&self) {
        self.abandoned.wake_all();
    }

    /// Whether files are being deleted, or are to be at once: not whether some rest after an attempt that failed.
    pub fn is_deleting(&self) -> bool {
        self.abandoned.is_at_work()
    }

    /// Whether there is a file to be deleted, now or later.
    #[cfg(test)]
    pub(crate) fn has_abandoned(&self) -> bool {
        self.is_deleting() || self.abandoned.has_resting()
    }

    pub(super) fn remover(&self) -> Remover<'_> {
        let Door { engine, opens, events, abandoned, hold, .. } = self;
        Remover { engine: &**engine, opens, events, abandoned, hold: hold.as_ref() }
    }
}

impl Tree {
    /// The number of the account.
    pub fn account(&self) -> u64 {
        self.account
    }

    /// The name of the share.
    pub fn name(&self) -> &str {
        self.share.as_str()
    }

    /// Quota and usage, for QUERY_INFO of the file system.
    pub async fn space(&self) -> Result<Space, Refused> {
        let space = self.read(|rows, share, _| {
            let (usage, root) = (find_usage(rows, share.generation), tree::find_in(rows, share, &FilePath::root()));
            let root = root.map_err(super::decide::ended)?;
            Ok(Space {
                quota_bytes: share.quota_bytes(),
                used_bytes: usage?.bytes,
                created: root.node.map(|node| node.created).unwrap_or_default(),
                volume: share.generation,
            })
        });
        Ok(space.await?)
    }

    /// Opens a file or directory, and creates, empties or replaces it first if the disposition says so.
    ///
    /// It waits for REST operations that are at work on the file; dropping the future withdraws the open. In a share snapshot there
    /// is nothing to wait for, and nothing is created: [`Refused::WriteProtected`].
    pub async fn open(&self, request: CreateRequest) -> Result<Opened, Refused> {
        match request.snapshot {
            Some(time) => Box::pin(snapshot::open(self, request, time)).await,
            None => Box::pin(create::open(self, request)).await,
        }
    }

    /// The times of the share's snapshots, newest first.
    pub async fn snapshots(&self) -> Result<Vec<Timestamp>, Refused> {
        let found = self.read(|rows, share, _| Ok(snapshots(rows, share.generation)?));
        Ok(found.await?.into_iter().rev().map(|(time, _)| time).collect())
    }

    /// Waits for other clients to give up what they cache. Nothing is held that they could need for that.
    pub(super) async fn breaks_ended(&self, owner: &dyn HandleOwner, wait: BreakWait) {
        owner.waits(true);
        self.door.opens.breaks_ended(wait).await;
        owner.waits(false);
    }

    /// Deletes a file whose last handle is closed.
    pub(super) async fn remove(&self, removal: Removal) -> Result<(), Refused> {
        let remover = self.door.remover();
        remover.remove(remover.due(self.account, &self.share, removal)).await.map_err(refused)
    }

    pub(super) fn abandon(&self, removal: Removal) {
        let (account, share, hold) = (self.account, self.share.clone(), self.door.hold.clone());
        self.door.abandoned.add(AbandonedFile { account, share, removal, attempts: 0, hold });
    }
}

/// What an operation that REST has, too, failed with.
pub(super) fn refused(failure: Failure) -> Refused {
    match failure {
        Failure::Refused(error) => Ended::from(error).into(),
        Failure::Failed(error) => Refused::Failed(error),
        // No operation of the door takes a body from elsewhere.
        Failure::Body(_) => Refused::InvalidParameter,
    }
}
