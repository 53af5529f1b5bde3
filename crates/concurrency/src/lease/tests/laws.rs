//! What holds for every stored lease, every action and every time around the end. There are few of them, so all are
//! tried.

use super::Action::{Acquire, Break, Change, Read, Release, Renew, Write};
use super::*;
use crate::lease::LeaseState;

const END: Timestamp = Timestamp(638_985_000_000_000_000);
const IDS: [LeaseId; 3] = [A, B, C];
const NAMED: [Option<LeaseId>; 4] = [None, Some(A), Some(B), Some(C)];
const DURATIONS: [LeaseDuration; 3] = [LeaseDuration::Infinite, LeaseDuration::Seconds(15), LeaseDuration::Seconds(60)];
const PERIODS: [Option<u8>; 5] = [None, Some(0), Some(1), Some(5), Some(60)];

fn before_end() -> [Timestamp; 3] {
    [40 * SECOND, SECOND + 1, 1].map(|ticks| minus_ticks(END, ticks))
}

fn from_end_on() -> [Timestamp; 3] {
    [END, END.plus_ticks(1), END.plus_seconds(15)]
}

fn times() -> impl Iterator<Item = Timestamp> {
    before_end().into_iter().chain(from_end_on())
}

/// Every shape a stored lease can have; those that end do so at `END`.
fn every_lease() -> Vec<Lease> {
    let mut leases = vec![Lease::Available];
    for id in [A, B] {
        leases.extend([leased_forever(id), leased(id, 15, END), leased(id, 60, END)]);
        leases.extend([Lease::Breaking { id, until: END }, Lease::Broken { id }]);
    }
    leases
}

fn every_action() -> Vec<Action> {
    let mut actions = Vec::from(PERIODS.map(Break));
    for id in NAMED {
        actions.extend(DURATIONS.map(|duration| Acquire(id, duration)));
        actions.extend([Write(id), Read(id)]);
    }
    for id in IDS {
        actions.extend([Renew(id), Release(id)]);
        actions.extend(IDS.map(|proposed| Change(id, proposed)));
    }
    actions
}

fn for_every_case(law: impl Fn(Lease, Action, Timestamp, Result<Done, LeaseRefusal>)) {
    for lease in every_lease() {
        for action in every_action() {
            for now in times() {
                law(lease, action, now, action.on(lease, now));
            }
        }
    }
}

fn for_every_success(law: impl Fn(Lease, Action, Timestamp, Done)) {
    for_every_case(|before, action, now, result| {
        if let Ok(done) = result {
            law(before, action, now, done);
        }
    });
}

#[test]
fn acquiring_never_takes_a_lease_from_its_holder() {
    for_every_case(|before, action, now, result| {
        let (Acquire(..), Some(holder)) = (action, before.holder(now)) else { return };
        let after = result.map_or(before, |done| done.lease);
        assert_eq!(after.holder(now), Some(holder), "{before:?} {action:?}");
    });
}

#[test]
fn a_hold_ends_by_release_change_and_break_only() {
    for_every_success(|before, action, now, done| {
        let Some(holder) = before.holder(now) else { return };
        match done.lease.holder(now) {
            Some(other) if other != holder => assert_eq!(action, Change(holder, other), "{before:?}"),
            Some(_) => {}
            None => assert!(action == Release(holder) || matches!(action, Break(_)), "{before:?} {action:?}"),
        }
    });
}

#[test]
fn a_hold_begins_by_acquire_and_renew_only() {
    for_every_success(|before, action, now, done| {
        if before.is_locked(now) || !done.lease.is_locked(now) {
            return;
        }
        match action {
            Acquire(proposed, _) => assert_eq!(done.lease.holder(now), Some(proposed.unwrap_or(X))),
            Renew(id) => assert_eq!(done.lease.holder(now), Some(id)),
            Change(..) | Release(_) | Break(_) | Write(_) | Read(_) => panic!("{before:?} {action:?}"),
        }
    });
}

#[test]
fn no_two_may_write() {
    for lease in every_lease() {
        for now in times() {
            let may: Vec<_> = NAMED.into_iter().filter(|id| lease.check_write(*id, now).is_ok()).collect();
            assert_eq!(may, [lease.holder(now)], "{lease:?}: the holder alone, or else whoever names no lease");
        }
    }
}

#[test]
fn a_read_needs_no_lease_and_checks_an_id_as_a_write_does() {
    for lease in every_lease() {
        for now in times() {
            assert_eq!(lease.check_read(None, now), Ok(()));
            for id in IDS {
                let write = lease.check_write(Some(id), now).map(|_| ());
                assert_eq!(lease.check_read(Some(id), now), write, "{lease:?}");
            }
        }
    }
}

#[test]
fn release_frees() {
    for_every_success(|_, action, now, done| {
        if let Release(_) = action {
            assert_eq!(done.lease, Lease::Available);
            assert_eq!(done.lease.check_write(None, now), Ok(Lease::Available));
            assert!(IDS.iter().all(|id| done.lease.acquire(Some(*id), X, DURATIONS[0], now).is_ok()));
        }
    });
}

#[test]
fn infinite_never_expires() {
    let last = Timestamp(u64::MAX);
    assert_eq!(leased_forever(A).state(last), LeaseState::Leased);
    for_every_success(|_, action, _, done| {
        if let Acquire(_, LeaseDuration::Infinite) = action {
            assert!(done.lease.is_locked(last));
        }
    });
}

#[test]
fn break_never_lengthens_and_tells_the_time_left() {
    for_every_success(|before, action, now, done| {
        let Break(_) = action else { return };
        let seconds = done.seconds.expect("a break tells the time");
        for later in times().filter(|later| *later >= now) {
            assert!(before.is_locked(later) || !done.lease.is_locked(later), "{before:?} {action:?}");
        }
        assert!(!done.lease.is_locked(now.plus_seconds(seconds)), "{before:?} {action:?}");
        assert!(seconds == 0 || done.lease.is_locked(now.plus_seconds(seconds - 1)), "{before:?} {action:?}");
    });
}

#[test]
fn renew_keeps_the_duration_and_restarts_the_clock() {
    for_every_success(|before, action, now, done| {
        if let (Renew(id), Lease::Leased { duration, .. }) = (action, before) {
            assert_eq!(done.lease, Lease::Leased { id, duration, until: duration.starting(now) });
        }
    });
}

#[test]
fn change_does_not_restart_the_clock() {
    for_every_success(|before, action, _, done| {
        if let (Change(_, proposed), Lease::Leased { duration, until, .. }) = (action, before) {
            assert_eq!(done.lease, Lease::Leased { id: proposed, duration, until });
        }
    });
}

/// A client that lost the answer may repeat its request. Only a second release, and a second acquire that proposes no
/// id, cannot be told from another client's request.
#[test]
fn what_succeeded_may_be_repeated() {
    for_every_success(|before, action, now, done| {
        let again = match action {
            Release(_) => Err(LeaseRefusal::IdMismatchWithLeaseOperation),
            Acquire(None, _) => Err(LeaseRefusal::AlreadyPresent),
            Acquire(Some(_), _) | Renew(_) | Change(..) | Break(_) | Write(_) | Read(_) => Ok(done),
        };
        assert_eq!(action.on(done.lease, now), again, "{before:?} {action:?}");
    });
}

#[test]
fn time_only_ever_unlocks() {
    let allowed = [(LeaseState::Leased, LeaseState::Expired), (LeaseState::Breaking, LeaseState::Broken)];
    for lease in every_lease() {
        let states: Vec<_> = times().map(|now| lease.state(now)).collect();
        for pair in states.windows(2) {
            let moved = (pair[0], pair[1]);
            assert!(moved.0 == moved.1 || allowed.contains(&moved), "{lease:?} {moved:?}");
        }
    }
}

/// Each refusal belongs to its kind of action, so that a service can name the right error for each.
#[test]
fn refusals_keep_to_their_actions() {
    use LeaseRefusal::*;
    for_every_case(|before, action, _, result| {
        let Err(refusal) = result else { return };
        let known: &[LeaseRefusal] = match action {
            Acquire(..) => &[AlreadyPresent, IsBreakingAndCannotBeAcquired],
            Renew(_) => &[IdMismatchWithLeaseOperation, IsBrokenAndCannotBeRenewed],
            Change(..) => &[IdMismatchWithLeaseOperation, IsBreakingAndCannotBeChanged, NotPresentWithLeaseOperation],
            Release(_) => &[IdMismatchWithLeaseOperation],
            Break(_) => &[NotPresentWithLeaseOperation],
            Write(None) => &[IdMissing],
            Write(Some(_)) | Read(Some(_)) => &[IdMismatch, NotPresent, Lost],
            Read(None) => &[],
        };
        assert!(known.contains(&refusal), "{before:?} {action:?} {refusal:?}");
    });
}

/// One tick before the end is as good as forty seconds before it, and long after as good as the end itself.
#[test]
fn the_verdict_changes_at_the_end_and_nowhere_else() {
    for lease in every_lease() {
        for action in every_action() {
            let verdict = |now| action.on(lease, now).err();
            for times in [before_end(), from_end_on()] {
                assert_eq!(times.map(verdict), [verdict(times[0]); 3], "{lease:?} {action:?}");
            }
        }
    }
}

/// A break whose period is over behaves like one that is stored as complete.
#[test]
fn broken_is_broken_however_it_is_stored() {
    let (run_out, complete) = (Lease::Breaking { id: A, until: END }, Lease::Broken { id: A });
    for now in from_end_on() {
        assert_eq!(run_out.state(now), complete.state(now));
        // A read alone leaves the lease as it is stored.
        for action in every_action().into_iter().filter(|action| !matches!(action, Read(_))) {
            assert_eq!(action.on(run_out, now), action.on(complete, now), "{action:?}");
        }
    }
}

/// No time is out of range: every action has an answer, and a refusal is one of the known ones.
#[test]
fn the_first_and_the_last_tick_are_times_like_any_other() {
    for lease in every_lease() {
        for action in every_action() {
            let verdict = |now| action.on(lease, now).err();
            assert_eq!(verdict(Timestamp(0)), verdict(before_end()[0]), "{lease:?} {action:?}");
            assert_eq!(verdict(Timestamp(u64::MAX)), verdict(END), "{lease:?} {action:?}");
        }
    }
}
