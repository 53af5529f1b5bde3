//! What is not built answers 501 `APINotImplemented`, and stands in `docs/not-yet.txt`; what is built does neither.

use std::collections::BTreeSet;

use crate::harness::{Headers, Table};
use crate::stage::{BLOCK_BLOB, Stage};

const COPY: (&str, &str) = ("x-ms-copy-source", "http://127.0.0.1/devstoreaccount1/cont/blob");

/// One request for every operation that `docs/operations.txt` has for the service.
#[rustfmt::skip]
const REQUESTS: &[(&str, &str, Headers<'static>, &str)] = &[
    ("ListContainers",               "GET ?comp=list", &[], ""),
    ("GetBlobServiceProperties",     "GET ?restype=service&comp=properties", &[], ""),
    ("SetBlobServiceProperties",     "PUT ?restype=service&comp=properties", &[], "<StorageServiceProperties/>"),
    ("GetBlobServiceStats",          "GET ?restype=service&comp=stats", &[], ""),
    ("GetAccountInformation",        "GET ?restype=account&comp=properties", &[], ""),
    ("GetUserDelegationKey",         "POST ?restype=service&comp=userdelegationkey", &[], "<KeyInfo><Start>2026-01-01T00:00:00Z</Start><Expiry>2026-01-02T00:00:00Z</Expiry></KeyInfo>"),
    ("PreflightBlobRequest",         "OPTIONS cont/blob", &[("origin", "http://a.example"), ("access-control-request-method", "GET")], ""),
    ("BlobBatch",                    "POST ?comp=batch", &[("content-type", "multipart/mixed; boundary=b")], "--b--"),
    ("FindBlobsByTags",              "GET ?comp=blobs&where=a%3D%27b%27", &[], ""),
    ("FindBlobsByTagsInContainer",   "GET cont?restype=container&comp=blobs&where=a%3D%27b%27", &[], ""),
    ("CreateContainer",              "PUT other?restype=container", &[], ""),
    ("GetContainerProperties",       "GET cont?restype=container", &[], ""),
    ("GetContainerMetadata",         "GET cont?restype=container&comp=metadata", &[], ""),
    ("SetContainerMetadata",         "PUT cont?restype=container&comp=metadata", &[], ""),
    ("GetContainerAcl",              "GET cont?restype=container&comp=acl", &[], ""),
    ("SetContainerAcl",              "PUT cont?restype=container&comp=acl", &[], ""),
    ("DeleteContainer",              "DELETE other?restype=container", &[], ""),
    ("LeaseContainer",               "PUT cont?restype=container&comp=lease", &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")], ""),
    ("RestoreContainer",             "PUT cont?restype=container&comp=undelete", &[("x-ms-deleted-container-name", "cont"), ("x-ms-deleted-container-version", "1")], ""),
    ("RenameContainer",              "PUT cont?restype=container&comp=rename", &[("x-ms-source-container-name", "cont")], ""),
    ("ListBlobs",                    "GET cont?restype=container&comp=list", &[], ""),
    ("PutBlob",                      "PUT cont/blob", &[BLOCK_BLOB], "x"),
    ("PutBlobFromUrl",               "PUT cont/blob", &[BLOCK_BLOB, COPY], ""),
    ("GetBlob",                      "GET cont/blob", &[], ""),
    ("GetBlobProperties",            "HEAD cont/blob", &[], ""),
    ("SetBlobProperties",            "PUT cont/blob?comp=properties", &[], ""),
    ("GetBlobMetadata",              "GET cont/blob?comp=metadata", &[], ""),
    ("SetBlobMetadata",              "PUT cont/blob?comp=metadata", &[], ""),
    ("GetBlobTags",                  "GET cont/blob?comp=tags", &[], ""),
    ("SetBlobTags",                  "PUT cont/blob?comp=tags", &[], "<Tags><TagSet/></Tags>"),
    ("SnapshotBlob",                 "PUT cont/blob?comp=snapshot", &[], ""),
    ("CopyBlob",                     "PUT cont/copy", &[COPY], ""),
    ("CopyBlobFromUrl",              "PUT cont/copy", &[COPY, ("x-ms-requires-sync", "true")], ""),
    ("AbortCopyBlob",                "PUT cont/copy?comp=copy&copyid=1", &[("x-ms-copy-action", "abort")], ""),
    ("IncrementalCopyBlob",          "PUT cont/copy?comp=incrementalcopy", &[COPY], ""),
    ("UndeleteBlob",                 "PUT cont/blob?comp=undelete", &[], ""),
    ("SetBlobTier",                  "PUT cont/blob?comp=tier", &[("x-ms-access-tier", "Cool")], ""),
    ("SetBlobExpiry",                "PUT cont/blob?comp=expiry", &[("x-ms-expiry-option", "NeverExpire")], ""),
    ("SetBlobImmutabilityPolicy",    "PUT cont/blob?comp=immutabilityPolicies", &[], ""),
    ("DeleteBlobImmutabilityPolicy", "DELETE cont/blob?comp=immutabilityPolicies", &[], ""),
    ("SetBlobLegalHold",             "PUT cont/blob?comp=legalhold", &[("x-ms-legal-hold", "false")], ""),
    ("QueryBlobContents",            "POST cont/blob?comp=query", &[], "<QueryRequest/>"),
    ("PutBlock",                     "PUT cont/blob?comp=block&blockid=AAAA", &[], "x"),
    ("PutBlockFromUrl",              "PUT cont/blob?comp=block&blockid=AAAA", &[COPY], ""),
    ("PutBlockList",                 "PUT cont/blob?comp=blocklist", &[], "<BlockList/>"),
    ("GetBlockList",                 "GET cont/blob?comp=blocklist", &[], ""),
    ("PutPage",                      "PUT cont/blob?comp=page", &[("x-ms-page-write", "clear"), ("range", "bytes=0-511")], ""),
    ("PutPageFromUrl",               "PUT cont/blob?comp=page", &[COPY, ("x-ms-page-write", "update"), ("range", "bytes=0-511")], ""),
    ("GetPageRanges",                "GET cont/blob?comp=pagelist", &[], ""),
    ("AppendBlock",                  "PUT cont/blob?comp=appendblock", &[], "x"),
    ("AppendBlockFromUrl",           "PUT cont/blob?comp=appendblock", &[COPY], ""),
    ("AppendBlobSeal",               "PUT cont/blob?comp=seal", &[], ""),
    ("LeaseBlob",                    "PUT cont/blob?comp=lease", &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")], ""),
    ("DeleteBlob",                   "DELETE cont/blob", &[("x-ms-delete-snapshots", "include")], ""),
];

/// The operations of the Blob service in a list of `docs/`: service and operation, tabs between.
fn listed(file: &str) -> BTreeSet<String> {
    let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"));
    let lines = text.lines().filter_map(|line| line.strip_prefix("blob\t"));
    lines.map(|line| line.split('\t').next().unwrap_or_default().trim().to_owned()).collect()
}

#[test]
fn every_operation_of_the_list_has_a_request() {
    let asked: BTreeSet<String> = REQUESTS.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(asked, listed("operations.txt"));
}

#[test]
fn what_is_not_built_says_so_and_is_listed() {
    let stage = Stage::new();
    let missing = listed("not-yet.txt");
    let mut table = Table::new("not yet");
    for (name, line, headers, body) in REQUESTS {
        let is_missing = stage.call(line, headers, body).said() == "501 APINotImplemented";
        let word = |missing| if missing { "missing" } else { "built" };
        table.row(name, word(is_missing), word(missing.contains(*name)));
    }
}
