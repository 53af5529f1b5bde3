//! Leases: who may do what to a blob, or a container, that is leased.

use super::class::{BlobClass, ContainerClass, OpClass};
use super::{Apart, Ask, BLOBS, Done, Headers, MINE, Of, Refused, Rule, Stage, YOURS, hold_all, requests};
use crate::Op;
use crate::testing::header;

/// Without an id, with another one, and with that of the lease.
struct Row {
    none: Rule,
    yours: Rule,
    mine: Rule,
}

const MISSING: Rule = Refused("LeaseIdMissing");
const MISMATCH: Rule = Refused("LeaseIdMismatchWithBlobOperation");
const ABSENT: Rule = Refused("LeaseNotPresentWithContainerOperation");

/// A write needs the id.
const WRITE: Row = Row { none: MISSING, yours: MISMATCH, mine: Done };
/// A read needs none, but one that is given must be right.
const READ: Row = Row { none: Done, yours: MISMATCH, mine: Done };
/// It takes no id, and the lease does not stand against it.
const FREE: Row = Row { none: Done, yours: Done, mine: Done };
const APART: Row = Row { none: Apart, yours: Apart, mine: Apart };

fn all(rule: Rule) -> Row {
    Row { none: rule, yours: rule, mine: rule }
}

/// A blob that is leased for ever.
fn of_blob(op: Op) -> Row {
    match op.class() {
        OpClass::Account => APART,
        OpClass::Container(class) => match class {
            // An id is that of the container's lease, and there is none. The leases of its blobs do not keep a container.
            ContainerClass::Read
            | ContainerClass::GetAcl
            | ContainerClass::SetMetadata
            | ContainerClass::SetAcl
            | ContainerClass::Delete => Row { none: Done, yours: ABSENT, mine: ABSENT },
            ContainerClass::Lease | ContainerClass::List => FREE,
        },
        OpClass::Blob(class) => match class {
            BlobClass::Replace
            | BlobClass::Copy
            | BlobClass::AbortCopy
            | BlobClass::StageBlock
            | BlobClass::WriteInPlace
            | BlobClass::Seal
            | BlobClass::SetProperties
            | BlobClass::SetMetadata
            | BlobClass::SetTags
            | BlobClass::SetTier
            | BlobClass::Delete => WRITE,
            BlobClass::Read
            | BlobClass::Query
            | BlobClass::GetTags
            | BlobClass::GetBlockList
            | BlobClass::GetPageRanges
            | BlobClass::Snapshot => READ,
            // The reference gives it no id. That a lease stands against it all the same is our choice.
            BlobClass::IncrementalCopy => all(MISSING),
            BlobClass::Lease => all(Refused("LeaseAlreadyPresent")),
            BlobClass::Undelete | BlobClass::Protect | BlobClass::DeletePolicy => FREE,
            BlobClass::SetExpiry => all(Refused("BlobOperationNotSupported")),
        },
    }
}

/// A container that is leased for ever.
fn of_container(op: Op) -> Row {
    let mismatch = Refused("LeaseIdMismatchWithContainerOperation");
    match op.class() {
        OpClass::Account => APART,
        OpClass::Container(class) => match class {
            ContainerClass::Delete => Row { none: MISSING, yours: mismatch, mine: Done },
            ContainerClass::Read | ContainerClass::GetAcl | ContainerClass::SetMetadata | ContainerClass::SetAcl => {
                Row { none: Done, yours: mismatch, mine: Done }
            }
            ContainerClass::Lease => all(Refused("LeaseAlreadyPresent")),
            ContainerClass::List => FREE,
        },
        OpClass::Blob(class) => match class {
            // The lease of a container says nothing of its blobs; an id is that of a blob's lease.
            BlobClass::Replace
            | BlobClass::Copy
            | BlobClass::AbortCopy
            | BlobClass::StageBlock
            | BlobClass::WriteInPlace
            | BlobClass::Seal
            | BlobClass::SetProperties
            | BlobClass::SetMetadata
            | BlobClass::SetTags
            | BlobClass::SetTier
            | BlobClass::Delete
            | BlobClass::Read
            | BlobClass::Query
            | BlobClass::GetTags
            | BlobClass::GetBlockList
            | BlobClass::GetPageRanges
            | BlobClass::Snapshot => {
                let absent = Refused("LeaseNotPresentWithBlobOperation");
                Row { none: Done, yours: absent, mine: absent }
            }
            BlobClass::IncrementalCopy
            | BlobClass::Lease
            | BlobClass::Undelete
            | BlobClass::Protect
            | BlobClass::DeletePolicy => FREE,
            BlobClass::SetExpiry => all(Refused("BlobOperationNotSupported")),
        },
    }
}

const ACQUIRE: Headers<'static> =
    &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", MINE)];

async fn leased_blobs() -> Stage {
    let mut stage = Stage::new().await;
    for blob in BLOBS {
        stage.put(&format!("{blob}?comp=lease"), ACQUIRE, b"").await;
    }
    stage.wait_for_copy(&[("x-ms-lease-id", MINE)]).await;
    stage
}

async fn leased_container() -> Stage {
    let mut stage = Stage::new().await;
    stage.put("cont?restype=container&comp=lease", ACQUIRE, b"").await;
    stage.wait_for_copy(&[]).await;
    stage
}

#[tokio::test]
async fn what_a_lease_stands_against() {
    let (yours, mine) = ([("x-ms-lease-id", YOURS)], [("x-ms-lease-id", MINE)]);
    hold_all("a leased blob", &[], leased_blobs, |ask| of_blob(ask.op).none).await;
    hold_all("a leased blob", &yours, leased_blobs, |ask| of_blob(ask.op).yours).await;
    hold_all("a leased blob", &mine, leased_blobs, |ask| of_blob(ask.op).mine).await;
    hold_all("a leased container", &[], leased_container, |ask| of_container(ask.op).none).await;
    hold_all("a leased container", &yours, leased_container, |ask| of_container(ask.op).yours).await;
    hold_all("a leased container", &mine, leased_container, |ask| of_container(ask.op).mine).await;
}

/// Nobody takes a lease away but its holder, by ending it or the blob.
#[tokio::test]
async fn whatever_is_done_the_lease_stays() {
    for op in Op::ALL {
        for at in 0..requests(*op, &leased_blobs().await).len() {
            let stage = leased_blobs().await;
            let ask: &Ask = &requests(*op, &stage)[at];
            let Of::Blob(blob) = ask.of else { continue };
            let _ = stage.ask(ask, &[("x-ms-lease-id", MINE)]).await;
            match stage.bench.call("HEAD", blob, &[], b"").await {
                Ok(told) => assert_eq!(header(&told, "x-ms-lease-state"), Some("leased"), "{ask:?}"),
                Err(_) => assert_eq!(*op, Op::DeleteBlob),
            }
        }
    }
}
