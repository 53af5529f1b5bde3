//! REST operations at work.

use std::sync::Arc;

use concurrency::range_lock::Transfer;
use concurrency::share_mode::RestAccess;

use super::open::Place;
use super::table::Table;
use super::{FileId, Opens, Reach, Refusal};

/// The bytes that an operation reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    pub offset: u64,
    pub length: u64,
    pub transfer: Transfer,
}

/// A REST operation at work on a file or directory. Dropped, it leaves the table and wakes SMB opens and locks that wait
/// for it.
///
/// It is held while lease and conditions are judged and until the commit is durable; a Get holds it over the read that
/// opens the contents, not while the body is sent.
#[derive(Debug)]
#[must_use = "the operation leaves the table when this is dropped"]
pub struct Entry {
    table: Arc<Table>,
    file: FileId,
    ticket: u64,
    reach: Reach,
}

/// What the table knows of an operation at work.
#[derive(Debug)]
pub(super) struct Work {
    pub ticket: u64,
    pub access: RestAccess,
    pub reach: Reach,
    pub span: Option<Span>,
}

impl Opens {
    /// Enters the file with the access that the operation needs and, for operations on ranges, its bytes.
    ///
    /// This waits for no client. What SMB clients cache of the file is broken, and handles that they only keep for later before a
    /// violation is answered; if they must acknowledge, the answer is [`Refusal::Breaking`].
    pub async fn enter(&self, file: FileId, access: RestAccess, span: Option<Span>) -> Result<Entry, Refusal> {
        self.begin(file, access, Reach::Node, span, true)
    }

    /// The same for an operation that is not about what clients cache, such as one on a lease.
    pub fn enter_beside_caches(&self, file: FileId, access: RestAccess) -> Result<Entry, Refusal> {
        self.begin(file, access, Reach::Node, None, false)
    }

    /// Enters the directory with everything below it, for a rename or a delete: refused if anything below is open. Until
    /// the entry is dropped, opens of anything below wait and then begin again from the path.
    ///
    /// Handles below that clients only keep for later are broken first; see [`Opens::enter`].
    pub async fn enter_tree(&self, directory: FileId, access: RestAccess) -> Result<Entry, Refusal> {
        self.begin(directory, access, Reach::Tree, None, true)
    }

    /// Enters a directory to put something new into it: refused if the directory is to be deleted or is judged for that. Until the
    /// entry is dropped, a deletion of the directory through a handle waits before it looks whether anything is in it.
    pub fn enter_to_add(&self, directory: FileId) -> Result<Entry, Refusal> {
        let ticket = self.table.next_ticket();
        let work = Work { ticket, access: RestAccess::Look, reach: Reach::Node, span: None };
        self.table.with(directory.share, |share| match share.is_judged(directory.id) {
            true => Err(Refusal::DeletePending),
            // Nothing of a directory is cached, so nothing is broken.
            false => share.enter(directory, work, false).0,
        })?;
        Ok(Entry::new(Arc::clone(&self.table), directory, ticket, Reach::Node))
    }

    fn begin(
        &self,
        file: FileId,
        access: RestAccess,
        reach: Reach,
        span: Option<Span>,
        breaks: bool,
    ) -> Result<Entry, Refusal> {
        let ticket = self.table.next_ticket();
        let work = Work { ticket, access, reach, span };
        let (entered, notices) = self.table.with(file.share, |share| share.enter(file, work, breaks));
        self.table.tell(notices);
        entered?;
        Ok(Entry::new(Arc::clone(&self.table), file, ticket, reach))
    }
}

impl Entry {
    pub(super) fn new(table: Arc<Table>, file: FileId, ticket: u64, reach: Reach) -> Entry {
        if reach == Reach::Tree {
            table.moving(file.share);
        }
        Entry { table, file, ticket, reach }
    }

    pub fn file(&self) -> FileId {
        self.file
    }

    /// The rename that holds this entry is committed: the handles of the file are now at `place`.
    pub fn moved_to(&self, place: Place) {
        self.table.with(self.file.share, |share| share.relocate(self.file.id, &Arc::new(place)));
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.reach == Reach::Tree {
            self.table.moving(self.file.share);
        }
        self.table.with(self.file.share, |share| share.leave(self.file.id, self.ticket)).wake();
    }
}
