//! Blob Batch: several deletes or tier changes in one request, each judged by itself.

use wire::multipart;

use crate::harness::{Answer, Table};
use crate::stage::{A, Stage};

const TYPE: (&str, &str) = ("content-type", "multipart/mixed; boundary=batch_1");

/// A batch of requests, each with its own signature.
fn batch(requests: &[String]) -> String {
    let part = |(id, request): (usize, &String)| {
        format!(
            "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: {id}\r\n\r\n{request}\r\n"
        )
    };
    requests.iter().enumerate().map(part).collect::<String>() + "--batch_1--\r\n"
}

fn delete(stage: &Stage, blob: &str) -> String {
    stage.client.head(&format!("DELETE {blob}"), &[], None)
}

/// The id, the status and the error code of every part.
fn told(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 202);
    let kind = answer.header("content-type").expect("a type");
    let boundary = multipart::boundary(kind).expect("a boundary");
    assert!(boundary.starts_with("batchresponse_"), "{boundary}");
    assert!(answer.body.ends_with(format!("\r\n--{boundary}--").as_bytes()), "nothing follows the last delimiter");
    let extra = [b"\r\n\r\n\r\n--", boundary.as_bytes()].concat();
    assert!(!answer.body.windows(extra.len()).any(|bytes| bytes == extra), "one empty line ends a head");
    let parts = multipart::parts(&answer.body, boundary, 1_000).expect("parts");
    let told = parts.iter().map(|part| {
        let id = part.headers.text("content-id").unwrap_or("none");
        assert_eq!(part.headers.text("content-type"), Some("application/http"));
        let text = std::str::from_utf8(part.content).expect("text");
        // Of an answer without a body the empty line is that before the delimiter.
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.strip_prefix("HTTP/1.1 ").expect("a status line").get(..3).expect("a status");
        let header = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.map(str::to_owned)
        };
        assert!(header("x-ms-request-id").is_some() && header("x-ms-version").is_some(), "{head}");
        assert_eq!(header("content-length"), Some(body.trim_end_matches("\r\n").len().to_string()), "{head}");
        match header("x-ms-error-code") {
            Some(code) => {
                assert!(body.contains(&format!("<Code>{code}</Code>")), "{body}");
                format!("{id}: {status} {code}")
            }
            None => format!("{id}: {status}"),
        }
    });
    told.collect()
}

#[test]
fn each_part_has_an_answer_of_its_own() {
    let stage = Stage::new();
    stage.put("cont/one", "1");
    stage.put("cont/leased", "2");
    stage.put("cont/a%20b/%C3%A4", "3");
    stage.acquire("cont/leased", A, "-1");
    let mut wrong = delete(&stage, "cont/one");
    wrong = wrong.replace("devstoreaccount1:", "devstoreaccount1:AAAA");
    let requests = [
        wrong,
        delete(&stage, "cont/one"),
        delete(&stage, "cont/none"),
        delete(&stage, "cont/leased"),
        delete(&stage, "cont/a%20b/%C3%A4"),
        delete(&stage, "nowhere/blob"),
        "DELETE /devstoreaccount1/cont/leased HTTP/1.1\r\n\r\n".to_owned(),
    ];
    let answer = stage.call("POST ?comp=batch", &[TYPE], batch(&requests));
    let expected = [
        "0: 403 AuthenticationFailed",
        "1: 202",
        "2: 404 BlobNotFound",
        "3: 412 LeaseIdMissing",
        "4: 202",
        "5: 404 ContainerNotFound",
        // A part says no version, and without one a stranger is told that there is nothing.
        "6: 404 ResourceNotFound",
    ];
    assert_eq!(told(&answer), expected);
    let left = stage.get("cont?restype=container&comp=list").xml();
    assert_eq!(left.all("Blobs").len(), 1);
}

#[test]
fn as_many_as_there_may_be() {
    let stage = Stage::new();
    for count in 0..256 {
        stage.put(&format!("cont/{count}"), "x");
    }
    let mut requests: Vec<String> = (0..257).map(|count| delete(&stage, &format!("cont/{count}"))).collect();
    let answer = stage.call("POST ?comp=batch", &[TYPE], batch(&requests));
    assert_eq!(told(&answer), ["none: 400 ExceedsMaxBatchRequestCount"]);
    requests.pop();
    let answer = stage.call("POST cont?restype=container&comp=batch", &[TYPE], batch(&requests));
    let expected: Vec<String> = (0..256).map(|count| format!("{count}: 202")).collect();
    assert_eq!(told(&answer), expected);
    assert!(stage.get("cont?restype=container&comp=list").xml().all("Blobs").is_empty());
}

#[test]
fn what_is_no_batch_changes_nothing() {
    let stage = Stage::new();
    stage.put("cont/blob", "old");
    stage.call("PUT other?restype=container", &[], "").ok();
    stage.put("other/blob", "old");
    let before = stage.everything();
    let (one, tier) = (delete(&stage, "cont/blob"), [("x-ms-access-tier", "Cool")]);
    let tier = stage.client.head("PUT cont/blob?comp=tier", &tier, Some(0));
    let read = stage.client.head("GET cont/blob", &[], None);
    let inner = stage.client.head("POST ?comp=batch", &[], Some(0));
    let all = "POST ?comp=batch";
    let mut table = Table::new("blob_batch");
    for (row, line, body, expected) in [
        ("two kinds", all, batch(&[one.clone(), tier]), "none: 400 AllBatchSubRequestsShouldBeSameApi"),
        ("a read", all, batch(&[one.clone(), read]), "none: 400 InvalidInput"),
        ("a batch", all, batch(&[inner]), "none: 400 InvalidInput"),
        ("nothing", all, batch(&[]), "none: 400 InvalidInput"),
        ("no parts", all, "DELETE".to_owned(), "none: 400 InvalidInput"),
        ("cut short", all, batch(std::slice::from_ref(&one)).replace("--batch_1--", ""), "none: 400 InvalidInput"),
        ("no request", all, batch(&["DELETE".to_owned()]), "none: 400 InvalidInput"),
        (
            "another container",
            "POST other?restype=container&comp=batch",
            batch(std::slice::from_ref(&one)),
            "none: 400 InvalidInput",
        ),
    ] {
        let answer = stage.call(line, &[TYPE], body);
        table.row(row, told(&answer).join(", "), expected);
    }
    for (row, kind) in [
        ("no type", ""),
        ("no boundary", "multipart/mixed"),
        ("an empty boundary", "multipart/mixed; boundary="),
        ("an empty boundary in quotes", "multipart/mixed; boundary=\"\""),
    ] {
        let answer = stage.call(all, &[("content-type", kind)], batch(std::slice::from_ref(&one)));
        table.row(row, told(&answer).join(", "), "none: 400 InvalidHeaderValue");
    }
    let large = [batch(std::slice::from_ref(&one)), "x".repeat(4 << 20)].concat();
    table.row("too large", stage.call(all, &[TYPE], large).said(), "413 RequestBodyTooLarge");
    let unsigned = stage.client.unsigned_head(all, &[TYPE, ("content-length", "0")]);
    let refused = stage.client.call_odd(all, &unsigned, b"");
    table.row("nobody", refused.said(), "401 NoAuthenticationInformation");
    assert_eq!(stage.everything(), before);
}
