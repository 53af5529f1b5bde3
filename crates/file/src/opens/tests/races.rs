//! REST operations and SMB clients on several threads, and a ledger that would show two of them together that must not
//! be.

use std::time::Duration;

use concurrency::range_lock::{Actor, LockKind, OpenId, RangeLocks};

use super::random::Random;
use super::*;

const ROUNDS: u64 = 1_500;
const DIRECTORY: u64 = 10;

/// What clients have been told. Entered after the table admitted it and left before the table is told, so everything in
/// it is certainly in the table.
#[derive(Debug, Default)]
struct Ledger {
    entries: Vec<LedgerEntry>,
    opens: Vec<LedgerOpen>,
    last: u64,
    waited: u64,
}

#[derive(Debug)]
struct LedgerEntry {
    number: u64,
    file: FileId,
    access: RestAccess,
    reach: Reach,
    span: Option<Span>,
}

#[derive(Debug)]
struct LedgerOpen {
    number: u64,
    file: FileId,
    open: Open,
    locks: Vec<(LockRange, LockKind)>,
}

impl Ledger {
    fn begin(&mut self, file: FileId, access: RestAccess, reach: Reach, span: Option<Span>) -> u64 {
        self.last += 1;
        self.entries.push(LedgerEntry { number: self.last, file, access, reach, span });
        self.check();
        self.last
    }

    fn open(&mut self, file: FileId, open: Open) -> u64 {
        self.last += 1;
        let mut beside = self.opens.iter().filter(|other| other.file == file);
        assert!(beside.all(|other| !other.open.conflicts_with(open)), "{open:?} and {:?}", self.opens);
        self.opens.push(LedgerOpen { number: self.last, file, open, locks: vec![] });
        self.check();
        self.last
    }

    fn locks(&mut self, open: u64) -> &mut Vec<(LockRange, LockKind)> {
        &mut self.opens.iter_mut().find(|one| one.number == open).unwrap().locks
    }

    fn end(&mut self, number: u64) {
        self.entries.retain(|entry| entry.number != number);
        self.opens.retain(|open| open.number != number);
    }

    /// No REST operation is at work beside an open or a lock that excludes it.
    fn check(&self) {
        for entry in &self.entries {
            for open in &self.opens {
                assert!(!entry.is_excluded_by(open), "{entry:?} beside {open:?}");
            }
        }
    }
}

impl LedgerEntry {
    /// All files are below the one directory that is entered with everything below.
    fn is_excluded_by(&self, other: &LedgerOpen) -> bool {
        let is_locked = |span: Span| is_locked(&other.locks, span);
        let is_same = self.file == other.file;
        self.reach == Reach::Tree
            || is_same && (self.access.conflicts_with(other.open) || self.span.is_some_and(is_locked))
    }
}

fn is_locked(locks: &[(LockRange, LockKind)], span: Span) -> bool {
    let mut held = RangeLocks::default();
    held.lock_all(OpenId(1), locks).expect("held by one handle");
    held.check(Actor::Rest, span.offset, span.length, span.transfer).is_err()
}

fn file(random: &mut Random) -> FileId {
    FileId { share: SHARE, id: 1 + random.below(3) }
}

async fn rest_client(opens: Opens, ledger: Arc<Mutex<Ledger>>, seed: u64) {
    let mut random = Random(seed);
    for _ in 0..ROUNDS {
        let (access, range, transfer) = (random.access(), random.range(), random.transfer());
        let (file, reach, span) = match random.below(16) {
            0 => (FileId { share: SHARE, id: DIRECTORY }, Reach::Tree, None),
            _ => (file(&mut random), Reach::Node, span(range.offset(), range.length(), transfer)),
        };
        let entered = match reach {
            Reach::Tree => opens.enter_tree(file, access).await,
            Reach::Node => opens.enter(file, access, span).await,
        };
        if let Ok(entry) = entered {
            let number = ledger.lock().unwrap().begin(file, access, reach, span);
            tokio::task::yield_now().await;
            ledger.lock().unwrap().end(number);
            drop(entry);
        } else {
            tokio::task::yield_now().await;
        }
    }
}

/// Waits to be woken, or gives up after some looks as a client does that sends CANCEL.
async fn unless_cancelled<T>(
    random: &mut Random,
    ledger: &Mutex<Ledger>,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let looks = 1 + random.below(3);
    for look in 0..looks {
        let polled = std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
        if let Poll::Ready(answer) = polled {
            ledger.lock().unwrap().waited += u64::from(look > 0);
            return Some(answer);
        }
        tokio::task::yield_now().await;
    }
    if random.one_in(4) {
        return None;
    }
    let answer = tokio::time::timeout(Duration::from_secs(60), future).await.expect("it is woken in the end");
    ledger.lock().unwrap().waited += 1;
    Some(answer)
}

fn note_lock(ledger: &Mutex<Ledger>, open: u64, lock: (LockRange, LockKind)) {
    let mut ledger = ledger.lock().unwrap();
    ledger.locks(open).push(lock);
    ledger.check();
}

async fn smb_client(opens: Opens, ledger: Arc<Mutex<Ledger>>, seed: u64) {
    let mut random = Random(seed);
    for _ in 0..ROUNDS {
        let (file, open) = (file(&mut random), random.open());
        let asked = opens.open(below(file, &[DIRECTORY, SHARE], open));
        let Some(Ok(handle)) = unless_cancelled(&mut random, &ledger, asked).await else { continue };
        let number = ledger.lock().unwrap().open(file, open);
        let (range, kind) = (random.range(), random.kind());
        let locked = unless_cancelled(&mut random, &ledger, handle.lock(range, kind)).await;
        if let Some(Ok(())) = locked {
            note_lock(&ledger, number, (range, kind));
            tokio::task::yield_now().await;
            ledger.lock().unwrap().locks(number).clear();
            handle.unlock(range).unwrap();
        }
        ledger.lock().unwrap().end(number);
        assert!(handle.close().is_none());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_operation_is_at_work_beside_an_open_that_excludes_it() {
    let (opens, ledger) = (opens(), Arc::new(Mutex::new(Ledger::default())));
    let mut clients = Vec::new();
    for seed in 0..16 {
        clients.push(tokio::spawn(rest_client(opens.clone(), Arc::clone(&ledger), seed)));
        clients.push(tokio::spawn(smb_client(opens.clone(), Arc::clone(&ledger), seed + 100)));
    }
    for client in clients {
        client.await.unwrap();
    }
    assert!(opens.is_empty());
    let ledger = ledger.lock().unwrap();
    assert!(ledger.waited > 100, "only {} waits of {}", ledger.waited, ledger.last);
    println!("{} guards, {} after a wait", ledger.last, ledger.waited);
}
