//! How many round trips each operation takes on an engine that must fetch its rows. The budget may be lowered and is
//! never exceeded.

use std::collections::HashSet;
use std::sync::Arc;

use engine::loads::{Budget, NodeState, Tally};
use engine::memory::MemoryEngine;

use crate::testing::{Bench, request, text};
use crate::{Op, TableService};

const ONE: &str = "tab(PartitionKey='p',RowKey='1')";
const ANY: &[(&str, &str)] = &[("if-match", "*")];
const BATCH: &[(&str, &str)] = &[("content-type", "multipart/mixed; boundary=b")];
const BROWSER: &[(&str, &str)] = &[("origin", "http://site"), ("access-control-request-method", "GET")];
const PROPERTIES: &str = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>\
     <AllowedMethods>GET</AllowedMethods><AllowedHeaders>*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders>\
     <MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";

type Ask = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

/// The requests, in this order on an empty account, each with its round trips.
const BUDGET: &[(Ask, Budget)] = &[
    (("POST", "Tables", &[], r#"{"TableName":"tab"}"#), (2, 2)),
    (("GET", "Tables", &[], ""), (1, 1)),
    // The first one that leads from the table to an entity.
    (("POST", "tab", &[], r#"{"PartitionKey":"p","RowKey":"1","v":1}"#), (3, 3)),
    (("GET", ONE, &[], ""), (2, 1)),
    (("PUT", ONE, ANY, r#"{"v":2}"#), (3, 2)),
    (("MERGE", ONE, ANY, r#"{"v":3}"#), (3, 2)),
    (("PUT", ONE, &[], r#"{"v":4}"#), (3, 2)),
    (("MERGE", ONE, &[], r#"{"v":5}"#), (3, 2)),
    (("DELETE", ONE, ANY, ""), (3, 2)),
    // A transaction of a hundred inserts, and the same again as replacements.
    (("POST", "$batch", BATCH, "POST"), (3, 2)),
    (("POST", "$batch", BATCH, "PUT"), (3, 2)),
    (("GET", "tab()?$filter=PartitionKey%20eq%20'p'", &[], ""), (2, 1)),
    (("GET", "tab()?$filter=PartitionKey%20eq%20'p'%20and%20RowKey%20lt%20'050'", &[], ""), (2, 1)),
    (("PUT", "tab?comp=acl", &[], "<SignedIdentifiers/>"), (2, 2)),
    (("GET", "tab?comp=acl", &[], ""), (1, 1)),
    (("DELETE", "Tables('tab')", &[], ""), (2, 2)),
    (("PUT", "?restype=service&comp=properties", &[], PROPERTIES), (2, 2)),
    (("GET", "?restype=service&comp=properties", &[], ""), (1, 1)),
    (("OPTIONS", "tab", BROWSER, ""), (1, 1)),
];

/// Operations that look at no rows.
const WITHOUT_ROWS: &[Op] = &[Op::GetTableServiceStats];

fn transaction(method: &str) -> String {
    let mut text = String::from("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n");
    for row in 0..100 {
        let url = match method {
            "POST" => "tab".to_owned(),
            _ => format!("tab(PartitionKey='p',RowKey='{row:03}')"),
        };
        let entity = format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{row:03}\",\"v\":1}}");
        text += &format!(
            "--c\r\n\r\n{method} http://h/acct/{url} HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{entity}\r\n"
        );
    }
    text + "--c--\r\n--b--\r\n"
}

async fn every_operation_keeps_its_budget(state: NodeState) {
    let engine = Arc::new(MemoryEngine::default());
    let mut tally = Tally::new(engine.clone(), state);
    let bench = Bench { service: TableService::new(tally.engine.clone()), engine };
    for ((method, url, headers, body), budget) in BUDGET {
        let body = if *url == "$batch" { transaction(body) } else { (*body).to_owned() };
        tally.begin();
        let answer = bench.call(method, url, headers, body.as_bytes()).await;
        tally.end(&format!("{method} {url}"), *budget);
        let said = text(answer.unwrap_or_else(|failure| panic!("{method} {url}: {failure:?}"))).await;
        assert!(!said.contains("odata.error"), "{method} {url}: {said}");
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
    let named = BUDGET.iter().map(|((method, url, headers, _), _)| Op::named_by(&request(method, url, headers)));
    let budgeted: HashSet<Op> = named.map(|op| op.expect("an operation")).chain(WITHOUT_ROWS.iter().copied()).collect();
    let missing: Vec<&Op> = Op::ALL.iter().filter(|op| !budgeted.contains(op)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
