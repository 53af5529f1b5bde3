//! Breaks of oplocks and leases on their way to their clients (MS-SMB2 3.3.4.6, 3.3.4.7).
//!
//! The File service says what is broken; here is to whom and in which frame. A break goes out after the answer that grants what it takes
//! back, else the client could not know what it is about. That of an oplock goes to the connection of its open, that of a lease to any
//! connection of its client.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use concurrency::caching::OplockLevel;
use file::door::HandleOwner;
use file::opens::{Broken, HandleId};
use tokio::sync::Notify;

use crate::conversation::Shared;
use crate::server::Server;
use crate::session::{Reply, Session, frame_of};
use crate::wire::compound::Outgoing;
use crate::wire::create::oplock_level;
use crate::wire::header::Header;
use crate::wire::oplock_break::{self, LeaseNotification, OplockBreak};
use crate::wire::{FileId, Response};

/// Whether a request waits for other clients to give up what they cache. It can be cancelled while it does.
#[derive(Debug, Default)]
pub(crate) struct BreakWaiting {
    is_waiting: AtomicBool,
    /// It has begun to wait.
    pub began: Notify,
}

impl BreakWaiting {
    pub fn set(&self, is_waiting: bool) {
        self.is_waiting.store(is_waiting, Ordering::Relaxed);
        if is_waiting {
            self.began.notify_one();
        }
    }

    pub fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }
}

/// The client of an open, as the File service knows it.
#[derive(Debug)]
pub(crate) struct Owner {
    server: Weak<Server>,
    conversation: Weak<Shared>,
    session: Arc<Session>,
    /// The request that may wait for other clients: CREATE, or the SET_INFO that has the turn.
    waiting: Mutex<Arc<BreakWaiting>>,
    /// For SET_INFO requests that may wait for other clients, one at a time: CANCEL must not take one for the other.
    turn: tokio::sync::Mutex<()>,
    told: Mutex<Told>,
}

/// What the client knows of its open.
#[derive(Debug, Default)]
struct Told {
    file_id: Option<FileId>,
    is_answered: bool,
    /// Breaks that came before the answer to CREATE. There are no more than a few: each takes something away.
    kept: Vec<Broken>,
}

impl Owner {
    pub fn new(conversation: &Arc<Shared>, session: &Arc<Session>, waiting: &Arc<BreakWaiting>) -> Owner {
        Owner {
            server: Arc::downgrade(&conversation.server),
            conversation: Arc::downgrade(conversation),
            session: Arc::clone(session),
            waiting: Mutex::new(Arc::clone(waiting)),
            turn: tokio::sync::Mutex::default(),
            told: Mutex::default(),
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another request may wait for other clients until the value is dropped.
    pub async fn works_for(&self, waiting: &Arc<BreakWaiting>) -> AtWork<'_> {
        let turn = self.turn.lock().await;
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(waiting);
        AtWork { owner: self, _turn: turn }
    }

    /// The open has its id.
    pub fn opened(&self, file_id: FileId) {
        self.told().file_id = Some(file_id);
    }

    /// The answer to CREATE is in the outbox: breaks may follow it.
    pub fn answered(&self) {
        let kept = {
            let mut told = self.told();
            told.is_answered = true;
            std::mem::take(&mut told.kept)
        };
        for broken in kept {
            self.send(broken);
        }
    }

    fn send(&self, broken: Broken) -> bool {
        match broken {
            Broken::Oplock { to, .. } => {
                let Some(file_id) = self.told().file_id else { return false };
                let body = OplockBreak { level: level(to), file_id };
                self.send_here(&Response::OplockBreak(oplock_break::Response::Oplock(body)))
            }
            Broken::Lease { name, is_v2, notice } => {
                let body = LeaseNotification {
                    new_epoch: if is_v2 { notice.epoch } else { 0 },
                    ack_required: notice.must_acknowledge,
                    key: name.key,
                    current_state: notice.from.bits(),
                    new_state: notice.to.bits(),
                };
                let body = Response::LeaseBreak(body);
                self.send_here(&body) || self.send_elsewhere(name.client, &body)
            }
        }
    }

    /// On the connection of the open.
    fn send_here(&self, body: &Response) -> bool {
        self.conversation.upgrade().is_some_and(|conversation| conversation.send_break(&self.session, body))
    }

    /// On another connection of the client.
    fn send_elsewhere(&self, client: u128, body: &Response) -> bool {
        let Some(server) = self.server.upgrade() else { return false };
        let conversations = server.conversations_of(client);
        conversations.iter().any(|conversation| match conversation.session_of(&self.session.user) {
            Some(session) => conversation.send_break(&session, body),
            None => false,
        })
    }
}

/// A request that may wait for other clients. Dropped, it waits no longer.
#[derive(Debug)]
pub(crate) struct AtWork<'a> {
    owner: &'a Owner,
    _turn: tokio::sync::MutexGuard<'a, ()>,
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.owner.waits(false);
    }
}

impl HandleOwner for Owner {
    /// A handle that was closed by force is noticed at its next request, which the File service refuses.
    fn closed(&self, handle: HandleId) {
        tracing::debug!(handle = handle.0, "an SMB handle was closed by force");
    }

    fn broken(&self, broken: Broken) -> bool {
        {
            let mut told = self.told();
            if !told.is_answered {
                told.kept.push(broken);
                return true;
            }
        }
        self.send(broken)
    }

    fn waits(&self, is_waiting: bool) {
        let waiting = Arc::clone(&self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.set(is_waiting);
    }
}

impl Shared {
    /// Queues a break for a client whose session this is. Not if that has ended, or the connection.
    fn send_break(&self, session: &Arc<Session>, body: &Response) -> bool {
        if self.outbox.is_closed() || self.user(session).is_none() {
            return false;
        }
        // Breaks are not signed, as the protocol says.
        let message = Outgoing::new(&Header::unsolicited(), body);
        let encrypt = Some(&**session).filter(|session| session.encrypt);
        self.outbox.push(frame_of(vec![Reply { message, sign: None }], encrypt));
        true
    }
}

/// An oplock level on the wire.
pub(crate) fn level(level: OplockLevel) -> u8 {
    match level {
        OplockLevel::None => oplock_level::NONE,
        OplockLevel::LevelTwo => oplock_level::II,
        OplockLevel::Exclusive => oplock_level::EXCLUSIVE,
        OplockLevel::Batch => oplock_level::BATCH,
    }
}

/// From the wire. Other numbers ask for nothing.
pub(crate) fn level_of(number: u8) -> OplockLevel {
    match number {
        oplock_level::II => OplockLevel::LevelTwo,
        oplock_level::EXCLUSIVE => OplockLevel::Exclusive,
        oplock_level::BATCH => OplockLevel::Batch,
        _ => OplockLevel::None,
    }
}
