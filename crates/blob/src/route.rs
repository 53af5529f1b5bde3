//! Which operation does this request name? The only place that knows.
//!
//! The level (service, container, blob) comes from the path and `restype`, then `comp` and the verb decide; a few
//! operations that share both are told apart by a header.

use service::RequestError;
use wire::http::{Head, Method};

use crate::error::BlobError;
use crate::op::Op;

impl Op {
    /// The operation that a request names, whether or not it is built.
    pub fn named_by(head: &Head) -> Result<Op, BlobError> {
        if head.method == Method::OPTIONS {
            return Ok(Op::PreflightBlobRequest);
        }
        if !is_verb(&head.method) {
            return Err(BlobError::InvalidHttpVerb);
        }
        let restype = head.query.get("restype").map(str::to_ascii_lowercase);
        let comp = head.query.get("comp").map(str::to_ascii_lowercase);
        let comp = comp.as_deref();
        match restype.as_deref() {
            Some("account") => account(head, comp),
            Some("service") => service(head, comp),
            Some("container") => container(head, comp),
            Some(_) => Err(unknown(head, "restype")),
            None if head.first_segment().is_none() => service(head, comp),
            None => blob(head, comp),
        }
    }
}

/// Whether it is a verb at all; which of them a resource supports is another question.
fn is_verb(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET | Method::HEAD | Method::PUT | Method::POST | Method::DELETE | Method::PATCH | Method::TRACE
    ) || method.as_str() == "MERGE"
}

/// Account information can be asked at every level.
fn account(head: &Head, comp: Option<&str>) -> Result<Op, BlobError> {
    match (verb(head), comp) {
        (Verb::Read | Verb::Head, Some("properties")) => Ok(Op::GetAccountInformation),
        (_, Some("properties")) => Err(BlobError::Request(RequestError::UnsupportedHttpVerb)),
        _ => Err(unknown(head, "comp")),
    }
}

fn service(head: &Head, comp: Option<&str>) -> Result<Op, BlobError> {
    Ok(match (verb(head), comp) {
        (Verb::Read, Some("list")) => Op::ListContainers,
        (Verb::Read, Some("properties")) => Op::GetBlobServiceProperties,
        (Verb::Put, Some("properties")) => Op::SetBlobServiceProperties,
        (Verb::Read, Some("stats")) => Op::GetBlobServiceStats,
        (Verb::Post, Some("userdelegationkey")) => Op::GetUserDelegationKey,
        (Verb::Post, Some("batch")) => Op::BlobBatch,
        (Verb::Read, Some("blobs")) => Op::FindBlobsByTags,
        (_, Some("list" | "properties" | "stats" | "userdelegationkey" | "batch" | "blobs")) => {
            return Err(BlobError::Request(RequestError::UnsupportedHttpVerb));
        }
        (_, Some(_)) => return Err(unknown(head, "comp")),
        (_, None) => return Err(BlobError::Request(RequestError::MissingRequiredQueryParameter { name: "comp" })),
    })
}

fn container(head: &Head, comp: Option<&str>) -> Result<Op, BlobError> {
    Ok(match (verb(head), comp) {
        (Verb::Put, None) => Op::CreateContainer,
        (Verb::Read | Verb::Head, None) => Op::GetContainerProperties,
        (Verb::Delete, None) => Op::DeleteContainer,
        (Verb::Read | Verb::Head, Some("metadata")) => Op::GetContainerMetadata,
        (Verb::Put, Some("metadata")) => Op::SetContainerMetadata,
        (Verb::Read | Verb::Head, Some("acl")) => Op::GetContainerAcl,
        (Verb::Put, Some("acl")) => Op::SetContainerAcl,
        (Verb::Put, Some("lease")) => Op::LeaseContainer,
        (Verb::Put, Some("undelete")) => Op::RestoreContainer,
        (Verb::Put, Some("rename")) => Op::RenameContainer,
        (Verb::Read, Some("list")) => Op::ListBlobs,
        (Verb::Post, Some("batch")) => Op::BlobBatch,
        (Verb::Read, Some("blobs")) => Op::FindBlobsByTagsInContainer,
        (_, None | Some("metadata" | "acl" | "lease" | "undelete" | "rename" | "list" | "batch" | "blobs")) => {
            return Err(BlobError::Request(RequestError::UnsupportedHttpVerb));
        }
        (_, Some(_)) => return Err(unknown(head, "comp")),
    })
}

fn blob(head: &Head, comp: Option<&str>) -> Result<Op, BlobError> {
    let from_url = head.has_header(COPY_SOURCE);
    Ok(match (verb(head), comp) {
        (Verb::Read, None) => Op::GetBlob,
        (Verb::Head, None) => Op::GetBlobProperties,
        (Verb::Delete, None) => Op::DeleteBlob,
        (Verb::Put, None) => put(head, from_url)?,
        (Verb::Read | Verb::Head, Some("metadata")) => Op::GetBlobMetadata,
        (Verb::Put, Some("metadata")) => Op::SetBlobMetadata,
        (Verb::Put, Some("properties")) => Op::SetBlobProperties,
        (Verb::Put, Some("lease")) => Op::LeaseBlob,
        (Verb::Put, Some("snapshot")) => Op::SnapshotBlob,
        (Verb::Put, Some("undelete")) => Op::UndeleteBlob,
        (Verb::Put, Some("expiry")) => Op::SetBlobExpiry,
        (Verb::Put, Some("tier")) => Op::SetBlobTier,
        (Verb::Put, Some("seal")) => Op::AppendBlobSeal,
        (Verb::Put, Some("copy")) => Op::AbortCopyBlob,
        (Verb::Put, Some("incrementalcopy")) => Op::IncrementalCopyBlob,
        (Verb::Put, Some("immutabilitypolicies")) => Op::SetBlobImmutabilityPolicy,
        (Verb::Delete, Some("immutabilitypolicies")) => Op::DeleteBlobImmutabilityPolicy,
        (Verb::Put, Some("legalhold")) => Op::SetBlobLegalHold,
        (Verb::Read, Some("tags")) => Op::GetBlobTags,
        (Verb::Put, Some("tags")) => Op::SetBlobTags,
        (Verb::Post, Some("query")) => Op::QueryBlobContents,
        (Verb::Put, Some("block")) if from_url => Op::PutBlockFromUrl,
        (Verb::Put, Some("block")) => Op::PutBlock,
        (Verb::Put, Some("blocklist")) => Op::PutBlockList,
        (Verb::Read, Some("blocklist")) => Op::GetBlockList,
        (Verb::Put, Some("page")) if from_url => Op::PutPageFromUrl,
        (Verb::Put, Some("page")) => Op::PutPage,
        (Verb::Read, Some("pagelist")) => Op::GetPageRanges,
        (Verb::Put, Some("appendblock")) if from_url => Op::AppendBlockFromUrl,
        (Verb::Put, Some("appendblock")) => Op::AppendBlock,
        (_, None) => return Err(BlobError::Request(RequestError::UnsupportedHttpVerb)),
        (_, Some(comp)) if BLOB_COMPS.contains(&comp) => {
            return Err(BlobError::Request(RequestError::UnsupportedHttpVerb));
        }
        (_, Some(_)) => return Err(unknown(head, "comp")),
    })
}

/// A plain PUT creates a blob, in one of four ways.
fn put(head: &Head, from_url: bool) -> Result<Op, BlobError> {
    let has_type = head.has_header(BLOB_TYPE);
    let is_sync = head.header("x-ms-requires-sync").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    match (from_url, has_type) {
        (false, true) => Ok(Op::PutBlob),
        (true, true) => Ok(Op::PutBlobFromUrl),
        (true, false) if is_sync => Ok(Op::CopyBlobFromUrl),
        (true, false) => Ok(Op::CopyBlob),
        (false, false) => Err(BlobError::Request(RequestError::MissingRequiredHeader { name: BLOB_TYPE })),
    }
}

const COPY_SOURCE: &str = "x-ms-copy-source";
const BLOB_TYPE: &str = "x-ms-blob-type";

const BLOB_COMPS: [&str; 19] = [
    "metadata",
    "properties",
    "lease",
    "snapshot",
    "undelete",
    "expiry",
    "tier",
    "seal",
    "copy",
    "incrementalcopy",
    "immutabilitypolicies",
    "legalhold",
    "tags",
    "query",
    "block",
    "blocklist",
    "page",
    "pagelist",
    "appendblock",
];

#[derive(Clone, Copy)]
enum Verb {
    Read,
    Head,
    Put,
    Post,
    Delete,
    Other,
}

fn verb(head: &Head) -> Verb {
    match head.method {
        Method::GET => Verb::Read,
        Method::HEAD => Verb::Head,
        Method::PUT => Verb::Put,
        Method::POST => Verb::Post,
        Method::DELETE => Verb::Delete,
        _ => Verb::Other,
    }
}

fn unknown(head: &Head, name: &'static str) -> BlobError {
    match head.query.get(name) {
        Some(value) => BlobError::query(name, value),
        None => BlobError::Request(RequestError::MissingRequiredQueryParameter { name }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;

    /// Method, URL below the account, headers, and what they name.
    type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)], Op);

    #[test]
    fn the_request_lines_of_the_reference_name_their_operations() {
        let table: &[Row] = &[
            ("GET", "?comp=list", &[], Op::ListContainers),
            ("GET", "?restype=service&comp=properties", &[], Op::GetBlobServiceProperties),
            ("PUT", "?restype=service&comp=properties", &[], Op::SetBlobServiceProperties),
            ("GET", "?restype=service&comp=stats", &[], Op::GetBlobServiceStats),
            ("POST", "?restype=service&comp=userdelegationkey", &[], Op::GetUserDelegationKey),
            ("GET", "?restype=account&comp=properties", &[], Op::GetAccountInformation),
            ("HEAD", "cont?restype=account&comp=properties", &[], Op::GetAccountInformation),
            ("GET", "cont/blob?restype=account&comp=properties", &[], Op::GetAccountInformation),
            ("POST", "?comp=batch", &[], Op::BlobBatch),
            ("POST", "cont?restype=container&comp=batch", &[], Op::BlobBatch),
            ("GET", "?comp=blobs&where=a", &[], Op::FindBlobsByTags),
            ("GET", "cont?restype=container&comp=blobs&where=a", &[], Op::FindBlobsByTagsInContainer),
            ("PUT", "cont?restype=container", &[], Op::CreateContainer),
            ("HEAD", "cont?restype=container", &[], Op::GetContainerProperties),
            ("GET", "cont?restype=Container", &[], Op::GetContainerProperties),
            ("GET", "cont?restype=container&comp=metadata", &[], Op::GetContainerMetadata),
            ("PUT", "cont?restype=container&comp=metadata", &[], Op::SetContainerMetadata),
            ("HEAD", "cont?restype=container&comp=acl", &[], Op::GetContainerAcl),
            ("PUT", "cont?restype=container&comp=acl", &[], Op::SetContainerAcl),
            ("DELETE", "cont?restype=container", &[], Op::DeleteContainer),
            ("PUT", "cont?comp=lease&restype=container", &[], Op::LeaseContainer),
            ("PUT", "cont?restype=container&comp=undelete", &[], Op::RestoreContainer),
            ("PUT", "cont?restype=container&comp=rename", &[], Op::RenameContainer),
            ("GET", "cont?restype=container&comp=list", &[], Op::ListBlobs),
            ("PUT", "cont/blob", &[("x-ms-blob-type", "BlockBlob")], Op::PutBlob),
            ("PUT", "blob", &[("x-ms-blob-type", "BlockBlob")], Op::PutBlob),
            ("PUT", "cont/blob", &[("x-ms-blob-type", "BlockBlob"), ("x-ms-copy-source", "u")], Op::PutBlobFromUrl),
            ("PUT", "cont/blob", &[("x-ms-copy-source", "u")], Op::CopyBlob),
            ("PUT", "cont/blob", &[("x-ms-copy-source", "u"), ("x-ms-requires-sync", "true")], Op::CopyBlobFromUrl),
            ("PUT", "cont/blob?comp=copy&copyid=x", &[], Op::AbortCopyBlob),
            ("PUT", "cont/blob?comp=incrementalcopy", &[], Op::IncrementalCopyBlob),
            ("GET", "cont/dir/blob", &[], Op::GetBlob),
            ("HEAD", "cont/blob", &[], Op::GetBlobProperties),
            ("DELETE", "cont/blob", &[], Op::DeleteBlob),
            ("GET", "cont/blob?comp=metadata", &[], Op::GetBlobMetadata),
            ("PUT", "cont/blob?comp=metadata", &[], Op::SetBlobMetadata),
            ("PUT", "cont/blob?comp=properties", &[], Op::SetBlobProperties),
            ("PUT", "cont/blob?comp=lease", &[], Op::LeaseBlob),
            ("PUT", "cont/blob?comp=snapshot", &[], Op::SnapshotBlob),
            ("PUT", "cont/blob?comp=undelete", &[], Op::UndeleteBlob),
            ("PUT", "cont/blob?comp=expiry", &[], Op::SetBlobExpiry),
            ("PUT", "cont/blob?comp=tier", &[], Op::SetBlobTier),
            ("PUT", "cont/blob?comp=seal", &[], Op::AppendBlobSeal),
            ("PUT", "cont/blob?comp=immutabilityPolicies", &[], Op::SetBlobImmutabilityPolicy),
            ("DELETE", "cont/blob?comp=immutabilityPolicies", &[], Op::DeleteBlobImmutabilityPolicy),
            ("PUT", "cont/blob?comp=legalhold", &[], Op::SetBlobLegalHold),
            ("GET", "cont/blob?comp=tags", &[], Op::GetBlobTags),
            ("PUT", "cont/blob?comp=tags", &[], Op::SetBlobTags),
            ("POST", "cont/blob?comp=query", &[], Op::QueryBlobContents),
            ("PUT", "cont/blob?comp=block&blockid=QQ==", &[], Op::PutBlock),
            ("PUT", "cont/blob?comp=block&blockid=QQ==", &[("x-ms-copy-source", "u")], Op::PutBlockFromUrl),
            ("PUT", "cont/blob?comp=blocklist", &[], Op::PutBlockList),
            ("GET", "cont/blob?comp=blocklist", &[], Op::GetBlockList),
            ("PUT", "cont/blob?comp=page", &[], Op::PutPage),
            ("PUT", "cont/blob?comp=page", &[("x-ms-copy-source", "u")], Op::PutPageFromUrl),
            ("GET", "cont/blob?comp=pagelist", &[], Op::GetPageRanges),
            ("PUT", "cont/blob?comp=appendblock", &[], Op::AppendBlock),
            ("PUT", "cont/blob?comp=appendblock", &[("x-ms-copy-source", "u")], Op::AppendBlockFromUrl),
            ("OPTIONS", "cont/blob", &[], Op::PreflightBlobRequest),
        ];
        for (method, url, headers, op) in table {
            assert_eq!(Op::named_by(&request(method, url, headers)), Ok(*op), "{method} {url}");
        }
        for op in Op::ALL {
            assert!(table.iter().any(|row| row.3 == *op), "no request names {}", op.name());
        }
    }

    #[test]
    fn requests_that_name_nothing() {
        let verb = BlobError::Request(RequestError::UnsupportedHttpVerb);
        let table = [
            ("PUT", "cont/blob", BlobError::Request(RequestError::MissingRequiredHeader { name: "x-ms-blob-type" })),
            ("PUT", "cont/blob?comp=tiers", BlobError::query("comp", "tiers")),
            ("GET", "cont?restype=share", BlobError::query("restype", "share")),
            ("GET", "cont?restype=container&comp=x", BlobError::query("comp", "x")),
            ("GET", "", BlobError::Request(RequestError::MissingRequiredQueryParameter { name: "comp" })),
            ("GET", "?comp=x", BlobError::query("comp", "x")),
            ("POST", "cont/blob", verb.clone()),
            ("DELETE", "cont/blob?comp=lease", verb.clone()),
            ("PATCH", "cont?restype=container", verb.clone()),
            ("MERGE", "cont/blob", verb.clone()),
            ("DELETE", "?comp=list", verb),
            ("FROB", "cont/blob", BlobError::InvalidHttpVerb),
            ("FROB", "cont?restype=share", BlobError::InvalidHttpVerb),
        ];
        for (method, url, error) in table {
            assert_eq!(Op::named_by(&request(method, url, &[])), Err(error), "{method} {url}");
        }
    }
}
