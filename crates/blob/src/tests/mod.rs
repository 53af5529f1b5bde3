//! Rules, not operations: for each thing that protects a blob, what every operation does under it.
//!
//! Each table is a match over the classes of operations (`class.rs`) without a wildcard, so that a new operation does not compile
//! until it has a class, and a new class not until each rule says what it does. [`requests`] has a request, or a few, for each of them, which succeed where nothing is protected; the tables
//! are then held against the real service. Whatever an operation does, the projections must say what the blobs say, and a
//! refusal changes nothing.

mod class;
mod conditions;
mod encryption;
mod floors;
mod leases;
mod pages;
mod protections;
mod rights;
mod states;
mod structured_bodies;
mod values;

use bytes::Bytes;
use engine::{Key, Visit};
use service::space;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::testing::{Bench, Elsewhere, Script, Then, header, url};
use crate::{Failure, Op};
use wire::http::Reply;

pub const MINE: &str = "01010101-0101-0101-0101-010101010101";
pub const YOURS: &str = "02020202-0202-0202-0202-020202020202";
/// What every blob holds at first, and what the sources hold.
pub const BEFORE: [u8; 512] = [1; 512];

pub type Headers<'a> = &'a [(&'a str, &'a str)];

/// What an operation does under a protection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    Done,
    /// With this code.
    Refused(&'static str),
    /// It names nothing that can be protected, or is not built.
    Apart,
}

pub use Rule::{Apart, Done, Refused};

/// A request, and what it is about.
#[derive(Clone, Debug)]
pub struct Ask {
    pub op: Op,
    pub method: &'static str,
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    pub of: Of,
}

/// What a request names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Of {
    Account,
    Container,
    Blob(&'static str),
}

/// One blob of each kind in `cont`, and sources in `from`.
pub struct Stage {
    pub bench: Bench,
    /// The copy that `cont/pending` waits for.
    copy: String,
    /// A later snapshot of the blob that `cont/copied` is an incremental copy of.
    snapshot: String,
    /// The version of a container that is deleted.
    deleted: String,
}

const STALLED: &str = "http://a/stalled";
const PAGES: [(&str, &str); 2] = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1024")];
const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
const APPEND: (&str, &str) = ("x-ms-blob-type", "AppendBlob");
const UPDATE: [(&str, &str); 2] = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511")];
const FAR: &str = "Sun, 15 Nov 2099 18:00:00 GMT";

/// The blobs that requests name.
pub const BLOBS: [&str; 5] = ["cont/block", "cont/append", "cont/page", "cont/pending", "cont/copied"];

impl Stage {
    pub async fn new() -> Stage {
        Stage::with(Bench::with_container().await, &[]).await
    }

    /// With blobs of each type that are made with these headers.
    pub async fn with(bench: Bench, more: Headers<'_>) -> Stage {
        let Bench { engine, service, mut settings } = bench;
        settings.container_soft_delete_days = Some(7);
        let elsewhere = Arc::new(Elsewhere::default());
        let stalled = Script { length: 512, then: Then::Stall, ..Script::of(b"begin") };
        elsewhere.0.lock().unwrap().insert(STALLED, stalled);
        let bench = Bench { engine, service: service.reaching(elsewhere), settings };
        let mut stage = Stage { bench, copy: String::new(), snapshot: String::new(), deleted: String::new() };
        let tags = ("x-ms-tags", "a=1");
        stage.put("cont/block", &[more, &[BLOCK, tags]].concat(), &BEFORE).await;
        stage.put("cont/append", &[more, &[APPEND, tags]].concat(), b"").await;
        stage.put("cont/append?comp=appendblock", more, &BEFORE).await;
        stage.put("cont/page", &[more, &PAGES, &[tags]].concat(), b"").await;
        stage.put("cont/page?comp=page", &[more, &UPDATE].concat(), &BEFORE).await;
        stage.put("cont/pending", &[BLOCK, tags], &BEFORE).await;
        stage.put("from?restype=container", &[], b"").await;
        stage.put("from/block", &[BLOCK, tags], &BEFORE).await;
        stage.put("from/page", &PAGES, b"").await;
        stage.snapshot = stage.next_snapshot().await;
        stage.copy_incrementally().await.unwrap();
        let set = b"<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>";
        stage.put("cont/copied?comp=tags", &[], set).await;
        stage.snapshot = stage.next_snapshot().await;
        stage.put("gone?restype=container", &[], b"").await;
        stage.bench.call("DELETE", "gone?restype=container", &[], b"").await.unwrap();
        let listed = stage.bench.text("GET", "?comp=list&include=deleted&prefix=gone").await;
        stage.deleted = crate::testing::between(&listed, "<Version>", "</Version>")[0].to_owned();
        stage
    }

    pub async fn put(&self, url: &str, headers: Headers<'_>, body: &[u8]) -> Reply {
        let done = self.bench.call("PUT", url, headers, body).await;
        done.unwrap_or_else(|error| panic!("PUT {url} {headers:?}: {error:?}"))
    }

    /// Begins the copy that `cont/pending` waits for; until then it is a blob as any other.
    pub async fn wait_for_copy(&mut self, headers: Headers<'_>) {
        let copy = self.put("cont/pending", &[&[("x-ms-copy-source", STALLED)], headers].concat(), b"").await;
        self.copy = header(&copy, "x-ms-copy-id").unwrap().to_owned();
        // It says how far it has come, and then no more.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    async fn next_snapshot(&self) -> String {
        let made = self.put("from/page?comp=snapshot", &[], b"").await;
        url(&format!("from/page?snapshot={}", header(&made, "x-ms-snapshot").unwrap()))
    }

    async fn copy_incrementally(&self) -> Result<Reply, Failure> {
        let from = [("x-ms-copy-source", self.snapshot.as_str())];
        self.bench.call("PUT", "cont/copied?comp=incrementalcopy", &from, b"").await
    }

    pub async fn ask(&self, ask: &Ask, more: Headers<'_>) -> Result<Reply, Failure> {
        let own = ask.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<(&str, &str)> = own.chain(more.iter().copied()).collect();
        self.bench.call(ask.method, &ask.url, &headers, &ask.body).await
    }

    /// Asks, and holds the answer against the rule.
    pub async fn hold(&self, ask: &Ask, more: Headers<'_>, rule: Rule, what: &str) {
        assert_eq!(self.broken(ask, more, rule, what).await, None);
    }

    /// Asks, and says how the answer breaks the rule. Whatever happens, everything fits together afterwards.
    async fn broken(&self, ask: &Ask, more: Headers<'_>, rule: Rule, what: &str) -> Option<String> {
        let what = format!("{what}: {} {} {} with {more:?}", ask.op.name(), ask.method, ask.url);
        let before = self.rows().await;
        let said = match self.ask(ask, more).await {
            Ok(_) => "Done".to_owned(),
            Err(Failure::Refused(error)) => error.to_reply().code.to_owned(),
            Err(error) => panic!("{what}: {error:?}"),
        };
        assert!(said == "Done" || self.rows().await == before, "{what}: a refusal changed something");
        assert_eq!(self.bench.problems().await, Vec::<String>::new(), "{what}");
        let expected = match rule {
            Done => "Done",
            Refused(code) => code,
            Apart => &said,
        };
        (said != expected).then(|| format!("{what}: {said} instead of {expected}"))
    }

    /// Every row of the service.
    pub async fn rows(&self) -> BTreeMap<Key, Bytes> {
        let rows = engine::read::<_, std::convert::Infallible, _>(&*self.bench.engine, |rows, _| {
            let mut all = BTreeMap::new();
            rows.scan(&Key::new(space::CONTAINER), &Key::new(space::TABLE), 100, &mut |key, row| {
                all.insert(Key::from_bytes(key), row.clone());
                Visit::Next
            })?;
            Ok(all)
        });
        rows.await.unwrap()
    }
}

/// The requests for an operation. All of them keep to its rules.
pub fn requests(op: Op, stage: &Stage) -> Vec<Ask> {
    let ask = |method, url: &str, of, headers: Headers<'static>, body: &[u8]| Ask {
        op,
        method,
        url: url.to_owned(),
        headers: headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
        body: body.to_vec(),
        of,
    };
    let container = |method, comp: &str, headers: Headers<'static>, body: &[u8]| {
        vec![ask(method, &format!("cont?restype=container{comp}"), Of::Container, headers, body)]
    };
    let blob = |method, name: &'static str, query: &str, headers: Headers<'static>, body: &[u8]| {
        ask(method, &format!("{name}{query}"), Of::Blob(name), headers, body)
    };
    let from = |asked: Ask, source: String| Ask {
        headers: [asked.headers, vec![("x-ms-copy-source", source)]].concat(),
        ..asked
    };
    let [block, append, page, pending, copied] = BLOBS;
    let each = |method, query: &str, headers: Headers<'static>, body: &[u8]| {
        [block, append, page].into_iter().map(|name| blob(method, name, query, headers, body)).collect::<Vec<_>>()
    };
    let tags = b"<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>";
    let list = b"<BlockList/>";
    let acquire = &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    match op {
        Op::ListContainers => vec![ask("GET", "?comp=list", Of::Account, &[], b"")],
        Op::GetBlobServiceProperties => vec![ask("GET", "?restype=service&comp=properties", Of::Account, &[], b"")],
        Op::SetBlobServiceProperties => {
            vec![ask("PUT", "?restype=service&comp=properties", Of::Account, &[], b"<StorageServiceProperties/>")]
        }
        Op::GetAccountInformation => vec![ask("GET", "?restype=account&comp=properties", Of::Account, &[], b"")],
        // The first is answered by the secondary, the second to a token, the third before anybody is known, and the fourth
        // taken apart by the server; the last is not built.
        Op::GetBlobServiceStats
        | Op::GetUserDelegationKey
        | Op::PreflightBlobRequest
        | Op::BlobBatch
        | Op::RenameContainer => Vec::new(),
        Op::FindBlobsByTags => vec![ask("GET", "?comp=blobs&where=a%3D%271%27", Of::Account, &[], b"")],
        Op::FindBlobsByTagsInContainer => container("GET", "&comp=blobs&where=a%3D%271%27", &[], b""),
        Op::CreateContainer => vec![ask("PUT", "new?restype=container", Of::Account, &[], b"")],
        Op::GetContainerProperties => container("GET", "", &[], b""),
        Op::GetContainerMetadata => container("GET", "&comp=metadata", &[], b""),
        Op::SetContainerMetadata => container("PUT", "&comp=metadata", &[("x-ms-meta-a", "1")], b""),
        Op::GetContainerAcl => container("GET", "&comp=acl", &[], b""),
        Op::SetContainerAcl => container("PUT", "&comp=acl", &[], b""),
        Op::DeleteContainer => container("DELETE", "", &[], b""),
        Op::LeaseContainer => container("PUT", "&comp=lease", acquire, b""),
        Op::RestoreContainer => {
            let restore = ask("PUT", "back?restype=container&comp=undelete", Of::Account, &[], b"");
            let names = vec![
                ("x-ms-deleted-container-name", "gone".to_owned()),
                ("x-ms-deleted-container-version", stage.deleted.clone()),
            ];
            vec![Ask { headers: names, ..restore }]
        }
        Op::ListBlobs => container("GET", "&comp=list&include=metadata,tags,snapshots,copy,versions", &[], b""),
        Op::PutBlob => vec![
            blob("PUT", block, "", &[BLOCK], b"after"),
            blob("PUT", append, "", &[APPEND], b""),
            blob("PUT", page, "", &PAGES, b""),
        ],
        Op::PutBlobFromUrl => vec![from(blob("PUT", block, "", &[BLOCK], b""), url("from/block"))],
        Op::GetBlob => each("GET", "", &[], b""),
        Op::GetBlobProperties => each("HEAD", "", &[], b""),
        Op::SetBlobProperties => {
            let resize = blob("PUT", page, "?comp=properties", &[("x-ms-blob-content-length", "512")], b"");
            let number = &[("x-ms-sequence-number-action", "increment")];
            let mut all = each("PUT", "?comp=properties", &[("x-ms-blob-cache-control", "no-store")], b"");
            all.extend([resize, blob("PUT", page, "?comp=properties", number, b"")]);
            all
        }
        Op::GetBlobMetadata => each("GET", "?comp=metadata", &[], b""),
        Op::SetBlobMetadata => each("PUT", "?comp=metadata", &[("x-ms-meta-a", "1")], b""),
        Op::GetBlobTags => each("GET", "?comp=tags", &[], b""),
        Op::SetBlobTags => each("PUT", "?comp=tags", &[], tags),
        Op::LeaseBlob => each("PUT", "?comp=lease", acquire, b""),
        Op::SnapshotBlob => each("PUT", "?comp=snapshot", &[], b""),
        Op::CopyBlob => vec![
            from(blob("PUT", block, "", &[], b""), url("from/block")),
            from(blob("PUT", block, "", &[], b""), STALLED.to_owned()),
            from(blob("PUT", page, "", &[], b""), url("from/page")),
        ],
        Op::CopyBlobFromUrl => {
            vec![from(blob("PUT", block, "", &[("x-ms-requires-sync", "true")], b""), url("from/block"))]
        }
        Op::AbortCopyBlob => {
            let query = format!("?comp=copy&copyid={}", if stage.copy.is_empty() { MINE } else { &stage.copy });
            vec![blob("PUT", pending, &query, &[("x-ms-copy-action", "abort")], b"")]
        }
        Op::IncrementalCopyBlob => {
            vec![from(blob("PUT", copied, "?comp=incrementalcopy", &[], b""), stage.snapshot.clone())]
        }
        Op::DeleteBlob => {
            let mut all = each("DELETE", "", &[], b"");
            all.push(blob("DELETE", copied, "", &[("x-ms-delete-snapshots", "include")], b""));
            all
        }
        Op::UndeleteBlob => each("PUT", "?comp=undelete", &[], b""),
        Op::SetBlobTier => vec![blob("PUT", block, "?comp=tier", &[("x-ms-access-tier", "Cool")], b"")],
        Op::SetBlobExpiry => vec![blob("PUT", block, "?comp=expiry", &[("x-ms-expiry-option", "NeverExpire")], b"")],
        Op::SetBlobImmutabilityPolicy => {
            let policy = &[("x-ms-immutability-policy-until-date", FAR), ("x-ms-immutability-policy-mode", "Locked")];
            each("PUT", "?comp=immutabilityPolicies", policy, b"")
        }
        Op::DeleteBlobImmutabilityPolicy => each("DELETE", "?comp=immutabilityPolicies", &[], b""),
        Op::SetBlobLegalHold => each("PUT", "?comp=legalhold", &[("x-ms-legal-hold", "true")], b""),
        Op::QueryBlobContents => vec![blob("POST", block, "?comp=query", &[], QUERY)],
        Op::PutBlock => vec![blob("PUT", block, "?comp=block&blockid=QUFB", &[], b"after")],
        Op::PutBlockFromUrl => vec![from(blob("PUT", block, "?comp=block&blockid=QUFB", &[], b""), url("from/block"))],
        Op::PutBlockList => vec![blob("PUT", block, "?comp=blocklist", &[], list)],
        Op::GetBlockList => vec![blob("GET", block, "?comp=blocklist&blocklisttype=all", &[], b"")],
        Op::PutPage => vec![
            blob("PUT", page, "?comp=page", &UPDATE, &[2; 512]),
            blob("PUT", page, "?comp=page", &[("x-ms-page-write", "clear"), ("x-ms-range", "bytes=0-511")], b""),
        ],
        Op::PutPageFromUrl => {
            let range = &[UPDATE[0], UPDATE[1], ("x-ms-source-range", "bytes=0-511")];
            vec![from(blob("PUT", page, "?comp=page", range, b""), url("from/block"))]
        }
        Op::GetPageRanges => vec![blob("GET", page, "?comp=pagelist", &[], b"")],
        Op::AppendBlock => vec![blob("PUT", append, "?comp=appendblock", &[], b"after")],
        Op::AppendBlockFromUrl => vec![from(blob("PUT", append, "?comp=appendblock", &[], b""), url("from/block"))],
        Op::AppendBlobSeal => vec![blob("PUT", append, "?comp=seal", &[], b"")],
    }
}

const QUERY: &[u8] =
    b"<QueryRequest><QueryType>SQL</QueryType><Expression>SELECT * FROM BlobStorage</Expression></QueryRequest>";

/// Holds every request for every operation against what `rule` says of it. `stage` makes what it is asked of.
pub async fn hold_all(what: &str, more: Headers<'_>, stage: impl AsyncFn() -> Stage, rule: impl Fn(&Ask) -> Rule) {
    let broken = all_broken(what, more, stage, rule).await;
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The rules that do not hold.
pub async fn all_broken(
    what: &str,
    more: Headers<'_>,
    stage: impl AsyncFn() -> Stage,
    rule: impl Fn(&Ask) -> Rule,
) -> Vec<String> {
    let mut broken = Vec::new();
    for op in Op::ALL {
        let count = requests(*op, &stage().await).len();
        for at in 0..count {
            let stage = stage().await;
            let ask = &requests(*op, &stage)[at];
            broken.extend(stage.broken(ask, more, rule(ask), what).await);
        }
    }
    broken
}

/// Where nothing is protected every request is done; that is what makes the tables say something.
#[tokio::test]
async fn every_operation_is_done_where_nothing_is_protected() {
    let stage = async || {
        let mut stage = Stage::new().await;
        stage.wait_for_copy(&[]).await;
        stage
    };
    hold_all("nothing", &[], stage, |ask| match ask.op {
        // Only accounts with a hierarchical namespace have it.
        Op::SetBlobExpiry => Refused("BlobOperationNotSupported"),
        _ => Done,
    })
    .await;
}

/// Each request names the operation that it is listed under, and each operation that is built here has one.
#[tokio::test]
async fn every_operation_has_its_requests() {
    let stage = Stage::new().await;
    for op in Op::ALL {
        for ask in requests(*op, &stage) {
            let headers: Vec<(&str, &str)> = ask.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let head = crate::testing::request(ask.method, &ask.url, &headers);
            assert_eq!(Op::named_by(&head).unwrap(), *op, "{ask:?}");
        }
    }
}
