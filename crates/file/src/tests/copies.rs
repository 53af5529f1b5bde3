//! Random copies, writes, cuts and deletions of a few files against plain bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use engine::memory::MemoryEngine;
use engine::{BoxFuture, Decision, Engine, EngineError, Partitions, Wrapper};

use crate::model::share_key;
use crate::testing::{Bench, blob_url, header, url};
use wire::names::ShareName;

const NAMES: u64 = 5;
const STEPS: usize = 400;
const LENGTH_MAX: u64 = 5 << 20;

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// A span of a file of `length` bytes, short or long.
    fn span(&mut self, length: u64) -> (u64, u64) {
        let start = self.below(length);
        let most = if self.below(2) == 0 { 2_000 } else { 4 << 20 };
        (start, start + 1 + self.below((length - start).min(most)))
    }
}

type Files = BTreeMap<String, Vec<u8>>;

async fn step(bench: &Bench, files: &mut Files, random: &mut Random) {
    let name = format!("f{}", random.below(NAMES));
    let path = format!("share/{name}");
    let Some(content) = files.get(&name).cloned() else {
        let length = random.below(LENGTH_MAX);
        bench.create(&name, length).await;
        files.insert(name, vec![0; length as usize]);
        return;
    };
    let length = content.len() as u64;
    match random.below(10) {
        0..=3 => {
            let to = format!("f{}", random.below(NAMES));
            let from = if random.below(2) == 0 { url(&name) } else { blob_url(&name) };
            bench.call("PUT", &format!("share/{to}"), &[("x-ms-copy-source", &*from)], b"").await.unwrap();
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            files.insert(to, content);
        }
        4..=6 if length > 0 => {
            let (start, end) = random.span(length);
            let byte = 1 + random.below(255) as u8;
            bench.write(&name, start, &vec![byte; (end - start) as usize]).await;
            files.get_mut(&name).unwrap()[start as usize..end as usize].fill(byte);
        }
        7 if length > 0 => {
            let (start, end) = random.span(length);
            let range = format!("bytes={start}-{}", end - 1);
            let headers = [("x-ms-write", "clear"), ("x-ms-range", &*range)];
            bench.call("PUT", &format!("{path}?comp=range"), &headers, b"").await.unwrap();
            files.get_mut(&name).unwrap()[start as usize..end as usize].fill(0);
        }
        8 => {
            let length = random.below(LENGTH_MAX);
            let headers = [("x-ms-content-length", &*length.to_string())];
            bench.call("PUT", &format!("{path}?comp=properties"), &headers, b"").await.unwrap();
            files.get_mut(&name).unwrap().resize(length as usize, 0);
        }
        _ => {
            bench.call("DELETE", &path, &[], b"").await.unwrap();
            files.remove(&name);
        }
    }
}

#[tokio::test]
async fn copies_hold_what_their_sources_held() {
    for seed in 0..2 {
        let (bench, _) = Bench::with_elsewhere().await;
        let (mut files, mut random) = (Files::new(), Random(seed));
        for number in 0..STEPS {
            step(&bench, &mut files, &mut random).await;
            bench.advance(1).await;
            if random.below(5) == 0 {
                bench.sweep().await;
            }
            for (name, content) in &files {
                if random.below(4) == 0 {
                    assert!(bench.read(name).await == *content, "seed {seed}, step {number}: {name}");
                }
            }
        }
        bench.sweep().await;
        for (name, content) in &files {
            assert!(bench.read(name).await == *content, "seed {seed}: {name}");
        }
        bench.check_rows().await;
        for name in files.keys() {
            bench.call("DELETE", &format!("share/{name}"), &[], b"").await.unwrap();
        }
        for _ in 0..3 {
            bench.advance(1).await;
            bench.sweep().await;
        }
        assert_eq!(service::testing::figure(&*bench.engine, "contents"), 0, "seed {seed}");
        bench.call("DELETE", "share?restype=share", &[], b"").await.unwrap();
        bench.advance(100).await;
        for _ in 0..3 {
            bench.advance(1).await;
            bench.sweep().await;
        }
        assert_eq!(bench.rows(), 0, "seed {seed}");
    }
}

/// Lets others have their turn before each decision.
#[derive(Debug)]
struct Yielding(Arc<MemoryEngine>);

impl Wrapper for Yielding {
    fn inner(&self) -> &dyn Engine {
        &*self.0
    }

    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async {
            tokio::task::yield_now().await;
            self.0.commit(decision).await
        })
    }
}

async fn yielding() -> Bench {
    let engine = Arc::new(MemoryEngine::default());
    let front = Arc::new(Yielding(Arc::clone(&engine)));
    let bench = Bench::over(front, engine).reaching(Arc::default());
    bench.call("PUT", "share?restype=share", &[], b"").await.unwrap();
    bench
}

/// The source of a copy that is shared in steps goes, or is written to, between any two of them.
#[tokio::test]
async fn a_source_that_changes_between_two_steps_of_its_copy() {
    const LENGTH: u64 = 300 << 20;
    let mut told = BTreeMap::<_, u32>::new();
    for steps in 0..36 {
        let bench = yielding().await;
        bench.create("large", LENGTH).await;
        for at in [0, (64 << 20) - 5, 130 << 20, LENGTH - 10] {
            bench.write("large", at, b"0123456789").await;
        }
        let headers = [("x-ms-copy-source", &*blob_url("large"))];
        bench.call("PUT", "share/copy", &headers, b"").await.unwrap();
        for _ in 0..steps {
            tokio::task::yield_now().await;
        }
        match steps % 3 {
            0 => bench.write("large", 200 << 20, b"other").await,
            1 => _ = bench.call("DELETE", "share/large", &[], b"").await.unwrap(),
            _ => {
                let to = [("x-ms-copy-source", &*url("large"))];
                _ = bench.call("PUT", "share/third", &to, b"").await.unwrap();
            }
        }
        for _ in 0..2_000 {
            tokio::task::yield_now().await;
        }
        bench.advance(1).await;
        bench.sweep().await;
        let copy = bench.file("copy").await;
        let status = header(&copy, "x-ms-copy-status").unwrap().to_owned();
        let length = if status == "success" { LENGTH } else { 0 };
        assert_eq!(header(&copy, "content-length"), Some(&*length.to_string()), "{steps}: {status}");
        if status == "success" {
            for at in [0, (64 << 20) - 5, 130 << 20, LENGTH - 10] {
                let range = format!("bytes={at}-{}", at + 9);
                let read = bench.call("GET", "share/copy", &[("range", &*range)], b"").await.unwrap();
                assert_eq!(crate::testing::bytes(read).await, b"0123456789", "{steps}: {at}");
            }
        }
        *told.entry((steps % 3, status)).or_default() += 1;
        bench.check_rows().await;
        for name in bench.names("").await {
            bench.call("DELETE", &format!("share/{name}"), &[], b"").await.unwrap();
        }
        bench.sweep().await;
        bench.sweep().await;
        assert_eq!(service::testing::figure(&*bench.engine, "contents"), 0, "{steps}");
        bench.call("DELETE", "share?restype=share", &[], b"").await.unwrap();
        bench.advance(100).await;
        bench.sweep().await;
        bench.sweep().await;
        assert_eq!(bench.rows(), 0, "{steps}");
    }
    // Both were met: before the last step and after it.
    for change in [0, 1] {
        assert!(
            told.contains_key(&(change, "failed".to_owned())) && told.contains_key(&(change, "success".to_owned()))
        );
    }
}

/// A source of more pieces than a group may have is read; what was shared of it before is forgotten.
#[tokio::test]
async fn a_source_in_too_many_pieces_is_read() {
    const AT: u64 = 66 << 20;
    let bench = yielding().await;
    bench.create("source", 70 << 20).await;
    bench.write("source", 0, b"begin").await;
    let mut expected = vec![0; 1 << 20];
    for n in 0..400_u64 {
        let (start, byte) = (n as usize * 2_560, 1 + n as u8 % 250);
        bench.write("source", AT + start as u64, &[byte; 2_048]).await;
        expected[start..start + 2_048].fill(byte);
    }
    let contents = service::testing::figure(&*bench.engine, "contents");
    bench.call("PUT", "share/copy", &[("x-ms-copy-source", &*blob_url("source"))], b"").await.unwrap();
    for _ in 0..20_000 {
        tokio::task::yield_now().await;
    }
    let copy = bench.file("copy").await;
    assert_eq!(header(&copy, "x-ms-copy-status"), Some("success"));
    assert!(service::testing::figure(&*bench.engine, "contents") > contents, "its bytes were written");
    for (at, expected) in [(0, &b"begin"[..]), (AT, &expected)] {
        let range = format!("bytes={at}-{}", at + expected.len() as u64 - 1);
        let read = bench.call("GET", "share/copy", &[("range", &*range)], b"").await.unwrap();
        assert!(crate::testing::bytes(read).await == expected, "{at}");
    }
    bench.check_rows().await;
    for name in ["source", "copy"] {
        bench.call("DELETE", &format!("share/{name}"), &[], b"").await.unwrap();
    }
    bench.sweep().await;
    bench.sweep().await;
    assert_eq!(service::testing::figure(&*bench.engine, "contents"), 0);
}

/// Notes the partitions of every decision.
#[derive(Debug)]
struct Noting {
    inner: Arc<MemoryEngine>,
    partitions: Mutex<Vec<Partitions>>,
}

impl Wrapper for Noting {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        self.partitions.lock().unwrap().push(decision.partitions().clone());
        self.inner.commit(decision)
    }
}

/// The source is changed, too: it goes on in another epoch of its map. So its share takes part in the decision.
#[tokio::test]
async fn a_copy_names_the_shares_of_both_ends() {
    let engine = Arc::new(MemoryEngine::default());
    let noting = Arc::new(Noting { inner: Arc::clone(&engine), partitions: Mutex::default() });
    let bench = Bench::over(Arc::clone(&noting) as Arc<dyn Engine>, engine);
    for share in ["share", "other"] {
        bench.call("PUT", &format!("{share}?restype=share"), &[], b"").await.unwrap();
    }
    bench.create("source", 100).await;
    bench.write("source", 0, b"bytes").await;
    let key = |name| share_key(1, &ShareName::parse(name).unwrap());
    let both = Partitions::of([key("share"), key("other")]);
    for (target, expected) in [("share/copy", key("share").into()), ("other/copy", both)] {
        bench.call("PUT", target, &[("x-ms-copy-source", &url("source"))], b"").await.unwrap();
        assert_eq!(noting.partitions.lock().unwrap().last(), Some(&expected), "{target}");
    }
    bench.write("source", 0, b"BYTES").await;
    let copy = bench.call("GET", "other/copy", &[], b"").await.unwrap();
    assert_eq!(&crate::testing::bytes(copy).await[..5], b"bytes");
    bench.check_rows().await;
}
