//! Encryption: which operations need the key or the scope that a blob is encrypted with.

use super::{Apart, Ask, Done, Headers, Of, Refused, Rule, Stage, all_broken};
use crate::Op;
use crate::testing::Bench;
use ring::digest::{SHA256, digest};
use wire::base64;

/// Without a key or scope, with another one, and with that of the blob.
struct Row {
    none: Rule,
    other: Rule,
    own: Rule,
}

fn all(rule: Rule) -> Row {
    Row { none: rule, other: rule, own: rule }
}

const NEEDED: Row = Row {
    none: Refused("BlobUsesCustomerSpecifiedEncryption"),
    other: Refused("BlobCustomerSpecifiedEncryptionMismatch"),
    own: Done,
};
/// It takes none, and says so to those who send one.
const NOT_TAKEN: Row = Row { none: Done, other: Refused("UnsupportedHeader"), own: Refused("UnsupportedHeader") };

/// Operations whose requests are not about encrypted blobs.
fn is_apart(ask: &Ask) -> bool {
    !matches!(ask.of, Of::Blob("cont/block" | "cont/append" | "cont/page"))
}

/// A blob that is sealed with a client's key.
fn by_key(op: Op) -> Row {
    match op {
        // What is new is sealed as it is asked for, whatever was there.
        Op::PutBlob | Op::PutBlobFromUrl | Op::PutBlockList => all(Done),
        // Blocks have keys of their own until they are committed.
        Op::PutBlock | Op::PutBlockFromUrl => all(Done),
        Op::GetBlob
        | Op::GetBlobProperties
        | Op::GetBlobMetadata
        | Op::SetBlobMetadata
        | Op::SnapshotBlob
        | Op::QueryBlobContents
        | Op::PutPage
        | Op::PutPageFromUrl
        | Op::AppendBlock
        | Op::AppendBlockFromUrl => NEEDED,
        Op::CopyBlob
        | Op::CopyBlobFromUrl
        | Op::SetBlobTags
        | Op::LeaseBlob
        | Op::DeleteBlob
        | Op::UndeleteBlob
        | Op::SetBlobTier
        | Op::GetBlockList
        | Op::AppendBlobSeal => NOT_TAKEN,
        // Clients that have a key send it along; they neither need nor take one.
        Op::GetBlobTags
        | Op::GetPageRanges
        | Op::SetBlobImmutabilityPolicy
        | Op::DeleteBlobImmutabilityPolicy
        | Op::SetBlobLegalHold => all(Done),
        // No byte is read or written, so none is needed; one that comes must be the right one.
        Op::SetBlobProperties => Row { none: Done, ..NEEDED },
        Op::SetBlobExpiry => all(Refused("BlobOperationNotSupported")),
        Op::AbortCopyBlob
        | Op::IncrementalCopyBlob
        | Op::GetContainerProperties
        | Op::GetContainerMetadata
        | Op::SetContainerMetadata
        | Op::GetContainerAcl
        | Op::SetContainerAcl
        | Op::DeleteContainer
        | Op::LeaseContainer
        | Op::ListBlobs
        | Op::FindBlobsByTagsInContainer
        | Op::ListContainers
        | Op::GetBlobServiceProperties
        | Op::SetBlobServiceProperties
        | Op::GetBlobServiceStats
        | Op::GetAccountInformation
        | Op::GetUserDelegationKey
        | Op::PreflightBlobRequest
        | Op::BlobBatch
        | Op::FindBlobsByTags
        | Op::CreateContainer
        | Op::RestoreContainer
        | Op::RenameContainer => all(Apart),
    }
}

/// A blob of an encryption scope.
fn by_scope(op: Op) -> Row {
    match op {
        Op::PutBlob | Op::PutBlobFromUrl | Op::PutBlockList | Op::PutBlock | Op::PutBlockFromUrl => all(Done),
        Op::CopyBlob | Op::CopyBlobFromUrl => all(Done),
        Op::SetBlobMetadata
        | Op::SnapshotBlob
        | Op::PutPage
        | Op::PutPageFromUrl
        | Op::AppendBlock
        | Op::AppendBlockFromUrl => NEEDED,
        // Scopes are the account's: who may read need not know them, and those who name one are passed over.
        Op::GetBlob | Op::GetBlobProperties | Op::GetBlobMetadata | Op::QueryBlobContents => all(Done),
        Op::SetBlobTags
        | Op::LeaseBlob
        | Op::DeleteBlob
        | Op::UndeleteBlob
        | Op::SetBlobTier
        | Op::GetBlockList
        | Op::AppendBlobSeal => NOT_TAKEN,
        // Clients that have a key send it along; they neither need nor take one.
        Op::GetBlobTags
        | Op::GetPageRanges
        | Op::SetBlobImmutabilityPolicy
        | Op::DeleteBlobImmutabilityPolicy
        | Op::SetBlobLegalHold => all(Done),
        // No byte is read or written, so none is needed; one that comes must be the right one.
        Op::SetBlobProperties => Row { none: Done, ..NEEDED },
        Op::SetBlobExpiry => all(Refused("BlobOperationNotSupported")),
        Op::AbortCopyBlob
        | Op::IncrementalCopyBlob
        | Op::GetContainerProperties
        | Op::GetContainerMetadata
        | Op::SetContainerMetadata
        | Op::GetContainerAcl
        | Op::SetContainerAcl
        | Op::DeleteContainer
        | Op::LeaseContainer
        | Op::ListBlobs
        | Op::FindBlobsByTagsInContainer
        | Op::ListContainers
        | Op::GetBlobServiceProperties
        | Op::SetBlobServiceProperties
        | Op::GetBlobServiceStats
        | Op::GetAccountInformation
        | Op::GetUserDelegationKey
        | Op::PreflightBlobRequest
        | Op::BlobBatch
        | Op::FindBlobsByTags
        | Op::CreateContainer
        | Op::RestoreContainer
        | Op::RenameContainer => all(Apart),
    }
}

fn key(byte: u8) -> [(&'static str, String); 3] {
    let secret = [byte; 32];
    [
        ("x-ms-encryption-key", base64::encode(&secret)),
        ("x-ms-encryption-key-sha256", base64::encode(digest(&SHA256, &secret).as_ref())),
        ("x-ms-encryption-algorithm", "AES256".to_owned()),
    ]
}

fn headers<'a>(key: &'a [(&'static str, String); 3]) -> [(&'static str, &'a str); 3] {
    std::array::from_fn(|at| (key[at].0, key[at].1.as_str()))
}

#[tokio::test]
async fn who_needs_the_key_of_a_blob() {
    let (own, other) = (key(1), key(2));
    let (own, other) = (headers(&own), headers(&other));
    let stage = async || Stage::with(Bench::with_container().await, &own).await;
    let rule = |ask: &Ask, rule: fn(Row) -> Rule| if is_apart(ask) { Apart } else { rule(by_key(ask.op)) };
    let mut broken = all_broken("no key", &[], stage, |ask| rule(ask, |row| row.none)).await;
    broken.extend(all_broken("another key", &other, stage, |ask| rule(ask, |row| row.other)).await);
    broken.extend(all_broken("the key", &own, stage, |ask| rule(ask, |row| row.own)).await);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[tokio::test]
async fn who_needs_the_scope_of_a_blob() {
    let scope = |name: &'static str| [("x-ms-encryption-scope", name)];
    let stage = async || {
        let mut bench = Bench::with_container().await;
        bench.settings.encryption_scopes = vec!["one".to_owned(), "two".to_owned()];
        Stage::with(bench, &scope("one")).await
    };
    let rule = |ask: &Ask, rule: fn(Row) -> Rule| if is_apart(ask) { Apart } else { rule(by_scope(ask.op)) };
    let none: Headers<'_> = &[];
    let mut broken = all_broken("no scope", none, stage, |ask| rule(ask, |row| row.none)).await;
    broken.extend(all_broken("another scope", &scope("two"), stage, |ask| rule(ask, |row| row.other)).await);
    broken.extend(all_broken("the scope", &scope("one"), stage, |ask| rule(ask, |row| row.own)).await);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
