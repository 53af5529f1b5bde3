//! Sparse resources: which content holds which bytes of a page blob or a file.
//!
//! The bytes of a resource are a map. It has a row for each group of 1 MiB that was ever written, by group and **epoch**: the
//! row says where every byte of the group is, and bytes it does not name are zeros. A write makes the row of its epoch from
//! the newest there is. A snapshot raises the epoch of the resource and keeps the old one for itself, so it costs one row
//! however large the resource is; a read at an epoch takes, of each group, the newest row that is not newer.
//!
//! What refers to what: the resource and each of its snapshots refer to the map, by their epochs; a row refers to the
//! contents it names, by an id of its own. So the references to a map say which epochs are still to be read, and a row that
//! no such epoch reads can go.
//!
//! A comparison with a snapshot also tells of pages that were written and cleared since, though they are zeros at both ends.
//! So a row keeps when its pages were cleared, for as long as there is an earlier epoch to compare with. Only pages that held
//! something are marked: what a clear stores never exceeds what was written.
//!
//! Page blobs count in pages of 512 bytes ([`PageView`]). Files count in bytes ([`FileView`]), but clients see what is written
//! and cleared in pages of the same size:
//!
//! - `collect`: pruning, and the handler of due rows.
//! - `compact`: rewrites groups of files that small writes have broken into many runs.
//! - `copy`: copies and cuts, which put one map in front of another.
//! - `gather`: small writes to files, which take small neighbours along.
//! - `group`: one row.
//! - `share`: contents of another resource, as runs of a map.
//! - `read`: the rows of a view, and opening its bytes.
//! - `ranges`: what is written, and what has changed.
//! - `write`: writes and clears.

mod collect;
mod compact;
mod copy;
mod gather;
mod group;
mod ranges;
mod read;
mod share;
#[cfg(test)]
mod tests;
mod write;

use bytes::Bytes;
use concurrency::Timestamp;
use engine::collector::ref_key;
use engine::due;
use engine::{Changes, Key, KeyReader, Unread};
use minicbor::{Decode, Encode};
use service::{codec, space};

pub use collect::MapCollector;
pub use compact::{Crowded, RUNS_DUE, RUNS_MAX, compact};
pub use copy::{Branch, CUT_ROWS_MAX, ORIGINS_MAX};
pub use gather::{GATHERED_BYTES_MAX, Gathered, Gathering};
pub use ranges::Changed;
pub use share::SHARED_GROUPS_MAX;

/// What clients see of maps counts in pages of this size.
pub const PAGE_BYTES: u64 = 512;
/// A page write of the largest size, 4 MiB, touches five groups at most, and a row of single pages stays well below what
/// engines take.
pub const GROUP_BYTES: u64 = 1 << 20;
/// No map goes beyond this: the longest page blob, 8 TiB.
const MAP_BYTES_MAX: u64 = 8 << 40;
/// The first epoch of a map.
const FIRST_EPOCH: u64 = 1;
/// Where the ids of new rows begin among those of a tick; the ones below are for the service that owns the resource.
const FRESH_IDS: u64 = 64;

/// The map of a page blob, as it is seen at one epoch.
pub type PageView = View<PAGE_BYTES>;
/// The map of a file, as it is seen at one epoch.
pub type FileView = View<1>;

/// A map as it is seen at one epoch. Its rows count in units of `UNIT` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct View<const UNIT: u64> {
    #[n(0)]
    pub map: u64,
    #[n(1)]
    pub epoch: u64,
}

/// Bytes from `start` up to and without `end`. Those of page blobs begin and end on the border of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteSpan {
    pub start: u64,
    pub end: u64,
}

impl ByteSpan {
    pub fn length(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// The whole pages that it touches, cut at the end of a resource of `length` bytes.
    pub fn outwards(self, length: u64) -> ByteSpan {
        let start = self.start - self.start % PAGE_BYTES;
        ByteSpan { start, end: self.end.next_multiple_of(PAGE_BYTES).min(length).max(start) }
    }

    fn cut_to(self, other: ByteSpan) -> ByteSpan {
        ByteSpan { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// The groups that it touches: the first one, and the one after the last.
    fn groups(self) -> (u64, u64) {
        (self.start / GROUP_BYTES, self.end.div_ceil(GROUP_BYTES))
    }
}

impl<const UNIT: u64> View<UNIT> {
    /// How many units a group has, and how many a page has.
    const GROUP_UNITS: u64 = GROUP_BYTES / UNIT;
    const PAGE_UNITS: u64 = PAGE_BYTES / UNIT;

    /// A new map, all zeros.
    pub fn new(map: u64) -> View<UNIT> {
        View { map, epoch: FIRST_EPOCH }
    }

    /// Stores a new map. It has a row of its own, because what is referred to must be there.
    pub fn create(self, changes: &mut Changes) {
        changes.put(rows_of(self.map), Bytes::new());
        self.refer(changes);
    }

    /// A resource or a snapshot sees this epoch from now on.
    pub fn refer(self, changes: &mut Changes) {
        changes.refer(self.map, self.epoch);
    }

    /// No resource and no snapshot sees this epoch any longer. The collector removes what only this epoch could see.
    pub fn let_go(self, changes: &mut Changes, now: Timestamp) {
        changes.delete(ref_key(self.map, self.epoch));
        changes.put(prune_due(self.map, 0, now), Bytes::new());
    }

    /// The resource goes on in the next epoch, and this one is left to the maps that have branched off.
    pub fn move_on(self, changes: &mut Changes) -> View<UNIT> {
        changes.delete(ref_key(self.map, self.epoch));
        self.next().refer(changes);
        self.next()
    }

    /// The epoch that writes go to once this one is kept for a snapshot.
    pub fn next(self) -> View<UNIT> {
        View { epoch: self.epoch + 1, ..self }
    }

    /// The units of a group that `span` covers, counted from the start of the group.
    fn units_in(span: ByteSpan, group: u64) -> (u64, u64) {
        let base = group * Self::GROUP_UNITS;
        let unit = |offset: u64| (offset / UNIT).saturating_sub(base).min(Self::GROUP_UNITS);
        (unit(span.start), unit(span.end))
    }

    /// The bytes of some units of a group.
    fn bytes_of(group: u64, from: u64, to: u64) -> ByteSpan {
        let base = group * GROUP_BYTES;
        ByteSpan { start: base + from * UNIT, end: base + to * UNIT }
    }
}

fn rows_of(map: u64) -> Key {
    Key::new(space::PAGE_MAP).number(map)
}

fn group_rows(map: u64, group: u64) -> Key {
    rows_of(map).number(group)
}

fn key(map: u64, group: u64, epoch: u64) -> Key {
    group_rows(map, group).number(epoch)
}

/// The group and the epoch in the key of a row.
fn parts(key: &[u8]) -> Result<(u64, u64), Unread> {
    let mut reader = KeyReader::new(key);
    let parts = reader.number().and_then(|_| Some((reader.number()?, reader.number()?)));
    parts.ok_or_else(|| codec::corrupt("the key of a map"))
}

/// The due row that asks for a map to be pruned: its map and where to begin.
fn prune_due(map: u64, from: u64, now: Timestamp) -> Key {
    due::key(now, space::PAGE_MAP, &[map.to_be_bytes(), from.to_be_bytes()].concat())
}

/// Reads a row as each kind of row that maps have.
#[cfg(any(test, feature = "testing"))]
pub fn fuzz(row: &[u8]) {
    let _ = (codec::decode::<copy::Origins>(row).is_ok(), codec::decode::<group::Group>(row).is_ok());
}
