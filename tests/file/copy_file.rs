//! Copy File: from files, blobs and elsewhere; what goes along, what is set, and what stands against it.

use std::time::{Duration, Instant};

use crate::harness::{Answer, Elsewhere, Headers, Table};
use crate::signatures;
use crate::stage::{A, B, FILE, LENGTH, MIB, Stage, pattern};

const COPY_SOURCE: &str = "x-ms-copy-source";
/// How long a copy beside the requests may take on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(120);

fn copy(stage: &Stage, from: &str, to: &str, headers: Headers<'_>) -> Answer {
    stage.call(&format!("PUT {to}"), &[&[(COPY_SOURCE, from)], headers].concat(), "")
}

/// Waits until a copy has ended, and lets the time of the server pass meanwhile.
#[track_caller]
fn ended(stage: &Stage, path: &str) -> Answer {
    let began = Instant::now();
    loop {
        let told = stage.head(path).ok();
        if told.header("x-ms-copy-status") != Some("pending") {
            return told;
        }
        assert!(began.elapsed() < PATIENCE, "{:?}", told.headers);
        stage.server.advance(1);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_goes_along_and_what_is_new() {
    let stage = Stage::new();
    let headers = [
        ("x-ms-meta-a", "1"),
        ("x-ms-content-type", "text/plain"),
        ("x-ms-cache-control", "no-store"),
        ("x-ms-file-attributes", "Hidden"),
        ("x-ms-file-creation-time", "2019-01-02T03:04:05.0000006Z"),
        ("x-ms-file-last-write-time", "2019-01-02T03:04:06.0000006Z"),
        ("x-ms-file-permission", "O:SYG:SYD:(A;;FA;;;BU)"),
    ];
    stage.create_file("share/from", 5_000, &headers).ok();
    stage
        .call(
            "PUT share/from?comp=range",
            &[("x-ms-write", "update"), ("x-ms-range", "bytes=1000-2999"), ("x-ms-file-last-write-time", "preserve")],
            pattern(1, 2_000),
        )
        .ok();
    let before = stage.head("share/from").ok();
    stage.server.advance(2);
    let url = stage.client.url("share/from");
    let answer = copy(&stage, &url, "share/to", &[]).ok();
    assert_eq!((answer.status, answer.header("x-ms-copy-status")), (202, Some("success")));
    let mut table = Table::new("copy_file: effects");
    let mut compare = |what: &str, after: &Answer, expected: &[(&str, &str)]| {
        for (header, expected) in expected {
            let change = if before.header(header) == after.header(header) { "same" } else { "new" };
            table.row(format!("{what}: {header}"), change, expected);
        }
    };
    #[rustfmt::skip]
    let plain = [
        ("etag", "new"), ("content-length", "same"), ("content-type", "same"), ("cache-control", "same"), ("x-ms-meta-a", "same"), ("x-ms-file-id", "new"),
        ("x-ms-file-attributes", "new"), ("x-ms-file-creation-time", "new"), ("x-ms-file-last-write-time", "new"), ("x-ms-file-permission-key", "new"),
    ];
    let after = stage.head("share/to").ok();
    compare("nothing said", &after, &plain);
    #[rustfmt::skip]
    let of_source = [
        ("x-ms-file-attributes", "source"), ("x-ms-file-creation-time", "source"), ("x-ms-file-last-write-time", "source"), ("x-ms-file-permission-copy-mode", "source"),
    ];
    copy(&stage, &url, "share/alike", &of_source).ok();
    #[rustfmt::skip]
    let alike = [
        ("x-ms-file-attributes", "same"), ("x-ms-file-creation-time", "same"), ("x-ms-file-last-write-time", "same"), ("x-ms-file-permission-key", "same"),
    ];
    compare("as the source", &stage.head("share/alike").ok(), &alike);
    for header in ["x-ms-copy-id", "x-ms-copy-status", "etag", "last-modified"] {
        table.row(
            format!("{header} told"),
            format!("{:?}", after.header(header)),
            format!("{:?}", answer.header(header)),
        );
    }
    table.row("source told", after.header("x-ms-copy-source").unwrap_or_default(), &url);
    table.row("progress told", after.header("x-ms-copy-progress").unwrap_or_default(), "5000/5000");
    table.row("content", stage.read("share/to") == stage.read("share/from"), true);
    table.row("ranges", stage.ranges("share/to"), stage.ranges("share/from"));
    table.row("usage", stage.usage("share"), 15_000);
    // Each is by itself afterwards.
    stage.write("share/from", 1_000, "changed");
    stage.delete("share/alike").ok();
    table.row("the copy stays", stage.read_range("share/to", 1_000, 2_999) == pattern(1, 2_000), true);
}

#[test]
fn what_stands_against_it() {
    let mut table = Table::new("copy_file: refusals");
    #[rustfmt::skip]
    let rows: &[(&str, &str, &str, Headers<'_>, &str)] = &[
        ("a free name",             "share/file", "share/to",      &[], "202"),
        ("into a directory",        "share/file", "share/dir/to",  &[], "202"),
        ("a file",                  "share/file", "share/other",   &[], "202"),
        ("itself",                  "share/file", "share/file",    &[], "202"),
        ("another share",           "share/file", "second/to",     &[], "202"),
        ("a directory",             "share/file", "share/dir",     &[], "409 ResourceTypeMismatch"),
        ("no parent",               "share/file", "share/no/to",   &[], "404 ParentNotFound"),
        ("no share",                "share/file", "none/to",       &[], "404 ShareNotFound"),
        ("no source",               "share/none", "share/to",      &[], "404 CannotVerifyCopySource"),
        ("a directory as a source", "share/dir",  "share/to",      &[], "404 CannotVerifyCopySource"),
        ("no source and no parent", "share/none", "share/no/to",   &[], "404 ParentNotFound"),
        ("leased",                  "share/file", "share/leased",  &[], "412 LeaseIdMissing"),
        ("leased, right",           "share/file", "share/leased",  &[("x-ms-lease-id", A)], "202"),
        ("leased, wrong",           "share/file", "share/leased",  &[("x-ms-lease-id", B)], "412 LeaseIdMismatchWithFileOperation"),
        ("an id and no lease",      "share/file", "share/other",   &[("x-ms-lease-id", A)], "412 LeaseNotPresentWithFileOperation"),
        ("read-only",               "share/file", "share/fixed",   &[], "409 ReadOnlyAttribute"),
        ("read-only, ignored",      "share/file", "share/fixed",   &[("x-ms-file-copy-ignore-readonly", "true")], "202"),
        ("a condition",             "share/file", "share/to",      &[("if-match", "*")], "400 ConditionHeadersNotSupported"),
        ("override without one",    "share/file", "share/to",      &[("x-ms-file-permission-copy-mode", "override")], "400 MissingRequiredHeader"),
        ("an unknown mode",         "share/file", "share/to",      &[("x-ms-file-permission-copy-mode", "x")], "400 InvalidHeaderValue"),
        ("a mode of NFS",           "share/file", "share/to",      &[("x-ms-mode", "0777")], "400 InvalidHeaderValue"),
        ("a snapshot",              "share/file?sharesnapshot=2026-01-01T00:00:00.0000000Z", "share/to", &[], "404 CannotVerifyCopySource"),
    ];
    let stage = Stage::new();
    stage.make_share("second");
    for (row, from, to, headers, expected) in rows {
        for path in ["share/file", "share/other", "share/leased"] {
            stage.call(&format!("PUT {path}"), &[FILE, (LENGTH, "10"), ("x-ms-lease-id", A)], "");
            stage.call(&format!("PUT {path}"), &[FILE, (LENGTH, "10")], "");
        }
        stage.call(&format!("PUT {}", crate::stage::directory("share/dir")), &[], "");
        stage.call("PUT share/fixed?comp=properties", &[("x-ms-file-attributes", "None")], "");
        stage.create_file("share/fixed", 3, &[("x-ms-file-attributes", "ReadOnly")]).ok();
        stage.write("share/file", 0, "0123456789");
        if stage.lease_state("share/leased") != "leased" {
            stage.acquire("share/leased", A, "-1");
        }
        let before = stage.everything();
        let answer = copy(&stage, &stage.client.url(from), to, headers);
        table.row(row, answer.said(), expected);
        if answer.is_success() {
            table.row(format!("{row}: content"), String::from_utf8_lossy(&stage.read(to)), "0123456789");
        } else {
            table.row(format!("{row}: nothing changed"), stage.everything() == before, true);
        }
        stage.delete("share/to");
        stage.delete("share/dir/to");
    }
}

/// Block, append and page blobs; one of them larger than what one step refers to.
#[test]
fn from_blobs() {
    let stage = Stage::new();
    let blobs = stage.server.blob_client();
    blobs.call("PUT cont?restype=container", &[], "").ok();
    let block_blob = ("x-ms-blob-type", "BlockBlob");
    let small = pattern(1, 3_000);
    let headers = [block_blob, ("x-ms-meta-a", "1"), ("x-ms-blob-content-type", "text/plain")];
    blobs.call("PUT cont/small", &headers, &small).ok();
    let mut large = Vec::new();
    let mut list = String::from("<BlockList>");
    for n in 0..10_u64 {
        let block = pattern(n, 7 * MIB as usize + n as usize);
        let id = format!("{n:04}");
        let id = wire::base64::encode(id.as_bytes());
        blobs.call(&format!("PUT cont/large?comp=block&blockid={}", crate::stage::percent(&id)), &[], &block).ok();
        list.push_str(&format!("<Latest>{id}</Latest>"));
        large.extend_from_slice(&block);
    }
    list.push_str("</BlockList>");
    blobs.call("PUT cont/large?comp=blocklist", &[], &list).ok();
    blobs.call("PUT cont/append", &[("x-ms-blob-type", "AppendBlob")], "").ok();
    for part in ["one ", "two ", "three"] {
        blobs.call("PUT cont/append?comp=appendblock", &[], part).ok();
    }
    blobs.call("PUT cont/page", &[("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "2048")], "").ok();
    let pages = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=512-1023")];
    blobs.call("PUT cont/page?comp=page", &pages, [7; 512]).ok();
    blobs.call("PUT cont/empty", &[block_blob], "").ok();
    let page = [vec![0; 512], vec![7; 512], vec![0; 1_024]].concat();
    let mut table = Table::new("copy_file: blobs");
    let all: [(&str, &[u8]); 5] =
        [("small", &small), ("large", &large), ("append", b"one two three"), ("page", &page), ("empty", b"")];
    let sum: usize = all.iter().map(|(_, content)| content.len()).sum();
    let signature = signatures::for_services(&stage.client, "b", "r", "o");
    for (name, content) in all {
        let url = blobs.url(&format!("cont/{name}?{signature}"));
        let path = format!("share/{name}");
        table.row(format!("{name}: begun"), copy(&stage, &url, &path, &[]).status, 202);
        let told = ended(&stage, &path);
        table.row(format!("{name}: ended"), told.header("x-ms-copy-status").unwrap_or_default(), "success");
        let progress = format!("{0}/{0}", content.len());
        table.row(format!("{name}: progress"), told.header("x-ms-copy-progress").unwrap_or_default(), progress);
        table.row(format!("{name}: content"), stage.read(&path) == content, true);
        // What is copied stays when the blob goes, and can be written to.
        blobs.call(&format!("DELETE cont/{name}"), &[], "").ok();
    }
    let told = stage.head("share/small").ok();
    let shown = format!("{:?} {:?}", told.header("x-ms-meta-a"), told.header("content-type"));
    table.row("properties", shown, r#"Some("1") Some("text/plain")"#);
    stage.write("share/large", 10 * MIB, "changed");
    large[10 * MIB as usize..10 * MIB as usize + 7].copy_from_slice(b"changed");
    table.row("written to", stage.read("share/large") == large, true);
    table.row("page ranges", stage.ranges("share/page"), "512-1023");
    table.row("usage", stage.usage("share"), sum);
}

#[test]
fn from_elsewhere_over_a_kill() {
    let mut stage = Stage::new();
    let content = pattern(3, 9 * MIB as usize + 5);
    let source =
        Elsewhere::start(content.clone(), 5 * MIB as usize, &[("content-type", "text/plain"), ("x-ms-meta-a", "1")]);
    let begun = copy(&stage, &source.url(), "share/file", &[]).ok();
    assert_eq!((begun.status, begun.header("x-ms-copy-status")), (202, Some("pending")));
    assert_eq!(stage.usage("share"), content.len() as u64);
    stage.server.kill_and_restart();
    stage.client = stage.server.client();
    assert_eq!(stage.head("share/file").ok().header("x-ms-copy-status"), Some("pending"));
    source.open();
    let told = ended(&stage, "share/file");
    assert_eq!(told.header("x-ms-copy-status"), Some("success"));
    assert_eq!((told.header("x-ms-meta-a"), told.header("content-type")), (Some("1"), Some("text/plain")));
    assert!(stage.read("share/file") == content);
    assert_eq!(stage.usage("share"), content.len() as u64);
}

/// A signature opens its source and nothing else; the key of the account opens the account.
#[test]
fn by_whose_right_a_source_is_read() {
    let stage = Stage::new();
    stage.put_file("share/from", "source");
    stage.put_file("share/other", "other");
    let mut table = Table::new("copy_file: rights");
    let url = stage.client.url("share/from");
    let signed = |letters: &str| format!("{url}?{}", signatures::for_path(&stage.client, "share/from", letters));
    let of_other = format!("{url}?{}", signatures::for_path(&stage.client, "share/other", "r"));
    for (row, from, expected) in [
        ("the account's key", url.clone(), "202"),
        ("a signature for reading", signed("r"), "202"),
        ("a signature for writing", signed("w"), "403 CannotVerifyCopySource"),
        ("the signature of another", of_other, "403 CannotVerifyCopySource"),
    ] {
        table.row(row, copy(&stage, &from, "share/to", &[]).said(), expected);
    }
    // A signature for the target alone says nothing of the source.
    let target = signatures::for_path(&stage.client, "share/to", "cw");
    let with_source = |from: &str| signatures::ask(&stage.client, "PUT share/to", &target, &[(COPY_SOURCE, from)], "");
    table.row("a signature for the target", with_source(&url).said(), "401 CannotVerifyCopySource");
    table.row("a signature for each", with_source(&signed("r")).said(), "202");
    let create = signatures::for_path(&stage.client, "share/to", "c");
    let answer = signatures::ask(&stage.client, "PUT share/to", &create, &[(COPY_SOURCE, &*signed("r"))], "");
    table.row("who may create does not replace", answer.said(), "403 AuthorizationPermissionMismatch");
}
