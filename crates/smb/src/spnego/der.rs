//! As much of DER as the tokens need: values one after the other, lengths of up to three bytes.

use crate::wire::cursor::Reader;

/// Values in a slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Der<'a> {
    rest: Reader<'a>,
}

impl<'a> Der<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Der<'a> {
        Der { rest: Reader::new(bytes) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.rest().is_empty()
    }

    /// The next value, if it has this tag.
    pub(super) fn value(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut reader = self.rest;
        if reader.u8().ok()? != tag {
            return None;
        }
        let length = length(&mut reader)?;
        let value = reader.take(length).ok()?;
        self.rest = reader;
        Some(value)
    }

    /// The next value, if it has this tag; Some(None) if it has another one or there is none. None for a value that is none.
    pub(super) fn optional(&mut self, tag: u8) -> Option<Option<&'a [u8]>> {
        match self.rest.rest().first() {
            Some(next) if *next == tag => Some(Some(self.value(tag)?)),
            _ => Some(None),
        }
    }
}

fn length(reader: &mut Reader<'_>) -> Option<usize> {
    let first = reader.u8().ok()?;
    let bytes = match first {
        0..=0x7F => return Some(usize::from(first)),
        0x81..=0x83 => reader.take(usize::from(first & 0x7F)).ok()?,
        _ => return None,
    };
    Some(bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
}

/// A value with its tag and length.
pub(super) fn wrap(tag: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = value.len();
    match length {
        0..=0x7F => out.push(length as u8),
        0x80..=0xFF => out.extend([0x81, length as u8]),
        0x100..=0xFFFF => out.extend([0x82, (length >> 8) as u8, length as u8]),
        _ => out.extend([0x83, (length >> 16) as u8, (length >> 8) as u8, length as u8]),
    }
    out.extend_from_slice(value);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_length_are_read_as_they_were_written() {
        for length in [0, 1, 0x7F, 0x80, 0xFF, 0x100, 0xFFFF, 0x1_0000] {
            let bytes = wrap(4, &vec![7; length]);
            let mut der = Der::new(&bytes);
            assert_eq!(der.value(4).map(<[u8]>::len), Some(length));
            assert!(der.is_empty());
            assert_eq!(Der::new(&bytes[..bytes.len() - 1]).value(4), None);
        }
        assert_eq!(Der::new(&[4, 0x80, 0]).value(4), None, "no definite length");
        assert_eq!(Der::new(&[4, 0x84, 0, 0, 0, 1, 7]).value(4), None, "longer than any token");
        assert_eq!(Der::new(&[5, 0]).optional(4), Some(None));
        assert_eq!(Der::new(&[4, 2, 0]).optional(4), None);
    }
}
