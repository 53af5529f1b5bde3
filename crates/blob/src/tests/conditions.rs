//! Conditions: which of the headers every operation judges.

use super::{Apart, Done, Headers, Refused, Rule, Stage, hold_all};
use crate::Op;

/// What becomes of a request whose condition does not hold: on the ETag, on the date, on the tags.
struct Row {
    etag: Rule,
    date: Rule,
    tags: Rule,
}

const UNMET: Rule = Refused("ConditionNotMet");
const JUDGED: Row = Row { etag: UNMET, date: UNMET, tags: UNMET };
/// It takes none of them, and passes them over.
const PASSED: Row = Row { etag: Done, date: Done, tags: Done };
/// Containers have no tags, and to pass over an ETag could destroy what was to be protected.
const DATES: Row = {
    let unsupported = Refused("ConditionHeadersNotSupported");
    Row { etag: unsupported, date: UNMET, tags: unsupported }
};
const APART: Row = Row { etag: Apart, date: Apart, tags: Apart };

fn row(op: Op) -> Row {
    match op {
        Op::GetBlob
        | Op::GetBlobProperties
        | Op::GetBlobMetadata
        | Op::PutBlob
        | Op::PutBlobFromUrl
        | Op::SetBlobProperties
        | Op::SetBlobMetadata
        | Op::LeaseBlob
        | Op::SnapshotBlob
        | Op::CopyBlob
        | Op::CopyBlobFromUrl
        | Op::IncrementalCopyBlob
        | Op::DeleteBlob
        | Op::QueryBlobContents
        | Op::PutBlockList
        | Op::PutPage
        | Op::PutPageFromUrl
        | Op::GetPageRanges
        | Op::AppendBlock
        | Op::AppendBlockFromUrl => JUDGED,
        // The reference has names of their own for these two, and gives the seal no condition on tags: those who send them
        // mean them all the same.
        Op::GetBlobTags | Op::SetBlobTags | Op::AppendBlobSeal => JUDGED,
        Op::GetBlockList | Op::SetBlobTier => Row { tags: UNMET, ..PASSED },
        // The reference has it for the first of them only.
        Op::SetBlobImmutabilityPolicy | Op::DeleteBlobImmutabilityPolicy | Op::SetBlobLegalHold => {
            Row { date: UNMET, ..PASSED }
        }
        Op::PutBlock | Op::PutBlockFromUrl | Op::AbortCopyBlob | Op::UndeleteBlob => PASSED,
        Op::SetBlobExpiry => {
            let never = Refused("BlobOperationNotSupported");
            Row { etag: never, date: never, tags: never }
        }
        Op::SetContainerAcl | Op::DeleteContainer | Op::LeaseContainer => DATES,
        // It takes the other date only.
        Op::SetContainerMetadata => Row { date: DATES.etag, ..DATES },
        Op::GetContainerProperties
        | Op::GetContainerMetadata
        | Op::GetContainerAcl
        | Op::ListBlobs
        | Op::FindBlobsByTagsInContainer => PASSED,
        Op::ListContainers
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
        | Op::RenameContainer => APART,
    }
}

async fn stage() -> Stage {
    let mut stage = Stage::new().await;
    stage.wait_for_copy(&[("x-ms-tags", "a=1")]).await;
    stage
}

#[tokio::test]
async fn which_conditions_are_judged() {
    let etag: Headers<'_> = &[("if-match", "\"0x1\"")];
    let date: Headers<'_> = &[("if-unmodified-since", "Sun, 15 Nov 2009 18:00:00 GMT")];
    let tags: Headers<'_> = &[("x-ms-if-tags", "a='2'")];
    hold_all("an ETag", etag, stage, |ask| row(ask.op).etag).await;
    hold_all("a date", date, stage, |ask| row(ask.op).date).await;
    hold_all("tags", tags, stage, |ask| row(ask.op).tags).await;
}

/// Those that hold change nothing.
#[tokio::test]
async fn conditions_that_hold_let_everything_through() {
    let tags: Headers<'_> = &[("x-ms-if-tags", "a='1' AND a<>'2'")];
    hold_all("tags", tags, stage, |ask| match row(ask.op).tags {
        Refused("ConditionNotMet") => Done,
        other => other,
    })
    .await;
    let date: Headers<'_> = &[("if-unmodified-since", "Sun, 15 Nov 2099 18:00:00 GMT")];
    hold_all("a date", date, stage, |ask| match row(ask.op).date {
        Refused("ConditionNotMet") => Done,
        other => other,
    })
    .await;
}
