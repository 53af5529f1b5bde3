//! How many round trips each operation takes on an engine that must fetch its rows: a budget, to be lowered and never exceeded.

use std::sync::Arc;

use engine::loads::LoadingEngine;
use engine::memory::MemoryEngine;

use crate::TableService;
use crate::testing::Bench;

const ONE: &str = "tab(PartitionKey='p',RowKey='1')";
const ANY: &[(&str, &str)] = &[("if-match", "*")];
const BATCH: &[(&str, &str)] = &[("content-type", "multipart/mixed; boundary=b")];

type Ask = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

/// In this order, on an empty account: the request, and its round trips.
const BUDGET: &[(Ask, u64)] = &[
    (("POST", "Tables", &[], r#"{"TableName":"tab"}"#), 2),
    (("GET", "Tables", &[], ""), 1),
    (("POST", "tab", &[], r#"{"PartitionKey":"p","RowKey":"1","v":1}"#), 3),
    (("GET", ONE, &[], ""), 2),
    (("PUT", ONE, ANY, r#"{"v":2}"#), 3),
    (("MERGE", ONE, ANY, r#"{"v":3}"#), 3),
    (("PUT", ONE, &[], r#"{"v":4}"#), 3),
    (("DELETE", ONE, ANY, ""), 3),
    // A transaction of a hundred inserts, and the same again as replacements.
    (("POST", "$batch", BATCH, "POST"), 102),
    (("POST", "$batch", BATCH, "PUT"), 102),
    (("GET", "tab()?$filter=PartitionKey%20eq%20'p'", &[], ""), 2),
    (("GET", "tab()?$filter=PartitionKey%20eq%20'p'%20and%20RowKey%20lt%20'050'", &[], ""), 2),
    (("DELETE", "Tables('tab')", &[], ""), 2),
];

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

#[tokio::test]
async fn every_operation_keeps_its_budget_of_round_trips() {
    let engine = Arc::new(MemoryEngine::default());
    let loading = Arc::new(LoadingEngine::new(engine.clone()));
    let bench = Bench { service: TableService::new(loading.clone()), engine };
    let mut over = Vec::new();
    for ((method, url, headers, body), budget) in BUDGET {
        let body = if *url == "$batch" { transaction(body) } else { (*body).to_owned() };
        let _ = loading.take_round_trips();
        let answer = bench.call(method, url, headers, body.as_bytes()).await;
        let said = crate::testing::text(answer.unwrap_or_else(|failure| panic!("{method} {url}: {failure:?}"))).await;
        assert!(!said.contains("odata.error"), "{method} {url}: {said}");
        let trips = loading.take_round_trips();
        if trips != *budget {
            over.push(format!("{method} {url}: {trips} round trips, not {budget}"));
        }
    }
    assert!(over.is_empty(), "\n{}", over.join("\n"));
}
