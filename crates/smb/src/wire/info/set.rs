//! Classes of a file that SET_INFO sets (MS-FSCC 2.4).

use super::super::Times;
use super::super::cursor::{Reader, Short, part, utf16};
use crate::status::{Result, Status};

/// What is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetFile {
    /// Times: 0 leaves one alone, -1 stops its updates by this handle, -2 starts them again. Attributes: 0 leaves them alone.
    Basic {
        times: Times,
        attributes: u32,
    },
    Rename(NewName),
    /// `FileRenameInformationEx`: flags in the place of `replace`.
    RenameEx {
        flags: u32,
        name: NewName,
    },
    Link(NewName),
    Disposition {
        delete: bool,
    },
    DispositionEx {
        flags: u32,
    },
    Position(u64),
    /// A chain of extended attributes.
    FullEa(Vec<u8>),
    Mode(u32),
    Allocation(u64),
    EndOfFile(u64),
    ValidDataLength(u64),
    ShortName(String),
    Pipe {
        read_mode: u32,
        completion_mode: u32,
    },
}

/// Where a file is renamed or linked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewName {
    pub replace: bool,
    /// 0 over the network.
    pub root: u64,
    /// From the root of the share, with `\`.
    pub name: String,
}

/// Flags of `DispositionEx` and `RenameEx`.
pub const DISPOSITION_DELETE: u32 = 0x1;
pub const RENAME_REPLACE_IF_EXISTS: u32 = 0x1;

impl SetFile {
    /// Reads the buffer of a class.
    ///
    /// # Errors
    /// INVALID_INFO_CLASS, INFO_LENGTH_MISMATCH below the fixed part, INVALID_PARAMETER for a value that is none,
    /// OBJECT_NAME_INVALID for a name that is no text.
    pub fn decode(class: u8, buffer: &[u8]) -> Result<SetFile> {
        let mut reader = Reader::new(buffer);
        match class {
            4 => basic(&mut reader).map_err(short),
            10 => Ok(SetFile::Rename(new_name(buffer)?)),
            11 => Ok(SetFile::Link(new_name(buffer)?)),
            13 => Ok(SetFile::Disposition { delete: reader.u8().map_err(short)? != 0 }),
            14 => Ok(SetFile::Position(size(&mut reader)?)),
            15 => Ok(SetFile::FullEa(buffer.to_vec())),
            16 => Ok(SetFile::Mode(reader.u32().map_err(short)?)),
            19 => Ok(SetFile::Allocation(size(&mut reader)?)),
            20 => Ok(SetFile::EndOfFile(size(&mut reader)?)),
            23 => {
                let read_mode = reader.u32().map_err(short)?;
                Ok(SetFile::Pipe { read_mode, completion_mode: reader.u32().map_err(short)? })
            }
            39 => Ok(SetFile::ValidDataLength(size(&mut reader)?)),
            40 => Ok(SetFile::ShortName(counted(buffer, 0)?)),
            64 => Ok(SetFile::DispositionEx { flags: reader.u32().map_err(short)? }),
            65 => {
                let flags = reader.u32().map_err(short)?;
                let name = new_name(buffer)?;
                Ok(SetFile::RenameEx {
                    flags,
                    name: NewName { replace: flags & RENAME_REPLACE_IF_EXISTS != 0, ..name },
                })
            }
            _ => Err(Status::INVALID_INFO_CLASS),
        }
    }
}

fn short(Short: Short) -> Status {
    Status::INFO_LENGTH_MISMATCH
}

fn basic(reader: &mut Reader<'_>) -> std::result::Result<SetFile, Short> {
    Ok(SetFile::Basic { times: Times::decode(reader)?, attributes: reader.u32()? })
}

fn size(reader: &mut Reader<'_>) -> Result<u64> {
    let value = reader.i64().map_err(short)?;
    u64::try_from(value).map_err(|_| Status::INVALID_PARAMETER)
}

fn new_name(buffer: &[u8]) -> Result<NewName> {
    let mut reader = Reader::new(buffer);
    let replace = reader.u8().map_err(short)? != 0;
    reader.skip(7).map_err(short)?;
    let root = reader.u64().map_err(short)?;
    Ok(NewName { replace, root, name: counted(buffer, 16)? })
}

/// A name behind its length, which stands at `at`.
fn counted(buffer: &[u8], at: usize) -> Result<String> {
    let length = Reader::new(buffer.get(at..).ok_or(Status::INFO_LENGTH_MISMATCH)?).u32().map_err(short)? as usize;
    let name = part(buffer, at + 4, length).map_err(|Short| Status::INVALID_PARAMETER)?;
    if name.is_empty() || !name.len().is_multiple_of(2) {
        return Err(Status::INVALID_PARAMETER);
    }
    utf16(name).map_err(|_| Status::OBJECT_NAME_INVALID)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rename(name: &[u8], length: u32) -> Vec<u8> {
        [&[1; 1][..], &[0; 7], &[0; 8], &length.to_le_bytes(), name].concat()
    }

    #[test]
    fn names_lie_within() {
        let name = NewName { replace: true, root: 0, name: "ab".into() };
        let buffer = rename(b"a\0b\0", 4);
        assert_eq!(SetFile::decode(10, &buffer), Ok(SetFile::Rename(name.clone())));
        assert_eq!(SetFile::decode(11, &buffer), Ok(SetFile::Link(name.clone())));
        assert_eq!(SetFile::decode(65, &buffer), Ok(SetFile::RenameEx { flags: 1, name }));
        assert_eq!(SetFile::decode(10, &rename(b"a\0b\0", 6)), Err(Status::INVALID_PARAMETER));
        assert_eq!(SetFile::decode(10, &rename(b"a\0b\0", 3)), Err(Status::INVALID_PARAMETER));
        assert_eq!(SetFile::decode(10, &rename(b"", 0)), Err(Status::INVALID_PARAMETER));
        assert_eq!(SetFile::decode(10, &rename(b"\0\xD8", 2)), Err(Status::OBJECT_NAME_INVALID));
        assert_eq!(SetFile::decode(10, &buffer[..19]), Err(Status::INFO_LENGTH_MISMATCH));
    }

    #[test]
    fn each_class_has_its_length() {
        for (class, fixed) in [(4, 36), (13, 1), (14, 8), (16, 4), (19, 8), (20, 8), (23, 8), (39, 8), (64, 4)] {
            assert!(SetFile::decode(class, &vec![0; fixed]).is_ok(), "{class}");
            let short = SetFile::decode(class, &vec![0; fixed - 1]);
            assert_eq!(short, Err(Status::INFO_LENGTH_MISMATCH), "{class}");
        }
        assert_eq!(SetFile::decode(5, &[0; 64]), Err(Status::INVALID_INFO_CLASS));
        assert_eq!(SetFile::decode(20, &(-1i64).to_le_bytes()), Err(Status::INVALID_PARAMETER));
    }
}
