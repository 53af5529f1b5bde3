//! Signatures of a logon's session (MS-NLMP 3.4): of one text in each direction, the list of mechanisms.

use md5::{Digest, Md5};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::{flag, hmac_md5, rc4};
use crate::crypto::kdf::SessionKey;

/// The keys of both directions.
pub struct NtlmSession {
    client: Direction,
    server: Direction,
}

impl std::fmt::Debug for NtlmSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NtlmSession")
    }
}

struct Direction {
    sign: Zeroizing<[u8; 16]>,
    /// None: keys are not exchanged, and signatures are not encrypted.
    seal: Option<Zeroizing<[u8; 16]>>,
}

impl NtlmSession {
    pub(super) fn new(key: &SessionKey, flags: u32) -> NtlmSession {
        NtlmSession {
            client: Direction::new(key, flags, "client-to-server"),
            server: Direction::new(key, flags, "server-to-client"),
        }
    }

    /// The server's signature of its first text.
    #[must_use]
    pub fn sign(&self, text: &[u8]) -> [u8; 16] {
        self.server.sign(text)
    }

    /// Whether `signature` is the client's of its first text.
    #[must_use]
    pub fn verify(&self, text: &[u8], signature: &[u8]) -> bool {
        self.client.sign(text)[..].ct_eq(signature).into()
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn sign_as_client(&self, text: &[u8]) -> [u8; 16] {
        self.client.sign(text)
    }

    #[cfg(test)]
    pub(crate) fn verify_as_client(&self, text: &[u8], signature: &[u8]) -> bool {
        self.server.sign(text)[..] == *signature
    }

    #[cfg(test)]
    pub(super) fn client_keys(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        (self.client.sign.to_vec(), self.client.seal.as_ref().map(|key| key.to_vec()))
    }
}

impl Direction {
    fn new(key: &SessionKey, flags: u32, direction: &str) -> Direction {
        let magic = |purpose: &str| format!("session key to {direction} {purpose} key magic constant\0");
        // Without 128 bits the sealing key is made of fewer bytes of the session key.
        let bytes = match flags {
            flags if flags & flag::BITS_128 != 0 => 16,
            flags if flags & flag::BITS_56 != 0 => 7,
            _ => 5,
        };
        let seal = (flags & flag::KEY_EXCH != 0).then(|| hashed(&key[..bytes], &magic("sealing")));
        Direction { sign: hashed(&key[..], &magic("signing")), seal }
    }

    /// Version 1, eight bytes, the number of the text, which is 0.
    fn sign(&self, text: &[u8]) -> [u8; 16] {
        let mut signature = [0; 16];
        signature[0] = 1;
        signature[4..12].copy_from_slice(&hmac_md5(&self.sign[..], &[&[0; 4], text])[..8]);
        if let Some(seal) = &self.seal {
            rc4(seal, &mut signature[4..12]);
        }
        signature
    }
}

fn hashed(key: &[u8], magic: &str) -> Zeroizing<[u8; 16]> {
    Zeroizing::new(Md5::new().chain_update(key).chain_update(magic).finalize().into())
}
