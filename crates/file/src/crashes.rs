//! A crash or an error between any two steps leaves the state before or the state after, and nothing else.
//!
//! A story (a list of requests) is run once for every step it takes and every way to fail there. Whatever failed, the account then
//! holds what it held after the last acknowledged request, or after the request that failed. Once the share is deleted and its
//! time is over, nothing is left.

use std::sync::Arc;

use auth::Settings;
use engine::Engine;
use engine::fault::{Fault, FaultyEngine};
use engine::memory::MemoryEngine;

use crate::Failure;
use crate::check::check;
use crate::testing::{Bench, between, header, text};

/// One request of the story.
type Act = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [u8]);

const SHARE: &str = "share?restype=share";
const ACQUIRE: &[(&str, &str)] =
    &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", ID)];
const ID: &str = "01010101-0101-0101-0101-010101010101";
const HOLDER: &[(&str, &str)] = &[("x-ms-lease-id", ID)];
const FILE: &[(&str, &str)] = &[("x-ms-type", "file"), ("x-ms-content-length", "100")];
const SHORT: &[(&str, &str)] = &[("x-ms-type", "file"), ("x-ms-content-length", "5")];
const UPDATE: &[(&str, &str)] = &[("x-ms-write", "update"), ("x-ms-range", "bytes=0-4")];
const CLEAR: &[(&str, &str)] = &[("x-ms-write", "clear"), ("x-ms-range", "bytes=0-4")];
const FROM_DIR: &[(&str, &str)] = &[("x-ms-file-rename-source", "http://127.0.0.1:10003/acct/share/dir")];
const COPY: &[(&str, &str)] = &[("x-ms-copy-source", "http://127.0.0.1:10003/acct/share/moved/file")];
const COPY_RANGE: &[(&str, &str)] = &[COPY[0], ("x-ms-write", "update"), ("x-ms-range", "bytes=0-49")];
/// `VERSION` stands for the version of the deleted share.
const DELETED: &[(&str, &str)] = &[("x-ms-deleted-share-name", "share"), ("x-ms-deleted-share-version", "VERSION")];

const STORY: &[Act] = &[
    ("PUT", SHARE, &[("x-ms-meta-a", "1")], b""),
    ("PUT", "share?restype=share&comp=metadata", &[("x-ms-meta-b", "2")], b""),
    ("PUT", "share?restype=share&comp=properties", &[("x-ms-share-quota", "7")], b""),
    ("PUT", "share?restype=share&comp=acl", &[], b"<SignedIdentifiers/>"),
    ("PUT", "share?restype=share&comp=filepermission", &[], b"{\"permission\":\"O:BAG:SYD:(A;;FA;;;BU)\"}"),
    ("PUT", "share/dir?restype=directory", &[], b""),
    ("PUT", "share/dir/file", FILE, b""),
    ("PUT", "share/dir/file?comp=range", UPDATE, b"bytes"),
    ("PUT", "share/moved?restype=directory&comp=rename", FROM_DIR, b""),
    ("PUT", "share/moved/file?comp=range", CLEAR, b""),
    ("PUT", "share/moved/file?comp=properties", &[("x-ms-content-length", "50")], b""),
    ("PUT", "share/moved/file?comp=metadata", &[("x-ms-meta-c", "3")], b""),
    ("PUT", "share/other", FILE, b""),
    ("PUT", "share/other", SHORT, b""),
    ("PUT", "share/other", COPY, b""),
    ("PUT", "share/file", COPY, b""),
    ("PUT", "share/file?comp=range", COPY_RANGE, b""),
    ("DELETE", "share/file", &[], b""),
    ("DELETE", "share/other", &[], b""),
    ("PUT", "share?restype=share&comp=lease", ACQUIRE, b""),
    ("DELETE", SHARE, HOLDER, b""),
    ("PUT", "share?restype=share&comp=undelete", DELETED, b""),
    ("DELETE", "share/moved/file", &[], b""),
    ("DELETE", "share/moved?restype=directory", &[], b""),
    ("DELETE", SHARE, &[], b""),
    ("PUT", SHARE, &[], b""),
    ("PUT", "share/file", FILE, b""),
];

async fn act(bench: &Bench, (method, url, headers, body): Act) -> Result<(), Failure> {
    let mut version = String::new();
    if headers == DELETED {
        let listed = text(bench.call("GET", "?comp=list&include=deleted", &[], b"").await?).await;
        version =
            between(&listed, "<Version>", "</Version>").first().map(|text| (*text).to_owned()).unwrap_or_default();
    }
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (*name, if *value == "VERSION" { &*version } else { *value })).collect();
    bench.call(method, url, &headers, body).await.map(drop)
}

/// What clients see of an account: its shares with their properties, deleted ones too, and what is in them.
async fn seen(bench: &Bench) -> Vec<String> {
    let told = bench.text("GET", "?comp=list&include=deleted,metadata").await;
    let shares = between(&told, "<Shares>", "</Shares>").concat();
    // Stamps and versions differ from one run of the story to the next.
    let shares = ["Last-Modified", "Etag", "Version", "DeletedTime"].iter().fold(shares, |text, name| {
        let inner: Vec<String> = between(&text, &format!("<{name}>"), "</").iter().map(|s| (*s).to_owned()).collect();
        inner.iter().fold(text, |text, inner| text.replace(&format!("<{name}>{inner}</{name}>"), ""))
    });
    let mut seen = vec![shares];
    for path in ["", "dir", "moved"] {
        let listed = bench.call("GET", &format!("share/{path}?restype=directory&comp=list"), &[], b"").await;
        seen.push(match listed {
            Ok(answer) => between(&text(answer).await, "<Name>", "</Name>").join(","),
            Err(_) => "none".to_owned(),
        });
    }
    for path in ["dir/file", "moved/file", "other", "file"] {
        seen.push(match bench.call("GET", &format!("share/{path}"), &[], b"").await {
            Ok(answer) => {
                let metadata = header(&answer, "x-ms-meta-c").unwrap_or_default().to_owned();
                format!("{metadata} {:?}", service::testing::bytes(answer).await)
            }
            Err(_) => "none".to_owned(),
        });
    }
    if let Ok(stats) = bench.call("GET", "share?restype=share&comp=stats", &[], b"").await {
        seen.extend(between(&text(stats).await, "<ShareUsageBytes>", "<").first().map(|usage| (*usage).to_owned()));
    }
    seen
}

fn bench(front: Arc<dyn Engine>, engine: &Arc<MemoryEngine>) -> Bench {
    let settings = Settings { share_soft_delete_days: Some(7), ..Settings::default() };
    Bench { settings, ..Bench::over(front, Arc::clone(engine)) }
}

/// Runs the story on an engine that fails at `step`. Returns how many requests were acknowledged.
async fn tell(engine: &Arc<MemoryEngine>, step: u64, fault: Fault) -> usize {
    let faulty = Arc::new(FaultyEngine::at(Arc::clone(engine) as Arc<dyn Engine>, step, fault));
    let bench = bench(faulty, engine);
    for (count, what) in STORY.iter().enumerate() {
        if act(&bench, *what).await.is_err() {
            return count;
        }
    }
    STORY.len()
}

/// What is seen after each request of the story, beginning with none.
async fn states() -> Vec<Vec<String>> {
    let engine = Arc::new(MemoryEngine::default());
    let bench = bench(Arc::clone(&engine) as Arc<dyn Engine>, &engine);
    let mut states = vec![seen(&bench).await];
    for what in STORY {
        act(&bench, *what).await.unwrap_or_else(|failure| panic!("{what:?}: {failure:?}"));
        states.push(seen(&bench).await);
    }
    states
}

#[tokio::test]
async fn every_failure_leaves_before_or_after() {
    let states = states().await;
    let mut steps = 0;
    for fault in Fault::every() {
        for step in 0.. {
            let engine = Arc::new(MemoryEngine::default());
            let told = tell(&engine, step, fault.clone()).await;
            if told == STORY.len() {
                break;
            }
            steps += 1;
            // After the failure: the same rows under an engine that works.
            let bench = bench(Arc::clone(&engine) as Arc<dyn Engine>, &engine);
            let found = seen(&bench).await;
            let (before, after) = (&states[told], &states[told + 1]);
            assert!(
                found == *before || found == *after,
                "step {step}, {fault:?}, {:?}:\n{found:?}, not\n{before:?} or\n{after:?}",
                STORY[told]
            );
            let mut problems = Vec::new();
            check(&*engine, &mut |problem| problems.push(problem)).await.unwrap();
            assert_eq!(problems, [""; 0], "step {step}, {fault:?}");
            bench.sweep().await;
            assert_eq!(seen(&bench).await, found, "step {step}, {fault:?}: a sweep changed what clients see");
            for lease in [&[][..], HOLDER] {
                let _ = bench.call("DELETE", SHARE, lease, b"").await;
            }
            // Longer than shares are kept, and than contents wait that no row refers to.
            bench.advance(30 * 24 * 3600).await;
            bench.sweep().await;
            let figures = bench.figures();
            let left: u64 =
                figures.iter().filter(|(name, _)| ["rows", "contents"].contains(name)).map(|(_, count)| count).sum();
            assert_eq!(left, 0, "step {step}, {fault:?}: something is left: {figures:?}");
        }
    }
    assert!(steps >= 4 * STORY.len(), "only {steps} failures were tried");
}
