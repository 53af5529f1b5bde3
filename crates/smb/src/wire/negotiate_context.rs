//! Contexts of NEGOTIATE in 3.1.1 (MS-SMB2 2.2.3.1): 8-byte aligned; unknown ones are passed over.

use super::cursor::{Put, Reader, Short, len16, part, utf16};
use crate::status::{Result, Status};

const PREAUTH_INTEGRITY: u16 = 1;
const ENCRYPTION: u16 = 2;
const NETNAME: u16 = 5;
const SIGNING: u16 = 8;

/// Contexts in a request; eight kinds are documented.
pub const CONTEXTS_MAX: usize = 32;

/// SHA-512, the only hash there is.
pub const HASH_SHA512: u16 = 1;

/// How messages are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum CipherId {
    Aes128Ccm = 1,
    Aes128Gcm = 2,
    Aes256Ccm = 3,
    Aes256Gcm = 4,
}

impl CipherId {
    /// The cipher of a number.
    #[must_use]
    pub fn from_u16(value: u16) -> Option<CipherId> {
        use CipherId::{Aes128Ccm, Aes128Gcm, Aes256Ccm, Aes256Gcm};
        [Aes128Ccm, Aes128Gcm, Aes256Ccm, Aes256Gcm].into_iter().find(|cipher| *cipher as u16 == value)
    }
}

/// How messages are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum SigningId {
    HmacSha256 = 0,
    AesCmac = 1,
    AesGmac = 2,
}

impl SigningId {
    /// The algorithm of a number.
    #[must_use]
    pub fn from_u16(value: u16) -> Option<SigningId> {
        use SigningId::{AesCmac, AesGmac, HmacSha256};
        [HmacSha256, AesCmac, AesGmac].into_iter().find(|signing| *signing as u16 == value)
    }
}

/// What a client offers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Contexts {
    /// Hashes of the pre-authentication integrity, and the client's salt.
    pub hashes: Vec<u16>,
    pub salt: Vec<u8>,
    /// In the client's order, with those that are unknown. None: no context.
    pub ciphers: Option<Vec<u16>>,
    pub signings: Option<Vec<u16>>,
    /// The server as the client calls it.
    pub net_name: Option<String>,
}

impl Contexts {
    /// Reads `count` contexts from the front of `bytes`.
    ///
    /// # Errors
    /// INVALID_PARAMETER for contexts that are none, a pre-authentication context that is missing, or one of a kind too many;
    /// SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP without SHA-512.
    pub fn decode(bytes: &[u8], count: usize) -> Result<Contexts> {
        if count == 0 || count > CONTEXTS_MAX {
            return Err(Status::INVALID_PARAMETER);
        }
        let mut contexts = Contexts::default();
        let mut preauth = false;
        let mut at = 0;
        for _ in 0..count {
            let mut reader = Reader::new(bytes.get(at..).ok_or(Status::INVALID_PARAMETER)?);
            let kind = reader.u16()?;
            let length = usize::from(reader.u16()?);
            let data = part(bytes, at + 8, length)?;
            at = (at + 8 + length).next_multiple_of(8);
            match kind {
                PREAUTH_INTEGRITY if preauth => return Err(Status::INVALID_PARAMETER),
                PREAUTH_INTEGRITY => {
                    preauth = true;
                    (contexts.hashes, contexts.salt) = hashes(data)?;
                }
                ENCRYPTION => once(&mut contexts.ciphers, list(data)?)?,
                SIGNING => once(&mut contexts.signings, list(data)?)?,
                NETNAME => contexts.net_name = utf16(data).ok(),
                _ => {}
            }
        }
        if !preauth || contexts.hashes.is_empty() {
            return Err(Status::INVALID_PARAMETER);
        }
        if !contexts.hashes.contains(&HASH_SHA512) {
            return Err(Status::SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP);
        }
        Ok(contexts)
    }
}

fn once(place: &mut Option<Vec<u16>>, list: Vec<u16>) -> Result<()> {
    if list.is_empty() || place.is_some() {
        return Err(Status::INVALID_PARAMETER);
    }
    *place = Some(list);
    Ok(())
}

fn numbers(reader: &mut Reader<'_>, count: u16) -> std::result::Result<Vec<u16>, Short> {
    let bytes = reader.take(usize::from(count) * 2)?;
    Ok(bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect())
}

fn list(data: &[u8]) -> std::result::Result<Vec<u16>, Short> {
    let mut reader = Reader::new(data);
    let count = reader.u16()?;
    numbers(&mut reader, count)
}

fn hashes(data: &[u8]) -> std::result::Result<(Vec<u16>, Vec<u8>), Short> {
    let mut reader = Reader::new(data);
    let count = reader.u16()?;
    let salt = usize::from(reader.u16()?);
    let hashes = numbers(&mut reader, count)?;
    Ok((hashes, reader.take(salt)?.to_vec()))
}

/// What the server chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseContext {
    /// SHA-512 and the server's salt.
    Preauth {
        salt: [u8; 32],
    },
    /// None: no cipher of those that were offered.
    Encryption(Option<CipherId>),
    Signing(SigningId),
}

/// Appends contexts, each aligned to the first.
pub(super) fn encode(contexts: &[ResponseContext], out: &mut Vec<u8>) {
    let start = out.len();
    for context in contexts {
        out.align(start, 8);
        let (kind, data) = data(context);
        out.put_u16(kind);
        out.put_u16(len16(data.len()));
        out.put_u32(0);
        out.put(&data);
    }
}

fn data(context: &ResponseContext) -> (u16, Vec<u8>) {
    let mut data = Vec::new();
    data.put_u16(1);
    match context {
        ResponseContext::Preauth { salt } => {
            data.put_u16(len16(salt.len()));
            data.put_u16(HASH_SHA512);
            data.put(salt);
            (PREAUTH_INTEGRITY, data)
        }
        ResponseContext::Encryption(cipher) => {
            data.put_u16(cipher.map_or(0, |cipher| cipher as u16));
            (ENCRYPTION, data)
        }
        ResponseContext::Signing(signing) => {
            data.put_u16(*signing as u16);
            (SIGNING, data)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(kind: u16, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u16(kind);
        out.put_u16(len16(data.len()));
        out.put_u32(0);
        out.put(data);
        out.align(0, 8);
        out
    }

    const PREAUTH: &[u8] = &[1, 0, 4, 0, 1, 0, 9, 8, 7, 6];

    #[test]
    fn what_a_client_offers_is_read() {
        let all = [
            context(1, PREAUTH),
            context(2, &[2, 0, 2, 0, 1, 0]),
            context(3, &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0]),
            context(5, &[b'h', 0]),
            context(8, &[3, 0, 2, 0, 1, 0, 0, 0]),
            context(0x100, &[1, 2, 3]),
        ]
        .concat();
        let contexts = Contexts::decode(&all, 6).unwrap();
        assert_eq!(contexts.salt, [9, 8, 7, 6]);
        assert_eq!(contexts.ciphers, Some(vec![2, 1]));
        assert_eq!(contexts.signings, Some(vec![2, 1, 0]));
        assert_eq!(contexts.net_name.as_deref(), Some("h"));
        assert_eq!(Contexts::decode(&all, 7), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn each_fault_has_its_status() {
        let cases: [(&[Vec<u8>], Status); 7] = [
            (&[context(2, &[1, 0, 1, 0])], Status::INVALID_PARAMETER),
            (&[context(1, PREAUTH), context(1, PREAUTH)], Status::INVALID_PARAMETER),
            (&[context(1, &[0, 0, 0, 0])], Status::INVALID_PARAMETER),
            (&[context(1, &[1, 0, 0, 0, 2, 0])], Status::SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP),
            (&[context(1, PREAUTH), context(2, &[0, 0])], Status::INVALID_PARAMETER),
            (&[context(1, PREAUTH), context(8, &[2, 0, 1, 0])], Status::INVALID_PARAMETER),
            (&[context(1, &[1, 0, 9, 0, 1, 0])], Status::INVALID_PARAMETER),
        ];
        for (contexts, status) in cases {
            assert_eq!(Contexts::decode(&contexts.concat(), contexts.len()), Err(status), "{contexts:?}");
        }
    }
}
