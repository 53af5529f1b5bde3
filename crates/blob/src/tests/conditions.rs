//! Conditions: which of the headers every operation judges.

use super::class::{BlobClass, ContainerClass, OpClass};
use super::{Apart, BLOBS, Done, FAR, Headers, Of, Refused, Rule, Stage, all_broken, hold_all, requests};
use crate::testing::header;
use crate::{Failure, Op};

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

/// What an operation does to a blob whose ETag is that of If-None-Match, and whose date is not after If-Modified-Since.
struct Unchanged {
    none_match: Rule,
    any: Rule,
    modified: Rule,
}

fn unchanged(op: Op) -> Unchanged {
    let exists = Refused("BlobAlreadyExists");
    let all = |rule| Unchanged { none_match: rule, any: rule, modified: rule };
    match op.class() {
        OpClass::Account => all(Apart),
        OpClass::Container(class) => match class {
            ContainerClass::SetAcl | ContainerClass::Delete | ContainerClass::Lease | ContainerClass::SetMetadata => {
                Unchanged { modified: UNMET, ..all(DATES.etag) }
            }
            ContainerClass::Read | ContainerClass::GetAcl | ContainerClass::List => all(Done),
        },
        OpClass::Blob(class) => match class {
            // What is made only where there is nothing.
            BlobClass::Replace | BlobClass::Copy | BlobClass::IncrementalCopy => {
                Unchanged { any: exists, ..all(UNMET) }
            }
            BlobClass::Delete => all(UNMET),
            // They can only be done to what is there, so the wildcard would refuse them always. The notes of Azurite say that the
            // service passes it over.
            BlobClass::WriteInPlace
            | BlobClass::SetProperties
            | BlobClass::SetMetadata
            | BlobClass::Lease
            | BlobClass::Snapshot
            | BlobClass::SetTags
            | BlobClass::GetTags
            | BlobClass::Seal => Unchanged { any: Done, ..all(UNMET) },
            // Whatever is there, it cannot be.
            BlobClass::Read | BlobClass::Query | BlobClass::GetPageRanges => {
                Unchanged { any: Refused("UnsatisfiableCondition"), ..all(UNMET) }
            }
            BlobClass::GetBlockList
            | BlobClass::SetTier
            | BlobClass::Protect
            | BlobClass::DeletePolicy
            | BlobClass::StageBlock
            | BlobClass::AbortCopy
            | BlobClass::Undelete => all(Done),
            BlobClass::SetExpiry => all(Refused("BlobOperationNotSupported")),
        },
    }
}

/// If-None-Match with the ETag that the blob has, and with any; If-Modified-Since with a time after the last change. Reads answer
/// 304, all others 412.
#[tokio::test]
async fn what_is_done_to_what_has_not_changed() {
    let mut broken = Vec::new();
    for op in Op::ALL {
        for at in 0..requests(*op, &stage().await).len() {
            for which in ["if-none-match", "any", "if-modified-since"] {
                let stage = stage().await;
                let ask = &requests(*op, &stage)[at];
                let now = match ask.of {
                    Of::Account => continue,
                    Of::Container => stage.bench.call("HEAD", "cont?restype=container", &[], b"").await.unwrap(),
                    Of::Blob(blob) => stage.bench.call("HEAD", blob, &[], b"").await.unwrap(),
                };
                let etag = header(&now, "etag").unwrap().to_owned();
                let expected = unchanged(*op);
                let (condition, rule) = match which {
                    "if-none-match" => (("if-none-match", etag.as_str()), expected.none_match),
                    "any" => (("if-none-match", "*"), expected.any),
                    _ => (("if-modified-since", FAR), expected.modified),
                };
                let how = stage.broken(ask, &[condition], rule, which).await;
                let is_held = how.is_none();
                broken.extend(how);
                if rule == UNMET
                    && is_held
                    && let Err(Failure::Refused(error)) = stage.ask(ask, &[condition]).await
                {
                    // Not so for tags, which have no ETag of their own.
                    let is_read = matches!(
                        op.class(),
                        OpClass::Blob(BlobClass::Read | BlobClass::Query | BlobClass::GetPageRanges)
                    );
                    let status = error.to_reply().status;
                    assert_eq!(status, if is_read { 304 } else { 412 }, "{which}: {ask:?}");
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Conditions on a blob that is not there. `If-Match` never holds, the others do; then the operation finds nothing, or makes it.
#[tokio::test]
async fn what_is_done_to_what_is_not_there() {
    let nothing = async || {
        let stage = Stage::new().await;
        for blob in BLOBS {
            stage.bench.call("DELETE", blob, &[("x-ms-delete-snapshots", "include")], b"").await.unwrap();
        }
        stage
    };
    let gone = Refused("BlobNotFound");
    let found = |op: Op| match op.class() {
        OpClass::Account | OpClass::Container(_) => Apart,
        OpClass::Blob(class) => match class {
            BlobClass::Replace | BlobClass::Copy | BlobClass::IncrementalCopy | BlobClass::StageBlock => Done,
            BlobClass::SetExpiry => Refused("BlobOperationNotSupported"),
            _ => gone,
        },
    };
    // A write that must find what it names does not hold; a read says that there is nothing.
    let if_match = |op: Op| match (op.class(), row(op).etag) {
        (OpClass::Account | OpClass::Container(_), _) => Apart,
        (OpClass::Blob(BlobClass::Read | BlobClass::Query | BlobClass::GetPageRanges | BlobClass::GetTags), _) => gone,
        (OpClass::Blob(_), UNMET) => UNMET,
        (OpClass::Blob(_), _) => found(op),
    };
    let mut broken = Vec::new();
    broken.extend(all_broken("nothing", &[], nothing, |ask| found(ask.op)).await);
    for etag in ["\"0x1\"", "*"] {
        broken.extend(all_broken("if-match", &[("if-match", etag)], nothing, |ask| if_match(ask.op)).await);
    }
    for condition in [
        ("if-none-match", "\"0x1\""),
        ("if-modified-since", FAR),
        ("if-unmodified-since", "Sun, 15 Nov 2009 18:00:00 GMT"),
    ] {
        broken.extend(all_broken("not there", &[condition], nothing, |ask| found(ask.op)).await);
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Conditions on the source of a copy: none of them is passed over, and what is refused changes nothing.
#[tokio::test]
async fn conditions_on_a_source_are_judged_by_who_has_one() {
    let mut broken = Vec::new();
    for (name, value) in [
        ("x-ms-source-if-match", "\"0x1\""),
        ("x-ms-source-if-none-match", ""),
        ("x-ms-source-if-modified-since", FAR),
        ("x-ms-source-if-unmodified-since", "Sun, 15 Nov 2009 18:00:00 GMT"),
    ] {
        for op in Op::ALL {
            for at in 0..requests(*op, &stage().await).len() {
                let stage = stage().await;
                let ask = &requests(*op, &stage)[at];
                let source = ask.headers.iter().find(|(name, _)| *name == "x-ms-copy-source").map(|(_, source)| source);
                // The source of another server is asked by it, and this one says nothing.
                let here =
                    source.filter(|source| source.contains("/from/")).map(|source| source.split("/from/").last());
                let Some(Some(path)) = here else { continue };
                let now = stage.bench.call("HEAD", &format!("from/{path}"), &[], b"").await.unwrap();
                let etag = header(&now, "etag").unwrap();
                let value = if value.is_empty() { etag } else { value };
                let rule = match op {
                    // The reference gives the second none. A client that sends one means it all the same.
                    Op::CopyBlob | Op::IncrementalCopyBlob => Refused("SourceConditionNotMet"),
                    // They ask for the source as a reader would, and tell what it answered.
                    _ => Refused("CannotVerifyCopySource"),
                };
                broken.extend(stage.broken(ask, &[(name, value)], rule, "source").await);
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
