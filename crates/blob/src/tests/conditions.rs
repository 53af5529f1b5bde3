//! Conditions: which of the headers every operation judges.

use super::class::{BlobClass, ContainerClass, OpClass};
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
    match op.class() {
        OpClass::Account => APART,
        OpClass::Container(class) => match class {
            ContainerClass::SetAcl | ContainerClass::Delete | ContainerClass::Lease => DATES,
            // It takes the other date only.
            ContainerClass::SetMetadata => Row { date: DATES.etag, ..DATES },
            ContainerClass::Read | ContainerClass::GetAcl | ContainerClass::List => PASSED,
        },
        OpClass::Blob(class) => match class {
            BlobClass::Replace
            | BlobClass::Copy
            | BlobClass::IncrementalCopy
            | BlobClass::WriteInPlace
            | BlobClass::SetProperties
            | BlobClass::SetMetadata
            | BlobClass::Lease
            | BlobClass::Snapshot
            | BlobClass::Delete
            | BlobClass::Read
            | BlobClass::Query
            | BlobClass::GetPageRanges => JUDGED,
            // The reference has headers of their own for tags, and gives the seal no condition on tags. A client that sends
            // the usual ones means them all the same.
            BlobClass::GetTags | BlobClass::SetTags | BlobClass::Seal => JUDGED,
            BlobClass::GetBlockList | BlobClass::SetTier => Row { tags: UNMET, ..PASSED },
            // The reference has it for Set Blob Immutability Policy only.
            BlobClass::Protect | BlobClass::DeletePolicy => Row { date: UNMET, ..PASSED },
            BlobClass::StageBlock | BlobClass::AbortCopy | BlobClass::Undelete => PASSED,
            BlobClass::SetExpiry => {
                let never = Refused("BlobOperationNotSupported");
                Row { etag: never, date: never, tags: never }
            }
        },
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
