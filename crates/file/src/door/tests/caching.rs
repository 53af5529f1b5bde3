//! Leases of SMB clients beside REST operations and other clients. Time stands still unless everything waits, so a client that
//! must not be waited for is told apart from one that must.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use ::bytes::Bytes;
use concurrency::caching::{AcknowledgementRefusal, Caching};
use engine::memory::MemoryEngine;
use engine::{BoxFuture, Engine, EngineError, Query, Wrapper};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::beside_rest::{Ask, CREATE, GET, METADATA, PROPERTIES, PUT, RANGES, REMOVE, SET, sent};
use super::*;
use crate::FileError;
use crate::opens::{BREAK_PATIENCE, GrantedCaching, LeaseName};
use crate::testing::{Script, header};

const NONE: Caching = Caching::NONE;
const R: Caching = Caching::READ;
const RH: Caching = Caching::READ_HANDLE;
const RW: Caching = Caching::READ_WRITE;
const RWH: Caching = Caching::ALL;

fn name(client: u8) -> LeaseName {
    LeaseName { account: 1, client: client.into(), key: [client; 16] }
}

/// `dir\file`, opened by a client with a lease.
fn leased(client: u8, state: Caching) -> (CreateRequest, Arc<Session>) {
    let session = Arc::new(Session::default());
    let caching = CachingRequest::Lease { name: name(client), state, v2: None };
    (CreateRequest { caching, owner: session.clone(), ..wish("dir\\file") }, session)
}

fn state_of(file: &OpenFile) -> Caching {
    match file.caching() {
        GrantedCaching::Lease { state, .. } => state,
        GrantedCaching::None | GrantedCaching::Oplock(_) => NONE,
    }
}

fn breaks(session: &Session) -> Vec<Caching> {
    let broken = session.broken.lock().unwrap();
    let to = |broken: &Broken| match broken {
        Broken::Lease { notice, .. } => notice.to,
        Broken::Oplock { to, .. } => to.caching(),
    };
    broken.iter().map(to).collect()
}

/// Waits until the client is told of a break.
async fn told(session: &Session) -> Caching {
    loop {
        match breaks(session).last() {
            Some(to) => return *to,
            None => tokio::task::yield_now().await,
        }
    }
}

/// What an operation makes of a lease, and whether it waits.
type Effects = [Option<(Caching, bool)>; 3];

const READS: Effects = [Some((RH, true)), None, Some((R, true))];
const WRITES: Effects = [Some((NONE, true)), Some((NONE, false)), Some((NONE, true))];
const DELETES: Effects = [Some((RW, true)), Some((R, true)), None];
const TABLE: [(Ask, Effects); 8] = [
    (GET, READS),
    (RANGES, READS),
    (PROPERTIES, READS),
    (PUT, WRITES),
    (SET, WRITES),
    (METADATA, WRITES),
    (CREATE, WRITES),
    (REMOVE, DELETES),
];

/// The published table, with a client that is silent, one that acknowledges and one that closes.
#[tokio::test(start_paused = true)]
async fn the_table_of_leases_and_rest_operations() {
    for (ask, effects) in TABLE {
        for (state, effect) in [RWH, RH, RW].into_iter().zip(effects) {
            let what = format!("{} {} beside {state:?}", ask.0, ask.1);
            let in_use = if ask == REMOVE { Err(FileError::SharingViolation) } else { Ok(()) };
            let waits = effect.is_some_and(|(_, waits)| waits);

            let (bench, tree) = bench().await;
            let (request, session) = leased(1, state);
            let file = open(&tree, request).await;
            assert_eq!(state_of(&file), state);
            let late = if waits { Err(FileError::ClientCacheFlushDelay) } else { in_use.clone() };
            assert_eq!(sent(&bench, ask).await, late, "{what}, silent");
            assert_eq!(breaks(&session), Vec::from_iter(effect.map(|(to, _)| to)), "{what}");
            done(&bench, [file]).await;

            if !waits {
                continue;
            }
            let (bench, tree) = super::bench().await;
            let (request, session) = leased(1, state);
            let file = open(&tree, request).await;
            let began = Instant::now();
            let acknowledging = async {
                let to = told(&session).await;
                tree.door.acknowledge_lease(name(1), to).unwrap();
            };
            let (result, ()) = tokio::join!(sent(&bench, ask), acknowledging);
            assert_eq!((result, began.elapsed().as_secs()), (in_use, 0), "{what}, acknowledged");
            assert_eq!(state_of(&file), effect.unwrap().0, "{what}");
            done(&bench, [file]).await;

            let (bench, tree) = super::bench().await;
            let (request, session) = leased(1, state);
            let file = open(&tree, request).await;
            let closing = async {
                told(&session).await;
                file.close().await.unwrap();
            };
            let (result, ()) = tokio::join!(sent(&bench, ask), closing);
            assert_eq!((result, began.elapsed().as_secs()), (Ok(()), 0), "{what}, closed");
            done(&bench, []).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn listing_breaks_nothing_and_a_lease_is_looked_at_beside_caches() {
    let (bench, tree) = bench().await;
    let (request, session) = leased(1, RWH);
    let file = open(&tree, request).await;
    assert_eq!(bench.names("dir").await, ["file"]);
    let broken = bench.refused("PUT", "share/dir/file?comp=lease", &[("x-ms-lease-action", "break")]).await;
    assert!(!matches!(broken, FileError::ClientCacheFlushDelay));
    assert!(breaks(&session).is_empty());
    done(&bench, [file]).await;
}

#[tokio::test(start_paused = true)]
async fn rest_reads_what_a_client_writes_back_first() {
    let (bench, tree) = bench().await;
    let (request, session) = leased(1, RWH);
    let file = open(&tree, request).await;
    let flushing = async {
        let to = told(&session).await;
        file.write(0, Bytes::from_static(b"cached bytes")).await.unwrap();
        tree.door.acknowledge_lease(name(1), to).unwrap();
    };
    let (bytes, ()) = tokio::join!(bench.read("dir/file"), flushing);
    assert_eq!(bytes, b"cached bytes");
    done(&bench, [file]).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_as_long_as_its_client_and_no_longer_than_30_seconds() {
    for (url, seconds) in [("share/dir/file", 29), ("share/dir/file?timeout=5", 4), ("share/dir/file?timeout=90", 29)] {
        let (bench, tree) = bench().await;
        let file = open(&tree, leased(1, RWH).0).await;
        let began = Instant::now();
        assert_eq!(bench.refused("GET", url, &[]).await, FileError::ClientCacheFlushDelay);
        assert_eq!(began.elapsed().as_secs(), seconds, "{url}");
        // Together the requests wait until the client's time is over.
        let mut refused = 1;
        while sent(&bench, GET).await.is_err() {
            refused += 1;
            assert!(refused < 3);
        }
        assert_eq!((began.elapsed(), state_of(&file)), (BREAK_PATIENCE, NONE));
        done(&bench, [file]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_clients_of_one_file() {
    let (bench, tree) = bench().await;
    let (request, session) = leased(1, RWH);
    let first = open(&tree, request).await;
    let giving = async {
        assert_eq!(told(&session).await, RH);
        first.write(0, Bytes::from_static(b"FLUSHED")).await.unwrap();
        tree.door.acknowledge_lease(name(1), RH).unwrap();
    };
    let (request, other) = leased(2, RWH);
    let (second, ()) = tokio::join!(open(&tree, request), giving);
    assert_eq!((state_of(&first), state_of(&second)), (RH, RH));
    assert_eq!(second.read(0, 100).await.unwrap(), "FLUSHED789");
    second.write(0, Bytes::from_static(b"x")).await.unwrap();
    assert_eq!((breaks(&session), breaks(&other)), (vec![RH, NONE], vec![]));
    second.set_end_of_file(3).await.unwrap();
    tree.door.acknowledge_lease(name(1), NONE).unwrap();
    assert_eq!(first.read(0, 100).await.unwrap(), "xLU");
    first.set_end_of_file(2).await.unwrap();
    assert_eq!(breaks(&other), [NONE]);
    done(&bench, [first, second]).await;
}

/// A client that never answers keeps those waiting who need its file, for 35 seconds, and nobody else.
#[tokio::test(start_paused = true)]
async fn nothing_is_held_while_a_client_is_waited_for() {
    let (bench, tree) = bench().await;
    let (request, session) = leased(1, RWH);
    let first = open(&tree, request).await;
    let began = Instant::now();
    let others = async {
        told(&session).await;
        // The same name, which needs the turn there.
        let look = open(&tree, with("dir\\file", LOOK, ALL)).await;
        // The same directory, and the same share.
        bench.create("dir/other", 1).await;
        bench.write("dir/other", 0, b"1").await;
        first.write(0, Bytes::from_static(b"mine")).await.unwrap();
        first.query().await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 0);
        look
    };
    let renaming = async {
        let refused = bench.rename("dir/file", "dir/renamed", &[]).await;
        assert_eq!(crate::testing::refusal(refused), FileError::ClientCacheFlushDelay);
    };
    let (second, look, ()) = tokio::join!(open(&tree, wish("dir\\file")), others, renaming);
    assert_eq!((began.elapsed(), state_of(&first)), (BREAK_PATIENCE, NONE));
    let late = tree.door.acknowledge_lease(name(1), RH);
    assert_eq!(late, Err(AcknowledgementRefusal::NotBreaking));
    done(&bench, [first, second, look]).await;
}

#[tokio::test(start_paused = true)]
async fn an_open_that_is_given_up_while_it_waits_leaves_nothing_behind() {
    let (bench, tree) = bench().await;
    let first = open(&tree, leased(1, RWH).0).await;
    let waiting = tokio::time::timeout(std::time::Duration::from_secs(1), tree.open(leased(2, RWH).0)).await;
    assert!(waiting.is_err());
    first.close().await.unwrap();
    done(&bench, []).await;
}

#[tokio::test(start_paused = true)]
async fn renames_and_deletions_have_kept_handles_closed_first() {
    for rename in [true, false] {
        let (bench, tree) = bench().await;
        let (request, session) = leased(1, RH);
        let kept = open(&tree, request).await;
        let file = open(&tree, wish("dir\\file")).await;
        assert!(breaks(&session).is_empty());
        let closing = async {
            assert_eq!(told(&session).await, R);
            kept.close().await.unwrap();
        };
        let changing = async {
            match rename {
                true => file.rename("dir\\moved", false).await,
                false => file.set_delete_pending(true).await,
            }
        };
        let began = Instant::now();
        let (changed, ()) = tokio::join!(changing, closing);
        assert_eq!((changed, began.elapsed().as_secs()), (Ok(()), 0));
        done(&bench, [file]).await;
        assert_eq!(bench.names("dir").await, if rename { vec!["moved"] } else { vec![] });
    }
}

#[tokio::test(start_paused = true)]
async fn a_rename_over_a_file_has_its_kept_handle_closed_first() {
    let (bench, tree) = bench().await;
    bench.create("new", 1).await;
    let (request, session) = leased(1, RWH);
    let kept = open(&tree, request).await;
    let file = open(&tree, wish("new")).await;
    let closing = async {
        assert_eq!(told(&session).await, RW);
        kept.close().await.unwrap();
    };
    let (renamed, ()) = tokio::join!(file.rename("dir\\file", true), closing);
    assert_eq!(renamed, Ok(()));
    done(&bench, [file]).await;
}

#[tokio::test(start_paused = true)]
async fn a_key_of_another_file_is_refused_before_anything_is_created() {
    let (bench, tree) = bench().await;
    let first = open(&tree, leased(1, RWH).0).await;
    let elsewhere = CreateRequest { path: "new".to_owned(), disposition: Disposition::Create, ..leased(1, RWH).0 };
    assert_eq!(refused(&tree, elsewhere).await, Refused::InvalidParameter);
    assert_eq!(bench.names("").await, ["dir"]);
    let directory = CreateRequest { path: "dir".to_owned(), ..leased(2, RWH).0 };
    let directory = open(&tree, directory).await;
    assert_eq!(directory.caching(), GrantedCaching::None);
    done(&bench, [first, directory]).await;
}

/// A copy inside of the server changes bytes without writing them.
#[tokio::test(start_paused = true)]
async fn a_copy_that_refers_to_its_source_breaks_read_caches() {
    let (bench, tree) = bench().await;
    let source = open(&tree, CreateRequest { disposition: Disposition::Create, ..wish("dir\\source") }).await;
    source.write(0, vec![7; 1 << 20].into()).await.unwrap();
    let (request, session) = leased(1, R);
    let cached = open(&tree, request).await;
    assert_eq!(state_of(&cached), R);
    let target = open(&tree, wish("dir\\file")).await;
    let copied = [Chunk { from: 0, to: Some(0), length: 1 << 20 }];
    let (_, result) = target.copy_chunks(&source, &copied, CopyAccess::ReadAndWrite).await;
    result.unwrap();
    assert_eq!(breaks(&session), [NONE]);
    done(&bench, [source, cached, target]).await;
}

/// An engine that answers one of the next reads late: what it has read may have changed since.
#[derive(Debug)]
struct LateReads {
    inner: Arc<MemoryEngine>,
    /// Reads until the late one; none is late at 0.
    until: AtomicUsize,
    answered: Semaphore,
}

impl Wrapper for LateReads {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    fn query(&self, query: Box<dyn Query>) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            let counted = self.until.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |until| until.checked_sub(1));
            let result = self.inner.query(query).await;
            if counted == Ok(1) {
                self.answered.acquire().await.unwrap().forget();
            }
            result
        })
    }
}

/// A file that changes between the look of a CREATE and its grant: the client is told of the file as it is when it begins to cache it.
#[tokio::test]
async fn a_cache_begins_with_the_file_as_it_is_then() {
    let engine = Arc::new(MemoryEngine::default());
    let late = Arc::new(LateReads { inner: engine.clone(), until: AtomicUsize::new(0), answered: Semaphore::new(0) });
    let bench = Bench::over(late.clone(), engine);
    bench.call("PUT", "share?restype=share", &[], b"").await.unwrap();
    bench.mkdir("dir").await;
    let tree = tree(&bench).await;
    let writer = open(&tree, created("dir\\file")).await;
    // The look under the turn at the name comes second.
    late.until.store(2, Ordering::SeqCst);
    let (request, session) = leased(1, R);
    let mut opening = Box::pin(tree.open(request));
    assert!(opening.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(late.until.load(Ordering::SeqCst), 0);
    writer.write(0, Bytes::from_static(b"acknowledged")).await.unwrap();
    late.answered.add_permits(1);
    let opened = opening.await.unwrap();
    assert_eq!((state_of(&opened.file), opened.info.length), (R, 12));
    assert!(breaks(&session).is_empty());
    done(&bench, [opened.file, writer]).await;
}

/// What a copy in the background writes breaks no cache, so there is none.
#[tokio::test]
async fn a_file_that_a_copy_fills_is_not_cached() {
    let (bench, elsewhere) = Bench::with_elsewhere().await;
    elsewhere.0.lock().unwrap().insert("http://a/x", Script::of(b"from elsewhere"));
    bench.mkdir("dir").await;
    let tree = tree(&bench).await;
    bench.call("PUT", "share/dir/file", &[("x-ms-copy-source", "http://a/x")], b"").await.unwrap();
    let file = open(&tree, leased(1, RH).0).await;
    assert_eq!(header(&bench.file("dir/file").await, "x-ms-copy-status"), Some("pending"));
    assert_eq!(file.caching(), GrantedCaching::None);
    file.close().await.unwrap();
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(header(&bench.file("dir/file").await, "x-ms-copy-status"), Some("success"));
    let file = open(&tree, leased(1, RH).0).await;
    assert_eq!(state_of(&file), RH);
    done(&bench, [file]).await;
}
