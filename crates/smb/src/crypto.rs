//! Keys of a session and what is done with them (MS-SMB2 3.1.4, 3.1.5).
//!
//! * [`kdf`]: keys from the session key of the logon.
//! * [`preauth`]: the hash over all that was said before the keys were there.
//! * [`signing`]: HMAC-SHA256, AES-CMAC, AES-GMAC.
//! * [`encryption`]: AES-128 and AES-256 in GCM and CCM.

pub mod encryption;
pub mod kdf;
pub mod preauth;
pub mod signing;

#[cfg(test)]
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks_exact(2).map(pair).collect()
}
