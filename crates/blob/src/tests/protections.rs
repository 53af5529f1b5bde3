//! Legal holds and immutability policies: nothing that they stand over is changed or removed, whichever operation asks.

use super::class::{BlobClass, ContainerClass, OpClass};
use super::{Apart, Ask, BEFORE, BLOBS, Done, FAR, Headers, Of, Refused, Rule, Stage, hold_all, requests};
use crate::Op;
use crate::testing::{Bench, between};

/// What is done to a protected blob: where the account keeps no versions, and where it does.
struct Row {
    plain: Rule,
    versioned: Rule,
}

fn both(rule: Rule) -> Row {
    Row { plain: rule, versioned: rule }
}

/// `code` is that of the protection.
fn row(op: Op, code: &'static str) -> Row {
    let refused = Refused(code);
    match op.class() {
        OpClass::Account => both(Apart),
        OpClass::Container(class) => match class {
            // Its blobs end with it.
            ContainerClass::Delete => both(refused),
            ContainerClass::Read
            | ContainerClass::GetAcl
            | ContainerClass::SetMetadata
            | ContainerClass::SetAcl
            | ContainerClass::Lease
            | ContainerClass::List => both(Done),
        },
        OpClass::Blob(class) => match class {
            // What was there stays as a version, with what protects it.
            BlobClass::Replace | BlobClass::Copy => Row { plain: refused, versioned: Done },
            // The reference: neither metadata nor pages are written, versions or not, and the version is not deleted.
            BlobClass::SetProperties
            | BlobClass::SetMetadata
            | BlobClass::Delete
            | BlobClass::WriteInPlace
            | BlobClass::Seal
            | BlobClass::IncrementalCopy => both(refused),
            // They say nothing of the content: tags, tier and lease may change, blocks wait beside it, a snapshot is another
            // state. The copy that is aborted has brought nothing yet.
            BlobClass::SetTags
            | BlobClass::SetTier
            | BlobClass::Lease
            | BlobClass::Snapshot
            | BlobClass::StageBlock
            | BlobClass::AbortCopy
            | BlobClass::Undelete => both(Done),
            // Of a policy itself: it is locked, and here set to the same date.
            BlobClass::Protect => both(Done),
            BlobClass::DeletePolicy => match code {
                "BlobImmutableDueToPolicy" => both(refused),
                _ => both(Done),
            },
            BlobClass::SetExpiry => both(Refused("BlobOperationNotSupported")),
            BlobClass::Read
            | BlobClass::Query
            | BlobClass::GetTags
            | BlobClass::GetBlockList
            | BlobClass::GetPageRanges => both(Done),
        },
    }
}

/// The same when the time of a policy is over: the blob may go, and with it its container. It cannot be changed, and what is
/// locked stays locked.
fn expired(op: Op) -> Row {
    match op {
        Op::DeleteBlob | Op::DeleteContainer => both(Done),
        other => row(other, "BlobImmutableDueToPolicy"),
    }
}

const HOLD: (&str, Headers<'static>) = ("legalhold", &[("x-ms-legal-hold", "true")]);
const POLICY: (&str, Headers<'static>) = (
    "immutabilityPolicies",
    &[("x-ms-immutability-policy-until-date", FAR), ("x-ms-immutability-policy-mode", "Locked")],
);

/// All blobs are protected, and it is told of all of them.
async fn protected((comp, headers): (&str, Headers<'_>), versioning: bool) -> Stage {
    let mut bench = Bench::with_container().await;
    bench.settings.versioning = versioning;
    let mut stage = Stage::with(bench, &[]).await;
    stage.wait_for_copy(&[]).await;
    for blob in BLOBS {
        stage.put(&format!("{blob}?comp={comp}"), headers, b"").await;
    }
    stage
}

#[tokio::test]
async fn what_a_protection_stands_against() {
    for (protection, code) in [(HOLD, "BlobImmutableDueToLegalHold"), (POLICY, "BlobImmutableDueToPolicy")] {
        let what = protection.0;
        hold_all(what, &[], async || protected(protection, false).await, |ask| row(ask.op, code).plain).await;
        hold_all(what, &[], async || protected(protection, true).await, |ask| row(ask.op, code).versioned).await;
    }
}

#[tokio::test]
async fn what_an_expired_policy_stands_against() {
    for versioning in [false, true] {
        let stage = async || {
            let mut bench = Bench::with_container().await;
            bench.settings.versioning = versioning;
            let soon = wire::dates::http_date(bench.engine_now().plus_seconds(100)).as_str().to_owned();
            let mut stage = Stage::with(bench, &[]).await;
            stage.wait_for_copy(&[]).await;
            let policy =
                [("x-ms-immutability-policy-until-date", soon.as_str()), ("x-ms-immutability-policy-mode", "Locked")];
            for blob in BLOBS {
                stage.put(&format!("{blob}?comp=immutabilityPolicies"), &policy, b"").await;
            }
            stage.bench.advance(100).await;
            stage
        };
        let rule = |ask: &Ask| if versioning { expired(ask.op).versioned } else { expired(ask.op).plain };
        hold_all("expired policy", &[], stage, rule).await;
    }
}

/// The states of a name that are protected: version id, if there is one, and length. A state that becomes a previous version
/// keeps its id, and with it what protects it.
async fn standing(stage: &Stage, blob: &str) -> Vec<String> {
    let include = "versions,immutabilitypolicy,legalhold";
    let prefix = blob.strip_prefix("cont/").unwrap();
    let url = format!("cont?restype=container&comp=list&include={include}&prefix={prefix}");
    let Ok(listed) = stage.bench.call("GET", &url, &[], b"").await else { return Vec::new() };
    let listed = String::from_utf8(crate::testing::bytes(listed).await).unwrap();
    let of = |blob: &&&str| blob.contains("<LegalHold>true<") || blob.contains("<ImmutabilityPolicyMode>locked<");
    let one = |blob: &str, before: &str| between(blob, before, "<").first().map_or("", |text| *text).to_owned();
    let known = |blob: &&str| format!("{} {}", one(blob, "<VersionId>"), one(blob, "<Content-Length>"));
    between(&listed, "<Blob>", "</Blob>").iter().filter(of).map(known).collect()
}

/// Whatever operation is tried, with whatever lets it through: what was protected is there, and protected.
#[tokio::test]
async fn nothing_goes_around_a_protection() {
    let tries: [Headers<'static>; 2] = [&[], &[("x-ms-delete-snapshots", "include")]];
    for protection in [HOLD, POLICY] {
        for versioning in [false, true] {
            for op in Op::ALL {
                for at in 0..requests(*op, &protected(protection, versioning).await).len() {
                    for more in tries {
                        let stage = protected(protection, versioning).await;
                        let ask: &Ask = &requests(*op, &stage)[at];
                        let Of::Blob(blob) = ask.of else { continue };
                        let before = standing(&stage, blob).await;
                        let is_added = !ask.headers.iter().any(|(name, _)| more.iter().any(|(other, _)| name == other));
                        if is_added {
                            let _ = stage.ask(ask, more).await;
                        }
                        let after = standing(&stage, blob).await;
                        assert_eq!(before, after, "{protection:?}, {versioning}: {ask:?}");
                        let deleted = stage.bench.call("DELETE", "cont?restype=container", &[], b"").await;
                        assert!(deleted.is_err(), "{protection:?}, {versioning}: {ask:?}");
                        assert_eq!(stage.bench.problems().await, Vec::<String>::new(), "{ask:?}");
                    }
                }
            }
        }
    }
}

/// A protection is of one state: the source of a copy keeps its own, and the copy has none.
#[tokio::test]
async fn a_copy_is_not_protected_by_what_protects_its_source() {
    let stage = protected(HOLD, false).await;
    let source = crate::testing::url("cont/block");
    for kind in [&[][..], &[("x-ms-requires-sync", "true")], &[("x-ms-blob-type", "BlockBlob")]] {
        let headers = [&[("x-ms-copy-source", source.as_str())], kind].concat();
        stage.put("cont/new", &headers, b"").await;
        assert_eq!(stage.bench.get("cont/new").await, BEFORE);
        stage.bench.call("DELETE", "cont/new", &[], b"").await.unwrap();
    }
    assert_eq!(standing(&stage, "cont/block").await, [" 512"]);
}

/// What Delete Blob can say beside the name of a blob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deletes {
    Blob,
    WithSnapshots,
    SnapshotsOnly,
    Snapshot,
    Version,
    /// What is soft-deleted already, for good.
    SnapshotForGood,
    VersionForGood,
}

const DELETES: [Deletes; 7] = [
    Deletes::Blob,
    Deletes::WithSnapshots,
    Deletes::SnapshotsOnly,
    Deletes::Snapshot,
    Deletes::Version,
    Deletes::SnapshotForGood,
    Deletes::VersionForGood,
];

/// Which state of `cont/block` is protected: there are an earlier version, a snapshot, and the blob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Under {
    Current,
    Version,
    Snapshot,
}

/// A blob with an earlier version and a snapshot, one of the three protected. The version's id and the snapshot's time.
async fn with_states((comp, headers): (&str, Headers<'_>), under: Under, soft: bool) -> (Bench, String, String) {
    let mut bench = Bench::with_container().await;
    bench.settings.versioning = true;
    let policy = "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>\
        <AllowPermanentDelete>true</AllowPermanentDelete></DeleteRetentionPolicy></StorageServiceProperties>";
    if soft {
        bench.call("PUT", "?restype=service&comp=properties", &[], policy.as_bytes()).await.unwrap();
    }
    let put = [("x-ms-blob-type", "BlockBlob")];
    let first = bench.call("PUT", "cont/block", &put, b"first").await.unwrap();
    let version = crate::testing::header(&first, "x-ms-version-id").unwrap().to_owned();
    bench.call("PUT", "cont/block", &put, b"second").await.unwrap();
    let made = bench.call("PUT", "cont/block?comp=snapshot", &[], b"").await.unwrap();
    let snapshot = crate::testing::header(&made, "x-ms-snapshot").unwrap().to_owned();
    let which = match under {
        Under::Current => String::new(),
        Under::Version => format!("&versionid={version}"),
        Under::Snapshot => format!("&snapshot={snapshot}"),
    };
    bench.call("PUT", &format!("cont/block?comp={comp}{which}"), headers, b"").await.unwrap();
    (bench, version, snapshot)
}

/// Delete Blob in all its forms: the state that is protected stays, whether it is named, or goes with others, or is to go for
/// good; what is not protected may go.
#[tokio::test]
async fn no_form_of_delete_takes_what_is_protected() {
    for (protection, code) in [(HOLD, "BlobImmutableDueToLegalHold"), (POLICY, "BlobImmutableDueToPolicy")] {
        for under in [Under::Current, Under::Version, Under::Snapshot] {
            for soft in [false, true] {
                for deletes in DELETES {
                    let (bench, version, snapshot) = with_states(protection, under, soft).await;
                    let (query, headers): (String, Headers<'_>) = match deletes {
                        Deletes::Blob => (String::new(), &[]),
                        Deletes::WithSnapshots => (String::new(), &[("x-ms-delete-snapshots", "include")]),
                        Deletes::SnapshotsOnly => (String::new(), &[("x-ms-delete-snapshots", "only")]),
                        Deletes::Snapshot => (format!("?snapshot={snapshot}"), &[]),
                        Deletes::Version => (format!("?versionid={version}"), &[]),
                        Deletes::SnapshotForGood => (format!("?snapshot={snapshot}&deletetype=permanent"), &[]),
                        Deletes::VersionForGood => (format!("?versionid={version}&deletetype=permanent"), &[]),
                    };
                    let answer = bench.call("DELETE", &format!("cont/block{query}"), headers, b"").await;
                    let said = match &answer {
                        Ok(_) => "Done",
                        Err(crate::Failure::Refused(error)) => error.to_reply().code,
                        Err(error) => panic!("{error:?}"),
                    };
                    let what = format!("{code} {under:?} soft={soft} {deletes:?}: {said}");
                    let names_it = match deletes {
                        Deletes::Blob | Deletes::WithSnapshots => under != Under::Version,
                        Deletes::SnapshotsOnly | Deletes::Snapshot | Deletes::SnapshotForGood => {
                            under == Under::Snapshot
                        }
                        Deletes::Version | Deletes::VersionForGood => under == Under::Version,
                    };
                    match deletes {
                        // There is a snapshot, which is said first.
                        Deletes::Blob => assert_eq!(said, "SnapshotsPresent", "{what}"),
                        _ if names_it => assert_eq!(said, code, "{what}"),
                        Deletes::SnapshotForGood | Deletes::VersionForGood => {
                            assert_eq!(said, "PermanentDeleteNotAllowed", "{what}: it is not deleted yet");
                        }
                        _ => assert_eq!(said, "Done", "{what}"),
                    }
                    // Whatever was answered, what is protected can be read, and is protected.
                    let (state, content): (_, &[u8]) = match under {
                        Under::Current => ("cont/block".to_owned(), b"second"),
                        Under::Version => (format!("cont/block?versionid={version}"), b"first"),
                        Under::Snapshot => (format!("cont/block?snapshot={snapshot}"), b"second"),
                    };
                    let told =
                        bench.call("GET", &state, &[], b"").await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
                    let is_held = crate::testing::header(&told, "x-ms-legal-hold") == Some("true");
                    let is_locked = crate::testing::header(&told, "x-ms-immutability-policy-mode").is_some();
                    assert!(is_held || is_locked, "{what}");
                    assert_eq!(crate::testing::bytes(told).await, content, "{what}");
                    assert!(bench.call("DELETE", "cont?restype=container", &[], b"").await.is_err(), "{what}");
                    assert_eq!(bench.problems().await, Vec::<String>::new(), "{what}");
                }
            }
        }
    }
}
