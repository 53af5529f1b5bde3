//! This node among the others: its slot, its stamps, its clock, and the reads it has open.
//!
//! Stamps are unique over all nodes because each node takes those of its own slot, and over time because it takes none
//! above a ceiling that the database keeps; the node that gets the slot next begins above it. They rise within a partition because
//! `commit_batch` refuses one that does not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use engine::{IDS_PER_TICK, Timestamp};

use crate::clock::{DatabaseClock, SLACK};
use crate::pool::{Loan, Pool};
use crate::schema;
use crate::trouble::Trouble;

/// How many nodes there may be at once; the table `node` has as many rows.
const SLOTS: u64 = 16;
/// From one stamp of a slot to the next: a fifth of a millisecond.
const STEP: u64 = SLOTS * IDS_PER_TICK;
/// A node that has not renewed its lease for this long has ended, as far as the others know.
pub const LEASE: Duration = Duration::from_secs(15);
/// How often a node renews its lease.
pub const BEAT: Duration = Duration::from_secs(2);
/// How long the answer to a beat is waited for: a connection that is dead must be replaced before the lease ends.
pub const BEAT_PATIENCE: Duration = Duration::from_secs(10);
/// How far ahead stamps are reserved.
const RESERVE: Duration = Duration::from_secs(10);
/// The clocks of two nodes are never farther apart than this, unless something is wrong with them.
const CLOCKS_APART_TICKS: u64 = 100 * 10_000;
/// A function whose rows arrive later than this is run again, at a new time.
const MOMENT_AGE_TICKS_MAX: u64 = 2 * Timestamp::TICKS_PER_SECOND;
/// A node that starts asks for the time until an answer is as quick as this, and so often at most.
const TIME_WITHIN: Duration = Duration::from_millis(20);
const TIME_TRIES: u32 = 10;
/// It does not start where no answer was quicker than this: its leases would be too short by as much.
const TIME_WITHIN_MAX: Duration = Duration::from_secs(1);
/// A node counts as heard of when one of its beats arrived in this time.
const HEARD_WITHIN: Duration = Duration::from_secs(3 * BEAT.as_secs());

const TIME: &str = "SELECT (extract(epoch FROM cluster_time()) * 1000000)::bigint";

const TICKS_PER_SECOND: u64 = Timestamp::TICKS_PER_SECOND;

#[derive(Debug)]
pub struct Node {
    /// A connection of its own: the node must be heard, and get stamps, however busy the others are.
    lifeline: Pool,
    slot: Mutex<NodeSlot>,
    /// One renewal at a time.
    renewing: tokio::sync::Mutex<()>,
    clock: DatabaseClock,
    reads: Arc<OpenReads>,
    /// When the last beat was sent that arrived.
    heard: Mutex<Option<Instant>>,
    /// Contents stored less contents dropped by this node, not yet told to the others.
    bytes_untold: AtomicI64,
    bytes_known: AtomicI64,
}

/// An id and the run of the node that took it; objects are named after the run.
#[derive(Clone, Copy, Debug)]
pub struct FreshId {
    pub id: u64,
    pub epoch: i64,
}

impl FreshId {
    /// A node that has lost its slot has none until it finds another.
    pub fn has_a_run(&self) -> bool {
        self.epoch != 0
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub now: Timestamp,
    offset_seconds: u64,
    difference: i64,
    /// How old it may be when rows arrive.
    age_ticks_max: u64,
}

/// The slot that this node holds. `epoch` 0: none, until it claims another.
#[derive(Debug, Default)]
struct NodeSlot {
    number: u64,
    epoch: i64,
    last: u64,
    ceiling: u64,
}

impl Node {
    pub fn new(lifeline: Pool) -> Node {
        Node {
            lifeline,
            slot: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
            clock: DatabaseClock::new(),
            reads: Arc::default(),
            heard: Mutex::default(),
            bytes_untold: AtomicI64::new(0),
            bytes_known: AtomicI64::new(0),
        }
    }

    fn slot(&self) -> MutexGuard<'_, NodeSlot> {
        self.slot.lock().expect("nothing panics under this lock")
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time of a function: the same however often it is run, or what it asks for would never end.
    pub fn moment(&self) -> Moment {
        let (offset_seconds, difference) = (self.offset_seconds(), self.clock.difference());
        Moment { now: self.clock.now(), offset_seconds, difference, age_ticks_max: MOMENT_AGE_TICKS_MAX }
    }

    /// Moves the moment on after a load, if it must be moved. `true`: it was moved, and the function runs again. `newest` is the
    /// latest stamp among the rows that were loaded.
    ///
    /// The load may have shown that the clock was moved or was far behind, or have brought rows that a node with a faster clock
    /// wrote. No function decides at a time before that of the rows it has read, or a message just put could not be seen yet; but
    /// a stamp that is far ahead says nothing about the time. A node that stood still does not go on at the time it had then: a
    /// lease would end before its holder hears of it. Each time that happens twice as long is allowed, so that it ends.
    pub fn follow(&self, moment: &mut Moment, newest: i64) -> bool {
        let is_old = moment.offset_seconds != self.offset_seconds() || self.clock.has_leapt_since(moment.difference);
        let is_late = self.now().0.saturating_sub(moment.now.0) > moment.age_ticks_max;
        if is_old || is_late {
            let age_ticks_max = moment.age_ticks_max << u32::from(is_late);
            *moment = Moment { age_ticks_max, ..self.moment() };
        }
        let ahead = u64::try_from(newest).unwrap_or(0).saturating_sub(moment.now.0);
        let is_early = (1..=CLOCKS_APART_TICKS).contains(&ahead);
        if is_early {
            moment.now.0 += ahead;
            self.raise_stamps(newest);
        }
        is_old || is_late || is_early
    }

    pub fn offset_seconds(&self) -> u64 {
        self.clock.offset_seconds.load(Ordering::Acquire)
    }

    /// The offset only grows.
    pub fn raise_offset(&self, seconds: i64) {
        self.clock.offset_seconds.fetch_max(u64::try_from(seconds).unwrap_or(0), Ordering::AcqRel);
    }

    /// An id at once. Another node may have it until it is confirmed.
    pub fn take_id(&self) -> FreshId {
        let now = self.now();
        let mut slot = self.slot();
        slot.last = of_slot(now.0, slot.number).max(slot.last + STEP);
        FreshId { id: slot.last, epoch: slot.epoch }
    }

    /// Waits until the database knows that the id is taken.
    pub async fn confirm(&self, taken: FreshId) -> Result<(), Trouble> {
        loop {
            {
                let slot = self.slot();
                if !taken.has_a_run() || slot.epoch != taken.epoch {
                    return Err(Trouble::Refused("the node has lost its slot".into()));
                }
                if taken.id + STEP <= slot.ceiling {
                    return Ok(());
                }
            }
            self.renew(true).await?;
        }
    }

    /// No stamp from here on is at or below this one.
    pub fn raise_stamps(&self, above: i64) {
        let mut slot = self.slot();
        slot.last = slot.last.max(of_slot(u64::try_from(above).unwrap_or(0), slot.number));
    }

    /// The next stamp, once the database knows that it may be given.
    pub async fn stamp(&self) -> Result<Timestamp, Trouble> {
        loop {
            let now = self.now();
            {
                let mut slot = self.slot();
                let next = of_slot(now.0, slot.number).max(slot.last + STEP);
                if next + STEP <= slot.ceiling {
                    slot.last = next;
                    return Ok(Timestamp(next));
                }
            }
            self.renew(true).await?;
        }
    }

    /// Tells the database that this node lives, and reserves stamps. `only_for_stamps`: not if another call just did.
    pub async fn renew(&self, only_for_stamps: bool) -> Result<(), Trouble> {
        let _alone = self.renewing.lock().await;
        if only_for_stamps && self.has_stamps() {
            return Ok(());
        }
        let loan = self.lifeline.get().await?;
        if !self.clock.is_known() {
            self.learn_the_time(&loan).await?;
        }
        if self.slot().epoch == 0 {
            self.claim(&loan).await?;
        }
        if !self.say(&loan).await? {
            // Others thought this node had ended. What it has staged is lost; it goes on as a new one.
            let lost = std::mem::take(&mut self.slot().epoch);
            tracing::warn!(epoch = lost, "this node was silent for too long and takes a new slot");
            self.claim(&loan).await?;
            if !self.say(&loan).await? {
                self.slot().epoch = 0;
                return Err(Trouble::Refused("the node has lost its slot".into()));
            }
        }
        self.lifeline.give_back(loan);
        Ok(())
    }

    fn has_stamps(&self) -> bool {
        let slot = self.slot();
        self.now().0.max(slot.last + STEP) + 2 * STEP <= slot.ceiling
    }

    /// What was heard of the database's clock in answer to a question sent when `clock_run` was `sent`.
    pub fn hear(&self, sent: i64, microseconds: i64) {
        self.clock.hear(sent, microseconds);
    }

    pub fn clock_run(&self) -> i64 {
        self.clock.run()
    }

    /// The database's clock is behind: its server must be told before anything is decided, or a node that only knows this
    /// server would have another time.
    pub async fn settle_the_time(&self) -> Result<(), Trouble> {
        match self.clock.is_disputed() {
            true => self.renew(false).await,
            false => Ok(()),
        }
    }

    /// The first time it is not known how long answers take, so the quickest of several counts.
    async fn learn_the_time(&self, loan: &Loan) -> Result<(), Trouble> {
        let mut best: Option<(Duration, i64, i64)> = None;
        for _ in 0..TIME_TRIES {
            let (sent, began) = (self.clock.run(), Instant::now());
            let microseconds: i64 = self.lifeline.ask_one(loan, TIME, &[]).await?.get(0);
            let took = began.elapsed();
            if best.is_none_or(|(least, ..)| took < least) {
                best = Some((took, sent, microseconds - i64::try_from(took.as_micros()).unwrap_or(0)));
            }
            if took <= TIME_WITHIN {
                break;
            }
        }
        let Some((took, sent, at_send)) = best.filter(|(took, ..)| *took <= TIME_WITHIN_MAX) else {
            return Err(Trouble::Refused("it answers too slowly to tell the time".into()));
        };
        tracing::debug!(?took, "the time is known");
        // At least that late when the question was sent, so at least so much later now.
        self.clock.hear(sent, at_send + (self.clock.run() - sent) / 10);
        Ok(())
    }

    /// Says that this node lives. `false`: others thought it had ended.
    async fn say(&self, loan: &Loan) -> Result<bool, Trouble> {
        let (slot, epoch, wanted) = {
            let slot = self.slot();
            let next = self.now().0.max(slot.last + STEP);
            (slot.number, slot.epoch, next + RESERVE.as_secs() * TICKS_PER_SECOND)
        };
        let told = self.bytes_untold.load(Ordering::Acquire);
        let sql = "SELECT microseconds, clock_offset, content_bytes FROM \
                   renew_slot($1, $2, make_interval(secs => $3), $4, $5, $6, $7, make_interval(secs => $8))";
        let slot_number = i32::try_from(slot).unwrap_or(0);
        let (lease, ceiling, slack) = (LEASE.as_secs_f64(), wanted.cast_signed(), SLACK.as_secs_f64());
        let (sent, began, now) = (self.clock.run(), Instant::now(), self.clock.database_time());
        let oldest = self.reads.oldest(|| self.clock.database_time());
        let answer = self
            .lifeline
            .ask(loan, sql, &[&slot_number, &epoch, &lease, &ceiling, &oldest, &told, &now, &slack])
            .await?;
        let Some(row) = answer.first() else { return Ok(false) };
        self.clock.hear(sent, row.get(0));
        self.raise_offset(row.get(1));
        self.bytes_untold.fetch_sub(told, Ordering::AcqRel);
        self.bytes_known.store(row.get(2), Ordering::Release);
        self.slot().ceiling = wanted;
        *self.heard.lock().expect("nothing panics under this lock") = Some(began);
        Ok(true)
    }

    /// Whether the others hear this node.
    pub fn is_heard(&self) -> bool {
        let heard = *self.heard.lock().expect("nothing panics under this lock");
        heard.is_some_and(|heard| heard.elapsed() <= HEARD_WITHIN)
    }

    async fn claim(&self, loan: &Loan) -> Result<(), Trouble> {
        let sql = "SELECT slot, epoch, ceiling FROM claim_slot(make_interval(secs => $1))";
        let row = self.lifeline.ask_one(loan, sql, &[&LEASE.as_secs_f64()]).await?;
        let slot: Option<i32> = row.get(0);
        let slot = slot.ok_or_else(|| Trouble::Refused(format!("{SLOTS} nodes run already")))?;
        let (epoch, ceiling): (i64, i64) = (row.get(1), row.get(2));
        // Only now, with a slot: while nodes run, no migration changes the tables.
        if let Err(trouble) = self.lifeline.answer(schema::check(&loan.conn.client)).await {
            self.give_up(loan, slot, epoch).await;
            return Err(trouble);
        }
        let mut held = self.slot();
        let number = u64::try_from(slot).unwrap_or(0);
        let floor = u64::try_from(ceiling).unwrap_or(0).max(held.last);
        *held = NodeSlot { number, epoch, last: of_slot(floor, number) + STEP, ceiling: 0 };
        Ok(())
    }

    /// Gives the slot back, so that the next node need not wait for the lease to end.
    pub async fn leave(&self) {
        let _alone = self.renewing.lock().await;
        let (slot, epoch) = {
            let slot = self.slot();
            (i32::try_from(slot.number).unwrap_or(0), slot.epoch)
        };
        let Ok(loan) = self.lifeline.get().await else { return };
        self.give_up(&loan, slot, epoch).await;
    }

    async fn give_up(&self, loan: &Loan, slot: i32, epoch: i64) {
        let sql = "UPDATE node SET expires = '-infinity' WHERE slot = $1 AND epoch = $2";
        if let Err(error) = self.lifeline.tell(loan, sql, &[&slot, &epoch]).await {
            tracing::debug!(%error, "the node's slot stays taken until its lease ends");
        }
    }

    /// How many round trips the lifeline has made, and how many connections.
    pub fn lifeline_counts(&self) -> (u64, u64) {
        (self.lifeline.round_trips.load(Ordering::Relaxed), self.lifeline.connects.load(Ordering::Relaxed))
    }

    /// A read begins; until what this returns is dropped, nothing that it may see is removed.
    pub fn begin_read(&self) -> Arc<ReadHold> {
        self.reads.begin(|| self.clock.database_time())
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

    /// The time is taken under the lock, so that no read is older than what was said of all reads before it.
    fn begin(self: &Arc<Self>, now: impl FnOnce() -> SystemTime) -> Arc<ReadHold> {
        let mut began = self.lock();
        let key = (now(), self.next.fetch_add(1, Ordering::Relaxed));
        began.insert(key, ());
        Arc::new(ReadHold { reads: Arc::clone(self), key })
    }

    /// When the oldest read began; now, if there is none.
    fn oldest(&self, now: impl FnOnce() -> SystemTime) -> SystemTime {
        let began = self.lock();
        began.keys().next().map_or_else(now, |(began, _)| *began)
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

    /// Without a database; it was 1,000,000 seconds after 1970 when it was last heard of.
    fn node() -> Node {
        let node = Node::new(Pool::new("postgres://nobody@127.0.0.1:1/none", "none", 1).expect("an address"));
        node.hear(node.clock_run(), 1_000_000_000_000);
        node
    }

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
        let node = node();
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
    fn a_server_whose_clock_is_behind_takes_neither_stamp_nor_time_back() {
        let node = node();
        let (before, now) = (node.take_id().id, node.now());
        node.hear(node.clock_run(), 996_400_000_000);
        assert!(node.now() >= now && node.take_id().id > before);
    }

    #[test]
    fn who_began_at_an_old_time_begins_again() {
        let node = node();
        let mut moment = node.moment();
        assert!(!node.follow(&mut moment, 0));
        node.hear(node.clock_run(), 1_000_008_000_000);
        assert!(node.follow(&mut moment, 0), "this machine slept for eight seconds");
        assert!(!node.follow(&mut moment, 0) && moment.now.0 >= Timestamp::UNIX_EPOCH.0 + 10_000_080_000_000);
    }

    #[test]
    fn a_node_that_stood_still_does_not_go_on_at_the_time_it_had() {
        let node = node();
        let mut moment = node.moment();
        let now = moment.now.0;
        let mut follows_after = |seconds: u64| {
            moment.now.0 = node.now().0 - seconds * TICKS_PER_SECOND;
            node.follow(&mut moment, 0) && moment.now.0 >= now
        };
        assert!(!follows_after(1) && follows_after(3), "stopped, while the machine's clock went on");
        assert!(
            !follows_after(3) && follows_after(5),
            "twice as long each time, or a slow database would never be done with"
        );
    }

    #[test]
    fn the_oldest_read_is_the_one_that_counts() {
        let reads = Arc::new(OpenReads::default());
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let oldest = || reads.oldest(|| at(20));
        let (later, first) = (reads.begin(|| at(9)), reads.begin(|| at(3)));
        assert_eq!(oldest(), at(3));
        drop(first);
        assert_eq!(oldest(), at(9));
        drop(later);
        assert_eq!(oldest(), at(20));
    }
}
