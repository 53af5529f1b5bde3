//! Append Blob Seal: nothing is appended from now on.
//!
//! The reference says that neither ETag nor Last-Modified change, and that sealing again succeeds.

use concurrency::{Conditions, LeaseId, Timestamp};
use engine::{Changes, Commit, commit};
use service::codec;
use wire::http::{Head, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};

use super::Call;
use crate::error::BlobError;
use crate::model::{self, Blob, BlobType, Committed, blob_key, refuse};
use crate::{Failure, reply, request};

struct AppendBlobSeal {
    container: ContainerName,
    name: BlobName,
    conditions: Conditions,
    lease: Option<LeaseId>,
    position: Option<u64>,
}

fn parse(head: &Head) -> Result<AppendBlobSeal, BlobError> {
    let (container, name) = request::blob(head)?;
    request::only_base(head)?;
    request::no_foreign_headers(head)?;
    let conditions = request::conditions(head)?;
    conditions.check_write_combination()?;
    Ok(AppendBlobSeal {
        container,
        name,
        conditions,
        lease: request::lease_id(head)?,
        position: request::append_position(head)?,
    })
}

impl AppendBlobSeal {
    /// The blob as it becomes, with the stamp that it has.
    fn decide(&self, found: Option<Blob>, now: Timestamp) -> Result<(Blob, Timestamp), BlobError> {
        self.conditions.check_write(found.as_ref().and_then(Blob::version).as_ref())?;
        let mut blob = found.filter(|blob| blob.committed.is_some()).ok_or(BlobError::BlobNotFound)?;
        blob.lease = blob.check_write(self.lease, now)?;
        let state = blob.committed.take().ok_or(BlobError::BlobNotFound)?;
        let BlobType::Append { blocks, .. } = state.kind else { return Err(BlobError::InvalidBlobType) };
        state.check_change(now)?;
        if self.position.is_some_and(|position| position != state.length) {
            return Err(BlobError::AppendPositionConditionNotMet);
        }
        let stamp = state.stamp;
        blob.committed = Some(Committed { kind: BlobType::Append { blocks, sealed: true }, copy: None, ..state });
        Ok((blob, stamp))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = parse(call.head)?;
    let account = call.account;
    let partition = model::blob_partition(account, &op.container, &op.name);
    let stamp = commit(call.engine, partition, move |rows, tick| {
        let generation = model::generation(rows, account, &op.container)?;
        let key = blob_key(generation, &op.name);
        let (blob, stamp) = op.decide(model::find_blob(rows, &key)?, tick.now).map_err(refuse)?;
        let mut changes = Changes::none();
        changes.put(key, codec::encode(&blob));
        Ok(Commit { changes, outcome: stamp })
    })
    .await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_version(&mut answer.headers, stamp);
    answer.headers.insert(&reply::BLOB_SEALED, reply::TRUE);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, HELD, MINE, NOW, YOURS, committed, header, refusal};
    use concurrency::{ETagMatch, Lease};

    fn ask(lease: Option<LeaseId>, position: Option<u64>, conditions: Conditions) -> AppendBlobSeal {
        let name = BlobName::parse("blob").unwrap();
        AppendBlobSeal { container: ContainerName::parse("cont").unwrap(), name, conditions, lease, position }
    }

    fn blob(lease: Lease, kind: BlobType) -> Option<Blob> {
        let state = Committed { length: 100, kind, ..committed() };
        Some(Blob { uid: 3, lease, committed: Some(state), ..Blob::default() })
    }

    #[test]
    fn each_refusal_and_two_at_once() {
        let open = BlobType::Append { blocks: 5, sealed: false };
        let sealed = BlobType::Append { blocks: 5, sealed: true };
        let free = Conditions::default;
        let stale = || Conditions { if_match: Some(ETagMatch::OneOf(vec!["0x1".into()])), ..free() };
        let decide = |op: AppendBlobSeal, found| op.decide(found, NOW).err();
        for kind in [open, sealed] {
            let (after, _) = ask(Some(MINE), Some(100), free()).decide(blob(HELD, kind), NOW).unwrap();
            assert_eq!(after.committed.map(|state| state.kind), Some(sealed));
        }
        assert_eq!(decide(ask(None, None, free()), None), Some(BlobError::BlobNotFound));
        assert_eq!(decide(ask(None, None, stale()), None), Some(BlobError::ConditionNotMet));
        assert_eq!(decide(ask(None, None, stale()), blob(HELD, open)), Some(BlobError::ConditionNotMet));
        assert_eq!(decide(ask(None, None, free()), blob(HELD, BlobType::Block)), Some(BlobError::LeaseIdMissing));
        let yours = decide(ask(Some(YOURS), Some(1), free()), blob(HELD, open));
        assert_eq!(yours, Some(BlobError::LeaseIdMismatchWithBlobOperation));
        let block = blob(Lease::Available, BlobType::Block);
        assert_eq!(decide(ask(None, Some(1), free()), block), Some(BlobError::InvalidBlobType));
        let elsewhere = decide(ask(None, Some(99), free()), blob(Lease::Available, open));
        assert_eq!(elsewhere, Some(BlobError::AppendPositionConditionNotMet));
    }

    #[tokio::test]
    async fn a_sealed_blob_takes_no_more_bytes_but_can_be_described_and_replaced() {
        let bench = Bench::with_container().await;
        let create = [("x-ms-blob-type", "AppendBlob")];
        bench.call("PUT", "cont/blob", &create, b"").await.unwrap();
        bench.call("PUT", "cont/blob?comp=appendblock", &[], b"x").await.unwrap();
        let list = "cont?restype=container&comp=list&include=snapshots";
        let told = bench.text("GET", list).await;
        assert!(told.contains("<BlobType>AppendBlob</BlobType><LeaseStatus>"), "{told}");
        let open = bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
        let before = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        let answer = bench.call("PUT", "cont/blob?comp=seal", &[], b"").await.unwrap();
        assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-blob-sealed")), (200, Some("true")));
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-blob-sealed"), Some("true"));
        assert_eq!(header(&answer, "etag"), header(&before, "etag"));
        assert_eq!(header(&told, "etag"), header(&before, "etag"));
        assert_eq!(bench.text("GET", list).await.matches("<Sealed>true</Sealed>").count(), 1);
        // The snapshot is what it was.
        let url = format!("cont/blob?snapshot={}", header(&open, "x-ms-snapshot").unwrap());
        let told = bench.call("HEAD", &url, &[], b"").await.unwrap();
        assert_eq!((header(&told, "x-ms-blob-sealed"), header(&told, "x-ms-blob-type")), (None, Some("AppendBlob")));

        let refused = bench.call("PUT", "cont/blob?comp=appendblock", &[], b"x").await;
        assert_eq!(refusal(refused), BlobError::BlobIsSealed);
        bench.call("PUT", "cont/blob?comp=metadata", &[("x-ms-meta-a", "1")], b"").await.unwrap();
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-blob-sealed"), Some("true"));
        bench.call("PUT", "cont/blob", &create, b"").await.unwrap();
        bench.call("PUT", "cont/blob?comp=appendblock", &[], b"y").await.unwrap();
        assert_eq!(bench.get("cont/blob").await, b"y");
    }
}
