//! Azure's outcome tables, literally. A is the stored id, B and C are other ids, X is drawn by the server.
//!
//! Each column stands for every stored form that looks that way at `NOW`, those that end at this very tick included,
//! so a wrong comparison anywhere shows up as a wrong cell.

use super::Action::{Acquire, Break, Change, Read, Release, Renew, Write};
use super::*;
use crate::lease::{DurationKind, LeaseState};

const NOW: Timestamp = Timestamp(638_985_000_000_000_000);

fn at(seconds: u64) -> Timestamp {
    NOW.plus_seconds(seconds)
}

/// The columns, in the order of the tables.
fn columns() -> [(&'static str, Vec<Lease>); 6] {
    let ended = [NOW, minus_ticks(NOW, 1), minus_ticks(NOW, 3_600 * SECOND)];
    let breaking = |until| Lease::Breaking { id: A, until };
    let mut broken = vec![Lease::Broken { id: A }];
    broken.extend(ended.map(breaking));
    [
        ("available", vec![Lease::Available]),
        ("leased, 20 of 30 s left", vec![leased(A, 30, at(20))]),
        ("leased forever", vec![leased_forever(A)]),
        ("breaking, 10 s left", vec![breaking(at(10))]),
        ("broken", broken),
        ("expired, was 30 s", ended.map(|end| leased(A, 30, end)).to_vec()),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Cell {
    Becomes(Lease),
    /// Becomes breaking or broken, with the seconds that the client is told.
    Breaks(Lease, u64),
    Kept,
    No(LeaseRefusal),
}
use Cell::{Becomes, Breaks, Kept, No};

/// One row of a table.
fn row(action: Action, cells: [Cell; 6]) {
    for ((name, stored), cell) in columns().into_iter().zip(cells) {
        for lease in stored {
            let expected = match cell {
                Becomes(lease) => Ok(Done { lease, seconds: None }),
                Breaks(lease, seconds) => Ok(Done { lease, seconds: Some(seconds) }),
                Kept => Ok(Done { lease, seconds: None }),
                No(refusal) => Err(refusal),
            };
            assert_eq!(action.on(lease, NOW), expected, "{action:?} when {name}: {lease:?}");
        }
    }
}

#[rustfmt::skip]
#[test]
fn acquire() {
    let to = |id| Becomes(leased(id, 60, at(60)));
    let (x, a, b) = (to(X), to(A), to(B));
    let taken = No(LeaseRefusal::AlreadyPresent);
    let ending = No(LeaseRefusal::IsBreakingAndCannotBeAcquired);
    let sixty = LeaseDuration::Seconds(60);
    //                              available  leased  forever  breaking  broken  expired
    row(Acquire(None,    sixty),   [x,         taken,  taken,   taken,    x,      x]);
    row(Acquire(Some(A), sixty),   [a,         a,      a,       ending,   a,      a]);
    row(Acquire(Some(B), sixty),   [b,         taken,  taken,   taken,    b,      b]);
}

#[rustfmt::skip]
#[test]
fn acquire_forever() {
    let to = |id| Becomes(leased_forever(id));
    let (x, a, b) = (to(X), to(A), to(B));
    let taken = No(LeaseRefusal::AlreadyPresent);
    let ending = No(LeaseRefusal::IsBreakingAndCannotBeAcquired);
    let forever = LeaseDuration::Infinite;
    //                              available  leased  forever  breaking  broken  expired
    row(Acquire(None,    forever), [x,         taken,  taken,   taken,    x,      x]);
    row(Acquire(Some(A), forever), [a,         a,      a,       ending,   a,      a]);
    row(Acquire(Some(B), forever), [b,         taken,  taken,   taken,    b,      b]);
}

#[rustfmt::skip]
#[test]
fn renew() {
    let again = Becomes(leased(A, 30, at(30)));
    let no = No(LeaseRefusal::IdMismatchWithLeaseOperation);
    let gone = No(LeaseRefusal::IsBrokenAndCannotBeRenewed);
    //              available  leased  forever  breaking  broken  expired
    row(Renew(A),  [no,        again,  Kept,    gone,     gone,   again]);
    row(Renew(B),  [no,        no,     no,      no,       no,     no]);
}

#[rustfmt::skip]
#[test]
fn change() {
    let on = |id| Becomes(leased(id, 30, at(20)));
    let ever = |id| Becomes(leased_forever(id));
    let none = No(LeaseRefusal::NotPresentWithLeaseOperation);
    let ending = No(LeaseRefusal::IsBreakingAndCannotBeChanged);
    let no = No(LeaseRefusal::IdMismatchWithLeaseOperation);
    //                  available  leased  forever   breaking  broken  expired
    row(Change(A, B),  [none,      on(B),  ever(B),  ending,   none,   none]);
    row(Change(A, A),  [none,      on(A),  ever(A),  ending,   none,   none]);
    row(Change(B, A),  [none,      on(A),  ever(A),  no,       none,   none]);
    row(Change(B, C),  [none,      no,     no,       no,       none,   none]);
    row(Change(B, B),  [none,      no,     no,       no,       none,   none]);
}

#[rustfmt::skip]
#[test]
fn release() {
    let free = Becomes(Lease::Available);
    let no = No(LeaseRefusal::IdMismatchWithLeaseOperation);
    //                available  leased  forever  breaking  broken  expired
    row(Release(A),  [no,        free,   free,    free,     free,   free]);
    row(Release(B),  [no,        no,     no,      no,       no,     no]);
}

#[rustfmt::skip]
#[test]
fn break_() {
    let none = No(LeaseRefusal::NotPresentWithLeaseOperation);
    let over = Breaks(Lease::Broken { id: A }, 0);
    let left = |seconds| Breaks(Lease::Breaking { id: A, until: at(seconds) }, seconds);
    //                    available  leased    forever   breaking  broken  expired
    row(Break(Some(0)),  [none,      over,     over,     over,     over,   over]);
    row(Break(Some(1)),  [none,      left(1),  left(1),  left(1),  over,   over]);
    row(Break(Some(9)),  [none,      left(9),  left(9),  left(9),  over,   over]);
    row(Break(Some(10)), [none,      left(10), left(10), left(10), over,   over]);
    row(Break(Some(11)), [none,      left(11), left(11), left(10), over,   over]);
    row(Break(Some(20)), [none,      left(20), left(20), left(10), over,   over]);
    row(Break(Some(21)), [none,      left(20), left(21), left(10), over,   over]);
    row(Break(Some(60)), [none,      left(20), left(60), left(10), over,   over]);
    row(Break(None),     [none,      left(20), over,     left(10), over,   over]);
}

/// Writes and deletes, then reads, of a blob.
#[rustfmt::skip]
#[test]
fn use_of_a_blob() {
    let ok = Kept;
    let free = Becomes(Lease::Available);
    let needs = No(LeaseRefusal::IdMissing);
    let none = No(LeaseRefusal::NotPresent);
    let other = No(LeaseRefusal::IdMismatch);
    let lost = No(LeaseRefusal::Lost);
    //                    available  leased  forever  breaking  broken  expired
    row(Write(None),     [ok,        needs,  needs,   needs,    free,   free]);
    row(Write(Some(A)),  [none,      ok,     ok,      ok,       lost,   lost]);
    row(Write(Some(B)),  [none,      other,  other,   other,    lost,   lost]);
    row(Read(None),      [ok,        ok,     ok,      ok,       ok,     ok]);
    row(Read(Some(A)),   [none,      ok,     ok,      ok,       lost,   lost]);
    row(Read(Some(B)),   [none,      other,  other,   other,    lost,   lost]);
}

/// Of a container only the deletion counts as a write; setting its metadata or its access policy does not.
#[rustfmt::skip]
#[test]
fn use_of_a_container() {
    let (delete, others) = (Write, Read);
    let ok = Kept;
    let gone = Becomes(Lease::Available);
    let needs = No(LeaseRefusal::IdMissing);
    let none = No(LeaseRefusal::NotPresent);
    let other = No(LeaseRefusal::IdMismatch);
    let lost = No(LeaseRefusal::Lost);
    //                     available  leased  forever  breaking  broken  expired
    row(delete(None),     [ok,        needs,  needs,   needs,    gone,   gone]);
    row(delete(Some(A)),  [none,      ok,     ok,      ok,       lost,   lost]);
    row(delete(Some(B)),  [none,      other,  other,   other,    lost,   lost]);
    row(others(None),     [ok,        ok,     ok,      ok,       ok,     ok]);
    row(others(Some(A)),  [none,      ok,     ok,      ok,       lost,   lost]);
    row(others(Some(B)),  [none,      other,  other,   other,    lost,   lost]);
}

#[rustfmt::skip]
#[test]
fn what_is_reported() {
    use DurationKind::{Fixed, Infinite};
    let table = [
        (LeaseState::Available, false, None),
        (LeaseState::Leased,    true,  Some(Fixed)),
        (LeaseState::Leased,    true,  Some(Infinite)),
        (LeaseState::Breaking,  true,  None),
        (LeaseState::Broken,    false, None),
        (LeaseState::Expired,   false, None),
    ];
    for ((name, stored), (state, locked, kind)) in columns().into_iter().zip(table) {
        for lease in stored {
            assert_eq!(lease.state(NOW), state, "{name}: {lease:?}");
            assert_eq!(lease.is_locked(NOW), locked, "{name}: {lease:?}");
            assert_eq!(lease.holder(NOW), locked.then_some(A), "{name}: {lease:?}");
            assert_eq!(lease.duration_kind(NOW), kind, "{name}: {lease:?}");
            assert_eq!(lease.is_held_by(Some(A), NOW), locked, "{name}: {lease:?}");
            assert!(!lease.is_held_by(Some(B), NOW), "{name}: {lease:?}");
            assert!(!lease.is_held_by(None, NOW), "{name}: {lease:?}");
        }
    }
}

#[rustfmt::skip]
#[test]
fn time_passes() {
    use LeaseState::{Available, Breaking, Broken, Expired, Leased};
    let end = at(15);
    let table = [
        // stored                                a tick before  at the end  a tick after
        (Lease::Available,                       [Available,    Available,  Available]),
        (leased(A, 15, end),                     [Leased,       Expired,    Expired]),
        (leased_forever(A),                      [Leased,       Leased,     Leased]),
        (Lease::Breaking { id: A, until: end },  [Breaking,     Broken,     Broken]),
        (Lease::Broken { id: A },                [Broken,       Broken,     Broken]),
    ];
    for (lease, states) in table {
        let seen = [minus_ticks(end, 1), end, end.plus_ticks(1)].map(|time| lease.state(time));
        assert_eq!(seen, states, "{lease:?}");
    }
}

#[test]
fn a_lease_is_held_for_exactly_its_duration() {
    let lease = Lease::Available.acquire(Some(A), X, LeaseDuration::Seconds(15), NOW).expect("it is free");
    assert_eq!(lease.holder(NOW), Some(A));
    assert_eq!(lease.holder(minus_ticks(at(15), 1)), Some(A));
    assert_eq!(lease.holder(at(15)), None);
}

#[test]
fn a_break_tells_started_seconds_as_whole_ones() {
    let table = [(1, 1), (SECOND - 1, 1), (SECOND, 1), (SECOND + 1, 2), (20 * SECOND - 1, 20)];
    for (ticks_left, told) in table {
        let end = NOW.plus_ticks(ticks_left);
        let (lease, seconds) = leased(A, 30, end).break_(None, NOW).expect("it is leased");
        assert_eq!(lease, Lease::Breaking { id: A, until: end });
        assert_eq!(seconds, told, "{ticks_left} ticks left");
    }
}

/// A blob's expired lease cannot be renewed after a write without it: the write forgets the lease. A container's can,
/// because only its deletion is a write.
#[test]
fn an_unleased_write_after_the_end_forgets_the_lease() {
    let mismatch = Err(LeaseRefusal::IdMismatchWithLeaseOperation);
    for ended in [leased(A, 30, NOW), Lease::Breaking { id: A, until: NOW }, Lease::Broken { id: A }] {
        let after = ended.check_write(None, NOW).expect("nobody holds it");
        assert_eq!(after.state(NOW), LeaseState::Available);
        assert_eq!(after.renew(A, NOW), mismatch);
        assert_eq!(after.release(A, NOW), mismatch);
        assert_eq!(after.check_write(Some(A), NOW), Err(LeaseRefusal::NotPresent));
    }
}
