//! A session at work: the trees and the files that its user has open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use auth::Accounts;
use tokio::sync::watch;

use crate::open::Open;
use crate::session::Session;
use crate::status::{Result, Status};
use crate::wire::FileId;

/// Trees of a session.
pub const TREES_PER_SESSION_MAX: usize = 256;

/// Opens of a session.
pub const OPENS_PER_SESSION_MAX: usize = 16_384;

/// Of these, pipes: each may hold an answer that nobody reads.
pub const PIPES_PER_SESSION_MAX: usize = 16;

/// A share that the session is connected to.
#[derive(Debug)]
pub(crate) struct Tree {
    pub id: u32,
    pub kind: TreeKind,
}

#[derive(Debug)]
pub(crate) enum TreeKind {
    /// IPC$.
    Ipc,
    Share {
        tree: file::door::Tree,
        /// The number by which clients tell volumes apart.
        volume: u64,
    },
}

/// A session that is logged on.
#[derive(Debug)]
pub(crate) struct User {
    pub session: Arc<Session>,
    /// The accounts by which its key was last found to be valid.
    seen: Mutex<Weak<Accounts>>,
    ended: watch::Sender<bool>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    trees: HashMap<u32, Arc<Tree>>,
    opens: HashMap<u64, Arc<Open>>,
    last_tree: u32,
    last_open: u64,
}

impl User {
    pub fn new(session: Arc<Session>, accounts: &Arc<Accounts>) -> User {
        let seen = Mutex::new(Arc::downgrade(accounts));
        User { session, seen, ended: watch::Sender::new(false), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the key was found valid by these very accounts.
    pub fn keys_seen(&self, accounts: &Arc<Accounts>) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        Weak::as_ptr(&seen) == Arc::as_ptr(accounts)
    }

    pub fn see_keys(&self, accounts: &Arc<Accounts>) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(accounts);
    }

    pub fn is_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Ready when the session ends: nothing of it may wait any more.
    pub async fn ended(&self) {
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    pub fn has_opens(&self) -> bool {
        !self.state().opens.is_empty()
    }

    /// Connects to a share.
    pub fn add_tree(&self, kind: TreeKind) -> Result<Arc<Tree>> {
        let mut state = self.state();
        if self.is_ended() {
            return Err(Status::USER_SESSION_DELETED);
        }
        if state.trees.len() >= TREES_PER_SESSION_MAX {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        state.last_tree = state.last_tree.wrapping_add(1);
        let id = state.last_tree;
        // All ones stand for the tree of the request before. Ids come round only after billions of connects.
        if id == 0 || id == u32::MAX || state.trees.contains_key(&id) {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        let tree = Arc::new(Tree { id, kind });
        state.trees.insert(id, Arc::clone(&tree));
        Ok(tree)
    }

    pub fn tree(&self, id: u32) -> Result<Arc<Tree>> {
        self.state().trees.get(&id).cloned().ok_or(Status::NETWORK_NAME_DELETED)
    }

    /// Lets a share go, and closes what is open in it.
    pub async fn remove_tree(&self, id: u32) -> Result<()> {
        let opens: Vec<Arc<Open>> = {
            let mut state = self.state();
            state.trees.remove(&id).ok_or(Status::NETWORK_NAME_DELETED)?;
            let ids: Vec<u64> =
                state.opens.values().filter(|open| open.tree_id == id).map(|open| open.id.volatile).collect();
            ids.iter().filter_map(|id| state.opens.remove(id)).collect()
        };
        for open in opens {
            open.close().await;
        }
        Ok(())
    }

    /// Whether one more may be opened. Looked at before a file is created for it.
    pub fn may_open(&self) -> Result<()> {
        match self.state().opens.len() < OPENS_PER_SESSION_MAX {
            true => Ok(()),
            false => Err(Status::INSUFFICIENT_RESOURCES),
        }
    }

    /// Enters an open, which `make` builds from its id. If it cannot be entered any more it is closed again. `persistent` is the half of
    /// the id that no other open of the server has.
    pub async fn add_open(
        &self,
        tree_id: u32,
        persistent: u64,
        make: impl FnOnce(FileId) -> Open,
    ) -> Result<Arc<Open>> {
        let (open, refused) = {
            let mut state = self.state();
            state.last_open += 1;
            let volatile = state.last_open;
            let open = Arc::new(make(FileId { persistent, volatile }));
            let refused = match () {
                () if self.is_ended() => Some(Status::USER_SESSION_DELETED),
                () if !state.trees.contains_key(&tree_id) => Some(Status::NETWORK_NAME_DELETED),
                () if state.opens.len() >= OPENS_PER_SESSION_MAX => Some(Status::INSUFFICIENT_RESOURCES),
                () if open.is_pipe()
                    && state.opens.values().filter(|open| open.is_pipe()).count() >= PIPES_PER_SESSION_MAX =>
                {
                    Some(Status::INSUFFICIENT_RESOURCES)
                }
                () => None,
            };
            if refused.is_none() {
                state.opens.insert(volatile, Arc::clone(&open));
            }
            (open, refused)
        };
        match refused {
            None => Ok(open),
            Some(status) => {
                open.close().await;
                Err(status)
            }
        }
    }

    /// An open of a tree.
    pub fn open(&self, tree_id: u32, id: FileId) -> Result<Arc<Open>> {
        let open = self.state().opens.get(&id.volatile).cloned();
        open.filter(|open| open.id == id && open.tree_id == tree_id).ok_or(Status::FILE_CLOSED)
    }

    /// An open of any tree of the session.
    pub fn open_anywhere(&self, id: FileId) -> Option<Arc<Open>> {
        self.state().opens.get(&id.volatile).filter(|open| open.id == id).cloned()
    }

    /// Takes an open out. The caller closes it.
    pub fn remove_open(&self, tree_id: u32, id: FileId) -> Result<Arc<Open>> {
        let mut state = self.state();
        match state.opens.get(&id.volatile) {
            Some(open) if open.id == id && open.tree_id == tree_id => {}
            _ => return Err(Status::FILE_CLOSED),
        }
        state.opens.remove(&id.volatile).ok_or(Status::FILE_CLOSED)
    }

    /// Ends the session. What was open is for the caller to close or to keep.
    pub fn end(&self) -> Vec<Arc<Open>> {
        let mut state = self.state();
        self.ended.send_replace(true);
        state.trees.clear();
        state.opens.drain().map(|(_, open)| open).collect()
    }
}
