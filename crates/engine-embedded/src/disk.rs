//! The disk, as the engine sees it. Everything the engine itself reads and writes goes through here.
//!
//! [`RealDisk`] is the file system. A test gives another one, which fails, fills up or forgets what was not synced.
//!
//! The tree (crate lsm-tree) does its own input and output on a path. So a disk says where the tree's folder really is,
//! and every call in which the tree may write is run by the disk ([`Disk::tree_work`]): it can look at the folder before
//! and after, or refuse. The tree also unlinks files of old versions when the last reader lets go of them; that can
//! happen outside, and no state that is read again depends on it.
//!
//! Only the owner may read what is made here: folders have mode 0700 and files 0600.

use std::fmt::Debug;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// What group and others may do, and must not.
const OTHERS: u32 = 0o077;
/// FORMAT and STATE are far shorter; a file that is longer is none of ours.
const SMALL_FILE_BYTES_MAX: u64 = 64 * 1024;

/// A file system, or what stands for one.
pub trait Disk: Debug + Send + Sync {
    /// Makes a folder and those above it. What was made is durable when this returns.
    fn create_folder(&self, path: &Path) -> io::Result<()>;

    /// The names in a folder, in no order.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Makes a file that must not be there yet.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file that is there, to read and to write.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Reads a small file whole.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Makes what was created, renamed and removed in a folder durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;

    /// How many bytes can still be written.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;

    /// How large the disk is.
    fn total_bytes(&self, _path: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    /// Takes the folder for this process; `None`: another one has it.
    fn lock(&self, folder: &Path) -> io::Result<Option<Box<dyn Lock>>>;

    /// Takes all rights on a folder or file from group and others. Returns whether they had any.
    fn tighten(&self, _path: &Path) -> io::Result<bool> {
        Ok(false)
    }

    /// Where the tree's folder really is.
    fn tree_folder(&self, path: &Path) -> PathBuf {
        path.to_path_buf()
    }

    /// Runs something in which the tree may write to its folder: open, flush, compaction, clean-up. Several may run at the
    /// same time. An error that is returned instead of the work's own means that the work was not begun.
    fn tree_work(&self, work: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        work()
    }
}

/// An open file.
pub trait DiskFile: Debug + Send + Sync {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Fills the buffer only with what is in memory already; `false`: it is not, or that is not known.
    fn read_cached(&self, _buffer: &mut [u8], _offset: u64) -> bool {
        false
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    fn set_len(&self, length: u64) -> io::Result<()>;

    fn length(&self) -> io::Result<u64>;

    fn sync_data(&self) -> io::Result<()>;

    fn sync_all(&self) -> io::Result<()>;
}

impl dyn DiskFile + '_ {
    /// Fills the whole buffer; an error of kind `UnexpectedEof` where the file ends before.
    pub fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether it failed because this process, or the system, has as many files open as it may have.
pub fn is_out_of_files(error: &io::Error) -> bool {
    /// `ENFILE` and `EMFILE` on every system that has them. The library has no name for them.
    const OUT_OF_FILES: [i32; 2] = [23, 24];
    cfg!(unix) && error.raw_os_error().is_some_and(|code| OUT_OF_FILES.contains(&code))
}

/// A folder that is held. Dropping it lets go.
pub trait Lock: Debug + Send + Sync {
    /// Whether the folder's path still leads to the folder that was locked. Not so after it was removed or moved.
    fn is_in_place(&self) -> io::Result<bool>;
}

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = path.ancestors().take_while(|path| !is_folder(path)).collect();
        for path in missing.into_iter().rev().filter(|path| !path.as_os_str().is_empty()) {
            match DirBuilder::new().mode(FOLDER_MODE).create(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_folder(path) => {}
                made => made?,
            }
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            self.sync_folder(parent.unwrap_or(Path::new(".")))?;
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let names = std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(path)?;
        Ok(Box::new(file))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(path)?;
        if file.metadata()?.len() > SMALL_FILE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too long"));
        }
        io::Read::read_to_end(&mut io::Read::take(file, SMALL_FILE_BYTES_MAX), &mut bytes)?;
        Ok(bytes)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let disk = rustix::fs::statvfs(path)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    fn total_bytes(&self, path: &Path) -> io::Result<u64> {
        let disk = rustix::fs::statvfs(path)?;
        Ok(disk.f_blocks.saturating_mul(disk.f_frsize))
    }

    fn lock(&self, folder: &Path) -> io::Result<Option<Box<dyn Lock>>> {
        let path = folder.join("LOCK");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(FILE_MODE).open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(RealLock {
                folder: Opened::new(folder, File::open(folder)?),
                lock: Opened::new(&path, file),
            }))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn tighten(&self, path: &Path) -> io::Result<bool> {
        let mode = std::fs::metadata(path)?.permissions().mode();
        if mode & OTHERS == 0 {
            return Ok(false);
        }
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode & !OTHERS))?;
        Ok(true)
    }
}

fn is_folder(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.is_dir()
}

impl DiskFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn read_cached(&self, buffer: &mut [u8], offset: u64) -> bool {
        let mut done = 0;
        while done < buffer.len() {
            let mut parts = [io::IoSliceMut::new(&mut buffer[done..])];
            let flags = rustix::io::ReadWriteFlags::NOWAIT;
            match rustix::io::preadv2(self, &mut parts, offset + done as u64, flags) {
                Ok(0) | Err(_) => return false,
                Ok(read) => done += read,
            }
        }
        true
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        File::set_len(self, length)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn sync_all(&self) -> io::Result<()> {
        File::sync_all(self)
    }
}

/// Holding the folder open keeps the number of its inode from being given to another one.
#[derive(Debug)]
struct RealLock {
    folder: Opened,
    lock: Opened,
}

impl Lock for RealLock {
    fn is_in_place(&self) -> io::Result<bool> {
        Ok(self.folder.is_in_place()? && self.lock.is_in_place()?)
    }
}

#[derive(Debug)]
struct Opened {
    path: PathBuf,
    file: File,
}

impl Opened {
    fn new(path: &Path, file: File) -> Opened {
        Opened { path: path.to_path_buf(), file }
    }

    fn is_in_place(&self) -> io::Result<bool> {
        let there = match std::fs::metadata(&self.path) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(false);
            }
            there => there?,
        };
        let held = self.file.metadata()?;
        Ok((there.dev(), there.ino()) == (held.dev(), held.ino()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_notices_that_its_folder_is_gone() {
        let above = tempfile::tempdir().expect("a folder");
        let folder = above.path().join("data");
        RealDisk.create_folder(&folder).expect("made");
        let lock = RealDisk.lock(&folder).expect("asked").expect("free");
        assert!(lock.is_in_place().expect("looked"));
        std::fs::remove_dir_all(&folder).expect("removed");
        assert!(!lock.is_in_place().expect("looked"), "removed");
        RealDisk.create_folder(&folder).expect("made again");
        drop(RealDisk.lock(&folder).expect("asked").expect("free: it is another one"));
        assert!(!lock.is_in_place().expect("looked"), "another one stands in its place");
    }

    #[test]
    fn only_the_owner_may_read_what_is_made() {
        let above = tempfile::tempdir().expect("a folder");
        let folder = above.path().join("one/two");
        RealDisk.create_folder(&folder).expect("made");
        RealDisk.create(&folder.join("file")).expect("made");
        let mode = |path: &str| std::fs::metadata(above.path().join(path)).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode("one"), mode("one/two"), mode("one/two/file")), (0o700, 0o700, 0o600));
    }
}
