use std::fmt::Write as _;

use auth::grant::{GrantKind, KeyBound, Scope};
use auth::{Caller, Grant, Permissions};

use super::*;
use crate::testing::{Bench, refusal, request, text};

const BATCH: [(&str, &str); 1] = [("content-type", "multipart/mixed; boundary=batch_1")];

/// A change set of these operations: request line without version, headers, body.
fn changes(operations: &[(&str, &str, &str)]) -> String {
    let mut body = "--batch_1\r\nContent-Type: multipart/mixed; boundary=\"changeset_1\"\r\n\r\n".to_owned();
    for (line, headers, json) in operations {
        let kind = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary";
        write!(body, "--changeset_1\r\n{kind}\r\n\r\n{line} HTTP/1.1\r\n{headers}\r\n{json}\r\n").unwrap();
    }
    body + "--changeset_1--\r\n--batch_1--\r\n"
}

fn entity(row: &str) -> String {
    format!("http://127.0.0.1:10002/acct/tab(PartitionKey='p',RowKey='{row}')")
}

/// The status of each part, and the whole answer.
async fn send(bench: &Bench, body: &str) -> (Vec<u16>, String) {
    let reply = bench.call("POST", "$batch", &BATCH, body.as_bytes()).await.unwrap();
    assert_eq!(reply.status, 202);
    parts(text(reply).await)
}

fn parts(answer: String) -> (Vec<u16>, String) {
    let lines = answer.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 "));
    (lines.map(|line| line[..3].parse().unwrap()).collect(), answer)
}

#[tokio::test]
async fn the_answer_to_the_byte() {
    let bench = Bench::with_table().await;
    bench.insert("tab", "p", "2", "").await;
    bench.insert("tab", "p", "3", "").await;
    let insert = "POST http://127.0.0.1:10002/acct/tab";
    let body = changes(&[
        (insert, "Prefer: return-no-content\r\nCONTENT-id: 7\r\n", r#"{"PartitionKey":"p","RowKey":"1"}"#),
        (&format!("PUT {}", entity("2")), "if-MATCH: *\r\n", r#"{"v":5}"#),
        (&format!("DELETE {}", entity("3")), "If-Match: *\r\n", ""),
        (insert, "Accept: application/json;odata=nometadata\r\n", r#"{"PartitionKey":"p","RowKey":"4","v":1.0}"#),
    ]);
    let (_, answer) = send(&bench, &body).await;
    let stamps: Vec<&str> = answer.split("W/\"datetime'").skip(1).map(|rest| &rest[..32]).collect();
    let time = |n: usize| stamps[n].replace("%3A", ":");
    let part =
        "--changesetresponse_test\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
    let plain = "X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n";
    let location = "http://127.0.0.1:10002/acct/tab(PartitionKey='p',RowKey='1')";
    let expected = [
        "--batchresponse_test\r\nContent-Type: multipart/mixed; boundary=changesetresponse_test\r\n\r\n".to_owned(),
        format!(
            "{part}HTTP/1.1 204 No Content\r\nContent-ID: 7\r\n{plain}Preference-Applied: return-no-content\r\n\
             DataServiceVersion: 3.0;\r\nDataServiceId: {location}\r\nLocation: {location}\r\n\
             ETag: W/\"datetime'{}'\"\r\n\r\n\r\n",
            stamps[0]
        ),
        format!(
            "{part}HTTP/1.1 204 No Content\r\n{plain}DataServiceVersion: 1.0;\r\nETag: W/\"datetime'{}'\"\r\n\r\n\r\n",
            stamps[1]
        ),
        format!("{part}HTTP/1.1 204 No Content\r\n{plain}DataServiceVersion: 1.0;\r\n\r\n\r\n"),
        format!(
            "{part}HTTP/1.1 201 Created\r\n{plain}DataServiceVersion: 3.0;\r\n\
             Content-Type: application/json;odata=nometadata;streaming=true;charset=utf-8\r\n\
             Location: http://127.0.0.1:10002/acct/tab(PartitionKey='p',RowKey='4')\r\nETag: W/\"datetime'{}'\"\r\n\r\n\
             {{\"PartitionKey\":\"p\",\"RowKey\":\"4\",\"Timestamp\":\"{}\",\"v\":1.0}}\r\n",
            stamps[2],
            time(2)
        ),
        "--changesetresponse_test--\r\n--batchresponse_test--\r\n".to_owned(),
    ];
    assert_eq!(answer, expected.concat());
    assert!(stamps[0] < stamps[1] && stamps[1] < stamps[2], "each has its own timestamp");
    assert_eq!(bench.rows("tab()").await, ["p/1", "p/2", "p/4"]);
}

#[tokio::test]
async fn all_or_nothing_and_the_failing_one_is_named() {
    let bench = Bench::with_table().await;
    bench.insert("tab", "p", "2", ",\"v\":1").await;
    let before = bench.stored();
    let put = |row: &str| format!("PUT {}", entity(row));
    let stale = "If-Match: W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\"\r\n";
    let json = r#"{"v":9}"#;
    let twice = r#"{"PartitionKey":"p","RowKey":"2"}"#;
    let cases: [(&str, &str, &str, u16, &str); 9] = [
        (&put("2"), stale, json, 412, "UpdateConditionNotSatisfied"),
        (&put("9"), "If-Match: *\r\n", json, 404, "ResourceNotFound"),
        ("POST /acct/tab", "", twice, 409, "EntityAlreadyExists"),
        (&format!("DELETE {}", entity("2")), "", "", 400, "MissingRequiredHeader"),
        (&put("1"), "", json, 400, "InvalidDuplicateRow"),
        ("PUT /acct/tab(PartitionKey='q',RowKey='2')", "", json, 400, "CommandsInBatchActOnDifferentPartitions"),
        ("PUT /acct/other(PartitionKey='p',RowKey='2')", "", json, 400, "CommandsInBatchActOnDifferentPartitions"),
        (&put("2"), "", "{", 400, "InvalidInput"),
        (&format!("GET {}", entity("2")), "", "", 400, "InvalidInput"),
    ];
    for (line, headers, json, status, code) in cases {
        let body = changes(&[(&put("1"), "", r#"{"v":1}"#), (line, headers, json), (&put("3"), "", r#"{"v":1}"#)]);
        let (statuses, answer) = send(&bench, &body).await;
        assert_eq!(statuses, [status], "{line}: {answer}");
        assert!(
            answer.contains(&format!(r#"{{"odata.error":{{"code":"{code}","message":{{"lang":"en-US","value":"1:"#)),
            "{answer}"
        );
        assert!(answer.contains("\\nRequestId:test\\nTime:"), "{answer}");
        assert_eq!(bench.stored(), before, "{line}");
    }
}

#[tokio::test]
async fn how_much_a_batch_may_hold() {
    let bench = Bench::with_table().await;
    let lines: Vec<String> = (0..101).map(|n| format!("PUT {}", entity(&n.to_string()))).collect();
    let of = |count: usize| changes(&lines[..count].iter().map(|line| (line.as_str(), "", "{}")).collect::<Vec<_>>());
    let (statuses, answer) = send(&bench, &of(100)).await;
    assert_eq!(statuses, [204; 100]);
    let mut stamps: Vec<&str> = answer.split("ETag: ").skip(1).map(|rest| &rest[..46]).collect();
    stamps.dedup();
    assert_eq!(stamps.len(), 100);
    let (statuses, answer) = send(&bench, &of(101)).await;
    assert!(
        statuses == [400] && answer.contains("0:The batch request operation exceeds the maximum 100 changes"),
        "{answer}"
    );
    let (statuses, answer) = send(&bench, &changes(&[])).await;
    assert!(statuses == [400] && answer.contains("\"InvalidInput\""), "{answer}");
    let large = " ".repeat(BODY_BYTES_MAX + 1);
    let refused = bench.call("POST", "$batch", &BATCH, large.as_bytes()).await;
    assert!(matches!(refused, Err(Failure::Body(_))), "{refused:?}");
}

#[tokio::test]
async fn bodies_that_are_no_batch() {
    let bench = Bench::with_table().await;
    let one = changes(&[(&format!("PUT {}", entity("1")), "", "{}")]);
    let set = one.strip_suffix("--batch_1--\r\n").unwrap();
    for body in ["", "x", "--batch_1\r\n\r\n\r\n--batch_1--", &format!("{set}{one}"), "--batch_1--\r\n"] {
        let refused = refusal(bench.call("POST", "$batch", &BATCH, body.as_bytes()).await);
        assert!(matches!(refused, TableError::InvalidInput(_)), "{body}: {refused:?}");
    }
    let refused = bench.call("POST", "$batch", &[("content-type", "application/json")], one.as_bytes()).await;
    assert!(matches!(refusal(refused), TableError::InvalidInput(_)));
    assert_eq!(bench.rows("tab()").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_query_stands_by_itself() {
    let bench = Bench::with_table().await;
    bench.insert("tab", "p", "1", "").await;
    let ask = |line: &str| {
        format!(
            "--batch_1\r\nContent-Type: application/http\r\n\r\n{line} HTTP/1.1\r\nAccept: application/json;odata=nometadata\r\n\r\n--batch_1--\r\n"
        )
    };
    let (statuses, answer) = send(&bench, &ask(&format!("GET {}", entity("1")))).await;
    assert!(statuses == [200] && answer.contains("{\"PartitionKey\":\"p\",\"RowKey\":\"1\""), "{answer}");
    let (statuses, answer) = send(&bench, &ask("GET /acct/tab()?$filter=RowKey%20eq%20'1'")).await;
    assert!(statuses == [200] && answer.contains("{\"value\":[{"), "{answer}");
    assert_eq!(send(&bench, &ask(&format!("GET {}", entity("2")))).await.0, [404]);
    assert_eq!(send(&bench, &ask("GET /acct/missing()")).await.0, [404]);
    assert_eq!(send(&bench, &ask(&format!("DELETE {}", entity("1")))).await.0, [400]);
}

#[test]
fn request_lines() {
    let outer = request("POST", "$batch", &[]);
    let mut host = request("POST", "$batch", &[]);
    host.endpoint = "https://acct.table.localhost:10002".into();
    let resource = |outer: &Head, line: &str| target(outer, line).map(|(resource, _)| resource.into_owned());
    for line in ["http://x/acct/tab()", "/acct/tab()", "acct/tab()", "tab()", "/tab()", "http://x/acct-secondary/tab()"]
    {
        assert_eq!(resource(&outer, line).as_deref(), Some("tab()"), "{line}");
    }
    for line in ["https://acct.table.localhost/tab()", "/tab()", "tab()"] {
        assert_eq!(resource(&host, line).as_deref(), Some("tab()"), "{line}");
    }
    assert_eq!(resource(&outer, "/acct/tab(PartitionKey='a%2Fb')").as_deref(), Some("tab(PartitionKey='a/b')"));
    assert_eq!(resource(&outer, "/acct/%zz"), None);
    let (_, query) = target(&outer, "/acct/tab()?$top=5&$filter=a%20b").unwrap();
    assert_eq!((query.get("$top"), query.get("$filter")), (Some("5"), Some("a b")));
}

fn signed(permissions: &str, end: Option<&str>) -> Caller {
    let scope = Scope::Table {
        name: "tab".into(),
        start: KeyBound::default(),
        end: KeyBound { partition: end.map(Into::into), row: None },
    };
    Caller::Sas(Grant {
        kind: GrantKind::Service(scope),
        permissions: Permissions::of(permissions),
        overrides: None,
        encryption_scope: None,
        delegation: None,
    })
}

#[tokio::test]
async fn each_operation_needs_its_right() {
    let bench = Bench::with_table().await;
    bench.create("other").await;
    let put = format!("PUT {}", entity("1"));
    let json = r#"{"PartitionKey":"p","RowKey":"9"}"#;
    type Case<'a> = (&'a str, Option<&'a str>, &'a [(&'a str, &'a str, &'a str)], &'a [u16]);
    let cases: [Case<'_>; 7] = [
        ("au", None, &[(&put, "", "{}")], &[204]),
        ("a", None, &[(&put, "", "{}")], &[403]),
        ("u", None, &[(&put, "If-Match: *\r\n", "{}")], &[204]),
        ("u", None, &[(&put, "If-Match: *\r\n", "{}"), ("POST /acct/tab", "", json)], &[403]),
        ("raud", Some("o"), &[(&put, "", "{}")], &[403]),
        ("raud", Some("p"), &[(&put, "", "{}")], &[204]),
        ("raud", None, &[("PUT /acct/other(PartitionKey='p',RowKey='1')", "", "{}")], &[403]),
    ];
    for (permissions, end, operations, expected) in cases {
        let head = request("POST", "$batch", &BATCH);
        let reply = bench.send_as(&signed(permissions, end), head, changes(operations).as_bytes()).await.unwrap();
        let (statuses, answer) = parts(text(reply).await);
        assert_eq!(statuses, expected, "{permissions} {end:?}: {answer}");
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let head = request("POST", "$batch", &BATCH);
    let good =
        changes(&[(&format!("PUT {}", entity("1")), "If-Match: *\r\n", "{}"), ("POST /acct/tab", "", "{\"a\":1}")]);
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    for _ in 0..20_000 {
        let mut body = good.clone().into_bytes();
        for _ in 0..3 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let at = (seed >> 8) as usize % body.len();
            match seed % 3 {
                0 => body[at] = (seed >> 40) as u8,
                1 => body.truncate(at + 1),
                _ => _ = body.remove(at),
            }
            if body.is_empty() {
                break;
            }
        }
        if let Ok(Batch::Changes(inner)) = Batch::parse(&head, &body) {
            for operation in inner {
                if let Ok(op) = Op::named_in(&operation) {
                    let _ = EntityWrite::parse(op, &operation, operation.body);
                }
            }
        }
    }
}

#[test]
fn a_part_for_another_account_is_refused() {
    let head = |endpoint: &str| Head { endpoint: endpoint.to_owned(), ..request("POST", "$batch", &[]) };
    let path_style = head("http://127.0.0.1:10002/acct");
    let host_style = head("https://acct.table.host:10002");
    for (outer, line, expected) in [
        (&path_style, "http://127.0.0.1:10002/acct/tab", Some("tab")),
        (&path_style, "/acct/tab", Some("tab")),
        (&path_style, "/acct-secondary/tab", Some("tab")),
        (&path_style, "/tab", Some("tab")),
        (&path_style, "/tab(PartitionKey='a%2Fb',RowKey='')", Some("tab(PartitionKey='a/b',RowKey='')")),
        (&path_style, "/tab(PartitionKey='a/b',RowKey='')", Some("tab(PartitionKey='a/b',RowKey='')")),
        (&path_style, "http://127.0.0.1:10002/other/tab", None),
        (&path_style, "/other/tab", None),
        (&path_style, "/other/tab(PartitionKey='p',RowKey='r')", None),
        (&host_style, "https://acct.table.host:10002/tab", Some("tab")),
        (&host_style, "https://acct-secondary.table.host/tab", Some("tab")),
        (&host_style, "https://ACCT.table.host/tab", Some("tab")),
        (&host_style, "/tab", Some("tab")),
        (&host_style, "https://other.table.host:10002/tab", None),
        (&host_style, "https://acct2.table.host:10002/tab", None),
        (&host_style, "/other/tab", None),
    ] {
        let found = target(outer, line).map(|(resource, _)| resource.into_owned());
        assert_eq!(found.as_deref(), expected, "{line} in {}", outer.endpoint);
    }
}
