//! Transactions: what they take, what they refuse, and that a refusal leaves nothing behind.

use crate::harness::Table;
use crate::stage::{ANY, BATCH, Stage, change_set, parts};

#[test]
fn a_hundred_operations_at_once() {
    let stage = Stage::new();
    let of = |count: usize| -> Vec<String> {
        (0..count).map(|row| format!("PUT tab(PartitionKey='p',RowKey='{row}')")).collect()
    };
    let send =
        |lines: &[String]| stage.transact(&lines.iter().map(|line| (line.as_str(), &[][..], "{}")).collect::<Vec<_>>());
    let done = send(&of(100));
    assert_eq!(done.len(), 100);
    let mut etags: Vec<_> = done.iter().map(|part| part.header("etag").expect("an ETag").to_owned()).collect();
    etags.sort();
    etags.dedup();
    assert_eq!(etags.len(), 100, "each has its own timestamp");
    let refused = send(&of(101));
    assert_eq!((refused.len(), refused[0].said().as_str()), (1, "400 InvalidInput"));
    assert!(refused[0].body.contains("0:The batch request operation exceeds the maximum 100 changes per change set."));
}

#[test]
fn refusals_name_the_operation_and_change_nothing() {
    let stage = Stage::new();
    stage.insert("p", "there", "");
    let mut table = Table::new("refusals in a transaction");
    let put = "PUT tab(PartitionKey='p',RowKey='there')";
    for (row, (line, headers, body), expected) in [
        ("exists", ("POST tab", &[][..], r#"{"PartitionKey":"p","RowKey":"there"}"#), "409 EntityAlreadyExists"),
        ("missing", ("PUT tab(PartitionKey='p',RowKey='x')", &[ANY], "{}"), "404 ResourceNotFound"),
        (
            "another partition",
            ("PUT tab(PartitionKey='q',RowKey='x')", &[], "{}"),
            "400 CommandsInBatchActOnDifferentPartitions",
        ),
        ("twice", ("PUT tab(PartitionKey='p',RowKey='first')", &[], "{}"), "400 InvalidDuplicateRow"),
        ("no JSON", (put, &[], "?"), "400 InvalidInput"),
        ("a bad name", (put, &[], r#"{"a-b":1}"#), "400 PropertyNameInvalid"),
        ("no condition", ("DELETE tab(PartitionKey='p',RowKey='there')", &[], ""), "400 MissingRequiredHeader"),
    ] {
        let first = ("PUT tab(PartitionKey='p',RowKey='first')", &[][..], "{}");
        let got = stage.transact(&[first, (line, headers, body)]);
        assert_eq!(got.len(), 1, "{row}");
        table.row(row, got[0].said(), expected);
        let error: serde_json::Value = serde_json::from_str(got[0].body.trim()).expect("JSON");
        let message = error["odata.error"]["message"]["value"].as_str().expect("a message").to_owned();
        table.row(format!("{row}: number"), &message[..2], "1:");
        table.row(format!("{row}: the first"), stage.get("tab(PartitionKey='p',RowKey='first')").status, 404);
    }
    let missing = stage.transact(&[("PUT missing(PartitionKey='p',RowKey='r')", &[], "{}")]);
    table.row("no table", missing[0].said(), "404 TableNotFound");
}

#[test]
fn bodies_that_are_no_batch() {
    let stage = Stage::new();
    let mut table = Table::new("bodies that are no batch");
    let good = change_set(&[("PUT tab(PartitionKey='p',RowKey='r')", &[], "{}")]);
    let two = format!("{}{good}", good.strip_suffix("--batch_x--\r\n").expect("its end"));
    for (row, body) in
        [("empty", ""), ("text", "hello"), ("two change sets", &two), ("cut short", &good[..good.len() / 2])]
    {
        table.row(row, stage.call("POST $batch", &BATCH, body).said(), "400 InvalidInput");
    }
    let kind = [("content-type", "application/json")];
    table.row("another type", stage.call("POST $batch", &kind, &good).said(), "400 InvalidInput");
    let large = stage.call("POST $batch", &BATCH, vec![b' '; 4 * 1024 * 1024 + 1]);
    table.row("too large", large.said(), "413 RequestBodyTooLarge");
    assert_eq!(stage.get("tab()").ok().json()["value"].as_array().map(Vec::len), Some(0));
    // As some clients write it: LF alone, and no dashes at the end.
    let odd = good.replace("\r\n", "\n").replace("--batch_x--\n", "--batch_x\n");
    let answer = stage.call("POST $batch", &BATCH, odd);
    assert_eq!(parts(&answer)[0].status, 204);
}
