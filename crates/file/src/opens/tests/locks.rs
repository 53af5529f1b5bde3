//! Byte-range locks against REST ranges, and lock requests that wait.

use concurrency::range_lock::{LockKind, LockRefusal, WAITS_PER_OPEN_MAX};

use super::*;
use LockKind::{Exclusive, Shared};
use Transfer::{Read, Write};

fn writer(opens: &Opens) -> Arc<Handle> {
    Arc::new(now(opens.open(request(FILE, open(R.and(W), ALL)))).unwrap())
}

fn locking(handle: &Arc<Handle>, range: LockRange, kind: LockKind) -> Step<Result<(), HandleRefusal>> {
    let handle = Arc::clone(handle);
    Step::of(async move { handle.lock(range, kind).await })
}

fn transfer(opens: &Opens, offset: u64, length: u64, transfer: Transfer) -> Result<Entry, Refusal> {
    let access = if transfer == Read { RestAccess::Read } else { RestAccess::Write };
    now(opens.enter(FILE, access, span(offset, length, transfer)))
}

#[test]
fn rest_ranges_inside_outside_and_across_a_lock() {
    let opens = opens();
    for (kind, read_is_refused) in [(Shared, false), (Exclusive, true)] {
        let handle = writer(&opens);
        now(handle.lock(range(512, 512), kind)).unwrap();
        for (offset, length) in [(512, 512), (0, 513), (1023, 1), (600, 10), (0, 4096)] {
            let conflict = Some(Refusal::FileLockConflict);
            assert_eq!(transfer(&opens, offset, length, Write).err(), conflict, "{offset} {length}");
            assert_eq!(transfer(&opens, offset, length, Read).err(), conflict.filter(|_| read_is_refused));
        }
        for (offset, length) in [(0, 512), (1024, 512), (600, 0)] {
            assert!(transfer(&opens, offset, length, Write).is_ok(), "{offset} {length}");
        }
        assert!(enter(&opens, RestAccess::Write).is_ok(), "without a range there is nothing to meet");
        handle.unlock(range(512, 512)).unwrap();
        assert!(transfer(&opens, 512, 512, Write).is_ok());
    }
    assert!(opens.is_empty());
}

#[test]
fn of_two_faults_the_sharing_violation_is_told() {
    let opens = opens();
    let handle = Arc::new(now(opens.open(request(FILE, open(R, R)))).unwrap());
    now(handle.lock(range(0, 10), Exclusive)).unwrap();
    assert_eq!(transfer(&opens, 0, 1, Write).err(), Some(Refusal::SharingViolation));
    assert_eq!(transfer(&opens, 0, 1, Read).err(), Some(Refusal::FileLockConflict));
}

#[test]
fn transfers_by_handle() {
    let opens = opens();
    let (mine, other) = (writer(&opens), writer(&opens));
    now(mine.lock(range(0, 10), Exclusive)).unwrap();
    now(mine.lock(range(20, 10), Shared)).unwrap();
    let conflict = Err(HandleRefusal::Lock(LockRefusal::Conflict));
    for (handle, offset, transfer, expected) in [
        (&mine, 0, Write, Ok(())),
        (&other, 0, Read, conflict),
        (&other, 9, Write, conflict),
        (&other, 10, Write, Ok(())),
        (&mine, 20, Write, conflict),
        (&other, 20, Read, Ok(())),
    ] {
        assert_eq!(handle.check_io(offset, 1, transfer), expected, "{offset} {transfer:?}");
    }
    drop(mine);
    assert_eq!(other.check_io(0, 100, Write), Ok(()), "locks go with their handle");
}

#[test]
fn requests_wait_in_order_and_are_granted_together_where_they_share() {
    let opens = opens();
    let (a, b, c) = (writer(&opens), writer(&opens), writer(&opens));
    now(a.lock(range(0, 10), Exclusive)).unwrap();
    let mut first = locking(&b, range(0, 10), Shared);
    let mut second = locking(&c, range(0, 10), Exclusive);
    let mut third = locking(&c, range(0, 10), Shared);
    for waiting in [&mut first, &mut second, &mut third] {
        assert_eq!(waiting.poll(), None);
    }
    a.unlock(range(0, 10)).unwrap();
    assert_eq!((first.poll(), second.poll(), third.poll()), (Some(Ok(())), None, Some(Ok(()))));
    b.unlock(range(0, 10)).unwrap();
    assert_eq!(second.poll(), None);
    c.unlock(range(0, 10)).unwrap();
    assert_eq!(second.poll(), Some(Ok(())));
}

#[test]
fn a_dropped_request_is_withdrawn_whether_it_was_granted_or_not() {
    let opens = opens();
    let (a, b) = (writer(&opens), writer(&opens));
    now(a.lock(range(0, 10), Exclusive)).unwrap();
    let (mut cancelled, mut unread) = (locking(&b, range(0, 5), Exclusive), locking(&b, range(5, 5), Exclusive));
    let mut last = locking(&a, range(0, 10), Exclusive);
    for waiting in [&mut cancelled, &mut unread, &mut last] {
        assert_eq!(waiting.poll(), None);
    }
    drop(cancelled);
    a.unlock(range(0, 10)).unwrap();
    assert_eq!(last.poll(), None, "the request that was granted and not yet told stands against it");
    drop(unread);
    assert_eq!(last.poll(), Some(Ok(())));
}

#[test]
fn a_request_of_several_ranges_is_granted_whole_or_refused_at_once() {
    let opens = opens();
    let (a, b) = (writer(&opens), writer(&opens));
    now(a.lock(range(100, 1), Exclusive)).unwrap();
    let both = [(range(0, 1), Exclusive), (range(100, 1), Shared)];
    assert_eq!(now(b.lock_now(&both)), Err(HandleRefusal::Lock(LockRefusal::NotGranted)));
    assert!(transfer(&opens, 0, 1, Write).is_ok());
    assert_eq!(now(b.lock_now(&both[..1])), Ok(()));
    assert!(transfer(&opens, 0, 1, Write).is_err());
}

#[test]
fn a_lock_waits_for_rest_ranges_at_work_and_keeps_later_ones_out() {
    let opens = opens();
    let handle = writer(&opens);
    for (kind, at_work, waits) in
        [(Exclusive, Read, true), (Exclusive, Write, true), (Shared, Write, true), (Shared, Read, false)]
    {
        for fail_immediately in [true, false] {
            let outside = transfer(&opens, 50, 10, Write).unwrap();
            let inside = transfer(&opens, 5, 10, at_work).unwrap();
            let mine = Arc::clone(&handle);
            let mut waiting = Step::of(async move {
                let wanted = (range(0, 10), kind);
                if fail_immediately { mine.lock_now(&[wanted]).await } else { mine.lock(wanted.0, wanted.1).await }
            });
            let answer = waiting.poll();
            assert_eq!(answer, (!waits).then_some(Ok(())), "{kind:?} {at_work:?}");
            assert_eq!(transfer(&opens, 9, 1, Write).err(), Some(Refusal::FileLockConflict));
            drop(inside);
            assert_eq!(answer.or_else(|| waiting.poll()), Some(Ok(())));
            handle.unlock(range(0, 10)).unwrap();
            drop(outside);
        }
    }
}

#[test]
fn a_lock_granted_by_an_unlock_waits_for_rest_ranges_too() {
    let opens = opens();
    let (a, b) = (writer(&opens), writer(&opens));
    now(a.lock(range(0, 10), Exclusive)).unwrap();
    let mut waiting = locking(&b, range(5, 10), Exclusive);
    assert_eq!(waiting.poll(), None);
    let writing = transfer(&opens, 12, 1, Write).unwrap();
    a.unlock(range(0, 10)).unwrap();
    assert_eq!(waiting.poll(), None, "the write that began before is not done");
    drop(writing);
    assert_eq!(waiting.poll(), Some(Ok(())));
}

#[test]
fn a_lock_that_waits_for_a_rest_range_is_given_back_when_dropped() {
    let opens = opens();
    let handle = writer(&opens);
    let reading = transfer(&opens, 0, 10, Read).unwrap();
    let mut waiting = locking(&handle, range(0, 10), Exclusive);
    assert_eq!(waiting.poll(), None);
    assert!(transfer(&opens, 0, 10, Read).is_err());
    drop(waiting);
    assert!(transfer(&opens, 0, 10, Read).is_ok());
    drop(reading);
    assert_eq!(handle.unlock(range(0, 10)), Err(HandleRefusal::Lock(LockRefusal::NotLocked)));
}

/// The handle's exclusive lock of the same range is the one that an unlock would give up first.
#[test]
fn a_shared_lock_that_is_withdrawn_leaves_the_exclusive_one_over_it() {
    let opens = opens();
    let (mine, other) = (writer(&opens), writer(&opens));
    now(other.lock(range(0, 10), Exclusive)).unwrap();
    let (mut exclusive, mut shared) = (locking(&mine, range(0, 10), Exclusive), locking(&mine, range(0, 10), Shared));
    assert_eq!((exclusive.poll(), shared.poll()), (None, None));
    other.unlock(range(0, 10)).unwrap();
    drop(shared);
    assert_eq!(exclusive.poll(), Some(Ok(())));
    assert!(transfer(&opens, 0, 1, Read).is_err());
}

#[test]
fn closing_a_handle_ends_its_requests_and_lets_others_go_on() {
    let opens = opens();
    let (a, b, c) = (writer(&opens), writer(&opens), writer(&opens));
    now(a.lock(range(0, 10), Exclusive)).unwrap();
    let (mut of_b, mut of_c) = (locking(&b, range(0, 10), Exclusive), locking(&c, range(0, 10), Exclusive));
    assert_eq!((of_b.poll(), of_c.poll()), (None, None));
    assert!(b.close().is_none());
    assert_eq!(of_b.poll(), Some(Err(HandleRefusal::Closed)));
    assert!(a.close().is_none());
    assert_eq!(of_c.poll(), Some(Ok(())));
    for closed in [&a, &b] {
        assert_eq!(now(closed.lock(range(50, 1), Shared)), Err(HandleRefusal::Closed));
        assert_eq!(closed.unlock(range(0, 10)), Err(HandleRefusal::Closed));
        assert_eq!(closed.check_io(0, 1, Read), Err(HandleRefusal::Closed));
        assert_eq!(closed.set_delete_pending(true), Err(HandleRefusal::Closed));
    }
    drop((a, b, c, of_b, of_c));
    assert!(opens.is_empty());
}

#[test]
fn a_handle_has_a_limited_number_of_requests_that_wait() {
    let opens = opens();
    let (a, b) = (writer(&opens), writer(&opens));
    now(a.lock(range(0, 10), Exclusive)).unwrap();
    let mut waiting: Vec<_> = (0..WAITS_PER_OPEN_MAX).map(|_| locking(&b, range(0, 1), Shared)).collect();
    assert!(waiting.iter_mut().all(|one| one.poll().is_none()));
    let too_many = Err(HandleRefusal::Lock(LockRefusal::TooMany));
    assert_eq!(now(b.lock(range(0, 1), Shared)), too_many);
    drop(waiting.pop());
    assert_eq!(locking(&b, range(0, 1), Shared).poll(), None);
}
