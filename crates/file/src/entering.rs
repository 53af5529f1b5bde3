//! How a REST operation enters the table of opens.
//!
//! An operation looks its path up, enters the table for what stands there, and keeps its entry until its commit has ended. The
//! commit looks the path up again: if something else stands there by then, the operation has entered for the wrong file, and
//! begins anew. So what is committed was let in by the table, and what is decided is decided on rows of one state.
//!
//! A request can be dropped while its commit waits: the client is gone, or its time is over. The commit may be done all the same, so
//! the entry and the turn belong to the decision: they are given up when the request and the engine are both done with it.
//!
//! SMB clients that cache the file are told to give that up. An operation that has to wait for them lets go of its turn and its entries,
//! and begins anew when they have.
//!
//! An operation is a value of one of three kinds, and says itself as what it enters:
//!
//! - [`NodeRead`]: reads what stands at a path. [`read`] runs it, [`look`] runs it for operations that no open excludes.
//! - [`NodeChange`]: changes what stands at a path. [`commit`] runs it; [`commit_at`] does so after a [`look`] that came first, and
//!   [`commit_reading`] for one that also reads a file.
//! - [`RenameNode`]: moves what stands at one path to another. [`rename`] runs it.

use std::sync::{Arc, Mutex, PoisonError};

use concurrency::Timestamp;
use concurrency::share_mode::RestAccess;
use engine::{BoxFuture, Changes, Key, Partitions, Rows, Stop, Tick};
use service::{Operation, ReadOperation};
use wire::file_path::FilePath;

use crate::Failure;
use crate::announcement::{self, Announcement, Effect};
use crate::change::rename::{self, Renaming};
use crate::error::FileError;
use crate::model::{Halt, guard, refuse, share_key};
use crate::opens::{BreakWait, Entry, FileId, NameKey, Place, Refusal, Span, Turn};
use crate::ops::Call;
use crate::reply::node::ShownNode;
use crate::tree::{self, Spot, Target};

/// How often an operation begins anew because what stands at its path has changed.
const ATTEMPTS_MAX: usize = 100;

/// What an operation is to the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admission {
    pub access: RestAccess,
    /// The bytes that it reads or writes, if it is about some of them.
    pub span: Option<Span>,
    /// It changes what openers look at before they enter the table, so it takes its turn with them.
    pub takes_turn: bool,
    /// It is not about anything that SMB clients cache.
    pub is_beside_caches: bool,
}

impl Admission {
    pub const fn of(access: RestAccess) -> Admission {
        Admission { access, span: None, takes_turn: false, is_beside_caches: false }
    }

    pub const fn at(self, span: Option<Span>) -> Admission {
        Admission { span, ..self }
    }

    pub const fn in_turn(self) -> Admission {
        Admission { takes_turn: true, ..self }
    }

    pub const fn beside_caches(self) -> Admission {
        Admission { is_beside_caches: true, ..self }
    }
}

/// An operation that reads what stands at a path.
pub trait NodeRead: Send + Sync + 'static {
    type Outcome: Send + 'static;

    /// What the operation is to the table, for what was found at the path.
    fn admission(&self, spot: &Spot) -> Admission;

    /// The rules of the operation. They may run more than once.
    fn read(&self, spot: &Spot, rows: &dyn Rows, now: Timestamp) -> Result<Self::Outcome, Halt>;
}

/// An operation that changes what stands at a path.
pub trait NodeChange: Send + Sync + 'static {
    type Outcome: Send + 'static;

    /// What the operation is to the table.
    fn admission(&self) -> Admission;

    /// What it is to those who watch the directory.
    fn effect(&self) -> Effect;

    /// Another share in which it changes something, too.
    fn other_partition(&self) -> Option<Key> {
        None
    }

    /// Asks for rows that the operation will need, before it is known what stands at the path. Whether they are there does not
    /// matter yet.
    fn announce(&self, spot: &Spot, rows: &dyn Rows) {
        let _ = (spot, rows);
    }

    /// The rules of the operation. They may run more than once; after a refusal the changes are thrown away.
    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<Self::Outcome, Halt>;
}

/// What an operation has entered the table for: a name in a directory, and what stood there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entered {
    directory: u64,
    id: Option<u64>,
}

impl Entered {
    fn of(spot: &Spot) -> Entered {
        Entered { directory: spot.directory(), id: spot.id() }
    }

    /// Whether the operation is still about what it has entered for.
    fn check(self, spot: &Spot) -> Result<(), Halt> {
        if self == Entered::of(spot) { Ok(()) } else { Err(refuse(FileError::Moved)) }
    }
}

/// Reads what stands at a path, if the table lets the operation in. It is at work from before the read until after it, so nothing
/// that excludes it was open meanwhile.
pub async fn read<R: NodeRead>(call: Call<'_>, target: &Target, read: R) -> Result<R::Outcome, Failure> {
    let (target, read) = (Arc::new(target.clone()), Arc::new(read));
    // Without any handle there is nothing that could exclude the read, so one look at the rows is enough.
    if let Some(before) = call.opens.calm() {
        let (_, outcome) =
            call.read(&Arc::new(Reading { target: Arc::clone(&target), read: Arc::clone(&read) })).await?;
        if call.opens.calm() == Some(before) {
            return Ok(outcome?);
        }
    }
    let looking = Arc::new(Looking(Arc::clone(&target)));
    for _ in 0..ATTEMPTS_MAX {
        let spot = call.read(&looking).await?;
        let _entry = match enter(call, &spot, read.admission(&spot)).await {
            Err(FileError::CacheBreaking(wait)) => {
                breaks_ended(call, wait).await?;
                continue;
            }
            entered => entered?,
        };
        let entered = Entered::of(&spot);
        let reading = Reading { target: Arc::clone(&target), read: Arc::clone(&read) };
        let (spot, outcome) = call.read(&Arc::new(reading)).await?;
        if Entered::of(&spot) == entered {
            return Ok(outcome?);
        }
    }
    Err(FileError::Moved.into())
}

/// Reads what stands at a path, for an operation that no open excludes: the table is asked afterwards whether the file is to be
/// deleted. Also tells where the path led.
pub async fn look<R: NodeRead>(call: Call<'_>, target: &Target, read: R) -> Result<(Spot, R::Outcome), Failure> {
    let reading = Arc::new(Reading { target: Arc::new(target.clone()), read: Arc::new(read) });
    for _ in 0..ATTEMPTS_MAX {
        let (spot, outcome) = call.read(&reading).await?;
        match enter(call, &spot, reading.read.admission(&spot)).await {
            // What the client writes back is to be seen.
            Err(FileError::CacheBreaking(wait)) => breaks_ended(call, wait).await?,
            entered => {
                entered?;
                return Ok((spot, outcome?));
            }
        }
    }
    Err(FileError::Moved.into())
}

/// Waits for SMB clients to give up what they cache of a file. The operation holds nothing meanwhile that they could need for that.
///
/// Boxed: it is rare, and every request's future would otherwise have room for it.
fn breaks_ended(call: Call<'_>, wait: BreakWait) -> BoxFuture<'_, Result<(), FileError>> {
    Box::pin(async move {
        let ended = call.opens.breaks_ended(wait);
        tokio::time::timeout_at(call.caches_until, ended).await.map_err(|_| FileError::ClientCacheFlushDelay)
    })
}

/// Enters the table for the file or directory that stands at a path and is read. Tells its id.
async fn enter_read(call: Call<'_>, target: &Target) -> Result<(u64, Option<Entry>), Failure> {
    let spot = call.read(&Arc::new(Looking(Arc::new(target.clone())))).await?;
    let file = file_id(&spot).ok_or(FileError::ResourceNotFound)?;
    Ok((file.id, enter(call, &spot, Admission::of(RestAccess::Read)).await?))
}

/// Commits a change of what stands at a path, if the table lets the operation in.
pub async fn commit<C: NodeChange>(call: Call<'_>, target: &Target, change: C) -> Result<C::Outcome, Failure> {
    commit_at(call, target, None, change).await
}

/// The same after the path was looked up: `spot` is where it led.
pub async fn commit_at<C: NodeChange>(
    call: Call<'_>,
    target: &Target,
    spot: Option<Spot>,
    change: C,
) -> Result<C::Outcome, Failure> {
    let (target, change, mut spot) = (Arc::new(target.clone()), Arc::new(change), spot);
    let mut turn = None;
    for _ in 0..ATTEMPTS_MAX {
        let spot = in_turn(call, &target, spot.take(), change.admission(), &mut turn).await?;
        match commit_entered(call, &target, &spot, Arc::clone(&change), (turn.as_ref(), None)).await {
            Err(Failure::Refused(FileError::Moved)) => {}
            Err(Failure::Refused(FileError::CacheBreaking(wait))) => {
                turn = None;
                breaks_ended(call, wait).await?;
            }
            result => return result,
        }
    }
    Err(FileError::Moved.into())
}

/// The same of a change that also reads a file, of the account that `reader` is for, and enters the table for it. The change is made
/// for the id of that file.
///
/// The turn comes first: an opener of the source may have the turn at the target, and waits for the entry.
pub async fn commit_reading<C: NodeChange>(
    call: Call<'_>,
    (target, mut spot): (&Target, Option<Spot>),
    (reader, source): (Call<'_>, &Target),
    change: impl Fn(u64) -> C,
    of_source: fn(Failure) -> Failure,
) -> Result<C::Outcome, Failure> {
    let target = Arc::new(target.clone());
    let admission = change(0).admission();
    let mut turn = None;
    for _ in 0..ATTEMPTS_MAX {
        let spot = in_turn(call, &target, spot.take(), admission, &mut turn).await?;
        let (id, entry) = match enter_read(reader, source).await {
            Err(Failure::Refused(FileError::CacheBreaking(wait))) => {
                turn = None;
                breaks_ended(call, wait).await.map_err(|error| of_source(error.into()))?;
                continue;
            }
            entered => entered.map_err(of_source)?,
        };
        match commit_entered(call, &target, &spot, Arc::new(change(id)), (turn.as_ref(), entry)).await {
            Err(Failure::Refused(FileError::Moved)) => {}
            Err(Failure::Refused(FileError::CacheBreaking(wait))) => {
                turn = None;
                breaks_ended(call, wait).await?;
            }
            result => return result,
        }
    }
    Err(FileError::Moved.into())
}

/// The turn that an operation has, and at which name.
type HeldTurn = (NameKey, Arc<Turn>);

/// Looks the path up, if that was not done, and takes the turn there.
async fn in_turn(
    call: Call<'_>,
    target: &Arc<Target>,
    spot: Option<Spot>,
    admission: Admission,
    turn: &mut Option<HeldTurn>,
) -> Result<Spot, Failure> {
    let spot = match spot {
        Some(spot) => spot,
        None => call.read(&Arc::new(Looking(Arc::clone(target)))).await?,
    };
    take_turn(call, &spot, admission, turn).await?;
    Ok(spot)
}

/// Commits a change of what stands at `spot`, with the turn there and the entry of what is read.
async fn commit_entered<C: NodeChange>(
    call: Call<'_>,
    target: &Arc<Target>,
    spot: &Spot,
    change: Arc<C>,
    (turn, source): (Option<&HeldTurn>, Option<Entry>),
) -> Result<C::Outcome, Failure> {
    let entry = enter(call, spot, change.admission()).await?;
    let held = (entry, source, turn.map(|(_, turn)| Arc::clone(turn)));
    let (target, entered) = (Arc::clone(target), Entered::of(spot));
    let announcement = Announcement::new(call.events);
    let changing = Arc::new(Changing { target, entered, change, announcement, _held: held });
    let result = call.commit(&changing).await;
    match result {
        Ok(_) => changing.announcement.publish(),
        // The decision may have been run and not committed.
        Err(_) => changing.announcement.forget(),
    }
    result
}

/// What stands at a path, looked up by itself.
#[derive(Debug)]
struct Looking(Arc<Target>);

impl ReadOperation for Looking {
    type Outcome = Spot;
    type Refusal = FileError;

    fn apply(&self, rows: &dyn Rows, account: u64, _: Timestamp) -> Result<Spot, Halt> {
        tree::find(rows, account, &self.0)
    }
}

/// A read of what stands at a path. Its refusal counts only after the table was asked.
struct Reading<R> {
    target: Arc<Target>,
    read: Arc<R>,
}

impl<R: NodeRead> ReadOperation for Reading<R> {
    type Outcome = (Spot, Result<R::Outcome, FileError>);
    type Refusal = FileError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<Self::Outcome, Halt> {
        let spot = tree::find(rows, account, &self.target)?;
        let outcome = match self.read.read(&spot, rows, now) {
            Ok(outcome) => Ok(outcome),
            Err(Stop::Refused(error)) => Err(error),
            Err(Stop::Unread(unread)) => return Err(Stop::Unread(unread)),
        };
        Ok((spot, outcome))
    }
}

/// A change of what the operation has entered for.
struct Changing<C> {
    target: Arc<Target>,
    entered: Entered,
    change: Arc<C>,
    announcement: Announcement,
    /// Given up in this order: what is changed, what is read, the turn.
    _held: (Option<Entry>, Option<Entry>, Option<Arc<Turn>>),
}

impl<C: NodeChange> Operation for Changing<C> {
    type Outcome = C::Outcome;
    type Refusal = FileError;

    fn partition(&self, account: u64) -> Key {
        share_key(account, &self.target.share)
    }

    fn partitions(&self, account: u64) -> Partitions {
        Partitions::of(self.change.other_partition().into_iter().chain([self.partition(account)]))
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<Self::Outcome, Halt> {
        let announce = |spot: &Spot| self.change.announce(spot, rows);
        let spot = tree::find_announcing(rows, account, &self.target, &announce)?;
        self.entered.check(&spot)?;
        let outcome = self.change.apply(&spot, rows, tick, changes)?;
        let event = || self.change.effect().event(&spot, &announcement::names(&self.target.path));
        self.announcement.decided(|| event().into_iter().collect());
        Ok(outcome)
    }
}

/// A rename within a share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RenameNode {
    pub source: FilePath,
    pub target: Target,
    pub renaming: Renaming,
}

impl RenameNode {
    /// Where both paths lead. A source below a directory that is not there is as little there as any other.
    fn find(&self, rows: &dyn Rows, account: u64) -> Result<(Spot, Spot), Halt> {
        let share = guard(rows, account, &self.target.share)?;
        // Both are asked for before either is missed.
        let (from, to) = (tree::find_in(rows, share, &self.source), tree::find_in(rows, share, &self.target.path));
        let from = from.map_err(|halt| match halt {
            Stop::Refused(FileError::ParentNotFound) => refuse(FileError::ResourceNotFound),
            other => other,
        });
        Ok((from?, to?))
    }

    /// As what the rename enters for what has the new name.
    fn access_to_target(&self, from: &Spot, to: &Spot) -> Option<RestAccess> {
        let node = to.node.as_ref().filter(|_| to.id() != from.id())?;
        let is_replaced = self.renaming.replaces && !node.is_directory();
        Some(if is_replaced { RestAccess::Rename } else { RestAccess::Look })
    }
}

/// Renames what stands at one path to another, if the table lets it go from the one and to the other. Its handles go along.
pub async fn rename(call: Call<'_>, rename: RenameNode) -> Result<ShownNode, Failure> {
    let rename = Arc::new(rename);
    let looking = Arc::new(LookingAtBoth(Arc::clone(&rename)));
    let mut turn: Option<((NameKey, NameKey), Arc<Turn>)> = None;
    for _ in 0..ATTEMPTS_MAX {
        let (from, to) = call.read(&looking).await?;
        let names = (name_key(&from), name_key(&to));
        if turn.as_ref().is_none_or(|(held, _)| *held != names) {
            drop(turn.take());
            let taken = call.opens.turn_at_both(names.0.clone(), names.1.clone()).await.map_err(FileError::from)?;
            turn = Some((names, Arc::new(taken)));
        }
        let (source, replaced) = match enter_both(call, &rename, &from, &to).await {
            Err(FileError::CacheBreaking(wait)) => {
                turn = None;
                breaks_ended(call, wait).await?;
                continue;
            }
            entered => entered?,
        };
        let entered = (Entered::of(&from), Entered::of(&to));
        let held = (replaced, turn.as_ref().map(|(_, turn)| Arc::clone(turn)));
        let (rename, moved, announcement) =
            (Arc::clone(&rename), MovedHandles::new(source), Announcement::new(call.events));
        let renaming = Arc::new(RenamingNode { rename, entered, moved, announcement, _held: held });
        let result = call.commit(&renaming).await;
        if result.is_err() {
            // The decision may have been run and not committed: then the handles stay where they are.
            renaming.moved.decided(None);
            renaming.announcement.forget();
        }
        match result {
            Err(Failure::Refused(FileError::Moved)) => {}
            Ok(shown) => {
                renaming.moved.move_handles();
                renaming.announcement.publish();
                return Ok(shown);
            }
            Err(failure) => return Err(failure),
        }
    }
    Err(FileError::Moved.into())
}

/// Enters the table for what is renamed, and for what stands at the new name or the directory it comes into.
async fn enter_both(
    call: Call<'_>,
    rename: &RenameNode,
    from: &Spot,
    to: &Spot,
) -> Result<(Option<Entry>, Option<Entry>), FileError> {
    let source = enter_source(call, from).await?;
    let replaced = match rename.access_to_target(from, to) {
        Some(access) => enter(call, to, Admission::of(access)).await?,
        None => Some(enter_directory(call, to)?),
    };
    Ok((source, replaced))
}

#[derive(Debug)]
struct LookingAtBoth(Arc<RenameNode>);

impl ReadOperation for LookingAtBoth {
    type Outcome = (Spot, Spot);
    type Refusal = FileError;

    fn apply(&self, rows: &dyn Rows, account: u64, _: Timestamp) -> Result<(Spot, Spot), Halt> {
        self.0.find(rows, account)
    }
}

struct RenamingNode {
    rename: Arc<RenameNode>,
    entered: (Entered, Entered),
    moved: MovedHandles,
    announcement: Announcement,
    /// Given up in this order.
    _held: (Option<Entry>, Option<Arc<Turn>>),
}

/// The handles of what is renamed, and where they find it then.
#[derive(Debug)]
pub struct MovedHandles {
    /// Where the last run of the decision has put it, until its handles know.
    place: Mutex<Option<Place>>,
    source: Option<Entry>,
}

impl MovedHandles {
    /// With the entry of what is renamed.
    pub fn new(source: Option<Entry>) -> MovedHandles {
        MovedHandles { place: Mutex::default(), source }
    }

    /// The decision was run and puts it there; or it was not committed.
    pub fn decided(&self, place: Option<Place>) -> Option<Place> {
        std::mem::replace(&mut *self.place.lock().unwrap_or_else(PoisonError::into_inner), place)
    }

    /// Tells the handles where they are now.
    pub fn move_handles(&self) {
        if let (Some(source), Some(place)) = (&self.source, self.decided(None)) {
            source.moved_to(place);
        }
    }
}

impl Drop for MovedHandles {
    fn drop(&mut self) {
        // The request was dropped before it knew of the commit.
        self.move_handles();
    }
}

impl Operation for RenamingNode {
    type Outcome = ShownNode;
    type Refusal = FileError;

    fn partition(&self, account: u64) -> Key {
        share_key(account, &self.rename.target.share)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<ShownNode, Halt> {
        self.moved.decided(None);
        let (from, to) = self.rename.find(rows, account)?;
        self.entered.0.check(&from)?;
        self.entered.1.check(&to)?;
        let node = rename::rename(&from, &to, &self.rename.renaming, rows, tick, changes)?;
        self.moved.decided(Some(place(rows, &to, &self.rename.target.path)?));
        self.announcement.decided(|| {
            let names = (announcement::names(&self.rename.source), announcement::names(&self.rename.target.path));
            announcement::renamed((&from, &names.0), (&to, &names.1))
        });
        Ok(ShownNode::new(&to, node, tick.now))
    }
}

/// Where handles find what now stands at a path: its directories as they are spelled, and their ids.
pub fn place(rows: &dyn Rows, spot: &Spot, path: &FilePath) -> Result<Place, Halt> {
    let mut names = tree::spelled_directories(rows, spot.share, None, path)?;
    names.extend(path.names().last().map(|name| name.as_str().to_owned()));
    Ok(Place { path: names.join("/"), above: spot.above.iter().rev().copied().collect() })
}

/// Takes the turn at the name, unless it is held already. An operation that begins anew keeps its turn: no other operation changes
/// what stands at the name meanwhile, so the second attempt finds it as it was looked up.
async fn take_turn(
    call: Call<'_>,
    spot: &Spot,
    admission: Admission,
    turn: &mut Option<HeldTurn>,
) -> Result<(), FileError> {
    let name = name_key(spot);
    if !admission.takes_turn || turn.as_ref().is_some_and(|(held, _)| *held == name) {
        return Ok(());
    }
    // Never two at once: others may wait for them in another order.
    drop(turn.take());
    *turn = Some((name.clone(), Arc::new(call.opens.turn(name).await?)));
    Ok(())
}

async fn enter(call: Call<'_>, spot: &Spot, admission: Admission) -> Result<Option<Entry>, FileError> {
    if spot.at.is_some() {
        // What a snapshot sees is not what is open.
        return Ok(None);
    }
    let Some(file) = file_id(spot) else { return enter_directory(call, spot).map(Some) };
    if admission.is_beside_caches {
        return Ok(Some(call.opens.enter_beside_caches(file, admission.access)?));
    }
    Ok(Some(call.opens.enter(file, admission.access, admission.span).await?))
}

/// Nothing new comes into a directory that SMB is about to delete.
fn enter_directory(call: Call<'_>, spot: &Spot) -> Result<Entry, FileError> {
    Ok(call.opens.enter_to_add(FileId { share: spot.share.generation, id: spot.directory() })?)
}

/// Enters for what is renamed: a directory with everything below it.
async fn enter_source(call: Call<'_>, spot: &Spot) -> Result<Option<Entry>, FileError> {
    let (Some(file), Some(node)) = (file_id(spot), &spot.node) else { return Ok(None) };
    let entry = if node.is_directory() {
        call.opens.enter_tree(file, RestAccess::Rename).await
    } else {
        call.opens.enter(file, RestAccess::Rename, None).await
    };
    Ok(Some(entry?))
}

/// What stands at a spot, as the table knows it.
pub fn file_id(spot: &Spot) -> Option<FileId> {
    spot.id().map(|id| FileId { share: spot.share.generation, id })
}

/// The name that openers of this spot take their turn at.
pub fn name_key(spot: &Spot) -> NameKey {
    NameKey { directory: spot.directory(), folded: spot.name.as_str().into() }
}

impl From<Refusal> for FileError {
    fn from(refusal: Refusal) -> FileError {
        match refusal {
            Refusal::SharingViolation => FileError::SharingViolation,
            Refusal::FileLockConflict => FileError::FileLockConflict,
            Refusal::DeletePending => FileError::SmbDeletePending,
            Refusal::TooMany => FileError::Moved,
            Refusal::Breaking(wait) => FileError::CacheBreaking(wait),
        }
    }
}
