//! Classes of a file that QUERY_INFO asks for (MS-FSCC 2.4).

use super::super::Times;
use super::super::cursor::{Put, len32, utf16_bytes};
use super::{Answer, bounded};
use crate::status::{Result, Status};

macro_rules! classes {
    ($($name:ident = $value:literal, $fixed:literal;)*) => {
        /// The classes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum FileClass { $($name = $value,)* }

        impl FileClass {
            /// All of them.
            pub const ALL: &'static [FileClass] = &[$(FileClass::$name),*];

            /// The class of a number.
            ///
            /// # Errors
            /// INVALID_INFO_CLASS.
            pub fn from_u8(value: u8) -> Result<FileClass> {
                match value { $($value => Ok(FileClass::$name),)* _ => Err(Status::INVALID_INFO_CLASS) }
            }

            /// Below as many bytes nothing is answered. For classes with a name: the size of the C structure, with one character and
            /// its padding, as Windows and Samba count it.
            #[must_use]
            pub fn fixed_bytes(self) -> usize {
                match self { $(FileClass::$name => $fixed,)* }
            }
        }
    };
}

classes! {
    Basic = 4, 40;
    Standard = 5, 24;
    Internal = 6, 8;
    Ea = 7, 4;
    Access = 8, 4;
    Name = 9, 8;
    Position = 14, 8;
    FullEa = 15, 0;
    Mode = 16, 4;
    Alignment = 17, 4;
    All = 18, 104;
    AlternateName = 21, 8;
    Stream = 22, 32;
    Compression = 28, 16;
    NetworkOpen = 34, 56;
    AttributeTag = 35, 8;
    NormalizedName = 48, 8;
    Id = 59, 24;
}

/// Everything that the classes tell.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FileInfo {
    pub times: Times,
    pub attributes: u32,
    pub allocation_size: u64,
    pub end_of_file: u64,
    pub links: u32,
    pub delete_pending: bool,
    pub directory: bool,
    pub file_id: u64,
    pub volume_id: u64,
    /// What the handle was granted.
    pub access: u32,
    pub position: u64,
    pub mode: u32,
    pub reparse_tag: u32,
    /// From the root of the share, with `\` in front: `\dir\file`.
    pub path: String,
    /// The 8.3 name. There is none on most volumes.
    pub short_name: Option<String>,
    /// Streams; the data of a file is `::$DATA`, a directory has none.
    pub streams: Vec<Stream>,
}

/// A stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    pub name: String,
    pub size: u64,
    pub allocation_size: u64,
}

impl FileInfo {
    /// The answer of a class.
    ///
    /// # Errors
    /// INFO_LENGTH_MISMATCH, OBJECT_NAME_NOT_FOUND without a short name, NO_EAS_ON_FILE.
    pub fn encode(&self, class: FileClass, max: usize) -> Result<Answer> {
        let fixed = class.fixed_bytes();
        if max < fixed {
            return Err(Status::INFO_LENGTH_MISMATCH);
        }
        let mut out = Vec::new();
        match class {
            FileClass::Basic => self.basic(&mut out),
            FileClass::Standard => self.standard(&mut out),
            FileClass::Internal => out.put_u64(self.file_id),
            FileClass::Ea => out.put_u32(0),
            FileClass::Access => out.put_u32(self.access),
            FileClass::Position => out.put_u64(self.position),
            FileClass::Mode => out.put_u32(self.mode),
            FileClass::Alignment => out.put_u32(0),
            FileClass::Name => name(&mut out, &self.path),
            FileClass::All => self.all(&mut out),
            FileClass::AlternateName => {
                let short = self.short_name.as_deref().ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
                name(&mut out, short);
            }
            FileClass::NormalizedName => name(&mut out, self.path.strip_prefix('\\').unwrap_or(&self.path)),
            FileClass::Stream => return self.streams(max),
            FileClass::FullEa => return Err(Status::NO_EAS_ON_FILE),
            FileClass::Compression => {
                out.put_u64(self.end_of_file);
                out.put_zeros(8);
            }
            FileClass::NetworkOpen => self.network_open(&mut out),
            FileClass::AttributeTag => {
                out.put_u32(self.attributes);
                out.put_u32(self.reparse_tag);
            }
            FileClass::Id => {
                out.put_u64(self.volume_id);
                out.put_u64(self.file_id);
                out.put_u64(0);
            }
        }
        bounded(out, fixed, max)
    }

    fn basic(&self, out: &mut Vec<u8>) {
        self.times.encode(out);
        out.put_u32(self.attributes);
        out.put_u32(0);
    }

    fn standard(&self, out: &mut Vec<u8>) {
        out.put_u64(self.allocation_size);
        out.put_u64(self.end_of_file);
        out.put_u32(self.links);
        out.put_u8(u8::from(self.delete_pending));
        out.put_u8(u8::from(self.directory));
        out.put_u16(0);
    }

    fn all(&self, out: &mut Vec<u8>) {
        self.basic(out);
        self.standard(out);
        out.put_u64(self.file_id);
        out.put_u32(0);
        out.put_u32(self.access);
        out.put_u64(self.position);
        out.put_u32(self.mode);
        out.put_u32(0);
        name(out, &self.path);
    }

    fn network_open(&self, out: &mut Vec<u8>) {
        self.times.encode(out);
        out.put_u64(self.allocation_size);
        out.put_u64(self.end_of_file);
        out.put_u32(self.attributes);
        out.put_u32(0);
    }

    /// Streams that have room, whole.
    fn streams(&self, max: usize) -> Result<Answer> {
        let mut out = Vec::new();
        let mut last = 0;
        for (count, stream) in self.streams.iter().enumerate() {
            let start = out.len().next_multiple_of(8);
            let bytes = utf16_bytes(&stream.name);
            if start + 24 + bytes > max {
                return Ok(Answer { buffer: out, status: Status::BUFFER_OVERFLOW });
            }
            out.align(0, 8);
            if count > 0 {
                let distance = len32(start - last);
                out.replace(last, &distance.to_le_bytes());
            }
            last = start;
            out.put_u32(0);
            out.put_u32(len32(bytes));
            out.put_u64(stream.size);
            out.put_u64(stream.allocation_size);
            out.put_utf16(&stream.name);
        }
        Ok(Answer { buffer: out, status: Status::SUCCESS })
    }
}

fn name(out: &mut Vec<u8>, name: &str) {
    out.put_u32(len32(utf16_bytes(name)));
    out.put_utf16(name);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> FileInfo {
        FileInfo {
            times: Times { creation: 1, last_access: 2, last_write: 3, change: 4 },
            attributes: 0x20,
            allocation_size: 4096,
            end_of_file: 5,
            links: 1,
            file_id: 9,
            volume_id: 8,
            access: 0x1F01FF,
            path: r"\dir\file.txt".into(),
            short_name: Some("FILE~1.TXT".into()),
            streams: vec![Stream { name: "::$DATA".into(), size: 5, allocation_size: 4096 }],
            ..FileInfo::default()
        }
    }

    #[test]
    fn lengths_are_those_of_the_documents() {
        let length = |class| info().encode(class, 4096).map(|answer| answer.buffer.len());
        for class in FileClass::ALL {
            let expected = match class {
                FileClass::All => 100 + 26,
                FileClass::Name => 4 + 26,
                FileClass::NormalizedName => 4 + 24,
                FileClass::AlternateName => 4 + 20,
                FileClass::Stream => 24 + 14,
                FileClass::FullEa => {
                    assert_eq!(length(*class), Err(Status::NO_EAS_ON_FILE));
                    continue;
                }
                other => other.fixed_bytes(),
            };
            assert_eq!(length(*class), Ok(expected), "{class:?}");
        }
    }

    #[test]
    fn short_buffers_are_refused_or_filled() {
        for class in FileClass::ALL.iter().filter(|class| **class != FileClass::FullEa) {
            let fixed = class.fixed_bytes();
            assert_eq!(info().encode(*class, fixed - 1), Err(Status::INFO_LENGTH_MISMATCH), "{class:?}");
            let whole = info().encode(*class, 4096).unwrap();
            let tight = info().encode(*class, fixed).unwrap();
            match whole.buffer.len() > fixed {
                true => assert_eq!(tight.status, Status::BUFFER_OVERFLOW, "{class:?}"),
                false => assert_eq!(tight, whole),
            }
            assert!(whole.buffer.starts_with(&tight.buffer), "{class:?}");
            let exact = info().encode(*class, whole.buffer.len().max(fixed)).unwrap();
            assert_eq!(exact, whole);
        }
    }

    #[test]
    fn a_file_without_a_short_name_says_so() {
        let info = FileInfo { short_name: None, ..info() };
        assert_eq!(info.encode(FileClass::AlternateName, 100), Err(Status::OBJECT_NAME_NOT_FOUND));
        assert_eq!(FileClass::from_u8(10), Err(Status::INVALID_INFO_CLASS), "rename is only set");
    }
}
