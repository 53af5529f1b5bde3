//! This node among the others: its slot, its stamps, its clock, and the reads it has open.
//!
//! Stamps are unique over all nodes because each node takes those of its own slot, and over time because it takes none
//! above a ceiling that the database keeps; who gets the slot next begins above it. They rise within a partition because
//! `commit_batch` refuses one that does not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use engine::{IDS_PER_TICK, Timestamp};

use crate::pool::{Loan, Pool};
use crate::trouble::Trouble;

/// How many nodes there may be at once; the table `node` has as many rows.
const SLOTS: u64 = 16;
/// From one stamp of a slot to the next: a fifth of a millisecond.
const STEP: u64 = SLOTS * IDS_PER_TICK;
/// A node that was silent for this long has ended, as far as the others know.
pub const LEASE: Duration = Duration::from_secs(15);
/// How often a node says that it lives.
pub const BEAT: Duration = Duration::from_secs(2);
/// How far ahead stamps are reserved.
const RESERVE: Duration = Duration::from_secs(10);
/// The clock follows the database's when it is off by more than this.
const CLOCK_SLACK_TICKS: i64 = 20 * 10_000;
/// The clocks of two nodes are never farther apart than this, unless something is wrong with them.
const CLOCKS_APART_TICKS: u64 = 5 * CLOCK_SLACK_TICKS.unsigned_abs();

const TICKS_PER_SECOND: u64 = Timestamp::TICKS_PER_SECOND;

#[derive(Debug)]
pub struct Node {
    place: Mutex<Place>,
    /// One renewal at a time.
    renewing: tokio::sync::Mutex<()>,
    clock: DatabaseClock,
    reads: Arc<OpenReads>,
    /// Contents stored less contents dropped by this node, not yet told to the others.
    bytes_untold: AtomicI64,
    bytes_known: AtomicI64,
}

/// An id and the run of the node that took it; objects are named after the run.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub id: u64,
    pub epoch: i64,
}

#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub now: Timestamp,
    offset_seconds: u64,
}

#[derive(Debug, Default)]
struct Place {
    slot: u64,
    epoch: i64,
    last: u64,
    ceiling: u64,
}

impl Node {
    pub fn new() -> Node {
        Node {
            place: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
            clock: DatabaseClock::new(),
            reads: Arc::default(),
            bytes_untold: AtomicI64::new(0),
            bytes_known: AtomicI64::new(0),
        }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().expect("nothing panics under this lock")
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time of a function: the same however often it is run, or what it asks for would never end.
    pub fn moment(&self) -> Moment {
        let offset_seconds = self.offset_seconds();
        Moment { now: self.clock.now(), offset_seconds }
    }

    /// What a load brings may include that the clock was moved on, or rows that a node with a faster clock wrote: nobody
    /// decides at a time before that of what he has read, or a message just put could not be seen yet. `true`: the moment is
    /// another. `newest` is the latest stamp among the rows; one far ahead is no reason to believe that it is so late.
    pub fn follow(&self, moment: &mut Moment, newest: i64) -> bool {
        let is_old = moment.offset_seconds != self.offset_seconds();
        if is_old {
            *moment = self.moment();
        }
        let ahead = u64::try_from(newest).unwrap_or(0).saturating_sub(moment.now.0);
        let is_early = (1..=CLOCKS_APART_TICKS).contains(&ahead);
        if is_early {
            moment.now.0 += ahead;
            self.raise_stamps(newest);
        }
        is_old || is_early
    }

    pub fn offset_seconds(&self) -> u64 {
        self.clock.offset_seconds.load(Ordering::Acquire)
    }

    /// The offset only grows.
    pub fn raise_offset(&self, seconds: i64) {
        self.clock.offset_seconds.fetch_max(u64::try_from(seconds).unwrap_or(0), Ordering::AcqRel);
    }

    /// An id at once. It is nobody else's only when it is confirmed.
    pub fn take_id(&self) -> Taken {
        let now = self.now();
        let mut place = self.place();
        place.last = of_slot(now.0, place.slot).max(place.last + STEP);
        Taken { id: place.last, epoch: place.epoch }
    }

    /// Waits until the database knows that the id is taken.
    pub async fn confirm(&self, pool: &Pool, taken: Taken) -> Result<(), Trouble> {
        loop {
            {
                let place = self.place();
                if place.epoch != taken.epoch {
                    return Err(Trouble::Refused("the node has lost its place".into()));
                }
                if taken.id + STEP <= place.ceiling {
                    return Ok(());
                }
            }
            self.renew(pool, true).await?;
        }
    }

    /// No stamp from here on is at or below this one.
    pub fn raise_stamps(&self, above: i64) {
        let mut place = self.place();
        place.last = place.last.max(of_slot(u64::try_from(above).unwrap_or(0), place.slot));
    }

    /// The next stamp, once the database knows that it may be given.
    pub async fn stamp(&self, pool: &Pool) -> Result<Timestamp, Trouble> {
        loop {
            let now = self.now();
            {
                let mut place = self.place();
                let next = of_slot(now.0, place.slot).max(place.last + STEP);
                if next + STEP <= place.ceiling {
                    place.last = next;
                    return Ok(Timestamp(next));
                }
            }
            self.renew(pool, true).await?;
        }
    }

    /// Tells the database that this node lives, and reserves stamps. `only_for_stamps`: not if somebody just did.
    pub async fn renew(&self, pool: &Pool, only_for_stamps: bool) -> Result<(), Trouble> {
        let _alone = self.renewing.lock().await;
        let (slot, epoch, wanted) = {
            let place = self.place();
            let next = self.now().0.max(place.last + STEP);
            if only_for_stamps && next + 2 * STEP <= place.ceiling {
                return Ok(());
            }
            (place.slot, place.epoch, next + RESERVE.as_secs() * TICKS_PER_SECOND)
        };
        let loan = pool.get().await?;
        let (slot, epoch) = if epoch == 0 { self.claim(pool, &loan).await? } else { (slot, epoch) };
        let told = self.bytes_untold.load(Ordering::Acquire);
        let sql = "SELECT now, clock_offset, content_bytes FROM \
                   renew_slot($1, $2, make_interval(secs => $3), $4, $5, $6)";
        let slot_number = i32::try_from(slot).unwrap_or(0);
        let (lease, ceiling) = (LEASE.as_secs_f64(), wanted.cast_signed());
        let oldest = self.reads.oldest().unwrap_or_else(|| self.clock.database_time());
        let answer = pool.ask(&loan, sql, &[&slot_number, &epoch, &lease, &ceiling, &oldest, &told]).await?;
        pool.give_back(loan);
        let Some(row) = answer.first() else {
            // Others thought this node had ended. What it has staged is lost; it goes on as a new one.
            tracing::warn!(slot, epoch, "this node was silent for too long and takes a new place");
            self.place().epoch = 0;
            return Err(Trouble::Refused("the node has lost its place".into()));
        };
        self.clock.follow(row.get(0));
        self.raise_offset(row.get(1));
        self.bytes_untold.fetch_sub(told, Ordering::AcqRel);
        self.bytes_known.store(row.get(2), Ordering::Release);
        self.place().ceiling = wanted;
        Ok(())
    }

    async fn claim(&self, pool: &Pool, loan: &Loan) -> Result<(u64, i64), Trouble> {
        let sql = "SELECT slot, epoch, ceiling FROM claim_slot(make_interval(secs => $1))";
        let row = pool.ask_one(loan, sql, &[&LEASE.as_secs_f64()]).await?;
        let slot: Option<i32> = row.get(0);
        let slot = slot.ok_or_else(|| Trouble::Refused(format!("{SLOTS} nodes run already")))?;
        let (epoch, ceiling): (i64, i64) = (row.get(1), row.get(2));
        let mut place = self.place();
        let slot = u64::try_from(slot).unwrap_or(0);
        let floor = u64::try_from(ceiling).unwrap_or(0).max(place.last);
        *place = Place { slot, epoch, last: of_slot(floor, slot) + STEP, ceiling: 0 };
        Ok((slot, epoch))
    }

    /// Gives the slot back, so that the next node need not wait for the lease to end.
    pub async fn leave(&self, pool: &Pool) {
        let (slot, epoch) = {
            let place = self.place();
            (i32::try_from(place.slot).unwrap_or(0), place.epoch)
        };
        let Ok(loan) = pool.get().await else { return };
        let sql = "UPDATE node SET expires = '-infinity' WHERE slot = $1 AND epoch = $2";
        if let Err(error) = pool.tell(&loan, sql, &[&slot, &epoch]).await {
            tracing::debug!(%error, "the node's place stays taken until its lease ends");
        }
    }

    /// A read begins; until what this returns is dropped, nothing that it may see is removed.
    pub fn begin_read(&self) -> Arc<ReadHold> {
        self.reads.begin(self.clock.database_time())
    }

    pub fn count_bytes(&self, change: i64) {
        self.bytes_untold.fetch_add(change, Ordering::AcqRel);
    }

    pub fn content_bytes(&self) -> u64 {
        let bytes = self.bytes_known.load(Ordering::Acquire) + self.bytes_untold.load(Ordering::Acquire);
        u64::try_from(bytes).unwrap_or(0)
    }
}

/// The first stamp of a slot that is not below `at`.
fn of_slot(at: u64, slot: u64) -> u64 {
    let rest = slot * IDS_PER_TICK;
    let step = at.saturating_sub(rest).div_ceil(STEP);
    step * STEP + rest
}

/// The database's clock, as far as it is known here: monotonic time since it was last heard of.
#[derive(Debug)]
struct DatabaseClock {
    started: Instant,
    /// What the database's clock showed when `started` was.
    base: AtomicI64,
    offset_seconds: AtomicU64,
}

impl DatabaseClock {
    fn new() -> DatabaseClock {
        let base = AtomicI64::new(ticks_of(SystemTime::now()));
        DatabaseClock { started: Instant::now(), base, offset_seconds: AtomicU64::new(0) }
    }

    fn run(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_nanos() / 100).unwrap_or(i64::MAX / 4)
    }

    fn ticks(&self) -> i64 {
        self.base.load(Ordering::Acquire) + self.run()
    }

    fn now(&self) -> Timestamp {
        let ticks = u64::try_from(self.ticks()).unwrap_or(0);
        Timestamp(ticks + self.offset_seconds.load(Ordering::Acquire) * TICKS_PER_SECOND)
    }

    /// Without the offset, which is ours and not the database's.
    fn database_time(&self) -> SystemTime {
        let since_epoch = u64::try_from(self.ticks()).unwrap_or(0).saturating_sub(Timestamp::UNIX_EPOCH.0);
        SystemTime::UNIX_EPOCH + Duration::from_micros(since_epoch / 10)
    }

    fn follow(&self, heard: SystemTime) {
        let ahead = ticks_of(heard) - self.ticks();
        if !(-CLOCK_SLACK_TICKS..=0).contains(&ahead) {
            self.base.fetch_add(ahead, Ordering::AcqRel);
        }
    }
}

fn ticks_of(time: SystemTime) -> i64 {
    let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let ticks = u64::try_from(since_epoch.as_nanos() / 100).unwrap_or(u64::MAX / 4);
    (Timestamp::UNIX_EPOCH.0 + ticks).cast_signed()
}

/// When each read began that still runs.
#[derive(Debug, Default)]
struct OpenReads {
    began: Mutex<BTreeMap<(SystemTime, u64), ()>>,
    next: AtomicU64,
}

impl OpenReads {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(SystemTime, u64), ()>> {
        self.began.lock().expect("nothing panics under this lock")
    }

    fn begin(self: &Arc<Self>, now: SystemTime) -> Arc<ReadHold> {
        let key = (now, self.next.fetch_add(1, Ordering::Relaxed));
        self.lock().insert(key, ());
        Arc::new(ReadHold { reads: Arc::clone(self), key })
    }

    fn oldest(&self) -> Option<SystemTime> {
        self.lock().keys().next().map(|(began, _)| *began)
    }
}

/// A read under way.
#[derive(Debug)]
pub struct ReadHold {
    reads: Arc<OpenReads>,
    key: (SystemTime, u64),
}

impl Drop for ReadHold {
    fn drop(&mut self) {
        self.reads.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_never_share_a_stamp() {
        for slot in [0, 1, SLOTS - 1] {
            for at in [0, 5, STEP - 1, STEP, STEP + 1, 639_000_000_000_000_000] {
                let stamp = of_slot(at, slot);
                assert!(stamp >= at && stamp < at + STEP, "{at} {slot}");
                assert_eq!(stamp % STEP, slot * IDS_PER_TICK);
                assert_eq!(of_slot(stamp, slot), stamp);
            }
        }
    }

    #[test]
    fn nobody_decides_before_what_he_has_read() {
        let node = Node::new();
        let mut moment = node.moment();
        let before = moment.now;
        let at = |ticks: u64| (before.0 + ticks).cast_signed();
        assert!(!node.follow(&mut moment, at(0)), "it is as late already");
        assert!(node.follow(&mut moment, at(50_000)));
        assert_eq!(moment.now.0, before.0 + 50_000, "a clock that is a little behind");
        assert!(node.take_id().id > moment.now.0, "and so are the stamps");
        assert!(!node.follow(&mut moment, at(TICKS_PER_SECOND)), "a stamp far ahead says nothing of the time");
        assert_eq!(moment.now.0, before.0 + 50_000);
    }

    #[test]
    fn a_server_whose_clock_is_behind_takes_no_stamp_back() {
        let node = Node::new();
        let before = node.take_id().id;
        node.clock.follow(SystemTime::now() - Duration::from_secs(3_600));
        assert!(node.now().0 < before, "the time is that of the new server");
        assert!(node.take_id().id > before);
    }

    #[test]
    fn the_oldest_read_is_the_one_that_counts() {
        let reads = Arc::new(OpenReads::default());
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let (later, first) = (reads.begin(at(9)), reads.begin(at(3)));
        assert_eq!(reads.oldest(), Some(at(3)));
        drop(first);
        assert_eq!(reads.oldest(), Some(at(9)));
        drop(later);
        assert_eq!(reads.oldest(), None);
    }
}
