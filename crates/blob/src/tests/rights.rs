//! Rights that a request needs beside that of its operation. Which right that is stands in the table of the server's tests.

use super::class::{BlobClass, ContainerClass, OpClass};
use super::{Stage, requests};
use crate::Op;
use crate::model::PublicAccess;
use crate::testing::request;

/// What a request may say beside its operation, and who may ask without a credential.
struct Row {
    /// It can protect what it makes: that needs the right to.
    protects: bool,
    public: Option<PublicAccess>,
}

fn row(op: Op) -> Row {
    let public = |public| Row { protects: false, public };
    match op.class() {
        OpClass::Account => public(None),
        OpClass::Container(class) => match class {
            ContainerClass::Read => public(Some(PublicAccess::Container)),
            // The request for List Blobs asks for more than what is public: tags.
            ContainerClass::List
            | ContainerClass::GetAcl
            | ContainerClass::SetMetadata
            | ContainerClass::SetAcl
            | ContainerClass::Delete
            | ContainerClass::Lease => public(None),
        },
        OpClass::Blob(class) => match class {
            BlobClass::Replace | BlobClass::Copy => Row { protects: true, public: None },
            BlobClass::Read | BlobClass::GetPageRanges => public(Some(PublicAccess::Blob)),
            // The request asks for more than what is public: uncommitted blocks.
            BlobClass::GetBlockList => public(None),
            BlobClass::IncrementalCopy
            | BlobClass::AbortCopy
            | BlobClass::StageBlock
            | BlobClass::WriteInPlace
            | BlobClass::Seal
            | BlobClass::SetProperties
            | BlobClass::SetMetadata
            | BlobClass::SetTags
            | BlobClass::SetTier
            | BlobClass::SetExpiry
            | BlobClass::Lease
            | BlobClass::Snapshot
            | BlobClass::Delete
            | BlobClass::Undelete
            | BlobClass::Protect
            | BlobClass::DeletePolicy
            | BlobClass::Query
            | BlobClass::GetTags => public(None),
        },
    }
}

#[tokio::test]
async fn what_a_request_says_beside_its_operation() {
    let stage = Stage::new().await;
    for op in Op::ALL {
        for ask in requests(*op, &stage) {
            let own: Vec<(&str, &str)> = ask.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let head = |more: &[(&str, &str)]| request(ask.method, &ask.url, &[&own, more].concat());
            let needs = |more: &[(&str, &str)], letter: u8| op.needed_by(&head(more)).all_of.has(letter);
            for tags in [("x-ms-if-tags", "a='1'"), ("x-ms-tags", "a=1")] {
                assert!(needs(&[tags], b't'), "{ask:?}");
                assert_eq!(op.anonymous(&head(&[tags])), None, "{ask:?}");
            }
            let hold = ("x-ms-legal-hold", "true");
            let policy = ("x-ms-immutability-policy-until-date", super::FAR);
            let expected = row(*op);
            for protection in [hold, policy] {
                if own.iter().all(|(name, _)| *name != protection.0) {
                    assert_eq!(needs(&[protection], b'i'), expected.protects, "{ask:?}");
                }
            }
            assert_eq!(op.anonymous(&head(&[])), expected.public, "{ask:?}");
        }
    }
}
