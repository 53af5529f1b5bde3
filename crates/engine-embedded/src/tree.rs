//! The rows: one LSM tree, driven so that readers see only what is durable.
//!
//! Sequence numbers: a batch is inserted at `s` while it is decided and published as `s + 1` once it is durable. Readers
//! pin the published number, so that neither compaction nor version clean-up takes an old row from under them.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use engine::{EngineError, Key, Visit, space};
use lsm_tree::compaction::Leveled;
use lsm_tree::table::filter::block::FilterBlock;
use lsm_tree::table::filter::standard_bloom::Builder;
use lsm_tree::{
    AbstractTree, AnyTree, Cache, Config, DescriptorTable, Guard, InternalValue, SequenceNumberCounter, Table,
    ValueType,
};

use crate::Options;
use crate::cache::KeyHash;
use crate::disk::Disk;
use crate::folder::{Folder, OpenError};
use crate::often_written::OftenWritten;
use crate::sync::{AtomicU64, Mutex, RandomState};

/// The decider's view: everything inserted so far.
pub const NEWEST: u64 = u64::MAX >> 1;
/// Up to so many runs on level 0 are nothing to worry about; each further one slows the writers down.
const L0_RUNS_EASY: usize = 12;
/// With this many runs on level 0 no further memtable is written out; at 255 the tree would be lost.
const L0_RUNS_MAX: usize = 200;
/// Up to so many sealed memtables are nothing to worry about...
const SEALED_EASY: usize = 2;
/// ...and with this many no further one is sealed: they take memory.
const SEALED_MAX: usize = 6;
/// A sealed memtable slows the writers down as much as so many runs.
const RUNS_PER_SEALED: usize = 8;
/// The longest pause after a batch.
const PAUSE_MAX: Duration = Duration::from_millis(250);
/// One round of compaction writes about so many tables: the first level has four, level 0 about as many, and deeper down it
/// is one and those it overlaps.
pub const TABLES_AT_ONCE: u64 = 8;
const TABLES_OF_LEVEL_1: u64 = 4;
/// Where space is short, tables of this share of their size are made. The tree merges with at most fifty times as much of the
/// next level, so that must be more than one table.
const SMALL_TABLE_SHARE: u64 = 16;
/// No level outgrows tables of this size, so that none is merged.
const LARGER_THAN_ANY_LEVEL: u64 = 1 << 50;
/// No flush and no compaction has failed since the last look.
const NONE_UNFINISHED: u64 = u64::MAX;
/// Before a skip starts a new search it steps over this many rows: near targets are cheaper that way.
const STEPS_BEFORE_SEEK: usize = 8;

/// The row in which the tree says which batches it holds. A tree that is older than STATE is found out by it.
fn holds_below_key() -> Key {
    Key::new(space::CLOCK).text("batches")
}

pub struct Tree {
    tree: AnyTree,
    disk: Arc<dyn Disk>,
    path: PathBuf,
    table_bytes: u64,
    seqno: SequenceNumberCounter,
    published: AtomicU64,
    pins: Mutex<BTreeMap<u64, u64>>,
    often_written: OftenWritten,
    hasher: RandomState,
    /// How large the sealed memtables are, the oldest first.
    sealed: Mutex<VecDeque<u64>>,
    /// Tables from this number on may have been left unfinished by a flush or compaction that failed.
    unfinished_from: AtomicU64,
    /// Tables below this number may have been merged into others, and may still be read.
    merged_below: AtomicU64,
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree").field("path", &self.path).field("published", &self.published).finish_non_exhaustive()
    }
}

impl Tree {
    pub fn open(folder: &Folder, options: &Options, seq_floor: u64, table_bytes: u64) -> Result<Tree, OpenError> {
        let disk = Arc::clone(folder.disk());
        let path = disk.tree_folder(&folder.rows());
        let mut opened = None;
        let worked = disk.tree_work(&mut || {
            opened = Some(Tree::open_at(&disk, path.clone(), options, seq_floor, table_bytes).map_err(io_error)?);
            Ok(())
        });
        let place = || folder.rows().display().to_string();
        match worked {
            Ok(()) => opened.ok_or_else(|| OpenError::Damaged { place: place(), why: "it was not opened".into() }),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(OpenError::Damaged { place: place(), why: error.to_string() })
            }
            Err(error) => Err(OpenError::Io { what: format!("cannot open {}", place()), error }),
        }
    }

    fn open_at(
        disk: &Arc<dyn Disk>,
        path: PathBuf,
        options: &Options,
        floor: u64,
        table_bytes: u64,
    ) -> Result<Tree, lsm_tree::Error> {
        let seqno = SequenceNumberCounter::new(floor + 1);
        // The tree's own idea of what is visible runs ahead of what is durable; the engine does not use it.
        let unused_visible = SequenceNumberCounter::default();
        let tree = Config::new(&path, seqno.clone(), unused_visible)
            .use_cache(Arc::new(Cache::with_capacity_bytes(options.block_cache_bytes)))
            .use_descriptor_table(Some(Arc::new(DescriptorTable::new(options.tree_files_max()))))
            .open()?;
        if let Some(highest) = tree.get_highest_persisted_seqno() {
            seqno.fetch_max(highest + 1);
        }
        let published = AtomicU64::new(seqno.get());
        Ok(Tree {
            tree,
            disk: Arc::clone(disk),
            path,
            table_bytes,
            seqno,
            published,
            pins: Mutex::default(),
            often_written: OftenWritten::default(),
            hasher: RandomState::default(),
            sealed: Mutex::default(),
            unfinished_from: AtomicU64::new(NONE_UNFINISHED),
            merged_below: AtomicU64::new(0),
        })
    }

    /// The number for the next batch.
    pub fn next_seq(&self) -> u64 {
        self.seqno.next()
    }

    /// While replaying: later numbers must lie above this one.
    pub fn saw_seq(&self, seq: u64) {
        self.seqno.fetch_max(seq + 1);
        self.published.fetch_max(seq + 1, Ordering::AcqRel);
    }

    pub fn insert(&self, key: &[u8], value: Option<Bytes>, seq: u64) {
        self.insert_hashed(key, KeyHash::new(&self.hasher, key), value, seq);
    }

    /// The same for a key whose hash is known.
    pub fn insert_hashed(&self, key: &[u8], hash: KeyHash, value: Option<Bytes>, seq: u64) {
        match value {
            Some(value) => self.tree.insert(key, lsm_tree::Slice::from(value), seq),
            None => self.tree.remove(key, seq),
        };
        if self.often_written.counts(hash) {
            self.forget_versions(key);
        }
    }

    /// Removes the versions of a row from the memtable that nobody can see any more. A scan walks over every version there is, so
    /// those of a row that is written all the time would make each scan of its range slower until the memtable is written out.
    fn forget_versions(&self, key: &[u8]) {
        let memtable = self.tree.active_memtable();
        // Every reader, now and later, sees this version or a newer one.
        let seen = InternalValue::from_components(key, [], self.watermark().saturating_sub(1), ValueType::Value).key;
        let Some(seen) = memtable.items.lower_bound(Bound::Included(&seen)) else { return };
        if seen.key().user_key.as_ref() != key {
            return;
        }
        while let Some(older) = seen.next().filter(|older| older.key().user_key.as_ref() == key) {
            older.remove();
        }
    }

    /// Everything up to `seq` is durable: readers may see it.
    pub fn publish(&self, seq: u64) {
        self.published.store(seq + 1, Ordering::Release);
    }

    pub fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Holds the published state for a reader.
    pub fn pin(&self) -> Pin<'_> {
        let mut pins = self.pins.lock().expect("nothing panics under this lock");
        let at = self.published();
        *pins.entry(at).or_default() += 1;
        Pin { tree: self, at }
    }

    /// No reader looks below this number any more.
    pub fn watermark(&self) -> u64 {
        let pins = self.pins.lock().expect("nothing panics under this lock");
        pins.keys().next().copied().unwrap_or_else(|| self.published())
    }

    pub fn get(&self, key: &[u8], at: u64) -> Result<Option<Bytes>, EngineError> {
        Ok(self.tree.get(key, at).map_err(failed)?.map(Bytes::from))
    }

    /// The same, if that is known without the disk: `Some(row or absence)`.
    pub fn get_at_hand(&self, key: &[u8], at: u64) -> Option<Option<Bytes>> {
        // What is written rises: a row in the memtable is newer than any elsewhere.
        match self.tree.active_memtable().get(key, at) {
            Some(entry) => Some((!entry.is_tombstone()).then(|| Bytes::from(entry.value))),
            None => self.is_known_to_be_absent(key).then_some(None),
        }
    }

    /// Whether a row that is not in the memtable is nowhere else, as far as that is known without the disk.
    fn is_known_to_be_absent(&self, key: &[u8]) -> bool {
        // In this order: a memtable that is written out after the first look is among the tables of the second.
        if self.tree.sealed_memtable_count() > 0 {
            return false;
        }
        let hash = Builder::get_hash(key);
        let version = self.tree.current_version();
        let mut runs = version.iter_levels().flat_map(|level| level.iter());
        runs.all(|run| run.get_for_key(key).is_none_or(|table| self.filter_excludes(table, hash) == Some(true)))
    }

    /// What the filter of a table says, if it is in memory: whether a row with this hash is not in the table.
    fn filter_excludes(&self, table: &Table, hash: u64) -> Option<bool> {
        let contains = match &table.pinned_filter_block {
            Some(filter) => filter.maybe_contains_hash(hash),
            // Deep levels have tables with several filters, each for a part of the rows. What stands first is only one of them.
            None if table.regions.filter_tli.is_some() => return None,
            None => {
                let handle = table.regions.filter.as_ref()?;
                let block = table.cache.get_block((self.tree.id(), table.id()).into(), handle.offset())?;
                FilterBlock::new(block).maybe_contains_hash(hash)
            }
        };
        contains.ok().map(|contains| !contains)
    }

    /// Whether a scan of this range may have to read the tree's files.
    pub fn is_on_disk(&self, from: &[u8], to: &[u8]) -> bool {
        let version = self.tree.current_version();
        version.iter_levels().flat_map(|level| level.iter()).any(|run| run.range_overlap_indexes(&(from..to)).is_some())
    }

    pub fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        at: u64,
        visit: &mut dyn FnMut(&[u8], &Bytes) -> Visit,
    ) -> Result<(), EngineError> {
        let mut from = from.to_vec();
        'search: while from.as_slice() < to {
            let mut skip: Option<(Key, usize)> = None;
            for entry in self.tree.range(from.as_slice()..to, at, None) {
                let (key, value) = entry.into_inner().map_err(failed)?;
                if let Some((target, steps)) = &mut skip
                    && key.as_ref() < target.as_bytes()
                {
                    *steps += 1;
                    if *steps > STEPS_BEFORE_SEEK {
                        from = target.as_bytes().to_vec();
                        continue 'search;
                    }
                    continue;
                }
                skip = match visit(&key, &Bytes::from(value)) {
                    Visit::Next => None,
                    Visit::SkipTo(target) => Some((target, 0)),
                    Visit::Stop => return Ok(()),
                };
            }
            return Ok(());
        }
        Ok(())
    }

    pub fn memtable_bytes(&self) -> u64 {
        self.tree.active_memtable().size()
    }

    /// Seals the active memtable. Only between two batches, and with all batches below `next_batch` durable: the tree's
    /// files will say of themselves that they hold them.
    pub fn rotate(&self, next_batch: u64) {
        if self.holds_below().is_ok_and(|below| below >= next_batch) && self.tree.active_memtable().is_empty() {
            return;
        }
        let seq = self.next_seq();
        self.insert(holds_below_key().as_bytes(), Some(Bytes::copy_from_slice(&next_batch.to_be_bytes())), seq);
        let mut sealed = self.sealed.lock().expect("nothing panics under this lock");
        sealed.push_back(self.memtable_bytes());
        self.tree.rotate_memtable();
    }

    /// Every batch below this number is in here.
    pub fn holds_below(&self) -> Result<u64, EngineError> {
        Ok(crate::stored_number(self.get(holds_below_key().as_bytes(), NEWEST)?))
    }

    /// Whether another memtable may be sealed. Otherwise the present one grows meanwhile.
    pub fn takes_a_memtable(&self) -> bool {
        self.tree.sealed_memtable_count() < SEALED_MAX && self.tree.l0_run_count() < L0_RUNS_MAX
    }

    /// How far flushes and compaction are behind.
    pub fn pressure(&self) -> Pressure {
        let sealed = self.tree.sealed_memtable_count().saturating_sub(SEALED_EASY);
        Pressure(self.tree.l0_run_count().saturating_sub(L0_RUNS_EASY) + sealed * RUNS_PER_SEALED)
    }

    /// Writes all sealed memtables out. The caller has made sure that all they hold is durable.
    pub fn flush(&self) -> io::Result<()> {
        self.write_tables(|| {
            let watermark = self.watermark();
            let lock = self.tree.get_flush_lock();
            self.tree.flush(&lock, watermark).map(drop)
        })?;
        // Those that were sealed meanwhile are still there.
        let mut sealed = self.sealed.lock().expect("nothing panics under this lock");
        let left = self.tree.sealed_memtable_count();
        let written = sealed.len().checked_sub(left).expect("each was noted when it was sealed");
        sealed.drain(..written);
        Ok(())
    }

    /// How many bytes wait to be written out.
    pub fn sealed_bytes(&self) -> u64 {
        self.sealed.lock().expect("nothing panics under this lock").iter().sum()
    }

    /// How much flushes and compaction will write of what is in memory and on level 0, before they give anything back.
    pub fn unwritten_bytes(&self) -> u64 {
        let in_memory = self.sealed_bytes() + self.memtable_bytes();
        in_memory + self.compaction_bytes(in_memory)
    }

    /// About how much one round of compaction writes before it can remove anything, once `more` bytes have come to level 0. That
    /// level is merged whole, and it is large when compaction is behind.
    fn compaction_bytes(&self, more: u64) -> u64 {
        let level0 = self.tree.current_version().l0().size() + more;
        let tables = TABLES_AT_ONCE.max(level0.div_ceil(self.table_bytes) + TABLES_OF_LEVEL_1);
        (self.tree.disk_space() + more).min(tables * self.table_bytes)
    }

    /// One round of compaction that fits into `room`: what is not begun leaves no half-written tables behind. `true`: something
    /// changed, there may be more to do.
    pub fn compact(&self, room: u64, is_disk_full: bool) -> io::Result<bool> {
        let Some(strategy) = self.strategy(room, is_disk_full) else { return Ok(false) };
        let before = self.tree.current_version().id();
        let strategy = Arc::new(strategy);
        let done = self.write_tables(|| self.tree.compact(Arc::clone(&strategy) as _, self.watermark()).map(drop));
        let is_changed = self.tree.current_version().id() != before;
        // Also if it failed: tables are merged before old lists of tables are removed, which can fail by itself.
        if is_changed {
            self.merged_below.store(self.tree.next_table_id(), Ordering::Release);
        }
        done.map(|()| is_changed)
    }

    /// Runs a flush or a round of compaction. One that fails leaves tables behind that belong to nothing; their numbers are
    /// not below the one that is next when it begins.
    fn write_tables(&self, work: impl Fn() -> lsm_tree::Result<()>) -> io::Result<()> {
        let next = self.tree.next_table_id();
        let done = self.disk.tree_work(&mut || work().map_err(io_error));
        if done.is_err() {
            self.unfinished_from.fetch_min(next, Ordering::AcqRel);
        }
        done
    }

    /// Removes the tables that failed flushes and compactions have left unfinished. The tree itself does so only when it is
    /// opened; and what fails is tried again, so they would fill the disk. Called by the thread that compacts, between two
    /// rounds.
    ///
    /// Older tables that are in no list any more may still be read. The tree removes those after their last reader.
    pub fn remove_unfinished(&self) -> io::Result<()> {
        let from = self.unfinished_from.swap(NONE_UNFINISHED, Ordering::AcqRel);
        if from == NONE_UNFINISHED {
            return Ok(());
        }
        let removed = self.remove_unlisted(from.max(self.merged_below.load(Ordering::Acquire)));
        if removed.is_err() {
            self.unfinished_from.fetch_min(from, Ordering::AcqRel);
        }
        removed
    }

    /// Removes the tables from this number on that are in no list.
    fn remove_unlisted(&self, from: u64) -> io::Result<()> {
        self.disk.tree_work(&mut || {
            // So that no flush writes a table meanwhile.
            let _flushing = self.tree.get_flush_lock();
            let version = self.tree.current_version();
            // If only the sync of a new list failed, the list is there, and the tables belong to it.
            if listed_version(&self.path)? != version.id() {
                return Ok(());
            }
            let listed: HashSet<u64> = version.iter_tables().map(Table::id).collect();
            for entry in std::fs::read_dir(self.path.join(lsm_tree::file::TABLES_FOLDER))? {
                let path = entry?.path();
                let number = path.file_name().and_then(|name| name.to_str()?.parse::<u64>().ok());
                if number.is_some_and(|number| number >= from && !listed.contains(&number)) {
                    tracing::info!(table = %path.display(), "an unfinished table of rows is removed");
                    std::fs::remove_file(path)?;
                }
            }
            Ok(())
        })
    }

    /// What may be compacted where so much is free. `None`: nothing.
    ///
    /// Level 0 can only be merged whole. Where that does not fit, deeper levels are merged, a few tables at a time; where that
    /// does not fit either, tables are only moved from one level to the next, which writes nothing.
    fn strategy(&self, room: u64, is_disk_full: bool) -> Option<Leveled> {
        let version = self.tree.current_version();
        let level1 = version.iter_levels().skip(1).find(|level| !level.is_empty()).map_or(0, |level| level.size());
        let (all, deeper) = (self.tree.disk_space(), TABLES_AT_ONCE * self.table_bytes);
        let small_tables = self.table_bytes / SMALL_TABLE_SHARE;
        // On a full disk deletes are carried down to what they delete, however few they are. Small tables reach it in small
        // steps, because they lie above few of those below them.
        let strategy = if is_disk_full {
            Leveled::default().with_level_ratio_policy(vec![1.0]).with_l0_threshold(1)
        } else {
            Leveled::default()
        };
        if room > deeper.max(version.l0().size() + level1).min(all) {
            return Some(strategy.with_table_target_size(if is_disk_full { small_tables } else { self.table_bytes }));
        }
        // With a threshold above what it holds, level 0 is left alone.
        let above_level0 = u8::try_from(version.l0().table_count() + 1).ok()?;
        let tables = if room > deeper.min(all) { small_tables } else { LARGER_THAN_ANY_LEVEL };
        Some(strategy.with_l0_threshold(above_level0).with_table_target_size(tables))
    }

    /// Forgets versions that no reader can see any more, and the memtables they keep alive.
    pub fn maintain(&self) -> io::Result<()> {
        let watermark = self.watermark();
        self.disk.tree_work(&mut || {
            self.tree.get_version_history_lock().maintenance(&self.path, watermark).map_err(io_error)
        })
    }

    pub fn figures(&self) -> [(&'static str, u64); 4] {
        [
            ("tree_tables", self.tree.table_count() as u64),
            ("tree_level0_runs", self.tree.l0_run_count() as u64),
            ("tree_sealed_memtables", self.tree.sealed_memtable_count() as u64),
            ("tree_disk_bytes", self.tree.disk_space()),
        ]
    }
}

/// The number of the list of tables that the next start would take.
fn listed_version(tree: &Path) -> io::Result<u64> {
    let bytes = std::fs::read(tree.join(lsm_tree::file::CURRENT_VERSION_FILE))?;
    let number = bytes.first_chunk::<8>().ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
    Ok(u64::from_le_bytes(*number))
}

/// The tree's own troubles count as damage; only those of the system are errors of input and output.
fn io_error(error: lsm_tree::Error) -> io::Error {
    match error {
        lsm_tree::Error::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}

pub fn failed(error: lsm_tree::Error) -> EngineError {
    match error {
        lsm_tree::Error::Io(error) => crate::background::unavailable("reading rows", &error),
        other => EngineError::Corrupt(format!("rows: {other}")),
    }
}

/// How many runs too many there are on level 0: writers pause after each batch, by its bytes and by the square of this.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pressure(pub usize);

impl Pressure {
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Half a nanosecond for each byte and square: 8 runs too many let through 30 MiB/s, 30 let through 2.
    pub fn pause_after(self, bytes: usize) -> Duration {
        let nanos = self.0.saturating_mul(self.0).saturating_mul(bytes) / 2;
        Duration::from_nanos(nanos as u64).min(PAUSE_MAX)
    }
}

impl std::ops::Add for Pressure {
    type Output = Pressure;

    fn add(self, other: Pressure) -> Pressure {
        Pressure(self.0 + other.0)
    }
}

/// A reader's hold on one state.
#[derive(Debug)]
pub struct Pin<'a> {
    tree: &'a Tree,
    pub at: u64,
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        let mut pins = self.tree.pins.lock().expect("nothing panics under this lock");
        if let Some(count) = pins.get_mut(&self.at) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    const MIB: usize = 1 << 20;

    fn open(folder: &std::path::Path) -> Tree {
        let folder = Folder::open(folder, Arc::new(RealDisk)).expect("a folder");
        Tree::open(&folder, &Options { block_cache_bytes: 1 << 20, ..Options::default() }, 0, 4 << 20).expect("a tree")
    }

    /// Rows of a mebibyte that do not get smaller when they are written out, over the same range of keys each time.
    fn fill(tree: &Tree, rows: u8, round: u8) {
        for row in 0..rows {
            let mut state = u64::from(row) << 8 | u64::from(round) | 1 << 40;
            let noise = std::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            });
            tree.insert(&[0x70, row], Some(noise.take(MIB).collect()), tree.next_seq());
        }
    }

    #[test]
    fn what_compaction_needs_counts_all_of_level_zero() {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = open(folder.path());
        for round in 0..8 {
            fill(&tree, 8, round);
            tree.rotate(u64::from(round) + 1);
            tree.flush().expect("written out");
        }
        assert_eq!(tree.tree.l0_run_count(), 8);
        assert!(tree.compaction_bytes(0) >= 64 * MIB as u64, "{}", tree.compaction_bytes(0));
    }

    #[test]
    fn level_zero_is_merged_only_where_that_fits() {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = open(folder.path());
        fill(&tree, 2, 0);
        tree.rotate(1);
        tree.flush().expect("written out");
        assert!(
            tree.compact(0, false).expect("compacted"),
            "a run that nothing lies below is moved, which writes nothing"
        );
        for round in 1..=6 {
            fill(&tree, 2, round);
            tree.rotate(u64::from(round) + 1);
            tree.flush().expect("written out");
        }
        for is_disk_full in [false, true] {
            assert!(!tree.compact(13 * MIB as u64, is_disk_full).expect("compacted"), "14 MiB do not fit");
        }
        assert_eq!(tree.tree.l0_run_count(), 6);
        assert!(tree.compact(15 * MIB as u64, false).expect("compacted"));
        assert_eq!(tree.tree.l0_run_count(), 0);
    }

    /// Full and not by turns, rows come and go. A level that was emptied into the one below it is a level like others; and
    /// below level 0 no two tables of a level may overlap, or a read finds the older of two rows.
    #[test]
    fn levels_that_are_emptied_are_filled_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(folder.path(), Arc::new(RealDisk)).expect("a folder");
        let tree = Tree::open(&folder, &Options::default(), 0, 64 << 10).expect("a tree");
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut was_emptied = false;
        for round in 1..60 {
            let (first, rows, deletes) = (random(20), 1 + random(6), random(3) == 0);
            for row in first..first + rows {
                let value = (!deletes).then(|| (0..4096).map(|_| random(256) as u8).collect());
                tree.insert(&[0x70, row as u8], value, tree.next_seq());
            }
            tree.rotate(round);
            tree.flush().expect("written out");
            let is_disk_full = round % 20 > 4;
            while tree.compact(u64::MAX, is_disk_full).expect("compacted") {
                let version = tree.tree.current_version();
                let runs: Vec<usize> = version.iter_levels().map(|level| level.run_count()).collect();
                assert!(runs[1..].iter().all(|runs| *runs <= 1), "round {round}: {runs:?}");
                was_emptied |= runs[1..].windows(2).any(|pair| pair == [1, 0]);
            }
        }
        assert!(was_emptied, "some level was emptied while the one above it was not");
    }

    #[test]
    fn what_a_flush_needs_is_what_the_memtables_hold() {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = open(folder.path());
        fill(&tree, 20, 1);
        assert_eq!(tree.sealed_bytes(), 0, "nothing is sealed yet");
        tree.rotate(1);
        fill(&tree, 3, 2);
        tree.rotate(2);
        assert!(tree.sealed_bytes() >= 23 * MIB as u64, "{}", tree.sealed_bytes());
        tree.flush().expect("written out");
        assert_eq!(tree.sealed_bytes(), 0);
    }

    /// What a scan of the row `k` sees in state `at`.
    fn scanned(tree: &Tree, at: u64) -> Vec<Bytes> {
        let mut found = Vec::new();
        let note = &mut |_: &[u8], value: &Bytes| {
            found.push(value.clone());
            Visit::Next
        };
        tree.scan(b"k", b"l", at, note).expect("scanned");
        found
    }

    #[test]
    fn versions_that_nobody_can_see_leave_the_memtable() {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = open(folder.path());
        let number = |n: u64| Bytes::copy_from_slice(&n.to_be_bytes());
        let write = |n: u64| {
            let seq = tree.next_seq();
            tree.insert(b"k", Some(number(n)), seq);
            tree.insert(&n.to_be_bytes(), Some(number(n)), seq);
            tree.publish(seq);
        };
        (0..1_000).for_each(write);
        let pin = tree.pin();
        (1_000..2_000).for_each(write);
        // In a batch that is not durable yet.
        let seq = tree.next_seq();
        tree.insert(b"k", None, seq);
        assert_eq!(scanned(&tree, pin.at), [number(999)], "a reader sees its state");
        assert_eq!(scanned(&tree, tree.published()), [number(1_999)]);
        assert_eq!(scanned(&tree, NEWEST), [] as [Bytes; 0]);
        let count = || tree.tree.active_memtable().len();
        assert!(count() >= 2_000 + 1_002, "what a reader holds stays: {}", count());
        drop(pin);
        (2_000..2_100).for_each(write);
        assert!(count() < 2_100 + 100, "{}", count());
        assert_eq!(scanned(&tree, tree.published()), [number(2_099)]);
    }

    /// Rows in tables of several levels, in memtables and nowhere, looked for without the disk.
    #[test]
    fn what_is_absent_is_known_without_the_disk_and_what_is_there_is_not_taken_for_absent() {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = open(folder.path());
        let key = |number: u32| [b"k", number.to_be_bytes().as_slice()].concat();
        for number in 0..4_000 {
            tree.insert(&key(2 * number), Some(Bytes::from_static(b"there")), tree.next_seq());
            if number % 500 == 0 {
                tree.rotate(u64::from(number) + 1);
                tree.flush().expect("written out");
            }
            if number == 2_000 {
                while tree.compact(u64::MAX, false).expect("compacted") {}
                assert!(tree.tree.l0_run_count() < 4, "some levels below are filled");
            }
        }
        // The filters below level 0 come into memory with the first reads.
        (0..8_000).for_each(|number| drop(tree.get(&key(number), NEWEST).expect("read")));
        let at_hand: Vec<_> = (0..8_000).map(|number| tree.get_at_hand(&key(number), NEWEST)).collect();
        assert!(at_hand.iter().step_by(2).all(|row| *row != Some(None)), "what is there is not absent");
        let absent = at_hand.iter().skip(1).step_by(2).filter(|row| **row == Some(None)).count();
        assert!(absent > 3_000, "most of what is not there is known to be absent: {absent}");
        // A memtable that waits to be written out is not looked at.
        tree.rotate(5_000);
        assert_eq!(tree.get_at_hand(&key(7_999), NEWEST), None);
    }

    /// Tables of deep levels have a filter for each part of their rows.
    #[test]
    fn what_is_in_a_table_with_several_filters_is_not_taken_for_absent() {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = open(folder.path());
        let key = |number: u32| [b"k", number.to_be_bytes().as_slice()].concat();
        for number in 0..20_000 {
            tree.insert(&key(number), Some(Bytes::from_static(b"there")), tree.next_seq());
        }
        tree.rotate(1);
        tree.flush().expect("written out");
        // Merges into the deepest level, as compaction does once there is enough in those above it.
        tree.tree.major_compact(64 << 20, 0).expect("compacted");
        let version = tree.tree.current_version();
        assert!(
            version.iter_tables().all(|table| table.regions.filter_tli.is_some()),
            "one filter, so nothing is shown"
        );
        assert!(tree.get(&key(1), NEWEST).expect("read").is_some(), "the first filter comes into memory");
        let lost: Vec<u32> = (0..20_000).filter(|row| tree.get_at_hand(&key(*row), NEWEST) == Some(None)).collect();
        assert_eq!(lost.len(), 0, "from row {:?} on", lost.first());
    }

    fn table_files(folder: &std::path::Path) -> BTreeMap<String, u64> {
        let entries =
            std::fs::read_dir(folder.join("rows/tables")).expect("listed").map(|entry| entry.expect("an entry"));
        entries.map(|e| (e.file_name().to_string_lossy().into_owned(), e.metadata().expect("there").len())).collect()
    }

    fn flip_a_byte_in_the_middle(file: &std::path::Path) {
        let mut bytes = std::fs::read(file).expect("read");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(file, bytes).expect("written");
    }

    /// A table with one bad block: compaction fails each time it is tried. What it has written until then must not stay, or the
    /// disk fills up with it.
    #[test]
    fn a_compaction_that_fails_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = open(folder.path());
        for round in 1..=6 {
            fill(&tree, 12, round);
            tree.rotate(u64::from(round));
            tree.flush().expect("written out");
        }
        let sound = table_files(folder.path());
        let last = sound.keys().max_by_key(|name| name.parse::<u64>().expect("a number")).expect("a table");
        let damaged = folder.path().join("rows/tables").join(last);
        flip_a_byte_in_the_middle(&damaged);
        for _ in 0..3 {
            tree.compact(u64::MAX, false).expect_err("a block is damaged");
            assert!(table_files(folder.path()).len() > sound.len(), "nothing was begun, so nothing is shown");
            tree.remove_unfinished().expect("removed");
            assert_eq!(table_files(folder.path()), sound);
        }
        flip_a_byte_in_the_middle(&damaged);
        assert!(tree.compact(u64::MAX, false).expect("compacted"));
        tree.remove_unfinished().expect("nothing to do");
        assert_eq!(tree.tree.l0_run_count(), 0);
        for row in 0..12 {
            assert!(tree.get(&[0x70, row], NEWEST).expect("read").is_some(), "row {row}");
        }
    }

    /// A flush has failed and was tried again, compaction has merged what it wrote, and then an old list of tables could not be
    /// removed. A scan that still reads the merged tables must find them.
    #[test]
    fn tables_that_are_read_stay_when_compaction_fails_after_it_has_merged_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = open(folder.path());
        for round in 1..=6 {
            fill(&tree, 12, round);
            tree.rotate(u64::from(round));
            tree.flush().expect("written out");
        }
        let read = tree.tree.current_version();
        let merged: Vec<String> = read.iter_tables().map(|table| table.id().to_string()).collect();
        tree.unfinished_from.store(0, Ordering::Release);
        tree.publish(tree.next_seq());
        let lists =
            std::fs::read_dir(folder.path().join("rows")).expect("listed").map(|entry| entry.expect("an entry"));
        let number = |name: &str| name.strip_prefix('v').and_then(|number| number.parse::<u64>().ok());
        let oldest = lists.filter_map(|list| number(list.file_name().to_str()?)).min().expect("a list");
        let oldest = folder.path().join(format!("rows/v{oldest}"));
        std::fs::remove_file(&oldest).expect("removed");
        std::fs::create_dir(&oldest).expect("made");
        tree.compact(u64::MAX, false).expect_err("an old list cannot be removed");
        assert_ne!(tree.tree.current_version().id(), read.id(), "nothing was merged, so nothing is shown");
        tree.remove_unfinished().expect("removed");
        let files = table_files(folder.path());
        assert!(merged.iter().all(|table| files.contains_key(table)), "{merged:?}: {files:?}");
    }
}
