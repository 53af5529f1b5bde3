//! A crash or an error between any two steps leaves the state before or the state after, and nothing else.
//!
//! A story (a list of requests) is run once for every step it takes and every way to fail there. Whatever failed, the account then
//! holds what it held after the last acknowledged request, or after the request that failed. Once the share is deleted and its
//! time is over, nothing is left.

use std::sync::Arc;

use auth::Settings;
use content::map::MapCollector;
use engine::Engine;
use engine::collector;
use engine::fault::{Fault, FaultyEngine};
use engine::memory::MemoryEngine;

use crate::Failure;
use crate::check::check;
use crate::door::{self, BasicInfo, Chunk, CopyAccess, CreateRequest, Disposition, Refused, attributes, options};
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

/// A step of the background work, on the engine that fails.
const SWEEP: Act = ("SWEEP", "", &[], b"");
const SNAPSHOT: &str = "share?restype=share&comp=snapshot";
const ALL_SNAPSHOTS: &[(&str, &str)] = &[("x-ms-delete-snapshots", "include")];

/// Snapshots are taken and dropped, with what only they see. `TIME` stands for the time of the oldest.
const SNAPSHOT_STORY: &[Act] = &[
    ("PUT", SHARE, &[], b""),
    ("PUT", "share/dir?restype=directory", &[], b""),
    ("PUT", "share/dir/file", FILE, b"first"),
    ("PUT", "share/other", FILE, b"other"),
    ("PUT", SNAPSHOT, &[], b""),
    ("PUT", "share/dir/file?comp=range", UPDATE, b"bytes"),
    ("DELETE", "share/other", &[], b""),
    ("PUT", "share/moved?restype=directory&comp=rename", FROM_DIR, b""),
    ("PUT", SNAPSHOT, &[("x-ms-meta-a", "b")], b""),
    ("PUT", "share/moved/file?comp=range", CLEAR, b""),
    ("PUT", "share/file", COPY, b""),
    ("PUT", SNAPSHOT, &[], b""),
    ("PUT", "share/moved/file", SHORT, b""),
    ("DELETE", "share/file", &[], b""),
    ("DELETE", "share?restype=share&sharesnapshot=TIME", &[], b""),
    SWEEP,
    SWEEP,
    ("PUT", "share/moved/file?comp=metadata", &[("x-ms-meta-c", "3")], b""),
    ("DELETE", "share?restype=share&sharesnapshot=TIME", &[], b""),
    SWEEP,
    ("DELETE", SHARE, ALL_SNAPSHOTS, b""),
    ("PUT", "share?restype=share&comp=undelete", DELETED, b""),
    SWEEP,
    ("DELETE", "share?restype=share&sharesnapshot=TIME", &[], b""),
    SWEEP,
    SWEEP,
    ("DELETE", SHARE, &[], b""),
];

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

const NFS: &[(&str, &str)] = &[("x-ms-enabled-protocols", "NFS")];
const LINK_OTHER: &[(&str, &str)] = &[("x-ms-type", "file"), ("x-ms-file-target-file", "other")];
const FROM_FILE: &[(&str, &str)] = &[
    ("x-ms-file-rename-source", "http://127.0.0.1:10003/acct/share/file"),
    ("x-ms-file-rename-replace-if-exists", "true"),
];
const COPY_PLAIN: &[(&str, &str)] = &[("x-ms-copy-source", "http://127.0.0.1:10003/acct/share/plain")];

/// The same of links, which only shares for NFS have.
const STORY_OF_LINKS: &[Act] = &[
    ("PUT", SHARE, NFS, b""),
    ("PUT", "share/dir?restype=directory", &[], b""),
    ("PUT", "share/plain", SHORT, b""),
    ("PUT", "share/other", FILE, b""),
    ("PUT", "share/other?comp=range", UPDATE, b"bytes"),
    ("PUT", "share/file?restype=hardlink", LINK_OTHER, b""),
    ("PUT", "share/dir/file?restype=hardlink", LINK_OTHER, b""),
    ("PUT", "share/dir/file?comp=range", UPDATE, b"BYTES"),
    ("PUT", "share/other?comp=metadata", &[("x-ms-meta-c", "3")], b""),
    ("PUT", "share/moved?comp=rename", FROM_FILE, b""),
    ("PUT", "share/moved?comp=properties", &[("x-ms-content-length", "50")], b""),
    ("DELETE", "share/other", &[], b""),
    ("PUT", "share/moved", COPY_PLAIN, b""),
    ("PUT", "share/dir/file", FILE, b""),
    ("DELETE", "share/moved", &[], b""),
    ("PUT", "share/dir/file?comp=range", UPDATE, b"again"),
    ("PUT", "share/file?restype=symboliclink", &[("x-ms-link-text", "dir/file")], b""),
    ("PUT", "share/plain?comp=rename", FROM_FILE, b""),
    ("DELETE", "share/plain", &[], b""),
    ("DELETE", "share/dir/file", &[], b""),
    ("PUT", "share/other", FILE, b""),
    ("PUT", "share/file?restype=hardlink", LINK_OTHER, b""),
    ("DELETE", SHARE, &[], b""),
    ("PUT", SHARE, &[], b""),
];

/// Files with several names, whose names come and go between snapshots.
const LINK_SNAPSHOT_STORY: &[Act] = &[
    ("PUT", SHARE, NFS, b""),
    ("PUT", "share/dir?restype=directory", &[], b""),
    ("PUT", "share/other", FILE, b"first"),
    ("PUT", "share/plain", SHORT, b"plain"),
    ("PUT", SNAPSHOT, &[], b""),
    ("PUT", "share/file?restype=hardlink", LINK_OTHER, b""),
    ("PUT", "share/dir/file?restype=hardlink", LINK_OTHER, b""),
    ("PUT", "share/dir/file?comp=range", UPDATE, b"bytes"),
    ("PUT", SNAPSHOT, &[], b""),
    ("PUT", "share/other?comp=range", UPDATE, b"BYTES"),
    ("PUT", "share/moved?comp=rename", FROM_FILE, b""),
    ("PUT", "share/file", COPY_PLAIN, b""),
    ("PUT", SNAPSHOT, &[], b""),
    ("DELETE", "share/other", &[], b""),
    ("PUT", "share/moved?comp=rename", FROM_FILE, b""),
    ("PUT", "share/dir/file", SHORT, b"again"),
    ("DELETE", "share?restype=share&sharesnapshot=TIME", &[], b""),
    SWEEP,
    SWEEP,
    ("PUT", SNAPSHOT, &[], b""),
    ("DELETE", "share/dir/file", &[], b""),
    ("DELETE", "share?restype=share&sharesnapshot=TIME", &[], b""),
    SWEEP,
    ("DELETE", SHARE, ALL_SNAPSHOTS, b""),
    ("PUT", "share?restype=share&comp=undelete", DELETED, b""),
    SWEEP,
    ("DELETE", "share?restype=share&sharesnapshot=TIME", &[], b""),
    SWEEP,
    ("DELETE", SHARE, ALL_SNAPSHOTS, b""),
];

/// What an SMB client does, one commit each. The body of a write is the body of the act.
const SMB: &str = "SMB";
const SMB_STORY: &[Act] = &[
    ("PUT", SHARE, &[], b""),
    (SMB, "mkdir dir", &[], b""),
    (SMB, "create dir\\file", &[], b""),
    (SMB, "write dir\\file", &[], b"first bytes"),
    (SMB, "write dir\\file", &[], b"others"),
    ("PUT", SNAPSHOT, &[], b""),
    (SMB, "write dir\\file", &[], b"after the snapshot, and longer"),
    (SMB, "cut dir\\file", &[], b""),
    (SMB, "hide dir\\file", &[], b""),
    (SMB, "clear dir\\file", &[], b""),
    (SMB, "create other", &[], b""),
    (SMB, "write other", &[], b"other"),
    (SMB, "rename dir moved", &[], b""),
    (SMB, "rename other file", &[], b""),
    (SMB, "create other", &[], b""),
    (SMB, "rename file other", &[], b""),
    ("PUT", SNAPSHOT, &[], b""),
    (SMB, "overwrite other", &[], b""),
    (SMB, "write other", &[], b"again"),
    (SMB, "delete moved\\file", &[], b""),
    (SMB, "delete other", &[], b""),
    (SMB, "delete moved", &[], b""),
    ("DELETE", SHARE, ALL_SNAPSHOTS, b""),
    ("PUT", SHARE, &[], b""),
];

/// So much that a copy of it moves no bytes.
const LARGE: &[u8] = &[b'x'; 70_000];
/// Copies inside of the server, by reference and as bytes, beside snapshots.
const COPY_STORY: &[Act] = &[
    ("PUT", SHARE, &[], b""),
    (SMB, "create other", &[], b""),
    (SMB, "write other", &[], LARGE),
    (SMB, "create file", &[], b""),
    (SMB, "copy other file", &[], b""),
    ("PUT", SNAPSHOT, &[], b""),
    (SMB, "write other", &[], b"after the snapshot"),
    (SMB, "sparse file", &[], b""),
    (SMB, "copy other file", &[], b""),
    (SMB, "cut other", &[], b""),
    SWEEP,
    (SMB, "copy other file", &[], b""),
    ("DELETE", "share?restype=share&sharesnapshot=TIME", &[], b""),
    SWEEP,
    (SMB, "delete other", &[], b""),
    SWEEP,
    ("DELETE", SHARE, &[], b""),
];

/// What an SMB client does with a file.
async fn act_by_handle(bench: &Bench, act: &str, body: &'static [u8]) -> Result<(), Refused> {
    let words: Vec<&str> = act.split(' ').collect();
    let tree = bench.service.door().connect(1, "share").await?;
    let plain = door::tests::wish(words[1]);
    let request = match words[0] {
        "mkdir" => door::tests::directory(words[1]),
        "create" => door::tests::created(words[1]),
        "overwrite" => CreateRequest { disposition: Disposition::Overwrite, ..plain },
        "delete" => CreateRequest { options: options::DELETE_ON_CLOSE, ..plain },
        _ => plain,
    };
    let file = tree.open(request).await?.file;
    match words[0] {
        "write" => file.write(0, body.into()).await?,
        "cut" => file.set_end_of_file(7).await?,
        "clear" => file.set_zero_data(2, 5).await?,
        "hide" => file.set_basic(BasicInfo { attributes: attributes::HIDDEN, ..BasicInfo::default() }).await?,
        "rename" => file.rename(words[2], true).await?,
        "sparse" => file.set_sparse(true).await?,
        "copy" => {
            let target = tree.open(door::tests::wish(words[2])).await?.file;
            let length = file.query().await?.length;
            let all = [Chunk { from: 0, to: Some(0), length }];
            target.copy_chunks(&file, &all, CopyAccess::ReadAndWrite).await.1?;
            target.close().await?;
        }
        _ => {}
    }
    file.close().await
}

async fn act(bench: &Bench, front: &dyn Engine, (method, url, headers, body): Act) -> Result<(), Failure> {
    if method == SWEEP.0 {
        return Ok(collector::sweep(front, &[&bench.service, &MapCollector]).await.map(drop)?);
    }
    if method == SMB {
        return act_by_handle(bench, url, body).await.map_err(|refused| match refused {
            Refused::Failed(error) => Failure::Failed(error),
            other => panic!("{url}: {other}"),
        });
    }
    let mut url = url.to_owned();
    if url.contains("TIME") {
        let listed = text(bench.call("GET", "?comp=list&include=snapshots", &[], b"").await?).await;
        let oldest = between(&listed, "<Snapshot>", "<").first().map(|time| (*time).to_owned()).unwrap_or_default();
        url = url.replace("TIME", &oldest);
    }
    let mut version = String::new();
    if headers == DELETED {
        let listed = text(bench.call("GET", "?comp=list&include=deleted", &[], b"").await?).await;
        version =
            between(&listed, "<Version>", "</Version>").first().map(|text| (*text).to_owned()).unwrap_or_default();
    }
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (*name, if *value == "VERSION" { &*version } else { *value })).collect();
    bench.call(method, &url, &headers, body).await.map(drop)
}

/// What clients see of an account: its shares with their properties, deleted ones too, and what is in them.
async fn seen(bench: &Bench) -> Vec<String> {
    let told = bench.text("GET", "?comp=list&include=deleted,metadata,snapshots").await;
    let shares = between(&told, "<Shares>", "</Shares>").concat();
    // Stamps and versions differ from one run of the story to the next.
    let shares = ["Last-Modified", "Etag", "Version", "DeletedTime", "Snapshot"].iter().fold(shares, |text, name| {
        let inner: Vec<String> = between(&text, &format!("<{name}>"), "</").iter().map(|s| (*s).to_owned()).collect();
        inner.iter().fold(text, |text, inner| text.replace(&format!("<{name}>{inner}</{name}>"), ""))
    });
    let mut seen = vec![shares];
    seen_inside(bench, "", &mut seen).await;
    for time in between(&told, "<Snapshot>", "<") {
        seen_inside(bench, &format!("&sharesnapshot={time}"), &mut seen).await;
    }
    if let Ok(stats) = bench.call("GET", "share?restype=share&comp=stats", &[], b"").await {
        seen.extend(between(&text(stats).await, "<ShareUsageBytes>", "<").first().map(|usage| (*usage).to_owned()));
    }
    seen
}

/// What is in the share, or in a snapshot of it.
async fn seen_inside(bench: &Bench, query: &str, seen: &mut Vec<String>) {
    for path in ["", "dir", "moved"] {
        let listed = bench.call("GET", &format!("share/{path}?restype=directory&comp=list{query}"), &[], b"").await;
        seen.push(match listed {
            Ok(answer) => between(&text(answer).await, "<Name>", "</Name>").join(","),
            Err(_) => "none".to_owned(),
        });
    }
    for path in ["dir/file", "moved/file", "other", "file", "moved", "plain"] {
        seen.push(match bench.call("GET", &format!("share/{path}?timeout=30{query}"), &[], b"").await {
            Ok(answer) => {
                let metadata = header(&answer, "x-ms-meta-c").unwrap_or_default().to_owned();
                let links = header(&answer, "x-ms-link-count").unwrap_or_default().to_owned();
                format!("{metadata} {links} {:?}", service::testing::bytes(answer).await)
            }
            Err(_) => "none".to_owned(),
        });
    }
}

fn bench(front: Arc<dyn Engine>, engine: &Arc<MemoryEngine>) -> Bench {
    let settings = Settings { share_soft_delete_days: Some(7), ..Settings::default() };
    Bench { settings, ..Bench::over(front, Arc::clone(engine)) }
}

/// Runs a story on an engine that fails at `step`. Returns how many requests were acknowledged.
async fn tell(story: &[Act], engine: &Arc<MemoryEngine>, step: u64, fault: Fault) -> usize {
    let faulty = Arc::new(FaultyEngine::at(Arc::clone(engine) as Arc<dyn Engine>, step, fault));
    let bench = bench(Arc::clone(&faulty) as Arc<dyn Engine>, engine);
    for (count, what) in story.iter().enumerate() {
        if act(&bench, &*faulty, *what).await.is_err() {
            return count;
        }
    }
    story.len()
}

/// What is seen after each request of a story, beginning with none.
async fn states(story: &[Act]) -> Vec<Vec<String>> {
    let engine = Arc::new(MemoryEngine::default());
    let bench = bench(Arc::clone(&engine) as Arc<dyn Engine>, &engine);
    let mut states = vec![seen(&bench).await];
    for what in story {
        act(&bench, &*engine, *what).await.unwrap_or_else(|failure| panic!("{what:?}: {failure:?}"));
        states.push(seen(&bench).await);
    }
    states
}

#[tokio::test]
async fn every_failure_leaves_before_or_after() {
    every_failure_of(STORY).await;
}

#[tokio::test]
async fn every_failure_of_links_leaves_before_or_after() {
    every_failure_of(STORY_OF_LINKS).await;
}

#[tokio::test]
async fn every_failure_of_taking_and_dropping_snapshots_leaves_before_or_after() {
    every_failure_of(SNAPSHOT_STORY).await;
}

#[tokio::test]
async fn every_failure_of_links_in_snapshots_leaves_before_or_after() {
    every_failure_of(LINK_SNAPSHOT_STORY).await;
}

#[tokio::test]
async fn every_failure_of_what_smb_does_leaves_before_or_after() {
    every_failure_of(SMB_STORY).await;
}

#[tokio::test]
async fn every_failure_of_copies_leaves_before_or_after() {
    every_failure_of(COPY_STORY).await;
}

async fn every_failure_of(story: &[Act]) {
    let states = states(story).await;
    let mut steps = 0;
    for fault in Fault::every() {
        for step in 0.. {
            let engine = Arc::new(MemoryEngine::default());
            let told = tell(story, &engine, step, fault.clone()).await;
            if told == story.len() {
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
                story[told]
            );
            let mut problems = Vec::new();
            check(&*engine, &mut |problem| problems.push(problem)).await.unwrap();
            assert_eq!(problems, [""; 0], "step {step}, {fault:?}");
            bench.sweep().await;
            assert_eq!(seen(&bench).await, found, "step {step}, {fault:?}: a sweep changed what clients see");
            for headers in [&[][..], HOLDER, ALL_SNAPSHOTS] {
                let _ = bench.call("DELETE", SHARE, headers, b"").await;
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
    assert!(steps >= 4 * story.len(), "only {steps} failures were tried");
}
