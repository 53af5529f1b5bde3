//! What is not quite a request, and what is one that nobody signed.

use crate::harness::{Headers, Table};
use crate::stage::{BLOCK_BLOB, Stage};

/// Bytes that are not HTTP, or not what it says: whatever the answer, nothing changes and the next one is served.
#[test]
fn garbage() {
    let stage = Stage::new();
    stage.put("cont/blob", "old");
    let before = stage.everything();
    let client = &stage.client;
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(200_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(10_000));
    let rows: &[&str] = &[
        "\r\n\r\n",
        "hello\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\n: no name\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        "PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxy",
        "PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "\u{1}\u{2}\u{3}",
        &long,
        &many,
        "",
    ];
    for head in rows {
        let answer = client.cut_short("GET", head, b"");
        assert!(answer.as_ref().is_none_or(|answer| (400..500).contains(&answer.status)), "{head:.60}: {answer:?}");
        assert_eq!(stage.everything(), before, "{head:.60}");
    }
}

#[test]
fn headers_that_cannot_be_taken() {
    let stage = Stage::new();
    stage.put("cont/blob", "old");
    let before = stage.everything();
    let date = "Sun, 15 Nov 2026 18:00:00 GMT";
    let long = "x".repeat(80_000);
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, u16)] = &[
        ("a date twice",        &[BLOCK_BLOB, ("if-modified-since", date), ("if-modified-since", date)], 400),
        ("a lease id twice",    &[BLOCK_BLOB, ("x-ms-lease-id", crate::stage::A), ("x-ms-lease-id", crate::stage::B)], 400),
        ("the type twice",      &[BLOCK_BLOB, BLOCK_BLOB], 400),
        ("metadata twice",      &[BLOCK_BLOB, ("x-ms-meta-a", "1"), ("x-ms-meta-A", "2")], 400),
        ("more than fits",      &[BLOCK_BLOB, ("x-ms-meta-a", &long)], 431),
    ];
    let mut table = Table::new("requests: headers");
    for (what, headers, expected) in rows {
        table.row(what, stage.call("PUT cont/blob", headers, "new").status, expected);
        assert_eq!(stage.everything(), before, "{what}");
    }
    let unsigned = stage.client.unsigned_head("PUT cont/blob", &[BLOCK_BLOB, ("content-length", "3")]);
    let answer = stage.client.call_odd("PUT cont/blob", &unsigned, b"new");
    table.row("nobody's", answer.status / 100, 4);
    let forged = stage
        .client
        .head("PUT cont/blob", &[BLOCK_BLOB], Some(3))
        .replace("x-ms-blob-type: BlockBlob", "x-ms-blob-type: BlockBlob\r\nx-ms-meta-a: forged");
    table.row("forged", stage.client.call_odd("PUT cont/blob", &forged, b"new").said(), "403 AuthenticationFailed");
    assert_eq!(stage.everything(), before);
}

/// Clients send what they have nothing to say with: `x-ms-proposed-lease-id:` of the Go client, and others.
#[test]
fn empty_headers_and_parameters_count_as_absent() {
    let stage = Stage::new();
    stage.put("cont/blob", "hello");
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")];
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str, &[&str])] = &[
        ("PUT cont/blob", &[BLOCK_BLOB], "201", &[
            "x-ms-lease-id", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "x-ms-if-tags",
            "x-ms-tags", "x-ms-encryption-scope", "x-ms-encryption-key", "x-ms-encryption-key-sha256",
            "x-ms-encryption-algorithm", "x-ms-access-tier", "x-ms-copy-source", "content-md5", "x-ms-content-crc64",
            "x-ms-structured-body", "x-ms-blob-content-md5", "x-ms-legal-hold", "x-ms-immutability-policy-mode",
            "x-ms-immutability-policy-until-date", "x-ms-expiry-option", "x-ms-source-lease-id",
        ]),
        ("GET cont/blob?snapshot=&versionid=&timeout=&comp=&restype=", &[], "200", &[
            "x-ms-range", "range", "x-ms-lease-id", "x-ms-range-get-content-md5", "x-ms-range-get-content-crc64",
            "if-match", "if-none-match", "x-ms-if-tags", "x-ms-encryption-key",
        ]),
        ("PUT cont2?restype=container&comp=&timeout=", &[], "201", &[
            "x-ms-blob-public-access", "x-ms-default-encryption-scope", "x-ms-deny-encryption-scope-override",
        ]),
        ("GET cont?restype=container&comp=list&prefix=&marker=&delimiter=&maxresults=&include=&showonly=", &[], "200", &[]),
        ("PUT cont/blob?comp=lease", &acquire, "201", &["x-ms-proposed-lease-id", "x-ms-lease-id", "if-match"]),
    ];
    let mut table = Table::new("requests: what is empty");
    for (line, headers, expected, empty) in rows {
        let mut all = headers.to_vec();
        all.extend(empty.iter().map(|name| (*name, "")));
        table.row(line, stage.call(line, &all, "").said(), expected);
    }
}

/// Texts that programs look for.
#[test]
fn refusals_say_what_the_service_says() {
    let stage = Stage::new();
    stage.put("cont/blob", "hello");
    let long = "x".repeat(64);
    let large = "x".repeat((1 << 20) + 1);
    #[rustfmt::skip]
    let rows: &[(&str, Headers<'_>, &str, &str)] = &[
        ("PUT cont/blob", &[("x-ms-blob-type", "Block")], "", "The value for one of the HTTP headers is not in the correct format."),
        (&format!("PUT {long}?restype=container"), &[], "", "The specified resource name length is not within the permissible limits."),
        ("PUT ?restype=service&comp=properties", &[], &large, "The request body is too large and exceeds the maximum permissible limit."),
        ("GET cont?restype=container&comp=list&maxresults=0", &[], "", "One of the query parameters specified in the request URI is outside the permissible range."),
        ("PUT cont/blob?comp=block", &[], "x", "A query parameter that's mandatory for this request is not specified."),
        ("PUT cont/blob", &[], "", "An HTTP header that's mandatory for this request is not specified."),
        ("PUT cont?restype=container&comp=acl", &[], "<a", "XML specified is not syntactically valid."),
    ];
    let mut table = Table::new("requests: texts");
    for (line, headers, body, expected) in rows {
        let message = stage.call(line, headers, body).xml().text_of("Message").unwrap_or_default();
        table.row(line, message.lines().next().unwrap_or_default(), expected);
    }
}

/// What every answer repeats of its request.
#[test]
fn ids_and_versions_are_repeated() {
    let stage = Stage::new();
    let headers = [("x-ms-client-request-id", "my own id"), ("x-ms-version", "2021-12-02")];
    for line in ["GET cont?restype=container", "GET cont/none", "HEAD cont/none"] {
        let answer = stage.call(line, &headers, "");
        assert_eq!(answer.header("x-ms-client-request-id"), Some("my own id"), "{line}");
        assert_eq!(answer.header("x-ms-version"), Some("2021-12-02"), "{line}");
    }
    let first = stage.get("cont/none").header("x-ms-request-id").map(str::to_owned);
    assert_ne!(stage.get("cont/none").header("x-ms-request-id").map(str::to_owned), first);
}
