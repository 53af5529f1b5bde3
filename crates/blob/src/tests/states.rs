//! Soft delete, versions and snapshots: what every operation keeps of what was there, and what can be done to what is kept.

use super::class::{BlobClass, OpClass};
use super::{Apart, Ask, BLOBS, Done, Of, Refused, Rule, Stage, hold_all, requests};
use crate::Op;
use crate::testing::{Bench, between};

/// With soft delete: how many states more can come back, and what is done to a blob that is deleted.
struct Deleted {
    kept: usize,
    on_deleted: Rule,
}

/// With versions: how many more there are, and what is done to an earlier version, or a snapshot.
struct Earlier {
    versions: usize,
    to_earlier: Rule,
}

const GONE: Rule = Refused("BlobNotFound");

fn deleted(op: Op) -> Deleted {
    let row = |kept, on_deleted| Deleted { kept, on_deleted };
    let class = match op.class() {
        OpClass::Account => return row(0, Apart),
        OpClass::Container(_) => return row(0, Done),
        OpClass::Blob(class) => class,
    };
    match class {
        BlobClass::Replace | BlobClass::Copy => row(1, Done),
        BlobClass::Delete => row(1, GONE),
        // What it replaces is in a snapshot already.
        BlobClass::IncrementalCopy => row(0, Done),
        // A new blob, of which there are only blocks.
        BlobClass::StageBlock => row(0, Done),
        BlobClass::Undelete => row(0, Done),
        // The reference: what they overwrite is not kept.
        BlobClass::WriteInPlace
        | BlobClass::Seal
        | BlobClass::SetProperties
        | BlobClass::SetMetadata
        | BlobClass::SetTags
        | BlobClass::SetTier
        | BlobClass::Lease
        | BlobClass::Snapshot
        | BlobClass::AbortCopy
        | BlobClass::Protect
        | BlobClass::DeletePolicy
        | BlobClass::Read
        | BlobClass::Query
        | BlobClass::GetTags
        | BlobClass::GetBlockList
        | BlobClass::GetPageRanges => row(0, GONE),
        BlobClass::SetExpiry => row(0, Refused("BlobOperationNotSupported")),
    }
}

fn earlier(op: Op) -> Earlier {
    let row = |versions, to_earlier| Earlier { versions, to_earlier };
    let unwritten = Refused("InvalidOperation");
    let class = match op.class() {
        OpClass::Account | OpClass::Container(_) => return row(0, Apart),
        OpClass::Blob(class) => class,
    };
    match class {
        BlobClass::Replace | BlobClass::Copy | BlobClass::SetMetadata | BlobClass::Snapshot => row(1, unwritten),
        BlobClass::SetProperties
        | BlobClass::WriteInPlace
        | BlobClass::Seal
        | BlobClass::StageBlock
        | BlobClass::Lease
        | BlobClass::AbortCopy
        | BlobClass::IncrementalCopy
        | BlobClass::Undelete
        | BlobClass::SetExpiry => row(0, unwritten),
        // The current version becomes a previous one.
        BlobClass::Delete => row(0, Done),
        // They are said of one version.
        BlobClass::SetTags | BlobClass::SetTier | BlobClass::Protect | BlobClass::DeletePolicy => row(0, Done),
        BlobClass::Read
        | BlobClass::Query
        | BlobClass::GetTags
        | BlobClass::GetBlockList
        | BlobClass::GetPageRanges => row(0, Done),
    }
}

async fn softly() -> Stage {
    let mut bench = Bench::with_container().await;
    bench.settings.blob_soft_delete_days = Some(7);
    Stage::with(bench, &[]).await
}

async fn versioned() -> Stage {
    let mut bench = Bench::with_container().await;
    bench.settings.versioning = true;
    Stage::with(bench, &[]).await
}

/// The states of a name that a listing shows.
async fn listed(stage: &Stage, blob: &str, include: &str) -> Vec<String> {
    let prefix = blob.strip_prefix("cont/").unwrap();
    let url = format!("cont?restype=container&comp=list&include={include}&prefix={prefix}");
    let page = stage.bench.text("GET", &url).await;
    between(&page, "<Blob>", "</Blob>").iter().map(|blob| blob.to_string()).collect()
}

#[tokio::test]
async fn what_soft_delete_keeps_of_what_was_there() {
    for op in Op::ALL {
        for at in 0..requests(*op, &softly().await).len() {
            let mut stage = softly().await;
            if *op == Op::AbortCopyBlob {
                stage.wait_for_copy(&[]).await;
            }
            let ask: &Ask = &requests(*op, &stage)[at];
            let Of::Blob(blob) = ask.of else { continue };
            let count = async || {
                let states = listed(&stage, blob, "deleted,snapshots").await;
                states.iter().filter(|state| state.contains("<Deleted>true<")).count()
            };
            let before = count().await;
            let _ = stage.ask(ask, &[]).await;
            // The snapshots of an incremental copy are kept beside it.
            let snapshots = if *op == Op::DeleteBlob && blob == "cont/copied" { 1 } else { 0 };
            assert_eq!(count().await - before, deleted(*op).kept + snapshots, "{ask:?}");
            assert_eq!(stage.bench.problems().await, Vec::<String>::new(), "{ask:?}");
        }
    }
}

async fn all_deleted() -> Stage {
    let stage = softly().await;
    for blob in BLOBS {
        let include = [("x-ms-delete-snapshots", "include")];
        stage.bench.call("DELETE", blob, &include, b"").await.unwrap();
    }
    stage
}

#[tokio::test]
async fn what_can_be_done_to_what_is_deleted() {
    hold_all("deleted", &[], all_deleted, |ask| deleted(ask.op).on_deleted).await;
}

/// Whatever is done under the name of a deleted blob, what was deleted comes back: as the blob, or as a snapshot of it.
#[tokio::test]
async fn what_is_deleted_comes_back_whatever_is_done() {
    for op in Op::ALL {
        for at in 0..requests(*op, &all_deleted().await).len() {
            let stage = all_deleted().await;
            let ask: &Ask = &requests(*op, &stage)[at];
            let Of::Blob(blob @ ("cont/block" | "cont/append" | "cont/page")) = ask.of else { continue };
            let _ = stage.ask(ask, &[]).await;
            stage.put(&format!("{blob}?comp=undelete"), &[], b"").await;
            let length = if blob == "cont/page" { 1_024 } else { 512 };
            let states = listed(&stage, blob, "snapshots,tags").await;
            // The tags tell it from what came instead.
            let is_it = |state: &&String| {
                state.contains(&format!("<Content-Length>{length}<")) && state.contains("<Key>a</Key>")
            };
            assert_eq!(states.iter().filter(is_it).count(), 1, "{ask:?}: {states:?}");
        }
    }
}

#[tokio::test]
async fn which_operations_make_versions() {
    for op in Op::ALL {
        for at in 0..requests(*op, &versioned().await).len() {
            let mut stage = versioned().await;
            if *op == Op::AbortCopyBlob {
                stage.wait_for_copy(&[]).await;
            }
            let ask: &Ask = &requests(*op, &stage)[at];
            let Of::Blob(blob) = ask.of else { continue };
            let before = listed(&stage, blob, "versions").await.len();
            let _ = stage.ask(ask, &[]).await;
            let after = listed(&stage, blob, "versions").await;
            let count = after.iter().filter(|state| state.contains("<VersionId>")).count();
            assert_eq!(count - before, earlier(*op).versions, "{ask:?}: {after:?}");
            assert_eq!(stage.bench.problems().await, Vec::<String>::new(), "{ask:?}");
        }
    }
}

/// A request for an earlier state instead of the blob.
async fn hold_earlier(ask: &Ask, stage: &Stage, element: &str, parameter: &str, rule: Rule) {
    let Of::Blob(blob) = ask.of else { return };
    let states = listed(stage, blob, "snapshots,versions").await;
    let is_earlier = |state: &&String| state.contains(&format!("<{element}>")) && !state.contains("<IsCurrentVersion>");
    let state = states.iter().find(is_earlier).unwrap_or_else(|| panic!("{blob}: {states:?}"));
    let at = between(state, &format!("<{element}>"), "<")[0];
    let join = if ask.url.contains('?') { '&' } else { '?' };
    // What is said of the snapshots of a blob cannot be said of one of them.
    let headers = ask.headers.iter().filter(|(name, _)| *name != "x-ms-delete-snapshots").cloned().collect();
    let asked = Ask { url: format!("{}{join}{parameter}={at}", ask.url), headers, ..ask.clone() };
    stage.hold(&asked, &[], rule, parameter).await;
}

async fn with_earlier() -> Stage {
    let stage = versioned().await;
    for blob in BLOBS {
        if blob != "cont/copied" {
            stage.put(&format!("{blob}?comp=snapshot"), &[], b"").await;
        }
    }
    stage
}

#[tokio::test]
async fn what_can_be_done_to_earlier_states() {
    for op in Op::ALL {
        for at in 0..requests(*op, &with_earlier().await).len() {
            let stage = with_earlier().await;
            let ask: &Ask = &requests(*op, &stage)[at];
            let rule = earlier(*op).to_earlier;
            hold_earlier(ask, &stage, "Snapshot", "snapshot", rule).await;
            let stage = with_earlier().await;
            let ask: &Ask = &requests(*op, &stage)[at];
            if ask.of != Of::Blob("cont/copied") {
                hold_earlier(ask, &stage, "VersionId", "versionid", rule).await;
            }
        }
    }
}
