//! Encryption: which operations need the key or the scope that a blob is encrypted with.

use super::class::{BlobClass, OpClass};
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

/// What a blob is encrypted with.
#[derive(Clone, Copy)]
enum By {
    /// A key that the client brings with each request.
    Key,
    /// A scope of the account.
    Scope,
}

fn row(op: Op, by: By) -> Row {
    let class = match op.class() {
        OpClass::Account | OpClass::Container(_) => return all(Apart),
        OpClass::Blob(class) => class,
    };
    match class {
        // A new blob is encrypted as its own request says, whatever was there before.
        BlobClass::Replace => all(Done),
        // Blocks have keys of their own until they are committed.
        BlobClass::StageBlock => all(Done),
        BlobClass::Copy => match by {
            By::Key => NOT_TAKEN,
            By::Scope => all(Done),
        },
        // A scope belongs to the account: a reader need not name it, and the name is ignored.
        BlobClass::Read | BlobClass::Query => match by {
            By::Key => NEEDED,
            By::Scope => all(Done),
        },
        BlobClass::SetMetadata | BlobClass::Snapshot | BlobClass::WriteInPlace => NEEDED,
        BlobClass::SetTags
        | BlobClass::Lease
        | BlobClass::Delete
        | BlobClass::Undelete
        | BlobClass::SetTier
        | BlobClass::GetBlockList
        | BlobClass::Seal => NOT_TAKEN,
        // Clients that have a key send it along; the operation neither needs it nor looks at it.
        BlobClass::GetTags | BlobClass::GetPageRanges | BlobClass::Protect | BlobClass::DeletePolicy => all(Done),
        // No byte is read or written, so no key is needed; one that comes must be the right one.
        BlobClass::SetProperties => Row { none: Done, ..NEEDED },
        BlobClass::SetExpiry => all(Refused("BlobOperationNotSupported")),
        BlobClass::AbortCopy | BlobClass::IncrementalCopy => all(Apart),
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
    let rule = |ask: &Ask, rule: fn(Row) -> Rule| if is_apart(ask) { Apart } else { rule(row(ask.op, By::Key)) };
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
    let rule = |ask: &Ask, rule: fn(Row) -> Rule| if is_apart(ask) { Apart } else { rule(row(ask.op, By::Scope)) };
    let none: Headers<'_> = &[];
    let mut broken = all_broken("no scope", none, stage, |ask| rule(ask, |row| row.none)).await;
    broken.extend(all_broken("another scope", &scope("two"), stage, |ask| rule(ask, |row| row.other)).await);
    broken.extend(all_broken("the scope", &scope("one"), stage, |ask| rule(ask, |row| row.own)).await);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
