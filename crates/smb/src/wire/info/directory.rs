//! Entries of a directory (MS-FSCC 2.4): a chain, each entry 8-byte aligned.

use super::super::Times;
use super::super::cursor::{Put, len32, utf16_bytes};
use crate::status::{Result, Status};

/// How much of an entry is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DirectoryClass {
    Directory = 1,
    FullDirectory = 2,
    BothDirectory = 3,
    Names = 12,
    IdBothDirectory = 37,
    IdFullDirectory = 38,
    IdExtdDirectory = 60,
}

impl DirectoryClass {
    /// All of them.
    pub const ALL: [DirectoryClass; 7] = [
        DirectoryClass::Directory,
        DirectoryClass::FullDirectory,
        DirectoryClass::BothDirectory,
        DirectoryClass::Names,
        DirectoryClass::IdBothDirectory,
        DirectoryClass::IdFullDirectory,
        DirectoryClass::IdExtdDirectory,
    ];

    /// The class of a number.
    ///
    /// # Errors
    /// INVALID_INFO_CLASS.
    pub fn from_u8(value: u8) -> Result<DirectoryClass> {
        DirectoryClass::ALL.into_iter().find(|class| *class as u8 == value).ok_or(Status::INVALID_INFO_CLASS)
    }

    /// Bytes in front of the name.
    #[must_use]
    pub fn fixed_bytes(self) -> usize {
        match self {
            DirectoryClass::Names => 12,
            DirectoryClass::Directory => 64,
            DirectoryClass::FullDirectory => 68,
            DirectoryClass::IdFullDirectory => 80,
            DirectoryClass::IdExtdDirectory => 88,
            DirectoryClass::BothDirectory => 94,
            DirectoryClass::IdBothDirectory => 104,
        }
    }
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Entry {
    pub name: String,
    pub times: Times,
    pub end_of_file: u64,
    pub allocation_size: u64,
    pub attributes: u32,
    pub file_id: u64,
    pub reparse_tag: u32,
}

/// Entries of an answer, as many as have room.
#[derive(Clone, Debug)]
pub struct Listing {
    class: DirectoryClass,
    max: usize,
    out: Vec<u8>,
    last: usize,
    entries: usize,
    refused: bool,
}

impl Listing {
    /// An empty listing for a buffer of `max` bytes.
    ///
    /// # Errors
    /// INFO_LENGTH_MISMATCH when no entry could have room.
    pub fn new(class: DirectoryClass, max: usize) -> Result<Listing> {
        if max < class.fixed_bytes() {
            return Err(Status::INFO_LENGTH_MISMATCH);
        }
        Ok(Listing { class, max, out: Vec::new(), last: 0, entries: 0, refused: false })
    }

    /// Appends an entry, if it has room. Entries after one that had none are not asked for.
    pub fn push(&mut self, entry: &Entry) -> bool {
        let start = self.out.len().next_multiple_of(8);
        let end = start + self.class.fixed_bytes() + utf16_bytes(&entry.name);
        if end > self.max {
            self.refused = true;
            return false;
        }
        self.out.align(0, 8);
        if self.entries > 0 {
            let distance = len32(start - self.last);
            self.out.replace(self.last, &distance.to_le_bytes());
        }
        self.last = start;
        self.entries += 1;
        self.write(entry);
        true
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The bytes.
    ///
    /// # Errors
    /// INFO_LENGTH_MISMATCH when there was an entry, and not even one had room.
    pub fn finish(self) -> Result<Vec<u8>> {
        match self.entries == 0 && self.refused {
            true => Err(Status::INFO_LENGTH_MISMATCH),
            false => Ok(self.out),
        }
    }

    fn write(&mut self, entry: &Entry) {
        let out = &mut self.out;
        let name = len32(utf16_bytes(&entry.name));
        out.put_u32(0);
        out.put_u32(0);
        if self.class == DirectoryClass::Names {
            out.put_u32(name);
            out.put_utf16(&entry.name);
            return;
        }
        entry.times.encode(out);
        out.put_u64(entry.end_of_file);
        out.put_u64(entry.allocation_size);
        out.put_u32(entry.attributes);
        out.put_u32(name);
        match self.class {
            DirectoryClass::Names | DirectoryClass::Directory => {}
            DirectoryClass::FullDirectory => ea_size(out, entry),
            DirectoryClass::IdFullDirectory => {
                ea_size(out, entry);
                out.put_u32(0);
                out.put_u64(entry.file_id);
            }
            DirectoryClass::BothDirectory => {
                ea_size(out, entry);
                out.put_zeros(26);
            }
            DirectoryClass::IdBothDirectory => {
                ea_size(out, entry);
                out.put_zeros(28);
                out.put_u64(entry.file_id);
            }
            DirectoryClass::IdExtdDirectory => {
                out.put_u32(0);
                out.put_u32(entry.reparse_tag);
                out.put_u64(entry.file_id);
                out.put_u64(0);
            }
        }
        out.put_utf16(&entry.name);
    }
}

/// There are no extended attributes. Of a reparse point the field is its tag.
fn ea_size(out: &mut Vec<u8>, entry: &Entry) {
    out.put_u32(entry.reparse_tag);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Entry {
        let times = Times { creation: 1, last_access: 2, last_write: 3, change: 4 };
        Entry {
            name: name.into(),
            times,
            end_of_file: 5,
            allocation_size: 4096,
            attributes: 0x20,
            file_id: 9,
            reparse_tag: 0,
        }
    }

    #[test]
    fn entries_are_aligned_and_chained() {
        for class in DirectoryClass::ALL {
            let mut listing = Listing::new(class, 4096).unwrap();
            assert!(listing.push(&entry("a")) && listing.push(&entry("bcé")) && listing.push(&entry("d")));
            let out = listing.finish().unwrap();
            let fixed = class.fixed_bytes();
            let second = u32::from_le_bytes(out[..4].try_into().unwrap()) as usize;
            assert_eq!(second, (fixed + 2).next_multiple_of(8), "{class:?}");
            assert_eq!(out[second + fixed..second + fixed + 6], [b'b', 0, b'c', 0, 0xE9, 0], "{class:?}");
            let third = second + u32::from_le_bytes(out[second..second + 4].try_into().unwrap()) as usize;
            assert_eq!(out[third..third + 4], [0; 4], "{class:?}");
            assert_eq!(out.len(), third + fixed + 2, "{class:?}");
        }
    }

    #[test]
    fn ids_stand_where_they_belong() {
        for (class, at) in [
            (DirectoryClass::IdBothDirectory, 96),
            (DirectoryClass::IdFullDirectory, 72),
            (DirectoryClass::IdExtdDirectory, 72),
        ] {
            let mut listing = Listing::new(class, 4096).unwrap();
            listing.push(&entry("a"));
            let out = listing.finish().unwrap();
            assert_eq!(out[at..at + 8], 9u64.to_le_bytes(), "{class:?}");
        }
    }

    #[test]
    fn a_listing_ends_where_its_buffer_does() {
        let class = DirectoryClass::Names;
        assert_eq!(Listing::new(class, 11).map(|_| ()), Err(Status::INFO_LENGTH_MISMATCH));
        let mut tight = Listing::new(class, 16 + 14).unwrap();
        assert!(tight.push(&entry("a")) && tight.push(&entry("b")));
        assert!(!tight.push(&entry("c")));
        assert_eq!(tight.len(), 2);
        assert_eq!(tight.finish().unwrap().len(), 30);
        let mut small = Listing::new(class, 13).unwrap();
        assert!(!small.push(&entry("a")));
        assert_eq!(small.finish(), Err(Status::INFO_LENGTH_MISMATCH));
        assert_eq!(DirectoryClass::from_u8(99), Err(Status::INVALID_INFO_CLASS));
    }
}
