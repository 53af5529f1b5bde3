//! Classes of the file system that QUERY_INFO asks for (MS-FSCC 2.5).

use super::super::cursor::{Put, len32, utf16_bytes};
use super::{Answer, bounded};
use crate::status::{Result, Status};

/// The classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FileSystemClass {
    Volume = 1,
    Size = 3,
    Device = 4,
    Attribute = 5,
    Control = 6,
    FullSize = 7,
    ObjectId = 8,
    SectorSize = 11,
}

impl FileSystemClass {
    /// All of them.
    pub const ALL: [FileSystemClass; 8] = [
        FileSystemClass::Volume,
        FileSystemClass::Size,
        FileSystemClass::Device,
        FileSystemClass::Attribute,
        FileSystemClass::Control,
        FileSystemClass::FullSize,
        FileSystemClass::ObjectId,
        FileSystemClass::SectorSize,
    ];

    /// The class of a number.
    ///
    /// # Errors
    /// INVALID_INFO_CLASS.
    pub fn from_u8(value: u8) -> Result<FileSystemClass> {
        FileSystemClass::ALL.into_iter().find(|class| *class as u8 == value).ok_or(Status::INVALID_INFO_CLASS)
    }

    /// Below as many bytes nothing is answered.
    #[must_use]
    pub fn fixed_bytes(self) -> usize {
        match self {
            FileSystemClass::Volume | FileSystemClass::Size => 24,
            FileSystemClass::Device => 8,
            FileSystemClass::Attribute => 16,
            FileSystemClass::Control => 48,
            FileSystemClass::FullSize => 32,
            FileSystemClass::ObjectId => 64,
            FileSystemClass::SectorSize => 28,
        }
    }
}

/// Bits of the attributes of a file system.
pub mod attribute {
    pub const CASE_PRESERVED_NAMES: u32 = 0x2;
    pub const UNICODE_ON_DISK: u32 = 0x4;
    pub const PERSISTENT_ACLS: u32 = 0x8;
    pub const SUPPORTS_SPARSE_FILES: u32 = 0x40;
    /// DUPLICATE_EXTENTS_TO_FILE.
    pub const SUPPORTS_BLOCK_REFCOUNTING: u32 = 0x0800_0000;
    /// What shares have.
    pub const OF_SHARES: u32 =
        CASE_PRESERVED_NAMES | UNICODE_ON_DISK | PERSISTENT_ACLS | SUPPORTS_SPARSE_FILES | SUPPORTS_BLOCK_REFCOUNTING;
}

/// Bytes of an allocation unit and of a sector, and characters of a name.
pub const UNIT_BYTES: u32 = 4096;
pub const SECTOR_BYTES: u32 = 512;
pub const NAME_CHARS_MAX: u32 = 255;

/// Everything that the classes tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystemInfo {
    /// FILETIME.
    pub created: i64,
    pub serial: u32,
    pub label: String,
    pub object_id: [u8; 16],
    pub total_bytes: u64,
    pub free_bytes: u64,
}

impl FileSystemInfo {
    /// The answer of a class.
    ///
    /// # Errors
    /// INFO_LENGTH_MISMATCH.
    pub fn encode(&self, class: FileSystemClass, max: usize) -> Result<Answer> {
        let mut out = Vec::new();
        match class {
            FileSystemClass::Volume => self.volume(&mut out),
            FileSystemClass::Size => {
                out.put_u64(self.total_bytes / u64::from(UNIT_BYTES));
                out.put_u64(self.free_bytes / u64::from(UNIT_BYTES));
                units(&mut out);
            }
            FileSystemClass::FullSize => {
                out.put_u64(self.total_bytes / u64::from(UNIT_BYTES));
                out.put_u64(self.free_bytes / u64::from(UNIT_BYTES));
                out.put_u64(self.free_bytes / u64::from(UNIT_BYTES));
                units(&mut out);
            }
            FileSystemClass::Device => {
                const DISK: u32 = 7;
                const MOUNTED: u32 = 0x20;
                out.put_u32(DISK);
                out.put_u32(MOUNTED);
            }
            FileSystemClass::Attribute => {
                const NAME: &str = "NTFS";
                out.put_u32(attribute::OF_SHARES);
                out.put_u32(NAME_CHARS_MAX);
                out.put_u32(len32(utf16_bytes(NAME)));
                out.put_utf16(NAME);
            }
            FileSystemClass::Control => {
                out.put_zeros(24);
                out.put_u64(u64::MAX);
                out.put_u64(u64::MAX);
                out.put_zeros(8);
            }
            FileSystemClass::ObjectId => {
                out.put(&self.object_id);
                out.put_zeros(48);
            }
            FileSystemClass::SectorSize => sectors(&mut out),
        }
        bounded(out, class.fixed_bytes(), max)
    }

    fn volume(&self, out: &mut Vec<u8>) {
        out.put_i64(self.created);
        out.put_u32(self.serial);
        out.put_u32(len32(utf16_bytes(&self.label)));
        out.put_u16(0);
        out.put_utf16(&self.label);
    }
}

fn units(out: &mut Vec<u8>) {
    out.put_u32(UNIT_BYTES / SECTOR_BYTES);
    out.put_u32(SECTOR_BYTES);
}

fn sectors(out: &mut Vec<u8>) {
    /// Aligned to the device, partition aligned to it.
    const ALIGNED: u32 = 3;
    out.put_u32(SECTOR_BYTES);
    out.put_u32(UNIT_BYTES);
    out.put_u32(UNIT_BYTES);
    out.put_u32(UNIT_BYTES);
    out.put_u32(ALIGNED);
    out.put_u32(0);
    out.put_u32(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> FileSystemInfo {
        FileSystemInfo {
            created: 1,
            serial: 2,
            label: "share".into(),
            object_id: [3; 16],
            total_bytes: 100 << 30,
            free_bytes: 99 << 30,
        }
    }

    #[test]
    fn lengths_are_those_of_the_documents() {
        for class in FileSystemClass::ALL {
            let expected = match class {
                FileSystemClass::Volume => 18 + 10,
                FileSystemClass::Attribute => 12 + 8,
                other => other.fixed_bytes(),
            };
            let whole = info().encode(class, 4096).unwrap();
            assert_eq!((whole.buffer.len(), whole.status), (expected, Status::SUCCESS), "{class:?}");
            let fixed = class.fixed_bytes();
            assert_eq!(info().encode(class, fixed - 1), Err(Status::INFO_LENGTH_MISMATCH), "{class:?}");
            let cut = info().encode(class, fixed).unwrap();
            assert_eq!(cut.status == Status::BUFFER_OVERFLOW, expected > fixed, "{class:?}");
            assert_eq!(cut.buffer.len(), expected.min(fixed), "{class:?}");
        }
        assert_eq!(FileSystemClass::from_u8(2), Err(Status::INVALID_INFO_CLASS));
    }

    #[test]
    fn sizes_are_in_units_of_4_kib() {
        let size = info().encode(FileSystemClass::Size, 24).unwrap().buffer;
        assert_eq!(size[..8], (100u64 << 18).to_le_bytes());
        assert_eq!(size[16..], [8, 0, 0, 0, 0, 2, 0, 0]);
    }
}
