//! Little-endian fields, in and out.

use crate::status::Status;

/// The bytes end before the field does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short;

impl From<Short> for Status {
    fn from(Short: Short) -> Status {
        Status::INVALID_PARAMETER
    }
}

/// Reads one field after the other from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Begins at the first byte.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// What has not been read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Short> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Short)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next bytes as an array.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Short)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// A byte.
    ///
    /// # Errors
    /// At the end.
    pub fn u8(&mut self) -> Result<u8, Short> {
        self.array().map(u8::from_le_bytes)
    }

    /// Two bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn u16(&mut self) -> Result<u16, Short> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn u32(&mut self) -> Result<u32, Short> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn u64(&mut self) -> Result<u64, Short> {
        self.array().map(u64::from_le_bytes)
    }

    /// Eight bytes with a sign.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn i64(&mut self) -> Result<i64, Short> {
        self.array().map(i64::from_le_bytes)
    }

    /// Sixteen bytes as a number, the way identifiers are kept.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn u128(&mut self) -> Result<u128, Short> {
        self.array().map(u128::from_le_bytes)
    }

    /// Passes over bytes that say nothing.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn skip(&mut self, count: usize) -> Result<(), Short> {
        self.take(count).map(|_| ())
    }
}

/// The part of `bytes` from `offset`, `length` long.
///
/// # Errors
/// When it is not within.
pub fn part(bytes: &[u8], offset: usize, length: usize) -> Result<&[u8], Short> {
    let end = offset.checked_add(length).ok_or(Short)?;
    bytes.get(offset..end).ok_or(Short)
}

/// Appends fields to a buffer.
pub trait Put {
    /// Appends bytes as they are.
    fn put(&mut self, bytes: &[u8]);
    /// The length so far.
    fn length(&self) -> usize;
    /// Puts other bytes in the place of some that were written.
    fn replace(&mut self, at: usize, bytes: &[u8]);

    /// Appends a byte.
    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }
    /// Appends two bytes.
    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }
    /// Appends four bytes.
    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }
    /// Appends eight bytes.
    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }
    /// Appends eight bytes with a sign.
    fn put_i64(&mut self, value: i64) {
        self.put(&value.to_le_bytes());
    }
    /// Appends zeros.
    fn put_zeros(&mut self, count: usize) {
        for _ in 0..count {
            self.put_u8(0);
        }
    }
    /// Appends zeros until the length since `start` is a multiple of `unit`.
    fn align(&mut self, start: usize, unit: usize) {
        let over = (self.length() - start) % unit;
        if over != 0 {
            self.put_zeros(unit - over);
        }
    }
    /// Appends a text in UTF-16.
    fn put_utf16(&mut self, text: &str) {
        for unit in text.encode_utf16() {
            self.put_u16(unit);
        }
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
    fn length(&self) -> usize {
        self.len()
    }
    fn replace(&mut self, at: usize, bytes: &[u8]) {
        self[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// A text from UTF-16.
///
/// # Errors
/// When half a unit is left over, or a surrogate stands alone: the file service keeps names in UTF-8, which has no form for it.
pub fn utf16(bytes: &[u8]) -> Result<String, NotUtf16> {
    if !bytes.len().is_multiple_of(2) {
        return Err(NotUtf16);
    }
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    char::decode_utf16(units).collect::<Result<String, _>>().map_err(|_| NotUtf16)
}

/// The bytes are no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotUtf16;

/// A text as UTF-16 bytes.
#[must_use]
pub fn to_utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// The length of a text in UTF-16, in bytes.
#[must_use]
pub fn utf16_bytes(text: &str) -> usize {
    text.encode_utf16().count() * 2
}

/// A length that is bounded by the largest frame.
#[must_use]
pub fn len32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// A length that is bounded by its field.
#[must_use]
pub fn len16(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_little_endian_and_end() {
        let mut reader = Reader::new(&[1, 2, 0, 3, 0, 0, 0, 4]);
        assert_eq!(reader.u8(), Ok(1));
        assert_eq!(reader.u16(), Ok(2));
        assert_eq!(reader.u32(), Ok(3));
        assert_eq!(reader.u16(), Err(Short));
        assert_eq!(reader.u8(), Ok(4));
        assert_eq!(reader.u8(), Err(Short));
    }

    #[test]
    fn parts_lie_within() {
        assert_eq!(part(&[1, 2, 3], 1, 2), Ok(&[2, 3][..]));
        assert_eq!(part(&[1, 2, 3], 3, 0), Ok(&[][..]));
        assert_eq!(part(&[1, 2, 3], 2, 2), Err(Short));
        assert_eq!(part(&[1, 2, 3], usize::MAX, 2), Err(Short));
    }

    #[test]
    fn a_lone_surrogate_is_no_text() {
        assert_eq!(utf16(&to_utf16("aé\u{10428}")), Ok("aé\u{10428}".into()));
        assert_eq!(utf16(&[0x00, 0xD8]), Err(NotUtf16));
        assert_eq!(utf16(&[0x41]), Err(NotUtf16));
    }

    #[test]
    fn alignment_counts_from_the_start() {
        let mut out = vec![9; 3];
        out.put_u8(1);
        out.align(3, 8);
        assert_eq!(out.len(), 11);
        out.align(3, 8);
        assert_eq!(out.len(), 11);
    }
}
