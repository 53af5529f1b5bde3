//! Leases: the lock that one client holds on a resource, for 15 to 60 seconds or without end.
//!
//! A lease is a value. Each action takes the lease as it was and returns the lease as it becomes, or a refusal that
//! changes nothing. A lease also changes with time, without a write: one that has expired stays stored as it was, with
//! its id, and every function computes its state at `now` first. At the very tick of its end it is over.
//!
//! The actions follow <https://learn.microsoft.com/rest/api/storageservices/lease-blob>. Containers share them; they
//! differ in what counts as a write (deleting the container is the only one).

use std::fmt;

use crate::guid;
use crate::time::Timestamp;

/// The lease of one resource, as it is stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Lease {
    /// Never leased, released, or written to without a lease after the last one ended.
    #[default]
    Available,
    /// Held by `id`. After `until` it has expired, and `id` may still renew it.
    Leased { id: LeaseId, duration: LeaseDuration, until: Until },
    /// Being broken: `id` may still write, and no client can acquire a new lease. After `until` it is broken.
    Breaking { id: LeaseId, until: Timestamp },
    /// Broken. `id` is kept, so that its holder can still release it.
    Broken { id: LeaseId },
}

/// The lease state at a given time, as answers show it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LeaseState {
    Available,
    Leased,
    Expired,
    Breaking,
    Broken,
}

/// When a lease ends by itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Until {
    Forever,
    At(Timestamp),
}

/// Why a lease refuses an action on itself, or a use of the resource.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LeaseRefusal {
    /// Acquire: another client holds the lease.
    AlreadyPresent,
    /// Renew, change, release: not the id of this lease.
    IdMismatchWithLeaseOperation,
    /// Acquire: the holder cannot take it again while it is breaking.
    IsBreakingAndCannotBeAcquired,
    /// Change: the holder cannot pass it on while it is breaking.
    IsBreakingAndCannotBeChanged,
    /// Renew: a break was asked for, whether or not it is complete.
    IsBrokenAndCannotBeRenewed,
    /// Change, break: there is no lease to act on.
    NotPresentWithLeaseOperation,
    /// Use: the resource is locked and the request names no lease.
    IdMissing,
    /// Use: the resource is locked by another lease than the request names.
    IdMismatch,
    /// Use: the request names a lease, and there is none.
    NotPresent,
    /// Use: the request names a lease, and the last one has ended.
    Lost,
}

/// The state of the lease, as answers show it.
impl Lease {
    pub fn state(&self, now: Timestamp) -> LeaseState {
        match self.at(now) {
            At::Available => LeaseState::Available,
            At::Leased { .. } => LeaseState::Leased,
            At::Expired { .. } => LeaseState::Expired,
            At::Breaking { .. } => LeaseState::Breaking,
            At::Broken { .. } => LeaseState::Broken,
        }
    }

    /// The lease id that a write must name at `now`.
    pub fn holder(&self, now: Timestamp) -> Option<LeaseId> {
        match self.at(now) {
            At::Leased { id, .. } | At::Breaking { id, .. } => Some(id),
            At::Available | At::Expired { .. } | At::Broken { .. } => None,
        }
    }

    pub fn is_locked(&self, now: Timestamp) -> bool {
        self.holder(now).is_some()
    }

    /// Whether a request that names `id` (or nothing) names the active lease.
    pub fn is_held_by(&self, id: Option<LeaseId>, now: Timestamp) -> bool {
        id.is_some() && id == self.holder(now)
    }

    /// The lease duration, shown only while leased: a breaking lease has none any more.
    pub fn duration_kind(&self, now: Timestamp) -> Option<DurationKind> {
        match self.at(now) {
            At::Leased { duration, .. } => Some(duration.kind()),
            At::Available | At::Expired { .. } | At::Breaking { .. } | At::Broken { .. } => None,
        }
    }
}

/// The five actions on the lease itself.
impl Lease {
    /// Acquires the lease for `proposed`, or for `fresh` (an id never used before) if the client proposes none. Its
    /// holder may acquire it again, with a new duration.
    pub fn acquire(
        &self,
        proposed: Option<LeaseId>,
        fresh: LeaseId,
        duration: LeaseDuration,
        now: Timestamp,
    ) -> Result<Lease, LeaseRefusal> {
        let acquired = Lease::Leased { id: proposed.unwrap_or(fresh), duration, until: duration.starting(now) };
        match self.at(now) {
            At::Available | At::Expired { .. } | At::Broken { .. } => Ok(acquired),
            At::Leased { id, .. } if proposed == Some(id) => Ok(acquired),
            At::Breaking { id, .. } if proposed == Some(id) => Err(LeaseRefusal::IsBreakingAndCannotBeAcquired),
            At::Leased { .. } | At::Breaking { .. } => Err(LeaseRefusal::AlreadyPresent),
        }
    }

    /// Renews the lease for the duration that it was acquired for. It works after expiry too, unless the resource was
    /// written without the lease in between (that makes it available, see [`Lease::check_write`]).
    pub fn renew(&self, id: LeaseId, now: Timestamp) -> Result<Lease, LeaseRefusal> {
        match self.at(now) {
            At::Leased { id: held, duration, .. } | At::Expired { id: held, duration } if id == held => {
                Ok(Lease::Leased { id, duration, until: duration.starting(now) })
            }
            At::Breaking { id: held, .. } | At::Broken { id: held } if id == held => {
                Err(LeaseRefusal::IsBrokenAndCannotBeRenewed)
            }
            At::Available | At::Leased { .. } | At::Expired { .. } | At::Breaking { .. } | At::Broken { .. } => {
                Err(LeaseRefusal::IdMismatchWithLeaseOperation)
            }
        }
    }

    /// Changes the id from `id` to `proposed`; the time of expiry stays. A repeated change succeeds, so that a client
    /// may repeat a request whose answer it lost.
    pub fn change(&self, id: LeaseId, proposed: LeaseId, now: Timestamp) -> Result<Lease, LeaseRefusal> {
        match self.at(now) {
            At::Leased { id: held, duration, until } if held == id || held == proposed => {
                Ok(Lease::Leased { id: proposed, duration, until })
            }
            At::Breaking { id: held, .. } if held == id => Err(LeaseRefusal::IsBreakingAndCannotBeChanged),
            At::Leased { .. } | At::Breaking { .. } => Err(LeaseRefusal::IdMismatchWithLeaseOperation),
            At::Available | At::Expired { .. } | At::Broken { .. } => Err(LeaseRefusal::NotPresentWithLeaseOperation),
        }
    }

    /// Releases the lease, also one that has ended.
    pub fn release(&self, id: LeaseId, now: Timestamp) -> Result<Lease, LeaseRefusal> {
        match self.at(now) {
            At::Leased { id: held, .. }
            | At::Expired { id: held, .. }
            | At::Breaking { id: held, .. }
            | At::Broken { id: held }
                if id == held =>
            {
                Ok(Lease::Available)
            }
            At::Available | At::Leased { .. } | At::Expired { .. } | At::Breaking { .. } | At::Broken { .. } => {
                Err(LeaseRefusal::IdMismatchWithLeaseOperation)
            }
        }
    }

    /// Breaks the lease, without its id: it ends after `period`, and never later than it would have ended anyway. Also
    /// returns the whole seconds until a new lease can be acquired.
    pub fn break_(&self, period: Option<BreakPeriod>, now: Timestamp) -> Result<(Lease, u64), LeaseRefusal> {
        match self.at(now) {
            At::Available => Err(LeaseRefusal::NotPresentWithLeaseOperation),
            At::Leased { id, until, .. } => Ok(broken_at(id, until.cut_short(period, now), now)),
            At::Breaking { id, until } => Ok(broken_at(id, Until::At(until).cut_short(period, now), now)),
            At::Expired { id, .. } | At::Broken { id } => Ok((Lease::Broken { id }, 0)),
        }
    }
}

/// The use of the resource.
impl Lease {
    /// Checks a write that names a lease or none. Returns the lease after the write: one that has ended is forgotten.
    pub fn check_write(&self, id: Option<LeaseId>, now: Timestamp) -> Result<Lease, LeaseRefusal> {
        self.check_read(id, now)?;
        match (self.is_locked(now), id) {
            (true, None) => Err(LeaseRefusal::IdMissing),
            (true, Some(_)) => Ok(*self),
            (false, _) => Ok(Lease::Available),
        }
    }

    /// Checks a read, which needs no lease; but an id that the read names must be the holder's.
    pub fn check_read(&self, id: Option<LeaseId>, now: Timestamp) -> Result<(), LeaseRefusal> {
        let Some(id) = id else { return Ok(()) };
        match self.at(now) {
            At::Available => Err(LeaseRefusal::NotPresent),
            At::Expired { .. } | At::Broken { .. } => Err(LeaseRefusal::Lost),
            At::Leased { id: held, .. } | At::Breaking { id: held, .. } if id == held => Ok(()),
            At::Leased { .. } | At::Breaking { .. } => Err(LeaseRefusal::IdMismatch),
        }
    }
}

/// The id of a lease, chosen by the client or by the server. A GUID, its bytes in the order of its text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LeaseId(pub [u8; 16]);

impl LeaseId {
    /// Parses the GUID forms that clients send, in any case: with hyphens, without, and with hyphens in braces or in
    /// parentheses.
    pub fn parse(text: &str) -> Option<LeaseId> {
        guid::parse(text).map(LeaseId)
    }
}

/// Lower case with hyphens.
impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        guid::write(&self.0, f)
    }
}

/// The duration of a lease. Build it with [`LeaseDuration::from_header_value`], which knows the limits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LeaseDuration {
    Infinite,
    Seconds(u8),
}

/// The duration as answers show it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DurationKind {
    Infinite,
    Fixed,
}

impl LeaseDuration {
    pub const SECONDS_MIN: u8 = 15;
    pub const SECONDS_MAX: u8 = 60;

    /// -1 stands for an infinite lease.
    pub fn from_header_value(value: i64) -> Option<LeaseDuration> {
        if value == -1 {
            return Some(LeaseDuration::Infinite);
        }
        let seconds = u8::try_from(value).ok()?;
        (Self::SECONDS_MIN..=Self::SECONDS_MAX).contains(&seconds).then_some(LeaseDuration::Seconds(seconds))
    }

    pub fn kind(self) -> DurationKind {
        match self {
            LeaseDuration::Infinite => DurationKind::Infinite,
            LeaseDuration::Seconds(_) => DurationKind::Fixed,
        }
    }

    fn starting(self, now: Timestamp) -> Until {
        match self {
            LeaseDuration::Infinite => Until::Forever,
            LeaseDuration::Seconds(seconds) => Until::At(now.plus_seconds(seconds.into())),
        }
    }
}

/// The break period: 0 to 60 seconds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BreakPeriod(u8);

impl BreakPeriod {
    pub const SECONDS_MAX: u8 = 60;

    pub fn from_header_value(value: i64) -> Option<BreakPeriod> {
        let seconds = u8::try_from(value).ok()?;
        (0..=Self::SECONDS_MAX).contains(&seconds).then_some(BreakPeriod(seconds))
    }

    pub fn seconds(self) -> u8 {
        self.0
    }
}

/// A lease at a given time: the stored value with the time taken into account.
enum At {
    Available,
    Leased { id: LeaseId, duration: LeaseDuration, until: Until },
    Expired { id: LeaseId, duration: LeaseDuration },
    Breaking { id: LeaseId, until: Timestamp },
    Broken { id: LeaseId },
}

impl Lease {
    fn at(&self, now: Timestamp) -> At {
        match *self {
            Lease::Available => At::Available,
            Lease::Leased { id, duration, until } if until.is_ahead_of(now) => At::Leased { id, duration, until },
            Lease::Leased { id, duration, .. } => At::Expired { id, duration },
            Lease::Breaking { id, until } if Until::At(until).is_ahead_of(now) => At::Breaking { id, until },
            Lease::Breaking { id, .. } | Lease::Broken { id } => At::Broken { id },
        }
    }
}

impl Until {
    fn is_ahead_of(self, now: Timestamp) -> bool {
        match self {
            Until::Forever => true,
            Until::At(end) => now < end,
        }
    }

    /// When a broken lease ends. Without a period it ends when it would have expired, and an infinite one ends now.
    fn cut_short(self, period: Option<BreakPeriod>, now: Timestamp) -> Timestamp {
        let latest = period.map(|period| now.plus_seconds(period.0.into()));
        match self {
            Until::Forever => latest.unwrap_or(now),
            Until::At(end) => latest.map_or(end, |latest| latest.min(end)),
        }
    }
}

fn broken_at(id: LeaseId, end: Timestamp, now: Timestamp) -> (Lease, u64) {
    let lease = if Until::At(end).is_ahead_of(now) { Lease::Breaking { id, until: end } } else { Lease::Broken { id } };
    (lease, now.seconds_until(end))
}

#[cfg(test)]
mod tests;
