//! Share snapshots stay as they were: all that clients see of random trees, whatever is done afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use content::map::MapCollector;
use engine::Engine;
use engine::loads::{NodeState, Tally};
use engine::memory::MemoryEngine;

use crate::testing::{Bench, MY_LEASE, between, bytes, url};
use wire::http::Reply;

const SHARE: &str = "share?restype=share";
const FILE: &[(&str, &str)] = &[("x-ms-type", "file"), ("x-ms-content-length", "2000")];

/// Headers that do not tell what a file or directory is, but how it is read.
fn is_told(name: &str) -> bool {
    !name.starts_with("x-ms-lease-") && !["x-ms-request-id", "date"].contains(&name)
}

fn shown(answer: &Reply) -> String {
    let told = answer.headers.iter().filter(|(name, _)| is_told(name.as_str()));
    let mut lines: Vec<String> = told.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    lines.sort();
    lines.join("\n")
}

/// All that clients see of a share or a snapshot.
async fn seen(bench: &Bench, snapshot: Option<&str>) -> Vec<String> {
    let query = snapshot.map(|time| format!("&sharesnapshot={time}")).unwrap_or_default();
    let mut seen = Vec::new();
    let mut directories = vec![String::new()];
    while let Some(path) = directories.pop() {
        for comp in ["", "&comp=metadata"] {
            let url = format!("share/{path}?restype=directory{comp}{query}");
            seen.push(format!("{path}\n{}", shown(&bench.call("GET", &url, &[], b"").await.unwrap())));
        }
        let mut marker = String::new();
        loop {
            let include = "include=timestamps,etag,attributes,permissionkey";
            let url = format!("share/{path}?restype=directory&comp=list&maxresults=2&{include}{marker}{query}");
            let list = bench.text("GET", &url).await;
            seen.extend(between(&list, "<Entries>", "</Entries>").iter().map(|entries| (*entries).to_owned()));
            let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            directories.extend(between(&list, "<Directory><Name>", "<").into_iter().map(below).collect::<Vec<_>>());
            for name in between(&list, "<File><Name>", "<") {
                seen.extend(file_seen(bench, &below(name), &query).await);
            }
            match between(&list, "<NextMarker>", "<").first() {
                Some(next) => marker = format!("&marker={next}"),
                None => break,
            }
        }
    }
    // A page that ends elsewhere is no difference.
    seen.iter()
        .flat_map(|text| text.split_inclusive("</File>"))
        .map(str::to_owned)
        .filter(|text| !text.is_empty())
        .collect()
}

async fn file_seen(bench: &Bench, path: &str, query: &str) -> Vec<String> {
    let mut seen = Vec::new();
    for (method, comp) in
        [("HEAD", "timeout=30"), ("GET", "timeout=30"), ("GET", "comp=metadata"), ("GET", "comp=rangelist")]
    {
        // A symbolic link has no bytes.
        let Ok(answer) = bench.call(method, &format!("share/{path}?{comp}{query}"), &[], b"").await else {
            let url = format!("share/{path}?restype=symboliclink{query}");
            seen.push(shown(&bench.call("GET", &url, &[], b"").await.unwrap()));
            continue;
        };
        let headers = shown(&answer);
        let body = bytes(answer).await;
        seen.push(format!("{method} {path} {comp}\n{headers}\n{}", String::from_utf8_lossy(&body)));
    }
    seen
}

/// Pseudorandom numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn file(&mut self) -> &'static str {
        ["a", "b", "c", "dir/a", "dir/b", "other/a"][self.below(6) as usize]
    }

    fn path(&mut self) -> &'static str {
        ["a", "b", "c", "dir", "dir/a", "dir/b", "dir/deep", "dir/deep/a", "other", "other/a"][self.below(10) as usize]
    }
}

const NFS: &[(&str, &str)] = &[("x-ms-enabled-protocols", "NFS")];

/// Something in a share for NFS, where files come by more names and lose them.
async fn anything_linked(bench: &Bench, random: &mut Random, snapshots: &[(String, Vec<String>)]) {
    let (path, other, number) = (random.file(), random.file(), random.below(1_000).to_string());
    let replace = [("x-ms-file-rename-replace-if-exists", "true")];
    let owner = [("x-ms-owner", &*number), ("x-ms-mode", "0640")];
    let range = format!("bytes={number}-{number}");
    let written = [("x-ms-write", "update"), ("x-ms-range", &*range)];
    let mut source = url(other);
    if !snapshots.is_empty() {
        source += &format!("?sharesnapshot={}", snapshots[random.below(snapshots.len() as u64) as usize].0);
    }
    let with = |query: &str| format!("share/{path}?{query}");
    // It may be refused, as what it names may not be there.
    _ = match random.below(20) {
        0..5 => bench.link(other, path, &[]).await,
        5 => bench.rename(other, path, &replace).await,
        6 => bench.rename(other, path, &[]).await,
        7 => bench.rename(path, &path.to_uppercase(), &[]).await,
        8 | 9 => bench.call("DELETE", &with(""), &[], b"").await,
        10 => bench.call("PUT", &with("comp=properties"), &owner, b"").await,
        11 => bench.symlink(path, other, &[]).await,
        12 => bench.call("PUT", &with(""), FILE, b"some bytes").await,
        13 => bench.call("PUT", &with(""), &[("x-ms-copy-source", &*source)], b"").await,
        14..17 => bench.call("PUT", &with("comp=range"), &written, b"x").await,
        _ => return anything(bench, random, snapshots).await,
    };
}

/// Something, whether it succeeds or not.
async fn anything(bench: &Bench, random: &mut Random, snapshots: &[(String, Vec<String>)]) {
    let (path, other) = (random.path(), random.path());
    let number = random.below(1_500).to_string();
    let range = format!("bytes={number}-{}", number.parse::<u64>().unwrap() + 99);
    let fresh = [("x-ms-type", "file"), ("x-ms-content-length", &*number)];
    let written = [("x-ms-write", "update"), ("x-ms-range", &*range)];
    let cleared = [("x-ms-write", "clear"), ("x-ms-range", "bytes=0-1023")];
    let resized = [("x-ms-content-length", &*number)];
    let labelled = [("x-ms-meta-a", &*number)];
    let hidden = [("x-ms-file-attributes", "Hidden"), ("x-ms-file-permission", "O:SYG:SYD:(A;;FA;;;BU)")];
    let leased =
        [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", MY_LEASE)];
    let broken = [("x-ms-lease-action", "break")];
    let replace = [("x-ms-file-rename-replace-if-exists", "true")];
    let mut source = url(other);
    if !snapshots.is_empty() && random.below(2) == 0 {
        source += &format!("?sharesnapshot={}", snapshots[random.below(snapshots.len() as u64) as usize].0);
    }
    let copied = [("x-ms-copy-source", &*source)];
    let copied_range =
        [("x-ms-copy-source", &*source), ("x-ms-source-range", "bytes=0-9"), ("x-ms-range", "bytes=5-14"), written[0]];
    let body = [random.below(256) as u8; 100];
    let file = format!("share/{path}");
    let with = |query: &str| format!("{file}?{query}");
    // It may be refused, as what it names may not be there.
    _ = match random.below(18) {
        0 | 1 => bench.call("PUT", &with("restype=directory"), &[], b"").await,
        2 => bench.call("PUT", &file, FILE, b"some bytes").await,
        3 => bench.call("PUT", &file, &fresh, b"").await,
        4..7 => bench.call("PUT", &with("comp=range"), &written, &body).await,
        7 => bench.call("PUT", &with("comp=range"), &cleared, b"").await,
        8 => bench.call("PUT", &with("comp=properties"), &resized, b"").await,
        9 => bench.call("PUT", &with("comp=metadata"), &labelled, b"").await,
        10 => bench.call("PUT", &with("restype=directory&comp=metadata"), &labelled, b"").await,
        11 => bench.call("PUT", &with("comp=properties"), &hidden, b"").await,
        12 => bench.call("PUT", &with("comp=lease"), &leased, b"").await,
        13 => bench.call("PUT", &with("comp=lease"), &broken, b"").await,
        14 => bench.rename(other, path, &replace).await,
        15 => bench.rename(other, &format!("{path}?restype=directory"), &replace).await,
        16 if random.below(2) == 0 => bench.call("PUT", &with("comp=range"), &copied_range, b"").await,
        16 => bench.call("PUT", &file, &copied, b"").await,
        _ if random.below(2) == 0 => bench.call("DELETE", &file, &[], b"").await,
        _ => bench.call("DELETE", &with("restype=directory"), &[], b"").await,
    };
}

/// Whatever is done afterwards, a snapshot shows what the share showed when it was taken, to the byte and to the header. `front` is
/// the engine that the service and the sweeps use.
async fn play(seed: u64, protocol: &[(&str, &str)], bench: Bench, front: &dyn Engine) {
    println!("seed {seed}");
    let mut random = Random(seed);
    let sweep = async || service::testing::sweep(front, &[&bench.service, &MapCollector]).await;
    bench.call("PUT", SHARE, protocol, b"").await.unwrap();
    if !protocol.is_empty() {
        bench.mkdir("dir").await;
        bench.mkdir("other").await;
    }
    let mut snapshots: Vec<(String, Vec<String>)> = Vec::new();
    for step in 0..200 {
        match random.below(20) {
            0 => {
                let before = seen(&bench, None).await;
                snapshots.push((bench.snapshot().await, before));
            }
            1 if !snapshots.is_empty() => {
                let (time, _) = snapshots.remove(random.below(snapshots.len() as u64) as usize);
                bench.drop_snapshot(&time).await;
            }
            2 => sweep().await,
            _ if !protocol.is_empty() => anything_linked(&bench, &mut random, &snapshots).await,
            _ => anything(&bench, &mut random, &snapshots).await,
        }
        if step % 20 == 19 {
            for (time, before) in &snapshots {
                assert_eq!(seen(&bench, Some(time)).await, *before, "seed {seed}, step {step}, {time}");
            }
            bench.check_rows().await;
        }
    }
    for (time, before) in snapshots {
        assert_eq!(seen(&bench, Some(&time)).await, before, "seed {seed}");
        bench.drop_snapshot(&time).await;
    }
    sweep().await;
    bench.check_rows().await;
    assert_eq!(bench.past_rows().await, 0, "seed {seed}");
    bench.call("DELETE", SHARE, &[], b"").await.unwrap();
    bench.advance(60).await;
    sweep().await;
    assert_eq!((bench.rows(), service::testing::figure(&*bench.engine, "contents")), (0, 0), "seed {seed}");
}

#[tokio::test]
async fn snapshots_stay_as_they_were() {
    for seed in 0..12 {
        let bench = Bench::new();
        let engine = Arc::clone(&bench.engine);
        play(seed, &[], bench, &*engine).await;
    }
}

/// The same with hard and symbolic links.
#[tokio::test]
async fn snapshots_of_links_stay_as_they_were() {
    for seed in 200..224 {
        let bench = Bench::new();
        let engine = Arc::clone(&bench.engine);
        play(seed, NFS, bench, &*engine).await;
    }
}

/// The same on an engine that must fetch its rows.
#[tokio::test]
async fn snapshots_stay_as_they_were_where_rows_are_fetched() {
    let states = [NodeState::JustStarted, NodeState::KnowsItsWay];
    for (seed, (state, protocol)) in (100..).zip(states.iter().flat_map(|state| [(*state, &[][..]), (*state, NFS)])) {
        let engine = Arc::new(MemoryEngine::default());
        let front = Tally::new(Arc::clone(&engine) as _, state).engine;
        play(seed, protocol, Bench::over(Arc::clone(&front) as _, engine), &*front).await;
    }
}

/// Files are written, renamed and removed while snapshots come and go: what a snapshot shows never changes, not even between the
/// steps that let go of another.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn snapshots_stay_as_they_were_among_many_writers() {
    among_many_writers(Bench::with_share().await, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn snapshots_of_links_stay_as_they_were_among_many_writers() {
    among_many_writers(Bench::with_nfs_share().await, true).await;
}

async fn among_many_writers(bench: Bench, has_links: bool) {
    let bench = Arc::new(bench);
    for path in ["dir", "dir/deep", "other"] {
        bench.mkdir(path).await;
    }
    let done = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for seed in 0..4 {
        let (bench, done) = (Arc::clone(&bench), Arc::clone(&done));
        writers.push(tokio::spawn(async move {
            let mut random = Random(seed);
            while !done.load(Ordering::Relaxed) {
                if has_links {
                    anything_linked(&bench, &mut random, &[]).await;
                } else {
                    anything(&bench, &mut random, &[]).await;
                }
            }
        }));
    }
    let sweeper = tokio::spawn({
        let (bench, done) = (Arc::clone(&bench), Arc::clone(&done));
        async move {
            while !done.load(Ordering::Relaxed) {
                bench.sweep().await;
                tokio::task::yield_now().await;
            }
        }
    });
    let mut snapshots: Vec<(String, Vec<String>)> = Vec::new();
    for round in 0..30 {
        let time = bench.snapshot().await;
        snapshots.push((time.clone(), seen(&bench, Some(&time)).await));
        if round % 3 == 2 {
            let (time, _) = snapshots.remove(round % snapshots.len());
            bench.drop_snapshot(&time).await;
        }
        for (time, before) in &snapshots {
            assert_eq!(seen(&bench, Some(time)).await, *before, "round {round}, {time}");
        }
        tokio::task::yield_now().await;
    }
    done.store(true, Ordering::Relaxed);
    for task in writers.into_iter().chain([sweeper]) {
        task.await.unwrap();
    }
    for (time, before) in snapshots {
        assert_eq!(seen(&bench, Some(&time)).await, before);
        bench.drop_snapshot(&time).await;
    }
    bench.sweep().await;
    bench.check_rows().await;
    assert_eq!(bench.past_rows().await, 0);
}
