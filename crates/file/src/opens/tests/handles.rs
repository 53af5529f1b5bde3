//! List Handles and Force Close Handles.

use concurrency::caching::{Caching, OplockLevel};

use super::*;

const DIRECTORY: FileId = FileId { share: SHARE, id: 10 };
const OTHER: FileId = FileId { share: SHARE, id: 2 };
const ROOT: FileId = FileId { share: SHARE, id: SHARE };

fn scope(file: FileId, reach: Reach) -> Scope {
    Scope { file, reach }
}

fn ids(handles: &[HandleInfo]) -> Vec<HandleId> {
    handles.iter().map(|handle| handle.id).collect()
}

fn in_directory(open: Open) -> OpenRequest {
    below(FILE, &[DIRECTORY.id, SHARE], open)
}

#[test]
fn a_handle_is_shown_as_it_was_opened() {
    let opens = opens();
    let caching = CachingRequest::Oplock(OplockLevel::Batch);
    let handle = now(opens.open(OpenRequest { caching, ..in_directory(open(R.and(D), ALL)) })).unwrap();
    let shown = opens.handles(scope(FILE, Reach::Node), None, 10);
    let asked = in_directory(open(R.and(D), ALL));
    let expected = HandleInfo {
        id: handle.id(),
        file: FILE,
        place: asked.place,
        access: R.and(D),
        client: asked.client.clone(),
        opened: asked.now,
        reconnected: None,
    };
    assert_eq!(shown, HandlePage { handles: vec![expected], next: None });
    let client = Client { session: 8, ..asked.client };
    handle.reconnected(client.clone(), asked.holder, Timestamp(9)).unwrap();
    let shown = opens.handles(scope(FILE, Reach::Node), None, 10).handles.remove(0);
    assert_eq!((shown.client, shown.opened, shown.reconnected), (client, Timestamp(1), Some(Timestamp(9))));
}

fn cached(caching: CachingRequest, holder: &Arc<Recorder>) -> OpenRequest {
    OpenRequest { caching, holder: Arc::clone(holder) as _, ..request(FILE, open(R, ALL)) }
}

/// Only what keeps its client asked can be kept for it, and not while that is taken back.
#[test]
fn a_handle_is_kept_for_its_client_while_it_caches_handles() {
    let name = LeaseName { account: 1, client: 2, key: [3; 16] };
    let lease = |state| CachingRequest::Lease { name, state, v2: None };
    for (caching, keeps) in [
        (CachingRequest::None, false),
        (CachingRequest::Oplock(OplockLevel::LevelTwo), false),
        (CachingRequest::Oplock(OplockLevel::Exclusive), false),
        (CachingRequest::Oplock(OplockLevel::Batch), true),
        (lease(Caching::READ_WRITE), false),
        (lease(Caching::READ_HANDLE), true),
        (lease(Caching::ALL), true),
    ] {
        let (opens, recorder, lost) = (opens(), Arc::new(Recorder::default()), Arc::new(Recorder::default()));
        let handle = now(opens.open(cached(caching, &recorder))).unwrap();
        assert_eq!(handle.disconnected(Arc::clone(&lost) as _).is_ok(), keeps, "{caching:?}");
    }
    let (opens, recorder) = (opens(), Arc::new(Recorder::default()));
    let handle = now(opens.open(cached(lease(Caching::ALL), &recorder))).unwrap();
    let breaking = now(opens.open(request(FILE, open(R, ALL))));
    assert!(matches!(breaking, Err(OpenRefusal::Breaking(_))));
    assert_eq!(handle.disconnected(recorder), Err(HandleRefusal::Closed), "a break is in progress");
}

/// The handles of a lease whose connections are lost hear of a break, and one that has a connection does.
#[test]
fn lost_handles_hear_of_the_break_of_their_lease() {
    let name = LeaseName { account: 1, client: 2, key: [3; 16] };
    let lease = CachingRequest::Lease { name, state: Caching::ALL, v2: None };
    let opens = opens();
    let recorders: Vec<Arc<Recorder>> = (0..4).map(|_| Arc::new(Recorder::default())).collect();
    let handles: Vec<Handle> =
        recorders.iter().map(|recorder| now(opens.open(cached(lease, recorder))).unwrap()).collect();
    let lost = Arc::new(Recorder::default());
    for handle in [&handles[0], &handles[3]] {
        handle.disconnected(Arc::clone(&lost) as _).unwrap();
    }
    assert!(matches!(now(opens.open(request(FILE, open(R, ALL)))), Err(OpenRefusal::Breaking(_))));
    let told: Vec<usize> = recorders.iter().map(|recorder| recorder.broken.lock().unwrap().len()).collect();
    assert_eq!((told, lost.broken.lock().unwrap().len()), (vec![0, 1, 0, 0], 2));
}

#[test]
fn numbers_begin_at_random_and_are_never_zero() {
    for (random, first) in [(0, 1), (1, 1), (4_711, 2_355), (u64::MAX, u64::MAX / 2)] {
        let opens = Opens::new(random);
        assert_eq!(now(opens.open(request(FILE, open(R, ALL)))).unwrap().id(), HandleId(first));
    }
}

#[test]
fn a_scope_is_a_node_or_a_tree() {
    let opens = opens();
    let [file, directory, other] =
        [in_directory(open(R, ALL)), request(DIRECTORY, open(R, ALL)), request(OTHER, open(R, ALL))]
            .map(|request| now(opens.open(request)).unwrap());
    let _elsewhere = now(opens.open(request(FileId { share: 7, id: 70 }, open(R, ALL)))).unwrap();
    for (of, reach, expected) in [
        (FILE, Reach::Node, vec![file.id()]),
        (DIRECTORY, Reach::Node, vec![directory.id()]),
        (DIRECTORY, Reach::Tree, vec![file.id(), directory.id()]),
        (ROOT, Reach::Node, vec![]),
        (ROOT, Reach::Tree, vec![file.id(), directory.id(), other.id()]),
        (FileId { share: SHARE, id: 99 }, Reach::Tree, vec![]),
    ] {
        assert_eq!(ids(&opens.handles(scope(of, reach), None, 10).handles), expected, "{of:?} {reach:?}");
    }
}

/// More handles than are looked at under one hold of the mutex, few of them in the scope.
#[test]
fn pages_of_every_size_list_each_handle_once() {
    let opens = opens();
    let held: Vec<_> = (0..5_000_u64)
        .map(|number| {
            let file = FileId { share: SHARE, id: 1_000 + number };
            let above: &[u64] = if number % 700 == 0 { &[DIRECTORY.id, SHARE] } else { &[SHARE] };
            now(opens.open(below(file, above, open(R, ALL)))).unwrap()
        })
        .collect();
    let every: Vec<_> = held.iter().map(Handle::id).collect();
    let some: Vec<_> = every.iter().copied().step_by(700).collect();
    for (of, expected) in [(ROOT, every), (DIRECTORY, some)] {
        for most in [1, 3, 8, 1_024, 5_000, usize::MAX] {
            let most = if of == ROOT { most.max(1_000) } else { most };
            assert_eq!(list_all(&opens, scope(of, Reach::Tree), most), expected, "{most}");
        }
    }
    assert_eq!(opens.handles(scope(ROOT, Reach::Tree), None, 0).next, Some(HandleId(0)));
}

fn list_all(opens: &Opens, scope: Scope, most: usize) -> Vec<HandleId> {
    let (mut found, mut marker) = (Vec::new(), None);
    loop {
        let page = opens.handles(scope, marker, most);
        assert!(page.handles.len() <= most);
        found.extend(ids(&page.handles));
        marker = page.next;
        if marker.is_none() {
            return found;
        }
    }
}

#[test]
fn pages_of_one_file() {
    let opens = opens();
    let held: Vec<_> = (0..7).map(|_| now(opens.open(request(FILE, open(R, ALL)))).unwrap()).collect();
    let expected: Vec<_> = held.iter().map(Handle::id).collect();
    for most in 1..9 {
        assert_eq!(list_all(&opens, scope(FILE, Reach::Node), most), expected);
    }
}

#[test]
fn an_open_that_waits_is_not_listed() {
    let opens = opens();
    let _reading = enter(&opens, RestAccess::Read).unwrap();
    let mut waiting = opening(&opens, request(FILE, open(W, W)));
    assert!(waiting.poll().is_none());
    for reach in [Reach::Node, Reach::Tree] {
        assert!(opens.handles(scope(FILE, reach), None, 10).handles.is_empty());
    }
    let all = Which::All { after: None, most: 10 };
    assert_eq!(opens.force_close(scope(ROOT, Reach::Tree), all).closed, 0);
}

/// Closes the guard when it is told, which takes the mutex: the table must not hold it.
#[derive(Debug, Default)]
struct Reentrant {
    opens: Mutex<Option<Opens>>,
    told: Mutex<Vec<HandleId>>,
}

impl Holder for Reentrant {
    fn closed(&self, handle: HandleId) {
        let opens = self.opens.lock().unwrap().take().unwrap();
        assert!(!opens.is_delete_pending(FILE) && now(opens.enter(FILE, RestAccess::Delete, None)).is_ok());
        self.told.lock().unwrap().push(handle);
    }

    fn must_delete(&self, _removal: Removal) {}

    fn broken(&self, _broken: Broken) -> bool {
        true
    }
}

#[test]
fn a_forced_close_tells_the_holder_without_locks_and_ends_the_guard() {
    let opens = opens();
    let holder = Arc::new(Reentrant { opens: Mutex::new(Some(opens.clone())), ..Reentrant::default() });
    let handle = now(opens.open(OpenRequest { holder: holder.clone(), ..in_directory(open(R, R)) })).unwrap();
    let by_number = Which::One(handle.id());
    for elsewhere in [scope(OTHER, Reach::Node), scope(DIRECTORY, Reach::Node), scope(OTHER, Reach::Tree)] {
        assert_eq!(opens.force_close(elsewhere, by_number).closed, 0);
    }
    assert_eq!(opens.force_close(scope(DIRECTORY, Reach::Tree), by_number).closed, 1);
    assert_eq!(*holder.told.lock().unwrap(), [handle.id()]);
    assert_eq!(handle.check_io(0, 1, Transfer::Read), Err(HandleRefusal::Closed));
    assert_eq!(opens.force_close(scope(FILE, Reach::Node), by_number).closed, 0);
    assert!(handle.close().is_none());
    assert!(opens.is_empty());
}

#[test]
fn all_handles_are_closed_in_portions() {
    let opens = opens();
    let holder = Arc::new(Recorder::default());
    let open_one = |id| {
        let file = FileId { share: SHARE, id };
        now(opens.open(OpenRequest { holder: holder.clone(), ..request(file, open(R, ALL)) })).unwrap()
    };
    let held: Vec<_> = (1..=5).map(open_one).collect();
    let root = scope(ROOT, Reach::Tree);
    let first = opens.force_close(root, Which::All { after: None, most: 3 });
    assert_eq!((first.closed, first.next), (3, Some(held[2].id())));
    let second = opens.force_close(root, Which::All { after: first.next, most: 3 });
    assert_eq!((second.closed, second.next), (2, None));
    assert_eq!(*holder.closed.lock().unwrap(), held.iter().map(Handle::id).collect::<Vec<_>>());
    assert!(opens.is_empty());
}

#[test]
fn a_forced_close_of_the_last_handle_hands_over_the_deletion() {
    let opens = opens();
    let (first, _second) =
        (now(opens.open(request(FILE, open(D, ALL)))).unwrap(), now(opens.open(request(FILE, open(D, ALL)))).unwrap());
    first.set_delete_pending(true).unwrap();
    assert!(enter(&opens, RestAccess::Look).is_err());
    let all = Which::All { after: None, most: 10 };
    let forced = opens.force_close(scope(FILE, Reach::Node), all);
    assert_eq!((forced.closed, forced.removals.len()), (2, 1));
    assert!(opens.is_delete_pending(FILE));
    drop(forced);
    assert!(opens.is_empty());
}
