//! Opening a file over SMB.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;

use concurrency::Timestamp;
use concurrency::caching::{CacheKind, is_attributes_only};
use concurrency::share_mode::{Access, Open};

use super::caches::{Broken, CacheKey, CachingRequest};
use super::handle::{Handle, Removal};
use super::slot::Slot;
use super::table::NotOpened;
use super::{FileId, HandleId, OpenRefusal, Opens};

/// Where a file is, as its handles know it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// From the root of the share, as it is spelled there.
    pub path: String,
    /// Ids of the directories above, the nearest first and the root last. Empty for the root.
    pub above: Vec<u64>,
}

/// Whose handle it is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Client {
    pub session: u64,
    pub address: SocketAddr,
    pub name: String,
}

/// Told what becomes of a handle without its own doing. Called without locks, so it may call the table; it must not
/// block.
pub trait Holder: Debug + Send + Sync {
    /// The handle was closed by force. What its guard is asked from now on is refused.
    fn closed(&self, handle: HandleId);

    /// A guard was dropped instead of closed, and it was the last handle of a file that is to be deleted.
    fn must_delete(&self, removal: Removal);

    /// The oplock or the lease of the handle is broken. The answer says whether the client can be told; one that cannot loses all that it
    /// may cache at once. A client that must acknowledge does so by [`Handle::acknowledge_oplock`] or
    /// [`Opens::acknowledge_lease`](super::Opens::acknowledge_lease), or by closing the handle.
    fn broken(&self, broken: Broken) -> bool;
}

/// A file to be opened. The caller has read its row under a [`Turn`](super::Turn) that it still holds.
#[derive(Clone, Debug)]
pub struct OpenRequest {
    pub file: FileId,
    pub place: Arc<Place>,
    pub open: Open,
    /// The access mask: whether it only looks at attributes.
    pub mask: u32,
    /// What it does only now, as it is opened: emptying a file is a write. It is judged with the rest and not kept.
    pub also: Access,
    /// The file is deleted when this handle has closed and no other is left.
    pub delete_on_close: bool,
    /// Whether the row has a REST lease that is held.
    pub is_leased: bool,
    /// What its client asks to cache.
    pub caching: CachingRequest,
    /// It was refused with [`OpenRefusal::Breaking`] before.
    pub has_waited: bool,
    pub client: Client,
    pub now: Timestamp,
    pub holder: Arc<dyn Holder>,
}

/// A handle in the table.
#[derive(Debug)]
pub(super) struct OpenHandle {
    pub open: Open,
    pub place: Arc<Place>,
    pub client: Client,
    pub opened: Timestamp,
    pub reconnected: Option<Timestamp>,
    pub deletes_on_close: bool,
    /// Its client has it. Before that the handle keeps others out but is withdrawn without a trace: it deletes nothing,
    /// and no deletion waits for it.
    pub is_told: bool,
    /// Its client has lost its connection and may come back.
    pub is_disconnected: bool,
    pub holder: Arc<dyn Holder>,
    /// Its oplock or lease, if it has asked for one. It may have got none.
    pub cache: Option<CacheKey>,
    /// It does more than look at attributes.
    pub is_user: bool,
}

impl OpenRequest {
    /// A REST lease that is held stands against it.
    pub(super) fn meets_rest_lease(&self) -> bool {
        self.is_leased && Open::REST_LEASE.conflicts_with(self.judged())
    }

    /// As what it is judged beside others.
    pub(super) fn judged(&self) -> Open {
        Open { access: self.open.access.and(self.also), ..self.open }
    }
}

impl OpenHandle {
    pub fn new(id: HandleId, request: &OpenRequest) -> OpenHandle {
        OpenHandle {
            open: request.open,
            place: Arc::clone(&request.place),
            client: request.client.clone(),
            opened: request.now,
            reconnected: None,
            deletes_on_close: request.delete_on_close,
            is_told: false,
            is_disconnected: false,
            holder: Arc::clone(&request.holder),
            cache: request.caching.key(id),
            is_user: !is_attributes_only(request.mask, CacheKind::Lease),
        }
    }
}

impl Opens {
    /// Opens the file. Handles and a held lease refuse it at once; for REST operations at work it waits. Caches of other clients are
    /// broken; if they must acknowledge, the answer is [`OpenRefusal::Breaking`].
    ///
    /// Most operations leave the file as the caller read it, so the handle goes into the table, keeps later ones out and
    /// waits for those that came before. After one that moves, deletes or leases the file the answer is
    /// [`OpenRefusal::LookAgain`]. Dropping the future withdraws the open.
    pub async fn open(&self, request: OpenRequest) -> Result<Handle, OpenRefusal> {
        let share = request.file.share;
        let number = self.table.next_handle();
        let breaks = self.table.next_ticket();
        let (tried, notices) =
            self.table.with(share, |share| share.try_open(number, &request, breaks, &self.table.leases));
        self.table.tell(notices);
        match tried {
            Ok(()) => {}
            Err(NotOpened::Refused(refusal)) => return Err(refusal),
            Err(NotOpened::Outdated) => {
                self.table.wait_while(share, |share| share.while_outdated(&request)).await;
                return Err(OpenRefusal::LookAgain);
            }
        }
        let handle = Handle::new(Arc::clone(&self.table), request.file, number);
        let against = |slot: &mut Slot| slot.transient_against(request.judged());
        self.table.wait_while(share, |share| share.slot_of(request.file, number).and_then(against)).await;
        self.table.with(share, |share| share.finish_open(request.file, number))?;
        Ok(handle)
    }
}
