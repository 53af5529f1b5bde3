//! Rights that a request needs beside that of its operation. Which right that is stands in the table of the server's tests.

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
    let (blob, container) = (Some(PublicAccess::Blob), Some(PublicAccess::Container));
    match op {
        Op::PutBlob | Op::PutBlobFromUrl | Op::CopyBlob | Op::CopyBlobFromUrl | Op::PutBlockList => {
            Row { protects: true, public: None }
        }
        Op::GetBlob | Op::GetBlobProperties | Op::GetBlobMetadata | Op::GetPageRanges => {
            Row { protects: false, public: blob }
        }
        Op::GetContainerProperties | Op::GetContainerMetadata => Row { protects: false, public: container },
        // The requests here ask for more than what is public: uncommitted blocks, and tags.
        Op::GetBlockList | Op::ListBlobs => Row { protects: false, public: None },
        Op::SetBlobProperties
        | Op::SetBlobMetadata
        | Op::GetBlobTags
        | Op::SetBlobTags
        | Op::LeaseBlob
        | Op::SnapshotBlob
        | Op::AbortCopyBlob
        | Op::IncrementalCopyBlob
        | Op::DeleteBlob
        | Op::UndeleteBlob
        | Op::SetBlobTier
        | Op::SetBlobExpiry
        | Op::SetBlobImmutabilityPolicy
        | Op::DeleteBlobImmutabilityPolicy
        | Op::SetBlobLegalHold
        | Op::QueryBlobContents
        | Op::PutBlock
        | Op::PutBlockFromUrl
        | Op::PutPage
        | Op::PutPageFromUrl
        | Op::AppendBlock
        | Op::AppendBlockFromUrl
        | Op::AppendBlobSeal
        | Op::ListContainers
        | Op::GetBlobServiceProperties
        | Op::SetBlobServiceProperties
        | Op::GetBlobServiceStats
        | Op::GetAccountInformation
        | Op::GetUserDelegationKey
        | Op::PreflightBlobRequest
        | Op::BlobBatch
        | Op::FindBlobsByTags
        | Op::FindBlobsByTagsInContainer
        | Op::CreateContainer
        | Op::SetContainerMetadata
        | Op::GetContainerAcl
        | Op::SetContainerAcl
        | Op::DeleteContainer
        | Op::LeaseContainer
        | Op::RestoreContainer
        | Op::RenameContainer => Row { protects: false, public: None },
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
