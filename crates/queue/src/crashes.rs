//! A crash or an error between any two steps leaves the state before or the state after, and nothing else.
//!
//! A story (a list of requests) is run once for every step it takes and every way to fail there. Whatever failed, the
//! queue then holds what it held after the last acknowledged request, or after the request that failed. Once the queue
//! is deleted, nothing is left.

use std::sync::Arc;

use engine::Engine;
use engine::fault::{Fault, FaultyEngine};
use engine::memory::MemoryEngine;

use crate::testing::{Bench, Put, body, header};
use crate::{Failure, QueueService};

/// One request of the story. Those that need a pop receipt use the last one that was given out.
#[derive(Clone, Copy, Debug)]
enum Act {
    Create,
    SetMetadata,
    SetAcl,
    Put(&'static str),
    /// A message that has expired by the time the queue is inspected.
    PutShort,
    Take,
    Update(Option<&'static str>),
    Delete,
    Clear,
    DeleteQueue,
}

/// The requests, each with the texts that the queue holds afterwards; `None`: there is no queue.
const STORY: &[(Act, Option<&[&str]>)] = &[
    (Act::Create, Some(&[])),
    (Act::SetMetadata, Some(&[])),
    (Act::Put("a"), Some(&["a"])),
    (Act::PutShort, Some(&["a"])),
    (Act::Put("b"), Some(&["a", "b"])),
    (Act::Take, Some(&["a", "b"])),
    (Act::Update(None), Some(&["a", "b"])),
    (Act::Update(Some("c")), Some(&["b", "c"])),
    (Act::Delete, Some(&["b"])),
    (Act::SetAcl, Some(&["b"])),
    (Act::Put("d"), Some(&["b", "d"])),
    (Act::Clear, Some(&[])),
    (Act::Put("e"), Some(&["e"])),
    (Act::Take, Some(&["e"])),
    (Act::DeleteQueue, None),
    (Act::Create, Some(&[])),
    (Act::Put("f"), Some(&["f"])),
];

async fn act(bench: &Bench, act: Act, held: &mut Option<Put>) -> Result<(), Failure> {
    let receipt = |held: &Option<Put>| held.clone().expect("the story has taken a message");
    let (method, url, body) = match act {
        Act::Create => ("PUT", "que".to_owned(), Vec::new()),
        Act::SetMetadata => ("PUT", "que?comp=metadata".to_owned(), Vec::new()),
        Act::SetAcl => ("PUT", "que?comp=acl".to_owned(), Vec::new()),
        Act::Put(text) => ("POST", "que/messages?messagettl=-1".to_owned(), body(text)),
        Act::PutShort => ("POST", "que/messages?messagettl=60".to_owned(), body("short")),
        Act::Clear => ("DELETE", "que/messages".to_owned(), Vec::new()),
        Act::DeleteQueue => ("DELETE", "que".to_owned(), Vec::new()),
        Act::Take => {
            let answer = bench.call("GET", "que/messages", &[], b"").await?;
            let list = crate::testing::text(answer).await;
            let element = |name: &str| crate::testing::between(&list, &format!("<{name}>"), "<")[0].to_owned();
            *held = Some(Put { id: element("MessageId"), receipt: element("PopReceipt") });
            return Ok(());
        }
        Act::Update(text) => {
            let Put { id, receipt } = receipt(held);
            let url = format!("que/messages/{id}?popreceipt={receipt}&visibilitytimeout=60");
            ("PUT", url, text.map(body).unwrap_or_default())
        }
        Act::Delete => {
            let Put { id, receipt } = receipt(held);
            ("DELETE", format!("que/messages/{id}?popreceipt={receipt}"), Vec::new())
        }
    };
    let answer = bench.call(method, &url, &[], &body).await?;
    if let (Some(put), Some(receipt)) = (held, header(&answer, "x-ms-popreceipt")) {
        receipt.clone_into(&mut put.receipt);
    }
    Ok(())
}

/// Runs the story on an engine that fails at `step`. Returns how many chapters were acknowledged.
async fn tell(engine: &Arc<MemoryEngine>, step: u64, fault: Fault) -> usize {
    let faulty = Arc::new(FaultyEngine::at(Arc::clone(engine) as Arc<dyn Engine>, step, fault));
    let bench = Bench { engine: Arc::clone(engine), service: QueueService::new(faulty) };
    let mut held = None;
    for (count, (what, _)) in STORY.iter().enumerate() {
        if act(&bench, *what, &mut held).await.is_err() {
            return count;
        }
    }
    STORY.len()
}

async fn held(bench: &Bench) -> Option<Vec<String>> {
    bench.call("GET", "que?comp=metadata", &[], b"").await.ok()?;
    let mut texts = bench.peek(32).await;
    texts.sort();
    assert_eq!(bench.count().await, texts.len() as u64, "the count is exact");
    Some(texts)
}

#[tokio::test]
async fn every_failure_leaves_before_or_after() {
    let mut steps = 0;
    for fault in Fault::every() {
        for step in 0.. {
            let engine = Arc::new(MemoryEngine::default());
            let told = tell(&engine, step, fault.clone()).await;
            if told == STORY.len() {
                break;
            }
            steps += 1;
            // After the failure: the same rows under an engine that works. Messages that were taken are visible again.
            let bench = Bench { service: QueueService::new(Arc::clone(&engine) as Arc<dyn Engine>), engine };
            bench.advance(3_600).await;
            let state = |at: Option<usize>| at.and_then(|at| STORY[at].1).map(|texts| texts.to_vec());
            let (before, after) = (state(told.checked_sub(1)), state(Some(told)));
            let found = held(&bench).await;
            let seen: Option<Vec<&str>> = found.as_ref().map(|texts| texts.iter().map(String::as_str).collect());
            assert!(seen == before || seen == after, "step {step}, {fault:?}: {seen:?}, not {before:?} or {after:?}");
            bench.sweep().await;
            assert_eq!(held(&bench).await, found, "step {step}, {fault:?}: a sweep changed what clients see");
            let _ = bench.call("DELETE", "que", &[], b"").await;
            bench.sweep().await;
            assert_eq!(bench.rows(), 0, "step {step}, {fault:?}: something is left");
        }
    }
    assert!(steps >= 4 * STORY.len(), "only {steps} failures were tried");
}
