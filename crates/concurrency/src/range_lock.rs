//! Byte-range locks: parts of a file that one handle keeps from others.
//!
//! The rules are those of MS-FSA and of the Windows lock functions:
//!
//! - an exclusive lock keeps all other handles from reading and writing its range; a shared lock keeps everyone from writing, its own
//!   holder included;
//! - shared locks overlap one another; an exclusive lock overlaps nothing, except that its holder may put a shared one over it;
//! - a lock of no length conflicts only strictly inside another lock; locks beyond the end of the file are allowed;
//! - an unlock names exactly the range of one lock.
//!
//! REST holds no such locks but meets them: a write meets every lock, a read the exclusive ones.

use std::collections::VecDeque;
use std::fmt;

/// Locks that one handle may hold.
pub const LOCKS_PER_OPEN_MAX: usize = 4_096;
/// Requests of one handle that may wait.
pub const WAITS_PER_OPEN_MAX: usize = 64;
/// Locks of one file over all its handles. Each read and write looks at all of them.
pub const LOCKS_PER_FILE_MAX: usize = 16_384;
/// Requests that may wait for one file. Each unlock looks at all of them.
pub const WAITS_PER_FILE_MAX: usize = 1_024;

/// Names a handle among those of its file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct OpenId(pub u64);

/// Names a request that waits; never used twice for one file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct WaitId(pub u64);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockKind {
    Shared,
    Exclusive,
}

/// Bytes from `offset` on. The last byte is at most byte 2^64 - 1; the length may be zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LockRange {
    offset: u64,
    length: u64,
}

impl LockRange {
    pub fn new(offset: u64, length: u64) -> Result<LockRange, LockRefusal> {
        let last = length.checked_sub(1).map_or(Some(offset), |more| offset.checked_add(more));
        last.map(|_| LockRange { offset, length }).ok_or(LockRefusal::InvalidRange)
    }

    pub fn offset(self) -> u64 {
        self.offset
    }

    pub fn length(self) -> u64 {
        self.length
    }

    /// For a range without length: whether it lies strictly inside the other.
    fn overlaps(self, other: LockRange) -> bool {
        u128::from(self.offset) < other.end() && u128::from(other.offset) < self.end()
    }

    fn end(self) -> u128 {
        u128::from(self.offset) + u128::from(self.length)
    }
}

/// What a read or write does with its range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transfer {
    Read,
    Write,
}

/// Whose read or write it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Actor {
    Handle(OpenId),
    /// A REST request, which holds no locks.
    Rest,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockRefusal {
    /// Another lock overlaps: `LOCK_NOT_GRANTED`.
    NotGranted,
    /// A read or write meets a lock: 409 `FileLockConflict`.
    Conflict,
    /// An unlock names no lock of its handle: `RANGE_NOT_LOCKED`.
    NotLocked,
    /// The range ends beyond 2^64: `INVALID_LOCK_RANGE`.
    InvalidRange,
    /// A limit of this module is reached: `INSUFFICIENT_RESOURCES`.
    TooMany,
}

impl fmt::Display for LockRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LockRefusal::NotGranted => "another lock overlaps the range",
            LockRefusal::Conflict => "a lock of another handle overlaps the range",
            LockRefusal::NotLocked => "the handle has no lock of exactly this range",
            LockRefusal::InvalidRange => "the range ends beyond the largest offset",
            LockRefusal::TooMany => "too many locks",
        })
    }
}

impl std::error::Error for LockRefusal {}

/// What became of a request that is ready to wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockOutcome {
    Granted,
    Waiting,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Lock {
    owner: OpenId,
    range: LockRange,
    kind: LockKind,
}

impl Lock {
    fn stands_against_lock(&self, new: &Lock) -> bool {
        if !self.range.overlaps(new.range) {
            return false;
        }
        match (self.kind, new.kind) {
            (LockKind::Shared, LockKind::Shared) => false,
            (LockKind::Exclusive, LockKind::Shared) => self.owner != new.owner,
            (_, LockKind::Exclusive) => true,
        }
    }

    fn stands_against_transfer(&self, actor: Actor, range: LockRange, transfer: Transfer) -> bool {
        if !self.range.overlaps(range) {
            return false;
        }
        match (self.kind, transfer) {
            (LockKind::Exclusive, _) => actor != Actor::Handle(self.owner),
            (LockKind::Shared, Transfer::Write) => true,
            (LockKind::Shared, Transfer::Read) => false,
        }
    }
}

/// The locks of one file, and the requests that wait for one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RangeLocks {
    /// In the order in which they were granted.
    held: Vec<Lock>,
    /// In the order in which they were asked for.
    waiting: VecDeque<(WaitId, Lock)>,
}

impl RangeLocks {
    /// Takes all of the ranges or none. They are taken in order, so two of one request may stand against each other.
    pub fn lock_all(&mut self, owner: OpenId, ranges: &[(LockRange, LockKind)]) -> Result<(), LockRefusal> {
        let before = self.held.len();
        let taken = ranges.iter().try_for_each(|(range, kind)| self.take(Lock { owner, range: *range, kind: *kind }));
        if taken.is_err() {
            self.held.truncate(before);
        }
        taken
    }

    /// Takes the range, or waits for it under the name `wait`. Requests that wait do not hold up those that come later and need not.
    pub fn lock_or_wait(
        &mut self,
        wait: WaitId,
        owner: OpenId,
        range: LockRange,
        kind: LockKind,
    ) -> Result<LockOutcome, LockRefusal> {
        let lock = Lock { owner, range, kind };
        match self.take(lock) {
            Ok(()) => return Ok(LockOutcome::Granted),
            Err(LockRefusal::NotGranted) => {}
            Err(refusal) => return Err(refusal),
        }
        let waits_of_owner = self.waiting.iter().filter(|(_, waiting)| waiting.owner == owner).count();
        if self.waiting.len() >= WAITS_PER_FILE_MAX || waits_of_owner >= WAITS_PER_OPEN_MAX {
            return Err(LockRefusal::TooMany);
        }
        self.waiting.push_back((wait, lock));
        Ok(LockOutcome::Waiting)
    }

    /// Withdraws a request that waits. Says whether it did still wait: otherwise it has been granted.
    pub fn cancel(&mut self, wait: WaitId) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(waiting, _)| *waiting != wait);
        self.waiting.len() < before
    }

    /// Gives up one lock of exactly this range, an exclusive one first. Answers the requests that are granted for it, in the order in
    /// which they were asked for.
    pub fn unlock(&mut self, owner: OpenId, range: LockRange) -> Result<Vec<WaitId>, LockRefusal> {
        let is_named = |lock: &Lock| lock.owner == owner && lock.range == range;
        let exclusive = self.held.iter().position(|lock| is_named(lock) && lock.kind == LockKind::Exclusive);
        let found = exclusive.or_else(|| self.held.iter().position(is_named)).ok_or(LockRefusal::NotLocked)?;
        self.held.remove(found);
        Ok(self.grant_waiting())
    }

    /// The handle is closed: its locks and waiting requests go. Answers the requests of others that are granted for it.
    pub fn close(&mut self, owner: OpenId) -> Vec<WaitId> {
        self.waiting.retain(|(_, lock)| lock.owner != owner);
        let before = self.held.len();
        self.held.retain(|lock| lock.owner != owner);
        if self.held.len() == before { Vec::new() } else { self.grant_waiting() }
    }

    /// Judges a read or write of `length` bytes at `offset`. Nothing stands against a transfer of no bytes. A range that would end
    /// beyond the largest offset is judged up to there.
    pub fn check(&self, actor: Actor, offset: u64, length: u64, transfer: Transfer) -> Result<(), LockRefusal> {
        if length == 0 {
            return Ok(());
        }
        let up_to_the_end = LockRange { offset, length: length.min((u64::MAX - offset).saturating_add(1)) };
        let met = self.held.iter().any(|lock| lock.stands_against_transfer(actor, up_to_the_end, transfer));
        if met { Err(LockRefusal::Conflict) } else { Ok(()) }
    }

    /// How many locks an open holds.
    pub fn count(&self, owner: OpenId) -> usize {
        self.held.iter().filter(|lock| lock.owner == owner).count()
    }

    /// Whether nothing is held and nothing waits.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty() && self.waiting.is_empty()
    }

    fn take(&mut self, new: Lock) -> Result<(), LockRefusal> {
        if self.held.iter().any(|lock| lock.stands_against_lock(&new)) {
            return Err(LockRefusal::NotGranted);
        }
        if self.held.len() >= LOCKS_PER_FILE_MAX || self.count(new.owner) >= LOCKS_PER_OPEN_MAX {
            return Err(LockRefusal::TooMany);
        }
        self.held.push(new);
        Ok(())
    }

    /// A request that meets a limit goes on waiting: it is tried again at the next unlock.
    fn grant_waiting(&mut self) -> Vec<WaitId> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut granted = Vec::new();
        for (wait, lock) in waiting {
            match self.take(lock) {
                Ok(()) => granted.push(wait),
                Err(_) => self.waiting.push_back((wait, lock)),
            }
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LockKind::{Exclusive, Shared};
    use Transfer::{Read, Write};

    const A: OpenId = OpenId(1);
    const B: OpenId = OpenId(2);
    const C: OpenId = OpenId(3);

    fn range(offset: u64, length: u64) -> LockRange {
        LockRange::new(offset, length).expect("a valid range")
    }

    fn locked(locks: &[(OpenId, u64, u64, LockKind)]) -> RangeLocks {
        let mut all = RangeLocks::default();
        for (owner, offset, length, kind) in locks {
            all.lock_all(*owner, &[(range(*offset, *length), *kind)]).expect("granted");
        }
        all
    }

    fn try_lock(locks: &RangeLocks, owner: OpenId, offset: u64, length: u64, kind: LockKind) -> bool {
        locks.clone().lock_all(owner, &[(range(offset, length), kind)]).is_ok()
    }

    #[test]
    fn a_new_lock_beside_one_that_overlaps() {
        // held, new, same handle, granted
        for (held, new, owner, granted) in [
            (Shared, Shared, A, true),
            (Shared, Shared, B, true),
            (Shared, Exclusive, A, false),
            (Shared, Exclusive, B, false),
            (Exclusive, Shared, A, true),
            (Exclusive, Shared, B, false),
            (Exclusive, Exclusive, A, false),
            (Exclusive, Exclusive, B, false),
        ] {
            let locks = locked(&[(A, 10, 10, held)]);
            for (offset, length) in [(10, 10), (19, 1), (0, 11), (12, 2), (0, 100), (0, u64::MAX)] {
                assert_eq!(
                    try_lock(&locks, owner, offset, length, new),
                    granted,
                    "{held:?} {new:?} {owner:?} {offset}"
                );
            }
            for (offset, length) in [(0, 10), (20, 1), (20, 0), (10, 0), (0, 0), (u64::MAX, 1)] {
                assert!(try_lock(&locks, owner, offset, length, new), "{offset} {length} does not overlap");
            }
        }
    }

    #[test]
    fn a_read_or_write_beside_a_lock() {
        for (held, actor, transfer, admitted) in [
            (Shared, Actor::Handle(A), Read, true),
            (Shared, Actor::Handle(A), Write, false),
            (Shared, Actor::Handle(B), Read, true),
            (Shared, Actor::Handle(B), Write, false),
            (Shared, Actor::Rest, Read, true),
            (Shared, Actor::Rest, Write, false),
            (Exclusive, Actor::Handle(A), Read, true),
            (Exclusive, Actor::Handle(A), Write, true),
            (Exclusive, Actor::Handle(B), Read, false),
            (Exclusive, Actor::Handle(B), Write, false),
            (Exclusive, Actor::Rest, Read, false),
            (Exclusive, Actor::Rest, Write, false),
        ] {
            let locks = locked(&[(A, 512, 512, held)]);
            let expected = if admitted { Ok(()) } else { Err(LockRefusal::Conflict) };
            for (offset, length) in [(512, 512), (0, 513), (1023, 1), (600, 10), (1000, u64::MAX)] {
                assert_eq!(locks.check(actor, offset, length, transfer), expected, "{held:?} {actor:?} {transfer:?}");
            }
            for (offset, length) in [(0, 512), (1024, 1), (600, 0), (u64::MAX, 5)] {
                assert_eq!(locks.check(actor, offset, length, transfer), Ok(()), "{offset} {length} does not overlap");
            }
        }
    }

    #[test]
    fn under_both_kinds_of_its_own_locks_a_handle_only_reads() {
        let locks = locked(&[(A, 0, 10, Exclusive), (A, 0, 10, Shared)]);
        assert_eq!(locks.check(Actor::Handle(A), 0, 1, Read), Ok(()));
        assert_eq!(locks.check(Actor::Handle(A), 0, 1, Write), Err(LockRefusal::Conflict));
    }

    #[test]
    fn a_lock_of_no_length_conflicts_strictly_inside_another() {
        let locks = locked(&[(A, 10, 10, Exclusive)]);
        for (offset, granted) in [(0, true), (9, true), (10, true), (11, false), (19, false), (20, true), (21, true)] {
            assert_eq!(try_lock(&locks, B, offset, 0, Exclusive), granted, "{offset}");
        }
        let point = locked(&[(A, 10, 0, Exclusive)]);
        for (offset, length, granted) in [(10, 0, true), (10, 1, true), (9, 1, true), (9, 2, false), (0, 100, false)] {
            assert_eq!(try_lock(&point, B, offset, length, Exclusive), granted, "{offset} {length}");
        }
        assert_eq!(point.check(Actor::Rest, 9, 2, Write), Err(LockRefusal::Conflict));
        assert_eq!(point.check(Actor::Rest, 10, 2, Write), Ok(()));
        let origin = locked(&[(A, 0, 0, Exclusive)]);
        assert!(try_lock(&origin, B, 0, u64::MAX, Exclusive), "nothing is around a lock of no length at 0");
    }

    #[test]
    fn ranges_lie_anywhere_in_64_bits() {
        for (offset, length) in [(0, 0), (0, u64::MAX), (1, u64::MAX), (u64::MAX, 1), (u64::MAX, 0)] {
            assert!(LockRange::new(offset, length).is_ok(), "{offset} {length}");
        }
        for (offset, length) in [(2, u64::MAX), (u64::MAX, 2), (u64::MAX, u64::MAX)] {
            assert_eq!(LockRange::new(offset, length), Err(LockRefusal::InvalidRange), "{offset} {length}");
        }
        let last = locked(&[(A, u64::MAX, 1, Exclusive)]);
        assert!(!try_lock(&last, B, 1, u64::MAX, Shared) && try_lock(&last, B, 0, u64::MAX, Shared));
        assert_eq!(last.check(Actor::Rest, u64::MAX, 1, Read), Err(LockRefusal::Conflict));
        assert_eq!(last.check(Actor::Rest, 5, u64::MAX, Read), Err(LockRefusal::Conflict));
    }

    #[test]
    fn an_unlock_names_the_exact_range_and_handle() {
        let mut locks = locked(&[(A, 10, 10, Exclusive), (A, 30, 0, Shared)]);
        for (owner, offset, length) in [(B, 10, 10), (A, 10, 9), (A, 10, 11), (A, 11, 9), (A, 0, 0), (A, 30, 1)] {
            assert_eq!(locks.unlock(owner, range(offset, length)), Err(LockRefusal::NotLocked));
        }
        assert_eq!(locks.unlock(A, range(10, 10)), Ok(vec![]));
        assert_eq!(locks.unlock(A, range(10, 10)), Err(LockRefusal::NotLocked));
        assert_eq!(locks.unlock(A, range(30, 0)), Ok(vec![]));
        assert!(locks.is_empty());
    }

    #[test]
    fn each_lock_is_given_up_by_itself_the_exclusive_one_first() {
        let mut locks = locked(&[(A, 0, 10, Exclusive), (A, 0, 10, Shared), (A, 0, 10, Shared)]);
        locks.unlock(A, range(0, 10)).expect("the exclusive one");
        assert!(try_lock(&locks, B, 0, 10, Shared) && !try_lock(&locks, B, 0, 10, Exclusive));
        locks.unlock(A, range(0, 10)).expect("a shared one");
        assert!(!try_lock(&locks, B, 0, 10, Exclusive));
        locks.unlock(A, range(0, 10)).expect("the other");
        assert!(locks.is_empty());
    }

    #[test]
    fn all_ranges_of_a_request_are_taken_or_none() {
        let mut locks = locked(&[(B, 100, 1, Exclusive)]);
        let before = locks.clone();
        let wanted = [(range(0, 10), Exclusive), (range(50, 1), Shared), (range(100, 1), Shared)];
        assert_eq!(locks.lock_all(A, &wanted), Err(LockRefusal::NotGranted));
        assert_eq!(locks, before);
        assert_eq!(
            locks.lock_all(A, &[(range(0, 10), Exclusive), (range(9, 2), Exclusive)]),
            Err(LockRefusal::NotGranted)
        );
        assert_eq!(locks, before);
        assert_eq!(locks.lock_all(A, &wanted[..2]), Ok(()));
        assert!(!try_lock(&locks, C, 50, 1, Exclusive));
    }

    #[test]
    fn requests_are_granted_in_the_order_in_which_they_wait() {
        let mut locks = locked(&[(A, 0, 10, Exclusive)]);
        for (wait, owner, kind) in [(1, B, Shared), (2, C, Exclusive), (3, C, Shared), (4, B, Exclusive)] {
            let asked = locks.lock_or_wait(WaitId(wait), owner, range(0, 10), kind);
            assert_eq!(asked, Ok(LockOutcome::Waiting));
        }
        assert_eq!(locks.unlock(A, range(0, 10)), Ok(vec![WaitId(1), WaitId(3)]), "the shared ones together");
        assert_eq!(locks.unlock(B, range(0, 10)), Ok(vec![]), "one shared lock is still held");
        assert_eq!(locks.unlock(C, range(0, 10)), Ok(vec![WaitId(2)]));
        assert_eq!(locks.close(C), vec![WaitId(4)]);
        assert!(locks.close(B).is_empty() && locks.is_empty());
    }

    #[test]
    fn a_request_that_waits_holds_up_no_other_range() {
        let mut locks = locked(&[(A, 0, 10, Exclusive)]);
        assert_eq!(locks.lock_or_wait(WaitId(1), B, range(5, 10), Exclusive), Ok(LockOutcome::Waiting));
        assert_eq!(locks.lock_or_wait(WaitId(2), C, range(12, 1), Exclusive), Ok(LockOutcome::Granted));
        assert_eq!(locks.unlock(A, range(0, 10)), Ok(vec![]), "now the later one stands against it");
        assert_eq!(locks.close(C), vec![WaitId(1)]);
    }

    #[test]
    fn a_request_that_was_withdrawn_or_closed_is_not_granted() {
        let mut locks = locked(&[(A, 0, 10, Exclusive)]);
        for (wait, owner) in [(1, B), (2, C)] {
            assert_eq!(locks.lock_or_wait(WaitId(wait), owner, range(0, 1), Shared), Ok(LockOutcome::Waiting));
        }
        assert!(locks.cancel(WaitId(1)) && !locks.cancel(WaitId(1)));
        assert!(locks.close(C).is_empty());
        assert_eq!(locks.unlock(A, range(0, 10)), Ok(vec![]));
        assert!(!locks.cancel(WaitId(2)) && locks.is_empty());
    }

    #[test]
    fn one_handle_has_a_limited_number_of_locks() {
        let mut locks = RangeLocks::default();
        let many: Vec<_> = (0..LOCKS_PER_OPEN_MAX as u64).map(|at| (range(at, 1), Exclusive)).collect();
        locks.lock_all(A, &many).expect("as many as allowed");
        let next = [(range(1 << 40, 1), Shared)];
        assert_eq!(locks.lock_all(A, &next), Err(LockRefusal::TooMany));
        assert_eq!(locks.lock_all(A, &many[..1]), Err(LockRefusal::NotGranted), "of two faults the conflict is told");
        assert_eq!(locks.lock_all(B, &next), Ok(()));
        locks.unlock(A, range(0, 1)).expect("held");
        assert_eq!(locks.lock_all(A, &next), Ok(()));
    }

    #[test]
    fn one_handle_has_a_limited_number_of_waiting_requests() {
        let mut locks = locked(&[(A, 0, 10, Exclusive)]);
        for wait in 0..WAITS_PER_OPEN_MAX as u64 {
            assert_eq!(locks.lock_or_wait(WaitId(wait), B, range(0, 1), Shared), Ok(LockOutcome::Waiting));
        }
        assert_eq!(locks.lock_or_wait(WaitId(1000), B, range(0, 1), Shared), Err(LockRefusal::TooMany));
        assert_eq!(locks.lock_or_wait(WaitId(1001), C, range(0, 1), Shared), Ok(LockOutcome::Waiting));
    }

    /// Every sequence of a few steps over three handles: what is held never contradicts the rules, and nobody waits for nothing.
    #[test]
    fn no_sequence_of_steps_breaks_the_rules() {
        let mut seed = 7_u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let mut locks = RangeLocks::default();
        for step in 0..20_000 {
            let owner = OpenId(draw(3));
            let wanted = range(draw(6), draw(4));
            let kind = if draw(2) == 0 { Shared } else { Exclusive };
            match draw(6) {
                0 => _ = locks.lock_all(owner, &[(wanted, kind)]),
                1 => _ = locks.lock_or_wait(WaitId(step), owner, wanted, kind),
                2 | 3 => _ = locks.unlock(owner, wanted),
                4 => _ = locks.cancel(WaitId(draw(step + 1))),
                _ => _ = locks.close(owner),
            }
            for (place, lock) in locks.held.iter().enumerate() {
                let earlier = &locks.held[..place];
                let allowed = |other: &Lock| lock.kind == Shared && (other.kind == Shared || other.owner == lock.owner);
                assert!(earlier.iter().all(|other| !other.range.overlaps(lock.range) || allowed(other)), "{locks:?}");
            }
            let stuck = |(_, lock): &(WaitId, Lock)| locks.held.iter().any(|held| held.stands_against_lock(lock));
            assert!(locks.waiting.iter().all(stuck), "{locks:?}");
        }
    }
}
