//! What holders of a token, of a key made for them, and of nothing may do with queues and tables. What the letters of other
//! signatures allow stands in the tests of each service.

mod support;

use auth::Tokens;
use support::{
    ACCOUNT, Answer, Choice, Client, OID, Running, TID, bearer, by_owner, element, escaped, now, raw, start_as,
    with_query,
};

/// Who may send a request.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Token {
    /// Also who has a token.
    Yes,
    /// Only who has the key of the account.
    No,
    /// Only who has a token.
    Only,
}
use Token::{No, Only, Yes};

/// An operation, a request that names it, whether a token is enough, and the letter that allows it to who signs with a key
/// that was made for a user; an empty one for what such a signature never allows.
type Row<Op> = (Op, &'static str, &'static str, Token, &'static str);

const PROPERTIES: &str = "/acct?restype=service&comp=properties";
const STATS: &str = "/acct-secondary?restype=service&comp=stats";
const KEY: &str = "/acct?restype=service&comp=userdelegationkey";
const ENTITY: &str = "/acct/none(PartitionKey='p',RowKey='r')";
const MESSAGE: &str = "/acct/none/messages/x?popreceipt=y&visibilitytimeout=0";

/// There is no queue `none`: whoever gets past the door is told so.
#[rustfmt::skip]
fn queues() -> Vec<Row<queue::Op>> {
    use queue::Op;
    vec![
        (Op::ListQueues,                "GET",    "/acct?comp=list",                    Yes,  ""),
        (Op::GetQueueServiceProperties, "GET",    PROPERTIES,                           Yes,  ""),
        (Op::SetQueueServiceProperties, "PUT",    PROPERTIES,                           Yes,  ""),
        (Op::GetQueueServiceStats,      "GET",    STATS,                                Yes,  ""),
        (Op::GetUserDelegationKey,      "POST",   KEY,                                  Only, ""),
        (Op::CreateQueue,               "PUT",    "/acct/new",                          Yes,  ""),
        (Op::DeleteQueue,               "DELETE", "/acct/none",                         Yes,  ""),
        (Op::GetQueueMetadata,          "GET",    "/acct/none?comp=metadata",           Yes,  "r"),
        (Op::SetQueueMetadata,          "PUT",    "/acct/none?comp=metadata",           Yes,  ""),
        (Op::GetQueueAcl,               "GET",    "/acct/none?comp=acl",                No,   ""),
        (Op::SetQueueAcl,               "PUT",    "/acct/none?comp=acl",                No,   ""),
        (Op::PutMessage,                "POST",   "/acct/none/messages",                Yes,  "a"),
        (Op::GetMessages,               "GET",    "/acct/none/messages",                Yes,  "p"),
        (Op::PeekMessages,              "GET",    "/acct/none/messages?peekonly=true",  Yes,  "r"),
        (Op::ClearMessages,             "DELETE", "/acct/none/messages",                Yes,  ""),
        (Op::UpdateMessage,             "PUT",    MESSAGE,                              Yes,  "u"),
        (Op::DeleteMessage,             "DELETE", MESSAGE,                              Yes,  "p"),
    ]
}

/// There is no table `none` either. Clients of tables have no keys made for users.
#[rustfmt::skip]
fn tables() -> Vec<Row<table::Op>> {
    use table::Op;
    vec![
        (Op::GetTableServiceProperties, "GET",    PROPERTIES,                           Yes,  ""),
        (Op::SetTableServiceProperties, "PUT",    PROPERTIES,                           Yes,  ""),
        (Op::GetTableServiceStats,      "GET",    STATS,                                Yes,  ""),
        (Op::QueryTables,               "GET",    "/acct/Tables",                       Yes,  ""),
        (Op::CreateTable,               "POST",   "/acct/Tables",                       Yes,  ""),
        (Op::DeleteTable,               "DELETE", "/acct/Tables('none')",               Yes,  ""),
        (Op::GetTableAcl,               "GET",    "/acct/none?comp=acl",                No,   ""),
        (Op::SetTableAcl,               "PUT",    "/acct/none?comp=acl",                No,   ""),
        (Op::QueryEntities,             "GET",    "/acct/none()",                       Yes,  ""),
        (Op::InsertEntity,              "POST",   "/acct/none",                         Yes,  ""),
        (Op::UpdateEntity,              "PUT",    ENTITY,                               Yes,  ""),
        (Op::MergeEntity,               "MERGE",  ENTITY,                               Yes,  ""),
        (Op::InsertOrReplaceEntity,     "PUT",    ENTITY,                               Yes,  ""),
        (Op::InsertOrMergeEntity,       "MERGE",  ENTITY,                               Yes,  ""),
        (Op::DeleteEntity,              "DELETE", ENTITY,                               Yes,  ""),
        (Op::EntityGroupTransaction,    "POST",   "/acct/$batch",                       Yes,  ""),
    ]
}

#[test]
fn every_operation_stands_in_a_table() {
    for op in queue::Op::ALL.iter().filter(|op| **op != queue::Op::PreflightQueueRequest) {
        assert!(queues().iter().any(|row| row.0 == *op), "{} is missing", op.name());
    }
    for op in table::Op::ALL.iter().filter(|op| **op != table::Op::PreflightTableRequest) {
        assert!(tables().iter().any(|row| row.0 == *op), "{} is missing", op.name());
    }
}

fn server() -> Running {
    start_as(Choice { tls: true, tokens: Tokens::basic(), ..Choice::default() })
}

fn is_refused(answer: &Answer) -> bool {
    let code = answer.code();
    code.starts_with("Auth") || code.contains("AuthenticationInformation") || matches!(answer.status, 401 | 403)
}

/// Asks in all ways. `ResourceNotFound` is what those are told who must not know whether there is something.
fn judge<Op>(rows: &[Row<Op>], client: &mut Client, if_match: impl Fn(&Op) -> bool) {
    for (op, method, target, token, _) in rows {
        let name = format!("{method} {target}");
        let condition = if if_match(op) { "If-Match: *\r\n" } else { "" };
        let answer = client.ask(&raw(method, target, &format!("{condition}{}", bearer()), b""));
        match token {
            Yes | Only => assert!(!is_refused(&answer), "{name}: {} {}", answer.status, answer.code()),
            No => assert_eq!((answer.status, answer.code()), (404, "ResourceNotFound"), "{name}"),
        }
        let nobody = format!("{condition}x-ms-version: 2021-12-02\r\n");
        let answer = client.ask(&raw(method, target, &nobody, b""));
        assert_eq!((answer.status, answer.code()), (401, "NoAuthenticationInformation"), "{name}");
        assert!(answer.header("www-authenticate").contains("resource_id="), "{name}");
    }
}

#[test]
fn queues_by_a_token_and_by_nothing() {
    let server = server();
    judge(&queues(), &mut Client::secure(server.queue), |_| false);
    let mut client = Client::secure(server.queue);
    for (_, method, target, token, _) in queues() {
        let answer = client.ask(&by_owner(method, target, "", b""));
        assert_eq!(is_refused(&answer), token == Only, "{method} {target}: {} {}", answer.status, answer.code());
    }
}

#[test]
fn tables_by_a_token_and_by_nothing() {
    use table::Op;
    let server = server();
    let is_conditional = |op: &Op| matches!(op, Op::UpdateEntity | Op::MergeEntity | Op::DeleteEntity);
    judge(&tables(), &mut Client::secure(server.table), is_conditional);
}

/// A user asks for a key, and signs with it for one queue.
#[test]
fn a_user_signs_for_a_queue() {
    let server = server();
    let mut client = Client::secure(server.queue);
    for queue in ["mine", "other"] {
        assert_eq!(client.ask(&raw("PUT", &format!("/acct/{queue}"), &bearer(), b"")).status, 201);
    }
    let expiry = now().plus_ticks(3600 * 10_000_000);
    let info = format!("<KeyInfo><Expiry>{}</Expiry></KeyInfo>", wire::dates::iso_seconds(expiry));
    let told = client.ask(&raw("POST", KEY, &bearer(), info.as_bytes()));
    assert_eq!(told.status, 200, "{}", told.text());
    let told = told.text();
    assert_eq!((element(told, "SignedOid"), element(told, "SignedService")), (OID, "q"));
    let key = auth::Key::from_base64(element(told, "Value")).unwrap();
    let (skt, ske, skv) = (element(told, "SignedStart"), element(told, "SignedExpiry"), element(told, "SignedVersion"));
    let sign = |queue: &str, sp: &str, sv: &str, oid: &str| {
        let resource = format!("/queue/{ACCOUNT}/{queue}");
        let text = [sp, "", ske, &resource, oid, TID, skt, ske, "q", skv, "", "", "", "", sv].join("\n");
        let signature = escaped(&key.sign(text.as_bytes()));
        format!("sv={sv}&sp={sp}&se={ske}&skoid={oid}&sktid={TID}&skt={skt}&ske={ske}&sks=q&skv={skv}&sig={signature}")
    };
    const SV: &str = "2025-07-05";
    let mut ask = |method: &str, target: &str, query: String, body: &str| {
        let answer = client.ask(&raw(method, &with_query(target, &query), "", body.as_bytes()));
        if answer.code().is_empty() {
            answer.status.to_string()
        } else {
            format!("{} {}", answer.status, answer.code())
        }
    };
    let message = "<QueueMessage><MessageText>x</MessageText></QueueMessage>";
    let mine = "/acct/mine/messages";
    assert_eq!(ask("POST", mine, sign("mine", "a", SV, OID), message), "201");
    assert_eq!(ask("GET", mine, sign("mine", "p", SV, OID), ""), "200");
    assert_eq!(ask("GET", mine, sign("mine", "a", SV, OID), ""), "403 AuthorizationPermissionMismatch");
    // It is for one queue, of one user, and for versions that have it.
    assert_eq!(ask("GET", "/acct/other/messages", sign("mine", "p", SV, OID), ""), "403 AuthenticationFailed");
    assert_eq!(ask("GET", mine, sign("mine", "p", SV, TID), ""), "403 AuthenticationFailed");
    assert_eq!(ask("GET", mine, sign("mine", "p", "2025-05-05", OID), ""), "403 AuthenticationFailed");
    // Each letter allows what the table says, and nothing else.
    for (op, method, target, _, letters) in queues() {
        let target = target.replace("/none", "/mine");
        if !target.starts_with("/acct/mine") {
            continue;
        }
        for letter in ["r", "a", "u", "p"] {
            let said = ask(method, &target, sign("mine", letter, SV, OID), "");
            let is_allowed = !said.starts_with("403 ");
            assert_eq!(is_allowed, letters.contains(letter), "{} with {letter}: {said}", op.name());
        }
    }
}
