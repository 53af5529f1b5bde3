//! Durable opens that have lost their connection: kept for their client, given back to it, ended.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use auth::Accounts;
use file::door::HandleOwner;
use file::opens::{Broken, HandleId};

use crate::ntlm::NtHash;
use crate::open::{FileOpen, Open, OpenKind};
use crate::server::{Server, hashes};
use crate::user::User;

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Its connection is lost, its client has logged off or has another session: durable opens are kept.
    Lost,
    /// Its key is replaced, its client could not log on again, or this node serves SMB no longer: everything is closed.
    Final,
}

/// An open without a connection.
#[derive(Debug)]
pub(crate) struct Lost {
    pub file: Arc<FileOpen>,
    account: String,
    /// The key of the account that its session was logged on with, and the accounts by which that was last found to be valid.
    key: NtHash,
    seen: Weak<Accounts>,
}

/// Told what becomes of an open without a connection.
#[derive(Debug)]
struct LostOwner {
    server: Weak<Server>,
    /// The persistent half of its id.
    id: u64,
}

impl HandleOwner for LostOwner {
    fn closed(&self, handle: HandleId) {
        tracing::debug!(handle = handle.0, "an SMB handle without a connection was closed by force");
        drop(self.taken());
    }

    /// Nobody can be asked any more, so the open ends and what needs the file goes on.
    fn broken(&self, _: Broken) -> bool {
        if let Some(lost) = self.taken() {
            lost.file.door.close_at_once();
        }
        // If it is not there its client is about to have it again, and is refused because of the break.
        true
    }
}

impl LostOwner {
    fn taken(&self) -> Option<Lost> {
        self.server.upgrade()?.disconnected().remove(self.id)
    }
}

impl Server {
    /// Closes what a session had open, or keeps it for its client.
    pub(crate) async fn end_opens(self: &Arc<Self>, user: &User, ending: Ending) {
        let accounts = self.accounts();
        let has_valid_key =
            user.keys_seen(&accounts) || user.session.key_is_among(&hashes(&accounts, &user.session.user));
        for open in user.end() {
            let is_kept = ending == Ending::Lost && has_valid_key && self.keep(&open, user, &accounts);
            if !is_kept {
                open.close().await;
            }
        }
    }

    /// Keeps an open whose client may come back. Whether it does.
    fn keep(self: &Arc<Self>, open: &Open, user: &User, accounts: &Arc<Accounts>) -> bool {
        let OpenKind::File(file) = &open.kind else { return false };
        let Some(durable) = &file.durable else { return false };
        let (id, session) = (open.id.persistent, &user.session);
        let lost = Lost {
            file: Arc::clone(file),
            account: session.user.clone(),
            key: session.key.clone(),
            seen: Arc::downgrade(accounts),
        };
        let owner = Arc::new(LostOwner { server: Arc::downgrade(self), id });
        // Nobody claims it before it is without an owner, and what ends it finds it here.
        let mut disconnected = self.disconnected();
        let locks = file.door.lock_count();
        if disconnected.keep(id, (lost, locks), durable.clone(), Instant::now()).is_err() {
            tracing::debug!(user = session.user, "a durable SMB open is closed: too many have lost their connection");
            return false;
        }
        let is_kept = file.door.disconnect(owner);
        if !is_kept {
            disconnected.remove(id);
        }
        is_kept
    }

    /// Ends opens without a connection whose time is over or whose account key was replaced. Called from time to time.
    pub fn end_disconnected(&self, now: Instant) {
        let accounts = self.accounts();
        let mut keys: HashMap<String, Vec<NtHash>> = HashMap::new();
        let ended = {
            let mut disconnected = self.disconnected();
            let mut ended = disconnected.expired(now);
            ended.extend(disconnected.take_all(|lost| {
                if Weak::as_ptr(&lost.seen) == Arc::as_ptr(&accounts) {
                    return false;
                }
                lost.seen = Arc::downgrade(&accounts);
                let valid = keys.entry(lost.account.clone()).or_insert_with_key(|name| hashes(&accounts, name));
                !valid.iter().any(|key| key.is(&lost.key))
            }));
            ended
        };
        for lost in ended {
            lost.file.door.close_at_once();
        }
    }

    /// Ends all opens without a connection: the server ends, or another node serves SMB now.
    pub fn end_all_disconnected(&self) {
        let ended = self.disconnected().take_all(|_| true);
        for lost in ended {
            lost.file.door.close_at_once();
        }
    }
}
