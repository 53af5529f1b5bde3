//! The answer of a request that failed (MS-SMB2 2.2.2).

use super::cursor::{Put, len32};

/// What an error says beside its status.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Response {
    pub data: ErrorData,
}

/// The data of an error.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ErrorData {
    /// None.
    #[default]
    Nothing,
    /// BUFFER_TOO_SMALL: as many bytes would be needed. 3.1.1 wraps the number into an error context.
    Needed { bytes: u32, context: bool },
    /// Any other data, in an error context of the id 0 (3.1.1) or bare.
    Other { data: Vec<u8>, context: bool },
}

impl Response {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match &self.data {
            ErrorData::Nothing => {
                fixed(out, 0, 0);
                // The structure has a size of 9: one byte stands for data that is not there.
                out.put_u8(0);
            }
            ErrorData::Needed { bytes, context } => with_data(out, &bytes.to_le_bytes(), *context),
            ErrorData::Other { data, context } => with_data(out, data, *context),
        }
    }
}

fn with_data(out: &mut Vec<u8>, data: &[u8], context: bool) {
    if context {
        fixed(out, 1, len32(data.len() + 8));
        out.put_u32(len32(data.len()));
        out.put_u32(0);
    } else {
        fixed(out, 0, len32(data.len()));
    }
    out.put(data);
}

fn fixed(out: &mut Vec<u8>, contexts: u8, bytes: u32) {
    out.put_u16(9);
    out.put_u8(contexts);
    out.put_u8(0);
    out.put_u32(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_as_documented() {
        let body = |data| {
            let mut out = Vec::new();
            Response { data }.encode(&mut out);
            out
        };
        assert_eq!(body(ErrorData::Nothing), [9, 0, 0, 0, 0, 0, 0, 0, 0]);
        let needed = body(ErrorData::Needed { bytes: 0x18, context: false });
        assert_eq!(needed, [9, 0, 0, 0, 4, 0, 0, 0, 0x18, 0, 0, 0]);
        let context = body(ErrorData::Needed { bytes: 0x18, context: true });
        assert_eq!(context, [9, 0, 1, 0, 12, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0x18, 0, 0, 0]);
    }
}
