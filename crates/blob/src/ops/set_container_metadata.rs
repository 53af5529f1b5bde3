//! Set Container Metadata: replace all of it.

use concurrency::{Conditions, LeaseId, Timestamp};
use engine::{Changes, Commit, Tick, commit};
use service::codec;
use wire::http::{Head, Reply, StatusCode};
use wire::names::ContainerName;

use super::Call;
use crate::error::BlobError;
use crate::model::{self, Container, Pairs, container_key, refuse};
use crate::{Failure, reply, request};

/// A write to a container's own row. The lease need not be named, but if it is, it must be the right one.
pub struct WriteContainer {
    pub name: ContainerName,
    conditions: Conditions,
    lease: Option<LeaseId>,
}

impl WriteContainer {
    pub fn parse(head: &Head) -> Result<WriteContainer, BlobError> {
        Ok(WriteContainer {
            name: request::container(head)?,
            conditions: request::container_conditions(head)?,
            lease: request::lease_id(head)?,
        })
    }

    /// The container with a new stamp, for the operation to change.
    pub fn decide(&self, found: Option<&Container>, tick: Tick) -> Result<Container, BlobError> {
        let container = found.ok_or(BlobError::ContainerNotFound)?;
        self.conditions.check_write(Some(&container.version()))?;
        container.lease.check_read(self.lease, tick.now).map_err(BlobError::lease_on_container)?;
        Ok(Container { stamp: tick.stamp, ..container.clone() })
    }

    /// Commits the container as `change` makes it and answers with its new version.
    pub async fn run(
        self,
        call: Call<'_>,
        change: impl Fn(&mut Container) + Send + 'static,
    ) -> Result<Timestamp, Failure> {
        let key = container_key(call.account, &self.name);
        let account = call.account;
        let stamp = commit(call.engine, key.clone(), move |rows, tick| {
            let found = model::find_container(rows, account, &self.name)?;
            let mut container = self.decide(found.as_ref(), tick).map_err(refuse)?;
            change(&mut container);
            let mut changes = Changes::none();
            changes.put(key.clone(), codec::encode(&container));
            Ok(Commit { changes, outcome: container.stamp })
        });
        Ok(stamp.await?)
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = WriteContainer::parse(call.head)?;
    // The other writes to containers take both dates.
    if op.conditions.if_unmodified_since.is_some() {
        return Err(BlobError::ConditionHeadersNotSupported.into());
    }
    let metadata: Pairs = request::metadata(call.head)?;
    let stamp = op.run(call, move |container| container.metadata = metadata.clone()).await?;
    let mut answer = reply::reply(StatusCode::OK);
    reply::set_version(&mut answer.headers, stamp);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, HELD, MINE, NOW, YOURS, container, header, refusal, tick};
    use service::RequestError;

    #[test]
    fn each_refusal_and_two_at_once() {
        let ask = |lease, conditions| WriteContainer { name: ContainerName::parse("cont").unwrap(), conditions, lease };
        let free = Conditions::default;
        let unchanged = || Conditions { if_modified_since: Some(NOW), ..free() };
        let decide = |op: WriteContainer, found: Option<Container>| op.decide(found.as_ref(), tick()).err();
        assert_eq!(decide(ask(None, free()), Some(container(HELD))), None);
        assert_eq!(decide(ask(Some(MINE), free()), Some(container(HELD))), None);
        assert_eq!(
            decide(ask(Some(YOURS), free()), Some(container(HELD))),
            Some(BlobError::LeaseIdMismatchWithContainerOperation)
        );
        assert_eq!(decide(ask(None, unchanged()), Some(container(HELD))), Some(BlobError::ConditionNotMet));
        assert_eq!(decide(ask(Some(YOURS), unchanged()), Some(container(HELD))), Some(BlobError::ConditionNotMet));
        assert_eq!(decide(ask(Some(YOURS), unchanged()), None), Some(BlobError::ContainerNotFound));
    }

    #[tokio::test]
    async fn all_of_it_is_replaced() {
        let bench = Bench::new().await;
        let made = bench.call("PUT", "cont?restype=container", &[("x-ms-meta-a", "1")], b"").await.unwrap();
        let url = "cont?restype=container&comp=metadata";
        let set = bench.call("PUT", url, &[("x-ms-meta-b", "2")], b"").await.unwrap();
        assert_ne!(header(&set, "etag"), header(&made, "etag"));
        let told = bench.call("HEAD", url, &[], b"").await.unwrap();
        assert_eq!((header(&told, "x-ms-meta-a"), header(&told, "x-ms-meta-b")), (None, Some("2")));
        assert_eq!(header(&told, "etag"), header(&set, "etag"));
        let refused = bench.call("PUT", url, &[("x-ms-meta-1", "2")], b"").await;
        assert_eq!(
            refusal(refused),
            BlobError::Request(RequestError::Metadata(wire::metadata::MetadataError::InvalidMetadata))
        );
    }
}
