//! Where copies come from: what every operation that takes a source says of one.

use crate::harness::{Answer, Elsewhere, Headers, Table, date_after};
use crate::stage::{A, B, BLOCK_BLOB, Stage, block_list, percent};

const END: &str = "2099-01-01T00:00:00Z";
const SYNC: (&str, &str) = ("x-ms-requires-sync", "true");
const PAGES: Headers<'static> =
    &[("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511"), ("x-ms-source-range", "bytes=0-511")];

/// An operation, and the request for it.
struct Taker {
    name: &'static str,
    line: &'static str,
    headers: Headers<'static>,
    /// What it answers when it is done.
    done: u16,
    /// The caller's own rights count at its source.
    is_copy: bool,
}

#[rustfmt::skip]
const TAKERS: [Taker; 7] = [
    Taker { name: "Copy Blob",             line: "PUT cont/blob", headers: &[], done: 202, is_copy: true },
    Taker { name: "Incremental Copy Blob", line: "PUT cont/incremental?comp=incrementalcopy", headers: &[], done: 202, is_copy: true },
    Taker { name: "Copy Blob From URL",    line: "PUT cont/blob", headers: &[SYNC], done: 202, is_copy: false },
    Taker { name: "Put Blob From URL",     line: "PUT cont/blob", headers: &[BLOCK_BLOB], done: 201, is_copy: false },
    Taker { name: "Put Block From URL",    line: "PUT cont/blob?comp=block&blockid=AAAA", headers: &[], done: 201, is_copy: false },
    Taker { name: "Append Block From URL", line: "PUT cont/append?comp=appendblock", headers: &[], done: 201, is_copy: false },
    Taker { name: "Put Page From URL",     line: "PUT cont/page?comp=page", headers: PAGES, done: 201, is_copy: false },
];

/// Sources in `from` and `public`, each a block blob and a snapshot of a page blob, and blobs to write to.
struct Sources {
    stage: Stage,
    snapshot: String,
}

impl Sources {
    fn new() -> Sources {
        Sources::on(Stage::new())
    }

    fn on(stage: Stage) -> Sources {
        stage.put("cont/blob", "before");
        stage.put_append("cont/append", "before");
        stage.put_pages("cont/page", 1_024);
        stage.call("PUT from?restype=container", &[], "").ok();
        stage.call("PUT public?restype=container", &[("x-ms-blob-public-access", "blob")], "").ok();
        let mut snapshot = String::new();
        for container in ["public", "from"] {
            stage.call(&format!("PUT {container}/block"), &[BLOCK_BLOB, ("x-ms-tags", "a=1")], [7; 512]).ok();
            stage.put_pages(&format!("{container}/page"), 1_024);
            let made = stage.call(&format!("PUT {container}/page?comp=snapshot"), &[], "").ok();
            if container == "from" {
                snapshot = made.header("x-ms-snapshot").expect("an id").to_owned();
            }
        }
        Sources { stage, snapshot }
    }

    /// The source in `from` that suits the operation.
    fn of(&self, taker: &Taker) -> String {
        match taker.name {
            "Incremental Copy Blob" => format!("from/page?snapshot={}", percent(&self.snapshot)),
            _ => "from/block".to_owned(),
        }
    }

    fn take(&self, taker: &Taker, url: &str, headers: Headers<'_>) -> Answer {
        self.stage.take(taker.line, url, &[taker.headers, headers].concat())
    }

    /// What a refused request must leave as it was.
    fn everything(&self) -> Vec<String> {
        let told = |target: &str| {
            let answer = self.stage.get(target);
            if answer.is_success() { format!("{:?}", answer.body) } else { answer.said() }
        };
        let blobs = ["cont/append", "cont/page", "cont/incremental"].map(told);
        [self.stage.everything(), blobs.to_vec()].concat()
    }

    /// The answer, and what it tells of the answer of the source.
    #[track_caller]
    fn refusal(&self, taker: &Taker, url: &str, headers: Headers<'_>) -> String {
        let before = self.everything();
        let answer = self.take(taker, url, headers);
        assert_eq!(self.everything(), before, "{}: {}", taker.name, answer.said());
        let told = |name| answer.header(name).map(|value| format!(" {value}")).unwrap_or_default();
        let (status, code) = (told("x-ms-copy-source-status-code"), told("x-ms-copy-source-error-code"));
        format!("{}{status}{code}", answer.said())
    }
}

/// By whose authority a source is read.
#[test]
fn rights() {
    let sources = Sources::new();
    let stage = &sources.stage;
    let mut table = Table::new("copy source rights");
    for taker in &TAKERS {
        let source = sources.of(taker);
        let name = taker.name;
        let mut refused = |what: &str, url: &str, status: u16, code: &str| {
            let expected = format!("{status} CannotVerifyCopySource {status} {code}");
            table.row(format!("{name}, {what}"), sources.refusal(taker, url, &[]), expected);
        };
        refused("a signature for writing", &stage.signed(&source, "w", END), 403, "AuthorizationPermissionMismatch");
        refused(
            "a signature that has ended",
            &stage.signed(&source, "r", "2020-01-01T00:00:00Z"),
            403,
            "AuthenticationFailed",
        );
        let of_another = stage.readable(&source).replace("/from/", "/public/");
        refused("the signature of another blob", &of_another, 403, "AuthenticationFailed");
        if !taker.is_copy {
            // The caller's key opens this account to the caller, and says nothing to a source.
            refused("nothing", &stage.client.url(&source), 401, "NoAuthenticationInformation");
        }
        if taker.is_copy {
            table.row(
                format!("{name}, the caller's key"),
                sources.take(taker, &stage.client.url(&source), &[]).status,
                taker.done,
            );
        }
    }
    for taker in TAKERS.iter().filter(|taker| taker.name != "Incremental Copy Blob") {
        let signed = sources.take(taker, &stage.readable("from/block"), &[]);
        table.row(format!("{}, a signature for reading", taker.name), signed.status, taker.done);
        let public = sources.take(taker, &stage.client.url("public/block"), &[]);
        table.row(format!("{}, a public blob", taker.name), public.status, taker.done);
    }
    // Who has only a signature for the destination may read no other blob by it.
    let to = stage.signed("cont/blob", "cw", END);
    let line = format!("PUT cont/blob?{}", to.split_once('?').expect("a query").1);
    let url = stage.client.url("from/block");
    let head = stage.client.unsigned_head(&line, &[("x-ms-copy-source", &url), ("content-length", "0")]);
    table.row("a stranger's copy", stage.client.call_odd(&line, &head, b"").said(), "401 CannotVerifyCopySource");
}

/// A signature for the container opens whatever is in it: the blob, a snapshot, a version.
#[test]
fn what_a_container_signature_opens() {
    let sources = Sources::on(Stage::with_settings("versioning = true"));
    let stage = &sources.stage;
    let put = |byte: u8| {
        let made = stage.call("PUT from/block", &[BLOCK_BLOB], [byte; 512]).ok();
        made.header("x-ms-version-id").expect("a version").to_owned()
    };
    let version = put(1);
    put(2);
    let made = stage.call("PUT from/block?comp=snapshot", &[], "").ok();
    let snapshot = made.header("x-ms-snapshot").expect("an id").to_owned();
    put(3);
    let mut table = Table::new("copy source of a container");
    let which = [
        ("the blob", String::new(), 3),
        ("a snapshot", format!("?snapshot={}", percent(&snapshot)), 2),
        ("a version", format!("?versionid={}", percent(&version)), 1),
    ];
    for taker in TAKERS.iter().filter(|taker| taker.name != "Incremental Copy Blob") {
        for (what, query, byte) in &which {
            let blob = format!("from/block{query}");
            let what = format!("{}, {what}", taker.name);
            let code = "403 AuthorizationPermissionMismatch";
            let refused = format!("403 CannotVerifyCopySource {code}");
            let listing = sources.refusal(taker, &stage.signed_by_container(&blob, "l", END), &[]);
            table.row(format!("{what}, only to list"), listing, refused);
            let taken = sources.take(taker, &stage.signed_by_container(&blob, "r", END), &[]);
            table.row(&what, taken.status, taker.done);
            if taker.name == "Put Block From URL" {
                let list = block_list(&[("Latest", "AAAA")]);
                stage.call("PUT cont/blob?comp=blocklist", &[], list).ok();
            }
            let target = taker.line.trim_start_matches("PUT ").split('?').next().expect("a blob");
            let whole = stage.get(target).ok().body;
            let found = if target == "cont/page" { &whole[..512] } else { &whole[whole.len() - 512..] };
            table.row(format!("{what}, its bytes"), format!("{:?}", &found[..2]), format!("{:?}", [byte, byte]));
        }
    }
    // The same words by a signature that says nothing of them.
    let none = stage.signed_by_container("from/block?snapshot=2020-01-01T00%3A00%3A00.0000000Z", "r", END);
    let said = sources.refusal(&TAKERS[2], &none, &[]);
    table.row("no such snapshot", said, "404 CannotVerifyCopySource 404 BlobNotFound");
}

/// Tags come along from the same server and from another, if the signature allows to read them.
#[test]
fn tags_come_along() {
    let (sources, other) = (Sources::new(), Sources::new());
    let mut table = Table::new("copy source tags");
    let copied = ("x-ms-copy-source-tag-option", "COPY");
    let tags = || String::from_utf8_lossy(&sources.stage.get("cont/blob?comp=tags").ok().body).into_owned();
    for (whose, home) in [("own", &sources.stage), ("another", &other.stage)] {
        for taker in TAKERS.iter().filter(|taker| matches!(taker.line, "PUT cont/blob") && !taker.is_copy) {
            let what = format!("{}, of {whose} server", taker.name);
            sources.stage.put("cont/blob", "before");
            let url = home.signed("from/block", "r", END);
            let said = sources.refusal(taker, &url, &[copied]);
            let code = "403 AuthorizationPermissionMismatch";
            table.row(format!("{what}, no right"), said, format!("403 CannotVerifyCopySource {code}"));
            let both = sources.refusal(taker, &url, &[copied, ("x-ms-tags", "b=2")]);
            table.row(format!("{what}, and others"), both, "400 BothUserTagsAndSourceTagsCopyPresentException");
            sources.take(taker, &home.signed("from/block", "rt", END), &[copied]).ok();
            table.row(&what, tags().contains("<Key>a</Key><Value>1</Value>"), true);
            sources.take(taker, &home.signed("from/block", "r", END), &[]).ok();
            table.row(format!("{what}, not asked for"), tags().contains("<Tag>"), false);
        }
    }
}

#[test]
fn sources_that_are_not_there() {
    let sources = Sources::new();
    let stage = &sources.stage;
    let mut table = Table::new("copy source missing");
    for taker in &TAKERS {
        let which = match taker.name {
            "Incremental Copy Blob" => "?snapshot=2020-01-01T00%3A00%3A00.0000000Z",
            _ => "",
        };
        for (blob, code) in [("from/none", "BlobNotFound"), ("none/blob", "ContainerNotFound")] {
            let said = sources.refusal(taker, &stage.readable(&format!("{blob}{which}")), &[]);
            table.row(format!("{}, {blob}", taker.name), said, format!("404 CannotVerifyCopySource 404 {code}"));
        }
        // Why a file would be read; a blob does not ask.
        let why = sources.refusal(taker, &stage.readable(&sources.of(taker)), &[("x-ms-file-request-intent", "x")]);
        table.row(format!("{}, why", taker.name), why, "400 InvalidHeaderValue");
        let intent = [("x-ms-file-request-intent", "backup")];
        let status = sources.take(taker, &stage.readable(&sources.of(taker)), &intent).status;
        table.row(format!("{}, for a backup", taker.name), status, taker.done);
        let said = sources.refusal(taker, "no url", &[]);
        table.row(format!("{}, no URL", taker.name), said, "400 InvalidHeaderValue");
    }
}

#[test]
fn conditions_on_the_source() {
    let sources = Sources::new();
    let stage = &sources.stage;
    let mut table = Table::new("copy source conditions");
    for taker in &TAKERS {
        let source = stage.readable(&sources.of(taker));
        let told = stage.head(&sources.of(taker)).ok();
        let (etag, date) = (told.etag(), told.last_modified());
        let (earlier, later) = (date_after(&date, -10), date_after(&date, 10));
        #[rustfmt::skip]
        let rows: [(&str, &str, Option<u16>); 8] = [
            ("x-ms-source-if-match",            "\"0x1\"", Some(412)),
            ("x-ms-source-if-none-match",       &etag,     Some(304)),
            ("x-ms-source-if-modified-since",   &later,    Some(304)),
            ("x-ms-source-if-unmodified-since", &earlier,  Some(412)),
            ("x-ms-source-if-match",            &etag,     None),
            ("x-ms-source-if-none-match",       "\"0x1\"", None),
            ("x-ms-source-if-modified-since",   &earlier,  None),
            ("x-ms-source-if-unmodified-since", &later,    None),
        ];
        // An incremental copy that is done cannot be done again.
        for (name, value, unmet) in
            rows.into_iter().filter(|row| taker.done != 202 || row.2.is_some() || !taker.line.contains("incremental"))
        {
            let what = format!("{}, {name}: {value}", taker.name);
            match unmet {
                None => table.row(what, sources.take(taker, &source, &[(name, value)]).status, taker.done),
                Some(status) => {
                    let said = sources.refusal(taker, &source, &[(name, value)]);
                    let told = match taker.is_copy {
                        true => "412 SourceConditionNotMet".to_owned(),
                        false => format!("412 CannotVerifyCopySource {status} ConditionNotMet"),
                    };
                    table.row(what, said, told);
                }
            }
        }
    }
    // Asked of its tags, the service calls it by another name.
    let unmet = ("x-ms-source-if-tags", "\"a\"='2'");
    table.row("tags", sources.refusal(&TAKERS[0], &stage.client.url("from/block"), &[unmet]), "412 ConditionNotMet");
    let met = ("x-ms-source-if-tags", "\"a\"='1'");
    table.row("tags that are there", sources.take(&TAKERS[0], &stage.client.url("from/block"), &[met]).said(), "202");
    let both = [unmet, ("x-ms-source-if-match", "\"0x1\"")];
    let said = sources.refusal(&TAKERS[0], &stage.client.url("from/block"), &both);
    table.row("tags and ETag", said, "412 SourceConditionNotMet");
}

/// What is wrong with the destination counts before what is wrong with the source.
#[test]
fn two_faults_at_once() {
    let sources = Sources::new();
    let stage = &sources.stage;
    let missing = stage.client.url("from/none");
    let stale = ("if-match", "\"0x1\"");
    let mut table = Table::new("copy source two faults");
    let is_blob_written = |taker: &&Taker| !taker.line.contains("incremental");
    for taker in TAKERS.iter().filter(is_blob_written) {
        // Blocks know no conditions.
        if taker.name != "Put Block From URL" {
            let said = sources.refusal(taker, &missing, &[stale]);
            table.row(format!("{}, stale and no source", taker.name), said, "412 ConditionNotMet");
        }
        let target = taker.line.trim_start_matches("PUT ").split('?').next().expect("a blob");
        stage.acquire(target, A, "-1");
        let said = sources.refusal(taker, &missing, &[]);
        table.row(format!("{}, leased and no source", taker.name), said, "412 LeaseIdMissing");
        let said = sources.refusal(taker, &missing, &[("x-ms-lease-id", B)]);
        table.row(
            format!("{}, another's lease and no source", taker.name),
            said,
            "412 LeaseIdMismatchWithBlobOperation",
        );
        let said = sources.refusal(taker, &stage.readable("from/none"), &[("x-ms-lease-id", A)]);
        table.row(
            format!("{}, own lease and no source", taker.name),
            said,
            "404 CannotVerifyCopySource 404 BlobNotFound",
        );
        stage.lease(target, &[("x-ms-lease-action", "release"), ("x-ms-lease-id", A)]).ok();
        let nowhere = taker.line.replace("cont/", "none/");
        let said = stage.take(&nowhere, &missing, taker.headers).said();
        table.row(format!("{}, neither container nor source", taker.name), said, "404 ContainerNotFound");
        let body = [&[("x-ms-copy-source", missing.as_str())], taker.headers].concat();
        let said = stage.call(taker.line, &body, "body").status;
        table.row(format!("{}, a body beside the source", taker.name), said, 400);
    }
}

/// Nobody is sent into the operator's network.
#[test]
fn hosts_that_are_not_allowed() {
    let sources = Sources::new();
    let mut table = Table::new("copy source hosts");
    for url in [
        "http://169.254.169.254/metadata",
        "http://10.0.0.1/x",
        "http://192.168.1.1:8080/x",
        "http://[fe80::1]/x",
        "http://0.0.0.0:80/x",
        "http://store.example.org/x",
        "https://127.0.0.1.example.org/x",
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
    ] {
        for taker in TAKERS.iter().filter(|taker| !taker.line.contains("incremental")) {
            let said = sources.refusal(taker, url, &[]);
            let is_url = url.starts_with("http");
            let expected = if is_url { "400 CannotVerifyCopySource" } else { "400 InvalidHeaderValue" };
            table.row(format!("{}, {url}", taker.name), said, expected);
        }
    }
}

/// Of a source elsewhere the bytes are taken within the request.
#[test]
fn from_elsewhere() {
    let sources = Sources::new();
    let stage = &sources.stage;
    let source = Elsewhere::start([9; 512], usize::MAX, &[("content-type", "text/plain")]);
    for taker in TAKERS.iter().filter(|taker| !taker.is_copy && taker.line != TAKERS[6].line) {
        sources.take(taker, &source.url(), &[]).ok();
    }
    assert_eq!(stage.get("cont/blob").ok().body, [9; 512]);
    assert_eq!(stage.get("cont/append").ok().body, [&b"before"[..], &[9; 512]].concat());
    // Who gives the whole instead of a part is not believed.
    let said = sources.refusal(&TAKERS[6], &source.url(), &[]);
    assert_eq!(said, "412 CannotVerifyCopySource 200");
    // One that breaks off leaves nothing behind.
    let broken = Elsewhere::start([8; 512], 100, &[]);
    let asked = std::thread::scope(|scope| {
        let url = broken.url();
        let client = stage.server.client();
        let asking =
            scope.spawn(move || client.try_call("PUT cont/blob", &[BLOCK_BLOB, ("x-ms-copy-source", &url)], ""));
        while broken.requests() == 0 {
            std::thread::yield_now();
        }
        broken.leave();
        asking.join().expect("no panic").expect("an answer")
    });
    assert_eq!(asked.said(), "500 CannotVerifyCopySource");
    assert_eq!(stage.get("cont/blob").ok().body, [9; 512]);
}
