//! SESSION_SETUP: tokens until a session has its keys (3.3.5.5).

use std::sync::Arc;

use super::{Connection, Incoming, LOGONS_BEFORE_LOGON_MAX, SESSIONS_MAX};
use crate::crypto::kdf::Keys;
use crate::crypto::preauth::Preauth;
use crate::logon::{Logon, Step};
use crate::ntlm::{LoggedOn, NtHash};
use crate::session::{Reply, Session};
use crate::status::{Result, Status};
use crate::wire::compound::Outgoing;
use crate::wire::header::Header;
use crate::wire::negotiate::SIGNING_REQUIRED;
use crate::wire::{Request, Response, session_setup};

/// A logon on its way, and the hash over what it has said.
#[derive(Debug)]
pub(super) struct PendingLogon {
    logon: Logon,
    preauth: Preauth,
}

/// Numbers that must not be guessed, and the time.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    /// The id of a session that is new; one that is in use is not taken.
    pub session_id: u64,
    pub challenge: [u8; 8],
    /// For the nonces of what the session encrypts.
    pub salt: [u8; 4],
    /// FILETIME.
    pub time: i64,
}

/// The answer to SESSION_SETUP.
#[derive(Debug)]
pub struct LogonAnswer {
    pub reply: Reply,
    /// A session that has just logged on.
    pub session: Option<Arc<Session>>,
    /// The session that the new one replaces: a client that lost its connection ends its old session by it.
    pub replaces: Option<u64>,
    /// The token was refused: a failed logon. A session that was to log on again by it must end.
    pub failed: bool,
}

impl Connection {
    /// Answers SESSION_SETUP. `keys` gives the hashes of an account's keys, none for an unknown one; it is called with the name that logs on,
    /// which is all that a throttle of bad logons learns of it.
    pub fn session_setup(
        &mut self,
        incoming: &Incoming,
        drawn: Drawn,
        keys: impl FnOnce(&str) -> Vec<NtHash>,
    ) -> LogonAnswer {
        let mut failed = false;
        let result = match &incoming.request {
            Ok(Request::SessionSetup(request)) => self.logged_on(incoming, request, drawn, keys, &mut failed),
            Ok(_) => Err(Status::INVALID_PARAMETER),
            Err(status) => Err(*status),
        };
        result.unwrap_or_else(|status| {
            // A session that fails to log on again signs its last answer.
            let session = self.sessions.get(&incoming.header.session_id);
            if failed || session.is_none() {
                self.logons.remove(&incoming.header.session_id);
            }
            let sign = session.filter(|_| incoming.sign).cloned();
            LogonAnswer {
                reply: Reply { message: self.refused(incoming, status), sign },
                session: None,
                replaces: None,
                failed,
            }
        })
    }

    fn logged_on(
        &mut self,
        incoming: &Incoming,
        request: &session_setup::Request,
        drawn: Drawn,
        keys: impl FnOnce(&str) -> Vec<NtHash>,
        failed: &mut bool,
    ) -> Result<LogonAnswer> {
        if request.flags & session_setup::FLAG_BINDING != 0 {
            return Err(Status::REQUEST_NOT_ACCEPTED);
        }
        let id = self.logon_id(incoming, drawn)?;
        let mut pending = self
            .logons
            .remove(&id)
            .unwrap_or_else(|| PendingLogon { logon: Logon::new(self.settings.names.clone()), preauth: self.preauth });
        pending.preauth.update(&incoming.bytes);
        let step = pending.logon.step(&request.token, drawn.challenge, drawn.time, keys);
        match step.inspect_err(|_| *failed = true)? {
            Step::Continue(token) => {
                let message = self.message(incoming, id, Status::MORE_PROCESSING_REQUIRED, 0, token);
                pending.preauth.update(&message.head);
                self.logons.insert(id, pending);
                let sign = self.sessions.get(&id).filter(|_| incoming.sign).cloned();
                Ok(LogonAnswer { reply: Reply { message, sign }, session: None, replaces: None, failed: false })
            }
            Step::Done { token, logged_on } => {
                let session = self.established(id, request, *logged_on, &pending.preauth, drawn.salt);
                let session = session.inspect_err(|_| *failed = true)?;
                let flags = if session.encrypt { session_setup::SESSION_ENCRYPT_DATA } else { 0 };
                let message = self.message(incoming, id, Status::SUCCESS, flags, token);
                let replaces = Some(request.previous_session_id).filter(|old| *old != 0 && *old != id);
                let reply = Reply { message, sign: Some(session.clone()) };
                Ok(LogonAnswer { reply, session: Some(session), replaces, failed: false })
            }
        }
    }

    /// Whether the token of a request must prove who logs on. Only then are the keys of an account looked at.
    #[must_use]
    pub fn expects_proof(&self, incoming: &Incoming) -> bool {
        self.logons.get(&incoming.header.session_id).is_some_and(|pending| pending.logon.expects_proof())
    }

    /// The id of the logon that a token belongs to: a new one, one on its way, or a session that logs on again.
    fn logon_id(&self, incoming: &Incoming, drawn: Drawn) -> Result<u64> {
        let known = |id: &u64| self.sessions.contains_key(id) || self.logons.contains_key(id);
        let strangers = if self.sessions.is_empty() { self.logons.len() } else { 0 };
        match incoming.header.session_id {
            0 if strangers >= LOGONS_BEFORE_LOGON_MAX => Err(Status::INSUFFICIENT_RESOURCES),
            0 if self.sessions.len() + self.logons.len() >= SESSIONS_MAX => Err(Status::INSUFFICIENT_RESOURCES),
            0 if known(&drawn.session_id) || drawn.session_id == 0 => Err(Status::INSUFFICIENT_RESOURCES),
            0 => Ok(drawn.session_id),
            id if known(&id) => Ok(id),
            _ => Err(Status::USER_SESSION_DELETED),
        }
    }

    /// The session of a logon that is done. One that logged on again keeps its keys, if it is the same account.
    fn established(
        &mut self,
        id: u64,
        request: &session_setup::Request,
        logged_on: LoggedOn,
        preauth: &Preauth,
        salt: [u8; 4],
    ) -> Result<Arc<Session>> {
        if let Some(session) = self.sessions.get(&id) {
            // A rotated key must not live on in a session that was made with it.
            let same = session.user == logged_on.user && session.key.is(&logged_on.key);
            return if same { Ok(session.clone()) } else { Err(Status::ACCESS_DENIED) };
        }
        let negotiated = self.negotiated().ok_or(Status::INVALID_PARAMETER)?;
        let keys = Keys::derive(&logged_on.session_key, negotiated.algorithms, preauth, salt);
        if self.settings.require_encryption && keys.sealer.is_none() {
            return Err(Status::ACCESS_DENIED);
        }
        let asked = u16::from(request.security_mode) | negotiated.client_security_mode;
        let session = Arc::new(Session {
            id,
            user: logged_on.user,
            key: logged_on.key,
            keys,
            encrypt: self.settings.require_encryption,
            sign: self.settings.require_signing || asked & SIGNING_REQUIRED != 0,
        });
        self.sessions.insert(id, session.clone());
        Ok(session)
    }

    fn message(&mut self, incoming: &Incoming, id: u64, status: Status, flags: u16, token: Vec<u8>) -> Outgoing {
        let credits = self.credits.grant(incoming.header.credits);
        let header = Header { session_id: id, ..incoming.header.answer(status, credits) };
        Outgoing::new(&header, &Response::SessionSetup(session_setup::Response { flags, token }))
    }
}
