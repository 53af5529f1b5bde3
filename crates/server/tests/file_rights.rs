//! Which permission every operation of the File service needs under each kind of credential, written out, and that it is refused
//! without.

mod support;

use auth::Tokens;
use file::Op;
use support::{
    ACCOUNT, Answer, Choice, Client, EXPIRY, OID, TID, account_sas, bearer, by_owner, element, escaped, now, raw,
    signature, start_as, with_query,
};

/// One request, and which credentials may send it.
struct Row {
    op: Op,
    method: &'static str,
    target: &'static str,
    headers: &'static str,
    account: Account,
    service: Signed,
    token: Token,
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

/// Whether a token is enough.
#[derive(Clone, Copy, PartialEq)]
enum Token {
    Yes,
    No,
    /// And nothing else is.
    Only,
}

use Account::Of;
use Signed::OneOf;
use Token::{No, Only, Yes};

const NOT: Signed = Signed::Never;
const ALL_LETTERS: &str = "rwdxylacuptfi";
const FILE_LETTERS: &str = "rcwdl";

const TYPE: &str = "x-ms-type: file\r\nx-ms-content-length: 1\r\n";
const SOURCE: &str = "x-ms-copy-source: http://127.0.0.1/acct/none/other\r\n";
const RENAME: &str = "x-ms-file-rename-source: http://127.0.0.1/acct/none/other\r\n";
const BREAK: &str = "x-ms-lease-action: break\r\n";
const RELEASE: &str = "x-ms-lease-action: release\r\nx-ms-lease-id: 11111111-1111-1111-1111-111111111111\r\n";
const PERMISSION: &str = "x-ms-file-permission-key: 1*2\r\n";
const KEY: &str = "/acct?restype=service&comp=userdelegationkey";

/// There is no share `none`: whoever gets past the door is told so.
#[rustfmt::skip]
fn table() -> Vec<Row> {
    let row = |op, method, target, headers, account, service, token| {
        Row { op, method, target, headers, account, service, token }
    };
    vec![
        row(Op::ListShares, "GET", "/acct?comp=list", "", Of("s", "l"), NOT, Yes),
        row(Op::GetFileServiceProperties, "GET", "/acct?restype=service&comp=properties", "", Of("s", "r"), NOT, Yes),
        row(Op::SetFileServiceProperties, "PUT", "/acct?restype=service&comp=properties", "", Of("s", "w"), NOT, Yes),
        row(Op::GetUserDelegationKey, "POST", KEY, "", Account::Never, NOT, Only),
        row(Op::CreateShare, "PUT", "/acct/new?restype=share", "", Of("c", "cw"), NOT, Yes),
        row(Op::SnapshotShare, "PUT", "/acct/none?restype=share&comp=snapshot", "", Of("c", "cw"), NOT, Yes),
        row(Op::GetShareProperties, "GET", "/acct/none?restype=share", "", Of("c", "r"), NOT, Yes),
        row(Op::SetShareProperties, "PUT", "/acct/none?restype=share&comp=properties", "", Of("c", "w"), NOT, Yes),
        row(Op::GetShareMetadata, "GET", "/acct/none?restype=share&comp=metadata", "", Of("c", "r"), NOT, Yes),
        row(Op::SetShareMetadata, "PUT", "/acct/none?restype=share&comp=metadata", "", Of("c", "w"), NOT, Yes),
        row(Op::GetShareAcl, "GET", "/acct/none?restype=share&comp=acl", "", Account::Never, NOT, No),
        row(Op::SetShareAcl, "PUT", "/acct/none?restype=share&comp=acl", "", Account::Never, NOT, No),
        row(Op::GetShareStats, "GET", "/acct/none?restype=share&comp=stats", "", Of("c", "r"), NOT, Yes),
        row(Op::DeleteShare, "DELETE", "/acct/none?restype=share", "", Of("c", "d"), NOT, Yes),
        row(Op::RestoreShare, "PUT", "/acct/none?restype=share&comp=undelete", "", Of("c", "w"), NOT, Yes),
        row(Op::LeaseShare, "PUT", "/acct/none?restype=share&comp=lease", RELEASE, Of("c", "w"), NOT, Yes),
        row(Op::LeaseShare, "PUT", "/acct/none?restype=share&comp=lease", BREAK, Of("c", "wd"), NOT, Yes),
        row(Op::CreatePermission, "PUT", "/acct/none?restype=share&comp=filepermission", "", Of("c", "cw"), OneOf("cw"), Yes),
        row(Op::GetPermission, "GET", "/acct/none?restype=share&comp=filepermission", PERMISSION, Of("c", "r"), OneOf("r"), Yes),
        row(Op::CreateDirectory, "PUT", "/acct/none/thing?restype=directory", "", Of("o", "cw"), OneOf("cw"), Yes),
        row(Op::GetDirectoryProperties, "GET", "/acct/none/thing?restype=directory", "", Of("o", "r"), OneOf("r"), Yes),
        row(Op::SetDirectoryProperties, "PUT", "/acct/none/thing?restype=directory&comp=properties", "", Of("o", "w"), OneOf("w"), Yes),
        row(Op::GetDirectoryMetadata, "GET", "/acct/none/thing?restype=directory&comp=metadata", "", Of("o", "r"), OneOf("r"), Yes),
        row(Op::SetDirectoryMetadata, "PUT", "/acct/none/thing?restype=directory&comp=metadata", "", Of("o", "w"), OneOf("w"), Yes),
        row(Op::DeleteDirectory, "DELETE", "/acct/none/thing?restype=directory", "", Of("o", "d"), OneOf("d"), Yes),
        row(Op::RenameDirectory, "PUT", "/acct/none/thing?restype=directory&comp=rename", RENAME, Of("o", "w"), OneOf("w"), Yes),
        row(Op::ListDirectoriesAndFiles, "GET", "/acct/none/thing?restype=directory&comp=list", "", Of("c", "l"), OneOf("l"), Yes),
        row(Op::ListHandles, "GET", "/acct/none/thing?comp=listhandles", "", Of("oc", "l"), NOT, Yes),
        row(Op::ForceCloseHandles, "PUT", "/acct/none/thing?comp=forceclosehandles", "x-ms-handle-id: *\r\n", Of("oc", "w"), NOT, Yes),
        row(Op::CreateFile, "PUT", "/acct/none/thing", TYPE, Of("o", "cw"), OneOf("cw"), Yes),
        row(Op::GetFile, "GET", "/acct/none/thing", "", Of("o", "r"), OneOf("r"), Yes),
        row(Op::GetFileProperties, "HEAD", "/acct/none/thing", "", Of("o", "r"), OneOf("r"), Yes),
        row(Op::SetFileProperties, "PUT", "/acct/none/thing?comp=properties", "", Of("o", "w"), OneOf("w"), Yes),
        row(Op::GetFileMetadata, "GET", "/acct/none/thing?comp=metadata", "", Of("o", "r"), OneOf("r"), Yes),
        row(Op::SetFileMetadata, "PUT", "/acct/none/thing?comp=metadata", "", Of("o", "w"), OneOf("w"), Yes),
        row(Op::DeleteFile, "DELETE", "/acct/none/thing", "", Of("o", "d"), OneOf("d"), Yes),
        row(Op::RenameFile, "PUT", "/acct/none/thing?comp=rename", RENAME, Of("o", "w"), OneOf("w"), Yes),
        row(Op::LeaseFile, "PUT", "/acct/none/thing?comp=lease", RELEASE, Of("o", "w"), OneOf("w"), Yes),
        row(Op::LeaseFile, "PUT", "/acct/none/thing?comp=lease", BREAK, Of("o", "wd"), OneOf("wd"), Yes),
        row(Op::PutRange, "PUT", "/acct/none/thing?comp=range", "x-ms-write: clear\r\n", Of("o", "w"), OneOf("w"), Yes),
        row(Op::PutRangeFromUrl, "PUT", "/acct/none/thing?comp=range", SOURCE, Of("o", "w"), OneOf("w"), Yes),
        row(Op::ListRanges, "GET", "/acct/none/thing?comp=rangelist", "", Of("o", "r"), OneOf("r"), Yes),
        row(Op::CopyFile, "PUT", "/acct/none/thing", SOURCE, Of("o", "cw"), OneOf("cw"), Yes),
        row(Op::AbortCopyFile, "PUT", "/acct/none/thing?comp=copy&copyid=x", "", Of("o", "w"), OneOf("w"), Yes),
        row(Op::CreateSymbolicLink, "PUT", "/acct/none/thing?restype=symboliclink", "", Of("o", "cw"), OneOf("cw"), Yes),
        row(Op::GetSymbolicLink, "GET", "/acct/none/thing?restype=symboliclink", "", Of("o", "r"), OneOf("r"), Yes),
        row(Op::CreateHardLink, "PUT", "/acct/none/thing?restype=hardlink", "", Of("o", "cw"), OneOf("cw"), Yes),
    ]
}

#[test]
fn every_operation_stands_in_the_table() {
    let table = table();
    for op in Op::ALL.iter().filter(|op| **op != Op::PreflightFileRequest) {
        assert!(table.iter().any(|row| row.op == *op), "{} is missing", op.name());
    }
}

/// A server that takes every kind of credential, and a client of it.
struct Door {
    client: Client,
    _server: support::Running,
}

impl Door {
    fn open() -> Door {
        let server = start_as(Choice { tls: true, tokens: Tokens::basic(), ..Choice::default() });
        Door { client: Client::secure(server.file), _server: server }
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
fn by_a_signature_of_the_account() {
    let mut door = Door::open();
    for row in &table() {
        let Of(kinds, letters) = row.account else {
            let code = if row.token == Only { "AuthenticationFailed" } else { "AuthorizationFailure" };
            door.refused(row, &account_sas("f", "sco", ALL_LETTERS, ""), "", 403, code);
            continue;
        };
        for kind in kinds.chars().map(String::from) {
            for letter in letters.chars() {
                door.allowed(row, &account_sas("f", &kind, &letter.to_string(), ""), "");
            }
            let wrong = account_sas("f", &kind, &without(ALL_LETTERS, letters), "");
            door.refused(row, &wrong, "", 403, "AuthorizationPermissionMismatch");
        }
        let wrong = account_sas("f", &without("sco", kinds), ALL_LETTERS, "");
        door.refused(row, &wrong, "", 403, "AuthorizationResourceTypeMismatch");
        let wrong = account_sas("bqt", "sco", ALL_LETTERS, "");
        door.refused(row, &wrong, "", 403, "AuthorizationServiceMismatch");
    }
}

/// A signature with a key of the account for a share (`sr` is `s`) or a file or directory in it (`f`).
fn service_sas(sr: &str, resource: &str, sp: &str) -> String {
    let sv = "2021-12-02";
    let resource = format!("/file/{ACCOUNT}/{resource}");
    let text = [sp, "", EXPIRY, &resource, "", "", "", sv, "", "", "", "", ""].join("\n");
    format!("sv={sv}&sr={sr}&sp={sp}&se={EXPIRY}&sig={}", signature(&text))
}

fn rename_from(signature: &str) -> &'static str {
    RENAME.replace("/other", &format!("/other?{signature}")).leak()
}

/// The share (`s`) or file (`f`) that a request names, as a signature names it.
fn named(row: &Row, sr: &str) -> Option<String> {
    let path = row.target.split('?').next()?.split('/').skip(2);
    let depth = path.clone().count();
    let segments = if sr == "s" { 1 } else { 2 };
    (depth >= segments).then(|| path.take(segments).collect::<Vec<_>>().join("/"))
}

#[test]
fn by_a_signature_of_the_service() {
    let mut door = Door::open();
    for row in &table() {
        for sr in ["s", "f"] {
            let Some(resource) = named(row, sr) else { continue };
            let Signed::OneOf(letters) = row.service else {
                door.refused(row, &service_sas(sr, &resource, FILE_LETTERS), "", 403, "AuthorizationFailure");
                continue;
            };
            // Only a share is listed; a signature for one file or directory does not reach what is in it.
            if (row.op, sr) == (Op::ListDirectoriesAndFiles, "f") {
                let everything = service_sas(sr, &resource, FILE_LETTERS);
                door.refused(row, &everything, "", 403, "AuthorizationResourceTypeMismatch");
                continue;
            }
            // A signature for one file does not reach the source of a rename, which then brings its own.
            let is_rename = matches!(row.op, Op::RenameFile | Op::RenameDirectory);
            let row = if is_rename && sr == "f" {
                door.refused(
                    row,
                    &service_sas(sr, &resource, FILE_LETTERS),
                    "",
                    403,
                    "AuthorizationPermissionMismatch",
                );
                &Row { headers: rename_from(&service_sas("f", "none/other", "w")), ..*row }
            } else {
                row
            };
            for letter in letters.chars() {
                door.allowed(row, &service_sas(sr, &resource, &letter.to_string()), "");
            }
            let wrong = service_sas(sr, &resource, &without(FILE_LETTERS, letters));
            door.refused(row, &wrong, "", 403, "AuthorizationPermissionMismatch");
            // One for something else proves nothing here.
            let wrong = service_sas(sr, &format!("{resource}x"), FILE_LETTERS);
            door.refused(row, &wrong, "", 403, "AuthenticationFailed");
        }
    }
}

/// Since this version the service takes tokens for all of its operations.
fn token() -> String {
    bearer().replace("2021-12-02", "2025-07-05")
}

const INTENT: &str = "x-ms-file-request-intent: backup\r\n";

#[test]
fn by_a_token_whose_holder_says_why() {
    let mut door = Door::open();
    for row in &table() {
        let with_intent = format!("{INTENT}{}", token());
        match row.token {
            Yes => {
                door.allowed(row, "", &with_intent);
                door.refused(row, "", &token(), 400, "MissingRequiredHeader");
                let other = format!("x-ms-file-request-intent: restore\r\n{}", token());
                door.refused(row, "", &other, 400, "InvalidHeaderValue");
            }
            No => door.refused(row, "", &with_intent, 404, "ResourceNotFound"),
            Only => door.allowed(row, "", &token()),
        }
        door.refused(row, "", &format!("{INTENT}{}", bearer()), 403, "AuthenticationFailed");
    }
}

#[test]
fn by_the_key_of_the_account_and_by_nothing() {
    let mut door = Door::open();
    for row in &table() {
        let answer: Answer = door.client.ask(&by_owner(row.method, row.target, row.headers, b""));
        let code = answer.code();
        let is_refused = code.starts_with("Auth") || code == "ResourceNotFound";
        assert_eq!(is_refused, row.token == Only, "{} {}: {code}", row.method, row.target);
        door.refused(row, "", "x-ms-version: 2021-12-02\r\n", 401, "NoAuthenticationInformation");
    }
}

/// A user asks for a key, and signs with it for one share.
#[test]
fn a_user_signs_for_a_share() {
    let mut door = Door::open();
    let with_intent = format!("{INTENT}{}", token());
    for share in ["mine", "other"] {
        let target = format!("/acct/{share}?restype=share");
        assert_eq!(door.client.ask(&raw("PUT", &target, &with_intent, b"")).status, 201);
    }
    let expiry = now().plus_ticks(3600 * 10_000_000);
    let info = format!("<KeyInfo><Expiry>{}</Expiry></KeyInfo>", wire::dates::iso_seconds(expiry));
    let told = door.client.ask(&raw("POST", KEY, &token(), info.as_bytes()));
    assert_eq!(told.status, 200, "{}", told.text());
    let told = told.text();
    assert_eq!((element(told, "SignedOid"), element(told, "SignedService")), (OID, "f"));
    let key = auth::Key::from_base64(element(told, "Value")).unwrap();
    let (skt, ske, skv) = (element(told, "SignedStart"), element(told, "SignedExpiry"), element(told, "SignedVersion"));
    let sign = |share: &str, sp: &str, sv: &str| {
        let resource = format!("/file/{ACCOUNT}/{share}");
        let fields = [sp, "", ske, &resource, OID, TID, skt, ske, "f", skv, "", "", "", "", sv, "", "", "", "", ""];
        let signature = escaped(&key.sign(fields.join("\n").as_bytes()));
        format!(
            "sv={sv}&sr=s&sp={sp}&se={ske}&skoid={OID}&sktid={TID}&skt={skt}&ske={ske}&sks=f&skv={skv}&sig={signature}"
        )
    };
    const SV: &str = "2025-07-05";
    let mut ask = |method: &str, target: &str, query: String, headers: &str| {
        let answer = door.client.ask(&raw(method, &with_query(target, &query), headers, b""));
        if answer.code().is_empty() {
            answer.status.to_string()
        } else {
            format!("{} {}", answer.status, answer.code())
        }
    };
    let directory = "/acct/mine/dir?restype=directory";
    assert_eq!(ask("PUT", directory, sign("mine", "c", SV), ""), "201");
    assert_eq!(ask("GET", directory, sign("mine", "r", SV), ""), "200");
    assert_eq!(ask("GET", directory, sign("mine", "w", SV), ""), "403 AuthorizationPermissionMismatch");
    // It is for one share, and for versions that have it.
    let other = "/acct/other/dir?restype=directory";
    assert_eq!(ask("GET", other, sign("mine", "r", SV), ""), "403 AuthenticationFailed");
    assert_eq!(ask("GET", directory, sign("mine", "r", "2025-05-05"), ""), "403 AuthenticationFailed");
    // Each letter allows what the table says, and nothing else.
    for row in table().iter().filter(|row| row.target.starts_with("/acct/none")) {
        let Signed::OneOf(letters) = row.service else { continue };
        let target = row.target.replace("/none", "/mine").replace("/thing", "/gone");
        for letter in ["r", "c", "w", "d", "l"] {
            let said = ask(row.method, &target, sign("mine", letter, SV), row.headers);
            let is_allowed = !said.starts_with("403 ");
            assert_eq!(is_allowed, letters.contains(letter), "{} with {letter}: {said}", row.op.name());
        }
    }
}
