//! Oplocks and leases in the table. Time stands still unless everything waits.

use concurrency::caching::{AcknowledgementRefusal, BreakNotice, Caching, Contention, OplockLevel};
use concurrency::range_lock::LockKind;
use tokio::time::Instant;

use super::*;

const A: LeaseName = LeaseName { account: 1, client: 1, key: [1; 16] };
const B: LeaseName = LeaseName { account: 1, client: 2, key: [2; 16] };
const READ: Caching = Caching::READ;
const RH: Caching = Caching::READ_HANDLE;
const RW: Caching = Caching::READ_WRITE;
const RWH: Caching = Caching::ALL;
const OTHER: FileId = FileId { share: SHARE, id: 2 };

fn lease(name: LeaseName, state: Caching) -> CachingRequest {
    CachingRequest::Lease { name, state, v2: None }
}

fn caching(caching: CachingRequest, open: Open) -> (OpenRequest, Arc<Recorder>) {
    let holder = Arc::new(Recorder::default());
    (OpenRequest { caching, holder: holder.clone(), ..request(FILE, open) }, holder)
}

fn state_of(handle: &Handle) -> Caching {
    match handle.granted_caching() {
        GrantedCaching::None => Caching::NONE,
        GrantedCaching::Oplock(level) => level.caching(),
        GrantedCaching::Lease { state, .. } => state,
    }
}

/// What the client was told, oldest first: from and to.
fn told(holder: &Recorder) -> Vec<(Caching, Caching)> {
    let notices = holder.broken.lock().unwrap();
    notices
        .iter()
        .map(|broken| match broken {
            Broken::Lease { notice, .. } => (notice.from, notice.to),
            Broken::Oplock { to, .. } => (Caching::NONE, to.caching()),
        })
        .collect()
}

fn breaking(refused: Result<Handle, OpenRefusal>) -> BreakWait {
    match refused {
        Err(OpenRefusal::Breaking(wait)) => wait,
        other => panic!("{other:?}"),
    }
}

/// A file with a lease RWH of one client, and the request of another that has begun to break it.
async fn contended(opens: &Opens) -> (Handle, Arc<Recorder>, OpenRequest, BreakWait) {
    let (first, holder) = caching(lease(A, RWH), open(ALL, ALL));
    let first = opens.open(first).await.unwrap();
    assert_eq!(state_of(&first), RWH);
    let (second, _) = caching(lease(B, RWH), open(ALL, ALL));
    let wait = breaking(opens.open(second.clone()).await);
    assert_eq!(told(&holder), [(RWH, RH)]);
    (first, holder, second, wait)
}

#[tokio::test(start_paused = true)]
async fn an_open_waits_until_the_lease_is_acknowledged() {
    let opens = opens();
    let (first, _, second, wait) = contended(&opens).await;
    let waiting = tokio::spawn({
        let opens = opens.clone();
        async move { opens.breaks_ended(wait).await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    assert_eq!(opens.acknowledge_lease(A, RWH), Err(AcknowledgementRefusal::TooMuch));
    assert_eq!(opens.acknowledge_lease(B, RH), Err(AcknowledgementRefusal::NotFound));
    opens.acknowledge_lease(A, RH).unwrap();
    waiting.await.unwrap();
    let second = opens.open(second).await.unwrap();
    assert_eq!((state_of(&first), state_of(&second)), (RH, RH));
    assert_eq!(opens.acknowledge_lease(A, RH), Err(AcknowledgementRefusal::NotBreaking));
    drop((first, second));
    assert!(opens.is_empty() && opens.acknowledge_lease(A, RH) == Err(AcknowledgementRefusal::NotFound));
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_loses_its_lease_after_35_seconds() {
    let opens = opens();
    let (first, _, second, wait) = contended(&opens).await;
    let began = Instant::now();
    opens.breaks_ended(wait).await;
    assert_eq!(began.elapsed().as_secs(), BREAK_PATIENCE.as_secs());
    let second = opens.open(second).await.unwrap();
    assert_eq!(state_of(&first), Caching::NONE);
    assert_eq!(opens.acknowledge_lease(A, RH), Err(AcknowledgementRefusal::NotBreaking), "too late");
    drop((first, second));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_closes_or_cannot_be_told_is_not_waited_for() {
    let opens = opens();
    let (first, _, second, wait) = contended(&opens).await;
    let began = Instant::now();
    assert!(first.close().is_none());
    opens.breaks_ended(wait).await;
    drop(opens.open(second.clone()).await.unwrap());

    let (mut gone, _) = caching(lease(A, RWH), open(ALL, ALL));
    gone.holder = Arc::new(Recorder { is_gone: true, ..Recorder::default() });
    let gone = opens.open(gone).await.unwrap();
    opens.breaks_ended(breaking(opens.open(second.clone()).await)).await;
    drop(opens.open(second).await.unwrap());
    assert_eq!((began.elapsed().as_secs(), state_of(&gone)), (0, Caching::NONE));
}

#[tokio::test(start_paused = true)]
async fn handles_of_one_key_share_the_lease_and_do_not_break_it() {
    let opens = opens();
    let (request, holder) = caching(lease(A, READ), open(R, ALL));
    let one = opens.open(request).await.unwrap();
    let (request, _) = caching(lease(A, RWH), open(ALL, ALL));
    let two = opens.open(request).await.unwrap();
    assert_eq!((state_of(&one), state_of(&two)), (RWH, RWH), "the same key becomes more");
    let (request, _) = caching(lease(A, READ), open(ALL, ALL));
    let three = opens.open(request).await.unwrap();
    assert_eq!(state_of(&three), RWH, "and never less");
    two.contend(Contention::Change).unwrap();
    assert!(told(&holder).is_empty());
    let elsewhere = OpenRequest { file: OTHER, ..caching(lease(A, READ), open(R, ALL)).0 };
    assert_eq!(opens.open(elsewhere.clone()).await.err(), Some(OpenRefusal::LeaseElsewhere));
    assert!(opens.is_lease_elsewhere(A, None) && opens.is_lease_elsewhere(A, Some(OTHER)));
    assert!(!opens.is_lease_elsewhere(A, Some(FILE)));
    drop((one, two));
    assert_eq!(opens.open(elsewhere.clone()).await.err(), Some(OpenRefusal::LeaseElsewhere));
    drop(three);
    drop(opens.open(elsewhere).await.unwrap());
    assert!(opens.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_handle_that_is_kept_for_later_is_closed_before_a_violation_is_answered() {
    let opens = opens();
    let (first, holder) = caching(lease(A, RWH), open(R, R));
    let first = opens.open(first).await.unwrap();
    let (second, _) = caching(CachingRequest::None, open(W, ALL));
    let wait = breaking(opens.open(second.clone()).await);
    assert_eq!(told(&holder), [(RWH, RW)]);
    opens.acknowledge_lease(A, RW).unwrap();
    opens.breaks_ended(wait).await;
    assert_eq!(opens.open(second.clone()).await.err(), Some(OpenRefusal::SharingViolation));
    assert_eq!(told(&holder).len(), 1, "H is gone; there is nothing more to wait for");
    drop(first);
    drop(opens.open(second).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_open_of_attributes_breaks_nothing_and_stands_beside_everything() {
    let opens = opens();
    let (first, holder) = caching(CachingRequest::Oplock(OplockLevel::Batch), open(ALL, NONE));
    let first = opens.open(first).await.unwrap();
    let look = opens.open(request(FILE, open(NONE, NONE))).await.unwrap();
    assert!(told(&holder).is_empty() && state_of(&first) == RWH);
    let (asking, _) = caching(CachingRequest::Oplock(OplockLevel::Batch), open(NONE, ALL));
    let asking = opens.open(asking).await.unwrap();
    assert_eq!(state_of(&asking), Caching::NONE, "nothing is cached beside one that keeps writes back");
    drop((first, asking));
    let (alone, _) = caching(lease(A, RWH), open(ALL, ALL));
    let alone = opens.open(alone).await.unwrap();
    assert_eq!(state_of(&alone), RWH, "one that only looks is nobody else");
    drop((look, alone));
}

#[tokio::test(start_paused = true)]
async fn oplocks_belong_to_their_handle() {
    let opens = opens();
    let (first, holder) = caching(CachingRequest::Oplock(OplockLevel::Exclusive), open(ALL, ALL));
    let first = opens.open(first).await.unwrap();
    assert_eq!(first.acknowledge_oplock(OplockLevel::None), Err(AcknowledgementRefusal::NotBreaking));
    let (second, other) = caching(CachingRequest::Oplock(OplockLevel::Batch), open(ALL, ALL));
    let wait = breaking(opens.open(second.clone()).await);
    assert_eq!(*holder.broken.lock().unwrap(), [Broken::Oplock { handle: first.id(), to: OplockLevel::LevelTwo }]);
    assert_eq!(first.acknowledge_oplock(OplockLevel::LevelTwo), Ok(OplockLevel::LevelTwo));
    opens.breaks_ended(wait).await;
    let second = opens.open(second).await.unwrap();
    assert_eq!((state_of(&first), state_of(&second)), (READ, READ));
    // A write breaks all level II oplocks, that of its own handle, too; nothing is to be acknowledged.
    second.contend(Contention::Change).unwrap();
    assert_eq!((state_of(&first), state_of(&second)), (Caching::NONE, Caching::NONE));
    assert_eq!((told(&holder).len(), told(&other).len()), (2, 1));
    assert_eq!(second.acknowledge_oplock(OplockLevel::None), Err(AcknowledgementRefusal::NotBreaking));
}

#[tokio::test(start_paused = true)]
async fn locks_and_writes_take_read_caching_from_others() {
    let opens = opens();
    let (reader, holder) = caching(lease(A, RH), open(R, ALL));
    let reader = opens.open(reader).await.unwrap();
    let (writer, own) = caching(lease(B, RH), open(ALL, ALL));
    let writer = opens.open(writer).await.unwrap();
    writer.lock_now(&[(range(0, 10), LockKind::Exclusive)]).await.unwrap();
    assert_eq!((told(&holder), told(&own)), (vec![(RH, Caching::NONE)], vec![]));
    assert!(matches!(reader.granted_caching(), GrantedCaching::Lease { is_breaking: true, .. }));
    opens.acknowledge_lease(A, Caching::NONE).unwrap();
    drop(reader);
    let (locked_out, _) = caching(lease(A, READ), open(R, ALL));
    let locked_out = opens.open(locked_out).await.unwrap();
    assert_eq!(state_of(&locked_out), Caching::NONE, "nothing is cached of a file with locks");
    drop((writer, locked_out));
    let work = opens.enter(FILE, RestAccess::Write, None).await.unwrap();
    let (during, _) = caching(lease(A, RWH), open(R, ALL));
    let during = opens.open(during).await.unwrap();
    assert_eq!(state_of(&during), Caching::NONE, "what is read during a write is not kept");
    drop((during, work));
}

#[tokio::test(start_paused = true)]
async fn a_break_that_must_go_further_is_told_in_steps() {
    let opens = opens();
    let (first, holder) = caching(
        CachingRequest::Lease { name: A, state: RWH, v2: Some(LeaseV2 { epoch: 10, parent: None }) },
        open(ALL, ALL),
    );
    let first = opens.open(first).await.unwrap();
    let (reader, _) = caching(CachingRequest::None, open(R, ALL));
    let emptier = OpenRequest { also: W, ..reader.clone() };
    let one = breaking(opens.open(reader.clone()).await);
    let other = breaking(opens.open(emptier.clone()).await);
    assert_eq!(told(&holder), [(RWH, RH)], "one break at a time");
    opens.acknowledge_lease(A, RH).unwrap();
    opens.breaks_ended(one).await;
    opens.breaks_ended(other).await;
    assert_eq!(told(&holder), [(RWH, RH), (RH, READ)]);
    // Whoever has waited waits for the next step, too; one that comes only now does not.
    let again = OpenRequest { has_waited: true, ..emptier.clone() };
    breaking(opens.open(again).await);
    drop(opens.open(emptier.clone()).await.unwrap());
    opens.acknowledge_lease(A, READ).unwrap();
    assert_eq!(told(&holder), [(RWH, RH), (RH, READ), (READ, Caching::NONE)]);
    let last = holder.broken.lock().unwrap().last().copied();
    let notice = BreakNotice { from: READ, to: Caching::NONE, must_acknowledge: false, epoch: 12 };
    assert_eq!(last, Some(Broken::Lease { name: A, is_v2: true, notice }));
    drop((opens.open(emptier).await.unwrap(), opens.open(reader).await.unwrap(), first));
    assert!(opens.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_rename_of_a_parent_has_handles_below_closed_first() {
    let opens = opens();
    let directory = FileId { share: SHARE, id: 50 };
    let holder = Arc::new(Recorder::default());
    let child = OpenRequest {
        caching: lease(A, RH),
        holder: holder.clone(),
        ..below(FILE, &[directory.id, SHARE], open(R, ALL))
    };
    let child = opens.open(child).await.unwrap();
    let refused = opens.enter_tree(directory, RestAccess::Rename).await;
    let Err(Refusal::Breaking(wait)) = refused else { panic!("{refused:?}") };
    assert_eq!(told(&holder), [(RH, READ)]);
    drop(child);
    opens.breaks_ended(wait).await;
    drop(opens.enter_tree(directory, RestAccess::Rename).await.unwrap());
    assert!(opens.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_deleted_has_handles_broken() {
    let opens = opens();
    let (first, holder) = caching(lease(A, RH), open(R, ALL));
    let first = opens.open(first).await.unwrap();
    let deleting = OpenRequest { delete_on_close: true, ..request(FILE, open(D, ALL)) };
    let deleting = opens.open(deleting).await.unwrap();
    assert!(told(&holder).is_empty());
    assert!(deleting.close().is_none());
    assert_eq!(told(&holder), [(RH, READ)]);
    assert!(first.close().is_some(), "the last one deletes it");
}
