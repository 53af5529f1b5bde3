//! Base64 as the protocols use it: the standard alphabet, padded, and nothing else is accepted. JSON Web Tokens and
//! URLs use a form of their own.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// `None` for a foreign alphabet, missing padding, white space or stray bits at the end.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Decodes as Node.js does: either alphabet, padding optional, up to the first `=`; other characters are skipped.
pub fn decode_loose(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    };
    let (mut bytes, mut bits, mut count) = (Vec::with_capacity(text.len()), 0_u32, 0);
    for digit in text.bytes().take_while(|byte| *byte != b'=').filter_map(digit) {
        bits = (bits << 6 | u32::from(digit)) & 0xFFFF;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

/// Decodes to exactly `N` bytes, for the digests and signatures of a request head; `None` for any other length.
pub fn decode_exact<const N: usize>(text: &str) -> Option<[u8; N]> {
    // Room for 64 bytes, and for two more that the decoder needs.
    let mut room = [0; 66];
    let length = STANDARD.decode_slice(text, &mut room).ok()?;
    room[..length].try_into().ok()
}

/// The form in JSON Web Tokens: `-` and `_` for `+` and `/`, without padding. Nothing else is accepted.
pub fn decode_url(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// The same form, for markers and receipts that clients put into URLs: some clients do not percent-encode `+` and `/`.
pub fn encode_url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// `Content-MD5` and its relatives: 16 bytes.
pub fn md5_header(text: &str) -> Option<[u8; 16]> {
    decode_exact(text)
}

/// `x-ms-content-crc64`: 8 bytes, least significant first.
pub fn crc64_header(text: &str) -> Option<u64> {
    decode_exact(text).map(u64::from_le_bytes)
}

/// The text of `x-ms-content-crc64`.
pub fn encode_crc64(sum: u64) -> String {
    encode(&sum.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loose_form_is_read_as_node_reads_it() {
        for text in ["aGVsbG8=", "aGVsbG8", "aGVs bG8=\n", "aGV*sbG8", "aGVsbG8=AAAA"] {
            assert_eq!(decode_loose(text), b"hello", "{text}");
        }
        assert_eq!(decode_loose("-_8"), [0xfb, 0xff]);
        assert_eq!(decode_loose("key1"), [0x91, 0xec, 0xb5]);
        for text in ["", "=", "!!", "A"] {
            assert_eq!(decode_loose(text), b"", "{text}");
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode_loose(&encode(&all)), all);
    }

    #[test]
    fn only_the_standard_form_is_read() {
        assert_eq!(decode("+/8="), Some(vec![0xfb, 0xff]));
        assert_eq!(decode(""), Some(vec![]));
        for text in ["-_8=", "+/8", "+/9=", " +/8=", "+/8=\n", "+", "====", "ä==="] {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }

    #[test]
    fn tokens_have_a_form_of_their_own() {
        assert_eq!(decode_url("-_8"), Some(vec![0xfb, 0xff]));
        assert_eq!(decode_url(""), Some(vec![]));
        for text in ["-_8=", "+/8", "-_9", " -_8", "-"] {
            assert_eq!(decode_url(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_md5_has_sixteen_bytes() {
        assert_eq!(md5_header("1B2M2Y8AsgTpgAmY7PhCfg==").map(|b| b[0]), Some(0xd4));
        for text in ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAAAA", "1B2M2Y8AsgTpgAmY7PhCf==="] {
            assert_eq!(md5_header(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_crc64_has_eight_bytes_least_significant_first() {
        assert_eq!(crc64_header("AQAAAAAAAAA="), Some(1));
        assert_eq!(encode_crc64(1), "AQAAAAAAAAA=");
        for text in ["", "AQAAAAAAAA==", "AQAAAAAAAAAA", "AQAAAAAAAAB="] {
            assert_eq!(crc64_header(text), None, "{text:?}");
        }
    }
}
