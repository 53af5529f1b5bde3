//! A disk that a test can make fail.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, DiskFile, Lock, RealDisk};

/// Where the engine is about to touch the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    Create,
    Open,
    Read,
    LogWrite,
    LogSync,
    DataWrite,
    DataSync,
    /// STATE and FORMAT are written or put in their place.
    StateWrite,
    SetLength,
    /// A segment is synced with its length: when it is made and when it is cut.
    WholeSync,
    Remove,
    /// What was made, renamed and removed in a folder is made durable.
    FolderSync,
    /// The tree opens, flushes, compacts or cleans up.
    Tree,
    /// How much is free is asked: an answer of "full" means nothing is.
    FreeSpace,
}

type Ask = Arc<dyn Fn(Point, &Path) -> io::Result<()> + Send + Sync>;

/// The real disk, but asked before each touch, which an error prevents.
#[derive(Clone)]
pub struct FaultyDisk {
    ask: Ask,
    below: RealDisk,
}

impl FaultyDisk {
    pub fn new(ask: impl Fn(Point, &Path) -> io::Result<()> + Send + Sync + 'static) -> FaultyDisk {
        FaultyDisk { ask: Arc::new(ask), below: RealDisk }
    }

    fn over(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(FaultyFile { ask: Arc::clone(&self.ask), path: path.to_path_buf(), file })
    }
}

impl fmt::Debug for FaultyDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyDisk")
    }
}

impl Disk for FaultyDisk {
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.below.create_folder(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.below.list(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        (self.ask)(if is_segment(path) { Point::Create } else { Point::StateWrite }, path)?;
        Ok(self.over(path, self.below.create(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        (self.ask)(Point::Open, path)?;
        Ok(self.over(path, self.below.open(path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        (self.ask)(Point::Read, path)?;
        self.below.read(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        (self.ask)(Point::StateWrite, to)?;
        self.below.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        (self.ask)(Point::Remove, path)?;
        self.below.remove_file(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        (self.ask)(Point::FolderSync, path)?;
        self.below.sync_folder(path)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        match (self.ask)(Point::FreeSpace, path) {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(0),
            asked => asked.and_then(|()| self.below.free_bytes(path)),
        }
    }

    fn total_bytes(&self, path: &Path) -> io::Result<u64> {
        self.below.total_bytes(path)
    }

    fn lock(&self, folder: &Path) -> io::Result<Option<Box<dyn Lock>>> {
        self.below.lock(folder)
    }

    fn tighten(&self, folder: &Path) -> io::Result<bool> {
        self.below.tighten(folder)
    }

    fn tree_work(&self, work: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        (self.ask)(Point::Tree, Path::new("rows"))?;
        work()
    }
}

fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "seg")
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Log,
    Data,
    State,
}

struct FaultyFile {
    ask: Ask,
    path: PathBuf,
    file: Box<dyn DiskFile>,
}

impl FaultyFile {
    /// A segment says in its header what it is. One that has none yet is being made.
    fn kind(&self) -> Option<Kind> {
        if !is_segment(&self.path) {
            return Some(Kind::State);
        }
        let mut kind = [0];
        match self.file.read_at(&mut kind, 8) {
            Ok(1) if kind == [1] => Some(Kind::Log),
            Ok(1) if kind == [2] => Some(Kind::Data),
            _ => None,
        }
    }

    fn touch(&self, log: Point, data: Point) -> io::Result<()> {
        match self.kind() {
            Some(Kind::Log) => (self.ask)(log, &self.path),
            Some(Kind::Data) => (self.ask)(data, &self.path),
            Some(Kind::State) => (self.ask)(Point::StateWrite, &self.path),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for FaultyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyFile({})", self.path.display())
    }
}

impl DiskFile for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        (self.ask)(Point::Read, &self.path)?;
        self.file.read_at(buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.touch(Point::LogWrite, Point::DataWrite)?;
        self.file.write_all_at(bytes, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        (self.ask)(Point::SetLength, &self.path)?;
        self.file.set_len(length)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.touch(Point::LogSync, Point::DataSync)?;
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.touch(Point::WholeSync, Point::WholeSync)?;
        self.file.sync_all()
    }
}
