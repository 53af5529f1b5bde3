//! How many round trips each operation takes on an engine that must fetch its rows: a budget, to be lowered and never exceeded.

use std::sync::Arc;

use engine::loads::LoadingEngine;
use engine::memory::MemoryEngine;

use crate::QueueService;
use crate::testing::{Bench, between, body, text};

/// The operation and its round trips, in this order on an empty account.
const BUDGET: &[(&str, u64)] = &[
    ("PUT que", 2),
    ("GET que?comp=metadata", 2),
    ("POST que/messages", 3),
    ("GET que/messages?peekonly=true", 4),
    ("GET que/messages", 5),
    ("PUT que/messages/ID?popreceipt=RECEIPT&visibilitytimeout=0", 4),
    ("GET que/messages?numofmessages=1", 5),
    ("DELETE que/messages/ID?popreceipt=RECEIPT", 4),
    // Of 40 that are put here without being counted.
    ("GET que/messages?numofmessages=32", 36),
    ("DELETE que/messages", 3),
    ("DELETE que", 3),
];

#[tokio::test]
async fn every_operation_keeps_its_budget_of_round_trips() {
    let engine = Arc::new(MemoryEngine::default());
    let loading = Arc::new(LoadingEngine::new(engine.clone()));
    let bench = Bench { service: QueueService::new(loading.clone()), engine };
    let (mut id, mut receipt) = (String::new(), String::new());
    let mut over = Vec::new();
    for (line, budget) in BUDGET {
        if line.contains("numofmessages=32") {
            for number in 0..40 {
                bench.call("POST", "que/messages", &[], &body(&number.to_string())).await.unwrap();
            }
        }
        let (method, url) = line.split_once(' ').unwrap();
        let url = url.replace("ID", &id).replace("RECEIPT", &receipt);
        let sent =
            if matches!(method, "POST") || url.contains("visibilitytimeout") { body("text") } else { Vec::new() };
        let _ = loading.take_round_trips();
        let answer = bench.call(method, &url, &[], &sent).await;
        let trips = loading.take_round_trips();
        let said = text(answer.unwrap_or_else(|failure| panic!("{line}: {failure:?}"))).await;
        if said.contains("<PopReceipt>") {
            id = between(&said, "<MessageId>", "<")[0].to_owned();
            receipt = between(&said, "<PopReceipt>", "<")[0].to_owned();
        }
        if trips != *budget {
            over.push(format!("{line}: {trips} round trips, not {budget}"));
        }
    }
    assert!(over.is_empty(), "\n{}", over.join("\n"));
}
