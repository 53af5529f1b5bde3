//! The bytes of a file, in pages that copies of a disk share; and the changes to them that a sync has not reached yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use histories::Dice;

pub const PAGE: usize = 4096;
/// The least that a disk writes whole.
const SECTOR: usize = 512;

type Page = Arc<[u8; PAGE]>;

/// A page that is not there is all zeroes.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    length: u64,
    pages: BTreeMap<u64, Page>,
}

impl Pages {
    pub fn length(&self) -> u64 {
        self.length
    }

    /// As many bytes as there are, up to the end of the file.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let end = self.length.min(offset.saturating_add(buffer.len() as u64));
        let count = usize::try_from(end.saturating_sub(offset)).unwrap_or(0);
        for (number, within, part) in split(offset, count, PAGE) {
            match self.pages.get(&number) {
                Some(page) => buffer[part.clone()].copy_from_slice(&page[within..within + part.len()]),
                None => buffer[part].fill(0),
            }
        }
        count
    }

    pub fn write(&mut self, bytes: &[u8], offset: u64) {
        self.put(bytes, offset);
        self.length = self.length.max(offset + bytes.len() as u64);
    }

    /// Changes bytes; the length stays.
    fn put(&mut self, bytes: &[u8], offset: u64) {
        for (number, within, part) in split(offset, bytes.len(), PAGE) {
            let bytes = &bytes[part];
            if bytes.iter().all(|byte| *byte == 0) && !self.pages.contains_key(&number) {
                continue;
            }
            let page = self.pages.entry(number).or_insert_with(|| Arc::new([0; PAGE]));
            Arc::make_mut(page)[within..within + bytes.len()].copy_from_slice(bytes);
        }
    }

    pub fn set_len(&mut self, length: u64) {
        self.length = length;
        self.clear_beyond();
    }

    /// What lies beyond the end is gone: a file that grows again shows zeroes there.
    fn clear_beyond(&mut self) {
        let (last, within) = (self.length / PAGE as u64, usize::try_from(self.length % PAGE as u64).unwrap_or(0));
        let _ = self.pages.split_off(&(last + 1));
        if let Some(page) = self.pages.get_mut(&last) {
            Arc::make_mut(page)[within..].fill(0);
        }
    }
}

/// The pieces of a range by unit: number of the unit, where in it the piece begins, and the piece.
fn split(offset: u64, count: usize, unit: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= count {
            return None;
        }
        let at = offset + done as u64;
        let within = usize::try_from(at % unit as u64).unwrap_or(0);
        let length = (unit - within).min(count - done);
        let part = done..done + length;
        done += length;
        Some((at / unit as u64, within, part))
    })
}

/// What was done to a file and may not be on the disk yet.
#[derive(Clone, Debug)]
pub enum Change {
    Write { offset: u64, bytes: Arc<[u8]> },
    SetLen(u64),
}

impl Change {
    pub fn apply(&self, to: &mut Pages) {
        match self {
            Change::Write { offset, bytes } => to.write(bytes, *offset),
            Change::SetLen(length) => to.set_len(*length),
        }
    }

    fn length_after(&self, before: u64) -> u64 {
        match self {
            Change::Write { offset, bytes } => before.max(offset + bytes.len() as u64),
            Change::SetLen(length) => *length,
        }
    }

    /// Applies what falls into units that `takes`, and leaves the length alone.
    fn apply_units(&self, to: &mut Pages, unit: usize, takes: impl Fn(u64) -> bool) {
        if let Change::Write { offset, bytes } = self {
            for (number, within, part) in split(*offset, bytes.len(), unit) {
                if takes(number) {
                    to.put(&bytes[part], number * unit as u64 + within as u64);
                }
            }
        }
    }

    fn pages(&self) -> std::ops::RangeInclusive<u64> {
        let page = PAGE as u64;
        match self {
            Change::Write { offset, bytes } => offset / page..=(offset + (bytes.len() as u64).max(1) - 1) / page,
            Change::SetLen(length) => length / page..=length / page,
        }
    }

    fn touches_page_of(&self, other: &Change) -> bool {
        let (mine, theirs) = (self.pages(), other.pages());
        mine.start() <= theirs.end() && theirs.start() <= mine.end()
    }
}

/// A file: what programs see, what is on the disk, and what lies between.
#[derive(Clone, Debug, Default)]
pub struct Inode {
    pub cached: Pages,
    stored: Pages,
    pending: Vec<Change>,
    /// Changes whose sync failed. Their pages count as clean: no later sync writes them, reads still show them.
    doubtful: Vec<Change>,
}

impl Inode {
    pub fn change(&mut self, change: Change) {
        change.apply(&mut self.cached);
        self.pending.push(change);
    }

    /// A sync begins: it covers what has been changed so far.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// A sync of the first `covered` changes has come back well.
    pub fn synced(&mut self, covered: usize) {
        let covered: Vec<Change> = self.pending.drain(..covered.min(self.pending.len())).collect();
        // A page that was changed again is dirty again, and is written as a whole.
        let (written, doubtful) = std::mem::take(&mut self.doubtful)
            .into_iter()
            .partition(|old: &Change| covered.iter().any(|new| new.touches_page_of(old)));
        self.doubtful = doubtful;
        let written: Vec<Change> = written;
        written.iter().chain(&covered).for_each(|change| change.apply(&mut self.stored));
    }

    /// A sync of the first `covered` changes has failed. Linux says so once.
    pub fn sync_failed(&mut self, covered: usize) {
        let lost = self.pending.drain(..covered.min(self.pending.len()));
        self.doubtful.extend(lost);
    }

    /// Turns a bit, as a disk that goes bad does; `false` where the file is shorter.
    pub fn damage(&mut self, offset: u64) -> bool {
        for pages in [&mut self.cached, &mut self.stored] {
            let mut byte = [0];
            if pages.read(&mut byte, offset) == 1 {
                pages.put(&[byte[0] ^ 0x40], offset);
            }
        }
        offset < self.cached.length
    }

    /// The power is cut: of what was not synced any part may have reached the disk, in any order.
    pub fn power_cut(&mut self, random: &mut Dice) {
        let changes: Vec<Change> = self.doubtful.drain(..).chain(self.pending.drain(..)).collect();
        if !changes.is_empty() {
            match random.below(5) {
                0 => {}
                1 => changes.iter().for_each(|change| change.apply(&mut self.stored)),
                2 => self.keep_prefix(&changes, random),
                3 => self.keep_units(&changes, PAGE, random),
                _ => self.keep_units(&changes, SECTOR, random),
            }
        }
        self.cached = self.stored.clone();
    }

    /// Changes reached the disk in order, the last of them perhaps in part.
    fn keep_prefix(&mut self, changes: &[Change], random: &mut Dice) {
        let count = usize::try_from(random.below(changes.len() as u64 + 1)).unwrap_or(0);
        changes[..count].iter().for_each(|change| change.apply(&mut self.stored));
        if let Some(Change::Write { offset, bytes }) = changes.get(count) {
            let sectors = random.below((bytes.len() / SECTOR) as u64 + 1);
            let part = usize::try_from(sectors).unwrap_or(0) * SECTOR;
            if part > 0 {
                self.stored.write(&bytes[..part], *offset);
            }
        }
    }

    /// Each unit shows one moment of its own, and the length another one.
    fn keep_units(&mut self, changes: &[Change], unit: usize, random: &mut Dice) {
        let moments = changes.len() as u64 + 1;
        let salt = random.roll();
        let length_moment = usize::try_from(random.below(moments)).unwrap_or(0);
        let mut length = self.stored.length;
        for (index, change) in changes.iter().enumerate() {
            change.apply_units(&mut self.stored, unit, |number| {
                (index as u64) < Dice::new(salt ^ number).roll() % moments
            });
            if index < length_moment {
                length = change.length_after(length);
            }
        }
        self.stored.set_len(length);
    }
}
