//! Renames and deletes of directories beside what is open below, and handles that move along.

use super::*;
use RestAccess::{Delete, Read, Rename};

const DIRECTORY: FileId = FileId { share: SHARE, id: 10 };
const INNER: FileId = FileId { share: SHARE, id: 11 };
const ROOT: FileId = FileId { share: SHARE, id: SHARE };

fn deep(open: Open) -> OpenRequest {
    below(FILE, &[INNER.id, DIRECTORY.id, SHARE], open)
}

#[test]
fn a_directory_with_an_open_file_below_is_not_renamed_or_deleted() {
    let opens = opens();
    for one in every_open() {
        let handle = now(opens.open(deep(one))).unwrap();
        for directory in [INNER, DIRECTORY] {
            for operation in [Rename, Delete] {
                let refused = now(opens.enter_tree(directory, operation));
                assert_eq!(refused.err(), Some(Refusal::SharingViolation), "{one:?}");
            }
            assert!(now(opens.enter(directory, Rename, None)).is_ok(), "only with everything below");
        }
        drop(handle);
        assert!(now(opens.enter_tree(DIRECTORY, Rename)).is_ok());
    }
    assert!(opens.is_empty());
}

#[test]
fn handles_of_the_directory_itself_follow_share_modes() {
    let opens = opens();
    let shares_delete = now(opens.open(request(DIRECTORY, open(R, ALL)))).unwrap();
    assert!(now(opens.enter_tree(DIRECTORY, Rename)).is_ok());
    assert_eq!(now(opens.enter_tree(DIRECTORY, Delete)).err(), Some(Refusal::SharingViolation));
    drop(shares_delete);
    let _keeps_it = now(opens.open(request(DIRECTORY, open(R, R.and(W))))).unwrap();
    assert_eq!(now(opens.enter_tree(DIRECTORY, Rename)).err(), Some(Refusal::SharingViolation));
}

#[test]
fn an_open_below_waits_for_the_rename_and_begins_again() {
    let opens = opens();
    for directory in [INNER, DIRECTORY] {
        let renaming = now(opens.enter_tree(directory, Rename)).unwrap();
        let mut waiting = opening(&opens, deep(open(NONE, ALL)));
        assert!(waiting.poll().is_none());
        assert!(now(opens.open(below(FILE, &[SHARE], open(R, ALL)))).is_ok(), "another place is not concerned");
        assert!(now(opens.enter(FILE, Read, None)).is_ok(), "REST operations below are not, either");
        let second = now(opens.enter_tree(directory, Rename)).expect("what waits is not open");
        drop(renaming);
        assert!(waiting.poll().is_none(), "another rename is at work");
        drop(second);
        assert_eq!(waiting.poll().unwrap().err(), Some(OpenRefusal::LookAgain));
        assert!(now(opens.open(deep(open(R, ALL)))).is_ok());
    }
    assert!(opens.is_empty());
}

#[test]
fn an_open_that_is_refused_or_withdrawn_counts_nowhere() {
    let opens = opens();
    let held = now(opens.open(below(FILE, &[SHARE], open(R, R)))).unwrap();
    assert!(now(opens.open(deep(open(W, ALL)))).is_err());
    drop(held);
    let reading = now(opens.enter(FILE, Read, None)).unwrap();
    let mut waiting = opening(&opens, deep(open(W, W)));
    assert!(waiting.poll().is_none());
    assert!(now(opens.enter_tree(DIRECTORY, Rename)).is_err(), "it is open as soon as the read is done");
    drop(waiting);
    assert!(now(opens.enter_tree(DIRECTORY, Rename)).is_ok());
    drop(reading);
    assert!(opens.is_empty());
}

#[test]
fn a_handle_goes_along_with_its_file() {
    let opens = opens();
    let handle = now(opens.open(deep(open(R, ALL)))).unwrap();
    let renaming = now(opens.enter(FILE, Rename, None)).unwrap();
    renaming.moved_to(Place { path: "elsewhere/new".to_owned(), above: vec![20, SHARE] });
    drop(renaming);
    assert!(now(opens.enter_tree(DIRECTORY, Rename)).is_ok(), "nothing is open below any more");
    let elsewhere = FileId { share: SHARE, id: 20 };
    assert!(now(opens.enter_tree(elsewhere, Rename)).is_err());
    let listed = opens.handles(Scope { file: elsewhere, reach: Reach::Tree }, None, 10).handles;
    assert_eq!((listed[0].id, listed[0].place.path.as_str()), (handle.id(), "elsewhere/new"));
    drop(handle);
    assert!(opens.is_empty());
}

#[test]
fn a_rename_by_handle_meets_what_is_open_below_but_not_itself() {
    let opens = opens();
    let handle = now(opens.open(request(DIRECTORY, open(D, NONE)))).unwrap();
    let inside = now(opens.open(deep(open(R, ALL)))).unwrap();
    assert_eq!(handle.begin_rename(Reach::Tree).err(), Some(HandleRefusal::OpenBelow));
    drop(inside);
    let renaming = handle.begin_rename(Reach::Tree).unwrap();
    let mut waiting = opening(&opens, deep(open(R, ALL)));
    assert!(waiting.poll().is_none());
    renaming.moved_to(Place { path: "renamed".to_owned(), above: vec![SHARE] });
    drop(renaming);
    assert_eq!(waiting.poll().unwrap().err(), Some(OpenRefusal::LookAgain));
    assert!(handle.close().is_none());
    assert_eq!(handle.begin_rename(Reach::Tree).err(), Some(HandleRefusal::Closed));
    assert!(opens.is_empty());
}

#[test]
fn everything_is_below_the_root() {
    let opens = opens();
    let _handle = now(opens.open(deep(open(NONE, ALL)))).unwrap();
    assert!(now(opens.enter_tree(ROOT, Delete)).is_err());
}
