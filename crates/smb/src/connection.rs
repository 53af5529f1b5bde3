//! A connection without its socket: frames in, requests out, until the end; negotiation and logon (MS-SMB2 3.3.5.2 to 3.3.5.5).
//!
//! [`Connection::receive`] decrypts, splits, counts credits and checks signatures. NEGOTIATE and SESSION_SETUP are answered here; every other
//! request goes to its command. [`crate::session::frame_of`] protects the answers.

mod logging_on;
mod negotiating;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use self::logging_on::PendingLogon;
pub use self::logging_on::{Drawn, LogonAnswer};
pub use self::negotiating::Negotiated;
use crate::credits::{Credits, OutOfWindow, pays_for};
use crate::crypto::preauth::Preauth;
use crate::ntlm::ServerNames;
use crate::session::Session;
use crate::status::{Result, Status};
use crate::wire::Request;
use crate::wire::compound::{self, Message};
use crate::wire::create::CONTEXTS_BYTES_MAX;
use crate::wire::header::{BadHeader, Command, Flags, Header, PROTOCOL_SMB1, PROTOCOL_TRANSFORM};
use crate::wire::negotiate::Dialect;
use crate::wire::smb1;
use crate::wire::transform::Transform;

/// Bytes of a read, a write, and of what an IOCTL or a listing carries.
pub const TRANSACT_BYTES_MAX: u32 = 8 << 20;

/// Bytes of a message beyond those that its credits pay for: header, body, names.
pub const UNPAID_BYTES_MAX: usize = 4 << 10;

/// Sessions of a connection, with logons on their way.
pub const SESSIONS_MAX: usize = 64;

/// Logons on their way while nobody is logged on: each holds memory for somebody who has shown nothing yet.
pub const LOGONS_BEFORE_LOGON_MAX: usize = 4;

/// The session id in a related request.
const RELATED_SESSION: u64 = u64::MAX;

/// What all connections of a server have in common.
#[derive(Clone, Debug)]
pub struct Settings {
    pub names: ServerNames,
    pub server_guid: u128,
    /// Nothing but negotiation and logon is answered without encryption.
    pub require_encryption: bool,
    /// Nothing is answered without a signature, even to a client that would do without.
    pub require_signing: bool,
    /// Leases are offered.
    pub leasing: bool,
}

/// Why a connection ends without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disconnect {
    /// Bytes that are no message, or not encrypted by the session they name.
    BadMessage,
    /// A message id that was used or may not be used yet.
    OutOfWindow,
    /// A message that does not belong here: a second NEGOTIATE, anything before the first.
    OutOfTurn,
}

impl From<BadHeader> for Disconnect {
    fn from(BadHeader: BadHeader) -> Disconnect {
        Disconnect::BadMessage
    }
}

impl From<OutOfWindow> for Disconnect {
    fn from(OutOfWindow: OutOfWindow) -> Disconnect {
        Disconnect::OutOfWindow
    }
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    settings: Arc<Settings>,
    stage: Stage,
    credits: Credits,
    /// Over NEGOTIATE and its answer.
    preauth: Preauth,
    sessions: HashMap<u64, Arc<Session>>,
    logons: HashMap<u64, PendingLogon>,
}

#[derive(Clone, Debug)]
enum Stage {
    New,
    /// An SMB1 packet was answered; NEGOTIATE follows.
    MultiProtocol,
    Negotiated(Arc<Negotiated>),
}

/// A frame that is not encrypted, or not any more.
#[derive(Debug)]
pub struct Plain {
    bytes: Bytes,
    encrypted: Option<Arc<Session>>,
}

impl Plain {
    /// The frame, decrypted by the session that [`Connection::encrypted_by`] tells.
    ///
    /// # Errors
    /// When the connection must end.
    pub fn decrypted(frame: BytesMut, by: Option<Arc<Session>>) -> std::result::Result<Plain, Disconnect> {
        let bytes = match &by {
            Some(session) => session.keys.opener.as_ref().ok_or(Disconnect::BadMessage)?.open(frame)?,
            None => frame.freeze(),
        };
        Ok(Plain { bytes, encrypted: by })
    }
}

/// What a frame holds.
#[derive(Debug)]
pub enum Received {
    /// An SMB1 packet that offers SMB2: [`Connection::multi_protocol`] answers it.
    MultiProtocol,
    Requests {
        requests: Vec<Incoming>,
        /// The session that encrypted the frame: the answers are encrypted, too.
        encrypted: Option<Arc<Session>>,
    },
}

/// A request.
#[derive(Debug)]
pub struct Incoming {
    pub header: Header,
    /// The whole message.
    pub bytes: Bytes,
    /// The request, or the status that it is answered with.
    pub request: Result<Request>,
    /// The session that it belongs to. Requests of commands have one, unless their status says why not.
    pub session: Option<Arc<Session>>,
    /// The answer is signed.
    pub sign: bool,
}

impl Connection {
    /// A connection before its first frame.
    #[must_use]
    pub fn new(settings: Arc<Settings>) -> Connection {
        Connection {
            settings,
            stage: Stage::New,
            credits: Credits::default(),
            preauth: Preauth::default(),
            sessions: HashMap::new(),
            logons: HashMap::new(),
        }
    }

    /// The session that a frame is encrypted by.
    ///
    /// # Errors
    /// When the connection must end.
    pub fn encrypted_by(&self, frame: &[u8]) -> std::result::Result<Option<Arc<Session>>, Disconnect> {
        if frame.first_chunk::<4>() != Some(&PROTOCOL_TRANSFORM) {
            return Ok(None);
        }
        let (transform, _) = Transform::decode(frame)?;
        let session = self.sessions.get(&transform.session_id).ok_or(Disconnect::BadMessage)?;
        Ok(Some(Arc::clone(session)))
    }

    /// Takes a frame as it came.
    ///
    /// # Errors
    /// When the connection must end.
    pub fn receive(&mut self, frame: BytesMut) -> std::result::Result<Received, Disconnect> {
        let encrypted = self.encrypted_by(&frame)?;
        self.receive_plain(Plain::decrypted(frame, encrypted)?)
    }

    /// Takes a frame that is decrypted.
    ///
    /// # Errors
    /// When the connection must end.
    pub fn receive_plain(&mut self, frame: Plain) -> std::result::Result<Received, Disconnect> {
        let Plain { bytes: frame, encrypted } = frame;
        if encrypted.is_none() && frame.first_chunk::<4>() == Some(&PROTOCOL_SMB1) {
            return self.receive_smb1(&frame);
        }
        let messages = compound::split(&frame)?;
        let alone = messages.len() == 1;
        let mut requests: Vec<Incoming> = Vec::with_capacity(messages.len());
        for message in messages {
            let before = requests.last().and_then(|before| before.session.clone());
            let (is_first, is_orphan) = (requests.is_empty(), before.is_none());
            let mut incoming = self.incoming(message, alone, before, encrypted.as_ref())?;
            // Related to nothing, or to a request without a session.
            let is_related = incoming.header.flags.has(Flags::RELATED);
            if is_related && (is_first && incoming.request.is_ok() || !is_first && is_orphan) {
                incoming.request = Err(Status::INVALID_PARAMETER);
            }
            requests.push(incoming);
        }
        Ok(Received::Requests { requests, encrypted })
    }

    fn receive_smb1(&mut self, frame: &[u8]) -> std::result::Result<Received, Disconnect> {
        let offered = smb1::decode(frame)?;
        match self.stage {
            Stage::New if offered.smb2_any => {
                self.credits.take(0, 1)?;
                self.stage = Stage::MultiProtocol;
                Ok(Received::MultiProtocol)
            }
            Stage::New | Stage::MultiProtocol | Stage::Negotiated(_) => Err(Disconnect::OutOfTurn),
        }
    }

    /// One message of a frame: its turn, its credits, its session, its signature, and at last what it asks for.
    fn incoming(
        &mut self,
        message: Message,
        alone: bool,
        before: Option<Arc<Session>>,
        encrypted: Option<&Arc<Session>>,
    ) -> std::result::Result<Incoming, Disconnect> {
        let Message { header, bytes } = message;
        let command = Command::from_u16(header.command);
        if header.flags.has(Flags::RESPONSE) {
            return Err(Disconnect::BadMessage);
        }
        let negotiated = matches!(self.stage, Stage::Negotiated(_));
        if (command == Some(Command::Negotiate)) == negotiated {
            return Err(Disconnect::OutOfTurn);
        }
        if command != Some(Command::Cancel) {
            self.credits.take(header.message_id, header.credit_charge)?;
        }
        let related = header.flags.has(Flags::RELATED);
        let session = match (related, encrypted) {
            (true, _) if before.is_some() => before,
            (false, Some(encrypted)) if encrypted.id != header.session_id => return Err(Disconnect::BadMessage),
            (_, Some(encrypted)) => Some(encrypted.clone()),
            (_, None) => {
                self.sessions.get(&header.session_id).filter(|_| header.session_id != RELATED_SESSION).cloned()
            }
        };
        let protected = encrypted.is_some() || header.flags.has(Flags::SIGNED);
        if session.is_some() && !protected && self.must_be_protected(command) {
            return Err(Disconnect::BadMessage);
        }
        let sign = encrypted.is_none()
            && session.as_ref().is_some_and(|session| session.sign || header.flags.has(Flags::SIGNED));
        let request = self
            .admitted(&header, &bytes, command, session.as_deref(), encrypted.is_some())
            .and_then(|command| decoded(&header, &bytes, command, alone));
        Ok(Incoming { header, bytes, request, session, sign })
    }

    /// Whether a request may be looked at: it has a session where it needs one, and is protected as the session wants it.
    fn admitted(
        &self,
        header: &Header,
        bytes: &[u8],
        command: Option<Command>,
        session: Option<&Session>,
        encrypted: bool,
    ) -> Result<Command> {
        let command = command.ok_or(Status::INVALID_PARAMETER)?;
        let logging_on = matches!(command, Command::Negotiate | Command::SessionSetup);
        let Some(session) = session else {
            let without = logging_on || (command == Command::Echo && header.session_id == 0);
            return if without { Ok(command) } else { Err(Status::USER_SESSION_DELETED) };
        };
        if encrypted {
            return Ok(command);
        }
        if header.flags.has(Flags::SIGNED) {
            if !session.keys.signing.verify(bytes) {
                return Err(Status::ACCESS_DENIED);
            }
        } else if session.sign && command != Command::Cancel {
            // SESSION_SETUP, too: a logon that fails ends its session, and nobody else may do that.
            return Err(Status::ACCESS_DENIED);
        }
        match session.encrypt && !logging_on && command != Command::Cancel {
            true => Err(Status::ACCESS_DENIED),
            false => Ok(command),
        }
    }

    /// What was agreed on, once it was.
    #[must_use]
    pub fn negotiated(&self) -> Option<&Arc<Negotiated>> {
        match &self.stage {
            Stage::Negotiated(negotiated) => Some(negotiated),
            Stage::New | Stage::MultiProtocol => None,
        }
    }

    /// Grants credits for an answer: the interim one or the only one.
    pub fn grant(&mut self, asked: u16) -> u16 {
        self.credits.grant(asked)
    }

    /// A session of this connection.
    #[must_use]
    pub fn session(&self, id: u64) -> Option<&Arc<Session>> {
        self.sessions.get(&id)
    }

    /// All sessions of this connection.
    pub fn sessions(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.sessions.values()
    }

    /// Ends a session: LOGOFF, a rotated key, or a client that logged on anew.
    pub fn end_session(&mut self, id: u64) -> Option<Arc<Session>> {
        self.logons.remove(&id);
        self.sessions.remove(&id)
    }

    /// In 3.1.1 the first request of a session on a share proves that nobody changed the negotiation.
    fn must_be_protected(&self, command: Option<Command>) -> bool {
        let is_311 = |negotiated: &Arc<Negotiated>| negotiated.algorithms.dialect == Dialect::Smb311;
        command == Some(Command::TreeConnect) && self.negotiated().is_some_and(is_311)
    }
}

fn decoded(header: &Header, bytes: &Bytes, command: Command, alone: bool) -> Result<Request> {
    if !alone && matches!(command, Command::Negotiate | Command::SessionSetup) {
        return Err(Status::INVALID_PARAMETER);
    }
    // Whatever it carries, and if it is nothing that anybody reads. The contexts of CREATE are free.
    let free = UNPAID_BYTES_MAX + if command == Command::Create { CONTEXTS_BYTES_MAX } else { 0 };
    if !pays_for(header.credit_charge, bytes.len().saturating_sub(free) as u64) {
        return Err(Status::INVALID_PARAMETER);
    }
    let request = Request::decode(command, bytes)?;
    let payload = request.payload_bytes();
    if payload > u64::from(TRANSACT_BYTES_MAX) || !pays_for(header.credit_charge, payload) {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(request)
}

#[cfg(test)]
mod tests;
