//! A client, for tests: what Windows and Samba send.

use zeroize::Zeroizing;

use super::av_pair::AvPairs;
use super::message::{MIC, SIGNATURE, field};
use super::{NtHash, NtlmSession, flag, hmac_md5, rc4};
use crate::crypto::kdf::SessionKey;
use crate::wire::cursor::{Put, to_utf16};

/// A logon that a client tries.
pub(crate) struct Client {
    pub user: String,
    pub domain: String,
    pub password: String,
    pub flags: u32,
    pub mic: bool,
    pub target: Option<String>,
}

pub(crate) const FLAGS: u32 = flag::UNICODE
    | flag::REQUEST_TARGET
    | flag::SIGN
    | flag::NTLM
    | flag::ALWAYS_SIGN
    | flag::EXTENDED_SESSION_SECURITY
    | flag::TARGET_INFO
    | flag::BITS_128
    | flag::KEY_EXCH
    | flag::BITS_56;

impl Client {
    pub(crate) fn new(user: &str, password: &str) -> Client {
        Client {
            user: user.into(),
            domain: "AZURE".into(),
            password: password.into(),
            flags: FLAGS,
            mic: true,
            target: Some("cifs/localhost".into()),
        }
    }

    pub(crate) fn negotiate(&self) -> Vec<u8> {
        let mut out = SIGNATURE.to_vec();
        out.put_u32(1);
        out.put_u32(self.flags);
        out.put_zeros(16);
        out
    }

    /// The answer to a challenge, the key of the session, and its signatures.
    pub(crate) fn authenticate(&self, challenge: &[u8]) -> (Vec<u8>, SessionKey, NtlmSession) {
        let number = |at: usize| u32::from_le_bytes(challenge[at..at + 4].try_into().expect("four bytes"));
        let info_length = usize::from(u16::from_le_bytes([challenge[40], challenge[41]]));
        let info_offset = number(44) as usize;
        let mut pairs =
            AvPairs::decode(&challenge[info_offset..info_offset + info_length]).expect("the server's target info");
        if self.mic {
            pairs.push(6, &2u32.to_le_bytes());
        }
        if let Some(target) = &self.target {
            pairs.push(9, &to_utf16(target));
        }
        let blob = [&[1, 1, 0, 0, 0, 0, 0, 0][..], &[9; 8], &[0xAA; 8], &[0; 4], &pairs.encode(), &[0; 4]].concat();
        let owf = NtHash::of(&self.password).with_user(&self.user, &self.domain);
        let proof = hmac_md5(&owf[..], &[&challenge[24..32], &blob]);
        let base_key: SessionKey = Zeroizing::new(hmac_md5(&owf[..], &[&proof]));
        let flags = self.flags & number(20);
        let (session_key, mut encrypted) = match flags & flag::KEY_EXCH {
            0 => (base_key.clone(), Vec::new()),
            _ => (Zeroizing::new([0x55; 16]), vec![0x55; 16]),
        };
        rc4(&base_key, &mut encrypted);
        let mut message = self.message(&[&proof[..], &blob].concat(), &encrypted, flags);
        if self.mic {
            let mic = hmac_md5(&session_key[..], &[&self.negotiate(), challenge, &message]);
            message[MIC].copy_from_slice(&mic);
        }
        let session = NtlmSession::new(&session_key, flags);
        (message, session_key, session)
    }

    pub(crate) fn message(&self, response: &[u8], encrypted: &[u8], flags: u32) -> Vec<u8> {
        let payload =
            [&[0; 24][..], response, &to_utf16(&self.domain), &to_utf16(&self.user), &to_utf16("PC"), encrypted];
        let mut out = SIGNATURE.to_vec();
        out.put_u32(3);
        let mut offset = MIC.end;
        for part in payload {
            field(&mut out, part.len(), offset);
            offset += part.len();
        }
        out.put_u32(flags);
        out.put_zeros(MIC.end - out.len());
        out.extend(payload.concat());
        out
    }
}
