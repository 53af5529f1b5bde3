//! What a file id on the wire stands for: an open file or directory, or a pipe.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};

use file::door::OpenFile;

use crate::breaks::Owner;
use crate::pipe::Pipe;
use crate::wire::FileId;

/// An open.
#[derive(Debug)]
pub(crate) struct Open {
    pub id: FileId,
    pub tree_id: u32,
    pub kind: OpenKind,
}

#[derive(Debug)]
pub(crate) enum OpenKind {
    File(Box<FileOpen>),
    Pipe(Mutex<Pipe>),
}

/// An open file or directory.
#[derive(Debug)]
pub(crate) struct FileOpen {
    pub door: OpenFile,
    /// As the File service knows its client.
    pub owner: Arc<Owner>,
    /// FilePositionInformation: where the last read ended, or where the client put it. Used by nobody.
    pub position: AtomicU64,
    /// The create options that FileModeInformation tells.
    pub mode: u32,
    /// One listing at a time: each goes on where the one before ended.
    pub listing: tokio::sync::Mutex<()>,
    /// The buffer of the first CHANGE_NOTIFY: no later answer of the handle is longer.
    pub notify_bytes: OnceLock<u32>,
}

impl FileOpen {
    pub fn new(door: OpenFile, owner: Arc<Owner>, mode: u32) -> FileOpen {
        let (position, listing) = (AtomicU64::new(0), tokio::sync::Mutex::default());
        FileOpen { door, owner, position, mode, listing, notify_bytes: OnceLock::new() }
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
