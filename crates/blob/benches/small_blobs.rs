//! What the Blob service itself costs for small blobs, on the engine in memory and without a socket:
//! `cargo bench -p lazurite-blob --bench small_blobs`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use blob::{BlobService, Op};
use bytes::Bytes;
use engine::memory::MemoryEngine;
use service::testing::request;
use wire::http::{FixedBody, Head};

const ACCOUNT: u64 = 1;
const READS: u32 = 300_000;
const WRITES: usize = 2_000;
/// The best of many runs counts: whatever else the machine does only ever adds.
const RUNS: usize = 60;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        reads().await;
        writes().await;
    });
}

async fn run(service: &BlobService, op: Op, head: &Head, body: &Bytes) {
    let answer = service.run(op, head, ACCOUNT, &mut FixedBody::new(body.clone())).await;
    black_box(answer.expect("an answer"));
}

async fn with_container() -> BlobService {
    let service = BlobService::new(Arc::new(MemoryEngine::default()));
    let head = request("PUT", "cont?restype=container", &[]);
    run(&service, Op::CreateContainer, &head, &Bytes::new()).await;
    service
}

fn put(name: usize) -> Head {
    request("PUT", &format!("cont/blob{name}"), &[("x-ms-blob-type", "BlockBlob")])
}

async fn reads() {
    let service = with_container().await;
    run(&service, Op::PutBlob, &put(0), &Bytes::from_static(&[7; 4096])).await;
    let head = request("GET", "cont/blob0", &[("accept", "*/*")]);
    for op in [Op::GetBlob, Op::GetBlobProperties] {
        let began = Instant::now();
        for _ in 0..READS {
            run(&service, op, &head, &Bytes::new()).await;
        }
        println!("{}: {} ns", op.name(), began.elapsed().as_nanos() / u128::from(READS));
    }
}

async fn writes() {
    let body = Bytes::from_static(&[7; 4096]);
    for (what, names) in [("overwrite", 1), ("create", WRITES)] {
        let heads: Vec<Head> = (0..names).map(put).collect();
        let mut best = u128::MAX;
        for _ in 0..RUNS {
            let service = with_container().await;
            let began = Instant::now();
            for number in 0..WRITES {
                run(&service, Op::PutBlob, &heads[number % names], &body).await;
            }
            best = best.min(began.elapsed().as_nanos() / WRITES as u128);
        }
        println!("PutBlob, {what}: {best} ns");
    }
}
