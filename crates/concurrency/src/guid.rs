//! GUIDs as text: the ids of leases and messages. Their bytes are kept in the order of the text.

use std::fmt;

/// Parses the forms that clients send, in any case: with hyphens, without, and with hyphens in braces or in
/// parentheses.
pub fn parse(text: &str) -> Option<[u8; 16]> {
    let digits = match text.as_bytes() {
        [b'{', inner @ .., b'}'] | [b'(', inner @ .., b')'] => without_hyphens(inner)?,
        plain if plain.len() == 32 => plain.to_vec(),
        plain => without_hyphens(plain)?,
    };
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
    }
    Some(bytes)
}

/// Lower case with hyphens.
pub fn write(guid: &[u8; 16], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (place, byte) in guid.iter().enumerate() {
        let hyphen = if matches!(place, 4 | 6 | 8 | 10) { "-" } else { "" };
        write!(f, "{hyphen}{byte:02x}")?;
    }
    Ok(())
}

/// The 32 digits of a GUID written 8-4-4-4-12.
fn without_hyphens(text: &[u8]) -> Option<Vec<u8>> {
    let groups: Vec<&[u8]> = text.split(|&byte| byte == b'-').collect();
    let lengths = groups.iter().map(|group| group.len());
    lengths.eq([8, 4, 4, 4, 12]).then(|| groups.concat())
}

fn hex_digit(digit: u8) -> Option<u8> {
    // A hexadecimal digit is below 16, so it fits.
    char::from(digit).to_digit(16).map(|value| value as u8)
}
