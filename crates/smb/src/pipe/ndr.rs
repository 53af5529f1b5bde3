//! Network data representation, 32 bits, little-endian (C706 chapter 14): what srvsvc needs of it.

use crate::wire::cursor::{Put, Reader, Short, len32, utf16};

/// Characters of a name in a call. Hosts and shares have fewer.
pub const STRING_CHARS_MAX: usize = 1_024;

/// Arguments of a call that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadStub;

impl From<Short> for BadStub {
    fn from(Short: Short) -> BadStub {
        BadStub
    }
}

/// Reads arguments.
#[derive(Clone, Copy, Debug)]
pub struct NdrReader<'a> {
    reader: Reader<'a>,
    length: usize,
}

impl<'a> NdrReader<'a> {
    /// Begins at the first byte of a stub.
    #[must_use]
    pub fn new(stub: &'a [u8]) -> NdrReader<'a> {
        NdrReader { reader: Reader::new(stub), length: stub.len() }
    }

    fn align(&mut self) -> Result<(), BadStub> {
        let at = self.length - self.reader.rest().len();
        Ok(self.reader.skip(at.next_multiple_of(4) - at)?)
    }

    /// A number.
    ///
    /// # Errors
    /// At the end.
    pub fn u32(&mut self) -> Result<u32, BadStub> {
        self.align()?;
        Ok(self.reader.u32()?)
    }

    /// A text, without its closing zero.
    ///
    /// # Errors
    /// When it is none, or too long.
    pub fn string(&mut self) -> Result<String, BadStub> {
        let max = self.u32()?;
        let offset = self.u32()?;
        let count = self.u32()?;
        if offset != 0 || count > max || count as usize > STRING_CHARS_MAX {
            return Err(BadStub);
        }
        let bytes = self.reader.take(count as usize * 2)?;
        let text = utf16(bytes).map_err(|_| BadStub)?;
        Ok(text.split('\0').next().unwrap_or_default().to_owned())
    }

    /// A text that may be missing.
    ///
    /// # Errors
    /// When it is none, or too long.
    pub fn optional_string(&mut self) -> Result<Option<String>, BadStub> {
        match self.u32()? {
            0 => Ok(None),
            _ => self.string().map(Some),
        }
    }

    /// A number that may be missing.
    ///
    /// # Errors
    /// At the end.
    pub fn optional_u32(&mut self) -> Result<Option<u32>, BadStub> {
        match self.u32()? {
            0 => Ok(None),
            _ => self.u32().map(Some),
        }
    }
}

/// Writes results.
#[derive(Clone, Debug, Default)]
pub struct NdrWriter {
    out: Vec<u8>,
    pointers: u32,
}

impl NdrWriter {
    /// A number.
    pub fn u32(&mut self, value: u32) {
        self.out.align(0, 4);
        self.out.put_u32(value);
    }

    /// A pointer to something that follows later.
    pub fn pointer(&mut self) {
        self.pointers += 1;
        self.u32(0x2_0000 + self.pointers * 4);
    }

    /// A pointer to nothing.
    pub fn null(&mut self) {
        self.u32(0);
    }

    /// A text, with its closing zero.
    pub fn string(&mut self, text: &str) {
        let chars = len32(text.encode_utf16().count() + 1);
        self.u32(chars);
        self.u32(0);
        self.u32(chars);
        self.out.put_utf16(text);
        self.out.put_u16(0);
    }

    /// What was written.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_numbers_are_read_as_they_were_written() {
        let mut writer = NdrWriter::default();
        writer.pointer();
        writer.string("ab");
        writer.u32(7);
        writer.null();
        let stub = writer.finish();
        assert_eq!(stub[..16], [4, 0, 2, 0, 3, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]);
        let mut reader = NdrReader::new(&stub);
        assert_eq!(reader.optional_string(), Ok(Some("ab".into())));
        assert_eq!(reader.u32(), Ok(7));
        assert_eq!(reader.optional_u32(), Ok(None));
        assert_eq!(reader.u32(), Err(BadStub));
    }

    #[test]
    fn a_text_has_a_limit() {
        let stub = |max: u32, offset: u32, count: u32| {
            let mut writer = NdrWriter::default();
            [max, offset, count].into_iter().for_each(|number| writer.u32(number));
            let mut stub = writer.finish();
            stub.put_zeros(4096);
            NdrReader::new(&stub).string()
        };
        assert_eq!(stub(1024, 0, 1024), Ok(String::new()));
        assert_eq!(stub(1025, 0, 1025), Err(BadStub));
        assert_eq!(stub(1, 0, 2), Err(BadStub));
        assert_eq!(stub(2, 1, 1), Err(BadStub));
        assert_eq!(stub(u32::MAX, 0, u32::MAX), Err(BadStub));
    }
}
