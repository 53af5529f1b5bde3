//! Set Blob Metadata: replace all of it.

use concurrency::{Conditions, LeaseId, Timestamp};
use engine::{Changes, Commit, Rows, Tick, commit};
use service::codec;
use wire::http::{Head, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};

use super::Call;
use crate::error::BlobError;
use crate::model::{self, Blob, Committed, ContainerGuard, Halt, blob_key, refuse};
use crate::rules::encryption;
use crate::rules::soft_delete;
use crate::{Failure, reply, request};

/// A write that changes what is said of a blob and not its content; Set Blob Properties is the same kind.
pub struct WriteBlob {
    container: ContainerName,
    name: BlobName,
    conditions: Conditions,
    lease: Option<LeaseId>,
}

/// Whether a change makes a version, where the account keeps them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    New,
    Same,
}

impl WriteBlob {
    pub fn parse(head: &Head) -> Result<WriteBlob, BlobError> {
        let (container, name) = request::blob(head)?;
        request::only_base(head)?;
        request::no_expiry(head)?;
        let conditions = request::conditions(head)?;
        conditions.check_write_combination()?;
        Ok(WriteBlob { container, name, conditions, lease: request::lease_id(head)? })
    }

    /// The blob and the state to change. `If-None-Match: *` lets it pass, as the service does for what creates nothing.
    fn decide(&self, found: Option<Blob>, now: Timestamp) -> Result<(Blob, Committed), BlobError> {
        let version = found.as_ref().and_then(Blob::version);
        self.conditions.check_write(version.as_ref())?;
        let mut blob = found.filter(|blob| blob.committed.is_some()).ok_or(BlobError::BlobNotFound)?;
        blob.lease = blob.check_write(self.lease, now)?;
        let state = blob.committed.take().ok_or(BlobError::BlobNotFound)?;
        state.check_change(now)?;
        Ok((blob, state))
    }

    /// Commits the blob as `change` makes it, with a new stamp, and answers with its new state.
    pub async fn run(
        self,
        call: Call<'_>,
        version: Version,
        change: impl Fn(&mut Committed, &ContainerGuard, &dyn Rows, Tick, &mut Changes) -> Result<(), Halt> + Send + 'static,
    ) -> Result<Committed, Failure> {
        let (account, keeping) = (call.account, call.keeping());
        let partition = model::blob_partition(account, &self.container, &self.name);
        let state = commit(call.engine, partition, move |rows, tick| {
            let container = model::guard(rows, account, &self.container)?;
            let key = blob_key(container.generation, &self.name);
            let found = model::find_blob(rows, &key)?;
            let (mut blob, mut state) = self.decide(found, tick.now).map_err(refuse)?;
            let mut changes = Changes::none();
            match version {
                Version::New => soft_delete::keep_version(&mut blob, &mut state, keeping, tick, &mut changes),
                Version::Same => {}
            }
            state.stamp = tick.stamp;
            state.copy = None;
            change(&mut state, &container, rows, tick, &mut changes)?;
            blob.committed = Some(state.clone());
            changes.put(key, codec::encode(&blob));
            Ok(Commit { changes, outcome: state })
        });
        Ok(state.await?)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = WriteBlob::parse(call.head)?;
    let mut asked = call.encryption()?;
    let mut metadata = request::metadata(call.head)?;
    asked.seal_metadata(&mut metadata)?;
    let change = move |state: &mut Committed, container: &ContainerGuard, _: &dyn Rows, _: Tick, _: &mut Changes| {
        let (wanted, stored) = (asked.encryption.as_ref(), state.encryption.as_ref());
        encryption::same_as(container, wanted, stored)?;
        state.metadata = metadata.clone();
        encryption::with_metadata_of(&mut state.encryption, wanted);
        Ok(())
    };
    let state = op.run(call, Version::New, change).await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_version(&mut answer.headers, state.stamp);
    reply::set_version_id(&mut answer.headers, state.version_id);
    reply::set_encrypted(&mut answer.headers, state.encryption.as_ref());
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, HELD, MINE, NOW, YOURS, committed, header, refusal};
    use concurrency::{ETagMatch, Lease};

    fn ask(lease: Option<LeaseId>, conditions: Conditions) -> WriteBlob {
        let name = BlobName::parse("blob").unwrap();
        WriteBlob { container: ContainerName::parse("cont").unwrap(), name, conditions, lease }
    }

    fn blob(lease: Lease) -> Option<Blob> {
        Some(Blob { uid: 3, lease, committed: Some(committed()), ..Blob::default() })
    }

    #[test]
    fn each_refusal_and_two_at_once() {
        let free = Conditions::default;
        let any = || Conditions { if_match: Some(ETagMatch::Any), ..free() };
        let create_only = || Conditions { if_none_match: Some(ETagMatch::Any), ..free() };
        let stale = || Conditions { if_match: Some(ETagMatch::OneOf(vec!["0x1".into()])), ..free() };
        let decide = |op: WriteBlob, found| op.decide(found, NOW).err();
        assert_eq!(decide(ask(None, free()), blob(Lease::Available)), None);
        assert_eq!(decide(ask(None, free()), None), Some(BlobError::BlobNotFound));
        assert_eq!(decide(ask(None, any()), None), Some(BlobError::ConditionNotMet));
        assert_eq!(decide(ask(None, create_only()), blob(Lease::Available)), None);
        assert_eq!(decide(ask(None, free()), blob(HELD)), Some(BlobError::LeaseIdMissing));
        assert_eq!(decide(ask(Some(YOURS), free()), blob(HELD)), Some(BlobError::LeaseIdMismatchWithBlobOperation));
        assert_eq!(decide(ask(Some(MINE), free()), blob(HELD)), None);
        assert_eq!(decide(ask(None, stale()), blob(HELD)), Some(BlobError::ConditionNotMet));
        let uncommitted = blob(Lease::Available).map(|blob| Blob { committed: None, ..blob });
        assert_eq!(decide(ask(None, free()), uncommitted), Some(BlobError::BlobNotFound));
    }

    #[tokio::test]
    async fn metadata_is_replaced_and_the_content_stays() {
        let bench = Bench::with_container().await;
        let etag = bench.put("cont/blob", b"x").await;
        let url = "cont/blob?comp=metadata";
        bench.call("PUT", url, &[("x-ms-meta-a", "1")], b"").await.unwrap();
        let set = bench.call("PUT", url, &[("x-ms-meta-b", "2")], b"").await.unwrap();
        assert_ne!(header(&set, "etag"), Some(etag.as_str()));
        for method in ["GET", "HEAD"] {
            let told = bench.call(method, url, &[], b"").await.unwrap();
            assert_eq!((header(&told, "x-ms-meta-a"), header(&told, "x-ms-meta-b")), (None, Some("2")));
            assert_eq!(header(&told, "etag"), header(&set, "etag"));
        }
        assert_eq!(bench.get("cont/blob").await, b"x");
        let stale = bench.call("PUT", url, &[("if-match", &etag)], b"").await;
        assert_eq!(refusal(stale), BlobError::ConditionNotMet);
        let many = bench.call("PUT", url, &[("if-match", &etag), ("if-none-match", "*")], b"").await;
        assert_eq!(refusal(many), BlobError::MultipleConditionHeadersNotSupported);
        let snapshot = bench.call("PUT", &format!("{url}&snapshot=2026-11-15T18:00:00.0000000Z"), &[], b"").await;
        assert_eq!(refusal(snapshot), BlobError::InvalidOperation);
    }
}
