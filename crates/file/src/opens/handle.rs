//! An open file as its SMB client has it, and the deletion at the last close.

use std::sync::Arc;

use concurrency::Timestamp;
use concurrency::caching::{AcknowledgementRefusal, Caching, Contention, OplockLevel};
use concurrency::range_lock::Transfer;
use concurrency::share_mode::RestAccess;

use super::caches::{BreakWait, CacheKey, GrantedCaching, Notices};
use super::entry::{Span, Work};
use super::open::{Client, Holder, OpenHandle, Place};
use super::slot::Slot;
use super::table::{ClosedHandle, Table};
use super::{Entry, FileId, HandleId, HandleRefusal, Reach};

/// An SMB open. [`Handle::close`] says whether the file is to be deleted. Dropping the handle closes it, too, and then
/// its [`Holder`] is told.
#[derive(Debug)]
#[must_use = "the file is closed when this is dropped"]
pub struct Handle {
    pub(super) table: Arc<Table>,
    pub(super) file: FileId,
    pub(super) id: HandleId,
}

/// A file whose last handle closed and that is to be deleted. While this is held the file stays delete-pending, so
/// nothing opens or enters it; the caller commits the removal and then drops this. If it is dropped without a commit the
/// file remains.
#[derive(Debug)]
#[must_use = "the file is to be deleted"]
pub struct Removal {
    table: Arc<Table>,
    file: FileId,
    place: Arc<Place>,
}

impl Handle {
    pub(super) fn new(table: Arc<Table>, file: FileId, id: HandleId) -> Handle {
        Handle { table, file, id }
    }

    pub fn id(&self) -> HandleId {
        self.id
    }

    pub fn file(&self) -> FileId {
        self.file
    }

    /// Where the file is, unless the handle is closed.
    pub fn place(&self) -> Option<Arc<Place>> {
        self.table.with(self.file.share, |share| {
            let handle = share.slot_of(self.file, self.id)?.handles.get(&self.id)?;
            Some(Arc::clone(&handle.place))
        })
    }

    /// The file is deleted when this handle has closed and no other is left.
    pub fn set_delete_on_close(&self) -> Result<(), HandleRefusal> {
        self.table.with(self.file.share, |share| {
            let slot = share.slot_of(self.file, self.id).ok_or(HandleRefusal::Closed)?;
            slot.handles.get_mut(&self.id).ok_or(HandleRefusal::Closed)?.deletes_on_close = true;
            Ok(())
        })
    }

    /// Closes the handle; lock requests that wait are refused, and so is everything asked of it afterwards. An answer says
    /// that it was the last handle of a file to be deleted.
    pub fn close(&self) -> Option<Removal> {
        close(&self.table, self.file, self.id).and_then(|closed| closed.removal)
    }

    /// Marks the file as delete-pending or takes the mark away, whichever handle set it. Whether the handle has the
    /// right to delete, and whether a directory is empty, is for the caller to judge. Clients that have begun to keep handles of the file
    /// for later are told; that is not waited for.
    pub fn set_delete_pending(&self, pending: bool) -> Result<(), HandleRefusal> {
        let FileId { share, id } = self.file;
        let number = self.table.next_ticket();
        let notices = self.table.with(share, |share| {
            let slot = share.slot_of(self.file, self.id).ok_or(HandleRefusal::Closed)?;
            if !pending {
                share.unmark(id);
                return Ok(Notices::default());
            }
            let (notices, _) = slot.contend_by(self.file, self.id, Contention::Rename, number);
            share.mark(id);
            Ok::<_, HandleRefusal>(notices)
        })?;
        self.table.tell(notices);
        Ok(())
    }

    /// Begins to judge whether a directory may be deleted. Until the answer is dropped nothing new comes into it, and what is on its
    /// way was waited for, so the caller sees whether it is empty. It can be opened all the same.
    pub async fn judge_deletion(&self) -> Result<Judgement, HandleRefusal> {
        let FileId { share, id } = self.file;
        let ticket = self.table.with(share, |share| {
            let slot = share.slot_of(self.file, self.id).ok_or(HandleRefusal::Closed)?;
            slot.judged += 1;
            // Whoever has entered before has a smaller one.
            Ok::<u64, HandleRefusal>(self.table.next_ticket())
        })?;
        let judgement = Judgement { table: Arc::clone(&self.table), file: self.file };
        self.table.wait_while(share, |share| share.while_older(id, ticket)).await;
        Ok(judgement)
    }

    /// Whether the byte-range locks of other handles, or shared ones of this handle, allow the transfer.
    pub fn check_io(&self, offset: u64, length: u64, transfer: Transfer) -> Result<(), HandleRefusal> {
        self.table.with(self.file.share, |share| {
            let slot = share.slot_of(self.file, self.id).ok_or(HandleRefusal::Closed)?;
            Ok(slot.check_io(self.id, offset, length, transfer)?)
        })
    }

    /// A change through this handle begins, of these bytes if they are known: refused if byte-range locks stand against it. Until the
    /// entry is dropped, locks of these bytes wait, and so do opens that would not have the file changed: another handle can be
    /// opened meanwhile only if this one was closed by force.
    pub fn begin_write(&self, span: Option<Span>) -> Result<Entry, HandleRefusal> {
        let ticket = self.table.next_ticket();
        let work = Work { ticket, access: RestAccess::Write, reach: Reach::Node, span };
        self.table.with(self.file.share, |share| {
            let slot = share.slot_of(self.file, self.id).ok_or(HandleRefusal::Closed)?;
            if let Some(Span { offset, length, transfer }) = span {
                slot.check_io(self.id, offset, length, transfer)?;
            }
            slot.begin(work);
            Ok::<(), HandleRefusal>(())
        })?;
        Ok(Entry::new(Arc::clone(&self.table), self.file, ticket, Reach::Node))
    }

    /// A rename through this handle begins: refused if anything below is open. Until the entry is dropped, opens of
    /// anything below wait. `reach` is [`Reach::Node`] if nothing can be below it.
    pub fn begin_rename(&self, reach: Reach) -> Result<Entry, HandleRefusal> {
        let ticket = self.table.next_ticket();
        let work = Work { ticket, access: RestAccess::Rename, reach, span: None };
        let (entered, notices) =
            self.table.with(self.file.share, |share| share.enter_by_handle(self.file, self.id, work));
        self.table.tell(notices);
        entered?;
        Ok(Entry::new(Arc::clone(&self.table), self.file, ticket, reach))
    }

    /// What is done through this handle breaks what other clients cache. [`HandleRefusal::Breaking`]: they must acknowledge first.
    pub fn contend(&self, contention: Contention) -> Result<(), HandleRefusal> {
        let number = self.table.next_ticket();
        let (notices, waits) = self.table.with(self.file.share, |share| {
            let slot = share.slot_of(self.file, self.id).ok_or(HandleRefusal::Closed)?;
            Ok::<_, HandleRefusal>(slot.contend_by(self.file, self.id, contention, number))
        })?;
        self.table.tell(notices);
        if waits {
            let wait = BreakWait { file: self.file, reach: Reach::Node, until: number };
            return Err(HandleRefusal::Breaking(wait));
        }
        Ok(())
    }

    /// What its client may cache now.
    pub fn granted_caching(&self) -> GrantedCaching {
        let granted = |slot: &mut Slot| slot.granted(self.id);
        self.table.with(self.file.share, |share| share.slot_of(self.file, self.id).map(granted)).unwrap_or_default()
    }

    /// Its client has answered the break of its oplock, and keeps no more than the level.
    pub fn acknowledge_oplock(&self, kept: OplockLevel) -> Result<OplockLevel, AcknowledgementRefusal> {
        acknowledge(&self.table, self.file, CacheKey::Oplock(self.id), kept.caching())?;
        Ok(kept)
    }

    /// A durable handle has lost its connection: another holder is told what becomes of it.
    pub fn disconnected(&self, holder: Arc<dyn Holder>) -> Result<(), HandleRefusal> {
        self.hand_over(holder, |handle| handle.is_disconnected = true)
    }

    /// A durable handle was claimed by a new connection.
    pub fn reconnected(&self, client: Client, holder: Arc<dyn Holder>, now: Timestamp) -> Result<(), HandleRefusal> {
        self.hand_over(holder, |handle| {
            (handle.client, handle.reconnected, handle.is_disconnected) = (client, Some(now), false);
        })
    }

    /// Refused if what the client caches is being taken back, or does not keep the handle for it: then nobody may come back to it.
    fn hand_over(&self, holder: Arc<dyn Holder>, change: impl FnOnce(&mut OpenHandle)) -> Result<(), HandleRefusal> {
        let before = self.table.with(self.file.share, |share| {
            let slot = share.slot_of(self.file, self.id).filter(|slot| slot.keeps(self.id))?;
            let handle = slot.handles.get_mut(&self.id)?;
            change(handle);
            Some(std::mem::replace(&mut handle.holder, holder))
        });
        before.map(drop).ok_or(HandleRefusal::Closed)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // After `close` it is not found any more.
        if let Some(Closed { holder, removal: Some(removal) }) = close(&self.table, self.file, self.id) {
            holder.must_delete(removal);
        }
    }
}

impl Removal {
    pub fn file(&self) -> FileId {
        self.file
    }

    /// Where the last handle had it. A rename under way may have moved it: the row is found by its id.
    pub fn place(&self) -> &Place {
        &self.place
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        self.table.with(self.file.share, |share| share.unmark(self.file.id));
    }
}

/// A directory that is judged for deletion.
#[derive(Debug)]
#[must_use = "something may come into the directory when this is dropped"]
pub struct Judgement {
    table: Arc<Table>,
    file: FileId,
}

impl Drop for Judgement {
    fn drop(&mut self) {
        self.table.with(self.file.share, |share| share.end_judgement(self.file.id));
    }
}

/// A handle that was in the table until now.
pub(super) struct Closed {
    pub holder: Arc<dyn Holder>,
    pub removal: Option<Removal>,
}

/// A client has answered the break of a cache.
pub(super) fn acknowledge(
    table: &Arc<Table>,
    file: FileId,
    key: CacheKey,
    kept: Caching,
) -> Result<(), AcknowledgementRefusal> {
    let number = table.next_ticket();
    let (notices, wakes) =
        table.with(file.share, |share| share.slot_mut(file.id)?.acknowledge(file, (key, kept), number))?;
    table.tell(notices);
    wakes.wake();
    Ok(())
}

pub(super) fn close(table: &Arc<Table>, file: FileId, handle: HandleId) -> Option<Closed> {
    let number = table.next_ticket();
    let (closed, notices) = table.with(file.share, |share| share.close(file, handle, number, &table.leases))?;
    let ClosedHandle { handle, must_delete, wakes } = closed;
    wakes.wake();
    table.tell(notices);
    let removal = || Removal { table: Arc::clone(table), file, place: handle.place };
    Some(Closed { removal: must_delete.then(removal), holder: handle.holder })
}
