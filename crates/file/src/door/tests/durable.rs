use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use concurrency::caching::OplockLevel;
use concurrency::range_lock::LockKind;
use engine::loads::{Budget, NodeState, Tally};
use engine::memory::MemoryEngine;
use engine::{BoxFuture, ContentId, ContentWriter, Decision, Engine, EngineError, Staged, Wrapper};

use super::*;
use crate::opens::{NameKey, TURNS_PER_NAME_MAX};
use crate::testing::header;
use crate::tests::dropped::{Waiting, bench as waiting_bench};

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Begins something and drops it once its commit waits.
fn begin_and_drop<F: Future>(waiting: &Waiting, future: F) {
    *waiting.decisions.lock().unwrap() = Some(Vec::new());
    let mut future = Box::pin(future);
    assert!(poll(future.as_mut()).is_pending());
    assert_eq!(waiting.decisions.lock().unwrap().as_ref().map(Vec::len), Some(1));
}

/// What was asked through a handle that is gone is done while the handle still keeps others out.
#[tokio::test]
async fn a_handle_stays_until_its_commits_have_ended() {
    let (bench, waiting) = waiting_bench().await;
    let tree = tree(&bench).await;
    let file = open(&tree, with("dir\\file", WRITE, 0)).await;
    begin_and_drop(&waiting, file.write(0, "late".into()));
    drop(file);
    assert_eq!(refused(&tree, with("dir\\file", READ, ALL)).await, Refused::SharingViolation);
    waiting.run().await;
    let file = open(&tree, with("dir\\file", READ, ALL)).await;
    assert_eq!(file.read(0, 4).await.unwrap(), "late");
    done(&bench, [file]).await;
}

#[tokio::test]
async fn close_and_flush_wait_for_what_was_begun() {
    let (bench, waiting) = waiting_bench().await;
    let tree = tree(&bench).await;
    let file = open(&tree, wish("dir\\file")).await;
    begin_and_drop(&waiting, file.write(0, "late".into()));
    {
        let mut flush = pin!(file.flush());
        assert!(poll(flush.as_mut()).is_pending());
        waiting.run().await;
        assert_eq!(poll(flush.as_mut()), Poll::Ready(Ok(())));
    }
    begin_and_drop(&waiting, file.set_end_of_file(4));
    {
        let mut close = pin!(file.close());
        assert!(poll(close.as_mut()).is_pending());
        waiting.run().await;
        assert_eq!(poll(close.as_mut()), Poll::Ready(Ok(())));
    }
    assert!(bench.opens.is_empty());
    assert_eq!(bench.read("dir/file").await, b"late");
}

/// A write of a lost connection is not done after the client has its handle again.
#[tokio::test]
async fn a_handle_is_given_back_when_what_was_begun_has_ended() {
    let (bench, waiting) = waiting_bench().await;
    let tree = tree(&bench).await;
    let caching = CachingRequest::Oplock(OplockLevel::Batch);
    let file = open(&tree, CreateRequest { caching, ..wish("dir\\file") }).await;
    begin_and_drop(&waiting, file.write(0, "late".into()));
    assert!(file.disconnect(Arc::new(Session::default())));
    {
        let mut reconnect = pin!(file.reconnect(wish("").client, Arc::new(Session::default())));
        assert!(poll(reconnect.as_mut()).is_pending());
        waiting.run().await;
        reconnect.await.unwrap();
    }
    assert_eq!(file.read(0, 4).await.unwrap(), "late");
    done(&bench, [file]).await;
}

/// A directory is marked for deletion only if nothing is on its way into it.
#[tokio::test]
async fn a_disposition_waits_for_what_comes_into_the_directory() {
    let rename = [("x-ms-file-rename-source", "http://127.0.0.1:10003/acct/share/other")];
    let create = [("x-ms-type", "file"), ("x-ms-content-length", "0")];
    for how in 0..4 {
        let (bench, waiting) = waiting_bench().await;
        let tree = tree(&bench).await;
        bench.mkdir("empty").await;
        bench.create("other", 0).await;
        let other = open(&tree, wish("other")).await;
        match how {
            0 => begin_and_drop(&waiting, tree.open(created("empty\\new"))),
            1 => begin_and_drop(&waiting, other.rename("empty\\new", false)),
            2 => begin_and_drop(&waiting, bench.call("PUT", "share/empty/new", &create, b"")),
            _ => begin_and_drop(&waiting, bench.call("PUT", "share/empty/new?comp=rename", &rename, b"")),
        }
        let dir = open(&tree, wish("empty")).await;
        {
            let mut deleting = pin!(dir.set_delete_pending(true));
            assert!(poll(deleting.as_mut()).is_pending(), "{how}");
            // It can be opened meanwhile, but nothing else comes into it.
            open(&tree, wish("empty")).await.close().await.unwrap();
            assert_eq!(refused(&tree, created("empty\\more")).await, Refused::DeletePending, "{how}");
            waiting.run().await;
            assert_eq!(deleting.await, Err(Refused::DirectoryNotEmpty), "{how}");
        }
        // And nothing is left of the attempt.
        let more = open(&tree, created("empty\\more")).await;
        done(&bench, [dir, other, more]).await;
    }
}

/// Whoever locks bytes, or opens the file after its handle was closed by force, waits for what is being written.
#[tokio::test]
async fn locks_and_opens_wait_for_writes_under_way() {
    let (bench, waiting) = waiting_bench().await;
    let tree = tree(&bench).await;
    let (writer, locker) = (open(&tree, wish("dir\\file")).await, open(&tree, wish("dir\\file")).await);
    begin_and_drop(&waiting, writer.write(0, "late".into()));
    let lock = |offset| [Lock { offset, length: 4, kind: LockKind::Exclusive }];
    {
        let (inside, beside) = (lock(2), lock(6));
        locker.lock(&beside).await.unwrap();
        let mut locked = pin!(locker.lock(&inside));
        assert!(poll(locked.as_mut()).is_pending());
        assert_eq!(writer.write(5, "x".into()).await, Err(Refused::FileLockConflict));
        assert_eq!(writer.set_zero_data(5, 6).await, Err(Refused::FileLockConflict));
        waiting.run().await;
        assert_eq!(poll(locked.as_mut()), Poll::Ready(Ok(())));
    }
    assert_eq!(locker.read(0, 4).await.unwrap(), "late");
    locker.close().await.unwrap();
    let basic = BasicInfo { attributes: attributes::HIDDEN, ..BasicInfo::default() };
    for change in 0..4 {
        let writer = open(&tree, wish("dir\\file")).await;
        match change {
            0 => begin_and_drop(&waiting, writer.write(0, "late".into())),
            1 => begin_and_drop(&waiting, writer.set_end_of_file(8)),
            2 => begin_and_drop(&waiting, writer.set_zero_data(0, 4)),
            _ => begin_and_drop(&waiting, writer.set_basic(basic)),
        }
        let headers = [("x-ms-handle-id", "*")];
        bench.call("PUT", "share/dir/file?comp=forceclosehandles", &headers, b"").await.unwrap();
        let mut alone = pin!(tree.open(with("dir\\file", READ, 0)));
        assert!(poll(alone.as_mut()).is_pending(), "{change}");
        waiting.run().await;
        alone.await.unwrap().file.close().await.unwrap();
    }
    drop(writer);
    assert!(bench.opens.is_empty());
}

/// An engine that stores bytes when it is told to.
#[derive(Debug)]
struct SlowlyStoring {
    inner: Arc<MemoryEngine>,
    stored: Arc<tokio::sync::Semaphore>,
}

struct SlowWriter {
    inner: Box<dyn ContentWriter>,
    stored: Arc<tokio::sync::Semaphore>,
}

impl ContentWriter for SlowWriter {
    fn id(&self) -> ContentId {
        self.inner.id()
    }

    fn write(&mut self, bytes: ::bytes::Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        self.inner.write(bytes)
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<Staged, EngineError>> {
        Box::pin(async move {
            drop(self.stored.acquire().await);
            self.inner.finish().await
        })
    }
}

impl Wrapper for SlowlyStoring {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    fn writer(&self, length: Option<u64>) -> Box<dyn ContentWriter> {
        Box::new(SlowWriter { inner: self.inner.writer(length), stored: Arc::clone(&self.stored) })
    }
}

/// Flush and close wait for a write that came before them, also while its bytes are stored.
#[tokio::test]
async fn flush_and_close_wait_for_bytes_that_are_stored() {
    let engine = Arc::new(MemoryEngine::default());
    let stored = Arc::new(tokio::sync::Semaphore::new(0));
    let slow = Arc::new(SlowlyStoring { inner: Arc::clone(&engine), stored: Arc::clone(&stored) });
    let bench = Bench::over(slow, engine);
    bench.call("PUT", "share?restype=share", &[], b"").await.unwrap();
    let tree = tree(&bench).await;
    let file = open(&tree, created("file")).await;
    {
        let (mut write, mut flush) = (pin!(file.write(0, "bytes".into())), pin!(file.flush()));
        let mut close = pin!(file.close());
        assert!(poll(write.as_mut()).is_pending());
        assert!(poll(flush.as_mut()).is_pending() && poll(close.as_mut()).is_pending());
        stored.add_permits(1);
        assert_eq!(write.await, Ok(()));
        assert_eq!((flush.await, close.await), (Ok(()), Ok(())));
    }
    assert_eq!(bench.read("file").await, b"bytes");
    drop(file);
    assert!(bench.opens.is_empty());
}

/// A rename that nobody waits for any more takes the handles along all the same.
#[tokio::test]
async fn a_rename_that_is_dropped() {
    let (bench, waiting) = waiting_bench().await;
    let tree = tree(&bench).await;
    let (file, other) = (open(&tree, wish("dir\\file")).await, open(&tree, wish("dir\\file")).await);
    begin_and_drop(&waiting, file.rename("moved", false));
    waiting.run().await;
    assert_eq!(other.query().await.unwrap().path, "moved");
    done(&bench, [file, other]).await;
}

/// A deletion at close that is dropped keeps the file pending until it is gone.
#[tokio::test]
async fn a_close_that_is_dropped() {
    let (bench, waiting) = waiting_bench().await;
    let tree = tree(&bench).await;
    let file = open(&tree, wish("dir\\file")).await;
    file.set_delete_pending(true).await.unwrap();
    begin_and_drop(&waiting, file.close());
    {
        // The turn at the name is taken until then.
        let mut again = pin!(tree.open(wish("dir\\file")));
        assert!(poll(again.as_mut()).is_pending());
        waiting.run().await;
        assert_eq!(again.await.map(|opened| opened.action).unwrap_err(), Refused::NotFound);
    }
    drop(file);
    // Nobody has heard whether it was committed, so it is looked at once more.
    tree.door.delete_abandoned().await.unwrap();
    assert!(bench.opens.is_empty() && !tree.door.has_abandoned());
    bench.check_rows().await;
}

/// Close waits for what is under way, and what it deletes waits for the turn at the name. A rename must not have the turn and wait
/// for close.
#[tokio::test]
async fn a_rename_and_a_close_do_not_wait_for_each_other() {
    for closes_first in [true, false] {
        let (bench, waiting) = waiting_bench().await;
        let tree = tree(&bench).await;
        let on_close = CreateRequest { options: options::DELETE_ON_CLOSE, ..wish("dir\\file") };
        let file = open(&tree, on_close).await;
        begin_and_drop(&waiting, file.write(0, "late".into()));
        {
            let (mut close, mut rename) = (pin!(file.close()), Box::pin(file.rename("moved", false)));
            if closes_first {
                assert!(poll(close.as_mut()).is_pending());
            }
            assert!(poll(rename.as_mut()).is_pending());
            if !closes_first {
                assert!(poll(close.as_mut()).is_pending());
            }
            waiting.run().await;
            if closes_first {
                assert_eq!(poll(close.as_mut()), Poll::Ready(Ok(())));
                assert_eq!(poll(rename.as_mut()), Poll::Ready(Err(Refused::FileClosed)));
            } else {
                // This engine never tells the rename that it was committed.
                drop(rename);
                assert_eq!(poll(close.as_mut()), Poll::Ready(Ok(())));
            }
        }
        drop(file);
        assert!(bench.opens.is_empty());
        assert_eq!(refused(&tree, wish("dir\\file")).await, Refused::NotFound);
        assert_eq!(refused(&tree, wish("moved")).await, Refused::NotFound);
        bench.check_rows().await;
    }
}

/// What is to be deleted at close is deleted, also if the close is dropped before its turn at the name has come.
#[tokio::test]
async fn a_close_that_is_dropped_while_it_waits_for_its_turn() {
    let (bench, _) = waiting_bench().await;
    let tree = tree(&bench).await;
    let file = open(&tree, wish("dir\\file")).await;
    file.set_delete_pending(true).await.unwrap();
    let directory = file.live().unwrap().place().unwrap().above[0];
    let name = NameKey { directory, folded: "FILE".into() };
    let turn = bench.opens.turn(name.clone()).await.unwrap();
    // However many wait for the name.
    let mut others: Vec<_> = (1..TURNS_PER_NAME_MAX).map(|_| Box::pin(bench.opens.turn(name.clone()))).collect();
    assert!(others.iter_mut().all(|other| poll(other.as_mut()).is_pending()));
    {
        let mut close = pin!(file.close());
        assert!(poll(close.as_mut()).is_pending());
    }
    drop((file, turn, others));
    assert!(tree.door.has_abandoned());
    assert_eq!(refused(&tree, wish("dir\\file")).await, Refused::DeletePending);
    tree.door.delete_abandoned().await.unwrap();
    assert_eq!(refused(&tree, wish("dir\\file")).await, Refused::NotFound);
    assert!(bench.opens.is_empty());
    bench.check_rows().await;
}

/// Who waits for deletions in the background waits for those that have begun, too, also when nobody waits for their commit.
#[tokio::test]
async fn a_deletion_that_is_under_way_counts() {
    let (bench, waiting) = waiting_bench().await;
    let tree = tree(&bench).await;
    let file = open(&tree, wish("dir\\file")).await;
    file.set_delete_pending(true).await.unwrap();
    drop(file);
    assert!(tree.door.has_abandoned());
    begin_and_drop(&waiting, async {
        let mut deleting = pin!(tree.door.delete_abandoned());
        std::future::poll_fn(|context| {
            assert!(deleting.as_mut().poll(context).is_pending());
            assert!(tree.door.is_deleting());
            Poll::<()>::Pending
        })
        .await;
    });
    assert!(tree.door.is_deleting());
    waiting.run().await;
    assert!(!tree.door.is_deleting() && tree.door.has_abandoned(), "nobody has heard of the commit: one more attempt");
    tree.door.wake_all_abandoned();
    tree.door.delete_abandoned().await.unwrap();
    assert!(bench.opens.is_empty() && !tree.door.has_abandoned());
    bench.check_rows().await;
}

/// An engine that takes no commits while it is told so.
#[derive(Debug)]
struct Failing {
    inner: Arc<MemoryEngine>,
    error: Mutex<Option<EngineError>>,
}

impl Wrapper for Failing {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        match self.error.lock().unwrap().clone() {
            None => self.inner.commit(decision),
            Some(error) => Box::pin(async move { Err(error) }),
        }
    }
}

async fn failing_bench() -> (Bench, Arc<Failing>) {
    let engine = Arc::new(MemoryEngine::default());
    let failing = Arc::new(Failing { inner: Arc::clone(&engine), error: Mutex::default() });
    let bench = Bench::over(Arc::clone(&failing) as Arc<dyn Engine>, engine);
    bench.call("PUT", "share?restype=share", &[], b"").await.unwrap();
    (bench, failing)
}

/// A deletion at close that fails for now is tried again until it is done; one that can never work is given up.
#[tokio::test]
async fn a_deletion_that_the_engine_refuses() {
    let (bench, failing) = failing_bench().await;
    let tree = tree(&bench).await;
    let unavailable = EngineError::Unavailable("no connection".to_owned());
    for error in [EngineError::Busy, unavailable, EngineError::Full, EngineError::Corrupt("row".to_owned())] {
        let is_passing = !matches!(error, EngineError::Corrupt(_));
        let file = open(&tree, CreateRequest { disposition: Disposition::OpenIf, ..wish("file") }).await;
        file.set_delete_pending(true).await.unwrap();
        *failing.error.lock().unwrap() = Some(error.clone());
        assert_eq!(file.close().await, Err(Refused::Failed(error.clone())));
        assert_eq!(tree.door.has_abandoned(), is_passing);
        if is_passing {
            assert_eq!(refused(&tree, wish("file")).await, Refused::DeletePending);
            let mut now = Instant::now();
            for (attempt, seconds) in [(1, 1), (2, 2), (3, 4)] {
                let not_deleted = tree.door.delete_abandoned().await.unwrap_err();
                let rest = Duration::from_secs(seconds);
                assert_eq!((not_deleted.path.as_str(), not_deleted.attempts), ("file", attempt));
                assert_eq!(not_deleted.tried_again_after, Some(rest));
                // It rests: until then nothing is tried.
                tree.door.wake_abandoned(now);
                tree.door.wake_abandoned(now + rest - Duration::from_millis(1));
                assert!(poll(pin!(tree.door.delete_abandoned()).as_mut()).is_pending());
                assert!(tree.door.has_abandoned() && !tree.door.is_deleting());
                now += rest;
                tree.door.wake_abandoned(now);
            }
            *failing.error.lock().unwrap() = None;
            tree.door.delete_abandoned().await.unwrap();
            assert_eq!(refused(&tree, wish("file")).await, Refused::NotFound);
        } else {
            *failing.error.lock().unwrap() = None;
            drop(open(&tree, wish("file")).await);
        }
        assert!(bench.opens.is_empty());
    }
    bench.check_rows().await;
}

/// The same of handles that are closed by force, whose files are many: one that fails is counted and hinders no other, and a
/// client that goes away loses none.
#[tokio::test]
async fn deletions_of_a_forced_close() {
    const FILES: [&str; 3] = ["a", "b", "c"];
    const CLOSE: (&str, &[(&str, &str)]) =
        ("share?restype=directory&comp=forceclosehandles", &[("x-ms-handle-id", "*"), ("x-ms-recursive", "true")]);
    let (bench, failing) = failing_bench().await;
    let tree = tree(&bench).await;
    let on_close = CreateRequest { options: options::DELETE_ON_CLOSE, ..created("") };
    let mut files = Vec::new();
    for path in FILES {
        files.push(open(&tree, CreateRequest { path: path.to_owned(), ..on_close.clone() }).await);
    }
    *failing.error.lock().unwrap() = Some(EngineError::Busy);
    let answer = bench.call("PUT", CLOSE.0, CLOSE.1, b"").await.unwrap();
    assert_eq!(header(&answer, "x-ms-number-of-handles-closed"), Some("0"));
    assert_eq!(header(&answer, "x-ms-number-of-handles-failed"), Some("3"));
    *failing.error.lock().unwrap() = None;
    for _ in FILES {
        tree.door.delete_abandoned().await.unwrap();
    }
    assert!(bench.opens.is_empty());
    assert_eq!(bench.names("").await, [""; 0]);

    let (bench, waiting) = waiting_bench().await;
    let tree = super::tree(&bench).await;
    for path in FILES {
        files.push(open(&tree, CreateRequest { path: path.to_owned(), ..on_close.clone() }).await);
    }
    begin_and_drop(&waiting, bench.call("PUT", CLOSE.0, CLOSE.1, b""));
    waiting.run().await;
    while tree.door.has_abandoned() {
        tree.door.delete_abandoned().await.unwrap();
    }
    assert!(bench.opens.is_empty());
    assert_eq!(bench.names("").await, ["dir"]);
    bench.check_rows().await;
}

/// A creation that is dropped keeps the name until it has ended.
#[tokio::test]
async fn a_creation_that_is_dropped() {
    let (bench, waiting) = waiting_bench().await;
    let tree = tree(&bench).await;
    begin_and_drop(&waiting, tree.open(created("dir\\new")));
    {
        let mut again = pin!(tree.open(created("dir\\new")));
        assert!(poll(again.as_mut()).is_pending());
        waiting.run().await;
        assert_eq!(again.await.map(|opened| opened.action).unwrap_err(), Refused::Collision);
    }
    let overwrite = CreateRequest { disposition: Disposition::Overwrite, ..with("dir\\file", READ, 0) };
    begin_and_drop(&waiting, tree.open(overwrite));
    {
        let mut again = pin!(tree.open(wish("dir\\file")));
        assert!(poll(again.as_mut()).is_pending());
        waiting.run().await;
        let opened = again.await.unwrap();
        assert_eq!(opened.info.length, 0);
        done(&bench, [opened.file]).await;
    }
}

/// Whatever is done through handles, share snapshots stay as they were.
#[tokio::test]
async fn snapshots_stay_as_they_were() {
    let (bench, tree) = bench().await;
    let mut random = 4_711_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let names = ["a", "b", "dir\\c", "dir\\file"];
    let mut snapshots: Vec<(String, Vec<Option<Vec<u8>>>)> = Vec::new();
    let content = async |query: &str| {
        let mut all = Vec::new();
        for name in names {
            let url = format!("share/{}{query}", name.replace('\\', "/"));
            let got = bench.call("GET", &url, &[], b"").await;
            all.push(match got {
                Ok(answer) => Some(crate::testing::bytes(answer).await),
                Err(_) => None,
            });
        }
        all
    };
    for round in 0..120 {
        if round % 20 == 5 {
            bench.advance(2).await;
            let before = content("").await;
            snapshots.push((bench.snapshot().await, before));
        }
        let name = names[next(4) as usize];
        let disposition = if next(5) == 0 { Disposition::OverwriteIf } else { Disposition::OpenIf };
        let file = open(&tree, CreateRequest { disposition, ..wish(name) }).await;
        match next(7) {
            0 => file.set_end_of_file(next(3_000)).await.unwrap(),
            1 => file.set_zero_data(next(500), 500 + next(2_000)).await.unwrap(),
            2 => drop(file.rename(names[next(4) as usize], next(2) == 0).await),
            3 => file.set_delete_pending(true).await.unwrap(),
            4 => {
                let hidden = BasicInfo { attributes: attributes::ARCHIVE, ..BasicInfo::default() };
                file.set_basic(hidden).await.unwrap();
            }
            _ => file.write(next(2_000), vec![round as u8; 1 + next(1_500) as usize].into()).await.unwrap(),
        }
        file.close().await.unwrap();
        if round % 10 == 9 {
            for (time, before) in &snapshots {
                assert!(content(&format!("?sharesnapshot={time}")).await == *before, "round {round}, {time}");
            }
            bench.check_rows().await;
        }
    }
    for (time, _) in snapshots {
        bench.drop_snapshot(&time).await;
        bench.sweep().await;
        bench.check_rows().await;
    }
    assert_eq!(bench.past_rows().await, 0);
}

/// Round trips on an engine that must fetch its rows: on a node that has just started, and on one that knows its way.
async fn keeps_its_budget(state: NodeState) {
    let engine = Arc::new(MemoryEngine::default());
    let mut tally = Tally::new(engine.clone(), state);
    let bench = Bench::over(tally.engine.clone(), engine);
    bench.call("PUT", "share?restype=share", &[], b"").await.unwrap();
    for path in ["a", "a/b", "a/b/c"] {
        bench.mkdir(path).await;
    }
    macro_rules! within {
        ($name:literal, $budget:expr, $ask:expr) => {{
            let budget: Budget = $budget;
            tally.begin();
            let answer = $ask.await;
            tally.end($name, budget);
            answer.unwrap()
        }};
    }
    let tree = within!("connect", (1, 1), bench.service.door().connect(1, "share"));
    let file = within!("create", (9, 6), tree.open(created("a\\b\\c\\file"))).file;
    let more = within!("create another", (9, 4), tree.open(created("a\\b\\c\\more"))).file;
    let missing = async || Ok::<_, Refused>(refused(&tree, wish("a\\b\\c\\missing")).await);
    assert_eq!(within!("open what is missing", (5, 1), missing()), Refused::NotFound);
    within!("write", (7, 6), file.write(0, "bytes".into()));
    within!("write again", (6, 3), file.write(0, "bytes".into()));
    within!("read", (5, 2), file.read(0, 5));
    within!("query", (2, 1), file.query());
    within!("length", (4, 2), file.set_end_of_file(100));
    within!("basic", (3, 2), file.set_basic(BasicInfo { attributes: attributes::HIDDEN, ..BasicInfo::default() }));
    within!("open", (6, 2), tree.open(wish("a\\b\\c\\file"))).file.close().await.unwrap();
    let dir = within!("open directory", (5, 2), tree.open(wish("a\\b\\c"))).file;
    within!("list", (3, 1), dir.list("*", true, 100));
    within!("rename", (5, 3), file.rename("a\\renamed", false));
    within!("disposition", (2, 1), file.set_delete_pending(true));
    within!("delete", (3, 2), file.close());
    within!("close", (0, 0), more.close());
    within!("space", (2, 1), tree.space());
    within!("close directory", (0, 0), dir.close());
    tally.assert();
}

#[tokio::test]
async fn round_trips_on_a_node_that_has_just_started() {
    keeps_its_budget(NodeState::JustStarted).await;
}

#[tokio::test]
async fn round_trips_on_a_node_that_knows_its_way() {
    keeps_its_budget(NodeState::KnowsItsWay).await;
}
