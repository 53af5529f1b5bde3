//! Decisions that look at many rows are run outside, on a snapshot, so that the others do not wait for them. In its turn
//! such a decision is only checked: it holds if nothing that it looked at has been written since.
//!
//! What it looked at is its [`Footprint`]: every row it asked for and every range it scanned, as far as it went, whichever
//! partition they belong to. What was written meanwhile stands in [`RecentWrites`], which the decider keeps while any
//! decision is outside. The comparison is exact, so it finds rows that appeared in a scanned range too. And it holds only if no
//! decision of its own partitions was judged with a later stamp: stamps rise within a partition.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::{Content, ContentId, Key, Partitions, Rows, Tick, Timestamp, Unread, Verdict, Visit};

use crate::manifest::content_key;
use crate::pipeline::{Prepared, Request, run};
use crate::probe::Moment;
use crate::{Inner, Patience, Snapshot, fill_random, sync};

/// Above this the oldest recent writes are forgotten, and decisions that would need them are run again.
const RECENT_BYTES_MAX: usize = 8 << 20;
/// The memory that a recent write takes beside its key.
const RECENT_OVERHEAD: usize = 48;
/// Ranges beyond this number are joined with the one before them: a footprint that is too large is only too careful.
const RANGES_MAX: usize = 4_096;
/// How often to look whether what was written before is published.
const PUBLISH_PAUSE: Duration = Duration::from_millis(1);

/// Runs the decisions that look at many rows.
pub fn run_outside(inner: &Arc<Inner>) {
    while let Some(mut request) = inner.pipeline.next_heavy() {
        let _ = inner.options.probe.at(Moment::Outside);
        if !wait_until_published(inner, request.after) {
            return;
        }
        request.tries += 1;
        request.prepared = Some(prepare(inner, &mut request));
        inner.pipeline.came_back(request);
    }
}

/// A snapshot must hold what was written before the decider began to note writes. `false`: the engine broke down.
fn wait_until_published(inner: &Inner, after: u64) -> bool {
    while inner.tree.published() <= after {
        if inner.pipeline.is_broken() {
            return false;
        }
        sync::sleep(PUBLISH_PAUSE);
    }
    true
}

fn prepare(inner: &Arc<Inner>, request: &mut Request) -> Prepared {
    let now = inner.clock.now();
    let stamp = inner.stamps.next(now);
    let rows = Outside { snapshot: Snapshot::new(inner, Patience::Waits), ranges: RefCell::default() };
    let mut bytes = [0; 16];
    let verdict = match fill_random(&mut bytes, &inner.options.probe) {
        Ok(()) => {
            let entropy = u128::from_le_bytes(bytes);
            run(&mut request.decision, &rows, Tick { now, stamp, entropy })
        }
        Err(error) => Verdict::Unread(Unread::Failed(error)),
    };
    Prepared { verdict, stamp, at: rows.snapshot.pin.at, footprint: Footprint::new(rows.ranges.into_inner()) }
}

/// Keys from the first on and before the second.
type Range = (Vec<u8>, Vec<u8>);

/// The rows for a decision that is run outside: the newest durable state. Every row and range that it reads is noted.
struct Outside<'a> {
    snapshot: Snapshot<'a>,
    ranges: RefCell<Vec<Range>>,
}

impl Outside<'_> {
    fn note(&self, from: &[u8], to: Vec<u8>) {
        let mut ranges = self.ranges.borrow_mut();
        match ranges.last_mut() {
            Some(last) if last.0.as_slice() <= from && last.1.as_slice() >= from => last.1 = to.max(last.1.clone()),
            _ => ranges.push((from.to_vec(), to)),
        }
        if ranges.len() > 2 * RANGES_MAX {
            *ranges = Footprint::new(std::mem::take(&mut *ranges)).0;
        }
    }
}

impl Rows for Outside<'_> {
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Unread> {
        self.note(key.as_bytes(), just_after(key.as_bytes()));
        self.snapshot.get(key)
    }

    fn scan(
        &self,
        from: &Key,
        to: &Key,
        about: usize,
        visit: &mut dyn FnMut(&[u8], &Bytes) -> Visit,
    ) -> Result<(), Unread> {
        let mut begin = from.as_bytes().to_vec();
        let mut stopped = false;
        self.snapshot.scan(from, to, about, &mut |key, value| {
            let next = visit(key, value);
            match &next {
                Visit::Next => {}
                Visit::SkipTo(target) => {
                    self.note(&begin, just_after(key));
                    begin = target.as_bytes().to_vec();
                }
                Visit::Stop => {
                    self.note(&begin, just_after(key));
                    stopped = true;
                }
            }
            next
        })?;
        if !stopped && begin.as_slice() < to.as_bytes() {
            self.note(&begin, to.as_bytes().to_vec());
        }
        Ok(())
    }

    fn content(&self, id: ContentId) -> Result<Content, Unread> {
        let first = content_key(id, 0);
        self.note(first.as_bytes(), just_after(first.as_bytes()));
        self.snapshot.content(id)
    }
}

/// The first key after this one.
fn just_after(key: &[u8]) -> Vec<u8> {
    let mut after = Vec::with_capacity(key.len() + 1);
    after.extend_from_slice(key);
    after.push(0);
    after
}

/// The keys that a decision depends on: ranges in order, without overlaps.
#[derive(Debug, Default)]
pub struct Footprint(Vec<Range>);

impl Footprint {
    fn new(mut ranges: Vec<Range>) -> Footprint {
        ranges.sort_unstable();
        let most = RANGES_MAX;
        let mut joined: Vec<Range> = Vec::with_capacity(ranges.len().min(most));
        for range in ranges {
            let is_full = joined.len() == most;
            match joined.last_mut() {
                Some(last) if last.1 >= range.0 || is_full => last.1 = range.1.max(std::mem::take(&mut last.1)),
                _ => joined.push(range),
            }
        }
        Footprint(joined)
    }

    fn covers(&self, key: &[u8]) -> bool {
        let after = self.0.partition_point(|(from, _)| from.as_slice() <= key);
        after > 0 && key < self.0[after - 1].1.as_slice()
    }
}

/// The keys that were written while decisions are outside. Only the decider uses it.
#[derive(Debug, Default)]
pub struct RecentWrites {
    writes: VecDeque<(u64, Vec<u8>)>,
    bytes: usize,
    /// Writes of batches up to this one may be missing here.
    forgotten: u64,
    /// The partitions of the decisions that are outside, or back and not yet judged: how many those are, and the last stamp
    /// of a decision that was judged meanwhile.
    partitions: HashMap<Key, (usize, Timestamp)>,
}

impl RecentWrites {
    /// A decision of these partitions goes outside. `last_written` is the last batch that anything was written to so far.
    pub fn begin(&mut self, partitions: &Partitions, last_written: u64) {
        if self.partitions.is_empty() {
            self.forgotten = last_written;
        }
        for partition in partitions.iter() {
            self.partitions.entry(partition.clone()).or_insert((0, Timestamp(0))).0 += 1;
        }
    }

    /// A decision of these partitions that was outside has been judged.
    pub fn end(&mut self, partitions: &Partitions) {
        for partition in partitions.iter() {
            let (count, _) = self.partitions.get_mut(partition).expect("it began before it ends");
            *count -= 1;
            if *count == 0 {
                self.partitions.remove(partition);
            }
        }
        if self.partitions.is_empty() {
            *self = RecentWrites::default();
        }
    }

    /// A decision of these partitions was judged with this stamp.
    pub fn note_stamp(&mut self, partitions: &Partitions, stamp: Timestamp) {
        if self.partitions.is_empty() {
            return;
        }
        for partition in partitions.iter() {
            if let Some((_, last)) = self.partitions.get_mut(partition) {
                *last = stamp.max(*last);
            }
        }
    }

    /// Whether a decision that was judged since, of one of these partitions, has a later stamp.
    pub fn overtook(&self, partitions: &Partitions, stamp: Timestamp) -> bool {
        partitions.iter().filter_map(|partition| self.partitions.get(partition)).any(|(_, last)| *last > stamp)
    }

    pub fn note(&mut self, seq: u64, key: &[u8]) {
        if self.partitions.is_empty() {
            return;
        }
        self.bytes += key.len() + RECENT_OVERHEAD;
        self.writes.push_back((seq, key.to_vec()));
        while self.bytes > RECENT_BYTES_MAX
            && let Some((seq, key)) = self.writes.pop_front()
        {
            self.bytes -= key.len() + RECENT_OVERHEAD;
            self.forgotten = seq;
        }
    }

    /// Whether anything that the footprint covers may have been written since state `at`.
    pub fn touched(&self, footprint: &Footprint, at: u64) -> bool {
        if at <= self.forgotten {
            return true;
        }
        let first = self.writes.partition_point(|(seq, _)| *seq < at);
        self.writes.range(first..).any(|(_, key)| footprint.covers(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: &str, to: &str) -> Range {
        (from.as_bytes().to_vec(), to.as_bytes().to_vec())
    }

    #[test]
    fn a_footprint_covers_what_was_looked_at_and_nothing_else() {
        let footprint = Footprint::new(vec![range("m", "p"), range("a", "c"), range("b", "d"), range("x", "x\0")]);
        assert_eq!(footprint.0.len(), 3, "overlaps are joined");
        for (key, covered) in [("a", true), ("c", true), ("d", false), ("l", false), ("m", true), ("oz", true)] {
            assert_eq!(footprint.covers(key.as_bytes()), covered, "{key}");
        }
        for (key, covered) in [("p", false), ("x", true), ("x\0", false), ("z", false)] {
            assert_eq!(footprint.covers(key.as_bytes()), covered, "{key}");
        }
    }

    #[test]
    fn a_footprint_of_too_many_ranges_covers_too_much_rather_than_too_little() {
        let keys: Vec<String> = (0..RANGES_MAX + 10).map(|number| format!("{number:06}")).collect();
        let ranges = keys.iter().map(|key| (key.as_bytes().to_vec(), just_after(key.as_bytes()))).collect();
        let footprint = Footprint::new(ranges);
        assert_eq!(footprint.0.len(), RANGES_MAX);
        assert!(keys.iter().all(|key| footprint.covers(key.as_bytes())));
    }

    #[test]
    fn only_writes_after_the_snapshot_count() {
        let (mut recent, partition) = (RecentWrites::default(), Partitions::from(Key::new(0x70)));
        recent.begin(&partition, 10);
        recent.note(11, b"b");
        let footprint = Footprint::new(vec![range("a", "c")]);
        assert!(recent.touched(&footprint, 10), "batch 10 was begun before writes were noted");
        assert!(recent.touched(&footprint, 11), "the snapshot ends before batch 11");
        assert!(!recent.touched(&footprint, 12));
        assert!(!recent.touched(&Footprint::new(vec![range("c", "d")]), 11));
        recent.end(&partition);
        recent.note(12, b"b");
        assert!(recent.writes.is_empty(), "no decision is outside");
    }

    #[test]
    fn later_stamps_of_the_same_partition_overtake() {
        let (mut recent, one) = (RecentWrites::default(), Partitions::from(Key::new(0x70)));
        let other = Partitions::from(Key::new(0x71));
        recent.note_stamp(&one, Timestamp(100));
        recent.begin(&one, 10);
        recent.begin(&one, 11);
        recent.begin(&other, 12);
        assert!(!recent.overtook(&one, Timestamp(50)), "that was judged before it went outside");
        recent.note_stamp(&one, Timestamp(200));
        assert!(recent.overtook(&one, Timestamp(150)) && !recent.overtook(&one, Timestamp(250)));
        assert!(!recent.overtook(&other, Timestamp(150)));
        recent.end(&one);
        assert!(recent.overtook(&one, Timestamp(150)), "the second is still outside");
        recent.end(&one);
        let both = Partitions::of([Key::new(0x70), Key::new(0x71)]);
        assert!(!recent.overtook(&both, Timestamp(150)), "no decision of the first partition is outside any more");
        recent.begin(&both, 13);
        recent.note_stamp(&one, Timestamp(300));
        assert!(recent.overtook(&both, Timestamp(250)) && !recent.overtook(&other, Timestamp(250)));
        recent.note_stamp(&both, Timestamp(400));
        assert!(recent.overtook(&other, Timestamp(350)), "one of both partitions counts in each");
        recent.end(&other);
        recent.end(&both);
        assert!(recent.partitions.is_empty());
    }

    #[test]
    fn what_was_forgotten_counts_as_written() {
        let mut recent = RecentWrites::default();
        recent.begin(&Key::new(0x70).into(), 10);
        let long = vec![b'z'; 8_000];
        for seq in 11..=2_000 {
            recent.note(seq, &long);
        }
        assert!(recent.bytes <= RECENT_BYTES_MAX && recent.forgotten > 11);
        let elsewhere = Footprint::new(vec![range("a", "c")]);
        assert!(recent.touched(&elsewhere, 11));
        assert!(!recent.touched(&elsewhere, 2_000));
    }
}
