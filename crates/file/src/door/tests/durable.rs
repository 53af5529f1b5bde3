use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use engine::loads::{Budget, NodeState, Tally};
use engine::memory::MemoryEngine;

use super::*;
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
    assert!(bench.opens.is_empty());
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
    let file = within!("create", (10, 7), tree.open(created("a\\b\\c\\file"))).file;
    let more = within!("create another", (10, 5), tree.open(created("a\\b\\c\\more"))).file;
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
