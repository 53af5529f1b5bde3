//! Keys of a session: SP800-108 in counter mode with HMAC-SHA256 (MS-SMB2 3.1.4.2).

use ring::hmac;
use zeroize::Zeroizing;

use super::encryption::{Opener, Sealer};
use super::preauth::Preauth;
use super::signing::SigningKey;
use crate::wire::negotiate::Dialect;
use crate::wire::negotiate_context::{CipherId, SigningId};

/// The key that a logon gives: 16 bytes with NTLM.
pub type SessionKey = Zeroizing<[u8; 16]>;

/// Derives `N` bytes, 32 at most, of a key. Label and context have their closing zeros.
#[must_use]
pub fn derive<const N: usize>(key: &[u8], label: &[u8], context: &[u8]) -> Zeroizing<[u8; N]> {
    const { assert!(N <= 32, "one block of HMAC-SHA256") };
    let mut mac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    mac.update(&1u32.to_be_bytes());
    mac.update(label);
    mac.update(&[0]);
    mac.update(context);
    mac.update(&u32::try_from(N * 8).unwrap_or(0).to_be_bytes());
    let mut derived = Zeroizing::new([0; N]);
    derived.copy_from_slice(&mac.sign().as_ref()[..N]);
    derived
}

/// What a connection agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Algorithms {
    pub dialect: Dialect,
    pub signing: SigningId,
    /// None: the client has no cipher that the server has.
    pub cipher: Option<CipherId>,
}

/// The keys of a session.
#[derive(Debug)]
pub struct Keys {
    pub signing: SigningKey,
    /// From the server to the client. None: nothing can be encrypted.
    pub sealer: Option<Sealer>,
    /// From the client to the server.
    pub opener: Option<Opener>,
}

impl Keys {
    /// The keys of a session. `preauth` is its hash before the last answer (3.1.1), `salt` random.
    #[must_use]
    pub fn derive(session_key: &SessionKey, agreed: Algorithms, preauth: &Preauth, salt: [u8; 4]) -> Keys {
        let key = session_key.as_slice();
        let (sign, to_server, to_client) = match agreed.dialect {
            Dialect::Smb210 => {
                return Keys {
                    signing: SigningKey::new(SigningId::HmacSha256, session_key),
                    sealer: None,
                    opener: None,
                };
            }
            Dialect::Smb300 | Dialect::Smb302 => (
                (&b"SMB2AESCMAC\0"[..], &b"SmbSign\0"[..]),
                (&b"SMB2AESCCM\0"[..], &b"ServerIn \0"[..]),
                (&b"SMB2AESCCM\0"[..], &b"ServerOut\0"[..]),
            ),
            Dialect::Smb311 => (
                (&b"SMBSigningKey\0"[..], &preauth.0[..]),
                (&b"SMBC2SCipherKey\0"[..], &preauth.0[..]),
                (&b"SMBS2CCipherKey\0"[..], &preauth.0[..]),
            ),
        };
        let signing = SigningKey::new(agreed.signing, &derive(key, sign.0, sign.1));
        let (sealer, opener) = match agreed.cipher {
            None => (None, None),
            Some(id @ (CipherId::Aes128Ccm | CipherId::Aes128Gcm)) => (
                Some(Sealer::new(id, &derive::<16>(key, to_client.0, to_client.1)[..], salt)),
                Some(Opener::new(id, &derive::<16>(key, to_server.0, to_server.1)[..])),
            ),
            Some(id @ (CipherId::Aes256Ccm | CipherId::Aes256Gcm)) => (
                Some(Sealer::new(id, &derive::<32>(key, to_client.0, to_client.1)[..], salt)),
                Some(Opener::new(id, &derive::<32>(key, to_server.0, to_server.1)[..])),
            ),
        };
        Keys { signing, sealer, opener }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hex;
    use super::*;

    fn derived(key: &str, label: &[u8], context: &[u8]) -> Vec<u8> {
        derive::<16>(&hex(key), label, context).to_vec()
    }

    /// "SMB 2 and SMB 3 security in Windows 10: the anatomy of signing and cryptographic keys", appendix.
    #[test]
    fn keys_of_3_0_are_those_of_the_published_example() {
        let key = "7CD451825D0450D235424E44BA6E78CC";
        assert_eq!(derived(key, b"SMB2AESCMAC\0", b"SmbSign\0"), hex("0B7E9C5CAC36C0F6EA9AB275298CEDCE"));
        assert_eq!(derived(key, b"SMB2AESCCM\0", b"ServerIn \0"), hex("FAD27796665B313EBB578F388632B4F7"));
        assert_eq!(derived(key, b"SMB2AESCCM\0", b"ServerOut\0"), hex("B0F0427F7CEB416D1D9DCC0CD4F99447"));
        assert_eq!(derived(key, b"SMB2APP\0", b"SmbRpc\0"), hex("BB23A4575AA26C721AF525AF15A87B4F"));
    }

    #[test]
    fn keys_of_3_1_1_are_those_of_the_published_example() {
        let key = "270E1BA896585EEB7AF3472D3B4C75A7";
        let hash = hex("0DD13628CC3ED218EF9DF9772D436D0887AB9814BFAE63A80AA845F36909DB79
                        28622DDDAD522D9751640A459762C5A9D6BB084CBB3CE6BDADEF5D5BCE3C6C01");
        assert_eq!(derived(key, b"SMBSigningKey\0", &hash), hex("73FE7A9A77BEF0BDE49C650D8CCB5F76"));
        assert_eq!(derived(key, b"SMBC2SCipherKey\0", &hash), hex("629BCBC54422A0F572B97F45989B6073"));
        assert_eq!(derived(key, b"SMBS2CCipherKey\0", &hash), hex("E2AF0DCEFAC68DA71A0DFBD0D1350D74"));
        assert_eq!(derived(key, b"SMBAppKey\0", &hash), hex("6D7AD7954E9EC61E907B4D473DC178FF"));
    }

    #[test]
    fn a_longer_key_is_another_one() {
        let short = derive::<16>(&[1; 16], b"a\0", b"b\0");
        let long = derive::<32>(&[1; 16], b"a\0", b"b\0");
        assert_ne!(short[..], long[..16], "the length is part of what is hashed");
    }
}
