//! Delete Container: the container and everything in it are gone at once; the rows behind it go later, after the time in
//! which it can be restored.

use std::sync::Arc;

use bytes::Bytes;
use concurrency::{Conditions, Lease, LeaseId, Timestamp};
use engine::{Changes, Key, Rows, Tick};
use service::{Operation, codec};
use wire::http::{Head, Reply, StatusCode};
use wire::names::ContainerName;

use super::Call;
use crate::error::BlobError;
use crate::model::{
    self, Container, DeletedContainer, Deletion, Halt, container_key, deleted_container_due, deleted_container_key,
    purge_due, refuse,
};
use crate::rules::immutability::Standing;
use crate::{Failure, reply, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteContainer {
    pub container: ContainerName,
    pub conditions: Conditions,
    pub lease: Option<LeaseId>,
    /// For how many days it can be restored, if it can.
    pub soft_delete_days: Option<u16>,
}

fn parse(head: &Head, soft_delete_days: Option<u16>) -> Result<DeleteContainer, BlobError> {
    Ok(DeleteContainer {
        container: request::container(head)?,
        conditions: request::container_conditions(head)?,
        lease: request::lease_id(head)?,
        soft_delete_days,
    })
}

impl DeleteContainer {
    /// The only use of a container that its lease stands against. The leases of its blobs do not count.
    fn decide(&self, found: Option<Container>, now: Timestamp) -> Result<Container, BlobError> {
        let container = found.ok_or(BlobError::ContainerNotFound)?;
        self.conditions.check_write(Some(&container.version()))?;
        container.lease.check_write(self.lease, now).map_err(BlobError::lease_on_container)?;
        Ok(container)
    }
}

impl Operation for DeleteContainer {
    type Outcome = ();
    type Refusal = BlobError;

    fn partition(&self, account: u64) -> Key {
        container_key(account, &self.container)
    }

    fn apply(&self, rows: &dyn Rows, account: u64, tick: Tick, changes: &mut Changes) -> Result<(), Halt> {
        let found = model::find_container(rows, account, &self.container)?;
        let container = self.decide(found, tick.now).map_err(refuse)?;
        Standing::of(rows, container.generation, tick.now)?.check().map_err(refuse)?;
        changes.frees_space = true;
        changes.delete(container_key(account, &self.container));
        match self.soft_delete_days {
            None => {
                changes.put(purge_due(container.generation, tick.now), Bytes::new());
            }
            Some(days) => {
                let mark = Deletion::new(days, tick);
                let key = deleted_container_key(account, &self.container, tick.stamp.0);
                changes.put(deleted_container_due(&key, mark), Bytes::new());
                let container = Container { lease: Lease::Available, ..container };
                changes.put(key, codec::encode(&DeletedContainer { container, mark }));
            }
        }
        Ok(())
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = parse(call.head, call.asker.settings.container_soft_delete_days)?;
    call.commit(&Arc::new(op)).await?;
    Ok(reply::reply(StatusCode::ACCEPTED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, HELD, MINE, NOW, YOURS, container, refusal};

    fn ask(lease: Option<LeaseId>, conditions: Conditions) -> DeleteContainer {
        let container = ContainerName::parse("cont").unwrap();
        DeleteContainer { container, conditions, lease, soft_delete_days: None }
    }

    #[test]
    fn the_lease_stands_against_it() {
        let decide = |lease, held| {
            ask(lease, Conditions::default()).decide(Some(container(held)), NOW).map(|container| container.generation)
        };
        assert_eq!(decide(None, Lease::Available), Ok(7));
        assert_eq!(decide(None, HELD), Err(BlobError::ContainerLeaseIdMissing));
        assert_eq!(decide(Some(MINE), HELD), Ok(7));
        assert_eq!(decide(Some(YOURS), HELD), Err(BlobError::LeaseIdMismatchWithContainerOperation));
        assert_eq!(decide(Some(MINE), Lease::Available), Err(BlobError::LeaseNotPresentWithContainerOperation));
        assert_eq!(decide(Some(MINE), Lease::Broken { id: MINE }), Err(BlobError::ContainerLeaseLost));
    }

    #[test]
    fn of_two_faults_the_condition_comes_first() {
        let stale = Conditions { if_unmodified_since: Some(Timestamp(0)), ..Conditions::default() };
        assert_eq!(ask(None, stale.clone()).decide(Some(container(HELD)), NOW), Err(BlobError::ConditionNotMet));
        assert_eq!(ask(None, stale).decide(None, NOW), Err(BlobError::ContainerNotFound));
    }

    #[tokio::test]
    async fn the_name_is_free_at_once_and_the_old_blobs_are_not_seen() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"old").await;
        assert_eq!(bench.call("DELETE", "cont?restype=container", &[], b"").await.unwrap().status, 202);
        assert_eq!(refusal(bench.call("GET", "cont/blob", &[], b"").await), BlobError::ContainerNotFound);
        bench.call("PUT", "cont?restype=container", &[], b"").await.unwrap();
        assert_eq!(refusal(bench.call("GET", "cont/blob", &[], b"").await), BlobError::BlobNotFound);
    }

    #[tokio::test]
    async fn an_etag_condition_is_refused_and_not_passed_over() {
        let bench = Bench::with_container().await;
        let refused = bench.call("DELETE", "cont?restype=container", &[("if-match", "*")], b"").await;
        assert_eq!(refusal(refused), BlobError::ConditionHeadersNotSupported);
    }
}
