//! What a file id on the wire stands for: an open file or directory, or a pipe.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use file::door::OpenFile;

use crate::breaks::Owner;
use crate::durable::{Durable, LockSequences};
use crate::pipe::Pipe;
use crate::replay::Named;
use crate::wire::{FileId, create};

/// An open.
#[derive(Debug)]
pub(crate) struct Open {
    pub id: FileId,
    pub tree_id: u32,
    pub kind: OpenKind,
}

#[derive(Debug)]
pub(crate) enum OpenKind {
    /// Shared with those that keep it when its connection is lost.
    File(Arc<FileOpen>),
    Pipe(Mutex<Pipe>),
}

/// An open file or directory.
#[derive(Debug)]
pub(crate) struct FileOpen {
    pub door: OpenFile,
    /// As the File service knows its client.
    owner: Mutex<Arc<Owner>>,
    /// FilePositionInformation: where the last read ended, or where the client put it. Used by nobody.
    pub position: AtomicU64,
    /// The create options that FileModeInformation tells.
    pub mode: u32,
    /// One listing at a time: each goes on where the one before ended.
    pub listing: tokio::sync::Mutex<()>,
    /// The buffer of the first CHANGE_NOTIFY: no later answer of the handle is longer.
    pub notify_bytes: OnceLock<u32>,
    /// It outlives its connection.
    pub durable: Option<Durable>,
    lock_sequences: Mutex<LockSequences>,
    /// The CREATE can be sent again until the open is first used.
    first: Mutex<Option<First>>,
}

/// The CREATE that made an open.
#[derive(Debug)]
struct First {
    named: Named,
    answer: create::Response,
}

impl FileOpen {
    pub fn new(door: OpenFile, owner: Arc<Owner>, mode: u32) -> FileOpen {
        let (position, listing) = (AtomicU64::new(0), tokio::sync::Mutex::default());
        let (notify_bytes, lock_sequences, first) = (OnceLock::new(), Mutex::default(), Mutex::default());
        let owner = Mutex::new(owner);
        FileOpen { door, owner, position, mode, listing, notify_bytes, durable: None, lock_sequences, first }
    }

    /// The same, as an open that outlives its connection.
    pub fn durable(self, durable: Option<Durable>) -> FileOpen {
        FileOpen { durable, ..self }
    }

    pub fn owner(&self) -> Arc<Owner> {
        Arc::clone(&self.owner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Its client has it on another connection now.
    pub fn owned_by(&self, owner: &Arc<Owner>) {
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(owner);
    }

    /// The CREATE that made it is known by its name from now on.
    pub fn can_be_replayed(self: &Arc<Self>, session: u64, named: Named, answer: &create::Response) {
        let mut first = self.first();
        named.done(session, self);
        *first = Some(First { named, answer: answer.clone() });
    }

    /// What its CREATE was answered with, unless it was used since.
    pub fn first_answer(&self) -> Option<create::Response> {
        self.first().as_ref().map(|first| first.answer.clone())
    }

    /// Its client has it and uses it.
    pub fn used(&self) {
        let first = self.first().take();
        if let Some(First { named, .. }) = first {
            drop(named);
        }
    }

    fn first(&self) -> MutexGuard<'_, Option<First>> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn lock_sequences(&self) -> MutexGuard<'_, LockSequences> {
        self.lock_sequences.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    pub fn new(id: FileId, tree_id: u32, kind: OpenKind) -> Open {
        Open { id, tree_id, kind }
    }

    pub fn is_pipe(&self) -> bool {
        matches!(self.kind, OpenKind::Pipe(_))
    }

    /// Closes it when its session or tree ends, where nobody hears of a failure.
    pub async fn close(&self) {
        match &self.kind {
            OpenKind::Pipe(_) => {}
            OpenKind::File(file) => {
                if let Err(refused) = Box::pin(file.door.close()).await {
                    tracing::debug!(%refused, "a file of an SMB session that ended was not closed in good order");
                }
            }
        }
    }
}
