//! Snapshot Blob: keep the blob as it is now, to be read but never written.

use concurrency::{Conditions, LeaseId, Timestamp};
use engine::{Changes, Commit, Tick, commit};
use service::codec;
use wire::dates;
use wire::http::{Head, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};

use super::Call;
use crate::error::BlobError;
use crate::model::{self, Blob, Committed, Pairs, blob_key, refuse, snapshot_key};
use crate::rules::encryption;
use crate::rules::soft_delete::{self, Written};
use crate::{Failure, reply, request};

struct SnapshotBlob {
    container: ContainerName,
    name: BlobName,
    conditions: Conditions,
    lease: Option<LeaseId>,
    /// Empty: the snapshot takes that of the blob.
    metadata: Pairs,
}

fn parse(head: &Head) -> Result<SnapshotBlob, BlobError> {
    let (container, name) = request::blob(head)?;
    request::only_base(head)?;
    request::no_expiry(head)?;
    let conditions = request::conditions(head)?;
    conditions.check_write_combination()?;
    Ok(SnapshotBlob {
        container,
        name,
        conditions,
        lease: request::lease_id(head)?,
        metadata: request::metadata(head)?,
    })
}

impl SnapshotBlob {
    /// The blob and the state to keep. A lease does not stand against it; one that is named must be the right one.
    fn decide(&self, found: Option<Blob>, now: Timestamp) -> Result<(Blob, Committed), BlobError> {
        let version = found.as_ref().and_then(Blob::version);
        self.conditions.check_write(version.as_ref())?;
        let mut blob = found.ok_or(BlobError::BlobNotFound)?;
        blob.check_no_copy(now)?;
        let state = blob.committed.take().ok_or(BlobError::BlobNotFound)?;
        blob.lease.check_read(self.lease, now).map_err(BlobError::lease_on_blob)?;
        state.check_not_archived(now)?;
        Ok((blob, state))
    }

    /// With metadata of its own a snapshot has a version of its own, else it has that of the blob.
    fn snapshot(&self, state: &mut Committed, has_metadata: bool, changes: &mut Changes, tick: Tick) -> Committed {
        let copy = Committed { version_id: None, ..state.kept_as(tick.id(1), changes) };
        if !has_metadata {
            return copy;
        }
        Committed { stamp: tick.stamp, metadata: self.metadata.clone(), ..copy }
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let mut op = parse(call.head)?;
    let mut asked = call.encryption()?;
    let has_metadata = !op.metadata.is_empty();
    asked.seal_metadata(&mut op.metadata)?;
    let (account, keeping) = (call.account, call.keeping());
    let partition = model::blob_partition(account, &op.container, &op.name);
    let (at, written) = commit(call.engine, partition, move |rows, tick| {
        let container = model::guard(rows, account, &op.container)?;
        let key = blob_key(container.generation, &op.name);
        let found = model::find_blob(rows, &key)?;
        let (mut blob, mut state) = op.decide(found, tick.now).map_err(refuse)?;
        let (wanted, stored) = (asked.encryption.as_ref(), state.encryption.as_ref());
        encryption::same_as(&container, wanted, stored)?;
        let mut changes = Changes::none();
        let mut snapshot = op.snapshot(&mut state, has_metadata, &mut changes, tick);
        if has_metadata {
            encryption::with_metadata_of(&mut snapshot.encryption, wanted);
        }
        changes.put(snapshot_key(blob.uid, tick.stamp), codec::encode(&snapshot));
        blob.snapshots = blob.snapshots.saturating_add(1);
        soft_delete::keep_version_of_snapshot(&mut blob, &mut state, keeping, tick, &mut changes);
        let written = Written { stamp: snapshot.stamp, version_id: state.version_id };
        blob.committed = Some(state);
        changes.put(key, codec::encode(&blob));
        Ok(Commit { changes, outcome: (tick.stamp, written) })
    })
    .await?;
    let mut answer = reply::reply(StatusCode::CREATED);
    answer.headers.insert(&reply::SNAPSHOT, reply::value(dates::iso_ticks(at).as_str().to_owned()));
    reply::set_written(&mut answer.headers, written);
    answer.headers.insert(&reply::REQUEST_SERVER_ENCRYPTED, reply::TRUE);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, HELD, MINE, NOW, YOURS, between, committed, header, refusal};
    use concurrency::{ETagMatch, Lease};

    #[test]
    fn each_refusal_and_two_at_once() {
        let ask = |lease, conditions| SnapshotBlob {
            container: ContainerName::parse("cont").unwrap(),
            name: BlobName::parse("blob").unwrap(),
            conditions,
            lease,
            metadata: vec![],
        };
        let blob = |lease| Blob { uid: 3, lease, committed: Some(committed()), ..Blob::default() };
        let free = Conditions::default;
        let stale = || Conditions { if_match: Some(ETagMatch::OneOf(vec!["0x1".into()])), ..free() };
        let decide = |op: SnapshotBlob, found: Option<Blob>| op.decide(found, NOW).err();
        assert_eq!(decide(ask(None, free()), Some(blob(HELD))), None);
        assert_eq!(decide(ask(Some(MINE), free()), Some(blob(HELD))), None);
        assert_eq!(
            decide(ask(Some(YOURS), free()), Some(blob(HELD))),
            Some(BlobError::LeaseIdMismatchWithBlobOperation)
        );
        assert_eq!(decide(ask(Some(YOURS), stale()), Some(blob(HELD))), Some(BlobError::ConditionNotMet));
        assert_eq!(decide(ask(None, free()), None), Some(BlobError::BlobNotFound));
        let uncommitted = Blob { committed: None, ..blob(Lease::Available) };
        assert_eq!(decide(ask(None, free()), Some(uncommitted)), Some(BlobError::BlobNotFound));
    }

    async fn snapshot(bench: &Bench, headers: &[(&str, &str)]) -> (String, String) {
        let answer = bench.call("PUT", "cont/blob?comp=snapshot", headers, b"").await.unwrap();
        assert_eq!(answer.status, 201);
        let text = |name| header(&answer, name).unwrap().to_owned();
        (text("x-ms-snapshot"), text("etag"))
    }

    #[tokio::test]
    async fn a_snapshot_stays_what_it_was() {
        let bench = Bench::with_container().await;
        let etag = bench.put("cont/blob", b"first").await;
        let (at, snapshot_etag) = snapshot(&bench, &[]).await;
        assert_eq!(snapshot_etag, etag);
        let (named, named_etag) = snapshot(&bench, &[("x-ms-meta-a", "1")]).await;
        assert_ne!(named_etag, etag);
        bench.put("cont/blob", b"second").await;
        bench.sweep().await;
        assert_eq!(bench.get(&format!("cont/blob?snapshot={at}")).await, b"first");
        let told = bench.call("HEAD", &format!("cont/blob?snapshot={named}"), &[], b"").await.unwrap();
        assert_eq!((header(&told, "x-ms-meta-a"), header(&told, "x-ms-lease-state")), (Some("1"), None));
        assert_eq!(bench.get("cont/blob").await, b"second");
        let unchanged = [("if-none-match", etag.as_str())];
        let refused = bench.call("GET", &format!("cont/blob?snapshot={at}"), &unchanged, b"").await;
        assert_eq!(refusal(refused), BlobError::NotModified);
    }

    #[tokio::test]
    async fn snapshots_are_listed_before_their_blob_in_pages_of_any_size() {
        let bench = Bench::with_container().await;
        for name in ["aaa", "blob", "ccc"] {
            bench.put(&format!("cont/{name}"), b"x").await;
        }
        let times = [snapshot(&bench, &[]).await.0, snapshot(&bench, &[]).await.0, snapshot(&bench, &[]).await.0];
        for max in 1..=7 {
            let (mut seen, mut marker) = (Vec::new(), String::new());
            loop {
                let marked = wire::percent::encode_value(&marker).into_owned();
                let url =
                    format!("cont?restype=container&comp=list&include=snapshots&maxresults={max}&marker={marked}");
                let page = bench.text("GET", &url).await;
                for blob in between(&page, "<Blob>", "</Blob>") {
                    let at = between(blob, "<Snapshot>", "</Snapshot>").first().map(|at| at.to_string());
                    seen.push((between(blob, "<Name>", "</Name>")[0].to_owned(), at));
                }
                marker = between(&page, "<NextMarker>", "</NextMarker>").first().map_or("", |m| *m).to_owned();
                if marker.is_empty() {
                    break;
                }
            }
            let mut expected = vec![("aaa".to_owned(), None)];
            expected.extend(times.iter().map(|at| ("blob".to_owned(), Some(at.clone()))));
            expected.extend([("blob".to_owned(), None), ("ccc".to_owned(), None)]);
            assert_eq!(seen, expected, "{max}");
        }
    }

    #[tokio::test]
    async fn deleting_with_snapshots() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"x").await;
        let (first, _) = snapshot(&bench, &[]).await;
        let (second, _) = snapshot(&bench, &[]).await;
        let delete = async |url: &str, headers: &[(&str, &str)]| bench.call("DELETE", url, headers, b"").await;
        assert_eq!(refusal(delete("cont/blob", &[]).await), BlobError::SnapshotsPresent);
        let one = format!("cont/blob?snapshot={first}");
        assert_eq!(delete(&one, &[]).await.unwrap().status, 202);
        assert_eq!(refusal(delete(&one, &[]).await), BlobError::BlobNotFound);
        assert_eq!(refusal(delete("cont/blob", &[]).await), BlobError::SnapshotsPresent);
        delete("cont/blob", &[("x-ms-delete-snapshots", "only")]).await.unwrap();
        let other = format!("cont/blob?snapshot={second}");
        assert_eq!(refusal(bench.call("GET", &other, &[], b"").await), BlobError::BlobNotFound);
        // A snapshot taken before the old ones are swept away is not swept with them.
        let (third, _) = snapshot(&bench, &[]).await;
        bench.sweep().await;
        assert_eq!(bench.get(&format!("cont/blob?snapshot={third}")).await, b"x");
        delete("cont/blob", &[("x-ms-delete-snapshots", "include")]).await.unwrap();
        assert_eq!(refusal(bench.call("GET", "cont/blob", &[], b"").await), BlobError::BlobNotFound);
    }
}
