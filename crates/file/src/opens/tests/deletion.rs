//! Delete-pending files: how they become it, what is refused meanwhile, how they go.

use super::*;

fn sharing_all(opens: &Opens) -> Handle {
    now(opens.open(request(FILE, open(ALL, ALL)))).unwrap()
}

fn deleting_on_close(opens: &Opens) -> Handle {
    now(opens.open(OpenRequest { delete_on_close: true, ..request(FILE, open(ALL, ALL)) })).unwrap()
}

fn assert_pending(opens: &Opens) {
    for operation in RestAccess::EVERY {
        assert_eq!(enter(opens, operation).err(), Some(Refusal::DeletePending), "{operation:?}");
    }
    assert_eq!(now(opens.enter_tree(FILE, RestAccess::Delete)).err(), Some(Refusal::DeletePending));
    for one in every_open() {
        assert_eq!(now(opens.open(request(FILE, one))).err(), Some(OpenRefusal::DeletePending), "{one:?}");
    }
    assert!(opens.is_delete_pending(FILE));
    assert_eq!(opens.pending_among(SHARE, &[FILE.id, 2, 3]), HashSet::from([FILE.id]));
}

fn assert_not_pending(opens: &Opens) {
    assert!(enter(opens, RestAccess::Look).is_ok());
    assert!(!opens.is_delete_pending(FILE));
    assert!(opens.pending_among(SHARE, &[FILE.id]).is_empty());
}

#[test]
fn a_disposition_is_there_at_once_and_the_only_handle_deletes() {
    let opens = opens();
    let handle = sharing_all(&opens);
    handle.set_delete_pending(true).unwrap();
    assert_pending(&opens);
    let removal = handle.close().expect("the last handle");
    assert_eq!((removal.file(), removal.place().path.as_str()), (FILE, "file1"));
    assert_pending(&opens);
    drop(removal);
    assert_not_pending(&opens);
    drop(handle);
    assert!(opens.is_empty());
}

#[test]
fn of_two_handles_the_last_one_deletes_whichever_it_is() {
    for first_closes_first in [true, false] {
        let opens = opens();
        let (first, second) = (sharing_all(&opens), sharing_all(&opens));
        first.set_delete_pending(true).unwrap();
        let (one, last) = if first_closes_first { (first, second) } else { (second, first) };
        assert!(one.close().is_none());
        assert_pending(&opens);
        assert!(last.close().is_some());
    }
}

#[test]
fn a_disposition_is_undone_by_any_handle() {
    let opens = opens();
    let (first, second) = (sharing_all(&opens), sharing_all(&opens));
    first.set_delete_pending(true).unwrap();
    second.set_delete_pending(false).unwrap();
    assert_not_pending(&opens);
    assert!(first.close().is_none() && second.close().is_none());
    assert!(opens.is_empty());
}

#[test]
fn delete_on_close_is_no_sign_before_the_handle_closes() {
    let opens = opens();
    let (asked, other) = (deleting_on_close(&opens), sharing_all(&opens));
    assert_not_pending(&opens);
    assert_eq!(enter(&opens, RestAccess::Delete).err(), Some(Refusal::SharingViolation));
    assert!(asked.close().is_none());
    assert_pending(&opens);
    assert!(other.close().is_some());
    assert_not_pending(&opens);
}

#[test]
fn delete_on_close_of_the_only_handle_and_of_the_last_one() {
    let opens = opens();
    assert!(deleting_on_close(&opens).close().is_some());
    let (asked, other) = (deleting_on_close(&opens), sharing_all(&opens));
    assert!(other.close().is_none());
    assert_not_pending(&opens);
    assert!(asked.close().is_some());
    assert!(opens.is_empty());
}

#[test]
fn delete_on_close_is_undone_after_its_handle_closed_but_not_before() {
    let opens = opens();
    let (asked, other) = (deleting_on_close(&opens), sharing_all(&opens));
    asked.set_delete_pending(false).unwrap();
    assert!(asked.close().is_none());
    assert_pending(&opens);
    other.set_delete_pending(false).unwrap();
    assert_not_pending(&opens);
    assert!(other.close().is_none());
}

#[test]
fn a_handle_of_attributes_alone_keeps_the_file_pending() {
    let opens = opens();
    let asked = deleting_on_close(&opens);
    let attributes = now(opens.open(request(FILE, open(NONE, NONE)))).unwrap();
    assert!(asked.close().is_none());
    assert_pending(&opens);
    assert!(attributes.close().is_some());
}

#[test]
fn a_dropped_handle_hands_the_deletion_to_its_holder() {
    let opens = opens();
    let holder = Arc::new(Recorder::default());
    let wanted = OpenRequest { delete_on_close: true, holder: holder.clone(), ..request(FILE, open(D, ALL)) };
    drop(now(opens.open(wanted)).unwrap());
    assert_pending(&opens);
    let removal = holder.removals.lock().unwrap().pop().expect("told");
    drop(removal);
    assert!(opens.is_empty());
}

#[test]
fn a_withdrawn_open_deletes_nothing_and_no_deletion_waits_for_it() {
    let opens = opens();
    let reading = enter(&opens, RestAccess::Read).unwrap();
    let wanted = OpenRequest { delete_on_close: true, ..request(FILE, open(D, W.and(D))) };
    let mut waiting = opening(&opens, wanted.clone());
    assert!(waiting.poll().is_none());
    drop(waiting);
    assert_not_pending(&opens);

    let asked = now(opens.open(OpenRequest { delete_on_close: true, ..request(FILE, open(D, ALL)) })).unwrap();
    let mut waiting = opening(&opens, wanted);
    assert!(waiting.poll().is_none());
    let removal = asked.close();
    assert!(removal.is_some(), "the open that waits is nobody's handle yet");
    drop(reading);
    assert_eq!(waiting.poll().unwrap().err(), Some(OpenRefusal::DeletePending));
    assert_pending(&opens);
    drop(removal);
    drop(asked);
    assert!(opens.is_empty());
}

#[test]
fn a_pending_file_may_be_read_written_and_locked_by_its_handles() {
    let opens = opens();
    let handle = sharing_all(&opens);
    handle.set_delete_pending(true).unwrap();
    assert_eq!(handle.check_io(0, 10, Transfer::Write), Ok(()));
    assert_eq!(now(handle.lock_now(&[(range(0, 1), concurrency::range_lock::LockKind::Exclusive)])), Ok(()));
    assert_eq!(handle.begin_rename(Reach::Tree).err(), Some(HandleRefusal::DeletePending));
}

#[test]
fn nothing_is_opened_below_a_pending_directory() {
    let opens = opens();
    let directory = FileId { share: SHARE, id: 10 };
    let handle = now(opens.open(request(directory, open(D, ALL)))).unwrap();
    handle.set_delete_pending(true).unwrap();
    let refused = now(opens.open(below(FILE, &[10, SHARE], open(R, ALL))));
    assert_eq!(refused.err(), Some(OpenRefusal::DeletePending));
}
