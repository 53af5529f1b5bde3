//! A disk that remembers what was written, what was synced, and what lies between, and that can be cut off at any moment.
//!
//! - *Files* keep the bytes that programs see apart from those that are on the disk (`pages.rs`).
//! - *Folders* do the same with their entries: a create, a rename or an unlink is durable after a sync of the folder.
//! - *The tree's folder* is a real one, because lsm-tree does its own input and output. It is compared before and after each
//!   call in which the tree may write; a crash inside such a call is put together from the two (`tree_folder.rs`).
//!
//! After a **kill** everything that was written is still seen, and still not synced. After a **power cut** each change that was
//! not synced may be there or not. A **failed sync** is reported once: later ones say yes, and a power cut shows the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use engine_embedded::disk::{Disk, DiskFile, Lock};

use crate::pages::{Change, Inode, PAGE};
use crate::story::Story;
use crate::tree_folder::TreeFolder;
use histories::Dice;

/// What a disk that is not full has to say.
const FREE_BYTES: u64 = 1 << 40;

/// How a life of the machine ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// kill -9: the system and its page cache live on.
    Kill,
    PowerCut,
}

/// What goes wrong, and when; counted in operations of the disk.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The machine stops at this operation.
    pub stops_at: Option<u64>,
    /// It stops in the middle of this call of the tree.
    pub stops_in_tree_work: Option<u64>,
    /// Out of 1,000 syncs of a file.
    pub failing_syncs: u64,
    /// Out of 100 data segments, how many are bad: half of their syncs fail. Logs are spared, because the process ends when
    /// the sync of a log fails.
    pub bad_files: u64,
    /// Out of 1,000 writes.
    pub failing_writes: u64,
    /// Between these operations nothing can grow.
    pub full: std::ops::Range<u64>,
}

impl Plan {
    /// Nothing goes wrong but that the machine stops.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.failing_syncs == 0 && self.bad_files == 0 && self.failing_writes == 0 && self.full.is_empty()
    }
}

/// The disk of one life. Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk(Arc<Shared>);

struct Shared {
    platters: Mutex<Platters>,
    /// Lets others run; is told whether the machine is off, and then does not come back. Never called with the lock held.
    pause: Box<dyn Fn(bool) + Send + Sync>,
    story: Arc<Story>,
}

/// What outlives a crash, in part.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    inodes: Vec<Inode>,
    folders: BTreeMap<PathBuf, Folder>,
    tree: TreeFolder,
}

#[derive(Debug)]
struct Platters {
    contents: Contents,
    plan: Plan,
    seed: u64,
    random: Dice,
    operations: u64,
    tree_works: u64,
    locked: BTreeSet<PathBuf>,
    is_off: bool,
}

/// The entries of a folder, as programs see them and as they are on the disk.
#[derive(Clone, Debug, Default)]
struct Folder {
    seen: Entries,
    stored: Entries,
    pending: Vec<EntryChange>,
}

type Entries = BTreeMap<String, usize>;

#[derive(Clone, Debug)]
enum EntryChange {
    Create(String, usize),
    /// From, to, and the file: what else may have stood under the old name is not moved.
    Rename(String, String, usize),
    Remove(String),
}

impl EntryChange {
    fn apply(&self, to: &mut Entries) {
        match self {
            EntryChange::Create(name, inode) => {
                to.insert(name.clone(), *inode);
            }
            EntryChange::Rename(from, name, inode) => {
                if to.get(from) == Some(inode) {
                    to.remove(from);
                }
                to.insert(name.clone(), *inode);
            }
            EntryChange::Remove(name) => {
                to.remove(name);
            }
        }
    }
}

impl Folder {
    fn change(&mut self, change: EntryChange) {
        change.apply(&mut self.seen);
        self.pending.push(change);
    }

    /// Most file systems keep the order of entries; POSIX promises nothing.
    fn power_cut(&mut self, random: &mut Dice) {
        let changes = std::mem::take(&mut self.pending);
        if random.chance(70) {
            let kept = usize::try_from(random.below(changes.len() as u64 + 1)).unwrap_or(0);
            changes[..kept].iter().for_each(|change| change.apply(&mut self.stored));
        } else {
            changes.iter().filter(|_| random.chance(50)).for_each(|change| change.apply(&mut self.stored));
        }
        self.seen = self.stored.clone();
    }
}

impl Contents {
    /// What the next life finds.
    #[must_use]
    pub fn after(mut self, ending: Ending, random: &mut Dice) -> Contents {
        if ending == Ending::PowerCut {
            self.inodes.iter_mut().for_each(|inode| inode.power_cut(random));
            self.folders.values_mut().for_each(|folder| folder.power_cut(random));
            self.tree.power_cut(random);
        }
        self
    }

    /// Flips bits in a file, as a disk that goes bad does. Returns whether the file is there and that long.
    pub fn damage(&mut self, path: &Path, offset: u64) -> bool {
        let Some(inode) = self.find(path) else { return false };
        self.inodes[inode].damage(offset)
    }

    /// An error names a file of `before` that is not there any more.
    pub fn has_all_of(&self, before: &Contents) -> Result<(), String> {
        let here: BTreeSet<PathBuf> = self.files().into_iter().map(|(path, _)| path).collect();
        match before.files().into_iter().find(|(path, _)| !here.contains(path)) {
            Some((path, _)) => Err(format!("{} is gone", path.display())),
            None => Ok(()),
        }
    }

    /// Takes a file away, durably.
    pub fn lose(&mut self, path: &Path) -> bool {
        let Some(folder) = path.parent().and_then(|parent| self.folders.get_mut(parent)) else { return false };
        let name = name_of(path);
        folder.stored.remove(&name);
        folder.seen.remove(&name).is_some()
    }

    /// The files below a folder and how long they are, in order.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let mut files = Vec::new();
        for (path, folder) in &self.folders {
            files
                .extend(folder.seen.iter().map(|(name, inode)| (path.join(name), self.inodes[*inode].cached.length())));
        }
        files
    }

    fn find(&self, path: &Path) -> Option<usize> {
        self.folders.get(path.parent()?)?.seen.get(&name_of(path)).copied()
    }
}

impl SimDisk {
    /// A disk with these contents, on which `pause` is called before each operation.
    #[must_use]
    pub fn new(
        contents: &Contents,
        plan: Plan,
        seed: u64,
        story: Arc<Story>,
        pause: impl Fn(bool) + Send + Sync + 'static,
    ) -> SimDisk {
        let mut contents = contents.clone();
        contents.tree.lay_out();
        let platters = Platters {
            contents,
            plan,
            seed,
            random: Dice::new(seed),
            operations: 0,
            tree_works: 0,
            locked: BTreeSet::new(),
            is_off: false,
        };
        SimDisk(Arc::new(Shared { platters: Mutex::new(platters), pause: Box::new(pause), story }))
    }

    /// What is on it now.
    #[must_use]
    pub fn contents(&self) -> Contents {
        let mut platters = self.platters();
        if !platters.is_off {
            platters.contents.tree.look();
        }
        platters.contents.clone()
    }

    pub fn is_off(&self) -> bool {
        self.platters().is_off
    }

    /// Nothing reaches the disk any more.
    pub fn switch_off(&self) {
        let mut platters = self.platters();
        if !platters.is_off {
            platters.contents.tree.look();
            platters.is_off = true;
        }
    }

    fn platters(&self) -> MutexGuard<'_, Platters> {
        self.0.platters.lock().expect("nothing panics under this lock")
    }

    /// One operation: others may run before it, and it may be the last.
    fn operation<T>(
        &self,
        what: fmt::Arguments<'_>,
        run: impl FnOnce(&mut Platters) -> io::Result<T>,
    ) -> io::Result<T> {
        (self.0.pause)(false);
        let done = {
            let mut platters = self.platters();
            platters.operations += 1;
            if platters.plan.stops_at.is_some_and(|last| platters.operations >= last) {
                platters.stop();
            }
            if platters.is_off { Err(off()) } else { run(&mut platters) }
        };
        let ended = done.as_ref().err().map(io::Error::to_string);
        match ended {
            Some(error) => self.0.story.tell(format_args!("  disk: {what}: {error}")),
            None => self.0.story.tell(format_args!("  disk: {what}")),
        }
        self.rest();
        done
    }

    /// A machine that is off does not go on: whoever runs it stops here.
    fn rest(&self) {
        if self.is_off() {
            (self.0.pause)(true);
        }
    }

    fn file(&self, number: usize, path: &Path) -> Box<dyn DiskFile> {
        Box::new(OpenFile { disk: self.clone(), number, name: name_of(path) })
    }

    fn sync_inode(&self, number: usize, name: &str) -> io::Result<()> {
        let covered = self.operation(format_args!("begin to sync {name}"), |platters| {
            Ok(platters.contents.inodes[number].pending())
        })?;
        self.operation(format_args!("synced {name}"), |platters| {
            let fails = platters.sync_fails(number);
            let inode = &mut platters.contents.inodes[number];
            if fails {
                inode.sync_failed(covered);
                return Err(broken());
            }
            inode.synced(covered);
            Ok(())
        })
    }
}

impl Platters {
    fn stop(&mut self) {
        if !self.is_off {
            self.contents.tree.look();
            self.is_off = true;
        }
    }

    fn is_full(&self) -> bool {
        self.plan.full.contains(&self.operations)
    }

    fn sync_fails(&mut self, number: usize) -> bool {
        let (failing, bad) = (self.plan.failing_syncs, self.plan.bad_files);
        let is_bad = self.is_data_segment(number) && Dice::new(self.seed ^ (number as u64) << 32).below(100) < bad;
        self.random.below(1000) < if is_bad { 500 } else { failing }
    }

    /// By the kind that stands in its header, once there is more than the header.
    fn is_data_segment(&self, number: usize) -> bool {
        if self.contents.inodes[number].cached.length() <= PAGE as u64 {
            return false;
        }
        let mut header = [0; 9];
        self.contents.inodes[number].cached.read(&mut header, 0) == 9 && header.starts_with(b"LAZSEG") && header[8] == 2
    }

    fn folder(&mut self, path: &Path) -> io::Result<&mut Folder> {
        self.contents.folders.get_mut(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn parent(&mut self, path: &Path) -> io::Result<&mut Folder> {
        self.folder(path.parent().ok_or(io::ErrorKind::NotFound)?)
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        self.contents.find(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create(&mut self, path: &Path) -> io::Result<usize> {
        if self.is_full() {
            return Err(full());
        }
        if self.contents.find(path).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let number = self.contents.inodes.len();
        self.parent(path)?.change(EntryChange::Create(name_of(path), number));
        self.contents.inodes.push(Inode::default());
        Ok(number)
    }

    fn write(&mut self, number: usize, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (is_full, failing) = (self.is_full(), self.plan.failing_writes);
        let fails = self.random.below(1000) < failing;
        let grows = offset + bytes.len() as u64 > self.contents.inodes[number].cached.length();
        let refused = match (is_full && grows, fails) {
            (true, _) => Some(full()),
            (false, true) => Some(broken()),
            (false, false) => None,
        };
        // What fails may have been done in part.
        let part = if refused.is_some() { self.random.below((bytes.len() / PAGE) as u64 + 1) } else { 0 };
        let done = if refused.is_some() { usize::try_from(part).unwrap_or(0) * PAGE } else { bytes.len() };
        if done > 0 {
            self.contents.inodes[number].change(Change::Write { offset, bytes: Arc::from(&bytes[..done]) });
        }
        refused.map_or(Ok(()), Err)
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn off() -> io::Error {
    io::Error::other("the machine is off")
}

/// EIO.
fn broken() -> io::Error {
    io::Error::from_raw_os_error(5)
}

fn full() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

impl Disk for SimDisk {
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.operation(format_args!("make folder {}", path.display()), |platters| {
            for folder in path.ancestors() {
                platters.contents.folders.entry(folder.to_path_buf()).or_default();
            }
            Ok(())
        })
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut platters = self.platters();
        let mut names: Vec<String> = platters.folder(path)?.seen.keys().cloned().collect();
        let below = platters.contents.folders.keys().filter(|folder| folder.parent() == Some(path));
        names.extend(below.map(|folder| name_of(folder)));
        if path.ends_with("rows") {
            names.extend(platters.contents.tree.names());
        }
        Ok(names)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let number = self.operation(format_args!("create {}", path.display()), |platters| platters.create(path))?;
        Ok(self.file(number, path))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let number = self.platters().find(path)?;
        Ok(self.file(number, path))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let platters = self.platters();
        let file = &platters.contents.inodes[platters.find(path)?].cached;
        let mut bytes = vec![0; usize::try_from(file.length()).unwrap_or(0)];
        file.read(&mut bytes, 0);
        Ok(bytes)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.operation(format_args!("rename {} to {}", from.display(), to.display()), |platters| {
            let inode = platters.find(from)?;
            platters.parent(from)?.change(EntryChange::Rename(name_of(from), name_of(to), inode));
            Ok(())
        })
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.operation(format_args!("unlink {}", path.display()), |platters| {
            platters.find(path)?;
            platters.parent(path)?.change(EntryChange::Remove(name_of(path)));
            Ok(())
        })
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.operation(format_args!("sync folder {}", path.display()), |platters| {
            let failing = platters.plan.failing_syncs;
            if platters.random.below(1000) < failing {
                return Err(broken());
            }
            let folder = platters.folder(path)?;
            let changes = std::mem::take(&mut folder.pending);
            changes.iter().for_each(|change| change.apply(&mut folder.stored));
            Ok(())
        })
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        Ok(if self.platters().is_full() { 0 } else { FREE_BYTES })
    }

    fn lock(&self, folder: &Path) -> io::Result<Option<Box<dyn Lock>>> {
        self.operation(format_args!("lock {}", folder.display()), |platters| {
            let path = folder.join("LOCK");
            if platters.contents.find(&path).is_none() {
                platters.create(&path)?;
            }
            let is_free = platters.locked.insert(folder.to_path_buf());
            Ok(is_free.then(|| Box::new(Held { disk: self.clone(), folder: folder.to_path_buf() }) as Box<dyn Lock>))
        })
    }

    fn tree_folder(&self, _path: &Path) -> PathBuf {
        self.platters().contents.tree.path()
    }

    fn tree_work(&self, work: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let before = self.operation(format_args!("the tree begins to work"), |platters| {
            if platters.is_full() {
                return Err(full());
            }
            platters.tree_works += 1;
            platters.contents.tree.look();
            Ok(platters.contents.tree.clone())
        })?;
        let done = work();
        self.operation(format_args!("the tree has worked"), |platters| {
            platters.contents.tree.look();
            if platters.plan.stops_in_tree_work == Some(platters.tree_works) {
                platters.contents.tree.stopped_since(&before, &mut platters.random);
                platters.is_off = true;
            }
            Ok(())
        })?;
        done
    }
}

impl DiskFile for OpenFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(self.disk.platters().contents.inodes[self.number].cached.read(buffer, offset))
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let what = format_args!("write {} at {offset}: {} bytes", self.name, bytes.len());
        self.disk.operation(what, |platters| platters.write(self.number, bytes, offset))
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.disk.operation(format_args!("cut {} to {length}", self.name), |platters| {
            platters.contents.inodes[self.number].change(Change::SetLen(length));
            Ok(())
        })
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.platters().contents.inodes[self.number].cached.length())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.sync_inode(self.number, &self.name)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.disk.sync_inode(self.number, &self.name)
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimDisk")
    }
}

struct OpenFile {
    disk: SimDisk,
    number: usize,
    name: String,
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

struct Held {
    disk: SimDisk,
    folder: PathBuf,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.disk.platters().locked.remove(&self.folder);
    }
}

impl Lock for Held {
    fn is_in_place(&self) -> io::Result<bool> {
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "/data/file";

    fn disk(contents: &Contents, plan: Plan) -> SimDisk {
        let disk = SimDisk::new(contents, plan, 1, Arc::default(), |_| {});
        disk.create_folder(Path::new("/data")).expect("made");
        disk
    }

    /// A disk with a file that holds `old`, synced with its folder.
    fn with_file(plan: Plan) -> (SimDisk, Box<dyn DiskFile>) {
        let calm = disk(&Contents::default(), Plan::default());
        let file = calm.create(Path::new(FILE)).expect("made");
        file.write_all_at(b"old", 0).expect("written");
        file.sync_all().expect("synced");
        calm.sync_folder(Path::new("/data")).expect("synced");
        let disk = disk(&calm.contents(), plan);
        let file = disk.open(Path::new(FILE)).expect("opened");
        (disk, file)
    }

    fn read(contents: &Contents, path: &str) -> Option<Vec<u8>> {
        disk(contents, Plan::default()).read(Path::new(path)).ok()
    }

    /// What may be there after each of many power cuts.
    fn after_power_cuts(disk: &SimDisk, path: &str) -> BTreeSet<Option<Vec<u8>>> {
        (0..200).map(|seed| read(&disk.contents().after(Ending::PowerCut, &mut Dice::new(seed)), path)).collect()
    }

    fn one_of(all: &[Option<&[u8]>]) -> BTreeSet<Option<Vec<u8>>> {
        all.iter().map(|bytes| bytes.map(<[u8]>::to_vec)).collect()
    }

    #[test]
    fn a_write_that_was_not_synced_may_be_lost_in_a_power_cut_and_not_in_a_kill() {
        let (disk, file) = with_file(Plan::default());
        file.write_all_at(b"new", 0).expect("written");
        assert_eq!(after_power_cuts(&disk, FILE), one_of(&[Some(b"old"), Some(b"new")]));
        let killed = disk.contents().after(Ending::Kill, &mut Dice::new(1));
        assert_eq!(read(&killed, FILE).as_deref(), Some(&b"new"[..]));
        file.sync_data().expect("synced");
        assert_eq!(after_power_cuts(&disk, FILE), one_of(&[Some(b"new")]));
    }

    #[test]
    fn what_a_kill_left_unsynced_is_still_unsynced_in_the_next_life() {
        let (disk, file) = with_file(Plan::default());
        file.write_all_at(b"new", 0).expect("written");
        let next = super::tests::disk(&disk.contents().after(Ending::Kill, &mut Dice::new(1)), Plan::default());
        assert_eq!(after_power_cuts(&next, FILE), one_of(&[Some(b"old"), Some(b"new")]));
        next.open(Path::new(FILE)).expect("opened").sync_data().expect("synced");
        assert_eq!(after_power_cuts(&next, FILE), one_of(&[Some(b"new")]));
    }

    #[test]
    fn a_failed_sync_is_reported_once_and_the_next_one_lies() {
        let (disk, file) = with_file(Plan { failing_syncs: 1000, ..Plan::default() });
        file.write_all_at(b"new", 0).expect("written");
        assert!(file.sync_data().is_err());
        disk.platters().plan.failing_syncs = 0;
        file.sync_data().expect("the page counts as clean");
        let mut seen = [0; 3];
        assert_eq!(file.read_at(&mut seen, 0).expect("read"), 3);
        assert_eq!(&seen, b"new", "the page cache still shows it");
        assert_eq!(after_power_cuts(&disk, FILE), one_of(&[Some(b"old"), Some(b"new")]));
        file.write_all_at(b"new", 0).expect("written again");
        file.sync_data().expect("synced");
        assert_eq!(after_power_cuts(&disk, FILE), one_of(&[Some(b"new")]));
    }

    #[test]
    fn a_rename_may_be_lost_until_its_folder_is_synced() {
        let (disk, _) = with_file(Plan::default());
        let new = disk.create(Path::new("/data/file.new")).expect("made");
        new.write_all_at(b"new", 0).expect("written");
        new.sync_all().expect("synced");
        disk.rename(Path::new("/data/file.new"), Path::new(FILE)).expect("renamed");
        assert_eq!(after_power_cuts(&disk, FILE), one_of(&[Some(b"old"), Some(b"new")]));
        disk.sync_folder(Path::new("/data")).expect("synced");
        assert_eq!(after_power_cuts(&disk, FILE), one_of(&[Some(b"new")]));
    }

    #[test]
    fn a_new_file_and_an_unlink_may_be_lost_until_their_folder_is_synced() {
        let (disk, _) = with_file(Plan::default());
        disk.create(Path::new("/data/other")).expect("made").sync_all().expect("synced");
        disk.remove_file(Path::new(FILE)).expect("removed");
        assert_eq!(after_power_cuts(&disk, "/data/other"), one_of(&[None, Some(b"")]));
        assert_eq!(after_power_cuts(&disk, FILE), one_of(&[None, Some(b"old")]));
        disk.sync_folder(Path::new("/data")).expect("synced");
        assert_eq!(after_power_cuts(&disk, "/data/other"), one_of(&[Some(b"")]));
        assert_eq!(after_power_cuts(&disk, FILE), one_of(&[None]));
    }

    #[test]
    fn a_long_write_may_be_torn_between_any_two_sectors() {
        let (disk, file) = with_file(Plan::default());
        file.write_all_at(&[1; 2 * PAGE], 0).expect("written");
        file.sync_all().expect("synced");
        file.write_all_at(&[2; 2 * PAGE], 0).expect("written");
        let left = after_power_cuts(&disk, FILE);
        let count = |byte: u8, bytes: &[u8]| bytes.iter().filter(|found| **found == byte).count();
        assert!(left.iter().flatten().all(|bytes| count(1, bytes) + count(2, bytes) == 2 * PAGE));
        assert!(left.iter().flatten().all(|bytes| count(2, bytes) % 512 == 0));
        let torn_in_a_page = left.iter().flatten().any(|bytes| count(2, bytes) % PAGE != 0);
        let late_without_early = left.iter().flatten().any(|bytes| bytes[0] == 1 && bytes[PAGE] == 2);
        assert!(torn_in_a_page && late_without_early, "{} states", left.len());
    }

    #[test]
    fn a_cut_may_be_lost_until_it_is_synced() {
        let (disk, file) = with_file(Plan::default());
        file.set_len(1).expect("cut");
        assert_eq!(after_power_cuts(&disk, FILE), one_of(&[Some(b"o"), Some(b"old")]));
        file.sync_all().expect("synced");
        assert_eq!(after_power_cuts(&disk, FILE), one_of(&[Some(b"o")]));
    }

    #[test]
    fn a_full_disk_takes_no_growth_and_lets_the_rest_be_written() {
        let (disk, file) = with_file(Plan { full: 0..u64::MAX, ..Plan::default() });
        file.write_all_at(b"new", 0).expect("there is room already");
        let error = file.write_all_at(&[1; 10], 0).expect_err("it would grow");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(disk.create(Path::new("/data/other")).is_err());
        assert_eq!(disk.free_bytes(Path::new("/data")).expect("asked"), 0);
    }

    #[test]
    fn nothing_reaches_a_machine_that_is_off() {
        let (disk, file) = with_file(Plan { stops_at: Some(2), ..Plan::default() });
        assert!(file.write_all_at(b"new", 0).is_err(), "making the folder was the first operation");
        assert!(disk.is_off());
        assert_eq!(after_power_cuts(&disk, FILE), one_of(&[Some(b"old")]));
    }
}
