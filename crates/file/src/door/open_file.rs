//! An open file or directory.
#![allow(clippy::unimplemented, unused_variables, dead_code)]

use bytes::Bytes;

use super::{BasicInfo, Changes, DirectoryEntry, FileInfo, Lock, Refused, Tree};
use crate::opens::{Handle, HandleId};

/// An open file or directory. Every method takes `&self`: requests of one handle may run at once.
///
/// [`OpenFile::close`] closes it in good order. Dropping it closes it, too; what was to be deleted on close is then deleted in
/// the background.
#[derive(Debug)]
#[must_use = "the file is closed when this is dropped"]
pub struct OpenFile {
    pub(super) tree: Tree,
    pub(super) handle: Handle,
    pub(super) access: u32,
    pub(super) is_directory: bool,
}

/// What the handle is.
impl OpenFile {
    /// The number that List Handles shows. Never 0, never given out twice.
    pub fn handle_id(&self) -> HandleId {
        self.handle.id()
    }

    /// The id of the file, as [`FileInfo::id`].
    pub fn file_id(&self) -> u64 {
        self.handle.file().id
    }

    pub fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// The access that was granted, without generic bits.
    pub fn access(&self) -> u32 {
        self.access
    }

    /// Properties, sizes, id and path. Needs no access at all: which class of information needs FILE_READ_ATTRIBUTES is for the
    /// caller to check with [`OpenFile::access`].
    pub async fn query(&self) -> Result<FileInfo, Refused> {
        unimplemented!()
    }

    /// Closes the handle. The last handle of a file that is to be deleted removes it; the answer comes when that is durable.
    pub async fn close(&self) -> Result<(), Refused> {
        unimplemented!()
    }
}

/// Bytes of a file.
impl OpenFile {
    /// Reads up to `length` bytes, at most [`super::TRANSFER_BYTES_MAX`]; fewer where the file ends. Nothing at all is
    /// [`Refused::EndOfFile`], unless `length` is 0. Needs FILE_READ_DATA or FILE_EXECUTE.
    pub async fn read(&self, offset: u64, length: u32) -> Result<Bytes, Refused> {
        unimplemented!()
    }

    /// Writes all of the bytes and makes the file longer if they reach beyond its end. Needs FILE_WRITE_DATA, or FILE_APPEND_DATA
    /// and no byte before the end. Ready when the write is durable.
    pub async fn write(&self, offset: u64, bytes: Bytes) -> Result<(), Refused> {
        unimplemented!()
    }

    /// Everything that was written before is durable. Needs FILE_WRITE_DATA or FILE_APPEND_DATA on a file.
    pub async fn flush(&self) -> Result<(), Refused> {
        unimplemented!()
    }

    /// Gives the file another length (FileEndOfFileInformation). Needs FILE_WRITE_DATA.
    pub async fn set_end_of_file(&self, length: u64) -> Result<(), Refused> {
        unimplemented!()
    }

    /// FileAllocationInformation: a size below the length cuts the file, a larger one changes nothing. Needs FILE_WRITE_DATA.
    pub async fn set_allocation(&self, size: u64) -> Result<(), Refused> {
        unimplemented!()
    }

    /// Makes bytes zeros, up to the end of the file at most (FSCTL_SET_ZERO_DATA). `end` is behind the last. Needs FILE_WRITE_DATA.
    pub async fn set_zero_data(&self, start: u64, end: u64) -> Result<(), Refused> {
        unimplemented!()
    }

    /// The written ranges in a part of the file, as offsets and lengths, at most `most` of them (FSCTL_QUERY_ALLOCATED_RANGES). The
    /// second value: there are more. Needs FILE_READ_DATA.
    pub async fn allocated_ranges(
        &self,
        offset: u64,
        length: u64,
        most: usize,
    ) -> Result<(Vec<(u64, u64)>, bool), Refused> {
        unimplemented!()
    }

    /// Takes all of the locks or none, at once or not at all ([`Refused::LockNotGranted`]). Needs FILE_READ_DATA or FILE_WRITE_DATA.
    pub async fn lock(&self, locks: &[Lock]) -> Result<(), Refused> {
        unimplemented!()
    }

    /// Takes a lock and waits while another one overlaps it. Dropping the future withdraws it. Closing the handle ends it with
    /// [`Refused::FileClosed`].
    pub async fn lock_waiting(&self, lock: Lock) -> Result<(), Refused> {
        unimplemented!()
    }

    /// Gives up locks, given by offset and length, one after the other. The first that is not held ends it; those before it are
    /// given up.
    pub fn unlock(&self, ranges: &[(u64, u64)]) -> Result<(), Refused> {
        unimplemented!()
    }
}

/// Properties and names.
impl OpenFile {
    /// FileBasicInformation. Needs FILE_WRITE_ATTRIBUTES.
    pub async fn set_basic(&self, info: BasicInfo) -> Result<(), Refused> {
        unimplemented!()
    }

    /// FileDispositionInformation: the file is deleted when its last handle closes, or no longer. Needs DELETE.
    pub async fn set_delete_pending(&self, pending: bool) -> Result<(), Refused> {
        unimplemented!()
    }

    /// FileRenameInformation. `target` is a path as in [`super::CreateRequest::path`]; one in front may have a backslash. A file at
    /// the new name goes if `replaces`, a directory never. Needs DELETE.
    pub async fn rename(&self, target: &str, replaces: bool) -> Result<(), Refused> {
        unimplemented!()
    }

    /// The security descriptor in its self-relative form, with the parts that are asked for ([`super::security_parts`]). Needs
    /// READ_CONTROL.
    pub async fn security(&self, parts: u32) -> Result<Bytes, Refused> {
        unimplemented!()
    }

    /// Sets some parts of the security descriptor. Needs WRITE_OWNER for owner and group, WRITE_DAC for the DACL and
    /// ACCESS_SYSTEM_SECURITY for the SACL.
    pub async fn set_security(&self, parts: u32, descriptor: &[u8]) -> Result<(), Refused> {
        unimplemented!()
    }
}

/// Directories.
impl OpenFile {
    /// The next entries that match the pattern, at most `most` and [`super::LISTED_ENTRIES_MAX`], from the position of the handle.
    /// The position does not move: [`OpenFile::advance`] moves it behind the last entry that fitted into the answer.
    ///
    /// The pattern is that of the first call, and of each call that restarts. None: [`Refused::NoSuchFile`] in a first call,
    /// [`Refused::NoMoreFiles`] later. Needs FILE_READ_DATA.
    pub async fn list(&self, pattern: &str, restart: bool, most: usize) -> Result<Vec<DirectoryEntry>, Refused> {
        unimplemented!()
    }

    /// The entry, and all before it, have been told to the client.
    pub fn advance(&self, entry: &DirectoryEntry) {
        unimplemented!()
    }

    /// Waits for changes in the directory (CHANGE_NOTIFY). Filter and depth are those of the first call of the handle; what happens
    /// between two calls is kept. Dropping the future loses nothing. Closing the handle ends it with [`Refused::FileClosed`].
    /// Needs FILE_READ_DATA.
    pub async fn changes(&self, filter: u32, is_recursive: bool) -> Result<Changes, Refused> {
        unimplemented!()
    }
}
