//! Signatures for a queue: what each letter allows, with and without a stored policy.

use auth::Key;

use crate::harness::{Answer, Client, Table};
use crate::stage::{Stage, body};

const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const END: &str = "2099-01-01T00:00:00Z";
const VERSION: &str = "2026-10-06";

fn signed(fields: &str) -> String {
    let signature = Key::from_base64(KEY).expect("the well-known key").sign(fields.as_bytes());
    signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

/// A signature for one queue.
fn for_queue(queue: &str, letters: &str) -> String {
    let signature = signed(&format!("{letters}\n\n{END}\n/queue/devstoreaccount1/{queue}\n\n\n\n{VERSION}"));
    format!("sv={VERSION}&sp={letters}&se={END}&sig={signature}")
}

/// A signature that leaves everything to a stored policy.
fn by_policy(queue: &str, policy: &str) -> String {
    let signature = signed(&format!("\n\n\n/queue/devstoreaccount1/{queue}\n{policy}\n\n\n{VERSION}"));
    format!("sv={VERSION}&si={policy}&sig={signature}")
}

/// A signature for the account's queues.
pub fn for_account(letters: &str, types: &str) -> String {
    let signature = signed(&format!("devstoreaccount1\n{letters}\nq\n{types}\n\n{END}\n\n\n{VERSION}\n\n"));
    format!("sv={VERSION}&ss=q&srt={types}&sp={letters}&se={END}&sig={signature}")
}

fn ask(client: &Client, line: &str, signature: &str, body: &str) -> Answer {
    let glue = if line.contains('?') { '&' } else { '?' };
    let line = format!("{line}{glue}{signature}");
    let head = client.unsigned_head(&line, &[("content-length", &body.len().to_string())]);
    client.call_odd(&line, &head, body.as_bytes())
}

/// Each request, the letter that allows it on a queue, and those that allow it on the account, with the resource type.
const REQUESTS: &[(&str, &str, &str, &str)] = &[
    ("GET ?comp=list", "", "l", "s"),
    ("GET ?restype=service&comp=properties", "", "r", "s"),
    ("PUT ?restype=service&comp=properties", "", "w", "s"),
    ("PUT que", "", "cw", "c"),
    ("DELETE none", "", "d", "c"),
    ("GET que?comp=metadata", "r", "r", "c"),
    ("PUT que?comp=metadata", "", "w", "c"),
    ("GET que?comp=acl", "", "", "c"),
    ("PUT que?comp=acl", "", "", "c"),
    ("POST que/messages", "a", "a", "o"),
    ("GET que/messages", "p", "p", "o"),
    ("GET que/messages?peekonly=true", "r", "r", "o"),
    ("DELETE que/messages/x?popreceipt=y", "p", "p", "o"),
    ("PUT que/messages/x?popreceipt=y&visibilitytimeout=0", "u", "u", "o"),
    ("DELETE que/messages", "", "d", "o"),
];

fn body_of(line: &str) -> String {
    match line {
        "POST que/messages" => body("x"),
        "PUT ?restype=service&comp=properties" => "<StorageServiceProperties/>".to_owned(),
        _ => String::new(),
    }
}

#[test]
fn each_letter_allows_its_own() {
    let stage = Stage::new();
    let mut table = Table::new("rights: letters");
    for (line, service, account, kind) in REQUESTS {
        let document = body_of(line);
        for letter in ["r", "a", "u", "p"] {
            let answer = ask(&stage.client, line, &for_queue("que", letter), &document);
            let row = format!("{line} with {letter} of the queue");
            match (service.contains(letter), service.is_empty()) {
                (true, _) => table.row(row, answer.status == 403, false),
                // What is never allowed, or lies outside of the queue.
                (false, true) => table.row(row, answer.status, 403),
                (false, false) => table.row(row, answer.said(), "403 AuthorizationPermissionMismatch"),
            }
        }
        for letter in ["r", "w", "d", "l", "a", "c", "u", "p"] {
            let answer = ask(&stage.client, line, &for_account(letter, kind), &document);
            let row = format!("{line} with {letter} of the account");
            match (account.contains(letter), account.is_empty()) {
                (true, _) => table.row(row, answer.status == 403, false),
                (false, true) => table.row(row, answer.said(), "403 AuthorizationFailure"),
                (false, false) => table.row(row, answer.said(), "403 AuthorizationPermissionMismatch"),
            }
            for other in ["s", "c", "o"].into_iter().filter(|other| other != kind && !account.is_empty()) {
                let answer = ask(&stage.client, line, &for_account(letter, other), &document);
                table.row(format!("{line} for {other}"), answer.said(), "403 AuthorizationResourceTypeMismatch");
            }
        }
    }
}

#[test]
fn a_signature_is_for_its_queue_only() {
    let stage = Stage::new();
    stage.call("PUT other", &[], "").ok();
    let signature = for_queue("que", "raup");
    assert_eq!(ask(&stage.client, "POST que/messages", &signature, &body("x")).said(), "201");
    let refused = ask(&stage.client, "POST other/messages", &signature, &body("x"));
    assert_eq!(refused.said(), "403 AuthenticationFailed");
}

#[test]
fn a_stored_policy_decides_as_soon_as_it_is_set() {
    let stage = Stage::new();
    let signature = by_policy("que", "one");
    let put = |document: &str| ask(&stage.client, "POST que/messages", &signature, document).said();
    assert_eq!(put(&body("x")), "403 AuthenticationFailed");
    let set = |letters: &str| {
        let policy = format!("<AccessPolicy><Expiry>{END}</Expiry><Permission>{letters}</Permission></AccessPolicy>");
        let document =
            format!("<SignedIdentifiers><SignedIdentifier><Id>one</Id>{policy}</SignedIdentifier></SignedIdentifiers>");
        stage.call("PUT que?comp=acl", &[], document).ok();
    };
    set("a");
    assert_eq!(put(&body("x")), "201");
    assert_eq!(ask(&stage.client, "GET que/messages", &signature, "").said(), "403 AuthorizationPermissionMismatch");
    set("p");
    assert_eq!(put(&body("x")), "403 AuthorizationPermissionMismatch");
    assert_eq!(ask(&stage.client, "GET que/messages", &signature, "").said(), "200");
    stage.call("PUT que?comp=acl", &[], "").ok();
    assert_eq!(put(&body("x")), "403 AuthenticationFailed");
}
