//! Files as sources of blobs: Copy Blob, and every operation of the Blob service that takes its bytes from a URL.

use std::time::{Duration, Instant};

use crate::harness::{Headers, Table};
use crate::signatures;
use crate::stage::{Stage, pattern};

const COPY_SOURCE: &str = "x-ms-copy-source";
const BLOCK_BLOB: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
const SYNC: (&str, &str) = ("x-ms-requires-sync", "true");
const PART: (&str, &str) = ("x-ms-source-range", "bytes=0-1023");

#[rustfmt::skip]
const TAKERS: [(&str, &str, Headers<'static>, u16); 6] = [
    ("Copy Blob",             "PUT cont/copy", &[], 202),
    ("Copy Blob From URL",    "PUT cont/sync", &[SYNC], 202),
    ("Put Blob From URL",     "PUT cont/put", &[BLOCK_BLOB], 201),
    ("Put Block From URL",    "PUT cont/blocks?comp=block&blockid=AAAA", &[PART], 201),
    ("Append Block From URL", "PUT cont/append?comp=appendblock", &[PART], 201),
    ("Put Page From URL",     "PUT cont/page?comp=page", &[PART, ("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-1023")], 201),
];

#[test]
fn every_operation_that_takes_a_source_takes_a_file() {
    let stage = Stage::new();
    // Sparse: zeros at both ends that are stored nowhere.
    stage.create_file("share/file", 5_000, &[("x-ms-meta-a", "1"), ("x-ms-content-type", "text/plain")]).ok();
    stage.write("share/file", 600, pattern(1, 3_000));
    let content = stage.read("share/file");
    let blobs = stage.server.blob_client();
    blobs.call("PUT cont?restype=container", &[], "").ok();
    blobs.call("PUT cont/append", &[("x-ms-blob-type", "AppendBlob")], "").ok();
    blobs.call("PUT cont/page", &[("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1024")], "").ok();
    let url = stage.client.url("share/file");
    let signed = |path: &str, letters: &str| {
        format!("{}?{}", stage.client.url(path), signatures::for_path(&stage.client, path, letters))
    };
    let mut table = Table::new("blobs of files");
    for (name, line, headers, done) in TAKERS {
        let take =
            |url: &str, more: Headers<'_>| blobs.call(line, &[&[(COPY_SOURCE, url)], headers, more].concat(), "");
        table.row(
            format!("{name}: no source"),
            take(&signed("share/none", "r"), &[]).said(),
            "404 CannotVerifyCopySource",
        );
        table.row(
            format!("{name}: no right"),
            take(&signed("share/file", "w"), &[]).said(),
            "403 CannotVerifyCopySource",
        );
        let stale = ("x-ms-source-if-match", "\"0x1\"");
        let unmet = if name == "Copy Blob" { "412 SourceConditionNotMet" } else { "412 CannotVerifyCopySource" };
        table.row(format!("{name}: a condition"), take(&signed("share/file", "r"), &[stale]).said(), unmet);
        table.row(name, take(&signed("share/file", "r"), &[]).status, done);
    }
    blobs.call("PUT cont/blocks?comp=blocklist", &[], "<BlockList><Latest>AAAA</Latest></BlockList>").ok();
    for (path, expected) in [
        ("cont/copy", &content[..]),
        ("cont/sync", &content),
        ("cont/put", &content),
        ("cont/blocks", &content[..1_024]),
        ("cont/append", &content[..1_024]),
        ("cont/page", &content[..1_024]),
    ] {
        table.row(format!("{path}: content"), blobs.call(&format!("GET {path}"), &[], "").ok().body == expected, true);
    }
    let told = blobs.call("HEAD cont/copy", &[], "").ok();
    let shown = ["x-ms-blob-type", "x-ms-copy-status", "x-ms-copy-progress", "x-ms-meta-a", "content-type"];
    let shown = shown.map(|name| told.header(name).unwrap_or("none").to_owned()).join(" ");
    table.row("what a copy is", shown, "BlockBlob success 5000/5000 1 text/plain");
    // The key of the account opens its files to a copy, and to nothing else.
    table.row("by the key", blobs.call("PUT cont/copy", &[(COPY_SOURCE, &*url)], "").status, 202);
    let refused = blobs.call("PUT cont/put", &[(COPY_SOURCE, &*url), BLOCK_BLOB], "").said();
    table.row("by no signature", refused, "401 CannotVerifyCopySource");
    let incremental = blobs.call("PUT cont/inc?comp=incrementalcopy", &[(COPY_SOURCE, &*url)], "").said();
    table.row("incremental", incremental, "400 CannotVerifyCopySource");
    // And back: what was copied is copied into a file again.
    let back = format!("{}?{}", blobs.url("cont/copy"), signatures::for_services(&stage.client, "b", "r", "o"));
    stage.call("PUT share/back", &[(COPY_SOURCE, &*back)], "").ok();
    // A node fetches what has the address of another node, after it has answered.
    let status = || stage.head("share/back").ok().header("x-ms-copy-status").unwrap_or("none").to_owned();
    let patience = Instant::now() + Duration::from_secs(60);
    while status() == "pending" && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(20));
    }
    table.row("and back: status", status(), "success");
    table.row("and back", stage.read("share/back") == content, true);
}
