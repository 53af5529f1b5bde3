//! Encryption (MS-SMB2 3.1.4.3): a frame behind a transform header, whose tag stands in the place of a signature.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use aes::{Aes128, Aes256};
use bytes::{Bytes, BytesMut};
use ccm::Ccm;
use ccm::aead::{AeadInOut, KeyInit, array::Array};
use ccm::consts::{U11, U16};
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::wire::compound::Outgoing;
use crate::wire::header::BadHeader;
use crate::wire::negotiate_context::CipherId;
use crate::wire::transform::{AUTHENTICATED_FROM, TRANSFORM_BYTES, Transform};

type Ccm128 = Ccm<Aes128, U16, U11>;
type Ccm256 = Ccm<Aes256, U16, U11>;

enum Cipher {
    Gcm(Box<LessSafeKey>),
    Ccm128(Box<Ccm128>),
    Ccm256(Box<Ccm256>),
}

impl Cipher {
    /// `key` has the length of the cipher: 16 or 32 bytes.
    fn new(id: CipherId, key: &[u8]) -> Cipher {
        let gcm = |algorithm| {
            let key = UnboundKey::new(algorithm, key).expect("the key has the cipher's length");
            Cipher::Gcm(Box::new(LessSafeKey::new(key)))
        };
        match id {
            CipherId::Aes128Gcm => gcm(&aead::AES_128_GCM),
            CipherId::Aes256Gcm => gcm(&aead::AES_256_GCM),
            CipherId::Aes128Ccm => Cipher::Ccm128(Box::new(Ccm128::new_from_slice(key).expect("the key has 16 bytes"))),
            CipherId::Aes256Ccm => Cipher::Ccm256(Box::new(Ccm256::new_from_slice(key).expect("the key has 32 bytes"))),
        }
    }

    fn seal(&self, nonce: &[u8; 16], authenticated: &[u8], text: &mut [u8]) -> [u8; 16] {
        const FITS: &str = "a frame is shorter than what the cipher can take";
        match self {
            Cipher::Gcm(key) => {
                let tag = key.seal_in_place_separate_tag(gcm_nonce(nonce), Aad::from(authenticated), text).expect(FITS);
                let mut out = [0; 16];
                out.copy_from_slice(tag.as_ref());
                out
            }
            Cipher::Ccm128(key) => {
                key.encrypt_inout_detached(&ccm_nonce(nonce), authenticated, text.into()).expect(FITS).into()
            }
            Cipher::Ccm256(key) => {
                key.encrypt_inout_detached(&ccm_nonce(nonce), authenticated, text.into()).expect(FITS).into()
            }
        }
    }

    /// Decrypts in place. The comparison of the tag is the ciphers': constant in time.
    fn open(&self, nonce: &[u8; 16], authenticated: &[u8], text: &mut [u8], tag: [u8; 16]) -> Result<(), BadHeader> {
        match self {
            Cipher::Gcm(key) => key
                .open_in_place_separate_tag(gcm_nonce(nonce), Aad::from(authenticated), tag.into(), text, 0..)
                .map(|_| ())
                .map_err(|_| BadHeader),
            Cipher::Ccm128(key) => key
                .decrypt_inout_detached(&ccm_nonce(nonce), authenticated, text.into(), &tag.into())
                .map_err(|_| BadHeader),
            Cipher::Ccm256(key) => key
                .decrypt_inout_detached(&ccm_nonce(nonce), authenticated, text.into(), &tag.into())
                .map_err(|_| BadHeader),
        }
    }
}

fn gcm_nonce(nonce: &[u8; 16]) -> Nonce {
    let mut first = [0; 12];
    first.copy_from_slice(&nonce[..12]);
    Nonce::assume_unique_for_key(first)
}

fn ccm_nonce(nonce: &[u8; 16]) -> Array<u8, U11> {
    let mut first = [0; 11];
    first.copy_from_slice(&nonce[..11]);
    first.into()
}

/// Encrypts what the server sends.
pub struct Sealer {
    cipher: Cipher,
    /// The next nonce. A key belongs to one session and one direction, so a counter never repeats one.
    next: AtomicU64,
    /// What follows the counter. Random, in case a client makes two sessions with one key; CCM uses three of the four bytes.
    salt: [u8; 4],
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("next", &self.next).finish_non_exhaustive()
    }
}

impl Sealer {
    /// The key has the length of the cipher: 16 or 32 bytes.
    #[must_use]
    pub fn new(id: CipherId, key: &[u8], salt: [u8; 4]) -> Sealer {
        let salt = match id {
            CipherId::Aes128Gcm | CipherId::Aes256Gcm => salt,
            // The nonce has 11 bytes; those behind it must be zero.
            CipherId::Aes128Ccm | CipherId::Aes256Ccm => [salt[0], salt[1], salt[2], 0],
        };
        Sealer { cipher: Cipher::new(id, key), next: AtomicU64::new(0), salt }
    }

    /// Encrypts answers, which [`crate::wire::compound::join`] made a compound of, as one frame.
    #[must_use]
    pub fn seal(&self, session_id: u64, answers: &[Outgoing]) -> Vec<u8> {
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.next.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        nonce[8..12].copy_from_slice(&self.salt);
        let length: usize = answers.iter().map(Outgoing::len).sum();
        let mut frame = Vec::with_capacity(TRANSFORM_BYTES + length);
        let original_bytes = u32::try_from(length).unwrap_or(u32::MAX);
        Transform { signature: [0; 16], nonce, original_bytes, flags: 1, session_id }.encode(&mut frame);
        answers.iter().flat_map(Outgoing::parts).for_each(|part| frame.extend_from_slice(part));
        let (header, text) = frame.split_at_mut(TRANSFORM_BYTES);
        let tag = self.cipher.seal(&nonce, &header[AUTHENTICATED_FROM..], text);
        header[4..20].copy_from_slice(&tag);
        frame
    }
}

/// Decrypts what a client sends.
pub struct Opener {
    cipher: Cipher,
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").finish_non_exhaustive()
    }
}

impl Opener {
    /// The key has the length of the cipher: 16 or 32 bytes.
    #[must_use]
    pub fn new(id: CipherId, key: &[u8]) -> Opener {
        Opener { cipher: Cipher::new(id, key) }
    }

    /// Decrypts a frame in place and gives what it holds: messages for [`crate::wire::compound::split`].
    ///
    /// # Errors
    /// When the frame is none, or its tag is wrong: the connection ends.
    pub fn open(&self, mut frame: BytesMut) -> Result<Bytes, BadHeader> {
        let (transform, _) = Transform::decode(&frame)?;
        let (header, text) = frame.split_at_mut(TRANSFORM_BYTES);
        self.cipher.open(&transform.nonce, &header[AUTHENTICATED_FROM..], text, transform.signature)?;
        Ok(frame.freeze().slice(TRANSFORM_BYTES..))
    }
}

#[cfg(test)]
mod tests {
    use super::super::hex;
    use super::*;

    const ALL: [(CipherId, usize); 4] =
        [(CipherId::Aes128Ccm, 16), (CipherId::Aes128Gcm, 16), (CipherId::Aes256Ccm, 32), (CipherId::Aes256Gcm, 32)];

    #[test]
    fn what_is_sealed_is_opened_and_nothing_else() {
        for (id, length) in ALL {
            let key = vec![5; length];
            let sealer = Sealer::new(id, &key, [1, 2, 3, 4]);
            let opener = Opener::new(id, &key);
            let answer =
                |text: &'static [u8]| Outgoing { head: b"head ".to_vec(), data: vec![Bytes::from_static(text)] };
            let frame = sealer.seal(77, &[answer(b"one "), answer(b"two")]);
            assert_eq!(opener.open(frame[..].into()).unwrap(), &b"head one head two"[..], "{id:?}");
            for at in 0..frame.len() {
                let mut other = frame.clone();
                other[at] ^= 1;
                // The last bytes of the nonce field are not used, but authenticated.
                assert_eq!(opener.open(other[..].into()), Err(BadHeader), "{id:?}, byte {at}");
            }
            assert_eq!(Opener::new(id, &vec![6; length]).open(frame[..].into()), Err(BadHeader), "{id:?}");
            let again = sealer.seal(77, &[answer(b"one "), answer(b"two")]);
            assert_ne!(frame[20..36], again[20..36], "a nonce is used once");
            let other = Sealer::new(id, &key, [1, 2, 9, 4]).seal(77, &[answer(b"one "), answer(b"two")]);
            assert_ne!(frame[20..36], other[20..36], "also by another session with the same key");
            let unused = if id as u16 % 2 == 1 { &frame[31..36] } else { &frame[32..36] };
            assert!(unused.iter().all(|byte| *byte == 0), "{id:?}");
        }
    }

    /// Test cases 4 and 16 of the GCM specification (McGrew and Viega).
    #[test]
    fn gcm_is_that_of_its_specification() {
        let text = hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
                        1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
        let authenticated = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let mut nonce = [0; 16];
        nonce[..12].copy_from_slice(&hex("cafebabefacedbaddecaf888"));
        for (id, key, expected) in [
            (CipherId::Aes128Gcm, "feffe9928665731c6d6a8f9467308308", "5bc94fbc3221a5db94fae95ae7121a47"),
            (
                CipherId::Aes256Gcm,
                "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
                "76fc6ece0f4e1768cddf8853bb2d551b",
            ),
        ] {
            let cipher = Cipher::new(id, &hex(key));
            let mut sealed = text.clone();
            let tag = cipher.seal(&nonce, &authenticated, &mut sealed);
            assert_eq!(tag[..], hex(expected), "{id:?}");
            assert_eq!(cipher.open(&nonce, &authenticated, &mut sealed, tag), Ok(()));
            assert_eq!(sealed, text);
        }
    }

    /// "Encryption in SMB 3.0: a protocol perspective": a WRITE as a client encrypts it with AES-128-CCM.
    #[test]
    fn a_published_frame_of_3_0_is_opened() {
        let session = hex("B4546771B515F766A86735532DD6C4F0");
        let key = super::super::kdf::derive::<16>(&session, b"SMB2AESCCM\0", b"ServerIn \0");
        assert_eq!(key[..], hex("261B72350558F2E9DCF613070383EDBF"));
        let frame = hex("FD534D4281A286535415445DAE393921E44FA42E66E69A111892584FB5ED524A
            744DA3EE87000000000001001100001400E4080025C8FEE16605A437832D1CD5
            2DA9F4645333482A175FE5384563F45FCDAFAEF38BC62BA4D5C62897996625A4
            4C29BE5658DE2E6117585779E7B59FFD971278D08580D7FA899E410E910EABF5
            AA1DB43050B33B49182637759AC15D84BFCDF5B6B238993C0F4CF4D6012023F6
            C627297075D84B7803912D0A9639634453595EF3E33FFE4E7AC2AB");
        let frame = Opener::new(CipherId::Aes128Ccm, &key[..]).open(frame[..].into()).unwrap();
        is_the_write(&frame, 4);
    }

    /// The same with 3.1.1 and AES-128-GCM.
    #[test]
    fn a_published_frame_of_3_1_1_is_opened() {
        let session = hex("419FDDF34C1E001909D362AE7FB6AF79");
        let hash = hex("B23F3CBFD69487D9832B79B1594A367CDD950909B774C3A4C412B4FCEA9EDDDB
            A7DB256BA2EA30E977F11F9B113247578E0E915C6D2A513B8F2FCA5707DC8770");
        let key = super::super::kdf::derive::<16>(&session, b"SMBC2SCipherKey\0", &hash);
        assert_eq!(key[..], hex("A2F5E80E5D59103034F32E52F698E5EC"));
        let frame = hex("FD534D42BD73D97D2BC9001BCAFAC0FDFF5FEEBCC7D6822D269CAF48904C664C0000000087000000
            0000010025000000001000006ECDD2A7AFC7B47763057A041B8FD4DAFFE990B70C9E09D36C084E02
            D14EF247F8BDE38ACF6256F8B1D3B56F77FBDEB312FEA5E92CBCC1ED8FB2EBBFAA75E49A4A394BB4
            4576545567C24D4C014D47C9FBDFDAFD2C4F9B72F8D256452620A299F48E29E53D6B61D1C13A19E9
            1AF013F00D17E3ABC2FC3D36C8C1B6B93973253852DBD442E46EE8");
        let frame = Opener::new(CipherId::Aes128Gcm, &key[..]).open(frame[..].into()).unwrap();
        is_the_write(&frame, 5);
    }

    fn is_the_write(frame: &Bytes, message_id: u64) {
        let messages = crate::wire::compound::split(frame).unwrap();
        assert_eq!((messages.len(), messages[0].header.message_id), (1, message_id));
        let write = crate::wire::write::Request::decode(&messages[0].bytes).unwrap();
        assert_eq!(write.data, &b"Smb3 encryption testing"[..]);
    }
}
