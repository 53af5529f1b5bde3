//! Signatures: what each letter of each kind allows, with and without a stored policy.
//!
//! Tokens and signatures by a user delegation key need HTTPS; the suites with the vendor's clients have them.

use crate::harness::{ACCOUNT, Answer, Headers, Table};
use crate::signatures::{END, ask, by_policy, for_account, for_path, for_path_until, for_services, with_headers};
use crate::stage::{A, CLEAR, FILE, LENGTH, SOURCE, Stage, UPDATE};

/// A request, and which single letters allow it: in a signature for the share, in one for the file, in one for the account,
/// and the resource type that the latter must be for. `-` says that a signature of that kind does not reach so far.
struct Request {
    line: &'static str,
    headers: Headers<'static>,
    body: &'static str,
    share: &'static str,
    file: &'static str,
    account: &'static str,
    types: &'static str,
}

const fn request(
    line: &'static str,
    headers: Headers<'static>,
    body: &'static str,
    [share, file, account, types]: [&'static str; 4],
) -> Request {
    Request { line, headers, body, share, file, account, types }
}

const MAKE: Headers<'static> = &[FILE, (LENGTH, "3")];
const ACQUIRE: Headers<'static> = &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
const BREAK: Headers<'static> = &[("x-ms-lease-action", "break")];
const SERVICE: &str = "<StorageServiceProperties/>";

/// Shares themselves are out of reach for signatures of a share; lists of policies for every signature.
#[rustfmt::skip]
const REQUESTS: &[Request] = &[
    //                                                                                                    share  file  account  types
    request("GET ?comp=list",                                    &[],                             "",      ["-",  "-",  "l",     "s"]),
    request("GET ?restype=service&comp=properties",              &[],                             "",      ["-",  "-",  "r",     "s"]),
    request("PUT ?restype=service&comp=properties",              &[],                             SERVICE, ["-",  "-",  "w",     "s"]),
    request("PUT other?restype=share",                           &[],                             "",      ["-",  "-",  "cw",    "c"]),
    request("DELETE none?restype=share",                         &[],                             "",      ["-",  "-",  "d",     "c"]),
    request("GET share?restype=share",                           &[],                             "",      ["",   "-",  "r",     "c"]),
    request("PUT share?restype=share&comp=properties",           &[],                             "",      ["",   "-",  "w",     "c"]),
    request("GET share?restype=share&comp=metadata",             &[],                             "",      ["",   "-",  "r",     "c"]),
    request("PUT share?restype=share&comp=metadata",             &[],                             "",      ["",   "-",  "w",     "c"]),
    request("GET share?restype=share&comp=stats",                &[],                             "",      ["",   "-",  "r",     "c"]),
    request("GET share?restype=share&comp=acl",                  &[],                             "",      ["",   "-",  "",      "c"]),
    request("PUT share?restype=share&comp=acl",                  &[],                             "",      ["",   "-",  "",      "c"]),
    request("PUT share?restype=share&comp=lease",                ACQUIRE,                         "",      ["",   "-",  "w",     "c"]),
    request("PUT share?restype=share&comp=lease",                BREAK,                           "",      ["",   "-",  "wd",    "c"]),
    request("GET share?restype=directory&comp=list",             &[],                             "",      ["l",  "-",  "l",     "c"]),
    request("GET share/dir?restype=directory&comp=list",         &[],                             "",      ["l",  "-",  "l",     "c"]),
    request("PUT share/new?restype=directory",                   &[],                             "",      ["cw", "-",  "cw",    "o"]),
    request("GET share/dir?restype=directory",                   &[],                             "",      ["r",  "-",  "r",     "o"]),
    request("PUT share/dir?restype=directory&comp=properties",   &[],                             "",      ["w",  "-",  "w",     "o"]),
    request("GET share/dir?restype=directory&comp=metadata",     &[],                             "",      ["r",  "-",  "r",     "o"]),
    request("PUT share/dir?restype=directory&comp=metadata",     &[],                             "",      ["w",  "-",  "w",     "o"]),
    request("DELETE share/none?restype=directory",               &[],                             "",      ["d",  "-",  "d",     "o"]),
    request("PUT share/dir/new",                                 MAKE,                            "",      ["cw", "-",  "cw",    "o"]),
    request("GET share/dir/file",                                &[],                             "",      ["r",  "r",  "r",     "o"]),
    request("HEAD share/dir/file",                               &[],                             "",      ["r",  "r",  "r",     "o"]),
    request("GET share/dir/file?comp=metadata",                  &[],                             "",      ["r",  "r",  "r",     "o"]),
    request("GET share/dir/file?comp=rangelist",                 &[],                             "",      ["r",  "r",  "r",     "o"]),
    request("PUT share/dir/file?comp=properties",                &[],                             "",      ["w",  "w",  "w",     "o"]),
    request("PUT share/dir/file?comp=metadata",                  &[],                             "",      ["w",  "w",  "w",     "o"]),
    request("PUT share/dir/file?comp=range",                     &[UPDATE, ("x-ms-range", "bytes=0-2")], "new", ["w",  "w",  "w", "o"]),
    request("PUT share/dir/file?comp=range",                     &[CLEAR, ("x-ms-range", "bytes=0-2")], "",     ["w",  "w",  "w", "o"]),
    request("PUT share/dir/file?comp=lease",                     ACQUIRE,                         "",      ["w",  "w",  "w",     "o"]),
    request("PUT share/dir/file?comp=lease",                     BREAK,                           "",      ["wd", "wd", "wd",    "o"]),
    request("DELETE share/dir/file",                             &[],                             "",      ["d",  "d",  "d",     "o"]),
];

/// What is there before each request, whatever became of it by the last one.
fn prepare(stage: &Stage) {
    let _ = stage.lease("share/dir/file", BREAK);
    let _ = stage.lease("share?restype=share", &[("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "0")]);
    let _ = stage.delete("share/dir/new");
    let _ = stage.delete("share/new?restype=directory");
    stage.put_file("share/dir/file", "old");
}

/// Whether a signature let the request through, whatever the service said to it then.
fn passed(answer: &Answer) -> bool {
    !matches!(answer.status, 401 | 403)
}

#[test]
fn each_letter_allows_its_own() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    let client = &stage.client;
    let mut table = Table::new("rights: letters");
    for request in REQUESTS {
        let Request { line, headers, body, .. } = request;
        let what = headers.first().map(|(_, value)| format!(" ({value})")).unwrap_or_default();
        let mut row = |kind: &str, letter: &str, allowed: &str, answer: &Answer| {
            let row = format!("{line}{what} with {letter} of the {kind}");
            match allowed {
                "-" => table.row(row, answer.status, 403),
                "" => table.row(row, answer.said(), "403 AuthorizationFailure"),
                letters if letters.contains(letter) => table.row(row, passed(answer), true),
                _ => table.row(row, answer.said(), "403 AuthorizationPermissionMismatch"),
            }
        };
        for letter in ["r", "c", "w", "d", "l"] {
            prepare(&stage);
            row("share", letter, request.share, &ask(client, line, &for_path(client, "share", letter), headers, body));
        }
        for letter in ["r", "c", "w", "d"] {
            prepare(&stage);
            let signature = for_path(client, "share/dir/file", letter);
            row("file", letter, request.file, &ask(client, line, &signature, headers, body));
        }
        for letter in ["r", "w", "d", "l", "a", "c", "u", "p"] {
            prepare(&stage);
            let signature = for_account(client, letter, request.types);
            row("account", letter, request.account, &ask(client, line, &signature, headers, body));
        }
        prepare(&stage);
        if !request.account.is_empty() {
            let others: String = "sco".chars().filter(|other| !request.types.contains(*other)).collect();
            let answer = ask(client, line, &for_account(client, "rwdlacup", &others), headers, body);
            table.row(format!("{line}{what} of {others}"), answer.said(), "403 AuthorizationResourceTypeMismatch");
            let answer = ask(client, line, &for_services(client, "bqt", "rwdlacup", "sco"), headers, body);
            table.row(format!("{line}{what} of blobs"), answer.said(), "403 AuthorizationServiceMismatch");
        }
    }
}

/// What creates may not replace: that needs the right to write.
#[test]
fn creating_is_not_replacing() {
    let stage = Stage::new();
    let client = &stage.client;
    stage.put_file("share/file", "old");
    let mut table = Table::new("rights: create");
    let create = |path: &str, signature: &str| ask(client, &format!("PUT {path}"), signature, MAKE, "").said();
    for (kind, sign) in [
        ("share", &(|letters: &str| for_path(client, "share", letters)) as &dyn Fn(&str) -> String),
        ("file", &|letters: &str| for_path(client, "share/file", letters)),
        ("account", &|letters: &str| for_account(client, letters, "o")),
    ] {
        table.row(
            format!("{kind}: over a file with c"),
            create("share/file", &sign("c")),
            "403 AuthorizationPermissionMismatch",
        );
        assert_eq!(stage.read("share/file"), b"old");
        table.row(format!("{kind}: over a file with w"), create("share/file", &sign("w")), "201");
        stage.delete("share/file").ok();
        table.row(format!("{kind}: a new one with c"), create("share/file", &sign("c")), "201");
        stage.delete("share/file").ok();
        table.row(format!("{kind}: a new one with w"), create("share/file", &sign("w")), "201");
        stage.put_file("share/file", "old");
    }
}

/// A rename writes at both ends.
#[test]
fn renaming() {
    let stage = Stage::new();
    let client = &stage.client;
    stage.make_share("other");
    let mut table = Table::new("rights: rename");
    let rename = |restype: &str, to: &str, source: &str, signature: &str| {
        ask(client, &format!("PUT {to}?{restype}comp=rename"), signature, &[(SOURCE, source)], "").said()
    };
    for (restype, kind) in [("", "file"), ("restype=directory&", "directory")] {
        for (letters, expected) in [
            ("w", "200"),
            ("rw", "200"),
            ("rcwdl", "200"),
            ("r", "403 AuthorizationPermissionMismatch"),
            ("c", "403 AuthorizationPermissionMismatch"),
            ("rcdl", "403 AuthorizationPermissionMismatch"),
        ] {
            if kind == "file" {
                stage.put_file("share/from", "x")
            } else {
                stage.make_directory("share/from")
            };
            let signature = for_path(client, "share", letters);
            let source = format!("{}?{signature}", client.url("share/from"));
            table.row(format!("{kind}, {letters}"), rename(restype, "share/to", &source, &signature), expected);
            for name in ["share/from", "share/to"] {
                let _ = stage.delete(&format!("{name}?{}", restype.trim_end_matches('&')));
                let _ = stage.delete(name);
            }
        }
        let account = for_account(client, "w", "o");
        if kind == "file" {
            stage.put_file("share/from", "x")
        } else {
            stage.make_directory("share/from")
        };
        let source = format!("{}?{account}", client.url("share/from"));
        table.row(format!("{kind}, w of the account"), rename(restype, "share/to", &source, &account), "200");
        let _ = stage.delete("share/to");
        let _ = stage.delete("share/to?restype=directory");
    }
    // A source that brings a signature of its own, to somebody with rights at the target alone.
    stage.put_file("share/from", "x");
    let (mine, theirs) = (for_path(client, "share/to", "w"), for_path(client, "share/from", "w"));
    let source = format!("{}?{theirs}", client.url("share/from"));
    table.row("one signature for each end", rename("", "share/to", &source, &mine), "200");
    stage.put_file("share/from", "x");
    let reading = for_path(client, "share/from", "r");
    let source = format!("{}?{reading}", client.url("share/from"));
    let said = rename("", "share/second", &source, &for_path(client, "share/second", "w"));
    table.row("a source that may only be read", &said[..3], "403");
    let said = rename("", "share/second", &client.url("share/from"), &for_path(client, "share/second", "w"));
    table.row("a source that nobody signed", &said[..1], "4");
    // A signature for another path that the URL could also be read as: with the account in the host, its first name is a share.
    let other = for_path(client, &format!("{ACCOUNT}/share/from"), "w");
    let url = client.url("share/from");
    let (_, port_and_path) = url.split_once("://127.0.0.1").expect("a server on this machine");
    let source = format!("http://{ACCOUNT}.file.localhost{port_and_path}?{other}");
    let said = rename("", "share/second", &source, &for_path(client, "share/second", "w"));
    table.row("a source that was signed for another share", said, "403 AuthorizationPermissionMismatch");
    assert_eq!(stage.read("share/from"), b"x");
}

/// For its own share, and for its own file.
#[test]
fn a_signature_is_for_its_own_path() {
    let stage = Stage::new();
    let client = &stage.client;
    stage.make_share("other");
    stage.make_directory("share/dir");
    stage.put_file("share/dir/file", "x");
    stage.put_file("share/dir/file2", "x");
    stage.put_file("share/file", "x");
    stage.put_file("other/file", "x");
    let mut table = Table::new("rights: paths");
    let share = for_path(client, "share", "r");
    let file = for_path(client, "share/dir/file", "r");
    for (row, line, signature, expected) in [
        ("the share's file", "GET share/dir/file", &share, "200"),
        ("another share's", "GET other/file", &share, "403 AuthenticationFailed"),
        ("the file", "GET share/dir/file", &file, "200"),
        ("another file", "GET share/dir/file2", &file, "403 AuthenticationFailed"),
        ("a file above", "GET share/file", &file, "403 AuthenticationFailed"),
        ("the directory", "GET share/dir?restype=directory", &file, "403 AuthenticationFailed"),
        (
            "a file of that name elsewhere",
            "GET other/file",
            &for_path(client, "share/file", "r"),
            "403 AuthenticationFailed",
        ),
        (
            "over",
            "GET share/file",
            &for_path_until(client, "share", "r", "2020-01-01T00:00:00Z"),
            "403 AuthenticationFailed",
        ),
        ("changed", "GET share/file", &share.replace("sp=r", "sp=rw"), "403 AuthenticationFailed"),
        ("no letters", "GET share/file", &for_path(client, "share", ""), "403 AuthenticationFailed"),
        ("a letter that is none", "GET share/file", &for_path(client, "share", "rz"), "403 AuthenticationFailed"),
    ] {
        table.row(row, ask(client, line, signature, &[], "").said(), expected);
    }
}

#[test]
fn a_stored_policy_decides_as_soon_as_it_is_set() {
    let stage = Stage::new();
    let client = &stage.client;
    stage.put_file("share/file", "x");
    for path in ["share", "share/file"] {
        let signature = by_policy(client, path, "one");
        let read = || ask(client, "GET share/file", &signature, &[], "").said();
        let delete_range =
            || ask(client, "PUT share/file?comp=range", &signature, &[CLEAR, ("x-ms-range", "bytes=0-0")], "").said();
        assert_eq!(read(), "403 AuthenticationFailed");
        let set = |letters: &str, end: &str| {
            let policy =
                format!("<AccessPolicy><Expiry>{end}</Expiry><Permission>{letters}</Permission></AccessPolicy>");
            let document = format!(
                "<SignedIdentifiers><SignedIdentifier><Id>one</Id>{policy}</SignedIdentifier></SignedIdentifiers>"
            );
            stage.call("PUT share?restype=share&comp=acl", &[], document).ok();
        };
        set("r", END);
        assert_eq!((read().as_str(), delete_range().as_str()), ("200", "403 AuthorizationPermissionMismatch"));
        set("w", END);
        assert_eq!((read().as_str(), delete_range().as_str()), ("403 AuthorizationPermissionMismatch", "201"));
        set("rw", "2020-01-01T00:00:00Z");
        assert_eq!(read(), "403 AuthenticationFailed");
        set("rw", END);
        assert_eq!(read(), "200");
        stage.call("PUT share?restype=share&comp=acl", &[], "").ok();
        assert_eq!(read(), "403 AuthenticationFailed");
    }
}

/// A signature may say which headers a download has.
#[test]
fn headers_of_an_answer() {
    let stage = Stage::new();
    let client = &stage.client;
    stage.create_file("share/file", 3, &[("x-ms-content-type", "text/plain"), ("x-ms-content-language", "de")]).ok();
    let values = ["no-store", "attachment; filename=\"a b.txt\"", "gzip", "en", "a/b"];
    for path in ["share", "share/file"] {
        let told = ask(client, "GET share/file", &with_headers(client, path, values), &[], "").ok();
        let names = ["cache-control", "content-disposition", "content-encoding", "content-language", "content-type"];
        assert_eq!(names.map(|name| told.header(name).unwrap_or("none")), values, "{path}");
    }
    assert_eq!(stage.head("share/file").header("content-type"), Some("text/plain"));
}

/// Whoever holds a lease: a signature opens what it opens, and the lease keeps the rest.
#[test]
fn a_signature_is_no_lease() {
    let stage = Stage::new();
    let client = &stage.client;
    stage.put_file("share/file", "x");
    stage.acquire("share/file", A, "-1");
    let signature = for_path(client, "share", "rcwdl");
    let clear = |headers: Headers<'_>| {
        let headers = [&[CLEAR, ("x-ms-range", "bytes=0-0")], headers].concat();
        ask(client, "PUT share/file?comp=range", &signature, &headers, "").said()
    };
    assert_eq!(clear(&[]), "412 LeaseIdMissing");
    assert_eq!(clear(&[("x-ms-lease-id", A)]), "201");
    // Two faults: who may not is told so first.
    let reading = for_path(client, "share", "r");
    let refused = ask(client, "PUT share/file?comp=range", &reading, &[CLEAR, ("x-ms-range", "bytes=0-0")], "");
    assert_eq!(refused.said(), "403 AuthorizationPermissionMismatch");
    assert_eq!(
        ask(client, "GET share/none", &for_path(client, "share", "w"), &[], "").said(),
        "403 AuthorizationPermissionMismatch"
    );
}

/// Over plain HTTP no token is taken.
#[test]
fn tokens_need_a_secure_connection() {
    let stage = Stage::new();
    let line = "GET share?restype=share";
    for headers in
        [&[("authorization", "Bearer x")][..], &[("authorization", "Bearer x"), ("x-ms-file-request-intent", "backup")]]
    {
        let answer = stage.client.call_odd(line, &stage.client.unsigned_head(line, headers), b"");
        assert!(matches!(answer.status, 401 | 403), "{}", answer.said());
    }
}
