//! Lease Container: keep a container from being deleted by others. Five actions, chosen by a header.

use std::sync::Arc;

use concurrency::{Conditions, Timestamp};
use engine::{Changes, Key, Rows, Tick};
use service::{LeaseAction, LeaseKind, LeaseOutcome, Operation, codec};
use wire::http::{Head, Reply};
use wire::names::ContainerName;

use super::Call;
use crate::error::BlobError;
use crate::model::{self, Container, Halt, container_key, refuse};
use crate::{Failure, reply, request};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseContainer {
    pub container: ContainerName,
    pub conditions: Conditions,
    pub action: LeaseAction,
}

fn parse(head: &Head) -> Result<LeaseContainer, BlobError> {
    Ok(LeaseContainer {
        container: request::container(head)?,
        conditions: request::container_conditions(head)?,
        action: LeaseAction::parse(head, LeaseKind::Timed)?,
    })
}

impl Operation for LeaseContainer {
    /// What has become of the lease, and the stamp of the container.
    type Outcome = (LeaseOutcome, Timestamp);
    type Refusal = BlobError;

    fn partition(&self, account: u64) -> Key {
        container_key(account, &self.container)
    }

    /// ETag and Last-Modified stay as they are.
    fn apply(
        &self,
        rows: &dyn Rows,
        account: u64,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(LeaseOutcome, Timestamp), Halt> {
        let found = model::find_container(rows, account, &self.container)?;
        let container = found.ok_or(refuse(BlobError::ContainerNotFound))?;
        self.conditions.check_write(Some(&container.version())).map_err(|unmet| refuse(unmet.into()))?;
        let decided = self.action.decide(&container.lease, tick);
        let (lease, outcome) = decided.map_err(|refusal| refuse(BlobError::lease_on_container(refusal)))?;
        let stamp = container.stamp;
        changes.put(container_key(account, &self.container), codec::encode(&Container { lease, ..container }));
        Ok((outcome, stamp))
    }
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let (outcome, stamp) = call.commit(&Arc::new(parse(call.head)?)).await?;
    let mut answer = outcome.answer();
    reply::set_version(&mut answer.headers, stamp);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::BlobError;
    use crate::testing::{Bench, header, refusal};

    const ID: &str = "01010101-0101-0101-0101-010101010101";
    const URL: &str = "cont?restype=container&comp=lease";

    #[tokio::test]
    async fn a_leased_container_is_deleted_by_its_holder_only() {
        let bench = Bench::with_container().await;
        let before = bench.call("HEAD", "cont?restype=container", &[], b"").await.unwrap();
        let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", ID)];
        let answer = bench.call("PUT", URL, &acquire, b"").await.unwrap();
        assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-lease-id")), (201, Some(ID)));
        assert_eq!(header(&answer, "etag"), header(&before, "etag"));
        let told = bench.call("HEAD", "cont?restype=container", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-lease-duration"), Some("fixed"));
        assert_eq!(header(&told, "x-ms-lease-status"), Some("locked"));
        let delete = bench.call("DELETE", "cont?restype=container", &[], b"").await;
        assert_eq!(refusal(delete), BlobError::ContainerLeaseIdMissing);
        // What is inside does not care.
        bench.put("cont/blob", b"x").await;
        bench.advance(16).await;
        let late = bench.call("DELETE", "cont?restype=container", &[("x-ms-lease-id", ID)], b"").await;
        assert_eq!(refusal(late), BlobError::ContainerLeaseLost);
        let renew = [("x-ms-lease-action", "renew"), ("x-ms-lease-id", ID)];
        assert_eq!(bench.call("PUT", URL, &renew, b"").await.unwrap().status, 200);
        let answer = bench.call("PUT", URL, &[("x-ms-lease-action", "break")], b"").await.unwrap();
        assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-lease-time")), (202, Some("15")));
        let delete = bench.call("DELETE", "cont?restype=container", &[("x-ms-lease-id", ID)], b"").await;
        assert_eq!(delete.unwrap().status, 202);
        assert_eq!(refusal(bench.call("PUT", URL, &renew, b"").await), BlobError::ContainerNotFound);
    }
}
