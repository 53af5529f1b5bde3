//! What every request has in common: both styles of URLs, the secondary, lines that name nothing, and what is empty.

use crate::harness::{Answer, Headers, Table};
use crate::signatures::{ask, for_account, for_path};
use crate::stage::{FILE, LENGTH, Stage, percent};

/// The account in the path or in the host: the same service.
#[test]
fn both_styles_of_urls() {
    let stage = Stage::new();
    let host = stage.server.client().in_host_style("file");
    host.call("PUT styled?restype=share", &[], "").ok();
    host.call("PUT styled/dir?restype=directory", &[], "").ok();
    let name = percent("ä b+c.txt");
    host.call(&format!("PUT styled/dir/{name}"), &[FILE, (LENGTH, "3")], "").ok();
    let range = [crate::stage::UPDATE, ("x-ms-range", "bytes=0-2")];
    host.call(&format!("PUT styled/dir/{name}?comp=range"), &range, "abc").ok();
    // Each sees what the other has made.
    assert_eq!(stage.read(&format!("styled/dir/{name}")), b"abc");
    stage.put_file("share/file", "path");
    assert_eq!(host.call("GET share/file", &[], "").ok().body, b"path");
    let listed = host.call("GET styled/dir?restype=directory&comp=list", &[], "").ok().xml();
    assert_eq!(crate::stage::names(listed.all("Entries")), "ä b+c.txt");
    let endpoint = listed.attribute("ServiceEndpoint").expect("an endpoint");
    assert!(
        endpoint.starts_with("http://devstoreaccount1.file.localhost:") && !endpoint.contains("devstoreaccount1/"),
        "{endpoint}"
    );
    // A rename names its source in either style.
    let source = host.url(&format!("styled/dir/{name}"));
    host.call("PUT styled/one?comp=rename", &[(crate::stage::SOURCE, &source)], "").ok();
    let source = stage.client.url("styled/one");
    assert!(host.call("PUT styled/two?comp=rename", &[(crate::stage::SOURCE, &source)], "").status < 500);
    let shares = host.call("GET ?comp=list", &[], "").ok().xml();
    assert_eq!(shares.all("Shares").len(), 2);
    // Signatures, too.
    for client in [&stage.client, &host] {
        let read = ask(client, "GET share/file", &for_path(client, "share", "r"), &[], "");
        assert_eq!((read.said().as_str(), read.body.as_slice()), ("200", b"path".as_slice()));
        assert_eq!(ask(client, "GET ?comp=list", &for_account(client, "l", "s"), &[], "").said(), "200");
    }
}

#[test]
fn requests_that_name_nothing() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    stage.put_file("share/file", "content");
    let before = stage.everything();
    let mut table = Table::new("requests: nothing");
    for line in [
        "GET share",
        "PUT share",
        "POST share?restype=share",
        "PATCH share/file",
        "POST share/file",
        "MERGE share/file",
        "GET share?restype=container",
        "GET share?restype=share&comp=nothing",
        "PUT share?restype=share&comp=stats",
        "GET share?restype=directory&comp=nothing",
        "PUT share/dir?restype=nothing",
        "DELETE share/dir?restype=directory&comp=list",
        "GET share/file?comp=nothing",
        "PUT share/file?comp=nothing",
        "DELETE share/file?comp=metadata",
        "DELETE ?comp=list",
        "GET ?comp=nothing",
        "GET ?restype=container&comp=list",
        "GET ",
        "PUT share/file?comp=block&blockid=AAAA",
        "PUT share/file?comp=blocklist",
        "PUT share/file",
        "GET share/file?timeout=x",
        "GET share/file?timeout=-1",
    ] {
        let answer = stage.call(line, &[], "");
        table.row(line, answer.status / 100, 4);
        assert_eq!(stage.everything(), before, "{line}");
    }
}

/// The secondary gives what it has; it takes nothing.
#[test]
fn the_secondary_is_for_reading() {
    let stage = Stage::new();
    stage.make_directory("share/dir");
    stage.put_file("share/dir/file", "content");
    let mut table = Table::new("requests: the secondary");
    for (verb, target, expected) in [
        ("GET", "?comp=list", "200"),
        ("GET", "/share?restype=share", "200"),
        ("GET", "/share/dir?restype=directory&comp=list", "200"),
        ("GET", "/share/dir/file", "200"),
        ("HEAD", "/share/dir/file", "200"),
        ("PUT", "/other?restype=share", "403 InsufficientAccountPermissions"),
        ("DELETE", "/share/dir/file", "403 InsufficientAccountPermissions"),
        ("DELETE", "/share?restype=share", "403 InsufficientAccountPermissions"),
    ] {
        let glue = if target.contains('?') { '&' } else { '?' };
        let line = format!("{verb} {target}{glue}{}", for_account(&stage.client, "rwdlc", "sco"));
        let head = stage.client.unsigned_head(&line, &[("content-length", "0")]);
        let head = head.replace("/devstoreaccount1/", "/devstoreaccount1-secondary");
        table.row(format!("{verb} {target}"), stage.client.call_odd(&line, &head, b"").said(), expected);
    }
    assert_eq!(stage.read("share/dir/file"), b"content");
}

#[test]
fn the_service_says_who_it_is() {
    let stage = Stage::new();
    stage.put_file("share/file", "x");
    let headers = [("x-ms-client-request-id", "my own id"), ("x-ms-version", "2021-12-02")];
    for line in ["GET share?restype=share", "GET share/file", "GET share/none", "HEAD share/none"] {
        let told = stage.call(line, &headers, "");
        assert!(told.header("server").is_some_and(|server| server.starts_with("Lazurite-File/")), "{told:?}");
        assert_eq!(told.header("x-ms-client-request-id"), Some("my own id"), "{line}");
        assert_eq!(told.header("x-ms-version"), Some("2021-12-02"), "{line}");
    }
    let line = "GET share/file";
    let nobody = stage.client.call_odd(line, &stage.client.unsigned_head(line, &[]), b"");
    assert_eq!(nobody.status, 401);
    assert!(nobody.header("www-authenticate").is_some_and(|told| told.contains("resource_id=")), "{nobody:?}");
}

/// Headers and parameters without a value count as absent.
#[test]
fn what_is_empty_counts_as_absent() {
    let stage = Stage::new();
    stage.put_file("share/file", "hello");
    stage.make_directory("share/dir");
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str, &[&str])] = &[
        ("PUT share/made", &[FILE, (LENGTH, "5")], "201", &[
            "x-ms-lease-id", "if-match", "if-none-match", "if-modified-since", "x-ms-file-attributes", "x-ms-file-creation-time",
            "x-ms-file-last-write-time", "x-ms-file-change-time", "x-ms-file-permission", "x-ms-file-permission-key", "x-ms-content-md5",
            "content-md5", "x-ms-allow-trailing-dot", "x-ms-file-property-semantics", "x-ms-structured-body",
        ]),
        ("GET share/file?timeout=&comp=&restype=", &[], "200", &[
            "x-ms-range", "range", "x-ms-lease-id", "x-ms-range-get-content-md5", "if-match", "x-ms-allow-trailing-dot",
        ]),
        ("PUT share2?restype=share&comp=&timeout=", &[], "201", &["x-ms-share-quota", "x-ms-access-tier", "x-ms-enabled-protocols"]),
        ("GET share/dir?restype=directory&comp=list&prefix=&marker=&maxresults=&include=", &[], "200", &["x-ms-file-extended-info"]),
        ("PUT share/file?comp=lease", &acquire, "201", &["x-ms-proposed-lease-id", "x-ms-lease-id"]),
    ];
    let mut table = Table::new("requests: what is empty");
    for (line, headers, expected, empty) in rows {
        let mut all = headers.to_vec();
        all.extend(empty.iter().map(|name| (*name, "")));
        table.row(line, stage.call(line, &all, "").said(), expected);
    }
}

/// A request that breaks off in the middle of its body changes nothing.
#[test]
fn half_a_body_is_none() {
    let stage = Stage::new();
    stage.put_file("share/file", "0123456789");
    let before = stage.everything();
    let range = [crate::stage::UPDATE, ("x-ms-range", "bytes=0-9")];
    let line = "PUT share/file?comp=range";
    let head = stage.client.head(line, &range, Some(10));
    stage.client.hang_up(&head, b"half");
    let answer: Option<Answer> = stage.client.cut_short(line, &head, b"half");
    assert!(answer.is_none_or(|answer| (400..500).contains(&answer.status)));
    let made = stage.client.head("PUT share/new", &[FILE, (LENGTH, "10")], Some(10));
    stage.client.hang_up(&made, b"half");
    assert_eq!(stage.everything(), before);
}

/// Texts that programs look for.
#[test]
fn refusals_say_what_the_service_says() {
    let stage = Stage::new();
    stage.put_file("share/file", "hello");
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str)] = &[
        ("GET share/none", &[], "The specified resource does not exist."),
        ("GET none?restype=share", &[], "The specified share does not exist."),
        ("PUT share?restype=share", &[], "The specified share already exists."),
        ("PUT share/none/file", &[FILE, (LENGTH, "0")], "The specified parent path does not exist."),
        ("PUT share/file", &[FILE, (LENGTH, "x")], "The value for one of the HTTP headers is not in the correct format."),
        ("PUT share/file", &[], "An HTTP header that's mandatory for this request is not specified."),
        ("GET share/file", &[("x-ms-range", "bytes=9-")], "The range specified is invalid for the current size of the resource."),
    ];
    let mut table = Table::new("requests: texts");
    for (line, headers, expected) in rows {
        let message = stage.call(line, headers, "").xml().text_of("Message").unwrap_or_default();
        table.row(line, message.lines().next().unwrap_or_default(), expected);
    }
}
