//! What the tests share: requests from text, a service on the memory engine, and a few values.

use std::sync::Arc;

use auth::Settings;
use bytes::Bytes;
use concurrency::share_mode::{Access, Open};
use concurrency::{Lease, LeaseId, Timestamp};
use content::map::MapCollector;
use engine::memory::MemoryEngine;
use engine::{BoxFuture, Changes, Commit, Engine, EngineError, Key, Tick, Visit};
use service::sources::{Located, Sources, Wish};
use service::{Asker, HttpService, space};
use wire::http::{Body, ErrorReply, FixedBody, Head, Reply};
use wire::names::ShareName;

use crate::model::{AccessTier, Protocol, Provisioned, Share};
use crate::opens::{
    Broken, CachingRequest, Client, FileId, Handle, HandleId, Holder, OpenRequest, Opens, Place, Removal,
};
use crate::{Failure, FileError, FileReader, FileService, Op};

pub use content::testing::{Elsewhere, Script, Then};
pub use service::testing::{between, bytes, header, refusal, text};

pub const NOW: Timestamp = Timestamp(0x8DE_0000_0000_0000);

pub const MINE: LeaseId = LeaseId([1; 16]);

const ACCOUNT: u64 = 1;

pub fn tick() -> Tick {
    Tick { now: NOW, stamp: NOW.plus_ticks(100), entropy: 7 }
}

/// A share as it is created.
pub fn share() -> Share {
    Share {
        generation: 7,
        stamp: NOW,
        lease: Lease::Available,
        metadata: Vec::new(),
        policies: Vec::new(),
        quota_gib: 5_120,
        tier: AccessTier::default(),
        tier_changed: None,
        protocol: Protocol::Smb,
        root_squash: None,
        provisioned: Provisioned::default(),
        epoch: 1,
        newest_snapshot: 0,
        snapshots: 0,
        last_snapshot: 0,
    }
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
    pub settings: Settings,
}

impl Bench {
    pub fn new() -> Bench {
        let engine = Arc::new(MemoryEngine::default());
        Bench::over(Arc::clone(&engine) as Arc<dyn Engine>, engine)
    }

    /// The same, which also copies from elsewhere, and from files of the account as if they were blobs.
    pub fn reaching(self, elsewhere: Arc<Elsewhere>) -> Bench {
        let files = Arc::new(FileReader::new(Arc::clone(&self.opens)));
        let service = self.service.clone().reaching(elsewhere).copying_from(files);
        Bench { service, ..self }
    }

    /// A share, and what is to be had elsewhere.
    pub async fn with_elsewhere() -> (Bench, Arc<Elsewhere>) {
        let elsewhere = Arc::new(Elsewhere::default());
        (Bench::with_share().await.reaching(Arc::clone(&elsewhere)), elsewhere)
    }

    /// A service on an engine that stands before the one whose clock and figures are looked at.
    pub fn over(front: Arc<dyn Engine>, engine: Arc<MemoryEngine>) -> Bench {
        let opens = Arc::new(Opens::new(7));
        let service = FileService::new(front, Arc::clone(&opens));
        Bench { service, engine, opens, settings: Settings::default() }
    }

    /// The same as a node of many.
    pub fn among_others(self) -> Bench {
        Bench { service: self.service.clone().among(Arc::default()), ..self }
    }

    pub async fn with_share() -> Bench {
        let bench = Bench::new();
        bench.call("PUT", "share?restype=share", &[], b"").await.unwrap();
        bench
    }

    /// The same with a share for NFS.
    pub async fn with_nfs_share() -> Bench {
        let bench = Bench::new();
        bench.call("PUT", "share?restype=share", &[("x-ms-enabled-protocols", "NFS")], b"").await.unwrap();
        bench
    }

    pub async fn call(&self, method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Reply, Failure> {
        let mut body = FixedBody::new(Bytes::copy_from_slice(body));
        self.send(request(method, url, headers), &mut body).await
    }

    pub async fn send(&self, head: Head, body: &mut dyn Body) -> Result<Reply, Failure> {
        let op = Op::named_by(&head)?;
        let asker = Asker { settings: &self.settings, sources: &Urls, ..Asker::OWNER };
        self.service.run_for(asker, op, &head, ACCOUNT, body).await
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
        service::testing::sweep(&*self.engine, &[&self.service, &MapCollector]).await;
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        service::testing::figure(&*self.engine, "rows")
    }

    /// How many rows and contents there are, and their bytes.
    pub fn figures(&self) -> Vec<(&'static str, u64)> {
        self.engine.figures().into_iter().filter(|(name, _)| *name != "commits").collect()
    }
}

/// Where the files of the account are, and where they are as if they were blobs.
const FILES: &str = "http://127.0.0.1:10003/acct/";
const BLOBS: &str = "http://127.0.0.1:10000/acct/";

/// The URL of a file in the share, as the source of a copy.
pub fn url(path: &str) -> String {
    format!("{FILES}share/{path}")
}

/// The same as if it were a blob.
pub fn blob_url(path: &str) -> String {
    format!("{BLOBS}share/{path}")
}

/// Which URLs name what.
#[derive(Debug)]
struct Urls;

impl Sources for Urls {
    fn locate<'a>(&'a self, wish: &'a Wish) -> BoxFuture<'a, Result<Located, EngineError>> {
        let here = |service, rest: &str| Located::Here {
            service,
            account: ACCOUNT,
            head: Box::new(request("GET", rest, &[])),
        };
        let located = match wish.url.as_str() {
            url if url.starts_with(FILES) => here(auth::Service::File, &url[FILES.len()..]),
            url if url.starts_with(BLOBS) => here(auth::Service::Blob, &url[BLOBS.len()..]),
            "http://127.0.0.1:10001/acct/queue" => here(auth::Service::Queue, "queue"),
            url if url.starts_with("http://private/") => {
                Located::Refused(ErrorReply::new(401, "NoAuthenticationInformation", "Nobody is let in."))
            }
            url if url.starts_with("http://") => Located::There,
            _ => Located::Unclear,
        };
        Box::pin(async { Ok(located) })
    }
}

/// Two lease ids.
pub const MY_LEASE: &str = "01010101-0101-0101-0101-010101010101";
pub const YOUR_LEASE: &str = "02020202-0202-0202-0202-020202020202";

/// What files and directories need.
impl Bench {
    /// Why a request is refused.
    pub async fn refused(&self, method: &str, url: &str, headers: &[(&str, &str)]) -> FileError {
        refusal(self.call(method, url, headers, b"").await)
    }

    /// The properties of a file.
    pub async fn file(&self, path: &str) -> Reply {
        self.call("HEAD", &format!("share/{path}"), &[], b"").await.unwrap()
    }

    /// The properties of a directory; the root has no path.
    pub async fn directory(&self, path: &str) -> Reply {
        self.call("HEAD", &format!("share/{path}?restype=directory"), &[], b"").await.unwrap()
    }

    /// The names in a directory, as they are spelled.
    pub async fn names(&self, path: &str) -> Vec<String> {
        let list = self.text("GET", &format!("share/{path}?restype=directory&comp=list")).await;
        between(&list, "<Name>", "</Name>").into_iter().map(str::to_owned).collect()
    }

    pub async fn lease(&self, path: &str, id: &str) {
        let headers = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", id)];
        self.call("PUT", &format!("share/{path}?comp=lease"), &headers, b"").await.unwrap();
    }

    /// Renames a file, or with `restype=directory` in the URL a directory, to the path of the URL.
    pub async fn rename(&self, from: &str, url: &str, headers: &[(&str, &str)]) -> Result<Reply, Failure> {
        let source = format!("http://127.0.0.1:10003/acct/share/{from}");
        let headers = [&[("x-ms-file-rename-source", source.as_str())], headers].concat();
        let mark = if url.contains('?') { '&' } else { '?' };
        self.call("PUT", &format!("share/{url}{mark}comp=rename"), &headers, b"").await
    }

    /// Gives the file `from` the name `to`, too.
    pub async fn link(&self, from: &str, to: &str, headers: &[(&str, &str)]) -> Result<Reply, Failure> {
        let headers = [&[("x-ms-type", "file"), ("x-ms-file-target-file", from)], headers].concat();
        self.call("PUT", &format!("share/{to}?restype=hardlink"), &headers, b"").await
    }

    /// Creates a symbolic link.
    pub async fn symlink(&self, path: &str, text: &str, headers: &[(&str, &str)]) -> Result<Reply, Failure> {
        let headers = [&[("x-ms-link-text", text)], headers].concat();
        self.call("PUT", &format!("share/{path}?restype=symboliclink"), &headers, b"").await
    }

    /// The bytes that the share counts.
    pub async fn usage(&self) -> u64 {
        let stats = self.text("GET", "share?restype=share&comp=stats").await;
        between(&stats, "<ShareUsageBytes>", "<")[0].parse().unwrap()
    }

    /// Takes a snapshot of the share, and tells its time.
    pub async fn snapshot(&self) -> String {
        let taken = self.call("PUT", "share?restype=share&comp=snapshot", &[], b"").await.unwrap();
        header(&taken, "x-ms-snapshot").unwrap().to_owned()
    }

    pub async fn drop_snapshot(&self, time: &str) {
        let url = format!("share?restype=share&sharesnapshot={time}");
        assert_eq!(self.call("DELETE", &url, &[], b"").await.unwrap().status, 202);
    }

    /// How many rows there are of entries that are kept for snapshots.
    pub async fn past_rows(&self) -> usize {
        let counted = engine::read::<_, FileError, _>(&*self.engine, |rows, _| {
            let mut count = 0;
            for all in [space::PAST_ENTRY, space::KEPT_ENTRY].map(Key::new) {
                rows.scan(&all, &all.after_all(), 100, &mut |_, _| {
                    count += 1;
                    Visit::Next
                })?;
            }
            Ok(count)
        });
        counted.await.unwrap()
    }

    /// Makes the first row of a space one that cannot be read.
    pub async fn damage_first(&self, all: Key) {
        let damaged = engine::commit::<(), FileError, _>(&*self.engine, all.clone(), move |rows, _| {
            let mut changes = Changes::none();
            rows.scan(&all, &all.after_all(), 1, &mut |key, _| {
                changes.put(Key::from_bytes(key), b"damaged".to_vec());
                Visit::Stop
            })?;
            Ok(Commit { changes, outcome: () })
        });
        damaged.await.unwrap();
    }

    /// Holds the rows against each other.
    pub async fn check_rows(&self) {
        let mut problems = Vec::new();
        crate::check::check(&*self.engine, &mut |problem| problems.push(problem)).await.unwrap();
        assert!(problems.is_empty(), "{problems:?}");
    }

    /// The generation of the share, which is the id of its root.
    pub async fn generation(&self) -> u64 {
        let name = ShareName::parse("share").unwrap();
        let found = engine::read::<_, FileError, _>(&*self.engine, move |rows, _| {
            Ok(crate::model::find_share(rows, ACCOUNT, &name)?)
        });
        found.await.unwrap().unwrap().generation
    }

    /// Opens a file or directory as an SMB client does.
    pub async fn open(&self, path: &str, access: Access, sharing: Access) -> Handle {
        self.opens.open(self.open_request(path, access, sharing).await).await.unwrap()
    }

    pub async fn open_request(&self, path: &str, access: Access, sharing: Access) -> OpenRequest {
        let share = self.generation().await;
        let mut above = vec![share];
        let mut walked = String::new();
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let mut id = share;
        for (at, name) in names.iter().enumerate() {
            walked = if walked.is_empty() { (*name).to_owned() } else { format!("{walked}/{name}") };
            let directory = self.call("HEAD", &format!("share/{walked}?restype=directory"), &[], b"").await;
            let shown = match directory {
                Ok(answer) => answer,
                Err(_) => self.file(&walked).await,
            };
            id = header(&shown, "x-ms-file-id").unwrap().parse().unwrap();
            if at + 1 < names.len() {
                above.insert(0, id);
            }
        }
        if names.is_empty() {
            above.clear();
        }
        OpenRequest {
            file: FileId { share, id },
            place: Arc::new(Place { path: path.to_owned(), above }),
            open: Open { access, sharing },
            mask: if access.is_none() { 0x80 } else { 0x1 },
            also: Access::NONE,
            delete_on_close: false,
            is_leased: false,
            caching: CachingRequest::None,
            has_waited: false,
            client: Client { session: 7, address: "10.0.0.1:50000".parse().unwrap(), name: "client".to_owned() },
            now: NOW,
            holder: Arc::new(SilentHolder),
        }
    }
}

/// An SMB client that does not care what becomes of its handles.
#[derive(Debug)]
struct SilentHolder;

impl Holder for SilentHolder {
    fn closed(&self, _: HandleId) {}

    fn must_delete(&self, _: Removal) {}

    fn broken(&self, _: Broken) -> bool {
        true
    }
}

/// A body that must not be asked for.
pub struct UnreadBody(pub u64);

impl Body for UnreadBody {
    fn length(&self) -> Option<u64> {
        Some(self.0)
    }

    fn next(&mut self) -> wire::http::BoxFuture<'_, Option<Result<Bytes, wire::http::BodyError>>> {
        panic!("the body was asked for")
    }
}
