//! What scripts rely on that were written for Azurite, and what the service does instead.

mod support;

use server::Manners;
use support::{Choice, Client, Running, account_sas, put_blob, raw, service_sas, signed, start_as, with_query};

fn start(manners: Manners) -> (Running, Client) {
    let server = start_as(Choice { manners, test_clock: true, ..Choice::default() }).with_blob(b"hello");
    let client = server.client();
    (server, client)
}

/// Status and code, as the service and as Azurite have it.
fn differs(request: impl Fn(&Running) -> Vec<u8>, azure: (u16, &str), azurite: (u16, &str)) {
    for (manners, expected) in [(Manners::Azure, azure), (Manners::Azurite, azurite)] {
        let (server, mut client) = start(manners);
        let answer = client.ask(&request(&server));
        assert_eq!((answer.status, answer.code()), expected, "{manners:?}");
    }
}

#[test]
fn copies_within_an_account_need_no_signature() {
    let source = |server: &Running| format!("x-ms-copy-source: http://{}/acct/box/thing\r\n", server.blob);
    let refused = (401, "CannotVerifyCopySource");
    let sync = |server: &Running| {
        let headers = format!("{}x-ms-requires-sync: true\r\n", source(server));
        signed("PUT", "/acct/box/copy", &headers, b"")
    };
    differs(sync, refused, (202, ""));
    let block = |server: &Running| signed("PUT", "/acct/box/copy?comp=block&blockid=AAAA", &source(server), b"");
    differs(block, refused, (201, ""));
    // Who shows nothing at all gets nothing there, either.
    let (server, mut client) = start(Manners::Azurite);
    let answer = client.ask(&raw("PUT", "/acct/box/copy", &source(&server), b""));
    assert!(matches!(answer.status, 401..=404), "{}", answer.status);
    // A signature for one blob is enough to copy into it.
    let target = with_query("/acct/box/copy", &service_sas("b", "box/copy", "cw", ""));
    let headers = format!("{}x-ms-requires-sync: true\r\n", source(&server));
    assert_eq!(client.ask(&raw("PUT", &target, &headers, b"")).status, 202);
}

/// Azurite has no files, so nothing that was written for it counts on theirs.
#[test]
fn copies_between_blobs_and_files_need_what_the_service_wants() {
    let (server, mut client) = start(Manners::Azurite);
    let mut files = Client::to(server.file);
    assert_eq!(files.ask(&signed("PUT", "/acct/share?restype=share", "", b"")).status, 201);
    let file = "x-ms-type: file\r\nx-ms-content-length: 5\r\n";
    assert_eq!(files.ask(&signed("PUT", "/acct/share/file", file, b"")).status, 201);
    let from_file = format!("x-ms-copy-source: http://{}/acct/share/file\r\n", server.file);
    let from_blob = format!("x-ms-copy-source: http://{}/acct/box/thing\r\n", server.blob);
    let target = with_query("/acct/box/copy", &service_sas("b", "box/copy", "cw", ""));
    let answer = client.ask(&raw("PUT", &target, &from_file, b""));
    assert_eq!((answer.status, answer.code()), (401, "CannotVerifyCopySource"));
    let target = with_query("/acct/share/copy", &account_sas("f", "sco", "rwc", ""));
    let answer = files.ask(&raw("PUT", &target, &from_blob, b""));
    assert_eq!((answer.status, answer.code()), (401, "CannotVerifyCopySource"));
    // Whoever may read both may copy.
    assert_eq!(client.ask(&signed("PUT", "/acct/box/copy", &from_file, b"")).status, 202);
    assert_eq!(files.ask(&signed("PUT", "/acct/share/copy", &from_blob, b"")).status, 202);
}

#[test]
fn the_archive_is_left_at_once() {
    for (manners, after) in [(Manners::Azure, 409), (Manners::Azurite, 200)] {
        let (_server, mut client) = start(manners);
        let mut tier = |tier: &str| {
            let headers = format!("x-ms-access-tier: {tier}\r\n");
            client.ask(&signed("PUT", "/acct/box/thing?comp=tier", &headers, b"")).status
        };
        assert_eq!((tier("Archive"), tier("Hot")), (200, 202), "{manners:?}");
        assert_eq!(client.ask(&signed("GET", "/acct/box/thing", "", b"")).status, after, "{manners:?}");
    }
}

#[test]
fn the_secondary_takes_writes() {
    let put = |_: &Running| put_blob("/acct-secondary/box/new", b"x");
    differs(put, (403, "InsufficientAccountPermissions"), (201, ""));
}
