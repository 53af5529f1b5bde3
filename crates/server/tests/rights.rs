//! Which right every operation needs under each kind of credential, written out, and that it is refused without.

mod support;

use auth::Tokens;
use blob::Op;
use support::{
    Answer, Choice, Client, account_sas, bearer, by_owner, raw, service_sas, signed, start, start_as, with_query,
};

/// One request and who may send it.
struct Row {
    op: Op,
    method: &'static str,
    target: &'static str,
    headers: &'static str,
    account: Account,
    service: Signed,
    token: Token,
    anonymous: Public,
}

/// The resource types of which an account signature must have one, and the letters of which it must have one.
#[derive(Clone, Copy)]
enum Account {
    Of(&'static str, &'static str),
    Never,
}

/// The letters of which a service signature must have one.
#[derive(Clone, Copy, PartialEq)]
enum Signed {
    OneOf(&'static str),
    Never,
}

/// Access lists and account information were closed to tokens once; the newest service opens them, as its clients' tests show.
#[derive(Clone, Copy, PartialEq)]
enum Token {
    Yes,
    /// And nobody else.
    Only,
}

/// What must be public for those who show nothing.
#[derive(Clone, Copy, PartialEq)]
enum Public {
    Never,
    Blob,
    Container,
}

use Account::Of;
use Public::{Blob, Container, Never};
use Signed::OneOf;
use Token::{Only, Yes};

const NOT: Signed = Signed::Never;
const ALL_LETTERS: &str = "rwdxylacuptfi";

const TYPE: &str = "x-ms-blob-type: BlockBlob\r\n";
const SOURCE: &str = "x-ms-copy-source: http://127.0.0.1/acct/none/other\r\n";
const TYPE_SOURCE: &str = "x-ms-blob-type: BlockBlob\r\nx-ms-copy-source: http://127.0.0.1/acct/none/other\r\n";
const SYNC: &str = "x-ms-requires-sync: true\r\nx-ms-copy-source: http://127.0.0.1/acct/none/other\r\n";
const BREAK: &str = "x-ms-lease-action: break\r\n";
const RELEASE: &str = "x-ms-lease-action: release\r\nx-ms-lease-id: 11111111-1111-1111-1111-111111111111\r\n";

/// There is no container `none`: whoever gets past the door is told so.
#[rustfmt::skip]
fn table() -> Vec<Row> {
    let row = |op, method, target, headers, account, service, token, anonymous| {
        Row { op, method, target, headers, account, service, token, anonymous }
    };
    vec![
        row(Op::ListContainers, "GET", "/acct?comp=list", "", Of("s", "l"), NOT, Yes, Never),
        row(Op::GetBlobServiceProperties, "GET", "/acct?restype=service&comp=properties", "", Of("s", "r"), NOT, Yes, Never),
        row(Op::SetBlobServiceProperties, "PUT", "/acct?restype=service&comp=properties", "", Of("s", "w"), NOT, Yes, Never),
        row(Op::GetBlobServiceStats, "GET", "/acct-secondary?restype=service&comp=stats", "", Of("s", "r"), NOT, Yes, Never),
        row(Op::GetAccountInformation, "GET", "/acct?restype=account&comp=properties", "", Of("s", ""), NOT, Yes, Never),
        row(Op::GetAccountInformation, "GET", "/acct/none?restype=account&comp=properties", "", Of("c", ""), OneOf(""), Yes, Never),
        row(Op::GetAccountInformation, "HEAD", "/acct/none/thing?restype=account&comp=properties", "", Of("o", ""), OneOf(""), Yes, Never),
        row(Op::GetUserDelegationKey, "POST", "/acct?restype=service&comp=userdelegationkey", "", Account::Never, NOT, Only, Never),
        row(Op::BlobBatch, "POST", "/acct?comp=batch", "", Of("o", ""), NOT, Yes, Never),
        row(Op::BlobBatch, "POST", "/acct/none?restype=container&comp=batch", "", Of("o", ""), OneOf(""), Yes, Never),
        row(Op::FindBlobsByTags, "GET", "/acct?comp=blobs&where=a", "", Of("o", "f"), NOT, Yes, Never),
        row(Op::FindBlobsByTagsInContainer, "GET", "/acct/none?restype=container&comp=blobs&where=a", "", Of("co", "f"), OneOf("f"), Yes, Never),
        row(Op::CreateContainer, "PUT", "/acct/new?restype=container", "", Of("c", "cw"), NOT, Yes, Never),
        row(Op::GetContainerProperties, "GET", "/acct/none?restype=container", "", Of("c", "r"), NOT, Yes, Container),
        row(Op::GetContainerMetadata, "GET", "/acct/none?restype=container&comp=metadata", "", Of("c", "r"), NOT, Yes, Container),
        row(Op::SetContainerMetadata, "PUT", "/acct/none?restype=container&comp=metadata", "", Of("c", "w"), NOT, Yes, Never),
        row(Op::GetContainerAcl, "GET", "/acct/none?restype=container&comp=acl", "", Account::Never, NOT, Yes, Never),
        row(Op::SetContainerAcl, "PUT", "/acct/none?restype=container&comp=acl", "", Account::Never, NOT, Yes, Never),
        row(Op::DeleteContainer, "DELETE", "/acct/none?restype=container", "", Of("c", "d"), NOT, Yes, Never),
        row(Op::LeaseContainer, "PUT", "/acct/none?restype=container&comp=lease", RELEASE, Of("c", "w"), NOT, Yes, Never),
        row(Op::LeaseContainer, "PUT", "/acct/none?restype=container&comp=lease", BREAK, Of("c", "wd"), NOT, Yes, Never),
        row(Op::RestoreContainer, "PUT", "/acct/none?restype=container&comp=undelete", "", Of("c", "cw"), NOT, Yes, Never),
        row(Op::RenameContainer, "PUT", "/acct/none?restype=container&comp=rename", "", Of("c", "w"), NOT, Yes, Never),
        row(Op::ListBlobs, "GET", "/acct/none?restype=container&comp=list", "", Of("c", "l"), OneOf("l"), Yes, Container),
        row(Op::PutBlob, "PUT", "/acct/none/thing", TYPE, Of("o", "cw"), OneOf("cw"), Yes, Never),
        row(Op::PutBlobFromUrl, "PUT", "/acct/none/thing", TYPE_SOURCE, Of("o", "cw"), OneOf("cw"), Yes, Never),
        row(Op::GetBlob, "GET", "/acct/none/thing", "", Of("o", "r"), OneOf("r"), Yes, Blob),
        row(Op::GetBlobProperties, "HEAD", "/acct/none/thing", "", Of("o", "r"), OneOf("r"), Yes, Blob),
        row(Op::SetBlobProperties, "PUT", "/acct/none/thing?comp=properties", "", Of("o", "w"), OneOf("w"), Yes, Never),
        row(Op::GetBlobMetadata, "GET", "/acct/none/thing?comp=metadata", "", Of("o", "r"), OneOf("r"), Yes, Blob),
        row(Op::SetBlobMetadata, "PUT", "/acct/none/thing?comp=metadata", "", Of("o", "w"), OneOf("w"), Yes, Never),
        row(Op::GetBlobTags, "GET", "/acct/none/thing?comp=tags", "", Of("o", "t"), OneOf("t"), Yes, Never),
        row(Op::SetBlobTags, "PUT", "/acct/none/thing?comp=tags", "", Of("o", "t"), OneOf("t"), Yes, Never),
        row(Op::LeaseBlob, "PUT", "/acct/none/thing?comp=lease", RELEASE, Of("o", "w"), OneOf("w"), Yes, Never),
        row(Op::LeaseBlob, "PUT", "/acct/none/thing?comp=lease", BREAK, Of("o", "wd"), OneOf("wd"), Yes, Never),
        row(Op::SnapshotBlob, "PUT", "/acct/none/thing?comp=snapshot", "", Of("o", "cw"), OneOf("cw"), Yes, Never),
        row(Op::CopyBlob, "PUT", "/acct/none/thing", SOURCE, Of("o", "cw"), OneOf("cw"), Yes, Never),
        row(Op::CopyBlobFromUrl, "PUT", "/acct/none/thing", SYNC, Of("o", "cw"), OneOf("cw"), Yes, Never),
        row(Op::AbortCopyBlob, "PUT", "/acct/none/thing?comp=copy&copyid=x", "", Of("o", "w"), OneOf("w"), Yes, Never),
        row(Op::IncrementalCopyBlob, "PUT", "/acct/none/thing?comp=incrementalcopy", "", Of("o", "cw"), OneOf("cw"), Yes, Never),
        row(Op::DeleteBlob, "DELETE", "/acct/none/thing", "", Of("o", "d"), OneOf("d"), Yes, Never),
        row(Op::DeleteBlob, "DELETE", "/acct/none/thing?versionid=2026-01-01T00:00:00.0000000Z", "", Of("o", "x"), OneOf("x"), Yes, Never),
        row(Op::DeleteBlob, "DELETE", "/acct/none/thing?deletetype=permanent", "", Of("o", "y"), OneOf("y"), Yes, Never),
        row(Op::UndeleteBlob, "PUT", "/acct/none/thing?comp=undelete", "", Of("o", "w"), OneOf("w"), Yes, Never),
        row(Op::SetBlobTier, "PUT", "/acct/none/thing?comp=tier", "", Of("o", "w"), OneOf("w"), Yes, Never),
        row(Op::SetBlobExpiry, "PUT", "/acct/none/thing?comp=expiry", "", Of("o", "w"), OneOf("w"), Yes, Never),
        row(Op::SetBlobImmutabilityPolicy, "PUT", "/acct/none/thing?comp=immutabilityPolicies", "", Of("o", "i"), OneOf("i"), Yes, Never),
        row(Op::DeleteBlobImmutabilityPolicy, "DELETE", "/acct/none/thing?comp=immutabilityPolicies", "", Of("o", "i"), OneOf("i"), Yes, Never),
        row(Op::SetBlobLegalHold, "PUT", "/acct/none/thing?comp=legalhold", "", Of("o", "i"), OneOf("i"), Yes, Never),
        row(Op::QueryBlobContents, "POST", "/acct/none/thing?comp=query", "", Of("o", "r"), OneOf("r"), Yes, Never),
        row(Op::PutBlock, "PUT", "/acct/none/thing?comp=block&blockid=QQ==", "", Of("o", "w"), OneOf("w"), Yes, Never),
        row(Op::PutBlockFromUrl, "PUT", "/acct/none/thing?comp=block&blockid=QQ==", SOURCE, Of("o", "w"), OneOf("w"), Yes, Never),
        row(Op::PutBlockList, "PUT", "/acct/none/thing?comp=blocklist", "", Of("o", "w"), OneOf("w"), Yes, Never),
        row(Op::GetBlockList, "GET", "/acct/none/thing?comp=blocklist", "", Of("o", "r"), OneOf("r"), Yes, Blob),
        row(Op::PutPage, "PUT", "/acct/none/thing?comp=page", "", Of("o", "w"), OneOf("w"), Yes, Never),
        row(Op::PutPageFromUrl, "PUT", "/acct/none/thing?comp=page", SOURCE, Of("o", "w"), OneOf("w"), Yes, Never),
        row(Op::GetPageRanges, "GET", "/acct/none/thing?comp=pagelist", "", Of("o", "r"), OneOf("r"), Yes, Blob),
        row(Op::AppendBlock, "PUT", "/acct/none/thing?comp=appendblock", "", Of("o", "aw"), OneOf("aw"), Yes, Never),
        row(Op::AppendBlockFromUrl, "PUT", "/acct/none/thing?comp=appendblock", SOURCE, Of("o", "aw"), OneOf("aw"), Yes, Never),
        row(Op::AppendBlobSeal, "PUT", "/acct/none/thing?comp=seal", "", Of("o", "aw"), OneOf("aw"), Yes, Never),
    ]
}

/// A server that takes everything, and a client of it.
struct Door {
    client: Client,
    server: support::Running,
}

impl Door {
    fn open() -> Door {
        let server = start_as(Choice { tls: true, tokens: Tokens::basic(), ..Choice::default() });
        Door { client: Client::secure(server.blob), server }
    }

    fn ask(&mut self, row: &Row, query: &str, headers: &str) -> (u16, String) {
        let target = if query.is_empty() { row.target.to_owned() } else { with_query(row.target, query) };
        let answer = self.client.ask(&raw(row.method, &target, &format!("{}{headers}", row.headers), b""));
        (answer.status, answer.code().to_owned())
    }

    fn allowed(&mut self, row: &Row, query: &str, headers: &str) {
        let (status, code) = self.ask(row, query, headers);
        let is_refused = code.starts_with("Auth") || code == "ResourceNotFound" || matches!(status, 401 | 403);
        assert!(!is_refused, "{} {} with {query} {headers}: {status} {code}", row.method, row.target);
        if !row.op.is_built() {
            assert_eq!((status, code.as_str()), (501, "APINotImplemented"), "{} {}", row.method, row.target);
        }
    }

    fn refused(&mut self, row: &Row, query: &str, headers: &str, status: u16, code: &str) {
        let found = self.ask(row, query, headers);
        assert_eq!(found, (status, code.to_owned()), "{} {} with {query} {headers}", row.method, row.target);
    }
}

fn without(letters: &str, taken: &str) -> String {
    letters.chars().filter(|letter| !taken.contains(*letter)).collect()
}

#[test]
fn every_operation_stands_in_the_table() {
    let table = table();
    for op in Op::ALL.iter().filter(|op| **op != Op::PreflightBlobRequest) {
        assert!(table.iter().any(|row| row.op == *op), "{} is missing", op.name());
    }
}

#[test]
fn by_a_signature_of_the_account() {
    let mut door = Door::open();
    for row in &table() {
        let Of(kinds, letters) = row.account else {
            let code = if row.token == Only { "AuthenticationFailed" } else { "AuthorizationFailure" };
            door.refused(row, &account_sas("b", "sco", ALL_LETTERS, ""), "", 403, code);
            continue;
        };
        for kind in kinds.chars().map(String::from) {
            for letter in letters.chars() {
                door.allowed(row, &account_sas("b", &kind, &letter.to_string(), ""), "");
            }
            if letters.is_empty() {
                door.allowed(row, &account_sas("b", &kind, "p", ""), "");
            } else {
                let wrong = account_sas("b", &kind, &without(ALL_LETTERS, letters), "");
                door.refused(row, &wrong, "", 403, "AuthorizationPermissionMismatch");
            }
        }
        let wrong = account_sas("b", &without("sco", kinds), ALL_LETTERS, "");
        door.refused(row, &wrong, "", 403, "AuthorizationResourceTypeMismatch");
        let wrong = account_sas("qtf", "sco", ALL_LETTERS, "");
        door.refused(row, &wrong, "", 403, "AuthorizationServiceMismatch");
    }
}

/// What a request says beside its operation can ask for a right of its own.
#[test]
fn tags_and_protection_ask_for_more() {
    let mut door = Door::open();
    let table = table();
    let cases = [
        (Op::PutBlob, "w", "x-ms-tags: a=b\r\n", "t"),
        (Op::PutBlob, "w", "x-ms-legal-hold: true\r\n", "i"),
        (Op::GetBlob, "r", "x-ms-if-tags: a='b'\r\n", "t"),
    ];
    for (op, letter, header, more) in cases {
        let row = table.iter().find(|row| row.op == op).expect("every operation stands in the table");
        let plain = account_sas("b", "o", letter, "");
        door.allowed(row, &plain, "");
        door.refused(row, &plain, header, 403, "AuthorizationPermissionMismatch");
        door.allowed(row, &account_sas("b", "o", &format!("{letter}{more}"), ""), header);
    }
}

/// The container (`c`) or blob (`b`) that a request names, as a signature names it.
fn named(row: &Row, sr: &str) -> Option<String> {
    let path = row.target.split('?').next()?.split('/').skip(2);
    let depth = path.clone().count();
    let segments = if sr == "c" { 1 } else { 2 };
    (depth >= segments).then(|| path.take(segments).collect::<Vec<_>>().join("/"))
}

#[test]
fn by_a_signature_of_the_service() {
    let mut door = Door::open();
    for row in &table() {
        for sr in ["c", "b"] {
            let Some(resource) = named(row, sr) else { continue };
            let Signed::OneOf(letters) = row.service else {
                let everything = service_sas(sr, &resource, "racwdxyltfi", "");
                door.refused(row, &everything, "", 403, "AuthorizationFailure");
                continue;
            };
            for letter in letters.chars() {
                door.allowed(row, &service_sas(sr, &resource, &letter.to_string(), ""), "");
            }
            if letters.is_empty() {
                door.allowed(row, &service_sas(sr, &resource, "p", ""), "");
            } else {
                let wrong = service_sas(sr, &resource, &without("racwdxyltfi", letters), "");
                door.refused(row, &wrong, "", 403, "AuthorizationPermissionMismatch");
            }
            // One for something else proves nothing here.
            let wrong = service_sas(sr, &format!("{resource}x"), "racwdxyltfi", "");
            door.refused(row, &wrong, "", 403, "AuthenticationFailed");
        }
    }
}

#[test]
fn by_a_token() {
    let mut door = Door::open();
    for row in &table() {
        // With a token or, where there must be a user to act for, by nothing else.
        door.allowed(row, "", &bearer());
    }
}

#[test]
fn by_the_key_of_the_account() {
    let mut door = Door::open();
    for row in &table() {
        let answer: Answer = door.client.ask(&by_owner(row.method, row.target, row.headers, b""));
        let code = answer.code();
        let is_refused = code.starts_with("Auth") || code == "ResourceNotFound";
        assert_eq!(is_refused, row.token == Only, "{} {}: {code}", row.method, row.target);
    }
}

#[test]
fn without_anything() {
    let server = start();
    let mut client = server.client();
    for (container, public) in [("closed", ""), ("blobs", "blob"), ("open", "container")] {
        let header = if public.is_empty() { String::new() } else { format!("x-ms-blob-public-access: {public}\r\n") };
        let target = format!("/acct/{container}?restype=container");
        assert_eq!(client.ask(&signed("PUT", &target, &header, b"")).status, 201);
        assert_eq!(client.ask(&support::put_blob(&format!("/acct/{container}/thing"), b"hello")).status, 201);
        let pages = "x-ms-blob-type: PageBlob\r\nx-ms-blob-content-length: 512\r\n";
        assert_eq!(client.ask(&signed("PUT", &format!("/acct/{container}/pages"), pages, b"")).status, 201);
    }
    for row in &table() {
        for (container, needed) in [("closed", Never), ("blobs", Blob), ("open", Container)] {
            let thing = if row.op == Op::GetPageRanges { "/pages" } else { "/thing" };
            let target = row.target.replace("/none", &format!("/{container}")).replace("/thing", thing);
            let headers = format!("{}x-ms-version: 2021-12-02\r\n", row.headers);
            let answer = client.ask(&raw(row.method, &target, &headers, b""));
            let is_public = match row.anonymous {
                Never => false,
                Blob => needed != Never,
                Container => needed == Container,
            };
            if is_public {
                let expected = if row.op.is_built() { 200 } else { 501 };
                assert_eq!(answer.status, expected, "{} {target}", row.method);
            } else {
                let found = (answer.status, answer.code());
                assert_eq!(found, (401, "NoAuthenticationInformation"), "{} {target}", row.method);
            }
        }
    }
}

#[test]
fn the_rules_of_the_root_container_are_for_the_root_container() {
    let server = start();
    let mut client = server.client();
    let public = "x-ms-blob-public-access: container\r\n";
    assert_eq!(client.ask(&signed("PUT", "/acct/$root?restype=container", public, b"")).status, 201);
    assert_eq!(client.ask(&signed("PUT", "/acct/closed?restype=container", "", b"")).status, 201);
    for restype in ["container", "Container", "CONTAINER"] {
        for comp in ["", "&comp=list", "&comp=metadata"] {
            let target = format!("/acct/closed?restype={restype}{comp}");
            let answer = client.ask(&raw("GET", &target, "x-ms-version: 2021-12-02\r\n", b""));
            assert_eq!((answer.status, answer.code()), (401, "NoAuthenticationInformation"), "{target}");
            let target = format!("/acct/$root?restype={restype}{comp}");
            assert_eq!(client.ask(&raw("GET", &target, "x-ms-version: 2021-12-02\r\n", b"")).status, 200);
        }
    }
}

/// What is public is what stands there: not what its owner notes of it, nor what is not there yet or no longer.
#[test]
fn what_is_public_is_not_everything() {
    let server = start();
    let mut client = server.client();
    let public = "x-ms-blob-public-access: container\r\n";
    assert_eq!(client.ask(&signed("PUT", "/acct/open?restype=container", public, b"")).status, 201);
    let tagged = format!("{TYPE}x-ms-tags: a=b\r\n");
    assert_eq!(client.ask(&by_owner("PUT", "/acct/open/thing", &tagged, b"x")).status, 201);
    let list = "/acct/open?restype=container&comp=list";
    let blocks = "/acct/open/thing?comp=blocklist";
    let if_tags = "x-ms-if-tags: a='b'\r\n";
    let mut ask = |target: &str, headers: &str| {
        let answer = client.ask(&raw("GET", target, &format!("{headers}x-ms-version: 2021-12-02\r\n"), b""));
        (answer.status, answer.code().to_owned())
    };
    for include in ["metadata", "snapshots", "versions", "copy"] {
        assert_eq!(ask(&format!("{list}&include={include}"), "").0, 200, "{include}");
    }
    assert_eq!(ask(&format!("{blocks}&blocklisttype=committed"), "").0, 200);
    let refused = (401, "NoAuthenticationInformation".to_owned());
    for include in ["tags", "metadata,tags", "uncommittedblobs", "deleted", "deletedwithversions"] {
        assert_eq!(ask(&format!("{list}&include={include}"), ""), refused, "{include}");
    }
    for lists in ["uncommitted", "all"] {
        assert_eq!(ask(&format!("{blocks}&blocklisttype={lists}"), ""), refused, "{lists}");
    }
    assert_eq!(ask("/acct/open/thing", if_tags), refused);
    assert_eq!(ask("/acct/open/thing", "").0, 200);
}

/// Who copies within the account reads by the right of his own signature: tags only if that is for tags.
#[test]
fn tags_are_copied_by_those_who_may_read_them() {
    let mut door = Door::open();
    let mut owner = |method: &str, target: &str, headers: &str| {
        let answer: Answer = door.client.ask(&by_owner(method, target, headers, b""));
        assert_eq!(answer.status, 201, "{method} {target}");
    };
    owner("PUT", "/acct/closed?restype=container", "");
    owner("PUT", "/acct/closed/thing", &format!("{TYPE}x-ms-tags: a=b\r\n"));
    let address = door.server.blob;
    let source = format!("x-ms-copy-source: https://{address}/acct/closed/thing\r\n");
    let mut copy = |letters: &str, headers: &str| {
        let target = with_query("/acct/closed/copy", &account_sas("b", "o", letters, ""));
        door.client.ask(&raw("PUT", &target, &format!("{source}{headers}"), b"")).status
    };
    assert_eq!(copy("rw", ""), 202);
    for tags in ["x-ms-copy-source-tag-option: COPY\r\n", "x-ms-source-if-tags: a='b'\r\n"] {
        assert_eq!(copy("rw", tags), 401, "{tags}");
        assert_eq!(copy("rwt", tags), 202, "{tags}");
    }
}
