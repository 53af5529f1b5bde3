//! Incremental Copy Blob: copy a snapshot of a page blob, and after it later ones, each of which stays as a snapshot.
//!
//! The service copies what has changed since the last one. Here nothing is copied at all: the new state refers to the pages of
//! the snapshot, like any copy.

use concurrency::{Conditions, Lease, Timestamp};
use content::map::PageView;
use engine::{Changes, Commit, Key, Tick, commit};
use service::sources::Manner;
use wire::http::{Body, Head, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};

use super::Call;
use super::copy_blob::tell_copy;
use crate::error::BlobError;
use crate::model::Which;
use crate::model::{self, Blob, BlobType, Committed, ContentRef, blob_key, refuse};
use crate::rules::copy;
use crate::rules::copy_source::{self, SourceBlob};
use crate::rules::encryption;
use crate::rules::soft_delete;
use crate::rules::writable;
use crate::source::Source;
use crate::{Failure, Reach, reply, request};
use content::copy_state::{CopyState, CopyStatus, Incremental};

#[derive(Clone)]
struct IncrementalCopyBlob {
    container: ContainerName,
    name: BlobName,
    conditions: Conditions,
    source: Source,
    reach: Reach,
}

fn parse(head: &Head, reach: Reach) -> Result<IncrementalCopyBlob, BlobError> {
    let (container, name) = request::blob(head)?;
    request::only_base(head)?;
    request::no_foreign_headers(head)?;
    let conditions = request::conditions(head)?;
    conditions.check_write_combination()?;
    Ok(IncrementalCopyBlob { container, name, conditions, source: Source::parse(head, Manner::Copy)?, reach })
}

/// The snapshot to copy: of which blob, and when it was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
struct From {
    /// The blob is the one of this name, as for clients; its uid changes with its snapshots.
    key: Key,
    uid: u64,
    snapshot: Timestamp,
}

impl From {
    fn is_other_than(&self, last: &Incremental) -> bool {
        match &last.source_key {
            Some(key) => key != self.key.as_bytes(),
            None => last.source != self.uid,
        }
    }
}

impl IncrementalCopyBlob {
    /// Whether the copy may happen. The destination is new, or has been made by such copies of the same blob.
    fn judge(&self, found: Option<&Blob>, from: &From, now: Timestamp) -> Result<Lease, BlobError> {
        let version = found.and_then(Blob::version);
        if self.reach == Reach::CreateOnly && version.is_some() {
            return Err(BlobError::UnauthorizedBlobOverwrite);
        }
        self.conditions.check_write(version.as_ref())?;
        // The operation takes no lease id, so that a lease stands against it.
        let lease = writable::check_free(found, None, now)?;
        self.conditions.check_create_only(version.is_some(), false)?;
        let Some(state) = found.and_then(|blob| blob.committed.as_ref()) else { return Ok(lease) };
        match state.copy.as_ref().and_then(|copy| copy.incremental.as_ref()) {
            _ if !matches!(state.kind, BlobType::Page { .. }) => Err(BlobError::InvalidBlobType),
            None => Err(BlobError::OperationNotAllowedOnIncrementalCopyBlob),
            Some(last) if from.is_other_than(last) => Err(BlobError::IncrementalCopyBlobMismatch),
            Some(last) if from.snapshot <= last.source_snapshot => {
                Err(BlobError::IncrementalCopyOfEarlierSnapshotNotAllowed)
            }
            // It is replaced and not kept, not even as a version.
            Some(_) => state.check_change(now).map(|()| lease),
        }
    }

    /// The state as it becomes; its pages come beside it.
    fn decide(&self, source: &Committed, from: &From, tick: Tick) -> Committed {
        let incremental = Incremental {
            source: from.uid,
            source_snapshot: from.snapshot,
            snapshot: tick.stamp,
            source_key: Some(from.key.as_bytes().to_vec()),
            source_map: match source.content {
                ContentRef::Pages(view) => Some(view.map),
                ContentRef::Empty | ContentRef::Whole(_) | ContentRef::Blocks(_) | ContentRef::Shared(_) => None,
            },
        };
        let copy = CopyState::success(&self.source.wish.url, source.length, tick);
        Committed {
            headers: source.headers.clone(),
            metadata: source.metadata.clone(),
            copy: Some(Box::new(CopyState { incremental: Some(incremental), ..copy })),
            ..Committed::new(source.kind, source.content, source.length, tick)
        }
    }
}

enum Outcome {
    Done(soft_delete::Written, String),
    Settle(u64),
}

async fn copy(op: &IncrementalCopyBlob, call: Call<'_>, place: &SourceBlob, at: Timestamp) -> Result<Outcome, Failure> {
    let (op, place, account, keeping) = (op.clone(), place.clone(), call.account, call.keeping());
    let asked = call.encryption()?;
    let partition = model::blob_partition(account, &op.container, &op.name);
    let outcome = commit(call.engine, partition, move |rows, tick| {
        keeping.prefetch(rows);
        let container = model::guard(rows, account, &op.container)?;
        let key = blob_key(container.generation, &op.name);
        let found = model::find_blob(rows, &key)?;
        let source = place.look(rows, &op.source.conditions, tick.now)?.state;
        if !matches!(source.kind, BlobType::Page { .. }) {
            return Err(refuse(BlobError::InvalidSourceBlobType));
        }
        let source_key = blob_key(model::generation(rows, place.account, &place.container)?, &place.name);
        let uid = model::find_blob(rows, &source_key)?.map_or(0, |blob| blob.uid);
        let from = From { key: source_key, uid, snapshot: at };
        let there = found.as_ref().filter(|blob| blob.is_there(tick.now));
        let lease = op.judge(there, &from, tick.now).map_err(refuse)?;
        let mut state = op.decide(&source, &from, tick);
        state.encryption = encryption::effective(&container, asked.encryption.as_ref())?;
        let mut changes = Changes::none();
        state.content = match copy::share(rows, &place, &source, &key, tick, &mut changes)? {
            copy::Shared::By(content) => content,
            copy::Shared::AfterSettling(map) => return Ok(Commit::unchanged(Outcome::Settle(map))),
        };
        // The snapshot that the copy leaves, and the blob that goes on from it.
        let snapshot = state.kept_as(tick.id(3), &mut changes);
        let id = state.copy.as_ref().map(|copy| copy.id.clone()).unwrap_or_default();
        let next = ((lease, state), snapshot);
        let written = soft_delete::replace_leaving(rows, key, found, next, keeping, tick, &mut changes)?;
        Ok(Commit { changes, outcome: Outcome::Done(written, id) })
    });
    Ok(outcome.await?)
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    request::no_body(body)?;
    let op = parse(call.head, call.reach)?;
    // What elsewhere has changed between two snapshots cannot be asked for like a blob.
    let place = op.source.find_blob(call.sources()).await?;
    let place = place.ok_or_else(|| copy_source::nowhere("An incremental copy is made within this server only."))?;
    let Which::Snapshot(at) = place.which else {
        return Err(BlobError::IncrementalCopySourceMustBeSnapshot.into());
    };
    let (written, id) = loop {
        match copy(&op, call, &place, at).await? {
            Outcome::Done(written, id) => break (written, id),
            Outcome::Settle(map) => PageView::settle(call.engine, map).await?,
        }
    };
    let mut answer = reply::reply(StatusCode::ACCEPTED);
    reply::set_written(&mut answer.headers, written);
    // It is done, but clients of this operation expect to have to ask.
    tell_copy(&mut answer, &id, CopyStatus::Pending);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, HELD, NOW, between, committed, header, refusal, request, tick, url};

    #[test]
    fn each_refusal_and_two_at_once() {
        let ask = |headers: &[(&str, &str)]| {
            let source = [("x-ms-copy-source", "http://127.0.0.1:10000/acct/cont/source")];
            let head = request("PUT", "cont/blob?comp=incrementalcopy", &[&source, headers].concat());
            parse(&head, Reach::Overwrite).unwrap()
        };
        let at = |ticks| Timestamp(NOW.0 + ticks);
        let from = |blob, ticks| From { key: Key::new(0).number(blob), uid: 1, snapshot: at(ticks) };
        let page = Committed { kind: BlobType::Page { sequence: 0 }, ..committed() };
        let copied = ask(&[]).decide(&page, &from(5, 10), tick());
        let blob = |lease, state: &Committed| Blob { uid: 3, lease, committed: Some(state.clone()), ..Blob::default() };
        let judge =
            |op: IncrementalCopyBlob, found: Option<Blob>, from: From| op.judge(found.as_ref(), &from, NOW).err();
        let free = |state| Some(blob(Lease::Available, state));
        assert_eq!(judge(ask(&[]), None, from(5, 1)), None);
        assert_eq!(judge(ask(&[]), free(&copied), from(5, 11)), None);
        let earlier = Some(BlobError::IncrementalCopyOfEarlierSnapshotNotAllowed);
        assert_eq!(judge(ask(&[]), free(&copied), from(5, 10)), earlier);
        assert_eq!(judge(ask(&[]), free(&copied), from(5, 9)), earlier);
        assert_eq!(judge(ask(&[]), free(&copied), from(6, 9)), Some(BlobError::IncrementalCopyBlobMismatch));
        let other = Some(BlobError::OperationNotAllowedOnIncrementalCopyBlob);
        assert_eq!(judge(ask(&[]), free(&page), from(5, 11)), other);
        assert_eq!(judge(ask(&[]), free(&committed()), from(5, 11)), Some(BlobError::InvalidBlobType));
        let leased = Some(BlobError::LeaseIdMissing);
        assert_eq!(judge(ask(&[]), Some(blob(HELD, &copied)), from(6, 9)), leased);
        let stale = [("if-match", "\"0x1\"")];
        assert_eq!(judge(ask(&stale), Some(blob(HELD, &copied)), from(6, 9)), Some(BlobError::ConditionNotMet));
    }

    #[tokio::test]
    async fn each_copy_leaves_a_snapshot() {
        let bench = Bench::with_container().await;
        bench.put_pages("cont/source", 2_048).await;
        let write = async |at: u64, with: u8| {
            let range = format!("bytes={at}-{}", at + 511);
            let headers = [("x-ms-page-write", "update"), ("range", &*range)];
            bench.call("PUT", "cont/source?comp=page", &headers, &[with; 512]).await.unwrap();
            let answer = bench.call("PUT", "cont/source?comp=snapshot", &[], b"").await.unwrap();
            format!("cont/source?snapshot={}", header(&answer, "x-ms-snapshot").unwrap())
        };
        let (first, second) = (write(0, 1).await, write(1_024, 2).await);
        let copy = async |from: &str| {
            let from = url(from);
            bench.call("PUT", "cont/blob?comp=incrementalcopy", &[("x-ms-copy-source", from.as_str())], b"").await
        };
        let told = async || {
            let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
            assert_eq!(header(&told, "x-ms-incremental-copy"), Some("true"));
            assert_eq!(header(&told, "x-ms-copy-status"), Some("success"));
            header(&told, "x-ms-copy-destination-snapshot").unwrap().to_owned()
        };
        let answer = copy(&first).await.unwrap();
        assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-copy-status")), (202, Some("pending")));
        let one = told().await;
        copy(&second).await.unwrap();
        let two = told().await;
        assert_eq!(refusal(copy(&first).await), BlobError::IncrementalCopyOfEarlierSnapshotNotAllowed);
        assert_eq!(refusal(copy("cont/source").await), BlobError::IncrementalCopySourceMustBeSnapshot);
        // The copies do not need the source.
        bench.call("DELETE", "cont/source", &[("x-ms-delete-snapshots", "include")], b"").await.unwrap();
        bench.sweep().await;
        let after_one = [vec![1; 512], vec![0; 1_536]].concat();
        let after_two = [vec![1; 512], vec![0; 512], vec![2; 512], vec![0; 512]].concat();
        assert!(bench.get(&format!("cont/blob?snapshot={one}")).await == after_one);
        assert!(bench.get(&format!("cont/blob?snapshot={two}")).await == after_two);
        let changed = bench.text("GET", &format!("cont/blob?comp=pagelist&snapshot={two}&prevsnapshot={one}")).await;
        assert_eq!(between(&changed, "<Start>", "</Start>"), ["1024"]);
        let list = bench.text("GET", "cont?restype=container&comp=list&include=copy,snapshots").await;
        assert_eq!(list.matches("<IncrementalCopy>true</IncrementalCopy>").count(), 3);
        // Only its snapshots are for reading, and nothing is written to it.
        let refused = BlobError::OperationNotAllowedOnIncrementalCopyBlob;
        assert_eq!(refusal(bench.call("GET", "cont/blob", &[], b"").await), refused);
        let update = [("x-ms-page-write", "update"), ("range", "bytes=0-511")];
        assert_eq!(refusal(bench.call("PUT", "cont/blob?comp=page", &update, &[1; 512]).await), refused);
        assert_eq!(refusal(bench.call("PUT", "cont/blob?comp=metadata", &[], b"").await), refused);
        bench.call("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "include")], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (1, 0));
    }

    /// Between two copies lies what became of the source between its snapshots, also where that left zeros.
    #[tokio::test]
    async fn clears_between_two_copies_are_told() {
        let bench = Bench::with_container().await;
        bench.put_pages("cont/source", 2_048).await;
        let put = async |kind: &str, at: u64, body: &[u8]| {
            let range = format!("bytes={at}-{}", at + 511);
            let headers = [("x-ms-page-write", kind), ("range", &*range)];
            bench.call("PUT", "cont/source?comp=page", &headers, body).await.unwrap();
        };
        let copy = async || {
            let made = bench.call("PUT", "cont/source?comp=snapshot", &[], b"").await.unwrap();
            let from = url(&format!("cont/source?snapshot={}", header(&made, "x-ms-snapshot").unwrap()));
            bench.call("PUT", "cont/blob?comp=incrementalcopy", &[("x-ms-copy-source", &from)], b"").await.unwrap();
            let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
            header(&told, "x-ms-copy-destination-snapshot").unwrap().to_owned()
        };
        put("update", 0, &[1; 512]).await;
        put("clear", 0, b"").await;
        put("update", 1_536, &[1; 512]).await;
        let one = copy().await;
        put("update", 512, &[2; 512]).await;
        put("clear", 512, b"").await;
        let two = copy().await;
        bench.call("DELETE", "cont/source", &[("x-ms-delete-snapshots", "include")], b"").await.unwrap();
        bench.sweep().await;
        let changed = bench.text("GET", &format!("cont/blob?comp=pagelist&snapshot={two}&prevsnapshot={one}")).await;
        let cleared = "<ClearRange><Start>512</Start><End>1023</End></ClearRange>";
        assert_eq!(between(&changed, "<PageList>", "<NextMarker"), [cleared]);
    }

    #[tokio::test]
    async fn sources_that_are_no_pages_or_elsewhere() {
        let bench = Bench::with_container().await;
        bench.put("cont/source", b"x").await;
        let answer = bench.call("PUT", "cont/source?comp=snapshot", &[], b"").await.unwrap();
        let snapshot = url(&format!("cont/source?snapshot={}", header(&answer, "x-ms-snapshot").unwrap()));
        let copy = async |from: &str| {
            refusal(bench.call("PUT", "cont/blob?comp=incrementalcopy", &[("x-ms-copy-source", from)], b"").await)
        };
        assert_eq!(copy(&snapshot).await, BlobError::InvalidSourceBlobType);
        let elsewhere = copy("http://elsewhere/x?snapshot=y").await;
        assert!(matches!(elsewhere, BlobError::CannotVerifyCopySource(_)));
    }

    /// Takes a snapshot of `cont/source` and copies it to `cont/blob`.
    async fn copy_next(bench: &Bench) -> Result<Reply, Failure> {
        let made = bench.call("PUT", "cont/source?comp=snapshot", &[], b"").await.unwrap();
        let from = url(&format!("cont/source?snapshot={}", header(&made, "x-ms-snapshot").unwrap()));
        bench.call("PUT", "cont/blob?comp=incrementalcopy", &[("x-ms-copy-source", &from)], b"").await
    }

    /// What was there goes, whether or not the account keeps versions: so what protects it stands against it.
    #[tokio::test]
    async fn what_is_protected_is_not_replaced() {
        for versioning in [false, true] {
            let mut bench = Bench::with_container().await;
            bench.settings.versioning = versioning;
            bench.put_pages("cont/source", 512).await;
            copy_next(&bench).await.unwrap();
            let hold = async |is_held: &str| {
                bench.call("PUT", "cont/blob?comp=legalhold", &[("x-ms-legal-hold", is_held)], b"").await.unwrap();
            };
            hold("true").await;
            assert_eq!(refusal(copy_next(&bench).await), BlobError::BlobImmutableDueToLegalHold);
            hold("false").await;
            let policy = [
                ("x-ms-immutability-policy-until-date", "Sun, 15 Nov 2099 18:00:00 GMT"),
                ("x-ms-immutability-policy-mode", "Locked"),
            ];
            bench.call("PUT", "cont/blob?comp=immutabilityPolicies", &policy, b"").await.unwrap();
            assert_eq!(refusal(copy_next(&bench).await), BlobError::BlobImmutableDueToPolicy);
            let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
            assert_eq!(header(&told, "x-ms-immutability-policy-mode"), Some("locked"));
            assert_eq!(bench.problems().await, Vec::<String>::new());
        }
    }

    #[tokio::test]
    async fn the_tags_of_what_was_there_go_with_it() {
        let bench = Bench::with_container().await;
        bench.put_pages("cont/source", 512).await;
        copy_next(&bench).await.unwrap();
        let tags = b"<Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>";
        bench.call("PUT", "cont/blob?comp=tags", &[], tags).await.unwrap();
        copy_next(&bench).await.unwrap();
        assert_eq!(bench.problems().await, Vec::<String>::new());
    }

    /// A source is the same as long as it is the blob of that name, whatever became of its earlier snapshots.
    #[tokio::test]
    async fn the_source_is_known_by_its_name() {
        let bench = Bench::with_container().await;
        bench.put_pages("cont/source", 512).await;
        copy_next(&bench).await.unwrap();
        bench.call("DELETE", "cont/source", &[("x-ms-delete-snapshots", "only")], b"").await.unwrap();
        assert_eq!(copy_next(&bench).await.unwrap().status, 202);
        // Written anew it is the same source, but what has changed cannot be told.
        let at = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        let at = header(&at, "x-ms-copy-destination-snapshot").unwrap();
        bench.put_pages("cont/source", 1_024).await;
        assert_eq!(copy_next(&bench).await.unwrap().status, 202);
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        let now = header(&told, "x-ms-copy-destination-snapshot").unwrap();
        let url_of = format!("cont/blob?comp=pagelist&snapshot={now}&prevsnapshot={at}");
        assert_eq!(refusal(bench.call("GET", &url_of, &[], b"").await), BlobError::BlobOverwritten);
        bench.put_pages("cont/other", 512).await;
        let made = bench.call("PUT", "cont/other?comp=snapshot", &[], b"").await.unwrap();
        let from = url(&format!("cont/other?snapshot={}", header(&made, "x-ms-snapshot").unwrap()));
        let refused = bench.call("PUT", "cont/blob?comp=incrementalcopy", &[("x-ms-copy-source", &from)], b"").await;
        assert_eq!(refusal(refused), BlobError::IncrementalCopyBlobMismatch);
    }

    /// The snapshot that a copy leaves and the soft-deleted blob whose name it takes are two rows.
    #[tokio::test]
    async fn a_copy_onto_a_deleted_copy_loses_neither() {
        let mut bench = Bench::with_container().await;
        bench.settings.blob_soft_delete_days = Some(7);
        bench.put_pages("cont/source", 512).await;
        let write = async |with: u8| {
            let headers = [("x-ms-page-write", "update"), ("range", "bytes=0-511")];
            bench.call("PUT", "cont/source?comp=page", &headers, &[with; 512]).await.unwrap();
        };
        let last_snapshot = async || {
            let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
            format!("cont/blob?snapshot={}", header(&told, "x-ms-copy-destination-snapshot").unwrap())
        };
        write(1).await;
        copy_next(&bench).await.unwrap();
        let first = last_snapshot().await;
        bench.call("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "include")], b"").await.unwrap();
        write(2).await;
        copy_next(&bench).await.unwrap();
        let second = last_snapshot().await;
        assert!(bench.get(&second).await == [2; 512]);
        assert_eq!(bench.problems().await, Vec::<String>::new());
        bench.call("PUT", "cont/blob?comp=undelete", &[], b"").await.unwrap();
        assert!(bench.get(&first).await == [1; 512] && bench.get(&second).await == [2; 512]);
        // The deleted base came back as a snapshot, too.
        let listed = bench.text("GET", "cont?restype=container&comp=list&include=snapshots&prefix=blob").await;
        assert_eq!(between(&listed, "<Snapshot>", "</Snapshot>").len(), 3, "{listed}");
        assert_eq!(bench.problems().await, Vec::<String>::new());
        for name in ["cont/source", "cont/blob"] {
            bench.call("DELETE", name, &[("x-ms-delete-snapshots", "include")], b"").await.unwrap();
        }
        bench.advance(8 * 24 * 3_600).await;
        bench.sweep().await;
        assert_eq!(bench.figures(), (1, 0));
    }

    /// As every other operation that creates a blob, it takes the place of what is deleted and of another type.
    #[tokio::test]
    async fn a_copy_onto_a_deleted_blob_of_another_type_purges_that() {
        let mut bench = Bench::with_container().await;
        bench.settings.blob_soft_delete_days = Some(7);
        bench.put_pages("cont/source", 512).await;
        bench.put("cont/blob", b"overwritten").await;
        bench.put("cont/blob", b"deleted").await;
        bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(copy_next(&bench).await.unwrap().status, 202);
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        let at = header(&told, "x-ms-copy-destination-snapshot").unwrap();
        assert_eq!(bench.get(&format!("cont/blob?snapshot={at}")).await.len(), 512);
        let everything = "cont?restype=container&comp=list&include=snapshots,deleted&prefix=blob";
        assert!(!bench.text("GET", everything).await.contains("BlockBlob"));
        assert_eq!(bench.problems().await, Vec::<String>::new());
    }
}
