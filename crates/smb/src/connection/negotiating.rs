//! NEGOTIATE: the newest dialect that both sides have, and the client's first choice of ciphers and signatures that we have (3.3.5.4).

use std::sync::Arc;

use super::{Connection, Disconnect, Incoming, Stage, TRANSACT_BYTES_MAX};
use crate::crypto::kdf::Algorithms;
use crate::spnego;
use crate::status::{Result, Status};
use crate::wire::Response;
use crate::wire::compound::Outgoing;
use crate::wire::header::{Command, Flags, Header, Route};
use crate::wire::negotiate::{self, Dialect, capability};
use crate::wire::negotiate_context::{CipherId, Contexts, ResponseContext, SigningId};

/// What was asked for and answered. VALIDATE_NEGOTIATE_INFO wants both again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    pub algorithms: Algorithms,
    pub client_guid: u128,
    pub client_capabilities: u32,
    pub client_security_mode: u16,
    pub client_dialects: Vec<u16>,
    pub server_guid: u128,
    pub capabilities: u32,
    pub security_mode: u16,
}

impl Connection {
    /// Answers an SMB1 packet: send an SMB2 NEGOTIATE. `time` is a FILETIME.
    pub fn multi_protocol(&mut self, time: i64) -> Outgoing {
        let header = Header {
            command: Command::Negotiate as u16,
            credits: self.credits.grant(1),
            flags: Flags::RESPONSE,
            message_id: 0,
            route: Route::Tree { process: 0, tree: 0 },
            ..Header::unsolicited()
        };
        let capabilities = capability::LARGE_MTU;
        let body = self.answer(negotiate::DIALECT_ANY_SMB2, capabilities, Vec::new(), time);
        Outgoing::new(&header, &Response::Negotiate(body))
    }

    /// Answers NEGOTIATE. `salt` is random, `time` a FILETIME.
    ///
    /// # Errors
    /// When the connection must end.
    pub fn negotiate(
        &mut self,
        incoming: &Incoming,
        salt: [u8; 32],
        time: i64,
    ) -> std::result::Result<Outgoing, Disconnect> {
        let Ok(crate::wire::Request::Negotiate(request)) = &incoming.request else {
            let status = incoming.request.as_ref().err().copied().unwrap_or(Status::INVALID_PARAMETER);
            return Ok(self.refused(incoming, status));
        };
        if !matches!(self.stage, Stage::New | Stage::MultiProtocol) {
            return Err(Disconnect::OutOfTurn);
        }
        let (algorithms, contexts) = match agreed(request, salt) {
            Ok(agreed) => agreed,
            Err(status) => return Ok(self.refused(incoming, status)),
        };
        let capabilities = self.capabilities(request, algorithms);
        let body = self.answer(algorithms.dialect as u16, capabilities, contexts, time);
        let security_mode = body.security_mode;
        let header = incoming.header.answer(Status::SUCCESS, self.credits.grant(incoming.header.credits));
        let answer = Outgoing::new(&header, &Response::Negotiate(body));
        self.preauth.update(&incoming.bytes);
        self.preauth.update(&answer.head);
        self.stage = Stage::Negotiated(Arc::new(Negotiated {
            algorithms,
            client_guid: request.client_guid,
            client_capabilities: request.capabilities,
            client_security_mode: request.security_mode,
            client_dialects: request.dialects.clone(),
            server_guid: self.settings.server_guid,
            capabilities,
            security_mode,
        }));
        Ok(answer)
    }

    pub(super) fn refused(&mut self, incoming: &Incoming, status: Status) -> Outgoing {
        let header = incoming.header.answer(status, self.credits.grant(incoming.header.credits));
        Outgoing::new(&header, &Response::error())
    }

    fn capabilities(&self, request: &negotiate::Request, algorithms: Algorithms) -> u32 {
        let mut capabilities = capability::LARGE_MTU;
        if self.settings.leasing {
            capabilities |= capability::LEASING;
        }
        // 3.1.1 has a context instead.
        if matches!(algorithms.dialect, Dialect::Smb300 | Dialect::Smb302) {
            capabilities |= request.capabilities & capability::ENCRYPTION;
        }
        capabilities
    }

    fn answer(
        &self,
        dialect: u16,
        capabilities: u32,
        contexts: Vec<ResponseContext>,
        time: i64,
    ) -> negotiate::Response {
        let required = if self.settings.require_signing { negotiate::SIGNING_REQUIRED } else { 0 };
        negotiate::Response {
            security_mode: negotiate::SIGNING_ENABLED | required,
            dialect,
            server_guid: self.settings.server_guid,
            capabilities,
            max_transact: TRANSACT_BYTES_MAX,
            max_read: TRANSACT_BYTES_MAX,
            max_write: TRANSACT_BYTES_MAX,
            system_time: time,
            token: spnego::init2(),
            contexts,
        }
    }
}

fn agreed(request: &negotiate::Request, salt: [u8; 32]) -> Result<(Algorithms, Vec<ResponseContext>)> {
    let dialects = request.dialects.iter().filter_map(|dialect| Dialect::from_u16(*dialect));
    let dialect = dialects.max().ok_or(Status::NOT_SUPPORTED)?;
    Ok(match (dialect, &request.contexts) {
        (Dialect::Smb311, Some(contexts)) => with_contexts(contexts, salt),
        (Dialect::Smb311, None) => return Err(Status::INVALID_PARAMETER),
        (Dialect::Smb300 | Dialect::Smb302, _) => {
            let cipher = (request.capabilities & capability::ENCRYPTION != 0).then_some(CipherId::Aes128Ccm);
            (Algorithms { dialect, signing: SigningId::AesCmac, cipher }, Vec::new())
        }
        (Dialect::Smb210, _) => (Algorithms { dialect, signing: SigningId::HmacSha256, cipher: None }, Vec::new()),
    })
}

fn with_contexts(offered: &Contexts, salt: [u8; 32]) -> (Algorithms, Vec<ResponseContext>) {
    let mut answers = vec![ResponseContext::Preauth { salt }];
    let cipher = offered.ciphers.as_ref().and_then(|ids| ids.iter().find_map(|id| CipherId::from_u16(*id)));
    if offered.ciphers.is_some() {
        answers.push(ResponseContext::Encryption(cipher));
    }
    let signing = offered.signings.as_ref().and_then(|ids| ids.iter().find_map(|id| SigningId::from_u16(*id)));
    if let Some(signing) = signing {
        answers.push(ResponseContext::Signing(signing));
    }
    let signing = signing.unwrap_or(SigningId::AesCmac);
    (Algorithms { dialect: Dialect::Smb311, signing, cipher }, answers)
}
