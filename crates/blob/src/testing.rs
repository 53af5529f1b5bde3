//! What the tests share: requests from text, a service on the memory engine, and a few values.

use std::sync::{Arc, Mutex};

use auth::Settings;
use bytes::Bytes;
use concurrency::{Lease, LeaseDuration, LeaseId, Timestamp, Until};
use content::map::MapCollector;
use engine::memory::MemoryEngine;
use engine::{BoxFuture, Decision, Engine, EngineError, Tick, Wrapper};
use service::sources::{Located, Sources, Wish};
use wire::http::{Body, BodyError, ErrorReply, FixedBody, Head, Reply};

use crate::model::{BlobType, Committed, Container, ContentRef, PublicAccess};
use crate::{Asker, BlobService, Failure, Op};

pub const NOW: Timestamp = Timestamp(0x8DE_0000_0000_0000);
pub const MINE: LeaseId = LeaseId([1; 16]);
pub const YOURS: LeaseId = LeaseId([2; 16]);
/// Held by [`MINE`].
pub const HELD: Lease = Lease::Leased { id: MINE, duration: LeaseDuration::Infinite, until: Until::Forever };

const ACCOUNT: u64 = 1;

pub fn tick() -> Tick {
    Tick { now: NOW, stamp: NOW.plus_ticks(100), entropy: 7 }
}

pub fn container(lease: Lease) -> Container {
    Container {
        generation: 7,
        stamp: NOW,
        lease,
        metadata: vec![],
        public: PublicAccess::None,
        policies: vec![],
        default_scope: None,
        denies_other_scopes: false,
    }
}

pub fn committed() -> Committed {
    let (stamp, created) = (Timestamp(NOW.0 - 1_000), Timestamp(NOW.0 - 2_000));
    Committed { version: 4, stamp, created, ..Committed::new(BlobType::Block, ContentRef::Empty, 0, tick()) }
}

/// A request as tests write it: method, URL below the account, headers, body.
pub type Ask<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a [u8]);

pub use content::testing::{Elsewhere, Script, Then};
pub use service::testing::{between, bytes, header, refusal, request};

/// A service on an engine of its own.
pub struct Bench {
    pub engine: Arc<MemoryEngine>,
    pub service: BlobService,
    pub settings: Settings,
}

impl Bench {
    pub async fn new() -> Bench {
        Bench::on(Arc::new(MemoryEngine::default()))
    }

    pub fn on(engine: Arc<MemoryEngine>) -> Bench {
        Bench { service: BlobService::new(engine.clone()), engine, settings: Settings::default() }
    }

    /// With the container `cont`.
    pub async fn with_container() -> Bench {
        let bench = Bench::new().await;
        bench.call("PUT", "cont?restype=container", &[], b"").await.unwrap();
        bench
    }

    pub async fn call(&self, method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Reply, Failure> {
        let mut body = FixedBody::new(Bytes::copy_from_slice(body));
        self.send(request(method, url, headers), &mut body).await
    }

    /// With a length that is announced wrongly, or not at all.
    pub async fn call_with(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
        announced: Option<u64>,
    ) -> Result<Reply, Failure> {
        let mut body = Announced(Some(Bytes::copy_from_slice(body)), announced);
        self.send(request(method, url, headers), &mut body).await
    }

    /// With a body that nobody may ask for.
    pub async fn call_unread(&self, method: &str, url: &str, headers: &[(&str, &str)]) -> Result<Reply, Failure> {
        self.send(request(method, url, headers), &mut Untouchable).await
    }

    pub async fn send(&self, head: Head, body: &mut dyn Body) -> Result<Reply, Failure> {
        let op = Op::named_by(&head)?;
        let asker = Asker { settings: &self.settings, sources: &Urls, ..Asker::OWNER };
        self.service.run_for(asker, op, &head, ACCOUNT, body).await
    }

    /// Puts a block blob and returns its ETag.
    pub async fn put(&self, url: &str, body: &[u8]) -> String {
        let answer = self.call("PUT", url, &[("x-ms-blob-type", "BlockBlob")], body).await.unwrap();
        header(&answer, "etag").unwrap().to_owned()
    }

    /// Puts a page blob of zeros and returns its ETag.
    pub async fn put_pages(&self, url: &str, length: u64) -> String {
        let length = length.to_string();
        let headers = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", &*length)];
        let answer = self.call("PUT", url, &headers, b"").await.unwrap();
        header(&answer, "etag").unwrap().to_owned()
    }

    pub async fn get(&self, url: &str) -> Vec<u8> {
        bytes(self.call("GET", url, &[], b"").await.unwrap()).await
    }

    /// The body of an answer as text.
    pub async fn text(&self, method: &str, url: &str) -> String {
        String::from_utf8(bytes(self.call(method, url, &[], b"").await.unwrap()).await).unwrap()
    }

    pub fn engine_now(&self) -> Timestamp {
        self.engine.now()
    }

    pub async fn advance(&self, seconds: u64) {
        self.engine.advance_clock(seconds).await.unwrap();
    }

    /// Does everything that is due now, and what that makes due.
    pub async fn sweep(&self) {
        service::testing::sweep(&*self.engine, &[&self.service, &MapCollector]).await;
    }

    /// What `lazurite check` would say of the rows of the service.
    pub async fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        crate::check(&*self.engine, &mut |problem| problems.push(problem)).await.unwrap();
        problems
    }

    /// How many rows and contents there are.
    pub fn figures(&self) -> (u64, u64) {
        let figure = |name| service::testing::figure(&*self.engine, name);
        (figure("rows"), figure("contents"))
    }
}

/// The URL of a blob of the account.
pub fn url(rest: &str) -> String {
    format!("{HERE}{rest}")
}

/// Blobs stand for files there.
pub const FILES: &str = "http://127.0.0.1:10003/acct/";
const HERE: &str = "http://127.0.0.1:10000/acct/";

/// Finds sources: those of the account are here, `http://private/` lets nobody in, other hosts are elsewhere.
#[derive(Debug)]
pub struct Urls;

impl Sources for Urls {
    fn locate<'a>(&'a self, wish: &'a Wish) -> BoxFuture<'a, Result<Located, EngineError>> {
        Box::pin(async {
            if let Some(rest) = wish.url.strip_prefix(HERE) {
                return Ok(Located::Here {
                    service: auth::Service::Blob,
                    account: ACCOUNT,
                    head: Box::new(request("GET", rest, &[])),
                });
            }
            if let Some(rest) = wish.url.strip_prefix(FILES) {
                return Ok(Located::Here {
                    service: auth::Service::File,
                    account: ACCOUNT,
                    head: Box::new(request("GET", rest, &[])),
                });
            }
            Ok(match wish.url.as_str() {
                text if text.starts_with("http://private/") => {
                    Located::Refused(ErrorReply::new(401, "NoAuthenticationInformation", "Nobody is let in."))
                }
                text if text.starts_with("http://") => Located::There,
                _ => Located::Unclear,
            })
        })
    }
}

struct Announced(Option<Bytes>, Option<u64>);

impl Body for Announced {
    fn length(&self) -> Option<u64> {
        self.1
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, BodyError>>> {
        let bytes = self.0.take();
        Box::pin(async move { bytes.map(Ok) })
    }
}

struct Untouchable;

impl Body for Untouchable {
    /// Too large to be taken in before anything is judged.
    fn length(&self) -> Option<u64> {
        Some(engine::INLINE_MAX as u64 + 1)
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, BodyError>>> {
        panic!("the body was asked for")
    }
}

/// The same numbers for the same seed, which must not be 0.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// An engine on which another request is run between the reads of a request and its commit, once.
#[derive(Debug)]
pub struct Interrupted {
    pub engine: Arc<MemoryEngine>,
    other: Mutex<Option<Other>>,
}

/// A request with its body.
type Other = (Head, Bytes);

impl Interrupted {
    /// A service on the engine of `bench`, for which `other` comes first.
    pub fn by(bench: &Bench, other: Head, body: &'static [u8]) -> Bench {
        let other = Mutex::new(Some((other, Bytes::from_static(body))));
        let engine = Interrupted { engine: bench.engine.clone(), other };
        let service = BlobService::new(Arc::new(engine));
        Bench { service, engine: bench.engine.clone(), settings: bench.settings.clone() }
    }
}

impl Wrapper for Interrupted {
    fn inner(&self) -> &dyn Engine {
        &*self.engine
    }

    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            let other = self.other.lock().unwrap().take();
            if let Some((head, body)) = other {
                let service = BlobService::new(self.engine.clone());
                let op = Op::named_by(&head).unwrap();
                service.run(op, &head, ACCOUNT, &mut FixedBody::new(body)).await.unwrap();
            }
            self.engine.commit(decision).await
        })
    }
}
