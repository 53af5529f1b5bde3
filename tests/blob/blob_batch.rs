//! Blob Batch: several deletes or tier changes in one request, each judged by itself.

use wire::multipart;

use crate::harness::{Answer, Table};
use crate::stage::{A, B, BLOCK_BLOB, Stage};

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

/// What may stand against deleting a blob or changing its tier, made for a blob. Returns what addresses an earlier state of it.
fn protect(stage: &Stage, blob: &str, by: &str) -> String {
    let call = |query: &str, headers| stage.call(&format!("PUT {blob}?{query}"), headers, "").ok();
    stage.call(&format!("PUT {blob}"), &[BLOCK_BLOB, ("x-ms-tags", "a=1")], "first").ok();
    match by {
        "nothing" => String::new(),
        "a lease" => {
            stage.acquire(blob, A, "-1");
            String::new()
        }
        "a legal hold" => {
            call("comp=legalhold", &[("x-ms-legal-hold", "true")]);
            String::new()
        }
        "a policy" => {
            call("comp=immutabilityPolicies", &[("x-ms-immutability-policy-until-date", FAR)]);
            String::new()
        }
        "a snapshot" | "a held snapshot" => {
            let made = call("comp=snapshot", &[]);
            let snapshot = format!("snapshot={}", made.header("x-ms-snapshot").expect("its time"));
            if by == "a held snapshot" {
                call(&format!("comp=legalhold&{snapshot}"), &[("x-ms-legal-hold", "true")]);
            }
            snapshot
        }
        "a version" | "a held version" => {
            let made = stage.head(blob);
            let version = format!("versionid={}", made.header("x-ms-version-id").expect("its id"));
            if by == "a held version" {
                call(&format!("comp=legalhold&{version}"), &[("x-ms-legal-hold", "true")]);
            }
            stage.put(blob, "second");
            version
        }
        other => panic!("{other}"),
    }
}

const FAR: &str = "Sun, 15 Nov 2099 18:00:00 GMT";
const PAST: &str = "Sun, 15 Nov 2009 18:00:00 GMT";

/// A part gets the answer that the same request gets by itself, whatever protects the blob and whatever the part says. All that
/// is in a batch is walked as a request of its own, so no rule can be left out on the way.
#[test]
fn a_part_is_judged_as_the_request_by_itself() {
    let stage = Stage::with_settings("versioning = true\nblob_soft_delete_days = 7");
    let protections = [
        "nothing",
        "a lease",
        "a legal hold",
        "a policy",
        "a snapshot",
        "a held snapshot",
        "a version",
        "a held version",
    ];
    let said: [&[(&str, &str)]; 9] = [
        &[],
        &[("x-ms-lease-id", A)],
        &[("x-ms-lease-id", B)],
        &[("if-match", "\"0x1\"")],
        &[("if-none-match", "*")],
        &[("if-modified-since", FAR)],
        &[("if-unmodified-since", PAST)],
        &[("x-ms-if-tags", "a='2'")],
        &[("x-ms-delete-snapshots", "include")],
    ];
    let mut table = Table::new("parts");
    let mut count = 0;
    for by in protections {
        for (verb, comp, own) in [("DELETE", "", None), ("PUT", "comp=tier", Some(("x-ms-access-tier", "Cool")))] {
            for more in said {
                // The current state, the earlier one, and the earlier one for good.
                for form in ["", "earlier", "earlier&deletetype=permanent"] {
                    let names = [format!("cont/alone{count}"), format!("cont/part{count}")];
                    count += 1;
                    let earlier = names.each_ref().map(|name| protect(&stage, name, by));
                    if !form.is_empty() && earlier[0].is_empty() || form.ends_with("permanent") && verb == "PUT" {
                        continue;
                    }
                    let headers: Vec<(&str, &str)> = own.into_iter().chain(more.iter().copied()).collect();
                    let line = |at: usize| {
                        let query: Vec<String> = [comp.to_owned(), form.replace("earlier", &earlier[at])]
                            .into_iter()
                            .filter(|part| !part.is_empty())
                            .collect();
                        let mark = if query.is_empty() { "" } else { "?" };
                        format!("{verb} {}{mark}{}", names[at], query.join("&"))
                    };
                    let alone = stage.call(&line(0), &headers, "");
                    let part = stage.client.head(&line(1), &headers, (verb == "PUT").then_some(0));
                    let parts = told(&stage.call("POST ?comp=batch", &[TYPE], batch(&[part])));
                    let row = format!("{by}: {verb} {form} {more:?}");
                    table.row(&row, &parts[0], format!("0: {}", alone.said()));
                    // And the same is left of both.
                    let left = names.each_ref().map(|name| {
                        let include = "versions,snapshots,deleted,legalhold,immutabilitypolicy";
                        let prefix = name.strip_prefix("cont/").expect("its container");
                        let list =
                            stage.get(&format!("cont?restype=container&comp=list&include={include}&prefix={prefix}"));
                        let states = list.xml();
                        let states = states.all("Blobs").iter().map(|state| {
                            let text = |path: &str| state.text_of(path).unwrap_or_default();
                            let paths = [
                                "Deleted",
                                "IsCurrentVersion",
                                "Properties/Content-Length",
                                "Properties/AccessTier",
                                "Properties/LegalHold",
                            ];
                            paths.map(text).join(" ")
                        });
                        states.collect::<Vec<String>>()
                    });
                    table.row(format!("{row} leaves"), format!("{:?}", left[1]), format!("{:?}", left[0]));
                }
            }
        }
    }
}
