//! SESSION_SETUP: tokens go to the connection, a session that is logged on gets its user.

use std::time::Instant;

use super::{Shared, lock};
use crate::connection::{Disconnect, Incoming};
use crate::server::hashes;
use crate::session::{Session, frame_of};
use crate::status::Status;
use crate::user::User;
use crate::wire::header::Header;
use std::sync::Arc;

impl Shared {
    pub(super) async fn session_setup(
        &self,
        incoming: &Incoming,
        encrypted: Option<&Session>,
    ) -> Result<(), Disconnect> {
        let began = Instant::now();
        // Without the accounts nobody can be let in; the client may try again on another connection.
        let accounts = self.server.newest_accounts().await.map_err(|error| {
            tracing::warn!(%error, "the accounts cannot be read; an SMB logon ends");
            Disconnect::OutOfTurn
        })?;
        let drawn = self.server.drawn();
        let mut name = None;
        let answer = self.connection().session_setup(incoming, drawn, |user| {
            name = Some(user.to_owned());
            hashes(&accounts, user)
        });
        let status = Header::decode(&answer.reply.message.head).map_or(Status::INTERNAL_ERROR, |header| header.status);
        if status.is_error() && status != Status::MORE_PROCESSING_REQUIRED {
            let wait = self.server.throttle.failed(self.peer.ip(), name.as_deref(), Instant::now());
            self.server.host.logon_failed(self.peer, wait);
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
        }
        if let Some(session) = answer.session {
            let known = lock(&self.users).contains_key(&session.id);
            if !known {
                let user = Arc::new(User::new(session, &accounts));
                self.server.add_session(&user);
                lock(&self.users).insert(user.session.id, Arc::clone(&user));
                if let Some(old) = answer.replaces.and_then(|old| self.server.find_session(old, &user.session.user)) {
                    self.server.remove_session(old.session.id);
                    old.end().await;
                }
            }
        }
        let message = &answer.reply.message;
        self.told(incoming, status, name.as_deref(), message.len() as u64, began);
        self.outbox.push(frame_of(vec![answer.reply], encrypted));
        // A session whose user fails to log on again is over (3.3.5.5.3).
        let failed =
            (status == Status::LOGON_FAILURE).then(|| lock(&self.users).get(&incoming.header.session_id).cloned());
        if let Some(user) = failed.flatten() {
            self.end_session(&user).await;
        }
        Ok(())
    }
}
