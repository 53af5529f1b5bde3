//! Files that are read again while the server runs: on SIGHUP, and when they change.
//!
//! A file that cannot be used changes nothing: what was read before goes on, and the log says so.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime};

/// How often the files are looked at.
const PAUSE: Duration = Duration::from_secs(1);

/// Something that was made from files and can be made from them again.
pub struct Reload {
    files: Files,
    again: Box<dyn FnMut() -> Result<(), String> + Send>,
}

/// Files as they were at some time.
pub struct Files {
    paths: Vec<PathBuf>,
    seen: Vec<Option<Stamp>>,
}

impl Files {
    /// To be called before the files are read for the first time: what changes in between is noticed then.
    pub fn now<'a>(files: impl IntoIterator<Item = &'a Path>) -> Files {
        let paths: Vec<PathBuf> = files.into_iter().map(Path::to_path_buf).collect();
        Files { seen: paths.iter().map(|path| stamp(path)).collect(), paths }
    }

    fn have_changed(&mut self) -> bool {
        let now: Vec<Option<Stamp>> = self.paths.iter().map(|path| stamp(path)).collect();
        let have_changed = now != self.seen;
        self.seen = now;
        have_changed
    }
}

impl Reload {
    /// `again` reads the files and puts what they say into effect, or says in a sentence why it cannot.
    pub fn new(files: Files, again: impl FnMut() -> Result<(), String> + Send + 'static) -> Reload {
        Reload { files, again: Box::new(again) }
    }

    fn look(&mut self, is_asked: bool) {
        // Looked at first, also when nobody needs to: it is what is read now that counts as seen.
        let have_changed = self.files.have_changed();
        if !(have_changed || is_asked) {
            return;
        }
        match (self.again)() {
            Ok(()) => self.files.paths.iter().for_each(|path| tracing::info!("{} was read again", path.display())),
            Err(sentence) => tracing::warn!("{sentence} What was read before stays in effect."),
        }
    }
}

/// Looks after the files until the other end of `asked` is gone. Reading may take long where files are far away, so this
/// has a thread of its own.
pub fn watch(mut reloads: Vec<Reload>, asked: Receiver<()>) -> std::io::Result<()> {
    let look_after = move || {
        loop {
            let is_asked = match asked.recv_timeout(PAUSE) {
                Ok(()) => true,
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            reloads.iter_mut().for_each(|reload| reload.look(is_asked));
        }
    };
    std::thread::Builder::new().name("reload".into()).spawn(look_after).map(drop)
}

/// What differs when a file was written or another one took its place.
#[derive(PartialEq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    #[cfg(unix)]
    inode: u64,
}

/// `None`: there is nothing, or nothing we may see.
fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(Stamp {
        modified: metadata.modified().ok(),
        length: metadata.len(),
        #[cfg(unix)]
        inode: std::os::unix::fs::MetadataExt::ino(&metadata),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn read_again_when_changed_or_asked_and_not_otherwise() {
        let file = std::env::temp_dir().join(format!("lazurite-reload-{}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        let count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&count);
        let mut reload = Reload::new(Files::now([file.as_path()]), move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Err("It is bad.".into())
        });
        let mut look = |asked| {
            reload.look(asked);
            count.load(Ordering::Relaxed)
        };
        assert_eq!(look(false), 0);
        std::fs::write(&file, "one").unwrap();
        assert_eq!(look(false), 1);
        assert_eq!(look(false), 1);
        assert_eq!(look(true), 2);
        std::fs::write(&file, "other").unwrap();
        assert_eq!(look(false), 3);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(look(false), 4);
        assert_eq!(look(false), 4);
    }
}
