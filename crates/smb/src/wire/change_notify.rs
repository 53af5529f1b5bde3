//! CHANGE_NOTIFY: waits for changes below a directory (MS-SMB2 2.2.35, MS-FSCC 2.7.1).

use super::cursor::{Put, len32, utf16_bytes};
use super::{FileId, body, encode_buffer};
use crate::status::Result;

/// `Request::flags`: directories below are watched, too.
pub const WATCH_TREE: u16 = 1;

/// Bits of `Request::filter`.
pub mod filter {
    pub const FILE_NAME: u32 = 0x001;
    pub const DIR_NAME: u32 = 0x002;
    pub const ATTRIBUTES: u32 = 0x004;
    pub const SIZE: u32 = 0x008;
    pub const LAST_WRITE: u32 = 0x010;
    pub const LAST_ACCESS: u32 = 0x020;
    pub const CREATION: u32 = 0x040;
    pub const EA: u32 = 0x080;
    pub const SECURITY: u32 = 0x100;
    pub const STREAM_NAME: u32 = 0x200;
    pub const STREAM_SIZE: u32 = 0x400;
    pub const STREAM_WRITE: u32 = 0x800;
}

/// The request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub flags: u16,
    pub output_bytes: u32,
    pub file_id: FileId,
    pub filter: u32,
}

impl Request {
    /// Reads the body.
    ///
    /// # Errors
    /// INVALID_PARAMETER.
    pub fn decode(message: &[u8]) -> Result<Request> {
        let mut reader = body(message, 32)?;
        let flags = reader.u16()?;
        let output_bytes = reader.u32()?;
        let file_id = FileId::decode(&mut reader)?;
        Ok(Request { flags, output_bytes, file_id, filter: reader.u32()? })
    }
}

/// What happened to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Action {
    Added = 1,
    Removed = 2,
    Modified = 3,
    RenamedOldName = 4,
    RenamedNewName = 5,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub action: Action,
    /// From the watched directory, with `\`.
    pub name: String,
}

/// Changes as records, if all of them fit into `max` bytes. If they do not the answer is NOTIFY_ENUM_DIR.
#[must_use]
pub fn encode_changes(changes: &[Change], max: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut last = 0;
    for (count, change) in changes.iter().enumerate() {
        if count > 0 {
            out.align(0, 4);
            let distance = len32(out.len() - last);
            out.replace(last, &distance.to_le_bytes());
            last = out.len();
        }
        out.put_u32(0);
        out.put_u32(change.action as u32);
        out.put_u32(len32(utf16_bytes(&change.name)));
        out.put_utf16(&change.name);
        if out.len() > max {
            return None;
        }
    }
    Some(out)
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Response {
    /// What [`encode_changes`] wrote; empty with NOTIFY_ENUM_DIR.
    pub buffer: Vec<u8>,
}

impl Response {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode_buffer(out, &self.buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rename_is_two_records() {
        let changes = [
            Change { action: Action::RenamedOldName, name: "a".into() },
            Change { action: Action::RenamedNewName, name: "bc".into() },
        ];
        let out = encode_changes(&changes, 32).unwrap();
        assert_eq!(out[..14], [16, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, b'a', 0]);
        assert_eq!(out[16..], [0, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0, b'b', 0, b'c', 0]);
        assert_eq!(encode_changes(&changes, 31), None);
        assert_eq!(encode_changes(&[], 0), Some(Vec::new()));
    }
}
