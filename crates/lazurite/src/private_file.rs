//! Small files that hold secrets: readable by their owner only, and never half written.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A new version of a file on its way. Until [`Replacement::put`] the old one stands; without it nothing happens.
///
/// There is one at a time: an edit that finds another one under way is refused, so that no two edits take each other back.
#[derive(Debug)]
pub struct Replacement {
    path: PathBuf,
    new: PathBuf,
    file: File,
}

impl Replacement {
    /// `path` may be a link; then what it leads to is replaced.
    pub fn begin(path: &Path) -> io::Result<Replacement> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(".new");
        let new = path.with_file_name(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&new).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                let why =
                    format!("{} is there: somebody else is writing, or was cut off; remove it then", new.display());
                io::Error::new(error.kind(), why)
            }
            _ => error,
        })?;
        Ok(Replacement { path, new, file })
    }

    /// The file that is being replaced.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the file. When this returns, the new one is on disk.
    pub fn put(mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.file.sync_all()?;
        std::fs::rename(&self.new, &self.path)?;
        sync_folder(self.path.parent().unwrap_or(Path::new(".")))
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // After `put` there is nothing of that name any more.
        let _ = std::fs::remove_file(&self.new);
    }
}

/// A name is on disk when its folder is.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TestFolder(PathBuf);

    impl TestFolder {
        fn new(name: &str) -> TestFolder {
            let folder = std::env::temp_dir().join(format!("lazurite-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).unwrap();
            TestFolder(folder)
        }
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_owner_alone_may_read_it() {
        let place = TestFolder::new("private");
        let file = place.0.join("file");
        std::fs::write(&file, "old").unwrap();
        Replacement::begin(&file).unwrap().put(b"new").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn one_at_a_time_and_given_up_without_a_trace() {
        let place = TestFolder::new("one-at-a-time");
        let file = place.0.join("file");
        std::fs::write(&file, "old").unwrap();
        let first = Replacement::begin(&file).unwrap();
        let second = Replacement::begin(&file).unwrap_err();
        assert!(second.to_string().contains("file.new"), "{second}");
        drop(first);
        assert_eq!(std::fs::read_dir(&place.0).unwrap().count(), 1);
        assert_eq!(std::fs::read(&file).unwrap(), b"old");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let place = TestFolder::new("link");
        let (file, link) = (place.0.join("file"), place.0.join("link"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Replacement::begin(&link).unwrap().put(b"new").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
