//! A crash or an error between any two steps leaves the state before or the state after, and nothing else.
//!
//! A story of operations is run once for every step it takes and every way to fail there. Whatever failed, the blob is then
//! in the last state that was acknowledged or in the one that was asked for; and once everything is deleted, nothing is left.

use std::sync::Arc;

use auth::Settings;
use content::map::MapCollector;
use engine::Engine;
use engine::collector;
use engine::fault::{Fault, FaultyEngine};
use engine::memory::MemoryEngine;

use crate::testing::{Bench, Elsewhere, Script, Then, between, bytes, header};
use crate::{BlobService, Failure};
use wire::http::Reply;

/// A request and what the blob holds after it: `None` where there is no blob.
type Chapter =
    (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [u8], Option<&'static [u8]>);

const BLOCK_BLOB: &[(&str, &str)] = &[("x-ms-blob-type", "BlockBlob")];
const APPEND_BLOB: &[(&str, &str)] = &[("x-ms-blob-type", "AppendBlob")];
const PAGE_BLOB: &[(&str, &str)] = &[("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1024")];
const UPDATE_PAGES: &[(&str, &str)] = &[("x-ms-page-write", "update"), ("range", "bytes=0-1023")];
const CLEAR_PAGE: &[(&str, &str)] = &[("x-ms-page-write", "clear"), ("range", "bytes=0-511")];
const SHORTER: &[(&str, &str)] = &[("x-ms-blob-content-length", "512")];
const KEY: (&str, &str) = ("x-ms-encryption-key", "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=");
const KEY_SHA256: (&str, &str) = ("x-ms-encryption-key-sha256", "S7Bvjk46dxXSAdVz0KpCN2LlXavWGiwCJ4+lbMbSlOA=");
const AES256: (&str, &str) = ("x-ms-encryption-algorithm", "AES256");
const KEY_BLOCK_BLOB: &[(&str, &str)] = &[("x-ms-blob-type", "BlockBlob"), KEY, KEY_SHA256, AES256];
const KEY_METADATA: &[(&str, &str)] = &[("x-ms-meta-a", "1"), KEY, KEY_SHA256, AES256];
const STORY: &[Chapter] = &[
    ("PUT", "cont?restype=container", &[], b"", None),
    ("PUT", "cont/blob", BLOCK_BLOB, b"first", Some(b"first")),
    ("PUT", "cont/blob", BLOCK_BLOB, b"second", Some(b"second")),
    ("PUT", "cont/blob?comp=block&blockid=MDAx", &[], b"thi", Some(b"second")),
    ("PUT", "cont/blob?comp=block&blockid=MDAy", &[], b"rd", Some(b"second")),
    ("PUT", "cont/blob?comp=blocklist", &[], LIST, Some(b"third")),
    ("PUT", "cont/blob?comp=snapshot", &[], b"", Some(b"third")),
    ("PUT", "cont/blob?comp=metadata", &[("x-ms-meta-a", "1")], b"", Some(b"third")),
    ("PUT", "cont/blob?comp=block&blockid=MDAz", &[], b"unused", Some(b"third")),
    ("PUT", "cont/blob", BLOCK_BLOB, b"fourth", Some(b"fourth")),
    ("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "include")], b"", None),
    ("PUT", "cont/blob", BLOCK_BLOB, b"fifth", Some(b"fifth")),
    ("PUT", "cont/blob?comp=tags", &[], TAGGED_RED, Some(b"fifth")),
    ("PUT", "cont/blob?comp=tags", &[], TAGGED_BLUE, Some(b"fifth")),
    ("PUT", "cont/blob", PUT_RED, b"sixth", Some(b"sixth")),
    ("PUT", "cont/blob?comp=tier", &[("x-ms-access-tier", "Cool")], b"", Some(b"sixth")),
    ("PUT", "cont/blob?comp=legalhold", HOLD, b"", Some(b"sixth")),
    ("PUT", "cont/blob?comp=legalhold", RELEASE, b"", Some(b"sixth")),
    ("PUT", "cont/blob", APPEND_BLOB, b"", Some(b"")),
    ("PUT", "cont/blob?comp=appendblock", &[], b"six", Some(b"six")),
    ("PUT", "cont/blob?comp=snapshot", &[], b"", Some(b"six")),
    ("PUT", "cont/blob?comp=appendblock", &[], b"th", Some(b"sixth")),
    ("PUT", "cont/blob?comp=seal", &[], b"", Some(b"sixth")),
    ("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "include")], b"", None),
    ("PUT", "cont/blob", PAGE_BLOB, b"", Some(&[0; 1_024])),
    ("PUT", "cont/blob?comp=snapshot", &[], b"", Some(&[0; 1_024])),
    ("PUT", "cont/blob?comp=page", UPDATE_PAGES, &[7; 1_024], Some(&[7; 1_024])),
    ("PUT", "cont/blob?comp=page", CLEAR_PAGE, b"", Some(HALF)),
    ("PUT", "cont/blob?comp=page", UPDATE_PAGES, &[7; 1_024], Some(&[7; 1_024])),
    ("PUT", "cont/blob?comp=snapshot", &[], b"", Some(&[7; 1_024])),
    ("PUT", "cont/blob?comp=page", UPDATE_PAGES, &[8; 1_024], Some(&[8; 1_024])),
    ("PUT", "cont/blob?comp=properties", SHORTER, b"", Some(&[8; 512])),
    ("PUT", "cont/blob?comp=page", CLEAR_PAGE, b"", Some(&[0; 512])),
    ("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "only")], b"", Some(&[0; 512])),
    ("PUT", "cont/blob", APPEND_BLOB, b"", Some(b"")),
    ("PUT", "cont/blob?comp=appendblock", &[], b"list", Some(b"list")),
    ("PUT", "cont/blob?comp=appendblock", FROM_URL, b"", Some(b"listlist")),
    ("PUT", "cont/copy", FROM_URL, b"", Some(b"listlist")),
    ("PUT", "cont/blob", BACK, b"", Some(b"listlist")),
    ("PUT", "cont/blob?comp=appendblock", &[], b"+", Some(b"listlist+")),
    ("PUT", "cont/blob", BACK, b"", Some(b"listlist")),
    ("DELETE", "cont/copy", &[], b"", Some(b"listlist")),
    ("PUT", "cont/blob", BLOCK_BLOB, b"seventh", Some(b"seventh")),
    ("PUT", "cont/copy", FROM_URL_AS_BLOCKS, b"", Some(b"seventh")),
    ("PUT", "cont/blob?comp=block&blockid=MDAx", FROM_URL, b"", Some(b"seventh")),
    ("PUT", "cont/blob?comp=block&blockid=MDAy", FROM_URL, b"", Some(b"seventh")),
    ("PUT", "cont/blob?comp=block&blockid=MDAy", FROM_URL, b"", Some(b"seventh")),
    ("PUT", "cont/blob?comp=blocklist", &[], LIST, Some(b"seventhseventh")),
    ("PUT", "cont/blob", BACK_IN_REQUEST, b"", Some(b"seventh")),
    ("DELETE", "cont/copy", &[], b"", Some(b"seventh")),
    ("PUT", "cont/blob", PAGE_BLOB, b"", Some(&[0; 1_024])),
    ("PUT", "cont/blob?comp=page", UPDATE_PAGES, &[7; 1_024], Some(&[7; 1_024])),
    ("PUT", "cont/copy", FROM_URL, b"", Some(&[7; 1_024])),
    ("PUT", "cont/blob?comp=page", UPDATE_PAGES, &[8; 1_024], Some(&[8; 1_024])),
    ("PUT", "cont/blob", BACK, b"", Some(&[7; 1_024])),
    ("PUT", "cont/blob?comp=page", CLEAR_PAGE, b"", Some(HALF)),
    ("DELETE", "cont/copy", &[], b"", Some(HALF)),
    ("PUT", "cont/blob", FROM_URL, b"", Some(HALF)),
    // Without their key they are not shown.
    ("PUT", "cont/blob", KEY_BLOCK_BLOB, b"seventh", None),
    ("PUT", "cont/blob?comp=metadata", KEY_METADATA, b"", None),
    ("PUT", "cont/blob?comp=block&blockid=MDAx", KEY_METADATA, b"eigh", None),
    ("PUT", "cont/blob?comp=block&blockid=MDAy", KEY_METADATA, b"th", None),
    ("PUT", "cont/blob?comp=blocklist", KEY_METADATA, LIST, None),
    ("PUT", "cont/copy", RESEALED, b"", None),
    ("PUT", "cont/copy?comp=block&blockid=MDAx", RESEALED_BLOCK, b"", None),
    ("PUT", "cont/copy", OPENED, b"", None),
    ("DELETE", "cont/copy", &[], b"", None),
    ("PUT", "cont/blob", BLOCK_BLOB, b"ninth", Some(b"ninth")),
    // Out of the archive, which takes its time.
    ("PUT", "cont/archived", ARCHIVED, b"tenth", Some(b"ninth")),
    ("PUT", "cont/copy", OUT_OF_ARCHIVE, b"", Some(b"ninth")),
];
const ARCHIVED: &[(&str, &str)] = &[BLOCK_BLOB[0], ("x-ms-access-tier", "Archive")];
const OUT_OF_ARCHIVE: &[(&str, &str)] =
    &[("x-ms-copy-source", "http://127.0.0.1:10000/acct/cont/archived"), ("x-ms-access-tier", "Hot")];
const OTHER_KEY: [(&str, &str); 3] = [
    ("x-ms-encryption-key", "CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg="),
    ("x-ms-encryption-key-sha256", "JXjM+GRbLR3BDEZe/4Q1hZcPOn4iKWqSytVdSJonIHI="),
    AES256,
];
const SOURCE_KEY: [(&str, &str); 3] = [
    ("x-ms-source-encryption-key", KEY.1),
    ("x-ms-source-encryption-key-sha256", KEY_SHA256.1),
    ("x-ms-source-encryption-algorithm", "AES256"),
];
const RESEALED_BLOCK: &[(&str, &str)] =
    &[FROM_URL[0], SOURCE_KEY[0], SOURCE_KEY[1], SOURCE_KEY[2], OTHER_KEY[0], OTHER_KEY[1], OTHER_KEY[2]];
const RESEALED: &[(&str, &str)] = &[
    BLOCK_BLOB[0],
    FROM_URL[0],
    SOURCE_KEY[0],
    SOURCE_KEY[1],
    SOURCE_KEY[2],
    OTHER_KEY[0],
    OTHER_KEY[1],
    OTHER_KEY[2],
];
const OPENED: &[(&str, &str)] = &[BLOCK_BLOB[0], FROM_URL[0], SOURCE_KEY[0], SOURCE_KEY[1], SOURCE_KEY[2]];
const PUT_RED: &[(&str, &str)] = &[("x-ms-blob-type", "BlockBlob"), ("x-ms-tags", "colour=red")];
const TAGGED_RED: &[u8] = b"<Tags><TagSet><Tag><Key>colour</Key><Value>red</Value></Tag></TagSet></Tags>";
const TAGGED_BLUE: &[u8] = b"<Tags><TagSet><Tag><Key>colour</Key><Value>blue</Value></Tag></TagSet></Tags>";
const HOLD: &[(&str, &str)] = &[("x-ms-legal-hold", "true")];
const RELEASE: &[(&str, &str)] = &[("x-ms-legal-hold", "false")];
const FROM_URL: &[(&str, &str)] = &[("x-ms-copy-source", "http://127.0.0.1:10000/acct/cont/blob")];
const FROM_URL_AS_BLOCKS: &[(&str, &str)] = &[FROM_URL[0], BLOCK_BLOB[0]];
const BACK: &[(&str, &str)] = &[("x-ms-copy-source", "http://127.0.0.1:10000/acct/cont/copy")];
const BACK_IN_REQUEST: &[(&str, &str)] = &[BACK[0], ("x-ms-requires-sync", "true")];
const HALF: &[u8] = &{
    let mut pages = [7; 1_024];
    let mut at = 0;
    while at < 512 {
        pages[at] = 0;
        at += 1;
    }
    pages
};
const LIST: &[u8] = b"<BlockList><Latest>MDAx</Latest><Latest>MDAy</Latest></BlockList>";

/// What is deleted comes back.
const SOFT_STORY: &[Chapter] = &[
    ("PUT", "cont?restype=container", &[], b"", None),
    ("PUT", "cont/blob", BLOCK_BLOB, b"first", Some(b"first")),
    ("PUT", "cont/blob", BLOCK_BLOB, b"second", Some(b"second")),
    ("PUT", "cont/blob?comp=snapshot", &[], b"", Some(b"second")),
    ("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "include")], b"", None),
    ("PUT", "cont/blob?comp=undelete", &[], b"", Some(b"second")),
    ("DELETE", "cont?restype=container", &[], b"", None),
    ("PUT", "cont?restype=container&comp=undelete", &[], b"", Some(b"second")),
    ("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "include")], b"", None),
    ("PUT", "cont/blob?comp=block&blockid=MDAx", &[], b"thi", None),
    ("PUT", "cont/blob?comp=block&blockid=MDAy", &[], b"rd", None),
    ("PUT", "cont/blob?comp=blocklist", &[], LIST, Some(b"third")),
    ("DELETE", "cont/blob", &[], b"", None),
    ("PUT", "cont/blob", PAGE_BLOB, b"", Some(&[0; 1_024])),
    ("PUT", "cont/blob?comp=page", UPDATE_PAGES, &[7; 1_024], Some(&[7; 1_024])),
    ("DELETE", "cont/blob", &[], b"", None),
    ("PUT", "cont/blob?comp=undelete", &[], b"", Some(&[7; 1_024])),
    ("PUT", "cont/blob?comp=page", CLEAR_PAGE, b"", Some(&HALF_CLEAR)),
];

/// What is deleted, replaced or too old is collected, in many small steps: any of them may be the last.
const COLLECTED_STORY: &[Chapter] = &[
    ("PUT", "cont?restype=container", &[], b"", None),
    ("PUT", "cont/blob", BLOCK_BLOB, b"first", Some(b"first")),
    ("PUT", "cont/blob?comp=snapshot", &[], b"", Some(b"first")),
    ("PUT", "cont/blob", PUT_RED, b"second", Some(b"second")),
    SWEEP,
    ("PUT", "cont/copy", FROM_URL, b"", Some(b"second")),
    ("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "include")], b"", None),
    SWEEP,
    ("PUT", "cont/blob?comp=block&blockid=MDAx", &[], b"thi", None),
    ("PUT", "cont/blob?comp=block&blockid=MDAy", &[], b"rd", None),
    ("PUT", "cont/blob?comp=blocklist", &[], LIST, Some(b"third")),
    ("PUT", "cont/blob?comp=block&blockid=MDAz", &[], b"unused", Some(b"third")),
    ("DELETE", "cont/copy", &[], b"", Some(b"third")),
    SWEEP,
    ("PUT", "cont/blob", PAGE_BLOB, b"", Some(&[0; 1_024])),
    ("PUT", "cont/blob?comp=page", UPDATE_PAGES, &[7; 1_024], Some(&[7; 1_024])),
    ("PUT", "cont/copy", FROM_URL, b"", Some(&[7; 1_024])),
    ("PUT", "cont/blob?comp=snapshot", &[], b"", Some(&[7; 1_024])),
    ("PUT", "cont/blob?comp=page", CLEAR_PAGE, b"", Some(HALF)),
    ("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "only")], b"", Some(HALF)),
    SWEEP,
    ("DELETE", "cont/copy", &[], b"", Some(HALF)),
    SWEEP,
    ("DELETE", "cont?restype=container", &[], b"", None),
    SWEEP,
];
/// A week passes, and everything that is due is done. Nobody sees anything of it.
const SWEEP: Chapter = ("SWEEP", "", &[], b"", None);

/// What is replaced or deleted becomes a version.
const VERSIONS_STORY: &[Chapter] = &[
    ("PUT", "cont?restype=container", &[], b"", None),
    ("PUT", "cont/blob", BLOCK_BLOB, b"first", Some(b"first")),
    ("PUT", "cont/blob?comp=metadata", &[("x-ms-meta-a", "1")], b"", Some(b"first")),
    ("PUT", "cont/blob", BLOCK_BLOB, b"second", Some(b"second")),
    ("PUT", "cont/blob?comp=snapshot", &[], b"", Some(b"second")),
    ("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "include")], b"", None),
    ("PUT", "cont/blob", BLOCK_BLOB, b"third", Some(b"third")),
];

/// The same of the other types: all versions of a blob have one.
const APPENDED_VERSIONS_STORY: &[Chapter] = &[
    ("PUT", "cont?restype=container", &[], b"", None),
    ("PUT", "cont/blob", APPEND_BLOB, b"", Some(b"")),
    ("PUT", "cont/blob?comp=appendblock", &[], b"thi", Some(b"thi")),
    ("PUT", "cont/blob?comp=metadata", &[("x-ms-meta-a", "1")], b"", Some(b"thi")),
    ("PUT", "cont/blob?comp=appendblock", &[], b"rd", Some(b"third")),
    ("DELETE", "cont/blob", &[], b"", None),
];
const PAGED_VERSIONS_STORY: &[Chapter] = &[
    ("PUT", "cont?restype=container", &[], b"", None),
    ("PUT", "cont/blob", PAGE_BLOB, b"", Some(&[0; 1_024])),
    ("PUT", "cont/blob?comp=page", UPDATE_PAGES, &[7; 1_024], Some(&[7; 1_024])),
    ("PUT", "cont/blob?comp=snapshot", &[], b"", Some(&[7; 1_024])),
    ("PUT", "cont/blob?comp=page", CLEAR_PAGE, b"", Some(&HALF_CLEAR)),
    ("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "include")], b"", None),
];

const HALF_CLEAR: [u8; 1_024] = {
    let mut pages = [7; 1_024];
    let mut at = 0;
    while at < 512 {
        pages[at] = 0;
        at += 1;
    }
    pages
};

fn stories() -> [(Settings, &'static [Chapter]); 6] {
    let soft = Settings { blob_soft_delete_days: Some(7), container_soft_delete_days: Some(7), ..Settings::default() };
    let versions = Settings { versioning: true, ..Settings::default() };
    let plain = Settings::default;
    [
        (plain(), STORY),
        (plain(), COLLECTED_STORY),
        (soft, SOFT_STORY),
        (versions.clone(), VERSIONS_STORY),
        (versions.clone(), APPENDED_VERSIONS_STORY),
        (versions, PAGED_VERSIONS_STORY),
    ]
}

/// Runs the story on an engine that fails at `step`. Returns how many chapters were acknowledged.
async fn tell(
    engine: &Arc<MemoryEngine>,
    (settings, story): &(Settings, &[Chapter]),
    step: u64,
    fault: Fault,
) -> usize {
    let faulty = Arc::new(FaultyEngine::at(Arc::clone(engine) as Arc<dyn Engine>, step, fault));
    let service = BlobService::new(Arc::clone(&faulty) as Arc<dyn Engine>);
    let bench = Bench { engine: Arc::clone(engine), service, settings: settings.clone() };
    for (count, (method, url, headers, body, _)) in story.iter().enumerate() {
        let is_done = match (*method, *url) {
            ("SWEEP", _) => {
                bench.advance(7 * 24 * 3600).await;
                sweep(&*faulty, &bench.service).await
            }
            (_, "cont?restype=container&comp=undelete") => restore(&bench).await.is_ok(),
            _ => bench.call(method, url, headers, body).await.is_ok(),
        };
        if !is_done {
            return count;
        }
    }
    story.len()
}

/// Does everything that is due, unless something fails.
async fn sweep(engine: &dyn Engine, service: &BlobService) -> bool {
    loop {
        match collector::sweep(engine, &[service, &MapCollector]).await {
            Ok(0) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

/// What the blob holds once so many chapters are done: what the last one says that is no sweep.
fn held_after(story: &[Chapter], chapters: usize) -> Option<&'static [u8]> {
    story[..chapters].iter().rev().find(|chapter| chapter.0 != SWEEP.0).and_then(|chapter| chapter.4)
}

async fn restore(bench: &Bench) -> Result<Reply, Failure> {
    let listed = bytes(bench.call("GET", "?comp=list&include=deleted", &[], b"").await?).await;
    let listed = String::from_utf8(listed).expect("a document");
    let version = between(&listed, "<Version>", "</Version>")[0];
    let headers = [("x-ms-deleted-container-name", "cont"), ("x-ms-deleted-container-version", version)];
    bench.call("PUT", "cont?restype=container&comp=undelete", &headers, b"").await
}

async fn held(bench: &Bench) -> Option<Vec<u8>> {
    match bench.call("GET", "cont/blob", &[], b"").await {
        Ok(_) => Some(bench.get("cont/blob").await),
        Err(_) => None,
    }
}

/// The index says of the blob what the blob says of itself.
async fn index_agrees(bench: &Bench) -> bool {
    let tags = match bench.call("GET", "cont/blob?comp=tags", &[], b"").await {
        Ok(_) => bench.text("GET", "cont/blob?comp=tags").await,
        Err(_) => String::new(),
    };
    for colour in ["red", "blue"] {
        let found = bench.text("GET", &format!("?comp=blobs&where=colour%3D%27{colour}%27")).await;
        if found.contains("<Name>blob</Name>") != tags.contains(colour) {
            return false;
        }
    }
    true
}

#[tokio::test]
async fn every_failure_leaves_before_or_after() {
    let faults = Fault::every();
    for story in &stories() {
        let told = tell(&Arc::new(MemoryEngine::default()), story, 0, Fault::None).await;
        assert_eq!(told, story.1.len(), "without a failure the story ends: {:?}", story.1.get(told));
    }
    let mut steps = 0;
    for (story, fault) in stories().iter().flat_map(|story| faults.iter().map(move |fault| (story, fault))) {
        for step in 0.. {
            let engine = Arc::new(MemoryEngine::default());
            let told = tell(&engine, story, step, fault.clone()).await;
            if told == story.1.len() {
                break;
            }
            steps += 1;
            // After the failure: the same rows under an engine that works.
            let bench = Bench { settings: story.0.clone(), ..Bench::on(engine) };
            let (before, after) = (held_after(story.1, told), held_after(story.1, told + 1));
            let found = held(&bench).await;
            let right = found.as_deref() == before || found.as_deref() == after;
            assert!(right, "step {step}, {fault:?}: {found:?} instead of {before:?} or {after:?}");
            assert!(index_agrees(&bench).await, "step {step}, {fault:?}: the index of tags");
            bench.sweep().await;
            assert_eq!(held(&bench).await, found, "step {step}, {fault:?}: a sweep changed what clients see");
            let _ = bench.call("PUT", "cont/blob?comp=legalhold", RELEASE, b"").await;
            let _ = bench.call("DELETE", "cont?restype=container", &[], b"").await;
            bench.advance(8 * 24 * 3600).await;
            bench.sweep().await;
            assert_eq!(bench.figures(), (0, 0), "step {step}, {fault:?}: something is left");
        }
    }
    assert!(steps > 100, "only {steps} failures were tried");
}

const SOURCE: &str = "http://elsewhere/source";
const FROM_ELSEWHERE: &[(&str, &str)] = &[("x-ms-copy-source", SOURCE)];

fn reaching(bench: Bench, script: Script) -> Bench {
    let elsewhere = Elsewhere::default();
    elsewhere.0.lock().unwrap().insert(SOURCE, script);
    Bench { service: bench.service.reaching(Arc::new(elsewhere)), ..bench }
}

/// What the copy into the blob has come to, and what the blob holds: nothing if there is no blob.
async fn copied(bench: &Bench) -> Option<(String, Vec<u8>)> {
    let told = bench.call("HEAD", "cont/blob", &[], b"").await.ok()?;
    let status = header(&told, "x-ms-copy-status").unwrap_or_default().to_owned();
    Some((status, bench.get("cont/blob").await))
}

/// Lets what runs beside the requests come to its end.
async fn settled(bench: &Bench) -> Option<(String, Vec<u8>)> {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    copied(bench).await
}

/// A copy from elsewhere that meets a failure is not done, or done whole once somebody looks after it.
#[tokio::test]
async fn a_copy_under_way_goes_on_or_ends_and_is_never_half() {
    let faults = Fault::every();
    for kind in ["BlockBlob", "AppendBlob", "PageBlob"] {
        let bytes = vec![9; 3 * 512];
        let script = Script::of(&bytes).header("x-ms-blob-type", kind).header("etag", "\"1\"");
        for fault in faults.clone() {
            let mut steps = 0;
            loop {
                let engine = Arc::new(MemoryEngine::default());
                let faulty = FaultyEngine::at(Arc::clone(&engine) as Arc<dyn Engine>, steps, fault.clone());
                let faulty = Arc::new(faulty);
                let service = BlobService::new(faulty);
                let bench = Bench { engine: Arc::clone(&engine), service, settings: Settings::default() };
                let bench = reaching(bench, script.clone());
                let made = bench.call("PUT", "cont?restype=container", &[], b"").await.is_ok();
                let begun = made && bench.call("PUT", "cont/blob", FROM_ELSEWHERE, b"").await.is_ok();
                let first = settled(&Bench::on(Arc::clone(&engine))).await;
                drop(bench);
                // The same rows under an engine that works, in a process that knows of no copy.
                // Whoever did it before has not said so for a while.
                let bench = reaching(Bench::on(engine), script.clone());
                bench.advance(20).await;
                bench.sweep().await;
                let found = settled(&bench).await;
                let whole = Some(("success".to_owned(), bytes.clone()));
                let right = found == whole || found.is_none() && !begun;
                assert!(right, "{kind}, step {steps}, {fault:?}: {found:?}");
                let _ = bench.call("DELETE", "cont?restype=container", &[], b"").await;
                bench.advance(10).await;
                bench.sweep().await;
                assert_eq!(bench.figures(), (0, 0), "{kind}, step {steps}, {fault:?}: something is left");
                if begun && first == whole {
                    break;
                }
                steps += 1;
            }
            assert!(steps > 3, "{kind}: only {steps} failures were tried");
        }
    }
}

#[tokio::test]
async fn an_abort_is_done_or_not() {
    for fault in Fault::every() {
        for step in 0..12 {
            let engine = Arc::new(MemoryEngine::default());
            let script = Script { length: 100, then: Then::Stall, ..Script::of(b"begin") };
            let bench = reaching(Bench::on(Arc::clone(&engine)), script.clone());
            bench.call("PUT", "cont?restype=container", &[], b"").await.unwrap();
            let answer = bench.call("PUT", "cont/blob", FROM_ELSEWHERE, b"").await.unwrap();
            let id = header(&answer, "x-ms-copy-id").unwrap().to_owned();
            let faulty = Arc::new(FaultyEngine::at(Arc::clone(&engine) as Arc<dyn Engine>, step, fault.clone()));
            let failing =
                Bench { engine: Arc::clone(&engine), service: BlobService::new(faulty), settings: Settings::default() };
            let url = format!("cont/blob?comp=copy&copyid={id}");
            let aborted = failing.call("PUT", &url, &[("x-ms-copy-action", "abort")], b"").await.is_ok();
            drop((bench, failing));
            let bench = reaching(Bench::on(engine), script);
            let (status, bytes) = copied(&bench).await.unwrap();
            assert!(bytes.is_empty());
            assert!(status == "aborted" || status == "pending" && !aborted, "step {step}, {fault:?}: {status}");
            // Two weeks later it is over in any case.
            bench.advance(15 * 24 * 3600).await;
            bench.sweep().await;
            let (status, bytes) = copied(&bench).await.unwrap();
            assert!(
                bytes.is_empty() && (status == "aborted" || status == "failed"),
                "step {step}, {fault:?}: {status}"
            );
            bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
            bench.sweep().await;
            assert_eq!(bench.figures(), (1, 0), "step {step}, {fault:?}: something is left");
        }
    }
}
