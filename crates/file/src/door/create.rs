//! CREATE: opening a file or directory, and creating, emptying or replacing it first.
//!
//! Whoever opens takes the turn at the name, looks at the rows, and then at the table. Something new is committed before its handle
//! is in the table: the turn keeps everybody else from the name meanwhile. A file that is there is opened first and emptied then, so
//! that what its other handles do not share is not done.

use std::sync::Arc;

use concurrency::Timestamp;
use concurrency::share_mode::{Access, Open};
use engine::{Changes, Commit, Rows, Tick};
use service::reply::CONTENT_TYPE_DEFAULT;
use service::{HttpHeaders, Pairs};
use wire::file_path::FilePath;

use super::decide::{ATTEMPTS_MAX, Ended, Stopped, ended, names_directory, parse_path};
use super::open_file::{Closing, DoorHolder};
use super::{
    CreateAction, CreateRequest, Disposition, FileInfo, OpenFile, Opened, Refused, Tree, access, attributes, options,
};
use crate::announcement::{Announcement, Effect};
use crate::change::create::{self, NewFile, NewNode, Replacing};
use crate::change::properties::{PermissionSetting, SmbSettings};
use crate::model::{Attributes, Node, ShareGuard, share_key};
use crate::opens::events::Aspects;
use crate::opens::{CachingRequest, Entry, FileId, GrantedCaching, Handle, NameKey, OpenRequest, Place, Turn};
use crate::request::FILE_BYTES_MAX;
use crate::security::{Descriptor, Permission, root_directory};
use crate::tree::{self, Spot};

/// Bits that no access mask has.
const ACCESS_BITS_UNKNOWN: u32 = 0x0CE0_FE00;

/// What generic rights stand for.
const GENERICS: [(u32, u32); 4] = [
    (access::GENERIC_READ, 0x12_0089),
    (access::GENERIC_WRITE, 0x12_0116),
    (access::GENERIC_EXECUTE, 0x12_00A0),
    (access::GENERIC_ALL, access::FILE_ALL_ACCESS),
];

/// A CREATE whose parts fit together.
#[derive(Debug)]
pub(super) struct Wish {
    pub path: FilePath,
    /// The path is one that only a directory can have.
    names_directory: bool,
    /// Without generic bits.
    pub access: u32,
    /// Whatever there is to be had, too.
    pub wants_all: bool,
    sharing: Access,
    disposition: Disposition,
    options: u32,
    new: NewNode,
}

/// What becomes of what stands at the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Plan {
    Open,
    Create { is_directory: bool },
    Overwrite,
}

impl Wish {
    pub fn new(request: &CreateRequest) -> Result<Wish, Refused> {
        let path = parse_path(&request.path)?;
        if request.access == 0 || request.access & ACCESS_BITS_UNKNOWN != 0 {
            return Err(Refused::AccessDenied);
        }
        let wish = Wish {
            path,
            names_directory: names_directory(&request.path),
            access: GENERICS.iter().fold(request.access & !GENERIC_BITS, |mask, (generic, rights)| {
                if request.access & generic == 0 { mask } else { mask | rights }
            }),
            wants_all: request.access & access::MAXIMUM_ALLOWED != 0,
            sharing: Access::from_share_bits(request.sharing),
            disposition: request.disposition,
            options: request.options,
            new: NewNode { settings: settings(request)?, metadata: Pairs::new() },
        };
        wish.check_options(request)?;
        Ok(wish)
    }

    fn check_options(&self, request: &CreateRequest) -> Result<(), Refused> {
        let overwrites = match self.disposition {
            Disposition::Supersede | Disposition::Overwrite | Disposition::OverwriteIf => true,
            Disposition::Open | Disposition::Create | Disposition::OpenIf => false,
        };
        let is_directory = self.has(options::DIRECTORY_FILE);
        let is_contradiction = is_directory && (self.has(options::NON_DIRECTORY_FILE) || overwrites);
        let is_temporary_directory = is_directory && request.attributes & attributes::TEMPORARY != 0;
        if is_contradiction || is_temporary_directory || request.sharing & !ALL_SHARING != 0 {
            return Err(Refused::InvalidParameter);
        }
        if self.names_directory && self.has(options::NON_DIRECTORY_FILE) {
            return Err(Refused::NameInvalid);
        }
        if self.has(options::OPEN_BY_FILE_ID) {
            return Err(Refused::NotSupported);
        }
        if self.deletes_on_close() && self.access & access::DELETE == 0 && !self.wants_all {
            return Err(Refused::AccessDenied);
        }
        Ok(())
    }

    fn has(&self, option: u32) -> bool {
        self.options & option != 0
    }

    pub fn deletes_on_close(&self) -> bool {
        self.has(options::DELETE_ON_CLOSE)
    }

    /// What to do with what was found. `created` is what an earlier attempt of this request has created.
    pub fn plan(&self, spot: &Spot, created: Option<u64>) -> Result<Plan, Refused> {
        let Some(node) = &spot.node else { return self.plan_new() };
        if created == Some(node.id) {
            return Ok(Plan::Open);
        }
        if self.disposition == Disposition::Create {
            return Err(Refused::Collision);
        }
        let plan = match self.disposition {
            Disposition::Open | Disposition::OpenIf | Disposition::Create => Plan::Open,
            Disposition::Supersede | Disposition::Overwrite | Disposition::OverwriteIf => Plan::Overwrite,
        };
        if node.is_directory() {
            if self.has(options::NON_DIRECTORY_FILE) {
                return Err(Refused::IsADirectory);
            }
            if plan == Plan::Overwrite {
                return Err(Refused::Collision);
            }
            if spot.is_root() && self.deletes_on_close() {
                return Err(Refused::CannotDelete);
            }
        } else {
            if self.has(options::DIRECTORY_FILE) {
                return Err(Refused::NotADirectory);
            }
            if self.names_directory {
                return Err(Refused::NameInvalid);
            }
            self.check_file(node, plan)?;
        }
        if node.is_read_only() && self.deletes_on_close() {
            return Err(Refused::CannotDelete);
        }
        Ok(plan)
    }

    fn plan_new(&self) -> Result<Plan, Refused> {
        match self.disposition {
            Disposition::Open | Disposition::Overwrite => return Err(Refused::NotFound),
            Disposition::Supersede | Disposition::Create | Disposition::OpenIf | Disposition::OverwriteIf => {}
        }
        let attributes = self.new.settings.attributes.unwrap_or_default();
        if self.deletes_on_close() && attributes.contains(Attributes::READ_ONLY) {
            return Err(Refused::CannotDelete);
        }
        let is_directory = self.has(options::DIRECTORY_FILE);
        if self.names_directory && !is_directory {
            return Err(Refused::NameInvalid);
        }
        Ok(Plan::Create { is_directory })
    }

    /// Whether the attributes of a file that is there allow it.
    fn check_file(&self, node: &Node, plan: Plan) -> Result<(), Refused> {
        if node.is_read_only() && (self.access & WRITES != 0 || plan == Plan::Overwrite) {
            return Err(Refused::AccessDenied);
        }
        let given = self.new.settings.attributes.unwrap_or_default();
        let is_hidden_from = |attribute| node.attributes.contains(attribute) && !given.contains(attribute);
        if plan == Plan::Overwrite && (is_hidden_from(Attributes::HIDDEN) || is_hidden_from(Attributes::SYSTEM)) {
            return Err(Refused::AccessDenied);
        }
        Ok(())
    }

    /// The access that the handle has.
    fn granted(&self, node: &Node, is_new: bool) -> u32 {
        if !self.wants_all {
            return self.access;
        }
        let is_read_only = node.is_read_only() && !node.is_directory() && !is_new;
        self.access | if is_read_only { access::FILE_ALL_ACCESS & !WRITES } else { access::FILE_ALL_ACCESS }
    }
}

const GENERIC_BITS: u32 = access::MAXIMUM_ALLOWED
    | access::GENERIC_ALL
    | access::GENERIC_EXECUTE
    | access::GENERIC_WRITE
    | access::GENERIC_READ;
const WRITES: u32 = access::FILE_WRITE_DATA | access::FILE_APPEND_DATA;
const ALL_SHARING: u32 = super::sharing::READ | super::sharing::WRITE | super::sharing::DELETE;

/// What something new, or a file that is overwritten, is created with.
fn settings(request: &CreateRequest) -> Result<SmbSettings, Refused> {
    let permission = match &request.security {
        None => PermissionSetting::Inherit,
        Some(binary) => permission(binary)?,
    };
    Ok(SmbSettings {
        attributes: Some(Attributes::from_bits(request.attributes)),
        permission,
        ..SmbSettings::default()
    })
}

/// A descriptor that a client sends along. One without a DACL asks for nothing that could be kept; owner and group that it does not name are
/// those of a new share.
fn permission(binary: &[u8]) -> Result<PermissionSetting, Refused> {
    let given = Descriptor::decode(binary).map_err(|_| Refused::InvalidSecurityDescriptor)?;
    if given.dacl.is_none() {
        return Ok(PermissionSetting::Inherit);
    }
    let usual = root_directory();
    let whole = Descriptor { owner: given.owner.or(usual.owner), group: given.group.or(usual.group), ..given };
    let permission = Permission::new(whole).map_err(|_| Refused::InvalidSecurityDescriptor)?;
    Ok(PermissionSetting::Given(Box::new(permission)))
}

/// Where a path led.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub spot: Spot,
    /// The names of the path as they are spelled. The last is the one of the request where nothing stands.
    pub names: Vec<String>,
    now: Timestamp,
}

impl Found {
    /// Looks a path up in the share, or in the snapshot of the epoch `at`.
    pub fn look(
        rows: &dyn Rows,
        (share, at): (ShareGuard, Option<u64>),
        path: &FilePath,
        now: Timestamp,
    ) -> Result<Found, Stopped> {
        let spot = tree::find_at(rows, share, at, path).map_err(ended)?;
        let mut names = tree::spelled_directories(rows, share, at, path).map_err(ended)?;
        if !spot.is_root() {
            names.push(spot.node.as_ref().map_or(&spot.spelling, |node| &node.name).clone());
        }
        Ok(Found { spot, names, now })
    }

    fn place(&self) -> Place {
        Place { path: self.names.join("/"), above: self.spot.above.iter().rev().copied().collect() }
    }

    fn name_key(&self) -> NameKey {
        NameKey { directory: self.spot.directory(), folded: self.spot.name.as_str().into() }
    }
}

pub async fn open(tree: &Tree, request: CreateRequest) -> Result<Opened, Refused> {
    let wish = Arc::new(Wish::new(&request)?);
    let mut opening = Opening { tree, request, wish, created: None, has_waited: false };
    let mut turn: Option<(NameKey, Arc<Turn>)> = None;
    for _ in 0..ATTEMPTS_MAX {
        let moves = tree.door.opens.moves(tree.generation);
        let found = opening.look().await?;
        opening.check_presence(&found.spot)?;
        let name = found.name_key();
        let held = match turn.take() {
            Some((held, turn)) if held == name => turn,
            // Never two at once: others may wait for them in another order.
            other => {
                drop(other);
                turn = Some((name.clone(), Arc::new(tree.door.opens.turn(name).await?)));
                // What was looked up may have changed before the turn came.
                continue;
            }
        };
        match opening.attempt(found, moves, &held).await {
            Ok(opened) => return Ok(opened),
            // The turn is given up: what changed the file may wait for it.
            Err(Ended::LookAgain) => {}
            Err(Ended::Breaking(wait)) => {
                drop(held);
                opening.has_waited = true;
                tree.breaks_ended(&*opening.request.owner, wait).await;
            }
            Err(other) => return Err(other.into()),
        }
    }
    Err(Refused::TryAgain)
}

/// What is held until a commit has ended, also if nobody waits for it any more.
struct Held {
    _turn: Arc<Turn>,
    /// The file that is emptied.
    _handle: Option<Arc<Handle>>,
    /// The directory into which something new comes.
    _added: Option<Arc<Entry>>,
}

/// A CREATE under way.
struct Opening<'a> {
    tree: &'a Tree,
    request: CreateRequest,
    wish: Arc<Wish>,
    /// What an earlier attempt has created.
    created: Option<u64>,
    /// An earlier attempt had to wait for other clients to give up what they cache.
    has_waited: bool,
}

impl Opening<'_> {
    async fn look(&self) -> Result<Found, Refused> {
        let wish = Arc::clone(&self.wish);
        Ok(self.tree.read(move |rows, share, now| Found::look(rows, (share, None), &wish.path, now)).await?)
    }

    /// A key that the client has a lease of for another file, or for any if there is none yet, is refused.
    fn check_lease(&self, spot: &Spot) -> Result<(), Refused> {
        let CachingRequest::Lease { name, .. } = self.request.caching else { return Ok(()) };
        let file = spot.id().map(|id| FileId { share: spot.share.generation, id });
        match self.tree.door.opens.is_lease_elsewhere(name, file) {
            true => Err(Refused::InvalidParameter),
            false => Ok(()),
        }
    }

    /// Whether something must be there and is not, or is there and must not. That needs no turn: it was so at the moment of the look.
    /// What is to be deleted may be gone when the turn comes.
    fn check_presence(&self, spot: &Spot) -> Result<(), Refused> {
        match self.wish.plan(spot, self.created) {
            Err(refused @ (Refused::NotFound | Refused::Collision)) if self.check_pending(spot).is_ok() => Err(refused),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn attempt(&mut self, mut found: Found, moves: u64, turn: &Arc<Turn>) -> Result<Opened, Ended> {
        self.check_pending(&found.spot)?;
        let plan = self.wish.plan(&found.spot, self.created)?;
        self.check_lease(&found.spot)?;
        // Held until the handle is in the table: the directory is not deleted before.
        let mut added = None;
        if let Plan::Create { is_directory } = plan {
            let directory = FileId { share: found.spot.share.generation, id: found.spot.directory() };
            let entry = Arc::new(self.tree.door.opens.enter_to_add(directory).map_err(Refused::from)?);
            let held = Held { _turn: Arc::clone(turn), _handle: None, _added: Some(Arc::clone(&entry)) };
            added = Some(entry);
            let node = self.create(&found, is_directory, held).await?;
            self.created = Some(node.id);
            found.spot.node = Some(node);
        }
        let Some(mut node) = found.spot.node.clone() else { return Err(Ended::LookAgain) };
        let is_new = self.created == Some(node.id);
        let granted = self.wish.granted(&node, is_new);
        let closing = Arc::new(Closing::default());
        let handle = Arc::new(self.handle((&found, &node), (granted, plan), &closing).await?);
        drop(added);
        let is_cached = handle.granted_caching() != GrantedCaching::None;
        // A directory above may have gone elsewhere before the handle was in the table. And a change that ended before has broken no
        // cache: the client must not cache what was read before that.
        if is_cached || self.tree.door.opens.moves(self.tree.generation) != moves {
            let again = self.look().await?;
            let is_moved = again.place() != found.place();
            node = again.spot.node.filter(|now| now.id == node.id && !is_moved).ok_or(Ended::LookAgain)?;
            if is_cached && is_filling(&node, again.now) {
                return Err(Ended::LookAgain);
            }
        }
        let node = match plan {
            Plan::Overwrite => self.overwrite(&found, &handle, turn).await?,
            Plan::Open | Plan::Create { .. } => node,
        };
        if self.wish.deletes_on_close() {
            handle.set_delete_on_close().map_err(Refused::from)?;
        }
        let action = match plan {
            Plan::Overwrite if self.wish.disposition == Disposition::Supersede => CreateAction::Superseded,
            Plan::Overwrite => CreateAction::Overwritten,
            Plan::Open | Plan::Create { .. } if is_new => CreateAction::Created,
            Plan::Open | Plan::Create { .. } => CreateAction::Opened,
        };
        let file = OpenFile::new(
            self.tree.clone(),
            (handle, closing),
            Arc::clone(&self.request.owner),
            granted,
            node.is_directory(),
        );
        let is_emptied = matches!(plan, Plan::Overwrite | Plan::Create { .. });
        let allocation = self.request.allocation.filter(|asked| is_emptied && *asked <= FILE_BYTES_MAX).unwrap_or(0);
        file.state().allocation = allocation;
        let info = FileInfo::new(&node, &found.names.join("\\"), granted, false).with_allocation(allocation);
        Ok(Opened { file, action, info })
    }

    /// Neither what is to be deleted nor anything in it is opened.
    fn check_pending(&self, spot: &Spot) -> Result<(), Refused> {
        let ids = spot.id().into_iter().chain(spot.above.iter().copied()).collect::<Vec<u64>>();
        let pending = self.tree.door.opens.pending_among(spot.share.generation, &ids);
        if pending.is_empty() { Ok(()) } else { Err(Refused::DeletePending) }
    }

    async fn handle(
        &self,
        (found, node): (&Found, &Node),
        (granted, plan): (u32, Plan),
        closing: &Arc<Closing>,
    ) -> Result<Handle, Ended> {
        let holder = DoorHolder::new(self.tree.clone(), Arc::clone(&self.request.owner), Arc::clone(closing));
        let request = OpenRequest {
            file: FileId { share: found.spot.share.generation, id: node.id },
            place: Arc::new(found.place()),
            open: Open { access: Access::from_mask(granted), sharing: self.wish.sharing },
            mask: granted,
            also: if plan == Plan::Overwrite { Access::WRITE } else { Access::NONE },
            delete_on_close: false,
            is_leased: node.file().is_some_and(|state| state.lease.holder(found.now).is_some()),
            // There is nothing to cache of a directory, and nothing that could be kept of a file that a copy fills.
            caching: match node.is_directory() || is_filling(node, found.now) {
                true => CachingRequest::None,
                false => self.request.caching,
            },
            has_waited: self.has_waited,
            client: self.request.client.clone(),
            now: found.now,
            holder: Arc::new(holder),
        };
        Ok(self.tree.door.opens.open(request).await?)
    }

    /// Creates what the request asks for at a free name.
    async fn create(&self, found: &Found, is_directory: bool, held: Held) -> Result<Node, Ended> {
        let wish = Arc::clone(&self.wish);
        let (above, added) = (found.spot.above.clone(), Aspects::name_of(is_directory));
        let effect = Effect::Put { added, changed: Aspects::PROPERTIES };
        let apply = move |spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes| {
            if spot.node.is_some() || spot.above != above {
                return Err(engine::Stop::Refused(Ended::LookAgain));
            }
            let made = if is_directory {
                create::directory(spot, &wish.new, rows, tick, changes)
            } else {
                create::file(spot, &wish.new, &new_file(), None, rows, tick, changes)
            };
            made.map_err(ended)
        };
        self.commit((found, Plan::Create { is_directory }), effect, held, apply).await
    }

    /// Empties the file that was opened.
    async fn overwrite(&self, found: &Found, handle: &Arc<Handle>, turn: &Arc<Turn>) -> Result<Node, Ended> {
        let (wish, id) = (Arc::clone(&self.wish), handle.file().id);
        let effect = Effect::changed(Aspects::BYTES.and(Aspects::ATTRIBUTES));
        let held = Held { _turn: Arc::clone(turn), _handle: Some(Arc::clone(handle)), _added: None };
        let apply = move |spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes| {
            if spot.id() != Some(id) {
                return Err(engine::Stop::Refused(Ended::LookAgain));
            }
            create::overwrite(spot, &wish.new.settings, rows, tick, changes).map_err(ended)
        };
        self.commit((found, Plan::Overwrite), effect, held, apply).await
    }

    /// Commits a change of what stands at the path.
    async fn commit(
        &self,
        (found, plan): (&Found, Plan),
        effect: Effect,
        held: Held,
        apply: impl Fn(&Spot, &dyn Rows, Tick, &mut Changes) -> Result<Node, Stopped> + Send + 'static,
    ) -> Result<Node, Ended> {
        let (tree, wish, names) = (self.tree.clone(), Arc::clone(&self.wish), found.names.clone());
        let announcement = Arc::new(Announcement::new(&tree.door.events));
        let deciding = Arc::clone(&announcement);
        let partition = share_key(tree.account, &tree.share);
        let committed = engine::commit(&*self.tree.door.engine, partition, move |rows, tick| {
            let _held = &held;
            let mut changes = Changes::none();
            let share = tree.guard(rows)?;
            // What is created is empty, so only what is emptied changes the usage of the share.
            let announce = |spot: &Spot| match plan {
                Plan::Create { is_directory: true } => create::announce(spot, &wish.new, None, rows),
                Plan::Create { is_directory: false } => create::announce_permission(spot, &wish.new, rows),
                Plan::Overwrite => share.announce_count(rows),
                Plan::Open => {}
            };
            let spot = tree::find_in_announcing(rows, share, &wish.path, &announce).map_err(ended)?;
            let node = apply(&spot, rows, tick, &mut changes)?;
            deciding.decided(|| effect.event(&spot, &names).into_iter().collect());
            Ok(Commit { changes, outcome: node })
        });
        let result = committed.await;
        match result {
            Ok(_) => announcement.publish(),
            Err(_) => announcement.forget(),
        }
        Ok(result?)
    }
}

/// Whether a copy in the background fills the file. It tells no client of what it changes.
fn is_filling(node: &Node, now: Timestamp) -> bool {
    node.file().is_some_and(|state| state.check_no_copy(now).is_err())
}

/// An empty file as SMB creates it: REST shows the type that files have without one.
fn new_file() -> NewFile {
    let headers = HttpHeaders { content_type: Some(CONTENT_TYPE_DEFAULT.to_owned()), ..HttpHeaders::default() };
    let replacing = Replacing { lease: None, may_replace: false, ignores_read_only: false };
    NewFile { length: 0, headers, replacing }
}
