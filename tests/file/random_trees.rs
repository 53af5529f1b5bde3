//! Random trees with snapshots, copies and drops against plain copies of the tree: on the embedded engine, and on several nodes over
//! PostgreSQL with every request to another node. The seed of a failure is printed and can be tried again with `LAZURITE_SEED`.

use std::collections::BTreeMap;

use crate::snapshot_share::{at, take};
use crate::stage::{SHARE, Stage};

const SEEDS: u64 = 2;
const STEPS: usize = 150;
/// After so many steps everything is compared.
const COMPARED_EVERY: usize = 30;
const SNAPSHOTS: usize = 4;
const LENGTH_MAX: u64 = 100_000;
const DIRECTORIES: [&str; 3] = ["x", "y", "z"];
const FILES: [&str; 4] = ["a", "b", "c", "d"];

/// Pseudorandom numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn of<'a>(&mut self, names: &[&'a str]) -> &'a str {
        names[self.below(names.len() as u64) as usize]
    }

    /// A range within `length` bytes, which are some.
    fn range(&mut self, length: u64) -> (u64, u64) {
        let first = self.below(length);
        (first, first + self.below((length - first).min(20_000)))
    }
}

/// Directories, and the bytes of the files in them.
type Tree = BTreeMap<String, BTreeMap<String, Vec<u8>>>;

struct Run {
    stage: Stage,
    random: Random,
    tree: Tree,
    /// With their times.
    snapshots: Vec<(String, Tree)>,
}

impl Run {
    /// Some file that is there.
    fn some_file(&mut self) -> Option<(String, String)> {
        let files: Vec<_> =
            self.tree.iter().flat_map(|(dir, files)| files.keys().map(move |file| (dir, file))).collect();
        if files.is_empty() {
            return None;
        }
        let (dir, file) = files[self.random.below(files.len() as u64) as usize];
        Some((dir.clone(), file.clone()))
    }

    /// A path in a directory that is there.
    fn some_path(&mut self) -> Option<(String, String)> {
        let (dir, file) = (self.random.of(&DIRECTORIES), self.random.of(&FILES));
        self.tree.contains_key(dir).then(|| (dir.to_owned(), file.to_owned()))
    }

    fn bytes(&mut self, dir: &str, file: &str) -> &mut Vec<u8> {
        self.tree.get_mut(dir).and_then(|files| files.get_mut(file)).expect("a file of the model")
    }

    fn put(&mut self, dir: &str, file: &str, bytes: Vec<u8>) {
        self.tree.get_mut(dir).expect("a directory of the model").insert(file.to_owned(), bytes);
    }

    fn step(&mut self) {
        match self.random.below(12) {
            0 => self.make_directory(),
            1 | 2 => self.create(),
            3..=5 => self.write(),
            6 => self.clear(),
            7 => self.resize(),
            8 => self.rename(),
            9 => self.remove(),
            10 => self.copy(),
            _ => self.take_or_drop(),
        }
    }

    /// A new directory, or another name for one.
    fn make_directory(&mut self) {
        let (from, to) = (self.random.of(&DIRECTORIES), self.random.of(&DIRECTORIES));
        if self.tree.contains_key(to) {
            return;
        }
        match self.tree.remove(from) {
            Some(files) => {
                self.stage.rename_directory(&format!("share/{from}"), &format!("share/{to}"), &[]).ok();
                self.tree.insert(to.to_owned(), files);
            }
            None => {
                self.stage.make_directory(&format!("share/{to}"));
                self.tree.insert(to.to_owned(), BTreeMap::new());
            }
        }
    }

    fn create(&mut self) {
        let Some((dir, file)) = self.some_path() else { return };
        let length = self.random.below(LENGTH_MAX);
        self.stage.make_file(&format!("share/{dir}/{file}"), length);
        self.put(&dir, &file, vec![0; length as usize]);
    }

    fn write(&mut self) {
        let Some((dir, file)) = self.some_file() else { return };
        let length = self.bytes(&dir, &file).len() as u64;
        if length == 0 {
            return;
        }
        let ((first, last), byte) = (self.random.range(length), 1 + self.random.below(255) as u8);
        self.stage.write(&format!("share/{dir}/{file}"), first, vec![byte; (last - first + 1) as usize]);
        self.bytes(&dir, &file)[first as usize..=last as usize].fill(byte);
    }

    fn clear(&mut self) {
        let Some((dir, file)) = self.some_file() else { return };
        let length = self.bytes(&dir, &file).len() as u64;
        if length == 0 {
            return;
        }
        let (first, last) = self.random.range(length);
        self.stage.clear(&format!("share/{dir}/{file}"), first, last).ok();
        self.bytes(&dir, &file)[first as usize..=last as usize].fill(0);
    }

    fn resize(&mut self) {
        let Some((dir, file)) = self.some_file() else { return };
        let length = self.random.below(LENGTH_MAX);
        self.stage.resize(&format!("share/{dir}/{file}"), length).ok();
        self.bytes(&dir, &file).resize(length as usize, 0);
    }

    fn rename(&mut self) {
        let (Some((dir, file)), Some((to_dir, to_file))) = (self.some_file(), self.some_path()) else { return };
        if (&dir, &file) == (&to_dir, &to_file) {
            return;
        }
        let replace = [("x-ms-file-rename-replace-if-exists", "true")];
        let (from, to) = (format!("share/{dir}/{file}"), format!("share/{to_dir}/{to_file}"));
        self.stage.rename_file(&from, &to, &replace).ok();
        let bytes = std::mem::take(self.bytes(&dir, &file));
        self.tree.get_mut(&dir).expect("a directory of the model").remove(&file);
        self.put(&to_dir, &to_file, bytes);
    }

    fn remove(&mut self) {
        let Some((dir, file)) = self.some_file() else { return };
        self.stage.delete(&format!("share/{dir}/{file}")).ok();
        self.tree.get_mut(&dir).expect("a directory of the model").remove(&file);
    }

    /// A copy of a file as it is, or as a snapshot has it.
    fn copy(&mut self) {
        let Some((to_dir, to_file)) = self.some_path() else { return };
        let past = self.snapshots.last().filter(|_| self.random.below(2) == 0);
        let (tree, time) = past.map_or((&self.tree, None), |(time, tree)| (tree, Some(time.clone())));
        let found = tree.iter().find_map(|(dir, files)| Some((dir.clone(), files.iter().next()?)));
        let Some((dir, (file, bytes))) = found.map(|(dir, (file, bytes))| (dir, (file.clone(), bytes.clone()))) else {
            return;
        };
        if time.is_none() && (&dir, &file) == (&to_dir, &to_file) {
            return;
        }
        let path = format!("share/{dir}/{file}");
        let source = self.stage.client.url(&time.map_or(path.clone(), |time| at(&path, &time)));
        let copied =
            self.stage.call(&format!("PUT share/{to_dir}/{to_file}"), &[("x-ms-copy-source", &*source)], "").ok();
        assert_eq!(copied.header("x-ms-copy-status"), Some("success"));
        self.put(&to_dir, &to_file, bytes);
    }

    fn take_or_drop(&mut self) {
        if self.snapshots.len() < SNAPSHOTS {
            let time = take(&self.stage);
            self.snapshots.push((time, self.tree.clone()));
        } else {
            let dropped = self.random.below(SNAPSHOTS as u64) as usize;
            let (time, _) = self.snapshots.remove(dropped);
            self.stage.delete(&at(SHARE, &time)).ok();
        }
    }

    /// The share, and each snapshot, against its copy.
    fn compare(&self) {
        self.compare_tree(&self.tree, None);
        self.snapshots.iter().for_each(|(time, tree)| self.compare_tree(tree, Some(time)));
        let sum: usize = self.tree.values().flat_map(BTreeMap::values).map(Vec::len).sum();
        assert_eq!(self.stage.usage("share"), sum as u64);
    }

    fn compare_tree(&self, tree: &Tree, time: Option<&str>) {
        let target = |path: &str| time.map_or_else(|| path.to_owned(), |time| at(path, time));
        let names = |path: &str| {
            let listing = self.stage.get(&target(&format!("{path}?restype=directory&comp=list"))).ok().xml();
            listing.all("Entries").iter().filter_map(|entry| entry.text_of("Name")).collect::<Vec<_>>()
        };
        assert_eq!(names("share"), tree.keys().cloned().collect::<Vec<_>>(), "{time:?}");
        for (dir, files) in tree {
            assert_eq!(names(&format!("share/{dir}")), files.keys().cloned().collect::<Vec<_>>(), "{dir} at {time:?}");
            for (file, bytes) in files {
                let read = self.stage.get(&target(&format!("share/{dir}/{file}"))).ok().body;
                assert!(read == *bytes, "{dir}/{file} at {time:?}");
            }
        }
    }
}

#[test]
fn snapshots_and_copies_are_as_plain_copies() {
    let tried = std::env::var("LAZURITE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = tried.map_or(1..SEEDS + 1, |seed: u64| seed..seed + 1);
    for seed in seeds {
        println!("LAZURITE_SEED={seed}");
        let stage = Stage::new();
        let mut run = Run { stage, random: Random(seed), tree: Tree::new(), snapshots: Vec::new() };
        for step in 1..=STEPS {
            run.step();
            if step % COMPARED_EVERY == 0 {
                run.compare();
            }
        }
        run.stage.server.kill_and_restart();
        run.stage.client = run.stage.server.client();
        run.compare();
    }
}
