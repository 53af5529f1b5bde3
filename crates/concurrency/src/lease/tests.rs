//! `published` has Azure's outcome tables cell by cell, `laws` walks through all states, `parameters` parses ids,
//! durations and periods. What they share is here.

mod laws;
mod parameters;
mod published;

use super::{BreakPeriod, Lease, LeaseDuration, LeaseId, LeaseRefusal, Until};
use crate::time::Timestamp;

const SECOND: u64 = Timestamp::TICKS_PER_SECOND;

const A: LeaseId = LeaseId([0xAA; 16]);
const B: LeaseId = LeaseId([0xBB; 16]);
const C: LeaseId = LeaseId([0xCC; 16]);
/// The id that the server would draw.
const X: LeaseId = LeaseId([0x11; 16]);

#[derive(Clone, Copy, PartialEq, Debug)]
enum Action {
    Acquire(Option<LeaseId>, LeaseDuration),
    Renew(LeaseId),
    Change(LeaseId, LeaseId),
    Release(LeaseId),
    Break(Option<u8>),
    Write(Option<LeaseId>),
    Read(Option<LeaseId>),
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Done {
    lease: Lease,
    /// Only break returns it.
    seconds: Option<u64>,
}

impl Action {
    fn on(self, lease: Lease, now: Timestamp) -> Result<Done, LeaseRefusal> {
        let done = |lease| Done { lease, seconds: None };
        match self {
            Action::Acquire(proposed, duration) => lease.acquire(proposed, X, duration, now).map(done),
            Action::Renew(id) => lease.renew(id, now).map(done),
            Action::Change(id, proposed) => lease.change(id, proposed, now).map(done),
            Action::Release(id) => lease.release(id, now).map(done),
            Action::Break(period) => {
                lease.break_(period.map(seconds), now).map(|(lease, seconds)| Done { lease, seconds: Some(seconds) })
            }
            Action::Write(id) => lease.check_write(id, now).map(done),
            Action::Read(id) => lease.check_read(id, now).map(|()| done(lease)),
        }
    }
}

fn seconds(period: u8) -> BreakPeriod {
    BreakPeriod::from_header_value(period.into()).expect("0 to 60")
}

fn leased(id: LeaseId, duration: u8, end: Timestamp) -> Lease {
    Lease::Leased { id, duration: LeaseDuration::Seconds(duration), until: Until::At(end) }
}

fn leased_forever(id: LeaseId) -> Lease {
    Lease::Leased { id, duration: LeaseDuration::Infinite, until: Until::Forever }
}

fn minus_ticks(time: Timestamp, ticks: u64) -> Timestamp {
    Timestamp(time.ticks() - ticks)
}
