//! Bytes that only the holder of a key can read.
//!
//! A content is sealed in chunks of 64 KiB with AES-256-GCM, so that a range is read without the rest of it:
//!
//! ```text
//! salt (32 bytes, random) | chunk 0 and its tag | chunk 1 and its tag | ... | the last chunk and its tag
//! ```
//!
//! What is sealed with is not the client's key but one derived from it (HKDF-SHA256) with the salt and the id of the
//! content. So it is used for one content only, and a nonce can be what it must be anyway: the number of the chunk, and
//! whether it is the last. Chunks can thus not be changed, swapped, moved to another content or cut off at the end without
//! being found out when they are read.

use std::fmt;

use bytes::Bytes;
use engine::EngineError;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::{hkdf, rand};

pub const KEY_BYTES: usize = 32;
const CHUNK_BYTES: usize = 64 * 1024;
const SALT_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
/// In the info of the derivation: what the key is for, and in which form.
const FOR_CONTENT: &[u8] = b"lazurite blob content 1";
const FOR_NOTE: &[u8] = b"lazurite blob note 1";

/// A key of a client's. It is shown and stored nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub [u8; KEY_BYTES]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Makes every derived key another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Salt(pub [u8; SALT_BYTES]);

impl Salt {
    /// A new one. It fails if the system has no randomness to give.
    pub fn random() -> Result<Salt, EngineError> {
        let mut bytes = [0; SALT_BYTES];
        let filled = rand::SecureRandom::fill(&rand::SystemRandom::new(), &mut bytes);
        filled.map_err(|_| EngineError::Unavailable("the system has no randomness to give".into()))?;
        Ok(Salt(bytes))
    }
}

/// What was read is not what was sealed, or not with this key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forged;

fn derived(secret: &Secret, salt: Salt, purpose: &[u8], id: u64) -> LessSafeKey {
    let info = [purpose, &id.to_be_bytes()];
    let derived = hkdf::Salt::new(hkdf::HKDF_SHA256, &salt.0).extract(&secret.0);
    let derived = derived.expand(&info, &AES_256_GCM).map(UnboundKey::from);
    LessSafeKey::new(derived.expect("a key is not longer than the derivation can give"))
}

fn nonce(number: u64, is_last: bool) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[0] = u8::from(is_last);
    bytes[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

fn sealed_chunk(key: &LessSafeKey, nonce: Nonce, mut chunk: Vec<u8>) -> Bytes {
    key.seal_in_place_append_tag(nonce, Aad::empty(), &mut chunk).expect("a chunk is shorter than the cipher takes");
    chunk.into()
}

/// How long a content of `length` bytes is when it is sealed. An empty one is not stored at all.
pub fn sealed_length(length: u64) -> u64 {
    match length {
        0 => 0,
        _ => SALT_BYTES as u64 + length + TAG_BYTES as u64 * length.div_ceil(CHUNK_BYTES as u64),
    }
}

/// Seals a content as it comes. It holds one chunk at most.
#[derive(Debug)]
pub struct Sealer {
    key: LessSafeKey,
    /// Until it is out.
    salt: Option<Salt>,
    number: u64,
    /// What is still to come.
    left: u64,
    chunk: Vec<u8>,
}

impl Sealer {
    /// For the content `id`, which has `length` bytes.
    pub fn new(secret: &Secret, salt: Salt, id: u64, length: u64) -> Sealer {
        let key = derived(secret, salt, FOR_CONTENT, id);
        Sealer { key, salt: Some(salt), number: 0, left: length, chunk: Vec::new() }
    }

    /// The sealed pieces that these bytes complete. There must not come more than were announced.
    pub fn next(&mut self, mut bytes: Bytes) -> Vec<Bytes> {
        let mut pieces = Vec::new();
        pieces.extend(self.salt.take().map(|salt| Bytes::copy_from_slice(&salt.0)));
        while !bytes.is_empty() {
            let part = bytes.split_to(bytes.len().min(CHUNK_BYTES - self.chunk.len()));
            self.chunk.extend_from_slice(&part);
            self.left = self.left.saturating_sub(part.len() as u64);
            let is_last = self.left == 0;
            if is_last || self.chunk.len() == CHUNK_BYTES {
                let chunk = std::mem::take(&mut self.chunk);
                pieces.push(sealed_chunk(&self.key, nonce(self.number, is_last), chunk));
                self.number += 1;
            }
        }
        pieces
    }
}

/// Where a chunk is in a sealed content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub number: u64,
    pub offset: u64,
    pub length: usize,
    is_last: bool,
    /// What comes before the byte that was asked for, within the chunk.
    pub skip: usize,
}

/// The chunk that holds the byte at `offset` of the content, which is `sealed` bytes long. `None`: it is not that long.
pub fn place(offset: u64, sealed: u64) -> Option<Place> {
    let stored = (CHUNK_BYTES + TAG_BYTES) as u64;
    let number = offset / CHUNK_BYTES as u64;
    let start = number.checked_mul(stored)?.checked_add(SALT_BYTES as u64)?;
    let rest = sealed.checked_sub(start)?;
    let length = rest.min(stored) as usize;
    let skip = (offset % CHUNK_BYTES as u64) as usize;
    let is_inside = length > TAG_BYTES + skip;
    is_inside.then_some(Place { number, offset: start, length, is_last: rest <= stored, skip })
}

/// The salt of a sealed content: its first bytes.
pub fn salt(bytes: &[u8]) -> Option<Salt> {
    bytes.first_chunk().copied().map(Salt)
}

pub const SALT: usize = SALT_BYTES;

/// Opens the chunks of one content.
#[derive(Debug)]
pub struct Opener(LessSafeKey);

impl Opener {
    pub fn new(secret: &Secret, salt: Salt, id: u64) -> Opener {
        Opener(derived(secret, salt, FOR_CONTENT, id))
    }

    /// The bytes from the one that was asked for to the end of the chunk.
    pub fn open(&self, place: Place, mut sealed: Vec<u8>) -> Result<Bytes, Forged> {
        let nonce = nonce(place.number, place.is_last);
        let length = self.0.open_in_place(nonce, Aad::empty(), &mut sealed).map_err(|_| Forged)?.len();
        sealed.truncate(length);
        Ok(Bytes::from(sealed).slice(place.skip..))
    }
}

/// Seals something short that stands in a row.
pub fn seal_note(secret: &Secret, salt: Salt, note: &[u8]) -> Vec<u8> {
    let key = derived(secret, salt, FOR_NOTE, 0);
    [&salt.0[..], &sealed_chunk(&key, nonce(0, true), note.to_vec())].concat()
}

pub fn open_note(secret: &Secret, sealed: &[u8]) -> Result<Vec<u8>, Forged> {
    let (salt, sealed) = sealed.split_first_chunk().ok_or(Forged)?;
    let key = derived(secret, Salt(*salt), FOR_NOTE, 0);
    let mut note = sealed.to_vec();
    let length = key.open_in_place(nonce(0, true), Aad::empty(), &mut note).map_err(|_| Forged)?.len();
    note.truncate(length);
    Ok(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: Secret = Secret([1; KEY_BYTES]);
    const SALTED: Salt = Salt([3; SALT_BYTES]);

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|n| (n / 5) as u8).collect()
    }

    fn sealed(content: &[u8], piece: usize) -> Vec<u8> {
        let mut sealer = Sealer::new(&MINE, SALTED, 7, content.len() as u64);
        let pieces = content.chunks(piece.max(1)).flat_map(|part| sealer.next(Bytes::copy_from_slice(part)));
        pieces.collect::<Vec<Bytes>>().concat()
    }

    /// Everything from `offset` on, read as a download reads it.
    fn opened(opener: &Opener, sealed: &[u8], mut offset: u64) -> Result<Vec<u8>, Forged> {
        let mut found = Vec::new();
        while let Some(place) = place(offset, sealed.len() as u64) {
            let start = place.offset as usize;
            let part = opener.open(place, sealed[start..start + place.length].to_vec())?;
            offset += part.len() as u64;
            found.extend_from_slice(&part);
        }
        Ok(found)
    }

    #[test]
    fn any_pieces_in_and_any_range_out() {
        let opener = Opener::new(&MINE, SALTED, 7);
        for length in [1, 2, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, 2 * CHUNK_BYTES + 5] {
            let content = bytes(length);
            let whole = sealed(&content, length);
            assert_eq!(whole.len() as u64, sealed_length(length as u64));
            assert_eq!(salt(&whole), Some(SALTED));
            for piece in [1_000, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1] {
                assert!(sealed(&content, piece) == whole, "{length} bytes by {piece}");
            }
            for offset in [0, 1, length / 2, length - 1, length, length + 1, length + CHUNK_BYTES] {
                let expected = content.get(offset..).unwrap_or_default();
                assert!(opened(&opener, &whole, offset as u64).as_deref() == Ok(expected), "{length} from {offset}");
            }
            assert!(!whole.windows(length.min(16)).any(|window| length >= 16 && window == &content[..16]));
        }
    }

    #[test]
    fn nothing_else_opens() {
        let content = bytes(2 * CHUNK_BYTES + 5);
        let whole = sealed(&content, content.len());
        let right = Opener::new(&MINE, SALTED, 7);
        let others = [
            Opener::new(&Secret([2; KEY_BYTES]), SALTED, 7),
            Opener::new(&MINE, Salt([4; SALT_BYTES]), 7),
            Opener::new(&MINE, SALTED, 8),
        ];
        for other in others {
            assert_eq!(opened(&other, &whole, 0), Err(Forged));
        }
        for at in [SALT_BYTES, SALT_BYTES + CHUNK_BYTES, SALT_BYTES + CHUNK_BYTES + TAG_BYTES, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert_eq!(opened(&right, &changed, 0), Err(Forged), "{at}");
        }
        let stored = CHUNK_BYTES + TAG_BYTES;
        let mut swapped = whole.clone();
        swapped[SALT_BYTES..].rotate_left(stored);
        assert_eq!(opened(&right, &swapped, 0), Err(Forged));
        // Cut at the border of a chunk, so that only the mark of the last one can tell.
        assert_eq!(opened(&right, &whole[..SALT_BYTES + 2 * stored], 0), Err(Forged));
    }

    #[test]
    fn notes() {
        let note = seal_note(&MINE, SALTED, b"colour: blue");
        assert_eq!(open_note(&MINE, &note).as_deref(), Ok(&b"colour: blue"[..]));
        assert_eq!(open_note(&Secret([2; KEY_BYTES]), &note), Err(Forged));
        for length in 0..note.len() {
            assert_eq!(open_note(&MINE, &note[..length]), Err(Forged));
        }
        assert_ne!(Salt::random(), Salt::random());
    }
}
