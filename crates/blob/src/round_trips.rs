//! How many round trips each operation takes on an engine that must fetch its rows: a budget, to be lowered and never exceeded.
//!
//! The functions are run as the engine for many machines runs them (`engine::loads`), so this also shows that they are pure.

use std::sync::Arc;

use auth::Settings;
use engine::loads::LoadingEngine;
use engine::memory::MemoryEngine;

use crate::BlobService;
use crate::testing::{Ask, Bench, bytes};

const BLOCK_BLOB: &[(&str, &str)] = &[("x-ms-blob-type", "BlockBlob")];
const APPEND_BLOB: &[(&str, &str)] = &[("x-ms-blob-type", "AppendBlob")];
const PAGE_BLOB: &[(&str, &str)] = &[("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1024")];
const UPDATE_PAGES: &[(&str, &str)] = &[("x-ms-page-write", "update"), ("range", "bytes=0-1023")];
const ACQUIRE: &[(&str, &str)] = &[
    ("x-ms-lease-action", "acquire"),
    ("x-ms-lease-duration", "15"),
    ("x-ms-proposed-lease-id", "01010101-0101-0101-0101-010101010101"),
];
const RELEASE: &[(&str, &str)] =
    &[("x-ms-lease-action", "release"), ("x-ms-lease-id", "01010101-0101-0101-0101-010101010101")];
const COPY: &[(&str, &str)] = &[("x-ms-copy-source", "http://127.0.0.1:10000/acct/cont/blob")];
const LIST: &[u8] = b"<BlockList><Latest>MDAx</Latest><Latest>MDAy</Latest></BlockList>";
const TAGS: &[u8] = b"<Tags><TagSet><Tag><Key>colour</Key><Value>red</Value></Tag></TagSet></Tags>";

/// In this order, on an empty account: the request, and its round trips. Settings of the account, which nodes keep at hand, are
/// not among them.
const BUDGET: &[(Ask<'static>, u64)] = &[
    (("PUT", "cont?restype=container", &[], b""), 2),
    (("GET", "cont?restype=container", &[], b""), 3),
    (("PUT", "cont/blob", BLOCK_BLOB, b"first"), 5),
    (("PUT", "cont/blob", BLOCK_BLOB, b"again"), 6),
    (("GET", "cont/blob", &[], b""), 3),
    (("HEAD", "cont/blob", &[], b""), 2),
    (("PUT", "cont/blob?comp=block&blockid=MDAx", &[], b"one"), 5),
    (("PUT", "cont/blob?comp=block&blockid=MDAy", &[], b"two"), 7),
    (("PUT", "cont/blob?comp=blocklist", &[], LIST), 9),
    (("GET", "cont/blob", &[], b""), 4),
    (("GET", "cont/blob?comp=blocklist&blocklisttype=all", &[], b""), 3),
    (("PUT", "cont/blob?comp=metadata", &[("x-ms-meta-a", "1")], b""), 3),
    (("PUT", "cont/blob?comp=properties", &[("x-ms-blob-content-type", "text/plain")], b""), 3),
    (("PUT", "cont/blob?comp=tags", &[], TAGS), 5),
    (("GET", "cont/blob?comp=tags", &[], b""), 2),
    (("GET", "cont?restype=container&comp=blobs&where=colour%3D%27red%27", &[], b""), 3),
    (("PUT", "cont/blob?comp=tier", &[("x-ms-access-tier", "Cool")], b""), 3),
    (("PUT", "cont/blob?comp=lease", ACQUIRE, b""), 3),
    (("PUT", "cont/blob?comp=lease", RELEASE, b""), 3),
    (("PUT", "cont/blob?comp=snapshot", &[], b""), 3),
    (("PUT", "cont/copy", COPY, b""), 10),
    (("PUT", "cont/app", APPEND_BLOB, b""), 5),
    (("PUT", "cont/app?comp=appendblock", &[], b"one"), 5),
    (("PUT", "cont/app?comp=appendblock", &[], b"two"), 5),
    (("PUT", "cont/page", PAGE_BLOB, b""), 5),
    (("PUT", "cont/page?comp=page", UPDATE_PAGES, &[7; 1_024]), 7),
    (("GET", "cont/page", &[], b""), 5),
    (("GET", "cont/page?comp=pagelist", &[], b""), 4),
    (("GET", "cont?restype=container&comp=list", &[], b""), 2),
    (("GET", "?comp=list", &[], b""), 2),
    (("DELETE", "cont/copy", &[], b""), 4),
    (("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "include")], b""), 6),
    (("PUT", "cont?restype=container&comp=lease", ACQUIRE, b""), 2),
    (("PUT", "cont?restype=container&comp=lease", RELEASE, b""), 2),
    (("DELETE", "cont?restype=container", &[], b""), 4),
];

#[tokio::test]
async fn every_operation_keeps_its_budget_of_round_trips() {
    let engine = Arc::new(MemoryEngine::default());
    let loading = Arc::new(LoadingEngine::new(engine.clone()));
    let bench = Bench { service: BlobService::new(loading.clone()), engine, settings: Settings::default() };
    let mut over = Vec::new();
    for ((method, url, headers, body), budget) in BUDGET {
        let _ = loading.take_round_trips();
        let answer = bench.call(method, url, headers, body).await;
        bytes(answer.unwrap_or_else(|failure| panic!("{method} {url}: {failure:?}"))).await;
        let trips = loading.take_round_trips();
        if trips != *budget {
            over.push(format!("{method} {url}: {trips} round trips, not {budget}"));
        }
    }
    assert!(over.is_empty(), "\n{}", over.join("\n"));
}
