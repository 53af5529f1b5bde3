//! An open file or directory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concurrency::Timestamp;
use concurrency::caching::{AcknowledgementRefusal, Contention, OplockLevel};
use concurrency::range_lock::Transfer;
use content::map::{ByteSpan, FileView};
use engine::{Changes, Commit, Rows, Tick};
use tokio::sync::{Notify, OwnedRwLockReadGuard, RwLock};
use wire::file_path::FoldedName;
use wire::fold::fold;

use super::decide::{Ended, SETTLINGS_MAX, Stopped, refuse};
use super::list::Listing;
use super::{FileInfo, HandleOwner, Refused, Tree, snapshot};
use crate::announcement::{Announcement, Effect};
use crate::model::{ShareGuard, share_key};
use crate::opens::events::Watcher;
use crate::opens::{BreakWait, Broken, Client, Entry, GrantedCaching, Handle, HandleId, Holder, Place, Removal, Span};
use crate::tree::{self, Spot};

/// An open file or directory. Every method takes `&self`: requests of one handle may run at once.
///
/// [`OpenFile::close`] closes it in good order. Dropping it closes it, too; what was to be deleted on close is then deleted in
/// the background ([`super::Door::delete_abandoned`]).
#[derive(Debug)]
#[must_use = "the file is closed when this is dropped"]
pub struct OpenFile {
    pub(super) tree: Tree,
    subject: Subject,
    /// It is told what becomes of the handle. Another one after a lost connection.
    owner: Mutex<Arc<dyn HandleOwner>>,
    access: u32,
    is_directory: bool,
    /// Held for reading by every change under way, until its commit has ended. Close and flush wait for all of them.
    changing: Arc<RwLock<()>>,
    closing: Arc<Closing>,
    state: Mutex<HandleState>,
    /// Made by the first request for changes of the directory.
    pub(super) watcher: tokio::sync::Mutex<Option<Watcher>>,
}

/// What is open.
#[derive(Debug)]
enum Subject {
    /// Something in the share. The handle is in the table of opens.
    Live(Arc<Handle>),
    /// Something in a share snapshot. It never changes, and the table does not know of it.
    Snapshot(Location),
}

/// What a handle remembers between requests.
#[derive(Debug, Default)]
pub(super) struct HandleState {
    /// The client has set these times, or has said that changes through this handle do not move them.
    pub is_write_time_frozen: bool,
    pub is_change_time_frozen: bool,
    pub listing: Option<Listing>,
    /// The allocation size that the client has asked for. It is shown to this handle; nothing is set aside for it.
    pub allocation: u64,
}

/// Whether a handle was closed, by its client or by force.
#[derive(Debug, Default)]
pub(super) struct Closing {
    is_closed: AtomicBool,
    closed: Notify,
}

impl Closing {
    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.closed.notify_waiters();
    }

    /// Waits until the handle is closed.
    pub async fn closed(&self) {
        loop {
            let closed = self.closed.notified();
            if self.is_closed.load(Ordering::SeqCst) {
                return;
            }
            closed.await;
        }
    }
}

/// The handle stays in the table while a change is under way, and close waits for it.
pub(super) type UnderWay = (Arc<Handle>, OwnedRwLockReadGuard<()>);

/// A change under way, and its entry in the table, beside which new opens and locks wait.
pub(super) type Changing = (UnderWay, Entry);

/// Told by the table what becomes of a handle.
#[derive(Debug)]
pub(super) struct DoorHolder {
    tree: Tree,
    owner: Arc<dyn HandleOwner>,
    closing: Arc<Closing>,
}

impl DoorHolder {
    pub fn new(tree: Tree, owner: Arc<dyn HandleOwner>, closing: Arc<Closing>) -> DoorHolder {
        DoorHolder { tree, owner, closing }
    }
}

impl Holder for DoorHolder {
    fn closed(&self, handle: HandleId) {
        self.closing.close();
        self.owner.closed(handle);
    }

    fn must_delete(&self, removal: Removal) {
        self.tree.abandon(removal);
    }

    fn broken(&self, broken: Broken) -> bool {
        self.owner.broken(broken)
    }
}

/// Where a handle has its file.
#[derive(Clone, Debug)]
pub(super) struct Location {
    id: u64,
    /// From the root down.
    above: Vec<u64>,
    name: FoldedName,
    /// The path, as it is spelled.
    pub names: Vec<String>,
    /// The time of the share snapshot that it is in. `None`: it is in the share.
    snapshot: Option<Timestamp>,
}

impl Location {
    fn new(id: u64, place: &Place) -> Location {
        let names: Vec<String> = place.path.split('/').map(str::to_owned).collect();
        let name = FoldedName::stored(&fold(names.last().map_or("", String::as_str)));
        Location { id, above: place.above.iter().rev().copied().collect(), name, names, snapshot: None }
    }

    /// What was found in a share snapshot.
    pub fn in_snapshot(snapshot: Timestamp, spot: &Spot, names: Vec<String>) -> Location {
        let id = spot.id().unwrap_or_default();
        Location { id, above: spot.above.clone(), name: spot.name.clone(), names, snapshot: Some(snapshot) }
    }

    /// The directory that it is in. The root is in itself.
    pub fn find_directory(&self, rows: &dyn Rows, share: ShareGuard) -> Result<Spot, Stopped> {
        let Some((directory, higher)) = self.above.split_last() else { return self.find(rows, share) };
        let name = self.names.len().checked_sub(2).and_then(|at| self.names.get(at)).map_or("", String::as_str);
        self.find_node(rows, share, (higher, &FoldedName::stored(&fold(name))), *directory)
    }

    /// The file. It is gone if a rename has replaced it.
    pub fn find(&self, rows: &dyn Rows, share: ShareGuard) -> Result<Spot, Stopped> {
        self.find_node(rows, share, (&self.above, &self.name), self.id)
    }

    fn find_node(
        &self,
        rows: &dyn Rows,
        share: ShareGuard,
        place: (&[u64], &FoldedName),
        id: u64,
    ) -> Result<Spot, Stopped> {
        let Some(time) = self.snapshot else {
            return tree::find_open(rows, share, place, id)?.ok_or(refuse(Refused::FileClosed));
        };
        let epoch = snapshot::epoch(rows, share, time, Refused::SnapshotGone)?;
        tree::find_past(rows, share, epoch, place)?.ok_or(refuse(Refused::SnapshotGone))
    }
}

/// What the handle is.
impl OpenFile {
    pub(super) fn new(
        tree: Tree,
        (handle, closing): (Arc<Handle>, Arc<Closing>),
        owner: Arc<dyn HandleOwner>,
        access: u32,
        is_directory: bool,
    ) -> OpenFile {
        OpenFile::of(tree, (Subject::Live(handle), closing), owner, access, is_directory)
    }

    /// Something in a share snapshot.
    pub(super) fn in_snapshot(
        tree: Tree,
        location: Location,
        owner: Arc<dyn HandleOwner>,
        access: u32,
        is_directory: bool,
    ) -> OpenFile {
        OpenFile::of(tree, (Subject::Snapshot(location), Arc::default()), owner, access, is_directory)
    }

    fn of(
        tree: Tree,
        (subject, closing): (Subject, Arc<Closing>),
        owner: Arc<dyn HandleOwner>,
        access: u32,
        is_directory: bool,
    ) -> OpenFile {
        OpenFile {
            tree,
            subject,
            owner: Mutex::new(owner),
            access,
            is_directory,
            changing: Arc::default(),
            closing,
            state: Mutex::default(),
            watcher: tokio::sync::Mutex::default(),
        }
    }

    /// The number that List Handles shows. Never 0, never given out twice. What is in a share snapshot has none.
    pub fn handle_id(&self) -> Option<HandleId> {
        self.live().map(|handle| handle.id())
    }

    /// Whether it is in a share snapshot, where nothing changes: what would change it is [`Refused::WriteProtected`].
    pub fn is_in_snapshot(&self) -> bool {
        self.live().is_none()
    }

    /// The id of the file, as [`FileInfo::id`].
    pub fn file_id(&self) -> u64 {
        match &self.subject {
            Subject::Live(handle) => handle.file().id,
            Subject::Snapshot(location) => location.id,
        }
    }

    pub fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// The access that was granted, without generic bits.
    pub fn access(&self) -> u32 {
        self.access
    }

    /// Properties, sizes, id and path. Needs no access at all: which class of information needs FILE_READ_ATTRIBUTES is for the
    /// caller to check with [`OpenFile::access`].
    pub async fn query(&self) -> Result<FileInfo, Refused> {
        let (spot, names) = self.look(|spot, _, _| Ok(spot.clone())).await?;
        let is_pending = self.is_delete_pending();
        match &spot.node {
            Some(node) => {
                let info = FileInfo::new(node, &names.join("\\"), self.access, is_pending);
                Ok(info.with_allocation(self.state().allocation))
            }
            None => Err(Refused::FileClosed),
        }
    }

    /// What its client may cache now.
    pub fn caching(&self) -> GrantedCaching {
        self.live().map_or(GrantedCaching::None, |handle| handle.granted_caching())
    }

    /// The client has answered the break of the handle's oplock, and keeps no more than the level.
    pub fn acknowledge_oplock(&self, kept: OplockLevel) -> Result<OplockLevel, AcknowledgementRefusal> {
        self.live().ok_or(AcknowledgementRefusal::NotBreaking)?.acknowledge_oplock(kept)
    }

    /// Closes the handle, when the changes under way have ended. The last handle of a file that is to be deleted removes it; the
    /// answer comes when that is durable.
    pub async fn close(&self) -> Result<(), Refused> {
        self.location()?;
        self.closing.close();
        let all_ended = self.changing.write().await;
        let removal = self.live().and_then(|handle| handle.close());
        // The removal waits for the turn at the name, and a rename that has the turn may wait for its own change to begin.
        drop(all_ended);
        self.tell_watchers_of_deletion();
        match removal {
            Some(removal) => self.tree.remove(removal).await,
            None => Ok(()),
        }
    }
}

/// Handles that outlive their connections.
impl OpenFile {
    /// Whether the file is in the share that the tree is connected to.
    pub fn is_in(&self, tree: &Tree) -> bool {
        (self.tree.account, self.tree.generation) == (tree.account, tree.generation)
    }

    /// Whether the path of a CREATE leads to the file: the case of names does not matter.
    pub fn is_at(&self, path: &str) -> bool {
        let folded = |path: &str| fold(path).into_owned();
        let place = self.live().and_then(|handle| handle.place());
        place.is_some_and(|place| folded(&place.path.replace('/', "\\")) == folded(path))
    }

    /// How many byte-range locks it holds.
    pub fn lock_count(&self) -> usize {
        self.live().map_or(0, |handle| handle.lock_count())
    }

    /// The connection is lost. Whether the handle can be kept for its client: not if it was closed, and only while its oplock or lease
    /// keeps handles. `owner` is told what becomes of it meanwhile; a break ends it.
    pub fn disconnect(&self, owner: Arc<dyn HandleOwner>) -> bool {
        let is_kept = self.live().is_some_and(|handle| handle.disconnected(self.holder(&owner)).is_ok());
        if is_kept {
            self.owned_by(owner);
        }
        is_kept
    }

    /// Another connection of the same client has the handle now. The answer is what CREATE tells of the file. What the lost connection
    /// has begun ends before: its client sends it again, and an older write must not come after that.
    pub async fn reconnect(&self, client: Client, owner: Arc<dyn HandleOwner>) -> Result<FileInfo, Refused> {
        self.settled().await;
        let (now, _) = self.look(|_, _, now| Ok(now)).await?;
        self.live().ok_or(Refused::FileClosed)?.reconnected(client, self.holder(&owner), now)?;
        self.owned_by(owner);
        self.query().await
    }

    /// Closes the handle. What is to be deleted is deleted in the background.
    pub fn close_at_once(&self) {
        self.closing.close();
        if let Some(removal) = self.live().and_then(|handle| handle.close()) {
            self.tell_watchers_of_deletion();
            self.tree.abandon(removal);
        }
    }

    fn holder(&self, owner: &Arc<dyn HandleOwner>) -> Arc<DoorHolder> {
        Arc::new(DoorHolder::new(self.tree.clone(), Arc::clone(owner), Arc::clone(&self.closing)))
    }

    fn owned_by(&self, owner: Arc<dyn HandleOwner>) {
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner) = owner;
    }
}

/// What the other parts of the door use.
impl OpenFile {
    /// Refuses what the handle was not opened for: any of the rights will do.
    pub(super) fn need(&self, any: u32) -> Result<(), Refused> {
        if self.access & any == 0 { Err(Refused::AccessDenied) } else { Ok(()) }
    }

    /// Refuses what only files have.
    pub(super) fn need_file(&self) -> Result<(), Refused> {
        if self.is_directory { Err(Refused::NotAFile) } else { Ok(()) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, HandleState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the file is, unless the handle is closed.
    pub(super) fn location(&self) -> Result<Location, Refused> {
        match &self.subject {
            Subject::Live(handle) => {
                let place = handle.place().ok_or(Refused::FileClosed)?;
                Ok(Location::new(self.file_id(), &place))
            }
            Subject::Snapshot(_) if self.closing.is_closed.load(Ordering::SeqCst) => Err(Refused::FileClosed),
            Subject::Snapshot(location) => Ok(location.clone()),
        }
    }

    /// Its handle in the table of opens, unless it is in a share snapshot.
    pub(super) fn live(&self) -> Option<&Arc<Handle>> {
        match &self.subject {
            Subject::Live(handle) => Some(handle),
            Subject::Snapshot(_) => None,
        }
    }

    /// The same for a change.
    pub(super) fn handle(&self) -> Result<&Arc<Handle>, Refused> {
        self.live().ok_or(Refused::WriteProtected)
    }

    /// Refuses a read that the byte-range locks of others stand against.
    pub(super) fn check_read(&self, offset: u64, length: u64) -> Result<(), Refused> {
        match self.live() {
            Some(handle) => Ok(handle.check_io(offset, length, Transfer::Read)?),
            None => Ok(()),
        }
    }

    /// Ready when the handle is closed.
    pub(super) async fn closed(&self) {
        self.closing.closed().await;
    }

    pub(super) fn is_delete_pending(&self) -> bool {
        self.live().is_some_and(|handle| self.tree.door.opens.is_delete_pending(handle.file()))
    }

    /// A client that watches a directory holds it open, and lets it go when it hears that it is to be deleted.
    pub(super) fn tell_watchers_of_deletion(&self) {
        if self.is_directory && self.is_delete_pending() {
            self.tree.door.events.delete_pending(self.file_id());
        }
    }

    /// A change begins, and is under way until this is dropped.
    pub(super) async fn under_way(&self) -> Result<UnderWay, Refused> {
        Ok((Arc::clone(self.handle()?), Arc::clone(&self.changing).read_owned().await))
    }

    /// A change begins, of these bytes if they are known. Refused if others have locked them.
    pub(super) async fn begin_change(&self, span: Option<ByteSpan>) -> Result<Changing, Refused> {
        let under_way = self.under_way().await?;
        let span = span.map(|ByteSpan { start, end }| Span {
            offset: start,
            length: end.saturating_sub(start),
            transfer: Transfer::Write,
        });
        let entry = under_way.0.begin_write(span)?;
        Ok((under_way, entry))
    }

    /// Bytes of the file are about to be changed: what others have read of it they may not keep.
    pub(super) fn break_readers(&self) -> Result<(), Refused> {
        Ok(self.handle()?.contend(Contention::Change)?)
    }

    /// Waits for other clients to give up what they cache. Neither a turn nor an entry is held meanwhile.
    pub(super) async fn breaks_ended(&self, wait: BreakWait) {
        let owner = Arc::clone(&self.owner.lock().unwrap_or_else(PoisonError::into_inner));
        self.tree.breaks_ended(&*owner, wait).await;
    }

    /// Ready when all changes that were begun before have ended.
    pub(super) async fn settled(&self) {
        drop(self.changing.write().await);
    }

    /// Reads something of the file. Also says how its path is spelled.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        look: impl Fn(&Spot, &dyn Rows, Timestamp) -> Result<T, Stopped> + Send + 'static,
    ) -> Result<(T, Vec<String>), Refused> {
        let location = self.location()?;
        let names = location.names.clone();
        let read = self.tree.read(move |rows, share, now| look(&location.find(rows, share)?, rows, now));
        Ok((read.await?, if self.file_id() == self.tree.generation { Vec::new() } else { names }))
    }

    /// Commits a change of the file, none of its bytes in particular.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        effect: Effect,
        apply: impl Fn(&Spot, &dyn Rows, Tick, &mut Changes) -> Result<T, Stopped> + Send + Sync + 'static,
    ) -> Result<T, Refused> {
        let begun = self.begin_change(None).await?;
        self.commit_change(begun, effect, apply).await
    }

    /// Commits a change that has begun. It is under way until the commit has ended, also if the future is dropped: close waits for
    /// it so long, and even if the handle is closed by force nobody opens the file meanwhile who would not have it changed.
    pub(super) async fn commit_change<T: Send + 'static>(
        &self,
        begun: Changing,
        effect: Effect,
        apply: impl Fn(&Spot, &dyn Rows, Tick, &mut Changes) -> Result<T, Stopped> + Send + Sync + 'static,
    ) -> Result<T, Refused> {
        let apply = Arc::new(apply);
        let held = Arc::new(begun);
        for _ in 0..SETTLINGS_MAX {
            let (tree, apply, held, location) =
                (self.tree.clone(), Arc::clone(&apply), Arc::clone(&held), self.location()?);
            let announcement = Arc::new(Announcement::new(&tree.door.events));
            let deciding = Arc::clone(&announcement);
            let partition = share_key(tree.account, &tree.share);
            let committed = engine::commit(&*self.tree.door.engine, partition, move |rows, tick| {
                let _held = &held;
                let mut changes = Changes::none();
                let spot = location.find(rows, tree.guard(rows)?)?;
                let outcome = apply(&spot, rows, tick, &mut changes)?;
                let event = || effect.event(&spot, &location.names).into_iter().collect();
                deciding.decided(|| if changes.is_empty() { Vec::new() } else { event() });
                Ok(Commit { changes, outcome })
            });
            match committed.await.map_err(Ended::from) {
                Ok(outcome) => {
                    announcement.publish();
                    return Ok(outcome);
                }
                Err(ended) => {
                    announcement.forget();
                    match ended {
                        Ended::Unsettled { map } => FileView::settle(&*self.tree.door.engine, map).await?,
                        Ended::Refused(_) | Ended::LookAgain | Ended::Breaking(_) => return Err(ended.into()),
                    }
                }
            }
        }
        Err(Refused::TryAgain)
    }
}
