//! What waits, what it keeps out meanwhile, and what is left when it gives up.

use concurrency::range_lock::LockKind;

use super::*;
use RestAccess::{Delete, Read, Write};

#[test]
fn an_open_that_waits_keeps_later_operations_out_so_that_it_is_not_passed_for_ever() {
    let opens = opens();
    let first = enter(&opens, Read).unwrap();
    let mut waiting = opening(&opens, request(FILE, open(R, W)));
    assert!(waiting.poll().is_none());
    assert_eq!(enter(&opens, Read).err(), Some(Refusal::SharingViolation));
    let writing = enter(&opens, Write).expect("it does not stand against the open");
    drop(first);
    let handle = waiting.poll().expect("the reader is gone").unwrap();
    drop((writing, handle));
    drop(waiting);
    assert!(opens.is_empty());
}

#[test]
fn of_two_opens_that_exclude_each_other_the_first_has_the_file_although_it_waits() {
    let opens = opens();
    let reading = enter(&opens, Read).unwrap();
    let mut first = opening(&opens, request(FILE, open(W, NONE)));
    assert!(first.poll().is_none());
    let second = now(opens.open(request(FILE, open(W, ALL))));
    assert_eq!(second.err(), Some(OpenRefusal::SharingViolation));
    drop(first);
    assert!(now(opens.open(request(FILE, open(W, ALL)))).is_ok(), "the first was withdrawn");
    drop(reading);
    assert!(opens.is_empty());
}

#[test]
fn an_open_waits_for_every_operation_that_stands_against_it() {
    let opens = opens();
    let (one, other) = (enter(&opens, Read).unwrap(), enter(&opens, Write).unwrap());
    let mut waiting = opening(&opens, request(FILE, open(R, NONE)));
    assert!(waiting.poll().is_none());
    drop(one);
    assert!(waiting.poll().is_none());
    drop(other);
    assert!(waiting.poll().unwrap().is_ok());
}

#[test]
fn an_open_that_waits_for_a_delete_is_not_in_the_table_yet() {
    let opens = opens();
    let deleting = enter(&opens, Delete).unwrap();
    let mut waiting = opening(&opens, request(FILE, open(R, NONE)));
    assert!(waiting.poll().is_none());
    assert!(enter(&opens, Read).is_ok());
    drop(waiting);
    drop(deleting);
    assert!(opens.is_empty());
}

/// If one of these held a mutex while it waits, the calls after it would hang.
#[test]
fn nothing_that_waits_holds_a_mutex() {
    let opens = opens();
    let name = NameKey { directory: SHARE, folded: "A".into() };
    let _reading = now(opens.enter(FILE, Read, span(0, 10, Transfer::Read))).unwrap();
    let _turn = now(opens.turn(name.clone())).unwrap();
    let other = FileId { share: SHARE, id: 2 };
    let _deleting = now(opens.enter(other, Delete, None)).unwrap();
    let locker = Arc::new(now(opens.open(request(FILE, open(NONE, ALL)))).unwrap());
    let (mine, queue) = (Arc::clone(&locker), opens.clone());
    let mut waiting: Vec<Step<bool>> = vec![
        Step::of(async move { mine.lock(range(0, 10), LockKind::Exclusive).await.is_ok() }),
        Step::of(async move { queue.turn(name).await.is_ok() }),
    ];
    for request in [request(FILE, open(W, W)), request(other, open(R, ALL))] {
        let opens = opens.clone();
        waiting.push(Step::of(async move { opens.open(request).await.is_ok() }));
    }
    assert!(waiting.iter_mut().all(|one| one.poll().is_none()));
    assert!(enter(&opens, Write).is_ok());
    assert!(now(opens.open(request(FILE, open(NONE, ALL)))).is_ok());
    assert_eq!(locker.check_io(50, 1, Transfer::Write), Ok(()));
    assert!(!opens.is_delete_pending(FILE));
    assert_eq!(opens.handles(Scope { file: FILE, reach: Reach::Node }, None, 10).handles.len(), 1);
}

#[tokio::test]
async fn an_open_and_a_lock_are_woken_when_the_operation_leaves() {
    let opens = opens();
    let handle = opens.open(request(FILE, open(NONE, ALL))).await.unwrap();
    let entry = opens.enter(FILE, Read, span(0, 10, Transfer::Read)).await.unwrap();
    let locking = tokio::spawn(async move { handle.lock(range(0, 1), LockKind::Exclusive).await.map(|()| handle) });
    let again = opens.clone();
    let opening = tokio::spawn(async move { again.open(request(FILE, open(W, W))).await });
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(!locking.is_finished() && !opening.is_finished());
    drop(entry);
    let limit = std::time::Duration::from_secs(10);
    let both = async { locking.await.unwrap().is_ok() && opening.await.unwrap().is_ok() };
    assert!(tokio::time::timeout(limit, both).await.expect("they are woken"));
    assert!(opens.is_empty());
}

#[tokio::test]
async fn a_time_limit_of_the_caller_withdraws_the_open() {
    let opens = opens();
    let _entry = opens.enter(FILE, Read, None).await.unwrap();
    let limit = std::time::Duration::from_millis(20);
    assert!(tokio::time::timeout(limit, opens.open(request(FILE, open(W, W)))).await.is_err());
    assert!(opens.enter(FILE, Read, None).await.is_ok());
}
