//! A crash or an error between any two steps leaves the state before or the state after, and nothing else.
//!
//! A story (a list of requests) is run once for every step it takes and every way to fail there. Whatever failed, the
//! table is then in the state after the last acknowledged request, or after the request that failed. Once the table is
//! deleted, nothing is left.

use std::sync::Arc;

use engine::Engine;
use engine::fault::{Fault, FaultyEngine};
use engine::memory::MemoryEngine;

use crate::TableService;
use crate::testing::{Bench, text};

/// A request and what the table holds after it, as row key and value; `None`: there is no table.
type Chapter =
    (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str, Option<&'static str>);

const ONE: &str = "tab(PartitionKey='p',RowKey='1')";
const ANY: &[(&str, &str)] = &[("if-match", "*")];
const BATCH: &[(&str, &str)] = &[("content-type", "multipart/mixed; boundary=b")];

const STORY: &[Chapter] = &[
    ("POST", "Tables", &[], r#"{"TableName":"tab"}"#, Some("")),
    ("POST", "tab", &[], r#"{"PartitionKey":"p","RowKey":"1","v":1}"#, Some("1=1")),
    ("PUT", ONE, ANY, r#"{"v":2}"#, Some("1=2")),
    ("MERGE", ONE, ANY, r#"{"v":3}"#, Some("1=3")),
    ("PUT", ONE, &[], r#"{"v":4}"#, Some("1=4")),
    ("PATCH", "tab(PartitionKey='p',RowKey='2')", &[], r#"{"v":5}"#, Some("1=4 2=5")),
    (
        "POST",
        "$batch",
        BATCH,
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n\
         --c\r\n\r\nPUT http://h/acct/tab(PartitionKey='p',RowKey='1') HTTP/1.1\r\n\r\n{\"v\":3}\r\n\
         --c\r\n\r\nPUT http://h/acct/tab(PartitionKey='p',RowKey='2') HTTP/1.1\r\n\r\n{\"v\":6}\r\n\
         --c--\r\n--b--\r\n",
        Some("1=3 2=6"),
    ),
    ("DELETE", ONE, ANY, "", Some("2=6")),
    ("PUT", "tab?comp=acl", &[], "", Some("2=6")),
    ("DELETE", "Tables('tab')", &[], "", None),
    ("POST", "Tables", &[], r#"{"TableName":"tab"}"#, Some("")),
    ("POST", "tab", &[], r#"{"PartitionKey":"p","RowKey":"3","v":7}"#, Some("3=7")),
];

/// Runs the story on an engine that fails at `step`. Returns how many chapters were acknowledged.
async fn tell(engine: &Arc<MemoryEngine>, step: u64, fault: Fault) -> usize {
    let faulty = Arc::new(FaultyEngine::at(Arc::clone(engine) as Arc<dyn Engine>, step, fault));
    let bench = Bench { engine: Arc::clone(engine), service: TableService::new(faulty) };
    for (count, (method, url, headers, body, _)) in STORY.iter().enumerate() {
        if bench.call(method, url, headers, body.as_bytes()).await.is_err() {
            return count;
        }
    }
    STORY.len()
}

async fn held(bench: &Bench) -> Option<String> {
    let page = text(bench.call("GET", "tab()", &[], b"").await.ok()?).await;
    let page: serde_json::Value = serde_json::from_str(&page).unwrap();
    let entities = page["value"].as_array().unwrap().iter();
    Some(entities.map(|it| format!("{}={}", it["RowKey"].as_str().unwrap(), it["v"])).collect::<Vec<_>>().join(" "))
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
            // After the failure: the same rows under an engine that works.
            let bench = Bench { service: TableService::new(Arc::clone(&engine) as Arc<dyn Engine>), engine };
            let before = told.checked_sub(1).and_then(|last| STORY[last].4);
            let after = STORY[told].4;
            let found = held(&bench).await;
            let right = found.as_deref() == before || found.as_deref() == after;
            assert!(right, "step {step}, {fault:?}: {found:?} instead of {before:?} or {after:?}");
            bench.sweep().await;
            assert_eq!(held(&bench).await, found, "step {step}, {fault:?}: a sweep changed what clients see");
            let _ = bench.call("DELETE", "Tables('tab')", &[], b"").await;
            bench.sweep().await;
            assert_eq!(bench.stored(), 0, "step {step}, {fault:?}: something is left");
        }
    }
    assert!(steps > 40, "only {steps} failures were tried");
}
