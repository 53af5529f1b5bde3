//! The data folder: its format, its lock, and what is known to be durable in it.
//!
//! ```text
//! FORMAT     text: uuid, format version, feature flags
//! LOCK       held while a process serves the folder
//! STATE      where replay begins, and what must be found there
//! rows/      the tree
//! segments/  the log and the contents
//! ```

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, Lock};
use crate::segment_files::{SEGMENT_FILES_MAX, SegmentFiles};
use crate::sync::{self, Mutex};

const FORMAT_VERSION: u32 = 2;
/// The oldest format that is still opened; it becomes the present one then.
const FORMAT_OLDEST: u32 = 1;

/// Why a folder cannot be served. One sentence for the operator.
#[derive(Debug)]
pub enum OpenError {
    Io { what: String, error: io::Error },
    InUse(PathBuf),
    NotOurs(PathBuf),
    Format { found: String },
    Damaged { place: String, why: String },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Io { what, error } => write!(f, "{what}: {error}"),
            OpenError::InUse(path) => write!(f, "{} is in use by another process", path.display()),
            OpenError::NotOurs(path) => {
                write!(f, "{} has files in it, but is not a Lazurite data folder", path.display())
            }
            OpenError::Format { found } => {
                write!(
                    f,
                    "the folder has format {found}; this program reads formats {FORMAT_OLDEST} to {FORMAT_VERSION}"
                )
            }
            OpenError::Damaged { place, why } => write!(f, "damaged at {place}: {why}"),
        }
    }
}

impl std::error::Error for OpenError {}

pub fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
    move |error| OpenError::Io { what: what.into(), error }
}

/// An open folder. The lock goes with it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    pub uuid: [u8; 16],
    /// The format it had when it was opened.
    format: u32,
    disk: Arc<dyn Disk>,
    segment_files: Arc<SegmentFiles>,
    lock: Box<dyn Lock>,
    /// As it stands on disk.
    state: Mutex<State>,
}

impl Folder {
    /// Opens the folder, or makes it if there is nothing yet.
    pub fn open(path: &Path, disk: Arc<dyn Disk>) -> Result<Folder, OpenError> {
        disk.create_folder(path).map_err(io_error(format!("cannot make {}", path.display())))?;
        let lock = disk.lock(path).map_err(io_error(format!("cannot lock {}", path.join("LOCK").display())))?;
        let lock = lock.ok_or_else(|| OpenError::InUse(path.to_path_buf()))?;
        let (uuid, format) = match disk.read(&path.join("FORMAT")) {
            Ok(text) => {
                // The last run may have ended between a rename and its sync: what is seen is then in memory only. Nothing is
                // built on it before it is on the disk.
                disk.sync_folder(path).map_err(io_error(format!("cannot sync {}", path.display())))?;
                read_format(&String::from_utf8_lossy(&text))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => (found(path, &*disk)?, FORMAT_VERSION),
            Err(error) => return Err(io_error("cannot read FORMAT")(error)),
        };
        let state = read_state(path, &*disk)?;
        tighten(path, &*disk);
        let segment_files = Arc::new(SegmentFiles::new(SEGMENT_FILES_MAX));
        Ok(Folder { path: path.to_path_buf(), uuid, format, disk, segment_files, lock, state: Mutex::new(state) })
    }

    /// With so many files of segments open at once, beside those that are written to.
    #[must_use]
    pub fn with_segment_files(self, max: u64) -> Folder {
        Folder { segment_files: Arc::new(SegmentFiles::new(max)), ..self }
    }

    pub fn segment_files(&self) -> &Arc<SegmentFiles> {
        &self.segment_files
    }

    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    pub fn rows(&self) -> PathBuf {
        self.path.join("rows")
    }

    pub fn segments(&self) -> PathBuf {
        self.path.join("segments")
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder one of the present format. Comes before the first new STATE, so that an older program refuses the
    /// folder by its format and not because it cannot read STATE.
    pub fn upgrade(&self) -> Result<(), OpenError> {
        if self.format != FORMAT_VERSION {
            write_format(&self.path, &*self.disk, &self.uuid)?;
            tracing::info!(from = self.format, to = FORMAT_VERSION, "the data folder has a new format");
        }
        Ok(())
    }

    /// What STATE says.
    pub fn state(&self) -> State {
        self.state.lock().expect("nothing panics under this lock").clone()
    }

    /// Changes STATE. After an error the old one counts, here and, most likely, on disk; both are right.
    pub fn change_state(&self, change: impl FnOnce(&mut State)) -> io::Result<()> {
        let mut present = self.state.lock().expect("nothing panics under this lock");
        let mut state = present.clone();
        change(&mut state);
        replace_file(&*self.disk, &self.path, "STATE", &state.encode())?;
        *present = state;
        Ok(())
    }

    /// Whether the folder is still where it was when it was opened.
    pub fn is_in_place(&self) -> io::Result<bool> {
        self.lock.is_in_place()
    }
}

/// Founds a new folder. FORMAT comes last: without it the folder counts as empty, and must be.
fn found(path: &Path, disk: &dyn Disk) -> Result<[u8; 16], OpenError> {
    for name in disk.list(path).map_err(io_error("cannot list the folder"))? {
        let ours = ["LOCK", "STATE", "STATE.new", "FORMAT.new", "rows", "segments", "lost+found", "tls"];
        // A configuration may be there before the data, with what editors leave beside it.
        let is_config = name.trim_start_matches('.').starts_with("lazurite.toml");
        if !is_config && !ours.iter().any(|known| name == *known) {
            return Err(OpenError::NotOurs(path.to_path_buf()));
        }
    }
    let mut uuid = [0_u8; 16];
    sync::fill_random(&mut uuid).map_err(io_error("cannot draw a uuid"))?;
    for folder in ["rows", "segments"] {
        let folder = path.join(folder);
        disk.create_folder(&folder).map_err(io_error("cannot make a folder"))?;
        // Founding puts nothing in here before FORMAT is written: files found here are data.
        let names = disk.list(&folder).map_err(io_error("cannot list a folder"))?;
        if let Some(name) = names.first() {
            let why = "there are data, but FORMAT, which says what they are, is missing; nothing was changed".into();
            return Err(OpenError::Damaged { place: folder.join(name).display().to_string(), why });
        }
    }
    sync_above(path, disk);
    let state = State { replay_segment: 1, replay_batch: 1, logs: Some(Vec::new()), ..State::default() };
    replace_file(disk, path, "STATE", &state.encode()).map_err(io_error("cannot write STATE"))?;
    write_format(path, disk, &uuid)?;
    Ok(uuid)
}

/// An earlier start may have made the folder, and those above it, and been killed before they were durable. A folder that
/// cannot be opened is passed over: this program could not have made anything in it.
fn sync_above(path: &Path, disk: &dyn Disk) {
    for above in path.ancestors().skip(1) {
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        if let Err(error) = disk.sync_folder(above) {
            tracing::debug!(folder = %above.display(), %error, "not synced");
        }
    }
}

/// Only the owner may read the data. Folders made by an earlier version were readable for all users.
fn tighten(path: &Path, disk: &dyn Disk) {
    let segments = path.join("segments");
    let loose = [path.to_path_buf(), path.join("rows"), segments.clone()].map(|folder| take_rights(disk, &folder));
    if loose.contains(&true) {
        tracing::warn!(folder = %path.display(), "others could read the data folder; now only its owner can");
        let names = disk.list(&segments).unwrap_or_default();
        let files = names.iter().map(|name| segments.join(name));
        for file in ["FORMAT", "STATE", "LOCK"].map(|name| path.join(name)).into_iter().chain(files) {
            take_rights(disk, &file);
        }
    }
}

/// A folder of another user (a mounted volume, say) keeps its rights; files and folders made in it are readable by their owner only.
fn take_rights(disk: &dyn Disk, path: &Path) -> bool {
    disk.tighten(path).unwrap_or_else(|error| {
        tracing::warn!(path = %path.display(), %error, "others may be able to read this, and it cannot be changed");
        false
    })
}

fn read_state(path: &Path, disk: &dyn Disk) -> Result<State, OpenError> {
    let path = path.join("STATE");
    let bytes = disk.read(&path).map_err(io_error("cannot read STATE"))?;
    let damaged = || OpenError::Damaged { place: path.display().to_string(), why: "its sum does not match".into() };
    State::decode(&bytes).ok_or_else(damaged)
}

fn write_format(path: &Path, disk: &dyn Disk, uuid: &[u8; 16]) -> Result<(), OpenError> {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!("lazurite data folder\nformat={FORMAT_VERSION}\nuuid={hex}\ncompatible=\nincompatible=\n");
    replace_file(disk, path, "FORMAT", text.as_bytes()).map_err(io_error("cannot write FORMAT"))
}

/// The folder's uuid and the number of its format.
fn read_format(text: &str) -> Result<([u8; 16], u32), OpenError> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let format = field("format").unwrap_or("unknown");
    let known = format.parse().ok().filter(|version| (FORMAT_OLDEST..=FORMAT_VERSION).contains(version));
    let version = known.ok_or_else(|| OpenError::Format { found: format.to_owned() })?;
    if let Some(features) = field("incompatible").filter(|features| !features.is_empty()) {
        return Err(OpenError::Format { found: format!("{format} with {features}") });
    }
    let hex = field("uuid").unwrap_or_default();
    u128::from_str_radix(hex, 16)
        .ok()
        .filter(|_| hex.len() == 32)
        .map(|uuid| (uuid.to_be_bytes(), version))
        .ok_or_else(|| OpenError::Damaged { place: "FORMAT".into(), why: "its uuid cannot be read".into() })
}

/// Writes a small file so that a crash leaves the old one or the new one.
fn replace_file(disk: &dyn Disk, folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let new = folder.join(format!("{name}.new"));
    match disk.remove_file(&new) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        removed => removed?,
    }
    let file = disk.create(&new)?;
    file.write_all_at(bytes, 0)?;
    file.sync_all()?;
    disk.rename(&new, &folder.join(name))?;
    disk.sync_folder(folder)
}

/// What the log must yield when it is replayed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// Replay begins with the log segment of this id or the next one after it...
    pub replay_segment: u64,
    /// ...and the batch of this number.
    pub replay_batch: u64,
    /// Sequence numbers and stamps so far are at or below these.
    pub seq_floor: u64,
    pub stamp_floor: u64,
    /// Batches up to this one are known to be durable: if one is missing, that is damage.
    pub durable_batch: u64,
    /// The tree's files hold every batch below this number, and say so themselves. 0: they were never asked to.
    pub in_tree: u64,
    /// Every log from which something may have been acknowledged and that is not in the tree's files. A log is listed
    /// here before its first batch. Format 1 did not list them.
    pub logs: Option<Vec<KnownLog>>,
}

/// A log that must be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownLog {
    pub id: u64,
    /// Where it ended when it was replayed: what stands behind was cut off. `None`: batches may have come since.
    pub end: Option<u64>,
}

const NUMBERS: usize = 5;
const MAGIC_1: &[u8; 8] = b"LAZSTATE";
const MAGIC_2: &[u8; 8] = b"LAZSTAT2";
/// How an open end is written.
const OPEN_END: u64 = u64::MAX;

impl State {
    fn encode(&self) -> Vec<u8> {
        let numbers = [self.replay_segment, self.replay_batch, self.seq_floor, self.stamp_floor, self.durable_batch];
        let mut out = MAGIC_2.to_vec();
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        out.extend_from_slice(&self.in_tree.to_le_bytes());
        for log in self.logs.iter().flatten() {
            out.extend_from_slice(&log.id.to_le_bytes());
            out.extend_from_slice(&log.end.unwrap_or(OPEN_END).to_le_bytes());
        }
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<State> {
        let (body, crc) = bytes.split_last_chunk::<4>()?;
        if crc32c::crc32c(body).to_le_bytes() != *crc {
            return None;
        }
        let (magic, body) = body.split_first_chunk::<8>()?;
        if body.len() % 8 != 0 {
            return None;
        }
        let mut numbers =
            body.chunks_exact(8).map(|number| u64::from_le_bytes(number.try_into().expect("eight bytes")));
        let state = State {
            replay_segment: numbers.next()?,
            replay_batch: numbers.next()?,
            seq_floor: numbers.next()?,
            stamp_floor: numbers.next()?,
            durable_batch: numbers.next()?,
            in_tree: 0,
            logs: None,
        };
        if magic == MAGIC_1 {
            return (body.len() == NUMBERS * 8).then_some(state);
        }
        let in_tree = numbers.next()?;
        let mut logs = Vec::new();
        while let Some(id) = numbers.next() {
            logs.push(KnownLog { id, end: Some(numbers.next()?).filter(|end| *end != OPEN_END) });
        }
        (magic == MAGIC_2).then_some(State { in_tree, logs: Some(logs), ..state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use crate::faults::{FaultyDisk, Point};

    fn real() -> Arc<dyn Disk> {
        Arc::new(RealDisk)
    }

    #[test]
    fn a_folder_has_one_holder_and_keeps_its_uuid() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), real()).expect("a new folder");
        assert!(matches!(Folder::open(dir.path(), real()), Err(OpenError::InUse(_))));
        let uuid = folder.uuid;
        drop(folder);
        assert_eq!(Folder::open(dir.path(), real()).expect("again").uuid, uuid);
    }

    #[test]
    fn somebody_elses_folder_is_left_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("thesis.tex"), "x").expect("a file");
        assert!(matches!(Folder::open(dir.path(), real()), Err(OpenError::NotOurs(_))));
        assert!(!dir.path().join("segments").exists());
    }

    #[test]
    fn data_without_their_format_are_left_alone_and_named() {
        for place in ["segments/0000000000000001.seg", "rows/current"] {
            let dir = tempfile::tempdir().expect("a folder");
            drop(Folder::open(dir.path(), real()).expect("a new folder"));
            std::fs::write(dir.path().join(place), "data").expect("a file");
            std::fs::remove_file(dir.path().join("FORMAT")).expect("removed");
            let error = Folder::open(dir.path(), real()).expect_err("refused").to_string();
            assert!(error.contains(place) && error.contains("FORMAT"), "{error}");
            assert_eq!(std::fs::read(dir.path().join(place)).expect("still there"), b"data");
            assert!(!dir.path().join("FORMAT").exists());
        }
    }

    #[test]
    fn a_folder_that_was_half_founded_is_founded_again() {
        let dir = tempfile::tempdir().expect("a folder");
        drop(Folder::open(dir.path(), real()).expect("a new folder"));
        std::fs::rename(dir.path().join("FORMAT"), dir.path().join("FORMAT.new")).expect("renamed");
        assert!(Folder::open(dir.path(), real()).is_ok());
    }

    /// The folders may have been made by a start that was killed before it could sync what is above them.
    #[test]
    fn founding_makes_the_folders_above_durable_whoever_made_them() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("one/two");
        std::fs::create_dir_all(&path).expect("made");
        let synced = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&synced);
        let disk = FaultyDisk::new(move |point, path| {
            if point == Point::FolderSync {
                note.lock().expect("no panic").push(path.to_path_buf());
            }
            Ok(())
        });
        Folder::open(&path, Arc::new(disk)).expect("founded");
        let synced = synced.lock().expect("no panic");
        for above in [dir.path().join("one"), dir.path().to_path_buf()] {
            assert!(synced.contains(&above), "{} is not among {synced:?}", above.display());
        }
    }

    #[test]
    fn a_configuration_may_be_there_first() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in ["lazurite.toml", ".lazurite.toml.swp"] {
            std::fs::write(dir.path().join(name), "x").expect("a file");
        }
        std::fs::create_dir(dir.path().join("tls")).expect("a folder");
        assert!(Folder::open(dir.path(), real()).is_ok());
    }

    #[test]
    fn another_format_is_refused_by_name() {
        let dir = tempfile::tempdir().expect("a folder");
        drop(Folder::open(dir.path(), real()).expect("a new folder"));
        let text = std::fs::read_to_string(dir.path().join("FORMAT")).expect("text");
        std::fs::write(dir.path().join("FORMAT"), text.replace("format=2", "format=3")).expect("written");
        let error = Folder::open(dir.path(), real()).expect_err("refused");
        assert!(error.to_string().contains("format 3"), "{error}");
        std::fs::write(dir.path().join("FORMAT"), text.replace("incompatible=", "incompatible=x")).expect("written");
        assert!(matches!(Folder::open(dir.path(), real()), Err(OpenError::Format { .. })));
    }

    #[test]
    fn a_damaged_state_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        drop(Folder::open(dir.path(), real()).expect("a new folder"));
        let mut bytes = std::fs::read(dir.path().join("STATE")).expect("state");
        bytes[12] ^= 1;
        std::fs::write(dir.path().join("STATE"), bytes).expect("written");
        assert!(matches!(Folder::open(dir.path(), real()), Err(OpenError::Damaged { .. })));
    }

    #[test]
    fn a_state_reads_back_as_written() {
        let logs = vec![KnownLog { id: 7, end: Some(8192) }, KnownLog { id: 9, end: None }];
        let state = State { replay_segment: 7, in_tree: 3, logs: Some(logs), ..State::default() };
        assert_eq!(State::decode(&state.encode()), Some(state));
    }
}
