//! Signatures (MS-SMB2 3.1.4.1): over the whole message with the signature's place zeroed, 16 bytes long.

use std::fmt;

use aes::Aes128;
use cmac::{Cmac, KeyInit, Mac};
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hmac;
use subtle::ConstantTimeEq;

use crate::wire::compound::Outgoing;
use crate::wire::header::{Command, Flags, HEADER_BYTES, SIGNATURE};
use crate::wire::negotiate_context::SigningId;

/// A key that signs.
pub struct SigningKey(Kind);

enum Kind {
    HmacSha256(hmac::Key),
    AesCmac(Box<Cmac<Aes128>>),
    AesGmac(Box<LessSafeKey>),
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::HmacSha256(_) => "HMAC-SHA256",
            Kind::AesCmac(_) => "AES-CMAC",
            Kind::AesGmac(_) => "AES-GMAC",
        })
    }
}

impl SigningKey {
    /// The key of an algorithm.
    #[must_use]
    pub fn new(id: SigningId, key: &[u8; 16]) -> SigningKey {
        SigningKey(match id {
            SigningId::HmacSha256 => Kind::HmacSha256(hmac::Key::new(hmac::HMAC_SHA256, key)),
            SigningId::AesCmac => Kind::AesCmac(Box::new(Cmac::new(key.into()))),
            SigningId::AesGmac => {
                let key = UnboundKey::new(&aead::AES_128_GCM, key).expect("the key has 16 bytes");
                Kind::AesGmac(Box::new(LessSafeKey::new(key)))
            }
        })
    }

    /// Signs an answer: sets the flag and the signature. An empty one is left alone.
    pub fn sign(&self, answer: &mut Outgoing) {
        let Some(header) = answer.head.get_mut(..HEADER_BYTES) else { return };
        header[16] |= Flags::SIGNED.0 as u8;
        header[SIGNATURE].fill(0);
        let parts: Vec<&[u8]> = answer.parts().collect();
        let signature = self.tag(&parts);
        answer.head[SIGNATURE].copy_from_slice(&signature);
    }

    /// Whether a message has the signature that belongs to it. Takes as long for each wrong one.
    #[must_use]
    pub fn verify(&self, message: &[u8]) -> bool {
        let Some((header, body)) = message.split_first_chunk::<HEADER_BYTES>() else { return false };
        let mut zeroed = *header;
        zeroed[SIGNATURE].fill(0);
        self.tag(&[&zeroed, body]).ct_eq(&header[SIGNATURE]).into()
    }

    /// The signature of a message in parts, the first of which has the whole header.
    fn tag(&self, parts: &[&[u8]]) -> [u8; 16] {
        let mut tag = [0; 16];
        match &self.0 {
            Kind::HmacSha256(key) => {
                let mut mac = hmac::Context::with_key(key);
                parts.iter().for_each(|part| mac.update(part));
                tag.copy_from_slice(&mac.sign().as_ref()[..16]);
            }
            Kind::AesCmac(key) => {
                let mut mac = Cmac::clone(key);
                parts.iter().for_each(|part| mac.update(part));
                tag.copy_from_slice(&mac.finalize().into_bytes());
            }
            Kind::AesGmac(key) => tag = gmac(key, gmac_nonce(parts[0]), parts),
        }
        tag
    }
}

/// The message id, and two bits: from the server, and a CANCEL. So no two messages of a key have one nonce.
fn gmac_nonce(header: &[u8]) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&header[24..32]);
    let server = header[16] & Flags::RESPONSE.0 as u8;
    let cancel = u8::from(header[12..14] == (Command::Cancel as u16).to_le_bytes()) << 1;
    nonce[8] = server | cancel;
    nonce
}

/// GMAC is GCM over no text. `ring` takes what is authenticated in one piece.
fn gmac(key: &LessSafeKey, nonce: [u8; 12], parts: &[&[u8]]) -> [u8; 16] {
    let joined;
    let whole = match parts {
        [one] => *one,
        _ => {
            joined = parts.concat();
            &joined
        }
    };
    let nonce = Nonce::assume_unique_for_key(nonce);
    let sealed = key.seal_in_place_separate_tag(nonce, Aad::from(whole), &mut []);
    let mut tag = [0; 16];
    tag.copy_from_slice(sealed.expect("a frame is shorter than what GCM can authenticate").as_ref());
    tag
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::hex;
    use super::*;

    #[test]
    fn cmac_is_that_of_rfc_4493() {
        let key: [u8; 16] = hex("2b7e151628aed2a6abf7158809cf4f3c").try_into().unwrap();
        let key = SigningKey::new(SigningId::AesCmac, &key);
        let message = hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51
                           30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710");
        for (length, expected) in [
            (0, "bb1d6929e95937287fa37d129b756746"),
            (16, "070a16b46b4d4144f79bdd9dd04a287c"),
            (40, "dfa66747de9ae63030ca32611497c827"),
            (64, "51f0bebf7e3b9d92fc49741779363cfe"),
        ] {
            assert_eq!(key.tag(&[&message[..length]])[..], hex(expected), "{length}");
            assert_eq!(key.tag(&[&message[..length / 3], &message[length / 3..length]])[..], hex(expected), "{length}");
        }
    }

    /// Test case 4 of the GCM specification with the text moved out would need its own value; this is NIST's CAVP GMAC case
    /// (gcmEncryptExtIV128, no text): key, nonce, 16 bytes of additional data.
    #[test]
    fn gmac_is_that_of_nist() {
        let key = UnboundKey::new(&aead::AES_128_GCM, &hex("77be63708971c4e240d1cb79e8d77feb")).unwrap();
        let nonce: [u8; 12] = hex("e0e00f19fed7ba0136a797f3").try_into().unwrap();
        let data = hex("7a43ec1d9c0a5a78a0b16533a6213cab");
        let tag = gmac(&LessSafeKey::new(key), nonce, &[&data[..3], &data[3..]]);
        assert_eq!(tag[..], hex("209fcc8d3675ed938e9c7166709dd946"));
    }

    /// The last answer of the logon in "the anatomy of signing and cryptographic keys": a message and its signature.
    #[test]
    fn a_published_message_has_its_signature() {
        let key: [u8; 16] = hex("73FE7A9A77BEF0BDE49C650D8CCB5F76").try_into().unwrap();
        let key = SigningKey::new(SigningId::AesCmac, &key);
        let mut message = hex("FE534D4240000100000000000100800009000000000000000300000000000000FFFE000000000000
            1900000000100000EBE146DA120BA25FC3376A49DFE31BC10900000048001D00A11B3019A0030A01
            00A3120410010000003B453CDC3524164200000000");
        assert!(key.verify(&message));
        message[70] ^= 1;
        assert!(!key.verify(&message));
    }

    #[test]
    fn what_is_signed_is_verified_and_nothing_else() {
        for id in [SigningId::HmacSha256, SigningId::AesCmac, SigningId::AesGmac] {
            let key = SigningKey::new(id, &[7; 16]);
            let header = crate::wire::header::request(Command::Read);
            let mut head = Vec::new();
            header.encode(&mut head);
            head.extend([1; 16]);
            let mut answer = Outgoing { head, data: vec![Bytes::from_static(b"data"), Bytes::from_static(b"more")] };
            key.sign(&mut answer);
            let message = answer.joined();
            assert!(key.verify(&message), "{id:?}");
            assert!(!SigningKey::new(id, &[8; 16]).verify(&message), "{id:?}");
            for at in 0..message.len() {
                let mut other = message.clone();
                other[at] ^= 0x80;
                assert!(!key.verify(&other), "{id:?}, byte {at}");
            }
            assert!(!key.verify(&message[..63]));
        }
    }

    #[test]
    fn a_nonce_names_message_direction_and_cancel() {
        let nonce = |command, flags: Flags| {
            let mut head = Vec::new();
            crate::wire::header::Header { flags, ..crate::wire::header::request(command) }.encode(&mut head);
            gmac_nonce(&head)
        };
        assert_eq!(nonce(Command::Read, Flags::SIGNED), [7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(nonce(Command::Read, Flags::RESPONSE), [7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(nonce(Command::Cancel, Flags::SIGNED), [7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
    }
}
