//! The folder in which lsm-tree does its own input and output: a real one, looked at before and after each call.
//!
//! lsm-tree writes new files, syncs each and its folder, and then makes them count by renaming a new `current` into place. Files
//! that no version needs are unlinked after that, and nobody syncs the unlinks. So a crash inside a call leaves either the old
//! `current` beside new files in any state, or the new one with all of them whole and any of the old files still there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use histories::Dice;

const CURRENT: &str = "current";

type Files = BTreeMap<String, Arc<[u8]>>;

/// What the folder holds, and what was unlinked in it and might come back.
#[derive(Clone, Debug, Default)]
pub struct TreeFolder {
    files: Files,
    unlinked: Files,
    scratch: Option<Arc<Scratch>>,
}

/// A real folder. It goes with its last user.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl TreeFolder {
    /// Makes a fresh real folder with what this one holds.
    pub fn lay_out(&mut self) {
        let scratch = scratch_path();
        for (name, bytes) in &self.files {
            let path = scratch.join(name);
            std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a scratch folder");
            std::fs::write(path, bytes).expect("a scratch file");
        }
        std::fs::create_dir_all(&scratch).expect("a scratch folder");
        // Where the tree keeps its tables: it does not make the folder again when there is a version already.
        if !self.files.is_empty() {
            std::fs::create_dir_all(scratch.join("tables")).expect("a scratch folder");
        }
        self.scratch = Some(Arc::new(Scratch(scratch)));
    }

    pub fn path(&self) -> PathBuf {
        self.scratch.as_ref().map(|scratch| scratch.0.clone()).unwrap_or_default()
    }

    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.files.keys().cloned()
    }

    /// Notes what is in the real folder now.
    pub fn look(&mut self) {
        let mut found = Files::new();
        gather(&self.path(), "", &self.files, &mut found);
        let gone = self.files.iter().filter(|(name, _)| !found.contains_key(*name) && *name != CURRENT);
        self.unlinked.extend(gone.map(|(name, bytes)| (name.clone(), Arc::clone(bytes))));
        self.unlinked.retain(|name, _| !found.contains_key(name));
        self.files = found;
    }

    /// The machine stopped in the middle of what led from `before` to here.
    pub fn stopped_since(&mut self, before: &TreeFolder, random: &mut Dice) {
        let switched = self.files.get(CURRENT) != before.files.get(CURRENT);
        let after = std::mem::take(&mut self.files);
        let is_new = |name: &String| !before.files.contains_key(name);
        if switched && random.chance(50) {
            self.files = after;
            let gone = before.files.iter().filter(|(name, _)| !self.files.contains_key(*name));
            let back: Vec<_> = gone.filter(|_| random.chance(50)).map(|(n, b)| (n.clone(), Arc::clone(b))).collect();
            self.files.extend(back);
        } else {
            self.files = before.files.clone();
            for (name, bytes) in after.into_iter().filter(|(name, _)| is_new(name) && *name != CURRENT) {
                match random.below(3) {
                    0 => {}
                    1 => {
                        let length = usize::try_from(random.below(bytes.len() as u64 + 1)).unwrap_or(0);
                        self.files.insert(name, Arc::from(&bytes[..length]));
                    }
                    _ => {
                        self.files.insert(name, bytes);
                    }
                }
            }
        }
    }

    /// Unlinks that nobody synced may not have happened.
    pub fn power_cut(&mut self, random: &mut Dice) {
        let unlinked = std::mem::take(&mut self.unlinked);
        self.files.extend(unlinked.into_iter().filter(|_| random.chance(50)));
    }
}

/// Reads what is new or may have been written again.
fn gather(root: &Path, below: &str, known: &Files, found: &mut Files) {
    let Ok(entries) = std::fs::read_dir(root.join(below)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let name = if below.is_empty() { name } else { format!("{below}/{name}") };
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            gather(root, &name, known, found);
            continue;
        }
        // Tables are written once, and their numbers are not used again.
        match known.get(&name).filter(|_| name.starts_with("tables/")) {
            Some(bytes) => {
                found.insert(name, Arc::clone(bytes));
            }
            None => {
                let Ok(bytes) = std::fs::read(root.join(&name)) else { continue };
                found.insert(name, Arc::from(bytes));
            }
        }
    }
}

fn scratch_path() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    if number == 0 {
        // A process that was killed may have had the same number.
        clear_scratch_of(std::process::id());
    }
    scratch_of(std::process::id()).join(number.to_string())
}

/// Where a process keeps its real folders: in memory where that is possible.
fn scratch_of(process: u32) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let root = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    root.join(format!("lazurite-sim-{process}"))
}

/// Removes what a process leaves behind: a machine that was switched off never closes its tree.
pub fn clear_scratch_of(process: u32) {
    let _ = std::fs::remove_dir_all(scratch_of(process));
}
