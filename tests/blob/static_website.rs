//! The static website of an account: `account.web.host`, for anybody to read.

use crate::harness::Answer;
use crate::stage::{Stage, percent};

/// A request of a browser, which signs nothing.
fn browse(stage: &Stage, verb: &str, path: &str, headers: &str) -> Answer {
    let line = format!("{verb} {path}");
    let head = format!("{verb} {path} HTTP/1.1\r\nhost: devstoreaccount1.web.localhost\r\n{headers}\r\n");
    stage.client.browse(&line, &head)
}

fn told(answer: &Answer) -> (u16, String) {
    (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
}

#[test]
fn anybody_reads_pages_and_nothing_else() {
    let stage = Stage::new();
    let web = percent("$web");
    stage.call(&format!("PUT {web}?restype=container"), &[], "").ok();
    for (name, text) in [("index.html", "home"), ("docs/index.html", "docs"), ("404.html", "lost")] {
        stage
            .call(
                &format!("PUT {web}/{name}"),
                &[("x-ms-blob-type", "BlockBlob"), ("x-ms-blob-content-type", "text/html")],
                text,
            )
            .ok();
    }
    stage.put("cont/blob", "private");
    assert_eq!(browse(&stage, "GET", "/", "").status, 404, "it is not switched on");
    let site = "<Enabled>true</Enabled><IndexDocument>index.html</IndexDocument>\
                <ErrorDocument404Path>404.html</ErrorDocument404Path>";
    let body = format!("<StorageServiceProperties><StaticWebsite>{site}</StaticWebsite></StorageServiceProperties>");
    stage.call("PUT ?restype=service&comp=properties", &[], body).ok();

    let home = browse(&stage, "GET", "/", "");
    assert_eq!((told(&home), home.header("content-type")), ((200, "home".into()), Some("text/html")));
    assert_eq!(told(&browse(&stage, "GET", "/docs/", "")), (200, "docs".into()));
    assert_eq!(told(&browse(&stage, "GET", "/docs?x=1", "")), (200, "docs".into()));
    assert_eq!(told(&browse(&stage, "GET", "/none", "")), (404, "lost".into()));
    assert_eq!(told(&browse(&stage, "GET", "/cont/blob", "")), (404, "lost".into()));
    assert_eq!(told(&browse(&stage, "GET", "/../cont/blob", "")), (404, "lost".into()));
    let head = browse(&stage, "HEAD", "/", "");
    assert_eq!((head.status, head.header("content-length")), (200, Some("4")));
    let unchanged = format!("if-none-match: {}\r\n", home.etag());
    assert_eq!(browse(&stage, "GET", "/", &unchanged).status, 304);
    assert_eq!(told(&browse(&stage, "GET", "/", "range: bytes=1-2\r\n")), (206, "om".into()));
    for verb in ["PUT", "DELETE", "POST"] {
        assert_eq!(browse(&stage, verb, "/index.html", "content-length: 0\r\n").said(), "405 UnsupportedHttpVerb");
    }
    // By the Blob service the container is as private as it was made.
    let head = stage.client.unsigned_head(&format!("GET {web}/index.html"), &[]);
    assert!(!stage.client.call_odd("GET", &head, b"").is_success());
    assert_eq!(stage.get(&format!("{web}/index.html")).body, b"home");
}
