//! What a read costs: rows that are in memory, rows that are not, and listings. `cargo bench -p lazurite-engine-embedded`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use engine::{Changes, Commit, Engine, Key, Visit};
use engine_embedded::{EmbeddedEngine, Options};

const ROWS: u64 = 20_000;
const ROUNDS: u32 = 5;

fn key(number: u64) -> Key {
    Key::new(0x70).number(number)
}

async fn fill(engine: &dyn Engine) {
    for first in (0..ROWS).step_by(1_000) {
        let put = engine::commit::<_, Infallible, _>(engine, key(first), move |_, _| {
            let mut changes = Changes::none();
            for number in first..first + 1_000 {
                changes.put(key(number), Bytes::from(vec![7; 300]));
            }
            Ok(Commit { changes, outcome: () })
        });
        put.await.expect("put");
    }
}

async fn get_all(engine: &dyn Engine) -> Duration {
    let began = Instant::now();
    for number in 0..ROWS {
        let key = key(number);
        let got = engine::read::<_, Infallible, _>(engine, move |rows, _| Ok(rows.get(&key)?.is_some()));
        assert!(got.await.expect("got"));
    }
    began.elapsed() / u32::try_from(ROWS).expect("it fits")
}

async fn list(engine: &dyn Engine) -> Duration {
    const LISTINGS: u32 = 500;
    let began = Instant::now();
    for _ in 0..LISTINGS {
        let listed = engine::read::<_, Infallible, _>(engine, |rows, _| {
            let mut seen = 0;
            rows.scan(&key(0), &key(ROWS), 100, &mut |_, _| {
                seen += 1;
                if seen < 100 { Visit::Next } else { Visit::Stop }
            })?;
            Ok(seen)
        });
        assert_eq!(listed.await.expect("listed"), 100);
    }
    began.elapsed() / LISTINGS
}

/// The best of some rounds: others use the machine too.
async fn best(engine: &dyn Engine) -> (Duration, Duration) {
    let mut least = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        least = (least.0.min(get_all(engine).await), least.1.min(list(engine).await));
    }
    least
}

async fn measure(folder: &std::path::Path) {
    let engine = EmbeddedEngine::open(folder, Options::default()).expect("opened");
    fill(&*engine).await;
    let (get, listed) = best(&*engine).await;
    println!("in memory: {get:?} a get, {listed:?} a listing of 100");
    engine.close().await.expect("closed");
    drop(engine);
    let engine = EmbeddedEngine::open(folder, Options { row_cache_bytes: 1 << 10, ..Options::default() });
    let engine = engine.expect("opened again");
    let (get, listed) = best(&*engine).await;
    println!("not in memory, but at hand for the system: {get:?} a get, {listed:?} a listing of 100");
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let path = Arc::new(folder.path().to_path_buf());
    runtime.block_on(async move { tokio::spawn(async move { measure(&path).await }).await.expect("measured") });
}
