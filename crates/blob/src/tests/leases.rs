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

/// How the lease of a blob or a container with the id `MINE` stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Available,
    Leased,
    Breaking,
    Broken,
    Expired,
}

const STATES: [State; 5] = [State::Available, State::Leased, State::Breaking, State::Broken, State::Expired];
const THIRD: &str = "03030303-0303-0303-0303-030303030303";

/// The headers of a lease action.
type ActionHeaders = Vec<(&'static str, &'static str)>;

/// The five actions, with the ids that they name, and what becomes of them in each state. The published table, literally.
fn actions() -> Vec<(ActionHeaders, [Rule; 5])> {
    let mismatch = Refused("LeaseIdMismatchWithLeaseOperation");
    let absent = Refused("LeaseNotPresentWithLeaseOperation");
    let present = Refused("LeaseAlreadyPresent");
    let breaking = Refused("LeaseIsBreakingAndCannotBeAcquired");
    let unchanged = Refused("LeaseIsBreakingAndCannotBeChanged");
    let broken = Refused("LeaseIsBrokenAndCannotBeRenewed");
    let acquire = |id: Option<&'static str>| {
        let id = id.map(|id| ("x-ms-proposed-lease-id", id));
        [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")].into_iter().chain(id).collect::<Vec<_>>()
    };
    let of = |action: &'static str, id: &'static str| vec![("x-ms-lease-action", action), ("x-ms-lease-id", id)];
    let change = |id, new| [of("change", id), vec![("x-ms-proposed-lease-id", new)]].concat();
    let break_ = |period: Option<&'static str>| {
        let period = period.map(|period| ("x-ms-lease-break-period", period));
        [("x-ms-lease-action", "break")].into_iter().chain(period).collect::<Vec<_>>()
    };
    vec![
        (acquire(None), [Done, present, present, Done, Done]),
        (acquire(Some(MINE)), [Done, Done, breaking, Done, Done]),
        (acquire(Some(YOURS)), [Done, present, present, Done, Done]),
        (of("renew", MINE), [mismatch, Done, broken, broken, Done]),
        (of("renew", YOURS), [mismatch; 5]),
        (change(MINE, YOURS), [absent, Done, unchanged, absent, absent]),
        // As if the answer to an earlier one had been lost.
        (change(YOURS, MINE), [absent, Done, mismatch, absent, absent]),
        (change(YOURS, THIRD), [absent, mismatch, mismatch, absent, absent]),
        (of("release", MINE), [mismatch, Done, Done, Done, Done]),
        (of("release", YOURS), [mismatch; 5]),
        (break_(None), [absent, Done, Done, Done, Done]),
        (break_(Some("0")), [absent, Done, Done, Done, Done]),
        (break_(Some("5")), [absent, Done, Done, Done, Done]),
    ]
}

async fn with_lease(url: &str, state: State) -> Stage {
    let stage = Stage::new().await;
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", MINE)];
    let break_after = |seconds| [("x-ms-lease-action", "break"), ("x-ms-lease-break-period", seconds)];
    if state != State::Available {
        stage.put(url, &acquire, b"").await;
    }
    match state {
        State::Available | State::Leased => {}
        State::Breaking => _ = stage.put(url, &break_after("10"), b"").await,
        State::Broken => _ = stage.put(url, &break_after("0"), b"").await,
        State::Expired => stage.bench.advance(16).await,
    }
    stage
}

/// Every action in every state, on a blob and on a container. What is refused changes nothing and names what it is about.
#[tokio::test]
async fn what_the_actions_do_in_every_state() {
    let mut wrong = Vec::new();
    for (url, op, of, named) in [
        ("cont/block?comp=lease", Op::LeaseBlob, Of::Blob("cont/block"), "container"),
        ("cont?restype=container&comp=lease", Op::LeaseContainer, Of::Container, "blob"),
    ] {
        for (headers, rules) in actions() {
            for (state, rule) in STATES.into_iter().zip(rules) {
                let stage = with_lease(url, state).await;
                let headers: Vec<(&str, String)> = headers.iter().map(|(name, id)| (*name, (*id).to_owned())).collect();
                let ask = Ask { op, method: "PUT", url: url.to_owned(), headers, body: Vec::new(), of };
                wrong.extend(stage.broken(&ask, &[], rule, &format!("{state:?} {:?}", ask.headers)).await);
                if let Err(crate::Failure::Refused(error)) = stage.ask(&ask, &[]).await {
                    let text = error.to_reply().message;
                    assert!(!text.contains(named), "{url}: {text}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An id for a blob that is not there is that of a lease that is not there.
#[tokio::test]
async fn an_id_for_what_is_not_there_is_refused() {
    let stage = async || {
        let stage = Stage::new().await;
        for blob in BLOBS {
            stage.bench.call("DELETE", blob, &[("x-ms-delete-snapshots", "include")], b"").await.unwrap();
        }
        stage
    };
    let absent = Refused("LeaseNotPresentWithBlobOperation");
    hold_all("no blob", &[("x-ms-lease-id", MINE)], stage, |ask| match ask.op.class() {
        OpClass::Account => Apart,
        OpClass::Container(_) => of_blob(ask.op).mine,
        OpClass::Blob(class) => match class {
            // They would make it.
            BlobClass::Replace | BlobClass::Copy | BlobClass::StageBlock => absent,
            BlobClass::IncrementalCopy => Done,
            BlobClass::SetExpiry => Refused("BlobOperationNotSupported"),
            BlobClass::AbortCopy
            | BlobClass::WriteInPlace
            | BlobClass::Seal
            | BlobClass::SetProperties
            | BlobClass::SetMetadata
            | BlobClass::SetTags
            | BlobClass::SetTier
            | BlobClass::Lease
            | BlobClass::Snapshot
            | BlobClass::Delete
            | BlobClass::Undelete
            | BlobClass::Protect
            | BlobClass::DeletePolicy
            | BlobClass::Read
            | BlobClass::Query
            | BlobClass::GetTags
            | BlobClass::GetBlockList
            | BlobClass::GetPageRanges => Refused("BlobNotFound"),
        },
    })
    .await;
}
