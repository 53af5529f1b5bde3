//! How many round trips each operation takes on an engine that must fetch its rows: a budget, to be lowered and never exceeded.
//!
//! The functions are run as the engine for many machines runs them (`engine::loads`), so this also shows that they are pure.

use std::collections::HashSet;
use std::sync::Arc;

use auth::Settings;
use engine::loads::{Budget, NodeState, Tally};
use engine::memory::MemoryEngine;

use crate::testing::{Ask, Bench, between, bytes, header, request};
use crate::{BlobService, Op};

type Headers = &'static [(&'static str, &'static str)];

const BLOCK_BLOB: Headers = &[("x-ms-blob-type", "BlockBlob")];
const APPEND_BLOB: Headers = &[("x-ms-blob-type", "AppendBlob")];
const PAGE_BLOB: Headers = &[("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1024")];
const UPDATE_PAGES: Headers = &[("x-ms-page-write", "update"), ("range", "bytes=0-1023")];
const ACQUIRE: Headers = &[
    ("x-ms-lease-action", "acquire"),
    ("x-ms-lease-duration", "15"),
    ("x-ms-proposed-lease-id", "01010101-0101-0101-0101-010101010101"),
];
const RELEASE: Headers = &[("x-ms-lease-action", "release"), ("x-ms-lease-id", "01010101-0101-0101-0101-010101010101")];
const SOURCE: (&str, &str) = ("x-ms-copy-source", "http://127.0.0.1:10000/acct/cont/blob");
const COPY: Headers = &[SOURCE];
const COPY_NOW: Headers = &[SOURCE, ("x-ms-requires-sync", "true")];
const BLOCK_BLOB_FROM: Headers = &[SOURCE, ("x-ms-blob-type", "BlockBlob")];
const PAGES_FROM: Headers = &[
    ("x-ms-copy-source", "http://127.0.0.1:10000/acct/cont/page"),
    ("x-ms-page-write", "update"),
    ("range", "bytes=0-511"),
    ("x-ms-source-range", "bytes=0-511"),
];
/// `SNAPSHOT` is the last one that was made.
const CHANGES_FROM: Headers = &[("x-ms-copy-source", "http://127.0.0.1:10000/acct/cont/page?snapshot=SNAPSHOT")];
/// `VERSION` is that of the container that was listed last.
const DELETED_CONTAINER: Headers =
    &[("x-ms-deleted-container-name", "cont"), ("x-ms-deleted-container-version", "VERSION")];
const PROTECTED: Headers = &[
    ("x-ms-immutability-policy-until-date", "Fri, 01 Jan 2100 00:00:00 GMT"),
    ("x-ms-immutability-policy-mode", "Unlocked"),
];
const BROWSER: Headers = &[("origin", "http://site"), ("access-control-request-method", "GET")];
const LIST: &[u8] = b"<BlockList><Latest>MDAx</Latest><Latest>MDAy</Latest></BlockList>";
const TAGS: &[u8] = b"<Tags><TagSet><Tag><Key>colour</Key><Value>red</Value></Tag></TagSet></Tags>";
const QUERY: &[u8] =
    b"<QueryRequest><QueryType>SQL</QueryType><Expression>SELECT * FROM BlobStorage</Expression></QueryRequest>";
const PROPERTIES: &[u8] = b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>\
    <AllowedMethods>GET</AllowedMethods><AllowedHeaders>*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders>\
    <MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";

/// In this order, on an empty account: the request, and its round trips on a node that has just started and on one that
/// knows its way. Settings of the account, which nodes keep at hand, are not among them.
const BUDGET: &[(Ask<'static>, Budget)] = &[
    (("PUT", "cont?restype=container", &[], b""), (2, 2)),
    (("HEAD", "cont?restype=container", &[], b""), (3, 3)),
    (("GET", "cont?restype=container&comp=metadata", &[], b""), (1, 1)),
    (("PUT", "cont?restype=container&comp=metadata", &[("x-ms-meta-a", "1")], b""), (2, 2)),
    (("GET", "cont?restype=container&comp=acl", &[], b""), (1, 1)),
    (("PUT", "cont?restype=container&comp=acl", &[], b"<SignedIdentifiers/>"), (2, 2)),
    (("PUT", "cont/blob", BLOCK_BLOB, b"first"), (3, 2)),
    (("PUT", "cont/blob", BLOCK_BLOB, b"again"), (3, 2)),
    (("GET", "cont/blob", &[], b""), (3, 2)),
    (("GET", "cont/blob", &[], b""), (3, 1)),
    (("HEAD", "cont/blob", &[], b""), (2, 1)),
    (("PUT", "cont/blob?comp=block&blockid=MDAx", &[], b"one"), (4, 3)),
    (("PUT", "cont/blob?comp=block&blockid=MDAy", &[], b"two"), (5, 4)),
    (("PUT", "cont/blob?comp=blocklist", &[], LIST), (6, 4)),
    (("PUT", "cont/blob?comp=block&blockid=MDAx", &[], b"new"), (4, 3)),
    (("PUT", "cont/blob?comp=blocklist", &[], LIST), (6, 4)),
    (("GET", "cont/blob", &[], b""), (4, 3)),
    (("GET", "cont/blob?comp=blocklist&blocklisttype=all", &[], b""), (3, 1)),
    (("POST", "cont/blob?comp=query", &[], QUERY), (4, 2)),
    (("GET", "cont/blob?comp=metadata", &[], b""), (2, 1)),
    (("PUT", "cont/blob?comp=metadata", &[("x-ms-meta-a", "1")], b""), (3, 2)),
    (("PUT", "cont/blob?comp=properties", &[("x-ms-blob-content-type", "text/plain")], b""), (3, 2)),
    (("PUT", "cont/blob?comp=tags", &[], TAGS), (4, 3)),
    (("GET", "cont/blob?comp=tags", &[], b""), (2, 1)),
    (("GET", "?comp=blobs&where=colour%3D%27red%27", &[], b""), (3, 2)),
    (("GET", "cont?restype=container&comp=blobs&where=colour%3D%27red%27", &[], b""), (3, 2)),
    (("PUT", "cont/blob?comp=tier", &[("x-ms-access-tier", "Cool")], b""), (3, 2)),
    (("PUT", "cont/blob?comp=lease", ACQUIRE, b""), (3, 2)),
    (("PUT", "cont/blob?comp=lease", RELEASE, b""), (3, 2)),
    (("PUT", "cont/blob?comp=immutabilityPolicies", PROTECTED, b""), (3, 2)),
    (("DELETE", "cont/blob?comp=immutabilityPolicies", &[], b""), (3, 2)),
    (("PUT", "cont/blob?comp=legalhold", &[("x-ms-legal-hold", "true")], b""), (3, 2)),
    (("PUT", "cont/blob?comp=legalhold", &[("x-ms-legal-hold", "false")], b""), (3, 2)),
    (("PUT", "cont/blob?comp=snapshot", &[], b""), (3, 2)),
    (("PUT", "cont/copy", COPY, b""), (8, 6)),
    (("PUT", "cont/copy", COPY_NOW, b""), (8, 6)),
    (("PUT", "cont/copy", BLOCK_BLOB_FROM, b""), (8, 5)),
    (("PUT", "cont/copy?comp=block&blockid=MDAx", COPY, b""), (7, 5)),
    (("PUT", "cont/app", APPEND_BLOB, b""), (3, 2)),
    (("PUT", "cont/app?comp=appendblock", &[], b"one"), (4, 3)),
    (("PUT", "cont/app?comp=appendblock", &[], b"two"), (4, 3)),
    (("PUT", "cont/app?comp=appendblock", COPY, b""), (8, 6)),
    (("PUT", "cont/app?comp=seal", &[], b""), (3, 2)),
    (("PUT", "cont/page", PAGE_BLOB, b""), (3, 2)),
    (("PUT", "cont/page?comp=page", UPDATE_PAGES, &[7; 1_024]), (6, 5)),
    (("GET", "cont/page", &[], b""), (5, 2)),
    (("GET", "cont/page?comp=pagelist", &[], b""), (4, 1)),
    (("PUT", "cont/page2", PAGE_BLOB, b""), (3, 2)),
    (("PUT", "cont/page2?comp=page", PAGES_FROM, b""), (10, 6)),
    (("PUT", "cont/page?comp=snapshot", &[], b""), (3, 2)),
    (("PUT", "cont/page3?comp=incrementalcopy", CHANGES_FROM, b""), (7, 4)),
    (("GET", "cont?restype=container&comp=list", &[], b""), (2, 1)),
    (("GET", "?comp=list", &[], b""), (2, 2)),
    (("DELETE", "cont/copy", &[], b""), (3, 2)),
    (("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "include")], b""), (5, 3)),
    (("PUT", "cont?restype=container&comp=lease", ACQUIRE, b""), (2, 2)),
    (("PUT", "cont?restype=container&comp=lease", RELEASE, b""), (2, 2)),
    (("PUT", "?restype=service&comp=properties", &[], PROPERTIES), (2, 2)),
    (("GET", "?restype=service&comp=properties", &[], b""), (1, 1)),
    (("OPTIONS", "cont/blob", BROWSER, b""), (1, 1)),
    (("DELETE", "cont?restype=container", &[], b""), (4, 4)),
];

/// The same on an account that keeps what is deleted.
const BUDGET_WITH_SOFT_DELETE: &[(Ask<'static>, Budget)] = &[
    (("PUT", "cont?restype=container", &[], b""), (2, 2)),
    (("PUT", "cont/blob", BLOCK_BLOB, b"first"), (3, 3)),
    (("PUT", "cont/blob", BLOCK_BLOB, b"again"), (3, 2)),
    (("DELETE", "cont/blob", &[], b""), (3, 2)),
    (("PUT", "cont/blob?comp=undelete", &[], b""), (4, 3)),
    (("DELETE", "cont?restype=container", &[], b""), (4, 3)),
    (("GET", "?comp=list&include=deleted&prefix=cont", &[], b""), (3, 3)),
    (("PUT", "cont?restype=container&comp=undelete", DELETED_CONTAINER, b""), (3, 3)),
];

/// Operations without a budget, and why.
const UNCOUNTED: &[(Op, &str)] = &[
    (Op::GetBlobServiceStats, "it looks at no rows"),
    (Op::GetAccountInformation, "it looks at no rows"),
    (Op::GetUserDelegationKey, "it looks at no rows"),
    (Op::SetBlobExpiry, "it is for accounts with a hierarchical namespace, and refused"),
    (Op::AbortCopyBlob, "it needs a copy from another server that is under way"),
    (Op::BlobBatch, "each operation of a batch is one of the others"),
    (Op::RenameContainer, "it is not built"),
];

async fn run(bench: &Bench, tally: &mut Tally, budget: &[(Ask<'static>, Budget)]) {
    let (mut snapshot, mut version) = (String::new(), String::new());
    for ((method, url, headers, body), budget) in budget {
        let value = |text: &str| text.replace("SNAPSHOT", &snapshot).replace("VERSION", &version);
        let headers: Vec<(&str, String)> = headers.iter().map(|(name, text)| (*name, value(text))).collect();
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, text)| (*name, text.as_str())).collect();
        tally.begin();
        let answer = bench.call(method, url, &headers, body).await;
        let answer = answer.unwrap_or_else(|failure| panic!("{method} {url}: {failure:?}"));
        if let Some(made) = header(&answer, "x-ms-snapshot") {
            snapshot = made.to_owned();
        }
        let said = bytes(answer).await;
        tally.end(&format!("{method} {url}"), *budget);
        let said = String::from_utf8_lossy(&said);
        version = between(&said, "<Version>", "<").last().map_or(version, |listed| (*listed).to_owned());
    }
}

async fn every_operation_keeps_its_budget(state: NodeState) {
    let soft_delete =
        Settings { blob_soft_delete_days: Some(7), container_soft_delete_days: Some(7), ..Settings::default() };
    for (settings, budget) in [(Settings::default(), BUDGET), (soft_delete, BUDGET_WITH_SOFT_DELETE)] {
        let engine = Arc::new(MemoryEngine::default());
        let mut tally = Tally::new(engine.clone(), state);
        let bench = Bench { service: BlobService::new(tally.engine.clone()), engine, settings };
        run(&bench, &mut tally, budget).await;
        tally.assert();
    }
}

#[tokio::test]
async fn every_operation_keeps_its_budget_on_a_node_that_has_just_started() {
    every_operation_keeps_its_budget(NodeState::JustStarted).await;
}

#[tokio::test]
async fn every_operation_keeps_its_budget_on_a_node_that_knows_its_way() {
    every_operation_keeps_its_budget(NodeState::KnowsItsWay).await;
}

#[test]
fn every_operation_has_a_budget() {
    let named = BUDGET.iter().chain(BUDGET_WITH_SOFT_DELETE).map(|((method, url, headers, _), _)| {
        Op::named_by(&request(method, url, headers)).unwrap_or_else(|error| panic!("{method} {url}: {error:?}"))
    });
    let budgeted: HashSet<Op> = named.chain(UNCOUNTED.iter().map(|(op, _)| *op)).collect();
    let missing: Vec<&Op> = Op::ALL.iter().filter(|op| !budgeted.contains(op)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
