//! The first packet of a client that may speak SMB1 (MS-SMB2 3.3.5.3): the only SMB1 message that is read.

use super::cursor::Reader;
use super::header::{BadHeader, PROTOCOL_SMB1};

const COMMAND_NEGOTIATE: u8 = 0x72;
const HEADER_BYTES: usize = 32;

/// Names of dialects in a packet.
pub const DIALECTS_MAX: usize = 64;

/// What an SMB1 NEGOTIATE offers of SMB2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiate {
    /// `SMB 2.???`: the client knows 2.1 or newer, and sends an SMB2 NEGOTIATE next.
    pub smb2_any: bool,
    /// `SMB 2.002`, which is not spoken here.
    pub smb2_002: bool,
}

/// Reads an SMB1 NEGOTIATE.
///
/// # Errors
/// For anything else: the connection ends.
pub fn decode(frame: &[u8]) -> Result<Negotiate, BadHeader> {
    let (header, body) = frame.split_at_checked(HEADER_BYTES).ok_or(BadHeader)?;
    if header[..4] != PROTOCOL_SMB1 || header[4] != COMMAND_NEGOTIATE {
        return Err(BadHeader);
    }
    let mut reader = Reader::new(body);
    let words = reader.u8().map_err(|_| BadHeader)?;
    reader.skip(usize::from(words) * 2).map_err(|_| BadHeader)?;
    let count = reader.u16().map_err(|_| BadHeader)?;
    let names = reader.take(usize::from(count)).map_err(|_| BadHeader)?;
    dialects(names)
}

fn dialects(mut names: &[u8]) -> Result<Negotiate, BadHeader> {
    let mut found = Negotiate { smb2_any: false, smb2_002: false };
    for _ in 0..DIALECTS_MAX {
        if names.is_empty() {
            return Ok(found);
        }
        let name = names.strip_prefix(&[2]).ok_or(BadHeader)?;
        let end = name.iter().position(|byte| *byte == 0).ok_or(BadHeader)?;
        match &name[..end] {
            b"SMB 2.???" => found.smb2_any = true,
            b"SMB 2.002" => found.smb2_002 = true,
            _ => {}
        }
        names = &name[end + 1..];
    }
    Err(BadHeader)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(names: &[&str]) -> Vec<u8> {
        let mut out = b"\xFFSMB\x72".to_vec();
        out.resize(HEADER_BYTES, 0);
        let names: Vec<u8> = names.iter().flat_map(|name| [b"\x02", name.as_bytes(), b"\0"].concat()).collect();
        out.push(0);
        out.extend(u16::try_from(names.len()).unwrap().to_le_bytes());
        out.extend(names);
        out
    }

    #[test]
    fn dialects_of_smb2_are_found_among_others() {
        let found = decode(&packet(&["NT LM 0.12", "SMB 2.002", "SMB 2.???"]));
        assert_eq!(found, Ok(Negotiate { smb2_any: true, smb2_002: true }));
        assert_eq!(decode(&packet(&["NT LM 0.12"])), Ok(Negotiate { smb2_any: false, smb2_002: false }));
    }

    #[test]
    fn anything_else_ends_the_connection() {
        let good = packet(&["SMB 2.???"]);
        for length in 0..good.len() {
            assert_eq!(decode(&good[..length]), Err(BadHeader), "{length}");
        }
        let mut other = good.clone();
        other[4] = 0x73;
        assert_eq!(decode(&other), Err(BadHeader));
        assert_eq!(decode(&packet(&["x"; DIALECTS_MAX + 1])), Err(BadHeader));
    }
}
