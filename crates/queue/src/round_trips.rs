//! How many round trips each operation takes on an engine that must fetch its rows. The budget may be lowered and is
//! never exceeded.

use std::collections::HashSet;
use std::sync::Arc;

use engine::loads::{Budget, NodeState, Tally};
use engine::memory::MemoryEngine;

use crate::testing::{Bench, between, body, request, text};
use crate::{Op, QueueService};

const BROWSER: &[(&str, &str)] = &[("origin", "http://site"), ("access-control-request-method", "GET")];
const PROPERTIES: &str = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>\
     <AllowedMethods>GET</AllowedMethods><AllowedHeaders>*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders>\
     <MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";

/// In this order, on an empty account: the request, and its round trips on a node that has just started and on one that
/// knows its way.
const BUDGET: &[(&str, Budget)] = &[
    ("PUT que", (2, 2)),
    // The first one that leads from the queue to its messages.
    ("GET que?comp=metadata", (2, 2)),
    ("PUT que?comp=metadata", (2, 2)),
    ("PUT que?comp=acl", (2, 2)),
    ("GET que?comp=acl", (1, 1)),
    ("GET ?comp=list", (1, 1)),
    ("POST que/messages", (3, 2)),
    ("GET que/messages?peekonly=true", (4, 3)),
    ("GET que/messages", (5, 3)),
    ("PUT que/messages/ID?popreceipt=RECEIPT&visibilitytimeout=0", (3, 2)),
    ("GET que/messages?numofmessages=1", (5, 3)),
    ("DELETE que/messages/ID?popreceipt=RECEIPT", (3, 2)),
    // Of 40 messages that are put here without being counted.
    ("GET que/messages?peekonly=true&numofmessages=32", (4, 2)),
    ("GET que/messages?numofmessages=32", (5, 3)),
    ("DELETE que/messages", (3, 2)),
    // The queue has changed: it was cleared.
    ("DELETE que", (3, 3)),
    ("PUT ?restype=service&comp=properties", (2, 2)),
    ("GET ?restype=service&comp=properties", (1, 1)),
    ("OPTIONS que", (1, 1)),
];

/// Operations that look at no rows.
const WITHOUT_ROWS: &[Op] = &[Op::GetQueueServiceStats, Op::GetUserDelegationKey];

/// The body that a request of the list is sent with.
fn sent_with(method: &str, url: &str) -> Vec<u8> {
    match (method, url) {
        ("POST", _) => body("text"),
        (_, url) if url.contains("visibilitytimeout") => body("text"),
        ("PUT", url) if url.contains("comp=acl") => b"<SignedIdentifiers/>".to_vec(),
        ("PUT", url) if url.contains("comp=properties") => PROPERTIES.as_bytes().to_vec(),
        (_, _) => Vec::new(),
    }
}

async fn every_operation_keeps_its_budget(state: NodeState) {
    let engine = Arc::new(MemoryEngine::default());
    let mut tally = Tally::new(engine.clone(), state);
    let bench = Bench { service: QueueService::new(tally.engine.clone()), engine };
    let (mut id, mut receipt) = (String::new(), String::new());
    for (line, budget) in BUDGET {
        if line.contains("peekonly=true&numofmessages=32") {
            for number in 0..40 {
                bench.call("POST", "que/messages", &[], &body(&number.to_string())).await.unwrap();
            }
        }
        let (method, url) = line.split_once(' ').unwrap();
        let url = url.replace("ID", &id).replace("RECEIPT", &receipt);
        let headers = if method == "OPTIONS" { BROWSER } else { &[] };
        tally.begin();
        let answer = bench.call(method, &url, headers, &sent_with(method, &url)).await;
        tally.end(line, *budget);
        let said = text(answer.unwrap_or_else(|failure| panic!("{line}: {failure:?}"))).await;
        if said.contains("<PopReceipt>") {
            id = between(&said, "<MessageId>", "<")[0].to_owned();
            receipt = between(&said, "<PopReceipt>", "<")[0].to_owned();
        }
    }
    tally.assert();
}

#[tokio::test]
async fn every_operation_keeps_its_budget_on_a_node_that_has_just_started() {
    every_operation_keeps_its_budget(NodeState::JustStarted).await;
}

#[tokio::test]
async fn every_operation_keeps_its_budget_on_a_node_that_knows_its_way() {
    every_operation_keeps_its_budget(NodeState::KnowsItsWay).await;
}

#[test]
fn every_operation_has_a_budget() {
    let named = BUDGET.iter().map(|(line, _)| {
        let (method, url) = line.split_once(' ').unwrap();
        let headers = if method == "OPTIONS" { BROWSER } else { &[] };
        Op::named_by(&request(method, url, headers)).unwrap_or_else(|error| panic!("{line}: {error:?}"))
    });
    let budgeted: HashSet<Op> = named.chain(WITHOUT_ROWS.iter().copied()).collect();
    let missing: Vec<&Op> = Op::ALL.iter().filter(|op| !budgeted.contains(op)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
