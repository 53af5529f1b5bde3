//! Transactions: what they take, what they refuse, and that a refusal leaves nothing behind.

use crate::harness::Table;
use crate::stage::{ANY, BATCH, Stage, call_signed, change_set, parts, signature};

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
    stage.call("POST Tables", &[], r#"{"TableName":"other"}"#).ok();
    let first = ("PUT tab(PartitionKey='p',RowKey='first')", &[][..], "{}");
    let other = stage.transact(&[first, ("PUT other(PartitionKey='p',RowKey='x')", &[], "{}")]);
    table.row("another table", other[0].said(), "400 CommandsInBatchActOnDifferentPartitions");
    let read = stage.transact(&[first, ("GET tab(PartitionKey='p',RowKey='there')", &[], "")]);
    table.row("a query among changes", read[0].said(), "400 InvalidInput");
    // Two faults: what is wrong with the requests comes before what is wrong with the entities, wherever they stand.
    let both = stage.transact(&[("PUT tab(PartitionKey='p',RowKey='x')", &[ANY], "{}"), (put, &[], "?")]);
    table.row("missing, then no JSON", both[0].said(), "400 InvalidInput");
    let quiet = [("Prefer", "return-no-content")];
    let exists = stage.transact(&[first, ("POST tab", &quiet, r#"{"PartitionKey":"p","RowKey":"there"}"#)]);
    let applied = exists[0].header("preference-applied").unwrap_or_default();
    table.row("what it preferred", applied, "return-no-content");
    table.row("in JSON", exists[0].header("content-type").unwrap_or_default(), JSON_KIND);
    table.row("nothing was left behind", stage.get("tab(PartitionKey='p',RowKey='first')").status, 404);
    let missing = stage.transact(&[("PUT missing(PartitionKey='p',RowKey='r')", &[], "{}")]);
    table.row("no table", missing[0].said(), "404 TableNotFound");
}

const JSON_KIND: &str = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";

#[test]
fn content_ids_come_back_and_only_if_they_were_sent() {
    let stage = Stage::new();
    let with = [("Content-ID", "7")];
    let parts = stage.transact(&[
        ("PUT tab(PartitionKey='p',RowKey='a')", &with, "{}"),
        ("PUT tab(PartitionKey='p',RowKey='b')", &[], "{}"),
    ]);
    assert_eq!((parts[0].header("content-id"), parts[1].header("content-id")), (Some("7"), None));
}

#[test]
fn how_boundaries_are_written() {
    let stage = Stage::new();
    let body = change_set(&[("PUT tab(PartitionKey='p',RowKey='r')", &[], "{}")]);
    for kind in [
        "multipart/mixed; boundary=batch_x",
        "multipart/mixed; boundary=\"batch_x\"",
        "multipart/mixed; charset=utf-8; boundary=batch_x",
        "Multipart/Mixed;BOUNDARY=batch_x",
    ] {
        let answer = stage.call("POST $batch", &[("content-type", kind)], &body);
        assert_eq!((answer.said().as_str(), parts(&answer)[0].status), ("202", 204), "{kind}");
        let told = answer.header("content-type").expect("a type");
        assert!(told.starts_with("multipart/mixed; boundary=batchresponse_"), "{told}");
    }
    // Names of headers in any case, request lines with a path only, and an empty line more than needed.
    let odd = body
        .replace("Content-Type: application/http", "CONTENT-TYPE: application/http")
        .replace("http://127.0.0.1/devstoreaccount1", "/devstoreaccount1")
        .replace("binary\r\n\r\n", "binary\r\n\r\n\r\n");
    assert_eq!(parts(&stage.call("POST $batch", &BATCH, odd))[0].status, 204);
}

#[test]
fn a_signature_must_allow_every_operation() {
    let stage = Stage::new();
    stage.insert("p", "there", "");
    let client = stage.server.client();
    let new = r#"{"PartitionKey":"p","RowKey":"new"}"#;
    let operations =
        [("POST tab", &[][..], new), ("MERGE tab(PartitionKey='p',RowKey='there')", &[ANY][..], r#"{"a":1}"#)];
    let mut table = Table::new("a signature must allow every operation");
    for (letters, expected) in [
        ("a", "403 AuthorizationPermissionMismatch"),
        ("u", "403 AuthorizationPermissionMismatch"),
        ("rd", "403 AuthorizationPermissionMismatch"),
        ("au", "204"),
    ] {
        let signed = signature(&client, &[("sp", letters)]);
        let answer = call_signed(&client, &format!("POST $batch?{signed}"), &BATCH, &change_set(&operations));
        table.row(letters, parts(&answer).pop().expect("a part").said(), expected);
        let is_made = stage.get("tab(PartitionKey='p',RowKey='new')").status;
        table.row(format!("{letters}: made"), is_made, if expected == "204" { 200 } else { 404 });
    }
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
    let nothing = good.split("--changeset_x\r\n").next().expect("its beginning").to_owned();
    let nothing = nothing + "--changeset_x--\r\n--batch_x--\r\n";
    let answer = stage.call("POST $batch", &BATCH, nothing);
    let said = parts(&answer).pop().map_or(answer.said(), |part| part.said());
    table.row("a change set of nothing", said, "400 InvalidInput");
    let query = "--batch_x\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 GET /devstoreaccount1/tab() HTTP/1.1\r\n\r\n";
    for (row, body) in [
        ("a query and a change set", format!("{query}{good}")),
        ("two queries", format!("{query}{query}--batch_x--\r\n")),
    ] {
        table.row(row, stage.call("POST $batch", &BATCH, body).said(), "400 InvalidInput");
    }
    let page = stage.call("POST $batch", &BATCH, format!("{query}--batch_x--\r\n"));
    table.row("one query", parts(&page).pop().expect("a part").status, 200);
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
