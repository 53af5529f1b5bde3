//! SESSION_SETUP: tokens go to the connection, a session that is logged on gets its user.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use super::requests::Asked;
use super::{Shared, lock};
use crate::connection::{Disconnect, Incoming};
use crate::lost::Ending;
use crate::outbox::Frame;
use crate::server::hashes;
use crate::session::{Session, frame_of};
use crate::status::Status;
use crate::user::User;
use crate::wire::header::Header;

/// An answer that something comes before.
#[derive(Debug)]
pub(super) struct Later {
    frame: Frame,
    /// A session that must end first, so that its client finds its files free, or can have them again.
    ends: Option<(Arc<User>, Ending)>,
    /// How long a refusal is held back.
    wait: Duration,
    /// Until it is sent nobody else logs on on this connection: else many guesses would wait at once.
    _turn: OwnedSemaphorePermit,
}

impl Shared {
    /// Answers SESSION_SETUP, unless the answer is one for later.
    pub(super) async fn session_setup(
        &self,
        incoming: Incoming,
        encrypted: Option<&Session>,
    ) -> Result<Option<Later>, Disconnect> {
        let began = Instant::now();
        let turn = Arc::clone(&self.logons).acquire_owned().await.expect("the semaphore is never closed");
        let expects_proof = self.connection().expects_proof(&incoming);
        let accounts = match expects_proof {
            // Without the accounts nobody can be let in; the client may try again on another connection.
            true => self.server.newest_accounts().await.map_err(|error| {
                tracing::warn!(%error, "the accounts cannot be read; an SMB logon ends");
                Disconnect::OutOfTurn
            })?,
            // No name and no key is looked at.
            false => self.server.accounts(),
        };
        let drawn = self.server.drawn();
        let mut name = None;
        let answer = self.connection().session_setup(&incoming, drawn, |user| {
            name = Some(user.to_owned());
            hashes(&accounts, user)
        });
        let status = Header::decode(&answer.reply.message.head).map_or(Status::INTERNAL_ERROR, |header| header.status);
        let (asked, _) = Asked::new(incoming);
        let (mut wait, mut ends) = (Duration::ZERO, None);
        if answer.failed {
            wait = self.server.throttle.failed(self.peer.ip(), name.as_deref(), Instant::now());
            self.server.host.logon_failed(self.peer, wait);
            // A session whose client cannot log on again is over.
            ends = lock(&self.users).get(&asked.header.session_id).cloned().map(|user| (user, Ending::Final));
        }
        if let Some(session) = answer.session {
            let known = lock(&self.users).contains_key(&session.id);
            if !known {
                let user = Arc::new(User::new(session, &accounts));
                self.server.add_session(&user);
                lock(&self.users).insert(user.session.id, Arc::clone(&user));
                let old = answer.replaces.and_then(|old| self.server.find_session(old, &user.session.user));
                ends = old.map(|old| (old, Ending::Lost));
            }
        }
        self.told(&Asked { began, ..asked }, status, name.as_deref(), answer.reply.message.len() as u64);
        let frame = frame_of(vec![answer.reply], encrypted);
        if ends.is_none() && wait.is_zero() {
            self.outbox.push(frame);
            return Ok(None);
        }
        Ok(Some(Later { frame, ends, wait, _turn: turn }))
    }

    pub(super) async fn answer_later(self: Arc<Self>, later: Later) {
        if let Some((user, ending)) = &later.ends {
            self.end_session(user, *ending).await;
        }
        let mut ending = self.ending.subscribe();
        let _ = tokio::time::timeout(later.wait, ending.wait_for(|ending| *ending)).await;
        self.outbox.push(later.frame);
    }
}
