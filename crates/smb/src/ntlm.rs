//! The server's side of NTLMv2 (MS-NLMP): challenge, proof, session key, message integrity.
//!
//! NTLMv1, LM, anonymous and guest logons are refused. The password is one of the two keys of an account, as base64 text.

mod av_pair;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod client;
mod message;
mod session;

use hmac::{Hmac, KeyInit, Mac};
use md4::{Digest, Md4};
use md5::Md5;
use rc4::{Rc4, StreamCipher};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroizing;

pub use self::message::flag;
pub use self::session::NtlmSession;

use self::av_pair::AvPairs;
use self::message::Authenticate;
use crate::crypto::kdf::SessionKey;
use crate::status::{Result, Status};
use crate::wire::cursor::{Put, to_utf16};

/// Bytes of any NTLM message. What clients send has some hundreds.
pub const MESSAGE_BYTES_MAX: usize = 16 << 10;

/// Keys of an account that are compared.
pub const KEYS_PER_ACCOUNT: usize = 2;

/// The hash of a password: all that NTLM knows of it.
#[derive(Clone)]
pub struct NtHash(Zeroizing<[u8; 16]>);

impl std::fmt::Debug for NtHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NtHash")
    }
}

impl NtHash {
    /// The hash of a password, here the base64 text of a key.
    #[must_use]
    pub fn of(password: &str) -> NtHash {
        let text = Zeroizing::new(to_utf16(password));
        NtHash(Zeroizing::new(Md4::digest(&text[..]).into()))
    }

    /// Whether two passwords are the same.
    #[must_use]
    pub fn is(&self, other: &NtHash) -> bool {
        self.0[..].ct_eq(&other.0[..]).into()
    }

    /// `NTOWFv2`: the hash with the user's name, in upper case, and the domain as the client sent it.
    fn with_user(&self, user: &str, domain: &str) -> Zeroizing<[u8; 16]> {
        let mut names = to_utf16(&upper(user));
        names.put_utf16(domain);
        Zeroizing::new(hmac_md5(&self.0[..], &[&names]))
    }
}

/// Upper case, character by character: a character that becomes two keeps its case, as in Windows.
fn upper(text: &str) -> String {
    let one = |character: char| {
        let mut upper = character.to_uppercase();
        match (upper.next(), upper.next()) {
            (Some(upper), None) => upper,
            _ => character,
        }
    };
    text.chars().map(one).collect()
}

fn hmac_md5(key: &[u8], parts: &[&[u8]]) -> [u8; 16] {
    let mut mac = Hmac::<Md5>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

fn rc4(key: &[u8; 16], data: &mut [u8]) {
    Rc4::new_from_slice(key).expect("RC4 takes 16 bytes").apply_keystream(data);
}

/// What the server calls itself in challenges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerNames {
    pub computer: String,
    pub domain: String,
    pub dns_computer: String,
    pub dns_domain: String,
    /// Hosts that clients may have meant to reach, in lower case. None: any, because balancers have names of their own.
    pub hosts: Option<Vec<String>>,
}

/// A challenge that was sent, and waits for its answer.
#[derive(Clone, Debug)]
pub struct Challenge {
    names: ServerNames,
    flags: u32,
    challenge: [u8; 8],
    time: i64,
    negotiate: Vec<u8>,
    message: Vec<u8>,
}

/// Who logged on.
#[derive(Debug)]
pub struct LoggedOn {
    /// The account, in lower case.
    pub user: String,
    /// As the client sent it. It says nothing.
    pub domain: String,
    pub workstation: String,
    /// The key that it was.
    pub key: NtHash,
    pub session_key: SessionKey,
    /// Signs the list of mechanisms around NTLM.
    pub session: NtlmSession,
}

impl Challenge {
    /// Answers a NEGOTIATE message with a challenge. `time` is a FILETIME.
    ///
    /// # Errors
    /// INVALID_PARAMETER for a message that is none; LOGON_FAILURE for a client without Unicode.
    pub fn new(negotiate: &[u8], names: &ServerNames, challenge: [u8; 8], time: i64) -> Result<Challenge> {
        let asked = message::negotiate(negotiate)?;
        if asked & flag::UNICODE == 0 {
            return Err(Status::LOGON_FAILURE);
        }
        let flags = (asked & flag::TAKEN_OVER) | flag::OF_CHALLENGES;
        let pairs = AvPairs::of_server(names, time);
        let message = message::challenge(&names.domain, flags, challenge, &pairs);
        Ok(Challenge { names: names.clone(), flags, challenge, time, negotiate: negotiate.to_vec(), message })
    }

    /// The message for the client.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Judges an AUTHENTICATE message. `keys` gives the hashes of an account's keys, none for an unknown one; up to two count.
    ///
    /// # Errors
    /// INVALID_PARAMETER for a message that is none, LOGON_FAILURE for everything else: a client does not learn whether the account exists.
    pub fn authenticate(&self, message: &[u8], keys: impl FnOnce(&str) -> Vec<NtHash>) -> Result<LoggedOn> {
        let answer = Authenticate::decode(message)?;
        if answer.user.is_empty() || answer.flags & flag::ANONYMOUS != 0 {
            return Err(Status::LOGON_FAILURE);
        }
        let (proof, blob) = answer.nt_response.split_first_chunk::<16>().ok_or(Status::LOGON_FAILURE)?;
        let pairs = AvPairs::of_client(blob).ok_or(Status::LOGON_FAILURE)?;
        let user = answer.user.to_lowercase();
        let mut keys = keys(&user);
        let (place, base_key) = self.proven(&answer, proof, blob, &mut keys).ok_or(Status::LOGON_FAILURE)?;
        let key = keys.swap_remove(place);
        if !pairs.belong_to(&self.names, self.time) {
            return Err(Status::LOGON_FAILURE);
        }
        let flags = answer.flags & self.flags;
        let session_key = exported(flags, &base_key, answer.session_key).ok_or(Status::LOGON_FAILURE)?;
        if pairs.have_mic() && !self.mic_is_right(message, &session_key) {
            return Err(Status::LOGON_FAILURE);
        }
        let session = NtlmSession::new(&session_key, flags);
        Ok(LoggedOn { user, domain: answer.domain, workstation: answer.workstation, key, session_key, session })
    }

    /// Which key the proof was made with, and the key that follows from it. Takes as long for an unknown account and for any key.
    fn proven(
        &self,
        answer: &Authenticate<'_>,
        proof: &[u8; 16],
        blob: &[u8],
        keys: &mut Vec<NtHash>,
    ) -> Option<(usize, SessionKey)> {
        let known = keys.len().min(KEYS_PER_ACCOUNT);
        keys.resize_with(KEYS_PER_ACCOUNT, || NtHash(Zeroizing::new([0; 16])));
        let mut found = Choice::from(0);
        let mut index = 0u8;
        let mut base_key = Zeroizing::new([0; 16]);
        for (place, key) in (0u8..).zip(keys.iter()) {
            let owf = key.with_user(&answer.user, &answer.domain);
            let expected = hmac_md5(&owf[..], &[&self.challenge, blob]);
            let real = Choice::from(u8::from(usize::from(place) < known));
            let right = expected[..].ct_eq(&proof[..]) & real & !found;
            let key = Zeroizing::new(hmac_md5(&owf[..], &[&expected]));
            found |= right;
            index.conditional_assign(&place, right);
            base_key.iter_mut().zip(key.iter()).for_each(|(to, from)| to.conditional_assign(from, right));
        }
        bool::from(found).then_some((usize::from(index), base_key))
    }

    fn mic_is_right(&self, message: &[u8], session_key: &SessionKey) -> bool {
        let Some(mic) = message.get(message::MIC) else { return false };
        let (before, after) = (&message[..message::MIC.start], &message[message::MIC.end..]);
        let parts: [&[u8]; 5] = [&self.negotiate, &self.message, before, &[0; 16], after];
        hmac_md5(&session_key[..], &parts)[..].ct_eq(mic).into()
    }
}

/// The session key: what the client drew, if keys are exchanged, else the key that follows from the proof.
fn exported(flags: u32, base_key: &SessionKey, encrypted: &[u8]) -> Option<SessionKey> {
    if flags & flag::KEY_EXCH == 0 {
        return Some(base_key.clone());
    }
    let mut key: SessionKey = Zeroizing::new(encrypted.try_into().ok()?);
    rc4(base_key, &mut key[..]);
    Some(key)
}

#[cfg(test)]
mod tests;
