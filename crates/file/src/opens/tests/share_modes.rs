//! Share modes and REST leases: the published tables, read through the table of opens in both directions.

use super::*;
use RestAccess::{AcquireLease, Delete, Look, Read, Rename, Replace, Write};

const OPERATIONS: [RestAccess; 7] = [Replace, Read, Write, Delete, AcquireLease, Rename, Look];

/// Which operations answer 409 for what an SMB open shares, in the order of `OPERATIONS`. The last two columns are not in
/// the published table. An open with write or delete access refuses the acquire of a lease in any case.
const REFUSED: [(u32, [bool; 7]); 8] = [
    // R 1, W 2, D 4; Create, Get and List Ranges, Put Range and Set, Delete, Lease acquire, Rename, Get Properties
    (0, [true, true, true, true, true, true, false]),
    (1, [true, false, true, true, true, true, false]),
    (2, [true, true, false, true, true, true, false]),
    (4, [true, true, true, true, true, false, false]),
    (3, [true, false, false, true, true, true, false]),
    (5, [true, false, true, true, true, false, false]),
    (6, [false, true, false, true, true, false, false]),
    (7, [false, false, false, true, false, false, false]),
];

fn every_cell() -> impl Iterator<Item = (Open, RestAccess, bool)> {
    let opens = REFUSED.into_iter().flat_map(|row| every_set().map(move |access| (row, access)));
    opens.flat_map(|((sharing, refused), access)| {
        let open = open(access, Access::from_share_bits(sharing));
        OPERATIONS.into_iter().zip(refused).map(move |(operation, refused)| {
            let refused = match operation {
                Delete => true,
                AcquireLease => !access.is_none() && (refused || access != R),
                _ => !access.is_none() && refused,
            };
            (open, operation, refused)
        })
    })
}

#[test]
fn rest_operations_beside_an_smb_open() {
    let opens = opens();
    for (open, operation, refused) in every_cell() {
        let handle = now(opens.open(request(FILE, open))).unwrap();
        let expected = if refused { Some(Refusal::SharingViolation) } else { None };
        assert_eq!(enter(&opens, operation).err(), expected, "{operation:?} beside {open:?}");
        drop(handle);
        assert_eq!(enter(&opens, operation).err(), None, "{operation:?} after {open:?}");
    }
    assert!(opens.is_empty());
}

#[test]
fn an_smb_open_beside_rest_operations_at_work_waits_and_is_not_refused() {
    let opens = opens();
    for (open, operation, waits) in every_cell() {
        let entry = enter(&opens, operation).unwrap();
        let mut opening = opening(&opens, request(FILE, open));
        let answer = opening.poll();
        assert_eq!(answer.is_none(), waits, "{open:?} beside {operation:?}");
        drop(entry);
        let refusal = answer.unwrap_or_else(|| opening.poll().expect("nothing is at work any more")).err();
        let moves = matches!(operation, Delete | Rename | AcquireLease);
        assert_eq!(refusal, (waits && moves).then_some(OpenRefusal::LookAgain), "{open:?} after {operation:?}");
        assert!(opens.is_empty());
    }
}

#[test]
fn two_smb_opens_follow_the_rule_and_are_refused_at_once() {
    let opens = opens();
    for first in every_open() {
        let held = now(opens.open(request(FILE, first))).unwrap();
        for second in every_open() {
            let refusal = now(opens.open(request(FILE, second))).err();
            let expected = first.conflicts_with(second).then_some(OpenRefusal::SharingViolation);
            assert_eq!(refusal, expected, "{second:?} beside {first:?}");
        }
        drop(held);
    }
    assert!(opens.is_empty());
}

#[test]
fn smb_opens_of_a_leased_file() {
    let opens = opens();
    for one in every_open() {
        let leased = OpenRequest { is_leased: true, ..request(FILE, one) };
        let admitted = one.access.is_none() || one == open(R, ALL);
        let expected = if admitted { None } else { Some(OpenRefusal::SharingViolation) };
        assert_eq!(now(opens.open(leased)).err(), expected, "{one:?}");
    }
    assert!(opens.is_empty());
}

#[test]
fn rest_operations_do_not_meet_one_another() {
    let opens = opens();
    let entries: Vec<_> =
        OPERATIONS.iter().cycle().take(70).map(|operation| enter(&opens, *operation).unwrap()).collect();
    drop(entries);
    assert!(opens.is_empty());
}

#[test]
fn another_file_is_not_concerned() {
    let opens = opens();
    let _handle = now(opens.open(request(FILE, open(ALL, NONE)))).unwrap();
    for other in [FileId { id: 2, ..FILE }, FileId { share: SHARE + 1, id: 3 }] {
        for operation in OPERATIONS {
            assert!(now(opens.enter(other, operation, None)).is_ok());
        }
        assert!(now(opens.open(request(other, open(ALL, NONE)))).is_ok());
    }
}

#[test]
fn a_file_has_a_limited_number_of_handles_and_entries() {
    let opens = opens();
    let root = FileId { share: SHARE, id: SHARE };
    for (file, most) in [(FILE, OPENS_PER_FILE_MAX), (root, OPENS_PER_ROOT_MAX)] {
        let open_one = || now(opens.open(request(file, open(NONE, ALL))));
        let mut held: Vec<_> = (0..most).map(|_| open_one().unwrap()).collect();
        assert_eq!(open_one().err(), Some(OpenRefusal::TooMany));
        drop(held.pop());
        assert!(open_one().is_ok());
    }
    let entries: Vec<_> = (0..ENTRIES_PER_FILE_MAX).map(|_| enter(&opens, Read).unwrap()).collect();
    assert_eq!(enter(&opens, Read).err(), Some(Refusal::TooMany));
    drop(entries);
    assert!(opens.is_empty());
}
