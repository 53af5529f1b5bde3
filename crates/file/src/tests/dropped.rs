//! Requests that are dropped while their commit waits: what they hold in the table of opens stays until the commit has ended.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use concurrency::share_mode::Access;
use engine::memory::MemoryEngine;
use engine::{BoxFuture, Decision, Engine, EngineError, Partitions, Rows, Tick, Unread, Verdict, Wrapper};

use super::{CLEAR, CREATE, UPDATE};
use crate::opens::{NameKey, OpenRefusal, Reach, Scope};
use crate::testing::{Bench, url};
use crate::{Failure, FileService};

/// Keeps decisions until it is told to run them, whether or not somebody still waits for them.
pub struct Waiting {
    inner: Arc<MemoryEngine>,
    pub decisions: Mutex<Option<Vec<Box<dyn Decision>>>>,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}

impl Waiting {
    pub async fn run(&self) {
        let decisions = self.decisions.lock().unwrap().take().unwrap_or_default();
        for decision in decisions {
            self.inner.commit(decision).await.unwrap();
        }
    }
}

impl Wrapper for Waiting {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        match &mut *self.decisions.lock().unwrap() {
            None => self.inner.commit(decision),
            Some(decisions) => {
                decisions.push(decision);
                Box::pin(std::future::pending())
            }
        }
    }
}

pub async fn bench() -> (Bench, Arc<Waiting>) {
    let engine = Arc::new(MemoryEngine::default());
    let waiting = Arc::new(Waiting { inner: Arc::clone(&engine), decisions: Mutex::default() });
    let bench = Bench::over(Arc::clone(&waiting) as Arc<dyn Engine>, engine);
    bench.call("PUT", "share?restype=share", &[], b"").await.unwrap();
    bench.mkdir("dir").await;
    bench.create("dir/file", 1_024).await;
    (bench, waiting)
}

/// Begins a request and drops it once its commit waits.
fn begin_and_drop(bench: &Bench, waiting: &Waiting, ask: (&str, &str, &[(&str, &str)], &[u8])) {
    *waiting.decisions.lock().unwrap() = Some(Vec::new());
    let (method, url, headers, body) = ask;
    let mut request = pin!(bench.call(method, url, headers, body));
    let mut context = Context::from_waker(Waker::noop());
    assert!(request.as_mut().poll(&mut context).is_pending(), "{method} {url}");
    assert_eq!(waiting.decisions.lock().unwrap().as_ref().map(Vec::len), Some(1), "{method} {url}");
}

const TO_MOVED: &[(&str, &str)] = &[("x-ms-file-rename-source", "http://127.0.0.1:10003/acct/share/dir/file")];
const DIRECTORY: &[(&str, &str)] = &[("x-ms-file-rename-source", "http://127.0.0.1:10003/acct/share/dir")];

/// An SMB open that does not share what the request needs waits until the commit is there, and only so long.
#[tokio::test]
async fn an_open_waits_for_the_commit_of_a_request_that_is_gone() {
    for ask in [
        ("PUT", "share/dir/file?comp=range", UPDATE, &b"data"[..]),
        ("PUT", "share/dir/file?comp=range", CLEAR, b""),
        ("PUT", "share/dir/file", CREATE, b""),
        ("PUT", "share/dir/file?comp=metadata", &[("x-ms-meta-a", "b")], b""),
        ("DELETE", "share/dir/file", &[], b""),
        ("PUT", "share/moved?comp=rename", TO_MOVED, b""),
        ("PUT", "share/other?restype=directory&comp=rename", DIRECTORY, b""),
    ] {
        let (bench, waiting) = bench().await;
        let request = bench.open_request("dir/file", Access::READ, Access::READ).await;
        begin_and_drop(&bench, &waiting, ask);
        {
            let mut open = pin!(bench.opens.open(request));
            let mut context = Context::from_waker(Waker::noop());
            assert!(open.as_mut().poll(&mut context).is_pending(), "{ask:?}");
            waiting.run().await;
            match open.as_mut().poll(&mut context) {
                Poll::Ready(Ok(_) | Err(OpenRefusal::LookAgain)) => {}
                other => panic!("{ask:?}: {other:?}"),
            }
        }
        assert!(bench.opens.is_empty(), "{ask:?}");
    }
}

/// The same of the file that a copy reads.
#[tokio::test]
async fn an_open_of_the_source_waits_for_the_commit_of_a_copy_that_is_gone() {
    let (bench, waiting) = bench().await;
    let request = bench.open_request("dir/file", Access::WRITE, Access::WRITE).await;
    let source = url("dir/file");
    begin_and_drop(&bench, &waiting, ("PUT", "share/copy", &[("x-ms-copy-source", &source)], b""));
    let mut open = pin!(bench.opens.open(request));
    let mut context = Context::from_waker(Waker::noop());
    assert!(open.as_mut().poll(&mut context).is_pending());
    waiting.run().await;
    assert!(matches!(open.as_mut().poll(&mut context), Poll::Ready(Ok(_))));
}

/// An opener has the turn at the name of the file and waits for those that are at work on it: a copy must not be among them while it
/// waits for that turn.
#[tokio::test]
async fn a_copy_onto_itself_and_an_open_do_not_wait_for_each_other() {
    let (bench, _) = bench().await;
    let request = bench.open_request("dir/file", Access::WRITE, Access::WRITE).await;
    let (directory, folded) = (request.place.above[0], "FILE".into());
    let turn = bench.opens.turn(NameKey { directory, folded }).await.unwrap();
    let source = url("dir/file");
    let headers = [("x-ms-copy-source", &*source)];
    let mut copy = pin!(bench.call("PUT", "share/dir/file", &headers, b""));
    let mut context = Context::from_waker(Waker::noop());
    assert!(copy.as_mut().poll(&mut context).is_pending(), "it waits for the turn");
    let mut open = pin!(bench.opens.open(request));
    let Poll::Ready(Ok(handle)) = open.as_mut().poll(&mut context) else { panic!("the open waits for the copy") };
    drop(turn);
    assert!(copy.as_mut().await.is_err(), "the handle does not share reads");
    drop(handle);
    assert!(bench.opens.is_empty());
}

/// A commit that never came leaves nothing in the table either.
#[tokio::test]
async fn a_decision_that_is_dropped_leaves_the_table() {
    let (bench, waiting) = bench().await;
    begin_and_drop(&bench, &waiting, ("DELETE", "share/dir/file", &[], b""));
    assert!(!bench.opens.is_empty());
    *waiting.decisions.lock().unwrap() = None;
    assert!(bench.opens.is_empty());
}

/// Handles of a file go along with a rename whose request was dropped.
#[tokio::test]
async fn handles_go_along_with_a_rename_of_a_request_that_is_gone() {
    let (bench, waiting) = bench().await;
    let handle = bench.open("dir/file", Access::READ, Access::ALL).await;
    begin_and_drop(&bench, &waiting, ("PUT", "share/moved?comp=rename", TO_MOVED, b""));
    waiting.run().await;
    let page = bench.opens.handles(Scope { file: handle.file(), reach: Reach::Node }, None, 10);
    assert_eq!(page.handles.first().map(|handle| handle.place.path.as_str()), Some("moved"));
    drop(handle);
    assert!(bench.opens.is_empty());
}

/// An engine that runs decisions and has no room for what they write.
#[derive(Debug)]
struct Full(Arc<MemoryEngine>);

struct NotWritten(Box<dyn Decision>);

impl Decision for NotWritten {
    fn partitions(&self) -> &Partitions {
        self.0.partitions()
    }

    fn decide(&mut self, rows: &dyn Rows, tick: Tick) -> Verdict {
        match self.0.decide(rows, tick) {
            Verdict::Commit(_) => Verdict::Unread(Unread::Failed(EngineError::Full)),
            other => other,
        }
    }
}

impl Wrapper for Full {
    fn inner(&self) -> &dyn Engine {
        &*self.0
    }

    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        self.0.commit(Box::new(NotWritten(decision)))
    }
}

/// A rename that was decided and could not be written has moved nothing, so the handles are where they were.
#[tokio::test]
async fn handles_stay_when_a_rename_is_not_committed() {
    let (mut bench, waiting) = bench().await;
    let handle = bench.open("dir/file", Access::READ, Access::ALL).await;
    let full = Arc::new(Full(Arc::clone(&waiting.inner)));
    bench.service = FileService::new(full, Arc::clone(&bench.opens));
    let places = |bench: &Bench| {
        let page = bench.opens.handles(Scope { file: handle.file(), reach: Reach::Node }, None, 10);
        page.handles.iter().map(|handle| handle.place.path.clone()).collect::<Vec<_>>()
    };
    assert_eq!(places(&bench), ["dir/file"]);
    let failed = bench.call("PUT", "share/moved?comp=rename", TO_MOVED, b"").await;
    assert!(matches!(failed, Err(Failure::Failed(EngineError::Full))), "{failed:?}");
    assert_eq!(places(&bench), ["dir/file"]);
}
