//! Lease Blob: keep others from writing to a blob. Five actions, chosen by a header.

use std::sync::Arc;

use concurrency::{Conditions, Timestamp};
use engine::{Changes, Key, Rows, Tick};
use service::{LeaseAction, LeaseKind, LeaseOutcome, Operation, codec};
use wire::http::{Head, Reply};
use wire::names::{BlobName, ContainerName};

use super::Call;
use crate::error::BlobError;
use crate::model::{self, Blob, Halt, blob_key, refuse};
use crate::{Failure, reply, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseBlob {
    pub container: ContainerName,
    pub name: BlobName,
    pub conditions: Conditions,
    pub action: LeaseAction,
}

fn parse(head: &Head) -> Result<LeaseBlob, BlobError> {
    let (container, name) = request::blob(head)?;
    request::only_base(head)?;
    request::no_foreign_headers(head)?;
    let conditions = request::conditions(head)?;
    conditions.check_write_combination()?;
    Ok(LeaseBlob { container, name, conditions, action: LeaseAction::parse(head, LeaseKind::Timed)? })
}

impl LeaseBlob {
    /// ETag and Last-Modified stay as they are. A blob of uncommitted blocks can be leased too.
    fn decide(&self, found: Option<Blob>, tick: Tick) -> Result<(Blob, LeaseOutcome), BlobError> {
        let version = found.as_ref().and_then(Blob::version);
        self.conditions.check_write(version.as_ref())?;
        let blob = found.ok_or(BlobError::BlobNotFound)?;
        blob.check_no_copy(tick.now)?;
        let (lease, told) = self.action.decide(&blob.lease, tick).map_err(BlobError::lease_on_blob)?;
        Ok((Blob { lease, ..blob }, told))
    }
}

impl Operation for LeaseBlob {
    /// What has become of the lease, and the stamp of the blob; a blob of uncommitted blocks has none.
    type Outcome = (LeaseOutcome, Option<Timestamp>);
    type Refusal = BlobError;

    fn partition(&self, account: u64) -> Key {
        model::blob_partition(account, &self.container, &self.name)
    }

    fn apply(
        &self,
        rows: &dyn Rows,
        account: u64,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(LeaseOutcome, Option<Timestamp>), Halt> {
        let key = blob_key(model::generation(rows, account, &self.container)?, &self.name);
        let found = model::find_blob(rows, &key)?.filter(|blob| blob.is_there(tick.now));
        let (blob, outcome) = self.decide(found, tick).map_err(refuse)?;
        changes.put(key, codec::encode(&blob));
        Ok((outcome, blob.committed.map(|state| state.stamp)))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (outcome, stamp) = call.commit(&Arc::new(parse(call.head)?)).await?;
    let mut answer = outcome.answer();
    if let Some(stamp) = stamp {
        reply::set_version(&mut answer.headers, stamp);
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, HELD, MINE, YOURS, committed, header, refusal, tick};
    use concurrency::{ETagMatch, Lease};

    fn ask(action: LeaseAction, conditions: Conditions) -> LeaseBlob {
        let name = BlobName::parse("blob").unwrap();
        LeaseBlob { container: ContainerName::parse("cont").unwrap(), name, conditions, action }
    }

    fn blob(lease: Lease) -> Option<Blob> {
        Some(Blob { uid: 3, lease, committed: Some(committed()), ..Blob::default() })
    }

    #[test]
    fn each_refusal_and_two_at_once() {
        let free = Conditions::default;
        let stale = || Conditions { if_match: Some(ETagMatch::OneOf(vec!["0x1".into()])), ..free() };
        let decide = |action, conditions, found| ask(action, conditions).decide(found, tick()).err();
        let yours = LeaseAction::Release { id: YOURS };
        assert_eq!(decide(yours, free(), blob(HELD)), Some(BlobError::LeaseIdMismatchWithLeaseOperation));
        assert_eq!(decide(yours, stale(), blob(HELD)), Some(BlobError::ConditionNotMet));
        assert_eq!(decide(yours, stale(), None), Some(BlobError::ConditionNotMet));
        assert_eq!(decide(yours, free(), None), Some(BlobError::BlobNotFound));
        let change = LeaseAction::Change { id: MINE, proposed: YOURS };
        assert_eq!(decide(change, free(), blob(Lease::Available)), Some(BlobError::LeaseNotPresentWithLeaseOperation));
        let (after, told) = ask(change, free()).decide(blob(HELD), tick()).unwrap();
        assert_eq!((after.lease.holder(tick().now), told), (Some(YOURS), LeaseOutcome::Kept(YOURS)));
        assert_eq!(after.committed, Some(committed()));
    }

    const ID: &str = "01010101-0101-0101-0101-010101010101";
    const URL: &str = "cont/blob?comp=lease";
    const ACQUIRE: [(&str, &str); 3] =
        [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", ID)];

    #[tokio::test]
    async fn a_lease_of_fifteen_seconds_keeps_others_out_until_it_ends() {
        let bench = Bench::with_container().await;
        let etag = bench.put("cont/blob", b"x").await;
        let answer = bench.call("PUT", URL, &ACQUIRE, b"").await.unwrap();
        assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-lease-id")), (201, Some(ID)));
        assert_eq!(header(&answer, "etag"), Some(etag.as_str()));
        let put = [("x-ms-blob-type", "BlockBlob")];
        assert_eq!(refusal(bench.call("PUT", "cont/blob", &put, b"y").await), BlobError::LeaseIdMissing);
        let other = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")];
        assert_eq!(refusal(bench.call("PUT", URL, &other, b"").await), BlobError::LeaseAlreadyPresent);
        let mine = [("x-ms-blob-type", "BlockBlob"), ("x-ms-lease-id", ID)];
        bench.call("PUT", "cont/blob", &mine, b"z").await.unwrap();
        bench.advance(16).await;
        assert_eq!(refusal(bench.call("PUT", "cont/blob", &mine, b"z").await), BlobError::LeaseLost);
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-lease-state"), Some("expired"));
        bench.put("cont/blob", b"free").await;
        // An unleased write made the old lease forgotten.
        let renew = [("x-ms-lease-action", "renew"), ("x-ms-lease-id", ID)];
        assert_eq!(refusal(bench.call("PUT", URL, &renew, b"").await), BlobError::LeaseIdMismatchWithLeaseOperation);
    }

    #[tokio::test]
    async fn uncommitted_blobs_can_be_leased_and_snapshots_cannot() {
        let bench = Bench::with_container().await;
        bench.call("PUT", "cont/blob?comp=block&blockid=QQ==", &[], b"x").await.unwrap();
        let answer = bench.call("PUT", URL, &ACQUIRE, b"").await.unwrap();
        assert_eq!((answer.status.as_u16(), header(&answer, "etag")), (201, None));
        let refused = bench.call("PUT", "cont/blob?comp=block&blockid=QQ==", &[], b"x").await;
        assert_eq!(refusal(refused), BlobError::LeaseIdMissing);
        let snapshot = format!("{URL}&snapshot=2026-11-15T18:00:00.0000000Z");
        assert_eq!(refusal(bench.call("PUT", &snapshot, &ACQUIRE, b"").await), BlobError::InvalidOperation);
    }
}
