//! The door itself, and shares that clients are connected to.
#![allow(clippy::unimplemented, unused_variables, dead_code)]

use std::sync::Arc;

use engine::Engine;
use wire::names::ShareName;

use super::{CreateRequest, Opened, Refused, Space};
use crate::FileService;
use crate::opens::Opens;
use crate::opens::events::Events;

/// Shares that are listed for a client. The wire format has room for more, clients' patience has not.
pub const SHARES_LISTED_MAX: usize = 10_000;

/// The File service as SMB calls it. A clone is the same door.
#[derive(Clone, Debug)]
pub struct Door {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) opens: Arc<Opens>,
    pub(super) events: Events,
}

impl FileService {
    /// What SMB calls.
    #[must_use]
    pub fn door(&self) -> Door {
        Door { engine: Arc::clone(&self.engine), opens: Arc::clone(&self.opens), events: self.events.clone() }
    }
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
        unimplemented!()
    }

    /// Connects to a share. Names of shares have no case over SMB.
    ///
    /// Refused with [`Refused::ShareNotFound`] if the account has no such share, or one for NFS.
    pub async fn connect(&self, account: u64, share: &str) -> Result<Tree, Refused> {
        unimplemented!()
    }
}

impl Tree {
    /// The name of the share.
    pub fn name(&self) -> &str {
        self.share.as_str()
    }

    /// Quota and usage, for QUERY_INFO of the file system.
    pub async fn space(&self) -> Result<Space, Refused> {
        unimplemented!()
    }

    /// Opens a file or directory, and creates, empties or replaces it first if the disposition says so.
    ///
    /// It waits for REST operations that are at work on the file; dropping the future withdraws the open.
    pub async fn open(&self, request: CreateRequest) -> Result<Opened, Refused> {
        unimplemented!()
    }
}
