//! What the tests share: requests from text, a service on the memory engine, and a few values.

use std::sync::Arc;

use bytes::Bytes;
use concurrency::Timestamp;
use engine::memory::MemoryEngine;
use engine::{Engine, Tick};
use service::HttpService;
use wire::http::{Body, FixedBody, Head, Reply};

use crate::opens::Opens;
use crate::{Failure, FileService, Op};

pub use service::testing::{between, bytes, header, refusal, text};

pub const NOW: Timestamp = Timestamp(0x8DE_0000_0000_0000);

const ACCOUNT: u64 = 1;

pub fn tick() -> Tick {
    Tick { now: NOW, stamp: NOW.plus_ticks(100), entropy: 7 }
}

/// A request, with the URL written below the account.
pub fn request(method: &str, url: &str, headers: &[(&str, &str)]) -> Head {
    let head = service::testing::request(method, url, headers);
    Head { endpoint: "http://127.0.0.1:10003/acct".into(), ..head }
}

/// A service on an engine of its own, with the share `share` in most tests.
pub struct Bench {
    pub engine: Arc<MemoryEngine>,
    pub opens: Arc<Opens>,
    pub service: FileService,
}

impl Bench {
    pub fn new() -> Bench {
        let (engine, opens) = (Arc::new(MemoryEngine::default()), Arc::new(Opens::new(7)));
        Bench { service: FileService::new(engine.clone(), Arc::clone(&opens)), engine, opens }
    }

    pub async fn with_share() -> Bench {
        let bench = Bench::new();
        bench.call("PUT", "share?restype=share", &[], b"").await.unwrap();
        bench
    }

    pub async fn call(&self, method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Reply, Failure> {
        let mut body = FixedBody::new(Bytes::copy_from_slice(body));
        self.send(request(method, url, headers), &mut body).await
    }

    pub async fn send(&self, head: Head, body: &mut dyn Body) -> Result<Reply, Failure> {
        let op = Op::named_by(&head)?;
        self.service.run(op, &head, ACCOUNT, body).await
    }

    /// The body of an answer as text.
    pub async fn text(&self, method: &str, url: &str) -> String {
        text(self.call(method, url, &[], b"").await.unwrap()).await
    }

    pub async fn mkdir(&self, path: &str) {
        self.call("PUT", &format!("share/{path}?restype=directory"), &[], b"").await.unwrap();
    }

    /// Creates an empty file of a length.
    pub async fn create(&self, path: &str, length: u64) {
        let length = length.to_string();
        let headers = [("x-ms-type", "file"), ("x-ms-content-length", length.as_str())];
        self.call("PUT", &format!("share/{path}"), &headers, b"").await.unwrap();
    }

    /// Writes bytes into a file, which must be long enough.
    pub async fn write(&self, path: &str, offset: u64, bytes: &[u8]) {
        let range = format!("bytes={offset}-{}", offset + bytes.len() as u64 - 1);
        let headers = [("x-ms-write", "update"), ("x-ms-range", range.as_str())];
        self.call("PUT", &format!("share/{path}?comp=range"), &headers, bytes).await.unwrap();
    }

    pub async fn read(&self, path: &str) -> Vec<u8> {
        bytes(self.call("GET", &format!("share/{path}"), &[], b"").await.unwrap()).await
    }

    pub async fn advance(&self, seconds: u64) {
        self.engine.advance_clock(seconds).await.unwrap();
    }

    /// Does everything that is due now, and what that makes due.
    pub async fn sweep(&self) {
        service::testing::sweep(&*self.engine, &self.service).await;
    }

    /// How many rows and contents there are, and their bytes.
    pub fn figures(&self) -> Vec<(&'static str, u64)> {
        self.engine.figures()
    }
}
