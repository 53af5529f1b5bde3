//! A session: who logged on, and the keys of what it sends and gets.

use std::sync::Arc;

use bytes::Bytes;

use crate::crypto::kdf::Keys;
use crate::ntlm::NtHash;
use crate::wire::compound::{self, Outgoing};
use crate::wire::frame;

/// A session that is logged on. Logging on again keeps it.
#[derive(Debug)]
pub struct Session {
    pub id: u64,
    /// The account.
    pub user: String,
    /// The key of the account that it logged on with.
    pub key: NtHash,
    pub keys: Keys,
    /// Every request and answer is encrypted.
    pub encrypt: bool,
    /// Every request and answer that is not encrypted is signed.
    pub sign: bool,
}

impl Session {
    /// Whether its key is still one of the account's. A session whose key was rotated ends.
    #[must_use]
    pub fn key_is_among(&self, keys: &[NtHash]) -> bool {
        keys.iter().any(|key| key.is(&self.key))
    }
}

/// An answer, and how it is protected when its frame is not encrypted.
#[derive(Debug)]
pub struct Reply {
    pub message: Outgoing,
    pub sign: Option<Arc<Session>>,
}

/// Makes a frame of answers: joined, then encrypted as one or signed one by one. The parts are sent one after the other.
#[must_use]
pub fn frame_of(replies: Vec<Reply>, encrypt: Option<&Session>) -> Vec<Bytes> {
    let (mut answers, signers): (Vec<Outgoing>, Vec<_>) =
        replies.into_iter().map(|reply| (reply.message, reply.sign)).unzip();
    compound::join(&mut answers);
    if let Some((session, sealer)) = encrypt.and_then(|session| Some((session, session.keys.sealer.as_ref()?))) {
        let sealed = sealer.seal(session.id, &answers);
        return vec![Bytes::copy_from_slice(&frame::prefix(sealed.len())), sealed.into()];
    }
    let length = answers.iter().map(Outgoing::len).sum();
    let mut parts = vec![Bytes::copy_from_slice(&frame::prefix(length))];
    for (mut answer, signer) in answers.into_iter().zip(signers) {
        if let Some(session) = signer {
            session.keys.signing.sign(&mut answer);
        }
        parts.push(answer.head.into());
        parts.extend(answer.data);
    }
    parts
}
